"""Lazies against NumPy: random expressions of random arrays, in files, maps and memory, written
with gd.NAME or with np.NAME, and random parts of them. trees.py grows them."""

import numpy as np
import pytest

from catalogue import NUMPY_2, assert_same, numpy_eval
from test_lazy_parts import some_keys
from test_trees import names_of, what
from trees import Trees

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's promotion")


def scope_of(gd, trees, folder, by_numpy):
    """What the texts name: functions of gd or of NumPy, and arguments as lazies of all kinds."""
    cast = {name: lambda v, name=name: gd.astype(v, name) for name in
            ("bool", "int32", "uint8", "int64", "int16", "float32", "float64")}
    functions = {}
    for op in gd.ops():
        for name in filter(None, (op["name"], op["alias"])):
            own = getattr(np, name, None) if by_numpy else None
            ours = getattr(gd, name, None) or getattr(gd.random, name, None)
            if ours is None:  # iterate(), which is no function of lazies
                continue
            functions[name] = ours if own is None else of_lazies(gd, own, name)
    arguments = {}
    for i, (name, value) in enumerate(trees.arguments.items()):
        np.save(folder / f"{name}.npy", value)
        arguments[name] = [gd.lazy(value), gd.open(folder / f"{name}.npy"),
                           gd.lazy(np.load(folder / f"{name}.npy", "r"))][(i + by_numpy) % 3]
    return {"__builtins__": {}, **functions, **cast, **arguments}


def of_lazies(gd, numpys, name):
    """NumPy's function, where it is called with a lazy and so comes to us."""
    def call(*args, **kwargs):
        flat = [one for arg in args for one in (arg if isinstance(arg, list) else [arg])]
        is_ours = any(isinstance(one, gd.Lazy) for one in flat)
        return (numpys if is_ours else getattr(gd, name))(*args, **kwargs)
    return call


def grown(gd, seed, smooth, depths, folder):
    trees = Trees(seed, gd.ops(), smooth=smooth)
    nodes = [trees.tree(depth) for depth in depths]
    scope = scope_of(gd, trees, folder, seed % 2)
    lazies = [gd.lazy(eval(node.text, scope)) for node in nodes]
    return trees, nodes, lazies


@pytest.mark.parametrize("first", range(5000, 5060, 6))
def test_exact_trees_have_numpys_bits(gd, folder, first):
    for seed in range(first, first + 6):
        trees, nodes, lazies = grown(gd, seed, False, (3, 4, 4, 5), folder)
        rng = np.random.default_rng(seed)
        for node, lazy, got in zip(nodes, lazies, gd.compute(*lazies), strict=True):
            want = numpy_eval(node.text, names_of(trees), trees.arguments)
            assert (lazy.dtype, lazy.shape) == (want.dtype, want.shape), what(trees, node)
            assert lazy._node.shape == want.shape, what(trees, node)
            assert_same(np.asarray(got), want, what(trees, node))
            if want.ndim and "index(" not in node.text:
                key = some_keys(rng, want.shape)
                part = lazy[key]
                assert_same(np.asarray(part), want[(*key, ...)], f"{key} of {what(trees, node)}")
                assert part.shape == part._node.shape


@pytest.mark.parametrize("first", range(6000, 6030, 6))
def test_smooth_trees_are_within_what_their_functions_may_differ(gd, folder, first):
    for seed in range(first, first + 6):
        trees, nodes, lazies = grown(gd, seed, True, (3, 4, 5), folder)
        for node, got in zip(nodes, map(np.asarray, gd.compute(*lazies)), strict=True):
            want = np.asarray(node.value)
            assert (got.dtype, got.shape) == (want.dtype, want.shape), what(trees, node)
            spread = np.max([np.abs(np.asarray(v) - want) for v in node.values[1:]], axis=0)
            slack = 4 * spread + 4 * np.spacing(np.maximum(np.abs(want), want.dtype.type(1e-3)))
            ok = np.abs(got - want) <= slack
            assert ok.all(), (what(trees, node), got[~ok][:3], want[~ok][:3], slack[~ok][:3])
