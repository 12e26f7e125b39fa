"""The floor of what reads a file again and again: the same reads by two threads that keep nothing, and that
add up what they read; for benchmarks."""

import os
import threading

import numpy as np


def read(path, times=1, dtype=None):
    """By two threads, in the pieces in which the daemon reads; with a dtype elements are added up."""
    n_bytes = os.path.getsize(path) // 8 * 8

    def read_half(first):
        part = bytearray(1 << 18)
        elements = np.frombuffer(part, dtype) if dtype else None
        with open(path, "rb", buffering=0) as file:
            for _ in range(times):
                at, end = first, min(first + (n_bytes + 1) // 2, n_bytes)
                while at < end:
                    at += os.preadv(file.fileno(), [part], at)
                    if dtype:
                        elements.sum()
    halves = [threading.Thread(target=read_half, args=(first,)) for first in (0, (n_bytes + 1) // 2)]
    for half in halves:
        half.start()
    for half in halves:
        half.join()
