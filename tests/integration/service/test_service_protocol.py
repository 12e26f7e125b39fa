"""What a service manager hears of the daemon, and the socket that it hands over."""

import fcntl
import os
import re
import signal
import socket
import subprocess
import time

import pytest

import conftest
import wire
from test_broker import SMALL, until

pytestmark = pytest.mark.skipif(b"libsystemd.so" not in conftest.DAEMON.read_bytes(),
                                reason="built without libsystemd")


class Manager:
    """The socket that $NOTIFY_SOCKET names."""

    def __init__(self, folder):
        self.path = str(folder / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)

    def next(self, seconds=20):
        self.socket.settimeout(seconds)
        return self.socket.recv(4096).decode()

    def until(self, wanted):
        """Every message up to the one that matches."""
        seen = []
        while not seen or not re.fullmatch(wanted, seen[-1]):
            seen.append(self.next())
        return seen

    def is_silent(self, seconds):
        self.socket.settimeout(seconds)
        try:
            return not self.socket.recv(4096)
        except TimeoutError:
            return True

    def close(self):
        self.socket.close()


@pytest.fixture
def manager(folder):
    m = Manager(folder)
    yield m
    m.close()


def pings(seconds):
    return {"WATCHDOG_USEC": str(int(seconds * 1e6))}


def test_it_tells_when_it_is_ready_and_when_it_leaves(start, manager):
    daemon = start(env={"NOTIFY_SOCKET": manager.path})
    assert manager.next() == "READY=1"
    assert manager.next() == "STATUS=serving: 0 sessions, 0 jobs run, 0 wait"
    daemon.process.send_signal(signal.SIGTERM)
    assert manager.next() == "STOPPING=1"
    assert manager.next() == "STATUS=leaving: 0 jobs run"
    assert daemon.process.wait(20) == 0


def test_a_reload_is_announced_with_its_time(start, manager, folder):
    path = folder / "c"
    path.write_text("")
    daemon = start(args=["--config", path], env={"NOTIFY_SOCKET": manager.path})
    manager.until("STATUS=.*")
    for text in "[queue]\nmax-queue = 5\n", "[queue]\nmax-queue = x\n":
        path.write_text(text)
        before = time.clock_gettime(time.CLOCK_MONOTONIC)
        daemon.process.send_signal(signal.SIGHUP)
        message = manager.next()
        found = re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=(\d+)", message)
        assert found, message
        assert before <= int(found[1]) / 1e6 <= time.clock_gettime(time.CLOCK_MONOTONIC)
        assert manager.next() == "READY=1"


def test_the_watchdog_is_fed_at_half_its_time(start, manager):
    start(env={"NOTIFY_SOCKET": manager.path, **pings(0.2)})
    manager.until("WATCHDOG=1")
    times = []
    while len(times) < 5:
        manager.until("WATCHDOG=1")
        times.append(time.monotonic())
    between = [b - a for a, b in zip(times, times[1:])]
    assert 0.08 <= sorted(between)[len(between) // 2] <= 0.15, between


def test_a_loop_that_stands_still_feeds_nobody(start, manager):
    daemon = start(env={"NOTIFY_SOCKET": manager.path, **pings(0.1)})
    manager.until("STATUS=.*")
    daemon.process.send_signal(signal.SIGSTOP)
    until(lambda: open(f"/proc/{daemon.process.pid}/stat").read().split()[2] == "T")
    while not manager.is_silent(0.02):
        pass  # what was under way
    assert manager.is_silent(0.3)
    daemon.process.send_signal(signal.SIGCONT)
    manager.until("WATCHDOG=1")


def test_a_watchdog_of_another_process_is_not_fed(start, manager):
    start(env={"NOTIFY_SOCKET": manager.path, "WATCHDOG_PID": "1", **pings(0.02)})
    manager.until("STATUS=.*")
    assert manager.is_silent(0.2)


def test_a_manager_that_does_not_read_holds_up_nobody(start, manager):
    filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    filler.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            filler.sendto(b"X=1", manager.path)
    daemon = start(env={"NOTIFY_SOCKET": manager.path, **pings(0.02)})
    with daemon.connect() as w:
        for _ in range(30):
            before = time.monotonic()
            assert "outputs" in w.call("job.run", **SMALL)
            assert time.monotonic() - before < 2
            time.sleep(0.005)
    manager.until("READY=1")  # it was not lost
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(20) == 0


def test_it_leaves_even_if_the_manager_never_reads(start, manager):
    filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    filler.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            filler.sendto(b"X=1", manager.path)
    daemon = start(env={"NOTIFY_SOCKET": manager.path})
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(20) == 0
    assert "leaving without a thread" in daemon.text()


def test_a_manager_that_has_gone_is_no_fault(start, manager):
    daemon = start(env={"NOTIFY_SOCKET": manager.path + "-none", **pings(0.02)})
    with daemon.connect() as w:
        assert "outputs" in w.call("job.run", **SMALL)
    until(lambda: "the service manager cannot be told: No such file" in daemon.text())


# -- sockets that are handed over ------------------------------------------------------------------

START = ('export LISTEN_PID=$$ LISTEN_FDS=$1 LISTEN_FDNAMES=$2; shift 2; exec "$@"')


def hand_over(*sockets, folder, names="gpuarrayd.socket", count=None, words=()):
    """The daemon, started with these as descriptors 3 and up, as systemd does it."""
    command = ["sh", "-c", START, "sh", count or len(sockets), names, conftest.DAEMON, "--pool", "1M",
               "--threads", "1", "--worker", conftest.WORKER, "--socket", folder / "unused",
               "--log-level", "info", *words]
    high = [fcntl.fcntl(s.fileno(), fcntl.F_DUPFD, 100) for s in sockets]  # none that is in use

    def place():
        for i, fd in enumerate(high):
            os.dup2(fd, 3 + i)

    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, preexec_fn=place, close_fds=False)
    for fd in high:
        os.close(fd)
    return process


