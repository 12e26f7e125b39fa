"""Lazies among NumPy's arrays and Python's numbers: operators from either side, NumPy's functions,
and all that raises because it would have to compute in silence or cannot be computed."""

import copy
import math
import operator
import pickle

import numpy as np
import pytest

from catalogue import NUMPY_2, assert_same

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's promotion")
A = np.array([[3.5, -1.0, 2.0], [0.25, 8.0, -4.5]])
I = np.array([5, 2, 7], "i4")  # noqa: E741
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
          operator.mod, operator.pow, operator.eq, operator.ne, operator.lt, operator.le,
          operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
OPERANDS = {"int": 3, "float": 2.5, "bool": True, "float32": np.float32(1.5),
            "float64": np.float64(0.1), "int8": np.int8(3), "uint64": np.uint64(3),
            "bool_": np.True_, "array": np.array([1.5, 2, 3]), "integers": np.array([2, 1, 3]),
            "0-d": np.array(2, "i2"), "list": [1, 2, 3], "column": np.array([[1], [2]], "u1"),
            "swapped": np.array([1, 2, 3], ">i4")}


@pytest.fixture(scope="module")
def two():
    return np.array([4, 9, 1], "i2"), np.array([1.5, 0.5, 2], "f4")


def same(got, want, name=""):
    assert_same(np.asarray(got), np.asarray(want), name)


# -- operators ----------------------------------------------------------------------------------

@pytest.mark.parametrize("name", OPERANDS)
def test_operators_from_either_side(gd, two, name):
    """Of an integer and a float array with each kind of operand."""
    other, lazies, wanted = OPERANDS[name], [], []
    for array in two:
        for function in BINARY + (BITS if array.dtype.kind == "i" else []):
            if function in BITS and np.result_type(array, np.asarray(other)).kind == "f":
                continue
            for one, two_sided in ((gd.lazy(array), (array, other)), (None, (other, array))):
                left, right = two_sided
                lazy = function(gd.lazy(array), other) if one is not None \
                    else function(other, gd.lazy(array))
                assert type(lazy) is gd.Lazy, (function, type(other))
                with np.errstate(all="ignore"):
                    want = function(left, np.asarray(right) if isinstance(right, list) else right)
                lazies.append(lazy)
                wanted.append((f"{function.__name__} of {left!r} and {right!r}", want))
    got = [one for i in range(0, len(lazies), 16) for one in gd.compute(*lazies[i:i + 16])]
    for value, (what, want) in zip(got, wanted, strict=True):
        if "pow" in what:
            assert value.dtype == want.dtype, what
            np.testing.assert_allclose(value, want, rtol=1e-6)
        else:
            same(value, want, what)


def test_operators_of_one(gd):
    x, i, b = gd.lazy(A), gd.lazy(I), gd.lazy(A > 0)
    for lazy, want in [(-x, -A), (+x, +A), (abs(x), abs(A)), (~i, ~I), (~b, ~(A > 0)),
                       (round(x), np.round(A)), (round(x * 3.14159, 2), np.round(A * 3.14159, 2)),
                       (round(i, -1), np.round(I, -1))]:
        same(lazy.compute(), want)


def test_divmod_is_two_lazies(gd):
    x = gd.lazy(A)
    for got, want in [(divmod(x, 2), divmod(A, 2)), (divmod(7.5, x), divmod(7.5, A)),
                      (divmod(A, x * 2), divmod(A, A * 2)), (np.divmod(x, 2), divmod(A, 2)),
                      (np.modf(x), np.modf(A)), (np.frexp(x), np.frexp(A))]:
        assert type(got) is tuple and len(got) == 2
        for value, part in zip(gd.compute(*got), want):
            same(value, part)


def test_augmented_assignments(gd):
    x = y = gd.lazy(A)
    x += 1
    x *= 2
    same(x.compute(), (A + 1) * 2)
    same(y.compute(), A)  # a lazy does not change
    a = A.copy()
    a += gd.lazy(A) * 2  # an array does: out=a
    assert type(a) is np.ndarray
    same(a, A * 3)


