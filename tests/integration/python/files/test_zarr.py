"""Zarr stores that zarr-python made, read by us: every codec, order, byte order, dtype, kind of shard
and name of chunk; what is listed, and what is refused."""

import itertools
import json
import os
import subprocess
import time
import warnings

import h5py
import numpy as np
import pytest

import conftest

zarr = pytest.importorskip("zarr", minversion="3")
import numcodecs  # noqa: E402
import zarr.codecs as codecs  # noqa: E402
import zarr.codecs.numcodecs as wrapped  # noqa: E402

warnings.filterwarnings("ignore", module="zarr")
warnings.filterwarnings("ignore", module="numcodecs")

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
SHAPE, CHUNKS = (7, 5, 6), (4, 5, 4)


def values(dtype, seed=0, shape=SHAPE):
    """Numbers that repeat and do not, with zeros in a chunk of their own."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 100, shape).astype(dtype)
    a[:4, :, :4] = 0
    return a


def compare(gd, spec, wanted):
    """All arrays in few jobs; spec -> what NumPy has."""
    names = list(wanted)
    for at in range(0, len(names), 16):
        some = names[at:at + 16]
        got = gd.compute(*[spec(name) for name in some])
        for name, array in zip(some, got if isinstance(got, (list, tuple)) else [got], strict=True):
            want = wanted[name]
            assert array.dtype == want.dtype.newbyteorder("="), name
            np.testing.assert_array_equal(array, want, err_msg=str(name))


def v2_codecs(dtype):
    """Filters and compressor."""
    for compressor in (None, numcodecs.Zlib(1), numcodecs.GZip(6), numcodecs.BZ2(1),
                       numcodecs.LZMA(preset=1), numcodecs.LZMA(format=2, preset=1),
                       numcodecs.LZ4(), numcodecs.Zstd(5), numcodecs.Zstd(-3, checksum=True)):
        yield None, compressor
    for cname, shuffle in itertools.product(("blosclz", "lz4", "lz4hc", "zlib", "zstd"), (0, 1, 2)):
        yield None, numcodecs.Blosc(cname, 3, shuffle)
    size = np.dtype(dtype).itemsize
    yield [numcodecs.Shuffle(size)], numcodecs.Zlib(4)
    yield [numcodecs.Shuffle(size), numcodecs.CRC32()], numcodecs.LZ4()
    yield [numcodecs.Fletcher32()], numcodecs.Zstd()
    yield [numcodecs.Adler32(), numcodecs.CRC32C()], None
    yield [numcodecs.CRC32(location="end")], None
    if np.dtype(dtype).kind in "iu":
        yield [numcodecs.Delta(dtype)], numcodecs.Zlib(1)
        yield [numcodecs.Delta(dtype, "i8"), numcodecs.Shuffle(8)], None
    if np.dtype(dtype).kind == "f":
        yield [numcodecs.FixedScaleOffset(offset=3, scale=2, dtype=dtype, astype="<i2")], None
        yield [numcodecs.FixedScaleOffset(offset=-1, scale=4, dtype=dtype, astype="u2"),
               numcodecs.Delta("u2")], numcodecs.BZ2()
        yield [numcodecs.BitRound(8 if size == 4 else 20)], numcodecs.Zstd()
        yield [numcodecs.Quantize(1, dtype)], numcodecs.Zlib(1)


def test_version_2_in_every_codec_order_and_dtype(gd, folder):
    group = zarr.open_group(folder / "a.zarr", mode="w", zarr_format=2)
    wanted, n = {}, 0
    for k, code in enumerate(DTYPES):
        dtype = np.dtype(code)
        for i, (filters, compressor) in list(enumerate(v2_codecs(dtype)))[k % 2::2]:
            n += 1
            order, separator = "CF"[n // 2 % 2], "./"[n % 2]
            stored = dtype.newbyteorder(">") if n % 3 == 0 and not filters else dtype
            name = f"{code.replace('?', 'b')}-{i}"
            a = group.create_array(name, shape=SHAPE, chunks=CHUNKS, dtype=stored, order=order,
                                   filters=filters, compressors=compressor,
                                   fill_value=dtype.type(n % 2),
                                   chunk_key_encoding={"name": "v2", "separator": separator})
            a[:] = values(code, n)
            wanted[name] = a[:]
    assert len(wanted) > 150
    compare(gd, lambda name: gd.open(f"{folder}/a.zarr:/{name}"), wanted)


def v3_codecs(dtype):
    """Filters, serializer and compressors."""
    size = np.dtype(dtype).itemsize
    for compressors in ([], [codecs.GzipCodec(level=4)], [codecs.ZstdCodec(level=3)],
                        [codecs.ZstdCodec(level=1, checksum=True)], [codecs.Crc32cCodec()],
                        [codecs.ZstdCodec(), codecs.Crc32cCodec()], [wrapped.Zlib(level=3)],
                        [wrapped.BZ2(level=1)], [wrapped.LZ4()], [wrapped.LZMA(preset=1)],
                        [wrapped.Shuffle(elementsize=size), codecs.GzipCodec()],
                        [wrapped.Fletcher32()], [wrapped.Adler32(), wrapped.CRC32()]):
        yield [], compressors
    for cname, shuffle in (("lz4", "shuffle"), ("zstd", "bitshuffle"), ("zlib", "noshuffle")):
        yield [], [codecs.BloscCodec(cname=cname, clevel=4, shuffle=shuffle, typesize=size)]
    for order in ((2, 0, 1), (1, 2, 0), (2, 1, 0), (0, 2, 1)):
        yield [codecs.TransposeCodec(order=order)], [codecs.ZstdCodec()]
    if np.dtype(dtype).kind in "iu":
        yield [wrapped.Delta(dtype=np.dtype(dtype).str)], [codecs.GzipCodec()]


def test_version_3_in_every_codec_shard_and_dtype(gd, folder):
    group = zarr.open_group(folder / "a.zarr", mode="w")
    wanted, n = {}, 0
    for k, code in enumerate(DTYPES):
        for i, (filters, compressors) in list(enumerate(v3_codecs(code)))[k % 2::2]:
            n += 1
            endian = "big" if n % 2 and not any("delta" in str(f).lower() for f in filters) else "little"
            shards = (None, (4, 5, 8), (8, 10, 4))[n % 3]
            keys = [{"name": "default", "separator": "/"}, {"name": "v2", "separator": "."},
                    {"name": "default", "separator": "."}, {"name": "v2", "separator": "/"}][n % 4]
            name = f"{code.replace('?', 'b')}-{i}"
            a = group.create_array(name, shape=SHAPE, chunks=CHUNKS, shards=shards, dtype=code,
                                   filters=filters, serializer=codecs.BytesCodec(endian=endian),
                                   compressors=compressors, fill_value=np.dtype(code).type(n // 2 % 2),
                                   chunk_key_encoding=keys)
            a[:] = values(code, n)
            wanted[name] = a[:]
    assert len(wanted) > 100
    compare(gd, lambda name: gd.open(f"{folder}/a.zarr:/{name}"), wanted)


def sharding(inner, codec_list, location="end", checked=True, endian="little"):
    index = [{"name": "bytes", "configuration": {"endian": endian}}]
    return {"name": "sharding_indexed", "configuration": {
        "chunk_shape": inner, "codecs": codec_list, "index_location": location,
        "index_codecs": index + ([{"name": "crc32c"}] if checked else [])}}


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}


def transpose(*order):
    return {"name": "transpose", "configuration": {"order": list(order)}}


def write_v3(path, shape, chunks, dtype, codec_list, **more):
    path.mkdir(parents=True)
    meta = {"zarr_format": 3, "node_type": "array", "shape": list(shape), "data_type": dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
            "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": codec_list,
            "attributes": {}, **more}
    (path / "zarr.json").write_text(json.dumps(meta))
    return path


def test_shards_of_every_kind(gd, folder):
    """Shards in shards, transposed outside and inside, their index first and last, with a checksum
    and without."""
    kinds = {
        "first": [sharding([3, 2, 2], [BYTES, ZSTD], "start")],
        "unchecked": [sharding([3, 2, 2], [BYTES], "end", checked=False)],
        "big": [sharding([1, 4, 2], [BYTES], "start", endian="big")],
        "inside": [sharding([3, 2, 4], [transpose(2, 0, 1), BYTES, ZSTD])],
        "outside": [transpose(2, 0, 1), sharding([2, 2, 4], [BYTES, ZSTD])],
        "both": [transpose(1, 2, 0), sharding([2, 4, 2], [transpose(2, 1, 0), BYTES])],
        "nested": [sharding([6, 4, 4], [sharding([3, 2, 4], [BYTES, ZSTD], "start")])],
        "turned": [transpose(2, 1, 0),
                   sharding([2, 4, 2], [transpose(1, 2, 0), sharding([2, 2, 1], [BYTES])])],
    }
    wanted = {}
    for i, (name, codec_list) in enumerate(kinds.items()):
        write_v3(folder / "a.zarr" / name, (11, 7, 10), (6, 4, 8), "int32", codec_list)
        a = zarr.open_array(folder / "a.zarr" / name, mode="r+")
        a[:] = values("i4", i, (11, 7, 10))
        a[6:, 4:, :] = 0
        wanted[name] = a[:]
        assert wanted[name].any()
    (folder / "a.zarr/zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    compare(gd, lambda name: gd.open(f"{folder}/a.zarr:/{name}"), wanted)
    for name in wanted:
        for text in ("[::-1, 2, 1::3]", "[5:7, None, ..., -1]"):
            got = gd.open(f"{folder}/a.zarr:/{name}{text}").compute()
            np.testing.assert_array_equal(got, eval(f"x{text}", {"x": wanted[name]}), err_msg=name)


def test_arrays_at_the_root_without_axes_and_without_elements(gd, folder):
    for version in (2, 3):
        zarr.save_array(folder / f"r{version}.zarr", np.arange(30.0).reshape(5, 6), zarr_format=version)
        for slash in ("", "/", ":", ":/", "/:/"):
            got = gd.open(f"{folder}/r{version}.zarr{slash}").compute()
            assert np.array_equal(got, np.arange(30.0).reshape(5, 6))
        group = zarr.open_group(folder / f"g{version}.zarr", mode="w", zarr_format=version)
        group.create_array("one", shape=(), dtype="f8")[...] = 2.5
        group.create_array("none", shape=(3, 0, 2), dtype="i2")
        group.create_array("never", shape=(3, 2), dtype="f4", fill_value=np.nan)
        wanted = {"one": np.array(2.5), "none": np.zeros((3, 0, 2), "i2"),
                  "never": np.full((3, 2), np.nan, "f4")}
        compare(gd, lambda name: gd.open(f"{folder}/g{version}.zarr:/{name}"), wanted)
        assert gd.open(f"{folder}/g{version}.zarr:one[None]").compute().tolist() == [2.5]


@pytest.mark.parametrize("fill, dtype, value", [
    ("NaN", "float32", np.nan), ("-Infinity", "float64", -np.inf), ("0x7fc00001", "float32", np.nan),
    ("0x3ff8000000000000", "float64", 1.5), (2**64 - 1, "uint64", 2**64 - 1), (True, "bool", True),
    (-2**63, "int64", -2**63), (7.0, "int8", 7)])
def test_fill_values(gd, folder, fill, dtype, value):
    codec_list = [{"name": "bytes", "configuration": {"endian": "big"}}]
    write_v3(folder / "a.zarr", (2, 3), (1, 2), dtype, codec_list, fill_value=fill)
    got = gd.open(f"{folder}/a.zarr").compute()
    np.testing.assert_array_equal(got, np.full((2, 3), value, dtype))


# -- Written by us, read by zarr-python --------------------------------------------------------------

STORED = [{}, {"compression": "none"}, {"compression": "gzip:1"}, {"compression": "zstd:5"}, {"compression": "lz4"},
          {"compression": "blosc"}, {"compression": "blosc:zstd:3", "chunks": (3, 5, 4)},
          {"chunks": (2, 2, 2)}, {"chunks": (3, 2, 4), "shuffle": True, "compression": "zstd"},
          {"chunks": (3, 5, 4), "compression": "none"}, {"compression": "zlib:2"},
          {"compression": "bz2:1,crc32c"}, {"compression": "lzma:1"}, {"compression": "none,crc32"},
          {"chunks": (3, 5, 4), "compression": "transpose,delta,zstd,adler32"},
          {"chunks": (3, 2, 4), "shuffle": True, "compression": "transpose"}]
SHARDED = [{"chunks": (3, 5, 2), "shards": (6, 5, 4)}, {"chunks": (2, 2, 2), "shards": (4, 4, 8)},
           {"chunks": (1, 5, 3), "shards": (7, 10, 6), "compression": "blosc:lz4:9"},
           {"chunks": (2, 3, 2), "shards": (2, 3, 2), "compression": "none"},
           {"chunks": (1, 5, 3), "shards": (7, 10, 6), "compression": "transpose:1:2:0,bz2,crc32c"},
           {"chunks": (2, 3, 2), "compression": "transpose:2:0:1,crc32c"},
           {"chunks": (2, 1, 2), "shards": ((6, 8, 8), (2, 4, 4)), "compression": "transpose,zstd:1"},
           {"chunks": (1, 5, 1), "shards": [[4, 10, 4], [2, 5, 2], [1, 5, 2]], "compression": "none"}]


def check(path, want):
    got = zarr.open(str(path), mode="r")
    assert got.dtype == want.dtype and got.shape == want.shape, path
    np.testing.assert_array_equal(got[...], want, err_msg=str(path))


def test_what_is_written_zarr_python_reads(gd, folder):
    for version in (2, 3):
        zarr.open_group(folder / f"v{version}.zarr", mode="w", zarr_format=version)
        kinds = STORED + (SHARDED if version == 3 else [])
        wanted = {}
        for i, kind in enumerate(kinds):
            code = DTYPES[i % len(DTYPES)]
            wanted[f"g/{i}"] = values(code, i)
            gd.save(f"{folder}/v{version}.zarr:/g/{i}", gd.lazy(wanted[f"g/{i}"]), **kind)
        for name, want in wanted.items():
            check(folder / f"v{version}.zarr" / name, want)
        compare(gd, lambda name: gd.open(f"{folder}/v{version}.zarr:/{name}"), wanted)
        assert zarr.open_group(folder / f"v{version}.zarr").metadata.zarr_format == version
        assert not list(folder.glob(f"v{version}.zarr/**/.*gad-*"))
    for i, code in enumerate(DTYPES):
        gd.save(f"{folder}/{i}.zarr", gd.lazy(values(code, i)))
        check(folder / f"{i}.zarr", values(code, i))
        assert zarr.open(str(folder / f"{i}.zarr")).metadata.zarr_format == 3
    assert not list(folder.glob(".*gad-*"))


@pytest.mark.parametrize("version", [2, 3])
def test_filters_of_elements_are_numcodecs(gd, folder, version):
    rng = np.random.default_rng(version)
    group = zarr.open_group(str(folder / "f.zarr"), mode="w", zarr_format=version)
    for name, x, how in (("i2", rng.integers(-2**15, 2**15, (70, 50), "i2"), "delta,zstd:1"),
                         ("u8", rng.integers(0, 2**64, (70, 50), "u8"), "delta,gzip:1"),
                         ("f4", rng.integers(-99, 99, (70, 50)).astype("f4"), "delta"),
                         ("f8", rng.integers(-999, 999, (70, 50)) / 10, "fixedscaleoffset:-5:10:i2,delta,zstd")):
        gd.save(f"{folder}/f.zarr:/{name}", gd.asarray(x), chunks=(32, 32), compression=how)
        assert np.allclose(group[name][...], x, rtol=0, atol=1e-9) and group[name].dtype == x.dtype, name
        assert np.array_equal(gd.open(f"{folder}/f.zarr:/{name}").compute(), group[name][...])
    got = zarr.open_group(str(folder / "f.zarr"), mode="r")["f8"]
    inner = got.metadata.filters if version == 2 else got.metadata.codecs
    assert "fixedscaleoffset" in str(inner).lower()
    wide = np.array([-1e9, -300.26, 0, 300.25, 1e9])
    gd.save(f"{folder}/f.zarr:/wide", gd.asarray(wide), compression="fixedscaleoffset:0:10:i2")
    assert got.store and zarr.open(str(folder / "f.zarr"))["wide"][...].tolist() == [-3276.8, -300.3, 0, 300.2, 3276.7]
    for path, how in (("f.h5:/x", "delta"), ("f.npz:x", "delta"), ("f.zarr:/x", "delta:1"), ("f.zarr:/x", "delta,delt"),
                      ("f.zarr:/x", "fixedscaleoffset:0:0:i2"), ("f.zarr:/x", "fixedscaleoffset:1:i2")):
        with pytest.raises(gd.BadArgument):
            gd.save(f"{folder}/{path}", gd.asarray(wide), compression=how)
    with pytest.raises(gd.ProviderFailed, match="do not fit"):
        gd.save(f"{folder}/f.zarr:/x", gd.asarray(wide * np.nan), compression="fixedscaleoffset:0:10:i2")
    assert not (folder / "f.zarr/x").exists()


def test_whoever_gives_no_name_is_told_the_names(daemon, folder):
    zarr.open_group(str(folder / "s.zarr"), mode="w").create_array("a", data=np.arange(5))
    with h5py.File(folder / "f.h5", "w") as file:
        file["g/x"], file["y"] = np.arange(3), np.arange(4)
    for spec, words in (("s.zarr", "'/a'"), ("s.zarr/a", "STORE.zarr:/ARRAY"), ("f.h5", "'/g/x', '/y'")):
        done = daemon.ctl("show", spec, check=False, cwd=folder)
        assert done.returncode == 1 and f"expected: {words}" in done.stderr, done.stderr


def test_results_of_large_jobs_and_several_at_once(start, folder):
    """Through a pool of 1 MiB: tiles that cut chunks and shards, two results into one new store."""
    daemon = start(pool="1M")
    a = np.random.default_rng(1).normal(size=(700, 900)).round(2)
    zarr.save_array(folder / "a.zarr", a)
    np.save(folder / "b.npy", a[::-1])
    daemon.ctl("run", "s = a + b; d = a - b", "a=a.zarr", "b=b.npy", "-o", "s=x.zarr:/g/s", "-o",
               "d=x.zarr:/d", "--chunks", "64x100", "--shards", "256x500", "--compress", "zstd:1",
               cwd=folder)
    check(folder / "x.zarr/g/s", a + a[::-1])
    check(folder / "x.zarr/d", a - a[::-1])
    assert zarr.open(str(folder / "x.zarr/d")).shards == (256, 500)
    daemon.ctl("transpose", "x.zarr:/d", "-o", "x.zarr:/g/t", cwd=folder)
    check(folder / "x.zarr/g/t", (a - a[::-1]).T)
    daemon.ctl("run", "x * 2", "x=x.zarr:/d", "-o", "x.zarr:/d", cwd=folder)  # replaced by itself
    check(folder / "x.zarr/d", 2 * (a - a[::-1]))
    refused = daemon.ctl("run", "x * 2; x", "x=x.zarr:/d", "-o", "x.zarr", check=False, cwd=folder)
    assert refused.returncode and sorted(p.name for p in folder.iterdir()) == ["a.zarr", "b.npy", "x.zarr"]


def test_stores_of_xarray_there_and_back(gd, folder):
    """Names of axes, units and the value of what was not measured; consolidated metadata stay true."""
    xarray = pytest.importorskip("xarray")
    for version in (2, 3):
        path = folder / f"x{version}.zarr"
        data = np.arange(24, dtype="f4").reshape(4, 6)
        data[1, 2] = np.nan
        xarray.Dataset({"t": (("y", "x"), data, {"units": "K"})}).to_zarr(
            path, zarr_format=version, consolidated=True, encoding={"t": {"_FillValue": -9.0}})
        leaf = gd.open(f"{path}:/t", mask_and_scale=True)
        np.testing.assert_array_equal(leaf.compute(), data)
        gd.save(f"{path}:/u", gd.open(f"{path}:/t", mask_and_scale=True) * 2)
        with xarray.open_zarr(path, consolidated=True) as seen:
            np.testing.assert_array_equal(seen["u"].values, data * 2)
            assert seen["u"].dims == ("y", "x")


def test_damaged_chunks_end_jobs_with_their_place(daemon, folder):
    a = zarr.create_array(folder / "a.zarr", shape=(40, 40), chunks=(10, 10), shards=(20, 20), dtype="f8")
    a[...] = np.random.default_rng(1).normal(size=(40, 40))
    path = folder / "a.zarr/c/1/1"
    bytes_ = path.read_bytes()
    path.write_bytes(bytes(8) + bytes_[8:])
    done = daemon.ctl("run", "sum(a)", "a=a.zarr", check=False, cwd=folder)
    assert done.returncode and "a.zarr: the chunk at (20, 20), in 'c/1/1': zstd" in done.stderr, done.stderr
    path.write_bytes(bytes_[:-1])
    done = daemon.ctl("run", "sum(a)", "a=a.zarr", check=False, cwd=folder)
    assert "index of shard 'c/1/1'" in done.stderr and "provider-failed" in done.stderr, done.stderr
    done = daemon.ctl("run", "sum(a)", "a=a.zarr[:20]", cwd=folder)
    assert done.returncode == 0


def test_processes_that_are_killed_or_write_the_same_array(daemon, folder):
    """Nothing half written is ever seen, and the next output removes what the killed have left."""
    a = np.random.default_rng(0).normal(size=(1200, 1500))
    np.save(folder / "a.npy", a)

    def begin(expression, *more):
        return subprocess.Popen([conftest.CTL, "run", expression, "a=a.npy", "-o", "x.zarr:/g/r", *more],
                                cwd=folder, env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})

    for wait_s in (0.02, 0.06, 0.1):
        killed = begin("a * 3")
        time.sleep(wait_s)
        killed.kill()
        killed.wait()
        if (folder / "x.zarr").exists():
            check(folder / "x.zarr/g/r", a * 3)
    both = [begin("a * 2", "--chunks", "300x300"), begin("a * 5", "--chunks", "500x200", "--shards", "1000x400")]
    assert [process.wait(60) for process in both] == [0, 0]
    got = zarr.open(str(folder / "x.zarr/g/r"))[...]
    assert np.array_equal(got, a * 2) or np.array_equal(got, a * 5)
    daemon.ctl("run", "a + 1", "a=a.npy", "-o", "y.zarr", cwd=folder)
    assert sorted(path.name for path in folder.iterdir()) == ["a.npy", "x.zarr", "y.zarr"]
    assert not list((folder / "x.zarr").rglob("*gad-*"))
