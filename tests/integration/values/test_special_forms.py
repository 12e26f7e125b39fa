"""What is written with more than arrays between its parentheses: keywords, lists, results by
number, axes; each against NumPy evaluating the same text, and each refusal with a text that names the fix.
And where our results follow a written rule instead of NumPy's."""

import itertools
import os
import re

import numpy as np
import pytest

import wire
from catalogue import (DTYPES, NUMPY_2, ask, ask_once, assert_none, assert_same, numpy_eval,
                       numpy_names, same_bits, specials)


needs_numpy_2 = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's promotion and loops")


@pytest.fixture(scope="module")
def names(daemon):
    with daemon.connect() as w:
        return numpy_names(w.call("server.ops"))


def check_texts(w, names, texts, arguments, free_zero=False):
    """All of them in a few requests; NumPy's refusal of a dtype must be ours."""
    failures = []
    for text, got in zip(texts, ask(w, texts, arguments)):
        try:
            want = numpy_eval(text, names, arguments)
        except Exception as error:  # Refused, or TypeError, ValueError, OverflowError
            if not isinstance(got, wire.Error):
                failures.append(f"{text}: NumPy says {error!r}, we give {got.dtype}{got.shape}")
            continue
        if isinstance(got, wire.Error):
            failures.append(f"{text}: {got}")
        elif (got.dtype, got.shape) != (want.dtype, want.shape):
            failures.append(f"{text}: {got.dtype}{got.shape}, NumPy {want.dtype}{want.shape}")
        elif not (ok := same_bits(got, want, free_zero)).all():
            at = tuple(np.argwhere(~np.atleast_1d(ok))[0])
            operands = {k: np.atleast_1d(np.broadcast_to(v, got.shape))[at]
                        for k, v in arguments.items() if np.ndim(v) <= got.ndim}
            failures.append(f"{text} of {operands}: {np.atleast_1d(got)[at]!r}, "
                            f"NumPy {np.atleast_1d(want)[at]!r}")
    assert_none(failures, len(texts))


