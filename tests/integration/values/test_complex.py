"""Complex numbers in expressions, by their parts: against NumPy's."""

import numpy as np
import pytest

import wire
from catalogue import NUMPY_2

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes")

TEXTS = ["z + w", "z - w", "z * w", "z / w", "2j * z - w / 3j", "x * z + w / x", "x - z", "x / z",
         "z**2 - z**-3 + z**7", "z**0", "(1 + 2j)**2 / (3 - 1j) * z", "-z + +w", "conj(z) * w",
         "exp(z / 9)", "sqrt(z)", "z**0.5", "log(z)", "where(x > 0, z, x)", "reciprocal(w)",
         "select([x > 1, x < -1], [z, 2], default=w)", "square(z)", "n * z", "complex(x, row)",
         "1j * n", "sum(z * w)", "sum(z, axis=0, initial=2)", "mean(z, axis=1)", "z - mean(z)",
         "cumsum(z, axis=0)", "conj(x)"]
REAL = ["abs(z)", "abs2(z)", "angle(z)", "z == w", "z != conj(z)", "z == x", "isnan(z / 0)",
        "isfinite(z)", "var(z, axis=0)", "std(z)", "imag(n)", "imag(x)", "real(n)", "angle(x)",
        "abs2(x)", "abs(3 + 4j) + x", "real(complex(x, row)) * 1", "sum(real(complex(row, x)))",
        "imag(row + 0j*x)", "(2j * 2j == -4) + x"]


def numbers(dtype, seed):
    rng = np.random.default_rng(seed)
    return {"zr": (rng.normal(size=(37, 51)) * 9).astype(dtype),
            "zi": (rng.normal(size=(37, 51)) * 9).astype(dtype),
            "wr": rng.normal(size=(37, 51)).astype(dtype),
            "wi": rng.normal(size=(37, 51)).astype(dtype),
            "x": (rng.normal(size=(37, 51)) * 3).astype(dtype),
            "row": rng.normal(size=51).astype(dtype),
            "n": rng.integers(-9, 9, (37, 51)).astype("i2")}


def numpys(text, args):
    names = {name: getattr(np, name) for name in (
        "conj exp sqrt log where reciprocal square sum mean cumsum abs angle isnan isfinite var std "
        "imag real").split()}
    names["complex"] = lambda re, im: re + 1j * im
    names["abs2"] = lambda z: np.abs(z)**2
    names["select"] = np.select
    with np.errstate(all="ignore"):
        z, w = (args[f"{name}r"] + 1j * args[f"{name}i"] for name in "zw")
        return np.asarray(eval(text, names, {**args, "z": z, "w": w}))


def check(got, wanted, text, dtype):
    assert got.shape == wanted.shape, text
    if wanted.dtype.kind in "bi":
        np.testing.assert_array_equal(got, wanted, err_msg=text)
        return
    scale = max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
    limit = 2e-4 if dtype == "f4" else 1e-11
    np.testing.assert_allclose(got, wanted, limit, limit * scale, err_msg=text)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_every_operation(w, dtype):
    args = numbers(dtype, 1)
    begin = "z = complex(zr, zi); w = complex(wr, wi); "
    for text in TEXTS:
        wanted = numpys(text, args)
        for part in ("real", "imag"):
            got = w.compute(f"{begin}{part}({text})", **args)
            check(got, getattr(wanted, part), f"{part}({text})", dtype)
            assert got.dtype == getattr(wanted, part).dtype, (text, got.dtype)
    for text in REAL:
        check(w.compute(begin + text, **args), numpys(text, args), text, dtype)


