"""Filters under the names and with the parameters of scipy.ndimage, of arrays of any size:
gd.ndimage.gaussian_filter(gd.open("u.npy"), 3), gd.ndimage.median_filter(x, 5, mode="mirror").

They take lazies and arrays and give lazies of the same shape and dtype, in one job with what is
around them where that is not too much for one read. Modes are SciPy's: "reflect" (numpy.pad's
symmetric), "mirror" (its reflect), "nearest" (edge), "constant", "wrap", and their grid- names.
Means and kernels are computed in float64 and, of integers, cut off as SciPy does, axis after axis;
results differ from SciPy's in last bits. `output` is None or a dtype. A NaN makes NaN of the
windows that have it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import errors
from ._functions.functions_of_one import sqrt
from ._functions.windows import Axes, _numbers, window
from ._lazy.array import Lazy
from ._lazy.graph import computed
from ._lazy.moves import array_of
from ._lazy.operands import Operand

Modes: TypeAlias = str | Sequence[str]
Output: TypeAlias = npt.DTypeLike | None
_MODES = {"reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect",
          "nearest": "edge", "constant": "constant", "grid-constant": "constant", "wrap": "wrap",
          "grid-wrap": "wrap"}
_MOST_BYTES = 60 << 10  # that one job reads for one element
_MOST_NUMBERS = 255


def _refuse(message: str, argument: str, expected: str, found: object) -> errors.BadArgument:
    return errors.BadArgument(message, argument=argument, expected=expected, found=str(found))


def _start(x: Operand) -> tuple[Lazy, np.dtype[Any]]:
    lazy = Lazy._of(array_of(x))
    return lazy, lazy.dtype


def _axes(axes: Axes | None, ndim: int) -> list[int]:
    found = range(ndim) if axes is None else np.atleast_1d(axes)
    listed = [operator.index(axis) + (ndim if axis < 0 else 0) for axis in found]
    if any(not 0 <= axis < ndim for axis in listed) or len({*listed}) < len(listed):
        raise _refuse(f"axes {axes} are not different axes of {ndim}", "axes",
                      f"axes from {-ndim} to {ndim - 1}", axes)
    return listed


def _each(found: Any, n: int, argument: str) -> list[Any]:
    """One for each axis; strings are single ones."""
    if isinstance(found, str) or np.ndim(found) == 0:
        return [found] * n
    listed = [*found]
    if len(listed) != n:
        raise _refuse(f"'{argument}' has {len(listed)} elements, for {n} axes", argument,
                      f"one, or {n}", len(listed))
    return listed


def _mode(mode: str) -> str:
    if mode not in _MODES:
        raise _refuse(f"unknown mode {mode!r}", "mode", " ".join(_MODES), repr(mode))
    return _MODES[mode]


def _finish(lazy: Lazy, dtype: np.dtype[Any], output: Output) -> Lazy:
    if isinstance(output, np.ndarray):
        raise _refuse("results are lazies: np.asarray() and gd.save() store them", "output",
                      "None or a dtype", "an array")
    wanted = dtype if output is None else np.dtype(output)
    return lazy if lazy.dtype == wanted else lazy.astype(wanted)


def _value(cval: Any, dtype: np.dtype[Any]) -> Any:
    """As SciPy's, which are cut off to the dtype."""
    return dtype.type(cval).item() if dtype.kind in "biu" else float(cval)


def _one(op: str, lazy: Lazy, first: tuple[tuple[str, str], ...], axis: Axes | None, mode: str,
         cval: Any, origin: Axes) -> Lazy:
    """In the dtype of what it is of, which each axis of a filter has."""
    dtype = lazy.dtype
    return _finish(window(op, lazy, first, axis, _mode(mode), _value(cval, dtype), origin), dtype,
                   None)


def _along(lazy: Lazy, sizes: Sequence[int], steps: Sequence[Callable[[Lazy], Lazy]]) -> Lazy:
    """One axis after the other: in one job, or, where one element would need too much of the array,
    each in a job of its own."""
    is_apart = math.prod(sizes) * 8 > _MOST_BYTES
    for i, step in enumerate(steps):
        if is_apart and i > 0:
            lazy = Lazy._of(computed(lazy._node))
        lazy = step(lazy)
    return lazy


def _separate(op: str, x: Operand, size: Any, output: Output, mode: Modes, cval: float,
              origin: Axes, axes: Axes | None) -> Lazy:
    lazy, dtype = _start(x)
    found = _axes(axes, lazy.ndim)
    sizes = [operator.index(one) for one in _each(size, len(found), "size")]
    rows = zip(found, sizes, _each(mode, len(found), "mode"), _each(origin, len(found), "origin"),
               strict=True)

    def step(row: tuple[int, int, str, int]) -> Callable[[Lazy], Lazy]:
        return lambda part: _one(op, part, (("", _numbers(row[1])),), row[0], row[2], cval, row[3])
    steps = [step(row) for row in rows if row[1] != 1]
    return _finish(_along(lazy, sizes, steps), dtype, output)


