"""NumPy's Generator: the distributions with a state, which is the number of calls.

Every call draws with a seed of its own, made of the Generator's and the call's number by
call_seed(). So a program that makes the same calls in the same order has the same numbers, and any
one of its arrays can be made again without the others, as gd.random.normal(seed=rng.seed_of(3)).
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .. import errors
from .._lazy.array import Lazy
from .._lazy.drawing import MAX_SEED, Size, seed_of
from .._lazy.operands import Operand, node_of
from .._lazy.graph import broadcast
from .._lazy.unanswered import NoAttribute
from . import _functions as draw

_STEP = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio


def _mixed(x: int) -> int:
    """The output function of SplitMix64: 64 bits to 64 bits, one to one."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MAX_SEED
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MAX_SEED
    return x ^ (x >> 31)


def call_seed(seed: int, call: int) -> int:
    """The seed with which a Generator of this seed draws in a call; calls count from 0.

    With mix(x), the output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom
    number generators; 2014), and all sums modulo 2**64:

        mix(mix(seed + g) + (call + 1) * g),  g = 0x9E3779B97F4A7C15

    Calls of one Generator have different seeds up to the 2**64th of them.
    """
    return _mixed((_mixed(seed_of(seed) + _STEP & MAX_SEED) + (call + 1) * _STEP) & MAX_SEED)


