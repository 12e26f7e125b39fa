"""Running sums and products, and differences: gd.cumsum(a, axis=0), gd.diff(a).

They have NumPy's names, parameters and meaning, and give lazies. A running sum or product is a
whole result: as a part of a larger expression it is computed into shared memory first, by a job of
its own. Differences are a function of neighbours, which are read as views: nothing is stored.

Parameters
----------
a : Lazy or array_like
    Of any shape.
axis : int or None
    Along which; negative ones count from the last. None: as if it were flat.
dtype : data-type, optional
    Of the result. None: int64 and uint64 of integers and bools, else that of a. Floats are added
    and multiplied in float64, one after the other, and rounded when they are stored.
out : optional
    Where the result goes, as of Lazy.compute(): then it is computed at once, and out is given back.
n : int
    How many times differences are taken; 0: none, and a is given back.
prepend, append : Lazy or array_like, optional
    What is put in front of a and behind it along the axis first: an array, or one number.

Returns
-------
Lazy
    Of a's shape; of diff n less along the axis. `out` where it was given.

Raises
------
NoAxis
    The axis is out of range: a BadShape, a ValueError, an IndexError and NumPy's AxisError.
BadArgument
    n is negative.
BadShape
    diff of an array without axes; prepend or append do not fit.
"""

from __future__ import annotations

import itertools
import operator

import numpy.typing as npt

from .. import errors
from .._lazy.array import Lazy
from .._lazy.graph import Call, Node, Reduction, Shape, Whole, dtype_name, is_placed, ordered
from .._lazy.moved import Moved, whole
from .._lazy.moves import array_of, axis_of, concatenate
from .._lazy.operands import Operand
from .._lazy.results import made
from .._lazy.views import viewed
from .describing import describe


def scanned(op: str, a: object, axis: object, dtype: npt.DTypeLike | None) -> Whole:
    """The node of a running sum or product."""
    node = array_of(a)
    if not node.shape:  # NumPy's are of one element
        node = viewed(node, (), ((-1, 1, 0),))
    if axis is None and len(node.shape) > 1:
        from .._lazy.reshaping import ravel
        node = ravel(Lazy._of(node))._node
    along = 0 if axis is None else axis_of(axis, len(node.shape))
    more = (("axis", str(along)),) if len(node.shape) > 1 else ()
    if dtype is not None:
        more = (*more, ("dtype", dtype_name(dtype)))
    return Whole(op, (node,), (), node.shape, more)


def cumsum(a: Operand, axis: int | None = None, dtype: npt.DTypeLike | None = None,
           out: object = None) -> Lazy:
    """running sum along an axis"""
    return made(scanned("cumsum", a, axis, dtype), out)


def cumprod(a: Operand, axis: int | None = None, dtype: npt.DTypeLike | None = None,
            out: object = None) -> Lazy:
    """running product along an axis"""
    return made(scanned("cumprod", a, axis, dtype), out)


def diff(a: Operand, n: int = 1, axis: int = -1, prepend: Operand | None = None,
         append: Operand | None = None) -> Lazy:
    """Each element less the one before it, along an axis, as numpy.diff(); of bool whether they
    differ."""
    times = operator.index(n)
    node = array_of(a)
    if times == 0:
        return Lazy._of(node)
    if times < 0:
        raise errors.BadArgument(f"diff: n is {times}, not 0 or more", argument="n",
                                 expected="0 or more", found=str(times))
    if not node.shape:
        raise errors.BadShape("diff: an array without axes has no neighbours", argument="a",
                              expected="at least one axis", found="()")
    along = axis_of(axis, len(node.shape), takes_bools=True)
    node = _surrounded(node, along, prepend, append)
    op = "not_equal" if Lazy._of(node).dtype.kind == "b" else "subtract"
    return Lazy._of(differences(node, times, along, op))


def differences(node: Node, times: int, along: int, op: str = "subtract") -> Node:
    """The node of differences of neighbours along an axis, level by level."""
    if any(is_placed(one) or one.shape and isinstance(one, (Reduction, Whole))
           for one in ordered(node)):
        node = Moved(node.shape, [whole(node)])  # once for all views
    left = max(node.shape[along] - times, 0)
    axes = tuple([(one, left if one == along else size, 1) for one, size in enumerate(node.shape)])
    start = [0] * len(node.shape)
    level: list[Node] = []
    for i in range(times + 1 if left else 2):
        start[along] = i if left else 0
        level.append(viewed(node, tuple(start), axes))
    while len(level) > 1:
        level = [Call(op, pair[::-1]) for pair in itertools.pairwise(level)]
    return level[0]


def _surrounded(node: Node, axis: int, prepend: object, append: object) -> Node:
    """With what is put before and behind it."""
    if prepend is None and append is None:
        return node
    parts = [Lazy._of(node)]
    if prepend is not None:
        parts.insert(0, _border("prepend", prepend, axis, node.shape))
    if append is not None:
        parts.append(_border("append", append, axis, node.shape))
    return concatenate(parts, axis)._node


def _border(name: str, value: object, axis: int, shape: Shape) -> Lazy:
    """A number is repeated along the other axes."""
    node = array_of(value)
    wanted = (*shape[:axis], node.shape[axis] if axis < len(node.shape) else 1, *shape[axis + 1:])
    if node.shape and node.shape != wanted:
        raise errors.BadShape(f"diff: {name} of shape {node.shape} does not fit one of {shape}",
                              argument=name, expected="the same shape but along the axis",
                              found=str(node.shape))
    if not node.shape:
        node = viewed(node, (), tuple([(-1, 1 if one == axis else size, 0)
                                       for one, size in enumerate(shape)]))
    return Lazy._of(node)


__all__ = ["cumsum", "cumprod", "diff"]

if __doc__:  # not where they are left out
    describe(__doc__, [cumsum, cumprod, diff])
