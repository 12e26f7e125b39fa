"""Quantiles against NumPy, to the bit: every method x dtypes x shapes x axes x keepdims x q, NaN,
infinities and empty arrays; arrays of many grains in small pools, by rounds, and from every kind of
place. NumPy's differences of signed integers overflow: there exact arithmetic is what is right."""

import itertools
import math
import zlib

import numpy as np
import pytest

import conftest
import wire
from catalogue import DTYPES, NUMPY_2, assert_none
from test_reductions import Source, run

METHODS = ("linear lower higher nearest midpoint inverted_cdf averaged_inverted_cdf "
           "closest_observation interpolated_inverted_cdf hazen weibull median_unbiased "
           "normal_unbiased").split()
NAMES = "quantile percentile nanquantile nanpercentile".split()
SHAPES = [(), (1,), (2,), (13,), (100,), (3, 4), (2, 5, 3), (1, 6), (4, 1, 3), (90, 3),
          (2, 3, 2, 2)]
EMPTY = [(0,), (0, 3), (3, 0), (2, 0, 3), (0, 0)]
QS = [0.5, 0.25, 0.1, 0.9, 0.0, 1.0, 0.999, 1 / 3, 0, 1, [0.5], [0.75, 0.25, 0.5], [0, 1],
      [0.1, 0, 0.1, 1.0], [0.01, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.99]]

pytestmark = [pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's quantiles"),
              pytest.mark.filterwarnings("ignore::RuntimeWarning")]


@pytest.fixture(scope="module")
def daemon():
    """With room for many quantiles of 64-bit numbers along an axis."""
    d = conftest.Daemon(pool="64M")
    yield d
    d.stop()


def values(dtype, shape, seed=0):
    """Numbers of which many are alike, some NaN and infinite ones among floats."""
    size = math.prod(shape)
    rng = np.random.default_rng(zlib.crc32(f"{dtype}{shape}{seed}".encode()))
    kind = np.dtype(dtype).kind
    if kind != "f":
        low, high = {"b": (0, 2), "u": (0, 100), "i": (-60, 60)}[kind]
        return rng.integers(low, high, size).astype(dtype).reshape(shape)
    a = rng.normal(0, 10.0 ** rng.integers(-3, 4), size)
    if seed % 3 == 1:
        a = np.round(a)
    if seed % 3 == 2:
        a = np.where(rng.random(size) < 0.15, rng.choice([np.nan, np.inf, -np.inf, -0.0], size), a)
    return a.astype(dtype).reshape(shape)


def axes_of(ndim):
    yield None
    yield from range(-ndim, ndim)
    for n in range(2, ndim + 1):
        yield from itertools.combinations(range(ndim), n)
    if ndim > 0:
        yield ()


def text_of(name, q, keywords):
    scaled = [100 * v for v in q] if "percentile" in name and isinstance(q, list) else q
    if "percentile" in name and not isinstance(q, list):
        scaled = 100 * q
    first = ["a"] if name.endswith("median") else ["a", repr(scaled)]
    return f"{name}({', '.join(first + [f'{k}={v}' for k, v in keywords.items()])})", scaled


def of_slices(name, a, q, method="linear", axis=None, keepdims=False):
    """nan* of each slice by itself: of several NumPy's own has the first one's dtype."""
    axes = tuple(range(a.ndim)) if axis is None else tuple(np.atleast_1d(axis) % a.ndim)
    kept = [i for i in range(a.ndim) if i not in axes]
    shape = tuple(a.shape[i] for i in kept)
    rows = np.transpose(a, [*kept, *axes]).reshape(math.prod(shape), -1)
    own = getattr(np, name[3:])
    dtype = own(np.ones(1, a.dtype), q, method=method).dtype
    results = np.full((*np.shape(q), len(rows)), np.nan, dtype)
    counts = (rows == rows).sum(axis=1)
    for n in np.unique(counts[counts > 0]):  # those that have as many numbers at once
        some = rows[counts == n]
        results[..., counts == n] = own(some[some == some].reshape(-1, n), q, axis=1, method=method)
    result = results.reshape(np.shape(q) + shape)
    return np.expand_dims(result, tuple(np.ndim(q) + i for i in axes)) if keepdims else result


