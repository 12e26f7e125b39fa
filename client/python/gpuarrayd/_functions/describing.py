"""The texts of functions that share their parameters: those of a module are in its own text, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def describe(text: str, functions: Iterable[Callable[..., Any]]) -> None:
    """Adds to the text of each function what the module's says of its parameters, of what comes
    back and of errors."""
    _, _, rest = text.partition("Parameters\n----------\n")
    listed, _, after = rest.partition("\nReturns\n")
    entries: list[str] = []
    for line in listed.splitlines():
        if line.startswith(" "):
            entries[-1] += f"\n{line}"
        else:
            entries.append(line)
    for function in {id(one): one for one in functions}.values():
        code = function.__code__
        own = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        told = [one for one in entries if not {*one.split(" :")[0].split(", ")}.isdisjoint(own)]
        added = "\n".join(["Parameters", "----------", *told, "", "Returns", after.rstrip()])
        function.__doc__ = f"{function.__doc__}\n\n    " + added.replace("\n", "\n    ") + "\n    "
