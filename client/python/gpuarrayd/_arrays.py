"""NumPy arrays over shared memory: what the daemon reads and writes where it is.

They are plain ndarrays. Their memory comes from the session's arena and goes back to it with the
last view.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ._arguments import convert as _arguments
from ._jobs.request import new_array
from ._session import current
from .errors import BadDtype, BadShape

if TYPE_CHECKING:
    from ._lazy.array import Lazy

Shape: TypeAlias = int | tuple[int, ...] | list[int]
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@overload
def empty(shape: Shape, dtype: DTypeLike = ..., *, order: Literal["C", "F"] = ...) -> Array: ...
@overload
def empty(path: str | os.PathLike[str], shape: Shape, dtype: DTypeLike = ..., *,
          order: Literal["C", "F"] = ...) -> Lazy: ...
def empty(*words: Any, order: Literal["C", "F"] = "C", **named: Any) -> Any:
    """A new array in shared memory, its elements not set, as np.empty(); or with a path in front
    one in a file, empty("x.npy", shape, dtype).

    Parameters
    ----------
    path : str or path
        "file.npy", "file.h5:/dataset", "store.zarr", as of open(). A file is replaced.
    shape : int or tuple of ints
    dtype : data-type
        One that is computed: bool, int8 to int64, uint8 to uint64, float32, float64; native order.
    order : "C" or "F"
        Which axis is the densest: the last or the first; of files npy and npz alone have "F".

    Returns
    -------
    ndarray
        Over shared memory; when the user's quota of that is used up, over ordinary memory. It is
        given back with the last view.
    Lazy
        Of a file: as open(path, "r+") gives it; of a Zarr store, whose chunks are written, for
        reading. All elements are 0.

    Raises
    ------
    BadDtype, BadShape
    NoMemory
        The system has no shared memory left.
    Exists, NotFound, Permission, NoSpace, BadFormat
        Of a file: a dataset of that name is there, or it cannot be made.
    """
    is_file = "path" in named or len(words) > 0 and len(words) + ("shape" in named) > 1 \
        and isinstance(words[0], (str, os.PathLike))
    names = ["path", "shape", "dtype"] if is_file else ["shape", "dtype"]
    given = {**dict(zip(names, words, strict=False)), **named}
    if len(words) > len(names) or len(given) < len(words) + len(named) or not {*given} <= {*names}:
        raise TypeError("empty() takes shape and dtype, or path, shape and dtype, each once")
    if "shape" not in given:
        raise TypeError("empty() needs a shape")
    dtype = np.dtype(given.get("dtype", np.float64))
    if not is_file:
        return _new(given["shape"], dtype, order, False)
    return _new_file(os.fspath(given["path"]), dtype, _checked(given["shape"], dtype, order), order)


def _new_file(path: str, dtype: np.dtype[Any], sizes: tuple[int, ...], order: str) -> Lazy:
    from ._lazy.array import open as open_lazy
    made = current().create(path, dtype.str, sizes, order == "F", False)
    if made.format != "zarr":
        made.commit()
        return open_lazy(path, "r+")
    del made  # a store has its chunks from a job
    from ._functions.creation import full
    from ._jobs.request import To
    full(sizes, 0, dtype).compute(To(path))
    return open_lazy(path)


def zeros(shape: Shape, dtype: DTypeLike = np.float64, *,
          order: Literal["C", "F"] = "C") -> Array:
    """A new array of zeros in shared memory, as np.zeros(). See empty()."""
    return _new(shape, np.dtype(dtype), order, True)


def empty_like(prototype: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """A new array in shared memory with the shape, dtype and memory order of another.

    Parameters
    ----------
    prototype : array_like
        Only looked at: a lazy array is not computed, an h5py.Dataset not read.
    dtype : data-type, optional
        Another one.

    Returns
    -------
    ndarray
        As of empty(); in Fortran order where the prototype is and is not in C order too.
    """
    return _new_like(prototype, dtype, False)


def zeros_like(prototype: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """A new array of zeros in shared memory, shaped as another. See empty_like()."""
    return _new_like(prototype, dtype, True)


def asarray(x: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """`x` in shared memory: itself where it lies there with this dtype, else a copy.

    Parameters
    ----------
    x : array_like
        All that np.asarray() takes; a lazy array is computed, an h5py.Dataset read.
    dtype : data-type, optional
        None: that of x.

    Returns
    -------
    ndarray
        As of empty(); of the same memory as x where that is shared memory of this session.
    """
    array = _computed(x, dtype)
    _arguments.check_array(array, "x")
    array = np.asarray(array)
    wanted = (array.dtype if dtype is None else np.dtype(dtype)).newbyteorder("=")
    if array.dtype == wanted and current().from_buffer(array, False).access == "region":
        return array
    made = _new_like(array, wanted, False)
    made[...] = array
    return made


def _computed(x: Any, dtype: DTypeLike | None) -> Array:
    """Lazies and datasets by the daemon, in this dtype; all else by NumPy, as it is."""
    known = _known(x)
    if isinstance(known, np.ndarray):
        return known
    wanted = known if dtype is None else known.astype(np.dtype(dtype).newbyteorder("="))
    return np.asarray(wanted.compute())


def _known(x: Any) -> Any:
    """A lazy of what has its elements not in memory; an array of all else."""
    if not hasattr(type(x), "__gad_source__") and not _arguments.is_dataset(x):
        return np.asanyarray(x)
    from ._lazy.array import lazy
    return lazy(x)


def _new_like(prototype: Any, dtype: DTypeLike | None, zeroed: bool) -> Array:
    array = _known(prototype)
    is_fortran = isinstance(array, np.ndarray) \
        and array.flags.f_contiguous and not array.flags.c_contiguous
    wanted = (array.dtype if dtype is None else np.dtype(dtype)).newbyteorder("=")
    _ = array.size  # which is refused where nobody knows it
    return _new(array.shape, wanted, "F" if is_fortran else "C", zeroed)


def _new(shape: Shape, dtype: np.dtype[Any], order: str, zeroed: bool) -> Array:
    return new_array(current(), dtype, _checked(shape, dtype, order), order, zeroed)[0]


def _checked(shape: Shape, dtype: np.dtype[Any], order: str) -> tuple[int, ...]:
    """The sizes."""
    if dtype.num > _arguments.LAST_NUM:
        _arguments.refuse_dtype(dtype, "the array")
    if not dtype.isnative:
        raise BadDtype("new arrays have this machine's byte order",
                       expected=dtype.newbyteorder("=").str, found=dtype.str)
    try:
        sizes = (shape.__index__(),) if hasattr(shape, "__index__") \
            else tuple([size.__index__() for size in shape])
    except (TypeError, AttributeError):
        raise BadShape(f"{shape!r} is no shape", expected="an int or a tuple of ints",
                       found=repr(shape)) from None
    if min(sizes, default=0) < 0:
        raise BadShape(f"a negative size in {sizes}", expected="sizes of 0 or more",
                       found=str(sizes))
    if order not in ("C", "F"):
        raise BadShape(f"order is {order!r}", expected="'C' or 'F'", found=repr(order))
    return sizes
