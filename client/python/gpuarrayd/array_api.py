"""The array API standard, 2025.12, on lazies: `xp = gd.array_api`, or x.__array_namespace__().

It has the names of the standard that there are here, and no others; what is missing, and what is
another than the standard says, is told in the package's README. Functions are the package's own,
but for those that make arrays in shared memory there: all that is made here is lazy, `empty` and
`zeros` too. dtypes are NumPy's; the device is "cpu", where results lie, whichever engine computes
them.
"""

from __future__ import annotations

import copy as _copy
import sys as _sys
from collections.abc import Sequence as _Sequence
from types import ModuleType as _ModuleType
from types import SimpleNamespace as _SimpleNamespace
from typing import Any as _Any

import numpy as _np
import numpy.typing as _npt
from numpy import bool_ as bool  # noqa: A004
from numpy import (e, float32, float64, inf, int8, int16, int32, int64, nan, newaxis, pi, uint8,
                   uint16, uint32, uint64)

from . import errors as _errors
from ._functions import functions as _functions
from ._functions.counts import searchsorted, take
from ._functions.creation import (arange, eye, full, linspace, meshgrid, ones, tril, triu)
from ._functions.derived import (bitwise_invert, bitwise_left_shift, bitwise_right_shift,
                                 broadcast_shapes, conj, cumulative_prod, cumulative_sum, imag,
                                 isin, real, unstack)
from ._functions.derived import repeated as repeat
from ._functions.dtypes import can_cast, iinfo, isdtype, result_type
from ._functions.dtypes import finfo as _finfo
from ._functions.functions import (
    abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_or, bitwise_xor,
    ceil, copysign, cos, cosh, divide, equal, exp, expm1, floor, floor_divide, greater,
    greater_equal, hypot, isfinite, isinf, isnan, less, less_equal, log, log10, log1p, log2,
    logaddexp, logical_and, logical_not, logical_or, logical_xor, maximum, minimum, multiply,
    negative, nextafter, not_equal, positive, pow, reciprocal, remainder, round, sign, signbit,
    sin, sinh, sqrt, square, subtract, tan, tanh, trunc, where)
from ._functions.products import (matmul, tensordot, vecdot)
from ._functions import reductions as _reductions
from ._functions.reductions import (all, any, argmax, argmin, count_nonzero, max, mean, min, prod,
                                    sum)
from ._functions.reducing import Axis as _Axis
from ._functions.scans import diff
from ._functions import sorting as _sorting
from ._functions.sorting import unique_all, unique_counts, unique_inverse, unique_values
from ._lazy.array import Lazy as _Lazy
from ._lazy.array import lazy as _lazy
from ._lazy.filled import empty_like, full_like, ones_like, zeros_like
from ._lazy.moves import (broadcast_arrays, broadcast_to, concat, flip, matrix_transpose, moveaxis,
                          nonzero, permute_dims, roll, squeeze, stack, take_along_axis, tile)
from ._lazy.moves import expand_dims as _expand_dims
from ._lazy.operands import Operand as _Operand
from ._lazy.reshaping import reshape
from ._lazy.unanswered import refuse as _refuse
from ._linalg import standard as linalg

__array_api_version__ = "2025.12"
__all__ = [
    "__array_api_version__", "__array_namespace_info__", "abs", "acos", "acosh", "add", "all",
    "any", "arange", "argmax", "argmin", "argsort", "asarray", "asin", "asinh", "astype", "atan",
    "atan2", "atanh", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "bool", "broadcast_arrays", "broadcast_shapes",
    "broadcast_to", "can_cast", "ceil", "clip", "concat", "conj", "copysign", "cos", "cosh",
    "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "divide", "e", "empty",
    "empty_like", "equal", "exp", "expand_dims", "expm1", "eye", "finfo", "flip", "float32",
    "float64", "floor", "floor_divide", "from_dlpack", "full", "full_like", "greater",
    "greater_equal", "hypot", "iinfo", "imag", "inf", "int16", "int32", "int64", "int8", "isdtype",
    "isfinite", "isin", "isinf", "isnan", "less", "less_equal", "linalg",
    "linspace", "log", "log10",
    "log1p", "log2", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor",
    "matmul", "matrix_transpose", "max", "maximum", "mean", "meshgrid", "min", "minimum",
    "moveaxis", "multiply", "nan", "negative", "newaxis", "nextafter", "nonzero", "not_equal",
    "ones", "ones_like", "permute_dims", "pi", "positive", "pow", "prod", "real", "reciprocal",
    "remainder", "repeat", "reshape", "result_type", "roll", "round", "searchsorted", "sign",
    "signbit", "sin", "sinh", "sort", "sqrt", "square", "squeeze", "stack", "std", "subtract",
    "sum", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "tril", "triu", "trunc",
    "uint16", "uint32", "uint64", "uint8", "unique_all", "unique_counts", "unique_inverse",
    "unique_values", "unstack", "var", "vecdot", "where", "zeros", "zeros_like"
]

