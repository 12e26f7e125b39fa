"""Hostile users, all at once, and two honest ones beside them: what one gets done, and what the other
waits, against what they do beside as many honest users who work as much as they can, which is a fair
share. The processors' time that those take outside of the daemon is the kernel's to share: they are
nice. tests/bench/jobs/hostile.py prints the same beside nobody and beside users who only spin.

Where the hostile have their way with the loop it is theirs and counts as such; what is left to wait for
is a processor, and results of others on their way out of the worker."""

import contextlib
import os
import random
import tempfile
import time

import msgpack
import numpy as np
import pytest

import conftest
import storm
import test_planning
import test_replies
import test_small_jobs
import wire
from hanging_mount import HangingMount, can_mount
from test_garbage import BODIES
from test_provider import Ring
from users import become, needs_users
from wire import Error, described, file_at

pytestmark = needs_users
FIRST_UID, WORKING = 65520, 65531
SHARE, P99_TIMES = 0.8, 10
N_FLYING = 16


def params_of(w):
    """A job of about a millisecond a thread, on memory that is attached."""
    n = 1 << 17
    region = wire.Region(w, 16 * n)
    a = region.array("f8", (n,))
    a[:] = np.linspace(0, 1, n)
    return {"args": {"a": described(a, region.at())}, "outputs": [
        {"expr": "sin(a) + exp(a)", "to": described(a, region.at(8 * n))}]}


def work(path, n=N_FLYING, until=lambda: False):
    """Keeps so many jobs in flight; how many were done."""
    with wire.Wire(path, timeout=120) as w:
        params, n_done = params_of(w), 0
        idents = [w.send("job.run", **params) for _ in range(n)]
        while not until():
            w.reply(idents.pop(0))
            idents.append(w.send("job.run", **params))
            n_done += 1
        return n_done


# -- attackers, each another user --------------------------------------------------------------------

def takes_everything(path):
    """Connections, regions, descriptors, jobs whose clients never answer and requests that wait, each
    until it is refused; keeps all of it for a while."""
    taken, rings = [], []
    with contextlib.ExitStack() as stack:
        def until_refused(function, most):
            with contextlib.suppress(Error, wire.Closed):
                for _ in range(most):
                    taken.append(function())
        until_refused(lambda: stack.enter_context(wire.Wire(path)), 100)
        w = taken[0]
        until_refused(lambda: stack.callback(os.close, wire.Region(w, 1 << 20).fd), 200)

        def silent():
            rings.append(Ring(np.zeros((300, 300)), serve=lambda *_: None))
            return w.call("job.submit", fds=rings[-1].fds(), outputs=[{"expr": "a @ a"}],
                          args={"a": described(rings[-1].array, rings[-1].at())})["job"]
        until_refused(silent, 100)
        until_refused(lambda: [other.send("job.wait", job=taken[-1]) for other in taken[:50]], 20)
        time.sleep(1)
        for ring in rings:
            ring.close()


def sends_garbage(path):
    rng = random.Random(os.getpid())
    good = msgpack.packb([0, 1, "job.run", [{"args": {"a": wire.argument(np.arange(50.0))},
                                             "outputs": [{"expr": "sqrt(a) + 1"}]}]])
    null = os.open("/dev/null", os.O_RDONLY)
    try:
        while True:
            with contextlib.suppress(wire.Closed, OSError), wire.Wire(path, timeout=1) as w:
                for _ in range(20):
                    body = bytearray(good)
                    for _ in range(rng.randrange(1, 9)):
                        body[rng.randrange(len(body))] = rng.randrange(256)
                    w.send_bytes(wire.frame(bytes(body)))
                w.send_bytes(wire.frame(rng.choice(BODIES), 1), [null])
                w.send_bytes(rng.randbytes(rng.randrange(1, 5000)))
                while True:
                    w.receive()
    finally:
        os.close(null)


def truncates(path):
    """Files and memory that get shorter, and holes, under jobs that use them."""
    n, rng = 4 << 20, random.Random(os.getpid())
    with wire.Wire(path) as w, tempfile.TemporaryFile() as file:
        while True:
            os.ftruncate(file.fileno(), 8 * n)
            idents = []
            for _ in range(4):
                fd = os.memfd_create("tests")
                os.posix_fallocate(fd, 0, 8 * n)
                shape = {"dtype": "<f8", "shape": [n], "at": file_at(0)}
                idents.append(w.send("job.run", fds=[file.fileno(), fd], args={"a": shape}, outputs=[
                    {"expr": "sqrt(a)", "to": {**shape, "at": file_at(1)}}, {"expr": "max(a)"}]))
                time.sleep(0.002 * rng.random())
                os.ftruncate(rng.choice([file.fileno(), fd]), rng.randrange(8 * n))
                os.close(fd)
            for ident in idents:
                with contextlib.suppress(Error):
                    w.reply(ident)


