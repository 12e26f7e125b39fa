"""A real daemon for each test that asks for one, on a private socket, with a time-out."""

import atexit
import collections
import gc
import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# Threads of anybody's OpenBLAS that have nothing to do wait in the kernel soon (after 2^4 cycles; it is
# 2^26, which is 20 ms of a processor each time), because the processors are the daemons'.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
# Our NumPy's OpenBLAS gets one thread, as it is loaded: others beside it would only
# take turns with the daemons'. Whom we start is told nothing of it.
_THREADS = os.environ.get("OPENBLAS_NUM_THREADS")
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy  # noqa: E402, F401
if _THREADS is None:
    del os.environ["OPENBLAS_NUM_THREADS"]
else:
    os.environ["OPENBLAS_NUM_THREADS"] = _THREADS

import pytest

try:
    import hdf5plugin  # noqa: F401: before netCDF4, whose wheel brings filters of the same numbers
except ImportError:
    pass

import installed as installation
import wire
from watchdog import Watchdog

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
# Tests of a folder run those of another one on an engine of their own, and take their fixtures.
sys.path += sorted({str(file.parent) for file in HERE.glob("**/test_*.py")})
BUILD = pathlib.Path(os.environ.get("GPUARRAYD_BUILD", TOP / "build"))
DAEMON = BUILD / "daemon/broker/gpuarrayd"
WORKER = BUILD / "daemon/worker/gpuarrayd-worker-cpu"
# The engine of daemons that do not say, and the program that works with a device: the one made with
# the test double, or (GPUARRAYD_TEST_ENGINE=cuda GPUARRAYD_TEST_WORKER=PATH) one with a real device.
ENGINE = os.environ.get("GPUARRAYD_TEST_ENGINE", "cpu")
# The best level of the CPU engine that daemons may use; None: the processor's. (Private daemons: let
# GPUARRAYD_DAEMON name a script that adds the option. NPY_DISABLE_CPU_FEATURES is NumPy's.)
LEVEL = os.environ.get("GPUARRAYD_TEST_LEVEL")
CUDA_WORKER = pathlib.Path(os.environ.get(
    "GPUARRAYD_TEST_WORKER", BUILD / "tests/integration/gpuarrayd-worker-cuda-double"))
IS_DOUBLE = CUDA_WORKER.name.endswith("-double")
FAULTY_WORKER = BUILD / "tests/integration/gpuarrayd-worker-faults"
CTL = BUILD / "client/ctl/gpuarrayctl"
IS_SANITIZED = "asan" in BUILD.name or "tsan" in BUILD.name
needs_forks = pytest.mark.skipif(
    IS_SANITIZED, reason="the allocator of the sanitizer's library has locks that a child inherits as "
    "other threads held them")

# What must be as before, once everybody has gone.
COUNTS = ("sessions", "regions", "region_bytes", "jobs_running", "jobs_queued", "descriptors",
          "mappings", "slots_lent", "carries")


# Private daemons and the numbers of detached jobs are the tests' own, not those of whoever runs them.
RUNTIME = tempfile.mkdtemp(prefix="gpuarrayd-test-")
os.environ["XDG_RUNTIME_DIR"] = RUNTIME
# A screen's size is its terminal's. (GNU readline, loaded by who starts us, may have set these.)
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)
atexit.register(shutil.rmtree, RUNTIME, ignore_errors=True)
# Whoever starts us in the background has these ignored, and all that we start would inherit it.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT
                      else signal.SIG_DFL)


# Files whose tests take longest, the first the longest of all: begun first, so that no process is left
# with one of them when the others have nothing more to do. The rest follows as it is.
LONGEST = """test_package test_dask_cluster test_examples test_lazy_reductions test_types
    test_cuda_quantiles test_counts test_cuda_products test_cuda_functions test_jobs test_reductions
    test_workers test_sessions test_cuda_jobs test_cli test_interrupt test_cuda_counts
    test_product_jobs test_futures test_products test_trees test_quantiles test_dask_reductions
    test_core_threads test_detached_many test_replies test_broker test_detached test_cuda_faults
    test_client test_reduction_functions test_restarts test_fork test_exit test_life test_arguments
    test_count_configurations test_selections test_worker_loss test_loss test_moves
    test_read_together test_taken_files test_top test_written_together test_journals test_small_jobs
    test_innocents test_cuda test_numpys_edges""".split()


def pytest_configure(config):
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # by the number of tests, of which some take long


# Files about values, which the kernels compute in other instructions where no sanitizer is, and about
# numbers that are measured. Other tests are of the daemon's and its clients' ways, and the Python
# package's drive all of those on the plain build.
PLAIN = """test_catalogue test_cuda_trees test_disk_rate test_exact_numbers test_jobs test_product_jobs
    test_products test_quantiles test_random test_random_functions test_reduction_functions
    test_reductions test_repeated test_special_forms test_stats test_tf32 test_counts test_trees
    test_replies test_layouts test_product_chains test_slabs test_windows""".split()


# Of a function marked "values", or in such a file, of whose cases sanitizers see one in so many.
EVERY_NTH_CASE = 4


