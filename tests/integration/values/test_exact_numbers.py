"""Numbers on gpuarrayctl's command line and in what it prints, to the last digit: 64-bit integers
that no double has, ranges that are too wide or too narrow for one, and what is said of wrong words.
"""

import json
import re

import h5py
import numpy as np
import pytest

BEYOND_DOUBLE = 2**53 + 1


def refused(daemon, folder, *words, code=1):
    done = daemon.ctl(*words, "--json", cwd=folder, check=False)
    assert done.returncode == code, done
    return json.loads(done.stdout)["error"]


def shown(daemon, folder, a, name="s.npy"):
    np.save(folder / name, a)
    return json.loads(daemon.ctl("show", name, "--json", cwd=folder).stdout)


# Scalars of the command line


@pytest.mark.parametrize("dtype, value", [
    ("i8", BEYOND_DOUBLE), ("i8", -BEYOND_DOUBLE), ("i8", 2**63 - 1), ("i8", -2**63),
    ("u8", BEYOND_DOUBLE), ("u8", 2**63 + 1), ("u8", 2**64 - 1)])
@pytest.mark.values
def test_integers_of_64_bits_are_exact(daemon, folder, dtype, value):
    a = np.arange(1, 5, dtype=dtype).reshape(2, 2)
    one = np.eye(2, dtype=dtype)
    np.save(folder / "a.npy", a)
    np.save(folder / "one.npy", one)
    daemon.ctl("pad", "a.npy", "--width=1:0,0:2", f"--value={value}:7", "-o", "p.npy", cwd=folder)
    want = np.full((3, 4), 7, dtype)  # np.pad() itself goes by way of float64
    want[0, :2] = value
    want[1:, :2] = a
    got = np.load(folder / "p.npy")
    assert got.dtype == dtype and np.array_equal(got, want)
    wrapped = np.array([value % 2**64], "u8").astype(dtype)[0]
    daemon.ctl("matmul", "one.npy", "one.npy", f"--alpha={value}", "-o", "c.npy", cwd=folder)
    got = np.load(folder / "c.npy")
    assert got.dtype == dtype and np.array_equal(got, one * wrapped)
    np.save(folder / "c.npy", one)
    daemon.ctl("matmul", "one.npy", "one.npy", "--alpha=0", f"--beta={value}", "--no-journal", "-o",
               "c.npy", cwd=folder)
    assert np.array_equal(np.load(folder / "c.npy"), one * wrapped)
    daemon.ctl("run", "where(a == 1, k, a)", "a=a.npy", f"k={value}", "-o", "r.npy", cwd=folder)
    assert np.load(folder / "r.npy").ravel().tolist() == [value, 2, 3, 4]


@pytest.mark.parametrize("dtype, value, bounds", [
    ("u1", "300", "0 to 255"), ("u1", "-1", "0 to 255"), ("i1", "-129", "-128 to 127"),
    ("i2", "32768", "-32768 to 32767"), ("u4", "4294967296", "0 to 4294967295"),
    ("i8", "9223372036854775808", "-9223372036854775808 to 9223372036854775807"),
    ("u8", "-1", "0 to 18446744073709551615"), ("u8", "1e20", "0 to 18446744073709551615"),
    ("i4", "1.5", "-2147483648 to 2147483647"), ("i4", "nan", "-2147483648 to 2147483647")])
def test_a_border_that_the_dtype_has_not_is_refused(daemon, folder, dtype, value, bounds):
    np.save(folder / "a.npy", np.zeros(3, dtype))
    error = refused(daemon, folder, "pad", "a.npy", "--width", "1", f"--value={value}", "-o", "p.npy")
    assert error["code"] == "bad-argument" and error["argument"] == "value"
    assert bounds in error["expected"] and float(error["found"]) == pytest.approx(float(value), nan_ok=True)
    assert np.dtype(dtype).name in error["message"] and not (folder / "p.npy").exists()


@pytest.mark.parametrize("dtype, value", [
    ("i4", "2e3"), ("i4", "-0x10"), ("f4", "0.1"), ("f4", "16777217"), ("f8", "-inf"), ("f8", "1e308"),
    ("f4", str(2**24 + 2**25 + 1)), ("?", "1"), ("?", "True")])
@pytest.mark.values
def test_a_border_is_what_numpy_makes_of_the_number(daemon, folder, dtype, value):
    a = np.zeros(3, dtype)
    np.save(folder / "a.npy", a)
    daemon.ctl("pad", "a.npy", "--width", "1", f"--value={value}", "-o", "p.npy", cwd=folder)
    number = float(value) if "0x" not in value and value != "True" else eval(value)
    assert np.array_equal(np.load(folder / "p.npy"), np.pad(a, 1, constant_values=np.array(number).astype(dtype)))


