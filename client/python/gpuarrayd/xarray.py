"""xarray's engine of this package: xr.open_dataset("file.nc", engine="gpuarrayd").

Variables hold lazies of what is stored. xarray itself decodes them, times and texts among them;
what it would mask and scale in memory is an expression instead, which the daemon computes in one
job with what follows. Coordinates are xarray's, in memory, as of every engine. Texts and what else
the daemon does not compute with come from the engine that xarray would take by itself.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from xarray import Dataset, DataTree, Variable, open_dataset
from xarray.backends import AbstractDataStore, BackendEntrypoint, StoreBackendEntrypoint
from xarray.backends import list_engines
from xarray.core import indexing

from . import _session, errors
from ._files import Listed
from ._files import list as _list
from ._functions.functions import where as _where
from ._lazy.array import Lazy
from ._lazy.array import open as _open
from ._lazy.leaves import FileSource

__all__ = ["GpuarraydBackendEntrypoint"]

_Axis: TypeAlias = "tuple[int, int | None]"  # its size, and again: None where it is unlimited
_EXTENSIONS = (".nc", ".nc4", ".cdf", ".zarr")  # that guess_can_open() takes
_NOT_COORDINATE = "_nc4_non_coord_"  # netCDF-4's, of a variable with the name of a dimension
_HIDDEN = {"_ARRAY_DIMENSIONS", "_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates",
           "_nc3_strict", "CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS"}


class GpuarraydBackendEntrypoint(BackendEntrypoint):
    """What xarray finds by the package's entry point."""

    description = "Open HDF5, netCDF and Zarr files as lazies of gpuarrayd"
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Of names of files and stores that are there, by their ends. Engines of xarray itself
        are asked before."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        path = os.path.expanduser(str(os.fspath(filename_or_obj))).rstrip("/")
        return path.endswith(_EXTENSIONS) and os.path.exists(path)

    def open_dataset(self, filename_or_obj: Any, *, mask_and_scale: Any = True,
                     decode_times: Any = True, concat_characters: Any = True,
                     decode_coords: Any = True, drop_variables: str | Iterable[str] | None = None,
                     use_cftime: Any = None, decode_timedelta: Any = None,
                     group: str | None = None) -> Dataset:
        """A group of a file. Everything but `group` means what it means to xarray."""
        dropped = {drop_variables} if isinstance(drop_variables, str) else {*(drop_variables or ())}
        store = _Store(_path_of(filename_or_obj), _group_of(group), dropped)
        made = StoreBackendEntrypoint().open_dataset(
            store, mask_and_scale=mask_and_scale, decode_times=decode_times,
            concat_characters=concat_characters, decode_coords=decode_coords,
            drop_variables=drop_variables, use_cftime=use_cftime,
            decode_timedelta=decode_timedelta)
        for name, lazy in store.lazies.items():
            if name in made.variables:
                _set_meant(made.variables[name], lazy)
        return made

    def open_groups_as_dict(self, filename_or_obj: Any, *, mask_and_scale: Any = True,
                            decode_times: Any = True, concat_characters: Any = True,
                            decode_coords: Any = True,
                            drop_variables: str | Iterable[str] | None = None,
                            use_cftime: Any = None, decode_timedelta: Any = None,
                            group: str | None = None) -> dict[str, Dataset]:
        """All groups, by their names below `group`."""
        path, top = _path_of(filename_or_obj), _group_of(group)
        names = [one.name for one in _list(_spec(path, top)) if one.kind == "group"]
        return {os.path.relpath(name, top) if group else name: self.open_dataset(
            path, group=name, mask_and_scale=mask_and_scale, decode_times=decode_times,
            concat_characters=concat_characters, decode_coords=decode_coords,
            drop_variables=drop_variables, use_cftime=use_cftime,
            decode_timedelta=decode_timedelta) for name in names}

    def open_datatree(self, filename_or_obj: Any, *, mask_and_scale: Any = True,
                      decode_times: Any = True, concat_characters: Any = True,
                      decode_coords: Any = True,
                      drop_variables: str | Iterable[str] | None = None,
                      use_cftime: Any = None, decode_timedelta: Any = None,
                      group: str | None = None) -> DataTree:
        """The same as a tree."""
        return DataTree.from_dict(self.open_groups_as_dict(
            filename_or_obj, mask_and_scale=mask_and_scale, decode_times=decode_times,
            concat_characters=concat_characters, decode_coords=decode_coords,
            drop_variables=drop_variables, use_cftime=use_cftime,
            decode_timedelta=decode_timedelta, group=group))


