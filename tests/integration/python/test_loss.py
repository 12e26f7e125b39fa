"""A daemon that goes away: what can be repeated is, and everything else says so."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import conftest
import gpuarrayd
from gpuarrayd import errors

GONE = (errors.NoDaemon, errors.Disconnected)


@pytest.fixture
def gd(mortal):
    """The package, connected to a daemon that the test kills."""
    gpuarrayd.connect(mortal.socket, start=False)
    yield gpuarrayd
    gpuarrayd.close()


class InThread(threading.Thread):
    """call() in a thread; result() gives what it returned or raises what it raised."""

    def __init__(self, call):
        super().__init__(daemon=True)
        self.call, self.value, self.error = call, None, None
        self.start()

    def run(self):
        try:
            self.value = self.call()
        except BaseException as error:
            self.error = error

    def result(self, seconds=60):
        self.join(seconds)
        assert not self.is_alive(), "it hangs"
        if self.error is not None:
            raise self.error
        return self.value


class Slow:
    """An array whose elements are asked for and come when opened."""

    def __init__(self):
        self.is_read, self.is_open = threading.Event(), threading.Event()

    def __gad_source__(self, session):
        return session.from_blocks("<f8", (1000,), self._read, None)

    def _read(self, start, count, block):
        self.is_read.set()
        assert self.is_open.wait(60)
        np.frombuffer(block)[:] = np.arange(start[0], start[0] + count[0])


def submitted(daemon, n):
    """Waits until the daemon has n jobs."""
    end = time.monotonic() + 20
    while (counts := daemon.counts())["jobs_running"] + counts["jobs_queued"] < n:
        assert time.monotonic() < end
        time.sleep(0.005)


def test_between_two_calls(gd, mortal, start, folder):
    a, shared = np.arange(1000.0), gd.asarray(np.arange(1000.0))
    out = gd.empty((1000,))
    np.save(folder / "a.npy", a)
    lazy = gd.open(folder / "a.npy")
    assert gd.evaluate("sum(a)", a=shared) == 499500
    mortal.kill()
    start(args=["--socket", mortal.socket])
    assert gd.evaluate("a*2", a=shared, out=out) is out
    np.testing.assert_array_equal(out, a * 2)
    np.testing.assert_array_equal(gd.evaluate("a*2", a=a), a * 2)
    np.testing.assert_array_equal((lazy + 1).compute(), a + 1)
    assert gd.submit("sum(a)", a=shared).result(60) == 499500
    assert gd.info()["counts"]["sessions"] == 1


def test_without_a_daemon_and_when_it_is_back(gd, mortal, start):
    a = gd.asarray(np.arange(1000.0))
    assert gd.evaluate("sum(a)", a=a) == 499500
    mortal.kill()
    for call in (lambda: gd.evaluate("sum(a)", a=a), gd.info,
                 lambda: gd.submit("sum(a)", a=a).result(60),
                 lambda: gd.evaluate("a+1", a=np.ones(5)),
                 lambda: gd.evaluate("1+1", progress=True)):
        with pytest.raises(GONE):
            call()
    np.testing.assert_array_equal(a, np.arange(1000.0))
    start(args=["--socket", mortal.socket])
    assert gd.evaluate("sum(a)", a=a) == 499500 and gd.submit("sum(a)", a=a).result(60) == 499500


def test_lost_again_after_it_was_missed(gd, mortal, start):
    """A call that found no daemon does not hide the loss of the next one under a job."""
    slow = Slow()
    mortal.kill()
    with pytest.raises(GONE):
        gd.info()
    second = start_mortal(mortal)
    job = InThread(lambda: gd.evaluate("sum(b)", b=slow))
    assert slow.is_read.wait(60)
    second.kill()
    slow.is_open.set()
    start(args=["--socket", mortal.socket])
    assert job.result(60) == 499500


def test_lost_again_after_an_unknown_outcome(gd, mortal, start):
    a, slow = gd.zeros((1000,)), Slow()
    future = gd.submit("x + sum(s)", x=a, s=slow, out=a)
    assert slow.is_read.wait(60)
    mortal.kill()
    slow.is_open.set()
    with pytest.raises(errors.OutcomeUnknown):
        future.result(60)
    second, slow = start_mortal(mortal), Slow()
    future = gd.submit("sum(s)", s=slow)
    assert slow.is_read.wait(60)
    second.kill()
    slow.is_open.set()
    start(args=["--socket", mortal.socket])
    assert future.result(60) == 499500


def start_mortal(mortal):
    """Another daemon on its socket, to be killed by the test."""
    second = conftest.Daemon(args=["--socket", mortal.socket])
    second.socket = mortal.socket
    shutil.rmtree(second.dir, ignore_errors=True)
    return second


@pytest.mark.parametrize("how", ["evaluate", "info", "connect", "command"])
def test_a_call_waits_while_the_daemon_restarts(gd, mortal, start, how):
    a = gd.asarray(np.arange(1000.0))
    mortal.kill()
    if how == "connect":
        gd.close()
    call = {"evaluate": lambda: gd.evaluate("sum(a)", a=a), "info": lambda: gd.info()["pid"] and 499500,
            "connect": lambda: gd.evaluate("sum(a)", a=np.arange(1000.0)),
            "command": lambda: mortal.ctl("ping") and 499500}[how]
    thread = InThread(call)
    time.sleep(0.5)
    assert thread.is_alive()
    start(args=["--socket", mortal.socket])
    assert thread.result(60) == 499500


def test_a_question_on_the_way_is_asked_again(gd, mortal, start, folder):
    """The library asks first what the array in a new file will be like."""
    a = np.arange(1 << 16, dtype="f4")
    gd.evaluate("sqrt(a)", a=a)
    mortal.process.send_signal(signal.SIGSTOP)
    thread = InThread(lambda: gd.submit("sqrt(a)", a=a, to=folder / "root.npy").result(60))
    time.sleep(0.3)
    assert thread.is_alive()
    mortal.kill()
    start(args=["--socket", mortal.socket])
    thread.result(60)
    np.testing.assert_array_equal(np.load(folder / "root.npy"), np.sqrt(a))


def test_without_a_socket_nothing_is_waited_for(folder):
    """The best of three, against the three seconds that a restart gets."""
    seconds = []
    for _ in range(3):
        began = time.monotonic()
        with pytest.raises(errors.NoDaemon):
            gpuarrayd.connect(folder / "socket", start=False)
        seconds.append(time.monotonic() - began)
    assert min(seconds) < 1.5


@pytest.mark.parametrize("how", ["evaluate", "progress", "submit"])
def test_in_the_middle_of_a_job(gd, mortal, start, how):
    shared, slow, told = gd.asarray(np.arange(1000.0)), Slow(), []
    if how == "submit":
        job = gd.submit("a+b", a=shared, b=slow)
    else:
        job = InThread(lambda: gd.evaluate("a+b", a=shared, b=slow,
                                           progress=told.append if how == "progress" else False))
    assert slow.is_read.wait(60)
    mortal.kill()
    slow.is_open.set()
    start(args=["--socket", mortal.socket])
    np.testing.assert_array_equal(job.result(60), shared * 2)
    assert (how == "progress") == bool(told)
    assert gd.evaluate("sum(a)", a=shared) == 499500


def test_many_at_once(gd, mortal, start):
    """Futures and threads, waiting and running."""
    a, slow = gd.asarray(np.arange(1000.0)), Slow()
    futures = [gd.submit("a*k+b", a=a, b=slow, k=k) for k in range(20)]
    threads = [InThread(lambda k=k: gd.evaluate("a*k+b", a=a, b=slow, k=k)) for k in range(4)]
    submitted(mortal, 24)
    mortal.kill()
    slow.is_open.set()
    start(args=["--socket", mortal.socket])
    for jobs in (futures, threads):
        for k, job in enumerate(jobs):
            np.testing.assert_array_equal(job.result(60), np.arange(1000.0) * (k + 1))


def test_a_job_that_writes_what_it_reads_is_not_repeated(gd, mortal, start):
    """In shared memory; ordinary memory is written only when the job has ended well."""
    a, b, slow = gd.zeros((1000,)), np.zeros(1 << 20), Slow()
    shared = gd.submit("x + sum(s)", x=a, s=slow, out=a)
    heap = InThread(lambda: gd.evaluate("x + sum(s)", x=b, s=slow, out=b))
    submitted(mortal, 2)
    mortal.kill()
    slow.is_open.set()
    start(args=["--socket", mortal.socket])
    with pytest.raises(errors.OutcomeUnknown, match="writes over what it reads"):
        shared.result(60)
    assert heap.result(60) is b and (b == 499500).all()


def test_cancel_while_it_is_away(gd, mortal, start):
    slow = Slow()
    future = gd.submit("b+1", b=slow)
    assert slow.is_read.wait(60)
    mortal.kill()
    slow.is_open.set()
    assert future.cancel() and future.cancelled() and future.join(60)
    start(args=["--socket", mortal.socket])
    assert gd.evaluate("1+1") == 2


def test_close_while_it_is_away(gd, mortal, start):
    slow = Slow()
    future, thread = gd.submit("b+1", b=slow), InThread(lambda: gd.evaluate("b*2", b=slow))
    submitted(mortal, 2)
    mortal.kill()
    slow.is_open.set()
    gd.close()
    for job in (future, thread):
        with pytest.raises(errors.Error):
            job.result(60)
    start(args=["--socket", mortal.socket])
    assert gd.evaluate("1+1") == 2


def test_ctrl_c_while_it_is_away(mortal):
    script = """
        import os, signal, threading, time
        import numpy as np
        import gpuarrayd as gd
        pid = gd.info()["pid"]
        def lose():
            while gd.info()["counts"]["jobs_running"] == 0:
                time.sleep(0.005)
            os.kill(pid, signal.SIGKILL)
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=lose).start()
        try:
            gd.evaluate("sum(a)", a=np.broadcast_to(np.zeros(1), (1 << 38,)))
        except KeyboardInterrupt:
            print("left")
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], text=True,
                          timeout=60, capture_output=True,
                          env={**os.environ, "GPUARRAYD_SOCKET": mortal.socket})
    assert (done.stdout, done.stderr, done.returncode) == ("left\n", "", 0)


