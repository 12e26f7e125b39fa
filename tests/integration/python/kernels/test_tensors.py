"""CP and Tucker of tensors against textbooks in NumPy: planted factors, odd shapes and orders, what is
read beside what was said, checkpoints, and what cannot be decomposed."""

import re
import string

import numpy as np
import pytest

SHAPES = [(13, 7, 9), (4, 17, 6), (4, 6, 21), (3, 4, 13, 2), (2, 3, 4, 5, 3)]


def outer(weights, factors):
    """The tensor that factors stand for."""
    axes = string.ascii_lowercase[:len(factors)]
    return np.einsum(",".join(["z", *(f"{a}z" for a in axes)]) + "->" + axes, weights, *factors,
                     optimize=True)


def expanded(core, factors):
    for axis, factor in enumerate(factors):
        core = np.moveaxis(np.tensordot(factor, core, (1, axis)), 0, axis)
    return np.ascontiguousarray(core)


def planted(shape, rank, noise=0.0, seed=1, dtype="f8"):
    rng = np.random.default_rng([seed, *shape])
    x = outer(np.ones(rank), [rng.normal(size=(n, rank)) for n in shape])
    x += noise * np.linalg.norm(x) / np.sqrt(x.size) * rng.normal(size=shape)
    x = (x * 10).round() if np.dtype(dtype).kind == "i" else x
    return np.ascontiguousarray(x, dtype)


def first_factors(gd, shape, rank, seed):
    """As the library draws them."""
    seeds = [((seed + 1) * 0x9e3779b97f4a7c15 + axis) % 2**64 >> 1 for axis in range(len(shape))]
    return [np.array(gd.evaluate(f"uniform(size=({n}, {rank}), seed={one})"))
            for n, one in zip(shape, seeds, strict=True)]


def right_side(x, factors, axis):
    letters = string.ascii_lowercase[:x.ndim]
    others = [i for i in range(x.ndim) if i != axis]
    return np.einsum(",".join([letters, *(f"{letters[i]}z" for i in others)]) + f"->{letters[axis]}z",
                     x, *(factors[i] for i in others), optimize=True)


def textbook(x, factors, iterations, ridge=0.0, nonnegative=False):
    """Alternating least squares: relative errors, factors. The longest axis is updated first where it
    is over four times as long as the axis that comes first."""
    factors, errors = [one.copy() for one in factors], []
    longest = int(np.argmax(x.shape)) if max(x.shape) > 4 * len(x) else 0
    order = [longest, *(i for i in range(x.ndim) if i != longest)]
    for _ in range(iterations):
        for axis in order:
            normal = np.prod([factors[i].T @ factors[i] for i in order if i != axis], axis=0)
            wanted = right_side(x, factors, axis)
            if nonnegative:
                factor = factors[axis]
                for q in range(factor.shape[1]):
                    step = wanted[:, q] - factor @ normal[:, q] - ridge * factor[:, q]
                    factor[:, q] = np.maximum(factor[:, q] + step / (normal[q, q] + ridge), 0)
            else:
                factors[axis] = np.linalg.solve(normal + ridge * np.eye(len(normal)), wanted.T).T
        y = outer(np.ones(len(normal)), factors)
        errors.append(np.linalg.norm(x - y) / np.linalg.norm(x))
    return errors, factors


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cp_is_the_textbooks(gd, shape):
    for dtype, near in (("f8", 1e-9), ("f4", 1e-9), ("i2", 1e-9)):
        for how in ({}, {"ridge": 0.5}, {"nonnegative": True}):
            x = planted(shape, 3, 0.3, dtype=dtype)
            wanted, factors = textbook(x.astype("f8"), first_factors(gd, shape, 2, 5), 4, **how)
            said = []
            found = gd.tensor.cp(x, 2, seed=5, iterations=4, tolerance=-1, **how,
                                 callback=lambda *now: said.append(now[2]))
            weights, made = found
            assert np.allclose(1 - np.array(said), wanted, rtol=1e-7, atol=near), (dtype, how)
            assert made[0].dtype == ("f4" if dtype == "f4" else "f8")
            want = outer(np.ones(2), factors)
            rounding = 1e-5 if dtype == "f4" else 1e-8
            assert np.allclose(outer(weights.astype("f8"), [one.astype("f8") for one in made]), want,
                               atol=rounding * np.abs(want).max())
            assert found.iterations == 4 and not found.converged
            if "nonnegative" in how:
                assert all((one >= 0).all() for one in made)


