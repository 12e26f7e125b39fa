"""Counts, lookups and scans against NumPy: bincount, histogram, histogram_bin_edges, searchsorted,
digitize, take, choice and permutation of arrays, cumsum and cumprod. Counts and edges are compared
to the bit; sums of float weights and running sums of floats with a bound on their rounding."""

import itertools

import numpy as np
import pytest

import wire
from catalogue import DTYPES, NUMPY_2

pytestmark = [pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes"),
              pytest.mark.filterwarnings("ignore::RuntimeWarning")]
NUMBERS = DTYPES[1:]
FLOATS = ["f4", "f8"]


def sample(dtype, shape, seed=0):
    """Few different values, so that many lie on edges."""
    rng = np.random.default_rng([seed, len(dtype), ord(dtype[0])])
    if dtype == "?":
        return rng.random(shape) < 0.4
    if dtype in FLOATS:
        return (rng.integers(-40, 41, shape) / 10).astype(dtype)
    return rng.integers(0 if dtype[0] == "u" else -20, 21, shape).astype(dtype)


def same(got, expected, what):
    expected = np.asarray(expected)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), what
    assert got.tobytes() == expected.tobytes() or np.array_equal(got, expected, equal_nan=True), \
        (what, got, expected)


def fails(connection, code, argument, expr, **args):
    with pytest.raises(wire.Error) as caught:
        connection.compute(expr, **args)
    assert caught.value.code == code, (expr, caught.value.message)
    assert caught.value.argument == argument and caught.value.expected and caught.value.message
    return caught.value


# -- bincount -------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES[:-2])
@pytest.mark.parametrize("n", [0, 1, 2, 1000, 5001])
@pytest.mark.values
def test_bincount_of_every_integer(w, dtype, n):
    x = np.abs(sample(dtype, n).astype("i8")).astype(dtype)
    same(w.compute("bincount(x, length=25)", x=x), np.bincount(x.astype("i8"), minlength=25), dtype)
    weights = sample("i4", n)
    same(w.compute("bincount(x, w, length=25)", x=x, w=weights),
         np.bincount(x.astype("i8"), weights, 25), dtype)
    same(w.compute("bincount(x*2 + 1, weights=w*0.5, length=60)", x=x.astype("i8"), w=weights),
         np.bincount(x.astype("i8") * 2 + 1, weights * 0.5, 60), dtype)


def test_bincount_refuses_what_numpy_refuses(w):
    x = np.array([3, -1, 2, 9, 9])
    error = fails(w, "bad-argument", "outputs[0]", "bincount(x, length=9)", x=x)
    assert error.found.startswith("3 values outside") and error.expected == "0 to 8", error.found
    assert "column 1: bincount" in error.message
    fails(w, "bad-argument", "outputs[0]", "bincount(x, length=0)", x=x)
    assert w.compute("bincount(x, length=0)", x=x[:0]).shape == (0,)
    fails(w, "bad-dtype", "outputs[0]", "bincount(x, length=9)", x=x / 2)
    fails(w, "bad-shape", "outputs[0]", "bincount(x, length=9)", x=x.reshape(1, 5))
    fails(w, "bad-shape", "outputs[0]", "bincount(x, w, length=9)", x=x, w=x[1:])
    fails(w, "bad-expression", "outputs[0]", "bincount(x, length=-1)", x=x)
    fails(w, "bad-arity", "outputs[0]", "bincount(x)", x=x)


# -- histogram ------------------------------------------------------------------------------------

RANGES = [None, (0, 1), (-2, 2), (-2.0, 2.0), (0.3, 0.9), (1, 1), (-1, 1e6), (0, 7.1), (1e-310, 3)]


