"""What NumPy's users write at first: it means what they mean, or the answer says what to write."""

import pickle

import h5py
import numpy as np
import pytest

from catalogue import assert_same

A = np.arange(12.).reshape(3, 4)

# -- texts --------------------------------------------------------------------------------------


def test_options_of_others_are_not_ignored(gd):
    x = A  # noqa: F841: found by its name
    for options in ({"dtype": "f4"}, {"dtype": np.float32}, {"axis": 0}, {"where": A > 3},
                    {"order": A}, {"casting": "safe"}, {"outt": np.empty(3)}, {"mod": "wrap"}):
        [name] = options
        with pytest.raises(gd.BadArgument, match=f"{name}="):
            gd.evaluate("x + 1", **options)
    with pytest.raises(gd.BadArgument, match="Future"):
        gd.submit("x + 1", progress=True)
    columns = {"t": A, "order": A, "tot": A, "axis": A, "note": "text"}
    assert_same(gd.evaluate("t + 1", local_dict=columns), A + 1)
    assert_same(gd.submit("t + scale", local_dict=columns, scale=2).result(), A + 2)
    with pytest.raises(gd.UnknownName, match="did you mean 'note'"):
        gd.evaluate("notes + x", local_dict=columns)


def test_columns_with_the_names_of_pythons_words(gd):
    assert_same(gd.evaluate("class * 2 + lambda", **{"class": A, "lambda": A}), A * 3)
    with pytest.raises(gd.UnknownName, match="'class'"):
        gd.evaluate("class * 2")


def test_a_comprehension_sees_the_variables_around_it(gd):
    x = A
    for made in ([gd.evaluate("x * i") for i in range(3)],
                 list({i: gd.evaluate("x * i") for i in range(3)}.values()),
                 [gd.evaluate("x * i", x=x) for i in range(3)],
                 [gd.submit("x * i").result() for i in range(3)]):
        for i, one in enumerate(made):
            assert_same(one, x * i)


@pytest.mark.parametrize("text, column", [
    ("x + 1 # one more", 7), ("x == 'word'", 6), ('x + "word"', 5), ("x.astype('f4')", 3),
    ("x[other:]", 2), ("x + \\\n y", 5), ("x if {other} else 0", 3)])
def test_what_is_no_expression_is_told_at_its_place(gd, text, column):
    with pytest.raises(gd.BadExpression, match=f"column {column}:"):
        gd.evaluate(text, x=A, **({"other": A} if "other" in text else {}))
    if "[" not in text:
        with pytest.raises(gd.BadExpression, match=f"column {column}:"):
            gd.evaluate(text, x=A)


def test_a_statement_without_its_end(gd):
    with pytest.raises(gd.BadExpression, match="end with ';'"):
        gd.evaluate("t = x + 1\nt * 2", x=A)
    assert_same(gd.evaluate("t = x + 1;\nt * 2", x=A), (A + 1) * 2)


def test_lazies_in_the_place_of_texts_and_paths(gd, folder):
    x = gd.lazy(A)
    for expr in (x, x + 1, [x + 1]):
        with pytest.raises(gd.BadArgument, match="gd.compute"):
            gd.evaluate(expr)
    with pytest.raises(gd.BadArgument, match="path comes first"):
        gd.save(x, folder / "x.npy")


# -- arrays that are not in memory --------------------------------------------------------------

def test_the_like_of_what_is_not_in_memory_reads_nothing(gd, folder, monkeypatch):
    before = gd.stats()["jobs"]["submitted"]
    made = gd.zeros_like(gd.lazy(A)[:, ::2] * 2 > 3)
    assert_same(made, np.zeros((3, 2), bool))
    assert gd.stats()["jobs"]["submitted"] == before
    monkeypatch.setattr(h5py.Dataset, "__array__", None)
    with h5py.File(folder / "f.h5", "w") as f:
        f.create_dataset("d", data=A.astype(">f4"), chunks=(2, 2))
        assert_same(gd.zeros_like(f["d"]), np.zeros((3, 4), "f4"))
        assert gd.empty_like(f["d"], "i2").dtype == np.int16
        assert_same(gd.asarray(f["d"]), A.astype("f4"))


def test_asarray_casts_as_the_daemon_does(gd):
    a = np.array([1.5, np.nan, 3])
    least = np.iinfo("i8").min
    assert_same(gd.asarray(gd.lazy(a) + 0, "i8"), np.array([1, least, 3]))
    assert_same(gd.asarray(gd.lazy(a)[0]), np.array(1.5))


def test_a_lazy_of_a_file_that_was_closed(gd, folder):
    with h5py.File(folder / "f.h5", "w") as f:
        f["d"] = A
        d = f["d"]
        x = gd.lazy(d)
        y = x * 2
    for use in (x.compute, y.compute, lambda: x[1:], lambda: y[1:], (x + y).compute,
                lambda: gd.evaluate("x + 1", x=x), lambda: pickle.dumps(y),
                lambda: gd.empty_like(d)):
        with pytest.raises(gd.BadArgument, match="closed"):
            use()
    assert "Dataset" in repr(x) and "Dataset" in repr(x + 1)


def test_a_lazy_of_what_has_another_shape_afterwards(gd, folder):
    """Its own shape was told and used by then."""
    a = A.copy()
    x = gd.lazy(a) + 1
    a.shape = (4, 3)
    with pytest.raises(gd.BadArgument, match="shape"):
        x.compute()
    with h5py.File(folder / "f.h5", "w") as f:
        d = f.create_dataset("d", (3, 4), "f8", maxshape=(None, 4))
        x = gd.lazy(d) + 1
        d.resize((5, 4))
        with pytest.raises(gd.BadArgument, match="shape"):
            x.compute()


def test_names_of_datasets_that_end_with_a_blank(gd, folder):
    with h5py.File(folder / "f.h5", "w") as f:
        for name, elements in [("d", A), ("d ", A + 1)]:
            f.create_dataset(name, data=elements, chunks=(2, 2), compression="gzip")
    with h5py.File(folder / "f.h5") as f:
        assert_same(gd.lazy(f["d "])[1:].compute(), (A + 1)[1:])


# -- reductions ---------------------------------------------------------------------------------

def test_an_axis_that_is_all_of_them(gd):
    x = gd.lazy(A)
    row = x[0]
    for got, want in [(row.sum(0), 6), (row.sum(axis=-1), 6), (x.mean((0, 1)), 5.5),
                      (x.max((1, -2)), 11), (np.sum(row, axis=0), 6), (np.add.reduce(row), 6),
                      (np.maximum.reduce(row), 3), (np.min(x, axis=(1, 0)), 0),
                      (np.count_nonzero(row, axis=0), 3), (x[0, 1].sum(()), 1)]:
        assert got.compute() == want
    for axis in (0, (0,), (), (1,)):
        assert_same(x.sum(axis).compute(), A.sum(axis))
    for axis in ((0, 0), 2, (0, 1, 1), (0, -2)):
        with pytest.raises(gd.BadShape, match="axis"):
            x.sum(axis)
    with pytest.raises(TypeError):
        x.sum(0.0)


def test_a_name_that_is_given_and_bound(gd):
    a = np.arange(3.0)
    with pytest.raises(gd.BadArgument, match="binds t itself"):
        gd.evaluate("t = a + 1; t * 2", a=a, t=a)
    assert np.array_equal(gd.evaluate("t = a + 1; t * 2", a=a), (a + 1) * 2)
