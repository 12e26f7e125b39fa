"""One daemon, several workers: which computes what, and what happens when one is not there.

The devices' workers are proxies that let a CPU worker compute (device_proxy.py).
"""

import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import conftest
import wire
from wire import described

SMALL = {"args": {"b": wire.argument(np.arange(4.0))}, "outputs": [{"expr": "b + 1"}]}
PROXY = pathlib.Path(__file__).with_name("device_proxy.py")


class Devices:
    """How the devices are: what the proxies do when they start."""

    def __init__(self, folder):
        self.folder = folder
        self.program = folder / "worker"
        self.program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{PROXY}" "$@"\n')
        self.program.chmod(0o755)
        self.env = {"DEVICE_PROXY": str(folder), "DEVICE_PROXY_WORKER": str(conftest.WORKER)}

    def are(self, mood="", index=0):
        (self.folder / f"cuda{index}").write_text(mood)

    def number(self, n):
        (self.folder / "devices").write_text(str(n))

    def pool(self, n_bytes):
        (self.folder / "pool").write_text(str(n_bytes))

    def say(self, **ready):
        (self.folder / "ready").write_text(json.dumps(ready))

    def measure(self, **rates):
        (self.folder / "rates").write_text(json.dumps(rates))

    def args(self, *more):
        return ["--engine", "auto", "--cuda-worker", str(self.program), *more]


@pytest.fixture
def devices(tmp_path):
    return Devices(tmp_path)


@pytest.fixture
def begin(start, devices):
    """begin(*args) -> Daemon with the CPU's worker and proxies of devices."""
    def make(*args):
        return start(engine="cpu", args=devices.args(*args), env=devices.env)
    return make


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)
    return found


def engine(daemon, name="cuda:0"):
    return {e["name"]: e for e in daemon.info()["engines"]}.get(name, {"state": "unknown"})


def wait_for(daemon, state, name="cuda:0"):
    return until(lambda: (e := engine(daemon, name))["state"] == state and e)


def refused(w, **params):
    with pytest.raises(wire.Error) as caught:
        w.call("job.run", **SMALL, **params)
    return caught.value


def is_leaving(w):
    try:
        w.call("job.run", **SMALL, engine="cpu")
    except wire.Error as error:
        return error.code == "shutting-down"
    return False


def big_region(w):
    region = wire.Region(w, 8 << 20)
    a = region.array("f8", (1 << 19,))
    a[:] = 1
    return region, a


def total(w, region, a, **more):
    return w.call("job.run", outputs=[{"expr": "sum(a)"}], args={"a": described(a, region.at())},
                  **more)


def test_a_job_names_its_engine(begin):
    daemon = begin()
    wait_for(daemon, "ready")
    with daemon.connect() as w:
        assert w.server["engines"] == ["cpu", "cuda:0"]
        results = {name: w.call("job.run", **SMALL, engine=name)
                   for name in ("auto", "cpu", "cuda", "cuda:0")}
        assert [results[n]["engine"] for n in ("cpu", "cuda", "cuda:0")] == ["cpu", "cuda:0", "cuda:0"]
        assert all(r["engine_why"] for r in results.values())
        assert len({bytes(r["outputs"][0]["data"]) for r in results.values()}) == 1
        assert refused(w, engine="cuda:3").code == "no-engine"
        stats = {e["name"]: e for e in w.call("server.stats")["engines"]}
        assert stats["cuda:0"]["jobs_ended"] == 2 + (results["auto"]["engine"] == "cuda:0")
        assert stats["cuda:0"]["ready"] and "slots" in stats["cuda:0"]
    device = engine(daemon)
    assert device["index"] == 0 and device["memory"] == {"pool": 4 << 20, "used": 5 << 20}
    assert device["pool"]["bytes"] == 4 << 20 and engine(daemon, "cpu")["pool"]["bytes"] == 8 << 20
    assert device["rates"]["to_device"] == 1e12 and "why" not in device
    assert sorted(p.name for p in daemon.dir.glob("socket.pool*")) == ["socket.pool",
                                                                     "socket.pool.cuda0"]


def test_a_long_job_of_any_engine_goes_where_it_ends_sooner(begin):
    daemon = begin()
    wait_for(daemon, "ready")
    with daemon.connect() as w:
        region, a = big_region(w)
        result = until(lambda: (r := total(w, region, a))["engine"] == "cuda:0" and r)
        assert "cpu" in result["engine_why"] and "cuda:0" in result["engine_why"]


