"""Reductions as nodes of the graph: what an axis, where=, dtype=, initial= and ddof= mean.

Everything here is NumPy's: which arguments there are, what they mean, what is refused. What has no
word in the daemon's language is written with what has one: a matrix norm is a norm along one axis
and an extremum along the other. All else that cannot be had is refused with its reason.
"""

from __future__ import annotations

import operator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import errors
from .._arguments.refusals import WrongType
from .._lazy.graph import Held, Node, Number, Reduction, Shape, Words, broadcast, dtype_name
from .._lazy.operands import node_of
from .._lazy.text import number_text
from .._lazy.unanswered import NoAxis

Axis: TypeAlias = int | tuple[int, ...] | None
Initial: TypeAlias = int | float | np.generic | None

# Of these NumPy takes the axes 0 and -1 of a number, which has none.
_OF_NUMBERS = frozenset("sum prod min max any all ptp argmin argmax count_nonzero nansum nanprod "
                        "nanmean nanvar nanstd nanmin nanmax".split())
# Of these it takes True for the axis 1.
_OF_BOOLS = frozenset("quantile nanquantile percentile nanpercentile median nanmedian".split())
_EXTREMA = frozenset(["min", "max", "nanmin", "nanmax"])
_SUMS = frozenset(["sum", "nansum"])
_BEGUN = _EXTREMA | _SUMS | {"prod", "nanprod"}
_IDENTITIES = {"sum": 0, "nansum": 0, "prod": 1, "nanprod": 1}
_MATRIX_NORMS = {1: ("max", 0), -1: ("min", 0), np.inf: ("max", 1), -np.inf: ("min", 1)}


def axes_of(op: str, axis: object, ndim: int) -> tuple[int, ...]:
    """The axes, each from 0 on and in order; all of them for None. Of () there are none: then the
    reduction is one of each element by itself, as in NumPy.

    Raises
    ------
    NoAxis
        One is out of range or named twice.
    TypeError
        It is no integer and no tuple of them; a list is none, as in NumPy, and a bool only where
        NumPy takes it for 0 or 1.
    """
    if axis is None:
        return tuple(range(ndim))
    named = axis if isinstance(axis, tuple) else (axis,)
    if op not in _OF_BOOLS and any(isinstance(one, bool) for one in named):
        raise WrongType(f"{op}: an axis is an integer, not {axis!r}", argument="axis",
                        expected="an integer", found=repr(axis))
    if ndim == 0 and op in _OF_NUMBERS and axis in (0, -1):
        return ()
    found = set()
    for one in named:
        index = operator.index(one)
        if not -ndim <= index < ndim:
            raise NoAxis(f"{op}: axis {index} is out of bounds for an array with {ndim} axes",
                         argument="axis", expected=f"-{ndim} to {ndim - 1}" if ndim else "None",
                         found=str(index))
        if index % ndim in found:
            raise NoAxis(f"{op}: axis {index % ndim} is named twice in {tuple(named)}",
                         argument="axis", expected="each axis once", found=f"{tuple(named)}")
        found.add(index % ndim)
    return tuple(sorted(found))


def reduced(op: str, a: object, axis: object = None, keepdims: object = False, *,
            where: object = True, dtype: npt.DTypeLike | None = None, initial: object = None,
            more: Words = ()) -> Node:
    """The node of a reduction. initial None: there is none."""
    node = node_of(a)
    axes = axes_of(op, axis, len(node.shape))
    mask = None if where is True else _mask(op, "where", node, where)
    if initial is None and op in _BEGUN:
        _check_not_none(op, node, axes, mask)
    if dtype is not None:
        more = (*more, ("dtype", dtype_name(dtype)))
    if initial is None and op in _SUMS:
        initial = -0.0  # which changes no sum, while one that begins with 0 is never -0
    if initial is not None and not _is_identity(op, initial):
        more = (*more, ("initial", _literal(op, "initial", initial)))
    return Reduction(op, (node,) if mask is None else (node, mask), axes, bool(keepdims), more)


def check_some(op: str, a: object, axis: object, where: object) -> None:
    """Raises where there may be nothing to reduce, for a reduction that has no initial value."""
    node = node_of(a)
    mask = None if where is True else _mask(op, "where", node, where)
    _check_not_none(op, node, axes_of(op, axis, len(node.shape)), mask)


def _check_not_none(op: str, node: Node, axes: Shape, mask: Node | None) -> None:
    """Without an initial value, of none there is no result."""
    if mask is not None:
        raise errors.BadArgument(f"{op}: where= leaves elements out, and {op} of none has no "
                                 "value: give initial=, too", argument="initial",
                                 expected="initial=", found="where= alone")
    if op not in _EXTREMA and any(node.shape[axis] == 0 for axis in axes):
        raise errors.BadShape(f"{op}: there are no elements along the axes, and no initial value",
                              argument="initial", expected="initial=", found=f"{node.shape}")


def _mask(op: str, name: str, node: Node, value: object) -> Node:
    """Of what broadcasts to the array."""
    mask = node_of(value)
    if mask.shape and broadcast(f"{op}: {name}", (node, mask)) != node.shape:
        raise errors.BadShape(
            f"{op}: {name}= of shape {mask.shape} does not broadcast to the array's {node.shape}",
            argument=name, expected=str(node.shape), found=str(mask.shape))
    return mask


