"""What is written with other functions: gd.average(a, weights=w), gd.interp(x, xp, fp).

They have NumPy's names, parameters and meaning, and give lazies: parts are views, sums and look-ups
are computed with whatever is around them, in the same pass.

Parameters
----------
a, x, y, ary : Lazy or array_like
b : Lazy or array_like
axis : int, tuple of ints or None
    Along which; None: all of them, or as if the array were flat, which cumulative_sum() and
    cumulative_prod() refuse of several axes.
dtype : data-type, optional
    Of the result.
out : optional
    Where the result goes, as of Lazy.compute(): then it is computed at once, and out is given back.
keepdims : bool
    Whether the reduced axes stay with length 1.
include_initial : bool
    Whether 0, or 1 of products, stands before all others.
weights : Lazy or array_like, optional
    Of the shape of a, or, along one axis, a row. What weighs 0 in all gives NaN, not an error.
returned : bool
    Whether the sum of the weights comes back, too, as the second of two.
dx : number
    The distance of elements where x is not given.
indices_or_sections : int or sequence of ints
    How many parts, or where they end.
test_elements : array_like or Lazy
    What is looked for: computed here, of at most 256 MiB.
assume_unique, kind
    Mean nothing.
invert : bool
    Whether it is told what is not there.
xp, fp : array_like
    A row of places, which grow, and what is there.
left, right : number, optional
    What is beyond the ends; None: what is at them.
period : number, optional
    After which everything is there again.
window_shape : int or tuple of ints
subok, writeable
    Mean nothing: lazies are no ndarrays.

Returns
-------
Lazy
    Of split and its like a list of them, of unstack a tuple. `out` where it was given.

Raises
------
NoAxis
    An axis is out of range, or there twice.
BadShape
    Shapes that do not fit.
BadArgument
    Parts that are none; places that do not grow.
Unsupported
    What the daemon does not compute, with the reason.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import errors
from .._lazy.array import Lazy, lazy_call
from .._lazy.graph import Shape, broadcast, computed
from .._lazy.moves import array_of, axis_of, broadcast_to, concatenate
from .._lazy.operands import Operand
from .._lazy.reshaping import ravel, reshape
from .._lazy.results import made
from .._lazy.views import viewed
from .counts import searchsorted, take
from .creation import full
from .describing import describe
from .functions_of_one import invert, isnan
from .functions_of_two import left_shift, right_shift
from .reducing import Axis, axes_of
from .reductions import all as all_of
from .reductions import argmax, argmin
from .reductions import sum as sum_of
from .scans import cumprod, cumsum, diff

__all__ = ["bitwise_invert", "bitwise_left_shift", "bitwise_right_shift", "conj", "real", "imag",
           "cumulative_sum", "cumulative_prod", "nancumsum", "nancumprod", "nanargmin",
           "nanargmax", "average", "trapezoid", "kron", "isin", "interp", "sliding_window_view",
           "split", "array_split", "hsplit", "vsplit", "dsplit", "unstack",
           "broadcast_shapes"]

_LOOKED_UP = 1 << 19  # bytes of the tables of a job
_MOST_TABLES = 4
MOST_BYTES = 256 << 20  # of what is computed here

bitwise_invert = invert
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift


def _of(value: object) -> Lazy:
    return Lazy._of(array_of(value))


# Of real numbers.

def conj(x: Operand, /) -> Lazy:
    """The array itself: numbers are real here."""
    return _of(x)


def real(x: Operand, /) -> Lazy:
    """The array itself: numbers are real here."""
    return _of(x)


def imag(x: Operand, /) -> Lazy:
    """Zeros: numbers are real here."""
    found = _of(x)
    return full(found.shape, 0, found.dtype)


# Running sums.

def _begun(run: Lazy, x: object, axis: int | None, first: int, include: bool,
           out: object) -> Lazy:
    if axis is None and len(array_of(x).shape) > 1:
        raise errors.BadArgument("a running sum or product of several axes needs axis=",
                                 argument="axis", expected="an integer", found="None")
    if include:
        along = axis_of(0 if axis is None else axis, run.ndim)
        shape = (*run.shape[:along], 1, *run.shape[along + 1:])
        run = concatenate([full(shape, first, run.dtype), run], along)
    return made(run._node, out)


def cumulative_sum(x: Operand, /, *, axis: int | None = None, dtype: npt.DTypeLike | None = None,
                   out: object = None, include_initial: bool = False) -> Lazy:
    """The running sum along an axis, as numpy.cumulative_sum()."""
    return _begun(cumsum(x, axis, dtype), x, axis, 0, include_initial, out)


def cumulative_prod(x: Operand, /, *, axis: int | None = None, dtype: npt.DTypeLike | None = None,
                    out: object = None, include_initial: bool = False) -> Lazy:
    """The running product along an axis, as numpy.cumulative_prod()."""
    return _begun(cumprod(x, axis, dtype), x, axis, 1, include_initial, out)


def _without_nan(a: object, instead: float) -> Lazy:
    found = _of(a)
    return lazy_call("where", isnan(found), instead, found) if found.dtype.kind == "f" else found


def nancumsum(a: Operand, axis: int | None = None, dtype: npt.DTypeLike | None = None,
              out: object = None) -> Lazy:
    """The running sum of what is not NaN, as numpy.nancumsum()."""
    return cumsum(_without_nan(a, 0), axis, dtype, out)


def nancumprod(a: Operand, axis: int | None = None, dtype: npt.DTypeLike | None = None,
               out: object = None) -> Lazy:
    """The running product of what is not NaN, as numpy.nancumprod()."""
    return cumprod(_without_nan(a, 1), axis, dtype, out)


# Reductions.

def _nanplace(find: Any, a: Operand, axis: int | None, out: object, keepdims: bool,
              worst: float) -> Lazy:
    found = _of(a)
    if any(found.shape[one] == 0 for one in axes_of("nanargmin", axis, found.ndim)):
        raise errors.BadShape(f"there are no elements along an axis of {found.shape}",
                              argument="a", expected="elements", found="none")
    place: Lazy = find(_without_nan(found, worst), axis, keepdims=keepdims)
    if found.dtype.kind == "f":
        place = lazy_call("where", all_of(isnan(found), axis, keepdims=keepdims), -1, place)
    return made(place._node, out)


def nanargmin(a: Operand, axis: int | None = None, out: object = None, *,
              keepdims: bool = False) -> Lazy:
    """The index of the smallest element that is not NaN, as numpy.nanargmin(); -1 where all are,
    which NumPy refuses."""
    return _nanplace(argmin, a, axis, out, keepdims, np.inf)


def nanargmax(a: Operand, axis: int | None = None, out: object = None, *,
              keepdims: bool = False) -> Lazy:
    """The index of the largest element that is not NaN, as numpy.nanargmax(); -1 where all are,
    which NumPy refuses."""
    return _nanplace(argmax, a, axis, out, keepdims, -np.inf)


def average(a: Operand, axis: Axis = None, weights: Operand | None = None, returned: bool = False,
            *, keepdims: bool = False) -> Any:
    """The mean, or that of elements times weights, as numpy.average()."""
    x = _of(a)
    axes = axes_of("average", axis, x.ndim)
    if weights is None:
        mean = x.mean(axis, keepdims=keepdims)
        count = int(np.prod([x.shape[one] for one in axes], dtype=np.int64))
        return (mean, full(mean.shape, count, mean.dtype)) if returned else mean
    w = _of(weights)
    if w.shape != x.shape:
        given = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
        if axis is None or w.shape != tuple([x.shape[one] for one in given]):
            raise errors.BadShape(f"average: weights of shape {w.shape} for {x.shape}",
                                  argument="weights", expected=str(x.shape), found=str(w.shape))
        if isinstance(axis, tuple):
            order = np.argsort([one % x.ndim for one in axis])
            w = w.transpose(order.tolist())
        w = w[tuple([slice(None) if one in axes else None for one in range(x.ndim)])]
    kind = np.result_type(x.dtype, w.dtype, *(["f8"] if x.dtype.kind in "iub" else []))
    both = x.astype(kind) * w.astype(kind)
    total = sum_of(broadcast_to(w, x.shape), axis, dtype=kind, keepdims=keepdims)
    mean = sum_of(both, axis, dtype=kind, keepdims=keepdims) / total
    return (mean, total) if returned else mean


def trapezoid(y: Operand, x: Operand | None = None, dx: float = 1.0, axis: int = -1) -> Lazy:
    """The integral by the trapezoidal rule, as numpy.trapezoid()."""
    values = _of(y)
    along = axis_of(axis, values.ndim)
    step: Any = dx
    if x is not None:
        places = _of(x)
        step = diff(places, axis=-1 if places.ndim == 1 else along)
        if places.ndim == 1:
            step = step[(slice(None), *[None] * (values.ndim - along - 1))]
    key = (slice(None),) * along
    both = values[(*key, slice(1, None))] + values[(*key, slice(None, -1))]
    return sum_of(step * both / 2.0, along)


def kron(a: Operand, b: Operand) -> Lazy:
    """The Kronecker product, as numpy.kron()."""
    left, right = _of(a), _of(b)
    ndim = max(left.ndim, right.ndim)
    one, other = [(1,) * (ndim - own.ndim) + own.shape for own in (left, right)]
    left = reshape(left, [size for n in one for size in (n, 1)])
    right = reshape(right, [size for n in other for size in (1, n)])
    return reshape(left * right, [n * m for n, m in zip(one, other, strict=True)])


def repeated(x: Operand, repeats: Any, /, axis: int | None = None) -> Lazy:
    """Each element several times, as numpy.repeat(), which has another name here: gd.repeat() is of
    steps of time."""
    found = _of(x) if axis is not None else ravel(_of(x))
    along = axis_of(0 if axis is None else axis, found.ndim)
    size, key = found.shape[along], (slice(None),) * along
    counts = here("repeat", repeats, "repeats", "repeat parts")
    if counts.dtype.kind not in "iub" or counts.size and counts.min() < 0 \
            or counts.shape not in ((), (1,), (size,)):
        raise errors.BadArgument(f"repeat: repeats are {counts.dtype.name} of {counts.shape}",
                                 argument="repeats", found=str(counts.shape),
                                 expected=f"an integer, or {size} of them, 0 or more")
    if counts.size != 1:
        return found[(*key, np.repeat(np.arange(size), counts))]
    n = int(counts.ravel()[0])
    wide = found[(*key, slice(None), None)]
    wide = broadcast_to(wide, (*wide.shape[:along + 1], n, *wide.shape[along + 2:]))
    return reshape(wide, (*found.shape[:along], size * n, *found.shape[along + 1:]))


def broadcast_shapes(*shapes: int | Sequence[int]) -> Shape:
    """The shape that arrays of these have together, as numpy.broadcast_shapes()."""
    return broadcast("broadcast_shapes", [
        full(one, False, bool)._node for one in shapes])


# Look-ups.

def here(name: str, value: object, what: str, instead: str) -> np.ndarray[Any, Any]:
    """An array of this process; of a lazy what is computed, if it is not too large."""
    if isinstance(value, Lazy) and value.nbytes > MOST_BYTES:
        raise errors.Unsupported(f"{name}: {what} are computed here, where there is room for "
                                 f"{MOST_BYTES >> 20} MiB: {instead}", argument=what,
                                 expected=f"at most {MOST_BYTES} bytes",
                                 found=f"{value.nbytes} bytes")
    return np.asarray(value)


def isin(element: Operand, test_elements: Operand, assume_unique: bool = False,
         invert: bool = False, *, kind: str | None = None) -> Lazy:
    """Whether elements are among others, as numpy.isin()."""
    x = _of(element)
    table = here("isin", test_elements, "test_elements", "look for parts of them, and join with |")
    common = np.result_type(x.dtype, table.dtype)
    if common.kind == "f" and x.dtype.kind in "iu" and table.dtype.kind in "iu":
        common, info = x.dtype, np.iinfo(x.dtype)  # exactly: others are not there
        table = table[(table >= info.min) & (table <= info.max)]
    table = np.unique(table.astype(common))
    if not table.size:
        return full(x.shape, bool(invert), bool)
    n = -(-table.nbytes // _LOOKED_UP)
    if n > _MOST_TABLES:
        raise errors.Unsupported(
            f"isin: {table.size} different elements are more than a job looks up: look for parts "
            "of them, and join with |", argument="test_elements", found=f"{table.nbytes} bytes",
            expected=f"at most {_MOST_TABLES * _LOOKED_UP} bytes")
    x, op = x.astype(common), "not_equal" if invert else "equal"
    found = [lazy_call(op, take(part, searchsorted(part, x), mode="clip"), x)
             for part in np.array_split(table, n)]
    if n > 1:  # each by a job of its own
        found = [Lazy._of(computed(one._node)) for one in found]
    return functools.reduce(operator.and_ if invert else operator.or_, found)


def interp(x: Operand, xp: npt.ArrayLike, fp: npt.ArrayLike, left: float | None = None,
           right: float | None = None, period: float | None = None) -> Lazy:
    """Between points of a line, as numpy.interp()."""
    at = _of(x).astype("f8")
    places, values = _points("xp", xp), _points("fp", fp)
    if places.ndim != 1 or places.shape != values.shape or not places.size:
        raise errors.BadShape(f"interp: xp of shape {places.shape} and fp of {values.shape}",
                              argument="xp", expected="rows of one length, not empty",
                              found=str(places.shape))
    if period is not None:
        if period == 0:
            raise errors.BadArgument("interp: period is 0", argument="period",
                                     expected="another number", found="0")
        turn = abs(period)
        at, places = at % turn, places % turn
        order = np.argsort(places)
        places, values = places[order], values[order]
        places = np.concatenate([places[-1:] - turn, places, places[:1] + turn])
        values = np.concatenate([values[-1:], values, values[:1]])
        left = right = None
    if not bool(np.all(places[1:] >= places[:-1])):
        raise errors.BadArgument("interp: xp does not grow", argument="xp",
                                 expected="places that grow", found="others")
    low = values[0] if left is None else left
    high = values[-1] if right is None else right
    return lazy_call("where", at < places[0], low,
                     lazy_call("where", at > places[-1], high, _between(at, places, values)))


def _points(name: str, value: object) -> np.ndarray[Any, Any]:
    found = here("interp", value, name, "interpolate in parts of them")
    if found.dtype.kind not in "biuf":
        raise errors.BadDtype(f"interp: {name} is of {found.dtype.name}", argument=name,
                              expected="real numbers", found=found.dtype.name)
    return found.astype("f8")


def _between(at: Lazy, places: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> Lazy:
    if len(places) == 1:
        return full(at.shape, values[0])
    with np.errstate(all="ignore"):
        slopes = np.append(np.diff(values) / np.diff(places), 0.0)
    before = searchsorted(places, at, side="right") - 1

    def of(table: np.ndarray[Any, Any], by: int = 0) -> Lazy:
        return take(table, before + by, mode="clip")
    found = of(slopes) * (at - of(places)) + of(values)
    if not np.isfinite([places, values, slopes]).all():  # from the other end then
        other = of(slopes) * (at - of(places, 1)) + of(values, 1)
        is_flat = isnan(other) & (of(values) == of(values, 1))
        found = lazy_call("where", isnan(found),
                          lazy_call("where", is_flat, of(values), other), found)
    found = lazy_call("where", at == of(places), of(values), found)
    return lazy_call("where", isnan(at), at, found)


# Parts.

def sliding_window_view(x: Operand, window_shape: int | Sequence[int], axis: Axis = None, *,
                        subok: bool = False, writeable: bool = False) -> Lazy:
    """All windows of a shape, along new axes at the end, as of numpy.lib.stride_tricks: a view."""
    node = array_of(x)
    ndim = len(node.shape)
    sizes = tuple(map(operator.index, np.ravel(np.asarray(window_shape, object)).tolist()))
    axes = [axis_of(one, ndim) for one in
            (range(ndim) if axis is None else axis if isinstance(axis, Sequence) else (axis,))]
    if len(sizes) != len(axes) or min(sizes, default=0) < 0:
        raise errors.BadArgument(f"windows of shape {sizes} along {len(axes)} axes",
                                 argument="window_shape", found=str(sizes),
                                 expected=f"{len(axes)} sizes of 0 or more")
    counts = list(node.shape)
    for one, size in zip(axes, sizes, strict=True):
        if size > counts[one]:
            raise errors.BadShape(f"windows of {sizes} are larger than {node.shape}",
                                  argument="window_shape", expected=f"at most {node.shape}",
                                  found=str(sizes))
        counts[one] -= size - 1
    view = [(one, count, 1) for one, count in enumerate(counts)]
    view += [(one, size, 1) for one, size in zip(axes, sizes, strict=True)]
    return Lazy._of(viewed(node, (0,) * ndim, tuple(view)))


def _cut(ary: object, ends: Sequence[int], axis: int) -> list[Lazy]:
    x = _of(ary)
    key = (slice(None),) * axis
    return [x[(*key, slice(first, end))]
            for first, end in itertools.pairwise((0, *ends, x.shape[axis]))]


def array_split(ary: Operand, indices_or_sections: int | Sequence[int],
                axis: int = 0) -> list[Lazy]:
    """Parts along an axis, as even as can be, as numpy.array_split(): views."""
    return _split("array_split", ary, indices_or_sections, axis, False)


def split(ary: Operand, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Lazy]:
    """Parts along an axis, of one length or between places, as numpy.split(): views."""
    return _split("split", ary, indices_or_sections, axis, True)


def _split(name: str, ary: Operand, given: Any, axis: int, is_even: bool) -> list[Lazy]:
    shape: Shape = array_of(ary).shape
    along = axis_of(axis, len(shape), takes_bools=True)
    if np.ndim(given):
        return _cut(ary, [operator.index(one) for one in given], along)
    n, size = operator.index(given), shape[along]
    if n < 1 or is_even and size % n:
        raise errors.BadArgument(f"{name}: {n} parts of {size} elements", argument="indices_or_"
                                 "sections", expected="a divisor" if is_even else "1 or more",
                                 found=str(n))
    each, more = divmod(size, n)
    return _cut(ary, [i * each + min(i, more) for i in range(1, n)], along)


def _along(name: str, ary: Operand, given: Any, axis: int, least: int) -> list[Lazy]:
    ndim = len(array_of(ary).shape)
    if ndim < least:
        raise errors.BadShape(f"{name}: of {ndim} axes", argument="ary",
                              expected=f"{least} axes or more", found=str(ndim))
    return split(ary, given, min(axis, ndim - 1))


def hsplit(ary: Operand, indices_or_sections: int | Sequence[int]) -> list[Lazy]:
    """Parts along the second axis, or the only one, as numpy.hsplit()."""
    return _along("hsplit", ary, indices_or_sections, 1, 1)


def vsplit(ary: Operand, indices_or_sections: int | Sequence[int]) -> list[Lazy]:
    """Parts along the first axis of several, as numpy.vsplit()."""
    return _along("vsplit", ary, indices_or_sections, 0, 2)


def dsplit(ary: Operand, indices_or_sections: int | Sequence[int]) -> list[Lazy]:
    """Parts along the third axis, as numpy.dsplit()."""
    return _along("dsplit", ary, indices_or_sections, 2, 3)


def unstack(x: Operand, /, *, axis: int = 0) -> tuple[Lazy, ...]:
    """Each of the parts along an axis, without it, as numpy.unstack(): views."""
    found = _of(x)
    if not found.ndim:
        raise errors.BadShape("unstack: an array without axes has no parts", argument="x",
                              expected="at least one axis", found="()")
    along = axis_of(axis, found.ndim)
    key = (slice(None),) * along
    return tuple([found[(*key, i)] for i in range(found.shape[along])])


if __doc__:  # not where they are left out
    describe(__doc__, [globals()[name] for name in __all__[3:]])
