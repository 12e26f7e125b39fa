"""What HDF5, netCDF and Zarr results have beside their elements: dimensions, coordinates, units."""

import shutil
import subprocess

import h5py
import netCDF4
import numpy as np
import pytest
import xarray
import zarr

RNG = np.random.default_rng(11)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Packed temperature and plain wind on (time, lat, lon), in netCDF-4 and in netCDF classic."""
    folder = tmp_path_factory.mktemp("carried")
    wind = RNG.normal(size=(3, 4, 5)).astype("f4")
    stored = RNG.integers(0, 3000, (3, 4, 5), dtype="i2")
    stored[1, 2] = -9999
    for name, kind in (("c.nc", "NETCDF4"), ("c3.nc", "NETCDF3_CLASSIC")):
        with netCDF4.Dataset(folder / name, "w", format=kind) as f:
            for dim, size in (("time", None), ("lat", 4), ("lon", 5), ("bnds", 2)):
                f.createDimension(dim, size)
            for dim, units, values in (("time", "days since 2000-01-01", np.arange(3) * 30.0),
                                       ("lat", "degrees_north", np.linspace(-30, 30, 4)),
                                       ("lon", "degrees_east", np.arange(5, dtype="f4") * 10)):
                v = f.createVariable(dim, values.dtype, (dim,))
                v.units = units
                v[:] = values
            f["time"].calendar = "standard"
            t = f.createVariable("t", "i2", ("time", "lat", "lon"), fill_value=np.int16(-9999))
            t.set_auto_maskandscale(False)
            t.scale_factor, t.add_offset = np.float32(0.01), np.float32(273.15)
            t.units, t.long_name = "K", "température" if kind == "NETCDF4" else "temperature"
            t[:] = stored
            w = f.createVariable("w", "f4", ("time", "lat", "lon"))
            w.units = "m s-1"
            w[:] = wind
            f.createVariable("lat_bnds", "f8", ("lat", "bnds"))[:] = 1.5
    return folder


def opened(path, **options):
    with xarray.open_dataset(path, engine="netcdf4", **options) as f:
        return f.load()


def header(path):
    return subprocess.run(["ncdump", "-h", str(path)], capture_output=True, text=True,
                          check=True).stdout


needs_ncdump = pytest.mark.skipif(not shutil.which("ncdump"), reason="netcdf-bin is not installed")


@pytest.mark.parametrize("name", ["c.nc", "c3.nc"])
def test_a_converted_variable_is_the_variable(daemon, source, tmp_path, name):
    for way in ("--no-mask-and-scale", "--mask-and-scale"):
        out = tmp_path / f"out{way}.nc"
        daemon.ctl("convert", f"{source}/{name}:/t", f"{out}:/t", way)
        got, want = opened(out), opened(source / name)
        xarray.testing.assert_equal(got.t, want.t)
        assert got.t.dims == ("time", "lat", "lon") and set(got.coords) == {"time", "lat", "lon"}
        assert got.t.attrs == want.t.attrs and got.lat.attrs == want.lat.attrs
        with netCDF4.Dataset(out) as f:
            packed = way.startswith("--no")
            assert f["t"].dtype == ("i2" if packed else "f4")
            assert hasattr(f["t"], "scale_factor") == packed
            assert f["time"].calendar == "standard" and f["lon"].dtype == "f4"
            assert f["t"]._FillValue == -9999 if packed else np.isnan(f["t"]._FillValue)


@pytest.mark.parametrize("version", [2, 3])
def test_stores_of_zarr_have_the_same(daemon, source, tmp_path, version):
    """In one store, where axes of the same name and other coordinates get another name."""
    path, want = tmp_path / "o.zarr", opened(source / "c.nc")
    zarr.open_group(str(path), mode="w", zarr_format=version).create_group("g")
    daemon.ctl("convert", f"{source}/c.nc:/t", f"{path}:/g/t", "--no-mask-and-scale")
    daemon.ctl("convert", f"{source}/c3.nc:/t", f"{path}:/g/u", "--mask-and-scale")
    daemon.ctl("run", "m = mean(w, axis=0); n = w * 2", f"w={source}/c.nc:/w", "-o", f"m={path}:/g/m",
               "-o", f"n={path}:/g/n")
    daemon.ctl("convert", f"{source}/c.nc:/w[:, ::-1]", f"{path}:/g/back")
    got = xarray.open_zarr(path, group="g", consolidated=False)
    for name, of in zip("tu", ("c.nc", "c3.nc")):
        xarray.testing.assert_allclose(got[name].load(), want.t)  # JSON's numbers are float64
        assert got[name].attrs == opened(source / of).t.attrs and got.lat.attrs == want.lat.attrs
    xarray.testing.assert_allclose(got.m.load(), want.w.mean("time"), rtol=1e-4)
    xarray.testing.assert_equal(got.n.load(), want.w * 2)
    assert got.back.dims == ("time", "lat_2", "lon") and np.array_equal(got.lat_2, want.lat[::-1])
    assert set(got.coords) == {"time", "lat", "lon", "lat_2"} and got.m.units == "m s-1"
    array = zarr.open_group(str(path))["g/t"]
    assert array.dtype == "i2" and array.attrs["scale_factor"] == np.float32(0.01)
    daemon.ctl("convert", f"{path}:/g/t", f"{tmp_path}/o.nc:/t", "--no-mask-and-scale")
    xarray.testing.assert_allclose(opened(tmp_path / "o.nc").t, want.t)


@needs_ncdump
def test_ncdump_has_the_names(daemon, source, tmp_path):
    daemon.ctl("convert", f"{source}/c.nc:/w", f"{tmp_path}/o.nc:/w")
    text = header(tmp_path / "o.nc")
    assert "float w(time, lat, lon) ;" in text and 'lat:units = "degrees_north" ;' in text
    assert "phony" not in text and 'w:units = "m s-1" ;' in text


def test_a_selection_has_the_coordinates_that_are_left(daemon, source, tmp_path):
    daemon.ctl("convert", f"{source}/c.nc:/w[1, ::-2, 1:4]", f"{tmp_path}/o.nc:/w")
    got, want = opened(tmp_path / "o.nc").w, opened(source / "c.nc").w[1, ::-2, 1:4]
    xarray.testing.assert_equal(got, want.drop_vars("time"))
    daemon.ctl("convert", f"{source}/c.nc:/w[:, None]", f"{tmp_path}/n.nc:/w")
    assert opened(tmp_path / "n.nc").w.sizes == {
        "phony_dim_0": 3, "phony_dim_1": 1, "phony_dim_2": 4, "phony_dim_3": 5}


def test_expressions_keep_axes_and_only_true_units(daemon, source, tmp_path):
    words = [f"t={source}/c.nc:/t", f"w={source}/c.nc:/w", "--mask-and-scale"]
    daemon.ctl("run", "a = w - mean(w, axis=0); m = mean(w, axis=(0, -1)); s = std(t, axis=1);"
               "g = nanmax(t, axis=0)", *words,
               *(word for name in "amsg" for word in ("-o", f"{name}={tmp_path}/o.nc:/{name}")))
    got, want = opened(tmp_path / "o.nc"), opened(source / "c.nc")
    xarray.testing.assert_allclose(got.a, want.w - want.w.mean("time"), rtol=1e-4)
    xarray.testing.assert_allclose(got.m, want.w.mean(("time", "lon")), rtol=1e-4)
    xarray.testing.assert_allclose(got.g, want.t.max("time"))
    assert got.s.dims == ("time", "lon")
    assert [got[name].attrs.get("units") for name in "amsg"] == [None, "m s-1", None, "K"]
    # Others' coordinates: names alone.
    daemon.ctl("run", "u[1:] - v".replace("[1:]", ""), f"u={source}/c.nc:/w[1:]",
               f"v={source}/c.nc:/w[:-1]", "-o", f"{tmp_path}/d.nc:/d")
    got = opened(tmp_path / "d.nc")
    assert got.d.dims == ("time", "lat", "lon") and set(got.coords) == {"lat", "lon"}


def test_what_reductions_leave_keeps_its_axes(daemon, source, tmp_path):
    daemon.ctl("run", "a = 2 * std(w, axis=0, ddof=1) - max(w, 0) / max(w);"
               "b = sqrt(mean((w - mean(w)) ** 2, axis=(0, 2)))",
               f"w={source}/c.nc:/w", "-o", f"a={tmp_path}/o.nc:/a", "-o", f"b={tmp_path}/o.nc:/b")
    got, w = opened(tmp_path / "o.nc"), opened(source / "c.nc").w
    want = 2 * w.std("time", ddof=1) - w.max("time") / w.max()
    xarray.testing.assert_allclose(got.a, want, rtol=1e-4, atol=1e-5)
    want = ((w - w.mean()) ** 2).mean(("time", "lon")) ** 0.5
    xarray.testing.assert_allclose(got.b, want, rtol=1e-4)
    # Of a square either axis could be the one that is left.
    daemon.ctl("run", "max(w, axis=1) + max(w, axis=2)", f"w={source}/c.nc:/w[:, :, :4]",
               "-o", f"{tmp_path}/q.nc:/q")
    assert not {"time", "lat", "lon"} & set(opened(tmp_path / "q.nc").dims)


def test_products_of_square_matrices_have_no_names(daemon, source, tmp_path):
    square = f"{source}/c.nc:/w[0, :, :4]"
    daemon.ctl("run", "q @ q", f"q={square}", "-o", f"{tmp_path}/o.nc:/q")
    daemon.ctl("matmul", square, square, "-o", f"{tmp_path}/o.nc:/r")
    assert not {"lat", "lon"} & set(opened(tmp_path / "o.nc").dims)


MOVES = [
    (["transpose", "--axes", "2,0,1"], lambda w: w.transpose("lon", "time", "lat")),
    (["flip", "--axes", "1"], lambda w: w[:, ::-1]),
    (["roll", "--axes", "2", "--shift", "2"], lambda w: w.roll(lon=2, roll_coords=True)),
    (["tile", "--repeats", "1,1,2"], lambda w: xarray.concat([w, w], "lon")),
    (["pad", "--width", "0,1,1", "--mode", "edge"], lambda w: w.pad(lat=1, lon=1, mode="edge")),
]


@pytest.mark.parametrize("words, move", MOVES, ids=[words[0] for words, _ in MOVES])
def test_movements_take_coordinates_with_them(daemon, source, tmp_path, words, move):
    daemon.ctl(words[0], f"{source}/c.nc:/w", *words[1:], "-o", f"{tmp_path}/o.nc:/w")
    got, want = opened(tmp_path / "o.nc").w, move(opened(source / "c.nc").w)
    assert got.dims == want.dims and np.array_equal(got, want) and got.units == "m s-1"
    for dim in want.dims:
        if words[0] != "pad" or dim == "time":  # xarray leaves out the others
            assert np.array_equal(got[dim], want[dim]), dim


def test_joined_arrays_have_joined_coordinates(daemon, source, tmp_path):
    parts = [f"{source}/c.nc:/w[2:]", f"{source}/c3.nc:/w[:2]"]
    daemon.ctl("concatenate", *parts, "--axis", "0", "-o", f"{tmp_path}/o.nc:/w")
    got, w = opened(tmp_path / "o.nc").w, opened(source / "c.nc").w
    assert got.dims == w.dims and np.array_equal(got.time, w.time[[2, 0, 1]])
    assert np.array_equal(got.lat, w.lat) and got.units == "m s-1"
    # A scale of one of them alone cannot be that of both; nor can units then.
    daemon.ctl("concatenate", f"{source}/c.nc:/t", f"{source}/c.nc:/w", "-o", f"{tmp_path}/m.nc:/m",
               "--no-mask-and-scale")
    with netCDF4.Dataset(tmp_path / "m.nc") as f:
        assert not {"scale_factor", "_FillValue", "units"} & set(f["m"].ncattrs())
    daemon.ctl("pad", f"{source}/c.nc:/w", "--width", "0,0,1", "--value", "0", "-o",
               f"{tmp_path}/p.nc:/w")
    got = opened(tmp_path / "p.nc").w
    assert got.dims == w.dims and set(got.coords) == {"time", "lat"}  # lon has a border


def test_an_existing_file_is_added_to(daemon, source, tmp_path):
    """Numbered dimensions of netCDF-4, axes that are there, and those that say something else."""
    shutil.copy(source / "c.nc", tmp_path / "e.nc")
    before = opened(tmp_path / "e.nc")
    daemon.ctl("convert", f"{source}/c.nc:/w", f"{tmp_path}/e.nc:/again")
    daemon.ctl("convert", f"{source}/c.nc:/w[:, ::2]", f"{tmp_path}/e.nc:/half")
    daemon.ctl("convert", f"{source}/c.nc:/w[:, ::2]", f"{tmp_path}/e.nc:/other_half")
    daemon.ctl("convert", f"{source}/c.nc:/lat_bnds", f"{tmp_path}/e.nc:/deep/er/b")
    got = opened(tmp_path / "e.nc")
    xarray.testing.assert_identical(got[["t", "w"]], before[["t", "w"]])
    assert got.again.dims == ("time", "lat", "lon")
    assert got.half.dims == got.other_half.dims == ("time", "lat_2", "lon")
    assert np.array_equal(got.lat_2, got.lat[::2]) and got.lat_2.units == "degrees_north"
    deep = opened(tmp_path / "e.nc", group="deep/er")
    assert deep.b.dims == ("lat", "bnds") and "bnds" not in deep.coords
    with h5py.File(tmp_path / "e.nc") as f:
        numbers = [f[name].attrs["_Netcdf4Dimid"] for name in ("time", "lat", "lon", "bnds", "lat_2",
                                                              "deep/er/lat", "deep/er/bnds")]
        assert len(set(numbers)) == 7
        assert f["half"].dims[1][0] == f["lat_2"] and f["lat_2"].is_scale
        assert len(f["lat_2"].attrs["REFERENCE_LIST"]) == 2


def test_coordinates_can_come_after_what_they_are_of(daemon, source, tmp_path):
    """Replacing a scale: whose axes it named have the new one, as long as it can be theirs."""
    out = tmp_path / "o.nc"
    daemon.ctl("convert", f"{source}/c.nc:/w", f"{out}:/w")
    daemon.ctl("run", "lat * 2", f"lat={out}:/lat", "-o", f"{out}:/lat")
    got = opened(out)
    assert np.array_equal(got.w.lat, np.linspace(-60, 60, 4))
    with h5py.File(out) as f:
        assert f["w"].dims[1][0] == f["lat"]
    np.save(tmp_path / "x.npy", np.arange(9.0))
    daemon.ctl("convert", f"{tmp_path}/x.npy", f"{out}:/lon")
    got = opened(out)  # lon names nothing of w any more
    assert got.lon.shape == (9,) and got.w.shape == (3, 4, 5) and "lon" not in got.w.dims
    daemon.ctl("convert", f"{source}/c.nc:/w", f"{out}:/w")
    assert opened(out).w.dims == ("time", "lat_2", "lon_2")


def test_a_dataset_that_is_named_as_its_axis(daemon, source, tmp_path):
    out = tmp_path / "o.nc"
    daemon.ctl("convert", f"{source}/c.nc:/lat[::-1]", f"{out}:/lat")
    daemon.ctl("convert", f"{source}/c.nc:/lon", f"{out}:/g/other")
    daemon.ctl("convert", f"{source}/c.nc:/w[0]", f"{out}:/lon")
    assert opened(out).lat.dims == ("lat",)
    assert opened(out, group="g").other.dims == ("lon",)
    with h5py.File(out) as f:
        assert [f["lon"].dims[i][0].name for i in (0, 1)] == ["/lat_2", "/lon_2"]


def test_python_saves_them_too(gd, source, tmp_path):
    w = gd.open(f"{source}/c.nc:/w")
    t = gd.open(f"{source}/c.nc:/t", mask_and_scale=True)
    gd.save(f"{tmp_path}/o.nc:/t", t)
    gd.save(f"{tmp_path}/o.nc:/a", w[:, 1:] * 2)
    gd.save(f"{tmp_path}/p.nc:/m", gd.mean(w, axis=0))
    got, want = opened(tmp_path / "o.nc"), opened(source / "c.nc")
    xarray.testing.assert_equal(got.t, want.t)
    assert got.a.dims == ("time", "lat_2", "lon") and np.array_equal(got.lat_2, want.lat[1:])
    assert opened(tmp_path / "p.nc").m.units == "m s-1"
    gd.save(f"{tmp_path}/j.nc:/t", gd.concatenate([t, t]))
    xarray.testing.assert_equal(opened(tmp_path / "j.nc").t, xarray.concat([want.t] * 2, "time"))
    gd.save(f"{tmp_path}/k.nc:/k", gd.concatenate([w, w]) * 2)
    xarray.testing.assert_equal(opened(tmp_path / "k.nc").k, xarray.concat([want.w] * 2, "time") * 2)
    for shift, axis, dim in ((2, -1, "lon"), (-1, 0, "time")):
        rolled = gd.roll(w, shift, axis)
        out = tmp_path / f"{dim}.nc"
        gd.save({f"{out}:/r": rolled, f"{out}:/q": gd.sqrt(rolled * rolled)})
        again, known = opened(out), want.w.roll({dim: shift}, roll_coords=True)
        xarray.testing.assert_equal(again.r, known)
        xarray.testing.assert_allclose(again.q, abs(known))
        assert again.r.units == "m s-1"
    opened_again = gd.open(f"{tmp_path}/o.nc:/t")
    assert np.array_equal(np.asarray(opened_again), want.t, equal_nan=True)


@pytest.mark.parametrize("move, known", [
    (lambda gd, w: gd.tile(w, (1, 1, 2)), lambda w: xarray.concat([w, w], "lon")),
    (lambda gd, w: gd.roll(w, (1, 2), (0, 2)),
     lambda w: w.roll(time=1, lon=2, roll_coords=True)),
    (lambda gd, w: gd.pad(w, ((0, 0), (0, 0), (2, 1)), mode="wrap"),
     lambda w: w[:, :, [3, 4, 0, 1, 2, 3, 4, 0]]),
    (lambda gd, w: gd.pad(w, ((0, 0), (1, 1), (0, 0))),
     lambda w: w.pad(lat=1, constant_values=0).drop_vars("lat")),
    (lambda gd, w: gd.concatenate([w[:, ::-1], w], 2), lambda w: xarray.concat(
        [w[:, ::-1].drop_vars("lat"), w.drop_vars("lat")], "lon")),
    (lambda gd, w: gd.mean(w, axis=1, keepdims=True),
     lambda w: w.mean("lat", keepdims=True)),
    (lambda gd, w: w[:, [2, 0, 2]], lambda w: w[:, [2, 0, 2]].drop_vars("lat")),
    (lambda gd, w: gd.mean(w[[0, 2]], axis=1), lambda w: w[[0, 2]].mean("lat").drop_vars("time")),
], ids=["tile", "roll", "pad", "border", "concatenate", "keepdims", "list", "mean of a list"])
def test_python_saves_those_of_moved_arrays(gd, source, tmp_path, move, known):
    out, want = tmp_path / "o.nc", known(opened(source / "c.nc").w)
    gd.save(f"{out}:/r", move(gd, gd.open(f"{source}/c.nc:/w")))
    got = opened(out).r
    xarray.testing.assert_allclose(got, want)
    assert got.units == "m s-1" and set(got.coords) == set(want.coords)


def test_python_joins_only_what_has_the_same_axes(gd, tmp_path):
    """Axes of one length each, so that only their names tell them apart."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as f:
        for dim in ("time", "lat", "lon"):
            f.createDimension(dim, 4)
            f.createVariable(dim, "f8", (dim,))[:] = np.arange(4)
        f.createVariable("s", "f4", ("time", "lat", "lon"))[:] = 1
        f.createVariable("turned", "f4", ("time", "lon", "lat"))[:] = 2
    s, turned = (gd.open(f"{tmp_path}/a.nc:/{name}") for name in ("s", "turned"))
    for k, joined in enumerate((gd.concatenate([s, turned], 0), gd.concatenate([s, turned], 0) + 1,
                                gd.concatenate([s[0], s[:, :, 1]], 0), gd.concatenate([s[:, 1], s[0]], 1))):
        gd.save(f"{tmp_path}/o{k}.nc:/r", joined)
        got = opened(tmp_path / f"o{k}.nc").r
        assert np.array_equal(got, joined.compute())
        assert not {"lat", "lon"} & {*got.coords, *got.dims}, (k, got)


