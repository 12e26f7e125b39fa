"""Singular values and vectors, and principal components, of matrices with many rows: svd, pca,
eigh.

With at most 1023 columns all of them come from the R of a QR decomposition, by one read, as close
to exact as LAPACK's in float64. With more, k are found by n_iter reads: those that stand out to
some 1e-12 of their size, others as far as the reads got. U is one read more. Matrices that are
small go to NumPy's own LAPACK.

Parameters
----------
a, x : Lazy or array_like
    A matrix of any size.
k, n_components : int, optional
    How many, the largest; None: all, where columns are few.
full_matrices : bool
    Whether U and Vh of a small matrix are square.
compute_uv : bool
    Whether U and Vh are wanted, or the singular values alone.
out : optional
    Where U goes: a path of a new file, or as of Lazy.compute(). None: into memory.
n_iter : int
    Passes over a matrix with many columns: a pass is A.T @ (A @ W). scikit-learn's iterations need
    more of them for as much.
n_oversamples : int
    Directions beside the k, which make the others converge sooner.
seed : int
    Of the first directions: the same seed gives the same result.
tol : float
    Passes end when what is left is at most this part of the largest singular value's square; 0: all
    n_iter.
callback : optional
    callback(step, n_steps, seconds_left) is called after each pass. An exception ends the call.
UPLO : {"L", "U"}
    Of a small matrix: the half that is read.
engine, priority, label
    As of Lazy.compute().

Returns
-------
tuples with NumPy's names (of pca scikit-learn's)
    In float64, or of small matrices NumPy's own. Rows of Vh and of components are such that their
    largest element is positive. A result of pca has scikit-learn's attributes, without their
    underscores: vars(PCA()).update({f"{n}_": v for n, v in result._asdict().items()}).

Raises
------
BadRank
    k is more than the smaller side, or not given for many columns.
BadArgument
    NaN or an infinity in the data, with its index.
BadShape, BadDtype
    As of other functions.
Unsupported
    What the daemon does not compute, with the reason.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from .._lazy.array import Lazy
from .._lazy.describing import describe
from .._lazy.operands import Operand
from .._lazy.results import compute, save
from .directions import Found, check_k, find, turned
from .matrices import (MOST_COLUMNS, NUMPY, Array, Callback, Run, check_finite, gram_times,
                       in_memory, is_small, is_stored, matrix_of, times, triangle)
from .spread import spread


FAR = 1e4  # squares of means in variances: then the mean is taken out before what is squared


class SVDResult(NamedTuple):
    """a = U @ diag(S) @ Vh."""

    U: Any
    S: Array
    Vh: Array


class PCAResult(NamedTuple):
    """Principal components, under scikit-learn's names."""

    components: Array
    explained_variance: Array
    explained_variance_ratio: Array
    singular_values: Array
    mean: Array
    n_components: int
    n_samples: int
    n_features_in: int
    noise_variance: float
    whiten: bool = False


