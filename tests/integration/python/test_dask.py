"""gd.dask on threads and processes: what the arrays are, and what is refused."""

import gc
import operator
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import gpuarrayd
from catalogue import ELSEWHERE

da = pytest.importorskip("dask.array")
import dask  # noqa: E402


@pytest.fixture(scope="module")
def gd(daemon):
    """The package, connected to the module's daemon, whose counts are afterwards as before."""
    before = daemon.quiet_counts()
    gpuarrayd.connect(daemon.socket)
    yield gpuarrayd
    gc.collect()
    gpuarrayd.close()
    daemon.wait_for_counts(before)


X = np.arange(12.0).reshape(3, 4) + 1
CASES = {
    "one array": ("sqrt(x*x + 1)", {"x": da.from_array(X, chunks=(2, 3))}),
    "unequal chunks": ("x*y - x", {"x": da.from_array(X, chunks=((1, 2), (3, 1))),
                                   "y": da.from_array(X[::-1].copy(), chunks=((2, 1), (1, 1, 2)))}),
    "rows and columns": ("x + y", {"x": da.from_array(X[:, :1].copy(), chunks=1),
                                   "y": da.from_array(X[0].copy(), chunks=3)}),
    "fewer dimensions": ("x - y", {"x": da.from_array(X, chunks=2), "y": da.ones(4, chunks=3)}),
    "an array of NumPy": ("x * y", {"x": da.from_array(X, chunks=(1, 4)), "y": X[0]}),
    "arrays of NumPy": ("x * y", {"x": X, "y": X[0]}),
    "a list": ("x * y", {"x": da.from_array(X, chunks=2), "y": [1, 2, 3, 4]}),
    "weak numbers": ("x * y + z", {"x": da.arange(6, dtype="i2", chunks=4), "y": 3, "z": 1}),
    "a weak float": ("x * y", {"x": da.arange(6, dtype="f4", chunks=4), "y": 0.1}),
    "a NumPy scalar": ("x * y", {"x": da.arange(6, dtype="f4", chunks=4), "y": np.float64(0.1)}),
    "an array without axes": ("x - y", {"x": da.arange(6, dtype="f4", chunks=4),
                                        "y": da.arange(6.0, chunks=4).mean()}),
    "no axes at all": ("x + y", {"x": da.from_array(np.array(2.0)), "y": da.ones(3).sum()}),
    "comparison": ("x > y", {"x": da.arange(6, chunks=4), "y": 2.5}),
    "no elements": ("x + 1", {"x": da.ones((0, 3), chunks=2)}),
    "blocks without elements": ("x + 1", {"x": da.ones(4, chunks=((2, 0, 2),))}),
    "Fortran order": ("x + 1", {"x": da.from_array(np.asfortranarray(X), chunks=-1)}),
    "strides": ("x + 1", {"x": da.from_array(X, chunks=2)[::-1, ::2].T}),
}


def of_numpy(expr, args):
    values = {name: np.asarray(value) if isinstance(value, list) else
              value.compute(scheduler="sync") if isinstance(value, da.Array) else value
              for name, value in args.items()}
    return eval(expr, {"sqrt": np.sqrt}, values)


@pytest.mark.parametrize("case", CASES)
def test_results_are_those_of_numpy(gd, case):
    expr, args = CASES[case]
    expected = of_numpy(expr, args)
    made = gd.dask.evaluate(expr, **args)
    assert isinstance(made, da.Array)
    assert made.dtype == expected.dtype and made.shape == expected.shape
    assert made._meta.dtype == expected.dtype and type(made._meta) is np.ndarray
    found = made.compute(scheduler="threads", num_workers=4)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    for block in made.to_delayed().ravel():
        assert block.compute(scheduler="sync").dtype == expected.dtype


def test_blocks_of_files_are_read_by_the_daemon(gd, folder):
    np.save(folder / "x.npy", X)
    file = gd.open(folder / "x.npy")
    before = gd.stats()["bytes"]["read"]
    for x, want in [(da.from_array(file, chunks=2), X), (da.from_array(file * 2, chunks=2), X * 2),
                    (da.from_array(file, chunks=3)[::-1] + 1, X[::-1] + 1)]:
        for scheduler in ("sync", "threads"):
            got = gd.dask.evaluate("x - 1", x=x).compute(scheduler=scheduler)
            assert np.array_equal(got, want - 1)
        assert gd.dask.map_blocks("x - max(x)", x=x).max().compute() == 0
    after = gd.stats()["bytes"]["read"]
    assert after["file"] - before["file"] >= 2 * X.nbytes and after["provider"] == before["provider"]


