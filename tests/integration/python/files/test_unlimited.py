"""Dimensions that are unlimited in netCDF's or HDF5's sense stay so where their axes stay."""

import json
import shutil

import h5py
import netCDF4
import numpy as np
import pytest
import xarray

RNG = np.random.default_rng(12)
WIND = RNG.normal(size=(6, 4, 5)).astype("f4")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """w(time, lat, lon) and time(time), time unlimited, in netCDF-4 and in netCDF classic; s of many
    bytes; e of none, along a dimension that is nothing but a name."""
    folder = tmp_path_factory.mktemp("unlimited")
    for name, kind in (("c.nc", "NETCDF4"), ("c3.nc", "NETCDF3_CLASSIC")):
        with netCDF4.Dataset(folder / name, "w", format=kind) as f:
            for dim, size in (("time", None), ("lat", 4), ("lon", 5)):
                f.createDimension(dim, size)
            f.createVariable("time", "f8", ("time",))[:] = np.arange(6) * 30.0
            f["time"].units = "days since 2000-01-01"
            f.createVariable("w", "f4", ("time", "lat", "lon"))[:] = WIND
            if kind == "NETCDF4":
                f.createDimension("step", None)
                f.createVariable("e", "i4", ("step", "lon"))
                f.createDimension("x", 40000)
                s = f.createVariable("s", "f4", ("time", "x"), chunksizes=(2, 10000))
                s[:] = RNG.normal(size=(6, 40000))
    return folder


def dimensions(path, name):
    """"time* lat": of a variable, those that are unlimited with a star."""
    with netCDF4.Dataset(path) as f:
        return " ".join(dim.name + "*" * dim.isunlimited() for dim in f[name].get_dims())


def check_grows(path, name):
    """netCDF's library goes on writing."""
    shutil.copy(path, f"{path}.grown")
    with netCDF4.Dataset(f"{path}.grown", "a") as f:
        before, n = f[name][:], len(f["time"])
        f[name][n] = 7.5
        f["time"][n] = 99.5
    with netCDF4.Dataset(f"{path}.grown") as f:
        assert f[name].shape[0] == len(f["time"]) == n + 1
        assert np.array_equal(f[name][:n], before) and (f[name][n] == 7.5).all()


@pytest.mark.parametrize("name", ["c.nc", "c3.nc"])
@pytest.mark.parametrize("how", [[], ["--compress", "zstd", "--shuffle"], ["--chunks", "50x2x5"]])
def test_a_converted_variable_goes_on_growing(daemon, source, tmp_path, name, how):
    out = tmp_path / "o.nc"
    daemon.ctl("convert", f"{source}/{name}:/w", f"{out}:/w", *how)
    assert dimensions(out, "w") == "time* lat lon"
    with xarray.open_dataset(out) as f:
        assert f.encoding["unlimited_dims"] == {"time"}
        assert np.array_equal(f.w, WIND) and f.time.dt.year[0] == 2000
    with h5py.File(out) as f:
        assert f["w"].maxshape == (None, 4, 5) and f["time"].maxshape == (None,)
        assert f["w"].chunks == ((50, 2, 5) if "--chunks" in how else (51, 4, 5))
        assert f["time"].chunks == (512,)
    check_grows(out, "w")
    daemon.ctl("convert", f"{source}/{name}:/time", f"{tmp_path}/t.nc:/time", *how[:2 * ("zstd" in how)])
    assert dimensions(tmp_path / "t.nc", "time") == "time*"


def test_results_whose_axes_stay(daemon, source, tmp_path):
    out, w = tmp_path / "o.nc", f"w={source}/c.nc:/w"
    daemon.ctl("run", "a = w * 2; m = mean(w, axis=1); g = mean(w, axis=0); d = w - v",
               w, f"v={source}/c3.nc:/w", *(word for name in "amgd" for word in ("-o", f"{name}={out}:/{name}")))
    daemon.ctl("convert", f"{source}/c.nc:/w[1:6:2, ::-1]", f"{out}:/s")
    daemon.ctl("convert", f"{source}/c.nc:/w[2]", f"{out}:/p")
    names = [dimensions(out, name) for name in "amgdsp"]
    assert names == ["time* lat lon", "time* lon", "lat lon", "time* lat lon", "time_2* lat lon", "lat lon"]
    with h5py.File(out) as f:
        np.testing.assert_allclose(f["m"], WIND.mean(axis=1), rtol=1e-5)
        assert np.array_equal(f["a"], WIND * 2) and np.array_equal(f["s"], WIND[1:6:2, ::-1])
        assert not f["d"][()].any() and f["g"].chunks is None and f["p"].chunks is None


