"""gpuarrayctl cp, tucker and reconstruct: from a file to factors and back, killed and given again."""

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
    for words, code, says in ((("cp", "t.npy", "-o", "f.npz"), 2, "--rank 10"),
                              (("cp", "t.npy", "--rank", "2"), 2, "-o f.npz"),
                              (("cp", "t.npy", "--rank", "2", "-o", "f.txt"), 1, "npz"),
                              (("cp", "t.npy", "--rank", "999", "-o", "f.npz"), 1, "bad-rank"),
                              (("tucker", "t.npy", "--ranks", "2,2", "-o", "f.npz"), 1, "bad-rank"),
                              (("reconstruct", "t.npy", "-o", "y.npy"), 1, "")):
        done = daemon.ctl(*words, cwd=t, check=False)
        assert done.returncode == code and says in done.stderr, (words, done.stderr)


def test_killed_at_random_and_given_again_ends_the_same(daemon, t):
    words = ["cp", "t.npy", "--rank", "3", "--iterations", "300", "--tolerance", "-1", "--nonnegative"]
    daemon.ctl(*words, "-o", "want.npz", cwd=t)
    chance, killed = random.Random(5), 0
    for _ in range(6):
        running = subprocess.Popen([conftest.CTL, *words, "--checkpoint", "c.npz", "-o", "got.npz"], cwd=t,
                                   env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket},
                                   stdout=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.02, 0.15))
        running.send_signal(chance.choice([signal.SIGKILL, signal.SIGINT]))
        killed += running.wait() != 0
    daemon.ctl(*words, "--checkpoint", "c.npz", "-o", "got.npz", cwd=t)
    want, got = np.load(t / "want.npz"), np.load(t / "got.npz")
    assert killed > 0 and all(np.array_equal(want[name], got[name]) for name in want.files)
    done = daemon.ctl(*words[:3], "2", "--checkpoint", "c.npz", "-o", "got.npz", cwd=t, check=False)
    assert done.returncode == 1 and "[bad-checkpoint]" in done.stderr