def test_chunks_are_those_of_dask(gd):
    args = CASES["unequal chunks"][1]
    expected = operator.mul(args["x"], args["y"])
    assert gd.dask.evaluate("x*y", **args).chunks == expected.chunks


def test_sizes_that_dask_does_not_know(gd):
    x = da.from_array(np.arange(10.0), chunks=4)
    some = x[x > 2]
    assert np.isnan(some.shape[0])
    made = gd.dask.evaluate("2 * s + t", s=some, t=some)
    assert made.dtype == "f8"
    np.testing.assert_array_equal(made.compute(scheduler="threads"), 3 * np.arange(3.0, 10))


def never(block):
    raise AssertionError("computed")


def test_nothing_is_computed_for_the_dtype(gd):
    x = da.ones((1 << 20, 1 << 20), chunks=1 << 18, dtype="f4").map_blocks(never, dtype="f4")
    before = n_jobs(gd)
    made = gd.dask.evaluate("x / 2", x=x)
    assert made.dtype == "f4" and made.shape == x.shape
    assert n_jobs(gd) == before


def test_names_are_the_callers_variables(gd):
    a, b = da.ones(3, chunks=2), 2
    np.testing.assert_array_equal(gd.dask.evaluate("a + b + X0").compute(), np.full(3, 4.0))
    np.testing.assert_array_equal(gd.dask.map_blocks("t = a + b; t*t").compute(), np.full(3, 9.0))


X0 = 1


def test_equal_calls_share_their_keys(gd):
    x = da.from_array(X, chunks=2)
    one = gd.dask.evaluate("x + y", x=x, y=X[0])
    assert gd.dask.evaluate("x + y", y=X[0].copy(), x=da.from_array(X.copy(), chunks=2)).name \
        in (one.name, gd.dask.evaluate("x + y", y=X[0], x=x).name)
    assert gd.dask.evaluate("x + y", x=x, y=X[0]).name == one.name
    others = [gd.dask.evaluate("x + y", x=x, y=X[1]), gd.dask.evaluate("x + x + y", x=x, y=X[0]),
              gd.dask.evaluate("x + y", x=x, y=1), gd.dask.evaluate("x + y", x=x, y=1.0),
              gd.dask.evaluate("x + y", x=x, y=True),
              gd.dask.evaluate("x + y", x=x, y=X[0], engine="cpu"),
              gd.dask.evaluate("x + y", x=x, y=X[0], priority=1),
              gd.dask.evaluate("x + y", x=x, y=X[0], label="sum"),
              gd.dask.map_blocks("x + y", x=x, y=X[0]),
              gd.dask.evaluate("x + y", x=x, y=X[0], dtype="f4")]
    assert len({one.name, *(other.name for other in others)}) == len(others) + 1


def n_jobs(gd):
    return gd.stats()["jobs"]["submitted"]


def test_several_results_are_one_job_for_each_block(gd):
    x = da.from_array(X, chunks=(2, 4))
    low, high, = gd.dask.evaluate(["x - 1", "x > 5"], x=x)
    assert (low.dtype, high.dtype) == (np.dtype("f8"), np.dtype("bool"))
    before = n_jobs(gd)
    found = dask.compute(low, high, scheduler="threads")
    assert n_jobs(gd) == before + 2
    np.testing.assert_array_equal(found[0], X - 1)
    np.testing.assert_array_equal(found[1], X > 5)
    one, = gd.dask.evaluate(["x - 1"], x=x)
    np.testing.assert_array_equal(one.compute(), X - 1)


def test_a_block_is_one_job_with_its_options(gd):
    x = da.from_array(X, chunks=2)
    before = n_jobs(gd)
    made = gd.dask.evaluate("x + 1", x=x, engine="cpu", priority=-5, label="plus one")
    made.compute(scheduler="threads")
    assert n_jobs(gd) == before + 4


def test_map_blocks_takes_each_block_for_the_whole(gd):
    x = da.from_array(X, chunks=(3, 2))
    found = gd.dask.map_blocks("x - mean(x)", x=x).compute(scheduler="threads")
    expected = x.map_blocks(lambda block: block - block.mean()).compute(scheduler="threads")
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    np.testing.assert_array_equal(gd.dask.map_blocks("x*0 + index(1)", x=x).compute(),
                                  [[0, 1, 0, 1]] * 3)
    with pytest.raises(gd.BadShape, match=r"'sum\(x\)' has the shape \(\)"):
        gd.dask.map_blocks("sum(x)", x=x)


@pytest.mark.parametrize("expr", ["x - mean(x)", "np.sum(x)", "min (x)", "where(x > 1, amax(x), x)",
                                  "count_nonzero(x)", "x + index(0)", "cumsum(x)", "x - median(x)",
                                  "digitize(x, x)"])
