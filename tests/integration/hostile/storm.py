"""What tests of attacks share: how long they last, attackers, and an honest user beside them.

An attack is a function of the daemon's socket that goes on for ever: `with Attack(function, path):`
runs it in processes of another user and ends them. `beside()` asks an honest user's process for its
latencies, alone and then beside the attack. In check.sh an attack takes a moment and what is asserted
is what a loaded machine keeps, too; tests/storm.sh gives it a minute and prints the figures.
"""

import json
import multiprocessing
import os
import pathlib
import resource
import signal
import time

import numpy as np

import conftest
import wire
from users import become
from wire import Closed, Error, described

SECONDS = float(os.environ.get("GPUARRAYD_STORM_SECONDS", 2))
IS_STORM = "GPUARRAYD_STORM_SECONDS" in os.environ
HONEST, MALLORY = 65532, 65533  # two users without names
LEAST = 10  # rounds of the honest user, however slow the machine
# What held others up did so for 15 to 36 seconds; a loaded machine alone takes one now and then.
SOON = 5 if conftest.IS_SANITIZED else 2
_fork = multiprocessing.get_context("fork")


class Attack:
    """function(*arguments), in `n` processes of a user, again and again until the end."""

    def __init__(self, function, *arguments, n=1, uid=MALLORY, nice=0):
        self.function, self.arguments, self.uid, self.n, self.nice = function, arguments, uid, n, nice

    def _body(self, ready):
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        os.nice(self.nice)
        become(self.uid)
        ready.release()
        while True:
            try:
                self.function(*self.arguments)
            except (Error, Closed, OSError):
                time.sleep(0.01)  # refused or thrown out: it tries again

    def __enter__(self):
        ready = _fork.Semaphore(0)
        self.processes = [_fork.Process(target=self._body, args=(ready,), daemon=True)
                          for _ in range(self.n)]
        for process in self.processes:
            process.start()
        for _ in self.processes:
            ready.acquire()
        return self

    def __exit__(self, *exc):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()


def _ping(w, state):
    w.call("ping")


def _small(w, state):
    assert w.compute("a + 1", a=np.arange(64.0))[5] == 6


def _middle(w, state):
    """0.5 MiB in shared memory."""
    if "region" not in state:
        state["region"] = wire.Region(w, 1 << 20)
        state["a"] = state["region"].array("f4", (1 << 17,))
        state["a"][:] = 1
    a, region = state["a"], state["region"]
    w.run("a * 2", to=described(a, region.at(1 << 19)), a=described(a, region.at()))
    assert region.array("f4", (1,), 1 << 19)[0] == 2


KINDS = {"ping": _ping, "small": _small, "middle": _middle}


class Bystander:
    """An honest user's process, which does one thing of each kind every so often."""

    def __init__(self, path, kinds=("ping", "small"), uid=HONEST, interval=0.005):
        self.path, self.kinds, self.uid, self.interval = path, kinds, uid, interval

    def _loop(self, pipe):
        # What takes too long is a failure with a number, not a test that hangs.
        with wire.Wire(self.path, timeout=120) as w:
            state, seconds = {}, {kind: [] for kind in self.kinds}
            pipe.send("ready")
            is_over = False
            while not is_over or len(seconds[self.kinds[-1]]) < LEAST:
                is_over = is_over or pipe.poll(self.interval)
                for kind in self.kinds:
                    began = time.monotonic()
                    KINDS[kind](w, state)
                    seconds[kind].append(time.monotonic() - began)
            return seconds

    def _body(self, pipe):
        become(self.uid)
        try:
            pipe.send((True, self._loop(pipe)))
        except BaseException as error:  # noqa: B902 - the test reports it
            pipe.send((False, repr(error)))

    def __enter__(self):
        self.pipe, theirs = _fork.Pipe()
        self.process = _fork.Process(target=self._body, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        said = self.pipe.recv()
        assert said == "ready", said
        return self

    def latencies(self):
        """Ends it: {kind: seconds of each, sorted}."""
        try:
            self.pipe.send("enough")
        except BrokenPipeError:
            pass  # it has ended, and has said why
        assert self.pipe.poll(180), "the honest user hangs"
        ok, value = self.pipe.recv()
        assert ok, value
        return {kind: sorted(seconds) for kind, seconds in value.items()}

    def __exit__(self, *exc):
        self.process.kill()
        self.process.join()


def p99(seconds):
    return seconds[min(len(seconds) - 1, len(seconds) * 99 // 100)]


def watch(path, seconds=SECONDS, **options):
    """The latencies of an honest user who stays for so long."""
    with Bystander(path, **options) as bystander:
        time.sleep(seconds)
        return bystander.latencies()


def beside(name, daemon, attack, kinds=("ping", "small"), seconds=SECONDS):
    """The latencies of an honest user alone and beside an Attack, which has a moment to get going."""
    alone = watch(daemon.socket, min(seconds, 5), kinds=kinds)
    with attack:
        time.sleep(min(0.5, seconds))
        attacked = watch(daemon.socket, seconds, kinds=kinds)
    tell(name, {kind: {"alone_p99": p99(alone[kind]), "p99": p99(attacked[kind]),
                       "longest": attacked[kind][-1], "n": len(attacked[kind])} for kind in kinds})
    return alone, attacked


def tell(name, figures):
    """Figures of tests/storm.sh, a line each in the file that it names."""
    path = os.environ.get("GPUARRAYD_STORM_FIGURES")
    if path:
        with open(path, "a") as file:
            file.write(json.dumps({"name": name, **figures}) + "\n")


def resident_bytes(pid):
    """What a process has of the machine's memory for itself alone."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no RssAnon")


def freeze(pid):
    os.kill(pid, signal.SIGSTOP)


def open_to_all(daemon):
    """Other users may connect to a test's daemon."""
    os.chmod(daemon.dir, 0o755)
    os.chmod(daemon.socket, 0o666)
    return daemon
