"""A batch: its parts by name, as arrays in shared memory."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .. import errors

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

    def to_torch(self, device: Any = None) -> dict[str, Any]:
        """The parts as tensors of PyTorch: over the same memory, without a copy.

        Parameters
        ----------
        device : torch.device or str, optional
            Where the tensors are to be: "cuda", "cuda:1". PyTorch copies them there, and is done
            when this returns, so that the batch may go. None: where the batch is.
        """
        torch = importlib.import_module("torch")
        made = {name: torch.from_dlpack(one) for name, one in self._arrays.items()}
        return made if device is None else {name: one.to(device) for name, one in made.items()}

    def to_jax(self) -> dict[str, Any]:
        """The parts as arrays of JAX, on the CPU over the same memory without a copy. JAX takes it
        for granted that nobody writes there.

        It has no elements of 64 bits unless its option jax_enable_x64 says so: without it such a
        part comes as a copy of 32 bits, as jax.numpy makes it, if its integers are the same there.

        Raises
        ------
        BadDtype
            An integer has no room in 32 bits.
        """
        dlpack = importlib.import_module("jax.dlpack")
        made = {name: dlpack.from_dlpack(one) for name, one in self._arrays.items()}
        for name, one in self._arrays.items():
            _check_narrowed(name, one, np.dtype(made[name].dtype))
        return made


def _check_narrowed(name: str, array: Array, dtype: np.dtype[Any]) -> None:
    if dtype == array.dtype or dtype.kind not in "iu" or array.size == 0:
        return
    low, high = int(array.min()), int(array.max())
    if low < np.iinfo(dtype).min or high > np.iinfo(dtype).max:
        raise errors.BadDtype(
            f"{name}: JAX makes {dtype} of {array.dtype}, which has no room for {low} to {high}",
            argument=name, expected='jax.config.update("jax_enable_x64", True)',
            found="arrays of 32 bits")


def batch_of(names: tuple[str, ...], made: tuple[int, bytes, tuple[Any, ...]]) -> Batch:
    """Of what the extension gives."""
    index, rows, parts = made
    arrays = {name: np.asarray(part) for name, part in zip(names, parts, strict=True)}
    return Batch(index, np.frombuffer(rows, "i8"), arrays)
