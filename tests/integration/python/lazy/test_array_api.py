"""gd.array_api has the names of the standard of 2025.12, but for those that the README's table tells
of; and lazies have its protocol."""

import copy
import itertools

import numpy as np
import pytest

import conftest
from catalogue import NUMPY_2

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's promotion")

STANDARD = """
    e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64
    complex64 complex128 __array_api_version__ __array_namespace_info__
    arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like
    tril triu zeros zeros_like astype can_cast finfo iinfo isdtype result_type
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
    bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp
    expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal
    log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum
    multiply negative nextafter not_equal positive pow real reciprocal remainder round sign signbit
    sin sinh square sqrt subtract tan tanh trunc
    take take_along_axis matmul matrix_transpose tensordot vecdot
    broadcast_arrays broadcast_shapes broadcast_to concat expand_dims flip moveaxis permute_dims
    repeat reshape roll squeeze stack tile unstack
    argmax argmin count_nonzero nonzero searchsorted where
    isin unique_all unique_counts unique_inverse unique_values argsort sort
    cumulative_prod cumulative_sum max mean min prod std sum var all any diff fft linalg
    """.split()
PROTOCOL = """__abs__ __add__ __and__ __array_namespace__ __bool__ __complex__ __dlpack__
    __dlpack_device__ __eq__ __float__ __floordiv__ __ge__ __getitem__ __gt__ __index__ __int__
    __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__
    __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ to_device T device dtype mT ndim
    shape size""".split()


LINALG = """cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power
    matrix_rank matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot
    vector_norm""".split()


OTHERS = {"x += y", "T", "astype(copy=True)"}  # test_deviations_are_still_there


def told():
    """The names in the first column of the README's table."""
    text = (conftest.TOP / "client/python/README.md").read_text()
    rows = text.split("| of the standard |")[1].split("\n\n")[0].splitlines()[2:]
    cells = [row.split("|")[1] for row in rows]
    return {name.strip().strip("`") for cell in cells for name in cell.split(",")}


def test_names(gd):
    xp = gd.array_api
    assert len(STANDARD) == len(set(STANDARD)) and len(xp.__all__) == len(set(xp.__all__))
    assert set(xp.__all__) <= set(STANDARD) and set(xp.linalg.__all__) <= set(LINALG)
    assert {name for name in vars(xp) if not name.startswith("_")} | {
        "__array_api_version__", "__array_namespace_info__"} == set(xp.__all__)
    missing = set(STANDARD) - set(xp.__all__)
    missing |= {f"linalg.{name}" for name in set(LINALG) - set(xp.linalg.__all__)}
    missing |= {name for name in PROTOCOL if not hasattr(gd.Lazy, name) and name != "__complex__"}
    # __iter__ and __setitem__ are there, and say what to write instead, but for x[mask] = number
    assert missing | {"__iter__", "__setitem__"} | set(refused(gd)) | OTHERS == told(), "the README tells all"
    assert len(told()) <= 40
    assert xp.__array_api_version__ == "2025.12" and dir(xp) == sorted(xp.__all__)


def refused(gd):
    """What is there and takes less than the standard says: a call of each that is refused."""
    xp = gd.array_api
    stack = xp.ones((3, 3500, 3500))
    return {"reshape(copy=False)": lambda: xp.reshape(xp.ones((2, 3)), (3, 2), copy=False),
            "isin": lambda: xp.isin(xp.ones(3), xp.arange((1 << 18) + 1, dtype=xp.int64)),
            "linalg.solve": lambda: xp.linalg.solve(stack, stack),
            **{f"linalg.{name}": lambda name=name: getattr(xp.linalg, name)(stack) for name in (
                "cholesky", "det", "inv", "slogdet", "qr", "svd", "svdvals", "eigh", "eigvalsh", "pinv",
                "matrix_rank")}}


