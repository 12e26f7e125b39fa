"""How new files are stored, in h5py's words: chunks, compression, compression_opts, shuffle."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex, TypedDict

from .. import errors

if TYPE_CHECKING:
    from typing import Unpack

    from .. import _core

Sizes = Sequence[SupportsIndex] | SupportsIndex | bool | None
Shards = Sizes | Sequence[Sequence[SupportsIndex]]

MOST_SHARD_LEVELS = 3


def _sizes(value: Sizes, name: str) -> tuple[int, ...] | None:
    if value is None or value is False:
        return None
    if value is True and name == "chunks":
        return ()  # chosen by the library, as by h5py
    try:
        sizes = tuple(map(operator.index, value)) if isinstance(value, Sequence) \
            else (operator.index(value),)
    except TypeError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise errors.BadArgument(f"{name} is {value!r}", argument=name,
                                 expected="a tuple of sizes of 1 or more", found=repr(value))
    return sizes


def _shards(value: Shards) -> tuple[tuple[int, ...], ...] | None:
    """From the file inwards."""
    levels = list(value) if isinstance(value, Sequence) else []
    if not any(isinstance(level, Sequence) for level in levels):
        sizes = _sizes(value, "shards")  # type: ignore[arg-type]
        return None if sizes is None else (sizes,)
    found = tuple(_sizes(level, "shards") or () for level in levels)  # type: ignore[arg-type]
    if not found[0] or len({len(sizes) for sizes in found}) > 1 or len(found) > MOST_SHARD_LEVELS:
        raise errors.BadArgument(f"shards is {value!r}", argument="shards", found=repr(value),
                                 expected=f"up to {MOST_SHARD_LEVELS} tuples of as many sizes each")
    return found


def _compression(compression: str | SupportsIndex | None, opts: object) -> str | None:
    if compression is None:
        if opts is not None:
            raise errors.BadArgument("compression_opts without compression",
                                     argument="compression_opts", expected="compression='gzip'",
                                     found=repr(opts))
        return None
    if not isinstance(compression, str):  # as h5py: a level of gzip
        try:
            return f"gzip:{operator.index(compression)}"
        except TypeError:
            raise errors.BadArgument(f"compression is {compression!r}", argument="compression",
                                     expected="gzip, zstd, bz2, lzf, lz4, blosc, bitshuffle, szip",
                                     found=repr(compression)) from None
    return compression if opts is None else f"{compression}:{opts}"


class Stored(TypedDict, total=False):
    """The words."""

    chunks: Sizes
    shards: Shards
    compression: str | SupportsIndex | None
    compression_opts: object
    shuffle: bool
    fletcher32: bool
    sync: bool


def storage(**words: Unpack[Stored]) -> _core.Storage | None:
    """None where nothing was asked for: the format decides."""
    unknown = sorted(words.keys() - Stored.__annotations__.keys())
    if unknown:
        raise TypeError(f"save() got an unexpected keyword argument {unknown[0]!r}")
    chunks = words.get("chunks")
    how = (False if chunks is False else _sizes(chunks, "chunks"), _shards(words.get("shards")),
           _compression(words.get("compression"), words.get("compression_opts")),
           bool(words.get("shuffle")), bool(words.get("fletcher32")), bool(words.get("sync")))
    return None if how == (None, None, None, False, False, False) else how
