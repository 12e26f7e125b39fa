"""What decompositions share: which matrices are small, and passes over those that are not.

A pass is a job, or where its results have a row for each of the data's a job for each part of the
rows, so that what is in memory stays small; each part is read from where the one before has left it
in the page cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import errors
from .._functions.functions_of_one import isfinite
from .._functions.triangles import qr_r
from .._jobs.evaluate import evaluate
from .._lazy.array import Lazy, lazy
from .._lazy.leaves import ArraySource, FileSource
from .._lazy.many import ManySource
from .._lazy.operands import Operand

Array: TypeAlias = npt.NDArray[Any]
Callback: TypeAlias = Callable[[int, int, float], object]

NUMPY: Any = np  # whose overloads do not know of arguments that are passed on

SMALL_BYTES = 16 << 20  # of float64, that NumPy decomposes by itself
PART_BYTES = 64 << 20  # of what has a row for each row of the data
MOST_COLUMNS = 1023  # of qr_r, with one more behind them


class Run(NamedTuple):
    """How jobs run."""

    engine: str | None = None
    priority: int = 0
    label: str | None = None


def is_small(*operands: Operand) -> bool:
    """Whether all are so small that NumPy decomposes them in memory."""
    return sum(lazy(one).size for one in operands) * 8 <= SMALL_BYTES


def in_memory(operand: Operand, run: Run = Run()) -> Array:
    """The elements."""
    return operand if isinstance(operand, np.ndarray) else np.asarray(
        lazy(operand).compute(**run._asdict()))


def matrix_of(name: str, operand: Operand) -> Lazy:
    """A matrix of floats."""
    one = lazy(operand)
    if one.ndim != 2 or 0 in one.shape:
        raise errors.BadShape(f"{name}: {one.ndim}-dimensional array of shape {one.shape}",
                              argument="a", expected="two axes, with elements",
                              found=str(one.shape))
    return one if one.dtype.kind == "f" else one.astype("f8")


def check_few(name: str, matrix: Lazy) -> None:
    """That it has many rows and few columns."""
    rows, columns = matrix.shape
    if rows < columns or columns > MOST_COLUMNS:
        raise errors.Unsupported(f"{name}: {rows} rows and {columns} columns are too large for "
                                 "memory, and not a matrix of many rows", argument="a",
                                 expected=f"at most {MOST_COLUMNS} columns, and as many rows",
                                 found=str(matrix.shape))


def check_finite(name: str, matrix: Lazy, result: Array, run: Run = Run()) -> None:
    """Of the result of a pass: what is not finite comes from the data, and is looked for there."""
    if np.isfinite(result).all():
        return
    flat = isfinite(matrix).argmin()
    first = int(flat.compute(**run._asdict()))
    at = np.unravel_index(first, matrix.shape)
    value = float(matrix[at].compute(**run._asdict()))
    index = str(tuple(int(i) for i in at))
    if np.isfinite(value):
        raise errors.BadArgument(f"{name}: sums of squares overflow", argument="a",
                                 expected="elements whose squares are finite", found="infinity")
    raise errors.BadArgument(f"{name}: the element at {index} is {value}", argument="a",
                             expected="finite elements", found=f"{value} at {index}")


def triangle(name: str, matrix: Lazy, column: Operand | None = None, run: Run = Run()) -> Array:
    """R of the matrix in float64, with a column behind it, in one read; its diagonal is not
    negative."""
    matrix = matrix.astype("f8")
    r = np.asarray(qr_r(matrix, column).compute(**run._asdict()))
    check_finite(name, matrix, r, run)
    return r * np.where(np.diag(r) < 0, -1.0, 1.0)[:, None]


def parts(matrix: Lazy, width: int) -> Iterator[slice]:
    """Rows, so many that a result of that width fits memory."""
    step = max(1, PART_BYTES // (8 * width))
    for first in range(0, matrix.shape[0], step):
        yield slice(first, min(first + step, matrix.shape[0]))


def times(matrix: Lazy, right: Array, run: Run = Run()) -> Array:
    """matrix @ right, which is small."""
    return np.asarray((matrix @ right).compute(**run._asdict()), "f8")


def is_stored(matrix: Lazy) -> bool:
    """Whether it is an array that is there, and nothing computed of one."""
    return isinstance(matrix._node, (ArraySource, FileSource, ManySource))


def gram_times(matrix: Lazy, right: Array, run: Run = Run()) -> Array:
    """matrix.T @ (matrix @ right), in float64: of a stored matrix in one read, if what is in hand
    then fits the daemon's pool; else each part of the rows is read twice."""
    if is_stored(matrix):
        try:
            return np.asarray(evaluate("x.T @ (x @ w)", x=matrix, w=right, **run._asdict()), "f8")
        except errors.TooLargeForPool:
            pass
    result = np.zeros((matrix.shape[1], right.shape[1]))
    for rows in parts(matrix, right.shape[1]):
        part = matrix[rows]
        product = (part @ right).compute(**run._asdict())
        result += (part.T @ product).compute(**run._asdict())
    return result


