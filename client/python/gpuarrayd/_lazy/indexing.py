"""x[10:20] of a lazy: a part of what is read, never of what was computed. Keys with arrays are
fancy.py's.

Of a source it is the source's own part. Of an expression the same part of every array in it, where
each element is made of the elements at its place: then the part of the result is the result of the
parts, and only they are read. Of a reduction along axes it is the reduction of a part of what is
reduced; reductions of whole arrays inside stay those of the whole.

A node may be wanted with several selections, so nodes are made for each (node, selection), parts
first; nothing recurses.
"""

from typing import TypeAlias

import numpy as np

from .. import errors
from .graph import Call, Node, Number, Ramp, Reduction, Source, Whole, computed, is_placed
from .fancy import fancy, is_fancy
from .selection import Item, Items, carried, is_all, items_of, shape_of
from .leaves import ArraySource
from .streaming.unbounded import UNBOUNDED
from .views import view_of, viewed

Wanted: TypeAlias = list[tuple[Node, Items]]


def indexed(node: Node, key: object) -> Node:
    """The node of node[key].

    Raises
    ------
    IndexError
        As NumPy, for what is out of bounds.
    Unsupported
        Of a number, or with an index() or random numbers inside.
    """
    if is_fancy(key):
        return fancy(node, key, indexed)
    items = items_of(key, node.shape)
    if is_all(items, node.shape):
        return node
    made: dict[tuple[int, Items], Node] = {}
    stack: Wanted = [(node, items)]
    while stack:
        one, mine = stack[-1]
        wanted = [] if (id(one), mine) in made else _wanted(one, mine)
        waiting = [(part, its) for part, its in wanted if (id(part), its) not in made]
        if waiting:
            stack.extend(reversed(waiting))
            continue
        stack.pop()
        if (id(one), mine) not in made:
            parts = tuple([made[id(part), its] for part, its in wanted])
            made[id(one), mine] = _selected(one, mine, parts)
    return made[id(node), items]


def _wanted(node: Node, items: Items) -> Wanted:
    """The parts of a node, with what is to be selected from each."""
    if isinstance(node, Reduction):
        if is_all(items, node.shape) or _is_empty(node, items) or _is_place(node, items):
            return []
        source = node.parts[0]
        mine, _, _ = _before(node, items)
        return [(part, carried(mine, source.shape, part.shape)) for part in node.parts]
    if isinstance(node, Whole):
        is_parted = node.along is not None and not is_all(items, node.shape)
        return [(node.parts[node.along or 0], items)] if is_parted else []
    if isinstance(node, Ramp):
        return []
    if is_placed(node):
        raise errors.Unsupported(
            "an expression with an index() or random numbers has no parts, for these depend on an "
            "element's place in the whole array; select from its sources, or from the computed "
            "array", argument="[]", found="index() or random numbers")
    have_shape = not all(isinstance(part, Number) for part in node.parts)
    return [(part, () if have_shape and isinstance(part, Number)  # it broadcasts with the others
             else carried(items, node.shape, part.shape)) for part in node.parts]


def _selected(node: Node, items: Items, parts: tuple[Node, ...]) -> Node:
    if isinstance(node, Source):
        if is_all(items, node.shape):
            return node
        shape = shape_of(items)
        is_some = 0 not in shape or UNBOUNDED in shape
        return node.selected(items) if is_some else ArraySource(np.empty(shape, node.dtype))
    if isinstance(node, Ramp):
        return viewed(node, *view_of(items, node.shape))
    if isinstance(node, Reduction):
        if not parts and is_all(items, node.shape):
            return node
        if not parts:
            return _empty(node, items) if _is_empty(node, items) \
                else _selected(computed(node), items, ())
        _, axes, keepdims = _before(node, items)
        return Reduction(node.op, parts, axes, keepdims, node.more)
    if isinstance(node, Whole):
        if parts:
            mine = tuple([parts[0] if i == node.along else part
                          for i, part in enumerate(node.parts)])
            return Whole(node.op, mine, node.options, parts[0].shape, node.more, node.result,
                         node.along)
        return node if is_all(items, node.shape) else _selected(computed(node), items, ())
    if isinstance(node, Call):
        return node.of(parts)
    if items:
        raise errors.Unsupported(
            "a new axis of a single number is not computed; use compute()", argument="[]",
            expected="an array with axes", found="a number")
    return node


def _before(node: Reduction, items: Items) -> tuple[Items, tuple[int, ...], bool]:
    """What to select from what is reduced, the axes to reduce then, and whether to keep them, so
    that the result is what the items select of the reduction's."""
    named = [item for item in items if item is not None]
    is_kept = node.keepdims and not any(isinstance(named[axis], int) for axis in node.axes)
    waiting = list(items)
    found: list[Item] = []
    axes: list[int] = []
    for axis, size in enumerate(node.parts[0].shape):
        is_reduced = axis in node.axes
        item: Item = (0, 1, size)
        if not is_reduced or node.keepdims:
            while waiting[0] is None:
                found.append(waiting.pop(0))
            chosen = waiting.pop(0)
            if not is_reduced:
                item = chosen
            elif not isinstance(chosen, int) and not is_kept:
                found.append(None)  # it stays, of length 1, and others do not
        found.append(item)
        if is_reduced:
            axes.append(sum(not isinstance(one, int) for one in found) - 1)
    return (*found, *waiting), tuple(axes), is_kept


def _is_empty(node: Reduction, items: Items) -> bool:
    """Whether nothing is selected of an axis that is reduced and kept with length 1."""
    named = [item for item in items if item is not None]
    return node.keepdims and any(isinstance(item, tuple) and item[2] == 0
                                 for axis, item in enumerate(named) if axis in node.axes)


def _is_place(node: Reduction, items: Items) -> bool:
    """Whether it is a place in the whole array, which a new axis would stand between: argmin() and
    argmax() take one axis or all."""
    return node.op in ("argmin", "argmax") and len(node.axes) > 1 \
        and None in _before(node, items)[0]


def _empty(node: Node, items: Items) -> Node:
    """Of the node's dtype, for which the daemon is asked."""
    from .array import Lazy
    return ArraySource(np.empty(shape_of(items), Lazy._of(node).dtype))
