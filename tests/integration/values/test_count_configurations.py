"""Scans and counts: one job gives the same bytes whatever the pool, the threads, the load and the
place of its source; in place, in rounds and through clients' rings; cancelling, and workers that die
in the middle of a scan; what a pool is too small for."""

import os
import signal

import numpy as np
import pytest

import conftest
import wire
from test_provider import Ring
from test_reductions import (CPU, Source, all_results, check_bytes, normal, run, start_job,
                             wait_for_share)
from wire import Error, described

# Outputs of one request; together they have scans along both axes, counts of all sizes, tables.
JOBS = [["cumsum(a, axis=0, dtype=float64)", "cumsum(a, axis=1, dtype=float64)"],
        ["histogram(a, bins=3000, range=(-4, 4))[0]", "histogram(a, bins=10)[0]"],
        ["median(a)", "quantile(a, [0.1, 0.75], axis=0)"],
        ["median(a, axis=1)", "cumprod(a / 2 + 1, axis=0, dtype=float32)"]]


def numpy_results(a):
    """In the order of JOBS; None where the order of additions is our own."""
    def counts(bins, limits=None):
        return np.histogram(a, bins, limits)[0]

    return [np.cumsum(a, axis=0, dtype="f8"), np.cumsum(a, axis=1, dtype="f8"),
            counts(3000, (-4, 4)), counts(10), np.median(a), np.quantile(a, [0.1, 0.75], axis=0),
            np.median(a, axis=1), None]


def test_one_job_in_twenty_configurations(start, folder):
    if conftest.ENGINE == "cuda":
        pytest.skip("about the CPU engine")
    a = normal((403, 1203))
    wants, daemons = None, {}
    for i, (pool, threads, kind) in enumerate(CPU):
        if (pool, threads) not in daemons:
            daemons[pool, threads] = start(pool=pool, threads=threads, engine="cpu")
        daemon = daemons[pool, threads]
        with daemon.connect() as w:
            got = all_results(daemon, w, a, JOBS, kind, folder, is_loaded=i % 4 == 1)
            after = w.call("server.info")["counts"]
            assert [after[k] for k in ("slots_lent", "carries")] == [0, 0], after
        if wants is None:
            wants = got
            for text, array, want in zip(sum(JOBS, []), got, numpy_results(a), strict=True):
                assert want is None or np.array_equal(array, want), text
        check_bytes(got, wants, JOBS, f"pool {pool}, {threads} threads, {kind}")


def test_a_scan_goes_in_rounds_and_in_place(start):
    """The states of all columns take more than the pool has for them."""
    a = normal((24, 150_001))
    daemon = start(pool="1M", engine="cpu")
    with daemon.connect() as w:
        source = Source(w, a, "region", None)
        (got,), _ = run(w, ["cumsum(a, axis=0)"], source)
        outputs = [{"expr": "cumsum(a, axis=0)", "to": source.described}]
        plan = w.call("job.plan", args={"a": source.described}, outputs=outputs)
        assert plan["rounds"] > 1, plan
        assert [(p["scans"], p["reduces"]) for p in plan["passes"]] == [([0], [])]
        w.call("job.run", args={"a": source.described}, outputs=outputs)
        here = source.region.array(a.dtype, a.shape, 64)
        assert np.array_equal(here, got)
        assert np.array_equal(here, np.cumsum(a, axis=0, dtype="f8").astype("f4"))
        del here
        source.close()


def test_sums_of_no_elements_are_zero_in_every_round(start):
    """Other results of a round lie where they lay in the one before."""
    b, c = (normal((n, 150_001)).round() for n in (3, 2))
    daemon = start(pool="1M", engine="cpu")
    with daemon.connect() as w:
        arrays = {"a": np.zeros((0, b.shape[1]), b.dtype), "b": b, "c": c}
        sources = {name: Source(w, array, "region", None) for name, array in arrays.items()}
        region = wire.Region(w, b.shape[1] * b.itemsize)
        to = described(region.array(b.dtype, b.shape[1:]), region.at())
        request = {"args": {name: source.described for name, source in sources.items()},
                   "outputs": [{"expr": "sum(c * sum(b - sum(a, axis=0), axis=0), axis=0)",
                                "to": to}]}
        assert w.call("job.plan", **request)["rounds"] > 1
        w.call("job.run", **request)
        assert np.array_equal(region.array(b.dtype, b.shape[1:]), (c * b.sum(axis=0)).sum(axis=0))
        for source in sources.values():
            source.close()


