"""Jobs of every kind that are paused, let go on, cancelled and timed out at random, by hand and all at
once, while weights change, the daemon is drained for a moment and workers are killed: each ends with its
result or with a code that says why, and nothing is left."""

import os
import random
import signal
import threading
import time

import numpy as np

import conftest
import storm
import wire

MIB = 1 << 20
SECONDS = storm.SECONDS if storm.IS_STORM else 2
ENDS = {"ok", "cancelled", "deadline-exceeded", "queue-timeout", "draining", "worker-lost"}


class Storm:
    def __init__(self, daemon, seed):
        self.daemon, self.seed = daemon, seed
        self.end = time.monotonic() + SECONDS
        self.lock, self.outcomes, self.wrong = threading.Lock(), {}, []

    def is_on(self):
        return time.monotonic() < self.end

    def note(self, code):
        with self.lock:
            self.outcomes[code] = self.outcomes.get(code, 0) + 1

    def submit(self, number):
        rng = random.Random(f"{self.seed} {number}")
        with self.daemon.connect() as w:
            region, to = wire.Region(w, 8 * MIB), wire.Region(w, MIB)
            a, out = region.array("f8", (8, 128 * 1024)), to.array("f8", (128 * 1024,))
            large = {"a": wire.described(a, region.at())}
            kinds = [
                ("fault:slow", large, {"expr": "sum(a, axis=0)", "to": wire.described(out, to.at())}),
                ("", large, {"expr": "sum(exp(a))"}),
                ("", {"a": wire.argument(np.arange(3.0))}, {"expr": "a + 1"}),
                ("fault:slow", large, {"expr": "a - mean(a, axis=0)", "to": wire.described(a, region.at())})]
            while self.is_on():
                label, args, output = rng.choice(kinds)
                times = {key: rng.randrange(1, 600) for key in ("deadline_ms", "queue_timeout_ms")
                         if rng.random() < 0.3}
                for ident in [w.send("job.run", label=label, args=args, outputs=[output], **times,
                                     priority=rng.randrange(-2, 3)) for _ in range(1 if label else 10)]:
                    try:
                        w.reply(ident)
                        self.note("ok")
                    except wire.Error as error:
                        self.note(error.code)

    def change(self, number):
        rng = random.Random(f"{self.seed} {number}")
        with self.daemon.connect() as w:
            while self.is_on():
                jobs = [j["job"] for j in w.call("job.list") if j["state"] in ("queued", "running")]
                what = [("job.pause", {"user": os.geteuid()}), ("job.resume", {"everybody": True}),
                        ("server.weight", {"user": os.geteuid(), "weight": rng.randrange(9)}),
                        ("server.users", {})]
                if jobs and rng.random() < 0.8:
                    what = [(rng.choice(["job.pause"] * 4 + ["job.resume"] * 4 + ["job.cancel"]),
                             {"job": rng.choice(jobs)})]
                method, params = rng.choice(what)
                w.call(method, **params)
                if rng.random() < 0.05:
                    w.call("server.drain")
                    w.call("server.drain", undo=True)
                time.sleep(rng.random() * 0.02)
            while any(j["state"] in ("queued", "running") for j in w.call("job.list")):
                w.call("job.resume", everybody=True)
                time.sleep(0.02)

    def kill(self):
        while self.is_on():
            time.sleep(0.7)
            os.kill(self.daemon.worker_pid(), signal.SIGKILL)

    def guarded(self, function, *args):
        try:
            function(*args)
        except Exception as error:  # noqa: B902 - the test reports it
            self.wrong.append(repr(error))


def test_whatever_is_done_to_jobs_they_end(start):
    seed = int(os.environ.get("GPUARRAYD_STORM_SEED", random.randrange(1 << 32)))
    daemon = start(pool="4M", worker=conftest.FAULTY_WORKER, args=[
        "--max-active", "4", "--user-active", "2", "--provider-timeout", "100ms"])
    before = daemon.counts()
    s = Storm(daemon, seed)
    threads = [*(threading.Thread(target=s.guarded, args=(s.submit, i)) for i in range(4)),
               *(threading.Thread(target=s.guarded, args=(s.change, 10 + i)) for i in range(2)),
               threading.Thread(target=s.guarded, args=(s.kill,))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS + 60)
    storm.tell("jobs paused, timed out and killed", s.outcomes)
    assert not any(thread.is_alive() for thread in threads), seed
    assert s.wrong == [] and set(s.outcomes) <= ENDS and s.outcomes["ok"] > 0, (seed, s.wrong, s.outcomes)
    daemon.wait_for_counts(before)
