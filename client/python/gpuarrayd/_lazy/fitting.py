"""Python's integers beside arrays: NumPy 2 gives them the arrays' dtype, and refuses those that do
not fit as soon as they meet it. So it is here, where the dtype is known without asking the daemon;
elsewhere the daemon refuses them. Beside bools they are int64, and must fit that even where they
are compared. Beyond 64 bits no number of the daemon's is left: of floats, and where the result is
one, they are floats, to comparisons and limits of integers they are infinite.
"""

from __future__ import annotations

import math
from typing import NoReturn, TypeVar

import numpy as np

from .. import errors
from .graph import Call, Node, Number, Reduction, Source, State, ordered

T = TypeVar("T")
_SAME = frozenset(  # whose result has the dtype that holds those of all arguments
    "add subtract multiply floor_divide remainder fmod divmod power pow bitwise_and bitwise_or "
    "bitwise_xor left_shift right_shift gcd lcm minimum maximum fmin fmax negative positive "
    "absolute invert square clip min max".split())
_TRUTHS = frozenset("equal not_equal less less_equal greater greater_equal logical_and logical_or "
                    "logical_xor logical_not isnan isfinite isinf any all".split())
_ORDERS = frozenset("equal not_equal less less_equal greater greater_equal".split())
_BOOLS = _ORDERS | {"logical_and", "logical_or", "logical_xor"}  # of two
_OF_BOOLS = frozenset("bitwise_and bitwise_or bitwise_xor invert minimum maximum".split())
_FLOATS = frozenset("divide hypot arctan2 copysign nextafter float_power logaddexp logaddexp2 "
                    "heaviside isclose".split())
_CHOICES = frozenset(["where", "select"])
_LIMITS = {"a_min": -1, "min": -1, "a_max": 1, "max": 1}
_NONE = np.dtype("V1")  # not known here


class OutOfBounds(errors.BadArgument, OverflowError):
    """An integer that does not fit the dtype of what it meets."""


def is_large(value: object) -> bool:
    """Beyond int64 and uint64."""
    return type(value) is int and not -2**63 <= value < 2**64


def _out_of_bounds(value: int, dtype: np.dtype[np.generic]) -> NoReturn:
    info = np.iinfo(dtype)  # type: ignore[type-var]
    found = str(value) if value.bit_length() < 300 else f"one of {value.bit_length()} bits"
    raise OutOfBounds(f"the integer {found} is out of bounds for {dtype.name}", argument="x",
                      expected=f"{info.min} to {info.max}", found=found)


def check_bounds(value: object, dtype: np.dtype[np.generic]) -> None:
    """Raises OutOfBounds where Python's integer does not fit a dtype of integers."""
    info = np.iinfo(dtype)  # type: ignore[type-var]
    if type(value) is int and not info.min <= value <= info.max:
        _out_of_bounds(value, dtype)


# What is known of a node's dtype.

def known_dtype(root: Node) -> np.dtype[np.generic] | None:
    """Without asking the daemon; None where only that can tell."""
    waiting = ordered(root, lambda node: not isinstance(node, Call) or node.known is not None)
    for node in waiting:
        if isinstance(node, Call) and node.known is None:
            node.known = _of_call(node)
    found = _of_any(root)
    return None if found is _NONE else found


def _of_any(node: Node) -> np.dtype[np.generic] | None:
    """None of Python's numbers, which have none."""
    if isinstance(node, Call):
        return node.known
    if isinstance(node, Source):
        from .moved import Moved
        return _NONE if isinstance(node, Moved) else node.dtype
    if isinstance(node, State):
        return _NONE if node.dtype is None else np.dtype(node.dtype)
    assert isinstance(node, Number)
    return None if node.dtype is None else np.dtype(node.dtype)


