"""Reductions before they are computed: NumPy's signatures, shapes, what is sent to the daemon, parts
of them, and all that is refused. No daemon is needed."""

import inspect
import pickle

import gpuarrayd as gd
import numpy as np
import pytest

from catalogue import NUMPY_2
from gpuarrayd._lazy.text import written

A = np.arange(24.).reshape(2, 3, 4)
NAMES = ("sum prod mean var std min max amin amax ptp argmin argmax any all count_nonzero nansum "
         "nanprod nanmean nanvar nanstd nanmin nanmax").split()
METHODS = "sum prod mean var std min max argmin argmax any all".split()
ALIAS = {"amin": "min", "amax": "max"}


def text(lazy):
    [found], _ = written([lazy._node])
    return found


def shape(lazy):
    return lazy._node.shape


@pytest.fixture
def x():
    return gd.lazy(A)


def parameters(function):
    return [(p.name, p.kind) for p in inspect.signature(function).parameters.values()]


# -- what they are called with ------------------------------------------------------------------

@pytest.mark.skipif(not NUMPY_2, reason="older NumPy's have fewer parameters")
@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_numpys(name):
    own, numpys = getattr(gd, name), getattr(np, name)
    assert parameters(own) == parameters(numpys)
    for mine, theirs in zip(inspect.signature(own).parameters.values(),
                            inspect.signature(numpys).parameters.values(), strict=True):
        if theirs.default is not np._NoValue and name not in ("max", "min"):
            assert mine.default == theirs.default, mine.name


def test_norms_signature_is_numpys():
    assert parameters(gd.linalg.norm) == parameters(np.linalg.norm)
    assert gd.norm is gd.linalg.norm


def test_logsumexps_signature_is_scipys():
    special = pytest.importorskip("scipy.special")
    assert parameters(gd.logsumexp) == parameters(special.logsumexp)


@pytest.mark.parametrize("name", METHODS)
def test_methods_have_the_functions_parameters(name):
    method = parameters(getattr(gd.Lazy, name))
    assert method[1:] == parameters(getattr(gd, name))[1:]
    defaults = [[p.default for p in list(inspect.signature(f).parameters.values())[1:]]
                for f in (getattr(gd.Lazy, name), getattr(gd, name))]
    assert defaults[0] == defaults[1]


@pytest.mark.parametrize("name", [*NAMES, "norm"])
def test_functions_methods_and_numpys_functions_are_one(x, name):
    numpys = np.linalg.norm if name == "norm" else getattr(np, name)
    for axis in (None, 0, -1):
        want = text(getattr(gd, name)(x, axis=axis))
        assert text(numpys(x, axis=axis)) == want
        if name in METHODS:
            assert text(getattr(x, name)(axis=axis)) == want
            assert text(getattr(x, name)(axis)) == want


@pytest.mark.parametrize("name", [*NAMES, "norm", "logsumexp"])
def test_every_parameter_is_described(name):
    text = inspect.getdoc(getattr(gd, name))
    listed = text[text.index("Parameters\n"):text.index("Returns\n")]
    named = {word for line in listed.splitlines() if " : " in line and not line.startswith(" ")
             for word in line.split(" : ")[0].split(", ")}
    own = {parameter for parameter, _ in parameters(getattr(gd, name))}
    assert own <= named and named - own <= {"correction"}
    assert "Raises\n" in text and "NoAxis" in text


def test_nothing_of_numpys_is_nothing(x):
    nothing = np._NoValue
    assert text(np.sum(x, 0, keepdims=nothing, initial=nothing, where=nothing)) == "sum(_0,axis=0)"
    assert text(np.mean(x, keepdims=nothing, where=nothing)) == "mean(_0)"


# -- what they are ------------------------------------------------------------------------------