def test_few_bins_beside_many_reductions_of_many_rows(start):
    """The engine keeps more for each cell of these than for bins."""
    names = "sum min max argmin argmax count_nonzero".split()
    arrays = {n: np.random.default_rng(i).integers(0, 3, (500, 1100)).astype("u1")
              for i, n in enumerate("abc")}
    texts = ["median(a > 0, axis=0)"]
    texts += [" + ".join(f"{f}({n}, axis=0)" for f in names) for n in arrays]
    wants = [np.median(arrays["a"] > 0, axis=0)]
    wants += [sum(getattr(np, f)(a, axis=0).astype("f8") for f in names) for a in arrays.values()]
    daemon = start(pool="512M", engine="cpu")
    with daemon.connect() as w:
        sources = {name: Source(w, array, "region", None) for name, array in arrays.items()}
        reply = w.call("job.run", args={name: s.described for name, s in sources.items()},
                       outputs=[{"expr": text} for text in texts])
        for output, want in zip(reply["outputs"], wants, strict=True):
            assert np.array_equal(wire.result_array(output), want)
        for source in sources.values():
            source.close()


@pytest.mark.parametrize("axis", [0, 1])
def test_a_scan_through_rings_both_ways(start, axis):
    """Few blocks, many threads: what is asked for is what the next tile needs."""
    a = normal((600, 5001))
    r = np.zeros(a.shape, "f8")
    daemon = start(pool="8M", threads=4)
    with daemon.connect() as w:
        for n_slots in (1, 2, 5):
            r[...] = 0
            source, sink = Ring(a, n_slots=n_slots), Ring(r, n_slots=n_slots)
            sink.serve = sink.drain
            w.run(f"cumsum(a, axis={axis}, dtype=float64)", fds=source.fds() + sink.fds(),
                  to=described(r, sink.at(3)), a=described(a, source.at(0)))
            source.close()
            sink.close()
            want = np.cumsum(a, axis=axis, dtype="f8")
            assert np.allclose(r, want, rtol=1e-12, atol=1e-9)
            assert conftest.ENGINE == "cuda" or np.array_equal(r, want)


def test_a_scan_is_cancelled_and_leaves_nothing(start):
    a = normal((3000, 1503))
    daemon = start(pool="8M", worker=conftest.FAULTY_WORKER)
    before = daemon.quiet_counts()
    with daemon.connect() as w:
        source = Source(w, a, "region", None)
        ident, outputs = start_job(w, ["cumsum(a, axis=0)"], source, label="fault:slow",
                                   progress_ms=50)
        w.call("job.cancel", job=wait_for_share(w, 0.1))
        with pytest.raises(Error) as caught:
            w.reply(ident)
        assert caught.value.code == "cancelled"
        outputs.close()
        source.close()
    daemon.wait_for_counts(before)


def test_a_worker_that_dies_in_scans_and_counts_is_replaced(start, folder):
    """With states and counts in the carry; the job begins anew and gives the same."""
    a = normal((1500, 1503))
    texts = ["cumsum(a, axis=0)", "median(a)", "histogram(a, bins=100)[0]"]
    daemon = start(pool="8M", worker=conftest.FAULTY_WORKER)
    with daemon.connect() as w:
        source = Source(w, a, "file", folder)
        wants, _ = run(w, texts, source)
        for share in (0.1, 0.6):
            ident, outputs = start_job(w, texts, source, label="fault:slow", progress_ms=50)
            wait_for_share(w, share)
            os.kill(daemon.worker_pid(), signal.SIGKILL)
            w.reply(ident)
            for got, want in zip(outputs.arrays, wants, strict=True):
                assert got.tobytes() == want.tobytes()
            outputs.close()
        source.close()
    daemon.wait_for_restarts(2)


