"""The operators of lazies: Python's, with NumPy's meaning, reflected ones too.

None of them computes. What the other operand may be is told in operands.py; what is no array at
all is left to the other side, and then to Python, to refuse.
"""

from __future__ import annotations

from typing import Any, Self

from .. import errors
from .graph import Held, Node
from .operands import Operand, call, is_operand, pair


class Operators(Held):
    """What Lazy inherits. Every result is a lazy of the shape that NumPy's would have."""

    __slots__ = ()

    @classmethod
    def _of(cls, node: Node) -> Self:
        raise NotImplementedError

    def _operated(self, op: str, left: object, right: object) -> Any:
        """The result of an operator of two; self is one of its sides."""
        if not is_operand(right if left is self else left):
            return NotImplemented
        return self._of(call(op, left, right))

    def _function(self, op: str, *operands: object, **options: object) -> Self:
        return self._of(call(op, *operands, **options))

    def __add__(self, other: Operand) -> Self:
        return self._operated("add", self, other)  # type: ignore[no-any-return]

    def __radd__(self, other: Operand) -> Self:
        return self._operated("add", other, self)  # type: ignore[no-any-return]

    def __sub__(self, other: Operand) -> Self:
        return self._operated("subtract", self, other)  # type: ignore[no-any-return]

    def __rsub__(self, other: Operand) -> Self:
        return self._operated("subtract", other, self)  # type: ignore[no-any-return]

    def __mul__(self, other: Operand) -> Self:
        return self._operated("multiply", self, other)  # type: ignore[no-any-return]

    def __rmul__(self, other: Operand) -> Self:
        return self._operated("multiply", other, self)  # type: ignore[no-any-return]

    def __truediv__(self, other: Operand) -> Self:
        return self._operated("divide", self, other)  # type: ignore[no-any-return]

    def __rtruediv__(self, other: Operand) -> Self:
        return self._operated("divide", other, self)  # type: ignore[no-any-return]

    def __floordiv__(self, other: Operand) -> Self:
        return self._operated("floor_divide", self, other)  # type: ignore[no-any-return]

    def __rfloordiv__(self, other: Operand) -> Self:
        return self._operated("floor_divide", other, self)  # type: ignore[no-any-return]

    def __mod__(self, other: Operand) -> Self:
        return self._operated("remainder", self, other)  # type: ignore[no-any-return]

    def __rmod__(self, other: Operand) -> Self:
        return self._operated("remainder", other, self)  # type: ignore[no-any-return]

    def __and__(self, other: Operand) -> Self:
        return self._operated("bitwise_and", self, other)  # type: ignore[no-any-return]

    def __rand__(self, other: Operand) -> Self:
        return self._operated("bitwise_and", other, self)  # type: ignore[no-any-return]

    def __or__(self, other: Operand) -> Self:
        return self._operated("bitwise_or", self, other)  # type: ignore[no-any-return]

    def __ror__(self, other: Operand) -> Self:
        return self._operated("bitwise_or", other, self)  # type: ignore[no-any-return]

    def __xor__(self, other: Operand) -> Self:
        return self._operated("bitwise_xor", self, other)  # type: ignore[no-any-return]

    def __rxor__(self, other: Operand) -> Self:
        return self._operated("bitwise_xor", other, self)  # type: ignore[no-any-return]

    def __lshift__(self, other: Operand) -> Self:
        return self._operated("left_shift", self, other)  # type: ignore[no-any-return]

    def __rlshift__(self, other: Operand) -> Self:
        return self._operated("left_shift", other, self)  # type: ignore[no-any-return]

    def __rshift__(self, other: Operand) -> Self:
        return self._operated("right_shift", self, other)  # type: ignore[no-any-return]

    def __rrshift__(self, other: Operand) -> Self:
        return self._operated("right_shift", other, self)  # type: ignore[no-any-return]

    def __pow__(self, other: Operand, modulus: None = None) -> Self:
        if modulus is not None:
            raise errors.Unsupported("pow() with a modulus is not computed", argument="pow",
                                     expected="pow(x, y)", found="pow(x, y, modulus)")
        return self._operated("power", self, other)  # type: ignore[no-any-return]

    def __rpow__(self, other: Operand, modulus: None = None) -> Self:
        return self._operated("power", other, self)  # type: ignore[no-any-return]

    def __divmod__(self, other: Operand) -> tuple[Self, Self]:
        return self._divmod(self, other)  # type: ignore[no-any-return]

    def __rdivmod__(self, other: Operand) -> tuple[Self, Self]:
        return self._divmod(other, self)  # type: ignore[no-any-return]

    def _divmod(self, left: object, right: object) -> Any:
        if not is_operand(right if left is self else left):
            return NotImplemented
        first, second = pair("divmod", left, right)
        return self._of(first), self._of(second)

    def __lt__(self, other: Operand) -> Self:
        return self._operated("less", self, other)  # type: ignore[no-any-return]

    def __le__(self, other: Operand) -> Self:
        return self._operated("less_equal", self, other)  # type: ignore[no-any-return]

    def __gt__(self, other: Operand) -> Self:
        return self._operated("greater", self, other)  # type: ignore[no-any-return]

    def __ge__(self, other: Operand) -> Self:
        return self._operated("greater_equal", self, other)  # type: ignore[no-any-return]

    def __eq__(self, other: Operand) -> Self:  # type: ignore[override]
        return self._operated("equal", self, other)  # type: ignore[no-any-return]

    def __ne__(self, other: Operand) -> Self:  # type: ignore[override]
        return self._operated("not_equal", self, other)  # type: ignore[no-any-return]

    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Self:
        return self._function("negative", self)

    def __pos__(self) -> Self:
        return self._function("positive", self)

    def __abs__(self) -> Self:
        return self._function("absolute", self)

    def __invert__(self) -> Self:
        return self._function("invert", self)

    def __round__(self, ndigits: int | None = None) -> Self:
        return self._function("round", self, decimals=ndigits)

    def __matmul__(self, other: Operand) -> Self:
        return self._multiplied(self, other)  # type: ignore[no-any-return]

    def __rmatmul__(self, other: Operand) -> Self:
        return self._multiplied(other, self)  # type: ignore[no-any-return]

    def _multiplied(self, left: object, right: object) -> Any:
        if not is_operand(right if left is self else left):
            return NotImplemented
        from .._functions.products import multiplied
        return self._of(multiplied(left, right))
