"""Conway's Game of Life on a torus, and a picture of it.

    python game_of_life.py [--generations 240] [--picture life.png]

A cell and its eight neighbours are an expression, which goes around the ends with mode=wrap.
Gosper's gun makes a glider every thirty generations.
"""

import argparse

import numpy as np
import png

import gpuarrayd as gd

AROUND = " + ".join(f"near(u, {i}, {k}, mode=wrap)"
                    for i in (-1, 0, 1) for k in (-1, 0, 1) if i or k)
GENERATIONS = f"""living(u) = {AROUND};
repeat(8, u = where(living(u) == 3, 1, where(living(u) == 2, u, 0)))"""

GUN = """
........................O...........
......................O.O...........
............OO......OO............OO
...........O...O....OO............OO
OO........O.....O...OO..............
OO........O...O.OO....O.O...........
..........O.....O.......O...........
...........O...O....................
............OO......................
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--generations", type=int, default=240)
    parser.add_argument("--picture", default="life.png")
    options = parser.parse_args()

    gun = np.array([[cell == "O" for cell in line] for line in GUN.split()], "u1")
    u = np.zeros((96, 128), "u1")
    u[4:4 + gun.shape[0], 4:4 + gun.shape[1]] = gun
    ages = np.zeros(u.shape, "u1")    # how lately a cell lived: trails of what moves
    for _ in range(options.generations // 8):
        u = gd.evaluate(GENERATIONS, u=u)
        ages = np.maximum(ages // 4 * 3, u * 255)
    png.save(options.picture, np.kron(255 - ages, np.ones((4, 4), "u1")))
    print(f"{options.generations // 8 * 8} generations, {int(u.sum())} cells live")


if __name__ == "__main__":
    main()
