"""Singular values and vectors, and principal components, of matrices of any size: svd, pca, eigh.

With at most 1023 columns, or arrays with as few rows, all of them come from the R of a QR
decomposition, by one read, as close to exact as LAPACK's in float64; components from sums of
products in one read, and a second one where variances below 1e-5 of the largest are wanted (of
float32 1e-9). All singular values of matrices with up to 4096 columns, or rows, are found likewise,
of over 192 by LAPACK in this process, as they are where the pool is too small for R. Of others,
k are found by n_iter reads: those that stand out to some 1e-12 of their size, others as far as the
reads got. Components of float32 data, and the k, are of products in float32 that are summed in
float64: squares of values are within some 5e-8 of the largest of what a.astype("f8") gives, and
where the k-th is below 1e-4 of it, the work is done in float64. U is one read more. Matrices that
are small go to NumPy's own LAPACK.

Parameters
----------
a, x : Lazy or array_like
    A matrix of any size; of svd and eigh small ones may be a stack.
full_matrices : bool
    Whether U and Vh are square, as they are without it in NumPy: of small matrices.
compute_uv : bool
    Whether U and Vh are wanted, or the singular values alone.
hermitian : bool
    Whether a small matrix is symmetric, for which there is a faster way.
k, n_components : int, optional
    How many, the largest; None: all, where columns are few.
out : optional
    Where U goes, or of a matrix with at most 1023 rows and more columns Vh: a path of a new file,
    or as of Lazy.compute(). None: into memory.
n_iter : int
    Passes over a matrix with many columns: a pass is A.T @ (A @ W). scikit-learn's iterations need
    more of them for as much.
n_oversamples : int
    Directions beside the k, which make the others converge sooner.
seed : int
    Of the first directions: the same seed gives the same result.
tol : float
    Passes end when what is left is at most this part of the largest singular value's square; 0: all
    n_iter. A RuntimeWarning says that it is not reached; with 0, that values still rise so much
    that they seem to be over 1 % too small.
checkpoint : path, optional
    An npz file with the directions, written after each pass; where it is there, the passes go on
    from it. Not of matrices that are done in one read.
callback : optional
    callback(step, n_steps, seconds_left) is called after each pass; what is true ends them.
UPLO : {"L", "U"}
    Of a small matrix: the half that is read.
engine, priority, label
    As of Lazy.compute().

Returns
-------
tuples with NumPy's names (of pca scikit-learn's)
    In float64, or of small matrices NumPy's own. U = a @ Vh.T / S, so a column of it is at right
    angles to the others to 1e-16 times S[0] / S of that column. Rows of Vh and of components are
    such that their largest element is positive. A result of pca has scikit-learn's attributes,
    without their underscores:
    vars(PCA()).update({f"{n}_": v for n, v in result._asdict().items()}).

Raises
------
BadRank
    k is more than the smaller side, or not given for over 4096 columns and rows.
BadArgument
    NaN or an infinity in the data, with its index.
BadShape, BadDtype
    As of other functions.
Unsupported
    What the daemon does not compute, with the reason; full_matrices of a matrix that is not small.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from .._functions.describing import describe
from .._lazy.array import Lazy, lazy
from .._lazy.array import open as open_lazy
from .._lazy.operands import Operand
from .._lazy.results import save
from .matrices import (FEW_COLUMNS, NUMPY, Array, Callback, Run, data_of, decomposed, dense,
                       destination, finite_in_memory, is_small, is_wide, matrix_of, stack_of)


class SVDResult(NamedTuple):
    """a = U @ diag(S) @ Vh."""

    U: Any
    S: Array
    Vh: Any


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


def _check_k(name: str, k: int | None, most: int) -> None:
    if k is not None and not 1 <= k <= most:
        raise errors.BadRank(f"{name}: k is {k}", argument="k", expected=f"1 to {most}",
                             found=str(k))


def _check_full(full_matrices: object, shape: tuple[int, ...], is_in_memory: bool) -> None:
    if not isinstance(full_matrices, (bool, np.bool)):
        raise errors.BadArgument(f"svd: full_matrices is {full_matrices!r}; how many are wanted is "
                                 "k=", argument="full_matrices", expected="True or False",
                                 found=repr(full_matrices))
    if full_matrices and not is_in_memory and shape[0] != shape[1]:
        raise errors.Unsupported(f"svd: of a matrix of shape {shape} U or Vh have no room as "
                                 "squares", argument="full_matrices", expected="False, or a small "
                                 "matrix", found="True")


def svd(a: Operand, full_matrices: bool = False, compute_uv: bool = True, hermitian: bool = False,
        *, k: int | None = None, out: Any = None, n_iter: int = 3, n_oversamples: int = 10,
        seed: int = 0, tol: float = 0.0, checkpoint: Any = None, callback: Callback | None = None,
        engine: str | None = None, priority: int = 0, label: str | None = None) -> Any:
    """Singular values and vectors, a = U @ diag(S) @ Vh: all, or the k largest."""
    run, shape = Run(engine, priority, label), stack_of(a).shape
    is_in_memory = is_small(a) and out is None
    _check_full(full_matrices, shape, is_in_memory)
    _check_k("svd", k, min(shape[-2:]))
    if is_in_memory:
        found = NUMPY.linalg.svd(finite_in_memory("a", a, run), full_matrices and k is None,
                                 compute_uv, hermitian)
        return SVDResult(found[0][..., :k], found[1][..., :k], found[2][..., :k, :]) \
            if compute_uv else found[..., :k]
    matrix = matrix_of("svd", a)
    rows, columns = matrix.shape
    data, is_turned = data_of(a), is_wide(matrix) and (k is None or rows <= FEW_COLUMNS)
    if is_turned and not data.is_array and out is None:  # what is computed is turned at its sources
        turned = svd(matrix.T, False, compute_uv, k=k, **run._asdict())
        return SVDResult(turned.Vh.T, turned.S, turned.U.T) if compute_uv else turned
    width = k or min(rows, columns)
    is_turned = is_turned and data.is_array
    result, to = destination(data.session, out, (width, columns) if is_turned else (rows, width)) \
        if compute_uv else (None, None)
    found = decomposed("svd", data, run, k, not compute_uv, n_iter, n_oversamples, seed, tol,
                       checkpoint, callback, to)
    if not compute_uv:
        return dense(found["s"])
    if isinstance(out, (str, os.PathLike)):
        result = open_lazy(os.fspath(out))
    s, vectors = dense(found["s"]), dense(found["vectors"])
    return SVDResult(vectors, s, result) if found["has_u"] else SVDResult(result, s, vectors)


def pca(x: Operand, n_components: int | None = None, *, n_iter: int = 3, n_oversamples: int = 10,
        seed: int = 0, tol: float = 0.0, checkpoint: Any = None, callback: Callback | None = None,
        engine: str | None = None, priority: int = 0, label: str | None = None) -> PCAResult:
    """Principal components: the directions in which rows differ most from their mean. Data far from
    zero lose nothing: differences from the mean are taken before anything is squared."""
    run, matrix = Run(engine, priority, label), matrix_of("pca", x, "x")
    rows, columns = matrix.shape
    _check_k("pca", n_components, min(rows, columns))
    found = decomposed("pca", x, run, n_components, False, n_iter, n_oversamples, seed, tol,
                       checkpoint, callback)
    s, total = dense(found["s"]), found["squares"]
    freedom, n = max(rows - 1, 1), len(s)
    variances, left = s ** 2 / freedom, min(rows, columns) - n
    noise = max(total / freedom - float(variances.sum()), 0.0) / left if left > 0 else 0.0
    ratio = variances / (total / freedom) if total > 0 else np.zeros_like(variances)
    return PCAResult(dense(found["vectors"]), variances, ratio, s, dense(found["mean"]), n, rows,
                     columns, noise)


def eigh(a: Operand, UPLO: str = "L", *, k: int | None = None, n_iter: int = 8,
         n_oversamples: int = 10, seed: int = 0, tol: float = 0.0, checkpoint: Any = None,
         callback: Callback | None = None, engine: str | None = None, priority: int = 0,
         label: str | None = None) -> EighResult:
    """Eigenvalues and eigenvectors of a symmetric matrix: all, or k of the largest magnitude."""
    run, shape = Run(engine, priority, label), stack_of(a).shape
    if shape[-2] != shape[-1]:
        raise errors.BadShape(f"eigh: the matrix has shape {shape}", argument="a",
                              expected="as many rows as columns", found=str(shape))
    _check_k("eigh", k, shape[-1])
    if is_small(a):
        values, vectors = NUMPY.linalg.eigh(finite_in_memory("a", a, run), UPLO)
        order = np.sort(np.argsort(-np.abs(values), kind="stable")[..., :k])
        return EighResult(np.take_along_axis(values, order, -1),
                          np.take_along_axis(vectors, order[..., None, :], -1))
    matrix_of("eigh", a)
    found = decomposed("eigh", a, run, k, False, n_iter, n_oversamples, seed, tol, checkpoint,
                       callback)
    return EighResult(dense(found["s"]), dense(found["vectors"]).T)


__all__ = ["svd", "pca", "eigh"]

if __doc__:  # not where they are left out
    describe(__doc__, [svd, pca, eigh])
