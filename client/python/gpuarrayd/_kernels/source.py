"""What a function is written as, and what its names mean; and how a place in it is refused.

The source is that of inspect, so the function must come from a file, a notebook or an interactive
session that keeps it. Names that are not its own are looked up once, when it is decorated: numbers
and tuples of numbers are constants from then on, as Numba has it.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import types
from collections.abc import Callable
from typing import Any, NoReturn

from .. import errors


class UnsupportedSyntax(errors.Unsupported):
    """A function of numbers has what no expression can be made of.

    Attributes
    ----------
    filename : str
    lineno, offset : int
        Where; columns from 1 on.
    text : str
        That line.
    """

    filename: str
    lineno: int
    offset: int
    text: str


class Code:
    """A function's own source.

    tree: its definition, whose places are those of the file. names: what is not its own."""

    def __init__(self, function: Callable[..., Any], user: str) -> None:
        self.function = function
        self.name = getattr(function, "__name__", "function")
        wanted = "a function with def, of which the source is known"
        if not inspect.isfunction(function) or self.name == "<lambda>":
            raise errors.Unsupported(f"{user} takes {wanted}; not {_kind(function)}",
                                     argument="pyfunc", expected=wanted, found=_kind(function))
        assert isinstance(function, types.FunctionType)
        self.filename = inspect.getsourcefile(function) or function.__code__.co_filename
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError) as error:
            raise errors.Unsupported(
                f"the source of {self.name} is not known ({error}): define it in a file or in a "
                "notebook", argument="pyfunc", expected=wanted, found="no source") from None
        is_inside = lines[0][0].isspace()  # of another function, or of a class
        self.lines = lines
        self.begin, self.first = first, first - is_inside
        tree: Any = ast.parse("if True:\n" * is_inside + "".join(lines)).body[0]
        tree = tree.body[0] if is_inside else tree
        if not isinstance(tree, ast.FunctionDef):
            raise self.refusal(tree, f"{self.name} is no plain function",
                               "def, without async")
        self.tree = tree
        self._names = _outside(function)
        self.locals = {*self.parameters, *[node.id for node in ast.walk(tree) if isinstance(
            node, ast.Name) and isinstance(node.ctx, ast.Store)]}
        self.facts: dict[ast.AST, Any] = {}  # of its loops
        self._check_parameters()

    def _check_parameters(self) -> None:
        own = self.tree.args
        for found, what in ((own.vararg, "*"), (own.kwarg, "**")):
            if found is not None:
                raise self.refusal(found, f"{what}{found.arg}: as many parameters as are given",
                                   "a name for each parameter")

    @property
    def parameters(self) -> list[str]:
        """Their names, in order."""
        own = self.tree.args
        return [one.arg for one in (*own.posonlyargs, *own.args, *own.kwonlyargs)]

    def global_(self, node: ast.Name) -> Any:
        """What a name means that is not the function's own."""
        if node.id in self._names:
            return self._names[node.id]
        if hasattr(builtins, node.id):
            return getattr(builtins, node.id)
        if node.id == self.tree.name:
            raise self.refusal(node, f"{node.id}() calls itself", "a for loop")
        raise self.refusal(node, f"nothing is called {node.id} where {self.name} is decorated",
                           "a parameter, a local name that has a value, or a global above it")

    def place(self, node: ast.AST) -> str:
        """For readers."""
        line, column = self._place(node)
        return f"{self.filename}:{line}:{column}"

    def _place(self, node: ast.AST) -> tuple[int, int]:
        return (getattr(node, "lineno", 1) + self.first - 1,
                getattr(node, "col_offset", 0) + 1)

    def refusal(self, node: ast.AST, what: str, instead: str) -> UnsupportedSyntax:
        """The error that says what there is at a node and what to write instead."""
        error = UnsupportedSyntax(f"{self.place(node)}: in {self.name}: {what}; write {instead}",
                                  argument=self.name, expected=instead, found=what)
        error.filename = self.filename
        error.lineno, error.offset = self._place(node)
        error.text = self.lines[error.lineno - self.begin].rstrip("\n")
        return error

    def refuse(self, node: ast.AST, what: str, instead: str) -> NoReturn:
        raise self.refusal(node, what, instead)


def _kind(function: object) -> str:
    if getattr(function, "__name__", "") == "<lambda>":
        return "a lambda"
    return f"{type(function).__name__} {getattr(function, '__name__', '')}".rstrip()


def _outside(function: types.FunctionType) -> dict[str, Any]:
    """The globals and what is enclosed, as they are now."""
    names = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # it gets its value later
            names.pop(name, None)
    return names
