"""Moving windows, gd.window_mean(x, 5, axis=0), and kernels, gd.correlate(x, [[0, 1, 0], ...]).

Parameters
----------
x : Lazy or array_like
    An array, or an expression of arrays.
size : int or tuple of ints
    Of the window, for all of its axes or one for each: from 1 to 8192.
kernel : array_like of numbers
    With as many axes as the window, at most 255 long each, 4096 numbers in all.
rank : int
    A place in the ascending order; below 0 from the end.
axis : int or tuple of ints
    The window's axes; all without.
mode : {"edge", "constant", "reflect", "symmetric", "wrap"}
    What lies beyond the ends, as numpy.pad has it, for windows of any size.
value : number
    With "constant": what lies there.
origin : int or tuple of ints
    So many elements more lie before each place, and as many fewer behind it.

Returns
-------
Lazy
    Of the shape of x. Windows of windows are one job with them.

Raises
------
BadArgument
    A mode that is none; a kernel that has no numbers.
BadShape, BadExpression, LimitExceeded
    Told by the daemon: sizes, axes and origins that cannot be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import errors
from .._lazy.array import Lazy
from .._lazy.graph import Call, Node, Product, Whole, Words, computed, ordered
from .._lazy.moves import array_of
from .._lazy.operands import Operand
from .describing import describe

Axes: TypeAlias = int | Sequence[int]
MODES = ("edge", "constant", "reflect", "symmetric", "wrap")
WINDOWS = frozenset(["window_sum", "window_mean", "window_min", "window_max", "window_std",
                     "window_median", "window_rank", "correlate", "convolve"])


def _is_end(node: Node) -> bool:
    return isinstance(node, Product) or (isinstance(node, Call) and node.is_pass
                                         and node.op not in WINDOWS)


def _operand(root: Node) -> Node:
    """The same, where all passes but windows are arrays that are computed first."""
    if not root.has_passes and not root.product:
        return root
    made: dict[int, Node] = {}
    for node in ordered(root, _is_end):
        if _is_end(node):
            made[id(node)] = computed(node)
            continue
        parts = tuple([made[id(part)] for part in node.parts])
        if all(one is part for one, part in zip(parts, node.parts, strict=True)):
            made[id(node)] = node
        elif isinstance(node, Whole):
            made[id(node)] = Whole(node.op, parts, (), node.shape, node.more)
        else:
            assert isinstance(node, Call)
            made[id(node)] = node.of(parts)
    return made[id(root)]


def _numbers(found: Any) -> str:
    """One integer, or a tuple of them, as text."""
    numbers = np.asarray(found)
    if numbers.dtype.kind not in "iu" or numbers.ndim > 1:
        raise errors.BadArgument(f"{found!r} is no integer, and no tuple of integers",
                                 argument="size", expected="integers", found=repr(found))
    listed = numbers.tolist()
    return f"({','.join(map(str, listed))},)" if numbers.ndim else str(listed)


def _kernel(kernel: npt.ArrayLike) -> str:
    numbers = np.asarray(kernel)
    if numbers.dtype.kind not in "biuf" or numbers.ndim == 0 or numbers.size == 0:
        raise errors.BadArgument("a kernel has numbers, along one axis at least", argument="kernel",
                                 expected="an array of numbers", found=f"{numbers.dtype} of shape "
                                 f"{numbers.shape}")
    if not np.isfinite(numbers).all():
        raise errors.BadArgument("a kernel has finite numbers", argument="kernel",
                                 expected="finite numbers", found="inf or nan")
    return str((numbers.astype(np.int64) if numbers.dtype.kind == "b" else numbers).tolist())


def window(op: str, x: Operand, first: Words, axis: Axes | None, mode: str,
           value: bool | int | float, origin: Axes) -> Lazy:
    if mode not in MODES:
        raise errors.BadArgument(f"{op}: unknown mode {mode!r}", argument="mode",
                                 expected=" ".join(MODES), found=repr(mode))
    node = _operand(array_of(x))
    words = [*first, ("mode", mode)]
    if axis is not None:
        words.append(("axis", _numbers(axis)))
    if mode == "constant":
        words.append(("value", repr(value.item() if isinstance(value, np.generic) else value)))
    if np.any(origin):
        words.append(("origin", _numbers(origin)))
    return Lazy._of(Whole(op, (node,), (), node.shape, tuple(words)))


def window_sum(x: Operand, /, size: Axes, axis: Axes | None = None, mode: str = "edge",
               value: bool | int | float = 0, origin: Axes = 0) -> Lazy:
    """sum of the window around each element"""
    return window("window_sum", x, (("", _numbers(size)),), axis, mode, value, origin)


def window_mean(x: Operand, /, size: Axes, axis: Axes | None = None, mode: str = "edge",
                value: bool | int | float = 0, origin: Axes = 0) -> Lazy:
    """mean of the window around each element"""
    return window("window_mean", x, (("", _numbers(size)),), axis, mode, value, origin)


def window_min(x: Operand, /, size: Axes, axis: Axes | None = None, mode: str = "edge",
               value: bool | int | float = 0, origin: Axes = 0) -> Lazy:
    """smallest of the window around each element"""
    return window("window_min", x, (("", _numbers(size)),), axis, mode, value, origin)


def window_max(x: Operand, /, size: Axes, axis: Axes | None = None, mode: str = "edge",
               value: bool | int | float = 0, origin: Axes = 0) -> Lazy:
    """largest of the window around each element"""
    return window("window_max", x, (("", _numbers(size)),), axis, mode, value, origin)


def window_std(x: Operand, /, size: Axes, axis: Axes | None = None, mode: str = "edge",
               value: bool | int | float = 0, origin: Axes = 0) -> Lazy:
    """standard deviation of the window around each element"""
    return window("window_std", x, (("", _numbers(size)),), axis, mode, value, origin)


def window_median(x: Operand, /, size: Axes, axis: Axes | None = None, mode: str = "edge",
                  value: bool | int | float = 0, origin: Axes = 0) -> Lazy:
    """median of the window around each element"""
    return window("window_median", x, (("", _numbers(size)),), axis, mode, value, origin)


def window_rank(x: Operand, /, rank: int, size: Axes, axis: Axes | None = None, mode: str = "edge",
                value: bool | int | float = 0, origin: Axes = 0) -> Lazy:
    """element at a place of the ascending order of the window around each"""
    first = (("", _numbers(rank)), ("", _numbers(size)))
    return window("window_rank", x, first, axis, mode, value, origin)


def correlate(x: Operand, /, kernel: npt.ArrayLike, axis: Axes | None = None, mode: str = "edge",
              value: bool | int | float = 0, origin: Axes = 0) -> Lazy:
    """sum of the window around each element times a kernel of numbers"""
    return window("correlate", x, (("", _kernel(kernel)),), axis, mode, value, origin)


def convolve(x: Operand, /, kernel: npt.ArrayLike, axis: Axes | None = None, mode: str = "edge",
             value: bool | int | float = 0, origin: Axes = 0) -> Lazy:
    """the same with the kernel turned around"""
    return window("convolve", x, (("", _kernel(kernel)),), axis, mode, value, origin)


__all__ = ["window_sum", "window_mean", "window_min", "window_max", "window_std", "window_median",
           "window_rank", "correlate", "convolve"]

if __doc__:  # not where they are left out
    describe(__doc__, [window_sum, window_mean, window_min, window_max, window_std, window_median,
                       window_rank, correlate, convolve])
