"""Moving windows of a square float32 array in shared memory and from npy to npy, beside a copy and
scipy.ndimage on as many threads, in one run.

windows.py SIDE [THREADS [ROUNDS]], with a daemon. The least of the rounds counts. SciPy's threads have
a part of the rows each, with what lies around them, and write into one array.

Of 8192 x 8192 on two cores of an EPYC means of 5, 51 and 501 along axis 0 took 0.042, 0.052 and
0.063 s, along axis 1 0.036, 0.039 and 0.041 s, where a copy took 0.013 s. What is left between 5 and
501 is what lies around the grains along axis 0 (500 rows above and below some 1700, which are as many
as there is room for in a slot of 1 MiB beside rows of four lines of a cache) and, along axis 1, that
what is kept of a window of 501 for sixteen lines at a time is more than a first-level cache has. That
was 8 to 15 times as fast as SciPy on two threads along axis 0; along axis 1, where its lines lie
together, 2.6, 2.2 and 2.4 times. Extrema were 7 to 24 times as fast, a Gaussian of 3 in both
directions 3.1 times.
"""

import concurrent.futures
import sys
import time

import numpy as np

import gpuarrayd as gd
from scipy import ndimage

GAUSSIAN = np.exp(-0.5 * np.arange(-12, 13) ** 2 / 9)
KERNEL = (GAUSSIAN / GAUSSIAN.sum()).tolist()


def gaussian():
    blurred = f"correlate(u, {KERNEL}, axis=0, mode=symmetric)"
    return f"correlate({blurred}, {KERNEL}, axis=1, mode=symmetric)"


def scipy_ways(sizes):
    """Name, rows around a part, what SciPy does with it; and the expression."""
    for axis in (0, 1):
        for size in sizes:
            reach = size // 2 if axis == 0 else 0
            yield (f"mean {size} axis {axis}", reach,
                   lambda u, out, size=size, axis=axis: ndimage.uniform_filter1d(u, size, axis, out),
                   f"window_mean(u, {size}, axis={axis}, mode=symmetric)")
            yield (f"max {size} axis {axis}", reach,
                   lambda u, out, size=size, axis=axis: ndimage.maximum_filter1d(u, size, axis, out),
                   f"window_max(u, {size}, axis={axis}, mode=symmetric)")
    for size in (5, 51):
        yield (f"mean {size}x{size}", size // 2,
               lambda u, out, size=size: ndimage.uniform_filter(u, size, out),
               f"window_mean(u, {size}, mode=symmetric)")
    yield "gaussian 3", 12, lambda u, out: ndimage.gaussian_filter(u, 3, output=out), gaussian()
    yield "median 3x3", 1, lambda u, out: ndimage.median_filter(u, 3, output=out), \
        "window_median(u, 3, mode=symmetric)"


def in_parts(pool, n_threads, work, reach, u, out):
    """Rows at the ends of a part are thrown away."""
    def part(i):
        first, end = (len(u) * k // n_threads for k in (i, i + 1))
        begin, stop = max(first - reach, 0), min(end + reach, len(u))
        made = np.empty((stop - begin, u.shape[1]), u.dtype)
        work(u[begin:stop], made)
        out[first:end] = made[first - begin:end - begin]
    list(pool.map(part, range(n_threads)))


def seconds(work, *arguments):
    began = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - began


def main():
    side = int(sys.argv[1])
    n_threads = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    n_rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    only = sys.argv[4] if len(sys.argv) > 4 else ""
    u, out = gd.empty((side, side), "f4"), gd.empty((side, side), "f4")
    gd.evaluate("normal(0, 1, size=(n, n), seed=1, dtype=float32)".replace("n, n", f"{side}, {side}"),
                out=u)
    out[...] = 0
    mine, theirs = np.array(u), np.zeros((side, side), "f4")
    copied = min(seconds(lambda: gd.evaluate("u", u=u, out=out)) for _ in range(n_rounds))
    print(f"copy {copied:.3f} s")
    with concurrent.futures.ThreadPoolExecutor(n_threads) as pool:
        for name, reach, work, text in scipy_ways((5, 51, 501)):
            if only not in name:
                continue
            ours = peer = float("inf")
            for _ in range(n_rounds):
                ours = min(ours, seconds(lambda: gd.evaluate(text, u=u, out=out)))
                peer = min(peer, seconds(in_parts, pool, n_threads, work, reach, mine, theirs))
            assert np.allclose(out, theirs, rtol=1e-5, atol=1e-5), name
            print(f"{name:16} {ours:7.3f} s  SciPy {peer:7.3f} s  {peer / ours:6.2f} x  "
                  f"{ours / copied:6.2f} copies", flush=True)


main()
