"""Sorting, and different elements, by NumPy in this process: gd.sort(a), gd.unique_values(a).

Rows that are small are sorted while a job reads them, by a function of blocks, as those of
map_blocks(). Larger ones, of more than 256 MiB, are sorted when this is called, through temporary
files (large_sorts.py). What is different is found when it is called, since the shape follows from
it: an array in memory, or, of an array of more than 256 MiB, in temporary files
(large_uniques.py).

Parameters
----------
a : Lazy or array_like
x : Lazy or array_like
    Of any shape.
axis : int or None
    Along which; None: as if the array were flat.
kind : str, optional
    "stable" and "mergesort" are stable=True; others are NumPy's fastest.
stable : bool, optional
    Whether equal elements stay in their order.
order : None
    Has no other value.
descending : bool
    Whether the largest comes first.

Returns
-------
Lazy
    Of a's shape; argsort's of int64. unique_all and its like give named tuples of them: values in
    ascending order, each NaN for itself.

Raises
------
NoAxis
    The axis is out of range.
NoSpace
    What is large is sorted in temporary files, and their folder has not enough.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from .._lazy.array import Lazy
from .._lazy.blockwise import map_blocks
from .._lazy.moves import array_of, axis_of, flip
from .._lazy.operands import Operand
from .._lazy.reshaping import ravel
from .._lazy.unanswered import refuse
from .derived import MOST_BYTES
from .describing import describe

__all__ = ["sort", "argsort", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

_BLOCK_BYTES = 2 << 20
Row = np.ndarray[Any, Any]


def _sorted(rows: Row, axis: int, is_falling: bool, kind: Any) -> Row:
    found = np.sort(rows, axis, kind)
    return np.flip(found, axis) if is_falling else found


def _sorting(rows: Row, axis: int, is_falling: bool, kind: Any) -> Row:
    if not is_falling:
        return np.argsort(rows, axis, kind).astype(np.int64, copy=False)
    found = np.flip(np.argsort(np.flip(rows, axis), axis, kind), axis)
    return np.asarray(rows.shape[axis] - 1 - found, np.int64)


def _by_rows(name: str, function: Any, a: object, axis: int | None, order: None, is_falling: bool,
             is_stable: bool, dtype: Any) -> Lazy:
    refuse(name, {"order": order})
    x = Lazy._of(array_of(a))
    if axis is None or dtype is not None and axis in (0, -1) and not x.shape:  # as NumPy's argsort
        x, axis = ravel(x), 0
    along = axis_of(axis, x.ndim)
    wanted = np.dtype(x.dtype if dtype is None else dtype)
    each = x.shape[along] * max(wanted.itemsize, x.itemsize)
    if 0 in x.shape:
        return x.astype(wanted)
    if each > MOST_BYTES:
        return _large(x, along, dtype is not None, is_falling)
    block, room = [1] * x.ndim, max(_BLOCK_BYTES // each, 1)
    block[along] = x.shape[along]
    for one in reversed(range(x.ndim)):  # as long as there is room
        if one != along:
            block[one] = min(x.shape[one], room)
            room //= block[one]
    threads = 0 if math.prod(block) * x.itemsize <= 8 * _BLOCK_BYTES else 1
    return map_blocks(function, x, along, is_falling, "stable" if is_stable else None,
                      dtype=wanted, block=tuple(block), threads=threads)


def _large(x: Lazy, along: int, wants_places: bool, is_falling: bool) -> Lazy:
    from .large_sorts import sorted_large
    if wants_places and is_falling:  # equal ones stay in their order
        return x.shape[along] - 1 - flip(sorted_large(flip(x, along), along, True), along)
    found = sorted_large(x, along, wants_places)
    return flip(found, along) if is_falling else found


def _is_stable(name: str, kind: str | None, stable: bool | None) -> bool:
    if kind not in (None, "quicksort", "heapsort", "mergesort", "stable"):
        raise errors.BadArgument(f"{name}: kind is {kind!r}", argument="kind", found=repr(kind),
                                 expected="'quicksort', 'heapsort', 'mergesort' or 'stable'")
    return bool(stable) or kind in ("mergesort", "stable")


def sort(a: Operand, axis: int | None = -1, kind: str | None = None, order: None = None, *,
         stable: bool | None = None, descending: bool = False) -> Lazy:
    """In ascending order along an axis, as numpy.sort(); NaN at the end."""
    return _by_rows("sort", _sorted, a, axis, order, descending, _is_stable("sort", kind, stable),
                    None)


def argsort(a: Operand, axis: int | None = -1, kind: str | None = None, order: None = None, *,
            stable: bool | None = None, descending: bool = False) -> Lazy:
    """The indices that sort along an axis, as numpy.argsort()."""
    return _by_rows("argsort", _sorting, a, axis, order, descending,
                    _is_stable("argsort", kind, stable), np.int64)


class UniqueAll(NamedTuple):
    """What unique_all() gives."""

    values: Lazy
    indices: Lazy
    inverse_indices: Lazy
    counts: Lazy


class UniqueCounts(NamedTuple):
    """What unique_counts() gives."""

    values: Lazy
    counts: Lazy


class UniqueInverse(NamedTuple):
    """What unique_inverse() gives."""

    values: Lazy
    inverse_indices: Lazy


def _different(x: object, index: bool = False, inverse: bool = False,
               counts: bool = False) -> list[Lazy]:
    array = Lazy._of(array_of(x))
    if array.nbytes > MOST_BYTES:
        from .large_uniques import different_of_large
        return [one for one in different_of_large(ravel(array), index, inverse, counts)
                if one is not None]
    here: Any = np.asarray(array)
    unique: Any = np.unique  # which has no types of this call
    found = unique(here, index, inverse, counts, equal_nan=False)
    return [Lazy._of(array_of(one)) for one in (found if isinstance(found, tuple) else (found,))]


def unique_all(x: Operand, /) -> UniqueAll:
    """Different elements, where each is first, which each element is, and how often."""
    values, first, which, counts = _different(x, True, True, True)
    return UniqueAll(values, first, which.reshape(array_of(x).shape), counts)


def unique_counts(x: Operand, /) -> UniqueCounts:
    """Different elements, and how often each is there."""
    return UniqueCounts(*_different(x, counts=True))


def unique_inverse(x: Operand, /) -> UniqueInverse:
    """Different elements, and which of them each element is."""
    values, which = _different(x, inverse=True)
    return UniqueInverse(values, which.reshape(array_of(x).shape))


def unique_values(x: Operand, /) -> Lazy:
    """Different elements."""
    return _different(x)[0]


if __doc__:  # not where they are left out
    describe(__doc__, [globals()[name] for name in __all__])
