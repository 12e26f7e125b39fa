"""@gd.vectorize: functions of numbers as functions of arrays, against the functions themselves."""

import cmath
import linecache
import math
import pickle

import numpy as np
import pytest

from catalogue import NUMPY_2
from programs import BOUND, program

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes")

SCALE = 1.25
STEPS = (1, 0.25, -2)
TABLE = np.arange(3.)


def half(x, by=2):
    """Inlined."""
    return x / by


def compiled(source, name="f", **others):
    """A function of a source that inspect finds."""
    filename = f"<{name} {abs(hash(source))}>"
    linecache.cache[filename] = len(source), None, source.splitlines(True), filename
    found = {"math": math, "np": np, "SCALE": SCALE, "STEPS": STEPS, "half": half, "TABLE": TABLE,
             **others}
    exec(compile(source, filename, "exec"), found)
    return found[name]


def soft(x, limit):
    if x > limit:
        return x - limit
    return x + limit if x < -limit else 0.0


def counted(x, n):
    total, k = 0, 0
    while k < n:
        k += 1
        if x < 0:
            continue
        elif total > 40:
            break
        total += k * x
    return total, divmod(x, 3)[1]


def guarded(x, n):
    if n >= 0:
        return x ** n
    return x // (n + 2) if n != -2 and x % (n + 2) >= 0 else -int(x)


def weak(x):
    sign = 1.0 if x > 0 else -1.0
    scale = STEPS[0] if x > 2 else 3 if x > 1 else SCALE
    return sign * x * scale


def mandelbrot(cr, ci, radius=2):
    zr = zi = 0.0
    for i in range(50):
        if zr * zr + zi * zi > radius**2:
            return i, zr
        zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
    return 50, zr


def root(x):
    guess, steps = (x if x > 1 else 1.0), 0
    if x < 0:
        return math.nan, steps
    while abs(guess * guess - x) > 1e-9 * (1 + x):
        guess = (guess + x / guess) / 2
        steps += 1
    return guess, steps


def hailstone(n):
    odd = 0
    for step in range(200):
        if n == 1:
            break
        if n % 2 == 0:
            n //= 2
            continue
        n = 3 * n + 1
        odd += 1
        if n > 9000:
            return -step
    return n + 100 * odd + 10000 * step


def divided(x, n):
    if n > 0:
        for i in range(20):
            x -= x // n  # by 0 elsewhere
            last = i
        x += last
    return x


X = np.linspace(-3, 4, 29)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
def test_functions_give_what_python_gives(gd, dtype):
    x = X.astype(dtype)
    y = gd.vectorize(soft)(x, 0.5)
    want = np.array([soft(one, 0.5) for one in x])
    np.testing.assert_array_equal(y, want)
    assert y.dtype == (np.float64 if dtype == "i4" else x.dtype) and type(y) is np.ndarray
    gd.vectorize(soft).check(x[:, None], x[:4])
    gd.vectorize(bound=9)(counted).check(x, 6)
    assert gd.vectorize(weak).check(x).dtype == (np.float32 if dtype == "f4" else np.float64)


def test_what_a_branch_that_is_not_taken_divides_by_is_not_counted(gd):
    x, n = np.meshgrid(np.arange(-5, 6), np.arange(-4, 5))
    f = gd.vectorize(guarded)
    with np.errstate(all="raise"):
        f.check(x, n)  # integers to negative powers would fail the job


