"""What admins do while the daemon runs: look at everybody, say weights, have it take no more jobs."""

import json
import os
import signal

import pytest

import test_times
import wire
from test_broker import SMALL, code_of, slow_daemon, until
from test_config import file  # noqa: F401: a fixture
from test_user_rules import STAFF, forked, jobs_beside, left, send_jobs
from users import NOBODY, as_user, needs_users

PUBLIC = {"uid", "weight", "sessions", "jobs_queued", "jobs_running", "jobs_settling", "region_bytes"}
GARBAGE = ({}, {"user": -1}, {"user": "root"}, {"user": 1 << 32}, {"user": 2 ** 32 - 1},
           {"user": 0, "weight": 1001}, {"user": 0, "weight": -1}, {"user": 0, "weight": "4"}, {"weight": 2})


def opened(start, file, text="", **kwargs):  # noqa: F811
    daemon = start(args=["--config", file(text), "--log-level", "info"], pool="4M", threads=1, user=NOBODY, **kwargs)
    os.chmod(daemon.socket, 0o666)
    return daemon


def users_of(w):
    answer = w.call("server.users")
    return answer, {user["uid"]: user for user in answer["users"]}


def test_a_user_is_told_all_of_itself(daemon, w):
    region = wire.Region(w, 1 << 16)
    answer, users = users_of(w)
    own = users[os.geteuid()]
    assert answer["admin"] and answer["left_out"] == 0 and not own["weight_said"]
    assert own["region_bytes"] == own["holds"]["region_bytes"]["use"] == region.size
    assert own["holds"]["sessions"]["use"] == own["sessions"] >= 1
    for name, hold in own["holds"].items():
        assert set(hold) == {"use", "limit", "share"} and hold["share"] <= hold["limit"], name


def test_slots_and_carries_of_jobs_that_run(start):
    daemon = slow_daemon(start, pool="4M")
    with daemon.connect() as w, daemon.connect() as other:
        region = wire.Region(w, 8 << 20)
        a = region.array("f8", (1 << 20,))
        out = wire.Region(w, 8 << 20)
        # Sums of all along one axis of a large array stay in a carry.
        job = w.call("job.submit", args={"a": wire.described(a.reshape(8, 1 << 17), region.at())},
                     label="fault:slow", outputs=[{"expr": "sum(a, axis=0)", "to": wire.described(
                         out.array("f8", (1 << 17,)), out.at())}])["job"]
        until(lambda: users_of(other)[1][os.geteuid()]["jobs_running"] == 1)
        own = users_of(other)[1][os.geteuid()]
        assert own["carries"] == 1 and own["carry_bytes"] >= 1 << 20 and own["holds"]["jobs"]["use"] == 1
        w.call("job.cancel", job=job)
        until(lambda: users_of(other)[1][os.geteuid()]["carries"] == 0)


def seen_by(path, groups):
    """What somebody of these groups sees of root, and may say of its weight."""
    os.setgroups(groups)
    os.setresgid(12345, 12345, 12345)
    os.setresuid(12345, 12345, 12345)
    with wire.Wire(path) as w:
        answer, users = users_of(w)
        try:
            w.call("server.weight", user=0, weight=5)
            said = "said"
        except wire.Error as error:
            said = (error.code, error.found)
        return answer["admin"], sorted(users[0]), "holds" in users[12345], answer["users"][0]["uid"], said


@needs_users
def test_others_see_what_stats_shows_and_admins_all(start, file):  # noqa: F811
    daemon = opened(start, file, f"[server]\nadmin-group = {STAFF}\n")
    with daemon.connect() as w:
        assert forked(seen_by, daemon.socket, []) == (
            False, sorted(PUBLIC), True, 12345, ("permission-denied", "uid 12345"))
        assert users_of(w)[1][0]["weight"] == 1
        admin, keys, _, first, said = forked(seen_by, daemon.socket, [STAFF])
        assert admin and set(keys) > PUBLIC and first == 12345 and said == "said"
        own = users_of(w)[1][0]
        assert own["weight"] == 5 and own["weight_said"]
        w.call("server.weight", user=0)
        assert users_of(w)[1][0]["weight"] == 1


