"""Matrix products of lazies against NumPy's: operators, functions, expressions around them, parts of
larger lazies, sums over axes, and adding into what is there."""

import itertools
import pickle

import h5py
import numpy as np
import pytest

from catalogue import DTYPES


def close(got, want, scale=1.0):
    """Integers and bools are the same; floats within rounding of sums of `scale`."""
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if want.dtype.kind != "f":
        assert np.array_equal(got, want)
        return
    near = 64 * np.finfo(want.dtype).eps * scale
    assert np.allclose(got, want, rtol=near, atol=near * max(1, np.abs(want).max(initial=0)))


def some(dtype, *shape, seed=1):
    rng = np.random.default_rng([seed, *shape])
    if dtype == "?":
        return rng.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind == "f":
        return rng.normal(0, 1, shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


SHAPES = [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5)),
          ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((4,), (2, 4, 5)), ((2, 3, 4), (4,)),
          ((1, 1), (1, 1)), ((3, 0), (0, 5)), ((0, 4), (4, 5)), ((130, 70), (70, 90))]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products_are_numpys(gd, shapes):
    for one, other in [("f4", "f4"), ("f8", "i2"), ("i1", "i1"), ("?", "?"), ("u8", "f4")]:
        a, b = some(one, *shapes[0]), some(other, *shapes[1], seed=2)
        x, y = gd.lazy(a), gd.lazy(b)
        for got in (x @ y, a @ y, x @ b, gd.matmul(a, b), np.matmul(x, b)):
            assert type(got) is gd.Lazy
            assert got.dtype == (a @ b).dtype and got.shape == (a @ b).shape
        close((x @ y).compute(), a @ b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(gd, dtype):
    a, b = some(dtype, 17, 40), some(dtype, 40, 23, seed=2)
    close((gd.lazy(a) @ b).compute(), a @ b)
    close(np.dot(gd.lazy(a), b).compute(), np.dot(a, b))


def test_a_job_has_what_is_around_a_product(gd):
    a, w, bias = some("f4", 30, 20), some("f4", 20, 10, seed=2), some("f4", 10, seed=3)
    x = gd.lazy(a)
    layer = gd.maximum(x/255 @ w + bias, 0)
    close(layer.compute(), np.maximum(a/np.float32(255) @ w + bias, np.float32(0)))
    assert "(_0/255@_1" in repr(layer).replace("maximum", "") and ".mT" not in repr(layer)
    assert "_0@_0.mT" in repr(x @ x.T) and "_0@_0.mT" in repr(x.T @ x)
    gram = (x @ x.T).compute()
    close(gram, a @ a.T)
    assert np.array_equal(gram, gram.T)
    close(((x - 1) @ (x - 1).T).compute(), (a - 1) @ (a - 1).T)
    p = x @ w
    close((p*p + p).compute(), (a @ w)*(a @ w) + a @ w)


def test_what_is_no_part_of_the_job_is_computed_first(gd):
    a, w, v = some("f8", 30, 20), some("f8", 20, 10, seed=2), some("f8", 10, 30, seed=3)
    x = gd.lazy(a)
    close((x @ w @ v).compute(), a @ w @ v)
    close((x @ (w @ gd.lazy(v))).compute(), a @ (w @ v))
    close(((x - x.mean(axis=0)) @ w).compute(), (a - a.mean(axis=0)) @ w)
    close((x @ w + x.sum()).compute(), a @ w + a.sum())
    close((x @ w).sum(axis=0).compute(), (a @ w).sum(axis=0), 8)
    close(((x @ w) + (x @ (w + 1))).compute(), a @ w + a @ (w + 1))
    close((x @ w + np.zeros((5, 30, 10))).compute(), a @ w + np.zeros((5, 30, 10)))
    close(np.cumsum(x @ w, axis=0).compute(), np.cumsum(a @ w, axis=0), 8)
    close((np.cumsum(x, axis=1) @ w).compute(), np.cumsum(a, axis=1) @ w, 8)
    close(np.concatenate([x @ w, x @ (w*2)]).compute(), np.concatenate([a @ w, a @ (w*2)]))
    one, two = gd.compute(x @ w, (x @ w).mean(axis=1))
    close(one, a @ w)
    close(two, (a @ w).mean(axis=1))


def test_parts_and_views_of_products(gd):
    a, w = some("f8", 30, 20), some("f8", 20, 10, seed=2)
    p, want = gd.lazy(a) @ w, a @ w
    for got, wanted in [(p[3:9, ::2], want[3:9, ::2]), (p[-1], want[-1]), (p.T, want.T),
                        (p[::-1], want[::-1]), (p[None], want[None]),
                        (gd.maximum(p, 0)[4:, 2], np.maximum(want, 0)[4:, 2]),
                        (gd.exp(p).T, np.exp(want).T), (p.T @ p, want.T @ want)]:
        close(got.compute(), wanted, 8)


def test_index_and_random_numbers_beside_products(gd):
    a, w = some("f8", 30, 20), some("f8", 20, 10, seed=2)
    rows, columns = np.arange(30.0)[:, None], np.arange(20.0)
    close(((gd.lazy(a) * gd.index(1)) @ w).compute(), (a * columns) @ w, 8)
    close(((gd.lazy(a) @ w) * gd.index(0)).compute(), (a @ w) * rows, 8)
    noise = gd.random.normal(size=(30, 20), seed=3)
    close(((gd.lazy(a) + noise) @ w).compute(), (a + noise.compute()) @ w)
    more = gd.random.normal(size=(30, 10), seed=4)
    close((gd.lazy(a) @ w + more).compute(), a @ w + more.compute())


# -- the functions ------------------------------------------------------------------------------

PAIRS = [("dot", (3, 4), (4, 5)), ("dot", (4,), (4,)), ("dot", (), (4, 5)), ("dot", (2, 3, 4), (4,)),
         ("dot", (2, 3, 4), (5, 4, 6)), ("dot", (4,), (5, 4, 6)), ("inner", (3, 4), (5, 4)),
         ("inner", (4,), (4,)), ("inner", (3,), ()), ("inner", (2, 3, 4), (5, 4)),
         ("vdot", (4,), (4,)), ("vdot", (3, 4), (3, 4)), ("outer", (3,), (5,)), ("outer", (3,), ())]


@pytest.mark.parametrize("name, one, other", PAIRS)
def test_functions_of_two(gd, name, one, other):
    for dtypes in (("f8", "f8"), ("i2", "i4"), ("f4", "f8")):
        a, b = some(dtypes[0], *one), some(dtypes[1], *other, seed=2)
        got = getattr(np, name)(gd.lazy(a), b)
        assert type(got) is gd.Lazy
        close(got.compute(), getattr(np, name)(a, b))
        close(getattr(gd, name)(a, b).compute(), getattr(np, name)(a, b))


@pytest.mark.parametrize("name, one, other", [
    ("vecdot", (4,), (4,)), ("vecdot", (3, 4), (4,)), ("vecdot", (2, 1, 4), (3, 4)),
    ("matvec", (3, 4), (4,)), ("matvec", (3, 4), (5, 4)), ("matvec", (2, 3, 4), (2, 4)),
    ("vecmat", (3,), (3, 4)), ("vecmat", (5, 3), (3, 4))])
def test_vectors(gd, name, one, other):
    if not hasattr(np, name):
        pytest.skip("of a newer NumPy")
    a, b = some("f8", *one), some("f8", *other, seed=2)
    close(getattr(np, name)(gd.lazy(a), b).compute(), getattr(np, name)(a, b))


@pytest.mark.parametrize("one, other, axes", [
    ((3, 4), (4, 5), 1), ((2, 3, 4), (3, 4, 5), 2), ((2, 3), (4, 5), 0), ((3, 4), (3, 4), 2),
    ((3, 4, 5), (4, 3, 2), ([1, 0], [0, 1])), ((3, 4, 5), (2, 5, 3), ([0, -1], [2, 1])),
    ((6, 2, 3), (2, 4), (1, 0)), ((2, 3, 0), (0, 3, 4), ([2, 1], [0, 1])),
    ((3, 4), (4, 5), np.array([1, 0])), ((3, 4), (4, 5), (range(1, 2), np.array([0])))], ids=str)
def test_tensordot(gd, one, other, axes):
    for dtypes in (("f8", "f8"), ("i2", "i2")):
        a, b = some(dtypes[0], *one), some(dtypes[1], *other, seed=2)
        close(np.tensordot(gd.lazy(a), b, axes).compute(), np.tensordot(a, b, axes))
    close(gd.tensordot(gd.lazy(a)*2, gd.lazy(b) + 1, axes).compute(), np.tensordot(a*2, b + 1, axes))


@pytest.mark.parametrize("subscripts, one, other", [
    ("ij,jk->ik", (3, 4), (4, 5)), ("ij,jk->ki", (3, 4), (4, 5)), ("ij,jk", (3, 4), (4, 5)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("bij,bkj->bki", (2, 3, 4), (2, 5, 4)),
    ("ijk,klj->il", (2, 3, 4), (4, 5, 3)), ("ij,ij->ij", (3, 4), (3, 4)), ("ij,ij->", (3, 4), (3, 4)),
    ("ij,ij->i", (3, 4), (3, 4)), ("i,j->ij", (3,), (4,)), ("i,j->ji", (3,), (4,)),
    ("ijk,kl->lij", (2, 3, 4), (4, 5)), ("ijk,kl->jil", (2, 3, 4), (4, 5)), ("ij,kl->il", (3, 4), (5, 6)),
    ("...ij,...jk->...ik", (2, 3, 4), (4, 5)), ("...i,i...->...", (2, 3), (3, 2)),
    ("ij,jk->ik", (3, 1), (4, 5)), ("abc,cd->adb", (2, 3, 4), (4, 5)), ("i,i", (4,), (4,)),
    ("bi,bj->bij", (2, 3), (2, 4)), ("bi,bi->b", (2, 3), (2, 3)), ("ijb,jb->bi", (3, 4, 2), (4, 2))])
def test_einsum_of_two(gd, subscripts, one, other):
    for dtypes in (("f8", "f8"), ("i2", "i4"), ("?", "?")):
        a, b = some(dtypes[0], *one), some(dtypes[1], *other, seed=2)
        want = np.einsum(subscripts, a, b)
        close(np.einsum(subscripts, gd.lazy(a), b).compute(), want)
    close(gd.einsum(subscripts, a.astype("f4"), b, dtype="f8").compute(),
          np.einsum(subscripts, a.astype("f8"), b.astype("f8")))


@pytest.mark.parametrize("subscripts", ["ijk->kij", "ijk->ik", "ijk->", "ijk", "kji", "...k->k..."])
def test_einsum_of_one(gd, subscripts):
    for dtype in ("f8", "i2", "?"):
        a = some(dtype, 3, 4, 5)
        close(np.einsum(subscripts, gd.lazy(a)).compute(), np.einsum(subscripts, a))


SEVERAL = [
    ("ij,jk,kl->il", (3, 4), (4, 5), (5, 2)), ("ij,jk,kl,lm", (3, 4), (4, 5), (5, 2), (2, 6)),
    ("ijk,ja,ka->ia", (3, 4, 5), (4, 2), (5, 2)), ("a,b,c->cab", (2,), (3,), (4,)),
    ("ij,ij,ij->ij", (3, 4), (3, 4), (3, 4)), ("ij,ij,ij", (3, 4), (1, 4), (3, 1)),
    ("i,ij,j->", (3,), (3, 4), (4,)), ("abc,ax,by,cz->xyz", (3, 4, 5), (3, 2), (4, 2), (5, 2)),
    ("...ij,jk,...k->...i", (2, 3, 4), (4, 5), (5,)), ("ij,j,zk->ki", (3, 4), (4,), (2, 5)),
    ("bi,bj,bk->bijk", (2, 3), (2, 4), (2, 5)), (",ij,->ji", (), (3, 4), ()), ("ii->i", (4, 4)),
    ("ii", (4, 4)), ("iij->ji", (4, 4, 3)), ("iji", (4, 3, 4)), ("iii->i", (3, 3, 3)),
    ("iijj->ij", (3, 3, 2, 2)), ("ii,i->i", (4, 4), (4,)), ("ii,jk,kj->i", (3, 3), (4, 5), (5, 4)),
    ("i...i->...", (3, 2, 3)), ("ii,ii->", (3, 3), (3, 3)), ("ij,jk,ki", (3, 4), (4, 5), (5, 3)),
    ("ij->i", (3, 0)), ("ij,k->i", (3, 0), (2,))]


def test_einsum_of_several_and_of_diagonals(gd, tmp_path):
    for subscripts, *shapes in SEVERAL:
        for dtypes in ("f8 f4 f8 f4", "i1 i2 i1 i4", "? ? ? ?"):
            arrays = [some(dtype, *shape, seed=i) for i, (shape, dtype)
                      in enumerate(zip(shapes, dtypes.split(), strict=False))]
            want = np.einsum(subscripts, *arrays)
            close(np.einsum(subscripts, *map(gd.lazy, arrays)).compute(), want)
            if dtypes[0] == "f":  # of expressions, which are taken apart
                close(gd.einsum(subscripts, *[gd.lazy(one)*2 for one in arrays]).compute(),
                      want * 2**len(arrays))
    a, b, c = some("f8", 3, 4), some("f8", 4, 5), some("f8", 5, 2)
    want = a @ b @ c
    for how in ("optimal", ["einsum_path", (1, 2), (0, 1)], ["einsum_path", (0, 2, 1)], True):
        close(gd.einsum("ij,jk,kl", a, b, c, optimize=how).compute(), want)
    close(np.einsum(gd.lazy(a), [0, 1], b, [1, 51], c, [51, 2], [2, 0]).compute(), want.T)
    close(np.einsum(gd.lazy(a), [0, ...], b, [..., 2], [..., 0, 2]).compute(),
          np.einsum(a, [0, ...], b, [..., 2], [..., 0, 2]))


def test_diagonals_read_no_more(gd, tmp_path):
    a = some("f8", 40, 30, 3)
    np.save(tmp_path / "a.npy", a)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=a, chunks=(7, 8, 2), compression="gzip")
    for x in (gd.lazy(a), gd.open(tmp_path / "a.npy"), gd.open(f"{tmp_path}/a.h5:/a"), gd.lazy(a)+0):
        for axes in ((0, 0, 1), (4, 1, 0), (-7, 0, 1), (29, 0, 1), (99, 0, 1), (1, 2, 0), (0, -1, 1)):
            close(np.diagonal(x, *axes).compute(), np.diagonal(a, *axes))
            close(x.trace(*axes).compute(), np.trace(a, *axes))
        close(x[:3, :3].diagonal().compute(), a[:3, :3].diagonal())
    job = gd.submit("a", a=gd.open(tmp_path / "a.npy")[..., 0].diagonal())
    job.result()
    assert job.stats["read_bytes"] == 30 * 8
    y = gd.lazy(np.zeros((2, 3)))
    for call in (lambda: gd.diagonal(y, 0, 1, 1), lambda: gd.einsum("ij,jk,kl", y, y, y),
                 lambda: gd.einsum("ii", y), lambda: gd.diagonal(y[0]), lambda: gd.trace(y, axis1=2),
                 lambda: gd.einsum("ij,ij,ij", y, y, y, optimize="no"), lambda: gd.einsum(y, 0),
                 lambda: gd.einsum(y, [0, 52])):
        with pytest.raises(ValueError):
            call()


def test_axes_are_taken_as_one_where_they_lie_so(gd, tmp_path):
    a, b = some("f8", 6, 7, 8), some("f8", 7, 8, 9, seed=2)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", np.asfortranarray(b))
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset("b", data=b, chunks=(3, 3, 3))
    x = gd.open(tmp_path / "a.npy")
    want = np.tensordot(a, b)
    for y in (gd.open(tmp_path / "b.npy"), gd.open(f"{tmp_path}/b.h5:/b"), gd.lazy(b)):
        close(np.tensordot(x, y).compute(), want)
        close(np.tensordot(x[::2], y[..., 1:]).compute(), np.tensordot(a[::2], b[..., 1:]))
    saved = gd.save(tmp_path / "t.npy", np.einsum("ijk,lk->lij", x, b[0].T))
    close(saved.compute(), np.einsum("ijk,lk->lij", a, b[0].T))
    out = np.zeros((9, 6), order="F")
    assert np.einsum("ijk,jkl->li", x, b, out=out) is out
    close(out, np.einsum("ijk,jkl->li", a, b))
    strided = np.zeros((6, 7, 18))[..., ::2]
    np.tensordot(x, b[0], 1).compute(out=strided)
    close(strided, np.tensordot(a, b[0], 1))


def test_nothing_is_copied_where_axes_lie_so(gd, tmp_path, monkeypatch):
    a, b = some("f8", 6, 7, 8), some("f8", 7, 8, 9, seed=2)
    np.save(tmp_path / "a.npy", a)
    x, parts = gd.open(tmp_path / "a.npy"), gd.concatenate([a[:2], a[2:]])
    copied = []
    fill = gd._lazy.moved.fill
    monkeypatch.setattr(gd._lazy.moved, "fill", lambda session, moved, *more:
                        copied.append(moved.shape) or fill(session, moved, *more))
    close(np.tensordot(x, b).compute(), np.tensordot(a, b))
    assert copied == []
    close(np.tensordot(x[1:3], b).compute(), np.tensordot(a[1:3], b))
    assert copied == []
    close(np.tensordot(parts, b).compute(), np.tensordot(a, b))
    assert copied == [(6, 7, 8)]
    del copied[:]
    close(np.tensordot(x[::2, :, 1:], b[:, 1:]).compute(), np.tensordot(a[::2, :, 1:], b[:, 1:]))
    assert copied == [(3, 49), (49, 9)]


# -- where results go ---------------------------------------------------------------------------

def test_out(gd, tmp_path):
    a, b = some("f4", 30, 20), some("f4", 20, 10, seed=2)
    x, out = gd.lazy(a), np.empty((30, 10), "f4")
    assert np.matmul(x, b, out=out) is out
    close(out, a @ b)
    assert gd.dot(x, b, out=out) is out
    assert gd.matmul(x, b, out) is out
    close(gd.save(tmp_path / "c.npy", x @ b).compute(), a @ b)
    close(gd.submit(x @ b).result(), a @ b)
    assert np.array_equal(gd.evaluate("a @ b", a=a, b=b), np.asarray(x @ b))
    close(gd.evaluate("maximum(a @ b.T, 0)", a=a, b=b.T), np.maximum(a @ b, 0))


def places(gd, tmp_path, c):
    """Outputs that hold c, and what gives their elements."""
    np.save(tmp_path / "c.npy", c)
    shared = gd.empty(c.shape, c.dtype)
    shared[...] = c
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["c"] = c
    yield "heap", c.copy(), np.asarray
    yield "shared", shared, np.asarray
    yield "memmap", np.load(tmp_path / "c.npy", mmap_mode="r+"), np.asarray
    np.save(tmp_path / "d.npy", c)
    yield "file", gd.open(tmp_path / "d.npy", "r+"), lambda x: x.compute()
    yield "hdf5", gd.open(f"{tmp_path}/c.h5:/c", "r+"), lambda x: x.compute()


def test_adding_into_what_is_there(gd, tmp_path):
    a, b, c = some("f8", 30, 20), some("f8", 20, 10, seed=2), some("f8", 30, 10, seed=3)
    for _, out, read in places(gd, tmp_path, c):
        assert gd.matmul(a, b, out, alpha=2, beta=0.5) is out
        close(read(out), 2*(a @ b) + 0.5*c)
        gd.matmul(a, b, out, beta=1)
        close(read(out), 3*(a @ b) + 0.5*c)
    assert not list(tmp_path.glob("*.journal"))
    whole = c.astype("i4")
    gd.matmul(some("i2", 30, 20), some("i2", 20, 10, seed=2), whole, alpha=3, beta=-2)
    close(whole, (3*(some("i2", 30, 20) @ some("i2", 20, 10, seed=2)) - 2*c.astype("i4")).astype("i4"))


def test_lazies_of_products_go_to_other_processes(gd):
    a, b = some("f8", 5, 6), some("f8", 6, 7, seed=2)
    for one in (gd.lazy(a) @ b + 1, gd.lazy(a) @ gd.lazy(a).T,
                np.tensordot(gd.lazy(a[None]), b[None], ([0, 2], [0, 1])),
                np.tensordot(gd.lazy(a), some("f8", 6, 3, 4), 1),
                np.einsum("ij,jkl->kil", gd.lazy(a), some("f8", 6, 3, 4))):
        close(pickle.loads(pickle.dumps(one)).compute(), one.compute())


# -- what is refused ----------------------------------------------------------------------------

def test_shapes_that_do_not_fit(gd):
    x = gd.lazy(np.zeros((3, 4)))
    for call, word in [(lambda: x @ x, "inner dimensions differ: (3, 4) x (3, 4)"),
                       (lambda: x @ np.zeros(3), "inner"), (lambda: x @ 2, "number"),
                       (lambda: np.matmul(np.zeros((5, 2, 3)), gd.lazy(np.zeros((4, 3, 2)))),
                        "broadcast"),
                       (lambda: np.tensordot(x, x, 1), "differ"),
                       (lambda: np.einsum("ij,ij->i", x, x.T), "length"),
                       (lambda: np.einsum("i,ij", x, x), "shape"),
                       (lambda: gd.matmul(x, x.T, np.zeros((3, 4)), beta=1).compute(), "shape")]:
        with pytest.raises(gd.errors.BadShape, match="(?s).*" + word.replace("(", r"\(")
                           .replace(")", r"\)")):
            call()
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("subscripts", ["ij,jk->iz", "ij,jk->ii", "i1,jk", "ij->ij->i", "ij",
                                        "ij,jk->...", "i.j,jk"])
def test_subscripts_that_cannot_be_read(gd, subscripts):
    x = gd.lazy(np.zeros((3, 3)))
    with pytest.raises(gd.errors.BadArgument):
        np.einsum(subscripts, x, x)


def test_what_is_not_served_says_so(gd):
    x = gd.lazy(np.zeros((3, 3)))
    for call in (lambda: np.einsum("ij->i", x, order="F"), lambda: np.outer(x, x),
                 lambda: np.matmul(x, x, casting="unsafe"),
                 lambda: np.vdot(x, np.zeros(9)), lambda: x.ravel("F")):
        with pytest.raises(gd.Unsupported):
            call()
    with pytest.raises(gd.errors.BadArgument):
        gd.matmul(x, x, beta=1)
    with pytest.raises(gd.errors.BadArgument):
        gd.matmul(x, x, np.zeros((3, 3)), journal="j")
    with pytest.raises(gd.errors.BadDtype, match="loss"):
        np.einsum("ij,jk", x, x, dtype="f4")
    with pytest.raises(TypeError):
        gd.tensordot(x, x, 1.5)
    with pytest.raises(gd.errors.OverlappingOutput):
        shared = gd.zeros((3, 3))
        gd.matmul(shared, x, out=shared)


def test_nan_and_infinity_pass_through(gd):
    a, b = np.ones((4, 3)), np.ones((3, 5))
    a[1, 2], a[2, 0], b[0, 4] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        want = a @ b
    assert np.array_equal((gd.lazy(a) @ b).compute(), want, equal_nan=True)


def test_generated_chains(gd):
    rng = np.random.default_rng(7)
    for i in range(40):
        n, k, m = rng.integers(1, 40, 3)
        a, b, c = some("f8", n, k, seed=i), some("f8", k, m, seed=i + 1), some("f8", n, m, seed=i + 2)
        x, y, z = gd.lazy(a), gd.lazy(b), gd.lazy(c)
        steps = [lambda l, r: (l(x) @ l(y)), lambda l, r: l(x @ y) + r(z),
                 lambda l, r: (l(x) @ y) * r(x @ l(y)), lambda l, r: (l(x @ y) - z) @ (y.T @ r(x.T)),
                 lambda l, r: r(x).sum(axis=0) @ l(y), lambda l, r: (z.T @ l(x) @ y)]
        turned = [lambda l, r: (l(a) @ l(b)), lambda l, r: l(a @ b) + r(c),
                  lambda l, r: (l(a) @ b) * r(a @ l(b)), lambda l, r: (l(a @ b) - c) @ (b.T @ r(a.T)),
                  lambda l, r: r(a).sum(axis=0) @ l(b), lambda l, r: (c.T @ l(a) @ b)]
        functions = [np.sin, np.abs, np.negative, lambda v: v*2, lambda v: np.where(v > 0, v, -1.0)]
        which = rng.integers(len(steps))
        l, r = (functions[j] for j in rng.integers(len(functions), size=2))
        close(steps[which](l, r).compute(), turned[which](l, r), 32)


def test_every_pair_of_layouts(gd):
    a, b = some("f8", 21, 34), some("f8", 34, 13, seed=2)
    big = np.zeros((42, 68))
    big[::2, ::2] = a
    lefts = [a, np.asfortranarray(a), a.astype(">f8"), big[::2, ::2], a[::-1, ::-1][::-1, ::-1]]
    rights = [b, np.asfortranarray(b), b.astype(">f8"), np.ascontiguousarray(b[:, ::-1])[:, ::-1]]
    got = [(gd.lazy(one) @ other).compute() for one, other in itertools.product(lefts, rights)]
    close(got[0], a @ b)
    assert all(np.array_equal(one, got[0]) for one in got)


def test_a_chain_is_multiplied_in_the_order_of_least_work(gd):
    sizes = (30, 35, 15, 5, 10, 20, 25)
    a = [some("f8", *pair, seed=i) for i, pair in enumerate(itertools.pairwise(sizes))]
    product = gd.lazy(a[0])
    want = a[0]
    for one in a[1:]:
        product, want = product @ one, want @ one
    assert product._node.work == 15125  # of Cormen, Leiserson and Rivest's
    close(product.compute(), want, 1e4)
    x, y, v = some("f8", 40, 30), some("f8", 30, 50), some("f8", 50)
    for left in (x, np.asfortranarray(x)):
        product = gd.lazy(left) @ y @ v
        assert [part.shape for part in product._node.parts] == [(40, 30), (30,)]
        close(product.compute(), x @ (y @ v), 1e2)
    close((v @ (gd.lazy(y).T @ x.T) @ x @ y @ v).compute(), v @ y.T @ x.T @ x @ y @ v, 1e6)
    whole = (some("i1", 4, 5).astype("i1"), some("i1", 5, 6), some("f8", 6, 1))
    close((gd.lazy(whole[0]) @ whole[1] @ whole[2]).compute(), whole[0] @ whole[1] @ whole[2], 1e3)


@pytest.mark.parametrize("text", ["a @ (a.T @ b)", "(a @ d).T @ a", "a.T @ (a @ (a.T @ b))"])
def test_a_stage_that_reads_an_operand_of_the_heap_only_as_transposed(gd, text):
    """Both ways of reading it have one ring, which stages use one after the other."""
    named = {"a": some("f8", 300, 40), "b": some("f8", 300, 7, seed=2), "d": some("f8", 40, 7, seed=3)}
    used = {name: one for name, one in named.items() if name in text}
    close(gd.evaluate(text, **used), eval(text, {}, named), 1e4)


@pytest.mark.parametrize("text", ["(a - mean(a, axis=0)).T @ b", "((a - mean(a, axis=0)) / std(a, axis=0)).T @ b[:, 0]",
                                  "c = a - mean(a, axis=0); (a - mean(a, axis=0)).T @ c"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_reduction_within_what_is_transposed(gd, text, dtype):
    """A product of such a left operand sums along its rows."""
    a, b = some(dtype, 300, 40) + np.dtype(dtype).type(9), some(dtype, 300, 7, seed=2)
    c = (a - a.mean(0)).astype("f8")
    scaled = "std" in text
    text, b = text.replace("b[:, 0]", "b"), b[:, 0] if scaled else b
    named = {"a": a, "b": b} if "b" in text else {"a": a}
    want = ((c / c.std(0) if scaled else c).T @ (b if "b" in text else c)).astype(dtype)
    close(gd.evaluate(text, **named), want, 1e3)
