"""Jobs whose arrays are many times the pool: same results and same bits whatever the pool and the
threads; files that are cut, disks that fill up, jobs that are cancelled, waited for and settled."""

import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import pytest

import wire
from conftest import IS_SANITIZED, some
from wire import Error, described, file_at

MIB = 1 << 20


@pytest.fixture(scope="module")
def big():
    """256 MiB of float32 on disk (sparse files would not be read); under sanitizers 128 MiB."""
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-") as path:
        a = np.random.default_rng(6).normal(size=(32 if IS_SANITIZED else 64) * MIB).astype("f4")
        a.tofile(os.path.join(path, "big.raw"))
        yield pathlib.Path(path), a


def output_fd(folder, n_bytes, name="out.raw"):
    fd = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.posix_fallocate(fd, 0, n_bytes)
    return fd


@pytest.mark.values
@pytest.mark.parametrize("pool, threads", some([("2M", 1), ("2M", 2), ("8M", 2), ("8M", 5),
                                               ("64M", 3)], 2))
def test_files_many_times_the_pool(start, big, pool, threads):
    folder, a = big
    daemon = start(pool=pool, threads=threads)
    source = os.open(folder / "big.raw", os.O_RDONLY)
    out = output_fd(folder, a.nbytes)
    before = daemon.counts()
    with daemon.connect() as w:
        result = w.call("job.run", fds=[source, out],
                        args={"a": described(a, file_at(0))},
                        outputs=[{"name": "r", "expr": "sqrt(a*a + 1)", "to": described(a, file_at(1))},
                                 {"name": "s", "expr": "sum(a)"}, {"name": "m", "expr": "mean(a)"},
                                 {"name": "x", "expr": "max(a)"},
                                 {"name": "n", "expr": "count_nonzero(a > 0)"}])
    got = np.fromfile(folder / "out.raw", "f4")
    assert np.array_equal(got, np.sqrt(a * a + np.float32(1)))
    values = {o["name"]: wire.result_array(o)[()] for o in result["outputs"] if "data" in o}
    exact = a.astype("f8").sum()
    assert values["s"] == np.float32(exact) or abs(values["s"] - exact) <= np.spacing(np.float32(exact))
    assert values["x"] == a.max() and values["n"] == np.count_nonzero(a > 0)
    # The same bits for every pool and number of threads.
    bits = b"".join(o["data"] for o in result["outputs"] if "data" in o)
    first = test_files_many_times_the_pool.__dict__.setdefault("bits", bits)
    assert bits == first
    assert result["read_bytes"] >= a.nbytes and result["write_bytes"] >= a.nbytes
    daemon.wait_for_counts(before)
    os.close(source), os.close(out)


@pytest.mark.parametrize("pool", ["2M", "8M"])
def test_layouts_of_files(start, big, pool):
    folder, _ = big
    daemon = start(pool=pool)
    rng = np.random.default_rng(7)
    a = rng.integers(-1000, 1000, (1500, 1700)).astype(">i4")
    b = rng.normal(size=(1700,))
    np.asfortranarray(a).T.tofile(folder / "f.raw")
    b.tofile(folder / "b.raw")
    fds = [os.open(folder / "f.raw", os.O_RDONLY), os.open(folder / "b.raw", os.O_RDONLY),
           output_fd(folder, a.size * 8)]
    want = a * b
    with daemon.connect() as w:
        w.run("a * b", fds=fds, to=described(want, file_at(2)),
              a=described(a, file_at(0), np.asfortranarray(a).strides), b=described(b, file_at(1)))
        assert np.array_equal(np.fromfile(folder / "out.raw").reshape(want.shape), want)
        # Every second column, from the end, of the transposed file
        view = np.asfortranarray(a)[::-3, ::2]
        offset = (a.shape[0] - 1) * 4
        w.run("a + 1", fds=[fds[0], fds[2]], to=described((view + 1).astype("i4"), file_at(1)),
              a=described(view, file_at(0, offset), view.strides))
        got = np.fromfile(folder / "out.raw", "i4")[:view.size].reshape(view.shape)
        assert np.array_equal(got, view.astype("i4") + 1)
    for fd in fds:
        os.close(fd)


