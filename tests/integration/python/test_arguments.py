"""What users hand over: every kind of array that is taken, how it travels, and what is refused."""

import array
import mmap
import os

import h5py
import numpy as np
import pytest

from catalogue import DTYPES, NUMPY_2, assert_same, specials


def values(*shape, seed=3, dtype="f8"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def made_of(gd, value):
    """What the extension gets of an argument."""
    from gpuarrayd import _session
    from gpuarrayd._arguments import convert as _arguments
    return _arguments.source(_session.current(), value, "x")


def access(gd, value):
    return made_of(gd, value).access


def check(gd, x, twice=None):
    """x comes through as it is, alone and in an expression with a scalar."""
    want = np.asarray(x) if twice is None else twice
    assert_same(np.asarray(gd.evaluate("x", x=x)), want.astype(want.dtype.newbyteorder("=")))


# -- arrays in memory ---------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_in_both_byte_orders(gd, dtype):
    x = specials(dtype, 301)
    for one in (x, x.astype(x.dtype.newbyteorder(">")), gd.asarray(x)):
        check(gd, one)
        check(gd, one[::-3])
        check(gd, one[7])


def strided(x):
    """Views of a 3-dimensional array, all with elements."""
    yield from (x, x.T, x[::2], x[::-1, ::-2], x[:, 3], x[..., 0], x[1:2], x.transpose(1, 2, 0),
                np.broadcast_to(x[0], (4, *x.shape[1:])), x[:, None], x.reshape(-1)[3::7],
                np.asfortranarray(x), x[0, 0, 0, ...])


@pytest.mark.parametrize("n", [4, 40])
def test_any_strides(gd, n):
    x = values(n, n + 1, n + 2)
    for view in [*strided(x), *strided(gd.asarray(x))]:
        check(gd, view)


def test_unaligned_and_read_only_arrays(gd):
    raw = np.zeros(8 * 100 + 1, "u1")
    x = raw[1:].view("f8")
    x[...] = values(100)
    assert not x.flags.aligned
    check(gd, x)
    x.flags.writeable = False
    check(gd, x)
    field = np.zeros(50, [("a", "i1"), ("b", "f4")])
    field["b"] = np.arange(50)
    check(gd, field["b"])


def test_empty_arrays(gd):
    for shape in ((0,), (3, 0), (0, 3)):
        for x in (np.empty(shape), gd.empty(shape), np.empty((6, 6))[:shape[0], :0]):
            check(gd, x)
    assert gd.evaluate("sum(x)", x=np.empty(0)) == 0


def test_shared_memory_is_used_where_it_is(gd):
    x = gd.asarray(values(300, 200))
    for view in (x, x[1:-1, ::2], x.T, x.reshape(-1), x[3], x.view("i8"),
                 np.lib.stride_tricks.as_strided(x, (100,), (8,)), gd.evaluate("x + 1"),
                 np.frombuffer(x, "f4")):
        assert access(gd, view) == "region"
        check(gd, view)
    assert access(gd, values(300)) == "memory"


@pytest.mark.skipif(not NUMPY_2, reason="numbers are weak as in NumPy 2")
def test_numbers_are_weak_and_scalars_of_numpy_are_not(gd):
    x = np.arange(3, dtype="f4")
    for number in (2, 2.5, True, np.float32(2.5), np.float64(2.5), np.int8(2), np.bool_(True),
                   np.uint64(3), np.array(2.5), 2**40):
        assert_same(gd.evaluate("x * k", k=number), np.asarray(x * number))
    with pytest.raises(OverflowError):
        gd.evaluate("x + k", k=2**80)
    with pytest.raises(gd.errors.RequestError):
        gd.evaluate("x + k", x=np.zeros(3, "i1"), k=300)


def test_what_numpy_makes_an_array_of(gd):
    class Own:
        def __array__(self, dtype=None, copy=None):
            return np.arange(4.0)

    check(gd, [1, 2, 3])
    check(gd, [[1.5, 2], [3, 4]])
    check(gd, (True, False))
    check(gd, range(2, 9, 3))
    assert np.array_equal((gd.lazy(np.arange(3)) * range(3)).compute(), [0, 1, 4])
    assert np.array_equal(np.histogram(gd.lazy([1, 2, 2]), bins=range(4))[0].compute(), [0, 1, 2])
    check(gd, [])
    check(gd, Own())
    check(gd, array.array("d", [1, 2, 3]), np.arange(1.0, 4.0))
    check(gd, memoryview(np.arange(3, dtype="i2")))


def test_what_other_packages_make(gd):
    class Series:  # as pandas and xarray do
        def __init__(self, data):
            self.data = data

        def __array__(self, dtype=None, copy=None):
            return self.data

    check(gd, Series(values(5)))
    with pytest.raises(gd.errors.Unsupported, match="mask"):
        gd.evaluate("x", x=Series(np.ma.masked_less([1.0, 2.0], 1.5)))
    with pytest.raises(gd.errors.BadDtype):
        gd.evaluate("x", x=Series(np.array([1, None], "O")))


# -- what is refused ----------------------------------------------------------------------------

@pytest.mark.parametrize("x, error, words", [
    (np.array([1, None]), "BadDtype", "astype"),
    (np.zeros(2, "i4,f4"), "BadDtype", "field"),
    (np.array(["a"]), "BadDtype", "astype"),
    (np.array([b"a"]), "BadDtype", "astype"),
    (np.zeros(2, "c8"), "BadDtype", "x.real"),
    (np.zeros(2, "M8[s]"), "BadDtype", "datetime64"),
    (np.zeros(2, "m8[s]"), "BadDtype", "timedelta64"),
    (np.zeros(2, "f2"), "BadDtype", "'f4'"),
    (np.zeros(2, "g"), "BadDtype", "'f8'"),
    (np.float16(1), "BadDtype", "'f4'"),
    (1j, "BadDtype", "x.imag"),
    ([[1], [1, 2]], "BadShape", "no array"),
    (["a"], "BadDtype", "astype"),
    (np.ma.zeros(3), "Unsupported", "filled"),
    (np.zeros((2, 2)).view(np.matrix), "Unsupported", "np.asarray"),
    (np.zeros(3).view(type("Quantity", (np.ndarray,), {})), "Unsupported", "np.asarray"),
    ("data.npy", "BadArgument", "gd.open"),
    (None, "BadArgument", "NoneType"),
    ({"a": 1}, "BadArgument", "dict"),
    (len, "BadArgument", "not an array"),
])
def test_what_cannot_be_an_argument(gd, x, error, words):
    for expr in ("x + 1", "x"):
        with pytest.raises(getattr(gd.errors, error), match=words) as caught:
            gd.evaluate(expr, x=x)
        assert caught.value.argument == "x" and caught.value.found
        assert isinstance(caught.value, (TypeError, ValueError))


def test_dask_arrays_are_pointed_to_their_own_function(gd):
    dask_array = pytest.importorskip("dask.array")
    with pytest.raises(gd.errors.Unsupported, match="gd.dask"):
        gd.evaluate("x + 1", x=dask_array.zeros(10, chunks=5))


# -- arrays in mapped files ---------------------------------------------------------------------

@pytest.fixture
def mapped(folder):
    np.save(folder / "x.npy", values(60, 50))
    return folder / "x.npy"


def test_mapped_files_travel_as_files(gd, mapped):
    for mode in ("r", "r+"):
        x = np.load(mapped, mmap_mode=mode)
        for view in (x, x[3:], x[::-2, ::3], x.T, np.asarray(x)[5], x[7][::-1], x.view("i8"),
                     np.asarray(x).reshape(-1)[17:], x[5:][2:, 3:]):
            assert access(gd, view) == "file"
            check(gd, view)
    raw = np.memmap(mapped, "f8", "r", offset=128, shape=(60, 50))
    assert access(gd, raw[1:]) == "file"
    check(gd, raw[1:])


def test_mappings_that_numpy_did_not_make(gd, mapped):
    with open(mapped, "rb") as file:
        x = np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), "f8", offset=128)
    assert access(gd, x[10:]) == "file"
    check(gd, x[10:])
    anonymous = np.frombuffer(mmap.mmap(-1, 8192), "f8")
    anonymous[...] = 7
    assert access(gd, anonymous) == "memory"
    check(gd, anonymous)


