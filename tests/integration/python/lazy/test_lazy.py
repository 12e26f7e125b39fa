"""The lazy form: what an expression is before it is computed, how it is computed, its
text, and how it goes to other processes."""

import concurrent.futures
import importlib
import os
import pickle
import subprocess
import sys

import h5py
import numpy as np
import pytest

from catalogue import assert_same


@pytest.fixture
def x(gd, folder):
    """A file of 30 x 40 float64, opened, and its elements."""
    elements = np.arange(1200.).reshape(30, 40) - 100
    np.save(folder / "x.npy", elements)
    return gd.open(folder / "x.npy"), elements


def same(got, want):
    assert_same(np.asarray(got), np.asarray(want))


def n_jobs(gd):
    """That the daemon was given."""
    return gd.stats()["jobs"]["submitted"]


# -- what it is ---------------------------------------------------------------------------------

def test_the_example_of_the_manual(gd, x, folder):
    x, elements = x
    y = (gd.sqrt(x*x + 1) - x.mean()).astype("f4")
    assert (y.dtype, y.shape, y.ndim, y.size) == (np.float32, (30, 40), 2, 1200)
    assert (y.itemsize, y.nbytes, len(y)) == (4, 4800, 30)
    want = (np.sqrt(elements*elements + 1) - elements.mean()).astype("f4")
    same(y.compute(), want)
    same(np.asarray(y), want)
    saved = gd.save(folder / "y.npy", y)
    same(np.load(folder / "y.npy"), want)
    same(saved.compute(), want)


def test_shape_and_dtype_are_planned_and_nothing_runs(gd, x):
    x, _ = x
    before = n_jobs(gd)
    y = gd.where(x > 0, x, np.float32(2)) + np.arange(3, dtype="i2").reshape(3, 1, 1)
    assert (y.dtype, y.shape) == (np.float64, (3, 30, 40))
    assert (y > 1).dtype == np.bool_ and y.sum().shape == () and y.sum().ndim == 0
    assert (gd.lazy(np.int8(3)) + 1).dtype == np.int8
    assert n_jobs(gd) == before
    with pytest.raises(TypeError, match="unsized"):
        len(x.sum())


def test_leaves_know_their_own(gd, folder):
    np.save(folder / "big.npy", np.zeros((3, 4), ">f4"))
    leaf = gd.open(folder / "big.npy")
    assert (leaf.dtype, leaf.shape) == (np.float32, (3, 4))
    a = np.zeros((2, 5), ">i4")
    assert gd.lazy(a).dtype == np.int32 == gd.lazy(a).compute().dtype
    assert gd.lazy([1, 2]).shape == (2,) and gd.lazy(2.5).shape == ()


def test_errors_of_shape_are_told_where_they_are_written(gd, x):
    x, _ = x
    with pytest.raises(gd.errors.BadShape, match=r"add: shapes \(30, 40\) and \(7,\)"):
        x + np.zeros(7)
    with pytest.raises(ValueError):
        gd.where(x > 0, x, np.zeros((2, 2)))


def test_errors_of_dtype_are_the_daemons(gd, x):
    x, _ = x
    y = x & 3
    for ask in (lambda: y.dtype, y.compute, lambda: np.asarray(y)):
        with pytest.raises(gd.errors.BadDtype, match="integers or bools") as caught:
            ask()
        assert any("_0&3" in note for note in caught.value.__notes__)


def test_repr(gd, x, folder):
    x, _ = x
    y = gd.sqrt(x*x + 1) - x.mean()
    assert repr(x) == f"<Lazy float64 (30, 40): open('{folder}/x.npy')>"
    assert repr(y) == ("<Lazy float64 (30, 40): sqrt(_0*_0+1)-mean(_0); "
                       f"_0 = open('{folder}/x.npy') float64 (30, 40)>")
    assert str(y) == repr(y) and len(repr(sum([x] * 500))) < 1000


def test_repr_without_a_daemon(gd):
    y = gd.lazy(np.zeros((2, 3))) + 1
    wrong = y & 1
    assert repr(wrong) == "<Lazy (2, 3): _0+1&1; _0 = ndarray float64 (2, 3)>"
    gd.close()
    assert repr(y) == "<Lazy (2, 3): _0+1; _0 = ndarray float64 (2, 3)>"


# -- computing ----------------------------------------------------------------------------------

