"""Products that share one read of a long matrix, against NumPy: what is read, values, bits."""

import re

import numpy as np
import pytest

import wire
from catalogue import NUMPY_2
from conftest import ENGINE, Daemon
from test_products import Held

pytestmark = [pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes"),
              pytest.mark.skipif(ENGINE != "cpu", reason="a device computes products apart")]

# Rows, columns, columns of c and g: by lanes, by blocks of rows, by blocks of columns, odd ones.
SHAPES = [(1000, 37, 5, 3), (3, 2, 1, 1), (4100, 64, 13, 13), (257, 5001, 7, 4), (40, 1, 2, 2),
          (600, 1500, 20, 20), (11000, 8, 30, 2)]
NAMES = {"maximum": np.maximum, "where": np.where, "sqrt": np.sqrt, "tensordot": np.tensordot,
         "sum": np.sum, "square": np.square, "float64": np.float64}
JOBS = [
    ["x @ c", "x.T @ (x @ c)"],
    ["(x @ c) @ g", "x.T @ ((x @ c) @ g)"],
    ["maximum((x @ c) @ g - row, 0)", "x.T @ maximum((x @ c) @ g - row, 0)"],
    ["x.T @ (((x @ c) @ g) * weight)", "x.T @ y"],
    ["where(x < 0, 0, x) @ c", "where(x.T < 0, 0, x.T) @ (where(x < 0, 0, x) @ c)"],
    ["x.T @ (x @ c) + sqrt(c * c)", "(x @ c) / (1 + max(c))"],
    ["x @ c", "sqrt(sum(x * x)) - sum(x)", "sum(x, axis=0)", "sum(square(x), axis=0) + 1"],
]


@pytest.fixture(scope="module")
def daemon():
    daemon = Daemon(pool="64M")
    yield daemon
    daemon.stop()


