"""The service's units: well formed, closed as far as they can be, and a daemon that works so."""

import os
import re
import shutil
import subprocess

import numpy as np
import pytest

import conftest
import wire

UNITS = conftest.TOP / "systemd"
ANALYZE = shutil.which("systemd-analyze")
UNDER_RULES = conftest.BUILD / "tests/integration/under-rules"
SERVICE_UID = 64997  # of nobody in particular
MOST_EXPOSED = 1.0

needs_systemd = pytest.mark.skipif(not ANALYZE, reason="there is no systemd-analyze")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="name spaces and other users need root")


def settings(name, text=None):
    """[(key, value)] of a unit, continued lines joined."""
    text = text or (UNITS / name).read_text()
    return re.findall(r"^(\w+)=(.*)$", text.replace("\\\n", ""), re.M)


@pytest.fixture
def units(installed, folder):
    """Folder of the installed units of a manager, with the installed program's present place."""
    def copy(manager):
        places = [p for p in installed.root.rglob("gpuarrayd.s*") if p.parent.name == manager]
        assert {p.name for p in places} == {"gpuarrayd.service", "gpuarrayd.socket"}
        for place in places:
            text = place.read_text()
            assert "@" not in re.sub(r"@(system-service|privileged|resources)\b", "", text)
            (folder / place.name).write_text(
                text.replace(f"={installed.path('bindir')}/", f"={installed.at('bindir')}/"))
        return folder
    return copy


