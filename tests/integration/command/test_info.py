"""gpuarrayctl info of files: every format, odd names, no daemon."""

import json
import os
import subprocess

import h5py
import numpy as np
import pytest

import conftest

ENV = {**os.environ, "GPUARRAYD_SOCKET": "/nonexistent", "LC_ALL": "C.UTF-8"}


def info(folder, *words, code=0):
    done = subprocess.run([conftest.CTL, "info", *words], cwd=folder, env=ENV, capture_output=True, timeout=60)
    assert done.returncode == code, done.stdout + done.stderr
    assert not done.stderr if code == 0 else not done.stdout
    return done.stdout.decode() if code == 0 else done.stderr.decode()


def columns(text):
    """The cells of a table, by its first line."""
    head, *lines = text.splitlines()
    starts = [i for i, char in enumerate(head) if char != " " and (i == 0 or head[i - 1] == " ")]
    ends = [*starts[1:], None]
    return [{head[a:b].strip(): line[a:b].strip() for a, b in zip(starts, ends)} for line in lines]


def make_netcdf(path, form):
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(path, "w", format=form) as f:
        f.title = "seas"
        f.createDimension("time", 2)
        f.createDimension("x", 3)
        t = f.createVariable("temp", "f4", ("time", "x"))
        t.setncatts({"units": "K", "long_name": "temperature of the sea"})
        t[:] = np.zeros((2, 3))


def make_hdf5(path):
    with h5py.File(path, "w") as f:
        f.attrs["title"] = "seas"
        f["temp"] = np.zeros((2, 3), "f4")
        f["temp"].attrs.update(units="K", long_name="temperature of the sea")
        for i, name in enumerate(("time", "x")):
            f["temp"].dims[i].label = name


def make_zarr(path):
    path.mkdir()
    (path / "temp").mkdir()
    for name, text in ((".zgroup", {"zarr_format": 2}), (".zattrs", {"title": "seas"}),
                       ("temp/.zattrs", {"units": "K", "long_name": "temperature of the sea",
                                         "_ARRAY_DIMENSIONS": ["time", "x"]}),
                       ("temp/.zarray", {"zarr_format": 2, "shape": [2, 3], "chunks": [2, 3], "dtype": "<f4",
                                         "compressor": None, "fill_value": None, "order": "C", "filters": None})):
        (path / name).write_text(json.dumps(text))


