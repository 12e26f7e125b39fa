"""CP and Tucker of npy files in the page cache, beside NumPy's einsum and TensorLy (where it is
installed) on the same tensor in memory, in the same run: seconds, the peers' as ratios, relative errors,
reads of the data beside what was said before. Beside them the floor: as many reads of the file by two
threads that do nothing else. BLAS is not pinned on either side.

Of CP's rank 10 here (two cores of a Zen 4, each copies 9 GB/s out of the page cache) about half of the
time is products, by a profile beside other work: twice ten results for each element are 40 operations for 8
bytes, which come from memory twice (for a slab's rows, and with them for the sums). Mapping the file is an
eighth, three tenths of what copying its pieces into a slab took; small algebra and turns are the rest.

    decompositions.py FOLDER [SCALE [ROUNDS [CASE...]]]      with a daemon that has a pool of 256 MiB

SCALE divides the extents of the table (1); CASE: a row of CASES, from 0 (all)."""

import os
import pathlib
import statistics
import string
import sys
import time

import numpy as np

import gpuarrayd as gd

from reading import read

try:
    import tensorly
    from tensorly.decomposition import parafac, tucker as tensorly_tucker
except ImportError:
    tensorly = None

ITERATIONS = 10
CASES = [("cp", (400, 400, 400), 10), ("cp", (400, 400, 400), 50), ("cp", (100, 100, 100, 100), 10),
         ("tucker", (400, 400, 400), 10)]


def make(path, shape, rank):
    """Planted factors and noise, slab by slab."""
    rng = np.random.default_rng(1)
    factors = [rng.normal(size=(n, rank)) for n in shape]
    axes = string.ascii_lowercase[:len(shape)]
    x = np.lib.format.open_memmap(path, "w+", "f8", shape)
    for i in range(shape[0]):
        x[i] = np.einsum("z," + ",".join(f"{a}z" for a in axes[1:]) + "->" + axes[1:], factors[0][i],
                         *factors[1:], optimize=True) + 0.1 * rng.normal(size=shape[1:])
    x.flush()


def numpy_cp(x, rank):
    """Alternating least squares with einsum, as one writes it."""
    rng = np.random.default_rng(2)
    factors = [rng.random((n, rank)) for n in x.shape]
    axes = string.ascii_lowercase[:x.ndim]
    for _ in range(ITERATIONS):
        for axis in range(x.ndim):
            others = [i for i in range(x.ndim) if i != axis]
            wanted = np.einsum(",".join([axes, *(f"{axes[i]}z" for i in others)]) + f"->{axes[axis]}z", x,
                               *(factors[i] for i in others), optimize=True)
            normal = np.prod([factors[i].T @ factors[i] for i in others], axis=0)
            factors[axis] = np.linalg.solve(normal, wanted.T).T
    squares = (np.prod([one.T @ one for one in factors], axis=0)).sum()
    return np.sqrt(max((x * x).sum() - 2 * (wanted * factors[-1]).sum() + squares, 0) / (x * x).sum())


def numpy_tucker(x, rank):
    """HOSVD by grams, and two sweeps of HOOI."""
    def project(y, factors, without):
        for i, factor in enumerate(factors):
            if i != without:
                y = np.moveaxis(np.tensordot(factor, y, (0, i)), 0, i)
        return y

    def leading(y, axis):
        flat = np.moveaxis(y, axis, 0).reshape(y.shape[axis], -1)
        return np.linalg.eigh(flat @ flat.T)[1][:, :-rank - 1:-1]
    factors = [leading(x, i) for i in range(x.ndim)]
    for _ in range(2):
        for i in range(x.ndim):
            factors[i] = leading(project(x, factors, i), i)
    core = project(x, factors, None)
    return np.sqrt(1 - (core * core).sum() / (x * x).sum())


def tensorly_error(x, how, rank):
    if how == "cp":
        _, errors = parafac(x, rank, n_iter_max=ITERATIONS, init="random", tol=0, random_state=2,
                            return_errors=True)
        return float(errors[-1])
    core, _ = tensorly_tucker(x, [rank] * x.ndim, n_iter_max=2, tol=0, svd="randomized_svd",
                              random_state=2)  # of its SVDs the fastest here, by far
    return float(np.sqrt(max(1 - (core * core).sum() / (x * x).sum(), 0)))


def ours(path, how, rank):
    x = gd.open(path)
    if how == "cp":
        plan = gd.tensor.plan_cp(x, rank, iterations=ITERATIONS)
        found = gd.tensor.cp(x, rank, iterations=ITERATIONS, tolerance=-1, seed=2)
    else:
        plan = gd.tensor.plan_tucker(x, rank)
        found = gd.tensor.tucker(x, rank)
    assert found.reads["read_bytes"] == plan["total"]["read_bytes"], (found.reads, plan)
    return found


def timed(function, *args):
    began = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - began, result


def main(folder, scale=1, rounds=3, *chosen):
    path = pathlib.Path(folder) / "tensor.npy"
    for how, shape, rank in [CASES[i] for i in chosen] or CASES:
        shape = tuple(max(n // scale, rank) for n in shape)
        make(path, shape, rank)
        x = np.load(path)
        peers = {"NumPy": lambda: numpy_cp(x, rank) if how == "cp" else numpy_tucker(x, rank)}
        if tensorly:
            peers["TensorLy"] = lambda: tensorly_error(x, how, rank)
        floors, times = [], {"ours": [], **{name: [] for name in peers}}
        for _ in range(rounds):  # in turns
            seconds, found = timed(ours, path, how, rank)
            times["ours"].append(seconds)
            for name, peer in peers.items():
                seconds, error = timed(peer)
                times[name].append(seconds)
                errors = {**locals().get("errors", {}), name: error}
            floors.append(timed(read, path, found.reads["reads"])[0])
        own = statistics.median(times["ours"])
        print(f"{how} {'x'.join(map(str, shape))} float64 rank {rank}: {own:.3f} s, "
              f"{found.reads['reads']} reads "
              f"(alone {statistics.median(floors):.3f} s), relative error {found.relative_error:.5f}; " +
              ", ".join(f"{name} {statistics.median(times[name]):.3f} s "
                        f"({statistics.median(times[name]) / own:.2f}, error {errors[name]:.5f})"
                        for name in peers), flush=True)
        del x
        os.unlink(path)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