def test_deviations_are_still_there(gd):
    """What the README says is refused is; whoever mends it takes it out of the table."""
    for name, call in refused(gd).items():
        with pytest.raises((gd.Unsupported, gd.BadShape, gd.LimitExceeded, gd.TooLargeForPool)):
            print(name, call())
    xp, a = gd.array_api, np.ones((1, 2, 3), "f4")
    x = y = xp.asarray(a)
    x += np.ones(3)
    assert x.dtype == "f8" and y.dtype == "f4" and y.T.shape == (3, 2, 1)
    copied = xp.astype(y, "f4", copy=True)
    a[:] = 2
    assert xp.max(copied) == 2
    for call in (iter, lambda x: range(3)[x], lambda x: x.__setitem__(0, 1)):
        with pytest.raises(TypeError):
            call(gd.lazy([1]))


def test_linalg(gd):
    """Beside NumPy's, of matrices, stacks of them and vectors."""
    xl, nl, rng = gd.array_api.linalg, np.linalg, np.random.default_rng(3)
    for dtype, shape in itertools.product(("f8", "f4"), ((4, 4), (2, 3, 5, 5))):
        x = rng.normal(size=shape).astype(dtype)
        good = x @ x.swapaxes(-1, -2) + 4 * np.eye(shape[-1], dtype=dtype)
        tall = np.concatenate([x, x * 2 + 1], -2)
        rank = x.copy()
        rank[..., 1, :] = rank[..., 0, :]
        calls = [("cholesky", good), ("det", x), ("inv", good), ("slogdet", x), ("solve", good, x),
                 ("diagonal", tall), ("eigvalsh", good), ("matrix_norm", tall), ("matrix_rank", rank),
                 ("matrix_transpose", tall), ("pinv", tall), ("svdvals", tall), ("trace", x),
                 ("vecdot", x, good), ("cross", x[..., :3], good[..., :3]), ("matmul", tall, x),
                 ("tensordot", x, good.swapaxes(0, -2).swapaxes(1, -1)), ("outer", x.ravel()[:7], x.ravel()[:3])]
        calls += [("matrix_power", good, n) for n in (0, 1, 2, 5, -2)]
        for name, *args in calls:
            got = getattr(xl, name)(*[gd.lazy(one) if isinstance(one, np.ndarray) else one for one in args])
            want = getattr(nl, name)(*args)
            for a, b in zip(*[one if isinstance(one, tuple) else (one,) for one in (got, want)], strict=True):
                assert type(a) is gd.Lazy and a.shape == np.shape(b), name
                assert name == "matrix_rank" or a.dtype == np.asarray(b).dtype, (name, a.dtype)
                np.testing.assert_allclose(np.asarray(a), b, 5e-3 if dtype == "f4" else 1e-9, 1e-3, err_msg=name)
        for how in ({}, {"ord": 1}, {"ord": -np.inf, "keepdims": True}, {"ord": 2}, {"ord": "nuc"}):
            np.testing.assert_allclose(xl.matrix_norm(x, **how), nl.matrix_norm(x, **how), 1e-4)
        for axis, ord, keepdims in itertools.product((None, 0, -1, (0, -1)), (2, 1, 0, 3.5, np.inf, -np.inf, -1),
                                                     (False, True)):
            how = dict(axis=axis, ord=ord, keepdims=keepdims)
            got = xl.vector_norm(x, **how)
            assert got.dtype == dtype
            np.testing.assert_allclose(got, nl.vector_norm(x, **how), 1e-4, err_msg=str(how))
        w, v = xl.eigh(good)
        np.testing.assert_allclose(good @ v.compute(), v.compute() * w.compute()[..., None, :], atol=2e-4)
        for mode in ("reduced", "complete"):
            q, r = xl.qr(tall, mode=mode)
            assert q.shape == nl.qr(tall, mode).Q.shape
            np.testing.assert_allclose(q @ r, tall, atol=1e-4)
        for is_full in (True, False):
            u, s, vh = xl.svd(tall, full_matrices=is_full)
            assert u.shape == nl.svd(tall, is_full).U.shape
            np.testing.assert_allclose((u[..., :s.shape[-1]] * s[..., None, :]) @ vh, tall, atol=1e-4)
    assert xl.vector_norm(np.array([3, 4])).compute() == 5 and xl.trace(np.ones((3, 3), "i4"), offset=1).compute() == 2
    for bad in (lambda: xl.cross(np.ones(2), np.ones(2)), lambda: xl.matrix_power(np.ones((2, 3)), 2),
                lambda: xl.inv(np.zeros((2, 2))), lambda: gd.array_api.asarray([1], copy=False)):
        with pytest.raises((ValueError, gd.Error)):
            bad()


