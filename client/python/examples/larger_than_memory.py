"""An array that this process could never hold: mean, maximum and a new file, in constant memory.

    python larger_than_memory.py --gigabytes 100 --folder /scratch
    python larger_than_memory.py             # 0.25 GB, in a folder that goes away

So that nobody has to believe it, the process first forbids itself to grow by more than 64 MB, and
shows that NumPy then cannot load the array. The input is a sparse file, which takes no space on
disk; the output takes half of the given size.
"""

import argparse
import pathlib
import resource
import tempfile

import numpy as np

import gpuarrayd as gd

ALLOWANCE = 64_000_000
N_SPIKES = 1000


def make_sparse(path, n):
    """float64, zero but for N_SPIKES elements, of which number i is i."""
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f8", "fortran_order": False, "shape": (n,)})
        start = file.tell()
        file.truncate(start + 8 * n)
        for i in range(N_SPIKES):
            file.seek(start + 8 * (i * (n // N_SPIKES)))
            file.write(np.float64(i).tobytes())


def forbid_growth():
    """Limits the address space to what is in use and ALLOWANCE."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ALLOWANCE,) * 2)


def compute(path, destination):
    x = gd.open(path)
    mean, highest = gd.compute(x.mean(), x.max())      # one pass over the file
    gd.save(destination, (gd.sqrt(x * x + 1) - mean).astype("f4"))
    return mean, highest


def check(path, destination, n, mean, highest):
    assert highest == N_SPIKES - 1
    np.testing.assert_allclose(mean, N_SPIKES * (N_SPIKES - 1) / 2 / n, rtol=1e-12)
    step = n // N_SPIKES
    for i in (0, 1, N_SPIKES - 1):                      # a few elements of both files
        part = f"[{i * step}:{i * step + 4}]"
        x, y = np.asarray(gd.open(path + part)), np.asarray(gd.open(destination + part))
        assert x[0] == i and not x[1:].any()
        np.testing.assert_allclose(y, (np.sqrt(x * x + 1) - mean).astype("f4"), rtol=1e-6)


def main():
    parser = argparse.ArgumentParser(description="Computes what does not fit into memory.")
    parser.add_argument("--gigabytes", type=float, default=0.25)
    parser.add_argument("--folder", help="where the files go; default: a temporary one")
    args = parser.parse_args()
    n = int(args.gigabytes * 1e9) // 8
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        x, y = f"{folder}/x.npy", f"{folder}/y.npy"
        make_sparse(x, n)
        gd.connect()                # before the limit, which a private daemon would inherit
        forbid_growth()
        try:
            np.load(x)
        except MemoryError as error:
            print("NumPy:", error)
        else:
            raise SystemExit("the array fits into memory: give more --gigabytes")
        mean, highest = compute(x, y)
        check(x, y, n, mean, highest)
    print(f"gpuarrayd: mean {mean:.6g}, highest {highest:g}, and {4 * n / 1e9:.3g} GB written")


if __name__ == "__main__":
    main()
