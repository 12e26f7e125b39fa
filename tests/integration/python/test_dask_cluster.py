"""gd.dask on a cluster of four processes: one daemon for all, and what happens when some die."""

import contextlib
import os
import signal

import numpy as np
import pytest

import conftest
import gpuarrayd

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed", "2023.9.2")

N_WORKERS = 4
POOL = "1M"


class Host:
    """A daemon with a small pool, which can be killed and started again on its socket."""

    def __init__(self):
        self.first = self.daemon = conftest.Daemon(pool=POOL)
        self.socket = self.first.socket

    @property
    def pid(self):
        return self.daemon.process.pid

    def start_again(self):
        self.daemon.kill()
        self.daemon = conftest.Daemon(pool=POOL, args=["--socket", self.socket])
        self.daemon.socket = self.socket

    def stop(self):
        self.daemon.stop()
        if self.daemon is not self.first:
            self.first.kill()
            self.first.log.close()
            conftest.shutil.rmtree(self.first.dir, ignore_errors=True)


@pytest.fixture(scope="module")
def host():
    host = Host()
    yield host
    host.stop()


@contextlib.contextmanager
def local_cluster(**options):
    """Listens on the loopback device alone, on ports that are free, and has no dashboard."""
    with distributed.LocalCluster(dashboard_address="127.0.0.1:0", **options,
                                  scheduler_kwargs={"dashboard": False}) as cluster, \
            distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def client(host):
    """Of four workers that the plugin has connected. What runs here is connected, too."""
    with local_cluster(n_workers=N_WORKERS, threads_per_worker=1) as client:
        client.register_plugin(gpuarrayd.dask.DaemonPlugin(host.socket, start=False))
        gpuarrayd.connect(host.socket)
        yield client
        gpuarrayd.close()


SHAPE = (2048, 1024)  # 16 MB of float64: sixteen times the pool; a block of 8 is larger, too


