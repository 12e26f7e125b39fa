"""The honest user of the other tests, and one that only floods with what is allowed."""

import time

import numpy as np

import storm
import wire
from users import needs_users

pytestmark = needs_users


def flood(path):
    """As many small requests as a connection takes, of several kinds."""
    with wire.Wire(path) as w:
        a = np.arange(1000.0)
        while True:
            idents = [w.send(method, **params) for _ in range(20) for method, params in (
                ("ping", {}), ("job.list", {}), ("server.info", {}),
                ("job.run", {"args": {"a": wire.argument(a)}, "outputs": [{"expr": "sqrt(a)"}]}))]
            for ident in idents:
                w.reply(ident)


def test_a_flood_of_small_requests(start):
    daemon = storm.open_to_all(start(user=storm.HONEST))
    _, attacked = storm.beside("small requests, 8 connections", daemon,
                               storm.Attack(flood, daemon.socket, n=8),
                               kinds=("ping", "small", "middle"))
    assert len(attacked["ping"]) >= 3
    assert max(attacked["ping"][-1], attacked["small"][-1]) < storm.SOON, storm.p99(attacked["small"])


def test_a_bystander_sees_a_stopped_daemon(start):
    """The measure itself: a daemon that stands still for a moment is seen."""
    daemon = storm.open_to_all(start(user=storm.HONEST))
    with storm.Bystander(daemon.socket) as bystander:
        time.sleep(0.2)
        daemon.process.send_signal(19)
        time.sleep(0.5)
        daemon.process.send_signal(18)
        time.sleep(0.2)
        latencies = bystander.latencies()
    assert max(latencies["ping"][-1], latencies["small"][-1]) > 0.4
