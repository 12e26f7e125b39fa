"""Detached jobs: the agent of gpuarrayctl submit outlives the shell, the terminal and the daemon, and
a job is found by its number from anywhere."""

import functools
import json
import os
import pathlib
import pty
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import h5py
import numpy as np
import pytest

import conftest

EXPRESSION = "r = a + 1; s = sum(exp(sin(a) * cos(b)))"
NUMBERS = np.random.default_rng(44).normal(size=(1, 6000))


@pytest.fixture
def folder():
    """Arrays whose job takes some tenths of a second."""
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-") as path:
        np.save(f"{path}/a.npy", NUMBERS)
        np.save(f"{path}/b.npy", NUMBERS.reshape(-1, 1))
        yield pathlib.Path(path)


@pytest.fixture
def home():
    """A runtime directory: the registry of detached jobs is in it."""
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-") as path:
        yield pathlib.Path(path)
        assert wait_for(lambda: not any(map(is_alive, entries(path))))


def process_start(pid):
    """When it began; 0 when it has ended."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def is_alive(entry):
    return process_start(entry["pid"]) == entry["pid_start"]


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not (got := what()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return got


def jobs_folder(home):
    return pathlib.Path(home) / "gpuarrayd/jobs"


def entries(home):
    """Without those that are on their way to become one."""
    jobs = jobs_folder(home)
    found = [json.loads((jobs / name).read_text()) for name in os.listdir(jobs)
             if name[0] != "."] if jobs.exists() else []
    return [one for one in found if "pid" in one]


def entry(home, job):
    return json.loads((jobs_folder(home) / str(job)).read_text())


def environment(home, socket_path=None, **more):
    env = {**os.environ, "XDG_RUNTIME_DIR": str(home), **more}
    env.pop("GPUARRAYD_SOCKET", None)
    return {**env, "GPUARRAYD_SOCKET": socket_path} if socket_path else env


def ctl(home, *words, socket_path=None, check=True, cwd=None, pass_fds=(), **more):
    """As another shell would: without the first one's GPUARRAYD_SOCKET."""
    done = subprocess.run([str(conftest.CTL), *map(str, words)], capture_output=True, text=True,
                          timeout=60, cwd=cwd, pass_fds=pass_fds,
                          env=environment(home, socket_path, **more))
    assert not check or done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
    return done


def submit(home, daemon, folder, expression=EXPRESSION, sources=("a.npy", "b.npy"), **more):
    """The number of a job over two files."""
    outputs = ("-o", "r=r.npy", "-o", "s=s.npy") if ";" in expression else ("-o", "s.npy")
    return int(ctl(home, "submit", expression, f"a={sources[0]}", f"b={sources[1]}", *outputs,
                   cwd=folder, socket_path=daemon.socket, **more).stdout)


def submit_long(home, daemon, folder, **more):
    """A job that takes minutes."""
    np.save(folder / "long.npy", np.zeros((1, 1 << 20)))
    np.save(folder / "high.npy", np.zeros((1 << 20, 1)))
    return submit(home, daemon, folder, sources=("long.npy", "high.npy"), **more)


def outputs_in(folder):
    return sorted(set(os.listdir(folder)) - {"a.npy", "b.npy", "c.npy", "long.npy", "high.npy"})


@functools.cache
def wanted_sum():
    return np.exp(np.sin(NUMBERS) * np.cos(NUMBERS.reshape(-1, 1))).sum()


def check_result(folder, n_times=1):
    """Of NUMBERS, n_times in a row."""
    assert np.array_equal(np.load(folder / "r.npy"), np.tile(NUMBERS, n_times) + 1)
    assert np.allclose(np.load(folder / "s.npy"), wanted_sum() * n_times**2, rtol=1e-12)
    assert sorted(os.listdir(folder)) == ["a.npy", "b.npy", "r.npy", "s.npy"]


def shell_words(line):
    return ["/bin/sh", "-c", f"{line}; sleep 60"]


