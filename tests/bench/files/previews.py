"""How fast the picture of an array comes that is read once: `gpuarrayctl show --png` of float32 (16384, 16384),
beside reading the file by a plain loop, and beside its maximum, which is one read of the daemon. Best of several,
in turns. Also the processor's time, of daemon and command together, which other programs disturb less.

What the daemon reads is at the plain loop's rate: means of cells of 16 x 16 elements are one job that takes 0.9 to
1.1 of the loop's time (leaving NaN out 1.2 to 1.4, which is done where there is NaN). Drawing and packing a PNG of a
million pixels takes 0.04 s more, on one processor, when all has been read, and starting the command 0.01 s. So where
the file is in memory, a picture comes slower (a PNG 0.6, text 0.7) than the file can be read; from a disk of 1.5 GB/s
it came sooner than the plain loop's end (1.1 to 1.2 of its rate).

Usage: previews.py FOLDER, within run-uninstalled.sh."""

import os
import pathlib
import resource
import subprocess
import sys
import time

import gpuarrayd as gd

N = 16384
TURNS = 7
TICK = os.sysconf("SC_CLK_TCK")
folder = pathlib.Path(sys.argv[1])
path, picture = folder / "preview.npy", folder / "preview.png"


def worked():
    """The processor's time of the daemon, its worker, and children of this process that have ended."""
    pids = [str(gd.info()["pid"])]
    pids += pathlib.Path(f"/proc/{pids[0]}/task/{pids[0]}/children").read_text().split()
    ours = resource.getrusage(resource.RUSAGE_CHILDREN)
    fields = [pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in fields) / TICK + ours.ru_utime + ours.ru_stime


def read():
    with open(path, "rb", buffering=0) as file:
        part = bytearray(1 << 20)
        while file.readinto(part):
            pass


def run(*words):
    return lambda: subprocess.run(["gpuarrayctl", *words], check=True, stdout=subprocess.DEVNULL)


gd.save(str(path), gd.random.normal(size=(N, N), dtype="f4", seed=1))
cells = gd.lazy(gd.open(str(path))).reshape(N // 16, 16, N // 16, 16)
ways = {
    "read by a plain loop": read,
    "max(a)": run("run", "-q", "max(a)", f"a={path}"),
    "means of cells": lambda: gd.compute(cells.mean(axis=(1, 3))),
    "show --png": run("show", str(path), "--png", str(picture)),
    "show --picture": run("show", str(path), "--picture"),
}
best, work = {}, {}
for turn in range(TURNS):
    for name, way in ways.items():
        before, began = worked(), time.perf_counter()
        way()
        took, cost = time.perf_counter() - began, worked() - before
        best[name] = min(took, best.get(name, took))
        work[name] = min(cost, work.get(name, cost))
print(f"a picture of float32 ({N}, {N}), best of {TURNS}")
for name in ways:
    print(f"{name:22} {path.stat().st_size / best[name] / 1e9:6.2f} GB/s"
          f"  {best['read by a plain loop'] / best[name]:5.2f} of the plain loop's rate"
          f"  {best['max(a)'] / best[name]:5.2f} of max(a)'s  {work[name]:.2f} s of the processor")
path.unlink()
picture.unlink()
