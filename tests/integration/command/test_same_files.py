"""Whole files of one job are the same bytes whatever the pool and the threads: nothing in them says
who made them, when, or which part was ready first."""

import hashlib
import shutil

import h5py
import numpy as np
import pytest

A = np.random.default_rng(5).normal(size=(700, 1100)).cumsum(axis=1).astype("f4").round(2)
A[100:300, :500] = 0  # chunks that need not be stored
PLAIN = ["-o", "p=new.h5:/g/r", "-o", "q=old.h5:/g/r", "-o", "r=old.h5:/x", "-o", "s=new.npz:r",
         "-o", "t=old.npz:r", "-o", "u=new.npy"]
SIX = "; ".join(f"{name} = a * 2 + a" for name in "pqrstu")

# Each command makes new files, or adds to those that are there, the "old" ones.
COMMANDS = {
    "plain": ["run", SIX, "a=a.npy", *PLAIN],
    "gzip": ["run", "p = a * 2; q = -a; r = a + 1; s = a - 1", "a=a.npy", "-o", "p=z.h5:/g/r", "-o",
             "q=old.h5:/z", "-o", "r=z.nc:/r", "-o", "s=z.zarr:/g/r", "--chunks", "64x100",
             "--compress", "gzip:1", "--shuffle"],
    "two in a file": ["run", "p = float64(a); q = float64(a) + 1", "a=a.npy", "-o", "p=two.h5:/p",
                      "-o", "q=two.h5:/q", "--chunks", "7x1100"],
    "shards": ["run", "a * 2", "a=a.npy", "-o", "s.zarr", "--chunks", "20x100", "--shards",
               "200x500", "--compress", "zstd:1"],
    "across": ["transpose", "a.npy", "-o", "t.h5:/r", "--chunks", "64x100", "--compress", "zstd:1"],
    "shards across": ["transpose", "a.npy", "-o", "u.zarr", "--chunks", "20x100", "--shards",
                      "200x500", "--shards", "40x500"],  # shards in shards
    "deflated": ["run", "a * 2", "a=a.npy", "-o", "d.npz:r", "--compress", "gzip:1"],
}


def digests(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def test_files_are_the_same_bytes(start, tmp_path):
    begun = tmp_path / "begun"
    begun.mkdir()
    np.save(begun / "a.npy", A)
    with h5py.File(begun / "old.h5", "w") as f:
        f["x"] = np.arange(1000.)
        f["g/y"] = np.arange(10)
    np.savez(begun / "old.npz", x=np.arange(1000.))
    wants = None
    for nth, (pool, threads) in enumerate([("2M", 1), ("16M", 4)]):
        daemon = start(pool=pool, threads=threads, engine="cpu")
        folder = tmp_path / str(nth)
        shutil.copytree(begun, folder)
        for name, command in COMMANDS.items():
            daemon.ctl(*command, cwd=folder)
        got = digests(folder)
        if wants is None:
            wants = got
            assert len(wants) > 100
        assert got == wants, {name for name in {*got, *wants} if got.get(name) != wants.get(name)}
    with h5py.File(folder / "two.h5") as f:
        assert np.array_equal(f["p"], A) and np.array_equal(f["q"], A.astype("f8") + 1)
