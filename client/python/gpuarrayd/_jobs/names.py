"""The names that an expression needs from outside, found without the daemon.

Not those of functions (`sqrt(`, `np.sqrt(`), of parameters (`clip(x, max=1)`), nor what the text
itself binds (`t = a*a; t + 1`); but those that a loop begins with (`iterate(3, x = 2)`). Constants,
dtypes and Python's words are told apart: they are arguments only where somebody gives some of that
name.

A text is read once; what was found is kept.
"""

import functools
from typing import NamedTuple

WORDS = frozenset(("mode", "method", "side"))  # parameters that are a word: method=lower
CONSTANTS = frozenset((
    "pi", "e", "inf", "nan", "True", "False", "None", "bool", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "float32", "float64", "np", "numpy", "newaxis"))


class Names(NamedTuple):
    """needed: in the order of the text. optional: where given. bound: by the texts."""

    needed: tuple[str, ...]
    optional: tuple[str, ...]
    bound: frozenset[str]


@functools.lru_cache(maxsize=512)
def names_of(*texts: str) -> Names:
    """What stands where an operand may, in all of the texts."""
    found: dict[str, None] = {}
    bound: set[str] = set()
    for text in texts:
        bound.update(_read(_tokens(text), found))
    needed = tuple(name for name in found if not _is_optional(name))
    return Names(needed, tuple(name for name in found if name not in needed), frozenset(bound))


def _is_optional(name: str) -> bool:
    """A column may have the name of a constant, or of a word of Python's, such as class."""
    from keyword import iskeyword
    return name in CONSTANTS or iskeyword(name)


def place_of(name: str, *texts: str) -> tuple[int, str]:
    """Which of the texts needs it, and where, as the daemon says it."""
    import re
    this = re.escape(name)
    anywhere = re.compile(rf"(?<![\w.]){this}(?!\w|\s*\(|\s*=[^=])", re.ASCII)
    begun = re.compile(rf"(?<![\w.])(?:iterate|repeat)\s*\([^;]*?,\s*({this})\s*=(?!=)", re.ASCII)
    for index, text in enumerate(texts):
        starts = [match.start(match.lastindex or 0)
                  for match in (anywhere.search(text), begun.search(text)) if match]
        if starts:
            before = text[:min(starts)].split("\n")
            line = f"line {len(before)}, " if "\n" in text.rstrip() else ""
            return index, f"{line}column {len(before[-1]) + 1}: "
    return 0, ""


def may_name(text: str, name: str) -> bool:
    """Whether the name stands behind what the language has not, where nothing was read."""
    import re
    return name in re.findall(r"\w+", "".join(_parted(text)[1:]))


def _parted(text: str) -> list[str]:
    """Up to what the language has not (a comment), where the daemon will refuse it; and the rest.
    """
    import re
    text = re.sub(r"'\w*'|\"\w*\"", "0", text)  # a word in quotes
    return re.split(r"[^\w\s.,:;()\[\]+*/%&|^~<>=!@-]", text, maxsplit=1, flags=re.ASCII)


def _tokens(text: str) -> list[str]:
    import re
    text = _parted(text)[0]
    number = r"(?:\d|\.\d)[\w.]*(?:(?<=[eE])[+-]\d\w*)?"
    return re.findall(rf"{number}|[A-Za-z_]\w*|[=<>!]=|\S", text, re.ASCII)


def _without_definitions(tokens: list[str], found: dict[str, None]) -> list[str]:
    """The text without statements f(x, y) = ...; what these need but their parameters is found."""
    rest: list[str] = []
    while tokens:
        end = tokens.index(";") + 1 if ";" in tokens else len(tokens)
        statement, tokens = tokens[:end], tokens[end:]
        close = statement.index(")") if ")" in statement else 0
        if statement[1:2] == ["("] and statement[close + 1:close + 2] == ["="]:
            needed: dict[str, None] = {}
            _read(statement[close + 2:], needed)
            found.update({one: None for one in needed if one not in statement[2:close]})
        else:
            rest += statement
    return rest


def _read(tokens: list[str], found: dict[str, None]) -> list[str]:
    """Adds what the text needs to `found`, and gives the names that it binds. A name is bound from
    the end of its statement on."""
    bound: set[str] = set()
    waiting: list[str] = []
    depth = 0
    # Whether NAME = begins with what the name means outside: in iterate(...) and repeat(...).
    begins = [False]
    tokens = _without_definitions(tokens, found)
    for named, before, token, after in zip(["", "", *tokens], ["", *tokens], tokens,
                                           [*tokens[1:], ""], strict=False):
        if token in ("(", "["):
            depth += 1
            begins.append(before in ("iterate", "repeat"))
        elif token in (")", "]"):
            depth -= 1
            del begins[max(1, len(begins) - 1):]
        elif token == ";":
            bound.update(waiting)
        if before == "." or not (token.isidentifier() and token.isascii()):
            continue
        if after == "=" and not (begins[-1] and token != "until"):
            waiting += [token] if depth == 0 else []
        elif before == "=" and named in WORDS and depth > 0:
            continue
        elif after != "(" and token not in bound \
                and not (after == "." and token in ("np", "numpy")):
            found.setdefault(token)
    return waiting
