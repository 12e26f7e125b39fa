"""Stencils that a generator makes, of every mode, dtype and number of axes: the same bytes wherever
the array lies, in whatever pool, by any number of threads, and on both engines.

GPUARRAYD_TEST_STENCILS says how many (3), GPUARRAYD_TEST_SEED where the generator begins. A stencil
has neighbours, windows, steps of time and loops, with arithmetic that rounds: another order of it
would give other bytes.
"""

import contextlib
import itertools
import os

import numpy as np
import pytest

import conftest
import wire
from catalogue import NUMPY_2
from test_cuda_near import laid_out, run_to
from test_near import MODES, offsets_of, text

N_STENCILS = int(os.environ.get("GPUARRAYD_TEST_STENCILS", 3))
SEED = int(os.environ.get("GPUARRAYD_TEST_SEED", 1))
SHAPES = {1: [(400_003,), (1_000_000,)], 2: [(700, 900), (11, 60_000), (50_000, 13)],
          3: [(60, 70, 80), (5, 300, 200)]}
POOLS = (("8M", 1), ("64M", 3))
SOURCES = ("rows.npy", "columns.npy", "grid", "packed", "memory")
# Under the sanitizers the kernels run in the runner of the device's kernels.
pytestmark = [pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes"), pytest.mark.slow]


class Made:
    """A text, made from the outside in."""

    def __init__(self, rng, shape, mode):
        self.rng, self.shape, self.mode, self.n_windows = rng, shape, mode, 2

    def number(self):
        return str(round(float(self.rng.normal()), 3))

    def near(self, of="u", far=40):
        most = 3 if self.rng.integers(4) or len(self.shape) == 3 else far
        offsets = [max(-most, min(most, o)) for o in offsets_of(self.rng, self.shape, self.mode)]
        return text(of, offsets, self.mode, self.number())

    def window(self):
        self.n_windows -= 1
        sizes = [int(n) for n in self.rng.integers(1, {1: 40, 2: 7, 3: 4}[len(self.shape)],
                                                   len(self.shape))]
        sizes = [min(size, n) for size, n in zip(sizes, self.shape)]
        end = f"{sizes}, mode={self.mode}" + (f", value={self.number()}" if self.mode == "constant" else "")
        kind = self.rng.choice(["window_mean", "window_std", "window_max", "window_sum", "correlate"])
        if kind != "correlate":
            return f"{kind}({self.rng.choice(['u', 'u * u', 'abs(u)'])}, {end})"
        return f"correlate(u, {np.round(self.rng.normal(size=sizes), 2).tolist()}{end[len(str(sizes)):]})"

    def whole(self, depth=4):
        kind = int(self.rng.integers(9))
        if depth == 0 or kind == 0:
            return str(self.rng.choice(["u", self.near(), self.near(), self.number()]))
        if kind == 1 and self.n_windows > 0:
            return self.window()
        one, other = self.whole(depth - 1), self.whole(depth - 1)
        return (f"({one} + {other})", f"({one} - {other})", f"{one} * {other}", f"maximum({one}, {other})",
                f"sqrt(abs({one}))", f"where({one} > {other}, {self.near()}, {other})",
                f"({one}) / (2 + abs({other}))", self.near("(u*abs(u) - 0.3)"),
                f"({one} + {other})")[kind]

    def all(self):
        steps = f"u + 0.1*({self.near(far=4)} + {self.near(far=4)} - 2*u)"
        yield "", f"u + {self.whole()}"
        n_steps = int(self.rng.integers(1, 3 if len(self.shape) == 3 else 4))
        yield "", f"repeat({n_steps}, u = {steps})"
        yield "f(v) = iterate(7, u = 0.7*u + v, until = abs(u) > 1.5); ", f"f({self.near()})"


def written(folder, u):
    h5py = pytest.importorskip("h5py")
    np.save(f"{folder}/rows.npy", u)
    np.save(f"{folder}/columns.npy", np.asfortranarray(u))
    with h5py.File(f"{folder}/u.h5", "w") as file:
        chunks = tuple(max(1, n // k) for n, k in zip(u.shape, (3, 2, 5)))
        file.create_dataset("grid", data=u, chunks=chunks)
        file.create_dataset("packed", data=u, chunks=chunks, compression="gzip", compression_opts=1)


def of_memory(daemon, u, rng, engine, expr):
    """In an order of axes, with gaps and backwards, to where it lies as NumPy has it."""
    with daemon.connect() as w:
        region, results = wire.Region(w, 16 * u.nbytes), wire.Region(w, 8 * u.size)
        whole = region.array(u.dtype, (16 * u.size,))
        view = laid_out(whole, u.shape, rng)
        view[...] = u
        at = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        args = {"u": wire.described(u, region.at(at), view.strides)}
        made = w.call("job.plan", outputs=[{"expr": expr}], args=args)["outputs"][0]
        result = run_to(w, results, engine, expr, args, made).tobytes()
        del whole, view
        return result


def of_file(daemon, folder, source, engine, expr):
    name = source if source.endswith("npy") else f"u.h5:/{source}"
    daemon.ctl("run", "--engine", engine, expr, f"u={folder}/{name}", "-o", f"o={folder}/o.npy")
    return np.load(f"{folder}/o.npy").tobytes()


@contextlib.contextmanager
def of_each_pool():
    """With a CPU worker and a device's."""
    daemons = [conftest.Daemon(pool=pool, threads=threads, engine="auto") for pool, threads in POOLS]
    for daemon in daemons:
        daemon.wait_for_state("ready", "cpu")
        daemon.wait_for_state("ready")
    yield daemons
    for daemon in daemons:
        daemon.stop()


def test_any_cut_of_stencils_that_are_drawn_gives_the_same_bytes(folder):
    n_compared = {"cpu": 0, "cuda": 0}
    with of_each_pool() as daemons:
        for seed in range(SEED, SEED + N_STENCILS):
            rng = np.random.default_rng(seed)
            shapes = SHAPES[1 + seed % 3]
            shape, mode = shapes[int(rng.integers(len(shapes)))], MODES[seed % 5]
            u = rng.normal(size=shape).astype(("f4", "f8")[seed // 2 % 2])
            written(folder, u)
            for names, expr in Made(rng, shape, mode).all():
                found = None
                cuts = [*itertools.product(range(len(POOLS)), SOURCES, ("cpu", "cuda"))]
                for pool, source, engine in [cuts[i] for i in rng.permutation(len(cuts))[:4]]:
                    daemon = daemons[pool]
                    made = of_memory(daemon, u, rng, engine, names + expr) if source == "memory" else \
                        of_file(daemon, folder, source, engine, f"{names}o = {expr}")
                    found = found or made
                    assert made == found, f"seed {seed}, {source}, {engine}, {POOLS[pool]}: {expr}"
                    n_compared[engine] += 1
    assert N_STENCILS < 3 or min(n_compared.values()) > N_STENCILS, n_compared
