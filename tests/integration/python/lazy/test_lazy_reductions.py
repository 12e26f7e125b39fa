"""Reductions against NumPy: random arrays of all dtypes and layouts, axes, keepdims, ddof, dtype,
where; empty axes, NaN, errors; several in one job; fused with what is around them."""

import math
import warnings

import h5py
import numpy as np
import pytest

from catalogue import DTYPES, NUMPY_2, specials, sum_bound

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's promotion and parameters")
EXACT = "min max argmin argmax any all count_nonzero ptp".split()
FLOATING = "sum prod mean var std nansum nanprod nanmean nanvar nanstd norm".split()
NANS = "nansum nanprod nanmean nanvar nanstd nanmin nanmax".split()
OUTPUTS = 16


def axes_of(rng, ndim):
    """None, one, or several, some of them negative."""
    if ndim == 0 or rng.random() < 0.2:
        return None
    some = rng.permutation(ndim)[:rng.integers(1, ndim + 1)]
    some = [int(axis - ndim if rng.random() < 0.3 else axis) for axis in some]
    return some[0] if len(some) == 1 and rng.random() < 0.7 else tuple(some)


def array_of(rng, dtype, shape):
    """Tame values, some of them the same, some zero."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        values = rng.normal(0.3, 2, shape).round(int(rng.integers(1, 9)))
    else:
        values = rng.integers(0 if dtype.kind in "ub" else -5, 2 if dtype.kind == "b" else 6, shape)
    return np.asarray(values).astype(dtype)


def numpys(name, array, **options):
    """NumPy's, of float32 in float64 where it is not exact; with the dtype that NumPy says."""
    function = np.linalg.norm if name == "norm" else getattr(np, name)
    if name == "norm" and isinstance(options.get("axis"), tuple) and len(options["axis"]) > 2:
        return np.sqrt(np.sum(array * array, **options))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = np.asarray(function(array, **options))
        if name in FLOATING and array.dtype == np.float32:
            wide = np.asarray(function(array.astype("f8"), **{**options, "dtype": np.float64}
                                       if "dtype" in options else options))
            return wide.astype(got.dtype)
    return got


