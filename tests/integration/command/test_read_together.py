"""Files of which the inputs of several grains are read at once: every element gets to its grain,
in whatever order and at whatever distance elements lie in the file, in slots of every size, and also
where a read has to wait for the disk."""

import os

import numpy as np
import pytest

from wire import Region, described, file_at

SHAPE = (70, 13, 3001)  # 10.9 MB of int32: some forty grains, and none of a round size


def views(whole):
    """Arrays of SHAPE somewhere in the file's elements, which are one row."""
    n = int(np.prod(SHAPE))
    dense = whole[5:5 + n].reshape(SHAPE)
    yield "C order", dense
    yield "Fortran order", whole[1:1 + n].reshape(SHAPE[::-1]).T
    yield "rows from the last on", dense[::-1]
    yield "every axis from the last on", dense[::-1, ::-1, ::-1]
    yield "every other element", whole[:2 * n].reshape(*SHAPE[:2], 2 * SHAPE[2])[..., ::2]
    yield "a part of each row", whole[:2 * n].reshape(*SHAPE[:2], 2 * SHAPE[2])[..., 40:3041]
    yield "other axes first", whole[:n].reshape(SHAPE[1], SHAPE[0], SHAPE[2]).transpose(1, 0, 2)
    yield "one row for all", np.broadcast_to(whole[7:7 + SHAPE[2]], SHAPE)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    whole = np.random.default_rng(3).integers(-2**31, 2**31, 2 * int(np.prod(SHAPE)), dtype="i4")
    path = tmp_path_factory.mktemp("together") / "elements.raw"
    whole.tofile(path)
    return path, whole


def forget(fd):
    """Nothing of it stays in the page cache, so that reads have to wait for the disk."""
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.mark.values
@pytest.mark.parametrize("is_cached", [True, False])
@pytest.mark.parametrize("pool, threads", [("2M", 2), ("3M", 1), ("64M", 3)])
def test_every_element_gets_to_its_grain(start, file, pool, threads, is_cached):
    path, whole = file
    row = np.arange(SHAPE[2], dtype="i4")
    fds = [os.open(path, os.O_RDONLY), os.memfd_create("row")]
    os.write(fds[1], row.tobytes())
    with start(pool=pool, threads=threads).connect() as w:
        region = Region(w, 8 * whole.size)
        both, most = region.array("i8", SHAPE), region.array("i4", SHAPE[1:], 4 * whole.size)
        for what, a in views(whole):
            offset = a.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
            texts = ["sum(a)", "sum(a, axis=(0, 2))", "sum(a, axis=2)", "sum(a * b, axis=(0, 1))"]
            outputs = [{"expr": text} for text in texts]
            outputs.append({"expr": "int64(a) - b", "to": described(both, region.at())})
            outputs.append({"expr": "max(a, axis=0)",
                            "to": described(most, region.at(4 * whole.size))})
            if not is_cached:
                forget(fds[0])
            reply = w.reply(w.send("job.run", fds=fds, outputs=outputs, args={
                "a": described(a, file_at(0, offset), a.strides),
                "b": described(row, file_at(1))}))
            wide = a.astype("i8")
            wants = [wide.sum(), wide.sum((0, 2)), wide.sum(2), (a * row).astype("i8").sum((0, 1))]
            for text, output, want in zip(texts, reply["outputs"], wants, strict=False):
                got = np.frombuffer(output["data"], output["dtype"]).reshape(output["shape"])
                assert np.array_equal(got, want), f"{what}: {text}"
            assert np.array_equal(both, wide - row) and np.array_equal(most, a.max(0)), what
        both = most = None
    for fd in fds:
        os.close(fd)
