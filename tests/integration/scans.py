"""A reader of shared scans, written from proto/PROTOCOL.md alone."""

import array
import fcntl
import mmap
import os
import socket
import struct
import zlib

from wire import F_ADD_SEALS, F_SEAL_GROW, F_SEAL_SHRINK, F_SEAL_WRITE

MAGIC = int.from_bytes(b"GadScan2", "little")
SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE
ABSENT = 2**64 - 1
THERE, IS_ABSENT, FAILED = range(3)


def head(n_chunks, chunk_bytes, n_steps, magic=MAGIC, n_files=1, n_kinds=1):
    return struct.pack("<QQQIIII", magic, n_chunks, chunk_bytes, n_files, n_kinds, n_steps, 0)


def identity(path):
    st = os.stat(path)
    return struct.pack("<QQQqq", os.major(st.st_dev) << 32 | os.minor(st.st_dev), st.st_ino, st.st_size,
                       st.st_mtime_ns, st.st_ctime_ns)


def step(codec=b"deflate", values=(4,), n_values=None, dtype=b"", stored=b""):
    return struct.pack("<32sII8s8sdd32I", codec, len(values) if n_values is None else n_values, 0,
                       dtype, stored, 0, 0, *values, *[0] * (32 - len(values)))


def entries(table, chunk_bytes):
    """Of one file and one kind."""
    return b"".join(struct.pack("<QQIIII", offset, size, 0, 0, chunk_bytes, skipped)
                    for offset, size, skipped in table)


def sealed(data, seals=SEALS):
    fd = os.memfd_create("tests", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


class Source:
    """A file of packed chunks. .chunks: what they decode to; None: never written."""

    def __init__(self, path, n_chunks=64, chunk_bytes=1 << 16, absent=()):
        self.path, self.chunk_bytes = path, chunk_bytes
        self.chunks, self.table = [], []
        with open(path, "wb") as file:
            file.write(b"some header")
            for i in range(n_chunks):
                data = None if i in absent else os.urandom(16) * (chunk_bytes // 16)
                self.chunks.append(data)
                if data is None:
                    self.table.append((ABSENT, 0, 0))
                else:
                    packed = zlib.compress(data, 1)
                    self.table.append((file.tell(), len(packed), 0))
                    file.write(packed)

    def description(self, steps=None, table=None, **kwargs):
        steps = [step()] if steps is None else steps
        table = self.table if table is None else table
        return (head(len(table), self.chunk_bytes, len(steps), **kwargs) + identity(self.path)
                + struct.pack("<IIII", 0, len(steps), 0, 0) + b"".join(steps)
                + entries(table, self.chunk_bytes))


class Refused(Exception):
    """What was shown is not the file that the description says."""


class Lost(Exception):
    """The chunk was overwritten before it was read."""


class Reader:
    def __init__(self, w, source, description=None, fd=None):
        self.w, self.source = w, source
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        described = sealed(source.description() if description is None else description)
        file = os.open(source.path, os.O_RDONLY) if fd is None else fd
        try:
            self.joined = w.call("scan.join", fds=[described, theirs.fileno()])
            socket.send_fds(ours, [struct.pack("<QII", MAGIC, 0, 1)], [file])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(described)
            if fd is None:
                os.close(file)
        self.sock = ours
        self.sock.settimeout(60)
        n = source.chunk_bytes
        self.slot_bytes = -(-n // 64) * 64
        self.n_slots = min(max((32 << 20) // self.slot_bytes, 8), 1024)
        self.data_offset = -(-self.n_slots * 64 // 4096) * 4096
        data, control, _, _ = ours.recvmsg(16, socket.CMSG_SPACE(4))
        if not data:
            raise Refused
        magic, self.next = struct.unpack("<QQ", data)
        assert magic == MAGIC
        fds = array.array("i", control[0][2])
        self.ring_fd = fds[0]
        size = self.data_offset + self.n_slots * self.slot_bytes
        assert os.fstat(self.ring_fd).st_size == size
        self.ring = mmap.mmap(self.ring_fd, size, prot=mmap.PROT_READ)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.sock.close()
        self.ring.close()
        os.close(self.ring_fd)

    def stamp(self, number):
        return struct.unpack_from("<Q", self.ring, number % self.n_slots * 64)[0]

    def ack(self, done=None, wants_more=False):
        self.sock.send(struct.pack("<QQ", self.next if done is None else done, wants_more))

    def wait(self):
        """Until the next number is there, or was."""
        while self.stamp(self.next) < 2 * self.next + 2:
            self.ack(wants_more=True)
            if not self.sock.recv(8):
                raise EOFError

    def take(self):
        """(chunk, status, bytes) of the next number, which is taken then."""
        self.wait()
        number, self.next = self.next, self.next + 1
        at = number % self.n_slots
        status = struct.unpack_from("<I", self.ring, at * 64 + 8)[0]
        start = self.data_offset + at * self.slot_bytes
        data = self.ring[start:start + self.source.chunk_bytes]
        if self.stamp(number) != 2 * number + 2:
            raise Lost
        if self.next % 8 == 0:
            self.ack()
        return number % len(self.source.table), status, data

    def circle(self):
        """Every chunk once, by its number; those that were lost come in a later round."""
        found = {}
        while len(found) < len(self.source.table):
            try:
                chunk, status, data = self.take()
            except Lost:
                continue
            found.setdefault(chunk, (status, data))
        return found

    def check_circle(self, failed=()):
        for chunk, (status, data) in self.circle().items():
            wanted = self.source.chunks[chunk]
            if chunk in failed:
                assert status == FAILED
            elif wanted is None:
                assert status == IS_ABSENT
            else:
                assert status == THERE and data == wanted
