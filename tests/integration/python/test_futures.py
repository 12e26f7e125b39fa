"""submit(): futures of jobs, alone, with concurrent.futures and with asyncio."""

import asyncio
import concurrent.futures
import gc
import logging
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest

from gpuarrayd import errors

# Read for minutes, though it is one element: a job of it ends when it is cancelled.
ENDLESS = np.broadcast_to(np.zeros(1), (1 << 38,))


class Gate:
    """An array whose elements come when open() is called: its job runs until then. Of several the
    one that is asked first must be opened first: functions are called one at a time."""

    def __init__(self, value=1.0, n=1000):
        self.value, self.n = value, n
        self.is_read, self.is_open = threading.Event(), threading.Event()

    def __gad_source__(self, session):
        return session.from_blocks("<f8", (self.n,), self._read, None)

    def _read(self, start, count, block):
        self.is_read.set()
        assert self.is_open.wait(60)
        np.frombuffer(block)[:] = self.value

    def open(self):
        self.is_open.set()


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def thread_is_there():
    return any(t.name == "gpuarrayd" for t in threading.enumerate())


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    from gpuarrayd._jobs import future as _future

    until(lambda: not _future._server._table)


def test_a_result(gd):
    a = np.arange(5.0)
    future = gd.submit("a*2")
    assert isinstance(future, concurrent.futures.Future)
    np.testing.assert_array_equal(future.result(), a * 2)
    assert future.done() and not future.cancelled() and not future.running()
    assert future.exception() is None and future.job > 0
    assert future.progress.fraction == 1.0
    assert future.stats["engine"] == "cpu" and future.stats["read_bytes"] >= 0
    assert future.stats["engine_why"].startswith("auto: ") and future.stats["to_device_s"] == 0


def test_several_results_and_lazies(gd):
    a = np.arange(5.0)
    one, two = gd.submit(["a+1", "sum(a)"], a=a).result()
    np.testing.assert_array_equal(one, a + 1)
    assert two == 10 and type(two) is np.float64
    lazy = gd.lazy(a)
    np.testing.assert_array_equal(gd.submit(lazy + 1).result(), a + 1)


def test_a_destination(gd, folder):
    a, out = np.arange(5.0), np.empty(5)
    assert gd.submit("a*3", a=a, out=out).result() is out
    np.testing.assert_array_equal(out, a * 3)
    lazy = gd.submit("a*4", a=a, to=folder / "r.npy").result()
    np.testing.assert_array_equal(np.load(folder / "r.npy"), a * 4)
    np.testing.assert_array_equal(np.asarray(lazy), a * 4)


def test_errors_come_with_the_result(gd, folder):
    future = gd.submit("a**b", a=np.array([2]), b=np.array([-1]))
    with pytest.raises(errors.NegativePower):
        future.result()
    assert type(future.exception()) is errors.NegativePower and future.stats is None


def test_what_is_wrong_at_once_is_said_at_once(gd):
    with pytest.raises(errors.BadDtype):
        gd.submit("a+1", a=np.array([object()]))


def test_a_timeout_leaves_the_job(gd):
    gate = Gate(3.0)
    future = gd.submit("a+1", a=gate)
    for ask in (future.result, future.exception):
        with pytest.raises(TimeoutError):
            ask(0.01)
    with pytest.raises(concurrent.futures.TimeoutError):
        future.result(timeout=0)
    assert future.running() and not future.done() and not future.join(0.01)
    gate.open()
    assert (future.result(60) == 4).all() and future.join()


def test_progress_of_a_running_job(gd):
    future = gd.submit("sum(a)", a=ENDLESS)
    until(lambda: 0 < future.progress.fraction < 1)
    seen = future.progress
    assert 0 < seen.tiles_done < seen.tiles and seen.total_bytes >= ENDLESS.nbytes
    assert seen.read_bytes > 0 == seen.write_bytes and future.job > 0
    assert future.cancel() and future.join(60)
    assert 0 < future.progress.fraction < 1 and future.stats is None


@pytest.mark.parametrize("shared", [False, True])
def test_cancel_ends_a_running_job(gd, shared):
    out = gd.empty((1000,)) if shared else np.empty(1000)
    future = gd.submit("b + sum(a)", a=ENDLESS, b=gd.zeros((1000,)), out=out)
    until(lambda: gd.info()["counts"]["jobs_running"] == 1)
    called = []
    future.add_done_callback(called.append)
    assert future.cancel() and future.cancelled() and future.done() and called == [future]
    assert future.cancel(), "again it is still true"
    with pytest.raises(concurrent.futures.CancelledError):
        future.result()
    with pytest.raises(concurrent.futures.CancelledError):
        future.exception()
    assert future.join(60)
    until(lambda: gd.info()["counts"]["jobs_running"] == 0)


