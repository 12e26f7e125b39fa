"""Allocations of the broker that fail, each in its turn: whatever a client asks for, it is answered with
`no-memory`, or its own connection closes, or it never knows. Nobody else sees anything of it, and
nothing is left behind. And those of a worker: the job whose it is fails, the worker goes on."""

import functools
import itertools
import mmap
import os
import pathlib
import signal
import struct
import time

import numpy as np
import pytest

import conftest
import scans
import wire
from conftest import pauses
from test_provider import Ring
from wire import Closed, Error, Region, described

SHIM = conftest.BUILD / "tests/integration/failing-malloc.so"
KEYS = itertools.count()
SMALL = {"outputs": [{"expr": "a+1"}], "args": {"a": wire.argument(np.arange(5.0))}}
LONG = "+".join(f"a*{i}" for i in range(200))  # planned by the planner's thread


class Orders:
    """What the daemon's allocator is told, and what it tells (failing_malloc.c)."""

    def __init__(self, path):
        with open(path, "w+b") as file:
            file.truncate(4096)
            self.map = mmap.mmap(file.fileno(), 4096)

    def _get(self, place):
        return struct.unpack_from("<Q", self.map, 8 * place)[0]

    def _set(self, place, value):
        struct.pack_into("<Q", self.map, 8 * place, value)

    n_failed = property(lambda self: self._get(1))
    n_live = property(lambda self: self._get(2))

    def fail(self, nth, n):
        """The nth call from now on fails, and those behind it, n together."""
        first = self._get(0) + nth
        self._set(3, first)
        self._set(4, first + n)

    def be_well(self):
        self._set(4, 0)


