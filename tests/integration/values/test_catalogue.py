"""Every function of the catalogue against NumPy (SciPy): dtypes and pairs of dtypes x special
values. The catalogue is asked of the daemon and walked, so nothing in it goes untested; how a
function is compared is in catalogue.py."""

import importlib
import inspect
import math
import re

import numpy as np
import pytest

import wire
from catalogue import (DTYPES, ELSEWHERE, KEYWORDS, NUMPY_2, TABLE, Refused, ask, assert_none,
                       assert_same, calls, difference, functions, how, in_domain, numpy_result,
                       own_function, scipy, specials)

OPERATORS = {"negative": "-", "positive": "+", "invert": "~"}  # in front of their argument


def catalogue(daemon):
    with daemon.connect() as w:
        return w.call("server.ops")


def test_the_generator_knows_every_function(daemon):
    ops = {op["name"]: op for op in catalogue(daemon)}
    assert len(ops) > 100
    unknown = []
    for name, op in ops.items():
        if name in ELSEWHERE:
            module, test = ELSEWHERE[name]
            assert hasattr(importlib.import_module(module), test), name
        elif how(name).scipy is None and own_function(name) is None:
            unknown.append(name)
        elif op["args"] not in (1, 2):
            unknown.append(name)
        if op["keywords"] is not None and (name in KEYWORDS or name not in ELSEWHERE):
            test = KEYWORDS.get(name)
            assert test and hasattr(importlib.import_module("test_special_forms"), test), name
    assert not unknown, "say in catalogue.py how they are compared"
    assert not {*TABLE, *ELSEWHERE, *KEYWORDS} - set(ops), "compared, but not there"


def their_parameters(name):
    """NumPy's, SciPy's, or of the methods of NumPy's generators; None: they have no such one."""
    for module in (np, np.linalg, scipy and scipy.special):
        if name != "bernoulli" and hasattr(module, name):  # SciPy's are the numbers of that name
            return inspect.signature(getattr(module, name)).parameters
    doc = getattr(getattr(np.random.Generator, name, None), "__doc__", None)
    if doc is None:
        return None
    text = re.match(rf"\s*{name}\((.*?)\)", doc, re.S)[1]  # theirs is not Python's own
    pairs = re.findall(r"(\w+)(?:=([^,]+))?", text)
    return {k: inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY, default=eval(v) if v else None)
            for k, v in pairs}


@pytest.mark.skipif(not NUMPY_2, reason="the keywords are those of NumPy 2")
def test_keywords_have_the_names_and_defaults_of_numpy(daemon):
    for op in catalogue(daemon):
        is_window = "origin" in (op["keywords"] or "")  # as scipy.ndimage's
        theirs = their_parameters(op["name"]) if op["keywords"] and not is_window else None
        if theirs is None:
            assert op["keywords"] is None or is_window or op["name"] in (
                "bernoulli", "logsumexp", "near", "qr_r"), op["name"]
            continue
        own = re.findall(r"(\w+)(?:=([^,]+))?", op["keywords"])
        if "seed" in dict(own):  # their generator's, and its numbers are float64
            own = [(k, v) for k, v in own if k != "seed" and (k != "dtype" or k in theirs)]
        if op["name"] == "bincount":  # NumPy finds its length
            own.remove(("length", ""))
        order = [k for k in theirs if k in dict(own)]
        assert "*" in op["keywords"] or [k for k, _ in own] == order, op["name"]
        for name, default in own:
            assert name in theirs, f"{op['name']}: {name}"
            if name == "dtype":
                default = getattr(np, default, None)
            elif name not in ("method", "side", "mode"):  # words
                default = eval(default)
            if theirs[name].default is not np._NoValue and op["name"] != "clip":
                assert theirs[name].default == default, f"{op['name']}: {name}"


@pytest.mark.skipif(not NUMPY_2, reason="the names are those of NumPy 2")
def test_arguments_have_the_names_of_numpy(daemon):
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    n_named = 0
    for op in catalogue(daemon):
        own = op["arguments"].split(", ") if op["arguments"] else []
        n_named += bool(own)
        if op["name"] in ("index", "bernoulli", "logsumexp"):
            assert len(own) == op["args"], op["name"]
            continue
        if "origin" in (op["keywords"] or ""):  # of a window: NumPy's own correlate is another
            continue
        module = np if hasattr(np, op["name"]) else np.linalg
        theirs = None if isinstance(getattr(module, op["name"], None), np.ufunc) \
            else their_parameters(op["name"])
        if theirs is None or not op["args"] or op["name"] == "astype":
            assert not own, op["name"]
            continue
        named = [k for k, p in list(theirs.items())[:op["args"]] if p.kind not in positional]
        assert own == named, op["name"]
    assert n_named > 40