_DEVICE = "cpu"


def _check_device(name: str, device: object) -> None:
    """Raises Unsupported for another than the only one."""
    _refuse(name, {"device": None if device == _DEVICE else device})


def argsort(x: _Operand, /, *, axis: int = -1, descending: _Any = False,
            stable: _Any = True) -> _Lazy:
    """The indices that sort along an axis."""
    return _sorting.argsort(x, axis, descending=descending, stable=stable)


def asarray(obj: _Any, /, *, dtype: _npt.DTypeLike | None = None, device: str | None = None,
            copy: _Any = None) -> _Lazy:
    """An array of any kind, a number or a list as a lazy; of a copy where copy is True."""
    _check_device("asarray", device)
    if copy is False and (not hasattr(obj, "__array__") or dtype not in (None, obj.dtype)):
        raise _errors.BadArgument(f"asarray: {type(obj).__name__} would be copied, to be an array "
                                  "or of another dtype", argument="copy", expected="None or True",
                                  found="False")
    if isinstance(obj, _Lazy):
        made = _copy.copy(obj) if copy else obj
    else:
        made = _lazy(_np.array(obj) if copy else obj)
    return made if dtype is None or made.dtype == dtype else made.astype(dtype)


def astype(x: _Operand, dtype: _npt.DTypeLike, /, *, copy: _Any = True,
           device: str | None = None) -> _Lazy:
    """Cast to another dtype; copy=False: a lazy that has it stays itself."""
    _check_device("astype", device)
    return x if not copy and isinstance(x, _Lazy) and x.dtype == dtype else \
        _functions.astype(x, dtype)


def clip(x: _Operand, /, min: _Any = None, max: _Any = None) -> _Lazy:  # noqa: A002
    """Limited to min and max; None: no limit on that side."""
    return _functions.clip(x, min=min, max=max)


def empty(shape: _Any, *, dtype: _npt.DTypeLike | None = None,
          device: str | None = None) -> _Lazy:
    """Zeros: a lazy has no memory that could be left as it is."""
    return zeros(shape, dtype=dtype, device=device)


def expand_dims(x: _Operand, /, axis: int | _Sequence[int] = 0) -> _Lazy:
    """With new axes of length 1."""
    return _expand_dims(x, axis)


def finfo(type: _Any, /) -> _SimpleNamespace:  # noqa: A002
    """Limits of a dtype of floats, as Python's numbers."""
    found = _finfo(type)
    return _SimpleNamespace(bits=found.bits, dtype=found.dtype, **{
        name: float(getattr(found, name)) for name in ("eps", "max", "min", "smallest_normal")})


def from_dlpack(x: _Any, /, *, device: str | None = None, copy: _Any = None) -> _Lazy:
    """What has __dlpack__(), in this machine's memory, as a lazy of the same memory. Who cannot
    give it says so by an error of its own, BufferError or AttributeError."""
    _check_device("from_dlpack", device)
    found = _np.from_dlpack(x)
    return _lazy(found.copy() if copy else found)


def sort(x: _Operand, /, *, axis: int = -1, descending: _Any = False,
         stable: _Any = True) -> _Lazy:
    """In order along an axis."""
    return _sorting.sort(x, axis, descending=descending, stable=stable)


def std(x: _Operand, /, *, axis: _Axis = None, correction: float = 0.0, keepdims: _Any = False,
        **numpys: _Any) -> _Lazy:
    """Standard deviations, as var() has the variances."""
    return _spread(_reductions.std, x, axis, correction, keepdims, numpys)


