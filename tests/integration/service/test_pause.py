"""Pausing jobs: in the queue, at the worker, with what they keep of the pool, by whom, through deaths."""

import os
import shutil
import signal
import time

import numpy as np
import pytest

import conftest
import wire
from test_broker import SMALL, code_of, slow_daemon, until
from test_config import file  # noqa: F401: a fixture
from test_times import ended, slow_job
from test_user_rules import STAFF, forked
from users import NOBODY, needs_users

MIB = 1 << 20


@pytest.fixture
def slow(start):
    daemon = slow_daemon(start, pool="4M", args=["--provider-timeout", "300ms", "--log-level", "info"])
    before = daemon.counts()
    yield daemon
    daemon.wait_for_counts(before)


def status(w, job):
    return w.call("job.status", job=job)


def begun(w, **more):
    """A slow job of which some tiles are done."""
    region, ident = slow_job(w, **more)
    job = w.reply(ident)["job"]
    until(lambda: tiles(w, job) >= 1)
    return region, job


def tiles(w, job):
    w.call("server.stats")  # asks the worker how far its jobs are
    return status(w, job)["tiles_done"]


def test_a_job_that_runs_gives_its_slots_back_and_goes_on_later(slow):
    with slow.connect() as w:
        region, job = begun(w, n=4)
        assert w.call("job.pause", job=job) == {"jobs": 1}
        until(lambda: slow.counts()["slots_lent"] == 0)
        time.sleep(0.15)
        n = tiles(w, job)
        assert status(w, job)["state"] == "running" and status(w, job)["paused"]
        assert [j["paused"] for j in w.call("server.stats")["active"]] == [True]
        assert w.call("server.users")["users"][0]["jobs_paused"] == 1
        w.call("job.run", **SMALL)  # others go on
        region2, ident = slow_job(w, method="job.run", n=1)
        w.reply(ident)
        assert tiles(w, job) == n
        w.call("job.resume", job=job)
        assert wire.result_array(w.call("job.wait", job=job)["outputs"][0])[()] == 0
        assert "paused" not in status(w, job)
        assert w.call("job.pause", job=job) == {"jobs": 1}  # no effect
        assert "paused" not in status(w, job)


def test_a_job_in_the_queue_keeps_its_place(start):
    daemon = slow_daemon(start, pool="4M", args=["--max-active", "1", "--user-active", "1"])
    with daemon.connect() as w:
        region, first = begun(w, n=2)
        second, third = (w.call("job.submit", **SMALL)["job"] for _ in range(2))
        w.call("job.pause", job=second)
        w.call("job.wait", job=third)
        assert status(w, second)["state"] == "queued" and status(w, second)["paused"]
        done = daemon.ctl("jobs", "--state", "paused").stdout.splitlines()
        assert len(done) == 2 and str(second) in done[1] and " paused " in done[1]
        lines = [line for line in daemon.ctl("top", "--once").stdout.splitlines() if str(second) in line]
        assert len(lines) == 1 and " paused " in lines[0]
        w.call("job.resume", job=second)
        assert "outputs" in w.call("job.wait", job=second)
        assert status(w, first)["state"] == "done"


def carrying(w, in_place=False):
    """A slow job that keeps half of the pool."""
    region = wire.Region(w, 8 * MIB)
    a = region.array("f8", (8, 128 * 1024))
    a[:] = np.arange(8)[:, None]
    out = wire.Region(w, MIB)
    to = a if in_place else out.array("f8", (128 * 1024,))
    where = wire.described(to, (region if in_place else out).at())
    expr = "a - mean(a, axis=0)" if in_place else "sum(a, axis=0)"
    job = w.call("job.submit", args={"a": wire.described(a, region.at())}, label="fault:slow",
                 outputs=[{"expr": expr, "to": where}])["job"]
    until(lambda: status(w, job)["state"] == "running")
    return job, to, (region, out)


def two_carries(w, in_place):
    """A job that is paused with its carry, and one that waits for one."""
    first = carrying(w, in_place)
    w.call("job.pause", job=first[0])
    rest = []
    for _ in range(2):  # as many as it takes for one of them to wait
        job = w.call("job.submit", args={"a": wire.described(np.empty((8, 128 * 1024)), first[2][0].at())},
                     outputs=[{"expr": "sum(a, axis=0)", "to": wire.described(
                         np.empty(128 * 1024), wire.Region(w, MIB).at())}])["job"]
        rest.append(job)
    return first, rest


