"""Loops in a function of numbers; see tracing.py."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from .._lazy.array import Lazy
from .._lazy.operands import node_of
from .expressions import Expressions
from .stepping import (INDEX, LEFT, MAX_STEPS, RETURNED, Facts, Followed, Loop, NoLoop, begun,
                       can_be_state, loaded)
from .values import (Choice, Missing, Pair, array_of, as_pair, both, chosen, either, flat,
                     is_number, joined, opposite)
from .ways import Env, Exit, Exits, join, leaving, merge

MAX_UNROLLED = 64
SHORT = 8  # and are unrolled


def _widened(names: Env, first: Env) -> Env:
    """Real values of what is complex before the loop are complex, too."""
    return {name: as_pair(value) if f"{name}.real" in first and can_be_state(value) else value
            for name, value in names.items()}


class Loops(Expressions):
    """What Tracer inherits."""

    def _block(self, statements: Sequence[ast.stmt], env: Env) -> Exits:
        raise NotImplementedError

    def _do_Return(self, node: ast.Return, env: Env) -> Exits:
        raise NotImplementedError

    def _set(self, target: ast.expr, value: Any, env: Env) -> None:
        raise NotImplementedError

    def _do_For(self, node: ast.For, env: Env) -> Exits:
        self._check_loop(node)
        items = self._items(node.iter, env)

        def begin(step: int) -> Any:
            self._set(node.target, items[step], env)
            return False

        if type(items) is range and len(items) > SHORT and not self.is_step and \
                isinstance(node.target, ast.Name) and not self._facts(node).needs_number:
            return self._stepped(node, env, len(items), items, begin)
        if len(items) > MAX_UNROLLED:
            what = "inside of a loop" if self.is_step else "over a tuple" \
                if type(items) is not range else "whose number is an index"
            self.code.refuse(node, f"a loop of {len(items)} steps {what}",
                             f"loops of at most {MAX_UNROLLED} there")
        return self._unrolled(node, env, len(items), begin)

    def _do_While(self, node: ast.While, env: Env) -> Exits:
        self._check_loop(node)
        is_known = True

        def begin(step: int) -> Any:
            nonlocal is_known
            condition = self._truth(node.test, env)
            is_known &= isinstance(condition, bool)
            if self.bound is None and (not is_known or step == MAX_UNROLLED):
                self.code.refuse(node, "while without a bound", "for step in range(1000): if not "
                                 "...: break, or bound=1000 of the decorator")
            return opposite(condition)
        if self.bound is not None and self.bound > SHORT and not self.is_step:
            return self._stepped(node, env, self.bound, None, begin)
        if self.bound is not None and self.bound > MAX_UNROLLED:
            self.code.refuse(node, f"a loop of {self.bound} steps inside of a loop",
                             f"loops of at most {MAX_UNROLLED} there")
        return self._unrolled(node, env, self.bound or MAX_UNROLLED + 1, begin)

    def _facts(self, node: ast.For | ast.While) -> Facts:
        found = self.code.facts.get(node)
        if found is None:
            found = self.code.facts[node] = Facts(self.code.tree, node)
        return found

    def _check_loop(self, node: ast.For | ast.While) -> None:
        if node.orelse:
            self.code.refuse(node.orelse[0], "else of a loop", "a name that says whether it broke")

    def _items(self, node: ast.expr, env: Env) -> Sequence[Any]:
        if isinstance(node, ast.Call) and self._function(node, env) is range:
            limits = [self._value(one, env) for one in node.args]
            if node.keywords:
                self.code.refuse(node, "range() with names", "range(start, stop, step)")
            for one, limit in zip(node.args, limits, strict=True):
                if self.is_trial and isinstance(limit, (Lazy, Choice)):
                    return [limit]
                if isinstance(limit, (bool, float)) or not is_number(limit):
                    self.code.refuse(one, "range() of what is not known here",
                                     "an integer constant and break, or give the function a number")
            try:
                return range(*limits)
            except (TypeError, ValueError) as error:
                self.code.refuse(node, str(error), "range(start, stop, step)")
        found = self._value(node, env)
        if type(found) is not tuple:
            self.code.refuse(node, "a loop over what is no range", "range(...) or a tuple")
        return found

    def _unrolled(self, node: ast.For | ast.While, env: Env, n_steps: int,
                  begin: Callable[[int], Any]) -> Exits:
        """begin: before a step, says which elements leave."""
        exits: Exits = {}
        gone: Any = False
        for step in range(n_steps):
            if gone is True:
                break
            with self._where(opposite(gone)):
                over = begin(step)
                join(exits, gone, {"break": Exit(over, dict(env))} if over is not False else {})
                gone = either(gone, over)
            if gone is True:
                break
            with self._where(opposite(gone)):
                left = self._block(node.body, env)
            _meet(env, left.pop("continue", None), leaving(left))
            join(exits, gone, left)
            gone = either(gone, leaving(left))
        broke = exits.pop("break", None)
        _meet(env, broke, gone)
        return exits

    # Of many steps.

    def _stepped(self, node: ast.For | ast.While, env: Env, n_steps: int,
                 items: range | None, begin: Callable[[int], Any]) -> Exits:
        """begin: as of _unrolled(), which loops are for that end at once, and, where they have few
        steps, that are too much for a step."""
        if n_steps > MAX_STEPS:
            self.code.refuse(node, f"a loop of {n_steps} steps", f"loops of at most {MAX_STEPS}")
        loop = Loop(n_steps)
        names = self._facts(node).names
        first = flat({name: env[name] for name in names
                      if isinstance(env.get(name), Pair) or can_be_state(env.get(name))})
        index: Any = items[0] if items is not None else None
        if self.is_trial:
            first = {name: array_of(value) for name, value in first.items()}
        else:
            def follow(names: Env) -> Followed:
                found = self._followed(node, {**env, **joined(names)}, index)
                return found._replace(names=flat(_widened(found.names, first)))
            first = self._made(node, begun, first, follow)
        own: Env = dict(env)
        states = joined({key: loop.state(key, value) for key, value in first.items()})
        for name in names:
            own[name] = states.get(name, Missing("has no value in a first step here"))
        if items is not None:
            index = loop.state(INDEX, items[0])
            loop.nexts[INDEX] = node_of(index + items.step)
        left = loop.state(LEFT, False, "bool")
        step = self._followed(node, own, index)
        step = step._replace(names=_widened(step.names, first))
        grown = {name: as_pair(env[name]) for name in names
                 if name in first and isinstance(step.names.get(name), Pair)}
        if grown:  # real numbers that become complex are so from the beginning on
            env.update(grown)
            return self._stepped(node, env, n_steps, items, begin)
        until = either(either(step.over, left if step.left is not False else False),
                       opposite(self.mask))
        if until is True:
            return self._unrolled(node, env, 1, begin)
        loop.until = node_of(until)
        try:
            loop.note(step, flat({name: step.names.get(name) for name in names}))
            return self._results(node, loop, step, env, items, first)
        except NoLoop as error:
            if n_steps <= MAX_UNROLLED:
                return self._unrolled(node, env, n_steps, begin)
            self.code.refuse(node, *error.args)

    def _followed(self, node: ast.For | ast.While, env: Env, index: Any) -> Followed:
        """One step."""
        mask, is_step, self.mask, self.is_step = self.mask, self.is_step, True, True
        own = dict(env)
        over: Any = False
        if isinstance(node, ast.While):
            over = opposite(self._truth(node.test, own))
        else:
            self._set(node.target, index, own)
        leads, statements = _parted(node)
        for one in leads:
            with self._where(opposite(over)):
                over = either(over, self._truth(one.test, own))
        left = self._block(statements, own)
        _meet(own, left.pop("continue", None), leaving(left))
        all_left = leaving(left)
        _meet(own, left.get("break"), all_left)
        self.mask, self.is_step = mask, is_step
        return Followed(over, own, all_left, left.get("return"))

    def _results(self, node: ast.For | ast.While, loop: Loop, step: Followed, env: Env,
                 items: range | None, first: Env) -> Exits:
        """What the names are behind the loop, and who has returned in it."""
        names = self._facts(node).names
        target = node.target.id if isinstance(node, ast.For) and isinstance(node.target, ast.Name) \
            else None
        leads, _ = _parted(node)
        returns = any(isinstance(one.body[0], ast.Return) for one in leads)
        wanted = self._facts(node).beside.intersection(names)
        is_wanted = target in wanted
        if returns:
            for one in (*leads, *([node.test] if isinstance(node, ast.While) else [])):
                wanted |= loaded(one).intersection(names) - {target or ""}
        flag = RETURNED if RETURNED in loop.nexts else LEFT
        flags = {LEFT, flag} if step.left is not False else set()
        keys = {name: [*flat({name: step.names.get(name)})] for name in names}
        found = loop.results([*[key for name in sorted(wanted) for key in keys.get(name, [name])],
                              *loop.values(), *sorted(flags),
                              *([INDEX] if items is not None and (returns or is_wanted) else [])])
        whole = joined(found)
        for name in names:
            is_there = name in whole and (keys[name][0] in first or name == target
                                          or step.over is False)
            env[name] = whole[name] if is_there else Missing(
                "is given a value in a loop that may not be run")
        exits: Exits = {}
        here = opposite(found[LEFT]) if flags else True  # those that no statement of a step let go
        if step.returned is not None:
            what = tuple([found[name] for name in loop.values()])
            exits["return"] = Exit(found[flag], what if type(step.returned.what) is tuple
                                   else what[0])
        if items is not None and INDEX in found:
            here = both(here, found[INDEX] != items[0] + len(items) * items.step)
            if is_wanted and target is not None:
                env[target] = chosen(here, found[INDEX], env[target])
        if returns:
            at = dict(env)
            if target is not None:
                at[target] = found[INDEX]
            self._lead_out(node, leads, at, here, exits)
        return exits

    def _lead_out(self, node: ast.For | ast.While, leads: list[ast.If], env: Env, here: Any,
                  exits: Exits) -> None:
        """Those that a step began with letting go: who of them returned, and what."""
        if isinstance(node, ast.While):
            with self._where(here):
                here = both(here, self._truth(node.test, env))
        for one in leads:
            is_last = one is leads[-1] and isinstance(node, ast.For)
            with self._where(here):
                condition = True if is_last else self._truth(one.test, env)
            statement = one.body[0]
            if isinstance(statement, ast.Return):
                with self._where(both(here, condition)):
                    left = self._do_Return(statement, env)
                mask = both(here, condition)
                join(exits, leaving(exits), {"return": Exit(mask, left["return"].what)})
            here = both(here, opposite(condition))


def _parted(node: ast.For | ast.While) -> tuple[list[ast.If], list[ast.stmt]]:
    """The statements that a loop's step begins with and that let go before it, and the others."""
    leads: list[ast.If] = []
    for one in node.body:
        if not (isinstance(one, ast.If) and len(one.body) == 1 and not one.orelse
                and isinstance(one.body[0], (ast.Break, ast.Return))):
            break
        leads.append(one)
    return leads, node.body[len(leads):]


def _meet(env: Env, exit: Exit | None, gone: Any) -> None:
    """env becomes what names are where those of an exit come back to it; gone: who does not."""
    if exit is None:
        return
    other = dict(exit.what)
    if either(gone, exit.mask) is not True:
        merge(exit.mask, other, env)
    env.clear()
    env.update(other)
