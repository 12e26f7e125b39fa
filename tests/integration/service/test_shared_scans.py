"""One decode for many readers: who shares, what each gets, and what those cost each other who stall,
lie or die."""

import fcntl
import mmap
import multiprocessing
import os
import pathlib
import re
import signal
import socket
import struct
import time

import pytest

import conftest
import scans
import wire
from scans import Reader, Source
from users import NOBODY, become, needs_users


@pytest.fixture(scope="module")
def at_first(daemon):
    return daemon.quiet_counts()


@pytest.fixture
def w(daemon, at_first):
    with daemon.connect() as connection:
        yield connection


@pytest.fixture
def source(folder):
    folder.chmod(0o755)
    return Source(folder / "packed", absent=(5,))


def scan_of(w, number, is_known=lambda scan: True, seconds=20):
    """What the daemon says of a scan, once that is as wanted."""
    end = time.monotonic() + seconds
    while True:
        for scan in w.call("server.info")["scans"]:
            if scan["scan"] == number and is_known(scan):
                return scan
        assert time.monotonic() < end, w.call("server.info")["scans"]
        time.sleep(0.01)


def test_one_reader(w, source):
    with Reader(w, source) as reader:
        assert not reader.joined["shared"]
        reader.check_circle()
        reader.ack()
        scan = scan_of(w, reader.joined["scan"], lambda scan: scan["taken"] >= 64)
        assert (scan["chunks"], scan["chunk_bytes"], scan["readers"]) == (64, 1 << 16, 1)
        assert scan["inode"] == os.stat(source.path).st_ino
        assert scan["failed"] == 0


def test_info_has_a_line(daemon, w, source):
    with Reader(w, source) as reader:
        reader.check_circle()
        reader.ack()
        scan_of(w, reader.joined["scan"], lambda scan: scan["taken"] >= 64)
        assert re.search(rf"^scan +{reader.joined['scan']}: inode {os.stat(source.path).st_ino} of device "
                         r"\d+:\d+, 1 readers, \d+ of 64 chunks decoded, each for \d\.\d\d$",
                         daemon.ctl("info").stdout, re.M)


def read_apart(socket_path, source, ready, go, told):
    with wire.Wire(socket_path) as w, Reader(w, source) as reader:
        ready.release()
        go.wait()
        reader.check_circle()
        reader.ack()
        told.put(reader.joined)


def test_readers_in_several_processes_share_one_decode(daemon, folder):
    """Each gets every chunk of a circle, from where it came in, and together they cost about one."""
    source = Source(folder / "packed", n_chunks=3000, chunk_bytes=4096)
    context = multiprocessing.get_context("fork")
    ready, go, told = context.Semaphore(0), context.Event(), context.SimpleQueue()
    processes = [context.Process(target=read_apart, args=(daemon.socket, source, ready, go, told))
                 for _ in range(4)]
    for process in processes:
        process.start()
    for _ in processes:
        ready.acquire()
    go.set()
    joined = [told.get() for _ in processes]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len({one["scan"] for one in joined}) == 1
    assert sorted(one["shared"] for one in joined) == [False, True, True, True]


def test_chunks_are_decoded_once_for_readers_that_go_together(w, folder):
    source = Source(folder / "together", n_chunks=3000, chunk_bytes=4096)
    n_taken = 0
    with Reader(w, source) as first, Reader(w, source) as second:
        for _ in range(len(source.table)):
            for reader in (first, second):
                try:
                    reader.take()
                except scans.Lost:  # it was waited for as long as readers are
                    pass
                n_taken += 1
                reader.ack()
        decoded = scan_of(w, first.joined["scan"], lambda scan: scan["decoded"] > 0)["decoded"]
    assert n_taken == 2 * len(source.table)
    assert decoded <= max(first.next, second.next) + first.n_slots


def test_joining_in_the_middle(w, source):
    with Reader(w, source) as first:
        for _ in range(700):
            first.take()
        first.ack()
        with Reader(w, source) as second:
            assert second.joined["shared"] and second.next > 0
            second.check_circle()
            first.check_circle()