def test_factors_out_of_bounds_are_refused(daemon, folder):
    for dtype in ("i4", "u8"):
        np.save(folder / f"{dtype}.npy", np.eye(2, dtype=dtype))
    for option in ("alpha", "beta"):
        more = ["--no-journal"] if option == "beta" else []
        for dtype, value, bounds in (("i4", 2**31, "-2147483648 to 2147483647"),
                                     ("u8", -1, "0 to 18446744073709551615")):
            error = refused(daemon, folder, "matmul", f"{dtype}.npy", f"{dtype}.npy",
                            f"--{option}={value}", "--in-place", "-o", f"{dtype}.npy", *more)
            assert (error["code"], error["argument"]) == ("bad-argument", option)
            assert (error["expected"], error["found"]) == (bounds, str(value))
    # A fraction is for a float, as in NumPy; and the last of an option holds.
    daemon.ctl("matmul", "i4.npy", "i4.npy", "--alpha", "5", "--alpha", "0.5", "-o", "f.npy", cwd=folder)
    got = np.load(folder / "f.npy")
    assert got.dtype == "f8" and np.array_equal(got, np.eye(2) / 2)


@pytest.mark.parametrize("number", ["18446744073709551616", "-9223372036854775809", "1" + "0" * 40])
def test_integers_beyond_64_bits_are_no_silent_floats(daemon, folder, number):
    np.save(folder / "a.npy", np.eye(2))
    for words in (["pad", "a.npy", "--width=1", f"--value={number}"],
                  ["matmul", "a.npy", "a.npy", f"--alpha={number}"],
                  ["run", "a * k", "a=a.npy", f"k={number}"]):
        error = refused(daemon, folder, *words, "-o", "r.npy", code=2)
        assert "64 bits" in error["message"] and "1e30" in error["message"]
    daemon.ctl("run", "a * k", "a=a.npy", f"k={number}.", "-o", "r.npy", cwd=folder)
    assert np.array_equal(np.load(folder / "r.npy"), np.eye(2) * float(number))


# show


@pytest.mark.parametrize("values, dtype", [
    ([BEYOND_DOUBLE, 2**63 - 1, -2**63, 3], "i8"), ([BEYOND_DOUBLE, 2**64 - 1, 3], "u8"),
    ([-128, 127, 5], "i1"), (list(range(40)), "u2"), (list(range(14)), "i4"), (list(range(15)), "i4"),
    ([7, 8, 8], "u8"), ([2**64 - 2, 2**64 - 1], "u8"), ([True, False, True], "?")])
@pytest.mark.values
def test_integers_are_shown_whole(daemon, folder, values, dtype):
    a = np.array(values, dtype)
    found = shown(daemon, folder, a)
    assert (found["min"], found["max"]) == (min(values), max(values))
    assert found["mean"] == pytest.approx(sum(values) / len(values), rel=1e-15)
    check_bins(found, [int(v) for v in values])
    assert all(type(edge) is int for edge in found["edges"])
    text = daemon.ctl("show", "s.npy", cwd=folder).stdout
    assert f"min {int(min(values))} " in text and f"max {int(max(values))} " in text


def check_bins(found, values):
    edges, counts = found["edges"], found["histogram"]
    assert len(edges) == len(counts) + 1 <= 15
    assert (edges[0], edges[-1]) == (min(values), max(values)) and edges == sorted(edges)
    want = [sum(low <= v < high for v in values) for low, high in zip(edges, edges[1:])]
    want[-1] = sum(edges[-2] <= v <= edges[-1] for v in values)
    assert counts == want and sum(counts) == len(values)


@pytest.mark.parametrize("values", [
    [-1.7e308, 1.7e308, 0.0, 1e308, -3.0], [-1.7976931348623157e308, 1.7976931348623157e308],
    [1.0, 1 + 2**-52], [1 - 2**-53, 1.0, 1 + 2**-52], [0.0, 5e-324, 1.5e-323], [-5e-324, 5e-324],
    [0.0, 2.2250738585072014e-308], [1.0, 1 + 20 * 2**-52, 1 + 10 * 2**-52], [1e-310, 3.5, -2.5]])
