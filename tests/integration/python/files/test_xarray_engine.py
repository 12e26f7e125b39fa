"""xr.open_dataset(..., engine="gpuarrayd") has what xarray's own engines have, and lazies in it."""

import importlib.metadata
import pickle
import tomllib
import warnings

import h5py
import netCDF4
import numpy as np
import pytest
import zarr

import conftest
from test_packed import LIMITED, numbers, put

xarray = pytest.importorskip("xarray")
pytestmark = [pytest.mark.filterwarnings(f"ignore:.*{text}") for text in (
    "Consolidated metadata", "fixed_length_utf32", "data type", "multiple fill", "specified chunks")]
RNG = np.random.default_rng(30)


@pytest.fixture(scope="module")
def weather():
    """Each kind of variable that datasets have."""
    times = np.datetime64("2001-02-03T00", "ns") + np.arange(5) * np.timedelta64(6, "h")
    t = RNG.normal(280, 9, (5, 3, 4)).astype("f4")
    t[1, 2, 3] = np.nan
    return xarray.Dataset(
        {"t": (("time", "lat", "lon"), t, {"units": "K", "long_name": "Temperatur ü"}),
         "seen": (("time", "lat"), RNG.integers(0, 2, (5, 3)).astype(bool)),
         "count": (("lat", "bin"), numbers("i4", (3, 6))), "one": ((), 3.5),
         "name": ("station", np.array(["ab", "cdef"])), "lasts": ("time", times - times[0])},
        coords={"time": times, "lat": [10.0, 20, 30], "lon": np.arange(4.0),
                "height": (("lat", "lon"), RNG.normal(size=(3, 4)))},
        attrs={"title": "a", "n": 3, "list": np.array([1.5, 2])})


PACKED = {"t": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768}}


@pytest.fixture(scope="module", params=["netcdf4", "scipy", "zarr 2", "zarr 3"])
def stored(request, weather, tmp_path_factory):
    """A file and the engine that made it."""
    engine, *zarr_format = request.param.split()
    path = str(tmp_path_factory.mktemp("stored") / ("a.zarr" if zarr_format else "a.nc"))
    if zarr_format:
        weather.to_zarr(path, encoding=PACKED, zarr_format=int(zarr_format[0]))
    else:
        weather.to_netcdf(path, encoding=PACKED, engine=engine)
    return path, engine


@pytest.mark.parametrize("how", [{}, {"decode_cf": False}, {"mask_and_scale": False},
                                 {"decode_times": False, "decode_timedelta": False},
                                 {"drop_variables": ["t", "name"]}, {"concat_characters": False},
                                 {"decode_coords": "all"}], ids=str)
def test_of_xarrays_engines(gd, stored, how):
    path, engine = stored
    found = xarray.open_dataset(path, engine="gpuarrayd", **how)
    with xarray.open_dataset(path, engine=engine, **how) as wanted:
        xarray.testing.assert_identical(found.as_numpy(), wanted.load())
        for name in wanted.variables:
            assert found[name].dtype == wanted[name].dtype
    if "drop_variables" not in how:
        assert type(found.t.data) is type(found.height.data) is type(found["count"].data) is gd.Lazy
    found.close()


@pytest.mark.parametrize("fill", [0, 1, 2])
def test_what_is_packed(gd, tmp_path, fill):
    """Exactly as xarray computes it."""
    factors = [{}, {"scale_factor": np.float32(0.01), "add_offset": np.float32(-3)},
               {"scale_factor": 0.01, "add_offset": 273.15}, {"scale_factor": np.float32(0.1)},
               {"add_offset": 10.0}, {"scale_factor": np.float32(0.25), "add_offset": -1.0},
               *([{"scale_factor": np.int16(3)}] if not fill else [])]
    variables = {}
    for dtype in LIMITED:
        for i, factor in enumerate(factors):
            x, attributes = numbers(dtype), dict(factor)
            if dtype[0] == "f" and factor == {"scale_factor": 3}:  # xarray makes integers of them
                continue
            if dtype[0] == "f":  # xarray compares what it has rounded
                x[0, 0], x[3, 3], x[3, 4] = -999, 1e10, 2.5
            if fill:
                attributes["_FillValue"] = x[1:3, 2] = x[0, 0]
            if fill == 2:
                attributes["missing_value"] = x[3, 3:5]
            if dtype in ("i1", "u1", "i2", "u2") and fill < 2:
                variables[f"{dtype}_{i}_unsigned"] = x, {
                    **attributes, "_Unsigned": "true" if dtype[0] == "i" else "false"}
            variables[f"{dtype}_{i}"] = x, attributes
    put(tmp_path / "a.nc", variables)
    found = xarray.open_dataset(tmp_path / "a.nc", engine="gpuarrayd")
    wanted = xarray.open_dataset(tmp_path / "a.nc", engine="netcdf4").load()
    for name in wanted:
        assert found[name].dtype == wanted[name].dtype and found[name].attrs == wanted[name].attrs
    lazies = [found[name].data for name in wanted]
    is_lazy = [isinstance(one, gd.Lazy) for one in lazies]
    assert sum(is_lazy) >= len(lazies) - len(lazies) / 7  # whole factors are left to xarray
    lazies = [one for one in lazies if isinstance(one, gd.Lazy)]
    values = [one for i in range(0, len(lazies), 16) for one in gd.compute(*lazies[i:i + 16])]
    for name, value in zip([n for n, lazy in zip(wanted, is_lazy) if lazy], values, strict=True):
        assert np.array_equal(value, wanted[name].values, equal_nan=value.dtype.kind == "f"), name