def test_what_it_keeps_of_the_pool_it_gives_up_when_others_wait(slow):
    with slow.connect() as w:
        (job, out, kept), rest = two_carries(w, False)
        for one in rest:
            w.call("job.wait", job=one, timeout_ms=20000)
        until(lambda: "goes back to the queue" in slow.text())
        assert status(w, job)["state"] == "queued" and status(w, job)["paused"]
        w.call("job.resume", job=job)
        w.call("job.wait", job=job)
        assert (out == 28).all()


def test_who_resumes_and_pauses_again_does_not_keep_it(slow):
    """Within provider-timeout, which is 300 ms: together it has been paused for longer."""
    with slow.connect() as w, slow.connect() as other:
        (job, out, kept), rest = two_carries(w, False)
        end = time.monotonic() + 20
        while "goes back to the queue" not in slow.text():
            time.sleep(0.1)
            other.call("job.resume", job=job)
            other.call("job.pause", job=job)
            assert time.monotonic() < end
        for one in rest:
            w.call("job.wait", job=one, timeout_ms=20000)
        w.call("job.resume", job=job)
        w.call("job.wait", job=job)
        assert (out == 28).all()


def test_one_that_cannot_begin_again_goes_on(slow):
    with slow.connect() as w:
        (job, a, kept), rest = two_carries(w, True)
        w.call("job.wait", job=job, timeout_ms=20000)
        assert "it cannot begin again" in slow.text()
        assert (a == np.arange(8)[:, None] - 3.5).all()
        for one in rest:
            w.call("job.wait", job=one, timeout_ms=20000)


def test_a_paused_job_whose_worker_dies_stays_paused(slow):
    with slow.connect() as w:
        region, job = begun(w, n=2)
        w.call("job.pause", job=job)
        os.kill(slow.worker_pid(), signal.SIGKILL)
        until(lambda: status(w, job)["state"] == "queued")
        slow.wait_for_restarts(1)
        w.call("job.run", **SMALL)
        assert status(w, job)["state"] == "queued" and status(w, job)["paused"]
        w.call("job.resume", job=job)
        assert wire.result_array(w.call("job.wait", job=job)["outputs"][0])[()] == 0


def test_a_paused_job_keeps_no_others_from_its_engine(start):
    daemon = slow_daemon(start, pool="4M", engine="auto")
    daemon.wait_for_state("ready", "cuda:0")
    with daemon.connect() as w:
        region, job = begun(w, engine="cpu")

        def is_behind():
            return " behind " in w.call("job.plan", outputs=[{"expr": "a + 1"}], args=SMALL["args"])["engine_why"]

        assert is_behind()
        w.call("job.pause", job=job)
        assert not is_behind()
        w.call("job.resume", job=job)
        assert is_behind()
        w.call("job.pause", job=job)
        w.call("job.cancel", job=job)
        assert code_of(w.call, "job.wait", job=job) == "cancelled" and not is_behind()


def test_a_daemon_that_leaves_waits_for_nobodys_word(start):
    daemon = slow_daemon(start, pool="4M")
    with daemon.connect() as w:
        region, job = begun(w, n=4)
        w.call("job.pause", job=job)
        daemon.process.send_signal(signal.SIGTERM)
        until(lambda: not os.path.exists(daemon.socket))
        assert "paused" not in status(w, job)
        w.call("job.pause", job=job)  # no effect any more
        assert "paused" not in status(w, job)
        assert wire.result_array(w.call("job.wait", job=job)["outputs"][0])[()] == 0
    assert daemon.process.wait(20) == 0


def test_cancels_and_deadlines_end_paused_jobs(slow):
    with slow.connect() as w:
        region, job = begun(w)
        w.call("job.pause", job=job)
        w.call("job.cancel", job=job)
        assert code_of(w.call, "job.wait", job=job) == "cancelled"
        region2, ident = slow_job(w, method="job.run", deadline_ms=500)
        until(lambda: w.call("job.pause", user=os.geteuid()) == {"jobs": 1})
        assert ended(w, ident)[0].code == "deadline-exceeded"
        assert w.call("job.resume", user=os.geteuid()) == {"jobs": 0}


def test_a_session_that_goes_takes_its_paused_jobs_along(slow):
    with slow.connect() as w, slow.connect() as other:
        region, job = begun(w)
        w.call("job.pause", job=job)
        w.close()
        until(lambda: status(other, job)["state"] == "cancelled")


