"""Pipes: npy on standard input and standard output of gpuarrayctl run, and who leaves or waits."""

import io
import json
import os
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest
import zarr

import conftest


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def run(daemon, *words, data=b"", folder=None, verb="run"):
    return subprocess.run([str(conftest.CTL), verb, *map(str, words)], input=data, capture_output=True,
                          timeout=60, cwd=folder, env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})


def begin(daemon, *words, **kwargs):
    return subprocess.Popen([str(conftest.CTL), "run", *map(str, words)], stdin=subprocess.PIPE, bufsize=0,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket}, **kwargs)


def until_it_reads(pid):
    """From its standard input: system call 0, descriptor 0."""
    for _ in range(3000):
        with open(f"/proc/{pid}/syscall") as file:
            if file.read().startswith("0 0x0 "):
                return
        time.sleep(0.01)
    raise AssertionError("it does not read")


def failed(done, code, *texts):
    assert done.returncode == 1 and done.stdout == b"", done
    said = done.stderr.decode()
    assert f"[{code}]" in said, said
    for text in texts:
        assert text in said, said


@pytest.mark.parametrize("dtype", ["f4", ">f8", "i2", "?"])
@pytest.mark.parametrize("shape", [(100_000, 7), (3, 300_000), (5,), (0, 3), (1, 1, 9)])
def test_what_comes_in_goes_out(daemon, dtype, shape):
    a = (np.arange(np.prod(shape)).reshape(shape) % 251).astype(dtype)
    done = run(daemon, "a == a", "a=-", "-o", "-", data=npy(a))
    assert done.returncode == 0 and done.stderr == b"", done
    got = np.load(io.BytesIO(done.stdout))
    assert got.dtype == bool and got.shape == shape and got.all()
    done = run(daemon, "where(a > 7, a, a)", "a=-", "-o", "-", data=npy(a))
    got = np.load(io.BytesIO(done.stdout))
    assert got.dtype == np.dtype(dtype).newbyteorder("=") and np.array_equal(got, a)


def test_nan_and_reductions(daemon, folder):
    a = np.random.default_rng(1).normal(size=(200_000, 3))
    a[::7] = np.nan
    done = run(daemon, "nansum(a, axis=0)", "a=-", "-o", "-", data=npy(a))
    assert np.allclose(np.load(io.BytesIO(done.stdout)), np.nansum(a, axis=0))
    done = run(daemon, "nanmax(a)", "a=-", "-o", "-", data=npy(a))
    assert np.load(io.BytesIO(done.stdout)) == np.nanmax(a)
    done = run(daemon, "s = sum(a, axis=1); d = a * 2", "a=-", "-o", "s=s.npy", "-o", "d=-", data=npy(a),
               folder=folder)
    assert np.array_equal(np.load(io.BytesIO(done.stdout)), a * 2, equal_nan=True)
    assert np.allclose(np.load(folder / "s.npy"), a.sum(axis=1), equal_nan=True)


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "i8"])
def test_reductions_of_all_beside_those_along_the_first_axis(daemon, dtype):
    a = (np.random.default_rng(5).normal(size=(30_001, 5, 7)) * 40).astype("f8").astype(dtype)
    b = a.astype("f8") if dtype == "f4" else a  # NumPy adds up rows in float32
    wanted = {"sum(a, axis=0)": b.sum(axis=0), "mean(a)": b.mean(), "max(a)": b.max(), "min(a)": b.min(), "sum(a)": b.sum(),
              "sum(a, axis=(0, 2), keepdims=True)": b.sum(axis=(0, 2), keepdims=True), "prod(a % 2)": (b % 2).prod(),
              "count_nonzero(a, axis=(0, 1))": np.count_nonzero(a, axis=(0, 1)), "any(a > 1000)": (a > 1000).any(),
              "std(a, axis=0)": b.std(axis=0), "sum(a, where=a > 3)": b.sum(where=a > 3)}
    text = "; ".join(f"r{i} = {expression}" for i, expression in enumerate(wanted))
    for word, data in (("-", npy(a)), (f"-:{dtype}:?x5x7", a.tobytes())):
        done = run(daemon, text, f"a={word}", "--json", data=data)
        assert done.returncode == 0, done.stderr
        results = json.loads(done.stdout)["outputs"]
        for i, (expression, want) in enumerate(wanted.items()):
            got = next(one for one in results if one["name"] == f"r{i}")
            assert tuple(got["shape"]) == np.shape(want), expression
            assert np.allclose(np.array(got["data"], dtype="f8").reshape(np.shape(want)), want, rtol=1e-5), expression


