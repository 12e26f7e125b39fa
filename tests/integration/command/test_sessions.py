"""Sessions with gpuarrayctl, as a person sees them: every verb, the errors that a user can cause, and
what --json prints, recorded as text in sessions/*.txt and played again on a real daemon.

    # daemon: own --pool 4M        what the commands meet, see below; other lines are comments
    $ gpuarrayctl info a.npy       one line of bash; all lines of a file go through one shell
    format  npy                    what it prints on standard output and standard error together
    [exit 1]                       its exit code, when that is not 0

Daemons: `own [OPTION...]` a daemon of the session's own (the default); `none` a socket that nobody
listens on; `private` no socket is named, so the library starts a private one; `version N` a server that
speaks version N of the protocol; `stranger` a server of another user; `activated` a daemon that was
given its socket, as by systemd; `closed` a daemon whose socket is
open to the group `users` alone, while the commands are run as nobody.

What differs from run to run is masked, in what is printed before it is recorded or compared: see MASKS.
`python3 test_sessions.py --update [NAME...]` records sessions anew from the commands in them.
"""

import contextlib
import difflib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import h5py
import msgpack
import numpy as np
import pytest

import conftest

SESSIONS = pathlib.Path(__file__).parent / "sessions"
NAMES = sorted(path.stem for path in SESSIONS.glob("*.txt"))
NOBODY = 65534
NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"

# (pattern, what stands for it). Applied in this order to each line that is printed.
MASKS = [
    (rf"({NUMBER}) (us|s)\b", r"# \2"),                          # times
    (rf"({NUMBER}) [kMGT]?B/s", "# B/s"),                        # rates
    (r"\d+ bytes free", "# bytes free"),
    (r"\bpython[\d.]*(?= \(process)", "python"),                   # this interpreter's name
    (r"(process|pid|PID:)( +)\d+( of \w+)?", r"\1\2#"),         # processes and their users
    (r"\bjob \d+", "job #"),                                     # jobs: counted from when it started
    (r"(?m)^\d{4,}$", "#"),
    (r"(?m)^ *\d+  (queued|running|settling|done|failed|cancelled)", r"          JOB  \1"),
    (r"\bgpuarray(d|ctl) \d+\.\d+\.\d+", r"gpuarray\1 #"),       # versions
    (r"(HDF5|msgpack|json-c|libgpuarrayd) \d[\d.]*", r"\1 #"),
    (r'"rates":\{[^}]*\}', '"rates":{#}'),                        # measured as it starts
    (rf'"(job|\w+_us|\w+_s|seconds|behind_seconds|total|source|kernel|sink|client|to_device|'
     rf'from_device|pid|stopped|descriptors|mappings|'
     rf'overhead_bytes|around_cache_bytes|threads)": ?{NUMBER}', r'"\1": #'),
    (r'"(version|gpuarrayctl|gpuarrayd|HDF5|msgpack|json-c|level|blas|device|user)": ?"[^"]*"', r'"\1": "#"'),
]


