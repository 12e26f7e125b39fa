"""A journal belongs to what is in its output, not to the output's name: whoever makes the file anew
after a job that was interrupted, with the same name and in the same place, is told so, and what is in
the file stays as it is. An attacker and a careless user do the same."""

import os
import shutil
import signal
import subprocess

import numpy as np
import pytest

import conftest
import wire
from test_broker import until
from test_product_jobs import Sum, marks, refused

SHAPE = (700, 300, 900)


def end_at(daemon, journal, n_marks):
    """Worker and daemon are killed when so many marks are in the journal, or more."""
    worker = daemon.worker_pid()
    until(lambda: journal.exists() and marks(journal)[0][0] >= n_marks)
    daemon.process.kill()
    os.kill(worker, signal.SIGKILL)
    daemon.kill()
    daemon.log.close()
    shutil.rmtree(daemon.dir, ignore_errors=True)


def interrupted(folder, n_marks):
    """Two marks a tile: it is in the journal; it is in the output."""
    total = Sum(folder, seed=n_marks, shape=SHAPE)
    daemon = conftest.Daemon(worker=conftest.FAULTY_WORKER, pool="8M")
    w = daemon.connect()
    total.send(w, False, label="fault:slow")
    end_at(daemon, total.folder / "journal", n_marks)
    w.close()
    total.close()
    return total


@pytest.fixture
def again(start):
    """A daemon to go on with, when there is something to go on from."""
    def connect():
        return start(pool="8M").connect()
    return connect


@pytest.mark.parametrize("n_marks", [1, 2, 5])
def test_an_output_that_was_made_anew_is_not_added_to(again, folder, n_marks):
    total = interrupted(folder, n_marks)
    journal = total.folder / "journal"
    was = total.got(False).copy()
    other = np.random.default_rng(n_marks).integers(-9, 10, total.c.shape).astype("f8")
    with again() as w:
        kept = journal.read_bytes()
        for content in (other, np.zeros_like(other), was + 1):
            (total.folder / "c").write_bytes(content.tobytes())
            error = refused(w, total)
            assert "changed since the journal was written" in error.message
            assert error.expected and error.found
            assert np.array_equal(total.got(False), content), "nothing is touched"
        assert journal.read_bytes() == kept
        (total.folder / "c").write_bytes(was.tobytes())
        assert w.reply(total.send(w, False))["journal"] == "continued"
    assert np.array_equal(total.got(False), total.expected())
    total.close()
    os.close(total.memfd)


def test_one_changed_element_of_what_was_added_is_seen(again, folder):
    total = interrupted(folder, 4)
    was = total.got(False).copy()
    changed = np.argwhere((was == total.expected()) & (was != total.c))[::9973]
    assert len(changed) > 3
    with again() as w:
        for place in changed:
            with_one = was.copy()
            with_one[tuple(place)] += 1
            (total.folder / "c").write_bytes(with_one.tobytes())
            refused(w, total)
        (total.folder / "c").write_bytes(was.tobytes())
        w.reply(total.send(w, False))
    assert np.array_equal(total.got(False), total.expected())
    total.close()
    os.close(total.memfd)


def test_a_complete_journal_is_none_of_a_file_that_was_made_anew(w, folder):
    """The client was killed before it removed the journal: "nothing is left to add" would be wrong."""
    total = Sum(folder, shape=SHAPE)
    assert w.reply(total.send(w, False))["journal"] == "new"
    total.close()
    (total.folder / "c").write_bytes(total.c.tobytes())
    assert "changed since" in refused(w, total).message
    os.truncate(total.folder / "journal", 0)
    assert w.reply(total.send(w, False))["journal"] == "new"
    assert np.array_equal(total.got(False), total.expected())
    total.close()
    os.close(total.memfd)


def test_an_output_that_cannot_be_read_has_no_journal(w, folder):
    total = Sum(folder, shape=(30, 20, 40))
    fds = total.opened("a", "b", "journal")
    fds.append(os.open(total.folder / "c", os.O_WRONLY))
    total.fds.append(fds[-1])
    described = wire.described
    with pytest.raises(wire.Error) as caught:
        w.call("job.run", fds=fds, journal={"fd": 2},
               args={"a": described(total.a, {"kind": "file", "fd": 0, "offset": 0}),
                     "b": described(total.b, {"kind": "file", "fd": 1, "offset": 0})},
               outputs=[{"expr": "a @ b",
                         "to": described(total.c, {"kind": "file", "fd": 3, "offset": 0})}])
    assert caught.value.code == "bad-journal" and "for reading" in caught.value.message
    total.close()
    os.close(total.memfd)


def test_the_command_says_so(start, tmp_path):
    rng = np.random.default_rng(3)
    a, b = rng.integers(-9, 10, (700, 500)) * 1.0, rng.integers(-9, 10, (500, 900)) * 1.0
    c = np.zeros((700, 900))
    for name, array in zip("abc", (a, b, c)):
        np.save(tmp_path / f"{name}.npy", array)
    daemon = conftest.Daemon(worker=conftest.FAULTY_WORKER, pool="8M")
    words = ["matmul", "a.npy", "b.npy", "-o", "c.npy", "--beta", "1"]
    journal = tmp_path / "c.npy.journal"
    command = subprocess.Popen([str(conftest.CTL), *words, "--label", "fault:slow"], cwd=tmp_path,
                               env={**os.environ, "GPUARRAYD_SOCKET": str(daemon.socket)},
                               stderr=subprocess.PIPE)
    end_at(daemon, journal, 1)
    command.kill()
    command.communicate()
    daemon = start(pool="8M")
    np.save(tmp_path / "c.npy", c + 5)  # the same inode
    done = daemon.ctl(*words, cwd=tmp_path, check=False)
    assert done.returncode == 1 and "[bad-journal]" in done.stderr and "changed since" in done.stderr
    assert "c.npy.journal" in done.stderr and "Remove it" in done.stderr
    assert np.array_equal(np.load(tmp_path / "c.npy"), c + 5)
    journal.unlink()
    daemon.ctl(*words, cwd=tmp_path)
    assert np.array_equal(np.load(tmp_path / "c.npy"), a @ b + c + 5)