def test_functions_of_one_meaning(gd):
    """As of NumPy's, on generated arrays: what has another name or signature than the package's."""
    xp, rng = gd.array_api, np.random.default_rng(12)
    x, i = rng.normal(size=(3, 4)), rng.integers(0, 9, (3, 4))
    wanted = []
    for dtype in (None, "f4", "i2"):
        wanted += [(xp.zeros((2, 3), dtype=dtype), np.zeros((2, 3), dtype)),
                   (xp.asarray(i, dtype=dtype), np.asarray(i, dtype)),
                   (xp.empty((0, 3), dtype=dtype), np.empty((0, 3), dtype)),
                   (xp.zeros_like(xp.asarray(i), dtype=dtype), np.zeros_like(i, dtype)),
                   (xp.empty_like(x, dtype=dtype) * 0, np.zeros_like(x, dtype))]
    wanted += [(xp.asarray(x, copy=True, device="cpu"), x), (xp.asarray([1, 2.5]), np.array([1, 2.5])),
               (xp.clip(x, 0), np.clip(x, 0, None)), (xp.clip(x, -1, 1), np.clip(x, -1, 1)),
               (xp.clip(x, max=0.5), np.clip(x, None, 0.5)), (xp.expand_dims(x), x[None]),
               (xp.expand_dims(x, axis=(0, -1)), x[None, ..., None]),
               (xp.astype(x, xp.float32, copy=False), x.astype("f4")),
               (xp.from_dlpack(x, copy=True), x), (gd.from_dlpack(x), x),
               (xp.bitwise_left_shift(i, 2), i << 2), (xp.reshape(x, (4, 3), copy=True), x.reshape(4, 3)),
               (xp.atan2(x, i), np.arctan2(x, i)), (xp.std(x, correction=1, axis=0), x.std(0, ddof=1))]
    for repeats, axis in itertools.product((2, 0, [3]), (None, 0, -1)):
        wanted += [(xp.repeat(x, repeats, axis=axis), np.repeat(x, repeats, axis)),
                   (np.repeat(gd.lazy(x) + 1, repeats, axis), np.repeat(x + 1, repeats, axis))]
    wanted.append((xp.repeat(x, [2, 0, 1], axis=0), np.repeat(x, [2, 0, 1], 0)))
    for lazy, array in wanted:
        got = np.asarray(lazy)
        assert type(lazy) is gd.Lazy and got.dtype == array.dtype and got.shape == array.shape
        np.testing.assert_allclose(got, array, 1e-14)
    for shapes in [((2, 1), (3,)), ((),), (4, (2, 1, 1)), ((0, 1), (1, 5))]:
        assert xp.broadcast_shapes(*shapes) == np.broadcast_shapes(*shapes)


def test_what_the_standard_says_otherwise_than_numpy(gd):
    xp = gd.array_api
    x = xp.asarray(np.array([[1.0, 2], [3, 5]], "f4"))
    for name, correction in itertools.product(("std", "var"), (2, 3.5)):
        got = getattr(xp, name)(x, axis=1, correction=correction).compute()
        assert got.dtype == "f4" and np.isnan(got).all(), "NumPy's is infinite"
        assert getattr(xp, name)(x, correction=correction).compute() == pytest.approx(
            getattr(np, name)(x.compute(), ddof=correction)) or correction > 4
    info = xp.finfo(x)
    assert info.dtype == "f4" and info.bits == 32
    for name in ("eps", "max", "min", "smallest_normal"):
        assert type(getattr(info, name)) is float and getattr(info, name) == getattr(np.finfo("f4"), name)
    assert xp.astype(x, xp.float32, copy=False) is x and xp.astype(x, xp.float32) is not x
    assert xp.asarray(x, copy=False) is x and xp.asarray(x.compute(), copy=False).shape == (2, 2)
    for other, error in (([1], AttributeError), (np.array(["a"]), BufferError)):
        with pytest.raises(error):
            xp.from_dlpack(other)
    for call in (xp.linalg.eigh, xp.linalg.svd, xp.linalg.svdvals, xp.linalg.eigvalsh, xp.linalg.qr):
        found, want = call(np.zeros((0, 0), "f4")), getattr(np.linalg, call.__name__, np.linalg.svd)(np.zeros((0, 0), "f4"))
        if isinstance(found, tuple):
            assert [one.shape for one in found] == [one.shape for one in want]
        else:
            assert found.shape == (0,) and found.dtype == "f4"


