"""gd.NAME(...) is the daemon's catalogue: the same names, arguments, options and texts; every
function gives lazies of everything, and NumPy's results on every dtype."""

import inspect

import numpy as np
import pytest

from catalogue import (DTYPES, ELSEWHERE, NUMPY_2, Refused, difference, how, in_domain,
                       numpy_result, specials)

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's promotion")
# Refused, or another name; and what a job has beside its text.
HERE_ALONE = {"mean", "correction", "return_sign", "minlength", "alpha", "beta", "journal",
              "tf32"}


def names(op):
    return [name for name in (op["name"], op["alias"]) if name]


def parameters(function):
    return list(inspect.signature(function).parameters.values())


def is_random(op):
    return "seed" in (op["keywords"] or "")


def is_reduction(op):
    return ELSEWHERE.get(op["name"], ("",))[0] == "test_reduction_functions"


# A text gives names their next values: there is nothing to call in Python.
TEXT_ALONE = ("iterate",)


def called(gd):
    return [op for op in gd.ops() if op["name"] not in TEXT_ALONE]


def place_of(gd, op):
    return gd.random if is_random(op) else gd


def test_every_name_of_the_catalogue_is_there_and_no_other(gd):
    from gpuarrayd._functions import functions as _functions
    wanted = {name for op in called(gd) if not is_random(op) for name in names(op)}
    assert set(_functions.__all__) == wanted
    assert len(_functions.__all__) == len(wanted)
    assert set(_functions.__all__) <= set(gd.__all__)
    assert {name for op in gd.ops() if is_random(op) for name in names(op)} == \
        set(gd.random.__all__) - {"default_rng", "Generator", "call_seed"}
    for op in called(gd):
        first, *aliases = [getattr(place_of(gd, op), name) for name in names(op)]
        assert all(alias is first for alias in aliases)


def test_arguments_options_and_texts_are_the_catalogues(gd):
    for op in called(gd):
        if is_random(op):
            continue
        function = getattr(gd, op["name"])
        assert inspect.getdoc(function).split("\n")[0] == op["doc"], op["name"]
        required = [p for p in parameters(function) if p.default is inspect.Parameter.empty]
        known = (op["keywords"] or "").replace("*, ", "").replace(" length", " length=None")
        given = known.split("=")[0].split(", ")[:-1]  # that stand first: a window's size
        more = op["name"] in ("astype", "near") or len(given)  # the dtype, the offsets
        assert len(required) == op["args"] + more, op["name"]
        optional = [f"{p.name}={p.default!r}".replace("'", "").replace("<no value>", "None")
                    for p in parameters(function)
                    if p not in required and not (op["name"] in ELSEWHERE and p.name in HERE_ALONE)]
        known = known.removeprefix("".join(f"{name}, " for name in given))
        if "quantile" in op["name"] or "percentile" in op["name"]:
            assert optional.pop() == "weights=None"  # which is refused
        if op["name"] == "matmul":
            assert optional.pop() == "out=None"
        assert ", ".join(optional) == known, op["name"]
        assert all(p.annotation is not inspect.Parameter.empty for p in parameters(function))


def test_random_functions_have_the_catalogues_parameters(gd):
    """Those that must be given may be named here; the seed is by name alone."""
    for op in gd.ops():
        if is_random(op):
            own = parameters(getattr(gd.random, op["name"]))
            known = [word.split("=")[0] for word in op["keywords"].split(", ") if word != "*"]
            assert {p.name for p in own} - set(known) == {p.name for p in own[:op["args"]]}
            assert {*known} <= {p.name for p in own}
            [seed] = [p for p in own if p.name == "seed"]
            assert seed.kind is inspect.Parameter.KEYWORD_ONLY
            assert seed.default is inspect.Parameter.empty


def test_two_results_are_a_tuple(gd):
    for op in gd.ops():
        if op["results"] == 2:
            got = getattr(gd, op["name"])(*[np.float64(7)] * op["args"])
            assert isinstance(got, tuple) and len(got) == 2
            assert all(isinstance(one, gd.Lazy) for one in got)


def test_of_numbers_they_are_numpys_functions_not_pythons_operators(gd):
    assert gd.compute(gd.add(1, 2), gd.power(2, 3), gd.negative(2), gd.divide(1, 2)) == \
        (3, 8, -2, 0.5)
    got = gd.add(1, 2).compute()
    assert (got.dtype, (gd.add(1, 2) + np.int8(1)).dtype) == (np.int64, np.int64)
    with pytest.raises(gd.Error):  # np.power of integers too
        gd.power(2, -1).compute()


def plain(op):
    return op["name"] not in ELSEWHERE