def is_of_values(item):
    """Whether all its cases run on the plain build, and go through the same functions. Hostile ones
    do not, nor those in which somebody dies, which are marked "whole"."""
    return (item.get_closest_marker("values")
            or item.path.stem in PLAIN and "hostile" not in item.path.parts
            and not item.get_closest_marker("whole"))


def one_in_some(items, step):
    """Without most cases of the functions of values; of each function one at least, and not the same of
    all."""
    groups = collections.defaultdict(list)
    for item in items:
        if is_of_values(item):
            groups[item.path, item.originalname].append(item)
    kept = {item for nth, cases in enumerate(groups.values())
            for item in cases[nth % min(step, len(cases))::step]}
    return [item for item in items if item in kept or not is_of_values(item)]


@pytest.hookimpl(tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(items):
    for item in items:
        if (item.path.stem in PLAIN or "python" in item.path.parts
                or "installed" in item.fixturenames or item.get_closest_marker("values")):
            item.add_marker("plain")
    if IS_SANITIZED:
        items[:] = one_in_some(items, EVERY_NTH_CASE)
    rank = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


def pytest_collection_finish():
    gc.freeze()  # thousands of tests, which every gc.collect() would go through


class NotStarted(RuntimeError):
    """.code: the exit status; .text: what the daemon said."""

    def __init__(self, code, text):
        super().__init__(f"the daemon did not start: exit {code}\n{text}")
        self.code, self.text = code, text


def some(cases, step, first=0):
    """All of a list of cases; under sanitizers, where the same code takes ten times as long, every so
    many of them, from one on. For cases that differ in values or in numbers of tiles, each of which
    the plain build checks (their tests are marked "plain"): what is left goes through the same
    functions, which the sanitizers see. Not for hostile input, crashes, faults and what is given back,
    all of which run under sanitizers."""
    return cases[first::step] if IS_SANITIZED else cases


def size_of(text):
    """"8M" in bytes."""
    return int(text[:-1]) << {"K": 10, "M": 20, "G": 30}[text[-1]]


def engine_args(engine, pool):
    """The daemon's options for an engine. A device's pool is 8 MiB at least, in slots of 2 MiB where
    it is small; with one slot more, which is no part of it, and on the device with half as much for
    products, and with cuBLAS's memory."""
    if engine == "cpu":
        return ["--engine", "cpu"]
    n = max(size_of(pool), 8 << 20)
    slot = 2 << 20 if n < 64 << 20 else 8 << 20
    slab = (n // slot + 1) * slot >> 20
    usable = slab * 3 // 2
    device = min(-(-usable * 8 // 7 // 2) * 2, -(-usable // 2) * 2 + 32)
    return ["--engine", engine, "--cuda-worker", CUDA_WORKER, "--device-bytes", f"{device}M",
            "--pinned-bytes", f"{slab}M", "--chunk-bytes", f"{slot >> 20}M"]


def pauses(most_s=0.05):
    """Sleeps a little longer each time: for what is there in a moment, or takes its time."""
    for n in itertools.count():
        time.sleep(min(0.001 * 1.5 ** n, most_s))
        yield


class Daemon:
    def __init__(self, pool="8M", threads=2, worker=WORKER, args=(), env=None, user=None,
                 program=DAEMON, under=(), engine=ENGINE):
        if engine == "cuda" and worker is not WORKER:
            pytest.skip("about a program in the CPU worker's place")
        self.engine_name = "cuda:0" if engine == "cuda" else "cpu"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="gpuarrayd-test-"))
        if user is not None:
            self.dir.chmod(0o755)
        self.socket = str(self.dir / "socket")
        self.log = open(self.dir / "log", "w+b")
        has_own = any(name in (env or {}) for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC"))
        self.watchdog = None if has_own else Watchdog(self.dir, factor=5 if IS_SANITIZED else 1)
        fed = self.watchdog.env if self.watchdog else {}
        ready, tell = os.pipe()
        os.set_inheritable(tell, True)
        command = [*under, program, "--socket", self.socket, "--pool", pool, "--threads", str(threads),
                   "--worker", worker, "--ready-fd", str(tell), *engine_args(engine, pool),
                   *(["--level", LEVEL] if LEVEL else []), *args]
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, pass_fds=[tell],
                                        env={**os.environ, **fed, **(env or {})})
        if self.watchdog:
            self.watchdog.begin(self.process.pid)
        os.close(tell)
        if not wire.has_something(ready, 20) or not os.read(ready, 1):
            try:
                code = self.process.wait(1)
            except subprocess.TimeoutExpired:
                code = "none after 20 s"
                self.process.kill()
                self.process.wait()
            text = self.text()
            os.close(ready)
            self.end_watchdog()
            self.log.close()
            shutil.rmtree(self.dir, ignore_errors=True)
            raise NotStarted(code, text)
        os.close(ready)

    def text(self):
        return (self.dir / "log").read_text(errors="replace")

    def connect(self, **kwargs):
        return wire.Wire(self.socket, **kwargs)

    def info(self):
        with self.connect() as w:
            return w.call("server.info")

    def counts(self):
        end = time.monotonic() + 20
        while "mappings" not in (counts := self.info()["counts"]):  # the worker is not ready yet
            assert time.monotonic() < end, counts
            time.sleep(0.02)
        # Another descriptor is open for the moment in which the watchdog is fed.
        counts["descriptors"] = min(counts["descriptors"], self.info()["counts"]["descriptors"])
        return {name: counts[name] for name in COUNTS}

    def quiet_counts(self, seconds=20):
        """The counts once the sessions of earlier tests have gone: only ours, and the same twice."""
        end = time.monotonic() + seconds
        last = None
        pause = pauses()
        while (counts := self.counts()) != last or counts["sessions"] != 1:
            assert time.monotonic() < end, (last, counts)
            last = counts
            next(pause)
        return counts

    def wait_for_counts(self, wanted, seconds=20):
        """Closing is asynchronous: waits until the counts are as before. Of descriptors there may be
        fewer, as one of an earlier test may have been closed meanwhile."""
        end = time.monotonic() + seconds
        pause = pauses()

        def found():
            counts = self.counts()
            return {**counts, "descriptors": max(counts["descriptors"], wanted["descriptors"])}
        while (counts := found()) != wanted and time.monotonic() < end:
            next(pause)
        assert counts == wanted

    def wait_for_restarts(self, at_least, seconds=20):
        """Until the worker was replaced so many times and the new one is ready."""
        end = time.monotonic() + seconds
        while True:
            engine = self.engine_info(self.engine_name)
            if engine["restarts"] >= at_least and engine["state"] == "ready":
                return
            assert time.monotonic() < end, engine
            time.sleep(0.02)

    def engine_info(self, name="cuda:0"):
        """What server.info says of one engine."""
        return {engine["name"]: engine for engine in self.info()["engines"]}[name]

    def wait_for_state(self, state, name="cuda:0", seconds=20):
        end = time.monotonic() + seconds
        while (engine := self.engine_info(name))["state"] != state:
            assert time.monotonic() < end, engine
            time.sleep(0.02)
        return engine

    def worker_pid(self):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            children = pathlib.Path(
                f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            if children:
                return int(children[0])
            time.sleep(0.01)
        raise RuntimeError("there is no worker")

    def ctl(self, *words, check=True, timeout=120, **kwargs):
        done = subprocess.run([str(CTL), *map(str, words)], capture_output=True, text=True,
                              timeout=timeout,
                              env={**os.environ, "GPUARRAYD_SOCKET": self.socket,
                                   **kwargs.pop("env", {})}, **kwargs)
        if check and done.returncode != 0:
            raise AssertionError(f"{words}: exit {done.returncode}\n{done.stdout}{done.stderr}\n"
                                 + self.text())
        return done

    def end_watchdog(self):
        """What it found, or None."""
        watchdog, self.watchdog = self.watchdog, None
        return watchdog.end() if watchdog else None

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.end_watchdog()

    def stop(self):
        """Ends it as systemd does; it must leave cleanly, have reported no sanitizer fault, and have
        fed its watchdog all the time."""
        found = self.end_watchdog()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = "killed: it did not leave within 30 s"
        text = self.text()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)
        assert code == 0, f"exit {code}\n{text}"
        assert found is None, f"{found}\n{text}"
        for mark in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "ThreadSanitizer"):
            assert mark not in text, text


@pytest.fixture(scope="session")
def installed():
    """The build, installed below a folder of its own."""
    if IS_SANITIZED:
        pytest.skip("a sanitizer's build is not what is installed")
    place = installation.Installed(BUILD)
    yield place
    place.remove()


@pytest.fixture
def start():
    """start(pool=..., ...) -> Daemon; all are stopped at the end and must have been well."""
    running = []

    def make(**kwargs):
        running.append(Daemon(**kwargs))
        return running[-1]

    yield make
    for daemon in running:
        daemon.stop()


@pytest.fixture
def mortal():
    """A daemon that the test kills."""
    daemon = Daemon()
    yield daemon
    daemon.kill()
    daemon.log.close()
    shutil.rmtree(daemon.dir, ignore_errors=True)


@pytest.fixture
def folder():
    """An empty folder, gone after the test."""
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-") as path:
        yield pathlib.Path(path)


@pytest.fixture(scope="module")
def daemon():
    """One daemon for a module, with a pool of 8 MiB."""
    d = Daemon()
    yield d
    d.stop()


@pytest.fixture
def w(daemon):
    """A connection to the module's daemon; afterwards the counts are what they were before."""
    before = daemon.quiet_counts()
    with daemon.connect() as connection:
        yield connection
    daemon.wait_for_counts(before)


@pytest.fixture
def gd(daemon):
    """The package `gpuarrayd`, connected to the module's daemon. After the test it leaves, and the
    daemon's counts are as before."""
    import gpuarrayd
    before = daemon.quiet_counts()
    gpuarrayd.connect(daemon.socket)
    yield gpuarrayd
    gc.collect()
    gc.freeze()  # what is left stays: modules, what tests are remembered by
    gpuarrayd.close()
    daemon.wait_for_counts(before)
