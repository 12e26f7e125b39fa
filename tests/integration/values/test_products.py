"""Matrix products as text, against NumPy: shapes, dtypes, batches, vectors, expressions on the
operands and on the result, transposed arguments, pools from the smallest on, and what is refused.

Sums are compared to the bit where they are exact: of integers and bools, and of floats that are
small whole numbers. Others must be near a float64 reference, within what any order of additions may
lose."""

import itertools
import math
import re

import numpy as np
import pytest

import wire
from catalogue import DTYPES, NUMPY_2
from conftest import ENGINE, IS_SANITIZED, Daemon

pytestmark = [pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes"),
              pytest.mark.skipif(ENGINE != "cpu", reason="for a device: test_cuda_products.py"),
              pytest.mark.filterwarnings("ignore::RuntimeWarning")]
FLOATS = ["f4", "f8"]


def whole(dtype, shape, seed=0):
    """Integers of the whole range, which wrap; floats whose sums are exact in any order."""
    rng = np.random.default_rng([seed, len(shape)])
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.1
    if dtype.kind == "f":
        return rng.integers(-20, 21, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def numpy_of(text, **args):
    """NumPy's answer to the same text."""
    names = {name: getattr(np, name) for name in (
        "matmul", "maximum", "where", "int8", "float32", "abs")}
    return np.asarray(eval(text, names, args))


def same(got, expected, what):
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), what
    assert np.array_equal(got, expected, equal_nan=got.dtype.kind == "f"), (what, got, expected)


class Held:
    """Arrays in one region of shared memory."""

    def __init__(self, w, **arrays):
        self.w, self.offsets, self.arrays, end = w, {}, {}, 0
        for name, a in arrays.items():
            self.offsets[name], end = end, end + a.nbytes + -a.nbytes % 64
        self.region = wire.Region(w, max(end, 64))
        for name, a in arrays.items():
            self.arrays[name] = self.region.array(a.dtype, a.shape, self.offsets[name])
            self.arrays[name][...] = a

    def __getitem__(self, name):
        return self.arrays[name]

    def at(self, name, array=None):
        """Where an array is, or a view of it."""
        whole = self.arrays[name]
        array = whole if array is None else array
        address, start = (x.__array_interface__["data"][0] for x in (array, whole))
        place = self.region.at(self.offsets[name] + address - start)
        return wire.described(array, place, array.strides)

    def run(self, text, to, *names):
        return self.w.run(text, to=self.at(to), **{name: self.at(name) for name in names})

    def leave(self):
        self.arrays.clear()
        self.w.call("region.detach", region=self.region.id)


def used(text, **args):
    """The arguments that the text names."""
    return {name: x for name, x in args.items() if re.search(rf"\b{name}\b", text)}


def computed(w, text, like, **args):
    """The result. Small ones come in the reply, so that their dtype is seen; others are written to
    an array like `like`."""
    if like.nbytes <= 32 << 10 and sum(np.asarray(x).nbytes for x in args.values()) <= 64 << 10:
        return w.compute(text, **args)
    held = Held(w, out=np.zeros_like(like), **{name: x for name, x in args.items() if np.ndim(x)})
    w.run(text, to=held.at("out"), **{name: held.at(name) if np.ndim(x) else x
                                      for name, x in args.items()})
    result = held["out"].copy()
    held.leave()
    return result


def check(w, text, **args):
    expected = numpy_of(text, **args)
    same(computed(w, text, expected, **args), expected,
         (text, {name: np.shape(x) for name, x in args.items()}))


# -- shapes and dtypes ----------------------------------------------------------------------------

MATRICES = [(1, 1, 1), (3, 4, 5), (1, 7, 1), (2, 1, 3), (33, 17, 65), (5, 130, 3), (3, 0, 4),
            (0, 3, 2), (2, 3, 0), (0, 0, 0)]
BATCHES = [((), ()), ((2,), (2,)), ((3,), ()), ((), (3,)), ((1,), (4,)), ((2, 1), (3,)),
           ((0,), (1,)), ((2, 3, 1), (2, 1, 4)), ((5, 1, 1, 2), (2,))]


