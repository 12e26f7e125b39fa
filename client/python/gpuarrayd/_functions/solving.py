"""Systems of equations and factors of matrices that do not fit memory, with NumPy's names.

A matrix of any size, in memory or in files of any format, is factored from left to right, a panel
of columns at a time: what the columns before it subtract from a panel is a job of the daemon, and
the panel's own factorisation is LAPACK's in this process. Matrices that are small go to NumPy's own
LAPACK.

    x = gd.linalg.solve(gd.open("a.npy"), gd.open("b.npy"), out="x.npy")

Parameters
----------
a : Lazy or array_like
    n by n numbers. An expression is computed first, into shared memory. NumPy takes stacks of
    matrices, as long as they are small.
b : Lazy or array_like
    The right side: n numbers, or n by m. What is not finite is in the solution of its column.
upper : bool
    Whether the factor is the upper one.
assume_a : "gen" or "pos"
    As scipy.linalg.solve() has it: "pos" for a symmetric positive definite matrix, of which the
    lower half is read, and which takes half as long.
out : optional
    Where the result goes: a path of a new file, an array, or gd.open(path, "r+"). A path appears
    when the result is whole. None: a new array.
memory : int, optional
    Bytes for a panel of columns, 256 MiB without; as much again at most is used beside it. About
    n**3 / (3 * width) elements are read, where n * width * 8 bytes are a panel. With it small
    matrices are factored by panels, too.
scratch : path, optional
    A folder for the factor where it is not the result itself: n * n * 8 bytes. None: $TMPDIR, else
    /var/tmp.
checkpoint : path, optional
    A file in which the factor is kept, with how far it is, until the result is whole. After an
    interruption the same call goes on from there.
callback : optional
    callback(step, n_steps, seconds_left) is called after each panel. An exception, or what is
    true, ends the call.
engine, priority, label
    As of Lazy.compute().

Returns
-------
array, or a Lazy
    `out`, or of a path a lazy that is opened on the file. Everything is computed in float64; of
    float32 the result is rounded to float32, else it is float64.

Raises
------
numpy.linalg.LinAlgError
    The matrix is not square, singular, or not positive definite; `found` is the place.
BadArgument
    NaN or an infinity in a matrix that is not small, with its index, as soon as it is read.
BadShape, BadDtype
    As of other functions.
BadCheckpoint, Busy
    The checkpoint is of another matrix; another process uses it.
NoSpace, LimitExceeded
    There is no room for the factor; the memory holds no panel.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .. import _core, _session, errors
from .._arguments import convert as _arguments
from .._lazy.array import Lazy, open as open_lazy
from .._lazy.graph import Node, computed
from .._lazy.leaves import place_of
from .._lazy.moves import array_of
from .._lazy.operands import Operand
from .._linalg.matrices import KINDS, planned, told_of_steps
from .describing import describe

Callback = Callable[[int, int, float], object]
Path = str | os.PathLike[str]

_SMALL = 2048 * 2048  # elements of what NumPy factors
_KINDS = ("cholesky", "solve", "inv", "slogdet")


class NotSquare(errors.BadShape, np.linalg.LinAlgError):
    """A matrix that is to be factored is not square."""


class Singular(errors.SingularMatrix, np.linalg.LinAlgError):
    """A matrix is singular, or not positive definite; `found` is the column, from 0."""


class SolvePlan(NamedTuple):
    """What one of these functions will do: of its jobs, without what LAPACK does here."""

    method: str
    steps: int
    jobs: int
    read_bytes: int
    write_bytes: int
    carry_bytes: int
    seconds: float
    reads: int | None = None  # of all of the data, by a decomposition


class _Options(NamedTuple):
    out: Any = None
    memory: int | None = None
    scratch: Path | None = None
    checkpoint: Path | None = None
    callback: Callback | None = None
    engine: str | None = None
    priority: int = 0
    label: str | None = None

    def packed(self, is_upper: bool, is_positive: bool) -> tuple[object, ...]:
        """As the extension takes them."""
        scratch, checkpoint = (None if one is None else os.path.abspath(os.fspath(one))
                               for one in (self.scratch, self.checkpoint))
        return (self.memory or 0, scratch, checkpoint, is_upper, is_positive, self.engine,
                self.priority, self.label)

    def is_for_numpy(self, node: Node) -> bool:
        return self.memory is None and self.checkpoint is None \
            and not isinstance(self.out, (str, os.PathLike)) and bool(np.prod(node.shape) <= _SMALL)


def _matrix(op: str, a: object) -> Node:
    node = array_of(a)
    if len(node.shape) < 2 or node.shape[-1] != node.shape[-2]:
        raise NotSquare(f"{op}: a has shape {node.shape}; the last two axes of a matrix are of one "
                        "length", argument="a", expected="(n, n)", found=str(node.shape))
    return node


def _array(node: Node) -> Any:
    return Lazy._of(node).compute()


def _numpys(function: Callable[..., Any], out: Any, *nodes: Node, **how: Any) -> Any:
    found = function(*[_array(node) for node in nodes], **how)
    if out is None:
        return found
    return Lazy._of(array_of(found)).compute(out=out)


def _refuse_stack(op: str, node: Node) -> None:
    if len(node.shape) > 2:
        raise errors.Unsupported(f"{op}: of a stack of shape {node.shape}, which is not small: "
                                 "give one matrix after the other", argument="a",
                                 expected="(n, n)", found=str(node.shape))


def _source(session: _core.Session, node: Node) -> _core.Array:
    made = _arguments.source(session, computed(node).argument(), "a")
    assert not isinstance(made, (bool, int, float))
    return made


def _raise_singular(error: errors.SingularMatrix) -> NoReturn:
    raise Singular(error.message, code=error.code, argument=error.argument,
                   expected=error.expected, found=error.found) from None


def _by_panels(op: str, kind: str, options: _Options, nodes: list[Node], is_upper: bool = False,
               is_positive: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """The result, where there is one, and what the extension tells."""
    _refuse_stack(op, nodes[0])
    result, shape = options.out, nodes[-1].shape
    session = _session.another()  # which nobody waits for meanwhile
    try:
        arrays = [_source(session, node) for node in nodes]
        to: Any = None
        if isinstance(result, (str, os.PathLike)):
            to = place_of(os.fspath(result))
        elif kind != "slogdet":
            if result is None:
                kinds = {Lazy._of(node).dtype for node in nodes}
                result = np.empty(shape, "f4" if kinds == {np.dtype("f4")} else "f8")
            to = _arguments.sink(session, result, "out")
        told = session.factor(_KINDS.index(kind), arrays[0], arrays[1] if nodes[1:] else None, to,
                              options.packed(is_upper, is_positive),
                              told_of_steps(options.callback))
    except errors.SingularMatrix as error:
        _raise_singular(error)
    finally:
        session.close()
    return (open_lazy(os.fspath(result)) if isinstance(to, str) else result), told


def cholesky(a: Operand, /, *, upper: bool = False, out: Any = None, memory: int | None = None,
             scratch: Path | None = None, checkpoint: Path | None = None,
             callback: Callback | None = None, engine: str | None = None, priority: int = 0,
             label: str | None = None) -> Any:
    """The factor L of a = L @ L.T, as numpy.linalg.cholesky(): only the lower half of a is read; or
    the upper factor of the upper half."""
    node = _matrix("cholesky", a)
    options = _Options(out, memory, scratch, checkpoint, callback, engine, priority, label)
    if options.is_for_numpy(node):
        return _numpys(np.linalg.cholesky, out, node, upper=upper)
    _refuse_stack("cholesky", node)
    return _by_panels("cholesky", "cholesky", options, [node], is_upper=upper)[0]


def solve(a: Operand, b: Operand, *, assume_a: str = "gen", out: Any = None,
          memory: int | None = None, scratch: Path | None = None, checkpoint: Path | None = None,
          callback: Callback | None = None, engine: str | None = None, priority: int = 0,
          label: str | None = None) -> Any:
    """The solution of a @ x = b, as numpy.linalg.solve(), by LU with partial pivoting."""
    if assume_a not in ("gen", "pos"):
        raise errors.BadArgument(f"solve: assume_a={assume_a!r} is not served",
                                 argument="assume_a", expected="'gen' or 'pos'",
                                 found=repr(assume_a))
    node, right = _matrix("solve", a), array_of(b)
    options = _Options(out, memory, scratch, checkpoint, callback, engine, priority, label)
    if options.is_for_numpy(node) and np.prod(right.shape) <= _SMALL:
        return _numpys(_solved_by_cholesky if assume_a == "pos" else np.linalg.solve, out, node,
                       right)
    return _by_panels("solve", "solve", options, [node, right], is_positive=assume_a == "pos")[0]


def _solved_by_cholesky(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Any:
    """Only the lower half is read; raises where it is not positive definite."""
    lower = np.linalg.cholesky(a)
    return np.linalg.solve(np.swapaxes(lower, -1, -2), np.linalg.solve(lower, b))


def inv(a: Operand, *, out: Any = None, memory: int | None = None, scratch: Path | None = None,
        checkpoint: Path | None = None, callback: Callback | None = None,
        engine: str | None = None, priority: int = 0, label: str | None = None) -> Any:
    """The inverse, as numpy.linalg.inv(). solve() with a few right sides reads far less."""
    node = _matrix("inv", a)
    options = _Options(out, memory, scratch, checkpoint, callback, engine, priority, label)
    if options.is_for_numpy(node):
        return _numpys(np.linalg.inv, out, node)
    return _by_panels("inv", "inv", options, [node])[0]


def slogdet(a: Operand, *, memory: int | None = None, scratch: Path | None = None,
            checkpoint: Path | None = None, callback: Callback | None = None,
            engine: str | None = None, priority: int = 0, label: str | None = None) -> Any:
    """Sign and logarithm of the determinant, as numpy.linalg.slogdet()."""
    node = _matrix("slogdet", a)
    options = _Options(None, memory, scratch, checkpoint, callback, engine, priority, label)
    if options.is_for_numpy(node):
        return np.linalg.slogdet(_array(node))
    sign, log_abs, *_ = _by_panels("slogdet", "slogdet", options, [node])[1]
    dtype = np.dtype("f4") if Lazy._of(node).dtype == np.float32 else np.dtype("f8")
    return type(np.linalg.slogdet(np.eye(1)))(dtype.type(sign), dtype.type(log_abs))


def det(a: Operand, *, memory: int | None = None, scratch: Path | None = None,
        checkpoint: Path | None = None, callback: Callback | None = None,
        engine: str | None = None, priority: int = 0, label: str | None = None) -> Any:
    """The determinant, as numpy.linalg.det(); infinity where float64 does not hold it."""
    node = _matrix("det", a)
    options = _Options(None, memory, scratch, checkpoint, callback, engine, priority, label)
    if options.is_for_numpy(node):
        return np.linalg.det(_array(node))
    sign, log_abs, *_ = _by_panels("det", "slogdet", options, [node])[1]
    dtype = np.dtype("f4") if Lazy._of(node).dtype == np.float32 else np.dtype("f8")
    with np.errstate(over="ignore"):
        return dtype.type(sign * np.exp(log_abs))


def explain(op: str, a: Operand, b: Operand | None = None, *, upper: bool = False,
            assume_a: str = "gen", out: Path | None = None, memory: int | None = None,
            scratch: Path | None = None, checkpoint: Path | None = None, k: int | None = None,
            n_iter: int = 0, engine: str | None = None) -> SolvePlan:
    """What a function of a matrix would read and write: "cholesky", "solve", "inv", "slogdet" by
    panels; "svd" (with U where `out` is a path), "pca", "eigh", "lstsq", "qr", "cov" by reads."""
    if op in (*KINDS, "lstsq"):
        return SolvePlan(*planned(op, a, b, k, n_iter, out, engine))
    if op not in _KINDS:
        raise errors.BadArgument(f"explain: {op!r} is none of these", argument="op",
                                 expected=", ".join((*_KINDS, *KINDS, "lstsq")), found=repr(op))
    nodes = [_matrix(op, a), *([] if b is None else [array_of(b)])]
    _refuse_stack(op, nodes[0])
    options = _Options(out, memory, scratch, checkpoint, engine=engine)
    session = _session.another()
    try:
        arrays = [_source(session, node) for node in nodes]
        return SolvePlan(*session.factor_plan(
            _KINDS.index(op), arrays[0], arrays[1] if nodes[1:] else None,
            None if out is None else place_of(os.fspath(out)),
            options.packed(upper, assume_a == "pos")))
    finally:
        session.close()


__all__ = ["cholesky", "solve", "inv", "slogdet", "det", "explain"]

if __doc__:  # not where they are left out
    describe(__doc__, [cholesky, solve, inv, slogdet, det])
