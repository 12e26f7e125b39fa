"""The bits of sums, products, variances, quantiles, running sums and matrix products are the same at
every dispatch level of the CPU engine, and sums are within their bound of the exact ones: what a
job gives does not depend on the processor that happens to compute it. Only the functions of
mathematics differ between levels (kernels/ACCURACY.md)."""

import math

import numpy as np
import pytest

import wire
from catalogue import sum_bound
from wire import described

LEVELS = ["plain", "baseline", "avx2", "avx512"]
# No length is a multiple of a vector, of lanes or of a block.
SHAPES = [(7, 1009), (191, 37), (8001,)]
TEXTS = [*(f"{name}(a{axis})" for axis in ("", ", axis=0", ", axis=-1")
           for name in ("sum", "mean", "var", "std", "prod", "nansum", "nanvar", "norm", "median")),
         "sum(a * a + 1.5 * a)", "sum(a, where=a > 0)", "cumsum(a, axis=0)",
         "cumsum(a, axis=-1)", "histogram(a, bins=5, range=(0, 3), weights=a)[0]",
         "quantile(a, [0.1, 0.77])", "sum(normal(size=(3, 999), seed=1))", "a @ b"]


def arrays(dtype):
    rng = np.random.default_rng(11)
    for shape in SHAPES:
        yield (rng.lognormal(0, 4, shape) * rng.choice([-1, 1], shape)).astype(dtype)


def results(w, a):
    region = wire.Region(w, a.nbytes)
    region.array(a.dtype, a.shape)[...] = a
    got = {}
    for text in TEXTS:
        args = {"a": described(a, region.at())}
        if "@" in text:
            args["b"] = wire.argument(np.linspace(-1, 1, a.shape[-1]).astype(a.dtype))
        reply = w.call("job.run", args=args, outputs=[{"expr": text}])
        got[text] = wire.result_array(reply["outputs"][0])
    return got


def at_level(start, level):
    daemon = start(args=["--level", level], engine="cpu")
    with daemon.connect() as w:
        engine, = (e for e in w.call("server.info")["engines"] if e["name"] == "cpu")
        return engine["level"], [results(w, a) for dtype in ("f4", "f8") for a in arrays(dtype)]


def test_the_same_bits_at_every_level(start):
    _, wants = at_level(start, "plain")
    tried = set()
    for level in LEVELS[1:]:
        used, got = at_level(start, level)
        if used in tried:
            continue  # the best that this processor has
        tried.add(used)
        for want, have in zip(wants, got, strict=True):
            for text in want:
                assert have[text].tobytes() == want[text].tobytes(), (used, text)
    for want, a in zip(wants, (a for dtype in ("f4", "f8") for a in arrays(dtype)), strict=True):
        exact = math.fsum(a.ravel().tolist())
        rounding = np.spacing(np.abs(a.dtype.type(exact))) / 2
        assert abs(float(want["sum(a)"]) - exact) <= sum_bound(a.ravel()) + rounding
