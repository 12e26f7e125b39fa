"""Running sums, differences, counts, look-ups and quantiles before they are computed: NumPy's
signatures, shapes, what is sent to the daemon, parts of them, and what is refused. No daemon is
needed."""

import inspect
import pickle

import gpuarrayd as gd
import numpy as np
import pytest

from catalogue import NUMPY_2
from gpuarrayd._lazy.moved import Moved
from gpuarrayd._lazy.text import written

A = np.arange(24.).reshape(2, 3, 4)
ROW = np.arange(5)
QUANTILES = "quantile percentile nanquantile nanpercentile median nanmedian".split()
NAMES = ["cumsum", "cumprod", "histogram", "histogram_bin_edges", "searchsorted", "digitize", "take",
         *QUANTILES]


def text(lazy):
    [found], _ = written([lazy._node])
    return found


def shape(lazy):
    return lazy._node.shape


def sources(lazy):
    _, found = written([lazy._node])
    return list(found.values())


@pytest.fixture
def x():
    return gd.lazy(A)


@pytest.fixture
def row():
    return gd.lazy(ROW)


def parameters(function):
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


@pytest.mark.skipif(not NUMPY_2, reason="older NumPy's have fewer parameters")
@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_numpys(name):
    own, numpys = parameters(getattr(gd, name)), parameters(getattr(np, name))
    assert [p[:2] for p in own] == [p[:2] for p in numpys]
    assert [mine[2] for mine, theirs in zip(own, numpys) if theirs[2] is not np._NoValue] == \
        [theirs[2] for theirs in numpys if theirs[2] is not np._NoValue]


def test_signatures_with_more_or_other_defaults():
    assert [p[0] for p in parameters(gd.diff)] == "a n axis prepend append".split()
    assert [p[2] for p in parameters(gd.diff)][1:] == [1, -1, None, None]
    assert parameters(gd.bincount)[:-1] == [
        (p.name, p.kind, p.default) for p in inspect.signature(np.bincount).parameters.values()]
    assert parameters(gd.bincount)[-1] == ("length", inspect.Parameter.KEYWORD_ONLY, None)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "take", "searchsorted"])
def test_methods_have_the_functions_parameters(name):
    assert parameters(getattr(gd.Lazy, name))[1:] == parameters(getattr(gd, name))[1:]


@pytest.mark.parametrize("name", NAMES + ["diff"])
def test_texts_tell_of_every_parameter(name):
    told = inspect.getdoc(getattr(gd, name))
    wanted = [p for p in inspect.signature(getattr(gd, name)).parameters]
    listed = told.split("Parameters\n----------\n")[1].split("\nReturns\n")[0]
    entries = {word for line in listed.splitlines() if not line.startswith(" ")
               for word in line.split(" :")[0].split(", ")}
    assert set(wanted) <= entries, name


# -- what is sent -------------------------------------------------------------------------------

