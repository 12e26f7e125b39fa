"""Generated jobs, and a digest of each result: two builds compute the same bits, and fail with the
same words, where their lists are equal. For whoever changes the inside and means to change nothing.

    sh tests/run-uninstalled.sh --pool 8M -- python3 tests/bits.py before.txt
    ... change and build ...
    sh tests/run-uninstalled.sh --pool 8M -- python3 tests/bits.py after.txt; diff before.txt after.txt

Job i is a function of the seed and i alone: what a line says of one that differs can be run again
with --first I --jobs 1 --show. --engine names the engine: of a device, or of the test double.
"""

import argparse
import hashlib
import pathlib
import tempfile
import warnings

import h5py
import numpy as np

import gpuarrayd as gd

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", ">f4", ">f8", ">i4"]
FLOATS, INTEGERS = ["f4", "f8", ">f4", ">f8"], ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
METHODS = ["linear", "lower", "higher", "nearest", "midpoint", "hazen", "median_unbiased"]
HIDDEN = {"index", "astype", "select", "where", "clip", "matmul", "isclose"}  # written by hand below


class Job:
    """One text and its arrays, from a generator of random numbers."""

    def __init__(self, rng, ops, folder):
        self.rng, self.folder, self.arrays = rng, folder, {}
        self.pointwise = [op for op in ops if op["args"] in (1, 2) and op["results"] == 1
                          and not op["keywords"] and op["name"] not in HIDDEN]
        kinds = [self.elementwise, self.reduction, self.scan, self.counts, self.draws, self.product]
        self.text = kinds[rng.choice(6, p=[0.4, 0.25, 0.08, 0.09, 0.06, 0.12])]()

    def pick(self, values):
        return values[self.rng.integers(len(values))]

    def shape(self, most=None):
        ndim = int(self.rng.choice(5, p=[0.05, 0.25, 0.4, 0.2, 0.1]))
        most = most or int(self.pick([30, 3000, 60000, 60000, 400000, 1500000]))
        shape = []
        for _ in range(ndim):
            shape.append(int(self.rng.integers(0 if self.rng.random() < 0.03 else 1,
                                               max(2, int(most ** (self.pick([1, 2, 3, 4]) / 4))))))
            most = max(1, most // max(shape[-1], 1))
        return tuple(self.rng.permutation(shape).astype(int).tolist())

    def values(self, shape, dtype, low=None, high=None):
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return self.rng.random(shape) < 0.5
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            wide = low is None and self.rng.random() < 0.3
            low = limits.min if wide else max(limits.min, -20 if low is None else low)
            high = limits.max if wide else min(limits.max, 100 if high is None else high)
            return self.rng.integers(low, high, shape, dtype=dtype.newbyteorder("="),
                                     endpoint=True).astype(dtype)
        x = self.rng.normal(size=shape) * 10.0 ** self.rng.integers(-3, 4)
        x = np.asarray(x, dtype)
        if self.rng.random() < 0.3 and x.size:
            flat = x.reshape(-1)
            at = self.rng.integers(0, x.size, min(x.size, 9))
            flat[at] = self.rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 5e-324], len(at))
        return x

    def laid(self, x, name):
        """The same elements in another layout, or in a file."""
        way = self.rng.integers(0, 9)
        path = self.folder / f"{name}.npy"
        if way == 1:
            return np.asfortranarray(x)
        if way == 2 and x.ndim:
            wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
            wide[..., ::2] = x
            return wide[..., ::2]
        if way == 3 and x.ndim:
            return np.ascontiguousarray(x[::-1])[::-1]
        if way == 4:
            np.save(path, np.asfortranarray(x) if self.rng.random() < 0.3 else x)
            return gd.open(str(path))
        if way == 5 and x.ndim and x.size:
            chunks = tuple(int(self.rng.integers(max(1, n // 8), n + 1)) for n in x.shape)
            more = {"compression": "gzip", "compression_opts": 1} if self.rng.random() < 0.4 else {}
            with h5py.File(path.with_suffix(".h5"), "w") as file:
                file.create_dataset("x", data=x, chunks=chunks, **more)
            return gd.open(f"{path.with_suffix('.h5')}:/x")
        return x

    def array(self, shape, dtype, **limits):
        name = "abcdefgh"[len(self.arrays)]
        self.arrays[name] = self.laid(self.values(shape, dtype, **limits), name)
        return name

    def broadcast(self, shape):
        """A shape that broadcasts to this one."""
        kept = shape[int(self.rng.integers(0, len(shape) + 1)):] if self.rng.random() < 0.2 else shape
        return tuple(1 if self.rng.random() < 0.15 else n for n in kept)

    def leaf(self, shape):
        way = self.rng.random()
        if way < 0.12:
            return repr(self.pick([2, -3, 0.5, 1e3, True, 7]))
        if way < 0.16 and shape:
            return f"index({int(self.rng.integers(0, len(shape)))})"
        if self.arrays and (way < 0.5 or len(self.arrays) == 6):
            return self.pick(sorted(self.arrays))
        return self.array(self.broadcast(shape), self.pick(DTYPES))

    def tree(self, shape, depth):
        if depth == 0:
            return self.leaf(shape)
        way = self.rng.random()
        x = self.tree(shape, depth - 1)
        if way < 0.08:
            return f"where({self.tree(shape, 0)} > 0, {x}, {self.tree(shape, depth - 1)})"
        if way < 0.13:
            return f"{self.pick(['float32', 'float64', 'int16', 'uint8', 'int64', 'bool'])}({x})"
        if way < 0.16:
            return f"clip({x}, -2, 50)"
        op = self.pick(self.pointwise)
        whole = "" if "float" in op["dtypes"] or self.rng.random() < 0.05 else "int32"
        if op["args"] == 1:
            return f"{op['name']}({whole}({x}))"
        y = self.tree(shape, int(self.rng.integers(0, depth)))
        return f"{op['name']}({whole}({x}), {whole}({y}))"

    def elementwise(self):
        shape = self.shape()
        self.array(shape, self.pick(DTYPES))
        return self.tree(shape, int(self.rng.integers(1, 5)))

    def axes(self, shape):
        if not shape or self.rng.random() < 0.35:
            return ""
        n = int(self.rng.integers(1, len(shape) + 1))
        axes = tuple(self.rng.permutation(len(shape))[:n].tolist())
        return f", axis={axes[0] if n == 1 else axes}" + (", keepdims=True"
                                                          if self.rng.random() < 0.4 else "")

    def reduction(self):
        shape = self.shape()
        x = self.array(shape, self.pick(DTYPES))
        name = self.pick(["sum", "min", "max", "mean", "prod", "argmin", "argmax", "count_nonzero",
                          "var", "std", "ptp", "any", "all", "nansum", "nanmean", "nanvar", "nanmax",
                          "norm", "logsumexp", "median", "quantile", "nanmedian", "nanquantile"])
        what = x if self.rng.random() < 0.5 else self.tree(shape, 1)
        axes = self.axes(shape)
        if name.startswith("arg") and "(" in axes:
            axes = ""
        if name.endswith("quantile"):
            text = f"{name}({what}, {self.pick([0.0, 0.1, 0.5, 0.99])}{axes}, " \
                   f"method='{self.pick(METHODS)}')"
        else:
            text = f"{name}({what}{axes})"
        if "keepdims" in axes and self.rng.random() < 0.6:
            text = f"({x} - {text}) * {text}"
        return text if self.rng.random() < 0.8 else f"sqrt(abs({text})) + sum({x})"

    def scan(self):
        shape = self.shape()
        x = self.array(shape, self.pick(DTYPES))
        axis = f", axis={int(self.rng.integers(0, len(shape)))}" if len(shape) > 0 else ""
        return f"{self.pick(['cumsum', 'cumsum', 'cumprod'])}({x}{axis})"

    def counts(self):
        way = self.rng.integers(0, 6)
        x = self.array(self.shape(), self.pick(["f4", "f8", "i4", "u1"]))
        if way == 0:
            return f"histogram({x}, bins={int(self.rng.integers(1, 60))})[0]"
        if way == 1:
            return f"histogram({x}, bins=10, range=(-3.0, 5.0))[0]"
        if way == 2:
            n = int(self.rng.integers(2, 300))
            flat = self.array((int(self.rng.integers(1, 90000)),), self.pick(INTEGERS), low=0,
                              high=n - 1)
            return f"bincount({flat}, length={max(n, 101)})"
        table = self.array((int(self.rng.integers(1, 2000)),), self.pick(["f4", "f8"]))
        if way == 3:
            return f"searchsorted({table}, {x}, side='{self.pick(['left', 'right'])}')"
        if way == 4:
            return f"digitize({x}, {table})"
        index = self.array(self.shape(), "i4", low=0, high=len(self.arrays[table]) - 1)
        return f"take({table}, {index})"

    def draws(self):
        size = self.shape(60000) or (100,)
        seed = int(self.rng.integers(0, 2**63))
        return self.pick([
            f"normal(2.0, 3.0, size={size}, seed={seed})",
            f"uniform(-1, 4, size={size}, seed={seed}, dtype=float32)",
            f"exponential(0.5, size={size}, seed={seed})", f"lognormal(size={size}, seed={seed})",
            f"poisson(7.5, size={size}, seed={seed})", f"bernoulli(0.3, size={size}, seed={seed})",
            f"integers(5, 1000, size={size}, seed={seed})", f"permutation({size[0]}, seed={seed})",
            f"sum(normal(size={size}, seed={seed}) > 0.5)"])

    def product(self):
        n, k, m = (int(self.rng.integers(1, self.pick([4, 40, 300, 700]))) for _ in range(3))
        dtype = self.pick(["f4", "f8", "f8", "i4", "i8", "u1", "?"])
        batch = self.pick([(), (), (), (3,), (2, 3)])
        left = self.array((*batch, n, k), dtype)
        if n == m and self.rng.random() < 0.2 and not batch:
            return f"{left} @ {self.array((k, n), dtype)} + 1"
        right = self.array((*self.broadcast(batch), k, m), self.pick([dtype, dtype, "f4"]))
        way = self.rng.random()
        if way < 0.3:
            return f"sqrt(abs({left} @ ({right} * 2))) + 1"
        if way < 0.4:
            return f"({left} + 1) @ {right} - {self.array((n, m), 'f4')}"
        return f"{left} @ {right}"


def digest_of(job, engine):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = np.asarray(gd.evaluate(job.text, engine=engine, **job.arrays))
    except gd.Error as error:
        return hashlib.sha256(f"{type(error).__name__}: {error}".encode()).hexdigest()[:16], error
    head = f"{result.dtype.str} {result.shape} {result.strides}"
    return hashlib.sha256(head.encode() + result.tobytes()).hexdigest()[:16], head


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=10000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", default=None)
    parser.add_argument("--show", action="store_true", help="the texts, and what came of them")
    options = parser.parse_args()
    ops = gd.ops()
    with open(options.list, "w") as out:
        n_errors = 0
        for i in range(options.first, options.first + options.jobs):
            with tempfile.TemporaryDirectory(prefix="bits-") as folder:
                job = Job(np.random.default_rng([options.seed, i]), ops, pathlib.Path(folder))
                digest, what = digest_of(job, options.engine)
            n_errors += isinstance(what, gd.Error)
            print(i, digest, job.text, file=out)
            if options.show:
                print(i, job.text, what, sep="\n  ")
    print(f"{options.jobs} jobs, {n_errors} of them refused or failed")


if __name__ == "__main__":
    main()
