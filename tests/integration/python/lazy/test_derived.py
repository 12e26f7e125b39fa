"""Functions that are written with others are NumPy's, of arrays and of expressions."""

import itertools

import numpy as np
import pytest

from catalogue import NUMPY_2

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's promotion")


def check(gd, pairs, close=0.0):
    for i in range(0, len(pairs), 12):
        some = pairs[i:i + 12]
        for got, (_, want, name) in zip(gd.compute(*[one for one, _, _ in some]), some):
            got, want = np.asarray(got), np.asarray(want)
            assert got.dtype == want.dtype and got.shape == want.shape, (name, got, want)
            np.testing.assert_allclose(got, want, close, err_msg=str(name))


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(11)
    found = [rng.random(7), rng.normal(size=(4, 6)).astype("f4"), rng.integers(-5, 9, (2, 3, 4)),
             rng.random((3, 5)) > 0.5, rng.integers(0, 99, (5, 1, 2)).astype("u1")]
    for array in found[:2]:
        array.flat[[1, 4]] = np.nan
    return found


@pytest.mark.parametrize("name", ["conj", "real", "imag", "bitwise_invert"])
def test_of_one(gd, arrays, name):
    check(gd, [(getattr(module, name)(lazy * 1), getattr(np, name)(array * 1), name)
               for array in arrays if array.dtype.kind in "iu" or name not in ("bitwise_invert",)
               for module, lazy in ((gd, gd.lazy(array)), (np, gd.lazy(array)))
               if module is gd or name in ("real", "imag")])


def test_running(gd, arrays):
    pairs = []
    for array in arrays:
        for axis, include in itertools.product(range(-1, array.ndim), (False, True)):
            for name in ("cumulative_sum", "cumulative_prod"):
                given = dict(axis=axis, include_initial=include)
                pairs.append((getattr(gd, name)(array, **given), getattr(np, name)(array, **given),
                              (name, given)))
            for name in ("nancumsum", "nancumprod"):
                pairs.append((getattr(np, name)(gd.lazy(array), axis), getattr(np, name)(array, axis),
                              (name, axis)))
    for got, want, name in pairs:  # each is a whole result
        check(gd, [(got, want, name)], 1e-6)


def test_as_if_they_were_flat(gd, arrays):
    pairs = [(gd.concatenate(arrays[2:], None), np.concatenate(arrays[2:], None), "concatenate"),
             (gd.concatenate([3, arrays[2]], None), np.concatenate([3, arrays[2]], None), "number")]
    for array in arrays:
        pairs += [(np.roll(gd.lazy(array), shift), np.roll(array, shift), shift) for shift in (-1, 0, 99)]
        pairs += [(getattr(np, name)(gd.lazy(array)), getattr(np, name)(array), name)
                  for name in ("nancumsum", "nancumprod")]
        if array.dtype.kind != "f":
            pairs += [(gd.lazy(array).cumsum(), array.cumsum(), "cumsum"),
                      (gd.cumprod(array), np.cumprod(array), "cumprod")]
    pairs += [(gd.ravel(3), np.array([3]), ""), (gd.reshape(gd.lazy(arrays[0]).argmin(), (1, 1)),
                                                np.array([[1]]), "0-d")]
    for got, want, name in pairs:
        check(gd, [(got, want, name)], 1e-6)


def test_places(gd, arrays):
    check(gd, [(getattr(gd, name)(array, axis, keepdims=keepdims),
                getattr(np, name)(array, axis, keepdims=keepdims), (name, axis))
               for array in arrays for name in ("nanargmin", "nanargmax")
               for axis in (None, *range(array.ndim)) for keepdims in (False, True)])
    nothing = np.full((2, 3), np.nan)
    nothing[1, 1] = 3
    assert gd.nanargmin(nothing, 1).compute().tolist() == [-1, 1]


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), (2, 0)])
def test_average(gd, axis):
    rng, pairs = np.random.default_rng(4), []
    for dtype in ("f8", "f4", "i2", "?"):
        a = (rng.random((3, 4, 5)) * 9).astype(dtype)
        n = None if axis is None else tuple(np.array(a.shape)[list(np.atleast_1d(axis))])
        for weights in (None, rng.random(a.shape), rng.integers(1, 5, a.shape),
                        *([] if n is None else [rng.random(n)])):
            given = dict(axis=axis, weights=weights, returned=True)
            for got, want in zip(gd.average(gd.lazy(a), **given), np.average(a, **given)):
                pairs.append((got, want, (dtype, axis)))
            given = dict(axis=axis, weights=weights, keepdims=True)
            pairs.append((np.average(gd.lazy(a), **given), np.average(a, **given), "keepdims"))
    check(gd, pairs, 1e-6)


