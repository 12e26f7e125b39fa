"""netCDF classic files, as several libraries write them: every element is what those libraries read,
whole, by selections, and after it was written in place."""

import json
import pathlib
import random
import shutil
import subprocess

import numpy as np
import pytest

netCDF4 = pytest.importorskip("netCDF4")

CLASSIC = ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA")
OLD_TYPES = ("i1", "i2", "i4", "f4", "f8")
NEW_TYPES = OLD_TYPES + ("u1", "u2", "u4", "u8", "i8")
WINDS = pathlib.Path("/usr/share/ferret-vis/data/monthly_navy_winds.cdf")


def types_of(kind):
    return NEW_TYPES if kind in ("NETCDF3_64BIT_DATA", "NETCDF4") else OLD_TYPES


def some(rng, dtype, shape):
    """Elements of all bits, NaN and infinities among them."""
    raw = rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), "u1")
    return raw.reshape(-1).view(dtype).reshape(shape)


def make(path, kind, rng, n_fixed, n_records, n_of_records):
    """A file of random variables; those of records get more of them than they fill."""
    with netCDF4.Dataset(path, "w", format=kind) as file:
        file.createDimension("t", None)
        sizes = {f"d{i}": int(rng.integers(1, 7)) for i in range(4)}
        for name, size in sizes.items():
            file.createDimension(name, size)
        file.title = "random"
        for i in range(n_fixed + n_of_records):
            is_fixed = i < n_fixed
            dims = tuple(rng.choice(list(sizes), rng.integers(0, 4)))
            dtype = str(rng.choice(types_of(kind)))
            v = file.createVariable(f"v{i}", dtype, dims if is_fixed else ("t", *dims))
            v.units = "m" * int(rng.integers(0, 9))
            v.set_auto_maskandscale(False)
            n = () if is_fixed else (int(rng.integers(1, n_records + 1)),)
            v[...] = some(rng, dtype, (*n, *(sizes[dim] for dim in dims)))


def read(path):
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        return {name: np.array(v[...]) for name, v in file.variables.items()}


def stored(gd, spec):
    """Bit by bit: what is computed passes NaNs through."""
    from gpuarrayd import _session
    return gd.evaluate("x", x=gd.open(spec, mask_and_scale=False)), _session.current().open(spec, False)


def check(gd, path, arrays=None):
    for name, expected in (arrays or read(path)).items():
        got, x = stored(gd, f"{path}:/{name}")
        assert x.format == "netcdf" and got.shape == expected.shape
        assert got.dtype == expected.dtype.newbyteorder("=")
        np.testing.assert_array_equal(got, expected, err_msg=f"{path}:/{name}")


@pytest.mark.parametrize("kind", CLASSIC)
def test_whatever_netcdf_writes_is_read_the_same(gd, folder, kind):
    rng = np.random.default_rng(len(kind))
    for i, (n_fixed, n_of_records) in enumerate([(0, 1), (2, 1), (1, 2), (5, 0), (6, 7), (3, 12)]):
        path = folder / f"{i}.nc"
        make(path, kind, rng, n_fixed, 5, n_of_records)
        check(gd, path)
        expected = read(path)
        with open(path, "r+b") as file:  # as writers leave it that do not come back to the header
            file.seek(4)
            file.write(b"\xff" * (8 if kind == "NETCDF3_64BIT_DATA" else 4))
        check(gd, path, expected)


@pytest.mark.parametrize("dtype", OLD_TYPES)
@pytest.mark.parametrize("inner", [(), (1,), (3,), (5, 1)])
def test_records_of_one_variable_are_not_filled_up(gd, folder, dtype, inner):
    path = folder / "one.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("t", None)
        for i, n in enumerate(inner):
            file.createDimension(f"d{i}", n)
        v = file.createVariable("v", dtype, ("t", *(f"d{i}" for i in range(len(inner)))))
        v[...] = some(np.random.default_rng(1), dtype, (9, *inner))
    check(gd, path)