def test_regions_are_at_all_workers(begin):
    daemon = begin()
    wait_for(daemon, "ready")
    with daemon.connect() as w:
        region, a = big_region(w)
        for _ in range(2):
            for name in ("cpu", "cuda"):
                result = total(w, region, a, engine=name)
                assert wire.result_array(result["outputs"][0])[()] == 1 << 19
            for name in ("cpu", "cuda:0"):
                before = engine(daemon, name)["restarts"]
                os.kill(engine(daemon, name)["pid"], signal.SIGKILL)
                until(lambda: (e := engine(daemon, name))["restarts"] > before
                      and e["state"] == "ready")
        w.call("region.detach", region=region.id)


def test_a_region_that_one_worker_cannot_map(begin, devices):
    devices.are("deaf")
    daemon = begin()
    wait_for(daemon, "ready")
    with daemon.connect() as w:
        region, a = big_region(w)
        assert total(w, region, a)["engine"] == "cpu"
        with pytest.raises(wire.Error) as caught:
            total(w, region, a, engine="cuda")
        assert "region" in str(caught.value)
        assert w.call("job.run", **SMALL, engine="cuda")["engine"] == "cuda:0"


RATES = ("memory", "file", "disk", "to_device", "from_device", "device", "work",
         "product_float32", "product_float64", "product_integer", "product_tf32",
         "job_seconds")


@pytest.mark.parametrize("rate", [math.nan, math.inf, -1.0, 0.0, 5e-324, 1e300])
def test_rates_that_cannot_be(begin, devices, rate):
    devices.say(rates=dict.fromkeys(RATES, rate))
    daemon = begin()
    wait_for(daemon, "ready")
    with daemon.connect() as w:
        region, a = big_region(w)
        plan = w.call("job.plan", args={"a": described(a, region.at())},
                      outputs=[{"expr": "sum(a)"}])
        estimates = {e["engine"]: e["seconds"] for e in plan["engines"]}
        assert 0 < estimates["cuda:0"] < 60, plan["engine_why"]
        idents = [w.send("job.run", **SMALL, engine=name) for name in ("auto", "cuda") * 20]
        assert all(w.reply(ident)["outputs"] for ident in idents)
        plan = w.call("job.plan", **SMALL)
        assert [e["behind_seconds"] for e in plan["engines"]] == [0, 0]


@pytest.mark.parametrize("told, known", [(2e8, 2e8), (math.nan, 0), (math.inf, 0), (-1.0, 0),
                                         (5e-324, 0)])
def test_the_rate_of_the_disk_is_known_of_every_worker(begin, devices, told, known):
    devices.measure(disk=told)
    daemon = begin()
    wait_for(daemon, "ready")
    with daemon.connect() as w:
        assert w.call("job.run", **SMALL, engine="cuda")["engine"] == "cuda:0"
        assert [e["rates"]["disk"] for e in w.call("server.info")["engines"]] == [known, known]


def test_products_have_the_tiles_that_the_broker_chose(begin, devices, tmp_path):
    """By rates which the worker has not measured itself; the carry is of their size."""
    rng, n = np.random.default_rng(1), 1600
    left, right = (rng.integers(-9, 9, (n, n)).astype("f8") for _ in range(2))
    left.tofile(tmp_path / "left")
    tiles = set()
    devices.pool(16 << 20)
    for rate in (1e7, 1e12):
        devices.say(rates={"memory": 1e10, "file": rate, "product_float64": 1e11})
        daemon = begin()
        wait_for(daemon, "ready")
        with daemon.connect() as w, open(tmp_path / "left", "rb") as file:
            region = wire.Region(w, 2 * right.nbytes)
            b, c = (region.array("f8", (n, n), at) for at in (0, right.nbytes))
            b[:] = right
            job = {"args": {"a": described(left, wire.file_at(0)), "b": described(b, region.at())},
                   "outputs": [{"expr": "a @ b", "to": described(c, region.at(right.nbytes))}],
                   "engine": "cuda"}
            plan = w.call("job.plan", fds=[file.fileno()], **job)
            done = w.call("job.run", fds=[file.fileno()], **job)
            assert np.array_equal(c, left @ right)
            assert done["product"]["tile"] == plan["product"]["tile"]
            assert done["read_bytes"] == plan["read_bytes"]
            tiles.add(tuple(plan["product"]["tile"]))
            del b, c
    assert len(tiles) == 2


