"""Many small files as one array, in the page cache: the mean over all of them, from their names to the
result, beside reading them all and beside NumPy, in one run.

many.py READ_FILES FOLDER [N_FILES [KIB [ROUNDS]]], with a daemon; READ_FILES: the built program of that
name, which opens, reads and closes every file and does nothing else, on all processors: the limit.
NumPy opens one after the other with np.load and adds.
"""

import glob
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

import gpuarrayd as gd


def make(folder, n_files, n_rows):
    """Whole numbers, so that every order of adding gives the same."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    for i in range(n_files):
        np.save(folder / f"x{i}.npy", rng.integers(0, 256, (n_rows, 128)).astype("f4"))


def own_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def numpy_mean(pattern):
    total, n = None, 0
    for path in sorted(glob.glob(pattern)):
        part = np.load(path)
        total = part if total is None else np.add(total, part, out=total)
        n += 1
    return total / n


def main():
    program, folder, *given = sys.argv[1:]
    folder = pathlib.Path(folder) / "many"
    n_files, kib, rounds = map(int, given + ["10000", "64", "9"][len(given):])
    make(folder, n_files, kib * 2)
    pattern = f"{folder}/x*.npy"
    opened = []
    n_cpus = len(os.sched_getaffinity(0))

    def limit():
        done = subprocess.run([program, str(folder), str(n_files), str(n_cpus)], check=True, text=True,
                              stdout=subprocess.PIPE)
        return float(done.stdout)

    def timed(work):
        def side():
            began = time.perf_counter()
            side.result = work()
            return time.perf_counter() - began
        return side

    sides = {
        "open, read, close": limit,
        "np.load and add": timed(lambda: numpy_mean(pattern)),
        "gd.open": timed(lambda: opened.append(gd.open(pattern, stack=True))),
        "its mean": timed(lambda: opened.pop().mean(axis=0).compute()),
    }
    times = {name: [] for name in sides}
    used = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            before = own_seconds()
            times[name].append(side())
            used[name].append(own_seconds() - before)
    np.testing.assert_allclose(sides["its mean"].result, sides["np.load and add"].result, rtol=1e-6)
    print(f"{n_files} npy of {kib} KiB as one array, mean(axis=0), median of {rounds} (least), page "
          f"cache, {n_cpus} CPUs")
    for name in sides:
        print(f"  {name:18} {statistics.median(times[name]) * 1e3:7.1f} ms ({min(times[name]) * 1e3:.1f}), "
              f"of this process's processors {statistics.median(used[name]) * 1e3:.1f} ms")
    for say, choose in (("median", statistics.median), ("least", min)):
        ours = choose(times["gd.open"]) + choose(times["its mean"])
        print(f"  {say}: np.load / ours {choose(times['np.load and add']) / ours:.2f}, ours / limit "
              f"{ours / choose(times['open, read, close']):.2f}")


main()