@pytest.mark.parametrize("version", [1, 2])
def test_whatever_scipy_writes_is_read_the_same(gd, folder, version):
    from scipy.io import netcdf_file
    rng = np.random.default_rng(version)
    path = folder / "s.nc"
    with netcdf_file(path, "w", version=version) as file:
        file.createDimension("t", None)
        file.createDimension("x", 7)
        for i, dtype in enumerate(OLD_TYPES):
            file.createVariable(f"f{i}", dtype, ("x",))[:] = some(rng, dtype, (7,))
            file.createVariable(f"r{i}", dtype, ("t", "x"))[:] = some(rng, dtype, (4, 7))
        file.createVariable("text", "c", ("x",))[:] = b"letters"
    with netcdf_file(path, mmap=False) as file:
        for name, v in file.variables.items():
            if name != "text":
                got, x = stored(gd, f"{path}:{name}")
                np.testing.assert_array_equal(got, v[...])
                assert got.dtype == v.data.dtype.newbyteorder("=") and x.access == "file"
    with pytest.raises(gd.BadDtype, match="a text"):
        gd.open(f"{path}:text")


@pytest.mark.skipif(not WINDS.exists() or not shutil.which("nccopy"), reason="no measured winds")
def test_copies_of_measured_winds_in_every_format_are_the_same(gd, folder):
    check(gd, WINDS)
    expected = read(WINDS)
    for kind, form in (("nc6", "netcdf"), ("nc5", "netcdf"), ("nc4", "hdf5"), ("nc7", "hdf5")):
        path = folder / f"{kind}.cdf"
        subprocess.run(["nccopy", "-k", kind, str(WINDS), str(path)], check=True)
        for name in ("UWND", "TIME"):
            got, x = stored(gd, f"{path}:/{name}")
            assert x.format == form and x.fill == (float(np.float32(-99.9)) if name == "UWND" else None)
            np.testing.assert_array_equal(got, expected[name])


def index(rng, size):
    if rng.random() < 0.3:
        return rng.randint(-size, size - 1)
    return slice(rng.choice([None, rng.randint(-size, size)]), rng.choice([None, rng.randint(-size, size)]),
                 rng.choice([None, 1, 2, -1, -3]))


def text_of(key):
    def one(k):
        if isinstance(k, int):
            return str(k)
        return ":".join("" if n is None else str(n) for n in (k.start, k.stop, k.step))
    return "[" + ", ".join(map(one, key)) + "]"


@pytest.mark.parametrize("kind", CLASSIC)
def test_selections_are_numpys(gd, folder, kind):
    rng = random.Random(kind)
    path = folder / "a.nc"
    with netCDF4.Dataset(path, "w", format=kind) as file:
        for name, size in (("t", None), ("y", 11), ("x", 5)):
            file.createDimension(name, size)
        a = np.arange(7 * 11 * 5).reshape(7, 11, 5)
        for name, dims, value in (("r", "tyx", a), ("other", "t", a[:, 0, 0]), ("f", "yx", a[0])):
            file.createVariable(name, "i2", tuple(dims))[...] = value
    arrays = read(path)
    for name, whole in arrays.items():
        for _ in range(25):
            key = tuple(index(rng, size) for size in whole.shape[:rng.randint(1, whole.ndim)])
            got, _ = stored(gd, f"{path}:/{name}{text_of(key)}")
            np.testing.assert_array_equal(got, whole[key], err_msg=text_of(key))


def test_large_records_are_read_as_they_lie(gd, folder):
    """Larger than the pool, next to each other and with something between them."""
    path = folder / "large.nc"
    rng = np.random.default_rng(5)
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        for name, size in (("t", None), ("y", 300), ("x", 401)):
            file.createDimension(name, size)
        a = rng.random((60, 300, 401), "f4")
        for name in ("u", "v"):
            file.createVariable(name, "f4", ("t", "y", "x"))[...] = a if name == "u" else -a
        file.createVariable("time", "f8", ("t",))[...] = np.arange(60)
    u, v, t = (gd.open(f"{path}:/{name}") for name in ("u", "v", "time"))
    np.testing.assert_array_equal(gd.evaluate("u + 2 * v", u=u, v=v), -a)
    np.testing.assert_array_equal(gd.evaluate("max(u, axis=(1, 2)) * t", u=u, t=t),
                                  a.max(axis=(1, 2)) * np.arange(60.))


