"""What Python and NumPy's users ask of arrays, and lazies do not answer by computing in silence.

Each of these would need the elements. They raise, and say what to write instead. So do arguments of
NumPy's functions that the daemon's have not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from .. import errors
from .graph import Held

try:
    from numpy.exceptions import AxisError
except ImportError:  # before NumPy 1.25
    from numpy import AxisError  # type: ignore[attr-defined, no-redef]


class NoNumber(errors.Unsupported, ValueError):
    """A number is asked of a lazy that has axes."""


class NoAttribute(errors.Unsupported, AttributeError):
    """An attribute of NumPy's arrays that lazies do not have."""


class NoAxis(errors.BadShape, AxisError):
    """An axis is out of range, or named twice."""


class Unanswered(Held):
    """What Lazy inherits."""

    __slots__ = ()

    def __iter__(self) -> NoReturn:
        raise errors.Unsupported("a lazy has no elements to go through: x.compute() has, and "
                                 "x[i] is a part of it", argument="iter")

    def __contains__(self, value: object) -> NoReturn:
        raise errors.Unsupported("whether a value is in a lazy is not known before it is computed: "
                                 "gd.count_nonzero(x == value).compute()", argument="in")

    def __getattr__(self, name: str) -> NoReturn:
        if name == "_data":  # NumPy's masked arrays ask for it, and would compute without it
            raise errors.Unsupported(
                "a masked array or a function of np.ma met a lazy, and masks are not computed: use "
                "x.filled(np.nan), or the data and the mask as two arguments", argument="np.ma",
                expected="an ndarray", found="a masked array")
        if not name.startswith("__") and hasattr(np.ndarray, name):
            raise NoAttribute(f"{name} of a lazy is not computed by the daemon; x.compute().{name} "
                              "is NumPy's", argument=name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def refuse_assignment() -> NoReturn:
    """x[key] = value, but for a number under a mask."""
    raise errors.Unsupported("a lazy cannot be assigned to, but for a number under a mask of its "
                             "shape: gd.where(mask, value, x) is one with other elements, and "
                             "y.compute(out=...) writes into an array or gd.open(path, \"r+\")",
                             argument="[]=", expected="x[mask] = number")


def refuse_number(kind: str, shape: tuple[int, ...]) -> NoReturn:
    """bool(x), float(x) or int(x) of a lazy with axes."""
    instead = "& | ~ and gd.where() choose element by element, gd.count_nonzero() counts" \
        if kind == "bool" else "np.sqrt and its like take lazies, math.sqrt does not"
    raise NoNumber(f"{kind}() of a lazy of shape {shape}, which is not one number: {instead}",
                   argument=kind, expected="shape ()", found=f"shape {shape}")


def refuse(function: str, others: Mapping[str, object]) -> None:
    """Of arguments that NumPy's function has and this has not; those left at None are none, nor is
    the device where all results lie."""
    for name, value in others.items():
        if value is not None and not (name == "device" and value == "cpu"):
            found = repr(value) if isinstance(value, (bool, int, float, str)) else type(value)
            raise errors.Unsupported(f"{function}: {name}= is not computed by the daemon",
                                     argument=name, found=f"{name}={found}")


def refuse_unusual(function: str, **given: tuple[object, object]) -> None:
    """Of arguments, each with the one value that it may have."""
    refuse(function, {name: value for name, (value, usual) in given.items() if value != usual})
