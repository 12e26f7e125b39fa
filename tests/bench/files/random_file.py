"""A large array of normal float32 numbers into a new HDF5 file, beside the fastest of some ways of only
writing as many bytes, beside only drawing them (their sum), and beside h5py fed by two generator
threads; with the processors' time of each, of which the two together are a limit; and with the private
memory of client, broker and worker together, sampled while the job runs.

random_file.py FOLDER SHAPE [ROUNDS], with a daemon: SHAPE as 500,2000,2000.
"""

import json
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

import h5py
import numpy as np

THREADS = 2
PIECE = 1 << 20
RWF_DONTCACHE = 0x80  # Linux 6.14


def write_bytes(path, n_bytes, flags=0, direct=False):
    """Pieces in turns from two threads, into reserved space. Seconds, or None where that way is not."""
    began = time.perf_counter()
    fd = os.open(path, os.O_CREAT | os.O_RDWR | (os.O_DIRECT if direct else 0), 0o600)
    faults = []

    def work(k):
        with mmap.mmap(-1, PIECE) as buffer:
            buffer.write(bytes([k + 1]) * PIECE)
            view = memoryview(buffer)
            try:
                for at in range(k * PIECE, n_bytes, THREADS * PIECE):
                    n = min(PIECE, n_bytes - at)
                    done = os.pwritev(fd, [view[:PIECE if direct else n]], at, flags)
                    assert done >= n
            except OSError as fault:
                faults.append(fault)
            view.release()

    os.posix_fallocate(fd, 0, n_bytes)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(fd)
    seconds = time.perf_counter() - began
    os.unlink(path)
    return None if faults else seconds


def feed_h5py(path, shape):
    """Two threads fill planes ahead, the main thread writes them."""
    began = time.perf_counter()
    with h5py.File(path, "w") as f:
        data = f.create_dataset("data", shape, "f4")
        ready = [threading.Semaphore(0) for _ in range(THREADS)]
        free = [threading.Semaphore(1) for _ in range(THREADS)]
        planes = [np.empty(shape[1:], "f4") for _ in range(THREADS)]

        def fill(k):
            rng = np.random.Generator(np.random.SFC64([1, k]))
            for _ in range(k, shape[0], THREADS):
                free[k].acquire()
                rng.standard_normal(out=planes[k], dtype="f4")
                ready[k].release()

        threads = [threading.Thread(target=fill, args=(k,), daemon=True) for k in range(THREADS)]
        for thread in threads:
            thread.start()
        for i in range(shape[0]):
            ready[i % THREADS].acquire()
            data[i] = planes[i % THREADS]
            free[i % THREADS].release()
    seconds = time.perf_counter() - began
    os.unlink(path)
    return seconds


def private_bytes(pids):
    total = 0
    for pid in pids:
        try:
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue  # it has ended
        total += sum(int(line.split()[1]) * 1024 for line in text.splitlines()
                     if line.startswith(("Private_Clean:", "Private_Dirty:", "Shared_Dirty:")))
    return total


def children(pid):
    found = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def daemons():
    """The daemon of this user's socket and its workers."""
    told = subprocess.run(["gpuarrayctl", "info", "--json"], capture_output=True, text=True,
                          check=True).stdout
    broker = json.loads(told)["pid"]
    return [broker, *children(broker)]


def run_job(path, shape):
    pids, most = daemons(), 0
    began = time.perf_counter()
    job = subprocess.Popen(["gpuarrayctl", "random", "normal", "-q", "-v", "--shape",
                            ",".join(map(str, shape)), "--dtype", "f4", "--seed", "1",
                            "-o", f"{path}:/data"], stderr=subprocess.PIPE, text=True)
    while job.poll() is None:
        most = max(most, private_bytes([*pids, job.pid]))
        time.sleep(0.02)
    seconds = time.perf_counter() - began
    assert job.returncode == 0, job.stderr.read()
    with h5py.File(path) as f:
        sample = f["data"][shape[0] // 2]
    assert abs(sample.std() - 1) < 0.01, sample.std()
    os.unlink(path)
    return seconds, most


def draw(shape):
    """Seconds of the numbers' sum: nothing is written."""
    began = time.perf_counter()
    numbers = f"normal(size=({','.join(map(str, shape))}), seed=1, dtype=float32)"
    subprocess.run(["gpuarrayctl", "run", "-q", f"sum({numbers})"], stdout=subprocess.DEVNULL,
                   check=True)
    return time.perf_counter() - began


def busy_seconds():
    """Of the machine's processors so far, kernel threads included, shared by THREADS."""
    line = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0]
    user, nice, system, _, _, *interrupts = list(map(int, line.split()[1:8]))
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK") / THREADS


def main():
    folder, shape = pathlib.Path(sys.argv[1]), tuple(map(int, sys.argv[2].split(",")))
    n_rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    n_bytes = int(np.prod(shape)) * 4
    ways = {"pwrite": {}, "pwritev2(RWF_DONTCACHE)": {"flags": RWF_DONTCACHE},
            "O_DIRECT": {"direct": True}}
    times = {name: [] for name in [*ways, "ours", "drawing", "h5py"]}
    busy = {name: [] for name in times}
    most = 0

    def note(name, call, *args, **options):
        began = busy_seconds()
        answer = call(*args, **options)
        seconds, *rest = answer if isinstance(answer, tuple) else (answer,)
        if seconds is not None:
            times[name].append(seconds)
            busy[name].append(busy_seconds() - began)
        return rest

    for _ in range(n_rounds):
        for name, way in ways.items():
            note(name, write_bytes, folder / "bytes", n_bytes, **way)
        note("drawing", draw, shape)
        memory, = note("ours", run_job, folder / "ours.h5", shape)
        most = max(most, memory)
        note("h5py", feed_h5py, folder / "theirs.h5", shape)
    medians = {name: statistics.median(each) for name, each in times.items() if each}
    ours, peer, drawing = medians.pop("ours"), medians.pop("h5py"), medians.pop("drawing")
    best = min(medians, key=medians.get)
    work = statistics.median(busy["drawing"]) + statistics.median(busy[best])
    print(f"normal float32 {sys.argv[2]} into HDF5: {ours:.2f} s; writing alone, {best}: "
          f"{medians[best]:.2f} s; {ours / medians[best]:.2f} times (at most 1.2)")
    print(f"  drawing alone: {drawing:.2f} s; the work of both on {THREADS} processors: {work:.2f} s; "
          f"{ours / max(medians[best], work):.2f} times the longer of that and writing alone")
    for name, seconds in medians.items():
        print(f"  {name}: {seconds:.2f} s")
    print(f"  h5py fed by two generator threads: {peer:.2f} s; {peer / ours:.2f} times (at least 2)")
    print(f"  private memory of client, broker and worker: {most / (1 << 20):.0f} MiB (below 96)")


main()
