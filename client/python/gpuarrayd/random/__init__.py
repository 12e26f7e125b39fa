"""Random numbers that are functions of a seed and an element's place.

    gd.random.normal(size=(1000, 1000), seed=3)            # a lazy: the same elements each time
    a + 0.1*gd.random.normal(seed=3)                       # without size: of a's shape
    rng = gd.random.default_rng(7)                         # NumPy's Generator; each call other ones
    gd.save("noise.npy", rng.normal(size=(500, 2000, 2000), dtype="f4"))

The generator is Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as
1, 2, 3; 2011), keyed by the seed, its counter made of the element's number in C order. Elements do
not depend on blocks, threads, pool or engine: `uniform`, `random`, `integers` and `bernoulli` have
the same bits everywhere, the others the same within the last bits of their functions. They are not
those of NumPy's generators.

Two kinds of functions. Those of the module take `seed` and are pure. Those of a Generator have
NumPy's parameters, count the calls, and give lazies too: nothing is drawn before it is computed,
and a lazy that is computed twice has the same elements twice.

A random array is read at the places of the result, so it must be as large as the expression around
it, or nothing but a number: what would repeat it by broadcasting is refused.
"""

from ._functions import (bernoulli, choice, exponential, integers, lognormal, normal, permutation,
                         poisson, uniform)
from ._generator import Generator, call_seed, default_rng

__all__ = [
    "default_rng", "Generator", "call_seed", "uniform", "normal", "lognormal", "exponential",
    "integers", "bernoulli", "poisson", "choice", "permutation",
]
