"""Matrices with many rows, by one read each: lstsq, ridge, qr, svdvals, cond, matrix_norm, pinv.

The R of a QR decomposition (gd.qr_r) has all that they need to know of the rows: R.T @ R is
a.T @ a, without the squares. Results are as close to exact as LAPACK's in float64, whatever the
condition, of float32 data too. Matrices that are small go to NumPy's own LAPACK. Q and pinv are
lazies; each read of the data gives them anew, or gd.save() stores them.

Parameters
----------
a : Lazy or array_like
    A matrix; one that is over 256 MiB of float64 has at most 4096 columns, and at least as many
    rows. Of lstsq, ridge, svdvals and pinv it may have as few rows, and more columns, instead.
    Of over 192 columns, or where the pool is too small for R, LAPACK makes R in this process from
    rows as they come: in one read too, of R and a slab of rows.
b : Lazy or array_like
    The right side: as many numbers as a has rows, or columns of them. A read has 15 of them, or
    fewer where a has over 63 columns.
x : Lazy or array_like
    A matrix, as a.
rcond, rtol : float, optional
    Singular values up to this part of the largest are taken as zero. None: the precision of the
    dtype times the longer side; of pinv of small matrices 1e-15, as NumPy's.
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
from .._functions.describing import describe
from .._functions.reductions import norm
from .._lazy.array import Lazy, lazy
from .._lazy.operands import Operand
from .matrices import (NUMPY, Array, Run, check_few, data_of, decomposed, dense, finite_in_memory,
                       has_few, in_memory, is_small, is_tall, is_wide, matrix_of)
from .singular import svd


class QRResult(NamedTuple):
    """Q and R."""

    Q: Any
    R: Array


def _rcond(rcond: float | None) -> float:
    """As the library takes it: 0 is the precision's, and what is below is none."""
    return 0.0 if rcond is None or rcond < 0 else rcond or -1.0


def _least(matrix: Lazy, rcond: float | None = None) -> float:
    if rcond is not None and rcond >= 0:
        return float(rcond)
    dtype = matrix.dtype if matrix.dtype.kind == "f" else np.dtype("f8")
    return float(np.finfo(dtype).eps * max(matrix.shape))


def _right_side(name: str, b: Operand, n_rows: int) -> Lazy:
    right = lazy(b)
    if right.ndim not in (1, 2) or right.shape[0] != n_rows:
        raise errors.BadShape(f"{name}: b has shape {right.shape}", argument="b",
                              expected=f"{n_rows} rows", found=str(right.shape))
    return right


def _solved(name: str, a: Operand, b: Operand, rcond: float, ridges: Sequence[float],
            run: Run) -> Any:
    matrix = matrix_of(name, a)
    right = _right_side(name, b, matrix.shape[0])
    is_vector = right.ndim == 1
    data = data_of(a, right[:, None] if is_vector else right)
    if not is_wide(matrix):
        check_few(name, matrix)
    elif not data.is_array:  # what is computed is turned at its sources
        return _of_few_rows(matrix, np.asarray(right.compute(**run._asdict()), "f8"), rcond, ridges,
                            run)
    if not is_vector and right.shape[1] != 1 and data.texts[1] not in dict(data.sources):
        data = data_of(a, np.asarray(right.compute(**run._asdict())))  # of columns a job reads one
    x, residuals, rank, s = data.session.lstsq(data.outputs(), data.sources, *run, (rcond, ridges),
                                               False)
    x, residuals = dense(x), dense(residuals)
    return (x[..., 0] if is_vector else x), residuals, rank, dense(s)


def _values_and_vectors(matrix: Lazy, run: Run) -> tuple[Array, Array]:
    found = decomposed("svd", matrix, run)
    return dense(found["s"]), dense(found["vectors"])


