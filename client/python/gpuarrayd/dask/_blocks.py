"""A task: one block of each argument, one job, one block of each result.

Tasks run in the threads of whatever process Dask has put them in and travel there pickled, so a
Block holds plain values only. Nothing here imports dask.

A block is new memory that nobody else sees, so a job whose connection was lost can always be run
again. A daemon that goes is waited for, for as long as the library waits for it in a job of its
own; one that was never there is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from . import _memory, _process
from .._jobs.request import Request
from .._lazy.array import Lazy
from .._lazy.graph import Source
from ..errors import Disconnected, Error, NoDaemon, OutcomeUnknown, ShuttingDown, WorkerLost

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_GONE = (Disconnected, NoDaemon, OutcomeUnknown, ShuttingDown)
_PATIENCE_S = 10.0  # the library's own
_PAUSE_S = 0.05
_MAX_LOSSES = 3


class Block:
    """What a task calls with the blocks of the arguments.

    Parameters
    ----------
    exprs : tuple of str
        The results; with one the call gives an array, with several a tuple of them.
    names : tuple of str
        Of the arguments that come as blocks, in their order.
    scalars : dict
        The other arguments.
    dtypes : tuple of dtype
        Of the results, as the graph says.
    engine, priority, label
        As of gd.evaluate().
    """

    def __init__(self, exprs: tuple[str, ...], names: tuple[str, ...], scalars: dict[str, object],
                 dtypes: tuple[np.dtype[Any], ...], engine: str | None, priority: int,
                 label: str | None) -> None:
        self.exprs = exprs
        self.names = names
        self.scalars = scalars
        self.dtypes = dtypes
        self.engine = engine
        self.priority = priority
        self.label = label

    def __call__(self, *blocks: Array) -> Array | tuple[Array, ...]:
        args = {**dict(zip(self.names, blocks, strict=True)), **self.scalars}
        results = again(lambda: self._run(args, blocks))
        return results[0] if len(results) == 1 else tuple(results)

    def _run(self, args: dict[str, object], blocks: tuple[Array, ...]) -> list[Array]:
        shape = np.broadcast_shapes(*map(np.shape, blocks))
        is_fortran = all(_is_fortran(block) for block in blocks if np.ndim(block) > 1)
        results = [_memory.new(shape, dtype, is_fortran) for dtype in self.dtypes]
        outputs: list[tuple[str, str | None]] = [(expr, None) for expr in self.exprs]
        Request(outputs, args, results, self.engine, self.priority, self.label).run()
        return results


def again(run: Callable[[], list[Any]]) -> list[Any]:
    """run(), in this process's session; again, where the connection was lost meanwhile."""
    loss = _Loss()
    while True:
        try:
            _process.connect()
            return run()
        except (*_GONE, WorkerLost) as error:
            if not loss.may_try_again(error):
                raise


def source(block: Any) -> Any:
    """A block that is a lazy, as what a job reads: a part of a file or array as it is, an
    expression computed."""
    return block if isinstance(block, Lazy) and isinstance(block._node, Source) \
        else np.asarray(block)


class _Loss:
    """How long a task has been without the daemon."""

    def __init__(self) -> None:
        self.is_known = _process.is_connected()
        self.n = 0
        self.until = 0.0

    def may_try_again(self, error: Error) -> bool:
        """After a pause where there is something to wait for."""
        self.n += 1
        if isinstance(error, WorkerLost):
            return self.n < _MAX_LOSSES
        if isinstance(error, NoDaemon) and not self.is_known:
            return False
        self.until = self.until or time.monotonic() + _PATIENCE_S
        time.sleep(_PAUSE_S)
        return time.monotonic() < self.until


def _is_fortran(block: Array) -> bool:
    return isinstance(block, np.ndarray) and block.flags.f_contiguous \
        and not block.flags.c_contiguous
