"""gpuarrayd.random: NumPy's Generator, pure functions, what they give (their moments), that it is a
function of the seed and of an element's place, and what is refused."""

import copy
import inspect
import math
import pickle
import threading

import gpuarrayd
import numpy as np
import pytest

from catalogue import NUMPY_2
from gpuarrayd._lazy.text import written

PURE = "uniform normal lognormal exponential integers bernoulli poisson choice permutation".split()
METHODS = ("random uniform standard_normal normal lognormal standard_exponential exponential "
           "integers poisson binomial choice permutation").split()


def text(lazy):
    [found], _ = written([lazy._node])
    return found


@pytest.fixture
def rng():
    return gpuarrayd.random.default_rng(7)


# -- without a daemon ---------------------------------------------------------------------------

@pytest.mark.parametrize("name", METHODS)
def test_parameters_are_numpys_and_more_by_name(name):
    own = list(inspect.signature(getattr(gpuarrayd.random.Generator, name)).parameters)
    text_of_numpys = getattr(np.random.Generator, name).__doc__
    inside = text_of_numpys[text_of_numpys.index("(") + 1:text_of_numpys.index(")")]
    theirs = [word.split("=")[0].strip() for word in inside.replace(" ", "").split(",")]
    assert own[1:1 + len(theirs)] == theirs
    assert set(own[1 + len(theirs):]) <= {"dtype", "out"}


@pytest.mark.parametrize("call, want", [
    (lambda r: r.normal(seed=3), "normal(loc=0.0,scale=1.0,seed=3,dtype=float64)"),
    (lambda r: r.normal(5, np.float32(2), 4, seed=3, dtype="f4"),
     "normal(loc=5,scale=float32(2.0),seed=3,dtype=float32,size=(4,))"),
    (lambda r: r.uniform(size=(), seed=2**64 - 1),
     "uniform(low=0.0,high=1.0,seed=18446744073709551615,dtype=float64,size=())"),
    (lambda r: r.lognormal(size=(2, 3), seed=0),
     "lognormal(mean=0.0,sigma=1.0,seed=0,dtype=float64,size=(2,3))"),
    (lambda r: r.exponential(2, seed=1), "exponential(scale=2,seed=1,dtype=float64)"),
    (lambda r: r.integers(6, seed=1), "integers(0,high=6,seed=1,dtype=int64)"),
    (lambda r: r.integers(1, 6, seed=1, dtype="u1", endpoint=True),
     "integers(1,high=6,endpoint=True,seed=1,dtype=uint8)"),
    (lambda r: r.bernoulli(0.25, 3, seed=1), "bernoulli(0.25,seed=1,size=(3,))"),
    (lambda r: r.poisson(seed=1), "poisson(lam=1.0,seed=1)"),
    (lambda r: r.choice(5, 2, False, seed=1), "choice(5,replace=False,seed=1,size=(2,))"),
    (lambda r: r.permutation(5, seed=1), "permutation(5,seed=1)"),
    (lambda r: r.choice([7., 8], 2, seed=1), "take(_0,choice(2,seed=1,size=(2,)))"),
    (lambda r: r.permutation([7., 8], seed=1), "take(_0,permutation(2,seed=1))"),
    (lambda r: r.normal(np.zeros(3), seed=1), "normal(loc=_0,scale=1.0,seed=1,dtype=float64)"),
])
def test_texts(call, want):
    assert text(call(gpuarrayd.random)) == want


def test_shapes(rng):
    column, row = np.zeros((3, 1)), np.zeros(4)
    for lazy, shape in [
            (rng.normal(), ()), (rng.normal(size=5), (5,)), (rng.random((2, 3)), (2, 3)),
            (rng.normal(column, np.ones(4)), (3, 4)), (rng.poisson(row, (3, 4)), (3, 4)),
            (rng.integers(5, size=[2, 0]), (2, 0)), (rng.permutation(9), (9,)),
            (rng.permutation(0), (0,)), (rng.choice(9, (3, 3), False), (3, 3)),
            (rng.binomial(1, row), (4,)), (gpuarrayd.random.uniform(row, seed=1), (4,)),
            (gpuarrayd.lazy(column) + rng.normal(size=(3, 4)), (3, 4))]:
        assert lazy._node.shape == shape