def chunked(folder, a, chunk, absent=(), shuffle=True):
    """Writes `a` in chunks in random order; the file's and the table's descriptors."""
    grid = [-(-n // c) for n, c in zip(a.shape, chunk)]
    n_chunks = int(np.prod(grid))
    order = np.random.default_rng(8).permutation(n_chunks) if shuffle else np.arange(n_chunks)
    size = int(np.prod(chunk)) * a.itemsize
    table = np.zeros((n_chunks, 2), "u8")
    with open(folder / "chunks.raw", "wb") as f:
        f.write(b"header")
        for index in order:
            at = np.unravel_index(index, grid)
            block = np.zeros(chunk, a.dtype)
            part = a[tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, chunk))]
            block[tuple(slice(0, n) for n in part.shape)] = part
            if index in absent:
                table[index] = 2**64 - 1, size
                a[tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, chunk))] = 0
                continue
            table[index] = f.tell(), size
            f.write(block.tobytes())
    memfd = wire.memfd(max(table.nbytes, 16), seals=0)
    os.pwrite(memfd, table.tobytes(), 0)
    import fcntl
    fcntl.fcntl(memfd, wire.F_ADD_SEALS, 2 | 4 | 8)
    at = {"kind": "file", "fd": 0, "chunks": {"shape": list(chunk), "table": 1, "count": n_chunks}}
    return os.open(folder / "chunks.raw", os.O_RDONLY), memfd, at


@pytest.mark.parametrize("shape, chunk", [((132, 73, 144), (1, 73, 144)), ((100, 101, 53), (32, 32, 32)),
                                          ((1000, 999), (7, 1000)), ((100003,), (4096,)),
                                          ((300, 300), (300, 300)), ((64, 2000), (64, 1)),
                                          ((600, 700), (512, 512))])
