"""What it costs to compute over a generator beside the generator alone, in turns, in one run.

    PYTHONPATH=BUILD/python python tests/bench/generator.py [MIB [ROUNDS [uniform|normal]]]

Slabs of 1 MiB of random float64, which take some 0.3 ms (uniform) or 1 ms (normal) to make. Prints
seconds of both clocks, the best of the rounds, and their ratios (at most 1.1 of the time of day). A
copy of each slab is added to the generator's own work. Nobody else knows these slabs, so another
thread makes it, and on two processors it shows in the processor's time alone.
"""

import sys
import time

import gpuarrayd as gd
import numpy as np

mib = int(sys.argv[1]) if len(sys.argv) > 1 else 512
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
ROWS, COLUMNS = 1024, 128
rng = np.random.default_rng(1)
draw = rng.standard_normal if sys.argv[3:] == ["normal"] else rng.random


def slabs():
    for _ in range(mib):
        yield draw((ROWS, COLUMNS))


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
        begin, cpu = time.perf_counter(), time.process_time()
        run()
        took, used = time.perf_counter() - begin, time.process_time() - cpu
        least = best.get(run.__name__, (took, used))
        best[run.__name__] = min(took, least[0]), min(used, least[1])
for name, (took, used) in best.items():
    print(f"{name:8} {took:7.3f} s, {took / best['alone'][0]:.2f} of the generator alone; "
          f"this process's processor time {used:7.3f} s, {used / best['alone'][1]:.2f}")
