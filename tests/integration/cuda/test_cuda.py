"""The CUDA worker below a real daemon: memory that is taken once, arrays and clients far beyond the
pool, the same results as the CPU's, and what a job and the daemon say about engines."""

import itertools
import json
import os
import random
import threading

import numpy as np
import pytest

import conftest
import wire
from catalogue import ask, assert_same
from cuda_daemons import both, daemon, double, needs_double, start  # noqa: F401: fixtures
from trees import Trees
from wire import Error, described, file_at

MIB = 1 << 20
POOL = 8 * MIB  # of daemons with pool="8M"
N_MIXED = 2000 if conftest.IS_SANITIZED else 10_000


def allocations(daemon):
    engine = daemon.engine_info()
    assert engine["state"] == "ready", engine
    return {name: engine[name] for name in ("device_allocations", "host_allocations")}


def write_file(array):
    fd = wire.memfd(array.nbytes)
    os.pwrite(fd, array.tobytes(), 0)
    return fd


# -- memory -------------------------------------------------------------------------------------

class Mixed:
    """Jobs of every kind, one after the other, and what each must give."""

    def __init__(self, w, seed):
        self.random = random.Random(seed)
        self.w = w
        self.region = wire.Region(w, 4 * MIB)
        self.a = np.random.default_rng(seed).normal(size=200_003).astype("f4")
        self.region.array("f4", self.a.shape)[:] = self.a
        self.out = self.region.array("f4", self.a.shape, MIB)
        self.fd = write_file(self.a)
        self.small = np.arange(1000.0)
        self.root, self.total = np.sqrt(self.small), np.float32(self.a.astype("f8").sum())

    def send(self):
        """(request's id, what to do with its reply)"""
        kind = self.random.random()
        if kind < 0.9:
            return self.w.send("job.run", outputs=[{"expr": "sqrt(x)"}],
                               args={"x": wire.argument(self.small)}), self.check_small
        if kind < 0.93:
            return self.w.send("job.run", outputs=[{"expr": "sqrt(x) +"}],
                               args={"x": wire.argument(self.small)}), self.check_refusal
        if kind < 0.96:
            return self.w.send("job.run", fds=[self.fd], outputs=[{"expr": "sum(x)"}],
                               args={"x": described(self.a, file_at(0))}), self.check_sum
        if kind < 0.98:
            return self.w.send("job.run", outputs=[{"expr": "sum(x)"}, {"expr": "max(x)"}],
                               args={"x": described(self.a, self.region.at())}), self.check_sum
        return self.w.send("job.run", args={"x": described(self.a, self.region.at())}, outputs=[
            {"expr": "x + 1", "to": described(self.a, self.region.at(MIB))}]), self.check_region

    def check_small(self, reply):
        assert np.array_equal(wire.result_array(reply()["outputs"][0]), self.root)

    def check_refusal(self, reply):
        with pytest.raises(Error, match="bad-expression"):
            reply()

    def check_sum(self, reply):
        got = wire.result_array(reply()["outputs"][0])[()]
        assert abs(got - self.total) <= np.spacing(np.abs(self.total))

    def check_region(self, reply):
        reply()
        assert np.array_equal(self.out, self.a + np.float32(1))

    def close(self):
        self.out = None
        os.close(self.fd)
        self.w.call("region.detach", region=self.region.id)


@pytest.mark.plain
def test_nothing_is_allocated_over_thousands_of_mixed_jobs(daemon, w):
    """Neither on the device nor pinned on the host, from the daemon's start on."""
    before = allocations(daemon)
    assert min(before.values()) > 0
    mixed, waiting = Mixed(w, 1), []
    for _ in range(N_MIXED):
        waiting.append(mixed.send())
        if len(waiting) == 32:
            for ident, check in waiting:
                check(lambda ident=ident: w.reply(ident))
            waiting = []
    for ident, check in waiting:
        check(lambda ident=ident: w.reply(ident))
    assert allocations(daemon) == before
    mixed.close()


def big_arrays(n_bytes, seed=3):
    """Two sources of float32, together with their result n_bytes large."""
    rng = np.random.default_rng(seed)
    n = n_bytes // 12
    a = rng.random(n, dtype="f4")
    b = np.resize(rng.random(100_003, dtype="f4"), n)
    return a, b, np.sqrt(a * a + b)


