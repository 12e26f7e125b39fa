"""Many files as one array: gd.open() of a pattern or of several paths.

The library opens them all, reads what their headers say, and keeps few of them open. A part of such
an array is a view of it, so that nothing is opened again. To another session (after close(), in a
child of fork(), where a lazy was unpickled) the files go by their names, a pattern as it was
written; together they must have the dtype and shape that were told before.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from .. import errors
from .graph import Shape, Source
from .leaves import place_of, warn_packed
from .selection import Items
from .views import ViewSource

if TYPE_CHECKING:
    from .. import _core

_SHOWN = 3  # names of a message


class ManySource(Source):
    """Specs that are joined along an axis, or along a new one, as they were written, and (places)
    the same from the root of the file system. axis None: one spec, which says that by itself."""

    __slots__ = ("_opened", "axis", "is_new_axis", "masking", "places", "specs", "typestr")

    def __init__(self, specs: tuple[str, ...], places: tuple[str, ...], axis: int | None,
                 is_new_axis: bool, typestr: str, shape: Shape, masking: bool | None = None,
                 opened: _core.Array | None = None) -> None:
        self.parts = ()
        self.specs, self.places = specs, places
        self.axis, self.is_new_axis = axis, is_new_axis
        self.typestr, self.shape, self.masking = typestr, shape, masking
        self._opened = opened

    @property
    def dtype(self) -> np.dtype[np.generic]:
        found: np.dtype[np.generic] = np.dtype(self.typestr)
        return found.newbyteorder("=")

    def same(self) -> Hashable:
        return self.places, self.axis, self.is_new_axis, bool(self.masking)

    def text(self) -> str:
        words = ", mask_and_scale=True" if self.masking else ""
        if self.axis is None:
            return f"open({self.specs[0]!r}{words})"
        more = f", and {len(self.specs) - _SHOWN} more" if len(self.specs) > _SHOWN else ""
        return f"open([{', '.join(map(repr, self.specs[:_SHOWN]))}{more}]{words})"

    def __gad_source__(self, session: _core.Session) -> _core.Array:
        found = self._opened
        if found is None or found.session is not session:
            found = self._open(session)
        return found

    def __gad_sink__(self, session: _core.Session) -> _core.Array:
        raise errors.ReadOnly("many files as one array are only read", argument="out",
                              expected="one file", found=self.text())

    def __gad_describe__(self) -> Hashable:
        return (self.places, self.axis, self.is_new_axis, self.typestr, self.shape,
                bool(self.masking))

    def _open(self, session: _core.Session) -> _core.Array:
        opened = session.open(self.places[0], False, self.masking) if self.axis is None \
            else session.open_many(self.places, self.axis, self.is_new_axis, self.masking)
        if tuple(opened.shape) != self.shape or opened.typestr != self.typestr:
            raise errors.BadArgument(
                f"{self.text()} is not what it was when it was opened; open it again",
                argument=self.specs[0], expected=f"{np.dtype(self.typestr).name} {self.shape}",
                found=f"{np.dtype(opened.typestr).name} {tuple(opened.shape)}")
        self._opened = opened
        return opened

    def selected(self, items: Items) -> ViewSource:
        """A part of it, which opens nothing."""
        axes = tuple([(axis, size, 1) for axis, size in enumerate(self.shape)])
        return ViewSource(self, (0,) * len(self.shape), axes).selected(items)

    def pickled(self) -> tuple[object, ...]:
        return ("many", self.specs, self.places, self.axis, self.is_new_axis, self.typestr,
                self.shape, self.masking)


def open_many(specs: Iterable[str | os.PathLike[str]], axis: object, stack: bool,
              masking: bool | None) -> ManySource:
    """Opens them for the session at hand."""
    from .. import _session
    names = tuple([os.fspath(spec) for spec in specs])
    places = tuple(map(place_of, names))
    if not places:
        raise errors.BadArgument("there is nothing to open", argument="spec",
                                 expected="at least one path", found="none")
    along = operator.index(axis)  # type: ignore[arg-type]
    opened = _session.current().open_many(places, along, bool(stack), masking)
    if opened.is_packing_unsaid:
        warn_packed(names[0], places[0], opened)
    return ManySource(names, places, along, bool(stack), opened.typestr, tuple(opened.shape),
                      masking, opened)
