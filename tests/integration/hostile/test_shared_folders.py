"""Folders that others can write to: whatever another user has put there under the names of journals,
outputs and temporaries, nobody's files elsewhere are touched, and what a killed client has left is
removed by its own user alone."""

import copy
import os
import re
import signal
import subprocess

import h5py
import numpy as np
import pytest

import conftest
import storm
from test_broker import until
from users import as_user, needs_users

VICTIM, MALLORY = 65532, 65533
pytestmark = needs_users


class Shared:
    """A folder as /tmp is, one of the victim's, and one of the attacker's."""

    def __init__(self, tmp_path, socket):
        self.path, self.home, self.theirs = (tmp_path / name for name in ("shared", "home", "theirs"))
        for folder, mode, owner in ((self.path, 0o1777, 0), (self.home, 0o755, VICTIM),
                                    (self.theirs, 0o755, MALLORY)):
            folder.mkdir()
            os.chown(folder, owner, owner)
            os.chmod(folder, mode)
        for folder in [tmp_path, *tmp_path.parents]:
            if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o001:
                os.chmod(folder, folder.stat().st_mode | 0o011)
        self.socket = str(socket)

    def precious(self, name, content=b""):
        path = self.home / name
        path.write_bytes(content)
        os.chown(path, VICTIM, VICTIM)
        return path

    def ctl(self, *words, cwd=None, uid=VICTIM, wait=True):
        process = subprocess.Popen([str(conftest.CTL), *map(str, words)], cwd=cwd or self.path,
                                   env={**os.environ, "GPUARRAYD_SOCKET": self.socket},
                                   user=uid, group=uid, extra_groups=[], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if not wait:
            return process
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def hidden(self):
        return sorted(name for name in os.listdir(self.path) if name.startswith("."))


@pytest.fixture
def shared(daemon, tmp_path):
    return Shared(tmp_path, storm.open_to_all(daemon).socket)


@pytest.fixture
def matrices(shared):
    for name, array in (("a", np.ones((20, 30))), ("b", np.ones((30, 20))), ("c", np.zeros((20, 20)))):
        path = shared.path / f"{name}.npy"
        np.save(path, array)
        os.chown(path, VICTIM, VICTIM)
    return ["matmul", "a.npy", "b.npy", "-o", "c.npy", "--beta", "1"]


@pytest.mark.parametrize("is_sticky", [True, False])
def test_no_link_is_followed_to_a_journal(shared, matrices, is_sticky):
    if not is_sticky:
        os.chmod(shared.path, 0o777)
    victims = shared.precious("empty")
    journal = shared.path / "c.npy.journal"
    as_user(MALLORY, os.symlink, victims, journal)
    done = shared.ctl(*matrices)
    assert done.returncode == 1 and "c.npy.journal" in done.stderr
    assert victims.exists() and not victims.stat().st_size
    assert not np.load(shared.path / "c.npy").any()
    as_user(MALLORY, os.unlink, journal)
    as_user(MALLORY, os.symlink, shared.home / "made", journal)
    assert shared.ctl(*matrices).returncode == 1
    assert not (shared.home / "made").exists()


def test_a_journal_of_somebody_else_is_none(shared, matrices):
    os.chmod(shared.path, 0o777)
    journal = shared.path / "c.npy.journal"

    def plant():
        journal.touch()
        journal.chmod(0o666)

    as_user(MALLORY, plant)
    done = shared.ctl(*matrices)
    assert done.returncode == 1 and "another user" in done.stderr and "permission-denied" in done.stderr
    assert journal.exists() and not np.load(shared.path / "c.npy").any()
    as_user(MALLORY, journal.unlink)
    os.link(shared.precious("empty"), journal)
    assert shared.ctl(*matrices).returncode == 1 and journal.exists()
    journal.unlink()
    assert shared.ctl(*matrices).returncode == 0
    assert np.load(shared.path / "c.npy")[0, 0] == 30 and not journal.exists()


@pytest.mark.parametrize("target", ["o.npy", "o.raw", "o.h5"])
def test_a_link_of_somebody_else_is_not_a_target(shared, target):
    np.save(shared.path / "x.npy", np.arange(10.0))
    victims, dataset = shared.home / target, ":d" if target.endswith("h5") else ""
    if not dataset:
        shared.precious(target, b"precious")

    def is_untouched():
        return victims.read_bytes() == b"precious" if not dataset else not victims.exists()

    words = ["run", "x + 1", "x=x.npy", "-o", target + dataset]
    as_user(MALLORY, os.symlink, victims, shared.path / target)
    done = shared.ctl(*words)
    assert done.returncode == 1 and is_untouched()
    assert "symbolic link of somebody else" in done.stderr and "permission-denied" in done.stderr
    (shared.path / target).unlink()
    # through another link, which is the victim's own
    as_user(MALLORY, os.symlink, victims, shared.path / "between")
    mine = shared.home / f"mine-{target}"
    as_user(VICTIM, os.symlink, shared.path / "between", mine)
    words[-1] = f"{mine}{dataset}"
    assert shared.ctl(*words).returncode == 1 and is_untouched()
    # what is documented: a link of one's own stays, and the file behind it is replaced
    (shared.path / "between").unlink()
    as_user(VICTIM, os.symlink, victims, shared.path / "between")
    done = shared.ctl(*words)
    assert done.returncode == 0, done.stderr
    assert mine.is_symlink() and (shared.path / "between").is_symlink() and not is_untouched()


def with_slow_worker(shared):
    """Another daemon, whose jobs wait when they say so, and the folder's users beside it."""
    daemon = storm.open_to_all(conftest.Daemon(worker=conftest.FAULTY_WORKER))
    slow = copy.copy(shared)
    slow.socket = str(daemon.socket)
    return daemon, slow


def left_of_a_killed(shared):
    """The names of what a client that writes new files of every kind leaves when it is killed."""
    outputs = dict(a="o.npy", b="o.raw", c="o.npz:d", d="o.h5:d", e="o.nc:d", f="out.zarr", g="old.h5:/d")
    words = ["run", "; ".join(f"{name} = x + 1" for name in outputs), "x=x.npy", "--label", "fault:hang"]
    daemon, slow = with_slow_worker(shared)
    try:
        process = slow.ctl(*words, *[word for name, path in outputs.items() for word in ("-o", f"{name}={path}")],
                           wait=False)
        until(lambda: process.poll() is not None or shared.hidden())
        until(lambda: "running" in slow.ctl("jobs").stdout)
        assert shared.hidden() and shared.ctl("run", "x + 1", "x=x.npy", "-o", "other.zarr").returncode == 0
        assert len(shared.hidden()) == 1, "it is still being written"
        process.send_signal(signal.SIGKILL)
        process.communicate()
    finally:
        daemon.kill()
        daemon.log.close()
    return shared.hidden()


def test_what_a_killed_client_left_is_removed_by_its_user(shared):
    np.save(shared.path / "x.npy", np.arange(10.0))
    with h5py.File(shared.path / "old.h5", "w"):
        pass
    os.chown(shared.path / "old.h5", VICTIM, VICTIM)
    left, = left_of_a_killed(shared)
    assert left.startswith(".out.zarr.") and sorted(os.listdir(shared.path)) == [left, "old.h5", "other.zarr", "x.npy"]
    with h5py.File(shared.path / "old.h5") as f:
        assert [*f] == [".gpuarrayd-1"], "the dataset that was begun"
    tag = left.removeprefix(".out.zarr.")
    # a file, where the file system has none without a name
    shared.precious("begun").rename(shared.path / f".out.npy.{tag}")
    # nothing else goes: other names, other owners, a process that lives, another machine, a link
    kept = [".out.h5.abcdefgh", f".out.h5.{tag}x", f"out.{tag}", f".{tag}",
            ".a.h5." + tag.replace(f"gad-{VICTIM}-", f"gad-{MALLORY}-"),
            ".b.h5." + re.sub(r"^(gad-\d+-)[0-9a-f]", lambda m: m[1] + "g", tag),
            ".c.h5." + re.sub(r"^(gad-\d+-)([0-9a-f]{15})(.)", lambda m: m[1] + m[2] + "0123456789abcdef"[
                15 - int(m[3], 16)], tag)]
    for name in kept:
        shared.precious(name).rename(shared.path / name)
    theirs = f".theirs.h5.{tag}"
    as_user(MALLORY, (shared.path / theirs).touch)
    victims = shared.precious("empty")
    link = f".link.h5.{tag}"
    as_user(MALLORY, os.symlink, victims, shared.path / link)
    assert shared.ctl("run", "x + 1", "x=x.npy", "-o", "new.npy", uid=MALLORY).returncode == 0
    assert left in shared.hidden(), "another user's"
    assert shared.ctl("run", "x + 1", "x=x.npy", "-o", "newer.npy").returncode == 0
    assert left not in shared.hidden() and f".out.npy.{tag}" not in shared.hidden()
    assert {*kept, theirs, link} <= {*os.listdir(shared.path)} and victims.exists()


def test_hidden_datasets_of_killed_clients_are_deleted(shared):
    np.save(shared.path / "x.npy", np.arange(10.0))
    with h5py.File(shared.path / "out.h5", "w") as f:
        f["kept"] = np.ones(3)
        f[".gpuarrayd-mine"] = 1
    os.chown(shared.path / "out.h5", VICTIM, VICTIM)

    def hidden():
        with h5py.File(shared.path / "out.h5", locking=False) as f:
            return sorted(name for name in f if name.startswith("."))

    daemon, slow = with_slow_worker(shared)
    process = slow.ctl("run", "x + 1", "x=x.npy", "-o", "out.h5:d", "--label", "fault:hang", wait=False)
    until(lambda: "running" in slow.ctl("jobs").stdout)
    assert len(hidden()) == 2
    assert shared.ctl("run", "x + 2", "x=x.npy", "-o", "out.h5:beside").returncode == 0
    assert len(hidden()) == 2, "it is still being written"
    worker = daemon.worker_pid()
    process.kill()
    process.communicate()
    # The worker has its tile in hand yet, and may write there.
    assert shared.ctl("run", "x + 4", "x=x.npy", "-o", "out.h5:between").returncode == 0
    assert len(hidden()) == 2
    daemon.kill()
    daemon.log.close()
    until(lambda: not os.path.exists(f"/proc/{worker}"))
    assert len(hidden()) == 2
    assert shared.ctl("run", "x + 3", "x=x.npy", "-o", "out.h5:last").returncode == 0
    assert hidden() == [".gpuarrayd-mine"]
    with h5py.File(shared.path / "out.h5") as f:
        assert f["beside"][0] == 2 and f["last"][0] == 3 and f["kept"][0] == 1 and f["between"][0] == 4
