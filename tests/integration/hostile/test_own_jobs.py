"""Jobs of one user beside each other: small ones go first, and large ones go on all the same."""

import numpy as np

import storm
import wire
from users import as_user, needs_users
from wire import described

pytestmark = needs_users
WIDE = np.random.default_rng(1).normal(size=(1, 1000))


def small_ones(path):
    """Jobs that move some KiB and compute for long, always more than one."""
    with wire.Wire(path, timeout=600) as w:
        args = {"a": wire.argument(WIDE), "b": wire.argument(WIDE.T.copy())}
        waiting = []
        while True:
            waiting.append(w.send("job.run", args=args, outputs=[{"expr": "sum(exp(sin(a)*cos(b)))"}]))
            if len(waiting) > 4:
                w.reply(waiting.pop(0))


def test_a_large_job_ends_beside_small_ones_without_end(start):
    daemon = storm.open_to_all(start(user=storm.MALLORY))
    n = 4 << 20
    with storm.Attack(small_ones, daemon.socket, n=4):
        with wire.Wire(daemon.socket, timeout=60) as w:  # root's is another user's: it has its own turns
            assert w.compute("a + 1", a=np.arange(3.0))[2] == 3
        assert as_user(storm.MALLORY, large, daemon.socket, n) == n


def large(path, n):
    with wire.Wire(path, timeout=60) as w:
        region = wire.Region(w, n * 4)
        a = region.array("f4", (n,))
        w.run("a + 1", a=described(a, region.at()), to=described(a, region.at()))
        return int(np.sum(a))
