"""Factors and solutions by panels, against NumPy: tiny memory, so that there are many panels."""

import os
import subprocess
import sys

import h5py
import numpy as np
import pytest

N = 210
MEMORY = 8 * N * 64  # of a panel of the least width


def matrices(n=N, seed=1):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, n))
    return a, a @ a.T + n * np.eye(n), rng.standard_normal((n, 70))


def close(got, want, factor=1.0):
    got = np.asarray(got.compute() if hasattr(got, "compute") else got)
    assert got.dtype == want.dtype and got.shape == want.shape
    scale = np.abs(want).max() * (1e-4 if want.dtype == np.float32 else 1e-11) * factor
    assert np.allclose(got, want, rtol=0, atol=scale), np.abs(got - want).max()


def test_results_are_numpys(gd, tmp_path):
    a, s, b = matrices()
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "s.npy", np.asfortranarray(s))
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset("b", data=b, chunks=(50, 30), compression="gzip")
    x, p = gd.open(tmp_path / "a.npy"), gd.open(tmp_path / "s.npy")
    y = gd.open(f"{tmp_path}/b.h5:/b")
    lower = np.linalg.cholesky(s)
    for memory in (MEMORY, 8 * 64 * 64 * 4, 1 << 20):  # parts of panels, too, and one panel
        close(gd.linalg.cholesky(p, memory=memory), lower)
        close(gd.linalg.solve(x, y, memory=max(memory, MEMORY)), np.linalg.solve(a, b), 100)
    close(gd.linalg.cholesky(p, memory=MEMORY, out=tmp_path / "l.npy"), lower)
    close(gd.linalg.cholesky(p, memory=MEMORY, upper=True, out=f"{tmp_path}/l.h5:/u"), lower.T)
    half = np.where(np.tri(N, dtype=bool), s, np.nan)  # only the lower half is read
    close(gd.linalg.cholesky(half, memory=MEMORY), lower)
    close(gd.linalg.cholesky(half.T, memory=MEMORY, upper=True), lower.T)
    close(gd.linalg.solve(half, y, assume_a="pos", memory=MEMORY), np.linalg.solve(s, b))
    out = np.empty(N)
    assert gd.linalg.solve(x, b[:, 0], memory=MEMORY, out=out) is out
    close(out, np.linalg.solve(a, b[:, 0]), 100)
    close(gd.linalg.inv(x, memory=MEMORY, out=tmp_path / "i.npy"), np.linalg.inv(a), 100)
    close(gd.linalg.inv(a.astype("f4"), memory=MEMORY), np.linalg.inv(a.astype("f4")), 10)
    integers = (a * 10).astype("i4")
    for one in (x, gd.lazy(a).T * 2, gd.lazy(integers)):
        array = one.compute()
        sign, log_abs = gd.linalg.slogdet(one, memory=MEMORY)
        assert (sign, round(log_abs, 8)) == tuple(np.round(np.linalg.slogdet(array), 8))
    assert np.isclose(gd.linalg.det(x / 10, memory=MEMORY), np.linalg.det(a / 10))


def test_small_matrices_are_numpys_own(gd):
    a, s, b = (one[:5, :5] for one in matrices())
    stack = np.stack([s, 2*s])
    x = gd.lazy(a)
    assert np.array_equal(np.linalg.inv(x), np.linalg.inv(a))
    assert np.array_equal(gd.linalg.cholesky(stack), np.linalg.cholesky(stack))
    close(gd.linalg.cholesky(s + np.tril(s, -1), upper=True), np.linalg.cholesky(s).T)
    close(np.linalg.solve(x, b), np.linalg.solve(a, b))
    close(gd.linalg.solve(s, b, assume_a="pos"), np.linalg.solve(s, b))
    assert np.linalg.det(x) == np.linalg.det(a) and gd.linalg.slogdet(a) == np.linalg.slogdet(a)
    with pytest.raises(np.linalg.LinAlgError):
        gd.linalg.inv(np.zeros((3, 3)))


