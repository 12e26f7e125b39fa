"""Settings: the file, the command line over it, reading it again; the line of each job; and whom
the system may kill first."""

import os
import re
import shlex
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

import conftest
import wire
from test_broker import MIB, SMALL, code_of, slow_daemon, slow_job, until

HUGE = 100 * MIB


def run(*words, **kwargs):
    return subprocess.run([str(conftest.DAEMON), *map(str, words)], capture_output=True, text=True,
                          timeout=20, stdin=subprocess.DEVNULL, **kwargs)


def check(path, *words):
    done = run("--check-config", "--config", path, *words)
    assert done.returncode in (0, 2) and (done.returncode == 0) == (done.stderr == "")
    return done.stderr.replace(f"gpuarrayd: {path}", "FILE").splitlines()


@pytest.fixture
def file(folder):
    """file(text) -> the path of the configuration file, written anew."""
    def write(text):
        path = folder / "gpuarrayd.conf"
        path.with_suffix(".new").write_bytes(text if isinstance(text, bytes) else text.encode())
        path.with_suffix(".new").rename(path)
        return path
    return write


# -- the file --------------------------------------------------------------------------------------

def test_the_printed_file_is_the_shipped_one_and_has_no_mistake(file):
    done = run("--print-config")
    assert done.returncode == 0
    assert done.stdout == (conftest.TOP / "systemd/gpuarrayd.conf").read_text()
    assert check(file(done.stdout)) == []
    assert check(file(re.sub(r"(?m)^#(?=[a-z])", "", done.stdout))) == []


def test_help_names_every_setting_of_the_file():
    named = set(re.findall(r"--([a-z-]+)", run("--help").stdout))
    settings = re.findall(r"(?m)^#([a-z-]+) =", run("--print-config").stdout)
    assert len(settings) > 20 and set(settings) <= named


def test_every_mistake_is_told_with_its_line(file):
    assert check(file("[engine]\npool = 5s\nthread = 3\n[quue]\nx = 1\n[users]\nuser-jobs = 0\n"
                      "max-queue = 5\nwhat is this\n[queue]\nmax-active=2\nuser-active=3\n")) == [
        "FILE:2: pool: expected bytes, with K, M, G or T, or a share of the memory as in 50%, "
        "from 64K to 1T; found '5s'",
        "FILE:3: thread: unknown setting; did you mean 'threads' (in [engine])?",
        "FILE:4: unknown section [quue]; did you mean [queue]?",
        "FILE:7: user-jobs: expected a number, from 1 to 1048576; found '0'",
        "FILE:8: max-queue: expected in [queue], found in [users]",
        "FILE:9: expected NAME = VALUE, [SECTION] or a comment",
        "FILE:12: user-active: expected at most max-active, which is 2 (line 11), found 3",
    ]


def test_files_that_are_none_are_refused(file, folder):
    huge = folder / "huge"
    with open(huge, "wb") as f:
        f.truncate(HUGE)
    os.mkfifo(folder / "pipe")
    assert check(folder) == ["FILE: expected a regular file, found a directory"]
    assert check(folder / "none") == ["FILE: No such file or directory"]
    assert check(folder / "pipe") == ["FILE: expected a regular file, found something else"]
    assert check(huge) == ["FILE: expected at most 65536 bytes, found more"]
    assert check(file(b"[engine]\nthreads = 2\0\n")) == ["FILE:2: expected text, found a byte of 0"]
    assert check(file("[engine]\nworker = /" + "x" * 5000)) == [
        "FILE:2: expected a line of at most 198 bytes, found 5010"]
    assert len(check(file(os.urandom(60000)))) > 0


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_an_unreadable_file_is_refused(file, folder):
    folder.chmod(0o755)
    path = file("[engine]\n")
    path.chmod(0)
    done = run("--check-config", "--config", path, user=65534, group=65534, extra_groups=[])
    assert done.returncode == 2 and "Permission denied" in done.stderr


@pytest.mark.parametrize("words, said", [
    (["--config", "a", "--config", "b"], "--config: expected once, found twice: 'a' and 'b'"),
    (["--poll", "5M"], "unknown option '--poll'; did you mean '--pool'?"),
    (["--hang-timeout", "5M"], "--hang-timeout: expected seconds, or with ms, min or h, from 0.01"),
    (["--private", "--user-active=300"], "user-active: expected at most max-active, which is 256"),
    (["--private", "--ready-fd=x"], "--ready-fd: expected a descriptor, found 'x'"),
    (["--private", "surplus"], "unexpected argument 'surplus'"),
])
def test_mistakes_on_the_command_line_end_with_2(words, said):
    done = run(*words)
    assert done.returncode == 2 and said in done.stderr


def test_a_daemon_does_not_start_with_a_wrong_file(file, folder):
    path = file("[engine]\npol = 1M\n[users]\nuser-jobs = many\n")
    done = run("--config", path, "--socket", folder / "socket", "--worker", conftest.WORKER)
    assert done.returncode == 2 and f"{path}:2: " in done.stderr and f"{path}:4: " in done.stderr
    assert not (folder / "socket").exists()


