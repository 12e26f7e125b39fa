"""Arrays that a generator makes: the source behind gd.from_generator().

The generator runs in a thread of its own, from the moment at which its job has begun; while the
daemon is behind, it waits. What it raises, and what is wrong with a slab, makes the job fail, and
is then the __cause__ of its error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from ... import errors
from ..._arguments.convert import LAST_NUM, refuse_dtype
from ..graph import Shape, Source
from ..leaves import ArraySource
from ..selection import Items, Several, key_of, shape_of
from .lending import Lending

if TYPE_CHECKING:
    from ... import _core

Made = Callable[[], Iterable[Any]] | Iterable[Any]
Slab = np.ndarray[Any, np.dtype[Any]]


class _Branches(threading.local):
    """In a thread: what stands for the runs of generators, by their ids (teed.py)."""

    def __init__(self) -> None:
        self.of: dict[int, Iterator[Any]] = {}

    @contextmanager
    def standing(self, of: dict[int, Any]) -> Iterator[None]:
        self.of = of
        try:
            yield
        finally:
            self.of = {}


branches = _Branches()


def described(dtype: DTypeLike, shape: object) -> tuple[np.dtype[Any], Shape]:
    """Checked; in this machine's byte order or not."""
    found = np.dtype(dtype)
    if found.num > LAST_NUM:
        refuse_dtype(found, "the stream")
    if isinstance(shape, (tuple, list)) and shape and shape[0] is None:
        from .unbounded import UNBOUNDED
        shape = (UNBOUNDED, *shape[1:])
    try:
        sizes = tuple([size.__index__() for size in shape])  # type: ignore[attr-defined]
    except (TypeError, AttributeError):
        raise errors.BadShape(f"{shape!r} is no shape of a stream", argument="shape",
                              expected="a tuple of ints", found=repr(shape)) from None
    if not sizes or min(sizes) < 0:
        raise errors.BadShape(f"a stream has a first axis, and sizes of 0 or more, not {sizes}",
                              argument="shape", expected="at least one size", found=str(sizes))
    return found, sizes


def checked_slab(made: Any, dtype: np.dtype[Any], shape: Shape, what: str) -> Slab:
    """Rows of the stream: of any number, of this dtype, and of the stream's other sizes."""
    slab = np.asarray(made)
    if slab.dtype != dtype:
        raise errors.BadDtype(f"{what} are {dtype.name}, and one is {slab.dtype.name}: "
                              "astype() casts it", expected=dtype.str, found=slab.dtype.str)
    if slab.ndim != len(shape) or slab.shape[1:] != shape[1:]:
        wanted = f"(n{''.join(f', {size}' for size in shape[1:]) or ','})"
        raise errors.BadShape(f"{what} have the shape {wanted}, and one has {slab.shape}",
                              expected=wanted, found=str(slab.shape))
    return slab if slab.flags.c_contiguous else np.ascontiguousarray(slab)


class GeneratorSource(Source):
    """What a generator makes. It begins when a job does."""

    __slots__ = ("_dtype", "_is_used", "_made", "at", "chunk")

    def __init__(self, made: Made, dtype: np.dtype[Any], shape: Shape) -> None:
        self.parts = ()
        self.shape = shape
        self._made = made
        self._dtype = dtype
        self._is_used = False
        self.chunk: Slab | None = None  # which stands for the rows from `at` on (unbounded.py)
        self.at = 0

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self._dtype.newbyteorder("=")

    def argument(self) -> object:
        return self if self.chunk is None else self.chunk

    def text(self) -> str:
        name = getattr(self._made, "__name__", type(self._made).__name__)
        return f"from_generator({name})"

    def selected(self, items: Items) -> Source:
        if self.chunk is not None and items[0] == (self.at, 1, len(self.chunk)):
            part = (0, 1, len(self.chunk)), *items[1:]
            return ArraySource(self.chunk).selected(part)
        rows = items[0]
        if type(self) is GeneratorSource and self.chunk is None and isinstance(rows, tuple) \
                and rows[1] > 0:
            cut = _Cut(self, rows, key_of(items[1:]))
            return GeneratorSource(cut, self._dtype, shape_of(items))
        raise errors.BadArgument("such a part of a stream cannot be taken: its elements come once "
                                 "and in order; gd.save() it, and use the file", argument="[]",
                                 expected="x[rows in order, ...]", found=self.text())

    def refusal(self) -> errors.BadArgument:
        """Of what needs the whole array, or some of it again."""
        return errors.BadArgument(f"{self.text()} is read once and in order: this needs other rows "
                                  "than the one in hand, or all of them again", argument="shape",
                                  expected="one pass in C order", found="several")

    def pickled(self) -> NoReturn:
        raise errors.Unsupported("a generator does not go to another process",
                                 argument=self.text(), expected="a file", found="a stream")

    def __gad_source__(self, session: _core.Session) -> _core.Array:
        return session.stream(self._dtype.str, self.shape, False, self._begin)

    def __gad_sink__(self, session: _core.Session) -> NoReturn:
        raise errors.ReadOnly("a generator is only read", argument="out",
                              expected="an array or a file", found=self.text())

    def _begin(self, array: _core.Array) -> None:
        """A job is about to be sent."""
        threading.Thread(target=_feed, args=(array, self._slabs(), self._dtype, self.shape),
                         name="gpuarrayd-stream", daemon=True).start()

    def _slabs(self) -> Iterator[Any]:
        """For one job."""
        branch = branches.of.pop(id(self), None)
        if branch is not None:
            return branch
        if callable(self._made):
            made: Iterable[Any] = self._made()
        elif self._is_used:
            raise errors.BadArgument("the iterator was read by a job before; give a function that "
                                     "makes one, and each job has its own", argument="f",
                                     expected="a function", found=type(self._made).__name__)
        else:
            self._is_used = True
            made = self._made
        return iter(made)


class _Cut:
    """A part of what a generator makes: some rows, of which each slab has its own, and of each row
    the same. The generator ends with the last of them."""

    def __init__(self, whole: GeneratorSource, rows: Several, key: tuple[Any, ...]) -> None:
        self._whole = whole
        self._rows = range(rows[0], rows[0] + rows[1] * rows[2], rows[1])
        self._key = key
        self.__name__ = f"{whole.text()}[...]"

    def __call__(self) -> Iterator[Slab]:
        whole, rows = self._whole, self._rows
        slabs, at = whole._slabs(), 0
        for made in slabs:
            slab = checked_slab(made, whole._dtype, whole.shape, "slabs")
            own = rows[max(-((rows.start - at) // rows.step), 0):]
            if own and own.start < at + len(slab):
                yield slab[(slice(own.start - at, own.stop - at, rows.step), *self._key)]
            at += len(slab)
            if at > rows[-1]:
                break
        if (close := getattr(slabs, "close", None)) is not None:
            close()


def _feed(array: _core.Array, slabs: Iterator[Any], dtype: np.dtype[Any], shape: Shape) -> None:
    """In its thread. What the job fails with is for whoever waits for that."""
    lending = Lending(array)
    try:
        array.begun()
        while True:
            try:
                slab = checked_slab(next(slabs), dtype, shape, "slabs")
            except StopIteration:
                break
            except BaseException as raised:
                lending.settle()
                array.fail(f"the generator raised {type(raised).__name__}: {raised}", raised)
                return
            lending.push(slab)
        lending.settle()
        array.end()
    except errors.Error:
        pass
    finally:
        lending.stop()
        close = getattr(slabs, "close", None)
        if close is not None:
            close()
