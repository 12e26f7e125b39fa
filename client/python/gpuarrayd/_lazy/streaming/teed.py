"""Several jobs that read one generator: results that one pass over its rows cannot give together,
as sums along different axes, or a sum beside what reads each row several times.

    generator --> slab --> job of x.sum(axis=0)      a slab is the next one's turn when all jobs
                      \\--> job of x.sum(axis=1)      have taken over the one before

Nothing is copied or kept: the jobs go at the pace of the slowest. The generator begins when all of
them have, so one that the daemon has no room for beside the others ends all, and costs nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ... import _core, errors
from .generated import GeneratorSource, branches
from .unbounded import generators

if TYPE_CHECKING:
    from ..array import Lazy

Result = TypeVar("Result")

_PATIENCE_S = 20.0  # from the first job's begin to the last one's; the daemon has 30


class _Tee:
    """The slabs of one run of a generator, for all of its branches."""

    def __init__(self, source: GeneratorSource, n: int) -> None:
        self._source = source
        self._changed = threading.Condition()
        self._slab: Any = None
        self._end: BaseException | None = None
        self._has_begun = False
        self.branches = [_Branch(self) for _ in range(n)]
        self._live = set(self.branches)
        self._waiting: set[_Branch] = set()  # for the next slab
        threading.Thread(target=self._read, name="gpuarrayd-tee", daemon=True).start()

    def next(self, branch: _Branch) -> Any:
        until = time.monotonic() + _PATIENCE_S
        with self._changed:
            self._waiting.add(branch)
            self._changed.notify_all()
            while branch in self._waiting and self._end is None:
                left = None if self._has_begun else until - time.monotonic()
                if left is not None and left <= 0:
                    self._end = self._refusal()
                    self._changed.notify_all()
                else:
                    self._changed.wait(left)
            if branch in self._waiting:
                assert self._end is not None
                raise self._end
            return self._slab

    def end(self, why: BaseException) -> None:
        with self._changed:
            self._end = self._end or why
            self._changed.notify_all()

    def leave(self, branch: _Branch) -> None:
        with self._changed:
            self._live.discard(branch)
            self._waiting.discard(branch)
            if not self._live:
                self._end = self._end or StopIteration()
            self._changed.notify_all()

    def _refusal(self) -> errors.Busy:
        n, all_of = len(self._waiting), len(self.branches)
        return errors.Busy(
            f"{self._source.text()} is read by {all_of} jobs at a time, of which the daemon has "
            f"begun {n}: it has no room for the others beside them; compute each result by itself",
            argument=self._source.text(), expected=f"{all_of} jobs at a time", found=f"{n} of them")

    def _read(self) -> None:
        slabs: Iterator[Any] | None = None
        try:
            while self._is_next_wanted():
                if slabs is None:
                    slabs = self._source._slabs()
                slab = next(slabs)
                with self._changed:
                    self._slab = slab
                    self._waiting.clear()
                    self._changed.notify_all()
        except BaseException as raised:
            self.end(raised)
        finally:
            close = getattr(slabs, "close", None)
            if close is not None:
                close()

    def _is_next_wanted(self) -> bool:
        with self._changed:
            while self._end is None and self._waiting != self._live:
                self._changed.wait()
            self._slab = None
            self._has_begun = True
            return self._end is None


class _Branch:
    """What one job has of a tee: its iterator."""

    def __init__(self, tee: _Tee) -> None:
        self._tee = tee

    def __iter__(self) -> _Branch:
        return self

    def __next__(self) -> Any:
        return self._tee.next(self)

    def close(self) -> None:
        self._tee.leave(self)


def groups(made: Sequence[Lazy], refused: errors.BadArgument) -> list[list[int]]:
    """Which of them can be computed together, where all of them cannot: a job for each group.
    Raises what was refused where that is no help."""
    from ..results import told_of_rows
    from .streams import facts_of_rows
    found: list[list[int]] = []
    of_rows = set()
    sources = {id(source): source for one in made for source in generators(one._node)}
    for i, one in enumerate(made):
        alone = told_of_rows([one])
        if isinstance(alone, errors.BadArgument):
            facts_of_rows(one, alone)
            of_rows.add(len(found))
        else:
            together = [group for at, group in enumerate(found) if at not in of_rows and
                        isinstance(told_of_rows([*[made[k] for k in group], one]), list)]
            if together:
                together[0].append(i)
                continue
        found.append([i])
    # What takes the rows of several generators in chunks has one of them wait for the other.
    if len(found) < 2 or not sources or of_rows and len(sources) > 1:
        raise refused
    return found


def run(made: Sequence[Lazy], found: list[list[int]],
        do: Callable[[list[int]], Result]) -> list[Result]:
    """do(group) for each group, at the same time, with the generators that they share."""
    readers = [{id(source): source for i in group for source in generators(made[i]._node)}
               for group in found]
    sources = {key: source for reader in readers for key, source in reader.items()}
    tees = {key: _Tee(source, sum(key in reader for reader in readers))
            for key, source in sources.items()}
    unused = {key: list(tee.branches) for key, tee in tees.items()}
    own = [{key: unused[key].pop() for key in reader} for reader in readers]
    limits = _core.set_times(0, 0)  # a thread's own: gd.time_limits() of this one are the others'
    _core.set_times(*limits)
    results: dict[int, Result] = {}
    failures: list[BaseException] = []

    def fail(raised: BaseException) -> None:
        failures.append(raised)
        for tee in tees.values():
            tee.end(errors.Cancelled("a result that is computed beside this one has failed"))

    def work(at: int) -> None:
        try:
            _core.set_times(*limits)
            with branches.standing(dict(own[at])):
                results[at] = do(found[at])
        except BaseException as raised:
            fail(raised)
        finally:
            for branch in own[at].values():
                branch.close()

    threads = [threading.Thread(target=work, args=(at,), name="gpuarrayd-results", daemon=True)
               for at in range(len(found))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException as raised:
        fail(raised)
        raise
    if failures:
        raise failures[0]
    return [results[at] for at in range(len(found))]