@pytest.mark.parametrize("said", [{"engine": "cpu"}, {"engine": 1}, {"pool_bytes": "all"},
                                  {"pool_bytes": 1 << 62}, {"rates": {"memory": "fast"}},
                                  {"devices": -1}, {"device": "x" * 5000}, {"device_carry_bytes": 1},
                                  {"device_carry_bytes": 1 << 62, "is_device": True}])
def test_a_ready_that_cannot_be_is_none(begin, devices, said):
    devices.say(**said)
    daemon = begin()
    until(lambda: engine(daemon)["failed_starts"] >= 2)
    with daemon.connect() as w:
        assert w.call("job.run", **SMALL)["engine"] == "cpu"
    assert "worker.ready of cuda:0 cannot be used" in daemon.text()


@pytest.mark.parametrize("said", [{"slot_bytes": 0}, {"pool_bytes": 0}, {"devices": 1 << 62},
                                  {"threads": 0}, {"memory": {str(i): i for i in range(65)}},
                                  {"memory": {"text": "x" * 5000}}, {"memory": 7}])
def test_a_ready_with_strange_numbers(begin, devices, said):
    devices.say(**said)
    daemon = begin("--devices", "0")
    assert "x" not in str(wait_for(daemon, "ready").get("memory", {}))
    with daemon.connect() as w:
        assert w.call("job.run", **SMALL, engine="cpu")["engine"] == "cpu"
        try:
            assert w.call("job.run", **SMALL, engine="cuda")["engine"] == "cuda:0"
        except wire.Error as error:
            assert error.code == "too-large-for-pool"
        assert [e["name"] for e in w.call("server.info")["engines"]] == ["cpu", "cuda:0"]


@pytest.fixture
def held(devices):
    """(marker, program): the CPU's worker, which does not begin while the marker is there."""
    marker, program = devices.folder / "held", devices.folder / "cpu"
    program.write_text(f'#!/bin/sh\nwhile [ -e "{marker}" ]; do sleep 0.01; done\n'
                       f'exec "{conftest.WORKER}" "$@"\n')
    program.chmod(0o755)
    return marker, program


@pytest.mark.parametrize("comes", [True, False])
def test_a_region_waits_for_a_worker_that_comes(start, devices, held, comes):
    """Where the one that is there refuses it: some seconds, and not for ever."""
    held, program = held
    devices.are("deaf")
    held.touch()
    daemon = start(engine="cpu", args=devices.args(), env=devices.env, worker=program)
    wait_for(daemon, "ready")
    with daemon.connect() as w:
        began = time.monotonic()
        if comes:
            threading.Timer(0.3, held.unlink).start()
        else:
            with pytest.raises(wire.Error) as caught:
                big_region(w)
            assert caught.value.code == "bad-region"
            assert 3 < time.monotonic() - began < 30
            held.unlink()
            wait_for(daemon, "ready", "cpu")
        region, a = big_region(w)
        assert total(w, region, a)["engine"] == "cpu"


def test_a_region_waits_no_longer_than_a_worker_comes(begin, devices):
    devices.are("absent")
    devices.program.write_text(devices.program.read_text().replace("exec", "sleep 1; exec"))
    with begin().connect(timeout=4) as w, os.fdopen(wire.memfd(4096, fill=False)) as memfd:
        with pytest.raises(wire.Error, match="hole"):
            w.call("region.attach", fds=[memfd.fileno()], size=4096, writable=False)


def test_a_region_that_the_worker_that_comes_can_map(start, devices, held):
    held, program = held
    devices.are("deaf")
    daemon = start(engine="cpu", args=devices.args(), env=devices.env, worker=program)
    wait_for(daemon, "ready", "cpu")
    wait_for(daemon, "ready")
    with daemon.connect() as w:
        region, a = big_region(w)
        held.touch()
        victim = engine(daemon, "cpu")
        os.kill(victim["pid"], signal.SIGKILL)
        until(lambda: engine(daemon, "cpu")["pid"] not in (0, victim["pid"]))
        ident = w.send("job.run", outputs=[{"expr": "sum(a)"}],
                       args={"a": described(a, region.at())})
        assert w.call("job.run", **SMALL)["engine"] == "cuda:0"
        held.unlink()
        assert w.reply(ident)["engine"] == "cpu"


