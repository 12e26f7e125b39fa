"""Replies that nobody reads: what waits of a user has a bound, a result is in memory once, nothing is
lost for who reads late, and other users notice nothing."""

import concurrent.futures
import contextlib
import os
import signal
import time

import conftest
import storm
import wire
from users import NOBODY, needs_users
from wire import Closed

MIB = 1 << 20
# The broker's memory, whatever is asked. A sanitizer keeps what was freed, a quarter of a GiB at a
# time, beside what it needs itself; the plain build has the figure.
LIMIT = (1024 if conftest.IS_SANITIZED else 64) * MIB
# 0.94 MiB of results for a request of some hundred bytes.
BIG = {"args": {}, "outputs": [{"expr": f"uniform(size=8192, seed={i})"} for i in range(15)]}


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def memory(daemon):
    return storm.resident_bytes(daemon.process.pid)


def close_all(wires):
    for w in wires:
        w.close()


def read_all(wires, idents, look):
    """Every reply, each connection read by itself as programs do: the set of what look() says."""
    with concurrent.futures.ThreadPoolExecutor(len(wires)) as pool:
        parts = pool.map(lambda w, own: {look(w.reply(ident)) for ident in own}, wires, idents)
        return set().union(*parts)


def test_one_result_that_thousands_wait_for_is_in_memory_once(start):
    daemon = start()
    wires = [daemon.connect() for _ in range(60)]
    job = wires[0].call("job.run", **BIG)["job"]
    idents = [[w.send("job.wait", job=job) for _ in range(60)] for w in wires]
    with daemon.connect() as other:
        until(lambda: other.call("ping") == {} and memory(daemon) > 0)
        assert other.call("job.status", job=job)["state"] == "done"
    assert memory(daemon) < LIMIT
    for ident in idents[-1]:  # who reads late gets all of it
        assert [len(o["data"]) for o in wires[-1].reply(ident)["outputs"]] == [65536] * 15
    close_all(wires)


def test_who_waits_while_the_job_runs_shares_its_result_too(start):
    daemon = start()
    worker = daemon.worker_pid()
    wires = [daemon.connect() for _ in range(40)]
    os.kill(worker, signal.SIGSTOP)
    job = wires[0].call("job.submit", **BIG)["job"]
    idents = [[w.send("job.wait", job=job) for _ in range(50)] for w in wires]
    for w in wires:
        w.call("ping")  # all of them wait now
    os.kill(worker, signal.SIGCONT)
    until(lambda: wires[0].call("job.status", job=job)["state"] == "done")
    assert memory(daemon) < LIMIT
    for w, waits in zip(wires[::13], idents[::13]):
        assert {len(w.reply(ident)["outputs"]) for ident in waits} == {15}
    close_all(wires)


def test_jobs_wait_while_their_user_does_not_read_and_none_is_lost(start):
    daemon = start()
    wires = [daemon.connect() for _ in range(30)]
    idents = [[w.send("job.run", **BIG) for _ in range(20)] for w in wires]  # 560 MiB of results
    with daemon.connect() as other:
        def n_done():
            return sum(j["state"] == "done" for j in other.call("job.list"))
        before = 0
        while (now := n_done()) != before or now == 0:  # what may start has ended
            before = now
            time.sleep(0.3)
        assert now < 60 and memory(daemon) < LIMIT
        other.call("ping")
    assert read_all(wires, idents, lambda result: len(result["outputs"])) == {15}
    assert memory(daemon) < LIMIT
    close_all(wires)


def test_long_lists_wait_until_those_before_were_read(start):
    daemon = start()
    with daemon.connect() as w:
        ids = [w.send("job.run", args={}, label="l" * 63, outputs=[{"expr": "uniform(size=1, seed=1)"}])
               for _ in range(1500)]
        for ident in ids:
            w.reply(ident)
        jobs = [w.send("job.submit", label="l" * 63, args={},
                       outputs=[{"expr": "uniform(size=1, seed=1)"}]) for _ in range(1500)]
        for ident in jobs:
            w.reply(ident)
        until(lambda: all(j["state"] == "done" for j in w.call("job.list")))
        assert len(w.call("job.list")) >= 1000
    wires = [daemon.connect() for _ in range(60)]
    idents = [[w.send("job.list") for _ in range(12)] for w in wires]
    with daemon.connect() as other:
        for _ in range(20):
            other.call("ping")
            assert memory(daemon) < LIMIT
    assert len(read_all(wires, idents, len)) == 1
    close_all(wires)


def test_who_does_not_read_is_dropped_and_the_others_of_the_user_go_on(start):
    daemon = start(args=["--client-timeout", "1"])
    deaf = [daemon.connect() for _ in range(12)]
    for w in deaf:
        for _ in range(3):
            w.send("job.run", **BIG)
    with daemon.connect() as w:
        assert len(w.call("job.run", **BIG)["outputs"]) == 15  # once the deaf ones were dropped
    assert "does not read its replies: dropped" in daemon.text()
    deaf[0].sock.settimeout(5)
    with contextlib.suppress(Closed):  # the first of all; what the socket held is still there
        while True:
            deaf[0].receive()
    close_all(deaf)


def never_read(path):
    """Everything that makes long replies, and no reading."""
    wires = [wire.Wire(path, timeout=2) for _ in range(60)]
    try:
        job = wires[0].call("job.run", **BIG)["job"]
        while True:
            for w in wires:
                w.sock.setblocking(False)
                try:
                    for _ in range(20):
                        w.send("job.wait", job=job)
                        w.send("job.run", **BIG)
                        w.send("job.list")
                        w.send("server.ops")
                except BlockingIOError:
                    w.sock.close()
                    w.__init__(path, timeout=2)
    finally:
        close_all(wires)


@needs_users
def test_the_honest_user_and_the_memory_beside_who_never_reads(start):
    daemon = storm.open_to_all(start(user=NOBODY))
    _, attacked = storm.beside("replies that are never read", daemon,
                               storm.Attack(never_read, daemon.socket))
    assert memory(daemon) < LIMIT
    assert len(attacked["ping"]) >= 3 and attacked["ping"][-1] < storm.SOON
