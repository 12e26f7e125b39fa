"""What the extension `_core` refuses, and that a refusal leaves nothing: no reference, no object,
no descriptor, no memory."""

import gc
import os
import sys
import tracemalloc

import numpy as np

from core_session import session  # noqa: F401
from gpuarrayd import _core

N_BAD_CALLS = 50_000


def bad_calls(session, fd):
    x = session.new("<f8", (3,), True)
    job = session.run([("x", None, None)], [("x", x)], None, 0, None)
    good, none = [("x", None, None)], []
    return [
        lambda: _core.Session(1, None, False, None, 1.0),
        lambda: _core.Session("/nonexistent/socket", None, False, None, 1.0),
        lambda: session.new("<f9", (3,), True), lambda: session.new(1, (3,), True),
        lambda: session.new("<f8", 3, True), lambda: session.new("<f8", ("a",), True),
        lambda: session.new("<f8", (2**70,), True), lambda: session.new("<f8", (2**62,), True),
        lambda: session.new("<f8", (3,)), lambda: session.open("/nonexistent.npy", False),
        lambda: session.open("nul\0.npy", False), lambda: session.open(1, True),
        lambda: session.create("/nonexistent/x.npy", "<f8", (3,), False, False),
        lambda: session.create("x.what", "<f8", (3,), False, False),
        lambda: session.create("x.npy", "<c8", (3,), False, False),
        lambda: session.from_buffer(np.zeros(3, "c8"), False),
        lambda: session.from_buffer(None, False), lambda: session.from_buffer(b"123", True),
        lambda: session.from_file(-1, 0, "<f8", (3,), None, False),
        lambda: session.from_file(fd, 0, "<f8", (3,), (1, 2), False),
        lambda: session.from_file(fd, 0, "<f8", (2**40,), None, False),
        lambda: session.from_file("x", 0, "<f8", (3,), None, False),
        lambda: session.from_blocks("<f8", (3,), None, None),
        lambda: session.from_blocks("<f8", (3,), 1, None),
        lambda: session.from_blocks("<f8", (-3,), print, print),
        lambda: session.submit(good, none, None, 0, None, False).wait(None),
        lambda: session.run(good, [("x", x)], None, 1000, None),
        lambda: session.run(good, [("x", x)], None, "1", None),
        lambda: session.run(good, [("x", x)], 1, 0, None),
        lambda: session.run(good, [("x", x)], None, 0, b"label"),
        lambda: session.run(good, [("x", x), ("x", x)], None, 0, None),
        lambda: session.run(good, [["x", x]], None, 0, None),
        lambda: session.run(good, [("x", 2**64)], None, 0, None),
        lambda: session.run(good, [("\ud800", x)], None, 0, None),
        lambda: session.run([("x\0", None, None)], [("x", x)], None, 0, None),
        lambda: session.run([("x", None)], [("x", x)], None, 0, None),
        lambda: session.run([("x", None, 1)], [("x", x)], None, 0, None),
        lambda: session.run([("x", None, "/nonexistent/y.npy")], [("x", x)], None, 0, None),
        lambda: session.run([("x", None, "a.npy"), ("x", 1, None)], [("x", x)], None, 0, None),
        lambda: session.run(1, [("x", x)], None, 0, None),
        lambda: session.run(good, 1, None, 0, None),
        lambda: session.run([], [], None, 0, None), lambda: session.run(good),
        lambda: session.plan([("y", None, None)], [("x", x)], None),
        lambda: session.plan(good, [("x", x)], "abacus"),
        lambda: session.wait_any([1], None), lambda: session.wait_any(None, None),
        lambda: session.wait_any([job], "x"), lambda: job.wait("x"), lambda: job.result("x"),
        lambda: memoryview(session.from_blocks("<f8", (3,), print, None)),
        lambda: x.commit(1), lambda: job.cancel(1),
    ]


def test_every_refusal_leaves_nothing(session, folder):
    """Each bad call raises, again and again; no objects, descriptors or memory stay."""
    (folder / "file").write_bytes(bytes(100))
    fd = os.open(folder / "file", os.O_RDONLY)
    calls = bad_calls(session, fd)

    def all_calls(rounds):
        for call in calls:
            for _ in range(rounds):
                try:
                    call()
                except Exception:
                    continue
                raise AssertionError(f"call {calls.index(call)} was not refused")

    all_calls(3)
    gc.collect()
    n_fds, n_objects = len(os.listdir("/proc/self/fd")), len(gc.get_objects())
    tracemalloc.start()
    all_calls(1)
    gc.collect()
    begun = tracemalloc.get_traced_memory()[0]
    all_calls(N_BAD_CALLS // len(calls) + 1)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - begun
    tracemalloc.stop()
    os.close(fd)
    assert len(os.listdir("/proc/self/fd")) == n_fds - 1
    assert len(gc.get_objects()) - n_objects < 200
    assert grown < 40_000, grown


def test_references_are_counted_right(session):
    """Objects that are passed and returned have as many references as before."""
    x = session.new("<f8", (3,), True)
    pid = str(os.getpid())
    name, text, label = "x" + pid, "x" + pid + " + 1", "l" + pid
    outputs, args = [(text, name, x)], [(name, x)]
    kept = (session, x, name, text, label, outputs[0], args[0], outputs, args)

    def work():
        job = session.run(outputs, args, None, 0, label)
        job.wait(0), job.stats, job.progress, job.session, job.id, job.result(0)
        session.submit(outputs, args, None, 0, label, True).wait(None)
        session.plan(outputs, args, None).outputs
        session.wait_any([job], None)
        memoryview(x).release()
        x.session, x.shape, x.typestr, x.strides
        session.from_buffer(x, True)

    work()
    gc.collect()
    before = [sys.getrefcount(o) for o in kept]
    for _ in range(100):
        work()
    gc.collect()
    assert [sys.getrefcount(o) for o in kept] == before
