"""DataLoader: batches of a dataset, in order or in an exact random one, made ahead.

The loader itself is the library's (client/lib/datasets). Here it is made for the process at hand,
a child of fork() makes its own, and iterations are given out: one at a time, to any threads.
"""

from __future__ import annotations

import asyncio
import json
import operator
import os
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .. import _core, _session, errors
from .._arguments.convert import source
from .._lazy.array import Lazy
from .batch import Batch, batch_of
from .dataset import Dataset
from .options import Options, count, read_options
from .sources import Room

if TYPE_CHECKING:
    from typing import Unpack


class DataLoader:
    """Batches of a dataset's rows.

    Batch k of an epoch is a function of data, seed, epoch, batch_size and transform alone: the same
    bytes for any prefetch, memory, plan, file format and number of processes.

    Parameters
    ----------
    dataset : Dataset
    batch_size : int
        Rows of a batch, of all ranks together.
    shuffle : bool or "blocks"
        True: each epoch in a random order of all rows, exactly, without memory for it. "blocks":
        neighbouring rows stay together, which is faster and less random.
    seed : int
        0 to 2**64 - 1. With the epoch it gives the order, and the random numbers of transforms.
    drop_last : bool
        Whether rows that do not fill a batch are left out.
    shard : (rank, world)
        Which part of each batch this process gets of how many. All of them together have what one
        process has.
    prefetch : int
        Batches that are made ahead.
    transform : dict of str, optional
        For a part the text of what it becomes, as of gd.evaluate(), of parts and `args`:
        {"x": "(x - m) / s + 0.1*normal()"}. Random functions need no seed and no size; they are
        seeded by seed and epoch and numbered by rows, so that a row gets the same numbers in
        whichever batch it comes. size=(-1, 1, 1) is one number for each row of a part of three
        axes; equal calls are equal numbers, but for other seed=k.
    args : dict, optional
        Numbers and arrays that the texts name.
    memory : int or str
        Bytes, for what is read ahead and for batches together: "256M". They are this process's
        own, not of the daemon's pool, and used as far as the data needs them.
    scratch : path, optional
        A folder in which the data may be decoded once.
    scratch_bytes : int or str
        How much of it; 0: as much as there is.
    plan : {"direct", "scan", "copy", "resident"}, optional
        How it is read; None: what takes the least time. explain() says which.
    on_error : {"raise", "skip"}
        What rows do that cannot be read: their batch raises, or it is left out and counted
        (`skipped`), by all ranks of several alike: once in its life each loader also tries the
        others' rows, of chunks one row each, unless it knows of them from its own.
    engine : str, optional
        Where transforms are computed: "cpu", "cuda", "cuda:0"; None: where it ends sooner. Batches
        are the same numbers as of any job there, in shared memory all the same.

    Iterating gives an epoch's batches and then goes on to the next epoch; breaking off and
    beginning again gives the same epoch from its beginning. One iteration goes on at a time, and
    threads may share it. `async for` does not block the loop.
    """

    def __init__(self, dataset: Dataset, batch_size: int, **options: Unpack[Options]) -> None:
        self._options = read_options(batch_size, options)
        if not isinstance(dataset, Dataset):
            raise errors.BadArgument("a DataLoader is of a gd.Dataset: gd.Dataset(x=...)",
                                     argument="dataset", expected="a Dataset",
                                     found=type(dataset).__name__)
        self._dataset = dataset
        self._transform = dict(options.get("transform") or {})
        self._args = {name: np.asarray(one) if isinstance(one, Lazy) else one
                      for name, one in (options.get("args") or {}).items()}
        self._epoch = 0
        self._state: str | None = None  # to go on from
        self._begin()

    # The library's loader.

    def _begin(self) -> None:
        self._made: tuple[_core.Session, _core.Loader] | None = None
        self._process, self._lock = os.getpid(), threading.RLock()
        self._iteration: weakref.ref[_Iteration] | None = None  # which has the loader
        self._current()

    def _locked(self) -> threading.RLock:
        """The lock of this process: at fork() a thread that the child lacks may have held it."""
        if self._process != os.getpid():
            self._process, self._lock = os.getpid(), threading.RLock()
        return self._lock

    def _current(self) -> _core.Loader:
        """Of this process and its session."""
        session = _session.current()
        with self._locked():
            if self._made is None or self._made[0] is not session:
                self._made = session, self._make(session)
            return self._made[1]

    def _make(self, session: _core.Session) -> _core.Loader:
        _, shuffle, *_, memory, scratch, scratch_bytes, _, _, _ = self._options
        room = Room(self._dataset._parts, memory, scratch, scratch_bytes, bool(shuffle))
        self._notes = "".join(room.notes)
        parts = tuple([(name, room.array_of(name, part, session))
                       for name, part in self._dataset._parts.items()])
        texts = tuple([(text, name, None) for name, text in self._transform.items()])
        args = tuple([(name, source(session, one, name)) for name, one in self._args.items()])
        options = (*self._options[:9], room.scratch_bytes, *self._options[10:])
        made = session.loader(parts, texts, args, options)
        made.set_epoch(self._epoch)
        if self._state is not None:
            made.load_state(self._state)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """What another process makes its own of."""
        return {**self.__dict__, "_state": json.dumps(self.state_dict()), "_made": None,
                "_lock": None, "_iteration": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    # Batches.

    def __len__(self) -> int:
        return self._current().length

    def __iter__(self) -> Iterator[Batch]:
        core = self._current()
        with self._locked():
            if self._state is None:
                core.set_epoch(self._epoch)
            self._state = None
            made = _Iteration(self, core)
            self._iteration = weakref.ref(made)
            return made

    def __aiter__(self) -> AsyncIterator[Batch]:
        made = iter(self)
        assert isinstance(made, _Iteration)
        return made

    def __getitem__(self, k: int) -> Batch:
        """Batch k of the epoch, by itself; a negative k counts from the end."""
        number = operator.index(k)
        n = len(self)
        if not -n <= number < n:
            raise errors.BadIndex(f"batch {number} of {n}", argument="k",
                                  expected=f"{-n} to {n - 1}", found=str(number))
        return batch_of(self._dataset.names, self._current().batch(number % n))

    # Where it is.

    @property
    def epoch(self) -> int:
        """The epoch at hand, or that comes next."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Goes to the beginning of an epoch."""
        number = count("epoch", epoch)
        with self._locked():
            self._current().set_epoch(number)
            self._epoch, self._state, self._iteration = number, None, None

    def state_dict(self) -> dict[str, Any]:
        """Where it is, behind the last batch that was given out: a few numbers, with which a
        loader of the same data, with any number of ranks and any format, goes on."""
        core = self._current()
        with self._locked():
            found: dict[str, Any] = json.loads(core.state())
            iteration = None if self._iteration is None else self._iteration()
            left = iteration.left() if iteration is not None else None
            if left is not None:
                found["position"] = left * found["batch_size"]
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to where another loader was: the next iteration begins there.

        Raises
        ------
        BadArgument
            It is of other data, or of another batch_size, shuffle or drop_last. The seed is then
            the state's. Of data of the same names, dtypes and shapes a few rows are compared,
            where they can be read by little: a difference elsewhere is not seen.
        DatasetChanged
            A file was written to since: one of the same path has another size or time. Files
            elsewhere are another copy, if those rows are the same. Who knows that the data are the
            same takes "files" out of the state, and "rows" to go on with others.
        """
        try:
            text = json.dumps(dict(state))
        except (TypeError, ValueError):
            raise errors.BadArgument("this is no state of a loader", argument="state",
                                     expected="what state_dict() gave",
                                     found=type(state).__name__) from None
        with self._locked():
            self._current().load_state(text)
            self._state, self._epoch, self._iteration = text, int(state["epoch"]), None
            self._options = (*self._options[:2], int(state["seed"]), *self._options[3:])

    @property
    def skipped(self) -> int:
        """Batches that were left out, of on_error="skip"."""
        return self._current().skipped

    def explain(self) -> str:
        """How the data is read, and what that takes."""
        return self._current().explain() + self._notes

    def __repr__(self) -> str:
        return f"<DataLoader of {self._dataset!r}: {len(self)} batches of {self._options[0]}>"


class _Iteration:
    """The rest of an epoch. Threads may share it: each batch goes to one of them."""

    __slots__ = ("__weakref__", "_core", "_is_over", "_left", "_loader", "_pending")

    def __init__(self, loader: DataLoader, core: _core.Loader) -> None:
        self._loader = loader
        self._core = core
        self._is_over = False
        self._left: deque[Batch | Exception | None] = deque()  # taken, and given to nobody yet
        self._pending: asyncio.Future[None] | None = None

    def __iter__(self) -> _Iteration:
        return self

    def __next__(self) -> Batch:
        batch = self._take(True)
        if not batch:
            raise StopIteration
        return batch

    def left(self) -> int | None:
        """The number of the first batch that was taken for a task that did not wait for it."""
        first = self._left[0] if self._left else None
        return first.index if isinstance(first, Batch) else None

    def _take(self, waits: bool) -> Batch | Literal[False] | None:
        """None: the epoch is over. False: nothing is ready, of those who do not wait."""
        with self._loader._locked():
            if not self._left:
                return self._take_new(waits)
            self._check()
            batch = self._left.popleft()
        if isinstance(batch, Exception):
            raise batch
        return batch

    def _take_new(self, waits: bool) -> Batch | Literal[False] | None:
        loader = self._loader
        with loader._locked():  # who ends the epoch goes on to the next one, which is another's
            if self._is_over:
                return None
            self._check()
            made = self._core.next(waits)
            if made is None:
                self._is_over = True
                loader._iteration, loader._epoch = None, loader._epoch + 1
                self._core.set_epoch(loader._epoch)
                return None
            return made and batch_of(loader._dataset.names, made)

    def _check(self) -> None:
        last = self._loader._iteration
        if (last is None or last() is not self) and not self._is_over:
            raise errors.BadArgument("another iteration of this loader has begun, or it went to "
                                     "another epoch: one goes on at a time", argument="iteration",
                                     expected="the last one that began", found="an earlier one")

    def __aiter__(self) -> _Iteration:
        return self

    async def __anext__(self) -> Batch:
        """One thread waits for all tasks; each batch goes to the first that asks for it then."""
        while (batch := self._take(False) if self._is_free() else False) is False:
            if self._pending is None:
                self._pending = asyncio.get_running_loop().run_in_executor(None, self._wait)
            await asyncio.shield(self._pending)  # who is cancelled loses no batch
        if not batch:
            raise StopAsyncIteration
        return batch

    def _is_free(self) -> bool:
        """Whether no thread waits, which would hold the lock."""
        pending = self._pending
        if pending is not None and (pending.done()
                                    or pending.get_loop() is not asyncio.get_running_loop()):
            self._pending = None
        return self._pending is None

    def _wait(self) -> None:
        with self._loader._locked():
            try:
                self._left.append(self._take_new(True) or None)
            except Exception as error:
                self._left.append(error)
