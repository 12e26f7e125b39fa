"""Progress: the line on a terminal, the notebook's display, the caller's function, and Ctrl-C.

The shapes of what is shown are tested with a job that is played; the rest with real ones.
"""

import io
import itertools
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import textwrap
import types
from fcntl import ioctl

import numpy as np
import pytest

from gpuarrayd import errors
from gpuarrayd._jobs import progress as _progress

CLEAR = "\r\x1b[K"


class Job:
    """A job that is played: one step for each wait(), then done."""

    def __init__(self, steps=5, error=None):
        self.steps, self.n_steps, self.error = 0, steps, error
        self.is_done, self.was_cancelled, self.waits = False, False, []

    def wait(self, timeout):
        self.waits.append(timeout)
        self.steps += 1
        if timeout is None or self.steps > self.n_steps:
            self.is_done = True
            if self.error:
                raise self.error
        return self.is_done

    def cancel(self):
        self.was_cancelled = True
        self.error = errors.Cancelled("cancelled")
        self.n_steps = 0

    @property
    def progress(self):
        n = self.n_steps or 1
        return self.steps, n, 10**9 * self.steps, 10**9 * self.steps // 2, 15 * 10**8 * n

    @property
    def stats(self):
        if not self.is_done or self.error:
            return None
        return {"n_tiles": self.n_steps, "read_bytes": 7, "write_bytes": 3}


class Session:
    """Its one job was played already."""

    def __init__(self, job):
        self.job = job

    def submit(self, outputs, args, engine, priority, label, progress, journal, tf32, beyond):
        assert progress and (journal, tf32) == ("a journal", True) and self.job.waits == []
        return self.job

    def run(self, outputs, args, engine, priority, label, journal, tf32, beyond):
        assert (journal, tf32) == ("a journal", True)
        self.job.wait(None)
        return self.job


def run(job, progress):
    assert _progress.run(Session(job), [], [], None, 0, None, progress, "a journal",
                         True) is job


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    stderr = Terminal()  # for the module alone: pytest has its own idea of sys.stderr
    monkeypatch.setattr(_progress, "sys",
                        types.SimpleNamespace(stderr=stderr, modules=sys.modules))
    return stderr


@pytest.fixture(autouse=True)
def the_terminal_is_free_afterwards():
    yield
    assert not _progress._terminal.locked()


def shown(stderr):
    return [part.removesuffix("\x1b[K") for part in stderr.getvalue().split("\r") if part]


def test_a_line_with_percent_bar_bytes_speed_and_time(terminal):
    run(Job(5), True)
    *lines, last = shown(terminal)
    assert len(lines) == 5 and last == ""
    assert re.fullmatch(r" 40% \[#{5,16}\.+\] 3\.0/7\.5 GB  [\d.]+ GB/s  \d+:\d\d left", lines[1])
    assert all(len(line) < 80 for line in lines)
    bar = re.search(r"\[(.*)\]", lines[1])[1]
    assert bar.count("#") / len(bar) == pytest.approx(0.4, abs=0.1)


def test_at_most_ten_times_a_second_and_not_before_half_a_second(terminal):
    job = Job(3)
    run(job, True)
    assert job.waits[0] >= 0.5 and all(timeout >= 0.1 for timeout in job.waits[1:])


def test_nothing_for_a_short_job(terminal):
    run(Job(0), True)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("stderr", [io.StringIO(), None])
def test_a_line_every_ten_seconds_where_there_is_no_terminal(monkeypatch, stderr):
    monkeypatch.setattr(_progress, "sys", types.SimpleNamespace(stderr=stderr, modules=sys.modules))
    clock = itertools.count(0.0, 3.0)  # three seconds go by whenever somebody looks
    monkeypatch.setattr(_progress, "time", types.SimpleNamespace(monotonic=lambda: next(clock)))
    run(job := Job(20), True)
    if stderr is None:
        assert job.waits == [None]
        return
    *lines, last = stderr.getvalue().split("\n")
    assert last == "" and 5 < len(lines) < 10
    assert re.fullmatch(r"gpuarrayd:  \d\d%  [\d.]+/30\.0 GB  [\d.]+ GB/s  \d+:\d\d left", lines[0])
    stderr.truncate(stderr.seek(0))
    run(Job(2), True)
    assert stderr.getvalue() == ""


