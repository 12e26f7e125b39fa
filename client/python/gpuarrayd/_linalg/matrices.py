"""What decompositions of matrices share: which are small, and how the library is called for others.

The library's functions (gpuarrayd-matrix.h) do everything that reads; here are NumPy's names.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import errors
from .._arguments import convert as _arguments
from .._jobs.request import Request, To, new_array
from .._lazy.array import Lazy, lazy
from .._lazy.graph import settled
from .._lazy.moved import Moved
from .._lazy.operands import Operand, node_of
from .._lazy.text import written
from .._lazy.streaming.unbounded import check_lengths
from .._session import current

if TYPE_CHECKING:
    from .. import _core

Array: TypeAlias = npt.NDArray[Any]
Callback: TypeAlias = Callable[[int, int, float], object]

NUMPY: Any = np  # whose overloads do not know of arguments that are passed on

SMALL_BYTES = 16 << 20  # of float64, that NumPy decomposes by itself
MADE_BYTES = 256 << 20  # of what no job reads as it is, and is made or decomposed in memory
FEW_COLUMNS = 1023  # of what is read rather than decomposed in memory
MOST_COLUMNS = 4096  # of an R

KINDS = ("svd", "pca", "eigh", "qr", "cov")


class Run(NamedTuple):
    """How jobs run."""

    engine: str | None = None
    priority: int = 0
    label: str | None = None


def is_small(*operands: Operand, is_read: bool = True) -> bool:
    """Whether all are so small that NumPy decomposes them in memory; not is_read: more is, as there
    is no way to read them instead."""
    n_bytes = sum(lazy(one).size for one in operands) * 8
    return n_bytes <= (SMALL_BYTES if is_read else MADE_BYTES)


def _known(operand: Operand) -> Lazy:
    """Whose rows are counted: of a generator's that are not, nothing can be decomposed."""
    one = lazy(operand)
    check_lengths(one.shape, [one._node])
    return one


def stack_of(operand: Operand, argument: str = "a") -> Lazy:
    """A matrix, or matrices along other axes."""
    one = _known(operand)
    if one.ndim < 2:
        raise errors.BadShape(f"an array of {one.ndim} axes is no matrix", argument=argument,
                              expected="two axes, or more", found=str(one.shape))
    return one


def is_tall(operand: Operand) -> bool:
    """Whether it has many rows and few columns."""
    shape = stack_of(operand).shape
    return len(shape) != 2 or shape[0] >= shape[1] <= FEW_COLUMNS


def has_few(operand: Operand, argument: str = "a") -> bool:
    """Whether it is so, or its transpose is."""
    shape = stack_of(operand, argument).shape
    return len(shape) != 2 or min(shape) <= FEW_COLUMNS


def is_wide(matrix: Lazy) -> bool:
    """Whether R is of it turned."""
    rows, columns = matrix.shape
    return rows < columns > FEW_COLUMNS and rows <= MOST_COLUMNS


def in_memory(operand: Operand, run: Run = Run()) -> Array:
    """The elements."""
    return operand if isinstance(operand, np.ndarray) else np.asarray(
        lazy(operand).compute(**run._asdict()))


def finite_in_memory(argument: str, operand: Operand, run: Run = Run()) -> Array:
    """The elements; one that is not finite is refused with its place, as by reads."""
    elements = np.asarray(in_memory(operand, run))
    bad = ~np.isfinite(elements)
    if not bad.any():
        return elements
    place = [int(i) for i in np.unravel_index(int(bad.argmax()), elements.shape)]
    what = "nan" if np.isnan(elements[tuple(place)]) else "infinite"
    raise errors.BadArgument(f"{argument}: element {place} is {what}: nothing fits it",
                             argument=argument, found=f"{what} at {place}",
                             expected="finite numbers; where(isfinite(x), x, 0) takes others as 0")


def matrix_of(name: str, operand: Operand, argument: str = "a") -> Lazy:
    """A matrix with elements."""
    one = _known(operand)
    if one.ndim != 2 or 0 in one.shape:
        raise errors.BadShape(f"{name}: {one.ndim}-dimensional array of shape {one.shape}",
                              argument=argument, expected="two axes, with elements",
                              found=str(one.shape))
    return one


class Data(NamedTuple):
    """What is decomposed, as the extension takes it."""

    session: _core.Session
    texts: list[str]
    sources: list[tuple[str, Any]]

    def outputs(self, to: Any = None) -> list[tuple[str, str | None, Any]]:
        return [(text, None, to) for text in self.texts]

    @property
    def is_array(self) -> bool:
        return self.texts[0] in (name for name, _ in self.sources)


