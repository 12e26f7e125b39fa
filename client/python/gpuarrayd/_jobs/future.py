"""Futures: jobs that run while the program does something else.

One thread of the process serves all of them. It sleeps in Session.wait_any() until a job ends or
wake() says that there is a new one, takes the results, and sets the futures. It is there only
while there is something to wait for, and a moment longer. The table of what runs holds each future
and its request, so a future that nobody holds any more goes on: its job ends, its arrays stay until
then, its callbacks are called.

    submit --> table: job -> future --> [thread: wait_any ... finish()] --> set_result, callbacks
                     ^ cancel() only asks; the entry stays until the daemon's job has ended

A lock guards the table and whether there is a thread; neither the session nor a future is ever
called with it held. After fork() the child has an empty table and no thread; the futures that it
copied raise. Loaded by submit() only, because of concurrent.futures.
"""

import atexit
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent import futures
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .. import errors
from .progress import Progress, progress_of

if TYPE_CHECKING:
    from .._core import Job, Session
    from .request import Request

T = TypeVar("T")
_LINGER = 0.2  # seconds that the thread waits for another future
_EXIT_PATIENCE = 5.0  # seconds that the end of the interpreter waits for the thread
_SHARE = 0.02  # seconds for each session, where futures of several are waited for

_NOTHING = Progress(0.0, 0, 0, 0, 0, 0)

_log = logging.getLogger("concurrent.futures")


class Future(futures.Future[T], Generic[T]):
    """The result of a job that was submitted: a concurrent.futures.Future, and awaitable.

    Made by submit(). concurrent.futures.wait() and as_completed() take it, `await` in asyncio gives
    its result, and cancelling the task that awaits it cancels the job. The job goes on when the
    future is dropped, and when Ctrl-C interrupts result(). Callbacks are called in a thread of the
    package, or at once by the thread that cancels; what they raise is logged. A future belongs to
    the process that made it: in a forked child those that were not done raise Disconnected. When
    the interpreter ends, jobs that still run are cancelled.
    """

    def __init__(self, job: "Job") -> None:
        super().__init__()
        self._job: Job | None = job  # None once it has ended: with it go the arrays
        self._last: tuple[int, Progress, dict[str, int | float | str] | None] | None = None

    def cancel(self) -> bool:
        """Cancels the job, also one that runs already.

        Returns
        -------
        bool
            False: it was done before. True: the future is cancelled at once; the daemon's job ends
            a moment later, and until join() has returned it may write into its outputs.
        """
        job = self._job
        if not super().cancel():
            return False
        self._claim()
        try:
            if job is not None:
                job.cancel()
        except errors.Error:
            pass  # without a connection there is no job either
        return True

    def _claim(self) -> bool:
        """True, once: the result may be set. False: it was cancelled, and who waits is told."""
        with self._condition:
            return self._state in ("PENDING", "CANCELLED") and self.set_running_or_notify_cancel()

    def _set(self, result: Any, error: BaseException | None) -> None:
        if not self._claim():
            return
        if error is not None:
            self.set_exception(error)
        else:
            self.set_result(result)

    def _let_go(self) -> None:
        """The job has ended: keeps what may be asked of it, and nothing else."""
        job = self._job
        if job is not None:
            self._last = (job.id, progress_of(job), job.stats)
            self._job = None

    def join(self, timeout: float | None = None) -> bool:
        """Waits until the daemon's job has ended, however it did.

        Parameters
        ----------
        timeout : float or None
            Seconds; None: as long as it takes.

        Returns
        -------
        bool
            False: the time is over.
        """
        job = self._job
        try:
            return job is None or job.wait(timeout)
        except errors.Error:
            return job is None or job.is_done or not job.session.is_open

    def running(self) -> bool:
        """Whether the daemon has the job, waiting or running: from submit() until done()."""
        return not self.done()

    def result(self, timeout: float | None = None) -> T:
        """Waits for the result: what evaluate() would have returned.

        Parameters
        ----------
        timeout : float or None
            Seconds; None: as long as it takes.

        Raises
        ------
        Error
            Why the job failed.
        TimeoutError
            The time is over; the job goes on.
        concurrent.futures.CancelledError
            It was cancelled.
        """
        _server.serve_within(self, timeout)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits for the end; what result() would raise, None if nothing.

        TimeoutError and CancelledError are raised as by result().
        """
        _server.serve_within(self, timeout)
        return super().exception(timeout)

    def __await__(self) -> Generator[Any, None, T]:
        import asyncio

        return asyncio.wrap_future(self).__await__()

    @property
    def progress(self) -> Progress:
        """How far the job is: fraction, tiles_done, tiles, read_bytes, write_bytes, total_bytes."""
        job = self._job
        return self._last[1] if self._last else progress_of(job) if job else _NOTHING

    @property
    def job(self) -> int:
        """The daemon's number of the job, as in `gpuarrayctl jobs`; 0: not known yet."""
        job = self._job
        return self._last[0] if self._last else job.id if job else 0

    @property
    def stats(self) -> dict[str, int | float | str] | None:
        """How the job went: engine, why, bytes, seconds; None before its end and if it failed."""
        return self._last[2] if self._last else None


class _Entry:
    """What the thread needs to know of a job."""

    def __init__(self, future: Future[Any], take: Callable[[], Any]) -> None:
        self.future = future
        self.take = take
        self.is_taken = False  # its future is being set