def _is_identity(op: str, initial: object) -> bool:
    return isinstance(initial, int) and _IDENTITIES.get(op) == initial


def weighted(op: str, a: object, axis: object, weights: object, keepdims: object) -> Node:
    """Of logsumexp, whose b= are factors."""
    node = node_of(a)
    parts = (node,) if weights is None else (node, _mask(op, "b", node, weights))
    return Reduction(op, parts, axes_of(op, axis, len(node.shape)), bool(keepdims))


def spread(op: str, a: object, axis: object, dtype: npt.DTypeLike | None, ddof: float,
           keepdims: object, where: object, mean: object, correction: float | None) -> Node:
    """Of var, std, nanvar, nanstd."""
    if mean is not None:
        raise errors.Unsupported(f"{op}: mean= is not computed by the daemon, which finds the mean "
                                 "in the same pass", argument="mean", expected="none",
                                 found="mean=")
    if correction is not None:
        if ddof != 0:
            raise errors.BadArgument(f"{op}: ddof= and correction= are one and the same, and both "
                                     "are given", argument="correction", expected="one of them",
                                     found="both")
        ddof = correction
    more = () if ddof == 0 else (("ddof", _literal(op, "ddof", ddof)),)
    return reduced(op, a, axis, keepdims, where=where, dtype=dtype, more=more)


def _literal(op: str, name: str, value: object) -> str:
    """A number as it stands in the text."""
    node = node_of(value) if isinstance(value, (int, float, np.generic, Held)) else None
    if not isinstance(node, Number):
        raise errors.BadArgument(f"{op}: {name}= is a number", argument=name, expected="a number",
                                 found=type(value).__name__)
    return number_text(Number(node.value, None)).strip("()")


def place(op: str, a: object, axis: object, keepdims: object) -> Node:
    """Of argmin and argmax: axis is one axis, or None for the place in the whole array."""
    if isinstance(axis, (tuple, list)):
        raise errors.Unsupported(f"{op}: axis= is one axis or None, as in NumPy", argument="axis",
                                 expected="an integer or None", found=str(axis))
    return reduced(op, a, axis, keepdims)


def norm_of(x: object, order: object, axis: object, keepdims: object) -> Node:
    """np.linalg.norm(): of vectors along one axis, of matrices along two."""
    node = node_of(x)
    ndim = len(node.shape)
    if axis is not None and not isinstance(axis, tuple):
        axis = _integer("norm", axis)
    if axis is None and order is None:
        return reduced("norm", node, None, keepdims)
    axes = tuple(range(ndim)) if axis is None else _in_order(axis, ndim)
    if len(axes) == 1:
        more = () if order is None else (("ord", _order(order)),)
        return reduced("norm", node, axes, keepdims, more=more)
    if len(axes) != 2:
        raise errors.BadArgument(
            f"norm: {len(axes)} axes; a norm is of vectors along one axis or of matrices along two"
            + (", or of all elements without ord=" if order is not None else ""), argument="axis",
            expected="one axis or two", found=str(len(axes)))
    if order is None or order == "fro":
        return reduced("norm", node, axes, keepdims)
    return _matrix_norm(node, order, axes, keepdims)


def _integer(op: str, axis: Any) -> int:
    """As NumPy's norm has it, of bools and floats, too."""
    try:
        return int(axis)
    except (TypeError, ValueError, OverflowError):
        raise WrongType(f"{op}: an axis is an integer, not {axis!r}", argument="axis",
                        expected="None, an integer or a tuple of integers",
                        found=repr(axis)) from None


def _in_order(axis: object, ndim: int) -> tuple[int, ...]:
    """Checked, and as they were given: of a matrix the first axis is that of rows."""
    axes_of("norm", axis, ndim)
    named = axis if isinstance(axis, tuple) else (axis,)
    return tuple(operator.index(one) % ndim for one in named)


def _order(order: object) -> str:
    if isinstance(order, str):
        raise errors.BadArgument(f"norm: ord={order!r} is of matrices, not of vectors",
                                 argument="ord", expected="a number", found=repr(order))
    return _literal("norm", "ord", order)


def _matrix_norm(node: Node, order: object, axes: tuple[int, ...], keepdims: object) -> Node:
    found = _MATRIX_NORMS.get(order) if isinstance(order, (int, float)) else None
    if found is None:
        if order not in ("nuc", 2, -2):
            raise errors.BadArgument(f"norm: ord={order!r} is no norm of matrices", argument="ord",
                                     expected="None, 'fro', 1, -1, inf or -inf", found=repr(order))
        raise errors.Unsupported(f"norm: ord={order!r} of a matrix needs its singular values: "
                                 "linalg.matrix_norm() has it", argument="ord",
                                 expected="None, 'fro', 1, -1, inf or -inf", found=repr(order))
    extremum, i = found
    sums = reduced("norm", node, axes[i], True, more=(("ord", "1"),))
    initial = 0 if extremum == "max" and 0 in node.shape else None  # NumPy's of no rows
    return reduced(extremum, sums, axes, keepdims, initial=initial)
