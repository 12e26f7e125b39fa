"""Arrays that are made of nothing: gd.arange(n), gd.full(shape, value), gd.eye(n), gd.tril(a).

They have NumPy's names, parameters and meaning, and give lazies, which are never in memory: their
elements are made where they are read, and parts and views of them are no more. (gd.empty, gd.zeros
and their likes are arrays in shared memory, to be written.)

Parameters
----------
start, stop, step : number
    As Python's range(); of one number alone it is stop. Of linspace arrays, too.
num : int
    How many elements.
endpoint : bool
    Whether stop is the last of them.
retstep : bool
    Whether the step comes back, too, as the second of two.
axis : int
    Where the axis of the elements stands in the result, of arrays as start or stop.
shape : int or tuple of ints
fill_value : number, array_like or Lazy
    Which broadcasts to the shape.
N, M : int
    Rows and columns; M None: as many as rows.
k : int
    Which diagonal: 0 the main one, above it positive, below it negative.
m : Lazy or array_like
    Of one axis or more; of more than two, matrices along the last two.
xi : Lazy or array_like
    Of one axis each.
indexing : {"xy", "ij"}
    Whether the second axis is that of the first array, or the first.
sparse : bool
    Whether other axes have length 1, so that the arrays broadcast.
copy : bool
    Means nothing: what is assigned to one lazy is seen by no other.
dtype : data-type, optional
    None: NumPy's.
order : {"C"}
device : None
    Has no other value: the daemon chooses.
like : None
    Has no other value.

Returns
-------
Lazy
    Of meshgrid a tuple of them.

Raises
------
BadArgument
    A step of 0, a negative number of elements, a word that has no meaning.
BadShape
    No shape, or what does not broadcast to it.
Unsupported
    A dtype that the daemon does not compute; limits of linspace() that are lazies.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import errors
from .._arguments.refusals import WrongType
from .._lazy.array import Lazy, lazy_call
from .._lazy.drawing import size_of
from .._lazy.filled import filled, full_like, ones_like
from .._lazy.fitting import check_bounds
from .._lazy.graph import Call, Node, Shape, dtype_name, strong
from .._lazy.moves import array_of, broadcast_arrays, broadcast_to, moveaxis
from .._lazy.operands import Operand, node_of
from .._lazy.unanswered import refuse, refuse_unusual
from .._lazy.views import ramp
from .describing import describe

__all__ = ["arange", "linspace", "ones", "full", "ones_like", "full_like", "eye", "tril", "triu",
           "meshgrid"]


def _counted(n: int, first: Any, second: Any, dtype: np.dtype[Any]) -> Lazy:
    """n elements from first on, with the step from there to second, as NumPy fills arrays."""
    if n < 2:
        second = first
    if dtype.kind in "iu":
        for one in (first, second) if n else ():
            check_bounds(one, dtype)
    with np.errstate(all="ignore"):
        first, second = (np.asarray(one).astype(dtype)[()] for one in (first, second))
    if dtype.kind in "iu":
        made = ramp((n,), int(first), (int(second) - int(first),))
        return Lazy._of(made if dtype == "i8" else Call("astype", (made,), dtype=dtype.name))
    if dtype.kind == "b":
        return Lazy._of(ramp((n,), int(first), (int(second) - int(first),))).astype(dtype)
    with np.errstate(all="ignore"):
        step = second - first
        place = Lazy._of(ramp((n,), 0, (1,)))
        found = Lazy._of(strong(first)) + place.astype(dtype) * Lazy._of(strong(step))
        is_exact = bool(first + step == second)
    return found if is_exact or n < 2 else lazy_call(
        "where", lazy_call("equal", place, 1), second, found)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: npt.DTypeLike | None = None,
           *, device: None = None, like: None = None) -> Lazy:
    """numbers at one distance, from start to below stop"""
    refuse("arange", {"device": device, "like": like})
    first, last = (0, start) if stop is None else (start, stop)
    by = 1 if step is None else step
    for name, one in (("start", first), ("stop", last), ("step", by)):
        if isinstance(one, Lazy) or np.ndim(one) or np.asarray(one).dtype.kind not in "biuf":
            raise WrongType(f"arange: {name} is {type(one).__name__}, not a number", argument=name,
                            expected="a number", found=type(one).__name__)
    if by == 0:
        raise errors.BadArgument("arange: step is 0", argument="step", expected="another number",
                                 found="0")
    kind = np.dtype(dtype_name(dtype if dtype is not None else np.result_type(
        *[np.asarray(one).dtype for one in (first, last, by)])))
    if dtype is None and kind.kind == "b":
        kind = np.dtype("i8")
    if all(isinstance(one, (int, np.integer)) for one in (first, last, by)):
        first, last, by = int(first), int(last), int(by)
        n = max(-((first - last) // by), 0)
    else:
        length = (float(last) - float(first)) / float(by)
        if not math.isfinite(length):
            raise errors.BadArgument("arange: there is no number of elements from start to stop",
                                     argument="stop", expected="finite numbers",
                                     found=f"{first}, {last}, {by}")
        n = max(math.ceil(length), 0)
    if kind.kind == "b" and n > 2:
        raise errors.BadDtype("arange: bool has two values", argument="dtype",
                              expected="at most 2 elements", found=str(n))
    if all(isinstance(one, (int, np.integer)) for one in (first, by)):
        first, by = int(first), int(by)  # which do not overflow
    with np.errstate(all="ignore"):
        second = first + by
    return _counted(n, first, second, kind)


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: npt.DTypeLike | None = None, axis: int = 0, *,
             device: None = None) -> Any:
    """numbers at one distance, so many from start to stop"""
    refuse("linspace", {"device": device})
    n = operator.index(num)
    if n < 0:
        raise errors.BadArgument(f"linspace: num is {n}", argument="num", expected="0 or more",
                                 found=str(n))
    if isinstance(start, Lazy) or isinstance(stop, Lazy):
        raise errors.Unsupported(
            "linspace: limits are numbers or arrays of this process; of lazies it is "
            "a + (b - a) * gd.linspace(0, 1, num)[:, None]", argument="start",
            expected="numbers", found="a lazy")
    first, last = _limit("start", start), _limit("stop", stop)
    kind = np.dtype(dtype_name(np.result_type(*map(_weak, (start, stop)), 1.0)))
    wanted = kind if dtype is None else np.dtype(dtype_name(dtype))
    delta = np.asanyarray(np.subtract(last, first, dtype=kind))
    place = Lazy._of(ramp((n,) + (1,) * delta.ndim, 0, (1,) + (0,) * delta.ndim))
    count = place.astype(kind)
    div = n - 1 if endpoint else n
    step: Any = np.nan
    if div > 0:
        step = (delta / div).astype(kind)
        made = count / kind.type(div) * _number(delta) if np.any(step == 0) \
            else count * _number(step)
    else:
        made = count * _number(delta)
    made = made + _number(first.astype(kind))
    if endpoint and n > 1:
        made = lazy_call("where", lazy_call("equal", place, n - 1), _number(last.astype(kind)),
                         made)
    if axis:
        made = moveaxis(made, 0, axis)
    if wanted.kind in "iu":
        made = lazy_call("floor", made)
    made = made if wanted == kind else made.astype(wanted)
    return (made, step[()] if isinstance(step, np.ndarray) else step) if retstep else made


def _limit(name: str, value: Any) -> np.ndarray[Any, Any]:
    found = np.asanyarray(float(value) if type(value) is int else value)
    if found.dtype.kind not in "biuf":
        raise errors.BadDtype(f"linspace: {name} is of {found.dtype.name}", argument=name,
                              expected="real numbers", found=found.dtype.name)
    return found * 1.0


def _weak(value: Any) -> Any:
    """What a limit is among dtypes: Python's numbers have none."""
    return value if type(value) in (bool, int, float) else np.asarray(value).dtype