def test_what_is_lazy_stays_lazy(gd, stored):
    """Arithmetic, reductions by name, parts and groups of time are one lazy at the end."""
    path, engine = stored
    found = xarray.open_dataset(path, engine="gpuarrayd")
    wanted = xarray.open_dataset(path, engine=engine).load()
    for f in (lambda d: (d.t - d.t.mean("time")) / d.t.std("time"), lambda d: d.t.max(("lat", "lon")),
              lambda d: d.t.isel(time=slice(1, None, 2), lon=[2, 0]).sel(lat=20.0) * 2,
              lambda d: d.t.groupby("time.hour").mean(), lambda d: d["count"].sum("bin") + d.height,
              lambda d: d.t.where(d.seen), lambda d: d.t.transpose("lon", "time", "lat")):
        made, right = f(found), f(wanted)
        assert isinstance(made.data, gd.Lazy)
        xarray.testing.assert_allclose(made.as_numpy(), right, rtol=1e-5)
    points = {"time": xarray.DataArray([0, 3], dims="p"), "lat": xarray.DataArray([2, 1], dims="p")}
    fresh = xarray.open_dataset(path, engine="gpuarrayd")
    for f in (lambda t: t.isel(points), lambda t: (t * 1).isel(points), lambda t: t.idxmax("lon"),
              lambda t: t.fillna(0).argsort(), lambda t: t.isel(points)):
        xarray.testing.assert_identical(f(fresh.t).as_numpy(), f(wanted.t))
        fresh.t.load()
    again = pickle.loads(pickle.dumps(fresh[["t"]]))
    xarray.testing.assert_identical(again.as_numpy(), wanted[["t"]])


def test_what_is_computed_is_written(gd, stored, tmp_path):
    """By xarray's own writers, which ask whether chunks are empty."""
    path, engine = stored
    made = (xarray.open_dataset(path, engine="gpuarrayd")[["t"]] * 2).drop_encoding()
    wanted = (xarray.open_dataset(path, engine=engine)[["t"]] * 2).load()
    made.to_netcdf(tmp_path / "made.nc")
    xarray.testing.assert_identical(xarray.open_dataset(tmp_path / "made.nc").load(), wanted)
    made.to_zarr(tmp_path / "made.zarr")
    xarray.testing.assert_identical(xarray.open_zarr(tmp_path / "made.zarr").load(), wanted)


def test_blocks_of_dask(gd, stored):
    pytest.importorskip("dask")
    path, engine = stored
    found = xarray.open_dataset(path, engine="gpuarrayd", chunks={"time": 2})
    assert found.t.chunks[0] == (2, 2, 1)
    xarray.testing.assert_identical(found.compute(), xarray.open_dataset(path, engine=engine).load())


def test_groups_and_trees(gd, weather, tmp_path):
    tree = xarray.DataTree.from_dict({"/": weather[["one"]], "/a": weather[["t"]],
                                      "/a/b c": weather[["count", "name"]]})
    tree.to_netcdf(tmp_path / "a.nc", engine="netcdf4")
    for group in (None, "a", "/a/b c/"):
        found = xarray.open_dataset(tmp_path / "a.nc", engine="gpuarrayd", group=group)
        wanted = xarray.open_dataset(tmp_path / "a.nc", engine="netcdf4", group=group).load()
        xarray.testing.assert_identical(found.as_numpy(), wanted)
    for open_it in (xarray.open_datatree, xarray.open_groups):
        for group in (None, "a"):
            found, wanted = (dict(made.items() if isinstance(made, dict) else
                                  [(node.path, node.to_dataset()) for node in made.subtree])
                             for made in (open_it(tmp_path / "a.nc", engine=one, group=group)
                                          for one in ("gpuarrayd", "netcdf4")))
            assert found.keys() == wanted.keys()
            for name in wanted:
                xarray.testing.assert_identical(found[name].as_numpy(), wanted[name].load())
    with pytest.raises(gd.NotFound, match="none"):
        xarray.open_dataset(tmp_path / "a.nc", engine="gpuarrayd", group="none")
    with pytest.raises(gd.BadFormat, match="no group of named arrays"):
        xarray.open_dataset(tmp_path / "a.nc", engine="gpuarrayd", group="a/t")


