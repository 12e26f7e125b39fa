"""What it costs to compute over a generator beside the generator alone, in turns, in one run.

    PYTHONPATH=BUILD/python python tests/bench/generator.py [MIB [ROUNDS]]

Slabs of 1 MiB of random float64. Prints seconds, the best of the rounds, and their ratio.
"""

import sys
import time

import gpuarrayd as gd
import numpy as np

mib = int(sys.argv[1]) if len(sys.argv) > 1 else 512
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
ROWS, COLUMNS = 1024, 128
rng = np.random.default_rng(1)


def slabs():
    for _ in range(mib):
        yield rng.random((ROWS, COLUMNS))


def alone():
    for _ in slabs():
        pass


def numpy():
    return sum(slab.sum() for slab in slabs())


def summed():
    return x.sum().compute()


def taken():
    for _ in gd.stream(x * 2, rows=ROWS):
        pass


x = gd.from_generator(slabs, "f8", (mib * ROWS, COLUMNS))
best = {}
for _ in range(rounds):
    for run in (alone, numpy, summed, taken):
        begin = time.perf_counter()
        run()
        took = time.perf_counter() - begin
        best[run.__name__] = min(took, best.get(run.__name__, took))
for name, took in best.items():
    print(f"{name:8} {took:7.3f} s  {took / best['alone']:.2f} of the generator alone")
