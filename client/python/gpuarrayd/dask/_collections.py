"""From an expression over dask arrays to a graph.

The graph is made as dask.array.elemwise() makes it: shapes broadcast, chunks that do not fit
together are cut until they do, one task for each block of the result. What the result is, its shape
and dtype, is the daemon's answer to the plan of the whole, so nothing is computed for it, and what
the daemon does not compute is refused before there is a graph. Keys follow from the expression and
the arguments alone.

A task sees its own blocks only. evaluate() therefore refuses what depends on all of an array;
map_blocks() takes each block for the whole.
"""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, TypeAlias, overload

import dask.array as da
import numpy as np
from dask.base import is_dask_collection, tokenize
from numpy.typing import DTypeLike

from .._arguments import convert as _arguments
from .._jobs.evaluate import _texts as texts
from .._jobs.evaluate import arguments
from .._jobs.request import Planned, Request
from ..errors import BadArgument, BadShape, NoDaemon, Unsupported
from .._lazy.array import Lazy
from ._blocks import Block, source

_untyped: Any = da  # most of its functions have no types

Dtypes: TypeAlias = DTypeLike | Sequence[DTypeLike] | None
Options: TypeAlias = tuple[str | None, int, str | None]  # engine, priority, label

# Functions whose value in one place depends on other places.
OF_THE_WHOLE = ("sum", "prod", "mean", "var", "std", "min", "max", "amin", "amax", "ptp", "argmin",
                "argmax", "any", "all", "count_nonzero", "norm", "nansum", "nanprod", "nanmean",
                "nanvar", "nanstd", "nanmin", "nanmax", "logsumexp", "index", "quantile",
                "percentile", "median", "nanquantile", "nanpercentile", "nanmedian", "cumsum",
                "cumprod", "bincount", "histogram", "histogram_bin_edges", "searchsorted",
                "digitize", "take", "matmul", "tensordot", "near", "qr_r", "window_sum",
                "window_mean", "window_min", "window_max", "window_std", "window_median",
                "window_rank", "correlate", "convolve")
# Those whose value depends on a seed and a place: each block would have the same.
RANDOM = ("uniform", "normal", "lognormal", "exponential", "integers", "bernoulli", "poisson",
          "choice", "permutation")
_RANDOM = re.compile(rf"\b({'|'.join(RANDOM)})\b\s*\(")
_WHOLE = re.compile(rf"\b({'|'.join(OF_THE_WHOLE)})\b\s*\(")

