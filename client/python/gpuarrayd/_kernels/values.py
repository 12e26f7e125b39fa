"""The values that a function of numbers has while it is turned into an expression.

    bool, int, float, NumPy's scalars    known; what is made of them alone Python computes here
    Lazy                                 known when the array is
    Choice                               one of a few numbers, by a condition
    Pair                                 a complex number, of two of these
    tuple                                of these
    Missing                              a name that has no value on some way here

A number of Python's has no dtype until it meets an array, and so has a Choice: sign = 1.0 if x > 0
else -1.0 leaves float32 what it is. What meets it is computed for each of its numbers. Of more than
four it becomes an array, of int64 or float64.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._lazy.array import Lazy, lazy_call
from .._lazy.fitting import known_dtype
from .._lazy.graph import Call

MAX_CHOICES = 4
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


class Choice(NamedTuple):
    """yes where the condition is true, else no."""

    condition: Lazy
    yes: Any
    no: Any


class Pair(NamedTuple):
    """A complex number's parts."""

    re: Any
    im: Any


class Missing(NamedTuple):
    """Of a name without a value."""

    why: str


def is_number(value: object) -> bool:
    """Whether it is known."""
    return isinstance(value, NUMBERS)


def as_pair(value: Any) -> Pair:
    """A real number as a complex one."""
    return value if isinstance(value, Pair) else Pair(value, 0.0)


def count(value: object) -> int:
    """How many numbers it chooses from."""
    return count(value.yes) + count(value.no) if isinstance(value, Choice) else 1


def array_of(value: Any) -> Any:
    """A choice as an array."""
    if not isinstance(value, Choice):
        return value
    return lazy_call("where", value.condition, array_of(value.yes), array_of(value.no))


def is_risky(value: Any, spare: int) -> bool:
    """Whether a number chosen from may be no divisor (spare 1) or no integer's exponent (0)."""
    if isinstance(value, Choice):
        return is_risky(value.yes, spare) or is_risky(value.no, spare)
    return bool(value == 0 if spare else value < 0)


def flat(names: dict[str, Any]) -> dict[str, Any]:
    """With a complex number's parts as two names."""
    found: dict[str, Any] = {}
    for name, value in names.items():
        found.update({f"{name}.real": value.re, f"{name}.imag": value.im}
                     if isinstance(value, Pair) else {name: value})
    return found


def joined(names: dict[str, Any]) -> dict[str, Any]:
    """Undoes flat()."""
    found: dict[str, Any] = {}
    for key, value in names.items():
        name = key.removesuffix(".real")
        if name != key:
            if f"{name}.imag" in names:  # one alone is of no name that is read
                found[name] = Pair(value, names[f"{name}.imag"])
        elif not key.endswith(".imag"):
            found[key] = value
    return found


def applied(function: Callable[..., Any], *values: Any) -> Any:
    """function(*values), where some may be choices."""
    for i, value in enumerate(values):
        if isinstance(value, Choice):
            rest = values[:i], values[i + 1:]
            return chosen(value.condition, applied(function, *rest[0], value.yes, *rest[1]),
                          applied(function, *rest[0], value.no, *rest[1]))
    return function(*values)


# Conditions: bools, or lazies of bools.


def is_bool(value: object) -> bool:
    """Whether it is known to be of bools."""
    if isinstance(value, (bool, np.bool_)):
        return True
    return isinstance(value, Lazy) and known_dtype(value._node) == np.dtype(bool)


def truth(value: Any) -> Any:
    """As if asks for it."""
    if is_number(value):
        return bool(value)
    if isinstance(value, Pair):
        return either(truth(value.re), truth(value.im))
    if isinstance(value, Choice):
        yes, no = truth(value.yes), truth(value.no)
        return both(value.condition, yes) if no is False else \
            either(both(value.condition, yes), both(opposite(value.condition), no))
    return value if is_bool(value) else value != 0


def both(a: Any, b: Any) -> Any:
    """Of two conditions."""
    if a is False or b is False:
        return False
    if a is True or b is True:
        return b if a is True else a
    return a if a._node is b._node else False if _are_opposite(a, b) else a & b


def either(a: Any, b: Any) -> Any:
    """Of two conditions."""
    if a is True or b is True:
        return True
    if a is False or b is False:
        return b if a is False else a
    return a if a._node is b._node else True if _are_opposite(a, b) else a | b


def _are_opposite(a: Lazy, b: Lazy) -> bool:
    return any(isinstance(one, Call) and one.op == "invert" and one.parts[0] is other
               for one, other in ((a._node, b._node), (b._node, a._node)))


def opposite(a: Any) -> Any:
    """Of a condition."""
    if isinstance(a, bool):
        return not a
    node = a._node
    return Lazy._of(node.parts[0]) if isinstance(node, Call) and node.op == "invert" else ~a


def chosen(condition: Any, yes: Any, no: Any) -> Any:
    """Of two values by a condition."""
    if not isinstance(condition, Lazy):
        condition = truth(condition)
    if isinstance(condition, bool):
        return yes if condition else no
    if yes is no or _is_same(yes, no):
        return yes
    if isinstance(yes, Missing) or isinstance(no, Missing):
        return yes if isinstance(yes, Missing) else no
    if isinstance(yes, tuple) and type(yes) is tuple and type(no) is tuple:
        if len(yes) != len(no):
            return Missing(f"has {len(yes)} values on one way and {len(no)} on another")
        return tuple(chosen(condition, *each) for each in zip(yes, no, strict=True))
    if type(yes) is tuple or type(no) is tuple:
        return Missing("is a tuple on one way and a number on another")
    if isinstance(yes, Pair) or isinstance(no, Pair):
        return Pair(*[chosen(condition, *parts)
                      for parts in zip(as_pair(yes), as_pair(no), strict=True)])
    if not isinstance(yes, Lazy) and not isinstance(no, Lazy) and \
            count(yes) + count(no) <= MAX_CHOICES:
        return Choice(condition, yes, no)
    if is_bool(yes) and is_bool(no):
        if isinstance(yes, Lazy) and isinstance(no, (bool, np.bool_)):
            return either(opposite(condition), yes) if no else both(condition, yes)
        if isinstance(no, Lazy) and isinstance(yes, (bool, np.bool_)):
            return either(condition, no) if yes else both(opposite(condition), no)
    return lazy_call("where", condition, array_of(yes), array_of(no))


def _is_same(a: Any, b: Any) -> bool:
    """Whether two are one number, to the bit."""
    if type(a) is not type(b) or not is_number(a):
        return False
    return bool(a == b and np.signbit(float(a)) == np.signbit(float(b)))


OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv,
    "FloorDiv": operator.floordiv, "Mod": operator.mod, "Pow": operator.pow,
    "LShift": operator.lshift, "RShift": operator.rshift, "BitAnd": operator.and_,
    "BitOr": operator.or_, "BitXor": operator.xor,
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le,
    "Gt": operator.gt, "GtE": operator.ge,
    "UAdd": operator.pos, "USub": operator.neg, "Invert": operator.invert,
}
