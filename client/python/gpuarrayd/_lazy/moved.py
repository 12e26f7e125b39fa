"""Arrays that are put together of pieces: what concatenate(), pad() and the like give.

A piece is an expression and where its result goes: a view of the whole (views.py). Computed or
saved, every piece is computed into its place, several in one job, so that nothing is copied twice,
of any size. As a part of another expression the whole is made in shared memory first, when that is
computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import errors
from .._arguments import convert as _arguments
from .._jobs.request import Planned, Request, Results, To, new_array
from .._session import current
from .graph import Node, Reduction, Shape, Source, Whole, allows_tf32, computed, ordered
from .leaves import ArraySource
from .selection import Items
from .text import written
from .views import Axes, Start, ViewSource, shared, viewed

if TYPE_CHECKING:
    from .. import _core
    from .array import Lazy
    from .leaves import FileSource

_MAX_PIECES = 8  # of one job: each may be a pass
_MAX_ARRAYS = 20  # each may take three descriptors
_MAX_CARRIED = 64  # pieces, each with a descriptor, of which names are asked


class Piece(NamedTuple):
    """An expression of the shape that `axes` have, and where it goes. merged: its shape, where axes
    of that view are taken as one."""

    node: Node
    start: Start
    axes: Axes
    merged: Shape | None = None


def whole(node: Node) -> Piece:
    """All of an array."""
    return Piece(node, (0,) * len(node.shape),
                 tuple([(axis, size, 1) for axis, size in enumerate(node.shape)]))


class Moved(Source):
    """An array of pieces, which cover it. dtype: None, the one that holds all of theirs."""

    __slots__ = ("_dtype", "pieces")

    def __init__(self, shape: Shape, pieces: Sequence[Piece],
                 dtype: np.dtype[Any] | None = None) -> None:
        from .streaming.unbounded import check_lengths
        check_lengths(shape, [piece.node for piece in pieces])
        self.parts = ()
        self.shape = shape
        self.pieces = pieces
        self._dtype = dtype

    @property
    def dtype(self) -> np.dtype[Any]:
        if self._dtype is None:
            from .array import Lazy
            kinds = {Lazy._of(piece.node).dtype for piece in self.pieces}
            self._dtype = np.result_type(*kinds)
        return self._dtype

    def text(self) -> str:
        return "an array of pieces"

    def selected(self, items: Items) -> ViewSource:
        """A part of it, of which all is made when the part is read."""
        axes = tuple([(axis, size, 1) for axis, size in enumerate(self.shape)])
        return ViewSource(self, (0,) * len(self.shape), axes).selected(items)

    def __gad_source__(self, session: "_core.Session") -> "_core.Array":
        return self.__gad_shared__(session, {}, Request([], {}, []))

    def __gad_shared__(self, session: "_core.Session", made: "dict[int, _core.Array]",
                       request: Request) -> "_core.Array":
        """The same, where `made` are the arrays that are made for one request, each once, by jobs
        as that one's is."""
        found = made.get(id(self))
        if found is None:
            joined: Any = None
            if all(out is None or isinstance(out, To) for out in request.outs):
                joined = _of_files(self)  # no result is written where it lies
            found = made[id(self)] = self._made(session, made, request) if joined is None \
                else joined.__gad_source__(session)
        return found

    def _made(self, session: "_core.Session", made: "dict[int, _core.Array]",
              request: Request) -> "_core.Array":
        _, found = new_array(session, self.dtype, self.shape, "C")
        fill(session, self, found, request)
        return found

    def __gad_like__(self, session: "_core.Session") -> "_core.Array":
        """What has its shape and dtype, for plans."""
        return session.from_blocks(self.dtype.str, self.shape, _unread, None)

    def __gad_sink__(self, session: "_core.Session") -> "_core.Array":
        raise errors.ReadOnly("an array of pieces is not written; save() it, and open the file",
                              argument="out", expected="an array", found="a lazy array")

    def pickled(self) -> tuple[object, ...]:
        from .pickling import flattened
        return "moved", self.shape, [(flattened(piece.node), *piece[1:])
                                     for piece in self.pieces], self._dtype


def _unread(start: object, count: object, block: object) -> None:
    raise AssertionError("a plan reads nothing")


