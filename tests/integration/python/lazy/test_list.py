"""gd.list(): files as other libraries make them."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading

import h5py
import numpy as np
import pytest

import gpuarrayd as gd


def by_name(spec):
    return {one.name: one for one in gd.list(spec)}


def test_what_h5py_makes(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w", track_order=True) as f:
        f.attrs.update(title="Höhe", names=["x", "yy"], empty=h5py.Empty("S1"), flag=True, none=h5py.Empty("f4"))
        f.attrs["reference"] = f.ref
        data = f.create_dataset("g/d", data=np.arange(24, dtype=">i2").reshape(4, 6), chunks=(2, 3),
                                compression="gzip", compression_opts=7, shuffle=True)
        data.attrs.update(fill=np.float32(-99.9), most=np.uint64(2**64 - 1), range=np.array([1, 2], "i1"),
                          half=np.float16(0.5))
        data.dims[1].label = "columns"
        f["words"] = ["a", "b"]
        f["pair"] = np.zeros(2, [("a", "f4"), ("b", "i8")])
        f["nothing"] = h5py.Empty("f4")
        f["one"] = 1.5
        f["gone"] = h5py.SoftLink("/nowhere")
    root, group, data, words, pair, nothing, one, gone = gd.list(tmp_path / "a.h5")
    assert (root.kind, root.name, root.dtype, root.shape, root.type) == ("group", "/", None, None, None)
    assert root.attributes == {"title": "Höhe", "names": ("x", "yy"), "empty": "", "flag": True, "none": None,
                               "reference": None}
    assert isinstance(root.attributes["flag"], np.bool_)
    assert (group.kind, group.name, group.attributes) == ("group", "/g", {})
    assert (data.kind, data.name, data.dtype, data.shape) == ("array", "/g/d", np.dtype("i2"), (4, 6))
    assert (data.chunks, data.dimensions, data.filters) == ((2, 3), (None, "columns"), "shuffle, deflate 7")
    assert repr(data) == "<Listed array int16 (4, 6): '/g/d'>" and repr(group) == "<Listed group: '/g'>"
    assert data.is_served and data.type == "int16"
    fill, most, bounds, half = (data.attributes[name] for name in ("fill", "most", "range", "half"))
    assert fill == np.float32(-99.9) and fill.dtype == "f4" and most == 2**64 - 1 and half == 0.5
    assert bounds.dtype == "i1" and bounds.tolist() == [1, 2]
    assert (words.dtype, words.type, words.is_served) == (None, "a string of varying length", False)
    assert (pair.dtype, pair.type, pair.shape) == (None, "a compound of 12 bytes", (2,))
    assert (nothing.shape, nothing.is_served, one.shape, one.filters) == (None, False, (), "")
    assert (gone.kind, gone.type) == ("other", "a soft link to '/nowhere', which leads nowhere")


def test_names_lead_to_what_they_name(tmp_path, daemon):
    names = ["a b", "x[0]", "käse", "it's", 'q"', "c:d=e", " blank", "-", "a.npy"]
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for i, name in enumerate(names):
            f[f"g {i}/{name}"] = np.full(3, i)
        f.create_dataset(b"not \xff utf-8", data=[9])
    listed = [one for one in gd.list(tmp_path / "a.h5") if one.kind == "array"]
    assert {one.name.split("/")[-1] for one in listed} == {*names, os.fsdecode(b"not \xff utf-8")}
    gd.connect(daemon.socket)
    for one in listed:
        assert gd.open(f"{tmp_path}/a.h5:{one.name}").shape == one.shape, one.name
        assert [again.name for again in gd.list(f"{tmp_path}/a.h5:{one.name}")] == [one.name]


@pytest.mark.parametrize("form", ["NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA"])
def test_what_netcdf_makes(tmp_path, form):
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format=form) as f:
        f.title = "winds"
        for name, size in (("time", None), ("lat", 4), ("bare", 7)):
            f.createDimension(name, size)
        f.createVariable("time", "f8", ("time",)).units = "hours since 1900-01-01"
        t = f.createVariable("temp", "i2", ("time", "lat", "bare"), fill_value=-999)
        t.setncatts({"units": "K", "long_name": "temperature", "scale_factor": 0.01, "range": np.array([-5, 5], "i2")})
        f.createVariable("lat", "f4", ("lat",))
        t.set_auto_maskandscale(False)
        t[:] = np.zeros((2, 4, 7), "i2")
    listed = by_name(tmp_path / "a.nc")
    assert {name for name, one in listed.items() if one.kind == "array"} == {"/time", "/temp", "/lat"}
    assert listed["/"].attributes["title"] == "winds"
    t = listed["/temp"]
    assert (t.dtype, t.shape, t.dimensions) == (np.dtype("i2"), (2, 4, 7), ("time", "lat", "bare"))
    assert [t.attributes[name] for name in ("units", "long_name", "scale_factor")] == ["K", "temperature", 0.01]
    assert t.attributes["_FillValue"] == -999 and t.attributes["range"].tolist() == [-5, 5]
    assert listed["/lat"].dimensions == ("lat",)
    assert not {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid"} & {
        name for one in listed.values() for name in one.attributes}


def test_what_netcdf_makes_in_groups(tmp_path):
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as f:
        f.createDimension("time", None)
        f.createDimension("n", 3)
        f.createVariable("time", "f8", ("time",))
        f.createVariable("n", "f4", ("n", "time"))  # a coordinate of two axes
        inner = f.createGroup("inner")
        inner.createDimension("z", 5)
        inner.createVariable("w", "f4", ("time", "z", "n"), zlib=True, complevel=3)
        inner.createVariable("words", str, ("z",))
    listed = by_name(tmp_path / "a.nc")
    assert listed["/inner/w"].dimensions == ("time", "z", "n")
    assert listed["/inner/w"].filters == "shuffle, deflate 3"
    assert listed["/n"].dimensions[0] == "n"
    assert (listed["/inner/z"].kind, listed["/inner/z"].type) == ("other", "a dimension of 5")
    assert not listed["/inner/words"].is_served
    assert list(by_name(f"{tmp_path}/a.nc:/inner")) == [name for name in listed if name.startswith("/inner")]


TABLES = """if True:
    import sys
    import numpy as np
    import tables
    with tables.open_file(sys.argv[1], "w", title="runs") as f:
        f.create_array("/", "plain", np.arange(5))
        f.create_carray("/", "packed", obj=np.zeros((10, 10)), chunkshape=(5, 10),
                        filters=tables.Filters(5, "zlib"))
        f.create_earray("/", "growing", obj=np.zeros((2, 3), "f4"))
        f.create_table("/", "table", np.zeros(3, [("a", "f4")]))
        f.create_vlarray("/", "ragged", tables.Int32Atom())
        f.create_array("/", "complex", np.zeros(2, "c16"))
        f.create_group("/", "empty")
        f.create_soft_link("/", "soft", "/plain")
