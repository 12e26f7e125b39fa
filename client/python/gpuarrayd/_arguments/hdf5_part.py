"""A part of an h5py.Dataset that is not loaded: h5py reads what the blocks of it need.

For datasets that only their h5py file can read: one that is open for writing, or is no ordinary
file. The part of any other is a selection of the file (leaves.py).

Mostly they are compressed, as arrays of other packages are, Zarr's among them: they can only be
read by whole chunks. The daemon asks for blocks as it computes, a few rows at a time; whoever
decodes a chunk for each of them decodes it again and again. So a block is read together with all
that lies in its chunks, as one box, and what was read last is kept: blocks that lie in it are parts
of it.

    chunks      +---------+---------+      block: #, as it is asked for
                |         |         |      box: the row of chunks that it lies in, which is
                |#########|#########|      read at once and serves the rows below, too
                |         |         |
                +---------+---------+

Blocks come roughly in order, those on both sides of a border by turns, so several boxes are kept
of each source, in LIMIT_BYTES of memory, or as one chunk of at most LIMIT_CHUNK_BYTES. Where a box
would be larger the block is read alone. A block that lies across borders is put together from
several boxes.

Of a part of an array a box has only what is selected. One object serves one source of one job,
whose blocks are asked for one at a time.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import errors
from . import hdf5 as _h5py
from .._lazy.graph import Shape
from .._lazy.selection import Item, Items, composed, shape_of

if TYPE_CHECKING:
    from .. import _core

LIMIT_BYTES = 128 << 20
LIMIT_CHUNK_BYTES = 1 << 30
Elements: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Read: TypeAlias = Callable[[Shape, Shape], Elements]
Box: TypeAlias = tuple[tuple[int, int], ...]  # its ends along each axis


class DatasetPart:
    """dataset[items], as a source."""

    __slots__ = ("dataset", "dtype", "items", "shape")

    def __init__(self, dataset: Any, items: Items) -> None:
        self.dataset = dataset
        self.items = items
        self.dtype: np.dtype[Any] = dataset.dtype
        self.shape: Shape = shape_of(items)

    def selected(self, items: Items) -> "DatasetPart":
        """A part of the part."""
        return type(self)(self.dataset, composed(self.items, items))

    def check(self) -> None:
        """Raises where it cannot be read."""
        _h5py.check(self.dataset, "x")

    def __gad_source__(self, session: "_core.Session") -> "_core.Array":
        self.check()
        if not self.shape or 0 in self.shape:
            elements = np.empty(self.shape, self.dtype)
            elements[...] = self.read((0,) * len(self.shape), self.shape)
            return session.from_buffer(elements, False)
        chunks = chunks_of(self.dataset, len(self.dataset.shape))
        elements_of = self.read if chunks is None else ChunkBoxes(
            self.read, self.items, chunks, self.dtype).read

        def read(start: Shape, count: Shape, block: memoryview) -> None:
            np.frombuffer(block, self.dtype).reshape(count)[...] = elements_of(start, count)

        return session.from_blocks(self.dtype.str, self.shape, read, None)

    def read(self, start: Shape, count: Shape) -> "np.ndarray[Any, Any]":
        """The elements of a block. h5py steps forward alone: what goes backward is turned here."""
        axes = zip(start, count, strict=True)
        key: list[int | slice] = []
        turns: list[slice] = []
        for item in self.items:
            if isinstance(item, int):
                key.append(item)
                continue
            first, n = next(axes)
            if item is None:
                continue
            step = item[1]
            low = item[0] + (first if step > 0 else first + n - 1) * step
            key.append(slice(low, low + (n - 1) * abs(step) + 1 if n else low, abs(step)))
            turns.append(slice(None, None, 1 if step > 0 else -1))
        read = np.asarray(self.dataset[tuple(key)])
        return read[tuple(turns)].reshape(count)


class ChunkedPart(DatasetPart):
    """The same of an array in chunks of another package, as Zarr's, which only that can read."""

    __slots__ = ()

    def check(self) -> None:
        """It can be: by its package."""


def chunked(array: Any) -> ChunkedPart:
    """All of it."""
    return ChunkedPart(array, whole_of(array))


def whole_of(array: Any) -> Items:
    """The selection of all of it."""
    return tuple([(0, 1, int(size)) for size in array.shape])


