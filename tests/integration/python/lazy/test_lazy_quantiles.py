"""Quantiles of lazies against NumPy's: dtypes, axes, methods, rows of q, NaN, parts, in expressions,
into destinations."""

import numpy as np
import pytest

from catalogue import DTYPES, NUMPY_2, same

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes of quantiles")
NUMBERS = [dtype for dtype in DTYPES if dtype != "?"]
METHODS = ("linear lower higher nearest midpoint inverted_cdf averaged_inverted_cdf "
           "closest_observation interpolated_inverted_cdf hazen weibull median_unbiased "
           "normal_unbiased").split()


def sample(dtype, shape=(6, 7, 8), seed=1):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.normal(0, 100, shape).astype(dtype)
    return rng.integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_medians_are_numpys(gd, dtype):
    a = sample(dtype)
    x = gd.lazy(a)
    for axis in (None, 0, -1, (0, 2)):
        for keepdims in (False, True):
            same(np.median(x, axis, keepdims=keepdims).compute(),
                 np.median(a, axis, keepdims=keepdims))
    same(np.median(x[:, :, :5], 2).compute(), np.median(a[:, :, :5], 2))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_quantiles_are_numpys(gd, dtype):
    a = sample(dtype)
    x = gd.lazy(a)
    for q in (0.25, 0.0, 1.0, np.float64(0.4), [0.1, 0.5, 0.9], np.array([0.75])):
        for axis in (None, 1):
            same(np.quantile(x, q, axis).compute(), np.quantile(a, q, axis))
            same(np.percentile(x, np.multiply(q, 100), axis).compute(),
                 np.percentile(a, np.multiply(q, 100), axis))
    same(np.quantile(x, np.linspace(0, 1, 20), axis=0, keepdims=True).compute(),
         np.quantile(a, np.linspace(0, 1, 20), axis=0, keepdims=True))
    same(np.quantile(x, [], axis=0).compute(), np.quantile(a, [], axis=0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_whole_quantiles_are_elements(gd, dtype):
    a = sample(dtype)
    x = gd.lazy(a)
    for q in (0, 1, np.int64(1), np.int32(0), [0, 1], np.array([1, 0])):
        for axis in (None, 1):
            same(np.quantile(x, q, axis).compute(), np.quantile(a, q, axis))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_quantiles_of_float32_q_have_numpys_dtype(gd, dtype):
    a = sample(dtype)
    x = gd.lazy(a)
    for q in (np.float32(0.3), np.array([0.3, 0.7], "f4")):
        for op in ("quantile", "nanquantile"):
            for method in ("linear", "lower", "hazen"):
                got = getattr(np, op)(x, q, method=method).compute()
                want = getattr(np, op)(a, q, method=method)
                assert (got.dtype, got.shape) == (want.dtype, want.shape), (op, method)
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)  # float32 places
        assert np.percentile(x, q).compute().dtype == np.percentile(a, q).dtype


@pytest.mark.parametrize("method", METHODS)
def test_methods_are_numpys(gd, method):
    for dtype in ("f8", "f4", "i4"):
        a = sample(dtype)
        x = gd.lazy(a)
        for axis in (None, 1):
            same(np.quantile(x, [0.07, 0.3, 0.62], axis, method=method).compute(),
                 np.quantile(a, [0.07, 0.3, 0.62], axis, method=method))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_nan_is_the_result_or_left_out(gd, dtype):
    a = sample(dtype)
    a[1, 2] = np.nan
    a[:, 0, 1] = np.nan  # of a first one NumPy's dtype would be that of a
    a[2, :, 3] = [np.inf, -np.inf, 0, -0.0, 1, 2, 3]
    x = gd.lazy(a)
    with np.errstate(all="ignore"), np.testing.suppress_warnings() as quiet:
        quiet.filter(RuntimeWarning)
        for axis in (None, 0, (1, 2)):
            same(np.median(x, axis).compute(), np.median(a, axis))
            same(np.nanmedian(x, axis).compute(), np.nanmedian(a, axis))
            same(np.nanquantile(x, 0.3, axis).compute(), np.nanquantile(a, 0.3, axis))
            same(np.nanpercentile(x, [20, 80], axis).compute(), np.nanpercentile(a, [20, 80], axis))


def test_in_expressions_and_parts_of_them(gd):
    a = sample("f8")
    x = gd.lazy(a)
    middle = np.median(x, axis=0)
    spread = np.median(abs(x - middle), axis=0)
    want = np.median(a, axis=0)
    same(spread.compute(), np.median(abs(a - want), axis=0))
    same((x > middle).sum(axis=0).compute(), (a > want).sum(axis=0))
    low, high = np.quantile(x, [0.05, 0.95])[0], np.quantile(x, [0.05, 0.95])[1]
    same(np.clip(x, low, high).compute(), np.clip(a, *np.quantile(a, [0.05, 0.95])))
    same(middle[2, ::2].compute(), want[2, ::2])
    same(middle.T.compute(), want.T)
    same(np.median(x.cumsum(axis=1), axis=1).compute(), np.median(a.cumsum(axis=1), axis=1))


def test_into_destinations_and_several_at_once(gd, folder):
    a = sample("f4")
    x = gd.lazy(a)
    out = np.empty((7, 8))
    assert np.median(x, axis=0, out=out) is out
    same(out.astype("f4"), np.median(a, axis=0))
    got = gd.save(folder / "q.npy", np.quantile(x, [0.1, 0.9], axis=2))
    same(got.compute(), np.quantile(a, [0.1, 0.9], axis=2))
    middle, mean = gd.compute(np.median(x), x.max())
    same(middle, np.median(a))
    same(mean, a.max())


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_nothing_has_no_quantile(gd, shape):
    """Where NumPy gives NaN with a warning, or nothing."""
    a = np.zeros(shape)
    with np.testing.suppress_warnings() as quiet:
        quiet.filter(RuntimeWarning)
        same(np.median(gd.lazy(a), axis=0).compute(), np.median(a, axis=0))
        for q in (0.2, [], np.arange(11) / 10):
            x = gd.nanquantile(gd.lazy(a), q, axis=0)
            same(x.compute(), np.nanquantile(a, q, axis=0))
            assert x.shape == x.compute().shape