def test_a_private_daemon_reads_no_file():
    done = run("--private", "--check-config")
    assert (done.returncode, done.stdout) == (
        0, "a private daemon reads no file: the settings are good\n")


def test_the_file_is_in_force_and_the_command_line_above_it(start, file):
    path = file("[engine]\npool = 1M\n[users]\nregion-limit = 1M\nuser-sessions = 2\n")
    daemon = start(pool="3M", args=["--config", path])
    with daemon.connect() as w:
        assert w.call("server.info")["pool"]["bytes"] == 3 * MIB
        wire.Region(w, MIB)
        assert code_of(wire.Region, w, 4096) == "quota-exceeded"
        with daemon.connect():
            with daemon.connect() as third:  # in reserve
                assert code_of(third.compute, "a + 1", a=[1.0]) == "quota-exceeded"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives the socket away")
def test_the_socket_has_the_mode_and_the_group_that_were_asked_for(start):
    daemon = start(args=["--socket-mode", "0640", "--group", "65534"])
    found = os.stat(daemon.socket)
    assert (found.st_mode & 0o7777, found.st_gid) == (0o640, 65534)
    done = run("--socket", str(daemon.dir / "other"), "--group", "no-such-group", "--worker",
               conftest.WORKER)
    assert done.returncode == 1
    assert done.stderr == "gpuarrayd: error: server: group 'no-such-group': there is no such group\n"


# -- reading it again ------------------------------------------------------------------------------

def reload(daemon, mark="the settings were read again"):
    before = daemon.text().count(mark)
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: daemon.text().count(mark) > before)


def test_a_reload_applies_limits_and_says_what_needs_a_restart(start, file):
    path = file("[log]\nlog-level = info\n")
    daemon = start(args=["--config", path, "--max-queue", "50"])
    with daemon.connect() as w:
        region = wire.Region(w, MIB)
        file("[log]\nlog-level = info\n[users]\nregion-limit = 4K\n[engine]\nlevel = plain\n"
             "[queue]\nmax-queue = 7\n")
        reload(daemon)
        assert code_of(wire.Region, w, 4096) == "quota-exceeded"
        a = region.array("f8", (10,))
        w.run("a + 1", a=wire.described(a, region.at()))  # what was attached stays
        text = daemon.text()
        assert "reload: region-limit = 4K; it was" in text and "; 1 need a restart" in text
        assert "warn: reload: level = plain needs a restart; it stays auto" in text
        assert "max-queue =" not in text  # the command line's
        file("[log]\nlog-level = info\n[users]\nregion-limit = 8M\n")
        reload(daemon)
        wire.Region(w, MIB)
        assert "; 0 need a restart" in daemon.text()


def test_a_wrong_file_changes_nothing(start, file):
    path = file("[users]\nregion-limit = 1M\n")
    daemon = start(args=["--config", path])
    file("[users]\nregion-limit = 4K\nuser-jobs = some\n[engin]\n")
    reload(daemon, "the settings stay as they were")
    text = daemon.text()
    assert f"error: reload: {path}:3: user-jobs: expected a number" in text
    assert f"error: reload: {path}:4: unknown section [engin]; did you mean [engine]?" in text
    path.unlink()
    reload(daemon, "the settings stay as they were")
    assert f"{path}: No such file or directory" in daemon.text()
    with daemon.connect() as w:
        wire.Region(w, MIB)


def test_a_default_file_that_is_not_there_is_no_mistake(start):
    daemon = start(args=["--private", "--log-level", "info"])
    reload(daemon)
    assert "; 0 need a restart" in daemon.text()


def test_reloads_under_load_lose_nothing(start, file):
    texts = ["[users]\nuser-jobs = 4000\n[queue]\nmax-active = 1\nuser-active = 1\n",
             "[queue]\nmax-active = 300\n[engine]\nhang-timeout = 2min\n[records]\nkeep-jobs = 5\n",
             "[queue]\nmax-active = lots\n"]
    daemon = start(args=["--config", file(texts[0])])
    before = daemon.counts()
    values = np.arange(1000.0)
    wrong, rounds, stop = [], [], threading.Event()

    def work():
        with daemon.connect() as w:
            n_rounds = 0
            while not stop.is_set():
                idents = [w.send("job.run", args={"a": wire.argument(values)},
                                 outputs=[{"expr": "a * 2"}]) for _ in range(20)]
                for ident in idents:
                    if not np.array_equal(wire.result_array(w.reply(ident)["outputs"][0]),
                                          values * 2):
                        wrong.append(ident)
                n_rounds += 1
            rounds.append(n_rounds)  # a refusal would end the thread before

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for i in range(60):
        file(texts[i % 3])
        daemon.process.send_signal(signal.SIGHUP)
        time.sleep(0.01)
    stop.set()
    for worker in workers:
        worker.join()
    assert not wrong and len(rounds) == 3 and all(rounds)
    assert "max-active: expected a number" in daemon.text()
    daemon.wait_for_counts(before)


