"""Generators whose rows are read several times, and those whose length along the first axis nobody
knows before their end: shape=(None, ...).

In a job the latter are a stream that ends when the generator does. What reads each row several
times, as x - x.mean(axis=1, keepdims=True), goes in chunks, with a job for each:

    generator --> chunk of rows --> x[i:i + n] with the chunk in its place --> job --> block
                  next chunk meanwhile ...

The rows of what is computed then depend on the same rows of the generator alone. A part of a lazy
is pushed down to its sources (indexing.py); that is how an expression over a chunk is made of the
whole one, and how everything that needs other rows is found: what reads the whole array asks it for
an argument, and is refused.

In a graph one of unknown length has a first axis of a length that no array has.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import errors
from ..graph import Node, Shape, ordered
from ..views import ViewSource
from .generated import GeneratorSource, Made, Slab, checked_slab

if TYPE_CHECKING:
    from ... import _core
    from ..array import Lazy

UNBOUNDED = (1 << 40) - 87  # a prime: nothing else has it by chance


def of_program(shape: Shape) -> Shape:
    """As a program wrote it: None for a length that nobody knows."""
    found = [None if size in (UNBOUNDED, -1) else size for size in shape]
    return tuple(found)  # type: ignore[arg-type]


_standing = threading.Lock()  # whoever puts chunks in the place of arrays


class UnboundedSource(GeneratorSource):
    """What a generator makes until it ends."""

    __slots__ = ()

    def __init__(self, made: Made, dtype: np.dtype[Any], rest: Shape) -> None:
        super().__init__(made, dtype, (UNBOUNDED, *rest))

    def __gad_source__(self, session: _core.Session) -> _core.Array:
        return session.stream(self._dtype.str, (-1, *self.shape[1:]), False, self._begin)

    def refusal(self) -> errors.BadArgument:
        return errors.BadArgument(
            f"the length of {self.text()} is known at its end only, when its rows have gone by: "
            "this needs other rows than the one in hand, or all of them again",
            argument="shape", expected="a length for the first axis", found="None")

    def __gad_like__(self, session: _core.Session) -> _core.Array:
        return session.stream(self._dtype.str, (-1, *self.shape[1:]), False, None)


class Reader:
    """The rows of one, in chunks of any length."""

    def __init__(self, source: GeneratorSource) -> None:
        self._slabs = source._slabs()
        self._dtype, self._shape = source._dtype, source.shape
        self._rest: Slab | None = None
        self._n_rows, self._name = 0, source.text()  # that have come

    def next(self, rows: int) -> Slab:
        """So many, or fewer at the end."""
        chunk = np.empty((rows, *self._shape[1:]), self._dtype)
        n = 0
        while n < rows:
            slab = self._rest if self._rest is not None else self._slab()
            if slab is None:
                break
            taken = slab[:rows - n]
            chunk[n:n + len(taken)] = taken
            n += len(taken)
            self._rest = slab[len(taken):] if len(taken) < len(slab) else None
        return chunk[:n]

    def _slab(self) -> Slab | None:
        try:
            slab = checked_slab(next(self._slabs), self._dtype, self._shape, "slabs")
        except StopIteration:
            self._check_length(self._n_rows < self._shape[0], f"{self._n_rows} rows")
            return None
        except Exception as raised:
            raise errors.ProviderFailed(
                f"the generator raised {type(raised).__name__}: {raised}") from raised
        self._n_rows += len(slab)
        self._check_length(self._n_rows > self._shape[0], "more rows")
        return slab

    def _check_length(self, is_wrong: bool, found: str) -> None:
        if is_wrong and self._shape[0] != UNBOUNDED:
            raise errors.ShortRead(f"{self._name} gives another number of rows than was said",
                                   expected=f"{self._shape[0]} rows", found=found)

    def close(self) -> None:
        close = getattr(self._slabs, "close", None)
        if close is not None:
            close()


def generators(node: Node) -> list[GeneratorSource]:
    """Those that it is made of."""
    bases = [one.base if isinstance(one, ViewSource) else one for one in ordered(node)]
    return [one for one in bases if isinstance(one, GeneratorSource)]


def unbounded(node: Node) -> list[UnboundedSource]:
    """Of these, those of unknown length."""
    return [one for one in generators(node) if isinstance(one, UnboundedSource)]


@contextmanager
def standing_for(sources: list[GeneratorSource], at: int, chunks: list[Slab]) -> Iterator[None]:
    """Inside, the rows of the generators from `at` on are these."""
    with _standing, ExitStack() as stack:
        for source, chunk in zip(sources, chunks, strict=True):
            source.chunk, source.at = chunk, at
            stack.callback(setattr, source, "chunk", None)
        yield


def check_lengths(shape: Shape, nodes: list[Node]) -> None:
    """Of an array that is put together from these: all lengths are known."""
    for node in nodes:
        if (UNBOUNDED in shape or UNBOUNDED in node.shape) and (sources := unbounded(node)):
            raise sources[0].refusal()


def part_of_rows(made: Lazy, sources: list[GeneratorSource], at: int, n: int) -> Lazy:
    """What is computed of these rows, which stand in their places until the job is sent.
    BadArgument: it needs others."""
    if n == sources[0].shape[0]:
        return made._of(made._node)
    part = made[at:at + n]
    for one in ordered(part._node):
        base = one.base if isinstance(one, ViewSource) else one
        if UNBOUNDED in base.shape or isinstance(base, GeneratorSource):
            raise sources[0].refusal()
    return part


def next_chunks(readers: list[Reader], rows: int) -> list[Slab]:
    """Of each as many rows."""
    chunks = [reader.next(rows) for reader in readers]
    lengths = [len(chunk) for chunk in chunks]
    if min(lengths) != max(lengths):
        raise errors.ShortRead("generators of one expression have different numbers of rows",
                               expected=f"{max(lengths)} more rows",
                               found=f"{min(lengths)} more rows")
    return chunks