def _of_few_rows(matrix: Lazy, right: Array, rcond: float, ridges: Sequence[float],
                 run: Run) -> Any:
    """The shortest of the solutions, matrix.T @ (u / s**2 * (u.T @ right)), in two reads."""
    s, vh = _values_and_vectors(matrix.T, run)
    u = vh.T
    rank = int(np.count_nonzero(s > (max(rcond, 0.0) if rcond else _least(matrix)) * s[0]))
    below = [s ** 2 + one if one > 0 else np.where(np.arange(len(s)) < rank, s ** 2, 0.0)
             for one in ridges or [0.0]]
    along = u.T @ right.reshape(len(s), -1)
    weights = [u @ (np.divide(1, one, out=np.zeros_like(s), where=one > 0)[:, None] * along)
               for one in below]
    x = np.asarray((matrix.T @ np.concatenate(weights, axis=1)).compute(**run._asdict()))
    x = x.reshape(matrix.shape[1], len(below), -1).transpose(1, 0, 2)[() if ridges else 0]
    return x[..., 0] if right.ndim == 1 else x, np.array([]), rank, s


def lstsq(a: Operand, b: Operand, rcond: float | None = None, *, engine: str | None = None,
          priority: int = 0, label: str | None = None) -> tuple[Any, Any, int, Array]:
    """The x with least |a @ x - b|, in one read; of several the shortest one.

    x, the sums of squares of a @ x - b (none where columns depend on each other, as NumPy's), the
    rank, and the singular values of a."""
    run = Run(engine, priority, label)
    if is_small(a, b, is_read=has_few(a)):
        _right_side("lstsq", b, lazy(a).shape[0])
        x, rest, rank, s = NUMPY.linalg.lstsq(finite_in_memory("a", a, run),
                                              finite_in_memory("b", b, run), rcond)
        return x, rest, int(rank), s
    x, rest, rank, s = _solved("lstsq", a, b, _rcond(rcond), (), run)
    return x, rest if rank == len(s) < lazy(a).shape[0] else np.array([]), rank, s


def fitted(a: Operand, b: Operand, rcond: float | None = None) -> tuple[Any, Any, int, Array]:
    """np.linalg.lstsq of lazies: of an array `a` the solutions are lazies of one read of b, which
    may have any number of columns, and NaN, which is then in the solutions of its column."""
    if isinstance(a, Lazy):
        return lstsq(a, b, rcond)
    matrix, right = np.asarray(a), lazy(b)
    if matrix.ndim != 2:
        raise errors.BadShape(f"lstsq: a has shape {matrix.shape}", argument="a",
                              expected="a matrix", found=str(matrix.shape))
    if matrix.dtype.kind not in "fiub" or matrix.dtype.itemsize > 8:
        raise errors.BadDtype(f"lstsq: a is {matrix.dtype.name}", argument="a",
                              expected="real numbers of at most 64 bits", found=matrix.dtype.name)
    is_narrow = matrix.dtype == right.dtype == np.float32
    wide = matrix.astype("f4" if is_narrow else "f8")
    if not np.isfinite(wide).all():
        raise errors.BadArgument("lstsq: a has NaN or Inf", argument="a", expected="finite numbers",
                                 found="NaN or Inf")
    n_rows, n = wide.shape
    right = _right_side("lstsq", right, n_rows)
    u, s, vt = NUMPY.linalg.svd(wide, full_matrices=False)
    precision = np.finfo(wide.dtype).eps * max(n_rows, n)
    least = precision if rcond is None or rcond < 0 else rcond
    rank = int(np.count_nonzero(s > least * s[:1]))
    x = lazy((vt[:rank].T / s[:rank]) @ u[:, :rank].T) @ right
    rest = ((right - lazy(wide) @ x) ** 2).sum(axis=0, keepdims=right.ndim == 1)
    return x, rest if rank == n < n_rows else np.array([], wide.dtype), rank, s


def ridge(a: Operand, b: Operand, alpha: float | Sequence[float], *, engine: str | None = None,
          priority: int = 0, label: str | None = None) -> Array:
    """Ridge regressions of many strengths in one read: the shape of alpha, then that of x."""
    run, strengths = Run(engine, priority, label), np.asarray(alpha, "f8")
    if (strengths < 0).any() or not np.isfinite(strengths).all():
        raise errors.BadArgument("ridge: alpha is negative or not finite", argument="alpha",
                                 expected="0 or more", found=str(alpha))
    flat = [float(one) for one in strengths.ravel()] or [0.0]
    found: Array = _solved("ridge", a, b, 0, flat, run)[0]
    found = found[:strengths.size]
    return found.reshape(*strengths.shape, *found.shape[1:])


