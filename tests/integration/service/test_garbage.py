"""Clients that do not speak the protocol, or stop in the middle: they hurt nobody."""

import os
import random
import socket
import struct
import time

import msgpack
import numpy as np
import pytest

import wire


def closes(w):
    """The daemon closes the connection (after at most some replies)."""
    try:
        while True:
            w.receive()
    except wire.Closed:
        return True


def raw(daemon, data, fds=(), hello=True):
    w = daemon.connect(hello=hello, timeout=20)
    w.send_bytes(data, fds)
    return w


BODIES = [
    bytes.fromhex("ddff000000"),  # an array of 4 billion elements
    bytes.fromhex("dfff000000"), bytes.fromhex("c6ffffffff"), bytes.fromhex("dbffffffff"),
    b"\x91" * 10000 + b"\xc0",  # nesting
    b"\x81\xa1a" * 10000 + b"\xc0", b"\xc1", b"", b"\x94", b"\xc0", b"\x94\x00\x01\xa4ping",
    msgpack.packb([0, 1, "ping", [{}]]) + b"\x00", msgpack.packb([7, 1, "ping", [{}]]),
    msgpack.packb({"a": 1}), msgpack.packb([1, 5, None, {}]), msgpack.packb([2, 5, [{}]]),
    b"\xd4\x00\x00", b"\xdc\xff\xff" + b"\xc0" * 65535 + b"\x00" * 10,
]


@pytest.mark.parametrize("body", BODIES, ids=lambda b: b[:8].hex())
@pytest.mark.parametrize("hello", [True, False])
def test_bodies_that_are_no_messages(daemon, w, body, hello):
    with raw(daemon, wire.frame(body), hello=hello) as other:
        assert closes(other)
    assert w.call("ping") == {}


def test_a_malformed_request_with_an_id_is_answered(daemon, w):
    for body in ([0, 7, "ping", {}], [0, 7, 5, [{}]], [0, 7, "ping", [5]]):
        with raw(daemon, wire.frame(msgpack.packb(body))) as other:
            with pytest.raises(wire.Error) as caught:
                other.reply(7)
            assert caught.value.code == "bad-request"


@pytest.mark.parametrize("data", [
    b"GB" + struct.pack("<HI", 0, 1) + b"\xc0", b"HTTP/1.1 GET /\r\n\r\n",
    b"GA" + struct.pack("<HI", 0, (1 << 20) + 1), b"GA" + struct.pack("<HI", 65, 1) + b"\xc0",
    b"GA" + struct.pack("<HI", 0, 2**32 - 1), b"\x00" * 4096,
])
def test_frames_that_are_none(daemon, w, data):
    with raw(daemon, data) as other:
        assert closes(other)
    assert w.call("ping") == {}


def test_truncated_frames(daemon, w):
    body = wire.frame(msgpack.packb([0, 1, "ping", [{}]]))
    for n in range(1, len(body)):
        raw(daemon, body[:n]).close()
    assert w.call("ping") == {}


def test_descriptors_without_a_message_and_messages_without_descriptors(daemon, w):
    ping = msgpack.packb([0, 1, "ping", [{}]])
    null = os.open("/dev/null", os.O_RDONLY)
    with raw(daemon, wire.frame(ping, 0), fds=[null]) as other:
        assert closes(other)
    with raw(daemon, wire.frame(ping, 3), fds=[null]) as other:
        assert closes(other)
    with raw(daemon, wire.frame(ping, 1)) as other:
        assert closes(other)
    with raw(daemon, wire.frame(ping, 64), fds=[null] * 64) as other:
        assert other.reply(1) == {}
    os.close(null)


def test_hello_comes_first_and_once(daemon, w):
    with raw(daemon, wire.frame(msgpack.packb([0, 1, "ping", [{}]])), hello=False) as other:
        with pytest.raises(wire.Error) as caught:
            other.reply(1)
        assert caught.value.code == "bad-request"
        assert closes(other)
    with raw(daemon, wire.frame(msgpack.packb([2, "ping", [{}]])), hello=False) as other:
        assert closes(other)
    hello = msgpack.packb([0, 1, "hello", [{"version": 99, "client": "tests"}]])
    with raw(daemon, wire.frame(hello), hello=False) as other:
        with pytest.raises(wire.Error) as caught:
            other.reply(1)
        assert caught.value.code == "version-mismatch"


def test_random_bytes(daemon, w):
    rng = random.Random(4)
    for _ in range(200):
        with raw(daemon, rng.randbytes(rng.randrange(1, 400)), hello=rng.random() < 0.5):
            pass
    good = wire.frame(msgpack.packb([0, 1, "job.run", [{
        "outputs": [{"expr": "a+1"}], "args": {"a": wire.argument(np.arange(5.0))}}]]))
    for _ in range(500):
        bad = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        with raw(daemon, bytes(bad)):
            pass
    assert w.compute("a + 1", a=np.arange(3)).tolist() == [1, 2, 3]


def test_a_client_that_sends_and_never_reads(daemon, w):
    body = msgpack.packb([0, 1, "job.run", [{
        "outputs": [{"expr": "a + 1"}], "args": {"a": wire.argument(np.arange(8000.0))}}]])
    deaf = daemon.connect()
    deaf.sock.setblocking(False)
    sent, rest = 0, b""
    end = time.monotonic() + 2
    while time.monotonic() < end:
        rest = rest or wire.frame(body)
        try:
            n = deaf.sock.send(rest)
        except BlockingIOError:
            time.sleep(0.01)
            continue
        rest = rest[n:]
        sent += n
    began = time.monotonic()
    assert w.compute("a + 1", a=np.arange(3)).tolist() == [1, 2, 3]
    assert time.monotonic() - began < 5
    assert sent < 64 << 20  # the daemon has stopped reading
    deaf.close()


def test_clients_that_are_killed_at_any_moment(daemon, w):
    region_size = 8 << 20
    rng = random.Random(5)
    for i in range(40):
        other = daemon.connect()
        region = wire.Region(other, region_size)
        a = region.array("f4", (region_size // 8,))
        for _ in range(rng.randrange(1, 4)):
            other.send("job.run", outputs=[{"expr": "sqrt(a)",
                                            "to": wire.described(a, region.at(region_size // 2))}],
                       args={"a": wire.described(a, region.at())})
        time.sleep(rng.random() * 0.004)
        if i % 2:
            other.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        other.close()
        os.close(region.fd)
    assert w.compute("a + 1", a=np.arange(3)).tolist() == [1, 2, 3]


def test_many_sessions_are_refused_in_words(daemon, w):
    others = []
    with pytest.raises((wire.Error, wire.Closed)) as caught:
        for _ in range(200):
            others.append(daemon.connect())
    for other in others:
        other.close()
    if isinstance(caught.value, wire.Error):
        assert caught.value.code == "quota-exceeded"
        assert caught.value.expected and caught.value.found
    assert len(others) >= 32
