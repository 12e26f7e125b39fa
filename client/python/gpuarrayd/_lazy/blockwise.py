"""Arrays that a function makes, block by block, in this process: map_blocks().

    x --> blocks with their halo --+
    y --> blocks with their halo --+--> f, in threads of the library --> blocks --> a job

Blocks are made while a job asks for them. What is a source is read by the library; expressions are
computed by a job for each block, and a generator is read along as its rows are needed.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from .. import errors
from .._arguments import convert as _arguments
from .._arguments.refusals import is_dataset
from .array import Lazy, lazy
from .streaming.generated import GeneratorSource
from .graph import DTYPES, Node, Shape, Source, dtype_name, ordered, settled
from .leaves import ArraySource, FileSource
from .many import ManySource
from .moved import Moved
from .picked import TakeSource
from .selection import Items
from .streaming.unbounded import Reader, unbounded
from .views import ViewSource, rebuilt

if TYPE_CHECKING:
    from .. import _core

__all__ = ["map_blocks"]

_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")  # as the library counts them
_KEPT_BLOCKS = 3  # of a generator's rows
_PATIENCE_S = 30.0
Block = np.ndarray[Any, np.dtype[Any]]
Depth: TypeAlias = int | Sequence[int] | Mapping[int, int]
Axes: TypeAlias = int | Sequence[int] | None
Added: TypeAlias = Axes | Mapping[int, int]
DType: TypeAlias = DTypeLike | None
Func: TypeAlias = Callable[..., Any]


def map_blocks(f: Func, *args: Any, dtype: DType = None, depth: Depth = 0,
               mode: str = "reflect", trim: bool = True, drop_axis: Axes = None,
               new_axis: Added = None, block: Axes = None, threads: int = 0,
               **kwargs: Any) -> Lazy:
    """An array that a function makes of the blocks of others, in this process.

        y = gd.map_blocks(scipy.ndimage.gaussian_filter, x, sigma=2, depth=8)
        gd.save("smooth.npy", y)
        y.mean().compute()                        # one pass over x

    f is called with NumPy arrays, in several threads, while a job reads y; nothing of y is kept but
    a few blocks. Numba, CuPy, SciPy, cffi: whatever takes arrays. Names and meanings are those of
    dask.array.map_blocks() and map_overlap().

    Parameters
    ----------
    f : callable
        Gets a block of each array, in the place of the array among `args`; all else in `args` and
        `kwargs` as it is. Blocks are read-only, and only there during the call. Gives an array of
        the shape of a block (see depth, drop_axis, new_axis) and of the dtype.
    args
        Arrays: lazies of any kind, ndarrays, h5py datasets, generators (of known length, read once
        and in order). They broadcast. Expressions are computed by a job for each block; reductions
        and products in them once, before.
    dtype : data-type, optional
        Of the result. None: f is called here, with blocks of ones and as small as can be.
    depth : int, tuple or dict
        How many elements of its neighbours a block has on each side: along all axes, along each, or
        by axis. Other blocks' elements are read again.
    mode : {"reflect", "symmetric", "edge", "wrap", "constant"}
        What there is beyond the array's borders, as of numpy.pad(); a constant is 0. (NumPy's
        "symmetric" is Dask's and SciPy's "reflect", NumPy's "reflect" is SciPy's "mirror".)
        Of these two no depth is larger than what an axis has to mirror.
    trim : bool
        Whether the halo is cut off what f gives. False: f has done so.
    drop_axis : int or tuple, optional
        Axes that f removes. Each block has all of them.
    new_axis : int or tuple, or dict, optional
        Axes of the result that f adds, counted after those that it removes: of size 1, or, in a
        dict, of the size that is said.
    block : tuple of int, optional
        The shape of the result's blocks. None: so that none is larger than about 2 MiB, as wide as
        can be, and long against depth.
    threads : int
        That call f at once, at most. 0: as many as there are processors; where an argument is a
        generator, one.

    Returns
    -------
    Lazy
        As others: a part of expressions, of which parts are had alone. A job that reads it in
        several passes, as y - y.mean(), calls f for each of them.

    Raises
    ------
    BadShape, BadArgument, Unsupported
        From here: arrays do not broadcast, or there is no such axis, mode or dtype.
    ProviderFailed
        From the job: its __cause__ is what f raised, with its traceback. A call that does not
        return holds its own job; Ctrl-C and Future.cancel() end that.
    BadBlock
        From the job: a block of another shape or dtype.
    Busy
        From a job over an expression, after 30 s: 32 like it are under way, each waiting for jobs.
    """
    if mode not in _MODES:
        raise errors.BadArgument(f"mode {mode!r} is none of {', '.join(_MODES)}", argument="mode",
                                 expected=" or ".join(_MODES), found=repr(mode))
    if not isinstance(threads, int) or threads < 0:
        raise errors.BadArgument(f"threads is {threads!r}", argument="threads",
                                 expected="a number of threads, or 0", found=repr(threads))
    nodes = tuple([lazy(arg)._node if _is_array(arg) else None for arg in args])
    plan = _Plan([node.shape for node in nodes if node is not None], depth, drop_axis, new_axis)
    for node in nodes:
        if node is not None and (sources := unbounded(node)):
            raise sources[0].refusal()
        if not isinstance(node, (GeneratorSource, type(None))) and any(
                isinstance(one, GeneratorSource) for one in ordered(node)):
            raise errors.BadArgument("an expression of a generator has no blocks of its own: give "
                                     "the generator itself, and let the function compute the rest",
                                     argument="args", expected="gd.from_generator()",
                                     found="an expression of it")
        if isinstance(node, GeneratorSource) and mode == "wrap" and any(plan.depth):
            raise errors.BadArgument("the halo of a first block would be the last rows of a "
                                     "generator", argument="mode", expected="another mode",
                                     found="'wrap'")
    block = (block,) if isinstance(block, int) else block
    if block is not None and len(block) != len(plan.shape):
        raise errors.BadArgument(f"blocks of {len(block)} axes of a result of {len(plan.shape)}",
                                 argument="block", expected=f"{len(plan.shape)} sizes",
                                 found=str(tuple(block)))
    call = _Call(f, tuple([_BLOCK if node is not None else arg
                           for node, arg in zip(nodes, args, strict=True)]), kwargs,
                 plan.halo if trim else (0,) * len(plan.shape))
    found = np.dtype(dtype) if dtype is not None else _inferred(call, nodes, plan)
    dtype_name(found)
    call.dtype = found
    return Lazy._of(BlockSource(call, tuple([node for node in nodes if node is not None]), plan,
                                found, _MODES.index(mode), block, threads))


def _is_array(arg: Any) -> bool:
    return isinstance(arg, (Lazy, np.ndarray)) or is_dataset(arg)


class _Plan:
    """How blocks of the arguments, and axes of the result, go together.

    frame: what the arguments broadcast to, cut by axes of the result: of[i] is that of the frame's
    axis i, -1: none."""

    def __init__(self, shapes: list[Shape], depth: Depth, drop_axis: Axes,
                 new_axis: Added) -> None:
        if not shapes:
            raise errors.BadArgument("there is no array among the arguments", argument="args",
                                     expected="an array", found="none")
        try:
            frame = np.broadcast_shapes(*shapes)
        except ValueError as raised:
            raise errors.BadShape(f"map_blocks: {raised}", argument="args",
                                  expected="shapes that broadcast",
                                  found=" and ".join(map(str, shapes))) from None
        self.frame = frame
        self.depth = _depths(depth, len(frame))
        dropped = _axes(drop_axis, len(frame), "drop_axis")
        kept = [axis for axis in range(len(frame)) if axis not in dropped]
        sizes = new_axis if isinstance(new_axis, Mapping) else None
        ndim = len(kept) + (0 if new_axis is None else len(sizes) if sizes is not None
                            else 1 if isinstance(new_axis, int) else len(tuple(new_axis)))
        added = _axes(tuple(sizes) if sizes is not None else new_axis,  # type: ignore[arg-type]
                      ndim, "new_axis")
        self.of = [-1] * len(frame)
        shape, halo, waiting = [], [], iter(kept)
        for axis in range(ndim):
            if axis in added:
                shape.append(1 if sizes is None else sizes.get(axis, sizes.get(axis - ndim, 1)))
                halo.append(0)
                continue
            one = next(waiting)
            self.of[one] = axis
            shape.append(frame[one])
            halo.append(self.depth[one])
        self.shape, self.halo = tuple(shape), tuple(halo)

    def input(self, shape: Shape) -> tuple[Shape, Shape]:
        """The depth along each axis of an argument, and by which of the result's it is cut. Where
        it is broadcast it has no neighbours."""
        missing = len(self.frame) - len(shape)
        wide = [size == self.frame[axis + missing] for axis, size in enumerate(shape)]
        return (tuple([self.depth[axis + missing] if is_wide else 0
                       for axis, is_wide in enumerate(wide)]),
                tuple([self.of[axis + missing] if is_wide else -1
                       for axis, is_wide in enumerate(wide)]))


def _depths(depth: Depth, ndim: int) -> Shape:
    if isinstance(depth, Mapping):
        at = dict(zip(_axes(tuple(depth), ndim, "depth"), depth.values(), strict=True))
        found = [at.get(axis, 0) for axis in range(ndim)]
    else:
        found = [depth] * ndim if isinstance(depth, int) else list(depth)
    if len(found) != ndim or any(one.__index__() < 0 for one in found):
        raise errors.BadArgument(f"depth {depth} of arrays of {ndim} axes", argument="depth",
                                 expected=f"a number of elements, or {ndim} of them",
                                 found=str(depth))
    return tuple(found)


def _axes(axes: Axes, ndim: int, name: str) -> Shape:
    given = () if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    found = tuple([axis + ndim if axis < 0 else axis for axis in given])
    if any(not 0 <= axis < ndim for axis in found) or len(set(found)) < len(found):
        raise errors.BadShape(f"map_blocks: {name} {axes} of {ndim} axes", argument=name,
                              expected=f"each once, {-ndim} to {ndim - 1}", found=str(axes))
    return found


# Calling ----------------------------------------------------------------------------------------

_BLOCK = object()


class _Call:
    """What the library calls."""

    dtype: np.dtype[Any]

    def __init__(self, f: Func, args: tuple[Any, ...], kwargs: dict[str, Any],
                 halo: Shape) -> None:
        self.f, self.args, self.kwargs, self.halo = f, args, kwargs, halo
        self.name = getattr(f, "__name__", type(f).__name__)

    def of(self, blocks: Iterator[Block]) -> Any:
        return self.f(*[next(blocks) if arg is _BLOCK else arg for arg in self.args],
                      **self.kwargs)

    def __call__(self, inputs: tuple[memoryview, ...], output: memoryview,
                 start: Shape) -> None:
        made = np.asarray(self.of(iter([np.asarray(view) for view in inputs])))
        to = np.asarray(output)
        wanted = tuple([size + 2 * halo for size, halo in zip(to.shape, self.halo, strict=True)])
        if made.shape != wanted:
            raise errors.BadBlock(f"{self.name}() gave a block of shape {made.shape}",
                                  expected=str(wanted), found=str(made.shape))
        if made.dtype != self.dtype:
            raise errors.BadBlock(f"{self.name}() gave a block of {made.dtype.name}: astype() "
                                  "casts it, dtype= says another", expected=self.dtype.name,
                                  found=made.dtype.name)
        np.copyto(to, made[tuple([slice(halo, halo + size) for size, halo in
                                  zip(to.shape, self.halo, strict=True)])])


def _inferred(call: _Call, nodes: tuple[Node | None, ...], plan: _Plan) -> np.dtype[Any]:
    """The dtype of what f gives for blocks of one element, and their halo, all of them 1."""
    blocks = [np.ones([1 + 2 * one for one in plan.input(node.shape)[0]], Lazy._of(node).dtype)
              for node in nodes if node is not None]
    try:
        made = np.asarray(call.of(iter(blocks)))
    except Exception as raised:
        raise errors.BadArgument(
            f"{call.name}() raised {type(raised).__name__} for blocks of ones, as small as can be, "
            "by which its dtype was to be known: give dtype=", argument="dtype",
            expected="a dtype", found="None") from raised
    if made.dtype.name not in DTYPES:
        raise errors.Unsupported(f"{call.name}() gives blocks of {made.dtype}", argument="dtype",
                                 expected="a dtype that the daemon computes in",
                                 found=made.dtype.name)
    return made.dtype.newbyteorder("=")


# The source -------------------------------------------------------------------------------------


class BlockSource(Source):
    """What map_blocks() gives."""

    __slots__ = ("_block", "_call", "_dtype", "_mode", "_nodes", "_plan", "_threads", "in_order")

    def __init__(self, call: _Call, nodes: tuple[Node, ...], plan: _Plan, dtype: np.dtype[Any],
                 mode: int, block: Sequence[int] | None, threads: int) -> None:
        self.parts = ()
        self.shape = plan.shape
        self._call, self._nodes, self._plan, self._dtype = call, nodes, plan, dtype
        self._mode, self._block, self._threads = mode, block, threads
        self.in_order: bool = any(isinstance(one, GeneratorSource)
                            or isinstance(one, BlockSource) and one.in_order
                            for node in nodes for one in ordered(node))

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self._dtype

    def text(self) -> str:
        return f"map_blocks({self._call.name})"

    def selected(self, items: Items) -> ViewSource:
        """A part of it, whose blocks alone are made."""
        if self.in_order:
            raise errors.BadArgument("what is made of a generator comes once and in order: no part "
                                     "of it can be taken", argument="[]", expected="all of it",
                                     found=self.text())
        axes = tuple([(axis, size, 1) for axis, size in enumerate(self.shape)])
        return ViewSource(self, (0,) * len(self.shape), axes).selected(items)

    def pickled(self) -> NoReturn:
        raise errors.Unsupported("a function of blocks does not go to another process: give it the "
                                 "arguments, and call map_blocks() there", argument=self.text(),
                                 expected="a file", found="map_blocks()")

    def __gad_source__(self, session: _core.Session) -> _core.Array:
        return self._made(session, [_input(session, node) for node in self._nodes])

    def __gad_like__(self, session: _core.Session) -> _core.Array:
        return session.from_blocks(self._dtype.str, self.shape, _never, None)

    def _made(self, session: _core.Session, arrays: list[_core.Array]) -> _core.Array:
        return session.from_function(
            self._dtype.str, self.shape, self._block,
            tuple([(array, *self._plan.input(node.shape))
                   for array, node in zip(arrays, self._nodes, strict=True)]),
            self._mode, self._threads, self._call, self.in_order)

    def __gad_sink__(self, session: _core.Session) -> NoReturn:
        raise errors.ReadOnly("what a function makes is only read", argument="out",
                              expected="an array or a file", found=self.text())


def _never(start: Shape, count: Shape, block: memoryview) -> NoReturn:
    raise AssertionError("a plan moves nothing")


def _input(session: _core.Session, node: Node) -> _core.Array:
    """An array that the library reads blocks of."""
    if isinstance(node, GeneratorSource):
        return session.from_blocks(node._dtype.str, node.shape, _Rows(node).read, None)
    if _is_read_as_it_is(node):
        made = _arguments.source(session, node.argument(), "x")  # type: ignore[attr-defined]
        assert not isinstance(made, (bool, int, float))
        return made
    read = _Parts(node).read
    return session.from_blocks(Lazy._of(node).dtype.str, node.shape, read, None)


def _base(node: Node) -> Node:
    return node.base if isinstance(node, ViewSource) else node


def _is_read_as_it_is(node: Node) -> bool:
    base = _base(node)
    if isinstance(base, (FileSource, ManySource)):
        return not base.masking  # else it is unpacked by a job
    return isinstance(base, (ArraySource, BlockSource, Moved)) or isinstance(base, TakeSource) \
        and all(_is_read_as_it_is(one) for one in (base.base, base.indices))


_MOST_JOBS = 32  # that wait for jobs of their blocks
_slots = threading.BoundedSemaphore(_MOST_JOBS)


class _Parts:
    """Blocks of an expression, by a job each. The job that they are for waits for these, so there
    are few of its kind at a time: they must not fill the daemon's queue. It counts until all
    elements were read once, or this is let go of."""

    def __init__(self, node: Node) -> None:
        self._n_left = math.prod(node.shape)
        whole = settled(node)
        first = {id(one): ArraySource(np.asarray(Lazy._of(one).compute()))
                 for one in ordered(whole) if isinstance(_base(one), Moved)}
        self._made = Lazy._of(rebuilt(whole, lambda one: first.get(id(one), one))
                              if first else whole)
        self._dtype = self._made.dtype
        if not _slots.acquire(timeout=_PATIENCE_S):
            raise errors.Busy(f"{_MOST_JOBS} jobs with functions of expressions are under way, and "
                              "none has ended: wait for some, or save() the expression first",
                              argument="args", expected=f"at most {_MOST_JOBS} of them at a time",
                              found="one more")
        self._end = weakref.finalize(self, _slots.release)

    def read(self, start: Shape, count: Shape, block: memoryview) -> None:
        part = self._made[tuple([slice(first, first + n)
                                 for first, n in zip(start, count, strict=True)])]
        made = part.compute()  # not into the block: a job may be let go of later than it ends
        np.copyto(np.frombuffer(block, self._dtype).reshape(count), made)
        self._n_left -= math.prod(count)  # one call at a time
        if self._n_left <= 0:
            self._end()


class _Rows:
    """Blocks of a generator's rows, of which the last ones are kept."""

    def __init__(self, source: GeneratorSource) -> None:
        self._source, self._n_rows = source, source.shape[0]
        self._reader: Reader | None = None
        self._first = self._end = 0
        self._kept: list[Block] = []
        self._failure: Exception | None = None  # is that of all further blocks

    def read(self, start: Shape, count: Shape, block: memoryview) -> None:
        begin, end = start[0], start[0] + count[0]
        try:
            if self._failure is not None:
                raise self._failure
            self._advance(begin, end)
        except Exception as raised:
            self._failure = raised
            raise
        to = np.frombuffer(block, self._source._dtype).reshape(count)
        inner = [slice(at, at + n) for at, n in zip(start[1:], count[1:], strict=True)]
        first = self._first
        for rows in self._kept:
            low, high = max(begin, first), min(end, first + len(rows))
            if low < high:
                to[low - begin:high - begin] = rows[(slice(low - first, high - first), *inner)]
            first += len(rows)

    def _advance(self, begin: int, end: int) -> None:
        if begin < self._first:
            raise errors.BadArgument("the elements of a generator come once and in order, and here "
                                     "they are needed again", argument=self._source.text(),
                                     expected="one pass", found=f"row {begin} after others")
        if self._reader is None:
            self._reader = Reader(self._source)
        if end <= self._end:
            return
        more = self._reader.next(end - self._end)
        if end == self._n_rows:
            self._reader.next(1)  # whether that is all
        self._kept.append(more)
        self._end = end
        while self._end - self._first - len(self._kept[0]) >= _KEPT_BLOCKS * (end - begin):
            self._first += len(self._kept.pop(0))
