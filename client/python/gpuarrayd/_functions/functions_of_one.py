"""The catalogue's functions of one array, element by element: gd.sqrt(x) and its like.

Each has NumPy's name and meaning (SciPy's, where NumPy has none). x is a lazy, an array of any kind
or a number; the result is a lazy of its shape, and nothing is computed. The daemon says which
dtypes a function takes and what comes out.
"""

from __future__ import annotations

from .._lazy.array import Lazy, lazy_call
from .._lazy.operands import Operand


def negative(x: Operand, /) -> Lazy:
    """the negated argument"""
    return lazy_call("negative", x)


def positive(x: Operand, /) -> Lazy:
    """the argument itself"""
    return lazy_call("positive", x)


def reciprocal(x: Operand, /) -> Lazy:
    """1 / x; of integers: without its fraction"""
    return lazy_call("reciprocal", x)


def sign(x: Operand, /) -> Lazy:
    """-1, 0 or 1; NaN of NaN"""
    return lazy_call("sign", x)


def invert(x: Operand, /) -> Lazy:
    """all bits flipped; of bools: logical not"""
    return lazy_call("invert", x)


def bitwise_count(x: Operand, /) -> Lazy:
    """number of bits set in the absolute value"""
    return lazy_call("bitwise_count", x)


def logical_not(x: Operand, /) -> Lazy:
    """true where zero"""
    return lazy_call("logical_not", x)


def absolute(x: Operand, /) -> Lazy:
    """absolute value"""
    return lazy_call("absolute", x)


def fabs(x: Operand, /) -> Lazy:
    """absolute value as a float"""
    return lazy_call("fabs", x)


def sqrt(x: Operand, /) -> Lazy:
    """square root"""
    return lazy_call("sqrt", x)


def square(x: Operand, /) -> Lazy:
    """the argument times itself"""
    return lazy_call("square", x)


def cbrt(x: Operand, /) -> Lazy:
    """cube root"""
    return lazy_call("cbrt", x)


def exp(x: Operand, /) -> Lazy:
    """e to the power of the argument"""
    return lazy_call("exp", x)


def exp2(x: Operand, /) -> Lazy:
    """2 to the power of the argument"""
    return lazy_call("exp2", x)


def expm1(x: Operand, /) -> Lazy:
    """exp(x) - 1, accurate near 0"""
    return lazy_call("expm1", x)


def log(x: Operand, /) -> Lazy:
    """natural logarithm"""
    return lazy_call("log", x)


def log2(x: Operand, /) -> Lazy:
    """logarithm to base 2"""
    return lazy_call("log2", x)


def log10(x: Operand, /) -> Lazy:
    """logarithm to base 10"""
    return lazy_call("log10", x)


def log1p(x: Operand, /) -> Lazy:
    """log(1 + x), accurate near 0"""
    return lazy_call("log1p", x)


def sin(x: Operand, /) -> Lazy:
    """sine of radians"""
    return lazy_call("sin", x)


def cos(x: Operand, /) -> Lazy:
    """cosine of radians"""
    return lazy_call("cos", x)


def tan(x: Operand, /) -> Lazy:
    """tangent of radians"""
    return lazy_call("tan", x)


def arcsin(x: Operand, /) -> Lazy:
    """inverse sine, radians"""
    return lazy_call("arcsin", x)


def arccos(x: Operand, /) -> Lazy:
    """inverse cosine, radians"""
    return lazy_call("arccos", x)


def arctan(x: Operand, /) -> Lazy:
    """inverse tangent, radians"""
    return lazy_call("arctan", x)


def sinh(x: Operand, /) -> Lazy:
    """hyperbolic sine"""
    return lazy_call("sinh", x)


def cosh(x: Operand, /) -> Lazy:
    """hyperbolic cosine"""
    return lazy_call("cosh", x)


def tanh(x: Operand, /) -> Lazy:
    """hyperbolic tangent"""
    return lazy_call("tanh", x)