@pytest.mark.parametrize(("make", "want", "size"), [
    (lambda x, r: np.cumsum(x, axis=1), "cumsum(_0,axis=1)", (2, 3, 4)),
    (lambda x, r: x.cumsum(-1, "f4"), "cumsum(_0,axis=2,dtype=float32)", (2, 3, 4)),
    (lambda x, r: r.cumsum(), "cumsum(_0)", (5,)),
    (lambda x, r: np.cumprod(r, 0), "cumprod(_0)", (5,)),
    (lambda x, r: np.add.accumulate(x), "cumsum(_0,axis=0)", (2, 3, 4)),
    (lambda x, r: np.multiply.accumulate(x, -1), "cumprod(_0,axis=2)", (2, 3, 4)),
    (lambda x, r: gd.cumsum(3.5), "cumsum(_0)", (1,)),
    (lambda x, r: np.diff(x), "_0-_1", (2, 3, 3)),
    (lambda x, r: np.diff(x, 2, 1), "_0-_1-(_1-_2)", (2, 1, 4)),
    (lambda x, r: np.diff(x, 9, 1), "_0-_1", (2, 0, 4)),
    (lambda x, r: np.diff(gd.lazy(A > 3)), "_0!=_1", (2, 3, 3)),
    (lambda x, r: np.diff(x, 0), "_0", (2, 3, 4)),
    (lambda x, r: np.histogram(x)[0], "histogram(_0,bins=10)[0]", (10,)),
    (lambda x, r: np.histogram(x, 3, (0, 1.5))[1], "histogram(_0,bins=3,range=(0.0,1.5))[1]", (4,)),
    (lambda x, r: np.histogram(x, r)[0], "histogram(_0,bins=_1)[0]", (4,)),
    (lambda x, r: np.histogram(x, r)[1], "histogram(_0,bins=_1)[1]", (5,)),
    (lambda x, r: np.histogram(x, r, density=True)[0], "histogram(_0,bins=_1,density=True)[0]", (4,)),
    (lambda x, r: np.histogram_bin_edges(x, 3), "histogram_bin_edges(_0,bins=3)", (4,)),
    (lambda x, r: gd.bincount(r, length=9), "bincount(_0,length=9)", (9,)),
    (lambda x, r: gd.bincount(r, ROW * .5, length=9), "bincount(_0,weights=_1,length=9)", (9,)),
    (lambda x, r: np.searchsorted(r, x), "searchsorted(_0,_1)", (2, 3, 4)),
    (lambda x, r: r.searchsorted(3, "right"), "searchsorted(_0,3,side=right)", ()),
    (lambda x, r: np.searchsorted(r, x, sorter=r), "searchsorted(take(_0,uint64(_0)),_1)", (2, 3, 4)),
    (lambda x, r: np.digitize(x, r, True), "digitize(_0,_1,right=True)", (2, 3, 4)),
    (lambda x, r: np.take(r, [[1], [2]], mode="clip"), "take(_0,_1,mode=clip)", (2, 1)),
    (lambda x, r: r.take(-1, 0), "take(_0,(-1))", ()),
    (lambda x, r: np.median(x, (0, -1)), "median(_0,axis=(0,2))", (3,)),
    (lambda x, r: np.median(x, keepdims=True), "median(_0,keepdims=True)", (1, 1, 1)),
    (lambda x, r: np.quantile(x, .25, method="lower"), "quantile(_0,0.25,method=lower)", ()),
    (lambda x, r: np.quantile(x, np.float64(.25)), "quantile(_0,float64(0.25))", ()),
    (lambda x, r: np.nanpercentile(x, [5, 95], axis=1), "nanpercentile(_0,[5,95],axis=1)",
     (2, 2, 4)),
])
def test_texts_and_shapes(x, row, make, want, size):
    made = make(x, row)
    assert (text(made), shape(made)) == (want, size)
    again = pickle.loads(pickle.dumps(made))
    assert (text(again), shape(again)) == (want, size)


def test_many_quantiles_are_put_together_of_several_calls(x):
    for axis, size, parts in ((None, (20,), [8, 8, 4]), (0, (20, 3, 4), [4] * 5)):
        made = np.quantile(x, np.linspace(0, 1, 20), axis=axis)
        assert shape(made) == size and isinstance(made._node, Moved)
        assert [piece.node.shape[0] for piece in made._node.pieces] == parts


# -- parts of them, and they as parts -----------------------------------------------------------

def test_a_running_sum_inside_an_expression_is_an_array_of_its_own(row):
    sums = row.cumsum()
    made = sums / (sums + 1)
    assert text(made) == "_0/(_0+1)" and isinstance(sources(made)[0], Moved)
    assert text(sums) == "cumsum(_0)"
    assert shape(sums[1:4:2]) == (2,) and shape(sums[None, :2]) == (1, 2)


