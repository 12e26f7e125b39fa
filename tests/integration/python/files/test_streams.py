"""Generators as arrays, results as iterators, files that are written as their data comes."""

import asyncio
import os
import threading
import time

import numpy as np
import pytest

SHAPE = (100_000, 3)


def slabs(n_rows=SHAPE[0], step=777):
    a = np.arange(n_rows * 3, dtype="f4").reshape(-1, 3)
    a[::13] = np.nan
    for first in range(0, n_rows, step):
        yield a[first:first + step]


WHOLE = np.concatenate(list(slabs()))


def test_a_generator_is_an_array(gd):
    x = gd.from_generator(slabs, "f4", SHAPE)
    assert x.shape == SHAPE and x.dtype == np.float32
    assert np.array_equal(x.compute(), WHOLE, equal_nan=True)
    assert np.isclose(gd.nansum(x * 2).compute(), np.nansum(WHOLE.astype("f8") * 2))
    assert np.array_equal(gd.nanmax(x, axis=0).compute(), np.nanmax(WHOLE, axis=0))
    assert np.array_equal((x + WHOLE).compute(), WHOLE + WHOLE, equal_nan=True)
    y = gd.from_generator(iter(slabs()), ">f4", SHAPE)
    with pytest.raises(gd.ProviderFailed) as raised:
        y.compute()
    assert isinstance(raised.value.__cause__, gd.BadDtype)
    swapped = gd.from_generator(lambda: (s.astype(">f4") for s in slabs()), ">f4", SHAPE)
    assert np.array_equal(swapped.compute(), WHOLE, equal_nan=True)


@pytest.mark.parametrize("step", [1, 5_000, 100_000])
def test_slabs_have_any_number_of_rows(gd, step):
    n = SHAPE[0] if step > 1 else 2000
    x = gd.from_generator(lambda: slabs(n, step), "f4", (n, 3))
    assert np.array_equal(x.compute(), WHOLE[:n], equal_nan=True)


def test_slabs_need_not_be_contiguous_and_may_be_empty(gd):
    turned = np.asfortranarray(WHOLE)
    x = gd.from_generator(lambda: iter([turned[:10], turned[10:10], turned[10:]]), "f4", SHAPE)
    assert np.array_equal(x.compute(), WHOLE, equal_nan=True)
    none = gd.from_generator(lambda: iter([]), "f4", (0, 3))
    assert none.sum().compute() == 0


def test_an_iterator_is_for_one_job(gd):
    x = gd.from_generator(slabs(), "f4", SHAPE)
    assert np.array_equal(x.compute(), WHOLE, equal_nan=True)
    with pytest.raises(gd.BadArgument, match="the iterator was read by a job before"):
        x.compute()


@pytest.mark.parametrize("n", [0, 1, 100, 3000])
def test_rows_that_are_read_several_times_go_in_chunks(gd, tmp_path, monkeypatch, n):
    from gpuarrayd._lazy.streaming import streams
    monkeypatch.setattr(streams, "_CHUNK_BYTES", 1024 * 3 * 8)  # of the result, of float64
    want = np.nan_to_num(WHOLE[:n]).astype("f8") - np.arange(n)[:, None]
    want = (want - want.mean(axis=1, keepdims=True)) / (np.arange(n) + 1)[:, None]
    x = gd.from_generator(lambda: slabs(n), "f4", (n, 3))
    y = gd.nan_to_num(x).astype("f8") - np.arange(n)[:, None]
    y = (y - y.mean(axis=1, keepdims=True)) / (np.arange(n) + 1)[:, None]
    assert y.shape == want.shape and y.dtype == want.dtype
    assert np.allclose(y.compute(), want) and np.allclose(gd.compute(y)[0], want)
    out = np.empty((n, 3))
    assert y.compute(out) is out and np.allclose(out, want)
    for rows in (None, 7, 10 ** 6):
        blocks = list(gd.stream(y, rows=rows))
        assert np.allclose(np.concatenate([np.empty((0, 3)), *blocks]), want)
        assert all(len(block) == (rows or len(block)) for block in blocks[:-1])
    assert np.allclose(gd.save(tmp_path / "r.npy", y).compute(), want)
    z = gd.from_generator(lambda: slabs(n), "f4", (n, 3))
    with pytest.raises(gd.BadArgument, match="several passes"):  # of two, in chunks
        gd.compute(y + (z - z.mean(axis=1, keepdims=True)), z.sum(axis=0))
    for made, found in ((n + 1, "more rows"), (n - 1, f"{n - 1} rows")):
        if made > 0:
            x = gd.from_generator(lambda: slabs(made), "f4", (n, 3))
            with pytest.raises(gd.ShortRead, match="another number of rows") as raised:
                (x - x.mean(axis=1, keepdims=True)).compute()
            assert raised.value.found == found and raised.value.expected == f"{n} rows"
    assert [p.name for p in tmp_path.iterdir()] == ["r.npy"]


