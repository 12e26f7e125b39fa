"""Matrices with many rows, by one read each: lstsq, ridge, qr, svdvals, cond, matrix_norm, pinv.

The R of a QR decomposition (gd.qr_r) has all that they need to know of the rows: R.T @ R is
a.T @ a, without the squares. Results are as close to exact as LAPACK's in float64, whatever the
condition, of float32 data too. Matrices that are small go to NumPy's own LAPACK. Q and pinv are
lazies; each read of the data gives them anew, or gd.save() stores them.

Parameters
----------
a : Lazy or array_like
    A matrix; one that is not small has at most 1023 columns, and at least as many rows.
b : Lazy or array_like
    The right side: as many numbers as a has rows, or columns of them. Each column more of one that
    is not small takes a read more.
x : Lazy or array_like
    A matrix, as a.
rcond, rtol : float, optional
    Singular values up to this part of the largest are taken as zero. None: the precision of the
    dtype times the longer side.
alpha : float or sequence of floats
    For each the x with least |a @ x - b|**2 + alpha * |x|**2, from the same read.
mode : {"reduced", "r"}
    Q and R, or R alone.
ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}
    Which norm.
p : the same, or None
    Of cond: None is 2. Of matrices that are not small 2 and -2 alone.
keepdims : bool
    Whether the two axes stay, with length 1.
hermitian : bool
    Whether a small matrix is symmetric.
engine, priority, label
    As of Lazy.compute().

Returns
-------
arrays, or tuples of arrays with NumPy's names
    In float64, or of small matrices NumPy's own. Q of qr and pinv are lazies of arrays that are not
    small: Q.T @ Q is the identity to 1e-16 times the condition of a, and pinv has an error of 1e-16
    times its square.

Raises
------
BadArgument
    NaN or an infinity in the data, with its index.
SingularMatrix
    Q was asked for, and columns depend on each other.
BadShape, BadDtype
    As of other functions.
Unsupported
    A matrix that is neither small nor tall, with the sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from .._functions.reductions import norm
from .._lazy.array import Lazy, lazy
from .._lazy.describing import describe
from .._lazy.operands import Operand
from .matrices import NUMPY, Array, Run, check_few, in_memory, is_small, matrix_of, triangle


class QRResult(NamedTuple):
    """Q and R."""

    Q: Any
    R: Array


def _rcond(matrix: Lazy, rcond: float | None) -> float:
    if rcond is not None and rcond >= 0:
        return float(rcond)
    return float(np.finfo(matrix.dtype).eps * max(matrix.shape))


class _Side(NamedTuple):
    """One column of the right side against the singular vectors."""

    s: Array
    vt: Array
    along: Array  # in the directions of U
    rest: float  # square of what no direction has


def _sides(name: str, a: Operand, b: Operand, run: Run) -> tuple[Lazy, list[_Side], bool]:
    matrix, right = matrix_of(name, a), lazy(b)
    check_few(name, matrix)
    if right.ndim not in (1, 2) or right.shape[0] != matrix.shape[0]:
        raise errors.BadShape(f"{name}: b has shape {right.shape}", argument="b",
                              expected=f"{matrix.shape[0]} rows", found=str(right.shape))
    columns = [right[:, None]] if right.ndim == 1 else \
        [right[:, i:i + 1] for i in range(right.shape[1])]
    found, n = [], matrix.shape[1]
    for column in columns:
        r = triangle(name, matrix, column, run)
        u, s, vt = np.linalg.svd(r[:n, :n])
        found.append(_Side(s, vt, u.T @ r[:n, n], float(r[n, n]) ** 2))
    return matrix, found, right.ndim == 1


def lstsq(a: Operand, b: Operand, rcond: float | None = None, *, engine: str | None = None,
          priority: int = 0, label: str | None = None) -> tuple[Any, Any, int, Array]:
    """The x with least |a @ x - b|, in one read; of several the shortest one.

    x, the sums of squares of a @ x - b (none where columns depend on each other, as NumPy's), the
    rank, and the singular values of a."""
    run = Run(engine, priority, label)
    if is_small(a, b):
        x, rest, rank, s = NUMPY.linalg.lstsq(in_memory(a, run), in_memory(b, run), rcond)
        return x, rest, int(rank), s
    matrix, sides, is_vector = _sides("lstsq", a, b, run)
    s = sides[0].s
    rank = int(np.count_nonzero(s > _rcond(matrix, rcond) * s[0]))
    x = np.stack([one.vt[:rank].T @ (one.along[:rank] / one.s[:rank]) for one in sides], axis=1)
    is_full = rank == len(s) < matrix.shape[0]
    rest = np.array([one.rest for one in sides] if is_full else [])
    return x[:, 0] if is_vector else x, rest, rank, s


def ridge(a: Operand, b: Operand, alpha: float | Sequence[float], *, engine: str | None = None,
          priority: int = 0, label: str | None = None) -> Array:
    """Ridge regressions of many strengths in one read: the shape of alpha, then that of x."""
    run, strengths = Run(engine, priority, label), np.asarray(alpha, "f8")
    if (strengths < 0).any() or not np.isfinite(strengths).all():
        raise errors.BadArgument("ridge: alpha is negative or not finite", argument="alpha",
                                 expected="0 or more", found=str(alpha))
    if is_small(a, b):
        u, s, vt = np.linalg.svd(in_memory(a, run), full_matrices=False)
        right = in_memory(b, run)
        is_vector = right.ndim == 1
        along = u.T @ (right[:, None] if is_vector else right)
        sides = [_Side(s, vt, column, 0.0) for column in along.T]
        matrix = lazy(a)
    else:
        matrix, sides, is_vector = _sides("ridge", a, b, run)
    found: list[Array] = []
    for strength in strengths.ravel():
        x = np.stack([one.vt.T @ _filtered(one, float(strength)) for one in sides], axis=1)
        found.append(x[:, 0] if is_vector else x)
    if not found:
        return np.zeros((*strengths.shape, matrix.shape[1]))
    return np.stack(found).reshape(*strengths.shape, *found[0].shape)


def _filtered(side: _Side, strength: float) -> Array:
    below, found = side.s ** 2 + strength, np.zeros_like(side.s)
    np.divide(side.s * side.along, below, out=found, where=below > 0)
    return found


def qr(a: Operand, mode: str = "reduced", *, engine: str | None = None, priority: int = 0,
       label: str | None = None) -> Any:
    """Q with columns of length 1 at right angles, and the upper triangular R: a = Q @ R."""
    run = Run(engine, priority, label)
    if is_small(a):
        return NUMPY.linalg.qr(in_memory(a, run), mode)
    if mode not in ("reduced", "r"):
        raise errors.BadArgument(f"qr: mode {mode!r}", argument="mode",
                                 expected="'reduced' or 'r'", found=repr(mode))
    matrix = matrix_of("qr", a)
    check_few("qr", matrix)
    r = triangle("qr", matrix, None, run)
    if mode == "r":
        return r
    s = np.linalg.svd(r, compute_uv=False)
    if s[-1] <= _rcond(matrix.astype("f8"), None) * s[0]:
        raise errors.SingularMatrix("qr: columns depend on each other, so Q is not determined",
                                    argument="a", expected="independent columns, or mode='r'",
                                    found=f"singular values from {s[0]:.3g} to {s[-1]:.3g}")
    return QRResult(matrix @ np.linalg.inv(r), r)


def svdvals(x: Operand, /, *, engine: str | None = None, priority: int = 0,
            label: str | None = None) -> Array:
    """All singular values, falling, in one read."""
    run = Run(engine, priority, label)
    if is_small(x):
        return np.linalg.svd(in_memory(x, run), compute_uv=False)
    matrix = matrix_of("svdvals", x)
    check_few("svdvals", matrix)
    return np.linalg.svd(triangle("svdvals", matrix, None, run), compute_uv=False)


def cond(x: Operand, p: Any = None, *, engine: str | None = None, priority: int = 0,
         label: str | None = None) -> Any:
    """The condition: the largest singular value by the smallest."""
    run = Run(engine, priority, label)
    if is_small(x):
        return np.linalg.cond(in_memory(x, run), p)
    if p not in (None, 2, -2):
        raise errors.Unsupported(f"cond: p={p!r} needs the inverse, which a matrix with many rows "
                                 "does not have", argument="p", expected="None, 2 or -2",
                                 found=repr(p))
    s = svdvals(x, engine=engine, priority=priority, label=label)
    with np.errstate(divide="ignore"):
        return s[-1] / s[0] if p == -2 else s[0] / s[-1]


def matrix_norm(x: Operand, /, *, keepdims: bool = False, ord: Any = "fro",
                engine: str | None = None, priority: int = 0, label: str | None = None) -> Any:
    """A norm of a matrix, in one read."""
    run = Run(engine, priority, label)
    if is_small(x):
        return np.linalg.norm(in_memory(x, run), ord, (-2, -1), keepdims)
    if ord not in (2, -2, "nuc"):
        return norm(x, ord, axis=(-2, -1), keepdims=keepdims).compute(**run._asdict())[()]
    s = svdvals(x, engine=engine, priority=priority, label=label)
    value = s.sum() if ord == "nuc" else s[0] if ord == 2 else s[-1]
    return value.reshape(1, 1) if keepdims else value


def pinv(a: Operand, rcond: float | None = None, hermitian: bool = False, *,
         rtol: float | None = None, engine: str | None = None, priority: int = 0,
         label: str | None = None) -> Any:
    """The pseudo-inverse (Moore and Penrose)."""
    run, least = Run(engine, priority, label), rcond if rtol is None else rtol
    if is_small(a):
        return np.linalg.pinv(in_memory(a, run), least, hermitian)
    matrix = matrix_of("pinv", a)
    check_few("pinv", matrix)
    _, s, vt = np.linalg.svd(triangle("pinv", matrix, None, run))
    rank = int(np.count_nonzero(s > _rcond(matrix, least) * s[0]))
    v = vt[:rank].T / s[:rank]
    return (v @ v.T) @ matrix.T


__all__ = ["lstsq", "ridge", "qr", "svdvals", "cond", "matrix_norm", "pinv"]

if __doc__:  # not where they are left out
    describe(__doc__, [lstsq, ridge, qr, svdvals, cond, matrix_norm, pinv])
