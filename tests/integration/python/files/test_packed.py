"""Packed variables as their attributes mean them, against xarray and netCDF4; who is warned."""

import itertools
import json
import os
import pickle
import warnings

import h5py
import netCDF4
import numpy as np
import pytest
import xarray

RNG = np.random.default_rng(5)
LIMITED = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")


def numbers(dtype, shape=(6, 7)):
    """Of the whole range of the dtype where that is small."""
    if dtype[0] == "f":
        return RNG.normal(size=shape).astype(dtype)
    info = np.iinfo(dtype)
    low, high = (info.min, info.max) if info.bits <= 16 else (max(info.min, -10**6), 10**6)
    return RNG.integers(low, high, shape, dtype=dtype, endpoint=True)


def put(path, variables, kind="NETCDF4"):
    """variables: name -> (stored elements, attributes)."""
    with netCDF4.Dataset(path, "w", format=kind) as f:
        for name, (stored, attributes) in variables.items():
            for axis, size in enumerate(stored.shape):
                if f"{name}_{axis}" not in f.dimensions:
                    f.createDimension(f"{name}_{axis}", size)
            dims = [f"{name}_{axis}" for axis in range(stored.ndim)]
            v = f.createVariable(name, stored.dtype, dims, fill_value=attributes.get("_FillValue"))
            v.set_auto_maskandscale(False)
            v.setncatts({k: a for k, a in attributes.items() if k != "_FillValue"})
            v[...] = stored


@pytest.fixture(scope="module")
def matrix(tmp_path_factory):
    """Each dtype with each way of packing, and some elements that are the fill value."""
    variables = {}
    factors = [{}, {"scale_factor": np.float32(0.01), "add_offset": np.float32(-3)},
               {"scale_factor": 0.01, "add_offset": 273.15}, {"scale_factor": np.float32(0.1)},
               {"scale_factor": 0.1}, {"add_offset": 10.0},
               {"scale_factor": np.float32(0.25), "add_offset": -1.0}]
    for dtype, (i, factor), fill in itertools.product(LIMITED, enumerate(factors), (0, 1, 2)):
        stored = numbers(dtype)
        if dtype[0] == "f":  # xarray compares after it has rounded
            stored[0, 0], stored[4, 4], stored[5, 5] = -999, 1e10, 2.5
        attributes = dict(factor)
        if fill:
            attributes["_FillValue"] = stored[0, 0]
            stored[1:3, 2] = stored[0, 0]
        if fill == 2:
            attributes["missing_value"] = np.array([stored[4, 4], stored[5, 5]], dtype)
        variables[f"{dtype}_{i}_{fill}"] = stored, attributes
    path = tmp_path_factory.mktemp("packed") / "matrix.nc"
    put(path, variables)
    return path, variables


def decoded(path, name):
    with xarray.open_dataset(path, engine="netcdf4", decode_times=False) as f:
        return f[name].values


def test_every_dtype_and_packing_is_what_xarray_makes_of_it(gd, matrix):
    path, variables = matrix
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of several fill values
        with xarray.open_dataset(path, engine="netcdf4") as f:
            wanted = {name: f[name].values for name in variables}
    for name, want in wanted.items():
        lazy = gd.open(f"{path}:/{name}", mask_and_scale=True)
        got = np.asarray(lazy)
        assert got.dtype == want.dtype == lazy.dtype, name
        assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f"), name


def test_unsigned_integers_are_what_xarray_makes_of_them(gd, tmp_path):
    stored = np.arange(-128, 128, dtype="i1")
    wide = np.array([-1, 0, 5, -2**31], "i4")
    put(tmp_path / "u.nc", {
        "plain": (stored, {"_Unsigned": "true"}),
        "filled": (stored, {"_Unsigned": "true", "_FillValue": np.int8(-1)}),
        "scaled": (stored, {"_Unsigned": "true", "_FillValue": np.int8(-1), "scale_factor": 0.5}),
        "wide": (wide, {"_Unsigned": "true", "_FillValue": np.int32(-1)}),
        "signed": (stored.view("u1"), {"_Unsigned": "false", "_FillValue": np.uint8(255)}),
    })
    for name in ("plain", "filled", "scaled", "wide"):
        got = np.asarray(gd.open(f"{tmp_path}/u.nc:/{name}", mask_and_scale=True))
        want = decoded(tmp_path / "u.nc", name)
        assert got.dtype == want.dtype, name
        assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f"), name
    want = np.where(stored == -1, np.nan, stored.astype("f4"))
    got = np.asarray(gd.open(f"{tmp_path}/u.nc:/signed", mask_and_scale=True))
    assert np.array_equal(got, want, equal_nan=True)
    for name, dtype, fill in (("filled", "u1", 255), ("wide", "u4", 2**32 - 1), ("signed", "i1", -1)):
        x = gd.open(f"{tmp_path}/u.nc:/{name}", mask_and_scale=False)  # as a file in the classic format
        values = wide if name == "wide" else stored
        assert x.dtype == dtype and np.array_equal(np.asarray(x), values.view(dtype)), name
        from gpuarrayd import _session
        assert _session.current().open(f"{tmp_path}/u.nc:/{name}", False).fill == fill


