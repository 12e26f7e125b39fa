"""Ctrl-C and other exceptions of signal handlers, while jobs run."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from gpuarrayd import errors
from gpuarrayd._jobs import progress as _progress

HEAD = """
import os, pathlib, signal, threading, time
import numpy as np
import gpuarrayd as gd

# Read for minutes, though it is one element: a job of it ends when it is cancelled.
ENDLESS = np.broadcast_to(np.zeros(1), (1 << 38,))

class Gate:
    "An array whose elements come when it is opened."
    def __init__(self):
        self.is_open = threading.Event()
    def __gad_source__(self, session):
        return session.from_blocks("<f8", (10,), self.read, None)
    def read(self, start, count, block):
        assert self.is_open.wait(60)
        np.frombuffer(block)[:] = 1

def running():
    return gd.info()["counts"]["jobs_running"]

def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)

def soon(number=signal.SIGINT, n_running=1):
    "Sends this process a signal as soon as jobs run."
    def send():
        until(lambda: running() == n_running)
        os.kill(os.getpid(), number)
    thread = threading.Thread(target=send)
    thread.start()
    return thread
"""


def start(script, daemon, **kwargs):
    return subprocess.Popen([sys.executable, "-c", HEAD + textwrap.dedent(script)], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket}, **kwargs)


def run(script, daemon, **kwargs):
    process = start(script, daemon, **kwargs)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return out, err, process.returncode


HOW = ["progress=False", "progress=True", "progress=lambda p: None"]


@pytest.mark.parametrize("how", HOW)
def test_ctrl_c_cancels_the_job_and_comes_through(gd, daemon, how):
    assert run(f"""
        out = gd.empty((1000,))
        soon()
        try:
            gd.evaluate("b + sum(a)", a=ENDLESS, b=gd.zeros((1000,)), out=out, {how})
        except KeyboardInterrupt:
            print("left", running(), gd.evaluate("1+1"))
        """, daemon) == ("left 0 2\n", "", 0)


@pytest.mark.parametrize("how", HOW[::2])
def test_nothing_is_written_afterwards(gd, daemon, how):
    assert run(f"""
        class Sink:
            n_blocks = 0
            def __gad_sink__(self, session):
                return session.from_blocks("<f8", ENDLESS.shape, None, self.write)
            def write(self, start, count, block):
                self.n_blocks += 1
        sink = Sink()
        def send():
            until(lambda: sink.n_blocks > 2)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=send).start()
        try:
            gd.evaluate("a + 1", a=ENDLESS, out=sink, {how})
        except KeyboardInterrupt:
            n_blocks = sink.n_blocks
            print(running(), gd.evaluate("1+1"), sink.n_blocks == n_blocks)
        """, daemon) == ("0 2 True\n", "", 0)


def test_a_file_that_was_being_made_is_not_there(gd, daemon, folder):
    assert run("""
        soon()
        try:
            gd.evaluate("b + sum(a)", a=ENDLESS, b=np.zeros(1000), to="r.npy")
        except KeyboardInterrupt:
            print(os.listdir("."), gd.evaluate("1+1"))
        """, daemon, cwd=folder) == ("[] 2\n", "", 0)


@pytest.mark.parametrize("how", HOW[::2])
def test_other_exceptions_of_handlers_too(gd, daemon, how):
    assert run(f"""
        class Late(Exception): pass
        def handler(number, frame): raise Late
        signal.signal(signal.SIGALRM, handler)
        soon(signal.SIGALRM)
        try:
            gd.evaluate("sum(a)", a=ENDLESS, {how})
        except Late as late:
            print(running(), late.__context__)
        """, daemon) == ("0 None\n", "", 0)


@pytest.mark.parametrize("how", HOW[::2])
def test_a_handler_that_raises_nothing_disturbs_nothing(gd, daemon, how):
    assert run(f"""
        seen, gate = [], Gate()
        def handler(number, frame):
            seen.append(number)
            gate.is_open.set()
        signal.signal(signal.SIGUSR1, handler)
        soon(signal.SIGUSR1)
        print(gd.evaluate("sum(a)", a=gate, {how}), len(seen))
        """, daemon) == ("10.0 1\n", "", 0)


def test_without_python_s_handler_the_process_ends(gd, daemon):
    out, err, code = run("""
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        soon()
        gd.evaluate("sum(a)", a=ENDLESS)
        """, daemon)
    assert (out, code) == ("", -signal.SIGINT)


def test_the_process_ends_of_a_ctrl_c_that_nobody_catches(gd, daemon):
    out, err, code = run("""
        soon()
        gd.evaluate("sum(a)", a=ENDLESS)
        """, daemon)
    assert out == "" and err.endswith("KeyboardInterrupt\n") and code == -signal.SIGINT


def test_jobs_of_other_threads_go_on(gd, daemon):
    assert run("""
        b, wrong, stop = np.arange(1000.0), [], threading.Event()
        n_done = [0] * 4
        def work(k):
            while not stop.is_set():
                if not (gd.evaluate("b*k", b=b, k=k) == b * k).all():
                    wrong.append(k)
                if not (gd.submit("b+k", b=b, k=k).result() == b + k).all():
                    wrong.append(k)
                n_done[k] += 1
        threads = [threading.Thread(target=work, args=[k]) for k in range(4)]
        for t in threads: t.start()
        for how in (False, True, lambda p: None):
            timer = threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT])
            timer.start()
            try:
                gd.evaluate("sum(a)", a=ENDLESS, progress=how)
                print("not interrupted")
            except KeyboardInterrupt:
                pass
        before = list(n_done)
        until(lambda: all(n > m for n, m in zip(n_done, before)))
        stop.set()
        for t in threads: t.join()
        print(wrong, running())
        """, daemon) == ("[] 0\n", "", 0)


def test_ctrl_c_is_the_main_thread_s(gd, daemon):
    """A job in another thread knows nothing of it."""
    assert run("""
        results, gate = [], Gate()
        thread = threading.Thread(target=lambda: results.append(gd.evaluate("sum(a)", a=gate)))
        try:
            soon()
            thread.start()
            threading.Event().wait(60)
            print("not interrupted")
        except KeyboardInterrupt:
            gate.is_open.set()
        thread.join()
        print(results[0])
        """, daemon) == ("10.0\n", "", 0)


def test_a_future_s_job_goes_on(gd, daemon):
    assert run("""
        gate = Gate()
        future = gd.submit("sum(a)", a=gate)
        soon()
        try:
            future.result()
            print("not interrupted")
        except KeyboardInterrupt:
            print(future.running())
            gate.is_open.set()
            print(future.result())
        """, daemon) == ("True\n10.0\n", "", 0)


@pytest.mark.parametrize("how", HOW)
def test_a_second_ctrl_c_does_not_wait_for_a_daemon_that_says_nothing(gd, daemon, how):
    process = start(f"""
        def ready():
            until(lambda: running() == 1)
            print("runs", flush=True)
        threading.Thread(target=ready).start()
        try:
            gd.evaluate("sum(a)", a=ENDLESS, {how})
        finally:
            print("left", flush=True)
        """, daemon)
    try:
        assert process.stdout.readline() == "runs\n"
        os.kill(daemon.process.pid, signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        left = threading.Event()
        repeat = threading.Thread(target=lambda: [
            process.send_signal(signal.SIGINT) for _ in iter(lambda: left.wait(0.3), True)])
        repeat.start()
        assert process.stdout.readline() == "left\n"
        left.set()
        repeat.join()
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)
        _, err = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in err and process.returncode != 0


class Stubborn:
    """A session and its job that are played: waiting is interrupted `n` times."""

    is_done = False

    def __init__(self, n):
        self.n, self.asked, self.waits = n, 0, []

    def submit(self, *request):
        return self

    def wait(self, timeout):
        self.waits.append(timeout)
        if self.n:
            self.n -= 1
            raise KeyboardInterrupt(self.n)
        self.is_done = True
        raise errors.Cancelled("cancelled")

    def cancel(self):
        self.asked += 1


def test_the_end_is_waited_for_some_seconds_at_most():
    job = Stubborn(1)
    with pytest.raises(KeyboardInterrupt):
        _progress.run(job, [], [], None, 0, None, print)
    assert job.asked == 1 and job.is_done and len(job.waits) == 2 and 0 < job.waits[1] < 60


def test_the_second_interrupt_is_the_one_that_is_raised():
    job = Stubborn(2)
    with pytest.raises(KeyboardInterrupt) as caught:
        _progress.run(job, [], [], None, 0, None, print)
    assert caught.value.args == (0,) and caught.value.__context__.args == (1,)
    assert not job.is_done
