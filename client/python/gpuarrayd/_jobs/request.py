"""One job: expressions, their arguments, and where the results go.

The text form, the lazy form and futures all end here. A Request turns Python's objects into the
extension's, makes memory for results that have none, runs the job, and gives back what the caller
asked for:

    destination         what comes back
    None                an ndarray over shared memory, a NumPy scalar where the result is 0-d
    To("file.npy")      a Lazy, opened on the new file
    anything else       the same object, written

What a new result looks like is the daemon's answer to a plan. Plans are kept by everything that the
planner looks at: texts, names, dtypes, shapes, strides, and the values of Python's ints and bools,
because numbers fold as in Python (2**k is an int or a float, as k says). So a job that was seen
before costs one round trip. A plan that turns out not to fit is dropped and made again.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._arguments import convert as _arguments
from .._loading import loading
from .._session import current, kept_for_session
from ..errors import BadArgument, BadShape, QuotaExceeded

if TYPE_CHECKING:
    from .. import _core

# The last is "C" or "F"; a first axis of -1 is as long as a stream turns out to be.
Planned: TypeAlias = tuple[np.dtype[Any], tuple[int, ...], str]
Results: TypeAlias = list[Any]
Named: TypeAlias = "list[tuple[str, _arguments.Source]]"
Wanted: TypeAlias = "tuple[str, str | None, _core.Destination]"

_MAX_PLANS = 512
_plans: dict[object, list[Planned]] = kept_for_session()


class To:
    """A destination that the job creates: "file.npy", "file.npz:x", "file.h5:/dataset" or
    "file.raw"; storage: how, where the format should not decide."""

    __slots__ = ("path", "storage")

    def __init__(self, path: str, storage: "_core.Storage | None" = None) -> None:
        self.path = path
        self.storage = storage

    @property
    def destination(self) -> "str | tuple[str, _core.Storage]":
        """As the extension takes it."""
        return self.path if self.storage is None else (self.path, self.storage)

    @property
    def is_raw(self) -> bool:
        """Whether the file will not say its dtype and shape: what client/formats/raw.c serves.
        """
        return self.path.lower().endswith((".raw", ".bin", ".dat"))


class Request:
    """A job.

    Parameters
    ----------
    outputs : list of (expression, name or None)
        At most 16. The names are for errors.
    args : dict
        What the names in the expressions stand for; all that _arguments.source() takes.
    outs : list
        A destination for each output: None, To, or what _arguments.sink() takes.
    engine, priority, label, tf32
        As of gd.evaluate().
    """

    __slots__ = ("outputs", "args", "outs", "engine", "priority", "label", "tf32", "journal",
                 "beyond")

    def __init__(self, outputs: list[tuple[str, str | None]], args: dict[str, object],
                 outs: Sequence[object], engine: str | None = None, priority: int = 0,
                 label: str | None = None, tf32: bool = False) -> None:
        self.outputs = outputs
        self.args = args
        self.outs = outs
        self.engine = engine
        self.priority = priority
        self.label = label
        self.tf32 = tf32
        self.journal: str | bool = False  # True: the library names one where it is needed
        self.beyond: _core.Beyond = None  # of evaluate.beyond()

    def run(self, progress: object = False) -> Results:
        """Runs the job and waits. Ctrl-C cancels it. The results, in the outputs' order."""
        session = current()
        sources = self._sources(session)
        prepared = _Prepared(self, session, sources)
        try:
            job = self._wait(session, prepared.wanted, sources, progress)
        except BadShape:
            has_streams = any(getattr(made, "format", "") == "stream" for _, made in sources)
            if not prepared.drop_plan() or has_streams:
                raise  # a stream is not read again
            prepared = _Prepared(self, session, sources)
            job = self._wait(session, prepared.wanted, sources, progress)
        return prepared.results(job)

    def start(self) -> "tuple[_core.Job, Callable[[], Results]]":
        """Starts the job. finish() is called when it has ended well, and gives the results."""
        session = current()
        sources = self._sources(session)
        prepared = _Prepared(self, session, sources)
        job = session.submit(prepared.wanted, sources, self.engine, self.priority, self.label, True,
                             self.journal, self.tf32, self.beyond)
        return job, lambda: prepared.results(job)

    def plan(self) -> list[Planned]:
        """dtype, shape and order of each result, were it new. Nothing runs."""
        session = current()
        sources = self._sources(session, True)
        return _planned(session, self._key(sources, self.outputs), self, self.outputs, sources)

    def _sources(self, session: "_core.Session", is_plan: bool = False) -> Named:
        source = _arguments.source
        made: dict[int, _core.Array] = {}
        return [(name, value.__gad_like__(session)
                 if is_plan and hasattr(value, "__gad_like__")
                 else value.__gad_shared__(session, made, self) if hasattr(value, "__gad_shared__")
                 else source(session, value, name)) for name, value in self.args.items()]

    def _key(self, sources: Named, outputs: list[tuple[str, str | None]]) -> object:
        describe, args = _arguments.describe, self.args
        return (*[text for text, _ in outputs], *args,
                *[describe(args[name], made) for name, made in sources])

    def _wait(self, session: "_core.Session", wanted: list[Wanted], sources: Named,
              progress: object) -> "_core.Job":
        if progress is not False:
            with loading():
                from . import progress as _progress
            return _progress.run(session, wanted, sources, self.engine, self.priority, self.label,
                                 progress, self.journal, self.tf32, self.beyond)
        return session.run(wanted, sources, self.engine, self.priority, self.label, self.journal,
                           self.tf32, self.beyond)


