"""The text form: names, results, destinations, several results in one pass."""

import gc
import os
import threading

import numpy as np
import pytest

from catalogue import assert_same


def values(*shape, seed=3, dtype="f8"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


# -- names --------------------------------------------------------------------------------------

scale = 3.0


def test_names_are_keywords_then_locals_then_globals(gd):
    a = values(10)
    b = values(10, seed=4)  # noqa: F841: found by its name
    assert_same(gd.evaluate("a + b * scale", a=2 * a), 2 * a + b * scale)
    assert_same(gd.evaluate("a * scale", scale=5.0), a * 5.0)


def test_as_many_arrays_in_memory_as_there_are_arguments(gd):
    arrays = {f"x{i}": np.full(100_000, i, "f8") for i in range(64)}
    assert_same(gd.evaluate("+".join(arrays), **arrays), np.full(100_000, 2016.0))


def test_a_method_sees_its_own_variables(gd):
    class Holder:
        def compute(self):
            x = np.arange(3.0)  # noqa: F841
            return gd.evaluate("x + 1")

    assert_same(Holder().compute(), np.arange(3.0) + 1)


def test_functions_parameters_and_bound_names_are_no_arguments(gd):
    x, sqrt, max, d, decimals = values(5), 1, 2, 3, 4  # noqa: F841
    assert_same(gd.evaluate("np.sqrt(clip(x, max=1.0)*0 + 4)"), np.full(5, 2.0))
    assert np.allclose(gd.evaluate("d = x - mean(x); d*d"), (x - x.mean()) ** 2, rtol=1e-14)
    assert_same(gd.evaluate("numpy.round(x, decimals=1)"), np.round(x, 1))


def test_constants_are_arguments_only_by_keyword(gd):
    x, e, pi = values(5), 100.0, 200.0  # noqa: F841
    assert_same(gd.evaluate("x * e + pi"), x * np.e + np.pi)
    assert_same(gd.evaluate("x * e + pi", e=2.0), x * 2.0 + np.pi)
    assert_same(gd.evaluate("float32(x)"), x.astype("f4"))


def test_a_missing_name_says_how_arguments_are_given(gd):
    temperature = values(5)  # noqa: F841
    with pytest.raises(gd.errors.UnknownName, match="did you mean 'temperature'") as caught:
        gd.evaluate("temprature + 1")
    assert isinstance(caught.value, NameError) and caught.value.code == "unknown-name"
    assert caught.value.found == "'temprature'"
    with pytest.raises(gd.errors.UnknownName, match="^line 3, column 5: unknown name 't'"):
        gd.evaluate("sum(temperature,\n  axis=0);\n1 + t")
    for text, column in (("iterate(3, z = z*z + temperature)", 12), ("clip(temperature, max=z)", 23),
                         ("temperature + repeat(2, temperature = 2*temperature, z = 1)", 54)):
        with pytest.raises(gd.errors.UnknownName, match=f"^column {column}: unknown name 'z'"):
            gd.evaluate(text)
    with pytest.raises(gd.errors.UnknownName, match="qqq=array"):
        gd.evaluate("qqq + 1")
    with pytest.raises(gd.errors.UnknownName, match="sqrt"):
        gd.evaluate("sqr(temperature)")


def test_names_that_no_text_uses_are_refused(gd):
    x = values(5)
    for options, hint in (({"outt": np.empty(5)}, "did you mean out="), ({"xx": x}, "mean x=?"),
                          ({"mod": "wrp"}, "mean mode="), ({"y": x}, "local_dict=")):
        [name] = options
        for refuse in (gd.evaluate, gd.submit):
            with pytest.raises(gd.errors.BadArgument, match=f"{name}= is .*{hint}") as caught:
                refuse("x + 1", x=x, **options)
            assert caught.value.argument == name


@pytest.mark.parametrize("text", ["", "x +", "x.sum()", "x[0]", "x = 1", "x @@ x", "a if x else b"])
def test_texts_that_cannot_be_compiled(gd, text):
    x, a, b = values(5), 1, 2  # noqa: F841
    with pytest.raises(gd.errors.BadExpression) as caught:
        gd.evaluate(text)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("expr", [None, 3, [], [3], b"x", ["1"] * 17])
def test_what_is_no_expression(gd, expr):
    with pytest.raises(gd.errors.RequestError):
        gd.evaluate(expr, x=values(3))


# -- results ------------------------------------------------------------------------------------

def test_results_are_plain_writable_arrays(gd):
    a = values(30, 40)
    for _ in range(3):  # planned, then from the cache
        r = gd.evaluate("a * 2", a=a)
        assert type(r) is np.ndarray and r.flags.writeable and r.flags.c_contiguous
        assert_same(r, a * 2)
    r[...] = 0
    assert_same(gd.evaluate("a * 2", a=a), a * 2)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 3, 4), (1, 1, 1), (1,) * 32])
