"""From a graph to what is sent: one text for each result, and the arguments that they share.

    _0*_0+1                                   sources are _0, _1, ...; equal ones are one argument
    _t0=sqrt(_0);_t0/(_t0+1)                  what is used twice has a name
    _t0=((_0*2+1)*2+...);(_t0*2+1)*2          and so has what is long or deep

The text is the language of gd.evaluate(), as short as its rules of precedence allow: a text may
have 16 KiB. Numbers are written so that they are read back to the bit. A name costs a text nothing
in the daemon, so names bound texts in length and depth, and writing takes linear time.

An operator between two of Python's numbers would be folded as in Python, so a function of numbers
alone is written as a call: add(1, 2), as NumPy's function of that name makes an array of it.
"""

import math
from collections.abc import Iterable, Sequence

from .graph import Call, Node, Number, Product, Ramp, Source, Steps, ordered

BINARY = {
    "equal": ("==", 1), "not_equal": ("!=", 1), "less": ("<", 1), "less_equal": ("<=", 1),
    "greater": (">", 1), "greater_equal": (">=", 1), "bitwise_or": ("|", 2),
    "bitwise_xor": ("^", 3), "bitwise_and": ("&", 4), "left_shift": ("<<", 5),
    "right_shift": (">>", 5), "add": ("+", 6), "subtract": ("-", 6), "multiply": ("*", 7),
    "matmul": ("@", 7), "divide": ("/", 7), "floor_divide": ("//", 7), "remainder": ("%", 7),
    "power": ("**", 9),
}
UNARY = {"negative": "-", "invert": "~"}
SIGN, POWER, ATOM = 8, 9, 10
MAX_CHARS = 400  # of a part without a name
MAX_DEPTH = 60  # of brackets and signs in it


class Piece:
    """A part of a text: how tightly its outermost operator binds, how deep its brackets are."""

    __slots__ = ("binding", "depth", "text")

    def __init__(self, text: str, binding: int = ATOM, depth: int = 0) -> None:
        self.text, self.binding, self.depth = text, binding, depth


def written(roots: Sequence[Node]) -> tuple[list[str], dict[str, Source]]:
    """The texts of the results, and what the names in them stand for."""
    names: dict[object, str] = {}
    arguments: dict[str, Source] = {}
    texts = []
    for root in roots:
        nodes = ordered(root)
        for node in nodes:
            if isinstance(node, Source) and (same := (type(node), node.same())) not in names:
                name = names[same] = f"_{len(names)}"
                arguments[name] = node
        texts.append(_text(nodes, names))
    return texts, arguments


def _text(nodes: list[Node], names: dict[object, str]) -> str:
    """Of the last of the nodes, which are all that it is made of."""
    pieces: dict[int, Piece] = {}
    uses: dict[int, int] = {}
    bound: list[str] = []
    loops: dict[object, list[str]] = {}
    for node in nodes:
        for part in node.parts:
            uses[id(part)] = uses.get(id(part), 0) + 1
    for node in nodes:
        if isinstance(node, Source):
            piece = Piece(names[type(node), node.same()])
        elif isinstance(node, Number):
            piece = Piece(number_text(node))
        else:
            assert isinstance(node, Call)
            parts = [pieces[id(part)] for part in node.parts]
            piece = _steps(node, parts, bound, loops) if isinstance(node, Steps) \
                else _call(node, parts)
            is_large = len(piece.text) > MAX_CHARS or piece.depth > MAX_DEPTH
            if node is not nodes[-1] and (uses[id(node)] > 1 or is_large):
                bound.append(f"_t{len(bound)}={piece.text};")
                piece = Piece(f"_t{len(bound) - 1}")
        pieces[id(node)] = piece
    return "".join(bound) + pieces[id(nodes[-1])].text