def test_trapezoid_and_kron(gd):
    rng = np.random.default_rng(6)
    y, x = rng.random((4, 5)), np.sort(rng.random(5))
    pairs = [(gd.trapezoid(y), np.trapezoid(y), ""), (gd.trapezoid(y, dx=0.3, axis=0),
                                                     np.trapezoid(y, dx=0.3, axis=0), ""),
             (np.trapezoid(gd.lazy(y), x), np.trapezoid(y, x), "x"),
             (gd.trapezoid(y.T, x, axis=0), np.trapezoid(y.T, x, axis=0), "x0"),
             (gd.trapezoid(y, y * 2), np.trapezoid(y, y * 2), "xy")]
    for a, b in [(x, x[:2]), (y, y[:2, :3]), (y, x), (x, y), (np.arange(24).reshape(2, 3, 4), y)]:
        pairs += [(gd.kron(a, b), np.kron(a, b), (a.shape, b.shape))]
    check(gd, pairs, 1e-14)


def test_isin(gd):
    rng = np.random.default_rng(9)
    x = rng.integers(-20, 20, (6, 7))
    pairs = []
    for test, invert in itertools.product(
            ([1, 2, 3], rng.integers(-9, 9, (3, 4)), [], 7, [2.5, 3.0, np.nan], [True],
             np.array([200, 3], "u1")), (False, True)):
        for array in (x, x.astype("f4") / 2, x > 0):
            pairs.append((np.isin(gd.lazy(array), test, invert=invert),
                          np.isin(array, test, invert=invert), (test, invert)))
    near = 2**53 + np.arange(6)  # which float64 has not all
    for one, test in ((near, near[::2].astype("u8")), (near.astype("u8"), near[1::2]),
                      (near, np.array([2**63 + 5, 2**53], "u8")), (near % 3 - 1, np.uint8([0, 255]))):
        pairs.append((gd.isin(one, test), np.array([int(i) in map(int, test) for i in one]), "exact"))
    pairs.append((gd.isin(x, gd.lazy(x)[0] * 2), np.isin(x, x[0] * 2), "lazy"))
    large = rng.integers(0, 2**40, 200_000)
    pairs.append((gd.isin(large[::1000] + (np.arange(200) % 2), large),
                  np.isin(large[::1000] + (np.arange(200) % 2), large), "large"))
    check(gd, pairs)
    with pytest.raises(gd.Unsupported, match="256 MiB"):
        gd.isin(x, gd.arange(2**40))
    with pytest.raises(gd.Unsupported, match="parts"):
        gd.isin(x, np.arange(300_000))


def test_interp(gd):
    rng = np.random.default_rng(2)
    xp = np.sort(rng.random(9) * 10)
    fp = rng.normal(size=9)
    x = np.concatenate([rng.random(40) * 14 - 2, xp, [np.nan, np.inf, -np.inf]])
    stepped = np.array([1.0, 2, 2, 3])
    pairs = []
    for given, more in itertools.product(
            [(xp, fp), (xp[:1], fp[:1]), (xp[:2], fp[:2]), (stepped, [1.0, 2, 5, 4]),
             ([0.0, 5, np.inf], [1.0, 2, 2]), ([1, 2, 4], [1.0, np.inf, np.inf])],
            [{}, {"left": -1}, {"right": np.nan, "left": 0.5}]):
        pairs.append((gd.interp(x, *given, **more), np.interp(x, *given, **more), (given, more)))
    finite = x[np.isfinite(x)]
    pairs += [(np.interp(gd.lazy(finite), [8, 1, 5], [1.0, 2, 4], period=9.5),
               np.interp(finite, [8, 1, 5], [1.0, 2, 4], period=9.5), "period"),
              (gd.interp(np.arange(6).reshape(2, 3), [1, 4], [3, 9]),
               np.interp(np.arange(6).reshape(2, 3), [1, 4], [3, 9]), "ints")]
    check(gd, pairs, 1e-12)


