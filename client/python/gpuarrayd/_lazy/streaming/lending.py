"""Slabs on their way from a generator to its job, copied while the generator makes the next one.

    generator's thread    make 1 | make 2        | make 3        | make 4
    this one's                   |  push 1       |  push 2       |  push 3

Only a slab that nobody else knows is lent to the other thread: a generator may write into one that
it keeps as soon as it is asked for the next. Small ones are pushed at once, since telling another
thread costs as much as copying them does; large ones, too, or more memory would be held.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ... import _core

_LEAST_BYTES, _MOST_BYTES = 256 << 10, 8 << 20
_MOST_LENT = 2


class _Counted:
    def push(self, slab: Any) -> int:
        return getrefcount(slab)


def _count_alone() -> int:
    slab = np.empty(0)
    return _Counted().push(slab)


# What push() counts of a slab that its caller has in one variable: interpreters differ in that.
_ALONE = _count_alone()


class Lending:
    """Between the thread that makes slabs, which calls it, and the one that pushes them. All raise
    what the stream's push() does, of an earlier slab perhaps."""

    def __init__(self, array: _core.Array) -> None:
        self._array = array
        self._lent: SimpleQueue[Any] = SimpleQueue()
        self._back: SimpleQueue[BaseException | None] = SimpleQueue()
        self._n_lent = 0
        self._has_thread, self._can_start = False, True

    def push(self, slab: np.ndarray[Any, np.dtype[Any]]) -> None:
        """The caller has it in one variable, and does not touch it again."""
        if getrefcount(slab) == _ALONE and slab.flags.owndata and \
                _LEAST_BYTES <= slab.nbytes <= _MOST_BYTES and self._has_started():
            if self._n_lent == _MOST_LENT:
                self._take_back()
            self._n_lent += 1
            self._lent.put(slab)
        else:
            self.settle()
            self._array.push(slab)

    def settle(self) -> None:
        """Until nothing is lent."""
        while self._n_lent:
            self._take_back()

    def stop(self) -> None:
        """Nothing will be pushed any more."""
        if self._has_thread:
            self._lent.put(None)

    def _take_back(self) -> None:
        failure = self._back.get()
        self._n_lent -= 1
        if failure is not None:
            raise failure

    def _has_started(self) -> bool:
        if not self._has_thread and self._can_start:
            try:
                threading.Thread(target=_push, args=(self._array, self._lent, self._back),
                                 name="gpuarrayd-push", daemon=True).start()
                self._has_thread = True
            except RuntimeError:
                self._can_start = False  # there are no more threads to be had
        return self._has_thread


def _push(array: _core.Array, lent: SimpleQueue[Any],
          back: SimpleQueue[BaseException | None]) -> None:
    """In its thread."""
    slab = lent.get()
    while slab is not None:
        failure: BaseException | None = None
        try:
            array.push(slab)
        except BaseException as raised:
            failure = raised.with_traceback(None)
        slab = None  # its memory is free for the next one
        back.put(failure)
        slab = lent.get()
