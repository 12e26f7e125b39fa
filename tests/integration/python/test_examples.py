"""The examples of the package, as a reader would run them. Each checks its own results."""

import importlib.util
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import zlib

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


def pixels(path):
    """Of a picture whose lines have the filter 2."""
    data = path.read_bytes()
    width, height, _, colour = struct.unpack(">IIBB", data[16:26])
    at, size = 41, struct.unpack(">I", data[33:37])[0]
    lines = np.frombuffer(zlib.decompress(data[at:at + size]), "u1").reshape(height, -1)
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and (lines[:, 0] == 2).all()
    shape = (height, width) if colour == 0 else (height, width, 3)
    return np.cumsum(lines[:, 1:], axis=0, dtype="u1").reshape(shape)


def test_heat_stays_on_the_plate(run, folder):
    line, = run("heat_equation.py", "--side", 120, "--steps", 160)
    heat = [float(word) for word in line.replace(",", "").split() if "." in word]
    assert line.startswith("160 steps of 120 x 120") and abs(heat[0] - heat[1]) < 0.02
    assert -0.5 < heat[2] < heat[3] < 1
    picture = pixels(folder / "heat.png")
    assert picture.shape == (120, 360, 3) and len(np.unique(picture[:, :120].reshape(-1, 3), axis=0)) == 3
    assert len(np.unique(picture[:, 240:].reshape(-1, 3), axis=0)) > 100  # it is smooth


def loaded(name):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(EXAMPLES))
    spec.loader.exec_module(module)
    sys.path.remove(str(EXAMPLES))
    return module


def test_a_filter_of_ones_own_smooths_what_is_no_edge(run, folder):
    filter = loaded("bilateral_filter")
    x = filter.scene(210, 260)
    np.save(folder / "x.npy", x)
    line, = run("bilateral_filter.py", folder / "x.npy")
    noise, smooth = [float(word) for word in line.replace(",", "").replace(";", "").split() if "." in word]
    assert smooth < noise / 4 and int(line.split()[-1]) > 150
    reach = filter.REACH
    whole = filter.bilateral(np.pad(x, reach, "reflect"))[reach:-reach, reach:-reach]
    np.testing.assert_array_equal(pixels(folder / "smooth.png"),
                                  (np.hstack([x, whole]).clip(0, 1) * 255).astype("u1"))


def test_life_goes_on_as_numpy_has_it(run, folder):
    life = loaded("game_of_life")
    u = np.zeros((96, 128), int)
    gun = np.array([[cell == "O" for cell in line] for line in life.GUN.split()])
    u[4:13, 4:40] = gun
    for _ in range(120):
        around = sum(np.roll(u, (i, k), (0, 1)) for i in (-1, 0, 1) for k in (-1, 0, 1)) - u
        u = (around == 3) | (u & (around == 2))
    assert run("game_of_life.py", "--generations", 120) == [f"120 generations, {u.sum()} cells live"]
    np.testing.assert_array_equal(pixels(folder / "life.png")[::4, ::4] == 0, u)


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


def test_patterns_of_winds_that_it_makes(run, folder):
    lines = run("eof.py")
    image = pytest.importorskip("PIL.Image")
    with image.open(folder / "eof.png") as picture:
        drawn = np.asarray(picture.convert("RGB"))
    assert len(np.unique(drawn[200:-200, 400:-400].reshape(-1, 3), axis=0)) > 20
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
