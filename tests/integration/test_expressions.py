"""Every function of the catalogue against NumPy: dtypes x special values x shapes x layouts, and
random expression trees. The catalogue is asked of the daemon, so nothing in it goes untested."""

import random
import warnings

import numpy as np
import pytest

import wire

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
NUMPY_2 = int(np.__version__.split(".")[0]) >= 2

# Where NumPy has no float16 result to offer here, and says so in the README.
FLOAT16 = {"?", "i1", "u1"}
# Within 4 ulp of exact, as NumPy's own: two such results differ by at most 8.
TRANSCENDENTAL = {"exp", "log", "sin", "cos", "tanh", "power"}


def specials(dtype):
    """Values where mistakes live, then random ones; 101 elements."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(dtype.num)
    if dtype.kind == "b":
        return np.resize(np.array([False, True, True, False, True]), 101)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        head = [info.min, info.max, 0, 1, 2, 3, 5, 7, info.max // 2, info.max - 1, info.min + 1]
        if dtype.kind == "i":
            head += [-1, -2, -3, -7]
        tail = rng.integers(info.min, info.max, 101, dtype=dtype, endpoint=True)
    else:
        info = np.finfo(dtype)
        head = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, 3.0, -3.0, np.nan, np.inf, -np.inf, info.max,
                info.min, info.tiny, -info.tiny, info.smallest_subnormal, 1e10, -1e10, 7.0, 1e-5,
                710.0, -745.0, 88.7, -103.0, 3.14159265]
        tail = rng.normal(0, 100, 101).astype(dtype)
    return np.concatenate([np.array(head, dtype), tail])[:101]


def assert_same(got, want, ulp=0, what=""):
    want = np.asarray(want)
    assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, NumPy {want.dtype}"
    assert got.shape == want.shape, f"{what}: shape {got.shape}, NumPy {want.shape}"
    if want.dtype.kind != "f" or ulp == 0:
        same = (got == want) | ((got != got) & (want != want))
        if want.dtype.kind == "f":
            zeros = (got == 0) & (want == 0)
            same &= ~zeros | (np.signbit(got) == np.signbit(want))
    else:
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        both = np.isfinite(got) & np.isfinite(want) & ~same
        step = np.maximum(np.spacing(np.abs(np.where(both, want, 1))),
                          np.finfo(want.dtype).smallest_subnormal)
        with np.errstate(all="ignore"):
            near = np.abs(np.where(both, got, 0).astype("f8") - np.where(both, want, 0)) <= ulp * step
        same |= both & near
    if not np.all(same):
        bad = np.argwhere(~np.atleast_1d(same))[0]
        raise AssertionError(f"{what}: at {bad}: {np.atleast_1d(got)[tuple(bad)]!r}, "
                             f"NumPy {np.atleast_1d(want)[tuple(bad)]!r}")


def numpy_result(name, *arguments):
    """NumPy's answer; None where it refuses the dtypes."""
    function = getattr(np, name)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*arguments)
        except TypeError:
            return None


def ops(daemon):
    with daemon.connect() as w:
        return w.call("server.ops")