def from_outside(path, groups, job):
    """What somebody of these groups gets who pauses root's job, all of root's, and everybody's."""
    os.setgroups(groups)
    os.setresgid(12345, 12345, 12345)
    os.setresuid(12345, 12345, 12345)
    said = []
    with wire.Wire(path) as w:
        for params in ({"job": job}, {"user": 0}, {"everybody": True}, {"user": 12345}):
            for method in ("job.pause", "job.resume", "job.cancel"):
                if method == "job.cancel" and "everybody" not in params:
                    continue
                try:
                    said.append(w.call(method, **params)["jobs"])
                except wire.Error as error:
                    said.append(error.code)
    return said


@needs_users
def test_others_jobs_are_for_admins(start, file):  # noqa: F811
    daemon = slow_daemon(start, pool="4M", user=NOBODY,
                         args=["--config", file(f"[server]\nadmin-group = {STAFF}\n")])
    os.chmod(daemon.socket, 0o666)
    with daemon.connect() as w:
        region, job = begun(w)
        assert forked(from_outside, daemon.socket, [], job) == [
            *["unknown-job"] * 2, *["permission-denied"] * 5, 0, 0]
        assert status(w, job)["state"] == "running" and "paused" not in status(w, job)
        assert forked(from_outside, daemon.socket, [STAFF], job) == [1] * 7 + [0, 0]
        assert code_of(w.call, "job.wait", job=job) == "cancelled"


def test_a_daemon_that_takes_the_place_of_one_that_was_killed(tmp_path):
    """It knows of no pause and of no drain: what its clients submit again goes on."""
    def daemon():
        begun = conftest.Daemon(worker=conftest.FAULTY_WORKER, threads=1, pool="4M", args=[
            "--socket", tmp_path / "socket", "--max-active", "1", "--user-active", "1"])
        begun.socket = str(tmp_path / "socket")
        return begun

    def end(one):
        one.kill()
        one.log.close()
        shutil.rmtree(one.dir)

    first = daemon()
    try:
        with open(tmp_path / "zeros.raw", "wb") as zeros:
            zeros.truncate(16 * MIB)
        jobs = [first.ctl("submit", "a + 1", f"a={tmp_path}/zeros.raw:f8:2x1048576", "-l", "fault:slow", "-o",
                          tmp_path / f"{name}.npy").stdout.strip() for name in "pq"]
        for job in jobs:  # one that runs, and one that waits
            first.ctl("pause", job)
        first.ctl("drain")
    finally:
        end(first)
    second = daemon()
    try:
        for job, name in zip(jobs, "pq"):
            second.ctl("wait", job)
            assert (np.load(tmp_path / f"{name}.npy") == 1).all()
        assert "draining" not in second.info() and second.ctl("run", "1 + 1").stdout == "2\n"
    finally:
        end(second)


def test_garbage(daemon, w):
    for method in ("job.pause", "job.resume", "job.cancel"):
        for params in ({}, {"job": -1}, {"job": "1"}, {"user": -1}, {"user": 2 ** 32 - 1}, {"user": 2 ** 40},
                       {"everybody": 1}, {"everybody": False}, {"user": 0, "everybody": True}):
            assert code_of(w.call, method, **params) == "bad-request", (method, params)
        assert code_of(w.call, method, job=2 ** 60) == "unknown-job"


def test_the_verbs(slow, tmp_path):
    with open(tmp_path / "zeros.raw", "wb") as zeros:
        zeros.truncate(16 * MIB)
    job = slow.ctl("submit", "a + 1", f"a={tmp_path}/zeros.raw:f8:2x1048576", "-l", "fault:slow", "-o",
                   tmp_path / "r.npy").stdout.strip()
    slow.ctl("pause", job)
    assert "paused" in slow.ctl("status", job).stdout and '"paused":true' in slow.ctl("status", job, "--json").stdout
    assert slow.ctl("resume", "--user", os.geteuid()).stdout == "1 jobs let go on\n"
    slow.ctl("pause", "--all")
    assert slow.ctl("resume", "--everybody", "--json").stdout.split() == ["{", '"jobs":1', "}"]
    slow.ctl("wait", job)
    assert (np.load(tmp_path / "r.npy") == 1).all()
    for words in (["pause"], ["pause", "1", "--all"], ["resume", "--user", "nobody-has-this-name"],
                  ["cancel", "--everybody", "--user", "root"], ["pause", "--all", "--everybody"]):
        assert slow.ctl(*words, check=False).returncode == 2, words
