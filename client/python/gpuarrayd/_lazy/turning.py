"""The methods of lazies that only turn or reshape: T, transpose(), reshape() and the like.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .graph import Held

if TYPE_CHECKING:
    from .array import Lazy


class Turning(Held):
    """What Lazy inherits."""

    __slots__ = ()

    @property
    def T(self) -> Lazy:  # noqa: N802
        """With its axes reversed; nothing is copied."""
        return self.transpose()

    @property
    def mT(self) -> Lazy:  # noqa: N802
        """With its last two axes exchanged."""
        return self.swapaxes(-1, -2)

    @property
    def real(self) -> Lazy:
        """The lazy itself: numbers are real here."""
        return self  # type: ignore[return-value]

    @property
    def imag(self) -> Lazy:
        """Zeros: numbers are real here."""
        from .._functions.derived import imag
        return imag(self)  # type: ignore[arg-type]

    def conj(self) -> Lazy:
        """The lazy itself: numbers are real here."""
        return self  # type: ignore[return-value]

    conjugate = conj

    def transpose(self, *axes: Any) -> Lazy:
        """With its axes in another order; without `axes` reversed. Axes as of NumPy: several
        arguments, or one tuple."""
        from .moves import transpose
        order: Sequence[int] | None = axes or None
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            order = axes[0]
        return transpose(self, order)  # type: ignore[arg-type]

    def swapaxes(self, axis1: int, axis2: int, /) -> Lazy:
        """With two axes exchanged."""
        from .moves import swapaxes
        return swapaxes(self, axis1, axis2)  # type: ignore[arg-type]

    def reshape(self, *shape: Any, order: str = "C") -> Lazy:
        """With other axes, the elements in C order. Sizes as of NumPy: several arguments, or one
        tuple."""
        from .reshaping import reshape
        return reshape(self, shape[0] if len(shape) == 1 else shape,  # type: ignore[arg-type]
                       order)

    def ravel(self, order: str = "C") -> Lazy:
        """With one axis."""
        from .reshaping import ravel
        return ravel(self, order)  # type: ignore[arg-type]

    def flatten(self, order: str = "C") -> Lazy:
        """As ravel(), and a lazy of its own."""
        found: Lazy = copy.copy(self.ravel(order))
        return found

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Lazy:
        """Without axes of length 1, or without those that are named."""
        from .moves import squeeze
        return squeeze(self, axis)  # type: ignore[arg-type]