class Place:
    """A folder with arrays of every kind, and the environment of the commands."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.chmod(0o755)
        (self.path / "bin").mkdir()
        os.symlink(conftest.CTL, self.path / "bin/gpuarrayctl")
        (self.path / "run").mkdir(mode=0o700)
        (self.path / "work").mkdir()
        os.chmod(self.path / "work", 0o777)
        self.fill(self.path / "work")
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("GPUARRAYD", "XDG_", "COLUMNS", "ARGP", "HDF5_"))}
        self.env.update(PATH=f"{self.path}/bin:{os.environ['PATH']}", LC_ALL="C", TERM="dumb", PYTHON=sys.executable,
                        XDG_RUNTIME_DIR=str(self.path / "run"), HOME=str(self.path / "run"))

    @staticmethod
    def fill(folder):
        a = np.arange(12, dtype="f4").reshape(3, 4)
        np.save(folder / "a.npy", a)
        np.save(folder / "b.npy", np.array([1.5, 2.5, -1, np.nan]))
        np.save(folder / "x.npy", a.astype(">f8"))
        np.save(folder / "big.npy", np.linspace(0, 1, 100000))
        np.save(folder / "ints.npy", np.array([3, 0, -4], "i2"))
        np.save(folder / "flags.npy", np.array([True, False]))
        np.save(folder / "rows.npy", np.array([2, 0, 2]))
        np.save(folder / "columns.npy", np.array([1]))
        np.save(folder / "mask.npy", a > 7)
        np.save(folder / "speed.npy", np.sqrt(np.arange(1000, dtype="f4")))
        (folder / "runs").mkdir()
        for name in ("x2", "x10"):
            np.save(folder / f"runs/{name}.npy", a)
        np.save(folder / "rates.npy", np.full(1000, 4.5))
        for name in ("x1", "x2", "x3", "red", "green", "blue"):
            np.save(folder / f"{name}.npy", a)
        np.save(folder / "A.npy", a)
        np.save(folder / "t.npy", np.arange(12 * 11 * 10.0).reshape(12, 11, 10) % 7)
        np.save(folder / "samples.npy", 1 + np.arange(40 * 30.0).reshape(40, 30) ** 2 % 7)
        np.save(folder / "y.npy", np.arange(40.0))
        np.savez(folder / "f.npz", weights=np.ones(2), **{f"factor_{i}": np.ones((3, 2)) for i in range(3)})
        np.save(folder / "B.npy", a.reshape(4, 3)[:, :2])
        with h5py.File(folder / "x.h5", "w") as f:
            f["x"] = a
        np.save(folder / "object.npy", np.array([{}], object), allow_pickle=True)
        (folder / "short.npy").write_bytes((folder / "a.npy").read_bytes()[:-1])
        (folder / "garbage.npy").write_bytes(bytes(range(200)))
        (folder / "dir.npy").mkdir()
        os.mkfifo(folder / "fifo.npy")
        with h5py.File(folder / "winds.h5", "w", track_order=True) as f:
            for name, sign in (("UWND", 1), ("VWND", -1)):
                f.create_dataset(name, data=sign * a, chunks=(2, 2), compression="gzip")
                f[name].attrs["_FillValue"] = np.float32(11 * sign)
            f["UWND"].attrs.update(units="m/s", long_name="zonal wind", levels=np.arange(3, dtype="f4") / 10)
            f.attrs.update(title="winds", names=["a", "b"])
            f["deep/inside"] = a
            f["text"] = "hello"
        for name, dataset, data in (("cube", "d", np.zeros((2, 3, 4))), ("jan", "u", a), ("feb", "u", a)):
            with h5py.File(folder / f"{name}.h5", "w") as f:
                f[dataset] = data
        np.zeros(16, "u2").tofile(folder / "small.raw")
        with open(folder / "scan.raw", "wb") as f:
            f.truncate(2 * 4096 * 4096)

    def mask(self, text):
        for path, name in ((str(self.path / "work"), "FOLDER"), (str(self.path), "TOP"),
                           (str(conftest.BUILD.resolve()), "BUILD"), (str(conftest.BUILD), "BUILD")):
            text = text.replace(path, name)
        text = re.sub(r"/tmp/gpuarrayd-test-\w+", "TOP", text)
        for pattern, stands_for in MASKS:
            text = re.sub(pattern, stands_for, text)
        return text


def frame(body):
    return b"GA" + struct.pack("<HI", 0, len(body)) + body


def answer_hello(connection, version):
    """As a daemon that speaks another version answers: with an error when it is the newer one."""
    head = connection.recv(8, socket.MSG_WAITALL)
    if len(head) < 8:
        return
    _, n = struct.unpack("<HI", head[2:])
    _, number, _, _ = msgpack.unpackb(connection.recv(n, socket.MSG_WAITALL))
    error = {"code": "version-mismatch", "argument": "version", "expected": str(version), "found": "1",
             "message": f"gpuarrayd 9.0 speaks version {version} of the protocol, not 1"}
    reply = [1, number, error, None] if version > 1 else [1, number, None, {"version": version}]
    connection.sendall(frame(msgpack.packb(reply)))


def serve(path, uid, handle):
    """A child of that user which listens on the path and handles connections until it is killed."""
    ready, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        assert os.read(ready, 1), "the server did not start"
        os.close(ready)
        return child
    try:
        if uid != os.geteuid():
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        os.chmod(path, 0o777)
        listener.listen(8)
        os.write(tell, b"+")
        while True:
            connection, _ = listener.accept()
            connection.settimeout(20)
            with connection, contextlib.suppress(OSError):
                handle(connection)
    finally:
        os._exit(1)


@contextlib.contextmanager
def served(place, uid, handle):
    path = str(place.path / "work/socket")
    child = serve(path, uid, handle)
    try:
        yield {"GPUARRAYD_SOCKET": path}
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@contextlib.contextmanager
def no_daemon(place):
    yield {"GPUARRAYD_SOCKET": str(place.path / "no-such-socket")}


@contextlib.contextmanager
def private_daemon(place):
    """The library starts it; whatever the session leaves is ended by its own number."""
    if os.path.exists("/run/gpuarrayd/socket"):
        pytest.skip("a service runs on this machine")
    yield {"GPUARRAYD_DAEMON": str(conftest.DAEMON)}
    subprocess.run([conftest.CTL, "daemon", "stop", "--force"], capture_output=True, timeout=30,
                   env={**place.env, "GPUARRAYD_DAEMON": str(conftest.DAEMON)})


@contextlib.contextmanager
def own_daemon(place, *options):
    daemon = conftest.Daemon(args=options, pool="8M") if "--pool" not in options else \
        conftest.Daemon(args=options[2:], pool=options[1])
    try:
        yield {"GPUARRAYD_SOCKET": daemon.socket}
    finally:
        daemon.stop()


@contextlib.contextmanager
def closed_daemon(place):
    if os.geteuid() != 0:
        pytest.skip("another user needs root")
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if subprocess.run([*as_nobody, conftest.CTL, "--version"], capture_output=True).returncode != 0:
        pytest.skip("nobody may not run the command here")
    with own_daemon(place) as env:
        path = env["GPUARRAYD_SOCKET"]
        os.chmod(os.path.dirname(path), 0o755)
        os.chown(path, 0, 100)  # Debian's `users`
        os.chmod(path, 0o660)
        yield {**env, "AS_NOBODY": " ".join(as_nobody)}


@contextlib.contextmanager
def activated_daemon(place):
    """This process made the socket, as systemd does, and the daemon was given it."""
    linked = subprocess.run(["ldd", conftest.DAEMON], capture_output=True, text=True).stdout
    if "libsystemd" not in linked:
        pytest.skip("the daemon was built without libsystemd")
    path = str(place.path / "work/socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(8)
        command = (f"exec 3<&{listener.fileno()}; export LISTEN_PID=$$ LISTEN_FDS=1; exec {conftest.DAEMON} "
                   f"--socket {path} --pool 4M --threads 1 --worker {conftest.WORKER}")
        daemon = subprocess.Popen(["bash", "-c", command], pass_fds=[listener.fileno()],
                                  stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield {"GPUARRAYD_SOCKET": path}
        finally:
            daemon.terminate()
            assert daemon.wait(30) == 0


@contextlib.contextmanager
def stranger(place):
    """Whoever it is gets nothing: a byte that comes is written down and fails the test."""
    if os.geteuid() != 0:
        pytest.skip("another user needs root")
    came = place.path / "work/came"
    came.write_bytes(b"")
    came.chmod(0o666)

    def note(connection):
        with open(came, "ab") as f:
            while data := connection.recv(4096):
                f.write(data)

    with served(place, NOBODY, note) as env:
        yield env
    assert came.read_bytes() == b""


def surroundings(words, place):
    kind, *rest = words or ["own"]
    if kind == "version":
        return served(place, os.geteuid(), lambda connection: answer_hello(connection, int(rest[0])))
    return {"own": own_daemon, "none": no_daemon, "private": private_daemon, "closed": closed_daemon,
            "activated": activated_daemon, "stranger": stranger}[kind](place, *rest)


def read_session(text):
    """The lines before the first command, the daemon's words, the commands."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("$ "))
    words = [line.split()[2:] for line in lines[:first] if line.startswith("# daemon:")]
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    return lines[:first], words[0] if words else [], commands