def test_what_depends_on_other_blocks_is_refused(gd, expr):
    with pytest.raises(gd.Unsupported, match="depends on the whole array.*gd.dask.map_blocks") as e:
        gd.dask.evaluate(expr, x=da.ones(3))
    assert e.value.code == "unsupported" and isinstance(e.value, TypeError)


def test_every_function_of_the_catalogue_that_reduces_is_refused(gd):
    """Found by what the daemon answers, so that a new one cannot be forgotten."""
    from gpuarrayd.dask._collections import OF_THE_WHOLE
    x = np.ones((1, 2), "i8")
    reduce = {"index", *(name for name, (module, _) in ELSEWHERE.items()
                         if module in ("test_counts", "test_near", "test_products", "test_quantiles",
                                       "test_slabs", "test_triangles", "test_windows"))}
    for op in gd.ops():
        names = [name for name in (op["name"], op["alias"]) if name and name.isidentifier()]
        if op["args"] == op["results"] == 1 and not {"astype", *reduce} & set(names) \
                and "seed" not in (op["keywords"] or "") and gd.evaluate(f"{op['name']}(x)", x=x).shape == ():
            reduce.update(names)
    assert reduce == set(OF_THE_WHOLE)


@pytest.mark.parametrize("text", ["x @ x", "matmul(x, x) + 1", "1 + x @ x.T"])
def test_matrix_products_are_refused(gd, text):
    with pytest.raises(gd.Unsupported, match="dask.array.matmul"):
        gd.dask.evaluate(text, x=da.ones((4, 4), chunks=2))


def test_random_numbers_are_refused(gd):
    """In blocks of one kind and the other: each would have the same."""
    from gpuarrayd.dask._collections import RANDOM
    assert set(RANDOM) == {op["name"] for op in gd.ops() if "seed" in (op["keywords"] or "")}
    for call in (gd.dask.evaluate, gd.dask.map_blocks):
        for name in RANDOM:
            with pytest.raises(gd.Unsupported, match="the same numbers"):
                call(f"x + {name}(seed=1)", x=da.ones(3))


def test_names_that_only_look_like_functions_of_the_whole(gd):
    x = da.from_array(X, chunks=2)
    np.testing.assert_array_equal(gd.dask.evaluate("mean * minimum(x, 3)", x=x, mean=2).compute(),
                                  2 * np.minimum(X, 3))


