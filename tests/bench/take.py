"""Elements by their indices beside NumPy's and h5py's, in turns, as ratios.

take.py FOLDER MIB [ROUNDS], with a daemon.

Rows of 4000 and of 512 bytes out of an npy file of MIB MiB, in a random order, beside a memmap's fancy indexing and beside
reading the file once (the limit); a tenth of single elements; rows where a mask is true; rows out of an HDF5 file with
shuffle and gzip-4, all of them in a random order, beside decoding it once in order and, of 500 rows, h5py by rows.
"""

import pathlib
import statistics
import sys
import time

import h5py
import numpy as np

import gpuarrayd as gd



def timed(function):
    """As a round of in_turns()."""
    def one_round():
        began = time.perf_counter()
        function()
        return time.perf_counter() - began
    return one_round


def in_turns(rounds, **functions):
    """name -> the median of its seconds. Each goes once before, so that the file is in memory."""
    for function in functions.values():
        function()
    taken = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            taken[name].append(function())
    return {name: statistics.median(values) for name, values in taken.items()}


def report(what, n_bytes, taken):
    ours = taken.pop("ours")
    print(f"{what:24} {n_bytes / ours / 1e9:6.2f} GB/s  {ours:7.3f} s  "
          + "  ".join(f"{name} {value:.3f} s ({value / ours:.2f})" for name, value in taken.items()), flush=True)


def same(got, want):
    assert np.array_equal(got, want)


def from_npy(folder, n_bytes, row, rounds, rng):
    n = n_bytes // (4 * row)
    path = folder / "a.npy"
    np.save(path, np.arange(n * row, dtype="f4").reshape(n, row))
    order = rng.permutation(n)
    x, mapped = gd.open(path), np.load(path, mmap_mode="r")
    same(x[order].compute(), mapped[order])
    report(f"npy, rows of {4 * row}", n * row * 4, in_turns(
        rounds, ours=timed(lambda: x[order].compute()), memmap=timed(lambda: mapped[order]),
        once=timed(lambda: x.compute())))
    mask = rng.random(n) < 0.3
    report("  where a mask is true", int(mask.sum()) * row * 4, in_turns(
        rounds, ours=timed(lambda: x[mask].compute()), memmap=timed(lambda: mapped[mask])))
    flat, flat_mapped = rng.integers(0, n * row, n * row // 10), mapped.reshape(-1)
    report("  single elements", flat.size * 4, in_turns(
        rounds, ours=timed(lambda: gd.take(x, flat).compute()), memmap=timed(lambda: flat_mapped[flat])))
    path.unlink()


def from_hdf5(folder, n_bytes, row, rounds, rng):
    n = n_bytes // (4 * row)
    a = (np.sin(np.arange(n * row, dtype="f4") / 5000) * 20).round(2).reshape(n, row)
    path = folder / "a.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("a", data=a, chunks=(max(1, (1 << 20) // (4 * row)), row), compression="gzip",
                         compression_opts=4, shuffle=True)
    order, few = rng.permutation(n), rng.permutation(n)[:500]
    x = gd.open(f"{path}:/a")
    same(x[order].compute(), a[order])
    report("HDF5 gzip-4, all rows", n * row * 4, in_turns(
        rounds, ours=timed(lambda: x[order].compute()), **{"in order": timed(lambda: x.compute())}))
    with h5py.File(path) as f:
        def by_rows():
            return [f["a"][i] for i in few]
        began = time.perf_counter()
        by_rows()
        one = (time.perf_counter() - began) / len(few)
    print(f"  h5py by rows: {one * 1e6:.0f} us a row, {one * n:.0f} s for all", flush=True)
    path.unlink()


def main():
    folder, n_bytes = pathlib.Path(sys.argv[1]), int(sys.argv[2]) << 20
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    rng = np.random.default_rng(1)
    print(f"{n_bytes >> 20} MiB of float32, medians of {rounds} rounds; in brackets: times ours")
    from_npy(folder, n_bytes, 1000, rounds, rng)
    from_npy(folder, n_bytes, 128, rounds, rng)
    from_hdf5(folder, n_bytes, 250, rounds, rng)


main()
