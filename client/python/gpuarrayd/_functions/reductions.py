"""Functions along axes: gd.sum(a, axis=0), gd.std(a, axis=(0, 1), ddof=1) and their like.

They have NumPy's names, parameters and meaning (`logsumexp` SciPy's) and give lazies. Several of
them that read the same arrays along the same axes are computed in one pass by gd.compute(), and so
are those of what is computed element by element: gd.mean((a - b)**2, axis=0) reads a and b once and
stores nothing.

Parameters
----------
a : Lazy, array_like or number
    Of any shape.
x : Lazy, array_like or number
    Of any shape.
ord : number, 'fro' or None
    Which norm. None: the square root of the sum of squares.
axis : int, tuple of ints, or None
    The axes that are reduced; negative ones count from the last. None: all of them.
dtype : data-type, optional
    Of the result. None: int64 and uint64 of sums and products of integers, float64 of means and
    spreads of integers, else that of a. Floats are always added in float64 and rounded once.
out : optional
    Where the result goes, as of Lazy.compute(): then it is computed at once, and out is given back.
keepdims : bool
    Whether the reduced axes stay with length 1, so that the result broadcasts with a.
initial : number, optional
    One more element, that each result begins with.
where : Lazy or array_like of bool, optional
    Which elements are taken; it broadcasts to a.
ddof, correction : number
    The divisor is the number of elements less this; two names for one.
mean : None
    Refused: the mean is found in the same pass.
b : Lazy or array_like, optional
    Factors of the exponentials, which broadcast to a.
return_sign : bool
    Refused: a negative sum gives NaN.

Returns
-------
Lazy
    Of a's shape without the reduced axes; 0-d where all are. `out` where it was given.

Raises
------
NoAxis
    An axis is out of range or named twice: a BadShape, a ValueError, an IndexError and NumPy's
    AxisError.
BadArgument
    where= of a minimum or maximum without initial=, or ddof= and correction= together.
BadShape
    where= or out= does not fit; or, when it is computed, min, max and their like of no elements.
BadDtype
    As when it is computed: out= cannot hold the result, or the dtype is not served.
Unsupported
    What the daemon does not compute, with the reason.
"""

from __future__ import annotations

import numpy.typing as npt

from .. import errors
from .._lazy.array import Lazy
from .._lazy.graph import Node
from .._lazy.operands import Operand
from .describing import describe
from .reducing import Axis, Initial, norm_of, place, reduced, spread, weighted


def _made(node: Node, out: object = None) -> Lazy:
    made = Lazy._of(node)
    if out is None:
        return made
    from .._lazy.results import compute_into
    return compute_into((made,), (out,))[0]  # type: ignore[no-any-return]


def sum(a: Operand, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
        keepdims: bool = False, initial: Initial = 0, where: Operand = True) -> Lazy:
    """sum of the elements"""
    return _made(reduced("sum", a, axis, keepdims, where=where, dtype=dtype, initial=initial), out)


def prod(a: Operand, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
         keepdims: bool = False, initial: Initial = 1, where: Operand = True) -> Lazy:
    """product of the elements"""
    return _made(reduced("prod", a, axis, keepdims, where=where, dtype=dtype, initial=initial), out)


def mean(a: Operand, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
         keepdims: bool = False, *, where: Operand = True) -> Lazy:
    """arithmetic mean"""
    return _made(reduced("mean", a, axis, keepdims, where=where, dtype=dtype), out)


def var(a: Operand, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
        ddof: float = 0, keepdims: bool = False, *, where: Operand = True, mean: None = None,
        correction: float | None = None) -> Lazy:
    """variance: mean squared deviation from the mean

    In one pass over the data; with where=, in two. mean= is refused: the mean is found anyway."""
    return _made(spread("var", a, axis, dtype, ddof, keepdims, where, mean, correction), out)


def std(a: Operand, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
        ddof: float = 0, keepdims: bool = False, *, where: Operand = True, mean: None = None,
        correction: float | None = None) -> Lazy:
    """standard deviation: square root of the variance

    In one pass over the data; with where=, in two. mean= is refused: the mean is found anyway."""
    return _made(spread("std", a, axis, dtype, ddof, keepdims, where, mean, correction), out)


def min(a: Operand, axis: Axis = None, out: object = None, keepdims: bool = False,
        initial: Initial = None, where: Operand = True) -> Lazy:
    """smallest element; NaN if there is one

    where= needs initial=, as in NumPy."""
    return _made(reduced("min", a, axis, keepdims, where=where, initial=initial), out)


def max(a: Operand, axis: Axis = None, out: object = None, keepdims: bool = False,
        initial: Initial = None, where: Operand = True) -> Lazy:
    """largest element; NaN if there is one

    where= needs initial=, as in NumPy."""
    return _made(reduced("max", a, axis, keepdims, where=where, initial=initial), out)


