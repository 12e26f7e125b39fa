"""map_blocks(): a function in this process, against the daemon's own copy and a loop by hand.

    sh tests/run-uninstalled.sh --pool 256M -- python tests/bench/blocks.py [--gib 1]
        [--numba PYTHON] [folder]

An identity and a Gaussian filter of float32 matrices, file to file. The loop by hand reads rows with
their halo by numpy.memmap, calls the same function in two threads, and writes into a memmap. Where a
PYTHON is given that has numpy and numba, a loop over the same chunks that Numba has compiled, on two
threads, takes the identity from memmap to memmap, too. Nobody waits for the disk. Times are the
least of three, all in one run. Memory is the most that this process has for itself, beyond what it
had before, sampled every 5 ms.

1 GiB on two cores of an EPYC: the identity took 0.96 of the time of Numba's loop, 0.84 of that of
the loop by hand, and reached 0.68 of the copy.
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

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


def by_numba(x, to):
    """In a process of its own, a round for each line of its input."""
    from numba import njit, prange, set_num_threads
    set_num_threads(2)

    @njit(parallel=True)
    def identity(source, target):
        for i in prange(source.shape[0]):
            for j in range(source.shape[1]):
                target[i, j] = source[i, j]

    def run():
        source = np.load(x, mmap_mode="r")
        target = np.lib.format.open_memmap(to, "w+", source.dtype, source.shape)
        for first in range(0, len(source), ROWS):
            identity(np.asarray(source[first:first + ROWS]), np.asarray(target[first:first + ROWS]))

    run()
    print("ready", flush=True)
    for _ in sys.stdin:
        if os.path.exists(to):
            os.unlink(to)
        begun = time.perf_counter()
        run()
        print(time.perf_counter() - begun, flush=True)


def smooth(block):
    import scipy.ndimage
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


def asked(process):
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main():
    import gpuarrayd as gd
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, default=1)
    parser.add_argument("--numba", metavar="PYTHON")
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
            if args.numba and name == "identity":
                numba = subprocess.Popen([args.numba, __file__, "numba", x, to], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                assert numba.stdout.readline() == "ready\n"
                compiled = min(asked(numba) for _ in range(3))
                numba.communicate()
                print(f"identity: {ours / compiled:.2f} of the time of a loop by hand with Numba")
            print(f"{name}: {args.gib / ours:.2f} GiB/s, {copy / ours:.2f} of the copy, "
                  f"{ours / hand:.2f} of the time by hand; mean() {args.gib / mean:.2f} GiB/s; "
                  f"private here {peak.bytes >> 20} MiB")


if sys.argv[1:2] == ["numba"]:
    by_numba(*sys.argv[2:])
else:
    main()
