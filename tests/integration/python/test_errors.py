"""Exceptions: every word of the table has its class, and everything survives a pickle."""

import copy
import errno
import multiprocessing
import pathlib
import pickle
import re

import pytest

from gpuarrayd import errors

TOP = pathlib.Path(__file__).resolve().parents[3]
HEADER = (TOP / "proto/gpuarrayd-status.h").read_text()
BANDS = {"This request": errors.RequestError, "This session": errors.SessionError,
         "The device and the daemon": errors.DaemonError}


def table():
    """(number, word, band's class) of every row of the header."""
    rows, band = [], None
    for line in HEADER.splitlines():
        for text, kind in BANDS.items():
            if line.strip().startswith(f"/* {text}"):
                band = kind
        if row := re.match(r'\s*X\(GAD_\w+, "([a-z-]+)"', line):
            rows.append((len(rows) + 1, row[1], band))
    return rows


def make(word, message="m", number=1, **details):
    return errors.from_status(number, word, message, **details)


def test_the_table_was_found():
    assert len(table()) == HEADER.count("    X(GAD_") > 40
    assert {band for _, _, band in table()} == set(BANDS.values())


@pytest.mark.parametrize("number, word, band", table())
def test_every_word_has_a_class_of_its_own_in_its_band(number, word, band):
    error = errors.from_status(number, word, "text", "a", "b", "c")
    assert type(error) not in BANDS.values() and type(error) is not errors.Error
    assert isinstance(error, band) and [k for k in BANDS.values() if isinstance(error, k)] == [band]
    assert (error.code, error.message, error.argument, error.expected, error.found) == (
        word, "text", "a", "b", "c")
    assert type(error)("x").code == word
    assert type(error).__doc__


def test_no_two_words_share_a_class():
    kinds = [type(errors.from_status(n, word, "")) for n, word, _ in table()]
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize("word, builtin", [
    ("bad-dtype", TypeError), ("bad-arity", TypeError), ("bad-shape", ValueError),
    ("bad-expression", ValueError), ("unknown-name", NameError), ("not-found", FileNotFoundError),
    ("permission-denied", PermissionError), ("too-large-for-pool", MemoryError),
    ("quota-exceeded", MemoryError), ("no-memory", MemoryError), ("timeout", TimeoutError),
    ("disconnected", ConnectionError), ("no-daemon", ConnectionError), ("exists", FileExistsError),
    ("negative-integer-power", ValueError), ("busy", BlockingIOError),
    ("overlapping-output", ValueError), ("unsupported", TypeError), ("bad-index", IndexError),
    ("bad-index", ValueError)])
def test_the_builtin_that_people_expect(word, builtin):
    with pytest.raises(builtin) as caught:
        raise make(word)
    assert isinstance(caught.value, errors.Error)


@pytest.mark.parametrize("word, number", [
    ("no-space", errno.ENOSPC), ("not-found", errno.ENOENT), ("io-error", errno.EIO),
    ("permission-denied", errno.EACCES), ("exists", errno.EEXIST)])
def test_errors_of_the_system_have_their_number(word, number):
    error = make(word, "it is full")
    assert isinstance(error, OSError) and error.errno == number and error.strerror == "it is full"


@pytest.mark.parametrize("details, text", [
    ({}, "shapes do not fit: (3,) and (4,)"),
    ({"found": "(4,)"}, "shapes do not fit: (3,) and (4,)"),
    ({"argument": "b"}, "shapes do not fit: (3,) and (4,) (argument b)"),
    ({"argument": "b", "expected": "(5,)", "found": "(4,)"},
     "shapes do not fit: (3,) and (4,) (argument b, expected (5,))"),
])
def test_the_text_says_everything_once(details, text):
    error = make("bad-shape", "shapes do not fit: (3,) and (4,)", **details)
    assert str(error) == text
    assert repr(error) == f"BadShape({text!r})"


def test_without_a_message_the_word_is_said():
    assert str(make("not-found", "")) == "not-found"
    assert str(make("not-found", "", argument="x.npy")) == "not-found (argument x.npy)"


@pytest.mark.parametrize("number, word, band", table() + [(0, "unsupported", errors.RequestError)])
def test_pickled_they_are_the_same(number, word, band):
    error = errors.from_status(number, word, "text", "a", "b", "c")
    error.add_note("and more")
    error.place = [1, 2]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert type(again) is type(error) and vars(again) == vars(error)
        assert (str(again), again.args) == (str(error), error.args)
        assert getattr(again, "errno", None) == getattr(error, "errno", None)
    assert vars(copy.copy(error)) == vars(error)


def raise_in_a_child(text):
    raise make("too-large-for-pool", text, found="9 GiB")


def test_they_come_back_from_other_processes():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        with pytest.raises(errors.TooLargeForPool, match="no room") as caught:
            pool.apply(raise_in_a_child, ["no room"])
    assert caught.value.found == "9 GiB"


@pytest.mark.parametrize("band", BANDS.values())
def test_a_word_of_the_future_is_of_its_band(band):
    """New words come last in their group, so theirs is the number behind the group's last."""
    number = max(n for n, _, kind in table() if kind is band) + 1
    error = errors.from_status(number, "some-new-word", "m")
    assert type(error) is band and error.code == "some-new-word"


def test_made_by_hand():
    error = errors.Unsupported("fft is not computed by the daemon")
    assert error.code == "unsupported" and str(error) == "fft is not computed by the daemon"
    assert (error.argument, error.expected, error.found) == ("", "", "")
    assert errors.RequestError("m", code="some-word").code == "some-word"
