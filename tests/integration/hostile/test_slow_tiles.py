"""Arithmetic that takes as long as it can: others have their turns meanwhile, and it can be stopped. Of
the CPU's engine: a device has tiles of its own, and its double computes them in one go."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

import storm
import wire
from users import needs_users
from wire import described

pytestmark = needs_users

# One grain of 256 KiB, which cannot be cut, takes about two seconds on a machine of 2023.
SLOW = " + ".join(f"gamma(a - {k}.5e-5)" for k in range(1, 80))
N = 1 << 17


def slow_job(w, wait=True, n=N, expr=SLOW):
    region = wire.Region(w, 2 * n * 8)
    a = region.array("f8", (n,))
    a[:] = -170.3
    params = {"args": {"a": described(a, region.at())},
              "outputs": [{"expr": expr, "to": described(a, region.at(n * 8))}]}
    return w.call("job.run", **params) if wait else w.call("job.submit", **params)["job"]


def slow(path):
    with wire.Wire(path, timeout=600) as w:
        slow_job(w)


def test_others_have_turns_beside_slow_tiles(start):
    daemon = storm.open_to_all(start(user=storm.HONEST, engine="cpu"))
    _, attacked = storm.beside("slow tiles", daemon,
                               storm.Attack(slow, daemon.socket, n=8), kinds=("ping", "small", "middle"))
    assert len(attacked["middle"]) >= 10
    assert attacked["middle"][-1] < storm.SOON, "a grain of the other user was waited for"


def test_a_slow_tile_is_cancelled_in_the_middle(start):
    daemon = start(engine="cpu")
    with daemon.connect() as w:
        job = slow_job(w, wait=False)
        while w.call("job.status", job=job)["state"] != "running":
            time.sleep(0.01)
        time.sleep(0.1)
        began = time.monotonic()
        w.call("job.cancel", job=job)
        with pytest.raises(wire.Error) as caught:
            w.call("job.wait", job=job)
        assert caught.value.code == "cancelled"
        assert time.monotonic() - began < storm.SOON


def test_whoever_only_gets_no_processor_does_not_hang(start):
    """A grain takes many times the limit, and five others are on each processor."""
    daemon = start(args=["--hang-timeout", "0.1"], engine="cpu")
    pid = daemon.worker_pid()
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
              for _ in range(5 * len(os.sched_getaffinity(0)))]
    try:
        with daemon.connect() as w:
            slow_job(w, n=1 << 15, expr=" + ".join(SLOW.split(" + ")[:20]))
    finally:
        for process in others:
            process.kill()
            process.wait()
    assert daemon.worker_pid() == pid
