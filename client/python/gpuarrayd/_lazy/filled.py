"""np.zeros_like(x) and its like: lazies of one value, in the shape of another, without memory."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import errors
from .array import Lazy, lazy
from .fitting import OutOfBounds
from .graph import Shape, dtype_name
from .leaves import ArraySource
from .operands import Operand
from .unanswered import refuse, refuse_unusual
from .streaming.unbounded import check_lengths
from .views import broadcast_to

__all__ = ["zeros_like", "ones_like", "empty_like", "full_like"]


def _filled(name: str, a: Operand, value: Any, dtype: npt.DTypeLike | None, order: object,
            shape: Any, device: object) -> Lazy:
    refuse_unusual(f"np.{name}", order=(order, "K"))
    refuse(f"np.{name}", {"device": device})
    like = lazy(a)
    kind = np.dtype(like.dtype if dtype is None else dtype_name(dtype))
    if shape is None:
        check_lengths(like._node.shape, [like._node])
        wanted: Shape = like.shape
    else:
        sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
        wanted = tuple([operator.index(size) for size in sizes])
    return filled(f"np.{name}", value, kind, wanted)


def filled(name: str, value: Any, kind: np.dtype[Any], wanted: Shape) -> Lazy:
    """One value, or what broadcasts to the shape, in a dtype."""
    if isinstance(value, Lazy):
        found = value.astype(kind)._node
    else:
        plain = np.empty(np.shape(value), kind)
        try:
            np.copyto(plain, value, casting="unsafe")  # NumPy's own are cast, Python's must fit
        except OverflowError as refused:
            raise OutOfBounds(f"{name}: {refused}", argument="fill_value",
                              expected=f"what fits {kind.name}", found="another number") \
                from refused
        found = ArraySource(plain)
    missing = len(wanted) - len(found.shape)
    if missing < 0 or any(size not in (1, whole) for size, whole
                          in zip(found.shape, wanted[missing:], strict=True)):
        raise errors.BadShape(f"{name}: a value of shape {found.shape} does not broadcast to "
                              f"{wanted}", argument="fill_value", expected=str(wanted),
                              found=str(found.shape))
    return Lazy._of(broadcast_to(found, wanted))


def zeros_like(a: Operand, dtype: npt.DTypeLike | None = None, order: str = "K",
               subok: bool = True, shape: Any = None, *, device: object = None) -> Lazy:
    """Zeros in the shape and dtype of another, as numpy.zeros_like()."""
    return _filled("zeros_like", a, 0, dtype, order, shape, device)


def ones_like(a: Operand, dtype: npt.DTypeLike | None = None, order: str = "K",
              subok: bool = True, shape: Any = None, *, device: object = None) -> Lazy:
    """Ones in the shape and dtype of another, as numpy.ones_like()."""
    return _filled("ones_like", a, 1, dtype, order, shape, device)


def empty_like(prototype: Operand, /, dtype: npt.DTypeLike | None = None, order: str = "K",
               subok: bool = True, shape: Any = None, *, device: object = None) -> Lazy:
    """Zeros: a lazy has no memory that could be left as it is."""
    return _filled("empty_like", prototype, 0, dtype, order, shape, device)


def full_like(a: Operand, fill_value: Operand, dtype: npt.DTypeLike | None = None,
              order: str = "K", subok: bool = True, shape: Any = None, *,
              device: object = None) -> Lazy:
    """One value in the shape and dtype of another, as numpy.full_like()."""
    return _filled("full_like", a, fill_value, dtype, order, shape, device)