def test_protocol(gd):
    a = np.arange(6, dtype="f4").reshape(2, 3)
    x = gd.lazy(a) * 2
    xp = x.__array_namespace__(api_version="2024.12")
    assert xp.__name__ == "gpuarrayd.array_api" and xp.sqrt is gd.array_api.sqrt
    assert dir(xp) == dir(gd.array_api) and xp.pad is np.pad
    assert x.device == "cpu" and x.to_device("cpu") is x and x.__dlpack_device__() == (1, 0)
    assert np.array_equal(np.from_dlpack(x), a * 2) and x.tolist() == (a * 2).tolist()
    assert x.real is x and x.conj() is x and x.imag.tolist() == [[0] * 3] * 2 and x.imag.dtype == "f4"
    assert complex(x[1, 1]) == 8 and x.sum().tolist() == 30.0
    info = gd.array_api.__array_namespace_info__()
    assert info.devices() == ("cpu",) and info.default_device() == "cpu"
    assert info.default_dtypes()["integral"] == np.int64
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert set(info.dtypes()) == {*info.dtypes(kind=("bool", "integral")), "float32", "float64"}
    n = info.capabilities()["max dimensions"]
    assert (gd.lazy(np.ones((1,) * n)) + 1).tolist() == (np.ones((1,) * n) + 1).tolist()
    with pytest.raises(gd.Error):
        (gd.lazy(np.ones((1,) * (n + 1))) + 1).compute()


@pytest.mark.parametrize("call, error", [
    (lambda gd: gd.lazy([1]).__array_namespace__(api_version="2019.12"), "BadArgument"),
    (lambda gd: gd.lazy([1]).to_device("cuda"), "Unsupported"),
    (lambda gd: gd.array_api.zeros(3, device="cuda:0"), "Unsupported"),
    (lambda gd: gd.array_api.asarray(1j), "Error"),
    (lambda gd: gd.array_api.asarray(np.ones(2), dtype="f4", copy=False), "BadArgument"),
    (lambda gd: gd.array_api.repeat([1, 2], -1), "BadArgument"),
    (lambda gd: gd.array_api.repeat([1, 2], [1, 2, 3]), "BadArgument"),
    (lambda gd: gd.array_api.broadcast_shapes((2,), (3,)), "BadShape"),
    (lambda gd: gd.lazy([1]).__setitem__(0, 1), "Unsupported")])
def test_refused(gd, call, error):
    with pytest.raises(getattr(gd, error, None) or getattr(gd.errors, error)):
        call(gd)


def test_numbers_under_a_mask(gd, tmp_path):
    for dtype, value in itertools.product(("f8", "f4", "i2", "?"), (0, 1, np.int8(1))):
        a = (np.arange(12).reshape(3, 4) * 3 % 7 - 3).astype(dtype)
        x = gd.lazy(a.copy())
        before, part = x + 1, x[1]
        x[x < 1], a[a < 1] = value, value
        x[a == 3], a[a == 3] = gd.sum(x).astype(dtype), a.sum().astype(dtype)
        assert x.dtype == dtype and np.array_equal(np.asarray(x), a)
        assert (before[1] == part + 1).compute().all(), "what was made of it before"
    large = np.array([2**53 + 1, -1])
    x, mask = gd.lazy(large), large < 0
    others = [copy.copy(x), gd.array_api.asarray(x, copy=True), x[:]]
    x[mask] = 1.0  # which float64 would not hold
    mask[:] = True
    assert np.array_equal(np.asarray(x), [2**53 + 1, 1])
    assert all(np.array_equal(np.asarray(other), large) for other in others)
    np.save(tmp_path / "x.npy", large)
    with pytest.raises(gd.Unsupported, match="gd.where"):
        gd.open(tmp_path / "x.npy", "r+")[large < 0] = 0
    for key, value in ((0, 1), (a > 0, [1]), (a[0] > 0, 1), (slice(None), 1), (np.ones((3, 4), int), 1)):
        with pytest.raises(gd.Unsupported, match="gd.where"):
            x[key] = value
    assert np.array_equal(np.asarray(gd.lazy(a)[:gd.sum(gd.lazy([1, 1]))]), a[:2])
    with pytest.raises(TypeError):
        gd.lazy(a)[:gd.lazy(1.5)]