def uniform_filter1d(input: Operand, size: int, axis: int = -1, output: Output = None,
                     mode: str = "reflect", cval: float = 0.0, origin: int = 0) -> Lazy:
    """The mean of each window along one axis, as scipy.ndimage.uniform_filter1d."""
    return _separate("window_mean", input, size, output, mode, cval, origin, axis)


def uniform_filter(input: Operand, size: Axes = 3, output: Output = None,
                   mode: Modes = "reflect", cval: float = 0.0, origin: Axes = 0, *,
                   axes: Axes | None = None) -> Lazy:
    """The mean of each window, as scipy.ndimage.uniform_filter."""
    return _separate("window_mean", input, size, output, mode, cval, origin, axes)


def _size(size: Any, footprint: Any) -> Any:
    if footprint is None:
        if size is None:
            raise _refuse("there is no size", "size", "size=...", None)
        return size
    shape = np.asarray(footprint)
    if not shape.all():
        raise _refuse("windows are whole boxes", "footprint", "True everywhere", "False in it")
    return shape.shape


def maximum_filter1d(input: Operand, size: int, axis: int = -1, output: Output = None,
                     mode: str = "reflect", cval: float = 0.0, origin: int = 0) -> Lazy:
    """The largest of each window along one axis, as scipy.ndimage.maximum_filter1d."""
    return _separate("window_max", input, size, output, mode, cval, origin, axis)


def minimum_filter1d(input: Operand, size: int, axis: int = -1, output: Output = None,
                     mode: str = "reflect", cval: float = 0.0, origin: int = 0) -> Lazy:
    """The smallest of each window along one axis, as scipy.ndimage.minimum_filter1d."""
    return _separate("window_min", input, size, output, mode, cval, origin, axis)


def maximum_filter(input: Operand, size: Axes | None = None, footprint: npt.ArrayLike | None = None,
                   output: Output = None, mode: Modes = "reflect", cval: float = 0.0,
                   origin: Axes = 0, *, axes: Axes | None = None) -> Lazy:
    """The largest of each window, as scipy.ndimage.maximum_filter. A footprint has no holes."""
    return _separate("window_max", input, _size(size, footprint), output, mode, cval, origin, axes)


def minimum_filter(input: Operand, size: Axes | None = None, footprint: npt.ArrayLike | None = None,
                   output: Output = None, mode: Modes = "reflect", cval: float = 0.0,
                   origin: Axes = 0, *, axes: Axes | None = None) -> Lazy:
    """The smallest of each window, as scipy.ndimage.minimum_filter. A footprint has no holes."""
    return _separate("window_min", input, _size(size, footprint), output, mode, cval, origin, axes)


def _ranked(x: Operand, place: Callable[[int], int], size: Any, output: Output, mode: str,
            cval: float, origin: Axes, axes: Axes | None) -> Lazy:
    lazy, dtype = _start(x)
    found = _axes(axes, lazy.ndim)
    sizes = [operator.index(one) for one in _each(size, len(found), "size")]
    first = (("", str(place(math.prod(sizes)))), ("", _numbers(sizes)))
    return _finish(_one("window_rank", lazy, first, found, mode, cval,
                        _each(origin, len(found), "origin")), dtype, output)


def rank_filter(input: Operand, rank: int, size: Axes | None = None,
                footprint: npt.ArrayLike | None = None, output: Output = None,
                mode: str = "reflect", cval: float = 0.0, origin: Axes = 0, *,
                axes: Axes | None = None) -> Lazy:
    """The element at a place of each window's ascending order, as scipy.ndimage.rank_filter."""
    return _ranked(input, lambda n: operator.index(rank), _size(size, footprint), output, mode,
                   cval, origin, axes)


def median_filter(input: Operand, size: Axes | None = None, footprint: npt.ArrayLike | None = None,
                  output: Output = None, mode: str = "reflect", cval: float = 0.0,
                  origin: Axes = 0, *, axes: Axes | None = None) -> Lazy:
    """The middle element of each window, the upper one of two, as scipy.ndimage.median_filter."""
    return _ranked(input, lambda n: n // 2, _size(size, footprint), output, mode, cval, origin,
                   axes)


def percentile_filter(input: Operand, percentile: float, size: Axes | None = None,
                      footprint: npt.ArrayLike | None = None, output: Output = None,
                      mode: str = "reflect", cval: float = 0.0, origin: Axes = 0, *,
                      axes: Axes | None = None) -> Lazy:
    """The element at a percentile of each window, as scipy.ndimage.percentile_filter."""
    percent = percentile + 100 if percentile < 0 else percentile
    if not 0 <= percent <= 100:
        raise _refuse("a percentile from -100 to 100", "percentile", "-100 to 100", percentile)
    return _ranked(input, lambda n: n - 1 if percent == 100 else int(n * percent / 100),
                   _size(size, footprint), output, mode, cval, origin, axes)