def test_calls_have_seeds_of_their_own(rng):
    seeds = [rng.seed_of(i) for i in range(1000)]
    assert len(set(seeds)) == 1000 and all(0 <= seed < 2**64 for seed in seeds)
    assert [f"seed={seed}," in text(rng.random(3)) for seed in seeds[:5]] == [True] * 5
    assert rng.n_calls == 5
    assert gpuarrayd.random.call_seed(7, 3) == seeds[3]
    others = {gpuarrayd.random.call_seed(seed, i) for seed in range(100) for i in range(100)}
    assert len(others) == 10_000


def test_the_function_of_seed_and_call_is_that_of_the_text():
    """SplitMix64, whose outputs for the seed 1234567 are published."""
    from gpuarrayd.random._generator import _STEP, _mixed
    state, found = 1234567, []
    for _ in range(5):
        state = (state + _STEP) % 2**64
        found.append(_mixed(state))
    assert found == [6457827717110365317, 3203168211198807973, 9817491932198370423,
                     4593380528125082431, 16408922859458223821]
    mixed = _mixed((9 + _STEP) % 2**64)
    assert gpuarrayd.random.call_seed(9, 2) == _mixed((mixed + 3 * _STEP) % 2**64)


def test_a_wrong_call_draws_nothing(rng):
    for call in (lambda: rng.normal(scale=-1), lambda: rng.integers(3, 3), lambda: rng.random(-1),
                 lambda: rng.normal(dtype="f2"), lambda: rng.choice(3, 4, False)):
        with pytest.raises(gpuarrayd.Error):
            call()
    assert rng.n_calls == 0


def test_copies_go_on(rng):
    rng.random(3)
    for other in (pickle.loads(pickle.dumps(rng)), copy.copy(rng), copy.deepcopy(rng)):
        assert (other.seed, other.n_calls) == (7, 1)
        assert text(other.normal(size=2)) == text(copy.copy(rng).normal(size=2))
    assert rng.n_calls == 1 and gpuarrayd.random.default_rng(rng) is rng


