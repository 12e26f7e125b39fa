"""transpose, concatenate, stack, flip, roll, tile, pad, take and diff of the command, and so of the C library: NumPy's
results byte for byte, from every kind of file to every kind, and what is refused."""

import json
import random

import h5py
import numpy as np
import pytest

DTYPES = ["f4", "f8", "i1", "u2", "i8", "?", ">f4", ">i2"]
N_CASES = 24


class Files:
    """Arrays in files of every kind."""

    def __init__(self, folder, seed):
        self.folder = folder
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)

    def shape(self):
        n = self.random.randint(1, 4)
        return tuple(self.random.randint(1, 40 if n < 3 else 9) for _ in range(n))

    def array(self, shape, name="s"):
        a = self.numbers.integers(0, 100, shape).astype(self.random.choice(DTYPES))
        kind = self.random.choice(["npy", "fortran", "raw", "plain", "chunks", "packed", "part"])
        path = self.folder / name
        if kind in ("npy", "fortran", "part"):
            np.save(f"{path}.npy", np.repeat(a, 2, -1)[..., ::-1] if kind == "part"
                    else np.asfortranarray(a) if kind == "fortran" else a)
            return a, f"{path}.npy" + "[..., ::-2]" * (kind == "part")
        if kind == "raw" and a.size:
            a.tofile(f"{path}.raw")
            dtype = a.dtype.str.lstrip("|").replace("b1", "bool")
            return a, f"{path}.raw:{dtype}:{'x'.join(map(str, shape))}"
        options = {} if kind in ("plain", "raw") or not a.size else {
            "chunks": tuple(max(1, min(n, self.random.randint(1, 9))) for n in shape),
            "compression": "gzip" if kind == "packed" else None}
        with h5py.File(f"{path}.h5", "w") as f:
            f.create_dataset("d", data=a, **options)
        return a, f"{path}.h5:/d"

    def moved(self, daemon, *words):
        """What a verb writes; into a file that is new, or one that is there."""
        to = self.random.choice([f"{self.folder}/o.npy", f"{self.folder}/o.h5:/x/y"])
        daemon.ctl(*words, "-o", to)
        if to.endswith(".npy"):
            return np.load(to)
        with h5py.File(to.split(":")[0]) as f:
            return f["x/y"][()]


def listed(numbers):
    return ",".join(map(str, numbers))


def same(got, want):
    want = want.astype(want.dtype.newbyteorder("="))
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    assert got.tobytes() == want.tobytes()


def transposed(files, daemon):
    a, source = files.array(files.shape())
    order = list(range(a.ndim))
    files.random.shuffle(order)
    same(files.moved(daemon, "transpose", source, "--axes", listed(order)), a.transpose(order))


def flipped(files, daemon):
    a, source = files.array(files.shape())
    axes = tuple(files.random.sample(range(a.ndim), files.random.randint(1, a.ndim)))
    same(files.moved(daemon, "flip", source, "--axes", listed(axes)), np.flip(a, axes))


def rolled(files, daemon):
    a, source = files.array(files.shape())
    if files.random.random() < 0.4:
        by = files.random.randint(-200, 200)
        same(files.moved(daemon, "roll", source, f"--shift={by}"), np.roll(a, by))
        return
    axes = [files.random.randrange(a.ndim) for _ in range(files.random.randint(1, a.ndim))]
    by = [files.random.randint(-50, 50) for _ in axes]
    same(files.moved(daemon, "roll", source, f"--shift={listed(by)}", "--axes", listed(axes)),
         np.roll(a, by, axes))


def tiled(files, daemon):
    a, source = files.array(files.shape())
    times = [files.random.choice([0, 1, 2, 2, 3, 4]) for _ in range(files.random.randint(1, 4))]
    same(files.moved(daemon, "tile", source, "--repeats", listed(times)), np.tile(a, times))


def periodic(a, widths, mode):
    """numpy.pad() also where the border is wider than the array, which not all versions get right."""
    for axis, (before, after) in enumerate(widths):
        n = a.shape[axis]
        i = np.arange(-before, n + after)
        if mode == "edge" or (mode == "reflect" and n == 1):
            i = i.clip(0, n - 1)
        elif mode == "wrap":
            i %= n
        else:
            period = 2 * n - 2 if mode == "reflect" else 2 * n
            i %= period
            i = np.where(i >= n, period - i - (mode == "symmetric"), i)
        a = a.take(i, axis)
    return a


