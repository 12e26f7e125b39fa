"""Running a job and showing how far it is.

run() is what a synchronous call with progress does. A signal's exception, Ctrl-C above all, ends
the job before it goes on to the caller, so that no job writes into arrays whose call has been left.
The wait is cut into tenths of a second; between them somebody is told: a line on a terminal, a line
every ten seconds in a log, a display in a notebook, or the caller's own function.
Nothing is shown before half a second has gone, and what was shown is taken away at the end. One
job at a time has the terminal; others, in other threads, run without a line of their own.

Nothing heavy is imported; IPython is used only where it runs already.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .. import errors

if TYPE_CHECKING:
    from .._core import Array, Beyond, Destination, Job, Scalar, Session

    Output = tuple[str, str | None, Destination]
    Argument = tuple[str, Array | Scalar]

_STEP = 0.1  # seconds between two looks
_QUIET = 0.5  # seconds in which nothing is shown
_LOGGED = 10.0  # seconds between two lines of a log
_PATIENCE = 10.0  # seconds that the end of a cancelled job is waited for
_MIN_COLUMNS = 20

_terminal = threading.Lock()  # held by the one who shows something


class Progress(NamedTuple):
    """How far a job is.

    Attributes
    ----------
    fraction : float
        0 to 1: of the bytes, or of the tiles as long as the bytes are not known.
    tiles_done, tiles : int
        Parts that the job was cut into; tiles 0: not known before the end.
    read_bytes, write_bytes : int
        Moved so far.
    total_bytes : int
        Read and written at the end, as planned; 0: not known yet.
    """

    fraction: float
    tiles_done: int
    tiles: int
    read_bytes: int
    write_bytes: int
    total_bytes: int


class _Viewer(Protocol):
    def show(self, progress: Progress) -> None: ...

    def close(self, last: Progress | None) -> None:
        """last: None when the job did not end well."""


def progress_of(job: "Job") -> Progress:
    """How far `job` is, as the daemon last said; complete once it has ended well."""
    stats = job.stats if job.is_done else None
    done, tiles, read, written, total = job.progress
    if stats is not None:
        tiles, read, written = (
            int(stats[name]) for name in ("n_tiles", "read_bytes", "write_bytes"))
        return Progress(1.0, tiles, tiles, read, written, read + written)
    part, whole = (read + written, total) if total > 0 else (done, tiles)
    return Progress(min(part / whole, 1.0) if whole else 0.0, done, tiles, read, written, total)


def run(session: "Session", outputs: "Sequence[Output]", args: "Sequence[Argument]",
        engine: str | None, priority: int, label: str | None, progress: object,
        journal: str | bool = False, tf32: bool = False, beyond: "Beyond" = None) -> "Job":
    """Session.run() with progress: the job is done when this returns.

    Parameters
    ----------
    session, outputs, args, engine, priority, label, journal, tf32, beyond
        As of Session.run().
    progress : bool or callable
        True: shown on stderr, or in the notebook; where stderr is no terminal, by a line every ten
        seconds. A callable is given a Progress at most 10 times a second and at the end; what it
        raises cancels the job.

    Any other exception, as KeyboardInterrupt of Ctrl-C, first cancels the job and waits for its
    end, some seconds at most; another exception meanwhile ends that too.
    """
    viewer = _viewer(progress)
    if viewer is None:
        return session.run(outputs, args, engine, priority, label, journal, tf32, beyond)
    # extend() of starmap() is one step for Python: there is no moment in which a signal's exception
    # comes, the job runs, and nobody knows it.
    jobs: list[Job] = []
    arguments = (outputs, args, engine, priority, label, True, journal, tf32, beyond)
    try:
        jobs.extend(starmap(session.submit, (arguments,)))
        _watch(jobs[0], viewer)
    except BaseException:
        viewer.close(None)
        for job in jobs:
            if not job.is_done:
                _end(job)
        raise
    viewer.close(progress_of(jobs[0]))
    return jobs[0]


def _watch(job: "Job", viewer: "_Viewer") -> None:
    is_done = job.wait(_STEP if isinstance(viewer, _Caller) else _QUIET)
    while not is_done:
        viewer.show(progress_of(job))
        is_done = job.wait(_STEP)


def _end(job: "Job") -> None:
    """The caller leaves: what the job writes into must be at rest."""
    try:
        job.cancel()
        job.wait(_PATIENCE)
    except errors.Error:
        pass  # cancelled, or as good


def is_wanted(progress: object) -> bool:
    """Whether a job has to be submitted with progress; BadArgument for what progress cannot be."""
    if progress is None or isinstance(progress, bool):
        return bool(progress)
    if callable(progress):
        return True
    raise errors.BadArgument("progress is neither a bool nor a function of one argument",
                             argument="progress", expected="True, False or a callable",
                             found=type(progress).__name__)


def _viewer(progress: object) -> _Viewer | None:
    if not is_wanted(progress):
        return None
    if callable(progress):
        return _Caller(progress)
    is_terminal = _on_terminal()
    if not _in_notebook() and is_terminal is None or not _terminal.acquire(blocking=False):
        return None
    return _Notebook() if _in_notebook() else _Line() if is_terminal else _Log()


def _on_terminal() -> bool | None:
    """Whether stderr is one; None: it is not there."""
    try:
        return None if sys.stderr is None else sys.stderr.isatty()
    except ValueError:  # closed
        return None


def _in_notebook() -> bool:
    """Whether an IPython kernel runs this process; a shell in a terminal has no kernel."""
    module = sys.modules.get("IPython")
    get_shell = getattr(module, "get_ipython", None)
    return get_shell is not None and getattr(get_shell(), "kernel", None) is not None


class _Caller:
    """The caller's own function."""

    def __init__(self, call: Callable[[Progress], object]) -> None:
        self._call = call
        self._shown: Progress | None = None

    def show(self, progress: Progress) -> None:
        if progress != self._shown:
            self._shown = progress
            self._call(progress)

    def close(self, last: Progress | None) -> None:
        if last is not None:
            self._call(last)


