"""How every function of the catalogue is compared with NumPy.

A function that is not named here is compared with NumPy's function of its name, bit for bit; so one
that is added to the catalogue is checked from then on, or fails because NumPy does not know it.
Named are those that are not exact, SciPy's, and those that are no plain functions and have tests of
their own. Inexact ones must lie within 4 ulp of a reference in a wider type (float64 for float32;
80-bit long double for float64, where the platform has it), and within 8 ulp of NumPy's own result,
which is within 4 ulp itself.
"""

import ctypes
import ctypes.util
import math
import re
import warnings

import numpy as np

import wire

try:
    import scipy.special
except ImportError:  # then the references are the C library's, in long double, alone
    scipy = None

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
NUMPY_2 = int(np.__version__.split(".")[0]) >= 2
ULP = 4.5  # 4, and half for the rounding of the reference
OUTPUTS = 16  # of one request
COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}


class Refused(Exception):
    """NumPy does not offer the function for these dtypes."""


# -- references ---------------------------------------------------------------------------------

def libm(name):
    """A function of the C library in long double, rounded to double on return."""
    function = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name)
    function.restype, function.argtypes = ctypes.c_longdouble, [ctypes.c_longdouble]
    return lambda x: np.array([function(float(v)) for v in x.flat]).reshape(x.shape)


def wide_sinc(x, narrow):
    y = np.pi * narrow  # rounded in its own dtype, as NumPy does
    y = np.where(y == 0, np.finfo(y.dtype).eps, y).astype(x.dtype)
    return np.sin(y) / y


def wide_logit(p):
    with np.errstate(all="ignore"):
        return np.where(p < 0.25, np.log(p / (1 - p)), np.log1p((2 * p - 1) / (1 - p)))


def wide_lgamma(x):
    return np.where(np.isneginf(x), x, libm("lgammal")(x))  # SciPy's value at -inf, not C's


def wide_power(x, y):
    """The C library's, but for infinities: its long double is wrong at huge exponents of those."""
    return np.where(np.isinf(x), np.power(x.astype("f8"), y.astype("f8")), np.power(x, y))


def wide_gamma(x):
    """C's, but NaN at every negative integer as in SciPy."""
    return libm("tgammal")(x)


def larger(result, a, b):
    """Around zero the terms of such a sum cancel, in NumPy as well."""
    return np.maximum(np.abs(a), np.abs(b))


class How:
    """numpy: SciPy's name where NumPy has no such function.
    wide: the function in a wider type; True: NumPy's own is one. None: it is exact.
    scale: what the ulp are those of, where a result near zero comes from larger terms.
    worse: why NumPy's own result is not within 4 ulp, and only the wide one counts.
    free_zero: why the sign of a zero is not defined by NumPy."""

    def __init__(self, scipy=None, wide=None, scale=None, worse=None, free_zero=None):
        self.scipy, self.wide, self.scale, self.worse = scipy, wide, scale, worse
        self.free_zero = free_zero


NEAR = How(wide=True)
ZEROS = "NumPy's own sign depends on the element's position in the array"
HUGE = "NumPy's vector code is 8 ulp off where huge arguments fall next to a multiple of pi / 2"
TABLE = {
    **{name: NEAR for name in (
        "cbrt hypot exp exp2 expm1 log log2 log10 log1p arcsin arccos arctan arctan2 "
        "sinh cosh tanh arcsinh arccosh arctanh").split()},
    **{name: How(wide=wide_power) for name in ("power", "float_power")},
    "logaddexp": How(wide=True, scale=larger),
    "logaddexp2": How(wide=True, scale=larger),
    "sin": How(wide=True, worse=HUGE),
    "cos": How(wide=True, worse=HUGE),
    "tan": How(wide=True, worse=HUGE),
    "sinc": How(wide=wide_sinc),
    "erf": How("erf", libm("erfl")),
    "erfc": How("erfc", libm("erfcl"), worse="SciPy's float32 and its far tail lose digits"),
    "gamma": How("gamma", wide_gamma, worse="SciPy flushes denormal results and loses digits"),
    "lgamma": How("gammaln", wide_lgamma, scale=lambda r, a: np.where(a < 0, 1, np.abs(r)),
                  worse="SciPy loses digits near the zeros"),
    "expit": How("expit", lambda x: 1 / (1 + np.exp(-x)),
                 worse="SciPy's float32 flushes denormal results"),
    "logit": How("logit", wide_logit, worse="SciPy cancels around 1/2"),
    "fmin": How(free_zero=ZEROS),
    "fmax": How(free_zero=ZEROS),
}