def padded(files, daemon):
    a, source = files.array(files.shape())
    widths = [(files.random.choice([0, 1, 2, 30]), files.random.choice([0, 1, 3, 20]))
              if a.ndim < 3 else (files.random.randint(0, 6), files.random.randint(0, 6))
              for _ in a.shape]
    mode = files.random.choice(["constant", "edge", "reflect", "symmetric", "wrap"])
    text = listed(f"{before}:{after}" for before, after in widths)
    got = files.moved(daemon, "pad", source, "--width", text, "--mode", mode, "--value", "1:0")
    same(got, np.pad(a, widths, constant_values=((1, 0),) * a.ndim) if mode == "constant"
         else periodic(a, widths, mode))


def joined(files, daemon):
    shape = files.shape()
    axis = files.random.randrange(-len(shape), len(shape))
    arrays = []
    for i in range(files.random.choice([1, 2, 3, 25])):
        longer = list(shape)
        longer[axis] = files.random.randint(0, 9)
        arrays.append(files.array(tuple(longer), f"s{i}"))
    same(files.moved(daemon, "concatenate", *[source for _, source in arrays], f"--axis={axis}"),
         np.concatenate([a for a, _ in arrays], axis))


def stacked(files, daemon):
    shape = files.shape()
    axis = files.random.randrange(-len(shape) - 1, len(shape) + 1)
    arrays = [files.array(shape, f"s{i}") for i in range(files.random.choice([1, 2, 3, 25]))]
    same(files.moved(daemon, "stack", *[source for _, source in arrays], f"--axis={axis}"),
         np.stack([a for a, _ in arrays], axis))


def differed(files, daemon):
    """Of float32 every level is rounded, which numbers with a fraction show."""
    a, source = files.array(files.shape())
    if files.random.random() < 0.4:
        a = files.numbers.normal(0, 1e3, a.shape).astype(files.random.choice(["f4", "f8"]))
        np.save(f"{files.folder}/s.npy", a)
        source = f"{files.folder}/s.npy"
    axis, n = files.random.randrange(-a.ndim, a.ndim), files.random.choice([0, 1, 1, 2, 3, 5, 16])
    same(files.moved(daemon, "diff", source, f"--axis={axis}", "--n", str(n)), np.diff(a, n, axis))


@pytest.mark.values
@pytest.mark.parametrize("case", [transposed, flipped, rolled, tiled, padded, joined, stacked, differed],
                         ids=lambda case: case.__name__)
def test_generated_movements_are_numpys(daemon, folder, case):
    files = Files(folder, len(case.__name__))
    for _ in range(N_CASES):
        case(files, daemon)


def test_arrays_much_larger_than_the_pool(start, folder):
    daemon = start(pool="4M")
    a = np.arange(3000 * 5000, dtype="f4").reshape(3000, 5000)
    np.save(folder / "a.npy", a)
    daemon.ctl("transpose", "a.npy", "-o", "t.npy", cwd=folder)
    same(np.load(folder / "t.npy", mmap_mode="r"), a.T)
    daemon.ctl("roll", "a.npy", "--shift=1234567", "-o", "r.h5:/r", cwd=folder)
    with h5py.File(folder / "r.h5") as f:
        same(f["r"][()], np.roll(a, 1234567))
    daemon.ctl("diff", "a.npy", "--n", "2", "--axis", "0", "-o", "d.npy", cwd=folder)
    same(np.load(folder / "d.npy", mmap_mode="r"), np.diff(a, 2, 0))


def test_differences_without_options_are_the_first_along_the_last_axis(daemon, folder):
    a = np.array([[True, False, False], [True, True, False]])
    np.save(folder / "a.npy", a)
    outcome = json.loads(daemon.ctl("diff", "a.npy", "-o", "d.npy", "--json", cwd=folder).stdout)
    assert (outcome["to"], outcome["write_bytes"]) == ("d.npy", 4)
    same(np.load(folder / "d.npy"), np.diff(a))
    daemon.ctl("diff", "a.npy", "--n", "99", "-o", "d.npy", cwd=folder)
    same(np.load(folder / "d.npy"), np.diff(a, 99))


def test_into_a_part_of_an_existing_file(daemon, folder):
    a = np.arange(12.).reshape(3, 4)
    np.save(folder / "a.npy", a)
    np.save(folder / "b.npy", np.zeros((8, 6)))
    outcome = json.loads(daemon.ctl("transpose", "a.npy", "--in-place", "-o", "b.npy[::2, ::-2]",
                                    "--json", cwd=folder).stdout)
    assert outcome["write_bytes"] == 96
    want = np.zeros((8, 6))
    want[::2, ::-2] = a.T
    same(np.load(folder / "b.npy"), want)


