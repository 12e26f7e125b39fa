"""HDF5 datasets with filters: what h5py and hdf5plugin write is read, chunk by chunk, as it is; what
is damaged or packed by nobody we know gets an error that says where."""

import json
import os
import subprocess
import sys

import h5py
import hdf5plugin
import numpy as np
import pytest

from conftest import CTL

SHAPES = [((1000,), (77,)), ((60, 50), (13, 50)), ((60, 50), (60, 7)), ((9, 20, 30), (4, 5, 6))]
DTYPES = ["i1", "<i2", ">i4", "f4", ">f8", "u8", "?"]
OURS = {
    "none": {},
    "gzip": dict(compression="gzip"),
    "gzip shuffle": dict(compression="gzip", compression_opts=9, shuffle=True),
    "lzf": dict(compression="lzf"),
    "lzf shuffle fletcher32": dict(compression="lzf", shuffle=True, fletcher32=True),
    "fletcher32": dict(fletcher32=True),
    "gzip shuffle fletcher32": dict(compression="gzip", shuffle=True, fletcher32=True),
    "szip": dict(compression="szip"),
    "szip ec": dict(compression="szip", compression_opts=("ec", 16)),
    "scaleoffset": dict(scaleoffset=0),
    "zstd": hdf5plugin.Zstd(clevel=3),
    "lz4": hdf5plugin.LZ4(),
    "lz4 blocks": hdf5plugin.LZ4(nbytes=1000),
    "bzip2 shuffle": dict(shuffle=True, **hdf5plugin.BZip2(blocksize=2)),
    "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
    "bitshuffle lz4": hdf5plugin.Bitshuffle(),
    "bitshuffle zstd": hdf5plugin.Bitshuffle(cname="zstd"),
    "bitshuffle blocks": hdf5plugin.Bitshuffle(nelems=64),
    **{f"blosc {name} {shuffle}": hdf5plugin.Blosc(cname=name, shuffle=shuffle)
       for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd") for shuffle in (0, 1, 2)},
}


def made(rng, dtype, shape):
    return rng.integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)


