"""Matrix products as jobs: the same bytes wherever arrays are and whatever the pool, bytes as they
were planned, others' jobs between two steps, and journals: what adds into its output is applied
once, whoever is killed and whenever."""

import fcntl
import itertools
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
from conftest import ENGINE, IS_SANITIZED, Daemon
from test_provider import Ring
from wire import Error, described, file_at

pytestmark = pytest.mark.skipif(ENGINE != "cpu", reason="for a device: test_cuda_products.py")
ROWS, DEPTH, COLUMNS = (150, 1100, 130) if IS_SANITIZED else (700, 1300, 600)


def normal(shape, dtype="f4", seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


class Given:
    """One job's arrays, each somewhere: descriptors and what is to be closed."""

    def __init__(self, w, folder):
        self.w, self.folder, self.fds, self.open, self.rings, self.regions = w, folder, [], [], [], []

    def file(self, a, strides=None, offset=0, dtype=None):
        a = np.asarray(a, dtype=dtype)
        path = self.folder / f"array-{len(self.open)}"
        order = "F" if strides == "F" else "C"
        path.write_bytes(bytes(offset) + a.tobytes(order))
        fd = os.open(path, os.O_RDWR)
        self.open.append(fd)
        self.fds.append(fd)
        at = np.asarray(a, order=order).strides if order == "F" else None
        return described(a, file_at(len(self.fds) - 1, offset), at)

    def grid(self, a, chunk):
        """A file of chunks, as HDF5 has them, in no order, and their table."""
        grid = [-(-n // c) for n, c in zip(a.shape, chunk)]
        size = int(np.prod(chunk)) * a.itemsize
        places = list(range(int(np.prod(grid))))
        random.Random(5).shuffle(places)
        data, table = bytearray(size * len(places)), b""
        for at, place in zip(itertools.product(*map(range, grid)), places):
            whole = np.zeros(chunk, a.dtype)
            part = a[tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, chunk))]
            whole[tuple(map(slice, part.shape))] = part
            data[place * size:(place + 1) * size] = whole.tobytes()
            table += struct.pack("<QQ", place * size, size)
        path = self.folder / f"grid-{len(self.open)}"
        path.write_bytes(data)
        memfd = wire.memfd(len(table))
        os.pwrite(memfd, table, 0)
        fcntl.fcntl(memfd, wire.F_ADD_SEALS, wire.F_SEAL_WRITE)
        fd = os.open(path, os.O_RDONLY)
        self.open += [fd, memfd]
        self.fds += [fd, memfd]
        n = len(self.fds)
        return described(a, {"kind": "file", "fd": n - 2, "chunks": {
            "shape": list(chunk), "table": n - 1, "count": len(places)}})

    def ring(self, a, is_sink=False, n_slots=3):
        ring = Ring(a, n_slots=n_slots)
        if is_sink:
            ring.serve = ring.drain
        self.rings.append(ring)
        self.fds += ring.fds()
        return described(a, ring.at(len(self.fds) - 3))

    def region(self, a, step=1):
        """In memory; step: that far apart along the last axis."""
        wide = (*a.shape[:-1], a.shape[-1] * step)
        region = wire.Region(self.w, max(int(np.prod(wide)) * a.itemsize, 64))
        self.regions.append(region)
        held = region.array(a.dtype, wide)[..., ::step]
        held[...] = a
        return described(a, region.at(), held.strides), held

    def close(self):
        for fd in self.open:
            os.close(fd)
        for ring in self.rings:
            ring.close()
        for region in self.regions:
            self.w.call("region.detach", region=region.id)


@pytest.fixture
def given(w, folder):
    made = Given(w, folder)
    yield made
    made.close()


def run(given, text, to=None, **args):
    return given.w.run(text, fds=given.fds, to=to, **args)


@pytest.fixture(scope="module")
def operands():
    a, b = normal((ROWS, DEPTH), seed=1), normal((DEPTH, COLUMNS), seed=2)
    return a, b, a.astype("f8") @ b.astype("f8")


WAYS = {
    "region": lambda g, a: g.region(a)[0],
    "region, apart": lambda g, a: g.region(a, step=3)[0],
    "file": lambda g, a: g.file(a, offset=128),
    "file, Fortran": lambda g, a: g.file(a, "F"),
    "file, big-endian": lambda g, a: g.file(a, dtype=">f4"),
    "chunks": lambda g, a: g.grid(a, (100, 90)),
    "provider": lambda g, a: g.ring(a),
    "provider of one slot": lambda g, a: g.ring(a, n_slots=1),
}


@pytest.fixture(scope="module")
def whole():
    """A daemon whose pool has all of these products."""
    d = Daemon(pool="64M", threads=3)
    yield d
    d.stop()


@pytest.fixture(scope="module")
def bits(whole, operands):
    with whole.connect() as w:
        to, c = (g := Given(w, None)).region(np.zeros((ROWS, COLUMNS), "f4"))
        w.run("a @ b", to=to, a=g.region(operands[0])[0], b=g.region(operands[1])[0])
        got = c.copy()
        g.close()
    assert np.abs(got - operands[2]).max() < 1e-5 * DEPTH
    return got


@pytest.mark.parametrize("way", WAYS)
def test_the_bytes_are_the_same_from_everywhere(given, operands, bits, way):
    a, b = (WAYS[way](given, x) for x in operands[:2])
    to, c = given.region(np.zeros((ROWS, COLUMNS), "f4"))
    plan = given.w.run("a @ b", fds=given.fds, to=to, method="job.plan", a=a, b=b)
    reply = run(given, "a @ b", to, a=a, b=b)
    assert np.array_equal(c, bits)
    product = reply["product"]
    for key in ("read_bytes", "write_bytes", "tiles"):
        assert reply[key] == plan[key]
    for key in ("left_bytes", "right_bytes", "tile", "tiles", "precision"):
        assert product[key] == plan["product"][key]
    assert product["precision"] == "float32" and product["library"].startswith("OpenBLAS")
    assert product["left_bytes"] + product["right_bytes"] == reply["read_bytes"]
    assert reply["write_bytes"] == c.nbytes


def test_all_of_it_is_counted_as_planned(given):
    """What the result's expression reads too, and what is broadcast; with a journal the output once."""
    a, b = given.file(normal((900, 400), "f8")), given.file(normal((400, 1100), "f8"))
    c, d = normal((900, 1100), "f8"), given.region(normal((1100,), "f8"))[0]
    old = given.file(c)
    fd = os.open(given.folder / "array-2", os.O_RDWR)
    given.open.append(fd)
    given.fds.append(fd)
    new = described(c, file_at(len(given.fds) - 1))
    (given.folder / "journal").touch()
    given.open.append(os.open(given.folder / "journal", os.O_RDWR))
    given.fds.append(given.open[-1])
    more = {"fds": given.fds, "journal": {"fd": len(given.fds) - 1},
            "args": {"a": a, "b": b, "c": old, "d": d},
            "outputs": [{"expr": "(a / 2) @ b + c * d", "to": new}]}
    plan, reply = given.w.call("job.plan", **more), given.w.call("job.run", **more)
    for key in ("read_bytes", "write_bytes", "tiles"):
        assert reply[key] == plan[key], key


@pytest.mark.parametrize("text,names", [("a @ b", "ab"), ("(a / 2) @ b + d", "abd"),
                                        ("b.T @ a.T", "ab"), ("a @ a.T", "a"), ("a.T @ a", "a")])
@pytest.mark.parametrize("n_slots", [1, 4])
def test_rings_both_ways(given, text, names, n_slots):
    """Blocks come in the order of the turns, the same ones again for each tile; one ring serves an
    argument that is read as it is and transposed."""
    arrays = {"a": normal((300, 700), "f8", 3), "b": normal((700, 420), "f8", 4),
              "d": normal((420,), "f8", 5)}
    expected = eval(text, {}, arrays)
    c = np.zeros(expected.shape)
    args = {name: given.ring(arrays[name], n_slots=n_slots) for name in names}
    to = given.ring(c, is_sink=True, n_slots=n_slots)
    run(given, text, to, **args)
    assert np.allclose(c, expected, rtol=0, atol=1e-10)


# Journals ------------------------------------------------------------------------------------------

# How often somebody is killed in each of these tests; more when it is to be shown well.
N_KILLS = int(os.environ.get("GPUARRAYD_TEST_KILLS", 3 if IS_SANITIZED else 6))
SHAPE = (1500, 60 if IS_SANITIZED else 300, 1400)  # several tiles of the smallest pool


class Sum:
    """c += a @ b, whole numbers, so that any other number of times shows; c in a file or region."""

    def __init__(self, folder, seed=0, shape=SHAPE, text="a @ b + c"):
        rows, depth, columns = shape
        self.text = text
        rng = np.random.default_rng(seed)
        self.a = rng.integers(-9, 10, (rows, depth)).astype("f8")
        self.b = rng.integers(-9, 10, (depth, columns)).astype("f8")
        self.c = rng.integers(-9, 10, (rows, columns)).astype("f8")
        self.folder, self.fds = folder, []
        for name in "abc":
            (folder / name).write_bytes(getattr(self, name).tobytes())
        (folder / "journal").touch()
        self.memfd = wire.memfd(self.c.nbytes)
        os.pwrite(self.memfd, self.c.tobytes(), 0)

    def expected(self):
        return eval(self.text, {"a": self.a, "b": self.b, "c": self.c})

    def opened(self, *names):
        fds = [os.open(self.folder / name, os.O_RDWR) for name in names]
        self.fds += fds
        return fds

    def close(self):
        while self.fds:
            os.close(self.fds.pop())

    def send(self, w, in_region, text=None, ring=None, **more):
        """A client that knows nothing of what was before. ring: of d, all zeros."""
        text = text or self.text
        if in_region:
            fds = self.opened("a", "b", "journal")
            region = w.call("region.attach", fds=[self.memfd], size=self.c.nbytes,
                            writable=True)["region"]
            place = {"kind": "region", "id": region, "offset": 0}
            places = [place, place]
        else:
            fds = self.opened("a", "b", "journal", "c", "c")
            places = [file_at(3), file_at(4)]
        args = {"a": described(self.a, file_at(0)), "b": described(self.b, file_at(1)),
                "c": described(self.c, places[0])}
        if ring:
            args["d"] = described(ring.array, ring.at(len(fds)))
            fds = fds + ring.fds()
            text += " + d"
        if "b" not in text:
            del args["b"]
        return w.send("job.run", fds=fds, journal={"fd": 2}, args=args,
            outputs=[{"expr": text, "to": described(self.c, places[1])}], **more)

    def got(self, in_region):
        data = os.pread(self.memfd, self.c.nbytes, 0) if in_region else \
            (self.folder / "c").read_bytes()
        return np.frombuffer(data).reshape(self.c.shape)


@pytest.fixture
def total(folder):
    made = Sum(folder)
    yield made
    made.close()
    os.close(made.memfd)


@pytest.mark.parametrize("in_region", [False, True])
def test_a_sum_with_a_journal(w, total, in_region):
    reply = w.reply(total.send(w, in_region))
    assert reply["journal"] == "new" and reply["product"]["tiles"] > 2
    assert np.array_equal(total.got(in_region), total.expected())
    again = w.reply(total.send(w, in_region))
    assert (again["journal"], again["tiles"]) == ("complete", 0)
    assert np.array_equal(total.got(in_region), total.expected())


@pytest.mark.whole
@pytest.mark.parametrize("in_region", [False, True])
def test_the_worker_is_killed(daemon, folder, in_region):
    rng = random.Random(in_region)
    with daemon.connect() as w:
        for kill in range(N_KILLS):
            work = folder / f"work-{kill}"
            work.mkdir()
            total = Sum(work, seed=kill)
            job = total.send(w, in_region)
            killer = threading.Timer(rng.uniform(0, 0.15), os.kill,
                                     (daemon.worker_pid(), signal.SIGKILL))
            killer.start()
            reply = w.reply(job)
            killer.join()
            assert np.array_equal(total.got(in_region), total.expected()), (kill, reply["journal"])
            total.close()
            os.close(total.memfd)
            shutil.rmtree(work)


@pytest.mark.whole
@pytest.mark.parametrize("in_region,text", [(False, "a @ b + c"), (True, "a @ b + c"),
                                            (False, "a @ a.T + c")])
def test_the_worker_dies_as_a_turn_begins(start, folder, in_region, text):
    marker, rng = folder / "marker", random.Random(len(text) + in_region)
    daemon = start(worker=conftest.FAULTY_WORKER, env={"GPUARRAYD_FAULT_MARKER": str(marker)})
    states = set()
    with daemon.connect() as w:
        for kill in range(N_KILLS):
            work = folder / f"work-{kill}"
            work.mkdir()
            total = Sum(work, seed=kill, shape=(1100, 40, 1100), text=text)
            marker.write_bytes(b"")
            plain = {name: {"dtype": "<f8", "shape": list(getattr(total, name).shape)}
                     for name in "abc" if name in text}
            n_turns = w.call("job.plan", journal={}, args=plain,
                             outputs=[{"expr": text, "to": plain["c"]}])["tiles"]
            # the first time at the last turn: a mark, behind which nothing is left to be done
            turn = rng.randrange(1, n_turns) if kill > 0 else n_turns - 1
            reply = w.reply(total.send(w, in_region, label=f"fault:kill@{turn}"))
            states.add(reply["journal"])
            assert np.array_equal(total.got(in_region), total.expected()), (turn, reply["journal"])
            total.close()
            os.close(total.memfd)
            shutil.rmtree(work)
    assert "continued" in states


@pytest.mark.whole
@pytest.mark.parametrize("in_region", [False, True])
def test_the_daemon_is_killed(total, in_region):
    """Until it is done: killed, started again, asked by a client that knows nothing. The worker of
    the daemon that was killed lets go of the journal when it sees that: a moment later."""
    rng = random.Random(in_region)
    n_kills, n_refused = 0, 0
    while True:
        daemon = Daemon()
        w = daemon.connect()
        job = total.send(w, in_region)
        if n_kills < N_KILLS:
            killer = threading.Timer(rng.uniform(0, 0.1), daemon.process.kill)
            killer.start()
        try:
            w.reply(job)
            break
        except (wire.Closed, OSError):
            assert n_kills < N_KILLS, "it fell by itself"
            n_kills += 1
        except Error as error:
            n_refused += 1
            assert "in use by another job" in str(error) and n_refused < 50
        finally:
            w.close()
            total.close()
            daemon.kill()
            daemon.log.close()
            shutil.rmtree(daemon.dir, ignore_errors=True)
    assert np.array_equal(total.got(in_region), total.expected())


def refused(w, total, in_region=False, code="bad-journal", **more):
    with pytest.raises(Error) as caught:
        w.reply(total.send(w, in_region, **more))
    assert (caught.value.code, caught.value.argument) == (code, "journal")
    total.close()
    return caught.value


def marks(journal):
    """(sequence, tiles logged, tiles applied, where the mark is), the latest first."""
    data = journal.read_bytes()[:8192].ljust(8192, b"\0")
    return sorted(((*struct.unpack_from("<3Q", data, at + 8), at) for at in (4096, 6144)),
                  reverse=True)


def test_going_on_elsewhere(start, total):
    """A job is stuck behind its first tiles, for a client that gives no more, and is cancelled.
    Another job's, a damaged and a cut journal are refused and nothing is touched; then it goes on,
    with another pool and the tiles that it began with."""
    journal = total.folder / "journal"
    ring, stuck = Ring(np.zeros_like(total.c), n_slots=2), threading.Event()

    def some(start, count, block):
        if marks(journal)[0][2] == 0:
            return ring.fill(start, count, block)
        stuck.set()
        return None

    ring.serve = some
    with start().connect() as w:
        job = total.send(w, False, ring=ring)
        assert stuck.wait(60)
        w.call("job.cancel", job=w.call("job.list")[0]["job"])
        with pytest.raises(Error) as caught:
            w.reply(job)
        assert caught.value.code == "cancelled"
    total.close()
    ring.close()
    before, kept = total.got(False).copy(), journal.read_bytes()
    ring = Ring(np.zeros_like(total.c))
    with start(pool="64M", threads=1).connect() as w:
        other = refused(w, total, text="a @ b + 2 * c", ring=ring)
        assert "another job" in other.message and other.expected and other.found
        assert "another job" in refused(w, total, in_region=True, ring=ring).message
        for data, word in ((kept[:100], "cut"), (b"something else" + bytes(9000), "not a journal"),
                           (kept[:20] + bytes([kept[20] ^ 1]) + kept[21:], "damaged")):
            journal.write_bytes(data)
            assert word in refused(w, total, ring=ring).message
        journal.write_bytes(kept[:6] + b"1" + kept[7:])
        older = refused(w, total, ring=ring)
        assert "of another version" in older.message
        assert (older.expected, older.found) == ("version 2", "version 1")
        assert np.array_equal(total.got(False), before)
        journal.write_bytes(kept)
        reply = w.reply(total.send(w, False, ring=ring))
        assert reply["journal"] == "continued" and reply["product"]["tiles"] > 2
    ring.close()
    assert np.array_equal(total.got(False), total.expected())


def test_a_journal_of_other_threads(start, folder):
    total = Sum(folder, shape=(1500, 20, 1400))
    states = []
    for n_threads in (1, 3):
        with start(pool="32M", threads=n_threads).connect() as w:
            states.append(w.reply(total.send(w, False))["journal"])
        total.close()
    os.close(total.memfd)
    assert states == ["new", "complete"]
    assert np.array_equal(total.got(False), total.expected())


def test_two_jobs_with_one_journal(w, folder):
    """The same open file, for which a lock of the system is none."""
    total = Sum(folder, shape=(50, 40, 60))
    ring, stuck, go_on = Ring(np.zeros_like(total.c)), threading.Event(), threading.Event()

    def late(start, count, block):
        stuck.set()
        go_on.wait(60)
        return ring.fill(start, count, block)

    ring.serve = late
    first = total.send(w, False, ring=ring)
    assert stuck.wait(60)
    total.opened = lambda *names: total.fds[:len(names)]
    second = total.send(w, False)
    with pytest.raises(Error) as caught:
        w.reply(second)
    go_on.set()
    assert caught.value.code == "bad-journal" and "in use" in caught.value.message
    assert w.reply(first)["journal"] == "new"
    assert np.array_equal(total.got(False), total.expected())
    total.close()
    ring.close()
    os.close(total.memfd)


def test_a_damaged_tile_is_not_applied(w, total):
    """The journal as it was before its last mark: the last tile in it is to be applied."""
    journal = total.folder / "journal"
    assert w.reply(total.send(w, False))["journal"] == "new"
    total.close()
    at = marks(journal)[0][3]
    done = journal.read_bytes()
    kept = done[:at] + bytes(64) + done[at + 64:]
    n_tiles, n_cells = struct.unpack_from("<2Q", done, 48)
    heads = 8192 + -(-n_tiles * 8 // 4096) * 4096
    cell = heads + -(-n_cells * 160 // 4096) * 4096
    # as it is where the end came before the last element was written
    with open(total.folder / "c", "r+b") as file:
        file.seek(-8, os.SEEK_END)
        file.write(total.c[-1, -1:].tobytes())
    left = total.got(False).copy()
    assert not np.array_equal(left, total.expected())
    journal.write_bytes(kept[:cell] + bytes([kept[cell] ^ 1]) + kept[cell + 1:])
    assert "damaged" in refused(w, total).message
    journal.write_bytes(kept[:cell + 8])
    assert "cut" in refused(w, total).message
    assert np.array_equal(total.got(False), left)
    journal.write_bytes(kept)
    assert w.reply(total.send(w, False))["journal"] == "continued"
    assert np.array_equal(total.got(False), total.expected())


def test_journals_that_cannot_be(w, total):
    a = np.eye(3)
    fds = total.opened("a", "b", "journal")
    for text, more in (("a + 1", {}), ("a @ a", {})):  # no product; an output in the reply
        with pytest.raises(Error) as caught:
            w.call("job.run", fds=fds[:1], journal={"fd": 0}, args={"a": wire.argument(a)},
                   outputs=[{"expr": text, **more}])
        assert caught.value.code == "bad-journal"
    total.close()
    journal = total.folder / "journal"
    journal.unlink()
    os.symlink(total.folder / "a", journal)
    assert "file of 'a'" in refused(w, total).message
    journal.unlink()
    journal.touch()
    opened = total.opened
    for flags, code in ((os.O_RDONLY, "bad-journal"), (os.O_RDWR | os.O_APPEND, "bad-descriptor")):
        total.opened = lambda *names: [
            os.open(total.folder / n, flags if n == "journal" else os.O_RDWR) for n in names]
        refused(w, total, code=code)
    total.opened = opened
    held = os.open(journal, os.O_RDWR)
    lock = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    fcntl.fcntl(held, 37, lock)  # F_OFD_SETLK
    assert "in use" in refused(w, total).message
    os.close(held)
    journal.write_bytes(bytes(9000))  # somebody's file, though it begins as a new journal does
    assert "not a journal" in refused(w, total).message
    assert journal.read_bytes() == bytes(9000)
    journal.unlink()
    os.symlink(f"/proc/self/fd/{total.memfd}", journal)
    assert "file of 'c'" in refused(w, total, in_region=True).message
    assert np.array_equal(total.got(True), total.c)
    assert np.array_equal(total.got(False), total.c)


# Others ---------------------------------------------------------------------------------------------


def test_small_jobs_come_between_two_steps(start, folder):
    daemon = start(worker=conftest.FAULTY_WORKER, threads=1)
    a = np.ones((600, 3000))
    with daemon.connect() as w, daemon.connect() as other:
        g = Given(w, folder)
        to = g.region(np.zeros((600, 600)))[0]
        args = {"a": g.region(a)[0], "b": g.region(a.T.copy())[0]}
        job = w.send("job.run", label="fault:slow", args=args, outputs=[{"expr": "a @ b", "to": to}])
        for i in range(5):
            assert other.compute("sum(a) + 1", a=np.arange(1000))[()] == 499501
            assert other.compute("a @ a", a=np.eye(3)).tolist() == np.eye(3).tolist()
        running = other.call("job.list")[0]
        assert running["state"] == "running"
        other.call("job.cancel", job=running["job"])
        with pytest.raises(Error) as caught:
            w.reply(job)
        assert caught.value.code == "cancelled"
        g.close()


def test_cancelled_between_two_turns(start, folder):
    daemon = start(worker=conftest.FAULTY_WORKER)
    with daemon.connect() as w:
        before = daemon.counts()
        g = Given(w, folder)
        a = g.file(np.ones((600, 3000)))
        b, c = g.file(np.ones((3000, 600))), np.zeros((600, 600))
        to = g.ring(c, is_sink=True)
        job = w.send("job.run", fds=g.fds, label="fault:slow", args={"a": a, "b": b},
                     outputs=[{"expr": "a @ b", "to": to}])
        while not (jobs := w.call("job.list")) or jobs[0]["state"] != "running":
            pass
        w.call("job.cancel", job=jobs[0]["job"])
        with pytest.raises(Error) as caught:
            w.reply(job)
        assert caught.value.code == "cancelled"
        g.close()
        daemon.wait_for_counts(before)
