"""Decompositions of matrices with many rows against NumPy's, with nothing taken as small: well and ill
conditioned, far from zero, float32 and integers, views and expressions, files; what is refused."""

import numpy as np
import pytest

from conftest import ENGINE

pytestmark = pytest.mark.skipif(ENGINE != "cpu", reason="a device has no QR decompositions")


@pytest.fixture
def la(gd, monkeypatch):
    from gpuarrayd._linalg import matrices
    monkeypatch.setattr(matrices, "SMALL_BYTES", 0)
    return gd.linalg


def normal(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape)


def close(got, wanted, part=1e-12):
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape
    assert np.abs(got - wanted).max(initial=0) <= part * max(np.abs(wanted).max(initial=0), 1e-300)


def test_least_squares_are_numpys(la, gd):
    b = normal(900, 17, seed=2)
    full, lacking = normal(900, 7), normal(900, 7)
    lacking[:, 3] = lacking[:, 1] - lacking[:, 5]
    for a in (full, lacking, full.astype("f4"), (full * 9).astype("i2"), full[::-2],
              np.asfortranarray(full), full * np.logspace(0, -9, 7), normal(1, 1)):
        right = b[:len(a)]
        for y in (right[:, :2], right[:, 1], gd.lazy(right[:, 1]) + 1, gd.lazy(right) * 2):
            got = la.lstsq(a, y)
            y = np.asarray(gd.lazy(y).compute())
            wanted = np.linalg.lstsq(a.astype("f8"), y, None if a.dtype != "f4" else 1e-4)
            assert got[2] == wanted[2] and got[1].shape == np.shape(wanted[1])
            close(got[0], wanted[0], 1e-6)
            close(got[3], wanted[3])
            if got[1].size:
                close(got[1], wanted[1], 1e-10)
    x = gd.lazy(full)
    close(la.lstsq(x * 2 + 1, b)[0], np.linalg.lstsq(full * 2 + 1, b)[0])
    wanted = [np.linalg.solve(full.T @ full + r * np.eye(7), full.T @ b) for r in (0.5, 3, 1e4)]
    close(la.ridge(full, b, [0.5, 3, 1e4]), wanted)
    close(la.ridge(full, b[:, 0], 3), wanted[1][:, 0])


def test_an_ill_conditioned_matrix_keeps_its_digits(la):
    """Normal equations would have none left."""
    t = np.linspace(0, 1, 2000)
    a = np.stack([t ** i for i in range(12)], axis=1)
    y = np.polynomial.chebyshev.chebval(t, np.ones(5))
    assert la.lstsq(a, y)[1][0] < 1e-24
    got, wanted = la.svdvals(a), np.linalg.svd(a, compute_uv=False)
    assert np.abs(got - wanted).max() < 1e-14 * wanted[0]
    assert abs(la.cond(a) / np.linalg.cond(a) - 1) < 1e-5


def test_factors_make_the_matrix(la, gd, folder):
    a = normal(500, 9)
    q, r = la.qr(a)
    close(q.compute() @ r, a)
    close(q.T.compute() @ q.compute(), np.eye(9))
    close(la.qr(a, "r"), r)
    u, s, vh = la.svd(a)
    close(u * s @ vh, a)
    close(u.T @ u, np.eye(9))
    u, s, vh = la.svd(a.astype("f4"), k=3, out=f"{folder}/u.npy")
    close(s, np.linalg.svd(a, compute_uv=False)[:3], 1e-6)
    assert np.load(f"{folder}/u.npy").shape == u.shape == (500, 3)
    close(la.pinv(a).compute(), np.linalg.pinv(a), 1e-11)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        for x in (a, a.astype("f4")):
            close(la.matrix_norm(x, ord=order), np.linalg.matrix_norm(x.astype("f8"), ord=order))
    close(la.matrix_norm(a, ord=2, keepdims=True), np.linalg.matrix_norm(a, ord=2, keepdims=True))


