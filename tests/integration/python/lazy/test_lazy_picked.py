"""Lazies indexed by arrays and masks against NumPy: sources of every kind, shapes, dtypes, orders,
expressions, tiny pools and windows, and what is refused."""

import itertools
import os
import pickle

import h5py
import numpy as np
import pytest

SHAPE = (60, 7, 5)


def same(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype.newbyteorder("="), want.shape)
    assert np.array_equal(got, want)


def sources(gd, folder, a):
    """The same array in places of every kind."""
    np.save(folder / "c.npy", a)
    np.save(folder / "f.npy", np.asfortranarray(a))
    np.savez_compressed(folder / "z.npz", a=a)
    for i, part in enumerate(np.array_split(a, 4)):
        np.save(folder / f"part{i}.npy", part)
    with h5py.File(folder / "a.h5", "w") as f:
        f.create_dataset("plain", data=a)
        f.create_dataset("chunks", data=a, chunks=(7, 3, 5))
        f.create_dataset("packed", data=a, chunks=(9, 7, 2), compression="gzip")
    names = ["c.npy", "f.npy", "z.npz:a", "part*.npy", "a.h5:/plain", "a.h5:/chunks", "a.h5:/packed"]
    shared = gd.empty(a.shape, a.dtype.newbyteorder("="))
    shared[...] = a
    return [*[gd.open(folder / name) for name in names], gd.lazy(a), gd.lazy(shared),
            gd.lazy(np.repeat(a, 2, -1)[..., ::2]), gd.lazy(a)[::-1][::-1]]


def keys(rng, shape):
    n, m, k = shape
    mask = rng.random(shape) < 0.3
    yield rng.integers(-n, n, 200)
    yield slice(None), rng.integers(-m, m, (3, 2))
    yield Ellipsis, rng.integers(-k, k, 4).astype("i1"), slice(1, 4)
    yield Ellipsis, rng.integers(0, k, 9).astype("u8")
    yield rng.integers(0, n, 30).astype(">i4"), slice(None, None, -2), 3
    yield 0, slice(None), rng.integers(0, k, 3)
    yield rng.integers(0, n, 8), rng.integers(-m, m, 8)
    yield rng.integers(0, n, (4, 1)), slice(1, 3), rng.integers(0, k, 3)
    yield None, [3, 1, 1], None
    yield [], slice(2)
    yield mask
    yield mask[:, 0, 0]
    yield slice(None), mask[0]
    yield mask[:, :, 1], [1] * int(mask[:, :, 1].sum())
    yield np.zeros(shape, bool)
    yield slice(5, 50, 3), np.arange(m)[::-1]
    yield np.array(3), slice(None), [0, 2]
    yield [2, 1], Ellipsis, [0, 3]
    yield np.array(-2)
    yield slice(1, 9), np.array(1, "u1")
    yield np.array(2), slice(None), np.array(-1, ">i2")


@pytest.mark.parametrize("dtype", ["f4", "?", ">i2", "u8"])
def test_every_source_and_key_is_numpys(gd, tmp_path, dtype):
    rng = np.random.default_rng(5)
    a = rng.integers(0, 200 if dtype != "?" else 2, SHAPE).astype(dtype)
    found = sources(gd, tmp_path, a)
    for i, key in enumerate(keys(rng, SHAPE)):
        # every source with some keys, and every key with some sources
        for x in found[i % 3::3]:
            got = x[key]
            assert got.shape == a[key].shape, key
            same(got.compute(), a[key])


def test_keys_beside_no_axes(gd):
    """An ellipsis that stands for no axis, and masks without axes, which are along one of their
    own."""
    yes, no = np.asarray(True), np.asarray(False)
    for a in (np.arange(3.), np.arange(6).reshape(2, 3), np.asarray(5)):
        wanted = [(yes,), (no,), (yes, ...), (..., no), (no, None, yes)]
        if a.ndim:
            wanted += [(..., *[[1, 0]] * a.ndim), (0, yes), (slice(None), yes), ([0, 1], yes),
                       (*[1] * (a.ndim - 1), ..., [-1, 0, 0])]
        if a.ndim == 2:
            wanted += [(..., [1, 1], None, 2), (slice(1, None), yes, [0, 2])]
        for key in wanted:
            same(gd.lazy(a)[key].compute(), a[key])
            same((gd.lazy(a) + 1)[key].compute(), (a + 1)[key])
    same((gd.lazy(a) * 2)[gd.lazy(a) > 4].compute(), np.asarray([10]))