def test_rolled_files_that_are_replaced_or_written(gd, source, tmp_path):
    path, w = tmp_path / "w.nc", np.asarray(gd.open(f"{source}/c.nc:/w"))
    with h5py.File(path, "w") as f:
        f["w"], f["time"] = w, np.arange(3.0)
        f["time"].make_scale()
        f["w"].dims[0].attach_scale(f["time"])
    x = gd.open(f"{path}:/w", "r+")
    (gd.roll(x, 2, 0) * 2).compute(out=x)  # in place
    assert np.array_equal(np.asarray(gd.open(f"{path}:/w")), np.roll(w, 2, 0) * 2)
    x = gd.open(f"{path}:/w")
    rolled, joined = gd.roll(x, 1, 1) + 1, gd.concatenate([x, x]) + 1
    shutil.copy(source / "c.nc", tmp_path / "other.nc")
    (tmp_path / "other.nc").rename(path)
    before = np.roll(w, 2, 0) * 2  # of the file that is open
    assert np.array_equal(rolled.compute(), np.roll(before, 1, 1) + 1)
    assert np.array_equal(joined.compute(), np.concatenate([before, before]) + 1)


def test_plain_sources_give_plain_results(daemon, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(12.0).reshape(3, 4))
    daemon.ctl("convert", f"{tmp_path}/x.npy", f"{tmp_path}/o.h5:/x")
    with h5py.File(tmp_path / "o.h5") as f:
        assert list(f) == ["x"] and len(f["x"].attrs) == 0