@pytest.mark.parametrize("kind", CLASSIC[1:])
def test_what_lies_beyond_four_gigabytes_is_found(gd, folder, kind):
    """In CDF-2 the header has no room for the size in bytes of such a variable, which must be the last
    one. The file has a hole."""
    path = folder / "hole.nc"
    with netCDF4.Dataset(path, "w", format=kind) as file:
        file.set_fill_off()
        for name, size in (("t", None), ("y", 3), ("x", 2**30)):
            file.createDimension(name, size)
        has_records = kind == "NETCDF3_64BIT_DATA"
        if has_records:
            file.createVariable("records", "f8", ("t", "y"))
        big = file.createVariable("big", "i2", ("y", "x"))
        big[0, :3], big[2, -3:] = [1, 2, 3], [4, 5, 6]
        if has_records:
            file["records"][:] = np.arange(12).reshape(4, 3)
    assert path.stat().st_size > 6 * 2**30
    x = gd.open(f"{path}:/big")
    assert x.shape == (3, 2**30)
    np.testing.assert_array_equal(gd.evaluate("a", a=x[::2, ::2**30 - 1]),
                                  [[1, 0], [0, 6]])
    np.testing.assert_array_equal(gd.evaluate("a", a=gd.open(f"{path}:/big[2, -3:]")), [4, 5, 6])
    if has_records:
        got = gd.evaluate("a", a=gd.open(f"{path}:/records"))
        np.testing.assert_array_equal(got, np.arange(12.).reshape(4, 3))


def test_variables_are_written_in_place_and_nothing_else_is(daemon, folder):
    for kind in CLASSIC:
        path = folder / f"{kind}.nc"
        rng = np.random.default_rng(3)
        make(path, kind, rng, 4, 5, 5)
        before = read(path)
        np.save(folder / "x.npy", np.arange(1))
        for name in ("v1", "v6"):
            dtype = before[name].dtype.name
            daemon.ctl("run", f"{dtype}(where(x == x, 1, 0) + 41)", f"x={path}:/{name}", "-o", f"{path}:/{name}",
                       "--in-place")
            before[name] = np.full_like(before[name], 42)
            after = read(path)
            for other, value in before.items():
                expected = np.where(value == value, value, 0) if other == name else value
                np.testing.assert_array_equal(after[other], expected, err_msg=other)


def test_nothing_is_added_to_a_file(daemon, folder):
    path = folder / "a.nc"
    make(path, "NETCDF3_CLASSIC", np.random.default_rng(1), 2, 3, 1)
    was = path.read_bytes()
    for name in ("new", "v0"):
        done = daemon.ctl("run", "1 + 1", "-o", f"{path}:/{name}", check=False)
        assert done.returncode == 1 and "[read-only]" in done.stderr and "nccopy -k nc4" in done.stderr
    assert path.read_bytes() == was
    daemon.ctl("convert", f"{path}:/v0", f"{folder}/b.nc:/v0")
    np.testing.assert_array_equal(read(f"{folder}/b.nc")["v0"], read(path)["v0"])


