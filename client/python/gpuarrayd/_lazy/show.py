"""Lazies for readers: repr(), and what an error says of the expression that it is about."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _session, errors
from .graph import Source
from .text import written
from .streaming.unbounded import of_program

if TYPE_CHECKING:
    from .array import Lazy
    from .._jobs.request import Request

_MAX_CHARS = 400  # of an expression
_MAX_SOURCES = 6


def shown(lazy: "Lazy") -> str:
    """Shape, dtype and expression, without computing. No daemon is looked for where none is."""
    node = lazy._node
    if isinstance(node, Source):
        return f"<Lazy {node.dtype.name} {of_program(node.shape)}: {node.text()}>"
    [text], sources = written([node])
    named = [f"; {name} = {_source_text(source)}" for name, source in sources.items()]
    if len(named) > _MAX_SOURCES:
        named[_MAX_SOURCES:] = [f"; and {len(named) - _MAX_SOURCES} others"]
    return f"<Lazy {_dtype_text(lazy)}{of_program(node.shape)}: {_short(text)}{''.join(named)}>"


def _dtype_text(lazy: "Lazy") -> str:
    """With a blank behind it; nothing where it is not known."""
    if lazy._planned is None and _session._session is None:
        return ""
    try:
        return f"{lazy.dtype.name} "
    except errors.Error:
        return ""


def _source_text(source: Source) -> str:
    return f"{source.text()} {source.dtype.name} {of_program(source.shape)}"


def _short(text: str) -> str:
    if len(text) <= _MAX_CHARS:
        return text
    return f"{text[:_MAX_CHARS // 2]} ... {text[-_MAX_CHARS // 2:]}"


def notes(request: "Request", error: errors.Error) -> list[str]:
    """What is added to an error: the expressions in which the columns of its message count, and
    the argument that it names."""
    found = [f"in the expression {_short(text)!r}" for text, _ in request.outputs[:2]
             if "column" in error.message]
    argument = request.args.get(error.argument)
    if isinstance(argument, Source):
        found.append(f"{error.argument} is {_source_text(argument)}")
    elif argument is not None:
        try:
            known: Any = argument
            facts = f"{np.dtype(known.dtype).name} {known.shape}"
        except Exception:  # h5py's, of a dataset whose file is closed
            facts = ""
        found.append(f"{error.argument} is {type(argument).__name__} {facts}".rstrip())
    return found
