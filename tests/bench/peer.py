"""NumPy's side of the benchmarks of large arrays, run in turns with ours.

peer.py sqrt N             sqrt of N float64 with out=
peer.py expression DTYPE N the expression in blocks that stay in cache, on two threads
peer.py numpy WORK NPY     a reduction of a file, mapped and unmapped each time, on two threads
peer.py dask WORK NPY      the same with Dask

Writes a line when the arrays are there; then, for every line read, the seconds of one round.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

BLOCK_BYTES = 128 * 1024
THREADS = 2


def sqrt(n):
    a = np.arange(n, dtype=np.float64)
    r = np.ones_like(a)
    return lambda: np.sqrt(a, out=r)


def expression(dtype, n):
    a, b, c = (np.linspace(low, high, n, dtype=dtype)
               for low, high in ((0, 4), (-3, 3), (-10, 10)))
    r = np.ones_like(a)
    block = BLOCK_BYTES // a.itemsize

    def work(first, end):
        s, t = np.empty(block, dtype), np.empty(block, dtype)
        for i in range(first, end, block):
            k = slice(i, min(i + block, end))
            m = k.stop - k.start
            x, y, out = s[:m], t[:m], r[k]
            np.multiply(a[k], a[k], out=x)
            np.multiply(b[k], b[k], out=y)
            np.add(x, y, out=x)
            np.sqrt(x, out=x)
            np.negative(a[k], out=y)
            np.exp(y, out=y)
            np.sin(c[k], out=out)
            np.multiply(out, y, out=out)
            np.add(x, out, out=out)

    pool = ThreadPoolExecutor(THREADS)
    bounds = [n * i // THREADS for i in range(THREADS + 1)]

    def one_round():
        for done in [pool.submit(work, *bounds[i:i + 2]) for i in range(THREADS)]:
            done.result()
    return one_round


WORKS = {
    "sum": [np.sum],
    "max": [np.max],
    "mean-std-min-max": [np.mean, np.std, np.min, np.max],
    "mean-axis-0": [lambda a: np.mean(a, axis=0)],
    "mean-axis-1": [lambda a: np.mean(a, axis=1)],
}


def reduce_file(work, path):
    """Each thread reduces its half; the halves' results are not joined, which would take no time."""
    pool = ThreadPoolExecutor(THREADS)

    def one_round():
        a = np.load(path, mmap_mode="r")
        axis = 1 if work == "mean-axis-0" else 0
        halves = np.split(a, [a.shape[axis] // 2], axis)
        return list(pool.map(lambda half: [np.asarray(f(half)) for f in WORKS[work]], halves))
    return one_round


def reduce_with_dask(work, path):
    import dask
    import dask.array as da

    names = {"sum": ["sum"], "max": ["max"], "mean-std-min-max": ["mean", "std", "min", "max"]}

    def one_round():
        a = da.from_array(np.load(path, mmap_mode="r"), chunks="16 MiB")
        if work in names:
            wanted = [getattr(a, name)() for name in names[work]]
        else:
            wanted = [a.mean(axis=int(work[-1]))]
        return dask.compute(*wanted, scheduler="threads", num_workers=THREADS)
    return one_round


def main():
    if sys.argv[1] == "sqrt":
        one_round = sqrt(int(sys.argv[2]))
    elif sys.argv[1] == "numpy":
        one_round = reduce_file(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == "dask":
        one_round = reduce_with_dask(sys.argv[2], sys.argv[3])
    else:
        one_round = expression(sys.argv[2], int(sys.argv[3]))
    one_round()
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        one_round()
        print(f"{time.perf_counter() - began:.6f}", flush=True)


main()