_OWN = ("sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "count_nonzero")
_DASKS = {"norm": "linalg.norm", "logsumexp": "reduction", "histogram_bin_edges": "histogram"}

_NOT_HERE = {
    "out": "a dask array is new",
    "to": "dask.array.store(), to_hdf5() and to_zarr() write a dask array",
    "progress": "Dask has its own, dask.diagnostics.ProgressBar and the dashboard",
    "mode": "near() and windows need more than a block",
    "local_dict": "arguments are given by their names",
}


@overload
def evaluate(expr: str, /, *, dtype: DTypeLike = ..., engine: str | None = ...,
             priority: int = ..., label: str | None = ..., **arrays: Any) -> da.Array: ...
@overload
def evaluate(expr: Sequence[str], /, *, dtype: Dtypes = ..., engine: str | None = ...,
             priority: int = ..., label: str | None = ..., **arrays: Any) -> list[da.Array]: ...
def evaluate(expr: str | Sequence[str], /, *, dtype: Dtypes = None, engine: str | None = None,
             priority: int = 0, label: str | None = None,
             **arrays: Any) -> da.Array | list[da.Array]:
    """An expression over dask arrays, as a dask array: gd.evaluate() for each block of the result.

    The result does not depend on the chunks. Reductions and `index` are refused, because their
    values depend on the whole array: gd.dask.mean() and its like compute them, as in
    `evaluate("x - m", x=x, m=gd.dask.mean(x, axis=0))`. So are random numbers, of which each block
    would have the same.

    Parameters
    ----------
    expr : str, or list of str
        As of gd.evaluate(). A list gives a list of dask arrays, and one job for each block computes
        them all, in one pass over it.
    dtype : dtype, or list of them, optional
        Of the result. None: the daemon is asked, which is the one of this process (connected, or
        started, as for gd.evaluate()); nothing is computed. Where this process can reach no daemon
        say the dtype here; the results are then converted to it where it differs.
    engine, priority, label : optional
        Of each block's job, as of gd.evaluate(); priority is the daemon's, not Dask's.
    **arrays : dask array, array_like or number
        What the names in `expr` stand for; names not given come from the caller's variables. NumPy
        arrays become part of the graph. Shapes broadcast, and chunks are made to fit, as in
        dask.array. Python's numbers are weak, as in NumPy.

    Returns
    -------
    dask.array.Array, or list of them
        Of the shape to which the arguments broadcast. Its blocks are plain ndarrays; those of up to
        16 MiB lie in shared memory, as long as there are not more than 128 MiB of them in a
        process.

    Raises
    ------
    Unsupported
        A function of the whole array, or an argument whose blocks are not plain ndarrays.
    NoDaemon, Timeout
        No daemon can be asked, and `dtype` is not given.
    BadExpression, UnknownName, BadArity, BadShape, BadDtype, NoEngine
        As of gd.evaluate(). BadShape also: a result does not have the shape of all arguments
        together.

    Tasks raise what gd.evaluate() raises; a daemon that is started again meanwhile is waited for.
    """
    return _graph(expr, dtype, arrays, (engine, priority, label), sys._getframe(1), True)


@overload
def map_blocks(expr: str, /, *, dtype: DTypeLike = ..., engine: str | None = ...,
               priority: int = ..., label: str | None = ..., **arrays: Any) -> da.Array: ...
@overload
def map_blocks(expr: Sequence[str], /, *, dtype: Dtypes = ..., engine: str | None = ...,
               priority: int = ..., label: str | None = ..., **arrays: Any) -> list[da.Array]: ...
def map_blocks(expr: str | Sequence[str], /, *, dtype: Dtypes = None, engine: str | None = None,
               priority: int = 0, label: str | None = None,
               **arrays: Any) -> da.Array | list[da.Array]:
    """An expression that takes each block for the whole: `map_blocks("x - mean(x)", x=x)`.

    As evaluate(), but reductions and `index` are allowed and mean the block, so that the result
    depends on the chunks. Everything else is the same, and evaluate() is to be preferred where both
    can be used.

    It differs from dask.array.map_blocks() in that it takes the text of an expression and named
    arrays, where that takes a Python function and arrays by position; in that the dtype is known
    without calling anything; and in that a block keeps its shape (there are no chunks, drop_axis,
    new_axis, block_info).

    Parameters, returns and raises as evaluate().
    """
    return _graph(expr, dtype, arrays, (engine, priority, label), sys._getframe(1), False)


def _graph(expr: str | Sequence[str], dtype: Dtypes, given: dict[str, Any],
           options: Options, frame: FrameType, is_whole: bool) -> da.Array | list[da.Array]:
    exprs = texts(expr)
    for text in exprs:
        _refuse_random(text)
        if is_whole:
            _refuse_whole(text)
    blocks, scalars = _operands(_values(exprs, given, frame))
    shape = _broadcast(blocks)
    dtypes = _planned(exprs, blocks, scalars, shape, options[0]) if dtype is None \
        else _said(dtype, len(exprs))
    task = Block(exprs, tuple(blocks), scalars, dtypes, *options)
    token = tokenize(exprs, dtypes, options, list(blocks), list(blocks.values()),
                     sorted(scalars.items(), key=operator.itemgetter(0)), is_whole)
    if isinstance(expr, str):
        return _blockwise(task, list(blocks.values()), dtypes[0], f"gpuarrayd-{token}")
    together = _blockwise(task, list(blocks.values()), np.dtype(object), f"gpuarrayd-all-{token}")
    if len(exprs) == 1:
        return [_blockwise(_itself, [together], dtypes[0], f"gpuarrayd-0-{token}")]
    return [_blockwise(operator.itemgetter(i), [together], one, f"gpuarrayd-{i}-{token}")
            for i, one in enumerate(dtypes)]


def _itself(block: Any) -> Any:
    return block


def _blockwise(task: Any, arrays: list[Any], dtype: np.dtype[Any], name: str) -> da.Array:
    ndim = max(array.ndim for array in arrays)
    pairs = [part for array in arrays for part in (array, tuple(range(array.ndim))[::-1])]
    made: da.Array = _untyped.blockwise(task, tuple(range(ndim))[::-1], *pairs, name=name,
                                        dtype=dtype, meta=np.empty((0,) * ndim, dtype))
    return made


def _refuse_random(text: str) -> None:
    found = _RANDOM.search(text)
    if found is not None:
        raise Unsupported(
            f"{found[1]}() would give each block the same numbers: use dask.array.random, or "
            "da.from_array() of a file that gd.save() has filled", argument="expr",
            expected="no random numbers", found=f"{found[1]}()")


def _refuse_whole(text: str) -> None:
    found = _WHOLE.search(text)
    if "@" in text or (found is not None and found[1] == "matmul"):
        raise Unsupported("a matrix product depends on whole rows and columns, and a task sees one "
                          "block of each: dask.array.matmul() multiplies dask arrays, gd.matmul() "
                          "files of any size", argument="expr",
                          expected="an element-wise expression", found="@")
    if found is None:
        return
    name = found[1]
    if name == "index":
        instead = "give the indices as an array: dask.array.arange() or indices()"
    else:
        own = {"amin": "min", "amax": "max"}.get(name, name)
        instead = f"compute it with gd.dask.{own}() and give it as an argument" \
            if own in _OWN else f"compute it with dask.array.{_DASKS.get(own, own)}() and give " \
            "it as an argument"
    raise Unsupported(
        f"{name}() depends on the whole array, and a task sees one block: {instead}, or use "
        f"gd.dask.map_blocks() if the {name} of each block alone is meant", argument="expr",
        expected="an element-wise expression", found=f"{name}()")


def _values(exprs: tuple[str, ...], given: dict[str, Any], frame: FrameType) -> dict[str, Any]:
    """The values of the names that the texts use."""
    values = arguments(exprs, {name: value for name, value in given.items()
                               if name not in _NOT_HERE}, frame)
    for name in given:
        if name in _NOT_HERE and name not in values:
            raise BadArgument(f"{name}= is an option of gd.evaluate(); {_NOT_HERE[name]}",
                              argument=name, found=f"{name}=")
    return values


def _operands(values: Mapping[str, Any]) -> tuple[dict[str, da.Array], dict[str, object]]:
    """Those that have blocks, and those that are the same for every task."""
    blocks: dict[str, da.Array] = {}
    scalars: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, (bool, int, float, np.generic)):
            scalars[name] = value
        else:
            blocks[name] = array_of(value, name)
    if not blocks:
        raise BadArgument("there is no array among the arguments: gd.evaluate() computes numbers",
                          expected="a dask array", found="numbers")
    return blocks, scalars


