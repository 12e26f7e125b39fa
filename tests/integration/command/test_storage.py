"""HDF5 datasets whose elements are not in the file yet, or in another one."""

import os

import h5py
import numpy as np
import pytest


@pytest.fixture
def made(tmp_path):
    """Datasets as h5py makes them: without storage until somebody writes to them."""
    with h5py.File(tmp_path / "u.h5", "w") as f:
        f.create_dataset("zeros", (1000, 10), "f8")
        f.create_dataset("sevens", (100, 10), "f8", fillvalue=7.0)
        f.create_dataset("swapped", (100,), ">i4")
        f.create_dataset("number", (), "f4")
        f["other"] = np.arange(5.0)
    np.save(tmp_path / "x.npy", np.arange(100.0).reshape(10, 10))
    return tmp_path


def test_what_was_never_written_to_is_written_in_place(daemon, made):
    daemon.ctl("run", "x + 1", "x=x.npy", "-o", "u.h5:/zeros[5:15]", "--in-place", cwd=made)
    daemon.ctl("run", "x + 1", "x=x.npy", "-o", "u.h5:/sevens[5:15]", "--in-place", cwd=made)
    daemon.ctl("run", "x * 3", "x=u.h5:/other[4]", "-o", "u.h5:/number", "--in-place", cwd=made)
    x = np.load(made / "x.npy")
    with h5py.File(made / "u.h5") as f:
        for name, value, rows in (("zeros", 0, 1000), ("sevens", 7, 100)):
            want = np.full((rows, 10), float(value))
            want[5:15] = x + 1
            assert np.array_equal(f[name], want), name
        assert f["number"][()] == 12 and np.array_equal(f["other"], np.arange(5.0))
        assert not f["swapped"][:].any()


def test_what_is_read_and_written_has_one_storage(daemon, made):
    """The source is the destination: as it was, whatever has been written of it."""
    for name, value in (("zeros", 0), ("sevens", 7)):
        daemon.ctl("run", "x * 2 + 1", f"x=u.h5:/{name}", "-o", f"u.h5:/{name}", "--in-place", cwd=made)
        with h5py.File(made / "u.h5") as f:
            assert (f[name][:] == 2 * value + 1).all()
    daemon.ctl("run", "x - 1", "x=u.h5:/swapped", "-o", "u.h5:/swapped", "--in-place", cwd=made)
    with h5py.File(made / "u.h5") as f:
        assert (f["swapped"][:] == -1).all() and f["swapped"].dtype == ">i4"


@pytest.mark.slow  # the package of a sanitizer's build cannot be loaded here
def test_one_that_was_opened_before_does_not_read_what_is_being_written(daemon, made):
    import gpuarrayd as gd
    gd.connect(daemon.socket, start=False)
    before = gd.open(str(made / "u.h5:/zeros"))
    out = gd.open(str(made / "u.h5:/zeros"), "r+")
    try:
        gd.evaluate("x + 1", x=before, out=out)
    except gd.errors.Error as error:
        assert "Stale" in str(error)
    with h5py.File(made / "u.h5") as f:
        assert set(np.unique(f["zeros"])) <= {0, 1}


def test_chunks_are_still_refused_in_place(daemon, made):
    with h5py.File(made / "u.h5", "a") as f:
        f.create_dataset("chunks", (100, 10), "f8", chunks=(10, 10))
    done = daemon.ctl("run", "x", "x=1", "-o", "u.h5:/chunks", "--in-place", cwd=made, check=False)
    assert done.returncode == 1 and "only contiguous" in done.stderr


@pytest.mark.parametrize("prefix", [None, "elsewhere"])
def test_a_missing_file_of_elements_is_named(daemon, tmp_path, prefix, monkeypatch):
    with h5py.File(tmp_path / "e.h5", "w") as f:
        f.create_dataset("x", (10,), "f8", external=[("missing.bin", 0, 80)])
    if prefix:
        (tmp_path / prefix).mkdir()
        monkeypatch.setenv("HDF5_EXTFILE_PREFIX", str(tmp_path / prefix))
    done = daemon.ctl("run", "sum(x)", "x=e.h5:/x", cwd=tmp_path, check=False)
    assert done.returncode == 1 and "[not-found]" in done.stderr
    assert "missing.bin" in done.stderr and "Input/output" not in done.stderr
    assert (prefix or "") in done.stderr
    (tmp_path / (prefix or ".") / "missing.bin").write_bytes(np.arange(10.0).tobytes())
    assert daemon.ctl("run", "sum(x)", "x=e.h5:/x", cwd=tmp_path).stdout == "45\n"
    if os.geteuid():
        (tmp_path / (prefix or ".") / "missing.bin").chmod(0)
        done = daemon.ctl("run", "sum(x)", "x=e.h5:/x", cwd=tmp_path, check=False)
        assert "[permission-denied]" in done.stderr and "missing.bin" in done.stderr
