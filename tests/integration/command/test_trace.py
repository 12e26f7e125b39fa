"""gpuarrayctl trace: the steps of a job's tiles lie within the job's time, on one lane one after the
other, and come to what the job's own result says of them; for whose job it is, and nobody else."""

import collections
import json
import os
import signal
import stat
import struct
import subprocess

import numpy as np
import pytest

import wire
from test_stats import submit_long, wait_for, zeros  # noqa: F401  (a fixture)
from test_users import NOBODY, as_user

KINDS = ["read", "to device", "kernel", "from device", "write", "submit"]
MIB = 1 << 20


class Trace:
    """Chrome's trace events of one job, checked for what is true of all."""

    def __init__(self, text):
        whole = json.loads(text)
        self.about = whole["otherData"]
        self.names, self.spans, self.job = {}, [], {}
        for event in whole["traceEvents"]:
            if event["ph"] == "M":
                self.names[event["name"], event["tid"]] = event["args"]["name"]
                continue
            assert event["ph"] == "X" and event["dur"] >= 0 and event["ts"] >= 0, event
            if event["cat"] == "job":
                self.job[event["name"]] = event
            else:
                assert event["name"] in KINDS, event
                self.spans.append(event)
        assert {("thread_name", span["tid"]) for span in self.spans} <= set(self.names)
        self.lanes = collections.defaultdict(list)
        for span in sorted(self.spans, key=lambda s: s["ts"]):
            self.lanes[self.names["thread_name", span["tid"]]].append(span)

    def is_within_the_job(self):
        first, last = self.job["running"]["ts"], self.job["running"]["ts"] + self.job["running"]["dur"]
        for span in self.spans:
            assert first <= span["ts"] and span["ts"] + span["dur"] <= last + 1, span
        return True

    def is_one_after_the_other(self, lanes):
        for lane in lanes:
            for span, behind in zip(self.lanes[lane], self.lanes[lane][1:]):
                assert span["ts"] + span["dur"] <= behind["ts"] + 0.002, (lane, span, behind)
        return True

    def seconds(self, kind):
        return sum(span["dur"] for span in self.spans if span["name"] == kind) / 1e6

    def tiles(self, kind):
        return {(span["args"]["pass"], span["args"]["tile"]) for span in self.spans if span["name"] == kind}


def run_big(w, path, n=4 * MIB, **more):
    """A job from file to file; its id and result."""
    np.random.default_rng(3).uniform(size=n).astype("f4").tofile(path / "a.raw")
    with open(path / "a.raw", "rb") as a, open(path / "r.raw", "w+b") as r:
        r.truncate(4 * n)
        array = {"dtype": "<f4", "shape": [n]}
        job = w.call("job.submit", fds=[a.fileno(), r.fileno()],
                     args={"a": {**array, "at": wire.file_at(0)}},
                     outputs=[{"expr": "sqrt(a) + exp(a)", "to": {**array, "at": wire.file_at(1)}}], **more)["job"]
    return job, w.call("job.wait", job=job)


def test_a_job_of_many_tiles(start, tmp_path):
    daemon = start()
    with daemon.connect() as w:
        job, result = run_big(w, tmp_path, label="big <one>")
        other, _ = run_big(w, tmp_path, n=MIB)
        daemon.ctl("trace", job, "-o", "trace.json", cwd=tmp_path)
        trace = Trace((tmp_path / "trace.json").read_text())
        assert trace.about == {"job": job, "uid": os.geteuid(), "state": "done", "engine": "cpu", "complete": True,
                               "label": "big <one>"}
        assert set(trace.lanes) <= {"compute 1", "compute 2", *(f"io {i}" for i in range(1, 17))}
        assert trace.is_within_the_job() and trace.is_one_after_the_other(trace.lanes)
        for kind, stage in (("read", "source"), ("kernel", "kernel"), ("write", "sink")):
            assert trace.seconds(kind) == pytest.approx(result["seconds"][stage], rel=0.05, abs=2e-3), kind
            assert len(trace.tiles(kind)) == result["tiles"] > 1
        assert trace.job["running"]["dur"] / 1e6 >= result["seconds"]["total"]
        assert len(Trace(daemon.ctl("trace", other).stdout).tiles("kernel")) < len(trace.tiles("kernel"))
        small = w.call("job.submit", args={"a": wire.argument(np.arange(3.0))}, outputs=[{"expr": "a + 1"}])["job"]
        w.call("job.wait", job=small)
        trace = Trace(daemon.ctl("trace", small).stdout)
        assert list(trace.lanes) == ["main"] and len(trace.tiles("kernel")) == 1 and trace.is_within_the_job()


def test_a_job_that_runs_and_one_that_waits(start, zeros):  # noqa: F811
    daemon = start(args=("--max-active", "1", "--user-active", "1"))
    with daemon.connect() as w:
        first, second = submit_long(w, zeros, "one"), submit_long(w, zeros, "two")
        trace = wait_for(lambda: (t := Trace(daemon.ctl("trace", first).stdout)).spans and t)
        assert trace.about["state"] == "running" and trace.is_within_the_job()
        waiting = Trace(daemon.ctl("trace", second).stdout)
        assert not waiting.spans and set(waiting.job) == {"queued"} and waiting.about["complete"]
        os.kill(daemon.worker_pid(), signal.SIGKILL)
        daemon.wait_for_restarts(1)
        again = wait_for(lambda: (t := Trace(daemon.ctl("trace", first).stdout)).spans and t)
        assert again.about["complete"] and again.job["running"]["ts"] > trace.job["running"]["ts"]
        w.call("job.cancel", job=second)
        w.call("job.cancel", job=first)
        wait_for(lambda: w.call("server.stats")["active"] == [])
        assert Trace(daemon.ctl("trace", first).stdout).about["state"] == "cancelled"


