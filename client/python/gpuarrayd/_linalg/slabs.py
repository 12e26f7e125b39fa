"""R by LAPACK in this process, slab by slab of a matrix's rows, in one read: of more columns than
a job is quick with, and where the pool has no room for its R.

    | R    |          A slab has as many rows as there are columns, or more, so that R and the slab
    | slab | -> R     are at most 256 MiB.
"""

from __future__ import annotations

import numpy as np

from .. import errors
from .._lazy.array import Lazy
from .matrices import (MOST_SLAB_COLUMNS, NUMPY, QUICK_COLUMNS, Array, Run, check_few, data_of,
                       decomposed, dense)

SLAB_BYTES = 32 << 20  # of rows, where columns are few


def _read(name: str, argument: str, part: Lazy, first: int, step: int, run: Run,
          is_turned: bool = False) -> Array:
    """Rows in float64, all of them finite."""
    rows = np.asarray(part[first:first + step].astype("f8").compute(**run._asdict()))
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        at = [column, first + row] if is_turned else [first + row, column]
        what = f"{rows[row, column]} at [{at[0]}, {at[1]}]"
        raise errors.BadArgument(f"{name}: {argument} has {what}: nothing fits it",
                                 argument=argument, found=what,
                                 expected="finite numbers; where(isfinite(x), x, 0) takes others "
                                 "as 0")
    return rows


def triangle_by_slabs(name: str, matrix: Lazy, run: Run, right: Lazy | None = None,
                      is_turned: bool = False) -> Array:
    """R of the matrix, or of it with the columns of another behind; its diagonal is not negative.
    It has fewer rows where the matrix has fewer than there are columns. is_turned: the caller's
    matrix is this one turned, as an error says."""
    data_of(matrix)
    width = matrix.shape[1] + (0 if right is None else right.shape[1])
    step = max(width, SLAB_BYTES // 8 // width)
    r = np.zeros((0, width))
    for first in range(0, matrix.shape[0], step):
        rows = _read(name, "a", matrix, first, step, run, is_turned)
        if right is not None:
            rows = np.concatenate([rows, _read(name, "b", right, first, step, run)], axis=1)
        r = NUMPY.linalg.qr(np.concatenate([r, rows]), "r")
        if not np.isfinite(r).all():
            raise errors.BadArgument(f"{name}: the sum of squares of a's elements is beyond "
                                     "float64: divide it by a number", argument="a",
                                     expected="a sum of squares up to 1.8e+308",
                                     found="an infinite one of finite elements")
    signs = np.where(np.diag(r) < 0, -1.0, 1.0)
    return r * signs[:, None]


def triangle(name: str, matrix: Lazy, run: Run = Run()) -> Array:
    """R of the matrix in float64, in one read; its diagonal is not negative."""
    check_few(name, matrix)
    if matrix.shape[1] <= QUICK_COLUMNS:
        try:
            return dense(decomposed("qr", matrix, run))
        except errors.TooLargeForPool:
            pass
    return triangle_by_slabs(name, matrix, run)


def values_by_slabs(name: str, matrix: Lazy, run: Run, is_turned: bool) -> tuple[Array, Array]:
    """All singular values and Vh of a matrix with many rows. The largest element of a row is
    positive."""
    r = triangle_by_slabs(name, matrix, run, None, is_turned)
    _, s, vh = np.linalg.svd(r, full_matrices=False)
    largest = np.take_along_axis(vh, np.abs(vh).argmax(axis=1)[:, None], axis=1)
    return s, vh * np.where(largest < 0, -1.0, 1.0)


def values_and_vectors(name: str, matrix: Lazy, run: Run,
                       is_turned: bool = False) -> tuple[Array, Array]:
    """The same, by a job where that can be."""
    if matrix.shape[1] <= QUICK_COLUMNS:
        try:
            found = decomposed("svd", matrix, run)
            return dense(found["s"]), dense(found["vectors"])
        except errors.TooLargeForPool:
            pass
    return values_by_slabs(name, matrix, run, is_turned)


def solved_by_slabs(name: str, matrix: Lazy, right: Lazy, least: float, ridges: Array,
                    run: Run) -> tuple[Array, Array, int, Array]:
    """x for each ridge and column of the right side, sums of squares of what is left, the rank and
    the singular values: in a read for as many columns as fit beside the matrix's.

    least: singular values up to this part of the largest are zero."""
    n, m = matrix.shape[1], right.shape[1]
    together = max(MOST_SLAB_COLUMNS - n, 1)
    xs, rests = [], []
    for first in range(0, m, together):
        r = triangle_by_slabs(name, matrix, run, right[:, first:first + together])
        u, s, vh = np.linalg.svd(r[:n, :n], full_matrices=False)
        rank = int(np.count_nonzero(s > least * s[0]))
        along, rest = u.T @ r[:n, n:], (r[n:, n:] ** 2).sum(axis=0)
        kept = np.stack([s ** 2 / (s ** 2 + ridge) if ridge > 0 else np.arange(len(s)) < rank
                         for ridge in ridges])
        inverse = np.divide(kept, s, out=np.zeros_like(kept, dtype="f8"), where=s > 0)
        xs.append(vh.T @ (inverse[:, :, None] * along))
        rests.append(rest + (((1 - kept)[:, :, None] * along) ** 2).sum(axis=1))
    return np.concatenate(xs, axis=-1), np.concatenate(rests, axis=-1), rank, s
