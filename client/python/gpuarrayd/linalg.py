"""Norms, under the name of NumPy's module: gd.linalg.norm(x, axis=1)."""

from ._lazy.reductions import norm

__all__ = ["norm"]
