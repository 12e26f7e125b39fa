"""Functions of the catalogue as gd.NAME(...): all that gpuarrayctl's `ops` lists.

They take lazies, arrays of any kind and numbers, and give lazies; nothing is computed. Here are
those that are more than a function of one or two arrays; the others are in functions_of_one.py and
functions_of_two.py, functions along axes in reductions.py, quantiles.py and scans.py, counts and
look-ups in counts.py, matrix products in products.py. The first lines of their texts are the
daemon's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import errors
from .._arguments.refusals import WrongType
from .functions_of_one import *  # noqa: F403
from .functions_of_one import __all__ as _of_one
from .functions_of_two import *  # noqa: F403
from .functions_of_two import __all__ as _of_two
from .._lazy.graph import Call, dtype_name
from .._lazy.array import Lazy, lazy_call, lazy_pair
from .counts import *  # noqa: F403
from .counts import __all__ as _counts
from .._lazy.operands import Operand, node_of
from .quantiles import *  # noqa: F403
from .quantiles import __all__ as _quantiles
from .near import near
from .products import matmul, tensordot
from .reductions import *  # noqa: F403
from .reductions import __all__ as _reductions
from .scans import cumprod, cumsum
from .triangles import qr_r
from .windows import *  # noqa: F403
from .windows import __all__ as _windows
from .._lazy.unanswered import refuse_unusual


_NONE: Any = np._NoValue


def where(condition: Operand, x: Operand, y: Operand, /) -> Lazy:
    """second argument where the first is true, else the third"""
    return lazy_call("where", condition, x, y)


def select(condlist: Sequence[Operand], choicelist: Sequence[Operand],
           default: Operand = 0) -> Lazy:
    """[conditions], [choices]: the choice of the first condition that is true

    The conditions are bool; at most 64 of them."""
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices) or not conditions:
        raise errors.BadArity(f"select has {len(conditions)} conditions and {len(choices)} choices;"
                              " there must be one or more of each, as many of both",
                              argument="select", expected="as many choices as conditions",
                              found=f"{len(conditions)} and {len(choices)}")
    return lazy_call("select", *conditions, *choices, default=default)


def clip(x: Operand, /, a_min: Operand | None = _NONE, a_max: Operand | None = _NONE,
         min: Operand | None = None, max: Operand | None = None) -> Lazy:
    """limited to min and max

    a_min and a_max are their older names, of which both or none are given. None: no limit on that
    side."""
    if (a_min is _NONE) != (a_max is _NONE):
        missing = "a_min" if a_min is _NONE else "a_max"
        raise WrongType(f"clip: {missing} is missing: None is no limit, and min= or max= is one "
                        "alone", argument=missing, expected="a_min and a_max, or min= or max=",
                        found=f"no {missing}")
    if a_min is _NONE:
        a_min = a_max = None
    return lazy_call("clip", x, a_min=a_min, a_max=a_max, min=min, max=max)


def round(x: Operand, /, decimals: int = 0) -> Lazy:
    """rounded to decimals, halves to even"""
    return lazy_call("round", x, decimals=decimals)


def isclose(a: Operand, b: Operand, /, rtol: Operand = 1e-05, atol: Operand = 1e-08,
            equal_nan: bool = False) -> Lazy:
    """true where |a - b| <= atol + rtol * |b|"""
    return lazy_call("isclose", a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def nan_to_num(x: Operand, /, copy: bool = True, nan: Operand = 0.0,
               posinf: Operand | None = None, neginf: Operand | None = None) -> Lazy:
    """NaN and infinities replaced by numbers

    The result is always a new one: copy=False is refused. posinf and neginf None: the largest and
    the least finite number of the dtype."""
    refuse_unusual("nan_to_num", copy=(bool(copy), True))
    return lazy_call("nan_to_num", x, nan=nan, posinf=posinf, neginf=neginf)


def index(axis: int, /) -> Lazy:
    """the element's index along an axis of the array that is computed

    It has no shape of its own: it counts in the result that it is a part of, or in the array that a
    reduction around it reduces, and takes the shape of the arrays beside it."""
    return lazy_call("index", axis)


def astype(x: Operand, dtype: npt.DTypeLike, /) -> Lazy:
    """written as a dtype's name: float32(x)

    The elements cast to another dtype that the daemon computes in."""
    return Lazy._of(Call("astype", (node_of(x),), dtype=dtype_name(dtype)))


def divmod(x1: Operand, x2: Operand, /) -> tuple[Lazy, Lazy]:
    """floor_divide and remainder"""
    return lazy_pair("divmod", x1, x2)


def frexp(x: Operand, /) -> tuple[Lazy, Lazy]:
    """mantissa (0.5 to 1) and exponent (int32)"""
    return lazy_pair("frexp", x)


def modf(x: Operand, /) -> tuple[Lazy, Lazy]:
    """fraction and integer part, both with the sign"""
    return lazy_pair("modf", x)


around = round
__all__ = [
    *_of_one, *_of_two, *_reductions, *_counts, *_quantiles, "matmul", "tensordot", "cumsum",
    "cumprod", "qr_r", "near", *_windows,
    "where", "select", "clip", "round", "around", "isclose",
    "nan_to_num", "index", "astype", "divmod", "frexp", "modf",
]
