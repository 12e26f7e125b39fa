"""Every function of the catalogue on every dtype (and pair of dtypes) against NumPy, through the
package: arguments on the heap, in shared memory and as NumPy's scalars, results new and in out=.
The catalogue is asked of the daemon and walked; how a function is compared is in catalogue.py."""

import numpy as np
import pytest

import wire
from catalogue import (DTYPES, ELSEWHERE, OUTPUTS, assert_none, assert_same, calls, functions,
                       numpy_result, specials, used)
from test_catalogue import compare, pairs


class Through:
    """Stands where the generators have a connection, and asks the package."""

    def __init__(self, gd, convert=lambda array: array):
        self.gd, self.convert = gd, convert

    def ask(self, texts, arguments):
        given = {name: self.convert(value) if isinstance(value, np.ndarray) else value
                 for name, value in arguments.items()}
        return [result for i in range(0, len(texts), OUTPUTS)
                for result in self.some(texts[i:i + OUTPUTS], given)]

    def some(self, texts, given):
        """The results of one job; where it is refused, those of each text alone."""
        try:
            return [np.asarray(r) for r in self.gd.evaluate(texts, **used(texts, given))]
        except self.gd.errors.Error as error:
            if len(texts) > 1:
                return [result for text in texts for result in self.some([text], given)]
            return [wire.Error({"code": error.code, "message": error.message})]


def ask(through, texts, arguments):
    return through.ask(texts, arguments)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("place", ["heap", "shared"])
def test_every_unary_function(gd, daemon, dtype, place):
    a = specials(dtype, 1009)
    through = Through(gd, gd.asarray if place == "shared" else np.asarray)
    requests = [(op["name"], text, result, {"a": a})
                for op in functions(daemon, 1) for text, result in calls(op)]
    assert_none(compare(through, requests, ask), len(requests))


@pytest.mark.parametrize("left", DTYPES)
def test_every_binary_function_on_every_pair_of_dtypes(gd, daemon, left):
    failures, n, through = [], 0, Through(gd)
    for right in DTYPES:
        requests = list(pairs(daemon, left, right, 31))
        failures += compare(through, requests, ask)
        n += len(requests)
    assert_none(failures, n)


@pytest.mark.parametrize("dtype", DTYPES)
def test_out_takes_the_result_of_every_unary_function(gd, daemon, dtype):
    a = specials(dtype, 301)
    for op in functions(daemon, 1):
        for text, _ in calls(op):
            try:
                new = gd.evaluate(text, a=a)
            except gd.errors.BadDtype:
                continue
            for out in (np.empty_like(new), gd.empty_like(new), np.empty(602, new.dtype)[::2]):
                assert gd.evaluate(text, a=a, out=out) is out
                assert_same(out, new, text)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars_of_numpy_are_arrays_of_their_dtype(gd, daemon, dtype):
    a, k = specials(dtype, 101), specials(dtype, 9)[8]
    whole = np.full(a.shape, k)
    for text in ("a + k", "minimum(a, k)", "a == k", "hypot(k, a)", "where(a > k, a, k)"):
        try:
            want = gd.evaluate(text, a=a, k=whole)
        except gd.errors.BadDtype:
            continue
        assert_same(gd.evaluate(text, a=a, k=k), want, text)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_and_casts(gd, daemon, dtype):
    a = specials(dtype, 1009)
    if a.dtype.kind == "f":
        a = a[np.isfinite(a) & (np.abs(a) < 1e6)]
    names = ["sum", "min", "max", "mean", "count_nonzero"]  # the others are in test_lazy_reductions.py
    assert set(names) <= set(ELSEWHERE)
    for array in (a, gd.asarray(a).reshape(-1, 1), a[:12].reshape(3, 4).T, a[5]):
        for name in names:
            got, want = gd.evaluate(f"{name}(a)", a=array), getattr(np, name)(array)
            assert type(got) is type(np.asarray(want)[()]), name
            assert np.isclose(float(got), float(want), rtol=1e-12, atol=0) or (
                array.dtype == np.float32 and np.isclose(got, want, rtol=1e-5)), (name, got, want)
    small = a[np.abs(a.astype("f8")) < 100]
    for target in DTYPES:
        if small.dtype.kind == "f" and np.dtype(target).kind == "u":
            continue  # of negative numbers: a rule of the daemon's own
        assert_same(gd.evaluate(f"{np.dtype(target).name}(a)", a=small), small.astype(target))


@pytest.mark.parametrize("left", DTYPES)
def test_where_select_and_index(gd, left):
    a = specials(left, 61)[:, None]
    for right in DTYPES:
        b = specials(right, 61)[None, ::-1]
        assert_same(gd.evaluate("where(a == a, a, b)", a=a, b=b), np.where(a == a, a, b))
        chosen = gd.evaluate("select([a > b, a < b], [a, b])", a=a, b=b)
        with np.errstate(invalid="ignore"):
            conditions = [np.asarray(numpy_result(name, (a, b))) for name in ("greater", "less")]
            choices = [x.astype(chosen.dtype) for x in np.broadcast_arrays(a, b)]
            common = np.result_type(a, b)  # with 0, where neither is true: no number of bool's
            assert chosen.dtype == (np.int64 if common == np.bool_ else common)
            assert_same(chosen, np.select(conditions, choices, chosen.dtype.type(0)))
    rows, columns = np.indices((61, 7))
    assert_same(gd.evaluate("index(0) * 1000 + index(1)", out=np.empty((61, 7), "i8")),
                rows * 1000 + columns)
    assert_same(gd.evaluate("index(0) + a*0", a=np.zeros(61, left)),
                np.arange(61) + np.zeros(61, left) * 0)