def test_a_worker_that_is_killed_in_the_middle(gd, mortal):
    a, slow = np.arange(1000.0), Slow()
    future = gd.submit("a+b", a=a, b=slow)
    assert slow.is_read.wait(60)
    os.kill(mortal.worker_pid(), signal.SIGKILL)
    slow.is_open.set()
    np.testing.assert_array_equal(future.result(60), a * 2)


def test_a_private_daemon_that_is_killed(folder):
    """The next call starts another."""
    if os.path.exists("/run/gpuarrayd/socket"):
        pytest.skip("a service runs on this machine")
    (folder / "run").mkdir(mode=0o700)
    script = """
        import os, signal
        import numpy as np
        import gpuarrayd as gd
        a = gd.asarray(np.arange(100.0))
        pids = set()
        for k in range(3):
            assert (gd.evaluate("a*k", a=a, k=k) == np.arange(100.0) * k).all()
            assert gd.submit("sum(a)", a=a).result(60) == 4950
            pids.add(gd.info()["pid"])
            os.kill(gd.info()["pid"], signal.SIGKILL)
        print(len(pids))
        """
    env = {**os.environ, "XDG_RUNTIME_DIR": str(folder / "run"),
           "GPUARRAYD_DAEMON": str(conftest.DAEMON)}
    env.pop("GPUARRAYD_SOCKET", None)
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], text=True, timeout=60,
                          capture_output=True, env=env)
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)
