"""Sorting what is larger than a row that sorting.py sorts in memory: runs, and a merge of parts.

    x --> chunks, read once, each sorted --> runs in a temporary file
    values between neighbours of a sample of all runs --> read, merged --> the result, in another

So the array is read once, what is merged at a time is about a chunk whatever its size, and the
temporary files ($TMPDIR) have twice the result's bytes, for places the array's besides. What is
equal to a value of the sample is copied as it is, in the order of the runs: many equal elements are
no work, and equal ones stay in their order.
"""

from __future__ import annotations

import errno
import tempfile
from typing import IO, Any

import numpy as np

from .. import errors
from .._lazy.array import Lazy, lazy

Array = np.ndarray[Any, Any]
CHUNK_BYTES = 32 << 20  # of elements, or of indices
_SAMPLES = 512  # of each run


class _File:
    """Elements of a dtype in a temporary file that has no name."""

    def __init__(self, dtype: np.dtype[Any], n: int) -> None:
        self.dtype = dtype
        self.file: IO[bytes] = tempfile.TemporaryFile(prefix="gpuarrayd-sort-")  # noqa: SIM115
        self.file.truncate(n * dtype.itemsize)

    def write(self, elements: Array) -> None:
        """Behind what was written."""
        self.file.write(np.ascontiguousarray(elements, self.dtype).data)

    def read(self, start: int, stop: int) -> Array:
        found = np.empty(stop - start, self.dtype)
        self.file.seek(start * self.dtype.itemsize)
        into: Any = self.file
        into.readinto(found.view("u1"))
        return found

    def mapped(self) -> Array:
        self.file.flush()
        return np.memmap(self.file, self.dtype, "r")


def sorted_large(x: Lazy, wants_places: bool) -> Lazy:
    """A lazy with one axis in ascending order, NaN at the end; or the places of its elements.
    NoSpace: the folder of temporary files has not enough."""
    try:
        return _sorted(x, wants_places)
    except OSError as error:
        if isinstance(error, errors.Error) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        found = str(error.strerror)
    # Out here, where the files are gone with the frames of the other error.
    needed = f"{x.size * (x.itemsize + 16 if wants_places else 2 * x.itemsize)} bytes"
    raise errors.NoSpace(
        f"sorting needs temporary files, and {tempfile.gettempdir()} is full; TMPDIR names another "
        "folder", argument="a", expected=needed, found=found)


def _sorted(x: Lazy, wants_places: bool) -> Lazy:
    n, dtype = x.size, x.dtype
    step = max(CHUNK_BYTES // (8 if wants_places else dtype.itemsize), _SAMPLES)
    starts = [*range(0, n, step)]
    values, places = _File(dtype, n), _File(np.dtype("i8"), n if wants_places else 0)
    samples = []
    for start in starts:
        chunk = np.asarray(x[start:start + step].compute())
        if wants_places:
            order = np.argsort(chunk, kind="stable")
            places.write(order + start)
            chunk = chunk[order]
        else:
            chunk = np.sort(chunk)
        values.write(chunk)
        samples.append(chunk[::max(len(chunk) // _SAMPLES, 1)].copy())  # not a view of all
        del chunk
    runs = [values.mapped()[start:start + step] for start in starts]
    made = _File(places.dtype if wants_places else dtype, n)
    ends = [0] * len(runs)
    for value in np.unique(np.sort(np.concatenate(samples))[::min(len(runs), _SAMPLES)]):
        for side in ("left", "right"):  # what is less, then what is equal
            before, ends = ends, [end + int(np.searchsorted(run[end:], value, side))
                                  for run, end in zip(runs, ends, strict=True)]
            _merge(values, places if wants_places else None, made, starts, before, ends,
                   side == "right")
    _merge(values, places if wants_places else None, made, starts, ends, [len(r) for r in runs],
           False)
    return lazy(made.mapped())


def _merge(values: _File, places: _File | None, made: _File, starts: list[int], first: list[int],
           ends: list[int], is_equal: bool) -> None:
    """Parts of all runs, behind what is made."""
    parts = [(start + one, start + end) for start, one, end in zip(starts, first, ends, strict=True)
             if end > one]
    given = values if places is None else places
    if is_equal:
        for start, stop in parts:
            made.write(given.read(start, stop))
        return
    if not parts:
        return
    found = np.concatenate([values.read(*part) for part in parts])
    if places is None:
        found.sort()
        made.write(found)
    else:
        order = np.argsort(found, kind="stable")
        made.write(np.concatenate([places.read(*part) for part in parts])[order])
