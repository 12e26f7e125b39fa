"""gpuarrayctl doctor: each finding is provoked, as text and as JSON."""

import grp
import json
import os
import pathlib
import pwd
import re
import resource
import shlex
import signal
import socket
import subprocess
import tempfile

import pytest

import conftest

CHECKS = ["locked memory", "descriptors", "address space", "shared memory", "overcommit", "cgroup",
          "socket", "group", "daemon", "gpu", "libraries", "environment", "files", "page cache",
          "login"]
PINS = re.compile(r"(OPENBLAS|MKL|OMP|HDF5)_")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="other users and mounts need root")


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-") as path:
        os.chmod(path, 0o755)
        yield pathlib.Path(path)


def doctor(socket_path, *words, limits="", folder=None, user=None, **more):
    """Its findings by check, its exit code, and its text; one run for each form."""
    env = {name: value for name, value in os.environ.items() if not PINS.match(name)}
    env = {**env, "GPUARRAYD_DAEMON": str(conftest.DAEMON), **more}
    env.pop("GPUARRAYD_SOCKET", None)
    if socket_path:
        env["GPUARRAYD_SOCKET"] = str(socket_path)
    prefix = f"{limits}; " if limits else ""
    outcomes = []
    for form in ([], ["--json"]):
        line = prefix + "exec " + shlex.join([str(conftest.CTL), "doctor", *map(str, words), *form])
        outcomes.append(subprocess.run(["bash", "-c", line], capture_output=True, text=True,
                                       timeout=60, env=env, cwd=folder, **(user or {})))
    text, as_json = outcomes
    assert text.stderr == as_json.stderr == "" and text.returncode == as_json.returncode
    answer = json.loads(as_json.stdout)
    found = {}
    for finding in answer["findings"]:
        found.setdefault(finding["check"], []).append(finding)
        assert ("advice" in finding) == (finding["level"] != "ok"), finding
        line = f"{finding['level']:8} {finding['check']:14} "
        assert line in text.stdout and f"try: {finding.get('advice', '')}" in text.stdout
    for level in ("ok", "note", "warning", "problem"):
        assert answer[level] == sum(f["level"] == level for f in answer["findings"])
    assert text.returncode == (1 if answer["problem"] else 0)
    assert f"{answer['problem']} problem" in text.stdout.splitlines()[-1]
    return found


def one(findings, level, words):
    """Exactly one finding of the level says it."""
    got = [f for f in findings if f["level"] == level and words in f["found"]]
    assert len(got) == 1, findings
    return got[0].get("advice", "")


def test_all_is_well(daemon, folder):
    found = doctor(daemon.socket, folder=folder)
    assert list(found) == CHECKS
    assert not [f for fs in found.values() for f in fs if f["level"] == "problem"]
    one(found["socket"], "ok", f"{daemon.socket}, mode 0660, served by ")
    one(found["daemon"], "ok", "gpuarrayd 0.1.0 answers (named by GPUARRAYD_SOCKET), pool 8.39 MB")
    one(found["files"], "ok", f"{folder} (this folder): ")
    one(found["environment"], "ok", "no variable pins")
    assert re.fullmatch(r"HDF5 \d+\.\d+\.\d+, .*thread-safe.*", found["libraries"][0]["found"])
    assert [f["found"].split()[0] for f in found["libraries"]] == ["HDF5", "msgpack", "json-c"]
    if not os.path.exists("/proc/driver/nvidia/version"):
        one(found["gpu"], "ok", "no NVIDIA driver")
    assert os.listdir(folder) == []


@pytest.mark.plain
@pytest.mark.parametrize("limits, check, level, words, advice", [
    ("ulimit -l 0", "locked memory", "note", "only 0 B may be locked", "limits.conf"),
    ("ulimit -S -l 0", "locked memory", "note", "only 0 B may be locked (hard limit", ""),
    ("ulimit -n 64", "descriptors", "warning", "only 64 descriptors", "limits.conf to 1024"),
    ("ulimit -S -n 64", "descriptors", "warning", "only 64 descriptors", "ulimit -n 1024"),
    ("ulimit -v 2000000", "address space", "warning", "2.05 GB of address space", "unlimited"),
])
def test_limits(daemon, limits, check, level, words, advice):
    if conftest.IS_SANITIZED and "-v" in limits:
        pytest.skip("sanitizers reserve more address space")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if limits == "ulimit -S -n 64" and hard != resource.RLIM_INFINITY and hard < 1024:
        pytest.skip("the hard limit is low")
    found = doctor(daemon.socket, limits=limits)
    assert advice in one(found[check], level, words)


