"""Every reduction of the catalogue against NumPy (SciPy): dtypes x shapes x axes x keepdims, ddof,
where, dtype and initial, empty axes, special values. Whole numbers, extrema and truths are compared
to the bit; floating results with the same reduction in 80-bit long double, which rounds less than
either. The catalogue is asked of the daemon, so that what is added to it is compared from then on."""

import itertools
import math
import zlib

import numpy as np
import pytest

import conftest
import wire
from catalogue import (DTYPES, ELSEWHERE, NUMPY_2, ask, assert_none, assert_same, scipy,
                       specials, sum_bound)

HERE = ("test_reduction_functions", "test_every_reduction")
EXACT = {"min", "max", "ptp", "argmin", "argmax", "any", "all", "count_nonzero", "nanmin", "nanmax"}
SHAPES = [(), (1,), (13,), (3, 4), (2, 5, 3), (1, 6), (4, 1, 3), (2, 3, 2, 2)]
EMPTY = [(0,), (0, 3), (3, 0), (2, 0, 3), (0, 0)]
EPS = np.finfo("f8").eps

pytestmark = [pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's reductions"),
              pytest.mark.filterwarnings("ignore::RuntimeWarning")]  # of nothing, and of NaN


@pytest.fixture(scope="module")
def reductions(daemon):
    with daemon.connect() as connection:
        ops = connection.call("server.ops")
    return {op["name"]: op["keywords"] for op in ops if ELSEWHERE.get(op["name"]) == HERE}


# -- what is asked ------------------------------------------------------------------------------

def written(value):
    """A keyword's value in the text."""
    return value if isinstance(value, str) else repr(value)


def text_of(name, keywords):
    return f"{name}({', '.join(['a', *[f'{k}={written(v)}' for k, v in keywords.items()]])})"


def axes_of(name, ndim):
    """All ways to name axes: one, several, negative, a list, none of them, all."""
    yield {}
    if ndim == 0:
        return
    yield {"axis": None}
    yield from ({"axis": axis} for axis in range(-ndim, ndim))
    if name in ("argmin", "argmax"):
        return
    yield {"axis": (0,)}
    yield {"axis": [ndim - 1]}
    most = 2 if name == "norm" else ndim
    for n in range(2, most + 1):
        yield from ({"axis": axes} for axes in itertools.combinations(range(ndim), n))
    if ndim > 1:
        yield {"axis": (-1, 0)}
    if name not in ("norm", "logsumexp"):
        yield {"axis": ()}


def values(dtype, shape, tame=True):
    size = math.prod(shape)
    rng = np.random.default_rng(zlib.crc32(f"{dtype}{shape}".encode()))
    if not tame:
        return rng.choice(specials(dtype, 300), size).reshape(shape)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return (rng.random(size) < 0.6).reshape(shape)
    if kind == "f":
        return rng.normal(0.5, 1.5, size).astype(dtype).reshape(shape)
    return rng.integers(0 if kind == "u" else -9, 10, size).astype(dtype).reshape(shape)


def masks(shape):
    """Where to look: everything, a mask of the shape, of its last axis, a number."""
    rng = np.random.default_rng(len(shape))
    yield {}, None
    yield {"where": "m"}, rng.random(shape) < 0.5
    if len(shape) > 1:
        yield {"where": "m"}, rng.random(shape[-1:]) < 0.5
    yield {"where": "False"}, None


def variants(name, keywords):
    """What else may be said, some at a time."""
    yield {}
    yield {"keepdims": True}
    if "dtype" in keywords:
        for dtype in ("float32", "float64", "int16", "int64", "bool"):
            if name not in ("var", "std", "nanvar", "nanstd") or dtype.startswith("float"):
                yield {"dtype": dtype}
    if "ddof" in keywords:
        yield from ({"ddof": ddof} for ddof in (1, 2, 0.5, 20, math.nan))
        yield {"ddof": 1, "keepdims": True}
    if "initial" in keywords:
        yield {"initial": 3}
        yield {"initial": 2.5 if "sum" in name or "prod" in name else 1, "keepdims": True}
    if name == "norm":
        yield from ({"ord": ord} for ord in ("inf", "-inf", 0, 1, 2, 3, -1, 0.5))
        yield {"ord": 1, "keepdims": True}


