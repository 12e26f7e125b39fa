"""Arrays that are made of nothing are NumPy's, as they are and in parts, views and expressions, and
take no memory."""

import itertools
import pickle

import numpy as np
import pytest

from catalogue import NUMPY_2, assert_same

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's promotion")

RANGES = [(7,), (0,), (-3,), (2, 9), (9, 2), (9, 2, -2), (-5, 30, 7), (1.5,), (0, 1, 0.1),
          (0.1, 5.3, 0.7), (3, -2, -0.3), (2.5, 2.5), (np.float32(1.1), 9, np.float32(0.3)),
          (np.uint8(3), 9), (2**62, 2**62 + 5), (1e300, 1.0000001e300, 1e292),
          (np.uint8(200), 3.5, 256), (2**62, 0.5, np.int8(5)), (np.float32(0.5), np.uint64(2**63), 1e300)]
LINES = [(0, 1), (3, -4), (-0.0, 0.0), (2, 2), (1e-308, 3e-308), (0, 1e308),
         (np.float32(0.1), np.float32(7.3)), (np.float32(0.1), 7),
         (np.array([0.5, 2], "f4"), 2.5), ([1, 2, 3], 9.5), ([[1.5], [2]], [3, 4, -5.5])]


def same(got, want, name=""):
    got = np.asarray(got)
    assert got.dtype == want.dtype and got.shape == want.shape, (name, got.dtype, want.dtype)
    assert_same(got, np.asarray(want), name)


def check(gd, pairs):
    """Of lazies and what they should be, several in one request."""
    for i in range(0, len(pairs), 12):
        some = pairs[i:i + 12]
        for got, (_, want, name) in zip(gd.compute(*[one for one, _, _ in some]), some):
            same(got, want, name)


def test_the_device_where_results_lie_may_be_named(gd):
    made = [gd.arange(3, device="cpu"), gd.full(3, 7, device="cpu")[:], gd.eye(3, device="cpu")[1],
            gd.linspace(0, 2, 3, device="cpu")]
    assert [one.compute().tolist() for one in made] == [[0, 1, 2], [7, 7, 7], [0, 1, 0], [0, 1, 2]]


def test_arange(gd):
    pairs = []
    for given in RANGES:
        for dtype in (None, "f4", "f8", "i4", "u2"):
            if dtype == "f4" and max(given) > 1e38 or dtype == "u2" and min(given) < 0 or dtype in ("i4", "u2") and max(given) > 2**31:
                continue
            pairs.append((gd.arange(*given, dtype=dtype), np.arange(*given, dtype=dtype),
                          (given, dtype)))
    pairs.append((gd.arange(2, dtype=bool), np.arange(2, dtype=bool), "bool"))
    check(gd, pairs)


def test_linspace(gd):
    pairs = []
    for (first, last), num, endpoint, dtype in itertools.product(
            LINES, (0, 1, 2, 11), (True, False), (None, "i4", "f4")):
        given = dict(num=num, endpoint=endpoint, dtype=dtype)
        if dtype is not None and np.max(np.abs(last), initial=0.0) > np.float64(1e300):
            continue
        pairs.append((gd.linspace(first, last, **given), np.linspace(first, last, **given),
                      (first, last, given)))
    pairs.append((gd.linspace([1, 2, 3], 9, 5, axis=-1), np.linspace([1, 2, 3], 9, 5, axis=-1), ""))
    check(gd, pairs)
    same(gd.linspace(2**70, 1, 3), np.linspace(2.0**70, 1, 3))
    made, step = gd.linspace(2, 5, 7, retstep=True)
    same(made, np.linspace(2, 5, 7))
    assert step == 0.5 and type(step) is np.float64


