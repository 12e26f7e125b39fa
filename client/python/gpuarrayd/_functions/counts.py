"""Counts and look-ups: gd.histogram(a, 100), gd.bincount(x), gd.searchsorted(a, v), gd.take(a, i).

They have NumPy's names, parameters and meaning, and give lazies, which may be parts of larger
expressions. Everything is counted where it is read: nothing is stored but the result.

Parameters
----------
a : Lazy or array_like
    Of any shape; what is looked up in has one axis.
x : Lazy or array_like
    Of any shape; of bincount one axis, of integers from 0 on.
bins : int, Lazy or array_like
    How many bins of one width; or their edges, one more than bins, in one axis, which grow (of
    digitize they may fall, too). Names of NumPy's estimators are refused.
range : (float, float), optional
    Where the first bin begins and the last ends; None: the least and the largest element.
density : bool, optional
    Whether the counts are divided by their sum and the bins' widths.
weights : Lazy or array_like, optional
    Of the shape of what is counted: what each element counts.
minlength : int
    The least length of the result.
length : int, optional
    The length of the result: no element may be as large. None: the daemon is asked for the largest
    element first, by a job of its own.
v : Lazy, array_like or number
    What is looked up; of any shape.
side : {"left", "right"}
    Before or behind elements that are equal.
sorter : Lazy or array_like of int, optional
    The indices that sort a.
right : bool
    Whether a bin has its right edge, and not its left one.
indices : Lazy, array_like or int
    Of any shape; negative ones count from the end.
axis : int or None
    Along which; None: as if the array were flat.
out : optional
    Where the result goes, as of Lazy.compute(): then it is computed at once, and out is given back.
mode : {"raise", "wrap", "clip"}
    What becomes of indices out of range: they are refused, taken modulo the length, or the nearest.

Returns
-------
Lazy
    Of histogram two: the counts, and the edges. `out` where it was given.

Raises
------
BadArgument
    No bins, a range that is no range, a word or number that has no meaning; when it is computed:
    edges that do not grow, integers below 0.
BadIndex
    When it is computed: indices out of range. An IndexError.
BadShape
    Weights of another shape, or more axes than one.
BadDtype
    Integers are needed; or the dtype is not served.
Unsupported
    What the daemon does not compute, with the reason.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from .. import errors
from .._arguments.refusals import WrongType
from .._lazy.array import Lazy
from .._lazy.graph import Call, Node, Ramp, Whole, Words, computed, dtype_name, ordered
from .._lazy.leaves import ArraySource
from .._lazy.moves import array_of, axis_of
from .._lazy.operands import Operand, node_of
from .._lazy.picked import MODES, indices_of, is_mask, picked
from .._lazy.results import compute, made
from .._lazy.views import viewed
from .describing import describe


def _choice(op: str, name: str, value: object, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise errors.BadArgument(f"{op}: {name} is {value!r}", argument=name, found=repr(value),
                                 expected=" or ".join(map(repr, choices)))
    return str(value)


def _check_row(op: str, name: str, node: Node) -> None:
    if len(node.shape) != 1:
        raise errors.BadShape(f"{op}: {name} has shape {node.shape}, not one axis", argument=name,
                              expected="one axis", found=str(node.shape))


def _weights(op: str, node: Node, weights: object) -> Node | None:
    """Which have the shape of what is counted."""
    if weights is None:
        return None
    found = array_of(weights)
    if found.shape != node.shape:
        raise errors.BadShape(f"{op}: weights of shape {found.shape} for elements of {node.shape}",
                              argument="weights", expected=str(node.shape), found=str(found.shape))
    return found


# Histograms.

def _range(op: str, given: Any) -> Words:
    """The words of range=."""
    if given is None:
        return ()
    first, last = (float(one) for one in given)
    if not (math.isfinite(first) and math.isfinite(last) and first <= last):
        raise errors.BadArgument(f"{op}: range is ({first}, {last}), which is no range",
                                 argument="range", expected="two finite numbers, the least first",
                                 found=f"({first}, {last})")
    return (("range", f"({first!r},{last!r})"),)


def _of_range(node: Node, limits: Any) -> Node:
    """NumPy's scalars in range= count for the dtype of the edges, Python's numbers do not."""
    if limits is None or not any(isinstance(one, np.generic) for one in limits):
        return node
    own = Lazy._of(node).dtype
    wanted = np.result_type(own, *limits)
    if wanted.kind != "f" or wanted == (own if own.kind == "f" else np.dtype("f8")):
        return node
    return Call("astype", (node,), dtype=dtype_name(wanted))


_MOST_EDGES = 1 << 16  # that the daemon looks up


def _rounded_edges(node: Node, bins: int, limits: Any) -> Any:
    """Between limits of float32 NumPy steps in float32, whatever the dtype of the edges is, and the
    daemon in float64: then NumPy's edges. None elsewhere, and where the daemon takes fewer."""
    if limits is None or bins >= _MOST_EDGES \
            or not any(isinstance(one, (np.float32, np.float16)) for one in limits):
        return None
    return np.histogram_bin_edges(np.empty(0, Lazy._of(node).dtype), bins, limits)


