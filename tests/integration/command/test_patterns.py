"""Patterns as sources of commands: many files as one array."""

import json

import h5py
import numpy as np
import pytest


@pytest.fixture
def files(folder):
    elements = np.random.default_rng(1).normal(size=(12, 10, 8)).astype("f4")
    for i, part in enumerate(elements):
        np.save(folder / f"run{i}.npy", part)
        (folder / f"part{i}.raw").write_bytes(part.astype(">f4").tobytes())
        with h5py.File(folder / f"day_{i}.h5", "w") as f:
            f.create_dataset("t", data=part, chunks=(5, 8), compression="gzip" if i % 2 else None)
    return folder, elements


SPECS = ["run*.npy", "part*.raw:>f4:10x8", "day_*.h5:/t"]


@pytest.mark.parametrize("spec", SPECS)
def test_run_convert_and_info_take_patterns(daemon, files, spec):
    folder, elements = files
    joined = elements.reshape(120, 8)
    daemon.ctl("run", "a * 2", f"a={folder}/{spec}", "-o", folder / "twice.npy")
    np.testing.assert_array_equal(np.load(folder / "twice.npy"), joined * 2)
    daemon.ctl("run", "mean(a, axis=0)", f"a={folder}/{spec}:stack", "-o",
               folder / "mean.npy")
    np.testing.assert_allclose(np.load(folder / "mean.npy"), elements.mean(axis=0, dtype="f8"), rtol=1e-6)
    daemon.ctl("convert", f"{folder}/{spec}:stack[::-5, 1:]", folder / "some.h5:/d")
    with h5py.File(folder / "some.h5") as f:
        np.testing.assert_array_equal(f["d"], elements[::-5, 1:])
    said = json.loads(daemon.ctl("info", f"{folder}/{spec}", "--json").stdout)
    assert (said["shape"], said["files"], said["dtype"]) == ([120, 8], 12, "float32")
    assert "files   12\n" in daemon.ctl("info", f"{folder}/{spec}:stack").stdout


def test_show_takes_patterns_and_refuses_what_a_shell_has_expanded(daemon, files):
    folder, elements = files
    said = json.loads(daemon.ctl("show", f"{folder}/run*.npy", "--json").stdout)
    assert said["shape"] == [120, 8] and said["max"] == pytest.approx(float(elements.max()))
    for verb in ("show", "info", "convert"):
        done = daemon.ctl(verb, *sorted(folder.glob("run*.npy")), check=False)
        assert done.returncode == 2 and "quotes" in done.stderr


def test_a_job_of_many_files_and_an_output_among_them(daemon, files):
    folder, elements = files
    daemon.ctl("run", "a + 1", f"a={folder}/day_*.h5:/t", "-o", f"{folder}/day_3.h5:/more")
    with h5py.File(folder / "day_3.h5") as f:
        np.testing.assert_array_equal(f["more"], elements.reshape(120, 8) + np.float32(1))
        np.testing.assert_array_equal(f["t"], elements[3])
    daemon.ctl("run", "a + 1", f"a={folder}/run*.npy", "-o", folder / "run5.npy")
    np.testing.assert_array_equal(np.load(folder / "run5.npy"), elements.reshape(120, 8) + np.float32(1))


def test_what_is_wrong_is_said(daemon, files):
    folder, _ = files
    done = daemon.ctl("info", f"{folder}/none*.npy", check=False)
    assert done.returncode == 1 and "no file matches" in done.stderr
    np.save(folder / "run4.npy", np.zeros((10, 8), "f8"))
    done = daemon.ctl("run", "sum(a)", f"a={folder}/run*.npy", check=False)
    assert done.returncode == 1 and "run4.npy" in done.stderr and "float64" in done.stderr
    done = daemon.ctl("run", "a + 1", f"a={folder}/day_*.h5:/t", "-o", f"a={folder}/run*.npy",
                      "--in-place", check=False)
    assert done.returncode != 0
