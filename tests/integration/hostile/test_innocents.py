"""Workers that end beside innocent jobs: nobody is called poisoned who is not, and all run again."""

import os
import signal
import tempfile
import time

import numpy as np
import pytest

import conftest
import wire
from test_provider import Ring
from wire import Error, described, file_at

SIGNALS = [signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL]
# The sanitizer's own handlers would report what is sent here on purpose.
QUIET = {"ASAN_OPTIONS": "handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigill=0:handle_sigfpe=0"}


@pytest.fixture
def source():
    a = np.random.default_rng(22).normal(size=1 << 20).astype("f4")
    with tempfile.NamedTemporaryFile(prefix="gpuarrayd-test-") as f:
        a.tofile(f.name)
        fd = os.open(f.name, os.O_RDONLY)
        yield fd, a
        os.close(fd)


def test_signals_from_outside_condemn_nobody(start, source):
    """Deaths by signals that look like faults, always in the middle of the same jobs."""
    fd, a = source
    daemon = start(pool="2M", worker=conftest.FAULTY_WORKER, env=QUIET)
    with daemon.connect() as w:
        jobs = [w.send("job.run", fds=[fd], label="fault:slow", outputs=[{"expr": "sum(a)"}],
                       args={"a": described(a, file_at(0))}) for _ in range(3)]
        for n, number in enumerate(SIGNALS):
            daemon.wait_for_restarts(n)
            while "running" not in (states := {job["state"] for job in w.call("job.list")}):
                assert states <= {"queued"}, daemon.text()
                time.sleep(0.01)
            time.sleep(0.06)  # tiles are in hand: each takes 50 ms
            w.compute("a + 1", a=np.arange(3))  # a worker that served is replaced at once
            os.kill(daemon.worker_pid(), number)
        values = {wire.result_array(w.reply(job)["outputs"][0])[()] for job in jobs}
    assert len(values) == 1 and np.isclose(values.pop(), a.sum(dtype="f8"), atol=1)
    assert "poisoned" not in daemon.text()


def kill_while(w, daemon, ident, progress, n_times):
    """Kills the worker as often, each time when some blocks more were served; then the job's answer."""
    for n in range(n_times):
        daemon.wait_for_restarts(n)
        before, end = progress(), time.monotonic() + 20
        while progress() < before + 3:
            assert time.monotonic() < end, w.call("job.list")
            time.sleep(0.005)
        w.compute("a + 1", a=np.arange(3))
        os.kill(daemon.worker_pid(), signal.SIGKILL)
    return w.reply(ident)


def test_arrays_that_clients_serve_run_again(start):
    """A worker dies in the middle of blocks, of which the client has some in hand."""
    daemon = start(pool="4M")
    a = np.random.default_rng(23).normal(size=1 << 20)
    b = np.zeros_like(a)
    source, sink = Ring(a), Ring(b)
    n_served = [0]

    def slowly(serve):
        def served(start, count, block):
            n_served[0] += 1
            time.sleep(0.01)
            return serve(start, count, block)
        return served

    source.serve, sink.serve = slowly(source.fill), slowly(sink.drain)
    with daemon.connect() as w:
        ident = w.send("job.run", fds=source.fds() + sink.fds(), again=True,
                       args={"a": described(a, source.at())},
                       outputs=[{"expr": "a - mean(a)", "to": described(b, sink.at(3))}])
        kill_while(w, daemon, ident, lambda: n_served[0], 4)
    assert np.allclose(b, a - a.mean(), atol=1e-12)
    for ring in (source, sink):
        ring.close()


def test_without_leave_they_do_not(start):
    daemon = start(pool="4M")
    a = np.ones(1 << 20)
    ring = Ring(a)
    n_served = [0]

    def slowly(start, count, block):
        n_served[0] += 1
        time.sleep(0.01)
        return ring.fill(start, count, block)

    ring.serve = slowly
    with daemon.connect() as w:
        ident = w.send("job.run", fds=ring.fds(), args={"a": described(a, ring.at())},
                       outputs=[{"expr": "sum(a)"}])
        with pytest.raises(Error) as caught:
            kill_while(w, daemon, ident, lambda: n_served[0], 1)
        assert caught.value.code == "worker-lost"
    ring.close()


@pytest.mark.slow  # the package of a sanitizer's build cannot be loaded here
def test_ordinary_arrays_of_a_program_run_again(start):
    """The package asks for it where no output is also a source."""
    gd = pytest.importorskip("gpuarrayd")
    daemon = start(pool="4M")
    gd.connect(daemon.socket)
    a = np.random.default_rng(24).normal(size=16 << 20)
    out = np.zeros_like(a)
    job = gd.submit("sqrt(abs(a)) + exp(-a*a)", a=a, out=out)
    with daemon.connect() as w:
        for n in range(3):
            daemon.wait_for_restarts(n)
            w.compute("a + 1", a=np.arange(3))
            time.sleep(0.05)
            os.kill(daemon.worker_pid(), signal.SIGKILL)
    job.result(timeout=120)
    assert np.allclose(out, np.sqrt(abs(a)) + np.exp(-a * a))
    gd.close()
