"""Writes to a disk that does not answer, on all threads that compute, or reads from it: others go on,
whatever becomes of who writes. Everything that the scheduler does for it is in test_slow_writes.c."""

import mmap
import multiprocessing
import os
import signal
import struct

import numpy as np
import pytest

import conftest
import wire
from conftest import pauses
from wire import described

SHIM = conftest.BUILD / "tests/integration/held-writes.so"
N = 1 << 20  # float32: several tiles
_fork = multiprocessing.get_context("fork")


class Held:
    """A file, and whether writes to it wait (held_writes.c)."""

    def __init__(self, folder):
        with open(folder / "orders", "w+b") as file:
            file.truncate(4096)
            self.map = mmap.mmap(file.fileno(), 4096)
        self.path = folder / "written.raw"
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        os.posix_fallocate(self.fd, 0, N * 4)

    def hold(self):
        status = os.fstat(self.fd)
        struct.pack_into("<QQQ", self.map, 0, status.st_dev, status.st_ino, 0)

    def wait_for(self, n):
        pause = pauses()
        while struct.unpack_from("<Q", self.map, 16)[0] < n:
            next(pause)

    def let_go(self):
        struct.pack_into("<Q", self.map, 8, 0)


@pytest.fixture
def held(folder):
    held = Held(folder)
    yield held
    held.let_go()
    os.close(held.fd)


@pytest.fixture
def daemon(start, folder, held):
    worker = folder / "worker"
    worker.write_text(f'#!/bin/sh\nexec env LD_PRELOAD={SHIM} {conftest.WORKER} "$@"\n')
    worker.chmod(0o755)
    held.hold()
    return start(engine="cpu", worker=worker, pool="16M", env={
        "GPUARRAYD_TEST_ORDERS": str(folder / "orders"),
        "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"})


def submit(w, held):
    """A job that writes to the file, and what keeps its argument."""
    region = wire.Region(w, N * 4)
    a = region.array("f4", (N,))
    a[:] = np.arange(N) % 1013
    job = w.call("job.submit", fds=[held.fd], args={"a": described(a, region.at())}, outputs=[
        {"expr": "a * 2", "to": {"dtype": "<f4", "shape": [N], "at": wire.file_at(0)}}])["job"]
    held.wait_for(2)
    return region, job


def go_on(w):
    """Not a job for the main thread, and none that writes."""
    region = wire.Region(w, 1 << 20)
    a = region.array("f4", (1 << 17,))
    a[:] = 1
    w.run("a * 2", to=described(a, region.at(1 << 19)), a=described(a, region.at()))
    assert region.array("f4", (1,), 1 << 19)[0] == 2
    w.call("region.detach", region=region.id)
    os.close(region.fd)


def check(held):
    np.testing.assert_array_equal(np.fromfile(held.path, "<f4"), np.arange(N) % 1013 * 2)


def test_a_drain_ends_with_the_write(daemon, held):
    with daemon.connect() as w:
        region, job = submit(w, held)
        go_on(w)
        assert w.call("server.drain") == {"running": 1, "queued": 0}
        held.let_go()
        daemon.ctl("drain", "--wait")
        assert "outputs" in w.call("job.wait", job=job)
        check(held)
        os.close(region.fd)


def write_for_ever(path, held):
    with wire.Wire(path) as w:
        w.call("job.wait", job=submit(w, held)[1])


def test_who_writes_is_killed(daemon, held):
    before = daemon.quiet_counts()
    writer = _fork.Process(target=write_for_ever, args=(daemon.socket, held), daemon=True)
    writer.start()
    held.wait_for(2)
    writer.kill()
    writer.join()
    with daemon.connect() as w:
        go_on(w)
    held.let_go()
    daemon.wait_for_counts(before)


def test_the_worker_is_killed(daemon, held):
    with daemon.connect() as w:
        region, job = submit(w, held)
        os.kill(daemon.worker_pid(), signal.SIGKILL)
        daemon.wait_for_restarts(1)
        go_on(w)
        held.let_go()
        assert "outputs" in w.call("job.wait", job=job)
        check(held)
        os.close(region.fd)


def read(w, file):
    fd = os.open(file, os.O_RDONLY)
    job = w.call("job.submit", fds=[fd], outputs=[{"expr": "sum(a)"}], args={
        "a": {"dtype": "<f4", "shape": [N], "at": wire.file_at(0)}})["job"]
    os.close(fd)
    return job


def test_who_reads_is_killed(daemon, held):
    np.ones(N, "<f4").tofile(held.path)
    before = daemon.quiet_counts()

    def read_for_ever():
        with wire.Wire(daemon.socket) as w:
            w.call("job.wait", job=read(w, held.path))

    reader = _fork.Process(target=read_for_ever, daemon=True)
    reader.start()
    held.wait_for(2)
    reader.kill()
    reader.join()
    with daemon.connect() as w:
        go_on(w)
    held.let_go()
    daemon.wait_for_counts(before)
