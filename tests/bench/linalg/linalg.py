"""Least squares, principal components and singular values of npy files in the page cache, beside NumPy,
scikit-learn and Dask (where they are installed: pip install scikit-learn dask) on the same matrix in
memory, in the same run and in turns: seconds, the peers' as ratios, how far results are from the
planted or the peer's; of components beside what bounds them, one read of the file by two threads and
BLAS's product of the matrix in memory with itself. BLAS is not pinned on either side.

Of singular values ours are of one, two and three reads: what is off is told of all, from what eight
reads find. scikit-learn, which makes U too, is compared with what does so; Dask, which is asked for
values alone and makes no more, with the fewest reads that are no less exact than it is.

    linalg.py FOLDER [SCALE [ROUNDS [BENCH...]]]      with a daemon that has a pool of 256 MiB

SCALE divides the rows (1); BENCH: 0 least squares, 1 components, 2 singular values (all)."""

import os
import pathlib
import statistics
import sys
import time

import numpy as np

import gpuarrayd as gd

from reading import read

try:
    from sklearn.decomposition import PCA
    from sklearn.utils.extmath import randomized_svd
except ImportError:
    PCA = randomized_svd = None
try:
    import dask.array
except ImportError:
    dask = None

K = 20


def make(path, rows, columns, dtype, rank=0):
    """Noise, and planted directions; a part of the rows at a time."""
    rng = np.random.default_rng(1)
    x = np.lib.format.open_memmap(path, "w+", dtype, (rows, columns))
    planted = rng.normal(size=(rank, columns)) * np.linspace(3, 1, rank)[:, None] if rank else None
    for first in range(0, rows, 20_000):
        part = rng.normal(size=x[first:first + 20_000].shape)
        if rank:
            part += rng.normal(size=(len(part), rank)) @ planted
        x[first:first + 20_000] = part
    x.flush()


def timed(function):
    began = time.perf_counter()
    result = function()
    return time.perf_counter() - began, result


def compare(what, rounds, ours, peers, difference):
    times = {"ours": [], **{name: [] for name in peers}}
    found = {}
    for _ in range(rounds):  # in turns
        for name, run in {"ours": ours, **peers}.items():
            seconds, found[name] = timed(run)
            times[name].append(seconds)
    best = {name: statistics.median(all_of) for name, all_of in times.items()}
    print(f"{what}: {best['ours']:.2f} s", flush=True)
    for name in peers:
        print(f"    {name}: {best[name]:.2f} s, {best[name] / best['ours']:.2f} times as long, "
              f"results are off by {difference(found['ours'], found[name]):.1e}", flush=True)


def least_squares(folder, scale, rounds):
    path, rows = folder / "tall.npy", 4_000_000 // scale
    make(path, rows, 64, "f8")
    y = np.random.default_rng(2).normal(size=rows)
    x = np.load(path)
    compare(f"lstsq {rows} x 64 float64", rounds, lambda: gd.linalg.lstsq(gd.open(path), y)[0],
            {"numpy.linalg.lstsq": lambda: np.linalg.lstsq(x, y)[0]},
            lambda a, b: np.abs(a - b).max() / np.abs(b).max())
    path.unlink()


def components(folder, scale, rounds):
    path, rows = folder / "table.npy", 1_000_000 // scale
    make(path, rows, 100, "f4", 10)
    x = np.load(path)
    peers = {"scikit-learn's PCA": lambda: PCA(10).fit(x).singular_values_} if PCA else {}
    compare(f"pca {rows} x 100 float32", rounds,
            lambda: gd.linalg.pca(gd.open(path), 10).singular_values, peers,
            lambda a, b: np.abs(a / b - 1).max())
    limits = [(timed(lambda: read(path))[0], timed(lambda: x.T @ x)[0]) for _ in range(rounds)]
    print("    a read of the file {:.3f} s, x.T @ x in memory {:.3f} s".format(*map(statistics.median, zip(*limits))))
    path.unlink()


def singular_values(folder, scale, rounds):
    path, rows = folder / "wide.npy", 100_000 // scale
    make(path, rows, 5000, "f4", 2 * K)
    x = np.load(path)
    peers = {}
    if randomized_svd:
        peers["scikit-learn's randomized_svd"] = lambda: randomized_svd(x, K, random_state=0)[1]
    if dask:
        chunks = dask.array.from_array(x, chunks=(max(rows // 20, 1), 5000))
        for power in (2, 0):
            peers[f"dask's svd_compressed, {power} power iterations"] = lambda power=power: np.asarray(
                dask.array.linalg.svd_compressed(chunks, K, n_power_iter=power, iterator="QR", seed=0)[1])
    ours = {f"{n} reads": lambda n=n: gd.linalg.svd(gd.open(path), k=K, n_iter=n, compute_uv=False)
            for n in (3, 2, 1)}
    ours["3 reads and one for U"] = lambda: gd.linalg.svd(gd.open(path), k=K)[1]
    exact = gd.linalg.svd(gd.open(path), k=K, n_iter=8)[1]
    times, errors = {name: [] for name in (*ours, *peers)}, {}
    for _ in range(rounds):  # in turns
        for name, run in {**ours, **peers}.items():
            seconds, found = timed(run)
            times[name].append(seconds)
            errors[name] = np.abs(found / exact - 1).max()
    best = {name: statistics.median(all_of) for name, all_of in times.items()}
    floor = statistics.median(timed(lambda: read(path))[0] for _ in range(rounds))
    print(f"svd {rows} x 5000 float32, k = {K}; a read of the file alone {floor:.2f} s", flush=True)
    for name in ours:
        print(f"    ours, {name}: {best[name]:.2f} s, off by {errors[name]:.1e}")
    for name in peers:
        beside = [one for one in ours if errors[one] <= errors[name] and "U" not in one] or ["3 reads"]
        wanted = "3 reads and one for U" if name.startswith("scikit") else beside[-1]
        print(f"    {name}: {best[name]:.2f} s, off by {errors[name]:.1e}; {best[name] / best[wanted]:.2f} times as "
              f"long as {wanted}, {best[name] / best['3 reads']:.2f} as 3 reads", flush=True)
    path.unlink()


def main(folder, scale=1, rounds=3, *chosen):
    benches = least_squares, components, singular_values
    for bench in [benches[i] for i in chosen] or benches:
        bench(pathlib.Path(folder), scale, rounds)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
