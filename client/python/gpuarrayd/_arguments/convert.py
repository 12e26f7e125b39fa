"""What users hand over, as sources and destinations of a job.

    source                                      how it travels
    int, float, bool                            in the request; weak, as in NumPy
    NumPy scalar                                as a 0-d array
    ndarray over shared memory (gd.empty())     where it is
    ndarray on the heap                         small: in the request; else through a ring
    np.memmap and views of it                   file descriptor, offset and strides (mapped.py)
    h5py.Dataset                                descriptor or blocks (hdf5.py)
    gd.open(), by __gad_source__                as the library reads it
    list, tuple, range, objects with __array__  np.asarray() of them

Nothing is copied that this table does not say. source() is on the way of every argument of every
job, so what is most common comes first and asks the fewest questions.
"""

from typing import Any, TypeAlias

import numpy as np

from .. import _core
from .refusals import (LAST_NUM, check, check_apart, check_array, is_dataset, no_output,
                        read_only, refuse_dtype)
from .._loading import loading

Source: TypeAlias = _core.Array | bool | int | float

__all__ = ["LAST_NUM", "Source", "check", "check_apart", "check_array", "describe", "is_dataset",
           "refuse_dtype", "sink", "source"]

_PLAIN = frozenset((bool, int, float))
_ndarray, _Shared = np.ndarray, _core.Array


def source(session: _core.Session, value: Any, name: str) -> Source:
    """`value` as an argument of a job.

    Raises
    ------
    BadDtype, BadShape, BadArgument, Unsupported
        It cannot be one; the message says what to use instead.
    """
    kind = type(value)
    if kind is _ndarray:
        base = value.base
        if (base is None or type(base) is _Shared) and value.dtype.num <= LAST_NUM:
            return session.from_buffer(value, False)
    elif kind in _PLAIN:
        plain: bool | int | float = value
        return plain
    value = check(value, name)
    if isinstance(value, _ndarray):
        return _mapped_array(session, value, False) or session.from_buffer(value, False)
    if type(value) in _PLAIN:
        return value  # type: ignore[no-any-return]
    if is_dataset(value):
        with loading():
            from . import hdf5 as _h5py
        return _h5py.source(session, value, name)
    made: Source = type(value).__gad_source__(value, session)
    return made


def sink(session: _core.Session, value: Any, name: str) -> _core.Array:
    """`value` as an output of a job; it is written in place.

    Raises
    ------
    ReadOnly, BadDtype, BadArgument, Unsupported
        It cannot be written; the message says what to use instead.
    """
    if isinstance(value, _ndarray):
        check_array(value, name)
        if not value.flags.writeable:
            raise read_only(value, name)
        base: object = value.base
        mapped = None if base is None or type(base) is _Shared \
            else _mapped_array(session, value, True)
        return mapped or session.from_buffer(value, True)
    if is_dataset(value):
        with loading():
            from . import hdf5 as _h5py
        return _h5py.sink(session, value, name)
    if not hasattr(type(value), "__gad_sink__"):
        raise no_output(value, name)
    made: _core.Array = type(value).__gad_sink__(value, session)
    return made


def describe(value: Any, made: Source) -> object:
    """All that the planner looks at: arguments of equal descriptions give results alike.

    `made` is source() of `value`.
    """
    if type(made) is _Shared:
        if type(value) is _ndarray:
            return value.dtype, value.shape, value.strides
        return made.typestr, made.shape, made.strides
    return float if type(made) is float else (type(made), made)


def _mapped_array(session: _core.Session, value: "np.ndarray[Any, Any]",
                  writable: bool) -> _core.Array | None:
    with loading():
        from . import mapped as _mapped
    return _mapped.array(session, value, writable)
