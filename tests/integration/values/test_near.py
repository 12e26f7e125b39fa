"""near(u, -1, 0): against numpy.pad and slices, of every mode, dtype, order and shape, wherever the
array lies and however it is cut."""

import contextlib
import itertools

import numpy as np
import pytest

import wire
from catalogue import NUMPY_2
from conftest import ENGINE

pytestmark = [pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes")]

MODES = ("edge", "constant", "reflect", "symmetric", "wrap")


def padded(u, offsets, mode, value=0):
    if u.size == 0:
        return u
    widths = [(max(0, -o), max(0, o)) for o in offsets]
    more = {"constant_values": value} if mode == "constant" else {}
    whole = np.pad(u, widths, mode, **more)
    return whole[tuple(slice(before + o, before + o + n)
                       for (before, _), o, n in zip(widths, offsets, u.shape))]


def text(name, offsets, mode, value=0):
    more = f", value={value}" if mode == "constant" else ""
    return f"near({name}, {', '.join(map(str, offsets))}, mode={mode}{more})"


def offsets_of(rng, shape, mode):
    most = [{"reflect": n - 1, "symmetric": n, "wrap": 2 * n}.get(mode, n + 2) for n in shape]
    most = [max(0, min(m, int(rng.choice([2, 99])))) for m in most]
    return [int(rng.integers(-m, m + 1)) for m in most]


def test_of_every_shape_and_mode(w):
    rng = np.random.default_rng(1)
    lengths = {1: [0, 1, 2, 5, 600], 2: [1, 2, 3, 70], 3: [1, 2, 4, 17], 4: [1, 2, 5]}
    for case in range(160):
        mode, dtype = MODES[case % 5], ("f4", "f8", "i2", "u1", "?", ">i4")[case % 6]
        shape = tuple(map(int, rng.choice(lengths[1 + case // 5 % 4], 1 + case // 5 % 4)))
        value = 1 if dtype == "?" else 7
        u = np.asarray((rng.normal(size=shape) * 9).astype(dtype), order="CF"[case // 20 % 2])
        v = (rng.normal(size=shape[-1:]) * 9).astype(dtype)  # broadcasts
        a, b = offsets_of(rng, shape, mode), offsets_of(rng, shape, mode)
        near_a, near_b = padded(u, a, mode, value), padded(u | u if dtype == "?" else u + v, b, mode,
                                                           value)
        whole = "u | u" if dtype == "?" else "u + v"
        for expr, wanted in ((text("u", a, mode, value), near_a),
                             (text(f"({whole})", b, mode, value), near_b),
                             (f"u ^ {text('u', a, mode, value)}" if dtype in "?u1i2>i4" else
                              f"u - {text('u', a, mode, value)}",
                              u ^ near_a if dtype in "?u1i2>i4" else u - near_a)):
            got = w.compute(expr, u=u, v=v)
            assert got.shape == wanted.shape, (expr, shape)
            np.testing.assert_array_equal(got, wanted, err_msg=f"{expr} of {shape} {dtype}")


STENCIL = "u + 0.25*({0} + {1} + {2} + {3} - 4*u)"
STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1))


def stencil(u, mode):
    around = [padded(u, step, mode) for step in STEPS]
    return u + np.float32(0.25) * (around[0] + around[1] + around[2] + around[3] - 4 * u)


def test_the_job_says_what_is_beyond_the_ends(daemon, w, folder):
    rng = np.random.default_rng(7)
    u = rng.integers(-9, 9, (7, 9))
    np.save(f"{folder}/u.npy", u)
    for mode in MODES:
        more = {"value": 5} if mode == "constant" else {}
        got = w.call("job.run", args={"u": wire.argument(u)}, beyond={"mode": mode, **more}, outputs=[
            {"expr": "near(u, 2, -1)"}, {"expr": "near(u, 2, 0, mode=edge)"},
            {"expr": "window_max(u, 3)"}])["outputs"]
        wanted = padded(u, (2, -1), mode, 5)
        np.testing.assert_array_equal(wire.result_array(got[0]), wanted)
        np.testing.assert_array_equal(wire.result_array(got[1]), padded(u, (2, 0), "edge"))
        around = [padded(u, (i, k), mode, 5) for i in (-1, 0, 1) for k in (-1, 0, 1)]
        np.testing.assert_array_equal(wire.result_array(got[2]), np.max(around, axis=0))
        word = "constant=5" if mode == "constant" else mode
        daemon.ctl("run", "near(u, 2, -1)", f"u={folder}/u.npy", "--mode", word, "-o",
                   f"{folder}/o.npy")
        np.testing.assert_array_equal(np.load(f"{folder}/o.npy"), wanted)
    daemon.ctl("run", "--repeat", 11, "u + near(u, 0, 1)", f"u={folder}/u.npy", "--mode", "wrap",
               "-o", f"{folder}/o.npy")
    for _ in range(11):
        u = u + np.roll(u, -1, 1)
    np.testing.assert_array_equal(np.load(f"{folder}/o.npy"), u)
    for wrong in ("wrp", "constant=x", "wrap=3"):
        failed = daemon.ctl("run", "u", f"u={folder}/u.npy", "--mode", wrong, check=False)
        assert failed.returncode == 2 and f"not '{wrong}'" in failed.stderr


def check_offsets(w, most):
    """Of one box: in rows that are longer and shorter than what is computed at a time."""
    rng = np.random.default_rng(4)
    for shape, reach, mode in (((7, 2100), 4, "reflect"), ((40, 50), 11, "wrap"),
                               ((9, 10, 11), 2, "edge")):
        u = rng.integers(-9, 10, shape).astype("f4")
        steps = list(itertools.product(range(-reach, reach + 1), repeat=len(shape)))
        far = [n // 2 for n in shape] if mode == "wrap" else shape
        steps = [s for s in steps if all(abs(o) <= m for o, m in zip(s, far))][:most]
        whole = np.pad(u, reach, mode)
        around = [whole[tuple(slice(reach + o, reach + o + n) for o, n in zip(step, shape))]
                  for step in steps]
        expr = "+".join(f"{i % 7}*near(u,{','.join(map(str, step))},mode={mode})"
                        for i, step in enumerate(steps))
        np.testing.assert_array_equal(w.compute(expr, u=u),
                                      sum(i % 7 * a for i, a in enumerate(around)), err_msg=mode)


def test_hundreds_of_offsets(w):
    check_offsets(w, 500 if ENGINE == "cpu" else 150)


def test_of_places_and_random_numbers(w):
    """What is made of an element's place is there at the neighbour's, too."""
    rng = np.random.default_rng(5)
    shape = (21, 34)
    u = rng.normal(size=shape)
    drawn = "(u + normal(0, 1, size=(21, 34), seed=3)*index(1) - index(-2))"
    whole = w.compute(drawn, u=u)
    for case in range(15):
        mode = MODES[case % 5]
        step = offsets_of(rng, shape, mode)
        got = w.compute(f"u - {text(drawn, step, mode, 7)}", u=u)
        np.testing.assert_array_equal(got, u - padded(whole, step, mode, 7), err_msg=f"{step} {mode}")


def random_stencil(rng, mode):
    """Its text, and what it is of an array: sums of whole numbers, which are exact."""
    steps = [tuple(map(int, rng.integers(-6, 7, 2))) for _ in range(rng.integers(2, 12))]
    weights = list(map(int, rng.integers(-4, 5, len(steps))))
    expr = "+".join(f"{k}*{text('u', s, mode)}" for k, s in zip(weights, steps))
    return expr, lambda u: sum(np.float32(k) * padded(u, s, mode) for k, s in zip(weights, steps))


def check_files(folder, start, pools, cases):
    """Of many grains: rows and columns as axes, and what is further than a grain is long; stencils
    of any shape: the same bytes however they are cut."""
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(2)
    u = (rng.integers(-999, 1000, (700, 1500))).astype("f4")
    np.save(f"{folder}/c.npy", u)
    np.save(f"{folder}/f.npy", np.asfortranarray(u))
    with h5py.File(f"{folder}/u.h5", "w") as file:
        file.create_dataset("grid", data=u, chunks=(64, 90))
        file.create_dataset("packed", data=u, chunks=(100, 1500), compression="gzip",
                            compression_opts=1)
    sources = ("c.npy", "u.h5:/grid", "f.npy", "u.h5:/packed")
    found = {}
    for pool, threads in pools:
        daemon = start(pool=pool, threads=threads)
        for case in cases:
            mode, source = MODES[case % 5], sources[case * 3 // 2 % 4]
            near = STENCIL.format(*(text("u", step, mode) for step in STEPS))
            some, some_of = random_stencil(np.random.default_rng(case), mode)
            more = f"s = sum(abs(u - {text('u', (0, 1), mode)}), axis=0); r = {some}"
            if source.endswith("npy"):  # of others a box would be too large
                more += f"; x = {text('u', (600, -1400), mode)} - {text('u', (0, 3), mode)} + u"
            words = [word for name in "nsrx"[:2 + more.count(";")]
                     for word in ("-o", f"{name}={folder}/{name}.npy")]
            daemon.ctl("run", f"n = {near}; {more}", f"u={folder}/{source}", *words)
            wanted = {"n": stencil(u, mode),
                      "s": np.abs(u - padded(u, (0, 1), mode)).sum(axis=0),
                      "r": some_of(u),
                      "x": padded(u, (600, -1400), mode) - padded(u, (0, 3), mode) + u}
            for name in "nsrx"[:2 + more.count(";")]:
                got = np.load(f"{folder}/{name}.npy")
                np.testing.assert_array_equal(got, wanted[name], err_msg=f"{name} {mode} {source}")
                assert found.setdefault((case, name), got.tobytes()) == got.tobytes()


def test_files_and_memory_in_any_pool(folder, start):
    check_files(folder, start, (("6M", 1), ("64M", 2)), (*range(10), 29))


def test_what_near_refuses(daemon, w, folder):
    """In place, and streams; what the compiler refuses is in its unit test."""
    size = 4 * 5 * 8
    region = wire.Region(w, 4096)
    source = wire.described(np.zeros((4, 5)), region.at())
    for expr, is_refused in (("u + near(u, 1, 0)", True), ("u + near(v, 1, 0)", False)):
        with pytest.raises(wire.Error) if is_refused else contextlib.nullcontext() as caught:
            w.run(expr, u=source, v=wire.described(np.zeros((4, 5)), region.at(size)), to=source)
        assert not is_refused or caught.value.code == "overlapping-output"
    np.save(f"{folder}/u.npy", np.zeros((4, 5)))
    with open(f"{folder}/u.npy", "rb") as file:
        failed = daemon.ctl("run", "near(u, 1, 0)", "u=-", stdin=file, check=False)
    assert failed.returncode == 1 and "bad-argument" in failed.stderr, failed.stderr