def arcsinh(x: Operand, /) -> Lazy:
    """inverse hyperbolic sine"""
    return lazy_call("arcsinh", x)


def arccosh(x: Operand, /) -> Lazy:
    """inverse hyperbolic cosine"""
    return lazy_call("arccosh", x)


def arctanh(x: Operand, /) -> Lazy:
    """inverse hyperbolic tangent"""
    return lazy_call("arctanh", x)


def deg2rad(x: Operand, /) -> Lazy:
    """degrees to radians"""
    return lazy_call("deg2rad", x)


def rad2deg(x: Operand, /) -> Lazy:
    """radians to degrees"""
    return lazy_call("rad2deg", x)


def sinc(x: Operand, /) -> Lazy:
    """sin(pi x) / (pi x); 1 at 0"""
    return lazy_call("sinc", x)


def erf(x: Operand, /) -> Lazy:
    """error function"""
    return lazy_call("erf", x)


def erfc(x: Operand, /) -> Lazy:
    """1 - erf(x), accurate for large x"""
    return lazy_call("erfc", x)


def gamma(x: Operand, /) -> Lazy:
    """gamma function"""
    return lazy_call("gamma", x)


def lgamma(x: Operand, /) -> Lazy:
    """logarithm of the absolute value of gamma"""
    return lazy_call("lgamma", x)


def expit(x: Operand, /) -> Lazy:
    """1 / (1 + exp(-x))"""
    return lazy_call("expit", x)


def logit(x: Operand, /) -> Lazy:
    """log(x / (1 - x))"""
    return lazy_call("logit", x)


def floor(x: Operand, /) -> Lazy:
    """largest integer not above the argument"""
    return lazy_call("floor", x)


def ceil(x: Operand, /) -> Lazy:
    """smallest integer not below the argument"""
    return lazy_call("ceil", x)


def trunc(x: Operand, /) -> Lazy:
    """the argument without its fraction"""
    return lazy_call("trunc", x)


def rint(x: Operand, /) -> Lazy:
    """nearest integer, halves to even"""
    return lazy_call("rint", x)


def spacing(x: Operand, /) -> Lazy:
    """distance to the next float away from 0"""
    return lazy_call("spacing", x)


def isnan(x: Operand, /) -> Lazy:
    """true where NaN"""
    return lazy_call("isnan", x)


def isfinite(x: Operand, /) -> Lazy:
    """true where neither NaN nor infinite"""
    return lazy_call("isfinite", x)


def isinf(x: Operand, /) -> Lazy:
    """true where infinite"""
    return lazy_call("isinf", x)


def isposinf(x: Operand, /) -> Lazy:
    """true where +infinity"""
    return lazy_call("isposinf", x)


def isneginf(x: Operand, /) -> Lazy:
    """true where -infinity"""
    return lazy_call("isneginf", x)


def signbit(x: Operand, /) -> Lazy:
    """true where the sign bit is set"""
    return lazy_call("signbit", x)


bitwise_not = invert
abs = absolute
asin = arcsin
acos = arccos
atan = arctan
asinh = arcsinh
acosh = arccosh
atanh = arctanh
radians = deg2rad
degrees = rad2deg
gammaln = lgamma
fix = trunc

__all__ = [
    "negative", "positive", "reciprocal", "sign", "invert", "bitwise_count", "logical_not",
    "absolute", "fabs", "sqrt", "square", "cbrt", "exp", "exp2", "expm1", "log", "log2",
    "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh",
    "arcsinh", "arccosh", "arctanh", "deg2rad", "rad2deg", "sinc", "erf", "erfc", "gamma",
    "lgamma", "expit", "logit", "floor", "ceil", "trunc", "rint", "spacing", "isnan",
    "isfinite", "isinf", "isposinf", "isneginf", "signbit", "bitwise_not", "abs", "asin",
    "acos", "atan", "asinh", "acosh", "atanh", "radians", "degrees", "gammaln", "fix",
]