def test_broken_names_make_nothing_unreadable(daemon, tmp_path):
    """Lists that refer to nothing, to groups, of wrong lengths; scales without elements."""
    with h5py.File(tmp_path / "b.h5", "w") as f:
        f["x"] = np.arange(6.0).reshape(2, 3)
        f["y"] = np.arange(6.0).reshape(2, 3)
        f["s"] = np.arange(3.0)
        f.create_group("g")
        lists = np.empty(2, "O")
        lists[0], lists[1] = (np.array([f[name].ref], h5py.ref_dtype) for name in "gs")
        f["x"].attrs.create("DIMENSION_LIST", lists, dtype=h5py.vlen_dtype(h5py.ref_dtype))
        f["y"].dims[0].label = "a"
        f["y"].attrs["DIMENSION_LIST"] = [1.5, 2.5]
        f["y"].attrs["units"] = np.array(["a", "b"], "S1")
        f["y"].attrs["_FillValue"] = "none"
        f["s"].attrs["DIMENSION_LIST"] = np.array([f["g"].ref], h5py.ref_dtype)
    for name in "xys":
        daemon.ctl("convert", f"{tmp_path}/b.h5:/{name}", f"{tmp_path}/{name}.h5:/{name}")
        with h5py.File(tmp_path / f"{name}.h5") as f, h5py.File(tmp_path / "b.h5") as b:
            assert np.array_equal(f[name], b[name])