def check(name, got, want, array):
    """Equal; of floats that are added, to the last bits of what is added."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape), name
    if want.dtype.kind != "f" or name in EXACT or name in ("nanmin", "nanmax"):
        np.testing.assert_array_equal(got, want, name)
        return
    eps = np.finfo(want.dtype).eps
    wide = array.astype("f8")
    wide = wide[np.isfinite(wide)]
    scale = {"sum": np.abs(wide).sum(), "mean": np.abs(wide).max(initial=0),
             "var": np.square(wide).max(initial=0), "std": np.abs(wide).max(initial=0)}.get(
                 name.removeprefix("nan"), 0)
    np.testing.assert_allclose(got, want, rtol=16 * eps, atol=1e-14 * scale, err_msg=name)


def options_of(rng, name, shape):
    options = {"axis": axes_of(rng, len(shape))}
    if name in ("argmin", "argmax") and isinstance(options["axis"], tuple):
        options["axis"] = options["axis"][0]
    if name == "norm" and isinstance(options["axis"], tuple) and len(options["axis"]) > 2:
        options["axis"] = options["axis"][:2]
    if rng.random() < 0.5:
        options["keepdims"] = bool(rng.integers(2))
    if name.removeprefix("nan") in ("var", "std") and rng.random() < 0.5:
        options["ddof"] = [0, 1, 0.5][rng.integers(3)]
    if name in ("sum", "prod", "mean", "var", "std", "any", "all", "nansum") \
            and rng.random() < 0.4:
        options["where"] = rng.random(np.broadcast_shapes(shape[-1:])) < 0.6 \
            if rng.random() < 0.3 else rng.random(shape) < 0.6
    if name in ("min", "max", "nanmin") and rng.random() < 0.3:
        options["initial"] = 1
        if rng.random() < 0.5:
            options["where"] = rng.random(shape) < 0.5
    return options


def computed(gd, lazies):
    return [np.asarray(one) for i in range(0, len(lazies), OUTPUTS)
            for one in gd.compute(*lazies[i:i + OUTPUTS])]


# -- every function, dtype and axis -------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
def test_all_of_them(gd, dtype):
    rng = np.random.default_rng(np.dtype(dtype).num)
    lazies, wanted = [], []
    for name in 3 * (EXACT + FLOATING + ["nanmin", "nanmax"]):
        array = array_of(rng, dtype, tuple(rng.integers(1, 7, rng.integers(0, 5))))
        if name == "ptp" and dtype == "?":
            continue
        options = options_of(rng, name, array.shape)
        lazies.append(getattr(gd, name)(array, **options))
        wanted.append((name, array, options))
    for lazy, (name, array, options) in zip(lazies, wanted, strict=True):
        got = np.asarray(lazy.compute())
        assert lazy._node.shape == got.shape, (name, options)
        check(name, got, numpys(name, array, **options), array)


def layouts(folder, array):
    """The same elements, differently stored; and as lazies of files."""
    yield np.asfortranarray(array)
    yield array[::-1][::-1, ...]
    yield np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    wide = np.zeros((*array.shape[:-1], array.shape[-1] * 3), array.dtype)
    wide[..., 1::3] = array
    yield wide[..., 1::3]
    yield np.ascontiguousarray(array.T).T
    yield array.astype(array.dtype.newbyteorder())
    np.save(folder / "c.npy", array)
    np.save(folder / "f.npy", np.asfortranarray(array))
    yield np.load(folder / "c.npy", "r")
    yield np.load(folder / "f.npy", "r")


def test_layouts(gd, folder):
    """Of 3 MB, so of several grains; the bits are those of the layout, the values NumPy's."""
    rng = np.random.default_rng(1)
    array = array_of(rng, "f4", (60, 110, 119))
    names = ("sum", "mean", "std", "min", "argmax")
    wanted = {(name, axis): numpys(name, array, axis=axis)
              for name in names for axis in (None, 0, 1, -1)}
    sources = [*layouts(folder, array), gd.open(folder / "c.npy"), gd.open(folder / "f.npy")]
    with h5py.File(folder / "x.h5", "w") as file:
        file["plain"] = array
        file.create_dataset("packed", data=array, chunks=(7, 50, 40), compression="gzip")
    with h5py.File(folder / "x.h5") as file:
        sources += [file["plain"], file["packed"], gd.open(f"{folder}/x.h5:/packed")]
        for source in sources:
            lazies = [getattr(gd, name)(source, axis=axis) for name, axis in wanted]
            got = computed(gd, lazies)
            for (name, _), value, want in zip(wanted, got, wanted.values(), strict=True):
                check(name, value, want, array)


@pytest.mark.parametrize("shape, axis", [((3, 70000), 0), ((70000, 3), 0), ((70000, 3), 1),
                                         ((3, 70000), 1), ((40, 50, 300), (0, 2)),
                                         ((40, 50, 300), (1,)), ((2, 9, 2, 9, 2, 9, 30), (1, 3, 5)),
                                         ((600000,), 0), ((1, 400000), 0), ((400000, 1), 1)])
def test_long_and_short_axes(gd, shape, axis):
    rng = np.random.default_rng(3)
    array = array_of(rng, "f8", shape)
    names = ("sum", "mean", "var", "min", "max", "ptp", "count_nonzero", "any")
    for name, got in zip(names, computed(gd, [getattr(gd, name)(array, axis=axis)
                                              for name in names]), strict=True):
        check(name, got, numpys(name, array, axis=axis), array)
    if isinstance(axis, int):
        check("argmin", np.asarray(gd.argmin(array, axis).compute()), np.argmin(array, axis), array)


# -- values where mistakes live -----------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(gd, dtype):
    """NaN, infinities, extremes, zeros of both signs."""
    array = specials(dtype, 240).reshape(6, 40)
    for axis in (None, 0, 1):
        names = [name for name in EXACT if name != "ptp"] + ["nanmin", "nanmax"]
        for name, got in zip(names, computed(gd, [getattr(gd, name)(array, axis=axis)
                                                  for name in names]), strict=True):
            check(name, got, numpys(name, array, axis=axis), array)
    if np.dtype(dtype).kind in "iu":  # which wrap
        for name in ("sum", "prod"):
            np.testing.assert_array_equal(getattr(gd, name)(array, axis=0).compute(),
                                          getattr(np, name)(array, axis=0))