def test_data_far_from_zero_vary_as_those_near_it(la, gd):
    a = normal(6000, 4) * [1, 2, 3, 0]
    for far in (0, 1e9):
        m = a + far
        about = m - far  # as it is after rounding
        close(gd.cov(m, rowvar=False), np.cov(about, rowvar=False), 1e-7 if far else 1e-12)
        got = la.pca(m, 2)
        _, s, vh = np.linalg.svd(about - about.mean(axis=0), full_matrices=False)
        close(got.singular_values, s[:2], 1e-10)
        close(np.abs(got.components), np.abs(vh[:2]), 1e-7)
        close(got.explained_variance_ratio, (s ** 2 / (s @ s))[:2], 1e-9)
        close(got.mean, m.mean(axis=0), 1e-9 if not far else 1e-14)
    first = np.concatenate([np.zeros((5000, 2)), normal(5000, 2) + 1e8])
    close(gd.cov(first, rowvar=False), np.cov(first, rowvar=False), 1e-10)
    small = normal(6000, 3) * [1, 1, 1e-7] + 5
    about = small - small.mean(axis=0)
    close(la.pca(small, 3).singular_values / np.linalg.svd(about, compute_uv=False), np.ones(3), 1e-6)
    b = normal(300, 3).astype("f4")
    close(gd.cov(b.T), np.cov(b.T.astype("f8")))
    close(gd.cov(b[:, 0], bias=True), np.cov(b[:, 0].astype("f8"), bias=True))
    close(gd.corrcoef(b, rowvar=False), np.corrcoef(b.astype("f8"), rowvar=False))


def planted(rows, columns):
    """A matrix, its singular values, U and V."""
    u, v = np.linalg.qr(normal(rows, 30))[0], np.linalg.qr(normal(columns, 30, seed=2))[0]
    s = np.array([500, 300, 200, 100, 50, *(0.01 * 0.9 ** np.arange(25))])
    return u * s @ v.T, s, u, v


def test_planted_directions_of_many_columns_are_found(la, gd, folder):
    a, wanted, u, v = planted(1100, 1030)
    steps = []
    for dtype, part in (("f8", 1e-12), ("f4", 1e-6)):
        got = la.svd(a.astype(dtype), k=5, callback=lambda *told: steps.append(told))
        close(got.S, wanted[:5], part)
        close(np.abs(np.sum(got.Vh * v[:, :5].T, axis=1)), np.ones(5), 1e-6)
        close(got.U.T @ got.U, np.eye(5), 1e-6)
    assert [step[:2] for step in steps] == [(i, 3) for i in range(1, 4)] * 2
    assert steps[2][2] == 0
    close(la.svd(gd.lazy(a) * 2 + 0, k=5, compute_uv=False), 2 * wanted[:5])
    with pytest.warns(RuntimeWarning, match="% too small"):  # what the last read gave counts, too
        close(la.svd(a, k=5, compute_uv=False, n_iter=1), wanted[:5], 0.2)
    got = la.pca(a + 1000, 3)
    about = np.linalg.svd((u - u.mean(axis=0)) * wanted, compute_uv=False)
    close(got.singular_values, about[:3])
    close(got.noise_variance, np.sum(about[3:] ** 2) / 1099 / 1027, 1e-6)
    symmetric = v * (wanted * (-1) ** np.arange(30)) @ v.T
    got = la.eigh(symmetric, k=3)
    close(got.eigenvalues, [-300, 200, 500], 1e-9)
    close(symmetric @ got.eigenvectors, got.eigenvectors * got.eigenvalues, 1e-6)
    with pytest.warns(RuntimeWarning, match="tolerance"):
        la.svd(a, k=7, compute_uv=False, n_iter=1, tol=1e-15)
    with pytest.warns(RuntimeWarning, match="% too small"):
        la.svd(normal(1030, 1030), k=2, compute_uv=False)
    want = la.svd(a, k=5)
    for stop in (1, 2):
        part = la.svd(a, k=5, checkpoint=folder / "c.npz", callback=lambda step, *_: step == stop)
        assert (part.S <= want.S * (1 + 1e-12)).all()
    rest = la.svd(a, k=5, checkpoint=folder / "c.npz")
    assert all(np.array_equal(one, other) for one, other in zip(want, rest))
    with pytest.raises(gd.BadCheckpoint):
        la.svd(a, k=6, checkpoint=folder / "c.npz")
    for scale, word in ((1e200, "beyond"), (1e-200, "below")):
        for call in (lambda: la.svd(a * scale, k=2, n_iter=1), lambda: la.pca(a * scale, 2),
                     lambda: la.pca(a[:, :9] * scale), lambda: la.pca(a[:9] * scale), lambda: gd.cov(a[:, :9].T * scale)):
            with pytest.raises(gd.BadArgument, match=word) as caught:
                call()
            assert caught.value.expected and caught.value.found
    assert not gd.cov(np.full((5, 900), 0.1)).any() and not la.pca(np.full((1100, 1030), 7.0), 2, n_iter=1).singular_values.any()
    assert not la.svd(a * 0, k=2, n_iter=1, compute_uv=False).any()