def compare(w, requests, ask=ask):
    """requests: (name, text, result, arguments by name). Sends those that NumPy does not refuse
    together, and each that it does alone, by ask(w, texts, arguments). Returns what is wrong."""
    failures, texts, wanted, shared = [], [], [], {}
    for name, text, result, arguments in requests:
        operands = list(arguments.values())
        kinds = ", ".join(f"{a.dtype}{a.shape}" if isinstance(a, np.ndarray) else repr(a)
                          for a in operands)
        try:
            want = numpy_result(name, operands, result)
        except Refused:
            got = ask(w, [text], arguments)[0]
            if not isinstance(got, wire.Error) or got.code != "bad-dtype":
                failures.append(f"{text} of {kinds}: NumPy refuses the dtypes, we say {got}")
            continue
        texts.append(text)
        wanted.append((name, want, operands, f"{text} of {kinds}"))
        shared.update(arguments)
    for got, (name, want, operands, what) in zip(ask(w, texts, shared), wanted):
        wrong = difference(name, got, want, operands)
        if wrong:
            failures.append(f"{what} {wrong}")
    return failures


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.values
def test_every_unary_function(daemon, w, dtype):
    a = specials(dtype, 1009)
    requests = [(op["name"], text, result, {"a": a})
                for op in functions(daemon, 1) for text, result in calls(op)]
    assert_none(compare(w, requests), len(requests))


def pairs(daemon, left, right, n):
    """All binary functions of all n * n pairs of values."""
    a, b = specials(left, n)[:, None], specials(right, n)[None, :]
    for op in functions(daemon, 2):
        safe = in_domain(op["name"], [a, b])[1]
        second = "b" if safe is b else "e"
        for text, result in calls(op, "a" + second):
            yield op["name"], text, result, {"a": a, second: safe}


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.values
def test_every_binary_function_on_every_pair_of_dtypes(daemon, w, left):
    failures, n = [], 0
    for right in DTYPES:
        requests = list(pairs(daemon, left, right, 61))
        failures += compare(w, requests)
        n += len(requests)
    assert_none(failures, n)


# A number in the text, with NumPy's rules for Python's.
@pytest.mark.skipif(not NUMPY_2, reason="numbers are weak as in NumPy 2")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.values
def test_numbers_are_weak_in_every_binary_function(daemon, w, dtype):
    a = specials(dtype, 101)
    failures, n = [], 0
    for value in (0, 1, 3, 100, 2.5, -1.5, True):
        requests = []
        for op in functions(daemon, 2):
            for text, result in calls(op):
                first = re.sub(r"\ba\b", repr(value), text)
                last = re.sub(r"\bb\b", repr(value), text)
                requests.append((op["name"], last, result, {"a": a, "-": value}))
                if op["name"] != "power":
                    requests.append((op["name"], first, result, {"-": value, "b": a}))
                else:
                    e = in_domain("power", [np.asarray(value), a])[1]
                    requests.append((op["name"], first.replace("b", "e"), result,
                                     {"-": value, "e": e}))
        failures += compare(w, requests)
        n += len(requests)
    assert_none(failures, n)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [0, 1, 3, 100, 2.5, -1.5, True])
@pytest.mark.values
def test_scalar_arguments_are_as_numbers_in_the_text(w, dtype, value):
    a = specials(dtype, 101)
    texts = [f"a {symbol} k" for symbol in "+ - * / // % < <= == != > >=".split()] \
        + ["minimum(a, k)", "hypot(k, a)", "k - a", "copysign(a, k)", "a & k", "a << k"]
    as_argument = ask(w, texts, {"a": a, "k": value})
    as_text = ask(w, [re.sub(r"\bk\b", f"({value!r})", text) for text in texts], {"a": a})
    for text, x, y in zip(texts, as_argument, as_text):
        if isinstance(x, wire.Error):
            assert isinstance(y, wire.Error) and x.code == y.code, f"{text}: {x} {y}"
        else:
            assert_same(x, y, what=text)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.values
def test_every_alias_and_operator_is_its_function(daemon, w, dtype):
    a, b = specials(dtype, 101), specials(dtype, 101)[::-1].copy()
    texts = []
    for op in catalogue(daemon):
        if op["name"] in ("where", "select", "index", "astype"):
            continue
        second = "e" if op["name"] == "power" else "b"
        for text, _ in calls(op, "a" + second):
            if op["alias"]:
                texts.append((text, text.replace(op["name"] + "(", op["alias"] + "(")))
            if op["name"] in OPERATORS:
                texts.append((text, f"{OPERATORS[op['name']]}a"))
            elif op["symbol"]:
                texts.append((text, f"a {op['symbol']} {second}"))
    arguments = {"a": a, "b": b, "e": in_domain("power", [a, b])[1]}
    assert len(texts) > 35
    for name, other in texts:
        got, want = (ask(w, [text], arguments)[0] for text in (other, name))
        if isinstance(want, wire.Error):
            assert isinstance(got, wire.Error) and got.code == want.code, f"{other}: {got}"
        else:
            assert_same(got, want, what=f"{other} {dtype}")


