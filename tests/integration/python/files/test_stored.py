"""New HDF5 datasets in chunks, packed on all processors: what h5py, hdf5plugin and netCDF4 read is
what was computed; what cannot be done is said, and nothing half-written stays."""

import os
import subprocess
import sys

import h5py
import hdf5plugin
import numpy as np
import pytest

HOW = [
    dict(chunks=(100, 90)),
    dict(compression="gzip"),
    dict(compression=9, shuffle=True, chunks=(64, 3)),
    dict(compression="zstd", compression_opts=1, shuffle=True),
    dict(compression="lzf", shuffle=True, fletcher32=True),
    dict(compression="lz4"),
    dict(compression="blosc", chunks=(7, 400), sync=True),
    dict(compression="blosc:zstd:3", chunks=(301, 1)),
    dict(compression="szip"),
    dict(compression="bitshuffle"),
    dict(compression="bitshuffle:zstd"),
    dict(compression="bz2:3", shuffle=True),
    dict(fletcher32=True),
]


@pytest.mark.parametrize("how", HOW, ids=str)
def test_are_read_by_h5py(gd, tmp_path, how):
    a = np.random.default_rng(2).integers(0, 100, (301, 400)).astype("f4")
    path = f"{tmp_path}/a.h5"
    wanted = {dtype: a.astype(dtype) for dtype in ("f4", "i2", "u8", "f8", "i1")} | {"?": a > 50}
    for dtype, w in wanted.items():
        x = gd.lazy(a)
        back = gd.save(f"{path}:/group/{dtype}", x > 50 if dtype == "?" else x.astype(dtype), **how)
        np.testing.assert_array_equal((~~back if dtype == "?" else back + 0).compute(), w)
    with h5py.File(path) as file:
        for dtype, w in wanted.items():
            d = file["group"][dtype]
            np.testing.assert_array_equal(d[()], w)
            assert d.chunks == how.get("chunks", (301, 400))
            assert d.fletcher32 == how.get("fletcher32", False)
            assert d.shuffle == (how.get("shuffle", False) and d.dtype.itemsize > 1)
            if how.get("compression") == "gzip":
                assert (d.compression, d.compression_opts) == ("gzip", 4)


def test_are_as_small_as_h5pys(gd, tmp_path):
    a = np.cumsum(np.random.default_rng(1).integers(-3, 4, (600, 700)), axis=0).astype("i4")
    gd.save(f"{tmp_path}/a.h5:/d", gd.lazy(a), chunks=(100, 700), compression="gzip", shuffle=True)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset("d", data=a, chunks=(100, 700), compression="gzip", shuffle=True)
    ours, theirs = (os.path.getsize(tmp_path / name) for name in ("a.h5", "b.h5"))
    assert ours < 1.05 * theirs


@pytest.mark.parametrize("columns", [1, 2, 3, 20, 31])
def test_szip_of_narrow_chunks(gd, tmp_path, columns):
    """HDF5 puts a value of its own in the place of ours."""
    a = np.random.default_rng(columns).integers(0, 1000, (200, columns)).astype("i4")
    for shuffle in (False, True):
        gd.save(f"{tmp_path}/a.h5:/{shuffle}", gd.lazy(a), chunks=(100, columns),
                compression="szip", shuffle=shuffle)
        with h5py.File(tmp_path / "a.h5") as file:
            np.testing.assert_array_equal(file[str(shuffle)][()], a)
    gd.save(f"{tmp_path}/a.h5:/small", gd.lazy(a), chunks=(5, columns), compression="szip")
    np.testing.assert_array_equal((gd.open(f"{tmp_path}/a.h5:/small") + 0).compute(), a)
    with pytest.raises(gd.IoError, match="'/one': pixels per block greater than"):
        gd.save(f"{tmp_path}/a.h5:/one", gd.lazy(a), chunks=(1, 1), compression="szip")


def test_filters_of_which_hdf5_has_a_plugin(gd, daemon, tmp_path):
    """Such a filter has values of its own: what is written is what the file says."""
    program = f"""if True:
        import numpy as np, gpuarrayd as gd
        x = gd.lazy(np.arange(60000.0).reshape(300, 200))
        for how in ("bitshuffle", "bitshuffle:zstd", "blosc:zstd", "lz4", "zstd", "bz2"):
            gd.save("{tmp_path}/a.h5:/" + how.replace(":", "_"), x, compression=how)
    """
    environment = {**os.environ, "HDF5_PLUGIN_PATH": hdf5plugin.PLUGIN_PATH,
                   "GPUARRAYD_SOCKET": daemon.socket}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    with h5py.File(tmp_path / "a.h5") as file:
        assert len(file) == 6
        for name in file:
            np.testing.assert_array_equal(file[name][()], np.arange(60000.0).reshape(300, 200))


