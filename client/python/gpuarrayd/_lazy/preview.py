"""What x.preview() gives: a small picture of an array of any size, and a histogram.

The last two axes, at the first place of those before, are cut into cells, of which one job computes
means, ends and how many elements are NaN, and a second one counts for the histogram. The library
draws, as for gpuarrayctl show.

    +----+----+----+--+
    |    |    |    |  |     views of what is computed, whose axes are rows of cells, rows in a cell,
    +----+----+----+--+     columns of cells, columns in a cell; those at the ends have fewer
    |    |    |    |  |
    +----+----+----+--+
"""

from __future__ import annotations

import base64
import math
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import _core, errors
from .._functions.counts import histogram
from .._functions.functions import isnan
from .._functions.reductions import count_nonzero, max, mean, min, nanmax, nanmean, nanmin
from .leaves import FileSource
from .reshaping import reshape
from .results import compute
from .show import table
from .streaming.unbounded import unbounded

if TYPE_CHECKING:
    from .array import Lazy

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_MOST = 540, 720  # cells: what a notebook has room for
_MOST_ASPECT = 8  # beyond it sides are drawn to different scales
_EVEN = 16  # elements, of which longer cells are multiples
_N_BINS = 32
_COLOURS = ("viridis", "magma", "grey")  # as the library counts them


class Preview:
    """A picture and a histogram of a lazy, as x.preview() has computed them. Notebooks show it.

    Attributes
    ----------
    means : ndarray
        Of the cells; of a lazy with one axis one row. NaN: there is nothing else in a cell.
    least, greatest : float
        Of the elements that are shown; NaN: all are.
    n_nan : int
        How many of them are NaN.
    counts, edges : ndarray
        The histogram, of finite elements; of length 0 where there are none.
    """

    __slots__ = ("_cells", "_highs", "_html", "_lows", "_texts", "counts", "edges", "greatest",
                 "least", "means", "n_nan")
    means: Array
    counts: Array
    edges: Array
    least: float
    greatest: float
    n_nan: int

    def __init__(self, lazy: Lazy, is_fast: bool) -> None:
        whole = _shown(lazy)
        self._cells = cells = _Cells(whole.shape)
        self._html = table(lazy)
        self._texts = _texts(lazy, cells, is_fast)
        elements = np.asarray(whole[cells.middles()].compute()) if is_fast else None
        if elements is None:
            self.means, self._lows, self._highs, n_nan = _numbers(whole, cells)
        else:
            self.means = self._lows = self._highs = elements.reshape(cells.counts).astype("f8")
            n_nan = np.isnan(self.means)
        self.n_nan = int(n_nan.sum())
        self.least, self.greatest = _end(np.min, self._lows), _end(np.max, self._highs)
        self.counts, self.edges = np.empty(0, np.int64), np.empty(0)
        ends = np.stack([self._lows, self._highs])
        finite = ends[np.isfinite(ends)]
        if finite.size:
            bounds = float(finite.min()), float(finite.max())
            if elements is None:
                self.counts, self.edges = compute(*histogram(whole, _N_BINS, bounds))
            else:
                self.counts, self.edges = np.histogram(self.means, _N_BINS, bounds)

    def png(self, colours: str = "viridis") -> bytes:
        """The picture with axes, as a file. colours: viridis, magma or grey."""
        return self._drawn(False, colours)

    def svg(self, colours: str = "viridis") -> str:
        """The same as SVG."""
        return self._drawn(True, colours).decode()

    def _drawn(self, is_svg: bool, colours: str) -> bytes:
        if colours not in _COLOURS:
            raise errors.BadArgument(f"colours are {colours!r}", argument="colours",
                                     expected=" or ".join(_COLOURS), found=repr(colours))
        cells = self._cells
        numbers = [self.means, self._lows, self._highs] if cells.is_line else [self.means]
        return _core.picture(is_svg, cells.is_line, cells.is_even, cells.counts,
                             (*cells.sizes, *cells.steps), np.stack(numbers).tobytes(),
                             _COLOURS.index(colours), self._texts)

    def __repr__(self) -> str:
        return (f"<Preview of {self._texts[0]}: {self.least:.6g} to {self.greatest:.6g}, "
                f"{self.n_nan} NaN>")

    def _repr_png_(self) -> bytes:
        return self.png()

    def _repr_html_(self) -> str:
        picture = base64.b64encode(self.png()).decode()
        return (f'{self._html}<img style="max-width: 720px" alt="{escape(repr(self))}" '
                f'src="data:image/png;base64,{picture}">{self._histogram()}')

    def _histogram(self) -> str:
        if not len(self.counts):
            return ""
        high = 60 / int(self.counts.max())
        bars = "".join([f'<rect x="{10 * i}" y="{60 - n * high:.1f}" width="9" '
                        f'height="{n * high:.1f}"><title>{n} from {edge:.6g}</title></rect>'
                        for i, (n, edge) in enumerate(zip(self.counts.tolist(), self.edges,
                                                          strict=False))])
        width = 10 * len(self.counts)
        return (f'<svg width="{width}" height="80" fill="#31688e">{bars}'
                f'<text y="75" font-size="11">{self.edges[0]:.6g}</text>'
                f'<text x="{width}" y="75" font-size="11" text-anchor="end">'
                f'{self.edges[-1]:.6g}</text></svg>')