@pytest.mark.parametrize("m, k, n", MATRICES)
def test_shapes(w, m, k, n):
    for left, right in BATCHES:
        a, b = whole("f8", (*left, m, k)), whole("f8", (*right, k, n), 1)
        check(w, "a @ b", a=a, b=b)
        check(w, "a @ v", a=a, v=whole("f8", (k,)))
        check(w, "v @ b", v=whole("f8", (k,)), b=b)
    check(w, "matmul(u, v)", u=whole("f8", (k,)), v=whole("f8", (k,), 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.values
def test_every_pair_of_dtypes(w, dtype):
    for other in DTYPES:
        if np.promote_types(dtype, other).kind == "f":  # exact in float32
            a, b = (np.abs(whole("i1", (9, 37)) // 16).astype(dtype),
                    np.abs(whole("i1", (37, 11), 1) // 16).astype(other))
        else:
            a, b = whole(dtype, (9, 37)), whole(other, (37, 11), 1)
        check(w, "a @ b", a=a, b=b)
        check(w, "a @ v", a=a, v=b[:, 0].copy())
        check(w, "v @ b", v=a[0], b=b)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_of_floats_are_as_near_as_their_dtype_allows(w, dtype):
    """Of random and of ill-conditioned operands, whose terms cancel."""
    rng = np.random.default_rng(5)
    for m, k, n in [(3, 4, 5), (17, 300, 9), (64, 64, 64), (1, 1000, 1), (100, 1, 100)]:
        for spread in (0, 6):
            a = rng.normal(size=(m, k)) * 10.0 ** rng.uniform(-spread, spread, (m, k))
            b = rng.normal(size=(k, n)) * 10.0 ** rng.uniform(-spread, spread, (k, n))
            a, b = a.astype(dtype), b.astype(dtype)
            x, y = (v.astype("f8" if dtype == "f4" else np.longdouble) for v in (a, b))
            lost = (k + 2) * np.finfo(dtype).eps * (np.abs(x) @ np.abs(y))
            got = computed(w, "a @ b", np.zeros((m, n), dtype), a=a, b=b)
            assert (np.abs(got - x @ y) <= lost).all(), (m, k, n, spread)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinities_pass_through(w, dtype):
    rng = np.random.default_rng(6)
    for shape in [(3, 4, 5), (40, 90, 33)]:
        a, b = whole(dtype, shape[:2]), whole(dtype, shape[1:], 1)
        for x in (a, b):
            x.flat[rng.integers(0, x.size, 3)] = [np.nan, np.inf, -np.inf]
        check(w, "a @ b", a=a, b=b)
        check(w, "0 * (a @ b)", a=a, b=b)


# -- expressions ----------------------------------------------------------------------------------

TEXTS = ["maximum(a @ b + bias, 0)", "(a / 4) @ b", "2*(a @ b) + 1*c", "a @ (b - row)",
         "-a @ b ** 2 * 3", "a @ b - a @ b", "where(a @ b > 5, c, -c)", "(a > 0) @ (b > 0)",
         "int8(a) @ int8(b)",
         "float32(a) @ b + c", "(a + a) @ (b * b - 1) / 2", "abs(matmul(a, b) - c) + matmul(a, b)",
         "(a - k) @ b + k"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("dtype", ["f8", "i4"])
def test_expressions_on_operands_and_result(w, text, dtype):
    for m, k, n in [(3, 4, 5), (19, 23, 70)]:
        args = {"a": whole("i1", (m, k)) // 8, "b": whole("i1", (k, n), 1) // 8,
                "c": whole("i1", (m, n), 2), "bias": whole("i1", (n,), 3),
                "row": whole("i1", (n,), 4) // 8}
        check(w, text, **used(text, **{name: x.astype(dtype) for name, x in args.items()}, k=3))


def test_operands_of_indices_random_numbers_and_constants(w):
    """Read several times, they are the same each time; an index is of the whole operand or of the
    whole result."""
    for m, k, n in [(3, 4, 5), (300, 700, 260)]:
        a, b, c = (whole("i1", s, i).astype("f8") for i, s in enumerate([(m, k), (k, n), (m, n)]))
        i, j = np.indices((m, k))
        held = Held(w, a=a, b=b, c=c, r=np.zeros((m, k)))
        for text, expected in [
                ("(a + index(0)) @ b", (a + i) @ b),
                ("(a * (index(1) - 3)) @ b", (a * (j - 3)) @ b),
                ("a @ (b - index(0))", a @ (b - np.indices((k, n))[0])),
                ("a @ b + index(1) * 2", a @ b + np.arange(n) * 2),
                ("(int8(a) < 300) @ b", np.ones((m, k)) @ b)]:
            held.run(text, "c", *used(text, a=a, b=b))
            same(held["c"].copy(), expected, text)
        for draw in ("integers(-9, 9, size=({}, {}), seed=4)", "poisson(3, size=({}, {}), seed=5)"):
            draw = draw.format(m, k)
            w.run(draw, to=held.at("r"))
            held.run(f"{draw} @ b", "c", "b")
            same(held["c"].copy(), held["r"] @ b, draw)
        held.run("a @ b + integers(9, seed=6)", "c", "a", "b")
        drawn = held["c"] - a @ b
        assert drawn.min() >= 0 and drawn.max() <= 8
        w.run(f"integers(9, size=({m}, {n}), seed=6)", to=held.at("c"))
        same(drawn, held["c"].copy(), "drawn as the result is written")
        held.leave()


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f4", "f8"])
def test_transposed_arguments(w, dtype):
    a, b, s = whole(dtype, (9, 14)), whole(dtype, (9, 21), 1), whole(dtype, (3, 5, 8), 2)
    for text in ["a.T @ b", "b.T @ a", "a @ a.T", "a.T @ a", "v.T @ a", "a.T @ v.T",
                 "(a.T * a.T) @ b", "s @ s.mT", "s.mT @ s", "a.mT @ t.mT", "s.mT @ t"]:
        t = whole(dtype, (5, 9) if "a" in text else (3, 5, 2), 3)
        check(w, text, **used(text, a=a, b=b, s=s, t=t, v=a[:, 0].copy()))


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_matrix_times_itself_transposed_is_symmetric_to_the_bit(w, dtype):
    rng = np.random.default_rng(7)
    for shape in [(5, 3), (70, 41), (2, 33, 30), (1, 9), (130, 1)]:
        a = rng.normal(size=shape).astype(dtype)
        for text in ("a @ a.mT", "a.mT @ a", "(a / 3 + 1) @ (a.mT / 3 + 1)", "2 * (a @ a.mT) - 1"):
            near = numpy_of(text, a=a)
            got = computed(w, text, near, a=a)
            assert got.tobytes() == got.swapaxes(-1, -2).tobytes(), (text, shape)
            np.testing.assert_allclose(got, near, rtol=1e-3, atol=1e-3, err_msg=text)


# -- pools ----------------------------------------------------------------------------------------

SHAPES = [((), 700, 600, 900), ((), 64, 9000, 48), ((), 2000, 40, 700), ((7,), 210, 190, 250),
          ((300,), 20, 30, 25), ((), 1, 5000, 800), ((), 4000, 900, 1)]


def check_near(results, near, dtype):
    """All have the same bytes, which are near."""
    result, = results
    np.testing.assert_allclose(np.frombuffer(result, dtype).reshape(near.shape), near,
                               *[1e-2 if dtype == "f4" else 1e-9] * 2)


@pytest.fixture(scope="module")
def daemons():
    """The smallest pool with one thread, others with more."""
    running = [Daemon(pool=pool, threads=n) for pool, n in (("8M", 1), ("16M", 3), ("256M", 2))]
    yield running
    for daemon in running:
        daemon.stop()


@pytest.mark.parametrize("batch, m, k, n", SHAPES[1:3] if IS_SANITIZED else SHAPES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_bits_are_the_same_for_every_pool_and_number_of_threads(daemons, dtype, batch, m, k, n):
    rng = np.random.default_rng(8)
    a, b, c = (rng.normal(size=(*batch, *s)).astype(dtype) for s in ((m, k), (k, n), (m, n)))
    near = 2 * (a.astype("f8") @ b.astype("f8")) + c
    results = set()
    for daemon in daemons:
        with daemon.connect() as w:
            held = Held(w, a=a, b=b, c=c, d=np.zeros_like(c))
            held.run("2 * (a @ b) + c", "d", "a", "b", "c")
            results.add(held["d"].tobytes())
            held.run("2 * (a @ b) + c", "c", "a", "b", "c")
            assert held["c"].tobytes() in results, "in place"
            held.leave()
    check_near(results, near, dtype)


@pytest.mark.parametrize("batch, n, k", [((), 1100, 130), ((3,), 520, 40), ((), 40, 3000)])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.values
def test_symmetric_products_of_several_tiles(daemons, dtype, batch, n, k):
    """Computed for one half, stored in both; what is added differs between the halves."""
    rng = np.random.default_rng(9)
    a, c = rng.normal(size=(*batch, n, k)).astype(dtype), whole(dtype, (*batch, n, n))
    near = a.astype("f8") @ a.astype("f8").swapaxes(-1, -2)
    results = set()
    for daemon in daemons:
        with daemon.connect() as w:
            held = Held(w, a=a, c=c, d=np.zeros_like(c), t=np.ascontiguousarray(a.swapaxes(-1, -2)))
            held.run("a @ a.mT", "d", "a")
            product = held["d"].copy()
            assert product.tobytes() == product.swapaxes(-1, -2).tobytes()
            results.add(product.tobytes())
            held.run("t.mT @ t", "d", "t")
            assert held["d"].tobytes() in results, "read in another order"
            held.run("2 * (a @ a.mT) + c", "c", "a", "c")
            same(held["c"].copy(), 2 * product + c, "in place")
            held.leave()
    check_near(results, near, dtype)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f4", "f8"])
@pytest.mark.values
def test_layouts(w, dtype):
    """Operands and outputs of any strides."""
    m, k, n = 150, 170, 190
    expected = whole(dtype, (m, k)) @ whole(dtype, (k, n), 1)
    held = Held(w, a=np.zeros((2 * m, 2 * k), dtype), b=np.zeros((2 * k, 2 * n), dtype),
                c=np.zeros((2 * m, 2 * n), dtype))

    def views(x, rows, columns):
        yield x.reshape(-1)[:rows * columns].reshape(rows, columns)
        yield x.reshape(-1)[:rows * columns].reshape(columns, rows).T
        yield x[::2, ::2]
        yield x[rows - 1::-1, ::-2]
        yield x.reshape(-1)[:4 * rows * columns].reshape(2 * columns, 2 * rows)[::-2, :rows].T

    for a, b, c in itertools.chain(
            zip(views(held["a"], m, k), views(held["b"], k, n), views(held["c"], m, n)),
            zip(reversed([*views(held["a"], m, k)]), views(held["b"], k, n),
                itertools.islice(itertools.cycle(views(held["c"], m, n)), 2, 7))):
        a[...], b[...] = whole(dtype, (m, k)), whole(dtype, (k, n), 1)
        w.run("a @ b", a=held.at("a", a), b=held.at("b", b), to=held.at("c", c))
        same(c, expected, (a.strides, b.strides, c.strides))
        del a, b, c
    held.leave()


# (769 and 2049 are rows of which a block has one alone.)
TINY = [(60, 3000, 60), (300, 1200, 300), (1000, 300, 1100), (1500, 30, 1200), (769, 30, 3000),
        (2049, 385, 47), (500, 700, 383), (257, 385, 257), (2, 3000, 900), (500, 1, 3000),
        (1000, 64, 3000), (3000, 60, 3000), (1017, 192, 1555), (1, 100000, 1), (1, 3000, 1025),
        (1500, 900, 1)]
FITS = [(500, 1, 3000), (1000, 64, 3000), (3000, 60, 3000), (1017, 192, 1555)]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i8"])
@pytest.mark.values
def test_a_tiny_pool_gives_the_same_bytes(dtype):
    """It has room for any product of integers and with vectors, and for floats with short sides or
    with blocks that have parts."""
    rng = np.random.default_rng(17)
    tiny, roomy = Daemon(pool="4M"), Daemon(pool="64M")
    try:
        with tiny.connect() as small, roomy.connect() as large:
            for rows, depth, columns in TINY[:3] + TINY[-3:] if IS_SANITIZED else TINY:
                a, b = (rng.normal(0, 9, shape).astype(dtype)
                        for shape in ((rows, depth), (depth, columns)))
                like = np.zeros((rows, columns), dtype)
                want = computed(large, "a @ b", like, a=a, b=b)
                try:
                    got = computed(small, "a @ b", like, a=a, b=b)
                except wire.Error as error:
                    assert error.code == "too-large-for-pool"
                    assert dtype[0] == "f" and min(rows, columns) > 100, (rows, depth, columns)
                    assert (rows, depth, columns) not in FITS
                    continue
                assert got.tobytes() == want.tobytes(), (rows, depth, columns)
                near = a.astype("f8") @ b.astype("f8")  # exact of integers, which then wrap
                near = near if dtype[0] == "f" else near.astype("i8").astype(dtype)
                assert np.allclose(got, near, rtol=1e-4, atol=depth * 1e-3), (rows, depth, columns)
    finally:
        tiny.stop()
        roomy.stop()


@pytest.mark.parametrize("shape,dtype", [((656, 1127, 2249), "f4"), ((983, 1330, 957), "f4"),
                                         ((253, 1050, 714), "f8")])
def test_blocks_that_end_within_a_librarys_unit_have_no_parts(shape, dtype):
    """Their ends would be elsewhere, and with them the order of additions."""
    rows, depth, columns = shape
    rng = np.random.default_rng(18)
    a, b = (rng.normal(0, 9, s).astype(dtype) for s in ((rows, depth), (depth, columns)))
    found = []
    for pool in ("64M", "4M", "2M"):
        daemon = Daemon(pool=pool)
        try:
            with daemon.connect() as w:
                found.append(computed(w, "a @ b", np.zeros((rows, columns), dtype), a=a, b=b).tobytes())
        except wire.Error as error:
            assert error.code == "too-large-for-pool"
        finally:
            daemon.stop()
    assert len(set(found)) == 1


# -- generated ------------------------------------------------------------------------------------

def some_layout(rng, held, name, shape):
    """A view of that shape somewhere in the array: axes in any order, with steps, reversed."""
    if 0 in shape:
        return held[name][:0].reshape(shape)
    axes = rng.permutation(len(shape))
    steps = rng.choice([1, 1, 1, 2, 3] if rng.random() < 0.5 else [1], len(shape))
    stored = [int(shape[x] * steps[x]) for x in axes]
    first = int(rng.integers(0, 3))
    view = held[name][first:first + math.prod(stored)].reshape(stored)
    view = view.transpose(np.argsort(axes))
    signs = rng.choice([1, 1, 1, -1], len(shape))
    return view[(..., *(slice(None, None, int(s * d)) for s, d in zip(steps, signs)))]


def some_shapes(rng):
    """Of the left operand, the right one: as they are multiplied."""
    m, k, n = (int(rng.choice([0, 1, 2, 3, 5, 8, 17, 31, 64, 65, 130], p=[.03] + [.097] * 10))
               for _ in range(3))
    if rng.random() < 0.1:
        m, k, n = (int(rng.choice([1, 40, 700])) for _ in range(3))
    batch = [int(x) for x in rng.choice([1, 2, 3], rng.choice([0, 0, 1, 2]))]
    left, right = ([1 if rng.random() < 0.3 else x for x in batch][rng.integers(0, len(batch) + 1):]
                   for _ in range(2))
    left, right = [*left, m, k], [*right, k, n]
    kind = rng.random()
    return ([k] if kind < 0.15 else left), ([k] if kind < 0.05 or kind > 0.85 else right)


def some_operand(rng, name, shape):
    """Its text, the shape of the argument."""
    if len(shape) >= 2 and rng.random() < 0.3:
        shape = [*shape[:-2], shape[-1], shape[-2]]
        name += ".T" if len(shape) == 2 else ".mT"
    return rng.choice(["{}", "{}", "({} + {})", "(k - {})", "({} * 2)"]).replace("{}", name), shape


@pytest.mark.parametrize("seed", range(6))
def test_generated_products(w, seed):
    rng = np.random.default_rng([9, seed])
    for _ in range(5 if IS_SANITIZED else 25):
        generated_product(w, rng)


def generated_product(w, rng):
    (left, a_shape), (right, b_shape) = (
        some_operand(rng, name, shape) for name, shape in zip("ab", some_shapes(rng)))
    dtypes = [str(x) for x in rng.choice(DTYPES[1:], 2)]
    if rng.random() < 0.5:
        dtypes[1] = dtypes[0]
    values = {"a": whole("i1", a_shape, 1) // 16, "b": whole("i1", b_shape, 2) // 16}
    values = {name: np.abs(x).astype(d) for (name, x), d in zip(values.items(), dtypes)}
    text = f"{left} @ {right}"
    if len(a_shape) > 1 and rng.random() < 0.15:
        text = "a.mT @ a" if "T" in left else f"{left} @ {left.replace('a', 'a.mT')}"
    like = numpy_of(text, **values, k=3)
    c_shape = [1 if rng.random() < 0.2 else x for x in like.shape]
    values["c"] = np.abs(whole("i1", c_shape, 3)).astype(str(rng.choice(DTYPES[1:])))
    text = rng.choice(["{}", "{}", "2 * ({}) + c", "maximum({}, c)", "where({} > k, c, {})"]
                      ).replace("{}", text)
    expected = numpy_of(text, **values, k=3)
    spare = [np.zeros(3 + 3 ** x.ndim * x.size, x.dtype) for x in (*values.values(), expected)]
    held = Held(w, **dict(zip(["a", "b", "c", "out"], spare)))
    views = {name: some_layout(rng, held, name, x.shape) for name, x in values.items()}
    for name, x in values.items():
        views[name][...] = x
    out = some_layout(rng, held, "out", expected.shape)
    described = {name: held.at(name, x) for name, x in views.items()}
    w.run(text, to=held.at("out", out), **used(text, **described, k=3))
    same(out, expected, (text, a_shape, b_shape, [x.dtype for x in values.values()],
                         [x.strides for x in (*views.values(), out)]))
    del out, views
    held.leave()


# -- what is refused ------------------------------------------------------------------------------

def fails(w, code, expr, to=None, **args):
    with pytest.raises(wire.Error) as caught:
        w.run(expr, to=to, **args)
    assert caught.value.code == code, (expr, caught.value.message)
    assert caught.value.argument and caught.value.expected and caught.value.found, expr
    return caught.value


def test_refuses_what_numpy_refuses(w):
    a, b = whole("f8", (3, 4)), whole("f8", (4, 5))
    error = fails(w, "bad-shape", "a @ a", a=a)
    assert "(3, 4) @ (3, 4)" in error.message
    assert (error.expected, error.found) == ("4 rows on the right", "3")
    fails(w, "bad-shape", "b @ a", a=a, b=b)
    fails(w, "bad-shape", "a @ 2", a=a)
    fails(w, "bad-shape", "x @ a", a=a, x=np.float64(3))
    fails(w, "bad-shape", "s @ t", s=whole("f8", (2, 3, 4)), t=whole("f8", (3, 4, 5)))
    held = Held(w, out=np.zeros((3, 4)))
    assert fails(w, "bad-shape", "a @ b", a=a, b=b, to=held.at("out")).expected == "(3, 5)"
    held.leave()
    for text in ("s @ s.T", "v.mT @ a", "k.T @ a", "(s @ s).T", "(a @ v).mT @ a"):
        fails(w, "bad-shape", text, **used(text, s=np.zeros((2, 3, 3)), v=a[:, 0], k=3, a=a))


@pytest.mark.parametrize("text", ["a.T", "a.T + b", "sum(a.T)", "(a @ b) + b.T", "(a + b).T",
                                  "sum(b.T, axis=0) @ a", "b @ (a - sum(b, axis=0)).T",
                                  "cumsum(a, axis=0).T @ b", "b @ (a + index(0)).T",
                                  "tensordot(a, b, 1).T", "median(a).T.X",
                                  "b @ (a + uniform(seed=1)).T", "(a @ b).sum()", "near(a, 1, 0).T @ b"])
def test_refuses_transposed_arguments_elsewhere(w, text):
    a = whole("f8", (5, 5))
    fails(w, "bad-expression", text, **used(text, a=a, b=whole("f8", (5, 5), 1)))


def test_a_transposed_left_operand_is_any_expression_of_rows(w):
    a, b = whole("f8", (5, 4)), whole("f8", (5, 3), 1)
    places = np.arange(5)[:, None]
    numbers = w.compute("0*a + uniform(seed=1)", a=a)
    for text, left in {"(a - sum(b)).T @ b": a - b.sum(), "(a + index(0)).T @ b": a + places,
                       "(a - sum(a, axis=0)).T @ b": a - a.sum(axis=0),
                       "(a + uniform(seed=1)).T @ b": a + numbers}.items():
        np.testing.assert_allclose(w.compute(text, a=a, b=b), left.T @ b, rtol=1e-13, atol=1e-12,
                                   err_msg=text)
    fails(w, "bad-shape", "sum(a, axis=0, keepdims=True).T @ b", a=a, b=b)


def test_an_output_may_not_overlap_an_operand(w):
    a, b = whole("f8", (6, 6)), whole("f8", (6, 6), 1)
    held = Held(w, a=a, b=b)
    for text in ("a @ b", "b @ a", "a.T @ b", "(a + 1) @ b + a", "a @ a.T"):
        names = [name for name in "ab" if name in text]
        with pytest.raises(wire.Error) as caught:
            held.run(text, "a", *names)
        assert caught.value.code == "overlapping-output" and caught.value.expected, text
    held.w.run("b @ c + a", a=held.at("a"), b=held.at("b"), c=b, to=held.at("a"))
    same(held["a"], b @ b + a, "in place")
    with pytest.raises(wire.Error) as caught:
        held.w.run("b @ c + a", a=held.at("a", held["a"].T), b=held.at("b"), c=b, to=held.at("a"))
    assert caught.value.code == "overlapping-output"
    held.leave()