def in_terminal(line, env, folder):
    """A shell on a terminal of its own; returns its first line and how to make the terminal go."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve("/bin/sh", shell_words(line), env)
    text = b""
    while b"\n" not in text:
        text += os.read(master, 100)

    def end():
        os.close(master)
        os.waitpid(pid, 0)

    return text, end


def in_group(line, env, folder, number):
    process = subprocess.Popen(shell_words(line), cwd=folder, env=env, stdout=subprocess.PIPE,
                               start_new_session=True)
    text = process.stdout.readline()

    def ended():
        """A shell that is about to become sleep may lose a signal: it gets another."""
        if process.poll() is None:
            os.killpg(process.pid, number)
        return process.poll() is not None

    def end():
        wait_for(ended)
        process.stdout.close()

    return text, end


@pytest.mark.parametrize("what", ["terminal", signal.SIGHUP, signal.SIGKILL, signal.SIGINT],
                         ids=["terminal closed", "hangup", "shell killed", "Ctrl-C"])
def test_the_shell_goes(daemon, home, folder, what):
    line = (f"{conftest.CTL} submit '{EXPRESSION}' a=a.npy b=b.npy -o r=r.npy -o s=s.npy")
    env = environment(home, daemon.socket)
    text, end = (in_terminal(line, env, folder) if what == "terminal"
                 else in_group(line, env, folder, what))
    job = int(text)
    assert not (folder / "r.npy").exists()
    end()
    assert json.loads(ctl(home, "status", job, "--json").stdout)["state"] != "cancelled"
    ctl(home, "wait", job)
    check_result(folder)
    wait_for(lambda: entry(home, job)["has_ended"])
    assert os.listdir(jobs_folder(home)) == [str(job)]


@pytest.mark.plain
def test_the_agent_keeps_nothing_that_it_does_not_need(daemon, home, folder):
    with open(folder / "a.npy") as extra:
        job = submit_long(home, daemon, folder, pass_fds=[extra.fileno()])
    agent = pathlib.Path(f"/proc/{entry(home, job)['pid']}")
    wait_for(lambda: os.readlink(agent / "cwd") == "/")
    links = [os.readlink(agent / "fd" / fd) for fd in os.listdir(agent / "fd")]
    assert links.count("/dev/null") == 3 and links.count(str(folder / "a.npy")) == 0
    assert not [link for link in links if link.startswith("pipe:")], links
    assert wait_for(lambda: (agent / "cmdline").read_bytes().rstrip(b"\0")
                    == b"gpuarrayctl: job %d" % job)
    assert (agent / "comm").read_text() == "gpuarrayctl\n"
    rollup = dict(line.split()[:2] for line in (agent / "smaps_rollup").read_text().splitlines()[1:])
    assert int(rollup["Private_Dirty:"]) < 4096 or conftest.IS_SANITIZED, rollup
    ctl(home, "cancel", job)
    assert ctl(home, "wait", job, check=False).returncode == 1
    wait_for(lambda: not agent.exists())
    assert outputs_in(folder) == []


def test_relative_destinations_keep_their_place(daemon, home, folder):
    (folder / "deep").mkdir()
    with h5py.File(folder / "deep/there.h5", "w") as f:
        f["other"] = np.arange(5)
    job = int(ctl(home, "submit", EXPRESSION, "a=a.npy", "b=b.npy", "-o", "r=deep/there.h5:/r",
                  "-o", "s=../" + folder.name + "/s.npy", cwd=folder,
                  socket_path=daemon.socket).stdout)
    ctl(home, "wait", job)
    with h5py.File(folder / "deep/there.h5") as f:
        assert sorted(f) == ["other", "r"] and np.array_equal(f["r"][:], NUMBERS + 1)
    assert sorted(os.listdir(folder)) == ["a.npy", "b.npy", "deep", "s.npy"]
    assert os.listdir(folder / "deep") == ["there.h5"]


def test_a_killed_agent(daemon, home, folder):
    job = submit_long(home, daemon, folder)
    pid = entry(home, job)["pid"]
    os.kill(pid, signal.SIGKILL)
    waited = ctl(home, "wait", job, check=False)
    assert waited.returncode == 1 and "process that submitted it is gone" in waited.stderr
    status = json.loads(ctl(home, "status", job, "--json").stdout)
    assert status["state"] == "cancelled" and status["error"]["code"] == "cancelled"
    assert "process that submitted it is gone" in status["error"]["message"]
    assert outputs_in(folder) == []


def test_the_outcomes_outlive_the_daemon(mortal, home, folder):
    np.save(folder / "c.npy", np.array([-1, 2]))
    done = submit(home, mortal, folder, "a + b * 0")
    failed = int(ctl(home, "submit", "2 ** c", "c=c.npy", "-o", "f.npy", cwd=folder,
                     socket_path=mortal.socket).stdout)
    killed = submit_long(home, mortal, folder)
    pid = entry(home, killed)["pid"]
    ctl(home, "wait", done)
    assert ctl(home, "wait", failed, check=False).returncode == 1
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: entry(home, done)["has_ended"] and entry(home, failed)["has_ended"])
    mortal.kill()
    assert ctl(home, "wait", done).stderr == ""
    for job, word in ((failed, "negative-integer-power"), (killed, f"{pid} was killed")):
        waited = ctl(home, "wait", job, check=False)
        assert waited.returncode == 1 and word in waited.stderr
        assert word in ctl(home, "status", job).stdout
    listed = [j for j in json.loads(ctl(home, "jobs", "--json").stdout)
              if j["job"] in (done, failed, killed)]
    assert [(j["job"], j["state"]) for j in listed] == [(done, "done"), (failed, "failed"),
                                                        (killed, "cancelled")]
    assert listed[0]["write_bytes"] > 0 and "a + b * 0" in ctl(home, "jobs").stdout
    ctl(home, "cancel", done)
    assert outputs_in(folder) == ["s.npy"]


def test_the_daemon_restarts_under_the_agent(mortal, start, home, folder):
    numbers = np.tile(NUMBERS, 2)
    np.save(folder / "a.npy", numbers)
    np.save(folder / "b.npy", numbers.reshape(-1, 1))
    job = submit(home, mortal, folder)
    waiting = subprocess.Popen([conftest.CTL, "wait", str(job)], env=environment(home),
                               stderr=subprocess.PIPE, text=True)
    wait_for(lambda: mortal.counts()["jobs_running"] and mortal.counts()["sessions"] == 3)
    mortal.kill()
    assert json.loads(ctl(home, "status", job, "--json").stdout)["state"] == "reconnecting"
    timed = ctl(home, "wait", job, "--timeout", "0.1", check=False)
    assert timed.returncode == 4 and "on its way back" in timed.stderr
    second = start(args=["--socket", mortal.socket])
    wait_for(lambda: entry(home, job)["present"] not in (0, job))
    present = entry(home, job)["present"]
    assert present > job
    status = json.loads(ctl(home, "status", job, "--json").stdout)
    assert status["job"] == job and status["state"] in ("queued", "running", "settling", "done")
    listed = json.loads(ctl(home, "jobs", "--json", socket_path=mortal.socket).stdout)
    assert [j["job"] for j in listed] == [job]
    assert json.loads(ctl(home, "status", present, "--json").stdout)["job"] == job
    ctl(home, "wait", job)
    assert waiting.communicate(timeout=20)[1] == "" and waiting.returncode == 0
    check_result(folder, 2)
    assert second.process.poll() is None


def test_daemons_are_killed_again_and_again_under_jobs(mortal, start, home, folder):
    """Each ends under the number first given; one that had ended is not computed again. On a quick machine
    some of them end before the first kill."""
    done = submit(home, mortal, folder, "a + b * 0")
    ctl(home, "wait", done)
    before = os.stat(folder / "s.npy")
    jobs = {}
    for k in range(1, 4):
        jobs[k] = int(ctl(home, "submit", f"a*{k} + 0*sum(exp(sin(a) * cos(b)))", "a=a.npy", "b=b.npy",
                          "-o", f"r{k}.npy", cwd=folder, socket_path=mortal.socket).stdout)
    daemons = [mortal]
    for pause in (0.02, 0.15, 0.3):
        time.sleep(pause)
        daemons[-1].kill()
        daemons.append(conftest.Daemon(args=["--socket", mortal.socket]))
        wait_for(lambda: all(one["has_ended"] or one["present"] not in (0, job)
                             for job in jobs.values() for one in [entry(home, job)]), 60)
    ctl(home, "wait", *jobs.values())
    assert any(entry(home, job)["present"] != job for job in jobs.values())
    listed = json.loads(ctl(home, "jobs", "--json", socket_path=mortal.socket).stdout)
    assert [(j["job"], j["state"]) for j in listed] == [(job, "done") for job in (done, *jobs.values())]
    for k in jobs:
        np.testing.assert_array_equal(np.load(folder / f"r{k}.npy"), NUMBERS * k)
    after = os.stat(folder / "s.npy")
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    daemons[-1].socket = mortal.socket
    for daemon in daemons[1:]:
        daemon.kill()
        daemon.log.close()
        shutil.rmtree(daemon.dir, ignore_errors=True)


def test_cancel_while_the_daemon_is_away(mortal, home, folder):
    job = submit_long(home, mortal, folder)
    mortal.kill()
    ctl(home, "cancel", job)
    wait_for(lambda: entry(home, job)["has_ended"], 5)
    waited = ctl(home, "wait", job, check=False)
    assert waited.returncode == 1 and "cancelled" in waited.stderr
    assert outputs_in(folder) == []


def test_an_explicit_socket_decides(daemon, start, home, folder):
    job = submit(home, daemon, folder, "a + b * 0")
    ctl(home, "wait", job)
    other = start()
    done = ctl(home, "status", job, socket_path=other.socket, check=False)
    assert done.returncode == 1 and "unknown-job" in done.stderr
    assert json.loads(ctl(home, "jobs", "--json", socket_path=other.socket).stdout) == []
    assert json.loads(ctl(home, "jobs", "--json", socket_path=daemon.socket).stdout) != []


def test_a_number_that_a_living_agent_goes_by_is_not_given_again(daemon, home, folder):
    first = submit(home, daemon, folder, "a + b * 0")
    ctl(home, "wait", first)
    jobs = jobs_folder(home)
    taken = {**entry(home, first), "first": first + 1, "present": first + 100, "has_ended": False}
    living = subprocess.Popen(["sleep", "60"])
    (jobs / str(first + 1)).write_text(json.dumps(
        {**taken, "pid": living.pid, "pid_start": process_start(living.pid)}))
    dead = {**taken, "pid": living.pid, "pid_start": 1, "first": first + 3}
    (jobs / str(first + 3)).write_text(json.dumps(dead))
    second = submit(home, daemon, folder, "a + b * 0")
    assert second == first + 2
    third = submit(home, daemon, folder, "a + b * 0")
    assert third == first + 3 and entry(home, third)["pid"] != living.pid
    ctl(home, "wait", second, third)
    living.kill()
    living.wait()


def test_an_entry_from_before_the_machine_started(daemon, home, folder):
    """Its present number may be given again, to another job."""
    job = submit_long(home, daemon, folder)
    old = {**entry(home, job), "first": 17, "pid_start": 1, "boot": "another", "has_ended": True,
           "last": {"state": "done", "label": "old"}}
    (jobs_folder(home) / "17").write_text(json.dumps(old))
    listed = json.loads(ctl(home, "jobs", "--json", socket_path=daemon.socket).stdout)
    states = {j["job"]: j["state"] for j in listed}
    assert states[17] == "done" and states[job] in ("queued", "running")
    assert json.loads(ctl(home, "status", 17, "--json").stdout)["state"] == "done"
    ctl(home, "cancel", 17)
    time.sleep(0.3)
    assert json.loads(ctl(home, "status", job, "--json").stdout)["state"] in ("queued", "running")
    ctl(home, "cancel", job)
    assert ctl(home, "wait", job, check=False).returncode == 1


def test_a_list_without_the_daemon_of_jobs_that_are_over(mortal, home, folder):
    """A daemon that hangs is not asked for each of them."""
    job = submit(home, mortal, folder, "a + b * 0")
    ctl(home, "wait", job)
    wait_for(lambda: entry(home, job)["has_ended"])
    for other in range(100, 140):
        text = json.dumps({**entry(home, job), "first": other, "present": other})
        (jobs_folder(home) / str(other)).write_text(text)
    os.kill(mortal.process.pid, signal.SIGSTOP)
    begin = time.monotonic()
    listed = json.loads(ctl(home, "jobs", "--json").stdout)
    assert time.monotonic() - begin < 5
    assert {*range(100, 140), job} <= {j["job"] for j in listed if j["state"] == "done"}


def test_a_killed_agent_whose_results_may_be_in_their_place(daemon, home, folder):
    job = submit(home, daemon, folder)
    pid = entry(home, job)["pid"]
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: json.loads(ctl(home, "status", job, "--json").stdout)["state"] == "settling")
    os.kill(pid, signal.SIGKILL)
    waited = ctl(home, "wait", job, check=False)
    assert waited.returncode == 3 and "[outcome-unknown]" in waited.stderr
    assert outputs_in(folder) == []


def test_a_relative_socket_when_the_daemon_restarts(mortal, start, home, folder):
    relative = os.path.relpath(mortal.socket, folder)
    job = int(ctl(home, "submit", EXPRESSION, "a=a.npy", "b=b.npy", "-o", "r=r.npy", "-o", "s=s.npy",
                  cwd=folder, socket_path=relative).stdout)
    mortal.kill()
    start(args=["--socket", mortal.socket])
    ctl(home, "wait", job)
    check_result(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_a_full_registry_tells_no_lies(mortal, home, folder):
    """The outcome cannot be noted beside the old text, but in its place."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", home]
    if subprocess.run(["unshare", "-m", *mount], capture_output=True).returncode:
        pytest.skip("mounts are not allowed here")
    subprocess.run(mount, check=True)
    try:
        job = submit(home, mortal, folder)
        fill = os.open(home / "fill", os.O_WRONLY | os.O_CREAT)
        with pytest.raises(OSError):
            while True:
                os.write(fill, bytes(4096))
        os.close(fill)
        pid = entry(home, job)["pid"]
        ctl(home, "wait", job, socket_path=mortal.socket)
        wait_for(lambda: process_start(pid) == 0)
        mortal.kill()
        ctl(home, "wait", job)
        assert entry(home, job)["last"]["state"] == "done"
    finally:
        subprocess.run(["umount", "-l", home], check=True)
    check_result(folder)


