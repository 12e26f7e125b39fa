"""run --repeat: many steps as jobs from file to file; killed, it goes on at the last whole one."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest

from catalogue import NUMPY_2
from conftest import CTL
from test_near import padded

pytestmark = [pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes")]

LAP = "lap(u) = near(u, 1, 0) + near(u, 0, -1, mode=wrap) - 2*u; "


def lap(u):
    return padded(u, (1, 0), "edge") + padded(u, (0, -1), "wrap") - 2 * u


def test_many_steps_are_those_of_one_job_after_the_other(daemon, folder):
    u = np.random.default_rng(1).standard_normal((90, 130))
    np.save(f"{folder}/u.npy", u)
    want, p, q = u, u, np.zeros_like(u)
    for _ in range(21):
        want = want + 0.2 * lap(want)
        p, q = p + 0.1 * q, q + 0.1 * lap(p)
    told = json.loads(daemon.ctl("run", "--json", "--repeat", 21, f"{LAP}u + 0.2*lap(u)",
                                 f"u={folder}/u.npy", "-o", f"{folder}/o.npy").stdout)
    assert (told["steps"], told["steps_at_once"], told["jobs"]) == (21, 8, 3)
    np.testing.assert_array_equal(np.load(f"{folder}/o.npy"), want)
    daemon.ctl("run", "--repeat", 21, f"{LAP}u = u + k*v; v = v + k*lap(u)", f"u={folder}/u.npy",
               "v=0.0", "k=0.1", "-o", f"v={folder}/v.npy")  # u is not kept
    np.testing.assert_array_equal(np.load(f"{folder}/v.npy"), q)
    said = daemon.ctl("run", "--explain", "--repeat", 21, f"{LAP}u + 0.2*lap(u)",
                      f"u={folder}/u.npy", "-o", f"{folder}/n.npy").stdout
    assert said == "21 steps, 0 of them done; 8 at once, in one read and one write: 3 jobs\n"
    assert sorted(os.listdir(folder)) == ["o.npy", "u.npy", "v.npy"]
    w = np.zeros((70, 80, 70), "f4")  # of which a tile has no room for eight steps
    w[30, 25, 20] = 1
    np.save(f"{folder}/w.npy", w)
    told = json.loads(daemon.ctl(
        "run", "--json", "--repeat", 9, "near(w, 2, 2, 2) + near(w, -2, -2, -2)",
        f"w={folder}/w.npy", "-o", f"{folder}/x.npy").stdout)
    assert told["steps_at_once"] < 8
    for _ in range(9):
        w = padded(w, (2, 2, 2), "edge") + padded(w, (-2, -2, -2), "edge")
    np.testing.assert_array_equal(np.load(f"{folder}/x.npy"), w)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, "--deadline"])
def test_the_same_command_goes_on_where_it_was_ended(daemon, folder, how):
    u = np.random.default_rng(2).standard_normal((300, 400)).astype("f4")
    np.save(f"{folder}/u.npy", u)
    words = [str(CTL), "run", "--json", "--repeat", "4000", f"{LAP}u = u + v; v = v + k*lap(u)",
             f"u={folder}/u.npy", "v=0.0", "k=0.001", "-o", f"u={folder}/o.npy"]
    env = {**os.environ, "GPUARRAYD_SOCKET": daemon.socket}
    if how == "--deadline":
        ended = subprocess.run([*words, how, "500ms"], env=env, capture_output=True, text=True, timeout=30)
        assert "deadline-exceeded" in ended.stderr + ended.stdout
    else:
        running = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while not any(".repeat-" in name for name in os.listdir(folder)):
            assert time.monotonic() < deadline and running.poll() is None
            time.sleep(0.001)
        running.send_signal(how)
        assert running.wait(30) != 0
    left = [name for name in os.listdir(folder) if ".repeat-" in name]
    assert left and not os.path.exists(f"{folder}/o.npy")
    words[4] = str(max(int(name.split(".")[-3]) for name in left) + 16)  # a few steps more
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=True)
    told = json.loads(done.stdout)
    assert told["steps_before"] > 0 and told["steps"] == int(words[4])
    p, q = u, np.zeros_like(u)
    for _ in range(told["steps"]):
        p, q = p + q, q + np.float32(0.001) * lap(p)
    np.testing.assert_array_equal(np.load(f"{folder}/o.npy"), p)
    assert sorted(os.listdir(folder)) == ["o.npy", "u.npy"]


def test_what_repeat_of_many_steps_refuses(daemon, folder):
    np.save(f"{folder}/u.npy", np.zeros((9, 9)))
    for words, code in ((("u + 1", "-o", f"{folder}/o.npy", "v=0.5"), "bad-argument"),
                        (("u + v", "-o", f"{folder}/o.npy", "v=0.5"), None),
                        (("m = mean(u); u - m", "-o", f"m={folder}/o.npy"), "bad-expression"),
                        (("u - mean(u)", "-o", f"{folder}/o.npy"), "bad-expression"),
                        (("u + 1",), "bad-argument"),
                        (("x = u + 1; y = u", "-o", f"x={folder}/o.npy"), "bad-expression")):
        failed = daemon.ctl("run", "--repeat", 3, *words, f"u={folder}/u.npy", check=False)
        assert (failed.returncode == 0) == (code is None), (words, failed.stderr)
        assert code is None or code in failed.stderr, (words, failed.stderr)
    failed = daemon.ctl("run", "--repeat", 30, "u + 1", f"u={folder}/u.npy", "-o",
                        f"{folder}/o.what", check=False)  # before the first of four jobs
    assert failed.returncode == 1 and "o.what" in failed.stderr, failed.stderr
    assert not [name for name in os.listdir(folder) if ".repeat-" in name]
    for wrong in ("0", "-3", "many"):
        assert daemon.ctl("run", "--repeat", wrong, "u + 1", f"u={folder}/u.npy",
                          check=False).returncode == 2