def test_the_ring_forgets_the_oldest(start):
    daemon = start()
    with daemon.connect() as w:
        ids = [w.send("job.run", args={"a": wire.argument(np.arange(3.0))}, outputs=[{"expr": "a + 1"}])
               for _ in range(200)]
        for ident in ids:
            w.reply(ident)
        first = w.call("job.list")[-1]["job"]
        assert Trace(daemon.ctl("trace", first).stdout).about["complete"]
        answer = w.call("job.trace", job=first)
        assert len(answer["records"]) % 24 == 0 and answer["lanes"] == [[0, "main"]]
        begin, duration, tile, lane, kind, number = struct.unpack("<QQIHBB", answer["records"][:24])
        assert answer["started_ns"] <= begin and begin + duration <= answer["ended_ns"]
        assert (tile, lane, number) == (0, 0, 0) and KINDS[kind] in KINDS
        many = wire.argument(np.arange(3.0))
        for _ in range(9):
            for ident in [w.send("job.run", args={"a": many}, outputs=[{"expr": "a + 1"}]) for _ in range(2000)]:
                w.reply(ident)
            if w.call("job.trace", job=w.call("job.list")[0]["job"])["since_ns"] > answer["ended_ns"]:
                break
        else:
            raise AssertionError("it never forgot")
        lost = Trace(daemon.ctl("trace", w.call("job.list")[0]["job"]).stdout)
        assert lost.about["complete"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_full_disk_keeps_the_trace_that_was_there(daemon, tmp_path):
    with daemon.connect() as w:
        job = run_big(w, tmp_path)[0]
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", full], check=True)
    try:
        (full / "trace.json").write_text("the one before")
        for name in (full / "trace.json", "/dev/full"):
            done = daemon.ctl("trace", job, "-o", name, check=False)
            assert done.returncode == 1 and "[no-space]" in done.stderr and str(name) in done.stderr
        assert os.listdir(full) == ["trace.json"] and (full / "trace.json").read_text() == "the one before"
        assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
    finally:
        subprocess.run(["umount", "-l", full], check=True)


def foreign(path, job):
    with wire.Wire(path) as w:
        codes = []
        for params in ({"job": job}, {"job": job + 1}, {"job": 0}, {"job": 2**64 - 1}):
            try:
                w.call("job.trace", **params)
                codes.append("allowed")
            except wire.Error as error:
                codes.append(error.code)
        own = w.call("job.submit", args={"a": wire.argument(np.arange(3.0))}, outputs=[{"expr": "a + 1"}],
                     label="mine")["job"]
        w.call("job.wait", job=own)
        return codes, own, w.call("job.trace", job=own)["state"]


@pytest.mark.skipif(os.geteuid() != 0, reason="other users need root")
def test_another_users_job_does_not_exist(start, tmp_path):
    daemon = start(user=NOBODY)
    os.chmod(daemon.socket, 0o666)
    with daemon.connect() as w:
        job, _ = run_big(w, tmp_path, n=MIB, label="secret")
        stranger = as_user(NOBODY + 1, foreign, daemon.socket, job)
        assert stranger[0] == ["unknown-job"] * 4 and stranger[2] == "done"
        assert w.call("job.trace", job=stranger[1])["uid"] == NOBODY + 1  # root may look


@pytest.mark.parametrize("params", [{}, {"job": "1"}, {"job": -1}, {"job": None}, {"job": 1.5}])
def test_wrong_questions(w, params):
    with pytest.raises(wire.Error) as caught:
        w.call("job.trace", **params)
    assert caught.value.code == "bad-request" and caught.value.argument == "job"


@pytest.mark.parametrize("words", [[], ["0"], ["x"], ["1", "2"], ["-1"], ["1", "-o", ""]])
def test_wrong_words(daemon, words):
    assert daemon.ctl("trace", *words, check=False).returncode == 2


def test_a_job_that_is_not_there(daemon, tmp_path):
    done = daemon.ctl("trace", 1, "-o", "t.json", check=False, cwd=tmp_path)
    assert done.returncode == 1 and "unknown-job" in done.stderr and os.listdir(tmp_path) == []


def test_a_device_has_its_own_lanes(start, tmp_path):
    daemon = start(engine="cuda")
    with daemon.connect() as w:
        job, result = run_big(w, tmp_path)
    trace = Trace(daemon.ctl("trace", job).stdout)
    streams = {"to the device", "kernels", "from the device", "submissions"}
    assert streams <= set(trace.lanes) and trace.about["engine"].startswith("cuda:")
    assert trace.is_within_the_job()
    for lane, kind in (("to the device", "to device"), ("kernels", "kernel"), ("from the device", "from device"),
                       ("submissions", "submit")):
        assert {span["name"] for span in trace.lanes[lane]} == {kind}
        assert len(trace.tiles(kind)) == result["tiles"]
    for kind, stage in (("read", "source"), ("to device", "to_device"), ("kernel", "kernel"),
                        ("from device", "from_device"), ("write", "sink")):
        assert trace.seconds(kind) == pytest.approx(result["seconds"][stage], rel=0.05, abs=2e-3), kind
    steps = collections.defaultdict(dict)
    for span in trace.spans:
        if span["name"] != "submit":
            steps[span["args"]["tile"]].setdefault(span["name"], span)
    for of in steps.values():
        assert of["read"]["ts"] <= of["to device"]["ts"] <= of["kernel"]["ts"] <= of["from device"]["ts"] <= of["write"]["ts"]
