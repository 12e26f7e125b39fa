"""The names that an expression needs from outside, found without the daemon.

Not those of functions (`sqrt(`, `np.sqrt(`), of parameters (`clip(x, max=1)`), nor what the text
itself binds (`t = a*a; t + 1`). Constants and dtypes are told apart: they are arguments only where
somebody gives some of that name.

A text is read once; what was found is kept.
"""

import functools
from typing import NamedTuple

CONSTANTS = frozenset((
    "pi", "e", "inf", "nan", "True", "False", "None", "bool", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "float32", "float64", "np", "numpy", "newaxis"))


class Names(NamedTuple):
    """needed: in the order of the text. optional: of CONSTANTS."""

    needed: tuple[str, ...]
    optional: tuple[str, ...]


@functools.lru_cache(maxsize=512)
def names_of(*texts: str) -> Names:
    """What stands where an operand may, in all of the texts."""
    found: dict[str, None] = {}
    for text in texts:
        _read(_tokens(text), found)
    return Names(tuple(name for name in found if name not in CONSTANTS),
                 tuple(name for name in found if name in CONSTANTS))


def _tokens(text: str) -> list[str]:
    import re
    number = r"(?:\d|\.\d)[\w.]*(?:(?<=[eE])[+-]\d\w*)?"
    return re.findall(rf"{number}|[A-Za-z_]\w*|[=<>!]=|\S", text, re.ASCII)


def _read(tokens: list[str], found: dict[str, None]) -> None:
    """Adds what the text needs to `found`. A name is bound from the end of its statement on."""
    from keyword import iskeyword
    bound: set[str] = set()
    waiting: list[str] = []
    depth = 0
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if token in ("(", "["):
            depth += 1
        elif token in (")", "]"):
            depth -= 1
        elif token == ";":
            bound.update(waiting)
        if before == "." or not (token.isidentifier() and token.isascii()):
            continue
        if after == "=":
            waiting += [token] if depth == 0 else []
        elif after != "(" and token not in bound \
                and not (after == "." and token in ("np", "numpy")) \
                and (token in CONSTANTS or not iskeyword(token)):
            found.setdefault(token)
