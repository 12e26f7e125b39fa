"""Sessions of the extension alone, for its own tests."""

import gc

import pytest

from gpuarrayd import _core


def connect(daemon, **options):
    return _core.Session(**{"socket": daemon.socket, "client_name": "test_core", "start": False,
                            "daemon": None, "timeout": 10.0, **options})


@pytest.fixture
def session(daemon):
    """A session of its own; afterwards the daemon's counts are as before."""
    before = daemon.quiet_counts()
    made = connect(daemon)
    yield made
    gc.collect()
    gc.freeze()
    made.close()
    daemon.wait_for_counts(before)
