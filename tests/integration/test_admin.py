"""What admins do while the daemon runs: look at everybody, say weights."""

import json
import os
import signal

import numpy as np
import pytest

import wire
from test_broker import code_of, slow_daemon, slow_job, until
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


def test_garbage_for_weights(daemon, w):
    for params in GARBAGE:
        assert code_of(w.call, "server.weight", **params) == "bad-request", params
    assert w.call("ping") == {}


@needs_users
def test_a_weight_is_said_while_jobs_run(start, file):  # noqa: F811
    daemon = opened(start, file)
    with daemon.connect() as w:
        w.reply(send_jobs(w, 400)[0])
        said = daemon.ctl("users", "--weight", f"{NOBODY}=8", "--json")
        assert json.loads(said.stdout)["admin"]
        n_ours, n_roots = as_user(NOBODY, jobs_beside, daemon.socket, 64)
        assert left(w, 0)[0] > 0 and n_ours > 20  # there was work of both all the time
        assert n_roots < n_ours / 2
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
