"""Cholesky factors and solutions of systems, from npy files to npy files in the page cache, beside LAPACK
(NumPy's and SciPy's) on the same matrix in memory and in the same run: seconds and processor seconds (of the broker and its
workers, too), LAPACK's as ratios, how far results are off, and the most memory of this process, the
broker and its workers. What was read is checked to be what was said before. BLAS is not pinned on
either side.

    systems.py FOLDER [N [cholesky,pos,gen [WHO]]]      with a daemon of its own, pool 256 MiB

N: of N x N numbers (16384). WHO: `make`, `ours`, `lapack`, or all (without), where one run of all would
last too long; files stay unless it is all."""

import os
import pathlib
import sys
import time

import numpy as np
import scipy.linalg

import gpuarrayd as gd
from gpuarrayd._functions import solving

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from watched import Watch, daemons  # noqa: E402

OPS = {"cholesky": ("cholesky", {}), "pos": ("solve", {"assume_a": "pos"}), "gen": ("solve", {})}
ALL = "make,ours,lapack"


def make(path, n, is_positive):
    """Noise; a symmetric one with a diagonal that makes it positive definite."""
    rng = np.random.default_rng(1)
    x = np.lib.format.open_memmap(path, "w+", "f8", (n, n))
    for first in range(0, n, 1024):
        x[first:first + 1024] = rng.normal(size=x[first:first + 1024].shape)
    for first in range(0, n if is_positive else 0, 1024):
        part = slice(first, first + 1024)
        x[first:, part] = (x[first:, part] + x[part, first:].T) / 2
        x[part, first:] = x[first:, part].T
    if is_positive:
        x[np.arange(n), np.arange(n)] += 4 * n ** 0.5
    x.flush()


def processor_seconds():
    """Of this process, the broker and its workers."""
    ticks = 0
    for pid in [os.getpid(), *daemons()]:
        words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(words[11]) + int(words[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def timed(function):
    work, began = processor_seconds(), time.perf_counter()
    found = function()
    return time.perf_counter() - began, processor_seconds() - work, found


def by_lapack(op, a, b):
    """As NumPy has it; where it has none, SciPy."""
    if op == "cholesky":
        return np.linalg.cholesky(a)
    if op == "pos":
        return scipy.linalg.solve(a, b, assume_a="pos", check_finite=False)
    return np.linalg.solve(a, b)


def keep_told():
    """What the library tells of each factorisation that Python's functions leave out."""
    told, by_panels = [], solving._by_panels

    def kept(*words, **how):
        found = by_panels(*words, **how)
        told.append(found[1])
        return found
    solving._by_panels = kept
    return told


def ours(op, paths):
    name, how = OPS[op]
    given = [gd.open(path) for path in paths[:2 if name == "solve" else 1]]
    plan, told = gd.linalg.explain(name, *given, out=paths[2], **how), keep_told()
    with Watch([os.getpid(), *daemons()], 0.5) as most:
        seconds, work, _ = timed(lambda: getattr(gd.linalg, name)(*given, out=paths[2], **how))
    assert told[0][4:7] == plan[2:5], (told, plan)
    print(f"{op}: {seconds:.2f} s, {work:.2f} processor seconds, {plan.jobs} jobs read {plan.read_bytes} "
          f"bytes, as was said; at most {most.mib[0]:.0f} MiB private, {most.mib[1]:.0f} with rings",
          flush=True)
    return seconds, work


def off(op, paths, n):
    """Of a part of L @ L.T, or of a @ x, from what they should be."""
    a, b, x = (np.load(path, mmap_mode="r") for path in paths)
    rows = slice(n - n // 16, n)
    made, wanted = (x[rows] @ x[rows].T, a[rows, rows]) if op == "cholesky" else (a[rows] @ x, b[rows])
    return np.abs(made - wanted).max() / np.abs(wanted).max()


def main(folder, n=16384, ops="cholesky,pos,gen", who=ALL):
    n, folder = int(n), pathlib.Path(folder)
    for op in ops.split(","):
        paths = [folder / f"{op}-{name}.npy" for name in "abx"]
        own = None
        if "make" in who:
            make(paths[0], n, op != "gen")
            np.save(paths[1], np.random.default_rng(2).normal(size=(n, 1)))
        if "ours" in who:
            paths[2].unlink(missing_ok=True)
            print(n, end=" ")
            own = ours(op, paths)
            print(f"    off by {off(op, paths, n):.1e}", flush=True)
        if "lapack" in who:
            a, b = np.load(paths[0]), np.load(paths[1])
            seconds, work, _ = timed(lambda: by_lapack(op, a, b))
            ratios = f", {seconds / own[0]:.2f} and {work / own[1]:.2f} of ours" if own else ""
            print(f"    LAPACK: {seconds:.2f} s, {work:.2f} processor seconds{ratios}", flush=True)
            del a
        for path in paths if who == ALL else []:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