def _verdict(job: "Job") -> tuple[bool, Exception | None]:
    """Whether the job has ended, and why it failed."""
    error: Exception
    try:
        if job.wait(0.0):
            return True, None
        error = errors.Cancelled("the session was closed")
    except Exception as raised:
        error = raised.with_traceback(None)  # which would hold the job, and it the arrays
    return job.is_done or not job.session.is_open, error


class _Server:
    """The table of what runs, and the thread that serves it."""

    def __init__(self) -> None:
        # Both of C: a signal's exception in the midst of a Condition would leave it locked.
        self._lock = threading.RLock()
        self._bell = threading.Lock()  # released: something has changed
        self._table: dict[Job, _Entry] = {}
        self._thread: threading.Thread | None = None
        self._is_ending = False

    def add(self, job: "Job", entry: _Entry) -> None:
        """Raises what keeps the thread from starting; then the job is not in the table."""
        with self._lock:
            if self._is_ending:
                raise errors.Cancelled("the interpreter ends")
            try:
                self._table[job] = entry
                self._ring()
                has_thread = self._thread is not None
                if not has_thread:
                    threading.Thread(target=self._serve, name="gpuarrayd", daemon=True).start()
            except BaseException:
                self._table.pop(job, None)
                raise
        if has_thread:
            job.session.wake()

    def _serve(self) -> None:
        # The thread itself says that it is there: who starts it may meet a signal's exception.
        with self._lock:
            if self._thread is not None:
                return
            self._thread = threading.current_thread()
        while self._has_work():
            try:
                self._step(None)
            except BaseException:  # of a callback: SystemExit; the others must go on
                _log.exception("exception in a callback of a gpuarrayd future")

    def _ring(self) -> None:
        try:
            self._bell.release()
        except RuntimeError:
            pass  # it rings already

    def _has_work(self) -> bool:
        self._bell.acquire(blocking=False)
        if not self._table and not self._is_ending:
            self._bell.acquire(timeout=_LINGER)
        with self._lock:
            if self._table and not self._is_ending:
                return True
            self._thread = None
            return False

    def _step(self, timeout: float | None) -> None:
        """Waits for the end of some job, or wake(), and sets the futures of those that ended."""
        sessions = self._by_session()
        if len(sessions) > 1:
            timeout = _SHARE if timeout is None else min(timeout, _SHARE)
        for session, jobs in sessions.items():
            try:
                ended = session.wait_any(jobs, timeout) if session.is_open else jobs
            except errors.Error:
                ended = jobs  # each says for itself what has become of it
                self._pause()
            for job in ended:
                self._settle(job)

    @staticmethod
    def _pause() -> None:
        time.sleep(_SHARE)

    def _by_session(self) -> "dict[Session, list[Job]]":
        sessions: dict[Session, list[Job]] = {}
        with self._lock:
            for job, entry in self._table.items():
                if not entry.is_taken:
                    sessions.setdefault(job.session, []).append(job)
        return sessions

    def _settle(self, job: "Job") -> None:
        """Sets the future of a job that has ended; one that has not stays in the table."""
        entry = self._table.get(job)
        has_ended, error = _verdict(job)
        if entry is None or entry.is_taken or not has_ended:
            return  # taken: a callback waits for others meanwhile
        entry.is_taken = True
        result = None
        if error is None and not entry.future.cancelled():
            try:
                result = entry.take()
            except Exception as raised:
                error = raised
        try:
            entry.future._let_go()
            entry.future._set(result, error)
        finally:
            with self._lock:
                self._table.pop(job, None)
            del error, result, entry, job  # the error's traceback may hold this frame

    def serve_within(self, future: Future[Any], timeout: float | None) -> None:
        """A callback waits for a future: its own thread is the one that would set it."""
        if threading.current_thread() is not self._thread:
            return
        until = None if timeout is None else time.monotonic() + timeout
        while not future.done():
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return
            self._step(left)

    def end(self) -> None:
        """The interpreter ends: the thread too, before the session is closed."""
        with self._lock:
            self._is_ending = True
            thread = self._thread
            entries = list(self._table.items())
            self._ring()
        for job, _ in entries:
            job.session.wake()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_EXIT_PATIENCE)
        for _, entry in entries:
            entry.future._set(None, errors.Cancelled("the interpreter ends"))

    def abandon(self) -> None:
        """In a forked child. Other threads of the parent may have held the futures' locks."""
        for entry in self._table.values():
            future = entry.future
            if entry.is_taken and not future.done():
                vars(future)["_state"] = "PENDING"  # the thread was setting it
            future._condition = threading.Condition()
            future._waiters = []
            vars(future)["_done_callbacks"] = []
            future._job = None
            future._set(None, errors.Disconnected(
                f"the future is that of process {os.getppid()}, which made it before fork()"))


_server = _Server()


def _after_fork() -> None:
    global _server
    parents, _server = _server, _Server()
    parents.abandon()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: _server.end())


def start(request: "Request", pick: Callable[[list[Any]], T]) -> Future[T]:
    """Submits `request`.

    Parameters
    ----------
    request : Request
        Its arrays are held until the job has ended.
    pick : callable
        Makes what result() gives of the list of results.
    """
    if sys.is_finalizing():  # there are no threads any more, and their locks are as they left them
        raise errors.Cancelled("the interpreter ends")
    job, finish = request.start()
    future: Future[T] = Future(job)
    try:
        _server.add(job, _Entry(future, lambda: pick(finish())))
    except BaseException:  # nobody will have the future
        future.cancel()
        raise
    return future
