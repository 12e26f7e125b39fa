"""The most memory that client, broker and workers have for themselves while each of the jobs of the bulk
formats runs: HDF5 with filters, sharded Zarr, deflated npz, pipes, a generator, many files, a fill.

    private_memory.py FOLDER [MIB]

Wants a daemon of its own (run-uninstalled.sh) and hdf5plugin; files of MIB MiB (256) go into FOLDER.
Sampled every 2 ms. `private`: pages that one process alone has (smaps' Private_Clean and
Private_Dirty). `with rings`: anonymous pages and shared memory, each page once: rings and the pool, too.
The generator runs in a Python process, of which what it had before its job is left out.
"""

import pathlib
import subprocess
import sys
import time

import h5py
import hdf5plugin
import numpy as np
import zarr

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from watched import daemons, memory  # noqa: E402

folder = pathlib.Path(sys.argv[1])
mib = int(sys.argv[2]) if len(sys.argv) > 2 else 256
GENERATOR = """
import sys, numpy as np, gpuarrayd as gd
slab = np.random.default_rng(1).standard_normal((1024, 128))
x = gd.from_generator(lambda: (slab + i for i in range({0})), "f8", ({0} * 1024, 128))
gd.asarray(slab).sum()
print("ready", flush=True)
sys.stdin.readline()
x.sum().compute()
"""


def watch(what, job, before=0):
    pids, most = [*daemons(), job.pid], np.zeros(2)
    while job.poll() is None:
        most = np.maximum(most, memory(pids))
        time.sleep(0.002)
    assert job.returncode == 0, what
    most = most - before
    print(f"{what:24} private {most[0]:5.0f} MiB, with rings {most[1]:5.0f} MiB", flush=True)


def run(what, *words, **pipes):
    watch(what, subprocess.Popen(["gpuarrayctl", "run", "-q", *map(str, words)],
                                 **{"stdout": subprocess.DEVNULL, **pipes}))


def generate():
    job = subprocess.Popen([sys.executable, "-c", GENERATOR.format(mib)], text=True,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert job.stdout.readline() == "ready\n"
    before = memory([job.pid])
    job.stdin.write("\n")
    job.stdin.close()
    watch("generator", job, before)


def pipe(source):
    feeder = subprocess.Popen(["cat", source], stdout=subprocess.PIPE)
    sink = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    run("pipes", "sqrt(abs(a))", "a=-", "-o", "-", stdin=feeder.stdout, stdout=sink.stdin)
    sink.stdin.close()
    feeder.wait()
    sink.wait()


def main():
    n_rows = mib * 262144 // 1000 // 256 * 256
    noise = np.random.default_rng(1).standard_normal((n_rows, 1000), dtype="f4")
    a = np.cumsum(noise * np.float32(0.01), axis=0).round(2)
    source = folder / "memory.npy"
    np.save(source, a)
    filters = {"gzip": dict(compression="gzip", shuffle=True), "lzf": dict(compression="lzf"),
               "zstd": hdf5plugin.Zstd(clevel=3), "lz4": hdf5plugin.LZ4(),
               "blosc": hdf5plugin.Blosc(cname="lz4")}
    packed = folder / "memory.h5"
    for name, how in filters.items():
        with h5py.File(packed, "w") as file:
            file.create_dataset("d", data=a, chunks=(256, 1000), **how)
        run(f"HDF5, {name}", "sum(a)", f"a={packed}:/d")
    for how in ("gzip:1", "zstd:3"):
        run(f"into HDF5, {how}", "a + 0", f"a={source}", "-o", f"{packed}:/{how[:4]}", "--chunks",
            "256x1000", "--compress", how, "--shuffle")
    packed.unlink()
    store = folder / "memory.zarr"
    cubes = a.reshape(-1)[:a.size // 262144 * 262144].reshape(-1, 512, 512)
    zarr.create_array(store, data=cubes, chunks=(64, 64, 64), shards=(256, 256, 256), overwrite=True,
                      compressors=zarr.codecs.ZstdCodec(level=3))
    run("Zarr, shards, zstd", "sum(a)", f"a={store}")
    subprocess.run(["rm", "-r", store], check=True)
    np.savez_compressed(folder / "memory.npz", x=a)
    run("npz, deflated", "sum(a)", f"a={folder}/memory.npz:x")
    (folder / "memory.npz").unlink()
    pipe(source)
    source.unlink()
    generate()
    many = folder / "memory"
    many.mkdir(exist_ok=True)
    for i in range(4000):
        np.save(many / f"x{i}.npy", a[:16])
    run("4000 files of 64 KiB", "mean(a, axis=0)", f"a={many}/x*.npy")
    subprocess.run(["rm", "-r", many], check=True)
    filled = folder / "filled.h5"
    watch("fill of HDF5", subprocess.Popen(
        ["gpuarrayctl", "random", "normal", "-q", "--shape", f"{n_rows},1000", "--dtype", "f4",
         "-o", f"{filled}:/data"], stderr=subprocess.DEVNULL))
    filled.unlink()


main()
