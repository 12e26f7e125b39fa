"""What stays: nothing. Descriptors, threads, memory and the daemon's counts after thousands of
calls, and arrays in shared memory that live exactly as long as somebody sees them."""

import gc
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import conftest
from gpuarrayd import errors

MIB = 1 << 20
N_CALLS = 10_000
COUNTS = conftest.COUNTS


def private_bytes(pid="self"):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) * 1024


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def n_threads():
    return len(os.listdir("/proc/self/task"))


def state(gd):
    """What must be as before."""
    counts = gd.info()["counts"]
    return {**{name: counts[name] for name in COUNTS}, "own descriptors": descriptors(),
            "own threads": n_threads()}


def settled(gd, wanted, seconds=20):
    """Closing is asynchronous, and the thread of futures lingers: waits until all is as wanted."""
    end = time.monotonic() + seconds
    while (now := state(gd)) != wanted and time.monotonic() < end:
        time.sleep(0.02)
    return now


def no_thread_of_futures(seconds=20):
    end = time.monotonic() + seconds
    while any(thread.name == "gpuarrayd" for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)


class Calls:
    """Calls of all kinds, each checked; the methods beginning with do_ are drawn by weight."""

    def __init__(self, gd, folder):
        self.gd, self.folder = gd, folder
        self.heap, self.shared = np.arange(500.0), gd.asarray(np.arange(500.0))
        self.out, self.shared_out = np.empty(500), gd.empty((500,))
        np.save(folder / "x.npy", self.heap)
        self.mapped = np.load(folder / "x.npy", mmap_mode="r")
        self.random = random.Random(5)
        calls = {self.new: 30, self.into: 30, self.number: 10, self.several: 5, self.refused: 8,
                 self.fails: 8, self.future: 4, self.opened: 2, self.saved: 1, self.arrays: 5,
                 self.mapping: 4, self.strided: 5, self.inplace: 2}
        self.calls, self.weights = list(calls), list(calls.values())

    def run(self, n):
        for call in self.random.choices(self.calls, self.weights, k=n):
            call(self.random.choice([self.heap, self.shared]))

    def new(self, a):
        assert self.gd.evaluate("a*2", a=a)[7] == 14

    def into(self, a):
        out = self.random.choice([self.out, self.shared_out])
        assert self.gd.evaluate("a*3", a=a, out=out) is out and out[7] == 21

    def number(self, a):
        assert self.gd.evaluate("sum(a)+k", a=a, k=1) == 124751

    def several(self, a):
        one, two = self.gd.evaluate(["a+1", "max(a)"], a=a)
        assert one[0] == 1 and two == 499

    def refused(self, a):
        with pytest.raises(errors.BadDtype):
            self.gd.evaluate("a", a=np.array([None]))
        with pytest.raises(errors.NotFound):
            self.gd.open(self.folder / "none.npy").sum().compute()

    def fails(self, a):
        with pytest.raises(errors.BadExpression):
            self.gd.evaluate("a +", a=a)
        with pytest.raises(errors.BadShape):
            self.gd.evaluate("a+b", a=a, b=np.ones(499))
        with pytest.raises(errors.NegativePower):
            self.gd.evaluate("a**b", a=np.array([2]), b=np.array([-1]))

    def future(self, a):
        assert self.gd.submit("a+1", a=a).result(60)[9] == 10
        self.gd.submit("a+1", a=a).cancel()

    def opened(self, a):
        assert float(self.gd.sum(self.gd.open(self.folder / "x.npy")).compute()) == 124750

    def saved(self, a):
        lazy = self.gd.evaluate("a+1", a=a, to=self.folder / "r.npy")
        assert np.asarray(lazy)[0] == 1

    def arrays(self, a):
        assert self.gd.zeros((30, 30)).sum() == 0 and self.gd.empty_like(a).shape == a.shape

    def mapping(self, a):
        assert self.gd.evaluate("a*m", a=a, m=self.mapped)[3] == 9

    def strided(self, a):
        assert self.gd.evaluate("a*2", a=a[::-3])[0] == 998

    def inplace(self, a):
        lazy = self.gd.open(self.folder / "x.npy", mode="r+")
        assert self.gd.evaluate("a", a=self.heap, out=lazy) is lazy


STAYS_AWAY = """
import os, pathlib, tempfile
import conftest
from test_loss import *

# The library waits some seconds for its daemon; then all who wait are told.
gd, daemon = gpuarrayd, conftest.Daemon()
folder = pathlib.Path(tempfile.mkdtemp(dir=daemon.dir))
gd.connect(daemon.socket, start=False)
a, slow, out = np.arange(1000.0), Slow(), gd.zeros((1000,))
jobs = [gd.submit("a+b", a=a, b=slow), gd.submit("a-b", a=a, b=slow, out=out),
        gd.submit("a-b", a=a, b=slow, to=folder / "r.npy"),
        InThread(lambda: gd.evaluate("a*b", a=a, b=slow)),
        InThread(lambda: gd.evaluate("a/b", a=a, b=slow, progress=lambda p: None))]
submitted(daemon, len(jobs))
daemon.kill()
slow.is_open.set()
for job in jobs:
    with pytest.raises(errors.OutcomeUnknown):
        job.result(60)
assert os.listdir(folder) == []
with pytest.raises(GONE):
    gd.evaluate("sum(a)", a=a)
second = conftest.Daemon(args=["--socket", daemon.socket])
assert gd.evaluate("sum(a)", a=a) == 499500
assert gd.submit("sum(a+b)", a=a, b=slow).result(60) == 999000
gd.close()
second.stop()
conftest.shutil.rmtree(daemon.dir)
print("all were told")
"""


