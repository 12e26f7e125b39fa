"""The files of PyTables' own tests: what is served is what h5py reads, the rest is refused by name."""

import importlib.util
import pathlib
import subprocess
import sys

import h5py
import hdf5plugin  # noqa: F401: registers the filters
import numpy as np
import pytest

# It is not imported: its filters would take the place of hdf5plugin's in this process.
FOUND = importlib.util.find_spec("tables")
FOLDER = pathlib.Path(FOUND.origin).parent / "tests" if FOUND else None


@pytest.mark.skipif(not FOUND, reason="not from the distribution")
def test_are_read_or_refused(gd):
    n_read = 0
    for path in sorted([*FOLDER.glob("*.h5"), *FOLDER.glob("*.mat")]):
        with h5py.File(path) as file:
            names = []
            file.visititems(lambda name, item: names.append(name)
                            if isinstance(item, h5py.Dataset) else None)
            for name in names:
                try:
                    x = gd.open(f"{path}:/{name}")
                except (gd.BadDtype, gd.BadFormat, gd.BadShape) as error:
                    assert name in str(error)
                    continue
                if file[name].id.get_type().get_class() == h5py.h5t.TIME:  # h5py reads none: below
                    continue
                wanted = np.asarray(file[name][()])
                if x.dtype == bool:
                    np.testing.assert_array_equal((~~x).compute(), wanted.astype(bool))
                else:
                    np.testing.assert_array_equal((x + 0).compute(), wanted)
                n_read += 1
    assert n_read >= 100


READ = """
import sys, numpy, tables
with tables.open_file("a.h5") as file:
    for name in sys.argv[1:]:
        found = file.get_node("/group", name)[...]
        numpy.testing.assert_array_equal(found, numpy.arange(12000).reshape(300, 40) % 97)
        print(name, found.dtype)
"""


@pytest.mark.skipif(not FOUND, reason="not from the distribution")
def test_ours_are_read(gd, tmp_path):
    x = gd.lazy(np.arange(12000).reshape(300, 40) % 97)
    ways = {"plain": {}, "chunked": {"chunks": (7, 40)}, "gzip": {"compression": "gzip", "shuffle": True},
            "bz2": {"compression": "bz2"}, "blosc": {"compression": "blosc:zstd"},
            "checked": {"fletcher32": True}}
    for name, how in ways.items():
        for dtype in ("f4", "i8"):
            gd.save(f"{tmp_path}/a.h5:/group/{name}_{dtype}", x.astype(dtype), **how)
    names = [f"{name}_{dtype}" for name in ways for dtype in ("f4", "i8")]
    done = subprocess.run([sys.executable, "-c", READ, *names], cwd=tmp_path, text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["float32", "int64"] * len(ways)


def test_what_h5py_calls_enums_and_bit_fields(gd, tmp_path):
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:
        kinds = h5py.enum_dtype({"RED": 0, "BLUE": 300}, basetype=">i2")
        file.create_dataset("enum", data=np.array([0, 300, 300], ">i2"), dtype=kinds)
        for bits in (8, 16, 32, 64):
            file_type = getattr(h5py.h5t, f"STD_B{bits}BE")
            space = h5py.h5s.create_simple((3,))
            d = h5py.h5d.create(file.id, f"b{bits}".encode(), file_type, space)
            values = np.array([0, 1, 1] if bits == 8 else [0, 1, (1 << bits) - 2], f">u{bits // 8}")
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, values, file_type)
    def read(name):
        x = gd.open(f"{tmp_path}/a.mat:/{name}")
        return ((~~x) if x.dtype == bool else x + 0).compute().tolist()
    assert read("enum") == [0, 300, 300]
    assert read("b8") == [False, True, True]
    for bits in (16, 32, 64):
        assert read(f"b{bits}") == [0, 1, (1 << bits) - 2]


def test_empty_arrays_of_matlab_are_no_numbers(gd, tmp_path):
    """Their shape is what is stored."""
    with h5py.File(tmp_path / "e.mat", "w", userblock_size=512) as file:
        for name, is_empty in (("e", 1), ("full", 0)):
            file.create_dataset(name, data=np.array([0, 3], "u8")).attrs["MATLAB_empty"] = np.uint8(is_empty)
    with pytest.raises(gd.errors.BadShape, match="empty array of MATLAB"):
        gd.open(f"{tmp_path}/e.mat:/e")
    assert np.asarray(gd.open(f"{tmp_path}/e.mat:/full")).tolist() == [0, 3]


TIMES = """
import sys, numpy, tables
with tables.open_file(sys.argv[1], "w") as file:
    for name, atom in (("t32", tables.Time32Atom()), ("t64", tables.Time64Atom())):
        values = numpy.array([-1.25, 0, 1.5, 2**31 - 1.000001, 1e9 + 0.123456]).reshape(5, 1).repeat(2, 1)
        if name == "t32":
            values = values.astype("i4")
        file.create_array("/", name, atom=atom, obj=values)
        file.create_carray("/", name + "c", atom=atom, obj=values, chunkshape=(2, 2),
                           filters=tables.Filters(5, "zlib"))
        numpy.save(sys.argv[1] + name + ".npy", file.get_node("/" + name)[:])
"""


@pytest.mark.skipif(not FOUND, reason="not from the distribution")
def test_times_are_the_numbers_that_pytables_makes_of_them(gd, tmp_path):
    subprocess.run([sys.executable, "-c", TIMES, tmp_path / "t.h5"], check=True)
    for name in ("t32", "t64"):
        wanted = np.load(f"{tmp_path}/t.h5{name}.npy")
        for storage in ("", "c"):
            x = gd.open(f"{tmp_path}/t.h5:/{name}{storage}")
            assert x.dtype == wanted.dtype
            np.testing.assert_array_equal((x + 0).compute(), wanted)
            np.testing.assert_array_equal((x[::-2, 1] + 0).compute(), wanted[::-2, 1])
