"""Lazies for readers: repr(), a table for notebooks, and what an error says of the expression that
it is about."""

import math
from html import escape
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
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


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


def table(lazy: "Lazy") -> str:
    """The same as HTML, with what a reader of a notebook asks for. Nothing is computed."""
    node = lazy._node
    shape = of_program(node.shape)
    dtype = _dtype_text(lazy).strip() or (node.dtype.name if isinstance(node, Source) else "")
    rows = [("dtype", dtype), ("shape", str(shape))]
    if dtype and None not in shape:
        rows.append(("size", _size(math.prod(shape) * np.dtype(dtype).itemsize)))
    if isinstance(node, Source):
        rows += [("chunks", str(chunks))] if (chunks := _chunks(node)) else []
        rows.append(("is", node.text()))
    else:
        [text], sources = written([node])
        rows.append(("is", _short(text)))
        rows += [(name, _source_text(source)) for name, source in [*sources.items()][:_MAX_SOURCES]]
    cells = "".join([f"<tr><th>{escape(name)}</th><td><code>{escape(value)}</code></td></tr>"
                     for name, value in rows if value])
    return f"<table><caption>Lazy</caption>{cells}</table>"


def _size(n_bytes: int) -> str:
    i = min((max(n_bytes, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{n_bytes / 1024**i:.3g} {_UNITS[i]}" if i else f"{n_bytes} bytes"


def _chunks(source: Source) -> tuple[int, ...] | None:
    """Of a file's array that is stored in chunks and shown as a whole."""
    from .leaves import FileSource
    if not isinstance(source, FileSource):
        return None
    from .._files import list as listed
    try:
        [found] = [one for one in listed(source.place) if one.kind == "array"]
    except (errors.Error, ValueError):
        return None
    return found.chunks if found.shape == source.shape else None


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