def fill(session: "_core.Session", moved: Moved, to: "_core.Array", whose: Request,
         progress: object = False) -> None:
    """Computes the pieces into their places, where and how the request says whose they are."""
    waiting = [_possible(session, to, piece) for piece in moved.pieces
               if 0 not in piece.node.shape]
    while waiting:
        n = _n_together(waiting)
        nodes = [piece.node for piece in waiting[:n]]
        texts, sources = written(nodes)
        args = {name: source.argument() for name, source in sources.items()}
        request = Request([(text, None) for text in texts], args, [None] * n, whose.engine,
                          whose.priority, whose.label, whose.tf32 or allows_tf32(nodes))
        wanted: list[Any] = [(text, None, _place(session, to, piece))
                             for text, piece in zip(texts, waiting, strict=False)]
        request._wait(session, wanted, request._sources(session), progress)
        waiting = waiting[n:]


def _n_together(pieces: Sequence[Piece]) -> int:
    """How many of them one job takes: one with reductions and their like, which
    are passes too, goes alone."""
    n = 1
    while n < min(_MAX_PIECES, len(pieces)) and not _reduces(pieces[0]) and not _reduces(pieces[n]):
        _, sources = written([piece.node for piece in pieces[:n + 1]])
        if len(sources) + n + 1 > _MAX_ARRAYS:
            break
        n += 1
    return n


def _reduces(piece: Piece) -> bool:
    return any(isinstance(node, (Reduction, Whole)) for node in ordered(piece.node))


def _place(session: "_core.Session", to: "_core.Array", piece: Piece) -> "_core.Array":
    found = to
    if piece.axes != tuple([(axis, size, 1) for axis, size in enumerate(to.shape)]):
        found = session.view(to, piece.start, piece.axes)
    return found if piece.merged is None else session.reshape(found, piece.merged)


def _possible(session: "_core.Session", to: "_core.Array", piece: Piece) -> Piece:
    """The piece; where its axes cannot be taken as one in the destination, as it is read from an
    array that is computed first."""
    if piece.merged is None:
        return piece
    try:
        _place(session, to, piece)
    except errors.BadShape:
        return Piece(_split(piece), piece.start, piece.axes)
    return piece


def _split(piece: Piece) -> Node:
    """A view of what is computed, with the axes of the place."""
    node, found = computed(piece.node), []
    counts = [count for _, count, _ in piece.axes]
    at = 0
    for axis, size in enumerate(node.shape):
        end = at
        while end < len(counts) and math.prod(counts[at:end + 1]) <= size:
            end += 1
        found += [(axis, counts[i], math.prod(counts[i + 1:end])) for i in range(at, end)]
        at = end
    return viewed(node, (0,) * len(node.shape), tuple(found))


class MoveRequest(Request):
    """As a Request, where some of the results are arrays of pieces."""

    __slots__ = ("lazies",)

    def __init__(self, lazies: "Sequence[Lazy]", outs: Sequence[object], engine: str | None,
                 priority: int, label: str | None, tf32: bool) -> None:
        super().__init__([], {}, outs, engine, priority, label, tf32)
        self.lazies = lazies

    def run(self, progress: object = False) -> Results:
        """One result after the other."""
        return [self._one(lazy, out, progress)
                for lazy, out in zip(self.lazies, self.outs, strict=True)]

    def start(self) -> "tuple[_core.Job, Callable[[], Results]]":
        """Several jobs are not started at once."""
        raise errors.Unsupported("an array of pieces is computed by several jobs, one after the "
                                 "other: compute() or save() it, in a thread of your own",
                                 argument="submit", found="concatenate(), pad() or the like")

    def plan(self) -> list[Planned]:
        """dtype, shape and order of each result."""
        return [(lazy.dtype, lazy.shape, "C") for lazy in self.lazies]

    def _one(self, lazy: "Lazy", out: object, progress: object) -> object:
        moved = lazy._node
        if not isinstance(moved, Moved):
            from .array import request
            one = request([lazy], [out], self.engine, self.priority, self.label, self.tf32)
            return one.run(progress)[0]
        if isinstance(out, To) and (joined := _of_files(moved)) is not None:
            from .array import Lazy
            return self._one(Lazy._of(joined), out, progress)
        session = current()
        result: object = out
        if out is None:
            result, made = new_array(session, moved.dtype, moved.shape, "C")
        elif isinstance(out, To):
            made = session.create(out.path, moved.dtype.str, moved.shape, False, True, out.storage)
        else:
            made = _sink(session, moved, out)
        fill(session, moved, made, self, progress)
        if not isinstance(out, To):
            return result
        _carry(session, moved, made)
        made.commit()
        from .array import open as open_lazy
        sizes = "x".join(map(str, moved.shape))
        return open_lazy(f"{out.path}:{moved.dtype.str[1:]}:{sizes}" if out.is_raw else out.path)


