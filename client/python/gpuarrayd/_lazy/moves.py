"""NumPy's functions that put elements elsewhere: transpose, concatenate, pad and the like.

Permuted, reversed and sliced lazies are views, which read their sources in another order and cost
nothing by themselves. Those that join, repeat or surround are arrays of pieces (moved.py).

Along an axis of the result a segment says what goes where: from `to` on `count` elements, which are
those of the array from `first` on by `step`; the same `repeats` times.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .. import errors
from .array import Lazy
from .graph import Call, Node, Shape, Source, broadcast, number
from .moved import Moved, Piece
from .operands import Operand, call, node_of, source_of
from .picked import NoIndex, indices_of, is_mask, picked, positions_of
from .results import compute_into
from .._arguments.refusals import WrongType
from .unanswered import NoAxis, refuse
from .views import Axes, Start, permuted, ramp, viewed
from .views import broadcast_to as spread_to

__all__ = ["transpose", "permute_dims", "swapaxes", "moveaxis", "flip", "fliplr", "flipud",
           "expand_dims", "squeeze", "concatenate", "concat", "stack", "vstack", "hstack",
           "dstack", "roll", "tile", "pad", "flatnonzero", "nonzero",
           "take_along_axis", "matrix_transpose", "broadcast_to", "broadcast_arrays"]

Numbers: TypeAlias = int | Sequence[int]


class Segment(NamedTuple):
    """A part of an axis of the result."""

    to: int
    first: int
    step: int
    count: int  # type: ignore[assignment]
    repeats: int = 1


def _all(size: int, to: int = 0) -> Segment:
    return Segment(to, 0, 1, size)


def array_of(value: object) -> Node:
    """As a node of an array; numbers are arrays without axes."""
    node = node_of(value)
    return node if isinstance(node, Source) or node.shape or isinstance(value, Lazy) \
        else source_of(value)


def axis_of(axis: Any, ndim: int, name: str = "axis", takes_bools: bool = False) -> int:
    """From 0 on. takes_bools: True is axis 1, as in those of NumPy's functions that are Python."""
    try:
        if isinstance(axis, bool) and not takes_bools:
            raise TypeError
        number = operator.index(axis)
    except TypeError:
        raise WrongType(f"an axis is an integer, not {axis!r}", argument=name,
                        expected="an integer", found=repr(axis)) from None
    if not -ndim <= number < ndim:
        raise NoAxis(f"axis {number} is out of bounds for an array of {ndim} dimensions",
                     argument=name, expected=f"{-ndim} to {ndim - 1}" if ndim else "no axis",
                     found=str(number))
    return number % ndim


def _axes(axes: Any, ndim: int, name: str = "axes", takes_bools: bool = True) -> tuple[int, ...]:
    found = tuple([axis_of(axis, ndim, name, takes_bools)
                   for axis in (axes if isinstance(axes, Iterable) else (axes,))])
    for axis in found:
        if found.count(axis) > 1:
            raise NoAxis(f"axis {axis} is given twice", argument=name, expected="each axis once",
                         found=str(found))
    return found


# Views.

def transpose(a: Operand, axes: Sequence[int] | None = None) -> Lazy:
    """With its axes in another order, as numpy.transpose(); without `axes` reversed."""
    node = array_of(a)
    ndim = len(node.shape)
    order = tuple(range(ndim))[::-1] if axes is None else _axes(axes, ndim, "axes", False)
    if len(order) != ndim:
        raise errors.BadArgument(f"{len(order)} axes for an array of {ndim}", argument="axes",
                                 expected=f"{ndim} axes", found=str(len(order)))
    return Lazy._of(permuted(node, order))


permute_dims = transpose


def swapaxes(a: Operand, axis1: int, axis2: int) -> Lazy:
    """With two axes exchanged, as numpy.swapaxes()."""
    node = array_of(a)
    order = list(range(len(node.shape)))
    ndim = len(order)
    first, second = axis_of(axis1, ndim, "axis1", True), axis_of(axis2, ndim, "axis2", True)
    order[first], order[second] = second, first
    return Lazy._of(permuted(node, order))


