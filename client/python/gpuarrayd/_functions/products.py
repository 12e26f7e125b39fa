"""Matrix products: x @ y, gd.matmul(x1, x2), gd.tensordot(a, b).

They have NumPy's names, parameters and meaning, and give lazies. Of a product and functions of
elements, of what is multiplied and of the result, one job is made: maximum((a/255) @ w + b, 0)
stores nothing but the result. Products and reductions beside a product are computed into shared
memory first, each by a job of its own. x @ x.T is computed once for both of its halves. Several
matrices of one dtype, a @ b @ v, are multiplied in the order of least work.

Parameters
----------
x1, x2, a, b : Lazy or array_like
    Of any shape that fits. Matrices are the last two axes; the others broadcast. One axis is a row
    on the left side and a column on the right.
out : optional
    Where the result goes, as of Lazy.compute(): then it is computed at once, and out is given back.
alpha : number
    What the product is multiplied by.
beta : number
    What is in out before is multiplied by this and added; 0: it is not read.
journal : path, bool or None
    With beta: the file in which each part of the result is kept until it has been added, so that
    nothing is added twice whatever ends the job: the same call goes on from there. None: one beside
    the file of out, where that is a file; no other results have one. False: none. It is removed
    when the job is done.
tf32 : bool
    Whether a device may round float32 to the 10 bits of TF32 before it multiplies, which is several
    times as fast; it adds in float32. compute(tf32=True) allows it to all products of a lazy.
axis : int
    Along which; negative ones count from the last.
axes : int, or two sequences of ints
    The last axes of a and the first of b, as many as this; or those of a and those of b that are
    summed over.

Returns
-------
Lazy
    Of NumPy's dtype: numpy.result_type of both. Integers wrap, and of bools the sum is "or".
    `out` where it was given.

Raises
------
BadShape
    The axes that are summed over differ in length, or something has too few axes.
BadArgument
    beta without out, or axes that say nothing.
Unsupported
    What the daemon does not compute, with the reason.
BadJournal
    The journal belongs to another job, or is damaged.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import errors
from .._lazy.array import Lazy, lazy, request, told
from .contraction import Label, contracted
from .._lazy.fitting import known_dtype
from .._lazy.graph import Node, Product, Shape, Source, broadcast
from .._lazy.leaves import ArraySource
from .._lazy.moves import array_of, axis_of
from .._lazy.operands import Operand, call, node_of
from .._lazy.results import made
from .._lazy.views import ViewSource, permuted
from .._jobs.request import Request
from .describing import describe

Journal = str | os.PathLike[str] | bool | None


def multiplied(x1: object, x2: object, tf32: bool = False) -> Product:
    """The node of a product; of a chain of matrices in the order of least work."""
    made = _pair(array_of(x1), array_of(x2), tf32)
    if len(made.chain) > 2:
        work, parts = _least_work(made.chain)
        if work < made.work:
            return _in_order(made.chain, parts, 0, len(made.chain), tf32)
    return made


def _pair(left: Node, right: Node, tf32: bool) -> Product:
    shape = _shape(left.shape, right.shape)
    is_turned = _are_turned(left, right)
    made = Product((left, left if is_turned else right), shape, is_turned, tf32)
    chain = (*_chain(left), *_chain(right))
    if all(len(one.shape) == 2 for one in chain[1:-1]) and max(
            len(one.shape) for one in (chain[0], chain[-1])) <= 2:
        kinds = {known_dtype(one) for one in chain} if len(chain) > 2 else {None, 0}
        if len(chain) == 2 or len(kinds) == 1 and None not in kinds:
            sizes = _sizes((left, right))
            made.chain = chain
            made.work = sum(one.work for one in (left, right) if isinstance(one, Product)) \
                + sizes[0] * sizes[1] * sizes[2]
    return made


def _chain(node: Node) -> tuple[Node, ...]:
    return node.chain or (node,) if isinstance(node, Product) else (node,)


def _sizes(chain: Sequence[Node]) -> list[int]:
    """Rows of each matrix, and columns of the last."""
    return [1 if len(chain[0].shape) == 1 else chain[0].shape[0],
            *[one.shape[0] for one in chain[1:]],
            1 if len(chain[-1].shape) == 1 else chain[-1].shape[1]]


def _least_work(chain: Sequence[Node]) -> tuple[int, dict[tuple[int, int], int]]:
    """Multiplications, and where each part of the chain is divided."""
    n, sizes = len(chain), _sizes(chain)
    work: dict[tuple[int, int], int] = {(i, i + 1): 0 for i in range(n)}
    parts: dict[tuple[int, int], int] = {}
    for length in range(2, n + 1):
        for first in range(n - length + 1):
            end = first + length
            work[first, end], parts[first, end] = min(
                (work[first, at] + work[at, end] + sizes[first] * sizes[at] * sizes[end], at)
                for at in range(first + 1, end))
    return work[0, n], parts


def _in_order(chain: Sequence[Node], parts: dict[tuple[int, int], int], first: int, end: int,
              tf32: bool) -> Product:
    at = parts[first, end]
    left, right = (chain[one] if other - one == 1 else _in_order(chain, parts, one, other, tf32)
                   for one, other in ((first, at), (at, end)))
    return _pair(left, right, tf32)


def _shape(a: Shape, b: Shape) -> Shape:
    for name, shape in (("x1", a), ("x2", b)):
        if not shape:
            raise errors.BadShape("matmul: a number has no axis to sum over; * multiplies by it",
                                  argument=name, expected="at least one axis", found="()")
    if a[-1] != b[max(len(b) - 2, 0)]:
        raise errors.BadShape(f"matmul: inner dimensions differ: {a} x {b}", argument="x2",
                              expected=f"{a[-1]} along axis {max(len(b) - 2, 0)}",
                              found=str(b[max(len(b) - 2, 0)]))
    batch = broadcast("matmul", [_Sized(a[:-2]), _Sized(b[:-2])])
    return (*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


class _Sized(Node):
    """For broadcast() of shapes."""

    __slots__ = ()

    def __init__(self, shape: Shape) -> None:
        self.parts = ()
        self.shape = shape


def _are_turned(left: Node, right: Node) -> bool:
    """Whether the right matrices are the left ones with their axes exchanged, element for element.
    """
    if len(left.shape) < 2 or _turned(left.shape) != right.shape \
            or not (isinstance(left, Source) and isinstance(right, Source)):
        return False
    if isinstance(left, ArraySource) and isinstance(right, ArraySource):
        a, b = left.array, right.array
        return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == b.dtype \
            and a.ctypes.data == b.ctypes.data and _turned(a.strides) == b.strides and a.size > 0
    (base, start, axes), (other, others_start, others_axes) = map(_place, (left, right))
    return base == other and start == others_start and _turned(axes) == others_axes


def _turned(axes: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*axes[:-2], axes[-1], axes[-2])


def _place(source: Source) -> tuple[object, tuple[int, ...], tuple[Any, ...]]:
    if isinstance(source, ViewSource):
        return (type(source.base), source.base.same()), source.start, source.axes
    axes = tuple([(axis, size, 1) for axis, size in enumerate(source.shape)])
    return (type(source), source.same()), (0,) * len(source.shape), axes


def matmul(x1: Operand, x2: Operand, /, out: Any = None, *, alpha: float = 1, beta: float = 0,
           journal: Journal = None, tf32: bool = False) -> Lazy:
    """matrix product, over the last two axes

    alpha * (x1 @ x2) + beta * out."""
    node: Node = multiplied(x1, x2, tf32)
    if not _is_number(alpha, 1):
        node = call("multiply", _factor("alpha", alpha), node)
    if _is_number(beta, 0):
        if journal:
            raise errors.BadArgument("matmul: a journal is for what is added into out: beta=1",
                                     argument="journal", expected="beta=", found="journal= alone")
        return made(node, out)
    if out is None:
        raise errors.BadArgument("matmul: beta is a factor of what is in out, which is not given",
                                 argument="beta", expected="out=", found="beta= alone")
    before: Node = lazy(out)._node
    if not _is_number(beta, 1):
        before = call("multiply", _factor("beta", beta), before)
    sums = Lazy._of(call("add", node, before))
    if sums._node.shape != before.shape:
        raise errors.BadShape(f"matmul: out has shape {before.shape}, the product {node.shape}",
                              argument="out", expected=str(node.shape), found=str(before.shape))
    job = request([sums], [out])
    job.journal = _journal(journal)
    return told(job, Request.run)[0]  # type: ignore[no-any-return]


def _is_number(value: object, number: int) -> bool:
    """Of Python's alone: others have a dtype, which the result depends on."""
    return type(value) in (int, float) and value == number


