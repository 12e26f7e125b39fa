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


def test_texts_of_which_the_call_says_what_is_beyond_the_ends(gd, folder):
    u = np.random.default_rng(4).random((6, 7))
    for mode in MODES:
        want = padded(u, (1, -2), mode) + padded(u, (0, 2), "wrap")
        text = "near(u, 1, -2) + near(u, 0, 2, mode=wrap)"
        np.testing.assert_array_equal(gd.evaluate(text, u=u, mode=mode), want)
        np.testing.assert_array_equal(gd.submit(text, u=u, mode=mode).result(), want)
    for value in (2.5, 7, np.float32(3), True):
        got = gd.evaluate("near(u, 9, 0) + 0*u", u=u, mode=("constant", value))
        np.testing.assert_array_equal(got, np.full_like(u, value))
    np.testing.assert_array_equal(gd.evaluate("u * mode", u=u, mode=u), u * u)  # a name as others
    got = gd.repeat(9, "u + near(u, 0, 1)", u=u, mode="wrap", to=folder / "o.npy")
    want = u
    for _ in range(9):
        want = want + np.roll(want, -1, 1)
    np.testing.assert_array_equal(got, want)
    for wrong in ("wrp", ("wrap", 1), ("constant",), ("constant", "x"), 3):
        with pytest.raises(gd.errors.BadArgument, match="mode is"):
            gd.evaluate("near(u, 1, 0)", u=u, mode=wrong)
    with pytest.raises(gd.errors.BadDtype, match="'value' is no int64"):
        gd.evaluate("near(u, 1, 0)", u=u.astype("i8"), mode=("constant", 0.5))
    with pytest.raises(gd.errors.BadArgument, match="mode= stands beside a lazy"):
        gd.submit(gd.near(u, 1, 0), mode="wrap")