def test_cancel_of_what_is_done_is_refused(gd):
    future = gd.submit("1+1")
    future.result()
    assert not future.cancel() and not future.cancelled()


def test_who_waits_is_told_of_a_cancel(gd):
    gates = [Gate(), Gate()]
    waiting, going = (gd.submit("a", a=gate) for gate in gates)
    timer = threading.Timer(0.05, waiting.cancel)
    timer.start()
    done, _ = concurrent.futures.wait([waiting, going], 60, concurrent.futures.FIRST_COMPLETED)
    assert done == {waiting}
    for gate in gates:
        gate.open()
    assert going.result(60)[0] == 1 and waiting.join(60)


def test_wait_and_as_completed(gd):
    gate = Gate(5.0)
    slow = gd.submit("sum(a)", a=gate, label="slow")
    quick = [gd.submit("sum(a)*k", a=np.ones(10), k=k) for k in range(4)]
    futures = [slow, *quick]
    done, pending = concurrent.futures.wait(futures, 60, concurrent.futures.FIRST_COMPLETED)
    assert done and slow in pending
    done, pending = concurrent.futures.wait(quick, 60)
    assert done == set(quick) and not pending
    as_they_come = concurrent.futures.as_completed(futures, 60)
    assert {next(as_they_come).result() for _ in quick} == {0, 10, 20, 30}
    done, pending = concurrent.futures.wait(futures, timeout=0.01)
    assert pending == {slow}
    gate.open()
    assert next(as_they_come) is slow and slow.result() == 5000
    assert not concurrent.futures.wait(futures).not_done


def test_many_at_once(gd):
    a = np.arange(100.0)
    futures = [gd.submit("sum(a)*k", a=a, k=k) for k in range(300)]
    assert [f.result(60) for f in futures] == [4950.0 * k for k in range(300)]


def test_from_many_threads(gd):
    a = np.arange(100.0)

    def work(k):
        future = gd.submit("a+k", a=a, k=k)
        here = gd.evaluate("a-k", a=a, k=k)
        return (future.result(60) == a + k).all() and (here == a - k).all()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(200)))


def test_callbacks(gd, caplog):
    gate, order, threads = Gate(), [], []

    def fail(future):
        order.append(1)
        raise ValueError("of the callback")

    def leave(future):
        order.append(3)
        raise SystemExit(3)

    future = gd.submit("a", a=gate)
    future.add_done_callback(fail)
    future.add_done_callback(
        lambda f: (order.append(2), threads.append(threading.current_thread())))
    future.add_done_callback(leave)
    other = gd.submit("1+1")
    with caplog.at_level(logging.CRITICAL):
        gate.open()
        assert future.result(60)[0] == 1 and other.result(60) == 2
        until(lambda: len(order) == 3)
    assert order == [1, 2, 3] and threads[0] is not threading.main_thread()
    assert gd.submit("2+2").result(60) == 4, "the thread goes on"
    late = []
    future.add_done_callback(late.append)
    assert late == [future]


def test_a_callback_may_do_everything(gd):
    a, results = np.arange(10.0), []
    gate, other_gate, closed = Gate(), Gate(5.0), Gate()
    future = gd.submit("a", a=gate)
    assert gate.is_read.wait(60)
    other = gd.submit("a+1", a=other_gate)

    def go_on(future):
        other_gate.open()
        results.append(gd.evaluate("sum(a)", a=a))
        results.append(other.result(60)[0])
        results.append(gd.submit("sum(a)+1", a=a).result(60))
        with pytest.raises(TimeoutError):
            gd.submit("a", a=closed).result(0.01)
        results.append("end")

    future.add_done_callback(go_on)
    gate.open()
    until(lambda: results[-1:] == ["end"])
    closed.open()
    assert results == [45.0, 6.0, 46.0, "end"]


def test_dropped_its_job_goes_on(gd, folder):
    gate = Gate(7.0)
    alive = weakref.ref(gate)
    future = weakref.ref(gd.submit("a", a=gate, to=folder / "r.npy"))
    gate.is_read.wait(60)
    gate.open()
    del gate
    until(lambda: (folder / "r.npy").exists())
    until(lambda: not gc.collect() and future() is None and alive() is None)
    assert (np.load(folder / "r.npy") == 7).all()


def test_after_the_end_a_future_holds_no_arguments(gd):
    gate = Gate()
    gate.open()
    alive = weakref.ref(gate)
    future = gd.submit("a", a=gate)
    future.result(60)
    del gate
    until(lambda: alive() is None)
    assert future.job > 0 and future.progress.fraction == 1 and future.stats["n_tiles"] >= 1
    assert future.join()


def test_the_thread_is_there_only_while_it_is_needed(gd):
    until(lambda: not thread_is_there())
    gate = Gate()
    future = gd.submit("a", a=gate)
    threads = {t for t in threading.enumerate() if t.name == "gpuarrayd"}
    assert len(threads) == 1 and all(t.daemon for t in threads)
    gate.open()
    future.result(60)
    until(lambda: not thread_is_there())
    assert gd.submit("1+1").result(60) == 2