def _factor(name: str, value: object) -> Node:
    node = node_of(value)
    if node.shape or isinstance(value, Lazy):
        raise errors.BadArgument(f"matmul: {name} is no number", argument=name,
                                 expected="a number", found=type(value).__name__)
    return node


def _journal(given: Journal) -> str | bool:
    """As a Request has it. True: the library names one where it is needed."""
    if given is None or isinstance(given, bool):
        return given is not False
    return os.path.abspath(os.fsdecode(given))


# By products.

def dotted(a: object, b: object) -> Node:
    """The node of dot()."""
    left, right = array_of(a), array_of(b)
    if not left.shape or not right.shape:
        return call("multiply", left, right)
    if len(left.shape) == 1 or len(right.shape) <= 2:
        return multiplied(left, right)
    return _over(left, right, (len(left.shape) - 1,), (len(right.shape) - 2,))


def dot(a: Operand, b: Operand, out: Any = None) -> Lazy:
    """The matrix product of matrices and vectors, as numpy.dot(); of a number the product; of more
    axes the sum over the last of a and the second to last of b."""
    return made(dotted(a, b), out)


def inner(a: Operand, b: Operand, /) -> Lazy:
    """The sum over the last axes of both, as numpy.inner()."""
    left, right = array_of(a), array_of(b)
    if not left.shape or not right.shape:
        return Lazy._of(call("multiply", left, right))
    return Lazy._of(_over(left, right, (len(left.shape) - 1,), (len(right.shape) - 1,)))