def test_a_worker_that_hangs_keeps_nobody_from_the_others(begin):
    daemon = begin()
    pid = wait_for(daemon, "ready")["pid"]
    with daemon.connect() as w:
        os.kill(pid, signal.SIGSTOP)
        region, a = big_region(w)
        for _ in range(3):
            assert total(w, region, a)["engine"] == "cpu"
        os.kill(pid, signal.SIGCONT)
        assert total(w, region, a, engine="cuda")["engine"] == "cuda:0"


def test_a_worker_that_hangs_up_as_it_starts_is_replaced(begin, devices):
    devices.are("away")
    daemon = begin()
    until(lambda: engine(daemon)["failed_starts"] >= 1)
    devices.are("")
    wait_for(daemon, "ready")


def test_a_device_that_is_not_there_and_comes(begin, devices):
    devices.are("absent")
    daemon = begin()
    absent = wait_for(daemon, "absent")
    assert absent["why"] == "there is no NVIDIA driver (expected a driver; found none)"
    assert 0 < absent["retry_s"] <= 60 and absent["failed_starts"] == 0
    assert "there is no NVIDIA driver" in daemon.text()
    with daemon.connect() as w:
        assert w.call("job.run", **SMALL)["engine"] == "cpu"
        error = refused(w, engine="cuda")
        assert error.code == "no-engine" and "there is no NVIDIA driver" in str(error)
        devices.are("")
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(daemon, "ready")
        assert w.call("job.run", **SMALL, engine="cuda")["engine"] == "cuda:0"


def test_a_device_that_goes_away_leaves_its_jobs_to_others(begin, devices):
    daemon = begin()
    ready = wait_for(daemon, "ready")
    with daemon.connect() as w:
        os.kill(ready["pid"], signal.SIGSTOP)
        region = w.send("region.attach", fds=[wire.memfd(8 << 20)], size=8 << 20, writable=False)
        named = w.send("job.run", **SMALL, engine="cuda")
        until(lambda: engine(daemon)["jobs_running"] == 1)
        devices.are("absent")
        os.kill(ready["pid"], signal.SIGKILL)
        assert w.reply(region)["region"] > 0
        wait_for(daemon, "absent")
        assert w.call("job.run", **SMALL)["engine"] == "cpu"
        error = refused(w, engine="cuda")
        assert error.code == "no-engine" and "NVIDIA" in str(error)
        assert engine(daemon)["jobs_queued"] == 1
        devices.are("")
        assert w.reply(named)["engine"] == "cuda:0"


@pytest.mark.parametrize("mood, words", [("absent", "there is no NVIDIA driver"),
                                         ("short", "17 MiB free"), ("mute", "exit status 10")])
