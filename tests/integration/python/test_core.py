"""The extension `_core` by itself: sessions, arrays as buffers, jobs, plans. Nothing of the rest of
the package but the errors is used here."""

import ctypes
import gc
import io
import os
import subprocess
import sys
import threading
import time
import weakref
import zlib

import numpy as np
import pytest

from core_session import connect, session  # noqa: F401
from gpuarrayd import _core, errors


def run(session, expression, *args, **named):
    """One result, which came with the answer."""
    arrays = [(name, value if isinstance(value, (bool, int, float, _core.Array))
               else session.from_buffer(value, False)) for name, value in named.items()]
    job = session.run([(expression, None, None)], arrays, None, 0, None)
    typestr, shape, data = job.result(0)
    return np.frombuffer(data, typestr).reshape(shape)


# Connections


def test_a_session_says_what_it_is(session):
    assert session.is_open
    assert session.pid == os.getpid()
    session.ping()
    assert '"pool"' in session.info_json()
    assert '"users"' in session.stats_json()
    assert '"sqrt"' in session.ops_json()
    assert _core.versions().startswith("gpuarrayd ")


def test_no_daemon_is_an_error_with_a_code(folder):
    with pytest.raises(errors.NoDaemon) as caught:
        _core.Session(str(folder / "nothing"), None, False, None, 1.0)
    assert caught.value.code == "no-daemon"


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_a_timeout_must_be_positive(daemon, timeout):
    with pytest.raises(errors.BadArgument, match="time-out"):
        connect(daemon, timeout=timeout)


def test_a_closed_session_refuses_everything(session):
    x = session.new("<f8", (3,), True)
    job = session.run([("x + 1", None, None)], [("x", x)], None, 0, None)
    session.close()
    session.close()
    assert not session.is_open
    for call in (session.ping, session.info_json, lambda: session.new("<f8", (3,), True),
                 lambda: session.from_buffer(np.arange(3), False),
                 lambda: session.submit([("x", None, None)], [("x", x)], None, 0, None, False),
                 lambda: session.run([("x", None, None)], [("x", x)], None, 0, None),
                 lambda: session.plan([("x", None, None)], [("x", x)], None)):
        with pytest.raises(errors.NoDaemon, match="closed"):
            call()
    assert session.wait_any([], None) == []
    assert job.wait(None) and job.result(0)[1] == (3,)


def test_memory_outlives_a_closed_session_and_its_object(daemon):
    before = daemon.quiet_counts()
    session = connect(daemon)
    view = np.asarray(session.new("<f8", (1000,), True))
    view[:] = 7
    session.close()
    daemon.wait_for_counts(before)  # while the memory is still ours
    del session
    gc.collect()
    assert view.sum() == 7000
    view[:] = 8
    assert view.sum() == 8000


def test_closing_ends_what_runs(session, endless):
    job = endless.submit(session)
    session.close()
    with pytest.raises(errors.Cancelled):
        job.wait(None)
    assert job.is_done and job.stats is None


# Buffers


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_dtype_goes_in_and_comes_out(session, dtype, order):
    x = np.array([[0, 1, 2], [3, 4, 5]]).astype(np.dtype(dtype).newbyteorder(order))
    array = session.from_buffer(x, False)
    assert array.typestr == x.dtype.str
    assert array.shape == (2, 3) and array.strides == x.strides
    assert (array.format, array.access) == ("memory", "memory")
    assert array.path is None and array.fill is None and array.session is session
    back = np.asarray(array)
    assert back.dtype == x.dtype and not back.flags.writeable
    assert back.dtype.char == x.dtype.char  # int64 is NumPy's int64
    assert back.ctypes.data == x.ctypes.data
    result = run(session, "x", x=array)
    assert result.dtype == x.dtype.newbyteorder("=") and np.array_equal(result, x)


