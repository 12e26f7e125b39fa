"""Parts of lazies, x[10:20], of all kinds of sources; and what becomes of a lazy whose file is
replaced, moved away from or opened by another session."""

import os

import h5py
import numpy as np
import pytest

from test_lazy import same, text_of, x  # noqa: F401

# -- parts --------------------------------------------------------------------------------------

KEYS = [np.s_[3], np.s_[-1, 2], np.s_[2:20:3], np.s_[::-1], np.s_[:, 5], np.s_[..., -3:],
        np.s_[None], np.s_[4:2], np.s_[..., None, 1], np.s_[::-7, None, 10::4], np.s_[...],
        np.s_[()], np.s_[-5:100, -100:5], np.s_[np.int8(3), :, None], np.s_[20:2:-5, 3:3]]


def test_parts(gd, x):
    x, elements = x
    row, column, m = elements[0], elements[:, :1], elements.mean()
    for key in KEYS:
        same(x[key].compute(), elements[key])
        assert x[key].shape == elements[key].shape
        same(gd.lazy(elements)[key].compute(), elements[key])
        y = gd.where(x > 5, x * row + column, x.mean())[key]
        same(y.compute(), np.where(elements > 5, elements * row + column, m)[key])


def test_new_axes_of_a_single_number(gd, x):
    x, elements = x
    low, high = x.min() - 1, 2 * gd.sqrt(abs(x.max())) + 1
    want = elements.min() - 1, 2 * np.sqrt(abs(elements.max())) + 1
    same(low[None].compute(), want[0][None])
    same(high[..., None, None].compute(), want[1][..., None, None])
    same(np.stack([low, high]).compute(), np.stack(want))


def test_parts_of_parts(gd, x, folder):
    rng = np.random.default_rng(5)
    x, elements = x
    pairs = [(x, elements), (gd.lazy(elements), elements),
             (gd.open(f"{folder}/x.npy[3:28, ::-2]"), elements[3:28, ::-2])]
    for _ in range(60):
        lazy, array = pairs[rng.integers(3)]
        for _ in range(3):
            key = some_keys(rng, array.shape)
            lazy, array = lazy[key], array[(*key, ...)]
            assert lazy.shape == array.shape
        same(lazy.compute(), array)


def some_keys(rng, shape):
    """For some of the axes, the first ones, and new ones between them."""
    key = [some_key(rng, n) for n in shape[:rng.integers(len(shape) + 1)]]
    if rng.random() < 0.3:
        key.insert(rng.integers(len(key) + 1), None)
    return tuple(key)


def some_key(rng, n):
    if n and rng.random() < 0.2:
        return int(rng.integers(-n, n))
    ends = [None if rng.random() < 0.3 else int(rng.integers(-n - 2, n + 3)) for _ in "ab"]
    return slice(*ends, int(rng.choice([-3, -2, -1, 1, 2, 3])) if rng.random() < 0.6 else None)


def test_files_with_brackets_in_their_names(gd, folder):
    a = np.arange(12.).reshape(3, 4)
    np.save(folder / "a[1].npy", a)
    same(gd.open(folder / "a[1].npy")[1:].compute(), a[1:])
    same(gd.open(f"{folder}/a[1].npy[:, 2]")[1:].compute(), a[1:, 2])
    with h5py.File(folder / "f.h5", "w") as f:
        f["d"], f["d[1]"] = a, a + 1
    same(gd.open(f"{folder}/f.h5:/d")[1].compute(), a[1])
    same(gd.open(f"{folder}/f.h5:/d[1]")[1].compute(), (a + 1)[1])
    same(gd.open(f"{folder}/f.h5:/d[0]")[1].compute(), a[0][1])


