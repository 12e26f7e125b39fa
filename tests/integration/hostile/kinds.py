"""A job of every kind, by the Python package, each with a check of its result.

`KINDS` maps names to functions of (gd, folder, seed). Each computes something with the package that is
connected, and asserts that the result is NumPy's. Where a file is written, its name has the seed, and
`check_files()` looks at what a folder has afterwards: a file that has its name is whole.
"""

import pathlib
import unittest.mock

import numpy as np

N = 60_000  # elements: larger than what travels inline
IS_ONCE = {"in_place", "generated"}  # not repeated when a worker or daemon is lost


def _numbers(seed, n=N):
    return (np.arange(n, dtype="f8") * (seed % 7 + 1)) % 1013 - 500


def _matrices(seed):
    a = (np.arange(300 * 200, dtype="f8").reshape(300, 200) * (seed % 5 + 1)) % 17 - 8
    return a, a[:250].T.copy()


def _collatz(x):
    if x % 2 > 0:
        return 3 * x + 1
    return x / 2


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


def generated(gd, folder, seed):
    """What a generator makes, and what comes of it block by block."""
    a = _numbers(seed).reshape(-1, 60)
    x = gd.from_generator(lambda: (a[i:i + 90] for i in range(0, 1000, 90)), "f8", (1000, 60))
    first = 0
    for block in gd.stream(x * 2, rows=300):
        np.testing.assert_array_equal(block, a[first:first + len(block)] * 2)
        first += len(block)
    assert first == 1000


def taken(gd, folder, seed):
    a, rows = _numbers(seed % 4).reshape(-1, 60), (np.arange(500) * (seed % 11 + 1)) % 1000
    np.testing.assert_array_equal(gd.open(folder / f"rows-{seed % 4}.npy")[rows].compute(), a[rows])


def batches(gd, folder, seed):
    """Some of an epoch's batches; of packed rows in a process that others share."""
    for x, rows in ((folder / f"rows-{seed % 4}.npy", _numbers(seed % 4).reshape(-1, 60)),
                    (f"{folder}/source.h5:/rows", _numbers(0).reshape(-1, 60))):
        known = {row.tobytes() for row in rows}
        loader = gd.DataLoader(gd.Dataset(x=x), batch_size=64, shuffle=True, seed=seed, memory="1M")
        for batch, _ in zip(loader, range(3)):
            assert {row.tobytes() for row in batch["x"]} <= known
        del batch, loader


def decomposed(gd, folder, seed):
    """R by a job, and of more columns by LAPACK of rows that are streamed."""
    from gpuarrayd._linalg import matrices
    with unittest.mock.patch.object(matrices, "SMALL_BYTES", 0):
        for n in (7, 200):
            a = np.random.default_rng(seed).normal(size=(300, n))
            r = gd.linalg.qr(a, "r")
            np.testing.assert_allclose(r.T @ r, a.T @ a, atol=1e-10)


def neighbours(gd, folder, seed):
    a = _numbers(seed).reshape(-1, 60)
    p = np.pad(a, 1, mode="edge")
    boxes = [p[i:i + 1000, j:j + 60] for i in range(3) for j in range(3)]
    found = gd.evaluate(["near(a, 1, 0) + near(a, -1, 0) - 2*a", "window_max(a, 3)"], a=a, mode="edge")
    np.testing.assert_array_equal(found[0], p[2:, 1:-1] + p[:-2, 1:-1] - 2 * a)
    np.testing.assert_array_equal(found[1], np.max(boxes, axis=0))


def stepped(gd, folder, seed):
    """Time steps, and steps of each element until it is done."""
    u = z = a = _numbers(seed)
    for _ in range(3):
        u = u + np.roll(u, -1)
    np.testing.assert_array_equal(gd.evaluate("repeat(3, u = u + near(u, 1))", u=a, mode="wrap"), u)
    for _ in range(5):
        z = np.where(z > 100, z, z + abs(a))
    np.testing.assert_array_equal(
        gd.evaluate("iterate(5, z = z + abs(a), until = z > 100)", a=a, z=a), z)


