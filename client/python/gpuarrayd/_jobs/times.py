"""Times that jobs may take: gd.time_limits()."""

from __future__ import annotations

from types import TracebackType

from .. import _core
from ..errors import BadArgument

_MOST_S = (2**32 - 1) / 1e3


def _ms(name: str, seconds: float | None) -> int:
    """0: no limit."""
    if seconds is None:
        return 0
    if not 0.001 <= seconds <= _MOST_S:
        raise BadArgument(f"{name} is {seconds!r}", argument=name, found=repr(seconds),
                          expected="seconds, from 0.001 to 4294967, or None")
    return int(seconds * 1e3)


class time_limits:  # noqa: N801: used as a function, as np.errstate
    """Jobs that this thread begins within the block may take so long.

        with gd.time_limits(queue_timeout=30, deadline=600):
            gd.evaluate("sum(exp(x))", x=x)

    Of evaluate(), submit(), compute(), save() and what they are used for, each job by itself; what
    makes many jobs of one call, as decompositions and repeats, ends as a whole by the deadline, and
    goes on from what it has kept when it is called again.
    Blocks may stand in each other: the inner one counts alone. In coroutines nothing should be
    awaited within the block, or the jobs of others that run meanwhile have the limits too.

    Parameters
    ----------
    queue_timeout : float, optional
        Seconds in which a job must have begun; else it raises QueueTimeout.
    deadline : float, optional
        Seconds in which it must have been computed; else it is ended, wherever it is, and raises
        DeadlineExceeded. An `out` may be partly written then, a new file is not there.

    Raises
    ------
    BadArgument
        It is no such time.
    """

    def __init__(self, *, queue_timeout: float | None = None,
                 deadline: float | None = None) -> None:
        self._limits = _ms("queue_timeout", queue_timeout), _ms("deadline", deadline)
        self._before: list[tuple[int, int]] = []

    def __enter__(self) -> None:
        self._before.append(_core.set_times(*self._limits))

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        _core.set_times(*self._before.pop())