@pytest.mark.parametrize("n", [0, 5000, None])
def test_results_along_different_axes_are_of_one_run_of_the_generator(gd, tmp_path, n):
    def counted():
        runs.append(1)
        made = np.empty((777, 3), "f4")  # which is used again
        for slab in slabs(5000 if n is None else n):
            made[:len(slab)] = np.nan_to_num(slab)
            yield made[:len(slab)]

    runs = []
    a = np.nan_to_num(WHOLE[:5000 if n is None else n]).astype("f8")
    centred = a - a.mean(axis=1, keepdims=True)
    x = gd.from_generator(counted, "f4", (n, 3)).astype("f8")
    if n is not None:
        out = np.empty(3)
        first, second, third, total = gd.compute(x.sum(axis=0), x.mean(axis=1), x - x.mean(axis=1, keepdims=True),
                                                 x.sum(), out=[out, None, None, None])
        assert first is out and np.allclose(out, a.sum(axis=0)) and np.isclose(total, a.sum())
        assert np.allclose(second, a.mean(axis=1)) and np.allclose(third, centred)
        assert runs.pop() and not runs
    names = [tmp_path / name for name in ("r.h5:/0", "r.npz:1", "c.npy", "t.npy")]
    saved = gd.save(dict(zip(names, (x.sum(axis=0), x.mean(axis=1), x - x.mean(axis=1, keepdims=True), x.sum()))))
    assert list(saved) == names and runs == [1]
    for name, want in zip(names, (a.sum(axis=0), a.mean(axis=1), centred, a.sum())):
        assert np.allclose(saved[name].compute(), want)


def test_results_of_one_generator_fail_together(gd, folder, monkeypatch):
    from gpuarrayd._lazy.streaming import teed
    x = gd.from_generator(boom, "f4", SHAPE)
    few = gd.from_generator(lambda: slabs(99), "f4", SHAPE)
    for kind, text, x in ((gd.ProviderFailed, "the sensor is off", x), (gd.BadArgument, "several passes", x - x.mean()),
                          (gd.ShortRead, "before the array was complete", few)):
        with pytest.raises(kind, match=text):
            gd.save({folder / "0.npy": x.sum(axis=0), folder / "1.npy": x.sum(axis=1)})
    x = gd.from_generator(slabs, "f4", SHAPE)
    with pytest.raises(gd.NotFound):
        gd.save({folder / "0.npy": x.sum(axis=0), folder / "no" / "1.npy": x.sum(axis=1)})
    monkeypatch.setattr(teed, "_PATIENCE_S", 0)
    with pytest.raises(gd.ProviderFailed, match="has no room for the others") as raised:
        gd.compute(x.sum(axis=0), x.sum(axis=1))
    assert isinstance(raised.value.__cause__, gd.Busy)
    assert not os.listdir(folder)
    assert not [one for one in threading.enumerate() if one.name.startswith("gpuarrayd-results")]


def pushing():
    return any(one.name == "gpuarrayd-push" for one in threading.enumerate())


@pytest.mark.parametrize("kept", ["none", "one", "views", "all"])
def test_slabs_that_the_generator_keeps_may_be_used_again(gd, kept):
    n, rows = 40, 1 << 15
    used = np.empty((rows, 2))
    seen, keep = [], []

    def made():
        for i in range(n):
            slab = used if kept in ("one", "views") else np.empty((rows, 2))
            slab[:] = i
            keep.extend([slab] if kept == "all" else [])
            whole = kept != "none"
            yield slab[:] if kept == "views" else slab if whole else slab.copy()
            for one in keep:
                one[:] = -1  # nobody reads it any more
            used[:] = -1
            seen.append(pushing())

    x = gd.from_generator(made, "f8", (n * rows, 2))
    want = np.repeat(np.arange(n, dtype="f8"), rows)
    assert np.array_equal(x.sum(axis=1).compute(), 2 * want)
    assert any(seen) == (kept == "none")
    assert sum(len(block) for block in gd.stream(x, rows=999)) == n * rows