def test_a_reload_lets_go_of_what_waits(start, file):
    """More jobs may be active at once after it."""
    path = file("[queue]\nmax-active = 1\n")
    daemon = slow_daemon(start, pool="4M", args=["--config", path])
    with daemon.connect() as w:
        jobs = [slow_job(w) for _ in range(3)]
        until(lambda: w.call("server.info")["counts"]["jobs_running"] == 1)
        file("[queue]\nmax-active = 3\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: w.call("server.info")["counts"]["jobs_running"] == 3)
        for _, ident in jobs:
            w.call("job.cancel", job=w.reply(ident)["job"])


# -- the line of each job --------------------------------------------------------------------------

def fields_of(line):
    words = shlex.split(line.split("job: ", 1)[1])
    fields = dict(word.split("=", 1) for word in words if "=" in word)
    return {key: value.replace("\\=", "=") for key, value in fields.items()}


def job_lines(daemon):
    lines = re.findall(r"(?m)^gpuarrayd: info: job: .*$", daemon.text())
    return {int(fields_of(line)["JOB"]): (line, fields_of(line)) for line in lines}


def test_each_job_has_one_line(start):
    daemon = slow_daemon(start, pool="4M", args=["--log-level", "info"])
    with daemon.connect() as w:
        good = w.call("job.run", **SMALL)["job"]
        label = 'night "run" \\ UID=0 \u00e9'
        bad = w.call("job.submit", args={"a": wire.argument(np.arange(3)),
                                         "b": wire.argument(np.array([-1, -2, -3]))},
                     outputs=[{"expr": "a ** b"}], label=label)["job"]
        assert code_of(w.call, "job.wait", job=bad) == "negative-integer-power"
        region, ident = slow_job(w)
        waits = w.reply(ident)["job"]
        w.call("job.cancel", job=waits)
        assert code_of(w.call, "job.wait", job=waits) == "cancelled"
        region, ident = slow_job(w)
        slow = w.reply(ident)["job"]
        w.call("job.wait", job=slow)
        before = len(daemon.text())
        w.call("job.wait", job=slow)  # asking again says nothing again
        w.call("ping")
        assert len(daemon.text()) == before
    lines = job_lines(daemon)
    assert daemon.text().count("info: job: ") == len(lines) == 4
    line, f = lines[good]
    assert re.fullmatch(
        rf"gpuarrayd: info: job: done JOB={good} UID={os.geteuid()} CODE=ok ENGINE=cpu "
        r"QUEUED_SECONDS=0\.\d{6} RUN_SECONDS=\d\.\d{6} INPUT_SECONDS=0\.\d{6} ROOM_SECONDS=0\.\d{6} "
        r"TURN_SECONDS=0\.\d{6} READ_BYTES=24 WRITTEN_BYTES=24 LABEL=\"\"",
        line)
    line, f = lines[bad]
    assert (f["CODE"], f["UID"]) == ("negative-integer-power", str(os.geteuid()))
    assert f["LABEL"] == label and " failed " in line
    assert re.findall(r"\bUID=\d+", line) == [f"UID={os.geteuid()}"]
    line, f = lines[waits]
    assert f["CODE"] == "cancelled" and " cancelled " in line
    f = lines[slow][1]
    assert f["READ_BYTES"] == str(8 * MIB) and float(f["RUN_SECONDS"]) >= 0.05


def test_a_job_that_never_ran_has_no_engine(start):
    daemon = slow_daemon(start, pool="4M", args=["--log-level", "info", "--max-active", "1"])
    with daemon.connect() as w:
        _, first = slow_job(w)
        waits = w.call("job.submit", **SMALL)["job"]
        w.call("job.cancel", job=waits)
        w.call("job.cancel", job=w.reply(first)["job"])
        until(lambda: len(job_lines(daemon)) == 2)
    f = job_lines(daemon)[waits][1]
    assert (f["ENGINE"], f["CODE"], f["RUN_SECONDS"]) == ("none", "cancelled", "0.000000")


def test_without_info_nothing_is_said_of_jobs(start):
    daemon = start()
    with daemon.connect() as w:
        w.call("job.run", **SMALL)
    assert "job:" not in daemon.text()


# -- memory that runs out --------------------------------------------------------------------------

def test_the_worker_is_the_first_to_die(start):
    daemon = start()

    def score(pid):
        return int(open(f"/proc/{pid}/oom_score_adj").read())

    ours = score(daemon.process.pid)
    until(lambda: score(daemon.worker_pid()) == min(ours + 500, 1000))
    os.kill(daemon.worker_pid(), signal.SIGKILL)
    daemon.wait_for_restarts(1)
    until(lambda: score(daemon.worker_pid()) == min(ours + 500, 1000))
