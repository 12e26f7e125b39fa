"""NumPy's basic indexing, worked out without an array.

A selection is a row of items: an int takes one element of an axis and drops it, (start, step,
count) takes several, None makes a new axis of size 1. The items that are not None stand for the
axes of what is selected from, in order, each once. So a key is read once (items_of), two of them
are made one (composed), one is carried over to an array that broadcasts to the shape it was meant
for (carried), and any of them is written as text for a file's name or as a key for an array.
"""

import operator
from typing import Any, TypeAlias

import numpy as np

from .. import errors
from .graph import Held, Shape

Several: TypeAlias = tuple[int, int, int]
Item: TypeAlias = int | None | Several
Items: TypeAlias = tuple[Item, ...]


def items_of(key: object, shape: Shape) -> Items:
    """A key between brackets, for an array of this shape.

    IndexError: NumPy's, for what is out of bounds or too much. Unsupported: True and False as keys.
    """
    keys = key if isinstance(key, tuple) else (key,)
    for part in keys:
        _check(part)
    n_named = sum(part is not None and part is not Ellipsis for part in keys)
    if n_named > len(shape):
        raise IndexError(f"too many indices: the array is {len(shape)}-dimensional, but {n_named} "
                         "were indexed")
    if sum(part is Ellipsis for part in keys) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not any(part is Ellipsis for part in keys):
        keys = (*keys, Ellipsis)
    items: list[Item] = []
    axis = 0
    for part in keys:
        if part is None:
            items.append(None)
            continue
        if part is Ellipsis:
            rest = len(shape) - n_named
            items += [(0, 1, size) for size in shape[axis:axis + rest]]
            axis += rest
            continue
        items.append(_item(part, shape[axis], axis))
        axis += 1
    return tuple(items)


def _check(part: object) -> None:
    if part is None or part is Ellipsis or isinstance(part, slice):
        return
    if isinstance(part, (Held, bool, np.bool_, np.ndarray, list, tuple)):
        raise errors.Unsupported(
            "a single True or False is no index here; gd.where(mask, x, y) chooses element by "
            "element", argument="[]",
            expected="integers, slices, ..., None, arrays and masks", found=type(part).__name__)
    if not hasattr(type(part), "__index__"):
        raise IndexError("only integers, slices (`:`), ellipsis (`...`) and None are indices here, "
                         f"not {type(part).__name__}")


def _end(end: Any) -> Any:
    """Of a slice: a lazy integer is computed."""
    is_lazy = isinstance(end, Held)
    return int(end) if is_lazy and end.dtype.kind in "iu" else end


def _item(part: object, size: int, axis: int) -> Item:
    if isinstance(part, slice):
        start, stop, step = slice(_end(part.start), _end(part.stop),
                                  _end(part.step)).indices(size)
        return start, step, len(range(start, stop, step))
    index = operator.index(part)  # type: ignore[arg-type]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    return index + size if index < 0 else index


def is_all(items: Items, shape: Shape) -> bool:
    """Whether nothing changes."""
    return items == tuple((0, 1, size) for size in shape)


def shape_of(items: Items) -> Shape:
    """Of what is selected."""
    return tuple(1 if item is None else item[2] for item in items if not isinstance(item, int))


def composed(first: Items, then: Items) -> Items:
    """The one selection that does what both do, one after the other; `then` selects something."""
    items: list[Item] = []
    rest = list(first)
    for item in then:
        if item is None:
            items.append(None)
            continue
        while isinstance(rest[0], int):
            items.append(rest.pop(0))
        below = rest.pop(0)
        if isinstance(below, tuple):
            start, step, _ = below
            items.append(start + item * step if isinstance(item, int)
                         else (start + item[0] * step, step * item[1], item[2]))
        elif not isinstance(item, int):  # of a new axis, its one element
            items.append(None)
    return (*items, *rest)


def carried(items: Items, shape: Shape, part: Shape) -> Items:
    """What to select from an array of shape `part`, which broadcasts to `shape`, so that the result
    broadcasts to what `items` select."""
    missing = len(shape) - len(part)
    found: list[Item] = []
    axis = 0
    for item in items:
        if item is None:
            if missing == 0 or axis > missing:
                found.append(None)
            continue
        if axis >= missing:
            is_spread = part[axis - missing] != shape[axis]
            found.append(item if not is_spread else 0 if isinstance(item, int) else (0, 1, 1))
        axis += 1
    return tuple(found)


def key_of(items: Items) -> tuple[slice | int | None, ...]:
    """As a key for an array."""
    return tuple(_slice(item) if isinstance(item, tuple) else item for item in items)


def _slice(item: Several) -> slice:
    start, step, count = item
    if count == 0:
        return slice(0, 0)
    stop = start + (count - 1) * step + (1 if step > 0 else -1)
    return slice(start, stop if stop >= 0 else None, step)


def text_of(items: Items, shape: Shape) -> str:
    """As text between brackets, for an array of this shape; empty where it is all of it."""
    if is_all(items, shape):
        return ""
    sizes = iter(shape)
    words = []
    for item in items:
        if item is None:
            words.append("None")
            continue
        size = next(sizes)
        words.append(str(item) if isinstance(item, int) else _slice_text(item, size))
    return f"[{', '.join(words)}]"


def _slice_text(item: Several, size: int) -> str:
    if item == (0, 1, size):
        return ":"
    found = _slice(item)
    stop = "" if found.stop is None else found.stop
    return f"{found.start}:{stop}" + (f":{found.step}" if found.step not in (None, 1) else "")


def items_of_text(text: str, shape: Shape) -> Items:
    """What stands between brackets behind a file's name."""
    keys: list[object] = []
    for word in text.split(","):
        word = word.strip()
        if word == "...":
            keys.append(Ellipsis)
        elif word in ("None", "newaxis"):
            keys.append(None)
        elif ":" in word:
            keys.append(slice(*[int(n) if n.strip() else None for n in word.split(":")]))
        elif word:
            keys.append(int(word))
    return items_of(tuple(keys), shape)