def analyze(*words, **env):
    return subprocess.run([ANALYZE, *map(str, words)], capture_output=True, text=True,
                          env={**os.environ, "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "", **env})


@needs_systemd
@pytest.mark.parametrize("manager", ["system", "user"])
def test_the_units_are_well_formed(units, manager, tmp_path):
    folder = units(manager)
    done = analyze(f"--{manager}", "verify", "--man=no", "--recursive-errors=no",
                   folder / "gpuarrayd.service", folder / "gpuarrayd.socket",
                   XDG_RUNTIME_DIR=str(tmp_path))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@needs_systemd
def test_a_mistake_in_a_unit_is_seen(units, tmp_path):
    folder = units("system")
    unit = folder / "gpuarrayd.service"
    unit.write_text(unit.read_text().replace("PrivateTmp=yes", "PrivateTemp=yes"))
    done = analyze("verify", "--man=no", "--recursive-errors=no", unit)
    assert "PrivateTemp" in done.stdout + done.stderr


def exposure(unit, *words):
    done = analyze("security", "--offline=true", "--no-pager", *words, unit)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    return float(found[1])


@needs_systemd
def test_the_service_is_exposed_to_next_to_nothing(units):
    assert exposure(units("system") / "gpuarrayd.service") <= MOST_EXPOSED


@needs_systemd
def test_the_devices_of_nvidia_open_it_hardly_more(units):
    folder = units("system")
    unit = folder / "gpuarrayd.service"
    unit.write_text(unit.read_text() + (UNITS / "50-nvidia.conf").read_text())
    done = analyze("verify", "--man=no", "--recursive-errors=no", unit)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert exposure(unit) <= MOST_EXPOSED


@pytest.mark.parametrize("name", ["gpuarrayd.service.in", "user/gpuarrayd.service.in"])
def test_the_users_at_the_socket_stay_who_they_are(name):
    # Also what a user's manager would make a user name space for.
    values = dict(settings(name))
    assert "PrivateUsers" not in values and "DynamicUser" not in values
    if name.startswith("user/"):
        assert not [key for key in values if key.startswith(("Protect", "Private"))]


def test_socket_and_service_fit_together():
    service, listens = dict(settings("gpuarrayd.service.in")), dict(settings("gpuarrayd.socket"))
    assert listens["ListenStream"] == "/run/gpuarrayd/socket"
    assert (listens["SocketGroup"], listens["SocketMode"]) == (service["Group"], "0660")
    assert (service["Type"], service["NotifyAccess"]) == ("notify", "main")
    # The socket lies in the directory that a stopping service would take away.
    assert service["RuntimeDirectoryPreserve"] == "yes"
    private = dict(settings("user/gpuarrayd.socket"))
    assert (private["DirectoryMode"], private["SocketMode"]) == ("0700", "0600")


@needs_root
@pytest.mark.skipif(not shutil.which("systemd-sysusers"), reason="there is no systemd-sysusers")
def test_user_group_and_directory_are_made(installed, folder):
    (folder / "etc").mkdir()
    for tool, kind in (("systemd-sysusers", "sysusers.d"), ("systemd-tmpfiles", "tmpfiles.d")):
        place, = [p for p in installed.root.rglob("gpuarrayd.conf") if p.parent.name == kind]
        words = ["--create"] if kind == "tmpfiles.d" else []
        done = subprocess.run([tool, *words, f"--root={folder}", str(place)], capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
    user = [line.split(":") for line in (folder / "etc/passwd").read_text().splitlines()
            if line.startswith("gpuarrayd:")]
    group = [line.split(":") for line in (folder / "etc/group").read_text().splitlines()
             if line.startswith("gpuarrayd:")]
    assert len(user) == len(group) == 1 and user[0][3] == group[0][2]
    assert user[0][5] == "/" and user[0][6].endswith("/nologin")
    made = (folder / "run/gpuarrayd").stat()
    assert (made.st_uid, made.st_gid) == (int(user[0][2]), int(group[0][2]))
    assert made.st_mode & 0o777 == 0o755


def oom_score_adj(pid):
    return int(open(f"/proc/{pid}/oom_score_adj").read())


def test_the_worker_is_the_first_to_die_when_memory_is_short(daemon):
    with daemon.connect() as w:
        w.compute("a + 1", a=np.arange(3))  # the worker is ready
    broker, worker = oom_score_adj(daemon.process.pid), oom_score_adj(daemon.worker_pid())
    assert worker > broker or broker == 1000


def allowed_calls():
    """The system calls that SystemCallFilter= leaves, by systemd's own sets."""
    sets, name = {}, None
    for line in analyze("syscall-filter").stdout.splitlines():
        if line.startswith("@"):
            name = line.strip()
            sets[name] = []
        elif name and line.startswith(" ") and not line.strip().startswith("#"):
            sets[name].append(line.strip())

    def members(word):
        if not word.startswith("@"):
            return {word}
        return set().union(*(members(w) for w in sets[word]))

    allowed = members("@default")
    for value in [v for k, v in settings("gpuarrayd.service.in") if k == "SystemCallFilter"]:
        for word in value.lstrip("~").split():
            allowed = allowed - members(word) if value.startswith("~") else allowed | members(word)
    return allowed


# Before the daemon is itself: the mounts of the unit, with the socket's folder left writable.
MOUNTS = """
for word; do
    if [ "$before" = --socket ]; then folder=${word%/*}; fi
    before=$word
done
chown "$UID_OF_SERVICE" "$folder"
mount --bind "$folder" "$folder"
mount -o remount,bind,ro /
mount -t proc -o hidepid=invisible proc /proc
exec "$@"
"""


@pytest.fixture
def restricted(installed, folder, start):
    """A daemon from which everything is taken that the unit takes, as far as that goes without a
    service manager: user, capabilities, network, mounts, system calls."""
    calls = folder / "calls"
    calls.write_text("\n".join(sorted(allowed_calls())))
    assert {"execve", "memfd_create", "preadv2"} <= set(calls.read_text().split())
    shutil.copy(UNDER_RULES, folder)
    folder.chmod(0o755)
    daemon = start(
        user=SERVICE_UID, program=installed.at("bindir") / "gpuarrayd", pool="4M",
        worker=installed.at("libexecdir") / "gpuarrayd/gpuarrayd-worker-cpu",
        env={"UID_OF_SERVICE": str(SERVICE_UID)},
        under=["unshare", "--net", "--ipc", "--mount", "sh", "-euc", "before=" + MOUNTS, "sh",
               "setpriv", "--reuid", SERVICE_UID, "--regid", SERVICE_UID, "--clear-groups",
               "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all",
               folder / "under-rules", calls])
    os.chmod(daemon.socket, 0o666)
    return daemon


def status_of(pid):
    return dict(re.findall(r"^(\w+):[ \t]*(.*)$", open(f"/proc/{pid}/status").read(), re.M))


@needs_systemd
@needs_root
@pytest.mark.skipif(not UNDER_RULES.exists(), reason="built without libseccomp")
def test_the_daemon_works_with_no_more_than_the_unit_leaves_it(restricted, folder):
    before = restricted.counts()
    for pid in (restricted.process.pid, restricted.worker_pid()):
        status = status_of(pid)
        assert set(status["Uid"].split()) == {str(SERVICE_UID)} and status["Groups"] == ""
        assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        assert os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
    assert oom_score_adj(restricted.worker_pid()) > oom_score_adj(restricted.process.pid)

    a = np.arange(1 << 20, dtype="f4")
    source, target = folder / "a.raw", folder / "r.raw"
    a.tofile(source)
    target.write_bytes(bytes(a.nbytes))
    with restricted.connect() as w, open(source, "rb") as of_root, open(target, "r+b") as result:
        # Of files that the daemon's user could never open, on mounts that are not its own.
        source.chmod(0o600)
        w.run("a * 2", fds=[of_root.fileno(), result.fileno()], a=wire.described(a, wire.file_at(0)),
              to=wire.described(a, wire.file_at(1)))
        np.testing.assert_array_equal(np.fromfile(target, "f4"), a * 2)
        region = wire.Region(w, 2 * a.nbytes)
        region.array("f4", a.shape)[:] = a
        w.run("sqrt(a)", a=wire.described(a, region.at()),
              to=wire.described(a, region.at(a.nbytes)))
        np.testing.assert_array_equal(region.array("f4", a.shape, a.nbytes), np.sqrt(a))
        # A worker that died is replaced under the same rules.
        os.kill(restricted.worker_pid(), 9)
        restricted.wait_for_restarts(1)
        assert w.compute("a + 1", a=a[:10])[9] == 10
    restricted.wait_for_counts(before)


@pytest.fixture
def btrfs(folder):
    """A folder on a subvolume of a small btrfs."""
    if not shutil.which("mkfs.btrfs"):
        pytest.skip("there is no mkfs.btrfs")
    image, place = folder / "image", folder / "btrfs"
    with open(image, "wb") as f:
        f.truncate(128 << 20)
    place.mkdir()
    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True, capture_output=True)
    done = subprocess.run(["mount", "-o", "loop", str(image), str(place)], capture_output=True,
                          text=True)
    if done.returncode != 0:
        pytest.skip("no btrfs can be mounted here: " + done.stderr.strip())
    try:
        subprocess.run(["btrfs", "subvolume", "create", str(place / "sub")], check=True,
                       capture_output=True)
        yield place / "sub"
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)  # a daemon may be closing files


@needs_root
def test_files_on_subvolumes_of_btrfs_are_known_in_another_mount_name_space(start, btrfs):
    daemon = start(under=["unshare", "--mount"])
    a = np.arange(1000, dtype="f4")
    a.tofile(btrfs / "a.raw")
    with daemon.connect() as w, open(btrfs / "a.raw", "rb") as f:
        reply = w.run("a + 1", fds=[f.fileno()], a=wire.described(a, wire.file_at(0)))
        np.testing.assert_array_equal(wire.result_array(reply["outputs"][0]), a + 1)


@needs_systemd
@needs_root
@pytest.mark.skipif(not UNDER_RULES.exists(), reason="built without libseccomp")
def test_the_command_works_with_a_restricted_daemon(restricted, installed, folder):
    a = np.random.default_rng(4).normal(size=(500, 300))
    np.save(folder / "a.npy", a)
    folder.chmod(0o777)
    subprocess.run(["setpriv", "--reuid", str(SERVICE_UID), "--regid", str(SERVICE_UID),
                    "--clear-groups", str(installed.at("bindir") / "gpuarrayctl"), "run",
                    "exp(a)", "a=a.npy", "-o", "r.npy"], check=True, cwd=folder,
                   env=installed.environment(GPUARRAYD_SOCKET=restricted.socket))
    np.testing.assert_allclose(np.load(folder / "r.npy"), np.exp(a), rtol=1e-15)


@needs_systemd
@needs_root
@pytest.mark.skipif(not UNDER_RULES.exists(), reason="built without libseccomp")
def test_the_rules_of_these_tests_forbid_what_they_should(folder):
    calls = folder / "calls"
    calls.write_text("\n".join(sorted(allowed_calls())))
    asks = ("import socket, os, mmap\n"
            "def refused(call, *words, **more):\n"
            "    try: call(*words, **more)\n"
            "    except OSError: return True\n"
            "    return False\n"
            "print(refused(socket.socket, socket.AF_INET), refused(socket.socket, socket.AF_UNIX),\n"
            "      refused(mmap.mmap, -1, 4096, prot=7), refused(mmap.mmap, -1, 4096, prot=3),\n"
            "      refused(os.chown, '.', 0, 0), refused(os.chroot, '.'))\n")
    done = subprocess.run([UNDER_RULES, calls, "/usr/bin/python3", "-c", asks], text=True,
                          capture_output=True, cwd=folder)
    assert done.stdout.split() == ["True", "False", "True", "False", "True", "True"], done.stderr
