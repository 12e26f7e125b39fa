"""Commands that are killed in the middle of an output, of every format: nothing that has a name of its own is there
before it is whole, what was there is as it was, and the next output of the same name removes what was left."""

import io
import os
import subprocess

import h5py
import numpy as np
import pytest
import zarr

import conftest

ROWS, COLUMNS = 3000, 100
A = np.arange(ROWS * COLUMNS, dtype="f8").reshape(ROWS, COLUMNS)


def of_hdf5(path):
    with h5py.File(path, locking=False) as file:
        return {name: file[name][()] for name in file if not name.startswith(".")}


def of_npz(path):
    with np.load(path) as archive:
        return dict(archive)


def of_zarr(path):
    node = zarr.open(str(path), mode="r")
    return {"": node[...]} if isinstance(node, zarr.Array) else {name: node[name][...] for name in node}


READ = {".npy": lambda path: {"": np.load(path)}, ".npz": of_npz, ".h5": of_hdf5, ".nc": of_hdf5, ".zarr": of_zarr,
        ".raw": lambda path: {"": np.fromfile(path).reshape(ROWS, COLUMNS)}}
KINDS = [("o.npy",), ("o.raw",), ("o.npz:d",), ("o.npz:d", "--compress", "gzip:1"), ("o.h5:/d",),
         ("o.h5:/d", "--chunks", "50x100", "--compress", "gzip:1"), ("o.nc:/d",), ("o.zarr",),
         ("o.zarr:/d", "--chunks", "50x100", "--shards", "100x100")]


def command(daemon, folder, *words):
    return subprocess.Popen([str(conftest.CTL), "run", "a + 1", "a=-", "-o", *words], stdin=subprocess.PIPE, cwd=folder,
                            stderr=subprocess.PIPE, env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})


def killed(daemon, folder, data, *words):
    with command(daemon, folder, *words) as process:
        process.stdin.write(data[:len(data) * 3 // 4])
        process.stdin.flush()  # it has been read but for what a pipe holds: there are results
        assert process.poll() is None
        process.kill()


@pytest.mark.parametrize("words", KINDS, ids=" ".join)
def test_an_output_that_is_killed_in_the_middle(daemon, folder, words):
    file = io.BytesIO()
    np.save(file, A)
    data = file.getvalue()
    path = folder / words[0].partition(":")[0]
    for before in ({}, {"": 5.0, "old": np.arange(9.0), "d": np.arange(4.0)}):
        member = words[0].partition(":")[2].strip("/")
        first = [name for name in before if (name != "") == (member != "")]
        for name in first:
            np.save(folder / "x.npy", A * 3 if name in ("", "d") else before[name])
            target = f"{path.name}{':' + name if name else ''}"
            subprocess.run([str(conftest.CTL), "run", "x", "x=x.npy", "-o", target], cwd=folder, check=True,
                           env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})
            (folder / "x.npy").unlink()
        was = READ[path.suffix](path) if path.exists() else None
        for _ in range(2):
            killed(daemon, folder, data, *words)
            left = {name for name in os.listdir(folder) if not name.startswith(f".{path.name}.gad-")}
            assert left == ({path.name} if was else set())
            now = READ[path.suffix](path) if path.exists() else None
            assert (was is None and now is None) or (sorted(now) == sorted(was) and all(
                np.array_equal(now[name], was[name]) for name in was))
        with command(daemon, folder, *words) as process:
            _, said = process.communicate(data, timeout=60)
            assert process.returncode == 0, said
        now = READ[path.suffix](path)
        assert np.array_equal(now[member], A + 1) and ("old" in now) == ("old" in first)
        assert os.listdir(folder) == [path.name] and not list(folder.rglob("*.gad-*"))
        if path.suffix in (".h5", ".nc"):
            with h5py.File(path) as file:
                assert all(not name.startswith(".") for name in file)


def test_results_in_an_archive_remove_what_was_left_of_one(daemon, folder):
    """They are made in a folder beside their place, which is what stays of who is killed meanwhile."""
    file = io.BytesIO()
    np.save(file, A)
    killed(daemon, folder, file.getvalue(), "o.zarr")
    left, = os.listdir(folder)
    (folder / left).rename(folder / left.replace(".o.zarr.", ".m.npz."))
    np.save(folder / "t.npy", np.random.default_rng(1).normal(size=(6, 7, 8)))
    daemon.ctl("cp", "t.npy", "--rank", "2", "-o", "m.npz", cwd=folder)
    assert sorted(os.listdir(folder)) == ["m.npz", "t.npy"]
    assert "weights" in of_npz(folder / "m.npz")