def test_windows_as_views(gd):
    a = np.arange(4 * 5 * 6).reshape(4, 5, 6) * 1.5
    view = np.lib.stride_tricks.sliding_window_view
    pairs = [(gd.sliding_window_view(a + 1, *given), view(a + 1, *given), given)
             for given in [((2, 3, 4),), (3, 0), ((2, 2), (0, 1)), ((2, 3), (1, 1)), (6, -1)]]
    pairs += [(view(gd.lazy(a)[0, 0], 2), view(a[0, 0], 2), ""),
              (gd.sliding_window_view(a, np.array([2, 1]), (0, 1)), view(a, (2, 1), (0, 1)), "array"),
              (gd.sliding_window_view(gd.sqrt(a), 3, 2).mean(axis=-1),
               view(np.sqrt(a), 3, 2).mean(axis=-1), "mean"),
              (gd.sliding_window_view(gd.arange(9), 4)[::2, 1], view(np.arange(9), 4)[::2, 1], "")]
    check(gd, pairs, 1e-14)


def test_parts(gd):
    a, row = np.arange(6 * 4 * 2).reshape(6, 4, 2), np.arange(7)
    pairs = []
    for name, *given in [("split", a, 3), ("split", a, 2, 1), ("split", a, [1, 4]), ("split", row, [2, 9, 3]),
                         ("array_split", row, 3), ("array_split", row, 9), ("array_split", a, 4, -2),
                         ("hsplit", a, 2), ("hsplit", row, [3]), ("vsplit", a, 3), ("dsplit", a, 2),
                         ("unstack", a), ("array_split", row, [])]:
        for function, array in ((getattr(gd, name), given[0]), (getattr(np, name), gd.lazy(given[0]))):
            got, want = function(array, *given[1:]), getattr(np, name)(*given)
            assert type(got) is type(want) and len(got) == len(want), name
            pairs += [(one, other, (name, given[1:])) for one, other in zip(got, want)]
    for got, want in zip(gd.unstack(a, axis=-1), np.unstack(a, axis=-1)):
        pairs.append((got, want, "unstack"))
    check(gd, pairs)


def test_dtypes(gd):
    x = gd.lazy(np.ones(3, "f4"))
    assert gd.result_type(x, "i2") == np.result_type("f4", "i2") == np.result_type(x, "i2")
    assert gd.result_type(x, 3.5) == "f4" and gd.result_type("i8", x) == "f8"
    assert gd.can_cast(x, "f8") and not np.can_cast(x, "i4") and gd.can_cast("i4", "i8")
    assert gd.finfo(x).eps == np.finfo("f4").eps and gd.iinfo("i2").max == 32767
    for dtype in ("?", "i1", "u8", "f4", "c8"):
        for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating",
                     "complex floating", "numeric", np.dtype(dtype), ("bool", "integral")):
            assert gd.isdtype(np.dtype(dtype), kind) == np.isdtype(np.dtype(dtype), kind)
    with pytest.raises(gd.errors.BadArgument):
        gd.isdtype("f4", "float")


@pytest.mark.parametrize("call, error", [
    (lambda gd: gd.split(np.ones(7), 3), "BadArgument"), (lambda gd: gd.split(np.ones(7), 0), "BadArgument"),
    (lambda gd: gd.vsplit(np.ones(3), 3), "BadShape"), (lambda gd: gd.unstack(3), "BadShape"),
    (lambda gd: gd.average(np.ones((2, 3)), weights=np.ones(3)), "BadShape"),
    (lambda gd: gd.interp([1.0], [2, 1], [3, 4]), "BadArgument"),
    (lambda gd: gd.interp([1.0], [], []), "BadShape"),
    (lambda gd: gd.interp([1.0], [1, 2], [3, 4j]), "BadDtype"),
    (lambda gd: gd.interp([1.0], ["a"], [3]), "BadDtype"),
    (lambda gd: gd.interp([1.0], [1, 2], [3, 4], period=0), "BadArgument"),
    (lambda gd: gd.sliding_window_view(np.ones(3), 4), "BadShape"),
    (lambda gd: gd.sliding_window_view(np.ones(3), (1, 1)), "BadArgument"),
    (lambda gd: gd.cumulative_sum(np.ones((2, 3))), "BadArgument"),
    (lambda gd: gd.nanargmin(np.ones((0,))), "BadShape")])
def test_refused(gd, call, error):
    with pytest.raises(gd.Unsupported if error == "Unsupported" else getattr(gd.errors, error)):
        got = call(gd)
        got.compute()