# -- keywords -----------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["i4", "f4", "f8"])
def test_what_must_be_given_by_its_name(w, names, dtype):
    """As NumPy's own functions take it."""
    a = np.random.default_rng(5).integers(-50, 50, (6, 7)).astype(dtype)
    texts = ["quantile(a, q=0.25)", "quantile(a=a, q=[0.25, 0.5], axis=1)", "median(axis=0, a=a)",
             "percentile(q=[10, 90], a=a, method='nearest')", "max(a=a, axis=1)",
             "round(a=a, decimals=-1)", "clip(a=a, a_min=-3, a_max=4)", "isclose(b=a + 0, a=a)",
             "select(condlist=[a < 0, a > 9], choicelist=[-a, a], default=1)",
             "take(a=e, indices=i)", "take(e, indices=i)", "searchsorted(a=e, v=a)",
             "digitize(a, bins=e)", "digitize(x=a, bins=e)", "histogram(a=a, bins=3)[0]",
             "argmin(a=a)", "cumsum(a=a, axis=1)"]
    check_texts(w, names, texts, {"a": a, "e": np.array([-20, 0, 30], dtype), "i": np.array([2, 0])})
    wanted, n = np.linalg.norm(a, ord=1, axis=0), wire.Error
    for text in ("np.linalg.norm(a, ord=1, axis=0)", "numpy.linalg.norm(x=a, ord=1, axis=0)"):
        (got,) = ask(w, [text], {"a": a})
        assert not isinstance(got, n) and np.allclose(got, wanted), text
    (got,) = ask(w, ["np.linalg.det(a)"], {"a": a})
    assert got.code == "unknown-name" and "linalg.norm" in got.fields["expected"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_to_decimals(w, names, dtype):
    texts = [f"round(a, {d})" for d in (-20, -5, -3, -2, -1, 0, 1, 2, 3, 5, 9, 15, 22)]
    texts += ["round(a, decimals=2)", "around(a, decimals=-1)", "round(a, decimals=0)", "round(a)",
              "round(a * 0.001, 4)", "round(a, -(2))", "round(a, 1 + 1)"]
    a = specials(dtype, 1009)
    if a.dtype.kind in "iu":  # a rounded value that does not fit follows the rule of casts
        a = a[np.abs(a.astype("f8")) < np.iinfo(dtype).max * 0.6]
    check_texts(w, names, texts, {"a": a})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.values
def test_clip(w, names, dtype):
    a = specials(dtype, 211)
    b, c = specials(dtype, 211)[::-1].copy(), specials("f4", 211)
    texts = """clip(a, 0, None)|clip(a, None, 7)|clip(a, min=0, max=5)|clip(a, max=5)|clip(a, 1, 3)
        clip(a, a_min=1, a_max=3)|clip(a, 0.5, 2.5)|clip(a, b, None)|clip(a, b, c)|clip(a, 5, 1)
        clip(a, min=b)|clip(a, nan, 1.5)|clip(a, -inf, inf)|clip(a, b, 100)|clip(a + 1, 0, max=b)
        clip(a, False, True)|clip(a, 0, int16(7))|clip(a, float32(0.1), None)|clip(2.5, a, b)
        clip(a, a, a)|clip(a, max=b, min=0)""".replace("\n", "|").split("|")
    if not NUMPY_2:
        texts = [t for t in texts if not re.search(r"\bm(ax|in)=|nan|int16|False", t)]
    # Of two zeros: the array's where the limit is a number, the limit's where it is an array. With
    # one limit NumPy calls minimum or maximum, whose zero depends on the element's position.
    texts = [t.strip() for t in texts]
    one_limit = [t for t in texts if "None" in t or t.count(",") == 1]
    check_texts(w, names, one_limit, {"a": a, "b": b, "c": c}, free_zero=True)
    check_texts(w, names, [t for t in texts if t not in one_limit], {"a": a, "b": b, "c": c})


def test_clip_without_limits(w):
    a = specials("f4", 101)
    assert_same(ask(w, ["clip(a, None, None)"], {"a": a})[0], a)


def close_pairs(dtype):
    """Values and their neighbours at the distances that the tolerances are about."""
    a = specials(dtype, 53)
    if a.dtype.kind != "f":
        return a[:, None], a[None, :]
    with np.errstate(all="ignore"):
        one = a.dtype.type
        near = [a, a * one(1 + 9.9e-6), a * one(1 + 1.1e-5), a + one(1e-8), np.nextafter(a, one(0)),
                a * one(1.0009), a[::-1]]
    return np.concatenate([a] * len(near)), np.concatenate(near)


@needs_numpy_2
@pytest.mark.parametrize("dtype", DTYPES)
def test_isclose(w, names, dtype):
    a, b = close_pairs(dtype)
    c = specials("f4", 53)[None, :]
    texts = ["isclose(a, b)", "isclose(b, a, rtol=1e-3)", "isclose(a, b, equal_nan=True)",
             "isclose(a, b, 0, 0)", "isclose(a, b, rtol=0.0, atol=1.5)", "isclose(a, b, 1e-3, 2)",
             "isclose(a, b, rtol=1e-3, equal_nan=True)", "isclose(a, 1)", "isclose(a, 2.5)",
             "isclose(a, nan, equal_nan=True)", "isclose(1.0, b)", "isclose(a, b, atol=0, rtol=2)",
             "isclose(a, b, 1e-5, 1e-8, True)", "isclose(a, inf)", "isclose(a, b, equal_nan=False)"]
    check_texts(w, names, texts, {"a": a, "b": b})
    if a.ndim == 2:
        check_texts(w, names, ["isclose(a, c)", "isclose(c, a)"], {"a": a, "c": c})


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_to_num(w, names, dtype):
    texts = ["nan_to_num(a)", "nan_to_num(a, nan=1.0, posinf=7)", "nan_to_num(a, neginf=-1.5)",
             "nan_to_num(a, True, 2.0)", "nan_to_num(a, copy=False)", "nan_to_num(a, nan=-3)",
             "nan_to_num(a, nan=nan, posinf=inf, neginf=-inf)", "nan_to_num(a, posinf=None)",
             "nan_to_num(a, True, 0.5, 1.5, -2.5)", "nan_to_num(a / 3, nan=0.1)"]
    check_texts(w, names, texts, {"a": specials(dtype, 211)})


# -- lists --------------------------------------------------------------------------------------

def select_texts():
    yield "select([a > 1, a > 0], [a, b], default=0)"
    yield "select([a > 1, b > 0, a == b], [a, b, a * 0], 7)"
    yield "select([a > b], [a])"
    yield "select([p, ~p], [a, b])"
    yield "select([p], [1], 2.5)"
    yield "select([p, a < b], [1, 2])"
    yield "select([p, a < b], [2.5, a], default=nan)"
    yield "select([a > 0, p], [select([p], [a], b), b - 0], a)"
    yield "where(p, select([a > b], [a], b), select([b > a], [b], a))"
    yield "select([isnan(a), a > b], [b, a], default=True)"
    yield "select([True, p], [a, b])"
    yield "select([p & (a > 0)], [sqrt(b)], default=int16(3))"


@needs_numpy_2
@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.values
def test_select(w, names, left):
    p = np.resize([True, False, False, True, False], 211)
    for right in ("?", "i1", "u8", "f4", "f8", left):
        texts = [t for t in select_texts() if "b - 0" not in t or right != "?"]
        check_texts(w, names, texts, {"a": specials(left, 211), "p": p,
                                      "b": specials(right, 211)[::-1].copy()})
    check_texts(w, names, ["select([p > 0, q], [a, b], default=k)", "select([q], [a], b)"],
                {"p": np.arange(5)[:, None] % 2, "q": np.array([True, False, True]),
                 "a": specials(left, 3), "b": specials(left, 5)[:, None], "k": 1})


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.values
def test_where_on_every_pair_of_dtypes(w, names, left):
    c = np.resize([True, False, False], 211)
    for right in DTYPES:
        arguments = {"a": specials(left, 211), "b": specials(right, 211)[::-1].copy(), "c": c,
                     "d": specials(right, 211)}
        texts = ["where(c, a, b)", "where(a, a, b)", "where(d, b, a)", "where(a != b, a, b)",
                 "where(c, where(d, a, b), where(a, b, a))", "where(c, 1, 0)"]
        if NUMPY_2:
            texts += ["where(c, where(d, a, 1), where(a, b, 0))", "where(a, 2.5, b)",
                      "where(c, a, nan)"]
        check_texts(w, names, texts, arguments)


# -- several results ----------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
def test_results_by_number(w, names, dtype):
    a, b = specials(dtype, 211), specials(dtype, 211)[::-1].copy()
    check_texts(w, names, ["divmod(a, b)[0]", "divmod(a, b)[1]", "divmod(7, a)[0]",
                           "divmod(a, 3)[1] + divmod(a, 3)[0]", "frexp(a)[0]", "frexp(a)[1]", "modf(a)[0]", "modf(a)[1]",
                           "ldexp(frexp(a)[0], frexp(a)[1])", "modf(a)[0] + modf(a)[1]",
                           "frexp(a * 0.5)[1] * 2", "(modf(a)[1])",
                           "modf(frexp(a)[0] * 8)[0]", "frexp(modf(a)[1])[1]",
                           "divmod(a, b)[0] * b + divmod(a, b)[1]"], {"a": a, "b": b})


# -- index() ------------------------------------------------------------------------------------

def index_cases(a):
    """(text, NumPy's): a has three dimensions, b its last one."""
    i, j, k = np.indices(a.shape)
    yield "index(0) + a * 0", i + a * 0
    yield "index(1) * 100 + index(2) + a", j * 100 + k + a
    yield "where(index(0) == index(2), a, 1)", np.where(i == k, a, a.dtype.type(1))
    yield "a * index(2)", a * k
    yield "where((index(0) + index(1) + index(2)) % 2 == 0, a, -a)", np.where((i + j + k) % 2 == 0,
                                                                             a, -a)
    yield "float32(index(1)) + a", j.astype("f4") + a
    yield "index(2) < a", k < a
    yield "sum(a * index(1))", None if a.dtype.kind == "f" else (a * j).sum()
    yield "max(index(0) + 0 * a)", None if a.size == 0 else (i + 0 * a).max()
    yield "count_nonzero(a > index(2))", np.count_nonzero(a > k)
    yield "index(1) - min(where(a > 3, index(1), 1000)) + a * 0", \
        None if a.size == 0 else j - np.where(a > 3, j, 1000).min() + a * 0


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f4", "f8"])
@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 1, 1), (2, 0, 3), (13, 1, 11), (1, 4, 97)])
@pytest.mark.values
def test_index(w, dtype, shape):
    rng = np.random.default_rng(4)
    a = rng.integers(0, 2 if dtype == "?" else 9, shape).astype(dtype)
    if dtype == "?":
        i = np.indices(shape)[0]
        cases = [("index(0) + a", i + a), ("where(a, index(0), 7)", np.where(a, i, 7))]
    else:
        with np.errstate(all="ignore"):
            cases = [(t, want) for t, want in index_cases(a) if want is not None]
    for (text, want), got in zip(cases, ask(w, [t for t, _ in cases], {"a": a})):
        assert not isinstance(got, wire.Error), f"{text}: {got}"
        assert_same(got, want, what=text)