# -- what is right ------------------------------------------------------------------------------

def own(name):
    if name == "norm":
        return np.linalg.norm
    return scipy.special.logsumexp if name == "logsumexp" else getattr(np, name)


def numpy_keywords(keywords, mask):
    """As NumPy takes them."""
    names = {"inf": math.inf, "-inf": -math.inf, "True": True, "False": False, "m": mask}
    given = {k: names.get(v, v) if isinstance(v, str) else v for k, v in keywords.items()}
    if isinstance(given.get("axis"), list):
        given["axis"] = tuple(given["axis"])
    if "dtype" in given:
        given["dtype"] = np.dtype(given["dtype"])
    return given


def of_numpy(name, a, given):
    """NumPy's result, or its refusal; ours of what needs singular values. None: it is not known."""
    if name == "norm" and given.get("ord") == 2 and \
            (a.ndim if given.get("axis") is None else np.size(given["axis"])) == 2:
        return NotImplementedError("singular values")
    if name == "logsumexp" and a.ndim == 0:
        return None  # SciPy's has an axis then
    with np.errstate(all="ignore"):
        try:
            return np.asarray(own(name)(a, **given))
        except (ValueError, TypeError, OverflowError) as error:
            return error
        except IndexError:
            assert name == "logsumexp"  # SciPy's own, of several axes of nothing
            return None


def wide(name, a, given):
    """The same in long double, of what the array's elements are after `dtype`; and the size of what
    is added up, which rounding errors are parts of."""
    given = dict(given)
    dtype = given.pop("dtype", None)
    if dtype is not None and name not in ("var", "std", "nanvar", "nanstd"):
        a = a.astype(dtype)
    if a.dtype.kind != "f" and name.startswith("nan"):
        name = name[3:]  # which makes a difference where nothing is left to divide by
    narrow = a.dtype == np.float32
    a = a.astype("g")
    with np.errstate(all="ignore"):
        exact = np.asarray(own(name)(a, **given))
        if name in ("sum", "nansum", "mean", "nanmean"):
            return exact, np.asarray(own(name)(np.abs(a), **given))
        if name == "logsumexp":  # its exponentials are in the array's dtype
            return exact, np.maximum(np.abs(exact), 1) * (2 ** 26 if narrow else 1)
        return exact, np.abs(exact)


def check(name, a, given, got, want):
    """What is wrong with it, or None."""
    if want is None:
        return str(got) if isinstance(got, wire.Error) else None
    if isinstance(want, Exception):
        return None if isinstance(got, wire.Error) else f"NumPy says {want!r}, we {got!r}"
    if isinstance(got, wire.Error):
        return str(got)
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"is {got.dtype}{got.shape}, NumPy {want.dtype}{want.shape}"
    if name in EXACT or want.dtype.kind != "f":
        ok = (got == want) | ((got != got) & (want != want))
    else:
        exact, size = wide(name, a, given)
        with np.errstate(all="ignore"):
            slack = 64 * EPS * size + np.spacing(np.abs(exact.astype(want.dtype)))
            ok = np.abs(got.astype("g") - exact) <= slack
        ok |= (got == exact.astype(want.dtype)) | ((got != got) & (exact != exact))
    return None if ok.all() else f"is {got}, NumPy {want}"