def test_unsigned_variables_of_files_without_such_types(gd, folder):
    path = folder / "u.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("x", 4)
        for dtype in ("i1", "i2", "i4"):
            v = file.createVariable(dtype, dtype, ("x",), fill_value=-1)
            v.setncattr("_Unsigned", "true")
            v.set_auto_maskandscale(False)
            v[:] = np.array([0, -1, -2, 1], dtype)
    for dtype in ("i1", "i2", "i4"):
        got, x = stored(gd, f"{path}:/{dtype}")
        unsigned = np.dtype(dtype.replace("i", "u"))
        assert got.dtype == unsigned and x.fill == np.iinfo(unsigned).max
        np.testing.assert_array_equal(got, np.array([0, -1, -2, 1], dtype).view(unsigned))
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_DATA") as file:
        file.createDimension("x", 4)
        v = file.createVariable("v", "u2", ("x",), fill_value=65534)
        v.setncattr("_Unsigned", "false")
        v.set_auto_maskandscale(False)
        v[:] = np.array([0, 1, 65535, 65534], "u2")
    got, x = stored(gd, f"{path}:/v")
    assert got.dtype == "i2" and got.tolist() == [0, 1, -1, -2] and x.fill == -2


def test_attributes_and_dimensions_mean_what_they_mean_elsewhere(gd, folder):
    xarray = pytest.importorskip("xarray")
    path = folder / "m.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("time", None)
        file.createDimension("level", 6)
        v = file.createVariable("v", "i2", ("time", "level"), fill_value=-99)
        v.setncatts({"scale_factor": np.float32(0.25), "add_offset": np.float32(10), "units": "K",
                     "valid_range": np.array([-99, 20], "i2")})
        v.set_auto_maskandscale(False)
        v[:] = np.arange(24).reshape(4, 6)
        v[2, 1:3] = -99
        file.createVariable("other", "f8", ("time",))[:] = np.arange(4)
    from gpuarrayd import _session
    x = _session.current().open(f"{path}:/v[1:, 3]", False)
    assert x.dimensions == ("time",) and x.units == "K" and x.fill == -99
    x = _session.current().open(f"{path}:/v", False)
    assert x.dimensions == ("time", "level")
    with netCDF4.Dataset(path) as file:
        expected = file["v"][:].filled(np.nan)
    got = gd.evaluate("v", v=gd.open(f"{path}:/v", mask_and_scale=True))
    np.testing.assert_array_equal(got, expected)
    with xarray.open_dataset(path) as file:  # has no ranges
        np.testing.assert_array_equal(got.dtype, file["v"].dtype)


def test_files_of_a_pattern_are_each_what_they_begin_with(gd, folder):
    for i, kind in enumerate(("NETCDF3_CLASSIC", "NETCDF4", "NETCDF3_64BIT_DATA")):
        with netCDF4.Dataset(folder / f"m{i}.nc", "w", format=kind) as file:
            file.createDimension("t", None)
            file.createDimension("x", 3)
            for name in ("other", "v[0]"):
                file.createVariable(name, "i2", ("t", "x"))[:] = np.arange(6).reshape(2, 3) + 10 * i
    expected = np.concatenate([np.arange(6).reshape(2, 3) + 10 * i for i in range(3)])
    for key, selected in (("v[0]", expected), ("other[1:, ::2]", expected[1:, ::2])):
        got = gd.evaluate("v", v=gd.open(f"{folder}/m*.nc:/{key}"))
        np.testing.assert_array_equal(got, selected)


@pytest.mark.parametrize("kind", CLASSIC)
def test_a_file_is_listed_as_netcdf_has_it(daemon, folder, kind):
    path = folder / "l.nc"
    make(path, kind, np.random.default_rng(9), 5, 3, 4)
    with netCDF4.Dataset(path, "a") as file:
        file.createVariable("text", "S1", ("d0",))
        file["v0"].numbers = np.array([1, -2, 3], "i2")
    listed = {entry.pop("name"): entry
              for entry in json.loads(daemon.ctl("info", path, "--json").stdout)["contents"]}
    assert listed.pop("/")["attributes"] == {"title": "random"}
    with netCDF4.Dataset(path) as file:
        assert [f"/{name}" for name in file.variables] == list(listed)
        for name, v in file.variables.items():
            entry = listed[f"/{name}"]
            assert tuple(entry["shape"]) == v.shape
            assert tuple(entry.get("dimensions", ())) == v.dimensions
            assert entry["served"] == (name != "text")
            assert entry["dtype"] == ("a text" if name == "text" else v.dtype.name)
            expected = {key: np.array(v.getncattr(key)).tolist() for key in v.ncattrs()}
            assert entry.get("attributes", {}) == expected