def test_filled(gd):
    pairs = [(getattr(gd, name)(*given), getattr(np, name)(*given), (name, given))
             for name, given in [
                 ("ones", (3,)), ("ones", ((2, 3), "i2")), ("ones", ((),)), ("ones", ((0, 3),)),
                 ("full", ((2, 3), 7)), ("full", (4, 2.5, "f4")), ("full", ((2, 3), [1, 2, 3])),
                 ("full", ((2, 2), np.uint8(200), "i1")), ("full", ((2,), True)), ("full", ((2, 2), np.float32(3))),
                 ("ones_like", (np.zeros((2, 3), "u1"),)), ("full_like", ([1, 2], 3.7)),
                 ("full_like", (np.zeros(3), 3, "i8")), ("eye", (3,)), ("eye", (3, 5)),
                 ("eye", (4, 2, -1)), ("eye", (3, 4, 2, "i4")), ("eye", (3, 3, 9)), ("eye", (0,)),
                 ("eye", (1,)), ("eye", (1, 4)), ("eye", (4, 1, -2, bool))]]
    pairs.append((gd.full(3, gd.lazy(2.5)), np.full(3, 2.5), "lazy"))
    check(gd, pairs)


@pytest.mark.parametrize("dtype", ["f4", "i2", "?", "u8"])
def test_triangles(gd, dtype):
    rng, pairs = np.random.default_rng(5), []
    for shape in [(3,), (1, 1), (4, 4), (3, 5), (5, 2), (2, 3, 4), (0, 3), (1, 4), (4, 1)]:
        m = rng.integers(-9, 9, shape).astype(dtype)
        for k, name in itertools.product((-2, 0, 1), ("tril", "triu")):
            pairs.append((getattr(gd, name)(m, k), getattr(np, name)(m, k), (name, shape, k)))
    pairs.append((np.tril(gd.lazy(m), -1), np.tril(m, -1), "np"))
    check(gd, pairs)


def test_meshgrid_and_broadcasts(gd):
    x, y, z = np.arange(3.0), np.array([5, 7], "i2"), np.array(2.5)
    pairs = []
    for given, sparse, indexing in itertools.product(
            [(), (x,), (x, y), (x, y, z), (x, y, x)], (True, False), ("xy", "ij")):
        got = gd.meshgrid(*given, sparse=sparse, indexing=indexing)
        want = np.meshgrid(*given, sparse=sparse, indexing=indexing)
        assert type(got) is tuple and len(got) == len(want)
        pairs += [(a, b, indexing) for a, b in zip(got, want)]
    for shape in [(3,), (2, 3), (0, 3), (4, 1, 3)]:
        pairs.append((gd.broadcast_to(x, shape), np.broadcast_to(x, shape), shape))
        pairs.append((np.broadcast_to(gd.sqrt(x), shape), np.broadcast_to(np.sqrt(x), shape), ""))
    column = y[:, None]
    pairs += [(a, b, "") for a, b in zip(np.broadcast_arrays(gd.lazy(x), column, 3),
                                         np.broadcast_arrays(x, column, 3))]
    cube = np.arange(24).reshape(2, 3, 4)
    pairs.append((gd.matrix_transpose(cube), cube.swapaxes(1, 2), ""))
    check(gd, pairs)


def ramps(gd):
    """Lazies of several shapes, made of nothing, and what they are."""
    return [(gd.arange(12), np.arange(12)), (gd.arange(30, 2, -2.5), np.arange(30, 2, -2.5)),
            (gd.arange(24).reshape(4, 6), np.arange(24).reshape(4, 6)),
            (gd.linspace(0, 1, 24).reshape(2, 3, 4), np.linspace(0, 1, 24).reshape(2, 3, 4)),
            (gd.eye(4, 6, 1), np.eye(4, 6, 1)),
            (gd.arange(4)[:, None] - gd.arange(6) * 2, np.arange(4)[:, None] - np.arange(6) * 2),
            (gd.triu(gd.arange(36).reshape(6, 6)), np.triu(np.arange(36).reshape(6, 6)))]


