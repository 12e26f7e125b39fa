"""More people than there ever are: connections and queued jobs by the thousand, and what a ping beside
them takes."""

import time

import numpy as np
import pytest

import conftest
import storm
import wire
from test_provider import Ring
from test_replies import close_all, memory, until

N_CLIENTS, N_JOBS = (1000, 10_000) if storm.IS_STORM else (100, 1000)
LIMIT = 64 << 20
pytestmark = pytest.mark.plain


def pings(w, n=2000):
    took = []
    for _ in range(n):
        began = time.monotonic()
        w.call("ping")
        took.append(time.monotonic() - began)
        time.sleep(0.001)
    return sorted(took)


def test_many_clients_and_a_long_queue(start):
    """They compute, wait in the queue with what they hold, and read and ask meanwhile."""
    daemon = start(args=["--user-sessions", str(N_CLIENTS + 10), "--user-jobs", str(N_JOBS + 10),
                         "--user-active", "1", "--max-active", "1"])
    wires = [daemon.connect() for _ in range(N_CLIENTS)]
    first, ring = wires[0], Ring(np.zeros(100_000), serve=lambda *_: None)
    held = first.call("job.submit", fds=ring.fds(), outputs=[{"expr": "sum(a)"}],
                      args={"a": wire.described(ring.array, ring.at())})["job"]
    until(lambda: first.call("job.status", job=held)["state"] == "running")
    small = {"args": {"a": wire.argument([1.0, 2.0])}, "outputs": [{"expr": "a + 1"}]}
    jobs = [(w, [w.send("job.run", **small) for _ in range(N_JOBS // N_CLIENTS)]) for w in wires]
    for w in wires:
        w.call("ping")  # what was sent before has been queued
    with daemon.connect() as other:
        counts = other.call("server.info")["counts"]
        assert counts["jobs_queued"] == N_JOBS and counts["sessions"] == N_CLIENTS + 1, counts
        waiting = pings(other, 2000 if storm.IS_STORM else 100)
        most = memory(daemon)
        first.call("job.cancel", job=held)
        for w, idents in jobs:
            for ident in idents:
                assert wire.result_array(w.reply(ident)["outputs"][0]).tolist() == [2.0, 3.0]
    most = max(most, memory(daemon))
    storm.tell(f"{N_CLIENTS} clients, {N_JOBS} jobs queued", {
        "ping": {"p50": waiting[len(waiting) // 2], "p99": storm.p99(waiting), "longest": waiting[-1]},
        "broker_mib": round(most / 2**20, 1)})
    close_all(wires)
    ring.close()
    assert conftest.IS_SANITIZED or most < LIMIT
    assert storm.p99(waiting) < (0.005 if storm.IS_STORM else storm.SOON)
