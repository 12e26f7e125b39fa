"""What the CUDA worker's sequence of copies and kernels would take on a named machine, beside the bound of
that machine's rates: predictions by the model of tests/double/timeline.c, not measurements.

    predict.py MACHINE TIMELINE ARMED [JOB...]     with a daemon whose worker is the double with that machine

For each job: the time by the modelled clock, the bound (the job's arrays once over the link, or its kernels
if they filled the device; of a small job what it may take), their ratio, and where the rest lies: what share of
the time each engine worked, the copies' mean size, and how many copies and kernels there were. What the host
itself copies, reads and decodes is as good as free in the model while nothing else is on this machine, so a job from
ordinary memory or a compressed file is predicted as far as the link goes.
"""

import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import NamedTuple

import h5py
import numpy as np

import gpuarrayd as gd

MIB = 1 << 20
N = 128 * MIB  # float32 elements: 512 MiB
CHAIN = "sin(exp(" * 10 + "a" + "))" * 10
SMALL_SECONDS = 25e-6


class Machine(NamedTuple):
    """The link, as in tests/double/timeline.c."""
    to_device: float
    from_device: float


MACHINES = {"h100": Machine(55e9, 55e9), "small": Machine(12e9, 12e9)}


class Job(NamedTuple):
    name: str
    run: Callable[[], object]
    to_bytes: float
    from_bytes: float
    target: str
    runs_before: int = 0  # so that the regions are registered: from the second job on that uses them
    bound: float = 0  # seconds; 0: of the bytes and kernels


class Told(NamedTuple):
    """A line of the timeline, nanoseconds."""
    engine: str
    issued: int
    end: int
    took: int
    size: int  # a copy's bytes; of a kernel, what it would take if it filled the device


def region(*shape: int, dtype: str = "f4") -> np.ndarray:
    return gd.empty(shape, dtype)


def gzip_file(folder: str, n: int) -> h5py.Dataset:
    """In chunks of 1 MiB, that are nothing to decode."""
    return h5py.File(f"{folder}/a.h5", "w").create_dataset(
        "a", data=np.ones(n, "f4"), chunks=(MIB // 4,), compression="gzip", compression_opts=1)


def streaming(folder: str) -> list[Job]:
    a, b, c, r = (region(N) for _ in range(4))
    home = np.ones(N, "f4")
    thousand = np.ones(1000, "f4")
    zipped = gzip_file(folder, N // 4)
    size = a.nbytes

    def text(expression: str, out: np.ndarray | None = None, **args: np.ndarray) -> Callable[[], object]:
        return lambda: gd.evaluate(expression, out=out, local_dict=args)

    rng = gd.random.default_rng(1)
    return [
        Job("sqrt", text("sqrt(a)", r, a=a), size, size, "0.90", 2),
        Job("a*b+c", text("a*b+c", r, a=a, b=b, c=c), 3 * size, size, "0.85", 2),
        Job("sqrt, ordinary memory", text("sqrt(a)", np.empty(N, "f4"), a=home), size, size, "0.80"),
        Job("sum, ordinary memory", text("sum(a*a)", a=home), size, 0, "0.80"),
        Job("sqrt, gzip HDF5", text("sqrt(a)", r[:N // 4], a=zipped), size / 4, size / 4, "0.80"),
        Job("sum", text("sum(a*a)", a=a), size, 0, "0.90"),
        Job("histogram", lambda: gd.compute(gd.histogram(gd.lazy(a), 100, (0, 1))[0]), size, 0, "0.90"),
        Job("random", lambda: gd.compute(rng.random(N, "f4"), out=r), 0, size, "0.90"),
        Job("chain of 20", text(CHAIN, r[:N // 8], a=a[:N // 8]), size / 8, size / 8, "0.50"),
        Job("1,000 elements", text("sqrt(a)", a=thousand), 4000, 4000, "1.00", 2, SMALL_SECONDS),
    ]


def product(name: str, n: int, dtype: str, target: str, **options: object) -> Job:
    def run() -> object:
        a, b, r = (region(n, n, dtype=dtype) for _ in range(3))
        return gd.evaluate("matmul(a, b)", out=r, local_dict={"a": a, "b": b}, **options)
    size = n * n * np.dtype(dtype).itemsize
    return Job(name, run, 2 * size, size, target)


def read(timeline: pathlib.Path, begin: int) -> list[Told]:
    text = timeline.read_bytes()[begin:].decode() if timeline.exists() else ""
    lines = [line.split() for line in text.splitlines()]
    return [Told(line[0], *map(int, line[1:])) for line in lines]


def share(told: list[Told], engine: str, total: int) -> float:
    return sum(one.took for one in told if one.engine == engine) / total


def mean_kib(told: list[Told], engine: str) -> float:
    sizes = [one.size for one in told if one.engine == engine]
    return sum(sizes) / len(sizes) / 1024 if sizes else 0


def predict(machine: Machine, job: Job, timeline: pathlib.Path) -> str:
    for _ in range(job.runs_before):
        job.run()
    begin = timeline.stat().st_size if timeline.exists() else 0
    job.run()
    told = read(timeline, begin)
    if not told:
        return f"| {job.name} | nothing was given to the device | | | | | | |"
    total = max(one.end for one in told) - min(one.issued for one in told)
    kernels = sum(one.size for one in told if one.engine == "kernel") / 1e9
    bound = job.bound or max(job.to_bytes / machine.to_device, job.from_bytes / machine.from_device, kernels)
    shares = " / ".join(f"{share(told, engine, total):.2f}" for engine in ("to", "from", "kernel"))
    sizes = " / ".join(f"{mean_kib(told, engine):.0f}" for engine in ("to", "from"))
    return (f"| {job.name} | {total / 1e6:.3f} ms | {bound * 1e3:.3f} ms | {bound * 1e9 / total:.2f} | {job.target} "
            f"| {shares} | {sizes} | {len(told)} |")


def main(name: str, timeline: str, armed: str, *wanted: str) -> None:
    machine = MACHINES[name]
    pathlib.Path(armed).touch()
    folder = tempfile.TemporaryDirectory(prefix="gpuarrayd-predict-")
    jobs = [*streaming(folder.name),
            product("GEMM 16384 float32", 16384, "f4", "0.85"),
            product("GEMM 16384 TF32", 16384, "f4", "the link", tf32=True),
            product("GEMM 16384 float64", 16384, "f8", "0.85")]
    for job in jobs:
        if not wanted or job.name in wanted:
            print(predict(machine, job, pathlib.Path(timeline)), flush=True)


main(*sys.argv[1:])
