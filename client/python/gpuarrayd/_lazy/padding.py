"""numpy.pad() as an array of pieces.

Along each axis the result is a row of segments (moves.py): parts of the array forwards, backwards,
or one element again and again; the pieces are all combinations. A constant border is boxes around
the array, each over the full width of the axes before it, so that in corners the last axis wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import errors
from .._arguments.refusals import WrongType
from .array import Lazy
from .graph import Node, Shape
from .leaves import ArraySource
from .moved import Moved, Piece
from .moves import Segment, _all, _pieces
from .padding_computed import COMPUTED, bordered
from .unanswered import refuse
from .views import ViewSource

_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")
_OPTIONS: dict[str, tuple[str, ...]] = {  # of each of NumPy's modes
    "constant": ("constant_values",), "edge": (), "wrap": (), "empty": (),
    "linear_ramp": ("end_values",), "reflect": ("reflect_type",), "symmetric": ("reflect_type",),
    "maximum": ("stat_length",), "mean": ("stat_length",), "median": ("stat_length",),
    "minimum": ("stat_length",)}


def padded(node: Node, pad_width: Any, mode: object, options: Mapping[str, Any]) -> Lazy:
    """numpy.pad()"""
    options = dict(options)
    if isinstance(mode, str):
        _check_options(mode, options)
    values = options.pop("constant_values", 0)
    if options.get("reflect_type") == "even":
        options.pop("reflect_type")
    if not isinstance(mode, str) or mode not in (*_MODES, *COMPUTED):
        raise errors.Unsupported(f"pad: mode {mode!r} is not computed by the daemon",
                                 argument="mode", expected=", ".join((*_MODES, *COMPUTED)),
                                 found=repr(mode))
    widths = _widths(pad_width, len(node.shape))
    if mode not in COMPUTED:
        refuse("pad", {name: "" if value is None else value for name, value in options.items()})
    for axis, ((before, after), size) in enumerate(zip(widths, node.shape, strict=True)):
        if size == 0 and (before or after) and mode != "constant":
            raise errors.BadArgument(f"axis {axis} is empty: there is nothing to repeat",
                                     argument="array", expected="mode 'constant'", found=mode)
    if mode in COMPUTED:
        return bordered(Lazy._of(node), widths, mode, options)
    shape = tuple([before + size + after
                   for (before, after), size in zip(widths, node.shape, strict=True)])
    segments = [_segments(mode, size, before, after)
                for (before, after), size in zip(widths, node.shape, strict=True)]
    pieces = _pieces(node, segments, range(len(shape)))
    dtype = Lazy._of(node).dtype
    if mode == "constant":
        pieces += _borders(shape, node.shape, widths, values, dtype)
    return Lazy._of(Moved(shape, pieces, dtype))


def _check_options(mode: str, options: Mapping[str, Any]) -> None:
    """Each mode has options of its own."""
    known = _OPTIONS.get(mode)
    if known is None:
        raise errors.BadArgument(f"pad: there is no mode {mode!r}", argument="mode",
                                 expected=", ".join((*_MODES, *COMPUTED)), found=repr(mode))
    for name in options:
        if name not in known:
            raise errors.BadArgument(f"pad: mode {mode!r} has no {name}=", argument=name,
                                     expected=f"{known[0]}=" if known else "no option",
                                     found=f"{name}=")


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, Mapping):
        named: Any = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            named[axis] = (width, width) if isinstance(width, int) else width
        pad_width = named
    found = np.asarray(pad_width)
    if found.dtype.kind not in "iu":
        raise WrongType(f"pad_width has integers, not {pad_width!r}", argument="pad_width",
                        expected="integers", found=repr(pad_width))
    try:
        pairs = np.broadcast_to(found, (ndim, 2)).tolist()
    except ValueError:
        raise errors.BadShape(f"pad_width of shape {found.shape} for {ndim} axes",
                              argument="pad_width", expected=f"a shape that broadcasts to ({ndim}, "
                              "2)", found=str(found.shape)) from None
    if found.size and found.min() < 0:
        raise errors.BadArgument("a border cannot be of a negative width", argument="pad_width",
                                 expected="0 or more", found=str(found.min()))
    return [(before, after) for before, after in pairs]


def _segments(mode: str, size: int, before: int, after: int) -> list[Segment]:
    if mode == "constant" or before == after == 0:
        return [_all(size, before)]
    if mode == "edge" or (mode == "reflect" and size == 1):
        rows = [Segment(0, 0, 0, before), _all(size, before),
                Segment(before + size, size - 1, 0, after)]
        return [one for one in rows if one.count]
    skipped = 1 if mode == "reflect" else 0
    back = 0 if mode == "wrap" else size - 2 * skipped
    found, at, end = [], 0, before + size + after
    while at < end:
        phase = (at - before) % (size + back)
        repeats = 1
        if phase < size:
            one = Segment(at, phase, 1, min(size - phase, end - at))
            if not phase and not back:
                repeats = max(1, (end - at) // size)
        else:
            one = Segment(at, size - 1 - skipped - (phase - size), -1,
                          min(size + back - phase, end - at))
        found.append(one._replace(repeats=repeats))
        at += one.count * repeats
    return found


def _borders(shape: Shape, inner: Shape, widths: list[tuple[int, int]], values: Any,
             dtype: np.dtype[Any]) -> list[Piece]:
    try:
        pairs = np.broadcast_to(np.asarray(values), (len(shape), 2))
    except ValueError:
        raise errors.BadShape(f"constant_values for {len(shape)} axes", argument="constant_values",
                              expected=f"a shape that broadcasts to ({len(shape)}, 2)",
                              found=str(np.shape(values))) from None
    found = []
    for axis, (before, after) in enumerate(widths):
        for side, (to, width) in enumerate(((0, before), (before + inner[axis], after))):
            start = [0 if one < axis else widths[one][0] for one in range(len(shape))]
            counts = [shape[one] if one < axis else inner[one] for one in range(len(shape))]
            start[axis], counts[axis] = to, width
            if 0 in counts:
                continue
            value = np.empty((), dtype)
            value[...] = pairs[axis, side]
            node = ViewSource(ArraySource(value), (), tuple([(-1, n, 0) for n in counts]))
            found.append(Piece(node, tuple(start), tuple([(one, n, 1)
                                                          for one, n in enumerate(counts)])))
    return found
