"""Many detached jobs of one user: one agent serves them all, and none of them is in another's way."""

import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

import conftest
from test_detached import (EXPRESSION, NUMBERS, ctl, entries, entry, environment, folder, home,  # noqa: F401
                           is_alive, jobs_folder, submit, submit_long, wait_for, wanted_sum)

MORE_THAN_SESSIONS = 70  # a user has 64


def agents(home):
    """Process ids of those that live."""
    return {one["pid"] for one in entries(home) if is_alive(one)}


def small(home, daemon, folder):
    return int(ctl(home, "submit", "a + 1", "a=a.npy", "-o", "small.npy", cwd=folder,
                   socket_path=daemon.socket).stdout)


def status(home, job, **more):
    return json.loads(ctl(home, "status", job, "--json", **more).stdout)


def test_more_jobs_than_sessions(daemon, home, folder):
    """The user can look, wait and cancel, and has one agent with few sessions."""
    np.save(folder / "long.npy", np.zeros((1, 1 << 20)))
    np.save(folder / "high.npy", np.zeros((1 << 20, 1)))

    def one(i):
        words = (("a + 1", "a=a.npy") if i % 10 == 0 else
                 (EXPRESSION.split("; ")[1], "a=long.npy", "b=high.npy"))
        return int(ctl(home, "submit", "-l", f"number {i}", *words, "-o", f"{i}.npy", cwd=folder,
                       socket_path=daemon.socket).stdout)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(one, range(MORE_THAN_SESSIONS)))
    assert len(set(jobs)) == MORE_THAN_SESSIONS and len(agents(home)) == 1
    assert daemon.info()["counts"]["sessions"] <= 8
    [pid] = agents(home)
    title = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0")
    assert title.startswith(b"gpuarrayctl: ") and title.endswith(b" jobs"), title
    daemon.ctl("ping")
    timed = ctl(home, "wait", *jobs[1:10], "--timeout", "0.2", check=False)
    assert timed.returncode == 4 and timed.stderr.count("[timeout]") == 9
    ctl(home, "wait", *jobs[::10])
    for i in range(0, MORE_THAN_SESSIONS, 10):
        np.testing.assert_array_equal(np.load(folder / f"{i}.npy"), NUMBERS + 1)
    listed = {j["job"]: j for j in json.loads(ctl(home, "jobs", "--json",
                                                  socket_path=daemon.socket).stdout)}
    assert {listed[job]["label"] for job in jobs} == {f"number {i}" for i in range(len(jobs))}
    ctl(home, "cancel", *[job for i, job in enumerate(jobs) if i % 10])
    waited = ctl(home, "wait", *jobs, check=False)
    assert waited.returncode == 1 and waited.stderr.count("[cancelled]") == 63
    wait_for(lambda: not agents(home))
    assert sorted(p.name for p in folder.iterdir() if p.name[0].isdigit()) == sorted(
        f"{i}.npy" for i in range(0, MORE_THAN_SESSIONS, 10))
    assert sorted(os.listdir(home / "gpuarrayd")) == ["agents.lock", "jobs"]


def test_a_failed_job_hurts_no_other(daemon, home, folder):
    np.save(folder / "c.npy", np.array([-1, 2]))
    with h5py.File(folder / "z.h5", "w") as f:
        f.create_dataset("z", data=np.tile(NUMBERS, (50, 1)), chunks=(10, 100), compression="gzip")
    first = submit(home, daemon, folder)
    failed = int(ctl(home, "submit", "2 ** c", "c=c.npy", "-o", "f.npy", cwd=folder,
                     socket_path=daemon.socket).stdout)
    refused = ctl(home, "submit", "a + q", "a=a.npy", "-o", "t.npy", cwd=folder, check=False,
                  socket_path=daemon.socket)
    absent = ctl(home, "submit", "a + 1", "a=absent.npy", "-o", "t.npy", cwd=folder, check=False,
                 socket_path=daemon.socket)
    assert refused.returncode == absent.returncode == 1
    assert "unknown-name" in refused.stderr and "absent.npy" in absent.stderr
    fed = [int(ctl(home, "submit", "z + k", "z=z.h5:/z", f"k={k}", "-o", f"z{k}.npy", cwd=folder,
                   socket_path=daemon.socket).stdout) for k in range(6)]
    assert ctl(home, "wait", failed, check=False).returncode == 1
    ctl(home, "wait", first, *fed)
    np.testing.assert_array_equal(np.load(folder / "r.npy"), NUMBERS + 1)
    for k in range(6):
        np.testing.assert_array_equal(np.load(folder / f"z{k}.npy"), np.tile(NUMBERS, (50, 1)) + k)
    assert not (folder / "f.npy").exists() and not (folder / "t.npy").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ended"])
def test_the_agent_goes_with_all_its_jobs(mortal, home, folder, number):
    first = submit_long(home, mortal, folder)
    (folder / "deep").mkdir()
    second = int(ctl(home, "submit", EXPRESSION.split("; ")[1], "a=../long.npy", "b=../high.npy", "-o",
                     "s.npy", cwd=folder / "deep", socket_path=mortal.socket).stdout)
    [pid] = agents(home)
    os.kill(pid, number)
    wait_for(lambda: not agents(home))
    for job in (first, second):
        assert ctl(home, "wait", job, check=False).returncode == 1
        assert status(home, job)["state"] == "cancelled"
    mortal.kill()
    for job in (first, second):
        assert status(home, job)["state"] == "cancelled"
        waited = ctl(home, "wait", job, check=False)
        assert waited.returncode == 1 and (number == signal.SIGTERM or f"{pid} was killed" in waited.stderr)
    assert list((folder / "deep").iterdir()) == [] and not (folder / "s.npy").exists()
    # The next one starts another, beside the socket that a killed one left.
    third = conftest.Daemon(args=["--socket", mortal.socket])
    job = small(home, mortal, folder)
    ctl(home, "wait", job)
    wait_for(lambda: entry(home, job)["has_ended"])
    third.stop()
    wait_for(lambda: sorted(os.listdir(home / "gpuarrayd")) == ["agents.lock", "jobs"])


