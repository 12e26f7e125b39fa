"""What NumPy's functions take beyond the usual: borders that are computed, quantiles with weights, dtype=
and where= of ufuncs, reductions of ufuncs that the daemon has not. Against NumPy, dtype and shape too."""

import itertools

import numpy as np
import pytest

import gpuarrayd as gd

RANDOM = np.random.default_rng(3)
ARRAYS = [RANDOM.normal(size=(4, 5)).astype("f4"), RANDOM.normal(size=(3, 4, 5)),
          RANDOM.integers(-90, 90, (4, 5)).astype("i2"), RANDOM.integers(0, 200, (3, 4)).astype("u1")]
LARGE = RANDOM.integers(-2**62, 2**62, (7, 3))


@pytest.fixture(autouse=True)
def package(gd):
    """A daemon for each test."""


def check(call, a):
    wanted, found = np.asarray(call(a)), call(gd.lazy(a)).compute()
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=3e-6 if wanted.dtype == "f4" else 1e-13,
                               atol=1e-7 if wanted.dtype == "f4" else 1e-15)


def options_of(mode):
    return [{"end_values": 3}, {"end_values": ((1, -5),)}] if mode == "linear_ramp" else \
        [{"stat_length": 1}, {"stat_length": ((2, 3),)}, {"stat_length": 50}]


@pytest.mark.parametrize("a", ARRAYS, ids=lambda a: a.dtype.name)
@pytest.mark.parametrize("mode", ["linear_ramp", "maximum", "mean", "median", "minimum"])
def test_borders_that_are_computed(mode, a):
    check(lambda x: np.pad(x, 2, mode), a)
    check(lambda x: np.pad(x, [(1, 0)] * (a.ndim - 1) + [(0, 3)], mode), a)
    for options in options_of(mode):
        check(lambda x, options=options: np.pad(x, 2, mode, **options), a)


def test_what_borders_refuse():
    x = gd.lazy(ARRAYS[0])
    for call, code in ((lambda: gd.pad(x, 1, "mean", stat_length=0), "bad-argument"),
                       (lambda: gd.pad(x, 1, "mean", stat_length=1.5), "bad-argument"),
                       (lambda: gd.pad(x, 1, "linear_ramp", end_values=((1, 2),) * 3), "bad-shape"),
                       (lambda: gd.pad(x[:0], 1, "median"), "bad-argument")):
        with pytest.raises(gd.Error) as caught:
            call()
        assert caught.value.code == code


@pytest.mark.parametrize("a", ARRAYS, ids=lambda a: a.dtype.name)
def test_quantiles_with_weights(a):
    weights = np.random.default_rng(5).integers(0, 4, a.shape) + 1.0
    for axis in (None, 0, -1, (0, 1)):
        for q in (0, 0.3, 1, [0.1, 0.5, 0.9]):
            check(lambda x, q=q, axis=axis: np.quantile(
                x, q, axis, weights=weights, method="inverted_cdf", keepdims=q == 0.3), a)
    check(lambda x: np.quantile(x, [0, 0.5], weights=weights - 1, method="inverted_cdf"), a)
    check(lambda x: np.percentile(x, 30, axis=0, weights=np.arange(1, len(a) + 1), method="inverted_cdf"), a)


def test_weights_of_what_is_nan():
    a = ARRAYS[0].copy()
    a[1, 2] = np.nan
    check(lambda x: np.quantile(x, [0.2, 0.5], axis=0, weights=np.arange(1, 5), method="inverted_cdf"), a)
    found = gd.nanquantile(gd.lazy(a), 0.5, axis=0, weights=np.arange(1, 5), method="inverted_cdf")
    kept, weights = np.delete(a[:, 2], 1), np.array([1, 3, 4])
    assert found.compute()[2] == np.quantile(kept, 0.5, weights=weights, method="inverted_cdf")
    with pytest.raises(gd.errors.BadArgument, match="inverted_cdf"):
        gd.quantile(a, 0.5, weights=a)
    with pytest.raises(gd.errors.BadShape, match="weights"):
        gd.quantile(a, 0.5, axis=0, weights=[1, 2], method="inverted_cdf")


