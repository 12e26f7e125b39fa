"""One decode serves two trainers, whatever the rows are packed in; each gets its own exact order."""

import threading
import time

import h5py
import numpy as np
import pytest

N = 2000
X = (np.arange(N * 24, dtype="f4") * 0.37).reshape(N, 4, 6)


def write_h5(path, rows, **kwargs):
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=rows, chunks=(64, 3, 6), **kwargs)


def many_h5(name, slices, axis=0, **kwargs):
    for i, one in enumerate(slices):
        write_h5(f"{name}_{i}.h5", one, **kwargs)


def write_zarr(path, rows, chunks, **kwargs):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(path, shape=rows.shape, dtype=rows.dtype, chunks=chunks, **kwargs)[...] = rows


def globbed():
    many_h5("g", np.split(X, (300, 1000)), compression="gzip")
    return "g_*.h5:/x", X


def globbed_in_other_ways():
    """Each file is packed by other filters, and only a part of each row is in the array."""
    for i, (rows, how) in enumerate(zip(np.split(X, (300, 1000)), (
            {"compression": "gzip"}, {"compression": "lzf", "shuffle": True}, {"fletcher32": True}))):
        write_h5(f"o_{i}.h5", rows, **how)
    return "o_*.h5:/x[5:1990, 1:, ::-2]", X[5:1990, 1:, ::-2]


def sliced():
    write_h5("s.h5", X, compression="gzip")
    return "s.h5:/x[1900:100:-1, 2, 1:5]", X[1900:100:-1, 2, 1:5]


def scaled():
    write_h5("so.h5", X, scaleoffset=2)
    with h5py.File("so.h5") as file:
        return "so.h5:/x", file["x"][...]


def stacked():
    for i in range(300):
        np.savez_compressed(f"n_{i}.npz", x=X[i])
    return "n_*.npz:x:stack", X[:300]


def npz():
    """A stream of several parts, which rows lie across."""
    rows = np.random.default_rng(1).integers(0, 99, (700, 1001), "i4")
    np.savez_compressed("z.npz", other=X, x=rows)
    return "z.npz:x[3:]", rows[3:]


def zarr_v2():
    write_zarr("v2.zarr", X, (100, 4, 5), zarr_format=2)
    return "v2.zarr[:, ::-1]", X[:, ::-1]


def zarr_v3():
    write_zarr("v3.zarr", X[:1500], (100, 2, 6), fill_value=0)
    return "v3.zarr", X[:1500]


def shards():
    write_zarr("sh.zarr", X, (50, 4, 6), shards=(500, 4, 6))
    return "sh.zarr", X


KINDS = [globbed, globbed_in_other_ways, sliced, scaled, stacked, npz, zarr_v2, zarr_v3, shards]


def told_since(w, before, is_known):
    """What the daemon counts of scans: it is told some times a second."""
    end = time.monotonic() + 20
    while True:
        now = w.call("server.stats")["scans"]
        told = {key: now[key] - before[key] for key in now}
        if is_known(told):
            return told
        assert time.monotonic() < end, told
        time.sleep(0.02)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_two_trainers_share_a_decode(gd, daemon, folder, monkeypatch, kind):
    monkeypatch.chdir(folder)
    source, rows = kind()
    found, ready = {}, threading.Barrier(2)

    def train(seed, loader):
        ready.wait()
        found[seed] = np.concatenate([batch["x"].copy() for batch in loader])

    with daemon.connect() as w:
        before = w.call("server.stats")["scans"]
        loaders = {seed: gd.DataLoader(gd.Dataset(x=source), 50, shuffle=True, seed=seed,
                                       memory=rows.nbytes * 2 // 3, plan="scan") for seed in (3, 8)}
        threads = [threading.Thread(target=train, args=one) for one in loaders.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        told = told_since(w, before, lambda told: told["taken"] > told["decoded"] > 0)
    for seed in (3, 8):
        order = gd.random.permutation(len(rows), seed=seed).compute()
        np.testing.assert_array_equal(found[seed], rows[order])
    assert (told["joined"], told["shared"], told["failed"]) == (2, 1, 0), told
