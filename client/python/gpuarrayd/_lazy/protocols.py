"""NumPy's functions of lazies: np.sqrt(x), np.where(x > 0, x, y), np.add(a, x, out=a).

NumPy hands over every ufunc and every function that is called with a lazy. Those of the catalogue
become parts of the expression, and with out= they are computed there. All others raise with their
names, so that nothing is computed by NumPy unless somebody wrote np.asarray(x).

What belongs to which is found by identity, not by name: another package's ufunc may have the name
of one here and another meaning.
"""

import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from . import filled, moves, reshaping
from .._functions import (counts, creation, derived, dtypes, einsum, folds, functions, gradients,
                          products, quantiles, reductions, scans, solving, sorting)
from .. import errors
from .array import Lazy, lazy_call, lazy_pair
from .array import lazy as as_lazy
from .._functions.reducing import check_some
from .results import compute_into
from .unanswered import refuse, refuse_unusual

_USUAL: dict[str, object] = {"where": True, "casting": "same_kind", "order": "K", "dtype": None,
                             "subok": True, "signature": None, "sig": None, "extobj": None}
_REDUCED = {"add": "sum", "multiply": "prod", "minimum": "min", "maximum": "max",
            "fmin": "nanmin", "fmax": "nanmax", "logical_and": "all", "logical_or": "any"}
_ACCUMULATED = {"add": "cumsum", "multiply": "cumprod"}
_SCIPY = {"erf": "erf", "erfc": "erfc", "gamma": "gamma", "gammaln": "lgamma", "expit": "expit",
          "logit": "logit"}


def _is_usual(name: str, value: object) -> bool:
    if value is np._NoValue:
        return True
    return name in _USUAL and (value is _USUAL[name] or (
        isinstance(value, str) and value == _USUAL[name]))


def _refuse_unusual(function: str, kwargs: Mapping[str, object]) -> None:
    refuse(function, {name: "" if value is None else value for name, value in kwargs.items()
                      if not _is_usual(name, value)})


def _name_of(ufunc: np.ufunc) -> str | None:
    """The catalogue's name of a ufunc of NumPy's or SciPy's."""
    found = _ufuncs().get(ufunc)
    if found is None and ufunc.__name__ in _SCIPY:
        special = sys.modules.get("scipy.special")
        if special is not None and getattr(special, ufunc.__name__, None) is ufunc:
            found = _SCIPY[ufunc.__name__]
    return found


@functools.cache
def _ufuncs() -> dict[Any, str]:
    """NumPy's, with the first of their names here."""
    names = {getattr(np, name, None): name for name in reversed(functions.__all__)}
    return {own: name for own, name in names.items() if isinstance(own, np.ufunc)}


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[object, ...],
                kwargs: dict[str, object]) -> Any:
    """Lazy.__array_ufunc__()."""
    name = _name_of(ufunc)
    out: Any = kwargs.pop("out", None)
    multiplied = _products().get(ufunc)
    if multiplied is not None and method == "__call__":
        return _multiplied(ufunc, multiplied, inputs, out, kwargs)
    if method == "reduce" and name in _REDUCED:
        return _reduced(ufunc, name, inputs, out, kwargs)
    if method == "reduce" and ufunc.__name__ in folds.FOLDS and name is not None:
        return _folded(ufunc, inputs, out, kwargs)
    if method == "accumulate" and name in _ACCUMULATED:
        return _accumulated(name, inputs, out, kwargs)
    if name is None or method != "__call__":
        module = "" if getattr(np, ufunc.__name__, None) is not ufunc else "np."
        _refuse_function(module + ufunc.__name__ + ("" if method == "__call__" else f".{method}"))
    dtype, mask = kwargs.pop("dtype", None), kwargs.pop("where", True)
    _refuse_unusual(f"np.{ufunc.__name__}", kwargs)
    kinds = None if dtype is None else _kinds(ufunc, inputs, dtype)
    if kinds is not None:
        inputs = tuple([one if isinstance(one, (int, float)) and not isinstance(one, np.generic)
                        else as_lazy(one).astype(kind)  # type: ignore[arg-type]
                        for one, kind in zip(inputs, kinds, strict=False)])
    found: tuple[Any, ...] = lazy_pair(name, *inputs) if ufunc.nout == 2 else \
        (lazy_call(name, *inputs),)
    if kinds is not None:
        found = tuple([one.astype(kind)
                       for one, kind in zip(found, kinds[ufunc.nin:], strict=True)])
    if mask is not True:
        there = out if out is not None else (None,) * ufunc.nout
        found = tuple([lazy_call("where", mask, one, one.dtype.type(0) if old is None else old)
                       for one, old in zip(found, there, strict=True)])
    if out is not None:
        found = compute_into(found, out, is_broad=True)
    return found if ufunc.nout == 2 else found[0]


