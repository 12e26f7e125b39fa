"""What tf32= of the package reaches, by what it does to the numbers: 1 + 2**-12 is a float32, and 1 in the
10 bits of TF32. The processor takes no notice; the device is the test double, if there is no other."""

import pickle

import numpy as np
import pytest

import conftest

N = 64
FINE = np.float32(1 + 2**-12)


@pytest.fixture(scope="module")
def device():
    d = conftest.Daemon(engine="cuda", pool="64M")
    yield d
    d.stop()


@pytest.fixture(params=["cpu", "cuda"])
def where(request, daemon, device):
    """The package, and whether its jobs go to a device."""
    import gpuarrayd
    is_device = request.param == "cuda"
    gpuarrayd.connect((device if is_device else daemon).socket)
    yield gpuarrayd, is_device
    gpuarrayd.close()


@pytest.fixture
def pair():
    return np.full((N, N), FINE), np.ones((N, N), "f4")


def is_rounded(result):
    """Whether the sums of N were made of ones, or of what was there."""
    result = np.asarray(result)
    assert result.dtype == np.float32
    assert (result == N).all() or (result == N * FINE).all()
    return bool((result == N).all())


def test_what_is_computed_at_once(where, pair, tmp_path):
    gd, is_device = where
    a, b = pair
    seen = []
    for tf32 in (False, True):
        rounded = tf32 and is_device
        assert is_rounded(gd.evaluate("a @ b", a=a, b=b, tf32=tf32)) is rounded
        assert is_rounded(gd.evaluate(["a @ b"], a=a, b=b, tf32=tf32)[0]) is rounded
        assert is_rounded(gd.evaluate("a @ b", a=a, b=b, tf32=tf32, progress=seen.append)) is rounded
        x = gd.lazy(a)
        assert is_rounded((x @ b).compute(tf32=tf32)) is rounded
        assert is_rounded((x @ b).compute(tf32=tf32, progress=seen.append)) is rounded
        assert is_rounded(gd.compute(x @ b, tf32=tf32)[0]) is rounded
        assert is_rounded(gd.compute(x @ b, x @ b, tf32=tf32)[1]) is rounded
        assert is_rounded(gd.save(tmp_path / "c.npy", x @ b, tf32=tf32).compute()) is rounded
        out = np.zeros((N, N), "f4")
        assert is_rounded(gd.matmul(a, b, out, tf32=tf32)) is rounded
        assert is_rounded(gd.matmul(a, b, np.zeros((N, N), "f4"), beta=1, tf32=tf32)) is rounded
    assert seen


def test_futures_tell_the_precision(where, pair):
    gd, is_device = where
    a, b = pair
    for tf32, given in ((False, "float32"), (True, "tf32" if is_device else "float32")):
        for future in (gd.submit("a @ b", a=a, b=b, tf32=tf32),
                       gd.submit(gd.lazy(a) @ b, tf32=tf32)):
            assert is_rounded(future.result()) is (given == "tf32")
            assert future.stats["product_precision"] == given


def test_lazies_keep_it(where, pair):
    """In what is made of them, too, also where it is computed first or by another process."""
    gd, is_device = where
    a, b = pair
    for tf32 in (False, True):
        rounded = tf32 and is_device
        product = gd.matmul(a, b, tf32=tf32)
        assert is_rounded(product.compute()) is rounded
        assert is_rounded((product + 0).compute()) is rounded
        assert is_rounded(product[3:5].compute()) is rounded
        assert is_rounded((gd.sum(product, axis=0) / N).compute()) is rounded
        assert is_rounded(pickle.loads(pickle.dumps(product)).compute()) is rounded
        assert is_rounded(gd.tensordot(a, b, 1, tf32=tf32).compute()) is rounded
        assert is_rounded(gd.einsum("ij,jk->ik", a, b, tf32=tf32).compute()) is rounded
        assert is_rounded(gd.einsum("ij,jk->ki", a, b, tf32=tf32).compute()) is rounded


def test_what_is_computed_first_is_computed_as_the_job_is(where, pair):
    """By jobs of its own: products that are summed, looked at in part, put together, multiplied."""
    gd, is_device = where
    a, b = pair
    ones = np.ones((N, N), "f4")
    for tf32 in (False, True):
        rounded = tf32 and is_device
        product = gd.lazy(a) @ b
        assert is_rounded((gd.sum(product, axis=0) / N).compute(tf32=tf32)) is rounded
        assert is_rounded(gd.compute(product[3:5], np.max(product, axis=1), tf32=tf32)[1]) is rounded
        assert is_rounded(gd.concatenate([product, product]).compute(tf32=tf32)) is rounded
        assert is_rounded(gd.concatenate([product, gd.cumsum(product, axis=0)])[:N]
                          .compute(tf32=tf32)) is rounded
        assert is_rounded((gd.flip(product) @ ones / N).compute(tf32=tf32)) is rounded
        assert gd.submit(gd.sum(product, axis=0) / N, tf32=tf32).result()[0] == (
            N if rounded else N * FINE)


def test_what_is_computed_first_is_computed_where_the_job_is(pair, start):
    """With both engines, where TF32 shows which it was."""
    import gpuarrayd as gd
    a, b = pair
    both = start(engine="auto", pool="64M")
    gd.connect(both.socket)
    try:
        product = gd.lazy(a) @ b
        for engine in ("cuda", "cpu"):
            rounded = engine == "cuda"
            for one in (gd.sum(product, axis=0) / N, gd.flip(product) @ np.ones((N, N), "f4") / N,
                        gd.concatenate([gd.cumsum(product, axis=0)[:1], product])):
                assert is_rounded(one.compute(engine=engine, tf32=True)) is rounded
    finally:
        gd.close()


def test_other_dtypes_are_as_they_were(where):
    gd, _ = where
    a = np.full((N, N), 1 + 2**-12)
    assert (gd.evaluate("a @ b", a=a, b=np.ones((N, N)), tf32=True) == N * (1 + 2**-12)).all()
    assert gd.evaluate("a + 1", a=1, tf32=True) == 2
    whole = np.full((N, N), 4097)
    assert (gd.evaluate("a @ a", a=whole, tf32=True) == N * 4097**2).all()
