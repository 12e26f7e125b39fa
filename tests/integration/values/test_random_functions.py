"""Random numbers in expressions: each is a function of its number, the seed and the distribution,
computed here a second time from Philox's paper; and what may be said of sizes, seeds and
parameters, with the refusals."""

import numpy as np
import pytest

import wire
from catalogue import ask, assert_same

M0, M1, W0, W1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85
LOW = np.uint64(0xFFFFFFFF)
UNIFORM, NORMAL, EXPONENTIAL, INTEGERS, BERNOULLI = 1, 2, 3, 4, 5
LIMIT = 2 ** 64


def philox(block, seed, stream):
    """Philox 4x32-10 (Salmon and others, 2011): four words of each block."""
    block = np.asarray(block, "u8")
    c = [block & LOW, block >> np.uint64(32), np.full_like(block, stream), np.zeros_like(block)]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p, q = c[0] * np.uint64(M0), c[2] * np.uint64(M1)
        c = [(q >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), q & LOW,
             (p >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), p & LOW]
        k = [(k[0] + W0) & 0xFFFFFFFF, (k[1] + W1) & 0xFFFFFFFF]
    return np.stack(c, axis=-1)


def bits(n, seed, stream, wide=True):
    """Of the elements 0 to n - 1."""
    words = philox(np.arange(-(-n // 2) if wide else -(-n // 4)), seed, stream).ravel()
    if not wide:
        return words[:n].astype("u4")
    return (words[0::2] | words[1::2] << np.uint64(32))[:n]


def uniform(n, seed, dtype="f8", stream=UNIFORM):
    if dtype == "f4":
        return ((bits(n, seed, stream, False) >> np.uint32(8)) * np.float32(2 ** -24)).astype("f4")
    return (bits(n, seed, stream) >> np.uint64(11)) * 2.0 ** -53


def upper_products(words, n):
    return np.array([int(word) * n >> 64 for word in words], "u8")


def test_philox_gives_the_known_answers_of_random123():
    known = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert list(philox([0], 0, 0)[0]) == known


@pytest.mark.parametrize("seed", [0, 1, 3, 2 ** 32, 2 ** 63 + 5, LIMIT - 1])
def test_every_function_says_its_numbers(w, seed):
    n = 1013
    texts = [f"uniform(seed={seed}, size={n})", f"uniform(seed={seed}, size={n}, dtype=float32)",
             f"integers(10, size={n}, seed={seed})", f"integers(-5, 1000003, {n}, seed={seed})",
             f"bernoulli(0.3, {n}, seed={seed})", f"choice(52, {n}, seed={seed})",
             f"uniform(-1, 3, {n}, seed={seed})"]
    u, words = uniform(n, seed), bits(n, seed, INTEGERS)
    want = [u, uniform(n, seed, "f4"), upper_products(words, 10).astype("i8"),
            upper_products(words, 1000008).astype("i8") - 5,
            uniform(n, seed, stream=BERNOULLI) < 0.3, upper_products(words, 52).astype("i8"),
            4 * u + -1]
    for text, got, right in zip(texts, ask(w, texts, {}), want):
        assert_same(got, right, text)


def drawn(w, text):
    """80,000 of them, from ten seeds: what comes with a reply is small."""
    parts = ask(w, [text.replace("SEED", f"seed={seed}, size=8000") for seed in range(10)], {})
    return np.concatenate(parts)


def test_distributions_have_their_moments(w):
    z, f, x, p, q, ln = (drawn(w, text) for text in (
        "normal(SEED)", "normal(SEED, dtype=float32)", "exponential(2.5, SEED)",
        "poisson(3.25, SEED)", "poisson(1000, SEED)", "lognormal(0.5, 0.25, SEED)"))
    root = z.size ** 0.5
    for numbers, dtype in ((z, "f8"), (f, "f4")):
        assert numbers.dtype == dtype
        assert abs(numbers.mean(dtype="f8")) < 5 / root
        assert abs(numbers.var(dtype="f8") - 1) < 5 * 2 ** 0.5 / root
        assert abs((numbers.astype("f8") ** 3).mean()) < 5 * 15 ** 0.5 / root
        assert abs((numbers < -1.6448536).mean() - 0.05) < 5 * 0.22 / root
    assert x.min() >= 0 and abs(x.mean() - 2.5) < 5 * 2.5 / root
    assert abs((x > 5).mean() - np.exp(-2)) < 5 * 0.35 / root
    for numbers, lam in ((p, 3.25), (q, 1000)):
        assert numbers.dtype == np.int64 and numbers.min() >= 0
        assert abs(numbers.mean() - lam) < 5 * lam ** 0.5 / root
        assert abs(numbers.var() / lam - 1) < 5 * (2 + 1 / lam) ** 0.5 / root
    assert abs((p == 0).mean() - np.exp(-3.25)) < 5 * 0.2 / root
    assert np.allclose(np.log(ln), 0.5 + 0.25 * z, rtol=0, atol=1e-13)


def test_parameters_scale_and_shift(w):
    texts = ["normal(2, 3, (40,), seed=1)", "2 + 3 * normal(size=40, seed=1)",
             "exponential(scale=0.25, size=40, seed=1)", "0.25 * exponential(size=40, seed=1)",
             "uniform(low=a, high=b, seed=1)", "a + (b - a) * uniform(seed=1)",
             "normal(loc=a, scale=b, seed=1)", "a + b * normal(seed=1)",
             "lognormal(a, 0.5, seed=1)", "exp(a + 0.5 * normal(seed=1))",
             "normal(f, seed=1, dtype=float32)", "f + normal(seed=1, dtype=float32)"]
    rng = np.random.default_rng(1)
    arguments = {"a": rng.random(40), "b": 2 + rng.random(40), "f": rng.random(40).astype("f4")}
    got = ask(w, texts, arguments)
    for i in range(0, len(texts), 2):
        assert_same(got[i], got[i + 1], texts[i])
    assert got[10].dtype == np.float32


def test_numbers_are_of_the_elements_whatever_the_shape(w):
    flat, square, cube, scalar, one = ask(w, [
        "uniform(seed=9, size=24)", "uniform(seed=9, size=(4, 6))",
        "uniform(seed=9, size=[2, 3, 4])", "uniform(seed=9, size=())", "uniform(seed=9, size=1)"],
        {})
    assert scalar.shape == () and one.shape == (1,) and scalar == flat[0] == one[0]
    assert_same(square, flat.reshape(4, 6))
    assert_same(cube, flat.reshape(2, 3, 4))


def test_without_a_size_they_take_the_shape_of_what_they_meet(w):
    a, row, column = np.zeros((4, 6)), np.zeros(6), np.zeros((4, 1))
    texts = ["a + uniform(seed=9)", "row + uniform(seed=9)", "row + (column + uniform(seed=9))",
             "(row + uniform(seed=9)) + a", "where(bernoulli(0.5, seed=9), a, 1)",
             "mean(a + uniform(seed=9), axis=0)", "a + mean(row + uniform(seed=9))",
             "mean(a + 1, where=bernoulli(0.5, seed=9))"]
    u = uniform(24, 9).reshape(4, 6)
    heads = uniform(24, 9, stream=BERNOULLI).reshape(4, 6) < 0.5
    want = [u, u[0], u, u, np.where(heads, 0.0, 1.0), u.mean(0), np.full((4, 6), u[0].mean()),
            np.float64(1)]
    arguments = {"a": a, "row": row, "column": column}
    for text, got, right in zip(texts, ask(w, texts, arguments), want):
        assert got.shape == right.shape and np.allclose(got, right, rtol=1e-15), text


def test_an_output_that_is_there_gives_the_shape(w):
    region = wire.Region(w, 1 << 16)
    out = region.array("f8", (5, 7), 0)
    w.call("job.run", args={}, outputs=[{"expr": "uniform(seed=4)",
                                         "to": wire.described(out, region.at(0))}])
    assert_same(out.copy(), uniform(35, 4).reshape(5, 7))
    del out
    w.call("region.detach", region=region.id)


def test_equal_calls_are_equal_numbers_and_others_are_not(w):
    texts = ["uniform(seed=1, size=500) - uniform(seed=1, size=(500,))",
             "uniform(seed=1, size=500) - uniform(seed=2, size=500)",
             "uniform(seed=1, size=500) - bernoulli(uniform(seed=1), seed=1, size=500)"]
    same, other, third = ask(w, texts, {})
    assert not same.any() and np.count_nonzero(other) == 500 and 0 < third.std()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 100, 4097])
def test_permutations_have_every_number_once(w, n):
    p, q, r = ask(w, [f"permutation({n}, seed={seed})" for seed in (1, 1, 2)], {})
    assert p.dtype == np.int64 and p.shape == (n,)
    assert_same(np.sort(p), np.arange(n))
    assert_same(p, q)
    if n == 4097:
        assert np.count_nonzero(p == np.arange(n)) < 20 and np.count_nonzero(p == r) < 20
    if n > 0:
        some, = ask(w, [f"choice({n}, size={min(n, 5)}, replace=False, seed=1)"], {})
        assert_same(some, p[:5])


def test_integers_cover_their_dtypes(w):
    texts = ["integers(0, 256, 4000, dtype=uint8, seed=1)",
             "integers(-128, 127, 4000, endpoint=True, dtype=int8, seed=1)",
             "integers(-9223372036854775808, 9223372036854775807, 4000, int64, True, seed=1)",
             "integers(0, 18446744073709551615, 4000, uint64, endpoint=True, seed=1)",
             "integers(7, 8, 4000, seed=1)", "integers(3, 5, endpoint=True, size=4000, seed=1)"]
    words = bits(4000, 1, INTEGERS)
    want = [upper_products(words, 256).astype("u1"),
            (upper_products(words, 256).astype("i8") - 128).astype("i1"),
            (words + np.uint64(2 ** 63)).view("i8"), words, np.full(4000, 7),
            3 + upper_products(words, 3).astype("i8")]
    for text, got, right in zip(texts, ask(w, texts, {}), want):
        assert_same(got, right, text)


def test_integers_between_arrays(w):
    low = np.array([0, -5, 10, 3, -2 ** 62], "i8")
    high = np.array([1, 5, 1000, 3, 2 ** 62], "i8")
    words = bits(5, 2, INTEGERS)
    right = [int(a) + (int(word) * max(int(b) - int(a), 0) >> 64)
             for a, b, word in zip(low, high, words)]
    got, = ask(w, ["integers(low, high, seed=2)"], {"low": low, "high": high})
    assert_same(got, np.array(right))


REFUSED = [
    ("uniform()", "bad-arity", "'seed' must be given", "seed=..."),
    ("uniform(seed=1)", "bad-shape", "write size=(...)", "size=(...), or an array"),
    ("sum(normal(seed=1))", "bad-shape", "write size=(...)", "size=(...)"),
    ("uniform(seed=-1, size=3)", "bad-expression", "64 bits without a sign", "0 to 18446744073"),
    ("uniform(seed=1.5, size=3)", "bad-expression", "'seed' must be an integer", "an integer"),
    ("uniform(seed=a, size=3)", "bad-expression", "'seed' must be an integer", "an integer"),
    ("uniform(seed=None, size=3)", "bad-expression", "'seed' cannot be None", ""),
    ("uniform(0, 1, 3, 4)", "bad-arity", "uniform takes 0 arguments, then low=0.0", "low=0.0"),
    ("uniform(seed=1, size=-3)", "bad-shape", "an axis of length -3", "0 and more"),
    ("uniform(seed=1, size=(2, 2.5))", "bad-expression", "'size' must be an integer", "integers"),
    ("uniform(seed=1, size=a)", "bad-expression", "'size' must be an integer", "integers"),
    ("a + uniform(seed=1, size=4)", "bad-shape", "would repeat in an array of shape (3, 4)",
     "size=(3, 4)"),
    ("uniform(seed=1, size=4) + uniform(seed=1, size=(3, 4))", "bad-shape", "different sizes",
     "size=(3, 4)"),
    ("uniform(seed=1, dtype=int8, size=3)", "bad-dtype", "uniform gives floats", "float32 or"),
    ("normal(scale=-1, seed=1, size=3)", "bad-expression", "'scale' must be 0 or more, not -1",
     "0 or more"),
    ("lognormal(sigma=-1, seed=1, size=3)", "bad-expression", "'sigma' must be 0 or", "0 or more"),
    ("exponential(nan, seed=1, size=3)", "bad-expression", "'scale' must be 0 or", "0 or more"),
    ("uniform(0, inf, seed=1, size=3)", "bad-expression", "'high' must be finite", "finite"),
    ("uniform(-3e38, 3e38, seed=1, size=3, dtype=float32)", "bad-expression",
     "'high' must be finite, as high - low, not 6e+38", "finite"),
    ("uniform(2, 1, seed=1, size=3)", "bad-expression", "'high' must be low or more, not 1", "low or"),
    ("bernoulli(1.5, seed=1, size=3)", "bad-expression", "'p' must be 0 to 1, not 1.5", "0 to 1"),
    ("poisson(-1, seed=1, size=3)", "bad-expression", "'lam' must be 0 to", "0 to 9.22e18"),
    ("poisson(1e19, seed=1, size=3)", "bad-expression", "'lam' must be 0 to", "0 to 9.22e18"),
    ("integers(5, 5, seed=1, size=3)", "bad-expression", "nothing from 5 to below 5", "low below"),
    ("integers(0, 300, seed=1, size=3, dtype=uint8)", "bad-expression", "does not fit uint8",
     "0 to 255"),
    ("integers(2.5, seed=1, size=3)", "bad-dtype", "needs integers as its bounds", "integers"),
    ("integers(a, seed=1)", "bad-dtype", "needs integers as its bounds", "integers"),
    ("integers(5, seed=1, size=3, dtype=float32)", "bad-dtype", "gives integers", "an integer"),
    ("choice(a, seed=1, size=3)", "bad-shape", "'a' must have one axis", "one axis"),
    ("choice(0, seed=1, size=3)", "bad-expression", "n must be an integer of 1 or", "an integer"),
    ("choice(5, replace=False, seed=1)", "bad-expression", "write size=... too", "at most 5"),
    ("choice(5, 6, False, seed=1)", "bad-expression", "more numbers are taken", "at most 5"),
    ("permutation(-1, seed=1)", "bad-expression", "n must be an integer of 0 or", "an integer"),
    ("permutation(4, seed=1) + a", "bad-shape", "would repeat", "size=(3, 4)"),
    ("permutation(3)", "bad-arity", "'seed' must be given", "seed=..."),
]


@pytest.mark.parametrize("text, code, message, expected", REFUSED)
def test_refusals_say_what_is_wrong_and_what_to_write(w, text, code, message, expected):
    error = ask(w, [text], {"a": np.zeros((3, 4))})[0]
    assert isinstance(error, wire.Error), text
    assert error.code == code and message in str(error), str(error)
    assert expected in error.expected, error.expected