def test_float32_data_are_as_close_as_is_said(la, gd, folder):
    """Even where squares leave float32, values fall steeply, or all else is far from zero."""
    turned = np.linalg.qr(normal(40, 40, seed=3))[0]
    few = normal(9000, 40) * np.logspace(0, -1.5, 40) @ turned
    steep = normal(9000, 40) * np.logspace(0, -4, 40) @ turned
    constant = few * (np.arange(40) != 7) + 3
    for x in (few, few * 1e-22, few * 1e18, few + 1000, steep, np.sort(few, axis=0), constant):
        got, want = la.pca(x.astype("f4"), 38), la.pca(x.astype("f4").astype("f8"), 38)
        squares, wanted = got.singular_values ** 2, want.singular_values ** 2
        assert np.abs(squares - wanted).max() <= 1e-7 * wanted[0]
        assert np.abs(got.mean - want.mean).max() <= 1e-7 * np.sqrt(wanted[0] / len(x))
        precise = 1e-3 if wanted[-1] > 1e-4 * wanted[0] else 1e-7
        assert np.abs(squares / wanted - 1).max() <= precise
    many = planted(1100, 1030)[0] + 1e-4 * normal(1100, 1030, seed=5)
    steep = planted(1100, 1030)[0] * np.logspace(0, -4, 1030)
    for x, k in ((many, 5), (many * 1e-22, 5), (many * 1e18, 5), (many, 20), (steep, 20)):
        for how in (lambda x, k: la.svd(x, k=k).S, lambda x, k: la.pca(x, k).singular_values):
            s = [np.asarray(how(one, k)) for one in (x.astype("f4"), x.astype("f4").astype("f8"))]
            assert np.abs(s[0] ** 2 - s[1] ** 2).max() <= 1e-7 * s[1][0] ** 2
            assert np.abs(s[0] / s[1] - 1).max() <= (1e-4 if k == 5 else 0.2), s  # 20 do not stand out
    want = la.svd(steep.astype("f4"), k=20)
    for stop in (1, 2):  # where it began again in float64
        path = folder / f"c{stop}.npz"
        la.svd(steep.astype("f4"), k=20, checkpoint=path, callback=lambda step, *_: step == stop)
        rest = la.svd(steep.astype("f4"), k=20, checkpoint=path)
        assert all(np.array_equal(one, other) for one, other in zip(want, rest))
    zeros = np.zeros((1100, 1030), "f4")
    assert not la.svd(zeros, k=2, n_iter=1, compute_uv=False).any() and not la.pca(zeros[:, :9], 2).singular_values.any()
    many = many.astype("f4")
    many[700, 3] = np.nan
    for x in (many, many[:, :9]):
        with pytest.raises(gd.BadArgument, match="700, 3"):
            la.pca(x, 2)