def _kinds(ufunc: np.ufunc, inputs: tuple[object, ...], dtype: Any) -> tuple[np.dtype[Any], ...]:
    """What NumPy computes in, where dtype= says what comes out."""
    if not hasattr(ufunc, "resolve_dtypes"):  # before NumPy 1.25
        refuse(f"np.{ufunc.__name__}", {"dtype": dtype})
    arrays: Any = inputs
    given = [type(one) if type(one) in (int, float) else
             np.dtype("?") if isinstance(one, bool) else as_lazy(one).dtype for one in arrays]
    kind = np.dtype(dtype)
    found: tuple[np.dtype[Any], ...] = ufunc.resolve_dtypes(
        (*given, *[None] * ufunc.nout), signature=(*[None] * ufunc.nin, *[kind] * ufunc.nout))
    return found


@functools.cache
def _products() -> dict[Any, Callable[..., Lazy]]:
    """By NumPy's ufuncs; some of them are of newer ones."""
    return {getattr(np, name): getattr(products, name)
            for name in ("matmul", "vecdot", "matvec", "vecmat") if hasattr(np, name)}


def _multiplied(ufunc: np.ufunc, own: Callable[..., Lazy], inputs: tuple[object, ...], out: Any,
                kwargs: dict[str, object]) -> Any:
    """np.matmul(x, y), np.vecdot(x, y, axis=0)."""
    given = {"axis": kwargs.pop("axis")} if ufunc.__name__ == "vecdot" and "axis" in kwargs else {}
    _refuse_unusual(f"np.{ufunc.__name__}", kwargs)
    made = own(*inputs, **given)
    return made if out is None else compute_into((made,), out, is_broad=True)[0]


def _reduced(ufunc: np.ufunc, name: str, inputs: tuple[object, ...], out: Any,
             kwargs: dict[str, object]) -> Any:
    """np.add.reduce(x), whose axis is 0 where none is said."""
    names = ("axis", "dtype", "out", "keepdims", "initial", "where")
    given = {"axis": 0, **dict(zip(names, inputs[1:], strict=False)), **_given(kwargs)}
    if out is not None:
        given["out"] = out[0] if isinstance(out, tuple) else out
    reduction = _REDUCED[name]
    if given.get("dtype") is None or reduction not in ("sum", "prod"):
        refuse(f"np.{ufunc.__name__}.reduce", {"dtype": given.pop("dtype", None)})
    if reduction in ("all", "any") and "initial" in given:
        initial = given.pop("initial")
        refuse(f"np.{ufunc.__name__}.reduce", {"initial": initial})
        check_some(reduction, inputs[0], given["axis"], given.get("where", True))
    return getattr(functions, reduction)(inputs[0], **given)


def _folded(ufunc: np.ufunc, inputs: tuple[object, ...], out: Any,
            kwargs: dict[str, object]) -> Any:
    """np.hypot.reduce(x): by other reductions."""
    names = ("axis", "dtype", "out", "keepdims", "initial", "where")
    given = {"axis": 0, **dict(zip(names, inputs[1:], strict=False)), **_given(kwargs)}
    axis, keepdims = given.pop("axis"), given.pop("keepdims", False)
    if given.get("where") is True:
        given.pop("where")
    refuse(f"np.{ufunc.__name__}.reduce", given)
    made = folds.FOLDS[ufunc.__name__](as_lazy(inputs[0]), axis,  # type: ignore[arg-type]
                                       bool(keepdims))
    return made if out is None else compute_into((made,), out)[0]