def test_netcdf_goes_on_writing_to_new_files(daemon, source, tmp_path):
    """Its library takes links in the order in which they were made, and dimensions by number."""
    out = tmp_path / "o.nc"
    daemon.ctl("convert", f"{source}/c.nc:/w", f"{out}:/w")
    daemon.ctl("convert", f"{source}/c.nc:/w", f"{out}:/g/w")
    with netCDF4.Dataset(out, "a") as f:
        assert list(f.dimensions) == ["time", "lat", "lon"]
        f.createDimension("n", 2)
        f.createVariable("a", "f4", ("n", "lat"))[:] = 1
        f["g"].createVariable("b", "f4", ("lon",))[:] = 2
        f["w"].note = "added"
    daemon.ctl("convert", f"{source}/c.nc:/lat_bnds", f"{out}:/bounds")
    with netCDF4.Dataset(out) as f:
        assert f["a"].dimensions == ("n", "lat") and f["g/b"].dimensions == ("lon",)
        assert f["w"].dimensions == ("time", "lat", "lon") and f["w"].note == "added"
        assert f["bounds"].dimensions == ("lat", "bnds")


def test_many_files_have_the_coordinates_that_they_share(daemon, source, tmp_path):
    for i in range(3):
        daemon.ctl("convert", f"{source}/c.nc:/w[{i}:{i + 1}]", f"{tmp_path}/part{i}.nc:/w")
    daemon.ctl("run", "w * 1", f"w={tmp_path}/part*.nc:/w", "-o", f"{tmp_path}/o.nc:/w")
    got, want = opened(tmp_path / "o.nc").w, opened(source / "c.nc").w
    assert got.dims == want.dims and np.array_equal(got, want)
    for dim in ("time", "lat", "lon"):
        assert np.array_equal(got[dim], want[dim]), dim
    daemon.ctl("convert", f"{tmp_path}/part*.nc:/w[::-2, 1]", f"{tmp_path}/s.nc:/w")
    xarray.testing.assert_equal(opened(tmp_path / "s.nc").w, want[::-2, 1].drop_vars("lat"))
    with netCDF4.Dataset(tmp_path / "part2.nc", "a") as f:
        f["time"].units = "hours since 1900-01-01"
    daemon.ctl("convert", f"{tmp_path}/part*.nc:/w", f"{tmp_path}/u.nc:/w")
    got = opened(tmp_path / "u.nc").w  # the numbers of that file are of something else
    assert got.dims == want.dims and set(got.coords) == {"lat", "lon"}


