"""h5py.Dataset as source and destination, never loaded whole.

    contiguous, in an ordinary file             descriptor + offset, as the daemon reads npy files
    in chunks, in a file opened "r" by path     the library opens file:/name itself and reads chunks
    all else: compressed in a writable file,    blocks: h5py reads (and writes) them, one by one,
      core driver, file objects, virtual          in a thread of the library
    without elements, or 0-d                    read here

The two quick ways go around HDF5, so they are taken only where the bytes in the file are what the
dataset is: the file is flushed first, the file's type is the memory's, and the path leads to the
file that h5py has open. Outputs always go through h5py, which keeps its own caches right.

h5py is the user's import; here it is only looked up.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from . import convert as _arguments
from ..errors import BadArgument, Error, ReadOnly

if TYPE_CHECKING:
    from .. import _core


def source(session: "_core.Session", dataset: Any, name: str) -> "_core.Array":
    """A dataset as argument."""
    check(dataset, name)
    if dataset.size == 0 or dataset.shape == ():
        loaded = np.empty(dataset.shape, dataset.dtype)
        if dataset.shape == ():
            dataset.read_direct(loaded)
        return session.from_buffer(loaded, False)
    return (_contiguous(session, dataset) or _opened(session, dataset)
            or _read_by_h5py(session, dataset))


def sink(session: "_core.Session", dataset: Any, name: str) -> "_core.Array":
    """A dataset as destination."""
    check(dataset, name)
    if dataset.file.mode == "r":
        raise ReadOnly(f"{name} is in {dataset.file.filename!r}, which is opened for reading; mode "
                       "'r+' opens it for writing", argument=name, expected="mode 'r+'",
                       found="mode 'r'")
    return _written_by_h5py(session, dataset)


def check(dataset: Any, name: str) -> None:
    """Raises where a dataset cannot be computed with."""
    if not dataset:
        raise BadArgument(f"{name} is a dataset of an HDF5 file that is closed; open it again",
                          argument=name, expected="an open file", found="a closed one")
    if dataset.shape is None:
        raise BadArgument(f"{name} is a null dataset of HDF5, it has no elements",
                          argument=name, expected="an array", found="a null dataset")
    if dataset.dtype.num > _arguments.LAST_NUM:
        _arguments.refuse_dtype(dataset.dtype, name)


def _descriptor(dataset: Any) -> int:
    """Of the dataset's file, opened once more; -1 where it is no ordinary file."""
    if dataset.file.driver != "sec2":
        return -1
    try:
        handle: int = dataset.file.id.get_vfd_handle()
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, RuntimeError, NotImplementedError):
        return -1


def _is_stored_as_read(dataset: Any) -> bool:
    """Whether an element in the file has the bytes that it has in memory."""
    h5t = sys.modules["h5py"].h5t
    return bool(dataset.id.get_type() == h5t.py_create(dataset.dtype, logical=True))


def _contiguous(session: "_core.Session", dataset: Any) -> "_core.Array | None":
    if dataset.chunks is not None or dataset.external or dataset.is_virtual \
            or dataset.id.get_offset() is None or not _is_stored_as_read(dataset):
        return None
    if dataset.file.mode != "r":
        dataset.file.flush()
    fd = _descriptor(dataset)
    if fd < 0:
        return None
    try:
        return session.from_file(fd, dataset.id.get_offset(), dataset.dtype.str, dataset.shape,
                                 None, False)
    except Error:
        return None
    finally:
        os.close(fd)


def _opened(session: "_core.Session", dataset: Any) -> "_core.Array | None":
    if dataset.file.mode != "r" or dataset.chunks is None or not dataset.name:
        return None
    fd = _descriptor(dataset)
    if fd < 0:
        return None
    try:
        path = os.path.abspath(dataset.file.filename)
        if not os.path.samestat(os.stat(path), os.fstat(fd)):
            return None
        array = session.open(f"{path}:{dataset.name}", False, False)
    except (Error, OSError):
        return None
    finally:
        os.close(fd)
    is_same = array.shape == dataset.shape and np.dtype(array.typestr) == dataset.dtype
    return array if is_same else None


def _read_by_h5py(session: "_core.Session", dataset: Any) -> "_core.Array":
    from .hdf5_part import DatasetPart, whole_of
    return DatasetPart(dataset, whole_of(dataset)).__gad_source__(session)


def _written_by_h5py(session: "_core.Session", dataset: Any) -> "_core.Array":
    dtype = dataset.dtype

    def write(start: tuple[int, ...], count: tuple[int, ...], block: memoryview) -> None:
        elements = np.frombuffer(block, dtype).reshape(count)
        dataset.write_direct(elements, None, tuple(
            [slice(s, s + n) for s, n in zip(start, count, strict=True)]))

    return session.from_blocks(dtype.str, dataset.shape, None, write)