NCO = (
    "ncks -3 -d TIME,0,2 {winds} a.nc",                         # records
    "ncks -6 --fix_rec_dmn TIME -d TIME,1,3 {winds} b.nc",      # none
    "ncks -5 -d TIME,5,6 {winds} c.nc",
    "ncks -7 -L 1 -d TIME,0,2 {winds} d.nc",                    # HDF5, deflated
    "ncap2 -4 --cnk_plc=g2d -L 2 -v -s S=sqrt(UWND^2+VWND^2)*1.0;I=short(VWND) a.nc e.nc",
    "ncrcat a.nc c.nc f.nc",
    "ncpdq -P all_new a.nc p.nc",                               # packed as short
    "ncpdq -4 -L 1 --map flt_byt a.nc q.nc",                    # and as byte, in HDF5
    "ncpdq -a -FNOCY,TIME a.nc r.nc",                           # turned and transposed
    "ncwa -a FNOCX a.nc w.nc",
)


@pytest.mark.skipif(not shutil.which("ncks") or not WINDS.exists(), reason="nco is not installed")
def test_what_nco_writes(gd, tmp_path):
    """As netCDF4 reads it, the packed ones as xarray does."""
    import xarray
    for line in NCO:
        words = line.format(winds=WINDS).split()
        subprocess.run([words[0], "-O", "-h", *words[1:]], check=True, cwd=tmp_path,
                       stderr=subprocess.DEVNULL)
    for path in sorted(tmp_path.glob("?.nc")):
        is_packed = path.stem in "pq"
        with netCDF4.Dataset(path) as file:
            file.set_auto_maskandscale(False)
            assert not is_packed or file["UWND"].dtype == (np.int16 if path.stem == "p" else np.int8)
            for name, variable in file.variables.items():
                x = gd.open(f"{path}:/{name}", mask_and_scale=False)
                got, wanted = (x + x.dtype.type(0)).compute(), np.asarray(variable[...])
                assert got.dtype == wanted.dtype.newbyteorder("=") and x.shape == wanted.shape
                np.testing.assert_array_equal(got, wanted, f"{path.name} {name}")
        if is_packed:
            with xarray.open_dataset(path, decode_times=False) as file:
                for name in ("UWND", "VWND"):
                    got = (gd.open(f"{path}:/{name}", mask_and_scale=True) + np.float32(0)).compute()
                    np.testing.assert_allclose(got, file[name].values, rtol=1e-6, atol=1e-6)


@pytest.mark.skipif(not shutil.which("ncks") or not WINDS.exists(), reason="nco is not installed")
@pytest.mark.parametrize("how", [{}, {"compression": "gzip", "shuffle": True}])
def test_nco_reads_ours(gd, tmp_path, how):
    """Axes have the names and coordinates that they have where the numbers come from."""
    gd.save(f"{tmp_path}/ours.nc:/UWND", gd.open(f"{WINDS}:/UWND", mask_and_scale=False) * np.float32(2), **how)
    for line in ("ncks -d TIME,3,5 ours.nc a.nc", "ncwa -a FNOCX ours.nc b.nc"):
        words = line.split()
        subprocess.run([words[0], "-O", "-h", *words[1:]], check=True, cwd=tmp_path)
    with netCDF4.Dataset(WINDS) as file:
        file.set_auto_maskandscale(False)
        stored, places = file["UWND"][:], file["FNOCY"][:]
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        file.set_auto_maskandscale(False)
        assert file["UWND"].dimensions == ("TIME", "FNOCY", "FNOCX")
        np.testing.assert_array_equal(file["UWND"][:], 2 * stored[3:6])
        np.testing.assert_array_equal(file["FNOCY"][:], places)
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        np.testing.assert_allclose(file["UWND"][:], (2 * stored).mean(axis=2), rtol=1e-5, atol=1e-5)
