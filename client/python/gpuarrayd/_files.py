"""What is in files: their arrays, groups and attributes. No daemon is asked."""

from __future__ import annotations

import os
from builtins import list as _list
from typing import Any, Literal, TypeAlias

import numpy as np

from . import _core

_Attribute: TypeAlias = "str | tuple[str, ...] | np.generic | np.ndarray[Any, Any] | None"


class Listed:
    """One thing in a file, as list() gives it.

    Attributes
    ----------
    kind : {"array", "group", "other"}
        "other": a named type, a link that leads nowhere, what cannot be read.
    name : str
        As behind "FILE:"; "/" is the file's root, "" the one array of a file.
    dtype : numpy.dtype or None
        None: no array, or its elements are not computed with.
    shape : tuple of ints or None
    maxshape : tuple of (int or None), or None
        How long each axis may grow, as h5py has it: None is an axis that is unlimited.
    chunks : tuple of ints or None
        None: the array is not stored in chunks.
    dimensions : tuple of (str or None), or None
        Names of the axes; None: none has one.
    filters : str or None
        In the order in which they were applied, as in "shuffle, deflate 4"; "" without any.
    attributes : dict
        By name: a str, a tuple of str, a NumPy scalar, a one-dimensional ndarray, or None for what
        is of another type.
    type : str or None
        Of an array dtype's name, or what its elements are: "a string of 8 bytes"; of a group None,
        or why what is in it is not listed; of others what they are.
    is_served : bool
        Whether open() takes it.
    """

    kind: Literal["array", "group", "other"]
    name: str
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...] | None
    maxshape: tuple[int | None, ...] | None
    chunks: tuple[int, ...] | None
    dimensions: tuple[str | None, ...] | None
    filters: str | None
    attributes: dict[str, Any]
    type: str | None
    is_served: bool

    __slots__ = ("kind", "name", "dtype", "shape", "maxshape", "chunks", "dimensions", "filters",
                 "attributes", "type", "is_served")

    def __init__(self, *values: Any) -> None:
        for name, value in zip(self.__slots__, values, strict=True):
            setattr(self, name, value)

    def __repr__(self) -> str:
        said = [self.type] if self.type is not None else []
        said += [str(self.shape)] if self.shape is not None else []
        return f"<{' '.join(['Listed', self.kind, *said])}: {self.name!r}>"


def list(spec: str | os.PathLike[str]) -> _list[Listed]:
    """What is in a file: groups, arrays and attributes, without the elements.

    Parameters
    ----------
    spec : str or path
        A file; "file.h5:/group" for that group alone, "file.h5:/array" for that array.

    Returns
    -------
    list of Listed
        In the file's order, groups before what is in them. What is damaged is there as far as it
        can be read.

    Raises
    ------
    NotFound, Permission, Busy, BadFormat, ShortRead
        The file cannot be read.
    """
    return [_listed(*entry) for entry in _core.contents(os.fspath(spec))]


def _listed(kind: Literal["array", "group", "other"], name: str, said: str | None,
            is_served: bool, shape: tuple[int, ...] | None,
            maxshape: tuple[int | None, ...] | None, chunks: tuple[int, ...] | None,
            dimensions: tuple[str | None, ...] | None, filters: str | None,
            attributes: dict[str, Any]) -> Listed:
    dtype = _dtype_of(said) if kind == "array" else None
    values = {key: _value(value) for key, value in attributes.items()}
    return Listed(kind, name, dtype, shape, maxshape, chunks, dimensions, filters, values, said,
                  is_served)


def _dtype_of(said: str | None) -> np.dtype[Any] | None:
    """None: of what is no dtype of NumPy's, as "a string of 8 bytes" or Zarr's own types."""
    try:
        return None if said is None or " " in said else np.dtype(said)
    except TypeError:
        return None


def _value(value: Any) -> _Attribute:
    """Numbers come as (dtype or None, numbers)."""
    if not isinstance(value, tuple) or not isinstance(value[-1], tuple):
        return value  # type: ignore[no-any-return]
    dtype, numbers = value
    array = np.array(numbers, dtype)
    return array if len(array) > 1 else array[0]
