"""Sums of products by the names of axes, gd.einsum("ij,jk->ik", a, b), and diagonals.

Of several operands two at a time are multiplied, in NumPy's order of fewest operations; each of
these is a matrix product or a product of elements, as of two operands (contraction.py). A letter
that an operand has twice takes the diagonal, of which alone the elements are read. Letters that
nothing else has are summed over first.

Parameters
----------
subscripts : str
    A letter for each axis of each operand, "ij,jk->ik"; what is not behind the arrow is summed
    over. "..." stands for axes that broadcast. Without an arrow: letters that are there once, in
    the alphabet's order. Or x, [0, 1], y, [1, 2], [0, 2].
operands : Lazy or array_like
    As many as there are groups of letters.
out : optional
    Where the result goes, as of Lazy.compute(): then it is computed at once, and out is given back.
dtype : data-type, optional
    What the operands are cast to first.
optimize : bool, str or list
    In which order: as numpy.einsum_path() takes or gives it. False and True: its "greedy".
tf32 : bool
    As of matmul().
a : Lazy or array_like
    An array of two axes or more.
offset, axis1, axis2 : int
    Which diagonal, of the matrices along which axes.

Returns
-------
Lazy
    Of NumPy's dtype: numpy.result_type of all. Integers wrap, and of bools the sum is "or".
    `out` where it was given.

Raises
------
BadShape
    Axes of one letter differ in length, or letters in number from the axes.
BadArgument
    Subscripts that say nothing, or an order that is none.
Unsupported
    What the daemon does not compute, with the reason.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import errors
from .._lazy.array import Lazy
from .._lazy.graph import Call, Node, dtype_name
from .._lazy.leaves import ArraySource
from .._lazy.moves import array_of, axis_of
from .._lazy.operands import Operand
from .._lazy.picked import picked
from .._lazy.results import made
from .._lazy.subscripts import in_words, parsed
from .._lazy.views import permuted
from .contraction import Label, contracted, without
from .describing import describe
from .reducing import reduced

_Term = tuple[Node, list[Label]]


def einsum(subscripts: Any, /, *operands: Any, out: Any = None,
           dtype: npt.DTypeLike | None = None, order: str = "K", casting: str = "safe",
           optimize: Any = False, tf32: bool = False) -> Lazy:
    """Sums of products by the names of axes, as numpy.einsum()."""
    if order != "K" or casting != "safe":
        raise errors.Unsupported("einsum: order= and casting= are not served", argument="einsum",
                                 expected="order='K', casting='safe'",
                                 found=f"order={order!r}, casting={casting!r}")
    text, arrays = in_words((subscripts, *operands))
    nodes = [array_of(one) for one in arrays]
    labels, result = parsed(text, [node.shape for node in nodes])
    terms = [_without_repeats(*term) for term in zip(_alike(nodes, dtype), labels, strict=True)]
    return made(_combined(terms, result, optimize, tf32), out)


def _alike(nodes: list[Node], dtype: npt.DTypeLike | None) -> list[Node]:
    """Cast to a dtype. Where there is none two are multiplied as they are, and of more all must be
    cast, as a sum of some of them does not know of the others."""
    if dtype is None and len(nodes) <= 2:
        return nodes
    owns = [Lazy._of(node).dtype for node in nodes]
    name = dtype_name(np.result_type(*owns) if dtype is None else dtype)
    for own in owns:
        if not np.can_cast(own, name):
            raise errors.BadDtype(f"einsum: {own} is not cast to {name} without loss; x.astype() "
                                  "does", argument="dtype", found=name,
                                  expected="a dtype that holds the operands'")
    return [node if own == name and dtype is None else Call("astype", (node,), dtype=name)
            for node, own in zip(nodes, owns, strict=True)]


# Diagonals.

def _without_repeats(node: Node, labels: list[Label]) -> _Term:
    for label in dict.fromkeys(labels):
        axes = [axis for axis, one in enumerate(labels) if one == label]
        if len(axes) > 1:
            sizes = [node.shape[axis] for axis in axes]
            if len(set(sizes)) > 1:
                raise errors.BadShape(
                    f"einsum: axes of length {sizes[0]} and {sizes[1]} have one label, {label!r}",
                    argument="operands", expected=str(sizes[0]), found=str(node.shape))
            node = _diagonal(node, axes)
            labels = [*[one for one in labels if one != label], label]
    return node, labels


def _diagonal(node: Node, axes: list[int], start: int = 0, count: int | None = None) -> Node:
    """Elements of which the places along axes are equal, or of two axes `start` apart; these are
    the last axis. start: of the first of them, in both as one."""
    rest = [axis for axis in range(len(node.shape)) if axis not in axes]
    sizes = [node.shape[axis] for axis in axes]
    count = min(sizes) if count is None else count
    node = permuted(node, [*rest, *axes])
    step = sum(int(np.prod(sizes[i + 1:], dtype=np.int64)) for i in range(len(sizes)))
    places = start + step * np.arange(count)
    if isinstance(node, ArraySource) and isinstance(node.array, np.ndarray) and start == 0:
        dots = list(range(len(rest)))
        square = node.array[tuple([*[slice(None)] * len(rest), *[slice(count)] * len(axes)])]
        return ArraySource(np.einsum(square, [*dots, *[len(rest)] * len(axes)],
                                     [*dots, len(rest)]))
    return picked(node, ArraySource(places), len(rest), len(axes))


def diagonal(a: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Lazy:
    """Elements on the diagonal of matrices, as numpy.diagonal(): the last axis."""
    node = array_of(a)
    if len(node.shape) < 2:
        raise errors.BadShape("diagonal: an array of at least two axes has one", argument="a",
                              expected="two axes", found=str(node.shape))
    rows, columns = (axis_of(axis, len(node.shape), name)
                     for axis, name in ((axis1, "axis1"), (axis2, "axis2")))
    if rows == columns:
        raise errors.BadArgument("diagonal: axis1 and axis2 are the same", argument="axis2",
                                 expected="another axis", found=str(axis2))
    n, m, k = node.shape[rows], node.shape[columns], operator.index(offset)
    count = max(0, min(n + min(k, 0), m - max(k, 0)))
    return Lazy._of(_diagonal(node, [rows, columns], k if k > 0 else -k * m, count))


def trace(a: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1,
          dtype: npt.DTypeLike | None = None, out: Any = None) -> Lazy:
    """The sum of the diagonal of matrices, as numpy.trace()."""
    return made(reduced("sum", diagonal(a, offset, axis1, axis2), -1, dtype=dtype, initial=0), out)


# Several operands.

def _combined(terms: list[_Term], result: list[Label], optimize: Any, tf32: bool) -> Node:
    for chosen in _order(terms, result, optimize):
        taken = [terms.pop(i) for i in sorted(chosen, reverse=True)][::-1]
        others = {label for _, labels in terms for label in labels}.union(result)
        terms.append(_folded(taken, others, result if not terms else None, tf32))
    node, labels = _folded(terms, set(result), result, tf32)
    return _summed(node, labels, result)


def _folded(taken: list[_Term], others: set[Label], result: list[Label] | None,
            tf32: bool) -> _Term:
    """Those that are multiplied in one step, two at a time. others: labels that are needed after
    it. result: in this order, None: as it comes."""
    node, labels = taken[0]
    for i, (right, theirs) in enumerate(taken[1:], 1):
        later = others.union(*[more for _, more in taken[i + 1:]])
        kept = [one for one in labels if one in later]
        wanted = [*[one for one in kept if one in theirs], *[one for one in kept if one not in
                  theirs], *[one for one in theirs if one in later and one not in labels]]
        if result is not None and i == len(taken) - 1:
            wanted = result
        node, labels = contracted(node, labels, right, theirs, wanted, tf32), wanted
    return node, labels


def _order(terms: Sequence[_Term], result: list[Label], optimize: Any) -> list[tuple[int, ...]]:
    """Which terms are multiplied in each step; what comes of it is the last one then."""
    if len(terms) < 3:
        return [tuple(range(len(terms)))] if len(terms) == 2 else []
    if isinstance(optimize, (bool, np.bool_)) or optimize is None:
        optimize = "greedy"
    if isinstance(optimize, str):
        optimize = (optimize, np.iinfo(np.int64).max)  # intermediates may have any size
    numbers: dict[Label, int] = {}
    for _, labels in terms:
        for label in labels:
            numbers.setdefault(label, len(numbers))
    likes: list[Any] = []
    for node, labels in terms:
        likes += [np.broadcast_to(np.empty(()), node.shape), [numbers[one] for one in labels]]
    try:
        path = np.einsum_path(*likes, [numbers[one] for one in result], optimize=optimize)[0]
    except (TypeError, KeyError, RuntimeError) as error:
        raise errors.BadArgument(f"einsum: {error}", argument="optimize", found=repr(optimize),
                                 expected="what numpy.einsum_path takes or gives") from None
    return [tuple(chosen) for chosen in path[1:]]


def _summed(node: Node, labels: list[Label], result: list[Label]) -> Node:
    """Without the axes that are not in the result, in its order."""
    node, labels = without(node, labels, [one for one in labels if one not in result])
    return permuted(node, [labels.index(one) for one in result])


__all__ = ["einsum", "diagonal", "trace"]

if __doc__:  # not where they are left out
    describe(__doc__, [einsum, diagonal, trace])
