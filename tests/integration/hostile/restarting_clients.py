"""Clients of a daemon that is killed and started again and again: one kind to a process.

    python restarting_clients.py KIND SOCKET FOLDER

Each does one thing after the other and verifies every result, until its standard input is closed.
What fails must say so with an error of a lost daemon. A thing that has not ended after PATIENCE
seconds hangs: the stacks of all threads, and what the daemon that is there then has and does, go to
standard error and the process ends with 3. At the end it prints, as JSON, how often it succeeded, how
often it did after the last restart (its standard input says "calm"), and the errors by their codes.
"""

import asyncio
import collections
import faulthandler
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time
import traceback

import numpy as np

PATIENCE = 90  # an honest wait for a lost daemon takes some 10 seconds
LOST = {"no-daemon", "disconnected", "outcome-unknown", "timeout", "shutting-down", "worker-lost"}


class Wrong(Exception):
    """A result that is not right, or an error that does not say what was lost."""


def say(command):
    """What it prints, with the reason where it does not end well."""
    try:
        done = subprocess.run([os.environ["GPUARRAYCTL"], *command], capture_output=True, text=True,
                              timeout=10)
    except (OSError, subprocess.SubprocessError) as error:
        return repr(error)
    return done.stdout + (done.stderr and f"exit {done.returncode}: {done.stderr}")


def threads_of(pid):
    """Where each thread of a process stands: running, or in which function of the kernel."""
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        try:
            name, state = (task / "comm").read_text().strip(), (task / "stat").read_text()
            state = state.rpartition(")")[2].split()[0]
            yield f"  {task.name} {name} {state} {(task / 'wchan').read_text()}"
        except OSError as error:
            yield f"  {task.name} {error!r}"


def tell_of_daemon():
    """A client that waits for nothing can so be told from a server that leaves a job lying."""
    info = say(["info", "--json"])
    lines = ["server.info", info, "job.list", say(["jobs", "--json"])]
    try:
        known = json.loads(info)
        pids = {"daemon": known["pid"], **{e["name"]: e.get("pid") for e in known["engines"]}}
    except (ValueError, KeyError, TypeError) as error:
        lines.append(f"no process is known: {error!r}")
        pids = {}
    for name, pid in pids.items():
        lines += [f"threads of {name}, process {pid}", *(threads_of(pid) if pid else ())]
    print(*lines, sep="\n", file=sys.stderr, flush=True)


class State:
    def __init__(self):
        self.is_over = self.is_calm = False
        self.lock = threading.Lock()
        self.begun = {}
        self.n_done = self.n_calm = 0
        self.errors = collections.Counter()
        self.wrong = []

    def listen(self):
        for line in sys.stdin:
            self.is_calm = True
        self.is_over = True

    def watch(self):
        while True:
            time.sleep(0.5)
            with self.lock:
                longest = min(self.begun.values(), default=None)
            if longest is not None and time.monotonic() - longest > PATIENCE:
                faulthandler.dump_traceback(all_threads=True)
                tell_of_daemon()  # before the end of our connection ends our jobs
                os._exit(3)


state = State()


def code_of(error):
    return getattr(error, "code", type(error).__name__)


def told(error):
    """An error that a lost daemon may have as its consequence."""
    if code_of(error) not in LOST:
        raise Wrong(f"{code_of(error)}: {error}")
    state.errors[code_of(error)] += 1


def check(ok, what):
    if not ok:
        raise Wrong(what)


def forever(what, name):
    """what() again and again, each time within the patience, until it is over and something was done
    after the last restart."""
    while not (state.is_over and state.n_calm) and not state.wrong:
        with state.lock:
            state.begun[name] = time.monotonic()
        was_calm = state.is_calm
        try:
            if what():
                with state.lock:
                    state.n_done += 1
                    state.n_calm += was_calm
        except Exception:  # noqa: B902 - the test reports it
            state.wrong.append(f"{name}: {traceback.format_exc()}")
        with state.lock:
            del state.begun[name]


def attempt(call):
    """Its value; None when the daemon was lost over it."""
    from gpuarrayd import errors
    try:
        return call()
    except errors.Error as error:
        told(error)
        return None


# Python ------------------------------------------------------------------------------------------

class Blocks:
    """An array that is asked for in blocks."""

    def __gad_source__(self, session):
        return session.from_blocks("<f8", (1000,), self._read, None)

    @staticmethod
    def _read(start, count, block):
        time.sleep(random.random() * 0.005)
        np.frombuffer(block)[:] = np.arange(start[0], start[0] + count[0])


WIDE = np.random.default_rng(1).normal(size=(1, 3000))
WIDE_SUM = np.exp(np.sin(WIDE) * np.cos(WIDE.T)).sum()


def small(gd):
    k = random.randrange(1000)
    r = attempt(lambda: gd.evaluate("a*k", a=np.arange(100.0), k=k))
    check(r is None or (r == np.arange(100.0) * k).all(), "small")
    return r is not None


def shared(gd):
    a = attempt(lambda: gd.asarray(np.arange(1000.0)))
    r = None if a is None else attempt(lambda: gd.evaluate("a*2", a=a))
    check(r is None or (r == np.arange(1000.0) * 2).all(), "shared")
    return r is not None