def test_index_is_of_the_array_that_is_computed(w):
    """Of the whole result, whatever the shape of the part that names it; in a reduction, of its
    argument; each output its own."""
    a, b = np.arange(12.0).reshape(4, 3), np.arange(3)
    i, j = np.indices((4, 3))
    cases = [("a + b * index(0)", a + b * i), ("(b + index(1)) + a", b + j + a),
             ("index(0) + b", np.arange(3) + b),
             ("a + sum(b * index(0))", a + (b * [0, 1, 2]).sum()),
             ("sum(b * index(0)) + index(0) * a", (b * [0, 1, 2]).sum() + i * a),
             ("max(a * index(1)) - index(1) + 0 * a", (a * j).max() - j + 0 * a),
             ("sum(index(0) + 0 * b) + sum(index(0) + 0 * a)", np.int64(3) + np.float64(18)),
             ("index(0) * index(0) + 0 * b", b * b)]
    for (text, want), got in zip(cases, ask(w, [t for t, _ in cases], {"a": a, "b": b})):
        assert not isinstance(got, wire.Error), f"{text}: {got}"
        assert_same(got, np.asarray(want), what=text)
    together = ask_once(w, [t for t, _ in cases], {"a": a, "b": b})
    for (text, want), got in zip(cases, together):
        assert_same(wire.result_array(got), np.asarray(want), what=f"together: {text}")


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_index_in_every_memory_order(w, order):
    """Sources and outputs of any order of axes, and strided: the index is the logical one."""
    shape = (7, 11, 5)
    rng = np.random.default_rng(5)
    a = rng.integers(0, 9, shape).astype("i4")
    i, j, k = np.indices(shape)
    want = 10000 * i + 100 * j + k + a
    region, out = wire.Region(w, 1 << 18), wire.Region(w, 1 << 18)
    stored = np.transpose(region.array("i4", tuple(2 * shape[x] for x in order)), np.argsort(order))
    view = stored[::2, ::2, ::-2]
    view[...] = a
    base = region.array("u1", (1,)).__array_interface__["data"][0]
    offset = view.__array_interface__["data"][0] - base
    source = wire.described(view, region.at(offset), view.strides)
    target = np.transpose(out.array("i8", tuple(shape[x] for x in order[::-1])),
                          np.argsort(order[::-1]))
    w.run("10000 * index(0) + 100 * index(1) + index(2) + a", a=source,
          to=wire.described(target, out.at(), target.strides))
    assert_same(target.copy(), want, what=f"{order}")
    assert w.compute("sum(a * index(2))", a=source) == (a * k).sum()
    del view, stored, target
    for r in (region, out):
        w.call("region.detach", region=r.id)


