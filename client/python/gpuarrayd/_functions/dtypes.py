"""Dtypes, as NumPy and the array API know them: gd.result_type(x, y), gd.isdtype(d, "integral").

Nothing is computed; of a lazy its dtype counts, which the daemon is asked for once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import errors
from .._lazy.array import Lazy

__all__ = ["result_type", "can_cast", "isdtype", "finfo", "iinfo"]

_KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu",
          "real floating": "f", "complex floating": "c", "numeric": "iufc"}


def _known(value: Any) -> Any:
    return value.dtype if isinstance(value, Lazy) else value


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype of arrays, dtypes and numbers together, as numpy.result_type()."""
    return np.result_type(*map(_known, arrays_and_dtypes))


def can_cast(from_: Any, to: npt.DTypeLike, casting: Any = "safe") -> bool:
    """Whether a cast keeps values, as numpy.can_cast()."""
    return np.can_cast(_known(from_), _known(to), casting)


def isdtype(dtype: npt.DTypeLike, kind: Any) -> bool:
    """Whether a dtype is of a kind, or another dtype, or one of several.

    Parameters
    ----------
    dtype : data-type
    kind : str, data-type or tuple of them
        "bool", "signed integer", "unsigned integer", "integral", "real floating",
        "complex floating", "numeric".

    Raises
    ------
    BadArgument
        A word that is no kind.
    """
    found = np.dtype(dtype)
    return any(_is(found, one) for one in (kind if isinstance(kind, tuple) else (kind,)))


def _is(dtype: np.dtype[Any], kind: Any) -> bool:
    if not isinstance(kind, str):
        return bool(dtype == np.dtype(kind))
    if kind not in _KINDS:
        raise errors.BadArgument(f"isdtype: {kind!r} is no kind of dtypes", argument="kind",
                                 expected=", ".join(_KINDS), found=repr(kind))
    return dtype.kind in _KINDS[kind]


def finfo(type: Any, /) -> Any:  # noqa: A002
    """Limits of a dtype of floats, as numpy.finfo()."""
    return np.finfo(_dtype_of(type))


def iinfo(type: Any, /) -> Any:  # noqa: A002
    """Limits of a dtype of integers, as numpy.iinfo()."""
    return np.iinfo(_dtype_of(type))


def _dtype_of(value: Any) -> Any:
    return value.dtype if isinstance(value, (Lazy, np.ndarray, np.generic)) else value
