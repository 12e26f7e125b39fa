"""Many small files as one array, in the page cache: the mean over all of them, from their names to the
result, beside reading them all and beside NumPy, in one run.

many.py FOLDER [N_FILES [KIB [ROUNDS]]], with a daemon. Reading is `cat` of all files, by one process
and by two at a time; NumPy opens one after the other with np.load and adds.
"""

import glob
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

import gpuarrayd as gd


def seconds_of(work):
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def make(folder, n_files, n_rows):
    """Whole numbers, so that every order of adding gives the same."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    for i in range(n_files):
        np.save(folder / f"x{i}.npy", rng.integers(0, 256, (n_rows, 128)).astype("f4"))
    return f"{folder}/x*.npy"


def cat(pattern, n_at_once):
    paths = "\0".join(glob.glob(pattern)).encode()
    per_call = paths.count(b"\0") // (4 * n_at_once) + 1

    def work():
        subprocess.run(["xargs", "-0", "-n", str(per_call), "-P", str(n_at_once), "cat"], input=paths,
                       stdout=subprocess.DEVNULL, check=True)
    return work


def numpy_mean(pattern):
    total, n = None, 0
    for path in sorted(glob.glob(pattern)):
        part = np.load(path)
        total = part if total is None else np.add(total, part, out=total)
        n += 1
    return total / n


def our_mean(pattern):
    return gd.open(pattern, stack=True).mean(axis=0).compute()


def main():
    folder = pathlib.Path(sys.argv[1]) / "many"
    given = sys.argv[2:]
    n_files, kib, rounds = map(int, given + ["10000", "64", "9"][len(given):])
    pattern = make(folder, n_files, kib * 2)
    sides = {
        "cat, one process": cat(pattern, 1),
        "cat, two processes": cat(pattern, 2),
        "np.load and add": lambda: numpy_mean(pattern),
        "gd.open alone": lambda: gd.open(pattern, stack=True).shape,
        "gd.open and mean": lambda: our_mean(pattern),
    }
    times = {name: [] for name in sides}
    results = {}
    for _ in range(rounds):
        for name, work in sides.items():
            seconds, results[name] = seconds_of(work)
            times[name].append(seconds)
    np.testing.assert_allclose(results["gd.open and mean"], results["np.load and add"], rtol=1e-6)
    best = {name: statistics.median(seconds) for name, seconds in times.items()}
    print(f"{n_files} npy of {kib} KiB as one array, mean(axis=0), median of {rounds}, page cache, "
          f"{os.cpu_count()} CPUs")
    for name, seconds in best.items():
        print(f"  {name:20} {seconds * 1e3:8.1f} ms  {seconds / n_files * 1e6:6.2f} us a file, least "
              f"{min(times[name]) * 1e3:.1f} ms")
    ours = best["gd.open and mean"]
    print(f"  np.load / ours {best['np.load and add'] / ours:.2f}, ours / limit "
          f"{ours / min(best['cat, one process'], best['cat, two processes']):.2f}")


main()