def test_parts_of_look_ups_read_parts_of_what_is_looked_up(x, row):
    made = np.searchsorted(row, x)[1, ::2]
    assert (text(made), shape(made)) == ("searchsorted(_0,_1)", (2, 4))
    assert [source.shape for source in sources(made)] == [(5,), (2, 4)]
    made = (np.digitize(x, row) + 1)[0]
    assert (text(made), shape(made)) == ("digitize(_0,_1)+1", (3, 4))
    assert shape(np.take(row, x.astype("i8"))[:0]) == (0, 3, 4)


def test_parts_of_counts_and_quantiles_are_parts_of_arrays(x):
    for made in (np.histogram(x, 6)[0], np.quantile(x, .5, axis=0)[0], np.median(x, 0)[1]):
        assert isinstance(sources(made[1:3])[0].base, Moved)
        assert shape(made[1:3]) == (2,)
    assert shape(np.median(x, 0).T) == (4, 3)


def test_reductions_around_them(x):
    assert text(np.histogram(x, 6)[0].max()) == "max(histogram(_0,bins=6)[0])"
    assert text((x - np.median(x, 0)).sum()) == "sum(_0-median(_0,axis=0))"


# -- what is refused ----------------------------------------------------------------------------

@pytest.mark.parametrize(("call", "code", "argument"), [
    (lambda x, r: x.cumprod(3), "bad-shape", "axis"),
    (lambda x, r: np.cumsum(r, dtype="f2"), "unsupported", "dtype"),
    (lambda x, r: np.diff(r, -1), "bad-argument", "n"),
    (lambda x, r: np.diff(x, axis=3), "bad-shape", "axis"),
    (lambda x, r: gd.diff(3), "bad-shape", "a"),
    (lambda x, r: np.diff(x, prepend=np.zeros(3)), "bad-shape", "prepend"),
    (lambda x, r: np.histogram(x, 0), "bad-argument", "bins"),
    (lambda x, r: np.histogram(x, "auto"), "unsupported", "bins"),
    (lambda x, r: np.histogram(x, 3, (2, 1)), "bad-argument", "range"),
    (lambda x, r: np.histogram(x, 3, (0, np.nan)), "bad-argument", "range"),
    (lambda x, r: np.histogram(x, 3, (0, np.inf)), "bad-argument", "range"),
    (lambda x, r: np.histogram(x, [[1, 2]]), "bad-shape", "bins"),
    (lambda x, r: np.histogram(x, 3, weights=r), "bad-shape", "weights"),
    (lambda x, r: np.bincount(x), "bad-shape", "x"),
    (lambda x, r: np.bincount(r, minlength=-1), "bad-argument", "minlength"),
    (lambda x, r: np.bincount(r, [1, 2]), "bad-shape", "weights"),
    (lambda x, r: np.searchsorted(x, 3), "bad-shape", "a"),
    (lambda x, r: np.searchsorted(r, 3, "middle"), "bad-argument", "side"),
    (lambda x, r: np.digitize(x, x), "bad-shape", "bins"),
    (lambda x, r: np.take(x, np.array([1.5])), "bad-dtype", "indices"),
    (lambda x, r: np.take(r, 1, axis=1), "bad-shape", "axis"),
    (lambda x, r: np.take(r, 1, mode="wrapped"), "bad-argument", "mode"),
    (lambda x, r: np.quantile(x, 1.5), "bad-argument", "q"),
    (lambda x, r: np.quantile(x, [0.5, np.nan]), "bad-argument", "q"),
    (lambda x, r: np.percentile(x, -1), "bad-argument", "q"),
    (lambda x, r: np.percentile(x, [[1, 2]]), "unsupported", "q"),
    (lambda x, r: np.quantile(x, .5, method="best"), "bad-argument", "method"),
    (lambda x, r: np.quantile(x, .5, method="inverted_cdf", weights=[1]), "bad-shape", "weights"),
    (lambda x, r: np.median(x, axis=(0, 0)), "bad-shape", "axis"),
])
def test_what_is_refused(x, row, call, code, argument):
    with pytest.raises(gd.Error) as caught:
        call(x, row)
    assert (caught.value.code, caught.value.argument) == (code, argument)
    assert caught.value.expected