# No functions of arrays alone: compared by these tests.
ELSEWHERE = {
    "where": ("test_special_forms", "test_where_on_every_pair_of_dtypes"),
    "select": ("test_special_forms", "test_select"),
    "iterate": ("test_iterate", "test_steps_of_every_length_and_dtype"),
    "index": ("test_special_forms", "test_index"),
    "astype": ("test_catalogue", "test_every_cast"),
    **{name: ("test_reduction_functions", "test_every_reduction") for name in (
        "sum prod mean var std min max ptp argmin argmax any all count_nonzero norm nansum nanprod "
        "nanmean nanvar nanstd nanmin nanmax logsumexp").split()},
    **{name: ("test_random_functions", "test_every_function_says_its_numbers") for name in (
        "uniform normal lognormal exponential integers bernoulli poisson choice "
        "permutation").split()},
    "bincount": ("test_counts", "test_bincount_of_every_integer"),
    "histogram": ("test_counts", "test_histogram_of_equal_bins"),
    "histogram_bin_edges": ("test_counts", "test_histogram_of_equal_bins"),
    "searchsorted": ("test_counts", "test_searchsorted_and_digitize"),
    "digitize": ("test_counts", "test_searchsorted_and_digitize"),
    "take": ("test_counts", "test_take"),
    "cumsum": ("test_counts", "test_scans"),
    "cumprod": ("test_counts", "test_scans"),
    "matmul": ("test_products", "test_shapes"),
    "tensordot": ("test_slabs", "test_tensors"),
    "near": ("test_near", "test_of_every_shape_and_mode"),
    **{f"window_{name}": ("test_windows", "test_of_every_function_shape_dtype_and_mode")
       for name in ("sum", "mean", "min", "max", "std", "median", "rank")},
    "correlate": ("test_windows", "test_kernels"),
    "convolve": ("test_windows", "test_kernels"),
    "qr_r": ("test_triangles", "test_r_of_every_shape"),
    **{name: ("test_quantiles", "test_every_function") for name in (
        "quantile percentile median nanquantile nanpercentile nanmedian").split()},
}
# Optional parameters: compared by these tests, beside what the generator does without them.
KEYWORDS = {
    "round": "test_round_to_decimals", "clip": "test_clip", "isclose": "test_isclose",
    "nan_to_num": "test_nan_to_num", "select": "test_select",
}


def how(name):
    return TABLE.get(name) or How()


def functions(daemon, n_args=None):
    """The catalogue's functions of arrays, as the daemon gives it."""
    with daemon.connect() as w:
        ops = w.call("server.ops")
    return [op for op in ops if op["name"] not in ELSEWHERE and n_args in (None, op["args"])]


def calls(op, operands="ab"):
    """How it is written: [(text, which result)]."""
    text = f"{op['name']}({', '.join(operands[:op['args']])})"
    n = op["results"]
    return [(text, 0)] if n == 1 else [(f"{text}[{i}]", i) for i in range(n)]


# -- arguments ----------------------------------------------------------------------------------

FLOATS = """0 -0 1 -1 2.5 -2.5 0.5 -0.5 nan inf -inf 3 -3 1.5 7 -7 2 1e-5 100.25 1e10 -1e10 0.75 8.5
    88.5 -103.5 34.9 0.49999999 1.9999999 3.5 -1.5 64 -2 0.1 1e-30 6.02e23 709.5 -708.6 1023.5 -1e5
    3.14159265358979 1.5707963267948966 -0.7853981633974483 6.283185307179586 22 355 -80143857
    1e22 -1e22 2147483648 -2147483648 9.223372036854775807e18 1.8446744073709552e19 16777217
    1.0000001 0.9999999 1.0000000000000002 0.9999999999999999 0.6931471805599453 2.718281828459045
    88.72283 88.72284 -87.33654 -103.97208 709.782712893384 709.7827128933841 -708.3964185322641
    -745.1332191019411 -745.1332191019412 127.99999 128 -126 -149 -149.5 -150.5 1024 -1022 -1074
    -1074.5 -1076 4.5 5.5 -4.5 1e-8 -1e-8 1e-160 1e-20 -1e-20 3e-5 0.25 0.3535533905932738
    0.7071067811865476 26.5 27.2 -5.8 9.2 10.05 14 33 34 35 36 -171.5 -184.5 170.6 171.6243769563027
    171.7 -0.99999 -1.00001 -2.00001 -9.5 -34.5 -39.5 -41.5 -2.4570247382208006 -3.955294284858598
    1.4616321449683623 -20.000000001 1e15 4503599627370497.5 9007199254740993 1e17 1e300 1e305
    2.5e305 -1e308 5.319372648326541e255 1e-310 -1e-310 1e-315 1e-40 -1e-40 1e-45 1.1754942e-38"""
