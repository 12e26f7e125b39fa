"""From a function of numbers to an expression: what Python would do, for all elements at once.

Statements are followed in order with the values of the names (values.py). What is known is computed
here: loops over a known range are unrolled, conditions that are known choose their branch. By any
other condition both branches are followed, and names get what each element's branch gave them:

    if x > 0:            y1 = sqrt(x)
        y = sqrt(x)      y2 = 0
    else:                y = where(x > 0, y1, y2)
        y = 0

Elements leave a block by return, break and continue; the rest of it is followed as the branch of
those that did not. Nothing of what is not read in the end becomes a part of the expression.

An element computes both branches. Only what would be counted or fail there (// and % by 0, integers
to negative powers, casts that do not fit) computes with other numbers on a way not taken.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .. import errors
from .expressions import INSTEAD
from .loops import Loops
from .values import Missing, Pair, either, opposite
from .ways import Env, Exit, Exits, join, leaving, merge, of_either


class Tracer(Loops):
    """One function with its arguments."""

    def run(self, arguments: Env) -> Any:
        """What it returns."""
        exits = self._block(self.code.tree.body, dict(arguments))
        if "return" not in exits or exits["return"].mask is not True:
            self.code.refuse(self.code.tree, f"{self.code.name} may end without return",
                             "return VALUE at the end")
        found = exits["return"].what
        if isinstance(found, Missing):
            self.code.refuse(self.code.tree, f"what {self.code.name} returns {found.why}",
                             "as many values in each return")
        return found

    def _block(self, statements: Sequence[ast.stmt], env: Env) -> Exits:
        exits: Exits = {}
        gone: Any = False
        for statement in statements:
            if gone is True:
                break
            try:
                with self._where(opposite(gone)):
                    left = self._statement(statement, env)
                join(exits, gone, left)
            except errors.Error as error:
                self._say_where(error, statement)
                raise
            gone = either(gone, leaving(left))
        return exits

    def _statement(self, node: ast.stmt, env: Env) -> Exits:
        method = getattr(self, f"_do_{type(node).__name__}", self._unknown)
        found: Exits | None = method(node, env)
        return found or {}

    def _do_Pass(self, node: ast.Pass, env: Env) -> None:
        pass

    def _do_Expr(self, node: ast.Expr, env: Env) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return
        if isinstance(node.value, ast.Call):
            self._function(node.value, env)  # which says what is wrong with it
        elif type(node.value) in INSTEAD:
            self._unknown(node.value, env)
        self.code.refuse(node, "a value that nothing is done with", "a name for it")

    def _do_Assign(self, node: ast.Assign, env: Env) -> None:
        value = self._value(node.value, env)
        for target in node.targets:
            self._set(target, value, env)

    def _do_AnnAssign(self, node: ast.AnnAssign, env: Env) -> None:
        if node.value is not None:
            self._set(node.target, self._value(node.value, env), env)

    def _do_AugAssign(self, node: ast.AugAssign, env: Env) -> None:
        if not isinstance(node.target, ast.Name):
            self._set(node.target, None, env)
            return
        old = self._name(node.target, env)
        env[node.target.id] = self._binary(node, type(node.op).__name__, old,
                                           self._value(node.value, env))

    def _set(self, target: ast.expr, value: Any, env: Env) -> None:
        if isinstance(target, ast.Name):
            env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            if type(value) is not tuple or len(value) != len(target.elts):
                found = f"{len(value)} values" if type(value) is tuple else "a number"
                self.code.refuse(target, f"{found} for {len(target.elts)} names",
                                 "as many names as values")
            for each, one in zip(target.elts, value, strict=True):
                self._set(each, one, env)
        else:
            what = {ast.Attribute: "an attribute that is set", ast.Subscript: "an element that is "
                    "set"}.get(type(target), "what is set here")
            self.code.refuse(target, f"{what} is not a part of functions of numbers",
                             "a name, and return it")

    def _do_Return(self, node: ast.Return, env: Env) -> Exits:
        if node.value is None:
            self.code.refuse(node, "return without a value", "return VALUE")
        found = self._value(node.value, env)
        results = found if type(found) is tuple else (found,)
        if len(self.above) == 1 and any(isinstance(one, Pair) for one in results):
            self.code.refuse(node, "a result that is complex", "return z.real, z.imag")
        return {"return": Exit(True, found)}

    def _do_Break(self, node: ast.Break, env: Env) -> Exits:
        return {"break": Exit(True, dict(env))}

    def _do_Continue(self, node: ast.Continue, env: Env) -> Exits:
        return {"continue": Exit(True, dict(env))}

    def _do_If(self, node: ast.If, env: Env) -> Exits:
        condition = self._truth(node.test, env)
        if isinstance(condition, bool):
            return self._block(node.body if condition else node.orelse, env)
        no_env = dict(env)
        with self._where(condition):
            yes = self._block(node.body, env)
        with self._where(opposite(condition)):
            no = self._block(node.orelse, no_env)
        if leaving(yes) is True:
            env.clear()
            env.update(no_env)
        elif leaving(no) is not True:
            merge(condition, env, no_env)
        return {kind: of_either(condition, yes.get(kind), no.get(kind))
                for kind in {**yes, **no}}
