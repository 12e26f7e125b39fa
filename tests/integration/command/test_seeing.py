"""What the daemon tells of itself over time: samples, and pictures that are made of them."""

import json
import os
import re
import time
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import wire
from test_stats import submit_long, wait_for, zeros  # noqa: F401  (a fixture)

SVG = "{http://www.w3.org/2000/svg}"


class Picture:
    """An SVG file: its texts, and its curves as lists of points."""

    def __init__(self, path):
        self.root = ElementTree.parse(path).getroot()
        assert self.root.tag == f"{SVG}svg"
        self.width, self.height = (float(self.root.get(name)) for name in ("width", "height"))
        self.texts = [element.text or "" for element in self.root.iter(f"{SVG}text")]
        self.curves = [[tuple(map(float, pair.split(","))) for pair in curve.get("points").split()]
                       for curve in self.root.iter(f"{SVG}polyline")]
        for curve in self.curves:
            assert all(0 <= x <= self.width and 0 <= y <= self.height for x, y in curve)
            assert [x for x, _ in curve] == sorted(x for x, _ in curve)

    def most(self, name):
        """The most that the legend says of a curve, in its base unit."""
        found = [re.fullmatch(rf"{name}, at most ([\d.]+)(?: ([kMGT]?)B(?:/s)?)?", text) for text in self.texts]
        [match] = [m for m in found if m]
        return float(match[1]) * 1000 ** " kMGT".index(match[2] or " ")


def rows(answer):
    return [dict(zip(answer["columns"], sample, strict=True)) for sample in answer["samples"]]


def private_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Anonymous:")) * 1024


