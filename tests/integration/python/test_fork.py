"""fork(): a child connects anew, and nothing that it does harms its parent."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
import warnings

import numpy as np
import pytest

from conftest import needs_forks
from gpuarrayd import errors


class Gate:
    """An array whose elements come when it is opened: its job runs until then."""

    def __init__(self):
        self.is_read, self.is_open = threading.Event(), threading.Event()

    def __gad_source__(self, session):
        return session.from_blocks("<f8", (10,), self._read, None)

    def _read(self, start, count, block):
        self.is_read.set()
        assert self.is_open.wait(60)
        np.frombuffer(block)[:] = 1


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork() with threads


def fork(call):
    """Runs call() in a child, which ends without cleaning up; wait(pid) says how it went. What other tests
    left to the garbage collector stays in the parent: its finalizers may wait for threads that the child
    lacks."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            gc.freeze()
            call()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def wait(pid, seconds=60):
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(pid, signal.SIGABRT)  # pytest's handler says where it hangs
            os.waitpid(pid, 0)
            return "it hangs"
        time.sleep(0.002)


def in_child(call):
    assert wait(fork(call)) == 0


def test_while_the_thread_sets_a_future(gd):
    """The child's copy is not set by anybody: it raises, as all that were not done."""
    from gpuarrayd._jobs import future as _future

    gate = Gate()
    future = gd.submit("sum(a)", a=gate)
    entry, = _future._server._table.values()
    entry.is_taken = True
    assert future._claim()

    def child():
        with pytest.raises(errors.Disconnected):
            future.result(20)

    pid = fork(child)
    vars(future)["_state"], entry.is_taken = "PENDING", False
    assert wait(pid) == 0
    gate.is_open.set()
    assert future.result(60) == 10


def test_a_child_connects_anew(gd):
    a = np.arange(10.0)
    assert gd.evaluate("sum(a)") == 45
    before = gd.info()["counts"]["sessions"]

    def child():
        np.testing.assert_array_equal(gd.evaluate("a*2", a=a), a * 2)
        assert gd.info()["counts"]["sessions"] == before + 1
        assert gd.submit("sum(a)", a=a).result(30) == 45

    in_child(child)
    assert gd.evaluate("sum(a)", a=a) == 45


def test_a_child_of_a_child(gd):
    a = gd.asarray(np.arange(10.0))

    def child():
        assert gd.evaluate("sum(a)", a=a) == 45
        in_child(lambda: np.testing.assert_array_equal(gd.evaluate("a*2", a=a), a * 2))
        assert gd.evaluate("sum(a)", a=a) == 45

    in_child(child)
    assert gd.evaluate("sum(a)", a=a) == 45


def test_a_child_before_the_first_call(gd, daemon):
    gd.close()
    in_child(lambda: gd.evaluate("1+1"))
    assert gd.evaluate("1+1") == 2


def test_shared_arrays_of_the_parent_are_read_and_written_by_the_child(gd):
    a, out = gd.asarray(np.arange(1000.0)), gd.zeros((500,))
    b = gd.evaluate("a+1", a=a)

    def child():
        np.testing.assert_array_equal(b, np.arange(1000.0) + 1)
        np.testing.assert_array_equal(gd.evaluate("a*b", a=a, b=b), a * (a + 1))
        np.testing.assert_array_equal(gd.evaluate("sqrt(a)", a=a[::2]), np.sqrt(a[::2]))
        mine = gd.asarray(a)
        mine += 1
        gd.evaluate("a*2", a=mine[:500], out=out)
        a[0] = 77

    in_child(child)
    np.testing.assert_array_equal(out, (np.arange(500.0) + 1) * 2)
    assert a[0] == 77 and gd.evaluate("sum(a)", a=a) == 499577
    np.testing.assert_array_equal(gd.evaluate("out+0", out=out), out)


