"""The largest singular values of matrices with many columns, and eigenvalues of symmetric ones.

A block of directions W is improved from read to read, by A.T @ (A @ W) in float64; what all reads
have found spans a space in which the singular values are those of A restricted to it: a block
Krylov method (Musco and Musco, Randomized block Krylov methods for stronger and faster approximate
singular value decomposition, 2015). Directions are kept at right angles to all before them, twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import errors

from .matrices import Array, Callback

Apply = Callable[[Array], Array]


class Found(NamedTuple):
    """Of a symmetric operator: values of largest magnitude, falling, and columns of vectors."""

    values: Array
    vectors: Array
    residuals: Array  # lengths of what the operator makes of a vector beside it
    n_iterations: int


def check_k(name: str, k: int, most: int) -> None:
    if not 1 <= k <= most:
        raise errors.BadRank(f"{name}: k is {k}", argument="k", expected=f"1 to {most}",
                             found=str(k))


def _at_right_angles(block: Array, basis: Array) -> Array:
    for _ in range(2):
        block = block - basis @ (basis.T @ block)
        block = np.linalg.qr(block)[0]
    return block


def find(apply: Apply, n: int, k: int, n_iter: int, n_oversamples: int, seed: int, tol: float,
         callback: Callback | None) -> Found:
    """The k largest. tol: of the largest value; 0: all iterations."""
    width, began = min(k + n_oversamples, n), time.monotonic()
    block = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, width)))[0]
    basis, images = np.empty((n, 0)), np.empty((n, 0))
    for step in range(1, n_iter + 1):
        image = apply(block)
        basis, images = np.hstack([basis, block]), np.hstack([images, image])
        values, turn = np.linalg.eigh(basis.T @ images / 2 + images.T @ basis / 2)
        order = np.argsort(-np.abs(values), kind="stable")[:k]
        values, turn = values[order], turn[:, order]
        vectors = basis @ turn
        residuals = np.linalg.norm(images @ turn - vectors * values, axis=0)
        if callback is not None:
            callback(step, n_iter, (time.monotonic() - began) / step * (n_iter - step))
        width = min(width, n - basis.shape[1])
        largest = np.abs(values[0]) if len(values) else 0.0
        if width == 0 or (residuals <= tol * largest).all():
            break
        block = _at_right_angles(image[:, :width], basis)
    return Found(values, vectors, residuals, step)


def turned(rows: Array) -> Array:
    """Rows whose largest element is positive."""
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], 1)
    return rows * np.where(largest < 0, -1.0, 1.0)