def _of_call(node: Call) -> np.dtype[np.generic]:
    if node.op == "astype" and node.dtype is not None:
        return np.dtype(node.dtype)
    if node.op in _TRUTHS:
        return np.dtype(bool)
    if isinstance(node, Reduction):
        own = _of_any(node.parts[0])
        return own if node.op in ("min", "max") and own is not None else _NONE
    parts = [_of_any(part) for part in _values(node.op, node.parts)]
    if node.op not in _SAME | _CHOICES or _NONE in parts or any(
            isinstance(part, Number) and part.dtype is None and isinstance(part.value, float)
            for part in _values(node.op, node.parts)):
        return _NONE
    found = [part for part in parts if part is not None]
    if len(found) == len(parts) and all(one.kind == "b" for one in found):
        return np.dtype(bool) if node.op in _OF_BOOLS | _CHOICES else _NONE
    return np.result_type(*found) if found and all(one.kind in "iu" for one in found) else _NONE


# What integers are beside them.

def check(op: str, parts: tuple[Node, ...], names: tuple[str, ...] = ()) -> None:
    """Raises OutOfBounds where an integer among the parts does not fit, if that is known. The last
    parts are options with names."""
    if op not in _SAME and op not in _CHOICES and op not in _BOOLS:
        return
    parts = _values(op, parts)
    plain = len(parts) - len(names)
    large = [(part.value, _LIMITS.get(names[i - plain], 0) if i >= plain else 0)
             for i, part in enumerate(parts) if isinstance(part, Number) and part.dtype is None
             and type(part.value) is int and not 0 <= part.value < 128]
    if not large:
        return
    kinds = [known_dtype(part) for part in parts
             if not isinstance(part, Number) or part.dtype is not None]
    found = [kind for kind in kinds if kind is not None]
    if not found or len(found) < len(kinds) or any(kind.kind not in "iub" for kind in found):
        return
    dtype: np.dtype[np.generic] = np.result_type(*found)
    is_bool = dtype.kind == "b"
    if op in _BOOLS and not is_bool:
        return
    if is_bool:
        dtype = np.dtype("i8")
    info = np.iinfo(dtype)  # type: ignore[type-var]
    for value, sign in large:  # a limit beyond what limits anything is none
        if value > info.max and (sign != 1 or is_bool) or value < info.min and sign != -1:
            _out_of_bounds(value, dtype)


def _values(op: str, parts: tuple[T, ...]) -> tuple[T, ...]:
    """Those that the result is made of: not the conditions that choose among them."""
    if op == "where":
        return parts[1:]
    return parts[len(parts) // 2:] if op == "select" else parts


def replaced(op: str, values: tuple[object, ...], names: tuple[str, ...]) -> list[object]:
    """The operands, the last of which are options with names, where some integers are large; None
    for a limit that limits nothing."""
    from .operands import node_of
    kinds = []
    for value in _values(op, values):
        node = node_of(value) if not is_large(value) else None
        if isinstance(node, Number):
            if node.dtype is not None or isinstance(node.value, float):
                kinds.append(np.dtype(node.dtype or float))
        elif node is not None:
            from .array import Lazy
            kinds.append(Lazy._of(node).dtype)
    dtype = np.result_type(*kinds) if kinds else np.dtype("i8")
    plain = len(values) - len(names)
    return [_replaced(op, value, dtype, None if i < plain else names[i - plain])
            if isinstance(value, int) and is_large(value) else value
            for i, value in enumerate(values)]


def _replaced(op: str, value: int, dtype: np.dtype[np.generic], name: str | None) -> object:
    sign = 1 if value > 0 else -1
    if dtype.kind == "f" or op in _FLOATS:
        return float(value)  # an OverflowError where it is none
    if dtype.kind in "iu" and op in _ORDERS:
        return sign * math.inf
    if dtype.kind in "iu" and op == "clip" and name is not None and _LIMITS.get(name) == sign:
        return None
    _out_of_bounds(value, dtype if dtype.kind in "iu" else np.dtype("i8"))

