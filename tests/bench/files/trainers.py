"""What datasets cost those who train, in turns with what else there is, all in the page cache. PyTorch and torchdata are
used where they are installed.

trainers.py FOLDER [SECTION...], with a daemon. Sections, each by itself; all of them take some minutes:

    npz      10,000 archives of 64 KB, batches of 64, beside np.load of each, by itself and by the two
             workers of PyTorch's DataLoader
    packed   HDF5, shuffle + gzip-4: an exact shuffle in four windows beside one decode in order, and h5py
             and zarr by rows
    four     four trainers with four seeds on that file beside one
    resume   an epoch broken off and resumed by 1, 2 and 8 ranks from npy, HDF5 and Zarr, beside torchdata's
             StatefulDataLoader
    many     a million batches: the memory of the process
    killed   a thousand trainers, each killed in the middle of an epoch: shared memory and processes
"""

import hashlib
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

import h5py
import numpy as np

import gpuarrayd as gd

try:
    import torch
except ImportError:
    torch = None
try:
    from torchdata.stateful_dataloader import StatefulDataLoader
except ImportError:
    StatefulDataLoader = None

FOLDER = pathlib.Path(sys.argv[1])
WIDTH, CHUNK = 1000, 250
SCALE = float(os.environ.get("BENCH_SCALE", "1"))  # of sizes and counts


