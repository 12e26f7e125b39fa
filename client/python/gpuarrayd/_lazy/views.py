"""Views of lazies: the same elements in another order, as transpose() and flip() need them.

    axes = ((1, 4, 1), (0, 3, -1))        of an array of shape (3, 4), from start (2, 0) on:
                                          its columns, each from the last row to the first

An axis of a view goes along an axis of the array, or along none (-1: the same again and again); it
has a count and a step. A view of an expression is the expression of views of what it reads, so that
nothing is copied. What cannot be taken apart so (a reduction along axes, random numbers) is
computed into shared memory when the view is read.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import errors
from .graph import Call, Node, Ramp, Reduction, Shape, Source, Whole, computed, is_placed, ordered
from .leaves import ArraySource, FileSource
from .selection import Items, Several, key_of

if TYPE_CHECKING:
    from .. import _core
    from .._jobs.request import Request

ViewAxis: TypeAlias = tuple[int, int, int]  # axis, count, step
Start: TypeAlias = tuple[int, ...]
Axes: TypeAlias = tuple[ViewAxis, ...]

_ZERO = np.zeros((), np.int64)


class ViewSource(Source):
    """A view of a source that is no ndarray, or of an ndarray again and again."""

    __slots__ = ("axes", "base", "start")

    def __init__(self, base: Source, start: Start, axes: Axes) -> None:
        self.parts = ()
        self.base, self.start, self.axes = base, start, axes
        self.shape = tuple([count for _, count, _ in axes])

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self.base.dtype

    def argument(self) -> object:
        if isinstance(self.base, ArraySource):
            self.base.argument()  # which says whether it has changed
        return self

    def same(self) -> Hashable:
        return type(self.base), self.base.same(), self.start, self.axes

    def text(self) -> str:
        return f"a view of {self.base.text()}"

    def selected(self, items: Items) -> "ViewSource":
        """A part of it: a view of the same source."""
        start, axes, waiting = list(self.start), [], iter(self.axes)
        for item in items:
            if item is None:
                axes.append((-1, 1, 0))
                continue
            axis, _, step = next(waiting)
            first = item if isinstance(item, int) else item[0]
            if axis >= 0 and 0 not in self.shape:
                start[axis] += first * step
            if not isinstance(item, int):
                axes.append((axis, item[2], step * item[1]))
        return ViewSource(self.base, tuple(start), tuple(axes))

    def __gad_source__(self, session: "_core.Session") -> "_core.Array":
        base: Any = self.base
        return session.view(base.__gad_source__(session), self.start, self.axes)

    def __gad_shared__(self, session: "_core.Session", made: "dict[int, _core.Array]",
                       request: "Request") -> "_core.Array":
        """The same, where `made` are the arrays that are made for one request, each once, by jobs
        as that one's is."""
        return session.view(shared(self.base, session, made, request), self.start, self.axes)

    def __gad_like__(self, session: "_core.Session") -> "_core.Array":
        """What has its shape and dtype, for plans."""
        like = getattr(self.base, "__gad_like__", None)
        if like is None:
            return self.__gad_source__(session)
        return session.view(like(session), self.start, self.axes)

    def __gad_sink__(self, session: "_core.Session") -> "_core.Array":
        raise errors.ReadOnly("a view of a lazy is not written; write into the array or file that "
                              "it is of", argument="out", expected="an array", found="a view")

    def pickled(self) -> tuple[object, ...]:
        return "view", self.base.pickled(), self.start, self.axes


def shared(source: Any, session: "_core.Session", made: "dict[int, _core.Array]",
           request: "Request") -> "_core.Array":
    """A source as the array that is made of it for one request, once."""
    found = made.get(id(source))
    if found is None and hasattr(source, "__gad_shared__"):
        return source.__gad_shared__(session, made, request)  # type: ignore[no-any-return]
    if found is None:
        found = made[id(source)] = source.__gad_source__(session)
    return found


def viewed(node: Node, start: Start, axes: Axes) -> Node:
    """The node of a view. start: along each axis of the node; axes: of the view."""
    if not node.shape or is_whole(node) or counts_places(node):
        return _of_whole(node, start, axes)
    return rebuilt(node, lambda one: _of_whole(one, *_carried(
        node.shape, one.shape, start, axes)) if one.shape else one)


def _of_whole(node: Node, start: Start, axes: Axes) -> Node:
    if isinstance(node, Ramp):
        first = int(node.first) + sum(map(operator.mul, start, node.steps))
        return ramp([count for _, count, _ in axes], first,
                    [node.steps[axis] * step if axis >= 0 else 0 for axis, _, step in axes])
    return _of_source(_as_source(node), start, axes)


def ramp(shape: Sequence[int], first: int, steps: Sequence[int]) -> Node:
    """Integers of which each is `first`, and for each axis its step times the index along it."""
    if 0 in shape:
        return ArraySource(np.empty(tuple(shape), np.int64))
    if max(shape, default=0) >= 2**63:
        raise errors.BadShape(f"an array of {max(shape)} elements along an axis", argument="shape",
                              expected="at most 2**63 - 1", found=str(max(shape)))
    zeros = ViewSource(ArraySource(_ZERO), (), tuple([(-1, size, 0) for size in shape]))
    return Ramp((zeros,), first, tuple(steps))