INTEGERS = [0, 1, 2, 3, 5, 7, 8, 10, 12, 15, 16, 25, 31, 32, 33, 36, 60, 63, 64, 65, 100]


def specials(dtype, n):
    """n values: where mistakes live first, then random ones of every size."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(dtype.num)
    if dtype.kind == "b":
        return np.resize(np.array([False, True, True, False, True]), n)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        head = [info.min, info.max, info.max // 2, info.max - 1, info.min + 1, info.max // 2 + 1]
        head += INTEGERS[:6] + ([-1, -2, -3, -7] if dtype.kind == "i" else []) + INTEGERS[6:]
        tail = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
        tail >>= rng.integers(0, info.bits, n).astype(dtype)
        head = np.array(head, dtype)
    else:
        info = np.finfo(dtype)
        edges = [info.max, -info.max, info.smallest_normal, -info.smallest_normal,
                 info.smallest_subnormal, -info.smallest_subnormal]
        head = [float(x) for x in FLOATS.split()]
        with np.errstate(all="ignore"):
            head = np.array(head[:14] + edges + head[14:]).astype(dtype)
            sizes = rng.uniform(np.log2(info.smallest_subnormal), info.maxexp, n)
            tail = rng.choice([-1.0, 1.0], n) * np.exp2(sizes)
            tail[0::4] = rng.normal(0, 100, tail[0::4].size)
            tail[1::4] = rng.uniform(-1, 1, tail[1::4].size)
            tail[2::4] = np.round(rng.normal(0, 300, tail[2::4].size)) / 2
            tail = tail.astype(dtype)
    if n < 80:  # most of the room for the first, some for the others
        head = np.concatenate([head[:n - 16], rng.choice(head[n - 16:] if n - 16 < len(head)
                                                         else head, 6)])
    return np.concatenate([head, tail])[:n]


def in_domain(name, arguments):
    """The arguments, where there are some that fail a job instead of having a result."""
    if name == "power" and all(a.dtype.kind in "iub" for a in arguments):
        base, exponent = arguments
        if exponent.dtype.kind == "i":
            exponent = np.abs(exponent // 2)
            exponent[exponent < 0] = 3
        return [base, exponent]
    return list(arguments)


# -- NumPy's answer -----------------------------------------------------------------------------

def materialized(arguments):
    """Broadcast and contiguous, since some loops of NumPy compute otherwise along a stride of 0."""
    arrays = iter(np.broadcast_arrays(*[a for a in arguments if isinstance(a, np.ndarray)]))
    return [np.array(next(arrays)) if isinstance(a, np.ndarray) else a for a in arguments]


def bit_count(a):
    if a.dtype.kind == "f":
        raise TypeError("bitwise_count of floats")
    return np.array([abs(int(v)).bit_count() for v in a.flat], "u1").reshape(a.shape)


def of_old_numpy(name):
    """NumPy 1's function, with what NumPy 2 made of it."""
    old = getattr(np, name, None)
    if name in ("floor", "ceil", "trunc"):
        return lambda a: a if a.dtype.kind in "iub" else old(a)
    if name == "bitwise_count":
        return old or bit_count
    if name == "clip":
        return lambda a, *limits, **named: old(a, *limits, **named) if limits or named \
            else np.positive(a)
    if name == "sinc":
        return lambda a: wide_result(name, [a], float_of(a)).astype(float_of(a))
    if name in COMPARISONS:  # of int64 with uint64: exact
        return lambda a, b: old(a.astype(object), b.astype(object)).astype("?") \
            if {a.dtype.kind, b.dtype.kind} == {"i", "u"} else old(a, b)
    return old


def float_of(a):
    """SciPy's dtype of a floating function."""
    return np.dtype("f4" if a.dtype == np.float32 else "f8")