def of_numpy(name, a, q, keywords):
    given = dict(keywords)
    try:
        with np.errstate(all="ignore"):
            if name.startswith("nan") and a.dtype.kind in "iu" and a.size > 1000:
                name = name[3:]  # the same, of all slices at once
            if name.endswith("median"):
                return np.asarray(getattr(np, name)(a, **given))
            if name.startswith("nan") and a.dtype.kind == "f" and a.size and a.ndim and \
                    given.get("axis") != ():
                return of_slices(name, a, q, **given)
            return np.asarray(getattr(np, name)(a, q, **given))
    except (TypeError, ValueError, IndexError) as error:
        return error


def check(text, a, got, want):
    if isinstance(want, Exception):
        return None if isinstance(got, wire.Error) else f"{text}: NumPy says {want!r}, we {got!r}"
    if isinstance(got, wire.Error):
        return f"{text} of {a.dtype}{a.shape}: {got}"
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{text} of {a.dtype}{a.shape} is {got.dtype}{got.shape}, " \
               f"NumPy {want.dtype}{want.shape}"
    ok = (got == want) | ((got != got) & (want != want))
    if ok.all():
        return None
    return f"{text} of {a.dtype}{a.shape} is {got[~ok][:4]}, NumPy {want[~ok][:4]}"


def compare(w, a, requests):
    """requests: (name, q, keywords). What is wrong; all are sent before the first is waited for."""
    sent = []
    for name, q, keywords in requests:
        text, scaled = text_of(name, q, keywords)
        sent.append((w.send("job.run", args={"a": wire.argument(a)}, outputs=[{"expr": text}]),
                     text, of_numpy(name, a, scaled, keywords)))
    failures = []
    for ident, text, want in sent:
        try:
            got = wire.result_array(w.reply(ident)["outputs"][0])
        except wire.Error as error:
            got = error
        failures.append(check(text, a, got, want))
    return [failure for failure in failures if failure]


def drawn(rng, name, ndim):
    """One request's keywords and q."""
    keywords = {}
    axes = list(axes_of(ndim))
    axis = axes[rng.integers(len(axes))]
    if axis is not None or rng.random() < 0.5:
        keywords["axis"] = axis
    if rng.random() < 0.4:
        keywords["keepdims"] = bool(rng.integers(2))
    if not name.endswith("median") and rng.random() < 0.8:
        keywords["method"] = METHODS[rng.integers(len(METHODS))]
    return name, QS[rng.integers(len(QS))], keywords


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.values
def test_every_function(w, dtype):
    rng = np.random.default_rng(zlib.crc32(dtype.encode()))
    failures, n = [], 0
    for shape, seed in itertools.product(SHAPES, range(3)):
        some = [drawn(rng, name, len(shape)) for name in NAMES + ["median", "nanmedian"]]
        failures += compare(w, values(dtype, shape, seed), some)
        n += len(some)
    assert_none(failures, n)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", conftest.some(["f4", "f8", "i4", "u8"], 2))
@pytest.mark.values
def test_every_method_at_every_q(w, dtype, method):
    failures, n = [], 0
    for seed, q in conftest.some(list(enumerate(QS)), 2):
        a = values(dtype, (9, 8), seed)
        some = [(name, q, {"method": method, **axis}) for name in ("quantile", "nanquantile")
                for axis in ({}, {"axis": 0}, {"axis": 1, "keepdims": True})]
        failures += compare(w, a, some)
        n += len(some)
    assert_none(failures, n)


def with_gaps(rng, dtype, shape):
    """Slices with every share of NaN, some with nothing else, others without any."""
    a = np.round(rng.normal(0, 5, shape)) if rng.integers(2) else rng.normal(0, 5, shape)
    share = rng.choice([0, 0.05, 0.5, 0.95, 1], shape[:1] + (1,) * (len(shape) - 1))
    is_gap = rng.random(shape) < share
    a[rng.random(shape) < 0.02] = -np.inf
    a[rng.random(shape) < 0.1] = -0.0
    a = np.where(is_gap, rng.choice([np.nan, -np.nan], shape), a).astype(dtype)
    return a if rng.integers(2) else np.ascontiguousarray(np.moveaxis(a, 0, -1))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.values
