"""The distributions as pure functions: gd.random.normal(loc, scale, size, seed=3).

Parameters
----------
size : int, tuple of ints, or None
    The shape. None: that of the parameters; where these are numbers, that of the arrays beside it
    in the expression, or of the output.
seed : int
    0 to 2**64 - 1. The same seed gives the same elements; distributions draw from different
    streams of one seed, but for lognormal, which is exp of normal's, and choice, which is
    integers'.
dtype : data-type
    float64, or float32, which takes half as many random bits.

The other parameters are numbers, arrays or lazies, which broadcast to the size.

Returns
-------
Lazy
    Of shape `size`. It never changes.

Raises
------
BadArgument
    The seed, or a number that no such distribution has.
BadShape
    size is no shape, or the parameters do not broadcast to it.
Unsupported
    A dtype that is not drawn.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .. import errors
from .._lazy.array import Lazy
from .._functions.counts import take
from .._lazy.drawing import (Size, check, check_range, count_of, drawn, float_of, row_of,
                             size_of)
from .._lazy.operands import Operand


def uniform(low: Operand = 0.0, high: Operand = 1.0, size: Size = None, *, seed: int,
            dtype: npt.DTypeLike = np.float64) -> Lazy:
    """Floats from low to below high, each as likely; rounding may give high, as in NumPy."""
    return Lazy._of(drawn("uniform", {"low": low, "high": high}, size, seed,
                          float_of("uniform", dtype)))


def normal(loc: Operand = 0.0, scale: Operand = 1.0, size: Size = None, *, seed: int,
           dtype: npt.DTypeLike = np.float64) -> Lazy:
    """Normal numbers of mean loc and standard deviation scale."""
    check("normal", "scale", scale, 0)
    return Lazy._of(drawn("normal", {"loc": loc, "scale": scale}, size, seed,
                          float_of("normal", dtype)))


def lognormal(mean: Operand = 0.0, sigma: Operand = 1.0, size: Size = None, *, seed: int,
              dtype: npt.DTypeLike = np.float64) -> Lazy:
    """Numbers whose logarithm is normal, of this mean and standard deviation."""
    check("lognormal", "sigma", sigma, 0)
    return Lazy._of(drawn("lognormal", {"mean": mean, "sigma": sigma}, size, seed,
                          float_of("lognormal", dtype)))


def exponential(scale: Operand = 1.0, size: Size = None, *, seed: int,
                dtype: npt.DTypeLike = np.float64) -> Lazy:
    """Exponential numbers of mean scale."""
    check("exponential", "scale", scale, 0)
    return Lazy._of(drawn("exponential", {"scale": scale}, size, seed,
                          float_of("exponential", dtype)))


def integers(low: Operand, high: Operand | None = None, size: Size = None, *, seed: int,
             dtype: npt.DTypeLike = np.int64, endpoint: bool = False) -> Lazy:
    """Integers from low to below high, or to high with endpoint; high None: from 0 to below low.

    Each is as likely but for a bias below 2**-64 times their number. Of any integer dtype, or
    bool."""
    if high is None:
        low, high = 0, low
    check_range(low, high, dtype, endpoint)
    if np.dtype(dtype).kind == "b":
        return integers(low, high, size, seed=seed, dtype=np.uint8, endpoint=endpoint).astype(bool)
    if isinstance(high, int) and high == 2**64:  # which no number of an expression is
        high, endpoint = high - 1, True
    return Lazy._of(drawn("integers", {"low": low, "high": high}, size, seed, dtype,
                          (("endpoint", "True"),) if endpoint else ()))


def bernoulli(p: Operand, size: Size = None, *, seed: int) -> Lazy:
    """Bools that are true with probability p."""
    check("bernoulli", "p", p, 0, 1)
    return Lazy._of(drawn("bernoulli", {"p": p}, size, seed, None))


def poisson(lam: Operand = 1.0, size: Size = None, *, seed: int) -> Lazy:
    """Poisson numbers of mean lam, int64."""
    check("poisson", "lam", lam, 0)
    return Lazy._of(drawn("poisson", {"lam": lam}, size, seed, None))


def choice(a: Operand, size: Size = None, replace: bool = True, *, seed: int) -> Lazy:
    """Integers from 0 to below a, each as likely, int64; or elements of a, an array of one axis.

    replace False: each at most once, so size holds at most as many as there are. Of an array size
    None means a single one."""
    row = row_of("choice", a)
    if row is not None:
        places = choice(row.shape[0], () if size is None else size, replace, seed=seed)
        return take(Lazy._of(row), places)
    n, shape = count_of("choice", a), size_of(size)  # type: ignore[arg-type]
    if not replace and shape is not None and np.prod(shape, dtype=float) > n:
        raise errors.BadArgument(f"choice: {shape} of {n} without replacement", argument="size",
                                 expected=f"at most {n}", found=f"{shape}")
    return Lazy._of(drawn("choice", {"n": n}, shape, seed, None,
                          () if replace else (("replace", "False"),)))


def permutation(x: Operand, *, seed: int) -> Lazy:
    """The integers from 0 to below x in random order, int64, of shape (x,); or the elements of
    x, an array of one axis, in random order.

    One of 2**64 orders that the seeds choose; made element by element, without memory for all."""
    row = row_of("permutation", x)
    if row is not None:
        return take(Lazy._of(row), permutation(row.shape[0], seed=seed)) if row.shape[0] else \
            Lazy._of(row)
    n = count_of("permutation", x)  # type: ignore[arg-type]
    return Lazy._of(drawn("permutation", {"n": n}, (n,), seed, None))
