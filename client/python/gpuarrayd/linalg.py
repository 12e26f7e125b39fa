"""Norms, under the name of NumPy's module: gd.linalg.norm(x, axis=1)."""

from ._functions.reductions import norm

__all__ = ["norm"]