@pytest.mark.parametrize("variable, level", [
    ("OPENBLAS_CORETYPE", "warning"), ("OPENBLAS_L2_SIZE", "warning"), ("OMP_NUM_THREADS", "note"),
    ("OPENBLAS_NUM_THREADS", "note"), ("MKL_NUM_THREADS", "note"), ("MKL_CBWR", "note"),
    ("HDF5_USE_FILE_LOCKING", "note"), ("HDF5_PLUGIN_PATH", "note"),
    ("HDF5_DISABLE_VERSION_CHECK", "warning")])
def test_an_environment_that_pins(daemon, variable, level):
    found = doctor(daemon.socket, **{variable: "1"})
    one(found["environment"], level, f"{variable}=1 ")
    assert len(found["environment"]) == 1


def test_no_socket_where_one_is_named(folder):
    found = doctor(folder / "socket")
    assert "GPUARRAYD_SOCKET" in one(found["socket"], "problem", f"no socket {folder}/socket")
    assert "GPUARRAYD_SOCKET" in one(found["daemon"], "problem", "no daemon listens")


def test_no_service_and_no_private_daemon(folder):
    if os.path.exists("/run/gpuarrayd/socket"):
        pytest.skip("a service runs here")
    (folder / "run").mkdir(mode=0o700)
    found = doctor(None, XDG_RUNTIME_DIR=str(folder / "run"))
    assert "systemctl" in one(found["socket"], "note", f"{folder}/run/gpuarrayd/socket")
    one(found["daemon"], "ok", "the first job starts a private one")
    assert not (folder / "run/gpuarrayd/socket").exists()
    found = doctor(None, XDG_RUNTIME_DIR=str(folder / "run"), GPUARRAYD_DAEMON="/nowhere")
    assert "GPUARRAYD_DAEMON" in one(found["daemon"], "problem", "/nowhere")


def test_a_private_folder_that_is_open_to_others(folder):
    if os.path.exists("/run/gpuarrayd/socket"):
        pytest.skip("a service runs here")
    private = folder / "run/gpuarrayd"
    private.mkdir(parents=True)
    private.parent.chmod(0o700)
    private.chmod(0o777)
    found = doctor(None, XDG_RUNTIME_DIR=str(folder / "run"))
    advice = one(found["daemon"], "problem", f"{private} is open to other users [untrusted-server]")
    assert f"ls -ld {private}'" in advice


def test_a_socket_that_nobody_serves(folder):
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "socket"))
        found = doctor(folder / "socket")
    one(found["socket"], "problem", "nobody listens on")
    one(found["daemon"], "problem", "no daemon listens")


def test_a_path_that_is_no_socket(folder):
    (folder / "socket").write_text("")
    found = doctor(folder / "socket")
    assert "GPUARRAYD_SOCKET" in one(found["socket"], "problem", "is no socket")


def test_a_daemon_that_does_not_answer(folder):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(folder / "socket"))
        silent.listen(8)
        done = subprocess.run([conftest.CTL, "doctor"], capture_output=True, text=True, timeout=30,
                              env={**os.environ, "GPUARRAYD_SOCKET": str(folder / "socket")})
    assert done.returncode == 1 and re.search(r"^problem  daemon .*\[timeout\]$", done.stdout, re.M)
    assert f"{folder}/socket is there" in done.stdout


NOBODY = pwd.getpwnam("nobody")
AS_NOBODY = {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []}


@needs_root
def test_a_socket_that_is_closed_to_the_user(start):
    daemon = start(user=NOBODY.pw_uid)
    os.chmod(daemon.socket, 0)
    found = doctor(daemon.socket, user=AS_NOBODY, folder="/")
    one(found["socket"], "problem", f"you may not use {daemon.socket}: mode 0000")
    one(found["daemon"], "problem", "permission-denied")
    os.chmod(daemon.dir, 0o700)
    found = doctor(daemon.socket, user=AS_NOBODY, folder="/")
    one(found["socket"], "problem", f"the folder of {daemon.socket} is closed")