def test_methods(gd):
    x = gd.lazy(A)
    for lazy, want in [(x.sum(), A.sum()), (x.mean(), A.mean()), (x.min(), A.min()),
                       (x.max(axis=None), A.max()), (x.clip(0), A.clip(0)),
                       (x.clip(0, 3), A.clip(0, 3)), (x.clip(max=3), A.clip(max=3)),
                       (x.round(1), A.round(1)), (x.astype(int), A.astype(int)),
                       (x.astype(np.float32, copy=False), A.astype("f4")),
                       (x.astype("?"), A.astype("?")), (x.sum(keepdims=False), A.sum())]:
        same(lazy.compute(), want)


# -- NumPy's functions --------------------------------------------------------------------------

def test_every_ufunc_of_the_catalogue(gd):
    """np.NAME(lazy) is gd.NAME(lazy), for all that are NumPy's."""
    from gpuarrayd._lazy.text import written
    x, n = gd.lazy(I), 0
    for op in gd.ops():
        ufunc = getattr(np, op["name"], None)
        if not isinstance(ufunc, np.ufunc):
            continue
        n += 1
        ours = getattr(gd, op["name"])(*[x] * op["args"])
        theirs = ufunc(*[x] * op["args"])
        pairs = [(ours, theirs)] if op["results"] == 1 else zip(ours, theirs, strict=True)
        for a, b in pairs:
            assert written([a._node]) == written([b._node])
    assert n > 75


def test_ufuncs_by_their_other_names(gd):
    x = gd.lazy(A)
    for got, want in [(np.abs(x), np.abs(A)), (np.true_divide(x, 3), A / 3), (np.mod(x, 3), A % 3),
                      (np.bitwise_not(gd.lazy(I)), ~I), (np.add(A, x), A + A),
                      (np.add(1, x), A + 1), (np.fmod(A, x[0]), np.fmod(A, A[0])),
                      (np.less([1, 2, 3], x), A > [1, 2, 3])]:
        same(got.compute(), want)


def test_scipys_ufuncs(gd):
    special = pytest.importorskip("scipy.special")
    x = gd.lazy(np.linspace(0.1, 0.9, 20))
    for name in ("erf", "erfc", "expit", "logit", "gamma", "gammaln"):
        function = getattr(special, name)
        np.testing.assert_allclose(function(x).compute(), function(np.asarray(x)), rtol=1e-14)
    for name in ("jv", "round", "exp10"):  # of NumPy's names too, with meanings of their own
        function = getattr(special, name)
        with pytest.raises(gd.errors.Unsupported, match=name):
            function(*[x] * function.nin)


def test_functions_that_are_no_ufuncs(gd):
    a = np.array([[3.14159, -1.5, np.nan], [np.inf, 0, -np.inf]])
    x, ok = gd.lazy(a), gd.lazy(A)
    for got, want in [
            (np.where(x > 0, x, 7), np.where(a > 0, a, 7)), (np.clip(x, 0, 2), np.clip(a, 0, 2)),
            (np.clip(x, None, 2), np.clip(a, None, 2)), (np.clip(a, x, 2), np.clip(a, a, 2)),
            (np.clip(x, min=0), np.clip(a, 0, None)), (np.round(x, 2), np.round(a, 2)),
            (np.around(x, 1), np.around(a, 1)), (np.nan_to_num(x), np.nan_to_num(a)),
            (np.nan_to_num(x, nan=2, posinf=5), np.nan_to_num(a, nan=2, posinf=5)),
            (np.isclose(x, 3.14, 1e-2), np.isclose(a, 3.14, 1e-2)),
            (np.isclose(a, x, equal_nan=True), np.isclose(a, a, equal_nan=True)),
            (np.select([x > 0, a < 0], [x, 2 * x], -1), np.select([a > 0, a < 0], [a, 2 * a], -1)),
            (np.isposinf(x), np.isposinf(a)), (np.isneginf(x), np.isneginf(a)),
            (np.fix(ok), np.trunc(A)), (np.mean(ok), np.mean(A)), (np.sum(ok), np.sum(A)),
            (np.min(ok), np.min(A)), (np.amin(ok, None), A.min()), (np.max(ok), A.max()),
            (np.amax(ok, axis=None), A.max()), (np.count_nonzero(x), np.count_nonzero(a)),
            (np.add.reduce(ok, axis=None), A.sum()), (np.minimum.reduce(ok, axis=None), A.min()),
            (np.maximum.reduce(ok, None), A.max()), (np.multiply.reduce(ok), A.prod(0)),
            (np.add.reduce(ok), A.sum(0)), (np.max(ok, 1, keepdims=True), A.max(1, keepdims=True)),
            (np.any(ok > 3, axis=0), (A > 3).any(0)), (np.argmax(ok, -1), A.argmax(-1)),
            (np.ptp(ok, 0), np.ptp(A, 0)), (np.nanmax(x, 1), np.nanmax(a, 1)),
            (np.add.reduce(ok > 1, axis=None), (A > 1).sum()),
            (np.argwhere(x > 0), np.argwhere(a > 0)), (np.argwhere(ok > 1e9), np.argwhere(A > 1e9)),
            (np.argwhere(ok[0, 0]), np.argwhere(A[0, 0])), (np.argwhere(ok[0, 0] * 0), np.argwhere(A[0, 0] * 0)),
            (np.argsort(ok[0, 0]), np.argsort(A[0, 0])),
            *[(np.rot90(x, k), np.rot90(a, k)) for k in (-1, 0, 1, 2, 3, 4)],
            (np.rot90(ok[None], 1, (2, 1)), np.rot90(A[None], 1, (2, 1))),
            (np.column_stack([x[:, 0], x]), np.column_stack([a[:, 0], a]))]:
        assert type(got) is gd.Lazy
        same(got.compute(), want)
    np.testing.assert_allclose(np.sinc(ok).compute(), np.sinc(A), rtol=1e-13, atol=1e-16)
    if hasattr(np, "astype"):
        same(np.astype(ok, "f4").compute(), A.astype("f4"))


