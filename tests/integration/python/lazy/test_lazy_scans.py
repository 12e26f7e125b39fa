"""Running sums and differences of lazies against NumPy's, on every dtype, along every axis, of parts,
of expressions, inside of expressions, and into destinations."""

import itertools

import h5py
import numpy as np
import pytest

from catalogue import DTYPES, same, specials


def cube(dtype, seed=1):
    rng = np.random.default_rng(seed)
    if dtype == "?":
        return rng.integers(0, 2, (5, 6, 7)).astype(bool)
    if np.dtype(dtype).kind == "f":
        return rng.normal(0, 100, (5, 6, 7)).astype(dtype)
    return rng.integers(0, 100, (5, 6, 7)).astype(dtype)


# -- differences --------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
def test_differences_are_numpys(gd, dtype):
    a = cube(dtype)
    x = gd.lazy(a)
    for n, axis in itertools.product((0, 1, 2, 5, 9), (0, 1, -1)):
        with np.errstate(all="ignore"):
            same(np.diff(x, n, axis).compute(), np.diff(a, n, axis))


@pytest.mark.parametrize("dtype", ["i2", "f4", "?"])
def test_differences_with_borders(gd, dtype):
    a = cube(dtype)
    for prepend, append, axis in [(0, np._NoValue, 0), (np._NoValue, 1.5, -1), (a[:2], a[:1], 0),
                                  (a.astype("f8")[:, :3], 7, 1)]:
        want = np.diff(a, 1, axis, prepend=prepend, append=append)
        same(np.diff(gd.lazy(a), 1, axis, prepend=prepend, append=append).compute(), want)


def test_differences_of_expressions(gd):
    a = cube("f4")
    x = gd.lazy(a)
    same(np.diff(2*x + x.mean(dtype="f8"), axis=1).dtype, np.dtype("f8"))
    same(np.diff(x * 2 + 1, 2, 1).compute(), np.diff(a * np.float32(2) + np.float32(1), 2, 1))
    same(np.diff(x > 3).compute(), np.diff(a > 3))
    same(np.diff(x.max(axis=0), axis=0).compute(), np.diff(a.max(axis=0), axis=0))
    same(np.diff(np.concatenate([x, x[::-1]], axis=2)).compute(),
         np.diff(np.concatenate([a, a[::-1]], axis=2)))
    same(np.diff(x.T, axis=0).compute(), np.diff(a.T, axis=0))
    noise = gd.random.normal(size=(4, 9), seed=3)
    same(np.diff(noise).compute(), np.diff(noise.compute()))


def test_what_is_stored_for_differences_is_made_once(gd, daemon):
    """Two views of what is computed first: one job makes it, and one the result."""
    noise = gd.random.normal(size=(50, 60), seed=3)
    made = np.diff(noise, 3)
    made.dtype
    before = gd.stats()["jobs"]["submitted"]
    made.compute()
    assert gd.stats()["jobs"]["submitted"] - before == 2


def test_differences_into_files(gd, folder):
    a = cube("f8")
    np.save(folder / "a.npy", a)
    got = gd.save(folder / "d.h5:/x/d", np.diff(gd.open(folder / "a.npy"), axis=0))
    same(got.compute(), np.diff(a, axis=0))
    with h5py.File(folder / "d.h5") as f:
        same(f["x/d"][()], np.diff(a, axis=0))


# -- running sums and products ------------------------------------------------------------------

def exact(name, a, **how):
    """Floats are added in float64 and rounded when they are stored."""
    if a.dtype == np.float32 and "dtype" not in how:
        return getattr(np, name)(a, dtype="f8", **how).astype("f4")
    return getattr(np, name)(a, **how)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scans_are_numpys(gd, name, dtype):
    a = cube(dtype)
    if name == "cumprod" and a.dtype.kind == "f":
        a = 1 + a / 1000
        a = a.astype(dtype)
    x = gd.lazy(a)
    for axis in (0, 1, -1):
        with np.errstate(all="ignore"):
            same(getattr(np, name)(x, axis=axis).compute(), exact(name, a, axis=axis))
            same(getattr(x, name)(axis, dtype="f8").compute(), getattr(a, name)(axis, dtype="f8"))
    row = specials(dtype, 300)
    with np.errstate(all="ignore"):
        same(getattr(gd, name)(row).compute(), exact(name, row))
    same(getattr(gd, name)(a[:0], 0).compute(), getattr(np, name)(a[:0], 0))
    same(getattr(gd, name)(a[:1, 0, 0]).compute(), getattr(np, name)(a[:1, 0, 0]))
    same(getattr(gd, name)(a[0, 0, 0]).compute(), getattr(np, name)(a[0, 0, 0]))


def test_scans_inside_of_expressions(gd):
    a = cube("f8")
    x = gd.lazy(a)
    sums = x.cumsum(axis=1)
    same((sums / sums[:, -1:] + x).compute(),
         a.cumsum(axis=1) / a.cumsum(axis=1)[:, -1:] + a)
    same(np.diff(sums, axis=1).compute(), np.diff(a.cumsum(axis=1), axis=1))
    same(sums.max(axis=(0, 1)).compute(), a.cumsum(axis=1).max(axis=(0, 1)))
    same(sums.T.compute(), a.cumsum(axis=1).T)
    same(sums[1:3, ::2, 0].compute(), a.cumsum(axis=1)[1:3, ::2, 0])
    same(np.cumsum(sums, axis=0).compute(), np.cumsum(a.cumsum(axis=1), axis=0))
    same(np.cumsum(np.sqrt(x * x), axis=2).compute(), np.cumsum(np.sqrt(a * a), axis=2))
    same(sums.astype("i4").compute(), a.cumsum(axis=1).astype("i4"))
    same(np.concatenate([sums, x]).compute(), np.concatenate([a.cumsum(axis=1), a]))


def test_accumulate_of_ufuncs(gd):
    a = cube("i1")[0, 0]
    same(np.add.accumulate(gd.lazy(a)).compute(), np.cumsum(a))
    same(np.multiply.accumulate(gd.lazy(cube("f8")), 1).compute(),
         np.multiply.accumulate(cube("f8"), 1))


def test_scans_into_destinations(gd, folder):
    a = cube("f4")
    out = np.empty(a.shape, "f8")
    assert np.cumsum(gd.lazy(a), axis=0, out=out) is out
    same(out.astype("f4"), exact("cumsum", a, axis=0))
    got = gd.save(folder / "s.npy", np.cumsum(gd.lazy(a), axis=2))
    same(got.compute(), exact("cumsum", a, axis=2))
    sums, high = gd.compute(gd.cumsum(a, 1), gd.max(a))
    same(sums, exact("cumsum", a, axis=1))
    same(high, a.max())
