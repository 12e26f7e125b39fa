"""Standard scores of measurements, (x - mean) / deviation along an axis, of a file of any size.

    python standard_scores.py measured.npy scores.npy --axis 0
    python standard_scores.py                # of random numbers, in a folder that goes away

The means and deviations are found in one pass over the file, the scores in a second one; nothing of
the file's size is in memory. Their means and deviations come from one pass more over them, the
highest and its place from another: they are of other axes.
"""

import argparse
import pathlib
import tempfile

import numpy as np

import gpuarrayd as gd


def make_measurements(path):
    """400 sensors, each with its own offset and spread: never in memory either."""
    rng = gd.random.default_rng(seed=3)
    offsets = rng.uniform(-50, 50, size=400)
    spreads = rng.uniform(1, 9, size=400)
    noise = rng.normal(size=(20_000, 400), dtype="f4")
    gd.save(path, (offsets.compute() + spreads.compute() * noise).astype("f4"))


def compute(path, destination, axis):
    x = gd.open(path)
    means, deviations = x.mean(axis, keepdims=True), x.std(axis, ddof=1, keepdims=True)
    scores = (x - means) / deviations
    print("scores", scores.dtype, scores.shape)     # known before anything is computed
    gd.save(destination, scores)

    saved = gd.open(destination)
    mean, deviation, highest, place = gd.compute(
        saved.mean(axis=axis), saved.std(axis=axis, ddof=1), saved.max(), saved.argmax())
    print(f"means within {np.abs(mean).max():.1e} of 0, "
          f"deviations within {np.abs(deviation - 1).max():.1e} of 1")
    where = tuple(int(i) for i in np.unravel_index(place, saved.shape))
    print(f"highest {highest:.2f} at {where}")


def check(path, destination, axis):
    """The same with NumPy, for the first of the kept axes."""
    first = tuple(slice(None) if i == axis else slice(0, 1)
                  for i in range(np.load(path, mmap_mode="r").ndim))
    x = np.load(path, mmap_mode="r")[first].astype("f8")
    scores = np.load(destination, mmap_mode="r")[first]
    wanted = (x - x.mean(axis, keepdims=True)) / x.std(axis, ddof=1, keepdims=True)
    np.testing.assert_allclose(scores, wanted, rtol=1e-4, atol=1e-5)
    print("the first are what NumPy computes")


def main():
    parser = argparse.ArgumentParser(description="Standard scores of measurements.")
    parser.add_argument("measured", nargs="?", help="npy file; default: one is made")
    parser.add_argument("scores", nargs="?", help="npy file to write; default: a temporary one")
    parser.add_argument("--axis", type=int, default=0, help="along which; default: 0")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = args.measured or str(pathlib.Path(folder) / "measured.npy")
        scores = args.scores or str(pathlib.Path(folder) / "scores.npy")
        if args.measured is None:
            make_measurements(measured)
        compute(measured, scores, args.axis)
        check(measured, scores, args.axis)


if __name__ == "__main__":
    main()