def matrices(dtype, m, n, r, q):
    rng = np.random.default_rng([m, n, r, q])
    shapes = {"x": (m, n), "c": (n, r), "g": (r, q), "row": (q,), "weight": (m, 1), "y": (m, 2)}
    return {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def used(texts, args):
    names = compile(" + ".join(f"({text})" for text in texts), "", "eval").co_names
    return {name: value for name, value in args.items() if name in names}


def exact(texts, args):
    wide = {name: value.astype("f8") for name, value in args.items()}
    return [np.asarray(eval(text, dict(NAMES, max=np.max), wide)) for text in texts]


def near(got, expected, n_terms, dtype):
    """As far off as sums of so many terms are that were rounded to the dtype, t and v too."""
    scale = np.abs(expected).max(initial=0)
    error = np.abs(got - expected).max(initial=0)
    limit = (2e-15 * np.sqrt(n_terms) * 8 + (2e-6 if dtype == "f4" else 0)) * scale
    assert error <= limit, (error / scale, limit / scale)


def run(w, texts, args):
    return w.call("job.run", args={name: wire.argument(value) for name, value in args.items()},
                  outputs=[{"expr": text} for text in texts])


def computed(w, texts, args, like):
    """The outputs, which lie in regions as large as these."""
    held = Held(w, **args, **{f"out{i}": np.zeros_like(one) for i, one in enumerate(like)})
    try:
        w.call("job.run", args={name: held.at(name) for name in args},
               outputs=[{"expr": text, "to": held.at(f"out{i}")} for i, text in enumerate(texts)])
        return [held[f"out{i}"].copy() for i in range(len(texts))]
    finally:
        held.leave()


@pytest.mark.parametrize("texts", JOBS, ids=lambda texts: texts[-1])
def test_values(w, texts):
    for shape in SHAPES:
        for dtype in ("f8", "f4"):
            args = used(texts, matrices(dtype, *shape))
            expected = exact(texts, args)
            held = Held(w, **args, **{f"out{i}": np.zeros(e.shape, dtype)
                                      for i, e in enumerate(expected)})
            w.call("job.run", args={name: held.at(name) for name in args},
                   outputs=[{"expr": text, "to": held.at(f"out{i}")} for i, text in enumerate(texts)])
            for i, e in enumerate(expected):
                near(held[f"out{i}"].astype("f8"), e, shape[0] + shape[1], dtype)
            held.leave()


# Of x (i, j, k): rows are each axis in turn; a Khatri-Rao product; large rows; of matrices.
TENSORS = [
    ((13, 30, 11), ["tensordot(x, c, 2)", "tensordot(x, tensordot(x, c, 2) @ g, (0, 0))"],
     {"c": (30, 11, 4), "g": (4, 4)}),
    ((13, 30, 11), ["tensordot(x, b * d, ((0, 2), (0, 1)))",
                    "tensordot(x, maximum(tensordot(x, b * d, ((0, 2), (0, 1))), 0), (1, 0))"],
     {"b": (13, 1, 5), "d": (11, 5)}),
    ((13, 30, 11), ["tensordot(x, c, ((0, 1), (0, 1)))", "tensordot(x, v, (-1, 0))"],
     {"c": (13, 30, 17), "v": (11, 3)}),
    ((9, 300, 400), ["tensordot(x, tensordot(x, b * d, 2) @ g, (0, 0))", "tensordot(x, b * d, 2) @ g"],
     {"b": (300, 1, 3), "d": (400, 3), "g": (3, 3)}),
    ((300, 9, 301), ["tensordot(x, tensordot(x, c, ((0, 2), (0, 1))), (1, 0))"], {"c": (300, 301, 2)}),
    ((6, 5, 4, 7), ["tensordot(x, tensordot(x, c, ((0, 1, 3), (0, 1, 2))), (2, 0))"], {"c": (6, 5, 7, 3)}),
    ((2000, 41), ["tensordot(x, x, (0, 0))", "tensordot(x, y, (0, 0))"], {"y": (2000,)}),
    ((700, 600), ["tensordot(x, x, (0, 0))", "sum(x, axis=0, keepdims=1)"], {}),
    ((9, 300, 400), ["tensordot(x, c, 2)", "sum(square(float64(x)))", "sum(x, axis=0)"], {"c": (300, 400, 2)}),
    ((1, 30, 11), ["tensordot(x, c, 2)", "tensordot(x, tensordot(x, c, 2), (0, 0))"], {"c": (30, 11, 4)}),
    ((12, 1700), ["tensordot(x @ c, x, (0, 0))", "tensordot(x, x @ c, (0, 0))"], {"c": (1700, 2)}),
    ((3000, 20), ["tensordot(x @ c, (x @ c) @ g, (0, 0))", "tensordot(x, x @ c, (0, 0))"],
     {"c": (20, 6), "g": (6, 2)}),
]


@pytest.mark.parametrize("case", range(len(TENSORS)))
def test_tensors(w, case):
    shape, texts, shapes = TENSORS[case]
    rng = np.random.default_rng(case)
    for dtype in ("f8", "f4"):
        args = {name: rng.standard_normal(s).astype(dtype) for name, s in {"x": shape, **shapes}.items()}
        expected = exact(texts, args)
        held = Held(w, **args, **{f"out{i}": np.zeros(e.shape, dtype) for i, e in enumerate(expected)})
        job = {"args": {name: held.at(name) for name in args},
               "outputs": [{"expr": text, "to": held.at(f"out{i}")} for i, text in enumerate(texts)]}
        assert w.call("job.plan", **job)["read_bytes"] <= sum(
            a.nbytes * (1 if name in "xy" else 40) for name, a in args.items())
        w.call("job.run", **job)
        for i, e in enumerate(expected):
            near(held[f"out{i}"].astype("f8"), e, args["x"].size / shape[0] + shape[0], dtype)
        held.leave()


def test_float32_times_float64_is_read_as_it_is(w):
    args = {**matrices("f4", 200, 70, 5, 1), "c": matrices("f8", 70, 5, 1, 1)["x"]}
    texts = ["tensordot(x, x @ c, (0, 0))", "x.T @ (x @ c)", "tensordot(float64(x), x, (0, 0))", "sum(square(float64(x)))",
             "x @ c"]
    args = {name: args[name] for name in "xc"}
    reply = run(w, texts, args)
    for out, e in zip(reply["outputs"], exact(texts, args), strict=True):
        near(wire.result_array(out), e, 300, "f8")
    plan = w.call("job.plan", args={name: wire.argument(value) for name, value in args.items()},
                  outputs=[{"expr": text} for text in texts])
    assert "slabs of 200 rows of 70 columns (float32)" in plan["program"] and plan["read_bytes"] < 60_000


@pytest.mark.parametrize("text,code,found", [
    ("tensordot(x, c, 1)", "bad-shape", None), ("tensordot(x, c, ((2, 1), (1, 0)))", "bad-shape", None),
    ("tensordot(x, c, ((1, 2), (0, 1), 3))", "bad-shape", None),
    ("tensordot(int32(x), int32(c), 2)", "bad-dtype", None), ("tensordot(x, c, 5)", "bad-shape", None),
    ("tensordot(x, c, (1, 0))", "bad-expression", "2 axes beside"),
    ("tensordot(x, x, 3)", "bad-expression", "3 of 3 axes"), ("tensordot(x, b, 2)", "bad-expression", "32769"),
    ("tensordot(u * v * z, p * q, 2)", "too-large-for-pool", "bytes")])
def test_what_tensordot_refuses(w, text, code, found):
    shapes = {"x": (3, 4, 5), "c": (4, 5, 2), "b": (4, 5, 32769), "u": (3, 1, 1), "v": (3000, 1), "z": (4000,),
              "p": (3000, 1, 9), "q": (4000, 9)}
    held = Held(w, **used([text], {name: np.zeros(shape) for name, shape in shapes.items()}))
    with pytest.raises(wire.Error) as caught:
        w.call("job.plan", outputs=[{"expr": text}],
               args={name: held.at(name) for name in used([text], shapes)})
    held.leave()
    assert caught.value.code == code
    assert found is None or found in caught.value.fields["found"]
    assert code != "too-large-for-pool" or "1 rows of 12000000 columns" in caught.value.message


@pytest.mark.parametrize("x,c", [((3, 0, 5), (0, 5, 2)), ((0, 4, 5), (4, 5, 2)), ((3, 4, 5), (4, 5, 0))])
def test_no_elements_give_zeros(w, x, c):
    reply = run(w, ["tensordot(x, c, 2)"], {"x": np.ones(x), "c": np.ones(c)})
    assert wire.result_array(reply["outputs"][0]).tolist() == np.zeros((x[0], c[2])).tolist()


def test_a_sum_may_be_stored_over_the_operand_it_is_made_of(w):
    args = used(["x", "c", "y"], matrices("f8", 300, 300, 2, 2))
    x, c, y = (args[name] for name in "xcy")
    for to, expected in [("c", x.T @ (x @ c)), ("y", x.T @ (x @ c))]:
        held = Held(w, **args)
        w.call("job.run", args={name: held.at(name) for name in "xcy"},
               outputs=[{"expr": "x.T @ (x @ c + 0 * y)", "to": held.at(to)}])
        near(held[to], expected, 600, "f8")
        held.leave()


def test_x_as_the_right_operand_of_a_tensordot_is_not_too_wide(w):
    with pytest.raises(wire.Error) as caught:
        w.call("job.plan", outputs=[{"expr": "tensordot(x @ c, x, (0, 0))"}],
               args={name: {"dtype": "<f8", "shape": shape, "at": {"kind": "region", "id": 0, "offset": 0}}
                     for name, shape in {"x": [12, 70000], "c": [70000, 2]}.items()})
    assert caught.value.code == "bad-expression"


def test_x_is_read_once(w):
    """As the plan says, and as the reply counts."""
    args = used(["x", "c", "g"], matrices("f8", 3000, 200, 6, 6))
    held = Held(w, **args, a=np.zeros((3000, 6)), p=np.zeros((200, 6)))
    job = {"args": {name: held.at(name) for name in args},
           "outputs": [{"expr": "(x @ c) @ g", "to": held.at("a")},
                       {"expr": "x.T @ ((x @ c) @ g)", "to": held.at("p")}]}
    plan = w.call("job.plan", **job)
    assert "read once" in plan["program"]
    assert plan["read_bytes"] == sum(value.nbytes for value in args.values())
    assert w.call("job.run", **job)["read_bytes"] == plan["read_bytes"]
    held.leave()


CHAINS = ["maximum(maximum(x @ c, 0) @ g - row, 0)", "sum(exp(x @ c))", "sum(x @ c @ g, axis=0, keepdims=True)",
          "mean(square(x @ c - y), axis=0)", "mean(x @ c @ g, axis=1)",
          "exp(x @ c) / sum(exp(x @ c), axis=1, keepdims=True)"]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_large_products_of_products_and_their_sums_are_walked(w, dtype):
    """Of 90 MiB or half as much, with a pool of 64 MiB; one read, and nothing is kept of it."""
    args = matrices(dtype, 300000, 3, 38, 2)
    args["y"] = np.linspace(-1, 1, 300000, dtype=dtype)[:, None]
    names = {"exp": np.exp, "mean": np.mean}
    for text in CHAINS:
        given = used([text], args)
        expected = np.asarray(eval(text, {**NAMES, **names}, {n: v.astype("f8") for n, v in given.items()}))
        held = Held(w, **given, out=np.zeros(expected.shape, dtype))
        job = {"args": {name: held.at(name) for name in given}, "outputs": [{"expr": text, "to": held.at("out")}]}
        plan = w.call("job.plan", **job)
        assert "read once" in plan["program"] and plan["carry_bytes"] < 24 << 20
        assert w.call("job.run", **job)["read_bytes"] == plan["read_bytes"] < given["x"].nbytes * 1.01 + (
            given["y"].nbytes if "y" in given else 0)
        near(held["out"].astype("f8"), expected, 300, dtype)
        held.leave()


REDUCED = ["max(x @ c)", "min(x @ c, axis=0)", "max(x @ c, axis=1)", "argmax(x @ c)", "argmin(x @ c, axis=0)",
           "argmax(x @ c, axis=1)", "all(x @ c > -1)", "count_nonzero(x @ c > 0, axis=0)", "mean(x @ c > 0)", "var(x @ c)",
           "std(x @ c, axis=0)", "var(x @ c, axis=1, keepdims=True)", "prod(x @ c / 9, axis=1)", "max(abs(x @ c - y), axis=0)",
           "exp(x @ c - max(x @ c, axis=1, keepdims=True))", "max((x @ c) @ g, axis=0) - min(x @ c)", "mean(x @ c, axis=0) @ g",
           "histogram(x @ c, 7, (-3, 3))[0]"]


@pytest.mark.parametrize("shape", [(31007, 3, 38, 2), (7001, 1100, 191, 2), (9, 130000, 3, 3)])
def test_what_a_large_product_is_reduced_to(w, shape):
    """By lanes, by blocks of rows, of columns; one read, and nothing is kept of it. The last is no walk."""
    functions = ("max min argmax argmin all count_nonzero mean var std prod abs exp histogram").split()
    names = {name: getattr(np, name) for name in functions}
    args = matrices("f8", *shape)
    args["y"] = np.linspace(-1, 1, shape[0])[:, None]
    for text in REDUCED:
        for has_nan in (False, True):
            args["x"][shape[0] // 3, 1] = np.nan if has_nan and "histogram" not in text else 0.5
            given = used([text], args)
            with np.errstate(invalid="ignore"):
                expected = np.asarray(eval(text, {**NAMES, **names}, given))
            held = Held(w, **given, out=np.zeros(expected.shape, expected.dtype))
            job = {"args": {name: held.at(name) for name in given}, "outputs": [{"expr": text, "to": held.at("out")}]}
            plan = w.call("job.plan", **job)
            assert w.call("job.run", **job)["read_bytes"] == plan["read_bytes"]
            if shape[0] > 9:
                assert "read once" in plan["program"]
                assert plan["carry_bytes"] < shape[0] * shape[2] * 8 / 1.5, (text, plan["carry_bytes"])
            np.testing.assert_allclose(held["out"], expected, rtol=1e-9, atol=1e-9, err_msg=text)
            held.leave()


@pytest.mark.parametrize("n_columns", [1023, 1024, 1025, 5000])
def test_what_is_made_of_rows_may_be_wider_than_x(w, n_columns):
    """At and beyond the widest row of which a lane's slab has eight."""
    args = matrices("f8", 3000, 2, 1, 2)
    args["row"], args["g"] = args["row"][:1] + np.zeros((1, n_columns)), np.ones((n_columns, 2)) / n_columns
    texts = ["x.T @ (x @ c)", "maximum((x @ c) * row, 0) @ g", "max((x @ c) * row, axis=0)"]
    for at in (slice(0, 1), slice(1, 2), slice(0, 3)):
        given = used(texts[at], args)
        expected = exact(texts[at], given)
        for got, one in zip(computed(w, texts[at], given, expected), expected, strict=True):
            np.testing.assert_allclose(got, one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [8, 20, 24, 26, 27, 28, 29, 30, 32, 40, 60, 61, 62, 70])
def test_reductions_of_a_walk_are_counted(w, n):
    """Along rows each takes two of the 64: those that do not fit are computed otherwise, or refused."""
    functions = ("max", "min", "prod", "argmax", "argmin", "var", "count_nonzero")
    args = {f"c{i}": np.cos(np.arange(6.0) + i).reshape(2, 3) for i in range(10)}
    args["x"] = np.sin(np.arange(100.0)).reshape(50, 2)
    terms = [f"{functions[i % 7]}(x @ c{i // 7}, axis=1)" for i in range(n)]
    texts = ["x.T @ (x @ c0)", " + ".join(terms)]
    given = used(texts, args)
    names = {name: getattr(np, name) for name in functions}
    expected = [eval(text, names, given) for text in texts]
    try:
        results = computed(w, texts, given, expected)
    except wire.Error as error:
        assert error.code == "limit-exceeded" and n > 32, str(error)
        return
    for got, one in zip(results, expected, strict=True):
        np.testing.assert_allclose(got, one, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [10, 17, 18, 20, 24])
def test_a_walk_leaves_room_for_what_is_reduced_behind_it(w, n):
    functions = ("max", "min", "prod", "argmax")
    args = {f"c{i}": np.cos(np.arange(12.0) + i).reshape(4, 3) for i in range(6)}
    args["x"] = np.sin(np.arange(8000.0)).reshape(2000, 4)
    text = " + ".join(["sum(x.T @ (x @ c0))"] + [f"sum({functions[i % 4]}(x @ c{i // 4}, axis=1))" for i in range(n)])
    given = used([text], args)
    names = {name: getattr(np, name) for name in (*functions, "sum")}
    expected = np.asarray(eval(text, names, given))
    np.testing.assert_allclose(computed(w, [text], given, [expected])[0], expected, rtol=1e-9)


def test_what_a_product_must_be_kept_for(w):
    """The message says what the product takes, and what to write."""
    args = {name: wire.argument(np.broadcast_to(np.zeros(1), shape)) for name, shape in {"x": (1, 3), "c": (3, 300)}.items()}
    with pytest.raises(wire.Error) as caught:
        w.call("job.plan", args=args, outputs=[
            {"expr": "p = (x + uniform(size=(100000, 3), seed=1)) @ c; p - median(p)"}])
    assert caught.value.code == "too-large-for-pool" and "store what a product gives" in str(caught.value)
    assert int(str(caught.value).split(" needs ")[1].split()[0]) > 100000 * 300 * 8


# What is read more often than once, or turned; how many walks over x there are, where the pool is small.
AGAIN = [
    ("p = x @ c; p - mean(p)", 2), ("p = x @ c; count_nonzero(p / max(p) == 1)", 2), ("p = x @ c; p - max(p, axis=1, keepdims=True)", 1),
    ("p = x @ c; (p - mean(p, axis=0)) / std(p, axis=0)", 2), ("p = x @ c; sum(square(p - min(p)))", 2),
    ("p = x @ c; q = p - mean(p); q / max(abs(q))", 3), ("p = x @ c; argmax(p - mean(p, axis=0), axis=0)", 2),
    ("p = x @ c; p @ (p.T @ y)", 2), ("p = x @ c; q = p - mean(p, axis=0); q.T @ q", 2), ("p = x @ c; (p / max(p)).T @ y", 2),
    ("exp(x @ c).T @ exp(x @ c)", 1), ("y.T @ (x @ c)", 1), ("v @ (x @ c)", 1), ("(x @ c).T @ v", 1), ("tensordot(y, x @ c, (0, 0))", 1),
    ("p = x @ c; q = p - mean(p); r = q / max(abs(q)); t = r - min(r); max(t, axis=0) / std(t)", 4),
    ("x @ c + x @ d", 1), ("p = x @ c; x.T @ (p - mean(p, axis=0))", 2)]


def evaluated(text, args):
    """As NumPy does, in float64; x's dtype is the result's where it is of floats."""
    names = {name: getattr(np, name) for name in
             "mean max min std sum exp abs square argmax count_nonzero tensordot".split()}
    *bindings, last = text.split(";")
    names.update({name: value.astype("f8") for name, value in args.items()})
    with np.errstate(all="ignore"):
        for binding in bindings:
            exec(binding.strip(), names)
        result = np.asarray(eval(last.strip(), names))
    return result, args["x"].dtype if result.dtype == "f8" else result.dtype


@pytest.fixture(scope="module")
def pools():
    """One that keeps a product of 9 MiB, and one that does not."""
    daemons = [Daemon(pool=pool, threads=n) for pool, n in [("16M", 1), ("64M", 3)]]
    yield daemons
    for daemon in daemons:
        daemon.stop()


@pytest.mark.parametrize("dtype,shape,kind", [("f8", (60011, 3, 19), "nan"), ("f4", (120011, 3, 19), "normal"),
                                              ("f8", (1031, 2, 1040), "ties"), ("f4", (110, 2, 15001), "nan")])
def test_what_a_large_product_is_needed_for_again(pools, dtype, shape, kind):
    """The same bits whether it is kept or made again; bytes are read as the plan says."""
    n, k, m = shape
    rng = np.random.default_rng(m)
    sizes = {"x": (n, k), "c": (k, m), "d": (k, m), "y": (n, 2), "v": (n,)}
    args = {name: (rng.integers(-2, 3, size) if kind == "ties" else rng.standard_normal(size) / 4).astype(dtype)
            for name, size in sizes.items()}
    args["x"][n // 3, 1] = np.nan if kind == "nan" else 1
    for text, n_walks in AGAIN:
        if m > 1000 and ("q.T @ q" in text or "exp(x @ c).T" in text):
            continue  # sums of 8 MiB and more
        given = {name: args[name] for name in args if name in re.findall("[a-z]+", text)}
        expected, result = evaluated(text, given)
        bits = set()
        for i, daemon in enumerate(pools):
            with daemon.connect() as w:
                held = Held(w, **given, out=np.zeros(expected.shape, result))
                job = {"args": {name: held.at(name) for name in given}, "outputs": [{"expr": text, "to": held.at("out")}]}
                plan = w.call("job.plan", **job)
                assert w.call("job.run", **job)["read_bytes"] == plan["read_bytes"], text
                if i == 0:
                    assert plan["program"].count("read once") == n_walks, text
                    assert plan["read_bytes"] <= n_walks * sum(a.nbytes for a in given.values()), text
                tolerance = 1e-9 if dtype == "f8" else 2e-4
                np.testing.assert_allclose(held["out"].astype("f8"), expected.astype("f8"), rtol=tolerance, err_msg=text,
                                           atol=tolerance * np.abs(expected[np.isfinite(expected)]).max(initial=0))
                bits.add(held["out"].tobytes())
                held.leave()
        assert len(bits) == 1, text


@pytest.mark.parametrize("n", [1, 5, 12, 20, 31, 40, 64, 70])
def test_two_walks_with_many_reductions(w, n):
    """What is too much for a program is computed with fewer walks, or refused."""
    functions = ("max", "min", "var", "argmax", "std", "count_nonzero", "mean")
    args = {"x": np.sin(np.arange(122000.0)).reshape(61000, 2), "c": np.cos(np.arange(36.0)).reshape(2, 18)}
    terms = [f"{functions[i % 7]}(p + {i}, axis={i % 3 % 2})" for i in range(n)]
    text = "p = x @ c; q = p - max(p); " + " + ".join(f"sum({term})" for term in terms) + " + sum(q)"
    names = {name: getattr(np, name) for name in (*functions, "sum")}
    p = args["x"] @ args["c"]
    with np.errstate(all="ignore"):
        expected = np.asarray(eval(" + ".join(f"sum({term})" for term in terms) + " + sum(p - max(p))", names, {"p": p}))
    try:
        got = computed(w, [text], args, [expected])[0]
    except wire.Error as error:
        assert error.code == "limit-exceeded" and n > 12, str(error)
        return
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_a_sum_that_is_needed_before_the_walk_is_none_of_its_steps(w):
    """All other steps are. The rows of x are too long for a walk, those of x @ d are not."""
    x = np.sin(np.arange(20 * 16385.0)).reshape(20, 16385)
    args = {"x": x, "c": np.cos(x[:4].T), "d": np.cos(x[4:8].T * 2)}
    texts = ["sum(x * x) + sum(x @ d)", "(x @ d) @ ((x @ c).T @ (x @ c))"]
    expected = exact(texts, args)
    for got, e in zip(computed(w, texts, args, expected), expected, strict=True):
        near(got, e, x.size, "f8")


def test_float32_is_added_in_float32_only_within_some_rows(w):
    """Ones after a large number would be lost for good, were all rows added in float32."""
    x = np.ones((5000, 3), "f4")
    x[0] = 2 ** 13  # whose square is 2**26
    c = np.eye(3, 2, dtype="f4")
    reply = run(w, ["tensordot(x, x, (0, 0))", "tensordot(x, x @ c, (0, 0))"], {"x": x, "c": c})
    square = x.astype("f8").T @ x.astype("f8")
    for out, e in zip(reply["outputs"], (square, square @ c), strict=True):
        got = wire.result_array(out).astype("f8")
        assert np.abs(got - e).max() <= 300, got  # 5000 in float32 throughout
    plan = w.call("job.plan", args={name: wire.argument(value) for name, value in {"x": x, "c": c}.items()},
                  outputs=[{"expr": "tensordot(x, x @ c, (0, 0))"}, {"expr": "tensordot(float64(x), x, (0, 0))"}])
    lines = [line for line in plan["program"].splitlines() if "gather" in line]
    assert sorted("in float32" in line for line in lines) == [False, True], plan["program"]


@pytest.mark.values
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_the_bits_are_the_same_for_every_pool_and_source(tmp_path, dtype):
    """A file is mapped where rows are long: also of the square, whose columns are not parted."""
    texts, got = ["x.T @ maximum((x @ c) @ g, 0)", "(x @ c) @ g", "tensordot(x, x, (0, 0))"], {}
    reduced = ["var(x @ c @ g)", "std((x @ c) @ g, axis=0)", "prod(x @ c / 8)", "argmax(x @ c)"]
    shapes = [(5000, 50, 6, 6), (2100, 450, 4, 4), (900, 1100, 5, 5), (300, 9001, 3, 3), (40, 70000, 3, 3)]
    for pool, threads in [("16M", 1), ("128M", 5)]:
        daemon = Daemon(pool=pool, threads=threads)
        with daemon.connect() as w:
            for shape in shapes:
                args = used(texts, matrices(dtype, *shape))
                held = Held(w, **args, p=np.zeros((shape[1], shape[3]), dtype),
                            a=np.zeros((shape[0], shape[3]), dtype),
                            s=np.zeros((shape[1], shape[1] if shape[1] < 500 else 0), dtype))
                outputs = [{"expr": text, "to": held.at(name)} for text, name in zip(texts, "pas")]
                outputs = outputs if shape[1] < 500 else outputs[:2]
                (tmp_path / "x").write_bytes(args["x"].tobytes())
                with open(tmp_path / "x", "rb") as f:
                    for x, fds in [(held.at("x"), []),
                                   (wire.described(args["x"], wire.file_at(0)), [f.fileno()])]:
                        w.call("job.run", fds=fds, outputs=outputs, args={
                            name: x if name == "x" else held.at(name) for name in args})
                        bits = b"".join(held[name].tobytes() for name in "pas")
                        reply = w.call("job.run", fds=fds, outputs=[{"expr": text} for text in reduced],
                                       args={name: x if name == "x" else held.at(name) for name in args})
                        bits += b"".join(out["data"] for out in reply["outputs"])
                        assert got.setdefault(shape, bits) == bits
                held.leave()
        daemon.stop()


@pytest.mark.values
def test_the_bits_are_the_same_at_every_level():
    texts, got = ["x @ c", "tensordot(x, x @ c, (0, 0))", "tensordot(x, x, (0, 0))"], set()
    for level in ("plain", "baseline", "avx2", "avx512"):
        daemon, bits = Daemon(args=["--level", level]), b""
        with daemon.connect() as w:
            for dtype, shape in [("f8", (150, 37, 7)), ("f4", (300, 37, 13)), ("f4", (9, 1501, 5))]:
                args = {"x": matrices(dtype, *shape, 1)["x"], "c": matrices(dtype, *shape, 1)["c"]}
                texts_of = texts if shape[1] < 100 else texts[:2]
                bits += b"".join(out["data"] for out in run(w, texts_of, args)["outputs"])
        daemon.stop()
        got.add(bits)
    assert len(got) == 1
