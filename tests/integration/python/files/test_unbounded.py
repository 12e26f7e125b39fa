"""Generators of unknown length: row by row, to blocks and to files that grow, and reduced."""

import os
import stat
import threading

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


def test_the_first_axis_is_reduced(gd, x):
    known = gd.from_generator(slabs, "f4", WHOLE.shape)
    for f in (lambda a: gd.nansum(a), lambda a: gd.nanmean(a, axis=0), lambda a: gd.where(a > 7, a, 7).var(),
              lambda a: gd.where(a > 7, a, 7).mean(axis=0), lambda a: gd.nanmax(a, axis=0),
              lambda a: gd.argmin(gd.where(a > 7, a, 7)), lambda a: (a > 5).any(axis=0),
              lambda a: gd.count_nonzero(a), lambda a: gd.where(a > 7, a, 7).std(axis=0, ddof=1),
              lambda a: gd.histogram(gd.where(a > 7, a, 7), bins=4, range=(0, 1e5))[0]):
        got, want = f(x).compute(), f(known).compute()
        assert np.shape(got) == np.shape(want) and np.asarray(got).tobytes() == np.asarray(want).tobytes()
    low, total = gd.compute(gd.nanmin(x, axis=0), gd.nansum(x, axis=0))
    assert np.array_equal(low, np.nanmin(WHOLE, axis=0))
    assert np.allclose(total, np.nansum(WHOLE.astype("f8"), axis=0))
    assert np.allclose(list(gd.stream(gd.nansum(x, axis=0))), [total])


