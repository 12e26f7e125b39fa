"""iterate(n, x = ..., until = ...): against loops of NumPy's, however the array is cut."""

import numpy as np
import pytest

import wire
from catalogue import NUMPY_2

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes")

MANDELBROT = ("zr = 0*cr; zi = 0*cr; k = 0*cr; iterate({}, k = k + 1, zr = zr*zr - zi*zi + cr, "
              "zi = 2*zr*zi + ci, until = zr*zr + zi*zi > 4)")


def steps(n, states, body, until=None, count=None):
    """All states after n steps; until(...) and body(...) take them by name. count(...), with what
    is not done, is called before each step."""
    arrays = np.broadcast_arrays(*states.values())
    states = dict(zip(states, arrays))
    with np.errstate(all="ignore"):
        for _ in range(n):
            done = np.asarray(until(**states) if until else False)
            if count:
                count(~done, **states)
            new = body(**states)
            states = {name: np.where(done, x, new[name]) for name, x in states.items()}
    return states


def check(w, expr, wanted, **args):
    got = w.compute(expr, **args)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), expr
    np.testing.assert_array_equal(got, wanted, err_msg=expr)


def mandelbrot(cr, ci, n):
    zero = 0 * cr
    return steps(n, {"zr": zero, "zi": zero, "k": zero, "cr": cr, "ci": ci},
                 lambda zr, zi, k, cr, ci: dict(zr=zr*zr - zi*zi + cr, zi=2*zr*zi + ci, k=k + 1,
                                                cr=cr, ci=ci),
                 lambda zr, zi, **more: zr*zr + zi*zi > 4)


