"""Sums of products of two arrays, as one matrix product each: what tensordot() and einsum() mean.

Every axis of an operand has a label. With sizes in brackets:

    a: i j k    b: k l j    ->  l i        batch: none, summed over: j k, rows: i, columns: l
    left  (i, j*k)  a                      axes of a kind are permuted together, and taken as one
    right (j*k, l)  b, permuted
    left @ right (i, l), stored as (l, i)  so the operands change sides: rows and columns are then
                                           in the order of the result

Taking several axes as one costs nothing where the elements lie so, and else a copy in shared
memory. The result is written through such a view, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import errors
from .._lazy.graph import Node, Product
from .._lazy.moved import Moved, Piece
from .._lazy.operands import call
from .._lazy.reshaping import merged
from .reducing import reduced
from .._lazy.views import permuted, viewed

if TYPE_CHECKING:
    from .. import _core
    from .._jobs.request import Request

Label: TypeAlias = str | int  # of an axis


def contracted(left: Node, a: list[Label], right: Node, b: list[Label],
               result: list[Label], tf32: bool = False) -> Node:
    """The node of a sum of products. a, b: the labels of the operands' axes, each once; those that
    are not in `result` are summed over."""
    sizes = _sizes(left, a, right, b)
    left, a = _spread(left, a, sizes)
    right, b = _spread(right, b, sizes)
    alone = [[one for one in mine if one not in others and one not in result]
             for mine, others in ((a, b), (b, a))]
    if any(alone):
        common = np.result_type(_dtype(left), _dtype(right))
        left, a = without(left, a, alone[0], common)
        right, b = without(right, b, alone[1], common)
    summed = [one for one in a if one in b and one not in result]
    if not summed:
        return call("multiply", _aligned(left, a, result), _aligned(right, b, result))
    if _changes_sides(a, b, result):
        left, a, right, b = right, b, left, a
    return _multiplied(left, a, right, b, summed, result, tf32)


def _sizes(left: Node, a: list[Label], right: Node, b: list[Label]) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for node, labels in ((left, a), (right, b)):
        for label, size in zip(labels, node.shape, strict=True):
            known = sizes.get(label, 1)
            if known != size and known != 1 and size != 1:
                raise errors.BadShape(
                    f"axes of length {known} and {size} have one label: {left.shape} and "
                    f"{right.shape}", argument="operands", expected=str(known), found=str(size))
            sizes[label] = size if known == 1 else known
    return sizes


def _spread(node: Node, labels: list[Label], sizes: dict[Label, int]) -> tuple[Node, list[Label]]:
    """Without the axes of length 1 that are longer on the other side."""
    kept = [i for i, label in enumerate(labels) if node.shape[i] == sizes[label]]
    if len(kept) == len(labels):
        return node, labels
    axes = tuple([(i, node.shape[i], 1) for i in kept])
    return viewed(node, (0,) * len(labels), axes), [labels[i] for i in kept]


def _dtype(node: Node) -> np.dtype[np.generic]:
    from .._lazy.array import Lazy
    return Lazy._of(node).dtype


def without(node: Node, labels: list[Label], gone: Sequence[Label],
            dtype: np.dtype[np.generic] | None = None) -> tuple[Node, list[Label]]:
    """The sum over some axes, in a dtype; None: in its own."""
    if not gone:
        return node, labels
    axes = tuple([labels.index(one) for one in gone])
    dtype = _dtype(node) if dtype is None else dtype
    rest = [one for one in labels if one not in gone]
    if dtype.kind == "b":
        return reduced("any", node, axes), rest
    return reduced("sum", node, axes, dtype=dtype, initial=0), rest


def _aligned(node: Node, labels: list[Label], result: list[Label]) -> Node:
    """So that it broadcasts to the result."""
    axes = [(labels.index(one), node.shape[labels.index(one)], 1) if one in labels else (-1, 1, 0)
            for one in result]
    if axes == [(axis, size, 1) for axis, size in enumerate(node.shape)]:
        return node
    return viewed(node, (0,) * len(labels), tuple(axes)) if result else node


def _changes_sides(a: list[Label], b: list[Label], result: list[Label]) -> bool:
    """Whether the result has the axes of the second operand first."""
    for label in result:
        if (label in a) != (label in b):
            return label in b
    return False


def _multiplied(left: Node, a: list[Label], right: Node, b: list[Label], summed: list[Label],
                result: list[Label], tf32: bool) -> Node:
    from .products import multiplied
    batch = [one for one in result if one in a and one in b]
    rows = [one for one in result if one in a and one not in b]
    columns = [one for one in result if one in b and one not in a]
    has_rows, has_columns = bool(rows or batch), bool(columns or batch)
    one, other = left.shape, right.shape
    left = _merged(left, a, batch, *([rows, summed] if has_rows else [summed]))
    right = _merged(right, b, batch, *([summed, columns] if has_columns else [summed]))
    product = multiplied(left, right, tf32)
    sizes = {**dict(zip(a, one, strict=True)), **dict(zip(b, other, strict=True))}
    order = [*[[label] for label in batch], *([rows] if has_rows else []),
             *([columns] if has_columns else [])]
    if [[label] for label in result] == order:
        return product
    return Placed(product, order, result, sizes)


def _merged(node: Node, labels: list[Label], batch: list[Label], *groups: list[Label]) -> Node:
    """With its axes permuted, and those of a group taken as one."""
    order = [*batch, *[label for group in groups for label in group]]
    node = permuted(node, [labels.index(label) for label in order])
    sizes = dict(zip(order, node.shape, strict=True))
    return merged(node, [*[[sizes[label]] for label in batch],
                         *[[sizes[label] for label in group] for group in groups]])


class Placed(Moved):
    """A product whose axes are several of the result's each, or stand in another order: computed
    into a view of the result."""

    __slots__ = ()

    def __init__(self, product: Product, order: Sequence[Sequence[Label]], result: list[Label],
                 sizes: dict[Label, int]) -> None:
        flat = [label for group in order for label in group]
        axes = tuple([(result.index(label), sizes[label], 1) for label in flat])
        super().__init__(tuple([sizes[label] for label in result]),
                         [Piece(product, (0,) * len(result), axes, product.shape)])
