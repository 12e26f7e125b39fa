"""Matrix products of npy files in the page cache, beside OpenBLAS on arrays in memory and the fastest
way of only reading A and B and writing C in the same run, and beside Dask on memory maps; the private
memory and the processor time of the daemon, and the bytes moved beside the least that any way of cutting
can do with the pool.

    matmul.py FOLDER POOL_MIB [SCALE [ROUNDS]]     with a daemon that has that pool

SCALE divides the extents of the table (1). The library is the one that the daemon uses, with as many
threads as there are processors; nothing of it is pinned on either side.
"""

import ctypes
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

import numpy as np

THREADS = os.cpu_count()
PIECE = 1 << 20
CASES = (("f4", 8192, 8192, 8192, False, 0.95), ("f8", 8192, 8192, 8192, False, 0.95),
         ("f4", 16384, 1024, 16384, False, 0.85), ("f4", 1024, 65536, 1024, False, 0.85),
         ("f4", 8192, 8192, 8192, True, 0.90))
ROW_MAJOR, PLAIN = 101, 111
SCALARS = {"f4": ctypes.c_float, "f8": ctypes.c_double}

SAMPLE_SECONDS = 0.25


def library():
    blas = ctypes.CDLL("libopenblas.so.0")
    blas.openblas_set_num_threads(THREADS)
    return blas


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def multiply_in_memory(blas, a, b, c, is_added):
    call = blas.cblas_sgemm if a.dtype == np.float32 else blas.cblas_dgemm
    scalar = SCALARS[a.dtype.str[1:]]
    (m, k), n = a.shape, b.shape[1]
    began, busy = time.perf_counter(), time.process_time()
    call(ROW_MAJOR, PLAIN, PLAIN, m, n, k, scalar(1), pointer(a), k, pointer(b), n,
         scalar(1 if is_added else 0), pointer(c), n)
    return time.perf_counter() - began, time.process_time() - busy


