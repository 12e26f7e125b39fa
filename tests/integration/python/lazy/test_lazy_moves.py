"""Transposed, reversed, joined, repeated and surrounded lazies: the same as NumPy's, from any array
to any place, in expressions and by themselves; and what is refused."""

import pickle
import random

import h5py
import numpy as np
import pytest

from catalogue import assert_same

DTYPES = ["f4", "f8", "i2", "u1", "?", "i8", ">f4"]
KINDS = ["heap", "fortran", "reversed", "npy", "h5", "gzip", "expression", "shared"]
N_CASES = 40


class Makes:
    """Arrays of every kind, and the same as lazies."""

    def __init__(self, gd, folder, seed):
        self.gd, self.folder = gd, folder
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.n_files = 0

    def shape(self):
        n = self.random.randint(1, 4)
        return tuple(self.random.randint(1, 24 if n < 3 else 7) for _ in range(n))

    def pair(self, shape):
        a = self.numbers.integers(0, 90, shape).astype(self.random.choice(DTYPES))
        kind = self.random.choice(KINDS)
        self.n_files += 1
        if kind == "fortran":
            a = np.asfortranarray(a)
        elif kind == "reversed":
            a = a[::-1]
        elif kind == "npy":
            np.save(self.folder / f"{self.n_files}.npy", a)
            return a, self.gd.open(self.folder / f"{self.n_files}.npy")
        elif kind in ("h5", "gzip"):
            name = f"{self.folder}/{self.n_files}.h5"
            chunks = {"compression": "gzip", "chunks": tuple(max(1, n // 2) for n in shape)} \
                if kind == "gzip" and 0 not in shape else {}
            with h5py.File(name, "w") as f:
                f.create_dataset("d", data=a, **chunks)
            return a, self.gd.open(f"{name}:/d")
        elif kind == "expression":
            return np.add(a, a[:1]), self.gd.lazy(a) + self.gd.lazy(a[:1])
        elif kind == "shared":
            return a, self.gd.lazy(self.gd.asarray(a))
        return a, self.gd.lazy(a)

    def check(self, x, want):
        want = want.astype(want.dtype.newbyteorder("="))
        assert (x.shape, x.dtype) == (want.shape, want.dtype)
        how = self.random.choice(["compute", "save", "out", "asarray", "pickle"])
        if how == "save":
            self.n_files += 1
            self.gd.save(self.folder / f"{self.n_files}.npy", x)
            assert_same(np.load(self.folder / f"{self.n_files}.npy"), want)
        elif how == "out":
            out = np.empty(want.shape, want.dtype)
            assert x.compute(out=out) is out
            assert_same(out, want)
        elif how == "pickle":
            assert_same(pickle.loads(pickle.dumps(x)).compute(), want)
        else:
            assert_same(x.compute() if how == "compute" else np.asarray(x), want)


@pytest.mark.parametrize("seed", range(2))
def test_views(gd, folder, seed):
    makes = Makes(gd, folder, seed)
    for _ in range(N_CASES // 2):
        a, x = makes.pair(makes.shape())
        order = list(range(a.ndim))
        makes.random.shuffle(order)
        axis = makes.random.randrange(-a.ndim, a.ndim)
        makes.check(x.T, a.T)
        makes.check(np.transpose(x, order), a.transpose(order))
        makes.check(np.swapaxes(x, 0, axis), a.swapaxes(0, axis))
        makes.check(np.moveaxis(x, 0, axis), np.moveaxis(a, 0, axis))
        makes.check(np.flip(x, axis), np.flip(a, axis))
        makes.check(np.expand_dims(x, (0, -1)).T, np.expand_dims(a, (0, -1)).T)
        makes.check(np.squeeze(x), np.squeeze(a))


@pytest.mark.parametrize("seed", range(2))
def test_joined(gd, folder, seed):
    makes = Makes(gd, folder, seed)
    for _ in range(N_CASES):
        shape = makes.shape()
        axis = makes.random.randrange(-len(shape), len(shape))
        arrays = [makes.pair(shape) for _ in range(makes.random.choice([1, 2, 3, 19]))]
        makes.check(np.stack([x for _, x in arrays], axis), np.stack([a for a, _ in arrays], axis))
        longer = list(shape)
        longer[axis] += makes.random.randint(0, 4)
        arrays.append(makes.pair(tuple(longer)))
        makes.check(np.concatenate([x for _, x in arrays], axis),
                    np.concatenate([a for a, _ in arrays], axis))
        for name in ("vstack", "hstack", "dstack"):
            makes.check(getattr(np, name)([x for _, x in arrays[:2]] if len(arrays) > 2
                                          else [arrays[0][1]] * 2),
                        getattr(np, name)([a for a, _ in arrays[:2]] if len(arrays) > 2
                                          else [arrays[0][0]] * 2))


@pytest.mark.parametrize("seed", range(2))
def test_reshaped(gd, folder, seed):
    makes = Makes(gd, folder, seed)
    for _ in range(N_CASES):
        a, x = makes.pair(makes.shape())
        primes, rest = [], a.size
        for p in (2, 3, 5, 7, 11, 13):
            while rest and rest % p == 0:
                primes, rest = [*primes, p], rest // p
        makes.random.shuffle(primes)
        cut = makes.random.randint(0, len(primes))
        new = (int(np.prod(primes[:cut], dtype=int)), *primes[cut:], rest)
        for shape in (new, new[::-1], -1, (1, *a.shape, 1), (*a.shape[:1], -1) if a.size else a.shape):
            makes.check(np.reshape(x, shape), a.reshape(shape))
        makes.check(x.reshape(*new)[..., ::-1], a.reshape(new)[..., ::-1])
        makes.check(np.ravel(x), a.ravel())
    for wrong in (7, (-1, -1), (-1, 5), (-2, 12)):
        with pytest.raises(gd.BadShape):
            gd.lazy(np.zeros((4, 6))).reshape(wrong)


@pytest.mark.parametrize("seed", range(2))
def test_rolled_tiled_and_padded(gd, folder, seed):
    makes = Makes(gd, folder, seed)
    for _ in range(N_CASES):
        a, x = makes.pair(makes.shape())
        axis, by = makes.random.randrange(a.ndim), makes.random.randint(-50, 50)
        makes.check(np.roll(x, by, axis), np.roll(a, by, axis))
        makes.check(np.roll(x, (1, by), (0, axis)), np.roll(a, (1, by), (0, axis)))
        times = tuple(makes.random.randint(0, 3) for _ in range(makes.random.randint(1, 4)))
        makes.check(np.tile(x, times), np.tile(a, times))
        mode = makes.random.choice(["constant", "edge", "reflect", "symmetric", "wrap"])
        width = [(makes.random.randint(0, max(n - 1, 1)), makes.random.choice([0, 1]) if n > 1 else 2)
                 for n in a.shape]
        options = {"constant_values": 1} if mode == "constant" else {}
        makes.check(np.pad(x, width, mode, **options), np.pad(a, width, mode, **options))


def test_borders_that_are_wider_than_the_array_go_on_periodically(gd):
    a = np.arange(5)
    x = gd.lazy(a)
    i = np.arange(-23, 5 + 31)
    assert_same(gd.pad(x, (23, 31), "wrap").compute(), a[i % 5])
    assert_same(gd.pad(x, (23, 31), "symmetric").compute(),
                np.concatenate([a, a[::-1]])[i % 10])
    assert_same(gd.pad(x, (23, 31), "reflect").compute(),
                np.concatenate([a, a[-2:0:-1]])[i % 8])


def test_what_is_empty_stays_so_and_keeps_its_dtype(gd):
    a = np.empty((0, 3), "i2")
    for got, want in ((gd.roll(a, 2, 1), np.roll(a, 2, 1)), (gd.tile(a, 2), np.tile(a, 2)),
                      (gd.pad(a, ((0, 0), (1, 1))), np.pad(a, ((0, 0), (1, 1)))),
                      (gd.concatenate([a, a]), np.concatenate([a, a])), (gd.flip(a), np.flip(a))):
        assert got.dtype == want.dtype
        assert got.compute().shape == want.shape


def test_in_corners_the_last_axis_wins(gd):
    a = np.ones((2, 3), "f4")
    values = ((1, 2), (3, 4))
    assert_same(np.pad(gd.lazy(a), ((1, 2), (3, 1)), constant_values=values).compute(),
                np.pad(a, ((1, 2), (3, 1)), constant_values=values))


def test_what_was_moved_takes_part_in_expressions(gd):
    a = np.arange(12.).reshape(3, 4)
    x = gd.lazy(a)
    assert_same((np.concatenate([x, x * 2]).T[1:, ::2] + 1).compute(),
                np.concatenate([a, a * 2]).T[1:, ::2] + 1)
    assert_same(np.roll(np.pad(x - x.mean(axis=0), 1), 1, 0).sum(axis=1).compute(),
                np.roll(np.pad(a - a.mean(axis=0), 1), 1, 0).sum(axis=1))
    assert_same((x - x.mean(axis=1, keepdims=True)).T.compute(), (a - a.mean(1, keepdims=True)).T)


def test_many_pieces_of_what_reductions_gave(gd):
    a = np.arange(24.0).reshape(4, 6)
    x = gd.lazy(a)
    b = a.max(axis=1, keepdims=True) * a - a.mean(axis=0)
    y = gd.max(x, axis=1, keepdims=True) * x - gd.mean(x, axis=0)
    np.testing.assert_array_equal(gd.pad(y, ((9, 9), (13, 13)), "edge").compute(),
                                  np.pad(b, ((9, 9), (13, 13)), "edge"))


def test_dtypes_are_promoted_as_numpy_does(gd):
    for first in ("?", "i1", "u4", "i8", "f4"):
        for second in ("u1", "u8", "f8", "i2"):
            a, b = np.ones(2, first), np.ones(3, second)
            assert_same(np.concatenate([gd.lazy(a), b]).compute(), np.concatenate([a, b]))


@pytest.mark.parametrize(("call", "kind", "expected"), [
    (lambda gd, x: gd.transpose(x, (0, 0)), "BadShape", "each axis once"),
    (lambda gd, x: gd.transpose(x, (0, 2)), "BadShape", "-2 to 1"),
    (lambda gd, x: gd.transpose(x, (0,)), "BadArgument", "2 axes"),
    (lambda gd, x: gd.concatenate([]), "BadArgument", "at least one array"),
    (lambda gd, x: gd.concatenate([x, x.T]), "BadShape", "the same shape but along axis 0"),
    (lambda gd, x: gd.concatenate([x, x], 2), "BadShape", "-2 to 1"),
    (lambda gd, x: gd.concatenate([x[0, 0]]), "BadShape", "at least one axis"),
    (lambda gd, x: gd.stack([x, x.T]), "BadShape", "the same shape"),
    (lambda gd, x: gd.roll(x, 1, 5), "BadShape", "-2 to 1"),
    (lambda gd, x: gd.roll(x, (1, 2, 3), (0, 1)), "BadShape", "2 shifts"),
    (lambda gd, x: gd.tile(x, -1), "BadArgument", "0 or more"),
    (lambda gd, x: gd.pad(x, -1), "BadArgument", "0 or more"),
    (lambda gd, x: gd.pad(x, ((1, 1),) * 3), "BadShape", "a shape that broadcasts to (2, 2)"),
    (lambda gd, x: gd.pad(x[:0], 1, "edge"), "BadArgument", "mode 'constant'"),
    (lambda gd, x: gd.pad(x, 1, "empty"), "Unsupported",
     "constant, edge, reflect, symmetric, wrap, linear_ramp, maximum, mean, median, minimum"),
    (lambda gd, x: gd.squeeze(x, 0), "BadShape", "an axis of length 1"),
    (lambda gd, x: gd.submit(gd.tile(x, 2)).result(), "Unsupported", ""),
])
def test_what_does_not_fit_is_refused(gd, call, kind, expected):
    with pytest.raises(getattr(gd.errors, kind)) as caught:
        call(gd, gd.lazy(np.ones((2, 3))))
    assert caught.value.expected == expected or not expected


def test_a_movement_into_what_it_reads_is_refused(gd):
    a = np.arange(20.)
    with pytest.raises(gd.errors.OverlappingOutput):
        np.roll(gd.lazy(a), 3).compute(out=a)
    with pytest.raises(gd.errors.BadShape):
        np.tile(gd.lazy(a), 2).compute(out=np.empty(20))
    with pytest.raises(gd.errors.BadDtype):
        np.tile(gd.lazy(a), 2).compute(out=np.empty(40, "i4"))
    assert_same(a, np.arange(20.))