def test_shapes(gd, shape):
    a = values(*shape)
    for array in (a, a.astype("f4"), gd.asarray(a)):
        r = gd.evaluate("a + 1", a=array)
        assert_same(np.asarray(r), array + array.dtype.type(1))
        assert isinstance(r, np.ndarray) == (shape != ())


@pytest.mark.parametrize("dtype", ["?", "i1", "i8", "u8", "f4", "f8"])
def test_results_without_axes_are_scalars_of_numpy(gd, dtype):
    a = np.ones(7, dtype)
    r = gd.evaluate("max(a)", a=a)
    assert type(r) is np.dtype(dtype).type and r == 1
    assert type(gd.evaluate("count_nonzero(a)", a=a)) is np.int64
    assert type(gd.evaluate("1 + 1")) is np.int64


def test_results_have_numpys_memory_order(gd):
    c, f = values(30, 40), np.asfortranarray(values(30, 40))
    assert gd.evaluate("c + 1", c=c).flags.c_contiguous
    for array in (f, gd.asarray(f), f.astype("f4", order="F")):
        r = gd.evaluate("f + 1", f=array)
        assert r.flags.f_contiguous and not r.flags.c_contiguous
        assert_same(r, array + 1)
    assert gd.evaluate("c + f", c=c, f=f).flags.c_contiguous
    for turned in (c.T, f.T, c.T, c[:, :30].T):  # the same dtype and shape, another order
        assert_same(gd.evaluate("c * 3", c=turned), turned * 3)


def test_plans_are_kept_by_the_values_of_numbers(gd):
    a = np.arange(5, dtype="i4")
    for k in (2, -1, 3, True, 2.0, 2**62, -2):
        want = np.asarray(a * (2**k if k < 2**60 else 4.0))
        got = gd.evaluate("a * 2**k", a=a, k=k) if k < 2**60 else gd.evaluate("a * 4.0", a=a)
        assert_same(got, want)
    for dtype in ("i1", "f4", "i8", "f8", "?"):
        assert gd.evaluate("a + 1.5", a=a.astype(dtype)).dtype == (a.astype(dtype) + 1.5).dtype
        assert gd.evaluate("a + k", a=a.astype(dtype), k=np.float32(1)).dtype \
            == (a.astype(dtype) + np.float32(1)).dtype


def test_many_plans(gd):
    for n in range(1, 700):
        assert gd.evaluate("a + 1", a=np.zeros(n, "i2")).shape == (n,)


def test_a_plan_that_does_not_fit_is_made_again(gd):
    from gpuarrayd._jobs import quick as _quick
    from gpuarrayd._jobs import request as _request
    a = values(6)
    for plans, wrong, ask in (
            (_quick._plans, ("<f8", np.dtype("f8"), (5,)), lambda: gd.evaluate("a - 1", a=a)),
            (_request._plans, [(np.dtype("f8"), (5,), "C")],
             lambda: gd.evaluate(["a - 1"], a=a)[0])):
        assert_same(ask(), a - 1)
        keys = [key for key in plans if key[0] == "a - 1"]
        assert len(keys) == 1
        right, plans[keys[0]] = plans[keys[0]], wrong
        assert_same(ask(), a - 1)
        assert_same(ask(), a - 1)
        assert plans.get(keys[0], right) == right