def test_parts_and_views(gd):
    """A part is what the part of the array is, from whichever element on."""
    rng, pairs = np.random.default_rng(3), []
    for lazy, array in ramps(gd):
        for _ in range(12):
            key = tuple([[slice(None, None, -1), slice(1, None, 2), slice(-2, None, -1), slice(2, 2),
                          int(rng.integers(size)), None][int(rng.integers(6))]
                         for size in array.shape])
            key = tuple([slice(None) if one is None and rng.random() < 0.5 else one for one in key])
            if array[key].ndim <= array.ndim + 2 and np.ndim(array[key]):
                pairs.append((lazy[key], array[key], key))
        pairs += [(lazy.T, array.T, "T"), (lazy.T[::-1], array.T[::-1], ""),
                  (lazy.ravel()[1::3], array.ravel()[1::3], "ravel"), (gd.flip(lazy), np.flip(array), ""),
                  (lazy.T.ravel(), array.T.ravel(), "T.ravel"),
                  (gd.roll(lazy, 2, 0), np.roll(array, 2, 0), "roll"),
                  (gd.pad(lazy, 1, mode="edge"), np.pad(array, 1, mode="edge"), "pad"),
                  (gd.concatenate([lazy, lazy + 1]), np.concatenate([array, array + 1]), ""),
                  (lazy[[2, 0, 1, 1]] if len(array) > 2 else lazy, array[[2, 0, 1, 1]]
                   if len(array) > 2 else array, "fancy"),
                  (lazy[array > 3], array[array > 3], "mask")]
    check(gd, pairs)


def test_reductions_and_the_like(gd):
    pairs = []
    for lazy, array in ramps(gd):
        x = np.linspace(-1, 1, array.size).reshape(array.shape)
        for axis in (None, 0, -1):
            pairs += [((lazy * x).sum(axis), (array * x).sum(axis), "sum"),
                      (lazy.max(axis=axis), array.max(axis=axis), "max"),
                      (gd.argmin(lazy - x, axis), np.argmin(array - x, axis), "argmin")]
        pairs += [(lazy - lazy.max(axis=-1, keepdims=True), array - array.max(-1, keepdims=True), ""),
                  (gd.diff(lazy), np.diff(array), "diff"),
                  (np.cumsum(lazy, axis=0), np.cumsum(array, axis=0), "cumsum"),
                  (np.median(lazy), np.median(array), "median"),
                  (gd.take(np.arange(50.0) * 2, abs(lazy.astype(int)) % 50),
                   (np.arange(50.0) * 2)[abs(array.astype(int)) % 50], "take")]
    for got, (_, want, name) in zip([one.compute() for one, _, _ in pairs], pairs, strict=True):
        np.testing.assert_allclose(got, want, 1e-14, 1e-14, err_msg=str(name))


def test_other_places(gd):
    """Tables, bins, operands of products, neighbours: what counts in an array of its own."""
    rng = np.random.default_rng(8)
    x, table = rng.random((5, 6)) * 9, np.arange(0, 9, 1.5)
    pairs = [(gd.searchsorted(gd.arange(0, 9, 1.5), x), np.searchsorted(table, x), ""),
             (gd.searchsorted(table, gd.linspace(0, 9, 30)),
              np.searchsorted(table, np.linspace(0, 9, 30)), ""),
             (gd.digitize(x, gd.arange(0, 9, 1.5)), np.digitize(x, table), ""),
             (gd.histogram(gd.arange(100) % 7, bins=gd.arange(0, 8))[0],
              np.histogram(np.arange(100) % 7, bins=np.arange(0, 8))[0], ""),
             (gd.bincount(gd.arange(100) % 7, length=7), np.bincount(np.arange(100) % 7), ""),
             (gd.lazy(x) @ gd.arange(12.0).reshape(6, 2), x @ np.arange(12.0).reshape(6, 2), ""),
             (gd.arange(5.0) @ x, np.arange(5.0) @ x, ""), (gd.eye(5) @ x, x, ""),
             (gd.einsum("ij,j->i", x, gd.arange(6.0)), x @ np.arange(6.0), ""),
             (gd.near(gd.arange(6) * 2, 1), np.minimum(np.arange(6) + 1, 5) * 2, "near"),
             (gd.window_sum(gd.arange(8.0), 3, mode="wrap"),
              np.array([8.0, 3, 6, 9, 12, 15, 18, 13]), "window"),
             (gd.where(gd.arange(6) > 2, x, 0), np.where(np.arange(6) > 2, x, 0), ""),
             (gd.arange(1) + x, x, "one"), (gd.arange(3, 4)[:, None] * x, 3 * x, "")]
    for got, want, name in pairs:
        np.testing.assert_allclose(got.compute(), want, 1e-12, err_msg=str(name))