def view_of(items: Items, shape: Shape) -> tuple[Start, Axes]:
    """Of a part of an array."""
    start, axes, waiting = [], [], iter(range(len(shape)))
    for item in items:
        if item is None:
            axes.append((-1, 1, 0))
            continue
        axis = next(waiting)
        start.append(item if isinstance(item, int) else item[0])
        if not isinstance(item, int):
            axes.append((axis, item[2], item[1]))
    return tuple(start), tuple(axes)


def rebuilt(node: Node, leaf: Callable[[Node], Node]) -> Node:
    """The functions of elements that a node is made of, of others: of what leaf() gives for each
    node whose elements are not had from those of its parts."""
    made: dict[int, Node] = {}
    stack = [node]
    while stack:
        one = stack[-1]
        inner = one.parts if isinstance(one, Call) and one.shape and not is_whole(one) else ()
        waiting = [part for part in inner if id(part) not in made]
        if waiting and id(one) not in made:
            stack.extend(reversed(waiting))
            continue
        stack.pop()
        if id(one) in made:
            continue
        if inner:
            assert isinstance(one, Call)
            made[id(one)] = one.of(tuple([made[id(part)] for part in inner]))
        else:
            made[id(one)] = leaf(one)
    return made[id(node)]


def broadcast_to(node: Node, shape: Shape) -> Node:
    """To a shape that the node's broadcasts to."""
    missing = len(shape) - len(node.shape)
    axes = [(-1, size, 0) if axis < missing or node.shape[axis - missing] != size
            else (axis - missing, size, 1) for axis, size in enumerate(shape)]
    return viewed(node, (0,) * len(node.shape), tuple(axes))


def is_whole(node: Node) -> bool:
    """Whether its elements cannot be had one by one from those of what it is made of."""
    return isinstance(node, (Ramp, Reduction, Whole)) or is_placed(node)


def counts_places(node: Node) -> bool:
    """Whether an index() or random numbers without a shape of their own count in the whole."""
    return any(is_placed(one) and not one.shape for one in ordered(node))


def _as_source(node: Node) -> Source:
    return computed(node)


def _carried(shape: Shape, part: Shape, start: Start, axes: Axes) -> tuple[Start, Axes]:
    """The view of an array that broadcasts to `shape`, so that it broadcasts to the view of what
    has that shape."""
    missing = len(shape) - len(part)
    spread = [part[axis] != shape[axis + missing] for axis in range(len(part))]
    own = [0 if is_spread else begin
           for begin, is_spread in zip(start[missing:], spread, strict=True)]
    found: list[ViewAxis] = []
    for axis, count, step in axes:
        if axis < 0:
            found.append((-1, count, 0))
        elif axis < missing or spread[axis - missing]:
            found.append((-1, min(count, 1), 0))
        else:
            found.append((axis - missing, count, step))
    return tuple(own), tuple(found)


def _of_source(source: Source, start: Start, axes: Axes) -> Source:
    if isinstance(source, ArraySource) and isinstance(source.array, np.ndarray):
        view = _of_array(source.array, start, axes)
        if view is not None:
            return ArraySource(view)
    if isinstance(source, ViewSource):
        return _of_view(source, start, axes)
    return ViewSource(source, start, axes)


def _of_view(source: ViewSource, start: Start, axes: Axes) -> ViewSource:
    begin = list(source.start)
    for (axis, _, step), first in zip(source.axes, start, strict=True):
        if axis >= 0:
            begin[axis] += first * step
    found = [(-1, count, 0) if axis < 0 or source.axes[axis][0] < 0
             else (source.axes[axis][0], count, source.axes[axis][2] * step)
             for axis, count, step in axes]
    return ViewSource(source.base, tuple(begin), tuple(found))


def _of_array(array: np.ndarray[Any, Any], start: Start,
              axes: Axes) -> np.ndarray[Any, Any] | None:
    """As a view of NumPy's, which knows where a memmap's elements are; None: not by slices."""
    used = [axis for axis, _, _ in axes if axis >= 0]
    if len(set(used)) < len(used) or any(count != 1 if axis < 0 else step == 0 and count > 1
                                         for axis, count, step in axes):
        return None
    key: list[int | Several] = [begin if size else (0, 1, 0)
                                for begin, size in zip(start, array.shape, strict=True)]
    if any(not size and axis not in used for axis, size in enumerate(array.shape)):
        return None
    for axis, count, step in axes:
        if axis >= 0:
            key[axis] = (start[axis], step or 1, count)
    view = array[(*key_of(tuple(key)), ...)]
    order = sorted(used)
    view = view.transpose([order.index(axis) for axis in used])
    return view[tuple([None if axis < 0 else slice(None) for axis, _, _ in axes]) + (...,)]


def permuted(node: Node, order: Sequence[int]) -> Node:
    """With its axes in another order."""
    if list(order) == list(range(len(order))):
        return node
    return viewed(node, (0,) * len(order), tuple([(axis, node.shape[axis], 1) for axis in order]))