@pytest.mark.parametrize("shape", [(300_007,), (577, 521), (3, 100_003), (100_003, 3),
                                   (67, 71, 73)])
@pytest.mark.values
def test_index_over_many_tiles_of_a_tiny_pool(start, shape):
    """With 1 MiB of pool every one of these arrays takes several tiles."""
    daemon = start(pool="1M")
    with daemon.connect() as w:
        n = int(np.prod(shape))
        region = wire.Region(w, 24 * n)
        a = region.array("f8", shape)
        a[...] = np.random.default_rng(6).integers(0, 100, shape)
        out, second = region.array("i8", shape, 8 * n), region.array("f8", shape, 16 * n)
        last = len(shape) - 1
        axes = np.indices(shape)
        flat = sum(axes[i] * int(np.prod(shape[i + 1:])) for i in range(len(shape)))
        text = " + ".join(f"index({i}) * {int(np.prod(shape[i + 1:]))}" for i in range(len(shape)))
        outputs = [{"expr": f"{text} + int64(a * 0)", "to": wire.described(out, region.at(8 * n))},
                   {"expr": f"a * index({last})", "to": wire.described(second, region.at(16 * n))},
                   {"expr": f"sum(a * index({last}))"}, {"expr": f"max(index(0) - a)"}]
        results = w.call("job.run", args={"a": wire.described(a, region.at())}, outputs=outputs)
        assert_same(out.copy(), flat)
        assert_same(second.copy(), a * axes[last])
        totals = [wire.result_array(o) for o in results["outputs"][2:]]
        assert totals[0] == (a * axes[last]).sum() and totals[1] == (axes[0] - a).max()
        fd = wire.memfd(8 * n)
        os.pwrite(fd, a.tobytes(), 0)
        source = wire.described(a, wire.file_at(0))
        result = w.call("job.run", fds=[fd], args={"a": source},
                        outputs=outputs[2:])
        os.close(fd)
        assert result["tiles"] > 1
        assert [wire.result_array(o) for o in result["outputs"]] == totals
        del a, out, second


