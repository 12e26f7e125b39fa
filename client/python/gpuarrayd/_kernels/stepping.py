"""A loop of many steps as iterate(): each name that a step changes is a state.

A step is followed once, with states in the names' places. What leaves the loop is a state, too:

    for i in range(1000):          index = index + 1
        z = z*z + c                z = z*z + c
        if abs(z) > 2:             left = abs(z*z + c) > 2
            return i               value = index
                                   until = left

A while's condition, and `if ...: break` or return at a step's beginning, are looked at before the
step, as until is, so that what they leave with is had from the states. Only those states are there
that something reads in the end.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from .._lazy.array import Lazy
from .._lazy.fitting import known_dtype
from .._lazy.graph import Node, Number, State, Steps, number, ordered
from .._lazy.operands import node_of
from .._lazy.text import body
from .values import Choice, Missing, array_of, is_number
from .ways import Env, Exit

INDEX, LEFT, RETURNED = "index()", "left()", "returned()"  # states that are no names
MAX_STATES = 16
MAX_STEPS = 1000000
_MAX_CHARS = 8000  # of what one state becomes

class NoLoop(Exception):
    """What is no loop of many steps: what it is, and what to write instead."""


class Facts:
    """Of a loop in a function's source. names: those that it gives values. beside: that are read
    elsewhere in the function, or anywhere if the loop is in another. needs_number: whether its own
    name is an index, or a limit of another loop."""

    def __init__(self, tree: ast.AST, loop: ast.For | ast.While) -> None:
        inside = [*ast.walk(loop)]
        self.names = sorted({node.id for node in inside
                             if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)})
        is_inner = any(isinstance(node, (ast.For, ast.While)) and node is not loop
                       and loop in ast.walk(node) for node in ast.walk(tree))
        ignored = set() if is_inner else {*inside}
        self.beside = {*_read(node for node in ast.walk(tree) if node not in ignored)}
        own = loop.target.id if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) \
            else None
        places = [node.slice if isinstance(node, ast.Subscript) else node.iter for node in inside
                  if isinstance(node, ast.Subscript) or isinstance(node, ast.For)
                  and node is not loop]
        self.needs_number = any(own in loaded(place) for place in places)


def _read(nodes: Iterable[ast.AST]) -> Iterable[str]:
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def loaded(tree: ast.AST) -> set[str]:
    """The names that it reads."""
    return {*_read(ast.walk(tree))}


class Followed(NamedTuple):
    """A step: which elements do not take it, what names are behind it; and of those that leave in
    it, all, and those that return with what."""

    over: Any
    names: Env
    left: Any
    returned: Exit | None


def begun(first: Env, follow: Callable[[Env], Followed]) -> Env:
    """What the states begin with: numbers get the dtype that a first step gives them."""
    found = {name: array_of(value) for name, value in first.items()}
    names = dict(first)
    for _ in range(2):
        weak = [name for name, value in found.items() if type(value) in (bool, int, float)]
        if not weak:
            break
        names.update(follow(names).names)
        for name in weak:
            value = array_of(names[name]) if can_be_state(names.get(name)) else None
            if isinstance(value, Lazy):
                found[name] = _typed(first[name], value)
    return found


def _typed(value: Any, like: Lazy) -> Any:
    dtype = known_dtype(like._node)
    if dtype is None or dtype.kind == "V":
        dtype = like.dtype
    return np.result_type(dtype, value).type(value)


class Loop:
    """The states of a loop, and what they come to."""

    def __init__(self, n_steps: int) -> None:
        self.n_steps = n_steps
        self.states: dict[str, State] = {}
        self.firsts: dict[str, Node] = {}
        self.nexts: dict[str, Node] = {}
        self.until: Node = number(False)

    def state(self, name: str, first: Any, dtype: str | None = None) -> Lazy:
        """What stands for a name in a step."""
        node = self.states[name] = State(dtype)
        self.firsts[name] = node_of(first)
        return Lazy._of(node)

    def note(self, step: Followed, names: Env) -> None:
        """What becomes of the names, and of who leaves."""
        for name, value in names.items():
            if can_be_state(value):
                if name not in self.states:
                    self.state(name, False)
                self.nexts[name] = node_of(array_of(value))
        self.nexts[LEFT] = node_of(step.left)
        if step.returned is None:
            return
        if step.returned.mask is not step.left:
            self.state(RETURNED, False, "bool")
            self.nexts[RETURNED] = node_of(step.returned.mask)
        what = step.returned.what
        for i, value in enumerate(what if type(what) is tuple else (what,)):
            if not can_be_state(value):
                raise NoLoop("a loop that does not return numbers alone", "a number")
            self.state(f"value({i})", False)
            self.nexts[f"value({i})"] = node_of(array_of(value))

    def values(self) -> list[str]:
        """The states that are returned."""
        return [name for name in self.states if name.startswith("value(")]

    def results(self, wanted: Iterable[str]) -> dict[str, Lazy]:
        """Of these states."""
        kept = self._kept([name for name in wanted if name in self.nexts])
        if len(kept) > MAX_STATES:
            raise NoLoop(f"a loop with {len(kept)} names that change",
                         f"loops with at most {MAX_STATES}")
        texts = {id(self.states[name]): f"{{{i}}}" for i, name in enumerate(kept)}
        parts = [self.firsts[name] for name in kept]
        roots = [self.nexts[name] for name in kept]
        for node in _same([*roots, self.until]):
            texts[id(node)] = f"{{{len(parts)}}}"
            parts.append(node)
        nexts = tuple([self._text(root, texts) for root in roots])
        until = self._text(self.until, texts) if not isinstance(self.until, Number) else ""
        made = {}
        for i, name in enumerate(kept):
            node = Steps(tuple(parts), self.n_steps, nexts, until, i)
            if self.states[name].dtype == "bool":
                node.known = np.dtype(bool)
            made[name] = Lazy._of(node)
        return made

    def _kept(self, wanted: list[str]) -> list[str]:
        """And those that they, and until, are made of."""
        names = {id(node): name for name, node in self.states.items()}
        found = set(wanted)
        waiting = [self.until, *[self.nexts[name] for name in wanted]]
        while waiting:
            for node in ordered(waiting.pop()):
                name = names.get(id(node))
                if name is not None and name not in found:
                    found.add(name)
                    waiting.append(self.nexts[name])
        return [name for name in self.states if name in found]

    def _text(self, root: Node, texts: dict[int, str]) -> str:
        found = body(root, texts, _MAX_CHARS)
        if found is None:
            raise NoLoop("a step that is too long", "a part of it before the loop")
        return found


def _same(roots: list[Node]) -> list[Node]:
    """The largest parts that no state is a part of, but numbers."""
    varies: dict[int, bool] = {}
    found: dict[int, Node] = {}
    for root in roots:
        for node in ordered(root):
            varies[id(node)] = isinstance(node, State) or any(varies[id(part)]
                                                              for part in node.parts)
    for root in roots:
        for node in ordered(root, lambda one: not varies[id(one)]):
            for part in (*node.parts, *([node] if node is root else [])):
                if not varies[id(part)] and not isinstance(part, Number):
                    found[id(part)] = part
    return [*found.values()]


def can_be_state(value: Any) -> bool:
    """Whether a step may change it."""
    return is_number(value) or isinstance(value, (Lazy, Choice))
