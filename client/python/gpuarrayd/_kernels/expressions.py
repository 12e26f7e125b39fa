"""Expressions in a function of numbers, and the functions that it calls; see tracing.py."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import errors
from .._lazy.array import Lazy
from .called import Called, called, shown
from .source import Code, UnsupportedSyntax
from .pairs import Refused, function_of_pairs, negated, operated
from .values import (OPERATORS, Choice, Missing, Pair, applied, array_of, as_pair, both, chosen,
                     either, is_bool, is_number, is_risky, opposite, truth)
from .ways import Env

_SPARE = {"FloorDiv": 1, "Mod": 1, "Pow": 0}
INSTEAD = {
    ast.Global: ("a global name that is set", "what it gives as a result"),
    ast.Nonlocal: ("an enclosing name that is set", "what it gives as a result"),
    ast.Try: ("try", "if, on what would raise"),
    ast.Raise: ("raise", "return math.nan, or another value that says so"),
    ast.Assert: ("assert", "if, or check the arrays before"),
    ast.With: ("with", "what is in it alone"),
    ast.Yield: ("yield", "return"), ast.YieldFrom: ("yield", "return"),
    ast.Await: ("await", "what it waits for as a parameter"),
    ast.Delete: ("del", "nothing: a name that is not read costs nothing"),
    ast.Import: ("import", "it outside of the function"),
    ast.ImportFrom: ("import", "it outside of the function"),
    ast.FunctionDef: ("a function inside", "it outside of the function"),
    ast.ClassDef: ("a class", "numbers"), ast.Lambda: ("lambda", "a function with def outside"),
    ast.List: ("a list", "a tuple of numbers"), ast.Set: ("a set", "a tuple of numbers"),
    ast.Dict: ("a dict", "if and elif"), ast.ListComp: ("a list", "a for loop"),
    ast.GeneratorExp: ("a generator", "a for loop"), ast.SetComp: ("a set", "a for loop"),
    ast.DictComp: ("a dict", "if and elif"), ast.JoinedStr: ("a string", "numbers"),
    ast.NamedExpr: (":=", "the assignment before it"), ast.Starred: ("*", "each value"),
    ast.Match: ("match", "if and elif"),
}


class Expressions:
    """One function with its arguments. mask: which elements are here, True of all. bound: of while
    loops that end by an array's elements. is_trial: arguments stand for any. is_step: within a step
    of others."""

    def __init__(self, code: Code, codes: dict[Any, Code], bound: int | None = None,
                 is_trial: bool = False, mask: Any = True, is_step: bool = False,
                 above: Sequence[Any] = ()) -> None:
        self.code = code
        self.codes = codes
        self.bound = bound
        self.is_trial = is_trial
        self.mask = mask
        self.is_step = is_step
        self.above = (*above, code.function)
        self.locals = code.locals

    def run(self, arguments: Env) -> Any:
        """What it returns."""
        raise NotImplementedError

    @contextmanager
    def _where(self, mask: Any) -> Iterator[None]:
        before = self.mask
        self.mask = both(before, mask)
        yield
        self.mask = before

    def _unknown(self, node: ast.AST, env: Env) -> Any:
        what, instead = INSTEAD.get(type(node), (type(node).__name__.lower(),
                                                  "numbers, if, for ... in range() and return"))
        self.code.refuse(node, f"{what} is not a part of functions of numbers", instead)

    def _value(self, node: ast.expr, env: Env) -> Any:
        return getattr(self, f"_of_{type(node).__name__}", self._unknown)(node, env)

    def _truth(self, node: ast.expr, env: Env) -> Any:
        return self._made(node, truth, self._scalar(node, env))

    def _scalar(self, node: ast.expr, env: Env) -> Any:
        found = self._value(node, env)
        if type(found) is tuple:
            self.code.refuse(node, "a tuple where a number is needed", "one of its values: t[0]")
        return found

    def _made(self, node: ast.AST, function: Callable[..., Any], *values: Any) -> Any:
        """function(*values), whose errors say where."""
        try:
            with np.errstate(all="ignore"):
                return function(*values)
        except UnsupportedSyntax:
            raise
        except Refused as error:
            self.code.refuse(node, *error.args)
        except errors.Error as error:
            self._say_where(error, node)
            raise
        except (ArithmeticError, TypeError, ValueError) as error:
            self.code.refuse(node, str(error), "what NumPy computes of these numbers")

    def _say_where(self, error: errors.Error, node: ast.AST) -> None:
        """The innermost place alone."""
        if not isinstance(error, UnsupportedSyntax) and not getattr(error, "__notes__", None):
            error.add_note(f"at {self.code.place(node)}")

    def _of_Constant(self, node: ast.Constant, env: Env) -> Any:
        if isinstance(node.value, (bool, int, float)):
            return node.value
        if isinstance(node.value, complex):
            return Pair(node.value.real, node.value.imag)
        self.code.refuse(node, f"{type(node.value).__name__} is not a part of functions of numbers",
                         "bool, int, float and complex")

    def _name(self, node: ast.Name, env: Env) -> Any:
        if node.id in env:
            found = env[node.id]
            if isinstance(found, Missing):
                self.code.refuse(node, f"{node.id} {found.why}", "a value for it on every way")
            return found
        if node.id in self.locals:
            self.code.refuse(node, f"{node.id} has no value here", "a value for it before")
        return self._constant(node, node.id, self.code.global_(node))

    def _constant(self, node: ast.AST, name: str, value: Any) -> Any:
        if is_number(value):
            return value
        if isinstance(value, (complex, np.complexfloating)):
            return Pair(value.real, value.imag)
        if type(value) is tuple:
            return tuple([self._constant(node, f"{name}[{i}]", one)
                          for i, one in enumerate(value)])
        self.code.refuse(node, f"{name} is {_a(type(value).__name__)}, not a number",
                         "it as a parameter" if isinstance(value, (np.ndarray, Lazy))
                         else "a number, or a tuple of numbers")

    def _of_Name(self, node: ast.Name, env: Env) -> Any:
        return self._name(node, env)

    def _of_Attribute(self, node: ast.Attribute, env: Env) -> Any:
        if node.attr in ("real", "imag") and self._is_value(node.value, env):
            return as_pair(self._scalar(node.value, env))[node.attr == "imag"]
        return self._constant(node, ast.unparse(node), self._object(node, env))

    def _is_value(self, node: ast.expr, env: Env) -> bool:
        """Whether it is no function's or module's name."""
        if isinstance(node, ast.Name):
            return node.id in env or node.id in self.locals
        return not isinstance(node, ast.Attribute) or self._is_value(node.value, env)

    def _object(self, node: ast.expr, env: Env) -> Any:
        """A function, or a constant of a module."""
        if isinstance(node, ast.Name) and node.id not in env and node.id not in self.locals:
            return self.code.global_(node)
        if isinstance(node, ast.Attribute):
            base = self._object(node.value, env)
            if isinstance(base, types.ModuleType) and hasattr(base, node.attr):
                return getattr(base, node.attr)
            if node.attr in ("real", "imag") and isinstance(base, (int, float, complex, np.number)):
                return getattr(base, node.attr)
            self.code.refuse(node, f"the attribute {node.attr} of what is no module",
                             "functions of numbers: np.NAME(x)")
        if isinstance(node, ast.Name):
            self.code.refuse(node, f"{node.id} is a number here", "a function's name")
        return self._unknown(node, env)

    def _of_Tuple(self, node: ast.Tuple, env: Env) -> Any:
        return tuple([self._value(one, env) for one in node.elts])

    def _of_Subscript(self, node: ast.Subscript, env: Env) -> Any:
        found, index = self._value(node.value, env), self._value(node.slice, env)
        if type(found) is not tuple:
            self.code.refuse(node, "an element of a number", "the number, or use gd.stencil")
        if type(index) is not int or not -len(found) <= index < len(found):
            self.code.refuse(node.slice, "an index that is not known here, or beyond the tuple",
                             f"0 to {len(found) - 1}")
        return found[index]

    def _of_UnaryOp(self, node: ast.UnaryOp, env: Env) -> Any:
        if isinstance(node.op, ast.Not):
            return opposite(self._truth(node.operand, env))
        value = self._scalar(node.operand, env)
        if isinstance(value, Pair):
            if isinstance(node.op, ast.Invert):
                self.code.refuse(node, "~ of a complex number", "-z or z.conjugate()")
            return value if isinstance(node.op, ast.UAdd) else self._made(node, negated, value)
        return self._made(node, applied, OPERATORS[type(node.op).__name__], value)

    def _of_BinOp(self, node: ast.BinOp, env: Env) -> Any:
        return self._binary(node, type(node.op).__name__, self._scalar(node.left, env),
                            self._scalar(node.right, env))

    def _binary(self, node: ast.AST, name: str, left: Any, right: Any) -> Any:
        if name not in OPERATORS:
            self.code.refuse(node, "@ of numbers", "*")
        if isinstance(left, Pair) or isinstance(right, Pair):
            return self._made(node, operated, name, left, right)
        if name in _SPARE:
            right = self._spared(right, _SPARE[name])
        return self._made(node, applied, OPERATORS[name], left, right)

    def _spared(self, value: Any, spare: int) -> Any:
        """What a divisor or an exponent is where no element is."""
        if isinstance(value, Choice) and is_risky(value, spare):
            value = array_of(value)
        if self.mask is True or not isinstance(value, Lazy):
            return value
        return chosen(self.mask, value, spare)

    def _of_Compare(self, node: ast.Compare, env: Env) -> Any:
        left, found = self._scalar(node.left, env), True
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, (ast.In, ast.NotIn)):
                right = self._value(comparator, env)
                one = self._within(node, left, right, isinstance(op, ast.NotIn))
            else:
                if isinstance(op, (ast.Is, ast.IsNot)):
                    self.code.refuse(node, "is, of numbers", "== or !=")
                with self._where(found):
                    right = self._scalar(comparator, env)
                one = self._compared(node, type(op).__name__, left, right)
                if len(node.ops) == 1:
                    return one
            found = both(found, truth(one))
            left = right
        return found

    def _compared(self, node: ast.AST, name: str, left: Any, right: Any) -> Any:
        if isinstance(left, Pair) or isinstance(right, Pair):
            return self._made(node, operated, name, left, right)
        return self._made(node, applied, OPERATORS[name], left, right)

    def _within(self, node: ast.Compare, left: Any, right: Any, is_not: bool) -> Any:
        if type(right) is not tuple:
            self.code.refuse(node, "in, of what is no tuple", "x in (1, 2, 3)")
        found: Any = False
        for one in right:
            found = either(found, truth(self._compared(node, "Eq", left, one)))
        return opposite(found) if is_not else found

    def _of_BoolOp(self, node: ast.BoolOp, env: Env) -> Any:
        is_and = isinstance(node.op, ast.And)
        found = self._scalar(node.values[0], env)
        for one in node.values[1:]:
            goes_on = truth(found) if is_and else opposite(truth(found))
            if goes_on is False:
                return found
            with self._where(goes_on):
                value = self._scalar(one, env)
            if goes_on is True:
                found = value
            elif is_bool(found) and is_bool(value):
                found = (both if is_and else either)(truth(found), truth(value))
            else:
                found = self._made(node, chosen, goes_on, value, found)
        return found

    def _of_IfExp(self, node: ast.IfExp, env: Env) -> Any:
        condition = self._truth(node.test, env)
        if isinstance(condition, bool):
            return self._value(node.body if condition else node.orelse, env)
        with self._where(condition):
            yes = self._value(node.body, env)
        with self._where(opposite(condition)):
            no = self._value(node.orelse, env)
        return self._made(node, chosen, condition, yes, no)

    # Calls.

    def _of_Call(self, node: ast.Call, env: Env) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "conjugate" and \
                not node.args and self._is_value(node.func.value, env):
            value = self._scalar(node.func.value, env)
            return self._of_pairs(node, np.conjugate, [value], {}) \
                if isinstance(value, Pair) else value
        function = self._function(node, env)
        args = [self._value(one, env) for one in node.args]
        named = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.code.refuse(keyword.value, "**", "each value by its name")
            named[keyword.arg] = self._value(keyword.value, env)
        plain = getattr(function, "py_func", None) or getattr(function, "pyfunc", function)
        found = called(function)
        has_pairs = any(isinstance(one, Pair) for one in (*args, *named.values()))
        if has_pairs or function_of_pairs(function, False) is not None:
            if found is not None or function_of_pairs(function, True) is not None:
                return self._of_pairs(node, function, args, named)
        if found is not None:
            return self._catalogue(node, found, args, named)
        return self._inlined(node, plain, args, named)

    def _function(self, node: ast.Call, env: Env) -> Any:
        """What is called; refused if that is nothing that can be."""
        function = self._object(node.func, env)
        plain = getattr(function, "py_func", None) or getattr(function, "pyfunc", function)
        if function is range or called(function) is not None or \
                function_of_pairs(function, False) is not None or inspect.isfunction(plain) and \
                (plain.__module__ or "").split(".")[0] not in ("numpy", "gpuarrayd", "scipy"):
            return function
        self.code.refuse(node, f"{ast.unparse(node.func)}() is {shown(function)}, which is not "
                         "computed element by element by the daemon",
                         "a function of math or NumPy in gd.ops(), or a function with def")

    def _of_pairs(self, node: ast.Call, function: Any, args: list[Any],
                  named: dict[str, Any]) -> Any:
        """A function of complex numbers."""
        found = function_of_pairs(function, True)
        if found is None:
            self.code.refuse(node, f"{shown(function)}() of a complex number",
                             "it of its parts: z.real, z.imag")
        if any(type(one) is tuple for one in args):
            self.code.refuse(node, f"{shown(function)}() of a tuple", "numbers")
        if function is complex:
            args, named = [*args, *[named[key] for key in ("real", "imag") if key in named]], {
                key: value for key, value in named.items() if key not in ("real", "imag")}
        return self._made(node, found, *args, *named.values())

    def _catalogue(self, node: ast.Call, function: Called, args: list[Any],
                   named: dict[str, Any]) -> Any:
        if any(type(one) is tuple for one in args):
            self.code.refuse(node, f"{ast.unparse(node.func)}() of a tuple", "numbers")
        if function.spare is not None and args:
            at = min(1, len(args) - 1)
            args[at] = self._spared(args[at], function.spare)
        names = [*named]

        def call(*values: Any) -> Any:
            first, rest = values[:len(args)], dict(zip(names, values[len(args):], strict=True))
            if any(isinstance(one, Lazy) for one in values):
                return function.own(*first, **rest)
            return _plain(function.known(*first, **rest))
        return self._made(node, applied, call, *args, *named.values())

    def _inlined(self, node: ast.Call, function: Any, args: list[Any],
                 named: dict[str, Any]) -> Any:
        if function in self.above:
            self.code.refuse(node, f"{ast.unparse(node.func)}() calls itself", "a for loop")
        code = self.codes.get(function)
        if code is None:
            try:
                code = self.codes[function] = Code(function, "an inlined call")
            except UnsupportedSyntax:
                raise
            except errors.Unsupported as error:
                self.code.refuse(node, error.message, "a function with def")
        try:
            bound = inspect.signature(function).bind(*args, **named)
        except TypeError as error:
            self.code.refuse(node, f"{ast.unparse(node.func)}(): {error}", "its parameters")
        tracer = type(self)(code, self.codes, self.bound, self.is_trial, self.mask, self.is_step,
                            self.above)
        try:
            return tracer.run(tracer.with_defaults(bound.arguments))
        except errors.Unsupported as error:
            error.add_note(f"called at {self.code.place(node)}")
            raise

    def with_defaults(self, given: Env) -> Env:
        """The parameters' values, where some are not given."""
        found = dict(given)
        for name, parameter in inspect.signature(self.code.function).parameters.items():
            if name not in found and parameter.default is not parameter.empty:
                found[name] = self._constant(self.code.tree, name, parameter.default)
        return found


def _plain(value: Any) -> Any:
    """Arrays without axes, which some of NumPy's functions give, as scalars."""
    if isinstance(value, tuple):
        return tuple([_plain(one) for one in value])
    return value[()] if isinstance(value, np.ndarray) else value


def _a(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' or name == 'ndarray' else 'a'} {name}"


