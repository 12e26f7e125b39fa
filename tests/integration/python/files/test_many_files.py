"""gd.open() of patterns and lists: many files as one array, in this process and in others."""

import pathlib
import pickle
import resource

import h5py
import numpy as np
import pytest

from catalogue import assert_same


def same(got, want):
    assert_same(np.asarray(got), np.asarray(want))


@pytest.fixture
def files(folder):
    """Twelve files of several lengths and byte orders, and what they hold together."""
    rng = np.random.default_rng(3)
    parts = [rng.integers(-1000, 1000, (n, 5)).astype(kind)
             for n, kind in zip((3, 1, 0, 7, 2, 2, 5, 1, 1, 4, 0, 6), ["<i4", ">i4", "<i4"] * 4, strict=True)]
    for i, part in enumerate(parts):
        np.save(folder / f"x{i}.npy", part)
    return folder, np.concatenate(parts).astype("i4")


@pytest.fixture
def stacked(folder):
    elements = np.random.default_rng(4).normal(size=(20, 6, 7))
    for i, part in enumerate(elements):
        np.save(folder / f"s{i}.npy", part if i % 2 else np.asfortranarray(part))
    return folder, elements


def test_a_pattern_is_one_array(gd, files):
    folder, elements = files
    x = gd.open(folder / "x*.npy")
    assert (x.dtype, x.shape) == (np.int32, elements.shape)
    same(x.compute(), elements)
    same((x * 2 + x.sum(axis=0)).compute(), elements * 2 + elements.sum(axis=0))
    same(gd.open(f"{folder}/x*.npy[3:20:2, ::-1]").compute(), elements[3:20:2, ::-1])
    saved = gd.save(folder / "all.npy", x)
    same(np.load(folder / "all.npy"), elements)
    same(saved.compute(), elements)


def test_a_new_axis(gd, stacked):
    folder, elements = stacked
    for x in (gd.open(f"{folder}/s*.npy:stack"), gd.open(folder / "s*.npy", stack=True)):
        assert x.shape == elements.shape
        same(x.compute(), elements)
        same(x.mean(axis=0).compute(), elements.mean(axis=0))
    last = gd.open([f"{folder}/s{i}.npy" for i in range(20)], axis=-1, stack=True)
    same(last.compute(), np.moveaxis(elements, 0, -1))
    same(gd.open(f"{folder}/s*.npy:stack[3]").compute(), elements[3])


@pytest.mark.parametrize("key", [np.s_[3], np.s_[-1, 2], np.s_[2:20:3], np.s_[::-1], np.s_[:, 4],
                                 np.s_[..., -3:], np.s_[None], np.s_[::-7, None, 1::2], np.s_[5:5]])
def test_parts_are_views_of_it(gd, stacked, key):
    folder, elements = stacked
    x = gd.open(folder / "s*.npy", stack=True)[key]
    assert x.shape == elements[key].shape
    for one in folder.glob("s*.npy") if 0 in x.shape else ():
        one.unlink()  # nothing of it is read
    same(x.compute(), elements[key])
    if x.ndim > 1:
        same(x.T[1:].compute(), elements[key].T[1:])


def test_lists_paths_and_generators(gd, files, tmp_path):
    folder, elements = files
    paths = [folder / f"x{i}.npy" for i in range(12)]
    for given in (paths, tuple(map(str, paths)), (path for path in paths),
                  [str(folder / "x?.npy"), paths[10], paths[11]]):
        same(gd.open(given).compute(), elements)
    same(gd.open([f"{paths[0]}[1:]", paths[3]]).compute(), np.concatenate(
        [np.load(paths[0])[1:], np.load(paths[3])]))
    same(gd.open([paths[0]]).compute(), np.load(paths[0]))
    with h5py.File(folder / "y.h5", "w") as f:
        f["d"] = elements[:4].astype("i4")
        f.create_dataset("packed", data=elements[4:], chunks=(3, 2), compression="gzip")
    same(gd.open([f"{folder}/y.h5:/d", f"{folder}/y.h5:/packed"]).compute(), elements)
    same(gd.open([f"{folder}/y.h5:/d[:, :2]", f"{folder}/y.h5:/d[:, 3:]"], axis=1).compute(),
         np.delete(elements[:4], 2, axis=1))