def timed(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def medians(rounds, **sides):
    """name -> the median of its seconds, taken in turns."""
    taken = {name: [] for name in sides}
    for _ in range(rounds):
        for name, work in sides.items():
            taken[name].append(timed(work))
    return {name: statistics.median(values) for name, values in taken.items()}


def drain(loader):
    for _ in loader:
        pass


def resident():
    """Bytes that are this process's alone, and all that it has in memory."""
    pages = pathlib.Path("/proc/self/statm").read_text().split()
    return (int(pages[1]) - int(pages[2])) * 4096, int(pages[1]) * 4096


def packed_file():
    n = max(int((1 << 30) * SCALE) // (4 * WIDTH) // CHUNK, 8) * CHUNK
    path = FOLDER / f"packed_{n}.h5"
    if not path.exists():
        with h5py.File(path, "w") as file:
            x = file.create_dataset("x", (n, WIDTH), "f4", chunks=(CHUNK, WIDTH), compression=4, shuffle=True)
            for i in range(0, n, 5000):
                x[i:i + 5000] = np.random.default_rng(i).integers(0, 1000, (min(5000, n - i), WIDTH))
    return path, n


def in_windows(path, n, seed=7, windows=4):
    memory = str(n * WIDTH * 4 // windows + 4 * 256 * WIDTH)
    return gd.DataLoader(gd.Dataset(x=f"{path}:/x"), 256, shuffle=True, seed=seed, plan="scan", memory=memory)


class Archives:
    """As a training program has them."""

    def __init__(self, paths):
        self.paths = [str(path) for path in paths]

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return np.load(self.paths[i])["x"][0]


def npz():
    n, folder = max(int(10_000 * SCALE), 64), FOLDER / "npz"
    folder.mkdir(exist_ok=True)
    row = np.arange(16_384, dtype="f4").reshape(1, 128, 128)
    paths = [folder / f"{i:05}.npz" for i in range(n)]
    for i, path in enumerate(paths):
        if not path.exists():
            np.savez(path, x=row + i)
    order = np.random.default_rng(7).permutation(n)
    opened = timed(lambda: gd.Dataset(x=str(folder / "*.npz") + ":x"))
    loader = gd.DataLoader(gd.Dataset(x=str(folder / "*.npz") + ":x"), 64, shuffle=True, memory="64M")
    print(loader.explain().rstrip())
    most = 0

    def ours():
        nonlocal most
        for k, _ in enumerate(loader):
            if k % 16 == 0:
                most = max(most, len(os.listdir("/proc/self/fd")))

    def peer():
        for i in range(0, n, 64):
            np.concatenate([np.load(paths[k])["x"] for k in order[i:i + 64]])

    sides = {"ours": ours, "np.load of each": peer}
    if torch:
        workers = torch.utils.data.DataLoader(Archives(paths), 64, shuffle=True, num_workers=2)
        sides["PyTorch's DataLoader with 2 workers"] = lambda: drain(workers)
    taken = medians(3, **sides)
    print(f"npz: {n} archives of {paths[0].stat().st_size} bytes, batches of 64: {taken['ours']:.2f} s; "
          + "; ".join(f"{name} {seconds:.2f} s: {seconds / taken['ours']:.2f} times as long"
                      for name, seconds in taken.items() if name != "ours")
          + f"; at most {most} descriptors; opened in {opened:.2f} s")
    shutil.rmtree(folder)


def by_rows(path, n):
    """Seconds for all rows in a random order, from a hundred of them."""
    import zarr
    store, rows = str(FOLDER / "packed.zarr"), np.random.default_rng(7).permutation(n)[:100]
    with h5py.File(path) as file:
        zarr.create_array(store, data=file["x"][:min(n, 50_000)], chunks=(CHUNK, WIDTH), overwrite=True)
        found = {"h5py": timed(lambda: [file["x"][i] for i in rows]) / len(rows) * n}
    array = zarr.open_array(store, mode="r")
    rows %= array.shape[0]
    found["zarr"] = timed(lambda: [array[i] for i in rows]) / len(rows) * n
    shutil.rmtree(store)
    return found


def packed():
    path, n = packed_file()
    once = gd.DataLoader(gd.Dataset(x=f"{path}:/x"), 256)
    shuffled = in_windows(path, n)
    print(shuffled.explain().rstrip())
    taken = medians(3, once=lambda: drain(once), shuffled=lambda: drain(shuffled))
    print(f"packed: {n * WIDTH * 4 >> 20} MiB in four windows {taken['shuffled']:.2f} s, decoded once in order "
          f"{taken['once']:.2f} s: {taken['shuffled'] / taken['once']:.2f} times")
    for name, seconds in by_rows(path, n).items():
        print(f"packed: {name} by rows {seconds:.0f} s: {seconds / taken['shuffled']:.0f} times as long")


TRAINER = """
import hashlib, sys, time
import gpuarrayd as gd
path, n, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
loader = gd.DataLoader(gd.Dataset(x=f"{path}:/x"), 256, shuffle=True, seed=seed, plan="scan",
                       memory=str(n * 4000 // 4 + 1024000))
print("ready", flush=True)
sys.stdin.readline()
began, digest = time.perf_counter(), hashlib.blake2b()
for batch in loader:
    digest.update(batch["x"][0])
print(time.perf_counter() - began, digest.hexdigest(), flush=True)
"""


def trained(path, n, seeds):
    """Seconds of the slowest trainer, and what each has seen."""
    trainers = [subprocess.Popen([sys.executable, "-c", TRAINER, str(path), str(n), str(seed)], text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE) for seed in seeds]
    for one in trainers:
        one.stdout.readline()
    for one in trainers:
        one.stdin.write("go\n")
        one.stdin.flush()
    said = [one.stdout.readline().split() for one in trainers]
    for one in trainers:
        one.communicate()
    return max(float(seconds) for seconds, _ in said), [digest for _, digest in said]


def four():
    path, n = packed_file()
    alone = {seed: trained(path, n, [seed]) for seed in range(4)}
    seconds, seen = trained(path, n, range(4))
    assert seen == [digests[0] for _, digests in alone.values()], "other rows than alone"
    one = statistics.median(seconds for seconds, _ in alone.values())
    print(f"four: four trainers {seconds:.2f} s, one {one:.2f} s: {seconds / one:.2f} times; each has the bytes that it "
          "has alone")


def resume():
    import zarr
    path, n = packed_file()
    with h5py.File(path) as file:
        x = file["x"][:min(n, 20_000)]
    np.save(FOLDER / "r.npy", x)
    zarr.create_array(str(FOLDER / "r.zarr"), shape=x.shape, dtype=x.dtype, chunks=(CHUNK, WIDTH), overwrite=True)[...] = x
    with h5py.File(FOLDER / "r.h5", "w") as file:
        file.create_dataset("x", data=x, chunks=(CHUNK, WIDTH), compression=4, shuffle=True)
    sources = {"npy": "r.npy", "hdf5": "r.h5:/x", "zarr": "r.zarr"}
    how = {"batch_size": 256, "shuffle": True, "seed": 7, "memory": "32M"}

    def new(name, rank=0, world=1):
        return gd.DataLoader(gd.Dataset(x=str(FOLDER / sources[name])), shard=(rank, world), **how)

    whole = hashlib.blake2b()
    for batch in new("npy"):
        whole.update(batch["x"])
    digest, at, state = hashlib.blake2b(), 0, None
    all_batches = -(-len(x) // how["batch_size"])
    for name, world, n_batches in (("npy", 1, all_batches // 4), ("hdf5", 2, all_batches // 3), ("zarr", 8, None)):
        window = timed(lambda: [next(iter(new(name, rank, world))) for rank in range(world)])
        began = time.perf_counter()
        loaders = [new(name, rank, world) for rank in range(world)]
        for loader in loaders:
            if state:
                loader.load_state_dict(state)
        iterators = [iter(loader) for loader in loaders]
        parts = [next(one) for one in iterators]
        first = time.perf_counter() - began
        count = 0
        while parts:
            for part in parts:
                digest.update(part["x"])
            at, count = at + 1, count + 1
            if count == n_batches:
                break
            parts = [part for part in (next(one, None) for one in iterators) if part]
        state = loaders[0].state_dict()
        print(f"resume: {name:5} {world} ranks: first batches after {first * 1e3:.1f} ms, where an epoch begins "
              f"{window * 1e3:.1f} ms; {count} batches; the state has {len(str(state))} bytes")
    assert digest.hexdigest() == whole.hexdigest(), "other bytes than without a break"
    print(f"resume: {at} batches are the bytes of one process that was never interrupted")
    if StatefulDataLoader:
        resume_peer(all_batches // 2)


class Rows:
    """A file's rows, as a training program has them."""

    def __init__(self, path):
        self.x = np.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i].copy()


def resume_peer(n_batches):
    def new():
        return StatefulDataLoader(Rows(FOLDER / "r.npy"), 256, shuffle=True, num_workers=2)

    loader = new()
    iterator = iter(loader)
    for _ in range(n_batches):
        next(iterator)
    state, expected = loader.state_dict(), next(iterator)
    del iterator
    began = time.perf_counter()
    loader = new()
    loader.load_state_dict(state)
    same = bool((next(iter(loader)) == expected).all())
    print(f"resume: StatefulDataLoader, 2 workers, on the npy file: first batch after "
          f"{(time.perf_counter() - began) * 1e3:.1f} ms, which is {'the same' if same else 'another one'}; the state has "
          f"{len(str(state))} bytes")


def many():
    n, path = max(int(1_000_000 * SCALE), 10_000), FOLDER / "small.npy"
    np.save(path, np.arange(40_000, dtype="f4").reshape(10_000, 4))
    loader = gd.DataLoader(gd.Dataset(x=str(path)), 16, shuffle=True)
    taken, at, began = 0, [], time.perf_counter()
    while taken < n:
        for _ in loader:
            taken += 1
        if taken >= (len(at) + 1) * n // 10:
            at.append(resident()[1])
    print(f"many: {taken} batches in {time.perf_counter() - began:.1f} s; in memory after each tenth, MiB: "
          + " ".join(f"{bytes_ / 2**20:.2f}" for bytes_ in at))


KILLED = """
import sys, gpuarrayd as gd
batches = iter(gd.DataLoader(gd.Dataset(x=sys.argv[1]), 64, shuffle=True, memory="4M"))
next(batches)
print(flush=True)
while True: next(batches)
"""


def helpers(path):
    """Processes that still map the file."""
    found = 0
    for process in pathlib.Path("/proc").iterdir():
        try:
            found += process.name.isdigit() and str(path) in (process / "maps").read_text()
        except OSError:
            pass
    return found


def shared_memory():
    """Bytes of files in memory, of the whole machine, others' too: with a name or without."""
    return int(next(line.split()[1] for line in open("/proc/meminfo") if line.startswith("Shmem:"))) << 10


def killed():
    n, path = max(int(1000 * SCALE), 4), FOLDER / "killed.npy"
    np.save(path, np.zeros((40_000, 250), "f4"))
    names, before = set(os.listdir("/dev/shm")), shared_memory()
    for i in range(n):
        trainer = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        trainer.stdout.readline()
        time.sleep(0.001 * (i % 7))
        trainer.send_signal(signal.SIGKILL)
        trainer.communicate()
    time.sleep(2)
    print(f"killed: {n} trainers; new names in /dev/shm {len(set(os.listdir('/dev/shm')) - names)}, shared memory "
          f"{(shared_memory() - before) / 2**20:+.1f} MiB, processes that have its file {helpers(path)}")


SECTIONS = {"npz": npz, "packed": packed, "four": four, "resume": resume, "many": many, "killed": killed}
for section in sys.argv[2:] or SECTIONS:
    SECTIONS[section]()
