"""Reflectance of a hyperspectral scan: the usual loop over blocks, and the line that replaces it.

    python spectral_cube.py --bands 224 --rows 2000 --columns 1000 --folder /scratch

The camera counts photons (uint16) for each band, row and column. What it counts in the dark and in
front of a white tile is known for each band and column; from both follows the absorbance of the
sample. The scan lies in a file and may be larger than memory.
"""

import argparse
import tempfile
import time

import numpy as np

import gpuarrayd as gd


def make_scan(path, bands, rows, columns):
    """Writes the scan; returns what was counted in the dark and in front of the white tile."""
    numbers = np.random.default_rng(seed=1)
    dark = numbers.normal(200, 5, (bands, 1, columns)).astype("f4")
    white = numbers.normal(3500, 50, (bands, 1, columns)).astype("f4")
    scan = np.lib.format.open_memmap(path, "w+", "u2", (bands, rows, columns))
    for band in scan:
        band[:] = numbers.integers(150, 4000, band.shape, dtype="u2")
    return dark, white


def absorbance_in_blocks(source, dark, white, destination, step=64):
    """As it is done with NumPy when the scan does not fit into memory."""
    scan = np.load(source, mmap_mode="r")
    result = np.lib.format.open_memmap(destination, "w+", "f4", scan.shape)
    scale = white - dark
    for start in range(0, scan.shape[1], step):
        block = scan[:, start:start + step].astype("f4")
        block -= dark
        block /= scale
        np.clip(block, 1e-4, 1, out=block)
        np.log10(block, out=block)
        np.negative(block, out=block)
        result[:, start:start + step] = block
    result.flush()


def absorbance(source, dark, white, destination):
    """The same."""
    gd.evaluate("-log10(clip((scan - dark) / (white - dark), 1e-4, 1))", scan=gd.open(source),
                to=destination)


def timed(function, *args):
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description="Absorbance of a hyperspectral scan.")
    parser.add_argument("--bands", type=int, default=64)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--folder", help="where the files go; default: a temporary one")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        scan, slow, fast = (f"{folder}/{name}.npy" for name in ("scan", "loop", "line"))
        dark, white = make_scan(scan, args.bands, args.rows, args.columns)
        print(f"loop over blocks: {timed(absorbance_in_blocks, scan, dark, white, slow):.3f} s")
        gd.connect()
        print(f"one line:         {timed(absorbance, scan, dark, white, fast):.3f} s")
        expected, found = np.load(slow, mmap_mode="r"), np.load(fast, mmap_mode="r")
        for band in range(args.bands):
            np.testing.assert_allclose(found[band], expected[band], rtol=1e-5, atol=1e-6)
        print("they agree")


if __name__ == "__main__":
    main()