def test_what_the_data_must_be_is_checked_when_it_was_read(start):
    """In large jobs and in small ones, and whatever is wrong leaves nothing behind."""
    daemon = start(pool="8M")
    before = daemon.quiet_counts()
    with daemon.connect() as w:
        for n in (10, 2_000_000):
            values = np.arange(n) % 7
            values[n // 2] = -1
            values[n // 3] = 7
            with pytest.raises(Error) as caught:
                source = Source(w, values, "region", None)
                w.call("job.run", args={"a": source.described},
                       outputs=[{"expr": "bincount(a, length=7)"}])
            error = caught.value
            assert error.code == "bad-argument", error.fields
            assert (error.expected, error.found.split()[0]) == ("0 to 6", "2"), error.fields
            source.close()
        assert w.compute("bincount(a, length=2)", a=np.array([1, 0, 1])).tolist() == [1, 2]
    daemon.wait_for_counts(before)


def test_more_quantiles_than_the_pool_holds_are_refused_with_what_helps(start):
    """And what is said helps: one at a time."""
    daemon = start(pool="1M", engine="cpu")
    with daemon.connect() as w:
        a = np.random.default_rng(7).normal(size=(9000, 20))
        source = Source(w, a, "region", None)
        with pytest.raises(Error) as caught:
            w.call("job.run", args={"a": source.described},
                   outputs=[{"expr": "quantile(a, [.1, .2, .3, .4, .5, .6, .7, .8], axis=0)"}])
        error = caught.value
        assert error.code == "too-large-for-pool", error.fields
        assert "one quantile at a time" in error.message and "bins" not in error.message
        (got,), _ = run(w, ["quantile(a, q=0.3, axis=0)"], source)
        assert np.array_equal(got, np.quantile(a, 0.3, axis=0))
        source.close()


def test_counts_in_more_bins_than_the_pool_holds_are_refused_with_numbers(start):
    daemon = start(pool="4M", engine="cpu")
    with daemon.connect() as w:
        values = np.arange(100_000) % 40_000
        source = Source(w, values, "region", None)
        with pytest.raises(Error) as caught:
            w.call("job.run", args={"a": source.described},
                   outputs=[{"expr": "bincount(a, length=1000000)"}])
        error = caught.value
        assert error.code == "too-large-for-pool", error.fields
        needed, there = int(error.expected.split()[0]), int(error.found.split()[0])
        assert needed >= 8_000_000 > there > 0 and "bins" in error.message, error.fields
        (got,), _ = run(w, ["bincount(a, length=40000)"], source)
        assert np.array_equal(got, np.bincount(values, minlength=40_000))
        source.close()


def test_no_elements_are_counted_and_added_up(start):
    daemon = start()
    with daemon.connect() as w:
        for shape in ((0,), (0, 5), (5, 0)):
            a = np.zeros(shape)
            assert w.compute(f"cumsum(a, axis={len(shape) - 1})", a=a).shape == shape
        assert w.compute("bincount(a, length=3)", a=np.zeros(0, "i4")).tolist() == [0, 0, 0]
        assert w.compute("cumsum(a)", a=np.array([3.5])).tolist() == [3.5]


def test_a_region_of_another_dtype_is_written_as_it_was_added(start):
    """The running sum is kept in 64 bits, whatever it is stored as."""
    a = np.full(300_000, 100, "i1")
    daemon = start(engine="cpu")
    with daemon.connect() as w:
        source = Source(w, a, "region", None)
        region = wire.Region(w, a.size * 8)
        to = described(region.array("i8", a.shape), region.at())
        w.call("job.run", args={"a": source.described}, outputs=[{"expr": "cumsum(a)", "to": to}])
        assert region.array("i8", a.shape)[-1] == 30_000_000
        source.close()
