"""Files that others have: outputs that replace one while somebody reads it or the client is killed,
and HDF5 files that another program has locked."""

import json
import os
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

import conftest

LONG = "tanh(exp(sin(exp(sin(a)))))"

# Opens x.h5 in a mode, says so, and keeps it open until its input ends.
HOLDER = """
import sys, h5py
mode, path = sys.argv[1:3]
f = h5py.File(path, "r+" if mode == "swmr" else mode, libver=("v110", "v110"))
if mode == "swmr":
    f.swmr_mode = True
print("open", flush=True)
for line in sys.stdin:
    f["rows"].resize(f["rows"].shape[0] + 1, axis=0)
    f["rows"][-1] = float(line)
    f.flush()
    print("written", flush=True)
"""


class Holder:
    def __init__(self, mode, path):
        self.process = subprocess.Popen([sys.executable, "-c", HOLDER, mode, str(path)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "open\n"
        self.name = f"(process {self.process.pid})"

    def append(self, value):
        self.process.stdin.write(f"{value}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "written\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate(timeout=20)
        assert self.process.returncode == 0


def begin(daemon, folder, *words, env=None):
    return subprocess.Popen([conftest.CTL, *words], cwd=folder, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE,
                            env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket, **(env or {})})


@pytest.fixture
def shared(folder):
    rows = np.arange(12.0).reshape(3, 4)
    with h5py.File(folder / "x.h5", "w", libver=("v110", "v110")) as f:
        f["plain"] = rows
        f.create_dataset("rows", data=rows, chunks=(1, 4), maxshape=(None, 4))
        f.create_dataset("packed", data=rows, chunks=(2, 4), compression="gzip")
    np.save(folder / "a.npy", rows)
    return folder, rows


def read(daemon, folder, source, env=None):
    done = daemon.ctl("run", "a", f"a={source}", "--json", check=False, cwd=folder, env=env or {})
    outcome = json.loads(done.stdout)
    if done.returncode:
        return outcome["error"]
    output, = outcome["outputs"]
    return np.array(output["data"]).reshape(output["shape"])


def test_a_file_of_a_writer_is_busy(daemon, shared):
    """As a source at once, as a destination after some patience; file and holder are named."""
    folder, rows = shared
    with Holder("r+", folder / "x.h5") as holder:
        writing = begin(daemon, folder, "run", "a", "a=a.npy", "-o", "x.h5:/r")
        for source in ("x.h5:/plain", "x.h5:/packed[1:]", "x.h5:/rows[0]"):
            error = read(daemon, folder, source)
            assert error["code"] == "busy" and error["argument"] == source, error
            assert "'x.h5' is locked by" in error["message"] and holder.name in error["message"]
            assert holder.name in error["found"] and "writes" in error["expected"], error
        said = writing.communicate(timeout=30)[1]
        assert writing.returncode == 1 and "[busy]" in said and holder.name in said, said
    assert np.array_equal(read(daemon, folder, "x.h5:/packed"), rows)
    with h5py.File(folder / "x.h5") as f:
        assert sorted(f) == ["packed", "plain", "rows"]


def test_a_reader_keeps_writers_out_and_lets_readers_in(daemon, shared):
    folder, rows = shared
    with Holder("r", folder / "x.h5") as holder:
        writing = begin(daemon, folder, "run", "a", "a=a.npy", "-o", "x.h5:/r")
        assert np.array_equal(read(daemon, folder, "x.h5:/packed[1]"), rows[1])
        end = time.monotonic() + 0.5
        while time.monotonic() < end and writing.poll() is None:
            time.sleep(0.05)
        assert writing.poll() is None  # it waits
    said = writing.communicate(timeout=30)[1]
    assert writing.returncode == 0, said
    assert np.array_equal(read(daemon, folder, "x.h5:/r"), rows) and holder.process.returncode == 0


def test_a_writer_that_lets_others_read(daemon, shared):
    """HDF5's SWMR: what is written so far is read, by every way to the elements."""
    folder, rows = shared
    with Holder("swmr", folder / "x.h5") as holder:
        for n in range(3):
            want = np.vstack([rows] + [np.full(4, float(i)) for i in range(n)])
            assert np.array_equal(read(daemon, folder, "x.h5:/rows"), want)
            assert np.array_equal(read(daemon, folder, "x.h5:/rows[::-1]"), want[::-1])
            assert np.array_equal(read(daemon, folder, "x.h5:/packed[::2]"), rows[::2])
            assert np.array_equal(read(daemon, folder, "x.h5:/plain"), rows)
            holder.append(n)


@pytest.mark.parametrize("setting, is_busy",
                         [("FALSE", False), ("BEST_EFFORT", True), ("TRUE", True)])
def test_hdf5s_own_setting_decides_about_locks(daemon, shared, setting, is_busy):
    folder, rows = shared
    env = {"HDF5_USE_FILE_LOCKING": setting}
    with h5py.File(folder / "y.h5", "w") as f:  # an old format, which has no marks of writers
        f["plain"] = rows
    with Holder("r+", folder / "y.h5"):
        got = read(daemon, folder, "y.h5:/plain", env)
        assert got["code"] == "busy" if is_busy else np.array_equal(got, rows), got


# Replacing --------------------------------------------------------------------------------------

def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("target", ["old.npy", "link.npy", "old.raw", "x.h5:/plain"])
def test_a_killed_client_leaves_the_old_file(daemon, shared, target):
    folder, rows = shared
    n = 64 << 20
    with open(folder / "big.raw", "wb") as f:
        f.truncate(4 * n)
    np.save(folder / "old.npy", rows)
    (folder / "old.raw").write_bytes(b"old")
    os.symlink("old.npy", folder / "link.npy")
    path = folder / target.split(":")[0]
    before, inode, names = path.read_bytes(), path.stat().st_ino, sorted(os.listdir(folder))
    running = begin(daemon, folder, "run", LONG, f"a=big.raw:f4:{n}", "-o", target)
    wait_for(lambda: daemon.counts()["jobs_running"] == 1 or running.poll() is not None)
    assert running.poll() is None
    running.send_signal(signal.SIGKILL)
    running.communicate()
    wait_for(lambda: daemon.counts()["jobs_running"] == 0)
    assert sorted(os.listdir(folder)) == names and path.stat().st_ino == inode
    if target.endswith("/plain"):  # a hidden dataset may stay; what was there is there
        assert np.array_equal(read(daemon, folder, target), rows)
    else:
        assert path.read_bytes() == before


def test_readers_keep_the_old_file_and_rights_stay(daemon, shared):
    """At every moment the name leads to the whole old or the whole new file."""
    folder, rows = shared
    old, new = np.zeros(1 << 20, "f4"), np.ones(1 << 20, "f4")
    np.save(folder / "real.npy", old)
    np.save(folder / "new.npy", new)
    os.chmod(folder / "real.npy", 0o604)
    os.symlink("real.npy", folder / "link.npy")
    mapped = np.load(folder / "real.npy", mmap_mode="r")
    with open(folder / "link.npy", "rb") as reader:
        running = begin(daemon, folder, "run", "a", "a=new.npy", "-o", "link.npy")
        while running.poll() is None:
            seen = np.load(folder / "link.npy")
            assert np.array_equal(seen, old) or np.array_equal(seen, new)
        assert running.returncode == 0, running.communicate()
        assert np.array_equal(np.load(reader), old)
    assert np.array_equal(mapped, old) and np.array_equal(np.load(folder / "real.npy"), new)
    assert (folder / "link.npy").is_symlink()
    assert (folder / "real.npy").stat().st_mode & 0o777 == 0o604
    running.communicate()
