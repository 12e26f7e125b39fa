"""Memory that is not there yet: whoever hands it over has it allocated, on its own account, or writes to
it by itself. The daemon allocates nothing of a client's."""

import ctypes
import fcntl
import os

import numpy as np
import pytest

import wire
from wire import Error, described, file_at

MIB = 1 << 20
PUNCH_HOLE = 2 | 1  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
_libc = ctypes.CDLL(None, use_errno=True)


def punch(fd, n_bytes):
    done = _libc.fallocate(fd, PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(n_bytes))
    if done:
        raise OSError(ctypes.get_errno(), "fallocate")


def allocated(fd):
    return os.fstat(fd).st_blocks * 512


def refused(w, code, fd, n=MIB):
    a = np.zeros(n, "f8")
    with pytest.raises(Error) as caught:
        w.call("job.run", fds=[fd], args={}, outputs=[{
            "expr": f"uniform(size={n}, seed=1)", "to": described(a, file_at(0))}])
    assert caught.value.code == code, caught.value
    return caught.value


@pytest.mark.parametrize("make", ["memfd", "tmpfs"])
def test_outputs_in_memory_must_be_reserved(start, make):
    daemon = start()
    fd = (os.memfd_create("sparse") if make == "memfd"
          else os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR, 0o600))
    with daemon.connect() as w:
        refused(w, "use-provider", fd)  # it is empty
        os.ftruncate(fd, 8 * MIB)
        error = refused(w, "use-provider", fd)
        assert "without holes" in error.expected and "with holes" in error.found
        assert allocated(fd) == 0
        os.posix_fallocate(fd, 0, 8 * MIB)
        w.call("job.run", fds=[fd], args={}, outputs=[{
            "expr": f"uniform(size={MIB}, seed=1)", "to": described(np.zeros(MIB), file_at(0))}])
    os.close(fd)


def test_what_is_taken_away_while_a_job_writes_is_not_filled_again(start):
    """The job fails, and what it may have filled until it saw that is a small part."""
    daemon = start(pool="4M")
    n = 64 * MIB
    fd = os.memfd_create("punched")
    os.posix_fallocate(fd, 0, 8 * n)
    with daemon.connect() as w:
        ident = w.send("job.run", fds=[fd], args={}, outputs=[{
            "expr": f"normal(size={n}, seed=1)", "to": {"dtype": "<f8", "shape": [n], "at": file_at(0)}}])
        while True:
            jobs = w.call("job.list")
            if jobs and jobs[0]["tiles_done"] > 0:
                break
        punch(fd, 8 * n)
        with pytest.raises(Error) as caught:
            w.reply(ident)
        assert caught.value.code == "region-fault", caught.value
    assert allocated(fd) < 4 * n
    os.close(fd)


def test_a_region_for_reading_alone_is_sealed(start):
    daemon = start()
    with daemon.connect() as w:
        region = wire.Region(w, MIB)
        fd = os.open(f"/proc/self/fd/{region.fd}", os.O_RDONLY)
        with pytest.raises(Error) as caught:
            w.call("region.attach", fds=[fd], size=MIB, writable=False)
        assert caught.value.code == "bad-region" and "F_SEAL_FUTURE_WRITE" in caught.value.message
        fcntl.fcntl(region.fd, wire.F_ADD_SEALS, wire.F_SEAL_FUTURE_WRITE)
        with pytest.raises(OSError):
            punch(region.fd, MIB)
        ident = w.call("region.attach", fds=[fd], size=MIB, writable=False)["region"]
        a = region.array("f8", (1000,))
        a[:] = 1
        reply = w.run("sum(a)", a=described(a, {"kind": "region", "id": ident, "offset": 0}))
        assert wire.result_array(reply["outputs"][0])[()] == 1000
    os.close(fd)
