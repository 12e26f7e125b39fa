"""@gd.stencil: functions of neighbours as functions of arrays, against loops and against NumPy."""

import numpy as np
import pytest

from catalogue import NUMPY_2

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's dtypes")


def laplace(a):
    return a[1, 0] + a[-1, 0] + a[0, 1] + a[0, -1] - 4 * a[0, 0]


def box(a, b, scale):
    total = 0
    for i in range(-1, 2):
        for j in range(-2, 1):
            total += a[i, j] * b[1]
    return total * scale if total > a[0, 0] else b[0] - a[1, -2]


def life(cells):
    n = 0
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            if i != 0 or j != 0:
                n += cells[i, j]
    return n == 3 or n == 2 and cells[0, 0] == 1


A = np.arange(42.).reshape(6, 7) ** 2 % 17


def numbas(kernel, limits, cval, *args):
    """As numba.stencil() has it: where all of the neighbourhood is there; else cval."""
    out = np.full(A.shape, cval, A.dtype)
    (top, bottom), (left, right) = limits
    for i in range(-top, A.shape[0] - bottom):
        for j in range(-left, A.shape[1] - right):
            class View:
                def __getitem__(self, key):
                    return A[i + key[0], j + key[1]]
            out[i, j] = kernel(View(), *args)
    return out


def test_borders_are_numbas(gd):
    np.testing.assert_array_equal(gd.stencil(laplace)(A),
                                  numbas(laplace, ((-1, 1), (-1, 1)), 0))
    wide = gd.stencil(cval=-9, neighborhood=((-2, 1), (-1, 3)))(laplace)
    np.testing.assert_array_equal(wide(A), numbas(laplace, ((-2, 1), (-1, 3)), -9))
    made = gd.stencil("constant", standard_indexing=("b",))(box)
    np.testing.assert_array_equal(made(A, (5, 2), 0.5),
                                  numbas(box, ((-1, 1), (-2, 0)), 0, (5, 2), 0.5))
    assert gd.stencil(laplace)(A[:2]).tolist() == [[0.0] * 7] * 2


@pytest.mark.parametrize("mode", ["edge", "constant", "reflect", "symmetric", "wrap"])
def test_what_lies_beyond_the_ends_is_numpys(gd, mode):
    a = np.pad(A, 1, mode, **({"constant_values": 3} if mode == "constant" else {}))
    want = a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4 * A
    made = gd.stencil(laplace, mode=mode, cval=3)
    np.testing.assert_array_equal(made(A), want)
    made.check(A.astype("f4"))
    x = gd.lazy(A) + 1
    lazy = made(x)
    assert isinstance(lazy, gd.Lazy) and lazy.shape == A.shape
    if mode != "constant":
        np.testing.assert_array_equal(lazy.compute(), want)
    np.testing.assert_array_equal((lazy * 2 + x).max(), (lazy.compute() * 2 + A + 1).max())


def test_life(gd):
    glider = np.zeros((8, 8), "u1")
    glider[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = 1
    step = gd.stencil(life, mode="wrap")
    cells = glider
    for _ in range(4):
        cells = step.check(cells).astype("u1")
    np.testing.assert_array_equal(cells, np.roll(glider, (1, 1), (0, 1)))


def test_bad_kernels_and_arrays_are_refused(gd):
    def unknown(a, n):
        return a[n, 0]

    def whole(a):
        return a[0, 0] + a

    def uneven(a):
        return a[0] + a[0, 1]

    def none(a):
        return 1

    for kernel, said in ((whole, "a is an array here"),
                         (uneven, "2 indices of a, which has 1 axes"), (none, "reads no neighbours")):
        with pytest.raises(gd.Unsupported, match=said) as caught:
            gd.stencil(kernel)
        assert caught.value.filename == __file__ and "test_stencil.py:" in str(caught.value)
    np.testing.assert_array_equal(gd.stencil(unknown, mode="wrap")(A, 1), np.roll(A, -1, 0))
    with pytest.raises(gd.Unsupported, match="an index that is not known here"):
        gd.stencil(unknown)(A, A)
    for wrong in ({"mode": "mirror"}, {"func_or_mode": "reflect"}, {"standard_indexing": ("c",)}):
        with pytest.raises(gd.errors.BadArgument):
            (gd.stencil(**wrong)(laplace) if "func_or_mode" in wrong
             else gd.stencil(laplace, **wrong))
    with pytest.raises(gd.errors.BadArgument, match="beyond its neighborhood"):
        gd.stencil(laplace, neighborhood=((0, 1), (-1, 1)))(A)
    with pytest.raises(gd.errors.BadShape, match="have one shape"):
        gd.stencil(of_two)(A, A[1:])
    with pytest.raises(gd.Unsupported, match="2 indices of a, which has 1 axes"):
        gd.stencil(laplace)(A[0])


def of_two(a, b):
    return a[0, 1] - b[0, -1]
