"""Arrays in chunks of other packages, as Zarr's: they are read block by block, never as a whole."""

import pickle

import numpy as np
import pytest


class Chunked:
    """As zarr.Array: elements come by parts; __array__() would load all of them."""

    def __init__(self, elements, chunks):
        self.elements, self.chunks = elements, chunks
        self.shape, self.dtype = elements.shape, elements.dtype
        self.most = 0  # elements that were read at once

    def __getitem__(self, key):
        found = self.elements[key]
        self.most = max(self.most, found.size)
        return found.copy()

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("it is loaded whole")


@pytest.fixture
def array():
    return Chunked(np.random.default_rng(3).random((1500, 2000), "f4"), (100, 500))


def test_are_read_in_blocks(gd, array):
    a = array.elements
    assert float(gd.lazy(array).max()) == a.max()
    np.testing.assert_array_equal(gd.evaluate("x + 1", x=array), a + 1)
    np.testing.assert_array_equal((gd.lazy(array) * 2).compute(), a * 2)
    assert 0 < array.most < a.size / 4


def test_parts_read_no_more_than_they_need(gd, array):
    x = gd.lazy(array)
    for key in (np.s_[3], np.s_[10:20, ::3], np.s_[::-7, 5], np.s_[..., -1], np.s_[7, None, 3:0:-1]):
        np.testing.assert_array_equal(x[key].compute(), array.elements[key])
    array.most = 0
    np.testing.assert_array_equal(x[5:9, 2:].compute(), array.elements[5:9, 2:])
    assert array.most <= 4 * 1998


def test_go_to_other_processes_and_refuse_what_is_not_computed(gd, array):
    again = pickle.loads(pickle.dumps(gd.lazy(array)[:4] + 1))
    np.testing.assert_array_equal(again.compute(), array.elements[:4] + 1)
    with pytest.raises(gd.Error, match="complex"):
        gd.lazy(Chunked(np.zeros((4, 4), "c8"), (2, 2)))
    assert gd.lazy(Chunked(np.zeros((0, 4)), (2, 2))).sum().compute() == 0