class _Cells:
    """How an array of one axis or two is cut, as gpuarrayctl does."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.is_line = len(shape) == 1
        height, width = (1, *shape) if self.is_line else shape
        self.sizes = height, width
        rows, columns = [_step(size, most, self.is_line)
                         for size, most in zip(self.sizes, _MOST, strict=True)]
        self.is_even = not self.is_line and height // _MOST_ASPECT <= width \
            and width // _MOST_ASPECT <= height
        if self.is_even:
            rows = columns = rows if rows > columns else columns
        self.steps = rows, columns
        self.counts = -(-height // rows), -(-width // columns)

    def middles(self) -> tuple[slice, ...]:
        """One element of each cell, the first of the last ones, which may have fewer."""
        found = [slice(step // 2 if size > (n - 1) * step + step // 2 else 0, None, step)
                 for size, step, n in zip(self.sizes, self.steps, self.counts, strict=True)]
        return tuple(found[1:] if self.is_line else found)

    def parts(self, axis: int) -> list[tuple[int, int, int]]:
        """Where whole cells begin, how many there are, how long they are; and the last one."""
        size, step = self.sizes[axis], self.steps[axis]
        n = size // step
        return [one for one in ((0, n, step), (n * step, 1, size - n * step)) if one[1] and one[2]]


def _step(size: int, most: int, is_line: bool) -> int:
    step = -(-size // most)
    return step if is_line or step <= 4 * _EVEN else -(-step // _EVEN) * _EVEN


def _shown(lazy: Lazy) -> Lazy:
    """What a picture shows of it."""
    why = ("a single number" if not lazy.ndim else "of unknown length" if unbounded(lazy._node)
           else "without elements" if 0 in lazy.shape else None)
    if why is not None:
        raise errors.BadShape(f"there is no picture of a lazy that is {why}", argument="preview",
                              expected="one axis or more, with elements", found=str(lazy.shape))
    found = lazy[(0,) * (lazy.ndim - 2)] if lazy.ndim > 2 else lazy
    return found.astype("u1") if lazy.dtype == bool else found


def _numbers(x: Lazy, cells: _Cells) -> list[Array]:
    """Means, least, greatest and how many NaN there are, of each cell, in one job."""
    is_float = x.dtype.kind == "f"
    found = [np.zeros(cells.counts) for _ in range(4)]
    wanted: list[Lazy] = []
    places: list[tuple[Array, tuple[slice, slice]]] = []
    for start, n, step in cells.parts(0):
        for left, m, wide in cells.parts(1):
            axes: tuple[int, ...] = (1, 3)
            if cells.is_line:
                part, axes = reshape(x[left:left + m * wide], (m, wide)), (1,)
            else:
                part = reshape(x[start:start + n * step, left:left + m * wide], (n, step, m, wide))
            makers = (nanmean, nanmin, nanmax) if is_float else (mean, min, max)
            made = [maker(part, axes).astype("f8") for maker in makers]
            made += [count_nonzero(isnan(part), axes)] if is_float else []
            row, column = start // cells.steps[0], left // cells.steps[1]
            place = slice(row, row + n), slice(column, column + m)
            wanted += made
            places += [(one, place) for one in found[:len(made)]]
    for (one, place), value in zip(places, compute(*wanted), strict=True):
        one[place] = value
    return found


def _end(end: Any, numbers: Array) -> float:
    there = numbers[~np.isnan(numbers)]
    return float(end(there)) if there.size else math.nan


def _texts(lazy: Lazy, cells: _Cells, is_fast: bool) \
        -> tuple[str, str, str | None, str | None, str | None]:
    """Title, subtitle, names of axes, units."""
    from .. import _session
    node = lazy._node
    title, names, units = repr(lazy), None, None
    if isinstance(node, FileSource):
        opened = node.__gad_source__(_session.current())
        title, names, units = opened.long_name or node.spec, opened.dimensions, opened.units
    said = f"{lazy.dtype.name} {lazy.shape}"
    if lazy.ndim > 2:
        said += f", of {[0] * (lazy.ndim - 2)}"
    if math.prod(cells.steps) > 1:
        size = f"{cells.steps[1]}" if cells.is_line else f"{cells.steps[0]} x {cells.steps[1]}"
        said += f", each cell {'one' if is_fast else 'the mean'} of {size} elements"
    return (title, said, names[-2] if names and lazy.ndim > 1 else None,
            names[-1] if names else None, units)
