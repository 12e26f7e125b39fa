"""What bad input gets: a stable code, the argument it is about, the numbers; and a daemon that goes
on as before (the `w` fixture compares the counts)."""

import os
import socket

import numpy as np
import pytest

import wire
from wire import Error, described, file_at


def refused(w, code, expr="a + 1", argument=None, fds=(), to=None, method="job.run", **args):
    """The error of a job that must be refused with this code."""
    with pytest.raises(Error) as caught:
        w.run(expr, fds=fds, to=to, method=method, **args)
    error = caught.value
    assert error.code == code, f"{error.fields}"
    if argument is not None:
        assert error.argument == argument, error.fields
    w.call("ping")
    return error


def file_of(folder, array, name="a.raw", flags=os.O_RDONLY):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(np.asarray(array).tobytes())
    return os.open(path, flags)


A = np.arange(1000.0)


# -- expressions -----------------------------------------------------------------------------------

@pytest.mark.parametrize("expr, code, words", [
    ("a * sqr(a)", "unknown-name", ["column 5", "'sqr'", "'sqrt'"]),
    ("a + bb", "unknown-name", ["column 5", "'bb'"]),
    ("sqrt(a, a)", "bad-arity", ["sqrt", "1", "2"]),
    ("where(a, a)", "bad-arity", ["where", "3", "2"]),
    ("sqrt()", "bad-arity", ["sqrt"]),
    ("a +", "bad-expression", ["column"]),
    ("(a", "bad-expression", ["column"]),
    ("a)", "bad-expression", ["column"]),
    ("", "bad-expression", []),
    ("a $ a", "bad-expression", ["column 3"]),
    ("a & 1.5", "bad-dtype", []),
    ("a if a else a", "bad-expression", []),
    ("0 < a < 1", "bad-expression", []),
    ("a and a", "bad-expression", []),
    ("min(b)", "bad-shape", ["zero-size"]),
])
def test_expressions_are_explained(w, expr, code, words):
    error = refused(w, code, expr, a=A[:10], b=np.zeros(0))
    for word in words:
        assert word in error.message, error.message


def test_shapes_that_do_not_broadcast(w):
    error = refused(w, "bad-shape", "a + b", a=np.zeros((3, 4)), b=np.zeros(5))
    assert "(3, 4)" in error.message and "(5,)" in error.message


@pytest.mark.parametrize("expr", ["(" * 5000 + "a" + ")" * 5000, "-" * 15000 + "a",
                                  "+".join(["a"] * 8000), "a" * 17000,
                                  "sqrt(" * 3000 + "a" + ")" * 3000, "a" + "**a" * 5000])
def test_no_text_passes_the_limits(w, expr):
    with pytest.raises(Error) as caught:
        w.run(expr, a=A[:10])
    assert caught.value.code in ("limit-exceeded", "bad-expression", "unknown-name")


def test_deep_but_fair_expressions_work(w):
    expr = "(" * 50 + "a" + ")" * 50
    assert np.array_equal(w.compute(expr, a=A[:10]), A[:10])
    assert np.array_equal(w.compute("+".join(["a"] * 300), a=A[:10]), A[:10] * 300)


# -- arrays that cannot be -------------------------------------------------------------------------

@pytest.mark.parametrize("shape", [[-1], [2**62, 2**62], [2**63 - 1, 8], [1] * 33, [2**61], [3, -4]])
@pytest.mark.parametrize("kind", ["inline", "region", "file"])
def test_absurd_shapes(w, folder, shape, kind):
    region = wire.Region(w, 4096) if kind == "region" else None
    at = {"inline": {"kind": "inline", "data": b""}, "file": file_at(0),
          "region": region.at() if region else None}[kind]
    fds = [file_of(folder, A)] if kind == "file" else []
    with pytest.raises(Error) as caught:
        w.run("a + 1", fds=fds, a={"dtype": "<f8", "shape": shape, "at": at})
    assert caught.value.code in ("bad-shape", "bad-extent", "bad-region", "limit-exceeded",
                                 "short-read")
    assert caught.value.argument == "a"
    for fd in fds:
        os.close(fd)
    if region:
        w.call("region.detach", region=region.id)


