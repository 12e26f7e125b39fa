"""Quantiles, exact, in a bounded number of passes: gd.median(a, axis=0), gd.quantile(a, [0.1]).

They have NumPy's names, parameters and meaning, and give lazies. Nothing is sorted and no copy is
made: the daemon finds the elements of the wanted ranks by counting.

Parameters
----------
a : Lazy or array_like
    Of any shape.
q : float or array_like of float
    Which: 0 to 1, of percentiles 0 to 100. A row of them gives a first axis of as many.
axis : int, tuple of ints, or None
    The axes that are reduced; negative ones count from the last. None: all of them.
out : optional
    Where the result goes, as of Lazy.compute(): then it is computed at once, and out is given back.
overwrite_input : bool
    Means nothing: a is read alone.
method : str
    What lies between two elements: "linear", "lower", "higher", "nearest", "midpoint" and all
    others of NumPy's.
keepdims : bool
    Whether the reduced axes stay with length 1, so that the result broadcasts with a.
weights : Lazy or array_like, optional
    With method "inverted_cdf", of a's shape or that of its reduced axes: how much each element
    counts. Elements are sorted then, as by gd.argsort().

Returns
-------
Lazy
    Of a's shape without the reduced axes, behind the axis of q; 0-d where all are. `out` where it
    was given.

Raises
------
NoAxis
    An axis is out of range or named twice: a BadShape, a ValueError, an IndexError and NumPy's
    AxisError.
BadArgument
    q is out of range, or the method unknown.
Unsupported
    q of several axes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from .._lazy.array import Lazy
from .._lazy.graph import Node, Number, Shape, Whole, Words, number, strong
from .._lazy.leaves import ArraySource
from .._lazy.moves import array_of, concatenate
from .._lazy.operands import Operand
from .describing import describe
from .reducing import Axis, axes_of
from .._lazy.results import made
from .._lazy.text import number_text
from .weighted import weighted

_MAX_Q = 8  # of one call in the daemon's language
_MAX_Q_ALONG_AXES = 4  # which keeps counts for each slice
_METHODS = frozenset([
    "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased",
    "normal_unbiased"])


def _axes(op: str, axis: object, node: Node) -> Shape:
    """NumPy's quantiles take lists of axes, too."""
    return axes_of(op, tuple(axis) if isinstance(axis, list) else axis, len(node.shape))


def _node(op: str, node: Node, q: str | None, n: int | None, axis: Axis, words: Words,
          keepdims: bool) -> Whole:
    """q: as text; n: how many, None of one that gives no axis."""
    axes = _axes(op, axis, node)
    sizes = [1 if one in axes else size for one, size in enumerate(node.shape)
             if keepdims or one not in axes]
    more: Words = () if q is None else (("", q),)
    if len(axes) < len(node.shape):
        named = ",".join(map(str, axes))
        more = (*more, ("axis", named if len(axes) == 1 else f"({named})"))
    more = (*more, *words)
    if keepdims and node.shape:
        more = (*more, ("keepdims", "True"))
    return Whole(op, (node,), (), tuple(sizes if n is None else [n, *sizes]), more)


def _check_q(op: str, values: Any) -> None:
    last = 100 if "percentile" in op else 1
    for value in values:
        if not 0 <= value <= last:
            raise errors.BadArgument(f"{op}: q is {value}, not 0 to {last}", argument="q",
                                     expected=f"0 to {last}", found=str(value))