def test_as_arguments_of_texts(gd, files, monkeypatch):
    folder, elements = files
    monkeypatch.chdir(folder)
    x = gd.open("x*.npy")
    same(gd.evaluate("a * b", a=x, b=x[0]), elements * elements[0])
    same(gd.evaluate("sum(a)", a=x[4:20:3, 1:]), elements[4:20:3, 1:].sum())
    assert "open('x*.npy')" in repr(x)
    assert "open(['x0.npy', 'x1.npy', 'x2.npy', and 9 more])" in repr(
        gd.open(f"x{i}.npy" for i in range(12)))
    with pytest.raises(gd.errors.ReadOnly):
        gd.evaluate("a + 1", a=x[:3], out=x[:3])


def test_what_does_not_go_together(gd, files):
    folder, _ = files
    np.save(folder / "x7.npy", np.zeros((2, 6), "i4"))
    with pytest.raises(gd.errors.BadShape) as info:
        gd.open(folder / "x*.npy")
    assert info.value.argument.endswith("x7.npy")
    assert (info.value.expected, info.value.found) == ("(3, 5) but along axis 0", "(2, 6)")
    with pytest.raises(gd.errors.BadShape):
        gd.open([folder / "x0.npy", folder / "x1.npy"], stack=True)
    with pytest.raises(gd.errors.BadShape):
        gd.open([folder / "x0.npy"], axis=7)
    with pytest.raises(gd.errors.NotFound):
        gd.open(folder / "z*.npy")
    with pytest.raises(gd.errors.BadArgument):
        gd.open([])
    with pytest.raises(TypeError):
        gd.open([folder / "x0.npy", 3])
    with pytest.raises(TypeError):
        gd.open([folder / "x0.npy"], axis=1.5)
    for mode in ("r+",):
        with pytest.raises(gd.errors.ReadOnly):
            gd.open(folder / "x*.npy", mode)
        with pytest.raises(gd.errors.ReadOnly):
            gd.open([folder / "x0.npy"], mode)
    with pytest.raises(gd.errors.ReadOnly):
        gd.lazy(np.arange(5)).compute(out=gd.open([folder / "x0.npy", folder / "x3.npy"]))


def test_to_other_sessions_and_processes(gd, daemon, stacked):
    folder, elements = stacked
    x = gd.open(f"{folder}/s*.npy:stack")
    y = gd.open([folder / f"s{i}.npy" for i in range(20)], stack=True)[2:9]
    flat = pickle.dumps((x, y))
    gd.close()
    gd.connect(daemon.socket)
    same(x.compute(), elements)
    again, part = pickle.loads(flat)
    same(again.compute(), elements)
    same(part.compute(), elements[2:9])
    np.save(folder / "s20.npy", elements[0])
    same(y.compute(), elements[2:9])
    gd.close()
    gd.connect(daemon.socket)
    with pytest.raises(gd.errors.BadArgument, match="not what it was"):
        x.compute()
    same(y.compute(), elements[2:9])