@pytest.mark.parametrize("how", ["close", "connect"])
def test_a_session_that_is_closed(gd, daemon, how):
    gates = [Gate(), Gate()]
    futures = [gd.submit("a", a=gate) for gate in gates]
    for gate in gates:
        assert gate.is_read.wait(60)
        gate.open()
    long = gd.submit("sum(a)", a=ENDLESS)
    if how == "close":
        gd.close()
    else:
        gd.connect(daemon.socket, start=False, name="another")
    assert isinstance(long.exception(60), errors.Error)
    assert all(future.exception(60) is None or isinstance(future.exception(), errors.Error)
               for future in futures)
    assert gd.submit("1+1").result(60) == 2
    gd.connect(daemon.socket, start=False)


# asyncio


def test_await(gd):
    a = np.arange(4.0)

    async def main():
        first = await gd.submit("a+1", a=a)
        gate = Gate(2.0)
        future = gd.submit("a", a=gate)
        asyncio.get_running_loop().call_later(0.02, gate.open)
        several = await asyncio.gather(*(gd.submit("a*k", a=a, k=k) for k in range(20)), future)
        with pytest.raises(errors.NegativePower):
            await gd.submit("b**c", b=np.array([2]), c=np.array([-1]))
        return first, several

    first, several = asyncio.run(main())
    np.testing.assert_array_equal(first, a + 1)
    for k in range(20):
        np.testing.assert_array_equal(several[k], a * k)
    assert several[-1][0] == 2


def test_cancelling_the_task_cancels_the_job(gd):
    async def main():
        futures = []

        async def work():
            futures.append(gd.submit("sum(a)", a=ENDLESS))
            return await futures[0]

        task = asyncio.create_task(work())
        while gd.info()["counts"]["jobs_running"] == 0:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return futures[0]

    future = asyncio.run(main())
    assert future.cancelled() and future.join(60)
    until(lambda: gd.info()["counts"]["jobs_running"] == 0)


def test_a_timeout_of_asyncio_cancels_the_job(gd):
    async def main():
        future = gd.submit("sum(a)", a=ENDLESS)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(future), 0.05)
        return future

    future = asyncio.run(main())
    assert future.cancelled() and future.join(60)


# The end of the interpreter


def run(script, socket):
    import os
    return subprocess.run([sys.executable, "-c", textwrap.dedent(script)], text=True, timeout=60,
                          capture_output=True, env={**os.environ, "GPUARRAYD_SOCKET": socket})


@pytest.mark.parametrize("end", [
    "pass", "raise SystemExit(0)",
    "future.add_done_callback(lambda f: print(f.exception().code))",
    "gd.close()", "threading.Thread(target=future.exception, daemon=True).start()",
    "future.cancel()"])
def test_the_interpreter_ends_with_jobs_that_run(gd, daemon, end):
    done = run(f"""
        import threading, numpy as np, gpuarrayd as gd
        future = gd.submit("sum(a)", a=np.broadcast_to(np.zeros(1), (1 << 38,)))
        {end}
        """, daemon.socket)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout == ("cancelled\n" if "callback" in end else "")
    until(lambda: gd.info()["counts"]["jobs_running"] == 0)


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), KeyboardInterrupt()])
def test_a_thread_that_does_not_start(gd, monkeypatch, error):
    """The next future has one."""
    until(lambda: not thread_is_there())

    def refuse(thread):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(type(error)):
            gd.submit("sum(a)", a=ENDLESS)
    until(lambda: gd.info()["counts"]["jobs_running"] == 0)
    assert gd.submit("1+1").result(60) == 2


def test_interrupted_while_its_thread_starts(gd, monkeypatch):
    """The thread is there, and its starter does not know it: there is one thread all the same."""
    until(lambda: not thread_is_there())
    start = threading.Thread.start

    def interrupted(thread):
        start(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            gd.submit("1+1")
    gate = Gate()
    futures = [gd.submit("a+1", a=gate), gd.submit("1+2")]
    assert futures[1].result(60) == 3
    until(lambda: sum(t.name == "gpuarrayd" for t in threading.enumerate()) == 1)
    gate.open()
    assert futures[0].result(60)[0] == 2


def test_concurrent_futures_is_loaded_by_submit_alone(gd, daemon):
    done = run("""
        import sys, gpuarrayd as gd
        gd.evaluate("1+1"), gd.evaluate("1+1", progress=True)
        print(any(name in sys.modules for name in ("concurrent.futures", "asyncio", "IPython")))
        gd.submit("1+1").result()
        print("concurrent.futures" in sys.modules, "asyncio" in sys.modules)
        """, daemon.socket)
    assert (done.stdout, done.stderr) == ("False\nTrue False\n", "")
