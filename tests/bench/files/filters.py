"""HDF5 datasets with filters, beside h5py and the codec alone, in one run.

    filters.py FOLDER CODECS [MIB [ROUNDS [NAME...]]]

FOLDER: where the files go; CODECS: the program tests/bench/codecs of a build. Reading is
`sum(x)` of float32 in chunks of 1 MiB, h5py's a loop of read_direct() with a sum. Writing is the
same array from an npy file. The limits of reading: the codec by itself on all processors with every
chunk in memory, and the same with reading and adding. Prints the best of ROUNDS each, and their
ratios. NAME: only these, of FILTERS below.
Wants a daemon on GPUARRAYD_SOCKET (run-uninstalled.sh) and hdf5plugin.
"""

import os
import subprocess
import sys
import time

import h5py
import hdf5plugin
import numpy as np

import gpuarrayd as gd

folder, codecs = sys.argv[1:3]
n_mib = int(sys.argv[3]) if len(sys.argv) > 3 else 512
n_rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
ROWS = 256
n_rows = n_mib * 262144 // 1000 // ROWS * ROWS
noise = np.random.default_rng(1).standard_normal((n_rows, 1000), dtype="f4")
a = np.cumsum(noise * np.float32(0.01), axis=0).round(2)
source = f"{folder}/a.npy"
np.save(source, a)
FILTERS = {  # of h5py; and the same for gd.save()
    "shuffle gzip-4": (dict(compression="gzip", compression_opts=4, shuffle=True),
                       dict(compression="gzip", compression_opts=4, shuffle=True)),
    "shuffle gzip-1": (dict(compression="gzip", compression_opts=1, shuffle=True),
                       dict(compression="gzip", compression_opts=1, shuffle=True)),
    "shuffle zstd-3": (dict(shuffle=True, **hdf5plugin.Zstd(clevel=3)),
                       dict(compression="zstd", compression_opts=3, shuffle=True)),
    "lz4": (hdf5plugin.LZ4(), dict(compression="lz4")),
    "blosc lz4": (hdf5plugin.Blosc(cname="lz4", shuffle=1), dict(compression="blosc:lz4")),
    "lzf": (dict(compression="lzf", shuffle=True), dict(compression="lzf", shuffle=True)),
}


def best(work):
    times = []
    for _ in range(n_rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def write_h5py(path, how):
    stored = np.load(source, mmap_mode="r")
    with h5py.File(path, "w") as file:
        d = file.create_dataset("d", stored.shape, "f4", chunks=(ROWS, 1000), **how)
        for i in range(0, n_rows, 4 * ROWS):
            d[i:i + 4 * ROWS] = stored[i:i + 4 * ROWS]


def read_h5py(path):
    buffer, total = np.empty((4 * ROWS, 1000), "f4"), 0.0
    with h5py.File(path) as file:
        for i in range(0, n_rows, 4 * ROWS):
            n = min(4 * ROWS, n_rows - i)
            file["d"].read_direct(buffer, np.s_[i:i + n], np.s_[:n])
            total += float(buffer[:n].sum())
    return total


def write_ours(path, how):
    if os.path.exists(path):
        os.unlink(path)
    gd.save(f"{path}:/d", gd.open(source), chunks=(ROWS, 1000), **how)


print(f"{a.nbytes / 2**20:.0f} MiB float32, {os.cpu_count()} processors, best of {n_rounds}; "
      "GB/s of elements")
for name, (theirs, ours) in FILTERS.items():
    if sys.argv[5:] and name not in sys.argv[5:]:
        continue
    one, other = f"{folder}/h5py.h5", f"{folder}/ours.h5"
    wrote = [best(lambda: write_h5py(one, theirs)), best(lambda: write_ours(other, ours))]
    read = [best(lambda: read_h5py(one)),
            best(lambda: float(gd.open(f"{one}:/d").sum()))]
    limits = subprocess.run([codecs, one, "/d"], capture_output=True, text=True, check=True).stdout
    alone, whole = (float(line.split()[0]) for line in limits.splitlines())
    size = os.path.getsize(other) / os.path.getsize(one)
    rate = [a.nbytes / 1e9 / seconds for seconds in (*read, alone, *wrote, whole)]
    print(f"{name:15} read: h5py {rate[0]:.2f}, ours {rate[1]:.2f}, codec alone {rate[2]:.2f}: "
          f"{rate[1] / rate[0]:.2f} of h5py, {rate[1] / rate[2]:.2f} of the codec, "
          f"{rate[1] / rate[5]:.2f} with reading and adding;  "
          f"write: h5py {rate[3]:.2f}, ours {rate[4]:.2f}: {rate[4] / rate[3]:.2f} of h5py, "
          f"size {size:.3f}", flush=True)