def play(text):
    """The session with what its commands print today."""
    head, words, commands = read_session(text)
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-") as path:
        place = Place(path)
        script = "".join(f"{command}\nprintf '\\001%d\\001' $?\n" for command in commands)
        with surroundings(words, place) as env:
            done = subprocess.run(["bash", "-c", script], cwd=place.path / "work", timeout=60,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env={**place.env, **env}, text=True)
        parts = done.stdout.split("\001")
        assert len(parts) == 2 * len(commands) + 1, done.stdout
        said = []
        for command, printed, code in zip(commands, parts[::2], parts[1::2]):
            said += [f"$ {command}", *place.mask(printed).splitlines()]
            said += [f"[exit {code}]"] if code != "0" else []
            said.append("")
    return "\n".join([*head, *said]).rstrip() + "\n"


@pytest.mark.values
@pytest.mark.parametrize("name", NAMES)
def test_session(name):
    want = (SESSIONS / f"{name}.txt").read_text()
    got = play(want)
    difference = "\n".join(difflib.unified_diff(want.splitlines(), got.splitlines(),
                                                f"sessions/{name}.txt", "printed today", lineterm=""))
    assert not difference, "\n" + difference


def verbs(text):
    return re.findall(r"^  ([a-z]+) +\S", text.split("\nExamples:")[0], re.M)


