"""The same text again and again, with arrays, scalars and outputs of changing kinds: what is kept of
an earlier job never shows in a later one."""

import itertools

import numpy as np

import wire
from catalogue import assert_same

TEXTS = ["a*k + b", "m = max(a); where(a < m, a, b)", "a - b"]
ARRAYS = [np.arange(12, dtype=d).reshape(s)
          for d in ("i4", "f4", "f8") for s in ((12,), (3, 4), (4, 3))]
SCALARS = [2, 3, 0.5, True]


def of(w, text, a, b, k):
    result = w.call("job.run", outputs=[{"expr": text}],
                    args={"a": wire.argument(a), "b": wire.argument(b), "k": wire.argument(k)})
    return wire.result_array(result["outputs"][0])


def python(text, a, b, k):
    if text.startswith("m ="):
        return np.where(a < a.max(), a, b)
    return a * k + b if "k" in text else a - b


def test_every_change_is_seen(w):
    for text, a, k in itertools.product(TEXTS, ARRAYS, SCALARS):
        b = a + a.dtype.type(1)
        for _ in range(2):
            assert_same(of(w, text, a, b, k), python(text, a, b, k), f"{text}, {a.dtype}, {k!r}")


def test_other_elements_give_other_results(w):
    for i in range(50):
        a = np.arange(8.0) + i
        assert_same(of(w, "a*k + b", a, -a, 3), a * 3 - a)


def test_names_change_places(w):
    x, y = np.arange(5, dtype="f8"), np.arange(5, dtype="f4")[::-1].copy()
    for _ in range(3):
        assert_same(of(w, "a - b", x, y, 1), x - y)
        assert_same(of(w, "a - b", y, x, 1), y - x)


def test_an_error_stays_an_error_and_a_result_a_result(w):
    a = np.arange(4.0)
    for _ in range(3):
        assert_same(of(w, "a*k + b", a, a, 1), a * 2)
        for text in ("a*k + ", "a*unknown"):
            try:
                of(w, text, a, a, 1)
                raise AssertionError(text)
            except wire.Error as error:
                assert error.code in ("bad-expression", "unknown-name")


def test_more_texts_than_are_kept(w):
    a = np.arange(4.0)
    for i in list(range(200)) * 2:
        assert_same(of(w, f"a*{i} + b*k", a, a, 2), a * i + a * 2)


def test_users_of_one_text_on_many_connections(daemon):
    a = np.arange(16.0)
    connections = [daemon.connect() for _ in range(6)]
    for i in range(5):
        for n, connection in enumerate(connections):
            assert_same(of(connection, "a*k + b", a + i, a, n), (a + i) * n + a)
    for connection in connections:
        connection.close()