class Generator:
    """Made by gd.random.default_rng(seed). Its methods have the parameters of NumPy's, and give
    lazies, or with `out` the array that they have filled.

    Parameters
    ----------
    seed : int
        0 to 2**64 - 1.

    size None means a single number, or as many as the parameters have elements. In an expression
    give the size: rng.normal(size=a.shape). Threads may share a Generator; which of them gets which
    numbers is theirs to order. Pickled and copied it goes on from the same call.
    """

    __slots__ = ("_lock", "_n_calls", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = seed_of(seed)
        self._n_calls = 0
        self._lock = threading.Lock()

    @property
    def seed(self) -> int:
        """What it was made with."""
        return self._seed

    @property
    def n_calls(self) -> int:
        """How many arrays it has given."""
        return self._n_calls

    def seed_of(self, call: int) -> int:
        """The seed of a call: call_seed(rng.seed, call)."""
        return call_seed(self._seed, call)

    def __reduce__(self) -> tuple[Callable[..., Generator], tuple[int, int]]:
        return _restored, (self._seed, self._n_calls)

    def __repr__(self) -> str:
        return f"<Generator of gpuarrayd: seed {self._seed}, {self._n_calls} calls>"

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("_") and hasattr(np.random.Generator, name):
            raise NoAttribute(f"{name} of a Generator is not computed by the daemon; NumPy's is "
                              f"np.random.default_rng(seed).{name}", argument=name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _drawn(self, function: Callable[..., Lazy], *parameters: Operand, size: Size, out: object,
               **options: object) -> Lazy:
        """A call. Without size and out it is of the shape of the parameters."""
        if size is None:
            size = tuple(getattr(out, "shape", ())) if out is not None else \
                broadcast(function.__name__, [node_of(one) for one in parameters])
        with self._lock:
            call = self._n_calls
            self._n_calls += 1
        try:
            made = function(*parameters, size=size, seed=self.seed_of(call), **options)
        except BaseException:
            with self._lock:  # a call that was wrong draws nothing
                self._n_calls -= self._n_calls == call + 1
            raise
        return _into(made, out)

    def random(self, size: Size = None, dtype: npt.DTypeLike = np.float64,
               out: object = None) -> Lazy:
        """Floats from 0 to below 1, each as likely."""
        return self._drawn(draw.uniform, size=size, out=out, dtype=dtype)

    def uniform(self, low: Operand = 0.0, high: Operand = 1.0, size: Size = None, *,
                dtype: npt.DTypeLike = np.float64, out: object = None) -> Lazy:
        """Floats from low to below high, each as likely; rounding may give high, as in NumPy."""
        return self._drawn(draw.uniform, low, high, size=size, out=out, dtype=dtype)

    def standard_normal(self, size: Size = None, dtype: npt.DTypeLike = np.float64,
                        out: object = None) -> Lazy:
        """Normal numbers of mean 0 and standard deviation 1."""
        return self._drawn(draw.normal, size=size, out=out, dtype=dtype)

    def normal(self, loc: Operand = 0.0, scale: Operand = 1.0, size: Size = None, *,
               dtype: npt.DTypeLike = np.float64, out: object = None) -> Lazy:
        """Normal numbers of mean loc and standard deviation scale."""
        return self._drawn(draw.normal, loc, scale, size=size, out=out, dtype=dtype)

    def lognormal(self, mean: Operand = 0.0, sigma: Operand = 1.0, size: Size = None, *,
                  dtype: npt.DTypeLike = np.float64, out: object = None) -> Lazy:
        """Numbers whose logarithm is normal, of this mean and standard deviation."""
        return self._drawn(draw.lognormal, mean, sigma, size=size, out=out, dtype=dtype)

    def standard_exponential(self, size: Size = None, dtype: npt.DTypeLike = np.float64,
                             method: str = "zig", out: object = None) -> Lazy:
        """Exponential numbers of mean 1. method is NumPy's, and means nothing here."""
        if method not in ("zig", "inv"):
            raise errors.BadArgument(f"method is {method!r}", argument="method",
                                     expected="'zig' or 'inv'", found=repr(method))
        return self._drawn(draw.exponential, size=size, out=out, dtype=dtype)

    def exponential(self, scale: Operand = 1.0, size: Size = None, *,
                    dtype: npt.DTypeLike = np.float64, out: object = None) -> Lazy:
        """Exponential numbers of mean scale."""
        return self._drawn(draw.exponential, scale, size=size, out=out, dtype=dtype)

    def integers(self, low: Operand, high: Operand | None = None, size: Size = None,
                 dtype: npt.DTypeLike = np.int64, endpoint: bool = False, *,
                 out: object = None) -> Lazy:
        """Integers from low to below high, or to high with endpoint; high None: from 0 to below
        low. Each is as likely but for a bias below 2**-64 times their number."""
        low, high = (0, low) if high is None else (low, high)
        return self._drawn(draw.integers, low, high, size=size, out=out, dtype=dtype,
                           endpoint=endpoint)

    def poisson(self, lam: Operand = 1.0, size: Size = None, *, out: object = None) -> Lazy:
        """Poisson numbers of mean lam, int64."""
        return self._drawn(draw.poisson, lam, size=size, out=out)

    def binomial(self, n: int, p: Operand, size: Size = None, *, out: object = None) -> Lazy:
        """Of one trial: 1 with probability p, else 0; int64. n is 1; the bools themselves are
        gd.random.bernoulli(p, size, seed=...)."""
        if not isinstance(n, (int, np.integer)) or n != 1:
            raise errors.Unsupported("binomial is computed for one trial, n = 1", argument="n",
                                     expected="1", found=repr(n))
        if size is None and out is not None:
            size = tuple(getattr(out, "shape", ()))
        return _into(self._drawn(draw.bernoulli, p, size=size, out=None).astype(np.int64), out)

    def choice(self, a: Operand, size: Size = None, replace: bool = True, p: None = None,
               axis: int = 0, shuffle: bool = True, *, out: object = None) -> Lazy:
        """Integers from 0 to below a, each as likely, int64; or elements of a, an array of one
        axis. replace False: each at most once, in random order. p is not computed, axis and shuffle
        mean nothing."""
        if p is not None:
            raise errors.Unsupported("choice: p= is not computed by the daemon", argument="p",
                                     expected="None", found="p=")

        def chosen(size: Size, seed: int) -> Lazy:
            return draw.choice(a, size, replace, seed=seed)
        return self._drawn(chosen, size=size, out=out)

    def permutation(self, x: Operand, axis: int = 0, *, out: object = None) -> Lazy:
        """The integers from 0 to below x in random order, int64; or the elements of x, an array of
        one axis, in random order. axis means nothing."""
        def permuted(size: Size, seed: int) -> Lazy:
            return draw.permutation(x, seed=seed)
        return self._drawn(permuted, size=(), out=out)


def _restored(seed: int, n_calls: int) -> Generator:
    made = Generator(seed)
    made._n_calls = n_calls
    return made


def _into(made: Lazy, out: Any) -> Lazy:
    if out is None:
        return made
    from .._lazy.results import compute_into
    return compute_into((made,), (out,))[0]  # type: ignore[no-any-return]


def default_rng(seed: int | Generator | None = None) -> Generator:
    """A Generator.

    Parameters
    ----------
    seed : int, Generator or None
        0 to 2**64 - 1. A Generator is given back as it is. None: a seed of the system's random
        bits, which rng.seed tells.

    Raises
    ------
    BadArgument
        Another seed: NumPy's sequences of integers and its bit generators have no meaning here.
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(secrets.randbits(64) if seed is None else seed)