def test_copies_of_mapped_arrays_are_memory(gd, mapped):
    x = np.load(mapped, mmap_mode="r")
    assert access(gd, x.copy()) == access(gd, x + 1) == "memory"
    check(gd, x + 1)


def test_changes_that_the_file_does_not_have(gd, mapped):
    x = np.load(mapped, mmap_mode="c")
    x[0] = 100
    assert access(gd, x[1:]) == "memory"
    check(gd, x)
    out = np.load(mapped, mmap_mode="c")
    gd.evaluate("x * 0 + 5", x=x, out=out)
    assert (out == 5).all() and not (np.load(mapped) == 5).any()


def test_changes_that_were_not_flushed(gd, mapped):
    x = np.load(mapped, mmap_mode="r+")
    x[...] = 8
    assert access(gd, x) == "file"
    assert gd.evaluate("sum(x)") == 8 * x.size


def test_a_file_that_was_renamed_removed_or_replaced(gd, mapped):
    want = np.load(mapped)
    x = np.load(mapped, mmap_mode="r+")
    assert access(gd, x) == "file"
    mapped.rename(mapped.with_name("other.npy"))
    check(gd, x, want)
    np.save(mapped, values(60, 50, seed=9))  # somebody else's, at the old place
    check(gd, x, want)
    gd.evaluate("x * 2", x=want, out=x)
    assert_same(np.load(mapped.with_name("other.npy")), want * 2)
    mapped.with_name("other.npy").unlink()
    check(gd, x, want * 2)
    gd.evaluate("x * 3", x=want, out=x)
    check(gd, x, want * 3)
    assert_same(np.load(mapped), values(60, 50, seed=9))