def test_axes_without_names_and_names_of_dimensions(gd, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w", track_order=True) as f:
        for name, shape in {"a": (3, 4), "b": (4, 4), "c": (5, 3, 0), "d": ()}.items():
            f[name] = RNG.normal(size=shape).astype(">f4")
    with netCDF4.Dataset(tmp_path / "b.nc", "w") as f:
        f.createDimension("x", 3)
        f.createDimension("y", None)
        f.createVariable("x", "i2", ("y", "x"))[:2] = np.arange(6).reshape(2, 3)
        f.createVariable("s1", "S1", ("x",))[:] = np.array(list("abc"), "S1")
    with h5py.File(tmp_path / "c.h5", "w") as f:  # netCDF's library ends the process there
        f["half"], f["x"], f["text"] = np.arange(3, dtype="f2"), np.arange(3), "a"
    found = xarray.open_dataset(tmp_path / "c.h5", engine="gpuarrayd")
    assert found.half.dtype == "f4" and found.half.values.tolist() == [0, 1, 2]
    assert {*found.variables} == {"half", "x", "text"} and found.x.dims == ("phony_dim_0",)
    for name in ("a.h5", "b.nc"):
        wanted = xarray.open_dataset(tmp_path / name, engine="netcdf4").load()
        found = xarray.open_dataset(tmp_path / name, engine="gpuarrayd")
        xarray.testing.assert_identical(found.as_numpy(), wanted)


def test_other_engines_are_not_needed(gd, weather, tmp_path, monkeypatch):
    import gpuarrayd.xarray
    weather.to_netcdf(tmp_path / "a.nc", engine="netcdf4")
    monkeypatch.setattr(gpuarrayd.xarray, "list_engines", dict)
    with pytest.warns(RuntimeWarning, match=r"left out.*: name \(a string"):
        found = xarray.open_dataset(tmp_path / "a.nc", engine="gpuarrayd")
    xarray.testing.assert_identical(found.as_numpy(), weather.drop_vars("name"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xarray.open_dataset(tmp_path / "a.nc", engine="gpuarrayd", drop_variables="name")


def test_what_cannot_be_opened(gd, tmp_path):
    (tmp_path / "garbage.nc").write_bytes(RNG.bytes(999))
    np.save(tmp_path / "a.npy", np.ones(3))
    for path, error in ((tmp_path / "none.nc", FileNotFoundError), (b"CDF\x01", gd.Unsupported),
                        (tmp_path / "garbage.nc", gd.BadFormat), (tmp_path / "a.npy", gd.BadFormat)):
        with pytest.raises(error) as raised:
            xarray.open_dataset(path, engine="gpuarrayd")
        assert raised.value.code and raised.value.expected is not None or "garbage" in str(path) \
            or "none" in str(path)


def test_guessing(gd, tmp_path, weather):
    engine = xarray.backends.list_engines()["gpuarrayd"]
    weather.to_netcdf(tmp_path / "a.nc", engine="netcdf4")
    zarr.open_group(tmp_path / "b.zarr", mode="w")
    (tmp_path / "c.grib").write_bytes(b"GRIB")
    assert engine.guess_can_open(str(tmp_path / "a.nc")) and engine.guess_can_open(tmp_path / "b.zarr/")
    for other in (tmp_path / "c.grib", tmp_path / "none.nc", "https://a.example/b.nc", b"CDF", 3):
        assert not engine.guess_can_open(other)
    assert list(xarray.backends.list_engines()).index("netcdf4") < \
        list(xarray.backends.list_engines()).index("gpuarrayd")


def test_entry_points_agree():
    """Those that pip reads, and those that meson installs without it."""
    [found] = [one for one in importlib.metadata.entry_points(group="xarray.backends")
               if one.name == "gpuarrayd"]
    told = [tomllib.loads((conftest.TOP / path / "pyproject.toml").read_text())["project"]
            for path in ("", "client/python")]
    for project in told:
        assert project["entry-points"] == {"xarray.backends": {"gpuarrayd": found.value}}
        assert project["optional-dependencies"] == told[0]["optional-dependencies"]
    assert found.load().description