REFUSED = {
    "masked": (lambda: {"x": da.ma.masked_greater(da.ones(3), 2)}, "masked array", "Unsupported"),
    "objects": (lambda: {"x": da.from_array(np.array([{}, {}]), chunks=1)}, "object", "BadDtype"),
    "complex": (lambda: {"x": da.ones(3, dtype="c16")}, "x.real and x.imag", "BadDtype"),
    "delayed": (lambda: {"x": dask.delayed(X)}, "dask.array.from_delayed", "Unsupported"),
    "numbers": (lambda: {"x": 3}, "no array among", "BadArgument"),
    "shapes": (lambda: {"x": da.ones(3), "y": da.ones(4)}, r"x \(3,\), y \(4,\)", "BadShape"),
    "out": (lambda: {"x": da.ones(3), "out": X}, "a dask array is new", "BadArgument"),
    "to": (lambda: {"x": da.ones(3), "to": "x.npy"}, "store", "BadArgument"),
    "progress": (lambda: {"x": da.ones(3), "progress": True}, "ProgressBar", "BadArgument"),
    "dtypes": (lambda: {"x": da.ones(3), "dtype": ["f4", "f4"]}, "2 members for 1", "BadArgument"),
    "engine": (lambda: {"x": da.ones(3), "engine": "abacus"}, "abacus", "Error"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_before_there_is_a_graph(gd, case):
    make, words, kind = REFUSED[case]
    given = make()
    with pytest.raises(getattr(gd, kind), match=words):
        gd.dask.evaluate("x + y" if "y" in given else "x + 1", **given)


def test_expressions_are_refused_before_there_is_a_graph(gd):
    x = da.ones((3, 2), chunks=2)
    with pytest.raises(gd.UnknownName, match="did you mean 'sqrt'"):
        gd.dask.evaluate("sqr(x)", x=x)
    with pytest.raises(gd.UnknownName, match="nowhere"):
        gd.dask.evaluate("x + nowhere", x=x)
    with pytest.raises(gd.BadExpression):
        gd.dask.evaluate("x +", x=x)
    with pytest.raises(gd.BadShape, match="all arguments together"):
        gd.dask.evaluate(["x + y", "y"], x=x, y=da.ones(2))
    with pytest.raises(gd.Unsupported, match="gd.save"):
        gd.dask.evaluate("x + y", x=x, y=gd.lazy(X))


def test_what_a_task_raises(gd):
    x = da.from_array(np.arange(4), chunks=2)
    made = gd.dask.evaluate("x ** y", x=x, y=x - 3)
    with pytest.raises(gd.NegativePower) as e:
        made.compute(scheduler="threads")
    assert e.value.code == "negative-integer-power"


def test_a_block_is_not_what_its_array_says(gd):
    """dask.array believes what map_blocks() was told."""
    x = da.ones(4, chunks=2).map_blocks(lambda block: block[:1], dtype="f8")
    y = da.ones(4, chunks=2)
    assert gd.dask.evaluate("x + y", x=x, y=y).compute(scheduler="threads").shape == (4,)
    z = da.ones(4, chunks=2, dtype="f4").map_blocks(lambda block: block.astype("c16"), dtype="f4")
    with pytest.raises(gd.BadDtype, match="z has dtype complex128"):
        gd.dask.evaluate("z + 1", z=z).compute(scheduler="threads")


def is_shared(gd, array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return isinstance(array.base, gd._core.Array)


def blocks_of(array):
    return [block.compute(scheduler="sync") for block in array.to_delayed().ravel()]


def test_results_lie_in_shared_memory_up_to_a_share(gd, monkeypatch):
    from gpuarrayd.dask import _memory
    gc.collect()
    monkeypatch.setattr(_memory, "MAX_BYTES", _memory._used() + 20_000)
    x = da.ones((4, 1000), chunks=(1, 1000))
    for _ in range(2):  # what is dropped is given back
        blocks = blocks_of(gd.dask.evaluate("x + 1", x=x))
        assert [is_shared(gd, block) for block in blocks] == [True, True, False, False]
        assert all((block == 2).all() for block in blocks)
        del blocks
    monkeypatch.setattr(_memory, "MAX_BLOCK_BYTES", 7999)
    assert not any(is_shared(gd, block) for block in blocks_of(gd.dask.evaluate("x + 1", x=x)))


def test_tasks_travel_by_pickle(gd):
    from gpuarrayd.dask._blocks import Block
    block = pickle.loads(pickle.dumps(Block(("x + y",), ("x",), {"y": np.float32(1)},
                                            (np.dtype("f8"),), None, 0, None)))
    np.testing.assert_array_equal(block(X), X + 1)


PROGRAM = """
import sys
import gpuarrayd as gd
assert not {"dask", "distributed"} & set(sys.modules)
import dask.array as da
assert gd.dask.evaluate is gd.dask.evaluate and "distributed" not in sys.modules
import dask
assert dask is not gd.dask and gd.dask.__name__ == "gpuarrayd.dask"
from gpuarrayd.dask import _collections
assert _collections.da is da
x = da.ones(4, chunks=2)
"""


def python(program, socket):
    return subprocess.run([sys.executable, "-c", program], text=True, capture_output=True,
                          timeout=60, env={**os.environ, "GPUARRAYD_SOCKET": socket})


def test_the_package_and_dask_keep_out_of_each_others_way(daemon):
    done = python(PROGRAM + "print(gd.dask.evaluate('x + 1').sum().compute())", daemon.socket)
    assert done.stdout == "8.0\n", done.stderr


def test_a_graph_without_a_daemon():
    done = python(PROGRAM + """
try:
    gd.dask.evaluate("x + 1")
except gd.NoDaemon as error:
    assert "with dtype= a graph is made without a daemon" in str(error), error
r = gd.dask.evaluate("x + 1", dtype="f4")
print(r.dtype, r.shape)
try:
    r.compute()
except gd.NoDaemon as error:
    print(error.code)
""", "/nowhere/socket")
    assert done.stdout == "float32 (4,)\nno-daemon\n", done.stderr


def test_a_dtype_that_is_said(gd):
    x = da.ones(4, chunks=2)
    assert gd.dask.evaluate("x / 3", x=x, dtype="f4").compute().dtype == "f4"
    with pytest.raises(gd.BadDtype):
        gd.dask.evaluate("x / 3", x=x, dtype="i4").compute()


def test_processes(daemon, gd, monkeypatch):
    monkeypatch.setenv("GPUARRAYD_SOCKET", daemon.socket)
    x = da.from_array(X, chunks=2)
    made = gd.dask.evaluate("sqrt(x)", x=x)
    before = n_jobs(gd)
    np.testing.assert_array_equal(made.compute(scheduler="processes", num_workers=2), np.sqrt(X))
    assert n_jobs(gd) == before + 4
