"""Selections in a source's name: NumPy's basic indexing, for every kind of source and every way to
its elements, as sources and in place; and what is refused."""

import json
import os
import random

import h5py
import numpy as np
import pytest

N_EACH = 48     # generated selections of each source
N_AT_ONCE = 8   # in one job


def save_all(folder, a):
    """The array in every kind of file; name -> what NumPy sees there."""
    kinds = {"c.npy": a, "f.npy": np.asfortranarray(a), "big.npy": a.astype(">f8"),
             "small.npy": a.astype("i2"), "turned.npy": np.asfortranarray(a.astype(">i4"))}
    for name, value in kinds.items():
        np.save(folder / name, value)
    shape = "x".join(map(str, a.shape))
    (folder / "a.raw").write_bytes(b"abc" + a.astype(">u2").tobytes())
    kinds[f"a.raw:>u2:{shape}:3"] = a.astype(">u2")
    with h5py.File(folder / "x.h5", "w", userblock_size=512) as f:
        for name, chunks, options in (
                ("plain", None, {}), ("rows", (1,) + a.shape[1:], {}),
                ("odd", tuple(max(n // 2, 1) for n in a.shape), {}),
                ("packed", tuple(max(n // 3, 1) for n in a.shape), {"compression": "gzip"})):
            f.create_dataset(name, data=a.astype("f4"), chunks=chunks, **options)
            kinds[f"x.h5:/{name}"] = a.astype("f4")
        f.create_dataset("big", data=a.astype(">i8"))
        kinds["x.h5:/big"] = a.astype(">i8")
    return kinds


@pytest.fixture
def files(folder):
    a = np.arange(7 * 11 * 5, dtype="f8").reshape(7, 11, 5)
    return folder, a, save_all(folder, a)


def blank(rng):
    return rng.choice(["", "", "", " "])


def limit(rng, size):
    return rng.choice(["", rng.randint(-size - 3, size + 3), rng.randint(0, size),
                       rng.choice([0, -1, size, 10**25, -10**25])])


def part(rng, size):
    kind = rng.random()
    if kind < 0.25 and size > 0:
        return str(rng.randint(-size, size - 1))
    step = rng.choice(["", ":", ":1", ":2", ":3", ":-1", ":-2", f":{size + 1}", f":-{size + 1}",
                       f":{10**20}"])
    return f"{limit(rng, size)}{blank(rng)}:{blank(rng)}{limit(rng, size)}{step}"


def selection(rng, shape):
    """A selection of an array of this shape that NumPy accepts too."""
    n = rng.randint(0, len(shape))
    n_last = rng.randint(0, n)
    parts = [part(rng, size) for size in shape[:n - n_last]]
    parts += ["..."] if n_last or not n or rng.random() < 0.2 else []
    parts += [part(rng, size) for size in shape[len(shape) - n_last:]]
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        parts.insert(rng.randint(0, len(parts)), rng.choice(["newaxis", "None"]))
    text = f",{blank(rng)}".join(parts) + rng.choice(["", "", ","])
    return f"{blank(rng)}[{blank(rng)}{text}{blank(rng)}]"


def of(array, text):
    return eval("array" + text, {"array": array, "newaxis": np.newaxis})


def run_all(daemon, folder, source, texts):
    """What the daemon makes of source + text, for some texts in one job."""
    names = [f"a{i}" for i in range(len(texts))]
    done = daemon.ctl("run", "; ".join(f"r{i} = a{i}" for i in range(len(texts))),
                      *[f"{n}={source}{t}" for n, t in zip(names, texts)], "--json", cwd=folder)
    return [np.array(o["data"], o["dtype"]).reshape(o["shape"])
            for o in json.loads(done.stdout)["outputs"]]


def compare(daemon, folder, kinds, n_each, seed):
    rng = random.Random(seed)
    for source, value in kinds.items():
        texts = [selection(rng, value.shape) for _ in range(n_each)]
        for i in range(0, n_each, N_AT_ONCE):
            some = texts[i:i + N_AT_ONCE]
            for text, got in zip(some, run_all(daemon, folder, source, some), strict=True):
                want = of(value, text)
                assert got.shape == want.shape and np.array_equal(got, want), source + text
                assert got.dtype == want.dtype.newbyteorder("="), source + text


def test_generated_selections_are_numpys(daemon, files):
    folder, a, kinds = files
    assert len(kinds) * N_EACH > 500
    compare(daemon, folder, kinds, N_EACH, 1)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (13,), (2,) * 9])
def test_generated_selections_of_other_shapes(daemon, folder, shape):
    a = np.arange(np.prod(shape, dtype=int), dtype="f8").reshape(shape)
    kinds = {f"{name}.npy": value for name, value in
             (("c", a), ("f", np.asfortranarray(a.astype(">f4"))))}
    for name, value in kinds.items():
        np.save(folder / name, value)
    with h5py.File(folder / "x.h5", "w") as f:
        f["plain"] = kinds["x.h5:/plain"] = a
        if a.size:
            chunks = tuple(max(n // 2, 1) for n in shape) or None
            f.create_dataset("grid", data=a, chunks=chunks)
            kinds["x.h5:/grid"] = a
    compare(daemon, folder, kinds, N_AT_ONCE, len(shape))


def test_large_selections_through_many_tiles(start, folder):
    """Through a pool of 1 MiB, mixed with each other, to a file."""
    daemon = start(pool="1M")
    a = np.arange(600 * 500, dtype="f8").reshape(600, 500) % 65000
    kinds = save_all(folder, a)
    texts = ["[::-1, ::3]", "[1::2, 499:0:-3]", "[300:, :167]", "[-1:299:-1, ::-3]", "[::2, -167:]"]
    for i, (source, value) in enumerate(kinds.items()):
        text = texts[i % len(texts)]
        other = "[:600:2, 20:187]" if of(value, text).shape[0] == 300 else "[:, 333:]"
        daemon.ctl("run", "x - y", f"x={source}{text}", f"y=c.npy{other}", "-o", "r.npy",
                   cwd=folder)
        got, want = np.load(folder / "r.npy"), of(value, text) - of(a, other)
        assert np.array_equal(got, want), source + text


ACCESS = [
    ("c.npy[1:3, ::-2]", "file", [2, 6, 5]), ("f.npy[..., 0]", "file", [7, 11]),
    ("a.raw:>u2:7x11x5:3[5]", "file", [11, 5]), ("x.h5:/plain[::2]", "file", [4, 11, 5]),
    ("x.h5:/rows[2:5]", "chunks", [3, 11, 5]), ("x.h5:/rows[-1]", "chunks", [11, 5]),
    ("x.h5:/rows[1, 3:7]", "chunks", [4, 5]), ("x.h5:/odd[3:, 5:]", "chunks", [4, 6, 5]),
    ("x.h5:/odd[3:, 5:8]", "chunks", [4, 3, 5]),
    ("x.h5:/rows[:, newaxis]", "chunks", [7, 1, 11, 5]),
    ("x.h5:/odd[4]", "chunks", [11, 5]), ("x.h5:/odd[1:]", "provider", [6, 11, 5]),
    ("x.h5:/rows[::2]", "provider", [4, 11, 5]), ("x.h5:/rows[..., 0]", "provider", [7, 11]),
    ("x.h5:/packed[0]", "provider", [11, 5]), ("x.h5:/packed[:0]", "file", [0, 11, 5])]


def test_how_selections_travel(daemon, files):
    """As strides where the file is contiguous, as a part of the table where no chunk is cut."""
    folder, a, kinds = files
    for source, access, shape in ACCESS:
        info = json.loads(daemon.ctl("info", source, "--json", cwd=folder).stdout)
        assert (info["access"], info["shape"]) == (access, shape), source
        whole, text = source.rsplit("[", 1)
        got, = run_all(daemon, folder, whole, ["[" + text])
        assert np.array_equal(got, of(kinds[whole], "[" + text)), source


def test_a_frame_of_a_stack_with_very_many_chunks(daemon, folder):
    """The stack has too many chunks for a table, a frame has not."""
    a = np.arange(5000 * 12, dtype="f4").reshape(5000, 3, 4)
    with h5py.File(folder / "s.h5", "w") as f:
        f.create_dataset("stack", data=a, chunks=(1, 3, 4))
    for source, access in (("s.h5:/stack", "provider"), ("s.h5:/stack[4321]", "chunks")):
        assert f'"access":"{access}"' in daemon.ctl("info", source, "--json", cwd=folder
                                                    ).stdout.replace(" ", "")
    got, = run_all(daemon, folder, "s.h5:/stack", ["[4321]"])
    assert np.array_equal(got, a[4321])


def test_show_takes_selections(daemon, files):
    folder, a, _ = files
    shown = json.loads(daemon.ctl("show", "c.npy[2, ::-3]", "--json", cwd=folder).stdout)
    assert shown["shape"] == [4, 5] and shown["max"] == a[2, ::-3].max()
    assert shown["min"] == a[2, ::-3].min()


REFUSED = [
    ("c.npy[7]", "index 7 at character 7 is out of bounds for axis 0 with size 7", "-7 to 6"),
    ("c.npy[0, -12]", "index -12 at character 10 is out of bounds for axis 1 with size 11", ""),
    ("c.npy[99999999999999999999]", "out of bounds for axis 0", "99999999999999999999"),
    ("c.npy[0, 0, 0, 0]", "too many indices: the array has 3 dimensions, 4 were indexed", "(7, 11"),
    ("c.npy[1:2:0]", "the step at character 11 is 0", ""),
    ("c.npy[::-0]", "the step at character 9 is 0", ""),
    ("c.npy[..., ...]", "a second ... at character 12", ""),
    ("c.npy[]", "cannot be read at character 7: ']'", "an integer, a slice"),
    ("c.npy[,]", "cannot be read at character 7", ""),
    ("c.npy[1,,2]", "cannot be read at character 9", ""),
    ("c.npy[x]", "cannot be read at character 7: 'x]'", ""),
    ("c.npy[1.5]", "cannot be read at character 8", "','"),
    ("c.npy[1 2]", "cannot be read at character 9", ""),
    ("c.npy[1:2:3:4]", "cannot be read at character 12", ""),
    ("c.npy[[1, 2]]", "cannot be read at character 7", ""),
    ("c.npy[True]", "cannot be read at character 7", ""),
    ("c.npy[" + "newaxis," * 30 + "]", "more than 32 dimensions", ""),
    ("c.npy[1:2", "the '[' at character 6 has no ']'", "[10:20, ::2]"),
    ("c.npy 1:2]", "the ']' at character 10 has no '['", ""),
    ("c.npy[1:2]]", "the ']' at character 11 has no '['", ""),
    ("a.raw:>u2:7x11x5:3[1", "the '[' at character 19 has no ']'", ""),
    ("a.raw[1]:>u2:7", "there is no 'a.raw[1]'", ""),
    ("a.raw[1]", "dtype and shape", ""),
    ("x.h5:/plain[7]", "index 7 at character 13 is out of bounds", ""),
    ("x.h5:/packed[::0]", "the step at character 16 is 0", ""),
    ("x.h5:/nothing[0]", "no dataset '/nothing'", "/plain"),
    ("missing.npy[0]", "there is no 'missing.npy'", ""),
    ("missing.npy[junk]", "there is no 'missing.npy'", ""),
    ("c.txt[0]", "no extension", "")]


@pytest.mark.parametrize("source, text, expected", REFUSED, ids=[r[0][:30] for r in REFUSED])
def test_what_is_refused(daemon, files, source, text, expected):
    folder, a, _ = files
    done = daemon.ctl("info", source, check=False, cwd=folder)
    assert done.returncode == 1, done
    assert ("not-found" if "there is no" in text or "no dataset" in text else "bad-argument") \
        in done.stderr, done.stderr
    assert text in done.stderr and expected in done.stderr, done.stderr


def test_names_that_end_in_brackets(daemon, folder):
    """What exists under the whole name wins."""
    for name, value in (("d.npy", 1), ("d.npy[0]", 2), ("e.npy[0]", 3)):
        with open(folder / name, "wb") as f:
            np.save(f, np.full(3, value))
    with h5py.File(folder / "x.h5", "w") as f:
        f["d"], f["d[0]"], f["e[:]"], f["g[0]/d"] = [4, 4, 4], [5, 5], [6, 6, 6], [7, 7]
    wants = {"d.npy[0]": [2] * 3, "d.npy[1]": 1, "d.npy[0][1:]": [2, 2], "e.npy[0]": [3] * 3,
             "e.npy[0][0]": 3, "x.h5:/d[0]": [5, 5], "x.h5:/d[1]": 4, "x.h5:/d[0][1]": 5,
             "x.h5:d[0]": [5, 5],
             "x.h5:/e[:]": [6] * 3, "x.h5:/e[:][:2]": [6, 6], "x.h5:/g[0]/d": [7, 7],
             "x.h5:/g[0]/d[:1]": [7]}
    for source, want in wants.items():
        assert np.array_equal(run_all(daemon, folder, source, [""])[0], want), source
    np.save(folder / "r.npy", np.full(3, 9))
    daemon.ctl("run", "a", "a=r.npy", "-o", "d.npy[0]", cwd=folder)
    daemon.ctl("run", "a", "a=r.npy[0:2]", "-o", "x.h5:/d[0]", cwd=folder)
    with open(folder / "d.npy[0]", "rb") as f:
        assert np.array_equal(np.load(f), [9, 9, 9])
    with h5py.File(folder / "x.h5") as f:
        assert np.array_equal(f["d[0]"], [9, 9]) and np.array_equal(f["d"], [4, 4, 4])


# In place ---------------------------------------------------------------------------------------

IN_PLACE = ["[0:3]", "[::-2, 1]", "[..., -1]", "[1:6:2, 3:9, ::-1]", "[newaxis, 4]", "[2, 3, 4]",
            "[5:2]", "[::3, ::4, ::2]"]


@pytest.mark.parametrize("source", ["c.npy", "f.npy", "turned.npy", "a.raw:>u2:7x11x5:3",
                                    "x.h5:/plain"])
def test_selections_are_written_in_place(daemon, files, source):
    """Exactly the selected elements change: of themselves, of others, and of a number."""
    folder, a, kinds = files
    want = np.array(kinds[source])
    for i, text in enumerate(IN_PLACE):
        view = of(want, text)
        result = (view + i + 1).astype(want.dtype)
        if text == "[2, 3, 4]":
            want[2, 3, 4] = result
        else:
            view[...] = result
        native = want.dtype.newbyteorder("=").name
        daemon.ctl("run", f"{native}(a + {i + 1})", f"a={source}{text}", "--in-place", "-o",
                   f"{source}{text}", cwd=folder)
        assert np.array_equal(run_all(daemon, folder, source, [""])[0], want), text


def test_overlap_is_decided_by_bytes(daemon, files):
    folder, a, _ = files
    want = a.copy()

    def assign(source, target, *, may):
        done = daemon.ctl("run", "x * 2", f"x={source}", "--in-place", "-o", target, check=False,
                          cwd=folder)
        assert (done.returncode == 0) == may, (source, target, done.stderr)
        assert may or "overlapping-output" in done.stderr, done.stderr
        assert np.array_equal(np.load(folder / "c.npy"), want), (source, target)

    assign("c.npy[1:4]", "c.npy[2:5]", may=False)
    assign("c.npy[::-1]", "c.npy", may=False)
    assign("c.npy[0:1]", "c.npy[0:1, ::-1]", may=False)
    assign("c.npy[..., 1:3]", "c.npy[..., 2:4]", may=False)
    os.link(folder / "c.npy", folder / "other.npy")
    assign("other.npy[1:4]", "c.npy[2:5]", may=False)
    want[2:5] *= 2
    assign("c.npy[2:5]", "other.npy[2:5]", may=True)
    want[4:7] = want[0:3] * 2
    assign("c.npy[0:3]", "c.npy[4:7]", may=True)
    want[..., 3:] = want[..., :2] * 2
    assign("c.npy[..., :2]", "c.npy[..., 3:]", may=True)
    want[1::2] = want[:6:2] * 2
    assign("c.npy[:6:2]", "c.npy[1::2]", may=True)
    want[:, 2] = want[::-1, 7] * 2
    assign("c.npy[::-1, 7]", "c.npy[:, 2]", may=True)


def test_selections_are_no_new_outputs(daemon, files):
    folder, a, _ = files
    before = sorted(os.listdir(folder))
    for target in ("new.npy[0:3]", "c.npy[0:3]", "new.raw[0:3]", "a.raw:f8:3x11x5[0]",
                   "x.h5:/new[0]", "x.h5:/plain[0:3]", "new.h5:/d[0]"):
        done = daemon.ctl("run", "a", "a=c.npy[0:3]", "-o", target, check=False, cwd=folder)
        assert done.returncode == 1 and "bad-argument" in done.stderr, done
        assert "a new output has no selection [0" in done.stderr and "in place" in done.stderr
    for target, word in (("missing.npy[0]", "not-found"), ("x.h5:/rows[0]", "read-only"),
                         ("x.h5:/packed[0]", "read-only"), ("c.npy[9]", "bad-argument"),
                         ("c.npy[0:2]", "bad-shape")):
        done = daemon.ctl("run", "a", "a=c.npy[0:3]", "--in-place", "-o", target, check=False,
                          cwd=folder)
        assert done.returncode == 1 and word in done.stderr, (target, done)
    assert sorted(os.listdir(folder)) == before and np.array_equal(np.load(folder / "c.npy"), a)