def array_of(value: Any, name: str) -> da.Array:
    """As a dask array whose blocks are ndarrays that the daemon computes."""
    if not isinstance(value, da.Array):
        _refuse_other(value, name)
        value = _untyped.asanyarray(value)
    meta = value._meta
    if isinstance(meta, Lazy):
        value = value.map_blocks(source, dtype=value.dtype,
                                 meta=np.empty((0,) * value.ndim, value.dtype))
        meta = value._meta
    if not isinstance(meta, np.ndarray):
        kind = _kind(meta)
        raise Unsupported(f"the blocks of {name} are {kind}, not ndarrays: convert them",
                          argument=name, expected="blocks that are ndarrays", found=kind)
    _arguments.check_array(meta, name)
    made: da.Array = value
    return made


def _refuse_other(value: Any, name: str) -> None:
    kind = _kind(value)
    if is_dask_collection(value):
        instead = f"use {name}.data" if isinstance(getattr(value, "data", None), da.Array) \
            else f"make one of it: dask.array.from_delayed(), or {name}.to_dask_array(lengths=True)"
        raise Unsupported(f"{name} is a {kind}, not a dask array: {instead}", argument=name,
                          expected="a dask array", found=kind)
    elif hasattr(type(value), "__gad_source__"):
        raise Unsupported(f"{name} is a {kind}, which Dask does not cut into blocks: use gd.save() "
                          "or gd.compute() with it, or a dask array of the same file",
                          argument=name, expected="a dask array", found=kind)


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _broadcast(blocks: Mapping[str, da.Array]) -> tuple[int, ...]:
    """The shape of all together; sizes that Dask does not know count as 1."""
    shapes = [_known(array) for array in blocks.values()]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        told = ", ".join(f"{name} {array.shape}" for name, array in blocks.items())
        raise BadShape(f"shapes do not broadcast together: {told}", argument="arrays",
                       expected="shapes that broadcast", found=told) from None


def _known(array: da.Array) -> tuple[int, ...]:
    return tuple(1 if np.isnan(size) else int(size) for size in array.shape)


def _planned(exprs: tuple[str, ...], blocks: Mapping[str, da.Array], scalars: Mapping[str, object],
             shape: tuple[int, ...], engine: str | None) -> tuple[np.dtype[Any], ...]:
    """The dtypes of results that have the shape of all arguments."""
    found = planned(exprs, blocks, scalars, engine)
    for text, (_, own, _) in zip(exprs, found, strict=True):
        if own != shape:
            raise BadShape(f"{text!r} has the shape {own}, and all arguments together {shape}: "
                           "a block of the result must be as large as those that it is made of",
                           argument="expr", expected=str(shape), found=str(own))
    return tuple(dtype for dtype, _, _ in found)


def planned(exprs: tuple[str, ...], blocks: Mapping[str, da.Array], scalars: Mapping[str, object],
            engine: str | None) -> list[Planned]:
    """What the daemon says of arrays of these dtypes and shapes, which take no memory."""
    args: dict[str, object] = {name: np.broadcast_to(np.zeros((), array.dtype), _known(array))
                               for name, array in blocks.items()}
    request = Request([(text, None) for text in exprs], {**args, **scalars}, [None] * len(exprs),
                      engine)
    try:
        return request.plan()
    except NoDaemon as error:
        raise NoDaemon(f"{error.message}; with dtype= a graph is made without a daemon",
                       argument=error.argument, expected=error.expected,
                       found=error.found) from error


def _said(dtype: Dtypes, n: int) -> tuple[np.dtype[Any], ...]:
    if isinstance(dtype, list):
        if len(dtype) != n:
            raise BadArgument(f"dtype has {len(dtype)} members for {n} results", argument="dtype",
                              expected=str(n), found=str(len(dtype)))
        return tuple(np.dtype(one) for one in dtype)
    return (np.dtype(dtype),) * n  # type: ignore[arg-type]