class _Speed:
    """Bytes a second and the seconds that are left, since the job was begun."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def words(self, progress: Progress) -> str:
        """As '1.2/2.9 GB  3.40 GB/s  0:05 left'."""
        seconds = max(time.monotonic() - self._begun, 1e-9)
        moved = progress.read_bytes + progress.write_bytes
        whole = f"/{progress.total_bytes / 1e9:.1f}" if progress.total_bytes else ""
        words = f"{moved / 1e9:.1f}{whole} GB  {moved / 1e9 / seconds:.2f} GB/s"
        if progress.fraction > 0:
            left = round(seconds * (1 - progress.fraction) / progress.fraction)
            hours, minutes = left // 3600, left // 60 % 60
            words += f"  {hours}:{minutes:02}:{left % 60:02} left" if hours else (
                f"  {minutes}:{left % 60:02} left")
        return words


class _Line:
    """A line at the bottom of the terminal, which is empty again afterwards."""

    def __init__(self) -> None:
        self._speed = _Speed()
        self._is_shown = False

    def show(self, progress: Progress) -> None:
        self._is_shown = True
        self._write("\r" + self._text(progress) + "\x1b[K")

    def close(self, last: Progress | None) -> None:
        try:
            if self._is_shown:
                self._write("\r\x1b[K")
        finally:
            _terminal.release()

    def _text(self, progress: Progress) -> str:
        try:
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except (OSError, ValueError):
            columns = 80
        head = f"{int(progress.fraction * 100):3}% "
        tail = " " + self._speed.words(progress)
        n_cells = min(columns - 3 - len(head) - len(tail), 40)
        bar = ""
        if n_cells >= 5 and columns >= _MIN_COLUMNS:
            n_full = int(progress.fraction * n_cells)
            bar = f"[{'#' * n_full}{'.' * (n_cells - n_full)}]"
        return (head + bar + tail)[:max(columns - 1, 1)]

    @staticmethod
    def _write(text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            pass  # the terminal has gone; the job has not


class _Log(_Line):
    """Lines that stay."""

    def __init__(self) -> None:
        super().__init__()
        self._next = time.monotonic() + _LOGGED

    def show(self, progress: Progress) -> None:
        if time.monotonic() >= self._next:
            self._next += _LOGGED
            percent = int(progress.fraction * 100)
            self._write(f"gpuarrayd: {percent:3}%  {self._speed.words(progress)}\n")


class _Notebook:
    """A display below the cell, which is empty again afterwards."""

    def __init__(self) -> None:
        self._speed = _Speed()
        self._handle: Any = None

    def show(self, progress: Progress) -> None:
        percent = int(progress.fraction * 100)
        words = self._speed.words(progress)
        self._put({"text/plain": f"{percent}% {words}",
                   "text/html": f'<progress max="100" value="{percent}"></progress> '
                                f"{percent}% {words}"})

    def close(self, last: Progress | None) -> None:
        try:
            if self._handle is not None:
                self._put({"text/plain": "", "text/html": ""})
        finally:
            _terminal.release()

    def _put(self, data: dict[str, str]) -> None:
        if self._handle is None:
            display = sys.modules["IPython"].display.display
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