def moveaxis(a: Operand, source: Numbers, destination: Numbers) -> Lazy:
    """With axes moved to other places, as numpy.moveaxis()."""
    node = array_of(a)
    ndim = len(node.shape)
    sources, places = _axes(source, ndim, "source"), _axes(destination, ndim, "destination")
    if len(sources) != len(places):
        raise errors.BadArgument(f"{len(sources)} sources and {len(places)} destinations",
                                 argument="destination", expected=f"{len(sources)} axes",
                                 found=str(len(places)))
    order = [axis for axis in range(ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return Lazy._of(permuted(node, order))


def flip(m: Operand, axis: Numbers | None = None) -> Lazy:
    """Reversed along axes, as numpy.flip(); without `axis` along all."""
    node = array_of(m)
    ndim = len(node.shape)
    axes = range(ndim) if axis is None else _axes(axis, ndim, "axis")
    return Lazy._of(node)[tuple([slice(None, None, -1) if one in axes else slice(None)
                                 for one in range(ndim)])]


def fliplr(m: Operand) -> Lazy:
    """Reversed along axis 1."""
    return flip(m, 1)


def flipud(m: Operand) -> Lazy:
    """Reversed along axis 0."""
    return flip(m, 0)


def expand_dims(a: Operand, axis: Numbers) -> Lazy:
    """With new axes of length 1, as numpy.expand_dims()."""
    node = array_of(a)
    ndim = len(node.shape) + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    new = _axes(axis, ndim, "axis")
    return Lazy._of(node)[tuple([None if one in new else slice(None) for one in range(ndim)])]


def squeeze(a: Operand, axis: Numbers | None = None) -> Lazy:
    """Without axes of length 1, as numpy.squeeze()."""
    node = array_of(a)
    ones = [one for one, size in enumerate(node.shape) if size == 1]
    gone = ones if axis is None else _axes(axis if isinstance(axis, tuple) else (axis,),
                                           len(node.shape), "axis", False)
    if not set(gone) <= set(ones):
        raise errors.BadShape(f"an axis of {node.shape} is not of length 1 and cannot be left out",
                              argument="axis", expected="an axis of length 1", found=str(axis))
    return Lazy._of(node)[tuple([0 if one in gone else slice(None)
                                 for one in range(len(node.shape))])]


def matrix_transpose(x: Operand, /) -> Lazy:
    """With its last two axes exchanged, as numpy.matrix_transpose()."""
    node = array_of(x)
    if len(node.shape) < 2:
        raise errors.BadShape(f"matrix_transpose: of shape {node.shape}", argument="x",
                              expected="at least two axes", found=str(node.shape))
    return swapaxes(x, -1, -2)


def broadcast_to(array: Operand, shape: Numbers, subok: bool = False) -> Lazy:
    """Repeated along axes to a shape, as numpy.broadcast_to(), without memory."""
    node = array_of(array)
    wanted = tuple([operator.index(one) for one in
                    (shape if isinstance(shape, Sequence) else (shape,))])
    missing = len(wanted) - len(node.shape)
    if min(wanted, default=0) < 0 or missing < 0 or any(
            own not in (1, size) for own, size in zip(node.shape, wanted[missing:], strict=True)):
        raise errors.BadShape(f"an array of shape {node.shape} does not broadcast to {wanted}",
                              argument="shape", expected=f"what {node.shape} broadcasts to",
                              found=str(wanted))
    return Lazy._of(node if node.shape == wanted else spread_to(node, wanted))


def broadcast_arrays(*args: Operand, subok: bool = False) -> tuple[Lazy, ...]:
    """Arrays as repeated to the shape of them all, as numpy.broadcast_arrays()."""
    nodes = [array_of(one) for one in args]
    shape = broadcast("broadcast_arrays", nodes)
    return tuple([broadcast_to(Lazy._of(node), shape) for node in nodes])


# Joining.

def _join(nodes: Sequence[Node], axis: int, shape: Shape, dtype: Any, casting: str,
          out: object) -> Lazy:
    refuse("concatenate", {"casting": None if casting == "same_kind" else casting})
    if dtype is not None and out is not None:
        raise WrongType("dtype= and out= both say what the result is", argument="dtype",
                        expected="one of them", found="both")
    at, pieces = 0, []
    for node in nodes:
        size = node.shape[axis]
        start = [0] * len(shape)
        start[axis] = at
        pieces.append(Piece(node, tuple(start), tuple(
            [(one, count, 1) for one, count in enumerate(node.shape)])))
        at += size
    return _finished(Moved(shape, pieces, None if dtype is None else np.dtype(dtype)), out)


def _finished(moved: Moved, out: object) -> Lazy:
    made = Lazy._of(moved)
    if out is None:
        return made
    return compute_into((made,), (out,))[0]  # type: ignore[no-any-return]


def _given(arrays: Iterable[object]) -> list[Node]:
    nodes = [array_of(one) for one in arrays]
    if not nodes:
        raise errors.BadArgument("there is nothing to join", argument="arrays",
                                 expected="at least one array", found="none")
    return nodes


def _check_alike(nodes: Sequence[Node], free: int | None) -> None:
    first = nodes[0].shape
    for i, node in enumerate(nodes):
        shape = node.shape
        if len(shape) != len(first) or any(a != b for axis, (a, b) in enumerate(
                zip(shape, first, strict=True)) if axis != free):
            but = "" if free is None else f" but along axis {free}"
            raise errors.BadShape(f"arrays[{i}] has shape {shape}, the first array {first}",
                                  argument=f"arrays[{i}]", expected=f"the same shape{but}",
                                  found=str(shape))


def concatenate(arrays: Iterable[Operand], /, axis: int | None = 0, out: object = None, *,
                dtype: Any = None, casting: str = "same_kind") -> Lazy:
    """Arrays behind each other along an axis, as numpy.concatenate().

    Their dtype is the one that holds all, or `dtype`. axis None: as if each were flat.
    """
    nodes = _given(arrays)
    if axis is None:
        from .reshaping import ravel
        nodes, axis = [ravel(Lazy._of(node))._node for node in nodes], 0
    if not nodes[0].shape:
        raise errors.BadShape("arrays without axes cannot be concatenated; stack() joins them",
                              argument="arrays[0]", expected="at least one axis", found="()")
    along = axis_of(axis, len(nodes[0].shape))
    _check_alike(nodes, along)
    shape = list(nodes[0].shape)
    shape[along] = sum(node.shape[along] for node in nodes)
    return _join(nodes, along, tuple(shape), dtype, casting, out)


concat = concatenate


def stack(arrays: Iterable[Operand], axis: int = 0, out: object = None, *, dtype: Any = None,
          casting: str = "same_kind") -> Lazy:
    """Arrays of one shape behind each other along a new axis, as numpy.stack()."""
    nodes = _given(arrays)
    _check_alike(nodes, None)
    along = axis_of(axis, len(nodes[0].shape) + 1, takes_bools=True)
    return concatenate([expand_dims(Lazy._of(node), along) for node in nodes], along, out,
                       dtype=dtype, casting=casting)


def _atleast(arrays: Iterable[object], ndim: int) -> list[Lazy]:
    """With new axes as numpy.atleast_2d() and atleast_3d() have them."""
    found = []
    for node in _given(arrays):
        one, own = Lazy._of(node), len(node.shape)
        front = {1: 1 - own, 2: 2 - own, 3: 1 if own < 2 else 0}[ndim]
        behind = max(0, ndim - own - max(front, 0))
        found.append(one[(None,) * max(front, 0) + (...,) + (None,) * behind])
    return found


def vstack(tup: Iterable[Operand], *, dtype: Any = None, casting: str = "same_kind") -> Lazy:
    """Arrays below each other, as numpy.vstack()."""
    return concatenate(_atleast(tup, 2), 0, dtype=dtype, casting=casting)


def hstack(tup: Iterable[Operand], *, dtype: Any = None, casting: str = "same_kind") -> Lazy:
    """Arrays beside each other, as numpy.hstack()."""
    arrays = _atleast(tup, 1)
    return concatenate(arrays, 0 if len(arrays[0]._node.shape) == 1 else 1, dtype=dtype,
                       casting=casting)


def dstack(tup: Iterable[Operand]) -> Lazy:
    """Arrays behind each other along the third axis, as numpy.dstack()."""
    return concatenate(_atleast(tup, 3), 2)


# Pieces by segments.

def _pieces(node: Node, segments: Sequence[Sequence[Segment]],
            source_axes: Sequence[int]) -> list[Piece]:
    """All combinations of the axes' segments."""
    found = []
    for chosen in itertools.product(*segments):
        start: list[int] = [0] * len(node.shape)
        place: list[tuple[int, int, int]] = []
        view: list[tuple[int, int, int]] = []
        for axis, (one, source) in enumerate(zip(chosen, source_axes, strict=True)):
            if source >= 0:
                start[source] = one.first
            if one.repeats != 1:
                place.append((axis, one.repeats, one.count))
                view.append((-1, one.repeats, 0))
            place.append((axis, one.count, 1))
            view.append((source, one.count, one.step))
        if math.prod(count for _, count, _ in view):
            found.append(Piece(_part(node, tuple(start), tuple(view)),
                               tuple([one.to for one in chosen]), tuple(place)))
    return found


def _part(node: Node, start: Start, axes: Axes) -> Node:
    is_all = not any(start) and axes == tuple(
        [(axis, size, 1) for axis, size in enumerate(node.shape)])
    return node if is_all else viewed(node, start, axes)


def roll(a: Operand, shift: Numbers, axis: Numbers | None = None) -> Lazy:
    """With elements moved along axes, those beyond the end to the beginning, as numpy.roll().

    Without `axis` as if it were flat.
    """
    node = array_of(a)
    ndim = len(node.shape)
    if axis is None and ndim > 1:
        from .reshaping import ravel, reshape
        return reshape(roll(ravel(Lazy._of(node)), shift), node.shape)
    given = axis if isinstance(axis, Iterable) else (0 if axis is None else axis,)
    axes = [axis_of(one, ndim, takes_bools=True) for one in given] if ndim else []
    shifts = list(shift) if isinstance(shift, Iterable) else [shift]
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise errors.BadShape(f"{len(shifts)} shifts along {len(axes)} axes", argument="shift",
                              expected=f"{len(axes)} shifts", found=str(len(shifts)))
    sums = [0] * ndim
    for one, by in zip(itertools.cycle(axes) if len(axes) == 1 else axes,
                       itertools.cycle(shifts) if len(shifts) == 1 and len(axes) != 1 else shifts):
        sums[one] += operator.index(by)
    segments = []
    for size, by in zip(node.shape, sums, strict=True):
        by = by % size if size else 0
        parts = [Segment(0, size - by, 1, by), Segment(by, 0, 1, size - by)]
        segments.append([part for part in parts if part.count] or [_all(size)])
    return Lazy._of(Moved(node.shape, _pieces(node, segments, range(ndim)),
                          Lazy._of(node).dtype))


def tile(A: Operand, reps: Numbers) -> Lazy:  # noqa: N803
    """Repeated, as numpy.tile()."""
    node = array_of(A)
    counts = [operator.index(one) for one in (reps if isinstance(reps, Iterable) else (reps,))]
    if min(counts, default=0) < 0:
        raise errors.BadArgument(f"a negative number of repeats in {counts}", argument="reps",
                                 expected="0 or more", found=str(counts))
    own = len(node.shape)
    ndim = max(own, len(counts))
    counts = [1] * (ndim - len(counts)) + counts
    sizes = [1] * (ndim - own) + list(node.shape)
    segments = [[Segment(0, 0, 1, size, count)] for size, count in zip(sizes, counts, strict=True)]
    source_axes = [axis - (ndim - own) if axis >= ndim - own else -1 for axis in range(ndim)]
    shape = tuple([size * count for size, count in zip(sizes, counts, strict=True)])
    return Lazy._of(Moved(shape, _pieces(node, segments, source_axes), Lazy._of(node).dtype))


def pad(array: Operand, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Lazy:
    """With a border, as numpy.pad(): mode "constant" (constant_values=), "edge", "reflect",
    "symmetric" or "wrap"; or computed of it: "linear_ramp" (end_values=), "maximum", "mean",
    "median" or "minimum" (stat_length=)."""
    from .padding import padded
    return padded(array_of(array), pad_width, mode, kwargs)


# Places.

def flatnonzero(a: Operand) -> Lazy:
    """The numbers, in C order, of elements that are not zero, as numpy.flatnonzero(). They are
    counted when the shape is asked for."""
    node = array_of(a)
    return Lazy._of(positions_of(node if is_mask(node) else Call("not_equal", (node, number(0)))))


def nonzero(a: Operand) -> tuple[Lazy, ...]:
    """The indices of elements that are not zero, as numpy.nonzero(): of each axis in an array."""
    places, shape = flatnonzero(a), array_of(a).shape
    if not shape:
        raise errors.BadShape("nonzero: of an array without axes", argument="a",
                              expected="at least one axis", found="()")
    steps = [math.prod(shape[axis + 1:]) for axis in range(len(shape))]
    return tuple([places if len(shape) == 1 else places // step % size
                  for step, size in zip(steps, shape, strict=True)])


def take_along_axis(arr: Operand, indices: Operand, axis: int | None = -1) -> Lazy:
    """Elements along an axis, each by an index of its own, as numpy.take_along_axis(): what
    argsort() gives sorts. The indices have as many axes as the array, whose others they are
    broadcast against."""
    table, where = array_of(arr), indices_of(indices)
    if is_mask(where):
        raise NoIndex("take_along_axis: indices are integers, not bool", argument="indices",
                      expected="integers", found="bool")
    ndim = 1 if axis is None else len(table.shape)
    if len(where.shape) != ndim:
        raise errors.BadShape(f"take_along_axis: indices have {len(where.shape)} axes for {ndim}",
                              argument="indices", expected=f"{ndim} axes",
                              found=f"{len(where.shape)} axes")
    if axis is None:
        return Lazy._of(picked(table, where, 0, len(table.shape), "raise"))
    along = axis_of(axis, ndim)
    if not isinstance(where, Source) or not isinstance(getattr(where, "array", None), np.ndarray):
        return _along_places(table, Lazy._of(where), along)
    key = tuple(Lazy._of(where) if k == along else
                np.arange(size).reshape([size if i == k else 1 for i in range(ndim)])
                for k, size in enumerate(table.shape))
    return Lazy._of(table)[key]


def _along_places(table: Node, where: Lazy, along: int) -> Lazy:
    """By numbers of elements in C order: what is outside along the axis is so in all."""
    shape = table.shape
    size, steps = shape[along], [math.prod(shape[k + 1:]) for k in range(len(shape))]
    others = ramp([1 if k == along else one for k, one in enumerate(shape)], 0, steps)
    where = where.astype(np.int64)
    within = (where >= -size) & (where < size)
    places = where % max(size, 1) * steps[along] + Lazy._of(others)
    outside = Lazy._of(call("where", within, places, math.prod(shape)))
    return Lazy._of(picked(table, outside._node, 0, len(shape), "raise"))
