"""The provider's ring, spoken from the document alone: a thread of the test is the client that
fills and drains blocks, honestly and not."""

import mmap
import os
import select
import struct
import threading
import time

import numpy as np
import pytest

import wire
from wire import Error, described

SLOT = 256 * 1024
ENTRY = 1024


class Ring:
    """One array behind a ring. serve() is called for each block: (start, count, slot view)."""

    def __init__(self, array, n_slots=4, serve=None, size=None):
        self.array, self.n_slots = array, n_slots
        self.data_at = 4096 + -(-n_slots * ENTRY // 4096) * 4096
        self.size = size or self.data_at + n_slots * SLOT
        self.fd = wire.memfd(self.size)
        self.map = mmap.mmap(self.fd, self.size)
        self.request, self.done = os.eventfd(0, os.EFD_CLOEXEC), os.eventfd(0, os.EFD_CLOEXEC)
        self.serve = serve or self.fill
        self.seen = [0] * n_slots
        self.faults = []  # requests that the document forbids
        self.stopping = os.eventfd(0, os.EFD_CLOEXEC)
        self.thread = threading.Thread(target=self.loop, daemon=True)
        self.thread.start()

    def fds(self):
        return [self.fd, self.request, self.done]

    def at(self, first=0):
        return {"kind": "provider", "ring": first, "request": first + 1, "done": first + 2,
                "slots": self.n_slots, "slot_bytes": SLOT}

    def block(self, slot, count):
        n = int(np.prod(count, dtype="i8"))
        return np.frombuffer(self.map, self.array.dtype, n, self.data_at + slot * SLOT).reshape(count)

    def fill(self, start, count, block):
        block[...] = self.array[tuple(slice(s, s + c) for s, c in zip(start, count))]
        return 0

    def drain(self, start, count, block):
        self.array[tuple(slice(s, s + c) for s, c in zip(start, count))] = block
        return 0

    def loop(self):
        both = select.poll()  # which knows descriptors of any number
        both.register(self.request, select.POLLIN)
        both.register(self.stopping, select.POLLIN)
        while True:
            if self.stopping in dict(both.poll()):
                return
            os.eventfd_read(self.request)
            for slot in range(self.n_slots):
                at = 4096 + slot * ENTRY
                asked = struct.unpack_from("<Q", self.map, at)[0]
                if asked == self.seen[slot]:
                    continue
                self.seen[slot] = asked
                ndim = struct.unpack_from("<I", self.map, at + 20)[0]
                if ndim != self.array.ndim:
                    self.faults.append(f"{ndim} dimensions")
                    continue
                start = struct.unpack_from(f"<{ndim}q", self.map, at + 24)
                count = struct.unpack_from(f"<{ndim}q", self.map, at + 24 + 32 * 8)
                inside = all(s >= 0 and 0 < c <= n - s
                             for s, c, n in zip(start, count, self.array.shape))
                if not inside or np.prod(count, dtype="f8") * self.array.itemsize > SLOT:
                    self.faults.append(f"block {start} {count}")
                    continue
                status = self.serve(start, count, self.block(slot, count))
                if status is None:
                    continue  # never answers
                struct.pack_into("<I", self.map, at + 16, status)
                struct.pack_into("<Q", self.map, at + 8, asked)
            os.eventfd_write(self.done, 1)

    def close(self):
        os.eventfd_write(self.stopping, 1)
        self.thread.join()
        assert not self.faults, self.faults[:3]
        for fd in (*self.fds(), self.stopping):
            os.close(fd)


@pytest.mark.parametrize("shape", [(3_000_000,), (1500, 1700), (0,), (1,), (40, 50, 60)])
def test_blocks_come_and_go(w, shape):
    a = np.random.default_rng(11).normal(size=shape).astype("f4")
    b = np.zeros(shape, "f8")
    source, sink = Ring(a), Ring(b)
    sink.serve = sink.drain
    w.run("a * 2.0 + float64(a)", fds=source.fds() + sink.fds(), to=described(b, sink.at(3)),
          a=described(a, source.at(0)))
    assert np.array_equal(b, (a * np.float32(2)) + a.astype("f8"))
    again = Ring(a)
    result = w.run("sum(a)", fds=again.fds(), a=described(a, again.at(0)))
    assert np.isclose(wire.result_array(result["outputs"][0])[()], a.sum(dtype="f8"), atol=1e-2)
    for ring in (source, sink, again):
        ring.close()


def test_as_many_rings_as_a_job_has_arrays(w):
    n_before = w.call("server.info")["counts"]["descriptors"]
    arrays = [np.full(20_000, i, "f4") for i in range(64)]
    sinks = [np.zeros(20_000, "f4") for _ in range(16)]
    rings = [Ring(a) for a in arrays] + [Ring(b) for b in sinks]
    for ring in rings[64:]:
        ring.serve = ring.drain
    for n_fds in (3 * 80, 3 * 80 - 1):  # with one descriptor less, none is left behind
        fds = [fd for ring in rings for fd in ring.fds()][:n_fds]
        ident = w.send("job.run", fds=fds,
                       args={f"a{i}": described(a, rings[i].at(3 * i))
                             for i, a in enumerate(arrays)},
                       outputs=[{"expr": f"{'+'.join(f'a{j}' for j in range(64))}+{i}",
                                 "to": described(b, rings[64 + i].at(3 * (64 + i)))}
                                for i, b in enumerate(sinks)])
        if n_fds == 3 * 80:
            w.reply(ident)
        else:
            with pytest.raises(Error) as caught:
                w.reply(ident)
            assert caught.value.code == "bad-descriptor"
    for i, b in enumerate(sinks):
        assert np.array_equal(b, np.full(20_000, 2016 + i, "f4"))
    end = time.monotonic() + 10  # they are closed by a thread of their own
    while (left := w.call("server.info")["counts"]["descriptors"]) > n_before:
        assert time.monotonic() < end, (left, n_before)
        time.sleep(0.01)
    for ring in rings:
        ring.close()


def test_a_provider_that_fails(w):
    a = np.zeros(1_000_000)
    ring = Ring(a)
    ring.serve = lambda start, count, block: 5 if start[0] > 300_000 else 0  # EIO
    with pytest.raises(Error) as caught:
        w.run("sum(a)", fds=ring.fds(), a=described(a, ring.at()))
    assert caught.value.code == "provider-failed" and caught.value.argument == "a"
    ring.close()


def test_a_provider_that_never_answers_holds_nobody_up(daemon, w):
    a = np.zeros(1_000_000)
    ring = Ring(a)
    ring.serve = lambda start, count, block: None
    other = daemon.connect()
    ident = other.send("job.run", fds=ring.fds(), args={"a": described(a, ring.at())},
                       outputs=[{"expr": "sum(a)"}])
    region = wire.Region(w, 1 << 24)
    big = region.array("f8", (1 << 21,))
    for _ in range(20):
        assert w.compute("a + 1", a=np.arange(3)).tolist() == [1, 2, 3]
        w.run("sum(a)", a=described(big, region.at()))
    assert ident not in other.replies
    assert w.call("server.info")["counts"]["slots_lent"] == 0
    stuck = [j["job"] for j in w.call("job.list") if j["state"] == "running"]
    assert len(stuck) == 1
    w.call("job.cancel", job=stuck[0])
    with pytest.raises(Error) as caught:
        other.reply(ident)
    assert caught.value.code == "cancelled"
    w.call("region.detach", region=region.id)
    other.close()
    ring.close()


def test_one_that_changes_ring_headers_while_we_read(daemon, w):
    a = np.random.default_rng(12).normal(size=2_000_000)
    ring = Ring(a)
    stop = threading.Event()

    def scribble():
        rng = np.random.default_rng(13)
        head = np.frombuffer(ring.map, "u1", 4096 + 4 * ENTRY)
        while not stop.is_set():
            at = int(rng.integers(0, head.size - 64))
            head[at:at + 64] = rng.integers(0, 256, 64)

    vandal = threading.Thread(target=scribble)
    ring.serve = lambda start, count, block: 0
    vandal.start()
    other = daemon.connect()
    idents = []
    for _ in range(3):
        idents.append(other.send("job.run", fds=ring.fds(), args={"a": described(a, ring.at())},
                                 outputs=[{"expr": "sum(a)"}]))
    time.sleep(1)
    stop.set()
    vandal.join()
    other.close()  # whatever became of them, they end here
    assert w.compute("a + 1", a=np.arange(3)).tolist() == [1, 2, 3]
    ring.faults.clear()  # what we scribbled ourselves
    ring.close()


@pytest.mark.parametrize("change", [
    {"slots": 0}, {"slots": 65}, {"slots": 2**31}, {"slot_bytes": 4096}, {"slot_bytes": SLOT + 1},
    {"slot_bytes": 2**62}, {"slots": 64, "slot_bytes": 2**24}, {"ring": 1}, {"done": 0},
])
def test_rings_that_cannot_be(w, change):
    a = np.zeros(100_000)
    ring = Ring(a)
    with pytest.raises(Error) as caught:
        w.run("sum(a)", fds=ring.fds(), a=described(a, {**ring.at(), **change}))
    assert caught.value.code in ("bad-descriptor", "bad-request", "limit-exceeded", "bad-extent",
                                 "bad-region")
    ring.close()


def test_rings_of_other_things(w):
    a = np.zeros(100_000)
    ring = Ring(a)
    null = os.open("/dev/null", os.O_RDWR)
    unsealed = wire.memfd(ring.size, seals=0)
    small = wire.memfd(4096)
    for fds in ([null, ring.request, ring.done], [ring.fd, null, ring.done],
                [ring.fd, ring.request, null], [unsealed, ring.request, ring.done],
                [small, ring.request, ring.done], [ring.request, ring.fd, ring.done]):
        with pytest.raises(Error) as caught:
            w.run("sum(a)", fds=fds, a=described(a, ring.at()))
        assert caught.value.code in ("bad-descriptor", "bad-region"), caught.value.fields
    for fd in (null, unsealed, small):
        os.close(fd)
    ring.close()