@pytest.mark.parametrize("a", ARRAYS, ids=lambda a: a.dtype.name)
def test_dtypes_of_ufuncs(a):
    for dtype in ("f4", "f8", "i8", "i2", "?"):
        for call in (lambda x: np.add(x, 1, dtype=dtype), lambda x: np.maximum(x, x, dtype=dtype),
                     lambda x: np.less(x, 1, dtype=dtype), lambda x: np.sqrt(abs(x), dtype=dtype)):
            try:
                call(a)
            except (TypeError, OverflowError):
                with pytest.raises(TypeError):
                    call(gd.lazy(a))
            else:
                check(call, a)


def test_where_of_ufuncs():
    a = ARRAYS[1]
    out, wanted = np.full(a.shape, 7.0), np.full(a.shape, 7.0)
    np.add(a, 1, where=a > 0, out=wanted)
    x = gd.lazy(a)
    assert np.add(x, 1, where=x > 0, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    found = np.sqrt(x, where=a > 0).compute()
    np.testing.assert_array_equal(found[a > 0], np.sqrt(a[a > 0]))
    assert not found[a <= 0].any()
    pair = [np.zeros(a.shape), np.zeros(a.shape)]
    np.modf(x, where=a > 0, out=tuple(pair))
    np.testing.assert_array_equal(pair[1], np.where(a > 0, np.trunc(a), 0))


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"])
def test_reductions_of_other_ufuncs(name):
    for a in (*ARRAYS[:3], LARGE, ARRAYS[0] > 0):
        for axis in (0, -1, None):
            def call(x, axis=axis):
                return getattr(np, name).reduce(x, axis=axis, keepdims=axis == -1)
            try:
                is_right = call(a).dtype != "f2"
            except TypeError:
                with pytest.raises(TypeError):
                    call(gd.lazy(a))
            else:
                if is_right:
                    check(call, a)
    if name == "hypot":
        with np.errstate(all="ignore"):
            check(lambda x: np.hypot.reduce(x), np.array([[1e300, np.inf, 0, np.inf], [1e300, np.nan, 0, 1]]))
    else:
        with pytest.raises(gd.Unsupported, match="initial="):
            getattr(np, name).reduce(gd.lazy(LARGE), initial=1)


def test_how_columns_go_together():
    a = ARRAYS[1][0]
    for call in (np.corrcoef, np.cov, lambda x: np.cov(x, rowvar=False, ddof=0)):
        np.testing.assert_allclose(call(gd.lazy(a)), call(a), atol=1e-9)


def test_fits_of_many_columns():
    rng = np.random.default_rng(2)
    for dtype, shape, rcond in itertools.product(("f8", "f4", "i4"), ((9,), (9, 1), (9, 40)), (None, 1e-3)):
        b = (rng.normal(size=shape) * 100).astype(dtype)
        for a in (np.vander(np.arange(9.0), 3), np.ones((9, 2)), rng.normal(size=(9, 12))):
            for got, want in zip(np.linalg.lstsq(a, gd.lazy(b), rcond), np.linalg.lstsq(a, b, rcond), strict=True):
                assert np.shape(got) == np.shape(want)
                np.testing.assert_allclose(got, want, 1e-6, 1e-9)
    with pytest.raises(gd.BadShape, match="9 rows"):
        np.linalg.lstsq(np.ones((9, 2)), gd.lazy(np.ones(8)))
    a, b = np.arange(27.0).reshape(9, 3), np.arange(9.0)
    assert np.linalg.lstsq(a, gd.lazy(b), -1)[2] == np.linalg.lstsq(a, b, -1)[2] == 2
    for bad, error in ((np.ones(9), gd.BadShape), (a * 1j, gd.BadDtype), (a * np.nan, gd.BadArgument)):
        with pytest.raises(error):
            np.linalg.lstsq(bad, gd.lazy(b))
    with pytest.raises(gd.Unsupported, match="axisa"):
        np.cross(gd.lazy(a), a, axisa=0)
    x, y = rng.normal(size=(2, 5, 3))
    np.testing.assert_allclose(np.cross(gd.lazy(x), y), np.cross(x, y))
    np.testing.assert_array_equal(np.apply_along_axis(np.sort, 0, gd.lazy(x)), np.sort(x, 0))
