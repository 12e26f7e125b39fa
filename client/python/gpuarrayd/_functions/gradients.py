"""gd.gradient(f, dx, dy): numpy.gradient, of an element's neighbours in one pass; places along an
axis that are not evenly spaced are arrays of coefficients beside f, as long as the axis."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .. import errors
from .._lazy.array import Lazy
from .._lazy.moves import array_of
from .._lazy.operands import Operand
from .functions import index, where
from .near import near
from .windows import Axes, correlate


def gradient(f: Operand, *varargs: npt.ArrayLike, axis: Axes | None = None,
             edge_order: int = 1) -> Lazy | list[Lazy]:
    """Differences of neighbours, of second order inside, as numpy.gradient. Spacings are numbers,
    or the places of the elements along an axis.

    A lazy for one axis, else a list of them, one for each axis."""
    x = Lazy._of(array_of(f))
    ndim = x.ndim
    axes = [*range(ndim)] if axis is None else [one + ndim if one < 0 else one
                                               for one in np.atleast_1d(axis).tolist()]
    given = [np.asarray(one, dtype=np.float64) for one in varargs or (1.0,)]
    is_one = len(given) == 1 and given[0].ndim == 0
    steps = given * len(axes) if is_one else given
    if len(steps) != len(axes) or any(step.ndim > 1 for step in steps):
        raise errors.BadArgument("a spacing is a number, one for all axes or one for each, or the "
                                 "places along an axis", argument="varargs",
                                 expected=f"1 or {len(axes)} numbers or arrays of one axis",
                                 found=f"{len(given)} of {[one.ndim for one in given]} axes")
    if edge_order not in (1, 2) or any(not 0 <= one < ndim or x.shape[one] <= edge_order
                                       for one in axes):
        raise errors.BadShape("gradient needs axes that are longer than the order of their ends",
                              argument="axis", expected=f"more than {edge_order} elements, "
                              "edge_order 1 or 2", found=f"shape {x.shape}")
    if x.dtype.kind not in "f":
        x = x.astype(np.float64)
    found = [_slope(x, one, float(step), edge_order) if step.ndim == 0
             else _slope_at(x, one, step, edge_order)
             for one, step in zip(axes, steps, strict=True)]
    return found[0] if len(found) == 1 else found


def _slope_at(x: Lazy, axis: int, places: npt.NDArray[np.float64], edge_order: int) -> Lazy:
    """Of elements at these places."""
    if len(places) != x.shape[axis]:
        raise errors.BadShape("gradient needs a place for each element of the axis",
                              argument="varargs", expected=f"{x.shape[axis]} places",
                              found=str(len(places)))
    steps = np.diff(places)
    if (steps == steps[0]).all():
        return _slope(x, axis, float(steps[0]), edge_order)
    before, behind = steps[:-1], steps[1:]
    span = before + behind
    factors = np.zeros((3, len(places)))  # of the element before, of itself, of that behind
    factors[:, 1:-1] = (-behind / (before * span), (behind - before) / (before * behind),
                        before / (behind * span))
    factors[1:, 0] = -1 / steps[0], 1 / steps[0]
    factors[:2, -1] = -1 / steps[-1], 1 / steps[-1]
    shape = [-1 if one == axis else 1 for one in range(x.ndim)]
    parts = [factor.astype(x.dtype).reshape(shape) for factor in factors]
    offsets = [[distance if one == axis else 0 for one in range(x.ndim)] for distance in (-1, 1)]
    inner = near(x, *offsets[0]) * parts[0] + x * parts[1] + near(x, *offsets[1]) * parts[2]
    if edge_order == 1:
        return inner
    a, b = steps[:2]
    first = correlate(x, np.array([-(2 * a + b) / (a * (a + b)), (a + b) / (a * b),
                                   -a / (b * (a + b))]), axis, origin=-1)
    a, b = steps[-2:]
    end = correlate(x, np.array([b / (a * (a + b)), -(b + a) / (a * b),
                                 (2 * b + a) / (b * (a + b))]), axis, origin=1)
    place, last = index(axis), len(places) - 1
    return where(place == 0, first, where(place == last, end, inner))


def _slope(x: Lazy, axis: int, step: float, edge_order: int) -> Lazy:
    """With the element at an end beyond it the difference there is of one step, not two. The
    element in the middle is not read, for it may be NaN, and its slope is not."""
    before, behind = (near(x, *(sign if one == axis else 0 for one in range(x.ndim)))
                      for sign in (-1, 1))
    place, last = index(axis), x.shape[axis] - 1
    inner = (behind - before) * (0.5 / step)
    if edge_order == 1:
        return where((place == 0) | (place == last), inner * 2, inner)
    first = correlate(x, np.array([-1.5, 2, -0.5]) / step, axis, origin=-1)
    end = correlate(x, np.array([0.5, -2, 1.5]) / step, axis, origin=1)
    return where(place == 0, first, where(place == last, end, inner))


__all__ = ["gradient"]