"""


@pytest.mark.skipif(not importlib.util.find_spec("tables"), reason="not from the distribution")
def test_what_pytables_makes(tmp_path):
    """In a process of its own: its filters would take the place of hdf5plugin's in this one."""
    subprocess.run([sys.executable, "-c", TABLES, tmp_path / "a.h5"], check=True)
    listed = by_name(tmp_path / "a.h5")
    assert {name for name, one in listed.items() if one.is_served} == {"/plain", "/packed", "/growing", "/soft"}
    assert listed["/packed"].filters == "shuffle, deflate 5" and listed["/packed"].chunks == (5, 10)
    assert listed["/"].attributes["TITLE"] == "runs" and listed["/plain"].attributes["CLASS"] == "ARRAY"
    assert listed["/empty"].kind == "group" and listed["/complex"].type == "a compound of 16 bytes"


def test_files_of_one_array_and_archives(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3), "f4"))
    [one] = gd.list(tmp_path / "a.npy")
    assert (one.kind, one.name, one.dtype, one.shape, one.chunks) == ("array", "", np.dtype("f4"), (2, 3), None)
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(3), y=np.zeros((2, 2), bool))
    assert [(one.name, one.dtype, one.shape) for one in gd.list(tmp_path / "a.npz")] == [
        ("x", np.dtype("f8"), (3,)), ("y", np.dtype(bool), (2, 2))]


def test_what_cannot_be_read_is_raised(tmp_path):
    (tmp_path / "text.h5").write_text("hello")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["x"] = np.zeros(1000)
    (tmp_path / "cut.h5").write_bytes((tmp_path / "a.h5").read_bytes()[:2000])
    for spec, error in (("none.h5", gd.NotFound), ("a.h5:/y", gd.NotFound), ("text.h5", gd.BadFormat),
                        ("cut.h5", gd.ShortRead), ("a.csv", gd.BadArgument), ("", gd.BadArgument)):
        with pytest.raises(error):
            gd.list(f"{tmp_path}/{spec}" if spec else spec)
    with pytest.raises(TypeError):
        gd.list(3)


def test_threads_list_while_others_compute(tmp_path, daemon):
    """The library has one HDF5, and Python one lock: neither waits for the other."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for i in range(300):
            f.create_dataset(f"d{i}", data=np.full(100, i), chunks=(10,), compression="gzip")
    gd.connect(daemon.socket)
    found = []

    def work():
        found.append(len(gd.list(tmp_path / "a.h5")))
        found.append(int(gd.evaluate("sum(x)", x=gd.open(f"{tmp_path}/a.h5:/d7"))))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == [301] * 4 + [700] * 4


def test_an_interrupt_ends_a_long_list(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as f:
        for i in range(50000):
            f[f"link{i}"] = h5py.SoftLink("/nowhere")
    code = ("import gpuarrayd as gd, sys\nprint('begun', flush=True)\n"
            "while True: gd.list(sys.argv[1])")
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "a.h5")], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in said and child.returncode == -signal.SIGINT, said
