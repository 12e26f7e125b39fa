"""The text form: gd.evaluate("sqrt(a*a + b*b)"), and gd.submit() of it.

What the names in a text stand for comes from keywords, else from the caller's variables. Finding
them is on the way of every call, so it is a lookup for texts that were seen before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from . import quick as _quick
from .names import may_name, names_of, place_of
from .request import Request, To
from .._loading import loading
from ..errors import BadArgument, BadExpression, LimitExceeded, UnknownName

if TYPE_CHECKING:
    from types import FrameType

    from .future import Future

Path: TypeAlias = str | os.PathLike[str]

_OPTIONS = ("out", "to", "engine", "priority", "label", "progress", "tf32", "mode", "local_dict")
_MAX_OUTPUTS = 16  # of one job
_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")  # as the library counts them


def evaluate(expr: str | Sequence[str], /, *, out: Any = None, to: Any = None,
             engine: str | None = None, priority: int = 0, label: str | None = None,
             progress: Any = False, tf32: bool = False, mode: Any = None,
             local_dict: Mapping[str, Any] | None = None, **arrays: Any) -> Any:
    """Computes an expression over arrays, with NumPy's names and results.

        gd.evaluate("sqrt(a*a + b*b)", a=a, b=b)
        gd.evaluate("d = x - mean(x); d*d", x=x, out=r)
        low, high = gd.evaluate(["min(x)", "max(x)"], x=x)

    Parameters
    ----------
    expr : str, or list of str
        gd.ops() lists the functions; `np.` in front is allowed. Names may be given to parts before
        the result. A list is computed in one pass over the data.
    out : array, or list of arrays, optional
        Where the result goes: an ndarray that can be written, np.memmap, h5py.Dataset, or
        gd.open(path, "r+"). Of exactly the result's shape; its dtype as in NumPy's `out=`: the
        result must be castable by the rule "same_kind". For a list of expressions a list, None in
        it for a new array.
    to : path, or list of paths, optional
        A new file for the result: "file.npy", "file.npz:x", "file.h5:/dataset",
        "store.zarr:/array", "file.raw". It appears whole, at the end.
    engine : str, optional
        "auto" (where it ends sooner), "cpu", "cuda", or "cuda:0" for the first device, "cuda:1"
        for the second. The stats of submit()'s future say which it was, and why.
    priority : int
        -100 to 100; higher first among the user's own jobs.
    label : str, optional
        Shown in lists of jobs.
    progress : bool or callable
        True shows a bar.
    tf32 : bool
        Whether a device may round float32 to the 10 bits of TF32 before it multiplies matrices,
        which is several times as fast. The stats of submit()'s future say what it did.
    mode : {"edge", "constant", "reflect", "symmetric", "wrap"}, or ("constant", number), optional
        What near() and windows that name none have beyond the ends of an axis, as numpy.pad() has
        it. (An array is what the name `mode` stands for in the expression.)
    local_dict : mapping, optional
        Where names that are not given are looked for, in place of the caller's local variables, as
        columns of a table, of which the expression need not use all.
    **arrays
        What the names in the expression stand for, each of which it uses. Those not given are the
        caller's variables, local ones first; of the functions around it those that it names
        itself, as Python has them. Arrays are read where they are: ndarrays of any
        strides and byte order, np.memmap, h5py.Dataset, gd.open(). Python's numbers are weak, as
        in NumPy; NumPy's scalars, lists and objects with __array__ are arrays.

    Returns
    -------
    ndarray
        New, over shared memory, in C order, or in Fortran order where the arrays are; freed with
        its last view. A NumPy scalar where the result is 0-d. With `out`: that object. With `to`:
        the new file, as of gd.open(). For a list of expressions: a list of these.

    Raises
    ------
    UnknownName, BadExpression, BadArity, BadShape, BadDtype
        It cannot be computed; the message says where and why.
    OverlappingOutput, ReadOnly
        `out` cannot be written, or is part of an argument and not the same elements.
    TooLargeForPool, QuotaExceeded, QueueFull
        There is no room for it.
    KeyboardInterrupt
        Ctrl-C cancels the job.
    """
    if mode is not None:
        mode = beyond(mode, arrays)
    if to is None and progress is False and not tf32 and mode is None and local_dict is None \
            and type(expr) is str:
        result = _quick.evaluate(expr, out, engine, priority, label, arrays)
        if result is not NotImplemented:
            return result
    frame = sys._getframe(1)
    texts = _texts(expr)
    args = arguments(texts, arrays, frame, local_dict)
    request = Request([(text, None) for text in texts], args, _targets(expr, out, to), engine,
                      priority, label, tf32)
    request.beyond = mode
    results = request.run(progress)
    return results[0] if isinstance(expr, str) else results


def submit(expr: Any, /, *, out: Any = None, to: Any = None, engine: str | None = None,
           priority: int = 0, label: str | None = None, tf32: bool = False, mode: Any = None,
           local_dict: Mapping[str, Any] | None = None, **arrays: Any) -> "Future[Any]":
    """Starts what evaluate() would compute, and returns at once.

    Parameters
    ----------
    expr : str, list of str, lazy array, or list of lazy arrays
    out, to, engine, priority, label, tf32, mode, local_dict, **arrays
        As of evaluate(). Arrays must not be changed until the job has ended.

    Returns
    -------
    Future
        A concurrent.futures.Future whose result() is evaluate()'s; it can be awaited, too.

    Raises
    ------
    UnknownName, BadArgument, BadDtype, ReadOnly
        What is wrong at first sight. All else is raised by result().
    """
    with loading():
        from .future import start
    frame = sys._getframe(1)
    is_many = isinstance(expr, (list, tuple))
    if mode is not None:
        mode = beyond(mode, arrays)
    if isinstance(expr[0] if is_many and expr else expr, str):
        texts = _texts(expr)
        args = arguments(texts, arrays, frame, local_dict)
        request = Request([(text, None) for text in texts], args, _targets(expr, out, to), engine,
                          priority, label, tf32)
        request.beyond = mode
    else:
        from .._lazy import array as _lazy
        if arrays or mode is not None or local_dict is not None:
            name = next(iter(arrays), "local_dict" if mode is None else "mode")
            raise BadArgument(f"{name}= stands beside a lazy array, which knows its arguments",
                              argument=name)
        request = _lazy.request(list(expr) if is_many else [expr], _targets(expr, out, to), engine,
                                priority, label, tf32)
    return start(request, list if is_many else _first)


def beyond(mode: Any, arrays: dict[str, object]) -> Any:
    """What lies beyond the ends of an axis, as a Request has it; None where `mode` is an array,
    which becomes one of `arrays`."""
    word: Any
    value: Any
    word, value = mode if type(mode) is tuple and len(mode) == 2 else (mode, 0)
    if hasattr(type(mode), "__array__") or hasattr(type(mode), "__gad_source__"):
        arrays["mode"] = mode
        return None
    if word not in _MODES or (type(mode) is tuple and word != "constant"):
        raise BadArgument(f"mode is {mode!r}", argument="mode", found=repr(mode),
                          expected=", ".join(_MODES) + ', or ("constant", number)')
    if type(value) not in (bool, int, float):
        try:
            value = value.item()
        except AttributeError:
            raise BadArgument(f"mode is {mode!r}, whose value is no number", argument="mode",
                              expected="a number", found=type(value).__name__) from None
    return _MODES.index(word), value


def arguments(texts: "tuple[str, ...]", given: dict[str, object], frame: "FrameType",
              local_dict: Mapping[str, Any] | None = None) -> dict[str, object]:
    """What the names in the texts stand for: `given`, else variables of a frame."""
    needed, optional, bound = names_of(*texts)
    args = {}
    for name in needed:
        if name in given:
            args[name] = given[name]
        else:
            args[name] = _variable(name, given, frame, local_dict, bound, texts)
    if optional:
        args.update((name, given[name]) for name in optional if name in given)
    if not given.keys() <= args.keys():
        _check_unused(texts, args, given, bound)
    return args


def _variable(name: str, given: dict[str, object], frame: "FrameType",
              local_dict: Mapping[str, Any] | None, bound: frozenset[str],
              texts: "tuple[str, ...]") -> object:
    variables: Mapping[str, Any]
    for variables in _variables(frame) if local_dict is None else (local_dict, frame.f_globals):
        if name in variables:
            return variables[name]
    from difflib import get_close_matches
    own = frame.f_locals if local_dict is None else local_dict
    known = [other for other in {**frame.f_globals, **own, **given}
             if not other.startswith("_")]
    near = get_close_matches(name, known, 1)
    hint = f", did you mean {near[0]!r}?" if near else ""
    if name in bound:
        raise BadExpression(f"{name!r} is used in its own statement: statements end with ';', as "
                            f"in '{name} = x + 1; {name} * 2'", argument=name,
                            expected="';' behind the statement", found="none")
    index, place = place_of(name, *texts)
    raise UnknownName(
        f"{place}unknown name {name!r}{hint or ';'} arguments are given as {name}=array, or are "
        "variables of the caller", argument=f"outputs[{index}]",
        expected=repr(near[0]) if near else "a name that is given", found=repr(name))


def _variables(frame: "FrameType") -> "Iterator[dict[str, Any]]":
    """Of the caller, the innermost first. Until Python 3.11 a comprehension is a function that the
    one around it calls; since then its variables are the other's."""
    while frame.f_code.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>") \
            and frame.f_back is not None:
        yield frame.f_locals
        frame = frame.f_back
    yield frame.f_locals
    yield frame.f_globals


