"""Datasets: arrays whose first axes are the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from .sources import part_of


class Dataset:
    """Arrays of any size whose first axes are the same rows. Nothing is read before a DataLoader
    is made.

    Parameters
    ----------
    **parts
        By name: a file ("x.npy", "labels.h5:/y", "store.zarr:/a", "x.npz:m"), a pattern
        ("img_*.npy") or a list of files, which come behind each other; what gd.open() gives and
        expressions of it; an ndarray, memmap, h5py.Dataset or Zarr array; gd.from_generator().

    Raises
    ------
    BadShape
        First axes differ, or there is none.
    NotFound, BadDtype, BadFormat, BadArgument, Unsupported
        A part cannot be read; the message names it.

    >>> ds = gd.Dataset(x="img_*.npy", y="labels.h5:/y")            # doctest: +SKIP
    """

    __slots__ = ("_parts",)

    def __init__(self, **parts: Any) -> None:
        if not parts:
            raise errors.BadArgument("a dataset has at least one part: Dataset(x=...)",
                                     argument="parts", expected="x=...", found="nothing")
        self._parts = {name: part_of(name, value) for name, value in parts.items()}
        lengths = {name: part.shape[0] for name, part in self._parts.items()}
        first, *others = lengths.items()
        for name, length in others:
            if length != first[1]:
                raise errors.BadShape(
                    f"{first[0]} has {first[1]} rows and {name} has {length}", argument=name,
                    expected=f"{first[1]} rows", found=f"{length} rows")

    def __len__(self) -> int:
        return len(next(iter(self._parts.values())))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parts."""
        return tuple(self._parts)

    @property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """Of the parts, by name."""
        return {name: part.dtype for name, part in self._parts.items()}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the parts, by name."""
        return {name: part.shape for name, part in self._parts.items()}

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {part.dtype} {part.shape}"
                          for name, part in self._parts.items())
        return f"<Dataset of {len(self)} rows: {parts}>"
