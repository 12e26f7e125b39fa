"""Histograms, counts and look-ups of lazies against NumPy's: dtypes, shapes, edges, weights, parts,
inside of expressions, into destinations, and what is refused when it is computed."""

import numpy as np
import pytest

from catalogue import DTYPES, NUMPY_2, same, specials

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's promotion")
INTEGERS = [dtype for dtype in DTYPES if np.dtype(dtype).kind in "iu"]
NUMBERS = [dtype for dtype in DTYPES if dtype != "?"]


def sample(dtype, shape=(30, 40), seed=1):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.normal(0, 100, shape).astype(dtype)
    return rng.integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)


# -- histograms ---------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", NUMBERS)
def test_histograms_are_numpys(gd, dtype):
    a = sample(dtype)
    x = gd.lazy(a)
    weights = np.linspace(-1, 2, a.size).reshape(a.shape)
    for how in ({}, {"bins": 1}, {"bins": 333}, {"bins": 7, "range": (10, 60)},
                {"bins": 5, "range": (3, 3)}, {"bins": 4, "range": (200.5, 300)},
                {"bins": [0, 1, 10, 10, 50]}, {"bins": np.linspace(-50, 50, 21)}):
        for got, want in zip(gd.compute(*np.histogram(x, **how)), np.histogram(a, **how)):
            same(got, want)
        same(np.histogram_bin_edges(x, **how).compute(), np.histogram_bin_edges(a, **how))
        got, _ = gd.compute(*np.histogram(x, **how, weights=weights))
        np.testing.assert_allclose(got, np.histogram(a, **how, weights=weights)[0], rtol=1e-12,
                                   atol=1e-9)
        if (want := np.histogram(a, **how)[0]).sum() and 0 not in np.diff(np.histogram(a, **how)[1]):
            got, _ = gd.compute(*np.histogram(x, **how, density=True))
            np.testing.assert_allclose(got, np.histogram(a, **how, density=True)[0], rtol=1e-6)


@pytest.mark.parametrize("bins", [[0, 2, 1], [5.5, -1.0]])
def test_edges_that_fall_are_refused_by_each_result(gd, bins):
    for edges in (bins, gd.lazy(np.array(bins))):
        counts, given = gd.histogram(sample("f8"), edges)
        for result in (counts, given, gd.histogram_bin_edges(sample("f8"), edges)):
            with pytest.raises(ValueError, match="must not fall"):
                result.compute()


def test_histograms_of_expressions_and_in_expressions(gd):
    a = sample("f8")
    x = gd.lazy(a)
    want, edges = np.histogram(a * a, 50, (0, 5000))
    counts, _ = np.histogram(x * x, 50, (0, 5000))
    same((counts / counts.sum()).compute(), want / want.sum())
    same(counts[10:20].compute(), want[10:20])
    same(counts.argmax().compute(), want.argmax())
    same(np.cumsum(counts).compute(), np.cumsum(want))
    same(np.histogram(x.T[::-1], 9)[0].compute(), np.histogram(a, 9)[0])


def test_running_sums_beside_other_results_of_one_array(gd, tmp_path):
    a = sample("f8")
    path = tmp_path / "a.npy"
    np.save(path, a)
    for x in (gd.lazy(gd.asarray(a)), gd.lazy(a), gd.open(path)):
        for axis in (0, 1):
            sums, absolutes = gd.compute(np.cumsum(x, axis=axis), abs(x))
            assert np.allclose(sums, np.cumsum(a, axis=axis))
            same(absolutes, abs(a))


def test_weights_keep_their_dtype(gd):
    a, weights = sample("f4"), np.ones((30, 40), "i4")
    for kind in ("i4", "f4", "f8"):
        got, _ = np.histogram(gd.lazy(a), 5, weights=weights.astype(kind))
        same(got.compute(), np.histogram(a, 5, weights=weights.astype(kind))[0])


def test_empty_arrays_and_one_value(gd):
    for a in (np.zeros(0), np.full(7, 3.5), np.zeros((0, 4), "f4")):
        for got, want in zip(gd.compute(*np.histogram(gd.lazy(a), 4)), np.histogram(a, 4)):
            same(got, want)


@pytest.mark.parametrize(("call", "code"), [
    (lambda gd: gd.histogram([1., 2], [3., 2, 1])[0], "bad-argument"),
    (lambda gd: gd.histogram([1., np.inf], 3)[0], "bad-argument"),
    (lambda gd: gd.histogram([1., np.nan], 3)[1], "bad-argument"),
    (lambda gd: gd.bincount([1, 5], length=5), "bad-argument"),
    (lambda gd: gd.bincount([1, -5], length=5), "bad-argument"),
    (lambda gd: gd.bincount([1., 5]), "bad-dtype"),
    (lambda gd: gd.bincount([1, -1]), "bad-argument"),
    (lambda gd: gd.digitize([1.], [1., 3, 2]), "bad-argument"),
    (lambda gd: gd.take([1., 2], [0, 2]), "bad-index"),
    (lambda gd: gd.take([1., 2], -3), "bad-index"),
    (lambda gd: gd.take(np.zeros(0), 0), "bad-index"),
    (lambda gd: gd.take([1., 2], np.array([0.5])), "bad-dtype"),
])
def test_what_is_refused_when_it_is_computed(gd, call, code):
    with pytest.raises(gd.Error) as caught:
        call(gd).compute()
    assert caught.value.code == code and caught.value.expected and caught.value.found