def test_chunks_that_the_library_chooses(gd, tmp_path):
    gd.save(f"{tmp_path}/a.h5:/d", gd.lazy(np.ones((3000, 1000))), chunks=True)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["d"].chunks == (131, 1000) and file["d"].compression is None
    with pytest.raises(gd.BadArgument, match="no shards"):
        gd.save(f"{tmp_path}/a.h5:/e", gd.lazy(np.ones((30, 10))), chunks=(3, 5), shards=(6, 5))


def test_chunks_across_the_walk(gd, tmp_path):
    """Columns of an array whose rows come one after the other: more are begun than memory holds."""
    a = np.arange(4000 * 5000, dtype="f4").reshape(4000, 5000)
    gd.save(f"{tmp_path}/a.h5:/d", gd.lazy(a) * 2, chunks=(4000, 3), compression="lz4")
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["d"][:, 1000:1100], a[:, 1000:1100] * 2)
    assert gd.open(f"{tmp_path}/a.h5:/d").max() == a[-1, -1] * 2
    assert os.listdir(tmp_path) == ["a.h5"]


def test_a_source_and_an_output_in_one_file(gd, tmp_path):
    path = f"{tmp_path}/a.h5"
    a = np.random.default_rng(3).random((2000, 500))
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=a, chunks=(50, 500), compression="gzip")
    gd.save({f"{path}:/b": gd.open(f"{path}:/a") + 1, f"{path}:/c": gd.open(f"{path}:/a") * 2},
            compression="zstd", chunks=(33, 100))
    gd.save(f"{path}:/b", gd.open(f"{path}:/b") + 1, compression="lzf")
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["b"][()], a + 2)
        np.testing.assert_array_equal(file["c"][()], a * 2)
        assert sorted(file) == ["a", "b", "c"]


def test_a_source_behind_a_link_into_the_output(gd, tmp_path):
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset("d", data=np.arange(50000.0), chunks=(500,), compression="gzip")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["link"] = h5py.ExternalLink("b.h5", "/d")
    x = gd.open(f"{tmp_path}/a.h5:/link")
    gd.save(f"{tmp_path}/b.h5:/e", x + 1, chunks=(500,), compression="gzip")
    with h5py.File(tmp_path / "b.h5") as file:
        np.testing.assert_array_equal(file["e"][()], np.arange(50000.0) + 1)


def test_the_missing_file_of_a_link_is_named(gd, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/link"] = h5py.ExternalLink("gone.h5", "/d")
    with pytest.raises(gd.NotFound, match="'/g/link' is a link to '/d' of the file 'gone.h5', which is not there"):
        gd.open(f"{tmp_path}/a.h5:/g/link")


def test_products_moves_and_reductions_go_there_too(gd, tmp_path):
    a = np.random.default_rng(4).random((300, 200))
    gd.save(f"{tmp_path}/p.h5:/p", gd.lazy(a) @ gd.lazy(a.T), chunks=(64, 64), compression="blosc")
    gd.save(f"{tmp_path}/p.h5:/t", gd.lazy(a).T, chunks=(64, 64), compression="blosc")
    gd.save(f"{tmp_path}/p.h5:/m", gd.lazy(a).mean(axis=0), compression="gzip")
    gd.save(f"{tmp_path}/p.h5:/c", gd.concatenate([a, a], axis=0), chunks=(70, 70))
    with h5py.File(tmp_path / "p.h5") as file:
        np.testing.assert_allclose(file["p"][()], a @ a.T, rtol=1e-12)
        np.testing.assert_array_equal(file["t"][()], a.T)
        np.testing.assert_allclose(file["m"][()], a.mean(axis=0), rtol=1e-12)
        np.testing.assert_array_equal(file["c"][()], np.concatenate([a, a]))


@pytest.mark.parametrize("shape", [(0,), (5, 0, 3), (1,), (3, 1, 1)])
def test_small_and_empty_arrays(gd, tmp_path, shape):
    gd.save(f"{tmp_path}/a.h5:/d", gd.lazy(np.zeros(shape)) + 1, compression="gzip")
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["d"][()], np.ones(shape))