def test_several_arrays_that_are_computed(gd):
    a = np.random.default_rng(8).random(SHAPE)
    x, i, j = gd.lazy(a), np.array([[3], [-60]]), np.array([0, 4, -5])
    for lazy, array in ((x, a), (x * 2, a * 2)):
        same(lazy[gd.lazy(i) + 0, j].compute(), array[i, j])
        same(lazy[i, ..., gd.lazy(j) - 0].compute(), array[i, ..., j])
        same(lazy[gd.lazy(i).astype("i1") * 1, gd.lazy(j)].compute(), array[i, j])
        same(lazy[:2, np.arange(7), gd.argmax(lazy[0], axis=1)].compute(),
             array[:2, np.arange(7), array[0].argmax(1)])


def test_take_is_numpys(gd, tmp_path):
    rng = np.random.default_rng(6)
    a = rng.normal(size=SHAPE)
    x = sources(gd, tmp_path, a)[6]
    for axis, mode in itertools.product((0, 1, -1, None), ("raise", "wrap", "clip")):
        size = a.size if axis is None else SHAPE[axis]
        far = 1 if mode == "raise" else 3
        where = rng.integers(-size * far, size * far, (4, 3))
        same(gd.take(x, where, axis, mode=mode).compute(), np.take(a, where, axis, mode=mode))
    same(np.take(x, 3, axis=1).compute(), a.take(3, axis=1))
    same(x.take([[True]], axis=1).compute(), a.take([[True]], axis=1))
    out = np.empty((2, 7, 5))
    assert x.take([1, 2], 0, out) is out
    same(out, a[1:3])
    large = np.arange(200000.)
    same(gd.take(large, np.arange(0, 200000, 7)[::-1]).compute(), large[::7][::-1][-28572:])


def test_take_along_axis_is_numpys(gd, tmp_path):
    rng = np.random.default_rng(5)
    a = rng.integers(-1000, 1000, SHAPE)
    for one in sources(gd, tmp_path, a):
        for axis in (-1, 0, 1):
            order = np.argsort(a, axis)
            same(np.take_along_axis(one, order, axis), np.take_along_axis(a, order, axis))
        some = rng.integers(-7, 7, (1, 3, 5))
        same(gd.take_along_axis(one, gd.lazy(some), 1), np.take_along_axis(a, some, 1))
    flat = rng.integers(0, a.size, 9)
    same(gd.take_along_axis(a, flat, None), np.take_along_axis(a, flat, None))
    same(gd.take_along_axis(a[0, 0], [3, 1]) * 2, np.take_along_axis(a[0, 0], np.array([3, 1])) * 2)
    for bad, kind in ((a[0] % 5, ValueError), (a > 0, IndexError), (a * 1.5, IndexError),
                      (a * 0 + 60, IndexError)):
        with pytest.raises(kind):
            np.take_along_axis(gd.lazy(a), bad, 0).compute()
        with pytest.raises(kind):
            np.take_along_axis(a, bad, 0)


def test_expressions_are_taken_apart(gd):
    rng = np.random.default_rng(7)
    a, b, c = rng.normal(size=(50, 6)), rng.normal(size=6), rng.normal(size=(50, 1))
    x, y, z = gd.lazy(a), gd.lazy(b), gd.lazy(c)
    i, j = rng.integers(-50, 50, (3, 9)), rng.integers(-6, 6, 4)
    for made, want in ((x * 2 + y, a * 2 + b), (x - x.mean(), a - a.mean()), (z * y, c * b),
                       (gd.where(x > 0, x, z), np.where(a > 0, a, c)),
                       (x.sum(axis=1, keepdims=True) + y, a.sum(axis=1, keepdims=True) + b)):
        for key in ((i,), (slice(None), j), (i[0, :4], j), (want > 0,)):
            np.testing.assert_allclose(made[key].compute(), want[key], rtol=1e-12)
    same((x[x > 0.5] * 2 + 1).compute(), a[a > 0.5] * 2 + 1)
    same(x[(x * 2).argmax(axis=0)].compute(), a[a.argmax(axis=0)])
    same(x.cumsum(axis=0)[[3, 1]].compute(), a.cumsum(axis=0)[[3, 1]])
    same(x[[5, 4, 3]][[0, 2], 1:3].T.compute(), a[[5, 4, 3]][[0, 2], 1:3].T)
    np.testing.assert_allclose((x @ x.T)[[3, 1]].compute(), (a @ a.T)[[3, 1]])
    assert float((x[i] * 2).sum()) == pytest.approx((a[i] * 2).sum())
    assert gd.evaluate("max(p)", p=x[[1, 3]]) == a[[1, 3]].max()
    noise = gd.random.normal(seed=3, size=(20, 3))
    same(noise[[7, 1]].compute(), noise.compute()[[7, 1]])