def test_planted_factors_are_recovered(gd):
    for init in ("random", "svd"):
        x = planted((40, 12, 25), 3)
        found = gd.tensor.cp(x, 3, init=init, iterations=300, tolerance=1e-10, seed=2)
        assert found.converged and found.relative_error < 1e-5, init
        assert np.allclose(outer(*found), x, atol=1e-4 * np.abs(x).max())
        assert all(np.allclose((one * one).sum(0), 1) for one in found.factors)


def test_data_may_be_an_expression_and_in_files(gd, folder):
    x = planted((9, 20, 8), 2, 0.1)
    holes = np.where(np.random.default_rng(3).random(x.shape) < 0.2, -999.0, x)
    filled = np.where(holes < -900, 0, holes)
    np.save(folder / "t.npy", holes)
    t = gd.open(folder / "t.npy")
    want = gd.tensor.cp(filled, 2, iterations=5, tolerance=-1)
    got = gd.tensor.cp(gd.where(t < -900, 0, t), 2, iterations=5, tolerance=-1)
    assert np.allclose(outer(*got), outer(*want), atol=1e-10)
    assert got.reads["reads"] == want.reads["reads"]
    for moved, same in ((t.transpose(2, 0, 1), holes.transpose(2, 0, 1)), (t - t.mean(axis=0), holes - holes.mean(axis=0)),
                        (t.reshape(9, 4, 40), holes.reshape(9, 4, 40)),
                        (gd.concatenate([t[:4], t[4:]]), holes)):
        got, want = (gd.tensor.cp(one, 2, iterations=5, tolerance=-1) for one in (moved, same))
        assert np.allclose(outer(*got), outer(*want), rtol=1e-6)


def test_packed_chunks_give_the_same_bits(gd, folder):
    h5py = pytest.importorskip("h5py")
    x = planted((300, 20, 30), 2, 0.1)
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", data=x, chunks=(70, 7, 30), compression="gzip")
    options = {"seed": 5, "iterations": 3, "tolerance": -1}
    found = gd.tensor.cp(gd.open(folder / "x.h5:/x"), 2, **options)
    wanted = gd.tensor.cp(x, 2, **options)
    assert all(np.array_equal(a, b) for a, b in zip(found.factors, wanted.factors))


def test_what_is_read_is_what_was_said(gd):
    x = planted((30, 11, 10), 2, 0.1)
    for how in ({}, {"init": "svd"}, {"nonnegative": True}):
        plan = gd.tensor.plan_cp(x, 2, iterations=3, **how)
        found = gd.tensor.cp(x, 2, iterations=3, tolerance=-1, **how)
        assert found.reads == plan["total"], how
        assert plan["iteration"]["reads"] == 1
    assert gd.tensor.plan_cp(x, 16, nonnegative=True)["iteration"]["reads"] == 1
    assert gd.tensor.plan_cp(x, 17, nonnegative=True)["iteration"]["reads"] == 2
    plan, found = gd.tensor.plan_tucker(x, 2), gd.tensor.tucker(x, 2)
    assert found.reads == plan["total"]