def test_matrices_without_a_factor(gd, tmp_path):
    a, s, b = matrices()
    singular, minor, nan, infinite = a.copy(), s.copy(), s.copy(), a.copy()
    singular[:, 100] = 0
    minor[150, 150] = -1
    nan[110, 70] = np.nan
    infinite[70, 110] = -np.inf
    overflown = nan.copy()
    overflown[:, 0] = np.eye(N)[0]
    overflown[100, 0] = 1e200  # whose square is subtracted at [100, 100]
    for call, place in [
            (lambda **how: gd.linalg.solve(singular, b, **how), "100"),
            (lambda **how: gd.linalg.inv(singular, out=tmp_path / "x.npy", **how), "100"),
            (lambda **how: gd.linalg.cholesky(minor, out=tmp_path / "x.npy", **how), "150")]:
        with pytest.raises(np.linalg.LinAlgError) as caught:
            call(memory=MEMORY)
        assert isinstance(caught.value, gd.errors.SingularMatrix) and caught.value.found == place
    assert gd.linalg.slogdet(singular, memory=MEMORY) == (0, -np.inf)
    assert gd.linalg.det(singular, memory=MEMORY) == 0
    for call, place in [
            (lambda **how: gd.linalg.cholesky(nan, checkpoint=tmp_path / "c", **how), "nan at [110, 70]"),
            (lambda **how: gd.linalg.cholesky(nan.T, upper=True, **how), "nan at [70, 110]"),
            (lambda **how: gd.linalg.cholesky(overflown, **how), "nan at [110, 70]"),
            (lambda **how: gd.linalg.cholesky(overflown.T, upper=True, **how), "nan at [70, 110]"),
            (lambda **how: gd.linalg.solve(nan, b, assume_a="pos", **how), "nan at [110, 70]"),
            (lambda **how: gd.linalg.solve(infinite, b, checkpoint=tmp_path / "c", **how), "infinite at [70, 110]"),
            (lambda **how: gd.linalg.inv(infinite, out=tmp_path / "x.npy", **how), "infinite at [70, 110]"),
            (lambda **how: gd.linalg.det(nan, **how), "nan at [110, 70]")]:
        with pytest.raises(gd.BadArgument) as caught:
            call(memory=MEMORY)
        assert caught.value.found == place and f"{place[place.index('['):]} is " in str(caught.value)
    overflown[110, 70] = 0
    with pytest.raises(gd.errors.SingularMatrix):  # nothing of the matrix's own is refused
        gd.linalg.cholesky(overflown, memory=MEMORY)
    holed = b.copy()
    holed[5, 0] = np.nan
    found = gd.linalg.solve(a, holed, memory=MEMORY)
    assert np.isnan(found[:, 0]).all() and np.allclose(found[:, 1:], np.linalg.solve(a, b[:, 1:]))
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_done(gd, tmp_path):
    a, _, b = matrices()
    with open(tmp_path / "huge.raw", "wb") as file:
        file.truncate(8 << 38)
    huge = gd.open(f"{tmp_path}/huge.raw:f8:{1 << 19}x{1 << 19}")
    for call, kind in [(lambda: gd.linalg.inv(a[:, :9]), np.linalg.LinAlgError),
                       (lambda: gd.linalg.inv(a[0]), gd.BadShape),
                       (lambda: gd.linalg.solve(a, b[:9], memory=MEMORY), gd.BadShape),
                       (lambda: gd.linalg.solve(a, b, memory=MEMORY - 1), gd.errors.LimitExceeded),
                       (lambda: gd.linalg.solve(a, b, assume_a="sym"), gd.errors.BadArgument),
                       (lambda: gd.linalg.inv(a > 0, memory=MEMORY), gd.errors.BadDtype),
                       (lambda: gd.linalg.inv(np.stack([a, a]), memory=MEMORY), gd.Unsupported),
                       (lambda: gd.linalg.inv(a, memory=MEMORY, out=a), gd.errors.OverlappingOutput),
                       (lambda: gd.linalg.inv(a, memory=MEMORY, scratch=tmp_path / "no"),
                        gd.errors.NotFound),
                       (lambda: gd.linalg.cholesky(huge, checkpoint=tmp_path / "c",
                                                   out=tmp_path / "l.npy"), gd.errors.NoSpace)]:
        with pytest.raises(kind):
            call()
    assert sorted(os.listdir(tmp_path)) == ["huge.raw"]