def test_a_child_that_frees_frees_nothing_of_the_parent_s(gd):
    kept = {"a": gd.asarray(np.arange(100000.0)), "b": gd.evaluate("x*2", x=np.arange(100000.0))}
    bytes_before = gd.info()["counts"]["region_bytes"]

    def child():
        kept.clear()
        gc.collect()
        own = [gd.asarray(np.full(100000, 9.0)) for _ in range(4)]
        assert gd.evaluate("sum(x)", x=own[0]) == 900000
        del own
        gc.collect()
        gd.close()

    in_child(child)
    np.testing.assert_array_equal(kept["a"], np.arange(100000.0))
    new = [gd.asarray(np.full(100000, 5.0)) for _ in range(4)]
    np.testing.assert_array_equal(kept["b"], np.arange(100000.0) * 2)
    assert gd.evaluate("sum(a)", a=kept["a"]) == np.arange(100000.0).sum()
    assert all((x == 5).all() for x in new) and bytes_before > 0


def test_the_parent_s_futures_are_the_parent_s(gd):
    done, gate, called = gd.submit("1+1"), Gate(), []
    assert done.result() == 2
    future = gd.submit("sum(a)", a=gate)
    assert gate.is_read.wait(60)
    future.add_done_callback(called.append)

    def child():
        assert done.result() == 2 and done.stats is not None
        for ask in (future.result, future.exception):
            try:
                error = ask(10)
            except errors.Disconnected as raised:
                error = raised
            assert isinstance(error, errors.Disconnected) and str(os.getppid()) in str(error)
        assert not future.cancel() and future.done() and not called
        assert future.join(10) and future.progress is not None
        assert gd.submit("sum(b)", b=np.ones(10)).result(30) == 10

    in_child(child)
    assert not future.done()
    gate.is_open.set()
    assert future.result(60) == 10 and not future.cancelled() and called == [future]


def test_files_of_the_parent(gd, folder):
    np.save(folder / "x.npy", np.arange(12.0).reshape(3, 4))
    x = gd.open(folder / "x.npy")
    y = gd.sqrt(x) + 1
    assert y.compute().shape == (3, 4)

    def child():
        np.testing.assert_array_equal(y.compute(), np.sqrt(np.load(folder / "x.npy")) + 1)
        gd.save(folder / "y.npy", x * 2)

    in_child(child)
    np.testing.assert_array_equal(np.load(folder / "y.npy"), np.load(folder / "x.npy") * 2)
    assert float((x + y).sum().compute()) > 0


def test_the_parent_s_end_is_noticed_while_the_child_lives(gd, daemon):
    gd.evaluate("1+1")
    sessions = daemon.info()["counts"]["sessions"]
    hold, go = os.pipe()

    def child():
        os.close(go)
        os.read(hold, 1)

    pid = fork(child)
    gd.close()
    end = time.monotonic() + 20
    while daemon.info()["counts"]["sessions"] != sessions - 1:
        assert time.monotonic() < end
        time.sleep(0.01)
    os.close(hold)
    os.close(go)
    assert wait(pid) == 0
    assert gd.evaluate("1+1") == 2


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)", "pass", "gd.close()",
                                 "gd.evaluate('1+1')", "a = job = None; gc.collect()",
                                 "gd.submit('1+1')", "job.cancel()"])
def test_however_a_child_ends(gd, daemon, end):
    script = f"""
        import gc, os, sys, threading
        import numpy as np
        import gpuarrayd as gd
        is_open = threading.Event()
        class Gate:
            def __gad_source__(self, session):
                return session.from_blocks("<f8", (10,), self.read, None)
            def read(self, start, count, block):
                assert is_open.wait(60)
                np.frombuffer(block)[:] = 1
        a = gd.asarray(np.arange(1000.0))
        job = gd.submit("sum(a)", a=Gate())
        b = gd.evaluate("a+1", a=a)
        if (pid := os.fork()) == 0:
            {end}
        else:
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), job.done(), is_open.set(),
                  job.result(60),
                  gd.evaluate("sum(b-a)", a=a, b=b))
        """
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)],
                          text=True, capture_output=True, timeout=60,
                          env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})
    assert (done.stdout, done.stderr) == ("0 False None 10.0 1000.0\n", "")


