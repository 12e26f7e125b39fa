"""Workers that are killed at any moment, in jobs of every kind: what can be begun again is, results are
right, nobody is called poisoned for what came from outside, and nobody hangs."""

import collections
import multiprocessing
import os
import random
import signal
import time

import pytest

import kinds
import storm

N_KILLED = round(storm.SECONDS / 60 * 1000) if storm.IS_STORM else 12
SIGNALS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGTERM)
N_CLIENTS = 4
pytestmark = pytest.mark.slow
_fork = multiprocessing.get_context("fork")


def working(socket, folder, seed, is_over, pipe):
    """Jobs of every kind until it is over, and how they ended. A wrong result is an exception."""
    import gpuarrayd as gd
    gd.connect(socket, start=False)
    chosen, outcomes = random.Random(seed), collections.Counter()
    try:
        while not is_over.is_set():
            kind = chosen.choice(sorted(kinds.KINDS))
            try:
                kinds.KINDS[kind](gd, folder, seed)
                outcomes["right"] += 1
            except gd.Error as error:
                outcomes[f"{kind}: {error.code}"] += 1
        pipe.send((True, outcomes))
    except BaseException as error:  # noqa: B902 - the test reports it
        pipe.send((False, repr(error)))


def test_workers_are_killed_in_every_kind_of_job(start, folder):
    import gpuarrayd  # noqa: F401 - loaded before the fork
    daemon = start(pool="4M")
    kinds.prepare(folder)
    before = daemon.quiet_counts()
    is_over = _fork.Event()
    clients = []
    for seed in range(N_CLIENTS):
        ours, theirs = _fork.Pipe()
        clients.append((_fork.Process(target=working,
                                      args=(daemon.socket, folder, seed, is_over, theirs)), ours))
        clients[-1][0].start()
    chosen = random.Random(4)
    for n in range(N_KILLED):
        daemon.wait_for_restarts(n, seconds=60)
        time.sleep(chosen.random() * 0.05)
        os.kill(daemon.worker_pid(), chosen.choice(SIGNALS))
    daemon.wait_for_restarts(N_KILLED, seconds=60)
    is_over.set()
    outcomes = collections.Counter()
    for process, pipe in clients:
        assert pipe.poll(120), "a client hangs"
        ok, value = pipe.recv()
        assert ok, value
        outcomes.update(value)
        process.join()
    lost = {f"{kind}: worker-lost" for kind in kinds.IS_ONCE}
    assert set(outcomes) <= {"right"} | lost, outcomes
    assert outcomes["right"] > N_KILLED
    daemon.wait_for_counts(before, seconds=60)
    kinds.check_files(folder)
    storm.tell("killed workers", {"n": N_KILLED, **outcomes})