@pytest.mark.parametrize(("words", "code", "expected"), [
    (["transpose", "a.npy", "--axes", "0,0"], "bad-shape", "each axis once"),
    (["transpose", "a.npy", "--axes", "0,2"], "bad-shape", "-2 to 1"),
    (["transpose", "a.npy", "--axes", "0"], "bad-argument", "2 axes"),
    (["flip", "a.npy", "--axes", "-3"], "bad-shape", "-2 to 1"),
    (["concatenate", "a.npy", "b.npy"], "bad-shape", "the same shape but along axis 0"),
    (["concatenate", "a.npy", "--axis", "2"], "bad-shape", "-2 to 1"),
    (["concatenate", "a.npy[0, 0]"], "bad-shape", "at least one axis; stack makes a new one"),
    (["stack", "a.npy", "b.npy"], "bad-shape", "the same shape"),
    (["stack", "a.npy", "--axis", "3"], "bad-shape", "-3 to 2"),
    (["roll", "a.npy", "--shift", "1", "--axes", "7"], "bad-shape", "-2 to 1"),
    (["tile", "a.npy", "--repeats=-1"], "bad-argument", "0 or more"),
    (["pad", "a.npy", "--width=-1"], "bad-argument", "0 or more elements"),
    (["pad", "a.npy", "--width", "1,2,3"], "bad-argument", "one for all axes, or 2"),
    (["pad", "a.npy[:0]", "--width", "1", "--mode", "edge"], "bad-argument", "a constant border"),
    (["pad", "i.npy", "--width", "1", "--value", "300"], "bad-argument",
     "a value of int8: a whole number, -128 to 127"),
    (["diff", "a.npy", "--n=-1"], "bad-argument", "0 or more"),
    (["diff", "a.npy", "--axis", "2"], "bad-shape", "-2 to 1"),
    (["diff", "a.npy[0, 0]"], "bad-shape", "at least one axis"),
    (["diff", "l.npy", "--n", "17"], "limit-exceeded", "at most 16; take those of its result"),
])
def test_what_does_not_fit_is_refused_and_leaves_nothing(daemon, folder, words, code, expected):
    np.save(folder / "a.npy", np.zeros((3, 4)))
    np.save(folder / "b.npy", np.zeros((4, 3)))
    np.save(folder / "i.npy", np.zeros((3, 4), "i1"))
    np.save(folder / "l.npy", np.zeros(30))
    done = daemon.ctl(*words, "-o", "o.npy", "--json", cwd=folder, check=False)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"], error["expected"]) == (1, code, expected)
    assert not (folder / "o.npy").exists()


def test_numpys_names_of_options(daemon, folder):
    a = np.arange(12.).reshape(3, 4)
    np.save(folder / "a.npy", a)
    for words, want in ((["roll", "--shift", "1", "--axis", "1"], np.roll(a, 1, axis=1)),
                        (["roll", "--shift", "1", "--ax", "1"], np.roll(a, 1, axis=1)),
                        (["flip", "--axis", "0"], np.flip(a, axis=0)),
                        (["flip"], np.flip(a)), (["tile", "--reps", "2,3"], np.tile(a, reps=(2, 3))),
                        (["pad", "--pad-width", "1:0", "--constant-values=-4"],
                         np.pad(a, pad_width=(1, 0), constant_values=-4))):
        daemon.ctl(words[0], "a.npy", *words[1:], "-o", "o.npy", cwd=folder)
        same(np.load(folder / "o.npy"), want)


@pytest.mark.parametrize(("words", "about"), [
    (["concatenate", "a.npy", "b.npy"], "b.npy"), (["stack", "a.npy", "a.npy", "b.npy"], "b.npy"),
    (["concatenate", "a.npy[0, 0]", "b.npy"], "a.npy[0, 0]")])
def test_an_error_names_the_file(daemon, folder, words, about):
    np.save(folder / "a.npy", np.zeros((3, 4)))
    np.save(folder / "b.npy", np.zeros((4, 3)))
    done = daemon.ctl(*words, "-o", "o.npy", cwd=folder, check=False)
    assert done.returncode == 1 and about in done.stderr and "arrays[" not in done.stderr
    done = daemon.ctl(*words, "-o", "o.npy", "--json", cwd=folder, check=False)
    assert json.loads(done.stdout)["error"]["argument"] == about


def test_a_wrong_call_is_explained_by_its_own_verb(daemon, folder):
    np.save(folder / "a.npy", np.zeros((3, 4)))
    done = daemon.ctl("tile", "a.npy", "--repeats=-1", "-o", "o.npy", cwd=folder, check=False)
    assert "try: the examples of 'gpuarrayctl tile --help'" in done.stderr


def test_a_movement_is_not_in_place(daemon, folder):
    a = np.arange(20.)
    np.save(folder / "a.npy", a)
    done = daemon.ctl("roll", "a.npy", "--shift", "3", "--in-place", "-o", "a.npy", "--json", cwd=folder,
                      check=False)
    assert json.loads(done.stdout)["error"]["code"] == "overlapping-output"
    same(np.load(folder / "a.npy"), a)