def own_function(name):
    """NumPy's or SciPy's; for SciPy's without SciPy, one in long double with its dtypes."""
    spec = how(name)
    if spec.scipy and scipy:
        own = getattr(scipy.special, spec.scipy)
        return own if NUMPY_2 else lambda a: own(np.asarray(a, float_of(a)))
    if spec.scipy:
        return lambda a: wide_result(name, [a], float_of(a)).astype(float_of(a))
    return getattr(np, name, None) if NUMPY_2 else of_old_numpy(name)


def numpy_result(name, arguments, result=0, **keywords):
    """NumPy's answer, with float32 where it would be float16. Refused where there is none."""
    function = own_function(name)
    assert function is not None, name
    arguments = materialized(arguments)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = function(*arguments, **keywords)
        except TypeError as error:
            raise Refused(str(error)) from error
        parts = got if isinstance(got, tuple) else (got,)
        if np.asarray(parts[0]).dtype == np.float16:
            small = [a if i > 0 and name in ("ldexp", "round") else np.asarray(a, "f4")
                     for i, a in enumerate(arguments)]
            return numpy_result(name, small, result, **keywords)
    got = np.asarray(parts[result])
    if name == "reciprocal" and got.dtype.kind in "iu":  # of 0: ours is in SEMANTICS.md
        got = np.where(arguments[0] == 0, got.dtype.type(0), got)
    return got


def named(name):
    """A function for the evaluation of a whole text by Python."""
    def call(*arguments, **keywords):
        n = 2 if name in ("divmod", "frexp", "modf") else 1
        parts = [numpy_result(name, arguments, i, **keywords)[()] for i in range(n)]
        return parts[0] if n == 1 else tuple(parts)
    return call


def cast(name):
    def call(x):
        if isinstance(x, (bool, int, float)):
            return np.dtype(name).type(x)
        return np.asarray(x).astype(name)[()]
    return call


def numpy_names(ops):
    """What expressions can name, for Python's eval(); all but index()."""
    names = {"pi": np.pi, "e": np.e, "inf": np.inf, "nan": np.nan, "True": True, "False": False}
    for op in ops:
        own = named(op["name"]) if op["name"] not in ELSEWHERE else getattr(np, op["name"], None)
        names.update({n: own for n in (op["name"], op["alias"]) if n and own})
    names.update({np.dtype(d).name: cast(np.dtype(d).name) for d in DTYPES})
    return names


def numpy_eval(text, names, arguments):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(eval(text, {"__builtins__": {}}, {**names, **arguments}))


def wider(dtype):
    return np.longdouble if dtype == np.float64 else np.float64


def wide_result(name, arguments, dtype):
    """The same in a wider type; None for functions that are exact."""
    spec, target = how(name), wider(dtype)
    if spec.wide is None:
        return None
    narrow = [np.asarray(a).astype(dtype) for a in arguments]
    wide = [a.astype(target) for a in narrow]
    with np.errstate(all="ignore"):
        if spec.wide is True:
            return np.asarray(getattr(np, name)(*wide))
        if spec.wide is wide_sinc:
            return wide_sinc(wide[0], narrow[0])
        return spec.wide(*wide)


# -- comparing ----------------------------------------------------------------------------------

def same_bits(got, want, free_zero=False):
    """Equal, NaN with NaN, zeros with their signs."""
    same = (got == want) | ((got != got) & (want != want))
    if want.dtype.kind == "f" and not free_zero:
        same &= (got != 0) | (np.signbit(got) == np.signbit(want))
    return same


def step_of(value, dtype):
    """One ulp of dtype at the (wider) value; capped at the largest numbers."""
    info = np.finfo(dtype)
    exponent = np.frexp(np.where(np.isfinite(value), np.abs(value), 1))[1]
    exponent = np.clip(exponent, info.minexp + 1, info.maxexp)
    return np.ldexp(np.ones_like(value), exponent - 1 - info.nmant)


def sum_bound(terms, is_by_pairs=True):
    """How far from exact a sum of these may be, in float64: as many roundings of at most all of it as
    a term goes through. By pairs these are 16 in a lane, 4 of lanes, then one for each doubling, and
    some at the ends of grains (kernels/cpu/levels/reduce_sums.c); else one for each term."""
    n = len(terms)
    roundings = 24 + np.log2(max(n / 256, 1)) if is_by_pairs else n
    return roundings * np.finfo("f8").eps / 2 * math.fsum(np.abs(terms).tolist())