def test_steps_of_every_length_and_dtype(w):
    rng = np.random.default_rng(1)
    for n in (0, 1, 63, 64, 65, 700, 5000):
        a = rng.integers(1, 1000, n)
        collatz = steps(60, {"a": a, "k": np.int8(0) * a.astype("i1")},
                        lambda a, k: dict(a=np.where(a % 2 == 0, a // 2, 3*a + 1), k=k + np.int8(1)),
                        lambda a, k: a == 1)
        for first in "ak":
            other = "k" if first == "a" else "a"
            right = {"a": "a = where(a % 2 == 0, a//2, 3*a + 1)", "k": "k = k + 1"}
            check(w, f"iterate(60, {right[first]}, {right[other]}, until = a == 1)", collatz[first],
                  a=a, k=np.zeros(n, "i1"))
        for dtype in ("f4", "f8", "i2", "u1"):
            x = np.abs(rng.normal(size=n) * 9).astype(dtype)
            y = (rng.normal(size=n) * 9).astype("i1" if dtype == "i2" else dtype)
            with np.errstate(all="ignore"):
                wanted = steps(20, {"x": x, "y": y.astype(dtype)},
                               lambda x, y: dict(x=x + y, y=y), lambda x, y: x > 40)["x"]
            check(w, "iterate(20, x = x + y, until = x > 40)", wanted, x=x, y=y)


def test_states_swap_broadcast_and_rise(w):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=300), rng.normal(size=300).astype("f4")
    check(w, "iterate(3, x = y, y = x)", y.astype("f8"), x=x, y=y)
    check(w, "iterate(3, y = x, x = y)", x, x=x, y=y)
    m, row = rng.normal(size=(40, 1)), rng.normal(size=70)
    wanted = steps(9, {"m": m, "row": row}, lambda m, row: dict(m=m*m + row, row=row),
                   lambda m, row: m > 2)["m"]
    check(w, "iterate(9, m = m*m + row, until = m > 2)", wanted, m=m, row=row)
    check(w, "max(iterate(9, m = m*m + row, until = m > 2), axis=0)", wanted.max(axis=0), m=m,
          row=row)
    # A condition that is the same at every step; numbers, which count as arrays; names of other
    # functions' parameters.
    check(w, "iterate(5, x = x + 1, until = y > 0)", np.where(y > 0, x, x+1+1+1+1+1), x=x, y=y)
    check(w, "k = 0; iterate(5, k = k + i, until = k > 9)", np.array([0, 5, 12, 12], "i8"),
          i=np.array([0, 1, 3, 12], "i4"))
    check(w, "f(u, v) = u + x*v; g(x) = iterate(2, x = f(x, 2)); g(2*x)", 2*x + x*2 + x*2, x=x)
    check(w, "iterate(4, x = x + 0.5*max(y)) + sum(x)*0",
          x + 0.5*np.float32(y.max()) + 0.5*y.max() + 0.5*y.max() + 0.5*y.max(), x=x,
          y=y.astype("f8"))
    # NaN is no condition that holds.
    check(w, "iterate(3, x = x + 1, until = x > nan)", x + 1 + 1 + 1, x=x)


def test_many_operands_and_several_loops(w):
    rng = np.random.default_rng(3)
    args = {f"a{i}": rng.integers(0, 9, 3000) for i in range(24)}
    total = " + ".join(args)
    body = sum(args.values())
    wanted = steps(7, {"a0": args["a0"], "b": body - args["a0"]},
                   lambda a0, b: dict(a0=a0 + b, b=b), lambda a0, b: a0 > 400)["a0"]
    check(w, f"iterate(7, a0 = {total}, until = a0 > 400)", wanted, **args)
    x = rng.normal(size=3000)
    five = steps(5, {"x": x}, lambda x: dict(x=x*1.5), lambda x: x > 2)["x"]
    nine = steps(9, {"x": x}, lambda x: dict(x=x*1.5), lambda x: x > 2)["x"]
    after = steps(4, {"x": five}, lambda x: dict(x=x - 0.25), lambda x: x < 1)["x"]
    check(w, "y = iterate(5, x = x*1.5, until = x > 2); "
             "iterate(4, y = y - 0.25, until = y < 1) + iterate(9, x = x*1.5, until = x > 2)*y",
          after + nine*five, x=x)


def test_any_cut_gives_the_same_bits(start):
    """Tiles of a tiny pool, each way memory may be ordered, one thread and several."""
    y, x = np.mgrid[-1.5:1.5:151j, -2:1:500j]
    wanted = mandelbrot(x, y, 60)
    first_zr = MANDELBROT.format(60).replace("k = k + 1, zr = zr*zr - zi*zi + cr",
                                              "zr = zr*zr - zi*zi + cr, k = k + 1")
    for pool, threads, order in (("1M", 1, "C"), ("2M", 2, "F")):
        with start(pool=pool, threads=threads).connect() as w:
            region = wire.Region(w, 4 * x.nbytes)
            arrays = [region.array("f8", x.size, i * x.nbytes).reshape(x.shape, order=order)
                      for i in range(4)]
            arrays[0][:], arrays[1][:] = x, y
            descriptors = [wire.described(a, region.at(i * x.nbytes), a.strides)
                           for i, a in enumerate(arrays)]
            w.call("job.run", args=dict(zip(("cr", "ci"), descriptors)), outputs=[
                {"expr": MANDELBROT.format(60), "to": descriptors[2]},
                {"expr": first_zr, "to": descriptors[3]}])
            np.testing.assert_array_equal(arrays[2], wanted["k"])
            np.testing.assert_array_equal(arrays[3], wanted["zr"])


def test_warnings_are_of_the_steps_that_elements_take(w):
    for n in (100, 3000):
        a, b, counts = np.arange(n) % 10, np.arange(n) % 7, []
        steps(9, {"a": a, "k": 0*a}, lambda a, k: dict(a=a//b + 1, k=k + 1), lambda a, k: k > a,
              lambda goes_on, a, k: counts.append(np.sum((b == 0) & goes_on)))
        result = w.run("iterate(9, k = k + 1, a = a//b + 1, until = k > a)", a=a, b=b, k=0*a)
        assert result["warnings"]["divide_by_zero"] == sum(counts) > 0


def test_a_power_that_no_element_takes_is_none(w):
    a, b = np.arange(1, 201), np.full(200, 3)
    expr = "iterate(9, a = a**b % 7, b = b - 1, until = b < 0)"
    wanted = steps(4, {"a": a, "b": b}, lambda a, b: dict(a=a**b % 7, b=b - 1))["a"]
    check(w, expr, wanted, a=a, b=b)
    with pytest.raises(wire.Error) as error:
        w.compute("iterate(9, a = a**b % 7, b = b - 1)", a=a, b=b)
    assert error.value.code == "negative-integer-power"


def test_a_long_loop_is_stopped_in_the_middle_and_others_go_beside_it(start):
    with start(threads=1, engine="cpu").connect() as w:
        x = np.linspace(0, 1, 8000)
        job = w.call("job.submit", args={"x": wire.argument(x)}, outputs=[
            {"expr": "iterate(1000000, x = x*0.999 + 0.001, until = x > 2)"}])["job"]  # many seconds
        assert w.compute("max(x)", x=x) == 1
        assert w.call("job.status", job=job)["state"] in ("queued", "running")
        w.call("job.cancel", job=job)
        with pytest.raises(wire.Error) as error:
            w.call("job.wait", job=job)
        assert error.value.code == "cancelled"
        assert w.compute("iterate(1000000, x = x*0.5 + 0.5)", x=x[:2]).tolist() == [1, 1]


def test_what_no_device_could_interrupt_is_the_cpus(start):
    """Of so many steps, a device would be taken for minutes."""
    with start(engine="cuda").connect() as w:
        assert w.compute("iterate(1000, x = x*0.5 + 0.5)", x=np.zeros(2)).tolist() == [1, 1]
        with pytest.raises(wire.Error) as error:
            w.compute("iterate(1000000, x = sin(x), until = x > 2)", x=np.zeros(2))
        assert error.value.code == "no-engine" and "on the CPU" in str(error.value)


def test_neighbours_beside_steps(start):
    with start(engine="cpu").connect() as w:
        u = np.random.default_rng(4).normal(size=(70, 90))
        beside = np.concatenate([u[1:], u[-1:]])
        wanted = steps(9, {"u": u, "v": beside}, lambda u, v: dict(u=u*u + v, v=v),
                       lambda u, v: u > 2)["u"]
        check(w, "v = near(u, 1, 0); iterate(9, u = u*u + v, until = u > 2)", wanted, u=u)