def chunks_of(array: object, ndim: int) -> Shape | None:
    """The sizes of an array's chunks; None where it has none, or not of one size."""
    chunks = getattr(array, "chunks", None)
    if not isinstance(chunks, tuple) or len(chunks) != ndim \
            or not all(isinstance(one, int) and one > 0 for one in chunks):
        return None
    return chunks


class ChunkBoxes:
    """Reads blocks of what `items` select of an array in chunks."""

    __slots__ = ("_axes", "_dtype", "_item_bytes", "_kept", "_limit", "_read")

    def __init__(self, read: Read, items: Items, chunks: Shape, dtype: np.dtype[Any]) -> None:
        """read(start, count): the elements of a block of the selection."""
        sizes = iter(chunks)
        named = [(item, 1 if item is None else next(sizes)) for item in items]
        self._axes = [(item, chunk) for item, chunk in named if not isinstance(item, int)]
        self._read = read
        self._dtype, self._item_bytes = dtype, dtype.itemsize
        chunk_bytes = math.prod(chunks) * dtype.itemsize
        self._limit = max(LIMIT_BYTES, chunk_bytes if chunk_bytes <= LIMIT_CHUNK_BYTES else 0)
        self._kept: dict[Box, Elements] = {}

    def read(self, start: Shape, count: Shape) -> Elements:
        """The elements of a block."""
        lines = [_lines(item, chunk, first, n) for (item, chunk), first, n
                 in zip(self._axes, start, count, strict=True)]
        boxes = list(itertools.product(*lines))
        if any(_size(box) * self._item_bytes > self._limit for box in boxes):
            return self._read(start, count)
        if len(boxes) == 1:
            return self._box(boxes[0])[_common(boxes[0], start, count)[0]]
        found = np.empty(count, self._dtype)
        for box in boxes:
            source, target = _common(box, start, count)
            found[target] = self._box(box)[source]
        return found

    def _box(self, box: Box) -> Elements:
        found = self._kept.pop(box, None)
        if found is None:
            self._make_room(_size(box) * self._item_bytes)
            found = self._read(tuple([first for first, _ in box]),
                               tuple([end - first for first, end in box]))
        self._kept[box] = found  # as the last one
        return found

    def _make_room(self, n_bytes: int) -> None:
        """Gives up those that were not used for longest."""
        left = self._limit - n_bytes - sum(one.nbytes for one in self._kept.values())
        while left < 0 and self._kept:
            left += self._kept.pop(next(iter(self._kept))).nbytes


def _size(box: Box) -> int:
    return math.prod([end - first for first, end in box])


def _common(box: Box, start: Shape, count: Shape) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """What a box and a block have in common, in the box and in the block."""
    ends = [(max(low, first), min(end, first + n)) for (low, end), first, n
            in zip(box, start, count, strict=True)]
    return (tuple([slice(a - low, b - low) for (a, b), (low, _) in zip(ends, box, strict=True)]),
            tuple([slice(a - first, b - first) for (a, b), first in zip(ends, start, strict=True)]))


def _lines(item: Item, chunk: int, first: int, n: int) -> list[tuple[int, int]]:
    """The boxes' ends along an axis for n elements of the selection. Chunks that are no more than
    partly in the block are boxes of their own, which serve its neighbours; all between are one."""
    low, end = _widened(item, chunk, first, n)
    inner = low if low == first else _widened(item, chunk, first, 1)[1]
    outer = end if end == first + n else _widened(item, chunk, first + n - 1, 1)[0]
    return list(itertools.pairwise(sorted({low, inner, outer, end})))


def _widened(item: Item, chunk: int, first: int, n: int) -> tuple[int, int]:
    """All elements along an axis of the selection that are in the chunks of n of them."""
    if not isinstance(item, tuple) or n == 0:
        return first, first + n
    start, step, count = item
    ends = sorted((start + first * step, start + (first + n - 1) * step))
    low, high = ends[0] // chunk * chunk, (ends[1] // chunk + 1) * chunk - 1
    if step < 0:
        start, step, low, high = -start, -step, -high, -low
    return max(0, -((start - low) // step)), min(count, (high - start) // step + 1)


def refuse_overlap(sources: Iterable[object], out: Any) -> None:
    """Blocks are written while others are read: an output may not be a dataset that a part is of.
    The daemon sees neither file."""
    for source in sources:
        if isinstance(source, DatasetPart) and not isinstance(source, ChunkedPart) \
                and source.dataset.id == out.id:
            raise errors.OverlappingOutput(
                f"the output {out.name} is also read, and not element by element: write into "
                "another dataset", argument="out", expected="another dataset", found=f"{out.name}")
