"""Messages that come and do not end, or that wait: what they take of the daemon's memory has a bound for
each user, and nobody is dropped for what the daemon itself made wait."""

import contextlib
import signal
import time

import msgpack
import numpy as np
import pytest

import storm
import wire
from test_planning import costly_plan
from test_replies import BIG, LIMIT, close_all, memory, until
from users import NOBODY, needs_users

MIB = 1 << 20


def padded(method, ident, size=MIB - 64, **params):
    """A request of about so many bytes, most of which mean nothing."""
    body = msgpack.packb([0, ident, method, [{**params, "padding": bytes(size - 1000)}]])
    return wire.frame(body)


def begun(path):
    """Large messages, all but their last byte, again and again."""
    wires = [wire.Wire(path) for _ in range(64)]
    frame = padded("ping", 1)
    try:
        while True:
            for w in wires:
                w.sock.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    w.left = w.left[w.sock.send(w.left):] if getattr(w, "left", b"") else frame[:-1]
            time.sleep(0.001)
    finally:
        close_all(wires)


def held(path):
    """Large requests that are costly to plan, as many as there are connections."""
    plan = msgpack.unpackb(costly_plan(1)[8:])
    plan[3][0]["padding"] = bytes(MIB - 3000)
    frame = wire.frame(msgpack.packb(plan))
    wires = [wire.Wire(path) for _ in range(64)]
    try:
        while True:
            for w in wires:
                w.sock.setblocking(False)
                if not getattr(w, "left", b""):
                    w.left = frame
                with contextlib.suppress(BlockingIOError):
                    w.left = w.left[w.sock.send(w.left):]
            time.sleep(0.001)
    finally:
        close_all(wires)


@needs_users
@pytest.mark.plain
@pytest.mark.parametrize("attack", [begun, held])
def test_large_messages_of_all_connections_together(start, attack):
    daemon = storm.open_to_all(start(user=storm.HONEST))
    with storm.Attack(attack, daemon.socket):
        _, attacked = None, storm.watch(daemon.socket, max(2, storm.SECONDS))
        most = memory(daemon)
    storm.tell(f"large messages: {attack.__name__}", {"memory": most})
    assert most < LIMIT / 2
    assert len(attacked["ping"]) >= 10 and attacked["ping"][-1] < storm.SOON


def test_an_honest_pipeline_of_large_messages_beside_begun_ones(start):
    """One's own: those that are complete are computed, whatever is half there on other connections."""
    daemon = start(args=["--message-memory", "1M"])
    a = np.arange(8000.0)
    halves = [daemon.connect() for _ in range(8)]
    for w in halves:
        w.sock.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            w.send_bytes(padded("ping", 5)[:-1])
    with daemon.connect() as w:
        idents = [w.send("job.run", args={"a": wire.argument(a)}, outputs=[{"expr": "a + 1"}])
                  for _ in range(6)]
        for ident in idents:
            assert np.array_equal(wire.result_array(w.reply(ident)["outputs"][0]), a + 1)
    close_all(halves)


def test_a_daemon_that_stood_still_drops_nobody_for_half_a_message(start):
    daemon = start(args=["--client-timeout", "1"])
    with daemon.connect() as w:
        frame = padded("ping", 7, size=100_000)
        w.send_bytes(frame[:50_000])
        time.sleep(0.1)  # the daemon has seen the half
        daemon.process.send_signal(signal.SIGSTOP)
        w.send_bytes(frame[50_000:])
        time.sleep(1.5)
        daemon.process.send_signal(signal.SIGCONT)
        assert w.reply(7) == {}


def test_who_was_not_read_from_is_read_from_when_others_have_read(start):
    """Its own replies stay unread: only what others of its user left was too much."""
    daemon = start(args=["--user-replies", "2M"])
    with daemon.connect() as deaf, daemon.connect() as held_up, daemon.connect() as looks:
        for _ in range(3):
            deaf.send("job.run", **BIG)
        until(lambda: sum(j["state"] == "done" for j in looks.call("job.list")) >= 1)
        for _ in range(30):
            held_up.send("server.ops")  # some 20 KiB each: more than the socket takes
        held_up.send("job.submit", args={}, label="behind",
                     outputs=[{"expr": "uniform(size=1, seed=1)"}])
        time.sleep(0.5)
        assert "behind" not in {j["label"] for j in looks.call("job.list")}
        deaf.close()
        until(lambda: "behind" in {j["label"] for j in looks.call("job.list")})