def test_a_file_that_became_too_short(gd, mapped):
    x = np.load(mapped, mmap_mode="r")
    assert access(gd, x) == "file"
    os.truncate(mapped, 4096)
    assert gd.evaluate("max(x)", x=x[0]) == x[0].max()
    with pytest.raises(gd.errors.ShortRead):
        gd.evaluate("sum(x)")


def test_output_into_a_mapped_file(gd, mapped):
    x = np.load(mapped, mmap_mode="r+")
    want = np.array(x)
    want[::2, 1:] = want[::2, 1:] * 2 + 1
    part = x[::2, 1:]
    assert gd.evaluate("p * 2 + 1", p=part, out=part) is part
    assert_same(np.asarray(x), want)
    assert_same(np.load(mapped), want)


def test_no_descriptors_stay_open(gd, mapped):
    x = np.load(mapped, mmap_mode="r")
    gd.evaluate("x + 1", x=x[0])
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        gd.evaluate("x + 1", x=x[0])
    assert len(os.listdir("/proc/self/fd")) == before


# -- datasets of h5py ---------------------------------------------------------------------------

LAYOUTS = {"contiguous": {}, "chunked": {"chunks": (7, 9)},
           "compressed": {"chunks": (7, 9), "compression": "gzip"}}


@pytest.fixture
def h5(folder):
    """Files with the same dataset in every layout: h5(mode, **options) -> h5py.File."""
    files = []

    def make(mode, user_block=0, **options):
        path = folder / f"{len(files)}.h5"
        with h5py.File(path, "w", userblock_size=user_block) as file:
            file.create_dataset("g/x", data=values(60, 50), **options)
        files.append(h5py.File(path, mode))
        return files[-1]

    yield make
    for file in files:
        file.close()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_datasets(gd, h5, layout, mode):
    x = h5(mode, **LAYOUTS[layout])["g/x"]
    want = x[...]
    if mode == "r+":
        x[5] = want[5] = 77  # in h5py's caches
    direct = {"contiguous": "file", "chunked": "chunks" if mode == "r" else "provider",
              "compressed": "provider"}
    assert access(gd, x) == direct[layout]
    assert_same(gd.evaluate("x * 2"), want * 2)
    assert gd.evaluate("max(x)") == want.max()
    assert_same(gd.evaluate("x + y", y=want), want + want)


def test_datasets_behind_a_user_block(gd, h5):
    x = h5("r", user_block=1024)["g/x"]
    assert_same(gd.evaluate("x"), x[...])


def test_datasets_in_the_core_driver_and_in_file_objects(gd, folder):
    with h5py.File("none", "w", driver="core", backing_store=False) as file:
        file["x"] = values(30, 20)
        assert access(gd, file["x"]) == "provider"
        assert_same(gd.evaluate("x", x=file["x"]), file["x"][...])
        file["y"] = np.zeros((30, 20))
        gd.evaluate("x * 2", x=file["x"], out=file["y"])
        assert_same(file["y"][...], file["x"][...] * 2)
    with h5py.File(folder / "o.h5", "w") as file:
        file["x"] = values(30, 20)
    with open(folder / "o.h5", "rb") as own, h5py.File(own, "r") as file:
        assert access(gd, file["x"]) == "provider"
        assert_same(gd.evaluate("x", x=file["x"]), file["x"][...])


