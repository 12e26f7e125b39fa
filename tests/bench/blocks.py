"""map_blocks(): a function in this process, against the daemon's own copy and a loop by hand.

    sh tests/run-uninstalled.sh --pool 256M -- python tests/bench/blocks.py [--gib 1] [folder]

An identity and a Gaussian filter of float32 matrices, file to file. The loop by hand reads rows with
their halo by numpy.memmap, calls the same function in two threads, and writes into a memmap. Times
are the least of three, all in one run. Memory is the most that this process has for itself, beyond what
it had before, sampled every 5 ms.
"""

import argparse
import concurrent.futures
import os
import pathlib
import tempfile
import threading
import time

import numpy as np
import scipy.ndimage
import gpuarrayd as gd

COLUMNS = 8192
ROWS = 64  # of 2 MiB


def by_hand(f, x, to, depth):
    """What a user writes: rows, two threads, a memmap each way."""
    source = np.load(x, mmap_mode="r")
    target = np.lib.format.open_memmap(to, "w+", source.dtype, source.shape)

    def part(first):
        low, high = max(0, first - depth), min(len(source), first + ROWS + depth)
        made = f(np.array(source[low:high]))
        last = min(first + ROWS, len(source))
        target[first:last] = made[first - low:last - low]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(part, range(0, len(source), ROWS)))
    target.flush()


def smooth(block):
    return scipy.ndimage.gaussian_filter(block, 1.0, truncate=3.0)


def private_bytes():
    text = pathlib.Path("/proc/self/smaps_rollup").read_text()
    sizes = {line.split()[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
    return 1024 * (sizes["Private_Clean:"] + sizes["Private_Dirty:"])


class Peak:
    def __enter__(self):
        self.before, self.bytes, self.is_over = private_bytes(), 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.is_over.wait(0.005):
            self.bytes = max(self.bytes, private_bytes() - self.before)

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def least(run, to, n=3):
    times = []
    for _ in range(n):
        if os.path.exists(to):
            os.unlink(to)
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return min(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, default=1)
    parser.add_argument("folder", nargs="?")
    args = parser.parse_args()
    rows = int(args.gib * 2**30) // (4 * COLUMNS)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        x, to = f"{folder}/x.npy", f"{folder}/y.npy"
        gd.save(x, gd.random.normal(size=(rows, COLUMNS), seed=1, dtype="f4"))
        s = gd.open(x)
        copy = least(lambda: gd.save(to, s + 0), to)
        print(f"{args.gib} GiB, {COLUMNS} columns; the daemon's copy: "
              f"{args.gib / copy:.2f} GiB/s")
        for name, f, depth in (("identity", lambda block: block, 0), ("gaussian", smooth, 3)):
            with Peak() as peak:  # first: what the allocator keeps counts once
                gd.save(to, gd.map_blocks(f, s, depth=depth, dtype="f4"))
            ours = least(lambda: gd.save(to, gd.map_blocks(f, s, depth=depth, dtype="f4")), to)
            mean = least(lambda: gd.map_blocks(f, s, depth=depth, dtype="f4").mean().compute(), to)
            hand = least(lambda: by_hand(f, x, to, depth), to)
            print(f"{name}: {args.gib / ours:.2f} GiB/s, {copy / ours:.2f} of the copy, "
                  f"{ours / hand:.2f} of the time by hand; mean() {args.gib / mean:.2f} GiB/s; "
                  f"private here {peak.bytes >> 20} MiB")


main()