def test_functions_that_tell_what_it_is(gd):
    x = gd.lazy(np.zeros((2, 3), "f4")) + 1
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((2, 3), 2, 6, 3)
    assert np.result_type(x, np.int32(1)) == np.float64 and np.result_type(x, 1.5) == np.float32


def test_out_of_ufuncs_and_functions(gd):
    x, out = gd.lazy(A), np.empty((2, 3))
    assert np.add(x, 1, out=out) is out
    same(out, A + 1)
    assert np.multiply(out, x, out) is out
    same(out, (A + 1) * A)
    pair = np.empty((2, 3)), np.empty((2, 3))
    for got, out_i, want in zip(np.modf(x, out=pair), pair, np.modf(A), strict=True):
        assert got is out_i
        same(got, want)
    whole, rest = np.divmod(x, 2, out=(None, out))
    same(whole, A // 2)
    assert rest is out
    same(out, A % 2)
    assert np.clip(x, 0, 1, out=out) is out and np.round(x, 1, out=out) is out
    same(out, A.round(1))
    with pytest.raises(gd.errors.BadDtype):
        np.add(x, 1, out=np.empty((2, 3), "i4"))
    with pytest.raises(gd.errors.ReadOnly):
        np.add(A, 1, out=x)


# -- what is not computed -----------------------------------------------------------------------

def refused(gd, name, call):
    with pytest.raises(gd.errors.Unsupported) as caught:
        call()
    assert name in str(caught.value), caught.value
    assert isinstance(caught.value, TypeError) and caught.value.code == "unsupported"


def test_functions_of_numpy_that_are_not_computed_are_named(gd):
    x = gd.lazy(A)
    for name in ("lexsort", "array_equiv", "linalg.eig", "fft.fft",
                 "einsum_path", "ediff1d", "unique", "unwrap", "save", "trim_zeros", "partition", "i0"):
        function = np
        for part in name.split("."):
            function = getattr(function, part)
        arguments = {"partition": (x, 1), "array_equiv": (x, x),
                     "einsum_path": ("ij->i", x), "save": ("x.npy", x)}.get(name, (x,))
        refused(gd, f"np.{name} ", lambda: function(*arguments))
    for name, call in [("np.conjugate", lambda: np.conjugate(x)),
                       ("np.logaddexp.outer", lambda: np.logaddexp.outer(x, x)),
                       ("np.minimum.accumulate", lambda: np.minimum.accumulate(x)),
                       ("np.divide.reduce", lambda: np.divide.reduce(x, axis=None)),
                       ("np.positive.at", lambda: np.positive.at(x, 0))]:
        refused(gd, name, call)
    refused(gd, "np.where(condition)", lambda: np.where(x > 0))


def test_a_ufunc_of_others_with_a_name_of_the_catalogue(gd):
    def sqrt(x):
        return x
    other = np.frompyfunc(sqrt, 1, 1)
    refused(gd, "sqrt", lambda: other(gd.lazy(A)))


def test_options_of_numpys_functions_are_refused_by_name(gd):
    x = gd.lazy(A)
    for name, call in [
            ("np.sqrt: casting=", lambda: np.sqrt(x, casting="unsafe")),
            ("np.sqrt: order=", lambda: np.sqrt(x, order="F")),
            ("np.maximum.reduce: dtype=", lambda: np.maximum.reduce(x, dtype="f4")),
            ("np.logical_or.reduce: initial=", lambda: np.logical_or.reduce(x, initial=True)),
            ("np.clip: where=", lambda: np.clip(x, 0, 1, where=A > 0)),
            ("std: mean=", lambda: x.std(mean=3)), ("var: mean=", lambda: np.var(x, mean=3)),
            ("round: out=", lambda: x.round(1, out=A)), ("clip: out=", lambda: x.clip(0, out=A)),
            ("astype: order=", lambda: x.astype("f4", "F")),
            ("astype: casting=", lambda: x.astype("f4", casting="safe"))]:
        refused(gd, name, call)
    same(np.sqrt(abs(x), where=True, casting="same_kind", order="K", dtype=None).compute(),
         np.sqrt(abs(A)))


def test_dtypes_that_are_not_computed(gd):
    x = gd.lazy(A)
    for dtype in ("f2", "c8", "O", "S3", "M8[s]", "g", ">f4"):
        refused(gd, "", lambda: x.astype(dtype))
    refused(gd, "complex", lambda: np.asarray(x, dtype=complex))
    same(np.asarray(x, dtype="f4"), A.astype("f4"))
    same(np.asarray(x, dtype=">f4"), A.astype(">f4"))
    same(np.array(x), A)
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, copy=False)


