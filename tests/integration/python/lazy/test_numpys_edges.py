"""Calls whose edges are NumPy's: what it answers, lazies answer to the bit, and what it refuses they
refuse with an error of its class."""

import itertools
import warnings

import numpy as np
import pytest

from catalogue import NUMPY_2

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's rules")

X = np.array([[3., 1, 2], [5, 4, 6]])
BOOLS = np.array([True, False])
NONE = np.zeros(0)


def outcome(call):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call()
            return found.compute() if hasattr(found, "compute") else found
        except Exception as error:
            return error


def check(gd, call, *arrays):
    """call(lazies) against call(arrays)."""
    want = outcome(lambda: call(*arrays))
    got = outcome(lambda: call(*[gd.lazy(a) for a in arrays]))
    if isinstance(want, Exception):
        kinds = [kind for kind in (ValueError, TypeError, OverflowError, IndexError)
                 if isinstance(want, kind)]
        assert isinstance(got, tuple(kinds)), (want, got)
        return
    assert not isinstance(got, Exception), (want, repr(got))
    assert type(got) is type(want) or isinstance(got, np.ndarray)
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes())


@pytest.mark.parametrize("find", [np.argmin, np.argmax])
@pytest.mark.parametrize("key", [0, (0, 0), slice(None), (slice(None), 0), (0, None), ..., (None, 0)])
def test_parts_of_places_in_the_whole(gd, find, key):
    check(gd, lambda x: find(x, keepdims=True)[key], X)
    check(gd, lambda x: find(x, axis=0, keepdims=True)[key], X)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_signs_of_zero_sums(gd, dtype):
    """A sum begins with 0; of negative zeros it is one only where it does not."""
    a = np.full((3, 2), -0.0, dtype)
    for axis in (None, 0, 1, (0, 1), ()):
        for function in (np.sum, np.nansum, np.mean, np.nanmean, np.prod):
            check(gd, lambda x: function(x, axis=axis), a)
        for initial in (0, -0.0, None):
            check(gd, lambda x: np.add.reduce(x, axis=axis, initial=initial), a)
            check(gd, lambda x: np.sum(x, axis=axis, initial=initial), a[:0])
    for initial in (0, -0.0, 2):
        check(gd, lambda x: np.sum(x, where=np.array([True, False]), initial=initial), a)
    check(gd, lambda x: np.sum(x - x) - np.sum(x), a)


def test_nothing_without_an_initial_value(gd):
    for function in (np.sum, np.prod, np.add.reduce, np.multiply.reduce):
        for a in (NONE, np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((0, 2, 0)), X):
            for axis in range(a.ndim):
                check(gd, lambda x: function(x, axis=axis, initial=None), a)
        check(gd, lambda x: function(x, axis=0, initial=None, where=x > 2), X)


def test_truths_of_nothing_without_an_initial_value(gd):
    for function in (np.logical_or.reduce, np.logical_and.reduce):
        for a in (NONE, np.zeros((0, 3)), np.zeros((3, 0)), X, BOOLS):
            for axis in range(a.ndim):
                check(gd, lambda x: function(x, axis=axis, initial=None), a)
                check(gd, lambda x: function(x, axis=axis), a)
            check(gd, lambda x: function(x, axis=None, initial=None), a)
            check(gd, lambda x: function(x, 0, None, None, True, None), a)
        check(gd, lambda x: function(x, axis=0, initial=None, where=x > 2), X)
        check(gd, lambda x: function(x, axis=0, where=x > 2), X)


REDUCTIONS = ("sum prod mean var std max min any all count_nonzero nansum nanprod nanmean nanvar nanstd "
              "nanmin nanmax ptp argmax argmin cumsum cumprod median nanmedian quantile diff flip "
              "expand_dims squeeze linalg.norm").split()