def test_what_is_beyond_the_valid_range_is_what_netcdf4_masks(gd, tmp_path):
    stored = np.arange(-20, 20, dtype="i2")
    wide = np.arange(-2, 2, 0.1, dtype="f4")
    put(tmp_path / "v.nc", {
        "range": (stored, {"valid_range": np.array([-3, 9], "i2"), "scale_factor": 0.5}),
        "least": (stored, {"valid_min": np.int16(4)}),
        "most": (stored, {"valid_max": np.float64(4), "missing_value": np.int16(0)}),
        "both": (wide, {"valid_min": np.float32(-1), "valid_max": np.float32(0.5)}),
        "unsafe": (stored, {"valid_min": 0.5, "valid_max": np.int32(70000)}),
        "text": (stored, {"valid_range": "0, 5"}),
    })
    with netCDF4.Dataset(tmp_path / "v.nc") as f:
        for name in ("range", "least", "most", "both"):
            want = np.ma.filled(f[name][:].astype("f8"), np.nan)
            got = np.asarray(gd.open(f"{tmp_path}/v.nc:/{name}", mask_and_scale=True))
            assert got.dtype.kind == "f" and np.isnan(got).any(), name
            assert np.array_equal(got, want, equal_nan=True), name
    for name in ("unsafe", "text"):
        got = np.asarray(gd.open(f"{tmp_path}/v.nc:/{name}", mask_and_scale=True))
        assert got.dtype == "i2" and np.array_equal(got, stored)


def test_integers_of_64_bits_are_compared_exactly(gd, tmp_path):
    fill = np.int64(-2**63 + 2)
    stored = np.array([-2**63, -2**63 + 1, fill, -2**63 + 3, 2**63 - 1], "i8")
    large = np.array([2**64 - 2, 2**64 - 1, 0], "u8")
    put(tmp_path / "e.nc", {"s": (stored, {"_FillValue": fill}),
                            "u": (large, {"_FillValue": np.uint64(2**64 - 2)})})
    got = np.asarray(gd.open(f"{tmp_path}/e.nc:/s", mask_and_scale=True))
    assert np.isnan(got).tolist() == [False, False, True, False, False]
    got = np.asarray(gd.open(f"{tmp_path}/e.nc:/u", mask_and_scale=True))
    assert np.isnan(got).tolist() == [True, False, False]


@pytest.fixture
def wind(tmp_path):
    """int16 with a scale of float32, in chunks; and the same as xarray sees it."""
    stored = RNG.integers(-3000, 3000, (30, 40), dtype="i2")
    stored[RNG.random((30, 40)) < 0.1] = -32767
    put(tmp_path / "w.nc", {"u": (stored, {
        "_FillValue": np.int16(-32767), "scale_factor": np.float32(0.01),
        "add_offset": np.float32(5), "units": "m s-1", "long_name": "zonal wind"})})
    return tmp_path / "w.nc", decoded(tmp_path / "w.nc", "u")