def test_threads_share_a_generator(rng):
    found = []
    threads = [threading.Thread(target=lambda: found.extend(text(rng.random(2))
                                                            for _ in range(200)))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 800 == rng.n_calls


def test_without_a_seed_they_differ():
    one, two = gpuarrayd.random.default_rng(), gpuarrayd.random.default_rng()
    assert one.seed != two.seed and text(one.random(3)) != text(two.random(3))


def test_random_numbers_go_between_processes(rng):
    y = 1 + rng.normal(np.arange(3.), size=(2, 3), dtype="f4")
    sent = pickle.loads(pickle.dumps(y))
    assert (text(sent), sent._node.shape) == (text(y), (2, 3))


@pytest.mark.parametrize("call, code, argument", [
    (lambda r: r.normal(), "", ""), (lambda r: r.normal(seed=-1), "bad-argument", "seed"),
    (lambda r: r.normal(seed=2**64), "bad-argument", "seed"),
    (lambda r: r.normal(seed=1.5), "bad-argument", "seed"),
    (lambda r: r.normal(seed=True), "bad-argument", "seed"),
    (lambda r: r.default_rng([1, 2]), "bad-argument", "seed"),
    (lambda r: r.default_rng("x"), "bad-argument", "seed"),
    (lambda r: r.normal(size=-1, seed=1), "bad-shape", "size"),
    (lambda r: r.normal(size=2.5, seed=1), "bad-shape", "size"),
    (lambda r: r.normal(size=(2, "3"), seed=1), "bad-shape", "size"),
    (lambda r: r.normal(np.zeros(3), size=(3, 2), seed=1), "bad-shape", ""),
    (lambda r: r.normal(np.zeros((2, 3)), size=3, seed=1), "bad-shape", "size"),
    (lambda r: r.normal(0, -1, seed=1), "bad-argument", "scale"),
    (lambda r: r.normal(0, math.nan, seed=1), "bad-argument", "scale"),
    (lambda r: r.lognormal(0, -1, seed=1), "bad-argument", "sigma"),
    (lambda r: r.exponential(-1, seed=1), "bad-argument", "scale"),
    (lambda r: r.poisson(-0.1, seed=1), "bad-argument", "lam"),
    (lambda r: r.bernoulli(1.1, seed=1), "bad-argument", "p"),
    (lambda r: r.integers(5, 5, seed=1), "bad-argument", "high"),
    (lambda r: r.integers(0, seed=1), "bad-argument", "high"),
    (lambda r: r.integers(-1, 5, dtype="u4", seed=1), "bad-argument", "low"),
    (lambda r: r.integers(0, 257, dtype="u1", seed=1), "bad-argument", "high"),
    (lambda r: r.integers(0, 256, dtype="u1", endpoint=True, seed=1), "bad-argument", "high"),
    (lambda r: r.integers(-2**70, 5, seed=1), "bad-argument", "low"),
    (lambda r: r.integers(0, 2**64 + 1, dtype="u8", seed=1), "bad-argument", "high"),
    (lambda r: r.integers(0, 3, dtype=bool, seed=1), "bad-argument", "high"),
    (lambda r: r.integers(5, dtype="f8", seed=1), "unsupported", "dtype"),
    (lambda r: r.uniform(dtype="i4", seed=1), "unsupported", "dtype"),
    (lambda r: r.choice([[1, 2, 3]], seed=1), "unsupported", "a"),
    (lambda r: r.choice([], seed=1), "bad-argument", "a"),
    (lambda r: r.choice([1, 2, 3], 4, False, seed=1), "bad-argument", "size"),
    (lambda r: r.choice(0, seed=1), "bad-argument", "a"),
    (lambda r: r.choice(3, 4, False, seed=1), "bad-argument", "size"),
    (lambda r: r.permutation(np.zeros((3, 2)), seed=1), "unsupported", "a"),
    (lambda r: r.permutation(-1, seed=1), "bad-argument", "a"),
    (lambda r: r.default_rng(1).choice(3, p=[0.1, 0.2, 0.7]), "unsupported", "p"),
    (lambda r: r.default_rng(1).binomial(10, 0.5), "unsupported", "n"),
    (lambda r: r.default_rng(1).standard_exponential(method="x"), "bad-argument", "method"),
    (lambda r: r.default_rng(1).gamma(2), "unsupported", "gamma"),
    (lambda r: r.default_rng(1).shuffle([1]), "unsupported", "shuffle"),
    (lambda r: (r.default_rng(1).random((3, 4)) + 1)[0], "unsupported", "[]"),
    (lambda r: (gpuarrayd.lazy(np.ones((3, 4))) + r.normal(seed=3))[0], "unsupported", "[]"),
])
def test_refusals(call, code, argument):
    with pytest.raises(gpuarrayd.Error if code else TypeError) as caught:
        call(gpuarrayd.random)
    if code:
        assert (caught.value.code, caught.value.argument) == (code, argument), caught.value


# -- what they give -----------------------------------------------------------------------------

N = 200_000


def moments(x):
    x = np.asarray(x, "f8")
    mean, centred = x.mean(), x - x.mean()
    return mean, centred.var(), (centred ** 3).mean()


def near(got, mean, variance, third, n=N):
    """Within six standard errors; what those of the higher moments are is taken generously."""
    deviation = math.sqrt(variance)
    assert abs(got[0] - mean) < 6 * deviation / math.sqrt(n)
    assert abs(got[1] - variance) < 0.05 * variance
    assert abs(got[2] - third) < 0.15 * max(deviation ** 3, abs(third))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_moments_of_floats(gd, dtype):
    rng, e = gd.random.default_rng(11), math.e
    for lazy, mean, variance, third in [
            (rng.random(N, dtype), 1 / 2, 1 / 12, 0),
            (rng.uniform(-3, 5, N, dtype=dtype), 1, 64 / 12, 0),
            (rng.standard_normal(N, dtype), 0, 1, 0),
            (rng.normal(5, 3, N, dtype=dtype), 5, 9, 0),
            (rng.standard_exponential(N, dtype), 1, 1, 2),
            (rng.exponential(4, N, dtype=dtype), 4, 16, 128),
            (gd.log(rng.lognormal(1, 0.5, N, dtype=dtype)), 1, 0.25, 0),
            (rng.lognormal(0, 0.25, N, dtype=dtype), e ** (1 / 32),
             (e ** (1 / 16) - 1) * e ** (1 / 16),
             (e ** (1 / 16) + 2) * (e ** (1 / 16) - 1) ** 2 * e ** (3 / 32))]:
        got = lazy.compute()
        assert got.dtype == np.dtype(dtype) and got.shape == (N,) and np.isfinite(got).all()
        near(moments(got), mean, variance, third)
    got = rng.random(N, dtype).compute()
    assert 0 <= got.min() and got.max() < 1


def test_moments_of_integers(gd):
    rng = gd.random.default_rng(12)
    for lam in (0.3, 4, 60, 5000):
        got = rng.poisson(lam, N).compute()
        assert got.dtype == np.int64 and got.min() >= 0
        near(moments(got), lam, lam, lam)
    dice = rng.integers(1, 6, N, "u1", True).compute()
    counts = np.bincount(dice)
    assert dice.dtype == np.uint8 and len(counts) == 7
    assert np.abs(counts[1:] / N - 1 / 6).max() < 0.006 and counts[0] == 0
    coins = rng.binomial(1, 0.3, N).compute()
    assert coins.dtype == np.int64 and set(coins) == {0, 1} and abs(coins.mean() - 0.3) < 0.006
    flags = gd.random.bernoulli(0.9, N, seed=1).compute()
    assert flags.dtype == np.bool_ and abs(flags.mean() - 0.9) < 0.006
    wide = rng.integers(-2**63, 2**63 - 1, N, endpoint=True).compute()
    near(moments(wide / 2.0**63), 0, 1 / 3, 0)
    assert set(rng.choice(5, N).compute().tolist()) == {0, 1, 2, 3, 4}


def test_integers_of_a_whole_dtype(gd):
    """Bools too; and the bound above them all, which no integer of 64 bits is."""
    for dtype in ("?", "i1", "u1", "i8", "u8"):
        low, high = (0, 1) if dtype == "?" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        want = gd.random.integers(low, high, 5000, seed=3, dtype=dtype, endpoint=True).compute()
        got = gd.random.integers(int(low), int(high) + 1, 5000, seed=3, dtype=dtype).compute()
        assert got.dtype == want.dtype == np.dtype(dtype) and np.array_equal(got, want)
        assert abs((want / 2 - low / 2).mean() / (high / 2 - low / 2) - 0.5) < 0.03
    flags = gd.random.integers(np.array([0, 1]), 2, (1000, 2), seed=3, dtype=bool).compute()
    assert flags[:, 1].all() and 400 < flags[:, 0].sum() < 600


def test_kolmogorov_smirnov(gd):
    """Of normal numbers, with the error function of the C library."""
    x = np.sort(gd.random.normal(size=50_000, seed=5).compute())
    cdf = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x])
    steps = np.arange(len(x) + 1) / len(x)
    distance = max((steps[1:] - cdf).max(), (cdf - steps[:-1]).max())
    assert distance * math.sqrt(len(x)) < 2.2  # one seed in some 8,000 is above