def test_a_matrix_with_more_columns_than_rows_is_read_turned(la, gd, folder):
    a = normal(60, 1200)
    wanted = np.linalg.svd(a, full_matrices=False)
    for x in (a, a.astype("f4"), np.asfortranarray(a), (a * 50).astype("i2"), gd.lazy(a) + 1):
        y = np.asarray(gd.lazy(x).astype("f8").compute())
        got, values = la.svd(x), np.linalg.svd(y, compute_uv=False)
        close(got.S, values)
        close(got.U * got.S @ got.Vh, y)
        close(got.Vh @ got.Vh.T, np.eye(60), 1e-10)
    u, s, vh = la.svd(a, k=7, out=folder / "vh.npy")
    assert u.shape == (60, 7) and vh.shape == (7, 1200)
    close(vh.compute(), np.load(folder / "vh.npy"))
    close(np.abs(vh.compute()), np.abs(wanted[2][:7]), 1e-9)
    close(la.svdvals(a), wanted[1])
    about = np.linalg.svd(a + 100 - (a + 100).mean(axis=0), full_matrices=False)
    for n in (None, 4):
        got = la.pca(a + 100, n)
        close(got.singular_values, about[1][:n] if n else about[1], 1e-12)
        close(np.abs(got.components[:4]), np.abs(about[2][:4]), 1e-9)
    b = normal(60, 2, seed=4)
    for x, right in ((a, b), (a.astype("f4"), b[:, 0]), (gd.lazy(a) * 2, b)):
        y = np.asarray(gd.lazy(x).astype("f8").compute())
        got, want = la.lstsq(x, right), np.linalg.lstsq(y, right)
        close(got[0], want[0], 1e-11)
        assert got[1].shape == want[1].shape == (0,) and got[2] == want[2]
        close(la.ridge(x, right, [2.0, 30]), [y.T @ np.linalg.solve(y @ y.T + r * np.eye(60), right)
                                              for r in (2, 30)], 1e-11)
    lacking = np.concatenate([a, a[:3] + a[3:6]])
    close(la.lstsq(lacking, normal(63, 1))[0], np.linalg.lstsq(lacking, normal(63, 1))[0], 1e-10)
    for x in (lacking, lacking.T):  # a ridge of 0 is none
        close(la.ridge(x, x[:, 5], [0.0])[0], np.linalg.lstsq(x, x[:, 5])[0], 1e-9)
    close(la.pinv(a).compute(), np.linalg.pinv(a), 1e-11)
    close(la.svd(normal(30, 50), k=30, compute_uv=False), np.linalg.svd(normal(30, 50))[1])


def test_what_is_read_is_what_was_said(gd):
    a, wide = normal(1100, 1030), normal(60, 1200)
    for op, x, how, reads in (("svd", a, {"k": 5}, 3), ("svd", a, {"k": 5, "out": "u.npy"}, 4),
                              ("pca", a, {"k": 5}, None), ("svd", wide, {"out": "v.npy"}, 2),
                              ("pca", wide, {}, 3), ("qr", a[:, :9], {}, 1), ("cov", a[:, :9], {}, 1),
                              ("eigh", a[:1030], {"k": 3, "n_iter": 2}, 2)):
        plan = gd.linalg.explain(op, x, **how)
        assert reads is None or plan.reads == reads, (op, plan)
        assert plan.read_bytes >= plan.reads * x.nbytes and plan.method
    plan = gd.linalg.explain("lstsq", a[:, :9], normal(1100, 15))
    assert plan.reads == 1 and plan.jobs == 1


def test_small_matrices_are_refused_with_the_place_too(gd):
    bad, la = normal(6, 6), gd.linalg
    bad[3, 1] = np.nan
    for call in (la.svd, la.svdvals, la.cond, la.pinv, la.qr, la.eigh, lambda x: la.lstsq(x, x[:, 0]),
                 lambda x: la.lstsq(np.eye(6), x)):
        with pytest.raises(gd.BadArgument, match=r"element \[3, 1\] is nan"):
            call(bad)


