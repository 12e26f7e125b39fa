"""The functions that a function of numbers may call, as those of the catalogue.

Found by what they are, not by their names: import math as m, from numpy import sqrt, np.float32.
Of numbers that are known they are called as they are; math.floor(), round() and int() give int64.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._functions import functions, functions_of_one, functions_of_two
from .._lazy.array import Lazy, lazy_call
from .._lazy.graph import DTYPES
from .._lazy.protocols import _name_of, _own, _where


class Called(NamedTuple):
    """own: with arrays among the arguments. known: with none. spare: what stands for the second
    argument where the call is on a way that an element does not take, and may be counted or fail
    there; of those of one argument for the first."""

    own: Callable[..., Any]
    known: Callable[..., Any]
    spare: int | None = None


_SPARE = {"floor_divide": 1, "remainder": 1, "mod": 1, "fmod": 1, "divmod": 1, "power": 0,
          "reciprocal": 1}
_MATH = {
    **{name: name for name in (
        "sqrt cbrt exp exp2 expm1 log2 log10 log1p sin cos tan sinh cosh tanh fabs copysign fmod "
        "isnan isinf isfinite degrees radians erf erfc gamma lgamma gcd lcm nextafter").split()},
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "atan2": "arctan2", "pow": "float_power"}


def _int(x: Lazy) -> Lazy:
    return x.astype("i8")


def _log(x: Any, base: Any = None) -> Lazy:
    found = lazy_call("log", x)
    if base is None:
        return found
    return found / (lazy_call("log", base) if isinstance(base, Lazy) else math.log(base))


def _hypot(*values: Any) -> Any:
    return functools.reduce(lambda a, b: lazy_call("hypot", a, b), values)


def _round(x: Lazy, ndigits: int | None = None) -> Lazy:
    return lazy_call("round", x).astype("i8") if ndigits is None \
        else lazy_call("round", x, decimals=ndigits)


def _pow(x: Any, y: Any) -> Any:
    return x ** y


def _extreme(is_max: bool) -> Callable[..., Any]:
    """As Python's: of NaN whatever comparing gives."""

    def call(*values: Any) -> Any:
        if len(values) < 2:
            raise TypeError(f"{'max' if is_max else 'min'} of one value; it takes two or more")
        return functools.reduce(
            lambda a, b: lazy_call("where", b > a if is_max else b < a, b, a), values)
    return call


def _cast(dtype: str) -> Callable[..., Any]:
    return lambda x: x.astype(dtype)


def _of_math() -> dict[Any, Called]:
    found = {}
    for name, own in _MATH.items():
        if hasattr(math, name):
            found[getattr(math, name)] = Called(functools.partial(lazy_call, own),
                                                getattr(math, name), _SPARE.get(own))
    for name in ("floor", "ceil", "trunc"):
        found[getattr(math, name)] = Called(
            functools.partial(_rounded, name), getattr(math, name), 0)
    for function, made in ((math.log, _log), (math.hypot, _hypot), (math.frexp, functions.frexp),
                          (math.modf, functions.modf), (math.ldexp, functions_of_two.ldexp)):
        found[function] = Called(made, function)
    return found


def _rounded(name: str, x: Lazy) -> Lazy:
    return _int(lazy_call(name, x))


def _of_builtins() -> dict[Any, Called]:
    return {
        abs: Called(abs, abs), min: Called(_extreme(False), min), max: Called(_extreme(True), max),
        int: Called(_int, int, 0), float: Called(_cast("f8"), float),
        bool: Called(_cast("bool"), bool), round: Called(_round, round, 0),
        pow: Called(_pow, pow, 0), divmod: Called(functions.divmod, divmod, 1)}


def _of_numpy() -> dict[Any, Called]:
    found: dict[Any, Called] = {np.where: Called(_where, _where_known)}
    for name in ("clip", "round", "isclose", "nan_to_num"):
        found[getattr(np, name)] = Called(_own(getattr(functions, name)), getattr(np, name))
    for name in ("sinc", "fix", "isposinf", "isneginf", "around"):
        found[getattr(np, name)] = Called(getattr(functions, name), getattr(np, name))
    for name in DTYPES:
        kind = np.dtype(name).type
        found[kind] = Called(_cast(name), kind, 0 if np.dtype(name).kind in "iu" else None)
    return found


def _where_known(condition: Any, x: Any, y: Any) -> Any:
    return x if condition else y


def _of_ours() -> dict[Any, Called]:
    names = {*functions_of_one.__all__, *functions_of_two.__all__, "where", "clip", "round",
             "around", "isclose", "nan_to_num", "divmod", "frexp", "modf"}
    return {getattr(functions, name): Called(getattr(functions, name), getattr(functions, name),
                                             _SPARE.get("power" if name == "pow" else name))
            for name in names}


@functools.cache
def _table() -> dict[Any, Called]:
    return {**_of_ours(), **_of_numpy(), **_of_math(), **_of_builtins()}


def called(function: Any) -> Called | None:
    """What stands for a function; None of those that are not served."""
    try:
        found = _table().get(function)
    except TypeError:  # without a hash
        return None
    if found is None and isinstance(function, np.ufunc):
        name = _name_of(function)
        return None if name is None else Called(function, function, _SPARE.get(name))
    return found


def shown(function: Any) -> str:
    """A function's name for readers."""
    name = str(getattr(function, "__qualname__", None) or getattr(function, "__name__", ""))
    module = getattr(function, "__module__", None) or ""
    if module in ("builtins", "", "__main__") or getattr(builtins, name, None) is function:
        return name or type(function).__name__
    return f"{module}.{name}"
