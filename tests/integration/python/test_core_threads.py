"""The extension `_core` between threads and processes: many threads on one session, closing under
them, signals, fork, and a daemon that goes away."""

import gc
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import conftest
from conftest import needs_forks
from core_session import connect, session  # noqa: F401
from gpuarrayd import _core, errors

N_THREADS = 8
N_JOBS = 1000


def in_threads(functions):
    """Runs them all; raises what one of them raised."""
    failures = queue.SimpleQueue()

    def guarded(function):
        try:
            function()
        except BaseException as failure:
            failures.put(failure)

    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread hangs"
    if not failures.empty():
        raise failures.get()


def number(job):
    return np.frombuffer(job.result(0)[2])[0]


class Worker:
    """A thread's jobs: its own array, waited for in different ways."""

    def __init__(self, session, seed):
        self.session, self.seed, self.random = session, seed, random.Random(seed)
        self.array = session.new("<f8", (100,), True)
        np.asarray(self.array)[:] = seed

    def submit(self, i):
        return self.session.submit([("sum(x) + i", None, None)], [("x", self.array), ("i", i)],
                                   None, 0, None, i % 3 == 0)

    def check(self, job, i):
        assert number(job) == self.seed * 100 + i

    def run(self):
        for i in range(N_JOBS // 10):
            job = self.session.run([("sum(x) + i", None, None)], [("x", self.array), ("i", i)],
                                   None, 0, None)
            self.check(job, i)

    def __call__(self):
        done = 0
        while done < N_JOBS:
            n = self.random.choice((1, 1, 2, 7))
            jobs = {self.submit(i): i for i in range(n)}
            how = self.random.randrange(4)
            if how == 0:
                for job in jobs:
                    assert job.wait(None)
            elif how == 1:
                for job in jobs:
                    while not job.wait(self.random.choice((0, 0.0001, 5.0))):
                        pass
            elif how == 2:
                left = list(jobs)
                while left:
                    ended = self.session.wait_any(left, self.random.choice((None, 0.001)))
                    left = [job for job in left if job not in ended]
            else:  # nobody looks at them again
                del jobs
                self.session.wake()
                jobs = {}
            for job, i in jobs.items():
                self.check(job, i)
            done += n
        self.run()


def test_many_threads_and_every_kind_of_waiting(session):
    in_threads([Worker(session, seed) for seed in range(N_THREADS)])


def test_one_thread_waits_for_the_jobs_of_all(session):
    """As a thread for futures does: others submit and wake it."""
    todo, answers = queue.SimpleQueue(), [queue.SimpleQueue() for _ in range(N_THREADS)]

    def wait_for_all():
        jobs, n_left = {}, N_THREADS * 200
        while n_left:
            while not todo.empty():
                job, who = todo.get()
                jobs[job] = who
            for job in session.wait_any(list(jobs), None):
                answers[jobs.pop(job)].put(number(job))
                n_left -= 1

    def submit(who):
        for i in range(200):
            todo.put((session.submit([("i + 0.0", None, None)], [("i", who * 1000 + i)], None, 0,
                                     None, False), who))
            session.wake()
        assert sorted(answers[who].get(timeout=60) for _ in range(200)) == \
            [who * 1000 + i for i in range(200)]

    in_threads([wait_for_all, *(lambda who=who: submit(who) for who in range(N_THREADS))])


def test_arrays_come_and_go_in_all_threads(session):
    """Also those that die in another thread than the one that made them, and held by views."""
    exchange = queue.SimpleQueue()

    def work(seed):
        draw = random.Random(seed)
        for i in range(300):
            n = draw.choice((1, 100, 5000))
            view = np.asarray(session.new("<f8", (n,), False))
            view[:] = seed
            out = session.from_buffer(np.empty(n), True)
            session.run([("x + i", None, out)], [("x", session.from_buffer(view, False)), ("i", i)],
                        None, 0, None)
            assert (np.asarray(out) == seed + i).all()
            exchange.put(view)
            if exchange.qsize() > 10:
                exchange.get()

    in_threads([lambda seed=seed: work(seed) for seed in range(N_THREADS)])


def test_plain_questions_meanwhile(session):
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            session.ping()
            session.plan([("sqrt(x)", None, None)], [("x", 2.0)], None)
            assert session.info_json()

    def work():
        try:
            worker = Worker(session, 1)
            for i in range(300):
                worker.check(session.run([("sum(x) + i", None, None)],
                                         [("x", worker.array), ("i", i)], None, 0, None), i)
        finally:
            stop.set()

    in_threads([ask, work, ask])


class Endless:
    """A job that ends only when it is cancelled."""

    def __init__(self):
        self.begun = threading.Event()

    def submit(self, session):
        def read(start, count, block):
            self.begun.set()
            block[:] = bytes(len(block))

        source = session.from_blocks("<f8", (1 << 14, 1 << 20), read, None)
        return session.submit([("sum(x)", None, None)], [("x", source)], None, 0, None, False)


def test_closing_under_threads_that_wait(session):
    endless = Endless()
    job = endless.submit(session)

    def wait():
        with pytest.raises(errors.Cancelled):
            job.wait(None)

    def wait_any():
        session.wait_any([job], None)
        assert job.is_done

    def close():
        endless.begun.wait()
        session.close()

    in_threads([wait, wait, wait_any, wait_any, close])


def test_closing_under_threads_that_work(daemon):
    session = connect(daemon)
    ready = threading.Barrier(N_THREADS)

    def work():
        ready.wait()
        try:
            while True:
                x = session.new("<f8", (100,), True)
                session.run([("x + 1", None, x)], [("x", x)], None, 0, None)
        except (errors.NoDaemon, errors.Cancelled):
            assert not session.is_open

    in_threads([work] * (N_THREADS - 1) + [lambda: (ready.wait(), session.ping(), session.close())])


def test_a_cancel_from_another_thread(session):
    endless = Endless()
    job = endless.submit(session)

    def wait():
        with pytest.raises(errors.Cancelled):
            job.wait(None)

    in_threads([wait, wait, lambda: (endless.begun.wait(), job.cancel())])


# Signals

SIGNALS = """
import os, signal, sys, threading, time
from gpuarrayd import _core, errors
session = _core.Session(sys.argv[1], None, False, None, 10.0)
begun, ended = threading.Event(), threading.Event()
is_waiting = False
class Stop(Exception): pass
def stop(*args):
    global is_waiting
    if is_waiting:
        is_waiting = False
        raise Stop
signal.signal(signal.SIGUSR1, stop)
def read(start, count, block):
    begun.set()
    block[:] = bytes(len(block))
source = session.from_blocks("<f8", (1 << 14, 1 << 20), read, None)
outputs, args = [("sum(x)", None, None)], [("x", source)]
def kick():
    begun.wait()
    while not ended.wait(0.01):
        os.kill(os.getpid(), signal.SIGUSR1)
kicker = threading.Thread(target=kick, daemon=True)
kicker.start()
def expect(function):
    global is_waiting
    try:
        is_waiting = True
        function()
    except Stop:
        return
    finally:
        ended.set()
        kicker.join()
    raise AssertionError("nothing was raised")
"""

WAITS = {
    "run": """
expect(lambda: session.run(outputs, args, None, 0, "endless"))
assert "endless" not in session.stats_json()
""",
    "wait": """
job = session.submit(outputs, args, None, 0, None, False)
expect(lambda: job.wait(None))
assert not job.is_done
""",
    "wait while another thread polls": """
job = session.submit(outputs, args, None, 0, None, False)
other = threading.Thread(target=lambda: session.wait_any([job], None))
other.start()
expect(lambda: job.wait(None))
assert not job.is_done
job.cancel()
other.join()
""",
    "wait_any": """
job = session.submit(outputs, args, None, 0, None, False)
expect(lambda: session.wait_any([job], None))
assert not job.is_done
""",
    "a handler that forks": """
children, turns = [], []
def fork(*args):  # another signal may come between any two lines
    try:
        turns.pop()
    except IndexError:
        return
    children.append(os.fork())
    if children[0]:
        result = os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1])
        assert result == 0, result
        raise Stop
signal.signal(signal.SIGUSR1, fork)
for wait in (lambda: job.wait(None), lambda: session.run(outputs, args, None, 0, None)):
    children.clear()
    job = session.submit(outputs, args, None, 0, None, False)
    try:
        turns.append(1)
        wait()
    except Stop:
        pass
    except errors.NoDaemon as refusal:
        os._exit(0 if children == [0] and "parent" in str(refusal) else 1)
ended.set()
job.cancel()
""",
    "handlers that raise nothing": """
seen = []
signal.signal(signal.SIGUSR1, lambda *a: (seen.append(1), job.cancel()))
job = session.submit(outputs, args, None, 0, None, False)
try:
    job.wait(None)
except errors.Cancelled:
    assert seen
ended.set()
""",
}


@pytest.mark.parametrize("how", WAITS)
def test_signals_come_through(daemon, how):
    before = daemon.quiet_counts()
    done = subprocess.run([sys.executable, "-c", SIGNALS + WAITS[how], daemon.socket],
                          capture_output=True, timeout=60, text=True)
    assert (done.stderr, done.returncode) == ("", 0)
    daemon.wait_for_counts(before)


# Processes


def ends_soon(pid, seconds=30):
    """Whether a child ends with 0; one that hangs is killed."""
    end = time.monotonic() + seconds
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def in_child(function):
    """Runs it in a child of fork(), which ends as a program does that has not failed."""
    pid = os.fork()
    if pid == 0:
        try:
            function()
            gc.collect()
            os._exit(0)
        except BaseException as failure:
            os.write(2, repr(failure).encode())
            os._exit(1)
    assert ends_soon(pid)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("forgets", [False, True])
def test_a_child_touches_nothing(session, daemon, forgets):
    kept = {"x": session.new("<f8", (100,), True), "job": Endless().submit(session),
            "blocks": session.from_blocks("<f8", (3,), print, None),
            "held": session.from_buffer(np.zeros(5), False)}
    view = np.asarray(kept["x"])
    view[:] = 3
    done = session.run([("sum(x)", None, None)], [("x", kept["x"])], None, 0, None)

    def child():
        if forgets:
            session.forget()
            session.forget()
        assert not session.is_open and session.pid == os.getppid()
        for call in (session.ping, session.close, session.wake, session.info_json,
                     lambda: session.new("<f8", (3,), True), kept["job"].cancel,
                     lambda: session.from_buffer(np.zeros(3), False),
                     lambda: kept["job"].wait(None),
                     lambda: session.wait_any([], 0), lambda: kept["x"].commit(),
                     lambda: session.run([("1", None, None)], [], None, 0, None)):
            try:
                call()
            except errors.NoDaemon as refusal:
                assert "parent" in str(refusal)
            else:
                raise AssertionError("not refused")
        assert number(done) == 300 and done.wait(None)
        kept.clear()
        assert view.sum() == 300
        own = connect(daemon)
        own.ping()
        own.close()

    in_child(child)
    session.ping()
    session.forget()  # means nothing here
    assert session.is_open
    kept["job"].cancel()
    with pytest.raises(errors.Cancelled):
        kept["job"].wait(None)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@needs_forks
def test_fork_while_others_work(session, daemon):
    """The child's copy of the lock may be held by a thread that it does not have."""
    stop = threading.Event()

    def work():
        x = session.new("<f8", (100,), True)
        while not stop.is_set():
            session.run([("x + 1", None, x)], [("x", x)], None, 0, None)

    def fork():
        try:
            for _ in range(20):
                held = [session.new("<f8", (10,), True) for _ in range(3)]

                def child():
                    held.clear()
                    session.forget()
                    own = connect(daemon)
                    own.run([("1 + 1", None, None)], [], None, 0, None)
                    own.close()

                in_child(child)
        finally:
            stop.set()

    in_threads([work, work, fork])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@needs_forks
def test_fork_while_threads_of_the_library_call_python(session):
    """Each call is a state of the interpreter that comes and goes; the interpreter's lock around
    them must not be held in the child."""
    jobs = [Endless().submit(session) for _ in range(4)]
    for _ in range(100):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        assert ends_soon(pid)
    for job in jobs:
        job.cancel()
        with pytest.raises(errors.Cancelled):
            job.wait(None)


# A daemon that goes away


def test_jobs_are_sent_again_to_the_daemon_that_comes_back(mortal):
    """Threads that wait in different ways while the daemon is another one."""
    session = connect(mortal)
    x = session.new("<f8", (100,), True)
    np.asarray(x)[:] = 2
    begun, may_go_on = threading.Event(), threading.Event()

    def read(start, count, block):
        begun.set()
        may_go_on.wait(60)
        np.frombuffer(block)[:] = 1

    source = session.from_blocks("<f8", (100,), read, None)
    jobs = [session.submit([("sum(x) + sum(y)", None, None)], [("x", x), ("y", source)], None, 0,
                           None, False) for _ in range(4)]
    waits = [lambda job=job: job.wait(None) for job in jobs[:2]]
    waits.append(lambda: [session.wait_any([job], None) for job in jobs[2:]])

    def replace():
        begun.wait()
        mortal.kill()
        os.unlink(mortal.socket)
        may_go_on.set()
        second = subprocess.Popen(
            [str(conftest.DAEMON), "--socket", mortal.socket, "--pool", "8M", "--threads", "2",
             "--worker", str(conftest.WORKER)], stdin=subprocess.DEVNULL, stdout=mortal.log,
            stderr=mortal.log)
        replaced.append(second)

    replaced = []
    in_threads([*waits, replace])
    assert [number(job) for job in jobs] == [300.0] * 4
    session.close()
    replaced[0].send_signal(signal.SIGTERM)
    assert replaced[0].wait(30) == 0


def test_a_daemon_that_does_not_come_back(mortal):
    session = connect(mortal)
    endless = Endless()
    job = endless.submit(session)
    begun = endless.begun

    def end():
        begun.wait()
        mortal.kill()
        job.cancel()

    def wait():
        with pytest.raises(errors.Cancelled):
            job.wait(None)

    in_threads([wait, wait, end])
    with pytest.raises((errors.NoDaemon, errors.Disconnected)):
        session.ping()
    assert session.is_open
    session.close()


def test_a_job_that_was_lost_while_nobody_waited(mortal):
    """Another thread polls already, for nothing, when somebody begins to wait for the job."""
    lost = connect(mortal)
    job = Endless().submit(lost)
    mortal.kill()
    polling = threading.Event()

    def poll():
        polling.set()
        assert lost.wait_any([], None) == []

    def wait():
        polling.wait()
        job.cancel()
        with pytest.raises(errors.Cancelled):
            job.wait(None)
        lost.wake()

    in_threads([poll, wait])
    lost.close()


@pytest.mark.parametrize("is_lost_first", [False, True])
def test_a_job_that_was_given_up_over_a_lost_daemon_leaves_nothing(mortal, is_lost_first):
    """It is cancelled, and its daemon never says so; or it is given up when the daemon has gone."""
    session, endless = connect(mortal), Endless()
    job, seen = endless.submit(session), weakref.ref(endless)
    assert endless.begun.wait(60)
    del endless
    mortal.process.send_signal(signal.SIGSTOP)
    if not is_lost_first:
        del job
    mortal.kill()
    for _ in range(2):
        with pytest.raises((errors.NoDaemon, errors.Disconnected)):
            session.ping()
        job = None
    end = time.monotonic() + 20
    while seen() and time.monotonic() < end:  # its last block may be on the way
        gc.collect()
        time.sleep(0.01)
    assert not seen()
    session.close()