@pytest.fixture(scope="module")
def place():
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-") as path:
        place = Place(path)
        np.save(place.path / "work" / "heat.npy", np.ones((30, 40), "f4"))
        shutil.copy(place.path / "work" / "f.npz", place.path / "work" / "factors.npz")
        client = conftest.TOP / "client"
        subprocess.run(["cc", "-fPIC", "-shared", client / "examples" / "stencil.c", "-o",
                        place.path / "work" / "stencil.so", f"-I{client}", f"-I{conftest.TOP}/proto"],
                       check=True)
        yield place


def helps(daemon):
    """Each verb and its --help."""
    for verb in verbs(daemon.ctl("--help").stdout):
        yield verb, daemon.ctl(verb, "--help").stdout


def test_every_help_says_what_and_how_with_examples_and_exit_codes(daemon):
    found = dict(helps(daemon))
    assert len(found) >= 14
    for verb, text in found.items():
        assert text.startswith(f"Usage: gpuarrayctl {verb}"), text
        assert "Exit codes: 0" in text, text
        assert 1 <= len(re.findall(rf"^  gpuarrayctl {verb}\b", text, re.M)) <= 6, text
        assert max(map(len, text.splitlines())) <= 100, text
    assert daemon.ctl("help", "run").stdout == found["run"]


@pytest.mark.slow  # what they do runs under sanitizers in the tests of each verb
def test_the_examples_of_every_help_work(daemon, place):
    env = {**place.env, "GPUARRAYD_SOCKET": daemon.socket}
    folder = place.path / "work"

    def submit():
        return daemon.ctl("submit", "a + 1", "a=a.npy", "-o", "s.npy", cwd=folder).stdout.strip()

    n = 0
    for verb, text in helps(daemon):
        for example in re.findall(rf"^  (gpuarrayctl {verb}\b.*)", text, re.M):
            if verb in ("daemon", "top", "doctor") and not example.endswith(("status", "path")):
                continue  # of a private daemon; of a terminal; of a machine
            if "alice" in example or verb == "drain" and "--undo" not in example:
                continue  # who is not everywhere; of a daemon that is of use no more
            if verb in ("wait", "status", "watch", "pause", "resume", "trace"):
                example = re.sub(r"\b1[78]\b", lambda _: submit(), example)
            if verb == "cancel" and "--all" not in example:
                continue  # its job has ended too soon: test_cli cancels one that has not
            done = subprocess.run(["bash", "-c", example], cwd=folder, env=env, capture_output=True,
                                  text=True, timeout=60)
            assert done.returncode == 0, (example, done.stdout, done.stderr)
            if "--json" in example:
                json.loads(done.stdout)
            n += 1
    assert n >= 20


