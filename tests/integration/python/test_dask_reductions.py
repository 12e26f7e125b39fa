"""gd.dask.sum() and its like, against NumPy: axes, dtypes, chunks, blocks of files, empty blocks."""

import gc

import numpy as np
import pytest

import gpuarrayd

da = pytest.importorskip("dask.array")

NAMES = "sum prod mean var std min max any all count_nonzero".split()
EXACT = "min max any all count_nonzero".split()


@pytest.fixture(scope="module")
def gd(daemon):
    """The package, connected to the module's daemon, whose counts are afterwards as before."""
    before = daemon.quiet_counts()
    gpuarrayd.connect(daemon.socket)
    yield gpuarrayd
    gc.collect()
    gpuarrayd.close()
    daemon.wait_for_counts(before)


def array_of(dtype, shape):
    rng = np.random.default_rng(len(shape))
    if np.dtype(dtype).kind == "f":
        return (1 + rng.normal(0, 0.2, shape)).astype(dtype)
    return rng.integers(0, 3, shape).astype(dtype)


def check(name, got, want):
    assert got.dtype == want.dtype and got.shape == want.shape, name
    if name in EXACT or want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, name)
    else:
        rtol = 1e-5 if want.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * 1e-3, err_msg=name)


def wide(name, a, **options):
    """NumPy's, of float32 in float64, with NumPy's dtype."""
    want = np.asarray(getattr(np, name)(a, **options))
    if a.dtype == np.float32:
        want = np.asarray(getattr(np, name)(a.astype("f8"), **options)).astype(want.dtype)
    return want


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u4", "?"])
@pytest.mark.parametrize("name", NAMES)
def test_results_are_numpys(gd, name, dtype):
    a = array_of(dtype, (7, 5, 6))
    for chunks in ((3, 2, 4), (7, 1, 6), -1):
        x = da.from_array(a, chunks=chunks)
        for axis in (None, 0, -1, (0, 2), (1, 0, 2)):
            keepdims = axis in (0, (0, 2))
            made = getattr(gd.dask, name)(x, axis, keepdims=keepdims)
            want = wide(name, a, axis=axis, keepdims=keepdims)
            assert isinstance(made, da.Array)
            assert (made.dtype, made.shape) == (want.dtype, want.shape)
            check(name, made.compute(scheduler="threads"), want)


def test_many_blocks_are_combined_a_few_at_a_time(gd):
    a = array_of("f8", (60, 40)) + 1e6
    x = da.from_array(a, chunks=(4, 3))
    for name in ("std", "mean", "max", "sum"):
        for split_every in (None, 2, 7):
            got = getattr(gd.dask, name)(x, split_every=split_every).compute(scheduler="threads")
            np.testing.assert_allclose(got, getattr(np, name)(a), rtol=1e-9)


def test_ddof_and_dtype(gd):
    a = array_of("f4", (9, 8))
    x = da.from_array(a, chunks=(2, 5))
    check("var", gd.dask.var(x, 0, ddof=1).compute(), wide("var", a, axis=0, ddof=1))
    got = gd.dask.sum(x, dtype="f8").compute()
    assert got.dtype == np.float64 and got == pytest.approx(a.sum(dtype="f8"), rel=1e-14)
    with np.errstate(all="ignore"):
        one = gd.dask.std(x[:1], 0, ddof=1).compute()
    assert np.isnan(one).all()


def test_blocks_of_files_are_read_by_the_daemon(gd, folder):
    a = array_of("f8", (50, 40))
    np.save(folder / "x.npy", a)
    x = da.from_array(gd.open(folder / "x.npy"), chunks=(20, 40))
    before = gd.stats()["bytes"]["read"]
    got = gd.dask.std(x, axis=0).compute(scheduler="threads")
    after = gd.stats()["bytes"]["read"]
    np.testing.assert_allclose(got, a.std(0), rtol=1e-12)
    assert after["file"] - before["file"] == a.nbytes and after["provider"] == before["provider"]


def test_empty_blocks(gd):
    a = np.array([3., 1, 2])
    x = da.from_array(a, chunks=((0, 2, 0, 0, 0, 0, 1, 0),))
    for name in NAMES:
        check(name, np.asarray(getattr(gd.dask, name)(x).compute()), wide(name, a))
    nothing = da.from_array(np.empty((0, 3)), chunks=2)
    assert gd.dask.sum(nothing, 0).compute().tolist() == [0, 0, 0]
    assert np.isnan(gd.dask.mean(nothing, 0).compute()).all()
    with pytest.raises(ValueError):
        gd.dask.max(nothing, 0).compute()


def test_sizes_that_dask_does_not_know(gd):
    x = da.from_array(np.arange(10.), chunks=4)
    some = x[x > 4.5]
    assert gd.dask.sum(some).compute() == 35
    assert gd.dask.std(some).compute() == pytest.approx(np.arange(5., 10).std(), rel=1e-14)


def test_with_what_is_computed_in_blocks(gd):
    a = array_of("f8", (30, 8))
    x = da.from_array(a, chunks=(7, 3))
    z = gd.dask.evaluate("(x - m) / s", x=x, m=gd.dask.mean(x, 0), s=gd.dask.std(x, 0))
    np.testing.assert_allclose(z.compute(scheduler="threads"), (a - a.mean(0)) / a.std(0),
                               rtol=1e-9, atol=1e-12)


def test_keys_follow_from_the_arguments(gd):
    x = da.from_array(array_of("f8", (6, 4)), chunks=2)
    assert gd.dask.sum(x, 0).name == gd.dask.sum(x, -2).name
    assert len({gd.dask.sum(x, 0).name, gd.dask.sum(x, 1).name, gd.dask.var(x, 0).name,
                gd.dask.var(x, 0, ddof=1).name, gd.dask.sum(x, 0, keepdims=True).name}) == 5


def test_refusals(gd):
    x = da.ones((3, 4), chunks=2)
    for call, words in [(lambda: gd.dask.sum(x, 2), "axis 2"),
                        (lambda: gd.dask.sum(x, (0, 0)), "twice"),
                        (lambda: gd.dask.sum(da.ones(3, dtype="c16")), "complex")]:
        with pytest.raises(gd.Error, match=words):
            call()
