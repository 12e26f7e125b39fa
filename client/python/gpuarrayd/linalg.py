"""Linear algebra, under the names of NumPy's module: gd.linalg.norm(x, axis=1), systems and factors
of matrices that never fit memory: gd.linalg.solve(a, b, out="x.npy"), and decompositions of those
with many rows: gd.linalg.svd(gd.open("a.npy"), k=20), gd.linalg.lstsq(a, b).
"""

from ._functions.reductions import norm
from ._functions.solving import cholesky, det, explain, inv, slogdet, solve
from ._linalg.singular import eigh, pca, svd
from ._linalg.tall import cond, lstsq, matrix_norm, pinv, qr, ridge, svdvals

__all__ = ["norm", "cholesky", "solve", "inv", "det", "slogdet", "explain", "svd", "svdvals", "pca",
           "eigh", "qr", "lstsq", "ridge", "cond", "matrix_norm", "pinv"]
