"""The log beside a user who fills it, and who would like to be somebody else in it."""

import os
import re
import subprocess
import time

import pytest

import storm
import wire
from users import as_user, needs_users
from wire import Closed, Error

pytestmark = needs_users
FORGED = 'x" UID=0 y\' UID=0'


def offend(path, n):
    """A client that is dropped with a warning, so many times. The name is one nobody may believe."""
    for _ in range(n):
        with wire.Wire(path, hello=False) as w:
            w.call("hello", version=1, client=FORGED)
            w.send_bytes(wire.frame(b"\xc1"))
            with pytest.raises(Closed):
                w.receive()


def refuse(path, name):
    with wire.Wire(path, hello=False) as w:
        with pytest.raises(Error) as caught:
            w.call("hello", version=1, client=name)
    return caught.value.code


def lines_of(daemon, uid):
    return [line for line in daemon.text().splitlines() if line.endswith(f"UID={uid}")]


def test_a_user_cannot_fill_the_log(start):
    """Of 400 warnings some fifty are written; how many were not is told, and counted."""
    daemon = storm.open_to_all(start(user=storm.HONEST))
    as_user(storm.MALLORY, offend, daemon.socket, 400)
    as_user(storm.HONEST, offend, daemon.socket, 3)
    end = time.monotonic() + 20
    while not (told := re.findall(r"log: (\d+) lines were left out.* UID=65533", daemon.text())):
        assert time.monotonic() < end, daemon.text()
        time.sleep(0.05)
    assert len(lines_of(daemon, storm.MALLORY)) < 300  # 50, and one for each second that it took
    assert len(lines_of(daemon, storm.HONEST)) == 3
    with daemon.connect() as w:
        left_out = w.call("server.stats")["log"]["left_out_lines"]
    assert left_out >= 100
    assert sum(map(int, told)) <= left_out


def test_lines_of_a_user_are_charged(start):
    daemon = storm.open_to_all(start(user=storm.HONEST, args=["--log-level", "info", "--user-log-lines", "12"]))
    as_user(storm.MALLORY, offend, daemon.socket, 20)
    with daemon.connect() as w:
        assert 1 <= len(lines_of(daemon, storm.MALLORY)) < 40  # of three for each connection
        users = {user["uid"]: user["holds"]["log_lines"] for user in w.call("server.users")["users"]}
        assert users[0]["limit"] == 12 and 1 <= users[0]["use"] <= 4
        assert users[0]["share"] < 12  # of what others leave
        assert w.call("server.stats")["log"]["left_out_lines"] >= 20


def test_a_name_cannot_pass_for_a_field(start):
    daemon = storm.open_to_all(start(user=storm.HONEST))
    as_user(storm.MALLORY, offend, daemon.socket, 1)
    text = daemon.text()
    assert 'client "x\\" UID\\=0 y\' UID\\=0"' in text
    assert "UID=0 " not in text
    assert len(re.findall(r"\bUID=", text)) == len(text.splitlines())


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", "a\u202eb", "a\u2066b", "a\u2028b", "a\x85b"])
def test_a_name_that_changes_how_a_line_is_read_is_refused(start, name):
    daemon = storm.open_to_all(start(user=storm.HONEST))
    assert as_user(storm.MALLORY, refuse, daemon.socket, name) == "bad-request"
    with daemon.connect() as w:
        with pytest.raises(Error) as caught:
            w.call("job.run", label=name, outputs=[{"expr": "a"}],
                   args={"a": wire.argument([1.0])})
    assert caught.value.code == "bad-request"


# -- nowhere to write ------------------------------------------------------------------------------

def logging_to(path):
    """What a daemon is started under, so that it logs there and not to the test's file."""
    return ["sh", "-c", f'exec "$@" >>{path} 2>&1', "sh"]


def many_jobs(w, n):
    """Each of which has a line of the log, of 2 KiB together."""
    for ident in [w.send("job.run", label=f"a label {i}", args={"a": wire.argument([1.0])},
                         outputs=[{"expr": "a + 1"}]) for i in range(n)]:
        w.reply(ident)


def dropped(w):
    return w.call("server.stats")["log"]["dropped_lines"]


def test_a_log_that_takes_nothing(start):
    daemon = start(args=["--log-level", "info"], under=logging_to("/dev/full"))
    with daemon.connect() as w:
        before = dropped(w)
        many_jobs(w, 8)
        assert dropped(w) >= before + 8 > 8


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_log_on_a_disk_that_gets_full(start, folder):
    """Lines are whole or end where the disk did; when there is room, how many are missing is told."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=True)
    try:
        other = folder / "other"
        other.write_bytes(bytes((64 << 10) - 4096))  # a page is left, which ends within a line
        daemon = start(args=["--log-level", "info"], under=logging_to(folder / "log"))
        with daemon.connect() as w:
            many_jobs(w, 40)
            assert dropped(w) > 0
            other.unlink()
            many_jobs(w, 1)
        text = (folder / "log").read_text()
        assert re.search(r"^gpuarrayd: warn: log: \d+ lines found no room$", text, re.M), text
        assert all(line.startswith("gpuarrayd: ") for line in text.splitlines()), text
        assert len(re.findall(r"^gpuarrayd: info: job: done ", text, re.M)) < 41
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