def _accumulated(name: str, inputs: tuple[object, ...], out: Any, kwargs: dict[str, object]) -> Any:
    """np.add.accumulate(x), likewise."""
    names = ("axis", "dtype", "out")
    given = {"axis": 0, **dict(zip(names, inputs[1:], strict=False)), **_given(kwargs)}
    if out is not None:
        given["out"] = out[0] if isinstance(out, tuple) else out
    return getattr(functions, _ACCUMULATED[name])(inputs[0], **given)


def _given(kwargs: Mapping[str, object]) -> dict[str, object]:
    """Without what NumPy's own functions mean by nothing."""
    return {name: value for name, value in kwargs.items() if value is not np._NoValue}


def _refuse_function(name: str) -> NoReturn:
    raise errors.Unsupported(
        f"{name} is not computed by the daemon; np.asarray(x) computes x for NumPy's function",
        argument=name, expected="a function of gd.ops()", found=name)


# Functions that are no ufuncs: with NumPy's own parameters, since NumPy hands over what was given.


def _where(condition: object, x: object = None, y: object = None) -> Lazy:
    if x is None or y is None:
        _refuse_function("np.where(condition) without x and y")
    return lazy_call("where", condition, x, y)


def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Computed, as float() is: whoever asks wants to go on by it. What is no array, as None, equals
    none."""
    try:
        a, b = as_lazy(a1), as_lazy(a2)
    except (errors.BadArgument, errors.BadShape):
        return False
    if a.shape != b.shape:
        return False
    same = a == b
    if equal_nan and a.dtype.kind == b.dtype.kind == "f":
        same = same | (functions.isnan(a) & functions.isnan(b))
    return bool(reductions.all(same))


def _allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08,
              equal_nan: bool = False) -> bool:
    return bool(reductions.all(functions.isclose(a, b, rtol, atol, equal_nan)))


def _clip(a: object, a_min: object = np._NoValue, a_max: object = np._NoValue, out: object = None,
          **kwargs: object) -> Any:
    limits: Any = {name: kwargs.pop(name) for name in ("min", "max")
                   if kwargs.get(name, np._NoValue) is not np._NoValue}
    _refuse_unusual("np.clip", {k: v for k, v in kwargs.items() if k not in ("min", "max")})
    made = functions.clip(a, a_min, a_max, **limits)  # type: ignore[arg-type]
    return made if out is None else compute_into((made,), (out,), is_broad=True)[0]


def _round(a: object, decimals: int = 0, out: object = None) -> Any:
    made = functions.round(a, decimals)  # type: ignore[arg-type]
    if out is None:
        return made
    is_as_large = getattr(out, "size", None) == made.size  # axes of length 1 may be in front
    return compute_into((made,), (out,), is_broad=is_as_large)[0]


def _of_one(name: str) -> Callable[..., Any]:
    def call(x: object, out: object = None) -> Any:
        made = lazy_call(name, x)
        return made if out is None else compute_into((made,), (out,), is_broad=True)[0]
    return call


def _own(own: Callable[..., Any]) -> Callable[..., Any]:
    """The function here, which has the parameters of NumPy's."""

    def call(*args: object, **kwargs: object) -> Any:
        return own(*args, **_given(kwargs))
    return call


def _size(a: object, axis: int | None = None) -> int:
    one = as_lazy(a)  # type: ignore[arg-type]
    return one.size if axis is None else one.shape[axis]


def _astype(x: object, dtype: Any, /, *, copy: bool = True, device: object = None) -> Lazy:
    refuse("np.astype", {"device": device})
    return functions.astype(x, dtype)  # type: ignore[arg-type]


def _unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Lazy, ...]:
    refuse("np.unravel_index", {"order": None if order == "C" else order})
    rest, places = as_lazy(indices), []
    for n in reversed(np.atleast_1d(shape).tolist()[1:]):
        places.append(rest % n)
        rest = rest // n
    return (rest, *reversed(places))


def _argwhere(a: Any) -> Any:
    if not as_lazy(a).shape:
        return as_lazy(np.empty((int(bool(as_lazy(a))), 0), np.int64))
    return moves.stack(moves.nonzero(a), axis=-1)


