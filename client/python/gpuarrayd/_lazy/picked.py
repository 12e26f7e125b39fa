"""Elements of lazies by their indices: x[[3, 1, 1]], gd.take(x, i, axis=1), x[x > 0].

Of a source it is an array that the library reads element by element of the list, sorted by place
(gad_array_take()). Of an expression it is the expression of what is picked from each array in it,
where each element is made of the elements at its place; what cannot be taken apart so is computed
first. The list may be any array of integers, also one in a file; an expression is computed first.

A mask is gone through once, when the shape of what it picks is asked for: a job writes where it is
true, a bit for each element, into this process.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import errors
from .._session import current
from .streaming.generated import GeneratorSource
from .graph import Node, Shape, Source, computed, is_placed
from .leaves import ArraySource
from .operands import node_of
from .selection import Items
from .text import written
from .views import ViewSource, broadcast_to, counts_places, is_whole, rebuilt, shared, viewed

if TYPE_CHECKING:
    from .. import _core
    from .._jobs.request import Request

MODES = ("raise", "wrap", "clip")
_SMALL_MASK = 1 << 20  # whose positions are found here


class NoIndex(errors.BadDtype, IndexError):
    """Indices that are no integers."""


class Positions(Source):
    """Where a mask is true: the numbers of its elements in C order. It is counted once, for its
    shape."""

    __slots__ = ("_found", "mask")

    def __init__(self, mask: Node) -> None:
        self.parts = ()
        self.mask = mask
        self._found: _core.Array | None = None

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return tuple((self._found or self.__gad_source__(current())).shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype("i8")

    def text(self) -> str:
        return "where a mask is true"

    def selected(self, items: Items) -> ViewSource:
        """A part of it."""
        return _part(self, items)

    def __gad_source__(self, session: _core.Session) -> _core.Array:
        found = self._found
        if found is None or found.session is not session:
            from .._jobs.request import Request
            [text], sources = written([self.mask])
            marks = session.new_marks(self.mask.shape)
            request = Request([(text, None)], {name: source.argument()
                                               for name, source in sources.items()}, [None])
            request._wait(session, [(text, None, marks)], request._sources(session), False)
            found = self._found = session.positions(marks)
        return found

    def __gad_sink__(self, session: _core.Session) -> _core.Array:
        raise _read_only()

    def pickled(self) -> tuple[object, ...]:
        from .pickling import flattened
        return "positions", flattened(self.mask)


class TakeSource(Source):
    """Elements of a source by indices along n_axes of its axes, which are one in C order."""

    __slots__ = ("axis", "base", "indices", "mode", "n_axes")

    def __init__(self, base: Source, indices: Source, axis: int, n_axes: int, mode: str) -> None:
        self.parts = ()
        self.base, self.indices = base, indices
        self.axis, self.n_axes, self.mode = axis, n_axes, mode

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        whole = self.base.shape
        return whole[:self.axis] + self.indices.shape + whole[self.axis + self.n_axes:]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.base.dtype

    def argument(self) -> object:
        for one in (self.base, self.indices):
            if isinstance(one, (ArraySource, ViewSource, TakeSource)):
                one.argument()  # which says whether it has changed
        return self

    def same(self) -> Hashable:
        return (type(self.base), self.base.same(), type(self.indices), self.indices.same(),
                self.axis, self.n_axes, self.mode)

    def text(self) -> str:
        return f"elements of {self.base.text()} by {self.indices.text()}"

    def selected(self, items: Items) -> ViewSource:
        """A part of it."""
        return _part(self, items)

    def __gad_source__(self, session: _core.Session) -> _core.Array:
        from .._jobs.request import Request
        return self.__gad_shared__(session, {}, Request([], {}, []))

    def __gad_shared__(self, session: _core.Session, made: dict[int, _core.Array],
                       request: Request) -> _core.Array:
        """The same, where `made` are the arrays that are made for one request, each once."""
        found = made.get(id(self))
        if found is None:
            found = made[id(self)] = session.take(
                shared(self.base, session, made, request),
                shared(self.indices, session, made, request), self.axis, self.n_axes,
                MODES.index(self.mode))
        return found

    def __gad_like__(self, session: _core.Session) -> _core.Array:
        """What has its shape and dtype, for plans."""
        return session.from_blocks(self.dtype.str, self.shape, _unread, None)

    def __gad_sink__(self, session: _core.Session) -> _core.Array:
        raise _read_only()

    def pickled(self) -> tuple[object, ...]:
        return ("taken", self.base.pickled(), self.indices.pickled(), self.axis, self.n_axes,
                self.mode)


def _unread(start: object, count: object, block: object) -> None:
    raise AssertionError("a plan reads nothing")


def _read_only() -> errors.ReadOnly:
    return errors.ReadOnly("what is picked from an array is not written; compute it into another",
                           argument="out", expected="an array", found="picked elements")


def _part(source: Source, items: Items) -> ViewSource:
    axes = tuple([(axis, size, 1) for axis, size in enumerate(source.shape)])
    return ViewSource(source, (0,) * len(axes), axes).selected(items)


# Indices and masks as sources.

def is_mask(node: Node) -> bool:
    """Whether it is of bool."""
    from .array import Lazy
    return Lazy._of(node).dtype.kind == "b"


def indices_of(value: object) -> Node:
    """The node of indices or a mask, which have a dtype that can be either."""
    from .array import Lazy
    if isinstance(value, (int, np.integer)):
        node: Node = node_of(np.asarray(value))
    elif isinstance(value, (list, tuple, range)):
        node = node_of(value if _has_lazies(value)
                       else np.asarray(value, None if np.size(value) else np.intp))
    else:
        node = node_of(value)
    kind = Lazy._of(node).dtype
    if kind.kind not in "iub":
        raise NoIndex(f"arrays used as indices are of integers or bool, not {kind.name}",
                      argument="indices", expected="integers or bool", found=kind.name)
    return node


def _has_lazies(value: Any) -> bool:
    return any(hasattr(type(one), "__gad_source__") for one in value)


def positions_of(mask: Node) -> Source:
    """Where a mask is true."""
    if isinstance(mask, ArraySource) and isinstance(mask.array, np.ndarray) \
            and mask.array.size <= _SMALL_MASK:
        return ArraySource(np.flatnonzero(mask.array))
    return Positions(mask)


# Picking.

def picked(node: Node, indices: Node, axis: int, n_axes: int = 1, mode: str = "raise") -> Node:
    """The node of elements by indices along axes that are one. It is of the shape that NumPy gives:
    that of the indices stands for the axes.

    BadIndex: of an axis of no elements."""
    where = indices if isinstance(indices, Source) else computed(indices)
    if math.prod(node.shape[axis:axis + n_axes]) == 0 and 0 not in where.shape:
        raise errors.BadIndex("an axis of no elements has no indices", argument="indices",
                              expected="no indices", found=f"shape {where.shape}")
    if is_whole(node) or counts_places(node):
        return _from(computed(node), where, axis, n_axes, mode)
    return rebuilt(node, lambda one: _of_part(one, node.shape, where, axis, n_axes, mode))


def _of_part(part: Node, shape: Shape, where: Source, axis: int, n_axes: int, mode: str) -> Node:
    """Of an array that broadcasts to `shape`, so that it broadcasts to what is picked of that."""
    missing = len(shape) - len(part.shape)
    first, behind = axis - missing, axis - missing + n_axes
    if behind <= 0:
        return part
    own = [part.shape[k] if k >= 0 else 1 for k in range(first, behind)]
    if first >= 0 and own == list(shape[axis:axis + n_axes]):
        return _from(computed(part), where, first, n_axes, mode)
    if math.prod(own) != 1:  # it is spread along some of the axes that are one
        return _from(computed(broadcast_to(part, shape)), where, axis, n_axes, mode)
    axes = [(k, size, 1) for k, size in enumerate(part.shape)]
    return viewed(part, (0,) * len(axes),
                  (*axes[:max(first, 0)], *[(-1, 1, 0)] * len(where.shape), *axes[behind:]))


def _from(base: Source, where: Source, axis: int, n_axes: int, mode: str) -> Node:
    if isinstance(base, GeneratorSource):  # computed first; of unknown length it refuses
        from .moved import Moved, whole
        base = Moved(base.shape, [whole(base)])
    return TakeSource(base, where, axis, n_axes, mode)
