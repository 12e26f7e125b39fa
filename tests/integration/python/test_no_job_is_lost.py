"""Daemons that are stopped, upgraded and killed under jobs of one client: each of these gives the right
result, whatever it had come to by then."""

import random
import shutil
import signal
import threading
import time

import numpy as np
import pytest

import conftest
import gpuarrayd
from test_loss import Slow, submitted

WIDE = np.random.default_rng(1).normal(size=(1, 4000))
WIDE_SUM = np.exp(np.sin(WIDE) * np.cos(WIDE.T)).sum()


class Blocks:
    """An array that is asked for in blocks, which take their time; the same again whenever asked."""

    def __gad_source__(self, session):
        return session.from_blocks("<f8", (100000,), self._read, None)

    @staticmethod
    def _read(start, count, block):
        time.sleep(0.01)
        np.frombuffer(block)[:] = np.arange(start[0], start[0] + count[0])


@pytest.fixture
def mortal():
    """A daemon that the test ends; one job is active at a time, the others wait in the queue."""
    daemon = conftest.Daemon(args=["--max-active", "1", "--user-active", "1"])
    yield daemon
    daemon.kill()
    daemon.log.close()
    shutil.rmtree(daemon.dir, ignore_errors=True)


@pytest.fixture
def gd(mortal):
    """The package, connected to that daemon."""
    gpuarrayd.connect(mortal.socket, start=False)
    yield gpuarrayd
    gpuarrayd.close()


def follow(mortal, **kwargs):
    """Another daemon on the same socket, as soon as there may be one."""
    while True:
        try:
            daemon = conftest.Daemon(args=["--socket", mortal.socket], **kwargs)
        except conftest.NotStarted as error:
            assert "another daemon serves" in error.text, error.text
            time.sleep(0.02)
            continue
        daemon.socket = mortal.socket
        return daemon


def ended(future):
    """Its value; an error is none."""
    return future.result(60)


def test_what_waits_in_the_queue_of_a_daemon_that_is_stopped(gd, mortal, start, folder):
    """It ends what runs, and what it had not begun goes to the next: also what cannot be repeated."""
    gate, out = Slow(), gd.zeros((1000,))
    np.save(folder / "a.npy", np.arange(1000.0))
    running = gd.submit("sum(s)", s=gate)
    assert gate.is_read.wait(60)
    waiting = [gd.submit("sum(a) + k", a=np.arange(1000.0), k=k) for k in range(20)]
    in_place = gd.submit("x + 1", x=out, out=out)
    saved = gd.submit("a * 2", a=gd.open(folder / "a.npy"), to=folder / "r.npy")
    submitted(mortal, 23)
    mortal.process.send_signal(signal.SIGTERM)
    time.sleep(0.05)
    late = gd.submit("sum(a)", a=np.arange(10.0))
    gate.is_open.set()
    mortal.process.wait(20)
    start(args=["--socket", mortal.socket])
    assert running.result(60) == 499500 and late.result(60) == 45
    assert [ended(f) for f in waiting] == [499500 + k for k in range(20)]
    in_place.result(60)
    np.testing.assert_array_equal(out, np.ones(1000))
    np.testing.assert_array_equal(saved.result(60), np.arange(1000.0) * 2)


def test_jobs_through_daemons_that_are_killed_at_random(gd, mortal, start, folder):
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    np.save(folder / "w.npy", WIDE)
    shared = gd.asarray(np.arange(100000.0))
    lazy = gd.open(folder / "w.npy")
    futures = []
    for i in range(3):
        futures += [
            (gd.submit("sum(exp(sin(a)*cos(b)))", a=WIDE, b=WIDE.T), WIDE_SUM),
            (gd.submit("sum(b)", b=Blocks()), 100000 * 99999 / 2),
            (gd.submit("sum(s) + k", s=shared, k=i), 100000 * 99999 / 2 + i),
            (gd.submit("a + 0*sum(exp(sin(a)*cos(b)))", a=lazy, b=WIDE.T, to=folder / f"r{i}.npy"), WIDE),
            (gd.submit("b * k", b=Blocks(), k=i), np.arange(100000.0) * i)]
    daemon = mortal
    for _ in range(4):
        time.sleep(rng.random() * 0.3)
        daemon.kill()
        if daemon is not mortal:
            daemon.log.close()
            shutil.rmtree(daemon.dir, ignore_errors=True)
        daemon = follow(mortal)
    try:
        for future, value in futures:
            np.testing.assert_allclose(np.asarray(future.result(60)), value, rtol=1e-12,
                                       err_msg=f"seed {seed}")
    finally:
        gpuarrayd.close()
        daemon.stop()


def test_what_waits_at_a_daemon_that_was_drained(gd, mortal, start):
    """It is stopped, as for an upgrade, once nothing runs: the next one does what waited."""
    gate = Slow()
    running = gd.submit("sum(s)", s=gate)
    assert gate.is_read.wait(60)
    waiting = [gd.submit("sum(a) * k", a=np.arange(100.0), k=k) for k in range(5)]
    submitted(mortal, 6)
    mortal.ctl("drain", "-m", "an upgrade")
    with pytest.raises(gd.errors.Draining, match="an upgrade"):
        gd.evaluate("1 + 1")
    gate.is_open.set()
    assert mortal.ctl("drain", "--wait").stdout == "no new jobs are taken; 0 jobs run, 5 wait\n"
    assert running.result(60) == 499500 and not any(f.done() for f in waiting)
    mortal.process.send_signal(signal.SIGTERM)
    mortal.process.wait(20)
    start(args=["--socket", mortal.socket])
    assert [ended(f) for f in waiting] == [4950 * k for k in range(5)]


def test_a_thread_waits_for_what_was_refused_beside_one_that_runs(gd, mortal, start):
    gate = Slow()
    running = gd.submit("sum(s)", s=gate)
    assert gate.is_read.wait(60)
    submitted(mortal, 1)
    mortal.process.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    values = []
    thread = threading.Thread(target=lambda: values.append(gd.evaluate("sum(a)", a=np.arange(9.0))))
    thread.start()
    dropped = gd.submit("sum(a)", a=np.arange(9.0))
    thread.join(0.3)
    assert thread.is_alive() and not running.done()
    assert dropped.cancel()
    gate.is_open.set()
    assert running.result(60) == 499500
    mortal.process.wait(20)
    start(args=["--socket", mortal.socket])
    thread.join(60)
    assert values == [36]