def test_a_list_is_one_job(gd, daemon):
    a = values(1000)
    before = gd.stats()["jobs"]["submitted"]
    low, high, twice = gd.evaluate(["min(a)", "max(a)", "a * 2"], a=a)
    assert gd.stats()["jobs"]["submitted"] - before == 1
    assert (low, high) == (a.min(), a.max())
    assert_same(twice, a * 2)
    out = np.empty(1000)
    r = gd.evaluate(("a + 1", "a - 1"), a=a, out=[out, None])
    assert r[0] is out
    assert_same(out, a + 1)
    assert_same(r[1], a - 1)
    with pytest.raises(gd.errors.BadArgument, match="list"):
        gd.evaluate(["a", "a + 1"], a=a, out=out)
    with pytest.raises(gd.errors.BadArgument, match="list"):
        gd.evaluate(["a", "a + 1"], a=a, out=[out])


def test_results_live_as_long_as_their_views(gd):
    a = gd.asarray(values(1000))
    r = gd.evaluate("a + 1", a=a)
    part = r[10:20:3]
    want = (a + 1)[10:20:3]
    del r
    gc.collect()
    for _ in range(5):
        gd.evaluate("a * 0", a=a)
    assert_same(part.copy(), want)
    gd.close()
    assert_same(part.copy(), want)
    assert_same(gd.evaluate("part * 2"), want * 2)  # a new session: ordinary memory to it


def test_beyond_the_quota_results_lie_on_the_heap(start):
    import gpuarrayd as gd
    gd.connect(start(args=["--region-limit", "1M"]).socket)
    a = values(300000)
    r, kept = gd.evaluate("a + 1"), gd.zeros((300, 1000), "f4", order="F")
    assert_same(r, a + 1)
    assert kept.flags.f_contiguous and not kept.any()
    kept[...] = 1
    assert gd.evaluate("sum(kept)") == 300000
    gd.close()


# -- destinations -------------------------------------------------------------------------------

def test_out_is_written_and_returned(gd):
    a = values(20, 30)
    for out in (np.empty((20, 30)), gd.empty((20, 30)), np.empty((20, 30), order="F"),
                np.empty((40, 60))[::2, ::-2], np.empty((20, 30), ">f8"), np.empty((30, 20)).T,
                gd.empty((40, 60))[1::2, ::2], np.empty((20, 30), "f4")):
        r = gd.evaluate("a * 2", a=a, out=out)
        assert r is out
        assert np.array_equal(out, (a * 2).astype(out.dtype))


def test_out_without_axes(gd):
    a, out = values(9), np.empty(())
    assert gd.evaluate("max(a)", a=a, out=out) is out
    assert out == a.max()


def test_out_takes_what_numpy_would_cast(gd):
    a = np.arange(6, dtype="i4")
    assert gd.evaluate("a + 1", a=a, out=np.empty(6, "f4")).dtype == np.float32
    with pytest.raises(gd.errors.BadDtype, match="cannot be stored"):
        gd.evaluate("a + 0.5", a=a, out=np.empty(6, "i8"))
    with pytest.raises(gd.errors.BadDtype):
        gd.evaluate("a + 0.5", a=a, out=np.empty(6, "?"))


@pytest.mark.parametrize("shape", [(5,), (7,), (6, 1), (1, 6), ()])
def test_out_has_exactly_the_shape(gd, shape):
    with pytest.raises(gd.errors.BadShape) as caught:
        gd.evaluate("a + 1", a=np.zeros(6), out=np.empty(shape))
    assert isinstance(caught.value, ValueError)


def test_in_place(gd):
    for a in (values(1000), gd.asarray(values(1000)), values(300000), gd.asarray(values(300000)),
              values(2000)[::2]):
        want = a * 3 + 1
        assert gd.evaluate("a * 3 + 1", a=a, out=a) is a
        assert_same(a, want)


def test_overlap_that_is_not_in_place(gd):
    for n in (1000, 300000):
        for memory in (values(n), gd.asarray(values(n))):
            before = memory.copy()
            with pytest.raises(gd.errors.OverlappingOutput) as caught:
                gd.evaluate("a + 1", a=memory[:-1], out=memory[1:])
            assert isinstance(caught.value, ValueError)
            assert_same(memory, before)
            r = gd.evaluate("a + 1", a=memory[::2], out=memory[1::2])  # apart, between each other
            assert_same(r, before[::2] + 1)


