"""Who leaves a block of statements, and what names are where ways meet.

A mask is True or False, or a lazy of bools: which of the elements that are here leave.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from .values import Missing, both, chosen, either, opposite

Env: TypeAlias = dict[str, Any]


class Exit(NamedTuple):
    """Which elements leave, and with what: a value, or the values of names."""

    mask: Any
    what: Any


Exits: TypeAlias = dict[str, Exit]  # by "return", "break", "continue"


def leaving(exits: Exits, *others: Exit) -> Any:
    """Which leave in any way."""
    found: Any = False
    for one in (*exits.values(), *others):
        found = either(found, one.mask)
    return found


def of_either(condition: Any, yes: Exit | None, no: Exit | None) -> Exit:
    """Of two branches."""
    if yes is None or no is None:
        one, mask = (yes, condition) if no is None else (no, opposite(condition))
        assert one is not None
        return Exit(both(mask, one.mask), one.what)
    if yes.mask is True and no.mask is True:
        return Exit(True, merged(condition, yes.what, no.what))
    return Exit(either(both(condition, yes.mask), both(opposite(condition), no.mask)),
                merged(condition, yes.what, no.what))


def join(exits: Exits, gone: Any, left: Exits) -> None:
    """Adds those that left of the others, when `gone` had gone."""
    for kind, (mask, what) in left.items():
        before = exits.get(kind)
        if before is None:
            exits[kind] = Exit(both(opposite(gone), mask), what)
        else:
            new = mask if len(exits) == 1 else both(opposite(gone), mask)
            exits[kind] = Exit(either(before.mask, new), merged(before.mask, before.what, what))


def merged(condition: Any, yes: Any, no: Any) -> Any:
    """What exits have, of two."""
    if isinstance(yes, dict):
        found = dict(yes)
        merge(condition, found, no)
        return found
    return chosen(condition, yes, no)


def merge(condition: Any, env: Env, other: Env) -> None:
    """env becomes what names are where the condition holds in it, and else in the other."""
    missing = Missing("has no value on some way here")
    for name in {**env, **other}:
        env[name] = chosen(condition, env.get(name, missing), other.get(name, missing))