@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0,), (0, 1), (2, 0), (-1, -3), (0, 1, 2), (),
                                  np.int8(1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_shapes(x, axis, keepdims):
    for name in ("sum", "std", "max", "any"):
        got = getattr(gd, name)(x, axis=axis, keepdims=keepdims)
        assert shape(got) == getattr(np, name)(A, axis=axis, keepdims=keepdims).shape


def test_places_of_extrema(x):
    for axis in (None, 0, -1):
        for keepdims in (False, True):
            got = gd.argmin(x, axis, keepdims=keepdims)
            assert shape(got) == np.argmin(A, axis, keepdims=keepdims).shape


def test_of_arrays_without_axes():
    one = gd.lazy(np.array(3.))
    for lazy in (one.sum(), one.max(keepdims=True), one.std(axis=()), gd.argmax(one)):
        assert shape(lazy) == ()
    assert text(one.sum(axis=(), keepdims=True)) == "sum(_0)"


@pytest.mark.parametrize("lazy, want", [
    (lambda x: x.sum(), "sum(_0)"), (lambda x: x.sum(axis=(0, 1, 2)), "sum(_0)"),
    (lambda x: x.sum(-1), "sum(_0,axis=2)"), (lambda x: x.sum((2, 0)), "sum(_0,axis=(0,2))"),
    (lambda x: x.sum(()), "sum(_0,axis=())"),
    (lambda x: x.mean(0, keepdims=1), "mean(_0,axis=0,keepdims=True)"),
    (lambda x: x.max(keepdims=True), "max(_0,keepdims=True)"),
    (lambda x: x.sum(dtype="f4"), "sum(_0,dtype=float32)"),
    (lambda x: x.std(ddof=1), "std(_0,ddof=1)"), (lambda x: x.var(ddof=0), "var(_0)"),
    (lambda x: x.std(ddof=1.5), "std(_0,ddof=1.5)"), (lambda x: x.var(ddof=-1), "var(_0,ddof=-1)"),
    (lambda x: x.std(correction=1), "std(_0,ddof=1)"),
    (lambda x: x.sum(initial=3), "sum(_0,initial=3)"), (lambda x: x.sum(initial=0), "sum(_0)"),
    (lambda x: x.prod(initial=np.float32(1.5)), "prod(_0,initial=1.5)"),
    (lambda x: x.min(initial=-np.inf), "min(_0,initial=-inf)"),
    (lambda x: x.sum(where=x > 1), "sum(_0,where=_0>1)"),
    (lambda x: x.mean(where=np.True_), "mean(_0,where=bool(True))"),
    (lambda x: x.max(where=x > 1, initial=0), "max(_0,where=_0>1,initial=0)"),
    (lambda x: gd.norm(x), "norm(_0)"), (lambda x: gd.norm(x[0], "fro"), "norm(_0)"),
    (lambda x: gd.norm(x, 3, 1), "norm(_0,ord=3,axis=1)"),
    (lambda x: gd.norm(x, -np.inf, 1), "norm(_0,ord=-inf,axis=1)"),
    (lambda x: gd.norm(x, "fro", (2, 0), True), "norm(_0,axis=(0,2),keepdims=True)"),
    (lambda x: gd.norm(x[0], 1), "max(norm(_0,ord=1,axis=0,keepdims=True))"),
    (lambda x: gd.norm(x, -np.inf, (2, 0)),
     "min(norm(_0,ord=1,axis=0,keepdims=True),axis=(0,2))"),
    (lambda x: gd.logsumexp(x, 1, keepdims=True), "logsumexp(_0,axis=1,keepdims=True)"),
    (lambda x: gd.logsumexp(x, b=2), "logsumexp(_0,b=2)"),
    (lambda x: np.add.reduce(x), "sum(_0,axis=0)"),
    (lambda x: np.add.reduce(x, 1), "sum(_0,axis=1)"),
    (lambda x: np.add.reduce(x, axis=None, dtype="f4"), "sum(_0,dtype=float32)"),
    (lambda x: np.multiply.reduce(x, (0, 2), keepdims=True), "prod(_0,axis=(0,2),keepdims=True)"),
    (lambda x: np.maximum.reduce(x, initial=5), "max(_0,initial=5,axis=0)"),
    (lambda x: np.minimum.reduce(x, axis=-1), "min(_0,axis=2)"),
    (lambda x: np.fmin.reduce(x), "nanmin(_0,axis=0)"),
    (lambda x: np.fmax.reduce(x, None), "nanmax(_0)"),
    (lambda x: np.logical_and.reduce(x, where=x > 1), "all(_0,where=_0>1,axis=0)"),
    (lambda x: np.logical_or.reduce(x, axis=None), "any(_0)"),
    (lambda x: (x - x.mean(0)) / x.std(0), "(_0-mean(_0,axis=0))/std(_0,axis=0)"),
    (lambda x: x.max(2).sum(0).mean(), "mean(sum(max(_0,axis=2),axis=0))"),
])
def test_texts(x, lazy, want):
    assert text(lazy(x)) == want


def test_one_reduction_that_is_used_twice_is_written_once(x):
    mean = x.mean(axis=0)
    assert text((x - mean) * mean) == "_t0=mean(_0,axis=0);(_0-_t0)*_t0"


def test_they_go_between_processes(x):
    y = (x - x.mean((0, 2), keepdims=True)).std(1, ddof=1) + gd.logsumexp(x, 1, b=2)
    sent = pickle.loads(pickle.dumps(y))
    assert (text(sent), shape(sent)) == (text(y), shape(y)) and shape(y) == (2, 4)


# -- parts of them ------------------------------------------------------------------------------

def evaluated(node, array):
    """A graph of one array and a few functions, by NumPy."""
    from gpuarrayd._lazy.graph import Number, Reduction, ordered
    made = {}
    for one in ordered(node):
        parts = [made[id(part)] for part in one.parts]
        if isinstance(one, Number):
            made[id(one)] = one.value
        elif not one.parts:
            made[id(one)] = one.array
        elif isinstance(one, Reduction):
            options = {"where": parts[1]} if len(parts) > 1 else {}
            axis = one.axes[0] if one.op == "argmax" and len(one.axes) == 1 else \
                None if one.op == "argmax" else one.axes
            made[id(one)] = getattr(np, one.op)(parts[0], axis=axis, keepdims=one.keepdims,
                                                **options)
        else:
            made[id(one)] = getattr(np, one.op)(*parts)
    return made[id(node)]


def test_parts_are_reductions_of_parts():
    rng = np.random.default_rng(8)
    from test_lazy_parts import some_keys
    for _ in range(400):
        array = rng.integers(0, 50, rng.integers(1, 5, rng.integers(1, 4))).astype("f8")
        x, axis = gd.lazy(array), int(rng.integers(array.ndim))
        keep = bool(rng.integers(2))
        y = [lambda: x.max(axis, keepdims=keep), lambda: x - x.max(axis, keepdims=True),
             lambda: (x + 1).sum((axis,), where=x > 3, keepdims=keep) * 2,
             lambda: x.sum(keepdims=True) + x, lambda: x.sum(axis).sum(),
             lambda: x.argmax(axis, keepdims=keep), lambda: x.sum(axis) - x.max() + 1,
             lambda: x.sum((0, -1) if array.ndim > 1 else 0, keepdims=True),
             lambda: (x - x.sum(axis, keepdims=True)).max(axis)][rng.integers(9)]()
        whole = evaluated(y._node, array)
        assert shape(y) == np.shape(whole)
        key = some_keys(rng, np.shape(whole))
        want = whole[(*key, ...)]
        if want.size == 0:  # some of these ask the daemon for the dtype
            continue
        part = y[key]
        assert shape(part) == want.shape
        np.testing.assert_array_equal(evaluated(part._node, array), want)


def test_a_part_reads_only_what_it_needs(x):
    y = x.mean(axis=0)[1:, 0]
    assert text(y) == "mean(_0,axis=0)" and shape(y) == (2,)
    assert y._node.parts[0].shape == (2, 2)
    assert text((x - x.mean(0))[1]) == "_0-mean(_1,axis=0)"


# -- what is refused ----------------------------------------------------------------------------

@pytest.mark.parametrize("axis, words", [
    (3, "axis 3 is out of bounds for an array with 3 axes"), (-4, "axis -4 is out of bounds"),
    ((0, 5), "axis 5"), ((0, 0), "axis 0 is named twice"), ((1, -2), "axis 1 is named twice")])
def test_axes_that_are_not_there(x, axis, words):
    for call in (lambda: x.sum(axis=axis), lambda: gd.std(x, axis), lambda: np.max(x, axis=axis),
                 lambda: np.add.reduce(x, axis=axis), lambda: gd.norm(x, None, axis)):
        with pytest.raises(gd.errors.BadShape, match=words) as caught:
            call()
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, IndexError)
        assert isinstance(caught.value, getattr(np, "exceptions", np).AxisError)
        assert (caught.value.code, caught.value.argument) == ("bad-shape", "axis")
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), str(again)) == (type(caught.value), str(caught.value))


