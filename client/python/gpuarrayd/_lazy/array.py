"""Lazy arrays: expressions that look like NumPy arrays and are computed when they are asked for.

    x = gd.open("big.npy")                                # a file, never loaded
    y = (gd.sqrt(x*x + 1) - x.mean()).astype("f4")        # nothing is computed
    y.shape, y.dtype                                      # known from the daemon's plan
    gd.save("y.npy", y)                                   # one pass over the file

A lazy is a node of a graph (graph.py) and what is known of it. Operators are in operators.py,
reductions in methods.py, functions in functions.py, NumPy's in protocols.py; a request is made of
text (text.py) and sources (leaves.py). Computed is only by compute(), save(), submit(), out= and
np.asarray(); all else that would need the elements raises, and so does all that the daemon does not
compute.
"""

from __future__ import annotations

import contextlib
import math
import operator
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from .. import errors
from .graph import Call, Node, Shape, Source, allows_tf32, dtype_name
from .indexing import indexed
from .operands import Operand, call, pair, source_of
from .operators import Operators
from .._arguments.refusals import is_dataset
from .._loading import loading
from .._jobs.request import Request
from .leaves import ArraySource, FileSource, open_file
from .many import ManySource, open_many
from .moved import Moved, MoveRequest
from .methods import Reductions
from .picked import TakeSource
from .text import written
from .turning import Turning
from .unanswered import (Unanswered, refuse, refuse_assignment, refuse_number,
                         refuse_unusual)
from .streaming.unbounded import check_lengths, of_program
from .views import ViewSource

if TYPE_CHECKING:
    from .. import _core
    from .preview import Preview

Array = np.ndarray[Any, np.dtype[Any]]
Progress = bool | Callable[..., object]