def _binned(op: str, a: object, bins: Any, limits: Any, weights: object,
            density: object = None) -> tuple[Node, ...]:
    """What histogram() counts and its edges, as nodes; with one result of histogram_bin_edges()."""
    node = node_of(a)
    mask = _weights(op, node, weights)
    node = _of_range(node, limits)
    if isinstance(bins, str):
        raise errors.Unsupported(f"{op}: bins={bins!r} would be estimated, which is not computed "
                                 "by the daemon; np.histogram_bin_edges() of a part of the array "
                                 "gives edges", argument="bins", expected="a number or edges",
                                 found=repr(bins))
    parts: tuple[Node, ...] = (node,)
    options: tuple[str, ...] = ()
    if not isinstance(bins, Lazy) and np.ndim(bins) == 0:
        n = operator.index(bins)
        if n < 1:
            raise errors.BadArgument(f"{op}: bins is {n}", argument="bins", expected="1 or more",
                                     found=str(n))
        words = (("bins", str(n)), *_range(op, limits))
        rounded = _rounded_edges(node, n, limits)
    else:
        n, rounded = 0, bins
    if rounded is not None:
        edges = array_of(rounded)
        _check_row(op, "bins", edges)
        n, words = edges.shape[0] - 1, ()
        parts, options = (node, edges), ("bins",)
    if op == "histogram_bin_edges":  # given ones, too, are the daemon's to check
        return (Whole(op, parts, options, (n + 1,), words),)
    if density:
        words = (*words, ("density", "True"))
    if mask is not None:
        parts, options = (*parts, mask), (*options, "weights")
    counts = Whole(op, parts, options, (max(n, 0),), words, 0)
    return counts, Whole(op, parts, options, (n + 1,), words, 1)


def histogram(a: Operand, bins: Operand = 10, range: tuple[float, float] | None = None,
              density: bool | None = None, weights: Operand | None = None) -> tuple[Lazy, Lazy]:
    """how many elements are in each bin, and the edges of the bins"""
    counts, edges = [Lazy._of(node) for node in
                     _binned("histogram", a, bins, range, weights, density)]
    if weights is not None and not density:
        counts = counts.astype(Lazy._of(array_of(weights)).dtype)
    return counts, edges


def histogram_bin_edges(a: Operand, bins: Operand = 10, range: tuple[float, float] | None = None,
                        weights: Operand | None = None) -> Lazy:
    """the edges of histogram's bins"""
    return Lazy._of(*_binned("histogram_bin_edges", a, bins, range, weights))


# Bincount.

def _length(node: Node, minlength: object) -> int:
    """One more than the largest element, which the daemon finds."""
    least = operator.index(minlength)  # type: ignore[arg-type]
    if least < 0:
        raise errors.BadArgument(f"bincount: minlength is {least}", argument="minlength",
                                 expected="0 or more", found=str(least))
    if 0 in node.shape:
        return least
    one = Lazy._of(node)
    if one.dtype.kind not in "iub":
        raise errors.BadDtype(f"bincount: elements are {one.dtype.name}, not integers",
                              argument="x", expected="integers", found=one.dtype.name)
    low, high = map(int, compute(one.min(), one.max()))
    if low < 0:
        raise errors.BadArgument(f"bincount: the least element is {low}", argument="x",
                                 expected="0 or more", found=str(low))
    return max(least, high + 1)


