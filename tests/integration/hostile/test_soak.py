"""Jobs of every kind by several clients at once, for as long as tests/soak.sh says: every result is
right, and neither the daemon nor a client has more memory or descriptors at the end than after a
third of the time. Twelve seconds of it are part of the check, in which every kind of job comes several
times; two minutes would be an eighth of the time that the check may take."""

import gc
import multiprocessing
import os
import pathlib
import random
import time

import pytest

import kinds
import storm

SECONDS = float(os.environ.get("GPUARRAYD_SOAK_SECONDS", 12))
N_CLIENTS = 3
# What the allocators keep for later comes and goes by so much.
SLACK_BYTES = {"broker": 4 << 20, "worker": 8 << 20, "client": 16 << 20}
pytestmark = pytest.mark.slow
_fork = multiprocessing.get_context("fork")


def n_descriptors(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


def body(socket, folder, seed, until, pipe):
    import gpuarrayd as gd
    gd.connect(socket, start=False)
    chosen, names = random.Random(seed), sorted(kinds.KINDS)
    began, n, third = time.monotonic(), 0, None
    try:
        while (now := time.monotonic()) < until:
            for name in chosen.sample(names, len(names)):
                kinds.KINDS[name](gd, folder, N_CLIENTS * chosen.randrange(15) + seed)
                n += 1
            if third is None and now > began + (until - began) / 3:
                gc.collect()
                third = storm.resident_bytes(os.getpid()), n_descriptors(os.getpid())
        gc.collect()
        pipe.send((n, third, (storm.resident_bytes(os.getpid()), n_descriptors(os.getpid()))))
    except BaseException as error:  # noqa: B902 - the test reports it
        pipe.send(repr(error))


class Watch:
    """What the daemon's processes have: the most of the second third, and of the last."""

    def __init__(self, daemon, until):
        self.pids = {"broker": daemon.process.pid, "worker": daemon.worker_pid()}
        self.began, self.until = time.monotonic(), until
        self.most = [{name: (0, 0) for name in self.pids} for _ in range(3)]

    def look(self):
        part = min(2, int(3 * (time.monotonic() - self.began) / (self.until - self.began)))
        for name, pid in self.pids.items():
            now = storm.resident_bytes(pid), n_descriptors(pid)
            self.most[part][name] = tuple(map(max, self.most[part][name], now))

    def check(self):
        for name, (n_bytes, n_fds) in self.most[2].items():
            least_bytes, least_fds = self.most[1][name]
            assert n_bytes <= least_bytes + SLACK_BYTES[name], (name, self.most)
            assert n_fds <= least_fds + 64, (name, self.most)  # as many as jobs happen to be there


def test_nothing_grows(start, folder):
    gd = pytest.importorskip("gpuarrayd")  # loaded before anything is forked
    daemon = start(pool="8M")
    kinds.prepare(folder)
    before = daemon.quiet_counts()
    until = time.monotonic() + SECONDS
    watch = Watch(daemon, until)
    pipes = [_fork.Pipe() for _ in range(N_CLIENTS)]
    clients = [_fork.Process(target=body, args=(daemon.socket, folder, seed, until, pipe[1]))
               for seed, pipe in enumerate(pipes)]
    for client in clients:
        client.start()
    while time.monotonic() < until:
        watch.look()
        time.sleep(0.2)
    told = [pipe[0].recv() for pipe in pipes]
    for client in clients:
        client.join()
    gd.close()
    assert all(isinstance(one, tuple) for one in told), told
    for n, third, end in told:
        assert third and end[0] <= third[0] + SLACK_BYTES["client"] and end[1] <= third[1] + 8, told
    watch.check()
    daemon.wait_for_counts(before, seconds=60)
    assert daemon.engine_info(daemon.engine_name)["restarts"] == 0
    storm.tell("soak", {"seconds": round(SECONDS), "jobs": sum(one[0] for one in told),
                        "files": kinds.check_files(folder),
                        **{f"{name}_mib": [round(part[name][0] / 2**20, 1) for part in watch.most]
                           for name in watch.pids},
                        "clients_mib": [[round(one[i][0] / 2**20, 1) for i in (1, 2)]
                                        for one in told]})