def test_slabs_that_are_lent_are_counted_and_their_faults_told(gd):
    n, rows = 9, 1 << 15
    closed = threading.Event()

    def made(n_made, why=None):
        try:
            for i in range(n_made):
                yield np.full((rows, 2), i, "f8")
            if why:
                raise why
        finally:
            closed.set()

    for call, kind, found in ((lambda: made(n + 3), gd.BadShape, "65536 elements more"),
                              (lambda: made(n - 1), gd.ShortRead, f"{(n - 1) * rows} rows"),
                              (lambda: made(n - 1, ValueError("off")), gd.ProviderFailed, f"{(n - 1) * rows} rows")):
        closed.clear()
        with pytest.raises(kind) as raised:
            gd.from_generator(call, "f8", (n * rows, 2)).sum().compute()
        assert raised.value.found == found and closed.wait(10)
    assert isinstance(raised.value.__cause__, ValueError)
    closed.clear()
    blocks = gd.stream(gd.from_generator(lambda: made(10 ** 6), "f8", (10 ** 6 * rows, 2)))
    assert next(blocks)[0, 0] == 0
    blocks.close()  # the generator hears of it
    assert closed.wait(10)
    for _ in range(1000):
        if not pushing():
            break
        time.sleep(0.01)
    assert not pushing()


def test_a_job_that_cannot_begin_does_not_touch_the_generator(gd):
    def touched():
        began.append(1)
        yield from slabs()

    began = []
    x = gd.from_generator(touched, "f4", SHAPE)
    with pytest.raises(gd.BadArgument, match="read once and in order") as raised:
        (x - x.mean()).compute()
    assert raised.value.expected == "one pass in C order"
    with pytest.raises(gd.BadArgument, match="a part of a stream"):
        x[::-1]
    with pytest.raises(gd.NotFound):
        gd.save("/there/is/no/such/folder/r.npy", x)
    assert not began


@pytest.mark.parametrize("key", [
    np.s_[:10], np.s_[1:2], np.s_[3::7], np.s_[-5:], np.s_[:, 1:], np.s_[2:-2:3, ::-1], np.s_[4:5, 0],
    np.s_[:, None, 1], np.s_[1000::999, ..., None]], ids=str)
def test_rows_in_order_and_parts_of_them(gd, key):
    """Of slabs of all lengths; the generator ends with the last row that is wanted."""
    for step in (7, 300, len(WHOLE)):
        made = gd.from_generator(lambda step=step: slabs(2000, step), "f4", (2000, 3))[key]
        np.testing.assert_array_equal((made * 2).compute(), WHOLE[:2000][key] * 2)
    ended = []

    def endless():
        try:
            while True:
                yield WHOLE[:9]
        finally:
            ended.append(1)

    rows = gd.from_generator(endless, "f4", SHAPE)[3:20:2].compute()
    np.testing.assert_array_equal(rows, np.concatenate([WHOLE[:9]] * 3)[3:20:2])
    assert ended
    short = gd.from_generator(lambda: iter([WHOLE[:9]]), "f4", SHAPE)
    np.testing.assert_array_equal(short[:9].compute(), WHOLE[:9])
    with pytest.raises(gd.errors.ShortRead):
        short[5:12].compute()


def boom():
    yield from slabs(1000)
    raise ValueError("the sensor is off")


@pytest.mark.parametrize("f, kind, cause, text", [
    (boom, "ProviderFailed", ValueError, "the sensor is off"),
    (lambda: iter([WHOLE.astype("f8")]), "ProviderFailed", "BadDtype", "float64"),
    (lambda: iter([WHOLE[:9], WHOLE[:9, :2]]), "ProviderFailed", "BadShape", r"\(9, 2\)"),
    (lambda: iter([7]), "ProviderFailed", "BadDtype", "int64"),
    (lambda: slabs(99_000), "ShortRead", None, "before the array was complete"),
    (lambda: slabs(100_001), "BadShape", None, "more elements"),
])
def test_what_goes_wrong_in_a_generator_is_the_jobs_error(gd, folder, f, kind, cause, text):
    x = gd.from_generator(f, "f4", SHAPE)
    for run in (lambda: gd.nansum(x).compute(), lambda: gd.save(folder / "r.npy", x + 1),
                lambda: gd.submit(x * 2).result(60), lambda: list(gd.stream(x, rows=100))):
        with pytest.raises(getattr(gd, kind), match=text) as raised:
            run()
        found = raised.value.__cause__
        assert (found is None) if cause is None else \
            isinstance(found, getattr(gd, cause) if isinstance(cause, str) else cause)
        if kind == "ShortRead":
            assert raised.value.expected == "100000 rows" and raised.value.found == "99000 rows"
    assert not os.listdir(folder)


def test_a_generator_is_closed_when_its_job_is_cancelled(gd):
    closed, began = threading.Event(), threading.Event()

    def endless():
        try:
            while True:
                began.set()
                yield WHOLE[:1000]
        finally:
            closed.set()

    future = gd.submit(gd.from_generator(endless, "f4", (1 << 40, 3)).sum())
    assert began.wait(30)
    future.cancel()
    assert future.join(30) and closed.wait(30)