def test_nan_in_all_places(gd):
    a = np.array([[1., np.nan, 3], [np.nan, np.nan, np.nan], [4, 5, 6]])
    for name in NANS + ["sum", "mean", "std", "max", "argmax", "any"]:
        for axis in (None, 0, 1):
            got = np.asarray(getattr(gd, name)(a, axis=axis).compute())
            np.testing.assert_allclose(got, numpys(name, a, axis=axis), err_msg=f"{name} {axis}")


def test_close_to_exact_sums(gd):
    """Of terms of every size, of both signs and of one: within the bound of additions by pairs, which
    sums one after the other are beyond; of float32 added in float64 and rounded once."""
    rng = np.random.default_rng(9)
    one_by_one = 0
    for dtype in ("f4", "f8"):
        for n in (1000, 9999, 70_001, 300_000) * 3:
            a = (rng.normal(size=n) * 10 ** rng.uniform(-6, 6, n)).astype(dtype)
            for terms in (a, np.abs(a), rng.uniform(1, 2, n).astype(dtype)):
                exact = math.fsum(terms.tolist())
                bound = sum_bound(terms)
                got = float(gd.lazy(terms).sum())
                rounding = np.spacing(np.float32(exact)) / 2 if dtype == "f4" else 0
                assert abs(got - exact) <= bound + abs(rounding), (dtype, n)
                one_by_one += abs(float(np.cumsum(terms, dtype="f8")[-1]) - exact) > bound
    assert one_by_one > 0


def test_a_large_mean_does_not_drown_the_variance(gd):
    a = 1e8 + np.random.default_rng(4).normal(size=(50, 3000))
    for axis in (None, 0, 1):
        np.testing.assert_allclose(gd.var(a, axis=axis, ddof=1).compute(),
                                   (a - 1e8).var(axis=axis, ddof=1), rtol=1e-7)


def test_other_norms(gd):
    rng = np.random.default_rng(2)
    for dtype in ("f8", "f4", "i4"):
        a = array_of(rng, dtype, (5, 4, 6))
        tolerance = {"f4": 1e-5}.get(dtype, 1e-12)
        for order in (None, 1, 2, 3, 0.5, -1, -2, np.inf, -np.inf, 0):
            for axis in (0, -1):
                with np.errstate(all="ignore"):
                    want = np.linalg.norm(a, order, axis)
                got = np.linalg.norm(gd.lazy(a), order, axis).compute()
                assert got.dtype == want.dtype, order
                np.testing.assert_allclose(got, want, rtol=tolerance, err_msg=str(order))
        for order in (None, "fro", 1, -1, np.inf, -np.inf):
            for axes in ((0, 1), (2, 0), (-1, -2)):
                for keepdims in (False, True):
                    want = np.linalg.norm(a, order, axes, keepdims)
                    got = gd.norm(a, order, axes, keepdims).compute()
                    assert (got.dtype, got.shape) == (want.dtype, want.shape)
                    np.testing.assert_allclose(got, want, rtol=tolerance)
        np.testing.assert_allclose(gd.norm(a).compute(), np.linalg.norm(a), rtol=tolerance)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
def test_norms_of_empty_matrices(gd, dtype):
    for shape in ((0, 3), (3, 0), (0, 0)):
        a = np.zeros(shape, dtype)
        for order in (None, 1, -1, np.inf, -np.inf):
            try:
                want = np.linalg.norm(a, order)
            except ValueError:
                with pytest.raises(ValueError):
                    gd.norm(a, order).compute()
                continue
            got = gd.norm(a, order).compute()
            assert (got.dtype, got) == (want.dtype, want), (shape, order)


def test_logsumexp(gd):
    special = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(2)
    a = rng.normal(0, 400, (7, 9))
    a[2] = -np.inf
    for axis in (None, 0, 1, (0, 1)):
        for b in (None, rng.uniform(0, 2, (7, 9)), rng.uniform(0, 2, 9)):
            with np.errstate(all="ignore"):
                want = special.logsumexp(a, axis, b)
            np.testing.assert_allclose(gd.logsumexp(a, axis, b).compute(), want, rtol=1e-12)


# -- dtype, where, initial, out -----------------------------------------------------------------

