"""@gd.stencil: a function of an element's neighbours as one of arrays, computed in one pass."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from .. import errors
from .._functions.near import _MODES, near
from .._lazy.array import Lazy, lazy
from .._lazy.graph import Shape
from .function import Function
from .source import Code
from .tracing import Tracer
from .values import array_of, is_number
from .ways import Env

__all__ = ["stencil"]

Neighborhood: TypeAlias = Sequence[tuple[int, int]] | None
Names: TypeAlias = str | Sequence[str]
Value: TypeAlias = bool | int | float


class Around:
    """An array of which a kernel reads elements. array None: any, of which nothing is known.
    ndim, seen: how many indices and which offsets were used."""

    def __init__(self, array: Lazy | None, is_absolute: bool, mode: str, value: Any) -> None:
        self.array, self.is_absolute, self.mode, self.value = array, is_absolute, mode, value
        self.seen: set[tuple[int, ...]] = set()
        self._made: dict[tuple[int, ...], Any] = {}

    def at(self, offsets: tuple[int, ...]) -> Any:
        """The elements so far away; one element of what is indexed as usual."""
        if offsets not in self._made:
            if not self.is_absolute:
                self.seen.add(offsets)
            if self.array is None:
                self._made[offsets] = lazy(np.float64(0))
            elif self.is_absolute:
                self._made[offsets] = self.array[offsets]
            else:
                self._made[offsets] = near(self.array, *offsets, mode=self.mode, value=self.value) \
                    if any(offsets) else self.array
        return self._made[offsets]


class _Tracer(Tracer):
    """With arrays among the names."""

    def _of_Subscript(self, node: ast.Subscript, env: Env) -> Any:
        array = env.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if not isinstance(array, Around):
            return super()._of_Subscript(node, env)
        found = self._value(node.slice, env)
        offsets = found if type(found) is tuple else (found,)
        for one in offsets:
            if type(one) is not int and not (isinstance(one, np.integer) or self.is_trial and
                                             isinstance(one, Lazy)):
                self.code.refuse(node.slice, "an index that is not known here",
                                 "integers: a[-1, 0], or names of a loop over range()")
        if any(isinstance(one, Lazy) for one in offsets):
            return array.at(())
        wanted = array.array.ndim if array.array is not None else \
            len(next(iter(array.seen), offsets))
        if len(offsets) != wanted:
            name = ast.unparse(node.value)
            self.code.refuse(node.slice, f"{len(offsets)} indices of {name}, which has {wanted} "
                             "axes", "one index for each axis")
        return self._made(node, array.at, tuple([int(one) for one in offsets]))

    def _name(self, node: ast.Name, env: Env) -> Any:
        if isinstance(env.get(node.id), Around):
            self.code.refuse(node, f"{node.id} is an array here", f"one of its elements: "
                             f"{node.id}[0], {node.id}[0, 0]")
        return super()._name(node, env)


class Stencil(Function):
    """What @gd.stencil makes of a function of neighbours: one of arrays of one shape."""

    _by = "gd.stencil"
    _tracer = _Tracer

    def __init__(self, function: Callable[..., Any], mode: str | None, cval: Any,
                 neighborhood: Neighborhood, standard_indexing: Sequence[str], bound: int | None,
                 check: bool) -> None:
        self._mode, self._cval = mode, cval
        self._neighborhood = neighborhood
        self._absolute = frozenset(standard_indexing)
        code = Code(function, self._by)
        self._arrays = _subscripted(code)
        if not self._arrays - self._absolute:
            code.refuse(code.tree, f"{code.name} reads no neighbours", "a[-1, 0] of a parameter")
        for name in self._absolute - self._arrays:
            raise errors.BadArgument(f"standard_indexing names {name}, of which {code.name} reads "
                                     "no element", argument="standard_indexing",
                                     expected=", ".join(sorted(self._arrays)), found=name)
        super().__init__(function, None, bound, check)

    def _around(self, name: str, array: Lazy | None) -> Around:
        return Around(array, name in self._absolute, self._mode or "edge",
                      self._cval if self._mode == "constant" else 0)

    def _placeholders(self) -> Env:
        return {name: self._around(name, None) if name in self._arrays else one
                for name, one in super()._placeholders().items()}

    def _made(self, given: Env) -> tuple[Lazy, ...]:
        arguments = {name: self._around(name, lazy(one)) if name in self._arrays
                     else one if is_number(one) else lazy(one) for name, one in given.items()}
        around = {name: one for name, one in arguments.items()
                  if isinstance(one, Around) and not one.is_absolute}
        shape = _shape_of(around)
        found = self._traced(arguments)
        made = [lazy(array_of(one)) for one in (found if type(found) is tuple else (found,))]
        inside = self._inside(around, shape) if self._mode is None else None
        return tuple([self._bordered(one, inside, shape) for one in made])

    def _bordered(self, one: Lazy, inside: Any, shape: Shape) -> Lazy:
        from .._functions.functions import where
        from .._lazy.views import broadcast_to
        found = where(inside, one, self._cval) if inside is not None else one
        return found if found._node.shape == shape else Lazy._of(broadcast_to(found._node, shape))

    def _limits(self, around: dict[str, Around], ndim: int) -> list[tuple[int, int]]:
        """How far along each axis elements are read."""
        seen = [offsets for one in around.values() for offsets in one.seen] or [(0,) * ndim]
        limits = [(min(0, *each), max(0, *each)) for each in zip(*seen, strict=True)]
        if self._neighborhood is None:
            return limits
        if len(self._neighborhood) != ndim:
            raise errors.BadArgument(f"neighborhood has {len(self._neighborhood)} pairs for {ndim} "
                                     "axes", argument="neighborhood", expected=f"{ndim} pairs",
                                     found=str(len(self._neighborhood)))
        for axis, ((low, high), (first, last)) in enumerate(
                zip(limits, self._neighborhood, strict=True)):
            if low < first or high > last:
                raise errors.BadArgument(
                    f"{self._code.name} reads {low} to {high} along axis {axis}, beyond its "
                    f"neighborhood of {first} to {last}", argument="neighborhood",
                    expected=f"{low} to {high}", found=f"{first} to {last}")
        return [(min(first, 0), max(last, 0)) for first, last in self._neighborhood]

    def _inside(self, around: dict[str, Around], shape: Shape) -> Any:
        """Where all that is read is there, as a condition; None: everywhere."""
        found: Any = None
        for axis, (low, high) in enumerate(self._limits(around, len(shape))):
            if low or high:
                places = np.arange(shape[axis]).reshape((-1,) + (1,) * (len(shape) - axis - 1))
                one = lazy((places >= -low) & (places < shape[axis] - high))
                found = one if found is None else found & one
        return found

    # Comparing with Python.

    def _plain(self, given: Env) -> list[Any]:
        arrays = {name: np.asarray(one) for name, one in given.items() if name in self._arrays}
        relative = {name: one for name, one in arrays.items() if name not in self._absolute}
        shape = next(iter(relative.values())).shape
        around = {name: self._around(name, None) for name in relative}
        self._traced({name: around.get(name, one) for name, one in self._placeholders().items()
                      if name in given}, True)
        limits = self._limits(around, len(shape))
        pads = [(-low, high) for low, high in limits]
        padded = {name: _padded(one, pads, self._mode or "edge", self._cval)
                  for name, one in relative.items()}
        rows = []
        with np.errstate(all="ignore"):
            for index in np.ndindex(shape):
                if self._mode is None and any(
                        i + low < 0 or i + high >= n
                        for i, n, (low, high) in zip(index, shape, limits, strict=True)):
                    rows.append((self._cval,) * max(self._n_results, 1))
                    continue
                place = [i - low for i, (low, _) in zip(index, limits, strict=True)]
                elements = {name: _Relative(padded[name], place) if name in padded
                            else arrays.get(name, value) for name, value in given.items()}
                found = self._called(elements)
                rows.append(found if type(found) is tuple else (found,))
        return [np.array([row[i] for row in rows]).reshape(shape)
                for i in range(max(self._n_results, 1))]


class _Relative:
    """An array whose elements are counted from a place."""

    def __init__(self, array: np.ndarray[Any, Any], place: Sequence[int]) -> None:
        self.array, self.place = array, place

    def __getitem__(self, key: Any) -> Any:
        offsets = key if isinstance(key, tuple) else (key,)
        return self.array[tuple([i + k for i, k in zip(self.place, offsets, strict=True)])]


def _padded(array: np.ndarray[Any, Any], pads: Sequence[tuple[int, int]], mode: str,
            cval: Any) -> np.ndarray[Any, Any]:
    kwargs = {"constant_values": cval} if mode == "constant" else {}
    return np.pad(array, pads, mode, **kwargs)  # type: ignore[call-overload, no-any-return]


def _subscripted(code: Code) -> frozenset[str]:
    """The parameters of which elements are read."""
    return frozenset([node.value.id for node in ast.walk(code.tree)
                      if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
                      and node.value.id in code.parameters])


def _shape_of(around: dict[str, Around]) -> Shape:
    shapes = {name: one.array._node.shape for name, one in around.items() if one.array is not None}
    (first, shape), *others = shapes.items()
    for name, other in others:
        if other != shape:
            raise errors.BadShape(f"{first} has shape {shape} and {name} {other}; arrays whose "
                                  "neighbours are read have one shape", argument=name,
                                  expected=str(shape), found=str(other))
    return shape


@overload
def stencil(func_or_mode: Callable[..., Any], *, mode: str | None = None,
            cval: Value = 0, neighborhood: Neighborhood = None,
            standard_indexing: Names = (), bound: int | None = None,
            check: bool = False) -> Stencil: ...


@overload
def stencil(func_or_mode: str = "constant", *, mode: str | None = None,
            cval: Value = 0, neighborhood: Neighborhood = None,
            standard_indexing: Names = (), bound: int | None = None,
            check: bool = False) -> Callable[[Callable[..., Any]], Stencil]: ...


def stencil(func_or_mode: Any = "constant", *, mode: str | None = None, cval: Value = 0,
            neighborhood: Neighborhood = None, standard_indexing: Names = (),
            bound: int | None = None, check: bool = False) -> Any:
    """A function of an element's neighbours as a function of arrays, computed in one pass.

        @gd.stencil(mode="reflect")
        def smooth(a):
            return 0.5 * a[0, 0] + 0.125 * (a[-1, 0] + a[1, 0] + a[0, -1] + a[0, 1])

        gd.save("y.npy", smooth(gd.open("x.npy")))

    As Numba's: indices are relative to the element that is computed, and known when the function is
    called: integers, and names of loops over range(). Everything else in the function is as of
    gd.vectorize(); parameters without an index are numbers, or arrays that broadcast.

    Parameters
    ----------
    func_or_mode : callable or "constant"
        The function; Numba's one mode, which is the default.
    mode : {"edge", "constant", "reflect", "symmetric", "wrap"}, optional
        What there is beyond the arrays' ends, as numpy.pad() has it; of "constant" it is cval.
        None, as Numba has it: elements that something beyond them is read for are cval themselves.
    cval : number
        That value.
    neighborhood : sequence of (first, last), optional
        For each axis, the offsets within which is read; None: those that are read. With mode None
        it says how wide the border is.
    standard_indexing : sequence of str
        Parameters whose indices are places from the array's first element on.
    bound, check
        As of gd.vectorize().

    Returns
    -------
    Stencil
        f(a) with arrays gives arrays, with a lazy or a dataset among them lazies, of a's shape.
        Where another pass makes `a`, that is computed first. out=, check() and py_func are as of
        gd.vectorize().

    Raises
    ------
    Unsupported
        As of gd.vectorize(), with file, line and column.
    BadArgument
        Another mode; from the call: what is read lies beyond the neighborhood.
    BadShape
        From the call: arrays of several shapes; an offset of which the mode says nothing.
    """
    if isinstance(func_or_mode, str) and func_or_mode != "constant":
        raise errors.BadArgument(f"func_or_mode is {func_or_mode!r}; numpy.pad()'s modes are mode=",
                                 argument="func_or_mode", expected="constant", found=func_or_mode)
    if mode is not None and mode not in _MODES:
        raise errors.BadArgument(f"mode {mode!r} is none of {', '.join(_MODES)}", argument="mode",
                                 expected=" ".join(_MODES), found=repr(mode))

    def made(function: Callable[..., Any]) -> Stencil:
        return Stencil(function, mode, cval, neighborhood,
                       [standard_indexing] if isinstance(standard_indexing, str)
                       else standard_indexing, bound, check)
    return made if isinstance(func_or_mode, str) else made(func_or_mode)
