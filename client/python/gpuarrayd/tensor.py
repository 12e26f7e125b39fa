"""CP and Tucker decompositions of tensors that are read, never held.

    weights, factors = gd.tensor.cp(gd.open("t.npy"), 10)
    core, factors = gd.tensor.tucker(gd.open("t.npy"), (10, 10, 10))

A tensor is whatever an array can be here: files, ndarrays, lazies (`gd.where(t < -9, 0, t)` is
computed in each read and stored nowhere). It is read once an iteration of CP where the daemon's
pool has room, else twice, or twice for each part of the rank, as plan_cp() says; Tucker reads it
twice, and once for its norm, or more often likewise.
Results have TensorLy's order, and the data's dtype; sums are made in float64. Each call waits for
its end; other threads go on between two of its jobs. Ctrl-C ends it.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import errors
from ._jobs.request import To, new_array
from ._linalg.matrices import data_of, dense as _array
from ._session import current

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Callback: TypeAlias = Callable[..., object]

_INITS = {"random": 0, "svd": 1}


class Decomposition(tuple[Floats, list[Floats]]):
    """(weights, factors) of CP, (core, factors) of Tucker: a tuple of two, with how it was found.

    Attributes
    ----------
    weights, core : ndarray
        The first of the two.
    factors : list of ndarray
        One for each axis, its columns of norm 1.
    relative_error : float
        |x - decomposition| / |x|; below 1e-8 it is noise.
    converged : bool
        Whether the tolerance ended it.
    iterations : int
        That were done; reads of Tucker.
    reads : dict
        jobs, reads of the data, read_bytes, write_bytes.
    norm, seconds, ridge_added : float
    """

    relative_error: float
    converged: bool
    stopped: bool
    iterations: int
    reads: dict[str, int]
    norm: float
    seconds: float
    ridge_added: float

    @property
    def weights(self) -> Floats:
        return self[0]

    core = weights

    @property
    def factors(self) -> list[Floats]:
        return self[1]


def cp(x: Any, rank: int, *, nonnegative: bool = False, ridge: float = 0.0, init: str = "random",
       seed: int = 0, iterations: int = 100, tolerance: float = 1e-8,
       checkpoint: "str | os.PathLike[str] | None" = None, callback: Callback | None = None,
       engine: str | None = None, priority: int = 0, label: str | None = None) -> Decomposition:
    """Decomposes a tensor into a sum of `rank` outer products, by alternating least squares.

    Parameters
    ----------
    x : array
        Of 3 to 8 axes.
    rank : int
        1 to 512.
    nonnegative : bool
        No element of a factor is below 0.
    ridge : float
        Added to the diagonal of each normal matrix.
    init : "random" or "svd"
        Uniform numbers of the seed; or leading singular vectors of a sketch, with one read more.
    seed : int
    iterations : int
        At most so many.
    tolerance : float
        It is done when the relative error changes by less; -1: after all iterations.
    checkpoint : path, optional
        An npz file that is written between iterations; where it is there, the loop goes on from it.
    callback : callable, optional
        Called after each iteration with (iteration, iterations, fit, change, reads, read_bytes,
        seconds, seconds_left); what is true ends the loop.
    engine, priority, label
        As of gd.evaluate(), of each job.

    Returns
    -------
    Decomposition
        (weights, factors). Not converged: as it is after all iterations.

    Raises
    ------
    BadRank, BadShape, BadArgument, TooLargeForPool, BadCheckpoint
    """
    return _decomposed(_cp(x, rank, nonnegative, ridge, init, seed, iterations, tolerance,
                           checkpoint, callback, engine, priority, label, False))


def plan_cp(x: Any, rank: int, *, nonnegative: bool = False, init: str = "random",
            iterations: int = 100, engine: str | None = None) -> dict[str, Any]:
    """What cp() would read: start, iteration and total, each a dict as Decomposition.reads."""
    plan: dict[str, Any] = _cp(x, rank, nonnegative, 0.0, init, 0, iterations, -1.0, None, None,
                               engine, 0, None, True)
    return plan


def _cp(x: Any, rank: int, nonnegative: bool, ridge: float, init: str, seed: int, iterations: int,
        tolerance: float, checkpoint: "str | os.PathLike[str] | None", callback: Callback | None,
        engine: str | None, priority: int, label: str | None, explains: bool) -> Any:
    if init not in _INITS:
        raise errors.BadArgument(f"init={init!r} is none that there is", argument="init",
                                 expected="'random' or 'svd'", found=repr(init))
    if not 1 <= iterations < 1 << 31:
        raise errors.BadArgument(f"{iterations} iterations", argument="iterations",
                                 expected=f"1 to {(1 << 31) - 1}", found=str(iterations))
    _check_ranks("rank", (rank,))
    options = (rank, nonnegative, ridge, _INITS[init], seed, iterations, tolerance or 1e-300,
               None if checkpoint is None else os.fsdecode(checkpoint))
    session, outputs, args = _data(x)
    return session.cp(outputs, args, engine, priority, label, options, callback, explains)


def tucker(x: Any, ranks: "Sequence[int] | int | None" = None, *, tolerance: float = 0.0,
           seed: int = 0, reads: int = 2,
           checkpoint: "str | os.PathLike[str] | None" = None, callback: Callback | None = None,
           engine: str | None = None, priority: int = 0,
           label: str | None = None) -> Decomposition:
    """Decomposes a tensor into a small core and a factor with orthonormal columns for each axis.

    Parameters
    ----------
    x : array
        Of 3 to 8 axes.
    ranks : int, or one for each axis, optional
        None, or 0 for an axis: as the tolerance needs.
    tolerance : float
        The relative error that ranks are chosen for.
    seed : int
        Of the sketch.
    reads : int
        Of the tensor, at most: 1, a sketch; 2, mostly as good as can be; more, until the error
        does not change.
    checkpoint, callback, engine, priority, label
        As of cp().

    Returns
    -------
    Decomposition
        (core, factors).
    """
    return _decomposed(_tucker(x, ranks, tolerance, seed, reads, checkpoint, callback, engine,
                               priority, label, False))


def plan_tucker(x: Any, ranks: "Sequence[int] | int | None" = None, *, tolerance: float = 0.0,
                reads: int = 2, engine: str | None = None) -> dict[str, Any]:
    """What tucker() would read, as of plan_cp()."""
    plan: dict[str, Any] = _tucker(x, ranks, tolerance, 0, reads, None, None, engine, 0, None, True)
    return plan


def _tucker(x: Any, ranks: "Sequence[int] | int | None", tolerance: float, seed: int, reads: int,
            checkpoint: "str | os.PathLike[str] | None", callback: Callback | None,
            engine: str | None, priority: int, label: str | None, explains: bool) -> Any:
    ndim = np.ndim(x)
    wanted = (ranks or 0,) * ndim if ranks is None or isinstance(ranks, (int, np.integer)) \
        else tuple(ranks)
    if len(wanted) != ndim:
        raise errors.BadRank(f"{len(wanted)} ranks for a tensor of {ndim} axes", argument="ranks",
                             expected=str(ndim), found=str(len(wanted)))
    _check_ranks("ranks", wanted)
    if not 3 <= ndim <= 8:
        raise errors.BadShape(f"a tensor of {ndim} axes is not decomposed here", argument="tensor",
                              expected="3 to 8 axes", found=str(ndim))
    session, outputs, args = _data(x)
    return session.tucker(outputs, args, engine, priority, label,
                          (wanted, tolerance, seed, reads,
                           None if checkpoint is None else os.fsdecode(checkpoint)), callback,
                          explains)


def mttkrp(x: Any, decomposition: Any, mode: int, *, engine: str | None = None) -> Floats:
    """The tensor times the Khatri-Rao product of all factors but that of axis `mode`, times the
    weights, in one read: TensorLy's unfolding_dot_khatri_rao(x, (weights, factors), mode)."""
    session, outputs, args = _data(x)
    given = _given(decomposition)
    return _array(session.mttkrp(outputs, args, engine, 0, None, given, mode))


