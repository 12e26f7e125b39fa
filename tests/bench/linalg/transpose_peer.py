"""NumPy's side of the transpose benchmark.

    transpose_peer.py transpose IN.npy OUT.npy   on memory maps, block by block; prints the seconds
    transpose_peer.py check IN.npy OUT.npy       fails unless OUT is IN's transpose
"""

import sys
import time

import numpy as np

BLOCK = 1024  # rows and columns: two blocks of float32 stay in a last-level cache


def blocks(shape):
    for i in range(0, shape[0], BLOCK):
        for j in range(0, shape[1], BLOCK):
            yield slice(i, i + BLOCK), slice(j, j + BLOCK)


verb, source, sink = sys.argv[1:]
a = np.load(source, mmap_mode="r")
if verb == "check":
    b = np.load(sink, mmap_mode="r")
    assert b.shape == a.shape[::-1] and b.dtype == a.dtype
    for i, j in blocks(a.shape):
        assert np.array_equal(a[i, j], b[j, i].T), (i, j)
else:
    began = time.perf_counter()
    b = np.lib.format.open_memmap(sink, "w+", a.dtype, a.shape[::-1])
    for i, j in blocks(a.shape):
        b[j, i] = a[i, j].T
    print(f"{time.perf_counter() - began:.6f}")