def _number(value: Any) -> Any:
    return value[()] if isinstance(value, np.ndarray) and not value.ndim else value


def ones(shape: Any, dtype: npt.DTypeLike | None = None, order: str = "C", *,
         device: None = None, like: None = None) -> Lazy:
    """ones"""
    return full(shape, 1, np.float64 if dtype is None else dtype, order, device=device, like=like)


def full(shape: Any, fill_value: Operand, dtype: npt.DTypeLike | None = None, order: str = "C", *,
         device: None = None, like: None = None) -> Lazy:
    """one value, or what broadcasts"""
    refuse_unusual("full", order=(order, "C"))
    refuse("full", {"device": device, "like": like})
    kind = dtype
    if kind is None:
        kind = fill_value.dtype if isinstance(fill_value, Lazy) else np.asarray(fill_value).dtype
    return filled("full", fill_value, np.dtype(dtype_name(kind)), _shape(shape))


def _shape(shape: Any) -> Shape:
    return size_of(() if shape is None else shape) or ()


def eye(N: int, M: int | None = None, k: int = 0,  # noqa: N803
        dtype: npt.DTypeLike = np.float64, order: str = "C", *, device: None = None,
        like: None = None) -> Lazy:
    """ones on a diagonal, else zeros"""
    refuse_unusual("eye", order=(order, "C"))
    refuse("eye", {"device": device, "like": like})
    shape = _shape((N, N if M is None else M))
    found = Lazy._of(_columns_less_rows(shape)) == operator.index(k)
    return found.astype(dtype)


