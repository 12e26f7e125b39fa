"""Several people on one machine, as root, who is none of them: what a user's small job waits beside
another's endless ones, how even users' shares are, what sharing costs, how soon the slots of a cancelled
job and a killed worker are there again.

    people.py FOLDER [SECONDS]      with a daemon that has a pool of 256 MiB; each part takes SECONDS (10)
"""

import concurrent.futures
import contextlib
import multiprocessing
import os
import pathlib
import signal
import statistics
import sys
import time

import numpy as np

import gpuarrayd as gd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))
import wire  # noqa: E402

SOCKET = os.environ["GPUARRAYD_SOCKET"]
FIRST_UID = 65400
_fork = multiprocessing.get_context("fork")


def become(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


@contextlib.contextmanager
def others(function, *each):
    """function(*arguments) in a process of a user for each of them, until the end."""
    ready = _fork.Semaphore(0)

    def body(uid, arguments):
        become(uid)
        function(ready.release, *arguments)
    processes = [_fork.Process(target=body, args=(FIRST_UID + i, one)) for i, one in enumerate(each)]
    for process in processes:
        process.start()
    try:
        for _ in processes:
            assert ready.acquire(timeout=60), "a user does not begin"
        yield
        assert all(process.is_alive() for process in processes), "a user has ended"
    finally:
        for process in processes:
            process.kill()
            process.join()


class Job:
    """A job on memory that is attached, of about a millisecond a thread."""

    def __init__(self, w, n=1 << 17):
        self.w, region = w, wire.Region(w, 16 * n)
        a = region.array("f8", (n,))
        a[:] = np.linspace(0, 1, n)
        self.params = {"args": {"a": wire.described(a, region.at())}, "outputs": [
            {"expr": "sin(a) + exp(a)", "to": wire.described(a, region.at(8 * n))}]}

    def send(self):
        return self.w.send("job.run", **self.params)


def asleep_between(seconds, pipe):
    become(FIRST_UID + 99)
    with wire.Wire(SOCKET) as w:
        job, took = Job(w), []
        w.reply(job.send())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.05)
            began = time.monotonic()
            w.reply(job.send())
            took.append(time.monotonic() - began)
        pipe.send(sorted(took))