def test_arrays_ten_times_the_pool(daemon, w):
    """From a file and a region into a region; and reductions of them."""
    before = allocations(daemon)
    a, b, want = big_arrays(10 * POOL)
    region = wire.Region(w, 2 * a.nbytes + 4096)
    region.array("f4", a.shape)[:] = b
    fd = write_file(a)
    out = -(-a.nbytes // 4096) * 4096
    reply = w.call("job.run", fds=[fd], outputs=[
        {"expr": "sqrt(a * a + b)", "to": described(want, region.at(out))},
        {"expr": "sum(a)"}, {"expr": "min(b)"}, {"expr": "count_nonzero(a > b)"}],
        args={"a": described(a, file_at(0)), "b": described(b, region.at())})
    assert reply["engine"] == "cuda:0" and reply["tiles"] > 10
    assert np.array_equal(region.array("f4", want.shape, out), want)
    total, least, n = (wire.result_array(o)[()] for o in reply["outputs"][1:])
    assert abs(total - a.astype("f8").sum()) <= np.spacing(total)
    assert least == b.min() and n == np.count_nonzero(a > b)
    assert allocations(daemon) == before
    os.close(fd)
    w.call("region.detach", region=region.id)


@pytest.mark.plain
def test_ten_clients_fifty_times_the_pool(daemon):
    """At once; every one gets its own results, and nothing is allocated for them."""
    before, counts = allocations(daemon), daemon.quiet_counts()
    each = 50 * POOL // 10 // (4 if conftest.IS_SANITIZED else 1)
    failures = []

    def client(i):
        try:
            a, b, want = big_arrays(each, seed=i)
            with daemon.connect(timeout=120) as w:
                region = wire.Region(w, a.nbytes)
                fds = [write_file(a), write_file(b)]
                reply = w.call("job.run", fds=fds, outputs=[
                    {"expr": "sqrt(a * a + b)", "to": described(want, region.at())},
                    {"expr": "max(a)"}],
                    args={"a": described(a, file_at(0)), "b": described(b, file_at(1))})
                assert reply["engine"] == "cuda:0"
                assert np.array_equal(region.array("f4", want.shape), want), "the array"
                assert wire.result_array(reply["outputs"][1])[()] == a.max(), "the maximum"
                for fd in fds:
                    os.close(fd)
        except BaseException as error:  # told in the main thread
            failures.append((i, error))

    threads = [threading.Thread(target=client, args=(i,)) for i in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert allocations(daemon) == before
    daemon.wait_for_counts(counts)


@pytest.mark.values
@pytest.mark.parametrize("args", [["--device-depth", "3"], ["--chunk-bytes", "4M"],
                                  ["--register-bytes", "0"]])
def test_the_same_bits_in_pools_of_any_shape(daemon, w, start, args):
    a, b, _ = big_arrays(4 * POOL)
    outputs = [{"expr": "sum(a - b)"}, {"expr": "mean(a)"}, {"expr": "max(a * b)"}]

    def bits(connection):
        fds = [write_file(a), write_file(b)]
        reply = connection.call("job.run", fds=fds, outputs=outputs, args={
            "a": described(a, file_at(0)), "b": described(b, file_at(1))})
        for fd in fds:
            os.close(fd)
        return [o["data"] for o in reply["outputs"]]

    with start(args=args, pool="32M", threads=5).connect() as other:
        assert bits(other) == bits(w)


@needs_double
@pytest.mark.parametrize(("machine", "link"), [("h100", 55e9), ("small", 12e9)])
def test_a_modelled_machine_is_what_the_worker_measures(start, machine, link):
    """What predictions stand on (tests/gpu/predict.sh): the worker sees the machine's rates, and small
    results are right there, too."""
    daemon = start(env=double(machine=machine))
    engine = daemon.engine_info()
    for way in ("to_device", "from_device"):
        assert 0.95 * link < engine["rates"][way] < 1.05 * link, engine
    with daemon.connect() as connection:
        a = np.arange(1000, dtype="f4")
        assert np.array_equal(connection.compute("a * a + 1", a=a), a * a + 1)


def test_a_region_used_again_may_be_registered(daemon, w):
    """The budget's cache: the results are the same, what is registered is told apart and given back
    when the region goes."""
    before = allocations(daemon)
    a = np.random.default_rng(5).random(2 * MIB, dtype="f4")
    region = wire.Region(w, 2 * a.nbytes)
    region.array("f4", a.shape)[:] = a
    out = region.array("f4", a.shape, a.nbytes)
    for i in range(6):
        out[:] = 0
        w.call("job.run", args={"a": described(a, region.at())}, outputs=[
            {"expr": f"a + {i}", "to": described(a, region.at(a.nbytes))}])
        assert np.array_equal(out, a + np.float32(i))
    engine = daemon.engine_info()
    assert 0 <= engine["registered_bytes"] <= 2 * a.nbytes, engine
    del out
    w.call("region.detach", region=region.id)
    w.compute("a + 1", a=np.arange(3))
    assert daemon.engine_info()["registered_bytes"] == 0
    assert allocations(daemon) == before


# -- two engines --------------------------------------------------------------------------------

def run_on(w, engine, texts, arguments):
    outputs = [{"expr": text} for text in texts]
    reply = w.call("job.run", outputs=outputs, engine=engine,
                   args={k: wire.argument(v) for k, v in arguments.items()})
    assert reply["engine"].startswith(engine), reply["engine"]
    return [wire.result_array(o) for o in reply["outputs"]]


@pytest.mark.parametrize("seed", range(5000, 5030))
def test_exact_trees_have_the_same_bits_on_both_engines(both, seed):
    with both.connect() as w:
        trees = Trees(seed, w.call("server.ops"))
        texts = [trees.tree(depth).text for depth in (3, 4, 5)]
        used = {k: v for k, v in trees.arguments.items() if any(k in text for text in texts)}
        for cpu, cuda in zip(run_on(w, "cpu", texts, used), run_on(w, "cuda", texts, used)):
            assert_same(cuda, cpu)


def test_the_reply_names_the_engine_and_why(both):
    with both.connect() as w:
        for engine, name in (("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:0", "cuda:0")):
            reply = w.call("job.run", outputs=[{"expr": "a + 1"}], engine=engine,
                           args={"a": wire.argument(np.arange(3))})
            assert reply["engine"] == name and reply["engine_why"], reply
        reply = w.call("job.run", outputs=[{"expr": "a + 1"}],
                       args={"a": wire.argument(np.arange(3))})
        assert reply["engine"] in ("cpu", "cuda:0")
        assert "cpu" in reply["engine_why"] and "cuda:0" in reply["engine_why"], reply


@pytest.mark.parametrize("engine", ["cuda:1", "cuda:15"])
def test_a_device_that_is_not_there_is_refused_with_what_there_is(both, engine):
    with both.connect() as w, pytest.raises(Error) as caught:
        w.call("job.run", outputs=[{"expr": "a + 1"}], engine=engine,
               args={"a": wire.argument(np.arange(3))})
    assert caught.value.code == "no-engine", caught.value.fields
    assert engine in str(caught.value.fields) and "cuda:0" in str(caught.value.fields)


def test_the_plan_has_every_engine_and_one_is_chosen(both):
    a = np.zeros(1000)
    with both.connect() as w:
        plan = w.call("job.plan", outputs=[{"expr": "sqrt(a)"}], args={"a": wire.argument(a)})
        engines = {e["engine"]: e for e in plan["engines"]}
        assert set(engines) == {"cpu", "cuda:0"}, plan
        assert [e for e in engines.values() if e["chosen"]] == [engines[plan["engine"]]]
        assert all(e["seconds"] > 0 and e["bound"] for e in engines.values()), engines
        for name in engines:
            plan = w.call("job.plan", outputs=[{"expr": "sqrt(a)"}], engine=name,
                          args={"a": wire.argument(a)})
            assert plan["engine"] == name


def test_explain_prints_the_estimates_and_runs_nothing(both, folder):
    np.save(folder / "a.npy", np.zeros(1_000_000))
    text = both.ctl("run", "--explain", "sqrt(a)", f"a={folder}/a.npy", "-o",
                    folder / "r.npy").stdout
    assert "cpu" in text and "cuda:0" in text, text
    assert not (folder / "r.npy").exists()


def test_info_shows_memory_that_adds_up(both):
    engine = both.engine_info()
    memory = engine["memory"]
    assert memory["total"] == memory["free"] + memory["reserved"] + memory["used_by_others"] \
        + memory["process"], memory
    assert memory["process"] == memory["context"] + memory["modules"] + memory["pool"] \
        + memory["other"], memory
    assert memory["pool"] >= POOL
    text = both.ctl("info").stdout
    assert "cuda:0" in text and engine["device"] in text, text
    told = json.loads(both.ctl("info", "--json").stdout)
    assert any(e["name"] == "cuda:0" for e in told["engines"])


@needs_double
def test_one_worker_for_each_device(start):
    daemon = start(env=double(devices=3), args=["--devices", "0,2"])
    daemon.wait_for_state("ready", "cuda:0")
    daemon.wait_for_state("ready", "cuda:2")
    assert {e["name"] for e in daemon.info()["engines"] if e["state"] == "ready"} >= \
        {"cuda:0", "cuda:2"}
    with daemon.connect() as w:
        for name in ("cuda:0", "cuda:2"):
            reply = w.call("job.run", outputs=[{"expr": "a + 1"}], engine=name,
                           args={"a": wire.argument(np.arange(3))})
            assert reply["engine"] == name
        with pytest.raises(Error, match="no-engine"):
            w.call("job.run", outputs=[{"expr": "a + 1"}], engine="cuda:1",
                   args={"a": wire.argument(np.arange(3))})


def test_functions_are_near_on_both_engines(both):
    """Those that are not exact: each is within 4 ulp of the truth, so within 8 of the other's."""
    x = np.random.default_rng(8).uniform(0.1, 30, 5000)
    names = "exp log sin cos tanh erf lgamma cbrt expit arctan".split()
    with both.connect() as w:
        for dtype in ("f4", "f8"):
            arguments = {"x": x[:2000].astype(dtype)}
            texts = [f"{name}(x)" for name in names]
            for text, cpu, cuda in zip(texts, *[run_on(w, engine, texts, arguments)
                                                for engine in ("cpu", "cuda")]):
                slack = 8 * np.spacing(np.abs(cpu))
                assert (np.abs(cuda - cpu) <= slack).all(), text


def test_jobs_for_both_engines_at_once(both):
    a, b, want = big_arrays(2 * POOL)
    counts = both.quiet_counts()
    with both.connect() as w:
        region = wire.Region(w, 8 * a.nbytes)
        step = -(-a.nbytes // 4096) * 4096
        region.array("f4", a.shape)[:] = a
        region.array("f4", a.shape, step)[:] = b
        args = {"a": described(a, region.at()), "b": described(b, region.at(step))}
        jobs = []
        for i, engine in zip(range(2, 6), itertools.cycle(["cpu", "cuda"])):
            jobs.append((engine, i * step, w.send("job.run", engine=engine, args=args, outputs=[
                {"expr": "sqrt(a * a + b)", "to": described(want, region.at(i * step))}])))
        for engine, at, ident in jobs:
            assert w.reply(ident)["engine"].startswith(engine)
            assert np.array_equal(region.array("f4", want.shape, at), want), engine
        w.call("region.detach", region=region.id)
    both.wait_for_counts(counts)


def test_errors_are_those_of_the_cpu(both):
    cases = [("a ** b", {"a": np.arange(3), "b": np.array([1, -1, 2])}),
             ("a + b", {"a": np.arange(3), "b": np.arange(4)}),
             ("sqr(a)", {"a": np.arange(3.0)})]
    with both.connect() as w:
        for text, arguments in cases:
            codes = set()
            for engine in ("cpu", "cuda"):
                with pytest.raises(Error) as caught:
                    run_on(w, engine, [text], arguments)
                codes.add((caught.value.code, caught.value.argument))
            assert len(codes) == 1, (text, codes)
        assert isinstance(ask(w, ["a // 0"], {"a": np.arange(3)})[0], np.ndarray)
