"""Clients that are stopped, or never answer: the pool's memory that their jobs keep comes back."""

import threading
import time

import numpy as np
import pytest

import storm
import wire
from test_provider import Ring
from users import needs_users
from wire import Error, described

RNG = np.random.default_rng(25)
N = 512


class Stopped:
    """A product whose client stops after some blocks, until .back is set."""

    def __init__(self, w, again, after=3):
        self.back = threading.Event()
        self.stopped = threading.Event()
        self.a, self.b = RNG.normal(size=(N, N)), RNG.normal(size=(N, N))
        self.c = np.zeros((N, N))
        self.rings = [Ring(self.a), Ring(self.b), Ring(self.c)]
        self.n_served = 0
        for ring, serve in zip(self.rings, (Ring.fill, Ring.fill, Ring.drain)):
            ring.serve = self.serve(ring, serve, after)
        fds = [fd for ring in self.rings for fd in ring.fds()]
        names = zip("ab", (self.a, self.b), (0, 3))
        self.request = {
            "args": {name: described(x, self.rings[at // 3].at(at)) for name, x, at in names},
            "outputs": [{"expr": "a @ b", "to": described(self.c, self.rings[2].at(6))}]}
        self.w = w
        self.ident = w.send("job.run", fds=fds, again=again, **self.request)

    def serve(self, ring, serve, after):
        def served(start, count, block):
            self.n_served += 1
            if self.n_served > after and not self.back.is_set():
                self.stopped.set()
                self.back.wait(60)
            return serve(ring, start, count, block)
        return served

    def close(self):
        self.back.set()
        for ring in self.rings:
            ring.close()


def product(w):
    """Somebody else's, whose client answers."""
    job = Stopped(w, False, after=1 << 30)
    w.reply(job.ident)
    assert np.allclose(job.c, job.a @ job.b)
    job.close()


def states(w):
    return [job["state"] for job in w.call("job.list")]


def test_a_stopped_client_gives_its_carry_to_others_and_begins_again(start):
    daemon = start(pool="4M", args=["--provider-timeout", "0.3"])
    with daemon.connect() as w, daemon.connect(timeout=20) as other:
        job = Stopped(w, True)
        assert job.stopped.wait(20)
        for _ in range(2):
            product(other)
        assert "running" in states(other)  # it waits, without its carry
        assert daemon.info()["counts"]["carries"] == 0
        job.back.set()
        w.reply(job.ident)
        assert np.allclose(job.c, job.a @ job.b)
        job.close()


def test_it_can_be_cancelled_while_it_waits_for_its_client(start):
    daemon = start(pool="4M", args=["--provider-timeout", "0.3"])
    with daemon.connect() as w, daemon.connect(timeout=20) as other:
        job = Stopped(w, True)
        assert job.stopped.wait(20)
        product(other)
        (ident,) = [job["job"] for job in other.call("job.list") if job["state"] == "running"]
        other.call("job.cancel", job=ident)
        with pytest.raises(Error) as caught:
            w.reply(job.ident)
        assert caught.value.code == "cancelled"
        job.close()


def test_what_cannot_begin_again_ends_with_the_numbers(start):
    daemon = start(pool="4M", args=["--provider-timeout", "0.3"])
    with daemon.connect() as w, daemon.connect(timeout=20) as other:
        job = Stopped(w, False)
        assert job.stopped.wait(20)
        product(other)
        with pytest.raises(Error) as caught:
            w.reply(job.ident)
        error = caught.value
        assert error.code == "provider-failed", error.fields
        assert error.fields["expected"] == "an answer within 0.3 s"
        assert "has not answered for" in error.fields["message"], error.fields
        job.close()


def test_nobody_waits_nobody_is_hurried(start):
    daemon = start(pool="4M", args=["--provider-timeout", "0.1"])
    with daemon.connect() as w:
        job = Stopped(w, False)
        assert job.stopped.wait(20)
        time.sleep(1.5)
        assert daemon.info()["counts"]["carries"] == 1
        job.back.set()
        w.reply(job.ident)
        assert np.allclose(job.c, job.a @ job.b)
        job.close()


SUMS = "sum(a - mean(a, axis=0))"  # keeps close to half of what a pool of 4 MiB has for carries


def ask_sums(w, ring):
    return w.send("job.run", fds=ring.fds(), args={"a": described(ring.array, ring.at())},
                  outputs=[{"expr": SUMS}])


def never_answer(path):
    """Sums of arrays that never come."""
    rings = [Ring(np.zeros((64, 16384)), serve=lambda start, count, block: None) for _ in range(8)]
    with wire.Wire(path) as w:
        for ring in rings:
            ask_sums(w, ring)
        time.sleep(3600)


@needs_users
def test_one_user_cannot_have_all_carries(start):
    """Long before provider-timeout another user's sums are done."""
    daemon = storm.open_to_all(start(pool="4M", args=["--provider-timeout", "1h"]))
    with storm.Attack(never_answer, daemon.socket), daemon.connect(timeout=20) as w:
        end = time.monotonic() + 20
        while daemon.info()["counts"]["jobs_queued"] < 6 and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.1)
        ring = Ring(RNG.normal(size=(64, 16384)))
        result = w.reply(ask_sums(w, ring))
        assert abs(wire.result_array(result["outputs"][0])[()]) < 1e-6
        ring.close()