class Lazy(Operators, Reductions, Turning, Unanswered):
    """An array that is not computed yet, made by gd.open(), gd.lazy() and all that is done with
    their results. It never changes, but by x[mask] = number; what it reads may.

    It takes part in expressions as an ndarray does: operators, NumPy's functions (np.sqrt(x),
    np.where(x > 0, x, y)), indexing, also by arrays and masks, broadcasting. Nothing falls back to
    NumPy: what the daemon does not compute raises Unsupported with its name.
    """

    __slots__ = ("__weakref__", "_planned", "_written")
    _planned: tuple[np.dtype[Any], Shape] | None
    _written: tuple[Node, str, dict[str, Source]] | None  # of which node, for it may be another now

    @classmethod
    def _of(cls, node: Node) -> Self:
        lazy = cls.__new__(cls)
        lazy._node = node
        lazy._planned = lazy._written = None
        return lazy

    def __init__(self) -> None:
        raise errors.Unsupported("lazies are made by gd.open(path) and gd.lazy(array)",
                                 argument="Lazy")

    # What it is.

    def _facts(self) -> tuple[np.dtype[Any], Shape]:
        if self._planned is None:
            node = self._node
            if isinstance(node, Source):
                self._planned = node.dtype, node.shape
            else:
                try:
                    [(dtype, shape, _)] = told(request([self], [None]), Request.plan)
                except errors.BadArgument as refused:
                    from .streaming.streams import facts_of_rows
                    dtype, shape = facts_of_rows(self, refused)
                self._planned = dtype, shape
        return self._planned

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the result, in this machine's byte order. Asks the daemon once."""
        return self._facts()[0]

    @property
    def shape(self) -> Shape:
        """Of the result; the first size is None where it is known at the end only, as of some
        generators. Asks the daemon once."""
        return of_program(self._facts()[1])

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        check_lengths(self._node.shape, [self._node])
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the result."""
        return self.size * self.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        check_lengths(self._node.shape, [self._node])
        return self.shape[0]

    # A lazy without axes is a number to whoever asks for one; that computes it.

    def _one(self, kind: str) -> Any:
        if self.shape:
            refuse_number(kind, self.shape)
        return self.compute()

    def __bool__(self) -> bool:
        return bool(self._one("bool"))

    def __float__(self) -> float:
        return float(self._one("float"))

    def __int__(self) -> int:
        return int(self._one("int"))

    def __format__(self, spec: str) -> str:
        if self.shape and spec:
            raise TypeError("unsupported format string passed to a lazy with axes")
        return format(self._one("format"), spec) if spec else str(self)

    def item(self, *args: Any) -> Any:
        """One element as a number of Python's, as ndarray.item(): by its place, or the only one."""
        if not args:
            if self.size != 1:
                raise errors.BadArgument(f"item() of a lazy of shape {self.shape}, which is not "
                                         "one element; item(i) is one of them", argument="item",
                                         expected="one element", found=f"{self.size} elements")
            return self.compute().item()
        place = args[0] if len(args) == 1 else args
        if not isinstance(place, tuple):
            place = np.unravel_index(self._flat(operator.index(place)), self.shape)
        if len(place) != self.ndim:
            raise errors.BadArgument(f"item() of {self.ndim} axes, not of {len(place)}",
                                     argument="item", expected=f"{self.ndim} indices",
                                     found=str(len(place)))
        return self[tuple([operator.index(one) for one in place])].compute().item()

    def _flat(self, index: int) -> int:
        if not -self.size <= index < self.size:
            raise errors.BadIndex(f"index {index} is out of bounds for {self.size} elements",
                                  argument="item", expected=f"{-self.size} to {self.size - 1}",
                                  found=str(index))
        return index % self.size

    def __repr__(self) -> str:
        from .show import shown
        return shown(self)

    def _repr_html_(self) -> str:
        from .show import table
        return table(self)

    def preview(self, fast: bool = False) -> Preview:
        """A small picture and a histogram, which notebooks show: of the last two axes, at the first
        place of those before.

        Parameters
        ----------
        fast : bool
            Whether single elements stand for the means of all, so that little is read. Else the
            elements are read once for the picture and once for the histogram.

        Raises
        ------
        BadShape
            A single number, no elements, or a length that nobody knows before its end.
        """
        with loading():
            from .preview import Preview
        return Preview(self, fast)

    # Computing.

    def compute(self, out: object = None, *, engine: str | None = None, priority: int = 0,
                label: str | None = None, progress: Progress = False, tf32: bool = False) -> Any:
        """The elements.

        Parameters
        ----------
        out : ndarray, memmap, h5py.Dataset or gd.open(path, "r+"), optional
            Where they go: of exactly this shape, of a dtype that NumPy would cast to. It may be
            what is read, element by element.
        engine : {"auto", "cpu", "cuda", "cuda:0", ...}, optional
        priority : int
            -100 to 100; the user's own jobs with higher numbers go first.
        label : str, optional
            Shown in lists of jobs.
        progress : bool or callable
            Whether a bar is shown; or what is told how far the job is.
        tf32 : bool
            Whether a device may round float32 to the 10 bits of TF32 before it multiplies the
            matrices, which is several times as fast.

        What is computed first, as a product that is summed, is computed by jobs of its own, with
        the same engine, priority, label and tf32.

        Returns
        -------
        ndarray or NumPy scalar
            An array over shared memory, the caller's; a scalar where the result is 0-d; `out`
            where it was given.

        Raises
        ------
        Error
            Its subclass says what; nothing is computed by NumPy instead.
        """
        try:
            return told(request([self], [out], engine, priority, label, tf32), Request.run,
                        progress)[0]
        except errors.BadArgument as refused:
            if refused.expected != "one pass in C order":
                raise
            from .streaming.streams import computed_of_rows
            return computed_of_rows(self, out, refused, (engine, priority, label, tf32))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """np.asarray(x) computes."""
        if copy is False:
            raise ValueError("a lazy is computed into a new array: np.asarray(x) without "
                             "copy=False")
        wanted = self if dtype is None else self.astype(np.dtype(dtype).newbyteorder("="))
        return np.asarray(wanted.compute(), dtype)

    def __getitem__(self, key: object) -> Self:
        node = indexed(self._node, key)
        return self._of(node)  # one of its own, which stays as it is when this one is assigned to

    def __setitem__(self, key: object, value: Any) -> None:
        """x[mask] = number: this lazy becomes gd.where(mask, number, x), of its own dtype. What was
        made of it before, parts of it too, stays as it was; so does a file. A number that does not
        fit is cast as astype() does. All else is refused, and of a file of mode "r+", which would
        stay as it was in silence."""
        from .._functions.functions import where
        if not isinstance(key, (Lazy, np.ndarray)) or key.dtype != bool \
                or key.shape != self.shape or np.shape(value) != ():
            refuse_assignment()
        if getattr(self._node, "mode", "r") != "r":
            refuse_assignment()
        number = value.astype(self.dtype) if isinstance(value, Lazy) \
            else np.asarray(value).astype(self.dtype)[()]
        mask = key if isinstance(key, Lazy) else key.copy()
        self._node, self._written = where(mask, number, self).astype(self.dtype)._node, None

    def astype(self, dtype: npt.DTypeLike, order: str = "K", casting: str = "unsafe",
               subok: bool = True, copy: bool = True) -> Self:
        """Cast to another dtype that the daemon computes in; as NumPy casts, but for values that
        do not fit (SEMANTICS.md). order and casting have these values alone; copy means nothing."""
        refuse_unusual("astype", order=(order, "K"), casting=(casting, "unsafe"))
        return self._of(Call("astype", (self._node,), dtype=dtype_name(dtype)))

    def clip(self, min: Operand | None = None, max: Operand | None = None,
             **others: object) -> Self:
        """The elements, limited to min and max; None: no limit on that side."""
        refuse("clip", others)
        return self._of(call("clip", self, min=min, max=max))

    def round(self, decimals: int = 0, **others: object) -> Self:
        """Rounded to decimals, halves to even."""
        refuse("round", others)
        return self._of(call("round", self, decimals=decimals))

    def tolist(self) -> Any:
        """The elements as lists of Python's numbers; computes."""
        return np.asarray(self.compute()).tolist()

    def view(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """The bytes of the elements as another dtype's; computes. Zarr packs chunks of it."""
        return np.asarray(self.compute()).view(dtype)

    # The array API's protocol.

    @property
    def __array_namespace__(self) -> Callable[..., Any]:
        """A property, since xarray looks for it before it indexes: it refuses several arrays that
        go together as indices, unless the package's module for it is there."""
        with loading():
            if "xarray" in sys.modules:
                with contextlib.suppress(ImportError):  # of an xarray that is too old for it
                    from .. import xarray as _xarray
            from .. import array_api
        return array_api._namespace

    @property
    def device(self) -> str:
        """Where results lie, whichever engine computes them."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: None = None) -> Self:
        """The lazy itself: there is one device."""
        refuse("to_device", {"device": None if device == "cpu" else device, "stream": stream})
        return self

    def __dlpack__(self, **how: Any) -> Any:
        """Of what is computed, as numpy.ndarray.__dlpack__()."""
        given = {name: value for name, value in how.items() if value is not None}
        return np.asarray(self.compute()).__dlpack__(**given)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # this machine's memory

    # NumPy's protocols; and those of the others here.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object,
                        **kwargs: object) -> Any:
        with loading():
            from . import protocols as _numpy
        return _numpy.apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: object,
                           args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        with loading():
            from . import protocols as _numpy
        return _numpy.apply_function(func, args, kwargs)

    def __gad_source__(self, session: "_core.Session") -> "_core.Array":
        return self._leaf("an argument").__gad_source__(session)

    def __gad_sink__(self, session: "_core.Session") -> "_core.Array":
        return self._leaf("an output").__gad_sink__(session)

    def _leaf(self, place: str) \
            -> ArraySource | FileSource | ManySource | TakeSource | ViewSource:
        node = self._node
        if isinstance(node, (ArraySource, FileSource, ManySource, TakeSource)) \
                or isinstance(node, ViewSource) and isinstance(node.base, ManySource):
            return node
        raise errors.Unsupported(
            f"an expression that is not computed yet cannot be {place}: compute() it, or write all "
            "of it with lazies", argument="Lazy", expected="gd.open(path) or an array",
            found="a lazy expression")

    def __copy__(self) -> Self:
        return self._of(self._node)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        from . import pickling as _pickling
        return _unpickled, (type(self), _pickling.flattened(self._node), self._planned)


def _unpickled(kind: type[Lazy], flat: list[tuple[Any, ...]],
               planned: tuple[np.dtype[Any], Shape] | None) -> Lazy:
    from . import pickling as _pickling
    made = kind._of(_pickling.restored(flat))
    made._planned = planned
    return made


def lazy_call(op: str, *operands: object, **options: object) -> Lazy:
    """A function of the catalogue as a lazy; options that are None are not given."""
    if op == "power":  # as a call: the operator ** squares bools as int8, the function in int64
        op = "pow"
    return Lazy._of(call(op, *operands, **options))


def lazy_pair(op: str, *operands: object) -> tuple[Lazy, Lazy]:
    """Of two results."""
    first, second = pair(op, *operands)
    return Lazy._of(first), Lazy._of(second)


def lazy(array: Operand) -> Lazy:
    """An array of this process as a lazy; its elements are read when a result is computed.

    Parameters
    ----------
    array : ndarray, memmap, h5py.Dataset, list, number, Lazy
        Not copied, and never loaded where it is a file's. A number is an array of no dimensions,
        with its dtype.

    Raises
    ------
    BadDtype, BadShape, BadArgument, Unsupported
        It cannot be computed (object dtype, a masked array); the message says what to use instead.
    """
    return array if isinstance(array, Lazy) else Lazy._of(source_of(array))


def open(spec: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], mode: str = "r", *,
         mask_and_scale: bool | None = None, axis: int = 0, stack: bool = False) -> Lazy:
    """An array in a file, or in many, which is not loaded.

    Parameters
    ----------
    spec : str or path, or several
        "file.npy", "file.npz:x", "file.h5:/dataset" (also netCDF: .nc, .nc4, .cdf),
        "store.zarr:/array", "file.raw:f4:100x100"; behind it there may be a
        selection: "file.npy[10:20, ::-1]".
        Several, in a list or from a generator, are one array. So are the files that match a
        pattern, "runs/*.npy", in natural order (x2 before x10).
    mode : {"r", "r+"}
        "r+": it may be an output, too, and is then written in place. Many files are only read.
    mask_and_scale : bool, optional
        True: elements are what the attributes of a netCDF, HDF5 or Zarr variable mean, as xarray
        has them: scale_factor and add_offset are applied, and NaN stands for _FillValue,
        missing_value and what is beyond valid_range, valid_min or valid_max. It is computed as
        part of each expression. False: elements as they are stored. None: the same, with a
        PackedWarning, once for each variable, where they are packed.
    axis : int
        Along which many files come behind each other.
    stack : bool
        Whether that is a new axis, as in numpy.stack().

    Returns
    -------
    Lazy
        Of the file's dtype and shape, or of what is meant. It holds the file open; other processes
        open it by its name. Of many files few are open at a time, and each must stay as it is.

    Raises
    ------
    NotFound, Permission, BadFormat, BadDtype, BadShape, Busy, ReadOnly
        It cannot be opened, or files do not go together.
    """
    if mode not in ("r", "r+"):
        raise errors.BadArgument(f"mode must be 'r' or 'r+', not {mode!r}", argument="mode",
                                 expected="'r' or 'r+'", found=repr(mode))
    is_one = isinstance(spec, (str, os.PathLike))
    if is_one and axis == 0 and not stack:
        return Lazy._of(open_file(os.fspath(spec), mode,  # type: ignore[arg-type]
                                  mask_and_scale))
    if mode != "r":
        raise errors.ReadOnly("many files as one array are only read", argument="mode",
                              expected="mode 'r'", found=f"mode {mode!r}")
    several: Any = [spec] if is_one else spec
    return Lazy._of(open_many(several, axis, stack, mask_and_scale))


def request(lazies: Sequence[Lazy], outs: Sequence[object], engine: str | None = None,
            priority: int = 0, label: str | None = None, tf32: bool = False) -> Request:
    """One job for several lazies. outs: as of Request."""
    if any(isinstance(one._node, Moved) or len(lazies) > 1 and one._node.product is not None
           for one in lazies):
        return MoveRequest(lazies, outs, engine, priority, label, tf32)
    if len(lazies) == 1:
        one = lazies[0]
        known, node = one._written, one._node
        if known is None or known[0] is not node:  # another thread may assign under a mask
            [text], sources = written([node])
            one._written = known = node, text, sources
        texts, sources = [known[1]], known[2]
    else:
        texts, sources = written([one._node for one in lazies])
    args = {name: source.argument() for name, source in sources.items()}
    for out in outs:
        if out is not None and is_dataset(out):
            from .._arguments.hdf5_part import refuse_overlap
            refuse_overlap(args.values(), out)
    return Request([(text, None) for text in texts], args, outs, engine, priority, label,
                   tf32 or allows_tf32([one._node for one in lazies]))


def told(made: Request, do: Callable[..., Any], *args: object) -> Any:
    """do(made); its error says which expression and which argument it was."""
    try:
        return getattr(made, do.__name__)(*args)
    except errors.Error as error:
        from .show import notes
        for note in notes(made, error):
            error.add_note(note)
        raise