def waits(seconds):
    """(p50, p99, most) in ms of a small job every 50 ms."""
    ours, theirs = _fork.Pipe()
    process = _fork.Process(target=asleep_between, args=(seconds, theirs))
    process.start()
    took = ours.recv()
    process.join()
    return tuple(1e3 * took[i] for i in (len(took) // 2, len(took) * 99 // 100, -1))


def endless(began, what):
    gd.connect(SOCKET, start=False)
    began()
    while True:
        what()


def small_beside(folder, seconds):
    kinds = {
        "a streaming job": lambda: gd.evaluate("sum(sqrt(a*a + 1) - a)", a=gd.open(folder / "a.npy")),
        "an out-of-core product": lambda: gd.evaluate(
            "a @ b", a=gd.open(folder / "m.npy"), b=gd.open(folder / "m.npy"),
            to=folder / f"c-{os.getuid()}.npy"),  # that of the user who warms up is not others' to write
        "a decomposition": lambda: gd.linalg.svd(gd.open(folder / "tall.npy"), k=20),
    }
    gd.connect(SOCKET, start=False)
    for what in kinds.values():
        what()  # what it imports cannot be read by all users
    gd.close()
    print("a job of 1 ms every 50 ms: p50 %.2f ms, p99 %.2f, longest %.2f alone" % waits(seconds))
    for name, what in kinds.items():
        with others(endless, (what,)):
            time.sleep(1)
            print(f"    beside {name}, without end: p50 %.2f ms, p99 %.2f, longest %.2f "
                  "(at most 10; 50 beside products and decompositions)" % waits(seconds), flush=True)


def keep_in_flight(began, n):
    with wire.Wire(SOCKET) as w:
        job = Job(w, 1 << 18)
        idents = [job.send() for _ in range(n)]
        began()
        while True:
            w.reply(idents.pop(0))
            idents.append(job.send())


def work_of(w, uids):
    users = {user["uid"]: user["work_s"] for user in w.call("server.stats")["users"]}
    return np.array([users[uid] for uid in uids])


def jain(x):
    return x.sum() ** 2 / (len(x) * (x * x).sum())


def shares(seconds):
    greed = [1, 1, 2, 4, 8, 16, 32, 64]
    with wire.Wire(SOCKET) as w:
        for name, weights in (("equal weights", [1] * 8), ("weights 1:2:4", [1, 2, 4] * 2 + [1, 2])):
            uids = [FIRST_UID + i for i in range(8)]
            for uid, weight in zip(uids, weights):
                w.call("server.weight", user=uid, weight=weight)
            with others(keep_in_flight, *((n,) for n in greed)):
                time.sleep(1)
                before = work_of(w, uids)
                time.sleep(seconds)
                work = work_of(w, uids) - before
            print(f"eight users, 1 to 64 jobs each, {name}: Jain's index of time over weight in "
                  f"{seconds:.0f} s {jain(work / weights):.3f} (at least 0.95); seconds of each "
                  + " ".join(f"{one:.2f}" for one in work), flush=True)
            for uid in uids:
                w.call("server.weight", user=uid)


def once(what, pipe, uid):
    become(uid)
    gd.connect(SOCKET, start=False)
    pipe.recv()
    what()
    pipe.send(None)


def mix(folder, rounds=3):
    """The same six jobs one after another, and by six users at once."""
    def files(i):
        return lambda: gd.evaluate("sqrt(a*a + k)", a=gd.open(folder / "a.npy"), k=i,
                                   to=folder / f"mix-{i}.npy")

    jobs = [files(0), files(1),
            lambda: gd.evaluate("sum(exp(-a*a))", a=gd.open(folder / "a.npy")),
            lambda: gd.evaluate("std(a)", a=gd.open(folder / "a.npy")),
            lambda: gd.evaluate("a @ b", a=gd.open(folder / "m.npy"), b=gd.open(folder / "m.npy"),
                                to=folder / "mix-c.npy"),
            lambda: gd.evaluate("cumsum(a)", a=gd.open(folder / "a.npy"), to=folder / "mix-s.npy")]

    def start():
        pipes = [_fork.Pipe() for _ in jobs]
        for i, (what, pipe) in enumerate(zip(jobs, pipes)):
            _fork.Process(target=once, args=(what, pipe[1], FIRST_UID + i), daemon=True).start()
        time.sleep(0.5)
        return [pipe[0] for pipe in pipes]

    times = [], []
    for _ in range(rounds):
        pipes = start()
        began = time.monotonic()
        for pipe in pipes:
            pipe.send(None)
            pipe.recv()
        times[0].append(time.monotonic() - began)
        pipes = start()
        began = time.monotonic()
        for pipe in pipes:
            pipe.send(None)
        for pipe in pipes:
            pipe.recv()
        times[1].append(time.monotonic() - began)
    alone, together = map(statistics.median, times)
    print(f"six jobs of six users: {alone:.2f} s one after another, {together:.2f} s at once: throughput "
          f"{alone / together:.2f} of the former (at least 0.95)", flush=True)


def cancelled(folder, n=20):
    """Until the slots of a stream that is cancelled in the middle are back."""
    free = []
    gd.connect(SOCKET, start=False)
    with wire.Wire(SOCKET) as w:
        for _ in range(n):
            job = gd.submit("sum(exp(sin(a)))", a=gd.open(folder / "a.npy"))
            while w.call("server.stats")["pool"]["slots_lent"] == 0:
                time.sleep(0.002)
            time.sleep(0.02)
            began = time.monotonic()
            job.cancel()
            with contextlib.suppress(gd.Error, concurrent.futures.CancelledError):
                job.result()
            while w.call("server.stats")["pool"]["slots_lent"]:
                pass
            free.append(time.monotonic() - began)
    gd.close()
    print(f"a running job that is cancelled: its slots are back after "
          f"{1e3 * statistics.median(free):.1f} ms (most {1e3 * max(free):.1f}; at most 20)", flush=True)


def replaced(n=10):
    took = []
    with wire.Wire(SOCKET) as w:
        for _ in range(n):
            assert w.compute("a + 1", a=np.arange(3.0))[2] == 3
            pid = w.call("server.info")["engines"][0]["pid"]
            began = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            assert w.compute("a + 1", a=np.arange(3.0))[2] == 3
            took.append(time.monotonic() - began)
    print(f"a killed worker: the next job is answered after {1e3 * statistics.median(took):.1f} ms (most "
          f"{1e3 * max(took):.1f}; at most 100)", flush=True)


def prepare(folder):
    rng = np.random.default_rng(1)
    np.save(folder / "a.npy", rng.normal(size=32 << 20))
    np.save(folder / "m.npy", rng.normal(size=(3000, 3000)))
    np.save(folder / "tall.npy", rng.normal(size=(1 << 18, 128)))
    os.sync()
    folder.chmod(0o777)
    pathlib.Path(SOCKET).chmod(0o666)
    pathlib.Path(SOCKET).parent.chmod(0o755)


def main(folder, seconds=10.0):
    folder = pathlib.Path(folder)
    prepare(folder)
    small_beside(folder, seconds)
    shares(seconds)
    mix(folder)
    cancelled(folder)
    replaced()


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("people.py: the others are users of their own: run it as root")
    main(sys.argv[1], *map(float, sys.argv[2:]))