def correlate1d(input: Operand, weights: npt.ArrayLike, axis: int = -1,
                output: Output = None, mode: str = "reflect", cval: float = 0.0,
                origin: int = 0) -> Lazy:
    """The sum of each window along one axis times weights, as scipy.ndimage.correlate1d."""
    lazy, dtype = _start(input)
    numbers = np.asarray(weights, np.float64)
    if numbers.ndim != 1 or not 0 < len(numbers) <= _MOST_NUMBERS:
        raise _refuse("weights along one axis are one to 255 numbers", "weights",
                      f"1 to {_MOST_NUMBERS} numbers", f"shape {numbers.shape}")
    first = (("", str(numbers.tolist())),)
    return _finish(_one("correlate", lazy, first, _axes(axis, lazy.ndim), mode, cval, origin),
                   dtype, output)


def convolve1d(input: Operand, weights: npt.ArrayLike, axis: int = -1,
               output: Output = None, mode: str = "reflect", cval: float = 0.0,
               origin: int = 0) -> Lazy:
    """The same with weights turned around, as scipy.ndimage.convolve1d."""
    turned = np.asarray(weights)[::-1]
    return correlate1d(input, turned, axis, output, mode, cval,
                       -origin - (len(turned) % 2 == 0))


def correlate(input: Operand, weights: npt.ArrayLike, output: Output = None,
              mode: str = "reflect", cval: float = 0.0, origin: Axes = 0, *,
              axes: Axes | None = None) -> Lazy:
    """The sum of each window times weights of as many axes, as scipy.ndimage.correlate."""
    lazy, dtype = _start(input)
    found = _axes(axes, lazy.ndim)
    numbers = np.asarray(weights, np.float64)
    if numbers.ndim != len(found) or numbers.size == 0:
        raise _refuse("weights have an axis for each of the array's", "weights",
                      f"{len(found)} axes", f"shape {numbers.shape}")
    first = (("", str(numbers.tolist())),)
    return _finish(_one("correlate", lazy, first, found, mode, cval,
                        _each(origin, len(found), "origin")), dtype, output)


def convolve(input: Operand, weights: npt.ArrayLike, output: Output = None,
             mode: str = "reflect", cval: float = 0.0, origin: Axes = 0, *,
             axes: Axes | None = None) -> Lazy:
    """The same with weights turned around, as scipy.ndimage.convolve."""
    numbers = np.asarray(weights, np.float64)
    turned = numbers[(slice(None, None, -1),) * numbers.ndim]
    origins = [-one - (size % 2 == 0)
               for one, size in zip(_each(origin, numbers.ndim, "origin"), turned.shape,
                                    strict=True)]
    return correlate(input, turned, output, mode, cval, origins, axes=axes)


def _gaussian(sigma: float, order: int, radius: int) -> npt.NDArray[np.float64]:
    """exp(-x^2 / 2s^2), normed, times the polynomial of its derivative: p_0 = 1 and
    p_(n+1) = p_n' - x/s^2 p_n."""
    if order < 0 or radius < 0 or sigma <= 0:
        raise _refuse("a Gaussian has a positive sigma, and an order and a radius from 0 on",
                      "sigma", "sigma > 0", f"{sigma}, order {order}, radius {radius}")
    x = np.arange(-radius, radius + 1)
    bell = np.exp(-0.5 * x ** 2 / sigma ** 2)
    factor = np.polynomial.Polynomial([1.0])
    for _ in range(order):
        factor = factor.deriv() - factor * np.polynomial.Polynomial([0, 1 / sigma ** 2])
    made: npt.NDArray[np.float64] = factor(x) * (bell / bell.sum())
    return made[::-1]  # of a convolution


def _radius(sigma: float, truncate: float, radius: int | None) -> int:
    return int(truncate * sigma + 0.5) if radius is None else operator.index(radius)


def gaussian_filter1d(input: Operand, sigma: float, axis: int = -1, order: int = 0,
                      output: Output = None, mode: str = "reflect", cval: float = 0.0,
                      truncate: float = 4.0, *, radius: int | None = None) -> Lazy:
    """A Gaussian or its derivative along one axis, as scipy.ndimage.gaussian_filter1d. Its radius
    is at most 127."""
    kernel = _gaussian(float(sigma), order, _radius(sigma, truncate, radius))
    return correlate1d(input, kernel, axis, output, mode, cval)


