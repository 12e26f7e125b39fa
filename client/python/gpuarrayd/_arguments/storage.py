"""How new files are stored, in h5py's words: chunks, compression, compression_opts, shuffle."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

from .. import errors

if TYPE_CHECKING:
    from .. import _core

Sizes = Sequence[SupportsIndex] | SupportsIndex | bool | None


def _sizes(value: Sizes, name: str) -> tuple[int, ...] | None:
    if value is None or value is True:
        return None
    try:
        sizes = tuple(map(operator.index, value)) if isinstance(value, Sequence) \
            else (operator.index(value),)
    except TypeError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise errors.BadArgument(f"{name} is {value!r}", argument=name,
                                 expected="a tuple of sizes of 1 or more", found=repr(value))
    return sizes


def _compression(compression: str | int | None, opts: object) -> str | None:
    if compression is None:
        if opts is not None:
            raise errors.BadArgument("compression_opts without compression",
                                     argument="compression_opts", expected="compression='gzip'",
                                     found=repr(opts))
        return None
    if isinstance(compression, int):  # as h5py: a level of gzip
        compression, opts = "gzip", compression
    if not isinstance(compression, str):
        raise errors.BadArgument(f"compression is {compression!r}", argument="compression",
                                 expected="gzip, zstd, lzf, lz4, blosc, bitshuffle or szip",
                                 found=repr(compression))
    return compression if opts is None else f"{compression}:{opts}"


def storage(chunks: Sizes = None, shards: Sizes = None, compression: str | int | None = None,
            compression_opts: object = None, shuffle: bool = False, fletcher32: bool = False,
            sync: bool = False) -> _core.Storage | None:
    """None where nothing was asked for: the format decides."""
    how = (_sizes(chunks, "chunks"), _sizes(shards, "shards"),
           _compression(compression, compression_opts), bool(shuffle), bool(fletcher32), bool(sync))
    return None if how == (None, None, None, False, False, False) else how
