"""NumPy's side of the benchmark of random numbers, run in turns with ours.

random_peer.py SFC64|Philox 'normal float32' N: N numbers into an array that has been written before, by
two generators on two threads. Writes a line when it is there; then, for every line read, the seconds
of one round.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

THREADS = 2


def main():
    generator, (kind, dtype), n = sys.argv[1], sys.argv[2].split(), int(sys.argv[3])
    out = np.ones(n, dtype)
    seeds = np.random.SeedSequence(1).spawn(THREADS)
    draws = []
    for seed in seeds:
        rng = np.random.Generator(getattr(np.random, generator)(seed))
        draws.append({"normal": rng.standard_normal, "uniform": rng.random,
                      "exponential": rng.standard_exponential}[kind])
    parts = np.array_split(out, THREADS)
    pool = ThreadPoolExecutor(THREADS)
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        for done in [pool.submit(draw, out=part, dtype=out.dtype)
                     for draw, part in zip(draws, parts)]:
            done.result()
        print(time.perf_counter() - began, flush=True)


main()