def relative_error(x: Any, decomposition: Any, *, engine: str | None = None) -> float:
    """|x - decomposition| / |x|, in one read; decomposition: (weights, factors) of CP, weights may
    be None, or (core, factors) of Tucker."""
    session, outputs, args = _data(x)
    found: float = session.relative_error(outputs, args, engine, 0, None, _given(decomposition))
    return found


def reconstruct(decomposition: Any, *, to: "str | os.PathLike[str] | None" = None,
                dtype: "npt.DTypeLike | None" = None, engine: str | None = None) -> Any:
    """The tensor that factors stand for, of any size.

    Parameters
    ----------
    decomposition : tuple
        As of relative_error().
    to : path, optional
        A new file; without it, an ndarray in shared memory.
    dtype : float32 or float64
        Without it the factors'.
    """
    _, *factors = given = _given(decomposition)[1:]
    wanted = np.dtype(dtype if dtype is not None else np.result_type(*decomposition[1]))
    if wanted not in (np.float32, np.float64):
        raise errors.BadDtype(f"a tensor of factors is of floats, not of {wanted}",
                              argument="dtype", expected="float32 or float64", found=str(wanted))
    session = current()
    shape = tuple(len(one) for one in factors)
    result: Any
    where: Any
    if to is None:
        result, where = new_array(session, wanted, shape, "C")
    else:
        where = To(os.fsdecode(to)).destination
    session.reconstruct([("0", None, where)], [], engine, 0, None,
                        (np.ndim(given[0]) > 1, *given), wanted == np.float32)
    if to is None:
        return result
    from ._lazy.array import open as opened
    return opened(os.fsdecode(to), mask_and_scale=False)