def listed_by(path, groups, params):
    """Whose jobs somebody of these groups is shown, who asks for those."""
    os.setgroups(groups)
    os.setresgid(12345, 12345, 12345)
    os.setresuid(12345, 12345, 12345)
    with wire.Wire(path) as w:
        w.call("job.run", **SMALL)
        try:
            return [job["uid"] for job in w.call("job.list", **params)]
        except wire.Error as error:
            return error.code


@needs_users
def test_jobs_of_others_are_listed_for_admins(start, file):  # noqa: F811
    daemon = opened(start, file, f"[server]\nadmin-group = {STAFF}\n")
    with daemon.connect() as w:
        first = w.call("job.run", **SMALL)["job"]
        w.call("job.run", **SMALL)
        for params, seen in (({"everybody": True}, {0, 12345}), ({"user": 0}, {0}), ({"user": 4242}, set())):
            assert forked(listed_by, daemon.socket, [], params) == "permission-denied"
            found = forked(listed_by, daemon.socket, [STAFF], params)
            assert set(found) == seen and found.count(0) == 2 * (0 in seen), params
        assert set(forked(listed_by, daemon.socket, [], {"user": 12345})) == {12345}
        assert set(forked(listed_by, daemon.socket, [], {})) == {12345}
        for params in ({"user": -1}, {"user": 2**32 - 1}, {"everybody": False}, {"user": 0, "everybody": True}):
            assert code_of(w.call, "job.list", **params) == "bad-request", params
        assert [job["job"] for job in w.call("job.list")][-1] == first
    lines = daemon.ctl("jobs", "--everybody").stdout.splitlines()
    assert lines[0].split() == "JOB STATE TILES RUNNING USER LABEL".split()
    assert any(" root " in line for line in lines) and any(" 12345 " in line for line in lines)
    listed = json.loads(daemon.ctl("jobs", "--user", "root", "--json").stdout)
    assert {job["uid"] for job in listed} == {0} and listed[0]["job"] == first
    for words in (["--user", "nobody-has-this-name"], ["--user", "root", "--everybody"]):
        assert daemon.ctl("jobs", *words, check=False).returncode == 2


def test_garbage_for_weights(daemon, w):
    for params in GARBAGE:
        assert code_of(w.call, "server.weight", **params) == "bad-request", params
    assert w.call("ping") == {}


@needs_users
def test_a_weight_is_said_while_jobs_run(start, file):  # noqa: F811
    daemon = opened(start, file)
    # What of root's ends while nobody looks is more, never less: where much has, it is tried again.
    for _ in range(5):
        with daemon.connect() as w:
            w.call("server.weight", user=NOBODY)
            w.reply(send_jobs(w, 400)[0])
            said = daemon.ctl("users", "--weight", f"{NOBODY}=8", "--json")
            assert json.loads(said.stdout)["admin"]
            n_ours, n_roots = as_user(NOBODY, jobs_beside, daemon.socket, 64)
            had_both_work = left(w, 0)[0] > 0 and n_ours > 20
        if had_both_work and n_roots < n_ours / 2:
            break
    assert had_both_work and n_roots < n_ours / 2
    assert f"user {NOBODY} has weight 8; it was 1, user 0 says" in daemon.text()


@needs_users
def test_a_reload_takes_weights_back(start, file):  # noqa: F811
    daemon = opened(start, file)
    with daemon.connect() as w:
        w.call("server.weight", user=0, weight=9)
        w.call("server.weight", user=4242, weight=9)  # who is not there
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: users_of(w)[1][0]["weight"] == 1)


def test_the_verb(daemon, w):
    table = daemon.ctl("users").stdout.splitlines()
    assert table[0].split() == "USER WEIGHT SESS RUN QUEUE SLOTS CARRIES ATTACHED DESCRIPTORS".split()
    limits = daemon.ctl("users", "--limits").stdout
    assert "region_bytes" in limits and "SHARE NOW" in limits
    name = json.loads(daemon.ctl("users", "--json").stdout)["users"][0]["name"]
    daemon.ctl("users", "--weight", f"{name}=3")
    assert "3*" in daemon.ctl("users").stdout
    daemon.ctl("users", "--weight", f"{name}=default")
    for word in ("=3", "nobody-has-this-name=3", f"{name}=0", f"{name}=1001", f"{name}=", name):
        done = daemon.ctl("users", "--weight", word, check=False)
        assert done.returncode == 2, word