FILES = {
    "a.h5": make_hdf5,
    "b.nc": lambda path: make_netcdf(path, "NETCDF4"),
    "c.nc": lambda path: make_netcdf(path, "NETCDF3_CLASSIC"),
    "d.nc": lambda path: make_netcdf(path, "NETCDF3_64BIT_DATA"),
    "e.zarr": make_zarr,
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_any_format_is_a_table(name, tmp_path):
    FILES[name](tmp_path / name)
    [temp] = [row for row in columns(info(tmp_path, name)) if row["name"] == "/temp"]
    assert {key: temp[key] for key in ("dtype", "shape", "dimensions", "units", "long_name")} == {
        "dtype": "float32", "shape": "(2, 3)", "dimensions": "time, x", "units": "K",
        "long_name": "temperature of the sea"}
    said = info(tmp_path, name, "--attributes")
    assert '    title = "seas"\n' in said and '    units = "K"\n' in said
    alone = info(tmp_path, f"{name}:/temp")
    assert "\naxes    time, x\n" in alone and '\n  units = "K"\n' in alone and 'title' not in alone
    told = json.loads(info(tmp_path, name, "--json"))
    assert told["source"] == name
    [temp] = [one for one in told["contents"] if one["name"] == "/temp"]
    assert (temp["kind"], temp["dtype"], temp["shape"], temp["served"]) == ("array", "float32", [2, 3], True)
    assert temp["dimensions"] == ["time", "x"] and temp["attributes"]["units"] == "K"
    one = json.loads(info(tmp_path, f"{name}:/temp", "--json"))
    assert one["dimensions"] == ["time", "x"] and one["attributes"] == temp["attributes"] and one["elements"] == 6
    assert info(tmp_path, name, "--names").split().count("/temp") == 1


def test_archives_are_tables(tmp_path):
    np.savez(tmp_path / "a.npz", first=np.zeros((2, 3), "f4"), second=np.zeros(4, bool))
    assert info(tmp_path, "a.npz") == ("name    dtype    shape\nfirst   float32  (2, 3)\nsecond  bool     (4,)\n")
    assert "shape   (4,)" in info(tmp_path, "a.npz:second")


def test_a_selection_is_told_from_the_whole(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("d", data=np.zeros((4, 6)), chunks=(2, 3))
    said = info(tmp_path, "a.h5:/d[0]")
    assert "\nshape   (6,)\n" in said and "\nof      (4, 6)\nchunks  (2, 3)\n" in said
    assert "\nof " not in info(tmp_path, "a.h5:/d[:]")


def test_what_a_file_says_does_not_reach_the_terminal(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["evil\x1b[2J"] = np.zeros(3)
        f["evil\x1b[2J"].attrs["units"] = 'line\nbreak\x1b]0;title\x07 "quoted" \\'
        f["evil\x1b[2J"].attrs["name\x1b[1m"] = 1
        f.create_dataset(b"bytes \xff", data=[1])
        f["soft\x1b[2J"] = h5py.SoftLink("/no\x1bwhere")
    for words in ([], ["-a"], ["--names"], ["--json"]):
        said = info(tmp_path, "a.h5", *words)
        assert not any(char < " " and char != "\n" or char == "\x7f" for char in said), repr(said)
    assert r'units = "line\nbreak?]0;title? \"quoted\" \\"' in info(tmp_path, "a.h5", "-a")
    names = {one["name"] for one in json.loads(info(tmp_path, "a.h5", "--json"))["contents"]}
    assert {"/evil\x1b[2J", "/bytes ?"} <= names
    assert info(tmp_path, "a.h5", "--names") == ""  # nothing of this can be typed


def test_a_damaged_file_is_listed_as_far_as_it_goes(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as f:
        f["sound"] = f["other"] = np.zeros(3)
    whole = (tmp_path / "a.h5").read_bytes()
    at = whole.rindex(b"OHDR")
    (tmp_path / "b.h5").write_bytes(whole[:at] + b"oops" + whole[at + 4:])
    rows = {row["name"]: row["dtype"] for row in columns(info(tmp_path, "b.h5"))}
    assert sorted(rows) == ["/other", "/sound"] and sorted(rows.values())[1] == "float64"
    (tmp_path / "c.h5").write_bytes(whole[:300])
    assert "[short-read]" in info(tmp_path, "c.h5", code=1)
    with h5py.File(tmp_path / "d.h5", "w", libver="earliest") as f:
        f["g/x"] = np.zeros(3)
    whole = bytearray((tmp_path / "d.h5").read_bytes())
    at = whole.index(b"\1\0\5\0\1\0\0\0") + 8  # the bytes of a group's header; HDF5 cannot close itself then
    whole[at:at + 4] = b"\xff\xe1\x0f\xc4"
    (tmp_path / "d.h5").write_bytes(whole)
    env = {**ENV, "ASAN_OPTIONS": "detect_leaks=0:exitcode=99"}  # HDF5 forgets what it met before the damage
    done = subprocess.run([conftest.CTL, "info", "d.h5"], cwd=tmp_path, env=env, capture_output=True, timeout=60)
    assert b"HDF5 cannot read" in done.stdout and done.stderr == b"", done
    assert "[not-found]" in info(tmp_path, "none.h5", code=1)
    with h5py.File(tmp_path / "empty.h5", "w"):
        pass
    assert info(tmp_path, "empty.h5") == "there is nothing in it\n"
    assert json.loads(info(tmp_path, "empty.h5", "--json"))["contents"] == [{"name": "/", "kind": "group"}]
