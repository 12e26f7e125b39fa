"""Reductions along axes: one job gives the same bytes whatever the pool, the threads, the load and
the place of its source; jobs whose results do not fit the pool together, and those that cannot be
done; cancelling, failing clients and workers that die in the middle."""

import contextlib
import itertools
import json
import os
import signal
import time

import h5py
import numpy as np
import pytest

import conftest
import wire
from test_jobs import chunked
from test_provider import Ring
from wire import Error, described, file_at

# Outputs of one request; together they have passes over several shapes and of several levels.
FLAT = [["mean(a, axis=0)", "std(a, axis=0)", "max(a, axis=0)"],
        ["sum(a, axis=1)", "argmin(a, axis=1)", "count_nonzero(a > 0, axis=-1)"],
        ["(a - mean(a, axis=0)) / std(a, axis=0)"],
        ["sum(a)", "var(a)", "argmax(a)"],
        ["mean((a - max(a, axis=1, keepdims=True))**2, axis=0)", "sum(a, axis=0) - min(a)"]]
DEEP = [["sum(a, axis=(0, 2))", "prod(a, axis=(0, 2))"], ["var(a, axis=1, keepdims=True)"],
        ["a - mean(a, axis=(1, 2), keepdims=True)"], ["argmax(a, axis=0)", "min(a, axis=0)"]]


def normal(shape, seed=7):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def numpy_result(text, a):
    names = {name: getattr(np, name) for name in
             ("mean", "std", "max", "min", "sum", "prod", "var", "argmin", "argmax",
              "count_nonzero")}
    return eval(text, {"__builtins__": {}}, {**names, "a": a.astype("f8")})


