"""gd.near(x, -1, 0): at each place the element so far away, for stencils in one pass.

Parameters
----------
x : Lazy or array_like
    An array, or an expression of arrays.
*offsets : int
    One for each axis: near(u, -1, 0) is the element one row above.
mode : {"edge", "constant", "reflect", "symmetric", "wrap"}
    What lies beyond the ends, as numpy.pad has it. reflect and symmetric need offsets within the
    axis.
value : number
    With "constant": what lies there.

Returns
-------
Lazy
    Of the shape and dtype of x.

Raises
------
BadArity
    Not one offset for each axis.
BadShape
    An offset of which the mode says nothing.
BadArgument
    A mode that is none; a stream.
"""

from __future__ import annotations

import operator

import numpy as np

from .. import errors
from .._lazy.array import Lazy
from .._lazy.graph import Whole, settled
from .._lazy.moves import array_of
from .._lazy.operands import Operand
from .describing import describe

_MODES = ("edge", "constant", "reflect", "symmetric", "wrap")


def near(x: Operand, /, *offsets: int, mode: str = "edge", value: bool | int | float = 0) -> Lazy:
    """the element so far away, one offset for each axis: near(x, -1, 0)

    `u + k * (gd.near(u, 1) + gd.near(u, -1) - 2*u)` is one pass. What another pass makes, near too,
    is computed first."""
    node = settled(array_of(x))
    if len(offsets) != len(node.shape):
        raise errors.BadArity(f"near takes an offset for each axis, and x has shape {node.shape}",
                              argument="offsets", expected=f"{len(node.shape)} offsets",
                              found=str(len(offsets)))
    if mode not in _MODES:
        raise errors.BadArgument(f"near: unknown mode {mode!r}", argument="mode",
                                 expected=" ".join(_MODES), found=repr(mode))
    words = [("", str(operator.index(offset))) for offset in offsets]
    words.append(("mode", mode))
    if mode == "constant":
        words.append(("value", repr(value.item() if isinstance(value, np.generic) else value)))
    return Lazy._of(Whole("near", (node,), (), node.shape, tuple(words)))


__all__ = ["near"]

if __doc__:  # not where they are left out
    describe(__doc__, [near])