def check_op(w, op, arguments):
    names = "abc"[:len(arguments)]
    expr = f"{op['name']}({', '.join(names)})"
    what = f"{expr} of {', '.join(f'{a.dtype}{a.shape}' for a in arguments)}"
    integers = op["name"] == "power" and all(a.dtype.kind in "iub" for a in arguments)
    if integers and arguments[1].dtype.kind == "i":
        arguments = [arguments[0], np.abs(arguments[1] // 2)]
        arguments[1][arguments[1] < 0] = 3
    want = numpy_result(op["name"], *arguments)
    if op["name"] == "floor" and not NUMPY_2 and arguments[0].dtype.kind in "iub":
        want = arguments[0]
    if want is None:
        with pytest.raises(wire.Error) as refused:
            w.compute(expr, **dict(zip(names, arguments)))
        assert refused.value.code == "bad-dtype", what
        return
    got = w.compute(expr, **dict(zip(names, arguments)))
    want = np.asarray(want)
    if want.dtype == np.float16:
        with np.errstate(all="ignore"):
            want = getattr(np, op["name"])(*[a.astype("f4") for a in arguments])
    ulp = 0
    if op["name"] in TRANSCENDENTAL and want.dtype.kind == "f":
        ulp = 8
    if op["name"] in ("sum", "mean"):
        ulp = 64 if want.dtype.kind == "f" else 0
    assert_same(got, want, ulp, what)


def test_every_unary_function_on_every_dtype(daemon, w):
    checked = 0
    for op in ops(daemon):
        if op["args"] == 1 and op["name"] != "astype":
            for dtype in DTYPES:
                a = specials(dtype)
                if op["name"] in ("sum", "mean") and a.dtype.kind == "f":
                    a = a[np.isfinite(a) & (np.abs(a) < 1e6)]
                check_op(w, op, [a])
                checked += 1
    assert checked >= 17 * 11


def test_every_binary_function_on_every_pair_of_dtypes(daemon, w):
    checked = 0
    for op in ops(daemon):
        if op["args"] == 2:
            for left in DTYPES:
                for right in DTYPES:
                    a, b = specials(left), specials(right)
                    check_op(w, op, [a[:, None][:40], b[None, :40]])
                    checked += 1
    assert checked >= 19 * 121


def test_where_on_every_pair_of_dtypes(w):
    c = np.resize([True, False, False], 101)
    for left in DTYPES:
        for right in DTYPES:
            a, b = specials(left), specials(right)
            assert_same(w.compute("where(c, a, b)", a=a, b=b, c=c), np.where(c, a, b),
                        what=f"where {left} {right}")
    for dtype in DTYPES:
        c = specials(dtype)
        assert_same(w.compute("where(c, 1, 0)", c=c), np.where(c, 1, 0), what=f"where({dtype})")


def test_every_cast(w):
    for source in DTYPES:
        for target in DTYPES:
            a = specials(source)
            name = np.dtype(target).name
            if a.dtype.kind == "f" and np.dtype(target).kind in "iu":
                info = np.iinfo(target)
                with np.errstate(all="ignore"):
                    a = a[np.isfinite(a) & (a > float(info.min) - 1) & (a < float(info.max))]
            with np.errstate(all="ignore"):
                assert_same(w.compute(f"{name}(a)", a=a), a.astype(target),
                            what=f"{source} to {target}")


SHAPES = [((), ()), ((0,), ()), ((0, 3), (3,)), ((1,), (7,)), ((5, 1), (1, 3)), ((13,), (11, 1)),
          ((2, 3, 5), (3, 1)), ((1, 1, 1), (2, 2)), ((7, 1, 3), (5, 1)), ((8191,), (1,))]


@pytest.mark.parametrize("left, right", SHAPES)
def test_shapes_broadcast(w, left, right):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=left), rng.normal(size=right)
    for expr, want in (("a + b", a + b), ("a*b - a", a * b - a), ("a < b", a < b)):
        assert_same(w.compute(expr, a=a, b=b), want, what=expr)


# value: a Python number, with NumPy's rules for those.
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [0, 1, 3, 100, 2.5, -1.5, True])
def test_python_scalars_are_weak(w, dtype, value):
    a = specials(dtype)
    for symbol in ["+", "*", "-", "/", "<", "==", "//", "%"]:
        with np.errstate(all="ignore"):
            try:
                want = eval(f"a {symbol} value", {"a": a, "value": value})
            except TypeError:
                want = None
        for expr, arguments in ((f"a {symbol} k", {"a": a, "k": value}),
                                (f"a {symbol} ({value!r})", {"a": a})):
            if want is None:
                with pytest.raises(wire.Error):
                    w.compute(expr, **arguments)
            else:
                assert_same(w.compute(expr, **arguments), want, what=f"{expr} {dtype}")


def test_python_integers_that_do_not_fit(w):
    a = np.array([1, 2, 3], "i1")
    with pytest.raises(wire.Error) as refused:
        w.compute("a + 1000", a=a)
    assert refused.value.code == "bad-expression"
    if NUMPY_2:
        assert_same(w.compute("a < 1000", a=a), a < 1000, what="comparison out of range")
        assert_same(w.compute("a == -1000", a=a), a == -1000, what="comparison out of range")


def layouts(a):
    """The same elements laid out in other ways: (name, buffer, offset, strides)."""
    yield "C", a, a
    yield "F", np.asfortranarray(a), None
    big = np.zeros(tuple(2 * n for n in a.shape), a.dtype)
    big[tuple(slice(None, None, 2) for _ in a.shape)] = a
    yield "every second", big, big[tuple(slice(None, None, 2) for _ in a.shape)]
    reverse = np.ascontiguousarray(a[::-1])
    yield "reversed", reverse, reverse[::-1]


@pytest.mark.parametrize("dtype", ["f4", "i2", "u8", "?", ">f8", ">i4"])
@pytest.mark.parametrize("shape", [(61, 83), (3, 5, 7, 11), (4099,)])
def test_layouts_of_regions(w, dtype, shape):
    rng = np.random.default_rng(2)
    a = rng.integers(0, 100, shape).astype(dtype)
    native = a.astype(a.dtype.newbyteorder("="))
    region = wire.Region(w, 1 << 20)
    out = wire.Region(w, 1 << 20)
    for name, base, view in layouts(a):
        view = base if view is None else view
        flat = np.frombuffer(base.tobytes(order="A"), "u1")
        region.array("u1", flat.shape)[:] = flat
        offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        source = wire.described(view, region.at(offset), view.strides)
        with np.errstate(all="ignore"):
            want = native + native
        target = wire.described(want, out.at())
        result = w.run("a + a", to=target, a=source)
        assert result["outputs"][0]["shape"] == list(shape)
        assert_same(out.array(want.dtype, shape).copy(), want, what=f"{name} {dtype} {shape}")
        # and written in such a layout
        fortran = np.asfortranarray(want)
        w.run("a + a", a=source,
              to=wire.described(fortran, out.at(), fortran.strides))
        got = np.ndarray(shape, want.dtype, buffer=out.map, strides=fortran.strides).copy()
        assert_same(got, want, what=f"{name} to F {dtype} {shape}")
    for r in (region, out):
        w.call("region.detach", region=r.id)


