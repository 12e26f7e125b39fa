"""Several matrix products in one job, and products beside reductions, scans and look-ups, against
NumPy: of integers and of floats that are whole numbers, so that every bit is known."""

import numpy as np
import pytest

import wire
from catalogue import NUMPY_2
from conftest import ENGINE, Daemon
from test_products import Held, same, used, whole

pytestmark = [pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes"),
              pytest.mark.skipif(ENGINE != "cpu", reason="for a device: test_cuda_products.py")]

NAMES = {name: getattr(np, name) for name in (
    "sum", "max", "min", "mean", "maximum", "where", "argmax", "cumsum", "take", "median", "any",
    "count_nonzero")}
CHAINS = [
    "a @ b @ c", "a @ (b @ c)", "a @ b @ b.T @ a.T", "(a @ a.T) @ (a @ a.T)", "v @ a @ b @ c",
    "a @ b @ u", "maximum(a @ b + row, 0) @ c - e", "a @ b + a @ (b - row)", "d @ c * 2 - a @ b @ c",
    "sum(a @ b)", "sum(a @ b, axis=0)", "max(a @ b, axis=1, keepdims=True) - a @ b",
    "a @ b - max(d)", "(a - min(a, axis=0)) @ b", "sum(a, axis=0) @ b", "a @ b - sum(a @ b)",
    "(a @ b) * sum(a @ b, axis=1, keepdims=True)", "max(d @ c, axis=1) @ a",
    "cumsum(a @ b, axis=0)", "argmax(a @ b, axis=1)", "take(v @ d, argmax(a @ b, axis=1))",
    "median(a @ b)", "count_nonzero(a @ b > d)", "(v @ a) + a", "s @ (a @ b)", "sum(s @ a, axis=0) @ b",
    "where(a @ b > 0, d, a @ b)", "(a @ b).T @ d", "(a @ b @ c).T", "maximum(a @ b - 1, 0).T @ (d + 1)",
    "(a @ b).T @ (a @ b)", "(a @ b).T.T @ c", "(s @ a).mT @ s", "(v @ a).T @ b", "((a @ b).T @ d).T * 2",
    "sum((a - 3).T @ d, axis=1)"]


def matrices(dtype, m, k, n, p):
    shapes = {"a": (m, k), "b": (k, n), "c": (n, p), "d": (m, n), "e": (m, p), "v": (m,), "u": (n,),
              "row": (n,), "s": (3, 5, m)}
    rng = np.random.default_rng([m, k, n, p])
    return {name: rng.integers(-2, 3, shape).astype(dtype) for name, shape in shapes.items()}


def check(w, text, **args):
    args = used(text, **args)
    expected = np.asarray(eval(text, NAMES, args))
    held = Held(w, out=np.zeros_like(expected), **args)
    held.run(text, "out", *args)
    same(held["out"].copy(), expected, text)
    held.leave()


@pytest.mark.parametrize("text", CHAINS)
@pytest.mark.values
def test_chains(w, text):
    for shape in [(3, 4, 5, 2), (37, 23, 41, 19), (1, 1, 1, 1), (130, 70, 1, 65)]:
        for dtype in ("i8", "f8"):
            check(w, text, **matrices(dtype, *shape))
    check(w, text, **matrices("f4", 9, 8, 7, 6))


def expression(rng, depth, squares):
    """A random expression of square matrices."""
    if depth == 0:
        return squares[rng.integers(len(squares))]
    kind = rng.integers(0, 6)
    x, y = (expression(rng, depth - 1, squares) for _ in range(2))
    if kind < 3:
        return f"({x}){'.T' if kind == 0 and 'max' not in x else ''} @ ({y})"
    if kind == 3:
        return f"({x}) - ({y})"
    return f"({x}) - max({y}, axis={rng.integers(0, 2)}, keepdims=True)"


def test_generated_chains(w):
    rng = np.random.default_rng(11)
    n = 24
    squares = {name: whole("i8", (n, n), i) for i, name in enumerate("xyz")}
    held = Held(w, out=np.zeros((n, n), "i8"), **squares)
    n_products = 0
    for _ in range(40):
        text = expression(rng, 3, list(squares))
        if text.count("@") > 13:
            continue
        n_products += text.count("@")
        with np.errstate(all="ignore"):
            expected = eval(text, {"max": lambda x, axis, keepdims: x.max(axis, keepdims=keepdims)},
                            squares)
        held.run(text, "out", *used(text, **squares))
        same(held["out"].copy(), expected, text)
    assert n_products > 60
    held.leave()


def test_outputs_beside_each_other(w):
    """One product, stored by several outputs, kept for others, and what has nothing to do with it."""
    args = matrices("i8", 40, 30, 50, 20)
    reply = w.call("job.run", args={name: wire.argument(args[name]) for name in "abcd"}, outputs=[
        {"expr": text} for text in ("a @ b", "a @ b - d", "sum(a @ b, axis=1)", "d + 1", "a @ b @ c")])
    a, b, c, d = (args[name] for name in "abcd")
    for got, expected in zip(reply["outputs"], [a @ b, a @ b - d, (a @ b).sum(1), d + 1, a @ b @ c]):
        same(wire.result_array(got), expected, "outputs")


def test_what_is_kept_and_does_not_fit(w):
    """It is refused with what it needs; a product that outputs alone read needs no place."""
    a, n = wire.argument(np.zeros((1, 1))), 20000
    product = (f"(a + integers(9, size=({n}, 2), seed=1)) @ "
               f"integers(9, size=(2, {n}), seed=2)")
    with pytest.raises(wire.Error) as caught:
        w.call("job.plan", args={"a": a}, outputs=[{"expr": f"median({product}, axis=None)"}])
    assert caught.value.code == "too-large-for-pool"
    assert "store what a product gives" in str(caught.value)
    assert "nor v.T @ w of 1048576" in str(caught.value)  # what needs no place, to its end
    w.call("job.plan", args={"a": a}, outputs=[{"expr": f"{product} - max(a)"}])


@pytest.mark.values
def test_the_bits_are_the_same_for_every_pool():
    """Products go in several tiles, what is kept does not."""
    rng = np.random.default_rng(12)
    a, b, c = (rng.normal(size=shape) for shape in ((900, 300), (300, 320), (320, 1200)))
    texts = ["maximum(a @ b, 0) @ c", "(a @ b - sum(a @ b, axis=0) / 900) @ c",
             "a @ (b @ c) + max(a)"]
    results = [set() for _ in texts]
    for pool, threads in (("16M", 1), ("32M", 3), ("256M", 2)):
        daemon = Daemon(pool=pool, threads=threads)
        with daemon.connect() as w:
            held = Held(w, a=a, b=b, c=c, d=np.zeros((900, 1200)))
            for text, bits in zip(texts, results):
                held.run(text, "d", "a", "b", "c")
                bits.add(held["d"].tobytes())
            held.leave()
        daemon.stop()
    for text, bits in zip(texts, results):
        result, = bits
        near = eval(text, {"maximum": np.maximum, "max": np.max,
                           "sum": np.sum}, {"a": a, "b": b, "c": c})
        np.testing.assert_allclose(np.frombuffer(result).reshape(near.shape), near, atol=1e-8)