def test_an_explanation_is_what_is_read(gd):
    a, s, b = matrices()
    for kind, arrays, how in [(0, (s,), {}), (1, (a, b), {}), (1, (s, b), {"assume_a": "pos"}),
                              (3, (a,), {})]:
        plan = gd.linalg.explain(("cholesky", "solve", "inv", "slogdet")[kind], *arrays,
                                 memory=MEMORY, **how)
        told = []
        session = gd._session.another()
        given = [session.from_buffer(one, False) for one in arrays]
        result = np.empty(arrays[-1].shape)
        to = None if kind == 3 else session.from_buffer(result, True)
        found = session.factor(kind, given[0], given[1] if given[1:] else None, to,
                               (MEMORY, None, None, False, bool(how), None, 0, None),
                               lambda *step: told.append(step))
        session.close()
        assert found[4:7] == plan[2:5]
        assert [step[:2] for step in told] == [(i + 1, plan.steps) for i in range(plan.steps)]


KILLED = """
import os, sys, numpy as np, gpuarrayd as gd
left = int(sys.argv[3])
def callback(step, n, seconds):
    if step == left:
        os._exit(7)
kind = gd.linalg.cholesky if sys.argv[1] == "s.npy" else gd.linalg.inv
kind(gd.open(sys.argv[1]), memory=int(sys.argv[2]), checkpoint="c", out="x.npy", callback=callback)
"""


@pytest.mark.parametrize("name", ["s.npy", "a.npy"])
def test_an_interrupted_call_goes_on(gd, daemon, tmp_path, name):
    a, s, _ = matrices()
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "s.npy", s)
    x, steps = gd.open(tmp_path / name), []
    function = gd.linalg.cholesky if name == "s.npy" else gd.linalg.inv
    how = {"memory": MEMORY, "checkpoint": tmp_path / "c", "out": tmp_path / "x.npy"}
    done = subprocess.run([sys.executable, "-c", KILLED, name, str(MEMORY), "2"], cwd=tmp_path,
                          env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})
    assert done.returncode == 7
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "c", "s.npy"]
    with pytest.raises(gd.errors.BadCheckpoint):
        function(a + 1, **how)
    with pytest.raises(gd.errors.BadCheckpoint) as caught:  # which is shorter than any
        (tmp_path / "short").write_bytes(b"garbage")
        function(x, **{**how, "checkpoint": tmp_path / "short"})
    assert caught.value.expected and "no checkpoint" in caught.value.found
    (tmp_path / "short").unlink()
    with pytest.raises(gd.errors.BadCheckpoint):
        (gd.linalg.inv if name == "s.npy" else gd.linalg.cholesky)(x, **how)

    def stop(step, n, seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        function(x, callback=stop, **how)
    close(function(x, callback=lambda *step: steps.append(step), **how),
          np.linalg.cholesky(s) if name == "s.npy" else np.linalg.inv(a), 100)
    assert len(steps) == (1 if name == "s.npy" else 5)
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "s.npy", "x.npy"]


def test_halves_have_checkpoints_of_their_own(gd, tmp_path):
    _, s, _ = matrices()
    other = np.where(np.tri(N, dtype=bool), s, s / 2)
    np.save(tmp_path / "s.npy", other)
    x, how = gd.open(tmp_path / "s.npy"), {"memory": MEMORY, "checkpoint": tmp_path / "c"}
    with pytest.raises(gd.Cancelled):
        gd.linalg.cholesky(x, upper=True, callback=lambda step, *_: step == 2, **how)
    with pytest.raises(gd.errors.BadCheckpoint):
        gd.linalg.cholesky(x, **how)
    steps, upper = [], np.triu(s / 2, 1) + np.diag(np.diag(s))
    want = np.linalg.cholesky(upper + np.triu(upper, 1).T).T
    close(gd.linalg.cholesky(x, upper=True, callback=lambda step, *_: steps.append(step), **how),
          want)
    assert len(steps) == 2 and sorted(os.listdir(tmp_path)) == ["s.npy"]