def ptp(a: Operand, axis: Axis = None, out: object = None, keepdims: bool = False) -> Lazy:
    """largest element less the smallest"""
    return _made(reduced("ptp", a, axis, keepdims), out)


def argmin(a: Operand, axis: int | None = None, out: object = None, *,
           keepdims: bool = False) -> Lazy:
    """index of the smallest element; of the first NaN if there is one

    int64, along the axis; axis None: in the whole array in C order."""
    return _made(place("argmin", a, axis, keepdims), out)


def argmax(a: Operand, axis: int | None = None, out: object = None, *,
           keepdims: bool = False) -> Lazy:
    """index of the largest element; of the first NaN if there is one

    int64, along the axis; axis None: in the whole array in C order."""
    return _made(place("argmax", a, axis, keepdims), out)


def any(a: Operand, axis: Axis = None, out: object = None, keepdims: bool = False, *,
        where: Operand = True) -> Lazy:
    """true if an element is not zero"""
    return _made(reduced("any", a, axis, keepdims, where=where), out)


def all(a: Operand, axis: Axis = None, out: object = None, keepdims: bool = False, *,
        where: Operand = True) -> Lazy:
    """true if no element is zero"""
    return _made(reduced("all", a, axis, keepdims, where=where), out)


def count_nonzero(a: Operand, axis: Axis = None, *, keepdims: bool = False) -> Lazy:
    """number of elements that are not zero"""
    return _made(reduced("count_nonzero", a, axis, keepdims))


def norm(x: Operand, ord: float | str | None = None, axis: Axis = None,
         keepdims: bool = False) -> Lazy:
    """vector norm, or matrix norm over two axes, as numpy.linalg.norm

    np.linalg.norm(). Of vectors along one axis: any number as ord. Of matrices along two: None,
    'fro', 1, -1, inf, -inf; those that need singular values are not computed."""
    return _made(norm_of(x, ord, axis, keepdims))


def nansum(a: Operand, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
           keepdims: bool = False, initial: Initial = 0, where: Operand = True) -> Lazy:
    """sum of what is not NaN"""
    return _made(reduced("nansum", a, axis, keepdims, where=where, dtype=dtype, initial=initial),
                 out)


def nanprod(a: Operand, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
            keepdims: bool = False, initial: Initial = 1, where: Operand = True) -> Lazy:
    """product of what is not NaN"""
    return _made(reduced("nanprod", a, axis, keepdims, where=where, dtype=dtype, initial=initial),
                 out)


def nanmean(a: Operand, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
            keepdims: bool = False, *, where: Operand = True) -> Lazy:
    """mean of what is not NaN"""
    return _made(reduced("nanmean", a, axis, keepdims, where=where, dtype=dtype), out)


def nanvar(a: Operand, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
           ddof: float = 0, keepdims: bool = False, *, where: Operand = True, mean: None = None,
           correction: float | None = None) -> Lazy:
    """variance of what is not NaN"""
    return _made(spread("nanvar", a, axis, dtype, ddof, keepdims, where, mean, correction), out)


def nanstd(a: Operand, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
           ddof: float = 0, keepdims: bool = False, *, where: Operand = True, mean: None = None,
           correction: float | None = None) -> Lazy:
    """standard deviation of what is not NaN"""
    return _made(spread("nanstd", a, axis, dtype, ddof, keepdims, where, mean, correction), out)


def nanmin(a: Operand, axis: Axis = None, out: object = None, keepdims: bool = False,
           initial: Initial = None, where: Operand = True) -> Lazy:
    """smallest of what is not NaN

    where= needs initial=, as in NumPy."""
    return _made(reduced("nanmin", a, axis, keepdims, where=where, initial=initial), out)


def nanmax(a: Operand, axis: Axis = None, out: object = None, keepdims: bool = False,
           initial: Initial = None, where: Operand = True) -> Lazy:
    """largest of what is not NaN

    where= needs initial=, as in NumPy."""
    return _made(reduced("nanmax", a, axis, keepdims, where=where, initial=initial), out)


def logsumexp(a: Operand, axis: Axis = None, b: Operand | None = None, keepdims: bool = False,
              return_sign: bool = False) -> Lazy:
    """log(sum(b * exp(x))) without overflow, as scipy.special.logsumexp

    b: factors, which broadcast to a; None: 1. return_sign is refused: a negative sum gives NaN."""
    if return_sign:
        raise errors.Unsupported("logsumexp: return_sign= is not computed by the daemon",
                                 argument="return_sign", expected="False", found="True")
    return _made(weighted("logsumexp", a, axis, b, keepdims))


amin = min
amax = max

__all__ = [
    "sum", "prod", "mean", "var", "std", "min", "amin", "max", "amax", "ptp", "argmin", "argmax",
    "any", "all", "count_nonzero", "norm", "nansum", "nanprod", "nanmean", "nanvar", "nanstd",
    "nanmin", "nanmax", "logsumexp",
]

if __doc__:  # not where they are left out
    describe(__doc__, [globals()[name] for name in __all__])
