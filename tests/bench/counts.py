"""Scans, counts and medians of a cached npy of float32, beside reading the file the fastest of some
ways and beside NumPy on the file mapped, in one run.

counts.py FOLDER GIB [ROUNDS], with a daemon. A job's time is that from opening the file to the result; the
running sum goes to shared memory that is there before, NumPy's to an array that is. NumPy takes
what it needs in memory. What is counted are whole numbers of a normal distribution.
"""

import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

import numpy as np

import gpuarrayd as gd

THREADS = 2
N_BINS = 1000
N_FRAMES = 64
WAYS = {f"pread into {size >> 10} KiB": size for size in (128 << 10, 256 << 10, 512 << 10)}


def seconds_of(work):
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def read_file(path, size):
    """All of it from two threads, piece by piece in turns."""
    fd = os.open(path, os.O_RDONLY)
    n_bytes = os.fstat(fd).st_size

    def work(k):
        with mmap.mmap(-1, size) as buffer:
            for at in range(k * size, n_bytes, THREADS * size):
                os.preadv(fd, [buffer], at)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(fd)


# The text of the job, and the same by NumPy. The running sum is in float64 here and there.
WORKS = {
    "cumsum": ("cumsum(x)", lambda x, out: np.cumsum(x, dtype=np.float64, out=out)),
    "histogram": (f"histogram(x, bins=100, range=(0, {N_BINS}))[0]",
                  lambda x, out: np.histogram(x, bins=100, range=(0, N_BINS))[0]),
    "bincount": (f"bincount(int32(x), length={N_BINS})",
                 lambda x, out: np.bincount(x.astype(np.int32), minlength=N_BINS)),
    "median": ("median(x)", lambda x, out: np.median(x)),
    f"median of {N_FRAMES} frames": (
        "median(x, axis=0)", lambda x, out: np.median(x.reshape(N_FRAMES, -1), axis=0)),
}


def compute(path, name, shared):
    out = {"out": shared} if name == "cumsum" else {}
    x = np.load(path, mmap_mode="r")  # the daemon reads the file itself
    x = x.reshape(N_FRAMES, -1) if "frames" in name else x
    return np.asarray(gd.evaluate(WORKS[name][0], x=x, **out))


def main():
    folder, gib = pathlib.Path(sys.argv[1]), float(sys.argv[2])
    n_rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    n, path = int(gib * (1 << 28)), folder / "counted.npy"
    numbers = f"normal(500, 100, size=({n},), seed=1, dtype=float32)"
    subprocess.run(["gpuarrayctl", "run", "-q", f"clip(rint({numbers}), 0, {N_BINS - 1})", "-o",
                    path], check=True)
    os.sync()
    shared, plain = gd.empty(n, np.float64), np.ones(n)
    shared[...] = 0
    reading = {way: [] for way in WAYS}
    ours, numpys = ({name: [] for name in WORKS} for _ in range(2))
    read_file(path, 1 << 20)
    for i in range(n_rounds):
        for way, size in WAYS.items():
            reading[way].append(seconds_of(lambda: read_file(path, size))[0])
        for name, (_, by_numpy) in WORKS.items():
            seconds, result = seconds_of(lambda: compute(path, name, shared))
            ours[name].append(seconds)
            if i > 0:
                continue
            x = np.load(path, mmap_mode="r")
            seconds, wanted = seconds_of(lambda: by_numpy(x, plain))
            numpys[name].append(seconds)
            assert np.array_equal(result, wanted), name
    path.unlink()
    best = min(WAYS, key=lambda way: statistics.median(reading[way]))
    limit = statistics.median(reading[best])
    print(f"reading an npy of {gib:.2f} GiB in page cache, the fastest way: {best}: {limit:.4f} s "
          f"({n * 4e-9 / limit:.1f} GB/s)")
    for name in WORKS:
        seconds = statistics.median(ours[name])
        print(f"{name} float32: {seconds:.4f} s ({n * 4e-9 / seconds:.1f} GB/s); of reading alone "
              f"{limit / seconds:.2f}; NumPy, once: {numpys[name][0]:.4f} s, "
              f"{numpys[name][0] / seconds:.1f} times")


main()