def test_a_daemon_for_devices_alone_refuses_to_start(devices, mood, words):
    devices.are(mood)
    command = [conftest.DAEMON, "--socket", devices.folder / "socket",
               *devices.args("--engine", "cuda")]
    done = subprocess.run([str(c) for c in command], env={**os.environ, **devices.env},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 4, done.stderr
    assert "engine = cuda" in done.stderr and words in done.stderr
    assert not (devices.folder / "socket").exists()


def test_a_daemon_for_devices_alone(begin):
    daemon = begin("--engine", "cuda")
    assert [e["name"] for e in daemon.info()["engines"]] == ["cuda:0"]
    assert daemon.info()["engines"][0]["state"] == "ready"
    with daemon.connect() as w:
        region, a = big_region(w)
        assert total(w, region, a)["engine"] == "cuda:0"
        assert refused(w, engine="cpu").code == "no-engine"


def test_a_daemon_without_devices_starts_no_worker_for_them(begin):
    daemon = begin("--engine", "cpu")
    assert [e["name"] for e in daemon.info()["engines"]] == ["cpu"]
    with daemon.connect() as w:
        assert refused(w, engine="cuda").code == "no-engine"


def test_memory_that_others_have_is_waited_for(begin, devices):
    devices.are("short")
    daemon = begin()
    short = wait_for(daemon, "waiting-for-device-memory")
    assert "17 MiB free" in short["why"] and short["failed_starts"] == 0
    with daemon.connect() as w:
        waiting = w.send("job.run", **SMALL, engine="cuda")
        assert w.call("job.run", **SMALL)["engine"] == "cpu"
        assert daemon.info()["counts"]["jobs_queued"] == 1
        devices.are("")
        assert w.reply(waiting)["engine"] == "cuda:0"


def test_the_queue_is_one_for_all(begin, devices):
    devices.are("short")
    daemon = begin("--max-queue", "2", "--max-active", "1", "--user-active", "1")
    wait_for(daemon, "waiting-for-device-memory")
    with daemon.connect() as w:
        waiting = [w.send("job.run", **SMALL, engine="cuda") for _ in range(2)]
        error = refused(w)
        assert error.code == "queue-full" and error.expected == "at most 2"
        devices.are("")
        assert all(w.reply(ident)["engine"] == "cuda:0" for ident in waiting)


def test_a_fault_of_the_device_is_no_jobs_fault(begin):
    daemon = begin()
    wait_for(daemon, "ready")
    with daemon.connect() as w:
        result = w.call("job.run", **SMALL, engine="cuda", label="fault:once")
        assert result["engine"] == "cuda:0"
        assert engine(daemon)["restarts"] == 1
        assert w.call("server.stats")["engines"][1]["faults"] == 1
    assert "a fault of the device" in daemon.text()


def test_a_job_that_faults_the_device_twice_is_poisoned(begin):
    daemon = begin()
    wait_for(daemon, "ready")
    with daemon.connect() as w, daemon.connect() as other:
        poison = w.send("job.run", **SMALL, engine="cuda", label="fault:tile")
        honest = [other.send("job.run", **SMALL, engine="cuda") for _ in range(20)]
        with pytest.raises(wire.Error) as caught:
            w.reply(poison)
        assert caught.value.code == "poisoned" and "a fault of the device" in str(caught.value)
        assert all(other.reply(ident)["engine"] == "cuda:0" for ident in honest)
        assert other.call("job.run", **SMALL)["outputs"]


def test_a_job_that_stopped_one_worker_and_then_another_is_poisoned(start, devices):
    devices.env["DEVICE_PROXY_WORKER"] = str(conftest.FAULTY_WORKER)
    daemon = start(engine="cpu", args=devices.args(), env=devices.env,
                   worker=conftest.FAULTY_WORKER)
    wait_for(daemon, "ready")
    with daemon.connect() as w:
        region, a = big_region(w)
        devices.are("absent")
        with pytest.raises(wire.Error) as caught:
            total(w, region, a, label="fault:segv")
        assert caught.value.code == "poisoned"
        assert [engine(daemon, name)["restarts"] for name in ("cpu", "cuda:0")] == [1, 1]
        assert total(w, region, a)["engine"] == "cpu"


def test_a_device_that_keeps_faulting_keeps_the_queue(begin, devices):
    daemon = begin()
    ready = wait_for(daemon, "ready")
    devices.are("fault")
    with daemon.connect() as w:
        os.kill(ready["pid"], signal.SIGKILL)
        waiting = w.send("job.run", **SMALL, engine="cuda")
        broken = until(lambda: (e := engine(daemon))["faults"] >= 3 and e["state"] == "restarting"
                       and e)
        assert broken["retry_s"] <= 60 and "a fault of the device" in broken["why"]
        assert broken["jobs_queued"] == 1
        assert "in a row; started again in" in daemon.text()
        assert w.call("job.run", **SMALL)["engine"] == "cpu"
        devices.are("")
        assert w.reply(waiting)["engine"] == "cuda:0"


def test_a_private_daemons_device_sleeps_until_it_is_needed(begin):
    daemon = begin("--idle-exit", "60")
    with daemon.connect() as w:
        assert w.call("job.run", **SMALL)["engine"] == "cpu"
        assert engine(daemon)["state"] == "asleep" and engine(daemon)["pid"] == 0
        assert w.call("job.run", **SMALL, engine="cuda")["engine"] == "cuda:0"
        assert engine(daemon)["state"] == "ready"


def test_a_long_job_wakes_a_device_for_the_next(begin):
    daemon = begin("--idle-exit", "60")
    with daemon.connect() as w:
        region, a = big_region(w)
        until(lambda: engine(daemon, "cpu")["state"] == "ready")
        assert total(w, region, a)["engine"] == "cpu"
        wait_for(daemon, "ready")
        until(lambda: total(w, region, a)["engine"] == "cuda:0")  # once it has mapped the region


def test_a_private_daemons_device_leaves_when_nobody_needs_it(begin):
    daemon = begin("--idle-exit", "1")
    with daemon.connect() as w:
        region, a = big_region(w)
        for _ in range(2):
            result = total(w, region, a, engine="cuda")
            assert result["engine"] == "cuda:0"
            wait_for(daemon, "asleep")
        assert engine(daemon)["restarts"] == 1


def test_two_devices(begin, devices):
    devices.number(2)
    daemon = begin()
    wait_for(daemon, "ready", "cuda:1")
    with daemon.connect() as w, daemon.connect() as other:
        region, a = big_region(w)
        for name in ("cuda:0", "cuda:1"):
            result = total(w, region, a, engine=name)
            assert result["engine"] == name
        victim = engine(daemon)
        os.kill(victim["pid"], signal.SIGSTOP)
        waiting = other.send("job.run", **SMALL, engine="cuda:0")
        until(lambda: engine(daemon)["jobs_running"] == 1)
        os.kill(victim["pid"], signal.SIGKILL)
        for _ in range(5):
            assert w.call("job.run", **SMALL, engine="cuda:1")["engine"] == "cuda:1"
            assert w.call("job.run", **SMALL, engine="cpu")["engine"] == "cpu"
        assert other.reply(waiting)["engine"] == "cuda:0"
        assert engine(daemon, "cuda:1")["restarts"] == engine(daemon, "cpu")["restarts"] == 0
        assert engine(daemon)["restarts"] == 1


def test_a_device_is_named_before_anybody_knows_how_many_there_are(begin, devices):
    devices.number(2)
    devices.are("absent", 5)
    daemon = begin("--idle-exit", "60")
    with daemon.connect() as w:
        error = refused(w, engine="cuda:5")
        assert error.code == "no-engine" and "there is no NVIDIA driver" in str(error)
        assert w.call("job.run", **SMALL, engine="cuda:1")["engine"] == "cuda:1"
        assert engine(daemon, "cuda:0")["state"] == "asleep"
        assert refused(w, engine="cuda:3").code == "no-engine"
        assert engine(daemon, "cuda:3")["state"] == "unknown"


def test_devices_that_the_settings_leave_out(begin, devices):
    devices.number(3)
    daemon = begin("--devices", "1")
    wait_for(daemon, "ready", "cuda:1")
    assert [e["name"] for e in daemon.info()["engines"]] == ["cpu", "cuda:1"]
    with daemon.connect() as w:
        assert w.call("job.run", **SMALL, engine="cuda")["engine"] == "cuda:1"
        assert refused(w, engine="cuda:0").code == "no-engine"


def test_a_drain_waits_for_nobodys_memory(begin, devices):
    daemon = begin()
    ready = wait_for(daemon, "ready")
    with daemon.connect() as w:
        os.kill(ready["pid"], signal.SIGSTOP)
        ident = w.send("job.run", **SMALL, engine="cuda")
        until(lambda: engine(daemon)["jobs_running"] == 1)
        daemon.process.send_signal(signal.SIGTERM)
        until(lambda: is_leaving(w))
        devices.are("short")
        os.kill(ready["pid"], signal.SIGKILL)
        with pytest.raises(wire.Error) as caught:
            w.reply(ident)
        assert caught.value.code == "no-engine" and "17 MiB free" in str(caught.value)
    assert daemon.process.wait(30) == 0


def test_a_drain_waits_for_all_workers(begin):
    daemon = begin()
    wait_for(daemon, "ready")
    w = daemon.connect()
    idents = [w.send("job.run", **SMALL, engine=name) for name in ("cpu", "cuda") * 20]
    w.call("ping")
    daemon.process.send_signal(signal.SIGTERM)
    codes = set()
    for ident in idents:
        try:
            w.reply(ident)
        except wire.Error as error:
            codes.add(error.code)
        except wire.Closed:
            codes.add("closed")
    assert codes <= {"shutting-down"}
    assert daemon.process.wait(30) == 0
    w.close()