def test_a_pool_with_less_room_reads_more_often(gd):
    shape = (30, 300, 400)
    x = planted(shape, 2, 0.1)
    for rank, reads in ((4, 1), (30, 2), (60, 4)):  # of parts of the columns
        plan = gd.tensor.plan_cp(x, rank, iterations=2)
        assert plan["iteration"]["reads"] == reads, rank
        needs = re.search(r"one read needs (\d+) bytes of the pool, a job may have (\d+) bytes$", plan["method"])
        assert (needs is None) == (reads == 1)
        assert needs is None or int(needs[1]) > max(2 * 9000 * rank * 8, int(needs[2]))
        found = gd.tensor.cp(x, rank, seed=5, iterations=2, tolerance=-1)
        assert found.reads == plan["total"]
        wanted, _ = textbook(x, first_factors(gd, shape, rank, 5), 2)
        assert np.isclose(found.relative_error, wanted[-1], rtol=1e-7), rank
    found, plan = gd.tensor.tucker(x, 30), gd.tensor.plan_tucker(x, 30)
    assert found.reads == plan["total"] and plan["total"]["reads"] > 3
    assert np.isclose(found.relative_error, np.linalg.norm(x - expanded(*found)) / np.linalg.norm(x))
    with pytest.raises(gd.errors.TooLargeForPool, match="one read needs .* a column at a time") as caught:
        gd.tensor.cp(np.broadcast_to(np.zeros(1), (3000, 3000, 3000)), 2)
    one, two, there = (int(word) for word in re.findall(r"(\d+) bytes", str(caught.value))[:3])
    assert one > two > there and caught.value.expected == f"{two} bytes"


def test_factors_that_are_read_often_are_no_reads_of_the_data(gd):
    x = np.zeros((16, 40, 40), "f4")
    assert gd.tensor.plan_cp(x, 100, iterations=1)["iteration"]["reads"] == 1


def test_tucker_of_nine_axes_and_numbers_that_are_none(gd):
    with pytest.raises(gd.errors.BadShape) as caught:
        gd.tensor.tucker(np.ones((2,) * 9), 1)
    assert caught.value.expected == "3 to 8 axes"
    assert gd.tensor.tucker(np.ones((3, 4, 5)), np.int64(1)).core.shape == (1, 1, 1)
    for how in ({"ridge": -1.0}, {"tolerance": np.nan}, {"iterations": 1 << 32}):
        with pytest.raises(gd.errors.BadArgument) as caught:
            gd.tensor.cp(np.ones((3, 4, 5)), 1, **how)
        assert caught.value.expected and caught.value.found == f"{next(iter(how.values()))}".replace("-1.0", "-1")


def hooi(x, ranks, sweeps=20):
    factors = [np.linalg.svd(np.moveaxis(x, i, 0).reshape(n, -1), full_matrices=False)[0][:, :r]
               for i, (n, r) in enumerate(zip(x.shape, ranks, strict=True))]
    for _ in range(sweeps):
        for axis, rank in enumerate(ranks):
            y = x
            for i, factor in enumerate(factors):
                if i != axis:
                    y = np.moveaxis(np.tensordot(factor.T, y, (1, i)), 0, i)
            u = np.linalg.svd(np.moveaxis(y, axis, 0).reshape(len(factors[axis]), -1),
                              full_matrices=False)[0]
            factors[axis] = u[:, :rank]
    core = expanded(x, [factor.T for factor in factors])
    return np.sqrt(1 - np.linalg.norm(core)**2 / np.linalg.norm(x)**2)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tucker_is_nearly_hoois(gd, shape):
    ranks = tuple(min(n, 2 + i % 2) for i, n in enumerate(shape))
    x = planted(shape, 3, 0.5)
    for reads in (1, 2, 20):
        core, factors = found = gd.tensor.tucker(x, ranks, reads=reads)
        assert core.shape == ranks
        error = np.linalg.norm(x - expanded(core, factors)) / np.linalg.norm(x)
        assert np.isclose(found.relative_error, error, rtol=1e-9)
        assert all(np.allclose(one.T @ one, np.eye(one.shape[1])) for one in factors)
        if reads > 1:
            assert error <= 1.05 * hooi(x, ranks)