@needs_users
def test_the_verb_says_who_may(start, file):  # noqa: F811
    daemon = opened(start, file)
    done = daemon.ctl("users", "--weight", "root=2", check=False, user=12345, group=12345, extra_groups=[])
    assert done.returncode == 1 and "[permission-denied]" in done.stderr and "admin-group" in done.stderr


# -- drain -----------------------------------------------------------------------------------------

def test_a_daemon_that_is_drained_refuses_jobs_and_ends_those_that_run(start):
    daemon = slow_daemon(start, pool="4M", args=["--max-active", "1", "--user-active", "1"])
    with daemon.connect() as w:
        region, ident = test_times.slow_job(w, n=4)
        running = w.reply(ident)["job"]
        until(lambda: w.call("job.status", job=running)["state"] == "running")
        waiting = w.call("job.submit", key="k", **SMALL)["job"]
        text = "new driver, back at 14:00"
        assert w.call("server.drain", message=text) == {"running": 1, "queued": 1}
        for method in ("job.run", "job.submit"):
            with pytest.raises(wire.Error) as caught:
                w.call(method, **SMALL)
            assert caught.value.code == "draining"
            assert caught.value.message.endswith("for now: new driver, back at 14:00")
        costly = {"args": {"a": SMALL["args"]["a"]}, "outputs": [{"expr": "a" + " + a" * 600}]}
        assert code_of(w.call, "job.run", **costly) == "draining"  # planned by a thread
        assert w.call("server.info")["draining"].startswith("new driver")
        assert "outputs" in w.call("job.plan", **SMALL)
        assert w.call("job.submit", key="k", **SMALL)["job"] == waiting
        said = daemon.ctl("drain", "--wait", "--json").stdout
        assert json.loads(said) == {"running": 0, "queued": 1}
        assert "outputs" in w.call("job.wait", job=running)
        assert w.call("job.status", job=waiting)["state"] == "queued"
        assert daemon.ctl("drain", "--undo").stdout == "jobs are taken again; 0 jobs run, 1 wait\n"
        assert "outputs" in w.call("job.wait", job=waiting)
        assert "draining" not in w.call("server.info") and "outputs" in w.call("job.run", **SMALL)


def test_the_queue_of_a_drained_daemon_can_be_ended(daemon, w):
    w.call("server.drain")
    assert code_of(w.call, "job.run", **SMALL) == "draining"
    daemon.ctl("drain", "--undo")
    for params in ({"undo": 1}, {"message": "x" * 200}, {"message": "\x1b[0m"}, {"message": 5}):
        assert code_of(w.call, "server.drain", **params) == "bad-request"
    assert "outputs" in w.call("job.run", **SMALL)
    for words in (["--undo", "--wait"], ["now"], ["--undo", "-m", "text"]):
        assert daemon.ctl("drain", *words, check=False).returncode == 2


def drained_by(path, groups):
    os.setgroups(groups)
    os.setresgid(12345, 12345, 12345)
    os.setresuid(12345, 12345, 12345)
    with wire.Wire(path) as w:
        try:
            return w.call("server.drain", message="me")
        except wire.Error as error:
            return error.code


@needs_users
def test_draining_is_for_admins(start, file):  # noqa: F811
    daemon = opened(start, file, f"[server]\nadmin-group = {STAFF}\n")
    with daemon.connect() as w:
        assert forked(drained_by, daemon.socket, []) == "permission-denied"
        w.call("job.run", **SMALL)
        assert forked(drained_by, daemon.socket, [STAFF]) == {"running": 0, "queued": 0}
        assert code_of(w.call, "job.run", **SMALL) == "draining"
    done = daemon.ctl("run", "1 + 1", check=False)
    assert done.returncode == 1 and "[draining]" in done.stderr and "drain --undo" in done.stderr
