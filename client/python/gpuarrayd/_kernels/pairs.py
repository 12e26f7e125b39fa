"""Complex numbers in a function of numbers: pairs of real values, as in the text form.

    z*z + c     real: zr*zr - zi*zi + cr     imaginary: zr*zi + zr*zi + ci

Parts are what values are: known numbers, choices or lazies. A real number next to a complex one
stays real. Steps are those of the text form's complex numbers (kernels/expr/rules/complex.c).
"""

from __future__ import annotations

import cmath
from collections.abc import Callable
from typing import Any

import numpy as np

from .._lazy.array import Lazy, lazy_call
from .._lazy.fitting import known_dtype
from .values import OPERATORS, Pair, applied, as_pair, both, chosen, either, is_number, truth

MAX_POWER = 100
_SIGNS = {"FloorDiv": "//", "Mod": "%", "LShift": "<<", "RShift": ">>", "BitAnd": "&", "BitOr": "|",
          "BitXor": "^"}


class Refused(Exception):
    """What is not computed of complex numbers, and what to write instead."""


def _do(name: str, *values: Any) -> Any:
    return applied(OPERATORS[name], *values)


def _call(name: str, *values: Any) -> Any:
    """A function of the catalogue, of numbers that are known NumPy's."""
    def call(*all: Any) -> Any:
        if any(isinstance(one, Lazy) for one in all):
            return lazy_call(name, *all)
        found = getattr(np, name)(*all)
        return found.item() if {type(one) for one in all} <= {bool, int, float} else found
    return applied(call, *values)


def made(re: Any, im: Any = None) -> Pair:
    """complex(re, im): of two arrays in their common dtype, of integers float64."""
    if im is None and isinstance(re, Pair):
        return re
    im = 0.0 if im is None else im
    re, im = [float(one) if isinstance(one, int) else one for one in (re, im)]
    if isinstance(re, Pair) or isinstance(im, Pair):
        a, b = as_pair(re), as_pair(im)
        return Pair(_do("Sub", a.re, b.im) if isinstance(im, Pair) else a.re,
                    _do("Add", a.im, b.re))
    dtypes = {known_dtype(one._node) for one in (re, im) if isinstance(one, Lazy)} - {None}
    if len(dtypes) <= 1 and all(one is not None and one.kind == "f" for one in dtypes):
        return Pair(re, im)
    return Pair(*[one.astype("f8") if isinstance(one, Lazy) else one for one in (re, im)])


def negated(z: Pair) -> Pair:
    """-z."""
    return Pair(_do("USub", z.re), _do("USub", z.im))


def multiplied(a: Pair, b: Pair) -> Pair:
    """The textbook's product."""
    cross = _do("Mult", a.re, b.im)
    other = cross if a is b else _do("Mult", a.im, b.re)
    return Pair(_do("Sub", _do("Mult", a.re, b.re), _do("Mult", a.im, b.im)),
                _do("Add", cross, other))


def divided(a: Pair, b: Pair) -> Pair:
    """Smith's quotient: the larger part of the divisor divides the smaller one."""
    p, q = _call("absolute", b.re), _call("absolute", b.im)
    is_wide, zero = _do("GtE", p, q), _do("Add", p, q)
    large, small = chosen(is_wide, b.re, b.im), chosen(is_wide, b.im, b.re)
    ratio = _call("divide", small, large)
    scale = _call("divide", 1.0, _do("Add", large, _do("Mult", small, ratio)))
    x, y = _do("Mult", a.re, ratio), _do("Mult", a.im, ratio)
    re = _do("Mult", chosen(is_wide, _do("Add", a.re, y), _do("Add", x, a.im)), scale)
    im = _do("Mult", chosen(is_wide, _do("Sub", a.im, x), _do("Sub", y, a.re)), scale)
    is_zero = _do("Eq", zero, 0)  # of a NaN and 0 it is none
    return Pair(chosen(is_zero, _call("divide", a.re, zero), re),
                chosen(is_zero, _call("divide", a.im, zero), im))


def _raised(z: Pair, exponent: Any) -> Pair:
    """By squares and products."""
    if not is_number(exponent) or exponent != int(exponent) or abs(exponent) > MAX_POWER:
        raise Refused("a power of a complex number whose exponent is not an integer from "
                      f"-{MAX_POWER} to {MAX_POWER}", "cmath.exp(w * cmath.log(z))")
    found, left = Pair(1.0, 0.0), abs(int(exponent))
    is_one = True
    while left:
        if left % 2:
            found, is_one = z if is_one else multiplied(found, z), False
        left //= 2
        z = multiplied(z, z) if left else z
    return found if exponent >= 0 else divided(Pair(1.0, 0.0), found)


