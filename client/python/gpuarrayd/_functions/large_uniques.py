"""Different elements of what is larger than sorting.py looks at in memory.

    x --> chunks, read once, of each what is different --> runs in a temporary file
    values between neighbours of a sample of all runs --> merged (large_sorts.py) --> the results

So what is kept of an array of few different elements is little, and the temporary files have at
most twice what is different, with the number of each and its first place. Which of them each
element is takes the array to be read once more: its chunks are sorted and looked up in ascending
order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._lazy.array import Lazy, lazy
from .large_sorts import (PLACES, Array, Columns, Part, Runs, TempFile, chunks, in_order,
                          told_of_space)


class Different(NamedTuple):
    """What was asked for."""

    values: Lazy
    first: Lazy | None
    inverse: Lazy | None
    counts: Lazy | None


def different_of_large(x: Lazy, wants_first: bool, wants_inverse: bool,
                       wants_counts: bool) -> Different:
    """Of a lazy with one axis: as numpy.unique(equal_nan=False). NoSpace."""
    item_bytes = 2 * (x.itemsize + 8 * (wants_first + wants_counts)) + 8 * wants_inverse
    return told_of_space(_different, x, item_bytes, wants_first, wants_inverse, wants_counts)


def _different(x: Lazy, wants_first: bool, wants_inverse: bool, wants_counts: bool) -> Different:
    dtypes = [x.dtype, *[PLACES] * (wants_first + wants_counts)]
    runs, made = Runs(dtypes), [TempFile(dtype) for dtype in dtypes]

    def of_chunk(given: tuple[int, Array]) -> Columns:
        start, chunk = given
        unique: Any = np.unique  # which has no types of this call
        found = unique(chunk, return_index=wants_first, return_counts=wants_counts,
                       equal_nan=False)
        columns = list(found) if isinstance(found, tuple) else [found]
        if wants_first:
            columns[1] = columns[1] + start
        return columns

    def merge(part: Part) -> Columns:
        return _merged(runs.read(part), wants_first, wants_counts)

    for columns in in_order(of_chunk, chunks(x, wants_first)):
        runs.add(columns)
        del columns
    for columns in in_order(merge, runs.parts()):
        for file, column in zip(made, columns, strict=True):
            file.write(column)
        del columns
    results = [file.mapped() for file in made]
    inverse = _inverse(x, results[0]) if wants_inverse else None
    lazies = [lazy(column) for column in results]
    return Different(lazies[0], lazies[1] if wants_first else None, inverse,
                     lazies[-1] if wants_counts else None)


def _merged(columns: Columns, wants_first: bool, wants_counts: bool) -> Columns:
    """Of the same element in several runs the sum of its numbers, and its place in the first."""
    elements, *others = columns
    if not elements.size:
        return columns
    order = np.argsort(elements, kind="stable") if others else None
    elements = np.sort(elements) if order is None else elements[order]
    is_new = np.concatenate([[True], elements[1:] != elements[:-1]])  # each NaN is
    merged = [elements[is_new]]
    if wants_first:
        merged.append(others[0][order][is_new])
    if wants_counts:
        merged.append(np.add.reduceat(others[-1][order], np.flatnonzero(is_new)))
    return merged


def _inverse(x: Lazy, values: Array) -> Lazy:
    """Where in the values each element is; NaN are there in their own order."""
    n_numbers = len(values)
    if values.dtype.kind == "f":
        n_numbers = int(np.searchsorted(values, np.nan))
    numbers, made = values[:n_numbers], TempFile(PLACES)

    def looked_up(given: tuple[int, Array]) -> tuple[Array, Array]:
        chunk = given[1]
        order = np.argsort(chunk)
        found = np.empty(len(chunk), PLACES)
        found[order] = np.searchsorted(numbers, chunk[order])
        return found, np.flatnonzero(chunk != chunk)

    for found, where in in_order(looked_up, chunks(x, True)):
        found[where] = n_numbers + np.arange(len(where))
        n_numbers += len(where)
        made.write(found)
    return lazy(made.mapped())