def data_of(*operands: Operand) -> Data:
    """Expressions of elements; reductions, products and pieces in them are made once, before."""
    nodes = [settled(node_of(one) if not isinstance(one, Lazy) else one._node) for one in operands]
    for node in nodes:
        n_bytes = math.prod(node.shape) * 8
        if isinstance(node, Moved) and n_bytes > MADE_BYTES and not getattr(node, "is_view", False):
            raise errors.Unsupported(
                f"what is decomposed would be made in memory first, {n_bytes >> 20} MiB of pieces, "
                "products or reductions: gd.save() it, and open the file", argument="x",
                expected=f"at most {MADE_BYTES >> 20} MiB, or functions of an array's elements",
                found=f"{n_bytes >> 20} MiB")
    texts, sources = written(nodes)
    args = {name: source.argument() for name, source in sources.items()}
    session = current()
    request = Request([(text, None) for text in texts], args, [None] * len(texts))
    return Data(session, texts, request._sources(session))


def told_of_steps(callback: Callback | None) -> Callable[..., object] | None:
    """What is called as the library calls, with more than these three."""
    return callback and (lambda *now: callback(now[0], now[1], now[-1]))


def decomposed(kind: str, operand: Operand | Data, run: Run = Run(), k: int | None = None,
               values_only: bool = False, n_iter: int = 0, n_oversamples: int = 10, seed: int = 0,
               tol: float = 0.0, checkpoint: Any = None, callback: Callback | None = None,
               to: Any = None, explains: bool = False) -> Any:
    """gad_svd() and its like, by their kind."""
    if k is not None and k < 1:
        raise errors.BadRank(f"{kind}: k is {k}", argument="k", expected="1 or more", found=str(k))
    for name, given in (("n_iter", n_iter), ("n_oversamples", n_oversamples)):
        if not 0 <= given < 1 << 31:
            raise errors.BadArgument(f"{kind}: {name} is {given}", argument=name,
                                     expected="0 or more", found=str(given))
    data = operand if isinstance(operand, Data) else data_of(operand)
    options = (k or 0, values_only, n_iter, n_oversamples or -1, seed, tol,
               None if checkpoint is None else os.path.abspath(os.fsdecode(checkpoint)))

    found = data.session.decompose(
        data.outputs(to), data.sources, run.engine, run.priority, run.label, (KINDS.index(kind),),
        options, told_of_steps(callback), explains)
    if isinstance(found, dict) and found.get("warning"):
        warnings.warn(found["warning"], RuntimeWarning, stacklevel=4)
    return found


def planned(op: str, a: Operand, b: Operand | None, k: int | None, n_iter: int, out: Any,
            engine: str | None) -> tuple[Any, ...]:
    """method, steps, jobs, bytes that are read, written, carried, seconds, reads."""
    if op == "lstsq":
        data = data_of(a, np.zeros(0) if b is None else b)
        plan = data.session.lstsq(data.outputs(), data.sources, engine, 0, None, (0.0, ()), True)
    else:
        plan = decomposed(op, a, Run(engine), k, n_iter=n_iter, explains=True,
                          to=None if out is None else To(os.fspath(out)).destination)
    total = plan["total"]
    return (plan["method"], plan["iterations"], total["jobs"], total["read_bytes"],
            total["write_bytes"], plan["carry_bytes"], plan["seconds"], total["reads"])


def dense(made: Any) -> Array:
    """An array of what the extension gives."""
    shape, elements = made
    return np.frombuffer(elements, "f8").reshape(shape)


def check_few(name: str, matrix: Lazy) -> None:
    """That it has many rows and few columns."""
    rows, columns = matrix.shape
    if rows < columns or columns > MOST_COLUMNS:
        raise errors.Unsupported(f"{name}: {rows} rows and {columns} columns are too large for "
                                 "memory, and not a matrix of many rows", argument="a",
                                 expected=f"at most {MADE_BYTES >> 20} MiB of float64, or at most "
                                 f"{MOST_COLUMNS} columns, and as many rows",
                                 found=str(matrix.shape))


def destination(session: _core.Session, out: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """What takes a result, and how the extension calls it."""
    if out is None:
        return new_array(session, np.dtype("f8"), shape, "C")
    if isinstance(out, (str, os.PathLike)):
        return None, To(os.fspath(out)).destination
    return out, _arguments.sink(session, out, "out")
