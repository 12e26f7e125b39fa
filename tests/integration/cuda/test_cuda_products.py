"""Matrix products on a device: the tests of the CPU worker's on daemons with a CUDA worker, and what only
a device does: other pools, panels and C in its own memory, faults, hosts without cuBLAS.

A device's blocks are large, so that the smallest pools that multiply several tiles of floats are some tens
of MiB; the depth is small where the arithmetic is not what is tested."""

import os
import random
import shutil
import signal
import struct
import threading

import numpy as np
import pytest

import conftest
import wire
from catalogue import NUMPY_2
from conftest import IS_DOUBLE, IS_SANITIZED, Daemon
from cuda_daemons import double, needs_double, start  # noqa: F401: fixtures
from test_product_jobs import (  # noqa: F401
    WAYS,
    Given,
    Sum,
    given,
    run,
    test_all_of_it_is_counted_as_planned,
    test_journals_that_cannot_be,
    test_rings_both_ways,
    test_two_jobs_with_one_journal,
    total,
)
from test_product_chains import (  # noqa: F401
    test_chains,
    test_generated_chains,
    test_outputs_beside_each_other,
    test_what_is_kept_and_does_not_fit,
)
from test_products import (  # noqa: F401
    Held,
    check_near,
    same,
    test_a_matrix_times_itself_transposed_is_symmetric_to_the_bit,
    test_an_output_may_not_overlap_an_operand,
    test_every_pair_of_dtypes,
    test_expressions_on_operands_and_result,
    test_generated_products,
    test_layouts,
    test_nan_and_infinities_pass_through,
    test_operands_of_indices_random_numbers_and_constants,
    test_refuses_transposed_arguments_elsewhere,
    test_refuses_what_numpy_refuses,
    test_shapes,
    test_sums_of_floats_are_as_near_as_their_dtype_allows,
    test_transposed_arguments,
    whole,
)
from users import NOBODY, as_user, needs_users
from wire import Error

