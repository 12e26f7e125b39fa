"""x[10:20] of a lazy: a part of what is read, never of what was computed.

Of a source it is the source's own part. Of an expression the same part of every array in it, where
each element is made of the elements at its place: then the part of the result is the result of the
parts, and only they are read. Whole-array reductions inside stay those of the whole.
"""

import numpy as np

from .. import errors
from .graph import Call, Node, Source, is_reduction, ordered
from .selection import Items, carried, is_all, items_of, shape_of
from .leaves import ArraySource, FileSource


def indexed(node: Node, key: object) -> Node:
    """The node of node[key].

    Raises
    ------
    IndexError
        As NumPy, for what is out of bounds.
    Unsupported
        Other than basic indexing; of a reduction, or with an index() inside.
    """
    items = items_of(key, node.shape)
    if is_all(items, node.shape):
        return node
    made: dict[int, Node] = {}
    for part in ordered(node, through_reductions=False):
        mine = carried(items, node.shape, part.shape)
        made[id(part)] = _selected(part, mine, made)
    return made[id(node)]


def _selected(node: Node, items: Items, made: dict[int, Node]) -> Node:
    if isinstance(node, (ArraySource, FileSource)):
        if is_all(items, node.shape):
            return node
        shape = shape_of(items)
        return node.selected(items) if 0 not in shape else ArraySource(np.empty(shape, node.dtype))
    if isinstance(node, Call) and not is_reduction(node):
        if node.op == "index":
            raise errors.Unsupported(
                "an expression with an index() has no parts, for it counts in the whole array; "
                "select from its sources", argument="[]", found="index()")
        return Call(node.op, tuple([made[id(part)] for part in node.parts]), node.options,
                    node.result, node.dtype)
    assert not isinstance(node, Source)
    if items:
        raise errors.Unsupported(
            "a new axis of a single number is not computed; use compute()", argument="[]",
            expected="an array with axes", found="a number")
    return node