def gaussian_filter(input: Operand, sigma: float | Sequence[float], order: Axes = 0,
                    output: Output = None, mode: Modes = "reflect", cval: float = 0.0,
                    truncate: float = 4.0, *, radius: Any = None, axes: Axes | None = None) -> Lazy:
    """A Gaussian or its derivatives, as scipy.ndimage.gaussian_filter. Radii are at most 127."""
    lazy, dtype = _start(input)
    found = _axes(axes, lazy.ndim)
    n = len(found)
    rows = [row for row in zip(found, _each(sigma, n, "sigma"), _each(order, n, "order"),
                               _each(mode, n, "mode"), _each(radius, n, "radius"), strict=True)
            if row[1] > 1e-15]
    sizes = [2 * _radius(row[1], truncate, row[4]) + 1 for row in rows]

    def step(row: tuple[int, float, int, str, int | None]) -> Callable[[Lazy], Lazy]:
        return lambda part: gaussian_filter1d(part, row[1], row[0], row[2], None, row[3], cval,
                                              truncate, radius=row[4])
    steps = [step(row) for row in rows]
    return _finish(_along(lazy, sizes, steps), dtype, output)


def _sum_over(lazy: Lazy, axes: Sequence[int], part: Callable[[Lazy, int], Lazy]) -> Lazy:
    total = part(lazy, axes[0])
    for axis in axes[1:]:
        total = total + part(lazy, axis)
    return total


def laplace(input: Operand, output: Output = None, mode: Modes = "reflect",
            cval: float = 0.0, *, axes: Axes | None = None) -> Lazy:
    """The sum of second differences along the axes, as scipy.ndimage.laplace."""
    lazy, dtype = _start(input)
    found = _axes(axes, lazy.ndim)
    modes = dict(zip(found, _each(mode, len(found), "mode"), strict=True))
    return _finish(_sum_over(lazy, found, lambda part, axis: correlate1d(
        part, [1, -2, 1], axis, None, modes[axis], cval)), dtype, output)


def gaussian_laplace(input: Operand, sigma: float | Sequence[float], output: Output = None,
                     mode: Modes = "reflect", cval: float = 0.0, *, axes: Axes | None = None,
                     **more: Any) -> Lazy:
    """The sum of a Gaussian's second derivatives, as scipy.ndimage.gaussian_laplace. `more` is
    gaussian_filter's."""
    lazy, dtype = _start(input)
    found = _axes(axes, lazy.ndim)
    return _finish(_sum_over(lazy, found, lambda part, axis: gaussian_filter(
        part, sigma, [2 * (one == axis) for one in found], None, mode, cval, axes=found, **more)),
        dtype, output)


def gaussian_gradient_magnitude(input: Operand, sigma: float | Sequence[float],
                                output: Output = None, mode: Modes = "reflect",
                                cval: float = 0.0, *, axes: Axes | None = None,
                                **more: Any) -> Lazy:
    """The root of the sum of squares of a Gaussian's first derivatives, as
    scipy.ndimage.gaussian_gradient_magnitude. `more` is gaussian_filter's."""
    lazy, dtype = _start(input)
    found = _axes(axes, lazy.ndim)

    def squared(part: Lazy, axis: int) -> Lazy:
        one = gaussian_filter(part, sigma, [int(own == axis) for own in found], None, mode, cval,
                              axes=found, **more)
        return one * one
    return _finish(sqrt(_sum_over(lazy, found, squared)), dtype, output)


def _edges(input: Operand, axis: int, output: Output, mode: Modes, cval: float,
           across: Sequence[int]) -> Lazy:
    lazy, dtype = _start(input)
    [own] = _axes(axis, lazy.ndim)
    modes = _each(mode, lazy.ndim, "mode")
    made = correlate1d(lazy, [-1, 0, 1], own, None, modes[own], cval)
    for other in range(lazy.ndim):
        if other != own:
            made = correlate1d(made, across, other, None, modes[other], cval)
    return _finish(made, dtype, output)


def sobel(input: Operand, axis: int = -1, output: Output = None, mode: Modes = "reflect",
          cval: float = 0.0) -> Lazy:
    """Differences along one axis, smoothed by 1, 2, 1 along the others, as scipy.ndimage.sobel."""
    return _edges(input, axis, output, mode, cval, [1, 2, 1])


def prewitt(input: Operand, axis: int = -1, output: Output = None, mode: Modes = "reflect",
            cval: float = 0.0) -> Lazy:
    """Differences along one axis, smoothed by 1, 1, 1 on the others, as scipy.ndimage.prewitt."""
    return _edges(input, axis, output, mode, cval, [1, 1, 1])


__all__ = ["convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter",
           "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace", "laplace",
           "maximum_filter", "maximum_filter1d", "median_filter", "minimum_filter",
           "minimum_filter1d", "percentile_filter", "prewitt", "rank_filter", "sobel",
           "uniform_filter", "uniform_filter1d"]