def test_the_registry_is_swept_and_private(daemon, home, folder):
    submit(home, daemon, folder, "a + b * 0")
    jobs = jobs_folder(home)
    assert (jobs.stat().st_mode & 0o777, jobs.parent.stat().st_mode & 0o777) == (0o700, 0o700)
    old = time.time() - 2 * 86400
    for name, text in (("17", '{"first": 17, "present": 17, "has_ended": true}'), (".18.4711", "{"),
                       ("19", "no JSON"), ("20", "{}")):
        (jobs / name).write_text(text)
        os.utime(jobs / name, (old, old))
    (jobs / "21").write_text('{"first": 21, "present": 21, "pid": 1, "pid_start": 1}')
    (jobs / "22").write_text("[1, 2]")
    job = submit(home, daemon, folder, "a + b * 0")
    ctl(home, "wait", job)
    assert {"17", ".18.4711", "19", "20"}.isdisjoint(os.listdir(jobs))
    assert {"21", "22", str(job)} <= set(os.listdir(jobs))
    assert "1 was killed" in ctl(home, "status", 21).stdout
    assert ctl(home, "status", 22, socket_path=daemon.socket, check=False).returncode == 1
    wait_for(lambda: entry(home, job)["has_ended"])


def test_a_registry_that_others_could_write_is_not_used(daemon, home, folder):
    (home / "gpuarrayd").mkdir(mode=0o700)
    os.chmod(home / "gpuarrayd", 0o770)
    job = submit(home, daemon, folder)
    ctl(home, "wait", job, socket_path=daemon.socket)
    check_result(folder)
    assert os.listdir(home / "gpuarrayd") == []