@pytest.mark.parametrize("how, word", [
    (dict(compression="gzip:11"), "gzip:11"), (dict(compression="brotli"), "brotli.*transpose, crc32c"),
    (dict(compression_opts=3), "compression_opts"), (dict(chunks=(3,)), "2 dimensions"),
    (dict(chunks=(3, 0)), "chunks"), (dict(chunks=(1 << 20, 1 << 20), compression="zstd"), None),
    (dict(compression="blosc:5:5"), "blosc:5:5"), (dict(shards=(4, 4), chunks=(3, 3)), "whole chunks")])
def test_what_cannot_be_is_refused(gd, tmp_path, how, word):
    x = gd.lazy(np.ones((30, 20)))
    if word is None:  # larger than the array: cut to it
        gd.save(f"{tmp_path}/a.h5:/d", x, **how)
        return
    with pytest.raises(gd.BadArgument, match=word):
        gd.save(f"{tmp_path}/a.h5:/d", x, **how)
    assert not os.listdir(tmp_path)


def test_other_formats_have_no_chunks(gd, tmp_path):
    for name in ("a.npy", "a.raw"):
        with pytest.raises(gd.BadArgument, match="neither chunks nor compression"):
            gd.save(f"{tmp_path}/{name}", gd.lazy(np.ones(9)), compression="gzip")
        gd.save(f"{tmp_path}/{name}", gd.lazy(np.ones(9)), sync=True)
    with pytest.raises(gd.BadArgument, match="single element"):
        gd.save(f"{tmp_path}/a.h5:/d", gd.lazy(np.ones(9)).sum(), compression="gzip")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_full_disk_leaves_nothing(gd, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], check=True)
    try:
        noise = gd.random.default_rng(1).random((1000, 1000))
        with pytest.raises(gd.NoSpace, match="No space left"):
            gd.save(f"{disk}/a.h5:/d", noise, compression="lz4", chunks=(100, 1000))
        assert not os.listdir(disk)
        gd.save(f"{disk}/a.h5:/d", gd.random.default_rng(1).random((100, 1000)),
                compression="lz4", chunks=(10, 1000))
        before = os.path.getsize(f"{disk}/a.h5")
        with pytest.raises(gd.NoSpace):
            gd.save(f"{disk}/a.h5:/e", noise, compression="lz4", chunks=(100, 1000))
        with h5py.File(disk / "a.h5") as file:
            assert sorted(file) == ["d"] and file["d"].shape == (100, 1000)
        assert os.path.getsize(f"{disk}/a.h5") >= before
        with open(disk / "rest", "wb", buffering=0) as rest, pytest.raises(OSError):
            while True:
                rest.write(bytes(4096))
        with pytest.raises(gd.NoSpace):
            gd.evaluate("a+1", a=np.arange(3.0), to=f"{disk}/b.h5:/y")
        assert sorted(os.listdir(disk)) == ["a.h5", "rest"]
    finally:
        subprocess.run(["umount", disk], check=True)


def test_empty_arrays_in_files(gd, tmp_path):
    for name, order in (("x.npy", "C"), ("y.npy", "F"), ("f.h5:/d", "C"), ("z.npz:q", "C"), ("s.zarr", "C")):
        path = str(tmp_path / name)
        made = gd.empty(path, (3, 4), "f4", order=order)
        assert made.shape == (3, 4) and made.dtype == "f4" and not np.asarray(made).any()
        if ".zarr" not in name:
            (gd.lazy(np.ones((3, 4), "f4")) * 2).compute(out=made)
            assert float(gd.open(path).sum()) == 24
    assert np.load(tmp_path / "y.npy").flags.f_contiguous
    assert gd.empty(tmp_path / "k.npy", shape=5, dtype="i8").shape == (5,) == gd.empty(shape=5).shape
    for call, error in ((lambda: gd.empty(f"{tmp_path}/f.h5:/d", 3), gd.errors.Exists),
                        (lambda: gd.empty(f"{tmp_path}/s.zarr:/a/b/../c", -1), gd.BadShape),
                        (lambda: gd.empty(f"{tmp_path}/no/x.npy", 3), gd.errors.NotFound),
                        (lambda: gd.empty(f"{tmp_path}/n.npy", 3, "U3"), gd.BadDtype),
                        (lambda: gd.empty(f"{tmp_path}/n.npy"), gd.BadShape),
                        (lambda: gd.empty(3, "f4", "f4"), TypeError), (lambda: gd.empty(), TypeError),
                        (lambda: gd.empty(3, of=4), TypeError), (lambda: gd.empty(3, shape=4), TypeError)):
        with pytest.raises(error):
            call()
    assert not (tmp_path / "n.npy").exists()
