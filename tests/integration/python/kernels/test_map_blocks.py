"""map_blocks(): functions of blocks in this process, against the function of the whole array."""

import concurrent.futures
import functools
import gc
import json
import os
import signal
import subprocess
import threading
import time
import traceback
import weakref

import numpy as np
import pytest

import conftest

MODES = ("constant", "edge", "reflect", "symmetric", "wrap")
X = np.random.default_rng(1).normal(size=(700, 900)).astype("f4")


def same(block):
    return block


def neighbours(depth, axes):
    """A function that needs the whole halo, and nothing else: of what stands `depth` away."""
    def sums(block):
        total = np.zeros_like(block)
        for axis in axes:
            for step in (-depth[axis], depth[axis]):
                total += np.roll(block, step, axis)
        return total
    return sums


def test_any_shape_depth_mode_and_block(gd, tmp_path):
    for seed in range(60):
        one_of_any_shape(gd, tmp_path, seed)


def one_of_any_shape(gd, tmp_path, seed):
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(1, 5))
    shape = tuple(int(n) for n in rng.integers(1, 14, ndim))
    depth = tuple(int(n) for n in rng.integers(0, 6, ndim))
    mode = MODES[seed % 5]
    if mode in ("reflect", "symmetric"):
        depth = tuple([one if n == 1 else min(one, n - (mode == "reflect"))
                       for one, n in zip(depth, shape, strict=True)])
    dtype = rng.choice(["u1", "i4", ">i8", "f4", ">f8"])
    x = rng.integers(0, 100, shape).astype(dtype)
    block = tuple(int(rng.integers(1, n + 2)) for n in shape) if seed % 3 else None
    f = neighbours(depth, range(ndim))
    cut = tuple([slice(one, one + n) for one, n in zip(depth, shape, strict=True)])
    native = x.astype(x.dtype.newbyteorder("="))
    expected = f(np.pad(native, [(one, one) for one in depth], mode=mode))[cut]
    kind = seed % 4
    if kind == 1:
        np.save(tmp_path / "x.npy", x)
        x = gd.open(tmp_path / "x.npy")
    elif kind == 2:
        x = gd.lazy(x) * 1  # computed block by block
    elif kind == 3:
        x = np.asfortranarray(x)[..., ::-1][..., ::-1]
    y = gd.map_blocks(f, x, depth=depth, mode=mode, block=block, threads=int(rng.integers(1, 4)))
    assert y.dtype == native.dtype and y.shape == shape
    assert (y.compute() == expected).all()
    assert y.astype("i8").sum().compute() == expected.astype("i8").sum()
    part = tuple([slice(int(rng.integers(0, n)), None) for n in shape])
    assert (y[part].T.compute() == expected[part].T).all()
    inner = gd.map_blocks(lambda b: f(b)[cut_of(depth)], x, dtype=native.dtype,
                          depth=dict(enumerate(depth)), mode=mode, trim=False)
    assert (inner.compute() == expected).all()


def cut_of(depth):
    return tuple([slice(one, -one or None) for one in depth])


def test_names_of_dask(gd):
    da = pytest.importorskip("dask.array")
    x = np.arange(60.0 * 40).reshape(60, 40)
    y = np.arange(40.0)
    chunked = da.from_array(x, chunks=(20, 40))
    f = neighbours((2, 2), (0, 1))
    for mode, boundary in (("symmetric", "reflect"), ("wrap", "periodic"), ("edge", "nearest"),
                           ("constant", 0)):
        ours = gd.map_blocks(f, x, depth=2, mode=mode).compute()
        assert (ours == da.map_overlap(f, chunked, depth=2, boundary=boundary).compute()).all()
    mean = gd.map_blocks(lambda b: b.mean(axis=1), x, drop_axis=1, dtype="f8")
    assert np.allclose(mean.compute(),
                       da.map_blocks(lambda b: b.mean(axis=1), chunked, drop_axis=1).compute())
    first = gd.map_blocks(lambda b: b.sum(axis=0), x, drop_axis=0)
    assert first.shape == (40,) and np.allclose(first.compute(), x.sum(axis=0))
    added = gd.map_blocks(lambda b: b[:, None], x, new_axis=1)
    assert (added.compute() == da.map_blocks(lambda b: b[:, None], chunked, new_axis=1).compute()).all()
    pairs = gd.map_blocks(lambda b: np.stack([b, -b], -1), x, new_axis={-1: 2}, block=(7, 9, 2))
    assert (pairs.compute() == np.stack([x, -x], -1)).all()
    both = gd.map_blocks(lambda a, b, c, k: a * b + c * k, x, y, 2, k=3)
    assert (both.compute() == x * y + 6).all()
    assert (gd.map_blocks(np.add, x, y[:, None][:1], dtype="f8").compute() == x + y[0]).all()


