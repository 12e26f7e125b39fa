"""repeat(n, u = ...): n steps in one job, to the bit those of NumPy one after the other, of every
mode, dtype and shape, however the arrays are cut."""

import itertools
import json

import numpy as np
import pytest

from catalogue import NUMPY_2
from conftest import Daemon
from test_near import MODES, padded, text

pytestmark = [pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes")]


def around(ndim, reach=1):
    return [tuple(o * (i == axis) for i in range(ndim)) for axis in range(ndim)
            for o in (-1, reach)]


def steps(n, u, mode, k):
    for _ in range(n):
        total = padded(u, around(u.ndim)[0], mode)
        for step in around(u.ndim)[1:]:
            total = total + padded(u, step, mode)
        u = u + k * (total - np.asarray(2 * u.ndim, u.dtype) * u)
    return u


def stencil(ndim, mode, k="k"):
    total = " + ".join(text("u", step, mode) for step in around(ndim))
    return f"u = u + {k}*({total} - {2 * ndim}*u)"


def test_of_every_shape_and_mode(gd):
    rng = np.random.default_rng(1)
    shapes = [(1,), (7,), (9000,), (1, 5), (5, 9), (300, 500), (37, 1111), (2, 3, 4), (20, 30, 40),
              (3, 4, 5, 6), (13000,), (130, 140)]
    for shape, mode, n in itertools.product(shapes, MODES, (1, 2, 7)):
        if mode == "reflect" and min(shape) == 1:
            continue
        u = rng.standard_normal(shape).astype("f4")
        got = gd.evaluate(f"repeat({n}, {stencil(len(shape), mode)})", u=u, k=np.float32(0.1))
        np.testing.assert_array_equal(got, steps(n, u, mode, np.float32(0.1)),
                                      err_msg=f"{shape} {mode} {n}")


def test_of_every_dtype_and_order(gd):
    rng = np.random.default_rng(2)
    for dtype, order in itertools.product(("f8", ">f4", "i8", "u2", "i1"), "CF"):
        u = np.asarray(rng.integers(0, 100, (130, 250)).astype(dtype), order=order)
        got = gd.evaluate(f"repeat(4, {stencil(2, 'wrap', 3)})", u=u)
        np.testing.assert_array_equal(got, steps(4, u, "wrap", np.asarray(3, dtype)))
    life = rng.random((90, 70)) < 0.4
    count = "+".join(f"int8({text('u', (i, k), 'wrap')})" for i in (-1, 0, 1) for k in (-1, 0, 1)
                     if i or k)
    want = life
    for _ in range(6):
        n = sum(np.roll(want, (i, k), (0, 1)).astype("i1") for i in (-1, 0, 1) for k in (-1, 0, 1)
                if i or k)
        want = (n == 3) | (want & (n == 2))
    got = gd.evaluate(f"n(u) = {count}; repeat(6, u = (n(u) == 3) | (u & (n(u) == 2)))", u=life)
    np.testing.assert_array_equal(got, want)


def test_axes_of_length_1(gd):
    """Steps that read no neighbours are taken as if the memory were one row, whose axis may be that."""
    rng = np.random.default_rng(9)
    for shape in ((40, 1), (1, 40), (5, 22, 1), (3, 1, 4), (5, 1, 1), (1, 1, 1), (30000, 1)):
        for order in "CF":
            u, v = (np.asarray(x, order=order) for x in rng.integers(0, 50, (2, *shape)))
            got = gd.evaluate(["repeat(3, u = u + v, v = u)", "repeat(3, u = u + v, v = u)[1]",
                               "-repeat(2, v = 3*v)"], u=u, v=v)
            for one, want in zip(got, (3*u + 2*v, 2*u + v, -9*v), strict=True):
                np.testing.assert_array_equal(one, want, err_msg=f"{shape} {order}")


def test_several_arrays_and_what_else_a_step_reads(gd):
    """All at once; an array that stays, broadcasts or is near; a number of another pass; places."""
    rng = np.random.default_rng(3)
    u, f = rng.standard_normal((2, 150, 260)).astype("f4")
    row = rng.standard_normal(260).astype("f4")
    p, q = u, np.zeros_like(u)
    for _ in range(5):
        p, q = (p + np.float32(0.5) * q + row,
                q + np.float32(0.1) * (padded(p, (1, -2), "wrap") - p)
                + padded(f, (0, 2), "edge") * f + (np.arange(150)[:, None] % 3).astype("f4")
                - f.max())
    expr = ("v = 0*u; repeat(5, u = u + float32(0.5)*v + row, v = v + float32(0.1)*"
            "(near(u, 1, -2, mode=wrap) - u) + near(f, 0, 2)*f + float32(index(0) % 3) - max(f))")
    for k, want in enumerate((p, q)):
        np.testing.assert_array_equal(gd.evaluate(f"{expr}[{k}]", u=u, f=f, row=row), want)
    one = steps(3, u, "edge", np.float32(0.1))
    what = f"repeat(3, {stencil(2, 'edge')})"
    for expr, want in ((f"near({what}, 0, 2, mode=reflect) - {what}",
                        padded(one, (0, 2), "reflect") - one),
                       (f"max({what}, axis=0)", one.max(axis=0)),
                       (f"{what} - max({what})", one - one.max()),
                       (f"cumsum(abs({what}), axis=1)",
                        np.cumsum(abs(one), axis=1, dtype="f8").astype("f4"))):
        np.testing.assert_array_equal(gd.evaluate(expr, u=u, k=np.float32(0.1)), want, err_msg=expr)
    np.testing.assert_array_equal(
        gd.evaluate(f"stack + {what}", u=u, k=np.float32(0.1), stack=np.ones((3, 1, 1), "f4")),
        np.ones((3, 1, 1), "f4") + one)


def test_steps_that_each_element_takes_by_itself_in_steps_of_all(gd):
    u = np.random.default_rng(6).random((90, 140))
    want = u
    for _ in range(3):
        x = padded(want, (0, 1), "wrap")
        for _ in range(5):
            x = np.where(x > 2, x, x * x + want)
        want = x / (1 + x)
    got = gd.evaluate("step(x, u) = iterate(5, x = x*x + u, until = x > 2); r(x) = x / (1 + x);"
                      "repeat(3, u = r(step(near(u, 0, 1, mode=wrap), u)))", u=u)
    np.testing.assert_array_equal(got, want)


def test_what_no_step_reads_is_read_at_the_beginning_alone(gd):
    u, v = np.random.default_rng(8).random((2, 40))
    for n, want in ((1, v), (2, u), (3, v)):
        np.testing.assert_array_equal(gd.evaluate(f"repeat({n}, u = v, v = u)"), want)
    np.testing.assert_array_equal(gd.evaluate("repeat(2, u = near(v, 1))", u=u, v=v), [*v[1:], v[-1]])


def test_what_arithmetic_meets_is_counted_once(daemon, folder):
    """Though what lies around a grain is computed with each of several."""
    u = np.random.default_rng(4).integers(0, 3, (400, 500)).astype("i4")
    v, n_zeros = u, 0
    with np.errstate(all="ignore"):
        for _ in range(3):
            n_zeros += int((v == 0).sum())
            v = padded(v, (1, 0), "edge") + 7 // v
    np.save(f"{folder}/u.npy", u)
    told = daemon.ctl("run", "--json", "repeat(3, u = near(u, 1, 0) + 7 // u)",
                      f"u={folder}/u.npy", "-o", f"{folder}/v.npy").stdout
    np.testing.assert_array_equal(np.load(f"{folder}/v.npy"), v)
    assert json.loads(told)["warnings"] == {"divide_by_zero": n_zeros, "invalid_cast": 0}


def test_files_in_any_pool(folder):
    """Of many grains, in a pool of the smallest slots and in a large one; chunks; both ends."""
    rng = np.random.default_rng(5)
    u = rng.standard_normal((1100, 1500)).astype("f4")
    np.save(f"{folder}/c.npy", u)
    np.save(f"{folder}/f.npy", np.asfortranarray(u))
    for pool, threads in (("6M", 1), ("64M", 2)):
        daemon = Daemon(pool=pool, threads=threads)
        for source, mode in (("c.npy", "wrap"), ("f.npy", "reflect"), ("c.npy", "constant")):
            daemon.ctl("run", f"repeat(8, {stencil(2, mode)})", f"u={folder}/{source}", "k=0.1",
                       "-o", f"{folder}/o.npy")
            np.testing.assert_array_equal(np.load(f"{folder}/o.npy"),
                                          steps(8, u, mode, np.float32(0.1)), err_msg=mode)
        daemon.stop()


def test_what_is_near_beside_steps_that_wrap(daemon, gd, folder):
    """An axis that goes on in two ways is read as a whole, or refused; the worker lives on."""
    rng = np.random.default_rng(8)
    expr = (f"repeat(2, u = u + {text('u', (-2, 0), 'wrap')}) + {text('w', (-3, 0), 'reflect')}"
            f" - {text('w', (1, 0), 'edge')}")
    for shape in ((608, 200), (900000, 1)):
        u, w = rng.integers(0, 99, (2, *shape)).astype("f8")
        np.save(f"{folder}/w.npy", w)
        one = u + padded(u, (-2, 0), "wrap")
        want = (one + padded(one, (-2, 0), "wrap") + padded(w, (-3, 0), "reflect") -
                padded(w, (1, 0), "edge"))
        for given in (w, np.asfortranarray(w), gd.open(f"{folder}/w.npy")):
            if shape[0] == 608:
                np.testing.assert_array_equal(gd.evaluate(expr, u=u, w=given), want)
                continue
            with pytest.raises(gd.errors.LimitExceeded, match="otherwise there"):
                gd.evaluate(expr, u=u, w=given)
    u = np.zeros(87000, "f4")
    np.save(f"{folder}/w.npy", u)  # fits a slot, but not with what is reduced
    with pytest.raises(gd.errors.LimitExceeded, match="otherwise there"):
        gd.evaluate("sum(repeat(3, u = u + near(u, 1, mode=wrap)) + near(w, 1, mode=reflect), "
                    "axis=0)", u=u, w=gd.open(f"{folder}/w.npy"))


def test_what_repeat_refuses(daemon, gd, folder):
    """Too many steps, with how many there may be; in place; streams."""
    u = np.zeros((2000, 2000), "f4")
    with pytest.raises(gd.errors.LimitExceeded, match="line 2, column 3: repeat") as caught:
        gd.evaluate(["u + k", f"k + \n  repeat(2000, {stencil(2, 'edge')})"], u=u, k=0.5)
    assert caught.value.argument == "outputs[1]"
    n = int(caught.value.expected.split()[2])
    assert 20 < n < 200
    np.testing.assert_array_equal(
        gd.evaluate(f"repeat({n}, {stencil(2, 'edge')})", u=u[:300, :300] + 1, k=0.5), 1)
    np.testing.assert_array_equal(gd.evaluate("repeat(3000, u = u + 1)", u=u[0, :9]), 3000)
    shared = gd.empty((40, 50), "f8")
    with pytest.raises(gd.errors.OverlappingOutput):
        gd.evaluate("repeat(2, u = u + near(u, 1, 0))", u=shared, out=shared)
    np.save(f"{folder}/u.npy", np.zeros((4, 5)))
    with open(f"{folder}/u.npy", "rb") as file:
        failed = daemon.ctl("run", "repeat(2, u = u + near(u, 1, 0))", "u=-", stdin=file,
                            check=False)
    assert failed.returncode == 1 and "bad-argument" in failed.stderr, failed.stderr


def test_many_steps_from_file_to_file(gd, folder):
    u = np.random.default_rng(7).random((50, 80))
    lap, want = "lap(u) = near(u, 1, 0) - near(u, 0, 1); ", u
    p, q = u, 0.5
    for _ in range(19):
        around = padded(want, (1, 0), "edge") - padded(want, (0, 1), "edge")
        want = want + 0.1 * around
        p, q = p + q, 0.9 * q + p / 100
    k = 0.1
    got = gd.repeat(19, lap + "u + k*lap(u)", u=u, to=f"{folder}/o.npy")
    np.testing.assert_array_equal(got, want)
    made = gd.repeat(19, {"p": "p + q", "q": "0.9*q + p/100"}, p=u, q=0.5, steps_at_once=5,
                     to={"q": folder / "q.npy"})
    np.testing.assert_array_equal(made["q"], q)
    assert sorted(path.name for path in folder.iterdir()) == ["o.npy", "q.npy"] and k == 0.1
    for wrong in (5, {}, {"u": 5}):
        with pytest.raises(gd.errors.BadArgument, match="repeat: .*step.* is") as caught:
            gd.repeat(3, wrong, u=u, to=f"{folder}/x.npy")
        assert caught.value.argument == "steps"
    for steps, to, error in (("u + w", "x.npy", gd.errors.UnknownName),
                             ({"u": "u + 1"}, {"w": "x.npy"}, gd.errors.BadArgument),
                             ({"u": "sum(u)"}, "x.npy", gd.errors.BadExpression),
                             ({"u": "near(u, 1)"}, "x.npy", gd.errors.BadArity)):
        with pytest.raises(error):
            gd.repeat(3, steps, u=u, to=to)
    for n, at_once in ((0, None), (-1, None), (1.5, None), ("a", 1), (2**64, 1), (3, -1), (3, 2**32)):
        with pytest.raises(gd.errors.BadArgument, match="an integer of 1 or more"):
            gd.repeat(n, "u + 1", u=u, to="x.npy", steps_at_once=at_once)
