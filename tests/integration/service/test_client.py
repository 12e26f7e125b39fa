"""gpuarrayctl when something goes away under it: the daemon, the terminal, the reader of a pipe.
Exit codes, and that nothing is left behind."""

import json
import os
import pathlib
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

import conftest

LONG = "tanh(exp(sin(exp(sin(a)))))"  # of big.raw: a minute or so


@pytest.fixture
def big(folder):
    n = 512 << 20
    with open(folder / "big.raw", "wb") as f:
        f.truncate(4 * n)
    return f"a=big.raw:f4:{n}"


def begin(socket, folder, *words):
    return subprocess.Popen([conftest.CTL, *words], cwd=folder, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "GPUARRAYD_SOCKET": socket})


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not (got := what()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return got


def running(daemon):
    return daemon.counts()["jobs_running"]


def test_a_daemon_that_does_not_come_back(mortal, folder, big):
    """Three at once, since each waits as long as the library's patience."""
    targets = {"npy": "r.npy", "new": "r.h5:/r", "old": "there.h5:/group/r"}
    processes = {}
    for place, target in targets.items():
        (folder / place).mkdir()
        os.link(folder / "big.raw", folder / place / "big.raw")
        with h5py.File(folder / place / "there.h5", "w") as f:
            f["other"] = np.arange(5)
        processes[place] = begin(mortal.socket, folder / place, "run", LONG, big, "-o", target)
    wait_for(lambda: running(mortal) == len(targets))
    mortal.kill()
    began = time.monotonic()
    for place, process in processes.items():
        out, text = process.communicate(timeout=40)
        assert process.returncode == 3 and "outcome-unknown" in text, text
        assert out == "" and sorted(os.listdir(folder / place)) == ["big.raw", "there.h5"]
        with h5py.File(folder / place / "there.h5") as f:
            assert list(f) == ["other"]
    assert time.monotonic() - began < 20


def test_a_daemon_that_comes_back_runs_the_job_again(mortal, start, folder):
    a = np.random.default_rng(21).normal(size=(1, 4000))
    np.save(folder / "a.npy", a)
    np.save(folder / "b.npy", a.reshape(-1, 1))
    process = begin(mortal.socket, folder, "run", "r = a + 1; s = sum(exp(sin(a) * cos(b)))",
                    "a=a.npy", "b=b.npy", "-o", "r=r.npy", "-o", "s=s.npy")
    wait_for(lambda: running(mortal))
    mortal.kill()
    assert process.poll() is None
    second = start(args=["--socket", mortal.socket])
    _, text = process.communicate(timeout=60)
    assert process.returncode == 0, text
    assert np.array_equal(np.load(folder / "r.npy"), a + 1)
    wanted = np.exp(np.sin(a) * np.cos(a.reshape(-1, 1))).sum()
    assert np.allclose(np.load(folder / "s.npy"), wanted, rtol=1e-12)
    assert sorted(os.listdir(folder)) == ["a.npy", "b.npy", "r.npy", "s.npy"]
    assert second.process.poll() is None


def test_ctrl_c_while_the_daemon_is_away(mortal, folder, big):
    process = begin(mortal.socket, folder, "run", LONG, big, "-o", "r.npy")
    wait_for(lambda: running(mortal))
    mortal.kill()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=5)
    assert process.returncode == 130, text
    assert os.listdir(folder) == ["big.raw"]


def test_others_who_wait_are_told(mortal, folder, big):
    job = mortal.ctl("submit", LONG, big, "-o", "r.npy", cwd=folder).stdout.strip()
    process = begin(mortal.socket, folder, "wait", job)
    time.sleep(0.3)
    mortal.kill()
    _, text = process.communicate(timeout=20)
    assert process.returncode == 3 and "outcome-unknown" in text, text
    agents = agents_in(folder)
    wait_for(lambda: not any(map(is_alive, agents)))
    assert os.listdir(folder) == ["big.raw"]


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def agents_in(folder):
    """The background processes of gpuarrayctl submit that work, or have files open, in it."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == "gpuarrayctl":
                links = [entry / "cwd", *(entry / "fd").iterdir()]
                if str(folder) in map(os.readlink, links):
                    found.append(int(entry.name))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("target", ["r.npy", "r.h5:/r"])
def test_the_background_process_ends_cleanly(daemon, folder, big, target):
    job = daemon.ctl("submit", LONG, big, "-o", target, cwd=folder).stdout.strip()
    agent, = agents_in(folder)
    os.kill(agent, signal.SIGTERM)
    waited = daemon.ctl("wait", job, check=False)
    assert waited.returncode == 1 and "cancelled" in waited.stderr
    wait_for(lambda: not is_alive(agent))
    assert os.listdir(folder) == ["big.raw"]


def test_a_job_whose_number_nobody_heard_is_not_run(start, folder, big):
    daemon = start()
    daemon.process.send_signal(signal.SIGSTOP)
    process = begin(daemon.socket, folder, "submit", LONG, big, "-o", "r.h5:/r")
    wait_for(lambda: len(agents_in(folder)) == 2)
    process.kill()
    process.communicate()
    daemon.process.send_signal(signal.SIGCONT)
    wait_for(lambda: not any(map(is_alive, agents_in(folder))))
    assert os.listdir(folder) == ["big.raw"]
    assert daemon.counts()["jobs_running"] == 0


def test_a_result_that_cannot_be_written_is_a_failure(daemon):
    for words in (["run", "1 + 1"], ["info"], ["--help"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([conftest.CTL, *words], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=20,
                                  env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})
        assert done.returncode == 1 and "No space left" in done.stderr, words


@pytest.mark.parametrize("text, value", [("010", 10), ("-010", -10), ("0x10", 16), ("-0X1f", -31),
                                         ("1e3", 1000.0), ("True", True)])
def test_numbers_are_what_they_look_like(daemon, text, value):
    assert eval(daemon.ctl("run", "k", f"k={text}").stdout) == value


def test_many_starters_start_one_daemon(folder):
    (folder / "run").mkdir(mode=0o700)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(folder / "run"),
           "GPUARRAYD_DAEMON": str(conftest.DAEMON)}
    env.pop("GPUARRAYD_SOCKET", None)
    starters = [subprocess.Popen([conftest.CTL, "info", "--json"], env=env, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for _ in range(12)]
    outcomes = [(*s.communicate(timeout=60), s.returncode) for s in starters]
    pids = {json.loads(out)["pid"] for out, text, code in outcomes if code == 0}
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    assert [text for _, text, code in outcomes if code] == []
    assert len(pids) == 1
    wait_for(lambda: not is_alive(*pids))