def test_tucker_finds_ranks_for_a_tolerance(gd):
    rng = np.random.default_rng(4)
    factors = [np.linalg.qr(rng.normal(size=(n, r)))[0] for n, r in ((60, 5), (14, 4), (20, 3))]
    x = expanded(rng.normal(size=(5, 4, 3)), factors)
    found = gd.tensor.tucker(x, tolerance=1e-6)
    assert found.core.shape == (5, 4, 3) and found.relative_error < 1e-6
    noisy = x + 1e-2 * np.linalg.norm(x) / np.sqrt(x.size) * rng.normal(size=x.shape)
    assert gd.tensor.tucker(noisy, tolerance=0.02).relative_error < 0.02


def test_given_factors(gd, folder):
    for shape in ((7, 11, 5), (4, 3, 6, 5)):
        x = planted(shape, 3, 0.2)
        rng = np.random.default_rng(6)
        factors = [rng.normal(size=(n, 4)) for n in shape]
        weights = rng.normal(size=4)
        y = outer(weights, factors)
        for mode in (*range(len(shape)), -1):
            want = right_side(x, factors, mode % len(shape)) * weights
            assert np.allclose(gd.tensor.mttkrp(x, (weights, factors), mode), want)
        want = np.linalg.norm(x - y) / np.linalg.norm(x)
        assert np.isclose(gd.tensor.relative_error(x, (weights, factors)), want)
        assert np.allclose(gd.tensor.reconstruct((weights, factors)), y)
        core = rng.normal(size=(2,) * len(shape))
        columns = [one[:, :2] for one in factors]
        y = expanded(core, columns)
        want = np.linalg.norm(x - y) / np.linalg.norm(x)
        assert np.isclose(gd.tensor.relative_error(x, (core, columns)), want)
        made = gd.tensor.reconstruct((core, columns), to=folder / "y.npy", dtype="f4")
        assert made.dtype == "f4" and np.allclose(made.compute(), y, atol=1e-4)


def test_a_loop_that_was_stopped_goes_on_to_the_same_bits(gd, folder):
    x = planted((21, 8, 10), 3, 0.2)
    for how in ({}, {"nonnegative": True}, {"init": "svd", "ridge": 1e-3}):
        path = folder / f"c{len(how)}{'ridge' in how}.npz"
        want = gd.tensor.cp(x, 3, iterations=7, tolerance=-1, **how)
        part = gd.tensor.cp(x, 3, iterations=7, tolerance=-1, checkpoint=path, **how,
                            callback=lambda *now: now[0] == 3)
        assert part.stopped and part.iterations == 3
        kept = np.load(path)
        assert np.allclose(outer(kept["weights"], [kept[f"factor_{i}"] for i in range(3)]),
                           outer(*part))
        rest = gd.tensor.cp(x, 3, iterations=7, tolerance=-1, checkpoint=path, **how)
        assert rest.iterations == 7 and rest.relative_error == want.relative_error
        assert all(np.array_equal(a, b) for a, b in zip(rest.factors, want.factors, strict=True))
        assert rest.reads["reads"] < want.reads["reads"]
        for other in ({"rank": 2}, {"seed": 1}, {"x": x[:20]}):
            with pytest.raises(gd.errors.BadCheckpoint) as caught:
                gd.tensor.cp(other.get("x", x), other.get("rank", 3), seed=other.get("seed", 0),
                             checkpoint=path, **how)
            assert caught.value.expected and caught.value.found


