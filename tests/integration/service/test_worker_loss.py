"""The worker dies in the middle: from outside all jobs complete, a poisonous job fails alone."""

import os
import re
import signal
import tempfile
import time

import numpy as np
import pytest

import conftest
import wire
from wire import Error, described, file_at


@pytest.fixture(scope="module")
def source():
    a = np.random.default_rng(10).normal(size=8 << 20).astype("f4")
    with tempfile.NamedTemporaryFile(prefix="gpuarrayd-test-") as f:
        a.tofile(f.name)
        fd = os.open(f.name, os.O_RDONLY)
        yield fd, a
        os.close(fd)


def submit(w, source, expr="sum(exp(sin(a)))", **more):
    fd, a = source
    return w.send("job.run", fds=[fd], args={"a": described(a, file_at(0))},
                  outputs=[{"expr": expr}], **more)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_from_outside_all_jobs_complete(start, source, number):
    daemon = start(pool="2M", threads=2)
    with daemon.connect() as w, daemon.connect() as other:
        want = None
        for delay in (0.0, 0.01, 0.03, 0.06):
            jobs = [submit(c, source) for c in (w, other) for _ in range(4)]
            small = [other.send("job.run", args={"b": wire.argument(np.arange(100.0))},
                                outputs=[{"expr": "b + 1"}]) for _ in range(20)]
            time.sleep(delay)
            os.kill(daemon.worker_pid(), number)
            results = [c.reply(i) for c, i in zip([w] * 4 + [other] * 4, jobs)]
            for ident in small:
                other.reply(ident)
            bits = {r["outputs"][0]["data"] for r in results}
            assert len(bits) == 1 and (want is None or bits == want)
            want = bits
        daemon.wait_for_restarts(4)


def test_the_queue_keeps_its_order(start, source):
    """What ran begins again before what waited, whatever came in which order and however often."""
    daemon = start(pool="2M", threads=1, args=["--max-active", "1", "--user-active", "1", "--log-level", "info"])
    fd, a = source
    priorities = (1, 0, 0, 1, -1, 0)
    with daemon.connect() as w:
        jobs = [w.call("job.submit", fds=[fd], args={"a": described(a, file_at(0))}, priority=priority,
                       outputs=[{"expr": "sum(exp(sin(a)))"}])["job"] for priority in priorities]
        for n in range(3):
            daemon.wait_for_restarts(n)
            while all(job["state"] != "running" for job in w.call("job.list")):
                time.sleep(0.005)
            os.kill(daemon.worker_pid(), signal.SIGKILL)
        for job in jobs:
            w.call("job.wait", job=job)
    done = [int(job) for job in re.findall(r"job: done JOB=(\d+)", daemon.text())]
    assert done == [job for _, job in sorted(zip([-p for p in priorities], jobs))]


def test_regions_survive_the_worker(start):
    daemon = start(pool="2M")
    with daemon.connect() as w:
        region = wire.Region(w, 1 << 20)
        a = region.array("f8", (1000,))
        a[:] = np.arange(1000)
        for _ in range(3):
            os.kill(daemon.worker_pid(), signal.SIGKILL)
            result = w.run("sum(a)", a=described(a, region.at()))
            assert wire.result_array(result["outputs"][0])[()] == 499500
        w.call("region.detach", region=region.id)


@pytest.mark.parametrize("fault", ["segv", "abort", "hang"])
def test_a_poisonous_job_among_honest_ones(start, source, fault):
    daemon = start(pool="2M", threads=2, worker=conftest.FAULTY_WORKER,
                   args=["--hang-timeout", "1"], env={"ASAN_OPTIONS": "handle_segv=0:handle_abort=0"})
    with daemon.connect() as w, daemon.connect() as other:
        honest = [submit(w, source) for _ in range(3)]
        poison = submit(other, source, label=f"fault:{fault}")
        honest += [submit(w, source) for _ in range(3)]
        with pytest.raises(Error) as caught:
            other.reply(poison)
        assert caught.value.code == "poisoned", caught.value.fields
        bits = {w.reply(i)["outputs"][0]["data"] for i in honest}
        assert len(bits) == 1
        daemon.wait_for_restarts(2)
        assert other.compute("a + 1", a=np.arange(3)).tolist() == [1, 2, 3]


def test_a_job_that_dies_once_completes(start, source):
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-") as folder:
        daemon = start(pool="2M", worker=conftest.FAULTY_WORKER,
                       env={"GPUARRAYD_FAULT_MARKER": folder + "/marker",
                            "ASAN_OPTIONS": "handle_segv=0:handle_abort=0"})
        with daemon.connect() as w:
            ident = submit(w, source, label="fault:segv-once")
            assert "outputs" in w.reply(ident)
            daemon.wait_for_restarts(1)


def test_a_job_in_place_is_not_run_twice(start, source):
    daemon = start(pool="2M", threads=1, worker=conftest.FAULTY_WORKER,
                   env={"ASAN_OPTIONS": "handle_segv=0:handle_abort=0"})
    fd, a = source
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-") as folder, daemon.connect() as w:
        a.tofile(folder + "/a.raw")
        fds = [os.open(folder + "/a.raw", os.O_RDWR) for _ in range(2)]
        ident = w.send("job.run", fds=fds, args={"a": described(a, file_at(0))}, label="fault:slow",
                       outputs=[{"expr": "a + 1", "to": described(a, file_at(1))}])
        time.sleep(0.3)
        os.kill(daemon.worker_pid(), signal.SIGKILL)
        with pytest.raises(Error) as caught:
            w.reply(ident)
        assert caught.value.code == "worker-lost"
        for f in fds:
            os.close(f)


def test_drain_on_sigterm(start, source):
    daemon = start(pool="8M", threads=4, worker=conftest.FAULTY_WORKER)
    w = daemon.connect()
    source = (source[0], source[1][:1 << 16])  # one tile, 50 ms, each
    running = submit(w, source, label="fault:slow")
    while w.call("server.info")["counts"]["jobs_running"] == 0:
        time.sleep(0.01)
    queued = [submit(w, source, label="fault:slow") for _ in range(600)]
    w.call("ping")
    daemon.process.send_signal(signal.SIGTERM)
    outcomes = []
    for ident in (running, *queued):
        try:
            w.reply(ident)
            outcomes.append("done")
        except Error as error:
            outcomes.append(error.code)
        except wire.Closed:
            outcomes.append("closed")
    assert outcomes[0] == "done"
    assert set(outcomes) == {"done", "shutting-down"}, set(outcomes)
    assert daemon.process.wait(30) == 0
    w.close()


def state_of(pid):
    """The letter of /proc; X when there is no such process any more."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def test_nothing_is_left_when_the_broker_is_killed(start):
    daemon = start(pool="2M")
    with daemon.connect() as w:
        w.compute("a + 1", a=np.arange(3))
    worker = daemon.worker_pid()
    daemon.process.kill()
    daemon.process.wait()
    end = time.monotonic() + 5
    while (state := state_of(worker)) not in "ZX" and time.monotonic() < end:
        time.sleep(0.02)
    assert state in "ZX"
    daemon.stop = lambda: None
