"""Names given to parts of an expression, `t = x*x; sqrt(t + 1)`, against Python and NumPy executing
the same text; what no name can be given to; and that chains of them cost what their text costs."""

import itertools
import warnings

import numpy as np
import pytest

import wire
from catalogue import NUMPY_2, assert_same, numpy_names

needs_numpy_2 = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's promotion")


@pytest.fixture(scope="module")
def names(daemon):
    with daemon.connect() as connection:
        return numpy_names(connection.call("server.ops"))


def run(w, text, arguments):
    result = w.call("job.run", outputs=[{"expr": text}],
                    args={k: wire.argument(v) for k, v in arguments.items()})
    return wire.result_array(result["outputs"][0])


def python(text, names, arguments):
    """The result of the same text in Python: its statements, then its last expression."""
    *statements, last = text.replace("\n", " ").rstrip("; ").split(";")
    known = {**names, **arguments}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for statement in statements:
            exec(statement.strip(), {"__builtins__": {}}, known)
        return np.asarray(eval(last.strip(), {"__builtins__": {}}, known))


def refusal(w, text, **arguments):
    with pytest.raises(wire.Error) as info:
        run(w, text, arguments or {"x": np.arange(3.0)})
    return info.value


def arguments_of(dtype):
    x = (np.arange(12, dtype="f8").reshape(3, 4) * 1.5 - 3).astype(dtype)
    return {"x": x, "y": x[0].copy(), "n": np.arange(3, dtype="i2").reshape(3, 1)}


TEXTS = [
    "d = x - max(x); d*d",
    "d = x - y; s = sqrt(d*d + n); s / (1 + s)",
    "k = 3; x * k",
    "k = 3; h = k / 2; x * h + k",
    "k = 2**3 - 1; x * k - k",
    "k = int8(3); x * k",
    "lo = min(x); hi = max(x); (x - lo) * 2 > hi - lo",
    "q = divmod(x, 2)[0]; r = divmod(x, 2)[1]; q*2 + r",
    "m = x > y; where(m, x, y)",
    "a = x; b = a; b - a + n",
    "unused = exp(y); x + 1",
    "t = sin(x);\n u = cos(x);\n\tt*t + u*u;",
    "t = x*y; c = count_nonzero(t); t + c",
]


@needs_numpy_2
@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "f4", "f8"])
def test_a_text_gives_what_python_gives(w, names, dtype):
    arguments = arguments_of(dtype)
    for text in TEXTS:
        got, want = run(w, text, arguments), python(text, names, arguments)
        if got.dtype.kind == "f" and ("sin" in text or "sqrt" in text):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=4 * np.finfo(want.dtype).eps)
        else:
            assert_same(got, want, f"{text} of {dtype}")


def test_names_belong_to_one_output(w):
    x = np.arange(4.0)
    outputs = [{"expr": "t = x + 1; t*t"}, {"expr": "t = x - 1; t*t"}]
    results = w.call("job.run", outputs=outputs, args={"x": wire.argument(x)})["outputs"]
    assert_same(wire.result_array(results[0]), (x + 1)**2)
    assert_same(wire.result_array(results[1]), (x - 1)**2)
    with pytest.raises(wire.Error) as info:
        w.call("job.run", outputs=[{"expr": "t = x; t"}, {"expr": "t", "name": "second"}],
               args={"x": wire.argument(x)})
    assert (info.value.code, info.value.argument) == ("unknown-name", "second")


@pytest.mark.parametrize("text, code, words", [
    ("t = x; t = x; t", "bad-expression", "column 8: 't' is bound already"),
    ("x = 3; x", "bad-expression", "column 1: 'x' is an argument"),
    ("pi = 3; x", "bad-expression", "column 1: 'pi' is a constant"),
    ("sqrt = x; x", "bad-expression", "column 1: 'sqrt' is a function"),
    ("f8 = x; f8", "bad-expression", "column 1: 'f8' is a dtype"),
    ("np = x; x", "bad-expression", "column 1: 'np' is NumPy's own name"),
    ("if = x; x", "bad-expression", "column 1: 'if' is a word of Python"),
    ("t = x", "bad-expression", "column 6: the expression ends where ';' and the result"),
    ("x; x", "bad-expression", "column 1: only the last expression is the result"),
    ("q, r = divmod(x, 2); q", "bad-expression", "column 1: one name at a time"),
    ("speed = x; sped*2", "unknown-name", "did you mean 'speed'?"),
    ("t = x + unknown; x", "unknown-name", "column 9: unknown name 'unknown'"),
    ("t = ~x; x", "bad-dtype", "column 5"),
])
def test_a_refusal_says_which_and_where(w, text, code, words):
    error = refusal(w, text)
    assert error.code == code
    assert words in error.message


def numbered(first, part, count, last):
    return first + "".join(part.format(a=i, b=i + 1) for i in range(count)) + last.format(count)


def test_bindings_used_twice_each_cost_what_one_use_costs(w):
    x = np.full(7, 3, dtype="i8")
    got = run(w, numbered("t0=x+x;", "t{b}=t{a}+t{a};", 200, "t{}"), {"x": x})
    assert_same(got, np.zeros(7, dtype="i8"))  # 3 * 2**201, wrapped
    got = run(w, numbered("t0=x+x;", "t{b}=t{a}*5+t{a};", 20, "t{}"), {"x": x})
    assert_same(got, x * 2 * 6**20)


def test_a_chain_too_deep_for_parentheses_fits_bindings(w):
    x = np.arange(5.0)
    assert refusal(w, "(" * 1000 + "x" + "+x)" * 1000).code == "limit-exceeded"
    got = run(w, numbered("t0=x;", "t{b}=t{a}+x;", 1000, "t{}"), {"x": x})
    assert_same(got, x * 1001)
    error = refusal(w, numbered("t0=x;", "t{b}=t{a}+x;", 1025, "t{}"))
    assert (error.code, error.expected) == ("limit-exceeded", "at most 1024 instructions")


def test_the_plan_of_a_text_is_that_of_what_it_stands_for(w):
    arguments = {"x": wire.argument(np.arange(6.0).reshape(2, 3))}
    plans = [w.call("job.plan", outputs=[{"expr": text}], args=arguments)
             for text in ("d = x - mean(x); sqrt(mean(d*d))",
                          "sqrt(mean((x - mean(x))*(x - mean(x))))")]
    assert plans[0] == plans[1]
    assert plans[0]["outputs"][0]["shape"] == []


def test_any_order_of_names_is_read_alike(w):
    x, y = np.arange(4.0), np.arange(4.0)[::-1].copy()
    for a, b, c in itertools.permutations(["t", "_", "Long_name_2"]):
        got = run(w, f"{a} = x*y; {b} = {a} - x; {c} = {b} - y; {c} / ({a} + 1)", {"x": x, "y": y})
        assert_same(got, (x*y - x - y) / (x*y + 1))