def test_permutations(gd):
    rng = gd.random.default_rng(4)
    for n in (0, 1, 2, 3, 7, 64, 1000, 70_001):
        got = rng.permutation(n).compute()
        assert got.dtype == np.int64 and np.array_equal(np.sort(got), np.arange(n))
    orders = {tuple(gd.random.permutation(3, seed=i).compute()) for i in range(100)}
    assert len(orders) == 6
    some = rng.choice(1000, 600, replace=False).compute()
    assert len(set(some.tolist())) == 600 and 0 <= some.min() and some.max() < 1000
    means = np.mean([rng.permutation(40).compute() for _ in range(200)], axis=0)
    assert np.abs(means - 19.5).max() < 5


# -- of seed and place alone --------------------------------------------------------------------

def test_the_same_seed_gives_the_same_elements(gd, folder):
    draw = gd.random.normal
    first = draw(size=(300, 500), seed=3).compute()
    assert np.array_equal(first, draw(size=(300, 500), seed=3).compute())
    assert not np.array_equal(first, draw(size=(300, 500), seed=4).compute())
    assert np.array_equal(first.ravel(), draw(size=150_000, seed=3).compute())
    assert np.array_equal(first.ravel()[:777], draw(size=777, seed=3).compute())
    gd.save(folder / "x.npy", draw(size=(300, 500), seed=3))
    assert np.array_equal(first, np.load(folder / "x.npy"))
    assert np.array_equal(first, gd.evaluate("normal(seed=3, size=(300, 500))"))
    out = np.empty((500, 300)).T
    assert draw(size=(300, 500), seed=3).compute(out) is out and np.array_equal(first, out)


