"""The interpreter ends while something is stuck: it ends all the same, in some seconds.

What is stuck: a function of from_blocks() that never returns, a daemon that stands still in the
middle of a call, a lock whose holder is no more.
"""

import os
import signal
import subprocess
import sys
import textwrap

HEAD = """
import builtins, os, signal, sys, threading
import numpy as np
import gpuarrayd as gd
from gpuarrayd import _session

a = np.arange(100_000.0)
begun = threading.Event()

class Stuck:
    "An array whose elements never come."
    def __gad_source__(self, session):
        return session.from_blocks("<f8", (10,), self.read, None)
    def read(self, start, count, block):
        begun.set()
        threading.Event().wait()

def in_thread(call):
    threading.Thread(target=call, daemon=True).start()
"""

FUNCTIONS = (
    """
        future = gd.submit("a+1", a=Stuck())
        begun.wait()
        """,
    """
        in_thread(lambda: gd.evaluate("a+1", a=Stuck()))
        begun.wait()
        """,
    """
        session = _session.current()
        builtins.kept = session.submit([("sum(a)", None, None)],
            [("a", Stuck().__gad_source__(session))], None, 0, None, False)
        begun.wait()
        """,
)

STOPPED = (
    "in_thread(lambda: (begun.set(), gd.evaluate('a+1', a=a)))",
    "in_thread(lambda: (begun.set(), gd.submit('a+1', a=gd.empty((1 << 20,))).result()))",
    "in_thread(lambda: (begun.set(), gd.info()))",
)


def start(script, socket):
    return subprocess.Popen([sys.executable, "-c", HEAD + textwrap.dedent(script)], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "GPUARRAYD_SOCKET": socket})


def finish(processes):
    """Each ends well."""
    try:
        for process in processes:
            _, err = process.communicate(timeout=60)
            assert process.returncode == 0, err
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_functions_that_never_return(daemon):
    finish([start(script, daemon.socket) for script in FUNCTIONS])


def test_a_daemon_that_stands_still(mortal):
    ready = "gd.info()\nprint('ready', flush=True)\nsys.stdin.readline()\n"
    processes = [start(ready + script + "\nbegun.wait()", mortal.socket) for script in STOPPED]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        mortal.process.send_signal(signal.SIGSTOP)
        for process in processes:
            process.stdin.close()
            process.stdin = None
        finish(processes)
    finally:
        mortal.process.send_signal(signal.SIGCONT)


def test_a_lock_whose_holder_is_no_more(daemon):
    finish([start("""
        class Late:
            def __del__(self):
                assert sys.is_finalizing()
                for call in (lambda: gd.evaluate("a+1", a=a), lambda: gd.submit("a+1", a=a)):
                    try:
                        call()
                    except gd.Error as error:
                        assert error.message == "the interpreter ends"
                    else:
                        os._exit(1)
                gd.close()

        def hold():
            with _session._lock:
                begun.set()
                threading.Event().wait()

        def late():  # after the session's own end, which needs the lock
            in_thread(hold)
            begun.wait()

        import atexit
        builtins.late = Late()
        gd.submit("1+1").result()
        gd.close()
        atexit.unregister(getattr(_session, "_end", _session.close))
        late()
        """, daemon.socket)])