def _path_of(filename: Any) -> str:
    if not isinstance(filename, (str, os.PathLike)):
        raise errors.Unsupported(
            "engine='gpuarrayd' opens files by their names: the daemon reads them itself",
            argument="filename_or_obj", expected="a path", found=type(filename).__name__)
    return os.path.abspath(os.path.expanduser(os.fspath(filename)))


def _group_of(group: str | None) -> str:
    return "/" + (group or "").strip("/")


def _spec(path: str, name: str) -> str:
    return path if name == "/" else f"{path}:{name}"


class _Elements(indexing.ArrayApiIndexingAdapter):
    """A lazy that xarray indexes also by several arrays that go together, as it does NumPy's."""

    __slots__ = ()

    def __init__(self, array: Lazy) -> None:
        super().__init__(array)  # type: ignore[no-untyped-call]

    def _vindex_get(self, indexer: indexing.VectorizedIndexer) -> Any:
        adapter: Any = indexing.NdArrayLikeIndexingAdapter
        return adapter(self.array)._vindex_get(indexer)


def _pointwise(adapter: Any, indexer: indexing.VectorizedIndexer) -> Any:
    if isinstance(adapter.array, Lazy):
        return _Elements(adapter.array)._vindex_get(indexer)
    return _refuses_points(adapter, indexer)


# xarray refuses such indices to all that has an array API, and has no place to say otherwise of
# what is computed of a variable, and of a variable that has been read. Who loads this module once
# more finds it done.
_Adapter: Any = indexing.ArrayApiIndexingAdapter
if _Adapter._vindex_get.__name__ != "_pointwise":
    _refuses_points = _Adapter._vindex_get
    _Adapter._vindex_get = _pointwise


class _Store(AbstractDataStore):
    """A group of a file, as it is stored."""

    __slots__ = ("_beside", "_dimensions", "_dropped", "_group", "_listed", "_path", "_top",
                 "_unlimited", "lazies")

    def __init__(self, path: str, group: str, dropped: set[str]) -> None:
        self._path, self._group, self._dropped = path, group, dropped
        self.lazies: dict[str, Lazy] = {}
        self._beside: Dataset | None = None
        self._dimensions: dict[str, int] = {}
        self._unlimited: set[str] = set()
        self._listed: dict[str, Listed] = {}
        listed = _list(_spec(path, group))
        self._top = next((one for one in listed if one.kind == "group" and one.name == group), None)
        if self._top is None:
            raise errors.BadFormat(
                f"{_spec(path, group)} is no group of named arrays; xr.DataArray(gd.open(...)) has "
                "a single array", argument="filename_or_obj", expected="a file of named arrays",
                found=listed[0].kind if listed else "nothing")
        start = group.rstrip("/") + "/"
        for one in listed:
            name = one.name.removeprefix(start)
            if one.kind == "array" and one.name.startswith(start) and "/" not in name:
                self._listed[name.removeprefix(_NOT_COORDINATE)] = one

    def get_attrs(self) -> dict[str, Any]:
        assert self._top is not None
        return _attributes(self._top)

    def get_dimensions(self) -> dict[str, int]:
        return self._dimensions

    def get_encoding(self) -> dict[str, Any]:
        """Behind get_variables(): of the dimensions that these have, so that a file that xarray
        writes of them grows as this one does."""
        return {"unlimited_dims": self._unlimited}

    def get_variables(self) -> dict[Hashable, Variable]:
        wanted = {name: one for name, one in self._listed.items() if name not in self._dropped}
        others = self._others({name for name, one in wanted.items() if not one.is_served})
        phony: list[_Axis] = []
        found: dict[Hashable, Variable] = {}
        for name, one in wanted.items():
            if one.is_served:
                lazy = _open(_spec(self._path, one.name), mask_and_scale=False)
                self.lazies[name] = lazy
                found[name] = self._variable(one, lazy, phony)
            elif name in others:
                found[name] = others[name]
        return found

    def close(self) -> None:
        if self._beside is not None:
            self._beside.close()

    def _variable(self, one: Listed, lazy: Lazy, phony: list[_Axis]) -> Variable:
        attributes = _attributes(one)
        dims = _names_of(one, phony)
        self._unlimited |= {name for name, (_, most) in zip(dims, _axes_of(one), strict=True)
                            if most is None}
        source = lazy._node
        if isinstance(source, FileSource):
            _set_zarrs_fill(attributes, source, self._path, one.name)
        encoding: dict[str, Any] = {
            "source": self._path, "original_shape": one.shape, "dtype": lazy.dtype,
            "chunksizes": one.chunks or None, "contiguous": not one.chunks}
        if one.chunks:
            encoding["preferred_chunks"] = dict(zip(dims, one.chunks, strict=True))
        filters = dict([word.partition(" ")[::2] for word in (one.filters or "").split(", ")])
        if filters.get("deflate", "").isdigit():
            encoding.update(zlib=True, complevel=int(filters["deflate"]),
                            shuffle="shuffle" in filters)
        return Variable(dims, _Elements(lazy), attributes, encoding)

    def _others(self, names: set[str]) -> Mapping[Hashable, Variable]:
        """What the daemon does not compute with, by another engine."""
        for name, engine in list_engines().items() if names else ():
            if name in ("gpuarrayd", "store") or not engine.guess_can_open(self._path):
                continue
            self._beside = open_dataset(
                self._path, engine=name, group=self._group, decode_cf=False, cache=False,
                drop_variables=[one for one in self._listed if one not in names])
            break
        found = self._beside.variables if self._beside is not None else {}
        if names - found.keys():
            listed = [f"{one} ({self._listed[one].type})" for one in sorted(names - found.keys())]
            warnings.warn(f"{self._path}: left out, because the daemon does not compute with it "
                          "and no other engine of xarray's is there that reads it: "
                          f"{', '.join(listed)}", RuntimeWarning, stacklevel=2)
        return found


