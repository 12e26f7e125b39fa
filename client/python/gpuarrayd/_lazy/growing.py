"""New npy and raw files that grow until nobody writes any more; then they get their name.

The file has none before (O_TMPFILE; a hidden one where the file system does not know that), so it
appears whole or not at all. The header of an npy file is written at the end, when its length is
known.
"""

from __future__ import annotations

import errno
import os
import stat
from types import TracebackType
from typing import Any

import numpy as np

from .. import errors
from .generated import checked_slab
from .graph import Shape

_HEADER_BYTES = 4096  # as the library's own files have it
_RAW = (".raw", ".bin", ".dat")


def _header(dtype: np.dtype[Any], shape: Shape) -> bytes:
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape!r}, }}"
    n = _HEADER_BYTES - 10
    return b"\x93NUMPY\x01\x00" + n.to_bytes(2, "little") + text.encode().ljust(n - 1) + b"\n"


def _failed(path: str, raised: OSError) -> errors.Error:
    kind = {errno.ENOSPC: errors.NoSpace, errno.EDQUOT: errors.NoSpace,
            errno.ENOENT: errors.NotFound, errno.EACCES: errors.Permission,
            errno.EPERM: errors.Permission}.get(raised.errno or 0, errors.IoError)
    return kind(f"{path}: {os.strerror(raised.errno or 0)}", argument=path)


class GrowingWriter:
    """A new file of any number of rows. Made by stream_writer()."""

    def __init__(self, path: str, dtype: np.dtype[Any], rest: Shape) -> None:
        ending = os.path.splitext(path)[1].lower()
        if ending != ".npy" and ending not in _RAW:
            raise errors.BadArgument(
                f"{path}: files of unknown length are npy or raw; others take a length",
                argument="path", expected="FILE.npy, FILE.raw", found=path)
        self.path, self.dtype = path, dtype
        self.shape: tuple[int | None, ...] = (None, *rest)
        self._rest = rest
        self._has_header = ending == ".npy"
        self._n_rows = 0
        self._fd = -1
        self._hidden: str | None = None
        self._is_used = False

    @property
    def n_rows(self) -> int:
        """How many were written."""
        return self._n_rows

    def __enter__(self) -> GrowingWriter:
        if self._is_used:
            raise errors.BadArgument("a stream_writer() writes one file once", argument="path",
                                     expected="another stream_writer()", found=self.path)
        self._is_used = True
        self._target = os.path.realpath(self.path)
        folder, name = os.path.split(self._target)
        hidden = os.path.join(folder, f".{name}.gad-{os.urandom(6).hex()}")
        try:
            try:
                self._fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
            except OSError as raised:
                if raised.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                    raise
                self._fd = os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
                self._hidden = hidden
            self._write(_header(self.dtype, (0, *self._rest)) if self._has_header else b"")
        except OSError as raised:
            self._drop()
            raise _failed(self.path, raised) from None
        self._name = hidden
        return self

    def _write(self, data: Any) -> None:
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        while len(view):
            view = view[os.write(self._fd, view):]

    def write(self, block: Any) -> None:
        """Rows that come next, any number of them.

        Raises
        ------
        BadDtype, BadShape
            The block does not fit.
        Error
            Why the file cannot be written.
        """
        if self._fd < 0:
            raise errors.BadArgument("stream_writer() writes inside of its with statement",
                                     argument="block", expected="with gd.stream_writer(...) as w",
                                     found="write() outside of it")
        slab = checked_slab(block, self.dtype, (0, *self._rest), "blocks")
        try:
            if slab.size:
                self._write(slab)
        except OSError as raised:
            raise _failed(self.path, raised) from None
        self._n_rows += slab.shape[0]

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None,
                 traceback: TracebackType | None) -> None:
        try:
            if kind is None:
                self._commit()
        except OSError as error:
            raise _failed(self.path, error) from None
        finally:
            self._drop()

    def _commit(self) -> None:
        if self._has_header:
            os.pwrite(self._fd, _header(self.dtype, (self._n_rows, *self._rest)), 0)
        if os.path.exists(self._target):
            os.fchmod(self._fd, stat.S_IMODE(os.stat(self._target).st_mode))
        if self._hidden is None:
            self._give_name()
            self._hidden = self._name
        os.replace(self._hidden, self._target)
        self._hidden = None

    def _give_name(self) -> None:
        """Of os.link() only the form with a folder's descriptor follows links, as /proc's are."""
        folder, name = os.path.split(self._name)
        fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.link(f"/proc/self/fd/{self._fd}", name, dst_dir_fd=fd, follow_symlinks=True)
        finally:
            os.close(fd)

    def _drop(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        if self._hidden is not None:
            os.unlink(self._hidden)
        self._hidden = None
