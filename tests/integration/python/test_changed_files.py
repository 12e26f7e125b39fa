"""A file that changes while a loader reads it is dataset-changed and named, whatever it holds and
however it changes; nothing is skipped for it."""

import os
import tempfile

import h5py
import numpy as np
import pytest

N = 600
X = np.arange(N * 6, dtype="f4").reshape(N, 6)


def put_h5(path, rows, **how):
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=rows, **how)


def put_zarr(path, rows, **how):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(path, shape=rows.shape, dtype=rows.dtype, overwrite=True, **how)[...] = rows


def each_third(put):
    for i in range(3):
        put(f"m{i}", X[i * 200:i * 200 + 200])


def packed_h5(name, rows):
    put_h5(name + ".h5", rows, chunks=(64, 6), compression="gzip")


SOURCES = {  # how it is made, as what it is opened, the file that changes
    "npy": (lambda: each_third(lambda name, rows: np.save(name, rows)), "m*.npy", "m2.npy"),
    "npz": (lambda: each_third(lambda name, rows: np.savez_compressed(name, x=rows)), "m*.npz:x", "m2.npz"),
    "h5": (lambda: each_third(packed_h5), "m*.h5:/x", "m2.h5"),
    "plain h5": (lambda: each_third(lambda name, rows: put_h5(name + ".h5", rows)), "m*.h5:/x", "m2.h5"),
    "one h5": (lambda: packed_h5("m", X), "m.h5:/x", "m.h5"),
    "zarr": (lambda: put_zarr("m.zarr", X, chunks=(100, 6)), "m.zarr", "m.zarr/c/5/0"),
    "shards": (lambda: put_zarr("m.zarr", X, chunks=(50, 6), shards=(200, 6)), "m.zarr", "m.zarr/c/2/0"),
    "stores": (lambda: each_third(lambda name, rows: put_zarr(name + ".zarr", rows, chunks=(50, 6))),
               "m*.zarr", "m2.zarr/c/1/0"),
}


def cut(path):
    os.truncate(path, os.path.getsize(path) // 2)


def remove(path):
    os.unlink(path)


def replace(path):
    with open(path, "rb") as old, open(path + ".new", "wb") as new:
        new.write(old.read())
    os.rename(path + ".new", path)


def rewrite(path):
    with open(path, "r+b") as file:
        file.write(bytes(100))


@pytest.mark.parametrize("source", SOURCES)
def test_a_file_that_changes_is_named(gd, folder, monkeypatch, source):
    put, spec, victim = SOURCES[source]
    for way in (cut, remove, replace, rewrite):
        for how in ({"memory": "4K"}, {"memory": "8K", "shuffle": True, "plan": "direct"}):
            monkeypatch.chdir(tempfile.mkdtemp(dir=folder))
            put()
            loader = gd.DataLoader(gd.Dataset(x=spec), 10, prefetch=1, on_error="skip", **how)
            batches = iter(loader)
            assert next(batches).index == 0
            way(victim)
            with pytest.raises(gd.Error, match=victim.split("/")[0]) as caught:
                list(map(len, batches))
            assert caught.value.code == "dataset-changed" and loader.skipped == 0
