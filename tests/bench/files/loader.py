"""Shuffled batches of a npy file in the page cache: DataLoader beside NumPy's fancy indexing of a memmap on
1 to 4 threads, PyTorch's DataLoader where it is installed, and the limits: the same bytes copied in order,
and the same rows copied in random order by nothing but two threads (COPIES: a build's tests/bench/row_copies).

loader.py FOLDER COPIES [N_ROWS [N_COLUMNS [BATCH [ROUNDS [MEMORY]]]]], with a daemon. Then next() on a batch that
is ready.
"""

import concurrent.futures
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

import gpuarrayd as gd

SEED = 7


def make(path, n_rows, n_columns):
    x = np.lib.format.open_memmap(path, "w+", "f4", (n_rows, n_columns))
    for first in range(0, n_rows, 4096):
        x[first:first + 4096] = first


def timed(work):
    began = time.perf_counter()
    n_rows = work()
    return n_rows / (time.perf_counter() - began)


def main():
    folder, copies, *given = sys.argv[1:]
    n_rows, n_columns, size, rounds, memory = given + ["200000", "1000", "256", "5", "64M"][len(given):]
    n_rows, n_columns, size, rounds = map(int, (n_rows, n_columns, size, rounds))
    path = str(pathlib.Path(folder) / "rows.npy")
    make(path, n_rows, n_columns)
    x = np.load(path, mmap_mode="r")
    order = np.random.default_rng(SEED).permutation(n_rows)
    loader = gd.DataLoader(gd.Dataset(x=path), size, shuffle=True, seed=SEED, drop_last=True,
                           memory=memory, prefetch=4)
    n_batches = n_rows // size

    def fancy(n_threads):
        def one(k):
            return len(x[order[k * size:(k + 1) * size]])
        with concurrent.futures.ThreadPoolExecutor(n_threads) as pool:
            return sum(pool.map(one, range(n_batches)))

    def in_order():
        to = np.empty((size, n_columns), "f4")
        for k in range(n_batches):
            to[...] = x[k * size:(k + 1) * size]
        return n_batches * size

    def only_copied():
        words = [x.offset, n_columns * 4, n_rows, 1]
        done = subprocess.run([copies, path, *map(str, words)], stdout=subprocess.PIPE, check=True)
        return n_rows / float(done.stdout)

    def ours():
        return sum(len(batch["x"]) for batch in loader)

    sides = {"copied in order": in_order, "gd.DataLoader": ours}
    sides |= {f"x[order], {n} thread{'s' * (n > 1)}": (lambda n=n: fancy(n)) for n in (1, 2, 4)}
    try:
        import torch
        tensor = torch.from_numpy(np.load(path, mmap_mode="r+"))
        peer = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tensor), size, shuffle=True,
                                           num_workers=2, drop_last=True)
        sides["torch DataLoader, 2 workers"] = lambda: sum(len(batch[0]) for batch in peer)
    except ImportError:
        print("PyTorch is not installed")
    rates = {name: [] for name in [*sides, "only copied, 2 threads"]}
    for _ in range(rounds):
        for name, work in sides.items():
            rates[name].append(timed(work))
        rates["only copied, 2 threads"].append(only_copied())
    medians = {name: statistics.median(found) for name, found in rates.items()}
    best = max(rate for name, rate in medians.items() if name.startswith("x["))
    print(loader.explain().rstrip())
    print(f"{n_rows} rows of {n_columns * 4} bytes, batches of {size}, median of {rounds}")
    for name, rate in medians.items():
        print(f"{name:30} {rate / 1e6:8.3f} M rows/s  {rate * n_columns * 4e-9:7.2f} GB/s"
              f"  {rate / best:6.2f} x the best fancy indexing")

    waits, batches = [], iter(loader)
    for _ in range(min(500, n_batches)):
        time.sleep(0.002)  # the next one is made meanwhile
        began = time.perf_counter()
        next(batches)
        waits.append(time.perf_counter() - began)
    waits.sort()
    print(f"next() on a batch that is ready: p50 {waits[len(waits) // 2] * 1e6:.1f} us, "
          f"p99 {waits[len(waits) * 99 // 100] * 1e6:.1f} us")


if __name__ == "__main__":
    main()
