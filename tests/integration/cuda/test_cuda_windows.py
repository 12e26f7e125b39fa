"""Moving windows on a device (cuda_daemons.py): the tests of test_windows.py; every dtype, mode and
layout, files in small pools, whatever reads a window: with the CPU engine's bytes; and what is
refused."""

import numpy as np
import pytest

import test_windows
import wire
from cuda_daemons import both, daemon, start  # noqa: F401: fixtures
from test_cuda_near import laid_out, run_to
from test_windows import (  # noqa: F401
    MODES,
    test_kernels,
    test_no_sum_drifts,
    test_of_every_function_shape_dtype_and_mode,
    test_what_arithmetic_meets_is_counted_once,
    test_whole_numbers_of_kernels_are_exact,
    test_windows_larger_than_the_axis,
)

# Under the sanitizers the kernels run in the runner of the device's kernels.
pytestmark = [test_windows.needs_numpy_2, pytest.mark.slow]

KINDS = ("sum(u, {size}", "mean(u, {size}", "min(u, {size}", "max(u, {size}", "std(u, {size}",
         "median(u, {size}", "rank(u, 1, {size}")
DTYPES = ("f4", "f8", ">f4", "i2", ">i8", "u1", "?", "u8")


def filled(whole, rng):
    """Zeros of both signs, infinities and NaNs among floats."""
    whole[:] = rng.integers(0, 2 if whole.dtype == "?" else 100, whole.size)
    if whole.dtype.kind == "f":
        whole *= rng.choice([0.37, -1.3, 0.0, -0.0], whole.size)
        whole[rng.integers(0, whole.size, whole.size // 500)] = np.inf
        whole[rng.integers(0, whole.size, whole.size // 500)] = np.nan


def window_text(rng, case, ndim):
    sizes = [int(n) for n in rng.choice([1, 2, 3, 5, 20] if ndim < 3 else [1, 2, 3], ndim)]
    sizes[int(rng.integers(ndim))] = 3
    kind, mode = KINDS[case % 7].format(size=sizes), MODES[case % 5]
    if case % 8 == 7:
        kernel = np.round(rng.normal(size=sizes), 3 * (case % 2)).tolist()
        return f"correlate(u, {kernel}, mode={mode})"
    origins = [int(rng.integers(-(n // 2), n - n // 2)) for n in sizes]
    return f"window_{kind}, mode={mode}, origin={origins}" + (", value=1)" if case % 5 == 1 else ")")


def operand_text(rng, dtype, shape, mode):
    """What is computed around each grain first: of places, of what broadcasts, near, cast, windows."""
    ndim = len(shape)
    moved = [int(rng.integers(-1, 2)) * (n > 1 and rng.integers(2) == 0) for n in shape]
    near = f"near(u, {', '.join(map(str, moved))}, mode={mode})"
    near = near if any(moved) else "u"
    sizes = [int(rng.integers(1, 6)) for _ in range(ndim)]
    inner = f"window_max({{}}, {sizes}, mode={MODES[int(rng.integers(5))]})"
    texts = ["u > 0", f"where({near} > 1, u, u)", inner.format("u"), inner.format("u > 3")]
    if ndim < 3:
        texts.append(inner.format(inner.format("u | u" if dtype.kind in "bui" else "u * u")))
    if dtype != "?":
        texts += [f"{near} - sum(row)", f"{near} * {near}", f"abs({near})", "u + row", f"{near} - max(row)",
                  f"u * astype(index({int(rng.integers(ndim))}) % 5, {dtype.newbyteorder('=').name})"]
    return str(rng.choice(texts))


def same(got, want, text):
    nans = [np.isnan(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool) for a in (got, want)]
    np.testing.assert_array_equal(*nans, err_msg=text)
    bits = [np.where(nan, 0, a).astype(a.dtype).tobytes() for nan, a in zip(nans, (got, want))]
    assert bits[0] == bits[1], text


def test_memory_in_any_layout_and_whatever_reads_it(both):  # noqa: F811: the fixture
    rng = np.random.default_rng(12)
    shapes = [(30_000,), (150, 170), (13, 20, 60), (7, 1, 20, 31), (2, 9000), (9000, 2)]
    readers = ("{}", "u - {}", "count_nonzero({}, axis=0)", "max({})", "argmin({}, axis=-1)",
               "cumsum({} > 20, axis=0)", "near(u, *) + {}", "min({0}, axis=0) + max({0}, axis=0)")
    with both.connect() as w:
        region, results_in = wire.Region(w, 4 << 20), wire.Region(w, 2 << 20)
        for case in range(80):
            shape, dtype = shapes[case % 6], np.dtype(DTYPES[case % 8])
            whole = region.array(dtype.newbyteorder("="), (150_000,))
            filled(whole, rng)
            if dtype.str[0] == ">":
                whole[:] = whole.byteswap()
            u = laid_out(whole, shape, rng).view(dtype)
            at = u.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
            args = {"u": wire.described(u, region.at(at), u.strides)}
            moved = ", ".join(["1", *["0"] * (len(shape) - 1)])
            near = readers[case // 2 % 8].replace("*", moved)
            window = window_text(rng, case, len(shape))
            if case >= 40:
                args["row"] = wire.argument(rng.integers(0, 9, shape[-1:]).astype("u1"))
                window = window.replace("(u,", f"({operand_text(rng, dtype, shape, MODES[case % 5])},", 1)
            expr = near.format(window)
            if "row" not in expr:
                args.pop("row", None)
            made = w.call("job.plan", outputs=[{"expr": expr}], args=args)["outputs"][0]
            same(*(run_to(w, results_in, engine, expr, args, made) for engine in ("cuda", "cpu")),
                 f"{expr} of {dtype} {shape}")
            del u, whole


def test_files_in_any_pool(folder, start, both):  # noqa: F811: fixtures
    """Of many grains, whose boxes go on beyond the ends; several windows in a pass."""
    h5py = pytest.importorskip("h5py")
    u = np.random.default_rng(4).normal(size=(300, 500)).astype("f4")
    np.save(f"{folder}/rows.npy", u)
    np.save(f"{folder}/columns.npy", np.asfortranarray(u))
    with h5py.File(f"{folder}/u.h5", "w") as file:
        file.create_dataset("packed", data=u, chunks=(100, 500), compression="gzip",
                            compression_opts=1)
    text = ("a = window_mean(window_max(sqrt(abs(u)) + u, [1, 7], mode=wrap), [3, 5], mode=wrap); "
            "b = window_std(u, 21, axis=0, mode=reflect) - window_max(u, 15, axis=1, mode=wrap); "
            "c = window_median(u * index(1), 3) + window_sum(u, 7, axis=0)")
    daemons = [(both, "cpu"), (start(pool="6M", threads=1), "cuda"), (start(pool="64M"), "cuda")]
    for source in ("rows.npy", "columns.npy", "u.h5:/packed"):
        found = []
        for number, (d, engine) in enumerate(daemons):
            words = [word for name in "abc" for word in ("-o", f"{name}={folder}/{name}{number}.npy")]
            d.ctl("run", text, f"u={folder}/{source}", *words, "--engine", engine)
            found.append([np.load(f"{folder}/{name}{number}.npy").tobytes() for name in "abc"])
        assert found[0] == found[1] == found[2], source


def test_what_stays_the_cpus(both):  # noqa: F811: the fixture
    u = {"u": wire.argument(np.arange(1200.0).reshape(30, 40))}
    with both.connect() as w:
        deep = "u * 2"
        for _ in range(4):
            deep = f"window_max({deep}, 3, mode=wrap)"
        for expr, why in ((deep, "along so many axes"),
                          ("window_max(window_median(u, 13), 3)", "so many elements"),
                          ("window_median(u, 13)", "so many elements"),
                          ("window_min(u, 65)", "so many elements")):
            reply = w.call("job.run", outputs=[{"expr": expr}], args=u)
            assert reply["engine"] == "cpu" and "cuda:0 cannot (no-engine)" in reply["engine_why"]
            with pytest.raises(wire.Error) as caught:
                w.call("job.run", outputs=[{"expr": expr}], args=u, engine="cuda")
            assert (caught.value.code, caught.value.argument) == ("no-engine", "engine")
            assert why in caught.value.message, caught.value