def test_dtypes(gd):
    rng = np.random.default_rng(6)
    for dtype in ("i2", "u1", "f4", "f8", "?"):
        a = array_of(rng, dtype, (8, 9))
        for name in ("sum", "prod", "mean", "var", "std", "nansum"):
            for wanted in ("f4", "f8") + (("i4", "i8", "u8") if name in ("sum", "nansum") and
                                          dtype not in ("f4", "f8") else ()):
                got = np.asarray(getattr(gd, name)(a, 0, wanted).compute())
                want = getattr(np, name)(a.astype("f8"), 0)
                assert got.dtype == np.dtype(wanted), name
                with np.errstate(all="ignore"):
                    np.testing.assert_allclose(got, want.astype(wanted), rtol=1e-5, atol=1e-6,
                                               err_msg=f"{name} {dtype} {wanted}")


def test_where_of_nothing(gd):
    a = np.arange(6.).reshape(2, 3)
    none = np.zeros((2, 3), "?")
    assert gd.compute(gd.sum(a, where=none), gd.prod(a, where=none), gd.any(a, where=none),
                      gd.all(a, where=none)) == (0, 1, False, True)
    assert np.isnan(gd.mean(a, where=none).compute()) and np.isnan(gd.std(a, where=none).compute())
    np.testing.assert_array_equal(gd.max(a, axis=0, where=a > 4, initial=-1).compute(), [-1, -1, 5])


def test_out(gd, folder):
    x = gd.lazy(np.arange(24.).reshape(2, 3, 4))
    a = np.asarray(x)
    out = np.empty((3, 4))
    assert gd.sum(x, 0, out=out) is out and (out == a.sum(0)).all()
    assert np.mean(x, axis=0, out=out) is out and (out == a.mean(0)).all()
    assert x.max(0, out) is out and (out == a.max(0)).all()
    assert np.add.reduce(x, out=out) is out and (out == a.sum(0)).all()
    single = np.empty(4, "f4")
    np.std(x, (0, 1), out=single)
    np.testing.assert_allclose(single, a.std((0, 1)), rtol=1e-6)
    file = np.lib.format.open_memmap(folder / "out.npy", "w+", "i8", (2, 4))
    assert x.argmin(1, file) is file and (file == a.argmin(1)).all()
    with pytest.raises(gd.errors.BadShape):
        gd.sum(x, 0, out=np.empty(5))
    with pytest.raises(gd.errors.BadDtype):
        gd.sum(x, 0, out=np.empty((3, 4), "i4"))


# -- empty arrays, errors -----------------------------------------------------------------------

@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4), (0, 0)])
def test_empty_arrays(gd, shape):
    for axis in (None, *range(len(shape)), (0, -1) if len(shape) > 1 else 0):
        a = np.empty(shape, "f4")
        for name in ("sum", "prod", "any", "all", "count_nonzero", "mean", "std", "norm"):
            want = numpys(name, a, axis=axis)
            got = np.asarray(getattr(gd, name)(a, axis=axis).compute())
            assert got.dtype == want.dtype and got.shape == want.shape, name
            np.testing.assert_array_equal(got, want, name)
        for name in ("min", "max", "argmin", "ptp"):
            if name == "argmin" and isinstance(axis, tuple):
                continue
            try:
                want = getattr(np, name)(a, axis=axis)
            except ValueError:
                with pytest.raises(ValueError) as caught:
                    getattr(gd, name)(a, axis=axis).compute()
                assert isinstance(caught.value, gd.Error), name
                continue
            got = np.asarray(getattr(gd, name)(a, axis=axis).compute())
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
        want = np.max(a, axis=axis, initial=3)
        np.testing.assert_array_equal(gd.max(a, axis=axis, initial=3).compute(), want)


def test_arrays_without_axes(gd):
    for value in (np.array(2.5), np.array(3, "i2"), 4):
        for name in ("sum", "mean", "std", "max", "argmin", "count_nonzero", "all"):
            got = getattr(gd, name)(value).compute()
            want = getattr(np, name)(value)
            assert (got, np.ndim(got)) == (want, 0), name


def test_no_axes_at_all(gd):
    """axis=(): each element by itself."""
    a = np.array([[1., 2, 0], [4, 5, np.nan]])
    for name in ("sum", "min", "any", "mean", "std", "count_nonzero"):
        want = np.asarray(numpys(name, a, axis=()))
        got = getattr(gd, name)(a, axis=()).compute()
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want, name)