def test_what_cannot_be_a_stream_says_so(gd):
    for wrong, error in ((lambda: gd.from_generator(7, "f4", (3,)), gd.BadArgument),
                         (lambda: gd.from_generator(slabs, "c16", (3,)), gd.BadDtype),
                         (lambda: gd.from_generator(slabs, "f4", ()), gd.BadShape),
                         (lambda: gd.from_generator(slabs, "f4", 3), gd.BadShape),
                         (lambda: gd.from_generator(slabs, "f4", (-1, 3)), gd.BadShape),
                         (lambda: gd.stream_writer("x.npy", ">f4", (3,)), gd.BadDtype),
                         (lambda: gd.stream(gd.lazy(WHOLE).sum()), gd.BadShape),
                         (lambda: gd.stream(gd.lazy(WHOLE), rows=0), gd.BadArgument)):
        with pytest.raises(error):
            wrong()


def test_results_come_block_by_block(gd):
    x = gd.lazy(WHOLE)
    for rows in (None, 1000, 99_999, 10 ** 9):
        blocks = list(gd.stream(x * 2, rows=rows))
        assert all(len(block) == len(blocks[0]) for block in blocks[:-1])
        assert np.array_equal(np.concatenate(blocks), WHOLE * 2, equal_nan=True)
    sums = list(gd.stream(gd.nansum(x, axis=1), rows=7))
    assert np.array_equal(np.concatenate(sums), np.nansum(WHOLE, axis=1)) and len(sums[-1]) == 5
    assert list(gd.stream(gd.lazy(np.zeros((0, 3))))) == []
    through = gd.stream(gd.from_generator(slabs, "f4", SHAPE) + 1, rows=10_000)
    assert np.array_equal(np.concatenate(list(through)), WHOLE + 1, equal_nan=True)


def test_an_iterator_that_is_left_cancels_its_job(gd):
    a = np.zeros(3_000_000)
    blocks = gd.stream(gd.lazy(a) + 1, rows=10)
    assert np.array_equal(next(blocks), np.ones(10))
    blocks.close()
    assert gd.lazy(a).sum().compute() == 0


@pytest.mark.parametrize("name", ["r.npy", "r.h5:/d", "r.raw"])
def test_a_file_is_written_as_its_data_comes(gd, folder, name):
    with gd.stream_writer(folder / name, "f4", SHAPE) as w:
        for slab in slabs():
            w.write(slab)
        assert w.n_rows == SHAPE[0]
    spec = f"{folder / name}" + (":f4:100000x3" if name == "r.raw" else "")
    assert np.array_equal(gd.open(spec).compute(), WHOLE, equal_nan=True)


def test_a_file_that_is_not_whole_is_not_there(gd, folder):
    with pytest.raises(gd.ShortRead) as raised:
        with gd.stream_writer(folder / "r.npy", "f4", SHAPE) as w:
            w.write(WHOLE[:7])
    assert raised.value.expected == "100000 rows" and raised.value.found == "7 rows"
    with pytest.raises(ZeroDivisionError):
        with gd.stream_writer(folder / "r.npy", "f4", SHAPE) as w:
            w.write(WHOLE)
            1 / 0
    with pytest.raises(gd.BadShape):
        with gd.stream_writer(folder / "r.npy", "f4", SHAPE) as w:
            w.write(WHOLE)
            w.write(WHOLE[:1])
    with pytest.raises(gd.BadDtype):
        with gd.stream_writer(folder / "r.npy", "f4", SHAPE) as w:
            w.write(WHOLE.astype("f8"))
    with pytest.raises(gd.BadArgument):
        w.write(WHOLE)
    with pytest.raises(gd.BadArgument), w:
        pass
    assert not os.listdir(folder)


def test_threads_and_tasks_have_streams_of_their_own(gd):
    async def one(i):
        return await gd.submit(gd.nansum(gd.from_generator(slabs, "f4", SHAPE) * i))

    async def all_of_them():
        return await asyncio.gather(*[one(i) for i in range(8)])

    want = np.nansum(WHOLE.astype("f8"))
    assert np.allclose(asyncio.run(all_of_them()), [want * i for i in range(8)])
    found = []
    threads = [threading.Thread(target=lambda: found.append(
        np.concatenate(list(gd.stream(gd.from_generator(slabs, "f4", SHAPE) * 2, rows=3000)))))
        for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6 and all(np.array_equal(a, WHOLE * 2, equal_nan=True) for a in found)
