"""qr_r, the R of a QR decomposition of a matrix with many rows: against NumPy's, of every shape, dtype
and order, of matrices that squares would spoil, and the same bits whatever the pool."""

import numpy as np
import pytest

import wire
from catalogue import NUMPY_2
from conftest import ENGINE, Daemon

pytestmark = [pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes"),
              pytest.mark.skipif(ENGINE != "cpu", reason="a device has no QR decompositions")]


def signed(r):
    """With a diagonal that is not negative: then there is one R."""
    return r * np.where(np.diag(r) < 0, -1, 1)[:, None]


def check(r, a, what):
    assert r.shape == (a.shape[1],) * 2 and not np.tril(r, -1).any(), what
    lengths = np.linalg.norm(a, axis=0)
    np.testing.assert_allclose(np.linalg.norm(r, axis=0), lengths, rtol=1e-13, err_msg=what)
    assert (np.abs(r.T @ r - a.T @ a) <= 1e-12 * np.outer(lengths, lengths)).all(), what
    if np.linalg.matrix_rank(a) == a.shape[1]:
        wanted = signed(np.linalg.qr(a, mode="r"))
        assert (np.abs(signed(r) - wanted) <= 1e-11 * lengths).all(), what


def test_r_of_every_shape(w):
    rng = np.random.default_rng(1)
    for rows, columns in ((1, 1), (7, 3), (3, 1), (40, 40), (400, 17), (90, 65)):
        for dtype in ("f8", "f4", "i4", "?"):
            a = (rng.normal(size=(rows, columns)) * 9).astype(dtype)
            y = rng.normal(size=(rows, 1))
            for order in "CF":
                x = np.asarray(a, order=order)
                check(w.compute("qr_r(float64(x))", x=x), a.astype("f8"), str((a.shape, dtype)))
                check(w.compute("qr_r(x + 0., b=y*2)", x=x.astype("f8"), y=y),
                      np.hstack([a.astype("f8"), 2 * y]), str((a.shape, dtype)))
    a = rng.normal(size=(300, 5)).astype("f4")
    r = w.compute("qr_r(x)", x=a)
    assert r.dtype == "f4"
    np.testing.assert_allclose(r.T @ r, a.T @ a, rtol=1e-4, atol=1e-3)
    assert w.compute("qr_r(x)", x=np.empty((0, 3))).tolist() == np.zeros((3, 3)).tolist()


def test_r_keeps_what_squares_lose(w):
    """Columns that nearly depend on each other, a large mean, huge and tiny numbers."""
    rng = np.random.default_rng(2)
    a = rng.normal(size=(1000, 6))
    a[:, 5] = a[:, 4] + 1e-11 * a[:, 5]
    smallest = np.linalg.svd(a, compute_uv=False)[-1]
    got = np.linalg.svd(w.compute("qr_r(x)", x=a), compute_uv=False)[-1]
    assert abs(got - smallest) < 1e-3 * smallest
    for factor in (1e200, 1e-200):
        r = w.compute(f"qr_r(x * {factor})", x=a) / factor
        check(r, a, str(factor))


def test_r_has_the_same_bits_in_any_pool(folder):
    """Of many grains, several of which go on with one triangle; by rows and by columns."""
    rng = np.random.default_rng(3)
    a, y = rng.integers(-99, 100, (290_000, 60), "i1"), np.arange(290_000)[:, None]
    np.save(f"{folder}/a.npy", a)
    np.save(f"{folder}/y.npy", y)
    np.save(f"{folder}/f.npy", np.asfortranarray(a[:20_000, :33].astype("f4")))
    np.save(f"{folder}/g.npy", a.ravel()[:5000 * 240].reshape(5000, 240))  # the pool has four triangles
    found = set()
    for pool, threads in (("8M", 1), ("64M", 3)):
        daemon = Daemon(pool=pool, threads=threads)
        daemon.ctl("run", "qr_r(a, b=y)", f"a={folder}/a.npy", f"y={folder}/y.npy",
                   "-o", f"{folder}/r.npy")
        daemon.ctl("run", "qr_r(float64(f))", f"f={folder}/f.npy", "-o", f"{folder}/s.npy")
        daemon.ctl("run", "qr_r(float64(g))", f"g={folder}/g.npy", "-o", f"{folder}/t.npy")
        daemon.stop()
        found.add(tuple(np.load(f"{folder}/{name}.npy").tobytes() for name in "rst"))
    assert len(found) == 1
    for r, whole in zip(found.pop(), (np.hstack([a[:, :4], a[:, -2:], y]), a[:20_000, :33],
                                           a.ravel()[:5000 * 240].reshape(5000, 240)), strict=True):
        r = np.frombuffer(r)
        r = r.reshape([round(len(r) ** 0.5)] * 2)
        some = [0, 1, 2, 3, -3, -2, -1] if len(r) == 61 else slice(None)
        whole = whole.astype("i8")
        np.testing.assert_allclose((r.T @ r)[some][:, some], np.einsum("ij,ik", whole, whole),
                                   rtol=1e-11, atol=1e-4)


def test_what_r_refuses(w):
    for code, expr, shape in (("bad-shape", "qr_r(x)", (4,)), ("bad-shape", "qr_r(x)", (4, 0)),
                              ("bad-shape", "qr_r(x, b=x)", (4, 2)),
                              ("limit-exceeded", "qr_r(x)", (2, 1025))):
        with pytest.raises(wire.Error) as caught:
            w.compute(expr, x=np.zeros(shape))
        assert caught.value.code == code and caught.value.expected and caught.value.found, expr