def test_loops_of_many_steps(gd, monkeypatch):
    x, y = np.linspace(-2, 0.5, 21)[:, None], np.linspace(-1.2, 1.2, 19)
    f = gd.vectorize(mandelbrot)
    many, _ = f.check(x, y)
    assert many.dtype == np.int64 and many.max() == 50
    assert f(x.astype("f4"), y.astype("f4"))[1].dtype == np.float32
    gd.vectorize(bound=99)(root).check(np.linspace(-3, 99, 40))
    gd.vectorize(hailstone).check(np.arange(1, 60))
    gd.vectorize(divided).check(np.arange(8) * 9, np.arange(8) - 3)
    lazies = f(gd.lazy(x), y)
    monkeypatch.setitem(globals(), "mandelbrot", f)
    again = pickle.loads(pickle.dumps(lazies[0][3:9, ::2] + 1))
    np.testing.assert_array_equal(again, many[3:9, ::2] + 1)
    both = gd.compute(*lazies)
    np.testing.assert_array_equal(both[0], many)


def test_random_functions(gd):
    rng = np.random.default_rng(27)
    x = rng.normal(size=40) * 3
    y = rng.integers(-4, 5, 40) / 2.0
    n_large = 0
    for _ in range(60):
        source = program(rng)
        f = gd.vectorize(compiled(source), bound=BOUND)
        for n in (2, rng.integers(-3, 4, 40)):
            with np.errstate(all="ignore"):
                want = np.array([float(f.py_func(*each)) for each in
                                 np.broadcast(x, y, np.asarray(n))])
            try:
                found = f(x, y, n)
            except gd.errors.LimitExceeded:  # a few are more than a job may be
                n_large += 1
                continue
            np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9, err_msg=source)
    assert n_large < 6


def test_it_is_part_of_larger_expressions(gd, folder, monkeypatch):
    np.save(folder / "x.npy", X)
    x = gd.open(folder / "x.npy")
    f = gd.vectorize(soft)
    made = f(x, 0.5)
    assert isinstance(made, gd.Lazy) and made.shape == X.shape
    jobs = gd.stats()["jobs"]["submitted"]
    total = (f(x * 2, made) + 1).sum().compute()
    assert gd.stats()["jobs"]["submitted"] == jobs + 1
    want = np.array([soft(one, 0.5) for one in X])
    np.testing.assert_allclose(total, sum(soft(a, b) + 1 for a, b in zip(2 * X, want)))
    np.testing.assert_array_equal(made[3:9:2], want[3:9:2])
    out = np.zeros_like(X)
    assert f(X, 0.5, out=out) is out and (out == want).all()
    assert f(1.5, limit=0.5) == 1.0 and type(f(1.5, 0.5)) is np.float64
    first, second = gd.vectorize(otypes=["f4", "i8"])(sorted_pair)(X, np.float64(1))
    assert (first.dtype, second.dtype) == (np.float32, np.int64)
    assert gd.vectorize(constant)(X).shape == X.shape
    monkeypatch.setitem(globals(), "soft", f)  # as if it were decorated
    assert pickle.loads(pickle.dumps(f)) is f


def sorted_pair(x, y):
    return (x, y) if x < y else (y, x)


def constant(x):
    return 1


REFUSED = {  # by what is said of line and column
    "2:5: print": "def f(x):\n    print(x)\n    return x\n",
    "3:5: while": "def f(x):\n    y = 0\n    while x > y:\n        y += 1\n    return y\n",
    "2:9: a list": "def f(x):\n    y = [1, 2]\n    return x\n",
    "2:9: str": "def f(x):\n    y = 'a'\n    return x\n",
    "2:5: a global": "def f(x):\n    global y\n    y = x\n    return x\n",
    "2:5: an attribute": "def f(x):\n    x.y = 1\n    return x\n",
    "2:5: an element that is set": "def f(x):\n    x[0] = 1\n    return x\n",
    "2:5: try": "def f(x):\n    try:\n        return x\n    except ValueError:\n        return 0\n",
    "2:5: with": "def f(x):\n    with x:\n        return x\n",
    "2:5: yield": "def f(x):\n    yield x\n",
    "2:5: raise": "def f(x):\n    raise ValueError\n",
    "2:12: TABLE is an ndarray": "def f(x):\n    return TABLE + x\n",
    "2:12: f() calls itself": "def f(x):\n    return f(x - 1)\n",
    "2:12: np.sum() is numpy.sum": "def f(x):\n    return np.sum(x)\n",
    "2:12: nothing is called z": "def f(x):\n    return z\n",
    "4:12: y has no value on some way": "def f(x):\n    if x > 0:\n        y = 1\n    return y\n",
    "2:12: y has no value here": "def f(x):\n    return y\n    y = 1\n",
    "1:1: f may end without return": "def f(x):\n    if x > 0:\n        return 1\n",
    "3:5: a loop of 2000000 steps": "def f(x):\n    y = x\n    for i in range(2000000):\n"
                                    "        y += i\n    return y\n",
    "3:9: a loop of 99 steps inside": "def f(x):\n    for i in range(9):\n"
                                      "        for j in range(99):\n            x += j\n"
                                      "    return x\n",
    "5:9: else of a loop": "def f(x):\n    for i in range(3):\n        x += 1\n    else:\n"
                           "        x = 2\n    return x\n",
    "1:8: *x": "def f(*x):\n    return 1\n",
    "2:12: division by zero": "def f(x):\n    return 1 / 0 + x\n",
}


