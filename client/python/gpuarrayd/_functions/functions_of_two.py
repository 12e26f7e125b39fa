"""The catalogue's functions of two arrays, element by element: gd.hypot(x1, x2) and its like.

Each has NumPy's name and meaning. The arguments are lazies, arrays of any kind or numbers, which
broadcast; the result is a lazy, and nothing is computed. The daemon says which dtypes a function
takes and what comes out.
"""

from __future__ import annotations

from .._lazy.array import Lazy, lazy_call
from .._lazy.operands import Operand


def add(x1: Operand, x2: Operand, /) -> Lazy:
    """sum of two arrays; of bools: logical or"""
    return lazy_call("add", x1, x2)


def subtract(x1: Operand, x2: Operand, /) -> Lazy:
    """difference of two arrays"""
    return lazy_call("subtract", x1, x2)


def multiply(x1: Operand, x2: Operand, /) -> Lazy:
    """product of two arrays; of bools: logical and"""
    return lazy_call("multiply", x1, x2)


def divide(x1: Operand, x2: Operand, /) -> Lazy:
    """quotient, always a float"""
    return lazy_call("divide", x1, x2)


def floor_divide(x1: Operand, x2: Operand, /) -> Lazy:
    """largest integer not above the quotient"""
    return lazy_call("floor_divide", x1, x2)


def remainder(x1: Operand, x2: Operand, /) -> Lazy:
    """remainder with the sign of the divisor"""
    return lazy_call("remainder", x1, x2)


def fmod(x1: Operand, x2: Operand, /) -> Lazy:
    """remainder with the sign of the dividend"""
    return lazy_call("fmod", x1, x2)


def power(x1: Operand, x2: Operand, /) -> Lazy:
    """first argument to the power of the second"""
    return lazy_call("power", x1, x2)


def float_power(x1: Operand, x2: Operand, /) -> Lazy:
    """power, always in float64"""
    return lazy_call("float_power", x1, x2)


def equal(x1: Operand, x2: Operand, /) -> Lazy:
    """true where equal"""
    return lazy_call("equal", x1, x2)


def not_equal(x1: Operand, x2: Operand, /) -> Lazy:
    """true where not equal"""
    return lazy_call("not_equal", x1, x2)


def less(x1: Operand, x2: Operand, /) -> Lazy:
    """true where the first is less"""
    return lazy_call("less", x1, x2)


def less_equal(x1: Operand, x2: Operand, /) -> Lazy:
    """true where the first is less or equal"""
    return lazy_call("less_equal", x1, x2)


def greater(x1: Operand, x2: Operand, /) -> Lazy:
    """true where the first is greater"""
    return lazy_call("greater", x1, x2)


def greater_equal(x1: Operand, x2: Operand, /) -> Lazy:
    """true where the first is greater or equal"""
    return lazy_call("greater_equal", x1, x2)


def bitwise_and(x1: Operand, x2: Operand, /) -> Lazy:
    """bits set in both"""
    return lazy_call("bitwise_and", x1, x2)


def bitwise_or(x1: Operand, x2: Operand, /) -> Lazy:
    """bits set in either"""
    return lazy_call("bitwise_or", x1, x2)


def bitwise_xor(x1: Operand, x2: Operand, /) -> Lazy:
    """bits set in one of the two"""
    return lazy_call("bitwise_xor", x1, x2)


def left_shift(x1: Operand, x2: Operand, /) -> Lazy:
    """bits moved up; beyond the width: 0"""
    return lazy_call("left_shift", x1, x2)


def right_shift(x1: Operand, x2: Operand, /) -> Lazy:
    """bits moved down; beyond the width: 0 or -1"""
    return lazy_call("right_shift", x1, x2)


def gcd(x1: Operand, x2: Operand, /) -> Lazy:
    """greatest common divisor"""
    return lazy_call("gcd", x1, x2)


def lcm(x1: Operand, x2: Operand, /) -> Lazy:
    """least common multiple"""
    return lazy_call("lcm", x1, x2)


def logical_and(x1: Operand, x2: Operand, /) -> Lazy:
    """true where both are not zero"""
    return lazy_call("logical_and", x1, x2)


def logical_or(x1: Operand, x2: Operand, /) -> Lazy:
    """true where one of the two is not zero"""
    return lazy_call("logical_or", x1, x2)


def logical_xor(x1: Operand, x2: Operand, /) -> Lazy:
    """true where exactly one is not zero"""
    return lazy_call("logical_xor", x1, x2)


def minimum(x1: Operand, x2: Operand, /) -> Lazy:
    """the smaller of two; NaN if either is"""
    return lazy_call("minimum", x1, x2)


def maximum(x1: Operand, x2: Operand, /) -> Lazy:
    """the larger of two; NaN if either is"""
    return lazy_call("maximum", x1, x2)


def fmin(x1: Operand, x2: Operand, /) -> Lazy:
    """the smaller of two; NaN only if both are"""
    return lazy_call("fmin", x1, x2)


def fmax(x1: Operand, x2: Operand, /) -> Lazy:
    """the larger of two; NaN only if both are"""
    return lazy_call("fmax", x1, x2)


def hypot(x1: Operand, x2: Operand, /) -> Lazy:
    """sqrt(x1*x1 + x2*x2) without overflow"""
    return lazy_call("hypot", x1, x2)


def logaddexp(x1: Operand, x2: Operand, /) -> Lazy:
    """log(exp(x1) + exp(x2)) without overflow"""
    return lazy_call("logaddexp", x1, x2)


def logaddexp2(x1: Operand, x2: Operand, /) -> Lazy:
    """log2(2**x1 + 2**x2) without overflow"""
    return lazy_call("logaddexp2", x1, x2)


def arctan2(x1: Operand, x2: Operand, /) -> Lazy:
    """angle of the point (x2, x1), radians"""
    return lazy_call("arctan2", x1, x2)


def heaviside(x1: Operand, x2: Operand, /) -> Lazy:
    """0 below 0, 1 above, the second argument at 0"""
    return lazy_call("heaviside", x1, x2)


def copysign(x1: Operand, x2: Operand, /) -> Lazy:
    """magnitude of the first, sign of the second"""
    return lazy_call("copysign", x1, x2)


def nextafter(x1: Operand, x2: Operand, /) -> Lazy:
    """next float from the first towards the second"""
    return lazy_call("nextafter", x1, x2)


def ldexp(x1: Operand, x2: Operand, /) -> Lazy:
    """x1 * 2**x2, x2 an integer"""
    return lazy_call("ldexp", x1, x2)


true_divide = divide
mod = remainder
pow = power
atan2 = arctan2

__all__ = [
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "power",
    "float_power", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "gcd", "lcm",
    "logical_and", "logical_or", "logical_xor", "minimum", "maximum", "fmin", "fmax", "hypot",
    "logaddexp", "logaddexp2", "arctan2", "heaviside", "copysign", "nextafter", "ldexp",
    "true_divide", "mod", "pow", "atan2",
]