def _attributes(one: Listed) -> dict[str, Any]:
    """None is of a type that nobody reads; several texts are a list, as netCDF4's are."""
    return {name: list(value) if isinstance(value, tuple) else value
            for name, value in one.attributes.items() if value is not None and name not in _HIDDEN}


def _axes_of(one: Listed) -> list[_Axis]:
    shape = one.shape or ()
    most = one.maxshape or shape
    return [(size, None if limit is None else size)
            for size, limit in zip(shape, most, strict=True)]


def _names_of(one: Listed, phony: list[_Axis]) -> tuple[str, ...]:
    """Of the axes. Those that have none are named by their sizes, and by whether they are
    unlimited, as netCDF's libraries do: phony_dim_0 is as long wherever it is, and no array has it
    twice."""
    axes = _axes_of(one)
    named = one.dimensions or (None,) * len(axes)
    free = [*range(len(phony))]
    found = []
    for name, axis in zip(named, axes, strict=True):
        if name is None:
            place = next((i for i in free if phony[i] == axis), None)
            if place is None:
                place = len(phony)
                phony.append(axis)
            else:
                free.remove(place)
            name = f"phony_dim_{place}"
        found.append(name)
    return tuple(found)


def _set_meant(variable: Variable, stored: Lazy) -> None:
    """Puts an expression in the place of what xarray masks and scales in memory, by the
    attributes that it has used. What it makes no floats of, as times, stays its own."""
    said, wanted, x = variable.encoding, variable.dtype, stored
    fills = [one for name in ("_FillValue", "missing_value") if name in said
             for one in np.ravel(said[name])]
    if said.get("_Unsigned") in ("true", "false") and stored.dtype.kind in "iu":
        kind = np.dtype(("u" if said["_Unsigned"] == "true" else "i") + str(stored.itemsize))
        x = x.astype(kind)
        fills = [one.astype(stored.dtype).view(kind) for one in fills]
    factors = [said.get("scale_factor"), said.get("add_offset")]
    is_bare = not fills and factors == [None, None]
    if is_bare and x is not stored and wanted == x.dtype:
        variable.data = _Elements(x)
    if is_bare or wanted.kind != "f":
        return
    numbers = [None if one is None else np.asarray(one).astype(wanted)[()] for one in factors]
    if any(one is not None and np.any(one != number) for one, number in
           zip(factors, numbers, strict=True)):
        return  # a factor that the dtype has not: NumPy computes in a wider one
    made = x.astype(wanted)
    for fill in {one.item(): one for one in fills if one == one}.values():
        made = _where(x == fill, wanted.type(np.nan), made)
    scale, offset = numbers
    made = made if scale is None else made * scale
    variable.data = _Elements(made if offset is None else made + offset)


def _set_zarrs_fill(attributes: dict[str, Any], source: FileSource, path: str, name: str) -> None:
    """As xarray has it: of format 2 the fill value stands for nothing measured, of format 3 there
    is an attribute for that."""
    opened = source.__gad_source__(_session.current())
    if opened.format != "zarr":
        return
    if not os.path.exists(os.path.join(path, name.lstrip("/"), "zarr.json")):
        if opened.fill is not None:
            attributes["_FillValue"] = source.dtype.type(opened.fill)
    elif "_FillValue" in attributes:
        from xarray.backends.zarr import FillValueCoder
        attributes["_FillValue"] = FillValueCoder.decode(attributes["_FillValue"], source.dtype)
