"""Two users on one daemon: each sees only what is its own, and gets its share."""

import os
import time

import numpy as np
import pytest

import conftest
import wire
from users import NOBODY, as_user, needs_users
from wire import Error, described

pytestmark = needs_users


@pytest.fixture
def shared(start):
    daemon = start(user=NOBODY, pool="4M", threads=1)
    os.chmod(daemon.socket, 0o666)
    return daemon


def foreign(path, region, job):
    """What another user gets for ids that are not its own."""
    codes = []
    with wire.Wire(path) as w:
        for method, params in (("region.detach", {"region": region}), ("job.status", {"job": job}),
                               ("job.wait", {"job": job}), ("job.cancel", {"job": job}),
                               ("job.settle", {"job": job})):
            try:
                w.call(method, **params)
                codes.append("allowed")
            except Error as error:
                codes.append(error.code)
        try:
            w.run("a + 1", a={"dtype": "<f8", "shape": [10],
                              "at": {"kind": "region", "id": region, "offset": 0}})
            codes.append("allowed")
        except Error as error:
            codes.append(error.code)
        return codes, len(w.call("job.list"))


def test_ids_are_inside_their_user(shared):
    with shared.connect() as w:
        region = wire.Region(w, 1 << 16)
        job = w.call("job.submit", args={"a": wire.argument(np.arange(3.0))},
                     outputs=[{"expr": "a + 1"}])["job"]
        w.call("job.wait", job=job)
        codes, n_jobs = as_user(NOBODY, foreign, shared.socket, region.id, job)
        assert codes == ["unknown-region"] + ["unknown-job"] * 4 + ["unknown-region"]
        assert n_jobs == 0
        assert [j["job"] for j in w.call("job.list")] == [job]


N_ELEMENTS = (2 if conftest.IS_SANITIZED else 8) << 20


def one_job(path):
    """Seconds that a middling job takes while the other user has dozens queued."""
    with wire.Wire(path) as w:
        region = wire.Region(w, 32 << 20)
        a = region.array("f4", (N_ELEMENTS,))
        began = time.monotonic()
        w.run("sum(exp(sin(a)))", a=described(a, region.at()))
        return time.monotonic() - began


@pytest.mark.plain
def test_nobody_waits_behind_another_users_queue(shared):
    alone = as_user(NOBODY, one_job, shared.socket)
    with shared.connect() as w:
        region = wire.Region(w, 32 << 20)
        a = region.array("f4", (N_ELEMENTS,))
        jobs = [w.send("job.run", args={"a": described(a, region.at())},
                       outputs=[{"expr": "sum(exp(sin(a)))"}]) for _ in range(30)]
        w.call("ping")
        beside = as_user(NOBODY, one_job, shared.socket)
        waiting = sum(ident not in w.replies for ident in jobs)
        n_running = shared.counts()
        for ident in jobs:
            w.reply(ident)
    # Half of the machine is the share of each of two users; a queue of thirty would be thirtyfold.
    assert beside < 10 * alone + 1, (alone, beside, waiting, n_running)
