"""gd.gradient(f, dx, dy): numpy.gradient, of kernels of three elements in one pass."""

from __future__ import annotations

import numpy as np

from .. import errors
from .._lazy.array import Lazy
from .._lazy.moves import array_of
from .._lazy.operands import Operand
from .functions import index, where
from .windows import Axes, correlate


def gradient(f: Operand, *varargs: float, axis: Axes | None = None,
             edge_order: int = 1) -> Lazy | list[Lazy]:
    """Differences of neighbours, of second order inside, as numpy.gradient; spacings are numbers.

    A lazy for one axis, else a list of them, one for each axis."""
    x = Lazy._of(array_of(f))
    ndim = x.ndim
    axes = [*range(ndim)] if axis is None else [one + ndim if one < 0 else one
                                               for one in np.atleast_1d(axis).tolist()]
    steps = [*varargs] * (len(axes) if len(varargs) == 1 else 1) or [1.0] * len(axes)
    if len(steps) != len(axes) or any(np.ndim(step) for step in steps):
        raise errors.BadArgument("a spacing is a number, one for all axes or one for each",
                                 argument="varargs", expected=f"1 or {len(axes)} numbers",
                                 found=str(varargs))
    if edge_order not in (1, 2) or any(not 0 <= one < ndim or x.shape[one] <= edge_order
                                       for one in axes):
        raise errors.BadShape("gradient needs axes that are longer than the order of their ends",
                              argument="axis", expected=f"more than {edge_order} elements, "
                              "edge_order 1 or 2", found=f"shape {x.shape}")
    if x.dtype.kind not in "f":
        x = x.astype(np.float64)
    found = [_slope(x, one, float(step), edge_order)
             for one, step in zip(axes, steps, strict=True)]
    return found[0] if len(found) == 1 else found


def _slope(x: Lazy, axis: int, step: float, edge_order: int) -> Lazy:
    """With the element at an end beyond it the difference there is of one step, not two."""
    def kernel(*numbers: float) -> Lazy:
        return correlate(x, np.array(numbers), axis)
    place, last = index(axis), x.shape[axis] - 1
    inner = kernel(-0.5 / step, 0, 0.5 / step)
    if edge_order == 1:
        return where((place == 0) | (place == last), inner * 2, inner)
    first = correlate(x, np.array([-1.5, 2, -0.5]) / step, axis, origin=-1)
    end = correlate(x, np.array([0.5, -2, 1.5]) / step, axis, origin=1)
    return where(place == 0, first, where(place == last, end, inner))


__all__ = ["gradient"]
