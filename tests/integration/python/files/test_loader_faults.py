"""What loaders do about files that change and about damaged ones, in every format and by every plan.

A file that changes while it is read is dataset-changed, and named; nothing is skipped for it. A
damaged chunk fails exactly those batches that have rows of it.
"""

import json
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


def put_linked(path, rows, **how):
    put_h5("behind.h5", rows, **how)
    with h5py.File(path, "w") as file:
        file["x"] = h5py.ExternalLink("behind.h5", "/x")


def put_virtual():
    layout = h5py.VirtualLayout(X.shape, "f4")
    for i in range(3):
        put_h5(f"v{i}.h5", X[i * 200:i * 200 + 200])
        layout[i * 200:i * 200 + 200] = h5py.VirtualSource(f"v{i}.h5", "x", (200, 6))
    with h5py.File("m.h5", "w") as file:
        file.create_virtual_dataset("x", layout)


SOURCES = {  # how it is made, as what it is opened, the file that changes
    "npy": (lambda: each_third(lambda name, rows: np.save(name, rows)), "m*.npy", "m2.npy"),
    "npz": (lambda: each_third(lambda name, rows: np.savez_compressed(name, x=rows)), "m*.npz:x", "m2.npz"),
    "h5": (lambda: each_third(packed_h5), "m*.h5:/x", "m2.h5"),
    "plain h5": (lambda: each_third(lambda name, rows: put_h5(name + ".h5", rows)), "m*.h5:/x", "m2.h5"),
    "one h5": (lambda: packed_h5("m", X), "m.h5:/x", "m.h5"),
    "linked": (lambda: put_linked("m.h5", X, chunks=(64, 6), compression="gzip"), "m.h5:/x", "behind.h5"),
    "virtual": (put_virtual, "m.h5:/x", "v2.h5"),
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
        for how in ({"memory": "4K"}, {"memory": "8K", "shuffle": True, "plan": "direct"},
                    {"memory": "4K", "shuffle": True}):
            monkeypatch.chdir(tempfile.mkdtemp(dir=folder))
            put()
            loader = gd.DataLoader(gd.Dataset(x=spec), 10, prefetch=1, on_error="skip", **how)
            batches = iter(loader)
            assert next(batches).index == 0
            way(victim)
            with pytest.raises(gd.Error, match=victim.split("/")[0]) as caught:
                list(map(len, batches))
            assert caught.value.code == "dataset-changed" and loader.skipped == 0
            assert "damaged" not in str(caught.value) and "Stale" not in str(caught.value)


@pytest.mark.parametrize("source", ["npy", "h5", "shards", "stores"])
def test_a_state_is_of_the_files_as_they_were(gd, folder, monkeypatch, source):
    monkeypatch.chdir(folder)
    put, spec, victim = SOURCES[source]
    put()
    np.save("y.npy", X)
    state = gd.DataLoader(gd.Dataset(x=spec, y="y.npy"), 10).state_dict()
    gone = gd.DataLoader(gd.Dataset(y="y.npy"), 10).state_dict()
    gd.DataLoader(gd.Dataset(x=spec, y="y.npy"), 10).load_state_dict(state)
    gd.DataLoader(gd.Dataset(x="y.npy", y=X), 10).load_state_dict(state)  # another copy
    put()
    os.utime(victim, (5, 5))  # clocks are coarse
    changed = gd.DataLoader(gd.Dataset(x=spec, y="y.npy"), 10)
    with pytest.raises(gd.errors.DatasetChanged, match="x"):
        changed.load_state_dict(state)
    np.save("y.npy", X[:100])  # of another shape, too
    with pytest.raises(gd.errors.DatasetChanged, match=r"y\.npy"):
        gd.DataLoader(gd.Dataset(y="y.npy"), 10).load_state_dict(gone)
    del state["files"]
    changed.load_state_dict(state)
    np.save("z.npy", X + 1)
    np.save("y.npy", X)
    for other in ("z.npy", X + 1, gd.open("y.npy") + 1):
        with pytest.raises(gd.errors.BadArgument, match="of other data: its 'y'"):
            gd.DataLoader(gd.Dataset(x=spec, y=other), 10).load_state_dict(state)
    del state["rows"]
    gd.DataLoader(gd.Dataset(x="z.npy", y="z.npy"), 10).load_state_dict(state)
    assert len(str(gd.DataLoader(gd.Dataset(**{f"p{i}": X for i in range(64)}), 10).state_dict())) < 512


WIDE = np.random.default_rng(1).integers(0, 1000, (N, 30)).astype("f4")


def damage(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        old = file.read(8)
        file.seek(at)
        file.write(bytes(255 - byte for byte in old))


def damaged_h5(name, rows, row):
    put_h5(name, rows, chunks=(50, 3), compression="gzip", fletcher32=True)
    with h5py.File(name) as file:
        chunk = file["x"].id.get_chunk_info_by_coord((row, 0))
    damage(name, chunk.byte_offset + chunk.size // 2)


def cut_anywhere():
    put_h5("m0.h5", X[:130])
    damaged_h5("m1.h5", X[130:], 150)


def damaged_npz():
    for i in range(3):
        np.savez_compressed(f"m{i}", x=WIDE[i * 200:i * 200 + 200])
    damage("m1.npz", os.path.getsize("m1.npz") * 9 // 10)


def damaged_shards():
    put_zarr("m.zarr", X, chunks=(40, 6), shards=(120, 6))
    damage("m.zarr/c/2/0", 30)


DAMAGED = {  # how it is made, what is in it, which rows are lost
    "m.h5:/x": (lambda: damaged_h5("m.h5", X, 250), X, range(250, 300)),
    "m.h5:/x[7:]": (lambda: damaged_h5("m.h5", X, 250), X[7:], range(243, 293)),
    "m*.h5:/x": (cut_anywhere, X, range(280, 330)),
    "m*.npz:x": (damaged_npz, WIDE, range(200, 400)),
    "m.zarr[3:]": (damaged_shards, X[3:], range(237, 277)),
}


@pytest.mark.parametrize("spec", DAMAGED)
def test_a_damaged_chunk_fails_the_batches_that_have_rows_of_it(gd, folder, monkeypatch, spec):
    monkeypatch.chdir(folder)
    put, rows, lost = DAMAGED[spec]
    put()
    shuffled = gd.random.permutation(len(rows), seed=3).compute()
    for how in ({"shuffle": False}, {"shuffle": False, "memory": "3M"}, {}, {"plan": "direct"},
                {"plan": "scan", "memory": "3M"}, {"plan": "copy", "scratch": folder}, {"plan": "resident", "memory": "3M"}):
        for prefetch in (1, 9):
            options = {"shuffle": True, "seed": 3, "memory": "32K", "on_error": "skip", "prefetch": prefetch, **how}
            loader = gd.DataLoader(gd.Dataset(x=spec), 8, **options)
            order = shuffled if options["shuffle"] else np.arange(len(rows))
            kept = [k for k in range(len(loader)) if not {*order[k * 8:k * 8 + 8]} & {*lost}]
            found = []
            for batch in loader:
                assert batch["x"].tobytes() == rows[batch.rows].tobytes()
                found.append(batch.index)
            assert found == kept and loader.skipped == len(loader) - len(kept), options
        for rank in (0, 3):  # of those, each leaves out what one process does, in whatever order of epochs
            loader = gd.DataLoader(gd.Dataset(x=spec), 8, shard=(rank, 4), **options)
            for _ in range(2):
                mine = [(batch.index, batch["x"].copy(), batch.rows) for batch in loader]
                loader.set_epoch(0)
            assert [k for k, _, _ in mine] == kept and loader.skipped == 2 * (len(loader) - len(kept)), options
            assert all(x.tobytes() == rows[own].tobytes() and list(own) == list(order[k * 8:k * 8 + 8][rank * 2:rank * 2 + 2])
                       for k, x, own in mine if k < len(rows) // 8)
    said = set()
    batches = iter(gd.DataLoader(gd.Dataset(x=spec), 8, memory="32K"))
    for _ in range((len(rows) + 7) // 8):
        try:
            next(batches)
        except gd.Error as error:
            said.add(f"{error.code} {error}")
    (text,) = said
    assert f"rows {lost[0]} to {lost[-1]} of x" in text and os.path.basename(os.getcwd()) in text


def test_the_command_leaves_damaged_batches_out_where_it_may(daemon, folder, monkeypatch):
    monkeypatch.chdir(folder)
    damaged_h5("m.h5", X, 250)
    words = "batches", f"x={folder}/m.h5:/x", "--batch-size", "8", "--bench"
    refused = daemon.ctl(*words, check=False)
    assert refused.returncode == 1 and "rows 250 to 299 of x" in refused.stderr
    assert "\n7 batches were left out" in daemon.ctl(*words, "--skip-errors").stdout
    told = json.loads(daemon.ctl(*words, "--skip-errors", "--json").stdout)
    assert (told["batches"], told["skipped"]) == (N // 8 - 7, 7)


@pytest.mark.parametrize("kind", ["lazy", "generator"])
def test_scratch_space_that_is_too_small_is_found_before(gd, folder, monkeypatch, kind):
    monkeypatch.chdir(folder)
    np.save("x.npy", X)
    made = gd.open("x.npy") * 2 if kind == "lazy" else gd.from_generator(lambda: iter([X * 2]), "f4", X.shape)
    order = gd.random.permutation(N, seed=1).compute()

    def explained(**how):
        loader = gd.DataLoader(gd.Dataset(x=made), 10, shuffle=True, seed=1, scratch=folder, **how)
        assert np.array_equal(np.concatenate([batch["x"].copy() for batch in loader]), X[order] * 2)
        assert os.listdir(folder) == ["x.npy"]
        return loader.explain()

    assert "note" not in explained(memory="12K")
    assert "note      x is computed into memory" in explained(memory="20K", scratch_bytes="10K")
    with pytest.raises(gd.errors.NoSpace, match="may be used") as caught:
        explained(memory="12K", scratch_bytes="10K")
    assert (caught.value.argument, caught.value.found) == ("scratch", "10240 bytes")
    raw = gd.DataLoader(gd.Dataset(x="x.npy"), 10, shuffle=True, memory="4K", scratch=folder)
    assert "plan      scan" in raw.explain()  # there is nothing to be copied
    raw = gd.DataLoader(gd.Dataset(x="x.npy"), 10, shuffle=True, memory="4K", scratch=folder, plan="copy")
    assert "note      nothing is copied" in raw.explain()
