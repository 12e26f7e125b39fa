"""Empirical orthogonal functions of winds: the patterns in which they differ most from the climate.

    cp /usr/share/ferret-vis/data/monthly_navy_winds.cdf winds.nc
    python eof.py winds.nc:/UWND             # monthly means: time, latitude, longitude
    python eof.py [--picture eof.png]        # of winds that are made, with two patterns in them

Each month less the mean of all such months, weighted by the area that it stands for, is a row of a
matrix; its singular vectors are the patterns, and how their strengths go on in time. The anomalies
are made in two reads of the file, and written once; patterns come from as few reads as they need,
whatever the size of the file is.
"""

import argparse
import pathlib
import tempfile

import numpy as np

import gpuarrayd as gd

N = 3           # patterns
SHADES = " .:-=+*#%@"


def make_winds(path):
    """11 years with seasons, two patterns that come and go, and noise."""
    rng = np.random.default_rng(5)
    time, north, east = np.ogrid[:132, -90:90:73j, 0:360:144j]
    season = 8 * np.sin(2 * np.pi * time / 12) * np.cos(np.radians(north))
    first = 6 * np.exp(-(north / 15) ** 2 - ((east - 200) / 40) ** 2)
    second = 4 * np.exp(-((north - 50) / 15) ** 2)
    strengths, noise = rng.normal(size=(2, 132, 1, 1)), rng.normal(size=(132, 73, 144)) * 0.3
    winds = season + strengths[0] * first + strengths[1] * second + noise
    np.save(path, winds.astype("f4"))
    return str(path)


def decompose(source, folder):
    x = gd.open(source, mask_and_scale=True)
    years, north, east = x.shape[0] // 12, *x.shape[1:]
    months = [x[month:years * 12:12] for month in range(12)]
    area = np.cos(np.linspace(-np.pi / 2, np.pi / 2, north)).clip(0)
    weight = np.sqrt(area)[:, None]
    anomalies = gd.stack([(one - one.mean(axis=0)) * weight for one in months], axis=1)
    a = gd.save(folder / "anomalies.npy", anomalies).reshape(years * 12, north * east)
    strengths, s, patterns = gd.linalg.svd(a, k=N)
    part = s ** 2 / float(gd.linalg.matrix_norm(a)) ** 2
    for i in range(N):
        r = np.corrcoef(strengths[:-1, i], strengths[1:, i])[0, 1]
        print(f"pattern {i + 1}: {part[i]:.1%} of the variance, from month to month r = {r:.2f}")
    pattern = patterns[0].reshape(north, east)
    return np.divide(pattern, weight, out=np.zeros_like(pattern), where=weight > 0.05)


def draw(pattern, rows=18, columns=72):
    """North above. The darker, the stronger; whichever sign."""
    north = np.linspace(pattern.shape[0] - 1, 0, rows).astype(int)
    east = np.linspace(0, pattern.shape[1] - 1, columns).astype(int)
    strength = np.abs(pattern[np.ix_(north, east)])
    for row in (strength / strength.max() * (len(SHADES) - 1)).round().astype(int):
        print("|" + "".join(SHADES[i] for i in row) + "|")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", nargs="?")
    parser.add_argument("--picture", default="eof.png")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pattern = decompose(args.source or make_winds(folder / "winds.npy"), folder)
    draw(pattern)
    pathlib.Path(args.picture).write_bytes(gd.lazy(pattern[::-1]).preview().png())    # north above


if __name__ == "__main__":
    main()
