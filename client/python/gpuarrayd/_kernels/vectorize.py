"""@gd.vectorize: a function of numbers as one of arrays, computed in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from .. import errors
from .function import DTypes, Function

__all__ = ["vectorize"]


class Vectorized(Function):
    """What @gd.vectorize makes of a function of numbers: one of arrays, which broadcast."""


@overload
def vectorize(pyfunc: Callable[..., Any], *, otypes: DTypes = None, bound: int | None = None,
              check: bool = False) -> Vectorized: ...


@overload
def vectorize(pyfunc: None = None, *, otypes: DTypes = None, bound: int | None = None,
              check: bool = False) -> Callable[[Callable[..., Any]], Vectorized]: ...


def vectorize(pyfunc: Callable[..., Any] | None = None, *, otypes: DTypes = None,
              bound: int | None = None, check: bool = False) -> Any:
    """A function of numbers as a function of arrays, computed element by element by the daemon.

        @gd.vectorize
        def soft(x, limit):
            if x > limit:
                return x - limit
            return x + limit if x < -limit else 0.0

        gd.save("y.npy", soft(gd.open("x.npy"), 0.5))       # one pass, like any expression
        soft(np.linspace(-1, 1, 5), 0.5)                    # an array of an array

    The expression is made from the function's source; Python itself runs nothing of it for an
    element. It may have if, elif and else, conditional expressions, return anywhere, local names,
    tuples of numbers, for over range() and tuples, while, break and continue, comparisons, and, or
    and not; functions of math and NumPy that gd.ops() has, abs, min, max, round, int, float, bool,
    divmod and pow; complex numbers; and calls of other functions with def, also vectorized ones,
    which may not call themselves. Names of others, in the module or around the function, are
    numbers or tuples of numbers, and constants: they are read when the function is decorated.

    Complex numbers are pairs of real ones: 2j, complex(x, y), z.real, z.imag, z.conjugate(), abs,
    + - * / == !=, powers that are integers, cmath's and NumPy's exp, log, sqrt, conj, angle, isnan.
    A complex array may be an argument; results are real: return z.real, z.imag.

    An element computes both branches of an if, and takes one. What the other would count or fail
    at (integer division by zero, integers to negative powers, casts that do not fit) does not
    count there. Dtypes are NumPy's: a number meets an array as in NumPy 2, math's functions give
    what NumPy's of that name give, floor, ceil, round and int give int64, integers wrap.

    Loops of up to 8 steps are unrolled. Longer ones, up to 1000000 steps, are iterate() of the
    text form: an element that has left computes no more. What such a loop changes are arrays: its
    index is int64, which beside float32 gives float64, unless it is np.float32(i).
    Loops inside of one have at most 64 steps.

    Parameters
    ----------
    pyfunc : callable
        With def, from a file or a notebook. It stays as the attribute py_func.
    otypes : dtype, or a list of them, optional
        Of the results, which are cast. None: NumPy's promotion.
    bound : int, optional
        Steps of a while loop at most; elements that would go on stop there.
    check : bool
        Whether each call that computes also calls pyfunc for each element and compares: for tests.

    Returns
    -------
    Vectorized
        f(x, y) with arrays and numbers gives arrays, with a lazy or a dataset among them lazies;
        several where pyfunc returns a tuple. out= is a place, or a tuple of them, as of a ufunc.
        f.check(x, y) computes and compares with pyfunc.

    Raises
    ------
    Unsupported
        Here: something in the source is no part of this. The message has file, line and column (as
        the attributes filename, lineno, offset) and what to write instead.
    """
    if pyfunc is not None and not callable(pyfunc):
        raise errors.Unsupported("dtypes of arguments are not declared: they are those of the "
                                 "arrays; results may have otypes=", argument="pyfunc",
                                 expected="@gd.vectorize or @gd.vectorize(otypes=...)",
                                 found=repr(pyfunc))
    if bound is not None and (type(bound) is not int or bound < 1):
        raise errors.BadArgument(f"bound is {bound!r}", argument="bound",
                                 expected="a positive integer", found=repr(bound))
    if pyfunc is None:
        return lambda function: Vectorized(function, otypes, bound, check)
    return Vectorized(pyfunc, otypes, bound, check)