class _Prepared:
    """Destinations for a request's outputs, and what becomes of them: a result, or an object that
    makes it when the job has ended."""

    __slots__ = ("wanted", "made", "key")

    def __init__(self, request: Request, session: "_core.Session", sources: Named) -> None:
        self.wanted: list[Wanted] = []
        self.made: list[object] = []
        self.key: object = None
        outs = request.outs
        new = [output for output, out in zip(request.outputs, outs, strict=True)
               if out is None or (type(out) is To and out.is_raw)]
        plans: Iterator[Planned] = iter(())
        if new:
            self.key = request._key(sources, new)
            plans = iter(_planned(session, self.key, request, new, sources))
        for (text, name), out in zip(request.outputs, outs, strict=True):
            to: _core.Destination
            if out is None:
                result, to = _new_result(session, len(self.made), next(plans))
            elif type(out) is To:
                result, to = _File(out, next(plans) if out.is_raw else None), out.destination
            else:
                result, to = out, self._sink(request, session, out, name)
            self.wanted.append((text, name, to))
            self.made.append(result)

    def _sink(self, request: Request, session: "_core.Session", out: object,
              name: str | None) -> "_core.Array":
        i = len(self.made)
        where = name or ("out" if len(request.outs) == 1 else f"out[{i}]")
        if type(out) is not np.ndarray:
            _arguments.check_apart(out, where, [*request.args.values(), *request.outs[:i]])
        return _arguments.sink(session, out, where)

    def drop_plan(self) -> bool:
        """When the job was refused: whether a plan was used, which is dropped."""
        return self.key is not None and _plans.pop(self.key, None) is not None

    def results(self, job: "_core.Job") -> Results:
        """When the job has ended well."""
        return [one.finish(job) if isinstance(one, (Inline, _File)) else one for one in self.made]


class Inline:
    """A result that came with the answer: a scalar."""

    __slots__ = ("i",)

    def __init__(self, i: int) -> None:
        self.i = i

    def finish(self, job: "_core.Job") -> object:
        result = job.result(self.i)
        assert result is not None  # it had no destination
        typestr, shape, elements = result
        array = np.frombuffer(elements, typestr)
        return array.reshape(shape).copy() if shape else array[0]


class _File:
    """A result in a new file."""

    __slots__ = ("to", "planned")

    def __init__(self, to: To, planned: Planned | None) -> None:
        self.to = to
        self.planned = planned

    def finish(self, job: "_core.Job") -> object:
        from .._lazy import array as _lazy
        if self.planned is None:
            return _lazy.open(self.to.path, mask_and_scale=False)
        dtype, shape, _ = self.planned
        if shape and shape[0] < 0:
            row_bytes = math.prod(shape[1:]) * dtype.itemsize
            shape = (os.path.getsize(self.to.path) // row_bytes, *shape[1:])
        sizes = "x".join(map(str, shape)) if shape else "1[0]"
        return _lazy.open(f"{self.to.path}:{dtype.str[1:]}:{sizes}", mask_and_scale=False)


def _planned(session: "_core.Session", key: object, request: Request,
             outputs: list[tuple[str, str | None]], sources: Named) -> list[Planned]:
    known = _plans.get(key)
    if known is None:
        plan = session.plan([(text, name, None) for text, name in outputs], sources,
                            request.engine, request.beyond)
        known = [(np.dtype(typestr), shape, "F" if fortran else "C")
                 for typestr, shape, fortran in plan.outputs]
        if len(_plans) >= _MAX_PLANS:
            _plans.clear()
        _plans[key] = known
    return known


def _new_result(session: "_core.Session", i: int,
                planned: Planned) -> "tuple[object, _core.Array | None]":
    dtype, shape, order = planned
    if shape and shape[0] < 0:
        raise BadArgument("how many rows the result has is known at its end only: gd.stream() "
                          "gives them as they come, gd.save() writes them to a file",
                          argument="shape", expected="a length for the first axis", found="None")
    return new_array(session, dtype, shape, order) if shape else (Inline(i), None)


def new_array(session: "_core.Session", dtype: np.dtype[Any], shape: tuple[int, ...],
              order: str, zeroed: bool = False) -> "tuple[np.ndarray[Any, Any], _core.Array]":
    """An array in shared memory, in ordinary memory where the quota is used up; and the same as a
    destination."""
    if 0 not in shape:
        try:
            memory: Any = session.new(dtype.str, shape, zeroed)
        except QuotaExceeded:
            pass
        else:
            if order == "C":
                return np.ndarray(shape, dtype, memory), memory
            array = np.ndarray(shape, dtype, memory, order="F")
            return array, session.from_buffer(array, True)
    array = np.zeros(shape, dtype, "F" if order == "F" else "C")
    return array, session.from_buffer(array, True)
