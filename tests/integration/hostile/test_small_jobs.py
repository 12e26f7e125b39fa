"""Small jobs, which the worker's main thread computes itself: users take turns there, too."""

import time

import numpy as np
import pytest

import storm
import wire
from users import needs_users

pytestmark = needs_users

# 64 KiB of the slowest function, forty times: a quarter of a second.
SLOW = " + ".join(f"gamma(a - {k}.5e-5)" for k in range(1, 41))


def slow(path):
    with wire.Wire(path, timeout=600) as w:
        args = {"a": wire.argument(np.full(8192, -170.3))}
        for ident in [w.send("job.run", args=args, outputs=[{"expr": f"sum({SLOW})"}])
                      for _ in range(40)]:
            w.reply(ident)


def many(path):
    """Each as long as one of the main thread's may take, 100 of them at a time."""
    with wire.Wire(path, timeout=600) as w:
        args = {"a": wire.argument(np.full(400, -170.3))}
        while True:
            for ident in [w.send("job.run", args=args, outputs=[{"expr": "sum(gamma(a))"}])
                          for _ in range(100)]:
                w.reply(ident)


def attach(w, state):
    region = wire.Region(w, 1 << 16)
    w.call("region.detach", region=region.id)


@pytest.mark.parametrize("attack", [slow, many])
def test_small_jobs_of_others_take_turns(start, attack, monkeypatch):
    monkeypatch.setitem(storm.KINDS, "attach", attach)
    daemon = storm.open_to_all(start(user=storm.HONEST))
    _, attacked = storm.beside(f"small jobs: {attack.__name__}", daemon,
                               storm.Attack(attack, daemon.socket, n=8),
                               kinds=("ping", "small", "attach"))
    assert len(attacked["small"]) >= 10
    assert max(attacked["small"][-1], attacked["attach"][-1]) < storm.SOON


def test_a_small_job_that_waits_is_cancelled(start):
    daemon = start()
    with daemon.connect() as w:
        params = {"args": {"a": wire.argument(np.full(2000, -170.3))}, "outputs": [{"expr": "sum(gamma(a))"}]}
        jobs = [w.send("job.submit", **params) for _ in range(200)]
        jobs = [w.reply(ident)["job"] for ident in jobs]
        for job in jobs:
            w.call("job.cancel", job=job)
        began = time.monotonic()
        codes = set()
        for job in jobs:
            try:
                w.call("job.wait", job=job)
            except wire.Error as error:
                codes.add(error.code)
        assert codes <= {"cancelled"}
        assert time.monotonic() - began < 20
        assert w.compute("a + 1", a=np.arange(3)).tolist() == [1, 2, 3]