@pytest.mark.parametrize("axis", [True, False, np.True_, (True,), (True, False), 1.0, np.int64(1)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_truths_as_axes(gd, name, axis):
    """Some of NumPy's functions take True for 1, and most do not."""
    function = np.linalg.norm if name == "linalg.norm" else getattr(np, name)
    more = (0.5,) if name == "quantile" else ()
    check(gd, lambda x: function(x, *more, axis=axis), X)


@pytest.mark.parametrize("axis", [float("inf"), float("nan"), [0]])
def test_what_is_no_axis_of_a_norm(gd, axis):
    with pytest.raises(TypeError):
        np.linalg.norm(X, axis=axis)
    with pytest.raises(TypeError, match="an axis is an integer"):
        np.linalg.norm(gd.lazy(X), axis=axis)


@pytest.mark.parametrize("axis", [True, np.True_, (True,)])
def test_truths_as_axes_of_others(gd, axis):
    for call in (lambda x: np.concatenate([x, x], axis=axis), lambda x: np.stack([x, x], axis=axis),
                 lambda x: np.roll(x, 1, axis=axis), lambda x: np.swapaxes(x, axis, 0),
                 lambda x: np.moveaxis(x, axis, 0), lambda x: np.transpose(x, (axis, 0)),
                 lambda x: np.add.reduce(x, axis=axis), lambda x: np.add.accumulate(x, axis=axis),
                 lambda x: x.sum(axis=axis), lambda x: x.argmax(axis=axis),
                 lambda x: x.cumsum(axis=axis), lambda x: x.squeeze(axis=axis)):
        check(gd, call, X)
    check(gd, lambda x: np.take(x, 1, axis=axis), ROW)
    check(gd, lambda x: np.sum(x, axis=axis), np.array(3.))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "std", "max", "any", "count_nonzero",
                                  "nansum", "nanmean", "ptp", "argmax", "linalg.norm", "squeeze",
                                  "median", "quantile", "flip"])
@pytest.mark.parametrize("axis", [[0], (0,), [0, 1], (0, 1), "x"])
def test_lists_of_axes(gd, name, axis):
    function = np.linalg.norm if name == "linalg.norm" else getattr(np, name)
    more = (0.5,) if name == "quantile" else ()
    check(gd, lambda x: function(x, *more, axis=axis), X[:1])


def test_the_function_power_of_bools(gd):
    for exponent, make in itertools.product((0, 1, 2, 3, True, 2.0, np.int8(2), np.int64(2)),
                                            (np.power, np.pow, lambda a, b: a ** b)):
        check(gd, lambda x: make(x, exponent), BOOLS)
    assert gd.power(BOOLS, 2).dtype == gd.evaluate("power(BOOLS, 2)").dtype == np.dtype("i8")


ROW = np.array([.1, .2, .3, .7, .9], "f4")


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap", "foo"])
def test_options_of_pad(gd, mode):
    """Each mode has its own."""
    for options in ({}, {"reflect_type": "even"}, {"constant_values": 3}, {"stat_length": 3},
                    {"nosuch": 3}, {"end_values": 2}):
        check(gd, lambda x: np.pad(x, 1, mode, **options), ROW)


@pytest.mark.parametrize("width", [1.5, [1., 2.], "a", -1, True, (1, 2, 3), [[1, 2]], {0: 1}])
def test_widths_of_pad(gd, width):
    check(gd, lambda x: np.pad(x, width), ROW)


def test_what_is_no_array_to_write_to(gd):
    for out in ("x", [1], 3):
        for call in (lambda x: np.sqrt(x, out=out), lambda x: np.sum(x, out=out),
                     lambda x: x.mean(out=out), lambda x: np.clip(x, 1, 2, out=out),
                     lambda x: np.concatenate([x], out=out)):
            check(gd, call, X)
    check(gd, lambda x: np.concatenate([x, x], out=np.empty((4, 3)), dtype="f8"), X)
    check(gd, lambda x: np.concatenate([x, x], out=np.empty((4, 3))), X)


@pytest.mark.parametrize("sorter", [
    [0, 1], range(6), np.arange(5), np.arange(4, -1, -1), np.arange(5.), np.arange(5).reshape(1, 5),
    [True] * 5, np.arange(5, dtype="u1")])
def test_sorters_are_checked(gd, sorter):
    check(gd, lambda x: np.searchsorted(x, [.2, .8], sorter=np.asarray(sorter)), ROW)


@pytest.mark.parametrize("sorter", [[0, 1, 2, 3, 9], [0, 1, 2, 3, -1]])
def test_sorters_that_point_outside_are_refused(gd, sorter):
    """NumPy refuses them where it comes by."""
    with pytest.raises(ValueError, match="outside"):
        np.searchsorted(gd.lazy(ROW), [.2, 5], sorter=sorter).compute()


@pytest.mark.parametrize("limits", [
    (np.float64(.1), np.float64(.9)), (.1, .9), (.1, np.float64(.9)), (np.int64(0), 1), (0, 1),
    (np.float32(.1), np.float32(.9)), (np.float32(.1), .9), (np.float32(.1), np.float64(.9)),
    (np.float32(.3), np.float32(.3))])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i8"])