def near(got, want, ulp, scale=None):
    """got, of a narrower dtype or the same, within ulp of want; overflow begins within them too."""
    dtype = got.dtype
    top = np.ldexp(want.dtype.type(1), np.finfo(dtype).maxexp) if want.dtype != dtype \
        else np.finfo(dtype).max
    with np.errstate(all="ignore"):
        g = np.clip(got.astype(want.dtype), -top, top)
        w = np.clip(want, -top, top)
        size = np.abs(w) if scale is None else np.maximum(np.abs(w), np.abs(scale))
        ok = (g == w) | (np.abs(g - w) <= ulp * step_of(size, dtype))
    ok |= np.isnan(got) & np.isnan(want)
    ok &= np.isnan(got) == np.isnan(want)
    begins = (np.abs(got) == np.finfo(dtype).max) & (want.dtype == dtype)
    ok &= ~np.isinf(want) | (got == want) | begins
    if scale is None:
        ok &= ((got != 0) & (want != 0)) | (np.signbit(got) == np.signbit(want))
    return ok


def first_bad(ok, got, want, arguments, against):
    where = tuple(np.argwhere(~np.atleast_1d(ok))[0])
    values = [np.atleast_1d(np.broadcast_to(a, ok.shape))[where] for a in arguments]
    return (f"of {', '.join(repr(v) for v in values)} at {where}: "
            f"{np.atleast_1d(got)[where]!r}, {against} {np.atleast_1d(want)[where]!r}"
            f" ({np.count_nonzero(~np.atleast_1d(ok))} of {ok.size} differ)")


def difference(name, got, want, arguments=()):
    """What is wrong with a result of a function, or None."""
    spec = how(name)
    if isinstance(got, wire.Error):
        return str(got)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"is {got.dtype}{got.shape}, NumPy {want.dtype}{want.shape}"
    wide = wide_result(name, arguments, want.dtype) if want.dtype.kind == "f" else None
    if wide is not None:
        scale = spec.scale and spec.scale(wide, *[np.asarray(a).astype(want.dtype)
                                                  for a in arguments])
        ok = near(got, wide, ULP, scale)
        if not ok.all():
            return first_bad(ok, got, wide, arguments, "exact")
    if wide is not None and spec.worse:
        return None
    if spec.wide is None or want.dtype.kind != "f":
        ok = same_bits(got, want, spec.free_zero)
    else:
        scale = spec.scale and spec.scale(want, *[np.asarray(a).astype(want.dtype)
                                                  for a in arguments])
        ok = near(got, want, 8, scale)
    return None if ok.all() else first_bad(ok, got, want, arguments, "NumPy")


def assert_same(got, want, what=""):
    """Bit for bit, and dtype and shape."""
    want = np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), \
        f"{what}: {got.dtype}{got.shape}, NumPy {want.dtype}{want.shape}"
    ok = same_bits(got, want)
    assert ok.all(), f"{what}: {first_bad(ok, got, want, (), 'NumPy')}"


def same(got, want):
    """The same dtype, shape and values; NaN is NaN."""
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f")


# -- asking -------------------------------------------------------------------------------------

def used(texts, arguments):
    names = {n for text in texts for n in re.findall(r"[A-Za-z_]\w*", text)}
    return {k: v for k, v in arguments.items() if k in names}


def ask_once(w, texts, arguments, to=None):
    outputs = [{"expr": text} for text in texts]
    for i, at in enumerate(to or ()):
        outputs[i]["to"] = at
    return w.call("job.run", outputs=outputs, args={
        k: wire.argument(v) for k, v in used(texts, arguments).items()})["outputs"]


def ask(w, texts, arguments):
    """The results of many expressions of the same arguments, many in a request: each an array, or
    the wire.Error that it alone is answered with."""
    results = []
    for i in range(0, len(texts), OUTPUTS):
        some = texts[i:i + OUTPUTS]
        try:
            results += [wire.result_array(o) for o in ask_once(w, some, arguments)]
        except wire.Error as error:
            if len(some) == 1:
                results.append(error)
                continue
            for text in some:
                results += ask(w, [text], arguments)
    return results


def assert_none(failures, checked=1):
    """All of them in one message, the first ones in full."""
    assert checked > 0
    assert not failures, f"{len(failures)} of {checked} fail:\n" + "\n".join(failures[:40])