@pytest.mark.parametrize("format", ["<i", "=q", "!H", ">d", "@l", "<L", "f"])
def test_signs_of_formats_are_understood(session, format):
    x = np.arange(6).astype(format if format[0] in "<>=" else format.replace("!", ">").strip("@"))
    array = session.from_buffer(memoryview(x), False)
    assert np.array_equal(run(session, "x * 2", x=array), x * 2)


@pytest.mark.parametrize("make", [
    lambda: np.zeros(3, "f2"), lambda: np.zeros(3, "c16"), lambda: np.zeros(3, "S4"),
    lambda: np.zeros(3, "i4,f8"), lambda: np.zeros(3, "g"), lambda: np.array([None]),
    lambda: (ctypes.c_char * 4)()])
def test_other_formats_are_bad_dtypes(session, make):
    with pytest.raises(errors.BadDtype) as caught:
        session.from_buffer(make(), False)
    assert caught.value.found and caught.value.found in caught.value.message
    assert isinstance(caught.value, TypeError)


def test_views_of_any_strides(session):
    x = np.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)
    for view in (x.T, x[::-1, :, ::2], x[:, 1:2, ::-3, 2], np.broadcast_to(x[0, 0, 0], (7, 5)),
                 x[0, 0, 0, 0], x[:0], np.asfortranarray(x[1])):
        array = session.from_buffer(view, False)
        assert np.array_equal(np.asarray(array), view)
        assert np.array_equal(run(session, "x + 1", x=array), view + 1)


def test_other_exporters_than_numpy(session):
    assert run(session, "x + 1", x=bytearray(b"\1\2\3")).tolist() == [2, 3, 4]
    assert run(session, "x", x=memoryview(b"\7\0\0\0").cast("i")).tolist() == [7]
    with pytest.raises(TypeError, match="buffer|bytes-like"):
        session.from_buffer([1, 2], False)


def test_too_many_dimensions(session):
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":  # else NumPy has no such arrays
        with pytest.raises(errors.BadShape) as caught:
            session.from_buffer(np.zeros((1,) * 33), False)
        assert caught.value.found == "33"
    with pytest.raises(errors.BadShape) as caught:
        session.new("<f8", (1,) * 33, True)
    assert caught.value.found == "33"


def test_writing_needs_leave(session):
    x = np.zeros(4)
    x.flags.writeable = False
    with pytest.raises(errors.ReadOnly):
        session.from_buffer(x, True)
    with pytest.raises(errors.ReadOnly):
        session.run([("1.0", None, session.from_buffer(np.zeros(4), False))], [], None, 0, None)
    array = session.from_buffer(np.zeros(4), False)
    assert memoryview(array).readonly
    with pytest.raises((BufferError, TypeError)):
        io.BytesIO(bytes(32)).readinto(array)


def test_memory_of_a_session_is_recognised(session):
    x = session.new("<f8", (10, 10), True)
    assert (x.format, x.access) == ("region", "region")
    view = np.asarray(x)
    view[:] = np.arange(100).reshape(10, 10)
    del x
    part = session.from_buffer(view[::-2, 1:9:3], True)
    assert part.access == "region"
    session.run([("-x", None, part)], [("x", part)], None, 0, None)
    assert np.array_equal(view[::-2, 1:9:3], -np.arange(100).reshape(10, 10)[::-2, 1:9:3])


def test_new_memory_is_zeroed_when_asked(session):
    x = np.asarray(session.new("<i4", (5,), False))
    x[:] = 5
    del x
    assert not np.asarray(session.new("<i4", (5,), True)).any()
    assert np.asarray(session.new("|b1", (), True)).shape == ()
    assert np.asarray(session.new("<u2", (0, 3), True)).shape == (0, 3)
    with pytest.raises(errors.BadShape):
        session.new("<f8", (-1,), True)
    with pytest.raises(errors.BadDtype):
        session.new(">f8", (1,), True)


