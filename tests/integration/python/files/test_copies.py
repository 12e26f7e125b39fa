"""Arrays that go from file to file as they are: byte for byte what they were, whoever copies them."""

import h5py
import numpy as np
import pytest

SHAPE = (14, 64, 512)


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(3).integers(0, 2**63, SHAPE).view("f8")  # NaNs and all


@pytest.fixture
def sources(gd, values, folder):
    gd.save(folder / "a.npy", values)
    gd.save(f"{folder}/a.npz:x", values)
    gd.save(f"{folder}/a.h5:/x", values)
    values.tofile(folder / "a.raw")
    np.save(folder / "f.npy", np.asfortranarray(values))
    values.astype(">f8").tofile(folder / "b.raw")
    return folder


def read(path):
    if ".h5" in path:
        with h5py.File(path.split(":")[0]) as f:
            return f["x"][:]
    return np.load(path.split(":")[0])["x"] if ".npz" in path else np.load(path)


@pytest.mark.parametrize("source", ["a.npy", "a.npz:x", "a.h5:/x", "a.raw:f8:14x64x512", "a.npy[3:, None]",
                                    "a.npy[::5]", "a.npy[::-1]", "f.npy", "b.raw:>f8:14x64x512", "a.npy[:, ::2]"])
def test_a_copy_has_the_bytes_of_its_source(daemon, gd, sources, values, source):
    part = source[source.index("["):] if "[" in source else ""
    want = eval(f"values{part}").view("u8")
    for target in ("r.npy", "r.npz:x", "r.h5:/x"):
        daemon.ctl("convert", "--sync", f"{sources}/{source}", f"{sources}/{target}")
        got = read(f"{sources}/{target}").view("u8")
        assert got.shape == want.shape and np.array_equal(got, want), target
        gd.save(f"{sources}/{target}", gd.open(f"{sources}/{source}"))
        assert np.array_equal(read(f"{sources}/{target}").view("u8"), want), target


def test_futures_are_jobs_of_the_daemon_and_progress_is_told(gd, sources, values):
    x = gd.open(sources / "a.npy")
    future = gd.submit(x, to=str(sources / "r.npy"))
    assert np.array_equal(gd.asarray(future.result()).view("u8"), values.view("u8"))
    assert future.stats["engine"] != "client"


def test_booleans_are_made_true_or_false(daemon, folder):
    np.arange(100_000, dtype="u1").tofile(folder / "b.raw")
    daemon.ctl("convert", f"{folder}/b.raw:bool:100000", f"{folder}/b.npy")
    got = np.load(folder / "b.npy")
    assert got.dtype == bool and set(got.view("u1")) == {0, 1}
