"""A daemon that is killed and started again at any moment, under clients of every kind: whatever they
were doing ends, with the right result or with an error that says what was lost, and once it is calm
each of them works."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

import pytest

import conftest
import storm

CLIENTS = pathlib.Path(__file__).with_name("restarting_clients.py")
KINDS = ("threads", "threads", "futures", "futures", "tasks", "sessions", "commands",
         *(() if conftest.IS_SANITIZED else ("forks",)))
# Restarts of daemons without a job of their own go fast: about two a second.
SECONDS = storm.SECONDS if storm.IS_STORM else 6


class Client:
    def __init__(self, kind, daemon, folder):
        self.kind = kind
        folder.mkdir(exist_ok=True)
        env = {**os.environ, "GPUARRAYCTL": str(conftest.CTL)}
        self.process = subprocess.Popen([sys.executable, CLIENTS, kind, daemon.socket, folder], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def calm(self):
        try:
            self.process.stdin.write("calm\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, and result() says why

    def result(self):
        out, err = self.process.communicate(timeout=150)
        assert self.process.returncode == 0, f"{self.kind}: exit {self.process.returncode}\n{err}"
        assert err == "", f"{self.kind}\n{err}"
        return json.loads(out)


def restart(daemon, rng):
    """Killed, and another one after a moment on the same socket."""
    daemon.kill()
    daemon.log.close()
    shutil.rmtree(daemon.dir, ignore_errors=True)
    time.sleep(rng.choice((0, rng.random() * 0.05, rng.random() * 0.6)))
    while True:
        try:
            return conftest.Daemon(args=["--socket", daemon.socket])
        except conftest.NotStarted as error:
            # A worker that it was just starting holds the lock of the one that was killed.
            assert "another daemon serves" in error.text, error.text
            time.sleep(0.05)


@pytest.mark.slow  # the package of a sanitizer's build cannot be loaded here
def test_clients_of_a_daemon_that_is_killed_again_and_again(folder):
    seed = int(os.environ.get("GPUARRAYD_STORM_SEED", random.randrange(1 << 32)))
    rng = random.Random(seed)
    socket = str(folder / "socket")
    daemon, n, end = conftest.Daemon(args=["--socket", socket]), 0, time.monotonic() + SECONDS
    daemon.socket = socket
    clients = [Client(kind, daemon, folder / f"{kind}{i}") for i, kind in enumerate(KINDS)]
    time.sleep(1)
    while time.monotonic() < end:
        time.sleep(rng.choice((0, rng.random() * 0.1, rng.random())))
        daemon = restart(daemon, rng)
        daemon.socket = socket
        n += 1
    for client in clients:
        client.calm()
    time.sleep(3 if conftest.IS_SANITIZED else 2)
    results = [client.result() for client in clients]
    figures = {f"{c.kind} {i}": {"done": r["done"], "after": r["calm"], **r["errors"]}
               for i, (c, r) in enumerate(zip(clients, results))}
    storm.tell("brokers killed under clients", {"restarts": n, **figures})
    daemon.stop()
    for client, result in zip(clients, results):
        assert result["wrong"] == [], (client.kind, seed, result)
        assert result["calm"] > 0, (client.kind, seed, result)
    assert n >= 3