def test_the_kinds_of_buffers(session):
    flat, swapped = session.new("<f8", (2, 3), True), np.zeros((2, 3), ">f4").T
    turned = session.from_buffer(swapped, True)
    whole = memoryview(flat)
    assert (whole.format, whole.shape, whole.strides) == ("d", (2, 3), (24, 8))
    assert not whole.readonly
    view = memoryview(turned)
    assert (view.format, view.shape, view.strides, view.itemsize) == (">f", (3, 2), (4, 12), 4)
    assert view.f_contiguous and not view.c_contiguous
    assert len(bytes(turned)) == 24
    assert io.BytesIO(bytes(range(48))).readinto(flat) == 48 and bytes(flat) == bytes(range(48))
    assert zlib.crc32(flat) == zlib.crc32(bytes(range(48)))
    with pytest.raises(BufferError, match="C order"):
        zlib.crc32(turned)


def test_arrays_without_memory_export_nothing(session, folder):
    np.save(folder / "x.npy", np.arange(3))
    for array in (session.open(str(folder / "x.npy"), False),
                  session.from_blocks("<f8", (3,), lambda *a: None, None)):
        with pytest.raises(BufferError, match="not in memory"):
            memoryview(array)


def test_a_buffer_is_held_while_the_array_lives(session):
    x = bytearray(64)
    array = session.from_buffer(x, True)
    with pytest.raises(BufferError):
        x.append(1)
    del array
    x.append(1)


# Files


def test_files(session, folder):
    x = np.arange(12.0).reshape(3, 4)
    np.save(folder / "x.npy", x)
    array = session.open(str(folder / "x.npy"), False)
    assert (array.format, array.access, array.shape) == ("npy", "file", (3, 4))
    assert array.path == str(folder / "x.npy") and array.typestr == "<f8"
    out = session.create(str(folder / "y.npy"), "<f8", [3, 4], True, False)
    session.run([("x * 2", None, out)], [("x", array)], None, 0, None)
    assert not (folder / "y.npy").exists()
    out.commit()
    out.commit()
    y = np.load(folder / "y.npy")
    assert np.array_equal(y, x * 2) and y.flags.f_contiguous
    place = session.open(str(folder / "y.npy[1]"), True)
    session.run([("-x", None, place)], [("x", session.open(str(folder / "x.npy[1]"), False))], None,
                0, None)
    assert np.load(folder / "y.npy").tolist() == [(x * 2)[0].tolist(), (-x)[1].tolist(),
                                                  (x * 2)[2].tolist()]
    session.run([("x + 1", "r", str(folder / "z.npy"))], [("x", array)], None, 0, None)
    assert np.array_equal(np.load(folder / "z.npy"), x + 1)
    with pytest.raises(FileNotFoundError):
        session.open(str(folder / "none.npy"), False)


def test_a_name_that_is_no_text(session, folder):
    name = os.fsdecode(bytes(folder) + b"/\xff.npy")
    np.save(name, np.arange(4.0))
    array = session.open(name, False)
    assert array.path == name
    assert np.array_equal(run(session, "x", x=array), np.arange(4.0))
    with pytest.raises(FileNotFoundError, match=r"\?\.npy"):
        session.open(os.fsdecode(bytes(folder) + b"/\xfe.npy"), False)


def test_an_open_file(session, folder):
    x = np.arange(24.0).reshape(4, 6)
    (folder / "x").write_bytes(b"12345678" + x.tobytes())
    fd = os.open(folder / "x", os.O_RDWR)
    array = session.from_file(fd, 8 + 2 * 48, "<f8", (2, 3), (-96, 16), False)
    out = session.from_file(fd, 8, ">f8", (4, 6), None, True)
    os.close(fd)
    assert (array.format, array.access, array.strides) == ("file", "file", (-96, 16))
    assert np.array_equal(run(session, "x", x=array), x[2::-2, ::2])
    session.run([("x", None, out)], [("x", session.from_buffer(x + 1, False))], None, 0, None)
    assert np.array_equal(np.fromfile(folder / "x", ">f8", offset=8).reshape(4, 6), x + 1)
    with pytest.raises(errors.BadDescriptor):
        session.from_file(-1, 0, "<f8", (2,), None, False)
    with pytest.raises(errors.BadExtent):
        session.from_file(0, -8, "<f8", (2,), None, False)