def compare(w, name, a, requests):
    """requests: (keywords, mask). Those of one mask in one go."""
    failures = []
    for mask, some in itertools.groupby(requests, key=lambda request: id(request[1])):
        some = list(some)
        mask = some[0][1]
        texts = [text_of(name, keywords) for keywords, _ in some]
        arguments = {"a": a} if mask is None else {"a": a, "m": mask}
        for text, (keywords, _), got in zip(texts, some, ask(w, texts, arguments)):
            given = numpy_keywords(keywords, mask)
            wrong = check(name, a, given, got, of_numpy(name, a, given))
            if wrong:
                failures.append(f"{text} of {a.dtype}{a.shape}: {wrong}")
    return failures


# -- the tests ----------------------------------------------------------------------------------

def test_the_generator_knows_every_reduction(reductions):
    assert set(reductions) >= {*EXACT, "sum", "prod", "mean", "var", "std", "norm", "nansum",
                               "nanmean", "nanvar", "nanstd", "logsumexp"}
    for name, keywords in reductions.items():
        assert name == "logsumexp" or own(name), name
        assert "axis=None" in keywords and "keepdims=False" in keywords, name


def names_here(reductions):
    return [n for n in reductions if n != "logsumexp" or scipy]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.values
def test_every_reduction(w, reductions, dtype):
    """Over all axes of all shapes."""
    failures, n = [], 0
    for name in names_here(reductions):
        for shape in SHAPES:
            a = values(dtype, shape)
            requests = [({**axis, **more}, None) for axis in axes_of(name, len(shape))
                        for more in ({}, {"keepdims": True})]
            failures += compare(w, name, a, requests)
            n += len(requests)
    assert_none(failures, n)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.values
def test_everything_that_may_be_said(w, reductions, dtype):
    failures, n = [], 0
    for name in names_here(reductions):
        keywords = reductions[name]
        for shape in [(13,), (3, 4), (2, 5, 3)]:
            a = values(dtype, shape)
            some = [{}, {"axis": 0}, {"axis": -1}] + [{"axis": (0, 1)}] * (len(shape) > 1)
            if name in ("argmin", "argmax"):
                some = some[:3]
            requests = [({**axis, **more}, None) for axis in some
                        for more in variants(name, keywords)]
            failures += compare(w, name, a, requests)
            n += len(requests)
    assert_none(failures, n)