def started(folder, is_worker):
    """A daemon whose broker, or whose worker, has an allocator that is told what to do."""
    orders, worker = Orders(folder / "orders"), folder / "worker"
    env = {"GPUARRAYD_TEST_ORDERS": str(folder / "orders"),
           "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
    preload = f"LD_PRELOAD={SHIM}"
    worker.write_text(f'#!/bin/sh\nexec env {preload if is_worker else ""} {conftest.WORKER} "$@"\n')
    worker.chmod(0o755)
    daemon = conftest.Daemon(
        args=["--keep-jobs", "1", "--max-active", "64", "--user-active", "64"], engine="cpu",
        worker=worker, env=env if is_worker else {**env, "LD_PRELOAD": str(SHIM)})
    daemon.orders = orders
    return daemon


@pytest.fixture(scope="module")
def starved(tmp_path_factory):
    daemon = started(tmp_path_factory.mktemp("broker"), is_worker=False)
    yield daemon
    daemon.orders.be_well()
    daemon.stop()


@pytest.fixture(scope="module")
def starved_worker(tmp_path_factory):
    daemon = started(tmp_path_factory.mktemp("worker"), is_worker=True)
    yield daemon
    daemon.orders.be_well()
    daemon.stop()


def waiting_job(w):
    """A job whose client never serves it, and its ring."""
    ring = Ring(np.zeros(200_000), serve=lambda *_: None)
    try:
        return ring, w.call("job.submit", fds=ring.fds(), outputs=[{"expr": "sum(a)"}],
                            args={"a": described(ring.array, ring.at())})["job"]
    except BaseException:
        ring.close()
        raise


def refused_with(code, w, *args, **params):
    """The request fails, by that code or for want of memory."""
    with pytest.raises(Error) as caught:
        w.reply(*args) if args else w.call(**params)
    if caught.value.code != code:
        raise caught.value


def plan(w):
    w.call("job.plan", outputs=[{"expr": "sum(a, axis=0)"}], args=SMALL["args"])


def plan_aside(w):
    w.call("job.plan", outputs=[{"expr": LONG}], args=SMALL["args"])


def run(w):
    np.testing.assert_array_equal(w.compute("a*2+k", a=np.arange(100.0), k=3),
                                  np.arange(100.0) * 2 + 3)


def run_large(w):
    a = np.arange(8000.0)
    np.testing.assert_array_equal(w.compute("a*2", a=a), a * 2)


def run_aside(w):
    w.call("job.run", outputs=[{"expr": LONG}], args=SMALL["args"])


def region(w):
    part = Region(w, 1 << 20)
    try:
        a = part.array("f8", (1000,))
        a[...] = 2
        w.run("a+1", to=described(a, part.at()), a=described(a, part.at()))
        assert (a == 3).all()
        w.call("region.detach", region=part.id)
    finally:
        os.close(part.fd)


def file(w):
    a = np.arange(30_000.0)
    fd = os.memfd_create("tests", os.MFD_CLOEXEC)
    try:
        os.write(fd, a.tobytes())
        out = w.run("sum(a)", fds=[fd], a=described(a, wire.file_at(0)))["outputs"][0]
        assert wire.result_array(out)[()] == a.sum()
    finally:
        os.close(fd)


def ring(w):
    a = np.arange(100_000.0)
    source = Ring(a)
    try:
        result = w.run("sum(a)", fds=source.fds(), a=described(a, source.at()))
        assert wire.result_array(result["outputs"][0])[()] == a.sum()
    finally:
        source.close()


def product(w):
    a = np.arange(5000.0).reshape(50, 100)
    np.testing.assert_array_equal(w.compute("a @ b", a=a, b=np.ones((100, 3))),
                                  np.repeat(a.sum(axis=1)[:, None], 3, axis=1))


def passes(w):
    a = np.arange(5000.0).reshape(50, 100)
    np.testing.assert_array_equal(w.compute("cumsum(a - max(a), axis=0)", a=a), np.cumsum(a - 4999, axis=0))


def submitted(w):
    key = f"key {next(KEYS)}"
    job = w.call("job.submit", **SMALL, key=key, label="a label", settle=True, deadline_ms=60_000,
                 queue_timeout_ms=60_000)["job"]
    assert w.call("job.submit", **SMALL, key=key)["job"] == job
    w.call("job.wait", job=job, timeout_ms=60_000)
    w.call("job.status", job=job)
    w.call("job.list")
    w.call("job.trace", job=job)
    w.call("job.settle", job=job)
    w.call("job.wait", job=job)


def cancelled(w):
    source, job = waiting_job(w)
    try:
        w.call("job.pause", job=job)
        w.call("job.resume", job=job)
        waits = w.send("job.wait", job=job)
        w.call("job.cancel", job=job)
        refused_with("cancelled", w, waits)
    finally:
        source.close()


def timed_out(w):
    source, job = waiting_job(w)
    try:
        refused_with("timeout", w, method="job.wait", job=job, timeout_ms=1)
    finally:
        source.close()


def deserted(w):
    source, job = waiting_job(w)
    w.send("job.submit", **SMALL)
    source.close()


def numbers(w):
    for method in ("info", "stats", "users", "ops", "samples"):
        w.call("server." + method)


def admin(w):
    w.call("server.weight", user=12345, weight=3)
    w.call("server.weight", user=12345, weight=0)
    w.call("server.drain", message="for a moment")
    w.call("server.drain", undo=True)


def refused(w):
    refused_with("unknown-name", w, method="job.run", outputs=[{"expr": "a+1"}], args={})
    refused_with("unknown-method", w, method="no.such")


@functools.cache
def source():
    return scans.Source(pathlib.Path(conftest.RUNTIME) / "packed", n_chunks=8)


def scan(w):
    with scans.Reader(w, source()) as reader:
        reader.check_circle()
        reader.ack()


KINDS = [plan, plan_aside, run, run_large, run_aside, region, file, ring, submitted, cancelled, timed_out,
         deserted, numbers, admin, refused, scan]
OF_WORKERS = [run, run_large, run_aside, product, passes, region, file, ring, cancelled, numbers]
GONE = (Closed, BrokenPipeError, ConnectionResetError, scans.Refused, EOFError)


def attempt(daemon, kind, nth, n):
    """Whether a failure was reached. What the client sees of it is `no-memory` or the end of its
    connection; it never waits in vain (that is the socket's time-out, which fails the test)."""
    n_failed = daemon.orders.n_failed
    daemon.orders.fail(nth, n)
    try:
        with daemon.connect(timeout=20) as w:
            kind(w)
    except (*GONE, Error) as error:
        if isinstance(error, Error):
            assert error.code == "no-memory", (kind.__name__, nth, error)
    finally:
        daemon.orders.be_well()
    return daemon.orders.n_failed > n_failed


def fill_records(w):
    """As many as are kept of jobs whose outcome nobody asks for, of the kind that takes most blocks."""
    jobs = [w.call("job.submit", **SMALL)["job"] for _ in range(17)]
    w.call("job.wait", job=jobs[-1])


def settled(daemon, bystander):
    """Blocks that the daemon has once it has nothing to do any more."""
    last = None
    for _ in pauses():
        bystander.call("ping")
        now = daemon.orders.n_live
        if now == last and bystander.call("server.info")["counts"]["jobs_running"] == 0:
            return now
        last = now


def wait_until_at_most(daemon, bystander, most):
    end = time.monotonic() + 10
    while (n := settled(daemon, bystander)) > most:
        assert time.monotonic() < end, (n, most)
    return n


def fail_each(daemon, kind, n):
    with daemon.connect() as bystander:
        for _ in range(3):
            attempt(daemon, kind, 1 << 40, 1)
        fill_records(bystander)
        before = settled(daemon, bystander)
        pid = daemon.engine_info("cpu")["pid"]
        nth = 0
        while attempt(daemon, kind, nth, n):
            bystander.call("ping")
            nth += 1
        assert nth >= 5
        attempt(daemon, kind, 1 << 40, 1)
        wait_until_at_most(daemon, bystander, before)
        assert daemon.engine_info("cpu")["pid"] == pid


@pytest.mark.parametrize("n", [1, 6], ids=["one", "six"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_allocation_fails(starved, kind, n):
    fail_each(starved, kind, n)


@pytest.mark.parametrize("n", [1, 6], ids=["one", "six"])
@pytest.mark.parametrize("kind", OF_WORKERS, ids=lambda kind: kind.__name__)
def test_each_allocation_of_the_worker_fails(starved_worker, kind, n):
    fail_each(starved_worker, kind, n)


def test_a_worker_waits_for_memory(starved_worker):
    """However long there is none: in it are everybody's jobs."""
    pid = starved_worker.worker_pid()
    with starved_worker.connect(timeout=20) as w:
        starved_worker.orders.fail(0, 1 << 40)
        ident = w.send("job.run", **SMALL)
        time.sleep(1.5)  # it gave up after a second
        starved_worker.orders.be_well()
        assert "outputs" in w.reply(ident)
    assert starved_worker.worker_pid() == pid


def children_of(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_a_worker_is_replaced_all_the_same(starved):
    """One that dies while there is no memory to start another one, or to say what it left."""
    with starved.connect() as w:
        for nth in range(0, 40, 7):
            before = starved.engine_info("cpu")
            ring, job = waiting_job(w)
            starved.orders.fail(nth, 4)
            os.kill(before["pid"], signal.SIGKILL)
            time.sleep(0.02)
            starved.orders.be_well()
            starved.wait_for_restarts(before["restarts"] + 1)
            w.call("job.cancel", job=job)
            with pytest.raises(Error):
                w.call("job.wait", job=job)
            ring.close()
            run(w)
    assert "Z" not in [state_of(pid) for pid in children_of(starved.process.pid)]


def test_settings_are_read_again_or_not(starved):
    with starved.connect() as w:
        for nth in range(0, 24, 2):
            starved.orders.fail(nth, 4)
            starved.process.send_signal(signal.SIGHUP)
            time.sleep(0.005)
            starved.orders.be_well()
            run(w)