def _quantiles(op: str, a: object, q: Any, axis: Axis, method: object, keepdims: bool,
               weights: object) -> Node:
    node = array_of(a)
    if method not in _METHODS:
        raise errors.BadArgument(f"{op}: method is {method!r}", argument="method",
                                 expected=", ".join(sorted(_METHODS)), found=repr(method))
    words: Words = () if method == "linear" else (("method", str(method)),)
    if isinstance(q, Lazy):
        q = q.compute()
    if isinstance(q, (int, float)) and not isinstance(q, np.generic) and weights is None:
        _check_q(op, [q])
        return _node(op, node, number_text(number(q)).strip("()"), None, axis, words, keepdims)
    given = np.asarray(q)
    if given.ndim > 1:
        raise errors.Unsupported(f"{op}: q of shape {given.shape} has several axes; the daemon "
                                 "computes one row of them", argument="q", expected="one axis",
                                 found=str(given.shape))
    _check_q(op, given.ravel().tolist())
    if weights is not None:
        return weighted(op, node, q, _axes(op, axis, node), axis, method, keepdims, weights)._node
    if op.startswith("nan") and 0 in node.shape:  # NumPy's answer is that of nanmean, whatever q is
        return _node(op, node, "0.5", None, axis, words, keepdims)
    if given.ndim == 0:
        text = number_text(_number(op, given[()]))
        return _rounded(_node(op, node, text, None, axis, words, keepdims), node, given.dtype)
    is_whole = len(_axes(op, axis, node)) == len(node.shape)
    most = _MAX_Q if is_whole else _MAX_Q_ALONG_AXES
    parts = [given[i:i + most] for i in range(0, len(given), most)]
    rows = [_rounded(_node(op, node, _listed(part), len(part), axis, words, keepdims), node,
                     given.dtype) for part in parts]
    if not rows:
        one = _node(op, node, "[0.5]", 1, axis, words, keepdims)
        return ArraySource(np.empty((0, *one.shape[1:]), Lazy._of(one).dtype))
    return rows[0] if len(rows) == 1 else concatenate([Lazy._of(row) for row in rows])._node


def _listed(values: Any) -> str:
    texts = [number_text(Number(one if isinstance(one, int) else float(one), None))
             for one in values.tolist()]
    return f"[{','.join(texts)}]"


def _number(op: str, q: Any) -> Number:
    """Integers choose elements, as Python's do; floats and parts of 100 are float64."""
    if "percentile" not in op and isinstance(q, (np.integer, np.bool_)):
        return number(int(q))
    return strong(np.float64(q))


def _rounded(found: Whole, node: Node, q: np.dtype[Any]) -> Node:
    """q in float32 gives no more than that, of what is no more either."""
    one, own = Lazy._of(found), Lazy._of(node).dtype
    is_narrow = q.kind == "f" and np.result_type(own, q) == np.float32
    return one.astype(np.float32)._node if is_narrow and one.dtype == np.float64 else found


def quantile(a: Operand, q: Operand, axis: Axis = None, out: object = None,
             overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
             weights: Operand | None = None) -> Lazy:
    """the value below which a part q, from 0 to 1, of the elements lies"""
    return made(_quantiles("quantile", a, q, axis, method, keepdims, weights), out)


def percentile(a: Operand, q: Operand, axis: Axis = None, out: object = None,
               overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
               weights: Operand | None = None) -> Lazy:
    """the same with q from 0 to 100"""
    return made(_quantiles("percentile", a, q, axis, method, keepdims, weights), out)


def median(a: Operand, axis: Axis = None, out: object = None, overwrite_input: bool = False,
           keepdims: bool = False) -> Lazy:
    """the middle element, or the mean of the two"""
    return made(_node("median", array_of(a), None, None, axis, (), keepdims), out)


def nanquantile(a: Operand, q: Operand, axis: Axis = None, out: object = None,
                overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
                weights: Operand | None = None) -> Lazy:
    """quantile of what is not NaN"""
    return made(_quantiles("nanquantile", a, q, axis, method, keepdims, weights), out)


def nanpercentile(a: Operand, q: Operand, axis: Axis = None, out: object = None,
                  overwrite_input: bool = False, method: str = "linear", keepdims: bool = False,
                  *, weights: Operand | None = None) -> Lazy:
    """percentile of what is not NaN"""
    return made(_quantiles("nanpercentile", a, q, axis, method, keepdims, weights), out)


def nanmedian(a: Operand, axis: Axis = None, out: object = None, overwrite_input: bool = False,
              keepdims: bool = False) -> Lazy:
    """median of what is not NaN"""
    return made(_node("nanmedian", array_of(a), None, None, axis, (), keepdims), out)


__all__ = ["quantile", "percentile", "median", "nanquantile", "nanpercentile", "nanmedian"]

if __doc__:  # not where they are left out
    describe(__doc__, [quantile, percentile, median, nanquantile, nanpercentile, nanmedian])