def test_results(gd, x):
    x, elements = x
    got = (x + 1).compute()
    assert type(got) is np.ndarray and got.flags.writeable and got.flags.c_contiguous
    assert type(x.max().compute()) is np.float64
    assert type((x > 0).astype("i2").sum().compute()) is np.int64
    same(x.compute(), elements)
    same(gd.lazy(elements).compute(), elements)
    same(gd.lazy(np.asfortranarray(elements)).compute(), elements)
    same((x[:0] + 1).compute(), elements[:0])


def test_out(gd, x, folder):
    x, elements = x
    y = x * 2
    for out in (np.empty((30, 40)), np.empty((30, 40), "f4"), np.empty((40, 30)).T,
                np.lib.format.open_memmap(folder / "m.npy", "w+", "f8", (30, 40))):
        assert y.compute(out=out) is out
        same(out, (elements * 2).astype(out.dtype))
    np.save(folder / "o.npy", np.zeros((30, 40)))
    out = gd.open(folder / "o.npy", "r+")
    assert y.compute(out=out) is out
    same(np.load(folder / "o.npy"), elements * 2)
    assert (out + 1).compute(out=out) is out  # in place
    same(np.load(folder / "o.npy"), elements * 2 + 1)
    part = gd.open(folder / "o.npy", "r+")[1:3]
    (x[1:3] * 0).compute(out=part)
    assert np.load(folder / "o.npy")[:4].any(axis=1).tolist() == [True, False, False, True]


def test_wrong_out(gd, x, folder):
    x, elements = x
    with pytest.raises(gd.errors.ReadOnly, match="r\\+"):
        (x + 1).compute(out=x)
    with pytest.raises(gd.errors.Unsupported, match="output"):
        (x + 1).compute(out=x * 2)
    with pytest.raises(gd.errors.BadShape):
        x.compute(out=np.zeros(3))
    with pytest.raises(gd.errors.BadArgument):
        x.compute(out="file.npy")
    with pytest.raises(gd.errors.BadArgument, match="mode"):
        gd.open(folder / "x.npy", "w")
    with pytest.raises(FileNotFoundError):
        gd.open(folder / "none.npy")


def test_several_results_in_one_job(gd, x):
    x, elements = x
    before = n_jobs(gd)
    out = np.empty((30, 40))
    y, z, s = gd.compute(x + 1, x * x, (x + 1).sum(), out=[None, out, None])
    assert n_jobs(gd) == before + 1
    same(y, elements + 1)
    assert z is out
    same(z, elements * elements)
    assert s == (elements + 1).sum()
    assert gd.compute() == ()
    same(gd.compute(elements)[0], elements)


def test_save_several(gd, x, folder):
    x, elements = x
    before = n_jobs(gd)
    saved = gd.save({folder / "y.npy": x + 1, f"{folder}/f.h5:/z": x > 0, f"{folder}/m.raw":
                     x.mean()}, label="three", priority=5, engine="cpu")
    assert n_jobs(gd) == before + 1
    same(np.load(folder / "y.npy"), elements + 1)
    with h5py.File(folder / "f.h5") as f:
        same(f["z"][...], elements > 0)
    assert saved[f"{folder}/m.raw"].compute() == elements.mean()
    with pytest.raises(gd.errors.BadArgument, match="dict"):
        gd.save({"a.npy": x}, x)
    with pytest.raises(gd.errors.BadArgument):
        gd.save("a.npy")
    assert gd.save({}) == {}


def test_options_are_the_jobs(gd, x):
    x, _ = x
    with pytest.raises(gd.errors.NoEngine):
        x.compute(engine="cuda")
    with pytest.raises(gd.errors.Error):
        gd.compute(x, engine="abacus")
    with pytest.raises(gd.errors.Error):
        gd.save("x.npy", x, priority=1000)
    told = []
    (x + 1).compute(progress=lambda *args: told.append(args))
    assert told


def test_too_many(gd, x):
    x, _ = x
    assert len(gd.compute(*[x + i for i in range(16)])) == 16
    with pytest.raises(gd.errors.LimitExceeded, match="16"):
        gd.compute(*[x + i for i in range(17)])
    arrays = [np.full(3, i) for i in range(65)]
    total = gd.lazy(arrays[0])
    for one in arrays[1:64]:
        total = total + one
    assert total.compute().tolist() == [2016] * 3
    with pytest.raises(gd.errors.LimitExceeded, match="64"):
        (total + arrays[64]).compute()


def test_submit(gd, x):
    x, elements = x
    same(gd.submit(x + 1).result(60), elements + 1)
    y, z = gd.submit([x + 1, x.sum()]).result(60)
    same(y, elements + 1)
    assert z == elements.sum()
    assert gd.submit(x * 3, out=y).result(60) is y
    same(y, elements * 3)