def test_numpys_scalars_are_strong_in_the_range_of_a_histogram(gd, limits, dtype):
    a = (ROW * (10 if dtype[0] == "i" else 1)).astype(dtype)
    for bins, i in itertools.product((1, 4, 7, 1000), (0, 1)):
        check(gd, lambda x: np.histogram(x, bins, range=limits)[i], a)
    check(gd, lambda x: np.histogram(x, 7, range=limits, density=True)[0], a)
    check(gd, lambda x: np.histogram_bin_edges(x, 4, range=limits), a)


def test_limits_of_clip(gd):
    for args, options in [((2,), {}), ((), {}), ((2, None), {}), ((None, None), {}),
                          ((), {"min": 2}), ((), {"a_min": 2}), ((), {"a_max": 2}),
                          ((2, 3), {"min": 4}), ((), {"a_min": None, "a_max": 3})]:
        check(gd, lambda x: np.clip(x, *args, **options), X)
    check(gd, lambda x: x.clip(2), X)
    with pytest.raises(TypeError, match="a_max is missing"):
        gd.clip(X, 2)


def test_nan_to_num_in_place_is_refused(gd):
    check(gd, lambda x: np.nan_to_num(x, copy=True), X)
    with pytest.raises(gd.Unsupported, match="copy="):
        np.nan_to_num(gd.lazy(X), copy=False)


@pytest.mark.parametrize("indices", [[], (), [[]], [1.0], [1.7], np.zeros(0), np.zeros(0, int)])
def test_indices_in_lists_are_integers(gd, indices):
    check(gd, lambda x: np.take(x, indices), ROW)
    if np.size(indices) == 0:
        check(gd, lambda x: np.take(x, indices), NONE)


INTEGERS = {"i1": np.array([1, 2, -3], "i1"), "u1": np.array([1, 2, 3], "u1"),
            "i4": np.arange(5, dtype="i4"), "i8": np.arange(3), "u8": np.arange(3, dtype="u8"),
            "?": BOOLS, "f4": ROW, "f8": X}
LARGE = [300, -1, -129, 2**31, 2**40, -2**40, 2**63, 2**64, -2**63 - 1, 2**70, -2**70, 2**300,
         2**2000]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_that_do_not_fit(gd, dtype):
    """Comparisons and limits answer, all others refuse them at once."""
    a = INTEGERS[dtype]
    calls = [np.add, np.subtract, np.multiply, np.floor_divide, np.maximum, np.less, np.less_equal,
             np.greater, np.greater_equal, np.equal, np.not_equal,
             lambda x, n: n < x, lambda x, n: n - x, lambda x, n: np.clip(x, None, n),
             lambda x, n: np.clip(x, n, None), lambda x, n: x.clip(-n, n)]
    calls += [np.divide, lambda x, n: n / x]
    if a.dtype.kind == "b":
        calls.remove(np.subtract)
        calls.pop(calls.index(np.not_equal) + 2)  # n - x
    for call, n in itertools.product(calls, LARGE):
        check(gd, lambda x: call(x, n), a)


@pytest.mark.parametrize("dtype", ["?", "i8", "u8", "f8"])
def test_integers_that_are_floats_beside_others(gd, dtype):
    a = INTEGERS[dtype]
    for call, n in itertools.product([np.hypot, np.arctan2, np.copysign, np.float_power, np.isclose],
                                     [2**63, 2**64, -2**64, 2**70]):
        with np.errstate(all="ignore"):
            want = call(a, n)
        np.testing.assert_allclose(call(gd.lazy(a), n).compute(), want, rtol=1e-15)


def test_integers_that_do_not_fit_fail_at_once(gd):
    u1, i1, bools = gd.lazy(INTEGERS["u1"]), gd.lazy(INTEGERS["i1"]), gd.lazy(BOOLS)
    sums = u1
    for _ in range(3000):  # what is known is found once
        sums = sums + 100 + 200
    for make in (lambda: u1 + 300, lambda: -1 + u1, lambda: (u1 + u1).max() * 300, lambda: sums + 256,
                 lambda: divmod(u1, 300), lambda: u1 & -1,
                 lambda: u1.astype("i2") + 40000, lambda: i1 ** 128, lambda: u1 << 300,
                 lambda: gd.where(u1 > 1, u1, 300), lambda: gd.where(u1 > 1, -1, u1),
                 lambda: gd.where(u1 > 1, u1, 2**64), lambda: gd.where(u1 > 1, u1, u1) + 300,
                 lambda: gd.select([u1 > 1], [u1], 300), lambda: gd.select([u1 > 1], [300], u1),
                 lambda: bools < 2**63, lambda: bools == -2**64, lambda: bools.clip(None, 2**63),
                 lambda: gd.where(bools, bools, 2**63)):
        with pytest.raises(OverflowError, match="out of bounds"):
            make()
    assert (u1 + i1 + 300).compute().tolist() == [302, 304, 300]
    assert gd.where(u1 > 1, u1, i1.astype("i2") + 300).compute().tolist() == [301, 2, 3]
    assert gd.where(u1 > 1.5, bools[0], 300).compute().tolist() == [300, 1, 1]
    assert gd.where(u1 * 0.5, i1 * 1.0, 2**70).compute().tolist() == [1, 2, -3]
    with pytest.raises(OverflowError):
        gd.where(u1 * 0.5, i1, 2**70)


