"""The reductions of lazies as methods, with the parameters of NumPy's: x.mean(axis=0), x.any(); and
x.cumsum(), x.take(i) and their like.

Every one of them is also a function, gd.mean(x, axis=0), whose module has its text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt

from .graph import Held, Node
from .._functions.reducing import Axis, Initial, place, reduced, spread

if TYPE_CHECKING:
    from .operands import Operand


class Reductions(Held):
    """What Lazy inherits. axis None: all axes; out: where the result is computed to at once, and
    what is given back then."""

    __slots__ = ()

    @classmethod
    def _of(cls, node: Node) -> Self:
        raise NotImplementedError

    def _reduced(self, node: Node, out: object) -> Self:
        made = self._of(node)
        if out is None:
            return made
        from .results import compute_into
        return compute_into((made,), (out,))[0]  # type: ignore[no-any-return, arg-type]

    def sum(self, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
            keepdims: bool = False, initial: Initial = 0, where: Operand = True) -> Self:
        """The sum along axes; see gd.sum()."""
        return self._reduced(reduced("sum", self, axis, keepdims, where=where, dtype=dtype,
                                     initial=initial), out)

    def prod(self, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
             keepdims: bool = False, initial: Initial = 1, where: Operand = True) -> Self:
        """The product along axes; see gd.prod()."""
        return self._reduced(reduced("prod", self, axis, keepdims, where=where, dtype=dtype,
                                     initial=initial), out)

    def mean(self, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
             keepdims: bool = False, *, where: Operand = True) -> Self:
        """The mean along axes; see gd.mean()."""
        return self._reduced(reduced("mean", self, axis, keepdims, where=where, dtype=dtype), out)

    def var(self, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
            ddof: float = 0, keepdims: bool = False, *, where: Operand = True,
            mean: None = None, correction: float | None = None) -> Self:
        """The variance along axes; see gd.var()."""
        return self._reduced(spread("var", self, axis, dtype, ddof, keepdims, where, mean,
                                    correction), out)

    def std(self, axis: Axis = None, dtype: npt.DTypeLike | None = None, out: object = None,
            ddof: float = 0, keepdims: bool = False, *, where: Operand = True,
            mean: None = None, correction: float | None = None) -> Self:
        """The standard deviation along axes; see gd.std()."""
        return self._reduced(spread("std", self, axis, dtype, ddof, keepdims, where, mean,
                                    correction), out)

    def min(self, axis: Axis = None, out: object = None, keepdims: bool = False,
            initial: Initial = None, where: Operand = True) -> Self:
        """The smallest element along axes; see gd.min()."""
        return self._reduced(reduced("min", self, axis, keepdims, where=where, initial=initial),
                             out)

    def max(self, axis: Axis = None, out: object = None, keepdims: bool = False,
            initial: Initial = None, where: Operand = True) -> Self:
        """The largest element along axes; see gd.max()."""
        return self._reduced(reduced("max", self, axis, keepdims, where=where, initial=initial),
                             out)

    def argmin(self, axis: int | None = None, out: object = None, *,
               keepdims: bool = False) -> Self:
        """Where the smallest element is; see gd.argmin()."""
        return self._reduced(place("argmin", self, axis, keepdims), out)

    def argmax(self, axis: int | None = None, out: object = None, *,
               keepdims: bool = False) -> Self:
        """Where the largest element is; see gd.argmax()."""
        return self._reduced(place("argmax", self, axis, keepdims), out)

    def any(self, axis: Axis = None, out: object = None, keepdims: bool = False, *,
            where: Operand = True) -> Self:
        """Whether one element along axes is not zero; see gd.any()."""
        return self._reduced(reduced("any", self, axis, keepdims, where=where), out)

    def all(self, axis: Axis = None, out: object = None, keepdims: bool = False, *,
            where: Operand = True) -> Self:
        """Whether no element along axes is zero; see gd.all()."""
        return self._reduced(reduced("all", self, axis, keepdims, where=where), out)

    def cumsum(self, axis: int | None = None, dtype: npt.DTypeLike | None = None,
               out: object = None) -> Self:
        """The running sum along an axis; see gd.cumsum()."""
        from .._functions.scans import scanned
        return self._reduced(scanned("cumsum", self, axis, dtype), out)

    def cumprod(self, axis: int | None = None, dtype: npt.DTypeLike | None = None,
                out: object = None) -> Self:
        """The running product along an axis; see gd.cumprod()."""
        from .._functions.scans import scanned
        return self._reduced(scanned("cumprod", self, axis, dtype), out)

    def take(self, indices: Operand, axis: int | None = None, out: object = None,
             mode: str = "raise") -> Self:
        """Elements by their indices; see gd.take()."""
        from .._functions.counts import taken
        return self._reduced(taken(self, indices, axis, mode), out)

    def dot(self, b: Operand, out: object = None) -> Self:
        """The matrix product with b; see gd.dot()."""
        from .._functions.products import dotted
        return self._reduced(dotted(self, b), out)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """Elements on a diagonal; see gd.diagonal()."""
        from .._functions.einsum import diagonal
        return diagonal(self, offset, axis1, axis2)  # type: ignore[return-value, arg-type]

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1,
              dtype: npt.DTypeLike | None = None, out: object = None) -> Self:
        """The sum of a diagonal; see gd.trace()."""
        from .._functions.einsum import trace
        return trace(self, offset, axis1, axis2, dtype, out)  # type: ignore[return-value, arg-type]

    def argsort(self, axis: int | None = -1, kind: str | None = None, order: None = None, *,
                stable: bool | None = None) -> Self:
        """The indices that sort along an axis; see gd.argsort()."""
        from .._functions.sorting import argsort
        x: Any = self
        return argsort(x, axis, kind, order, stable=stable)  # type: ignore[return-value]

    def searchsorted(self, v: Operand, side: str = "left", sorter: Operand | None = None) -> Self:
        """Where elements would be put into this; see gd.searchsorted()."""
        from .._functions.counts import searched
        return self._of(searched(self, v, side, sorter))