def test_nothing_where_stderr_is_closed(terminal):
    terminal.close()
    run(Job(5), True)


def test_the_line_is_cleaned_up_after_an_error(terminal):
    with pytest.raises(errors.IoError):
        run(Job(3, errors.IoError("no")), True)
    assert len(shown(terminal)) == 4 and terminal.getvalue().endswith(CLEAR)


def test_a_terminal_that_goes_away_is_not_the_job_s_fault(terminal, monkeypatch):
    monkeypatch.setattr(terminal, "write", lambda text: (_ for _ in ()).throw(OSError(5, "gone")))
    job = Job(3)
    run(job, True)
    assert job.is_done


def test_one_job_at_a_time_has_the_terminal(terminal):
    inner = Job(2)

    class Outer(Job):
        def wait(self, timeout):
            if self.steps == 1:
                run(inner, True)
            return super().wait(timeout)

    run(Outer(3), True)
    assert inner.waits == [None] and len(shown(terminal)) == 4


@pytest.mark.parametrize("progress, text", [
    (_progress.Progress(0.0, 0, 0, 0, 0, 0), r"  0% \[\.+\] 0\.0 GB  0\.00 GB/s"),
    (_progress.Progress(0.5, 1, 2, 10**9, 0, 0),
     r" 50% \[#+\.+\] 1\.0 GB  [\d.]+ GB/s  0:\d\d left"),
    (_progress.Progress(1.0, 2, 2, 10**9, 10**9, 2 * 10**9),
     r"100% \[#+\] 2\.0/2\.0 GB  [\d.]+ GB/s  0:00 left"),
])
def test_what_is_not_known_is_not_said(terminal, progress, text):
    assert _progress._terminal.acquire(blocking=False)
    line = _progress._Line()
    line.show(progress)
    line.close(progress)
    assert re.fullmatch(text, shown(terminal)[0])


def test_hours_are_said(monkeypatch):
    speed = _progress._Speed()
    monkeypatch.setattr(speed, "_begun", speed._begun - 100)
    assert re.search(r"  2:4\d:\d\d left", speed.words(_progress.Progress(.01, 1, 100, 1, 1, 0)))


def test_a_function_is_told_and_at_the_end():
    told = []
    run(Job(4), told.append)
    assert [p.tiles_done for p in told] == [1, 2, 3, 4, 4]
    assert told[1] == (0.5, 2, 4, 2 * 10**9, 10**9, 6 * 10**9)
    assert told[-1] == (1.0, 4, 4, 7, 3, 10) and told[-1].total_bytes == 10
    assert all(type(p) is _progress.Progress for p in told)


def test_a_function_is_told_the_end_of_a_short_job():
    told = []
    run(Job(0), told.append)
    assert [p.fraction for p in told] == [1.0]


def test_what_the_function_raises_cancels_the_job():
    def refuse(progress):
        raise KeyError("no")

    job = Job(5)
    with pytest.raises(KeyError):
        run(job, refuse)
    assert job.was_cancelled and job.is_done


@pytest.mark.parametrize("progress", [1, "yes", 0.5, []])
def test_progress_is_a_bool_or_a_function(progress):
    job = Job()
    with pytest.raises(errors.BadArgument, match="neither a bool nor") as caught:
        run(job, progress)
    assert caught.value.argument == "progress" and not job.waits


@pytest.mark.parametrize("progress, wanted", [
    (None, False), (False, False), (True, True), (print, True)])
def test_whether_it_is_wanted(progress, wanted):
    assert _progress.is_wanted(progress) is wanted


@pytest.fixture
def notebook(monkeypatch):
    """What IPython looks like in a process that is a notebook's kernel."""
    displays = []

    class Handle:
        def update(self, data, raw):
            assert raw
            displays.append(data)

    def display(data, raw, display_id):
        assert raw and display_id
        displays.append(data)
        return Handle()

    module = types.ModuleType("IPython")
    module.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    module.display = types.SimpleNamespace(display=display)
    monkeypatch.setitem(sys.modules, "IPython", module)
    return displays


