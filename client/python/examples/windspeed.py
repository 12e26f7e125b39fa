"""Wind speed from its two components, which lie in an HDF5 or netCDF-4 file of any size.

    python windspeed.py winds.h5 speed.npy --u UWND --v VWND
    python windspeed.py                      # on a file that it makes, in a folder that goes away

The arrays are never loaded: `gd.open` reads the header, and the daemon reads the data block by
block while it computes. Compressed datasets are as good as plain ones.
"""

import argparse
import pathlib
import tempfile

import h5py
import numpy as np

import gpuarrayd as gd


def make_winds(path):
    """Eleven years of monthly means on a grid of 2.5 degrees, compressed."""
    numbers = np.random.default_rng(seed=0)
    with h5py.File(path, "w") as file:
        for name in ("UWND", "VWND"):
            wind = numbers.normal(0, 5, (132, 73, 144)).astype("f4")
            file.create_dataset(name, data=wind, chunks=(12, 73, 144), compression="gzip")


def compute(path, u_name, v_name, destination):
    u = gd.open(f"{path}:/{u_name}", mask_and_scale=True)
    v = gd.open(f"{path}:/{v_name}", mask_and_scale=True)
    speed = gd.sqrt(u * u + v * v)
    print("speed", speed.dtype, speed.shape)       # known before anything is computed
    gd.save(destination, speed)

    saved = gd.open(destination)
    mean, highest, storms = gd.compute(saved.mean(), saved.max(), gd.count_nonzero(saved > 17.2))
    print(f"mean {mean:.3f} m/s, highest {highest:.3f} m/s, gales: {storms} of {saved.size}")


def check(path, u_name, v_name, destination):
    """The same with NumPy, for the last month."""
    with h5py.File(path) as file:
        u, v = file[u_name][-1], file[v_name][-1]
    speed = np.load(destination, mmap_mode="r")[-1]
    np.testing.assert_allclose(speed, np.sqrt(u * u + v * v), rtol=1e-6)
    print("the last month is what NumPy computes")


def main():
    parser = argparse.ArgumentParser(description="Wind speed from its two components.")
    parser.add_argument("winds", nargs="?", help="HDF5 or netCDF-4 file; default: one is made")
    parser.add_argument("speed", nargs="?", help="npy file to write; default: a temporary one")
    parser.add_argument("--u", default="UWND", help="dataset of the eastward component")
    parser.add_argument("--v", default="VWND", help="dataset of the northward component")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        winds = args.winds or str(pathlib.Path(folder) / "winds.h5")
        speed = args.speed or str(pathlib.Path(folder) / "speed.npy")
        if args.winds is None:
            make_winds(winds)
        compute(winds, args.u, args.v, speed)
        check(winds, args.u, args.v, speed)


if __name__ == "__main__":
    main()
