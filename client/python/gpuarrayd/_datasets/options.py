"""How batches are made: the options of DataLoader, checked; and those that other loaders have, with
what does their work here."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from .. import errors

Path = str | os.PathLike[str]


class Options(TypedDict, total=False):
    """As DataLoader says."""

    shuffle: bool | Literal["blocks"]
    seed: int
    drop_last: bool
    shard: tuple[int, int]
    prefetch: int
    transform: Mapping[str, str] | None
    args: Mapping[str, Any] | None
    memory: int | str
    scratch: Path | None
    scratch_bytes: int | str
    plan: str | None
    on_error: Literal["raise", "skip"]
    engine: str | None


DEFAULTS: Options = {
    "shuffle": False, "seed": 0, "drop_last": False, "shard": (0, 1), "prefetch": 2,
    "transform": None, "args": None, "memory": "256M", "scratch": None, "scratch_bytes": 0,
    "plan": None, "on_error": "raise", "engine": None}

_INSTEAD = {
    "num_workers": "batches are made ahead by threads of this process: prefetch=",
    "collate_fn": "rows come as one array: transform={'x': '...'} computes on it",
    "sampler": "the order is shuffle=, seed= and set_epoch(), of several processes shard=",
    "batch_sampler": "the order is shuffle=, seed= and set_epoch(), of several processes shard=",
    "pin_memory": "batches are in shared memory: batch.to_torch(device='cuda') copies them",
    "pin_memory_device": "batches are in shared memory: batch.to_torch(device='cuda') copies them",
    "worker_init_fn": "there are no workers: random numbers are keyed by seed, epoch and row",
    "multiprocessing_context": "there are no workers: prefetch=",
    "persistent_workers": "there are no workers: prefetch=",
    "prefetch_factor": "it is prefetch=",
    "generator": "it is seed=",
    "timeout": "a batch that cannot be made raises",
    "in_order": "batches come in order",
    "buffer_size": "shuffle=True is exact and needs no buffer; memory= is what may be used",
}
_SHUFFLES = {False: 0, True: 1, "blocks": 2}
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

Read = tuple[int, int, int, bool, int, int, int, int, str | None, int, str | None, bool,
             str | None]


def read_options(batch_size: int, options: Options) -> Read:
    """As the extension takes them."""
    for name in options:
        if name in _INSTEAD:
            raise errors.Unsupported(f"DataLoader has no {name}: {_INSTEAD[name]}", argument=name,
                                     expected=_INSTEAD[name], found=f"{name}=")
        if name not in DEFAULTS:
            raise TypeError(f"DataLoader() got an unexpected keyword argument {name!r}")
    given: Options = {**DEFAULTS, **options}
    shuffle, scratch = given["shuffle"], given["scratch"]
    if not isinstance(shuffle, (bool, str)) or shuffle not in _SHUFFLES:
        raise _refusal("shuffle", shuffle, "True, False or 'blocks'")
    if given["on_error"] not in ("raise", "skip"):
        raise _refusal("on_error", given["on_error"], "'raise' or 'skip'")
    rank, world = _shard(given["shard"])
    return (count("batch_size", batch_size), _SHUFFLES[shuffle], count("seed", given["seed"]),
            bool(given["drop_last"]), rank, world, count("prefetch", given["prefetch"], 2**32),
            _bytes("memory", given["memory"], 1), None if scratch is None else os.fspath(scratch),
            _bytes("scratch_bytes", given["scratch_bytes"]), given["plan"],
            given["on_error"] == "skip", given["engine"])


def count(name: str, value: Any, limit: int = 2**64) -> int:
    """A number of 0 or more, below the limit."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < limit:
        raise _refusal(name, value, "an integer of 0 or more")
    return number


def _shard(value: Any) -> tuple[int, int]:
    try:
        rank, world = (count("shard", one, 2**32) for one in value)
    except (TypeError, ValueError):
        raise _refusal("shard", value, "(rank, world)") from None
    if rank >= world:
        raise _refusal("shard", value, "(rank, world), rank below world")
    return rank, world


def _bytes(name: str, value: int | str, least: int = 0) -> int:
    number = _number_of_bytes(name, value)
    if number < least:
        raise _refusal(name, value, f"{least} or more bytes, as 2**28 or '256M'")
    return number


def _number_of_bytes(name: str, value: int | str) -> int:
    if not isinstance(value, str):
        return count(name, value)
    text = value.strip().upper().removesuffix("IB").removesuffix("B")
    unit = text[-1:] if text[-1:] in "KMGT" else ""
    try:
        return count(name, int(float(text.removesuffix(unit)) * _UNITS[unit]))
    except (ValueError, OverflowError):
        raise _refusal(name, value, "bytes, as 2**28 or '256M'") from None


def _refusal(name: str, value: object, expected: str) -> errors.BadArgument:
    return errors.BadArgument(f"{name} is {value!r}", argument=name, expected=expected,
                              found=repr(value))