def made_day(path, day, lat, lon=None, turned=False, kind="NETCDF4", **words):
    """One step of t on (time, lat, lon), all axes with coordinates."""
    dims = ("time", "lon", "lat") if turned else ("time", "lat", "lon")
    values = {"time": [day], "lat": lat, "lon": np.arange(4.0) if lon is None else lon}
    with netCDF4.Dataset(path, "w", format=kind) as f:
        for dim in dims:
            f.createDimension(dim, len(values[dim]))
            f.createVariable(dim, "f8", (dim,))[:] = values[dim]
        f["time"].units, f["lat"].units = "days since 2000-01-01", words.pop("lat_units", "degrees")
        t = f.createVariable("t", "f4", dims)
        t.setncatts({"units": "K", "long_name": "of the air", **words})
        t[:] = day * 100 + np.arange(16).reshape(1, 4, 4)


LAT = np.linspace(-30, 30, 4)
OTHERS = {  # what the last file has: axes and attributes that are left without a label then
    "nothing": ({}, {"time", "lat", "lon"}, {"units", "long_name"}),
    "coordinates": ({"lat": LAT + 1}, {"time", "lon"}, {"units", "long_name"}),
    "order": ({"lat": LAT[::-1]}, {"time", "lon"}, {"units", "long_name"}),
    "units of them": ({"lat_units": "radians"}, {"time", "lon"}, {"units", "long_name"}),
    "axes": ({"turned": True}, set(), {"units", "long_name"}),
    "words": ({"long_name": "of the sea"}, {"time", "lat", "lon"}, {"units"}),
    "units": ({"units": "degC"}, {"time", "lat", "lon"}, {"long_name"}),
    "format": ({"kind": "NETCDF3_CLASSIC"}, {"time", "lat", "lon"}, {"units", "long_name"}),
}