def arguments_of(op, dtype):
    values = [specials(dtype, 90)]
    if op["args"] == 2:
        values.append(np.roll(values[0], 7) if op["name"] != "ldexp"
                      else np.resize(np.array([0, 1, -3, 40], "i2"), 90))
    return in_domain(op["name"], values)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_function_has_numpys_results(gd, dtype):
    """All of them on values where mistakes live, many in one job."""
    wanted = []
    for op in gd.ops():
        if not plain(op):
            continue
        arguments = arguments_of(op, dtype)
        try:
            results = [numpy_result(op["name"], arguments, i) for i in range(op["results"])]
        except Refused:
            with pytest.raises(gd.Error):
                [one.dtype for one in np.atleast_1d(getattr(gd, op["name"])(*arguments))]
            continue
        got = getattr(gd, op["name"])(*arguments)
        got = got if isinstance(got, tuple) else (got,)
        wanted += [(op["name"], arguments, *pair) for pair in zip(got, results)]
    assert len(wanted) > 40
    for i in range(0, len(wanted), 16):
        part = wanted[i:i + 16]
        computed = gd.compute(*[lazy for _, _, lazy, _ in part])
        for (name, arguments, lazy, want), value in zip(part, computed):
            assert (lazy.dtype, lazy.shape) == (value.dtype, value.shape), name
            assert difference(name, value, want, arguments) is None, \
                f"{name} {dtype}: {difference(name, value, want, arguments)}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_have_numpys_results(gd, dtype):
    x = specials(dtype, 200)
    if x.dtype.kind == "f":
        x = x[np.isfinite(x) & (np.abs(x) < 1e6)]
    reductions = [op["name"] for op in gd.ops() if is_reduction(op) and hasattr(np, op["name"])
                  and not (dtype == "?" and op["name"] == "ptp")]
    assert len(reductions) > 15
    got = [value for i in range(0, len(reductions), 16) for value in
           gd.compute(*[getattr(gd, name)(x) for name in reductions[i:i + 16]])]
    for name, value in zip(reductions, got, strict=True):
        with np.errstate(all="ignore"):
            want = getattr(np, name)(x)
            if x.dtype == np.float32:
                want = getattr(np, name)(x.astype("f8")).astype(np.asarray(want).dtype)
        assert value.dtype == np.asarray(want).dtype, name
        np.testing.assert_allclose(value, want, rtol=1e-5 if dtype == "f4" else 1e-12)


def test_the_others(gd):
    x, y = np.array([3., -1, np.nan, 9]), np.arange(4)
    assert np.array_equal(gd.where(x > 0, x, y).compute(), np.where(x > 0, x, y))
    want = np.select([x > 5, x < 0], [x, y], 7)
    assert np.array_equal(gd.select([x > 5, x < 0], [x, y], 7).compute(), want)
    assert np.array_equal(gd.select([x > 5, x < 0], [x, y], default=7).compute(), want)
    assert np.array_equal((gd.index(0) * 2 + y).compute(), np.arange(4) * 3)
    assert np.array_equal((gd.index(-1) + y * 0).compute(), np.arange(4))
    got = gd.astype(x[:2], "i2").compute()
    assert (got.dtype, got.tolist()) == (np.int16, [3, -1])


def test_options(gd):
    x = np.array([3.14159, -1.5, np.nan, np.inf])
    same = np.testing.assert_array_equal
    same(gd.round(x, 2).compute(), np.round(x, 2))
    same(gd.round(x, decimals=1).compute(), np.round(x, 1))
    same(gd.clip(x, -1, 2).compute(), np.clip(x, -1, 2))
    same(gd.clip(x, min=-1).compute(), np.clip(x, -1, None))
    same(gd.clip(x, None, 2).compute(), np.clip(x, None, 2))
    same(gd.clip(x).compute(), x)
    same(gd.isclose(x, x + 1e-6, rtol=0, atol=1e-3, equal_nan=True).compute(),
         np.isclose(x, x + 1e-6, rtol=0, atol=1e-3, equal_nan=True))
    same(gd.nan_to_num(x, nan=5, posinf=7).compute(), np.nan_to_num(x, nan=5, posinf=7))
    same(gd.nan_to_num(x, copy=True).compute(), np.nan_to_num(x))


def test_wrong_calls(gd):
    with pytest.raises(TypeError):
        gd.sqrt()
    with pytest.raises(TypeError):
        gd.sqrt(1, 2)
    with pytest.raises(gd.errors.BadArity, match="2 conditions and 1 choices"):
        gd.select([True, False], [1])
    with pytest.raises(gd.errors.BadArity):
        gd.select([], [])
    with pytest.raises(gd.errors.BadDtype, match="astype"):
        gd.sqrt(np.array([None]))
    with pytest.raises(gd.errors.BadArgument, match="gd.open"):
        gd.sqrt("x.npy")
    with pytest.raises(gd.errors.BadArgument):
        gd.sqrt(None)
    with pytest.raises(gd.errors.Unsupported, match="float16"):
        gd.astype(1.5, "f2")


def test_scipys_references_are_named_as_here(gd):
    """So that the table of references, which the tests of the daemon share, fits these names."""
    assert how("lgamma").scipy == "gammaln" and gd.gammaln is gd.lgamma