def test_virtual_datasets(gd, h5, folder):
    source = h5("r")["g/x"]
    layout = h5py.VirtualLayout((2, 60, 50), "f8")
    layout[0] = layout[1] = h5py.VirtualSource(source)
    with h5py.File(folder / "v.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    with h5py.File(folder / "v.h5", "r") as file:
        assert_same(gd.evaluate("x + 1", x=file["v"]), file["v"][...] + 1)
    with h5py.File(folder / "packed.h5", "w") as file:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((60, 50))
        dcpl.set_filter(511, h5py.h5z.FLAG_OPTIONAL)
        space = h5py.h5s.create_simple((60, 50))
        x = h5py.Dataset(h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_DOUBLE, space, dcpl))
        x.id.write_direct_chunk((0, 0), np.ones((60, 50)).tobytes())
    layout[1] = h5py.VirtualSource(str(folder / "packed.h5"), "x", (60, 50))
    with h5py.File(folder / "w.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    with pytest.raises(gd.ProviderFailed, match="w.h5:/v: HDF5 cannot read it: .*(no plugin|not registered)"):
        gd.open(f"{folder}/w.h5:/v").sum().compute()


def test_datasets_of_a_file_that_was_replaced(gd, h5):
    file = h5("r", chunks=(7, 9))
    want = file["g/x"][...]
    os.rename(file.filename, file.filename + ".old")
    with h5py.File(file.filename, "w") as other:
        other["g/x"] = np.zeros((60, 50))
    assert_same(gd.evaluate("x", x=file["g/x"]), want)


@pytest.mark.parametrize("dtype", ["?", ">f4", "<i2", ">u8", "i1"])
def test_dtypes_of_datasets(gd, folder, dtype):
    x = specials(np.dtype(dtype).newbyteorder("="), 301).astype(dtype)
    with h5py.File(folder / "d.h5", "w") as file:
        file["x"] = x
        file.create_dataset("z", data=x, chunks=(50,), compression="gzip")
        file["scalar"] = x[3]
        file["empty"] = x[:0]
        for mode in ("r", "r+"):
            for name in ("x", "z", "scalar", "empty"):
                check(gd, file[name], np.asarray(file[name][()]))


def test_elements_that_are_stored_otherwise_than_they_are_read(gd, folder):
    with h5py.File(folder / "t.h5", "w") as file:
        narrow = h5py.h5t.STD_I32LE.copy()
        narrow.set_precision(12)
        narrow.set_offset(4)
        space = h5py.h5s.create_simple((100,))
        dataset = h5py.Dataset(h5py.h5d.create(file.id, b"x", narrow, space))
        dataset[...] = np.arange(-50, 50)
        assert_same(gd.evaluate("x", x=dataset), dataset[...])


def test_datasets_that_cannot_be_read(gd, h5, folder):
    file = h5("r")
    x = file["g/x"]
    file.close()
    with pytest.raises(gd.errors.BadArgument, match="closed"):
        gd.evaluate("x + 1")
    with h5py.File(folder / "b.h5", "w") as file:
        file["text"] = ["a", "b"]
        file["half"] = np.zeros(3, "f2")
        file["complex"] = np.zeros(3, "c8")
        file["null"] = h5py.Empty("f8")
        for name in ("text", "half", "complex"):
            with pytest.raises(gd.errors.BadDtype):
                gd.evaluate("x", x=file[name])
        with pytest.raises(gd.errors.BadArgument, match="null"):
            gd.evaluate("x", x=file["null"])


def test_an_error_of_h5py_is_the_cause(gd, folder):
    with h5py.File(folder / "c.h5", "w") as file:
        x = file.create_dataset("x", data=values(200, 50), chunks=(20, 50), compression="gzip")
        file.flush()
        info = x.id.get_chunk_info(7)
    with open(folder / "c.h5", "r+b") as file:
        file.seek(info.byte_offset)
        file.write(b"\xff" * info.size)
    with h5py.File(folder / "c.h5", "r+") as file:
        with pytest.raises(gd.errors.ProviderFailed) as caught:
            gd.evaluate("sum(x)", x=file["x"])
        assert isinstance(caught.value.__cause__, OSError)
        assert gd.evaluate("1 + 1") == 2


@pytest.mark.parametrize("layout", LAYOUTS)
def test_output_into_a_dataset(gd, h5, layout):
    file = h5("r+", **LAYOUTS[layout])
    a = values(60, 50, seed=8)
    out = file["g/x"]
    assert gd.evaluate("a * 2", a=a, out=out) is out
    assert_same(out[...], a * 2)
    path = file.filename
    file.close()
    with h5py.File(path, "r") as again:
        assert_same(again["g/x"][...], a * 2)
        with pytest.raises(gd.errors.ReadOnly, match="r\\+"):
            gd.evaluate("a * 2", a=a, out=again["g/x"])


def test_a_dataset_is_not_written_over_itself(gd, h5):
    for layout in LAYOUTS.values():
        x = h5("r+", **layout)["g/x"]
        want = x[...]
        again = x.file["g/x"]
        with pytest.raises(gd.errors.OverlappingOutput):
            gd.evaluate("x * 2", out=again)
        assert_same(x[...], want)


# -- gd.open() ----------------------------------------------------------------------------------

def test_opened_files(gd, mapped, h5):
    x = gd.open(str(mapped))
    assert_same(gd.evaluate("x * 2"), np.load(mapped) * 2)
    file = h5("r")
    y = gd.open(f"{file.filename}:/g/x")
    assert_same(gd.evaluate("y + x"), file["g/x"][...] + np.load(mapped))
    out = gd.open(str(mapped), "r+")
    want = np.load(mapped) + 1
    assert gd.evaluate("x + 1", x=out, out=out) is out
    assert_same(np.load(mapped), want)
    with pytest.raises(gd.errors.RequestError):
        gd.evaluate("y * 2", out=x)


# -- arrays in shared memory --------------------------------------------------------------------

def test_new_arrays(gd):
    for shape in ((), 5, (3, 4), [2, 0], np.int64(3), (np.int8(2), 3)):
        for dtype in ("f8", np.int8, bool, "f4"):
            for order in "CF":
                x, want = gd.zeros(shape, dtype, order=order), np.zeros(shape, dtype, order)
                assert_same(x, want)
                assert x.flags.c_contiguous == want.flags.c_contiguous
                assert x.flags.f_contiguous == want.flags.f_contiguous
                assert gd.empty(shape, dtype, order=order).strides == want.strides
    f = np.asfortranarray(values(3, 4))
    assert gd.empty_like(f).flags.f_contiguous and gd.zeros_like(f, "i2").dtype == np.int16
    assert gd.zeros_like(f.astype(">f8")).dtype.isnative


def test_zeros_are_zeros_where_something_was(gd):
    for _ in range(3):
        x = gd.zeros(100000)
        assert not x.any()
        x[...] = 1
        del x


def test_asarray(gd):
    x = values(30, 40)
    shared = gd.asarray(x)
    assert_same(shared, x)
    assert gd.asarray(shared) is shared and gd.asarray(shared[2:]).base is not None
    assert np.shares_memory(gd.asarray(shared[2:]), shared)
    assert gd.asarray(x, "f4").dtype == np.float32
    assert gd.asarray(x.T).flags.f_contiguous
    assert_same(gd.asarray([1, 2, 3]), np.array([1, 2, 3]))
    assert_same(gd.asarray(x.astype(">f8")), x)
    with pytest.raises(gd.errors.Unsupported):
        gd.asarray(np.ma.zeros(3))


@pytest.mark.parametrize("make", [
    lambda gd: gd.empty(3, "O"), lambda gd: gd.zeros(3, "f2"), lambda gd: gd.empty(3, ">f8"),
    lambda gd: gd.empty(-1), lambda gd: gd.empty("3"), lambda gd: gd.empty((2.5,)),
    lambda gd: gd.empty(3, order="K"), lambda gd: gd.asarray(["a"]), lambda gd: gd.empty((1,) * 40),
    lambda gd: gd.empty((2**40, 2**40)),
])
def test_arrays_that_cannot_be(gd, make):
    with pytest.raises(gd.errors.RequestError):
        make(gd)
