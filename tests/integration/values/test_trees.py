"""Random expression trees against NumPy evaluating the same text (trees.py grows them): one at a
time in its depth, several outputs that share parts, in place, and over many tiles."""

import re

import numpy as np
import pytest

import wire
from catalogue import NUMPY_2, ask, ask_once, assert_same, numpy_eval
from conftest import some
from trees import Trees

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's promotion")


@pytest.fixture(scope="module")
def ops(daemon):
    with daemon.connect() as w:
        return w.call("server.ops")


def names_of(trees):
    return {k: v for k, v in trees.worlds[0].items() if k not in trees.arguments}


def what(trees, node):
    kinds = ", ".join(f"{k}: {v.dtype}{v.shape}" for k, v in trees.arguments.items())
    return f"{node.text} with {kinds}"


def seeds(first, n, n_more):
    """More of them where there is no sanitizer."""
    return [*range(first, first + n), *[pytest.param(seed, marks=pytest.mark.slow)
                                        for seed in range(first + n, first + n + n_more)]]


@pytest.mark.parametrize("seed", seeds(0, 60, 190))
@pytest.mark.values
def test_exact_trees_have_numpys_bits(w, ops, seed):
    trees = Trees(seed, ops)
    nodes = [trees.tree(depth) for depth in (3, 4, 4, 5)]
    for node, got in zip(nodes, ask(w, [n.text for n in nodes], trees.arguments)):
        want = numpy_eval(node.text, names_of(trees), trees.arguments)
        assert not isinstance(got, wire.Error), f"{what(trees, node)}: {got}"
        assert_same(got, want, what(trees, node))


@pytest.mark.parametrize("seed", seeds(1000, 50, 150))
@pytest.mark.values
def test_smooth_trees_are_within_what_their_functions_may_differ(w, ops, seed):
    trees = Trees(seed, ops, smooth=True)
    nodes = [trees.tree(depth) for depth in (3, 4, 5)]
    for node, got in zip(nodes, ask(w, [n.text for n in nodes], trees.arguments)):
        assert not isinstance(got, wire.Error), f"{what(trees, node)}: {got}"
        want = np.asarray(node.value)
        assert (got.dtype, got.shape) == (want.dtype, want.shape), what(trees, node)
        spread = np.max([np.abs(np.asarray(v) - want) for v in node.values[1:]], axis=0)
        slack = 4 * spread + 4 * np.spacing(np.maximum(np.abs(want), want.dtype.type(1e-3)))
        ok = np.abs(got - want) <= slack
        assert ok.all(), (what(trees, node), got[~ok][:3], want[~ok][:3], slack[~ok][:3])


def is_local(node):
    """Each element by itself, so that repeated arguments give repeated results."""
    return not re.search(r"\b(index|min|max|nanmax|argmin|argmax|any|all|sum|count_nonzero)\(",
                         node.text)


def repeated(array, n):
    """n rows, the rows of the array over and over."""
    if array.ndim < 1 or array.shape[0] == 1:
        return array
    return array[np.arange(n) % array.shape[0]]


def grown(seed, ops, depth, n):
    """Trees of elements that stand alone, and their arguments with n rows."""
    shapes = [[(101,)] * 3, [(17, 5), (17, 1), (17, 5)]][seed % 2]
    trees = Trees(seed, ops, shapes=shapes)
    nodes = []
    while len(nodes) < 3:
        node = trees.tree(depth)
        if is_local(node) and np.shape(node.value) == shapes[0]:
            nodes.append(node)
    arguments = {k: repeated(v, n) for k, v in trees.arguments.items()}
    return trees, nodes, arguments


@pytest.mark.parametrize("seed", some(range(2000, 2012), 3))
def test_trees_over_many_tiles_of_a_tiny_pool(start, seed, ops):
    """Sources in a file and in a region, outputs in a region; the pool holds a part of one."""
    n = 200_003 if seed % 2 == 0 else 50_021
    trees, nodes, arguments = grown(seed, ops, 4, n)
    daemon = start(pool="1M")
    with daemon.connect() as w:
        region = wire.Region(w, 16 * 200_003 * 8)
        offset, sent, fds = 0, {}, []
        for i, (name, value) in enumerate(arguments.items()):
            if i == 0:
                fds.append(wire.memfd(value.nbytes))
                with open(fds[0], "r+b", closefd=False) as file:
                    file.write(value.tobytes())
                sent[name] = wire.described(value, wire.file_at(0))
                continue
            region.array(value.dtype, value.shape, offset)[...] = value
            sent[name] = wire.described(value, region.at(offset))
            offset += -(-value.nbytes // 64) * 64
        outputs, places = [], []
        for node in nodes:
            want = repeated(np.asarray(node.value), n)
            places.append((want, offset))
            outputs.append({"expr": node.text, "to": wire.described(want, region.at(offset))})
            offset += -(-want.nbytes // 64) * 64
        w.call("job.run", fds=fds, args=sent, outputs=outputs)
        for node, (want, at) in zip(nodes, places):
            assert_same(region.array(want.dtype, want.shape, at).copy(), want, what(trees, node))


@pytest.mark.parametrize("seed", range(3000, 3020))
@pytest.mark.values
def test_trees_in_place(w, ops, seed):
    """The result over the argument, cast to its dtype as NumPy would with out=."""
    n = 30_011 if seed % 2 == 0 else 7_001  # rows
    trees, nodes, arguments = grown(seed, ops, 4, n)
    a = arguments["a"]
    region = wire.Region(w, 1 << 20)
    offset, sent, stored = 0, {}, {}
    for name, value in arguments.items():
        stored[name] = region.array(value.dtype, value.shape, offset)
        stored[name][...] = value
        sent[name] = wire.described(value, region.at(offset))
        offset += -(-value.nbytes // 64) * 64
    for node in nodes:
        want = repeated(np.asarray(node.value), n)
        if not np.can_cast(want.dtype, a.dtype, "same_kind"):
            continue
        stored["a"][...] = a
        ask_once(w, [node.text], sent, to=[sent["a"]])
        with np.errstate(all="ignore"):
            assert_same(stored["a"].copy(), want.astype(a.dtype), what(trees, node))
    del stored
    w.call("region.detach", region=region.id)