def test_one_pass_and_every_source(gd, tmp_path):
    calls = []

    def counted(block):
        calls.append(block.shape)
        return block

    y = gd.map_blocks(counted, X, dtype="f4", block=(50, 900))
    assert np.isclose(y.mean().compute(), X.mean())
    assert len(calls) == 14 and set(calls) == {(50, 900)}
    del calls[:]
    assert (y[105:140].compute() == X[105:140]).all() and len(calls) <= 3

    def rows():
        yield from (X[first:first + 37] for first in range(0, 700, 37))

    made = gd.from_generator(rows, "f4", X.shape)
    f = neighbours((3, 0), (0,))
    expected = gd.map_blocks(f, X, depth=(3, 0)).compute()
    assert (gd.map_blocks(f, made, depth=(3, 0), block=(20, 900)).compute() == expected).all()
    for refused in (lambda z: (z - z.mean()).compute(), lambda z: z.T.compute(), lambda z: z[3:]):
        with pytest.raises(gd.BadArgument):
            refused(gd.map_blocks(same, made, block=(20, 900)))
    scaled = gd.map_blocks(same, gd.lazy(X) - gd.lazy(X).mean(axis=0))
    assert np.allclose(scaled.compute(), X - X.mean(axis=0), atol=1e-5)
    for i in range(3):
        np.save(tmp_path / f"part{i}.npy", X[i * 200:(i + 1) * 200])
    many = gd.map_blocks(f, gd.open(tmp_path / "part*.npy"), depth=(3, 0)).compute()
    assert (many == gd.map_blocks(f, X[:600], depth=(3, 0)).compute()).all()
    gd.save(f"{tmp_path}/x.h5:/x", gd.lazy(X))
    gd.save(tmp_path / "x.zarr:/x", gd.map_blocks(same, gd.open(f"{tmp_path}/x.h5:/x")))
    twice = gd.map_blocks(np.add, gd.open(tmp_path / "x.zarr:/x"), gd.map_blocks(same, X))
    blocks = list(gd.stream(twice, rows=300))
    assert (np.concatenate(blocks) == X + X).all()
    assert gd.map_blocks(same, np.empty((0, 3))).compute().shape == (0, 3)


def raises(block):
    raise KeyError("deep down")


def test_what_goes_wrong(gd):
    with pytest.raises(gd.ProviderFailed, match="raised KeyError.*from \\(\\d+, 0\\) on") as caught:
        gd.map_blocks(raises, X, dtype="f4").sum().compute()
    assert isinstance(caught.value.__cause__, KeyError)
    assert "in raises" in "".join(traceback.format_exception(caught.value.__cause__))
    with pytest.raises(gd.BadBlock, match="of shape .*from \\(") as caught:
        gd.map_blocks(lambda b: b[1:], X, dtype="f4", block=(100, 900)).compute()
    assert caught.value.code == "bad-block" and caught.value.expected == "(100, 900)"
    with pytest.raises(gd.BadBlock, match="float64") as caught:
        gd.map_blocks(lambda b: b.astype("f8"), X, dtype="f4").compute()
    assert caught.value.expected == "float32" and caught.value.found == "float64"
    kept = []
    with pytest.raises(gd.ProviderFailed, match="a view of the block was kept"):
        gd.map_blocks(lambda b: kept.append(b) or b, X, dtype="f4").compute()
    kept.clear()
    with pytest.raises(gd.ProviderFailed) as caught:
        gd.map_blocks(lambda b: b.fill(0), X, dtype="f4").compute()
    assert "read-only" in str(caught.value.__cause__)

    def broken():
        yield X[:10]
        raises(None)

    with pytest.raises(gd.ProviderFailed) as caught:
        gd.map_blocks(same, gd.from_generator(broken, "f4", X.shape)).compute()
    assert isinstance(caught.value.__cause__.__cause__, KeyError)
    for refused, words in (
            (lambda: gd.map_blocks(raises, X), "give dtype="),
            (lambda: gd.map_blocks(same, 3), "no array"),
            (lambda: gd.map_blocks(same, X, X[:3]), "broadcast"),
            (lambda: gd.map_blocks(same, X, mode="mirror"), "is none of"),
            (lambda: gd.map_blocks(same, X, depth=(1, 2, 3)), "depth"),
            (lambda: gd.map_blocks(same, X, depth=-1), "depth"),
            (lambda: gd.map_blocks(same, X[:3], depth=(3, 0)).compute(),
             "axis 0 has length 3.*at most 2"),
            (lambda: gd.map_blocks(same, X[:3], depth=(4, 0), mode="symmetric").compute(),
             "axis 0 has length 3.*at most 3"),
            (lambda: gd.map_blocks(same, X, threads=-1), "threads is -1"),
            (lambda: gd.map_blocks(lambda b: b[:, 0], X[:, :0], dtype="f4", drop_axis=1,
                                   depth=(0, 1), mode="wrap").compute(), "has no elements"),
            (lambda: gd.map_blocks(same, X, drop_axis=2), "drop_axis"),
            (lambda: gd.map_blocks(same, X, dtype="c8"), "complex64"),
            (lambda: gd.map_blocks(same, X, block=(3,)), "blocks of 1 axes")):
        with pytest.raises(gd.Error, match=words):
            refused()