def test_division_and_root_of_every_size(w):
    rng = np.random.default_rng(2)
    sizes = 10.0**rng.integers(-150, 150, (4, 999))
    args = dict(zip(("zr", "zi", "wr", "wi"), rng.normal(size=(4, 999)) * sizes))
    args["wr"][:300] = args["wi"][:300] * 3
    for name in args:
        args[name][::50] = 0
    with np.errstate(all="ignore"):
        z, v = args["zr"] + 1j * args["zi"], args["wr"] + 1j * args["wi"]
        for text, wanted in (("z / w", z / v), ("sqrt(z)", np.sqrt(z))):
            for part in ("real", "imag"):
                got = w.compute(f"z = complex(zr, zi); w = complex(wr, wi); {part}({text})", **args)
                np.testing.assert_allclose(got, getattr(wanted, part), 1e-9, 1e-300)


def test_mandelbrot_is_that_of_its_parts(w):
    """To the bit: it is the same arithmetic."""
    rng = np.random.default_rng(3)
    args = {"cr": rng.uniform(-2, 1, 3000), "ci": rng.uniform(-1.5, 1.5, 3000)}
    one = "c = complex(cr, ci); z = 0j; k = 0; "
    two = "zr = 0.0; zi = 0.0; k = 0; "
    parts = "zr = zr*zr - zi*zi + cr, zi = zr*zi + zr*zi + ci, until = zr*zr + zi*zi > 4"
    for first, other in (("k", "k"), ("real", "zr"), ("imag", "zi")):
        call = "iterate(99, k = k + 1, z = z*z + c, until = abs2(z) > 4)" if first == "k" else (
            f"{first}(iterate(99, z = z*z + c, k = k + 1, until = abs2(z) > 4))")
        order = {"k": f"k = k + 1, {parts}", "zr": f"{parts}, k = k + 1",
                 "zi": "zi = zr*zi + zr*zi + ci, zr = zr*zr - zi*zi + cr, k = k + 1, "
                       "until = zr*zr + zi*zi > 4"}[other]
        wanted = w.compute(f"{two}iterate(99, {order})", **args)
        np.testing.assert_array_equal(w.compute(one + call, **args), wanted, err_msg=first)
    # A real beginning becomes complex with its next value.
    np.testing.assert_array_equal(
        w.compute("c = complex(cr, ci); z = 0; abs(iterate(9, z = z*z/2 + c))", **args),
        w.compute("c = complex(cr, ci); z = 0j; abs(iterate(9, z = z*z/2 + c))", **args))


def test_functions_and_neighbours(w):
    args = numbers("f8", 4)
    z = args["zr"] + 1j * args["zi"]
    wide = np.pad(z, 1, "wrap")
    wanted = wide[:-2, 1:-1] * 1j + wide[1:-1, 2:] - 2 * z
    text = "f(u) = near(u, -1, 0, mode=wrap)*1j + near(u, 0, 1, mode=wrap) - 2*u; "
    for part in ("real", "imag"):
        got = w.compute(f"{text}{part}(f(complex(zr, zi)))", **args)
        np.testing.assert_allclose(got, getattr(wanted, part), 1e-14, 1e-13)
    got = w.compute("imag(near(complex(row, x), 1, 0, mode=constant, value=2j))", **args)
    np.testing.assert_array_equal(got, np.pad(args["x"], ((0, 1), (0, 0)), constant_values=2)[1:])


def test_refusals_have_a_column(w):
    x = np.arange(4.0)
    for text, column in (("z", 22), ("z < 2j", 24), ("floor(z)", 22), ("abs(z @ z)", 28),
                         ("z ** x", 24), ("float32(z)", 22), ("abs(median(z))", 26)):
        with pytest.raises(wire.Error, match=f"column {column}: .*complex") as caught:
            w.compute(f"z = complex(x, x*x); {text}", x=x)
        assert caught.value.code == "bad-dtype", text


def test_what_is_divided_by_a_nan_is_one(w):
    x = np.array([np.nan, 0.0, 2.0])
    text = "z = 1 / complex(x, 0*row); v = 1 / complex(0*row, x)"
    for part in ("real(z)", "real(v)"):
        got = w.compute(f"{text}; {part}", x=x, row=np.zeros(3))
        assert np.isnan(got[0]) and not np.isfinite(got[1]), part
        assert got[2] == (0.5 if part == "real(z)" else 0), part
