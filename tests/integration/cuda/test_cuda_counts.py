"""Counts, tables and scans on a device (cuda_daemons.py): the tests of test_counts.py, and arrays
of many tiles, whose counts must be the CPU engine's to the byte, and whose running sums of floats
near the exact ones, whatever the pool."""

import numpy as np
import pytest

import conftest
import test_counts
import wire
from catalogue import DTYPES
from cuda_daemons import daemon, needs_double, start  # noqa: F401: fixtures
from test_counts import (  # noqa: F401: run here too
    test_arrays_of_many_tiles,
    test_bincount_of_every_integer,
    test_choice_and_permutation_of_arrays,
    test_histogram_finds_the_bin_that_numpy_corrects_to,
    test_histogram_of_large_integers,
    test_histogram_of_weights_and_densities,
    test_lookups_in_what_is_computed,
    test_scans_of_special_values,
    test_searchsorted_and_digitize,
    test_take,
    test_take_of_special_floats_and_of_nothing,
)

# Under the sanitizers the kernels run in the runner of the device's kernels, the worker's host side
# in test_cuda_jobs.py.
pytestmark = [*test_counts.pytestmark, pytest.mark.slow]
N = 300_000


@pytest.fixture(scope="module")
def cpu_daemon():
    d = conftest.Daemon()
    yield d
    d.stop()


def near_running(got, a, name, axis):
    """Of an association of its own: each result is near by the terms that are in it."""
    function = getattr(np, name)
    exact = function(a.astype(np.longdouble), axis=axis)
    terms = np.abs(a.astype(np.longdouble))
    size = np.abs(exact) if name == "cumprod" else np.cumsum(terms, axis=axis)
    epsilon = np.finfo(got.dtype).eps
    bound = size * (epsilon + np.finfo("f8").eps * a.shape[axis]) + np.finfo(got.dtype).tiny
    finite = np.isfinite(function(a.astype("f8"), axis=axis)) & np.isfinite(got)
    assert finite.mean() > 0.2 or name == "cumprod"
    assert (np.abs(got - exact)[finite] <= bound[finite]).all()


def compare_scan(w, name, a, axis, **dtype):
    words = "".join(f", dtype={np.dtype(each).name}" for each in dtype.values())
    text = f"{name}(a, axis={axis}{words})"
    got, expected = w.compute(text, a=a), getattr(np, name)(a, axis=axis, **dtype)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), (text, a.dtype, a.shape)
    if got.dtype.kind == "f" and got.size:
        near_running(got, np.atleast_1d(a).astype(got.dtype), name, axis)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=f"{text} {a.dtype} {a.shape}")


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scans(w, name, dtype):
    for shape in test_counts.SHAPES:
        for axis in [0] if len(shape) < 2 else range(-len(shape), len(shape)):
            compare_scan(w, name, test_counts.sample(dtype, shape), axis)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("to", DTYPES)
def test_scans_of_another_dtype(w, name, to):
    for dtype in ("?", "i1", "u4", "f4", "f8"):
        a = test_counts.sample(dtype, 50)
        compare_scan(w, name, np.abs(a) if to[0] == "u" and dtype[0] == "f" else a, 0, dtype=to)


LAYOUTS = [((N,), "C"), ((3, N // 3), "C"), ((N // 3, 3), "C"), ((400, 750), "F"),
           ((20, 300, 50), "C")]


@pytest.mark.parametrize("shape, order", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scans_over_many_tiles(daemon, folder, name, shape, order):
    rng = np.random.default_rng(len(shape))
    for dtype in ("i4", "u8", "f4", "f8"):
        a = rng.integers(-9, 10, shape) if dtype[0] != "f" else rng.normal(size=shape)
        if name == "cumprod":
            a = a * 2 + 1 if dtype[0] != "f" else 1 + a / 1e4
        a = np.asarray(a.astype(dtype), order=order)
        np.save(folder / "a.npy", a)
        for axis in range(len(shape)):
            daemon.ctl("run", f"{name}(a, axis={axis})", f"a={folder}/a.npy",
                       "-o", folder / "out.npy")
            got, expected = np.load(folder / "out.npy"), getattr(np, name)(a, axis=axis)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            if dtype[0] == "f":
                near_running(got, a, name, axis)
            else:
                np.testing.assert_array_equal(got, expected)


COUNTED = ["bincount(x, length=1)", "bincount(x, length=300)", "bincount(x, length=8193)",
           "bincount(x, length=60000)", "bincount(x, weights=v, length=300)",
           "bincount(x, weights=v, length=60000)", "histogram(v, bins=100)[0]",
           "histogram(v, bins=5000, range=(-3, 3))[0]", "histogram(v, bins=e)[0]",
           "searchsorted(e, v)", "searchsorted(e, v, side=right)", "digitize(v, e)",
           "take(e, x, mode=clip)", "take(e, x, mode=wrap)", "permutation(e, seed=3)",
           "choice(e, size=(1000,), seed=3)"]


@pytest.mark.parametrize("what", COUNTED)
def test_the_bytes_of_the_cpu_engine(daemon, cpu_daemon, folder, what):
    """Weights are eighths, so that their sums are exact."""
    rng = np.random.default_rng(5)
    x = (rng.integers(0, 245, N) ** 2).astype("i4")
    length = int(what.split("length=")[1][:-1]) if "length" in what else 1 << 30
    np.save(folder / "x.npy", np.minimum(x, length - 1))
    np.save(folder / "v.npy", np.round(rng.normal(size=N) * 8) / 8)
    np.save(folder / "e.npy", np.sort(rng.normal(size=20_000)))
    names = [name for name in "xve" if any(f"{a}{name}{b}" in what for a in "(= " for b in ",)")]
    made = []
    for name, each in (("cpu", cpu_daemon), ("cuda", daemon)):
        each.ctl("run", what, *[f"{n}={folder}/{n}.npy" for n in names],
                 "-o", folder / f"{name}.npy")
        made.append(np.load(folder / f"{name}.npy"))
    assert made[0].dtype == made[1].dtype and made[0].tobytes() == made[1].tobytes()


@needs_double
def test_counts_that_no_slot_has_room_for_are_refused_with_the_numbers(start):
    """A device counts in its slots, here of 8 MiB."""
    with start(pool="64M").connect() as connection:
        x = np.arange(1000) * 400
        assert connection.compute("sum(bincount(x, length=500000))", x=x) == 1000
        with pytest.raises(wire.Error) as caught:
            connection.compute("sum(bincount(x, length=1500000))", x=x)
    error = caught.value
    assert error.code == "too-large-for-pool" and "slot" in error.message, error.message
    assert 12_000_000 <= int(error.expected.split()[0]) < 13_000_000, error.expected
    assert error.found == f"{8 << 20} bytes", error.found