# ---- from and to the extension


def _data(x: Any) -> Any:
    """A session, the expression as its output, and its arguments."""
    data = data_of(x)
    return data.session, data.outputs(), data.sources


def _check_ranks(argument: str, ranks: Sequence[int]) -> None:
    for one in ranks:
        if not -(1 << 63) <= one < 1 << 63:
            raise errors.BadRank(f"{argument}: {one} is none", argument=argument,
                                 expected="1 to the other axes' elements", found=str(one))


def _given(decomposition: Any) -> tuple[Any, ...]:
    """(is Tucker, core, factors ...) as float64 in C order."""
    core, factors = decomposition
    if not 1 <= len(factors) <= 8:
        raise errors.BadShape(f"{len(factors)} factors are no decomposition", argument="factors",
                              expected="1 to 8 factors", found=str(len(factors)))
    if core is None and np.ndim(factors[0]) != 2:
        raise errors.BadShape("factor 0 is no matrix", argument="factors", expected="two axes",
                              found=str(np.ndim(factors[0])))
    if core is None:
        core = np.ones(np.shape(factors[0])[-1])
    made = [np.ascontiguousarray(one, "f8") for one in (core, *factors)]
    if np.ndim(core) == 0:
        made[0] = made[0].reshape(1)
    return np.ndim(core) > 1, *made


def _decomposed(made: Any) -> Decomposition:
    core, factors, found = made
    dtype = "f4" if found["dtype"] == "float32" else "f8"
    result = Decomposition((_array(core).astype(dtype, copy=False),
                            [_array(one).astype(dtype, copy=False) for one in factors]))
    for name in ("relative_error", "converged", "stopped", "iterations", "reads", "norm", "seconds",
                 "ridge_added"):
        setattr(result, name, found[name])
    if found["warning"]:
        warnings.warn(found["warning"], RuntimeWarning, stacklevel=3)
    return result


__all__ = ["cp", "tucker", "mttkrp", "relative_error", "reconstruct", "plan_cp", "plan_tucker",
           "Decomposition"]
