"""The heat equation on a plate whose rims are insulated, and a picture of it.

    python heat_equation.py [--side 256] [--steps 800] [--picture heat.png]

A step is an expression of each element and its four neighbours, near(u, 1, 0) and so on; beyond
the rim lies what is at the rim, so no heat leaves the plate. repeat(8, ...) does eight steps while
a part of the plate is in the cache: the array is read and written once in eight steps. Explicit
steps are stable up to a quarter.
"""

import argparse

import numpy as np
import png

import gpuarrayd as gd

STEPS = """lap(u) = near(u, 1, 0) + near(u, -1, 0) + near(u, 0, 1) + near(u, 0, -1) - 4*u;
repeat(8, u = u + 0.2*lap(u))"""


def plate(side):
    """Two hot discs and a cold bar."""
    y, x = np.mgrid[:side, :side] / side
    u = np.zeros((side, side), "f4")
    u[(x - 0.3)**2 + (y - 0.35)**2 < 0.015] = 1
    u[(x - 0.7)**2 + (y - 0.6)**2 < 0.006] = 1
    u[(abs(x - 0.5) < 0.35) & (abs(y - 0.85) < 0.03)] = -0.5
    return u


def colours(u):
    """Blue where it is cold, by black and red to yellow and white where it is hot."""
    stops = np.array([[90, 160, 255], [0, 0, 0], [190, 20, 10], [255, 190, 40], [255, 255, 255]])
    at = np.interp(u, [-0.3, 0, 0.25, 0.6, 1], range(5))
    return np.stack([np.interp(at, range(5), stops[:, k]) for k in range(3)], axis=-1).astype("u1")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--picture", default="heat.png")
    options = parser.parse_args()

    u = plate(options.side)
    before = u.sum(dtype="f8")
    shown = [u]
    n = max(options.steps // 8, 1)
    for step in range(n):
        u = gd.evaluate(STEPS, u=u)
        if step + 1 in (n // 8, n):
            shown.append(u)
    png.save(options.picture, colours(np.hstack(shown)))
    print(f"{n * 8} steps of {u.shape[0]} x {u.shape[1]}, heat {before:.3f} then "
          f"{u.sum(dtype='f8'):.3f}, from {u.min():.3f} to {u.max():.3f}")


if __name__ == "__main__":
    main()