def test_a_call_that_hangs_holds_its_own_job_alone(gd):
    go_on = threading.Event()

    def hangs(block):
        go_on.wait()
        return block

    stuck = gd.map_blocks(hangs, X, dtype="f4", block=(20, 900), threads=4).sum()
    try:
        futures = [gd.submit(stuck) for _ in range(5)]
        begun = time.monotonic()
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            stuck.compute()
        assert time.monotonic() - begun < 10
        assert gd.map_blocks(same, X).max().compute() == X.max()
        assert (gd.sqrt(np.abs(X)) + X.copy()).compute().shape == X.shape
        futures[0].cancel()
        with pytest.raises(concurrent.futures.CancelledError):
            futures[0].result()
    finally:
        go_on.set()
    assert all(np.isclose(future.result(), X.sum(dtype="f8"), rtol=1e-3) for future in futures[1:])
    assert gd.map_blocks(same, X).max().compute() == X.max()


def test_the_command_maps_functions_of_shared_objects(daemon, folder):
    client = conftest.TOP / "client"
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-o", folder / "stencil.so",
                    client / "examples" / "stencil.c", f"-I{client}", f"-I{client.parent}/proto"],
                   check=True)
    np.save(folder / "x.npy", X)
    words = [f"{folder}/stencil.so:smooth", f"x={folder}/x.npy", "-o", f"{folder}/y.npy"]
    done = json.loads(daemon.ctl("map", *words, "--depth", "1", "--mode", "edge", "--json").stdout)
    padded = np.pad(X, 1, mode="edge")
    expected = (padded[1:-1, 1:-1] + padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2]
                + padded[1:-1, 2:]) / np.float32(5)
    assert done["to"] == f"{folder}/y.npy"
    assert np.array_equal(np.load(folder / "y.npy"), expected)
    os.unlink(folder / "y.npy")
    for more, code, told in (
            ([], 1, "a neighbour on each side is wanted: --depth 1, of the block from (0, 0) on"),
            (["--depth", "1", "--dtype", "f8"], 1, "a float32 matrix"),
            (["--depth", "1,1,1"], 1, "3 numbers for 2 axes"),
            (["--mode", "mirror"], 2, "a mode is constant"),
            ([f"{folder}/stencil.so", "--depth", "1"], 1, "")):
        failed = daemon.ctl("map", *words, "--threads", "1", *more, check=False)
        assert failed.returncode == code and told in failed.stderr, failed.stderr
        assert not (folder / "y.npy").exists()
    (folder / "odd.c").write_text("#include <stdlib.h>\n__thread int own = 1;\nint shared = 1;\n"
                                  "int leaves(void) { exit(7); }\n")
    subprocess.run(["cc", "-fPIC", "-shared", "-o", folder / "odd.so", folder / "odd.c"], check=True)
    for function, code, told in (("stencil.so:rough", 1, "not-found"),
                                 ("odd.so:shared", 1, "shared is a variable"),
                                 ("odd.so:own", 1, "own is a variable"),
                                 ("odd.so:leaves", 7, "ended this process, by exit(7)")):
        failed = daemon.ctl("map", f"{folder}/{function}", *words[1:], check=False)
        assert failed.returncode == code and told in failed.stderr, failed.stderr
        assert f"{folder}/{function}"[-6:] in failed.stderr and not (folder / "y.npy").exists()


def test_jobs_that_wait_for_jobs_of_their_blocks_do_not_fill_the_queue(gd):
    f = weakref.ref(function := functools.partial(same))
    y = gd.map_blocks(function, gd.lazy(X[:60]) * 2, dtype="f4", block=(20, 900)).sum()
    futures = [gd.submit(y) for _ in range(80)]
    assert {float(future.result()) for future in futures} == {float(y.compute())}
    del y, futures, function
    gc.collect()
    gd.lazy(X).sum().compute()
    gc.collect()
    assert f() is None  # nor is anything kept