def test_it_is_a_part_of_every_expression(gd, wind):
    path, want = wind
    u = gd.open(f"{path}:/u", mask_and_scale=True)
    assert np.allclose(gd.nanmean(u, axis=0).compute(), np.nanmean(want, axis=0), rtol=1e-4,
                       atol=1e-5)
    assert np.array_equal(gd.isnan(u).compute(), np.isnan(want))
    assert np.array_equal((u * 2)[3:9, ::-2].compute(), want[3:9, ::-2] * 2, equal_nan=True)
    assert np.array_equal(u[::-3, 5].compute(), want[::-3, 5], equal_nan=True)
    assert np.array_equal(np.asarray(u.T), want.T, equal_nan=True)
    assert np.allclose(gd.nanquantile(u, 0.3).compute(), np.nanquantile(want, 0.3))
    assert np.allclose(np.asarray(gd.cumsum(gd.where(gd.isnan(u), 0, u), axis=1)),
                       np.cumsum(np.nan_to_num(want).astype("f8"), axis=1), rtol=1e-5)
    full = np.nan_to_num(want)
    v = gd.where(gd.isnan(u), 0, u)
    assert np.allclose(np.asarray(v @ v.T), full @ full.T, rtol=1e-4, atol=0.02)  # of 12000
    assert np.allclose(gd.evaluate("nanmax(t - t0)", t=u, t0=gd.open(f"{path}:/u",
                                                                     mask_and_scale=False)),
                       np.nanmax(want - np.asarray(gd.open(f"{path}:/u", mask_and_scale=False))))
    moved = gd.concatenate([u, gd.open(f"{path}:/u[::-1]", mask_and_scale=True)])
    assert moved.dtype == "f4"
    assert np.array_equal(np.asarray(moved), np.concatenate([want, want[::-1]]), equal_nan=True)
    padded = np.asarray(gd.pad(u, ((1, 2), (3, 0)), constant_values=0.5))
    assert np.array_equal(padded, np.pad(want, ((1, 2), (3, 0)), constant_values=0.5),
                          equal_nan=True)
    assert np.array_equal(np.asarray(gd.roll(u, 3, axis=1)), np.roll(want, 3, 1), equal_nan=True)
    again = pickle.loads(pickle.dumps(u))
    assert again.dtype == "f4" and np.array_equal(np.asarray(again), want, equal_nan=True)


def test_products_of_such_arrays_themselves(gd, tmp_path):
    """Transposed in the text and by the option, where nothing is missing."""
    stored = RNG.integers(0, 200, (20, 30), dtype="u1")
    put(tmp_path / "m.nc", {"m": (stored, {"scale_factor": np.float32(0.5)})})
    want = stored * np.float32(0.5)
    m = gd.open(f"{tmp_path}/m.nc:/m", mask_and_scale=True)
    assert np.allclose(np.asarray(m @ m.T), want @ want.T)
    assert np.allclose(np.asarray(m.T @ m), want.T @ want)
    assert np.allclose(gd.evaluate("t.T @ t + 1", t=m), want.T @ want + 1)
    assert np.allclose(gd.evaluate("x @ t . mT", t=m, x=want), want @ want.T)


def test_refusals_are_in_the_programs_words(gd, wind):
    u = gd.open(f"{wind[0]}:/u", mask_and_scale=True)
    for text, message in (("mean(t", "column 5: "), ("1 + foo", "'foo'"),
                          ("t @ t", "column 3: matmul")):
        with pytest.raises(gd.Error) as caught:
            gd.evaluate(text, t=u)
        assert message in str(caught.value) and "packed" not in str(caught.value), text
    with pytest.raises(gd.errors.BadArgument, match="nothing packs it"):
        gd.open(f"{wind[0]}:/u", "r+", mask_and_scale=True)
    with pytest.raises(gd.errors.ReadOnly):
        gd.evaluate("x + 1", x=1.0, out=u)


def test_factors_that_are_no_numbers_are_refused_where_they_are_needed(gd, tmp_path):
    put(tmp_path / "b.nc", {"nan": (np.arange(3, dtype="i2"), {"scale_factor": np.nan}),
                            "text": (np.arange(3, dtype="i2"), {"add_offset": "none"}),
                            "many": (np.arange(3, dtype="i2"), {"scale_factor": [1.0, 2.0]})})
    for name in ("nan", "text", "many"):
        with pytest.raises(gd.errors.BadFormat, match="no single finite number"):
            gd.open(f"{tmp_path}/b.nc:/{name}", mask_and_scale=True)
        got = np.asarray(gd.open(f"{tmp_path}/b.nc:/{name}", mask_and_scale=False))
        assert np.array_equal(got, [0, 1, 2])


def test_whoever_says_nothing_is_warned_once_for_each_variable(gd, wind, tmp_path):
    path, _ = wind
    np.save(tmp_path / "plain.npy", np.arange(3))
    put(tmp_path / "nan.nc", {"n": (np.arange(3, dtype="f4"), {"_FillValue": np.float32(np.nan),
                                                             "units": "K"})})
    with pytest.warns(gd.PackedWarning, match="_FillValue, scale_factor, add_offset") as caught:
        gd.open(f"{path}:/u")
        gd.open(f"{path}:/u[3]")
        gd.open(f"{path}:/u")
    assert len(caught) == 1 and "mask_and_scale=False" in str(caught[0].message)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gd.open(f"{path}:/u", mask_and_scale=False)
        gd.open(f"{path}:/u", mask_and_scale=True)
        gd.open(f"{tmp_path}/plain.npy")
        gd.open(f"{tmp_path}/nan.nc:/n")
        with h5py.File(path) as f:
            gd.evaluate("max(u)", u=f["u"])  # as h5py has it


