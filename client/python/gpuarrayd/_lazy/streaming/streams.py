"""Streams: arrays that a generator makes, results that are taken block by block, files that are
written as their data comes.

Elements come once and in C order, and few of them are on the way. Jobs that would read a stream in
several passes or in another order are refused by the daemon's plan.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ... import _session, errors
from ..._arguments.storage import storage
from ..._jobs.evaluate import submit
from ..._jobs.request import Request
from ..array import Lazy, lazy, request, told
from ..graph import Shape
from ..operands import Operand
from ..results import told_of_rows
from .generated import GeneratorSource, Made, checked_slab, described
from .unbounded import (UNBOUNDED, Reader, UnboundedSource, generators, next_chunks,
                        part_of_rows, standing_for)

if TYPE_CHECKING:
    from typing import Unpack

    from ... import _core
    from ..._arguments.storage import Stored
    from ..._jobs.future import Future

__all__ = ["StreamWriter", "from_generator", "stream", "stream_writer"]

Options = tuple[str | None, int, str | None, bool]  # engine, priority, label, tf32

_BLOCK_BYTES = 1 << 20
_CHUNK_BYTES = 4 << 20  # of a job, where rows of a generator are read several times
Slab = np.ndarray[Any, np.dtype[Any]]

def from_generator(f: Made, dtype: DTypeLike, shape: tuple[int | None, ...]) -> Lazy:
    """An array that a generator makes, slab by slab along the first axis, while a job reads it.

        def frames():
            while camera.has_more():
                yield camera.read()               # of shape (any number, 480, 640)

        x = gd.from_generator(frames, "u2", shape=(10_000, 480, 640))
        bright = (x > 1000).sum(axis=(1, 2)).compute()

    Nothing of it is kept: a few MiB are on the way, and the generator waits where it is faster. A
    slab that the generator keeps may be written again once it is asked for the next; one that it
    does not keep is copied while it makes the next, which costs less.

    Parameters
    ----------
    f : callable or iterable
        A function without arguments that gives an iterator, which each job has for itself; or an
        iterator, for a single job. It runs in a thread of its own.
    dtype : data-type
        That all slabs have.
    shape : tuple of ints
        Of all slabs together. A slab has any number of rows. The first may be None: the generator
        says by its end how many there are. Reductions are finished then; results that are as long
        are given by gd.stream(), and by gd.save() into files of any kind.

    Returns
    -------
    Lazy
        It is read once and in order. Jobs that would do otherwise, as x - x.mean() and x.T @ x,
        raise BadArgument. Rows in order and parts of them, as x[10:, :3], are a generator's, too,
        which has a run of f for itself. What reads each row several times, as x - x.mean(axis=1,
        keepdims=True), is computed in chunks of rows. Several results along different axes, by
        gd.compute() or gd.save(), are of one run of the generator, with a job for each choice of
        axes.

    Raises
    ------
    BadDtype, BadShape
        From here: it cannot be an array. From the job: ProviderFailed, whose __cause__ is what a
        slab of another dtype or shape, or the generator, raised.
    ShortRead, BadShape
        From the job: there were fewer rows than said, or more.
    """
    if not callable(f) and not hasattr(f, "__iter__"):
        raise errors.BadArgument(f"{f!r} is neither a function nor an iterator", argument="f",
                                 expected="a function that gives an iterator",
                                 found=type(f).__name__)
    found, sizes = described(dtype, shape)
    if sizes[0] == UNBOUNDED:
        return Lazy._of(UnboundedSource(f, found, sizes[1:]))
    return Lazy._of(GeneratorSource(f, found, sizes))


# Results ---------------------------------------------------------------------------------------


class _Taken:
    """A result that is taken as it comes."""

    def __init__(self, dtype: np.dtype[Any], shape: Shape) -> None:
        self.dtype, self.shape = dtype, shape
        self.array: _core.Array | None = None

    def __gad_sink__(self, session: _core.Session) -> _core.Array:
        self.array = session.stream(self.dtype.str, self.shape, True, None)
        return self.array


def stream(x: Operand, rows: int | None = None, *, engine: str | None = None, priority: int = 0,
           label: str | None = None) -> Iterator[Slab]:
    """The elements of a lazy, block by block along the first axis, as they are computed.

        for block in gd.stream(gd.sqrt(x * x + y * y), rows=1000):
            send(block)

    Parameters
    ----------
    x : Lazy
        Of one axis or more.
    rows : int, optional
        Of each block; the last one may have fewer. None: as many as are about 1 MiB.
    engine, priority, label
        As of Lazy.compute().

    Returns
    -------
    iterator of ndarray
        The job begins with the first block. It is cancelled when the iterator is left before its
        end, which closing it does at once.

    Raises
    ------
    BadArgument
        Results that are not computed in order, as of matrix products.
    Error
        From the iterator: why the job failed.
    """
    made = lazy(x)
    sources = generators(made._node)
    planned: Any = told_of_rows([made]) if sources \
        else told(request([made], [None]), Request.plan)
    is_refused = isinstance(planned, errors.BadArgument)
    dtype, shape = facts_of_rows(made, planned) if is_refused else planned[0][:2]
    if not shape:
        raise errors.BadShape("a stream has a first axis, and this is one number: compute() "
                              "gives it", argument="x", expected="one axis or more",
                              found="shape ()")
    row_bytes = math.prod(shape[1:]) * dtype.itemsize
    count = max(1, _BLOCK_BYTES // max(row_bytes, 1)) if rows is None else rows.__index__()
    if count < 1:
        raise errors.BadArgument(f"blocks of {count} rows", argument="rows", expected="1 or more",
                                 found=str(count))
    options = engine, priority, label, False
    return _blocks_of_rows(made, sources, dtype, shape, count, options) if is_refused \
        else _blocks(made, dtype, shape, count, options)


def facts_of_rows(made: Lazy, refused: errors.BadArgument) -> tuple[np.dtype[Any], Shape]:
    """dtype and shape of what is computed in chunks, since a job refused it."""
    sources = generators(made._node)
    if not sources:
        raise refused
    n_rows = sources[0].shape[0]
    try:
        if {one.shape[0] for one in sources} | {*made._node.shape[:1]} != {n_rows} or \
                not made._node.shape:
            raise sources[0].refusal()
        first = [np.empty((min(n_rows, 1), *one.shape[1:]), one.dtype) for one in sources]
        with standing_for(sources, 0, first):
            part = part_of_rows(made, sources, 0, len(first[0]))
            dtype, shape, _ = told(request([part], [None]), Request.plan)[0]
    except errors.BadArgument:
        if n_rows == UNBOUNDED:
            raise
        raise refused from None
    return dtype, (n_rows, *shape[1:])


def computed_of_rows(made: Lazy, out: object, refused: errors.BadArgument,
                     options: Options) -> Slab:
    """What compute() does where rows of a generator are read several times."""
    sources = generators(made._node)
    dtype, shape = facts_of_rows(made, refused)
    if shape[0] == UNBOUNDED:
        raise errors.BadArgument("a result as long as a generator of unknown length comes by "
                                 "gd.stream(), or into a file by gd.save()", argument="compute",
                                 expected="gd.stream(x)", found="compute()")
    place = np.empty(shape, dtype) if out is None else out
    if not isinstance(place, np.ndarray) or place.shape != shape or \
            not np.can_cast(dtype, place.dtype, "same_kind"):
        raise refused
    at = 0
    for block in _blocks_of_rows(made, sources, dtype, shape, None, options):
        place[at:at + len(block)] = block
        at += len(block)
    return place


def _blocks(made: Lazy, dtype: np.dtype[Any], shape: Shape, rows: int,
            options: Options) -> Iterator[Slab]:
    taken = _Taken(dtype, shape)
    job, _ = told(request([made], [taken], *options), Request.start)
    array = taken.array
    assert array is not None
    try:
        n_left = shape[0] if shape[0] >= 0 else UNBOUNDED
        n_row = math.prod(shape[1:])
        while n_left > 0:
            block = np.empty((min(rows, n_left), *shape[1:]), dtype)
            try:
                n_taken = array.take(block, job)
            except errors.Error:
                job.wait(None)  # has more words, and the cause
                raise
            n_left -= len(block)
            if n_taken < block.size:
                block = block[:n_taken // n_row]
                n_left = 0
            if shape[0] >= 0 or len(block):
                yield block
        job.wait(None)
    finally:
        if not job.is_done:
            job.cancel()
            array.fail("nobody takes the rest of the stream", None)
            _wait_for_end(job)  # so that generators hear of it


def _blocks_of_rows(made: Lazy, sources: list[GeneratorSource], dtype: np.dtype[Any], shape: Shape,
                    rows: int | None, options: Options) -> Iterator[Slab]:
    """A job for each chunk of rows, a multiple of `rows`, of which the blocks are (None: a block is
    a chunk); the generators make the next one meanwhile."""
    widest = max(math.prod(row) * of.itemsize for row, of in
                 [(shape[1:], dtype), *[(one.shape[1:], one.dtype) for one in sources]])
    step = rows or 1
    n_rows = step * -(-max(1, _CHUNK_BYTES // max(widest, 1)) // step)
    engine, priority, label, tf32 = options
    readers = [Reader(source) for source in sources]
    at = 0

    def begin() -> Future[Any] | None:
        nonlocal at
        chunks = next_chunks(readers, n_rows)
        if not len(chunks[0]):
            return None
        with standing_for(sources, at, chunks):
            part = part_of_rows(made, sources, at, len(chunks[0]))
            at += len(chunks[0])
            return submit(part, engine=engine, priority=priority, label=label, tf32=tf32)

    running = None
    try:
        running = begin()
        while running is not None:
            failure: Exception | None = None
            following = None
            try:
                following = begin()
            except Exception as raised:
                failure = raised  # told after the rows before it
            result = running.result()
            running = following
            for first in range(0, len(result), rows or n_rows):
                yield result[first:first + (rows or n_rows)]
            if failure is not None:
                raise failure
    finally:
        if running is not None:
            running.cancel()
        for reader in readers:
            reader.close()


def save_of_rows(path: str, made: Lazy, refused: errors.BadArgument, how: _core.Storage | None,
                 engine: str | None, priority: int, label: str | None) -> Lazy:
    """What save() does where rows of a generator are read several times."""
    from ..array import open
    sources = generators(made._node)
    dtype, shape = facts_of_rows(made, refused)
    blocks = _blocks_of_rows(made, sources, dtype, shape, None, (engine, priority, label, False))
    with StreamWriter(path, dtype, shape, how) as writer:
        for block in blocks:
            writer.write(block)
    if not path.lower().endswith((".raw", ".bin", ".dat")):
        return open(path, mask_and_scale=False)
    sizes = "x".join(map(str, (writer.n_rows, *shape[1:])))
    return open(f"{path}:{dtype.str[1:]}:{sizes}", mask_and_scale=False)


# Files -----------------------------------------------------------------------------------------


class StreamWriter:
    """A new file that is written as its data comes. Made by stream_writer()."""

    def __init__(self, path: str, dtype: np.dtype[Any], shape: Shape,
                 how: _core.Storage | None = None) -> None:
        self.path, self.dtype = path, dtype
        self._sizes, self._how = shape, how
        self._array: _core.Array | None = None
        self._job: _core.Job | None = None
        self._n_rows = 0

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Of all blocks together; None: as many rows as come."""
        return (None if self._sizes[0] == UNBOUNDED else self._sizes[0], *self._sizes[1:])

    @property
    def n_rows(self) -> int:
        """How many were written."""
        return self._n_rows

    def __enter__(self) -> StreamWriter:
        if self._job is not None:
            raise errors.BadArgument("a stream_writer() writes one file once", argument="path",
                                     expected="another stream_writer()", found=self.path)
        session = _session.current()
        n_rows = -1 if self._sizes[0] == UNBOUNDED else self._sizes[0]
        self._array = session.stream(self.dtype.str, (n_rows, *self._sizes[1:]), False, None)
        where = (self.path, self._how) if self._how else self.path
        self._job = session.submit([("a", None, where)], [("a", self._array)], None, 0,
                                   f"stream_writer {self.path}"[:60], False)
        return self

    def write(self, block: Any) -> None:
        """Rows that come next, any number of them; waits while the daemon is behind.

        Raises
        ------
        BadDtype, BadShape
            The block does not fit, or there are more rows than the file has.
        Error
            Why the file cannot be written.
        """
        if self._array is None or self._job is None:
            raise errors.BadArgument("stream_writer() writes inside of its with statement",
                                     argument="block", expected="with gd.stream_writer(...) as w",
                                     found="write() outside of it")
        slab = checked_slab(block, self.dtype, self._sizes, "blocks")
        self._array.push(slab, self._job)
        self._n_rows += slab.shape[0]

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None,
                 traceback: TracebackType | None) -> None:
        array, job = self._array, self._job
        assert array is not None and job is not None
        self._array = None
        if raised is not None:
            array.fail(f"{type(raised).__name__}: {raised}", None)
            _wait_for_end(job)
            return
        try:
            array.end()
        except errors.Error:
            _wait_for_end(job)
            raise
        job.wait(None)