@pytest.fixture(scope="module", autouse=True)
def stays_away():
    """A process whose daemon goes away: ten seconds of waiting, in which the tests here run."""
    here = pathlib.Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent), *filter(None, sys.path)])
    process = subprocess.Popen([sys.executable, "-c", STAYS_AWAY], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, "PYTHONPATH": path})
    yield process
    process.kill()
    process.communicate()


def test_ten_thousand_calls_leave_nothing(gd, daemon, folder):
    calls = Calls(gd, folder)
    calls.run(1000)
    gc.collect()
    no_thread_of_futures()
    before = state(gd)
    own, its = private_bytes(), private_bytes(daemon.process.pid)
    workers = private_bytes(daemon.worker_pid())
    calls.run(N_CALLS)
    gc.collect()
    assert settled(gd, before) == before
    assert private_bytes() - own < 2 * MIB
    assert private_bytes(daemon.process.pid) - its < 2 * MIB
    assert private_bytes(daemon.worker_pid()) - workers < 4 * MIB


def test_sessions_come_and_go(gd, daemon):
    gc.collect()
    no_thread_of_futures()
    gd.connect(daemon.socket, start=False, name="a")
    assert gd.evaluate("1+1") == 2
    before = state(gd)
    own = private_bytes()
    kept = []
    for k in range(300):
        gd.connect(daemon.socket, start=False, name=f"n{k % 2}")
        a = gd.asarray(np.arange(100.0))
        assert gd.evaluate("sum(a)", a=a) == 4950
        if k % 100 == 0:
            kept.append(a)
    for a in kept:
        assert gd.evaluate("sum(a)", a=a) == 4950, "of another session: ordinary memory"
    del kept, a
    gd.close()
    gc.collect()
    assert gd.evaluate("1+1") == 2
    now = settled(gd, before)
    assert {**now, "regions": 0, "region_bytes": 0} == {**before, "regions": 0, "region_bytes": 0}
    assert now["regions"] <= before["regions"] + 1 and private_bytes() - own < 2 * MIB


@pytest.mark.parametrize("view", [
    lambda a: a, lambda a: a[10:20], lambda a: a[10:].reshape(2, -1)[1:][:, ::2].T,
    lambda a: a.view("i8"), lambda a: memoryview(a), lambda a: np.frombuffer(a, "u1")[100:],
    lambda a: np.asarray(memoryview(a)),
    lambda a: a.ravel()[:1].view(np.ndarray), lambda a: np.broadcast_to(a, (2, *a.shape)),
    lambda a: np.lib.stride_tricks.as_strided(a, (3,), (8,)), lambda a: iter(a), lambda a: a.flat,
    lambda a: a.ctypes, lambda a: memoryview(memoryview(a)[5:])], ids=range(14))
def test_memory_lives_until_its_last_view(gd, view):
    n = 9 * MIB  # elements: a region of its own
    array = gd.empty((n,))
    place = array.ctypes.data
    seen = view(array)
    del array
    gc.collect()
    other = gd.empty((n,))
    assert other.ctypes.data != place
    del seen
    gc.collect()
    again = gd.empty((n,))
    assert again.ctypes.data == place


def test_a_view_keeps_what_it_shows(gd):
    views = []
    for k in range(50):
        a = gd.evaluate("a*0+k", a=np.zeros(5000), k=k)
        views.append((k, a[k:k + 3]))
        del a
    gc.collect()
    assert all((view == k).all() for k, view in views)
    bases = [gd.empty((5000,)) for _ in range(20)]
    for base in bases:
        base[:] = -1
    assert all((view == k).all() for k, view in views)


def test_a_job_keeps_its_arrays(gd):
    """The arguments' last reference is the future's."""
    futures = [gd.submit("sum(a)", a=gd.asarray(np.full(20000, float(k)))) for k in range(50)]
    gc.collect()
    garbage = [gd.asarray(np.full(20000, -1.0)) for _ in range(10)]
    assert [f.result(60) for f in futures] == [20000.0 * k for k in range(50)] and garbage


def test_arrays_outlive_their_session_and_the_daemon_s_memory_does_not(gd, daemon):
    a = gd.asarray(np.arange(1000.0))
    gd.close()
    gc.collect()
    np.testing.assert_array_equal(a, np.arange(1000.0))
    a += 1
    assert gd.evaluate("min(a)", a=a) == 1
    out = gd.evaluate("a*2", a=a, out=a)
    assert out is a and a[0] == 2


def test_a_loop_of_large_results_does_not_grow(gd, daemon):
    a = gd.zeros((100 * MIB // 8,))
    result = None

    def shared():
        status = pathlib.Path("/proc/self/status").read_text()
        return int(status.split("RssShmem:")[1].split()[0]) * 1024

    for k in range(4):
        result = gd.evaluate("a+k", a=a, k=k)
    no_thread_of_futures()  # of the tests before
    before = state(gd)
    own, in_memory = private_bytes(), shared()
    for k in range(12):
        result = gd.evaluate("a+k", a=a, k=k)
    assert result[-1] == 11
    assert state(gd) == before
    assert private_bytes() - own < MIB and shared() - in_memory < MIB
    assert before["region_bytes"] < 512 * MIB
    del a, result


def test_threads_come_and_go(gd):
    """A thread that used the package leaves nothing."""
    a = np.arange(100.0)

    def work(k):
        assert gd.evaluate("sum(a)*k", a=a, k=k) == 4950 * k
        assert gd.submit("sum(a)*k", a=a, k=k).result(60) == 4950 * k

    def crowd():
        threads = [threading.Thread(target=work, args=[k]) for k in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    crowd()
    no_thread_of_futures()
    before = state(gd)
    for _ in range(30):
        crowd()
    assert settled(gd, before) == before


def test_a_daemon_that_stays_away(stays_away):
    assert stays_away.communicate(timeout=60) == ("all were told\n", "")