def vdot(a: Operand, b: Operand, /) -> Lazy:
    """The sum of the products of all elements, as numpy.vdot(); of arrays of one shape."""
    left, right = array_of(a), array_of(b)
    if left.shape != right.shape:
        raise errors.Unsupported(f"vdot: arrays of shapes {left.shape} and {right.shape} would be "
                                 "flattened", argument="b", expected=str(left.shape),
                                 found=str(right.shape))
    return Lazy._of(_over(left, right, tuple(range(len(left.shape))),
                          tuple(range(len(left.shape)))))


def vecdot(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Lazy:
    """The sum of the products along an axis, as numpy.vecdot(); the other axes broadcast."""
    left, right = array_of(x1), array_of(x2)
    nodes = []
    for node in (left, right):
        along = axis_of(axis, len(node.shape))
        order = [one for one in range(len(node.shape)) if one != along]
        nodes.append(permuted(node, [*order, along]))
    shapes = [node.shape for node in nodes]
    if shapes[0][-1] != shapes[1][-1]:
        raise errors.BadShape(f"vecdot: axes of length {shapes[0][-1]} and {shapes[1][-1]}",
                              argument="x2", expected=str(shapes[0][-1]), found=str(shapes[1][-1]))
    rows, columns = Lazy._of(nodes[0])[..., None, :], Lazy._of(nodes[1])[..., None]
    return Lazy._of(multiplied(rows, columns))[..., 0, 0]


def matvec(x1: Operand, x2: Operand, /) -> Lazy:
    """Matrices by vectors, which are the last axis of x2, as numpy.matvec()."""
    columns = Lazy._of(_with_axis("matvec", x2))[..., None]
    return Lazy._of(multiplied(x1, columns))[..., 0]


def vecmat(x1: Operand, x2: Operand, /) -> Lazy:
    """Vectors, which are the last axis of x1, by matrices, as numpy.vecmat()."""
    rows = Lazy._of(_with_axis("vecmat", x1))[..., None, :]
    return Lazy._of(multiplied(rows, x2))[..., 0, :]


def _with_axis(op: str, value: object) -> Node:
    node = array_of(value)
    if not node.shape:
        raise errors.BadShape(f"{op}: a number is no vector", argument=op,
                              expected="at least one axis", found="()")
    return node


def outer(a: Operand, b: Operand, out: Any = None) -> Lazy:
    """Each element of a vector by each of another, as numpy.outer()."""
    left, right = array_of(a), array_of(b)
    for name, node in (("a", left), ("b", right)):
        if len(node.shape) > 1:
            raise errors.Unsupported(f"outer: {name} of shape {node.shape} would be flattened",
                                     argument=name, expected="one axis", found=str(node.shape))
    rows = Lazy._of(left)[:, None] if left.shape else Lazy._of(left)[None, None]
    columns = Lazy._of(right)[None, :] if right.shape else Lazy._of(right)[None, None]
    return made(call("multiply", rows, columns), out)


def _over(left: Node, right: Node, left_axes: Sequence[int], right_axes: Sequence[int],
          tf32: bool = False) -> Node:
    """The sum over pairs of axes."""
    a: list[Label] = list(range(len(left.shape)))
    b: list[Label] = list(range(len(a), len(a) + len(right.shape)))
    for one, other in zip(left_axes, right_axes, strict=True):
        if left.shape[one] != right.shape[other]:
            raise errors.BadShape(
                f"tensordot: axis {one} of {left.shape} and axis {other} of {right.shape} differ",
                argument="axes", expected=str(left.shape[one]), found=str(right.shape[other]))
        b[other] = a[one]
    alone = [label for label in (*a, *b) if (label in a) != (label in b)]
    return contracted(left, a, right, b, alone, tf32)


def tensordot(a: Operand, b: Operand, axes: Any = 2, *, tf32: bool = False) -> Lazy:
    """sum of products over axes of both

    As numpy.tensordot()."""
    left, right = array_of(a), array_of(b)
    if np.iterable(axes):
        first, second = (list(one) if np.iterable(one) else [one] for one in axes)
        if len(first) != len(second):
            raise errors.BadShape(f"tensordot: {len(first)} axes of a and {len(second)} of b",
                                  argument="axes", expected=f"{len(first)} axes",
                                  found=str(len(second)))
    else:
        n = operator.index(axes)
        if not 0 <= n <= min(len(left.shape), len(right.shape)):
            raise errors.BadShape(f"tensordot: {n} axes of arrays of {len(left.shape)} and "
                                  f"{len(right.shape)}", argument="axes", found=str(n),
                                  expected=f"0 to {min(len(left.shape), len(right.shape))}")
        first, second = list(range(len(left.shape) - n, len(left.shape))), list(range(n))
    mine = [axis_of(one, len(left.shape), "axes", True) for one in first]
    others = [axis_of(one, len(right.shape), "axes", True) for one in second]
    if len(set(mine)) < len(mine) or len(set(others)) < len(others):
        raise errors.BadArgument("tensordot: an axis is named twice", argument="axes",
                                 expected="each axis once", found=str(axes))
    return Lazy._of(_over(left, right, mine, others, tf32))


__all__ = ["matmul", "dot", "inner", "vdot", "vecdot", "matvec", "vecmat", "outer", "tensordot"]

if __doc__:  # not where they are left out
    describe(__doc__, [matmul, dot, inner, vdot, vecdot, matvec, vecmat, outer, tensordot])