def test_what_goes_elsewhere(gd, tmp_path):
    lazy = gd.arange(24, dtype="f4").reshape(4, 6) * 2
    again = pickle.loads(pickle.dumps(lazy))
    same(again.compute(), np.arange(24, dtype="f4").reshape(4, 6) * 2)
    gd.save(tmp_path / "a.npy", lazy[1:])
    same(np.load(tmp_path / "a.npy"), np.arange(24, dtype="f4").reshape(4, 6)[1:] * 2)
    assert "index(-1)" in repr(gd.arange(5))
    blocks = [*gd.stream(gd.arange(10), rows=4)]
    assert [len(one) for one in blocks] == [4, 4, 2] and np.concatenate(blocks).tolist() == [*range(10)]


def test_they_take_no_memory(gd):
    """A tebibyte of each; the shape of what is shown is that of a part."""
    n = 2**20
    for lazy, part in [(gd.arange(n * n).reshape(n, n)[5::2, ::-n // 2], [[6 * n - 1, 6 * n - 1 - n // 2]]),
                       (gd.eye(n)[3:5, 3:5], np.eye(2)), (gd.ones((n, n))[:1, :1], [[1]]),
                       (gd.tril(gd.full((n, n), 3))[-1:, -2:], [[3, 3]]),
                       (gd.meshgrid(gd.arange(n), gd.arange(n))[1][7:8, :2], [[7, 7]]),
                       (gd.linspace(0, n, n * n + 1)[n::n * n // 2 - 1][None], None)]:
        got = lazy.compute() if part is None else lazy[:len(part)].compute()
        if part is not None:
            assert got.tolist() == np.asarray(part).tolist()


@pytest.mark.parametrize("call, error", [
    (lambda gd: gd.arange(1, 2, 0), "BadArgument"), (lambda gd: gd.arange([1, 2]), TypeError),
    (lambda gd: gd.arange(gd.lazy(3)), TypeError), (lambda gd: gd.arange(0, np.inf), "BadArgument"),
    (lambda gd: gd.arange(3, dtype=bool), "BadDtype"), (lambda gd: gd.arange(3, dtype="c16"), "Unsupported"),
    (lambda gd: gd.arange(3, device="cuda:0"), "Unsupported"),
    (lambda gd: gd.arange(-1, 3, dtype="u1"), OverflowError),
    (lambda gd: gd.arange(100, 300, 100, dtype="i1"), "BadArgument"),
    (lambda gd: gd.arange(-2**63, 2**62, 2**62, dtype="i4"), OverflowError),
    (lambda gd: gd.full(2, 300, "u1"), OverflowError), (lambda gd: gd.full(2, -1, "u8"), "BadArgument"),
    (lambda gd: gd.arange(2**64, 2**64 + 3), Exception), (lambda gd: gd.arange(1e30), "BadShape"),
    (lambda gd: gd.linspace(0, 1, 2**70), "BadShape"), (lambda gd: gd.linspace("a", 1), "BadDtype"),
    (lambda gd: gd.linspace(0, 1, -1), "BadArgument"),
    (lambda gd: gd.linspace(gd.lazy(1.0), 2), "Unsupported"), (lambda gd: gd.ones(-1), "BadShape"),
    (lambda gd: gd.full((2, 3), [1, 2]), "BadShape"), (lambda gd: gd.full(2, "a"), "Unsupported"),
    (lambda gd: gd.ones(2, order="F"), "Unsupported"), (lambda gd: gd.eye(-1), "BadShape"),
    (lambda gd: gd.tril(3), "BadShape"), (lambda gd: gd.broadcast_to([1, 2], (3,)), "BadShape"),
    (lambda gd: gd.broadcast_to([1, 2], -1), "BadShape"),
    (lambda gd: gd.broadcast_arrays([1, 2], [1, 2, 3]), "BadShape"),
    (lambda gd: gd.meshgrid([1], indexing="yx"), "BadArgument"),
    (lambda gd: gd.matrix_transpose([1]), "BadShape")])
def test_refused(gd, call, error):
    with pytest.raises(getattr(gd.errors, error, None) if isinstance(error, str) and error != "Unsupported"
                       else gd.Unsupported if isinstance(error, str) else error):
        call(gd)