def test_places_of_what_is_not_zero(gd):
    a = np.random.default_rng(8).integers(0, 3, (11, 13, 3))
    x = gd.lazy(a)
    same(gd.flatnonzero(x).compute(), np.flatnonzero(a))
    for got, want in zip(np.nonzero(x > 1), np.nonzero(a > 1), strict=True):
        same(got.compute(), want)


def test_a_large_mask_keeps_a_bit_for_each_element(gd):
    """Those that stand here are counted by NumPy up to a size: this is larger."""
    rng = np.random.default_rng(9)
    mask = rng.random((1200, 1000)) < 0.001
    mask[700:705] = True
    a = np.arange(mask.size, dtype="i4").reshape(mask.shape)
    found = gd.lazy(a)[gd.lazy(mask)]
    same(found.compute(), a[mask])
    same(found[100:200:3].compute(), a[mask][100:200:3])
    same(pickle.loads(pickle.dumps(found)).compute(), a[mask])
    same(gd.lazy(np.asfortranarray(a))[np.asfortranarray(mask)].compute(), a[mask])


def test_files_that_are_indices_and_results(gd, tmp_path):
    rng = np.random.default_rng(10)
    a, i = rng.normal(size=(5000, 40)).astype("f4"), rng.integers(0, 5000, 20000)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "i.npy", i.astype(">u2"))
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("a", data=a, chunks=(64, 40), compression="gzip")
    for name in ("a.npy", "a.h5:/a"):
        picked = gd.open(tmp_path / name)[gd.open(tmp_path / "i.npy")]
        same(gd.save(tmp_path / "o.npy", picked).compute(), a[i])
        same(picked.T.compute(), a[i].T)  # which walks through it another way


@pytest.mark.parametrize(("key", "kind", "words"), [
    ([1, 60], "BadIndex", r"index 60 at place \(1,\).*axis 0 with size 60"),
    ([[0, 0], [0, -61]], "BadIndex", r"index -61 at place \(1, 1\)"),
    ((slice(None), [7]), "BadIndex", r"index 7 at place \(0,\).*axis 1 with size 7"),
    (([1, 60], [0, 0]), "BadIndex", r"index 60 at place \(1,\) of indexing array 0"),
    (([1, 2], [0, 0, 0]), "BadIndex", "broadcast together"),
    (np.zeros(59, bool), "BadIndex", "boolean index did not match"),
    (np.zeros((60, 6), bool), "BadIndex", "along axis 1; its size is 7"),
    ([0.5], "NoIndex", "integers or bool, not float64"),
    (([1],) * 4, "IndexError", "too many indices"),
    ((Ellipsis, [1], Ellipsis), "IndexError", "single ellipsis"),
    (True, "Unsupported", "True or False"),
])
def test_what_is_no_index(gd, key, kind, words):
    x = gd.lazy(np.zeros(SHAPE))
    with pytest.raises((IndexError, TypeError), match=words) as raised:
        x[key].compute()
    assert type(raised.value).__name__ == kind


def test_what_else_is_refused(gd, tmp_path):
    x = gd.lazy(np.zeros(SHAPE))
    with pytest.raises(gd.Unsupported, match=r"x\[mask\]\[:, j\]"):
        x[gd.lazy(np.ones(60)) > 0, [2]]
    for computed in ([60], [-61], [2**62]):
        with pytest.raises(gd.errors.BadIndex):
            x[gd.lazy(np.array(computed)) + 0, [2]].compute()
    with pytest.raises(IndexError, match="no elements"):
        x[:0][[0]]
    for key in ([1], np.ones(3, bool)):
        with pytest.raises(gd.errors.BadArgument, match="length"):
            gd.from_generator(lambda: iter([np.zeros(3)]), "f8", (None,))[key]
    with pytest.raises(gd.errors.ReadOnly):
        gd.lazy(np.ones(2)).compute(out=x[[1]])
    with pytest.raises(gd.errors.BadShape):
        gd.take(x, [1], axis=3)
    with pytest.raises(gd.errors.BadDtype):
        gd.take(x, [[1.5]], axis=0)
    with pytest.raises(gd.errors.BadIndex):  # nothing of it is written
        np.save(tmp_path / "o.npy", np.zeros(1))
        gd.save(tmp_path / "o.npy", x[[0] * 59 + [60]])
    same(np.load(tmp_path / "o.npy"), np.zeros(1))