def test_samples_are_of_what_ran(start, zeros, tmp_path):  # noqa: F811
    daemon = start()
    with daemon.connect() as w:
        job = submit_long(w, zeros, "long")

        def busy():
            found = [row for row in rows(w.call("server.samples")) if row["slot_bytes"] > 0]
            return found if len(found) > 1 else None

        seen = wait_for(busy)
        first, last = seen[0], seen[-1]
        assert last["running"] == 1 and last["pool_bytes"] == 8 << 20 and last["queued"] == 0
        assert last["slot_bytes"] + last["carry_bytes"] <= last["pool_bytes"]
        assert first["at_ms"] < last["at_ms"] and first["read_bytes"] < last["read_bytes"]
        for name, pid in (("broker_bytes", daemon.process.pid), ("worker_bytes cpu", daemon.worker_pid())):
            assert abs(last[name] - private_bytes(pid)) < 4 << 20, name
        stats = w.call("server.stats")
        assert abs(stats["private_bytes"] - private_bytes(daemon.process.pid)) < 4 << 20
        assert abs(stats["engines"][0]["private_bytes"] - private_bytes(daemon.worker_pid())) < 4 << 20
        assert last["read_bytes"] <= stats["bytes"]["read"]["file"]
        w.call("job.cancel", job=job)
        wait_for(lambda: w.call("server.stats")["active"] == [])
        wait_for(lambda: rows(w.call("server.samples"))[-1]["slot_bytes"] == 0)
        answer = w.call("server.samples")
        assert rows(answer)[-1]["running"] == 0
        late = w.call("server.samples", after_ms=answer["samples"][0][0])
        assert late["samples"][:len(answer["samples"]) - 1] == answer["samples"][1:]
        assert w.call("server.samples", last_ms=1)["samples"] in ([], late["samples"][-1:])
        assert w.call("server.samples", after_ms=2**63)["samples"] == [] and not answer["more"]
    daemon.ctl("stats", "--plot", "picture.svg", cwd=tmp_path)
    picture = Picture(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").stat().st_mode & 0o777 == 0o644
    for title in ("Private memory", "Pool", "Bytes a second", "Jobs"):
        assert title in picture.texts
    told = json.loads(daemon.ctl("stats", "--last", "1h", "--json").stdout)
    assert set(told) == {"uptime_ms", "columns", "samples"}
    assert picture.most("worker cpu") == pytest.approx(max(r["worker_bytes cpu"] for r in rows(told)), rel=0.01)
    assert picture.most("broker") == pytest.approx(max(r["broker_bytes"] for r in rows(told)), rel=0.01)
    assert picture.most("all of it") == pytest.approx(8 << 20, rel=1e-3) and picture.most("running") == 1
    assert picture.most("read") > 1e6 and picture.most("written") == 0
    assert len(picture.curves) >= 8 and any(re.fullmatch(r"\d\d:\d\d:\d\d", text) for text in picture.texts)


def test_a_daemon_that_nobody_uses_takes_no_samples(start):
    daemon = start()
    with daemon.connect() as w:
        before = wait_for(lambda: w.call("server.samples")["samples"])
    time.sleep(2.1)
    with daemon.connect() as w:
        came_ms = w.call("server.samples")["uptime_ms"]
        after = wait_for(lambda: (s := rows(w.call("server.samples", after_ms=before[-1][0]))) and s[-1]["at_ms"] > came_ms and s)
    assert len([row for row in after if row["at_ms"] < came_ms]) <= 1  # the tick that was set by then
    assert sum(row["period_ms"] for row in after) == after[-1]["at_ms"] - before[-1][0]


def test_what_is_no_file_is_not_replaced(daemon, tmp_path):
    """A picture goes into a pipe, or a device, that is there."""
    os.mkfifo(tmp_path / "pipe")
    fd = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    daemon.ctl("stats", "--plot", "pipe", cwd=tmp_path)
    assert b"<svg" in os.read(fd, 1 << 16)
    os.close(fd)


@pytest.mark.parametrize("words", [
    ["--last", "1h"], ["--last", "x", "--json"], ["--last", "1", "--json"], ["--last", "-1h", "--json"],
    ["--last", "0s", "--json"], ["--last", "1hh", "--json"], ["--last", "nan s", "--json"],
    ["--last", "9999d", "--json"], ["--plot", ""], ["--plot", "a.svg", "--json"], ["--plot", "a.svg", "-o", "b"],
    ["--last", "1h", "--prometheus"]])
def test_wrong_words(daemon, words, tmp_path):
    done = daemon.ctl("stats", *words, check=False, cwd=tmp_path)
    assert done.returncode == 2 and os.listdir(tmp_path) == []


@pytest.mark.parametrize("params", [{"after_ms": -1}, {"last_ms": "1h"}, {"after_ms": 1.5}, {"last_ms": None}])
def test_wrong_questions(w, params):
    with pytest.raises(wire.Error) as caught:
        w.call("server.samples", **params)
    assert caught.value.code == "bad-request" and caught.value.argument == next(iter(params))
    assert w.compute("a + 1", a=np.arange(3.0)).tolist() == [1, 2, 3]


def test_the_profile_of_a_job(start, tmp_path):
    daemon = start()
    np.save(tmp_path / "a.npy", np.arange(4_000_000.0))
    done = daemon.ctl("run", "sqrt(exp(sin(a))) < 2", "a=a.npy", "-o", "r.npy", "--profile", "p.svg", "-v",
                      cwd=tmp_path)
    assert np.load(tmp_path / "r.npy").all() and "in 0." in done.stderr
    picture = Picture(tmp_path / "p.svg")
    assert picture.texts[0] == "sqrt(exp(sin(a))) < 2"
    assert {"Private memory", "Bytes so far", "Bytes a second"} <= set(picture.texts)
    [so_far] = [text for text in picture.texts if text.startswith("read, at most") and "/s" not in text]
    assert so_far == "read, at most 32 MB"  # as in the legend: the job's own number
    assert "written, at most 4 MB" in picture.texts
    for name in ("client", "broker", "worker cpu"):
        assert 100e3 < picture.most(name) < 100e6, name
    seconds = float(re.match(r"gpuarrayctl run, ([\d.]+) s, \d+ looks", picture.texts[1])[1])
    assert 0 < seconds < 20


def test_the_profile_of_a_job_that_fails(daemon, tmp_path):
    (tmp_path / "old.svg").write_text("old")
    np.save(tmp_path / "a.npy", np.arange(10))
    done = daemon.ctl("run", "a ** (a - 5)", "a=a.npy", "--profile", "p.svg", cwd=tmp_path, check=False)
    assert done.returncode == 1 and "negative-integer-power" in done.stderr
    assert Picture(tmp_path / "p.svg").most("broker") > 0
    done = daemon.ctl("run", "a + 1", "a=a.npy", "--profile", "not/there.svg", cwd=tmp_path, check=False)
    assert done.returncode == 1 and "[not-found]" in done.stderr and "1 2 3" in done.stdout
    for words in (["--explain"], ["--repeat", "3"]):
        done = daemon.ctl("run", "a + 1", "a=a.npy", "--profile", "old.svg", *words, cwd=tmp_path, check=False)
        assert done.returncode == 2 and (tmp_path / "old.svg").read_text() == "old"
    assert daemon.ctl("submit", "a + 1", "a=a.npy", "-o", "b.npy", "--profile", "p.svg", cwd=tmp_path,
                      check=False).returncode == 2
