"""Quantiles with weights, as NumPy has them: the first of the sorted elements up to which there is
a part q of all weights. Rows are sorted; what `gd.argsort` says of them is true here.

Called by quantiles.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from .._lazy.array import Lazy, lazy_call
from .._lazy.graph import Node, Shape
from .._lazy.moves import array_of, broadcast_to, stack, take_along_axis
from .reductions import count_nonzero
from .scans import cumsum


def _weights_of(x: Lazy, axes: Shape, given: Any, axis: Any) -> Lazy:
    """As large as x."""
    w = Lazy._of(array_of(given))
    if w.shape == x.shape:
        return w
    named = () if axis is None else tuple(np.atleast_1d(axis).tolist())
    if axis is None or w.shape != tuple([x.shape[one] for one in named]):
        raise errors.BadShape(f"weights of shape {w.shape} for {x.shape}", argument="weights",
                              expected=str(x.shape if axis is None else
                                           tuple([x.shape[one] for one in named])),
                              found=str(w.shape))
    w = w.transpose(np.argsort([one % x.ndim for one in named]).tolist())
    return broadcast_to(w[tuple([slice(None) if one in axes else None for one in range(x.ndim)])],
                        x.shape)


def _in_rows(x: Lazy, axes: Shape) -> Lazy:
    """The reduced axes as the last one."""
    kept = [one for one in range(x.ndim) if one not in axes]
    return x.transpose([*kept, *axes]).reshape((*[x.shape[one] for one in kept], -1))


def weighted(op: str, node: Node, q: Any, axes: Shape, axis: Any, method: object, keepdims: bool,
             weights: Any) -> Lazy:
    """numpy.quantile(x, q, axis, method="inverted_cdf", weights=weights)"""
    from .sorting import argsort  # which is made of more
    if method != "inverted_cdf":
        raise errors.BadArgument(f"{op}: only method 'inverted_cdf' has weights, as NumPy's",
                                 argument="method", expected="'inverted_cdf'", found=repr(method))
    x = Lazy._of(node)
    rows, loads = _in_rows(x, axes), _in_rows(_weights_of(x, axes, weights, axis), axes)
    is_nan = lazy_call("isnan", rows) if rows.dtype.kind == "f" else None
    if op.startswith("nan") and is_nan is not None:
        loads, rows = lazy_call("where", is_nan, 0, loads), lazy_call("where", is_nan, np.inf, rows)
    places = argsort(rows, axis=-1)
    run = cumsum(take_along_axis(loads, places, axis=-1), axis=-1, dtype="f8")
    part, n = run / run[..., -1:], rows.shape[-1]
    given = np.asarray(q) / (100 if "percentile" in op else 1)
    found = []
    for one in given.ravel().tolist():
        # of 0 it is the first that has any weight
        before = part <= 0 if one == 0 else part < one
        at = lazy_call("minimum", count_nonzero(before, axis=-1, keepdims=True), n - 1)
        found.append(take_along_axis(rows, take_along_axis(places, at, axis=-1), axis=-1)[..., 0])
    if is_nan is not None and not op.startswith("nan"):
        found = [lazy_call("where", is_nan.any(axis=-1), np.nan, one).astype(x.dtype)
                 for one in found]
    if keepdims:
        shape = tuple([1 if one in axes else n for one, n in enumerate(x.shape)])
        found = [one.reshape(shape) for one in found]
    return stack(found) if given.ndim else found[0]
