"""Moving windows and kernels: against NumPy's windows of what numpy.pad pads, of every function, mode,
dtype and shape, wherever the array lies and however it is cut."""

import json

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import wire
from catalogue import NUMPY_2
from conftest import ENGINE, Daemon

needs_numpy_2 = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes")
pytestmark = [needs_numpy_2]

MODES = ("edge", "constant", "reflect", "symmetric", "wrap")
RANK = 2  # from the end


def ranked(found, axis):
    line = np.sort(found.reshape(*found.shape[:found.ndim - len(axis)], -1), axis=-1)
    one = line[..., max(line.shape[-1] - RANK, 0)]
    if found.dtype.kind != "f":
        return one
    return np.where(np.isnan(line[..., -1]), np.nan, one).astype(found.dtype)


OPS = {"sum": np.sum, "mean": np.mean, "min": np.min, "max": np.max, "std": np.std,
       "median": np.median, "rank": ranked}


def windows(u, sizes, mode, origins=None, value=0):
    """At each place, behind the axes of u, those of the window."""
    befores = [size // 2 + o for size, o in zip(sizes, origins or [0] * u.ndim)]
    more = {"constant_values": value} if mode == "constant" else {}
    padded = np.pad(u, [(b, size - 1 - b) for b, size in zip(befores, sizes)], mode, **more)
    return sliding_window_view(padded, sizes)


def wanted(op, found):
    axes = tuple(range(found.ndim // 2, found.ndim))
    if found.dtype == np.float32 and op in ("sum", "mean", "std"):
        return OPS[op](found.astype("f8"), axis=axes).astype("f4")
    return OPS[op](found, axis=axes)


def check(got, want, largest, text):
    assert got.dtype == want.dtype and got.shape == want.shape, text
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=text)
        return
    single = want.dtype == np.float32
    np.testing.assert_allclose(got, want, 2e-6 if single else 1e-12,
                               (1e-7 if single else 1e-14) * largest, err_msg=text)


def drawn(rng, case):
    ndim = 1 + case % 3
    shape = tuple(map(int, rng.choice({1: [1, 7, 40, 900], 2: [1, 2, 19, 64], 3: [1, 3, 17]}[ndim],
                                      ndim)))
    dtype = ("f4", "f8", "i2", "u1", "?", "i8", "u8", "i1", "u4")[case % 9]
    u = rng.normal(size=shape) * 50
    u = (u > 0) if dtype == "?" else (np.abs(u) if dtype[0] == "u" else u).astype(dtype)
    if dtype[0] == "f" and case % 2 and u.size > 3:
        u.flat[u.size // 2], u.flat[u.size // 3] = np.nan, np.inf
    sizes = tuple(map(int, rng.choice([1, 2, 3, 5, 12] if ndim < 3 else [1, 2, 3, 4], ndim)))
    return np.asarray(u, order="CF"[case // 7 % 2]), sizes, MODES[case % 5]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_every_function_shape_dtype_and_mode(w):
    rng = np.random.default_rng(1)
    for case in range(160):
        u, sizes, mode = drawn(rng, case)
        origins = [int(rng.integers(-(s // 2), s - s // 2)) if case % 4 == 0 else 0 for s in sizes]
        found = windows(u, sizes, mode, origins)
        op = sorted(OPS)[case % 7]
        one = len(sizes) == 1
        rank = f"{-min(RANK, np.prod(sizes))}, " if op == "rank" else ""
        text = (f"window_{op}(u, {rank}{sizes[0] if one else sizes}, mode={mode}, "
                f"origin={origins[0] if one else tuple(origins)})")
        finite = np.abs(u[np.isfinite(u)].astype("f8"))
        largest = finite.max(initial=1) * float(np.prod(sizes))
        check(w.compute(text, u=u), wanted(op, found), largest, f"{text} of {u.shape} {u.dtype}")


LINES = ((5, range(90, 104)), (3, (1, 2, 3)), (40, (7, 119, 120, 139, 140, 141)),
         (65, (33, 64, 65, 66, 200)), (301, (150, 301, 640)))


def shown(region, u, gap, is_backwards):
    """The rows of u in shared memory, with elements between them that are none of theirs."""
    n_rows, length = u.shape
    whole = region.array(u.dtype, (n_rows, length + gap))
    whole[:] = 77
    rows = whole[::-1] if is_backwards else whole
    rows[:, gap // 2:gap // 2 + length] = u
    first = rows[:, gap // 2:gap // 2 + length]
    at = first.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return wire.described(u, region.at(at), first.strides)


@pytest.mark.parametrize("mode", MODES)
def test_along_lines_that_are_read_where_they_lie(w, mode):
    """Whichever piece of a line the end is in, of items of each size, with gaps between lines and
    backwards. Sums of whole numbers are exact, in whichever order they are added."""
    rng = np.random.default_rng(8)
    region = wire.Region(w, 1 << 18)
    for case, (size, length) in enumerate((s, n) for s, lengths in LINES for n in lengths):
        dtype = ("f4", "f8", "i2", "u1", "i8")[case % 5]
        u = rng.integers(0, 99, (19, length)).astype(dtype)
        described = shown(region, u, case % 4 * 3, case % 3 == 2)
        for origin in (-(size // 2), 0, (size - 1) // 2):
            words = f"{size}, axis=1, mode={mode}, value=3, origin={origin}".replace(
                "value=3, " if mode != "constant" else "", "")
            found = windows(u, (1, size), mode, (0, origin), 3)
            for op in ("max", "min", "sum") if dtype[0] == "f" else ("max", "min"):
                got = w.compute(f"window_{op}(u, {words})", u=described)
                np.testing.assert_array_equal(got, wanted(op, found), f"{op} {words} of {length} {dtype}")


@pytest.mark.skipif(ENGINE != "cpu", reason="a device makes no windows that are so large")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_places_in_large_windows_of_every_dtype(w):
    """Of elements that differ in any bit, and of a few values, beside both zeros, infinities and NaN."""
    rng = np.random.default_rng(6)
    for dtype in ("f4", "f8", "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        for sizes in ((13, 13), (31, 33), (1, 302)):
            u = rng.integers(0, 256, (6, 37 * np.dtype(dtype).itemsize), "u1")
            u = u.view(dtype) if dtype != "?" else u < 128
            if dtype[0] == "f":
                u[rng.random(u.shape) < 0.3] = -0.0
                u = np.select([np.isnan(u), rng.random(u.shape) < 0.2], [-np.inf, 0], u)
                u[0, 0] = np.nan if sizes[0] == 1 else np.inf
            elif dtype != "?" and sizes[0] == 13:
                u = u % 5
            line = np.sort(windows(u, sizes, "edge").reshape(*u.shape, -1), axis=-1)
            for place in (0, 70, line.shape[-1] - 1):
                want = np.where(line[..., -1] != line[..., -1], line[..., -1], line[..., place])
                got = w.compute(f"window_rank(u, {place}, {sizes})", u=u)
                np.testing.assert_array_equal(got, want, f"{place} of {sizes} {dtype}")


def test_kernels(w):
    rng = np.random.default_rng(2)
    for case in range(60):
        u, sizes, mode = drawn(rng, 2 * case)
        kernel = rng.normal(size=sizes) if case % 2 else rng.integers(-9, 9, sizes)
        found = windows(u, sizes, mode)
        if u.dtype.kind != "f" and kernel.dtype.kind == "i":
            wide = np.uint64 if u.dtype.kind == "u" else np.int64
            want = (found.astype(wide) * kernel.astype(wide)).sum(tuple(range(u.ndim, 2 * u.ndim)))
        else:
            want = (found.astype("f8") * kernel).sum(tuple(range(u.ndim, 2 * u.ndim)))
            want = want.astype(u.dtype if u.dtype.kind == "f" else "f8")
        largest = float(np.abs(u.astype("f8")).max(initial=1) * np.abs(kernel).sum())
        check(w.compute(f"correlate(u, {kernel.tolist()}, mode={mode})", u=u), want, largest, mode)
        turned = kernel[(slice(None, None, -1),) * u.ndim]
        origins = tuple(s % 2 - 1 for s in sizes)  # of an even kernel one element more lies behind
        got = w.compute(f"convolve(u, {turned.tolist()}, mode={mode}, "
                        f"origin={origins[0] if u.ndim == 1 else origins})", u=u)
        check(got, want, largest, mode)


def test_whole_numbers_of_kernels_are_exact(w):
    rng = np.random.default_rng(5)
    big = [2**53 + 1, -2**63, 2**63 - 1, -1, 3]
    for dtype, kernel in (("i8", big), ("u8", [2**64 - 1, *big[1:]])):
        u = rng.integers(0, 2**62, 40).astype(dtype) * np.asarray(2, dtype)
        padded = np.pad(u, 2, "edge").astype("O")
        want = [sum(padded[i + k] * kernel[k] for k in range(5)) % 2**64 for i in range(u.size)]
        got = w.compute(f"correlate(u, {kernel})", u=u)
        assert got.dtype == u.dtype and got.astype("u8").tolist() == want


def test_of_expressions_of_windows_and_with_reductions(w):
    rng = np.random.default_rng(3)
    u, v = rng.normal(size=(60, 110)), rng.normal(size=110)
    product = u * v - u.mean()
    inner = wanted("mean", windows(product, (5, 1), "reflect"))
    outer = wanted("max", windows(inner + u, (1, 4), "wrap"))
    text = ("inner = window_mean(u*v - mean(u), 5, axis=0, mode=reflect); "
            "outer = window_max(inner + u, (1, 4), mode=wrap); ")
    np.testing.assert_allclose(w.compute(text + "u - outer", u=u, v=v), u - outer, 1e-11, 1e-11)
    np.testing.assert_allclose(w.compute(text + "sum(outer * v, axis=0)", u=u, v=v),
                               (outer * v).sum(axis=0), 1e-9)
    np.testing.assert_allclose(w.compute("window_sum(index(0) * u, 3, axis=1)", u=u),
                               wanted("sum", windows(np.arange(60)[:, None] * u, (1, 3), "edge")),
                               1e-11, 1e-11)
    np.testing.assert_allclose(w.compute("u + window_sum(v, 7)", u=u, v=v),
                               u + wanted("sum", windows(v, (7,), "edge")), 1e-11, 1e-11)
    assert w.compute("max(window_std(u*0 + 1e9 + 0.1, 9))", u=u) == 0  # nothing is cancelled


def test_windows_larger_than_the_axis(w):
    u = np.arange(12.0).reshape(3, 4) ** 2
    for mode in MODES:
        for sizes in ((9, 23), (1, 40), (31, 2)):
            np.testing.assert_allclose(w.compute(f"window_mean(u, {sizes}, mode={mode})", u=u),
                                       wanted("mean", windows(u, sizes, mode)), 1e-13)


def test_no_sum_drifts(w):
    """A running sum would keep what a large element has taken of the small ones."""
    u = np.ones(7000, "f8")
    u[500], u[501] = 1e300, -1e300
    got = w.compute("window_sum(u, 31)", u=u)
    assert (got[600:] == 31).all() and (got[:400] == 31).all()


def test_what_arithmetic_meets_is_counted_once(daemon, folder):
    """Though what lies around a grain is computed with each of several."""
    u = np.random.default_rng(4).integers(0, 3, (700, 500)).astype("i4")
    np.save(f"{folder}/u.npy", u)
    for expr in ("window_max(7 // u, 3)", "window_max(window_min(7 // u, 5, mode=wrap), 3, mode=wrap)",
                 "sum(window_sum(window_max(u, 3) - 7 // u, [9, 1], mode=wrap))"):
        told = daemon.ctl("run", "--json", expr, f"u={folder}/u.npy", "-o", f"{folder}/o.npy").stdout
        assert json.loads(told)["warnings"]["divide_by_zero"] == (u == 0).sum(), expr


def test_any_cut_gives_the_same_bits(folder):
    """Of files and memory, rows and columns as axes, chunks, in pools of which windows take all."""
    h5py = pytest.importorskip("h5py")
    u = np.random.default_rng(4).normal(size=(560, 700)).astype("f4")
    np.save(f"{folder}/rows.npy", u)
    np.save(f"{folder}/columns.npy", np.asfortranarray(u))
    with h5py.File(f"{folder}/u.h5", "w") as file:
        file.create_dataset("packed", data=u, chunks=(100, 500), compression="gzip",
                            compression_opts=1)
    texts = {"a": "window_mean(u * 2, (5, 9), mode=wrap)", "b": "window_std(u, 301, axis=0)",
             "c": "window_max(u - 1, 201, axis=1, mode=reflect)",
             "d": "correlate(window_mean(u, 3), [0.1, 0.3, -0.2], axis=0, mode=wrap)",
             "e": "window_sum(u, 901, axis=0, mode=wrap)", "s": "sum(window_mean(u, 25), axis=0)"}
    found = {}
    for pool, threads in (("6M", 1), ("64M", 3)):
        daemon = Daemon(pool=pool, threads=threads)
        for source in ("rows.npy", "columns.npy", "u.h5:/packed"):
            names = [name for name in texts if name not in ("be" if "h5" in source else "")]
            words = [word for name in names for word in ("-o", f"{name}={folder}/{name}.npy")]
            daemon.ctl("run", "; ".join(f"{name} = {texts[name]}" for name in names),
                       f"u={folder}/{source}", *words)
            for name in names:
                got = np.load(f"{folder}/{name}.npy")
                one = found.setdefault(name, got)
                np.testing.assert_allclose(got, one, 1e-4, 1e-4)
                assert name == "s" or got.tobytes() == one.tobytes(), (name, source, pool)
        daemon.stop()
    np.testing.assert_allclose(found["e"][:, :9],
                               wanted("sum", windows(u[:, :9], (901, 1), "wrap")), 1e-5, 1e-4)


@pytest.mark.skipif(ENGINE != "cpu", reason="a device makes no windows that are so large")
def test_what_windows_refuse(daemon, w, folder):
    """Streams, in place, and too much at a time; what the compiler refuses is in its unit test."""
    region = wire.Region(w, 4096)
    source = wire.described(np.zeros((4, 5)), region.at())
    for expr in ("window_max(u, 3)", "u + window_max(u, 3)"):
        with pytest.raises(wire.Error) as caught:
            w.run(expr, u=source, to=source)
        assert caught.value.code == "overlapping-output"
    np.save(f"{folder}/u.npy", np.zeros((4, 5)))
    with open(f"{folder}/u.npy", "rb") as file:
        failed = daemon.ctl("run", "window_mean(u, 3)", "u=-", stdin=file, check=False)
    assert failed.returncode == 1 and "bad-argument" in failed.stderr, failed.stderr
    arrays = {"u": {"dtype": "<f8", "shape": [4000, 5000]}}
    for expr, engine, code in (("window_mean(u, 300)", "auto", "limit-exceeded"),
                               ("window_median(u, 13)", "cuda", "no-engine")):
        with pytest.raises(wire.Error) as caught:
            w.call("job.plan", outputs=[{"expr": expr}], args=arrays, engine=engine)
        assert caught.value.code == code, caught.value
    # What windows take is part of the plan: many places of a rank are no small job's.
    seconds = [w.call("job.plan", outputs=[{"expr": f"window_{text}"}],
                      args={"u": {"dtype": "<f8", "shape": [1000, 1000]}})["seconds"]
               for text in ("mean(u, 3)", "median(u, 31)")]
    assert seconds[1] > 100 * seconds[0], seconds
    # What one element needs is told before anything is cut; an axis without windows has no reach.
    deep = np.ones((1, 5, 11, 2), "f4")
    with pytest.raises(wire.Error) as caught:
        w.compute("window_min(window_min(u, 200, axis=0), 200, axis=2)", u=deep)
    assert caught.value.code == "limit-exceeded", caught.value
    assert w.compute("sum(window_sum(u, [5, 1], mode=wrap), axis=0)", u=np.ones((3, 1)))[0] == 15