def test_errors_are_the_same_in_texts_and_lazies(gd):
    a = np.arange(6.).reshape(2, 3)
    for text, call in [("mean(a, axis=2)", lambda: gd.mean(a, 2)),
                       ("sum(a, axis=(0, -2))", lambda: gd.sum(a, (0, -2))),
                       ("a + normal(loc=a, size=(3, 2), seed=1)",
                        lambda: gd.random.normal(a, size=(3, 2), seed=1))]:
        with pytest.raises(gd.Error) as ours:
            call()
        with pytest.raises(gd.Error) as theirs:
            gd.evaluate(text, a=a)
        assert ours.value.code == theirs.value.code, text


def test_errors_of_texts(gd):
    a = np.arange(6.).reshape(2, 3)
    for text, words in [("mean(a, axis=2)", "axis"), ("sum(a, axis=(0, 0))", "axis"),
                        ("sum(a, axes=0)", "axes"), ("sum(a, dtype=float16)", "float16"),
                        ("std(a, axis=0.5)", "axis"), ("max(z, axis=0)", "axis 0|empty|identity")]:
        with pytest.raises(gd.Error, match=words):
            gd.evaluate(text, local_dict={"a": a, "z": a[:0]})


# -- together -----------------------------------------------------------------------------------

def test_texts(gd):
    a = np.random.default_rng(0).normal(size=(30, 40, 5))
    m = a > 0
    for text, want in [
            ("mean(a, axis=0)", a.mean(0)), ("mean(a, axis=(0, 1), keepdims=True)",
                                             a.mean((0, 1), keepdims=True)),
            ("std(a, axis=-1, ddof=1)", a.std(-1, ddof=1)), ("sum(a, 1)", a.sum(1)),
            ("sum(a, axis=None)", a.sum()), ("np.sum(a, axis=[0, 2])", a.sum((0, 2))),
            ("mean(a, axis=0, where=m)", a.mean(0, where=m)),
            ("(a - mean(a, axis=0)) / std(a, axis=0)", (a - a.mean(0)) / a.std(0)),
            ("mean((a - b)**2, axis=0)", ((a - 1.5) ** 2).mean(0))]:
        np.testing.assert_allclose(gd.evaluate(text, local_dict={"a": a, "m": m, "b": 1.5}), want,
                                   rtol=1e-12, atol=1e-15)


def test_as_many_passes_as_a_job_may_have(gd):
    """Of each reduction the next one is made."""
    a = np.arange(12.).reshape(3, 4)
    text, want = "a", a
    for n_passes in range(1, 41):
        if n_passes in (32, 33, 40):
            np.testing.assert_allclose(gd.evaluate(text, a=a), want, rtol=1e-12, atol=1e-12)
        text, want = f"(a + mean(abs({text})))", a + np.mean(np.abs(want))
    with pytest.raises(gd.Error, match="more than 40 passes"):
        gd.evaluate(text, a=a)


def n_read(gd):
    return sum(gd.stats()["bytes"]["read"].values())


def test_several_in_one_job_read_once(gd):
    """As the daemon counts what its jobs read."""
    x = gd.empty((700, 900), "f4")
    x[...] = np.random.default_rng(5).normal(size=x.shape)
    lazy = gd.lazy(x)
    lazies = (lazy.mean(), lazy.std(), lazy.min(), lazy.argmax())
    before, n_bytes = gd.stats()["jobs"], n_read(gd)
    got = gd.compute(*lazies)
    assert gd.stats()["jobs"]["submitted"] - before["submitted"] == 1
    assert n_read(gd) - n_bytes == x.nbytes
    np.testing.assert_allclose(got, [x.mean(dtype="f8"), x.std(dtype="f8"), x.min(), x.argmax()],
                               rtol=1e-6, atol=1e-8)


def test_what_comes_before_is_fused(gd):
    """Both arrays are read once, and nothing of their size is written."""
    rng = np.random.default_rng(5)
    a, b = gd.empty((400, 700)), gd.empty((400, 700))
    a[...], b[...] = rng.normal(size=(2, 400, 700))
    y = gd.mean((gd.lazy(a) - b) ** 2, axis=0)
    assert y.shape == (700,)
    before = n_read(gd)
    got = y.compute()
    assert n_read(gd) - before == a.nbytes + b.nbytes
    np.testing.assert_allclose(got, ((a - b) ** 2).mean(0), rtol=1e-12)


