"""Memory for the blocks of results: shared memory for some, ordinary memory for the rest.

A block in shared memory is written and, by the next expression, read by the daemon where it is; one
in ordinary memory is copied each time. On 2 cores, four processes, blocks of 8 MB, a chain of three
expressions over 256 MB takes 0.25 s in shared memory, 0.5 s in ordinary memory, and 0.43 s with
NumPy in Dask's tasks; with blocks of 32 MB all three take 0.25 to 0.4 s, because the pages of new
memory cost most then.

But Dask keeps blocks for long, and decides by the memory that its process uses when to spill them,
when to pause and when to end a worker. Pages that only the daemon has touched do not show there.
And shared memory is a quota of the user, for all processes. So blocks of more than MAX_BLOCK_BYTES,
and those that would make more than MAX_BYTES in this process, lie in ordinary memory. What is
made and used inside a task is given back before it ends: what Dask keeps fills the share.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from typing import Any, TypeAlias

import numpy as np

from .._arrays import empty
from ..errors import NoMemory

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

MAX_BLOCK_BYTES = 16 << 20
MAX_BYTES = 128 << 20

_lock = threading.Lock()
_used_bytes = 0
_changes: deque[int] = deque()  # not counted yet; finalizers run anywhere, so they take no lock


def _after_fork() -> None:
    """In a child: a thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def new(shape: tuple[int, ...], dtype: np.dtype[Any], is_fortran: bool) -> Array:
    """An array whose elements are not set."""
    n_bytes = int(np.prod(shape, dtype="i8")) * dtype.itemsize
    if shape and 0 < n_bytes <= MAX_BLOCK_BYTES and _used() + n_bytes <= MAX_BYTES:
        try:
            array = empty(shape, dtype, order="F" if is_fortran else "C")
        except NoMemory:
            pass
        else:
            _changes.append(n_bytes)
            weakref.finalize(array, _changes.append, -n_bytes).atexit = False
            return array
    return np.empty(shape, dtype, "F" if is_fortran else "C")


def _used() -> int:
    """Bytes of results in shared memory that are still there."""
    global _used_bytes
    with _lock:
        while _changes:
            _used_bytes += _changes.popleft()
        return _used_bytes