def principal(xp, x, wanted):
    """What scikit-learn's PCA asks of an array's namespace, with its solver "covariance_eigh"."""
    n = x.shape[0]
    mean = xp.reshape(xp.asarray(xp.mean(x, axis=0)), (-1,))
    c = x.T @ x
    c -= n * xp.reshape(mean, (-1, 1)) * xp.reshape(mean, (1, -1))
    c /= n - 1
    values, vectors = xp.linalg.eigh(c)
    values = xp.flip(xp.reshape(xp.asarray(values), (-1,)), axis=0)
    vectors = xp.flip(xp.asarray(vectors), axis=1)
    values[values < 0.0] = 0.0
    rows = vectors.T
    largest = xp.argmax(xp.abs(rows), axis=1)
    signs = xp.sign(xp.take_along_axis(rows, xp.reshape(largest, (-1, 1)), axis=1))
    shares = xp.cumulative_sum(values / xp.sum(values))
    n_kept = xp.searchsorted(shares, xp.asarray(wanted), side="right") + 1
    return values[:n_kept], xp.asarray((rows * signs)[:n_kept, :], copy=True), xp.sqrt(values * (n - 1))


def test_principal_components(gd, tmp_path):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(500, 6)) @ rng.normal(size=(6, 9))  # three eigenvalues are about 0
    np.save(tmp_path / "x.npy", x)
    lazy = gd.open(str(tmp_path / "x.npy"))
    for got, want in zip(principal(lazy.__array_namespace__(), lazy, 0.9), principal(np, x, 0.9), strict=True):
        assert isinstance(got, gd.Lazy) and got.shape == want.shape
        np.testing.assert_allclose(got, want, atol=1e-5)


def test_in_xarray(gd):
    """What it asks the namespace for, and NumPy's names behind it."""
    xarray = pytest.importorskip("xarray")
    a = np.random.default_rng(1).random((12, 4))
    a[3, 1] = np.nan
    times = np.datetime64("2001-01", "M") + np.arange(12)
    lazy, array = [xarray.DataArray(one, dims=("t", "x"), coords={
        "t": times.astype("M8[s]"), "x": [0, 1, 3, 7.5]})
        for one in (gd.lazy(a), a)]
    for call in (lambda d: d.mean("t"), lambda d: d.where(d > 0.5, 0).std(), lambda d: d.rolling(t=3).mean(),
                 lambda d: d.shift(t=1), lambda d: d.pad(x=1), lambda d: d.quantile(0.25, "x"),
                 lambda d: d.coarsen(t=3).mean(), lambda d: d.fillna(-1).cumsum("t"),
                 lambda d: d.isel(x=d.fillna(0).argmax("x")), lambda d: d.std("t", skipna=False, ddof=1),
                 lambda d: (d.fillna(0) * 9).astype(int).groupby("t.season").std(),
                 lambda d: d.isin([1, 2]), lambda d: d.sortby("x", ascending=False),
                 lambda d: d.differentiate("x"), lambda d: d.differentiate("x", edge_order=2),
                 lambda d: d.idxmin("x"), lambda d: d.groupby("t.season").mean(),
                 lambda d: d.fillna(0).argmax(["t", "x"])["t"], lambda d: d.fillna(0).argmax(["t", "x"])["x"]):
        np.testing.assert_allclose(call(lazy).values, call(array).values, 1e-12)
        assert isinstance(call(lazy).data, gd.Lazy)
    for call in (lambda d: d.fillna(0).polyfit("x", 2), lambda d: d.polyfit("t", 1)):
        np.testing.assert_allclose(call(lazy).polyfit_coefficients, call(array).polyfit_coefficients, 1e-6)
    for call in (lambda d: d.idxmax("t"), lambda d: d.idxmin("t"),
                 lambda d: d.where(d.x > 0).idxmax("t")):
        np.testing.assert_array_equal(call(lazy).values, call(array).values)
