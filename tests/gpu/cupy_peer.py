"""CuPy's side of tests/gpu/bench/stream.c, run in turns with ours: host arrays to the device, the
expression, the result back into a host array.

cupy_peer.py whole NAME N      the arrays at once
cupy_peer.py chunked NAME N    in a loop over chunks with two streams and pinned buffers, as a user
                               would write it

NAME: sqrt or multiply-add; N elements of float32. Writes a line when it is ready; then, for every
line read, the seconds of one round. Without CuPy it ends at once, and there is no peer.
"""

import sys
import time

try:
    import cupy as cp
except ImportError:
    sys.exit(0)
import numpy as np

CHUNK = 8 << 20  # elements
EXPRESSIONS = {"sqrt": (1, lambda a: cp.sqrt(a)), "multiply-add": (3, lambda a, b, c: a * b + c)}


def whole(arrays, result, compute):
    def one_round():
        compute(*[cp.asarray(a) for a in arrays]).get(out=result)
    return one_round


def pinned(n):
    memory = cp.cuda.alloc_pinned_memory(n * 4)
    return np.frombuffer(memory, np.float32, n)


def chunked(arrays, result, compute):
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]
    staged = [[pinned(CHUNK) for _ in arrays] for _ in streams]
    back = [pinned(CHUNK) for _ in streams]

    def one_round():
        waiting = [None, None]
        for i, first in enumerate(range(0, result.size, CHUNK)):
            k, part = i % 2, slice(first, min(first + CHUNK, result.size))
            n = part.stop - part.start
            streams[k].synchronize()
            if waiting[k]:
                result[waiting[k]] = back[k][:waiting[k].stop - waiting[k].start]
            with streams[k]:
                inputs = []
                for source, buffer in zip(arrays, staged[k]):
                    buffer[:n] = source[part]
                    device = cp.empty(n, np.float32)
                    device.set(buffer[:n], stream=streams[k])
                    inputs.append(device)
                compute(*inputs).get(stream=streams[k], out=back[k][:n], blocking=False)
            waiting[k] = part
        for k in range(2):
            streams[k].synchronize()
            if waiting[k]:
                result[waiting[k]] = back[k][:waiting[k].stop - waiting[k].start]
    return one_round


def main():
    n_inputs, compute = EXPRESSIONS[sys.argv[2]]
    n = int(sys.argv[3])
    arrays = [np.arange(n, dtype=np.float32) % 8191 for _ in range(n_inputs)]
    result = np.zeros(n, np.float32)
    one_round = {"whole": whole, "chunked": chunked}[sys.argv[1]](arrays, result, compute)
    one_round()
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        one_round()
        print(f"{time.perf_counter() - began:.6f}", flush=True)


main()