def _check_unused(texts: "tuple[str, ...]", args: dict[str, object], given: dict[str, object],
                  bound: frozenset[str]) -> None:
    """Not all names of a dict of columns need be used, but those that are written in the call."""
    from difflib import get_close_matches
    for name in given:
        if name in args or any(may_name(text, name) for text in texts):
            continue
        if name in bound:
            raise BadArgument(f"{name}= is given, and the text binds {name} itself",
                              argument=name, expected="another name", found=f"{name} =")
        near = get_close_matches(name, (*_OPTIONS, *args), 1)
        hint = "submit() has none, a Future tells its progress" if name == "progress" \
            else "write the cast into it, float32(...)" if name == "dtype" \
            else f"did you mean {near[0]}=?" if near \
            else "a dict of which not all is used is local_dict=; the options are " \
            + ", ".join(_OPTIONS)
        raise BadArgument(f"{name}= is neither an option nor used in the expression; {hint}",
                          argument=name, found=f"{name}=",
                          expected=f"{near[0]}=" if near else ", ".join(args) or "no names")


def _texts(expr: Any) -> "tuple[str, ...]":
    texts = (expr,) if isinstance(expr, str) or not isinstance(expr, (list, tuple)) else tuple(expr)
    for text in texts:
        if hasattr(type(text), "__gad_source__"):
            raise BadArgument("evaluate() computes texts; lazies are computed by gd.compute(x, y) "
                              "and x.compute()", expected="str", found=type(text).__name__)
        if not isinstance(text, str):
            raise BadArgument(f"an expression is a str, or a list of them, not {text!r}",
                              expected="str", found=type(text).__name__)
    if not texts:
        raise BadArgument("an empty list of expressions", expected="at least one", found="none")
    if len(texts) > _MAX_OUTPUTS:
        raise LimitExceeded(f"{len(texts)} expressions in one job",
                            expected=f"at most {_MAX_OUTPUTS}", found=str(len(texts)))
    return texts


def _targets(expr: Any, out: Any, to: Any) -> list[object]:
    """A destination for each expression."""
    if not isinstance(expr, (list, tuple)):
        return [_target(out, to)]
    n = len(expr)
    return [_target(one, path) for one, path in
            zip(_listed(n, out, "out"), _listed(n, to, "to"), strict=True)]


def _target(out: object, to: object) -> object:
    if to is None:
        return out
    if out is not None:
        raise BadArgument("out= and to= both say where the result goes", argument="to",
                          expected="one of them", found="both")
    if not isinstance(to, (str, os.PathLike)):
        raise BadArgument(f"to is {to!r}, not the path of a file", argument="to",
                          expected="a path", found=type(to).__name__)
    return To(os.fsdecode(to))


def _listed(n: int, value: Any, option: str) -> list[object]:
    if value is None:
        return [None] * n
    if not isinstance(value, (list, tuple)) or len(value) != n:
        found = f"{len(value)} of them" if isinstance(value, (list, tuple)) else repr(type(value))
        raise BadArgument(f"{option} must be a list as long as that of the expressions",
                          argument=option, expected=f"a list of {n}", found=found)
    return list(value)


def _first(results: list[Any]) -> Any:
    return results[0]