@pytest.mark.parametrize("dtype", ["?", "i2", "u4", "f4", "f8"])
@pytest.mark.values
def test_masks(w, reductions, dtype):
    failures, n = [], 0
    for name in names_here(reductions):
        keywords = reductions[name]
        if "where" not in keywords:
            continue
        for shape in [(13,), (3, 4), (2, 5, 3), (0, 3)]:
            a = values(dtype, shape)
            for where, mask in masks(shape):
                more = [{}]
                if "ddof" in keywords:
                    more += [{"ddof": 1}, {"ddof": 3, "keepdims": True}]
                if "initial" in keywords:
                    more += [{"initial": 2}, {"initial": 0, "keepdims": True}]
                requests = [({**axis, **also, **where}, mask) for also in more
                            for axis in ({}, {"axis": 0}, {"axis": -1})]
                failures += compare(w, name, a, requests)
                n += len(requests)
    assert_none(failures, n)


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f4", "f8"])
@pytest.mark.values
def test_empty_axes(w, reductions, dtype):
    """Identities where there are some, refusals where NumPy refuses, NaN of the mean of nothing."""
    failures, n = [], 0
    for name in names_here(reductions):
        for shape in EMPTY:
            a = values(dtype, shape)
            more = [{}, {"keepdims": True}]
            if "initial" in reductions[name]:
                more.append({"initial": 1})
            if name == "norm":
                more += [{"ord": 1}, {"ord": "inf"}, {"ord": "-inf"}]
            requests = [({**axis, **also}, None) for axis in axes_of(name, len(shape))
                        for also in more]
            failures += compare(w, name, a, requests)
            n += len(requests)
    assert_none(failures, n)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_nan_and_infinities(w, reductions, dtype):
    """In every place and together, and slices of nothing but NaN."""
    a = values(dtype, (6, 7))
    a[0, 1] = a[2, :] = a[5, 6] = np.nan
    a[1, 2], a[3, 3], a[3, 4], a[4, 5] = np.inf, -np.inf, np.inf, -np.inf
    b = np.array([[1, np.inf], [np.inf, np.inf], [-np.inf, np.inf], [np.nan, 2], [3, 2]], dtype)
    failures, n = [], 0
    for name in names_here(reductions):
        for x in (a, b, a[:2], a[2:3], b[:1]):
            some = [({**axis}, None) for axis in ({}, {"axis": 0}, {"axis": 1})]
            if "ddof" in reductions[name]:
                some += [({**axis, "ddof": 1}, None) for axis in ({}, {"axis": 0}, {"axis": 1})]
            failures += compare(w, name, np.ascontiguousarray(x), some)
            n += len(some)
    assert_none(failures, n)


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(w, reductions, dtype):
    """The largest and smallest numbers: what is exact stays so, integers wrap as NumPy's."""
    failures, n = [], 0
    for name in sorted(EXACT | {"sum", "prod", "nansum"}):
        if np.dtype(dtype).kind == "f" and name not in EXACT:
            continue
        a = values(dtype, (11, 13), tame=False)
        some = [({**axis}, None) for axis in ({}, {"axis": 0}, {"axis": 1})]
        with np.errstate(all="ignore"):
            failures += compare(w, name, a, some)
        n += len(some)
    assert_none(failures, n)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_sums_are_near_the_exact_ones(w, axis):
    """On values of very different sizes and on such as are all about the same."""
    rng = np.random.default_rng(5)
    for a in (rng.lognormal(0, 8, (60, 130)), rng.normal(1, 1e-3, (130, 60)),
              1e9 + rng.random((32, 250)), rng.random((250, 64), "f4"),
              rng.normal(0, 1, (64, 120)) * 10 ** rng.uniform(-6, 6, (64, 120))):
        cells = [a.ravel()] if axis is None else a if axis == 1 else a.T
        keywords = "" if axis is None else f", axis={axis}"
        got = np.atleast_1d(ask(w, [f"sum(a, dtype=float64{keywords})"], {"a": a})[0])
        for value, terms in zip(got, cells, strict=True):
            bound = sum_bound(terms, is_by_pairs=axis != 0)
            assert abs(float(value) - math.fsum(terms.tolist())) <= bound, (a.shape, a.dtype)


def test_variances_keep_their_digits_far_from_zero(w):
    """One pass, without the loss of sum(x * x) - n * mean**2: to what the mean's own rounding leaves,
    and on the processor, whose differences to the first element are exact here, to the rounding of
    their squares and sums."""
    rng = np.random.default_rng(6)
    a = 1e8 + rng.normal(0, 1, (160, 50))
    want = np.var(a.astype("g"), axis=0)
    got, = ask(w, ["var(a, axis=0)"], {"a": a})
    assert (np.abs(got - want) <= 1e-7 * want).all()
    if conftest.ENGINE == "cpu":
        squares = np.square(a - a[0]).sum(axis=0) / len(a)
        assert (np.abs(got - want) <= len(a) * EPS * squares).all()


def test_results_are_read_beside_their_sources(w):
    """By broadcasting, as NumPy's would be; and several of them, of several axes, together."""
    a = np.random.default_rng(7).normal(2, 3, (40, 50))
    texts = ["(a - mean(a, axis=0)) / std(a, axis=0)", "a - mean(a, axis=1, keepdims=True)",
             "a / sum(a, axis=(0, 1), keepdims=True)", "mean((a - mean(a, axis=0)) ** 2, axis=0)",
             "max(a, axis=0) - min(a, axis=0) + a[0]".replace(" + a[0]", ""),
             "sum(a, axis=0) + sum(a, axis=1)[0]".replace("[0]", "").replace("axis=1", "axis=0"),
             "norm(a - mean(a), axis=1, keepdims=True) * a"]
    with np.errstate(all="ignore"):
        want = [(a - a.mean(0)) / a.std(0), a - a.mean(1, keepdims=True), a / a.sum(),
                a.var(0), np.ptp(a, axis=0), 2 * a.sum(0),
                np.linalg.norm(a - a.mean(), axis=1, keepdims=True) * a]
    for text, x, y in zip(texts, ask(w, texts, {"a": a}), want):
        assert x.shape == np.shape(y), text
        assert np.allclose(x, y, rtol=1e-12, atol=1e-13), text