def test_tuckers_reads_that_were_stopped_go_on_to_the_same_bits(gd, folder):
    x, path = planted((21, 8, 10), 3, 0.9), folder / "c.npz"
    for how in ({"ranks": (2, 3, 2)}, {"tolerance": 0.6}):
        path.unlink(missing_ok=True)
        want = gd.tensor.tucker(x, reads=6, **how)
        for stop in (1, 2, 4):
            part = gd.tensor.tucker(x, reads=6, checkpoint=path, **how,
                                    callback=lambda *now: now[0] >= stop)
            assert part.iterations == min(stop, want.iterations)
            kept = np.load(path)
            assert np.allclose(expanded(kept["core"], [kept[f"factor_{i}"] for i in range(3)]),
                               expanded(*part))
        rest = gd.tensor.tucker(x, reads=6, checkpoint=path, **how)
        assert rest.reads["reads"] < want.reads["reads"] and rest.iterations == want.iterations
        assert all(np.array_equal(a, b) for a, b in zip((rest[0], *rest[1]), (want[0], *want[1])))


def test_what_cannot_be_decomposed_says_why(gd):
    x = planted((6, 20, 5), 2)
    for value, word in ((np.nan, "nan"), (-np.inf, "infinite")):
        bad = x.copy()
        bad[3, 17, 2] = value
        for call in (lambda: gd.tensor.cp(bad, 2), lambda: gd.tensor.tucker(bad, 2)):
            with pytest.raises(gd.errors.BadArgument, match=rf"\[3, 17, 2\] is {word}"):
                call()
    for scale, word in ((1e200, "beyond"), (1e-200, "below"), (1e-160, "below")):
        for call in (lambda: gd.tensor.cp(x * scale, 2), lambda: gd.tensor.tucker(x * scale, 2)):
            with pytest.raises(gd.errors.BadArgument, match=word):
                call()
    with pytest.raises(gd.errors.BadRank) as caught:
        gd.tensor.cp(x, 31)
    assert caught.value.expected == "1 to 30"
    for ranks in (7, (2, 2), (0, 2, 2), 2**70, (2, 2**70, 2)):
        with pytest.raises(gd.errors.BadRank):
            gd.tensor.tucker(x, ranks)
    core = (np.ones((2, 2)), [np.ones((n, 2)) for n in x.shape])
    for error, call in ((gd.errors.BadRank, lambda: gd.tensor.cp(x, 2**70)),
                        (gd.errors.BadShape, lambda: gd.tensor.reconstruct((None, []))),
                        (gd.errors.BadShape, lambda: gd.tensor.reconstruct(core)),
                        (gd.errors.BadArgument, lambda: gd.tensor.mttkrp(x, core, 0)),
                        (gd.errors.BadArgument, lambda: gd.tensor.cp(x, 2, checkpoint="c.bin")),
                        (gd.errors.NotFound, lambda: gd.tensor.cp(x, 2, checkpoint="/no/such/c.npz"))):
        with pytest.raises(error) as caught:
            call()
        assert caught.value.expected and caught.value.found
    for wrong in (x[0], np.zeros((3, 0, 2)), np.zeros((1,) * 9)):
        with pytest.raises(gd.errors.BadShape):
            gd.tensor.cp(wrong, 1)
    with pytest.raises(gd.errors.BadShape, match="factor 1"):
        gd.tensor.relative_error(x, (None, [np.ones((6, 2)), np.ones((19, 2)), np.ones((5, 2))]))
    holed = [np.ones((6, 2)), np.full((20, 2), np.nan), np.ones((5, 2))]
    for call in (lambda: gd.tensor.relative_error(x, (None, holed)),
                 lambda: gd.tensor.mttkrp(x, (None, holed), 0), lambda: gd.tensor.reconstruct((None, holed))):
        with pytest.raises(gd.errors.BadArgument, match="factor_1: its element 0"):
            call()
    with pytest.raises(gd.errors.BadArgument):
        gd.tensor.cp(x, 2, init="best")
    with pytest.raises(ZeroDivisionError):
        gd.tensor.cp(x, 2, callback=lambda *now: 1 // 0)


def test_a_singular_normal_matrix_gets_a_ridge_and_is_told(gd):
    with pytest.warns(RuntimeWarning, match="singular"):
        found = gd.tensor.cp(np.zeros((5, 4, 3)), 2, iterations=2)
    assert found.relative_error == 0 and found.ridge_added > 0