@pytest.mark.parametrize("what", OTHERS)
def test_many_files_have_only_labels_that_are_true_of_all(daemon, gd, tmp_path, what):
    """Whichever way they are joined, and wherever they are written; the last file differs."""
    words, coords, attributes = OTHERS[what]
    for i in range(3):
        made_day(tmp_path / f"d{i}.nc", i, **{"lat": LAT, **(words if i == 2 else {})})
    names = [f"{tmp_path}/d{i}.nc:/t" for i in range(3)]
    pattern, listed = gd.open(f"{tmp_path}/d*.nc:/t"), gd.open(names)
    each = [gd.open(name) for name in names]
    daemon.ctl("convert", f"{tmp_path}/d*.nc:/t", f"{tmp_path}/o0.nc:/t")
    daemon.ctl("run", "t * 1", f"t={tmp_path}/d*.nc:/t", "-o", f"{tmp_path}/o1.h5:/t")
    zarr.open_group(str(tmp_path / "o2.zarr"), mode="w")
    daemon.ctl("convert", f"{tmp_path}/d*.nc:/t", f"{tmp_path}/o2.zarr:/t")
    daemon.ctl("concatenate", *names, "-o", f"{tmp_path}/o3.nc:/t")
    for k, lazy in enumerate((pattern, pattern * 1, listed, gd.concatenate(each) * 1,
                              gd.concatenate(each), pattern[:, 1:], gd.transpose(pattern, (2, 0, 1)),
                              gd.mean(pattern, axis=2)), 4):
        gd.save(f"{tmp_path}/o{k}.nc:/t", lazy)
    for k in range(12):
        path = next(tmp_path.glob(f"o{k}.*"))
        if k == 2 and not coords:  # xarray reads none without names
            assert zarr.open_group(path)["t"].metadata.dimension_names is None
            continue
        more = {"engine": "zarr", "consolidated": False} if k == 2 else {"engine": "netcdf4"}
        got = xarray.open_dataset(path, decode_times=False, **more).load().t
        left = coords - ({"lon"} if k == 11 else set())
        assert set(got.coords) == left and (not coords or left <= set(got.dims)), (k, got)
        assert k in (1, 5, 7, 11) or {*got.attrs} - {"_FillValue"} == attributes, (k, got.attrs)
        assert "time" not in left or np.array_equal(got.time, [0, 1, 2])
        assert "lat" not in left or np.array_equal(got.lat, LAT[1:] if k == 9 else LAT)