def test_a_notebook_shows_one_display(notebook, terminal):
    run(Job(3), True)
    assert len(notebook) == 4 and terminal.getvalue() == ""
    assert 'value="66"' in notebook[1]["text/html"]
    assert notebook[1]["text/plain"].startswith("66% 3.0/4.5")
    assert set(notebook[-1].values()) == {""}


def test_a_notebook_shows_nothing_for_a_short_job(notebook):
    run(Job(0), True)
    assert notebook == []


def test_ipython_in_a_terminal_has_a_line(notebook, terminal):
    sys.modules["IPython"].get_ipython = lambda: types.SimpleNamespace()
    run(Job(3), True)
    assert notebook == [] and shown(terminal)
    sys.modules["IPython"].get_ipython = lambda: None
    run(Job(3), True)
    assert notebook == []


# Real jobs.


def test_a_real_job_tells_how_far_it_is(gd):
    a = gd.zeros((4 << 20,))
    told = []
    assert gd.evaluate("sum(sin(a))", a=a, progress=told.append) == 0
    assert told[-1].fraction == 1.0 and told[-1].read_bytes == a.nbytes
    assert told[-1].tiles == told[-1].tiles_done > 1
    assert [p.fraction for p in told] == sorted(p.fraction for p in told)


def test_the_result_is_the_same_with_progress(gd):
    a = np.arange(1000.0)
    np.testing.assert_array_equal(gd.evaluate("sqrt(a)", a=a, progress=True), np.sqrt(a))
    with pytest.raises(errors.BadExpression):
        gd.evaluate("sqrt(a", a=a, progress=True)
    with pytest.raises(errors.BadArgument):
        gd.evaluate("a", a=a, progress="yes")


def on_a_terminal(daemon, script, act=None, columns=70):
    """Runs Python with a terminal as stderr; act(process) is called when there is a line."""
    leader, follower = pty.openpty()
    ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=follower,
                               env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})
    os.close(follower)
    text = ""
    try:
        while True:
            try:
                got = os.read(leader, 4096)
            except OSError:
                break  # the other side is closed
            text += got.decode()
            if act is not None and "left" in text:
                act(process)
                act = None
        out = process.stdout.read()
        process.wait(60)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        os.close(leader)
    return text, out, process.returncode


# Half of the job's elements come when a line is read from stdin.
SCRIPT = """
    import sys
    import numpy as np
    import gpuarrayd as gd
    class Half:
        n = 4 << 20
        def __gad_source__(self, session):
            return session.from_blocks("<f8", (self.n,), self.read, None)
        def read(self, start, count, block):
            if start[0] + count[0] > self.n // 2:
                sys.stdin.readline()
            np.frombuffer(block)[:] = 1
    try:
        print(gd.evaluate("sum(a)", a=Half(), progress=True))
    except KeyboardInterrupt:
        print("left", gd.info()["counts"]["jobs_running"], gd.evaluate("1+1"))
    """


def go_on(process):
    process.stdin.close()


def interrupt(process):
    process.send_signal(signal.SIGINT)
    process.stdin.close()


def test_on_a_real_terminal(gd, daemon):
    text, out, code = on_a_terminal(daemon, SCRIPT, go_on)
    assert (out, code) == ("4194304.0\n", 0)
    lines = text.split("\r")
    assert any(re.match(r" *\d+% \[#*\.*\] [\d.]+/0\.0 GB  [\d.]+ GB/s", line) for line in lines)
    assert all(len(line.removesuffix("\x1b[K")) < 70 for line in lines)
    assert text.endswith(CLEAR) and "\n" not in text


def test_ctrl_c_takes_the_line_away_and_ends_the_job(gd, daemon):
    text, out, code = on_a_terminal(daemon, SCRIPT, interrupt)
    assert (out, code) == ("left 0 2\n", 0)
    assert text.endswith(CLEAR)
