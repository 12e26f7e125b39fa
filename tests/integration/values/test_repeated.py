"""The same text again and again, with arrays, scalars and outputs of changing kinds: what is kept of
an earlier job never shows in a later one."""

import itertools
import random
import re

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


def answer(w, outputs, args):
    """What a request gives, an error's words included, in a form that can be compared; which of a
    request's arguments are unnamed shows in what could have been written."""
    try:
        made = w.call("job.run", outputs=outputs, args=args)["outputs"]
    except wire.Error as error:
        return {name: re.sub(r", unnamed_\d+$", "", word) if isinstance(word, str) else word
                for name, word in error.fields.items()}
    return [(output["name"], output["dtype"], output["shape"], output["data"]) for output in made]


def some_argument(rnd):
    if rnd.random() < 0.3:
        return {"scalar": rnd.choice([0, 1, 2, -1, True, False, 0.0, -0.0, 0.5, 300, 2**64 - 1])}
    shape = rnd.choice([(), (1,), (6,), (2, 3), (3, 2), (6, 1), (1, 6), (0,)])
    values = [rnd.choice([0, 1, 2, 100]) for _ in range(int(np.prod(shape)))]
    dtype = rnd.choice(["?", "i1", "u1", "<i4", ">i4", "<u8", "<f4", "<f8", ">f8"])
    return wire.argument(np.array(values).astype(dtype).reshape(shape))


def twin(argument):
    """The same eight bytes with another dtype."""
    value = argument.get("scalar", 0.5)
    others = {(bool, 1): 1, (int, 1): True, (int, -1): 2**64 - 1, (int, 2**64 - 1): -1}
    return {"scalar": others[type(value), value]} if (type(value), value) in others else argument


def changed(rnd, outputs, args):
    """The same request with another argument, order or letter."""
    outputs, args = [dict(output) for output in outputs], dict(args)
    one, other = rnd.sample(sorted(args), 2)
    what = rnd.randrange(6)
    if what == 0:
        args[one] = some_argument(rnd)
    elif what == 1:
        args[one], args[other] = args[other], args[one]
    elif what == 2:
        args = dict(rnd.sample(list(args.items()), len(args)))
    elif what == 3:
        rnd.shuffle(outputs)
    elif what == 4:
        args = {name: twin(argument) for name, argument in args.items()}
    else:
        output = rnd.choice(outputs)
        at = rnd.randrange(len(output["expr"]))
        output["expr"] = output["expr"][:at] + rnd.choice("abc+-*0123 ") + output["expr"][at + 1:]
    return outputs, args


def test_a_request_answers_as_one_that_never_was_before(daemon):
    """An argument that no text names makes a request new, and changes nothing else."""
    rnd = random.Random(20)
    texts = ["a + b", "a * b - c", "where(a > b, b, c)", "sum(a) + b", "m = max(a); b - m", "a * 300"]
    asked = [([{"expr": rnd.choice(texts)} for _ in range(rnd.choice([1, 1, 2]))],
              {name: some_argument(rnd) for name in "abc"}) for _ in range(30)]
    connections = [daemon.connect() for _ in range(2)]
    n_results = 0
    for i in range(1500):
        place = rnd.randrange(len(asked))
        if rnd.random() < 0.4:
            asked[place] = changed(rnd, *asked[place])
        outputs, args = asked[place]
        want = answer(connections[i % 2], outputs, {**args, f"unnamed_{i}": {"scalar": 1}})
        assert answer(rnd.choice(connections), outputs, args) == want, (outputs, args)
        n_results += isinstance(want, list)
    assert n_results > 300
    for connection in connections:
        connection.close()
