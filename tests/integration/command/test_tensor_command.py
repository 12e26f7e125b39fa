"""gpuarrayctl cp, tucker and reconstruct, svd, pca and lstsq: from a file to factors and back, killed and
given again."""

import json
import os
import random
import signal
import subprocess
import time

import numpy as np
import pytest

import conftest


@pytest.fixture
def t(folder):
    rng = np.random.default_rng(3)
    factors = [rng.normal(size=(n, 3)) for n in (60, 25, 30)]
    np.save(folder / "t.npy", np.einsum("ar,br,cr->abc", *factors) + 0.1 * rng.normal(size=(60, 25, 30)))
    return folder


def test_factors_of_a_file_and_back(daemon, t):
    def said(*words):
        return json.loads(daemon.ctl(*words, "--json", cwd=t).stdout)

    words = ("cp", "t.npy", "--rank", "3", "--iterations", "6", "--tolerance", "-1")
    plan = said(*words, "--explain")
    found = said(*words, "-o", "f.npz")
    assert found["read_bytes"] == plan["total"]["read_bytes"] and found["iterations"] == 6
    said("reconstruct", "f.npz", "-o", "y.npy")
    x, y = np.load(t / "t.npy"), np.load(t / "y.npy")
    assert np.isclose(np.linalg.norm(x - y) / np.linalg.norm(x), found["relative_error"])
    found = said("tucker", "t.npy", "--ranks", "3,3,3", "-o", "f.npz")  # in the place of the other
    said("reconstruct", "f.npz", "-o", "y.npy", "--dtype", "float32")
    y = np.load(t / "y.npy")
    assert y.dtype == "f4"
    assert np.isclose(np.linalg.norm(x - y) / np.linalg.norm(x), found["relative_error"], rtol=1e-4)
    masked = said("cp", "a=t.npy", "--of", "b = a > 3; where(b, 3, a)", "--rank", "2", "--iterations", "2",
                  "-o", "f.npz")
    assert masked["iterations"] == 2
    usual, last = (said("cp", "t.npy", "--rank", "4", "--iterations", "200", "-o", "f.npz", *words)
                   for words in ((), ("--tolerance", "0")))  # 0 is no number of iterations less
    assert usual["converged"] and usual["iterations"] < last["iterations"]
    for words, code, says in ((("cp", "t.npy", "-o", "f.npz"), 2, "--rank 10"),
                              (("cp", "t.npy", "--rank", "2"), 2, "-o f.npz"),
                              (("cp", "t.npy", "--rank", "2", "-o", "f.txt"), 1, "npz"),
                              (("cp", "t.npy", "--rank", "2", "-o", "no/f.npz"), 1, "no: No such"),
                              (("cp", "t.npy", "--rank", "999", "-o", "f.npz"), 1, "bad-rank"),
                              (("tucker", "t.npy", "--ranks", "2,2", "-o", "f.npz"), 1, "bad-rank"),
                              (("tucker", "t.npy", "--ranks", "2,2,2", "--tolerance", ".1", "-o", "f.npz"), 2, "not both"),
                              (("reconstruct", "t.npy", "-o", "y.npy"), 1, "t.npy is no archive of factors")):
        done = daemon.ctl(*words, cwd=t, check=False)
        assert done.returncode == code and says in done.stderr, (words, done.stderr)


