"""Several results in one pass over the data, and results in files: gd.compute() and gd.save()."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from .. import errors
from .._arguments.refusals import WrongType
from .._arguments.storage import storage
from .streaming import teed
from .array import Lazy, Progress, lazy, request, told
from .graph import Node
from .operands import Operand
from .._jobs.request import Planned, Request, To

if TYPE_CHECKING:
    from typing import Unpack

    from .._arguments.storage import Stored


def compute(*lazies: Operand, out: Any = None, engine: str | None = None,
            priority: int = 0, label: str | None = None, progress: Progress = False,
            tf32: bool = False) -> tuple[Any, ...]:
    """Several results in one pass over the data, as one job; reductions along other axes take one
    pass more for each choice of axes. Of a generator, which is read once, there is a job for each
    of these, all at the same time.

    Parameters
    ----------
    *lazies : Lazy
        At most 16, which read at most 64 arrays.
    out : list or tuple, optional
        For each of them None or where it goes; of a single one also the place itself.
    engine, priority, label, progress, tf32
        As of Lazy.compute().

    Returns
    -------
    tuple
        For each what Lazy.compute() gives.
    """
    made = [lazy(one) for one in lazies]
    if not made:
        return ()
    is_one = out is not None and not isinstance(out, (list, tuple))
    if is_one and len(made) > 1:
        raise WrongType(f"out is {type(out).__name__} for {len(made)} results; it is a list of as "
                        "many places", argument="out", expected=f"{len(made)} places",
                        found=type(out).__name__)
    outs = [None] * len(made) if out is None else [out] if is_one else [*out]
    if len(outs) != len(made):
        raise errors.BadArgument(f"out has {len(outs)} places for {len(made)} results",
                                 argument="out", expected=str(len(made)), found=str(len(outs)))
    if len(made) == 1:
        return (made[0].compute(outs[0], engine=engine, priority=priority, label=label,
                                progress=progress, tf32=tf32),)
    try:
        return tuple(told(request(made, outs, engine, priority, label, tf32), Request.run,
                          progress))
    except errors.BadArgument as refused:
        apart = _apart(made, refused)
    results = teed.run(made, apart, lambda group: compute(
        *[made[i] for i in group], out=[outs[i] for i in group], engine=engine, priority=priority,
        label=label, progress=progress if 0 in group else False, tf32=tf32))
    by_place = {i: one for group, some in zip(apart, results, strict=True)
                for i, one in zip(group, some, strict=True)}
    return tuple([by_place[i] for i in range(len(made))])


Path = str | os.PathLike[str]
Paths: TypeAlias = "Path | Mapping[Any, Operand]"


@overload
def save(path: Path, array: Operand, *, engine: str | None = None, priority: int = 0,
         label: str | None = None, progress: Progress = False, tf32: bool = False,
         **stored: Unpack[Stored]) -> Lazy: ...


@overload
def save(path: Mapping[Any, Operand], array: None = None, *, engine: str | None = None,
         priority: int = 0, label: str | None = None, progress: Progress = False,
         tf32: bool = False, **stored: Unpack[Stored]) -> dict[Any, Lazy]: ...


def save(path: Paths, array: Operand | None = None, *,
         engine: str | None = None, priority: int = 0, label: str | None = None,
         progress: Progress = False, tf32: bool = False,
         **stored: Unpack[Stored]) -> Lazy | dict[Any, Lazy]:
    """Computes into files: each appears whole when the job is done, or not at all.

    Parameters
    ----------
    path : str or path, or a dict
        "file.npy", "file.npz:x", "file.h5:/dataset", "store.zarr:/array" or "file.raw";
        existing ones are replaced, other datasets and arrays in them stay. A dict
        {path: lazy} gives several in one pass over the data, as compute() does.
    array : Lazy
        What is computed; not with a dict.
    engine, priority, label, progress, tf32
        As of Lazy.compute().
    chunks : tuple of int or bool, optional
        Sizes of a chunk, for HDF5 and Zarr; True: chosen by the library. None: chunks only where
        something packs them, and in HDF5 where a dimension is unlimited, which stays so. False: in
        one piece, and of a fixed size.
    shards : tuple of int, or a tuple of those, optional
        Zarr: elements of a file along each axis, multiples of the chunks. Several tuples: of shards
        in shards, up to three levels, from the file inwards.
    compression : str or int, optional
        "gzip" (an int is its level, as h5py has it), "zstd", "bz2", "lzf", "lz4", "blosc",
        "blosc:zstd", "bitshuffle", "szip"; Zarr: also "zlib", "lzma". Chunks are packed on all
        processors.
        Zarr: before it, with a comma, numcodecs' "delta" or "fixedscaleoffset:OFFSET:SCALE:DTYPE",
        as in "delta,zstd:3", and before that "transpose" or "transpose:1:0:2", how the axes of a
        chunk lie; behind it "crc32c", "crc32" or "adler32".
    compression_opts : int, optional
        The level.
    shuffle, fletcher32 : bool
        Bytes sorted by their place first, which packs better; with a checksum of each chunk.
    sync : bool
        On the disk, with its name, before the job says done.

    Returns
    -------
    Lazy, or a dict of them
        Opened on the new files.
    """
    if not isinstance(path, (str, os.PathLike, Mapping)):
        raise errors.BadArgument(f"the path comes first: save(path, lazy), not {type(path)}",
                                 argument="path", expected="a path, or a dict of them",
                                 found=type(path).__name__)
    pairs: Mapping[Any, Any] = path if isinstance(path, Mapping) else {path: array}
    if isinstance(path, Mapping) == (array is not None):
        raise errors.BadArgument("save takes a path and a lazy, or a dict of both",
                                 argument="save", expected="save(path, lazy)",
                                 found="a dict and a lazy" if array is not None else "a path alone")
    if not pairs:
        return {}
    from .streaming.unbounded import generators
    refused = told_of_rows(list(pairs.values())) \
        if any(generators(lazy(one)._node) for one in pairs.values()) else None
    if isinstance(refused, errors.BadArgument):
        if len(pairs) == 1:
            from .streaming.streams import save_of_rows
            [(one, made_one)] = pairs.items()
            result = save_of_rows(os.fspath(one), lazy(made_one), refused, storage(**stored),
                                  engine, priority, label)
            return {one: result} if pairs is path else result
        names, lazies = list(pairs), [lazy(one) for one in pairs.values()]
        saved = teed.run(lazies, teed.groups(lazies, refused), lambda group: save(
            {names[i]: lazies[i] for i in group}, engine=engine, priority=priority, label=label,
            progress=progress if 0 in group else False, tf32=tf32, **stored))
        return {name: of[name] for name in names for of in saved if name in of}
    how = storage(**stored)
    made = request([lazy(one) for one in pairs.values()],
                   [To(os.fspath(one), how) for one in pairs], engine, priority, label, tf32)
    results = told(made, Request.run, progress)
    return dict(zip(pairs, results, strict=True)) if pairs is path else results[0]


def _apart(made: Sequence[Lazy], refused: errors.BadArgument) -> list[list[int]]:
    from .streaming.unbounded import generators
    if not any(generators(one._node) for one in made):
        raise refused
    return teed.groups(made, refused)


def told_of_rows(made: Sequence[Operand]) -> list[Planned] | errors.BadArgument:
    """What a job would give of lazies of generators; or why it cannot be one job: it needs rows
    again that have gone by, for one."""
    try:
        planned: list[Planned] = told(request([lazy(one) for one in made], [None] * len(made)),
                                      Request.plan)
    except errors.BadArgument as refused:
        return refused
    return planned


def _broadened(one: Lazy, out: object) -> Lazy:
    shape, own = getattr(out, "shape", None), one._node.shape
    if not isinstance(shape, tuple) or shape == own or len(shape) < len(own):
        return one
    missing = len(shape) - len(own)
    if any(size not in (1, wanted) for size, wanted in zip(own, shape[missing:], strict=True)):
        return one  # which is refused in the daemon's words
    from .views import broadcast_to
    return Lazy._of(broadcast_to(one._node, shape))


def compute_into(lazies: Sequence[Lazy], outs: Sequence[object],
                 is_broad: bool = False) -> tuple[Any, ...]:
    """What NumPy's out= means: computed there. New arrays where a place is None. is_broad: the
    places may be broader, as those of ufuncs: results are broadcast to them."""
    if is_broad:
        lazies = [_broadened(*each) for each in zip(lazies, outs, strict=True)]
    return tuple(told(request(lazies, outs), Request.run))


def made(node: Node, out: object = None) -> Lazy:
    """A lazy of the node; with out, what was computed there."""
    found = Lazy._of(node)
    return found if out is None else compute_into((found,), (out,))[0]