MOVES = [(["flip", "--axes", "0"], "time* lat lon", WIND[::-1]),
         (["transpose", "--axes", "2,0,1"], "lon time* lat", WIND.transpose(2, 0, 1)),
         (["roll", "--axes", "2", "--shift", "2"], "time* lat lon", np.roll(WIND, 2, 2)),
         (["tile", "--repeats", "2,1,1"], "time* lat lon", np.tile(WIND, (2, 1, 1))),
         (["pad", "--width", "1,0,0", "--mode", "edge"], "time* lat lon", np.pad(WIND, ((1, 1), (0, 0), (0, 0)), "edge")),
         (["diff", "--axis", "1"], "", np.diff(WIND, axis=1)),
         (["take", "i.npy", "--axis", "0"], "", WIND[[3, 0, 3]])]


@pytest.mark.parametrize("words, want, array", MOVES, ids=[words[0] for words, _, _ in MOVES])
def test_movements(daemon, source, tmp_path, words, want, array):
    out = tmp_path / "o.nc"
    np.save(tmp_path / "i.npy", [3, 0, 3])
    daemon.ctl(words[0], f"{source}/c.nc:/w", *words[1:], "-o", f"{out}:/w", cwd=tmp_path)
    with h5py.File(out) as f:
        assert np.array_equal(f["w"], array)
    if want:
        assert dimensions(out, "w") == want


def test_files_behind_each_other(daemon, source, tmp_path):
    out = tmp_path / "o.nc"
    daemon.ctl("concatenate", f"{source}/c.nc:/w[3:]", f"{source}/c3.nc:/w[:3]", "--axis", "0", "-o", f"{out}:/w")
    assert dimensions(out, "w") == "time* lat lon"
    for i in range(3):
        daemon.ctl("convert", f"{source}/c3.nc:/w[{2 * i}:{2 * i + 2}]", f"{tmp_path}/part{i}.nc:/w")
    daemon.ctl("convert", f"{tmp_path}/part*.nc:/w", f"{out}:/g/w")
    assert dimensions(out, "g/w") == "time* lat lon"
    with h5py.File(out) as f:
        assert np.array_equal(f["w"], np.roll(WIND, 3, 0)) and np.array_equal(f["g/w"], WIND)
        assert np.array_equal(f["g/time"], np.arange(6) * 30.0)


def test_in_one_piece(daemon, source, tmp_path):
    """Who asks for it has a dimension of a fixed size, and may write in place."""
    out = tmp_path / "o.nc"
    daemon.ctl("convert", f"{source}/c.nc:/w", f"{out}:/w", "--chunks", "none")
    assert dimensions(out, "w") == "time lat lon"
    daemon.ctl("run", "a + 1", f"a={out}:/w", "--in-place", "-o", f"{out}:/w")
    daemon.ctl("convert", f"{source}/c.nc:/w", f"{out}:/again")  # its time is another thing
    assert dimensions(out, "w") == "time lat lon" and dimensions(out, "again") == "time_2* lat lon"
    with h5py.File(out) as f:
        assert f["w"].chunks is None and np.array_equal(f["w"], WIND + 1)
    for words, told in ((["o2.nc:/w", "--compress", "gzip"], "without chunks"), (["o.zarr:/w"], "Zarr"),
                        (["o2.nc:/w", "--shards", "6x4x5"], "without chunks")):
        failed = daemon.ctl("convert", f"{source}/c.nc:/w", f"{tmp_path}/{words[0]}", *words[1:],
                            "--chunks", "none", check=False)
        assert failed.returncode == 1 and told in failed.stderr and "bad-argument" in failed.stderr
    assert not (tmp_path / "o2.nc").exists() and not (tmp_path / "o.zarr").exists()


def test_chunks_are_the_sources_where_they_are_of_a_size(daemon, source, tmp_path):
    daemon.ctl("convert", f"{source}/c.nc:/s", f"{tmp_path}/o.nc:/s")
    with h5py.File(tmp_path / "o.nc") as f, h5py.File(source / "c.nc") as c:
        assert f["s"].chunks == (2, 10000) and np.array_equal(f["s"], c["s"])
        assert f["s"].maxshape == (None, 40000)