def test_the_dtypes_of_every_operation_are_those_that_the_daemon_takes(daemon):
    groups = {"bool": ["|b1"], "int": ["|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8"],
              "float": ["<f4", "<f8"]}
    names = {"<u8": "uint64"}
    wrong = []
    with daemon.connect() as w:
        for op in w.call("server.ops"):
            if op["name"] in ("index", "choice", "permutation"):
                assert op["dtypes"] == "int"  # a number that is written, never an array
                continue
            if op["args"] == 0:
                continue
            parts = [part.strip() for part in op["dtypes"].split(",")]
            expected = [[dtype for group in part.split(" but ")[0].split() for dtype in groups[group]
                         if names.get(dtype) not in part.split(" but ")[1:]] for part in parts]
            n_args, shape = op["args"], [3, 1] if op["name"] == "qr_r" else [3]
            expected += [expected[-1]] * (n_args - len(expected))
            call = {"astype": "float32({})", "select": "select([{}], [{}])",
                    "iterate": "iterate(3, {} = {})",
                    "clip": "clip({}, min=0, max=1)", "integers": "integers({}, seed=1)",
                    "bernoulli": "bernoulli({}, seed=1)", "near": "near({}, 1)",
                    "window_rank": "window_rank({}, 0, 3)",
                    **{name: name + "({}, [1, 2])" for name in ("correlate", "convolve")},
                    **{f"window_{name}": f"window_{name}({{}}, 3)" for name in (
                        "sum", "mean", "min", "max", "std", "median")},
                    "tensordot": "tensordot({}, {}, 1)", "bincount": "bincount({}, length=3)",
                    **{name: name + "({}, 0.5)" for name in (
                        "quantile", "percentile", "nanquantile", "nanpercentile")}}.get(
                op["name"], op["name"] + "(" + ", ".join(["{}"] * n_args) + ")" +
                ("[0]" if op["results"] == 2 else ""))
            expr = call.format(*"abc"[:n_args])
            for i in range(n_args if len(parts) > 1 else 1):
                for dtype in sum(groups.values(), []):
                    args = {name: {"dtype": expected[k][0], "shape": shape}
                            for k, name in enumerate("abc"[:n_args])}
                    for k, name in enumerate("abc"[:n_args]):
                        if k == i or len(parts) == 1:
                            args[name] = {"dtype": dtype, "shape": shape}
                    try:
                        w.call("job.plan", outputs=[{"expr": expr}], args=args)
                        taken = True
                    except Exception as error:
                        assert error.code == "bad-dtype", (expr, args, error)
                        taken = False
                    if taken != (dtype in expected[i]):
                        wrong.append((expr, dtype, taken, op["dtypes"]))
    assert not wrong, wrong