def qr(a: Operand, mode: str = "reduced", *, engine: str | None = None, priority: int = 0,
       label: str | None = None) -> Any:
    """Q with columns of length 1 at right angles, and the upper triangular R: a = Q @ R."""
    run = Run(engine, priority, label)
    if is_small(a, is_read=is_tall(a)):
        return NUMPY.linalg.qr(finite_in_memory("a", a, run), mode)
    if mode not in ("reduced", "r"):
        raise errors.BadArgument(f"qr: mode {mode!r}", argument="mode",
                                 expected="'reduced' or 'r'", found=repr(mode))
    matrix = matrix_of("qr", a)
    check_few("qr", matrix)
    r = dense(decomposed("qr", matrix, run))
    if mode == "r":
        return r
    s = np.linalg.svd(r, compute_uv=False)
    if s[-1] <= _least(matrix.astype("f8")) * s[0]:
        raise errors.SingularMatrix("qr: columns depend on each other, so Q is not determined",
                                    argument="a", expected="independent columns, or mode='r'",
                                    found=f"singular values from {s[0]:.3g} to {s[-1]:.3g}")
    return QRResult(matrix @ np.linalg.inv(r), r)


def svdvals(x: Operand, /, *, engine: str | None = None, priority: int = 0,
            label: str | None = None) -> Array:
    """All singular values, falling, in one read; of a matrix with few rows, too."""
    run = Run(engine, priority, label)
    if is_small(x, is_read=has_few(x, "x")):
        return np.linalg.svd(finite_in_memory("x", x, run), compute_uv=False)
    matrix_of("svdvals", x, "x")
    found: Array = svd(x, compute_uv=False, **run._asdict())
    return found


def cond(x: Operand, p: Any = None, *, engine: str | None = None, priority: int = 0,
         label: str | None = None) -> Any:
    """The condition: the largest singular value by the smallest."""
    run = Run(engine, priority, label)
    if is_small(x, is_read=has_few(x, "x") and p in (None, 2, -2)):
        return np.linalg.cond(finite_in_memory("x", x, run), p)
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
    if is_small(x, is_read=has_few(x, "x") or ord not in (2, -2, "nuc")):
        return np.linalg.norm(in_memory(x, run), ord, (-2, -1), keepdims)
    if ord not in (2, -2, "nuc"):
        if ord not in ("fro", 1, -1, np.inf, -np.inf, None):
            raise errors.BadArgument(f"matrix_norm: ord={ord!r}", argument="ord",
                                     expected="'fro', 'nuc', 1, -1, 2, -2, inf or -inf",
                                     found=repr(ord))
        wide = lazy(x).astype("f8")
        return norm(wide, ord, axis=(-2, -1), keepdims=keepdims).compute(**run._asdict())[()]
    s = svdvals(x, engine=engine, priority=priority, label=label)
    value = s.sum() if ord == "nuc" else s[0] if ord == 2 else s[-1]
    return value.reshape(1, 1) if keepdims else value


def pinv(a: Operand, rcond: float | None = None, hermitian: bool = False, *,
         rtol: float | None = None, engine: str | None = None, priority: int = 0,
         label: str | None = None) -> Any:
    """The pseudo-inverse (Moore and Penrose)."""
    run, least = Run(engine, priority, label), rcond if rtol is None else rtol
    if is_small(a, is_read=has_few(a)):
        return np.linalg.pinv(finite_in_memory("a", a, run), least, hermitian)
    matrix = matrix_of("pinv", a)
    if is_wide(matrix):
        return pinv(matrix.T, rcond, rtol=rtol, **run._asdict()).T
    check_few("pinv", matrix)
    s, vt = _values_and_vectors(matrix, run)
    rank = int(np.count_nonzero(s > _least(matrix, least) * s[0]))
    v = vt[:rank].T / s[:rank]
    return (v @ v.T) @ matrix.T


__all__ = ["lstsq", "ridge", "qr", "svdvals", "cond", "matrix_norm", "pinv"]

if __doc__:  # not where they are left out
    describe(__doc__, [lstsq, ridge, qr, svdvals, cond, matrix_norm, pinv])
