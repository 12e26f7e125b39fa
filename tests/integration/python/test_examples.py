"""The examples of the package, as a reader would run them. Each checks its own results."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import gpuarrayd

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "client/python/examples"
WINDS = pathlib.Path("/usr/share/ferret-vis/data/monthly_navy_winds.cdf")
PACKAGE = pathlib.Path(gpuarrayd.__file__).parents[1]


@pytest.fixture
def run(daemon, folder):
    """run("x.py", ...) -> the lines that it prints. Nothing stays with the daemon or on disk."""
    before = daemon.quiet_counts()
    temporary = folder / "tmp"
    temporary.mkdir()
    env = {**os.environ, "GPUARRAYD_SOCKET": daemon.socket, "TMPDIR": str(temporary),
           "DASK_TEMPORARY_DIRECTORY": str(folder / "dask"),
           "DASK_LOGGING__DISTRIBUTED": "critical",  # a heartbeat that meets the cluster's end
           "PYTHONPATH": f"{PACKAGE}:{os.environ.get('PYTHONPATH', '')}"}

    def start(name, *args, status=0, words=""):
        done = subprocess.run([sys.executable, str(EXAMPLES / name), *map(str, args)], env=env,
                              capture_output=True, text=True, timeout=120, cwd=folder)
        assert (done.returncode, done.stderr) == (status, words)
        return done.stdout.splitlines()

    yield start
    assert not list(temporary.iterdir())
    daemon.wait_for_counts(before)


def test_wind_speed_of_winds_that_it_makes(run):
    pytest.importorskip("h5py")
    lines = run("windspeed.py")
    assert lines[0] == "speed float32 (132, 73, 144)"
    assert lines[1].startswith("mean 6.2")  # 5 sqrt(pi / 2)
    assert lines[-1] == "the last month is what NumPy computes"


@pytest.mark.skipif(not WINDS.exists() or not shutil.which("nccopy"), reason="no measured winds")
def test_wind_speed_of_measured_winds(run, folder):
    h5py = pytest.importorskip("h5py")
    subprocess.run(["nccopy", "-k", "nc4", str(WINDS), str(folder / "winds.h5")], check=True)
    lines = run("windspeed.py", folder / "winds.h5", folder / "speed.npy")
    with h5py.File(folder / "winds.h5") as file:
        u, v = file["UWND"][:], file["VWND"][:]
    speed = np.load(folder / "speed.npy")
    np.testing.assert_array_equal(speed, np.sqrt(u * u + v * v))
    told = f"mean {speed.mean(dtype='f8'):.3f} m/s, highest {speed.max():.3f} m/s"
    assert lines[1] == f"{told}, gales: {np.count_nonzero(speed > 17.2)} of {speed.size}"


def test_standard_scores_of_random_numbers(run):
    lines = run("standard_scores.py")
    assert lines[0] == "scores float32 (20000, 400)"
    assert lines[1].startswith("means within ") and "highest " in lines[2]
    assert lines[3] == "the first are what NumPy computes"


def test_standard_scores_along_another_axis(run, folder):
    np.save(folder / "x.npy", np.random.default_rng(0).normal(3, 2, (30, 500)))
    lines = run("standard_scores.py", folder / "x.npy", folder / "z.npy", "--axis", 1)
    assert lines[0] == "scores float64 (30, 500)" and lines[3].startswith("the first are")
    x = np.load(folder / "x.npy")
    want = (x - x.mean(1, keepdims=True)) / x.std(1, ddof=1, keepdims=True)
    np.testing.assert_allclose(np.load(folder / "z.npy"), want, rtol=1e-9, atol=1e-12)


def test_an_array_larger_than_memory(run):
    lines = run("larger_than_memory.py")
    assert len(lines) == 2 and lines[0].startswith("NumPy: ")
    assert lines[1] == "gpuarrayd: mean 0.015984, highest 999, and 0.125 GB written"


def test_an_array_that_fits_is_no_example_of_one_that_does_not(run):
    lines = run("larger_than_memory.py", "--gigabytes", 0.001, status=1,
                words="the array fits into memory: give more --gigabytes\n")
    assert lines == []


def test_a_loop_over_blocks_in_one_line(run):
    lines = run("spectral_cube.py", "--rows", 256)
    assert [line.split(":")[0] for line in lines] == ["loop over blocks", "one line", "they agree"]


def test_the_same_with_dask(run):
    pytest.importorskip("distributed", "2023.9.2")
    lines = run("spectral_cube_dask.py", "--rows", 256)
    assert lines[0] == "4 workers, 1 daemon(s)"
    assert [line.split(":")[0] for line in lines[1:]] == ["loop over blocks", "with Dask",
                                                         "they agree"]


def test_a_network_that_is_trained_from_a_compressed_file(run):
    pytest.importorskip("h5py")
    lines = run("trained_network.py")
    assert lines[0].startswith("11 MiB of rows") and lines[0].endswith(" 3 MiB of memory")
    last = float(lines[2].rsplit(" ", 1)[1])
    assert lines[1].startswith("epoch 0: loss 2.") and last < 0.5
    assert lines[3] == "two ranks go on from batch 70 of epoch 1: the same weights"


def test_patterns_of_winds_that_it_makes(run):
    lines = run("eof.py")
    parts = [float(line.split(":")[1].split("%")[0]) for line in lines[:3]]
    assert parts[0] > parts[1] > 10 * parts[2] and sum(parts) > 90  # two are planted
    assert len(lines) == 3 + 18 and lines[3 + 4].count("@") > 60  # all around, at 50 degrees


@pytest.mark.skipif(not WINDS.exists(), reason="no measured winds")
def test_patterns_of_measured_winds(run):
    netcdf = pytest.importorskip("netCDF4")
    lines = run("eof.py", f"{WINDS}:/UWND")
    with netcdf.Dataset(WINDS) as file:
        u = np.ma.getdata(file["UWND"][:]).astype("f8").reshape(11, 12, 73, 144)
    area = np.cos(np.linspace(-np.pi / 2, np.pi / 2, 73)).clip(0)
    anomaly = ((u - u.mean(axis=0)) * np.sqrt(area)[:, None]).reshape(132, -1)
    s = np.linalg.svd(anomaly, compute_uv=False)
    for line, part in zip(lines[:3], s ** 2 / (s @ s)):
        assert f": {part:.1%} of the variance" in line
