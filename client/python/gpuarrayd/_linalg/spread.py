"""How columns vary together: gd.cov, gd.corrcoef, and what principal components are made of.

Sums of products are of differences from the mean: data far from zero lose nothing. One read finds
both; of over 1023 variables, with weights or a second array the mean is read first.

Parameters
----------
m, x : Lazy or array_like
    A matrix of any size.
y : Lazy or array_like, optional
    More variables of the same observations.
rowvar : bool
    Whether a row is a variable; else a column is, as in most tables.
bias : bool
    Whether the number of observations divides, and not one less.
ddof : int, optional
    What divides is the number of observations less this. None: 0 with bias, else 1.
fweights, aweights : array_like, optional
    How often, and how much, each observation counts.
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
    NaN or an infinity in data that is read once, with its index; in others they are in the result.
BadShape, BadDtype
    As of other functions.
Unsupported
    What the daemon does not compute, with the reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import errors
from .._functions.describing import describe
from .._lazy.array import Lazy, lazy
from .._lazy.operands import Operand
from .matrices import (NUMPY, Array, Run, decomposed, dense, in_memory, is_small, is_tall,
                       matrix_of)


def _observations(name: str, m: Operand, rowvar: bool) -> Lazy:
    """A column for each variable."""
    one = lazy(m)
    if one.ndim == 1:
        one, rowvar = one[:, None], False
    return matrix_of(name, one.T if rowvar else one)


def _cross(name: str, given: list[Operand], rowvar: bool, weights: Array | None,
           run: Run) -> tuple[Array, int]:
    """Sums of products about the mean, and how many observations there are."""
    parts = [_observations(name, one, rowvar) for one in given]
    n = parts[0].shape[0]
    if weights is None and len(parts) == 1 and is_tall(parts[0]):
        return dense(decomposed("cov", parts[0], run)), n
    if parts[-1].shape[0] != n:
        raise errors.BadShape(f"{name}: y has {parts[-1].shape[0]} observations", argument="y",
                              expected=str(n), found=str(parts[-1].shape[0]))
    centred = []
    for part in parts:
        wide = part.astype("f8")
        total = wide.sum(axis=0) if weights is None else lazy(weights) @ wide
        mean = np.asarray(lazy(total).compute(**run._asdict()))
        centred.append(wide - mean / (n if weights is None else weights.sum()))
    weighted = centred if weights is None else [one * weights[:, None] for one in centred]
    found = {(i, j): np.asarray((weighted[i].T @ one).compute(**run._asdict()))
             for i in range(len(centred)) for j, one in enumerate(centred) if i <= j}
    rows = [[found[i, j] if i <= j else found[j, i].T for j in range(len(centred))]
            for i in range(len(centred))]
    return np.block(rows), n


def _weights(n: int, fweights: Any, aweights: Any) -> tuple[Array | None, Array | None]:
    """How much each observation counts, and aweights; refused as NumPy does."""
    if fweights is None and aweights is None:
        return None, None
    NUMPY.cov(np.zeros(n), fweights=fweights, aweights=aweights)
    ones, relative = np.ones(n), None if aweights is None else np.asarray(aweights, "f8")
    return ones * (1 if fweights is None else np.asarray(fweights)) * \
        (1 if relative is None else relative), relative


def cov(m: Operand, y: Operand | None = None, rowvar: bool = True, bias: bool = False,
        ddof: int | None = None, fweights: Any = None, aweights: Any = None, *,
        dtype: Any = None, engine: str | None = None) -> Array:
    """Covariances of variables."""
    run, given = Run(engine), [m] if y is None else [m, y]
    if is_small(*given):
        small: Array = NUMPY.cov(in_memory(m, run), None if y is None else in_memory(y, run),
                                 rowvar, bias, ddof, fweights, aweights, dtype=dtype)
        return small
    n = _observations("cov", m, rowvar).shape[0]
    weights, relative = _weights(n, fweights, aweights)
    cross, _ = _cross("cov", given, rowvar, weights, run)
    total = n if weights is None else weights.sum()
    lost = (0 if bias else 1) if ddof is None else ddof
    if weights is not None and relative is not None:
        lost *= (weights * relative).sum() / total
    freedom = total - lost
    found: Array = (cross / max(freedom, 0)).astype(dtype or "f8", copy=False).squeeze()[()]
    return found


def corrcoef(x: Operand, y: Operand | None = None, rowvar: bool = True, *,
             dtype: npt.DTypeLike | None = None, engine: str | None = None) -> Array:
    """Correlations of variables."""
    run, given = Run(engine), [x] if y is None else [x, y]
    if is_small(*given):
        small: Array = NUMPY.corrcoef(in_memory(x, run),
                                      None if y is None else in_memory(y, run), rowvar, dtype=dtype)
        return small
    cross, _ = _cross("corrcoef", given, rowvar, None, run)
    deviation = np.sqrt(np.diag(cross))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.clip(cross / deviation[:, None] / deviation, -1, 1)
    result: Array = found.astype(dtype or "f8", copy=False).squeeze()[()]
    return result


__all__ = ["cov", "corrcoef"]

if __doc__:  # not where they are left out
    describe(__doc__, [cov, corrcoef])