def var(x: _Operand, /, *, axis: _Axis = None, correction: float = 0.0, keepdims: _Any = False,
        **numpys: _Any) -> _Lazy:
    """Variances; NaN, and not NumPy's infinity, of no more elements than `correction`. With NumPy's
    own arguments, as xarray's ddof=, they are NumPy's."""
    return _spread(_reductions.var, x, axis, correction, keepdims, numpys)


def _spread(function: _Any, x: _Operand, axis: _Axis, correction: float, keepdims: _Any,
            numpys: dict[str, _Any]) -> _Lazy:
    if numpys:
        return function(x, axis, keepdims=keepdims,  # type: ignore[no-any-return]
                        **{"correction": correction or None, **numpys})
    made: _Lazy = function(x, axis, correction=correction, keepdims=keepdims)
    if correction <= 0 or _lazy(x).size > correction * made.size:
        return made
    return made * nan


def zeros(shape: _Any, *, dtype: _npt.DTypeLike | None = None,
          device: str | None = None) -> _Lazy:
    """Zeros, without memory."""
    _check_device("zeros", device)
    return full(shape, 0, _np.float64 if dtype is None else dtype)


class _Info:
    """What there is: devices, dtypes and what can be done."""

    def capabilities(self) -> dict[str, _Any]:
        """Shapes that follow from data are counted when they are asked for."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self) -> str:
        """Where results lie."""
        return _DEVICE

    def devices(self) -> tuple[str, ...]:
        """All of them."""
        return (_DEVICE,)

    def default_dtypes(self, *, device: str | None = None) -> dict[str, _Any]:
        """As NumPy's; there are no complex numbers, and no "complex floating"."""
        _check_device("default_dtypes", device)
        return {"real floating": _np.dtype(float64), "integral": _np.dtype(int64),
                "indexing": _np.dtype(int64)}

    def dtypes(self, *, device: str | None = None, kind: _Any = None) -> dict[str, _Any]:
        """Those of a kind, or of several, by their names."""
        _check_device("dtypes", device)
        return {name: _np.dtype(one) for name, one in _DTYPES.items()
                if kind is None or isdtype(one, kind)}


_DTYPES = {"bool": bool, "int8": int8, "int16": int16, "int32": int32, "int64": int64,
           "uint8": uint8, "uint16": uint16, "uint32": uint32, "uint64": uint64,
           "float32": float32, "float64": float64}


def __array_namespace_info__() -> _Info:  # noqa: N807
    """What there is: devices, dtypes and what can be done."""
    return _Info()


def _is_others(obj: object) -> _Any:
    """Whether it is an array of NumPy's of times, texts or objects."""
    return isinstance(obj, (_np.ndarray, _np.generic)) and obj.dtype.kind not in "biufc"


class _Names(_ModuleType):
    """The names of the standard, and behind them NumPy's, whose functions take lazies: who asks an
    array for its namespace, as xarray does, goes on to pad() and the like."""

    @staticmethod
    def asarray(obj: _Any, /, **how: _Any) -> _Any:
        """NumPy's of what no lazy can be, as coordinates of time and of names are."""
        return obj if not how and _is_others(obj) else asarray(obj, **how)

    @staticmethod
    def where(condition: _Any, x1: _Any, x2: _Any, /) -> _Any:
        """Likewise, where one of two is."""
        if _is_others(x1) or _is_others(x2):
            return _np.where(_np.asarray(condition), x1, x2)
        return where(condition, x1, x2)

    def __getattr__(self, name: str) -> _Any:
        return getattr(_sys.modules[__name__] if name in __all__ else _np, name)

    def __dir__(self) -> list[str]:
        return sorted(__all__)


_NAMES = _Names(__name__)


def _namespace(*, api_version: str | None = None) -> _Any:
    """Lazy.__array_namespace__()."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise _errors.BadArgument(f"the array API of {api_version} is not known",
                                  argument="api_version", expected="2021.12 to 2025.12",
                                  found=repr(api_version))
    return _NAMES


def __dir__() -> list[str]:
    return sorted(__all__)


del annotations