# -- powers of known exponents ------------------------------------------------------------------

@needs_numpy_2
@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_with_a_short_way_have_the_bits_of_numpys(w, names, dtype):
    texts = ["a ** 2", "a ** 1", "a ** 0", "a ** 2.0", "square(a)", "a ** 1.0",
             "power(a, 2)", "power(a, 1)"]
    if np.dtype(dtype).kind == "f":
        texts += ["a ** -1", "a ** 0.5", "a ** -1.0", "(a + 1) ** 2", "(a * 2) ** 0.5"]
    check_texts(w, names, texts, {"a": specials(dtype, 1009)})
    refused = ["a ** -1", "power(a, -2)"] if np.dtype(dtype).kind == "i" else []
    for text in refused:
        got = ask(w, [text], {"a": specials(dtype, 11)})[0]
        assert isinstance(got, wire.Error) and got.code == "negative-integer-power", text


# -- refusals -----------------------------------------------------------------------------------

# a is a float array and i an integer one, both (3, 4). What is wrong, and words that name the fix.
REFUSALS = """
    round(a, digits=2)              | unknown-name   | decimals
    round(a, decimal=2)             | unknown-name   | did you mean 'decimals'
    clip(a, mim=2)                  | unknown-name   | did you mean 'min'
    isclose(a, i, tol=1)            | unknown-name   | did you mean 'rtol'
    round(a, 1, 2)                  | bad-arity      | decimals=0
    round()                         | bad-arity      | 1 argument
    clip()                          | bad-arity      | min=None
    where(a, i)                     | bad-arity      | takes 3 arguments, 2 given
    hypot(a)                        | bad-arity      | takes 2 arguments, 1 given
    index()                         | bad-arity      | 1 argument
    round(a, decimals=1, decimals=2)| bad-expression | given twice
    round(a, 1, decimals=2)         | bad-expression | given twice
    round(decimals=1, a)            | bad-expression | without a name
    round(a, decimals=None)         | bad-expression | cannot be None
    round(a, 2.5)                   | bad-expression | integer
    round(a, a)                     | bad-expression | integer
    isclose(a, i, equal_nan=a)      | bad-expression | equal_nan
    clip(a, 0, 3, max=4)            | bad-expression | max
    sqrt(a, x=2)                    | bad-expression | no named arguments
    float32(a, copy=True)           | bad-expression | no named arguments
    divmod(a, i)                    | bad-expression | write divmod(a, b)[0] or divmod(a, b)[1]
    frexp(a) + 1                    | bad-expression | write frexp(x)[0] or frexp(x)[1]
    modf(a)[2]                      | bad-expression | write modf(x)[0] or modf(x)[1]
    frexp(a)[i]                     | bad-expression | write frexp(x)[0] or frexp(x)[1]
    a[0]                            | bad-expression | only an argument takes an index
    sqrt(a)[0]                      | bad-expression | only an argument takes an index
    [a, i]                          | bad-expression | lists are only for select, q, axis, size and range
    None + a                        | bad-expression | None is no value
    select([a > 1], [a, i])         | bad-arity      | 1 condition and 2 choices; there must be
    select([], [])                  | bad-arity      | there must be one or more of each
    select([a > 1])                 | bad-arity      | default=0
    select([a > 1], [a], 1, 2)      | bad-arity      | default=0
    select(a > 1, a)                | bad-expression | takes two lists, as in select([a < 0
    select([a > 1], [a], other=2)   | unknown-name   | default=0
    select([a], [i])                | bad-dtype      | bool
    select([a > 1, i], [a, a])      | bad-dtype      | bool
    select([a > 1, [a])             | bad-expression | lists are only for select, q, axis, size and range
    select([a > 1                   | bad-expression | not closed
    index(2) + a                    | bad-shape      | has 2 axes, shape (3, 4)
    index(-3) + a                   | bad-shape      | has 2 axes, shape (3, 4)
    index(99) + a                   | bad-shape      | at most 32 axes
    index(0)                        | bad-shape      | no array that gives the shape
    sum(index(0))                   | bad-shape      | no array that gives the shape
    sum(a) * index(0)               | bad-shape      | index(0)
    sum(a * index(2))               | bad-shape      | has 2 axes, shape (3, 4)
    index(a)                        | bad-expression | an integer that is known here
    index(0.5) + a                  | bad-expression | an integer that is known here
    gcd(a, i)                       | bad-dtype      | integers
    a & i                           | bad-dtype      | integers or bools
    a << 1                          | bad-dtype      | integers
    ldexp(i, a)                     | bad-dtype      | integer
    bitwise_count(a)                | bad-dtype      | integers
    sign(a > 1)                     | bad-dtype      | bools
    -(a > 1)                        | bad-dtype      | write ~x
    (a > 1) - (i > 1)               | bad-dtype      | write a ^ b
    arcsine(a)                      | unknown-name   | did you mean 'arcsin
    hypto(a, i)                     | unknown-name   | did you mean 'hypot'
    logit1(a)                       | unknown-name   | did you mean 'logit'
    log_and(a, i)                   | unknown-name   | log_and
"""