def test_cancelling_one_while_the_daemon_is_away(mortal, start, home, folder):
    job, other = submit_long(home, mortal, folder), submit(home, mortal, folder)
    assert len(agents(home)) == 1
    mortal.kill()
    ctl(home, "cancel", job)
    wait_for(lambda: entry(home, job)["has_ended"], 5)
    assert status(home, job)["state"] == "cancelled"
    start(args=["--socket", mortal.socket])
    ctl(home, "wait", other)
    np.testing.assert_array_equal(np.load(folder / "r.npy"), NUMBERS + 1)


def test_many_jobs_survive_the_daemon(mortal, start, home, folder):
    """All of them, and under their numbers."""
    jobs = [int(ctl(home, "submit", "s = sum(exp(sin(a) * cos(b))); r = a + k", "a=a.npy", "b=b.npy",
                    f"k={k}", "-o", f"r=k{k}.npy", "-o", f"s=s{k}.npy", cwd=folder,
                    socket_path=mortal.socket).stdout) for k in range(12)]
    os.kill(mortal.process.pid, signal.SIGKILL)
    mortal.process.wait()
    start(args=["--socket", mortal.socket])
    ctl(home, "wait", *jobs)
    for k in range(12):
        np.testing.assert_array_equal(np.load(folder / f"k{k}.npy"), NUMBERS + k)
        assert np.isclose(np.load(folder / f"s{k}.npy"), wanted_sum(), rtol=1e-12)


def test_who_is_differently_placed_gets_another_agent(daemon, home, folder):
    """Files come out with the mode that the shell's umask gives them."""
    long = submit_long(home, daemon, folder)
    done = subprocess.run(["/bin/sh", "-c", f"umask 077; {conftest.CTL} submit 'a + 1' a=a.npy -o m.npy"],
                          cwd=folder, env=environment(home, daemon.socket), capture_output=True, text=True)
    job = int(done.stdout)
    ctl(home, "wait", job)
    assert (folder / "m.npy").stat().st_mode & 0o777 == 0o600
    assert entry(home, job)["pid"] != entry(home, long)["pid"]
    ctl(home, "cancel", long)
    assert ctl(home, "wait", long, check=False).returncode == 1


def test_an_agent_that_does_not_answer(daemon, home, folder):
    long = submit_long(home, daemon, folder)
    [pid] = agents(home)
    os.kill(pid, signal.SIGSTOP)
    job = small(home, daemon, folder)
    assert entry(home, job)["pid"] != pid
    ctl(home, "wait", job)
    os.kill(pid, signal.SIGCONT)
    ctl(home, "cancel", long)
    assert ctl(home, "wait", long, check=False).returncode == 1


def test_a_missing_source_is_met_in_the_foreground(daemon, home, folder):
    """Also of a job whose agent would be one that does not answer."""
    long = submit_long(home, daemon, folder)
    [pid] = agents(home)
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    for source in ("absent.npy", "z.h5:/absent"):
        done = ctl(home, "submit", "a + 1", f"a={source}", "-o", "t.npy", cwd=folder, check=False,
                   socket_path=daemon.socket)
        assert done.returncode == 1 and "[not-found]" in done.stderr and source[:4] in done.stderr
    assert time.monotonic() - began < 5, "an agent that is asked is waited for longer"
    os.kill(pid, signal.SIGCONT)
    ctl(home, "cancel", long)
    assert ctl(home, "wait", long, check=False).returncode == 1


def test_cancelling_says_so_where_nobody_hears_it(mortal, home, folder):
    job = submit_long(home, mortal, folder)
    [pid] = agents(home)
    os.kill(pid, signal.SIGSTOP)
    mortal.kill()
    done = ctl(home, "cancel", job, check=False)
    assert done.returncode == 4 and "[timeout]" in done.stderr and f"'kill -9 {pid}'" in done.stderr
    os.kill(pid, signal.SIGCONT)  # the order has waited for it
    wait_for(lambda: entry(home, job)["has_ended"])
    assert status(home, job)["state"] == "cancelled"
    ctl(home, "cancel", job)


def test_a_number_that_the_daemon_gave_again(mortal, home, folder):
    """The outcome of a detached job is not that of another job with its number."""
    failed = int(ctl(home, "submit", "a + 1", "a=a.npy", "-o", "f.npy", cwd=folder,
                     socket_path=mortal.socket).stdout)
    ctl(home, "wait", failed)
    wait_for(lambda: entry(home, failed)["has_ended"])
    with mortal.connect() as w:
        other = w.call("job.submit", args={}, outputs=[{"expr": "1 + 1"}])["job"]
        w.call("job.wait", job=other)
        text = {**entry(home, failed), "first": other, "present": other,
                "last": {**entry(home, failed)["last"], "state": "failed",
                         "error": {"code": "io-error", "message": "what it failed with"}}}
        (jobs_folder(home) / str(other)).write_text(json.dumps(text))
        waited = ctl(home, "wait", other, check=False)
        assert waited.returncode == 1 and "what it failed with" in waited.stderr
        assert status(home, other)["state"] == "failed"
