"""Files of a mount that does not answer: nobody else's descriptors and memory stay behind them, and who
hands them over has a bound."""

import contextlib
import os
import pathlib
import time

import numpy as np
import pytest

import storm
import wire
from hanging_mount import HangingMount, can_mount
from users import NOBODY, as_user

pytestmark = pytest.mark.skipif(not can_mount(), reason="needs root, and FUSE")


def hand_over(path, folder):
    """Again and again, on new connections; each is refused, and closed by the daemon. Not by us: that
    would hang, too."""
    fd = os.open(f"{folder}/a.raw", os.O_RDWR)
    a = {"dtype": "<f8", "shape": [1 << 20], "at": wire.file_at(0)}
    while True:
        with contextlib.suppress(wire.Error, wire.Closed, OSError), wire.Wire(path, timeout=0.3) as w:
            for _ in range(20):
                with contextlib.suppress(wire.Error):
                    w.call("job.run", fds=[fd], args={"a": a}, outputs=[{"expr": "sum(a)"}])


def links(pid):
    found = []
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(os.readlink(entry))
    return found


def attach_and_leave(path):
    with wire.Wire(path, timeout=20) as w:
        for _ in range(20):
            region = wire.Region(w, 1 << 20)
            a = region.array("f8", (1000,))
            a[:] = 1
            assert wire.result_array(w.run("sum(a)", a=wire.described(a, region.at()))["outputs"][0])[()] == 1000
            w.call("region.detach", region=region.id)
            os.close(region.fd)


def until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_what_hangs_is_its_owners_alone(start, folder):
    daemon = start(user=NOBODY, under=["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh"])
    storm.open_to_all(daemon)
    folder.chmod(0o755)
    pid = daemon.process.pid
    with storm.Attack(hand_over, daemon.socket, folder), HangingMount(folder, 60):
        until(lambda: sum(str(folder) in link for link in links(pid)) > 50)
        for uid in (NOBODY, storm.HONEST):
            as_user(uid, attach_and_leave, daemon.socket)
        until(lambda: not any("memfd:tests" in link for link in links(pid)))
        until(lambda: "the user's files hang" in daemon.text())
        n_hanging = sum(str(folder) in link for link in links(pid))
        assert n_hanging <= 1024 // 16 + 10
    until(lambda: not any(str(folder) in link for link in links(pid)))  # its mount has gone
    with daemon.connect() as w:
        np.testing.assert_array_equal(w.compute("a+1", a=np.arange(3.0)), np.arange(3.0) + 1)