@pytest.mark.parametrize("shapes", [((5,), (3, 5)), ((1, 3), (4, 3)), ((3,), (1, 3)), ((), (2, 2)),
                                    ((2, 3), (3,)), ((2, 3), (2, 4)), ((2, 1), (3, 2, 5))])
def test_places_that_are_broader_than_the_result(gd, shapes):
    a = np.arange(float(np.prod(shapes[0]))).reshape(shapes[0])
    for call in (lambda x, out: np.add(x, 1, out=out), lambda x, out: np.sqrt(x + x, out=out),
                 lambda x, out: np.clip(x, 1, 2, out=out), lambda x, out: np.modf(x, out=(out, None))[0],
                 lambda x, out: np.round(x / 3, 1, out=out), lambda x, out: np.around(x, out=out),
                 lambda x, out: np.fix(x / 3, out=out)):
        want, got = np.zeros(shapes[1]), np.zeros(shapes[1])
        expected = outcome(lambda: call(a, want))
        found = outcome(lambda: call(gd.lazy(a), got))
        if isinstance(expected, Exception):
            assert isinstance(found, ValueError), (expected, found)
        else:
            assert found is got
            np.testing.assert_array_equal(got, want)
    check(gd, lambda x: np.sum(x, axis=0, out=np.zeros((2, 3))), X)
    check(gd, lambda x: np.matmul(x, X.T, out=np.zeros((3, 2, 2))), X)


def test_arrays_like_a_lazy(gd):
    for make in (np.zeros_like, np.ones_like, lambda x, **o: np.full_like(x, 7, **o),
                 lambda x, **o: np.full_like(x, [1, 2, 3], **o)):
        for options in ({}, {"dtype": "i4"}, {"dtype": bool}, {"shape": (4, 3)}, {"shape": 3}):
            check(gd, lambda x: make(x, **options), X)
    check(gd, lambda x: np.full_like(x, 300), INTEGERS["i1"])
    check(gd, lambda x: np.full_like(x, [1, 2]), X)
    check(gd, lambda x: np.where(x > 2, x, np.zeros_like(x)).sum(), X)
    assert np.empty_like(gd.lazy(X)).shape == X.shape
    huge = np.zeros_like(gd.lazy(X), shape=(1 << 40,))  # has no memory
    assert huge[5:8].compute().tolist() == [0, 0, 0]


def test_numbers_in_texts_and_of_python(gd):
    for call in (lambda x: f"{x.mean():.2f}", lambda x: f"{x.sum():e}", lambda x: f"{x.sum():d}",
                 lambda x: f"{x.argmax():05d}", lambda x: f"{x:.2f}", lambda x: x.mean().item(),
                 lambda x: x[0, 1].item(), lambda x: x.item(2), lambda x: x.item(-1),
                 lambda x: x.item(0, 1), lambda x: x.item((1, 1)), lambda x: x.item(),
                 lambda x: x.item(17), lambda x: x.item(0, 9), lambda x: x.any().item(),
                 lambda x: x[:1, :1].item()):
        want, got = outcome(lambda: call(X)), outcome(lambda: call(gd.lazy(X)))
        if isinstance(want, Exception):
            assert isinstance(got, type(want)), (want, got)
        else:
            assert (type(got), got) == (type(want), want)
    assert f"{gd.lazy(X)}" == str(gd.lazy(X))


def test_one_result_has_one_place(gd):
    x, out = gd.lazy(X), np.zeros((2, 3))
    [found] = gd.compute(x + 1, out=out)
    assert found is out and (out == X + 1).all()
    with pytest.raises(TypeError, match="list of as many"):
        gd.compute(x, x + 1, out=np.zeros((2, 2, 3)))
