"""Steps on a device (cuda_daemons.py): the tests of test_repeats.py; random repeats of every mode, dtype
and shape, of one array and several, in small pools and large ones: with the CPU engine's bytes; and what
is refused."""

import itertools
import re

import numpy as np
import pytest

import test_repeats
import wire
from cuda_daemons import both, daemon, start  # noqa: F401: fixtures
from test_cuda_near import laid_out, run_to
from test_near import MODES, text
from test_repeats import (  # noqa: F401
    stencil,
    test_axes_of_length_1,
    test_of_every_dtype_and_order,
    test_of_every_shape_and_mode,
    test_several_arrays_and_what_else_a_step_reads,
    test_steps_that_each_element_takes_by_itself_in_steps_of_all,
    test_what_arithmetic_meets_is_counted_once,
    test_what_no_step_reads_is_read_at_the_beginning_alone,
)

# Under the sanitizers the kernels run in the runner of the device's kernels.
pytestmark = [*test_repeats.pytestmark, pytest.mark.slow]


def near(rng, name, shape, wraps):
    """Along each axis one way, or another, as all others of the repeat go on along it."""
    offsets, modes = [], []
    for n, wrap in zip(shape, wraps):
        mode = "wrap" if wrap else MODES[int(rng.integers(4))]
        most = {"wrap": n // 2, "reflect": n - 1}.get(mode, n - 1)
        most = min(most, int(rng.choice([0, 1, 1, 3])))
        offsets.append(int(rng.integers(-most, most + 1)))
        modes.append(mode if offsets[-1] else "edge")
    axis = int(rng.integers(len(shape)))
    alone = [o * (i == axis) for i, o in enumerate(offsets)]
    return text(name, alone, modes[axis], 3) if any(alone) else name


def repeat(rng, shape, dtype, n):
    """Of one array or two; a step reads near, places, what broadcasts and what stays."""
    wraps = rng.integers(0, 2, len(shape))
    names = ["u", "v"][:int(rng.integers(1, 3))]

    def one(name):
        parts = [near(rng, str(rng.choice(names)), shape, wraps) for _ in range(int(rng.integers(1, 4)))]
        parts += [near(rng, "f", shape, wraps)] if rng.integers(2) else []
        parts += [f"{dtype}(index({int(rng.integers(len(shape)))}) % 5)"] if rng.integers(3) == 0 else []
        parts += ["row"] if rng.integers(3) == 0 else []
        parts += ["max(f)"] if rng.integers(4) == 0 else []
        parts += ["1 // (u % 3)"] if rng.integers(3) == 0 and dtype != "float32" else []
        return f"{name} = {dtype}({' - '.join(parts)})"

    steps = ", ".join(one(name) for name in names)
    last = f"[{int(rng.integers(2))}]" if len(names) > 1 else ""
    return f"repeat({n}, {steps}){last}"


READERS = ("{}", "{} - f", "sum(int64({}), axis=0)", "cumsum({}, axis=0)", "near({}, *) + u", "max({})",
           "argmin({}, axis=-1)", "min({}, axis=-1)")


def test_random_repeats_have_the_cpus_bytes(both):  # noqa: F811: the fixture
    rng = np.random.default_rng(21)
    shapes = [(30_000,), (150, 170), (13, 20, 60), (7, 1, 20, 31), (2, 9000), (9000, 2), (1, 5), (70_000,)]
    with both.connect() as w:
        region, results_in = wire.Region(w, 4 << 20), wire.Region(w, 2 << 20)
        others = [wire.Region(w, 1 << 20) for _ in range(3)]
        for case in range(48):
            shape, dtype = shapes[case % 8], np.dtype(("f4", "i4", "u1", "i8", ">f4")[case % 5])
            native = dtype.newbyteorder("=")
            whole = region.array(native, (300_000,))
            whole[:] = rng.integers(0, 9, whole.size)
            if dtype.str[0] == ">":
                whole[:] = whole.byteswap()
            u = laid_out(whole, shape, rng).view(dtype)
            at = u.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
            args = {"u": wire.described(u, region.at(at), u.strides)}
            for name, other, size in zip(("v", "f", "row"), others, (shape, shape, shape[-1:])):
                array = other.array(native, size)
                array[:] = rng.integers(0, 9, size)
                args[name] = wire.described(array, other.at())
                del array
            expr = repeat(rng, shape, native.name, int(rng.choice([1, 2, 3, 8])))
            moved = ", ".join(["1", *["0"] * (len(shape) - 1)])
            reader = READERS[case // 2 % 8].replace("*", moved)
            if reader.startswith("near") and "wrap" in expr:  # in one way along an axis
                reader = "-{}"
            expr = reader.format(expr)
            used = {name: arg for name, arg in args.items() if re.search(rf"\b{name}\b", expr)}
            made = w.call("job.plan", outputs=[{"expr": expr}], args=used)["outputs"][0]
            got, want = (run_to(w, results_in, engine, expr, used, made) for engine in ("cuda", "cpu"))
            assert got.tobytes() == want.tobytes(), f"{expr} of {dtype} {shape}"
            del u, whole


def test_files_in_any_pool(folder, start, both):  # noqa: F811: fixtures
    """Of many grains, whose boxes go on beyond the ends; two repeats in a pass; chunks."""
    h5py = pytest.importorskip("h5py")
    u = np.random.default_rng(4).normal(size=(300, 500)).astype("f4")
    np.save(f"{folder}/rows.npy", u)
    np.save(f"{folder}/columns.npy", np.asfortranarray(u))
    with h5py.File(f"{folder}/u.h5", "w") as file:
        file.create_dataset("packed", data=u, chunks=(100, 500), compression="gzip",
                            compression_opts=1)
    texts = (f"repeat(8, {stencil(2, 'wrap')})",
             f"repeat(5, {stencil(2, 'reflect')}) - near(repeat(3, u = 2*u - near(u, 0, 2)), 4, 0)",
             "near(u*u + k, -1, 3, mode=symmetric)")
    daemons = [(both, "cpu"), (start(pool="6M", threads=1), "cuda"), (start(pool="64M"), "cuda")]
    for text_of, source in itertools.product(texts, ("rows.npy", "columns.npy", "u.h5:/packed")):
        found = []
        for d, engine in daemons:
            d.ctl("run", text_of, f"u={folder}/{source}", "k=0.1", "-o", f"{folder}/o.npy",
                  "--engine", engine)
            found.append(np.load(f"{folder}/o.npy").tobytes())
        assert found[0] == found[1] == found[2], (text_of, source)


def test_what_stays_the_cpus(both):  # noqa: F811: the fixture
    u = {"u": wire.argument(np.zeros((3, 4, 2, 5, 2)))}
    wrapped = ["0"] * 5
    steps = []
    for axis in range(5):
        offsets = [*wrapped[:axis], "1", *wrapped[axis + 1:]]
        steps.append(f"near(u, {', '.join(offsets)}, mode=wrap)")
    with both.connect() as w:
        for expr, why in (("repeat(5000, u = u + 1)", "so many steps"),
                          (f"repeat(2, u = {' + '.join(steps)})", "along so many axes")):
            reply = w.call("job.run", outputs=[{"expr": expr}], args=u)
            assert reply["engine"] == "cpu" and "cuda:0 cannot (no-engine)" in reply["engine_why"]
            with pytest.raises(wire.Error) as caught:
                w.call("job.run", outputs=[{"expr": expr}], args=u, engine="cuda")
            assert (caught.value.code, caught.value.argument) == ("no-engine", "engine")
            assert why in caught.value.message, caught.value