def test_grids_of_chunks(start, big, shape, chunk):
    folder, _ = big
    daemon = start(pool="2M")
    a = np.random.default_rng(9).normal(size=shape).astype("f4")
    file, table, at = chunked(folder, a, chunk, absent=(2, 3))
    region_size = -(-2 * a.nbytes // 4096) * 4096
    with daemon.connect() as w:
        out = wire.Region(w, region_size)
        w.run("a * 2", fds=[file, table], to=described(a, out.at()), a=described(a, at))
        assert np.array_equal(out.array("f4", shape), a * 2)
        total = w.run("sum(a)", fds=[file, table], a=described(a, at))
        assert np.isclose(wire.result_array(total["outputs"][0])[()], a.sum(dtype="f8"), rtol=1e-6)
    os.close(file), os.close(table)


def test_chunk_tables_that_lie(daemon, w, big):
    folder, _ = big
    a = np.ones((64, 64), "f4")
    import fcntl

    def attempt(entries, count, seals=2 | 4 | 8, size=None):
        data = np.array(entries, "u8").tobytes()
        memfd = wire.memfd(size or max(len(data), 16), seals=0)
        os.pwrite(memfd, data, 0)
        fcntl.fcntl(memfd, wire.F_ADD_SEALS, seals)
        file = os.open(folder / "chunks.raw", os.O_RDONLY)
        at = {"kind": "file", "fd": 0, "chunks": {"shape": [32, 32], "table": 1, "count": count}}
        with pytest.raises(Error) as caught:
            w.run("a + 1", fds=[file, memfd], a=described(a, at))
        os.close(file), os.close(memfd)
        assert caught.value.argument == "a"
        return caught.value.code

    chunked(folder, a.copy(), (32, 32))
    good = [[6 + 4096 * i, 4096] for i in range(4)]
    assert attempt(good, 3) in ("bad-chunk-table", "bad-extent")
    assert attempt(good, 2**60) in ("bad-chunk-table", "bad-extent", "limit-exceeded")
    assert attempt(good, 4, seals=2 | 4) in ("bad-chunk-table", "bad-descriptor")
    assert attempt(good, 4, seals=0) in ("bad-chunk-table", "bad-descriptor")
    assert attempt([*good[:3], [6, 4095]], 4) == "bad-chunk-table"
    assert attempt([*good[:3], [2**63, 4096]], 4) in ("bad-chunk-table", "short-read")
    assert attempt([*good[:3], [2**64 - 4096, 4096]], 4) in ("bad-chunk-table", "short-read")
    assert attempt([*good[:3], [1 << 40, 4096]], 4) in ("bad-chunk-table", "short-read")
    assert attempt(good[:1], 4) in ("bad-chunk-table", "bad-descriptor", "bad-extent")


def test_a_file_that_is_cut_while_the_job_runs(start, big):
    folder, a = big
    daemon = start(pool="2M", threads=1)
    before = daemon.counts()
    for delay in (0, 0.005, 0.02):
        path = folder / "cut.raw"
        a.tofile(path)
        source = os.open(path, os.O_RDONLY)
        out = output_fd(folder, a.nbytes)
        with daemon.connect() as w:
            ident = w.send("job.run", fds=[source, out], args={"a": described(a, file_at(0))},
                           outputs=[{"expr": "exp(sin(a))", "to": described(a, file_at(1))}])
            time.sleep(delay)
            os.truncate(path, 4096)
            with pytest.raises(Error) as caught:
                w.reply(ident)
            assert caught.value.code == "short-read" and caught.value.argument == "a"
            assert w.compute("b + 1", b=np.arange(3)).tolist() == [1, 2, 3]
        os.close(source), os.close(out)
    daemon.wait_for_counts(before)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_disk_that_fills_up(start, big):
    folder, a = big
    daemon = start(pool="2M")
    before = daemon.counts()
    image, disk = folder / "image", folder / "disk"
    disk.mkdir()
    with open(image, "wb") as file:
        file.truncate(8 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", image], check=True)
    done = subprocess.run(["mount", "-o", "loop", image, disk], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("no image can be mounted here: " + done.stderr.strip())
    try:
        source = os.open(folder / "big.raw", os.O_RDONLY)
        out = os.open(disk / "out.raw", os.O_RDWR | os.O_CREAT)
        os.ftruncate(out, a.nbytes)
        with daemon.connect() as w:
            with pytest.raises(Error) as caught:
                w.run("a + 1", fds=[source, out], a=described(a, file_at(0)),
                      to=described(a, file_at(1)))
            assert caught.value.code == "no-space", caught.value.fields
        os.close(source), os.close(out)
        done = daemon.ctl("run", "a + 1", f"a={folder}/big.raw:f4:{a.size}", "-o", disk / "r.npy",
                          check=False)
        assert done.returncode == 1 and "no-space" in done.stderr
        assert sorted(p.name for p in disk.iterdir()) == ["lost+found", "out.raw"]
        daemon.wait_for_counts(before)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_memory_that_fills_up(start, big):
    """A file system in memory: the client reserves, or writes by itself, and meets its limit."""
    folder, a = big
    daemon = start(pool="2M")
    before = daemon.counts()
    disk = folder / "memory"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], check=True)
    try:
        for target in ("r.npy", "r.raw", "r.h5:/r"):
            done = daemon.ctl("run", "a + 1", f"a={folder}/big.raw:f4:{a.size}", "-o",
                              disk / target, check=False)
            assert done.returncode == 1 and "no-space" in done.stderr
        assert list(disk.iterdir()) == []
        daemon.ctl("run", "a * 2", f"a={folder}/big.raw:f4:{a.size}[:100000]", "-o", disk / "s.npy")
        assert np.array_equal(np.load(disk / "s.npy"), a[:100000] * 2)
        daemon.wait_for_counts(before)
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_cancel_between_tiles(start, big):
    folder, a = big
    daemon = start(pool="2M", threads=1)
    before = daemon.counts()
    source = os.open(folder / "big.raw", os.O_RDONLY)
    with daemon.connect() as w, daemon.connect() as other:
        params = {"args": {"a": described(a, file_at(0))},
                  "outputs": [{"expr": "sum(exp(sin(a)) ** 0.5)"}]}
        job = w.call("job.submit", fds=[source], **params)["job"]
        waiting = w.send("job.wait", job=job)
        assert other.call("job.status", job=job)["state"] in ("queued", "running")
        began = time.monotonic()
        other.call("job.cancel", job=job)
        with pytest.raises(Error) as caught:
            w.reply(waiting)
        assert caught.value.code == "cancelled"
        assert time.monotonic() - began < 1
        assert other.call("job.status", job=job)["state"] == "cancelled"
        assert job in [j["job"] for j in other.call("job.list")]
    os.close(source)
    daemon.wait_for_counts(before)


def test_progress_wait_and_pipelining(start, big):
    folder, a = big
    daemon = start(pool="2M", threads=2)
    source = os.open(folder / "big.raw", os.O_RDONLY)
    with daemon.connect() as w:
        long = w.send("job.run", fds=[source], args={"a": described(a, file_at(0))},
                      outputs=[{"expr": "sum(tanh(exp(sin(exp(sin(a))))) ** 0.3)"}], progress_ms=50)
        small = [w.send("job.run", args={"b": wire.argument(np.arange(10.0) + i)},
                        outputs=[{"expr": "b * 2"}]) for i in range(200)]
        for i, ident in enumerate(small):
            got = wire.result_array(w.reply(ident)["outputs"][0])
            assert np.array_equal(got, (np.arange(10.0) + i) * 2)
        assert long not in w.replies  # the small ones did not wait behind it
        w.reply(long)
        progress = [params for method, params in w.notifications if method == "job.progress"]
        assert progress and all(p["tiles_done"] <= p["tiles"] for p in progress)
        done = [p["tiles_done"] for p in progress]
        assert done == sorted(done)
        job = w.call("job.submit", fds=[source], args={"a": described(a, file_at(0))},
                     outputs=[{"expr": "sum(exp(sin(a)))"}])["job"]
        with pytest.raises(Error) as caught:
            w.call("job.wait", job=job, timeout_ms=1)
        assert caught.value.code == "timeout"
        assert "outputs" in w.call("job.wait", job=job)
        assert w.call("job.status", job=job)["state"] == "done"
    os.close(source)


def test_settling(daemon, w):
    def submit():
        return w.call("job.submit", args={"a": wire.argument(np.arange(3.0))},
                      outputs=[{"expr": "a + 1"}], settle=True)["job"]

    def until(job, state):
        end = time.monotonic() + 10
        while w.call("job.status", job=job)["state"] != state:
            assert time.monotonic() < end
            time.sleep(0.01)

    job = submit()
    until(job, "settling")
    with daemon.connect() as other:
        waiting = other.send("job.wait", job=job)
        w.call("job.settle", job=job)
        assert "outputs" in other.reply(waiting)
        job = submit()
        until(job, "settling")
        waiting = other.send("job.wait", job=job)
        w.call("job.settle", job=job, error={"code": "no-space", "message": "the disk is full"})
        with pytest.raises(Error) as caught:
            other.reply(waiting)
        assert caught.value.code == "no-space"
        with daemon.connect() as owner:
            job = owner.call("job.submit", args={"a": wire.argument(np.arange(3.0))},
                             outputs=[{"expr": "a + 1"}], settle=True)["job"]
            until(job, "settling")
            waiting = other.send("job.wait", job=job)
            other.call("ping")
        with pytest.raises(Error) as caught:
            other.reply(waiting)
        assert caught.value.code == "outcome-unknown"


def test_an_idempotency_key_runs_once(w):
    args = {"a": wire.argument(np.arange(3.0))}
    first = w.call("job.run", args=args, outputs=[{"expr": "a + 1"}], key="k1")
    again = w.call("job.run", args=args, outputs=[{"expr": "a + 1"}], key="k1")
    assert first["job"] == again["job"] and first["outputs"] == again["outputs"]


def test_plan_says_what_run_would_do(daemon, w):
    plan = w.call("job.plan", args={"a": {"dtype": "<i4", "shape": [1000, 1, 3]},
                                    "b": {"dtype": "<f4", "shape": [7, 1]},
                                    "k": {"scalar": 2.5}},
                  outputs=[{"name": "r", "expr": "a*b + k"}, {"name": "s", "expr": "sum(a)"}])
    r, s = plan["outputs"]
    assert (r["dtype"], r["shape"], r["order"]) == ("<f8", [1000, 7, 3], "C")
    assert (s["dtype"], s["shape"]) == ("<i8", [])
    assert plan["engine"] == daemon.engine_name and plan["carry_bytes"] > 0 and plan["restartable"]
    assert daemon.counts()["jobs_running"] == 0


def test_private_memory_stays_where_it_was(start, big):
    import conftest
    if conftest.IS_SANITIZED:
        pytest.skip("sanitizers take memory of their own")
    folder, a = big
    daemon = start(pool="8M", threads=2)
    source = os.open(folder / "big.raw", os.O_RDONLY)
    out = output_fd(folder, a.nbytes)
    most = {"worker": 0, "broker": 0}
    with daemon.connect() as w:
        for _ in range(3):
            ident = w.send("job.run", fds=[source, out], args={"a": described(a, file_at(0))},
                           outputs=[{"expr": "sqrt(a*a)", "to": described(a, file_at(1))}])
            small = [w.send("job.run", args={"b": wire.argument(np.arange(8000.0))},
                            outputs=[{"expr": "b * 2"}]) for i in range(50)]
            for name, pid in (("worker", daemon.worker_pid()), ("broker", daemon.process.pid)):
                most[name] = max(most[name], private_bytes(pid))
            for i in (ident, *small):
                w.reply(i)
    assert most["broker"] <= 16 * MIB, most
    assert most["worker"] <= (8 + 16) * MIB, most
    os.close(source), os.close(out)


def private_bytes(pid):
    """Anonymous memory of a process that nobody else maps."""
    total = 0
    for line in open(f"/proc/{pid}/smaps_rollup"):
        if line.startswith("Anonymous:"):
            total += int(line.split()[1]) * 1024
    return total
