"""NumPy's side of the benchmarks of large arrays, run in turns with ours.

peer.py sqrt N             sqrt of N float64 with out=
peer.py expression DTYPE N the expression in blocks that stay in cache, on two threads
peer.py sum NPY            sum of a file, mapped and unmapped each time, on two threads

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


def sum_file(path):
    pool = ThreadPoolExecutor(THREADS)

    def one_round():
        a = np.load(path, mmap_mode="r")
        bounds = [a.size * i // THREADS for i in range(THREADS + 1)]
        return sum(pool.map(lambda i: float(np.sum(a[bounds[i]:bounds[i + 1]])), range(THREADS)))
    return one_round


def main():
    if sys.argv[1] == "sqrt":
        one_round = sqrt(int(sys.argv[2]))
    elif sys.argv[1] == "sum":
        one_round = sum_file(sys.argv[2])
    else:
        one_round = expression(sys.argv[2], int(sys.argv[3]))
    one_round()
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        one_round()
        print(f"{time.perf_counter() - began:.6f}", flush=True)


main()