# Blocks


def mover(x):
    def read(start, count, block):
        part = x[tuple(slice(a, a + n) for a, n in zip(start, count))]
        np.frombuffer(block, x.dtype).reshape(count)[...] = part

    def write(start, count, block):
        assert block.readonly
        x[tuple(slice(a, a + n) for a, n in zip(start, count))] = \
            np.frombuffer(block, x.dtype).reshape(count)

    return read, write


def test_blocks(session):
    x, y = np.random.default_rng(1).random((300, 700)), np.zeros((300, 700))
    source = session.from_blocks("<f8", x.shape, mover(x)[0], None)
    sink = session.from_blocks("<f8", x.shape, None, mover(y)[1])
    assert source.strides is None and source.access == "provider"
    session.run([("sqrt(x)", None, sink)], [("x", source)], None, 0, None)
    assert np.array_equal(y, np.sqrt(x))


def test_an_exception_in_a_block_is_the_cause(session):
    kept = []

    def read(start, count, block):
        kept.append(weakref.ref(block))
        part = np.frombuffer(block, "f8")  # noqa: F841, a view that the traceback would keep
        raise LookupError("no such block")

    source = session.from_blocks("<f8", (100,), read, None)
    for _ in range(3):
        with pytest.raises(errors.ProviderFailed) as caught:
            session.run([("x", None, None)], [("x", source)], None, 0, None)
        assert isinstance(caught.value.__cause__, LookupError)
    job = session.submit([("x", None, None)], [("x", source)], None, 0, None, False)
    with pytest.raises(errors.ProviderFailed) as caught:
        job.wait(None)
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_block_that_is_kept_fails_the_job(session):
    kept = []

    def read(start, count, block):
        block[:] = bytes(len(block))
        kept.append(np.frombuffer(block, "u1"))

    source = session.from_blocks("<f8", (100,), read, None)
    with pytest.raises(errors.ProviderFailed) as caught:
        session.run([("x", None, None)], [("x", source)], None, 0, None)
    assert isinstance(caught.value.__cause__, BufferError)
    assert "kept" in str(caught.value.__cause__)
    kept.clear()


def test_functions_in_a_cycle_are_collected(session):
    class Store:
        def read(self, start, count, block):
            block[:] = bytes(len(block))

    store = Store()
    store.array = session.from_blocks("<f8", (4,), store.read, None)
    assert not run(session, "x", x=store.array).any()
    seen = weakref.ref(store)
    del store
    gc.collect()
    assert seen() is None


def test_a_job_in_a_cycle_is_collected(session, endless):
    """Also while it runs: then it is cancelled."""
    class Store:
        def read(self, start, count, block):
            block[:] = bytes(len(block))

    for shape in ((4,), (1 << 14, 1 << 20)):
        store = Store()
        store.array = session.from_blocks("<f8", shape, store.read, None)
        store.job = session.submit([("sum(x)", None, None)], [("x", store.array)], None, 0, None,
                                   False)
        if shape == (4,):
            store.job.wait(None)
        seen = weakref.ref(store)
        del store
        gc.collect()
        for _ in range(10_000):
            if seen() is None:
                break
            session.ping()
            gc.collect(0)
        assert seen() is None


# Jobs


