"""Sorting what is larger than sorting.py sorts in memory: runs, and a merge of parts.

    x --> chunks, read once, each sorted --> runs in a temporary file
    values between neighbours of a sample of all runs --> read, merged --> the result, in another

So the array is read once, what is merged at a time is about a chunk whatever its size, and the
temporary files ($TMPDIR) have twice the result's bytes, for places the array's besides. What is
equal to a value of the sample is copied as it is, in the order of the runs: many equal elements are
no work, and equal ones stay in their order. Chunks are sorted, and parts merged, by a few threads.

Rows of an array with several axes are sorted one after the other, behind each other in the result's
file; where they do not lie in rows, the array is turned into a file first.
"""

from __future__ import annotations

import collections
import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np

from .. import errors
from .._lazy.array import Lazy, lazy
from .._lazy.moves import moveaxis

Array = np.ndarray[Any, Any]
Columns = list[Array]  # of one length: elements, and what belongs to each
Given = TypeVar("Given")
Made = TypeVar("Made")
CHUNK_BYTES = 32 << 20  # of elements, or of indices
_SAMPLES = 512  # of each run
_MOST_THREADS = 4
PLACES = np.dtype("i8")


class TempFile:
    """Elements of a dtype in a temporary file that has no name."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.file: IO[bytes] = tempfile.TemporaryFile(prefix="gpuarrayd-sort-")  # noqa: SIM115
        self.n = 0

    def write(self, elements: Array) -> None:
        """Behind what was written."""
        self.file.write(np.ascontiguousarray(elements, self.dtype).data)
        self.n += len(elements)

    def read(self, start: int, stop: int) -> Array:
        """What was written before it was last mapped; by several threads at once."""
        found = np.empty(stop - start, self.dtype)
        bytes_of: Any = found.view("u1")
        left, at = memoryview(bytes_of), start * self.dtype.itemsize
        while left:
            n = os.preadv(self.file.fileno(), [left], at)
            if n == 0:
                raise OSError(errno.EIO, "a temporary file is shorter than it was")
            left, at = left[n:], at + n
        return found

    def mapped(self) -> Array:
        self.file.flush()
        return np.memmap(self.file, self.dtype, "r", shape=(self.n,)) if self.n \
            else np.empty(0, self.dtype)


class Runs:
    """Sorted pieces behind each other: a file of elements, and one of each other column."""

    def __init__(self, dtypes: Iterable[np.dtype[Any]]) -> None:
        self.columns = [TempFile(dtype) for dtype in dtypes]
        self.starts = [0]
        self.samples: Columns = []

    def add(self, columns: Columns) -> None:
        for file, column in zip(self.columns, columns, strict=True):
            file.write(column)
        elements = columns[0]
        self.starts.append(self.columns[0].n)
        self.samples.append(elements[::max(len(elements) // _SAMPLES, 1)].copy())  # no view of all

    def parts(self) -> Iterator[Part]:
        """In ascending order: what lies between two values of the sample, then what is equal to the
        second of them."""
        all_elements = [file.mapped() for file in self.columns][0]  # all are to be read
        runs = [all_elements[start:stop]
                for start, stop in zip(self.starts, self.starts[1:], strict=False)]
        values = np.unique(np.sort(np.concatenate(self.samples))[::min(len(runs), _SAMPLES)])
        ends = np.array([[np.searchsorted(run, values, side) for side in ("left", "right")]
                         for run in runs])  # of each run, side and value
        first = np.array(self.starts[:-1])
        before = first
        for i in range(len(values)):
            for side in range(2):
                after = first + ends[:, side, i]
                yield Part(before, after, side == 1)
                before = after
        yield Part(before, np.array(self.starts[1:]), False)

    def read(self, part: Part) -> Columns:
        """The elements of a part, in the order of the runs, and the other columns."""
        ranges = [(int(start), int(stop))
                  for start, stop in zip(part.starts, part.stops, strict=True) if stop > start]
        return [np.concatenate([file.read(*one) for one in ranges] or [np.empty(0, file.dtype)])
                for file in self.columns]


class Part(NamedTuple):
    """A range of each run. is_equal: of elements that are all equal, or all NaN."""

    starts: Array
    stops: Array
    is_equal: bool


def in_order(function: Callable[[Given], Made], items: Iterable[Given]) -> Iterator[Made]:
    """As map(), by a few threads: few items are made ahead, here, and few results are kept."""
    threads = min(len(os.sched_getaffinity(0)), _MOST_THREADS)
    waiting: collections.deque[Future[Made]] = collections.deque()
    with ThreadPoolExecutor(threads, "gpuarrayd-sort") as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            del item
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def chunks(x: Lazy, with_places: bool) -> Iterator[tuple[int, Array]]:
    """Of one axis: where each begins, and its elements, which are read when it is asked for."""
    step = max(CHUNK_BYTES // (PLACES.itemsize if with_places else x.dtype.itemsize), _SAMPLES)
    for start in range(0, x.size, step):
        yield start, np.asarray(x[start:start + step].compute())


def told_of_space(function: Callable[..., Made], x: Lazy, item_bytes: int, *given: Any) -> Made:
    """function(x, ...). NoSpace: the folder of temporary files has not enough, of so much for an
    element."""
    try:
        return function(x, *given)
    except OSError as error:
        if isinstance(error, errors.Error) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        found = str(error.strerror)
    # Out here, where the files are gone with the frames of the other error.
    raise errors.NoSpace(
        f"sorting needs temporary files, and {tempfile.gettempdir()} is full; TMPDIR names another "
        "folder", argument="a", expected=f"{x.size * item_bytes} bytes", found=found)


def sorted_large(x: Lazy, axis: int, wants_places: bool) -> Lazy:
    """A lazy with an axis in ascending order, NaN at the end; or the places of its elements.
    NoSpace."""
    is_in_rows = axis == x.ndim - 1
    item_bytes = x.itemsize * (1 if is_in_rows else 2) + (16 if wants_places else x.itemsize)
    return told_of_space(_sorted, x, item_bytes, axis, wants_places)


def _sorted(x: Lazy, axis: int, wants_places: bool) -> Lazy:
    rows = moveaxis(x, axis, -1)
    if axis != x.ndim - 1:
        rows = _kept(rows)
    made = TempFile(PLACES if wants_places else x.dtype)
    for place in np.ndindex(rows.shape[:-1]):
        _sort_row(rows[place] if place else rows, wants_places, made)
    return moveaxis(lazy(made.mapped().reshape(rows.shape)), -1, axis)


def _kept(x: Lazy) -> Lazy:
    """The same, in rows in a temporary file."""
    file = TempFile(x.dtype)
    os.posix_fallocate(file.file.fileno(), 0, x.nbytes)
    return lazy(x.compute(out=np.memmap(file.file, x.dtype, "r+", shape=x.shape)))


def _sort_row(x: Lazy, wants_places: bool, made: TempFile) -> None:
    runs = Runs([x.dtype, PLACES] if wants_places else [x.dtype])

    def sort_chunk(given: tuple[int, Array]) -> Columns:
        start, chunk = given
        if not wants_places:
            return [np.sort(chunk)]
        order = np.argsort(chunk, kind="stable")
        return [chunk[order], order + start]

    def merge(part: Part) -> Array:
        columns = runs.read(part)
        if part.is_equal:
            return columns[-1]
        if wants_places:
            return columns[1][np.argsort(columns[0], kind="stable")]
        columns[0].sort()
        return columns[0]

    for columns in in_order(sort_chunk, chunks(x, wants_places)):
        runs.add(columns)
        del columns
    for elements in in_order(merge, runs.parts()):
        made.write(elements)
        del elements