class Source:
    """An array in one kind of place, described for a request, with its descriptors."""

    def __init__(self, w, a, kind, folder):
        self.fds, self.ring, self.region, self.w = [], None, None, w
        if kind == "inline":
            self.described = wire.argument(a)
        elif kind == "region":
            self.region = wire.Region(w, a.nbytes + 64)
            self.region.array(a.dtype, a.shape, 64)[...] = a
            self.described = described(a, self.region.at(64))
        elif kind == "provider":
            self.ring = Ring(a, n_slots=3)
            self.fds, self.described = self.ring.fds(), described(a, self.ring.at())
        elif kind == "chunks":
            file, table, at = chunked(folder, a, tuple(-(-n // 3) for n in a.shape))
            self.fds, self.described = [file, table], described(a, at)
        else:
            a.tofile(folder / "a.raw")
            self.fds = [os.open(folder / "a.raw", os.O_RDONLY)]
            self.described = described(a, file_at(0))

    def close(self):
        if self.ring:
            self.ring.close()
        else:
            for fd in self.fds:
                os.close(fd)
        if self.region:
            self.w.call("region.detach", region=self.region.id)


class Outputs:
    """Room for a request's outputs in a region, as job.plan says they will be."""

    def __init__(self, w, texts, source):
        self.plan = w.call("job.plan", fds=source.fds, args={"a": source.described},
                           outputs=[{"expr": t} for t in texts])
        self.w, self.arrays, self.sent, offset = w, [], [], 0
        shapes = [(np.dtype(o["dtype"]), o["shape"]) for o in self.plan["outputs"]]
        sizes = [-(-max(d.itemsize * int(np.prod(s)), 1) // 64) * 64 for d, s in shapes]
        self.region = wire.Region(w, sum(sizes))
        for text, (dtype, shape), size in zip(texts, shapes, sizes):
            self.arrays.append(self.region.array(dtype, shape, offset))
            self.sent.append({"expr": text, "to": described(self.arrays[-1],
                                                            self.region.at(offset))})
            offset += size

    def close(self):
        self.arrays = None
        self.w.call("region.detach", region=self.region.id)


def start_job(w, texts, source, **more):
    outputs = Outputs(w, texts, source)
    return w.send("job.run", fds=source.fds, args={"a": source.described}, outputs=outputs.sent,
                  **more), outputs


def run(w, texts, source):
    """The outputs' arrays, and the reply."""
    ident, outputs = start_job(w, texts, source)
    reply = w.reply(ident)
    got = [array.copy() for array in outputs.arrays]
    outputs.close()
    return got, reply


@contextlib.contextmanager
def load(daemon):
    """Jobs of another connection that are there all the time."""
    with daemon.connect() as other:
        region = wire.Region(other, 1 << 20)
        b = region.array("f4", (1 << 18,))
        b[:] = 1.5
        idents = [other.send("job.run", args={"b": described(b, region.at())},
                             outputs=[{"expr": "sum(exp(sin(b)))"}]) for _ in range(12)]
        small = [other.send("job.run", args={"b": wire.argument(np.arange(300.0).reshape(3, 100))},
                            outputs=[{"expr": "sum(b, axis=0)"}]) for _ in range(30)]
        yield
        for ident in idents + small:
            other.reply(ident)


def all_results(daemon, w, a, jobs, kind, folder, is_loaded=False):
    source = Source(w, a, kind, folder)
    with load(daemon) if is_loaded else contextlib.nullcontext():
        got = [array for texts in jobs for array in run(w, texts, source)[0]]
    source.close()
    return got


def check_values(got, jobs, a):
    for text, array in zip([t for texts in jobs for t in texts], got, strict=True):
        want = np.asarray(numpy_result(text, a))
        assert array.shape == want.shape, text
        if array.dtype.kind == "f" and not text.startswith("prod"):
            assert np.allclose(array, want, rtol=1e-5, atol=1e-5), text
        elif array.dtype.kind == "f":
            assert np.allclose(array, want, rtol=1e-4), text
        else:
            assert np.array_equal(array, want), text


def check_bytes(got, wants, jobs, what):
    for text, array, want in zip([t for texts in jobs for t in texts], got, wants, strict=True):
        assert array.tobytes() == want.tobytes(), f"{what}: {text}"


# The pool, threads, and where the source is. Grids of chunks are a layout of their own. Every fifth
# of the CPU's, from the second on, has all places, every fifth of the device's all pools.
CPU = [("64M", 2, "region"), ("64M", 1, "file"), ("64M", 3, "provider"), ("64M", 2, "chunks"),
       ("16M", 4, "region"), ("16M", 2, "file"), ("16M", 2, "provider"), ("16M", 1, "chunks"),
       ("8M", 1, "region"), ("8M", 3, "file"), ("8M", 1, "provider"), ("8M", 4, "chunks"),
       ("3M", 2, "region"), ("3M", 4, "file"), ("3M", 2, "provider"), ("3M", 2, "chunks"),
       ("1M", 1, "region"), ("2M", 2, "region"), ("2M", 2, "file"), ("2M", 1, "provider")]
CPU = conftest.some(CPU, 5, first=1)
CUDA = [("64M", 2, "region"), ("64M", 1, "file"), ("64M", 2, "provider"), ("64M", 2, "chunks"),
        ("16M", 2, "region"), ("16M", 3, "file"), ("16M", 1, "provider"), ("16M", 1, "chunks"),
        ("8M", 1, "region"), ("8M", 2, "file"), ("8M", 2, "provider"), ("8M", 2, "chunks")]
CUDA = conftest.some(CUDA, 5)


def check_configurations(start, folder, engine, a, jobs, configurations):
    wants, daemons = {}, {}
    for i, (pool, threads, kind) in enumerate(configurations):
        if (pool, threads) not in daemons:
            daemons[pool, threads] = start(pool=pool, threads=threads, engine=engine)
        daemon = daemons[pool, threads]
        what = f"pool {pool}, {threads} threads, {kind}"
        with daemon.connect() as w:
            before = w.call("server.info")["counts"]
            got = all_results(daemon, w, a, jobs, kind, folder, is_loaded=i % 2 == 1)
            after = w.call("server.info")["counts"]
            assert [after[k] for k in ("slots_lent", "carries")] == [0, 0], (before, after)
        layout = "chunks" if kind == "chunks" else "C"
        if layout not in wants:
            wants[layout] = got
            check_values(got, jobs, a)
        check_bytes(got, wants[layout], jobs, what)


@pytest.mark.values
@pytest.mark.parametrize("engine", ["cpu", "cuda"])
@pytest.mark.parametrize("shape, jobs", [((700, 1503), FLAT), ((37, 90, 311), DEEP)])
def test_one_job_in_twenty_configurations(start, folder, engine, shape, jobs):
    if engine == "cpu" and conftest.ENGINE == "cuda":
        pytest.skip("about the CPU engine")
    check_configurations(start, folder, engine, normal(shape), jobs, CPU if engine == "cpu" else CUDA)


# So many elements that several grains of the first axis go into one node.
LARGE = [["mean(a, axis=0)", "max(a, axis=0)", "sum(a * a - 1, axis=0) - min(a)"]]


@pytest.mark.parametrize("shape, places", [
    ((2061, 8200), [("64M", 2, "file"), ("16M", 3, "region"), ("2M", 1, "provider")]),
    ((129, 2, 65600), [("64M", 2, "region"), ("2M", 2, "file")])])
def test_a_large_job_in_several_configurations(start, folder, shape, places):
    if conftest.ENGINE == "cuda":
        pytest.skip("about the CPU engine")
    check_configurations(start, folder, "cpu", normal(shape), LARGE, places)


@pytest.mark.parametrize("engine", ["cpu", "cuda"])
def test_an_array_in_the_message_is_reduced_to_the_same_bits(start, folder, engine):
    a = normal((90, 170))
    daemon = start(engine=engine)
    with daemon.connect() as w:
        inline, region, provider = (all_results(daemon, w, a, FLAT, kind, folder)
                                    for kind in ("inline", "region", "provider"))
        check_values(inline, FLAT, a)
        check_bytes(region, inline, FLAT, "region")
        check_bytes(provider, inline, FLAT, "provider")


# Rounds ----------------------------------------------------------------------------------------

WIDE = (24, 150_001)  # 1.2 MB of float64 for each result of axis 0


@pytest.mark.parametrize("kind", ["region", "file", "provider"])
def test_results_that_do_not_fit_are_done_in_rounds(start, folder, kind):
    texts = ["(a - mean(a, axis=0)) / std(a, axis=0)"]
    a = normal(WIDE)
    results = {}
    for pool in ("1M", "2M", "64M"):
        daemon = start(pool=pool if kind == "region" else pool.replace("1M", "2M"))
        with daemon.connect() as w:
            source = Source(w, a, kind, folder)
            ident, outputs = start_job(w, texts, source, progress_ms=50)
            reply = w.reply(ident)
            results[pool] = outputs.arrays[0].copy()
            assert reply["tiles"] == outputs.plan["tiles"]
            assert reply["read_bytes"] == outputs.plan["read_bytes"] >= 2 * a.nbytes
            assert reply["write_bytes"] == a.nbytes
            assert (outputs.plan["rounds"] > 1) == (pool != "64M"), outputs.plan
            told = [p["tiles_done"] for name, p in w.notifications if name == "job.progress"]
            assert told == sorted(told) and all(n <= reply["tiles"] for n in told)
            outputs.close()
            source.close()
            assert w.call("server.info")["counts"]["carries"] == 0
    assert np.allclose(results["64M"], numpy_result(texts[0], a), rtol=1e-4, atol=1e-4)
    assert results["1M"].tobytes() == results["64M"].tobytes() == results["2M"].tobytes()


def test_results_without_end_that_nobody_reads_hold_nobody_up(start):
    """Arrays without any element: the sums of the columns would be 2**48, the output is empty."""
    daemon = start()
    with daemon.connect() as w, daemon.connect() as other:
        empty = wire.argument(np.zeros((0, 1 << 48), "f4"))
        ident = w.send("job.run", args={"a": empty}, outputs=[{"expr": "a * sum(a, axis=0)"}])
        assert other.compute("a + 1", a=np.arange(3)).tolist() == [1, 2, 3]
        assert w.reply(ident)["outputs"][0]["shape"] == [0, 1 << 48]


def test_rounds_through_providers_both_ways(start):
    a = normal(WIDE)
    r = np.zeros(WIDE, "f4")
    daemon = start(pool="2M")
    with daemon.connect() as w:
        source, sink = Ring(a), Ring(r)
        sink.serve = sink.drain
        w.run("a - mean(a, axis=0)", fds=source.fds() + sink.fds(), to=described(r, sink.at(3)),
              a=described(a, source.at(0)))
        source.close()
        sink.close()
    assert np.allclose(r, a - a.mean(axis=0, dtype="f8"), atol=1e-5)


@pytest.mark.parametrize("engine", ["cpu", "cuda"])
@pytest.mark.parametrize("columns", [1, 2])
def test_an_output_with_large_results_goes_in_rounds_beside_one_of_all_elements(start, engine,
                                                                                columns):
    """The sum of all elements cannot be done in parts; the rows' means, 5 MB of them, have to be."""
    texts = ["logsumexp(a)", "a - mean(a, axis=1, keepdims=True)"]
    a = normal((600_000, columns))
    results = []
    for pool in ("2M" if engine == "cpu" else "8M", "64M"):
        daemon = start(pool=pool, engine=engine)
        with daemon.connect() as w:
            for order in (1, -1):
                source = Source(w, a, "region", None)
                plan = w.call("job.plan", args={"a": source.described},
                              outputs=[{"expr": text} for text in texts])
                assert (plan["rounds"] > 1) == (pool != "64M"), plan
                results.append(run(w, texts[::order], source)[0][::order])
                source.close()
    wide = a.astype("f8")
    assert np.allclose(results[0][0], np.log(np.exp(wide).sum()), rtol=1e-6)
    assert np.allclose(results[0][1], wide - wide.mean(axis=1, keepdims=True), atol=1e-6)
    for other in results[1:]:
        assert [x.tobytes() for x in other] == [x.tobytes() for x in results[0]]


@pytest.mark.parametrize("engine", ["cpu", "cuda"])
def test_what_is_stored_over_the_array_waits_for_outputs_with_large_results(start, engine):
    """In whichever order they are: the rows' differences are of a pass behind the sum's."""
    a = normal((300_000, 2))
    exprs = {"sum": "logsumexp(a)", "twice": "a * 2",
             "differences": "a - mean(a, axis=1, keepdims=True)"}
    wide = a.astype("f8")
    with start(pool="64M", engine=engine).connect() as w:
        for names in itertools.permutations(exprs):
            region = wire.Region(w, 2 * a.nbytes + 64)
            places = {"twice": (a.shape, 0), "differences": (a.shape, a.nbytes),
                      "sum": ((), 2 * a.nbytes)}
            got = {name: region.array("f4", *place) for name, place in places.items()}
            sent = {name: described(got[name], region.at(offset))
                    for name, (_, offset) in places.items()}
            got["twice"][:] = a
            w.call("job.run", args={"a": sent["twice"]},
                   outputs=[{"expr": exprs[name], "to": sent[name]} for name in names])
            assert np.array_equal(got["twice"], 2 * a), names
            want = wide - wide.mean(axis=1, keepdims=True)
            assert np.allclose(got["differences"], want, atol=1e-6), names
            assert np.allclose(got["sum"], np.log(np.exp(wide).sum()), rtol=1e-6), names
            del got
            w.call("region.detach", region=region.id)


@pytest.mark.parametrize("engine", ["cpu", "cuda"])
def test_a_median_of_rows_and_plain_reductions_are_one_job(start, engine):
    daemon = start(pool="8M", engine=engine)
    a = normal((40, 300))
    texts = ["max(a, axis=0)", "median(a, axis=1)", "min(a)", "sum(a)"]
    with daemon.connect() as w:
        source = Source(w, a.astype("f8"), "region", None)
        got = run(w, texts, source)[0]
        source.close()
    wide = a.astype("f8")
    for array, want in zip(got, (wide.max(axis=0), np.median(wide, axis=1), wide.min(), wide.sum())):
        assert np.allclose(array, want, rtol=1e-12)


@pytest.mark.parametrize("engine", ["cpu", "cuda"])
def test_what_no_rounds_can_do_is_refused_with_numbers(start, engine):
    """The largest of the sums needs all of them at once."""
    pool = "1M" if engine == "cpu" else "8M"
    a = normal((3, 1_200_000))
    daemon = start(pool=pool, engine=engine)
    with daemon.connect() as w:
        source = Source(w, a, "region", None)
        with pytest.raises(Error) as caught:
            w.call("job.run", args={"a": source.described},
                   outputs=[{"expr": "sum(a / max(sum(a, axis=0)), axis=1)"}])
        error = caught.value
        assert error.code == "too-large-for-pool", error.fields
        needed, there = int(error.expected.split()[0]), int(error.found.split()[0])
        assert needed >= 1_200_000 * 8 > there > 0, error.fields
        assert str(needed) in error.message and str(there) in error.message
        source.close()


# Beside others -------------------------------------------------------------------------------------

def test_a_job_that_takes_all_it_can_leaves_room_for_others(start):
    """Its client never answers. A second one like it waits; what is small needs nothing of theirs."""
    daemon = start(pool="64M")
    a = np.zeros((2, 3_500_000), "f4")
    b = normal((2000, 1503))
    with daemon.connect() as greedy, daemon.connect() as w:
        rings = [Ring(a, serve=lambda start, count, block: None) for _ in range(2)]
        regions = [wire.Region(greedy, a.nbytes) for _ in rings]
        idents = []
        for ring, region in zip(rings, regions):
            idents.append(greedy.send("job.run", fds=ring.fds(),
                                      args={"a": described(a, ring.at())},
                                      outputs=[{"expr": "a - mean(a, axis=0)",
                                                "to": described(a, region.at())}]))
            while len(w.call("job.list")) < len(idents):
                pass
            if len(idents) == 1:
                source = Source(w, b, "region", None)
                got, _ = run(w, FLAT[0], source)
                check_values(got, FLAT[:1], b)
                source.close()
        assert w.compute("sum(b, axis=0)", b=b[:3, :4]).shape == (4,)
        info = w.call("server.info")
        assert info["counts"]["carries"] == 1 and info["counts"]["jobs_queued"] == 1
        assert info["pool"]["carry_used_bytes"] > 12 << 20
        for job in w.call("job.list"):
            w.call("job.cancel", job=job["job"])
        for ident in idents:
            with pytest.raises(Error) as caught:
                greedy.reply(ident)
            assert caught.value.code == "cancelled"
        for ring in rings:
            ring.close()


# What goes wrong in the middle ---------------------------------------------------------------------

def wait_for_share(w, share):
    """Until the job that is running has done this share of its tiles; its id."""
    while not (running := [j for j in w.call("job.list") if j["state"] == "running"
                           and j["tiles_done"] >= share * j["tiles"] > 0]):
        assert any(j["state"] in ("queued", "running") for j in w.call("job.list"))
        time.sleep(0.01)
    return running[0]["job"]


def test_a_reduction_is_cancelled_and_leaves_nothing(start):
    a = normal((1500, 1503))
    daemon = start(pool="8M", worker=conftest.FAULTY_WORKER)
    before = daemon.quiet_counts()
    with daemon.connect() as w:
        source = Source(w, a, "region", None)
        ident, outputs = start_job(w, FLAT[0], source, label="fault:slow", progress_ms=50)
        w.call("job.cancel", job=wait_for_share(w, 0.1))
        with pytest.raises(Error) as caught:
            w.reply(ident)
        assert caught.value.code == "cancelled"
        outputs.close()
        source.close()
    daemon.wait_for_counts(before)


@pytest.mark.whole
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_dies_in_a_reduction_is_replaced(start, folder, number):
    """With nodes in the tree and results in the carry; the job begins anew and gives the same."""
    a = normal((1500, 1503))
    texts = ["(a - mean(a, axis=0)) / std(a, axis=0)", "max(a, axis=0)"]
    daemon = start(pool="8M", worker=conftest.FAULTY_WORKER)
    with daemon.connect() as w:
        source = Source(w, a, "file", folder)
        wants, _ = run(w, texts, source)
        for share in (0.2, 0.7):
            ident, outputs = start_job(w, texts, source, label="fault:slow", progress_ms=50)
            wait_for_share(w, share)
            os.kill(daemon.worker_pid(), number)
            w.reply(ident)
            for got, want in zip(outputs.arrays, wants):
                assert got.tobytes() == want.tobytes()
            outputs.close()
        source.close()
    daemon.wait_for_restarts(2)


def test_a_poisonous_reduction_ends_alone(start):
    a = normal((700, 1503))
    daemon = start(pool="8M", worker=conftest.FAULTY_WORKER,
                   env={"ASAN_OPTIONS": "handle_segv=0:handle_abort=0"})
    with daemon.connect() as w, daemon.connect() as other:
        source, honest = Source(w, a, "region", None), Source(other, a, "region", None)
        idents = [start_job(other, FLAT[0], honest) for _ in range(3)]
        poison, poisoned = start_job(w, FLAT[0], source, label="fault:segv")
        with pytest.raises(Error) as caught:
            w.reply(poison)
        assert caught.value.code == "poisoned", caught.value.fields
        for ident, _ in idents:
            other.reply(ident)
        bits = {tuple(array.tobytes() for array in outputs.arrays) for _, outputs in idents}
        assert len(bits) == 1
        for _, outputs in idents:
            outputs.close()
        poisoned.close()
        honest.close()
        source.close()


def test_a_client_that_fails_in_a_reduction(start):
    a = normal((700, 1503))
    daemon = start(pool="4M")
    with daemon.connect() as w:
        ring = Ring(a)
        ring.serve = lambda start, count, block: 5 if start[0] > 350 else ring.fill(start, count,
                                                                                   block)
        with pytest.raises(Error) as caught:
            w.run("sum(mean(a, axis=0))", fds=ring.fds(), a=described(a, ring.at()))
        assert (caught.value.code, caught.value.argument) == ("provider-failed", "a")
        assert w.compute("sum(b, axis=0)", b=np.arange(6.0).reshape(2, 3)).tolist() == [3, 5, 7]
        ring.close()


# Blocks of a client's chunks -------------------------------------------------------------------------

@pytest.mark.parametrize("shape, chunk, text", [
    ((120, 200, 300), (50, 100, 100), "mean(a, axis=0)"),
    ((120, 200, 300), (50, 100, 100), "sum(a, axis=(1, 2))"),
    ((1000, 1000), (100, 1000), "max(a, axis=0)"),
    ((300, 2000), (300, 7), "sum(a, axis=1)")])
def test_a_clients_chunks_are_asked_for_one_after_the_other(daemon, w, shape, chunk, text):
    """So that one that has to be decompressed is that once."""
    a = normal(shape)
    ring = Ring(a, n_slots=1)
    visited = []

    def serve(start, count, block):
        first = tuple(s // c for s, c in zip(start, chunk))
        last = tuple((s + n - 1) // c for s, n, c in zip(start, count, chunk))
        for index in np.ndindex(tuple(b - a + 1 for a, b in zip(first, last))):
            visited.append(tuple(i + j for i, j in zip(index, first)))
        return ring.fill(start, count, block)

    ring.serve = serve
    source = {**described(a, {**ring.at(), "chunks": {"shape": list(chunk)}})}
    outputs = [{"expr": text}]
    plan = w.call("job.plan", args={"a": {k: source[k] for k in ("dtype", "shape")}},
                  outputs=outputs)["outputs"][0]
    region = wire.Region(w, 1 << 20)
    outputs[0]["to"] = {"dtype": plan["dtype"], "shape": plan["shape"], "at": region.at()}
    w.call("job.run", fds=ring.fds(), args={"a": source}, outputs=outputs)
    ring.close()
    got = region.array(plan["dtype"], plan["shape"])
    assert np.allclose(got, numpy_result(text, a), rtol=1e-5, atol=1e-4)
    del got
    w.call("region.detach", region=region.id)
    times = [here for here, before in zip(visited, [None] + visited) if here != before]
    assert len(times) == len(set(times)), f"{len(times)} times {len(set(times))} chunks"


# What the plan says --------------------------------------------------------------------------------

def test_the_plan_tells_passes(w):
    a = {"dtype": "<f4", "shape": [512, 8192]}
    plan = w.call("job.plan", args={"a": a},
                  outputs=[{"name": "r", "expr": "(a - mean(a, axis=0)) / std(a, axis=0)"}])
    passes = [(p["reads"], p["writes"], p["reduces"]) for p in plan["passes"]]
    assert passes == [(["a"], [], [0]), (["a"], ["r"], [])], plan["program"]
    n_bytes = 512 * 8192 * 4
    assert [(p["read_bytes"], p["write_bytes"]) for p in plan["passes"]] == [(n_bytes, 0),
                                                                            (n_bytes, n_bytes)]
    assert (plan["read_bytes"], plan["write_bytes"]) == (2 * n_bytes, n_bytes)
    assert plan["rounds"] == 1 and plan["carry_bytes"] >= 2 * 8192 * 8


def test_explain_shows_two_reads_and_one_write(daemon, folder):
    np.save(folder / "a.npy", normal((512, 8192)))
    words = ("run", "--explain", "r = (a - mean(a, axis=0)) / std(a, axis=0)",
             f"a={folder}/a.npy", "-o", f"{folder}/r.npy")
    lines = daemon.ctl(*words).stdout.splitlines()
    told = [line.strip() for line in lines if line.startswith("         ")]
    assert told == ["reads a; reduces axis 0", "reads a; writes r"], lines
    assert "reads    32.0 MiB" in lines and "writes   16.0 MiB" in lines
    assert not (folder / "r.npy").exists()

    plan = json.loads(daemon.ctl(*words, "--json").stdout)
    assert [(p["reads"], p["writes"], p["reduces"]) for p in plan["passes"]] == [(1, 0, [0]),
                                                                                (1, 1, [])]
    assert plan["rounds"] == 1


@pytest.mark.parametrize("text", ["mean(a, axis=0)", "a - mean(a, axis=2, keepdims=True)",
                                  "median(a, axis=0)"])
@pytest.mark.parametrize("storage", [{}, {"chunks": (32, 8, 8), "compression": "gzip"},
                                     {"chunks": (5, 96, 3), "compression": "gzip"}])
def test_explain_shows_the_plan_that_the_job_has(daemon, folder, storage, text):
    with h5py.File(folder / "a.h5", "w") as f:
        f.create_dataset("a", data=normal((64, 96, 90)), **storage)
    words = ("run", "--json", text, f"a={folder}/a.h5:/a", "-o", f"{folder}/r.npy")
    plan = json.loads(daemon.ctl(*words, "--explain").stdout)
    done = json.loads(daemon.ctl(*words).stdout)
    (folder / "r.npy").unlink()
    told = [(part["tiles"], part["read_bytes"], part["write_bytes"]) for part in (plan, done)]
    assert told[0] == told[1]