class Trees:
    """Random expressions that are valid in Python over NumPy arrays and in ours alike."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        shapes = self.random.choice([[(17, 5), (5,), (17, 1)], [(101,)] * 3, [(3, 1, 4), (2, 1), ()]])
        self.names = {}
        for name, shape in zip("abc", shapes):
            dtype = self.random.choice(["f4", "f8", "i4", "i8", "u2", "i1"])
            value = self.rng.integers(1, 50, shape).astype(dtype)
            self.names[name] = value if value.dtype.kind != "f" else value / value.dtype.type(7)

    def make(self, depth):
        r = self.random
        if depth == 0 or r.random() < 0.1:
            return r.choice([*self.names, *self.names, "2", "3", "0.5"])
        kind = r.random()
        if kind < 0.55:
            return f"({self.make(depth - 1)} {r.choice('+ - * /'.split())} {self.make(depth - 1)})"
        if kind < 0.65:
            return f"-({self.make(depth - 1)})"
        if kind < 0.75:
            return f"where({self.make(depth - 1)} < {self.make(depth - 1)}, " \
                   f"{self.make(depth - 1)}, {self.make(depth - 1)})"
        if kind < 0.85:
            return f"{r.choice(['minimum', 'maximum'])}({self.make(depth - 1)}, {self.make(depth - 1)})"
        return f"{r.choice(['sqrt', 'square', 'abs', 'floor'])}({self.make(depth - 1)})"


@pytest.mark.parametrize("seed", range(150))
def test_random_expressions(w, seed):
    trees = Trees(seed)
    expr = trees.make(4)
    scope = {name: getattr(np, name) for name in
             ("where", "minimum", "maximum", "sqrt", "square", "abs", "floor")}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = eval(expr, {**scope, **trees.names})
        except (OverflowError, TypeError, ZeroDivisionError):
            pytest.skip("not for NumPy either")
    if np.asarray(want).dtype == np.float16 or "float16" in intermediate_dtypes(expr, scope, trees):
        pytest.skip("float16 in NumPy")
    if not any(name in expr for name in trees.names):
        pytest.skip("no array in it")
    assert_same(w.compute(expr, **trees.names), np.asarray(want), ulp=2, what=expr)


def intermediate_dtypes(expr, scope, trees):
    """The dtypes of all function results inside an expression."""
    seen = set()

    def watched(function):
        def call(*arguments):
            result = function(*arguments)
            seen.add(str(np.asarray(result).dtype))
            return result
        return call

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eval(expr, {**{k: watched(f) for k, f in scope.items()}, **trees.names})
    return seen


def test_results_of_several_outputs_and_reductions(w):
    rng = np.random.default_rng(3)
    a = rng.normal(size=(50, 60))
    result = w.call("job.run", args={"a": wire.argument(a)},
                    outputs=[{"name": "d", "expr": "a - mean(a)"},
                             {"name": "s", "expr": "sqrt(sum(a*a))"},
                             {"name": "n", "expr": "count_nonzero(a > 0)"},
                             {"name": "r", "expr": "max(a) - min(a)"}])
    got = {o["name"]: wire.result_array(o) for o in result["outputs"]}
    assert np.allclose(got["d"], a - a.mean(), rtol=0, atol=1e-14)
    assert np.allclose(got["s"], np.sqrt((a * a).sum()), rtol=1e-14)
    assert got["n"] == np.count_nonzero(a > 0) and got["n"].dtype == np.int64
    assert got["r"] == np.ptp(a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_integer_traps_are_results_with_a_count(w, dtype):
    a = specials(dtype)
    zero = np.zeros(101, dtype)
    if a.dtype.kind not in "iu":
        return
    result = w.run("a // z", a=a, z=zero)
    assert result["warnings"]["divide_by_zero"] == 101
    assert not wire.result_array(result["outputs"][0]).any()
    assert not w.compute("a % z", a=a, z=zero).any()
    if a.dtype.kind == "i":
        least = np.full(3, np.iinfo(dtype).min, dtype)
        minus = np.full(3, -1, dtype)
        with np.errstate(all="ignore"):
            assert_same(w.compute("a // b", a=least, b=minus), least // minus)
            assert_same(w.compute("a % b", a=least, b=minus), least % minus)
        assert_same(w.compute("a >> b", a=minus, b=np.full(3, 127, dtype)), minus)
    assert_same(w.compute("a << b", a=a, b=np.full(101, 64, dtype)), np.zeros(101, dtype))


def test_nan_to_integer_is_one_written_rule(w):
    a = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 300.7])
    result = w.run("int64(a)", a=a)
    least = np.iinfo("i8").min
    assert list(wire.result_array(result["outputs"][0])) == [least] * 5 + [300]
    assert result["warnings"]["invalid_cast"] == 5
    assert list(w.compute("int32(a)", a=a)) == [0] * 5 + [300]
    assert list(w.compute("uint8(a)", a=a)) == [0] * 5 + [44]
