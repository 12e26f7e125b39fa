"""numpy.pad() with borders that are computed of the array: its modes "linear_ramp", "maximum",
"mean", "median" and "minimum".

One axis after the other, as NumPy does it: what an axis gets is computed of the array with the
borders of the axes before, so corners are borders of borders.

    a b c    ->    m a b c m    ->    m  a  b  c  m
                                      m' a' ...       each column's own
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import errors
from .array import Lazy, lazy_call
from .moves import broadcast_to, concatenate

_STATISTICS = ("maximum", "mean", "median", "minimum")
COMPUTED = ("linear_ramp", *_STATISTICS)


def bordered(x: Lazy, widths: list[tuple[int, int]], mode: str,
             options: Mapping[str, Any]) -> Lazy:
    """numpy.pad(x, widths, mode, **options)"""
    name = "end_values" if mode == "linear_ramp" else "stat_length"
    pairs = _pairs(name, options.get(name), x.ndim, 0 if mode == "linear_ramp" else None)
    sizes = x.shape
    for axis, (before, after) in enumerate(widths):
        sides = []
        for at_end, width in enumerate((before, after)):
            if not width:
                continue
            given = pairs[axis][at_end]
            side = _ramp(x, axis, width, bool(at_end), given) if mode == "linear_ramp" else \
                _statistic(x, axis, width, bool(at_end), given, sizes[axis], mode)
            sides.append((at_end, side))
        parts = [side for at_end, side in sides if not at_end] + [x] + \
            [side for at_end, side in sides if at_end]
        x = concatenate(parts, axis) if sides else x
    return x


def _pairs(name: str, given: Any, ndim: int, usual: Any) -> list[list[Any]]:
    """Of each axis: what is before it, and behind."""
    if given is None:
        return [[usual, usual]] * ndim
    try:
        pairs: list[list[Any]] = np.broadcast_to(np.asarray(given), (ndim, 2)).tolist()
    except ValueError:
        raise errors.BadShape(f"{name} for {ndim} axes", argument=name,
                              expected=f"a shape that broadcasts to ({ndim}, 2)",
                              found=str(np.shape(given))) from None
    if name == "stat_length":
        for one in (one for pair in pairs for one in pair):
            if not isinstance(one, int) or isinstance(one, bool) or one < 1:
                raise errors.BadArgument(f"stat_length is {one!r}", argument=name,
                                         expected="an integer of 1 or more", found=repr(one))
    return pairs


def _part(x: Lazy, axis: int, start: int, stop: int) -> Lazy:
    part: Lazy = x[(slice(None),) * axis + (slice(start, stop),)]
    return part


def _rounded(value: Lazy, dtype: np.dtype[Any]) -> Lazy:
    is_between = dtype.kind in "iu" and value.dtype.kind == "f"
    return (lazy_call("rint", value) if is_between else value).astype(dtype)


def _statistic(x: Lazy, axis: int, width: int, at_end: bool, length: int | None, size: int,
               mode: str) -> Lazy:
    n = size if length is None else min(length, size)
    part = _part(x, axis, size - n, size) if at_end else _part(x, axis, 0, n)
    from .._functions import quantiles, reductions  # which are made of more
    find: Any = {"maximum": reductions.max, "mean": reductions.mean, "median": quantiles.median,
                 "minimum": reductions.min}[mode]
    shape = (*x.shape[:axis], width, *x.shape[axis + 1:])
    return broadcast_to(_rounded(find(part, axis=axis, keepdims=True), x.dtype), shape)


def _ramp(x: Lazy, axis: int, width: int, at_end: bool, end: Any) -> Lazy:
    """From the end value, which is there, to the element, which is not: numpy.linspace()."""
    from .._functions.creation import arange
    n = x.shape[axis]
    edge = (_part(x, axis, n - 1, n) if at_end else _part(x, axis, 0, 1)).astype("f8")
    places = arange(width - 1, -1, -1) if at_end else arange(width)
    along = places.reshape((width,) + (1,) * (x.ndim - axis - 1)).astype("f8")
    ramp = along * ((edge - float(end)) / width) + float(end)
    return (lazy_call("floor", ramp) if x.dtype.kind in "iu" else ramp).astype(x.dtype)
