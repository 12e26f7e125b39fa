"""A filter of one's own over an image of any size, and a picture of it.

    python bilateral_filter.py [source.npy] [--picture smooth.png]

Each element becomes a mean of those around it, of which such count most that are near and of nearly
the same value: noise goes, edges stay. The weights depend on the data, so no kernel has them; here
they are a few lines of NumPy, which gd.map_blocks() calls in this process with blocks and what
lies around them. Nothing is kept as a whole but the result's file.
"""

import argparse
import pathlib
import tempfile

import numpy as np
import png

import gpuarrayd as gd

REACH = 3                 # elements on each side
NEAR, LIKE = 1.5, 0.2     # how fast weights fall with the distance, and with the difference


def bilateral(block):
    """Of the whole block; what is at its rim is its neighbours' to compute, and is cut off."""
    total, weights = np.zeros_like(block), np.zeros_like(block)
    for i in range(-REACH, REACH + 1):
        for k in range(-REACH, REACH + 1):
            other = np.roll(block, (i, k), (0, 1))
            weight = np.exp(-(i*i + k*k) / (2 * NEAR**2) - (other - block)**2 / (2 * LIKE**2))
            total += weight * other
            weights += weight
    return total / weights


def scene(rows, columns):
    """A disc and bars, of float32 from 0 to 1, with noise."""
    y, x = np.mgrid[:rows, :columns] / rows
    u = np.where((x - 0.5)**2 + (y - 0.5)**2 < 0.12, 0.8, 0.3)
    u[(x > 1) & (np.floor(x * 12) % 2 == 0)] = 0.9
    noise = np.random.default_rng(2).normal(0, 0.08, u.shape)
    return (u + noise).clip(0, 1).astype("f4")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", nargs="?")
    parser.add_argument("--picture", default="smooth.png")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        source = options.source or f"{folder}/noisy.npy"
        if not options.source:
            np.save(source, scene(300, 500))
        x = gd.open(source)
        smooth = gd.map_blocks(bilateral, x, dtype="f4", depth=REACH, mode="reflect",
                               block=(96, x.shape[1]))
        gd.save(pathlib.Path(folder) / "smooth.npy", smooth)
        before, after = np.load(source), np.load(f"{folder}/smooth.npy")
    png.save(options.picture, (np.hstack([before, after]).clip(0, 1) * 255).astype("u1"))
    steps = [float(np.median(abs(np.diff(u, axis=1)))) for u in (before, after)]
    jumps = [int((abs(np.diff(u, axis=1)) > 0.3).sum()) for u in (before, after)]
    print(f"from one element to the next {steps[0]:.4f}, then {steps[1]:.4f}; "
          f"edges {jumps[0]}, then {jumps[1]}")


if __name__ == "__main__":
    main()
