"""The rate at which files come that are not in the page cache: seen while jobs wait for them, told in
server.info, and what estimates are made with where files are larger than memory can keep."""
import json
import os
import time

import numpy as np
import pytest

from conftest import ENGINE, Daemon

pytestmark = pytest.mark.skipif(ENGINE != "cpu", reason="the same threads wait for any engine")

MIB = 1 << 20
N_BYTES = 96 * MIB


@pytest.fixture
def daemon():
    d = Daemon(pool="16M")
    yield d
    d.stop()


def forget(path):
    """False: what is read of the file is still in the page cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            return os.preadv(file.fileno(), [bytearray(1)], N_BYTES // 2, os.RWF_NOWAIT) < 0
        except BlockingIOError:
            return True


def seconds_to_read(path):
    forget(path)
    begin = time.monotonic()
    with open(path, "rb", buffering=0) as file:
        while file.read(MIB):
            pass
    return time.monotonic() - begin


@pytest.mark.slow  # a file that takes long enough to read, several times
def test_is_told_once_jobs_had_to_wait(daemon, tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(N_BYTES // 8, dtype="<f8"))
    assert daemon.engine_info("cpu")["rates"]["disk"] == 0
    wanted = float(np.arange(N_BYTES // 8, dtype="<f8").sum())
    end = time.monotonic() + 60
    while daemon.engine_info("cpu")["rates"]["disk"] == 0 and time.monotonic() < end:
        if not forget(path):
            pytest.skip("the page cache of this file system is not to be emptied")
        done = daemon.ctl("run", "sum(a)", f"a={path}")
        assert float(done.stdout.split()[-1]) == wanted
    disk = daemon.engine_info("cpu")["rates"]["disk"]
    if disk == 0 and seconds_to_read(path) < 0.25:  # of which threads have to wait 0.1
        pytest.skip("the disk is so fast that nobody waits long enough for this file")
    assert 1e5 < disk < 1e12
    info = daemon.ctl("info").stdout
    assert any(line.split()[:1] == ["disk"] and line.endswith("/s") for line in info.splitlines())
    rates = json.loads(daemon.ctl("info", "--json").stdout)["engines"][0]["rates"]
    assert rates["disk"] > 0