def test_outputs_that_cannot_be_written(gd, folder):
    a = values(6)
    frozen = np.empty(6)
    frozen.flags.writeable = False
    repeated = np.lib.stride_tricks.as_strided(np.empty(1), (6,), (0,))
    windows = np.lib.stride_tricks.as_strided(np.empty(8), (3, 2), (8, 8))
    np.save(folder / "r.npy", a)
    for out, error in ((frozen, gd.errors.ReadOnly),
                       (np.broadcast_to(np.empty(1), 6), gd.errors.ReadOnly),
                       (repeated, gd.errors.RequestError),
                       (np.load(folder / "r.npy", mmap_mode="r"), gd.errors.ReadOnly),
                       ([0] * 6, gd.errors.BadArgument), ("r.npy", gd.errors.BadArgument),
                       (np.empty(6, "f2"), gd.errors.BadDtype),
                       (np.empty(6, "O"), gd.errors.BadDtype),
                       (np.ma.zeros(6), gd.errors.Unsupported)):
        with pytest.raises(error):
            gd.evaluate("a + 1", a=a, out=out)
    with pytest.raises(gd.errors.RequestError):
        gd.evaluate("a + 1", a=values(3, 2), out=windows)


def test_to_makes_a_file(gd, folder):
    a = values(30, 40)
    for name in ("r.npy", "r.h5:/d", "r.raw"):
        made = gd.evaluate("a * 2", a=a, to=f"{folder}/{name}")
        assert made.shape == (30, 40) and made.dtype == np.float64
        assert_same(np.asarray(made), a * 2)
    assert_same(np.load(folder / "r.npy"), a * 2)
    assert_same(np.fromfile(folder / "r.raw").reshape(30, 40), a * 2)
    made = gd.evaluate("a * 3", a=np.asfortranarray(a), to=folder / "f.npy")
    assert_same(np.load(folder / "f.npy"), a * 3)
    low, r = gd.evaluate(["min(a)", "a + 1"], a=a, to=[None, folder / "s.npy"])
    assert low == a.min()
    assert_same(np.load(folder / "s.npy"), a + 1)


def test_to_and_out_exclude_each_other(gd, folder):
    with pytest.raises(gd.errors.BadArgument):
        gd.evaluate("a + 1", a=values(3), out=np.empty(3), to=folder / "r.npy")
    with pytest.raises(gd.errors.BadArgument):
        gd.evaluate("a + 1", a=values(3), to=3)
    with pytest.raises(FileNotFoundError):
        gd.evaluate("a + 1", a=values(3), to=folder / "no" / "r.npy")
    assert not os.listdir(folder)


def test_engine_and_label(gd):
    a = values(5)
    assert_same(gd.evaluate("a + 1", a=a, engine="cpu", priority=3, label="mine"), a + 1)
    with pytest.raises(gd.errors.RequestError):
        gd.evaluate("a + 1", a=a, engine="abacus")
    with pytest.raises(gd.errors.NoEngine, match="cuda:15 is not there"):
        gd.evaluate("a + 1", a=a, engine="cuda:15")


# -- the session --------------------------------------------------------------------------------

def test_threads_that_connect_at_once_make_one_session(gd, daemon):
    gd.close()
    barrier, sessions = threading.Barrier(8), []

    def ask():
        from gpuarrayd import _session
        barrier.wait()
        sessions.append(_session.current())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, sessions))) == 1
    assert gd.info()["counts"]["sessions"] == 1


def test_a_forked_child_has_a_session_of_its_own(gd):
    a = gd.asarray(values(1000))
    r = gd.evaluate("a + 1")
    child = os.fork()
    if child == 0:
        ok = False
        try:
            ok = np.array_equal(gd.evaluate("a + 1"), r) and gd.info()["counts"]["sessions"] == 2
        finally:
            os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert_same(gd.evaluate("a + 1"), r)


def test_info_stats_and_ops(gd):
    info = gd.info()
    assert info["engines"][0]["name"] == "cpu" and info["client"]["numpy"] == np.__version__
    assert gd.stats()["sessions"]["open"] == 1
    assert any(op["name"] == "sqrt" for op in gd.ops()) and gd.ops() is gd.ops()


def test_closing_twice_and_connecting_again(gd, daemon):
    gd.close()
    gd.close()
    assert gd.evaluate("1 + 1") == 2
    gd.connect(daemon.socket)
    with pytest.raises(gd.errors.NoDaemon):
        gd.connect("/nonexistent/socket", start=False, timeout=1)
    assert gd.evaluate("1 + 2") == 3
