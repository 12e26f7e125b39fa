"""Sorted rows and different elements are NumPy's, of arrays whose rows are small, whatever their size."""

import itertools
import os
import subprocess
import tempfile

import numpy as np
import pytest

from catalogue import NUMPY_2

pytestmark = pytest.mark.skipif(not NUMPY_2, reason="needs NumPy 2's promotion")


def arrays():
    rng = np.random.default_rng(21)
    found = [rng.normal(size=(7, 9)), rng.integers(-4, 5, (3, 4, 5)), rng.random(50).astype("f4").round(1),
             rng.random((4, 6)) > 0.5, rng.integers(0, 9, (2, 3)).astype("u1"), np.empty((0, 3)),
             rng.integers(0, 99, (2, 3000, 3)), np.array([[3.5]])]
    found[0][2, 3:5] = np.nan
    found[2][[4, 40]] = np.nan
    return found


def test_sort_and_argsort(gd):
    for array in arrays():
        for axis in (None, *range(-1, array.ndim)):
            want, places = np.sort(array, axis), np.argsort(array, axis, kind="stable")
            got, where = np.sort(gd.lazy(array), axis), \
                np.argsort(gd.lazy(array), axis, kind="stable")
            assert type(got) is gd.Lazy and got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_array_equal(got.compute(), want)
            np.testing.assert_array_equal(where.compute(), places)
            assert where.dtype == np.int64
            falling = gd.sort(array, axis, descending=True).compute()
            np.testing.assert_array_equal(falling, np.flip(want, 0 if axis is None else axis))
            where = gd.argsort(array, axis, stable=True, descending=True).compute()
            flat = array.ravel() if axis is None else array
            along = 0 if axis is None else axis
            np.testing.assert_array_equal(np.take_along_axis(flat, where, along), falling)
            same = np.diff(falling, axis=along) == 0 if falling.dtype.kind != "b" else \
                ~np.diff(falling, axis=along)
            assert (np.diff(where, axis=along)[same] > 0).all()  # equal ones in their order


def test_the_array_apis_are_stable(gd):
    xp, array = gd.array_api, np.random.default_rng(3).integers(0, 4, (5, 400)).astype("f4")
    np.testing.assert_array_equal(xp.argsort(array).compute(), np.argsort(array, kind="stable"))
    np.testing.assert_array_equal(xp.sort(array, axis=0, descending=True).compute(),
                                  np.sort(array, 0)[::-1])
    places = gd.argsort(array).compute()  # any order of equal ones
    np.testing.assert_array_equal(np.take_along_axis(array, places, 1), np.sort(array))
    with pytest.raises(gd.errors.BadArgument):
        gd.sort(array, kind="bubble")


def test_parts_and_expressions_of_what_is_sorted(gd):
    rng = np.random.default_rng(5)
    a = rng.normal(size=(40, 60))
    lazy = gd.sort(gd.sqrt(abs(gd.lazy(a))), axis=0)
    want = np.sort(np.sqrt(abs(a)), axis=0)
    np.testing.assert_array_equal(lazy[3:5, ::-7].compute(), want[3:5, ::-7])
    np.testing.assert_allclose((lazy - lazy.mean(axis=0)).sum(axis=1).compute(),
                               (want - want.mean(axis=0)).sum(axis=1), 1e-12, 1e-12)
    np.testing.assert_array_equal(gd.take_along_axis(a, gd.argsort(a, 1), 1).compute(), np.sort(a, 1))


def test_places_of_lazies_along_an_axis(gd):
    rng = np.random.default_rng(15)
    for shape, axis, more in [((4, 5), 0, (3, 5)), ((4, 5), -1, (4, 2)), ((4, 5), 1, (1, 7)),
                              ((3, 1, 4), 1, (3, 2, 4)), ((2, 3, 4), 1, (1, 5, 4)), ((5,), 0, (9,))]:
        a, n = rng.random(shape), shape[axis]
        i = rng.integers(-n, n, more)
        got = gd.take_along_axis(a, gd.lazy(i) + 0, axis)
        np.testing.assert_array_equal(got.compute(), np.take_along_axis(a, i, axis))
    for wrong in (4, -5):
        i = np.zeros((4, 5), int)
        i[2, 3] = wrong
        with pytest.raises(gd.errors.BadIndex):
            gd.take_along_axis(rng.random((4, 5)), gd.lazy(i) + 0, 0).compute()


def test_a_row_of_many_blocks_of_memory(gd):
    row = np.random.default_rng(6).permutation(3_000_000)
    assert np.array_equal(gd.sort(row).compute(), np.arange(3_000_000))


def test_different_elements(gd):
    for array in arrays():
        array = array.round(1)if array.dtype.kind == "f" else array
        x = gd.lazy(array)
        for name in ("unique_all", "unique_counts", "unique_inverse"):
            got, want = getattr(gd, name)(x), getattr(np, name)(array)
            assert got._fields == want._fields
            for one, other in itertools.zip_longest(got, want):
                assert type(one) is gd.Lazy and one.dtype == other.dtype
                np.testing.assert_array_equal(np.asarray(one), other)
        np.testing.assert_array_equal(np.unique_values(x).compute(), np.sort(np.unique_values(array)))
    found = gd.unique_inverse(x)
    np.testing.assert_array_equal(found.values[found.inverse_indices].compute(), array)


