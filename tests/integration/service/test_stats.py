"""server.stats and gpuarrayctl stats: numbers that agree with what ran, in a format that a strict
reader takes, and nothing in them that another user should not know."""

import contextlib
import json
import os
import re
import signal
import time

import h5py
import numpy as np
import pytest

import conftest
import wire
from test_users import NOBODY, as_user

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|[+-]Inf|NaN")
ENDINGS = ("_total", "_bytes", "_seconds", "_info")


def parse_labels(text):
    labels, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        assert match, text
        assert match[1] not in labels and not match[1].startswith("__"), text
        labels[match[1]] = match[2].replace(r"\n", "\n").replace(r"\"", '"').replace(r"\\", "\\")
        at = match.end()
    return labels


def parse(text):
    """The text exposition format, strictly: {family: type}, {(name, labels): value}."""
    types, samples, helped, family = {}, {}, set(), None
    assert text.endswith("\n") and "\r" not in text
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            family = line.split(" ")[2]
            assert family not in helped and len(line.split(" ", 3)[3]) > 5, line
            helped.add(family)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family and name not in types and kind in ("counter", "gauge"), line
            types[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match and NUMBER.fullmatch(match[3]), line
            assert match[1] == family and family in types, line  # a family's lines are together
            key = (match[1], tuple(sorted(parse_labels(match[2] or "").items())))
            assert key not in samples, line
            samples[key] = float(match[3])
    assert helped == set(types)
    assert {name for name, _ in samples} == set(types)
    for name, kind in types.items():
        assert name.startswith("gpuarrayd_")
        assert name.endswith("_total") == (kind == "counter"), name
        assert "_milli" not in name and "_kilo" not in name
    return types, samples


def scrape(daemon, *words):
    return parse(daemon.ctl("stats", "--prometheus", *words).stdout)


def value(samples, name, **labels):
    return samples[("gpuarrayd_" + name, tuple(sorted(labels.items())))]


@pytest.fixture
def zeros(tmp_path):
    """A file of 64 GiB that takes no space, and takes long to read."""
    path = tmp_path / "zeros-with-a-secret-name.raw"
    with open(path, "wb") as f:
        f.truncate(64 << 30)
    return path


def submit_long(w, path, label, expr="sum(tanh(exp(sin(secret_argument))))"):
    with open(path, "rb") as f:
        return w.call("job.submit", fds=[f.fileno()], outputs=[{"expr": expr}], label=label,
                      args={"secret_argument": {"dtype": "<f8", "shape": [8 << 30],
                                                "at": wire.file_at(0)}})["job"]


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def test_numbers_agree_with_what_ran(start, tmp_path):
    daemon = start()
    a = np.arange(100000.0)
    np.save(tmp_path / "a.npy", a)
    with h5py.File(tmp_path / "c.h5", "w") as f:
        f.create_dataset("c", data=a.reshape(100, 1000), chunks=(10, 1000))
        f.create_dataset("z", data=a.reshape(100, 1000), chunks=(10, 1000), compression="gzip")
    _, before = scrape(daemon)
    assert value(before, "jobs_submitted_total") == 0
    assert value(before, "jobs_ended_total", status="ok") == 0
    daemon.ctl("run", "a + 1", "a=a.npy", "-o", "r.npy", cwd=tmp_path)
    daemon.ctl("run", "a + 1", "a=c.h5:/c", "-o", "r.npy", cwd=tmp_path)
    daemon.ctl("run", "a + 1", "a=c.h5:/z", "-o", "r.npy", cwd=tmp_path)
    with daemon.connect() as w:
        assert w.compute("b * 2", b=np.arange(10.0)).sum() == 90
        region = wire.Region(w, 1 << 20)
        at = {"dtype": "<f8", "shape": [1000], "at": region.at()}
        result = w.call("job.run", args={"x": at}, outputs=[{"expr": "x + 1", "to": at}])
        assert result["bytes"] == {"read": {"region": 8000}, "write": {"region": 8000}}
        for bad in ({"x": {"scalar": 1}}, {}):
            with pytest.raises(wire.Error):
                w.call("job.run", args=bad, outputs=[{"expr": "y + 1"}])
        with pytest.raises(wire.Error):
            w.call("fly")
        _, after = scrape(daemon)
        assert value(after, "sessions") == 2 and value(after, "regions") == 1
        assert value(after, "region_bytes") == 1 << 20
        assert value(after, "user_region_bytes", uid=str(os.geteuid()), user=user_name()) == 1 << 20
    n = a.nbytes
    for name, numbers in (("read_bytes_total", {"file": n, "chunks": n, "provider": n,
                                                "inline": 80, "region": 8000}),
                          ("written_bytes_total", {"file": 3 * n, "chunks": 0, "provider": 0,
                                                   "inline": 80, "region": 8000})):
        for path, number in numbers.items():
            assert value(after, name, path=path) == number, (name, path)
        total = sum(numbers.values())
        assert value(after, "user_" + name, uid=str(os.geteuid()), user=user_name()) == total
    assert value(after, "jobs_submitted_total") == 5
    assert value(after, "jobs_ended_total", status="ok") == 5
    assert value(after, "refusals_total", code="unknown-name") == 2
    assert value(after, "refusals_total", code="unknown-method") == 1
    assert value(after, "stage_seconds_total", stage="kernel") > 0
    assert value(after, "stage_seconds_total", stage="source") > 0
    assert value(after, "worker_ready", engine="cpu") == 1
    assert value(after, "worker_threads", engine="cpu") == 2
    assert value(after, "pool_bytes") == 8 << 20
    types, later = scrape(daemon)
    for (name, labels), number in after.items():
        if types[name] == "counter":
            assert later[name, labels] >= number, name
    assert value(later, "sessions_opened_total") == value(after, "sessions_opened_total") + 1
    table = daemon.ctl("stats").stdout
    assert re.search(r"^ended +ok 5$", table, re.M) and re.search(r"^inline +80 B +80 B$", table, re.M)
    assert all(len(line) <= 80 for line in table.splitlines())
    told = json.loads(daemon.ctl("stats", "--json").stdout)
    assert told["jobs"]["ended"] == {"ok": 5} and told["active"] == []


def user_name():
    import pwd
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def test_running_cancelled_and_lost_jobs_count(start, zeros):
    daemon = start(args=("--max-active", "1", "--user-active", "1"))
    with daemon.connect() as w:
        first, second = submit_long(w, zeros, "one"), submit_long(w, zeros, "two")

        def moving():
            stats = w.call("server.stats")
            return stats if stats["bytes"]["read"]["file"] > 0 else None

        stats = wait_for(moving)
        assert [(j["job"], j["state"], j["label"]) for j in stats["active"]] == [
            (first, "running", "one"), (second, "queued", "two")]
        running, queued = stats["active"]
        assert 0 < running["tiles_done"] < running["tiles"] and running["running_s"] > 0
        assert queued["tiles_done"] == 0 and queued["running_s"] == 0 and queued["queued_s"] > 0
        assert running["read_bytes"] == stats["bytes"]["read"]["file"]
        assert stats["users"][0]["jobs_running"] == stats["users"][0]["jobs_queued"] == 1
        assert stats["users"][0]["waited_s"] == stats["seconds"]["queue"] > 0
        os.kill(daemon.worker_pid(), 9)
        daemon.wait_for_restarts(1)
        lost = w.call("server.stats")
        assert lost["jobs"]["requeued"] == 1 and lost["engines"][0]["restarts"] == 1
        assert lost["bytes"]["read"]["file"] >= stats["bytes"]["read"]["file"]
        again = wait_for(lambda: (s := w.call("server.stats"))["bytes"]["read"]["file"]
                         > lost["bytes"]["read"]["file"] and s)
        w.call("job.cancel", job=second)
        w.call("job.cancel", job=first)
        ended = wait_for(lambda: (s := w.call("server.stats"))["active"] == [] and s)
    assert ended["jobs"]["ended"] == {"cancelled": 2}
    assert ended["jobs"]["running"] == ended["jobs"]["queued"] == 0
    assert ended["bytes"]["read"]["file"] >= again["bytes"]["read"]["file"]
    assert ended["seconds"]["queue"] >= stats["seconds"]["queue"]


def test_a_worker_that_does_not_start_is_counted(start):
    daemon = start(worker="/bin/false")
    with daemon.connect() as w:
        stats = wait_for(lambda: (s := w.call("server.stats"))["engines"][0]["failed_starts"] > 1
                         and s)
    assert not stats["engines"][0]["ready"] and "threads_busy" not in stats["engines"][0]
    assert "slots" not in stats["pool"] and stats["pool"]["bytes"] == 8 << 20
    _, samples = scrape(daemon)
    assert value(samples, "worker_ready", engine="cpu") == 0
    assert ("gpuarrayd_pool_slots", ()) not in samples
    assert re.search(r"^engine cpu: (re)?starting, ", daemon.ctl("stats").stdout, re.M)


def test_a_long_queue_is_cut_and_counted(start, zeros):
    daemon = start(args=("--max-active", "1", "--user-active", "1"))
    with daemon.connect() as w:
        first = submit_long(w, zeros, "first")
        wait_for(lambda: w.call("job.status", job=first)["state"] == "running")
        ids = [w.send("job.submit", outputs=[{"expr": "a + 1"}], label="x" * 63,
                      args={"a": wire.argument(np.arange(2.0))}) for _ in range(4000)]
        last = max(w.reply(ident)["job"] for ident in ids)
        stats = w.call("server.stats")
        assert stats["jobs"]["queued"] == 4000 and stats["active"][0]["job"] == first
        assert len(stats["active"]) == 1024 and stats["left_out"] == {"users": 0, "jobs": 2977}
        assert len(json.loads(daemon.ctl("stats", "--json").stdout)["active"]) == 1024
        assert "... 2977 more" in daemon.ctl("top", "--once").stdout
        assert f"{last} " in daemon.ctl("jobs").stdout and len(w.call("job.list")) == 1800


@contextlib.contextmanager
def stopped_worker(daemon):
    daemon.counts()  # the worker is ready
    worker = daemon.worker_pid()
    os.kill(worker, signal.SIGSTOP)
    try:
        wait_for(lambda: open(f"/proc/{worker}/stat").read().split()[2] == "T")
        yield
    finally:
        os.kill(worker, signal.SIGCONT)


def test_many_questions_at_once(daemon, w):
    with stopped_worker(daemon):  # so that all of them wait at once
        ids = [w.send("server.stats") for _ in range(30)]
        w.call("ping")  # all of them were read
    codes = []
    for ident in ids:
        try:
            assert w.reply(ident)["users"]
            codes.append("")
        except wire.Error as error:
            codes.append(error.code)
    assert set(codes) == {"", "limit-exceeded"} and codes.count("") == 8
    assert w.call("server.stats")["users"]


@pytest.mark.parametrize("method, limit, key", [("server.stats", 8, "users"),
                                                 ("server.info", 64, "engines")])
def test_connections_of_a_user_share_the_places_of_questions(start, method, limit, key):
    daemon = start()
    with daemon.connect() as w, daemon.connect() as other:
        with stopped_worker(daemon):
            ids = [w.send(method) for _ in range(limit)]
            w.call("ping")  # all of them were read
            with pytest.raises(wire.Error) as caught:
                other.call(method)
        assert caught.value.code == "limit-exceeded"
        assert all(w.reply(ident)[key] for ident in ids)
        assert other.call(method)[key]


@pytest.mark.skipif(os.geteuid() != 0, reason="other users need root")
def test_others_see_that_a_job_runs_and_not_what_it_is(start, zeros):
    daemon = start(user=NOBODY, threads=1)
    os.chmod(daemon.socket, 0o666)

    def look(path):
        with wire.Wire(path) as w:
            return w.call("server.stats")

    def look_with_a_job(path):
        with wire.Wire(path) as w:
            w.call("job.submit", fds=[wire.memfd(1 << 30, fill=False)], label="mine",
                   outputs=[{"expr": "sum(tanh(exp(sin(x))))"}],
                   args={"x": {"dtype": "<f8", "shape": [1 << 27], "at": wire.file_at(0)}})
            return w.call("server.stats")

    with daemon.connect() as w:
        job = submit_long(w, zeros, "a secret label")
        theirs = as_user(NOBODY, look, daemon.socket)
        assert [(j["job"], j["uid"]) for j in theirs["active"]] == [(job, 0)]
        assert "label" not in theirs["active"][0]
        assert "secret" not in repr(theirs) and "tanh" not in repr(theirs)
        assert {u["uid"]: u["sessions"] for u in theirs["users"]} == {0: 1, NOBODY: 1}
        ours = w.call("server.stats")
        assert [j["label"] for j in ours["active"]] == ["a secret label"]
        assert "secret_argument" not in repr(ours) and "tanh" not in repr(ours)
        assert str(zeros) not in repr(ours)
        theirs = as_user(NOBODY, look_with_a_job, daemon.socket)
        assert {j["uid"]: j.get("label") for j in theirs["active"]} == {0: None, NOBODY: "mine"}


def test_a_file_is_replaced_whole_or_not_at_all(start, tmp_path):
    daemon = start()
    target = tmp_path / "gpuarrayd.prom"
    target.write_text("old")
    target.chmod(0o600)
    inode = target.stat().st_ino
    before = os.umask(0o077)
    try:
        daemon.ctl("stats", "--prometheus", "--output", target)
    finally:
        os.umask(before)
    assert parse(target.read_text())[0]["gpuarrayd_jobs"] == "gauge"
    assert target.stat().st_mode & 0o7777 == 0o644 and target.stat().st_ino != inode
    daemon.ctl("stats", "-o", "relative.txt", cwd=tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["gpuarrayd.prom", "relative.txt"]
    (tmp_path / "folder").mkdir()
    for bad, code in ((tmp_path / "not/there.prom", "not-found"), (tmp_path / "folder", "io-error"),
                      (f"{tmp_path}/folder/", "io-error")):
        done = daemon.ctl("stats", "--prometheus", "-o", bad, check=False)
        assert done.returncode == 1 and f"[{code}]" in done.stderr and not done.stdout
    assert sorted(os.listdir(tmp_path)) == ["folder", "gpuarrayd.prom", "relative.txt"]
    assert os.listdir(tmp_path / "folder") == []
    content = target.read_text()
    done = daemon.ctl("stats", "--prometheus", "-o", target, check=False,
                      env={"GPUARRAYD_SOCKET": str(tmp_path / "none")})
    assert done.returncode == 3 and target.read_text() == content
    for words in (["--format", "x"], ["--json", "--prometheus"], ["-o", ""], ["file"]):
        assert daemon.ctl("stats", *words, check=False).returncode == 2
    with daemon.connect() as w:
        assert w.call("server.stats")["refusals"] == {}