class EighResult(NamedTuple):
    """Eigenvalues, rising, and columns of eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


def _of_many(name: str, matrix: Lazy, k: int | None, n_iter: int, n_oversamples: int, seed: int,
             tol: float, callback: Callback | None, run: Run,
             mean: Array | None = None) -> tuple[Array, Array]:
    """Singular values and rows of Vh of a matrix with many columns, or of it less the mean."""
    most = min(matrix.shape)
    if k is None:
        raise errors.BadRank(f"{name}: all {most} singular values of {matrix.shape[1]} columns are "
                             "not found by passes", argument="k", expected="a number", found="None")

    def apply(block: Array) -> Array:
        image = gram_times(matrix, block, run)
        if mean is not None:
            image -= matrix.shape[0] * np.outer(mean, mean @ block)
        check_finite(name, matrix, image, run)
        return image

    found: Found = find(apply, matrix.shape[1], k, n_iter, min(n_oversamples, most - k), seed, tol,
                        callback)
    return np.sqrt(np.maximum(found.values, 0)), turned(found.vectors.T)


def _left(matrix: Lazy, s: Array, vh: Array, out: Any, run: Run) -> Any:
    """U, in one read; of what is zero it is zero."""
    inverse = np.divide(1, s, out=np.zeros_like(s), where=s > 0)
    product = matrix @ np.ascontiguousarray(vh.T * inverse)
    if isinstance(out, (str, os.PathLike)):
        return save(out, product, **run._asdict())
    return product.compute(out=out, **run._asdict())


def svd(a: Operand, k: int | None = None, full_matrices: bool = False, compute_uv: bool = True, *,
        out: Any = None, n_iter: int = 4, n_oversamples: int = 10, seed: int = 0, tol: float = 0.0,
        callback: Callback | None = None, engine: str | None = None, priority: int = 0,
        label: str | None = None) -> Any:
    """Singular values and vectors, a = U @ diag(S) @ Vh: all, or the k largest."""
    run, matrix = Run(engine, priority, label), matrix_of("svd", a)
    if k is not None:
        check_k("svd", k, min(matrix.shape))
    if is_small(a) and out is None:
        found = NUMPY.linalg.svd(in_memory(a, run), full_matrices and k is None, compute_uv)
        return SVDResult(found[0][:, :k], found[1][:k], found[2][:k]) if compute_uv else found[:k]
    if matrix.shape[1] <= MOST_COLUMNS:
        _, s, vh = np.linalg.svd(triangle("svd", matrix, None, run))
        least = min(min(matrix.shape), k or MOST_COLUMNS)
        s, vh = s[:least], turned(vh[:least])
    else:
        s, vh = _of_many("svd", matrix, k, n_iter, n_oversamples, seed, tol, callback, run)
    return SVDResult(_left(matrix, s, vh, out, run), s, vh) if compute_uv else s


def pca(x: Operand, n_components: int | None = None, *, n_iter: int = 4, n_oversamples: int = 10,
        seed: int = 0, tol: float = 0.0, callback: Callback | None = None,
        engine: str | None = None, priority: int = 0, label: str | None = None) -> PCAResult:
    """Principal components: the directions in which rows differ most from their mean. Data far from
    zero lose nothing: differences from the mean of their first part are taken."""
    run, matrix = Run(engine, priority, label), matrix_of("pca", x)
    rows, columns = matrix.shape
    if n_components is not None:
        check_k("pca", n_components, min(rows, columns))
    if columns <= MOST_COLUMNS:
        mean, factor = spread("pca", matrix, run)
        _, s, vh = np.linalg.svd(factor)
        total = float(s @ s)
        n = min(rows, columns) if n_components is None else n_components
        s, vh = s[:n], turned(vh[:n])
    else:
        mean, variance = (np.asarray(one, "f8") for one in compute(
            matrix.mean(axis=0, dtype="f8"), matrix.var(axis=0, dtype="f8"), **run._asdict()))
        check_finite("pca", matrix, variance, run)
        total, is_near = float(variance.sum()) * rows, bool((mean ** 2 <= FAR * variance).all())
        given = (matrix, mean) if is_stored(matrix) and is_near else (matrix - mean, None)
        s, vh = _of_many("pca", given[0], n_components, n_iter, n_oversamples, seed, tol, callback,
                         run, given[1])
    freedom, n = max(rows - 1, 1), len(s)
    variances, left = s ** 2 / freedom, min(rows, columns) - n
    noise = max(total / freedom - float(variances.sum()), 0.0) / left if left > 0 else 0.0
    ratio = variances / (total / freedom) if total > 0 else np.zeros_like(variances)
    return PCAResult(vh, variances, ratio, s, mean, n, rows, columns, noise)


def eigh(a: Operand, UPLO: str = "L", *, k: int | None = None, n_iter: int = 8,
         n_oversamples: int = 10, seed: int = 0, tol: float = 0.0,
         callback: Callback | None = None, engine: str | None = None, priority: int = 0,
         label: str | None = None) -> EighResult:
    """Eigenvalues and eigenvectors of a symmetric matrix: all, or k of the largest magnitude."""
    run, matrix = Run(engine, priority, label), matrix_of("eigh", a)
    if matrix.shape[0] != matrix.shape[1]:
        raise errors.BadShape(f"eigh: the matrix has shape {matrix.shape}", argument="a",
                              expected="as many rows as columns", found=str(matrix.shape))
    n = matrix.shape[0]
    if k is not None:
        check_k("eigh", k, n)
    if is_small(a):
        values, vectors = NUMPY.linalg.eigh(in_memory(a, run), UPLO)
        order = np.sort(np.argsort(-np.abs(values), kind="stable")[:k])
        return EighResult(values[order], vectors[:, order])
    if k is None:
        raise errors.BadRank(f"eigh: all {n} eigenvalues are not found by passes", argument="k",
                             expected="a number", found="None")

    def apply(block: Array) -> Array:
        image = times(matrix, block, run)
        check_finite("eigh", matrix, image, run)
        return image

    found = find(apply, n, k, n_iter, n_oversamples, seed, tol, callback)
    order = np.argsort(found.values, kind="stable")
    return EighResult(found.values[order], found.vectors[:, order])


__all__ = ["svd", "pca", "eigh"]

if __doc__:  # not where they are left out
    describe(__doc__, [svd, pca, eigh])