def test_json_is_one_document_for_every_verb_and_every_error(daemon, place):
    words = {"run": ["max(a)", "a=a.npy"], "submit": ["a + 1", "a=a.npy", "-o", "j.npy"],
             "convert": ["a.npy", "k.npy"], "wait": ["--all"], "cancel": ["--all"], "pause": ["--all"], "resume": ["--all"], "drain": ["--undo"], "show": ["a.npy"], "random": ["normal", "--shape", "3"],
             "transpose": ["a.npy", "-o", "m.npy"], "flip": ["a.npy", "-o", "m.npy"],
             "concatenate": ["a.npy", "a.npy", "-o", "m.npy"], "stack": ["a.npy", "a.npy", "-o", "m.npy"],
             "roll": ["a.npy", "--shift", "1", "-o", "m.npy"],
             "tile": ["a.npy", "--repeats", "2", "-o", "m.npy"],
             "pad": ["a.npy", "--width", "1", "-o", "m.npy"], "diff": ["a.npy", "-o", "m.npy"], 
             "take": ["a.npy", "ints.npy", "--mode", "clip", "-o", "m.npy"],
             "shuffle": ["a.npy", "-o", "m.npy"],
             "batches": ["x=a.npy", "--batch-size", "2", "--index", "0", "-o", "m.npz"],
             "map": ["./stencil.so:smooth", "heat.npy", "--depth", "1", "-o", "m.npy"],
             "matmul": ["A.npy", "B.npy", "-o", "m.npy"],
             "cp": ["t.npy", "--rank", "2", "--iterations", "2", "-o", "m.npz"],
             "tucker": ["t.npy", "--ranks", "2,2,2", "-o", "m.npz"],
             "reconstruct": ["factors.npz", "-o", "m.npy"],
             "svd": ["A.npy", "-o", "m.npz"], "pca": ["A.npy", "-o", "m.npz"],
             "lstsq": ["A.npy", "--right", "A.npy", "-o", "m.npz"]}
    wrong = {"run": ["sqr(a)", "a=a.npy"], "submit": ["sqr(a)", "a=a.npy", "-o", "j.npy"],
             "convert": ["no.npy", "k.npy"], "wait": ["4711"], "cancel": ["4711"], "pause": ["4711"], "resume": ["4711"], "status": ["4711"],
             "watch": ["4711"], "trace": ["4711"], "show": ["no.npy"], "info": ["no.npy"], "ops": ["nothing"]}
    gone = {**place.env, "GPUARRAYD_SOCKET": str(place.path / "no-such-socket")}
    job = daemon.ctl("submit", "a + 1", "a=a.npy", "-o", "j.npy", cwd=place.path / "work").stdout.strip()
    words["status"] = words["trace"] = [job]

    def ask(verb, more, env):
        done = subprocess.run([conftest.CTL, verb, *more, "--json"], env=env, cwd=place.path / "work",
                              capture_output=True, text=True, timeout=60)
        assert done.stderr == "", (verb, more, done.stderr)
        return done.returncode, json.loads(done.stdout)

    for verb in verbs(daemon.ctl("--help").stdout):
        env = {**place.env, "GPUARRAYD_SOCKET": daemon.socket}
        code, said = ask(verb, ["--no-such-option"], env)
        assert code == 2 and said["error"]["code"] == "bad-argument" and said["error"]["hint"], said
        if verb == "top":
            continue  # a screen
        code, said = ask(verb, words.get(verb, []), env)
        assert verb == "doctor" or code == 0 and "error" not in said, (verb, said)
        if verb in wrong:
            code, said = ask(verb, wrong[verb], env)
            assert code == 1 and said["error"]["hint"] and said["error"]["message"], (verb, said)
        code, said = ask(verb, words.get(verb, []), gone)
        assert verb in ("doctor", "formats", "version", "status") or said["error"]["code"] == "no-daemon" or \
            said == [], (verb, said)


def test_watch_draws_on_a_terminal_and_says_lines_elsewhere(daemon, place):
    import pty
    with open(place.path / "work/zeros.raw", "wb") as f:
        f.truncate(8 << 26)
    env = {**place.env, "GPUARRAYD_SOCKET": daemon.socket}
    job = daemon.ctl("submit", "tanh(exp(sin(exp(sin(a)))))", f"a=zeros.raw:f8:{1 << 26}", "-o", "r.npy",
                     cwd=place.path / "work").stdout.strip()
    leader, follower = pty.openpty()
    drawn = subprocess.Popen([conftest.CTL, "watch", job], env=env, stdout=follower, stderr=follower)
    os.close(follower)
    lines = subprocess.run([conftest.CTL, "watch", "-n", "0.05"], env=env, capture_output=True, text=True,
                           timeout=120)
    seen = b""
    with contextlib.suppress(OSError):
        while data := os.read(leader, 4096):
            seen += data
    os.close(leader)
    assert drawn.wait(20) == 0 and b"\r\033[K[" in seen and b"%" in seen, seen
    assert lines.returncode == 0 and f"job {job}: done" in lines.stdout, lines
    assert "\033" not in lines.stdout