def _carry(session: "_core.Session", moved: Moved, to: "_core.Array") -> None:
    """Names of axes, coordinates and attributes, where all pieces are of files and arrays."""
    from .leaves import FileSource
    from .many import ManySource
    files = (FileSource, ManySource)
    pieces = [piece for piece in moved.pieces if 0 not in piece.node.shape]
    bases = [getattr(piece.node, "base", piece.node) for piece in pieces]
    if to.format not in ("hdf5", "zarr") or len(pieces) > _MAX_CARRIED \
            or not any(isinstance(base, files) for base in bases) \
            or not all(isinstance(base, (ArraySource, *files)) for base in bases) \
            or any(piece.merged is not None for piece in pieces):
        return
    made: dict[int, _core.Array] = {}
    whose = Request([], {}, [])
    to.carry(tuple([shared(piece.node, session, made, whose) for piece in pieces]),
             tuple([_place(session, to, piece) for piece in pieces]))


def _of_files(moved: Moved) -> Source | None:
    """The same as many files that are one array, which carries names of axes, coordinates and
    attributes into files; None where it is another thing, or there is nothing to be carried."""
    from .leaves import FileSource
    from .many import open_many
    pieces = sorted(moved.pieces, key=lambda piece: piece.start)
    source = getattr(pieces[0].node, "base", pieces[0].node) if len(pieces) > 1 else None
    if not isinstance(source, FileSource) or source.__gad_source__(current()).dimensions is None:
        return None
    first = _file_of(pieces[0].node)
    along = next((i for i, start in enumerate(pieces[1].start) if start), 0)
    places, at = [], 0
    for piece in pieces:
        node, sizes = _file_of(piece.node), list(moved.shape)
        start = [at if i == along else 0 for i in range(len(sizes))]
        sizes[along] = node.shape[along] if node and len(node.shape) == len(sizes) else -1
        if not isinstance(first, FileSource) or not isinstance(node, FileSource) \
                or node.masking != first.masking or not node.is_by_its_name() \
                or node.dtype != moved.dtype \
                or node.shape != tuple(sizes) or piece.start != tuple(start) \
                or piece.axes != tuple([(i, size, 1) for i, size in enumerate(sizes)]):
            return None
        at += sizes[along]
        places.append(node.place)
    if at != moved.shape[along]:
        return None
    return open_many(places, along, False, bool(source.masking))


def _file_of(node: Node) -> Node | None:
    """Itself, or a part of a file as a file's; None: a view with other axes."""
    from .leaves import FileSource
    if not isinstance(node, ViewSource) or not isinstance(node.base, FileSource):
        return node
    axes, base = node.axes, node.base
    if [axis for axis, _, _ in axes] != list(range(len(base.shape))) \
            or any(step < 1 for _, _, step in axes):
        return None
    items = [(first, step, count) for first, (_, count, step) in zip(node.start, axes, strict=True)]
    try:
        return base.selected(tuple(items))
    except errors.Error:
        return None  # it has another name now, or none


def _sink(session: "_core.Session", moved: Moved, out: Any) -> "_core.Array":
    """An array of the caller's, which no piece may be read from: another may be there already."""
    _, sources = written([piece.node for piece in moved.pieces])
    read = [source.base if isinstance(source, ViewSource) else source
            for source in sources.values()]
    _arguments.check_apart(out, "out", [source.argument() for source in read])
    for source in read:
        if isinstance(source, ArraySource) and isinstance(source.array, np.ndarray) \
                and isinstance(out, np.ndarray) and np.may_share_memory(source.array, out):
            raise errors.OverlappingOutput(
                "out shares memory with what is moved, which cannot be in place", argument="out",
                expected="memory apart", found="the same memory")
    made = _arguments.sink(session, out, "out")
    if tuple(made.shape) != moved.shape:
        raise errors.BadShape(f"the result has shape {moved.shape}, out {tuple(made.shape)}",
                              argument="out", expected=str(moved.shape),
                              found=str(tuple(made.shape)))
    if not np.can_cast(moved.dtype, np.dtype(made.typestr), "same_kind"):
        raise errors.BadDtype(f"the result is {moved.dtype.name}, which cannot be stored as "
                              f"{np.dtype(made.typestr).name}", argument="out",
                              expected=moved.dtype.name, found=np.dtype(made.typestr).name)
    return made
