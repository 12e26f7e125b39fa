"""gd.repeat(): many steps of time, as jobs from file to file."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Mapping
from typing import Any

from .evaluate import arguments, beyond
from .request import Request
from .._session import current
from ..errors import BadArgument

Path = str | os.PathLike[str]


def repeat(n: int, steps: str | Mapping[str, str], /, *, to: Path | Mapping[str, Path],
           steps_at_once: int | None = None, engine: str | None = None, priority: int = 0,
           label: str | None = None, mode: Any = None, **arrays: Any) -> Any:
    """Takes n steps of time, more than one job can, into a new file.

        lap = "lap(u) = near(u, 1, 0) + near(u, -1, 0) + near(u, 0, 1) + near(u, 0, -1) - 4*u; "
        gd.repeat(1000, {"u": lap + "u + 0.1*lap(u)"}, u=u, to="after.npy")

    A job takes up to 8 steps in one read and one write, and its files lie hidden beside the first
    of `to`; the same call goes on from the last job that was whole, whatever ended the one before.
    In one job, and among others, repeat(8, u = ...) is a part of an expression.

    Parameters
    ----------
    n : int
        1 or more.
    steps : dict, or str
        What a step makes of each array, of all as the step before has left them; in front of it
        there may be functions. A str is the step of the only array in **arrays.
    to : path, or dict of paths
        Where arrays go in the end, as of gd.evaluate(); of those not in a dict nothing is kept.
    steps_at_once : int, optional
        Of one job; without it 8, or as many as there is room for.
    engine, priority, label, mode
        As of gd.evaluate().
    **arrays
        What the arrays begin with, numbers too, and what else steps name.

    Returns
    -------
    Lazy, or dict of them
        The new files, as of gd.open().

    Raises
    ------
    BadArgument, LimitExceeded, BadExpression, BadShape
        It cannot be done; the message says where and why.
    KeyboardInterrupt
        Ctrl-C ends the job; the steps that are done stay for the next call.
    """
    mode = None if mode is None else beyond(mode, arrays)
    count = _count("n", n, 2**63)
    at_once = 0 if steps_at_once is None else _count("steps_at_once", steps_at_once, 2**32)
    if isinstance(steps, str):
        names = [name for name, value in arrays.items() if getattr(value, "ndim", 0) > 0]
        if len(names) != 1:
            raise BadArgument("steps is a text, and there is not one array that it could be of",
                              argument="steps", expected="a dict: name, step",
                              found=f"{len(names)} arrays")
        steps = {names[0]: steps}
    _check(steps)
    paths = dict(to) if isinstance(to, Mapping) else {next(iter(steps), ""): to}
    for name in paths:
        if name not in steps:
            raise BadArgument(f"to: '{name}' is none of the arrays that change", argument="to",
                              expected=", ".join(steps), found=name)
    texts = (*steps.values(), *steps)
    args = arguments(texts, arrays, sys._getframe(1))
    sources = Request([(text, None) for text in texts], args, [None] * len(texts), engine,
                      priority, label)._sources(current())
    wanted = [(text, name, os.fspath(paths[name]) if name in paths else None)
              for name, text in steps.items()]
    current().repeat(wanted, sources, engine, priority, label, (count, at_once), mode)
    from .._lazy import array as _lazy
    made = {name: _lazy.open(path) for name, path in paths.items()}
    return made if isinstance(to, Mapping) else made[next(iter(steps))]


def _check(steps: Any) -> None:
    """A text for each name, and one at least."""
    found = "an empty dict" if isinstance(steps, Mapping) and not steps else repr(steps)
    if not isinstance(steps, Mapping) or not steps:
        raise BadArgument(f"repeat: steps is {found}, which says nothing of what changes",
                          argument="steps", expected="a text, or a dict: name, text", found=found)
    for name, text in steps.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise BadArgument(f"repeat: a step is a text with the name of its array, not {text!r} "
                              f"of {name!r}", argument="steps", expected="a dict: name, text",
                              found=type(text if isinstance(name, str) else name).__name__)


def _count(name: str, value: Any, limit: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if not 0 < number < limit:
        raise BadArgument(f"repeat: {name} is {value!r}", argument=name, found=repr(value),
                          expected=f"an integer of 1 or more, below {limit}")
    return number
