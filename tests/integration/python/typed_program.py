"""A user's program, for the type checker alone: test_types.py checks that it has no complaint, and
that each line with an `ignore` deserves one (--strict reports those that do not). It is not run.
"""

from typing import Any, assert_type

import numpy as np

import gpuarrayd as gd

a = np.linspace(0.0, 1.0, 1000)

# The text form.
r = gd.empty(1000)
r[:] = 2 * a
gd.evaluate("sqrt(a)", a=a, out=r)
low, high = gd.evaluate(["min(a)", "max(a)"], a=a)
same: np.ndarray[Any, Any] = gd.asarray([1.0, 2.0])
gd.evaluate(3)  # type: ignore[arg-type]
gd.evaluate("a", engin="cpu", priority="high")  # type: ignore[arg-type]

# The lazy form.
x = gd.open("x.npy")
assert_type(x, gd.Lazy)
assert_type(x.shape, tuple[int, ...])
assert_type(x.dtype, np.dtype[Any])
assert_type(x.ndim, int)
assert_type(1 + x * a - x**2, gd.Lazy)
assert_type(x > 0, gd.Lazy)
assert_type(-abs(x), gd.Lazy)
assert_type(gd.sqrt(x * x + 1), gd.Lazy)
assert_type(gd.where(x > 0, x, 0.0), gd.Lazy)
assert_type((x - x.mean()).astype("f4"), gd.Lazy)
assert_type(x[10:20, ::2], gd.Lazy)
gd.save("y.npy", gd.hypot(x, 1.0))
gd.save({"y.npy": x, "z.h5:/z": x + 1})
array: np.ndarray[Any, Any] = np.asarray(x)
assert_type(gd.list("x.h5")[0], gd.Listed)
assert_type(gd.list("x.h5")[0].shape, tuple[int, ...] | None)
gd.list(3)  # type: ignore[arg-type]
gd.open(3)  # type: ignore[arg-type]
gd.sqrt()  # type: ignore[call-arg]
gd.hypot(x)  # type: ignore[call-arg]
gd.squareroot(x)  # type: ignore[attr-defined]

# What is made of nothing.
assert_type(gd.arange(3) + gd.ones((2, 3)) + gd.full(3, 2.5), gd.Lazy)
assert_type(gd.triu(gd.eye(3, k=1), -1), gd.Lazy)
assert_type(gd.meshgrid(x, a, indexing="ij"), tuple[gd.Lazy, ...])
assert_type(gd.broadcast_to(x, (2, 3)), gd.Lazy)

assert_type(gd.unstack(x, axis=1), tuple[gd.Lazy, ...])
assert_type(gd.split(x, 2), list[gd.Lazy])
assert_type(gd.isin(x, [1, 2]) & (gd.interp(x, [0, 1], [2, 3]) > 0), gd.Lazy)
assert_type(gd.isdtype(gd.result_type(x, "f4"), "integral"), bool)

assert_type(gd.array_api.zeros((2, 3)) + gd.from_dlpack(a), gd.Lazy)
assert_type(x.real + x.imag, gd.Lazy)
assert_type(x.to_device("cpu"), gd.Lazy)

assert_type(gd.sort(x, axis=0) + gd.argsort(x, descending=True), gd.Lazy)
assert_type(gd.unique_counts(x).counts, gd.Lazy)

# Reductions and random numbers.
assert_type(x.mean(axis=0, keepdims=True), gd.Lazy)
assert_type(gd.std(x, axis=(0, 1), ddof=1, where=x > 0), gd.Lazy)
assert_type(gd.sum(a, dtype="f4", out=r), gd.Lazy)
assert_type(gd.linalg.norm(x, axis=-1), gd.Lazy)
assert_type(gd.nanmax(x) + x.argmin(0), gd.Lazy)
x.sum(axis="0")  # type: ignore[arg-type]
gd.argmax(x, axis=(0, 1))  # type: ignore[arg-type]
rng = gd.random.default_rng(3)
assert_type(rng, gd.random.Generator)
assert_type(rng.normal(x.mean(0), 1.5, size=(3, 4)), gd.Lazy)
assert_type(rng.random(10, "f4", out=r), gd.Lazy)
assert_type(gd.random.integers(6, seed=1) + x, gd.Lazy)
gd.random.normal()  # type: ignore[call-arg]
assert_type(rng.choice([1, 2, 3], 5), gd.Lazy)
assert_type(rng.permutation(x), gd.Lazy)

# Matrix products.
assert_type(x @ x.T, gd.Lazy)
assert_type([1.0, 2.0] @ (x @ x.T), gd.Lazy)
assert_type(gd.matmul(x, x.T, alpha=2, beta=0.5, journal=False), gd.Lazy)
assert_type(gd.einsum("ij,kj->ik", x, x, dtype="f8"), gd.Lazy)
assert_type(gd.einsum(x, [0, 1], x, [2, 1], x.diagonal(), [2]), gd.Lazy)
assert_type(gd.trace(x.T, dtype="f8"), gd.Lazy)
assert_type(gd.tensordot(x, x.T, ([1], [0])).dot(x), gd.Lazy)
gd.matmul(x)  # type: ignore[call-arg]
gd.matmul(x, x, beta="1")  # type: ignore[arg-type]
# Running sums, counts, quantiles.
assert_type(x.cumsum(axis=1, dtype="f8"), gd.Lazy)
assert_type(gd.diff(x, n=2, prepend=0), gd.Lazy)
assert_type(gd.histogram(x, [0.0, 1.0, 2.0]), tuple[gd.Lazy, gd.Lazy])
assert_type(gd.bincount(a, minlength=9), gd.Lazy)
assert_type(gd.median(x, axis=(0, 1)) + gd.quantile(x, [0.1, 0.9])[0], gd.Lazy)
assert_type(gd.searchsorted(a, x, side="right"), gd.Lazy)
assert_type(x.take([1, 2], out=r), gd.Lazy)
gd.cumsum(x, axis=(0, 1))  # type: ignore[arg-type]
gd.histogram(x, range=3)  # type: ignore[arg-type]
gd.quantile(x)  # type: ignore[call-arg]

# Jobs.
future = gd.submit("sqrt(a)", a=a)
assert_type(future, gd.Future[Any])
assert_type(future.done(), bool)
assert_type(future.cancel(), bool)


async def wait() -> Any:
    return await future


# What the daemon says.
assert_type(gd.info(), dict[str, Any])
assert_type(gd.__version__, str)
try:
    gd.connect("/run/gpuarrayd/socket", timeout=3.0)
except gd.Error as error:
    assert_type(error.code, str)
except gd.TooLargeForPool as error:
    memory: MemoryError = error


# Functions of numbers and of neighbours.
@gd.vectorize(otypes="f4", bound=9)
def soft(v: float) -> float:
    return v if v > 1 else 0.0


@gd.stencil(mode="wrap")
def above(v: Any) -> Any:
    return v[-1, 0]


gd.save("y.npy", soft(x) + above(x))
gd.vectorize(soft.py_func).check(a)
gd.stencil("constant", boundary="wrap")(above.py_func)  # type: ignore[call-overload]