def bincount(x: Operand, /, weights: Operand | None = None, minlength: int = 0, *,
             length: int | None = None) -> Lazy:
    """how often each of 0 to length - 1 is there, or the sum of its weights"""
    node = array_of(x)
    _check_row("bincount", "x", node)
    sums = _weights("bincount", node, weights)
    n = _length(node, minlength) if length is None else operator.index(length)
    if 0 in node.shape:
        return Lazy._of(ArraySource(np.zeros(n, "i8")))  # NumPy's, with weights, too
    parts, options = ((node,), ()) if sums is None else ((node, sums), ("weights",))
    return Lazy._of(Whole("bincount", parts, options, (n,), (("length", str(n)),)))


# Look-ups.

def _looked_up(op: str, parts: tuple[Node, ...], along: int, words: Words) -> Whole:
    """The table is the other part, which is read in whole."""
    parts = tuple([computed(part) if (i != along or op == "take")
                   and any(isinstance(one, Ramp) for one in ordered(part)) else part
                   for i, part in enumerate(parts)])
    return Whole(op, parts, (), parts[along].shape, words, None, along)


def _order(table: Node, sorter: object) -> Node:
    """The indices that sort the table, from 0 on."""
    order = array_of(sorter)
    kind = Lazy._of(order).dtype
    if len(order.shape) != 1 or kind.kind not in "iu":
        raise WrongType(f"searchsorted: sorter is {kind.name} of shape {order.shape}, not a row of "
                        "integers", argument="sorter", expected=f"integers of shape {table.shape}",
                        found=f"{kind.name} {order.shape}")
    if order.shape != table.shape:
        raise errors.BadArgument(f"searchsorted: sorter has {order.shape[0]} elements for "
                                 f"{table.shape[0]}", argument="sorter", expected=str(table.shape),
                                 found=str(order.shape))
    return Call("astype", (order,), dtype="uint64")  # negative ones are outside then


def searched(a: object, v: object, side: object, sorter: object) -> Whole:
    """The node of searchsorted()."""
    word = _choice("searchsorted", "side", side, ("left", "right"))
    table = array_of(a)
    _check_row("searchsorted", "a", table)
    if sorter is not None:
        table = taken(table, _order(table, sorter), None, "raise")
    return _looked_up("searchsorted", (table, node_of(v)), 1,
                      () if word == "left" else (("side", word),))


def searchsorted(a: Operand, v: Operand, side: str = "left",
                 sorter: Operand | None = None) -> Lazy:
    """where elements of the second would be put into the first, which is in ascending order"""
    return Lazy._of(searched(a, v, side, sorter))


def digitize(x: Operand, bins: Operand, right: bool = False) -> Lazy:
    """the number of the bin of each element; the second argument are edges that grow or fall"""
    edges = array_of(bins)
    _check_row("digitize", "bins", edges)
    return Lazy._of(_looked_up("digitize", (node_of(x), edges), 0,
                               (("right", "True"),) if right else ()))


_MOST_LOOKED_UP = 1 << 16  # elements of a table that the daemon keeps


def taken(a: object, indices: object, axis: object, mode: object) -> Node:
    """The node of take(): a look-up in a table, or what is picked from an array."""
    word = _choice("take", "mode", mode, MODES)
    table = array_of(a)
    ndim = len(table.shape)
    along = 0 if axis is None else axis_of(axis, ndim)
    if ndim != 1 or table.shape[0] > _MOST_LOOKED_UP:
        if not ndim:
            table = viewed(table, (), ((-1, 1, 0),))
        where = indices_of(indices)
        if is_mask(where):  # which NumPy takes as 0 and 1 here
            where = Call("astype", (where,), dtype="int64")
        return picked(table, where, along, max(ndim, 1) if axis is None else 1, word)
    where = node_of(indices)
    if isinstance(indices, (list, tuple)) and isinstance(where, ArraySource) \
            and where.dtype.kind == "f":  # of nothing, too; NumPy takes lists as integers
        where = ArraySource(where.array.astype(np.intp))
    return _looked_up("take", (table, where), 1,
                      () if word == "raise" else (("mode", word),))


def take(a: Operand, indices: Operand, axis: int | None = None, out: object = None,
         mode: str = "raise") -> Lazy:
    """elements of one axis by their indices; of an argument along any axis

    Of an array of any size with an axis; without one as if it were flat. Indices that are read with
    the array, and are no part of its text, may lie anywhere and have any number."""
    return made(taken(a, indices, axis, mode), out)


__all__ = ["histogram", "histogram_bin_edges", "bincount", "searchsorted", "digitize", "take"]

if __doc__:  # not where they are left out
    describe(__doc__, [histogram, histogram_bin_edges, bincount, searchsorted, digitize, take])