def test_what_arrays_hold_when_it_is_computed_counts(gd):
    a = np.zeros(3)
    y = gd.lazy(a) + 1
    a[:] = 5
    assert y.compute().tolist() == [6, 6, 6]


# -- text ---------------------------------------------------------------------------------------

def text_of(lazy):
    from gpuarrayd._lazy.text import written
    [text], arguments = written([lazy._node])
    return text, list(arguments)


def test_texts_have_no_needless_brackets(gd):
    x, b = gd.lazy(np.ones(3)), np.ones(3, "?")
    for lazy, text in [
            ((x + 1) * 2, "(_0+1)*2"), (x + 1 + 2, "_0+1+2"), (x - (x - 1), "_0-(_0-1)"),
            ((-x) ** 2, "(-_0)**2"), (-(x ** 2), "-_0**2"), (x ** -x, "_0**-_0"),
            ((x ** 2) ** 3, "(_0**2)**3"), (x ** x ** x, "_0**_0**_0"), (2 ** x, "2**_0"),
            ((x < 1) == b, "(_0<1)==_1"), ((x < 1) & ~(x > 2) | b, "(_0<1)&~(_0>2)|_1"),
            (x - -3, "_0-(-3)"), (-(-x), "--_0"), (divmod(x, 2)[1], "divmod(_0,2)[1]"),
            (x * float("nan") + float("-inf"), "_0*nan+(-inf)"), (x * 1e300, "_0*1e+300"),
            (np.float32(2) * x, "float32(2.0)*_0"), (x + np.int8(-2), "_0+int8(-2)"),
            (x * np.True_, "_0*bool(True)"), (x * True, "_0*True"), (x + x, "_0+_0")]:
        assert text_of(lazy)[0] == text
        want = eval(text, {"_0": np.ones(3), "_1": b, "nan": np.nan, "inf": np.inf,
                           "float32": np.float32, "int8": np.int8})
        same(lazy.compute(), want)


def test_what_is_used_twice_has_a_name(gd):
    x = gd.lazy(np.full(3, 4.))
    root = gd.sqrt(x)
    assert text_of(root / (root + 1)) == ("_t0=sqrt(_0);_t0/(_t0+1)", ["_0"])
    y = x
    for _ in range(80):  # 2^80 without names
        y = (y + y) / 2
    assert y.compute().tolist() == [4, 4, 4]


def test_equal_sources_are_one_argument(gd, folder):
    a = np.arange(3.)
    np.save(folder / "a.npy", a)
    path = folder / "a.npy"
    assert text_of(gd.lazy(a) + a + gd.lazy(a))[1] == ["_0"]
    assert text_of(gd.open(path) + gd.open(str(path)))[1] == ["_0"]
    assert text_of(gd.open(path)[1:] + gd.open(path)[1:])[1] == ["_0"]
    assert text_of(gd.open(path) + gd.open(path)[::-1])[1] == ["_0", "_1"]
    with h5py.File(folder / "f.h5", "w") as f:
        f["d"] = a
        assert text_of(gd.lazy(f["d"]) + f["d"])[1] == ["_0"]
        same((gd.lazy(f["d"]) + f["d"]).compute(), a + a)


def test_numbers_are_read_back_to_the_bit(gd):
    values = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, 1e22, 1e23, 123456789.123456789,
              2.0**-1074 * 3, np.pi, -1e-5, 4e15, 1e16]
    got = gd.compute(*[gd.lazy(np.zeros(())) + value for value in values])
    assert [float(v).hex() for v in got] == [float(0 + v).hex() for v in values]
    signed = (gd.lazy(np.float64(1)) * -0.0).compute()
    assert np.signbit(signed)
    for value in (0, 255, 2**63, 2**64 - 1):
        assert (gd.lazy(np.zeros((), "u8")) + value).compute() == value
    assert (gd.lazy(np.zeros((), "i8")) + -2**63).compute() == -2**63
    for dtype in ("f4", "f8", "i1", "i8", "u8", "?"):
        number = np.array([0.1 if dtype[0] == "f" else 1]).astype(dtype)[0]
        y = gd.lazy(np.zeros((), "?")) + number
        assert (y.dtype, y.compute()) == (number.dtype, number)


