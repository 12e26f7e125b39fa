"""Clients that are killed at any moment, in jobs of every kind: what they held comes back, files are
whole or not there, and an honest user beside them gets what is right."""

import gc
import multiprocessing
import random
import signal
import time

import numpy as np
import pytest

import kinds
import storm

N_KILLED = round(storm.SECONDS / 60 * 10_000) if storm.IS_STORM else 60
pytestmark = pytest.mark.slow
_fork = multiprocessing.get_context("fork")


def doomed(socket, folder, seed, ready):
    """One job after the other until somebody kills it."""
    import gpuarrayd as gd
    gd.connect(socket, start=False)
    chosen = random.Random(seed)
    ready.release()
    while True:
        kind = chosen.choice(sorted(kinds.KINDS))
        kinds.KINDS[kind](gd, folder, seed)


@pytest.fixture
def gd():
    """The package, loaded before anything is forked. (A sanitizer's cannot be loaded here.)"""
    import gpuarrayd
    yield gpuarrayd
    gc.collect()
    gpuarrayd.close()


def test_clients_are_killed_in_every_kind_of_job(gd, start, folder):
    daemon = start(pool="4M")
    kinds.prepare(folder)
    before = daemon.quiet_counts()
    gd.connect(daemon.socket, start=False)
    chosen = random.Random(1)
    errors = 0
    for first in range(0, N_KILLED, 4):
        ready = _fork.Semaphore(0)
        group = [_fork.Process(target=doomed, args=(daemon.socket, folder, first + i, ready))
                 for i in range(4)]
        for process in group:
            process.start()
        for _ in group:
            assert ready.acquire(timeout=60)
        kinds.KINDS[chosen.choice(sorted(kinds.KINDS))](gd, folder, N_KILLED)
        for process in group:
            time.sleep(chosen.random() * 0.03)
            errors += not process.is_alive()
            process.kill()
        for process in group:
            process.join()
    assert errors == 0, "a client ended by itself: its result was wrong, or it was refused"
    gc.collect()
    gd.close()
    daemon.wait_for_counts(before, seconds=60)
    assert daemon.engine_info(daemon.engine_name)["restarts"] == 0
    storm.tell("killed clients", {"n": N_KILLED, "files": kinds.check_files(folder)})


def product_with_journal(socket, folder):
    import gpuarrayd as gd
    gd.connect(socket, start=False)
    a, b = gd.open(folder / "a.npy"), gd.open(folder / "b.npy")
    gd.matmul(a, b, out=gd.open(folder / "c.npy", "r+"), beta=1, journal=True)


def test_what_is_added_with_a_journal_is_added_once(gd, start, folder):
    """A client that is killed while it adds a product to a file, again and again until one ends."""
    daemon = start(pool="4M")
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-9, 9, (1000, 1100)).astype("f8") for _ in range(2))
    b = b.T.copy()
    c = rng.integers(-9, 9, (1000, 1000)).astype("f8")
    for name, value in (("a", a), ("b", b), ("c", c)):
        np.save(folder / f"{name}.npy", value)
    chosen = random.Random(2)
    n = max(3, N_KILLED // 100)
    n_killed = 0
    for _ in range(n):
        n_in_a_row = 0
        while True:
            process = _fork.Process(target=product_with_journal, args=(daemon.socket, folder))
            process.start()
            process.join(chosen.random() * 0.1 * (1 + n_in_a_row))
            if process.is_alive():
                process.kill()
                n_killed += 1
                n_in_a_row += 1
            process.join()
            if process.exitcode == 0:
                break
            assert process.exitcode == -signal.SIGKILL
    found = np.load(folder / "c.npy")
    wanted = a @ b
    assert n_killed > 0
    times = (found - c)[wanted != 0] / wanted[wanted != 0]
    assert len(np.unique(times)) == 1 and n <= times[0] <= n + n_killed
    assert not list(folder.glob("*.journal"))
    storm.tell("journals", {"products": n, "killed": n_killed})
