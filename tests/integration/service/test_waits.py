"""What jobs wait for, as server.stats and the log tell it: their clients, memory of the pool, others."""

import time

import numpy as np
import pytest

import wire
from test_provider import Ring
from test_stats import submit_long, wait_for, zeros  # noqa: F401  (a fixture)

REASONS = ("input_s", "room_s", "turn_s")


def active(w, job):
    [found] = [entry for entry in w.call("server.stats")["active"] if entry["job"] == job]
    return found


def cancel_all(w):
    for job in w.call("job.list"):
        w.call("job.cancel", job=job["job"])
    return wait_for(lambda: (s := w.call("server.stats"))["active"] == [] and s)


def test_for_a_client_that_is_silent(start):
    daemon = start(args=("--log-level", "info"))
    a = np.zeros(1_000_000)
    ring = Ring(a)
    ring.serve = lambda start, count, block: None
    with daemon.connect() as w:
        job = w.call("job.submit", fds=ring.fds(), args={"a": wire.described(a, ring.at())},
                     outputs=[{"expr": "sum(a)"}])["job"]
        first = wait_for(lambda: (j := active(w, job))["stage"] == "input" and j["input_s"] > 0 and j)
        time.sleep(0.5)
        later = active(w, job)
        assert later["input_s"] - first["input_s"] == pytest.approx(later["running_s"] - first["running_s"], abs=0.1)
        assert later["room_s"] + later["turn_s"] < 0.2
        [user] = w.call("server.stats")["users"]
        assert user["input_s"] >= later["input_s"] and user["room_s"] == 0
        time.sleep(0.02)
        stats = cancel_all(w)
        assert stats["waits"]["input"] > later["input_s"] and stats["users"][0]["work_s"] < 0.2
    ring.close()
    [line] = [line for line in daemon.text().splitlines() if f"JOB={job} " in line and "CODE=cancelled" in line]
    fields = dict(word.split("=") for word in line.split() if "=" in word)
    assert float(fields["INPUT_SECONDS"]) > later["input_s"] and float(fields["TURN_SECONDS"]) < 0.2


def test_for_turns_of_others(start, zeros):  # noqa: F811
    daemon = start(threads=1)
    with daemon.connect() as w:
        jobs = [submit_long(w, zeros, "one"), submit_long(w, zeros, "two")]
        wait_for(lambda: active(w, jobs[0])["tiles_done"] > 0 and active(w, jobs[1])["stage"] == "turn")
        before = [active(w, job) for job in jobs]
        time.sleep(0.6)
        after = [active(w, job) for job in jobs]
        turns = [now["turn_s"] - then["turn_s"] for now, then in zip(after, before)]
        passed = after[1]["running_s"] - before[1]["running_s"]
        assert turns[1] == pytest.approx(passed, abs=0.1) and turns[0] < 0.5 * passed, (turns, passed)
        assert all(now["room_s"] == then["room_s"] for now, then in zip(after, before))
        assert after[0]["stage"] in ("working", "turn", "input") and after[1]["stage"] == "turn"
        [user] = w.call("server.stats")["users"]
        assert user["work_s"] > 0.3 * passed
        cancel_all(w)


def test_for_room_in_the_pool(start, zeros):  # noqa: F811
    daemon = start(threads=1)

    def submit(label):
        with open(zeros, "rb") as f:
            return w.call("job.submit", fds=[f.fileno()], outputs=[{"expr": "sum(tanh(exp(sin(a))), axis=0)", "to": at}],
                          label=label, args={"a": {"dtype": "<f8", "shape": [16384, 300_000], "at": wire.file_at(0)}})["job"]

    with daemon.connect() as w:
        region = wire.Region(w, 1 << 22)
        at = {"dtype": "<f8", "shape": [300_000], "at": region.at()}
        first, second = submit("one"), submit("two")
        wait_for(lambda: active(w, first)["state"] == "running")
        queued = wait_for(lambda: (j := active(w, second))["room_s"] > 0.3 and j)
        assert (queued["state"], queued["stage"], queued["input_s"], queued["turn_s"]) == ("queued", "room", 0, 0)
        assert f"{second} " in (page := daemon.ctl("top", "--once").stdout) and " no room " in page
        w.call("job.cancel", job=first)
        started = wait_for(lambda: (j := active(w, second))["state"] == "running" and j)
        assert started["room_s"] >= queued["room_s"] and started["turn_s"] < 0.2
        assert cancel_all(w)["waits"]["room"] >= queued["room_s"]
        w.call("region.detach", region=region.id)