def refused(spec, number):
    """The refusal, in a process of its own: packages that others have loaded may have brought
    plugins of HDF5."""
    environment = {name: value for name, value in os.environ.items() if name != "HDF5_PLUGIN_PATH"}
    done = subprocess.run([CTL, "info", spec], capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and "[bad-format]" in done.stderr
    assert f"filter {number} " in done.stderr
    return done.stderr


def has_blosc2():
    listed = subprocess.run([CTL, "formats", "--json"], capture_output=True, check=True).stdout
    return any(one["reads"] for one in json.loads(listed)["codecs"] if one["name"] == "blosc2")


def test_blosc2_is_read_where_its_library_is(gd, tmp_path):
    """Debian 12 has none, and then the error says what would bring it."""
    rng = np.random.default_rng(6)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for i, (shape, chunks) in enumerate(SHAPES):
            for name in ("blosclz", "lz4", "zstd"):
                file.create_dataset(f"{name}{i}", data=made(rng, ">f8", shape), chunks=chunks,
                                    **hdf5plugin.Blosc2(cname=name))
    if not has_blosc2():
        assert "libblosc2-dev" in refused(f"{tmp_path}/a.h5:/lz40", 32026)
        return
    with h5py.File(tmp_path / "a.h5") as file:
        for name in file:
            np.testing.assert_array_equal((gd.open(f"{tmp_path}/a.h5:/{name}") + 0).compute(),
                                          file[name][()])


@pytest.mark.parametrize("filters", OURS)
def test_are_read(gd, tmp_path, filters):
    rng = np.random.default_rng(5)
    wanted = {}
    with h5py.File(tmp_path / "a.h5", "w", libver="v110" if "fletcher" in filters else "earliest",
                   userblock_size=512 if "shuffle" in filters else 0) as file:
        for dtype in DTYPES:
            for shape, chunks in SHAPES:
                if filters == "scaleoffset" and dtype == "?":
                    continue
                name = f"{dtype} {shape} {chunks}"
                wanted[name] = made(rng, dtype, shape)
                maxshape = (None, *shape[1:]) if "lzf" in filters else None
                file.create_dataset(name, data=wanted[name], chunks=chunks, maxshape=maxshape,
                                    **OURS[filters])
    for name, a in wanted.items():
        x = gd.open(f"{tmp_path}/a.h5:/{name}")
        steps = (slice(None, None, -2),) * a.ndim
        if a.dtype == bool:
            np.testing.assert_array_equal((~x).compute(), ~a)
            np.testing.assert_array_equal((~x[steps]).compute(), ~a[steps])
        else:
            np.testing.assert_array_equal((-x if a.dtype.kind != "u" else x + 1).compute(),
                                          -a if a.dtype.kind != "u" else a + np.uint64(1))
            np.testing.assert_array_equal((x[steps] + 0).compute(), a[steps])
            assert x.sum(dtype="f8") == a.sum(dtype="f8")


def odd_type(kind, size, precision, offset, order):
    """Of `precision` bits above `offset` ones, of size bytes."""
    made = {"i": h5py.h5t.STD_I64LE, "u": h5py.h5t.STD_U64LE,
            "f": h5py.h5t.IEEE_F64LE}[kind].copy()
    if kind == "f":  # a sign, some bits of exponent, the rest of mantissa
        n = 5 if precision <= 16 else 8
        made.set_fields(offset + precision - 1, offset + precision - 1 - n, n, offset,
                        precision - 1 - n)
        made.set_ebias(2 ** (n - 1) - 1)
    made.set_offset(offset)
    made.set_precision(precision)
    made.set_size(size)
    made.set_order(order)
    return made


ODD = [(kind, size, precision, offset) for kind in "iu" for size, precision, offset in
       ((2, 12, 0), (2, 12, 3), (1, 5, 1), (4, 17, 9), (3, 24, 0), (8, 33, 20))] + [
       ("f", 2, 16, 0), ("f", 4, 20, 7), ("f", 4, 16, 0), ("f", 8, 52, 9)]


def test_scaled_numbers_are_those_that_hdf5_unpacks(gd, tmp_path):
    """To the bit: floats rounded to decimals, integers that lose bits, fill values, both byte orders, chunks of
    one value and of numbers that need all bits."""
    rng = np.random.default_rng(8)
    wanted = {}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for dtype in ("i1", ">u2", "<i4", ">i8", "u8", "<f4", ">f4", "<f8", ">f8"):
            kind, size = np.dtype(dtype).kind, np.dtype(dtype).itemsize
            for scale in range(6) if kind == "f" else (0, 3, 8 * size):
                for fill in (None, 7):
                    name = f"{dtype} {scale} {fill}"
                    a = (rng.normal(0, 50, (50, 40)) if kind == "f" else rng.integers(0, 100, (50, 40))).astype(dtype)
                    a[:10] = a[0, 0]
                    if kind != "f" and scale == 0:
                        a[20:30, 3] = np.iinfo(dtype).max
                        a[20:30, 4] = np.iinfo(dtype).min
                    if fill is not None:
                        a[35:40, :5] = fill
                    file.create_dataset(name, data=a, chunks=(10, 40), scaleoffset=scale, fillvalue=fill,
                                        maxshape=(60, 40))
        wanted = {name: file[name][...] for name in file}
    for name, a in wanted.items():
        assert gd.open(f"{tmp_path}/a.h5:/{name}").compute().tobytes() == a.astype(a.dtype.newbyteorder("=")).tobytes(), name


@pytest.mark.parametrize("storage", ["nbit", "nbit deflate", "contiguous", "never written"])
def test_numbers_of_odd_widths_are_read(gd, tmp_path, storage):
    """As HDF5 converts them, whose n-bit filter packs just such numbers, at the edges of chunks too."""
    rng = np.random.default_rng(8)
    wanted = {}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for kind, size, precision, offset in ODD:
            for order in (h5py.h5t.ORDER_LE, h5py.h5t.ORDER_BE):
                file_type = odd_type(kind, size, precision, offset, order)
                name = f"{kind}{size}{precision}{offset}{order}"
                dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                if storage != "contiguous":
                    dcpl.set_chunk((4, 5))
                    dcpl.set_filter(h5py.h5z.FILTER_NBIT)
                if "deflate" in storage:
                    dcpl.set_deflate(1)
                d = h5py.h5d.create(file.id, name.encode(), file_type, h5py.h5s.create_simple((9, 13)),
                                    dcpl)
                if kind == "f":
                    memory, a = h5py.h5t.NATIVE_DOUBLE, rng.integers(-40, 40, (9, 13)) / 8.0
                    dtype = "f4" if size < 8 else "f8"
                else:
                    dtype = ("i" if kind == "i" else "u") + str(4 if size == 3 else size)
                    low = -(2 ** (precision - 1)) if kind == "i" else 0
                    a = rng.integers(low, low + 2 ** precision, (9, 13)).astype(dtype)
                    a[0, :2] = low, low + 2 ** precision - 1
                    memory = h5py.h5t.py_create(a.dtype)
                if storage == "never written":
                    a = np.zeros((9, 13))
                else:
                    d.write(h5py.h5s.ALL, h5py.h5s.ALL, a, memory)
                wanted[name] = a.astype(dtype)
    for name, a in wanted.items():
        x = gd.open(f"{tmp_path}/a.h5:/{name}")
        assert x.dtype == a.dtype, name
        np.testing.assert_array_equal((x + x.dtype.type(0)).compute(), a, name)
        np.testing.assert_array_equal((x[::-3, 2:9] + x.dtype.type(0)).compute(), a[::-3, 2:9])


def test_chunks_that_were_never_written_are_the_fill_value(gd, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, dtype, fill in (("f", ">f4", 2.5), ("i", "i2", -7), ("z", "f8", None)):
            d = file.create_dataset(name, (100, 90), dtype, chunks=(30, 40), fillvalue=fill,
                                    compression="gzip")
            d[35:50, 41:60] = 9
    with h5py.File(tmp_path / "a.h5") as file:
        for name in "fiz":
            np.testing.assert_array_equal((gd.open(f"{tmp_path}/a.h5:/{name}") + 0).compute(),
                                          file[name][()])


def test_chunks_may_be_left_without_a_filter(gd, tmp_path):
    """Noise that LZF cannot make smaller, and edges of files that say that these have no filters."""
    noise = np.random.default_rng(1).integers(0, 256, (70, 90), "u1")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("noise", data=noise, chunks=(30, 40), compression="lzf")
        d = file.create_dataset("some", (70, 90), "u1", chunks=(30, 40), compression="gzip")
        d[...] = noise
        d.id.write_direct_chunk((30, 40), np.ascontiguousarray(noise[30:60, 40:80]).tobytes(),
                                filter_mask=1)
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((30, 40))
        dcpl.set_deflate(4)
        if hasattr(dcpl, "set_chunk_opts"):
            dcpl.set_chunk_opts(h5py.h5d.CHUNK_DONT_FILTER_PARTIAL_CHUNKS)
        space = h5py.h5s.create_simple((70, 90))
        h5py.Dataset(h5py.h5d.create(file.id, b"edges", h5py.h5t.NATIVE_UINT8, space, dcpl))[...] = noise
    for name in ("noise", "some", "edges"):
        np.testing.assert_array_equal((gd.open(f"{tmp_path}/a.h5:/{name}") + 0).compute(), noise)


def test_what_hdf5_reads_itself_is_decoded_by_our_codecs(daemon, tmp_path):
    """Sources of virtual datasets, and numbers of odd widths; and outputs are packed as before. In a
    process of its own: packages that others have loaded may have brought plugins of HDF5."""
    rng = np.random.default_rng(9)
    packed = {"lzf": dict(compression="lzf"), "zstd": hdf5plugin.Zstd(), "lz4": hdf5plugin.LZ4(), "bzip2": hdf5plugin.BZip2(),
              "blosc": hdf5plugin.Blosc(), "bitshuffle": hdf5plugin.Bitshuffle(cname="zstd"),
              "plain bits": hdf5plugin.Bitshuffle(cname="none")}
    a = rng.integers(0, 9, (len(packed), 90, 500)).astype("i4")
    layout = h5py.VirtualLayout(a.shape, "i4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for i, (name, filters) in enumerate(packed.items()):
            file.create_dataset(name, data=a[i], chunks=(90, 400), **filters)
            layout[i] = h5py.VirtualSource(file[name])
        file.create_dataset("zeros", data=np.zeros((1 << 20,), "u1"), chunks=(1 << 20,), **hdf5plugin.Zstd())
        whole = h5py.VirtualLayout((1 << 20,), "u1")
        whole[...] = h5py.VirtualSource(file["zeros"])
        file.create_virtual_dataset("virtual zeros", whole)
        file.create_virtual_dataset("v", layout)
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((30, 40))
        dcpl.set_filter(h5py.h5z.FILTER_LZF)
        d = h5py.h5d.create(file.id, b"odd", odd_type("i", 4, 17, 9, h5py.h5t.ORDER_LE),
                            h5py.h5s.create_simple((90, 500)), dcpl)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, a[0])
    program = f"""if True:
        import gpuarrayd as gd
        gd.connect("{daemon.socket}")
        x = gd.open("{tmp_path}/a.h5:/v")
        gd.save("{tmp_path}/v.npy", x + 0)
        assert gd.open("{tmp_path}/a.h5:/virtual zeros").sum() == 0
        gd.save("{tmp_path}/b.h5:/lzf", x + 0, chunks=(1, 90, 500), compression="lzf")
        gd.save("{tmp_path}/odd.npy", gd.open("{tmp_path}/a.h5:/odd") + 0)
        """
    environment = {name: value for name, value in os.environ.items() if name != "HDF5_PLUGIN_PATH"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), a)
    np.testing.assert_array_equal(np.load(tmp_path / "odd.npy"), a[0])
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["lzf"].compression == "lzf"
        np.testing.assert_array_equal(file["lzf"][...], a)


def damage(path, dataset, place, change):
    """Changes the stored bytes of the chunk that has this place."""
    with h5py.File(path) as file:
        info = file[dataset].id.get_chunk_info_by_coord(place)
    with open(path, "r+b") as file:
        file.seek(info.byte_offset)
        stored = bytearray(file.read(info.size))
        change(stored)
        file.seek(info.byte_offset)
        file.write(stored)
    return info.byte_offset


def turn_a_bit(stored):
    stored[len(stored) // 2] ^= 0x40


@pytest.mark.parametrize("filters, word", [
    (dict(compression="gzip"), "deflate"), (dict(fletcher32=True), "fletcher32: its checksum is wrong"),
    (dict(compression="gzip", fletcher32=True), "fletcher32"), (hdf5plugin.Blosc(), "blosc"),
    (hdf5plugin.BZip2(), "bz2")])
def test_a_damaged_chunk_is_named(gd, tmp_path, filters, word):
    path = str(tmp_path / "a.h5")
    a = np.arange(120 * 90, dtype="f8").reshape(120, 90)
    with h5py.File(path, "w") as file:
        file.create_dataset("group/d", data=a, chunks=(30, 40), **filters)
    at = damage(path, "group/d", (60, 40), turn_a_bit if "blosc" not in word else
                lambda stored: stored.__setitem__(slice(12, 16), b"\xff\xff\xff\x7f"))
    x = gd.open(f"{path}:/group/d")
    with pytest.raises(gd.ProviderFailed) as caught:
        x.sum().compute()
    assert f"{path}:/group/d: the chunk at (60, 40), at byte {at}: {word}" in str(caught.value)
    assert x[:60].sum() == a[:60].sum()  # the others are read


@pytest.mark.parametrize("libver, word", [("earliest", b"TREE"), ("v110", b"BTLF")])
def test_a_damaged_index_is_no_fill_value(gd, tmp_path, libver, word):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("d", data=np.ones((400, 40)), chunks=(10, 10), compression="gzip",
                            maxshape=(None, None))
    stored = bytearray(path.read_bytes())
    at = stored.rfind(word)
    assert at > 0
    stored[at] ^= 0xff
    path.write_bytes(stored)
    with pytest.raises(gd.Error):
        x = gd.open(f"{path}:/d")
        x.sum().compute()


@pytest.mark.parametrize("change, word", [
    (lambda key: key[8:16].__setitem__(slice(None), (35).to_bytes(8, "little")), "twice"),
    (lambda key: key[8:16].__setitem__(slice(None), (4000).to_bytes(8, "little")), "beyond the dataset"),
    (lambda key: key[0:4].__setitem__(slice(None), bytes(4)), "no bytes")])
@pytest.mark.parametrize("filters", [{}, dict(compression="gzip")])
def test_a_damaged_place_of_a_chunk_is_no_fill_value(gd, tmp_path, filters, change, word):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        file.create_dataset("d", data=np.ones((80, 20)), chunks=(10, 10), **filters)
        at = file["d"].id.get_chunk_info_by_coord((40, 10)).byte_offset
    if word == "no bytes" and not filters:
        return  # they have the size of the dataset's chunks, whatever the table says
    stored = bytearray(path.read_bytes())
    begin = stored.rfind(b"TREE") + 24
    size = 4 + 4 + 3 * 8 + 8  # bytes, mask, places, address
    keys = [begin + i * size for i in range(16)]
    key = next(k for k in keys if stored[k + 32:k + 40] == at.to_bytes(8, "little"))
    change(memoryview(stored)[key:key + size])
    path.write_bytes(stored)
    with pytest.raises(gd.BadFormat, match=word) as caught:
        gd.open(f"{path}:/d")
    assert f"at byte {at}" in str(caught.value) and f"{path}:/d" in str(caught.value)
    assert caught.value.expected and caught.value.found


@pytest.mark.parametrize("libver, group, word", [
    ("earliest", "/", b"SNOD"), ("earliest", "/", b"HEAP"), ("v110", "/g", b"FRHP"),
    ("v110", "/g", b"OHDR")])
def test_a_damaged_group_is_not_one_without_the_dataset(gd, tmp_path, libver, group, word):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for k in range(20):
            file[f"g/d{k}"] = np.arange(8)
        at = h5py.h5o.get_info(file[group].id).addr
    stored = bytearray(path.read_bytes())
    stored[at if word == b"OHDR" else stored.find(word)] ^= 0xff
    path.write_bytes(stored)
    with pytest.raises(gd.BadFormat, match=f"cannot (read the group|open) '{group}' at byte {at}: ") as caught:
        gd.open(f"{path}:/g/d3")
    assert str(path)[:60] in str(caught.value) and "damage" in caught.value.found


def test_a_fill_value_that_is_never_filled_in(gd, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        d = file.create_dataset("d", (100,), "i4", chunks=(10,), compression="gzip", fillvalue=7,
                                fill_time="never")
        d[20:30] = 1
    np.testing.assert_array_equal((gd.open(f"{tmp_path}/a.h5:/d") + 0).compute(),
                                  np.repeat([0, 0, 1, 0, 0, 0, 0, 0, 0, 0], 10))


def test_a_cut_file_and_a_vanishing_one_are_errors(gd, tmp_path):
    from gpuarrayd import _session
    path = str(tmp_path / "a.h5")
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=np.random.default_rng(1).random((400, 500)), chunks=(100, 500),
                            compression="gzip")
    session = _session.current()
    opened = session.open(f"{path}:/d", False, None)  # and not read yet
    os.truncate(path, (n := os.path.getsize(path)) - 1)
    with pytest.raises(gd.ProviderFailed, match=f"{path}:/d: the chunk at .*is truncated: it says {n} bytes"):
        session.run([("sum(x)", None, None)], [("x", opened)], None, 0, None, False, False, None)
    with open(path, "ab") as file:
        file.write(b"\0")
    x = gd.open(f"{path}:/d")
    assert x[:10].sum() > 0
    os.truncate(path, n // 2)
    with pytest.raises(gd.ShortRead, match=f"is truncated: it says {n} bytes"):
        x.sum().compute()
    with pytest.raises(gd.ShortRead):
        gd.open(f"{path}:/d")


def test_a_filter_that_nobody_has_is_named(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("d", data=np.zeros((50, 50), "f4"), chunks=(30, 40), **hdf5plugin.Zfp())
    assert "hdf5plugin" in refused(f"{tmp_path}/a.h5:/d", 32013)


def test_what_a_newer_hdf5_has_written_says_what_helps(gd, tmp_path):
    if h5py.version.hdf5_version_tuple < (2, 0, 0):
        return  # h5py's HDF5 writes what ours reads
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        file.create_dataset("d", data=np.arange(100.0), chunks=(10,), compression="gzip")
    try:
        assert gd.open(f"{tmp_path}/a.h5:/d").sum() == 4950  # as new an HDF5
    except gd.BadFormat as error:
        assert "libver='v110'" in str(error) and "HDF5 1." in str(error)
