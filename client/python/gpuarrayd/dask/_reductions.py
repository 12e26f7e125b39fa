"""Reductions of dask arrays: each block by the daemon, what is left of the blocks by NumPy.

A block becomes a partial result in one job that reads it once; partial results are as large as the
kept axes of a block, and are combined as dask.array's own are, a few at a time. Sums are added in
float64 and means and spreads are combined as Chan, Golub and LeVeque (Updating formulae and a
pairwise algorithm for computing sample variances, 1979) do, so nothing is lost against one array;
the last bits depend on the chunks, as Dask's do.

Partial results that have several values have them along one more axis, the last, which Dask does
not know of and leaves alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.base import tokenize
from numpy.typing import DTypeLike

from .._jobs.request import Request
from .._functions.reducing import Axis, axes_of
from ._blocks import again
from ._collections import Options, array_of, planned

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Axes: TypeAlias = tuple[int, ...]

_untyped: Any = da
_PLAIN: dict[str, Callable[..., Any]] = {
    "sum": np.add.reduce, "prod": np.multiply.reduce, "min": np.minimum.reduce,
    "max": np.maximum.reduce, "any": np.logical_or.reduce, "all": np.logical_and.reduce,
    "count_nonzero": np.add.reduce}


class Partial:
    """What a task calls with a block: the partial result, with all axes.

    Parameters
    ----------
    op : str
    options
        engine, priority, label: as of gd.evaluate().
    """

    def __init__(self, op: str, options: Options) -> None:
        self.op = op
        self.options = options

    def __call__(self, block: Array, axis: Axes, keepdims: bool,
                 computing_meta: bool = False) -> Array:
        if computing_meta:
            return np.empty((0,) * np.ndim(block))
        n = math.prod(np.shape(block)[i] for i in axis)
        if n == 0 and self.op in ("min", "max"):  # none to choose from: none to combine
            return np.asarray(block)
        found = again(lambda: self._run(np.asarray(block), axis, n))
        if self.op in _PLAIN:
            return np.array(found[0])
        moments = [np.full(np.shape(found[0]), n, "f8"), *found]
        return np.stack(moments, axis=-1)

    def _run(self, block: Array, axis: Axes, n: int) -> list[Any]:
        names = _steps(self.op)
        if n == 0 and self.op not in _PLAIN:
            names = ["sum"] * len(names)  # which of nothing is 0, and no mean is
        is_float = block.dtype.kind == "f" and self.op in ("sum", "prod") \
            or self.op not in _PLAIN
        more = ",dtype=float64" if is_float else ""
        texts: list[tuple[str, str | None]] = \
            [(f"{name}(x,axis={_axes_text(axis)},keepdims=True{more})", None) for name in names]
        return Request(texts, {"x": block}, [None] * len(texts), *self.options).run()


def _axes_text(axes: Axes) -> str:
    return f"({','.join(map(str, axes))})" if len(axes) > 1 else str(axes[0]) if axes else "None"


def _steps(op: str) -> list[str]:
    return {"mean": ["mean"], "var": ["mean", "var"], "std": ["mean", "var"]}.get(op, [op])


class Combined:
    """What a task calls with partial results, one behind the other along the axes. ddof None:
    another partial result; else the result."""

    def __init__(self, op: str, ddof: float | None, dtype: np.dtype[Any]) -> None:
        self.op = op
        self.ddof = ddof
        self.dtype = dtype

    def __call__(self, parts: Array, axis: Axes, keepdims: bool) -> Any:
        if self.op in _PLAIN:
            if self.ddof is None and 0 in [parts.shape[i] for i in axis]:
                return parts
            made = _PLAIN[self.op](parts, axis=axis, keepdims=keepdims)
            return made if self.ddof is None else made.astype(self.dtype)
        moments = _combined(parts, axis)
        if self.ddof is None:
            return np.stack(moments, axis=-1)
        with np.errstate(all="ignore"):  # of no elements: NaN
            made = self._finished(*moments)
        made = made if keepdims else made.reshape(
            [size for i, size in enumerate(made.shape) if i not in axis])
        return made.astype(self.dtype)

    def _finished(self, n: Array, mean: Array, variance: Array | None = None) -> Array:
        if variance is None:
            return np.where(n > 0, mean, np.nan)
        spread = variance * n / np.maximum(n - (self.ddof or 0), 0)
        return np.sqrt(spread) if self.op == "std" else spread


def _combined(parts: Array, axis: Axes) -> list[Array]:
    """The number of elements, the mean, and where it is there the variance, of all together."""
    n, mean = parts[..., 0], parts[..., 1]
    total = n.sum(axis, keepdims=True)
    weights = n / np.maximum(total, 1)
    centre = (weights * mean).sum(axis, keepdims=True)
    made = [total, centre]
    if parts.shape[-1] > 2:
        made.append((weights * (parts[..., 2] + (mean - centre) ** 2)).sum(axis, keepdims=True))
    return made


def _reduced(op: str, x: Any, axis: Axis, dtype: DTypeLike | None, keepdims: bool, ddof: float,
             split_every: int | None, options: Options) -> da.Array:
    array = array_of(x, "x")
    axes = axes_of(op, axis, array.ndim)
    if dtype is None:
        text = f"{op}(x,axis={_axes_text(axes)})"
        [(wanted, _, _)] = planned((text,), {"x": array}, {}, options[0])
    else:
        wanted = np.dtype(dtype)
    token = tokenize(op, array, axes, wanted, keepdims, ddof, options)
    kept = array.ndim if keepdims else array.ndim - len(axes)
    made: da.Array = _untyped.reduction(
        array, Partial(op, options), Combined(op, ddof, wanted), axis=axes, keepdims=keepdims,
        dtype=wanted, split_every=split_every, combine=Combined(op, None, wanted),
        name=f"gpuarrayd-{op}-{token}", meta=np.empty((0,) * kept, wanted))
    return made


def _function(op: str, text: str) -> Callable[..., da.Array]:
    def call(x: Any, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False, *,
             split_every: int | None = None, engine: str | None = None, priority: int = 0,
             label: str | None = None) -> da.Array:
        return _reduced(op, x, axis, dtype, keepdims, 0, split_every, (engine, priority, label))
    return _told(call, op, text)


def _spread(op: str, text: str) -> Callable[..., da.Array]:
    def call(x: Any, axis: Axis = None, dtype: DTypeLike | None = None, ddof: float = 0,
             keepdims: bool = False, *, split_every: int | None = None, engine: str | None = None,
             priority: int = 0, label: str | None = None) -> da.Array:
        return _reduced(op, x, axis, dtype, keepdims, ddof, split_every, (engine, priority, label))
    return _told(call, op, text)


def _told(call: Callable[..., da.Array], op: str, text: str) -> Callable[..., da.Array]:
    call.__name__ = call.__qualname__ = op
    call.__doc__ = f"""The {text} along axes of a dask array, as a dask array.

    Each block is one job of the daemon where its task runs; what is left of the blocks is combined
    by NumPy, as dask.array.{op}() does. Blocks that are parts of files, as of
    da.from_array(gd.open(path), chunks), are read by the daemon alone.

    Parameters
    ----------
    x : dask array or array_like
    axis : int, tuple of ints, or None
        None: all axes.
    dtype : data-type, optional
        Of the result. None: NumPy's; the daemon of this process is asked, and nothing is computed.
    ddof : number
        Of var and std: the divisor is the number of elements less this.
    keepdims : bool
        Whether the reduced axes stay with length 1.
    split_every : int, optional
        How many partial results are combined at once, as in dask.array.
    engine, priority, label : optional
        Of each block's job, as of gd.evaluate().

    Returns
    -------
    dask.array.Array
        Of x's shape without the reduced axes. The last bits of sums depend on the chunks.

    Raises
    ------
    NoAxis
        An axis is out of range or named twice.
    Unsupported, BadDtype
        The blocks are not plain ndarrays of a dtype that is computed.
    NoDaemon, Timeout
        No daemon can be asked, and `dtype` is not given.
    """
    return call


sum = _function("sum", "sum")
prod = _function("prod", "product")
mean = _function("mean", "mean")
min = _function("min", "smallest element")
max = _function("max", "largest element")
any = _function("any", "truth of one element")
all = _function("all", "truth of all elements")
count_nonzero = _function("count_nonzero", "number of elements that are not zero")
var = _spread("var", "variance")
std = _spread("std", "standard deviation")

__all__ = ["sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "count_nonzero"]
