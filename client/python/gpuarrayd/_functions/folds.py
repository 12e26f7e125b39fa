"""np.hypot.reduce(x) and its like: reductions that the daemon has not, by those that it has.

Each is of (x, axis, keepdims), and exact where NumPy's is. Called by protocols.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from .._lazy.array import Lazy, lazy_call
from .._lazy.moves import squeeze
from .reducing import axes_of
from .reductions import count_nonzero, logsumexp, nanmax

Axis = Any


def _xor(x: Lazy, axis: Axis, keepdims: bool) -> Lazy:
    found: Lazy = count_nonzero(x, axis=axis, keepdims=keepdims) % 2 == 1
    return found


def _bits(name: str, count: Callable[[Lazy, Axis, bool], Lazy]) -> Callable[..., Lazy]:
    """All bits in one pass, along an axis of their own."""
    def fold(x: Lazy, axis: Axis, keepdims: bool) -> Lazy:
        if x.dtype.kind == "b":
            return count(x, axis, keepdims)
        if x.dtype.kind not in "iu":
            raise errors.BadDtype(f"np.{name}.reduce of {x.dtype.name}", argument="x",
                                  expected="integers or bool", found=x.dtype.name)
        n = 8 * x.dtype.itemsize
        bits = (np.uint64(1) << np.arange(n, dtype="u8")).astype(f"u{n // 8}").view(x.dtype)
        axes = axes_of(f"np.{name}.reduce", axis, x.ndim)
        there = count((x[..., None] & bits) != 0, axes, keepdims)
        found: Lazy = lazy_call("where", there, bits, x.dtype.type(0)).sum(axis=-1).astype(x.dtype)
        return found
    return fold


def _hypot(x: Lazy, axis: Axis, keepdims: bool) -> Lazy:
    """Scaled, so that no square is too large: infinite where an element is, as hypot()."""
    kind = lazy_call("hypot", x, x).dtype
    size = abs(x.astype(kind))
    most = nanmax(size, axis=axis, keepdims=True)
    scale = lazy_call("where", (most > 0) & (most < np.inf), most, kind.type(1))
    root = lazy_call("sqrt", ((size / scale)**2).sum(axis=axis, keepdims=True)) * scale
    found = lazy_call("where", most == np.inf, kind.type(np.inf), root)
    return found if keepdims else squeeze(found, axes_of("np.hypot.reduce", axis, x.ndim))


def _logaddexp(x: Lazy, axis: Axis, keepdims: bool) -> Lazy:
    kind = lazy_call("logaddexp", x, x).dtype
    found: Lazy = logsumexp(x.astype(kind), axis=axis, keepdims=keepdims)
    return found


FOLDS: dict[str, Callable[[Lazy, Axis, bool], Lazy]] = {
    "logical_xor": _xor, "hypot": _hypot, "logaddexp": _logaddexp,
    "bitwise_and": _bits("bitwise_and", lambda x, axis, keepdims: x.all(axis, keepdims=keepdims)),
    "bitwise_or": _bits("bitwise_or", lambda x, axis, keepdims: x.any(axis, keepdims=keepdims)),
    "bitwise_xor": _bits("bitwise_xor", _xor),
}