def test_bins_of_any_range_of_floats(daemon, folder, values):
    found = shown(daemon, folder, np.array(values))
    assert (found["min"], found["max"]) == (min(values), max(values))
    check_bins(found, values)
    assert len(set(found["edges"][:-1])) == len(found["histogram"])
    # As text each line begins with a number of its own.
    lines = [line.split(" |")[0].strip() for line in daemon.ctl("show", "s.npy", cwd=folder).stdout.splitlines()
             if " |" in line]
    assert len(set(lines)) == len(lines) == len(found["histogram"])


def test_narrow_ranges_have_a_bin_for_each_number(daemon, folder):
    found = shown(daemon, folder, np.array([1, 1 + 2**-52, 1]))
    assert (found["histogram"], found["edges"]) == ([2, 1], [1, 1 + 2**-52, 1 + 2**-52])
    found = shown(daemon, folder, np.array([3, 5, 6, 6], "u1"))
    assert (found["histogram"], found["edges"]) == ([1, 0, 1, 2], [3, 4, 5, 6, 6])
    assert shown(daemon, folder, np.array([3, 3]))["histogram"] == []


def test_the_mean_of_numbers_whose_sum_is_too_large(daemon, folder):
    assert shown(daemon, folder, np.full(5, 1.7e308))["mean"] == pytest.approx(1.7e308)
    found = shown(daemon, folder, np.array([1.7e308, 1.7e308, -1.7e308, -1.7e308, np.nan, 1e300]))
    assert found["mean"] == pytest.approx(2e299) and found["nan"] == 1
    assert shown(daemon, folder, np.array([1.7e308, np.inf]))["mean"] == "inf"


@pytest.mark.parametrize("dtype, fill, others", [
    ("i8", -2**63 + 2, [-2**63 + 1, -2**63 + 3, 5]), ("u8", 2**64 - 2, [2**64 - 1, 2**64 - 3, 5]),
    ("i2", -999, [-998, 3]), ("f4", np.float32(-99.9), [1.5, 2.5])])
def test_fill_values_are_left_out_exactly(daemon, folder, dtype, fill, others):
    with h5py.File(folder / "f.h5", "w") as f:
        f["x"] = np.array([fill, *others, fill], dtype)
        f["x"].attrs["_FillValue"] = np.array(fill, dtype)
    found = json.loads(daemon.ctl("show", "f.h5:/x", "--json", cwd=folder).stdout)
    assert found["n_fill"] == 2 and found["fill"] == fill
    assert (found["min"], found["max"]) == (min(others), max(others))
    check_bins(found, others)
    info = json.loads(daemon.ctl("info", "f.h5:/x", "--json", cwd=folder).stdout)
    assert info["fill"] == fill
    text = str(fill) if dtype != "f4" else "-99.9"
    assert f"fill value {text}: 2 elements" in daemon.ctl("show", "f.h5:/x", cwd=folder).stdout
    assert f"fill    {text}\n" in daemon.ctl("info", "f.h5:/x", cwd=folder).stdout


def test_a_fill_value_that_no_element_can_have(daemon, folder):
    with h5py.File(folder / "f.h5", "w") as f:
        for name, fill in (("fraction", np.float32(-99.5)), ("large", np.int32(-70000))):
            f[name] = np.array([3, 5, 6], "i2")
            f[name].attrs["_FillValue"] = fill
    for name in ("fraction", "large"):
        found = json.loads(daemon.ctl("show", f"f.h5:/{name}", "--json", cwd=folder).stdout)
        assert (found["n_fill"], found["min"], found["max"]) == (0, 3, 6)


# What is said of wrong words


@pytest.mark.parametrize("words, code, expected, found, text", [
    (["normal", "1", "2", "3"], "bad-arity", "at most 2: loc, scale", "3", "normal takes at most 2"),
    (["integers", "1", "2", "3"], "bad-arity", "at most 2: low, high", "3", "integers takes"),
    (["bernoulli", "p=0.5", "3"], "bad-arity", "at most 1: p", "2", "bernoulli takes at most 1"),
    (["permutation", "3", "4"], "bad-arity", "at most 1: n", "2", "permutation takes"),
    (["nomral"], "unknown-name", "normal, lognormal", "'nomral'", "did you mean 'normal'?"),
    (["sqrt", "4"], "unknown-name", "uniform, normal", "'sqrt'", "no distribution"),
    (["normal", "--dtype", "c8"], "bad-argument", "float32 or float64", "'c8'", "no dtype")])
def test_random_says_what_it_takes(daemon, folder, words, code, expected, found, text):
    error = refused(daemon, folder, "random", *words, code=2)
    assert error["code"] == code and expected in error["expected"]
    assert error["found"] == found and text in error["message"]