def stalled_and_others(w, source, n):
    """A reader that takes nothing, and what another one gets in n circles meanwhile."""
    stalled = Reader(w, source)
    with Reader(w, source) as other:
        assert other.joined["shared"]
        for _ in range(n):
            other.check_circle()
    return stalled


def test_a_reader_that_stalls_does_not_stop_the_others(w, source):
    stalled = stalled_and_others(w, source, 30)
    with stalled:
        with pytest.raises(scans.Lost):
            stalled.take()
        stalled.check_circle()  # it catches up


def test_a_reader_that_is_killed(daemon, w, source):
    context = multiprocessing.get_context("fork")
    ready = context.Semaphore(0)

    def read():
        with wire.Wire(daemon.socket) as own, Reader(own, source):
            ready.release()
            signal.pause()

    process = context.Process(target=read)
    process.start()
    ready.acquire()
    with Reader(w, source) as reader:
        assert reader.joined["readers"] == 2
        process.kill()
        process.join()
        for _ in range(20):
            reader.check_circle()
        scan_of(w, reader.joined["scan"], lambda scan: scan["readers"] == 1)


def test_the_ring_is_for_reading(w, source):
    with Reader(w, source) as reader:
        path = f"/proc/self/fd/{reader.ring_fd}"
        for flags in (os.O_RDONLY, os.O_RDWR):
            fd = os.open(path, flags)
            with pytest.raises(OSError):
                mmap.mmap(fd, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE)
            with pytest.raises(OSError):
                os.pwrite(fd, b"x", 0)
            with pytest.raises(OSError):
                os.ftruncate(fd, 0)
            os.close(fd)
        reader.check_circle()


LIES = [struct.pack("<QQ", 1 << 40, 1), struct.pack("<QQ", 2**64 - 1, 0), b"x", b"x" * 17, b"x" * 60000]


@pytest.mark.parametrize("lie", LIES, ids=range(len(LIES)))
def test_a_reader_that_lies_is_dropped(w, source, lie):
    with Reader(w, source) as honest, Reader(w, source) as liar:
        liar.sock.send(lie)
        while liar.sock.recv(8):
            pass
        honest.check_circle()
        scan_of(w, honest.joined["scan"], lambda scan: scan["readers"] == 1)


def test_going_backwards_is_a_lie(w, source):
    with Reader(w, source) as reader:
        for _ in range(10):
            reader.take()
        reader.ack()
        reader.ack(done=3)
        with pytest.raises((EOFError, BrokenPipeError, ConnectionResetError)):
            reader.circle()
            while reader.sock.recv(8):
                pass
            raise EOFError


def test_who_does_not_listen_is_not_waited_for(w, source):
    with Reader(w, source) as deaf, Reader(w, source) as other:
        deaf.sock.setblocking(False)
        for _ in range(2000):
            try:
                deaf.ack(wants_more=True)
            except BlockingIOError:
                break
        other.check_circle()