def test_an_axis_of_a_number():
    """As NumPy has it: 0 and -1 are axes of a number to what a ufunc reduces, and to no other."""
    number = np.array(2.5)
    for name in NAMES:
        for axis in (0, -1, 1, (0,)):
            if isinstance(axis, tuple) and name in ("argmin", "argmax"):
                continue
            try:
                getattr(np, name)(number, axis=axis)
            except getattr(np, "exceptions", np).AxisError:
                with pytest.raises(gd.errors.BadShape, match="0 axes"):
                    getattr(gd, name)(number, axis=axis)
            else:
                assert text(getattr(gd, name)(number, axis=axis)) == f"{ALIAS.get(name, name)}(_0)"


@pytest.mark.parametrize("call", [
    lambda x: x.sum(axis=1.5), lambda x: x.sum(axis="0"), lambda x: x.sum(axis=(0, None)),
    lambda x: x.argmin(axis=(0, 1)), lambda x: x.argmax((0,)), lambda x: x.argmin(axis=1.0),
    lambda x: x.sum(0, 1, 2, 3, 4, 5, 6), lambda x: x.mean(0, None, None, False, True),
    lambda x: x.ptp(0)])
def test_type_errors_as_numpys(x, call):
    with pytest.raises((TypeError, AttributeError)):
        call(x)


