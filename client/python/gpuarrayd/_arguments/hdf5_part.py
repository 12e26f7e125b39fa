"""A part of an h5py.Dataset that is not loaded: h5py reads what each block of it needs.

For datasets that only their h5py file can read: one that is open for writing, or is no ordinary
file. The part of any other is a selection of the file (leaves.py).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import errors
from . import hdf5 as _h5py
from .._lazy.graph import Shape
from .._lazy.selection import Items, composed, shape_of

if TYPE_CHECKING:
    from .. import _core


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

        def read(start: Shape, count: Shape, block: memoryview) -> None:
            np.frombuffer(block, self.dtype).reshape(count)[...] = self.read(start, count)

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
    return ChunkedPart(array, tuple([(0, 1, int(size)) for size in array.shape]))


def refuse_overlap(sources: Iterable[object], out: Any) -> None:
    """Blocks are written while others are read: an output may not be a dataset that a part is of.
    The daemon sees neither file."""
    for source in sources:
        if isinstance(source, DatasetPart) and not isinstance(source, ChunkedPart) \
                and source.dataset.id == out.id:
            raise errors.OverlappingOutput(
                f"the output {out.name} is also read, and not element by element: write into "
                "another dataset", argument="out", expected="another dataset", found=f"{out.name}")