def test_rows_that_are_small_are_sorted_when_they_are_read(gd):
    assert gd.sort(gd.full((2**20, 2**20), 3))[:2, :2].tolist() == [[3, 3], [3, 3]]
    assert gd.sort(gd.ones((0, 2**40))).shape == (0, 2**40)
    with pytest.raises(gd.errors.BadShape):
        gd.sort(3)
    with pytest.raises(gd.Unsupported):
        gd.sort([1, 2], order="x")


@pytest.fixture
def little_room(monkeypatch):
    """For a row: runs in files, and parts of them."""
    from gpuarrayd._functions import large_sorts, sorting
    monkeypatch.setattr(sorting, "MOST_BYTES", 900)
    monkeypatch.setattr(large_sorts, "CHUNK_BYTES", 4000)
    monkeypatch.setattr(large_sorts, "_SAMPLES", 16)


def large_arrays():
    rng = np.random.default_rng(1)
    return (rng.normal(size=20011).astype("f4"), rng.integers(0, 3, 9000), np.zeros(4999, "u1"),
            np.where(rng.random(5000) < 0.3, np.nan, rng.normal(size=5000).round(1)),
            rng.integers(0, 2**64, 3001, dtype="u8"), np.arange(7000.0)[::-1], np.full(999, np.nan),
            rng.random(3000) < 0.5, np.sort(rng.integers(-9, 9, 8000)).astype("i2"))


@pytest.mark.parametrize("is_falling", [False, True])
def test_arrays_of_any_size(gd, little_room, is_falling):
    for a in large_arrays():
        want, places = np.sort(a), np.argsort(a, kind="stable")
        if is_falling:
            want, places = want[::-1], len(a) - 1 - np.argsort(a[::-1], kind="stable")[::-1]
        got, where = gd.sort(a, descending=is_falling), gd.argsort(gd.lazy(a), descending=is_falling)
        assert got.dtype == a.dtype and where.dtype == np.int64
        np.testing.assert_array_equal(got.compute(), want)
        np.testing.assert_array_equal(where.compute(), places)
    a = np.random.default_rng(1).normal(size=(80, 90)).astype("f4")
    got = gd.sort(gd.sqrt(abs(gd.lazy(a))), axis=None, descending=is_falling) * 2
    want = np.sort(2 * np.sqrt(abs(a)), axis=None)
    np.testing.assert_array_equal(got.compute(), want[::-1] if is_falling else want)


@pytest.mark.parametrize("is_falling", [False, True])
def test_rows_of_any_size(gd, little_room, is_falling):
    a = np.random.default_rng(2).integers(-99, 99, (2, 1500, 3)).astype("f4")
    a[1, ::7] = np.nan
    for axis, x in ((1, a), (-1, a.transpose(2, 0, 1)), (0, a.transpose(1, 2, 0)), (0, a[0, :, 0])):
        got, where = gd.sort(gd.lazy(x) * 2, axis, descending=is_falling), \
            gd.argsort(x, axis, descending=is_falling)
        want = np.sort(x, axis)
        places = np.argsort(x, axis, kind="stable")
        if is_falling:
            want = np.flip(want, axis)
            places = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
        np.testing.assert_array_equal(got.compute(), want * 2)
        np.testing.assert_array_equal(where.compute(), places)
        assert got.shape == where.shape == x.shape and where.dtype == np.int64


def test_different_elements_of_any_size(gd, little_room):
    for a in (*large_arrays(), np.random.default_rng(3).integers(0, 4000, (90, 100))):
        for name in ("unique_all", "unique_counts", "unique_inverse"):
            got, want = getattr(gd, name)(gd.lazy(a)), getattr(np, name)(a)
            for one, other in itertools.zip_longest(got, want):
                assert type(one) is gd.Lazy and one.dtype == other.dtype
                if name == "unique_inverse" and one.shape == a.shape:  # NumPy takes NaN in any order
                    one, other = (x[(a == a).reshape(x.shape)] for x in (np.asarray(one), other))
                np.testing.assert_array_equal(np.asarray(one), other)
        np.testing.assert_array_equal(gd.unique_values(a).compute(), np.unique(a, equal_nan=False))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_arrays_that_the_folder_of_temporary_files_has_no_room_for(gd, monkeypatch, tmp_path):
    from gpuarrayd._functions import large_sorts, sorting
    monkeypatch.setattr(sorting, "MOST_BYTES", 1000)
    monkeypatch.setattr(large_sorts, "CHUNK_BYTES", 40000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", tmp_path], check=True)
    try:
        for call, needed in ((gd.sort, 800000), (gd.argsort, 1200000), (gd.unique_counts, 1600000)):
            with pytest.raises(gd.NoSpace, match=str(tmp_path)) as caught:
                call(np.random.default_rng(1).random(50000))
            assert caught.value.expected == f"{needed} bytes" and caught.value.argument == "a"
        np.testing.assert_array_equal(gd.sort(np.arange(9000.0)[::-1]).compute(), np.arange(9000.0))
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
