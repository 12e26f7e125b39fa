"""NumPy's indexing by arrays and masks: x[idx], x[:, idx, 3:5], x[mask], x[i, j].

What is basic in a key is done first, and gives a part in which the arrays' axes are whole. The
shape of the indices comes where the first of them was, or in front where something stands between
them. Several arrays, which are broadcast, become one of places in their axes, as one axis.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from .. import errors
from .graph import Held, Node, Shape
from .leaves import ArraySource
from .picked import NoIndex, indices_of, is_mask, picked, positions_of
from .streaming.unbounded import UNBOUNDED
from .views import permuted, viewed

Basic: TypeAlias = Callable[[Node, object], Node]
_Key: TypeAlias = int | slice | None | Node  # Ellipsis has become slices


def is_fancy(key: object) -> bool:
    """Whether a key has arrays or lists. Scalars of bool are for nobody."""
    return any(isinstance(part, (Held, list, tuple, range)) or hasattr(type(part), "__array__")
               and not isinstance(part, np.generic)
               for part in (key if isinstance(key, tuple) else (key,)))


def fancy(node: Node, key: object, basic: Basic) -> Node:
    """The node of node[key]. basic: what gives the node of a basic key.

    Raises
    ------
    IndexError
        As NumPy.
    Unsupported
        Several arrays, of which one is a mask that is not in memory.
    """
    keys = _expanded([_read(part) for part in (key if isinstance(key, tuple) else (key,))],
                     node.shape)
    first, is_apart = _place(keys)
    plain: list[object] = []
    arrays: list[tuple[Node, int, int]] = []  # with the first of its axes, and how many they are
    axis = at = 0  # of the node; of the part
    for one in keys:
        if one is _NOTHING:
            continue
        if not isinstance(one, Node):
            plain.append(one)
            axis += one is not None
            at += not isinstance(one, int)
            continue
        n = _n_axes(one)
        if is_mask(one):
            _check_mask(one, node.shape, axis)
        if n == 0:  # a mask of one element, along an axis of its own
            one, n = viewed(one, (), ((-1, 1, 0),)), 1
            plain.append(None)
        else:
            plain += [slice(None)] * n
            axis += n
        arrays.append((one, at, n))
        at += n
    part = basic(node, tuple(plain))
    if not arrays:  # all had no axes, and are numbers
        return part
    if len(arrays) == 1:
        return _by_one(part, *arrays[0], is_apart)
    return _by_several(part, arrays, 0 if is_apart else first)


def _read(part: Any) -> Any:
    """Arrays as nodes; those without axes as numbers, where they are here."""
    if part is None or part is Ellipsis or isinstance(part, slice) or not is_fancy((part,)):
        return part
    found = indices_of(part)
    if isinstance(found, ArraySource) and not found.shape and found.dtype.kind != "b":
        return int(found.array)
    return found


def _n_axes(one: object) -> int:
    """That a part of a key stands for."""
    if isinstance(one, Node):
        return len(one.shape) if is_mask(one) else 1
    return int(one is not None)


def _expanded(keys: list[Any], shape: Shape) -> list[_Key]:
    """With slices for the ellipsis, and for axes that are not named."""
    if sum(one is Ellipsis for one in keys) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    n_named = sum(_n_axes(one) for one in keys if one is not Ellipsis)
    if n_named > len(shape):
        raise IndexError(f"too many indices: the array is {len(shape)}-dimensional, but {n_named} "
                         "were indexed")
    rest = [slice(None)] * (len(shape) - n_named)
    if not any(one is Ellipsis for one in keys):
        return [*keys, *rest]
    at = next(i for i, one in enumerate(keys) if one is Ellipsis)
    return [*keys[:at], *(rest or [_NOTHING]), *keys[at + 1:]]


_NOTHING: Any = Ellipsis  # of no axes, which stands between arrays all the same


def _place(keys: list[Any]) -> tuple[int, bool]:
    """Which axis of the result the indices' first is, and whether they are in front because
    something stands between them. Integers beside arrays are indices, too."""
    chosen = [i for i, one in enumerate(keys) if isinstance(one, (int, np.integer, Node))
              or hasattr(type(one), "__index__")]
    before = sum(one is not _NOTHING for one in keys[:chosen[0]])
    return before, chosen[-1] - chosen[0] >= len(chosen)


def _check_mask(mask: Node, shape: Shape, axis: int) -> None:
    if UNBOUNDED in shape[axis:axis + len(mask.shape)]:
        return  # which is refused when elements are picked
    for i, size in enumerate(mask.shape):
        if shape[axis + i] != size:
            raise errors.BadIndex(
                f"boolean index did not match the array along axis {axis + i}; its size is "
                f"{shape[axis + i]}, that of the mask {size}", argument="[]",
                expected=f"a mask of shape {shape[axis:axis + len(mask.shape)]}",
                found=str(mask.shape))


def _by_one(part: Node, one: Node, at: int, n: int, is_apart: bool) -> Node:
    where: Node = positions_of(one) if is_mask(one) else one
    if is_apart:
        part = permuted(part, [*range(at, at + n), *range(at), *range(at + n, len(part.shape))])
        at = 0
    return picked(part, where, at, n)


def _by_several(part: Node, arrays: list[tuple[Node, int, int]], first: int) -> Node:
    chosen: list[int] = []
    given: list[Any] = []
    for one, at, n in arrays:
        array: Any = one.array if isinstance(one, ArraySource) else None
        if is_mask(one) and not isinstance(array, np.ndarray):
            raise errors.Unsupported(
                "of several arrays as indices a mask is in memory: compute() it, or pick along one "
                "axis after the other, x[mask][:, j]", argument="[]", expected="an ndarray",
                found=type(one).__name__)
        chosen += range(at, at + n)
        given += np.nonzero(array) if is_mask(one) else [
            array if isinstance(array, np.ndarray) else one]
    sizes = tuple([part.shape[axis] for axis in chosen])
    rest = [axis for axis in range(len(part.shape)) if axis not in chosen]
    part = permuted(part, [*rest[:first], *chosen, *rest[first:]])
    places = _computed(given, sizes) if any(isinstance(one, Node) for one in given) else \
        ArraySource(_flat(given, sizes))
    return picked(part, places, first, len(chosen))


def _computed(given: list[Any], sizes: Shape) -> Node:
    """Places in the axes as one, of indices that are computed; out of bounds is behind the end."""
    from .._functions.functions import where
    from .array import Lazy, lazy
    places, is_there = lazy(0), lazy(True)
    for one, size in zip(given, sizes, strict=True):
        index = Lazy._of(one).astype("i8") if isinstance(one, Node) else lazy(one.astype("i8"))
        is_there = is_there & (index >= -size) & (index < size)
        places = places * size + where(index < 0, index + size, index)
    return where(is_there, places, math.prod(sizes))._node


def _flat(given: list[Any], sizes: Shape) -> Any:
    """Places in the axes as one."""
    try:
        broad = np.broadcast_arrays(*given)
    except ValueError:
        shapes = " ".join(str(one.shape) for one in given)
        raise errors.BadIndex(f"indexing arrays could not be broadcast together with shapes "
                              f"{shapes}", argument="[]", expected="shapes that broadcast",
                              found=shapes) from None
    places = np.zeros(broad[0].shape, np.int64)
    for i, (one, size) in enumerate(zip(broad, sizes, strict=True)):
        wrong = np.argwhere((one < -size) | (one >= size)) if size else np.argwhere(one == one)
        if len(wrong):
            place = tuple(map(int, wrong[0]))
            raise errors.BadIndex(
                f"index {one[place]} at place {place} of indexing array {i} is out of bounds for "
                f"an axis of size {size}", argument="[]", expected=f"{-size} to {size - 1}",
                found=f"{one[place]} at place {place}")
        places *= size
        places += np.where(one < 0, one.astype(np.int64) + size, one.astype(np.int64))
    return places


__all__ = ["NoIndex", "fancy", "is_fancy"]
