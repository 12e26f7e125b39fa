"""Jobs of every kind on a device: the tests of the CPU worker's, on daemons with a CUDA worker."""

import itertools
import os
import pathlib
import tempfile

import numpy as np
import pytest

import conftest
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
from test_worker import test_an_input_may_be_written_over_whatever_else_the_pass_does  # noqa: F401
from test_worker_loss import (  # noqa: F401
    test_killed_from_outside_all_jobs_complete,
    test_nothing_is_left_when_the_broker_is_killed,
    test_regions_survive_the_worker,
)


# The test double under sanitizers computes each value tens of times as slowly.
N_BIG, N_SOURCE = (4 * MIB, MIB // 2) if conftest.IS_SANITIZED else (16 * MIB, MIB)


@pytest.fixture(scope="module")
def big():
    """64 MiB of float32 on disk, eight times the pool; under sanitizers 16 MiB."""
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-") as path:
        a = np.random.default_rng(6).normal(size=N_BIG).astype("f4")
        a.tofile(os.path.join(path, "big.raw"))
        yield pathlib.Path(path), a


@pytest.fixture(scope="module")
def source():
    """(file, array) of a few tiles, for jobs whose worker is killed."""
    a = np.random.default_rng(10).normal(size=N_SOURCE).astype("f4")
    fd = wire.memfd(a.nbytes)
    os.pwrite(fd, a.tobytes(), 0)
    yield fd, a
    os.close(fd)


def test_states_of_scans_go_from_tile_to_tile(w):
    """Reversed, transposed, with gaps and in the other byte order."""
    n_bytes = 60 * 7000 * 8
    region = wire.Region(w, 2 * n_bytes)
    for dtype in ("<i8", ">i8"):
        a = region.array(dtype, (60, 7000))
        a[:] = np.random.default_rng(1).integers(-100, 100, a.shape)
        for axis, view in itertools.product((0, 1), (a, a[::-1, ::-1], a.T, a[::3, 1::2])):
            offset = view.__array_interface__["data"][0] - a.__array_interface__["data"][0]
            out = region.array("i8", view.shape, n_bytes)
            out[:] = -1
            w.run(f"cumsum(a, axis={axis})", to=wire.described(out, region.at(n_bytes)),
                  a=wire.described(view, region.at(offset), view.strides))
            np.testing.assert_array_equal(out, np.cumsum(view, axis=axis))


def test_tables_and_counts_of_many_tiles(w):
    """Among them one of an array that is only looked into, and bins beyond a block's counters."""
    region = wire.Region(w, 3 << 20)
    x = region.array("i4", (400_000,))
    x[:] = np.random.default_rng(2).integers(0, 12_000, x.size)
    table = np.arange(8000.0)[::-1].copy()
    given = wire.described(x, region.at())
    got = w.compute("sum(take(e, minimum(x, 7999))) + 0*sum(bincount(x, length=12000))", x=given,
                    e=table)
    assert got == table[np.minimum(x, 7999)].sum()
    got = w.compute("max(bincount(x, length=12000))", x=given)
    assert got == np.bincount(x, minlength=12_000).max()