pytestmark = [pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes"),
              pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def normal(shape, dtype="f8", seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


@pytest.fixture(scope="module")
def daemon():
    """One for the module, with a pool in which all of these products are possible; its worker lives
    through all tests."""
    d = Daemon(engine="cuda", pool="64M")
    yield d
    engine = d.engine_info()
    d.stop()
    assert engine["restarts"] == 0, engine


# -- pools ----------------------------------------------------------------------------------------

# (batch, rows, depth, columns) of several tiles in the smaller pools, of several steps, of blocks
# that are cut at the edges.
SHAPES = [((), 4500, 9, 2300), ((), 300, 2500, 200), ((3,), 1100, 7, 1300), ((), 1, 70000, 30),
          ((), 9000, 300, 1)]


@pytest.fixture(scope="module")
def daemons():
    running = [Daemon(engine="cuda", pool=pool, threads=n)
               for pool, n in (("64M", 1), ("256M", 3))]
    yield running
    for daemon in running:
        daemon.stop()


@pytest.mark.plain
@pytest.mark.parametrize("batch, m, k, n", SHAPES[1:2] if IS_SANITIZED else SHAPES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_bits_are_the_same_for_every_pool(daemons, dtype, batch, m, k, n):
    a, b, c = (normal((*batch, *s), dtype, i) for i, s in enumerate(((m, k), (k, n), (m, n))))
    near = 2 * (a.astype("f8") @ b.astype("f8")) + c
    results, tiles = set(), []
    for daemon in daemons:
        with daemon.connect() as w:
            held = Held(w, a=a, b=b, c=c, d=np.zeros_like(c))
            reply = held.run("2 * (a @ b) + c", "d", "a", "b", "c")
            results.add(held["d"].tobytes())
            tiles.append(reply["product"]["tiles"])
            held.run("2 * (a @ b) + c", "c", "a", "b", "c")
            assert held["c"].tobytes() in results, "in place"
            held.leave()
    check_near(results, near, dtype)
    if (m, dtype) == (4500, "f8"):
        assert tiles[0] > tiles[-1], tiles


@pytest.mark.plain
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "i4", "u8"])
@pytest.mark.values
def test_integers_of_several_tiles(daemons, dtype):
    m, k, n = (1100, 30, 1050) if IS_SANITIZED else (2500, 30, 2200)
    a, b, c = whole(dtype, (m, k)), whole(dtype, (k, n), 1), whole(dtype, (m, n), 2)
    for daemon in daemons[:1]:
        with daemon.connect() as w:
            held = Held(w, a=a, b=b, c=c)
            held.run("where(a @ b > c, a @ b, c)", "c", "a", "b", "c")
            product = a @ b
            same(held["c"].copy(), np.where(product > c, product, c), dtype)
            held.leave()


@pytest.mark.plain
@pytest.mark.parametrize("batch, n, k", [((), 2300, 20), ((3,), 520, 40), ((), 40, 3000)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.values
def test_symmetric_products_of_several_tiles(daemons, dtype, batch, n, k):
    """Computed for one half, stored in both; what is added differs between the halves."""
    if IS_SANITIZED and n > 1000:
        n = 1100
    a, c = normal((*batch, n, k), dtype), whole(dtype, (*batch, n, n))
    near = a.astype("f8") @ a.astype("f8").swapaxes(-1, -2)
    results = set()
    for daemon in daemons:
        with daemon.connect() as w:
            held = Held(w, a=a, c=c, d=np.zeros_like(c))
            held.run("a @ a.mT", "d", "a")
            product = held["d"].copy()
            assert product.tobytes() == product.swapaxes(-1, -2).tobytes()
            results.add(product.tobytes())
            held.run("2 * (a @ a.mT) + c", "c", "a", "c")
            same(held["c"].copy(), 2 * product + c, "in place")
            held.leave()
    check_near(results, near, dtype)


def test_nothing_of_jobs_before_is_in_a_result(w):
    """The same carry, again and again: of a product that fills it with NaN, then of smaller and of
    empty ones."""
    for dtype in ("f4", "f8"):
        full = np.full((250, 250), np.nan, dtype)
        held = Held(w, a=full, c=full.copy())
        held.run("a @ a", "c", "a")
        assert np.isnan(held["c"]).all()
        held.leave()
        for m, k, n in [(3, 0, 4), (1, 0, 1), (0, 3, 2), (37, 0, 11), (19, 5, 23), (1, 1, 1)]:
            a, b = whole(dtype, (m, k)), whole(dtype, (k, n), 1)
            same(w.compute("a @ b", a=a, b=b), a @ b, (m, k, n))
            s = whole(dtype, (m, k))
            same(w.compute("a @ a.T", a=s), s @ s.T, (m, k))


# -- everywhere -----------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def operands():
    m, k, n = (150, 1100, 130) if IS_SANITIZED else (500, 1300, 400)
    a, b = normal((m, k), "f4", 1), normal((k, n), "f4", 2)
    return a, b, a.astype("f8") @ b.astype("f8")


@pytest.fixture(scope="module")
def bits(daemons, operands):
    with daemons[1].connect() as w:
        g = Given(w, None)
        to, c = g.region(np.zeros(operands[2].shape, "f4"))
        w.run("a @ b", to=to, a=g.region(operands[0])[0], b=g.region(operands[1])[0])
        got = c.copy()
        del c
        g.close()
    assert np.abs(got - operands[2]).max() < 1e-2
    return got


@pytest.mark.plain
@pytest.mark.parametrize("way", WAYS)
def test_the_bytes_are_the_same_from_everywhere(daemons, folder, operands, bits, way):
    """And as many as were planned."""
    with daemons[0].connect() as w:
        given = Given(w, folder)
        a, b = (WAYS[way](given, x) for x in operands[:2])
        to, c = given.region(np.zeros(bits.shape, "f4"))
        plan = w.run("a @ b", fds=given.fds, to=to, method="job.plan", a=a, b=b)
        reply = run(given, "a @ b", to, a=a, b=b)
        assert np.array_equal(c, bits)
        del c
        given.close()
    product = reply["product"]
    for key in ("read_bytes", "write_bytes", "tiles"):
        assert reply[key] == plan[key]
    for key in ("left_bytes", "right_bytes", "tile", "tiles", "precision"):
        assert product[key] == plan["product"][key]
    assert (reply["engine"], product["precision"]) == ("cuda:0", "float32")
    assert product["library"].startswith("cuBLAS ")
    assert product["left_bytes"] + product["right_bytes"] == reply["read_bytes"]
    assert reply["write_bytes"] == operands[2].size * 4
    assert reply["seconds"]["kernel"] > 0 and reply["seconds"]["to_device"] > 0


def test_integers_are_multiplied_by_our_own_kernels(w):
    reply = w.run("a @ a", a=np.eye(3, dtype="i4"))
    assert reply["product"]["library"].startswith("gpuarrayd ")
    assert (reply["product"]["precision"], reply["engine"]) == ("int32", "cuda:0")


# -- journals -------------------------------------------------------------------------------------

@pytest.mark.plain
@pytest.mark.parametrize("in_region,text", conftest.some(
    [(False, "a @ b + c"), (True, "a @ b + c"), (False, "a @ a.T + c")], 3))
def test_a_sum_of_several_tiles_with_a_journal(start, folder, in_region, text):
    """Applied once, whenever the worker is killed; then it goes on."""
    daemon, states, rng = start(pool="64M"), set(), random.Random(len(text) + in_region)
    for kill in range(2 if IS_SANITIZED else 3):
        work = folder / f"work-{kill}"
        work.mkdir()
        total = Sum(work, seed=kill, shape=(2500, 8, 2500), text=text)
        daemon.wait_for_state("ready")
        with daemon.connect() as w:
            job = total.send(w, in_region)
            killer = threading.Timer(rng.uniform(0, 0.5), os.kill,
                                     (daemon.worker_pid(), signal.SIGKILL))
            killer.start()
            reply = w.reply(job)
            killer.join()
            assert reply["product"]["tiles"] > 1
            states.add(reply["journal"])
            assert np.array_equal(total.got(in_region), total.expected()), (kill, states)
            daemon.wait_for_state("ready")
            again = w.reply(total.send(w, in_region))
            assert (again["journal"], again["tiles"]) == ("complete", 0)
            assert np.array_equal(total.got(in_region), total.expected())
        total.close()
        os.close(total.memfd)
        shutil.rmtree(work)


# -- faults ---------------------------------------------------------------------------------------

MARK = "4046deadbeef0123"  # the bits of a float64 of 45.7


def marked(shape):
    a = normal(shape)
    a.flat[a.size // 2] = struct.unpack("<d", bytes.fromhex(MARK)[::-1])[0]
    return a


@needs_double
@pytest.mark.parametrize("nth", range(1, 8))
def test_a_launch_that_is_refused_fails_its_job_alone(start, folder, nth):
    """Loading, multiplying or storing; the next job is right."""
    daemon = start(env=double(armed=folder / "armed", fail_launch=nth))
    counts = daemon.quiet_counts()
    a = whole("i4", (60, 60))
    with daemon.connect() as w:
        (folder / "armed").touch()
        failed = 0
        for _ in range(8):
            try:
                got = w.compute("a @ a + a", a=a)
            except Error as error:
                assert error.code == "device-fault" and "cudaError" in str(error.fields)
                failed += 1
            else:
                same(got, a @ a + a, nth)
        assert failed == 1
    daemon.wait_for_counts(counts)
    assert daemon.engine_info()["restarts"] == 0


@needs_double
def test_what_the_library_could_not_do_ends_the_worker(start, folder):
    """It does not say whether the device is well. The third launch is the multiplication."""
    daemon = start(env=double(once=folder / "once", armed=folder / "armed", fail_launch=3))
    a = normal((60, 60))
    with daemon.connect() as w:
        (folder / "armed").touch()
        np.testing.assert_allclose(w.compute("a @ a + a", a=a), a @ a + a)
    daemon.wait_for_restarts(1)


@needs_double
@pytest.mark.parametrize("fault", ["sticky_launch", "hang_launch", "sticky_copy", "hang_copy"])
@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5])
def test_a_fault_ends_the_worker_and_the_product_is_computed_again(start, folder, fault, nth):
    """Whatever turn it is in."""
    daemon = start(env=double(once=folder / "once", armed=folder / "armed", **{fault: nth}),
                   args=["--hang-timeout", "1"])
    a = normal((60, 60))
    with daemon.connect() as w:
        (folder / "armed").touch()
        for _ in range(4):
            np.testing.assert_allclose(w.compute("a @ a + a", a=a), a @ a + a)
    daemon.wait_for_restarts(1)


@needs_double
def test_a_product_that_faults_every_time_is_poisoned(start):
    """Others' jobs complete, before and after."""
    daemon = start(env=double(sticky_data=MARK))
    a, clean = marked((60, 60)), normal((60, 60))
    with daemon.connect() as w, daemon.connect() as other:
        np.testing.assert_allclose(other.compute("a @ a", a=clean), clean @ clean)
        with pytest.raises(Error) as caught:
            w.compute("a @ a", a=a)
        assert caught.value.code == "poisoned", caught.value.fields
        np.testing.assert_allclose(other.compute("a @ a", a=clean), clean @ clean)
    daemon.wait_for_restarts(2)


def on_device(w):
    """What carries of products have of its memory."""
    pool = w.call("server.info")["pool"]
    assert 0 <= pool["device_carry_used_bytes"] <= pool["device_carry_bytes"]
    assert pool["carry_used_bytes"] == 0
    return pool["device_carry_used_bytes"]


def squared(socket):
    """As another user: what is expected, and what it held of the device."""
    with wire.Wire(socket) as w:
        plan = w.run("a @ a", method="job.plan", a=np.eye(60))
        return bool((w.compute("a @ a", a=np.eye(60)) == np.eye(60)).all()), plan["carry_bytes"]


@needs_double
@needs_users
def test_products_of_two_users_and_one_whose_worker_is_killed(start):
    """Each has its part of the device; nothing of it stays lent."""
    daemon = start(pool="64M", env=double(seed=1, delay_us=20_000))
    daemon.dir.chmod(0o755)
    os.chmod(daemon.socket, 0o666)
    a, b = normal((700, 8000)), normal((8000, 300))
    with daemon.connect() as w, daemon.connect() as other:
        held = Held(w, a=a, b=b, c=np.zeros((700, 300)))
        for is_killed in (False, True):
            held["c"][...] = 0
            job = w.send("job.run", args={name: held.at(name) for name in "ab"},
                         outputs=[{"expr": "a @ b", "to": held.at("c")}])
            while not any(j["state"] == "running" for j in other.call("job.list")):
                pass
            assert on_device(other) > 4 << 20
            if is_killed:
                os.kill(daemon.worker_pid(), signal.SIGKILL)
            else:
                is_right, n_bytes = as_user(NOBODY, squared, daemon.socket)
                assert is_right and n_bytes > 0
                assert on_device(other) > 4 << 20, "it was over before"
            w.reply(job)
            np.testing.assert_allclose(held["c"], a @ b)
            assert on_device(other) == 0
        held.leave()


@needs_double
def test_cancelled_between_turns_nothing_is_left(start, folder):
    """Turns of all kinds are with the device when the job ends."""
    daemon = start(pool="64M", env=double(seed=1, delay_us=30_000))
    counts = daemon.quiet_counts()
    a, b = normal((900, 2500)), normal((2500, 300))
    with daemon.connect() as w, daemon.connect() as other:
        held = Held(w, a=a, b=b, c=np.zeros((900, 300)))
        for _ in range(2):
            job = w.send("job.run", args={name: held.at(name) for name in "ab"},
                         outputs=[{"expr": "a @ b", "to": held.at("c")}], progress_ms=20)
            while not (jobs := other.call("job.list")) or jobs[0]["state"] != "running":
                pass
            other.call("job.cancel", job=jobs[0]["job"])
            with pytest.raises(Error) as caught:
                w.reply(job)
            assert caught.value.code == "cancelled"
            assert on_device(other) == 0
        held.run("a @ b", "c", "a", "b")
        np.testing.assert_allclose(held["c"], a @ b)
        held.leave()
    daemon.wait_for_counts(counts)


@needs_double
def test_small_jobs_come_between_multiplications(start):
    """A device that takes its time: others' tiles have their own places there."""
    daemon = start(pool="64M", env=double(seed=1, delay_us=20_000))
    a, b = normal((700, 8000)), normal((8000, 300))
    with daemon.connect() as w, daemon.connect() as other:
        held = Held(w, a=a, b=b, c=np.zeros((700, 300)))
        job = w.send("job.run", args={name: held.at(name) for name in "ab"},
                     outputs=[{"expr": "a @ b", "to": held.at("c")}])
        while not any(j["state"] == "running" for j in other.call("job.list")):
            pass
        assert other.compute("sum(a) + 1", a=np.arange(1000))[()] == 499501
        assert other.compute("a @ a", a=np.eye(3)).tolist() == np.eye(3).tolist()
        assert any(j["state"] == "running" for j in other.call("job.list")), "it was over before"
        assert w.reply(job)["engine"] == "cuda:0"
        np.testing.assert_allclose(held["c"], a @ b)
        held.leave()


# -- without cuBLAS -------------------------------------------------------------------------------

@needs_double
@pytest.mark.parametrize("fault", ["no-blas", "fail-blas", "fail-gemm"])
def test_without_cublas_the_device_multiplies_no_floats(start, fault):
    daemon = start(engine="auto", env=double(fault))
    engine = daemon.wait_for_state("ready")
    daemon.wait_for_state("ready", "cpu")
    assert engine["blas"] is None and engine["why_no_blas"]
    assert engine["rates"]["product_float32"] == engine["rates"]["product_float64"] == 0
    assert engine["rates"]["product_integer"] > 0
    assert daemon.engine_info("cpu")["blas"].startswith("OpenBLAS")
    a = normal((5, 5))
    argument = {"a": wire.argument(a)}
    with daemon.connect() as w:
        reply = w.call("job.run", args=argument, outputs=[{"expr": "a @ a"}])
        assert reply["engine"] == "cpu" and "cuda:0 cannot (no-engine)" in reply["engine_why"]
        with pytest.raises(Error) as caught:
            w.call("job.run", args=argument, outputs=[{"expr": "a @ a"}], engine="cuda")
        assert (caught.value.code, caught.value.argument) == ("no-engine", "engine")
        assert engine["why_no_blas"][:100] in caught.value.message
        for text in ("tensordot(a, a, (0, 0))", "qr_r(a)") if fault == "no-blas" else ():
            reply = w.call("job.run", args=argument, outputs=[{"expr": text}])
            assert reply["engine"] == "cpu" and "cuda:0 cannot (no-engine)" in reply["engine_why"]
            with pytest.raises(Error, match="no-engine"):
                w.call("job.run", args=argument, outputs=[{"expr": text}], engine="cuda")
        integers = (a * 9).astype("i8")
        reply = w.call("job.run", args={"a": wire.argument(integers)},
                       outputs=[{"expr": "a @ a"}], engine="cuda")
        assert reply["engine"] == "cuda:0"
        same(wire.result_array(reply["outputs"][0]), integers @ integers, fault)
    text = daemon.ctl("info").stdout
    assert "why_no_blas" in text and engine["why_no_blas"] in text


def test_info_says_what_multiplies(daemon):
    engine = daemon.engine_info()
    assert engine["blas"].startswith("cuBLAS ")
    assert all(engine["rates"][f"product_{kind}"] > 0
               for kind in ("float32", "float64", "integer", "tf32"))
    assert "product_tf32" in daemon.ctl("info").stdout
    assert engine["blas"] in daemon.ctl("info").stdout


# -- choosing -------------------------------------------------------------------------------------

def test_auto_estimates_products_on_both(start):
    daemon = start(engine="auto", pool="64M")
    daemon.wait_for_state("ready")
    daemon.wait_for_state("ready", "cpu")
    with daemon.connect() as w:
        plan = w.run("a @ b", method="job.plan", a={"dtype": "<f8", "shape": [1000, 1000]},
                     b={"dtype": "<f8", "shape": [1000, 1000]},
                     to={"dtype": "<f8", "shape": [1000, 1000]})
        engines = {e["engine"]: e for e in plan["engines"]}
        assert all(engines[name]["seconds"] > 0 for name in ("cpu", "cuda:0")), engines
        assert plan["engine"] == min(engines.values(), key=lambda e: e["seconds"])["engine"]
        assert "cpu" in plan["engine_why"] and "cuda:0" in plan["engine_why"]


def test_a_plan_says_what_is_done_on_the_device(daemon, folder):
    a, b = normal((300, 200)), normal((200, 100))
    np.save(folder / "a.npy", a)
    np.save(folder / "b.npy", b)
    words = ["matmul", folder / "a.npy", folder / "b.npy", "-o", folder / "c.npy"]
    text = daemon.ctl(*words, "--explain").stdout
    assert "cuda:0" in text and "product" in text and "float64" in text
    said = daemon.ctl(*words, "-v").stderr
    assert "cuBLAS " in said and "cuda:0" in said
    np.testing.assert_allclose(np.load(folder / "c.npy"), a @ b)
    daemon.ctl(*words, "--beta", "1", "--no-journal")
    np.testing.assert_allclose(np.load(folder / "c.npy"), 2 * (a @ b))
    daemon.ctl(*words, "--beta", "1")
    np.testing.assert_allclose(np.load(folder / "c.npy"), 3 * (a @ b))


def test_a_product_that_is_too_large_for_the_pool(w):
    shape = {"dtype": "<f8", "shape": [4096, 4096]}
    with pytest.raises(Error) as caught:
        w.run("a @ b", method="job.plan", a=shape, b=shape, to=shape)
    assert caught.value.code == "too-large-for-pool" and caught.value.expected