def test_logsumexp_with_factors(w):
    if not scipy:
        pytest.skip("SciPy is not there")
    a = values("f8", (5, 6)) * 300
    b = np.random.default_rng(8).integers(-1, 3, (5, 6)).astype("f8")
    texts = ["logsumexp(a, b=b)", "logsumexp(a, axis=0, b=b)", "logsumexp(a, 1, abs(b), True)",
             "logsumexp(a, b=2)"]
    want = [scipy.special.logsumexp(a, b=b), scipy.special.logsumexp(a, axis=0, b=b),
            scipy.special.logsumexp(a, axis=1, b=np.abs(b), keepdims=True),
            scipy.special.logsumexp(a, b=2)]
    for text, x, y in zip(texts, ask(w, texts, {"a": a, "b": b}), want):
        assert x.shape == np.shape(y), text
        assert np.allclose(x, y, rtol=1e-13, equal_nan=True), (text, x, y)


def test_positions_and_names_are_numpys(w):
    a = values("f8", (3, 4))
    m = a > 0
    texts = ["sum(a, 0, float32)", "sum(a, (0, 1), None, None, True)", "max(a, 1, None, True)",
             "std(a, 0, None, None, 1)", "var(a, 0, None, None, 1, True)", "mean(a, 0, np.float32)",
             "sum(a, 1, None, None, False, 2, m)", "norm(a, 1, 0)", "any(a > 1, 0)",
             "mean(a, axis=[0, 1])", "np.sum(a, axis=(1))"]
    want = [a.sum(0, dtype="f4"), a.sum(keepdims=True), a.max(1, keepdims=True), a.std(0, ddof=1),
            a.var(0, ddof=1, keepdims=True), a.mean(0, dtype="f4"),
            np.sum(a, 1, initial=2, where=m), np.linalg.norm(a, 1, 0), (a > 1).any(0), a.mean(),
            a.sum(1)]
    for text, x, y in zip(texts, ask(w, texts, {"a": a, "m": m}), want):
        assert not isinstance(x, wire.Error), f"{text}: {x}"
        assert (x.dtype, x.shape) == (np.asarray(y).dtype, np.shape(y)), text
        assert np.allclose(x, y, rtol=1e-6), text


