"""Arrays in chunks of other packages, as Zarr's: they are read block by block, never as a whole."""

import collections
import itertools
import pickle

import h5py
import numpy as np
import pytest


class Chunked:
    """As zarr.Array: elements come by parts; __array__() would load all of them."""

    def __init__(self, elements, chunks):
        self.elements, self.chunks, self.stored = elements, chunks, chunks
        self.shape, self.dtype = elements.shape, elements.dtype
        self.most = 0  # elements that were read at once
        self.decoded = collections.Counter()  # chunks, each as often as it was

    def __getitem__(self, key):
        found = self.elements[key]
        self.most = max(self.most, found.size)
        touched = [{i // chunk for i in np.atleast_1d(np.arange(size)[one])}
                   for one, size, chunk in zip(key, self.shape, self.stored)]
        self.decoded.update(itertools.product(*touched))
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


@pytest.mark.parametrize("chunks", [(100, 500), (333, 2000), (1500, 7), (17, 2000)])
def test_no_chunk_is_decoded_again_and_again(gd, array, chunks):
    a = array.elements
    for call in (lambda x: x.max(), lambda x: x.max(axis=0), lambda x: x.max(axis=1),
                 lambda x: x.T + 0, lambda x: x[20:1400:3, ::-1] * 2, lambda x: x[::-1, 1000] + 1,
                 lambda x: x[3, None, 5:] - 1):
        chunked = Chunked(a, chunks)
        np.testing.assert_array_equal(call(gd.lazy(chunked)).compute(), call(a))
        assert set(chunked.decoded.values()) == {1}, chunked.decoded.most_common(3)


def test_blocks_of_boxes_are_those_of_the_array():
    from gpuarrayd._arguments.hdf5_part import ChunkBoxes, ChunkedPart
    from gpuarrayd._lazy.selection import items_of
    rng = np.random.default_rng(7)
    a = np.arange(23 * 31 * 5).reshape(23, 31, 5)
    for key in (np.s_[...], np.s_[3:20:4, ::-3], np.s_[7, None, ::-1, 1:4:2],
                np.s_[::7, 30:2:-9, ::-1]):
        for chunks in ((4, 10, 5), (1, 1, 1), (50, 3, 2)):
            array, want = Chunked(a, chunks), a[key]
            part = ChunkedPart(array, items_of(key, a.shape))
            boxes = ChunkBoxes(part.read, part.items, chunks, a.dtype)
            for _ in range(100):
                start = rng.integers(0, want.shape)
                count = rng.integers(1, np.array(want.shape) - start + 1)
                place = tuple(slice(s, s + n) for s, n in zip(start, count))
                got = boxes.read(tuple(map(int, start)), tuple(map(int, count)))
                np.testing.assert_array_equal(got, want[place])


def test_what_is_kept_has_a_limit(gd, array, monkeypatch):
    from gpuarrayd._arguments import hdf5_part
    monkeypatch.setattr(hdf5_part, "LIMIT_BYTES", 500000)  # a row of chunks has 800000
    assert float(gd.lazy(array).max()) == array.elements.max()
    assert array.most <= 125000
    monkeypatch.setattr(hdf5_part, "LIMIT_BYTES", 800000)
    again = Chunked(array.elements, array.chunks)
    assert float(gd.lazy(again).max()) == array.elements.max() and again.most == 200000


def test_arrays_without_chunks_of_one_size(gd, array):
    for chunks in (((1000, 500), (2000,)), (100,), (0, 5), "auto"):
        array.chunks = chunks
        x = gd.lazy(array)
        assert float(x.max()) == array.elements.max()


def test_compressed_datasets_that_h5py_reads(gd, array, tmp_path, monkeypatch):
    """They are open for writing, so that the library cannot read them by itself."""
    from gpuarrayd._arguments.hdf5_part import DatasetPart
    a, read, sizes = array.elements, DatasetPart.read, []
    monkeypatch.setattr(DatasetPart, "read", lambda self, start, count: sizes.append(
        np.prod(count)) or read(self, start, count))
    with h5py.File(tmp_path / "x.h5", "w") as f:
        x = f.create_dataset("x", data=a, chunks=(100, 500), compression="gzip")
        for call in (lambda x: x.max(), lambda x: x[10:1000].max(axis=0), lambda x: x[::-1, 5:]):
            sizes.clear()
            want = call(a)
            np.testing.assert_array_equal((call(gd.lazy(x)) + 0).compute(), want)
            assert sum(sizes) <= a.size and max(sizes) < a.size / 2


def test_go_to_other_processes_and_refuse_what_is_not_computed(gd, array):
    again = pickle.loads(pickle.dumps(gd.lazy(array)[:4] + 1))
    np.testing.assert_array_equal(again.compute(), array.elements[:4] + 1)
    with pytest.raises(gd.Error, match="complex"):
        gd.lazy(Chunked(np.zeros((4, 4), "c8"), (2, 2)))
    assert gd.lazy(Chunked(np.zeros((0, 4)), (2, 2))).sum().compute() == 0