@pytest.fixture
def manager(home):
    """What is there when the user lingers and has a service manager, and a systemd-run that the test
    writes."""
    lingers = pathlib.Path("/var/lib/systemd/linger") / pwd.getpwuid(os.geteuid()).pw_name
    is_made = not lingers.exists()
    if is_made and os.geteuid() != 0:
        pytest.skip("lingering needs root")
    lingers.parent.mkdir(parents=True, exist_ok=True)
    lingers.touch()
    (home / "systemd").mkdir()
    (home / "bin").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home / "systemd/private"))

        def program(text):
            path = home / "bin/systemd-run"
            path.write_text("#!/bin/sh\n" + text)
            path.chmod(0o755)
            return {"PATH": f"{home}/bin:{os.environ['PATH']}"}

        yield program
    if is_made:
        lingers.unlink()


def test_in_a_scope_of_the_users_manager(daemon, home, folder, manager):
    name = "a $HOME; ${USER} %i.npy"
    os.rename(folder / "a.npy", folder / name)
    env = manager(f'echo "$@" >{home}/words; while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
    job = int(ctl(home, "submit", EXPRESSION, f"a={name}", "b=b.npy", "-o", "r=r.npy", "-o",
                  "s=s.npy", "-l", "in a scope", cwd=folder, socket_path=daemon.socket, **env).stdout)
    assert "--user --scope --collect --quiet" in (home / "words").read_text()
    assert entry(home, job)["last"]["label"] == "in a scope"
    ctl(home, "wait", job)
    os.rename(folder / name, folder / "a.npy")
    check_result(folder)
    refused = ctl(home, "submit", "a + q", "a=a.npy", "-o", "t.npy", cwd=folder, check=False,
                  socket_path=daemon.socket, **env)
    assert refused.returncode == 1 and "unknown-name" in refused.stderr


@pytest.mark.parametrize("text", ["exit 1", "echo no bus >&2; kill -9 $$"])
def test_a_manager_that_does_not_answer(daemon, home, folder, manager, text):
    job = submit(home, daemon, folder, **manager(text))
    ctl(home, "wait", job)
    check_result(folder)