def test_every_alias_is_numpys_name_for_the_function(daemon):
    for op in catalogue(daemon):
        if op["alias"] and NUMPY_2 and how(op["name"]).scipy is None:
            own, other = getattr(np, op["name"]), getattr(np, op["alias"])
            if own is not other:  # fix, around: wrappers
                x = np.array([-2.5, -1.5, -0.0, 0.0, 0.5, 1.5, np.inf])
                assert_same(np.asarray(other(x)), own(x), what=op["alias"])


# -- reductions and casts -----------------------------------------------------------------------

def exact_sum(a):
    """Infinities and NaN as they add up, all else without rounding until the end."""
    a = a.astype("f8")
    if np.isfinite(a).all():
        return math.fsum(a.flat)
    with np.errstate(invalid="ignore"):
        return float(a[~np.isfinite(a)].sum())


def check_reduction(w, name, a):
    what = f"{name} of {a.dtype}{a.shape}"
    got = ask(w, [f"{name}(a)"], {"a": a})[0]
    if a.size == 0 and name in ("min", "max"):
        assert isinstance(got, wire.Error) and got.code == "bad-shape", what
        return
    assert not isinstance(got, wire.Error), f"{what}: {got}"
    with np.errstate(all="ignore"):
        want = np.asarray(getattr(np, name)(a)) if a.size or name != "mean" \
            else np.asarray(np.nan, "f4" if a.dtype == np.float32 else "f8")
    if want.dtype.kind != "f" or name in ("min", "max"):
        assert_same(got, want, what)
        return
    assert (got.dtype, got.shape) == (want.dtype, ()), what
    exact = exact_sum(a) / (1 if name == "sum" else max(a.size, 1)) if a.size or name == "sum" \
        else math.nan
    if not math.isfinite(exact):
        assert_same(got, np.asarray(exact, got.dtype), what)
        return
    magnitude = math.fsum(abs(float(v)) for v in a.flat) / (1 if name == "sum" else a.size)
    slack = 16 * np.finfo("f8").eps * magnitude + np.spacing(np.abs(want.dtype.type(exact)))
    with np.errstate(over="ignore"):
        assert abs(float(got) - exact) <= slack or got == want.dtype.type(exact), \
            f"{what}: {got}, exact {exact}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_of_special_values(w, dtype):
    names = ["sum", "min", "max", "mean", "count_nonzero"]
    a = specials(dtype, 1009)
    arrays = [a, a.reshape(1, 1009), a[:12].reshape(3, 4), a[3], a[:0], a[:0].reshape(0, 3),
              a[:1], np.zeros(7, dtype)]
    if a.dtype.kind == "f":
        top = np.finfo(dtype).max
        tame = a[np.isfinite(a) & (np.abs(a) < top / 2048)]
        arrays += [tame, tame[np.abs(tame) < 1e6], np.array([1, np.inf], dtype),
                   np.array([np.inf, -np.inf], dtype), np.array([1, np.nan, -np.inf], dtype),
                   np.array([np.nan], dtype)]
    for name in names:
        for array in arrays:
            check_reduction(w, name, np.asarray(array))


def test_reductions_inside_expressions_and_beside_arrays(daemon, w):
    a = np.random.default_rng(3).normal(size=(50, 60))
    texts = ["a - mean(a)", "sqrt(sum(a*a))", "count_nonzero(a > 0)", "max(a) - min(a)"]
    d, s, n, r = ask(w, texts, {"a": a})
    assert np.allclose(d, a - a.mean(), rtol=0, atol=1e-14)
    assert np.allclose(s, np.sqrt((a * a).sum()), rtol=1e-14)
    assert n == np.count_nonzero(a > 0) and n.dtype == np.int64
    assert r == np.ptp(a)


@pytest.mark.parametrize("source", DTYPES)
def test_every_cast(w, source):
    for target in DTYPES:
        a = specials(source, 1009)
        name = np.dtype(target).name
        if a.dtype.kind == "f" and np.dtype(target).kind in "iu":  # the others have a rule of ours
            info = np.iinfo(target)
            a = a[np.isfinite(a) & (a > float(info.min) - 1) & (a < float(info.max))]
        with np.errstate(all="ignore"):
            assert_same(ask(w, [f"{name}(a)"], {"a": a})[0], a.astype(target),
                        what=f"{source} to {target}")


def test_own_functions_are_what_is_compared_with():
    """Where SciPy is missing, the C library stands in: never nothing."""
    for name, spec in TABLE.items():
        n = 1 + (name in "hypot arctan2 logaddexp logaddexp2 power float_power fmin fmax".split())
        with np.errstate(invalid="ignore"):
            got = own_function(name)(*[np.array([0.25, 1.5], "f4")] * n)
        assert got.dtype == ("f8" if name == "float_power" else "f4"), name
        assert np.isfinite(got).any(), name