def test_what_has_no_answer_before_it_is_computed(gd):
    x = gd.lazy(A)
    before = gd.stats()["jobs"]["submitted"]
    for name, call in [("bool", lambda: bool(x)), ("&", lambda: x > 0 and x < 3),
                       ("x.compute()", lambda: list(x)),
                       ("count_nonzero", lambda: 3 in x), ("math.sqrt", lambda: math.sqrt(x)),
                       ("float", lambda: float(x)), ("int", lambda: int(x[:1])),
                       ("x.compute()", lambda: sum(x)), ("x.compute()", lambda: max(x)),
                       ("out=", lambda: operator.setitem(x, 0, 1)), ("partition", lambda: np.partition(x, 1)),
                       ("modulus", lambda: pow(x, 2, 3)), ("gd.open", lambda: gd.Lazy())]:
        refused(gd, name, call)
    with pytest.raises(TypeError):
        hash(x)
    with pytest.raises(TypeError):
        range(x.sum())
    assert gd.stats()["jobs"]["submitted"] == before


def test_one_number_is_computed_for_whoever_asks_for_it(gd):
    x = gd.lazy(A)
    assert float(x.mean()) == A.mean() and math.sqrt(x.max()) == math.sqrt(A.max())
    assert int(x.max()) == int(A.max()) and bool(x.max() > 0) and not x.min() > x.max()
    means = np.empty(len(A))
    for i in range(len(A)):
        means[i] = x[i].mean()
    assert np.array_equal(means, [row.mean() for row in A])
    with pytest.raises(ValueError, match="shape"):
        float(x)


def test_whether_arrays_are_equal_is_computed(gd):
    x = np.array([1, np.nan, 3])
    lazy = gd.lazy(x)
    for got, want in ((np.array_equal(lazy, x), False), (np.array_equal(lazy, x, True), True),
                      (np.array_equal(lazy, x[:2], equal_nan=True), False),
                      (np.array_equal(lazy, None), False), (np.array_equal([[1], [1, 2]], lazy), False),
                      (np.array_equal([1, 2], gd.lazy([1, 2]), equal_nan=True), True),
                      (np.allclose(lazy[::2], [1, 3.00001]), True),
                      (np.allclose(lazy, x + 1e-9, equal_nan=True), True),
                      (np.allclose(lazy, x), False), (np.allclose(lazy[:1], 1.1, atol=0.2), True)):
        assert got is want
    assert lazy.view("u8").tolist() == x.view("u8").tolist()


