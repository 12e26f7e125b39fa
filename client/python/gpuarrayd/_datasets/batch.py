"""A batch: its parts by name, as arrays in shared memory."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Batch(Mapping[str, Array]):
    """Parts of some rows, by name: writable arrays in shared memory, which nobody else has.

    Their memory is used for another batch when the last view of any of them has gone: whoever keeps
    a batch for long takes a copy of it.

    Attributes
    ----------
    index : int
        Its number in the epoch.
    rows : ndarray of int64
        Which rows of the dataset they are; of several ranks, those that this one has.
    """

    __slots__ = ("_arrays", "index", "rows")

    def __init__(self, index: int, rows: Array, arrays: dict[str, Array]) -> None:
        self.index = index
        self.rows = rows
        self._arrays = arrays

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {one.dtype} {one.shape}" for name, one in self._arrays.items())
        return f"<Batch {self.index}: {parts}>"

    def to_torch(self) -> dict[str, Any]:
        """The parts as tensors of PyTorch over the same memory, without a copy."""
        torch = importlib.import_module("torch")
        return {name: torch.from_dlpack(one) for name, one in self._arrays.items()}

    def to_jax(self) -> dict[str, Any]:
        """The parts as arrays of JAX, on the CPU over the same memory without a copy. JAX takes it
        for granted that nobody writes there."""
        dlpack = importlib.import_module("jax.dlpack")
        return {name: dlpack.from_dlpack(one) for name, one in self._arrays.items()}


def batch_of(names: tuple[str, ...], made: tuple[int, bytes, tuple[Any, ...]]) -> Batch:
    """Of what the extension gives."""
    index, rows, parts = made
    arrays = {name: np.asarray(part) for name, part in zip(names, parts, strict=True)}
    return Batch(index, np.frombuffer(rows, "i8"), arrays)