def test_a_generator_repeats_itself(gd):
    def drawn():
        rng = gd.random.default_rng(99)
        return [np.asarray(one) for one in gd.compute(
            rng.random(50), rng.random(50), rng.normal(size=50), rng.integers(9, size=50),
            rng.permutation(50))]
    one, two = drawn(), drawn()
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a, b)
    assert not np.array_equal(one[0], one[1])


def test_in_expressions(gd):
    a = np.arange(600.).reshape(20, 30)
    x, rng = gd.lazy(a), gd.random.default_rng(2)
    noise = rng.normal(size=a.shape)
    y = x + 0.1 * noise
    assert (y.shape, y.dtype) == (a.shape, a.dtype)
    got, own = gd.compute(y, noise)
    assert np.array_equal(got, a + 0.1 * own)
    assert np.array_equal(noise.compute(), own)  # a lazy does not change
    without = (x + 0.1 * gd.random.normal(seed=5)).compute()  # of the shape of what it meets
    assert np.array_equal(without, a + 0.1 * gd.random.normal(size=a.shape, seed=5).compute())
    assert np.array_equal(gd.evaluate("a + 0.1*normal(seed=5)", a=a), without)
    mean = gd.mean(gd.random.uniform(size=(1000, 200), seed=1), axis=0).compute()
    assert mean.shape == (200,) and np.abs(mean - 0.5).max() < 0.06
    of_mean = gd.random.normal(x.mean(axis=1, keepdims=True), 0, a.shape, seed=1).compute()
    assert np.array_equal(of_mean, np.broadcast_to(a.mean(1, keepdims=True), a.shape))


def test_parameters_that_are_arrays(gd):
    rng = gd.random.default_rng(8)
    loc = np.array([0., 100, 200])
    got = rng.normal(loc, [1, 2, 3], (40_000, 3)).compute()
    assert np.abs(got.mean(0) - loc).max() < 0.1
    assert np.abs(got.std(0) - [1, 2, 3]).max() < 0.1
    low = np.array([0, 10, -5])
    whole = rng.integers(low, low + [1, 5, 10], (20_000, 3)).compute()
    assert whole.min(0).tolist() == [0, 10, -5] and whole.max(0).tolist() == [0, 14, 4]
    lam = np.array([1., 50])
    assert np.abs(rng.poisson(lam, (40_000, 2)).compute().mean(0) - lam).max() < 0.3


def test_out(gd):
    rng, again = gd.random.default_rng(1), gd.random.default_rng(1)
    out = np.empty((4, 50), "f4")
    assert rng.standard_normal(dtype="f4", out=out) is out
    assert np.array_equal(out, again.normal(size=(4, 50), dtype="f4").compute())
    whole = np.empty(30, "i8")
    assert rng.integers(5, out=whole) is whole and whole.min() >= 0 and whole.max() < 5
    assert rng.binomial(1, 0.5, out=whole) is whole and set(whole) == {0, 1}
    assert rng.permutation(30, out=whole) is whole and sorted(whole) == list(range(30))
    with pytest.raises(gd.errors.BadShape):
        rng.random(5, out=np.empty(6))


@pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's promotion")
def test_single_numbers(gd):
    rng = gd.random.default_rng(1)
    one = rng.normal().compute()
    assert np.ndim(one) == 0 and isinstance(one, np.float64)
    assert float(rng.random()) != float(rng.random())
    assert 0 <= int(rng.integers(10)) < 10
    assert (gd.lazy(np.zeros(3)) + rng.random(3)).dtype == np.float64


def test_what_would_repeat_is_refused(gd):
    x = gd.lazy(np.zeros((4, 3)))
    with pytest.raises(gd.Error):
        (x + gd.random.normal(size=3, seed=1)).compute()


def test_empty(gd):
    rng = gd.random.default_rng(1)
    for shape in ((0,), (3, 0), (0, 2)):
        assert rng.random(shape).compute().shape == shape


def test_views_are_views_of_the_whole(gd):
    """Also of numbers that take the shape of what is beside them."""
    x = gd.lazy(np.arange(12.).reshape(3, 4))
    for y in (x + gd.random.normal(seed=3), x + gd.random.normal(size=(3, 4), seed=3),
              gd.random.integers(5, size=(3, 4), seed=1), x * gd.index(1)):
        assert np.array_equal(y.T.compute(), y.compute().T)
