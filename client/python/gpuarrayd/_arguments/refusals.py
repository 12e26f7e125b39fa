"""What can be an argument of a job, and what cannot, in words.

check() is asked before the daemon is, so that the message names the object that the user has, and
says what to write instead. It needs no session. Other packages are recognised without being
imported.
"""

import sys
from typing import Any, NoReturn

import numpy as np

from ..errors import BadArgument, BadDtype, BadShape, OverlappingOutput, ReadOnly, Unsupported

LAST_NUM = 12  # bool, the integers, float32 and float64 have the first numbers in NumPy
_INSTEAD = {
    "O": "give it a numeric dtype: x.astype('f8')",
    "V": "name one field of it: x['field']",
    "S": "convert it: x.astype('f8')",
    "U": "convert it: x.astype('f8')",
    "T": "convert it: x.astype('f8')",
    "M": "count in a unit: x.astype('datetime64[s]').astype('i8')",
    "m": "count in a unit: x / np.timedelta64(1, 's')",
    "c": "give the parts, x.real and x.imag, as two arguments",
}


class WrongType(BadArgument, TypeError):
    """An argument of a type that Python's functions answer with their TypeError."""


def check(value: object, name: str) -> object:
    """What source() makes an argument of, for `value`.

    Returns
    -------
    object
        An ndarray or np.memmap of a dtype that is computed; a bool, int or float; an h5py.Dataset;
        an object with __gad_source__, which an array in chunks (Zarr's) becomes. Lists, NumPy's
        scalars and objects with __array__ become ndarrays, all else is `value` itself.

    Raises
    ------
    BadDtype, BadShape, BadArgument, Unsupported
        It can be no argument.
    """
    if isinstance(value, np.ndarray):
        check_array(value, name)
        return value
    if hasattr(type(value), "__gad_source__"):
        return value
    if isinstance(value, np.generic):
        return _converted(value, name)
    for plain in (bool, int, float):
        if isinstance(value, plain):
            return plain(value)
    if is_dataset(value):
        return value
    return _foreign(value, name)


def is_dataset(value: object) -> bool:
    """Whether it is an h5py.Dataset."""
    h5py = sys.modules.get("h5py")
    return h5py is not None and isinstance(value, h5py.Dataset)


def check_apart(out: Any, name: str, others: list[Any]) -> None:
    """Raises where an output that is a dataset is another argument too. Blocks of it go through
    h5py, where the daemon cannot see in which order they may."""
    if is_dataset(out) and any(is_dataset(other) and other.id == out.id for other in others):
        raise OverlappingOutput(
            f"{name} is a dataset that is also another argument; write to another one, or name the "
            "result with to=", argument=name, expected="another dataset", found=str(out.name))


def check_array(value: "np.ndarray[Any, Any]", name: str) -> None:
    """Raises where an array is of a class or dtype that is not computed."""
    kind = type(value)
    if kind is not np.ndarray and kind is not np.memmap:
        _check_class(value, name)
    if value.dtype.num > LAST_NUM:
        refuse_dtype(value.dtype, name)


def refuse_dtype(dtype: np.dtype[Any], name: str) -> NoReturn:
    """Raises BadDtype with what to use instead."""
    instead = _INSTEAD.get(dtype.char) or _INSTEAD.get(dtype.kind) or "convert it: x.astype('f8')"
    if dtype.kind == "f":
        instead = f"convert it: x.astype('{'f4' if dtype.itemsize < 4 else 'f8'}')"
    raise BadDtype(f"{name} has dtype {dtype}, which is not computed; {instead}", argument=name,
                   expected="bool, int8 to int64, uint8 to uint64, float32 or float64",
                   found=str(dtype))


def read_only(value: "np.ndarray[Any, Any]", name: str) -> ReadOnly:
    """Why an array cannot be an output."""
    why = "it is read-only"
    if isinstance(value, np.memmap) and value.mode == "r":
        why = "it maps its file for reading; mode='r+' maps it for writing"
    elif 0 in value.strides:
        why = "it is broadcast: several of its elements are one in memory; use a copy of it"
    return ReadOnly(f"{name} cannot be written: {why}", argument=name,
                    expected="an array that can be written", found="a read-only array")


def no_output(value: object, name: str) -> WrongType:
    """Why an object cannot be an output."""
    return WrongType(
        f"{name} is {_a(value)}, which results cannot be written to; an ndarray, np.memmap, "
        "h5py.Dataset or gd.open(path, 'r+') can be; to= makes a new file", argument=name,
        expected="an array that can be written", found=_kind(value))


def _check_class(value: "np.ndarray[Any, Any]", name: str) -> None:
    ma = sys.modules.get("numpy.ma")
    if ma is not None and isinstance(value, ma.MaskedArray):
        raise Unsupported(
            f"{name} is a masked array, and masks are not computed: use x.filled(np.nan), or the "
            "data and the mask as two arguments, where(mask, 0, data)", argument=name,
            expected="an ndarray", found="a masked array")
    if isinstance(value, np.matrix):
        raise Unsupported(f"{name} is an np.matrix, whose * is not that of arrays: use "
                          "np.asarray(x)", argument=name, expected="an ndarray", found="np.matrix")
    if not isinstance(value, np.memmap):
        raise Unsupported(
            f"{name} is {_a(value)}, a subclass of ndarray with meanings of its own: use "
            "np.asarray(x)", argument=name, expected="an ndarray", found=_kind(value))


def _foreign(value: object, name: str) -> object:
    graph = getattr(value, "__dask_graph__", None)
    if callable(graph) and graph() is not None:
        raise Unsupported(f"{name} is {_a(value)} in Dask's blocks; gd.dask.evaluate() computes "
                          "those, one by one", argument=name, expected="an ndarray",
                          found=_kind(value))
    if isinstance(value, complex):
        raise BadDtype(f"{name} is complex, which is not computed; {_INSTEAD['c']}", argument=name,
                       expected="bool, int or float", found="complex")
    if isinstance(value, str) or hasattr(value, "__fspath__"):
        raise BadArgument(f"{name} is {value!r}, not an array; gd.open() opens a file",
                          argument=name, expected="an array or a number", found=_kind(value))
    if _is_chunked(value):
        from .hdf5_part import chunked
        if value.dtype.num > LAST_NUM:  # type: ignore[attr-defined]
            refuse_dtype(value.dtype, name)  # type: ignore[attr-defined]
        return chunked(value)
    if isinstance(value, (list, tuple, range)) or hasattr(value, "__array__") or is_buffer(value):
        return _converted(value, name)
    raise BadArgument(f"{name} is {_a(value)}, not an array or a number", argument=name,
                      expected="an array or a number", found=_kind(value))


def is_buffer(value: object) -> bool:
    """Whether it has memory to look at."""
    try:
        memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _is_chunked(value: object) -> bool:
    """Whether it is an array in chunks, as Zarr's, whose __array__() would load all of it."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    return hasattr(value, "__array__") and hasattr(type(value), "__getitem__") \
        and isinstance(shape, tuple) and isinstance(dtype, np.dtype) \
        and bool(getattr(value, "chunks", None))


def _converted(value: object, name: str) -> object:
    try:
        array = np.asanyarray(value)
    except ValueError as error:
        raise BadShape(f"{name} makes no array: {error}", argument=name,
                       expected="rows of one length", found=_kind(value)) from error
    check_array(array, name)
    return array


def _kind(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" \
        else f"{kind.__module__}.{kind.__qualname__}"


def _a(value: object) -> str:
    kind = _kind(value)
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
