"""Arrays in mapped files, as descriptor, offset and strides, so that the daemon reads the file.

np.memmap says which file it was made from and where, but views keep the old numbers, files are
renamed or replaced, and mode "c" has changes that the file has not. So the kernel is asked: its
list of mappings (/proc/self/maps) says for the address of an array which file lies there, at what
offset, and whether changes go to it. The path in that list is opened, and mapped once more, to see
that the list says the same of both: then it is the same file. What was found is kept with the mmap
object, and each use looks whether the path still leads to the file that was found.

Where anything is in doubt the answer is None, and the array travels as ordinary memory: slower, and
right. Not so where the file has become too short: to read the mapping would end the process.
"""

import mmap
import os
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import BadDescriptor

if TYPE_CHECKING:
    from .. import _core


class Mapping(NamedTuple):
    """A stretch of addresses that is a stretch of a file."""

    start: int
    end: int
    offset: int  # in the file, of start
    path: bytes
    device: int
    inode: int


_UNKNOWN = Mapping(0, 0, 0, b"", 0, 0)
_found: "weakref.WeakKeyDictionary[mmap.mmap, Mapping | None]" = weakref.WeakKeyDictionary()


def array(session: "_core.Session", value: "np.ndarray[Any, Any]",
          writable: bool) -> "_core.Array | None":
    """`value` as an array in its file; None where it does not lie in one, or may not."""
    base = _mmap_of(value)
    if base is None or value.size == 0:
        return None
    low, high = np.lib.array_utils.byte_bounds(value) if hasattr(np.lib, "array_utils") \
        else np.byte_bounds(value)  # type: ignore[attr-defined]
    mapping = _found.get(base, _UNKNOWN)
    fd = -1 if mapping is None or low < mapping.start or high > mapping.end \
        else _open(mapping, writable)
    if fd < 0 and mapping is not None:  # not known yet, or the file has another name
        mapping = _found[base] = _find(low, high)
        fd = -1 if mapping is None else _open(mapping, writable)
    if mapping is None or fd < 0:
        return None
    first: int = value.__array_interface__["data"][0]
    try:
        return session.from_file(fd, mapping.offset + first - mapping.start, value.dtype.str,
                                 value.shape, value.strides, writable)
    except BadDescriptor:
        return None
    finally:
        os.close(fd)


def _mmap_of(value: object) -> mmap.mmap | None:
    """What the array is a view of, at the end of the chain."""
    while True:
        if isinstance(value, np.ndarray):
            value = value.base
        elif isinstance(value, memoryview):
            value = value.obj
        else:
            return value if isinstance(value, mmap.mmap) else None


def _find(low: int, high: int) -> Mapping | None:
    line = _line_of(low)
    if line is None:
        return None
    start, end, flags, offset, identity = line
    path = identity[2]
    if not flags.endswith(b"s") or high > end or not path.startswith(b"/"):
        return None
    path = path.replace(b"\\012", b"\n")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        with mmap.mmap(fd, 1, prot=mmap.PROT_READ) as again:
            here = np.frombuffer(again, np.uint8)
            there = _line_of(here.__array_interface__["data"][0])
            del here
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)
    if there is None or there[4] != identity:
        return None
    return Mapping(start, end, offset, path, status.st_dev, status.st_ino)


def _line_of(address: int) -> tuple[int, int, bytes, int, tuple[bytes, bytes, bytes]] | None:
    """start, end, flags, offset and (device, inode, path) of the mapping around an address."""
    with open("/proc/self/maps", "rb") as lines:
        for line in lines:
            start, _, rest = line.partition(b"-")
            if address < int(start, 16):
                return None
            end, flags, offset, device, inode, *path = rest.rstrip(b"\n").split(b" ", 5)
            if address < int(end, 16):
                return (int(start, 16), int(end, 16), flags, int(offset, 16),
                        (device, inode, path[0].lstrip(b" ") if path else b""))
    return None


def _open(mapping: Mapping, writable: bool) -> int:
    """A descriptor of the file; -1 when the path leads elsewhere, or it may not be opened."""
    try:
        fd = os.open(mapping.path, (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC
                     | os.O_NONBLOCK)
    except OSError:
        return -1
    status = os.fstat(fd)
    if (status.st_dev, status.st_ino) == (mapping.device, mapping.inode):
        return fd
    os.close(fd)
    return -1