def compare_histogram(w, a, bins=None, limits=None, weights=None, density=False, edges=None):
    keywords = {"bins": 10 if bins is None else bins}
    words = f"bins={bins}" if edges is None and bins is not None else ""
    args = {"a": a}
    if edges is not None:
        keywords["bins"], words, args["e"] = edges, "bins=e", edges
    if limits is not None:
        keywords["range"] = limits
        words += f"{', ' if words else ''}range={limits!r}"
    text = f"a, {words}" if words else "a"
    what = (text, a.dtype, a.shape, density)
    count_text = text
    if weights is not None:
        keywords["weights"], args["w"] = weights, weights
        count_text += ", weights=w"
    if density:
        count_text += ", density=True"
    counts, expected_edges = np.histogram(a, density=density, **keywords)
    edge_args = {k: v for k, v in args.items() if k != "w"}
    same(w.compute(f"histogram({text})[1]", **edge_args), expected_edges, what)
    same(w.compute(f"histogram_bin_edges({text})", **edge_args), expected_edges, what)
    got = w.compute(f"histogram({count_text})[0]", **args)
    if (weights is None or weights.dtype.kind != "f") and not density:
        same(got, counts, what)
        return
    assert (got.dtype, got.shape) == (counts.dtype, counts.shape), what
    is_narrow = counts.dtype == "f4" or (weights is not None and weights.dtype == "f4")
    scale = 1e-5 if is_narrow else 1e-12
    np.testing.assert_allclose(got, counts, rtol=scale, atol=scale, err_msg=str(what))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("limits", RANGES, ids=str)
@pytest.mark.values
def test_histogram_of_equal_bins(w, dtype, limits):
    for n, bins in itertools.product([0, 1, 7, 5000], [None, 1, 3, 7, 64]):
        a = sample(dtype, n, seed=n)
        compare_histogram(w, a, bins, limits)
    compare_histogram(w, sample(dtype, (3, 5, 7)), 9, limits)
    compare_histogram(w, sample(dtype, ()), 4, limits)


@pytest.mark.parametrize("seed", range(12))
def test_histogram_finds_the_bin_that_numpy_corrects_to(w, seed):
    """Limits of any size, and elements on the edges and next to them."""
    rng = np.random.default_rng(seed)
    for dtype in FLOATS:
        middle, width = rng.normal() * 10.0 ** rng.integers(-3, 6), 10.0 ** rng.integers(-2, 4)
        bins = int(rng.integers(1, 200))
        limits = (float(middle), float(middle + width))
        try:
            edges = np.histogram_bin_edges(np.zeros(1, dtype), bins, limits)
        except ValueError:  # too many bins for so near limits
            fails(w, "bad-argument", "outputs[0]", f"histogram(a, {bins}, {limits})[0]",
                  a=np.zeros(1, dtype))
            continue
        a = np.concatenate([edges, np.nextafter(edges, -np.inf),
                            np.nextafter(edges, np.inf), rng.uniform(*limits, 500)]).astype(dtype)
        compare_histogram(w, a, bins, limits)
        compare_histogram(w, a, bins)
        compare_histogram(w, (a * 2).astype("i8"), bins)


def test_histogram_of_infinite_edges(w):
    """As NumPy refuses them: the range overflows, or what its limits become in float32."""
    wide, a = (-1e308, 1e308), np.ones(3)
    for end in "01":
        fails(w, "bad-argument", "outputs[0]", f"histogram(a, range={wide})[{end}]", a=a)
        fails(w, "bad-argument", "outputs[0]", f"histogram(a, range=(0, 1e300))[{end}]",
              a=a.astype("f4"))
    fails(w, "bad-argument", "outputs[0]", "histogram(a)[0]", a=np.array(wide))
    compare_histogram(w, a, 9, (-8e307, 8e307))
    compare_histogram(w, a.astype("f4"), 9, (-3e38, 3e38))