@pytest.mark.parametrize("n", [0, 1, 21844, 21845, 21846, 65535])
def test_it_ends_beside_a_grain(gd, n):
    x = gd.from_generator(lambda: slabs(n, 1 + n // 7), "f4", (None, 3))
    a = np.nan_to_num(WHOLE[:n])
    filled = gd.where(x == x, x, 0)
    assert np.isclose(filled.sum().compute(), a.astype("f8").sum())
    assert np.array_equal(gd.count_nonzero(filled, axis=0).compute(), np.count_nonzero(a, axis=0))
    assert np.array_equal(np.concatenate([a[:0], *gd.stream(filled + 1)]), a + 1)
    if n == 0:
        assert np.isnan(filled.mean().compute())
        with pytest.raises(gd.BadShape, match="zero-size array"):
            filled.max().compute()
    else:
        assert filled.max().compute() == a.max()


def test_one_that_never_ends_is_cancelled(gd):
    closed, began = threading.Event(), threading.Event()

    def endless():
        try:
            while True:
                yield WHOLE
                began.set()
        finally:
            closed.set()

    future = gd.submit(gd.from_generator(endless, "f4", (None, 3)).sum())
    assert began.wait(30)
    future.cancel()
    assert future.join(30) and closed.wait(30)
    blocks = gd.stream(gd.from_generator(endless, "f4", (None, 3)) * 2, rows=10)
    next(blocks)
    closed.clear()
    blocks.close()
    assert closed.wait(30)


def test_files_grow(gd, x, folder):
    saved = gd.save(folder / "r.npy", x + 1)
    assert saved.shape == WHOLE.shape and saved.dtype == np.float32
    assert np.array_equal(np.load(folder / "r.npy"), WHOLE + 1, equal_nan=True)
    for name in ("r.raw", "r.h5:/d", "r.zarr", "r.npz:d", "r.nc:/d"):
        assert np.array_equal(gd.save(folder / name, x).compute(), WHOLE, equal_nan=True)
    os.chmod(folder / "r.npy", 0o640)
    gd.save({folder / "r.npy": x[...] * 2, folder / "sums.npy": gd.where(x == x, x, 0) + 1}, sync=True)
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
    assert np.array_equal(np.load(folder / "sums.npy"), np.nan_to_num(WHOLE) + 1)
    gd.save(folder / "r.npy", x - x.mean(axis=1, keepdims=True))
    assert np.allclose(np.load(folder / "r.npy"), WHOLE - WHOLE.mean(axis=1, keepdims=True),
                       equal_nan=True)
    assert sorted(os.listdir(folder)) == ["none.npy", "r.h5", "r.nc", "r.npy", "r.npz", "r.raw",
                                         "r.zarr", "sums.npy", "w.npy"]


@pytest.mark.parametrize("name, how", [
    ("w.h5:/g/d", dict(compression="gzip")), ("w.h5:/d", dict(compression="lz4")), ("w.nc:/d", {}),
    ("w.zarr:/d", {}), ("w.raw", {}),
    ("w.zarr", dict(chunks=(500, 3), shards=(2000, 3))), ("w.npz:d", dict(sync=True)),
    ("w.npz:d", dict(compression="gzip:1"))])
@pytest.mark.parametrize("n", [0, 1, 30_000])
def test_every_format_is_written_as_its_rows_come(gd, folder, name, how, n):
    with gd.stream_writer(folder / name, "f4", (None, 3), **how) as w:
        assert w.shape == (None, 3)
        for slab in slabs(n):
            w.write(slab)
    where = f"{folder / name}:f4:{n}x3" if name.endswith("raw") else folder / name
    assert np.array_equal(gd.open(where).compute(), WHOLE[:n], equal_nan=True)
    if "npz" in name:
        gd.save({folder / "w.npz:e": gd.open(where), folder / "w.npz:f": gd.open(where) + 1}, **how)
        y = gd.from_generator(lambda: slabs(n), "f4", (None, 3))
        gd.save({folder / "w.npz:g": y * 2, folder / "w.npz:h": y}, **how)
        with np.load(folder / "w.npz") as found:
            assert sorted(found) == ["d", "e", "f", "g", "h"]
            assert np.array_equal(found["h"], found["d"], equal_nan=True)
            assert np.array_equal(found["g"], WHOLE[:n] * 2, equal_nan=True)
    with pytest.raises(ZeroDivisionError), gd.stream_writer(folder / name, "f4", (None, 3), **how) as w:
        w.write(WHOLE[:10])
        1 / 0
    assert len(os.listdir(folder)) == 1


def test_a_generator_of_no_rows(gd, folder):
    x = gd.from_generator(lambda: iter([]), "f8", (None, 2))
    assert list(gd.stream(x + 1)) == []
    assert gd.save(folder / "r.npy", x).shape == (0, 2)


def test_two_generators_go_side_by_side(gd, x):
    y = gd.from_generator(lambda: slabs(step=1000), "f4", (None, 3))
    both = np.concatenate(list(gd.stream(x + y * 2, rows=5000)))
    assert np.array_equal(both, WHOLE + WHOLE * 2, equal_nan=True)
    fewer = gd.from_generator(lambda: slabs(99_999), "f4", (None, 3))
    with pytest.raises(gd.BadShape, match="99999 rows") as raised:
        gd.nansum(x + fewer).compute()
    assert raised.value.expected == "99999 rows" and raised.value.found == "100000 rows"
    with pytest.raises(gd.ShortRead, match="different numbers of rows"):
        list(gd.stream((x + fewer) - (x + fewer).mean(axis=1, keepdims=True)))


def test_what_needs_other_rows_is_refused(gd, x, folder):
    for wrong in (lambda: x.compute(), lambda: gd.median(x).compute(), lambda: (x - x.mean()).compute(),
                  lambda: gd.save(folder / "a.npy", x.T), lambda: (x.T @ x).compute(),
                  lambda: list(gd.stream(x - x.mean(axis=0))), lambda: x[5:], lambda: x[::-1],
                  lambda: x.sum(axis=1).sum().compute(), lambda: gd.roll(x, 1, axis=0),
                  lambda: gd.concatenate([x, x]), lambda: gd.pad(x, 1),
                  lambda: gd.diff(x, axis=0).sum().compute(), lambda: x[:, :0], lambda: len(x * 2),
                  lambda: x.size, lambda: (x + 1).nbytes, lambda: gd.zeros_like(x), lambda: np.zeros_like(x),
                  lambda: gd.compute(x.sum(axis=0), x.sum(axis=1)),
                  lambda: gd.save({folder / "a.npy": x.sum(axis=1), folder / "b.npy": x - x.mean(axis=0)})):
        with pytest.raises(gd.BadArgument):
            wrong()
    with pytest.raises(gd.BadShape, match=r"shapes \(None, 3\) and \(100000, 3\) do not"):
        x + WHOLE
    assert x.shape == (None, 3) and (x * 2).shape == (None, 3) and x.ndim == 2
    assert (x - x.mean(axis=1, keepdims=True)).shape == (None, 3) and x.mean(axis=0).shape == (3,)
    with pytest.raises(gd.BadArgument, match="comes by gd.stream"):
        (x - x.mean(axis=1, keepdims=True)).compute()
    assert "(None, 3)" in repr(x) and "(None, 3)" in repr(x * 2)
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


def test_decompositions_need_a_known_length(gd):
    rows = gd.from_generator(lambda: iter([np.ones((3, 4))]), "f8", (None, 4))
    for decompose in (gd.linalg.svdvals, gd.linalg.svd, gd.linalg.qr, gd.linalg.pca):
        with pytest.raises(gd.errors.BadArgument, match="known at its end only"):
            decompose(rows)
