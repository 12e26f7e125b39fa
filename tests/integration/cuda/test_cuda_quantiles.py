"""Quantiles on a device (cuda_daemons.py): the tests of test_quantiles.py that jobs decide. Keys and
counts are whole numbers, so everything equals NumPy as it does on the CPU."""

import pytest

import conftest
import test_quantiles
from test_quantiles import (  # noqa: F401: run here too
    test_every_function,
    test_inside_expressions,
    test_nan_and_infinities,
    test_of_nothing,
    test_places_follow_from_each_slices_own_count,
    test_the_ends_of_integers,
)

pytestmark = [*test_quantiles.pytestmark, pytest.mark.slow]


@pytest.fixture(scope="module")
def daemon():
    """With room for many quantiles of 64-bit numbers along an axis."""
    d = conftest.Daemon(engine="cuda", pool="64M")
    yield d
    engine = d.engine_info()
    d.stop()
    assert engine["restarts"] == 0, engine