def test_an_index_outside_is_an_index_error(gd):
    """As NumPy's, which knows it when it is called."""
    a = np.arange(5.)
    for call in (lambda x: np.take(x, [9]), lambda x: x.take([1, -6]), lambda x: x.take(5),
                 lambda x: np.take(x[:0], [0])):
        with pytest.raises(IndexError):
            call(a)
        with pytest.raises(IndexError):
            call(gd.lazy(a)).compute()
    with pytest.raises(IndexError) as caught:
        gd.evaluate("take(a, i)", a=a, i=np.array([4, 9]))
    assert type(caught.value) is gd.BadIndex and caught.value.found == "index 9"
    assert caught.value.expected == "-5 to 4 along axis 0 of length 5"


# -- bincount -----------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", [*INTEGERS, "?"])
def test_bincounts_are_numpys(gd, dtype):
    a = sample(dtype, 3000)
    x = gd.lazy(a)
    numpys = a.astype("i8")  # NumPy refuses uint64
    same(np.bincount(x).compute(), np.bincount(numpys))
    same(np.bincount(x, minlength=200).compute(), np.bincount(numpys, minlength=200))
    same(gd.bincount(a, length=100).compute(), np.bincount(numpys, minlength=100))
    weights = np.linspace(-1, 2, a.size)
    np.testing.assert_allclose(np.bincount(x, weights).compute(), np.bincount(numpys, weights),
                               rtol=1e-12, atol=1e-9)
    same(np.bincount(x, weights.astype("i4"), 120).compute(),
         np.bincount(numpys, weights.astype("i4"), 120))


def test_bincounts_of_nothing_and_in_expressions(gd):
    none = np.zeros(0, "i4")
    same(gd.bincount(none).compute(), np.bincount(none))
    same(gd.bincount(none, minlength=3).compute(), np.bincount(none, minlength=3))
    same(gd.bincount(none, none * 1.).compute(), np.bincount(none, none * 1.))
    same(gd.bincount(none, none * 1., 3).compute(), np.bincount(none, none * 1., 3))
    a = sample("i8", 1000)
    counts = np.bincount(gd.lazy(a) // 7)
    want = np.bincount(a // 7)
    same((counts / counts.max()).compute(), want / want.max())
    same(counts[::2].compute(), want[::2])


# -- look-ups -----------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
def test_searches_are_numpys(gd, dtype):
    table = np.sort(specials(dtype, 60))
    v = sample(dtype)
    for side in ("left", "right"):
        same(np.searchsorted(gd.lazy(table), v, side).compute(), np.searchsorted(table, v, side))
        same(gd.lazy(table).searchsorted(v[3], side).compute(), table.searchsorted(v[3], side))
        same(gd.searchsorted(table, v[0, 0], side).compute(), table.searchsorted(v[0, 0], side))
    order = np.random.default_rng(2).permutation(60)
    shuffled = np.empty_like(table)
    shuffled[order] = table
    same(np.searchsorted(gd.lazy(shuffled), v, sorter=order).compute(), np.searchsorted(table, v))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_digitized_is_numpys(gd, dtype):
    a = sample(dtype)
    for edges in ([0, 10, 20, 20, 70], [90, 50, 1], [5], np.linspace(-50, 80, 30)):
        for right in (False, True):
            same(np.digitize(gd.lazy(a), edges, right).compute(), np.digitize(a, edges, right))


@pytest.mark.parametrize("dtype", DTYPES)
def test_taken_is_numpys(gd, dtype):
    table = specials(dtype, 50)
    places = np.random.default_rng(3).integers(-50, 50, (20, 30))
    same(np.take(gd.lazy(table), places).compute(), np.take(table, places))
    same(gd.lazy(table).take(places * 3, mode="wrap").compute(), table.take(places * 3, mode="wrap"))
    same(gd.take(table, places * 3, mode="clip").compute(), table.take(places * 3, mode="clip"))
    same(gd.take(table, 7).compute(), table.take(7))


def test_look_ups_in_expressions_and_parts_of_them(gd):
    table, v = np.linspace(0, 1, 11), np.random.default_rng(4).random((50, 60))
    x = gd.lazy(v)
    places = np.searchsorted(table, x)
    same((gd.lazy(table)[1:].take(places - 1) - x).compute(),
         table[1:].take(np.searchsorted(table, v) - 1) - v)
    same(places[3:9, ::-2].compute(), np.searchsorted(table, v)[3:9, ::-2])
    same(places.T.compute(), np.searchsorted(table, v).T)
    out = np.empty((5, 5))
    assert np.take(gd.lazy(table), np.arange(25).reshape(5, 5) % 11, out=out) is out
    same(out, table.take(np.arange(25).reshape(5, 5) % 11))


# -- random elements ----------------------------------------------------------------------------

def test_elements_are_chosen_and_shuffled(gd):
    values = np.linspace(5, 9, 40)
    rng = gd.random.default_rng(3)
    some = rng.choice(values, (300, 4)).compute()
    assert some.shape == (300, 4) and set(some.ravel()) == set(values)
    assert rng.choice(values).compute() in values
    once = rng.choice(gd.lazy(values), 30, replace=False).compute()
    assert len(set(once)) == 30 and set(once) <= set(values)
    shuffled = rng.permutation(values).compute()
    assert sorted(shuffled) == values.tolist() and shuffled.tolist() != values.tolist()
    out = np.empty(40)
    assert rng.permutation(values, out=out) is out and sorted(out) == values.tolist()
    assert rng.permutation(values[:0]).compute().shape == (0,)
    numbers = gd.random.choice(40, 9, seed=5).compute()
    same(gd.random.choice(values, 9, seed=5).compute(), values[numbers])
