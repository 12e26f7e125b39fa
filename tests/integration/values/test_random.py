"""gpuarrayctl random: arrays of random numbers against Philox written down once more in NumPy, in every
format, with every pool and number of threads, inside other layouts; seeds, and what is refused."""

import json

import h5py
import numpy as np
import pytest

import wire

SEED = 0x0123456789ABCDEF
SHAPE = (37, 41, 53)


def philox(blocks, seed, stream):
    """Four words of 32 bits for each block: Salmon and others, Parallel random numbers, 2011."""
    low = np.uint64(0xFFFFFFFF)
    c = [blocks & low, blocks >> np.uint64(32), np.full_like(blocks, stream), np.zeros_like(blocks)]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p = [c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)]
        c = [(p[1] >> np.uint64(32)) ^ c[1] ^ np.uint64(keys[0]), p[1] & low,
             (p[0] >> np.uint64(32)) ^ c[3] ^ np.uint64(keys[1]), p[0] & low]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, axis=-1)


def bits_u32(n, seed, stream):
    return philox(np.arange((n + 3) // 4, dtype="u8"), seed, stream).reshape(-1)[:n]


def bits_u64(n, seed, stream):
    words = philox(np.arange((n + 1) // 2, dtype="u8"), seed, stream)
    return (words[:, 0::2] | words[:, 1::2] << np.uint64(32)).reshape(-1)[:n]


def uniform(shape, dtype, seed=SEED):
    n = int(np.prod(shape))
    if dtype == "f4":
        drawn = (bits_u32(n, seed, 1) >> np.uint64(8)).astype("f4") * np.float32(2.0 ** -24)
    else:
        drawn = (bits_u64(n, seed, 1) >> np.uint64(11)).astype("f8") * 2.0 ** -53
    return drawn.reshape(shape)


def words(shape):
    return ",".join(map(str, shape))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_uniform_is_philox_in_every_format(daemon, folder, dtype):
    expected = uniform(SHAPE, dtype)
    make = ["random", "uniform", "--shape", words(SHAPE), "--dtype", dtype, "--seed", SEED, "-o"]
    daemon.ctl(*make, folder / "u.npy")
    daemon.ctl(*make, f"{folder}/u.h5:/data")
    daemon.ctl(*make, folder / "u.raw")
    assert np.array_equal(np.load(folder / "u.npy"), expected)
    with h5py.File(folder / "u.h5") as f:
        assert np.array_equal(f["data"][:], expected)
    assert np.array_equal(np.fromfile(folder / "u.raw", dtype).reshape(SHAPE), expected)


def test_the_same_bytes_whatever_the_pool_and_threads(start, folder):
    """The elements are functions of the seed and their places, also where the work goes by chunks or
    by columns."""
    made = []
    with h5py.File(folder / "zeros.h5", "w") as f:
        f.create_dataset("x", (300, 1001), "f8", chunks=(64, 77))
    np.save(folder / "zeros.npy", np.zeros((300, 1001), order="F"))
    for pool, threads in (("1M", 1), ("8M", 2), ("32M", 3)):
        daemon = start(pool=pool, threads=threads)
        name = folder / f"n{threads}.npy"
        daemon.ctl("random", "normal", 10, "scale=2", "--shape", "300,1001", "--seed", 7, "-o", name)
        made.append(np.load(name))
        for source in (f"{folder}/zeros.h5:/x", folder / "zeros.npy"):
            daemon.ctl("run", "x + normal(10, 2, seed=7)", f"x={source}", "-o", name)
            made.append(np.load(name))
    assert all(np.array_equal(each, made[0]) for each in made)
    assert abs(made[0].mean() - 10) < 0.02 and abs(made[0].std() - 2) < 0.02


def test_integers_are_the_upper_half_of_a_product(daemon, folder):
    daemon.ctl("random", "integers", "low=-3", "high=1000", "--shape", 5001, "--seed", 5, "-o",
               folder / "i.npy")
    bits = bits_u64(5001, 5, 4)
    expected = [-3 + (int(x) * 1003 >> 64) for x in bits]
    assert np.array_equal(np.load(folder / "i.npy"), expected)


def test_all_distributions_are_of_their_kind(daemon, folder):
    def draw(*what):
        daemon.ctl("random", *what, "--seed", 11, "-o", folder / "d.npy")
        return np.load(folder / "d.npy")

    n = ("--shape", 100000)
    x = draw("lognormal", "mean=1", "sigma=0.5", *n)
    assert x.min() > 0 and abs(np.log(x).mean() - 1) < 0.01
    assert abs(draw("exponential", 3, *n).mean() - 3) < 0.05
    x = draw("bernoulli", 0.25, *n)
    assert x.dtype == bool and abs(x.mean() - 0.25) < 0.01
    x = draw("poisson", "lam=4.5", *n)
    assert x.dtype == "i8" and abs(x.mean() - 4.5) < 0.05 and abs(x.var() - 4.5) < 0.15
    x = draw("choice", 7, *n)
    assert set(np.unique(x)) == set(range(7))
    assert sorted(draw("permutation", 1000)) == list(range(1000))


def test_without_a_shape_it_is_one_number(daemon):
    done = daemon.ctl("random", "uniform", "--seed", SEED)
    assert float(done.stdout) == pytest.approx(uniform((1,), "f8")[0])


def test_parameters_may_be_arrays(daemon, folder):
    np.save(folder / "loc.npy", np.arange(40.0).reshape(40, 1) * 100)
    daemon.ctl("random", "normal", f"loc={folder}/loc.npy", "scale=0.5", "--shape", "40,5000",
               "--seed", 2, "-o", folder / "p.npy")
    drawn = np.load(folder / "p.npy")
    assert np.abs(drawn.mean(axis=1) - np.arange(40) * 100).max() < 0.05
    daemon.ctl("random", "normal", f"loc={folder}/loc.npy", "--seed", 2, "-o", folder / "q.npy")
    drawn = np.load(folder / "q.npy")  # without a shape it is theirs
    assert drawn.shape == (40, 1) and np.abs(drawn[:, 0] - np.arange(40) * 100).max() < 9


def test_without_a_seed_one_is_drawn_and_printed(daemon, folder):
    make = ["random", "uniform", "--shape", 100, "-o", folder / "r.npy"]
    first = daemon.ctl(*make).stderr.strip()
    drawn = np.load(folder / "r.npy")
    assert first.startswith("seed: ")
    assert np.array_equal(drawn, uniform((100,), "f8", int(first[6:])))
    assert daemon.ctl(*make).stderr.strip() != first
    done = daemon.ctl(*make, "--json")
    assert done.stderr == ""
    assert np.array_equal(np.load(folder / "r.npy"),
                          uniform((100,), "f8", json.loads(done.stdout)["seed"]))


@pytest.mark.parametrize("wrong, says", [
    (["random"], "a distribution is needed"),
    (["random", "uniform", "--shape", "3,x"], "lengths"),
    (["random", "uniform", "--shape", "-3"], "lengths"),
    (["random", "uniform", "--seed", "-1"], "18446744073709551615"),
    (["random", "uniform", "--seed", "18446744073709551616"], "18446744073709551615"),
    (["random", "uniform", "--seed", "1.5"], "18446744073709551615"),
    (["random", "uniform", "--dtype", "x4"], "is no dtype"),
    (["random", "permutation", "9", "--shape", "3,3"], "shape of its length"),
    (["random", "uniform", "one"], "is no number"),
    (["random", "a+b", "--seed", "1"], "is no distribution"),
    (["random", "gauss", "--seed", "1"], "is no distribution"),
])
def test_wrong_words_are_refused_at_once(daemon, wrong, says):
    done = daemon.ctl(*wrong, check=False)
    assert done.returncode == 2 and says in done.stderr and done.stdout == ""


@pytest.mark.parametrize("wrong, code", [
    (["normal", "--dtype", "i4"], None),
    (["normal", "mean=3"], "unknown-name"),
])
def test_what_a_distribution_does_not_have_fails_the_job(daemon, folder, wrong, code):
    done = daemon.ctl("random", *wrong, "--seed", 1, "--shape", 10, "--json", "-o",
                      folder / "x.npy", check=False)
    answer = json.loads(done.stdout)
    assert done.returncode == 1 and not (folder / "x.npy").exists()
    assert "error" in answer and (code is None or answer["error"]["code"] == code), answer


@pytest.mark.parametrize("what", [
    "normal()", "normal(3, 2, dtype=float32)", "uniform(seed=4)", "integers(-5, 1000)",
    "poisson(9.5)", "bernoulli(0.3)", "exponential(size=(-1, 6, 7))", "choice(37)"])
def test_by_rows_a_row_has_its_numbers_whatever_it_is_drawn_with(daemon, what):
    """As in the whole array, in any order, repeated, in any part; and rows in order are no rows."""
    shape = (40, 6, 7)

    def drawn(rows=None, n=40):
        draws = {"seed": 3, "size": [n, 6, 7]}
        args = {}
        if rows is not None:
            args["i"] = wire.argument(np.array(rows, "i8").reshape(-1, 1, 1))
            draws["rows"] = "i"
        text = what.replace("-1", "40") if rows is None else what
        with daemon.connect() as w:
            reply = w.call("job.run", outputs=[{"expr": text}], args=args, draws=draws)
        return wire.result_array(reply["outputs"][0])

    whole = drawn()
    assert whole.shape == shape and len(np.unique(whole)) > 1
    assert drawn(range(40)).tobytes() == whole.tobytes()
    for rows in ([7], [39, 0, 12, 12], [5] * 9):
        assert drawn(rows, len(rows)).tobytes() == whole[rows].tobytes()


def test_by_rows_one_number_for_each_broadcasts(daemon):
    rows = np.array([[5], [2], [5]])
    with daemon.connect() as w:
        reply = w.call("job.run", outputs=[{"expr": "x * uniform(size=(-1, 1))"}],
                       args={"x": wire.argument(np.ones((3, 1000))), "i": wire.argument(rows)},
                       draws={"seed": SEED, "rows": "i"})
        made = wire.result_array(reply["outputs"][0])
        assert np.array_equal(made, np.repeat(uniform((6,), "f8")[rows], 1000, axis=1))
        for wrong, code in (({"rows": "j"}, "unknown-name"), ({"size": [-1]}, "bad-shape"),
                            ({"seed": -1}, "bad-request"), (3, "bad-request"),
                            ({"size": 7}, "bad-request"), ({"size": [1] * 33}, "limit-exceeded")):
            with pytest.raises(wire.Error) as refused:
                w.call("job.run", outputs=[{"expr": "normal(seed=1)"}], draws=wrong)
            assert refused.value.code == code, wrong
