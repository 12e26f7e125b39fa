"""Shuffled batches: gpuarrayctl batches beside NumPy's fancy indexing of a memmap on 1 to 4 threads, and an exact shuffle of
a packed HDF5 file beside one sequential decode of it. All in the page cache. Usage: dataset.py BUILD FOLDER [ROWS]."""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import time

import h5py
import numpy as np

CTL = pathlib.Path(sys.argv[1]) / "client/ctl/gpuarrayctl"
FOLDER = pathlib.Path(sys.argv[2])
ROWS = int(sys.argv[3]) if len(sys.argv) > 3 else 250_000
WIDTH, BATCH = 1000, 256


def batches(*words):
    """Rows and seconds of an epoch."""
    said = subprocess.run([CTL, "batches", "--batch-size", str(BATCH), "--bench", *words], check=True, text=True,
                          capture_output=True).stdout
    rows, seconds = re.search(r"(\d+) rows in ([\d.]+) s", said).groups()
    return int(rows), float(seconds)


def fancy(array, n_threads):
    """Rows a second, each batch by a thread."""
    order = np.random.default_rng(7).permutation(len(array))
    parts = [order[i:i + BATCH] for i in range(0, len(order), BATCH)]
    begin = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(n_threads) as pool:
        for _ in pool.map(lambda part: array[part].shape, parts):
            pass
    return len(order) / (time.perf_counter() - begin)


def plain():
    path = FOLDER / "x.npy"
    x = np.lib.format.open_memmap(path, "w+", "f4", (ROWS, WIDTH))
    for i in range(0, ROWS, 10_000):
        x[i:i + 10_000] = i
    x = np.load(path, mmap_mode="r")
    begin = time.perf_counter()
    copy = np.empty((BATCH, WIDTH), "f4")
    for i in range(0, ROWS - BATCH, BATCH):
        copy[:] = x[i:i + BATCH]
    limit = ROWS / (time.perf_counter() - begin)
    peer = {n: fancy(x, n) for n in (1, 2, 4)}
    rows, seconds = batches(f"x={path}", "--shuffle")
    best = max(peer.values())
    print(f"npy float32 {ROWS} x {WIDTH}, shuffled: {rows / seconds / 1e6:.2f} M rows/s; NumPy "
          + ", ".join(f"{n} threads {rate / 1e6:.2f}" for n, rate in peer.items())
          + f"; one thread's copy in order {limit / 1e6:.2f}; {rows / seconds / best:.2f} of NumPy's best")
    path.unlink()


def packed():
    path, n = FOLDER / "d.h5", ROWS // 4
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", (n, WIDTH), "f4", chunks=(250, WIDTH), compression=4, shuffle=True)
        for i in range(0, n, 5000):
            x[i:i + 5000] = np.random.default_rng(i).integers(0, 1000, (min(5000, n - i), WIDTH))
    _, once = batches(f"x={path}:/x")
    with h5py.File(path) as file:
        begin = time.perf_counter()
        for row in np.random.default_rng(7).permutation(n)[:100]:
            file["x"][row]
        by_row = (time.perf_counter() - begin) / 100 * n
    _, scan = batches(f"x={path}:/x", "--shuffle", "--plan", "scan")
    print(f"HDF5 shuffle + gzip-4, {n * WIDTH * 4 >> 20} MiB, window 256 MiB: shuffled {scan:.2f} s, decoded once in order "
          f"{once:.2f} s: {scan / once:.2f} times; h5py by rows {by_row:.0f} s: {by_row / scan:.0f} times as long")
    path.unlink()


plain()
packed()