def _rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    first, second = moves._axes(axes, as_lazy(m).ndim)
    turned = moves.flip(m, ((), (second,), (first, second), (first,))[k % 4])
    return moves.swapaxes(turned, first, second) if k % 2 else turned


def _column_stack(tup: Any) -> Any:
    columns = [as_lazy(one) for one in tup]
    return moves.concat([one if one.ndim > 1 else reshaping.reshape(one, (-1, 1))
                         for one in columns], axis=1)


def _of_matrices(module: str, name: str) -> Callable[..., Any]:
    def call(*args: object, **kwargs: object) -> Any:
        made = importlib.import_module(f".._linalg.{module}", __package__)  # of lazies itself
        return getattr(made, name)(*args, **_given(kwargs))
    return call


def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1,
           axis: int | None = None) -> Any:
    refuse_unusual("cross", axisa=(axisa, -1), axisb=(axisb, -1), axisc=(axisc, -1))
    return _of_matrices("standard", "cross")(a, b, axis=-1 if axis is None else axis)


def _apply_along_axis(func1d: Callable[..., Any], axis: int, arr: object, *args: object,
                      **kwargs: object) -> Any:
    """In this process: a function of Python takes rows as they are."""
    rows = derived.here("apply_along_axis", arr, "arr", "parts of it have room")
    return np.apply_along_axis(func1d, axis, rows, *args, **kwargs)


_BY_NAME: dict[str, Callable[..., Any]] = {
    "where": _where, "clip": _clip, "round": _round, "around": _round, "round_": _round,
    "select": functions.select, "isclose": functions.isclose,
    "allclose": _allclose, "array_equal": _array_equal, "nan_to_num": functions.nan_to_num,
    "sinc": _of_one("sinc"), "fix": _of_one("trunc"), "isposinf": _of_one("isposinf"),
    "isneginf": _of_one("isneginf"), "astype": _astype, "linalg.norm": _own(functions.norm),
    **{name: _own(getattr(module, name))
       for module in (reductions, quantiles, scans, counts, products, einsum, derived, sorting)
       for name in module.__all__},
    **{name: getattr(module, name) for module in (moves, reshaping) for name in module.__all__},
    "linalg.matmul": _own(products.matmul), "linalg.outer": _own(products.outer),
    "linalg.tensordot": _own(products.tensordot), "linalg.vecdot": _own(products.vecdot),
    **{f"linalg.{name}": _own(getattr(solving, name))
       for name in ("cholesky", "solve", "inv", "slogdet", "det")},
    **{name: _own(getattr(creation, name))
       for name in ("linspace", "tril", "triu", "meshgrid")},
    **{name: getattr(filled, name) for name in filled.__all__},
    "gradient": _own(gradients.gradient), "repeat": derived.repeated,
    "unravel_index": _unravel_index, "argwhere": _argwhere, "rot90": _rot90,
    "column_stack": _column_stack,
    "cov": _of_matrices("spread", "cov"), "corrcoef": _of_matrices("spread", "corrcoef"),
    "linalg.lstsq": _of_matrices("tall", "fitted"), "cross": _cross,
    "apply_along_axis": _apply_along_axis,
    "shape": lambda a: as_lazy(a).shape, "ndim": lambda a: as_lazy(a).ndim, "size": _size,
    "result_type": dtypes.result_type, "can_cast": dtypes.can_cast,
    "lib.stride_tricks.sliding_window_view": derived.sliding_window_view,
}


@functools.cache
def _functions() -> dict[Any, Callable[..., Any]]:
    """By NumPy's own."""
    found: dict[Any, Callable[..., Any]] = {}
    for name, own in _BY_NAME.items():
        *modules, last = name.split(".")
        place = functools.reduce(getattr, modules, np)
        if hasattr(place, last):
            found[getattr(place, last)] = own
    return found


def apply_function(func: Callable[..., Any], args: tuple[object, ...],
                   kwargs: dict[str, object]) -> Any:
    """Lazy.__array_function__()."""
    found = _functions().get(func)
    if found is None:
        module = getattr(func, "__module__", "numpy").replace("numpy", "np")
        _refuse_function(f"{module}.{func.__name__}")
    return found(*args, **kwargs)
