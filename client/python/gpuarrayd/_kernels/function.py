"""What @gd.vectorize and @gd.stencil make: a function of arrays from one of numbers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import errors
from .._arguments.refusals import is_dataset
from .._lazy.array import Lazy, lazy
from .._lazy.graph import broadcast, dtype_name
from .._lazy.results import compute_into
from .._lazy.views import broadcast_to
from .source import Code
from .tracing import Tracer
from .values import Pair, array_of, flat, is_number, joined
from .ways import Env

Array = np.ndarray[Any, np.dtype[Any]]
DTypes: TypeAlias = npt.DTypeLike | Sequence[npt.DTypeLike] | None


def _parts(value: Any) -> Any:
    """A complex number or array as a pair of real ones, of the same memory."""
    if isinstance(value, complex) or getattr(getattr(value, "dtype", None), "kind", "") == "c" \
            and isinstance(value, (np.ndarray, np.generic)):
        return Pair(value.real, value.imag)
    return value


class Function:
    """What both have. Called with arrays alone it gives arrays, with a lazy or a dataset lazies.

    Attributes
    ----------
    py_func : callable
        The function as it was written.
    """

    _by = "gd.vectorize"
    _tracer = Tracer

    def __init__(self, function: Callable[..., Any], otypes: DTypes, bound: int | None,
                 check: bool) -> None:
        self.py_func = function
        functools.update_wrapper(self, function)
        self._codes: dict[Any, Code] = {}
        self._code = Code(function, self._by)
        self._codes[function] = self._code
        self._bound = bound
        self._checks = check
        self._signature = inspect.signature(function)
        found = self._traced(self._placeholders(), True)
        self._n_results = len(found) if type(found) is tuple else 0
        self._otypes = self._dtypes(otypes)

    def _placeholders(self) -> Env:
        return {name: lazy(np.float64(0)) for name in self._code.parameters}

    def _traced(self, arguments: Env, is_trial: bool = False) -> Any:
        tracer = self._tracer(self._code, self._codes, self._bound, is_trial)
        return tracer.run(tracer.with_defaults(arguments))

    def _dtypes(self, otypes: DTypes) -> list[str] | None:
        if otypes is None:
            return None
        n = max(self._n_results, 1)
        listed: Any = otypes
        if isinstance(otypes, str):  # as numpy.vectorize has it: a letter for each
            listed = [*otypes] if len(otypes) == n and n > 1 else [otypes]
        elif not isinstance(otypes, (list, tuple)):
            listed = [otypes]
        if len(listed) != n:
            raise errors.BadArgument(f"otypes has {len(listed)} dtypes for {n} results",
                                     argument="otypes", expected=str(n), found=str(len(listed)))
        return [dtype_name(one) for one in listed]

    def __repr__(self) -> str:
        return f"<{self._by} {self._code.name}{self._signature}>"

    def __reduce__(self) -> str:
        return self._code.function.__qualname__

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Lazies where an argument is a lazy or a dataset, else what they come to."""
        bound = self._bind(args, kwargs)
        is_lazy = any(isinstance(one, Lazy) or is_dataset(one) for one in bound.values())
        if is_lazy and out is None:
            return self._packed(self._made(bound))
        made = self._made(bound)
        outs = [None] * len(made) if out is None else [*out] if isinstance(out, tuple) else [out]
        if len(outs) != len(made):
            raise errors.BadArgument(f"out has {len(outs)} places for {len(made)} results",
                                     argument="out", expected=str(len(made)), found=str(len(outs)))
        found = compute_into(made, outs, is_broad=True)
        if self._checks:
            self._compare(bound, found)
        return self._packed(found)

    def check(self, *args: Any, **kwargs: Any) -> Any:
        """Computes twice, here element by element with py_func, and compares.

        Parameters
        ----------
        *args, **kwargs
            As of a call. Elements are NumPy's scalars of the arrays' dtypes.

        Returns
        -------
        ndarray, or a tuple of them
            As of a call with arrays.

        Raises
        ------
        AssertionError
            Where results differ by more than rounding: 1e-6 of float32, 1e-12 of float64.
        """
        bound = self._bind(args, kwargs)
        found = tuple([one.compute() for one in self._made(bound)])
        self._compare(bound, found)
        return self._packed(found)

    def _bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Env:
        try:
            return dict(self._signature.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise errors.BadArity(f"{self._code.name}: {error}", argument=self._code.name,
                                  expected=str(self._signature), found="other arguments") from None

    def _made(self, given: Env) -> tuple[Lazy, ...]:
        """The results as lazies."""
        parts = flat({name: _parts(one) for name, one in given.items()})
        has_arrays = not all(is_number(one) for one in parts.values())
        parts = {name: one if has_arrays and is_number(one) else lazy(one)
                 for name, one in parts.items()}
        found = self._traced(joined(parts))
        shape = broadcast(self._code.name, [one._node for one in parts.values()
                                            if isinstance(one, Lazy)])
        made = []
        for i, one in enumerate(found if type(found) is tuple else (found,)):
            result = lazy(array_of(one))
            if self._otypes is not None:
                result = result.astype(self._otypes[i])
            if result._node.shape != shape:
                result = Lazy._of(broadcast_to(result._node, shape))
            made.append(result)
        return tuple(made)

    def _packed(self, found: Sequence[Any]) -> Any:
        return tuple(found) if self._n_results else found[0]

    # Comparing with Python.

    def _plain(self, given: Env) -> list[Array]:
        """What the function as it was written gives, element by element."""
        arrays = {name: one if is_number(one) else np.asarray(one) for name, one in given.items()}
        shape = np.broadcast_shapes(*[np.shape(one) for one in arrays.values()])
        views = {name: np.broadcast_to(one, shape) for name, one in arrays.items()
                 if not is_number(one)}
        rows = []
        with np.errstate(all="ignore"):
            for index in np.ndindex(shape):
                elements = {name: views[name][index] if name in views else value
                            for name, value in arrays.items()}
                found = self._called(elements)
                rows.append(found if type(found) is tuple else (found,))
        return [np.array([row[i] for row in rows]).reshape(shape)
                for i in range(max(self._n_results, 1))]

    def _called(self, elements: Env) -> Any:
        bound = self._signature.bind_partial()
        bound.arguments.update(elements)
        return self.py_func(*bound.args, **bound.kwargs)

    def _compare(self, given: Env, found: Sequence[Any]) -> None:
        for own, wanted in zip(found, self._plain(given), strict=True):
            is_single = getattr(own, "dtype", None) == np.float32
            np.testing.assert_allclose(np.asarray(own), wanted, rtol=1e-6 if is_single else 1e-12,
                                       err_msg=f"{self._code.name}, computed and by Python")
