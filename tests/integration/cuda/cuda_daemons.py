"""Daemons whose jobs a device computes, for modules that run the tests of others on them: these
import the fixtures below in the place of those of conftest.py, and the tests.

The device is the test double (tests/double), on the host's memory; with GPUARRAYD_TEST_WORKER it is
a real one, and what only the double does is skipped.
"""

import pytest

import conftest

needs_double = pytest.mark.skipif(not conftest.IS_DOUBLE,
                                  reason="only the test double fails when it is told to")


def double(*faults, **more):
    """The environment that makes the double go wrong: double("no-driver"), double(devices=2)."""
    names = {name: name if name.endswith("_bytes") else name.replace("_", "-") for name in more}
    words = [*faults, *(f"{names[name]}={value}" for name, value in more.items())]
    return {"GPUARRAYD_DOUBLE": ",".join(words)}


@pytest.fixture(scope="module")
def daemon():
    """One daemon for a module, with the smallest pool; its worker lives through all tests."""
    d = conftest.Daemon(engine="cuda")
    yield d
    engine = d.engine_info()
    d.stop()
    assert engine["restarts"] == 0, engine


@pytest.fixture(scope="module")
def both():
    """A daemon with a CPU worker and a device's."""
    d = conftest.Daemon(engine="auto")
    d.wait_for_state("ready", "cpu")
    d.wait_for_state("ready")
    yield d
    d.stop()


@pytest.fixture
def start(start):
    return lambda **kwargs: start(**{"engine": "cuda", **kwargs})
