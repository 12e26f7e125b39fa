"""What a dataset is made of: each part as a lazy, and as an array of a session.

A file, an array of the process, a dataset of h5py or Zarr are read as they are. An expression and
what a generator makes are computed once, when a loader is made: into shared memory where a quarter
of the loader's memory has room for it, else into a file in the folder `scratch` that has no name
any more as soon as it is open, else into all of the memory. Which of them is known before anything
is computed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import errors
from .._lazy.array import Lazy, lazy, open
from .._lazy.graph import Source
from .._lazy.streaming.generated import GeneratorSource
from .._lazy.operands import source_of
from .._lazy.results import save
from .._lazy.streaming.unbounded import unbounded

if TYPE_CHECKING:
    from .. import _core

_HEADER_BYTES = 2**13  # of a file beside its elements


def part_of(name: str, value: Any) -> Lazy:
    """A part of a dataset, which has rows."""
    is_paths = isinstance(value, (list, tuple)) and value \
        and all(isinstance(one, (str, os.PathLike)) for one in value)
    if callable(value) or hasattr(value, "__next__"):
        raise errors.Unsupported(f"{name} is a generator, of which dtype and shape are not known: "
                                 "gd.from_generator(f, dtype, shape)", argument=name,
                                 expected="gd.from_generator(f, dtype, shape)",
                                 found=type(value).__name__)
    if isinstance(value, (list, tuple)) and not value:
        raise errors.NotFound(f"{name} is an empty list: no file is there", argument=name,
                              expected="at least one file", found="an empty list")
    made = open(value) if is_paths or isinstance(value, (str, os.PathLike)) \
        else value if isinstance(value, Lazy) else Lazy._of(source_of(value, name))
    if unbounded(made._node):
        raise errors.Unsupported(f"{name} is of unknown length: gd.save() it, and use the file",
                                 argument=name, expected="a first axis that is known",
                                 found=made._node.parts and "a lazy expression" or "a generator")
    if made.ndim == 0:
        raise errors.BadShape(f"{name} has no axis, so no rows", argument=name,
                              expected="at least one axis", found="()")
    return made


def is_read(part: Lazy) -> bool:
    """Whether it is read as it is, rather than computed first."""
    node = part._node
    return isinstance(node, Source) and not isinstance(node, GeneratorSource)


class Room:
    """Where the parts of a loader that are computed first go: in memory, in scratch space."""

    def __init__(self, parts: Mapping[str, Lazy], memory: int, scratch: str | None,
                 scratch_bytes: int, is_shuffled: bool) -> None:
        computed = {name: part for name, part in parts.items()
                    if not is_read(part) and part.nbytes * 4 > memory}
        self.scratch = scratch
        self.scratch_bytes = scratch_bytes  # of which parts that are copied may use the rest
        self.in_file: set[str] = set()
        self.notes: list[str] = []
        left = _free(scratch, scratch_bytes) if computed and scratch is not None else 0
        for name, part in computed.items():
            needed = part.nbytes + _HEADER_BYTES
            if needed <= left:
                self.in_file.add(name)
                left -= needed
                self.scratch_bytes = max(scratch_bytes - needed, 1) if scratch_bytes else 0
            elif scratch is None or part.nbytes > memory:
                raise _no_room(name, part, memory, scratch, left, is_shuffled)
            else:
                self.notes.append(f"note      {name} is computed into memory: {needed} bytes are "
                                  f"needed, {left} may be used in {scratch}\n")

    def array_of(self, name: str, part: Lazy, session: _core.Session) -> _core.Array:
        """The array that a loader reads."""
        from .._arguments.convert import source
        if name in self.in_file:
            return _in_file(part, session, self.scratch)
        node = (part if is_read(part) else lazy(part.compute()))._node
        assert isinstance(node, Source)
        made = source(session, node.argument(), name)
        assert not isinstance(made, (bool, int, float))
        return made


def _free(folder: str, limit: int) -> int:
    try:
        found = os.statvfs(folder)
    except OSError as error:
        raise errors.NotFound(f"{folder}: {error.strerror}", argument="scratch",
                              expected="a folder", found=str(error.strerror)) from None
    there = found.f_bavail * found.f_frsize if found.f_blocks else 2**63
    return min(there, limit) if limit else there


def _in_file(part: Lazy, session: _core.Session, scratch: str | None) -> _core.Array:
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-", dir=scratch) as folder:
        path = os.path.join(folder, "part.npy")
        save(path, part)
        return session.open(path, False)


def _no_room(name: str, part: Lazy, memory: int, scratch: str | None, left: int,
             is_shuffled: bool) -> errors.Error:
    is_generator = isinstance(part._node, GeneratorSource)
    kind = "made by a generator" if is_generator else "an expression"
    why = ", which is read in order alone," if is_generator and is_shuffled else ""
    if scratch is not None:
        needed = f"{part.nbytes + _HEADER_BYTES} bytes"
        return errors.NoSpace(
            f"{name} is {kind}{why} and computed first: {needed} are needed, {left} may be used in "
            f"{scratch} and {memory} of memory", argument="scratch", expected=needed,
            found=f"{left} bytes")
    return errors.BadArgument(
        f"{name} is {kind}{why} and computed first: {part.nbytes} bytes, of which memory has room "
        f"for {memory // 4}; scratch= names a folder for it", argument=name,
        expected="scratch=..., or a file", found=f"{part.nbytes} bytes")