def test_what_is_refused_says_why(la, gd):
    a = normal(300, 4)
    bad = a.copy()
    bad[217, 2] = np.inf
    for call in (lambda: la.lstsq(bad, a[:, 0]), lambda: la.lstsq(a, bad), lambda: la.pca(bad), lambda: gd.cov(bad.T),
                 lambda: la.svd(bad, k=2), lambda: la.eigh(np.where(np.eye(4) > 0, np.nan, 1), k=1)):
        with pytest.raises(gd.BadArgument) as caught:
            call()
        assert "[217, 2]" in caught.value.found or "[0, 0]" in caught.value.found
    for how in ({"n_iter": -1}, {"n_oversamples": -1}):
        with pytest.raises(gd.BadArgument, match=next(iter(how))):
            la.svd(a, k=2, **how)
    with pytest.raises(gd.BadArgument, match=r"\[0, 1100\] is nan"):
        la.pca(np.where(np.arange(1200) == 1100, np.nan, normal(2, 1200)))
    for error, call in (
            (gd.BadRank, lambda: la.svd(a, k=5)), (gd.BadRank, lambda: la.svd(np.broadcast_to(1.0, (4100, 4097)))), (gd.BadRank, lambda: la.pca(a, 0)),
            (gd.BadShape, lambda: la.lstsq(a, a[1:])), (gd.BadShape, lambda: la.svd(a[0])),
            (gd.Unsupported, lambda: la.lstsq(a.T, a.T[:, :1])), (gd.BadArgument, lambda: la.svd(a, 2)),
            (gd.Unsupported, lambda: la.svd(a, full_matrices=True)),
            (gd.BadShape, lambda: gd.cov(a.T, a[1:].T)),
            (gd.BadArgument, lambda: la.matrix_norm(a, ord=3)),
            (gd.SingularMatrix, lambda: la.qr(a[:, [0, 1, 1]])),
            (gd.BadArgument, lambda: la.ridge(a, a[:, 0], -1))):
        with pytest.raises(error) as caught:
            call()
        assert caught.value.expected and caught.value.found


def test_r_of_many_columns_is_lapacks_of_rows_as_they_come(la, gd, folder):
    a, b = normal(700, 520), normal(700, 20, seed=2)
    q, r = la.qr(a)
    close(q.compute() @ r, a)
    assert (np.diag(r) > 0).all() and not np.tril(r, -1).any()
    plan = la.explain("lstsq", a, b)
    assert (plan.reads, plan.jobs) == (2, 4)  # fifteen right sides, and five
    for x in (a, a.T, (a * 9).astype("i2"), a.astype("f4")):
        wide = x.astype("f8")
        u, s, vh = la.svd(x)
        close(u * s @ vh, wide)
        close(la.svd(x, compute_uv=False), s)
    wide = np.pad(a[:600], ((0, 0), (0, 600)), mode="wrap")  # neither is few
    u, s, vh = la.svd(wide, out=f"{folder}/u.npy")
    close(np.asarray(u) * s @ vh, wide)
    lacking = a.copy()
    lacking[:, 3] = lacking[:, 1] - lacking[:, 5]
    for x, y in ((a, b), (lacking, b[:, 1]), (gd.lazy(a) * 2 + 1, b[:, 1]), (wide, b[:600, :2]),
                 (gd.lazy(wide) * 2, b[:600, 1])):
        elements = np.asarray(gd.lazy(x).compute())
        got, wanted = la.lstsq(x, y), np.linalg.lstsq(elements, y, None)
        assert got[2] == wanted[2] and got[1].shape in (wanted[1].shape, np.shape(wanted[1]))
        close(got[0], wanted[0], 1e-9)
        close(got[3], wanted[3])
        if got[1].size:
            close(got[1], wanted[1], 1e-9)
    close(la.ridge(a, b, [3, 1e4]), [np.linalg.solve(a.T @ a + r * np.eye(520), a.T @ b) for r in (3, 1e4)])
    bad = a.copy()
    bad[517, 2] = np.nan
    for call, at in ((lambda: la.lstsq(bad, b), "517, 2"), (lambda: la.qr(bad), "517, 2"), (lambda: la.svd(bad.T), "2, 517"),
                     (lambda: la.svd(np.pad(bad[:600], ((0, 0), (0, 600)))), "517, 2")):
        with pytest.raises(gd.BadArgument, match=at):
            call()
    with pytest.raises(gd.BadArgument, match="beyond float64"):
        la.svdvals(a * (1.7e308 / np.abs(a).max()))


