"""The words of einsum: "ij,jk->ik" as a label for each axis.

Labels are letters; the axes of "..." have numbers, -1 for the last of them, so that they meet as
broadcasting aligns them.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from .. import errors
from .._functions.contraction import Label
from .graph import Shape

_LETTERS = string.ascii_uppercase + string.ascii_lowercase  # NumPy's of its numbers

def _refuse(message: str, expected: str, found: str) -> NoReturn:
    raise errors.BadArgument(f"einsum: {message}", argument="subscripts", expected=expected,
                             found=found)


def in_words(given: Sequence[object]) -> tuple[str, list[Any]]:
    """The text and the operands, of NumPy's other way to say it: x, [0, 1], y, [1, 2], [0, 2].

    Raises
    ------
    BadArgument
        It is no way to say it.
    """
    if given and isinstance(given[0], str):
        return given[0], list(given[1:])
    n = len(given) // 2
    lists = [*given[1::2], *given[2 * n:]]
    if n == 0 or not all(isinstance(one, (list, tuple)) for one in lists):
        _refuse("the subscripts are neither a text nor a list behind each operand",
                "\"ij,jk->ik\", x, y or x, [0, 1], y, [1, 2], [0, 2]",
                ", ".join(type(one).__name__ for one in given))
    words = [_word(one) for one in lists]
    arrow = f"->{words.pop()}" if len(given) % 2 else ""
    return ",".join(words) + arrow, list(given[:2 * n:2])


def _word(labels: Any) -> str:
    letters = []
    for one in labels:
        if one is not Ellipsis and not (isinstance(one, (int, np.integer))
                                        and 0 <= one < len(_LETTERS)):
            _refuse(f"{one!r} is no label", f"0 to {len(_LETTERS) - 1}, or ...", repr(one))
        letters.append("..." if one is Ellipsis else _LETTERS[one])
    return "".join(letters)


def parsed(subscripts: str, shapes: Sequence[Shape]) -> tuple[list[list[Label]], list[Label]]:
    """The labels of each operand, which may be there twice, and of the result.

    Raises
    ------
    BadArgument, BadShape
        They cannot be read, or do not fit the operands.
    """
    text = subscripts.replace(" ", "")
    sides = text.split("->")
    if len(sides) > 2:
        _refuse("more than one arrow", "one ->", repr(subscripts))
    words = sides[0].split(",")
    if len(words) != len(shapes):
        _refuse(f"{len(words)} groups of letters for {len(shapes)} operands",
                f"{len(shapes)} groups", repr(subscripts))
    terms = [_term(word, shape) for word, shape in zip(words, shapes, strict=True)]
    dots = max([_n_dots(term) for term in terms], default=0)
    if len(sides) == 1:
        return terms, _implied(sides[0], dots)
    return terms, _result(sides[1], terms, dots, "..." in sides[0])


def _n_dots(term: Sequence[Label]) -> int:
    return sum(isinstance(label, int) for label in term)


def _letters(word: str) -> list[str]:
    """With "." where the three dots are."""
    letters = list(word.replace("...", ".", 1))
    if any(not (one.isalpha() and one.isascii()) and one != "." for one in letters) \
            or letters.count(".") > ("..." in word):
        _refuse(f"{word!r} cannot be read", "letters and one ...", repr(word))
    return letters


def _term(word: str, shape: Shape) -> list[Label]:
    letters = _letters(word)
    n_dots = len(shape) - len([one for one in letters if one != "."])
    if n_dots < 0 or (n_dots > 0 and "." not in letters):
        raise errors.BadShape(f"einsum: {word!r} for an operand of shape {shape}",
                              argument="subscripts", expected=f"{len(shape)} letters",
                              found=repr(word))
    labels: list[Label] = []
    for one in letters:
        labels += list(range(-n_dots, 0)) if one == "." else [one]
    return labels


def _implied(word: str, dots: int) -> list[Label]:
    letters = [one for one in word if one.isalpha()]
    once: list[Label] = [one for one in sorted(set(letters)) if letters.count(one) == 1]
    return [*range(-dots, 0), *once]


def _result(word: str, terms: Sequence[Sequence[Label]], dots: int,
            has_dots: bool) -> list[Label]:
    letters = _letters(word)
    known = {label for term in terms for label in term}
    for one in letters:
        if one != "." and (one not in known or letters.count(one) > 1):
            where = "there twice" if one in known else "in no operand"
            _refuse(f"{one!r} of the result is {where}", "letters of the operands, each once",
                    repr(word))
    if dots and "." not in letters:
        _refuse("the axes of ... are not in the result", "...", repr(word))
    if "." in letters and not has_dots:
        _refuse("... is in no operand", "no ...", repr(word))
    labels: list[Label] = []
    for one in letters:
        labels += list(range(-dots, 0)) if one == "." else [one]
    return labels