def test_places_follow_from_each_slices_own_count(w, dtype, method):
    """At the ends, in the middle and at places that rounding decides."""
    failures, n = [], 0
    rng = np.random.default_rng(zlib.crc32(f"{dtype}{method}".encode()))
    for shape in conftest.some([(40, 11), (6, 64), (3, 4, 30), (2, 1000), (90, 50)], 2):
        a = with_gaps(rng, dtype, shape)
        qs = [0.0, 1.0, 0.5, 1 / 3, float(rng.random()), [0.1, 0.5, float(rng.random())]]
        some = [(name, q, {"method": method, "axis": axis, "keepdims": bool(rng.integers(2))})
                for name in ("nanquantile", "nanpercentile") for q in qs for axis in (0, -1)]
        some += [("nanmedian", 0.5, {"axis": axis}) for axis in axes_of(a.ndim)]
        failures += compare(w, a, some)
        n += len(some)
    assert_none(failures, n)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1"])
@pytest.mark.values
def test_of_few_elements(w, folder, dtype):
    """Slices so short that the elements of chunks are found one after the other, with some alike."""
    failures, n = [], 0
    for k, seed in itertools.product(range(1, 10), range(3)):
        a = np.ascontiguousarray(values(dtype, (k, 700), seed).T[:, :k])
        some = [(name, q, {"axis": axis, "method": METHODS[(k + seed) % len(METHODS)]}
                 if "median" not in name else {"axis": axis})
                for name in ("quantile", "nanquantile", "median", "nanmedian")
                for q in (0.5, [0.1, 0.3, 0.5, 0.9], [0, 1])
                for axis in (1, -1) if "median" not in name or q == 0.5]
        failures += compare(w, a, some)
        source = Source(w, a, "chunks", folder)
        for name, q, keywords in some[::2]:
            text, scaled = text_of(name, q, keywords)
            (got,), _ = run(w, [text], source)
            failures += filter(None, [check(text, a, got, of_numpy(name, a, scaled, keywords))])
        source.close()
        n += len(some) + len(some[::2])
    assert_none(failures, n)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "?"])
def test_of_nothing(w, dtype):
    failures, n = [], 0
    for shape in EMPTY:
        some = [(name, q, {"axis": axis, "method": "lower"} if "median" not in name
                 else {"axis": axis}) for axis in [None, *range(len(shape))]
                for name in NAMES + ["median", "nanmedian"] for q in (0.5, [0.5, 0.1])]
        failures += compare(w, np.zeros(shape, dtype), some)
        n += len(some)
    assert_none(failures, n)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_nan_and_infinities(w, dtype):
    """In every place and together, slices of nothing but NaN, the largest and smallest numbers."""
    big = np.finfo(dtype)
    a = np.array([[1, np.inf, 2, -np.inf], [np.inf] * 4, [-np.inf] * 4, [np.nan] * 4,
                  [np.nan, 1, 2, 3], [np.nan, np.inf, -np.inf, 0.0], [-0.0, 0.0, -0.0, 0.0],
                  [big.max, big.max, -big.max, 1], [big.tiny / 4, -big.tiny / 8, 0, big.tiny]],
                 dtype)
    a = a[:, :3] if dtype == "f8" else a
    some = [(name, q, axis) for name in NAMES + ["median"] for q in (0.5, 0.2, 1.0, [0.3, 0.9])
            for axis in ({}, {"axis": 0}, {"axis": 1})]
    some += [(name, 0.4, {"axis": 1, "method": m}) for name in NAMES for m in METHODS]
    assert_none(compare(w, a, some), len(some))