def test_what_the_subset_lacks_is_refused_at_decoration(gd):
    for place, source in REFUSED.items():
        function = compiled(source)
        function.__globals__["f"] = function
        with pytest.raises(gd.Unsupported) as caught:
            gd.vectorize(function)
        line, column, what = place.split(":")[0], place.split(":")[1], place.split(": ", 1)[1]
        assert f":{line}:{column}: in f: {what}" in str(caught.value), (place, str(caught.value))
        assert "; write " in str(caught.value)
        assert (caught.value.lineno, caught.value.offset) == (int(line), int(column))
        assert caught.value.text == source.splitlines()[int(line) - 1]
    itself = compiled(REFUSED["2:12: f() calls itself"])
    del itself.__globals__["f"]  # as where the decorator stands above it
    with pytest.raises(gd.Unsupported, match=r":2:12: in f: f\(\) calls itself; write a for loop"):
        gd.vectorize(itself)
    steps = compiled("def f(x, n):\n    for i in range(n // 2):\n        x += i\n    return x\n")
    assert gd.vectorize(steps)(X, 6).tolist() == (X + 3).tolist()
    with pytest.raises(gd.Unsupported, match=r":2:20: in f: range\(\) of what is not known here"):
        gd.vectorize(steps)(X, np.arange(len(X)))
    for wrong in (lambda x: x, np.sin, 3, ["f8(f8)"]):
        with pytest.raises(gd.Unsupported):
            gd.vectorize(wrong)


def test_what_the_arrays_dtype_refuses_says_where(gd):
    for lines, place in ((["return x + 3000000000"], "2:12"),
                         (["y = 5000000000", "if x > 1:", "    y = x", "return y"], "3:5")):
        source = "def f(x):\n    " + "\n    ".join(lines) + "\n"
        with pytest.raises(OverflowError, match="out of bounds for int32") as caught:
            gd.vectorize(compiled(source))(np.arange(4, dtype="i4"))
        assert [one.endswith(f">:{place}") for one in caught.value.__notes__] == [True]


def test_what_differs_from_python_is_found_by_a_check(gd):
    def loop(x):
        while x > 1:
            x = x - 1
        return x
    f = gd.vectorize(bound=3)(loop)
    f.check(np.arange(4.))
    with pytest.raises(AssertionError, match="loop, computed and by Python"):
        f.check(np.arange(9.))
    with pytest.raises(AssertionError):
        gd.vectorize(bound=3, check=True)(loop)(np.arange(9.))


def escapes(x, y):
    c = complex(x, y)
    z = 0j
    for k in range(40):
        if abs(z) > 2:
            return k
        z = z*z + c
    return 40


def escapes_while(c):
    z = n = 0
    while z.real*z.real + z.imag*z.imag <= 4 and n < 40:
        z = z**2 + c
        n += 1
    return n


