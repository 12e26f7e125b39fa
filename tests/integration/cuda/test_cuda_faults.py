"""A device that goes wrong, by the test double: no answer comes from a suspect context, jobs
complete or fail alone, and the daemon says what is the matter."""

import os
import signal

import numpy as np
import pytest

import conftest
import wire
from cuda_daemons import double, needs_double, start  # noqa: F401: fixtures
from wire import Error, described, file_at

pytestmark = needs_double

MIB = 1 << 20


MARK = "4046deadbeef0123"  # the bits of a float64 of 45.7


@pytest.fixture
def source():
    """(file, array): of some tiles, with one element that the double takes offence at."""
    a = np.random.default_rng(10).normal(size=MIB)
    a[MIB // 2 + 17] = np.frombuffer(bytes.fromhex(MARK)[::-1], "f8")[0]
    fd = wire.memfd(a.nbytes)
    os.pwrite(fd, a.tobytes(), 0)
    yield fd, a
    os.close(fd)


def submit(w, source, expr="sum(sqrt(abs(a)))", **more):
    fd, a = source
    return w.send("job.run", fds=[fd], args={"a": described(a, file_at(0))},
                  outputs=[{"expr": expr}], **more)


def value(reply):
    return wire.result_array(reply["outputs"][0])[()]


def right(source):
    return np.sqrt(np.abs(source[1])).sum()


def refused(**kwargs):
    """A daemon that does not start: its exit status and what it said."""
    with pytest.raises(conftest.NotStarted) as caught:
        conftest.Daemon(**kwargs)
    return caught.value.code, caught.value.text


# -- starting -----------------------------------------------------------------------------------

SCARCE = double(device_bytes=1024 * MIB, used_bytes=500 * MIB)
ABSENT = [("no-driver", "driver"), ("old-driver", "driver")]


@pytest.mark.parametrize("fault, word", ABSENT)
def test_auto_goes_on_with_the_cpu_and_says_why(start, fault, word):
    daemon = start(engine="auto", env=double(fault))
    engine = daemon.wait_for_state("absent")
    assert word in engine["why"].lower(), engine
    assert daemon.wait_for_state("ready", "cpu")
    with daemon.connect() as w:
        reply = w.call("job.run", outputs=[{"expr": "a + 1"}],
                       args={"a": wire.argument(np.arange(3))})
        assert reply["engine"] == "cpu" and "cpu" in reply["engine_why"], reply
        with pytest.raises(Error) as caught:
            w.call("job.run", outputs=[{"expr": "a + 1"}], engine="cuda",
                   args={"a": wire.argument(np.arange(3))})
        assert caught.value.code == "no-engine" and word in str(caught.value.fields).lower()
    assert word in daemon.text().lower()
    assert word in daemon.ctl("info").stdout.lower()


@pytest.mark.parametrize("fault, word", ABSENT)
def test_a_daemon_for_devices_alone_does_not_start_without(fault, word):
    code, text = refused(engine="cuda", env=double(fault))
    assert code == 4 and word in text.lower(), (code, text)


def test_both_versions_of_an_old_driver_are_told():
    _, text = refused(engine="cuda", env=double("old-driver"))
    assert any(f"{version}." in text for version in (12, 13)), text


def test_a_pool_larger_than_what_is_free_is_refused_with_both_numbers():
    code, text = refused(engine="cuda", env=SCARCE, pool="592M")
    assert code == 4 and str(932 * MIB) in text and str(1024 * MIB) in text, (code, text)
    assert "free" in text, text


def test_auto_waits_for_the_memory_of_others(start):
    daemon = start(engine="auto", env=SCARCE, pool="592M")
    engine = daemon.wait_for_state("waiting-for-device-memory")
    assert "free" in engine["why"], engine
    with daemon.connect() as w:
        assert w.compute("a + 1", a=np.arange(3)).tolist() == [1, 2, 3]


@pytest.mark.parametrize("fault", ["fail-malloc", "fail-host-alloc"])
def test_memory_that_cannot_be_taken(fault):
    code, text = refused(engine="cuda", env=double(**{fault: 1}))
    assert code == 4 and "memory" in text.lower(), (code, text)


def test_a_device_index_that_does_not_exist():
    code, text = refused(engine="cuda", env=double(devices=2), args=["--devices", "5"])
    assert code == 4 and "5" in text and "2" in text, (code, text)


def test_a_driver_that_comes_later_is_found(start, folder):
    daemon = start(engine="auto", env=double(absent_until=folder / "there"))
    daemon.wait_for_state("absent")
    (folder / "there").touch()
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for_state("ready")
    with daemon.connect() as w:
        reply = w.call("job.run", outputs=[{"expr": "a + 1"}], engine="cuda",
                       args={"a": wire.argument(np.arange(3))})
    assert reply["engine"] == "cuda:0"


# -- while jobs run -----------------------------------------------------------------------------

def test_a_fault_ends_the_worker_and_the_job_runs_again(start, source, folder):
    daemon = start(env=double(once=folder / "once", sticky_data=MARK))
    with daemon.connect() as w, daemon.connect() as other:
        jobs = [(c, submit(c, source)) for c in (w, other, w)]
        results = [value(c.reply(ident)) for c, ident in jobs]
    assert len(set(results)) == 1 and results[0] == pytest.approx(right(source), rel=1e-12)
    daemon.wait_for_restarts(1)
    assert daemon.engine_info()["restarts"] == 1


def test_a_fault_in_a_copy_ends_the_worker_too(start, source, folder):
    daemon = start(env=double(once=folder / "once", armed=folder / "armed", sticky_copy=2))
    with daemon.connect() as w:
        (folder / "armed").touch()
        assert value(w.reply(submit(w, source))) == pytest.approx(right(source), rel=1e-12)
    daemon.wait_for_restarts(1)


def test_a_launch_that_is_refused_fails_its_job_alone(start, source, folder):
    """Not sticky: the context is well, and so is the worker."""
    daemon = start(env=double(armed=folder / "armed", fail_launch=2))
    counts = daemon.quiet_counts()
    with daemon.connect() as w:
        (folder / "armed").touch()
        with pytest.raises(Error) as caught:
            w.reply(submit(w, source))
        assert "cudaError" in str(caught.value.fields), caught.value.fields
        assert value(w.reply(submit(w, source))) == pytest.approx(right(source), rel=1e-12)
    daemon.wait_for_counts(counts)
    assert daemon.engine_info()["restarts"] == 0


def test_a_job_that_faults_every_time_is_poisoned_after_two(start, source):
    """Alone: jobs of others complete, before and after."""
    daemon = start(env=double(sticky_data=MARK))
    clean = np.arange(3 * MIB, dtype="f4")
    fd = wire.memfd(clean.nbytes)
    os.pwrite(fd, clean.tobytes(), 0)
    with daemon.connect() as w, daemon.connect() as other:
        honest = [submit(other, (fd, clean), "max(a)") for _ in range(3)]
        poison = submit(w, source)
        honest += [submit(other, (fd, clean), "max(a)") for _ in range(3)]
        with pytest.raises(Error) as caught:
            w.reply(poison)
        assert caught.value.code == "poisoned", caught.value.fields
        assert [value(other.reply(ident)) for ident in honest] == [clean[-1]] * 6
    os.close(fd)
    daemon.wait_for_restarts(2)
    assert daemon.engine_info()["restarts"] == 2


@pytest.mark.parametrize("faults", [{"hang_data": MARK}, {"hang_copy": 2, "armed": True}])
def test_what_never_ends_is_killed(start, source, folder, faults):
    if "armed" in faults:
        faults = {**faults, "armed": folder / "armed"}
    daemon = start(env=double(once=folder / "once", **faults), args=["--hang-timeout", "1"])
    with daemon.connect() as w:
        (folder / "armed").touch()
        assert value(w.reply(submit(w, source))) == pytest.approx(right(source), rel=1e-12)
    daemon.wait_for_restarts(1)


def test_a_lost_device_that_returns(start, source, folder):
    """The queue is kept, and served when the device is back."""
    daemon = start(env=double(lost_data=MARK, once=folder / "once", back=folder / "back"))
    with daemon.connect() as w:
        jobs = [submit(w, source) for _ in range(3)]
        engine = daemon.wait_for_state("absent")
        assert engine["why"], engine
        (folder / "back").touch()
        daemon.process.send_signal(signal.SIGHUP)
        for ident in jobs:
            assert value(w.reply(ident)) == pytest.approx(right(source), rel=1e-12)
    daemon.wait_for_state("ready")


def test_a_lost_device_leaves_the_cpu_its_jobs(start, source, folder):
    daemon = start(engine="auto",
                   env=double(lost_data=MARK, once=folder / "once", back=folder / "back"))
    daemon.wait_for_state("ready")
    with daemon.connect() as w:
        lost = submit(w, source, engine="cuda")
        daemon.wait_for_state("absent")
        reply = w.reply(submit(w, source))
        assert reply["engine"] == "cpu"
        assert value(reply) == pytest.approx(right(source), rel=1e-12)
        (folder / "back").touch()
        daemon.process.send_signal(signal.SIGHUP)
        assert w.reply(lost)["engine"] == "cuda:0"


def test_cancelled_in_the_middle_nothing_is_left(start, source):
    """Tiles are with the device when the job ends; the next job is right all the same."""
    daemon = start(env=double(seed=1, delay_us=20_000))
    counts = daemon.quiet_counts()
    with daemon.connect() as w:
        ident = submit(w, source, progress_ms=50)
        while not any(name == "job.progress" for name, _ in w.notifications):
            message = w.receive()
            assert message[0] == 2, message
            w.notifications.append((message[1], message[2][0]))
        w.call("job.cancel", job=next(body["job"] for name, body in w.notifications
                                      if name == "job.progress"))
        with pytest.raises(Error) as caught:
            w.reply(ident)
        assert caught.value.code == "cancelled"
        assert value(w.reply(submit(w, source))) == pytest.approx(right(source), rel=1e-12)
    daemon.wait_for_counts(counts)


def test_a_client_that_goes_in_the_middle(start, source):
    daemon = start(env=double(seed=1, delay_us=20_000))
    counts = daemon.quiet_counts()
    w = daemon.connect()
    submit(w, source)
    while daemon.info()["counts"]["jobs_running"] == 0:
        pass
    w.close()
    daemon.wait_for_counts(counts)


def test_registering_that_fails_is_staged(start, folder):
    daemon = start(env=double(fail_register=1, armed=folder / "armed"))
    (folder / "armed").touch()
    a = np.random.default_rng(5).random(2 * MIB, dtype="f4")
    with daemon.connect() as w:
        region = wire.Region(w, 2 * a.nbytes)
        region.array("f4", a.shape)[:] = a
        for i in range(4):
            w.call("job.run", args={"a": described(a, region.at())}, outputs=[
                {"expr": f"a + {i}", "to": described(a, region.at(a.nbytes))}])
            assert np.array_equal(region.array("f4", a.shape, a.nbytes), a + np.float32(i))
    assert daemon.engine_info()["restarts"] == 0
