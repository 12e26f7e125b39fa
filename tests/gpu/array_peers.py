"""The side of CuPy or PyTorch of tests/gpu/bench/stream.c, run in turns with ours: host arrays to the
device, the expression, the result back into a host array.

array_peers.py whole NAME N      CuPy, the arrays at once
array_peers.py chunked NAME N    CuPy in a loop over chunks with two streams and pinned buffers, as a
                                 user would write it
array_peers.py torch NAME N      PyTorch, the arrays at once

NAME: sqrt or multiply-add; N elements of float32. Writes a line when it is ready; then, for every
line read, the seconds of one round. Without CuPy, PyTorch, or PyTorch's device it ends at once, and
there is no peer.
"""

import sys
import time

import numpy as np

try:
    if sys.argv[1] == "torch":
        import torch
        torch.empty(1, device="cuda")
    else:
        import cupy as cp
except (ImportError, AssertionError, RuntimeError):
    sys.exit(0)

CHUNK = 8 << 20  # elements
EXPRESSIONS = {"sqrt": (1, lambda a: (torch if sys.argv[1] == "torch" else cp).sqrt(a)),
               "multiply-add": (3, lambda a, b, c: a * b + c)}


def whole(arrays, result, compute):
    def one_round():
        compute(*[cp.asarray(a) for a in arrays]).get(out=result)
    return one_round


def whole_torch(arrays, result, compute):
    sources, to = [torch.from_numpy(a) for a in arrays], torch.from_numpy(result)

    def one_round():
        to.copy_(compute(*[source.to("cuda") for source in sources]))
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
    one_round = {"whole": whole, "chunked": chunked, "torch": whole_torch}[
        sys.argv[1]](arrays, result, compute)
    one_round()
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        one_round()
        print(f"{time.perf_counter() - began:.6f}", flush=True)


main()