def _columns_less_rows(shape: Shape) -> Node:
    return ramp(shape, 0, (-1, 1))


def _half(name: str, m: Operand, k: int, is_lower: bool) -> Lazy:
    node = array_of(m)
    if not node.shape:
        raise errors.BadShape(f"{name}: an array without axes is no matrix", argument="m",
                              expected="at least one axis", found="()")
    place = _columns_less_rows((node.shape * 2)[-2:] if len(node.shape) == 1 else node.shape[-2:])
    within = Call("less_equal" if is_lower else "greater_equal",
                  (place, node_of(operator.index(k))))
    return lazy_call("where", Lazy._of(within), Lazy._of(node), False)


def tril(m: Operand, k: int = 0) -> Lazy:
    """zero above a diagonal"""
    return _half("tril", m, k, True)


def triu(m: Operand, k: int = 0) -> Lazy:
    """zero below a diagonal"""
    return _half("triu", m, k, False)


def meshgrid(*xi: Operand, copy: bool = True, sparse: bool = False,
             indexing: str = "xy") -> tuple[Lazy, ...]:
    """coordinates along axes as arrays of all axes"""
    if indexing not in ("xy", "ij"):
        raise errors.BadArgument(f"meshgrid: indexing is {indexing!r}", argument="indexing",
                                 expected="'xy' or 'ij'", found=repr(indexing))
    n = len(xi)
    places = [*range(n)]
    if indexing == "xy" and n > 1:
        places[:2] = 1, 0
    made = [_along(one, n, place) for one, place in zip(xi, places, strict=True)]
    return tuple(made) if sparse else broadcast_arrays(*made)


def _along(x: Operand, ndim: int, axis: int) -> Lazy:
    node = array_of(x)
    if len(node.shape) > 1:
        from .._lazy.reshaping import ravel
        return _along(ravel(Lazy._of(node)), ndim, axis)
    if not node.shape:
        return broadcast_to(Lazy._of(node), (1,) * ndim)
    return Lazy._of(node)[tuple([slice(None) if one == axis else None for one in range(ndim)])]


if __doc__:  # not where they are left out
    describe(__doc__, [globals()[name] for name in __all__ if not name.endswith("_like")])