def test_nothing_so_far(daemon, source, tmp_path):
    out = tmp_path / "o.nc"
    daemon.ctl("convert", f"{source}/c.nc:/e", f"{out}:/e")
    assert dimensions(out, "e") == "step* lon"
    with netCDF4.Dataset(out, "a") as f:
        f["e"][1] = 3
    with netCDF4.Dataset(out) as f:
        assert f["e"].shape == (2, 5) and (f["e"][1] == 3).all()


def test_scales_of_h5py(daemon, tmp_path):
    """Its datasets that may grow are in one piece as before where no dimension says that they grow."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("plain", data=WIND, maxshape=(None, 4, None), chunks=True)
        x = f.create_dataset("x", data=np.arange(6.0), maxshape=(None,))
        x.make_scale("x")
        f["y"] = np.arange(4.0)
        f["y"].make_scale("y")
        f.create_dataset("z", data=np.arange(5.0), maxshape=(None,)).make_scale("z")
        w = f.create_dataset("w", data=WIND, maxshape=(None, 4, None))
        for axis, name in enumerate("xyz"):
            w.dims[axis].attach_scale(f[name])
    for name in ("plain", "w"):
        daemon.ctl("convert", f"{tmp_path}/a.h5:/{name}", f"{tmp_path}/o.h5:/{name}")
    with h5py.File(tmp_path / "o.h5") as f:
        assert f["plain"].chunks is None and f["plain"].maxshape == (6, 4, 5)
        assert f["w"].maxshape == (None, 4, None) and np.array_equal(f["w"], WIND)
        assert f["x"].maxshape == f["z"].maxshape == (None,) and f["y"].maxshape == (4,)
        assert f["w"].dims[2][0] == f["z"]


def test_python(gd, source, tmp_path):
    out = tmp_path / "o.nc"
    w = gd.open(f"{source}/c.nc:/w")
    gd.save(f"{out}:/w", w)
    gd.save(f"{out}:/m", w[:, 1:].mean(axis=2))
    gd.save(f"{out}:/f", w, chunks=False)
    gd.save({f"{out}:/a": w + 1, f"{out}:/b": w.sum(axis=0)}, compression="lzf")
    assert [dimensions(out, name) for name in "wmfab"] == \
        ["time* lat lon", "time* lat_2", "time* lat lon", "time* lat lon", "lat lon"]
    with h5py.File(out) as f:
        assert f["f"].chunks is None and f["f"].maxshape == (6, 4, 5) and np.array_equal(f["f"], WIND)
    check_grows(out, "w")
    first = out.read_bytes()
    out.unlink()
    for name, lazy, how in (("w", w, {}), ("m", w[:, 1:].mean(axis=2), {}), ("f", w, {"chunks": False})):
        gd.save(f"{out}:/{name}", lazy, **how)
    gd.save({f"{out}:/a": w + 1, f"{out}:/b": w.sum(axis=0)}, compression="lzf")
    assert out.read_bytes() == first
    with pytest.raises(gd.errors.BadArgument, match="without chunks"):
        gd.save(f"{out}:/c", w, chunks=False, compression="gzip")


def test_info_says_which(daemon, gd, source, tmp_path):
    """As h5py's maxshape; of a dimension that is nothing but a name netCDF keeps no length."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("a", data=WIND, maxshape=(None, 4, 9))
        f.create_dataset("b", data=WIND)
    text = daemon.ctl("info", source / "c.nc").stdout
    assert [line.split("  ") for line in text.splitlines() if line.startswith("/step")] == [
        ["/step", "an unlimited dimension"]]
    for path, name, wanted in ((source / "c.nc", "w", (None, 4, 5)), (source / "c3.nc", "w", (None, 4, 5)),
                               (source / "c3.nc", "time", (None,)), (tmp_path / "a.h5", "a", (None, 4, 9)),
                               (tmp_path / "a.h5", "b", None)):
        listed = {one.name: one for one in gd.list(path)}
        assert listed[f"/{name}"].maxshape == (wanted or WIND.shape)
        said = json.loads(daemon.ctl("info", f"{path}:/{name}", "--json").stdout)
        assert said.get("maxshape") == (wanted and list(wanted))
        told = str(wanted).replace("None", "unlimited")
        lines = daemon.ctl("info", path).stdout.splitlines()
        assert all((told in line) == bool(wanted) for line in lines if line.startswith(f"/{name} "))
        assert (f"\nmaxshape {told}\n" in daemon.ctl("info", f"{path}:/{name}").stdout) == bool(wanted)
    assert "maxshape" not in daemon.ctl("info", tmp_path / "a.h5:/b").stdout