def test_a_file_of_indices_that_is_cut_or_changed(gd, tmp_path):
    a = np.arange(100000.).reshape(-1, 2)
    np.save(tmp_path / "i.npy", np.arange(50000)[::-1])
    i = gd.open(tmp_path / "i.npy")
    x = gd.lazy(a)[i]
    same(x.compute(), a[::-1])
    changed = np.lib.format.open_memmap(tmp_path / "i.npy", "r+")
    changed[40000] = 50000
    with pytest.raises(gd.errors.BadIndex, match=r"50000 at place \(40000,\)"):
        x.compute()
    changed[40000] = 7
    assert x.compute()[40000, 0] == 14
    os.truncate(tmp_path / "i.npy", 20000)
    with pytest.raises(gd.Error):
        x.compute()


def test_elements_by_arguments_inside_texts(gd, tmp_path):
    a = np.arange(60, dtype="i4").reshape(10, 6)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=a, chunks=(4, 6), compression="gzip")
    np.save(tmp_path / "i.npy", [[9, 0], [-1, 3]])
    how = {"a": gd.open(tmp_path / "a.h5:/a"), "i": gd.open(tmp_path / "i.npy"), "k": np.array([2, 0, 1, 0]),
           "m": a[:, 0] % 4 == 2, "full": a > 30, "f": np.ones(3), "c": np.arange(120.).reshape(2, 10, 6),
           "long": np.arange(100000.)}
    i, k, m = np.load(tmp_path / "i.npy"), how["k"], how["m"]
    for text, want in (("a[i]*2 + a[ i ]", a[i] * 3), ("sum(a[m], axis=0) + sum(a[m])", a[m].sum(0) + a[m].sum()),
                       ("a[full]", a[a > 30]), ("a[k][k]", a[k][k]), ("a[:, k] + 1", a[:, k] + 1),
                       ("a[..., k]", a[..., k]), ("a[k, :]", a[k]), ("a[i, ...]", a[i]), ("a[ : , k[k]]", a[:, k[k]]),
                       ("a[m, :]", a[m]), ("g(x) = x + sum(a[k]); g(i)", i + a[k].sum()), ("c[:, full]", how["c"][:, a > 30]), ("c[..., full]", how["c"][:, a > 30]),
                       ("take(a, k, axis=1)[k] * take( a[k],k,-1 )", a[:, k][k] * a[k][:, k]), ("np.take(a, i)", np.take(a, i)),
                       ("take(a, k, mode='clip', axis=None)", np.take(a, k)),
                       ("sum(take(a, i, 1, mode=wrap))", np.take(a, i, 1, mode="wrap").sum()),
                       ("take(long, i) + 1", how["long"][i] + 1)):
        same(gd.evaluate(text, local_dict=how), want)
    for text, kind, says in (("a[i] + a", gd.errors.BadShape, "column 6"), ("a[f]", gd.errors.BadDtype, "integers"),
                             ("k[a]", gd.errors.BadIndex, r"a\.h5.*index 4 at place \(0, 4\)"),
                             ("(a + 1)[k]", gd.errors.BadExpression, "only an argument takes an index"),
                             ("g(a) = a[k]; g(i) + sum(a)", gd.errors.BadExpression, "column 9"),  # another a
                             ("a[:, :, k]", gd.errors.BadExpression, "only an argument takes an index"),
                             ("take(a, k, axis=2)", gd.errors.BadShape, "axis"),
                             ("take(a, m)", gd.errors.BadShape, "must have one axis"),
                             ("1 + take(a + 1, k, axis=1)", gd.errors.BadShape, "arguments are picked from along any")):
        with pytest.raises(kind, match=says):
            gd.evaluate(text, local_dict=how)


def test_of_what_a_generator_makes(gd):
    x = np.arange(60.0).reshape(20, 3)
    made = gd.from_generator(lambda: iter([x[:7], x[7:]]), "f8", x.shape)
    i = np.array([5, -1, 5, 0])
    assert np.array_equal(made[i].compute(), x[i])
    assert np.array_equal((gd.take(made, [2, 0], axis=1) * 2).compute(), x[:, [2, 0]] * 2)
    assert np.array_equal(made[x[:, 0] > 30].sum(axis=0).compute(), x[x[:, 0] > 30].sum(axis=0))
    with pytest.raises(IndexError, match=r"20 at place \(1,\)"):
        made[[3, 20]].compute()