def mapped(gd, folder, seed):
    """A function of the program's, block by block."""
    a = _numbers(seed).reshape(-1, 60)
    assert gd.map_blocks(lambda x: x[::-1] * 2, a, dtype="f8").sum().compute() == a.sum() * 2


def rows_sorted(gd, folder, seed):
    """Rows that fit are sorted as they are read; of larger ones sorted runs in files are merged."""
    from gpuarrayd._functions import large_sorts, sorting
    a = _numbers(seed)
    b = a.reshape(-1, 60)
    np.testing.assert_array_equal(gd.sort(b, axis=1).compute(), np.sort(b, axis=1))
    with unittest.mock.patch.multiple(sorting, MOST_BYTES=900), \
            unittest.mock.patch.multiple(large_sorts, CHUNK_BYTES=1 << 17):
        np.testing.assert_array_equal(gd.sort(a).compute(), np.sort(a))


def own_kernel(gd, folder, seed):
    """A function of numbers, compiled."""
    f, a = gd.vectorize(_collatz), _numbers(seed)
    np.testing.assert_array_equal(np.asarray(f(a)), np.where(a % 2 > 0, 3 * a + 1, a / 2))


def solved(gd, folder, seed):
    """What is small after one pass or two over what is not."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(2000, 9))
    np.testing.assert_allclose(gd.linalg.svd(a, k=3)[1], np.linalg.svd(a, compute_uv=False)[:3], rtol=1e-8)
    x = gd.linalg.lstsq(a, a @ np.arange(9.0))[0]
    np.testing.assert_allclose(x, np.arange(9.0), atol=1e-8)


def tensor(gd, folder, seed):
    factors = [np.random.default_rng(seed).normal(size=(n, 2)) for n in (20, 15, 10)]
    t = np.einsum("ir,jr,kr", *factors)
    core, found = gd.tensor.tucker(t, (2, 2, 2))
    np.testing.assert_allclose(np.einsum("abc,ia,jb,kc", core, *found), t, atol=1e-6)


def archived(gd, folder, seed):
    x = gd.open(folder / f"source-{seed % 4}.npy") + seed
    gd.save(f"{folder}/sum-{seed}.npz:y", x)
    np.testing.assert_array_equal(np.load(folder / f"sum-{seed}.npz")["y"], _numbers(seed % 4) + seed)


KINDS = {f.__name__: f for f in (inline, shared, heap, files, compressed, reductions, two_passes, scan,
                                 quantiles, counts, drawn, product, moved, in_place, generated, taken,
                                 batches, decomposed, neighbours, stepped, mapped, rows_sorted, own_kernel, solved,
                                 tensor, archived)}


def prepare(folder):
    """The sources that the kinds read."""
    import h5py
    for k in range(4):
        np.save(folder / f"source-{k}.npy", _numbers(k))
        np.save(folder / f"rows-{k}.npy", _numbers(k).reshape(-1, 60))
    with h5py.File(folder / "source.h5", "w") as file:
        file.create_dataset("gzip", data=_numbers(0), chunks=(5000,), compression="gzip")
        file.create_dataset("rows", data=_numbers(0).reshape(-1, 60), chunks=(100, 60), compression="gzip")


def check_files(folder):
    """Every file that has its name is whole. How many there are."""
    import h5py
    n = 0
    for path in sorted(pathlib.Path(folder).glob("sum-*")):
        seed = int(path.stem.split("-")[1])
        if path.suffix == ".h5":
            with h5py.File(path) as file:
                found, wanted = file["y"][:], _numbers(0) + seed
        else:
            found, wanted = np.load(path), _numbers(seed % 4) + seed
            found = found if path.suffix == ".npy" else found["y"]
        np.testing.assert_array_equal(found, wanted, str(path))
        n += 1
    return n