def test_a_job_and_what_it_says(session, endless):
    job = endless.submit(session)
    assert not job.is_done and job.stats is None and job.session is session
    assert job.wait(0) is False and job.wait(0.01) is False
    assert job.result(0) is None
    assert len(job.progress) == 5
    assert job.id > 0
    job.cancel()
    job.cancel()
    for _ in range(2):
        with pytest.raises(errors.Cancelled):
            job.wait(None)
    x = session.new("<f8", (100_000,), True)
    job = session.submit([("x + 1", None, x)], [("x", x)], "cpu", 5, "label", True)
    assert job.wait(None) is True and job.wait(0) is True
    assert job.stats["engine"] == "cpu" and job.stats["job"] == job.id
    tiles, of, read, written, total = job.progress
    assert tiles == of > 0 and read == written == 800_000 and total == 1_600_000


def test_scalars_are_weak_and_exact(session):
    x = session.from_buffer(np.arange(3, dtype="i1"), False)
    assert run(session, "x + s", x=x, s=1).dtype == "i1"
    assert run(session, "x + s", x=x, s=True).dtype == "i1"
    assert run(session, "x + s", x=x, s=1.5).dtype == "f8"
    assert run(session, "where(s, x, x)", x=x, s=True).tolist() == [0, 1, 2]
    assert run(session, "y + s", y=np.zeros(1, "i8"), s=-2**63)[0] == -2**63
    assert run(session, "y + s", y=np.zeros(1, "u8"), s=2**64 - 1)[0] == 2**64 - 1
    for big in (2**64, -2**63 - 1):
        with pytest.raises(OverflowError, match="s"):
            session.run([("s", None, None)], [("s", big)], None, 0, None)
    for wrong in (None, "1", 1j, [1]):
        with pytest.raises(TypeError):
            session.run([("s", None, None)], [("s", wrong)], None, 0, None)


def test_several_outputs(session, folder):
    x = np.arange(1000.0)
    out = np.empty(1000)
    outputs = [("sum(x)", "total", None), ("x * 2", "double", session.from_buffer(out, True)),
               ("x < 5", None, str(folder / "b.npy"))]
    job = session.run(outputs, (("x", session.from_buffer(x, False)),), None, 0, None)
    assert np.frombuffer(job.result(0)[2])[0] == x.sum()
    assert job.result(1) is None and job.result(2) is None and job.result(99) is None
    assert np.array_equal(out, x * 2) and np.array_equal(np.load(folder / "b.npy"), x < 5)


def test_what_is_wrong_with_a_job(session):
    x = session.from_buffer(np.arange(3.0), False)
    for expression, kind in (("x +", errors.BadExpression), ("y", errors.UnknownName),
                             ("sqrt(x, x)", errors.BadArity), ("x + ones", errors.UnknownName)):
        with pytest.raises(kind) as caught:
            session.run([(expression, None, None)], [("x", x)], None, 0, None)
        assert caught.value.code == kind.code and caught.value.message
    with pytest.raises(errors.BadArgument, match="abacus"):
        session.run([("x", None, None)], [("x", x)], "abacus", 0, None)
    with pytest.raises(errors.LimitExceeded):
        session.run([("x", None, None)] * 17, [("x", x)], None, 0, None)
    with pytest.raises(errors.LimitExceeded):
        session.run([("x", None, None)], [(f"x{i}", x) for i in range(65)], None, 0, None)


def test_arrays_of_another_session_are_refused(session, daemon):
    other = connect(daemon)
    x = other.new("<f8", (3,), True)
    with pytest.raises(errors.BadArgument, match="another session"):
        session.run([("x", None, None)], [("x", x)], None, 0, None)
    with pytest.raises(errors.BadArgument, match="another session"):
        session.run([("1", None, x)], [], None, 0, None)
    job = other.submit([("1.0", None, None)], [], None, 0, None, False)
    with pytest.raises(TypeError, match="another session"):
        session.wait_any([job], 0)
    job.wait(None)
    other.close()


