"""Linear algebra, under the names of NumPy's module: gd.linalg.norm(x, axis=1), and systems and
factors of matrices that never fit memory: gd.linalg.solve(a, b, out="x.npy").
"""

from ._functions.reductions import norm
from ._functions.solving import cholesky, det, explain, inv, slogdet, solve

__all__ = ["norm", "cholesky", "solve", "inv", "det", "slogdet", "explain"]
