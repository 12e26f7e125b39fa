"""Requests that are small and take long to plan: nobody but who sends them waits for that."""

import select

import msgpack
import numpy as np
import pytest

import storm
import wire
from users import needs_users

pytestmark = needs_users

N_AXES = 31


def costly_plan(ident):
    """Under a kilobyte; each of the sums is another walk over the array, and all are kept at once."""
    a = {"dtype": "<f4", "shape": [2] * N_AXES}
    expr = "+".join(f"var(a,axis={axis},keepdims=True)" for axis in range(N_AXES))
    params = {"args": {"a": a}, "outputs": [{"expr": expr}]}
    return wire.frame(msgpack.packb([0, ident, "job.plan", [params]]))


def flood(path, n_sessions, at_once):
    """So many connections, each with so many requests under way; what comes back is thrown away."""
    body = b"".join(costly_plan(i) for i in range(at_once))
    wires = [wire.Wire(path) for _ in range(n_sessions)]
    left = {}
    for w in wires:
        w.sock.setblocking(False)
        left[w.sock] = memoryview(body)
    while True:
        readable, writable, _ = select.select(list(left), list(left), [], 1)
        for sock in readable:
            if not sock.recv(1 << 16):
                raise wire.Closed
        for sock in writable:
            left[sock] = left[sock][sock.send(left[sock][:1 << 16]):] or memoryview(body)
        if not readable:
            select.select(list(left), [], [], 0.01)


def test_a_flood_of_costly_plans(start):
    daemon = storm.open_to_all(start(user=storm.HONEST))
    _, attacked = storm.beside("costly plans, 60 connections", daemon,
                               storm.Attack(flood, daemon.socket, 60, 64))
    assert len(attacked["ping"]) >= 3
    assert attacked["ping"][-1] < storm.SOON and attacked["small"][-1] < storm.SOON, {
        kind: (storm.p99(seconds), seconds[-1]) for kind, seconds in attacked.items()}


def plan(w):
    params = msgpack.unpackb(costly_plan(0)[8:])[3][0]
    try:
        w.call("job.plan", **params)
    except wire.Error as error:
        if error.code != "too-large-for-pool":
            raise


def test_the_time_that_planning_takes_is_a_users(start):
    """It is counted, shown, and who has had all of it lately is told so, and may have what is light."""
    daemon = start(args=["--user-plan-time", "100ms"])
    with daemon.connect() as w:
        with pytest.raises(wire.Error) as caught:
            for _ in range(10_000):
                plan(w)
        assert caught.value.code == "quota-exceeded"
        assert caught.value.argument == "nanoseconds of planning lately"
        assert "at most 100000000" in caught.value.expected
        hold = w.call("server.users")["users"][0]["holds"]["plan_ns"]
        assert hold["limit"] == 100_000_000 and hold["use"] > 50_000_000
        np.testing.assert_array_equal(w.compute("a+1", a=np.arange(3.0)), np.arange(3.0) + 1)
        assert "plan_ns" in daemon.ctl("users", "--limits").stdout


def nears(rows, columns, of="a"):
    return "+".join(f"near({of},{i},{k})" for i in range(rows) for k in range(columns))


COSTLY = {  # as many of something as a program may have, or more, and how it ends
    "16 outputs of 484 neighbours": ([nears(22, 22)] * 16, None),
    "16 outputs of 900 neighbours": ([nears(30, 30)] * 16, "limit-exceeded"),
    "neighbours of ever others": ([nears(20, 20, f"a*{k}") for k in range(16)], "limit-exceeded"),
    "16 outputs of 16384 characters": (["+".join(["a"] * 8000)] * 16, "limit-exceeded"),
    "functions of functions": (["g0(x)=x+1;" + "".join(
        f"g{i}(x)=g{i - 1}(x)+g{i - 1}(x);" for i in range(1, 12)) + "g11(a)"], None),
    "ever other terms": (["*".join(f"(a+{1000*k + i})" for i in range(1000)) for k in range(16)],
                         "limit-exceeded"),
    "choices": ([f"select([{','.join(f'a>{i}' for i in range(60))}],"
                 f"[{','.join(f'a*{i}' for i in range(60))}],0)"] * 16, None),
    "walks over 31 axes": (["+".join(f"var(b,axis={i},keepdims=True)" for i in range(N_AXES))],
                           "too-large-for-pool"),
}


def test_the_most_costly_programs_are_planned_or_refused(start):
    """What makes them costly has limits, and steps of planning are counted (test_steps.c): how long
    that takes is told (kernels/SEMANTICS.md)."""
    daemon = start()
    args = {"a": {"dtype": "<f4", "shape": [4096, 4096]}}
    many = {"b": {"dtype": "<f4", "shape": [2] * N_AXES}}
    with daemon.connect() as w:
        for name, (texts, code) in COSTLY.items():
            found = None
            try:
                w.call("job.plan", args=many if "b," in texts[0] else args,
                       outputs=[{"expr": text} for text in texts])
            except wire.Error as error:
                found = error.code
            assert found == code, name
