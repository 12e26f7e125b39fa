"""What is behind a lazy: a graph of sources, numbers and calls of the catalogue's functions.

Nodes are made once and never changed, so lazies share them freely; a node that is used twice is
computed once. Every node knows its shape, so that shapes which do not fit are told where they were
written and an index can be pushed down to the sources. Dtypes are the daemon's to say.

Graphs may be deep, so nothing here recurses: ordered() gives the nodes of a graph in a row, parts
before what is made of them, and whoever walks a graph walks that.
"""

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import errors

if TYPE_CHECKING:
    from .selection import Items

Shape: TypeAlias = tuple[int, ...]
Words: TypeAlias = tuple[tuple[str, str], ...]

DTYPES = frozenset(["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                    "uint64", "float32", "float64"])


SCANS = frozenset(["cumsum", "cumprod"])


class Node:
    """A part of an expression. Compared by identity."""

    __slots__ = ("__weakref__", "parts", "shape")
    parts: tuple["Node", ...]
    shape: Shape
    product: "Product | None" = None  # that is computed in one job with it
    has_passes = False  # whether reductions or their like are


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
        return self

    def same(self) -> Hashable:
        """Equal for sources that are one argument."""
        return id(self)

    def text(self) -> str:
        """For readers."""
        raise NotImplementedError

    def selected(self, items: "Items") -> "Source":
        """A part of it."""
        raise NotImplementedError

    def pickled(self) -> tuple[object, ...]:
        """For another process."""
        raise NotImplementedError


class Call(Node):
    """A function or an operator of the catalogue.

    parts are its arguments and then the options that were given, which `options` names. Of select()
    the arguments are all conditions, then all choices. `result` is which of two results it is,
    `dtype` what astype() casts to.
    """

    __slots__ = ("_stored", "dtype", "has_passes", "known", "op", "options", "product", "result")
    known: np.dtype[np.generic] | None  # what fitting.py has found out about its result's dtype

    def __init__(self, op: str, parts: tuple[Node, ...], options: tuple[str, ...] = (),
                 result: int | None = None, dtype: str | None = None) -> None:
        self.op = op
        self.parts = parts
        self.options = options
        self.result = result
        self.dtype = dtype
        self.product = None
        self.has_passes = self.is_pass
        self._stored: Source | None = None
        self.known = None
        self.shape = self._shape()
        for part in parts:
            if part.has_passes or part.product is not None:
                self._settle()
                break

    def _shape(self) -> Shape:
        return broadcast(self.op, self.parts)

    @property
    def is_pass(self) -> bool:
        """Whether its elements are not each made of those at its place."""
        return False

    def _settle(self) -> None:
        """Which parts are computed first: running sums and products; matrix products, but one that
        only functions of its elements follow, and then all passes beside that."""
        parts = tuple([stored(part) for part in self.parts])
        found = {part.product for part in parts if part.product is not None}
        if len(found) == 1 and type(self) is Call and self.shape == [*found][0].shape:
            self.product = found.pop()
            parts = tuple([settled(part, False) for part in parts])
        elif found:
            parts = tuple([settled(part) if part.product else part for part in parts])
        self.parts = parts
        self.has_passes |= any(part.has_passes for part in parts)

    def of(self, parts: tuple[Node, ...]) -> "Call":
        """The same function of others."""
        return Call(self.op, parts, self.options, self.result, self.dtype)

    def words(self) -> Words:
        """What stands behind the arguments and options, as text: "axis" and "0"."""
        return ()


class Reduction(Call):
    """A function along axes, which each are there once, in order. The first part is what is
    reduced, the second, where there is one, its where= (of logsumexp: b=). `more`: options that are
    no nodes."""

    __slots__ = ("axes", "keepdims", "more")

    def __init__(self, op: str, parts: tuple[Node, ...], axes: Shape, keepdims: bool,
                 more: Words = ()) -> None:
        self.axes = axes
        self.keepdims = keepdims
        self.more = more
        super().__init__(op, parts, ("b" if op == "logsumexp" else "where",) * (len(parts) - 1))

    @property
    def is_pass(self) -> bool:
        return True

    def _shape(self) -> Shape:
        sizes = enumerate(self.parts[0].shape)
        if self.keepdims:
            return tuple(1 if axis in self.axes else size for axis, size in sizes)
        return tuple(size for axis, size in sizes if axis not in self.axes)

    def words(self) -> Words:
        ndim = len(self.parts[0].shape)
        found = list(self.more)
        if len(self.axes) < ndim:
            axes = ",".join(map(str, self.axes))
            found.append(("axis", axes if len(self.axes) == 1 else f"({axes})"))
        if self.keepdims and ndim:
            found.append(("keepdims", "True"))
        return tuple(found)


class Random(Call):
    """Random numbers: of the seed, which is among `more`, and of an element's number. size None:
    of the parameters' shape; of numbers, that of the arrays beside it, as index() does."""

    __slots__ = ("more", "size")

    def __init__(self, op: str, parts: tuple[Node, ...], options: tuple[str, ...],
                 size: Shape | None, more: Words) -> None:
        self.size = size
        self.more = more
        super().__init__(op, parts, options)

    def _shape(self) -> Shape:
        shape = broadcast(self.op, self.parts)
        if self.size is None or self.size == shape:
            return shape
        if _broadcast_two(self.op, shape, self.size) != self.size:
            raise errors.BadShape(
                f"{self.op}: parameters of shape {shape} do not broadcast to the size {self.size}",
                argument="size", expected=f"{shape}", found=f"{self.size}")
        return self.size

    def of(self, parts: tuple[Node, ...]) -> Call:
        return Random(self.op, parts, self.options, self.size, self.more)

    def words(self) -> Words:
        if self.size is None or self.op == "permutation":  # which has its own
            return self.more
        sizes = ",".join(map(str, self.size)) + ("," if len(self.size) == 1 else "")
        return (*self.more, ("size", f"({sizes})"))


class Ramp(Call):
    """Integers of which each is `first`, and for each axis its step times the index along it: what
    arange() and eye() are made of, never in memory. The part has its shape, and zeros.

    Their elements lie as an ndarray's bytes do, so that every view of them is one of them."""

    __slots__ = ("first", "steps")

    def __init__(self, parts: tuple[Node, ...], first: int, steps: Shape) -> None:
        self.first = number(first).value
        self.steps = steps
        super().__init__("ramp", parts)
        self.known = np.dtype("i8")

    def of(self, parts: tuple[Node, ...]) -> Call:
        return Ramp(parts, int(self.first), self.steps)

    def term(self, zero: str) -> str:
        """As the language has it: it counts axes from the last, as broadcasting does."""
        words = [zero, *([f"({self.first})"] if self.first else [])]
        ndim = len(self.shape)
        for axis, (size, step) in enumerate(zip(self.shape, self.steps, strict=True)):
            if size > 1 and step:
                words.append(f"({step})*index({axis - ndim})")
        return "+".join(words)


class Whole(Call):
    """A function whose result has a shape of its own: counts, running sums, what is looked up.

    `along`: that of its parts whose elements become the result's one by one, all others being read
    in whole; None where there is none. `more`: options that are no nodes; those without a name
    stand before the others."""

    __slots__ = ("along", "more")

    def __init__(self, op: str, parts: tuple[Node, ...], options: tuple[str, ...], shape: Shape,
                 more: Words = (), result: int | None = None, along: int | None = None) -> None:
        self.along = along
        self.more = more
        self.shape = shape
        super().__init__(op, parts, options, result)

    def _shape(self) -> Shape:
        return self.shape

    def words(self) -> Words:
        return self.more

    @property
    def is_pass(self) -> bool:
        return True

    @property
    def is_alone(self) -> bool:
        """Whether the daemon computes it as a whole result, and not inside of an expression."""
        return self.op in SCANS


class State(Node):
    """What changes from step to step, in the body of Steps. dtype: where that is known."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: str | None = None) -> None:
        self.parts = ()
        self.shape = ()
        self.dtype = dtype


class Steps(Call):
    """Steps that each element takes by itself: what one of the states comes to.

    parts are what the states begin with, and then what is the same in all steps; {0}, {1} and so on
    stand for them in `nexts`, a text for each state, and in `until`, which may be empty."""

    __slots__ = ("first", "n_steps", "nexts", "until")

    def __init__(self, parts: tuple[Node, ...], n_steps: int, nexts: tuple[str, ...], until: str,
                 first: int) -> None:
        self.n_steps = n_steps
        self.nexts = nexts
        self.until = until
        self.first = first
        super().__init__("iterate", parts)

    def of(self, parts: tuple[Node, ...]) -> Call:
        return Steps(parts, self.n_steps, self.nexts, self.until, self.first)


class Product(Whole):
    """A matrix product, as numpy.matmul(). A job has one, of functions of elements of arrays, and
    functions of its elements around it. is_turned: the second part is the first, whose axes are
    exchanged, so that the result is symmetric. tf32: whether the job allows TF32. chain: of
    products of products what is multiplied, in order, and `work` how often; () where it may not be
    in another order."""

    __slots__ = ("chain", "is_turned", "tf32", "work")

    def __init__(self, parts: tuple[Node, ...], shape: Shape, is_turned: bool = False,
                 tf32: bool = False) -> None:
        self.is_turned = is_turned
        self.tf32 = tf32
        self.chain: tuple[Node, ...] = ()
        self.work = 0
        super().__init__("matmul", parts, (), shape)
        self.product = self

    @property
    def is_pass(self) -> bool:
        return False

    def _settle(self) -> None:
        self.parts = tuple([settled(part) for part in self.parts])


def allows_tf32(nodes: Sequence[Node]) -> bool:
    """Whether a product among them, in whatever is around it, allows TF32 to its job."""
    return any(node.product is not None and node.product.tf32 for node in nodes)


def stored(node: Node) -> Node:
    """What stands for a node as a part of others: itself, but of what must be a whole result an
    array, which is computed first when it is read."""
    return computed(node) if isinstance(node, Whole) and node.is_alone else node


def computed(node: Node) -> "Source":
    """What a node gives as an array, which is computed when it is read."""
    if isinstance(node, Source):
        return node
    found: Source | None = node._stored if isinstance(node, Call) else None
    if found is None:
        from .moved import Moved, whole
        found = Moved(node.shape, [whole(node)])
        if isinstance(node, Call):
            node._stored = found
    return found


def settled(root: Node, has_products: bool = True) -> Node:
    """The same, where reductions and their like, and products if has_products, are arrays that are
    computed first."""
    if not root.has_passes and not (has_products and root.product):
        return root
    made: dict[int, Node] = {}
    for node in ordered(root, _is_end):
        parts = tuple([made[id(part)] for part in node.parts]) if not _is_end(node) else ()
        if isinstance(node, Call) and (node.is_pass or has_products and node.product is node):
            made[id(node)] = computed(node)
        elif isinstance(node, Call) and any(
                one is not part for one, part in zip(parts, node.parts, strict=False)):
            made[id(node)] = node.of(parts)
        else:
            made[id(node)] = node
    return made[id(root)]


def _is_end(node: Node) -> bool:
    return isinstance(node, Call) and (node.is_pass or isinstance(node, Product))


def is_placed(node: Node) -> bool:
    """Whether its elements depend on where they stand in the array that is computed."""
    return isinstance(node, Call) and (node.op == "index" or isinstance(node, Random))


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
            from .streaming.unbounded import of_program
            both = f"{of_program(a)} and {of_program(b)}"
            raise errors.BadShape(f"{op}: shapes {both} do not broadcast together",
                                  expected="shapes that broadcast", found=both)
        sizes.append(y if x == 1 else x)
    return tuple(sizes)


def ordered(root: Node, is_end: Callable[[Node], bool] | None = None) -> list[Node]:
    """All nodes that the root is made of, each once, parts first; without the parts of ends."""
    seen: set[int] = set()
    nodes: list[Node] = []
    stack = [root]
    while stack:
        node = stack[-1]
        parts = () if is_end is not None and is_end(node) else node.parts
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
