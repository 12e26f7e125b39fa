"""NumPy's side of the file benchmark: file_peer.py IN.npy OUT.npy writes the square roots of a file
of float32 to another one, in a loop over blocks that stay in cache, and prints the seconds."""

import sys
import time

import numpy as np

BLOCK = 256 * 1024  # bytes

began = time.perf_counter()
with open(sys.argv[1], "rb", buffering=0) as source, open(sys.argv[2], "wb", buffering=0) as sink:
    version = np.lib.format.read_magic(source)
    assert version == (1, 0)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(source)
    assert dtype == np.float32
    np.lib.format.write_array_header_1_0(
        sink, {"descr": "<f4", "fortran_order": fortran, "shape": shape})
    block = np.empty(BLOCK // 4, np.float32)
    while (n_bytes := source.readinto(block)) > 0:
        part = block[:n_bytes // 4]
        np.sqrt(part, out=part)
        sink.write(part)
print(f"{time.perf_counter() - began:.6f}")