def test_a_plan(session):
    x = session.from_buffer(np.zeros((400, 500), "f4").T, False)
    plan = session.plan([("x * 2", "a", None), ("sum(x)", None, None)], [("x", x)], None)
    assert plan.outputs[0] == ("<f4", (500, 400), True) and plan.outputs[1][:2] == ("<f4", ())
    assert plan.engine == "cpu" and plan.n_tiles >= 1 and "float32" in plan.text
    chosen = [one for one in plan.engines if one["chosen"]]
    assert [one["engine"] for one in chosen] == [plan.engine] and chosen[0]["why_not"] == ""
    assert chosen[0]["seconds"] == plan.seconds and chosen[0]["behind_seconds"] >= 0
    assert chosen[0]["bound"] in ("start", "memory", "file", "disk", "link", "work")
    assert plan.engine_why.startswith("auto: ") and plan.engine_why in plan.text
    assert plan.read_bytes == 800_000 and plan.write_bytes >= 800_004 and plan.seconds > 0
    with pytest.raises(errors.BadShape):
        session.plan([("x + y", None, None)], [("x", x), ("y", session.new("<f8", (3,), True))],
                     None)


def test_waiting_for_any(session, endless):
    slow = endless.submit(session)
    assert session.wait_any([], 0) == [] and session.wait_any([slow], 0) == []
    quick = session.submit([("1 + 1", None, None)], [], None, 0, None, False)
    assert session.wait_any([slow, quick], None) == [quick]
    assert session.wait_any([quick], None) == [quick]
    session.wake()
    session.wake()
    assert session.wait_any([slow], None) == []
    assert session.wait_any([slow], 0.001) == []
    slow.cancel()
    assert session.wait_any([slow], None) == [slow]
    with pytest.raises(TypeError):
        session.wait_any([slow, None], 0)
    with pytest.raises(ValueError):
        session.wait_any([slow], float("nan"))


def test_a_job_that_dies_is_cancelled_and_its_arrays_live_as_long(session, endless, daemon):
    x = np.zeros(1000)
    seen = weakref.ref(x)
    job = endless.submit(session, extra=x)
    del x, job
    gc.collect()
    end = time.monotonic() + 20
    while seen() is not None and time.monotonic() < end:  # the daemon says that it has ended
        session.ping()
    assert seen() is None


def test_types_are_made_by_sessions_only():
    for kind in (_core.Array, _core.Job, _core.Plan):
        with pytest.raises(TypeError):
            kind()
        with pytest.raises(TypeError):
            type("Sub", (kind,), {})


# The end


def test_a_program_that_just_ends(daemon):
    """With jobs that run, functions that are called, and views that are held."""
    program = """
import sys, threading
from gpuarrayd import _core
session = _core.Session(sys.argv[1], None, False, None, 10.0)
begun = threading.Event()
def read(start, count, block):
    begun.set()
    block[:] = bytes(len(block))
source = session.from_blocks("<f8", (1000, 1000, 1000), read, None)
job = session.submit([("sum(x)", None, None)], [("x", source)], None, 0, None, False)
threading.Thread(target=lambda: session.wait_any([job], None), daemon=True).start()
begun.wait()
view = memoryview(session.new("<f8", (1000,), True))
"""
    done = subprocess.run([sys.executable, "-c", program, daemon.socket], capture_output=True,
                          timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


class Endless:
    """A job that ends only when it is cancelled: its source waits."""

    def __init__(self):
        self.free = threading.Event()

    def submit(self, session, extra=None):
        def read(start, count, block):
            self.free.wait(0.001)
            block[:] = bytes(len(block))

        source = session.from_blocks("<f8", (1 << 14, 1 << 20), read, None)
        args = [("x", source)]
        if extra is not None:
            args.append(("y", session.from_buffer(extra, False)))
        text = "sum(x)" if extra is None else "sum(x) + sum(y)"
        return session.submit([(text, None, None)], args, None, 0, "endless", True)


@pytest.fixture
def endless():
    made = Endless()
    yield made
    made.free.set()