def test_offsets_and_strides_that_overflow(w):
    region = wire.Region(w, 4096)
    for array in ({"offset": 2**64 - 8}, {"offset": 2**63}, {"offset": 4096}, {"offset": 4089},
                  {"strides": [2**62]}, {"strides": [-8]}, {"strides": [2**63 - 1]}):
        at = {**region.at(), "offset": array.get("offset", 0)}
        a = {"dtype": "<f8", "shape": [16], "at": at}
        if "strides" in array:
            a["strides"] = array["strides"]
        with pytest.raises(Error) as caught:
            w.run("a + 1", a=a)
        assert caught.value.code in ("bad-extent", "bad-region", "bad-request"), caught.value.fields
    w.call("region.detach", region=region.id)


def test_inline_data_of_another_size(w):
    for data in (b"", b"1234567", b"x" * 17):
        error = refused(w, "bad-extent", a={"dtype": "<f8", "shape": [2],
                                            "at": {"kind": "inline", "data": data}})
        assert error.argument == "a"


@pytest.mark.parametrize("dtype", ["<f2", "<c16", "|O", "<U8", "f", "", "<f4" * 9, "<i3", "|V8"])
def test_dtypes_that_are_not_served(w, dtype):
    refused(w, "bad-dtype", argument="a",
            a={"dtype": dtype, "shape": [0], "at": {"kind": "inline", "data": b""}})


def test_results_too_large_for_the_message(w):
    error = refused(w, "too-large-for-inline", "a + b", a=np.zeros((200, 1)), b=np.zeros((1, 200)))
    assert "65536" in error.expected + error.message
    assert "320000" in error.found + error.message


# -- descriptors -----------------------------------------------------------------------------------

def test_descriptors_of_the_wrong_kind(w, folder):
    read, write = os.pipe()
    a, b = socket.socketpair()
    kinds = {"directory": os.open(folder, os.O_RDONLY), "pipe": read, "socket": a.fileno(),
             "device": os.open("/dev/zero", os.O_RDONLY),
             "null": os.open("/dev/null", os.O_RDWR),
             "path": os.open(folder, os.O_PATH)}
    for name, fd in kinds.items():
        refused(w, "bad-descriptor", argument="a", fds=[fd], a=described(A, file_at(0)))
        refused(w, "bad-descriptor", fds=[fd], a=A[:10], expr="a",
                to=described(A[:10], file_at(0)))
    proc = os.open("/proc/self/status", os.O_RDONLY)
    with pytest.raises(Error) as caught:
        w.run("a + 1", fds=[proc], a=described(A[:1], file_at(0)))
    assert caught.value.code in ("bad-descriptor", "use-provider")
    for fd in (*list(kinds.values())[3:], kinds["directory"], proc, read, write):
        os.close(fd)
    a.close(), b.close()


def test_a_file_shorter_than_announced(w, folder):
    fd = file_of(folder, A[:999])
    error = refused(w, "short-read", argument="a", fds=[fd], a=described(A, file_at(0)))
    assert "8000" in error.expected and "7992" in error.found
    os.close(fd)


def test_read_only_and_append_outputs(w, folder):
    fd = file_of(folder, A)
    refused(w, "read-only", expr="a", fds=[fd], a=A[:10], to=described(A[:10], file_at(0)))
    os.close(fd)
    fd = file_of(folder, A, flags=os.O_RDWR | os.O_APPEND)
    refused(w, "bad-descriptor", expr="a", fds=[fd], a=A[:10], to=described(A[:10], file_at(0)))
    os.close(fd)
    fd = file_of(folder, A, flags=os.O_WRONLY)
    refused(w, "bad-descriptor", argument="a", fds=[fd], a=described(A, file_at(0)))
    os.close(fd)


def test_descriptor_numbers(w, folder):
    fd = file_of(folder, A)
    for index in (1, 63, 2**31):
        refused(w, "bad-descriptor", fds=[fd], a=described(A, file_at(index)))
    refused(w, "bad-descriptor", a=described(A, file_at(0)))
    refused(w, "bad-descriptor", expr="a + b", fds=[fd], a=described(A, file_at(0)),
            b=described(A, file_at(0)))
    os.close(fd)


