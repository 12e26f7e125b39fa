"""gpuarrayctl where little is as usual: closed descriptors, narrow terminals, names that are no text, and
a daemon that changes while it is being stopped.
"""

import contextlib
import fcntl
import json
import os
import pty
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time

import msgpack
import numpy as np
import pytest

import conftest
import test_sessions

CTL = str(conftest.CTL)


@pytest.fixture
def place(daemon):
    # An agent of a detached job may still be putting its outcome there.
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-", ignore_cleanup_errors=True) as path:
        here = test_sessions.Place(path)
        here.env["GPUARRAYD_SOCKET"] = daemon.socket
        yield here


def run(place, *words, **kwargs):
    return subprocess.run([CTL, *words], cwd=place.path / "work", env=place.env, capture_output=True,
                          timeout=60, **kwargs)


def shell(place, line):
    return subprocess.run(["bash", "-c", line], cwd=place.path / "work", env=place.env, capture_output=True,
                          timeout=60)


def test_what_is_printed_never_goes_to_the_daemon_or_into_a_file(daemon, place):
    for closed in ("2>&-", "<&- 2>&-", "<&- >&- 2>&-"):
        done = shell(place, f"{CTL} run 'i // 0' i=ints.npy -o o.npy -v {closed}")
        assert done.returncode == 0
        assert np.load(place.path / "work/o.npy").tolist() == [0, 0, 0]
    assert shell(place, f"{CTL} info a.npy <&- >&-").returncode == 1
    for words in ("info a.npy", "run --help", "--help", "--version"):
        done = shell(place, f"{CTL} {words} >/dev/full")
        assert done.returncode == 1 and b"standard output" in done.stderr, words
    assert b"protocol-error" not in run(place, "stats").stdout


def test_a_word_that_no_expression_uses_is_refused(place):
    for words, near in ((("x + 1", "x=2", "y=3"), None), (("x*2", "x=1", "xx=2"), "x"),
                        (("1e5 + x", "x=1", "e5=2"), None)):
        done = run(place, "run", *words, "--json")
        error = json.loads(done.stdout or done.stderr)["error"]
        assert done.returncode == 1 and error["code"] == "bad-argument", (words, error)
        assert error["argument"] == words[-1].split("=")[0]
        assert near is None or f"did you mean '{near}'?" in error["message"]
    done = run(place, "run", "tempo + 1", "tempi=2")  # what is wrong in the text goes first
    assert done.returncode == 1 and b"[unknown-name]" in done.stderr, done.stderr
    assert run(place, "submit", "x + 1", "x=2", "y=3", "-o", "o.npy").returncode == 2
    done = run(place, "run", "f(x) = x*k; y = f(2); q, r = divmod(j, 4)", "k=3", "j=7")
    assert done.stdout == b"y = 6\nq = 1\nr = 3\n", done


def test_a_function_that_fails_is_not_taken_for_a_damaged_file(place):
    work = place.path / "work"
    (work / "bad.c").write_text("int number = 7;\n"
                                "int bad(void *data, const void *call) { return data != call ? 33 : 0; }")
    subprocess.run(["cc", "-fPIC", "-shared", "bad.c", "-o", "bad.so"], cwd=work, check=True)
    done = run(place, "map", "./bad.so:bad", "a.npy", "-o", "o.npy")
    assert done.returncode == 1 and b"argument out of domain" in done.stderr, done.stderr
    assert b"try: the function, or a source" in done.stderr and not (work / "o.npy").exists()
    done = run(place, "map", "./bad.so:number", "a.npy", "-o", "o.npy")
    assert done.returncode == 1 and b"number is a variable, no function" in done.stderr, done.stderr


def test_labels_are_one_line_of_text_whatever_the_words_are(daemon, place):
    assert run(place, "run", "max(a\n +\ta)", "a=a.npy").stdout == b"22\n"
    shutil.copy(place.path / "work/a.npy", os.fsencode(place.path) + b"/work/x\xff.npy")
    assert run(place, "convert", b"x\xff.npy", "y.npy").returncode == 0
    labels = [job["label"] for job in json.loads(run(place, "jobs", "--json").stdout)]
    assert labels[-2:] == ["max(a  + a)", "convert x?.npy"]


def test_json_is_utf_8_whatever_the_names_of_files_are(daemon, place):
    done = run(place, "run", "a + 1", "a=a.npy", "-o", b"o\xff\xc3\xa9.npy", "--json")
    assert json.loads(done.stdout.decode())["outputs"][0]["to"] == "o?\u00e9.npy"
    assert os.path.exists(os.fsencode(place.path) + b"/work/o\xff\xc3\xa9.npy")


def submit_long(place):
    with open(place.path / "work/zeros.raw", "wb") as f:
        f.truncate(1 << 36)
    return run(place, "submit", "sum(tanh(exp(sin(a))))", f"a=zeros.raw:f8:{1 << 33}", "-o", "r.npy",
               text=True).stdout.strip()


