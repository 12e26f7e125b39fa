"""Arrays that lazies read: files that are never loaded, and arrays of the process.

A file is opened when gd.open() is called, so that what is wrong with it is told there, and stays
open as np.memmap's does: replacing the file does not change what is read. To another session (after
close(), in a child of fork(), where a lazy was unpickled), and when an HDF5 file was written
meanwhile, it is opened by its name again, and must have the dtype and shape that were told before.

A part of a file is opened by its selection ("big.npy[10:20]"), which makes no copy. A part of an
array is the array's own view.
"""

import os
import re
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import errors
from .._arguments import convert as _arguments
from .graph import Shape, Source
from .._arguments.refusals import is_dataset
from .selection import Items, composed, items_of_text, key_of, shape_of, text_of

if TYPE_CHECKING:
    from .. import _core
    from .many import ManySource

_Identity = tuple[int, int] | None
_WILDCARDS = re.compile(r"[*?[]")
_ENDS = re.compile(r" *[:[]|$")  # where a path may end in a spec


class ArraySource(Source):
    """A NumPy array of any kind, or what _arguments takes in its place. It is read when the result
    is computed."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.parts = ()
        self.array = array
        self.shape = tuple(array.shape)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        found: np.dtype[np.generic] = np.dtype(self.array.dtype)
        return found.newbyteorder("=")

    def argument(self) -> object:
        if self.is_open() and tuple(self.array.shape) != self.shape:
            raise errors.BadArgument(
                f"the shape of {self.text()} has changed since the lazy was made of it; make "
                "another one", argument="x", expected=str(self.shape),
                found=str(tuple(self.array.shape)))
        return self.array

    def is_open(self) -> bool:
        """Not so for a dataset whose file was closed."""
        return not is_dataset(self.array) or bool(self.array)

    def same(self) -> Hashable:
        """h5py makes a new object for a dataset each time that it is named."""
        if is_dataset(self.array) and self.is_open():
            return self.array.file.id, self.array.id
        return id(self.array)

    def text(self) -> str:
        return type(self.array).__name__

    def selected(self, items: Items) -> "Source":
        """A view. h5py would load a dataset's, so that is a selection of the file, or read later.
        """
        array = self.array
        if isinstance(array, np.ndarray):
            return ArraySource(array[(*key_of(items), ...)])
        from .._arguments.hdf5_part import DatasetPart
        if isinstance(array, DatasetPart):
            return ArraySource(array.selected(items))
        file = _file_of(array)
        return file.selected(items) if file is not None else ArraySource(DatasetPart(array, items))

    def __gad_source__(self, session: "_core.Session") -> "_core.Array":
        made = _arguments.source(session, self.array, "x")
        assert not isinstance(made, (bool, int, float))
        return made

    def __gad_sink__(self, session: "_core.Session") -> "_core.Array":
        raise errors.ReadOnly("a lazy array does not change; results can be written into the array "
                              "that it was made of", argument="out", expected="the array itself",
                              found="a lazy array")

    def pickled(self) -> tuple[object, ...]:
        if isinstance(self.array, np.ndarray):
            return ("array", self.array)
        from .._arguments.hdf5_part import ChunkedPart, DatasetPart
        if isinstance(self.array, ChunkedPart):
            return ("array", self.array)
        part = self.array if isinstance(self.array, DatasetPart) else None
        dataset = self.array if part is None else part.dataset
        file = _file_of(dataset)
        if file is None:
            raise errors.Unsupported(
                "an h5py.Dataset goes to another process by the name of its file, which must be an "
                "ordinary one that is open for reading alone", argument=f"{dataset.name}",
                expected="h5py.File(path, 'r')", found=f"mode {dataset.file.mode!r}")
        return (file if part is None else file.selected(part.items)).pickled()


class FileSource(Source):
    """What a source of the command line names: "big.npy", "f.h5:/d[0]", "x.raw:f4:100x100".

    spec is as it was written, place the same from the root of the file system; base and items are
    the place without its selection and the selection, once somebody has asked.
    """

    __slots__ = ("_base", "_identity", "_opened", "_stamp", "masking", "mode", "place", "spec",
                 "typestr")

    def __init__(self, spec: str, place: str, mode: str, typestr: str, shape: Shape,
                 masking: bool | None = None, opened: "_core.Array | None" = None,
                 identity: _Identity = None) -> None:
        self.parts = ()
        self.spec, self.place, self.mode, self.masking = spec, place, mode, masking
        self.typestr, self.shape = typestr, shape
        self._opened, self._identity = opened, identity
        self._base: tuple[str, str, Shape, Items] | None = None
        self._stamp = _stamp(opened)

    @property
    def dtype(self) -> np.dtype[np.generic]:
        found: np.dtype[np.generic] = np.dtype(self.typestr)
        return found.newbyteorder("=")

    def same(self) -> Hashable:
        return self.place, self.mode, bool(self.masking), self._identity

    def text(self) -> str:
        return f"open({self.spec!r}{', mask_and_scale=True' if self.masking else ''})"

    # What _arguments asks for.

    def __gad_source__(self, session: "_core.Session") -> "_core.Array":
        found = self._opened
        if found is None or found.session is not session or self._has_moved(found):
            return self._open(session)
        return found

    def _has_moved(self, opened: "_core.Array") -> bool:
        """Whether its elements may be elsewhere: HDF5 gives the place of a dataset that was
        replaced to others. A file that has another's name now is still the one that is open."""
        if self._stamp is None:
            return False
        now = _stamp(opened)
        return now is not None and now[:2] == self._stamp[:2] and now != self._stamp

    def is_by_its_name(self) -> bool:
        """Whether the name is still that of the file that is open."""
        from .. import _session
        opened = self.__gad_source__(_session.current())
        return self._identity is not None and _identity(opened) == self._identity

    def __gad_sink__(self, session: "_core.Session") -> "_core.Array":
        if self.mode != "r+":
            raise errors.ReadOnly(f"{self.spec} was opened for reading; gd.open({self.spec!r}, "
                                  "\"r+\") can be written", argument="out", expected="mode 'r+'",
                                  found=f"mode {self.mode!r}")
        return self.__gad_source__(session)

    def __gad_describe__(self) -> Hashable:
        return self.place, self.typestr, self.shape, bool(self.masking), self._identity

    def _open(self, session: "_core.Session") -> "_core.Array":
        opened = session.open(self.place, self.mode == "r+", self.masking)
        if tuple(opened.shape) != self.shape or opened.typestr != self.typestr:
            was = f"{np.dtype(self.typestr).name} {self.shape}"
            found = f"{np.dtype(opened.typestr).name} {tuple(opened.shape)}"
            raise errors.BadArgument(f"{self.spec} is not what it was when it was opened; open it "
                                     "again", argument=self.spec, expected=was, found=found)
        self._opened, self._stamp = opened, _stamp(opened)
        return opened

    # Selections.

    def selected(self, items: Items) -> "FileSource":
        """A part of it. The file must still be there by its name."""
        from .. import _session
        session = _session.current()
        name, base, shape, mine = self._unselected(session)
        chosen = composed(mine, items)
        words = text_of(chosen, shape)
        opened = session.open(base + words, self.mode == "r+", self.masking)
        identity = _identity(opened)
        if self._identity is not None and identity != self._identity:
            raise errors.BadArgument(f"{name} was replaced after it was opened; open it again",
                                     argument=name, expected="the same file", found="another one")
        return FileSource(name + words, base + words, self.mode, opened.typestr,
                          tuple(opened.shape), self.masking, opened, identity)

    def _unselected(self, session: "_core.Session") -> tuple[str, str, Shape, Items]:
        """The name and place without the selection, the shape that they have, the selection."""
        if self._base is None:
            whole = tuple((0, 1, size) for size in self.shape)
            if self.place.endswith("]") and not self._is_whole_name(session):
                at = self.place.rindex("[")
                base = self.place[:at]
                shape = tuple(session.open(base, False).shape)
                items = items_of_text(self.place[at + 1:-1], shape)
                assert shape_of(items) == self.shape  # as the library has read it
                self._base = self.spec[:self.spec.rindex("[")], base, shape, items
            else:
                self._base = self.spec, self.place, self.shape, whole
        return self._base

    def _is_whole_name(self, session: "_core.Session") -> bool:
        """Whether brackets and all are the name of a file or dataset: what has a selection already
        takes no second one."""
        try:
            session.open(self.place + "[...]", False)
        except errors.Error:
            return False
        return True

    def pickled(self) -> tuple[object, ...]:
        return ("file", self.spec, self.place, self.mode, self.typestr, self.shape,
                self.masking)


