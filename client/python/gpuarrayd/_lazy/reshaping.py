"""Arrays with other axes, the elements in C order: reshape(), ravel(), axes that are taken as one.

An axis is divided by a view, which costs nothing. Axes are taken as one by a view, too, where the
elements lie so in the source; else by a copy in shared memory, which is made when it is read.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import errors
from .array import Lazy
from .graph import Call, Node, Ramp, Shape, Source, is_placed, ordered
from .leaves import ArraySource
from .moved import Moved, Piece
from .moves import array_of
from .operands import Operand
from .unanswered import refuse
from .views import ramp, viewed

if TYPE_CHECKING:
    from .. import _core
    from .._jobs.request import Request

__all__ = ["reshape", "ravel"]

Groups: TypeAlias = Sequence[Sequence[int]]  # sizes of the axes that become one


def reshape(a: Operand, /, shape: Any = None, order: str = "C", *, newshape: Any = None,
            copy: bool | None = None) -> Lazy:
    """With other axes, the elements in C order, as numpy.reshape(); one size may be -1."""
    refuse("reshape", {"order": None if order == "C" else order, "copy": None if copy else copy})
    node = array_of(a)
    new = _wanted(node.shape, newshape if shape is None else shape)
    if new == node.shape:
        return Lazy._of(node)
    if 0 in new:
        return Lazy._of(Moved(new, [], Lazy._of(node).dtype))
    blocks = list(_blocks(node.shape, new))
    flat = merged(node, [old for old, _ in blocks])
    axes = [(axis, size, math.prod(sizes[i + 1:])) for axis, (_, sizes) in enumerate(blocks)
            for i, size in enumerate(sizes)]
    if all(len(sizes) == 1 for _, sizes in blocks):
        return Lazy._of(flat)
    return Lazy._of(viewed(flat, (0,) * len(blocks), tuple(axes)))


def ravel(a: Operand, order: str = "C") -> Lazy:
    """With one axis, as numpy.ravel()."""
    return reshape(a, -1, order)


def _wanted(old: Shape, shape: Any) -> Shape:
    new = [operator.index(one) for one in (shape if isinstance(shape, Sequence) else (shape,))]
    rest = math.prod([size for size in new if size != -1])
    if new.count(-1) == 1 and rest > 0 and math.prod(old) % rest == 0:
        new[new.index(-1)] = math.prod(old) // rest
    if min(new, default=0) < 0 or math.prod(new) != math.prod(old):
        raise errors.BadShape(f"an array of shape {old} does not have the shape {tuple(new)}",
                              argument="shape", expected=f"{math.prod(old)} elements",
                              found=str(tuple(new)))
    return tuple(new)


def _blocks(old: Shape, new: Shape) -> Iterator[tuple[Shape, Shape]]:
    """Neighbouring axes of both that have as many elements, as few as can be."""
    i = j = 0
    while i < len(old) or j < len(new):
        first, other = i, j
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        while (n := math.prod(old[first:i])) != (m := math.prod(new[other:j])):
            i, j = (i + 1, j) if n < m else (i, j + 1)
        yield old[first:i], new[other:j]


def merged(root: Node, groups: Groups) -> Node:
    """With groups of neighbouring axes taken as one; of none: an axis of length 1."""
    if all(len(group) == 1 for group in groups):
        return root
    if not root.shape:
        return viewed(root, (), ((-1, 1, 0),) * len(groups))
    nodes = ordered(root)
    if any(one.shape not in (root.shape, ()) or one.has_passes or one.product is not None
           or is_placed(one) for one in nodes):
        return Merged(root, groups)
    made: dict[int, Node] = {}
    for node in nodes:
        if not node.shape:
            made[id(node)] = node
        elif isinstance(node, Ramp):
            made[id(node)] = _merged_ramp(node, groups) or Merged(node, groups)
        elif isinstance(node, Call):
            made[id(node)] = node.of(tuple([made[id(part)] for part in node.parts]))
        else:
            made[id(node)] = _merged_array(node, groups) or Merged(node, groups)
    return made[id(root)]


def _merged_array(node: Node, groups: Groups) -> Node | None:
    """Of an ndarray, where its elements lie so."""
    if not isinstance(node, ArraySource) or not isinstance(node.array, np.ndarray) \
            or _strides(node.shape, node.array.strides, groups) is None:
        return None
    return ArraySource(node.array.reshape(_shape(groups)))


def _merged_ramp(node: Ramp, groups: Groups) -> Node | None:
    steps = _strides(node.shape, node.steps, groups)
    return None if steps is None else ramp(_shape(groups), int(node.first), steps)


def _strides(shape: Shape, strides: Shape, groups: Groups) -> list[int] | None:
    """Of axes that are taken as one; None where those of a group do not lie so."""
    axis, found = 0, []
    for group in groups:
        long = [one for one in range(axis, axis + len(group)) if shape[one] != 1]
        for first, second in itertools.pairwise(long):
            if strides[first] != strides[second] * shape[second]:
                return None
        axis += len(group)
        found.append(strides[long[-1]] if long else 0)
    return found


def _shape(groups: Groups) -> Shape:
    return tuple([math.prod(group) for group in groups])


class Merged(Moved):
    """An array with groups of its axes taken as one: a view of a source whose elements lie so, else
    a copy."""

    __slots__ = ("_source",)

    def __init__(self, node: Node, groups: Groups) -> None:
        axes = []
        for axis, group in enumerate(groups):
            axes += [(axis, size, math.prod(group[i + 1:])) for i, size in enumerate(group)]
        super().__init__(_shape(groups), [Piece(node, (0,) * len(groups), tuple(axes))])
        self._source = node if isinstance(node, Source) else None

    def _made(self, session: "_core.Session", made: "dict[int, _core.Array]",
              request: Request) -> "_core.Array":
        source: Any = self._source
        if source is not None:
            found = (source.__gad_shared__(session, made, request)
                     if hasattr(source, "__gad_shared__") else source.__gad_source__(session))
            try:
                return session.reshape(found, self.shape)
            except errors.BadShape:
                pass
        return super()._made(session, made, request)

    @property
    def is_view(self) -> bool:
        """Whether nothing is made of it."""
        from .._session import current
        source: Any = self._source
        try:
            return source is not None and bool(
                current().reshape(source.__gad_source__(current()), self.shape))
        except errors.BadShape:
            return False
