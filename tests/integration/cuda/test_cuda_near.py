"""What is near, on a device (cuda_daemons.py): the tests of test_near.py; shared memory in any layout,
whatever reads what is near, and many offsets: with the CPU engine's bytes; and what it refuses."""

import itertools

import numpy as np
import pytest

import test_near
import wire
from cuda_daemons import both, daemon, start  # noqa: F401: fixtures
from test_near import (  # noqa: F401
    MODES,
    check_files,
    check_offsets,
    offsets_of,
    test_of_every_shape_and_mode,
    test_of_places_and_random_numbers,
    test_the_job_says_what_is_beyond_the_ends,
    test_what_near_refuses,
    text,
)

# Under the sanitizers the kernels run in the runner of the device's kernels.
pytestmark = [*test_near.pytestmark, pytest.mark.slow]


def laid_out(whole, shape, rng):
    """A view of so much of an array, in some order, with gaps and backwards."""
    steps = [int(rng.integers(1, 3)) for _ in shape]
    order = rng.permutation(len(shape))
    view = whole[:np.prod([n * k for n, k in zip(shape, steps)])]
    view = view.reshape([shape[i] * steps[i] for i in order]).transpose(np.argsort(order))
    return view[tuple(slice(None, None, k * int(rng.choice([-1, 1]))) for k in steps)]


def texts_of(near, again, n_axes):
    """What reads it: reductions of all axes and of some, counts, running sums, tables, loops."""
    yield f"{near} - {again}"
    yield f"max({near}) + argmin({again})"
    for axis in range(n_axes):
        yield f"sum({near}, axis={axis}) - count_nonzero({again}, axis={axis})"
    yield f"argmax({near}, axis=0)"
    yield f"cumsum({near}, axis={n_axes - 1})"
    yield f"histogram({near}, bins=9, range=(-40, 40))[0]"
    yield f"take(sum({near}, axis={tuple(range(1, n_axes))}), {again}, mode=clip)" if n_axes > 1 else near
    yield f"u - {near} + min({again})"
    yield f"v = {near}; iterate(5, u = u + v, until = u > 99)"


def run_to(w, region, engine, expr, args, made):
    region.map[:] = b"\xa5" * region.size
    to = {"dtype": made["dtype"], "shape": made["shape"], "at": region.at()}
    reply = w.call("job.run", outputs=[{"expr": expr, "to": to}], args=args, engine=engine)
    assert reply["engine"].startswith(engine), reply
    return region.array(made["dtype"], made["shape"]).copy()


def test_memory_in_any_layout_and_whatever_reads_it(both):
    """Of several tiles; each box is copied with what lies around it."""
    rng = np.random.default_rng(11)
    with both.connect() as w:
        region, results_in = wire.Region(w, 4 << 20), wire.Region(w, 2 << 20)
        for case, shape in enumerate([(200_000,), (300, 500), (40, 50, 60), (7, 30, 20, 21),
                                      (2, 90_000), (60_000, 2)]):
            whole = region.array("i2", (2 << 20,))
            u = laid_out(whole, shape, rng) if case % 2 else whole[:np.prod(shape)].reshape(shape)
            whole[:] = rng.integers(-50, 50, whole.size)
            u = u.view(("i2", ">i2")[case % 2])
            at = u.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
            args = {"u": wire.described(u, region.at(at), u.strides)}
            for mode in (MODES[case % 5], MODES[(case + 3) % 5]):
                near, again = (text("u", offsets_of(rng, shape, mode), mode, 7) for _ in range(2))
                for expr in texts_of(f"int64({near})", again, len(shape)):
                    made = w.call("job.plan", outputs=[{"expr": expr}], args=args)["outputs"][0]
                    results = [run_to(w, results_in, engine, expr, args, made)
                               for engine in ("cpu", "cuda")]
                    np.testing.assert_array_equal(*results, err_msg=f"{expr} of {shape}")
            del u, whole
        assert both.engine_info("cuda:0")["registered_bytes"] > 0


@pytest.mark.parametrize("pools", [(("6M", 1),), (("64M", 2),)])
def test_files_of_every_kind(folder, start, pools):  # noqa: F811: the fixture
    check_files(folder, start, pools, (1, 4, 7, 29))


def test_as_many_offsets_as_there_are_places_for(both, daemon):
    with daemon.connect() as w:
        check_offsets(w, 150)
    u = {"u": wire.argument(np.arange(900.0).reshape(30, 30))}
    steps = list(itertools.product(range(-9, 10), repeat=2))
    output = [{"expr": "+".join(f"near(u, {i}, {j})" for i, j in steps)}]
    with both.connect() as w:
        reply = w.call("job.run", outputs=output, args=u)
        assert reply["engine"] == "cpu" and "cuda:0 cannot (no-engine)" in reply["engine_why"]
        with pytest.raises(wire.Error) as caught:
            w.call("job.run", outputs=output, args=u, engine="cuda")
        assert (caught.value.code, caught.value.argument) == ("no-engine", "engine")
        assert "so many offsets" in caught.value.message