def test_matrices(daemon, folder):
    rng = np.random.default_rng(4)
    a, wide, b = rng.normal(size=(700, 12)) + 3, rng.normal(size=(20, 1100)), rng.normal(size=(700, 3))
    for name, array in (("a", a), ("wide", wide), ("b", b), ("y", b[:, 0]), ("few", b[:20]), ("nan", np.where(a > 5, np.nan, a))):
        np.save(folder / f"{name}.npy", array)

    def said(*words):
        plan = json.loads(daemon.ctl(*words, "--json", "--explain", cwd=folder).stdout)
        found = json.loads(daemon.ctl(*words, "--json", "-o", "f.npz", cwd=folder).stdout)
        assert all(found[name] == plan["total"][name] for name in ("jobs", "reads", "read_bytes", "write_bytes"))
        return found, np.load(folder / "f.npz")

    found, f = said("svd", "a.npy", "-k", "4", "--vectors", "u.npy")
    assert found["reads"] == 2 and np.allclose(f["s"], np.linalg.svd(a)[1][:4])
    assert np.allclose(np.load(folder / "u.npy") * f["s"], a @ f["vh"].T)
    _, f = said("svd", "wide.npy", "--vectors", "vh.npy")
    assert np.allclose(f["u"] * f["s"] @ np.load(folder / "vh.npy"), wide)
    assert said("svd", "x=a.npy", "--of", "y = x * 2; y - 1", "--values")[1].files == ["s"]
    _, f = said("pca", "a.npy", "-k", "3", "--scores", "scores.npy")
    about = a - a.mean(axis=0)
    assert np.allclose(np.load(folder / "scores.npy"), about @ f["components"].T)
    assert np.allclose(f["singular_values"], np.linalg.svd(about)[1][:3]) and np.allclose(f["mean"], a.mean(axis=0))
    found, f = said("lstsq", "a.npy", "--right", "b.npy")
    want = np.linalg.lstsq(a, b)
    assert found["rank"] == 12 and found["reads"] == 1 and np.allclose(f["x"], want[0])
    assert np.allclose(f["residuals"], want[1]) and np.allclose(f["s"], want[3])
    _, f = said("lstsq", "a.npy", "--right", "y.npy", "--ridge", "0.5,30")
    for x, residual, ridge in zip(f["x"], f["residuals"], (0.5, 30), strict=True):
        assert np.allclose(x[:, 0], np.linalg.solve(a.T @ a + ridge * np.eye(12), a.T @ b[:, 0]))
        assert np.allclose(residual, np.sum((a @ x - b[:, :1]) ** 2))
    found, f = said("lstsq", "wide.npy", "--right", "few.npy")
    assert found["rank"] == 20 and found["reads"] == 2 and np.allclose(f["x"], np.linalg.lstsq(wide, b[:20])[0])
    assert np.allclose(f["s"], np.linalg.svd(wide)[1]) and np.allclose(f["residuals"], 0)
    _, f = said("lstsq", "wide.npy", "--right", "few.npy", "--ridge", "0.5,30")
    for x, residual, ridge in zip(f["x"], f["residuals"], (0.5, 30), strict=True):
        assert np.allclose(x, wide.T @ np.linalg.solve(wide @ wide.T + ridge * np.eye(20), b[:20]))
        assert np.allclose(residual, np.sum((wide @ x - b[:20]) ** 2, axis=0))
    for words, code, says in ((("svd", "a.npy"), 2, "-o f.npz"), (("svd", "a.npy", "-k", "13", "-o", "f.npz"), 1, "bad-rank"),
                              (("lstsq", "a.npy", "-o", "f.npz"), 2, "--right b.npy"),
                              (("lstsq", "a.npy", "--right", "wide.npy", "-o", "f.npz"), 1, "bad-shape"),
                              (("lstsq", "wide.npy", "--right", "a.npy", "-o", "f.npz"), 1, "bad-shape"),
                              (("lstsq", "a.npy", "--right", "y.npy", "--ridge", "-1", "-o", "f.npz"), 1, "ridge 0 is -1"),
                              (("pca", "nan.npy", "-o", "f.npz"), 1, "is nan"),
                              (("lstsq", "b.npy", "--right", "nan.npy", "-o", "f.npz"), 1, "b: element [")):
        done = daemon.ctl(*words, cwd=folder, check=False)
        assert done.returncode == code and says in done.stderr, (words, done.stderr)


@pytest.mark.parametrize("words, other", [
    (["cp", "t.npy", "--iterations", "300", "--tolerance", "-1", "--nonnegative", "--rank", "3"], "2"),
    (["tucker", "t.npy", "--reads", "200", "--ranks", "2,2,2"], "3,2,2"),
    (["svd", "a.npy", "--iterations", "9", "-k", "5"], "4")], ids=["cp", "tucker", "svd"])
def test_killed_at_random_and_given_again_ends_the_same(daemon, t, words, other):
    """N_KILLS in the environment makes it more often."""
    if "a.npy" in words:
        np.save(t / "a.npy", np.random.default_rng(1).normal(size=(1060, 1030)).cumsum(axis=1))
    start = time.monotonic()
    daemon.ctl(*words, "-o", "want.npz", cwd=t)
    whole = time.monotonic() - start
    chance, killed, n = random.Random(5), 0, int(os.environ.get("N_KILLS", "5"))
    for i in range(n):
        running = subprocess.Popen([conftest.CTL, *words, "--checkpoint", "c.npz", "-o", "got.npz"], cwd=t,
                                   env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket},
                                   stdout=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.1, 0.9) * whole * (0.5 if n < 9 else 0.2))
        running.send_signal(signal.SIGINT if i % 3 == 2 else signal.SIGKILL)
        killed += running.wait() != 0
    daemon.ctl(*words, "--checkpoint", "c.npz", "-o", "got.npz", cwd=t)
    want, got = np.load(t / "want.npz"), np.load(t / "got.npz")
    assert killed > 0 and all(np.array_equal(want[name], got[name]) for name in want.files)
    done = daemon.ctl(*words[:-1], other, "--checkpoint", "c.npz", "-o", "got.npz", cwd=t, check=False)
    assert done.returncode == 1 and "[bad-checkpoint]" in done.stderr
