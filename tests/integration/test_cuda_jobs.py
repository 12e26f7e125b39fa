"""Jobs of every kind on a device: the tests of the CPU worker's, on daemons with a CUDA worker."""

import os
import pathlib
import tempfile

import numpy as np
import pytest

import wire
from cuda_daemons import daemon, start  # noqa: F401: fixtures
from test_jobs import (  # noqa: F401
    MIB,
    test_a_disk_that_fills_up,
    test_a_file_that_is_cut_while_the_job_runs,
    test_an_idempotency_key_runs_once,
    test_cancel_between_tiles,
    test_chunk_tables_that_lie,
    test_grids_of_chunks,
    test_layouts_of_files,
    test_plan_says_what_run_would_do,
    test_progress_wait_and_pipelining,
    test_settling,
)
from test_provider import (  # noqa: F401
    test_a_provider_that_fails,
    test_a_provider_that_never_answers_holds_nobody_up,
    test_blocks_come_and_go,
    test_one_that_changes_ring_headers_while_we_read,
    test_rings_that_cannot_be,
)
from test_trees import ops, test_trees_in_place, test_trees_over_many_tiles_of_a_tiny_pool  # noqa: F401
from test_worker import test_an_input_may_be_written_over_whatever_else_the_pass_does  # noqa: F401
from test_worker_loss import (  # noqa: F401
    test_killed_from_outside_all_jobs_complete,
    test_nothing_is_left_when_the_broker_is_killed,
    test_regions_survive_the_worker,
)


@pytest.fixture(scope="module")
def big():
    """64 MiB of float32 on disk, eight times the pool."""
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-") as path:
        a = np.random.default_rng(6).normal(size=16 * MIB).astype("f4")
        a.tofile(os.path.join(path, "big.raw"))
        yield pathlib.Path(path), a


@pytest.fixture(scope="module")
def source():
    """(file, array) of a few tiles, for jobs whose worker is killed."""
    a = np.random.default_rng(10).normal(size=MIB).astype("f4")
    fd = wire.memfd(a.nbytes)
    os.pwrite(fd, a.tobytes(), 0)
    yield fd, a
    os.close(fd)