# -- regions ---------------------------------------------------------------------------------------

def attach_refused(w, fd, size, code="bad-region", writable=True):
    with pytest.raises(Error) as caught:
        w.call("region.attach", fds=[fd], size=size, writable=writable)
    assert caught.value.code == code, caught.value.fields
    os.close(fd)


def test_regions_that_are_not_sealed_or_have_holes(w, folder):
    attach_refused(w, wire.memfd(4096, seals=0), 4096)
    attach_refused(w, wire.memfd(4096, seals=wire.F_SEAL_SHRINK), 4096)
    attach_refused(w, wire.memfd(4096, seals=wire.F_SEAL_GROW), 4096)
    attach_refused(w, wire.memfd(1 << 20, fill=False), 1 << 20)
    attach_refused(w, wire.memfd(4096), 8192)
    attach_refused(w, wire.memfd(4096), 0)
    attach_refused(w, wire.memfd(4096), 2**63)
    with pytest.raises(Error) as caught:
        fd = file_of(folder, A)
        w.call("region.attach", fds=[fd], size=8000, writable=False)
    assert caught.value.code in ("bad-region", "bad-descriptor")
    os.close(fd)


def test_a_region_smaller_than_the_array(w):
    region = wire.Region(w, 4096)
    refused(w, "bad-extent", argument="a", a=described(A, region.at()))
    refused(w, "bad-extent", expr="a", a=A, to=described(A, region.at()))
    w.call("region.detach", region=region.id)


def test_regions_that_are_not_there(w):
    refused(w, "unknown-region", argument="a",
            a=described(A, {"kind": "region", "id": 4711, "offset": 0}))
    with pytest.raises(Error) as caught:
        w.call("region.detach", region=4711)
    assert caught.value.code == "unknown-region"