def test_what_cannot_be_streamed_says_so_and_writes_nothing(daemon):
    a = npy(np.ones((3000, 300)))
    failed(run(daemon, "a - mean(a)", "a=-", "-o", "-", data=a), "bad-argument", "in several passes")
    for text in ("s = sum(a, axis=0); m = mean(a, axis=1)", "s = sum(a, axis=0); m = std(a)"):
        failed(run(daemon, text, "a=-", "-o", "s=-", "-o", "m=m.npy", data=a), "bad-argument",
               "reduces it along different axes", "max(a), mean(a) and the like beside sum(a, axis=0)", "tee >(")
    failed(run(daemon, "a.T @ a", "a=-", "-o", "-", data=npy(np.ones((40, 30)))),
           "bad-argument", "matrix product")
    failed(run(daemon, "a +", "a=-", "-o", "-", data=a), "bad-expression")
    failed(run(daemon, "a + 1", "a=-", "-o", "-", data=npy(np.asfortranarray(np.ones((9, 9))))),
           "bad-format", "Fortran order")
    failed(run(daemon, "a + 1", "a=-", "-o", "-", data=b"hello"), "bad-format")
    failed(run(daemon, "a + 1", "a=-", "-o", "-", data=a[:100]), "short-read")


def test_too_little_and_too_much(daemon, folder):
    a = npy(np.ones((30_000, 30)))
    done = run(daemon, "sum(a)", "a=-", data=a[:-8])
    failed(done, "short-read", "expected: 7200000 bytes of elements", "found:    7199992 bytes")
    failed(run(daemon, "sum(a)", "a=-", data=a + b"x"), "bad-shape", "expected: 7200000 bytes of elements")
    failed(run(daemon, "a + 1", "a=-", "-o", "r.npy", data=a[:-1], folder=folder), "short-read")
    assert not os.listdir(folder)


def test_what_nobody_knows_of_a_stream_is_said_to_be_unknown(daemon):
    """Before its end: how many tiles there are, in lists and plans; and it does not come twice."""
    a = np.ones((200_000, 5))
    with begin(daemon, "sum(a)", "a=-:f8:?x5", "--label", "open") as process:
        process.stdin.write(a[:100_000].tobytes())
        while "running" not in daemon.ctl("jobs").stdout and process.poll() is None:
            time.sleep(0.02)
        [one] = [job for job in json.loads(daemon.ctl("jobs", "--json").stdout) if job["label"] == "open"]
        assert one["tiles"] is None
        assert "/? " in daemon.ctl("jobs").stdout and " of ?\n" in daemon.ctl("status", one["job"]).stdout
        process.stdin.write(a[100_000:].tobytes())
        process.stdin.close()
        assert process.wait(30) == 0 and float(process.stdout.read()) == a.sum()
    ended = json.loads(daemon.ctl("status", one["job"], "--json").stdout)
    assert ended["tiles"] == ended["tiles_done"] > 0
    plan = run(daemon, "a * 2", "a=-:f8:?x5", "--explain", data=a.tobytes()).stdout.decode()
    assert "(?, 5): tiles in grains of " in plan and "restarts no" in plan, plan
    plan = json.loads(run(daemon, "a * 2", "a=-:f8:?x5", "--explain", "--json", data=a.tobytes()).stdout)
    assert plan["tiles"] is None and plan["seconds"] is None and plan["outputs"][0]["shape"] == [None, 5]
    assert plan["passes"][0]["shape"] == [None, 5] and plan["passes"][0]["tiles"] is None
    assert plan["restartable"] is False


def test_parts_and_raw_bytes_of_standard_input(daemon):
    a = np.arange(6.0).tobytes()
    for verb, *words in (("show", "--", "-[3]"), ("info", "--", "-:f8:6[0:5]"), ("run", "sum(a)", "a=-[0:5]")):
        failed(run(daemon, *words, data=a, verb=verb), "bad-argument", "has no parts: it comes once")
    failed(run(daemon, "sum(a)", "a=-", data=a), "bad-format", "-:DTYPE:SHAPE")


def test_words(daemon):
    for words in (["a + b", "a=-", "b=-"], ["a; b", "a=1", "-o", "-"], ["a", "a=1", "-o", "-", "--json"],
                  ["a", "a=1", "-o", "-", "--csv"], ["a", "a=1", "-o", "-", "--in-place"],
                  ["x = a; y = a", "a=1", "-o", "x=-"], ["x = a; y = a", "a=1", "-o", "x=-", "-o", "y=-"]):
        done = run(daemon, *words)
        assert done.returncode in (1, 2) and b"np" not in done.stdout, done
    done = daemon.ctl("submit", "a * 2", "a=-", "-o", "r.npy", check=False)
    assert done.returncode == 2 and "a job in the background has no pipe" in done.stderr


