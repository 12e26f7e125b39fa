"""Archives of numpy.savez() and savez_compressed() as sources and destinations: every dtype and layout,
archives beyond 4 GiB as Python's zipfile writes them, what is refused, and several writers of one."""

import io
import os
import re
import signal
import subprocess
import time
import zipfile

import numpy as np
import pytest

import conftest

DTYPES = ["?", "i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8", "u1", ">u2", "<u4", ">u8", "<f4", ">f4", "<f8",
          ">f8"]


def arrays():
    rng = np.random.default_rng(1)
    made = {f"t{i}": rng.integers(0, 100, (7, 11)).astype(dtype) for i, dtype in enumerate(DTYPES)}
    plain = rng.normal(size=(60, 70, 31))
    return made | {"c": plain, "f": np.asfortranarray(plain), "big": rng.normal(size=700_000).astype("f4"),
                   "scalar": np.float32(2.5), "empty": np.zeros((3, 0, 2), "i2"), "one": np.ones((1, 1)),
                   "deep/er": np.arange(5), "größe": np.arange(6.0)}


def save(path, how, values):
    """A file object: numpy adds .npz to nothing, and leaves no room in the headers of those that cannot seek."""
    with open(path, "wb") as f:
        how(f, **values)


def environment(daemon):
    return {**os.environ, "GPUARRAYD_SOCKET": daemon.socket}


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("npz")
    values = arrays()
    save(folder / "s.npz", np.savez, values)
    save(folder / "z.npz", np.savez_compressed, values)
    return folder, values


@pytest.mark.parametrize("kind", ["s", "z"])
def test_everything_that_numpy_saves_is_read(gd, archives, kind):
    folder, values = archives
    for name, value in values.items():
        got = gd.asarray(gd.open(folder / f"{kind}.npz:{name}"))
        assert got.dtype == value.dtype.newbyteorder("=") and got.shape == value.shape, name
        assert np.array_equal(got, value), name


@pytest.mark.parametrize("kind", ["s", "z"])
def test_selections(gd, archives, kind):
    folder, values = archives
    for name in ("c", "f"):
        for selection in ("[5]", "[::-7, 3:9, None, -1]", "[..., ::5]", "[59:0:-3, 69]", "[4:4]"):
            got = gd.asarray(gd.open(f"{folder}/{kind}.npz:{name}{selection}"))
            assert np.array_equal(got, eval(f"values[name]{selection}")), (name, selection)
            assert np.array_equal(gd.evaluate("x * 2", x=gd.open(f"{folder}/{kind}.npz:{name}")),
                                  values[name] * 2)


def test_a_job_may_read_twice_and_both_kinds_at_once(gd, archives):
    folder, values = archives
    z, s = (gd.open(folder / f"{kind}.npz:c") for kind in "zs")
    f = gd.open(folder / "z.npz:f")
    want = (values["c"] - values["c"].mean(axis=0)) / values["c"].std(axis=0)
    assert np.allclose(((z - z.mean(axis=0)) / s.std(axis=0)).compute(), want)
    assert np.array_equal((z + s + f).compute(), 3 * values["c"])


def test_what_is_refused(daemon, archives, folder):
    where, _ = archives
    save(folder / "o.npz", np.savez, {"o": np.array([{}, None]), "u": np.array(["text"]), "c": np.ones(3, "c8")})
    with zipfile.ZipFile(folder / "b.npz", "w") as archive:
        for name, method in (("b", zipfile.ZIP_BZIP2), ("l", zipfile.ZIP_LZMA)):
            buffer = io.BytesIO()
            np.save(buffer, np.arange(100))
            archive.writestr(f"{name}.npy", buffer.getvalue(), method)
    for spec, word, words in (
            (folder / "o.npz:o", "bad-dtype", "pickles"), (folder / "o.npz:u", "bad-dtype", "text"),
            (folder / "o.npz:c", "bad-dtype", "complex"), (folder / "b.npz:b", "bad-format", "bzip2"),
            (folder / "b.npz:l", "bad-format", "lzma"), (where / "z.npz:bigg", "not-found", "'big'"),
            (where / "z.npz", "bad-argument", "'t0'"), (where / "none.npz:x", "not-found", "none.npz")):
        done = daemon.ctl("run", "sum(x)", f"x={spec}", check=False)
        assert done.returncode == 1 and f"[{word}]" in done.stderr and words in done.stderr, done.stderr
    assert daemon.ctl("run", "sum(x)", f"x={where}/s.npz:one").stdout.strip() == "1"