@pytest.mark.parametrize("words", [["transpose", "a.npy"], ["transpose", "-o", "b.npy"],
                                   ["roll", "a.npy", "-o", "b.npy"], ["tile", "a.npy", "-o", "b.npy"],
                                   ["pad", "a.npy", "-o", "b.npy"],
                                   ["pad", "a.npy", "--width", "x", "-o", "b.npy"],
                                   ["pad", "a.npy", "--width", "1.5", "-o", "b.npy"],
                                   ["pad", "a.npy", "--width", "1", "--mode", "mean", "-o", "b.npy"],
                                   ["transpose", "a.npy", "--axes", "0,,1", "-o", "b.npy"],
                                   ["flip", "a.npy", "b.npy", "-o", "c.npy"],
                                   ["diff", "a.npy"], ["diff", "a.npy", "--n", "x", "-o", "b.npy"]])
def test_wrong_words(daemon, folder, words):
    assert daemon.ctl(*words, cwd=folder, check=False).returncode == 2


# take

@pytest.mark.parametrize("seed", range(N_CASES))
def test_elements_are_taken(daemon, folder, seed):
    files = Files(folder, seed)
    shape = files.shape()
    a, source = files.array(shape)
    axis = files.random.choice([None, "none", *range(-len(shape), len(shape))])
    along = 0 if axis is None else None if axis == "none" else axis
    mode = files.random.choice(["raise", "wrap", "clip"])
    size = a.size if along is None else shape[along]
    low, high = (-size, size) if mode == "raise" else (-9 * size, 9 * size)
    i = files.numbers.integers(low, high, files.random.choice([(), (5,), (1000,), (3, 0), (7, 30)]),
                               dtype="i8")
    np.save(folder / "i.npy", i.astype(files.random.choice(["i8", ">i4", "i4"])))
    words = [] if axis is None else [f"--axis={axis}"]
    same(files.moved(daemon, "take", source, folder / "i.npy", *words,
                     "--mode", mode), np.take(a, i, along, mode=mode))
    axis = files.random.randrange(len(shape))
    mask = files.numbers.random(shape[axis:files.random.randint(axis + 1, len(shape))]) < 0.5
    np.save(folder / "m.npy", mask)
    same(files.moved(daemon, "take", source, folder / "m.npy", f"--axis={axis}"),
         a[(slice(None),) * axis + (mask,)])


def test_rows_out_of_a_packed_file_in_a_tiny_pool(start, folder):
    """Which decodes each chunk a few times, not once for every row."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 9, (20000, 30)).astype("f4")
    with h5py.File(folder / "a.h5", "w") as f:
        f.create_dataset("a", data=a, chunks=(500, 30), compression="gzip")
    i = rng.permutation(20000)
    np.save(folder / "i.npy", i)
    start(pool="1M").ctl("take", "a.h5:/a", "i.npy", "-o", "b.npy", cwd=folder)
    same(np.load(folder / "b.npy"), a[i])


@pytest.mark.parametrize(("words", "code", "expected", "argument"), [
    (["i.npy"], "bad-index", "-3 to 2", "i.npy"), (["i.npy", "--axis", "1"], "bad-index", "-4 to 3", "i.npy"),
    (["f.npy"], "bad-dtype", "int8 to int64, uint8 to uint64", "f.npy"),
    (["i.npy", "--axis", "2"], "bad-shape", "-2 to 1", "axis"),
    (["m.npy"], "bad-shape", "the shape of these axes", "m.npy"),
    (["no.npy"], "not-found", "", "no.npy")])
def test_what_is_not_taken(daemon, folder, words, code, expected, argument):
    np.save(folder / "a.npy", np.zeros((3, 4)))
    np.save(folder / "i.npy", np.array([[0, 1], [2, -9]]))
    np.save(folder / "f.npy", np.zeros(3, "f4"))
    np.save(folder / "m.npy", np.zeros(4, "?"))
    done = daemon.ctl("take", "a.npy", *words, "-o", "o.npy", "--json", cwd=folder, check=False)
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["code"], error["argument"]) == (1, code, argument)
    assert error.get("expected", "") == expected
    assert code != "bad-index" or "-9 at place (1, 1)" in error["found"]
    assert not (folder / "o.npy").exists()


@pytest.mark.parametrize("words", [["a.npy"], ["a.npy", "i.npy", "j.npy"], ["a.npy", "i.npy", "--mode", "edge"],
                                   ["a.npy", "i.npy", "--axis", "x"]])
def test_wrong_words_of_take(daemon, folder, words):
    assert daemon.ctl("take", *words, "-o", "o.npy", cwd=folder, check=False).returncode == 2