REFUSED = [
    ("sum(a, axis=2)", "bad-shape", "axis 2 is out of range for shape (3, 4)", "-2 to 1", "2"),
    ("sum(a, axis=(0, -3))", "bad-shape", "axis -3 is out of range", "-2 to 1", "-3"),
    ("sum(a, axis=(0, -2))", "bad-shape", "axis 0 is given twice", "each axis once", "0 twice"),
    ("sum(sum(a), axis=1)", "bad-shape", "out of range for shape ()", "no axis", "1"),
    ("min(e, axis=0)", "bad-shape", "no identity", "at least one element", "(0, 3)"),
    ("argmax(e)", "bad-shape", "no identity", "at least one element", "(0, 3)"),
    ("min(a, where=m)", "bad-expression", "write 'initial' too", "initial=...", ""),
    ("sum(a, where=a)", "bad-dtype", "'where' must be bool, not float64", "bool", "float64"),
    ("sum(a, where=big)", "bad-shape", "does not broadcast to (3, 4)", "(3, 4)", "(2, 3, 4)"),
    ("sum(a, axis=0.5)", "bad-expression", "'axis' must be an integer", "an integer", "another"),
    ("sum(a, axis=a)", "bad-expression", "'axis' must be an integer", "an integer", "an array"),
    ("argmin(a, axis=(0, 1))", "bad-expression", "must be one integer", "an integer", "a tuple"),
    ("sum(a, axs=0)", "unknown-name", "did you mean 'axis'?", "axis=None", "axs"),
    ("sum(a, dtype=flot32)", "unknown-name", "did you mean 'float32'?", "float32", "flot32"),
    ("sum(a, dtype=2)", "bad-expression", "a dtype's name expected", "dtype", "2"),
    ("sum(a, out=b)", "bad-expression", "'out' can only be None here", "None", ""),
    ("sum(a, keepdims=2.5)", "bad-expression", "'keepdims' must be True or False", "True", ""),
    ("mean(a, 0, None, None, False, m)", "bad-arity", "mean takes 1 argument", "axis=None", "6"),
    ("sum(a, axis=0, axis=1)", "bad-expression", "'axis' is given twice", "", "axis"),
    ("std(a, dtype=int32)", "bad-dtype", "is computed in floats", "float32 or float64", "int32"),
    ("std(a, ddof=a)", "bad-expression", "'ddof' must be a number", "a number", "an array"),
    ("ptp(m)", "bad-dtype", "is not defined for bools", "numbers", "bool"),
    ("sum(a, initial=a)", "bad-shape", "'initial' must be one number", "a number", "an array"),
    ("max(int8(a), initial=300)", "bad-expression", "out of bounds for int8", "-128 to 127", "300"),
    ("norm(a, 2)", "bad-expression", "need singular values", "None, 1, -1, inf", ""),
    ("norm(a, 3)", "bad-expression", "no norm of this order", "None, 1, -1, inf", ""),
    ("norm(big, 1)", "bad-expression", "needs one axis (vectors) or two", "axis=...", ""),
    ("norm(big, axis=(0, 1, 2))", "bad-expression", "more than two axes", "two axes", ""),
    ("sum(a, axis=(0, 1", "bad-expression", "not closed", "", ""),
    ("sum(a, axis=())(0)", "bad-expression", "an operator expected", "", ""),
]


@pytest.mark.parametrize("text, code, message, expected, found", REFUSED)
def test_refusals_say_what_is_wrong_and_what_to_write(w, text, code, message, expected, found):
    arguments = {"a": np.zeros((3, 4)), "e": np.zeros((0, 3)), "m": np.zeros((3, 4), "?"),
                 "big": np.zeros((2, 3, 4), "?"), "b": np.zeros(3)}
    error = ask(w, [text], arguments)[0]
    assert isinstance(error, wire.Error), text
    assert error.code == code and message in str(error), str(error)
    assert expected in error.expected and found in error.found, (error.expected, error.found)


def test_one_result_of_many_reductions_in_one_request(w):
    """Those of one array share its passes; all are right beside each other."""
    a = values("f4", (30, 40))
    texts = ["mean(a, axis=0)", "std(a, axis=0)", "min(a, axis=0)", "max(a, axis=0)",
             "sum(a, axis=1)", "argmax(a, axis=1)", "mean(a)", "count_nonzero(a > 0, axis=0)"]
    want = [a.mean(0), a.std(0), a.min(0), a.max(0), a.sum(1), a.argmax(1), a.mean(),
            (a > 0).sum(0)]
    for text, x, y in zip(texts, ask(w, texts, {"a": a}), want):
        if np.asarray(y).dtype.kind == "f" and "m" not in text[1:3]:
            assert np.allclose(x, y, rtol=1e-5, atol=1e-6), text
        assert x.dtype == np.asarray(y).dtype and np.allclose(x, y, rtol=1e-5, atol=1e-6), text
    assert_same(ask(w, ["max(a, axis=0)"], {"a": a})[0], a.max(0))