def test_integers_that_no_dtype_holds(gd):
    for value in (2**64, -2**63 - 1, 10**10000):
        with pytest.raises(OverflowError, match="out of bounds for int64"):
            gd.lazy(np.zeros(3, "i8")) + value
    with pytest.raises(OverflowError, match="float"):
        gd.lazy(np.zeros(3)) + 10**10000
    with pytest.raises(gd.Error, match="300"):
        gd.lazy(np.zeros(3, "u1")) + 300


def test_long_chains(gd):
    x = gd.lazy(np.array([1.0]))
    y, want = x, np.array([1.0])
    for i in range(500):
        y, want = (y + 1) * 0.5, (want + 1) * 0.5
    same(y.compute(), want)
    z = x
    for i in range(1000):
        z = z + 1
    assert z.compute() == 1001
    for i in range(1500):
        z = -gd.sqrt(z * z)
    with pytest.raises(gd.errors.LimitExceeded):
        z.compute()
    same(pickle.loads(pickle.dumps(y)).compute(), want)


# -- other processes and threads ------------------------------------------------------------------

def test_pickles(gd, x, folder):
    x, elements = x
    a = np.arange(40)
    shared = x * a
    y = gd.where(shared > 3, shared, np.float32(2)) - divmod(x, 3)[1] + gd.astype(a, "i2")
    again = pickle.loads(pickle.dumps(y))
    assert text_of(again) == text_of(y) and (again.dtype, again.shape) == (y.dtype, y.shape)
    same(again.compute(), y.compute())
    assert len(pickle.dumps(x)) < 1000  # by its name
    with h5py.File(folder / "f.h5", "w") as f:
        f["d"] = elements
    with h5py.File(folder / "f.h5") as f:
        same(pickle.loads(pickle.dumps(gd.lazy(f["d"]) + 1)).compute(), elements + 1)


def test_in_another_process(gd, daemon, x):
    x, elements = x
    y = gd.sqrt(abs(x) + np.arange(40)) - x[3:4].mean()
    program = ("import pickle, sys, gpuarrayd as gd; y = pickle.load(sys.stdin.buffer); "
               "pickle.dump((y.shape, y.compute()), sys.stdout.buffer)")
    done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(y), cwd="/",
                          env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket}, check=True,
                          capture_output=True, timeout=60)
    shape, got = pickle.loads(done.stdout)
    assert shape == (30, 40)
    same(got, np.sqrt(abs(elements) + np.arange(40)) - elements[3].mean())


def test_in_a_forked_child(gd, x):
    """A file is opened anew: the parent's belongs to the parent's session."""
    x, elements = x
    y = (x + 1).sum()
    assert y.compute() == (elements + 1).sum()
    pid = os.fork()
    if pid == 0:
        try:
            is_right = y.compute() == (elements + 1).sum() and x[2:4].compute().shape == (2, 40)
            gd.close()
            os._exit(0 if is_right else 3)
        finally:
            os._exit(4)
    assert os.waitpid(pid, 0)[1] == 0
    assert y.compute() == (elements + 1).sum()


def test_in_many_threads(gd, x):
    """One lazy, whose text and plan nobody has asked for yet, computed by all of them."""
    x, elements = x
    lazies = [gd.sqrt(abs(x) + i) for i in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for i, got in enumerate(pool.map(lambda i: (lazies[i].shape, lazies[i].compute()),
                                         [*range(8)] * 4)):
            assert got[0] == (30, 40)
            same(got[1], np.sqrt(abs(elements) + i % 8))


def test_a_lazy_may_be_assigned_to_while_another_thread_computes_it(gd):
    """After each read of what it is in turn; it is then what was assigned, whatever was kept."""
    graph = importlib.import_module("gpuarrayd._lazy.graph")
    left, slot = [0], graph.Held.__dict__["_node"]
    old, new = np.arange(5.0), np.arange(5.0) * 2 + 1
    other = gd.lazy(new)._node

    class Raced(gd.Lazy):
        __slots__ = ()

        @property
        def _node(self):
            node = slot.__get__(self)
            left[0] -= 1
            if left[0] == 0:  # as __setitem__ does
                slot.__set__(self, other)
                self._written = None
            return node

        @_node.setter
        def _node(self, node):
            slot.__set__(self, node)

    n_hit = 0
    for n in range(1, 20):
        x = Raced._of(gd.lazy(old)._node)
        left[0] = n
        found = x.compute().tolist()
        left[0], is_hit = 0, slot.__get__(x) is other
        n_hit += is_hit
        assert found in (old.tolist(), new.tolist())
        assert x.compute().tolist() == (new if is_hit else old).tolist(), n
    assert n_hit > 1
