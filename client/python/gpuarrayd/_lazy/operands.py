"""What may stand in a lazy expression, as nodes of its graph.

    lazy                          its own node
    int, float, bool              weak numbers, as in NumPy 2
    NumPy scalar                  a number with its dtype
    array of any kind, list       a source, read when the result is computed

Anything else is refused in the words of _arguments, or, under an operator, left to the other side.
"""

from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from .. import errors
from .graph import Call, Held, Node, number, strong
from .._arguments.refusals import check, is_buffer, is_dataset
from .fitting import check as check_fits, is_large, replaced
from .leaves import ArraySource

if TYPE_CHECKING:
    from .array import Lazy

Operand: TypeAlias = Union["Lazy", npt.ArrayLike]

_PLAIN = (int, float, bool)


def node_of(value: object) -> Node:
    """The node of any operand.

    Raises
    ------
    BadDtype, BadShape, BadArgument, Unsupported
        It cannot be computed; the message says what to use instead.
    OverflowError
        An integer beyond int64 and uint64.
    """
    if isinstance(value, Held):
        return value._node
    if isinstance(value, Node):
        return value
    if type(value) in _PLAIN:
        return number(value)  # type: ignore[arg-type]
    if isinstance(value, np.generic) and value.dtype.name in ("float64", "float32", "bool") \
            or isinstance(value, np.integer):
        return strong(value)
    if isinstance(value, _PLAIN) and not isinstance(value, np.generic):
        return number(value)
    return source_of(value)


def is_operand(value: object) -> bool:
    """Whether an operator takes it, or says what is wrong with it; else it is for the other side to
    answer. None is told to be wrong: of x == None Python would make False."""
    if value is None or isinstance(value, (Held, int, float, complex, np.generic, np.ndarray, list,
                                           tuple, range, str)):
        return True
    return hasattr(type(value), "__array__") or is_dataset(value) or is_buffer(value)


def call(op: str, *operands: object, **options: object) -> Call:
    """A function of the catalogue. Options that are None are not given."""
    given = {name: value for name, value in options.items() if value is not None}
    if any(map(is_large, (*operands, *given.values()))):
        n = len(operands)
        found = replaced(op, (*operands, *given.values()), tuple(given))
        operands, rest = tuple(found[:n]), found[n:]
        given = {name: value for name, value in zip(given, rest, strict=True) if value is not None}
    parts = tuple([node_of(value) for value in (*operands, *given.values())])
    check_fits(op, parts, tuple(given))
    return Call(op, parts, tuple(given))


def pair(op: str, *operands: object) -> tuple[Call, Call]:
    """A function of the catalogue with two results."""
    parts = tuple([node_of(value) for value in operands])
    check_fits(op, parts)
    return Call(op, parts, result=0), Call(op, parts, result=1)


def source_of(value: object, name: str = "x") -> ArraySource:
    """Of an array of this process. A number is one, too, of no dimensions and with its dtype."""
    if isinstance(value, (*_PLAIN, np.generic)):
        value = np.asarray(value)
    if isinstance(value, (list, tuple)) and any(isinstance(one, Held) for one in value):
        raise errors.Unsupported("a list of lazies is no array; gd.compute(x, y) computes several",
                                 argument="x", expected="an array or a number",
                                 found="a list of lazies")
    found = check(value, name)
    if is_dataset(found):
        from .._arguments import hdf5 as _h5py
        _h5py.check(found, name)
    return ArraySource(found)