def listening(folder):
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(folder / "socket"))
    s.listen(16)
    return s


def text(folder):
    return (folder / "log").read_text()


def test_a_socket_that_was_handed_over_is_served_and_stays(folder):
    path = str(folder / "socket")
    with listening(folder) as s:
        early = socket.socket(socket.AF_UNIX)  # knocks before anybody serves
        early.connect(path)
        for _ in range(2):  # a second daemon takes the same one
            daemon = hand_over(s, folder=folder)
            with wire.Wire(path) as w:
                assert "outputs" in w.call("job.run", **SMALL)
                assert w.call("server.info")["pid"] == daemon.pid
            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(20) == 0, text(folder)
            assert os.path.exists(path) and not (folder / "unused").exists()
            assert "socket 'gpuarrayd.socket' was handed over" in text(folder)
        early.close()


def test_an_idle_daemon_leaves_its_socket_for_the_next(folder):
    with listening(folder) as s:
        daemon = hand_over(s, folder=folder, words=["--idle-exit", "100ms"])
        assert daemon.wait(20) == 0, text(folder)
        assert os.path.exists(folder / "socket")


@pytest.mark.parametrize("kind", ["two", "datagram", "internet", "not-listening", "file"])
def test_anything_but_one_listening_stream_socket_is_refused(folder, kind):
    made = {
        "two": lambda: [listening(folder), socket.socketpair()[0]],
        "datagram": lambda: [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)],
        "internet": lambda: [socket.create_server(("127.0.0.1", 0))],
        "not-listening": lambda: [socket.socket(socket.AF_UNIX)],
        "file": lambda: [open("/dev/null")],
    }[kind]()
    daemon = hand_over(*made, folder=folder, names=":".join(["one", "two"][:len(made)]))
    assert daemon.wait(20) == 1
    assert "expected one listening stream socket of the Unix domain, found" in text(folder)
    assert "descriptor 3 is 'one'" in text(folder)
    assert ("descriptor 4 is 'two'" in text(folder)) == (kind == "two")
    for s in made:
        s.close()


@pytest.mark.parametrize("count, names", [("1", "one:two"), ("1x", "one"), ("-1", "one"),
                                          ("1000000", "one")])
def test_a_wrong_account_of_what_is_handed_over_is_told(folder, count, names):
    with listening(folder) as s:
        daemon = hand_over(s, folder=folder, count=count, names=names)
        assert daemon.wait(20) == 1
    assert "what LISTEN_FDS and LISTEN_FDNAMES say was not handed over: " in text(folder)


def test_descriptors_for_another_process_are_not_taken(start):
    daemon = start(env={"LISTEN_PID": "1", "LISTEN_FDS": "1"})
    with daemon.connect() as w:
        assert w.call("ping") == {}
    assert os.path.exists(daemon.socket)