def test_a_reader_that_leaves_ends_it(daemon, w, folder):
    np.save(folder / "a.npy", np.ones(3_000_000))
    with begin(daemon, "a * 2", "a=a.npy", "-o", "-", cwd=folder) as process:
        assert process.stdout.read(6) == b"\x93NUMPY"
        process.stdout.close()
        assert process.wait(30) == -signal.SIGPIPE
        assert process.stderr.read() == b""


@pytest.mark.parametrize("number, code", [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_stream_that_is_ended_in_the_middle(daemon, w, number, code):
    data = npy(np.ones(2_000_000))
    with begin(daemon, "a * 2", "a=-", "-o", "-") as process:
        process.stdin.write(data[:1_000_000])
        process.stdin.flush()
        assert process.stdout.read(6) == b"\x93NUMPY"  # it runs
        process.send_signal(number)
        assert process.wait(30) == code


def test_a_worker_that_is_lost_is_not_given_the_stream_again(start):
    """What came is gone with it; the next job finds another worker."""
    daemon = start()
    data = npy(np.ones(2_000_000))
    with begin(daemon, "a * 2", "a=-", "-o", "-") as process:
        process.stdin.write(data[:1_000_000])
        assert process.stdout.read(6) == b"\x93NUMPY"
        os.kill(daemon.worker_pid(), signal.SIGKILL)
        assert process.wait(30) == 1
        assert b"[worker-lost]" in process.stderr.read()
    done = run(daemon, "sum(a)", "a=-", data=data)
    assert float(done.stdout) == 2_000_000


def test_streams_that_wait_keep_nobody_waiting(daemon, w, folder):
    """More of them than the daemon has threads, with results in its pool, and some that nobody
    takes from; then the jobs of another client, which end before any of these."""
    a = np.arange(1_000_000.0)
    np.save(folder / "a.npy", a)
    data = npy(a)
    sums = [begin(daemon, "sum(a)", "a=-") for _ in range(4)]
    for process in sums:
        process.stdin.write(data[:4_000_000])
        process.stdin.flush()
    takers = [begin(daemon, "a + 1", "a=a.npy", "-o", "-", cwd=folder) for _ in range(2)]
    for process in takers:
        assert process.stdout.read(6) == b"\x93NUMPY"
    for _ in range(5):
        assert float(daemon.ctl("run", "sum(a)", "a=a.npy", cwd=folder).stdout) == a.sum()
        daemon.ctl("run", "a * 2", "a=a.npy", "-o", "b.npy", cwd=folder)
    for process in sums + takers:
        assert process.poll() is None
    for process in sums:
        out, _ = process.communicate(data[4_000_000:], timeout=60)
        assert float(out) == a.sum()
    for process in takers:
        out, _ = process.communicate(timeout=60)
        assert np.array_equal(np.load(io.BytesIO(b"\x93NUMPY" + out)), a + 1)


@pytest.mark.parametrize("n", [0, 1, 21845, 100_003])
def test_as_many_elements_as_come(daemon, folder, n):
    a = np.random.default_rng(n).normal(size=(n, 3)).astype("f4")
    done = run(daemon, "a * -1", "a=-:f4:?x3", "-o", "-:raw", data=a.tobytes())
    assert done.returncode == 0 and done.stderr == b"", done
    assert done.stdout == (-a).tobytes()
    done = run(daemon, "s = sum(a, axis=0); c = count_nonzero(a, axis=0)", "a=-:>f4:?x3", "-o", "c=c.npy", "-o",
               "s=-", data=a.astype(">f4").tobytes(), folder=folder)
    assert np.allclose(np.load(io.BytesIO(done.stdout)), a.sum(axis=0, dtype="f8"), rtol=1e-4, atol=1e-2)
    assert np.array_equal(np.load(folder / "c.npy"), np.count_nonzero(a, axis=0))
    done = run(daemon, "a + 1", "a=-:f4:?x3", "-o", "r.npy", data=a.tobytes(), folder=folder)
    assert done.returncode == 0 and np.array_equal(np.load(folder / "r.npy"), a + 1)
    done = run(daemon, "a + 1", f"a=-:f4:{n}x3", "-o", "-", data=a.tobytes())
    assert np.array_equal(np.load(io.BytesIO(done.stdout)), a + 1)


@pytest.mark.parametrize("n", [0, 1, 1999, 2000, 300_001])
def test_datasets_of_as_many_rows_as_come(daemon, folder, n):
    a = np.random.default_rng(n).normal(size=(n, 3)).astype("f4")
    done = run(daemon, "p = a * 2; q = a - 1; r = a > 0; s = a", "a=-:f4:?x3", "-o", "p=r.h5:/g/p", "-o", "q=r.zarr:/q",
               "-o", "r=r.h5:/r", "-o", "s=r.nc:/s", "--chunks", "1000x2", "--compress", "gzip:1", data=a.tobytes(),
               folder=folder)
    assert done.returncode == 0, done.stderr
    with h5py.File(folder / "r.h5") as file, h5py.File(folder / "r.nc") as netcdf:
        assert file["g/p"].maxshape == (None, 3) and np.array_equal(file["g/p"], a * 2)
        assert np.array_equal(file["r"], a > 0) and np.array_equal(netcdf["s"], a)
    assert np.array_equal(zarr.open(str(folder / "r.zarr"))["q"], a - 1)
    done = run(daemon, "a + 1", "a=-:f4:?x3", "-o", "s.zarr", "--chunks", "500x2", "--shards", "1000x4",
               data=a.tobytes(), folder=folder)
    assert done.returncode == 0 and np.array_equal(zarr.open(str(folder / "s.zarr")), a + 1), done.stderr
    done = run(daemon, "-:f4:?x3", "c.h5:/x", verb="convert", data=a.tobytes(), folder=folder)
    assert done.returncode == 0, done.stderr
    with h5py.File(folder / "c.h5") as file:
        assert np.array_equal(file["x"], a)
    failed(run(daemon, "a + 1", "a=-:f4:?x3", "-o", "r.h5:/bad", data=a.tobytes() + b"!", folder=folder), "short-read")
    with h5py.File(folder / "r.h5") as file:
        assert sorted(file) == ["g", "r"]


def test_what_is_wrong_with_elements_alone(daemon, folder):
    failed(run(daemon, "sum(a)", "a=-:f4:?x3", data=bytes(40)), "short-read", "in the middle of a row")
    failed(run(daemon, "sum(a)", "a=-:f4:5x3", data=bytes(40)), "short-read")
    failed(run(daemon, "a + 1", "a=-:f4:?x3", "-o", "-", data=bytes(24)), "bad-shape", "-:raw")
    failed(run(daemon, "a + 1", "a=-:f4:?x3", data=bytes(24)), "too-large-for-inline",
           "known at the end only")
    failed(run(daemon, "a - mean(a)", "a=-:f4:?x3", "-o", "-:raw", data=bytes(24)), "bad-argument",
           "in several passes")
    failed(run(daemon, "mean(a), max(a)", "a=-:f4:?", data=bytes(24)), "bad-expression", "m = mean(a); x = max(a)")
    done = run(daemon, "m = mean(a, axis=0); x = max(max(a, axis=0)); s = std(a, axis=0)", "a=-:f4:?x3", data=bytes(24))
    assert done.returncode == 0 and b"x = 0" in done.stdout
    failed(run(daemon, "max(a)", "a=-:f4:?x3"), "bad-shape", "zero-size array")
    failed(run(daemon, "sum(a)", "a=-:f4:3x?"), "bad-shape")
    failed(run(daemon, "sum(a)", "a=-:c8:?"), "bad-dtype")
    failed(run(daemon, "sum(a)", "a=x.raw:f4:?", folder=folder), "bad-shape", "through a pipe")
    assert run(daemon, "sum(a)", "a=-:f4:?", "-o", "-:npy").returncode == 2
    assert not os.listdir(folder)


def test_what_comes_is_told(daemon, folder):
    a = np.random.default_rng(3).normal(size=(5000, 3)).astype("f4")
    a[7, 1] = np.nan
    np.save(folder / "a.npy", a)
    for verb in ("show", "info"):
        want = json.loads(daemon.ctl(verb, "a.npy", "--json", cwd=folder).stdout)
        for word, data, shape in (("-", npy(a), [5000, 3]), ("-:f4:?x3", a.tobytes(), [None, 3])):
            got = json.loads(run(daemon, word, "--json", data=data, verb=verb).stdout)
            assert got["shape"] == (shape if verb == "info" else [5000, 3])
            for name in ("min", "mean", "max", "nan", "dtype"):
                assert got.get(name) == want.get(name), name
    said = run(daemon, "-", data=npy(np.array([1e308, 1.5e308])), verb="show").stdout
    assert b"mean 1.25e+308 " in said and b"no histogram: it takes a second pass" in said
    for n, word in ((0, "-:i4:?"), (3, "-:i4:?"), (0, "-:f8:?")):
        got = json.loads(run(daemon, word, "--json", data=bytes(4 * n), verb="show").stdout)
        assert got["shape"] == [n] and got["max"] == (0 if n else "nan")
    assert b"(?, 3)" in run(daemon, "-:u1:?x3", verb="info").stdout
    failed(run(daemon, "-", data=npy(a)[:-1], verb="show"), "short-read")
    assert os.listdir(folder) == ["a.npy"]


def test_what_reads_in_another_order_takes_standard_input_whole(daemon, folder):
    """By way of a file without a name, of which nothing is left."""
    a = np.random.default_rng(4).normal(size=(700, 30)).astype("f4")
    rows = np.array([699, 0, 5, 5])
    np.save(folder / "a.npy", a)
    np.save(folder / "rows.npy", rows)
    environment = {**os.environ, "GPUARRAYD_SOCKET": daemon.socket, "TMPDIR": str(folder)}

    def gives(want, verb, *words, data=npy(a), **kwargs):
        done = subprocess.run([str(conftest.CTL), verb, *words, "-o", "r.npy"], input=data, capture_output=True,
                              cwd=folder, env=environment, timeout=60, **kwargs)
        assert done.returncode == 0, done.stderr
        assert np.array_equal(np.load(folder / "r.npy"), want), verb
        assert sorted(os.listdir(folder)) == ["a.npy", "r.npy", "rows.npy"]

    gives(a.T, "transpose", "-")
    gives(a.T, "transpose", "-", data=npy(np.asfortranarray(a)))
    gives(a.T.astype("f4"), "transpose", "-:>f4:?x30", data=a.astype(">f4").tobytes())
    gives(a[rows], "take", "-", "rows.npy")
    gives(a[rows], "take", "a.npy", "-", data=npy(rows))
    gives(np.concatenate([a, a[::-1]]), "concatenate", "a.npy", "-", data=npy(a[::-1].copy()))
    gives(np.stack([a, a]), "stack", "-", "a.npy")
    gives(np.diff(a, axis=0), "diff", "-", "--axis", "0")
    gives(np.roll(a, 3, axis=1), "roll", "-", "--shift", "3", "--axes", "1")
    gives(np.pad(a, 1), "pad", "-", "--width", "1")
    gives(a[:0].T, "transpose", "-", data=npy(a[:0]))
    subprocess.run([str(conftest.CTL), "shuffle", "a.npy", "-o", "s.npy"], cwd=folder, env=environment, check=True)
    shuffled = np.load(folder / "s.npy")
    (folder / "s.npy").unlink()
    gives(shuffled, "shuffle", "-")
    with open(folder / "a.npy", "rb") as file:  # a file stays where it is
        done = subprocess.run([str(conftest.CTL), "matmul", "-", "a.npy", "--transpose-a", "-o", "m.npy"], stdin=file,
                              cwd=folder, capture_output=True, env={**environment, "TMPDIR": "/nowhere"}, timeout=60)
    assert done.returncode == 0 and np.allclose(np.load(folder / "m.npy"), a.T @ a, rtol=1e-4, atol=1e-3), done.stderr
    for word, data, code, text in (
            ("-", npy(a)[:-4], "short-read", "expected: 84000 bytes of elements"),
            ("-", npy(a) + b"x", "bad-shape", "more than its array"), ("-", b"hello", "bad-format", "-:DTYPE:SHAPE"),
            ("-:f4:?x30", bytes(130), "short-read", "in the middle of a row"), ("-:f4:?x0", b"", "bad-shape", ""),
            ("-:f4:2x3", bytes(20), "short-read", "")):
        failed(run(daemon, word, "-o", "n.npy", data=data, folder=folder, verb="transpose"), code, text)
    failed(run(daemon, "-", "-", "-o", "n.npy", data=npy(a), folder=folder, verb="concatenate"), "bad-argument",
           "named twice")
    for verb, word in (("transpose", "-"), ("transpose", "-:f4:9x9"), ("show", "-")):  # nothing comes, and Ctrl-C
        more = ["-o", "n.npy"] * (verb == "transpose")
        with subprocess.Popen([str(conftest.CTL), verb, *more, "--", word], stdin=subprocess.PIPE, cwd=folder,
                              stderr=subprocess.PIPE, env=environment) as process:
            until_it_reads(process.pid)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130, process.stderr.read()
    assert not (folder / "n.npy").exists()