def test_a_part_of_many_files_has_the_labels_of_those_in_it(daemon, gd, tmp_path):
    """A selection, which leaves out the file that has others; stacks have no name on the new axis."""
    for i in range(3):
        made_day(tmp_path / f"d{i}.nc", i, lat=LAT + (i == 0))
    for k, name in enumerate(("[:0:-1, ::2]", "[1:, ::2]")):
        daemon.ctl("convert", f"{tmp_path}/d*.nc:/t{name}", f"{tmp_path}/o{k}.nc:/t")
        got = opened(tmp_path / f"o{k}.nc", decode_times=False).t
        assert np.array_equal(got.time, [[2, 1], [1, 2]][k]) and np.array_equal(got.lat, LAT[::2])
    gd.save(f"{tmp_path}/p.nc:/t", gd.open(f"{tmp_path}/d*.nc:/t")[1:])
    assert set(opened(tmp_path / "p.nc", decode_times=False).t.coords) == {"time", "lon"}


def test_an_axis_that_is_there_twice_has_its_own_selection(daemon, tmp_path):
    with netCDF4.Dataset(tmp_path / "a0.nc", "w") as f:
        f.createDimension("n", 4)
        f.createVariable("n", "f8", ("n",))[:] = np.arange(4)
        f.createVariable("c", "f8", ("n", "n"))[:] = np.arange(16).reshape(4, 4)
    shutil.copy(tmp_path / "a0.nc", tmp_path / "a1.nc")
    daemon.ctl("convert", f"{tmp_path}/a*.nc:/c[:, 1:3]", f"{tmp_path}/o.nc:/c")
    with netCDF4.Dataset(tmp_path / "o.nc") as f:
        for dim, want in zip(f["c"].dimensions, ([0, 1, 2, 3] * 2, [1, 2])):
            assert np.array_equal(f[dim], want), dim
