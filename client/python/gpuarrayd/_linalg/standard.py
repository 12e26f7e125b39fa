"""gd.array_api.linalg: the linear algebra extension of the array API standard of 2025.12.

Products, norms of vectors, traces and diagonals are lazy. Decompositions and solutions are found
when they are called, as by gd.linalg, and come as lazies of what they are. Matrices are of any size
that gd.linalg takes; stacks of them, of at most 256 MiB, are NumPy's. There are no complex numbers,
hence no eig and eigvals.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import errors
from .._functions import einsum as _einsum
from .._functions import solving as _solving
from .._functions.creation import eye
from .._functions.derived import here
from .._functions.functions import abs, not_equal, pow, sqrt, square
from .._functions.products import matmul, outer, tensordot, vecdot
from .._functions.reductions import max, min, norm, sum
from .._lazy.array import Lazy, lazy
from .._lazy.moves import broadcast_arrays, broadcast_to, matrix_transpose, moveaxis, stack
from .._lazy.operands import Operand
from . import singular as _singular
from . import tall as _tall
from .matrices import NUMPY

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul",
           "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr",
           "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm"]


class SlogdetResult(NamedTuple):
    """What slogdet() gives."""

    sign: Lazy
    logabsdet: Lazy


def _each(found: Any) -> Any:
    """A named tuple of lazies of what is in another."""
    return type(found)(*[lazy(one) for one in found])


def _is_one(x: Operand) -> bool:
    """Whether it is a matrix, and has elements."""
    return lazy(x).ndim <= 2 and 0 not in lazy(x).shape


def _found(name: str, function: Callable[..., Any], x: Operand, *others: Operand,
           **how: Any) -> Any:
    """What gd.linalg finds of a matrix, and NumPy of a stack of them and of none."""
    if _is_one(x):
        return function(lazy(x), *others, **how)
    stacks = [here(f"linalg.{name}", lazy(one), "x", "one matrix after the other has any size")
              for one in (x, *others)]
    return getattr(NUMPY.linalg, name)(*stacks, **how)


def cholesky(x: Operand, /, *, upper: bool = False) -> Lazy:
    """The factor L of x = L @ L.T; upper: its transpose."""
    found = lazy(_found("cholesky", _solving.cholesky, x))
    return matrix_transpose(found) if upper else found


def cross(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Lazy:
    """The vector products of vectors of three elements along an axis."""
    a, b = (moveaxis(lazy(one), axis, -1) for one in (x1, x2))
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise errors.BadShape(f"cross: vectors of {a.shape[-1]} and {b.shape[-1]} elements",
                              argument="x1", expected="3 elements along the axis",
                              found=f"{a.shape[-1]} and {b.shape[-1]}")
    a, b = broadcast_arrays(a, b)
    made = [a[..., i - 2] * b[..., i - 1] - a[..., i - 1] * b[..., i - 2] for i in range(3)]
    return moveaxis(stack(made, -1), -1, axis)


def det(x: Operand, /) -> Lazy:
    """Determinants."""
    return lazy(_found("det", _solving.det, x))


def diagonal(x: Operand, /, *, offset: int = 0) -> Lazy:
    """Elements on the diagonals of the last two axes."""
    return _einsum.diagonal(x, offset, -2, -1)


def eigh(x: Operand, /) -> Any:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    return _each(_found("eigh", _singular.eigh, x))


def eigvalsh(x: Operand, /) -> Lazy:
    """Eigenvalues of symmetric matrices."""
    return lazy(_found("eigh", _singular.eigh, x)[0])


def inv(x: Operand, /) -> Lazy:
    """Inverses."""
    return lazy(_found("inv", _solving.inv, x))


def matrix_norm(x: Operand, /, *, keepdims: bool = False, ord: Any = "fro") -> Lazy:  # noqa: A002
    """Norms of matrices."""
    return lazy(_tall.matrix_norm(x, keepdims=keepdims, ord=ord))


def matrix_power(x: Operand, n: int, /) -> Lazy:
    """Square matrices to a whole power, by as few products as its bits say."""
    base, n = lazy(x), operator.index(n)
    if base.ndim < 2 or base.shape[-1] != base.shape[-2]:
        raise _solving.NotSquare(f"matrix_power: a matrix of shape {base.shape}", argument="x",
                                 expected="square matrices", found=str(base.shape))
    if n == 0:
        return broadcast_to(eye(base.shape[-1], dtype=base.dtype), base.shape)
    base, n = (inv(base), -n) if n < 0 else (base, n)
    made: Lazy | None = None
    while n:
        if n & 1:
            made = base if made is None else matmul(made, base)
        n >>= 1
        base = matmul(base, base) if n else base
    assert made is not None
    return made


def matrix_rank(x: Operand, /, *, rtol: Any = None) -> Lazy:
    """How many singular values are larger than the part rtol of the largest."""
    values: Any = np.asarray(svdvals(x))
    if rtol is None:
        rtol = builtins.max(lazy(x).shape[-2:]) * np.finfo(values.dtype).eps
    least = np.asarray(rtol)[..., None] * values.max(-1, keepdims=True, initial=0)
    return lazy(np.count_nonzero(values > least, -1))


def pinv(x: Operand, /, *, rtol: Any = None) -> Lazy:
    """Pseudo-inverses."""
    return lazy(_found("pinv", _tall.pinv, x, **{} if rtol is None else {"rtol": rtol}))


def qr(x: Operand, /, *, mode: str = "reduced") -> Any:
    """Q with columns of length 1 at right angles, and upper triangular R: x = Q @ R."""
    return _each(_found("qr", _tall.qr, x, mode=mode))


def slogdet(x: Operand, /) -> SlogdetResult:
    """Signs and logarithms of determinants."""
    return SlogdetResult(*[lazy(one) for one in _found("slogdet", _solving.slogdet, x)])


def solve(x1: Operand, x2: Operand, /) -> Lazy:
    """The solution of x1 @ x = x2."""
    return lazy(_found("solve", _solving.solve, x1, x2))


def svd(x: Operand, /, *, full_matrices: bool = True) -> Any:
    """Singular values and vectors, x = U @ diag(S) @ Vh."""
    return _each(_found("svd", _singular.svd, x, full_matrices=full_matrices))


def svdvals(x: Operand, /) -> Lazy:
    """Singular values, falling."""
    return lazy(_found("svd", _tall.svdvals, x, **{} if _is_one(x) else {"compute_uv": False}))


def trace(x: Operand, /, *, offset: int = 0, dtype: npt.DTypeLike | None = None) -> Lazy:
    """The sums of the diagonals of the last two axes."""
    return _einsum.trace(x, offset, -2, -1, dtype)


_NORMS: dict[float, Callable[..., Lazy]] = {
    math.inf: lambda x, **how: max(abs(x), **how), -math.inf: lambda x, **how: min(abs(x), **how),
    0: lambda x, **how: sum(not_equal(x, 0), **how).astype(x.dtype),
    1: lambda x, **how: sum(abs(x), **how), 2: lambda x, **how: sqrt(sum(square(x), **how))}


def vector_norm(x: Operand, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False,
                ord: float = 2) -> Lazy:  # noqa: A002
    """Norms of vectors along axes; None: along all."""
    found = lazy(x)
    found = found if found.dtype.kind == "f" else found.astype("f8")
    if isinstance(axis, int) or axis is None and found.ndim == 1:
        return norm(found, ord, 0 if axis is None else axis, keepdims)
    how: Any = {"axis": None if axis is None else tuple(axis), "keepdims": keepdims}
    if ord in _NORMS:
        return _NORMS[ord](found, **how)
    return pow(sum(pow(abs(found), ord), **how), 1 / ord)