def parts(a, b):
    w = a/b + (a - b)*2 - 1/(a + 3j) + b**3 + a**-2 - (2 - a)
    v = cmath.exp(a*0.1) + np.log(b) + cmath.sqrt(a) if a != b else a.conjugate()
    u = -w + SCALE*v + (1 - v)*ROTATED
    return (u.real, u.imag, abs(w), cmath.phase(u), a == b, np.angle(v), np.isnan(w),
            w.real if u else 0.)


def squared(z):
    return z*z


def becomes_complex(x):
    z = x
    w = 0.0
    for _ in range(30):
        z = squared(z)*0.5 + complex(0, x)
        w = z
        if z.real > 3:
            return w.imag
    return w.real + z.imag


ROTATED = 0.6 - 0.8j


def test_complex_numbers_are_those_of_the_function(gd):
    rng = np.random.default_rng(5)
    x, y = rng.uniform(-2, 1, 90), rng.uniform(-1.3, 1.3, 90)
    a, b = x + 1j*y, rng.normal(size=90) + 1j*rng.normal(size=90)
    b[:3] = a[:3]
    a[3:9] = 2, -2, 2j, -2j, complex(-2, -0.0), complex(0, -1)
    f = gd.vectorize(escapes)
    f.check(x, y)
    assert 0 < f.check(x.astype("f4"), y.astype("f4")).min() < 40
    assert f(0.3, 2) == escapes(0.3, 2)
    assert (f(gd.lazy(x), y).compute() == f(x, y)).all()
    f = gd.vectorize(bound=40)(escapes_while)
    f.check(a)
    f.check(a.astype("c8"))
    assert f(a[::-2]).tolist() == f(a)[::-2].tolist()
    assert f(0.1 + 0.2j) == escapes_while(0.1 + 0.2j)
    gd.vectorize(parts).check(a, b)
    gd.vectorize(becomes_complex).check(x)


def test_what_complex_numbers_lack_is_refused(gd):
    for where, line in {"2:5: a result that is complex": "return complex(x, 1)",
                        "2:12: order": "return complex(x, 1) < 2",
                        "2:16: a power": "return abs(2j**x)",
                        "2:16: //": "return abs(2j//x)",
                        "2:16: ~": "return abs(~2j)",
                        "2:16: math.sin() of a complex": "return abs(math.sin(2j))",
                        "2:12: min() of a complex": "return min(2j, x)"}.items():
        with pytest.raises(gd.Unsupported) as caught:
            gd.vectorize(compiled(f"def f(x):\n    {line}\n"))
        place, what = where.split(": ", 1)
        assert f":{place}: in f: {what}" in str(caught.value)


def real_part_alone(x):
    z, n = complex(x, 0.0), 0.0
    for _ in range(20):
        z = z * 0.5 + 1j
        n = n + z.real
    return n


def complex_that_becomes_real(x):
    z = 1j
    for _ in range(20):
        z = abs(z * 0.5 + x)
    return abs(z)


def chosen_complex(x):
    w = 1 + 2j if x > 0 else 3 - 1j
    v, s = 1 / w, cmath.sqrt(w)
    return v.real + 2 * v.imag + s.real + s.imag + (100.0 if w == 1 + 2j else 0.0)


def sign_of_nothing(x):
    return cmath.phase(-complex(x, 0)) + (complex(x, 1) / TURN).real


TURN = np.exp(1j)


@pytest.mark.parametrize("function", [real_part_alone, complex_that_becomes_real, chosen_complex,
                                      sign_of_nothing])
def test_complex_names_are_pythons(gd, function):
    x = np.array([0.3, -0.7, 1.2, -2.0])
    got = gd.vectorize(function)(gd.lazy(x)).compute()
    np.testing.assert_allclose(got, [function(float(one)) for one in x], 1e-12)