def hangs(path, folder):
    """Files whose reads and closes hang: handed over, attached, served by a client that reads them."""
    rings = []

    def read(start, count, block):
        block[...] = np.frombuffer(os.pread(fd, block.nbytes, 0), block.dtype)
        return 0
    with wire.Wire(path) as w:
        while True:
            for _ in range(16):
                fd = os.open(f"{folder}/a.raw", os.O_RDWR)
                a = {"dtype": "<f8", "shape": [1 << 20], "at": file_at(0)}
                for send in (
                        lambda: w.send("job.run", fds=[fd], args={"a": a}, outputs=[{"expr": "sum(a)"}]),
                        lambda: w.send("job.run", fds=[fd], args={}, outputs=[
                            {"expr": f"uniform(size={1 << 20}, seed=1)", "to": a}]),
                        lambda: w.send("region.attach", fds=[fd], size=1 << 20, writable=True)):
                    ident = send()
                    with contextlib.suppress(Error):
                        w.reply(ident)
            if len(rings) < 8:
                rings.append(Ring(np.zeros(100_000), serve=read))
                w.call("job.submit", fds=rings[-1].fds(), outputs=[{"expr": "sum(a)"}],
                       args={"a": described(rings[-1].array, rings[-1].at())})
            time.sleep(0.01)


def plans(path):
    test_planning.flood(path, 60, 64)


ATTACKS = [takes_everything, test_replies.never_read, sends_garbage, truncates, plans, test_small_jobs.many]


# -- what is measured --------------------------------------------------------------------------------

def count_jobs(path, seconds, pipe):
    become(WORKING)
    end = time.monotonic() + seconds
    pipe.send(work(path, until=lambda: time.monotonic() > end) / seconds)


def measured(daemon, seconds):
    """Jobs a second of an honest user who always has some, and latencies of another one."""
    ours, theirs = storm._fork.Pipe()
    process = storm._fork.Process(target=count_jobs, args=(daemon.socket, seconds, theirs), daemon=True)
    process.start()
    latencies = storm.watch(daemon.socket, seconds, kinds=("ping", "small", "middle"))
    assert ours.poll(120), "the honest user hangs"
    rate = ours.recv()
    process.join()
    return rate, latencies


@contextlib.contextmanager
def all_of(attacks, nice=19):
    with contextlib.ExitStack() as stack:
        for i, (function, *arguments) in enumerate(attacks):
            stack.enter_context(storm.Attack(function, *arguments, uid=FIRST_UID + i, nice=nice))
        time.sleep(min(2, storm.SECONDS / 4))  # until they are at it
        yield


@pytest.mark.plain
def test_an_honest_user_beside_all_of_them(start, folder):
    daemon = storm.open_to_all(start(pool="32M"))
    pid = daemon.worker_pid()
    attacks = [(function, daemon.socket) for function in ATTACKS]
    if can_mount():
        attacks.append((hangs, daemon.socket, folder))
    rate, latencies = None, None
    if storm.IS_STORM:
        with all_of([(work, daemon.socket)] * len(attacks)):
            rate, latencies = measured(daemon, min(20, storm.SECONDS))
    with all_of(attacks), contextlib.ExitStack() as stack:
        if can_mount():
            folder.chmod(0o755)
            stack.enter_context(HangingMount(folder, round(storm.SECONDS) + 30))
        attacked_rate, attacked = measured(daemon, max(1, storm.SECONDS))
        most = test_replies.memory(daemon)
    with daemon.connect() as w:
        assert w.compute("a + 1", a=np.arange(3.0)).tolist() == [1, 2, 3]
    assert daemon.worker_pid() == pid
    figures = {kind: {"p99": storm.p99(took), "longest": took[-1]} for kind, took in attacked.items()}
    if latencies:
        for kind, took in latencies.items():
            figures[kind]["beside_honest_p99"] = storm.p99(took)
    storm.tell(f"{len(attacks)} hostile users together", {
        **figures, "jobs_a_s": round(attacked_rate), "beside_honest_users_a_s": round(rate or 0),
        "broker_mib": round(most / 2**20, 1)})
    assert conftest.IS_SANITIZED or most < test_replies.LIMIT
    assert max(attacked["ping"][-1], attacked["small"][-1]) < storm.SOON, figures
    if rate:
        assert attacked_rate >= SHARE * rate, (attacked_rate, rate)
        for kind, took in latencies.items():
            assert storm.p99(attacked[kind]) <= P99_TIMES * storm.p99(took), figures