def test_a_region_that_is_punched(w):
    size = 64 << 20
    region = wire.Region(w, size)
    a = region.array("f8", (size // 16,))
    ident = w.send("job.run", outputs=[{"expr": "sum(a)"}],
                   args={"a": described(a, region.at())})
    os.posix_fadvise(region.fd, 0, 0, os.POSIX_FADV_NORMAL)
    punch(region.fd, 0, size)
    try:
        w.reply(ident)
    except Error as error:
        assert error.code in ("region-fault", "bad-region")
    # Now it has a hole for sure.
    punch(region.fd, 0, size)
    with pytest.raises(Error) as caught:
        w.call("region.attach", fds=[region.fd], size=size, writable=True)
    assert caught.value.code == "bad-region"
    assert w.compute("a + 1", a=A[:3]).tolist() == [1, 2, 3]
    w.call("region.detach", region=region.id)


def punch(fd, offset, size):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    keep_size, punch_hole = 1, 2
    assert libc.fallocate(fd, keep_size | punch_hole, ctypes.c_long(offset),
                          ctypes.c_long(size)) == 0


# -- outputs that overlap --------------------------------------------------------------------------

def test_overlapping_outputs(w, folder):
    region = wire.Region(w, 1 << 16)
    source = described(A, region.at(0))
    for offset in (8, 4096, 7992):
        refused(w, "overlapping-output", expr="a + 1", a=source, to=described(A, region.at(offset)))
    second = w.call("region.attach", fds=[region.fd], size=1 << 16, writable=True)["region"]
    refused(w, "overlapping-output", expr="a + 1", a=source,
            to=described(A, {"kind": "region", "id": second, "offset": 0}))
    fd = file_of(folder, np.arange(2000.0), flags=os.O_RDWR)
    again = os.open(os.path.join(folder, "a.raw"), os.O_RDWR)
    refused(w, "overlapping-output", expr="a + 1", fds=[fd, again],
            a=described(A, file_at(0)), to=described(A, file_at(1, 800)))
    with pytest.raises(Error) as caught:
        w.call("job.run", args={"a": wire.argument(A)},
               outputs=[{"expr": "a", "to": described(A, region.at(0))},
                        {"expr": "a + 1", "to": described(A, region.at(8))}])
    assert caught.value.code == "overlapping-output"
    os.close(fd), os.close(again)
    w.call("region.detach", region=second)
    w.call("region.detach", region=region.id)


def test_in_place_is_not_an_overlap(w, folder):
    region = wire.Region(w, 1 << 16)
    a = region.array("f8", (1000,))
    a[:] = A
    w.run("a*2 + 1", a=described(A, region.at()), to=described(A, region.at()))
    assert np.array_equal(a, A * 2 + 1)
    fd = file_of(folder, A, flags=os.O_RDWR)
    again = os.dup(fd)
    w.run("a*2 + 1", fds=[fd, again], a=described(A, file_at(0)), to=described(A, file_at(1)))
    assert np.array_equal(np.fromfile(os.path.join(folder, "a.raw")), A * 2 + 1)
    os.close(fd), os.close(again)
    w.call("region.detach", region=region.id)


# -- outputs that do not fit the result ------------------------------------------------------------

def test_outputs_of_another_shape_or_dtype(w):
    region = wire.Region(w, 1 << 16)
    error = refused(w, "bad-shape", expr="a + 1", a=A, to=described(A[:999], region.at()))
    assert "(1000,)" in error.message and "(999,)" in error.message
    refused(w, "bad-dtype", expr="a + 1", a=A, to=described(A.astype("i8"), region.at()))
    w.run("a + 1", a=A, to=described(A.astype("f4"), region.at()))
    assert np.array_equal(region.array("f4", (1000,)), (A + 1).astype("f4"))
    w.call("region.detach", region=region.id)


# -- requests that are not of the form -------------------------------------------------------------

@pytest.mark.parametrize("params", [
    {}, {"outputs": []}, {"outputs": [{"expr": "1"}] * 17, "args": {}}, {"outputs": "a"},
    {"outputs": [{"expr": 5}], "args": {}}, {"outputs": [{"expr": "a"}], "args": {"a": 5}},
    {"outputs": [{"expr": "a"}], "args": {"1a": {"scalar": 1}}},
    {"outputs": [{"expr": "a"}], "args": {"a": {"scalar": "x"}}},
    {"outputs": [{"expr": "a"}], "args": {f"a{i}": {"scalar": 1} for i in range(65)}},
    {"outputs": [{"expr": "a"}], "args": {"a": {"scalar": 1}}, "priority": 1000},
    {"outputs": [{"expr": "a"}], "args": {"a": {"scalar": 1}}, "engine": "quantum"},
    {"outputs": [{"expr": "a"}], "args": {"a": {"dtype": "<f8", "shape": "x"}}},
    {"outputs": [{"expr": "a"}], "args": {"a": {"dtype": "<f8", "shape": [1]}}},
    {"outputs": [{"expr": "a"}], "args": {"a": {"dtype": "<f8", "shape": [1],
                                               "at": {"kind": "wormhole"}}}},
])
def test_requests_of_another_form(w, params):
    with pytest.raises(Error) as caught:
        w.call("job.run", **params)
    assert caught.value.code in ("bad-request", "limit-exceeded", "no-engine",
                                 "bad-shape"), caught.value.fields


def test_unknown_methods_keys_jobs_and_engines(w):
    with pytest.raises(Error) as caught:
        w.call("job.levitate")
    assert caught.value.code == "unknown-method"
    w.call("ping", something="else")
    for method in ("job.wait", "job.status", "job.cancel", "job.settle"):
        with pytest.raises(Error) as caught:
            w.call(method, job=4711)
        assert caught.value.code == "unknown-job"
    with pytest.raises(Error) as caught:
        w.call("job.run", outputs=[{"expr": "1 + a"}], args={"a": {"scalar": 1}}, engine="cuda")
    assert caught.value.code == "no-engine"


def test_a_pool_too_small_for_one_tile(start, folder):
    daemon = start(pool="256K")
    fd = file_of(folder, A)
    with daemon.connect() as w:
        error = refused(w, "too-large-for-pool", fds=[fd], expr="sum(a)", a=described(A, file_at(0)))
        assert "524288" in error.expected and "262144" in error.found
        assert w.compute("a + 1", a=A[:3]).tolist() == [1, 2, 3]
    os.close(fd)


def test_negative_integer_powers(w):
    refused(w, "negative-integer-power", expr="a ** b", a=np.array([2, 3]), b=np.array([2, -1]))