def work(k):
    import gpuarrayd as gd
    a = np.arange(1000.0)
    return float(gd.evaluate("sum(a*k)", a=a, k=k)) + gd.submit("k+1", k=k).result(30)


def test_multiprocessing(gd):
    gd.evaluate("1+1")
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map(work, range(20)) == [499500.0 * k + k + 1 for k in range(20)]
    assert gd.evaluate("1+1") == 2


def test_errors_of_multiprocessing(gd):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        with pytest.raises(errors.UnknownName) as caught:
            pool.apply(gd.evaluate, ["sqroot(a)"], {"a": np.ones(3)})
    assert caught.value.code == "unknown-name" and "sqrt" in str(caught.value)


@needs_forks
def test_fork_while_other_threads_run_jobs(gd):
    a, wrong, stop = gd.asarray(np.arange(1000.0)), [], threading.Event()

    def run(k):
        while not stop.is_set():
            if not (gd.evaluate("a*k", a=a, k=k) == a * k).all():
                wrong.append(k)
            if gd.submit("sum(a)+k", a=a, k=k).result(30) != 499500 + k:
                wrong.append(k)

    def child():
        assert gd.evaluate("sum(a)", a=a) == 499500
        assert gd.submit("sum(b)", b=np.ones(10)).result(30) == 10

    threads = [threading.Thread(target=run, args=[k]) for k in range(3)]
    for thread in threads:
        thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            codes = [wait(fork(child)) for _ in range(25)]
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert codes == [0] * 25 and not wrong
    assert not any(thread.is_alive() for thread in threads)


@needs_forks
def test_fork_while_another_thread_s_first_job_loads_modules(daemon):
    """submit() loads concurrent.futures, here slowly; a half of it is of no use to a child."""
    script = """
        import importlib.abc, logging, os, sys, threading, time
        import gpuarrayd as gd
        is_loading = threading.Event()
        class Slow(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name == "concurrent.futures._base":
                    is_loading.set()
                    time.sleep(0.3)
        assert "concurrent.futures" not in sys.modules
        sys.meta_path.insert(0, Slow())
        thread = threading.Thread(target=lambda: gd.submit("1+1").result(60))
        thread.start()
        assert is_loading.wait(60)
        if (pid := os.fork()) == 0:
            os._exit(gd.submit("1+2").result(30))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        thread.join()
        """
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                          env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket}) as process:
        try:
            assert process.communicate(timeout=60) == ("3\n", "")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)  # a child that hangs holds the pipes
            raise


@needs_forks
def test_fork_while_another_thread_loads_what_logs(tmp_path):
    """The module that is being loaded needs logging's lock, which fork() takes as well."""
    (tmp_path / "slow.py").write_text(textwrap.dedent("""
        import logging, sys, time
        sys.is_loading.set()
        time.sleep(0.3)
        logging.getLogger("slow")
        """))
    script = """
        import gpuarrayd
        import logging, os, sys, threading, time
        from gpuarrayd._loading import loading
        sys.is_loading = threading.Event()
        def load():
            with loading():
                import slow
        thread = threading.Thread(target=load)
        thread.start()
        assert sys.is_loading.wait(60)
        if (pid := os.fork()) == 0:
            import slow
            os._exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        thread.join()
        """
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(
                              [str(tmp_path), *sys.path])}) as process:
        try:
            assert process.communicate(timeout=60) == ("3\n", "")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            raise


def test_a_child_while_this_thread_s_job_runs(gd):
    """The fork is another thread's: the job of the first is neither seen nor ended by the child."""
    a, gate, results = gd.zeros((1000,)), Gate(), []
    thread = threading.Thread(
        target=lambda: results.append(gd.evaluate("sum(a)+sum(b)", a=a, b=gate)))
    thread.start()
    assert gate.is_read.wait(60)

    def child():
        nonlocal a
        a = None
        gc.collect()
        assert gd.evaluate("1+1") == 2

    in_child(child)
    assert not results and a is not None
    gate.is_open.set()
    thread.join(60)
    assert results == [10]