@contextlib.contextmanager
def screen(place, rows, columns, *words):
    """The command on a terminal of that size, and a function that reads on until it has seen that many
    drawings of something."""
    leader, follower = pty.openpty()
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen([CTL, *words], cwd=place.path / "work", env=place.env, stdin=follower,
                               stdout=follower, stderr=follower)
    os.close(follower)
    seen = b""

    def read_until(what, n):
        nonlocal seen
        end = time.monotonic() + 20
        while seen.count(what) < n and time.monotonic() < end:
            seen += os.read(leader, 4096)
        assert seen.count(what) >= n, seen
        return seen

    try:
        yield read_until
    finally:
        process.send_signal(signal.SIGINT)
        while process.poll() is None:
            with contextlib.suppress(OSError):
                os.read(leader, 4096)
        os.close(leader)


def test_others_see_the_progress_of_a_job_on_any_screen(daemon, place):
    job = submit_long(place)
    with screen(place, 24, 20, "watch", job) as read_until:
        drawn = read_until(b"\r\033[K", 3)
    frames = drawn.split(b"\r\033[K")[1:-1]
    assert b"%" in drawn and all(0 < len(frame) < 20 for frame in frames), frames
    for _ in range(8):
        run(place, "run", "max(a)", "a=a.npy", "-l", "a label that is far too long for this screen")
    with screen(place, 5, 20, "watch") as read_until:
        drawn = read_until(b"\033[J", 3)
    for frame in drawn.split(b"\033[J")[1:-1]:
        assert frame.startswith(b"\033[?7l") and frame.count(b"\n") == 4, frame
    assert json.loads(run(place, "status", job, "--json").stdout)["tiles_done"] > 0
    run(place, "cancel", job)


def test_the_place_of_the_log_is_the_librarys(daemon, place):
    place.env["XDG_RUNTIME_DIR"] = long = f"{place.path}/{'d' * 90}"
    os.mkdir(long, 0o700)
    said = json.loads(run(place, "daemon", "log", "--json").stdout)
    path = said["path"] if "path" in said else said["error"]["argument"]
    assert path == f"/tmp/gpuarrayd-{os.geteuid()}/log"


def test_a_pipe_is_no_log(daemon, place):
    (place.path / "run/gpuarrayd").mkdir(mode=0o700)
    os.mkfifo(place.path / "run/gpuarrayd/log")
    done = run(place, "daemon", "log", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["error"]["code"] == "not-found"


def answer(connection, result):
    head = connection.recv(8, socket.MSG_WAITALL)
    if len(head) < 8:
        return None
    _, n = struct.unpack("<HI", head[2:])
    _, number, method, _ = msgpack.unpackb(connection.recv(n, socket.MSG_WAITALL))
    connection.sendall(test_sessions.frame(msgpack.packb([1, number, None, result(method)])))
    return method


def serve(path, leaves, successor):
    """A daemon that says its number and serves; the one that leaves puts the other in its place first."""
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(path)
            listener.listen(8)
            os.write(tell, b"+")
            counts = {"jobs_running": 0, "jobs_queued": 0}
            while True:
                connection, _ = listener.accept()
                method = True
                while method and not (leaves and method == "server.info"):
                    method = answer(connection, lambda method: {"version": 1} if method == "hello" else
                                    {"pid": os.getpid(), "counts": counts})
                if method:
                    os.rename(successor, path)
                    connection.close()
                    time.sleep(60)
        os._exit(0)
    assert os.read(ready, 1) == b"+"
    return child


def test_stop_signals_nobody_when_the_daemon_has_left_meanwhile(place):
    path, successor = f"{place.path}/s", f"{place.path}/s2"
    second = serve(successor, False, None)
    first = serve(path, True, successor)
    place.env["GPUARRAYD_SOCKET"] = path
    try:
        done = run(place, "daemon", "stop", "--json")
        assert done.returncode == 3, done
        # Lost under the question, or another one answers it: a matter of microseconds.
        assert json.loads(done.stdout)["error"]["code"] == "disconnected"
        time.sleep(0.1)
        assert os.waitpid(first, os.WNOHANG) == os.waitpid(second, os.WNOHANG) == (0, 0)
    finally:
        for child in (first, second):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_all_of_an_array_is_printed(daemon, tmp_path):
    """Without --all the first of long rows; --csv is for other programs, to the last digit."""
    a = np.random.default_rng(1).normal(size=(40, 30))
    np.save(tmp_path / "a.npy", a)

    def printed(*words, **options):
        return daemon.ctl("run", *words, "a=a.npy", cwd=tmp_path, **options)

    short = printed("a * 2").stdout
    assert " ..." in short and len(short.splitlines()) < 30
    everything = printed("a * 2", "--all").stdout.splitlines()
    assert everything[0] == "float64 (40, 30)"
    assert np.array_equal([[float(x) for x in line.split()] for line in everything[1:]], a * 2)
    table = printed("a * 2", "--csv").stdout
    assert np.array_equal(np.loadtxt(table.splitlines(), delimiter=","), a * 2)
    assert float(printed("max(a)", "--csv").stdout) == a.max()
    named = printed("m = min(a, axis=1)", "--csv").stdout
    assert np.array_equal([float(x) for x in named.split(",")], a.min(1))
    for words, said in ((("x = a; y = a * 2", "--csv"), "one result"), (("a", "--csv", "--json"), "together"),
                        (("a", "-o", "b.npy", "--csv"), "one result")):
        done = printed(*words, check=False)
        assert done.returncode == 2 and said in done.stdout + done.stderr
    assert len(daemon.ctl("random", "normal", "--shape", "30", "--all").stdout.split()) == 2 + 30
    assert "..." in daemon.ctl("random", "normal", "--shape", "30").stdout