def test_random_takes_no_options_among_the_parameters(daemon, folder):
    for word, option in (("size=3", "--shape"), ("dtype=f4", "--dtype"), ("seed=1", "--seed")):
        assert option in refused(daemon, folder, "random", "normal", word, code=2)["message"]


def test_negative_numbers_stand_behind_two_hyphens(daemon, folder):
    error = refused(daemon, folder, "random", "integers", "-9", "5", code=2)
    assert "'-9'" in error["message"] and "-- -9" in error["hint"]
    value = int(daemon.ctl("random", "--seed=3", "integers", "--", "-9", "-4", cwd=folder).stdout)
    assert -9 <= value < -4


@pytest.mark.parametrize("destination", ["/proc/o.npy", "/proc/o.h5:/x"])
def test_a_directory_that_takes_no_files_is_there(daemon, folder, destination):
    np.save(folder / "a.npy", np.zeros(3))
    error = refused(daemon, folder, "convert", "a.npy", destination)
    assert error["code"] == "bad-descriptor" and "no file can be made in '/proc'" in error["message"]
    assert error["expected"] and error["found"] == "/proc"


def test_an_output_without_a_name_is_the_output(daemon, folder):
    np.save(folder / "v.npy", np.arange(4.0))
    error = refused(daemon, folder, "run", "--in-place", "a + 1", "a=v.npy[::-1]", "-o", "v.npy")
    assert error["code"] == "overlapping-output" and error["message"].startswith("the output (bytes ")
    error = refused(daemon, folder, "run", "--in-place", "n = a + 1", "a=v.npy[::-1]", "-o", "v.npy")
    assert error["message"].startswith("output 'n' (bytes ")


@pytest.mark.parametrize("expression, expected, found", [
    ("sqrt(b)", "an argument: a, k", "'b'"), ("astype(a, c8)", "float32 or float64", "'c8'"),
    ("sum(a, dtype=object)", "int8 to int64", "'object'"), ("zeros(3)", "function", "'zeros'")])
def test_unknown_names_say_what_there_is(daemon, folder, expression, expected, found):
    np.save(folder / "a.npy", np.zeros(3))
    error = refused(daemon, folder, "run", expression, "a=a.npy", "k=2")
    assert error["code"] == "unknown-name" and expected in error["expected"] and error["found"] == found


def test_unknown_destinations_and_dtypes_say_what_there_is(daemon, folder):
    np.save(folder / "a.npy", np.zeros(3))
    error = refused(daemon, folder, "run", "m = a; n = a", "a=a.npy", "-o", "r=r.npy", code=2)
    assert (error["code"], error["expected"], error["found"]) == ("unknown-name", "m, n", "'r'")
    error = refused(daemon, folder, "convert", "a.npy", "b.npy", "--dtype", "float16", code=2)
    assert "bool, int8" in error["expected"] and error["found"] == "'float16'"


@pytest.fixture
def damaged(folder):
    """A dataset whose chunks are not what gzip wrote, and one that is whole."""
    with h5py.File(folder / "g.h5", "w") as f:
        for name in ("bad", "good"):
            f.create_dataset(f"in/{name}", data=np.arange(160000.0).reshape(400, 400) % 7,
                             chunks=(50, 50), compression="gzip")
        chunk = f["in/bad"].id.get_chunk_info(10)
    with open(folder / "g.h5", "r+b") as f:
        f.seek(chunk.byte_offset + 10)
        f.write(bytes(chunk.size - 10))
    return folder


@pytest.mark.whole
@pytest.mark.parametrize("words, argument", [
    (["run", "a * 2", "a=g.h5:/in/bad"], "a"), (["run", "sum(a + b)", "a=g.h5:/in/good", "b=g.h5:/in/bad"], "b"),
    (["matmul", "g.h5:/in/good", "g.h5:/in/bad"], "b"), (["convert", "g.h5:/in/bad"], "x"),
    (["concatenate", "g.h5:/in/good", "g.h5:/in/bad"], None), (["diff", "g.h5:/in/bad"], None),
    (["show", "g.h5:/in/bad"], "x")])
def test_a_damaged_source_is_named(daemon, damaged, words, argument):
    output = [] if words[0] == "show" or "sum" in words[1] else ["r.npy"] if words[0] == "convert" else ["-o", "r.npy"]
    error = refused(daemon, damaged, *words, *output)
    assert error["code"] == "provider-failed" and error["message"].startswith("g.h5:/in/bad: ")
    assert argument is None or error["argument"] == argument
    text = daemon.ctl(*words, *output, cwd=damaged, check=False).stderr
    assert re.search(r": g\.h5:/in/bad: .* \(\w+\) \[provider-failed\]\n", text), text
