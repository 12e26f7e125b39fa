"""gpuarrayctl top: what stands on a screen of 80 columns while jobs run, and that the terminal is
given back whatever happens."""

import fcntl
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import pyte
import pytest

import conftest
import wire
from test_stats import submit_long, wait_for, zeros  # noqa: F401


class Top:
    """gpuarrayctl top on a terminal of its own, and the screen that it draws."""

    def __init__(self, socket, *words, columns=80, lines=24, term="xterm-256color"):
        self.master, slave = pty.openpty()
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(
            [str(conftest.CTL), "top", *words], stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": term, "GPUARRAYD_SOCKET": str(socket), "LC_ALL": "C.UTF-8"})

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def read(self, seconds=0.05):
        while wire.has_something(self.master, seconds):
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            self.raw += data
            self.stream.feed(data)
            seconds = 0

    def wait_for(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not (found := condition(self.screen.display)):
            assert time.monotonic() < end, "\n".join(self.screen.display)
            assert self.process.poll() is None, self.raw
            self.read()
        return found

    def end(self, key=None, number=None, seconds=10):
        """Ends it; the exit code. The terminal must be as it was."""
        if key:
            os.write(self.master, key)
        if number:
            self.process.send_signal(number)
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, "it does not end"
            self.read(0.01)
        self.read(0)
        assert termios.tcgetattr(self.slave) == self.before
        assert self.raw.rfind(b"\x1b[?1049l") > self.raw.rfind(b"\x1b[?1049h")  # the other screen
        assert self.raw.rfind(b"\x1b[?25h") > self.raw.rfind(b"\x1b[?25l")  # the cursor
        os.close(self.master)
        os.close(self.slave)
        return self.process.returncode


def row_of(word):
    return lambda display: next((line for line in display if re.search(word, line)), None)


@pytest.fixture
def busy(start, zeros):  # noqa: F811
    """A daemon where a long job runs and another waits for it: (daemon, running, queued)."""
    daemon = start(args=("--max-active", "1", "--user-active", "1"))
    with daemon.connect() as w:
        first = submit_long(w, zeros, "the long one")
        second = submit_long(w, zeros, "the one that waits \u4e2d")
        wait_for(lambda: w.call("server.stats")["bytes"]["read"]["file"] > 0)
        yield daemon, first, second


def test_the_screen_shows_what_runs_and_what_waits(busy):
    daemon, first, second = busy
    top = Top(daemon.socket, "--delay", "0.2")
    running = top.wait_for(row_of(rf"^ *{first} +\S+ +(?:working|input|turn) +cpu +\d+% +\d\S* [kMG]?B/s .* the long"))
    display = top.screen.display
    queued = row_of(rf"^ *{second} ")(display)
    assert re.search(r" queued +cpu +- +- +\d+\.\d s +- the one tha", queued), queued
    assert display.index(queued) == display.index(running) + 1
    assert re.match(r"gpuarrayd \S+, up .* cpu ready, \d/2 threads busy +\d\d:\d\d:\d\d$",
                    display[0])
    assert re.match(r"1 running, 1 queued; 0 done, 0 failed or cancelled; 2 sessions", display[1])
    assert re.match(r"read \d\S* [kMG]B/s, write 0 B/s; \d+ of \d+ slots lent, ", display[2])
    assert display[3].strip() == ""
    assert display[4].split() == "USER WT SHARE RUN QUEUE READ/s WRITE/s INPUT ROOM TURN".split()
    user = display[5].split()
    assert user[1:5] == ["1", "100%", "1", "1"] and user[-1] in "sm" and float(user[-2]) > 0
    assert display[6].strip() == ""
    assert display[7].split() == "JOB USER STAGE ENGINE DONE RATE QUEUED RUNNING LABEL".split()
    assert display[8] == running and all(not line.strip() for line in display[10:])
    header = top.screen.buffer[4]
    assert all(header[column].reverse for column in range(80))

    def waits_longer(now):
        row = row_of(rf"^ *{second} ")(now)
        return row and float(row.split(" s ")[0].split()[-1]) > float(queued.split(" s ")[0].split()[-1])

    top.wait_for(waits_longer)
    top.resize(60, 9)
    os.write(top.master, b" ")
    top.wait_for(lambda display: any(line.startswith("... 2 more") for line in display)
                 and len(display) == 9 and len(display[0]) == 60
                 and re.search(r"\d\d:\d\d:\d\d$", display[0]))
    assert top.end(key=b"q") == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_gives_the_terminal_back(busy, number):
    top = Top(busy[0].socket, "-d", "60")
    top.wait_for(row_of("(working|input|turn) +cpu"))
    assert top.end(number=number) == 130


def test_ctrl_c_on_the_terminal(busy):
    top = Top(busy[0].socket)
    top.wait_for(row_of("(working|input|turn) +cpu"))
    assert top.end(key=b"\x03") == 130


def test_a_lost_daemon_is_waited_for(start, tmp_path):
    link = tmp_path / "socket"
    first = conftest.Daemon()
    link.symlink_to(first.socket)
    top = Top(link, "-d", "0.1")
    top.wait_for(lambda display: "ready" in display[0])
    first.stop()
    top.wait_for(lambda display: "trying again" in display[3])
    assert top.screen.display[0].startswith("gpuarrayd ")  # the old numbers stay
    second = start()
    (tmp_path / "new").symlink_to(second.socket)
    os.rename(tmp_path / "new", link)
    top.wait_for(lambda display: not display[3].strip() and "ready" in display[0])
    second.process.send_signal(signal.SIGSTOP)  # it hangs: keys must work all the same
    try:
        time.sleep(0.3)
        assert top.end(key=b"q", seconds=8) == 0
    finally:
        second.process.send_signal(signal.SIGCONT)


def test_a_terminal_that_goes_away(start):
    top = Top(start().socket, "-d", "0.2")
    top.wait_for(lambda display: "ready" in display[0])
    os.close(top.slave)
    os.close(top.master)
    assert top.process.wait(10) in (0, 130)


def test_plain_text_without_a_terminal(busy, tmp_path):
    daemon, first, second = busy
    once = daemon.ctl("top", "--once").stdout
    assert "\x1b" not in once and all(len(line) <= 80 for line in once.splitlines())
    assert re.search(rf"^ *{first} +\S+ +(?:working|input|turn) +cpu +\d+% +- ", once, re.M)
    assert re.search(rf"^ *{second} +\S+ +queued ", once, re.M)
    twice = daemon.ctl("top", "-n", "2", "-d", "0.3").stdout
    assert twice.count("JOB USER") == 2
    assert re.search(rf"^ *{first} +\S+ +(?:working|input|turn) +cpu +\d+% +\d\S* [kMG]?B/s", twice, re.M)
    for words in (["-n", "0"], ["-n", "-1"], ["-n", "two"], ["-d", "0"], ["-d", "nan"],
                  ["--delay", "1e9"], ["--delya", "1"], ["job"]):
        assert daemon.ctl("top", *words, check=False).returncode == 2, words
    done = daemon.ctl("top", "--once", check=False, env={"GPUARRAYD_SOCKET": str(tmp_path / "x")})
    assert done.returncode == 3 and not done.stdout and "no daemon" in done.stderr


def test_a_terminal_that_cannot_be_drawn_on(start):
    top = Top(start().socket, term="no-such-terminal")
    assert top.process.wait(10) == 1
    top.read()
    assert b"no-such-terminal" in top.raw and b"--once" in top.raw
    assert termios.tcgetattr(top.slave) == top.before