def _wait_for_end(job: _core.Job) -> None:
    try:
        job.wait(None)
    except errors.Error:
        pass  # why is known already


def stream_writer(path: str | os.PathLike[str], dtype: DTypeLike, shape: tuple[int | None, ...],
                  **stored: Unpack[Stored]) -> StreamWriter:
    """A new file, written block by block along the first axis.

        with gd.stream_writer("log.npy", "f4", shape=(None, 3)) as w:
            for block in blocks:
                w.write(block)

    Parameters
    ----------
    path : path
        As of gd.save(): "file.npy", "file.npz:x", "file.h5:/dataset", "store.zarr", "file.raw".
    dtype : data-type
        Of the file and of all blocks.
    shape : tuple of ints
        Of all blocks together. The first may be None: as many rows as come.
    chunks, shards, compression, compression_opts, shuffle, fletcher32, sync
        As of gd.save().

    Returns
    -------
    StreamWriter
        A context manager with write(). The file appears whole when it is left well; else nothing
        does, also where rows are missing (ShortRead).
    """
    found, sizes = described(dtype, shape)
    if not found.isnative:
        raise errors.BadDtype("new files have this machine's byte order",
                              expected=found.newbyteorder("=").str, found=found.str)
    return StreamWriter(os.fsdecode(path), found, sizes, storage(**stored))
