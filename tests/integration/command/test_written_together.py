"""Files to which the outputs of several grains are written at once: every element gets to its place,
in whatever order and at whatever distance elements lie in the file, and nothing else is touched; also
where the outputs lie over what is read."""

import os

import numpy as np
import pytest

from wire import Region, described, file_at

SHAPE = (70, 13, 3001)  # 10.9 MB of int32: some forty grains, and none of a round size
N = int(np.prod(SHAPE))


def views(whole):
    """Arrays of SHAPE somewhere in the elements, which are one row."""
    rows = whole[:2 * N].reshape(*SHAPE[:2], 2 * SHAPE[2])
    yield "C order", whole[5:5 + N].reshape(SHAPE)
    yield "Fortran order", whole[1:1 + N].reshape(SHAPE[::-1]).T
    yield "every axis from the last on", whole[5:5 + N].reshape(SHAPE)[::-1, ::-1, ::-1]
    yield "every other row", whole[:2 * N].reshape(2 * SHAPE[0], *SHAPE[1:])[1::2]
    yield "a part of each row", rows[..., 40:3041]
    yield "other axes first", whole[:N].reshape(SHAPE[1], SHAPE[0], SHAPE[2]).transpose(1, 0, 2)


def offset_in(whole, a):
    return a.__array_interface__["data"][0] - whole.__array_interface__["data"][0]


def run(w, paths, args, *outputs):
    """A job on descriptors of these files, one for each."""
    fds = [os.open(path, os.O_RDWR | os.O_CREAT) for path in paths]
    try:
        return w.reply(w.send("job.run", fds=fds, args=args, outputs=outputs))
    finally:
        for fd in fds:
            os.close(fd)


@pytest.fixture(scope="module")
def elements():
    return np.random.default_rng(4).integers(-2**31, 2**31, 2 * N + 7, dtype="i4")


@pytest.mark.parametrize("pool, threads", [("2M", 2), ("3M", 1), ("64M", 3)])
def test_every_element_gets_to_its_place(start, tmp_path, elements, pool, threads):
    row, a = np.arange(SHAPE[2], dtype="i4"), elements[:N].reshape(SHAPE)
    path, paths = tmp_path / "whole.raw", [tmp_path / f"{name}.raw" for name in "ab"]
    a.tofile(paths[0])
    row.tofile(paths[1])
    with start(pool=pool, threads=threads).connect() as w:
        for what, _ in views(elements):
            elements.tofile(path)
            want = elements.copy()
            to = dict(views(want))[what]
            place = described(to, file_at(2, offset_in(want, to)), to.strides)
            (tmp_path / "wide.raw").write_bytes(bytes(8 * N))
            run(w, [*paths, path, tmp_path / "wide.raw"],
                {"a": described(a, file_at(0)), "b": described(row, file_at(1))},
                {"expr": "a ^ b", "to": place}, {"expr": "sum(a)"}, {"expr": "max(a ^ b, axis=2)"},
                {"expr": "int64(a) - b", "to": described(np.empty(SHAPE, "i8"), file_at(3))})
            to[...] = a ^ row
            assert np.array_equal(np.fromfile(path, "i4"), want), what
            assert np.array_equal(np.fromfile(tmp_path / "wide.raw", "i8").reshape(SHAPE),
                                  a.astype("i8") - row), what


@pytest.mark.parametrize("pool, threads", [("2M", 2), ("64M", 3)])
def test_nothing_but_an_output(start, tmp_path, pool, threads):
    """As many grains as the slot has room for: nothing is read into it."""
    text = f"integers(-2147483648, 2147483647, {SHAPE}, dtype=int32, seed=5)"
    path = tmp_path / "whole.raw"
    with start(pool=pool, threads=threads).connect() as w:
        region = Region(w, 4 * N)
        numbers = region.array("i4", SHAPE)
        w.call("job.run", args={}, outputs=[{"expr": text, "to": described(numbers, region.at())}])
        for what, _ in views(np.empty(2 * N + 7, "i4")):
            want = np.full(2 * N + 7, -1, "i4")
            want.tofile(path)
            to = dict(views(want))[what]
            place = described(to, file_at(0, offset_in(want, to)), to.strides)
            run(w, [path], {}, {"expr": text, "to": place})
            to[...] = numbers
            assert np.array_equal(np.fromfile(path, "i4"), want), what
        numbers = None


@pytest.mark.parametrize("pool, threads", [("2M", 2), ("64M", 3)])
def test_outputs_over_what_is_read(start, tmp_path, elements, pool, threads):
    path = tmp_path / "whole.raw"
    with start(pool=pool, threads=threads).connect() as w:
        for what, _ in views(elements):
            elements.tofile(path)
            want = elements.copy()
            a = dict(views(want))[what]
            place = described(a, file_at(0, offset_in(want, a)), a.strides)
            run(w, [path, path], {"a": place}, {
                "expr": "a * 3 + 1", "to": dict(place, at=file_at(1, offset_in(want, a)))})
            a[...] = a * np.int32(3) + np.int32(1)
            assert np.array_equal(np.fromfile(path, "i4"), want), what
