"""A worker that was taken over: what its code would try fails, and nothing that it may do anyway is of
use against the broker, other workers or what clients handed over for reading."""

import fcntl
import os
import pathlib
import re
import signal
import time

import numpy as np
import pytest

import conftest
import wire
from users import NOBODY, as_user, needs_users
from wire import described, file_at

pytestmark = pytest.mark.skipif(conftest.IS_SANITIZED, reason="sanitizers look into processes")


def escapes(daemon):
    """What was tried, and what was not refused, of all jobs with the label fault:escape."""
    found = re.findall(r"escape: (\d+) of (\d+) attempts succeeded", daemon.text())
    return sum(int(n) for n, _ in found), sum(int(n) for _, n in found)


def attach_for_reading(w, region):
    """Its memory once more, by a descriptor that is open for reading alone."""
    fcntl.fcntl(region.fd, wire.F_ADD_SEALS, wire.F_SEAL_FUTURE_WRITE)
    fd = os.open(f"/proc/self/fd/{region.fd}", os.O_RDONLY)
    try:
        return w.call("region.attach", fds=[fd], size=region.size, writable=False)["region"]
    finally:
        os.close(fd)


@pytest.mark.plain
@pytest.mark.parametrize("n", [64, 1 << 19])  # by the thread beside the loop, and in tiles
def test_a_worker_that_was_taken_over(start, folder, n):
    daemon = start(worker=conftest.FAULTY_WORKER)
    a = np.arange(n, dtype="f4")
    a.tofile(folder / "a.raw")
    with daemon.connect() as w, open(folder / "a.raw", "rb") as file:
        region = wire.Region(w, max(a.nbytes, 4096))
        region.array("f4", a.shape)[:] = a
        reading = {"kind": "region", "id": attach_for_reading(w, region), "offset": 0}
        reply = w.call("job.run", fds=[file.fileno()], label="fault:escape",
                       args={"a": described(a, reading), "b": described(a, file_at(0))},
                       outputs=[{"expr": "sum(a) + sum(b)"}])
        assert wire.result_array(reply["outputs"][0])[()] == 2 * a.sum(dtype="f8")
        n_escapes, n_attempts = escapes(daemon)
        assert n_escapes == 0, daemon.text()
        assert n_attempts >= 30 + (n > 64)  # with each of what it was handed


def status_of(path):
    return dict(re.findall(r"^(\w+):[ \t]*(.*)$", path.read_text(), re.M))


@pytest.mark.plain
@pytest.mark.parametrize("engine", ["cpu", "cuda"])
def test_every_thread_is_confined(start, engine):
    daemon = start(engine=engine)
    with daemon.connect() as w:
        w.compute("a + 1", a=np.arange(3))
        for pid in (daemon.process.pid, daemon.worker_pid()):
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                status = status_of(task / "status")
                assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), status["Name"]


def look_into(pid):
    """What a process of the same user sees of another."""
    seen = []
    for name in ("mem", "maps", "environ", "fd/0", "cwd"):
        try:
            path = f"/proc/{pid}/{name}"
            os.readlink(path) if name in ("fd/0", "cwd") else os.close(os.open(path, os.O_RDONLY))
            seen.append(name)
        except OSError:
            pass
    return seen


@pytest.mark.plain
@needs_users
def test_processes_of_the_same_user_do_not_look_in(start):
    daemon = start(user=NOBODY)
    assert as_user(NOBODY, look_into, daemon.process.pid) == []
    assert as_user(NOBODY, look_into, daemon.worker_pid()) == []
    with daemon.connect() as w:
        counts = daemon.counts()  # what it tells of itself it still knows
        assert counts["descriptors"] > 0
        assert w.call("server.info")["engines"][0]["overhead_bytes"] > 0
        assert w.compute("a + 1", a=np.arange(3))[2] == 3


@pytest.mark.plain
def test_a_signal_from_inside_still_tells_what_failed(start):
    """abort() signals its own thread, which a filter of signals to others must leave."""
    daemon = start(worker=conftest.FAULTY_WORKER)
    with daemon.connect() as w:
        with pytest.raises(wire.Error) as caught:
            w.call("job.run", label="fault:abort", args={"a": wire.argument(np.arange(3))},
                   outputs=[{"expr": "a"}])
        assert caught.value.code == "poisoned"
    assert f"signal {signal.SIGABRT.value}" in daemon.text() or "SIGABRT" in daemon.text()


@pytest.mark.plain
def test_the_drivers_helper_is_started_before_that(start, folder):
    """Once, where a device's worker is there and the device's files are not."""
    if os.path.exists("/dev/nvidia-uvm"):
        pytest.skip("the files of the device are there")
    helper, said = folder / "nvidia-modprobe", folder / "said"
    helper.write_text(f"#!/bin/sh\necho \"$@\" >>{said}\ngrep -E 'NoNewPrivs|Seccomp:' /proc/$$/status >>{said}\n")
    helper.chmod(0o755)
    start(engine="cuda", env={"PATH": f"{folder}:{os.environ['PATH']}"})
    words = said.read_text().split()
    assert words == ["-c0", "-u", "NoNewPrivs:", "0", "Seccomp:", "0"]
    said.unlink()
    start(engine="cpu", env={"PATH": f"{folder}:{os.environ['PATH']}"})
    assert not said.exists()
