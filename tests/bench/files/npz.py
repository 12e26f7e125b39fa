"""Arrays in npz archives beside numpy.load() and the decoder by itself, in turns, as ratios.

npz.py FOLDER INFLATE GIB [ROUNDS], with a daemon; INFLATE is the program of inflate.c.

Sums of a deflated member of GIB GiB of float32: once of smooth numbers as measurements have them (two decimals), once
of normal ones, of which only the exponents are packed; in brackets what is left of it. Then a stored member is summed.
New archives, stored and packed, are beside numpy.savez() and savez_compressed(); in brackets our size in theirs.
"""

import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

import gpuarrayd as gd


def seconds(function):
    began = time.perf_counter()
    value = function()
    return time.perf_counter() - began, value


def in_turns(rounds, **functions):
    """name -> the median of its seconds. Each goes once before, so that the file is in memory."""
    for function in functions.values():
        function()
    taken = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            taken[name].append(function())
    return {name: statistics.median(values) for name, values in taken.items()}


def numpy_sum(path):
    def one_round():
        def work():
            with np.load(path) as archive:
                return archive["x"].sum(dtype="f8")
        return seconds(work)[0]
    return one_round


def our_sum(path, want):
    def one_round():
        taken, value = seconds(lambda: float(gd.open(f"{path}:x").sum(dtype="f8").compute()))
        assert np.isclose(value, want), (value, want)
        return taken
    return one_round


def decoder(inflate, path):
    return lambda: float(subprocess.run([inflate, str(path), "x"], check=True, capture_output=True, text=True).stdout)


def report(what, n_bytes, taken):
    ours = taken.pop("ours")
    print(f"{what:22} {n_bytes / ours / 1e9:6.2f} GB/s  {ours:7.3f} s  "
          + "  ".join(f"{name} {value:.3f} s ({value / ours:.2f})" for name, value in taken.items()), flush=True)


def write(folder, what, values, rounds, save, **storage):
    """x * 2 into a new archive, by us and by `save`."""
    target, peer = folder / "ours.npz", folder / "peer.npz"

    def ours():
        taken, _ = seconds(lambda: gd.save(f"{target}:x", gd.asarray(values) * 2, **storage))
        return taken

    def theirs():
        taken, _ = seconds(lambda: save(peer, x=values * 2))
        return taken

    taken = in_turns(rounds, **{"ours": ours, save.__name__: theirs})
    report(f"{what} ({target.stat().st_size / peer.stat().st_size:.2f})", values.nbytes, taken)
    target.unlink()
    peer.unlink()


def main():
    folder, inflate, gib = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    rng = np.random.default_rng(1)
    n = int(gib * (1 << 28))
    normal = rng.standard_normal(n, dtype="f4")
    smooth = (np.sin(np.arange(n, dtype="f4") / 5000) * 20 + normal / 4).round(2)
    print(f"{gib:g} GiB of float32, medians of {rounds} rounds; in brackets: times ours")
    for name, values in (("smooth", smooth), ("normal", normal)):
        path = folder / f"{name}.npz"
        np.savez_compressed(path, x=values)
        want = values.sum(dtype="f8")
        report(f"deflated, {name} ({path.stat().st_size / values.nbytes:.2f})", values.nbytes,
               in_turns(rounds, ours=our_sum(path, want), **{"numpy.load": numpy_sum(path),
                                                            "decoder alone": decoder(inflate, path)}))
        path.unlink()
    np.savez(folder / "stored.npz", x=normal)
    report("stored", normal.nbytes, in_turns(rounds, ours=our_sum(folder / "stored.npz", normal.sum(dtype="f8")),
                                             **{"numpy.load": numpy_sum(folder / "stored.npz")}))
    (folder / "stored.npz").unlink()
    write(folder, "x * 2, stored", normal, rounds, np.savez)
    write(folder, "x * 2, packed", smooth, rounds, np.savez_compressed, compression="gzip")


main()
