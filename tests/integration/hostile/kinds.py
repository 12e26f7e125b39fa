"""A job of every kind, by the Python package, each with a check of its result.

`KINDS` maps names to functions of (gd, folder, seed). Each computes something with the package that is
connected, and asserts that the result is NumPy's. Where a file is written, its name has the seed, and
`check_files()` looks at what a folder has afterwards: a file that has its name is whole.
"""

import pathlib

import numpy as np

N = 60_000  # elements: larger than what travels inline
IS_ONCE = {"in_place"}  # not repeated when a worker or daemon is lost


def _numbers(seed, n=N):
    return (np.arange(n, dtype="f8") * (seed % 7 + 1)) % 1013 - 500


def _matrices(seed):
    a = (np.arange(300 * 200, dtype="f8").reshape(300, 200) * (seed % 5 + 1)) % 17 - 8
    return a, a[:250].T.copy()


def inline(gd, folder, seed):
    a = _numbers(seed, 100)
    np.testing.assert_array_equal(gd.evaluate("a*2 + 1", a=a), a * 2 + 1)


def shared(gd, folder, seed):
    a = gd.asarray(_numbers(seed))
    np.testing.assert_array_equal(gd.evaluate("abs(a) - 1", a=a), abs(a) - 1)


def heap(gd, folder, seed):
    a, b = _numbers(seed), _numbers(seed + 1)
    np.testing.assert_array_equal(gd.evaluate("a*b", a=a, b=b), a * b)


def files(gd, folder, seed):
    path = folder / f"source-{seed % 4}.npy"
    gd.evaluate("a + k", a=gd.open(path), k=seed, to=folder / f"sum-{seed}.npy")
    np.testing.assert_array_equal(np.load(folder / f"sum-{seed}.npy"), np.load(path) + seed)


def compressed(gd, folder, seed):
    gd.evaluate("a + k", a=gd.open(f"{folder}/source.h5:/gzip"), k=seed,
                to=f"{folder}/sum-{seed}.h5:/y")
    np.testing.assert_array_equal(np.asarray(gd.open(f"{folder}/sum-{seed}.h5:/y").compute()),
                                  _numbers(0) + seed)


def reductions(gd, folder, seed):
    a = _numbers(seed).reshape(-1, 60)
    low, total = gd.evaluate(["min(a, axis=0)", "sum(a)"], a=a)
    np.testing.assert_array_equal(low, a.min(axis=0))
    assert total == a.sum()


def two_passes(gd, folder, seed):
    a = _numbers(seed).reshape(-1, 60)
    np.testing.assert_array_equal(gd.evaluate("a - max(a, axis=0)", a=a), a - a.max(axis=0))


def scan(gd, folder, seed):
    a = _numbers(seed)
    np.testing.assert_array_equal(gd.evaluate("cumsum(a)", a=a), np.cumsum(a))


def quantiles(gd, folder, seed):
    a = _numbers(seed)
    assert gd.evaluate("median(a)", a=a) == np.median(a)


def counts(gd, folder, seed):
    a = _numbers(seed)
    found = gd.evaluate("histogram(a, bins=10, range=(-500, 600))[0]", a=a)
    np.testing.assert_array_equal(found, np.histogram(a, bins=10, range=(-500, 600))[0])


def drawn(gd, folder, seed):
    a = gd.evaluate("uniform(size=(60000,), seed=s)".replace("s)", f"{seed})"))
    assert 0 <= a.min() and a.max() < 1 and 0.45 < a.mean() < 0.55


def product(gd, folder, seed):
    a, b = _matrices(seed)
    np.testing.assert_array_equal(gd.evaluate("a @ b", a=a, b=b), a @ b)


def moved(gd, folder, seed):
    a = _numbers(seed).reshape(200, 300)
    np.testing.assert_array_equal(gd.concatenate([a, a], axis=1).compute(),
                                  np.concatenate([a, a], axis=1))


def in_place(gd, folder, seed):
    a = gd.asarray(_numbers(seed))
    wanted = a * 3
    gd.evaluate("a*3", a=a, out=a)
    np.testing.assert_array_equal(a, wanted)


KINDS = {f.__name__: f for f in (inline, shared, heap, files, compressed, reductions, two_passes, scan,
                                 quantiles, counts, drawn, product, moved, in_place)}


def prepare(folder):
    """The sources that the kinds read."""
    import h5py
    for k in range(4):
        np.save(folder / f"source-{k}.npy", _numbers(k))
    with h5py.File(folder / "source.h5", "w") as file:
        file.create_dataset("gzip", data=_numbers(0), chunks=(5000,), compression="gzip")


def check_files(folder):
    """Every file that has its name is whole. How many there are."""
    import h5py
    n = 0
    for path in sorted(pathlib.Path(folder).glob("sum-*")):
        seed = int(path.stem.split("-")[1])
        if path.suffix == ".npy":
            found, wanted = np.load(path), _numbers(seed % 4) + seed
        else:
            with h5py.File(path) as file:
                found, wanted = file["y"][:], _numbers(0) + seed
        np.testing.assert_array_equal(found, wanted, str(path))
        n += 1
    return n
