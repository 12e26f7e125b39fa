"""A client written from proto/PROTOCOL.md alone: Python's msgpack and socket, no library of ours.

It is the proof that the document is enough to write a client in another language, and the tool with
which the tests say things that the library never would.
"""

import array
import fcntl
import itertools
import mmap
import os
import select
import socket
import struct

import msgpack
import numpy as np

F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE, F_SEAL_FUTURE_WRITE = 1033, 2, 4, 8, 16


class Error(Exception):
    """An error reply: .code, .argument, .expected, .found, .message."""

    def __init__(self, fields):
        super().__init__(f"{fields.get('code')}: {fields.get('message')}")
        self.fields = fields
        for name in ("code", "argument", "expected", "found", "message"):
            setattr(self, name, fields.get(name, ""))


class Closed(Exception):
    """The daemon closed the connection."""


def frame(body, n_fds=0):
    return b"GA" + struct.pack("<HI", n_fds, len(body)) + body


class Wire:
    """One connection. Requests may be pipelined: send() returns an id, reply(id) waits."""

    def __init__(self, path, hello=True, timeout=60):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.ids = itertools.count(1)
        self.buffer = b""
        self.replies = {}
        self.notifications = []
        self.server = self.call("hello", version=1, client="tests") if hello else None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.sock.close()

    def close(self):
        self.sock.close()

    def send_bytes(self, data, fds=()):
        if fds:
            sent = self.sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                               array.array("i", fds))])
            data = data[sent:]
        if data:
            self.sock.sendall(data)

    def send(self, method, fds=(), **params):
        ident = next(self.ids)
        body = msgpack.packb([0, ident, method, [params]], use_bin_type=True)
        self.send_bytes(frame(body, len(fds)), fds)
        return ident

    def receive(self):
        """The next message."""
        while True:
            if len(self.buffer) >= 8:
                assert self.buffer[:2] == b"GA", self.buffer[:8]
                n_fds, size = struct.unpack("<HI", self.buffer[2:8])
                assert n_fds == 0
                if len(self.buffer) >= 8 + size:
                    body, self.buffer = self.buffer[8:8 + size], self.buffer[8 + size:]
                    return msgpack.unpackb(body, raw=False, strict_map_key=False)
            try:
                data = self.sock.recv(1 << 20)
            except (ConnectionResetError, BrokenPipeError):
                data = b""
            if not data:
                raise Closed()
            self.buffer += data

    def reply(self, ident):
        while ident not in self.replies:
            message = self.receive()
            if message[0] == 2:
                self.notifications.append((message[1], message[2][0]))
            else:
                assert message[0] == 1
                self.replies[message[1]] = message[2:]
        error, result = self.replies.pop(ident)
        if error is not None:
            raise Error(error)
        return result

    def call(self, method, fds=(), **params):
        return self.reply(self.send(method, fds=fds, **params))

    # -- jobs ------------------------------------------------------------------------------------

    def run(self, expr, fds=(), to=None, method="job.run", **args):
        """One expression; NumPy arrays and scalars as arguments travel inline."""
        output = {"expr": expr}
        if to is not None:
            output["to"] = to
        return self.call(method, fds=fds, outputs=[output],
                         args={k: argument(v) for k, v in args.items()})

    def compute(self, expr, **args):
        """The result of one expression as a NumPy array."""
        return result_array(self.run(expr, **args)["outputs"][0])


def typestr(dtype):
    return np.dtype(dtype).str


def argument(value):
    if isinstance(value, dict):
        return value
    if isinstance(value, (bool, int, float)):
        return {"scalar": value}
    value = np.asarray(value)
    return {"dtype": value.dtype.str, "shape": list(value.shape),
            "at": {"kind": "inline", "data": value.tobytes()}}


def described(value, at, strides=None):
    """The descriptor of an array that is somewhere else."""
    out = {"dtype": value.dtype.str, "shape": list(value.shape), "at": at}
    if strides is not None:
        out["strides"] = list(strides)
    return out


def result_array(output):
    return np.frombuffer(output["data"], dtype=output["dtype"]).reshape(output["shape"])


def file_at(fd_index, offset=0):
    return {"kind": "file", "fd": fd_index, "offset": offset}


def has_something(fd, seconds):
    """Whether it can be read, or will be in time. Of a descriptor of any number: select() knows only
    those below 1024."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(1000 * seconds))


def memfd(size, seals=F_SEAL_SHRINK | F_SEAL_GROW, fill=True):
    """A sealed memfd without holes (unless fill is False)."""
    fd = os.memfd_create("tests", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if fill:
        os.posix_fallocate(fd, 0, size)
    if seals:
        fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


class Region:
    """Shared memory attached to a connection, with NumPy arrays to look at."""

    def __init__(self, wire, size, writable=True):
        self.fd, self.size = memfd(size), size
        self.map = mmap.mmap(self.fd, size)
        self.id = wire.call("region.attach", fds=[self.fd], size=size, writable=writable)["region"]

    def array(self, dtype, shape, offset=0):
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(self.map, dtype=dtype, count=count, offset=offset).reshape(shape)

    def at(self, offset=0):
        return {"kind": "region", "id": self.id, "offset": offset}