def exact(ordered, q):
    place = (len(ordered) - 1) * q
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_the_ends_of_integers(w, dtype):
    """Keys of every bit, and differences that the dtype itself does not hold."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(3)
    a = rng.integers(info.min, info.max, 999, dtype, endpoint=True)
    a[:6] = info.min, info.max, info.min, info.max, info.min + 1, info.max - 1
    ordered = np.sort(a)
    for i, q in ((0, 0.0), (998, 1.0), (499, 0.5), (400, 400 / 998), (997, 997 / 998)):
        got = w.compute(f"quantile(a, {q!r}, method=nearest)", a=a)
        assert got.dtype == a.dtype and got == ordered[i]
    pair = np.array([info.min, info.max], dtype)
    for q in (0.25, 0.5, 0.75, 0.9):
        want = exact([int(v) for v in pair], q)
        assert math.isclose(w.compute(f"quantile(a, {q})", a=pair), want, rel_tol=1e-15)


def test_inside_expressions(w):
    rng = np.random.default_rng(4)
    a = rng.normal(size=(41, 30)).astype("f4")
    middle = np.median(a)
    got = w.compute("median(abs(a - median(a)))", a=a)
    assert got == np.median(np.abs(a - middle))
    got = w.compute("where(a > quantile(a, 0.9, axis=0), 1, a)", a=a)
    assert np.array_equal(got, np.where(a > np.quantile(a, 0.9, axis=0), 1, a))
    got = w.compute("(a - median(a, axis=1, keepdims=True)) / mean(a)", a=a)
    assert np.allclose(got, (a - np.median(a, axis=1, keepdims=True)) / a.mean(), rtol=1e-5)
    got = w.compute("sum(quantile(a, [0.25, 0.5, 0.75], axis=1), axis=0)", a=a)
    assert np.allclose(got, np.quantile(a, [0.25, 0.5, 0.75], axis=1).sum(axis=0))
    got = w.compute("b + quantile(a, [0.25, 0.75], axis=1, keepdims=True)", a=a, b=a[0])
    assert np.array_equal(got, a[0] + np.quantile(a, [0.25, 0.75], axis=1, keepdims=True))


# -- many grains ----------------------------------------------------------------------------------

LARGE = [["median(a)", "quantile(a, 0.9)"], ["quantile(a, [0.25, 0.5, 0.75], axis=0)"],
         ["median(a, axis=1)"], ["nanmedian(a)"], ["nanquantile(a, 0.3, axis=-1, keepdims=True)"]]
CPU = [("64M", 2, "region"), ("64M", 3, "chunks"), ("16M", 1, "file"), ("8M", 2, "provider"),
       ("3M", 4, "file"), ("2M", 1, "region")]
CUDA = [("16M", 1, "file"), ("8M", 2, "provider")]
CUDA = conftest.some(CUDA, 2, first=1)


def large(dtype, shape):
    rng = np.random.default_rng(8)
    if np.dtype(dtype).kind == "i":
        return rng.integers(-30_000, 30_000, shape).astype(dtype)
    a = rng.normal(size=shape).astype(dtype)
    a[1, 5:20] = np.nan
    a[2] = np.round(a[2])
    return a


def numpy_results(a):
    names = {name: getattr(np, name) for name in NAMES + ["median", "nanmedian"]}
    with np.errstate(all="ignore"):
        return [np.asarray(eval(text, {"__builtins__": {}}, {**names, "a": a}))
                for texts in LARGE for text in texts]


MATRICES = [("f4", (61, 12_007)), ("f8", (300, 1_201)), ("i4", (12_007, 40))]


@pytest.mark.values
@pytest.mark.parametrize("engine, dtype, shape", [
    *[("cpu", *matrix) for matrix in MATRICES],
    *[("cuda", *matrix) for matrix in conftest.some(MATRICES, 3)]])
def test_large_arrays_in_small_pools(start, folder, engine, dtype, shape):
    if engine == "cpu" and conftest.ENGINE == "cuda":
        pytest.skip("about the CPU engine")
    a = large(dtype, shape if engine == "cpu" else (shape[0], shape[1] // 4))
    wants = numpy_results(a)
    # Under sanitizers another pool and another place for each of the CPU's matrices.
    nth = [matrix[0] for matrix in MATRICES].index(dtype)
    for pool, threads, kind in (conftest.some(CPU, 6, first=2 * nth + 1) if engine == "cpu" else CUDA):
        with start(pool=pool, threads=threads, engine=engine).connect() as w:
            source = Source(w, a, kind, folder)
            got = [array for some in LARGE for array in run(w, some, source)[0]]
            source.close()
        texts = itertools.chain.from_iterable(LARGE)
        for text, array, want in zip(texts, got, wants, strict=True):
            assert check(text, a, array, want) is None, (pool, threads, kind, text)


@pytest.mark.whole
@pytest.mark.parametrize("engine", ["cpu", "cuda"])
def test_counts_that_do_not_fit_the_pool_go_in_rounds(start, folder, engine):
    if engine == "cpu" and conftest.ENGINE == "cuda":
        pytest.skip("about the CPU engine")
    a = large("f4", (70 if engine == "cpu" else 9, 30_011))
    with start(pool="8M", engine=engine).connect() as w:
        source = Source(w, a, "chunks", folder)
        plan = w.call("job.plan", fds=source.fds, args={"a": source.described},
                      outputs=[{"expr": "nanmedian(a, axis=0)"}])
        assert plan["rounds"] > 1
        (got,), _ = run(w, ["nanmedian(a, axis=0)"], source)
        source.close()
    assert check("nanmedian(a, axis=0)", a, got, np.nanmedian(a, axis=0)) is None


@pytest.mark.values
@pytest.mark.parametrize("engine", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype, shape, axis", [("f4", (9, 300_011), 0), ("f8", (9_011, 4, 6), 1),
                                                ("u2", (3, 5, 20_011), (0, 1))])
def test_short_slices_are_read_once_in_rounds(start, folder, engine, dtype, shape, axis):
    if engine == "cpu" and conftest.ENGINE == "cuda":
        pytest.skip("about the CPU engine")
    if engine == "cuda":
        shape = tuple(1 + n // 8 if n > 8000 else n for n in shape)
    rng = np.random.default_rng(9)
    a = rng.integers(0, 999, shape).astype(dtype)
    if a.dtype.kind == "f":
        a.flat[rng.integers(0, a.size, 9)] = np.nan
    pool = "8M" if engine == "cuda" else "2M"
    texts = [f"{nan}{name}" for nan in ("", "nan") for name in
             (f"median(a, axis={axis})", f"quantile(a, [0.1, 0.7, 0.9], axis={axis}, method=hazen)")]
    with start(pool=pool, threads=2, engine=engine).connect() as w:
        for kind, where in (("file", 0), ("region", 1), ("provider", 0), ("file", 2), ("region", 3)):
            source = Source(w, a, kind, folder)
            plan = w.call("job.plan", fds=source.fds, args={"a": source.described},
                          outputs=[{"expr": texts[where]}])
            assert plan["read_bytes"] == a.nbytes
            assert plan["rounds"] > 1 or a.ndim > 2 or engine == "cuda"
            (got,), _ = run(w, [texts[where]], source)
            source.close()
            given = {"method": "hazen"} if where % 2 else {}
            name = texts[where].partition("(")[0]
            want = of_numpy(name, a, [0.1, 0.7, 0.9], {"axis": axis, **given})
            assert check(texts[where], a, got, want) is None, kind


# -- what is refused ------------------------------------------------------------------------------

@pytest.mark.parametrize("text, code, expected, found", [
    ("quantile(a, 1.5)", "bad-expression", "0 to 1", "1.5"),
    ("percentile(a, [50, -1])", "bad-expression", "0 to 100", "-1"),
    ("quantile(a, 0.5, method=median)", "bad-expression", "linear lower", "'median'"),
    ("quantile(a, a)", "bad-expression", "a number, or a list of numbers", "an array"),
    ("quantile(a > 0, 0.5)", "bad-dtype", "numbers", "bool"),
    ("median(a, axis=3)", "bad-shape", "-2 to 1", "3"),
    ("quantile(a, [.1, .2, .3, .4, .5, .6, .7, .8, .9])", "limit-exceeded", "1 to 8", "9"),
])
def test_what_is_no_quantile_is_refused(w, text, code, expected, found):
    with pytest.raises(wire.Error) as error:
        w.compute(text, a=np.ones((3, 4)))
    assert error.value.code == code and found in error.value.found
    assert error.value.expected.startswith(expected)