def test_an_r_beyond_the_pool_is_lapacks(la, gd):
    a, b = normal(330, 320), normal(330, 3, seed=1)
    r = la.qr(a, "r")
    x = normal(320, 2)
    close(r.T @ (r @ x), a.T @ (a @ x))
    for one in (a, gd.lazy(a) - 0.5):
        close(la.lstsq(one, b)[0], np.linalg.lstsq(np.asarray(one), b, None)[0], 1e-9)


def test_variables_with_weights_and_of_two_arrays(la, gd):
    a, y = normal(300, 4) + 1e6, normal(300, 2)
    often, much = np.arange(300) % 3, np.linspace(0, 2, 300)
    for how in ({"fweights": often}, {"aweights": much}, {"fweights": often, "aweights": much, "ddof": 2},
                {"y": y, "bias": True}, {"y": y, "aweights": much}):
        np.testing.assert_allclose(gd.cov(a, rowvar=False, **how), np.cov(a, rowvar=False, **how),
                                   rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(gd.corrcoef(a.T, y.T), np.corrcoef(a.T, y.T), atol=1e-9)
    wide = normal(30, 1100)
    np.testing.assert_allclose(gd.cov(wide, rowvar=False), np.cov(wide, rowvar=False), atol=1e-13)
    for how in ({"fweights": often - 1}, {"aweights": much[1:]}):
        with pytest.raises((ValueError, RuntimeError)):
            gd.cov(a, rowvar=False, **how)


def test_what_is_neither_small_nor_tall_is_lapacks(la):
    wide, square = normal(30, 1100), normal(30, 30)
    assert la.qr(wide, "r").tobytes() == np.linalg.qr(wide, "r").tobytes()
    assert la.cond(square, 1) == np.linalg.cond(square, 1)


def test_small_matrices_are_numpys(gd):
    a = normal(30, 4)
    assert gd.linalg.lstsq(a, a[:, 0])[0].tobytes() == np.linalg.lstsq(a, a[:, 0])[0].tobytes()
    assert gd.linalg.svdvals(gd.lazy(a)).tobytes() == np.linalg.svdvals(a).tobytes()
    stack = normal(2, 5, 5) + normal(2, 5, 5).swapaxes(1, 2)
    for how in ({}, {"full_matrices": True}, {"hermitian": True}):
        for got, want in zip(gd.linalg.svd(stack, **how), np.linalg.svd(stack, **how), strict=True):
            assert got.tobytes() == want.tobytes()
    assert gd.linalg.svd(stack[:, :3], k=2).Vh.shape == (2, 2, 5)
    assert all(x.tobytes() == y.tobytes() for x, y in zip(gd.linalg.eigh(stack), np.linalg.eigh(stack)))
    values, vectors = gd.linalg.eigh(stack, k=2)
    close(stack @ vectors, values[:, None] * vectors)
    for call in (lambda: gd.linalg.lstsq(a, a[1:]), lambda: gd.linalg.svd(a[0]), lambda: gd.linalg.cond(a[0]),
                 lambda: gd.linalg.matrix_norm(a[0])):
        with pytest.raises(gd.BadShape) as caught:
            call()
        assert caught.value.expected and caught.value.found
    for call in (gd.linalg.cond, gd.linalg.matrix_norm, gd.linalg.svdvals, gd.linalg.pca):
        with pytest.raises(gd.BadShape) as caught:
            call(a[0])
        assert caught.value.argument == "x"
    assert gd.cov(a, rowvar=False).tobytes() == np.cov(a, rowvar=False).tobytes()
    got = gd.linalg.pca(a, 2)
    assert got.components.shape == (2, 4) and got.n_samples == 30