def test_parts_of_datasets_are_never_loaded(gd, folder):
    a = np.arange(600.).reshape(20, 30)
    with h5py.File(folder / "f.h5", "w") as f:
        f.create_dataset("d", data=a, chunks=(5, 7), compression="gzip")
        for key in (np.s_[3:9, ::-2], np.s_[4], np.s_[..., None, 5], np.s_[4:4]):
            same((gd.lazy(f["d"])[key] + 1).compute(), a[key] + 1)
        for key in (np.s_[::-1], np.s_[:, ::-1]):
            with pytest.raises(gd.errors.OverlappingOutput):
                gd.lazy(f["d"])[key].compute(out=f["d"])
        e = f.create_dataset("e", (20, 30), "f8")
        assert gd.lazy(f["d"])[::-1].compute(out=e) is e
        same(e[...], a[::-1])
    with h5py.File(folder / "f.h5") as f:
        part = gd.lazy(f["d"])[2:]
        same((part[::-3, 1] + part[0, 0]).compute(), a[2:][::-3, 1] + a[2, 0])


def test_parts_that_are_not_there(gd, x):
    x, _ = x
    for key, error in [(30, IndexError), ((0, 40), IndexError), ((0, 0, 0), IndexError),
                       (np.s_[..., ...], IndexError), (1.5, IndexError), ("a", IndexError),
                       ((x > 1)[1:], IndexError), ([1.5], IndexError), (True, TypeError)]:
        for one in (x, x + 1):
            with pytest.raises(error):
                one[key]
    with pytest.raises(ValueError, match="zero"):
        x[::0]
    for one, key in [(gd.add(1, 2), None), (x + gd.index(0), 3)]:
        with pytest.raises(gd.errors.Unsupported):
            one[key]
    assert x.sum()[()].compute() == x.sum().compute()
    assert x.max()[None].compute().tolist() == [x.max().compute()]


def test_only_the_part_is_read(gd, x):
    x, _ = x
    before = gd.stats()["bytes"]
    (x[2] + 1).sum().compute()
    after = gd.stats()["bytes"]
    assert 0 < sum(after["read"].values()) - sum(before["read"].values()) <= 40 * 8


# -- files --------------------------------------------------------------------------------------

def test_a_file_that_is_replaced(gd, x, folder):
    """What was opened is read, as by np.memmap; a part would be another file's."""
    x, elements = x
    part = x[1]
    gd.save(folder / "x.npy", x[:, ::-1] * 2)
    same(x.compute(), elements)
    same(part.compute(), elements[1])
    with pytest.raises(gd.errors.BadArgument, match="replaced"):
        x[2]
    again = gd.open(folder / "x.npy")
    same(again.compute(), elements[:, ::-1] * 2)
    assert text_of(x + again)[1] == ["_0", "_1"]


@pytest.mark.parametrize("options", [{}, {"chunks": (5, 8)},
                                     {"chunks": (5, 8), "compression": "gzip"}], ids=str)
def test_a_dataset_that_is_replaced(gd, x, folder, options):
    """HDF5 gives its place to others, so it is looked for again by its name."""
    _, elements = x
    with h5py.File(folder / "f.h5", "w") as f:
        f.create_dataset("d", data=elements, **options)
    leaf = gd.open(f"{folder}/f.h5:/d")
    same(gd.save(f"{folder}/f.h5:/e", leaf * 2).compute(), elements * 2)
    same(leaf.compute(), elements)
    gd.save(f"{folder}/f.h5:/d", leaf + 1)
    os.utime(folder / "f.h5")
    gd.save(f"{folder}/f.h5:/g", gd.lazy(elements * 0))
    same(leaf.compute(), elements + 1)
    same(leaf[3].compute(), elements[3] + 1)
    gd.save(f"{folder}/f.h5:/d", gd.lazy(elements[0]))
    with pytest.raises(gd.errors.BadArgument, match="open it again"):
        leaf.compute()


def test_relative_paths_stay_where_they_were(gd, x, folder, monkeypatch):
    x, elements = x
    monkeypatch.chdir(folder)
    leaf = gd.open("x.npy")
    monkeypatch.chdir("/")
    gd.close()
    same(leaf[2:].compute(), elements[2:])
    assert repr(leaf[2:]) == "<Lazy float64 (28, 40): open('x.npy[2:30, :]')>"


def test_in_another_session(gd, daemon, x, folder):
    x, elements = x
    y = x + 1
    gd.close()
    gd.connect(daemon.socket)
    same(y.compute(), elements + 1)
    gd.close()
    np.save(folder / "x.npy", elements[:5])
    with pytest.raises(gd.errors.BadArgument, match="open it again"):
        y.compute()
