"""Random numbers as nodes of the graph: parameters, size, seed and dtype, checked and written.

What is random is a function of (seed, an element's number in C order of the size) and of the
parameters; the distribution picks the stream of the seed. So a node has no state, and the same node
computed twice, in blocks, on any engine's threads, gives the same elements.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import errors
from .graph import Held, Node, Number, Random, Shape, Words, dtype_name
from .moves import array_of
from .operands import node_of

Size: TypeAlias = int | tuple[int, ...] | None

MAX_SEED = 2**64 - 1
_REQUIRED = frozenset(["integers", "bernoulli", "choice", "permutation"])


def drawn(op: str, parameters: Mapping[str, object], size: Size, seed: int,
          dtype: npt.DTypeLike | None, more: Words = ()) -> Random:
    """The node. dtype None: of a distribution with a single one. A parameter that must be given
    stands first, without its name."""
    words: Words = (*more, ("seed", str(seed_of(seed))))
    if dtype is not None:
        words = (*words, ("dtype", dtype_name(dtype)))
    parts = tuple([node_of(value) for value in parameters.values()])
    names = tuple(parameters)
    return Random(op, parts, names[1:] if op in _REQUIRED else names, size_of(size), words)


def seed_of(seed: object) -> int:
    """An integer from 0 to 2**64 - 1.

    Raises
    ------
    BadArgument
        It is another one, or no integer.
    """
    if isinstance(seed, SupportsIndex) and not isinstance(seed, (bool, np.bool_, np.ndarray)):
        found = operator.index(seed)
        if 0 <= found <= MAX_SEED:
            return found
    raise errors.BadArgument(f"seed is {seed!r}, not an integer from 0 to 2**64 - 1",
                             argument="seed", expected="0 to 18446744073709551615",
                             found=repr(seed))


def size_of(size: object) -> Shape | None:
    """A shape; None stays None."""
    if size is None:
        return None
    try:
        found: Shape
        if isinstance(size, SupportsIndex) and not isinstance(size, np.ndarray):
            found = (operator.index(size),)
        else:
            found = tuple([operator.index(one) for one in size])  # type: ignore[attr-defined]
    except TypeError:
        found = (-1,)
    if min(found, default=0) < 0:
        raise errors.BadShape(f"size is {size!r}, not a shape: an integer or a tuple of them, 0 or "
                              "more", argument="size", expected="an int or a tuple of ints",
                              found=repr(size))
    return found


def float_of(op: str, dtype: npt.DTypeLike) -> npt.DTypeLike:
    """float32 or float64.

    Raises
    ------
    Unsupported
        Another one.
    """
    if np.dtype(dtype) not in (np.dtype("f4"), np.dtype("f8")):
        raise errors.Unsupported(f"{op} is drawn as float64 or float32", argument="dtype",
                                 expected="float64 or float32", found=np.dtype(dtype).name)
    return dtype


def number_of(value: object) -> int | float | None:
    """A parameter's value where it is one number; None of arrays and lazies."""
    if isinstance(value, int):
        return value  # of any length
    node = node_of(value)
    return node.value if isinstance(node, Number) else None


def check(op: str, name: str, value: object, low: float, high: float = math.inf) -> None:
    """Raises BadArgument where a parameter that is a number is not from low to high."""
    found = number_of(value)
    if found is not None and not low <= found <= high:
        wanted = f"{low:g} or more" if high == math.inf else f"{low:g} to {high:g}"
        raise errors.BadArgument(f"{op}: {name} is {found}, not {wanted}", argument=name,
                                 expected=wanted, found=str(found))


def row_of(op: str, value: Any) -> Node | None:
    """The array of choice(a) and permutation(a); None of a number.

    Raises
    ------
    Unsupported
        It has another number of axes than one.
    """
    if isinstance(value, SupportsIndex) and not isinstance(value, (np.ndarray, Held)):
        return None
    node = array_of(value)
    if len(node.shape) != 1:
        raise errors.Unsupported(
            f"{op} is of the integers below n or of the elements of an array of one axis",
            argument="a", expected="an integer, or one axis", found=f"shape {node.shape}")
    return node


def count_of(op: str, value: SupportsIndex) -> int:
    """The n of choice(n) and permutation(n)."""
    found = operator.index(value)
    if found < 1 and op == "choice" or found < 0:
        raise errors.BadArgument(f"{op}: a is {found}, not {'1' if op == 'choice' else '0'} or "
                                 "more", argument="a", expected="a count", found=str(found))
    return found


def check_range(low: object, high: object, dtype: npt.DTypeLike, endpoint: bool) -> None:
    """Raises BadArgument where the limits of integers, being numbers, hold none of the dtype."""
    first, last = number_of(low), number_of(high)
    found = np.dtype(dtype)
    if found.kind not in "iub":
        raise errors.Unsupported("integers are drawn in an integer dtype or bool",
                                 argument="dtype", expected="int8 to uint64 or bool",
                                 found=found.name)
    if first is not None and last is not None and first >= last + endpoint:
        raise errors.BadArgument(f"integers: low is {first} and high {last}, so there is none",
                                 argument="high", expected=f"more than {first}", found=f"{last}")
    limits = (0, 1) if found.kind == "b" else (np.iinfo(found).min, np.iinfo(found).max)
    for name, value, over in (("low", first, 0), ("high", last, int(not endpoint))):
        if value is not None and not limits[0] <= value <= limits[1] + over:
            raise errors.BadArgument(f"integers: {name} is {value}, beyond {found.name}",
                                     argument=name, expected=f"{limits[0]} to {limits[1] + over}",
                                     found=str(value))
