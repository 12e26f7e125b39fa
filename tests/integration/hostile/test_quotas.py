"""Quotas: whatever others hold, a newcomer gets something, and whoever is refused is told the numbers."""

import contextlib
import multiprocessing
import os
import threading

import pytest

import storm
import wire
from users import NOBODY, as_user, become, needs_users
from wire import Error

SLOW = {"args": {}, "outputs": [{"expr": "sum(uniform(size=100000000000, seed=1))"}]}


def refused(call, *args, **kwargs):
    with pytest.raises(Error) as caught:
        call(*args, **kwargs)
    assert caught.value.code == "quota-exceeded", caught.value
    assert "at most" in caught.value.expected and "in use" in caught.value.found
    return caught.value


# -- a reserve of sessions -------------------------------------------------------------------------

def test_who_has_used_up_the_sessions_still_looks_and_cancels(start):
    daemon = start(args=["--user-sessions", "5"])
    with contextlib.ExitStack() as stack:
        wires = [stack.enter_context(daemon.connect()) for _ in range(5)]
        jobs = [w.call("job.submit", **SLOW)["job"] for w in wires]
        with daemon.connect() as w:
            assert {j["job"] for j in w.call("job.list")} == set(jobs)
            assert w.call("job.status", job=jobs[0])["state"] in ("queued", "running")
            for method in ("ping", "server.info", "server.stats", "server.ops"):
                w.call(method)
            w.call("job.cancel", job=jobs[0])
            with pytest.raises(Error) as caught:
                w.call("job.wait", job=jobs[0])
            assert caught.value.code == "cancelled"
            error = refused(w.call, "job.run", **SLOW)
            assert error.expected == "at most 5" and "list, wait for and cancel" in error.message
        for method, more in (("job.submit", SLOW), ("job.plan", SLOW),
                             ("region.attach", {"size": 4096, "writable": True})):
            with daemon.connect() as w:
                refused(w.call, method, **more)
        for w, job in zip(wires, jobs):
            w.call("job.cancel", job=job)


def test_a_session_in_reserve_becomes_one_like_others_when_there_is_one(start):
    daemon = start(args=["--user-sessions", "2"])
    first, second = daemon.connect(), daemon.connect()
    with daemon.connect() as third:
        first.close()
        while third.call("server.stats")["users"][0]["sessions"] > 1:
            pass
        assert third.compute("a + 1", a=[1.0])[0] == 2
        with daemon.connect() as fourth:
            refused(fourth.call, "job.plan", **SLOW)
    second.close()


def test_the_reserve_ends_too_and_says_so(start):
    daemon = start(args=["--user-sessions", "2"])
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            stack.enter_context(daemon.connect())
        with pytest.raises(Error) as caught:
            daemon.connect()
        assert caught.value.code == "quota-exceeded" and caught.value.found


# -- shares ----------------------------------------------------------------------------------------

def take_regions(path, bytes_each):
    """Attaches until it is refused, stays attached; how many."""
    w = wire.Wire(path)
    n = 0
    while True:
        fd = wire.memfd(bytes_each)
        try:
            w.call("region.attach", fds=[fd], size=bytes_each, writable=True)
        except Error as error:
            assert error.code == "quota-exceeded" and error.found, error
            return n, w
        finally:
            os.close(fd)
        n += 1


@contextlib.contextmanager
def greedy_users(path, function, *args, n=4):
    """So many users each take what they can get, and keep it."""
    context = multiprocessing.get_context("fork")
    counts, processes, keep = [], [], context.Event()

    def body(uid, pipe):
        become(uid)
        try:
            count, _held = function(path, *args)
            pipe.send(count)
        except BaseException as error:  # noqa: B902 - the test reports it
            pipe.send(repr(error))
        keep.wait(60)

    for i in range(n):
        ours, theirs = context.Pipe()
        processes.append(context.Process(target=body, args=(40001 + i, theirs), daemon=True))
        processes[-1].start()
        counts.append(ours.recv())
    try:
        yield counts
    finally:
        keep.set()
        for process in processes:
            process.join()


def attach_one(path, bytes_each):
    with wire.Wire(path) as w:
        wire.Region(w, bytes_each)
        return True


@needs_users
def test_four_users_who_take_all_regions_leave_the_fifth_some(start):
    daemon = storm.open_to_all(start(user=NOBODY, args=["--region-limit", "4M"]))
    with greedy_users(daemon.socket, take_regions, 64 << 10) as counts:
        assert counts[0] == 64 and counts[1] < 64 and min(counts) > 0, counts
        assert as_user(NOBODY, attach_one, daemon.socket, 64 << 10)


@needs_users
def test_four_users_who_take_all_descriptors_leave_the_fifth_some(start):
    daemon = start(user=NOBODY, under=["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh"])
    storm.open_to_all(daemon)
    with greedy_users(daemon.socket, take_regions, 4096) as counts:
        assert counts[0] == 256 and min(counts) > 0, counts
        assert as_user(NOBODY, attach_one, daemon.socket, 4096)
        assert "does not speak" not in daemon.text()


# -- who may end others' jobs ------------------------------------------------------------------------

def submit_and_wait(path):
    with wire.Wire(path) as w:
        job = w.call("job.submit", **SLOW)["job"]
        os.write(submit_and_wait.pipe, b"%d\n" % job)
        try:
            w.call("job.wait", job=job)
        except Error as error:
            return error.code


@needs_users
def test_root_cancels_anybodys_job_and_others_do_not(start):
    daemon = storm.open_to_all(start())
    ours, submit_and_wait.pipe = os.pipe()
    said = []
    thread = threading.Thread(target=lambda: said.append(as_user(NOBODY, submit_and_wait, daemon.socket)))
    thread.start()
    job = int(os.read(ours, 100))
    assert as_user(NOBODY - 1, code_of_cancel, daemon.socket, job) == "unknown-job"
    with daemon.connect() as w:
        assert w.call("job.status", job=job)["state"] in ("queued", "running")
        w.call("job.cancel", job=job)
    thread.join(30)
    assert said == ["cancelled"]


def code_of_cancel(path, job):
    with wire.Wire(path) as w, pytest.raises(Error) as caught:
        w.call("job.cancel", job=job)
    return caught.value.code


# -- half messages ----------------------------------------------------------------------------------

@pytest.mark.parametrize("n_sent", [1, 8, 1000])
def test_half_a_message_is_not_waited_for_for_ever(start, n_sent):
    daemon = start(args=["--client-timeout", "1"])
    with daemon.connect() as w, daemon.connect() as idle:
        w.call("ping")
        w.send_bytes(wire.frame(bytes(1 << 20))[:n_sent])
        with pytest.raises(wire.Closed):
            w.receive()
        idle.call("ping")  # who says nothing at all may stay
    assert "does not send the rest of a message" in daemon.text()