def test_the_command_warns_once_and_does_what_it_is_told(daemon, wind, tmp_path):
    path, want = wind
    words = ["run", "max(u + v)", f"u={path}:/u", f"v={path}:/u"]
    told = daemon.ctl(*words)
    assert told.stderr.count("warning:") == 1 and "--no-mask-and-scale" in told.stderr
    stored = daemon.ctl(*words, "--no-mask-and-scale", "--json")
    assert stored.stderr == ""
    assert json.loads(stored.stdout)["outputs"][0]["dtype"] == "int16"
    meant = daemon.ctl("run", "nanmax(u)", f"u={path}:/u", "--mask-and-scale", "--csv")
    assert meant.stderr == "" and np.isclose(float(meant.stdout), np.nanmax(want))
    for verb, more, wanted in (("convert", [], want), ("transpose", ["-o"], want.T),
                               ("flip", ["-o"], want[::-1, ::-1]),
                               ("diff", ["-o"], np.diff(want))):
        done = daemon.ctl(verb, f"{path}:/u", *more, tmp_path / "r.npy", "--mask-and-scale")
        assert done.stderr == ""
        got = np.load(tmp_path / "r.npy")
        assert got.dtype == "f4" and np.array_equal(got, wanted, equal_nan=True), verb
    done = daemon.ctl("transpose", f"{path}:/u", "-o", tmp_path / "r.npy")
    assert done.stderr.count("warning:") == 1 and np.load(tmp_path / "r.npy").dtype == "i2"
    done = daemon.ctl("run", "min(u) + foo", f"u={path}:/u", "--mask-and-scale", check=False)
    assert done.returncode == 1 and "column 10: unknown name 'foo'" in done.stderr


def test_products_and_background_jobs_by_the_command(daemon, tmp_path):
    stored = RNG.integers(0, 100, (8, 9), dtype="i2")
    put(tmp_path / "m.nc", {"m": (stored, {"scale_factor": 0.5})})
    want = stored * 0.5
    daemon.ctl("matmul", "m.nc:/m", "m.nc:/m", "--transpose-b", "-o", "g.npy", "--mask-and-scale",
               cwd=tmp_path)
    assert np.allclose(np.load(tmp_path / "g.npy"), want @ want.T)
    env = {"XDG_RUNTIME_DIR": str(tmp_path)}
    told = daemon.ctl("submit", "m + 1", "m=m.nc:/m", "-o", "s.npy", cwd=tmp_path, env=env)
    assert told.stderr.count("warning:") == 1
    daemon.ctl("wait", told.stdout.strip(), cwd=tmp_path, env=env)
    assert np.load(tmp_path / "s.npy").dtype == "i2"
    told = daemon.ctl("submit", "m + 1", "m=m.nc:/m", "-o", "t.npy", "--mask-and-scale",
                      cwd=tmp_path, env=env)
    assert told.stderr == ""
    daemon.ctl("wait", told.stdout.strip(), cwd=tmp_path, env=env)
    assert np.array_equal(np.load(tmp_path / "t.npy"), want + 1)


def test_show_tells_what_it_leaves_out_and_what_it_is_of(daemon, wind):
    path, want = wind
    plain = daemon.ctl("show", f"{path}:/u")
    n_missing = int(np.isnan(want).sum())
    assert "zonal wind [m s-1]" in plain.stdout
    assert f"fill value -32767: {n_missing} elements, left out" in plain.stdout
    assert plain.stderr.count("warning:") == 1  # of the scale
    meant = json.loads(daemon.ctl("show", f"{path}:/u", "--mask-and-scale", "--json").stdout)
    assert meant["units"] == "m s-1" and meant["nan"] == n_missing and "fill" not in meant
    assert meant["dtype"] == "float32" and np.isclose(meant["min"], np.nanmin(want))
    assert meant["masked_and_scaled"] == "_FillValue, scale_factor, add_offset"


def test_files_that_others_ship(gd, daemon):
    """Ferret's datasets."""
    path = "/usr/share/ferret-vis/data/coads_climatology.cdf"
    if not os.path.exists(path):
        pytest.skip("ferret-datasets is not installed")
    want = decoded(path, "SST")
    got = np.asarray(gd.open(f"{path}:/SST", mask_and_scale=True))
    assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=True)
    assert np.isnan(got).any()
