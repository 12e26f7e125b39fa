"""How columns vary together: gd.cov, gd.corrcoef, and what principal components are made of.

Sums of products are of differences from the mean, which one read has found: data far from zero lose
nothing.

Parameters
----------
m, x : Lazy or array_like
    A matrix; one that is not small has at most 1023 variables.
y : Lazy or array_like, optional
    More variables, of small data.
rowvar : bool
    Whether a row is a variable; else a column is, as in most tables.
bias : bool
    Whether the number of observations divides, and not one less.
ddof : int, optional
    What divides is the number of observations less this. None: 0 with bias, else 1.
fweights, aweights : array_like, optional
    How often each observation counts, of small data.
dtype : optional
    Of the result; float64 without.
engine : str, optional
    As of Lazy.compute().

Returns
-------
array
    (variables, variables), in float64.

Raises
------
BadArgument
    NaN or an infinity in data that is not small, with its index.
BadShape, BadDtype
    As of other functions.
Unsupported
    Weights or two arrays that are not small; neither small nor tall, with the sizes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import errors
from .._lazy.array import lazy
from .._lazy.describing import describe
from .._lazy.operands import Operand
from .matrices import (NUMPY, Array, Run, check_few, decomposed, dense, in_memory, is_small,
                       matrix_of)

def _variables(name: str, m: Operand, rowvar: bool, run: Run) -> tuple[Array, int]:
    one = lazy(m)
    if one.ndim == 1:
        one, rowvar = one[:, None], False
    matrix = matrix_of(name, one.T if rowvar else one)
    check_few(name, matrix)
    return dense(decomposed("cov", matrix, run)), matrix.shape[0]


def _refuse(name: str, **given: object) -> None:
    for word, value in given.items():
        if value is not None:
            raise errors.Unsupported(f"{name}: {word} of data that is not small", argument=word,
                                     expected="None", found=type(value).__name__)


def cov(m: Operand, y: Operand | None = None, rowvar: bool = True, bias: bool = False,
        ddof: int | None = None, fweights: Any = None, aweights: Any = None, *,
        dtype: Any = None, engine: str | None = None) -> Array:
    """Covariances of variables, in one read."""
    run, given = Run(engine), [m] if y is None else [m, y]
    if is_small(*given):
        small: Array = NUMPY.cov(in_memory(m, run), None if y is None else in_memory(y, run),
                                 rowvar, bias, ddof, fweights, aweights, dtype=dtype)
        return small
    _refuse("cov", y=y, fweights=fweights, aweights=aweights)
    cross, n = _variables("cov", m, rowvar, run)
    freedom = n - ((0 if bias else 1) if ddof is None else ddof)
    found: Array = (cross / max(freedom, 0)).astype(dtype or "f8", copy=False).squeeze()[()]
    return found


def corrcoef(x: Operand, y: Operand | None = None, rowvar: bool = True, *,
             dtype: npt.DTypeLike | None = None, engine: str | None = None) -> Array:
    """Correlations of variables, in one read."""
    run, given = Run(engine), [x] if y is None else [x, y]
    if is_small(*given):
        small: Array = NUMPY.corrcoef(in_memory(x, run),
                                      None if y is None else in_memory(y, run), rowvar, dtype=dtype)
        return small
    _refuse("corrcoef", y=y)
    cross, _ = _variables("corrcoef", x, rowvar, run)
    deviation = np.sqrt(np.diag(cross))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.clip(cross / deviation[:, None] / deviation, -1, 1)
    result: Array = found.astype(dtype or "f8", copy=False).squeeze()[()]
    return result


__all__ = ["cov", "corrcoef"]

if __doc__:  # not where they are left out
    describe(__doc__, [cov, corrcoef])
