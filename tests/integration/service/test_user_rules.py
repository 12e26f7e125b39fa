"""Sections [user NAME] and [group NAME]: what single users and groups may have and hold."""

import os
import signal

import numpy as np
import pytest

import conftest
import wire
from test_broker import until
from test_config import check, file  # noqa: F401: a fixture
from users import NOBODY, as_user, needs_users

STAFF = 4321
N_ELEMENTS = (1 if conftest.IS_SANITIZED else 4) << 20


def test_mistakes_in_sections_of_users_and_groups(file):  # noqa: F811
    assert check(file("[user nobody-has-this-name]\nuser-jobs = 1\n[user 65534]\nuser-jobs = 1\n"
                      "user-jobs = 2\n[user nobody]\nuser-jobs = 3\n[group 65534]\nuser-weight = 0\n"
                      "max-queue = 3\nuser-wieght = 2\nuser-jobs = 100000\n[groupe 5]\n")) == [
        "FILE:1: expected a user's name or number, found 'nobody-has-this-name'",
        "FILE:5: user-jobs: expected once, found again after line 4",
        "FILE:6: expected user 65534 once, found again as 'nobody'",
        "FILE:9: user-weight: expected a number, from 1 to 1000; found '0'",
        "FILE:10: max-queue: expected a setting of [users] here",
        "FILE:11: user-wieght: expected a setting of [users] here; did you mean 'user-weight'?",
        "FILE:12: user-jobs: expected at most max-queue and max-active together, 16640; "
        "found 100000",
        "FILE:13: unknown section [groupe 5]",
    ]


def test_there_are_so_many_sections_at_most(file):  # noqa: F811
    sections = "".join(f"[user {uid}]\nuser-weight = 2\n" for uid in range(1000, 1065))
    assert check(file(sections)) == [
        "FILE:129: expected at most 64 sections of users and groups, found more"]


def in_staff(path, n_bytes):
    """What somebody of group STAFF gets who attaches so much."""
    with wire.Wire(path) as w:
        weights = {user["uid"]: user["weight"] for user in w.call("server.stats")["users"]}
        try:
            wire.Region(w, n_bytes)
            return weights[os.geteuid()], "attached"
        except wire.Error as error:
            return weights[os.geteuid()], error.code


def as_staff(path, n_bytes):
    """The same, in the group STAFF too: as root still, which alone may say so."""
    os.setgroups([12, STAFF])
    os.setresuid(NOBODY, NOBODY, NOBODY)
    return in_staff(path, n_bytes)


def forked(function, *arguments):
    """As users.as_user(), but function becomes whoever it wants."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, repr(function(*arguments)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return eval(text)  # noqa: S307: our own


@needs_users
def test_an_own_section_then_a_group_then_everybody(start, file):  # noqa: F811
    path = file("[users]\nregion-limit = 64K\n[group 4321]\nregion-limit = 1M\nuser-weight = 3\n"
                "[group 12]\nuser-weight = 5\n")
    daemon = start(args=["--config", path, "--log-level", "info"], user=NOBODY)
    os.chmod(daemon.socket, 0o666)
    assert as_user(NOBODY, in_staff, daemon.socket, 1 << 19) == (1, "quota-exceeded")
    assert forked(as_staff, daemon.socket, 1 << 19) == (3, "attached")
    assert forked(as_staff, daemon.socket, 1 << 21) == (3, "quota-exceeded")

    with daemon.connect() as w:
        assert w.call("server.stats")["users"][0]["weight"] == 1
        file(f"[group {STAFF}]\nuser-weight = 3\n[user 65534]\nregion-limit = 8K\n[user 0]\n"
             "user-weight = 7\nuser-jobs = 2\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: w.call("server.stats")["users"][0]["weight"] == 7)  # of who is connected, too
        w.send("job.submit", args={"a": wire.argument(np.zeros(1))}, outputs=[{"expr": "a"}])
        assert "sections of users and groups are others: 3; there were 2" in daemon.text()
    assert forked(as_staff, daemon.socket, 16384) == (3, "quota-exceeded")
    file("")
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: as_user(NOBODY, in_staff, daemon.socket, 16384) == (1, "attached"))


def send_jobs(w, n, method="job.run"):
    region = wire.Region(w, N_ELEMENTS * 4)
    a = region.array("f4", (N_ELEMENTS,))
    return [w.send(method, args={"a": wire.described(a, region.at())},
                   outputs=[{"expr": "sum(exp(sin(a)))"}]) for _ in range(n)]


def cancel(path, groups, job):
    """What somebody of these groups gets who cancels root's job."""
    os.setgroups(groups)
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    with wire.Wire(path) as w:
        try:
            return w.call("job.status", job=job)["state"], w.call("job.cancel", job=job)
        except wire.Error as error:
            return error.code


@needs_users
def test_admins_may_see_and_cancel_everybodys_jobs(start, file):  # noqa: F811
    path = file(f"[server]\nadmin-group = {STAFF}\n")
    daemon = start(args=["--config", path], pool="4M", threads=1)
    os.chmod(daemon.socket, 0o666)
    os.chmod(os.path.dirname(daemon.socket), 0o755)
    with daemon.connect() as w:
        job = w.reply(send_jobs(w, 300, "job.submit")[-1])["job"]  # those before it take a while
        assert forked(cancel, daemon.socket, [12], job) == "unknown-job"
        assert forked(cancel, daemon.socket, [12, STAFF], job)[0] in ("queued", "running")
        with pytest.raises(wire.Error) as caught:
            w.call("job.wait", job=job)
        assert caught.value.code == "cancelled"
        file("[server]\nadmin-group = nobody-has-this-name\n")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: "admin-group: expected a group's name or number, found 'nobody-has-this-name'"
              in daemon.text())
    assert check(file("[server]\nadmin-group = none\n")) == []


def left(w, *uids):
    """How many jobs each has left at one moment."""
    users = {user["uid"]: user for user in w.call("server.stats")["users"]}
    return [users[uid]["jobs_queued"] + users[uid]["jobs_running"] for uid in uids]


def jobs_beside(path, n):
    """How many of ours are left when all have been taken in, and of root's end until they have."""
    with wire.Wire(path) as w:
        idents = send_jobs(w, n)
        w.call("ping")
        roots, ours = left(w, 0, NOBODY)
        for ident in idents:
            w.reply(ident)
        return ours, roots - left(w, 0)[0]


@needs_users
@pytest.mark.parametrize("weight", [1, 8])
def test_weights_share_the_time_of_users_who_all_have_work(start, file, weight):  # noqa: F811
    daemon = start(args=["--config", file(f"[user 65534]\nuser-weight = {weight}\n")], user=NOBODY,
                   pool="4M", threads=1)
    os.chmod(daemon.socket, 0o666)
    # What of root's ends while nobody looks is more, never less: where much has, it is tried again.
    for _ in range(5):
        with daemon.connect() as w:
            w.reply(send_jobs(w, 400)[0])
            n_ours, n_roots = as_user(NOBODY, jobs_beside, daemon.socket, 64)
            had_both_work = left(w, 0)[0] > 0 and n_ours > 20
        if not had_both_work:
            continue
        assert n_roots >= 0.6 * n_ours / weight - 1
        if weight == 1 or n_roots < n_ours / 2:
            return
    pytest.fail(f"{n_roots} of root's jobs beside {n_ours}")
