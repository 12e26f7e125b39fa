"""A FUSE mount whose files can be found and opened, and whose reads are never answered.

`with HangingMount(folder, seconds):` mounts one there (as root), served by a process of its own, for so
long at most. Every name that ends in `.npy` or `.raw` is a file of SIZE bytes that all may read and write.
Who waits for an answer cannot be killed before the mount has gone: so that comes first at the end.
"""

import contextlib
import ctypes
import errno
import multiprocessing
import os
import signal
import stat
import struct

SIZE = 64 << 20
_libc = ctypes.CDLL(None, use_errno=True)
_fork = multiprocessing.get_context("fork")
LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, FLUSH, INIT, OPENDIR, INTERRUPT = \
    1, 2, 3, 4, 14, 15, 16, 25, 26, 27, 36
BATCH_FORGET = 42
NAMED = {1: b""}  # the names that were looked up, by the numbers that they have got


def attributes(node):
    mode, size = (stat.S_IFDIR | 0o777, 0) if node == 1 else (stat.S_IFREG | 0o666, SIZE)
    return struct.pack("<QQQQQQIIIIIIIIII", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body):
    """What is answered to a request; None: nothing, for ever. Raises OSError."""
    if opcode == INIT:
        return struct.pack("<IIIIHHII", 7, 31, 65536, 0, 16, 12, 1 << 16, 1) + bytes(32)
    if opcode == LOOKUP:
        if not body.rstrip(b"\0").endswith((b".npy", b".raw")):
            raise OSError(errno.ENOENT, "")
        number = next((k for k, name in NAMED.items() if name == body), len(NAMED) + 1)
        NAMED[number] = body
        return struct.pack("<QQQQII", number, 0, 3600, 3600, 0, 0) + attributes(number)
    if opcode in (GETATTR, SETATTR):
        return struct.pack("<QII", 3600, 0, 0) + attributes(node)
    if opcode in (OPEN, OPENDIR):
        return struct.pack("<QII", 0, 0, 0)
    if opcode in (READ, WRITE, FLUSH, FORGET, BATCH_FORGET, INTERRUPT):
        return None
    raise OSError(errno.ENOSYS, "")


def serve(fd, seconds):
    signal.alarm(seconds)
    while True:
        request = os.read(fd, 1 << 20)
        _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
        try:
            said = answer(opcode, node, request[40:])
            error = 0
        except OSError as e:
            said, error = b"", e.errno
        if said is not None:
            with contextlib.suppress(OSError):  # whoever asked has gone
                os.write(fd, struct.pack("<IiQ", 16 + len(said), -error, unique) + said)


def can_mount():
    return os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)


class HangingMount:
    def __init__(self, folder, seconds):
        self.folder, self.seconds = os.fsencode(folder), seconds

    def __enter__(self):
        fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={fd},rootmode=40777,user_id=0,group_id=0,allow_other".encode()
        if _libc.mount(b"hanging", self.folder, b"fuse", 0, options):
            os.close(fd)
            raise OSError(ctypes.get_errno(), "mount")
        self.process = _fork.Process(target=serve, args=(fd, self.seconds), daemon=True)
        self.process.start()
        os.close(fd)
        return self

    def __exit__(self, *exc):
        self.process.kill()  # whoever waits for it gets an error now
        self.process.join()
        _libc.umount2(self.folder, 2)  # MNT_DETACH