def in_pieces(path, array, flags, verb):
    """The file's bytes to or from the array, pieces in turns from all threads."""
    fd = os.open(path, flags, 0o600)
    data = memoryview(array).cast("B")

    def work(k):
        for at in range(k * PIECE, len(data), THREADS * PIECE):
            done = verb(fd, [data[at:at + PIECE]], at)
            assert done == min(PIECE, len(data) - at)

    began = time.perf_counter()
    threads = [threading.Thread(target=work, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    os.close(fd)
    return seconds


def private_bytes(pids):
    total = 0
    for pid in pids:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        total += sum(int(line.split()[1]) * 1024 for line in text.splitlines()
                     if line.startswith(("Private_Clean:", "Private_Dirty:", "Shared_Dirty:")))
    return total


def processor_seconds(pids):
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def daemons():
    """The daemon of this user's socket and its workers."""
    told = subprocess.run(["gpuarrayctl", "info", "--json"], capture_output=True, text=True,
                          check=True).stdout
    broker = json.loads(told)["pid"]
    found = pathlib.Path(f"/proc/{broker}/task/{broker}/children").read_text().split()
    return [broker, *map(int, found)]


def run_job(a, b, c, is_added):
    command = ["gpuarrayctl", "matmul", "-q", "--json", "--engine", "cpu", str(a), str(b), "-o",
               str(c), *(["--beta", "1", "--in-place"] if is_added else [])]
    pids, most = daemons(), 0
    busy = processor_seconds(pids)
    began = time.perf_counter()
    job = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    while True:  # seldom: to count a process's pages takes it some milliseconds
        try:
            job.wait(SAMPLE_SECONDS)
            break
        except subprocess.TimeoutExpired:
            most = max(most, private_bytes(pids))
    seconds = time.perf_counter() - began
    most = max(most, private_bytes(pids))
    told = job.stdout.read()
    assert job.returncode == 0, told
    return seconds, processor_seconds(pids) - busy, most, json.loads(told)


DASK = """
import sys, time
import dask, dask.array as da, numpy as np
a, b, c = sys.argv[1:]
began = time.perf_counter()
x, y = (da.from_array(np.load(f, mmap_mode="r"), chunks=2048) for f in (a, b))
z = np.lib.format.open_memmap(c, "w+", x.dtype, (x.shape[0], y.shape[1]))
da.store(x @ y, z, lock=False)
print(time.perf_counter() - began)
"""


def run_dask(a, b, c):
    done = subprocess.run([sys.executable, "-c", DASK, a, b, c], capture_output=True, text=True)
    c.unlink(missing_ok=True)
    return float(done.stdout) if done.returncode == 0 else None


def moved_bytes(told):
    return sum(told[key] for key in ("read_bytes", "write_bytes"))


def make(path, shape, dtype):
    rng = np.random.default_rng(1)
    array = rng.random(shape, dtype) - np.dtype(dtype).type(0.5)
    np.save(path, array)
    return array


def check(c, a, b, sums, rng):
    """Some elements against sums in float64."""
    found = np.load(c, mmap_mode="r")
    for i, j in zip(rng.integers(0, a.shape[0], 50), rng.integers(0, b.shape[1], 50)):
        exact = math.fsum(a[i].astype("f8") * b[:, j].astype("f8"))
        bound = np.finfo(a.dtype).eps * a.shape[1] * np.abs(a[i] * b[:, j]).sum()
        assert abs(found[i, j] - sums * exact) <= sums * float(bound), (i, j)


def measure(folder, case, scale, n_rounds, pool_bytes):
    dtype, m, k, n, is_added, target = case
    m, k, n = m // scale, k // scale, n // scale
    a, b = make(folder / "a.npy", (m, k), dtype), make(folder / "b.npy", (k, n), dtype)
    c, blas, sink = np.zeros((m, n), dtype), library(), folder / "c.npy"
    times = {name: [] for name in ("memory", "memory busy", "files", "ours", "ours busy", "dask")}
    most, told = 0, {}
    for round_ in range(n_rounds):
        sink.unlink(missing_ok=True)
        if is_added:
            np.save(sink, np.zeros((m, n), dtype))
        os.sync()
        seconds, busy = multiply_in_memory(blas, a, b, c, is_added)
        times["memory"].append(seconds)
        times["memory busy"].append(busy)
        io = sum(in_pieces(folder / name, np.empty_like(array), os.O_RDONLY, os.preadv)
                 for name, array in (("a.npy", a), ("b.npy", b), *([("c.npy", c)] * is_added)))
        io += in_pieces(folder / "bytes", c, os.O_CREAT | os.O_RDWR, os.pwritev)
        (folder / "bytes").unlink()
        times["files"].append(io)
        os.sync()
        seconds, busy, memory, told = run_job(folder / "a.npy", folder / "b.npy", sink, is_added)
        times["ours"].append(seconds)
        times["ours busy"].append(busy)
        most = max(most, memory)
        if round_ == 0:
            check(sink, a, b, 1, np.random.default_rng(2))
            if not is_added:
                os.sync()
                times["dask"].append(run_dask(folder / "a.npy", folder / "b.npy", folder / "d.npy"))
    memory, files, ours = (statistics.median(times[name]) for name in ("memory", "files", "ours"))
    processor = {who: min(times[f"{who} busy"]) for who in ("ours", "memory")}
    item = np.dtype(dtype).itemsize
    least = 2 * m * n * k / math.sqrt(pool_bytes / item) * item + m * n * item * (1 + is_added)
    least = max(least, (m * k + k * n + m * n * (1 + is_added)) * item)
    print(f"{'C += ' if is_added else ''}{dtype} {m} x {k} x {n}: {ours:.2f} s; OpenBLAS in memory "
          f"{memory:.2f} s + reading and writing {files:.2f} s; {(memory + files) / ours:.2f} of it "
          f"(at least {target:.2f})")
    print(f"  {2 * m * n * k / ours / 1e9:.0f} GFLOP/s, in memory {2 * m * n * k / memory / 1e9:.0f}; "
          f"moved {moved_bytes(told) / 1e9:.2f} GB, {moved_bytes(told) / least:.2f} of "
          f"max(2mnk/sqrt(pool) + mn, all once) (at most 1.3); daemon's private memory "
          f"{most / (1 << 20):.0f} MiB (pool + 32: {(pool_bytes >> 20) + 32})")
    print(f"  processor time: {processor['ours']:.2f} s, OpenBLAS in memory {processor['memory']:.2f} s")
    if times["dask"] and times["dask"][0]:
        print(f"  Dask on memory maps: {times['dask'][0]:.2f} s; {times['dask'][0] / ours:.1f} times")
    for name in ("a.npy", "b.npy", "c.npy"):
        (folder / name).unlink(missing_ok=True)


def main():
    folder, pool_bytes = pathlib.Path(sys.argv[1]), int(sys.argv[2]) << 20
    scale = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    n_rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    for case in CASES:
        measure(folder, case, scale, n_rounds, pool_bytes)


main()
