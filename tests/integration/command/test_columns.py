"""Outputs whose elements lie between others' in a file: columns, interleaved planes, what movements
along the last axis write. Where the job has the file for itself, short runs go out with what lies
between them; every element gets to its place and all others stay, whatever threads do meanwhile."""

import os

import h5py
import numpy as np
import pytest

from wire import described, file_at

ROWS = 40_009


def places(whole):
    """Groups of arrays that share the elements, one row, between them; some are nobody's."""
    table = whole[3:3 + 11 * ROWS].reshape(ROWS, 11)
    yield "columns", [table[:, :4], table[:, 4:8], table[:, 9:]]
    yield "columns of one", [table[:, i] for i in (0, 1, 2, 10)]
    yield "reversed", [table[::-1, :3], table[::-1, 5:8]]
    yield "every other", [table[:, 1::2]]
    yield "every third row", [table[::3, 1:4], table[1::3, 1:4], table[2::3, 4:7]]
    fortran = whole[:12 * ROWS].reshape(12, ROWS).T
    yield "every other row of Fortran's order", [fortran[::2]]
    planes = whole[5:5 + 9 * 400 * 110].reshape(9, 400, 110)
    yield "boxes", [planes[:, :, :7], planes[:, :, 10:50], planes[:, :, 108:]]
    far = whole[:10 * 5 * 9000].reshape(10, 5, 9000)
    yield "rows far apart", [far[:, 0], far[:, 2, :100], far[:, 3, 7000:]]


@pytest.mark.values
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("pool, threads", [("2M", 1), ("64M", 4)])
def test_everything_gets_to_its_place(start, tmp_path, pool, threads, exclusive):
    rng = np.random.default_rng(5)
    before = rng.integers(-2**15, 2**15, 12 * ROWS + 8, dtype="i2")
    path = tmp_path / "whole.raw"
    with start(pool=pool, threads=threads).connect() as w:
        for what, _ in places(before):
            before.tofile(path)
            want = before.copy()
            args, outputs, fds = {}, [], []
            for i, to in enumerate(dict(places(want))[what]):
                source = rng.integers(-2**15, 2**15, to.shape, dtype="i2")
                source.tofile(tmp_path / f"{i}.raw")
                offset = to.__array_interface__["data"][0] - want.__array_interface__["data"][0]
                fds += [os.open(tmp_path / f"{i}.raw", os.O_RDONLY), os.open(path, os.O_RDWR)]
                args[f"x{i}"] = described(source, file_at(2 * i))
                outputs.append({"expr": f"x{i}",
                                "to": described(to, file_at(2 * i + 1, offset), to.strides)})
                to[...] = source
            w.reply(w.send("job.run", fds=fds, args=args, outputs=outputs, exclusive=exclusive))
            assert np.array_equal(np.fromfile(path, "i2"), want), what
            for fd in fds:
                os.close(fd)


def test_a_descriptor_that_may_not_be_read(start, tmp_path):
    path, value = tmp_path / "table.raw", np.arange(2 * ROWS, dtype="f4").reshape(ROWS, 2)
    want = np.zeros((ROWS, 5), "f4")
    want.tofile(path)
    value.tofile(tmp_path / "value.raw")
    fds = [os.open(tmp_path / "value.raw", os.O_RDONLY), os.open(path, os.O_WRONLY)]
    with start().connect() as w:
        w.reply(w.send("job.run", fds=fds, exclusive=True,
                       args={"a": described(value, file_at(0))},
                       outputs=[{"expr": "a + 1", "to": described(value, file_at(1, 4),
                                                                  want.strides)}]))
    want[:, 1:3] = value + 1
    assert np.array_equal(np.fromfile(path, "f4").reshape(ROWS, 5), want)


def test_one_that_may_not_be_read_between_others(start, tmp_path):
    path, n_columns = tmp_path / "table.raw", 4
    rng = np.random.default_rng(7)
    with start(pool="2M", threads=4).connect() as w:
        for _ in range(5):
            want = rng.standard_normal((ROWS, n_columns))
            path.write_bytes(bytes(want.nbytes))
            args, outputs, fds = {}, [], []
            for i in range(n_columns):
                column = want[::-1, i] if i % 2 else want[:, i]  # other rows in the same grain
                column.tofile(tmp_path / f"{i}.raw")
                offset = column.__array_interface__["data"][0] - want.__array_interface__["data"][0]
                fds += [os.open(tmp_path / f"{i}.raw", os.O_RDONLY),
                        os.open(path, os.O_WRONLY if i % 2 else os.O_RDWR)]
                args[f"x{i}"] = described(column.copy(), file_at(2 * i))
                outputs.append({"expr": f"x{i}", "to": described(
                    column, file_at(2 * i + 1, offset), column.strides)})
            w.reply(w.send("job.run", fds=fds, args=args, outputs=outputs, exclusive=True))
            assert np.array_equal(np.fromfile(path).reshape(ROWS, n_columns), want)
            for fd in fds:
                os.close(fd)


@pytest.mark.parametrize("name", ["out.npy", "out.h5:/data"])
def test_movements_along_the_last_axis(start, tmp_path, name):
    rng = np.random.default_rng(6)
    arrays = [rng.standard_normal((ROWS, n)).astype("f4") for n in (1, 3, 2)]
    for i, a in enumerate(arrays):
        np.save(tmp_path / f"{i}.npy", a)
    daemon = start(pool="4M", threads=3)
    files = [f"{i}.npy" for i in range(3)]

    def moved(*words):
        path = tmp_path / name.split(":")[0]
        path.unlink(missing_ok=True)
        daemon.ctl(*words, "-o", name, cwd=tmp_path)
        if path.suffix == ".npy":
            return np.load(path)
        with h5py.File(path) as f:
            return f["data"][...]

    assert np.array_equal(moved("concatenate", "--axis", "1", *files), np.concatenate(arrays, 1))
    assert np.array_equal(moved("stack", "--axis=-1", files[1], files[1], files[1]),
                          np.stack([arrays[1]] * 3, -1))
    assert np.array_equal(moved("roll", "--axes=1", "--shift=2", files[1]),
                          np.roll(arrays[1], 2, 1))
