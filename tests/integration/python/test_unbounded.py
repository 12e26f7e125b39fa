"""Generators of unknown length: row by row, to blocks and to files that grow."""

import os
import stat

import numpy as np
import pytest

WHOLE = np.arange(300_000, dtype="f4").reshape(-1, 3)
WHOLE[::11] = np.nan


def slabs(n=len(WHOLE), step=777):
    for first in range(0, n, step):
        yield WHOLE[first:min(first + step, n)]


@pytest.fixture
def x(gd):
    return gd.from_generator(slabs, "f4", (None, 3))


@pytest.mark.parametrize("rows", [None, 1, 999, 100_000, 10 ** 7])
def test_rows_are_computed_as_they_come(gd, x, rows):
    n = 3000 if rows == 1 else len(WHOLE)
    x = gd.from_generator(lambda: slabs(n), "f4", (None, 3))
    blocks = list(gd.stream(gd.where(x > 9, x * 2, -x) + np.ones(3, "f4"), rows=rows))
    assert rows is None or all(len(block) == rows for block in blocks[:-1])
    want = np.where(WHOLE[:n] > 9, WHOLE[:n] * 2, -WHOLE[:n]) + np.ones(3, "f4")
    assert np.array_equal(np.concatenate(blocks), want, equal_nan=True)


def test_axes_but_the_first_are_reduced(gd, x):
    sums = np.concatenate(list(gd.stream(gd.nansum(x, axis=1))))
    assert np.array_equal(sums, np.nansum(WHOLE, axis=1))
    centred = np.concatenate(list(gd.stream(x - x.mean(axis=1, keepdims=True))))
    assert np.allclose(centred, WHOLE - WHOLE.mean(axis=1, keepdims=True), equal_nan=True)
    largest = np.concatenate(list(gd.stream(gd.argmax(x, axis=1))))
    assert np.array_equal(largest, np.argmax(WHOLE, axis=1))


def test_files_grow(gd, x, folder):
    saved = gd.save(folder / "r.npy", x + 1)
    assert saved.shape == WHOLE.shape and saved.dtype == np.float32
    assert np.array_equal(np.load(folder / "r.npy"), WHOLE + 1, equal_nan=True)
    assert np.array_equal(gd.save(folder / "r.raw", x).compute(), WHOLE, equal_nan=True)
    os.chmod(folder / "r.npy", 0o640)
    gd.save({folder / "r.npy": x[...] * 2})
    assert stat.S_IMODE(os.stat(folder / "r.npy").st_mode) == 0o640
    assert np.array_equal(np.load(folder / "r.npy"), WHOLE * 2, equal_nan=True)
    with gd.stream_writer(folder / "w.npy", "f4", (None, 3)) as w:
        for slab in slabs():
            w.write(slab)
        assert w.n_rows == len(WHOLE)
    assert np.array_equal(np.load(folder / "w.npy"), WHOLE, equal_nan=True)
    with gd.stream_writer(folder / "none.npy", "i2", (None, 3)):
        pass
    assert np.load(folder / "none.npy").shape == (0, 3)
    assert sorted(os.listdir(folder)) == ["none.npy", "r.npy", "r.raw", "w.npy"]


def test_a_generator_of_no_rows(gd, folder):
    x = gd.from_generator(lambda: iter([]), "f8", (None, 2))
    assert list(gd.stream(x + 1)) == []
    assert gd.save(folder / "r.npy", x).shape == (0, 2)


def test_two_generators_go_side_by_side(gd, x):
    y = gd.from_generator(lambda: slabs(step=1000), "f4", (None, 3))
    both = np.concatenate(list(gd.stream(x + y * 2, rows=5000)))
    assert np.array_equal(both, WHOLE + WHOLE * 2, equal_nan=True)
    fewer = gd.from_generator(lambda: slabs(99_999), "f4", (None, 3))
    with pytest.raises(gd.ShortRead, match="different numbers of rows"):
        list(gd.stream(x + fewer))


def test_what_needs_other_rows_is_refused(gd, x, folder):
    for wrong in (lambda: x.compute(), lambda: x.sum().compute(), lambda: gd.save(folder / "a.npy", x.T),
                  lambda: list(gd.stream(x - x.mean(axis=0))), lambda: list(gd.stream(x.sum(axis=0))),
                  lambda: list(gd.stream(gd.cumsum(x, axis=1))), lambda: x[5:], lambda: x[::-1],
                  lambda: gd.save(folder / "a.h5:/d", x), lambda: gd.save(folder / "a.npy", x, sync=True),
                  lambda: gd.stream_writer(folder / "a.h5:/d", "f4", (None, 3)),
                  lambda: gd.save({folder / "a.npy": x, folder / "b.npy": x + 1})):
        with pytest.raises(gd.BadArgument):
            wrong()
    with pytest.raises(gd.BadShape):
        x + WHOLE
    assert not os.listdir(folder)


def test_what_goes_wrong_leaves_nothing(gd, folder):
    def boom():
        yield from slabs(50_000)
        raise ValueError("the sensor is off")

    x = gd.from_generator(boom, "f4", (None, 3))
    with pytest.raises(gd.ProviderFailed, match="the sensor is off") as raised:
        gd.save(folder / "r.npy", x)
    assert isinstance(raised.value.__cause__, ValueError)
    found = []
    with pytest.raises(gd.ProviderFailed):
        found.extend(gd.stream(x, rows=1000))
    other = gd.from_generator(lambda: iter([WHOLE, WHOLE[:, :2]]), "f4", (None, 3))
    with pytest.raises(gd.ProviderFailed) as raised:
        gd.save(folder / "r.npy", other)
    assert isinstance(raised.value.__cause__, gd.BadShape)
    with pytest.raises(ZeroDivisionError):
        with gd.stream_writer(folder / "r.npy", "f4", (None, 3)) as w:
            w.write(WHOLE)
            1 / 0
    with pytest.raises(gd.BadDtype):
        with gd.stream_writer(folder / "r.npy", "f4", (None, 3)) as w:
            w.write(WHOLE.astype("f8"))
    with pytest.raises(gd.NotFound):
        with gd.stream_writer(folder / "no" / "r.npy", "f4", (None, 3)):
            pass
    with pytest.raises(gd.BadArgument):
        w.write(WHOLE)
    assert not os.listdir(folder)