def test_a_chunk_that_is_damaged_is_that_chunk_alone(w, folder):
    source = Source(folder / "packed")
    offset, size, _ = source.table[7]
    with open(source.path, "r+b") as file:
        file.seek(offset + size // 2)
        file.write(b"\xff" * 8)
    with Reader(w, source) as reader:
        reader.check_circle(failed=(7,))
        reader.check_circle(failed=(7,))


def test_entries_that_point_anywhere(w, source):
    table = list(source.table)
    table[1] = (2**64 - 2, 100, 0)
    table[2] = (2**63 - 10, 100, 0)
    table[3] = (table[3][0], 2**32 - 1, 0)
    table[4] = (os.stat(source.path).st_size - 3, 100, 0)
    table[6] = (*table[6][:2], 2**32 - 1)  # no step was applied, it says
    with Reader(w, source, source.description(table=table)) as reader:
        reader.check_circle(failed=(1, 2, 3, 4, 6))


def test_a_file_that_is_cut_in_the_middle(w, source):
    with Reader(w, source) as reader:
        reader.check_circle()
        reader.ack()
        end = source.table[32][0]
        os.truncate(source.path, end)
        for _ in range(1200):  # what is in the ring is as it was
            reader.take()
        found = reader.circle()
        assert all(found[i][0] == scans.FAILED for i in range(32, 64))
        assert all(found[i][1] == source.chunks[i] for i in range(32) if i != 5)
        with Reader(w, source) as later:  # which finds another file than the first one did
            assert not later.joined["shared"]


def test_what_is_not_the_same_is_not_shared(w, source, folder):
    other = Source(folder / "other")
    moved = [source.table[1], source.table[0], *source.table[2:]]
    with Reader(w, source) as first:
        for description in (source.description(table=moved), source.description(table=source.table[:-1]),
                            source.description(steps=[scans.step(values=(5,))])):
            with Reader(w, source, description) as reader:
                assert not reader.joined["shared"]
                reader.take()
        with Reader(w, other) as reader:
            assert not reader.joined["shared"]
        with Reader(w, source) as reader:
            assert reader.joined["scan"] == first.joined["scan"]
        os.utime(source.path)
        with Reader(w, source) as reader:
            assert not reader.joined["shared"]


def test_a_file_that_is_replaced(w, source, folder):
    with Reader(w, source) as first:
        again = Source(folder / "again")
        os.rename(again.path, source.path)
        again.path = source.path
        with Reader(w, again) as second:
            assert not second.joined["shared"]
            second.check_circle()
        first.check_circle()


def test_the_process_is_killed(w, source):
    with Reader(w, source) as reader:
        scan = scan_of(w, reader.joined["scan"])
        os.kill(scan["pid"], signal.SIGKILL)
        while reader.sock.recv(8):
            pass
        with Reader(w, source) as later:
            assert not later.joined["shared"]
            later.check_circle()
            later.ack()
            scan_of(w, later.joined["scan"], lambda scan: scan["taken"] >= 64)
    told = w.call("server.stats")["scans"]
    assert told["started"] >= 2 and told["lost"] >= 1 and told["joined"] >= 2
    assert told["taken"] >= 64 and told["decoded"] >= 63


def test_a_scan_ends_when_nobody_reads(w, source):
    with Reader(w, source) as reader:
        scan = scan_of(w, reader.joined["scan"])
    end = time.monotonic() + 20
    while w.call("server.info")["scans"]:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{scan['pid']}")


def test_a_session_that_ends_takes_its_readers_along(daemon, w, source):
    with daemon.connect() as own:
        reader = Reader(own, source)
    with reader:
        with pytest.raises((EOFError, BrokenPipeError, ConnectionResetError)):
            while True:
                reader.take()


@pytest.mark.skipif(conftest.IS_SANITIZED, reason="sanitizers look into processes")
def test_the_process_is_confined(w, source):
    with Reader(w, source) as reader:
        reader.take()
        pid = scan_of(w, reader.joined["scan"])["pid"]
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            status = dict(re.findall(r"^(\w+):[ \t]*(.*)$", (task / "status").read_text(), re.M))
            assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
            assert int(status["Seccomp_filters"]) >= 2  # the broker's and its own


def garbage(source):
    good = source.description()
    yield "bad-chunk-table", b""
    yield "bad-chunk-table", good[:79]
    yield "bad-chunk-table", good[:-1]
    yield "bad-chunk-table", good + b"\0"
    yield "bad-chunk-table", source.description(magic=7)
    for bad in ((0, 4096, 1), (2**63, 4096, 1), (1, 2**40, 1), (1, 4096, 1025)):
        yield "limit-exceeded", scans.head(*bad) + bytes(40)
    for kwargs in ({"n_files": 0}, {"n_files": 1 << 15}, {"n_kinds": 0}, {"n_kinds": 65}):
        yield "limit-exceeded", source.description(**kwargs)
    yield "bad-chunk-table", good[:80] + struct.pack("<IIII", 1, 1, 0, 0) + good[96:]
    yield "bad-chunk-table", good[:80] + struct.pack("<IIII", 0, 1, 1, 0) + good[96:]
    yield "bad-argument", source.description(steps=[scans.step(b"frobnicate")])
    yield "bad-argument", source.description(steps=[scans.step(b"x" * 32)])
    yield "bad-argument", source.description(steps=[scans.step(n_values=33)])
    yield "bad-argument", source.description(steps=[scans.step(dtype=b"<f8xxxxx")])


def test_descriptions_that_are_none(w, source):
    for code, description in garbage(source):
        with pytest.raises(wire.Error) as caught:
            Reader(w, source, description)
        assert caught.value.code == code, description[:40]
        assert caught.value.argument == "description"
    with Reader(w, source) as reader:
        reader.check_circle()


def test_descriptors_that_are_none(w, source, folder):
    def refused(code, argument, **kwargs):
        with pytest.raises(wire.Error) as caught:
            w.call("scan.join", **kwargs)
        assert (caught.value.code, caught.value.argument) == (code, argument)

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stream, _ = socket.socketpair()
    described, unsealed = scans.sealed(source.description()), scans.sealed(source.description(), 2)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(str(folder / "socket"))
    listening.listen()
    to_somebody = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    to_somebody.connect(str(folder / "socket"))
    from_somebody, _ = listening.accept()
    pipe, _ = os.pipe()
    with open(source.path, "rb") as file:
        f, d, s = file.fileno(), described, theirs.fileno()
        refused("bad-request", "", fds=[d])
        refused("bad-chunk-table", "description", fds=[f, s])
        refused("bad-chunk-table", "description", fds=[unsealed, s])
        for bad in (f, pipe, stream.fileno(), listening.fileno(), to_somebody.fileno(),
                    from_somebody.fileno()):
            refused("bad-descriptor", "socket", fds=[d, bad])
    for fd in (described, unsealed, pipe):
        os.close(fd)
    for one in (ours, theirs, stream, listening, to_somebody, from_somebody):
        one.close()


def test_who_has_not_opened_the_file_to_read_it(w, source, folder):
    """By its identity alone, which everybody may know who sees its folder, nobody gets at a scan."""
    with Reader(w, source) as first:
        other = Source(folder / "other")
        for path, flags in ((other.path, os.O_RDONLY), (source.path, os.O_PATH), (source.path, os.O_WRONLY)):
            fd = os.open(path, flags)
            with pytest.raises(scans.Refused):
                Reader(w, source, fd=fd)
            os.close(fd)
        first.check_circle()


def test_a_user_has_so_many_readers(start, source):
    daemon = start()
    with daemon.connect() as w:
        readers = []
        with pytest.raises(wire.Error) as caught:
            while True:
                readers.append(Reader(w, source))
        assert caught.value.code == "quota-exceeded" and "shared scans" in caught.value.message
        assert len(readers) == 32 and len({one.joined["scan"] for one in readers}) == 1
        for reader in readers[1:]:
            reader.close()
        readers[0].check_circle()
        scan_of(w, readers[0].joined["scan"], lambda scan: scan["readers"] == 1)
        Reader(w, source).close()
        readers[0].close()


@needs_users
def test_two_users_share_what_both_may_read(start, source):
    """Each by its own descriptor. Who may not read the file has none, and the other one's scan is no
    way to it."""
    daemon = start(user=NOBODY, args=["--socket-mode", "666"])
    context = multiprocessing.get_context("fork")
    told, go = context.SimpleQueue(), context.Event()

    def as_other():
        become(4321)
        with wire.Wire(daemon.socket) as own:
            with Reader(own, source) as reader:
                reader.check_circle()
                told.put((reader.joined, [scan["scan"] for scan in own.call("server.info")["scans"]]))
            go.wait()
            try:
                os.open(source.path, os.O_RDONLY)
            except PermissionError:
                told.put("refused")

    with daemon.connect() as w, Reader(w, source) as first:
        process = context.Process(target=as_other)
        process.start()
        joined, seen = told.get()
        assert joined["shared"] and joined["scan"] == first.joined["scan"] and seen == [joined["scan"]]
        first.check_circle()
        os.chmod(source.path, 0o600)
        go.set()
        assert told.get() == "refused"
        process.join()


def test_nothing_is_left(daemon, at_first):
    daemon.wait_for_counts(at_first)
