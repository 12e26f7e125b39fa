"""gd.ndimage against scipy.ndimage: names, parameters, modes, dtypes; windows of windows."""

import inspect

import numpy as np
import pytest

from catalogue import NUMPY_2

pytestmark = [pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes")]

KERNEL = [[0.5, 1, -2], [3, 0.25, 1], [0, 1, 2], [1, 1, -1]]
CASES = [
    ("uniform_filter", (5,), {}), ("uniform_filter", ((4, 3),), {"origin": (1, -1)}),
    ("uniform_filter", (3,), {"axes": (1,)}), ("uniform_filter1d", (7, 0), {"origin": 2}),
    ("maximum_filter", (4,), {}), ("minimum_filter", ((1, 9),), {}),
    ("maximum_filter", (), {"footprint": np.ones((2, 5))}), ("minimum_filter1d", (6,), {}),
    ("maximum_filter1d", (3, 0), {"origin": -1}), ("median_filter", (3,), {}),
    ("median_filter", ((2, 4),), {}), ("rank_filter", (-2, 5), {}),
    ("percentile_filter", (30, (3, 4)), {}), ("percentile_filter", (-1, 3), {}),
    ("gaussian_filter", (1.5,), {}), ("gaussian_filter", ((2, 0.7),), {"order": (1, 0)}),
    ("gaussian_filter", (3,), {"truncate": 2.5}), ("gaussian_filter", (1,), {"radius": 3}),
    ("gaussian_filter1d", (2, 0), {"order": 3}), ("laplace", (), {}),
    ("gaussian_laplace", (1.2,), {}), ("gaussian_gradient_magnitude", (1.2,), {}),
    ("sobel", (), {}), ("sobel", (0,), {}), ("prewitt", (1,), {}),
    ("correlate", (KERNEL,), {"origin": (1, 0)}), ("convolve", (KERNEL,), {"origin": (-1, 1)}),
    ("convolve", (KERNEL,), {}), ("correlate1d", ([1, 2.5, -1, 4], 0), {"origin": 1}),
    ("convolve1d", ([1, 2.5, -1, 4],), {"origin": -1}), ("convolve1d", ([1, 2.5, 4],), {}),
]
MODES = ("reflect", "mirror", "nearest", "constant", "wrap")


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "i4"])
def test_every_filter(gd, dtype):
    ndimage = pytest.importorskip("scipy.ndimage")
    rng = np.random.default_rng(1)
    u = (np.abs(rng.normal(size=(23, 31))) * 40).astype(dtype)
    x = gd.lazy(u)
    for case, (name, words, more) in enumerate(CASES):
        is_signed = name.startswith(("c", "laplace", "gaussian_", "sobel", "prewitt"))
        if dtype == "u1" and is_signed and name != "gaussian_filter" or \
                dtype[0] in "ui" and more.get("order"):
            continue  # what does not fit wraps otherwise
        mode = MODES[case % 5]
        more = {**more, "mode": mode, **({"cval": 2.0} if mode == "constant" else {})}
        try:
            want = getattr(ndimage, name)(u, *words, **more)
        except TypeError:  # an older SciPy has no axes here
            continue
        got = np.asarray(getattr(gd.ndimage, name)(x, *words, **more))
        assert got.dtype == want.dtype and got.shape == want.shape, name
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, 2e-5 if dtype == "f4" else 1e-11,
                                       3e-4 if dtype == "f4" else 1e-10, err_msg=f"{name} {mode}")
        else:  # a mean that is whole may be just below it in one of the two
            assert (np.abs(got.astype("i8") - want) <= 1).all(), f"{name} {mode}"
            assert (got != want).mean() < 0.2, f"{name} {mode}"
    wide = np.asarray(gd.ndimage.uniform_filter(x, 3, output=np.float32))
    assert wide.dtype == np.float32


def test_parameters_are_scipys(gd):
    ndimage = pytest.importorskip("scipy.ndimage")
    for name in gd.ndimage.__all__:
        theirs = list(inspect.signature(getattr(ndimage, name)).parameters)
        own = list(inspect.signature(getattr(gd.ndimage, name)).parameters)
        kept = [one for one in own if one in theirs or one not in ("axes", "radius", "more")]
        assert kept == [one for one in theirs if one in own], name


