"""Rows of large files in the page cache are copied by a process of their own, which may die."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

N, BATCH = 9000, 256  # rows of 4000 bytes: as many as are worth a process
ROWS = np.arange(N, dtype="f4")


@pytest.fixture
def path(folder):
    path = folder / "rows.npy"
    x = np.lib.format.open_memmap(path, "w+", "f4", (N, 1000))
    x[...] = ROWS[:, None]
    del x
    return path


def copiers(path):
    """Processes that map the file."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        try:
            if process.name.isdigit() and b"gpuarrayd-scan\0copy" in (process / "cmdline").read_bytes():
                if str(path) in (process / "maps").read_text():
                    found.append(int(process.name))
        except OSError:
            pass
    return found


def wait_for_none(path):
    end = time.monotonic() + 20
    while copiers(path):
        assert time.monotonic() < end
        time.sleep(0.02)


def taken(batches, n=None):
    """The first column of each batch, whose rows are whole."""
    columns = []
    for batch in batches:
        columns.append(batch["x"][:, 0].copy())
        assert (batch["x"] == columns[-1][:, None]).all()
        if len(columns) == n:
            break
    return np.concatenate(columns)


def test_each_row_comes_once_also_when_the_process_is_killed(gd, path):
    loader = gd.DataLoader(gd.Dataset(x=path), BATCH, shuffle=True, seed=3)
    order = gd.random.permutation(N, seed=3).compute()
    assert "by a process" in loader.explain()
    batches = iter(loader)
    first = taken(batches, 5)
    (copier,) = copiers(path)
    os.kill(copier, signal.SIGKILL)
    assert np.array_equal(np.concatenate([first, taken(batches)]), ROWS[order])
    assert copiers(path) == []
    assert sorted(taken(loader)) == list(ROWS)  # by itself


def test_jumps_while_the_next_rows_are_known(gd, path):
    """Rows are found ahead while others are copied: of the epoch, seed and rank that are at hand."""
    loader = gd.DataLoader(gd.Dataset(x=path), BATCH, shuffle=True, seed=3, shard=(1, 3), prefetch=12)
    other = gd.DataLoader(gd.Dataset(x=path), BATCH, shuffle=True, seed=4, shard=(0, 3))
    other.set_epoch(7)
    next(iter(other))
    for jump in (lambda: None, lambda: loader.set_epoch(5), lambda: loader.load_state_dict(other.state_dict())):
        jump()
        for batch in loader:
            alone = loader[batch.index].rows
            assert np.array_equal(batch.rows, alone) and np.array_equal(batch["x"][:, 9], ROWS[alone])
            if batch.index == 20:
                break
    assert len(copiers(path)) == 2


def test_it_ends_with_its_loader_and_with_a_trainer_that_is_killed(gd, daemon, path):
    loader = gd.DataLoader(gd.Dataset(x=path), BATCH, shuffle=True)
    taken(iter(loader), 1)
    assert len(copiers(path)) == 1
    del loader
    wait_for_none(path)
    program = ("import os, sys, time, gpuarrayd as gd\n"
               f"gd.connect({str(daemon.socket)!r})\n"
               f"batches = iter(gd.DataLoader(gd.Dataset(x={str(path)!r}), {BATCH}, shuffle=True))\n"
               "next(batches)\n"
               "if os.fork() == 0: time.sleep(60)\n"  # it has copies of all descriptors
               "print(flush=True); time.sleep(60)\n")
    trainer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    trainer.stdout.readline()
    assert len(copiers(path)) == 1
    trainer.kill()
    trainer.wait()
    wait_for_none(path)
    os.killpg(trainer.pid, signal.SIGKILL)
    trainer.stdout.close()


def test_a_file_that_is_cut_meanwhile(gd, path):
    loader = gd.DataLoader(gd.Dataset(x=path), BATCH, shuffle=True, memory="2M")
    batches = iter(loader)
    taken(batches, 1)
    os.truncate(path, 8 << 20)
    with pytest.raises(gd.Error) as caught:
        taken(batches)
    assert caught.value.code == "dataset-changed"
    with pytest.raises(gd.Error) as caught:
        loader[0]
    assert caught.value.code == "dataset-changed"


def test_short_rows_are_read_by_themselves_while_they_can_be_copied(gd, folder):
    n, path = 80000, folder / "short.npy"
    x = np.lib.format.open_memmap(path, "w+", "f4", (n, 128))
    x[...] = np.arange(n, dtype="f4")[:, None]
    x.flush()
    del x
    loader = gd.DataLoader(gd.Dataset(x=path), 500, shuffle=True, seed=3, memory="8M")
    assert "plan      direct" in loader.explain()
    batches = iter(loader)
    first = taken(batches, 40)
    (copier,) = copiers(path)
    os.kill(copier, signal.SIGKILL)
    order = gd.random.permutation(n, seed=3).compute()
    assert np.array_equal(np.concatenate([first, taken(batches)]), order.astype("f4"))
    assert "plan      scan" in loader.explain()


def test_short_rows_that_left_the_memory_are_copied_again_after_a_window(gd, folder):
    n, path = 80000, folder / "short.npy"
    np.save(path, np.broadcast_to(np.arange(n, dtype="f4")[:, None], (n, 128)))
    loader = gd.DataLoader(gd.Dataset(x=path), 500, shuffle=True, seed=3, memory="8M")
    order = gd.random.permutation(n, seed=3).compute()
    with open(path, "rb") as file:  # before the process maps it
        os.fsync(file)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            os.preadv(file.fileno(), [bytearray(1)], 1 << 20, os.RWF_NOWAIT)
            pytest.skip("here files do not leave the memory")
        except BlockingIOError:
            pass
    assert "plan      direct" in loader.explain()
    columns, plans = [], []
    for batch in loader:
        columns.append(batch["x"][:, 0].copy())
        plans.append("plan      scan" in loader.explain())
    assert np.array_equal(np.concatenate(columns), order.astype("f4"))
    assert any(plans) and not plans[-1]
    assert "note" not in loader.explain() and len(copiers(path)) == 1