def test_attributes_of_arrays_that_lazies_have_not(gd):
    x = gd.lazy(A)
    for name in ("repeat", "fill", "sort", "strides", "data"):
        assert not hasattr(x, name)
        refused(gd, f"{name} of a lazy", lambda: getattr(x, name))
    with pytest.raises(AttributeError, match="'Lazy' object has no attribute 'nothing'"):
        x.nothing
    with pytest.raises(AttributeError):
        x.more = 1
    assert not hasattr(x, "__array_interface__") and not isinstance(x, np.ndarray)


def test_arrays_that_are_refused_when_they_meet_a_lazy(gd):
    x = gd.lazy(np.ones(2))
    masked = np.ma.array([1., 2], mask=[0, 1])
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([1, 2])
    unsupported, bad_dtype = gd.errors.Unsupported, gd.errors.BadDtype
    for other, error, words in [
            (masked, unsupported, "filled"), (np.array([1, None]), bad_dtype, "object"),
            (matrix, unsupported, "matrix"), (np.array(["a", "b"]), bad_dtype, "dtype"),
            (1j, bad_dtype, "complex"), (np.ones(2, "c8"), bad_dtype, "real"),
            (np.float16(1), bad_dtype, "f4"), (np.longdouble(1), bad_dtype, "f8"),
            (np.ones(2, "f2"), bad_dtype, "f4"), (np.zeros(2, [("x", "f4")]), bad_dtype, "field"),
            (np.array(["2026-01-01"] * 2, "M8[D]"), bad_dtype, "datetime"),
            ("file.npy", gd.errors.BadArgument, "gd.open"), ([[1], [1, 2]], gd.Error, "array")]:
        for call in (lambda: x + other, lambda: other + x, lambda: np.add(x, other),
                     lambda: np.add(other, x), lambda: gd.where(x > 0, x, other)):
            with pytest.raises((error, TypeError)) as caught:
                call()
            if isinstance(caught.value, gd.Error):
                assert words in str(caught.value)
        with pytest.raises(error, match=words):
            gd.where(x > 0, x, other)
        with pytest.raises(error, match=words):
            x + other
    for call in (lambda: np.ma.add(x, masked), lambda: np.ma.sqrt(x), lambda: masked * x):
        with pytest.raises(gd.errors.Unsupported, match="mask"):
            call()


def test_objects_that_know_lazies_answer_themselves(gd):
    class Other:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "theirs"

    assert gd.lazy(A) + Other() == "theirs"
    with pytest.raises(TypeError, match="unsupported operand"):
        gd.lazy(A) + object()


def test_a_lazy_expression_is_no_argument_of_the_text_form(gd):
    x = gd.lazy(A)
    same(gd.evaluate("x + 1", x=x), A + 1)  # a leaf is
    refused(gd, "argument", lambda: gd.evaluate("x + 1", x=x * 2))
    same(gd.lazy(x * 2).compute(), A * 2)


def test_a_list_of_lazies_is_no_array(gd):
    x = gd.lazy(A)
    for call in (lambda: gd.compute([x, x]), lambda: x + [x, x], lambda: gd.lazy((x, 1)),
                 lambda: gd.where(x > 0, [x, x], 0), lambda: [x] + x):
        refused(gd, "list of lazies", call)


def test_none_and_buffers(gd):
    x = gd.lazy(np.array([1.5, 2]))
    for call in (lambda: x == None, lambda: x != None, lambda: None + x):  # noqa: E711
        with pytest.raises(gd.errors.BadArgument, match="NoneType"):
            call()
    same((x + memoryview(np.array([1., 2]))).compute(), [2.5, 4])
    with pytest.raises(gd.errors.BadDtype):
        x + b"ab"


def test_very_deep_expressions_end_well(gd):
    x = gd.lazy(A)
    for _ in range(30_000):
        x = x + 1
    assert x._node.shape == (2, 3)
    assert x[1]._node.shape == (3,)
    del x


def test_copies(gd):
    a = A.copy()
    x = gd.lazy(a) + 1
    shallow, deep, sent = copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))
    a[:] = 0
    same(shallow.compute(), a + 1)
    same(deep.compute(), A + 1)
    same(sent.compute(), A + 1)