def test_standardized_in_two_reads_and_one_write(gd):
    rng = np.random.default_rng(5)
    a = gd.empty((500, 600))
    a[...] = rng.normal(3, 2, size=a.shape)
    x = gd.lazy(a)
    y = (x - x.mean(axis=0)) / x.std(axis=0)
    assert (y.shape, y.dtype) == (a.shape, a.dtype)
    out = gd.empty(a.shape)
    before = n_read(gd)
    y.compute(out)
    assert n_read(gd) - before == 2 * a.nbytes
    np.testing.assert_allclose(out, (a - a.mean(0)) / a.std(0), rtol=1e-9, atol=1e-12)


def test_reductions_of_reductions(gd):
    a = np.random.default_rng(5).normal(size=(20, 30, 40))
    x = gd.lazy(a)
    for got, want in [(x.max(2).sum(0), a.max(2).sum(0)),
                      ((x - x.mean((0, 1), keepdims=True)).std(2), (a - a.mean((0, 1))).std(2)),
                      (x.sum(0).sum(0).sum(0), a.sum()),
                      ((x * x.sum(1, keepdims=True)).mean(1), (a * a.sum(1, keepdims=True)).mean(1)),
                      (x.mean(0)[:20, :30] + x.mean(2), a.mean(0)[:20, :30] + a.mean(2))]:
        assert got.shape == want.shape
        np.testing.assert_allclose(got.compute(), want, rtol=1e-10, atol=1e-12)


def test_parts(gd, folder):
    a = np.random.default_rng(5).normal(size=(20, 30, 40))
    np.save(folder / "a.npy", a)
    for x in (gd.lazy(a), gd.open(folder / "a.npy")):
        for got, want in [(x.mean(0)[3:7, ::-2], a.mean(0)[3:7, ::-2]), (x.std(1)[4], a.std(1)[4]),
                          ((x - x.mean(0))[5], (a - a.mean(0))[5]),
                          (x.sum((0, 2), keepdims=True)[0, :, None], a.sum((0, 2))[:, None, None]),
                          (x.argmax(2)[-1, 2:], a.argmax(2)[-1, 2:])]:
            assert got.shape == want.shape
            np.testing.assert_allclose(got.compute(), want, rtol=1e-12, atol=1e-14)


def test_empty_parts(gd):
    a = np.arange(6, dtype="i4").reshape(2, 3)
    x = gd.lazy(a)
    for got, want in [(x.sum(0, keepdims=True)[0:0], a.sum(0, keepdims=True)[0:0]),
                      (x.mean(1)[2:], a.mean(1)[2:]),
                      ((x.max(1, keepdims=True) + 1)[:, 1:], (a.max(1, keepdims=True) + 1)[:, 1:]),
                      ((x - x.sum(0))[5:, ::2], (a - a.sum(0))[5:, ::2])]:
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        assert got.compute().shape == want.shape


def test_saved_and_submitted(gd, folder):
    a = np.random.default_rng(5).normal(size=(200, 300))
    x = gd.lazy(a)
    files = gd.save({f"{folder}/mean.npy": x.mean(0), f"{folder}/x.h5:/std": x.std(0)})
    assert [file.shape for file in files.values()] == [(300,), (300,)]
    np.testing.assert_allclose(np.load(folder / "mean.npy"), a.mean(0), rtol=1e-12, atol=1e-15)
    assert gd.submit(x.max(axis=1)).result().tolist() == a.max(1).tolist()


@pytest.mark.parametrize("shape", [(20, 70001), (80, 20000), (9, 300, 700)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1"])
def test_rows_longer_than_what_a_client_hands_over_at_a_time(gd, folder, dtype, shape):
    """Along the first axis; of memory that is the client's own, and of what only it can read."""
    rng = np.random.default_rng(len(shape))
    a, b = (array_of(rng, dtype, shape) for _ in range(2))
    with h5py.File(folder / "b.h5", "w") as file:
        file.create_dataset("b", data=b, shuffle=True)  # the cheapest filter to write
    packed = gd.open(f"{folder}/b.h5:/b")
    for source, values in ((a, a), (packed, b), (a[::-1, 1:], a[::-1, 1:])):
        for name in ("mean", "std", "max"):
            got = np.asarray(getattr(gd, name)(source, axis=0))
            check(name, got, numpys(name, values, axis=0), values)
    centred = np.asarray(gd.evaluate("(a - mean(a, axis=0)) * b", a=a, b=packed, out=np.empty(shape)))
    np.testing.assert_allclose(centred, (a.astype("f8") - a.mean(0, dtype="f8")) * b, atol=1e-5)
