"""Graphs as plain lists, so that lazies go between processes, however deep they are.

Sources of files go by their place in the file system, arrays of the process with their elements.
What a list has several times, the other side has once.
"""

from typing import Any

from .graph import (Call, Node, Number, Product, Ramp, Random, Reduction, Source, Steps,
                    Whole, ordered)
from .leaves import unpickled


def flattened(root: Node) -> list[tuple[Any, ...]]:
    """One entry for each node, parts first."""
    flat: list[tuple[Any, ...]] = []
    numbers: dict[int, int] = {}
    for node in ordered(root):
        numbers[id(node)] = len(flat)
        if isinstance(node, Call):
            parts = tuple([numbers[id(part)] for part in node.parts])
            flat.append(_call(node, parts))
        elif isinstance(node, Number):
            flat.append(("number", node.value, node.dtype))
        else:
            assert isinstance(node, Source)
            flat.append(node.pickled())
    return flat


def _call(node: Call, parts: tuple[int, ...]) -> tuple[Any, ...]:
    if isinstance(node, Reduction):
        return "reduction", node.op, parts, node.axes, node.keepdims, node.more
    if isinstance(node, Random):
        return "random", node.op, parts, node.options, node.size, node.more
    if isinstance(node, Steps):
        return "steps", parts, node.n_steps, node.nexts, node.until, node.first
    if isinstance(node, Product):
        return "product", node.op, parts, node.shape, node.is_turned, node.tf32
    if isinstance(node, Ramp):
        return "ramp", node.op, parts, int(node.first), node.steps
    if isinstance(node, Whole):
        return "whole", node.op, parts, node.options, node.shape, node.more, node.result, node.along
    return "call", node.op, parts, node.options, node.result, node.dtype


_CALLS = {"call": Call, "reduction": Reduction, "random": Random, "whole": Whole}
_OF_ONE_OP = {"product": Product, "ramp": Ramp}


def restored(flat: list[tuple[Any, ...]]) -> Node:
    """The last node of a list of flattened()."""
    nodes: list[Node] = []
    for kind, *rest in flat:
        if kind in _CALLS or kind in _OF_ONE_OP:
            op, parts, *others = rest
            made = tuple([nodes[i] for i in parts])
            nodes.append(_OF_ONE_OP[kind](made, *others) if kind in _OF_ONE_OP
                         else _CALLS[kind](op, made, *others))
        elif kind == "steps":
            nodes.append(Steps(tuple([nodes[i] for i in rest[0]]), *rest[1:]))
        elif kind == "number":
            nodes.append(Number(*rest))
        else:
            nodes.append(unpickled((kind, *rest)))
    return nodes[-1]