def in_place(gd):
    """What was written is either nothing or everything, and who was not told must be asked."""
    a = attempt(lambda: gd.asarray(np.zeros(1 << 20)))
    r = None if a is None else attempt(lambda: gd.evaluate("a+1", a=a, out=a))
    check(r is None or (np.asarray(a) == 1).all(), "in place")
    return r is not None


def blocks(gd):
    r = attempt(lambda: gd.evaluate("sum(b)", b=Blocks()))
    check(r is None or r == 499500, "blocks")
    return r is not None


def wide(gd):
    r = attempt(lambda: gd.evaluate("sum(exp(sin(a)*cos(b)))", a=WIDE, b=WIDE.T))
    check(r is None or np.isclose(r, WIDE_SUM, rtol=1e-12), "wide")
    return r is not None


def asked(gd):
    return attempt(lambda: gd.info()["pid"]) is not None


def many(gd):
    futures = [attempt(lambda k=k: gd.submit("a*k+b", a=np.arange(1000.0), b=Blocks(), k=k))
               for k in range(12)]
    n = 0
    for k, future in enumerate(futures):
        r = None if future is None else attempt(future.result)
        check(r is None or (r == np.arange(1000.0) * (k + 1)).all(), "future")
        n += r is not None
    return n > 0


def dropped(gd):
    """Futures that are cancelled, or that nobody waits for."""
    first = attempt(lambda: gd.submit("sum(exp(sin(a)*cos(b)))", a=WIDE, b=WIDE.T))
    attempt(lambda: gd.submit("sum(b)", b=Blocks()))
    if first is None:
        return False
    time.sleep(random.random() * 0.05)
    first.cancel()
    return first.join()


async def gather(gd):
    futures = [attempt(lambda: gd.submit("sum(a)", a=np.arange(float(k)))) for k in range(1, 9)]
    values = await asyncio.gather(*(f for f in futures if f is not None), return_exceptions=True)
    n = 0
    for value in values:
        if isinstance(value, BaseException):
            told(value)
        else:
            n += 1
    return n > 0


def new_session(gd):
    r = small(gd)
    gd.close()
    return r


def threads(gd):
    return [lambda f=f: f(gd) for f in (small, shared, in_place, blocks, wide, asked)]


def futures(gd):
    return [lambda f=f: f(gd) for f in (many, dropped, small)]


def tasks(gd):
    return [lambda: asyncio.run(gather(gd)), lambda: wide(gd)]


def sessions(gd):
    return [lambda: new_session(gd)]


def forks(gd):
    """Each child makes its own connection, with its parent's in the midst of something."""
    def body():
        pid = os.fork()
        if pid == 0:
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            try:
                os._exit(0 if small(gd) else 1)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(2)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        check(code in (0, 1), f"child: {code}")
        return code == 0
    return [body, lambda: wide(gd)]


# The C library, by its command ---------------------------------------------------------------------

def ctl(*words):
    """False: the daemon was lost over it."""
    done = subprocess.run([os.environ["GPUARRAYCTL"], *map(str, words)], capture_output=True, text=True,
                          timeout=PATIENCE)
    if done.returncode == 0:
        return done.stdout
    code = next((word for word in LOST if f"[{word}]" in done.stderr), None)
    check(code, f"{words}: {done.returncode} {done.stderr}")
    state.errors[code] += 1
    return None


def command(folder):
    out = f"{folder}/command.npy"
    if ctl("run", "b = sum(exp(sin(a)*cos(t))); r = a + 1", f"a={folder}/wide.npy",
           f"t={folder}/high.npy", "-o", f"b={folder}/sum.npy", "-o", f"r={out}", "-q") is None:
        return False
    check(np.array_equal(np.load(out), WIDE + 1), "command")
    check(np.isclose(np.load(f"{folder}/sum.npy"), WIDE_SUM, rtol=1e-12), "command's sum")
    os.unlink(out)
    return True


def detached(folder):
    out = f"{folder}/detached.npy"
    job = ctl("submit", "sum(exp(sin(a)*cos(t))) + 0 * a", f"a={folder}/wide.npy",
              f"t={folder}/high.npy", "-o", out)
    if job is None or ctl("wait", job.strip()) is None:
        return False
    check(np.allclose(np.load(out), WIDE_SUM, rtol=1e-12), "detached")
    os.unlink(out)
    return True


def commands(folder):
    np.save(f"{folder}/wide.npy", WIDE)
    np.save(f"{folder}/high.npy", WIDE.T)
    return [lambda: command(folder), lambda: detached(folder), lambda: ctl("ping") is not None]


def main(kind, socket, folder):
    os.environ["GPUARRAYD_SOCKET"] = socket
    threading.Thread(target=state.listen, daemon=True).start()
    threading.Thread(target=state.watch, daemon=True).start()
    if kind == "commands":
        bodies = commands(folder)
    else:
        import gpuarrayd
        bodies = {"threads": threads, "futures": futures, "tasks": tasks, "sessions": sessions,
                  "forks": forks}[kind](gpuarrayd)
    running = [threading.Thread(target=forever, args=(body, f"{kind} {i}"))
               for i, body in enumerate(bodies)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    print(json.dumps({"done": state.n_done, "calm": state.n_calm, "errors": dict(state.errors),
                      "wrong": state.wrong}))


if __name__ == "__main__":
    main(*sys.argv[1:])