@pytest.mark.parametrize("line", REFUSALS.strip().splitlines(),
                         ids=lambda line: line.split(" |")[0].strip())
def test_refusals_name_the_fix(w, line):
    text, code, words = (part.strip() for part in line.split("|", 2))
    a = np.ones((3, 4))
    with pytest.raises(wire.Error) as refused:
        w.call("job.run", outputs=[{"expr": text, "name": "r"}],
               args={"a": wire.argument(a), "i": wire.argument(a.astype("i4"))})
    error = refused.value
    assert (error.code, error.argument) == (code, "r"), error
    assert words in error.message and error.message.startswith("column "), error


# -- rules of ours ------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES[1:9])
def test_integer_traps_are_results_with_a_count(w, dtype):
    a = specials(dtype, 101)
    zero = np.zeros(101, dtype)
    for text in ("a // z", "a % z", "fmod(a, z)", "divmod(a, z)[0]", "reciprocal(z)"):
        result = w.run(text, **{k: v for k, v in {"a": a, "z": zero}.items() if k in text})
        assert result["warnings"]["divide_by_zero"] == 101, text
        assert not wire.result_array(result["outputs"][0]).any(), text
    if a.dtype.kind == "i":
        least = np.full(3, np.iinfo(dtype).min, dtype)
        minus = np.full(3, -1, dtype)
        with np.errstate(all="ignore"):
            for text in ("a // b", "a % b"):
                assert_same(w.compute(text, a=least, b=minus), eval(text, {"a": least, "b": minus}))
        assert_same(w.compute("a >> b", a=minus, b=np.full(3, 127, dtype)), minus)
        with pytest.raises(wire.Error) as refused:
            w.compute("a ** b", a=least, b=minus)
        assert refused.value.code == "negative-integer-power"
    assert_same(w.compute("a << b", a=a, b=np.full(101, 64, dtype)), np.zeros(101, dtype))


def test_nan_to_integer_is_one_written_rule(w):
    a = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 300.7])
    result = w.run("int64(a)", a=a)
    least = np.iinfo("i8").min
    assert list(wire.result_array(result["outputs"][0])) == [least] * 5 + [300]
    assert result["warnings"]["invalid_cast"] == 5
    assert list(w.compute("int32(a)", a=a)) == [0] * 5 + [300]
    assert list(w.compute("uint8(a)", a=a)) == [0] * 5 + [44]


def test_python_integers_that_do_not_fit(w):
    a = np.array([1, 2, 3], "i1")
    with pytest.raises(wire.Error) as refused:
        w.compute("a + 1000", a=a)
    assert refused.value.code == "bad-expression"
    assert_same(w.compute("a < 1000", a=a), np.array([True] * 3), what="comparison out of range")
    assert_same(w.compute("a == -1000", a=a), np.array([False] * 3), what="comparison out of range")


def test_what_is_known_of_an_index_still_has_its_shape(w):
    a = np.zeros((3, 5), "f4")
    for text, want in (("isfinite(index(0)) & (a == 0)", True), ("isnan(index(1)) | (a != 0)", False),
                       ("(index(0) < 2**63) & (a == 0)", True)):
        assert_same(ask(w, [text], {"a": a})[0], np.full(a.shape, want), what=text)
    with pytest.raises(wire.Error) as refused:
        w.compute("a + isnan(index(9))", a=a)
    assert refused.value.code == "bad-shape"