def blocks(seed, n):
    """n blocks of numbers, made where they are used."""
    numbers = da.random.default_rng(seed)
    return numbers.normal(size=SHAPE, chunks=(SHAPE[0] // n, SHAPE[1]))


def expression(a, b):
    return gpuarrayd.dask.evaluate("sqrt(a*a + b*b) - where(a > b, a, 1)", a=a, b=b)


def expected(a, b):
    return np.sqrt(a * a + b * b) - np.where(a > b, a, 1)


def pids(client):
    found = gpuarrayd.dask.daemons(client)
    assert len(found) == N_WORKERS
    assert len({worker["process"] for worker in found.values()}) == N_WORKERS
    return {worker.get("pid", worker.get("error")) for worker in found.values()}


def test_four_processes_share_one_daemon(host, client):
    assert pids(client) == {host.pid}
    one = next(iter(gpuarrayd.dask.daemons(client).values()))
    assert one["socket"] == host.socket and one["engine"] == "cpu"
    assert one["host"] == os.uname().nodename and one["version"] == gpuarrayd.__version__


def test_arrays_beyond_the_pool(host, client):
    a, b = blocks(1, 8), blocks(2, 4)
    assert a.nbytes // 8 > gpuarrayd.info()["pool"]["bytes"]
    made = expression(a, b)
    found, *values = dask.compute(made, a, b)
    np.testing.assert_array_equal(found, expected(*values))
    rest = gpuarrayd.dask.evaluate("x - m", x=made, m=made.mean()).sum().compute()
    assert abs(rest) < 1e-6


def test_registered_again_it_changes_nothing(host, client):
    client.register_plugin(gpuarrayd.dask.DaemonPlugin(host.socket, start=False))
    assert pids(client) == {host.pid}
    sessions = gpuarrayd.info()["counts"]["sessions"]
    assert sessions == N_WORKERS + 1  # and ours


def test_errors_travel(client):
    x = da.from_array(np.arange(8), chunks=2)
    with pytest.raises(gpuarrayd.NegativePower) as e:
        gpuarrayd.dask.evaluate("x ** y", x=x, y=x - 3).compute()
    assert isinstance(e.value, gpuarrayd.RequestError) and isinstance(e.value, ValueError)
    assert e.value.code == "negative-integer-power" and "negative" in e.value.message


def marked(array, name):
    """The same; the first of its blocks that is used sets a distributed.Event."""
    def mark(block):
        distributed.Event(name).set()
        return block
    return array.map_blocks(mark, dtype=array.dtype)


def in_the_middle(client, name, happen):
    """The result and NumPy's, when happen() was called after the first blocks were begun."""
    a, b = blocks(3, 64), blocks(4, 64)
    future = client.compute(expression(marked(a, name), b))
    assert distributed.Event(name).wait(20)
    happen()
    return future.result(timeout=60), expected(*dask.compute(a, b))


def test_a_daemon_that_is_killed_and_started_again_in_the_middle(host, client):
    before = host.pid
    np.testing.assert_array_equal(*in_the_middle(client, "daemon", host.start_again))
    assert pids(client) == {host.pid} and host.pid != before


def test_a_worker_that_is_killed_in_the_middle(host, client):
    victim = next(iter(gpuarrayd.dask.daemons(client).values()))["process"]
    np.testing.assert_array_equal(
        *in_the_middle(client, "worker", lambda: os.kill(victim, signal.SIGKILL)))
    client.wait_for_workers(N_WORKERS, timeout=60)
    assert pids(client) == {host.pid}


@pytest.fixture
def alone():
    """This process is not connected."""
    gpuarrayd.close()
    yield
    gpuarrayd.close()


def test_workers_of_one_process_share_a_session(host, alone):
    with local_cluster(n_workers=2, threads_per_worker=1, processes=False) as client:
        client.register_plugin(gpuarrayd.dask.DaemonPlugin(host.socket, start=False))
        found = gpuarrayd.dask.daemons(client)
        assert len(found) == 2 and {worker["process"] for worker in found.values()} == {os.getpid()}
        assert {worker["pid"] for worker in found.values()} == {host.pid}
        np.testing.assert_array_equal(
            gpuarrayd.dask.evaluate("x + 1", x=da.ones(4, chunks=1)).compute(), np.full(4, 2))
    from gpuarrayd.dask import _process
    assert not _process.is_connected()


def test_without_a_daemon_the_plugin_says_so(alone):
    nowhere = "/nowhere/socket"
    with local_cluster(n_workers=1, threads_per_worker=1, processes=False) as client:
        with pytest.raises(gpuarrayd.NoDaemon, match="worker .* on .*: .*/nowhere/socket"):
            client.register_plugin(gpuarrayd.dask.DaemonPlugin(nowhere, start=False))
        worker, = gpuarrayd.dask.daemons(client).values()
        assert isinstance(worker["error"], gpuarrayd.NoDaemon)
        with pytest.raises(gpuarrayd.NoDaemon):
            gpuarrayd.dask.evaluate("x + 1", x=da.ones(4), dtype="f8").compute()


def test_processes_that_start_a_private_daemon_at_once_get_one(folder, alone, monkeypatch):
    monkeypatch.delenv("GPUARRAYD_SOCKET", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setenv("GPUARRAYD_DAEMON", str(conftest.DAEMON))
    with local_cluster(n_workers=2, threads_per_worker=1) as client:
        client.register_plugin(gpuarrayd.dask.DaemonPlugin())
        pid, = {worker["pid"] for worker in gpuarrayd.dask.daemons(client).values()}
        x = da.ones((64, 1000), chunks=(4, 1000))
        found = gpuarrayd.dask.evaluate("x + y", x=x, y=1, dtype="f8").compute()
        np.testing.assert_array_equal(found, np.full(x.shape, 2.0))
    os.kill(pid, signal.SIGTERM)
