"""gd.qr_r(x): the R of a QR decomposition of a matrix with many rows, in one read.

Parameters
----------
x : Lazy or array_like
    A matrix, of at most 1024 columns.
b : Lazy or array_like, optional
    One column more, of shape (rows, 1): R is that of the matrix with it behind the others.

Returns
-------
Lazy
    (columns, columns), upper triangular; the signs of its rows are any.

Raises
------
BadShape
    No matrix; or b is no column of as many rows.
LimitExceeded
    Too many columns.
"""

from __future__ import annotations

from .. import errors
from .._lazy.array import Lazy
from .._lazy.graph import Node, Whole
from .._lazy.moves import array_of
from .._lazy.operands import Operand
from .describing import describe


def qr_r(x: Operand, /, b: Operand | None = None) -> Lazy:
    """the R of numpy.linalg.qr of a matrix with many rows; with the column b behind its own"""
    node = array_of(x)
    if len(node.shape) != 2 or node.shape[1] == 0:
        raise errors.BadShape(f"qr_r: the matrix has shape {node.shape}", argument="x",
                              expected="two axes, and at least one column", found=str(node.shape))
    if b is None:
        return Lazy._of(Whole("qr_r", (node,), (), (node.shape[1],) * 2))
    column: Node = array_of(b)
    if column.shape != (node.shape[0], 1):
        raise errors.BadShape(f"qr_r: b has shape {column.shape}", argument="b",
                              expected=f"({node.shape[0]}, 1)", found=str(column.shape))
    return Lazy._of(Whole("qr_r", (node, column), ("b",), (node.shape[1] + 1,) * 2))


__all__ = ["qr_r"]

if __doc__:  # not where they are left out
    describe(__doc__, [qr_r])