def _steps(node: Steps, parts: list[Piece], bound: list[str],
           loops: dict[object, list[str]]) -> Piece:
    """Each state has a name of its own, the same for all results of equal loops."""
    same = (node.n_steps, node.nexts, node.until, *map(id, node.parts))
    if same not in loops:
        names = loops[same] = []
        for i, part in enumerate(parts):
            if i < len(node.nexts) or not part.text.isidentifier():
                bound.append(f"_t{len(bound)}={part.text};")
                names.append(f"_t{len(bound) - 1}")
            else:
                names.append(part.text)
    names = loops[same]
    order = [node.first, *[i for i in range(len(node.nexts)) if i != node.first]]
    words = [f"{names[i]}={node.nexts[i].format(*names)}" for i in order]
    if node.until:
        words.append(f"until={node.until.format(*names)}")
    return Piece(f"iterate({node.n_steps},{','.join(words)})", ATOM, 1)


def body(root: Node, names: dict[int, str], most: int) -> str | None:
    """The text of what a step computes, where names are those of nodes; None: it has more than so
    many characters."""
    pieces: dict[int, Piece] = {}
    for node in ordered(root, lambda one: id(one) in names):
        if id(node) in names:
            piece = Piece(names[id(node)])
        elif isinstance(node, Number):
            piece = Piece(number_text(node))
        else:
            assert isinstance(node, Call)
            piece = _call(node, [pieces[id(part)] for part in node.parts])
        if len(piece.text) > most:
            return None
        pieces[id(node)] = piece
    return pieces[id(root)].text


def number_text(number: Number) -> str:
    """As the language reads it back to the bit."""
    value = number.value
    if isinstance(value, float) and not math.isfinite(value):
        text = "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    else:
        text = repr(value)
    if number.dtype is not None:
        return f"{number.dtype}({text})"
    return f"({text})" if text[0] == "-" else text


def _call(node: Call, parts: list[Piece]) -> Piece:
    if isinstance(node, Ramp):
        return Piece(node.term(parts[0].text), BINARY["add"][1], 1)
    if any(not isinstance(p, Number) or p.dtype is not None for p in node.parts):
        if isinstance(node, Product) and node.is_turned:
            parts = [parts[0], Piece(f"{parts[0].text}.mT")]
        if node.op in BINARY:
            return _operator(*BINARY[node.op], *parts)
        if node.op in UNARY:
            operand = _within(parts[0], SIGN)
            return Piece(UNARY[node.op] + operand.text, SIGN, operand.depth + 1)
    if node.op == "select":
        words = _lists(node, parts)
    else:
        n = len(parts) - len(node.options)
        words = [part.text for part in parts[:n]] + _named(node.options, parts[n:])
        words += [f"{name}={word}" if name else word for name, word in node.words()]
    result = "" if node.result is None else f"[{node.result}]"
    return Piece(f"{node.dtype or node.op}({','.join(words)}){result}", ATOM, _deepest(parts) + 1)


def _operator(symbol: str, binding: int, left: Piece, right: Piece) -> Piece:
    if binding == POWER:  # right to left, and a sign may stand on its right alone
        left, right = _within(left, ATOM), _within(right, SIGN)
        return Piece(left.text + symbol + right.text, POWER, _deepest((left, right)) + 1)
    left, right = _within(left, binding + (binding == 1)), _within(right, binding + 1)
    return Piece(left.text + symbol + right.text, binding, _deepest((left, right)))


def _within(piece: Piece, binding: int) -> Piece:
    """The piece where nothing may bind less tightly."""
    if piece.binding >= binding:
        return piece
    return Piece(f"({piece.text})", ATOM, piece.depth + 1)


def _lists(node: Call, parts: list[Piece]) -> list[str]:
    n = (len(parts) - len(node.options)) // 2
    conditions, choices = ([part.text for part in found]
                           for found in (parts[:n], parts[n:2 * n]))
    return [f"[{','.join(conditions)}]", f"[{','.join(choices)}]",
            *_named(node.options, parts[2 * n:])]


def _named(names: Iterable[str], parts: Iterable[Piece]) -> list[str]:
    return [f"{name}={part.text}" for name, part in zip(names, parts, strict=True)]


def _deepest(parts: Iterable[Piece]) -> int:
    return max((part.depth for part in parts), default=0)