@pytest.mark.parametrize("call, code, argument", [
    (lambda x: x.min(where=x > 1), "bad-argument", "initial"),
    (lambda x: gd.nanmax(x, where=x > 1), "bad-argument", "initial"),
    (lambda x: np.maximum.reduce(x, where=A > 1), "bad-argument", "initial"),
    (lambda x: x.sum(where=np.ones((5, 2, 3, 4), "?")), "bad-shape", "where"),
    (lambda x: x.sum(where=np.ones(3, "?")), "bad-shape", ""),
    (lambda x: gd.logsumexp(x[0, 0], b=np.ones((2, 4))), "bad-shape", "b"),
    (lambda x: x.sum(initial=[1, 2]), "bad-argument", "initial"),
    (lambda x: x.var(ddof="1"), "bad-argument", "ddof"),
    (lambda x: x.std(ddof=[1]), "bad-argument", "ddof"),
    (lambda x: x.std(ddof=1, correction=1), "bad-argument", "correction"),
    (lambda x: x.std(mean=3), "unsupported", "mean"),
    (lambda x: x.sum(dtype="c16"), "unsupported", "dtype"),
    (lambda x: x.mean(dtype="f2"), "unsupported", "dtype"),
    (lambda x: gd.norm(x, 2, (0, 1)), "unsupported", "ord"),
    (lambda x: gd.norm(x[0], "nuc"), "unsupported", "ord"),
    (lambda x: gd.norm(x[0], 7), "bad-argument", "ord"),
    (lambda x: gd.norm(x[0], "what"), "bad-argument", "ord"),
    (lambda x: gd.norm(x, 1), "bad-argument", "axis"),
    (lambda x: gd.norm(x, None, (0, 1, 2)), "bad-argument", "axis"),
    (lambda x: gd.norm(x[0, 0], "fro"), "bad-argument", "ord"),
    (lambda x: gd.logsumexp(x, return_sign=True), "unsupported", "return_sign"),
    (lambda x: np.minimum.reduce(x, dtype="f4"), "unsupported", "dtype"),
    (lambda x: np.logical_or.reduce(x, initial=True), "unsupported", "initial"),
    (lambda x: np.bitwise_or.reduce(x), "bad-dtype", "x"),
    (lambda x: np.add.reduceat(x, [0]), "unsupported", "np.add.reduceat"),
    (lambda x: (x + gd.index(0)).sum(axis=0)[1:], "unsupported", "[]"),
])
def test_refusals(x, call, code, argument):
    with pytest.raises(gd.Error) as caught:
        call(x)
    assert (caught.value.code, caught.value.argument) == (code, argument), caught.value


def test_names_in_texts():
    from gpuarrayd._jobs.names import names_of
    assert names_of("mean(a, axis=(0, -1), keepdims=True, where=m)").needed == ("a", "m")
    assert names_of("std(a, None, dtype=float32, ddof=n)").needed == ("a", "n")
    assert names_of("a + normal(0, s, seed=3, size=(2, 3))").needed == ("a", "s")
    # What a loop's names begin with is needed, unless the text gives it.
    assert names_of("k = 0*c; iterate(n, k = k + 1, z = max(z, axis=None) + c, until = z > 2)"
                    ).needed == ("c", "n", "z")
    assert names_of("f(x) = iterate(9, x = y, u = [x == 3]); f(a)").needed == ("y", "u", "a")
