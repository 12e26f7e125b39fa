"""The worker below a real daemon: what is written over what is read, pools of any size."""

import itertools
import os
import random

import numpy as np
import pytest

import conftest
from wire import Region, described, file_at


def view_of(r, rng, dtype, shape):
    """An array somewhere in the region: C or Fortran order, with gaps, backwards."""
    steps = [rng.choice([1, 1, 2]) for _ in shape]
    room = [n * step for n, step in zip(shape, steps)]
    whole = r.array(dtype, room[::-1]).T if rng.random() < 0.3 else r.array(dtype, room)
    return whole[tuple(slice(None, None, -step if rng.random() < 0.3 else step)
                       for step in steps)]


def at_of(r, view):
    base = np.frombuffer(r.map, dtype="u1").__array_interface__["data"][0]
    offset = view.__array_interface__["data"][0] - base
    return described(view, r.at(offset), strides=view.strides)


@pytest.mark.parametrize("seed", range(40))
def test_an_input_may_be_written_over_whatever_else_the_pass_does(w, seed):
    """The output covers `a` exactly; `b` is broadcast against it, other outputs read both."""
    rng = random.Random(seed)
    numbers = np.random.default_rng(seed)
    dtype = rng.choice(["f4", "f8", "i4", ">f8", ">i4"])
    shape = rng.choice([(300, 700), (7, 50, 900), (210000,), (5, 1, 7), (100, 3000), (64,)])
    b_shape = [n if rng.random() < 0.5 else 1 for n in shape][rng.randrange(len(shape)):]
    r = Region(w, 8 * 2 ** len(shape) * int(np.prod(shape)) + 4096)
    everything = r.array("u1", (r.map.size(),))
    everything[:] = 0xEE
    a = view_of(r, rng, dtype, shape)
    a[...] = numbers.integers(-1000, 1000, shape)
    b = numbers.integers(-1000, 1000, b_shape).astype(dtype)
    rb = Region(w, b.nbytes)
    rb.array(dtype, b.shape)[...] = b
    expect = {"a - b": a - b, "sum(a * 2)": np.sum(a * 2.0),
              "max(a + b)": np.max(a + b), "min(b - a)": np.min(b - a)}
    untouched = everything.copy()
    result = (a - b).astype(dtype)
    wanted = np.frombuffer(untouched, dtype="u1").copy()
    base = everything.__array_interface__["data"][0]
    shadow = np.ndarray(shape, dtype, wanted, a.__array_interface__["data"][0] - base,
                        a.strides)
    shadow[...] = result
    names = ["sum(a * 2)", "max(a + b)", "min(b - a)"]
    rng.shuffle(names)
    place = rng.randrange(len(names) + 1)
    names.insert(place, "a - b")
    outputs = [{"expr": e, "name": f"o{i}"} for i, e in enumerate(names)]
    outputs[place]["to"] = at_of(r, a)
    got = w.call("job.run", outputs=outputs,
                 args={"a": at_of(r, a), "b": described(b, rb.at())})
    assert np.array_equal(everything, wanted), "in the gaps or in the result"
    for name, output in zip(names, got["outputs"]):
        if name != "a - b":
            value = np.frombuffer(output["data"], output["dtype"])[0]
            assert value == pytest.approx(float(expect[name])), name


@pytest.mark.plain
@pytest.mark.parametrize("pool", conftest.some(["1M", "1100K", "1500K", "2100K", "4400K"], 2))
def test_jobs_with_carries_and_slots_end_in_a_pool_of_any_size(start, pool, tmp_path):
    values = np.arange(500_000 if conftest.IS_SANITIZED else 2_000_000, dtype="f4")
    path = tmp_path / "values"
    values.tofile(path)
    # As many reductions as there may be, so that a few carries take what carries may have.
    outputs = [{"expr": f"sum(a * {i})", "name": f"o{i}"} for i in range(16)]
    with start(pool=pool).connect() as w:
        fd = os.open(path, os.O_RDONLY)
        ids = [w.send("job.run", fds=[fd], outputs=outputs,
                      args={"a": described(values, file_at(0))}) for _ in range(24)]
        first = None
        for got in map(w.reply, ids):
            data = [o["data"] for o in got["outputs"]]
            first = first or data
            assert data == first
        os.close(fd)
