"""near() of lazies: in shared memory and of the process, around other lazies; and what is refused."""

import numpy as np
import pytest

from catalogue import NUMPY_2
from test_near import MODES, STEPS, padded, stencil

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes")


def test_lazies_in_shared_memory_and_of_the_process(gd):
    rng = np.random.default_rng(3)
    u = rng.integers(-999, 1000, (300, 900)).astype("f4")
    shared = gd.empty(u.shape, "f4")
    shared[...] = u
    for mode in MODES:
        for x in (gd.lazy(shared), gd.lazy(u)):
            lap = sum((gd.near(x, *step, mode=mode) for step in STEPS[1:]),
                      gd.near(x, *STEPS[0], mode=mode))
            np.testing.assert_array_equal(np.asarray(x + np.float32(0.25) * (lap - 4 * x)),
                                          stencil(u, mode))
    x = gd.lazy(u)
    twice = gd.near(gd.near(x, 0, 1) - x.max(axis=0), 0, -1)  # the inner one is computed first
    np.testing.assert_array_equal(twice[1:3, :5], padded(
        padded(u, (0, 1), "edge") - u.max(axis=0), (0, -1), "edge")[1:3, :5])
    for wrong, error in (((1,), gd.errors.BadArity), ((1, 0, "roll"), gd.errors.BadArgument)):
        with pytest.raises(error):
            gd.near(x, *wrong[:2], mode=(*wrong, "edge")[2] if len(wrong) > 2 else "edge")