@pytest.mark.parametrize("name, engine", [("c.nc", "netcdf4"), ("c3.nc", "netcdf4"), ("c3.nc", "scipy")])
def test_a_round_trip_by_xarray(gd, source, tmp_path, name, engine):
    found = xarray.open_dataset(source / name, engine="gpuarrayd", drop_variables="e")
    with xarray.open_dataset(source / name, engine=engine) as wanted:
        assert found.encoding["unlimited_dims"] == set(wanted.encoding["unlimited_dims"]) - {"step"}
    found.to_netcdf(tmp_path / "o.nc", engine=engine)
    assert dimensions(tmp_path / "o.nc", "w") == "time* lat lon"
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("a", data=WIND[:4], maxshape=(None, 4, 5))
        f.create_dataset("b", data=WIND[:4, :4])
    found, wanted = (xarray.open_dataset(tmp_path / "a.h5", engine=one) for one in ("gpuarrayd", "netcdf4"))
    assert found.encoding["unlimited_dims"] == wanted.encoding["unlimited_dims"] == {"phony_dim_0"}
    assert [found[one].dims for one in "ab"] == [wanted[one].dims for one in "ab"]
    wanted.close()


def test_what_python_joins_keeps_its_coordinates(daemon, gd, source, tmp_path):
    """Of a list and of concatenate(), also of parts; not where the units of times differ."""
    out, names = tmp_path / "o.nc", [f"{source}/c.nc:/w", f"{source}/c3.nc:/w"]
    with netCDF4.Dataset(tmp_path / "later.nc", "w") as f:
        f.createDimension("time", None)
        f.createVariable("time", "f8", ("time",))[:] = np.arange(2.0)
        f["time"].units = "days since 2001-01-01"
        for dim, size in (("lat", 4), ("lon", 5)):
            f.createDimension(dim, size)
        f.createVariable("w", "f4", ("time", "lat", "lon"))[:] = WIND[:2]
    a, b, later = (gd.open(name) for name in (*names, f"{tmp_path}/later.nc:/w"))
    days, both = np.arange(6) * 30.0, np.concatenate([WIND, WIND])
    for x, wanted, times in (
            (gd.concatenate([a, b]), both, [*days, *days]), (gd.open(names), both, [*days, *days]),
            (gd.concatenate([a[4:], b[::-2], a[:1]]), np.concatenate([WIND[4:], WIND[::-2], WIND[:1]]),
             [*days[4:], *days[::-2], days[0]]),
            (gd.open([f"{names[0]}[1:3]", f"{names[1]}[2:4]"]), WIND[[1, 2, 2, 3]], days[[1, 2, 2, 3]]),
            (gd.open(names)[4:9, 1:], both[4:9, 1:], [*days, *days][4:9]),
            (gd.open(names)[4:9] * 2, both[4:9] * 2, [*days, *days][4:9]),
            (gd.concatenate([a, later]), np.concatenate([WIND, WIND[:2]]), None)):
        out.unlink(missing_ok=True)
        gd.save(f"{out}:/w", x)
        assert dimensions(out, "w") == "time* lat lon"
        with h5py.File(out) as f:
            assert np.array_equal(f["w"], wanted) and ("units" in f["time"].attrs) == (times is not None)
            assert times is None or np.array_equal(f["time"], times)
    out.unlink()
    daemon.ctl("concatenate", names[0], f"{tmp_path}/later.nc:/w", "--axis", "0", "-o", f"{out}:/w")
    assert dimensions(out, "w") == "time* lat lon"
    with h5py.File(out) as f:
        assert "units" not in f["time"].attrs  # a dimension, and no times
    gd.save(f"{out}:/along_lat", gd.concatenate([a, b[:, :1]], axis=1))
    gd.save(f"{out}:/of_two", gd.concatenate([a, b + 1]))
    with h5py.File(out) as f:
        assert np.array_equal(f["along_lat"], np.concatenate([WIND, WIND[:, :1]], axis=1))
        assert np.array_equal(f["of_two"], np.concatenate([WIND, WIND + 1]))
