"""gd.time_limits(): which jobs it is of, and what they raise."""

import threading
import time

import numpy as np
import pytest

from gpuarrayd import errors
from test_futures import ENDLESS


def test_a_job_is_ended_at_its_deadline(gd):
    began = time.monotonic()
    with gd.time_limits(deadline=0.3), pytest.raises(gd.errors.DeadlineExceeded) as caught:
        gd.evaluate("sum(x)", x=ENDLESS)
    assert time.monotonic() - began < 5
    assert isinstance(caught.value, TimeoutError) and caught.value.expected == "to end within 0.3 s"
    with gd.time_limits(deadline=0.2):
        future, lazy = gd.submit("sum(x)", x=ENDLESS), gd.lazy(ENDLESS).sum()
        with pytest.raises(errors.DeadlineExceeded):
            lazy.compute()
    with pytest.raises(errors.DeadlineExceeded):
        future.result()


def test_blocks_in_blocks_and_threads(gd):
    from gpuarrayd import _core
    seen = []
    with gd.time_limits(queue_timeout=5, deadline=60):
        with gd.time_limits(deadline=7):
            assert _core.set_times(0, 7000) == (0, 7000)
            thread = threading.Thread(target=lambda: seen.append(_core.set_times(0, 0)))
            thread.start()
            thread.join()
        assert _core.set_times(5000, 60000) == (5000, 60000)
        with pytest.raises(ZeroDivisionError), gd.time_limits():
            1 / 0  # noqa: B018
        assert gd.evaluate("sum(x)", x=np.arange(4.0)) == 6
    assert seen == [(0, 0)] and _core.set_times(0, 0) == (0, 0)


@pytest.mark.parametrize("seconds", [0, -1, 1e-9, 1e10, float("nan"), float("inf")])
def test_times_that_are_none(gd, seconds):
    for name in ("queue_timeout", "deadline"):
        with pytest.raises(gd.errors.BadArgument) as caught:
            gd.time_limits(**{name: seconds})
        assert caught.value.argument == name


def test_what_makes_many_jobs_ends_as_a_whole(gd, tmp_path):
    x, seen = np.random.default_rng(1).random((40, 30, 20)), []
    spd = np.eye(600) * 700 + np.ones((600, 600))
    rows = np.broadcast_to(np.ones(8), (1 << 36, 8))

    def decompose():
        gd.tensor.cp(x, 2, iterations=10**6, tolerance=-1, checkpoint=tmp_path / "c.npz",
                     callback=lambda iteration, *_: seen.append(iteration))

    for seconds, begin in ((0.4, decompose), (0.4, decompose), (0.2, lambda: gd.linalg.qr(rows, "r")),
                           (0.2, lambda: gd.cov(rows, rowvar=False)),
                           (0.002, lambda: gd.linalg.cholesky(spd, memory=8 * 600 * 64, out=tmp_path / "l.npy")),
                           (0.2, lambda: gd.repeat(10**6, "u + 1", u=x, to=tmp_path / "u.npy"))):
        began = time.monotonic()
        with gd.time_limits(deadline=seconds), pytest.raises(errors.DeadlineExceeded) as caught:
            begin()
        assert time.monotonic() - began < 5
        assert caught.value.expected == f"to end within {seconds} s" and "its jobs" in str(caught.value)
    assert seen == list(range(1, seen[-1] + 1)) and seen[-1] > 1  # the second goes on from the first
    assert not (tmp_path / "l.npy").exists() and not (tmp_path / "u.npy").exists()


def test_they_hold_for_all_jobs_of_a_generator(gd):
    def slow():
        for _ in range(200):
            time.sleep(0.05)
            yield np.ones((1, 3), "f4")

    x = gd.from_generator(slow, "f4", (200, 3))
    began = time.monotonic()
    with gd.time_limits(deadline=0.3), pytest.raises(errors.DeadlineExceeded):
        gd.compute(x.sum(axis=0), x.sum(axis=1))
    assert time.monotonic() - began < 5
