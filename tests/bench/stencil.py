"""A 5-point stencil of a square float32 array, from npy to npy beside a sqrt of the same file, and in
shared memory beside a copy; NumPy's slices and, where another Python has it, Numba's threads, in one run.

stencil.py FOLDER SIDE [ROUNDS [PYTHON]], with a daemon. PYTHON has numpy and numba. The least of the
rounds counts, of which each has every way once. NumPy's and Numba's arrays are in their own memory, and
with files are mapped and written through the page cache, as the daemon's are.

The limit is stencil_loops, where that is built (ninja all): plain loops in C, by two threads over the
same tiles, of a copy, a step, and eight steps that are taken while a tile is in the cache.

Of 16384 x 16384 on two cores of an EPYC: file to file sqrt took 0.95 of the stencil's time, the loops
1.23 of it, NumPy 2.7; in memory a copy 0.79, the loops' step 1.22, NumPy 9.6. Eight steps took 1.77 of
it with files, and the loops 1.50; in memory 6.95, and the loops 5.59. There two cores move 46 GB/s, so
that a step is bound by memory no longer: one that is taken in the cache costs the loops 0.57 of one
from memory, and eight cannot take 1.3 times one. Where memory is slower beside the cores they can.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

STENCIL = "u + 0.1*(near(u, 1, 0) + near(u, -1, 0) + near(u, 0, 1) + near(u, 0, -1) - 4*u)"
STEPS = f"repeat(8, u = {STENCIL})"


def slices(u, out):
    """The inner elements: NumPy's and Numba's ways leave the edges out."""
    inner = u[1:-1, 1:-1]
    np.add(u[2:, 1:-1], u[:-2, 1:-1], out=out[1:-1, 1:-1])
    out[1:-1, 1:-1] += u[1:-1, 2:]
    out[1:-1, 1:-1] += u[1:-1, :-2]
    out[1:-1, 1:-1] -= 4 * inner
    out[1:-1, 1:-1] *= np.float32(0.1)
    out[1:-1, 1:-1] += inner


def numbas():
    from numba import njit, prange, set_num_threads
    set_num_threads(2)

    @njit(parallel=True, fastmath=False)
    def loop(u, out):
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                out[i, j] = u[i, j] + np.float32(0.1) * (
                    u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - np.float32(4) * u[i, j])

    loop(np.zeros((4, 4), "f4"), np.zeros((4, 4), "f4"))
    return loop


def seconds(work, *arguments):
    began = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - began


def peer(way, place, n_rows):
    """In a process of its own, a round for each line of its input."""
    work = numbas() if way == "numba" else slices
    u = np.ascontiguousarray(np.load(place / "stencil.npy", mmap_mode="r")[:n_rows])
    out = np.zeros_like(u)

    def with_files():
        to = np.lib.format.open_memmap(place / f"{way}.npy", "w+", "f4", (len(mapped), mapped.shape[1]))
        work(mapped, to)

    mapped = np.load(place / "stencil.npy", mmap_mode="r")
    mapped = np.ndarray(mapped.shape, mapped.dtype, mapped)  # a plain array, for Numba
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps([seconds(with_files), seconds(work, u, out)]), flush=True)


def loops(place, side):
    """The process that has the limit; None where it is not built."""
    build = os.environ.get("GPUARRAYD_BUILD") or pathlib.Path(__file__).parents[2] / "build"
    program = pathlib.Path(build, "tests", "bench", "stencil_loops")
    if not program.exists():
        return None
    process = subprocess.Popen([program, place / "stencil.npy", place / "loops.npy", str(side)],
                               text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    return process


def asked(process):
    process.stdin.write("\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


LIMITS = [("file", "C, 1 step"), ("file", "C, 8"), ("memory", "C, copy"), ("memory", "C, 1 step"),
          ("memory", "C, 8")]


def main():
    import gpuarrayd as gd
    place, side = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    n_rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    n_rows = side // 2  # in memory
    path, to = place / "stencil.npy", place / "stencilled.npy"
    numbers = f"normal(0, 1, size=({side}, {side}), seed=1, dtype=float32)"
    subprocess.run(["gpuarrayctl", "run", "-q", numbers, "-o", path], check=True)
    os.sync()
    u, shared, out = gd.open(path), gd.empty((n_rows, side), "f4"), gd.empty((n_rows, side), "f4")
    shared[...] = np.load(path, mmap_mode="r")[:n_rows]
    out[...] = 0
    peers = {}
    for way, python in (("numpy", sys.executable), ("numba", sys.argv[4] if sys.argv[4:] else None)):
        if python:
            peers[way] = subprocess.Popen([python, __file__, way, str(place), str(n_rows)], text=True,
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert peers[way].stdout.readline() == "ready\n"
    best, limit = {}, loops(place, side)
    for _ in range(n_rounds):
        for name, expr in (("sqrt", "sqrt(abs(u))"), ("stencil", STENCIL), ("8 steps", STEPS)):
            took = seconds(lambda text: gd.submit(text, u=u, to=to).result(), expr)
            best["file", name] = min(best.get(("file", name), took), took)
        for name, expr in (("copy", "u"), ("sqrt", "sqrt(abs(u))"), ("stencil", STENCIL),
                           ("8 steps", STEPS)):
            took = seconds(lambda text: gd.evaluate(text, u=shared, out=out), expr)
            best["memory", name] = min(best.get(("memory", name), took), took)
        for way, process in peers.items():
            for where, took in zip(("file", "memory"), asked(process)):
                best[where, way] = min(best.get((where, way), took), took)
        for name, took in zip(LIMITS, asked(limit) if limit else ()):
            best[name] = min(best.get(name, took), took)
    for (where, name), took in best.items():
        n_bytes = 8 * side * (side if where == "file" else n_rows)
        print(f"{where:7} {name:9} {took:8.3f} s  {n_bytes / took / 1e9:6.2f} GB/s  "
              f"{took / best[where, 'stencil']:6.2f} x the stencil's time")
    for process in (*peers.values(), *([limit] if limit else [])):
        process.stdin.close()
        process.wait()


if sys.argv[1] in ("numpy", "numba"):
    peer(sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]))
else:
    main()
