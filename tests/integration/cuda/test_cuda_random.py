"""Random numbers on a device (cuda_daemons.py): the tests of test_random.py that jobs decide, and the
CPU engine's bytes for every distribution."""

import numpy as np
import pytest

import conftest
from cuda_daemons import daemon, start  # noqa: F401: fixtures
from test_random import (  # noqa: F401: run here too
    test_all_distributions_are_of_their_kind,
    test_by_rows_a_row_has_its_numbers_whatever_it_is_drawn_with,
    test_by_rows_one_number_for_each_broadcasts, test_integers_are_the_upper_half_of_a_product,
    test_parameters_may_be_arrays, test_uniform_is_philox_in_every_format)


@pytest.fixture(scope="module")
def cpu_daemon():
    d = conftest.Daemon()
    yield d
    d.stop()


@pytest.mark.parametrize("what", [
    "uniform(seed=3)", "uniform(seed=3, dtype=float32)", "normal(seed=3)",
    "normal(10, 3, seed=3, dtype=float32)", "exponential(seed=3)",
    "exponential(seed=3, dtype=float32)", "integers(-5, 1000, seed=3)", "bernoulli(0.3, seed=3)",
    "poisson(0.5, seed=3)", "poisson(9.5, seed=3)", "poisson(1000, seed=3)", "poisson(x, seed=3)",
    "choice(37, seed=3)", "permutation(50000, seed=3)"])
@pytest.mark.values
def test_the_bytes_of_the_cpu_engine(daemon, cpu_daemon, folder, what):
    np.save(folder / "x.npy", np.linspace(0, 40, 50000).reshape(250, 200))
    made = []
    for name, each in (("cpu", cpu_daemon), ("cuda", daemon)):
        shape = "" if what.startswith("permutation") else " + 0*x"
        each.ctl("run", what + shape, *([f"x={folder}/x.npy"] if "x" in shape + what else []),
                 "-o", folder / f"{name}.npy")
        made.append(np.load(folder / f"{name}.npy"))
    assert made[0].tobytes() == made[1].tobytes()


def test_batches_are_transformed_there(daemon, cpu_daemon, folder):
    """Random augmentation, too, has the CPU engine's bits."""
    np.save(folder / "x.npy", np.linspace(-3, 9, 3000, dtype="f4").reshape(100, 30))
    np.save(folder / "m.npy", np.arange(30, dtype="f4"))
    made = []
    for engine, each in (("cpu", cpu_daemon), ("cuda", daemon)):
        each.ctl("batches", f"x={folder}/x.npy", "--batch-size", 32, "--shuffle", "--seed", 5, "--index", 2,
                 "--transform", "x=where(bernoulli(0.3), (x - m)/2, x + 0.1*normal(dtype=float32))",
                 "--with", f"m={folder}/m.npy", "--engine", engine, "-o", folder / f"{engine}.npy")
        made.append(np.load(folder / f"{engine}.npy"))
    assert made[0].shape == (32, 30) and made[0].tobytes() == made[1].tobytes()