def test_histogram_of_large_integers(w):
    for dtype in ("i8", "u8"):
        high = np.iinfo(dtype).max
        a = np.array([0, 1, 2 ** 53, 2 ** 53 + 1, 2 ** 53 + 2, high // 2, high - 1, high], dtype)
        for bins in (1, 5, 10):
            compare_histogram(w, a, bins)
            compare_histogram(w, a, bins, (0, 2 ** 53))
            compare_histogram(w, a, bins, (0, 2.0 ** 62))
        compare_histogram(w, a, edges=np.array([0, 2, 2 ** 53 + 1, high], dtype))
    compare_histogram(w, np.array([-128, 127], "i1"), 16)
    compare_histogram(w, np.array([np.iinfo("i8").min, np.iinfo("i8").max]), 16)


def check_histogram_of_edges(w, dtype, edge_dtype):
    a = sample(dtype, 3000)
    for values in ([0, 1], [0, 1, 5], [2, 2, 3, 3, 3, 9], [4, 4], [1, 7, 7], [3], []):
        compare_histogram(w, a, edges=np.array(values, edge_dtype))
    if edge_dtype in FLOATS:
        compare_histogram(w, a, edges=np.array([-np.inf, -0.0, 0.5, 1.1, np.inf], edge_dtype))
    if dtype in FLOATS:
        a[::7], a[1::7], a[2::7] = np.nan, np.inf, -np.inf
        compare_histogram(w, a, edges=np.array([0, 1, 20], edge_dtype))
        compare_histogram(w, a, 5, (0, 3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.values
def test_histogram_of_edges(w, dtype):
    for other in NUMBERS:
        check_histogram_of_edges(w, dtype, other)


@pytest.mark.parametrize("weights", DTYPES)
@pytest.mark.values
def test_histogram_of_weights_and_densities(w, weights):
    for dtype in ("i2", "u1", "f4", "f8"):
        a, v = sample(dtype, (40, 50)), sample(weights, (40, 50), seed=1)
        compare_histogram(w, a, 8, weights=v)
        compare_histogram(w, a, 8, (0, 2), weights=v)
        if weights != "?":  # NumPy cannot
            compare_histogram(w, a, edges=np.array([0, 1, 2, 9]), weights=v)
        compare_histogram(w, a, 8, density=True)
        compare_histogram(w, a, edges=np.array([0, 1, 2, 9.5], "f4"), density=True)
        compare_histogram(w, a, 8, (0, 2), weights=np.abs(v.astype("f8")) + 1, density=True)


def test_histogram_refuses_what_numpy_refuses(w):
    a = np.arange(5.0)
    for text in ("bins=0", "bins=-3", "bins=2.5", "bins=a*1, range=1", "range=(2, 1)",
                 "range=(0, inf)", "range=(nan, 1)", "range=3", "range=(1, 2, 3)"):
        fails(w, "bad-expression", "outputs[0]", f"histogram(a, {text})[0]", a=a)
    fails(w, "bad-shape", "outputs[0]", "histogram(a, bins=e)[0]", a=a, e=np.ones((2, 2)))
    fails(w, "bad-shape", "outputs[0]", "histogram(a, weights=e)[0]", a=a, e=np.ones(4))
    error = fails(w, "bad-argument", "outputs[0]", "histogram(a, bins=e)[0]", a=a,
                  e=np.array([0, 3, 2, 1.0]))
    assert error.found.startswith("2 edges below"), error.found
    for value in (np.nan, np.inf, -np.inf):
        error = fails(w, "bad-argument", "outputs[0]", "histogram(a)[0]", a=np.array([1, value]))
        assert "range=(low, high)" in error.expected
    with pytest.raises(ValueError):
        np.histogram(np.array([1e16, 1e16 + 2]), 64)
    fails(w, "bad-argument", "outputs[0]", "histogram(a, bins=64)[0]", a=np.array([1e16, 1e16 + 2]))
    fails(w, "bad-argument", "outputs[0]", "histogram(a, bins=9, range=(1, 1.0000000000000002))[0]",
          a=a)
    error = fails(w, "limit-exceeded", "outputs[0]", "histogram(a, bins=100000)[0]", a=a)
    assert "524288" in error.expected


# -- lookups --------------------------------------------------------------------------------------

def check_searchsorted_and_digitize(w, dtype, other):
    v = sample(other, (6, 50))
    if other in FLOATS:
        v[0, :4] = [np.nan, np.inf, -np.inf, -0.0]
    for n in (0, 1, 2, 9, 1000):
        a = np.sort(sample(dtype, n))
        if dtype in FLOATS and n > 5:
            a[-1] = np.nan
        for side in ("left", "right"):
            same(w.compute(f"searchsorted(a, v, side={side})", a=a, v=v),
                 np.searchsorted(a, v, side), (dtype, other, n, side))
        bins = a[:-1] if dtype in FLOATS and n > 5 else a
        for edges, right in itertools.product((bins, bins[::-1]), (False, True)):
            same(w.compute(f"digitize(v, e, right={right})", v=v, e=edges),
                 np.digitize(v, edges, right), (dtype, other, n, right))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.values
def test_searchsorted_and_digitize(w, dtype):
    for other in DTYPES:
        check_searchsorted_and_digitize(w, dtype, other)


def test_lookups_in_what_is_computed(w):
    a, v = np.arange(20.0), np.linspace(-3, 50, 64)
    same(w.compute("searchsorted(a*2, v + 1, 'right')", a=a, v=v),
         np.searchsorted(a * 2, v + 1, "right"), "computed")
    same(w.compute("searchsorted(a, 7.5)", a=a), np.searchsorted(a, 7.5), "number")
    same(w.compute("take(a**2, int32(v) % 20) + 1", a=a, v=v), (a ** 2)[v.astype("i4") % 20] + 1,
         "take")
    fails(w, "bad-expression", "outputs[0]", "searchsorted(a, v, sorter=a)", a=a, v=v)
    fails(w, "bad-expression", "outputs[0]", "searchsorted(a, v, side=middle)", a=a, v=v)
    fails(w, "bad-shape", "outputs[0]", "searchsorted(a, v)", a=a.reshape(4, 5), v=v)
    error = fails(w, "bad-argument", "outputs[0]", "digitize(v, a)", a=np.array([1, 3, 2.0]), v=v)
    assert "order" in error.expected
    error = fails(w, "limit-exceeded", "outputs[0]", "searchsorted(permutation(65537, seed=1), v)",
                  v=v)
    assert error.found == "524296"


def check_take(w, dtype, index):
    a = sample(dtype, 9)
    if index == "?":
        i = np.array([[True, False], [False, False]])
    else:
        i = np.arange(0 if index[0] == "u" else -9, 9).astype(index)
    same(w.compute("take(a, i)", a=a, i=i), np.take(a, i.astype("i8")), (dtype, index))
    for mode in ("wrap", "clip"):
        far = i.astype("i8") * 3 if index in ("i8", "?") else i
        same(w.compute(f"take(a, i, mode={mode})", a=a, i=far),
             np.take(a, far.astype("i8"), mode=mode), (dtype, index, mode))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.values
def test_take(w, dtype):
    for other in DTYPES[:-2]:
        check_take(w, dtype, other)


def test_take_of_special_floats_and_of_nothing(w):
    a = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
    got = w.compute("take(a, i)", a=a, i=np.arange(5))
    assert got.tobytes() == a.tobytes()
    same(w.compute("take(a, i)", a=a[:0], i=np.zeros((0, 3), "i4")), np.zeros((0, 3)), "nothing")
    same(w.compute("take(a, 2)", a=a), a[2], "one")
    fails(w, "bad-index", "outputs[0]", "take(a, i)", a=a[:0], i=np.zeros(1, "i4"))
    fails(w, "bad-shape", "outputs[0]", "take(a, i, axis=1)", a=a, i=np.zeros(1, "i4"))
    fails(w, "bad-dtype", "outputs[0]", "take(a, i)", a=a, i=np.zeros(1))


def test_known_indices_need_no_looking(w):
    """As many as there are: a polynomial whose coefficients are taken from an array."""
    c, x = np.arange(1.0, 13.0), np.linspace(-1, 1, 7)
    text = " + ".join(f"take(c, {i}) * x**{i}" for i in range(12))
    np.testing.assert_allclose(w.compute(text, c=c, x=x), np.polynomial.polynomial.polyval(x, c))
    fails(w, "bad-index", "outputs[0]", "take(c, 12)", c=c)


@pytest.mark.parametrize("dtype, given, found", [
    ("i8", [4, 5, -5], 5), ("i8", [4, -6, -5], -6), ("i8", [-2**63, 0], -2**63),
    ("i8", [2**63 - 1, 0], 2**63 - 1), ("u8", [2, 2**64 - 1], 2**64 - 1), ("u8", [5, 7, 6], 7),
    ("i1", [127, 5], 127), ("i1", [-128, 0], -128), ("u1", [4, 5], 5), ("i4", 5, 5), ("u2", 9, 9)])
def test_an_index_that_is_outside_is_told(w, dtype, given, found):
    error = fails(w, "bad-index", "outputs[0]", "take(a, i) * 2", a=np.arange(5.0),
                  i=np.array(given, dtype))
    assert error.expected == "-5 to 4 along axis 0 of length 5" and error.found == f"index {found}"


def test_an_index_that_is_outside_among_many(w):
    a, region = np.arange(20.0), wire.Region(w, 800000)
    i = region.array("i4", (200000,))
    i[:] = np.arange(-20, 20).repeat(5000)
    given = wire.described(i, region.at())
    same(w.compute("sum(take(a, i))", a=a, i=given), a.sum() * 10000, "all")
    i[170000] = 20
    error = fails(w, "bad-index", "outputs[0]", "sum(take(a, i))", a=a, i=given)
    assert error.found == "index 20"


def test_choice_and_permutation_of_arrays(w):
    a = sample("f4", 40)
    indices = w.compute("choice(40, size=(3, 7), seed=5)")
    same(w.compute("choice(a, size=(3, 7), seed=5)", a=a), a[indices], "choice")
    indices = w.compute("choice(40, size=11, replace=False, seed=5)")
    same(w.compute("choice(a, size=11, replace=False, seed=5)", a=a), a[indices], "choice")
    same(w.compute("permutation(a, seed=6)", a=a), a[w.compute("permutation(40, seed=6)")], "perm")
    same(w.compute("permutation(a, seed=6)", a=a[:0]), a[:0], "nothing")
    fails(w, "bad-expression", "outputs[0]", "choice(a, size=2, seed=1)", a=a[:0])
    fails(w, "bad-shape", "outputs[0]", "permutation(a, seed=1)", a=a.reshape(4, 10))


# -- more than one tile ---------------------------------------------------------------------------

def test_arrays_of_many_tiles(w):
    x = sample("i4", (900, 700), seed=3)
    region = wire.Region(w, 2 * x.nbytes)
    a = region.array("i4", x.shape)
    a[:] = x
    given = wire.described(a, region.at())
    same(w.compute("bincount(a + 20, length=41)", a=wire.described(a.ravel(), region.at())),
         np.bincount(x.ravel() + 20), "bincount")
    for words, keywords in (("", {}), ("bins=e", {"bins": np.array([-9, 0, 0, 3, 8])}),
                            ("bins=37, range=(-7, 9.5)", {"bins": 37, "range": (-7, 9.5)})):
        counts, edges = np.histogram(x, **keywords)
        args = {"e": keywords["bins"]} if "e" in words else {}
        same(w.compute(f"histogram(a, {words})[0]", a=given, **args), counts, words)
        same(w.compute(f"histogram(a, {words})[1]", a=given, **args), edges, words)
    to = wire.described(a, region.at(x.nbytes))
    for axis in (0, 1):
        w.run(f"cumsum(a, axis={axis}, dtype=int32)", to=to, a=given)
        same(region.array("i4", x.shape, x.nbytes), np.cumsum(x, axis=axis, dtype="i4"), axis)


def test_scans_beside_other_outputs_and_over_what_they_read(w, tmp_path):
    """Where outputs are stored over arguments, what reads these comes before."""
    x, size = sample("f8", (300, 200), seed=8), 300 * 200 * 8
    region = wire.Region(w, 4 * size)
    arrays = [region.array("f8", x.shape, i * size) for i in range(4)]
    places = [wire.described(a, region.at(i * size)) for i, a in enumerate(arrays)]
    wants = {"cumsum(a, axis=0)": np.cumsum(x, axis=0), "abs(a)": abs(x), "a - b": x - (x + 1),
             "cumsum(a + b, axis=0)": np.cumsum(x + (x + 1), axis=0)}

    def run(outputs, args):
        arrays[0][:], arrays[1][:] = x, x + 1
        w.call("job.run", args=args,
               outputs=[{"expr": text, "to": to} for text, to in outputs])

    both = {"a": places[0], "b": places[1]}
    for texts in (("cumsum(a, axis=0)", "abs(a)"), ("cumsum(a + b, axis=0)", "a - b")):
        args = both if "+" in texts[0] else {"a": places[0]}
        for order in (texts, texts[::-1]):
            for there in ((2, 3), (0, 3), (2, 0), (2, 1), (0, 1)):
                if max(there) == 1 and args is both:
                    with pytest.raises(wire.Error) as refused:
                        run([(t, places[i]) for t, i in zip(order, there)], args)
                    assert refused.value.code == "bad-expression"
                    continue
                run([(t, places[i]) for t, i in zip(order, there)], args)
                for text, i in zip(order, there):
                    assert np.allclose(arrays[i], wants[text]), (order, there, text)
    paths = [tmp_path / name for name in ("x", "sums", "others")]
    for path in paths:
        x.tofile(path)
    files = [open(path, "r+b") for path in paths]
    at = [wire.described(x, wire.file_at(i)) for i in range(3)]
    w.call("job.run", fds=[file.fileno() for file in files], args={"a": at[0]},
           outputs=[{"expr": "cumsum(a, axis=0)", "to": at[1]}, {"expr": "abs(a)", "to": at[2]}])
    for file in files:
        file.close()
    assert np.allclose(np.fromfile(paths[1]).reshape(x.shape), wants["cumsum(a, axis=0)"])
    assert np.array_equal(np.fromfile(paths[2]).reshape(x.shape), abs(x))

# -- scans ----------------------------------------------------------------------------------------

SHAPES = [(), (1,), (13,), (5000,), (0,), (3, 0), (0, 3), (3, 4), (5, 1), (2, 7, 3), (60, 80)]


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.values
def test_scans(w, name, dtype):
    function = getattr(np, name)
    for shape in SHAPES:
        a = sample(dtype, shape)
        for axis in [None] if len(shape) < 2 else range(-len(shape), len(shape)):
            text = f"{name}(a)" if axis is None else f"{name}(a, axis={axis})"
            got, expected = w.compute(text, a=a), function(a, axis=axis)
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape), (text, dtype, shape)
            if dtype == "f4":
                exact = function(a.astype("f8"), axis=axis).astype("f4")
                np.testing.assert_array_equal(got, exact)
            else:
                np.testing.assert_array_equal(got, expected, err_msg=f"{text} {dtype} {shape}")


def check_scans_of_another_dtype(w, name, dtype, to):
    a = np.abs(sample(dtype, 50)) if to[0] == "u" and dtype in FLOATS else sample(dtype, 50)
    got = w.compute(f"{name}(a, dtype={np.dtype(to).name})", a=a)
    expected = getattr(np, name)(a, dtype=to)
    assert got.dtype == expected.dtype
    if to == "f4":
        expected = getattr(np, name)(a.astype("f4"), dtype="f8").astype("f4")
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "f4", "f8"])
@pytest.mark.values
def test_scans_of_another_dtype(w, name, dtype):
    for other in DTYPES:
        check_scans_of_another_dtype(w, name, dtype, other)


def test_scans_of_special_values(w):
    a = np.array([[1, np.nan, 2, np.inf, -np.inf], [-0.0, -0.0, 0.0, -0.0, np.inf]])
    for axis in (0, 1):
        got, expected = w.compute(f"cumsum(a, axis={axis})", a=a), np.cumsum(a, axis=axis)
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


def test_scans_are_whole_outputs(w):
    a = np.arange(6.0)
    for text in ("cumsum(a) + 1", "sum(cumsum(a))", "float32(cumsum(a))", "take(cumsum(a), 1)",
                 "bincount(cumsum(int8(a)), length=30)", "histogram(cumsum(a))[0]",
                 "cumsum(cumsum(a))"):
        error = fails(w, "bad-expression", "outputs[0]", text, a=a)
        assert "whole output" in error.message, text
    fails(w, "bad-expression", "outputs[0]", "cumsum(a)", a=a.reshape(2, 3))
    fails(w, "bad-shape", "outputs[0]", "cumsum(a, axis=1)", a=a)
    fails(w, "bad-expression", "outputs[0]", "cumsum(a, axis=(0,))", a=a)
    both = w.call("job.run", outputs=[{"expr": "t = a*2; cumsum(t)"}, {"expr": "cumprod(a + 1)"},
                                      {"expr": "a + 1"}, {"expr": "sum(a)"}],
                  args={"a": wire.argument(a)})["outputs"]
    expected = [np.cumsum(a * 2), np.cumprod(a + 1), a + 1, np.sum(a)]
    for output, value in zip(both, expected):
        same(wire.result_array(output), value, "several")
