"""Arrays of Zarr stores beside zarr-python and the codec by itself, in turns, as ratios.

zarr_stores.py FOLDER GIB [ROUNDS], with a daemon: GPUARRAYD_SOCKET and PATH name it and gpuarrayctl.

Sums of GIB GiB of uint16 as an image stack has them, smooth with some noise, in chunks of 64 x 64 x 64 packed with
zstd, each a file of its own and in shards of 256 x 256 x 256: ours, zarr-python's array read whole and summed by NumPy
(its threads as it likes), and the codec alone: numcodecs on two threads, over chunks that are in memory. Then x + 1
is written, packed the same way, and its end is compared. Then the most private memory of gpuarrayctl, daemon and
worker together, sampled, while such jobs run: without what they share, the pool and the rings.
"""

import concurrent.futures
import os
import pathlib
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import time

import numcodecs
import numpy as np
import zarr

import gpuarrayd as gd

CHUNK, SHARD = (64, 64, 64), (256, 256, 256)


def in_turns(rounds, **functions):
    """name -> the median of its seconds. Each goes once before, so that the files are in memory."""
    taken = {name: [] for name in functions}
    for round_ in range(rounds + 1):
        for name, function in functions.items():
            began = time.perf_counter()
            function()
            if round_:
                taken[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in taken.items()}


def report(what, n_bytes, taken):
    ours = taken.pop("ours")
    print(f"{what:28} {n_bytes / ours / 1e9:6.2f} GB/s  {ours:7.3f} s  "
          + "  ".join(f"{name} {value:.3f} s ({value / ours:.2f})" for name, value in taken.items()), flush=True)


def packed_chunks(path, shards):
    """The packed bytes of every chunk of an array."""
    for file in sorted((path / "c").rglob("*")):
        if file.is_dir():
            continue
        data = file.read_bytes()
        if not shards:
            yield data
            continue
        n = int(np.prod(np.array(SHARD) // CHUNK))
        for offset, size in np.frombuffer(data[-16 * n - 4:-4], "<u8").reshape(n, 2):
            if offset != 2**64 - 1:
                yield data[offset:offset + size]


def codec_alone(chunks):
    codec, groups = numcodecs.Zstd(), [chunks[i::2] for i in range(2)]

    def work():
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda group: [codec.decode(chunk) for chunk in group], groups))
    return work


def private_bytes(pid):
    try:
        lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def most_private(command):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(os.environ["GPUARRAYD_SOCKET"])
        broker = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    children = pathlib.Path(f"/proc/{broker}/task/{broker}/children").read_text().split()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as job:
        most = 0
        while job.poll() is None:
            most = max(most, sum(map(private_bytes, [job.pid, broker, *children])))
            time.sleep(0.005)
    assert job.returncode == 0
    return most


def main():
    folder, gib = pathlib.Path(sys.argv[1]), float(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    n = max(int(gib * 2048) // 256, 1) * 256
    z, y, x = np.ogrid[:n, :512, :512]
    noise = np.random.default_rng(1).integers(0, 40, (64, 512, 512), dtype="u2")
    values = np.empty((n, 512, 512), "u2")
    for at in range(0, n, 64):
        values[at:at + 64] = 3000 + 1500 * np.sin(z[at:at + 64] / 90) * np.cos(y / 70 + x / 110) + noise
    want = int(values.sum(dtype="u8"))
    print(f"{values.nbytes / 2**30:g} GiB of uint16, medians of {rounds} rounds; in brackets: times ours")
    for shards in (None, SHARD):
        what = "in shards" if shards else "each chunk a file"
        path, made = folder / "bench.zarr", folder / "made.zarr"
        shutil.rmtree(path, ignore_errors=True)
        zarr.create_array(path, data=values, chunks=CHUNK, shards=shards, compressors=zarr.codecs.ZstdCodec(level=3))
        chunks = list(packed_chunks(path, shards))

        def ours():
            assert int(gd.open(path).sum(dtype="u8").compute()) == want

        def theirs():
            assert int(zarr.open_array(path)[...].sum(dtype="u8")) == want

        report(f"sum, {what} ({sum(map(len, chunks)) / values.nbytes:.2f})", values.nbytes,
               in_turns(rounds, **{"ours": ours, "zarr-python": theirs, "codec alone": codec_alone(chunks)}))
        del chunks

        def ours_written():
            gd.save(made, gd.asarray(values) + 1, chunks=CHUNK, shards=shards, compression="zstd:3")

        def theirs_written():
            zarr.create_array(folder / "peer.zarr", data=values + 1, chunks=CHUNK, shards=shards, overwrite=True,
                              compressors=zarr.codecs.ZstdCodec(level=3))

        report(f"x + 1, {what}", values.nbytes,
               in_turns(rounds, **{"ours": ours_written, "zarr-python": theirs_written}))
        assert np.array_equal(zarr.open_array(made)[-70:], values[-70:] + 1)
        read = most_private(["gpuarrayctl", "run", "sum(a)", f"a={path}"])
        as_text = ["x".join(map(str, sizes)) for sizes in (CHUNK, SHARD)]
        written = most_private(["gpuarrayctl", "run", "a + 1", f"a={path}", "-o", str(made), "--chunks", as_text[0],
                                *(["--shards", as_text[1]] if shards else []), "--compress", "zstd:3"])
        print(f"  private memory: {read / 2**20:.0f} MiB for a sum, {written / 2**20:.0f} MiB for a + 1", flush=True)
        for old in (path, made, folder / "peer.zarr"):
            shutil.rmtree(old, ignore_errors=True)


main()