@needs_root
def test_groups(start):
    daemon = start(user=NOBODY.pw_uid)
    daemon_group = grp.getgrnam("daemon").gr_gid
    os.chown(daemon.socket, 0, daemon_group)
    os.chmod(daemon.socket, 0o660)
    found = doctor(daemon.socket, user=AS_NOBODY, folder="/")
    assert "usermod -aG daemon nobody" in one(found["group"], "note", "not in the group 'daemon'")
    assert "usermod -aG daemon nobody" in one(found["socket"], "problem", "you may not use")
    found = doctor(daemon.socket, user={**AS_NOBODY, "extra_groups": [daemon_group]}, folder="/")
    one(found["group"], "ok", "in the group 'daemon'")
    one(found["socket"], "ok", "served by root")
    os.chown(daemon.socket, 0, NOBODY.pw_gid)
    found = doctor(daemon.socket, user={**AS_NOBODY, "group": daemon_group}, folder="/")
    assert "log in again" in one(found["group"], "warning", "this login began before")


@needs_root
def test_a_socket_of_somebody_else(start):
    daemon = start(user=NOBODY.pw_uid)
    os.chown(daemon.socket, 1, 1)
    os.chmod(daemon.socket, 0o666)
    found = doctor(daemon.socket, user=AS_NOBODY, folder="/")
    one(found["socket"], "problem", "belongs to user 1, neither root")


def test_a_worker_that_was_replaced(start):
    daemon = start()
    os.kill(daemon.worker_pid(), signal.SIGKILL)
    daemon.wait_for_restarts(1)
    one(doctor(daemon.socket)["daemon"], "warning", "the worker of engine cpu was replaced 1 times")


def test_file_systems(daemon, folder):
    found = doctor(daemon.socket, "/proc", folder / "nothing", folder=folder)["files"]
    assert "copy" in one(found, "warning", "/proc: proc, files that the kernel makes up")
    one(found, "problem", "nothing: No such file or directory")
    (folder / "home").mkdir()
    found = doctor(daemon.socket, folder=folder, HOME=str(folder / "home"),
                   TMPDIR=str(folder / "home"))["files"]
    one(found, "ok", f"{folder}/home (HOME): ")
    one(found, "ok", f"{folder}/home (TMPDIR): ")


@needs_root
@pytest.mark.parametrize("kind, options, level, words", [
    ("ramfs", "", "note", "ramfs, needs a provider"),
    ("tmpfs", "size=1m", "warning", "tmpfs, only 1.05 MB free"),
    ("tmpfs", "ro", "note", "tmpfs, mounted read-only"),
])
def test_mounts(daemon, folder, kind, options, level, words):
    mount = f"mount -t {kind} {f'-o {options}' if options else ''} none {folder}"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("mounts are not allowed here")
    command = f"{mount} && exec {conftest.CTL} doctor --json {folder}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", command], capture_output=True, text=True,
                          cwd="/", env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})
    found = [f for f in json.loads(done.stdout)["findings"] if f["check"] == "files"]
    one(found, level, f"{folder}: {words}")
    assert done.returncode == 0


@needs_root
def test_nothing_is_written_where_it_could_hang(daemon, folder):
    mount = f"mount -t ramfs none {folder}"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("mounts are not allowed here")
    command = f"{mount} && cd {folder} && exec {conftest.CTL} doctor --json"
    done = subprocess.run(["unshare", "-m", "sh", "-c", command], capture_output=True, text=True,
                          env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket,
                               "TMPDIR": str(folder)})
    found = [f for f in json.loads(done.stdout)["findings"] if f["check"] == "page cache"]
    assert len(found) == 1 and "this folder" not in found[0]["found"]
    assert str(folder) not in found[0]["found"]


def test_words(daemon):
    assert "doctor /data/winds.h5" in daemon.ctl("doctor", "--help").stdout
    done = daemon.ctl("doctor", "--jsno", check=False)
    assert done.returncode == 2 and "--json" in done.stderr