def test_windows_of_windows_and_of_what_passes_make(gd):
    ndimage = pytest.importorskip("scipy.ndimage")
    rng = np.random.default_rng(2)
    u, v = rng.normal(size=(60, 80)), rng.normal(size=80)
    x = gd.lazy(u)
    edges = gd.ndimage.sobel(gd.ndimage.gaussian_filter(x * v, 2) - x.mean())
    want = ndimage.sobel(ndimage.gaussian_filter(u * v, 2) - u.mean())
    np.testing.assert_allclose(np.asarray(edges), want, 1e-9, 1e-9)
    np.testing.assert_allclose((edges * x).sum(axis=0), (want * u).sum(axis=0), 1e-8, 1e-8)
    np.testing.assert_allclose(edges[3:9, ::7], want[3:9, ::7], 1e-9, 1e-9)
    np.testing.assert_allclose(np.asarray(gd.ndimage.gaussian_filter(x, 25)),
                               ndimage.gaussian_filter(u, 25), 1e-9, 1e-9)  # a job for each axis
    np.testing.assert_allclose(np.asarray(gd.window_std(x, (3, 5), mode="wrap", origin=(1, -2))),
                               gd.evaluate("window_std(u, (3, 5), mode=wrap, origin=(1, -2))", u=u))
    np.testing.assert_array_equal(np.asarray(gd.convolve(x, [[1, 2]])),
                                  gd.evaluate("convolve(u, [[1, 2]])", u=u))


def test_gradient(gd):
    rng = np.random.default_rng(3)
    holes = rng.normal(size=(9, 12))
    holes[[0, 2, 5, 8], [0, 3, 11, 7]], holes[4, 6] = np.nan, np.inf
    for u in (rng.normal(size=(7, 9)), rng.integers(0, 99, (5, 6, 4)), rng.normal(size=40),
              rng.normal(size=(6, 5)).astype("f4"), holes):
        for words, more in (((), {}), ((0.5,), {"edge_order": 2}), ((), {"axis": -1}),
                            ([1.5, 2, 3][:u.ndim], {}),
                            ([np.arange(n) * (3 if n % 2 else 1) + rng.random(n) * (n % 2)
                              for n in u.shape], {}),
                            ((np.sort(rng.random(u.shape[0])),), {"axis": 0, "edge_order": 2})):
            got, want = gd.gradient(u, *words, **more), np.gradient(u, *words, **more)
            several = isinstance(got, list)
            for one, other in zip(got if several else [got], want if several else [want],
                                  strict=True):
                one = np.asarray(one)
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, 1e-5 if u.dtype == "f4" else 1e-12, 1e-5)
    for wrong in (lambda: gd.gradient(u, [1, 2]), lambda: gd.gradient(u[:1]),
                  lambda: gd.gradient(u, [[1, 2]]), lambda: gd.gradient(u, 1, [1, 2])):
        with pytest.raises(gd.errors.RequestError):
            wrong()


def test_what_is_refused(gd):
    x = gd.lazy(np.zeros((9, 9)))
    for call in (lambda: gd.ndimage.uniform_filter(x, 3, mode="edge"),
                 lambda: gd.ndimage.uniform_filter(x, (3, 3, 3)),
                 lambda: gd.ndimage.maximum_filter(x, footprint=[[1, 0]]),
                 lambda: gd.ndimage.maximum_filter(x), lambda: gd.ndimage.gaussian_filter(x, 40),
                 lambda: gd.ndimage.correlate(x, [1, 2]), lambda: gd.ndimage.sobel(x, 2),
                 lambda: gd.ndimage.uniform_filter(x, 3, output=np.zeros((9, 9))),
                 lambda: gd.window_mean(x, 2.5), lambda: gd.window_mean(x, 3, mode="mirror"),
                 lambda: gd.correlate(x, [[1, np.nan]])):
        with pytest.raises(gd.errors.BadArgument):
            call()
    with pytest.raises(gd.errors.BadShape):
        np.asarray(gd.window_mean(x, 0))