def operated(name: str, left: Any, right: Any) -> Any:
    """left OPERATOR right, where one is complex."""
    a, b = as_pair(left), as_pair(right)
    are = isinstance(left, Pair), isinstance(right, Pair)
    if name in ("Add", "Sub"):
        im = a.im if not are[1] else b.im if not are[0] and name == "Add" \
            else _do(name, a.im, b.im)
        return Pair(_do(name, a.re, b.re), im)
    if name == "Mult":
        if all(are):
            return multiplied(left, right)
        z, x = (left, right) if are[0] else (right, left)
        return Pair(_do(name, z.re, x), _do(name, z.im, x))
    if name == "Div":
        return divided(a, b) if are[1] else Pair(_do(name, a.re, right), _do(name, a.im, right))
    if name == "Pow" and not are[1]:
        return _raised(a, right)
    if name in ("Eq", "NotEq"):
        join = both if name == "Eq" else either
        return join(truth(_do(name, a.re, b.re)), truth(_do(name, a.im, b.im)))
    if name == "Pow":
        raise Refused("an exponent that is complex", "cmath.exp(w * cmath.log(z))")
    raise Refused(f"{_SIGNS.get(name, 'order')} of complex numbers", "abs(z), z.real or z.imag")


def _exp(z: Pair) -> Pair:
    size = _call("exp", z.re)
    return Pair(_do("Mult", size, _call("cos", z.im)), _do("Mult", size, _call("sin", z.im)))


def _abs(z: Pair) -> Any:
    return _call("hypot", z.re, z.im)


def _angle(z: Pair) -> Any:
    return _call("arctan2", z.im, z.re)


def _log(z: Pair) -> Pair:
    return Pair(_call("log", _abs(z)), _angle(z))


def _sqrt(z: Pair) -> Pair:
    """The root whose real part is not negative, without cancellation."""
    size = _call("sqrt", _do("Mult", _do("Add", _call("absolute", z.re), _abs(z)), 0.5))
    other = _call("divide", _call("absolute", z.im), _do("Mult", size, 2.0))
    is_zero, is_right = _do("Eq", size, 0), _do("GtE", z.re, 0)
    other = chosen(is_zero, size, other)
    return Pair(chosen(is_right, size, other),
                _call("copysign", chosen(is_right, other, size), z.im))


def _conjugate(z: Pair) -> Pair:
    return Pair(z.re, _do("USub", z.im))


def _checked(name: str, join: Callable[..., Any]) -> Callable[[Pair], Any]:
    return lambda z: join(truth(_call(name, z.re)), truth(_call(name, z.im)))


_OF_PAIRS: dict[Any, Callable[..., Any]] = {
    abs: _abs, np.absolute: _abs, np.exp: _exp, cmath.exp: _exp, np.log: _log, cmath.log: _log,
    np.sqrt: _sqrt, cmath.sqrt: _sqrt, np.conjugate: _conjugate, np.angle: _angle,
    cmath.phase: _angle,
    np.square: lambda z: multiplied(z, z), np.real: lambda z: z.re, np.imag: lambda z: z.im,
    np.isnan: _checked("isnan", either), cmath.isnan: _checked("isnan", either),
    np.isinf: _checked("isinf", either), cmath.isinf: _checked("isinf", either),
    np.isfinite: _checked("isfinite", both), cmath.isfinite: _checked("isfinite", both),
}
_MAKE_PAIRS = (complex, np.complex64, np.complex128)
_ALWAYS = (np.conjugate, np.angle, np.real, np.imag)  # of real numbers, too, or of cmath


def function_of_pairs(function: Any, has_pairs: bool) -> Callable[..., Any] | None:
    """What stands for a function where some argument is complex, or which makes complex ones; None:
    there is nothing."""
    try:
        if function in _MAKE_PAIRS:
            return made
        found = _OF_PAIRS.get(function)
    except TypeError:  # without a hash
        return None
    is_always = function in _ALWAYS or getattr(function, "__module__", "") == "cmath"
    if found is None or not (has_pairs or is_always):
        return None
    own = found
    return lambda z: own(as_pair(z))
