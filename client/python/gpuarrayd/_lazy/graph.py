"""What is behind a lazy: a graph of sources, numbers and calls of the catalogue's functions.

Nodes are made once and never changed, so lazies share them freely; a node that is used twice is
computed once. Every node knows its shape, so that shapes which do not fit are told where they were
written and an index can be pushed down to the sources. Dtypes are the daemon's to say.

Graphs may be deep, so nothing here recurses: ordered() gives the nodes of a graph in a row, parts
before what is made of them, and whoever walks a graph walks that.
"""

import operator
from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .. import errors

Shape: TypeAlias = tuple[int, ...]

DTYPES = frozenset(["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                    "uint64", "float32", "float64"])
REDUCTIONS = frozenset(["sum", "min", "max", "mean", "count_nonzero"])


class Node:
    """A part of an expression. Compared by identity."""

    __slots__ = ("__weakref__", "parts", "shape")
    parts: tuple["Node", ...]
    shape: Shape


class Held:
    """What has a node: the base of Lazy, for those who must not import it."""

    __slots__ = ("_node",)
    _node: Node


class Number(Node):
    """A number in the text. Weak, if it is one of Python's: it takes the dtype of what it meets;
    strong with the dtype of a NumPy scalar."""

    __slots__ = ("dtype", "value")

    def __init__(self, value: bool | int | float, dtype: str | None) -> None:
        self.parts = ()
        self.shape = ()
        self.value = value
        self.dtype = dtype


class Source(Node):
    """An array that is read: of the process, or of a file."""

    __slots__ = ()

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """As a result of it has it: in this machine's byte order."""
        raise NotImplementedError

    def argument(self) -> object:
        """What takes its place among the arguments of a request."""
        raise NotImplementedError

    def same(self) -> Hashable:
        """Equal for sources that are one argument."""
        raise NotImplementedError

    def text(self) -> str:
        """For readers."""
        raise NotImplementedError


class Call(Node):
    """A function or an operator of the catalogue.

    parts are its arguments and then the options that were given, which `options` names. Of select()
    the arguments are all conditions, then all choices. `result` is which of two results it is,
    `dtype` what astype() casts to.
    """

    __slots__ = ("dtype", "op", "options", "result")

    def __init__(self, op: str, parts: tuple[Node, ...], options: tuple[str, ...] = (),
                 result: int | None = None, dtype: str | None = None) -> None:
        self.op = op
        self.parts = parts
        self.options = options
        self.result = result
        self.dtype = dtype
        self.shape = () if op in REDUCTIONS else broadcast(op, parts)


def is_reduction(node: Node) -> bool:
    """Of a whole array: of no dimensions, whatever it is made of."""
    return isinstance(node, Call) and node.op in REDUCTIONS


def broadcast(op: str, parts: Sequence[Node]) -> Shape:
    """NumPy's shape of what is made of the parts, element by element."""
    shape: Shape = ()
    for part in parts:
        other = part.shape
        if not other or other == shape:
            continue
        shape = _broadcast_two(op, shape, other) if shape else other
    return shape


def _broadcast_two(op: str, a: Shape, b: Shape) -> Shape:
    n = max(len(a), len(b))
    sizes = []
    for x, y in zip((1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b, strict=True):
        if x != y and x != 1 and y != 1:
            raise errors.BadShape(f"{op}: shapes {a} and {b} do not broadcast together",
                                  expected="shapes that broadcast", found=f"{a} and {b}")
        sizes.append(y if x == 1 else x)
    return tuple(sizes)


def ordered(root: Node, through_reductions: bool = True) -> list[Node]:
    """All nodes that the root is made of, each once, parts first; or not those that only make a
    reduction."""
    seen: set[int] = set()
    nodes: list[Node] = []
    stack = [root]
    while stack:
        node = stack[-1]
        parts = node.parts if through_reductions or not is_reduction(node) else ()
        waiting = [part for part in parts if id(part) not in seen]
        if waiting and id(node) not in seen:
            stack.extend(reversed(waiting))
            continue
        stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            nodes.append(node)
    return nodes


def dtype_name(dtype: npt.DTypeLike) -> str:
    """The daemon's name of a dtype; Unsupported for those that it does not compute."""
    found = np.dtype(dtype)
    name = found.name
    if name not in DTYPES:
        raise errors.Unsupported(f"the daemon does not compute in {name}", argument="dtype",
                                 expected="bool, int8 to int64, uint8 to uint64, float32, float64",
                                 found=name)
    if not found.isnative:
        raise errors.Unsupported(
            f"results are in this machine's byte order, not {found.str}; write {name!r}",
            argument="dtype", expected=name, found=found.str)
    return name


def number(value: bool | int | float) -> Number:
    """Of Python's, which is weak."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = operator.index(value)
        if not -2**63 <= value < 2**64:
            raise OverflowError(f"the integer {_shown(value)} is beyond int64 and uint64; write it "
                                "as a float to compute in float64")
    elif isinstance(value, float):
        value = float(value)
    return Number(value, None)


def _shown(value: int) -> str:
    """An integer of any length; those of thousands of digits Python does not print."""
    return str(value) if value.bit_length() < 300 else f"of {value.bit_length()} bits"


def strong(value: np.generic) -> Number:
    """Of NumPy's, which keeps its dtype."""
    if isinstance(value, np.floating):
        return Number(float(value), dtype_name(value.dtype))
    if isinstance(value, np.bool_):
        return Number(bool(value), "bool")
    if isinstance(value, np.integer):
        return Number(int(value), dtype_name(value.dtype))
    name = dtype_name(value.dtype)
    raise errors.Unsupported(f"no number: {value!r}", argument="value", found=name)