def test_a_damaged_member_fails_the_job_by_its_name(daemon, archives, folder):
    where, values = archives
    packed = bytearray((where / "z.npz").read_bytes())
    with zipfile.ZipFile(where / "z.npz") as archive:
        info = archive.getinfo("big.npy")
    for i, (at, what) in enumerate(((info.header_offset + info.compress_size // 2, ""), (0, "CRC-32"))):
        damaged = bytearray(packed)
        if at:
            damaged[at:at + 40] = bytes(40)
        else:
            crc = info.CRC.to_bytes(4, "little")
            damaged = damaged.replace(crc, bytes(4))
        (folder / f"d{i}.npz").write_bytes(damaged)
        done = daemon.ctl("run", "sum(x)", f"x={folder}/d{i}.npz:big", check=False)
        assert done.returncode == 1 and "[provider-failed]" in done.stderr, done.stderr
        place = re.search(rf"d{i}.npz:big: the .*{what}.*, before byte (\d+)", done.stderr)
        assert place and (at or info.header_offset) <= int(place[1]) <= len(packed), done.stderr
    assert daemon.ctl("run", "sum(x)", f"x={folder}/d0.npz:one").stdout.strip() == "1"


def test_an_archive_that_becomes_shorter_meanwhile(gd, folder):
    np.savez_compressed(folder / "s.npz", x=np.random.default_rng(0).random(200_000))
    x = gd.open(folder / "s.npz:x")
    os.truncate(folder / "s.npz", 800_000)
    with pytest.raises(gd.ProviderFailed, match="s.npz:x: the file has become shorter meanwhile"):
        x.sum().compute()


def test_the_crc_of_a_stored_member_that_was_read(daemon, folder):
    """Of the whole: a part has none. Nothing is made of what is damaged."""
    x = np.arange(300_000.0).reshape(600, 500)
    np.savez(folder / "s.npz", good=x, bad=x.T)
    damaged = bytearray((folder / "s.npz").read_bytes())
    at = damaged.rindex(np.float64(299_999).tobytes())
    damaged[at + 7] ^= 1
    (folder / "s.npz").write_bytes(damaged)
    for words in (("run", "a + 1", "a=s.npz:bad", "-o", "r.npy"), ("convert", "s.npz:bad", "r.npy"),
                  ("run", "mean(a) + mean(b)", "a=s.npz:good", "b=s.npz:bad")):
        done = daemon.ctl(*words, check=False, cwd=folder)
        assert done.returncode == 1 and "[bad-format]" in done.stderr, done.stderr
        assert "the member 'bad.npy' of s.npz is damaged" in done.stderr and "CRC-32" in done.stderr
        assert [path.name for path in folder.iterdir()] == ["s.npz"]
    assert float(daemon.ctl("run", "sum(a)", "a=s.npz:good", cwd=folder).stdout) == x.sum()
    assert float(daemon.ctl("run", "sum(a)", "a=s.npz:bad[:100]", cwd=folder).stdout) == x.T[:100].sum()


def test_archives_beyond_4_gib(daemon, folder):
    """Sparse: the members stand behind a hole of 5 GiB, so that their offsets are Zip64's."""
    with open(folder / "x.npz", "wb") as f:
        f.seek(5 << 30)
        with zipfile.ZipFile(f, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, method in (("s", zipfile.ZIP_STORED), ("z", zipfile.ZIP_DEFLATED)):
                buffer = io.BytesIO()
                np.save(buffer, np.arange(1000))
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), buffer.getvalue(), method)
    for name in "sz":
        assert daemon.ctl("run", "sum(x)", f"x={folder}/x.npz:{name}").stdout.strip() == "499500"


def test_what_is_written_is_what_numpy_reads(gd, folder):
    rng = np.random.default_rng(2)
    a = rng.normal(size=(70, 80))
    gd.save(folder / "a.npz:a", gd.asarray(a) * 2)
    gd.evaluate("x - 1", x=np.asfortranarray(a), to=str(folder / "a.npz:deep/er"))
    for i, dtype in enumerate(DTYPES[::2]):
        gd.evaluate("x", x=np.arange(12).astype(dtype).reshape(3, 4), to=f"{folder}/a.npz:t{i}")
    gd.evaluate("sum(x)", x=a, to=f"{folder}/a.npz:größe")
    gd.save(folder / "a.npz:packed", gd.asarray(np.zeros(1000)) + 3, compression="gzip", compression_opts=1)
    with np.load(folder / "a.npz") as found:
        assert np.array_equal(found["a"], a * 2) and np.array_equal(found["deep/er"], a - 1)
        assert found["deep/er"].flags.f_contiguous
        assert np.isclose(found["größe"], a.sum()) and np.array_equal(found["packed"], np.full(1000, 3))
        for i, dtype in enumerate(DTYPES[::2]):
            assert np.array_equal(found[f"t{i}"], np.arange(12).astype(dtype).reshape(3, 4))
    with zipfile.ZipFile(folder / "a.npz") as archive:
        assert archive.testzip() is None and len(archive.namelist()) == 4 + len(DTYPES[::2])


def test_one_job_writes_several_arrays_of_an_archive(daemon, folder):
    np.savez_compressed(folder / "o.npz", old=np.arange(10), p=np.zeros(3))
    np.save(folder / "x.npy", np.arange(1000.0))
    daemon.ctl("run", "p = x * 2; q = sum(x); r = x - 1", f"x={folder}/x.npy", "-o", f"p={folder}/o.npz:p",
               "-o", f"q={folder}/o.npz:q", "-o", f"r={folder}/r.npy")
    with np.load(folder / "o.npz") as found:
        assert sorted(found) == ["old", "p", "q"] and found["q"] == 499500
        assert np.array_equal(found["p"], np.arange(1000.0) * 2) and np.array_equal(found["old"], np.arange(10))
    done = daemon.ctl("run", "p = x; q = x + 1", f"x={folder}/x.npy", "-o", f"p={folder}/o.npz:p",
                      "-o", f"q={folder}/o.npz:p.npy", check=False)
    assert done.returncode == 1 and "[overlapping-output]" in done.stderr


def test_in_place(daemon, folder):
    np.savez(folder / "i.npz", a=np.arange(12.0).reshape(3, 4), b=np.arange(5))
    np.savez_compressed(folder / "z.npz", a=np.arange(12.0))
    daemon.ctl("run", "a * 10", f"a={folder}/i.npz:a[1]", "-o", f"{folder}/i.npz:a[1]", "--in-place")
    with np.load(folder / "i.npz") as found:  # which compares the CRC
        assert found["a"][1].tolist() == [40, 50, 60, 70] and found["a"][0].tolist() == [0, 1, 2, 3]
    done = daemon.ctl("run", "a * 10", f"a={folder}/z.npz:a", "-o", f"{folder}/z.npz:a", "--in-place", check=False)
    assert "[read-only]" in done.stderr and "packed" in done.stderr


def test_writers_of_one_archive_lose_nothing(daemon, folder):
    np.save(folder / "x.npy", np.arange(1000))
    writers = [subprocess.Popen([str(conftest.CTL), "run", f"x + {i}", f"x={folder}/x.npy", "-o",
                                 f"{folder}/all.npz:w{i}"], env=environment(daemon), stderr=subprocess.PIPE)
               for i in range(6)]
    for writer in writers:
        assert writer.wait(timeout=60) == 0, writer.stderr.read()
        writer.stderr.close()
    with np.load(folder / "all.npz") as found:
        assert sorted(found) == [f"w{i}" for i in range(6)]
        for i in range(6):
            assert np.array_equal(found[f"w{i}"], np.arange(1000) + i)
    assert sorted(path.name for path in folder.iterdir()) == ["all.npz", "x.npy"]


def test_a_writer_that_is_killed_leaves_what_was_there(daemon, folder):
    np.savez(folder / "k.npz", old=np.arange(10))
    before = (folder / "k.npz").read_bytes()
    for seconds in (0.02, 0.06, 0.1, 0.2):
        writer = subprocess.Popen([str(conftest.CTL), "random", "normal", "--shape", "40000000", "--dtype", "f4",
                                   "-o", f"{folder}/k.npz:new"], env=environment(daemon), stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        if (folder / "k.npz").read_bytes() != before:  # it was faster
            with np.load(folder / "k.npz") as found:
                assert sorted(found) == ["new", "old"]
            np.savez(folder / "k.npz", old=np.arange(10))
        assert [path.name for path in folder.iterdir()] == ["k.npz"]


def test_what_is_packed_is_what_numpy_reads(daemon, folder):
    x = np.random.default_rng(3).normal(size=(500, 700)).round(1)
    np.save(folder / "x.npy", x)
    daemon.ctl("run", "p = x - 1; q = x > 0; s = sum(x, axis=0)", f"x={folder}/x.npy", "--compress", "gzip:2",
               "--sync", *(word for name in "pqs" for word in ("-o", f"{name}={folder}/p.npz:{name}")))
    with np.load(folder / "p.npz") as found:
        assert np.array_equal(found["p"], x - 1) and np.array_equal(found["q"], x > 0)
        assert np.allclose(found["s"], x.sum(axis=0))
    with zipfile.ZipFile(folder / "p.npz") as archive:
        assert all(info.compress_type == zipfile.ZIP_DEFLATED for info in archive.infolist())
    assert (folder / "p.npz").stat().st_size < x.nbytes / 2
    done = daemon.ctl("run", "x", f"x={folder}/x.npy", "-o", f"{folder}/p.npz:z", "--compress", "zstd", check=False)
    assert done.returncode == 1 and "[bad-argument]" in done.stderr and "gzip" in done.stderr