def test_thousands_with_few_descriptors(gd, folder):
    (folder / "runs").mkdir()
    header = pathlib.Path(folder / "one.npy")
    np.save(header, np.zeros(3, "u2"))
    begin = header.read_bytes()[:-6]
    elements = np.arange(15000, dtype="u2").reshape(5000, 3)
    for i in range(5000):
        (folder / f"runs/r{i}.npy").write_bytes(begin + elements[i].tobytes())
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(one.name) for one in pathlib.Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 60 + highest // 4, before[1]))
    try:
        x = gd.open(folder / "runs/*.npy", stack=True)
        same(x.compute(), elements)
        same(x.max(axis=0).compute(), elements[-1])
        same(x[4000:10:-1000, 1].compute(), elements[4000:10:-1000, 1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_files_that_change(gd, stacked):
    folder, _ = stacked
    x = gd.open(folder / "s*.npy", stack=True)
    (folder / "s11.npy").rename(folder / "kept")
    with pytest.raises(gd.errors.ProviderFailed, match=r"there is no '.*s11.npy'"):
        x.sum().compute()
    (folder / "kept").rename(folder / "s11.npy")
    x.sum().compute()
    with open(folder / "s7.npy", "r+b") as file:
        file.truncate(200)
    with pytest.raises(gd.errors.ProviderFailed, match="s7.npy' was cut short") as info:
        x[5:10].sum().compute()
    assert info.value.found == "it of 200 bytes"


def test_a_packed_chunk_that_is_damaged(gd, folder):
    for i in range(3):
        with h5py.File(folder / f"d{i}.h5", "w") as f:
            f.create_dataset("t", data=np.arange(1000.), chunks=(100,), compression="gzip")
            at = f["t"].id.get_chunk_info(4).byte_offset
    x = gd.open(f"{folder}/d*.h5:/t")
    with open(folder / "d2.h5", "r+b") as file:
        file.seek(at)
        file.write(b"damaged")
    with pytest.raises(gd.errors.ProviderFailed, match="d2.h5"):
        x.sum().compute()


def test_a_working_directory_with_brackets(gd, folder, monkeypatch):
    elements = np.arange(12.).reshape(4, 3)
    (folder / "runs [1]").mkdir()
    monkeypatch.chdir(folder / "runs [1]")
    for i, part in enumerate(elements):
        np.save(f"x{i}.npy", part[None])
    np.save("x[12].npy", np.zeros(5))
    same(gd.open("x?.npy").compute(), elements)
    same(gd.open("x[12].npy[1:]").compute(), np.zeros(4))
    same(gd.open(["x[0-2].npy", "x3.npy"]).compute(), elements)


def packed(path, elements, scale, fill):
    with h5py.File(path, "w") as f:
        made = f.create_dataset("t", data=elements)
        made.attrs["scale_factor"] = np.float32(scale)
        made.attrs["_FillValue"] = np.int16(fill)


def test_packed_files_mean_the_same(gd, folder):
    elements = np.arange(24, dtype="i2").reshape(4, 6)
    for i in range(4):
        packed(folder / f"p{i}.h5", elements[i:i + 1], 0.5, 7)
    want = np.where(elements == 7, np.nan, elements * np.float32(0.5)).astype("f4")
    for x in (gd.open(f"{folder}/p*.h5:/t", mask_and_scale=True),
              gd.open([f"{folder}/p{i}.h5:/t" for i in range(4)], mask_and_scale=True)):
        assert x.dtype == np.float32
        same(x.compute(), want)
        same(x[::-1, 2:].compute(), want[::-1, 2:])
    same(gd.open(f"{folder}/p*.h5:/t:stack[1:3, 0, ::2]", mask_and_scale=True).compute(), want[1:3, ::2])
    with pytest.warns(gd.errors.PackedWarning):
        same(gd.open(f"{folder}/p*.h5:/t").compute(), elements)
    packed(folder / "p3.h5", elements[3:], 0.25, 7)
    with pytest.raises(gd.errors.BadFormat, match="scale_factor 0.25") as info:
        gd.open(f"{folder}/p*.h5:/t", mask_and_scale=True)
    assert info.value.argument.endswith("p3.h5:/t") and info.value.expected == "scale_factor 0.5"
    same(gd.open(f"{folder}/p*.h5:/t", mask_and_scale=False).compute(), elements)


def test_netcdf_of_both_kinds_and_archives(gd, folder):
    netcdf = pytest.importorskip("netCDF4")
    elements = np.random.default_rng(8).normal(size=(6, 5, 4))
    kinds = ["NETCDF3_CLASSIC", "NETCDF4", "NETCDF3_64BIT_OFFSET", "NETCDF4_CLASSIC"]
    for i, part in enumerate(elements):
        with netcdf.Dataset(folder / f"day{i}.nc", "w", format=kinds[i % 4]) as file:
            file.createDimension("time", None)
            file.createDimension("x", 4)
            file.createVariable("v", "f8", ("time", "x"))[:] = part
            file.createVariable("w", "f8", ("time",))[:] = 0  # records of v lie apart
        (np.savez_compressed if i % 2 else np.savez)(folder / f"a{i}.npz", v=part, w=np.arange(3))
    for spec in (f"{folder}/day*.nc:/v", f"{folder}/a*.npz:v"):
        same(gd.open(spec).compute(), elements.reshape(30, 4))
        same(gd.open(f"{spec}[3:20:4, ::-1]").compute(), elements.reshape(30, 4)[3:20:4, ::-1])
        same(gd.open(f"{spec}:stack").sum(axis=(0, 2)).compute(), elements.sum(axis=(0, 2)))


def test_zarr_stores(gd, folder):
    zarr = pytest.importorskip("zarr")
    elements = np.random.default_rng(9).normal(size=(12, 8, 6))
    for i, part in enumerate(elements):
        made = zarr.open_array(str(folder / f"s{i}.zarr"), mode="w", shape=part.shape, chunks=(4, 3),
                               dtype="f8")
        made[:] = part
    same(gd.open(f"{folder}/s*.zarr").compute(), elements.reshape(96, 6))
    same(gd.open(f"{folder}/s*.zarr:stack[::-5, 2:, ::2]").compute(), elements[::-5, 2:, ::2])