def test_who_stops_watching_does_not_stop_the_job(daemon, place):
    with open(place.path / "work/zeros.raw", "wb") as f:
        f.truncate(1 << 36)
    env = {**place.env, "GPUARRAYD_SOCKET": daemon.socket}
    job = daemon.ctl("submit", "sum(tanh(exp(sin(a))))", f"a=zeros.raw:f8:{1 << 33}", "-o", "r.npy",
                     cwd=place.path / "work").stdout.strip()
    for words in (["watch"], ["watch", job], ["watch", job, "--json"]):
        watching = subprocess.Popen([conftest.CTL, *words], env=env, stdout=subprocess.PIPE, text=True)
        if "--json" not in words:
            assert watching.stdout.readline().startswith("job ")
        else:
            time.sleep(0.3)
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=20)
        assert watching.returncode == 130
    assert json.loads(daemon.ctl("status", job, "--json").stdout)["state"] == "running"
    daemon.ctl("cancel", job)
    assert daemon.ctl("wait", job, check=False).returncode == 1


COMPLETION = conftest.TOP / "client/ctl/completion"


def complete(place, env, *words):
    """What bash offers for the last of the words."""
    quoted = " ".join(f"'{word}'" for word in words)
    script = (f"source {COMPLETION}/gpuarrayctl.bash; COMP_WORDS=({quoted}); "
              f"COMP_CWORD={len(words) - 1}; _gpuarrayctl; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    done = subprocess.run(["bash", "--norc", "-c", script], cwd=place.path / "work", env=env, text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return sorted(filter(None, done.stdout.split("\n")))


def test_bash_completes_verbs_options_files_jobs_and_operations(daemon, place):
    env = {**place.env, "GPUARRAYD_SOCKET": daemon.socket}
    found = dict(helps(daemon))
    assert complete(place, env, "gpuarrayctl", "") == sorted([*found, "--help", "--version", "help"])
    assert complete(place, env, "gpuarrayctl", "wa") == ["wait", "watch"]
    for verb, text in found.items():
        options = re.findall(r"^ +(?:-\S, )?(--[a-z0-9-]+)", text.split("\nExamples:")[0], re.M)
        assert {"--help", "--usage"} < set(options), text
        assert complete(place, env, "gpuarrayctl", verb, "-") == sorted(options)
    assert complete(place, env, "gpuarrayctl", "run", "--ex") == ["--explain"]
    assert complete(place, env, "gpuarrayctl", "run", "max(a)", "a", "=", "big") == ["big.npy"]
    assert complete(place, env, "gpuarrayctl", "show", "wi") == ["winds.h5"]
    assert complete(place, env, "gpuarrayctl", "convert", "a.npy", "--dtype", "float") == \
        ["float32", "float64"]
    assert complete(place, env, "gpuarrayctl", "daemon", "st") == ["start", "status", "stop"]
    assert {"sqrt", "square"} <= set(complete(place, env, "gpuarrayctl", "ops", "sq"))
    job = daemon.ctl("submit", "a + 1", "a=a.npy", "-o", "c.npy", cwd=place.path / "work").stdout.strip()
    daemon.ctl("wait", job)
    assert job in complete(place, env, "gpuarrayctl", "status", "")
    assert job not in complete(place, env, "gpuarrayctl", "wait", "")


def test_completion_starts_no_daemon(place):
    env = {**place.env, "GPUARRAYD_DAEMON": str(conftest.DAEMON)}
    for words in (["status", ""], ["wait", ""], ["ops", ""], ["run", "-"], [""]):
        complete(place, env, "gpuarrayctl", *words)
    assert not (place.path / "run/gpuarrayd/socket").exists()


def test_zsh_reads_its_completion():
    if not shutil.which("zsh"):
        pytest.skip("there is no zsh")
    subprocess.run(["zsh", "-n", COMPLETION / "_gpuarrayctl"], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] != ["--update"]:
        sys.exit("usage: test_sessions.py --update [NAME...]")
    for session in sys.argv[2:] or NAMES:
        file = SESSIONS / f"{session}.txt"
        before = file.read_text()
        file.write_text(play(before))
        print(session, "as before" if file.read_text() == before else "recorded anew")