def _identity(opened: "_core.Array") -> _Identity:
    path = opened.path
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _stamp(opened: "_core.Array | None") -> tuple[int, ...] | None:
    """What changes when an HDF5 or netCDF file is written."""
    if opened is None or opened.format not in ("hdf5", "netcdf") or opened.path is None:
        return None
    try:
        found = os.stat(opened.path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def open_file(spec: str, mode: str, masking: bool | None) -> "FileSource | ManySource":
    """Opens it for the session at hand."""
    from .. import _session
    place = place_of(spec)
    opened = _session.current().open(place, mode == "r+", masking)
    if opened.is_packing_unsaid and mode == "r":
        warn_packed(spec, place, opened)
    if opened.n_files > 1:
        from .many import ManySource
        return ManySource((spec,), (place,), None, False, opened.typestr, tuple(opened.shape),
                          masking, opened)
    return FileSource(spec, place, mode, opened.typestr, tuple(opened.shape), masking, opened,
                      _identity(opened))


_warned: set[tuple[_Identity, str]] = set()


def warn_packed(spec: str, place: str, opened: "_core.Array") -> None:
    """Once for each dataset, whatever is selected of it."""
    import warnings
    name = place[:place.rindex("[")] if place.endswith("]") and "[" in place else place
    if (_identity(opened), name) in _warned:
        return
    _warned.add((_identity(opened), name))
    warnings.warn(
        f"{spec} has {opened.packing}; its elements are taken as they are stored. "
        "gd.open(..., mask_and_scale=True) takes them as they are meant, mask_and_scale=False as "
        "stored without this warning", errors.PackedWarning, stacklevel=4)


def place_of(spec: str) -> str:
    """A spec from the root of the file system. What is a wildcard in the name of the working
    directory is none in front of a pattern."""
    here = os.getcwd()
    if _WILDCARDS.search(here) and _WILDCARDS.search(spec) and not os.path.isabs(spec) \
            and not any(os.path.lexists(spec[:end.start()]) for end in _ENDS.finditer(spec)):
        here = _WILDCARDS.sub(r"[\g<0>]", here)
    return os.path.join(here, spec)


def _file_of(dataset: Any) -> FileSource | None:
    """An h5py.Dataset as the dataset of its file; None where only h5py can read it."""
    from .._arguments import hdf5 as _h5py
    _h5py.check(dataset, "x")
    if dataset.file.mode != "r" or dataset.file.driver != "sec2" or not dataset.name \
            or dataset.name[-1].isspace():  # a blank before a selection is none of the name
        return None
    path = os.path.abspath(dataset.file.filename)
    try:
        if not os.path.samestat(os.stat(path), os.fstat(dataset.file.id.get_vfd_handle())):
            return None
        found = open_file(f"{path}:{dataset.name}", "r", False)  # as h5py reads it
        assert isinstance(found, FileSource)  # its path is there, wildcards or not
    except (OSError, RuntimeError, errors.Error):
        return None
    is_same = found.shape == dataset.shape and np.dtype(found.typestr) == dataset.dtype
    return found if is_same else None


def unpickled(state: tuple[Any, ...]) -> Source:
    """What pickled() has told."""
    kind, *rest = state
    if kind == "view":
        from .views import ViewSource
        base, start, axes = rest
        return ViewSource(unpickled(base), start, axes)
    if kind == "taken":
        from .picked import TakeSource
        base, indices, *how = rest
        return TakeSource(unpickled(base), unpickled(indices), *how)
    if kind == "positions":
        from .picked import Positions
        from .pickling import restored
        return Positions(restored(*rest))
    if kind == "moved":
        from .moved import Moved, Piece
        from .pickling import restored
        shape, pieces, dtype = rest
        return Moved(shape, [Piece(restored(flat), *place) for flat, *place in pieces], dtype)
    if kind == "many":
        from .many import ManySource
        return ManySource(*rest)
    return ArraySource(*rest) if kind == "array" else FileSource(*rest)
