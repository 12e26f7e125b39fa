"""gpuarrayctl as a person uses it: files of all formats, errors that say what to do, exit codes."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

import conftest
import wire


@pytest.fixture
def files(folder):
    rng = np.random.default_rng(20)
    a = rng.normal(size=(132, 73, 144)).astype("f4")
    np.save(folder / "a.npy", a)
    np.save(folder / "f.npy", np.asfortranarray(a))
    np.save(folder / "big-endian.npy", a.astype(">f4"))
    with h5py.File(folder / "x.h5", "w", userblock_size=512) as f:
        f["plain"] = a
        f.create_dataset("chunks", data=a, chunks=(1, 73, 144))
        f.create_dataset("odd", data=a, chunks=(50, 17, 40))
        f.create_dataset("packed", data=a, chunks=(10, 73, 144), compression="gzip", shuffle=True)
        f.create_dataset("many", data=a[:, :, 0], chunks=(1, 1))
        f.create_dataset("filled", shape=(100, 100), dtype="f4", chunks=(10, 10), fillvalue=7)
        f["filled"][:10, :10] = 1
        f["group/ints"] = np.arange(1000, dtype="i2")
        f["flags"] = np.array([True, False, True])
        f["text"] = "hello"
        f["scalar"] = 2.5
        f["winds"] = np.array([1, 2, -99.9, 4], "f4")
        f["winds"].attrs["_FillValue"] = np.float32(-99.9)
    a.tofile(folder / "a.raw")
    return folder, a


@pytest.mark.values
@pytest.mark.parametrize("source", ["a.npy", "f.npy", "big-endian.npy", "x.h5:/plain", "x.h5:/chunks",
                                    "x.h5:/odd", "x.h5:/packed", "a.raw:f4:132x73x144"])
@pytest.mark.parametrize("target", ["r.npy", "r.h5:/deep/in/r", "r.raw"])
def test_every_source_to_every_destination(daemon, files, source, target):
    folder, a = files
    daemon.ctl("run", "a*a + 1", f"a={source}", "-o", target, cwd=folder)
    if target == "r.npy":
        got = np.load(folder / target)
    elif target == "r.raw":
        got = np.fromfile(folder / target, "f4").reshape(a.shape)
    else:
        with h5py.File(folder / "r.h5") as f:
            got = f["deep/in/r"][:]
    assert got.dtype == np.float32 and np.array_equal(got, a * a + np.float32(1))
    assert not [p for p in os.listdir(folder) if p.startswith(".")]


def test_other_datasets(daemon, files):
    folder, a = files
    for source, want in (("many", a[:, :, 0]), ("group/ints", np.arange(1000)), ("scalar", 2.5)):
        daemon.ctl("run", "a + a", f"a=x.h5:/{source}", "-o", "r.npy", cwd=folder)
        assert np.array_equal(np.load(folder / "r.npy"), np.asarray(want) + want)
    daemon.ctl("run", "a + a", "a=x.h5:/filled", "-o", "r.npy", cwd=folder)
    want = np.full((100, 100), 14, "f4")
    want[:10, :10] = 2
    assert np.array_equal(np.load(folder / "r.npy"), want)
    done = daemon.ctl("run", "~a", "a=x.h5:/flags", cwd=folder)
    assert done.stdout.split() == ["bool", "(3,)", "False", "True", "False"]
    daemon.ctl("run", "~a", "a=x.h5:/flags", "-o", "b.h5:/not", cwd=folder)
    with h5py.File(folder / "b.h5") as f:
        assert f["not"].dtype == bool and f["not"][:].tolist() == [False, True, False]


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions(daemon, folder, version):
    with open(folder / "v.npy", "wb") as f:
        np.lib.format.write_array(f, np.arange(10.0), version=version)
    daemon.ctl("run", "v * 2", "v=v.npy", "-o", "r.npy", cwd=folder)
    assert np.array_equal(np.load(folder / "r.npy"), np.arange(10.0) * 2)
    with open(folder / "r.npy", "rb") as f:
        assert np.lib.format.read_magic(f) == (1, 0)
        np.lib.format.read_array_header_1_0(f)
        assert f.tell() == 4096


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (1, 1, 1)])
def test_small_and_empty_shapes(daemon, folder, shape):
    a = np.ones(shape)
    np.save(folder / "a.npy", a)
    for target in ("r.npy", "r.h5:/r"):
        daemon.ctl("run", "a + 1", "a=a.npy", "-o", target, cwd=folder)
    assert np.array_equal(np.load(folder / "r.npy"), a + 1)
    with h5py.File(folder / "r.h5") as f:
        assert f["r"].shape == shape and np.array_equal(f["r"][()], a + 1)


def test_two_names_take_the_two_results_of_a_function(daemon, files):
    folder, a = files
    daemon.ctl("run", "q, r = np.divmod(a, k); m = max(a) ;f , e=frexp( a*2 )", "a=a.npy", "k=0.7",
               "-o", "q=q.npy", "-o", "r=r.h5:/r", "-o", "f=f.npy", "-o", "e=e.npy", cwd=folder)
    with h5py.File(folder / "r.h5") as f:
        quotient, remainder = np.divmod(a, np.float32(0.7))
        assert np.array_equal(np.load(folder / "q.npy"), quotient)
        assert np.array_equal(f["r"][:], remainder)
    fraction, exponent = np.frexp(a * np.float32(2))
    assert np.array_equal(np.load(folder / "f.npy"), fraction)
    assert np.load(folder / "e.npy").dtype == np.int32
    assert np.array_equal(np.load(folder / "e.npy"), exponent)
    done = daemon.ctl("run", "q, r = divmod(5, 3)", cwd=folder)
    assert done.stdout.split() == ["q", "=", "1", "r", "=", "2"], done.stdout


@pytest.mark.parametrize("text", ["q, r = a", "q, r = sqrt(a)", "q, r = divmod(a, 1) + 1",
                                  "q, r = divmod(a, 1)[0]", "q, r = divmod", "q, r = 1 + frexp(a)"])
def test_two_names_need_a_function_with_two_results(daemon, files, text):
    folder, _ = files
    done = daemon.ctl("run", text, "a=a.npy", cwd=folder, check=False)
    assert done.returncode == 2 and "two results" in done.stderr, done.stderr


def test_an_existing_hdf5_file_keeps_its_other_datasets(daemon, files):
    folder, a = files
    daemon.ctl("run", "sqrt(abs(a))", "a=x.h5:/chunks", "-o", "x.h5:/group/root", cwd=folder)
    with h5py.File(folder / "x.h5") as f:
        assert np.array_equal(f["group/root"][:], np.sqrt(np.abs(a)))
        assert np.array_equal(f["plain"][:], a) and f["group/ints"].shape == (1000,)
        assert sorted(f) == sorted(["plain", "chunks", "odd", "packed", "many", "filled", "group",
                                    "flags", "text", "scalar", "winds"])


def test_outputs_are_whole_or_not_at_all(daemon, files):
    folder, a = files
    before = (folder / "a.npy").stat()
    os.chmod(folder / "a.npy", 0o640)
    os.symlink("a.npy", folder / "link.npy")
    for expr in ("a / 'x'", "a + nothing", "a[", "min(a, a)"):
        assert daemon.ctl("run", expr, "a=a.npy", "-o", "a.npy", cwd=folder, check=False).returncode
    assert np.array_equal(np.load(folder / "a.npy"), a)
    daemon.ctl("run", "a + 1", "a=a.npy", "-o", "link.npy", cwd=folder)
    assert np.array_equal(np.load(folder / "a.npy"), a + 1)
    assert (folder / "link.npy").is_symlink()
    after = (folder / "a.npy").stat()
    assert after.st_mode & 0o777 == 0o640 and after.st_ino != before.st_ino
    assert not [p for p in os.listdir(folder) if p.startswith(".")]


@pytest.mark.parametrize("first, second", [
    ("r.npy", "r.npy"), ("r.npy", "./r.npy"), ("r.npy", "link.npy"), ("r.raw", "./r.raw"),
    ("new.h5:/x", "./new.h5:x"), ("new.h5:/x", "new.h5:/x/y"), ("x.h5:/new", "./x.h5:/new"),
    ("x.h5:/g/new/y", "./x.h5:/g/new")])
def test_two_results_cannot_go_to_one_place(daemon, files, first, second):
    folder, a = files
    os.symlink("r.npy", folder / "link.npy")
    before = sorted(os.listdir(folder))
    done = daemon.ctl("run", "p = a + 1; q = a * 2", "a=a.npy", "-o", f"p={first}", "-o",
                      f"q={second}", check=False, cwd=folder)
    assert done.returncode == 1 and "overlapping-output" in done.stderr, done.stderr
    assert sorted(os.listdir(folder)) == before
    with h5py.File(folder / "x.h5") as f:
        assert not [name for name in f if name.startswith(".") or name in ("new", "g")]


def test_many_write_into_one_hdf5_file_at_once(daemon, files):
    folder, a = files
    running = [subprocess.Popen([conftest.CTL, "run", f"a + {i}", "a=a.npy", "-o", f"x.h5:/new/{i}"],
                                cwd=folder, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})
               for i in range(6)]
    said = [process.communicate(timeout=60)[1] for process in running]
    assert [process.returncode for process in running] == [0] * len(running), said
    with h5py.File(folder / "x.h5") as f:
        assert all(np.array_equal(f[f"new/{i}"][()], a + np.float32(i)) for i in range(6))


def test_in_place(daemon, files):
    folder, a = files
    daemon.ctl("run", "a * 2", "a=a.npy", "-o", "a.npy", "--in-place", cwd=folder)
    assert np.array_equal(np.load(folder / "a.npy"), a * 2)


def test_several_outputs_scalars_and_json(daemon, files):
    folder, a = files
    done = daemon.ctl("run", "r = a * k; lo = min(a); n = count_nonzero(a > 0)", "a=a.npy", "k=2.5",
                      "-o", "r=r.npy", "--json", cwd=folder)
    outcome = json.loads(done.stdout)
    values = {o["name"]: o.get("data") for o in outcome["outputs"]}
    assert np.float32(values["lo"]) == a.min() and values["n"] == np.count_nonzero(a > 0)
    assert np.array_equal(np.load(folder / "r.npy"), a * np.float32(2.5))
    assert outcome["read_bytes"] >= a.nbytes
    plan = json.loads(daemon.ctl("run", "a * k", "a=a.npy", "k=2.5", "--explain", "--json",
                                 cwd=folder).stdout)
    assert plan["outputs"][0]["shape"] == list(a.shape) and plan["restartable"]
    assert outcome["engine"] == plan["engine"] and outcome["engine_why"].startswith("auto: ")
    chosen, = [one for one in plan["engines"] if one["chosen"]]
    assert chosen["engine"] == plan["engine"] and "why_not" not in chosen
    assert chosen["seconds"] == plan["seconds"] and chosen["bound"] in "start memory file disk link work"
    text = daemon.ctl("run", "sqrt(a) + mean(a)", "a=a.npy", "--explain", cwd=folder).stdout
    assert "float32" in text and "pass" in text and f"engine   {plan['engine']}\nwhy      auto" in text
    nested = "a" + " - mean(a" * 39 + ")" * 39  # each is a pass of its own
    text = daemon.ctl("run", nested, "a=a.npy", "--explain", cwd=folder).stdout
    assert "\npass 40  over" in text and "\npass 41" not in text


def test_an_engine_that_is_not_there_is_refused(daemon, files):
    folder, _ = files
    for word, code, expected in (("cuda:15", "no-engine", "cpu"), ("cuda:16", "bad-argument", "cuda:15"),
                                 ("cuda:01", "bad-argument", "cuda:15"), ("gpu", "bad-argument", "auto")):
        for more in ((), ("--explain",)):
            done = daemon.ctl("run", "sum(a)", "a=a.npy", "--engine", word, "--json", *more,
                              cwd=folder, check=False)
            error = json.loads(done.stdout or done.stderr)["error"]
            assert done.returncode and error["code"] == code, error
            assert expected in error["expected"] and error["found"] == word


def test_fortran_order_is_kept_as_numpy_keeps_it(daemon, files):
    folder, a = files
    daemon.ctl("run", "f + 1", "f=f.npy", "-o", "r.npy", cwd=folder)
    assert np.load(folder / "r.npy").flags.f_contiguous
    daemon.ctl("run", "f + a", "f=f.npy", "a=a.npy", "-o", "r.npy", cwd=folder)
    assert np.array_equal(np.load(folder / "r.npy"), a + a)


def test_values_are_printed_as_numpy_names_them(daemon, folder):
    np.save(folder / "e.npy", np.zeros((0, 3)))
    np.save(folder / "v.npy", np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0]))
    assert daemon.ctl("run", "mean(e)", "e=e.npy", cwd=folder).stdout == "nan\n"
    np.save(folder / "i.npy", np.array([1234567890123, 9007199254740991]))
    assert "min 1234567890123 " in (text := daemon.ctl("show", "i.npy", cwd=folder).stdout)
    assert "max 9007199254740991 " in text
    values = daemon.ctl("run", "+v", "v=v.npy", cwd=folder).stdout.split()[-5:]
    assert values == ["nan", "nan", "inf", "-inf", "-0"]


def test_show(daemon, files):
    folder, a = files
    shown = json.loads(daemon.ctl("show", "a.npy", "--json", cwd=folder).stdout)
    assert np.float32(shown["min"]) == a.min() and np.float32(shown["max"]) == a.max()
    assert np.isclose(shown["mean"], a.mean(dtype="f8"), rtol=1e-12) and shown["nan"] == 0
    n = len(shown["histogram"])
    want = np.histogram(a.astype("f8"), bins=n)[0]
    assert sum(shown["histogram"]) == a.size and np.abs(want - shown["histogram"]).max() <= 2
    winds = json.loads(daemon.ctl("show", "x.h5:/winds", "--json", cwd=folder).stdout)
    assert winds["n_fill"] == 1 and winds["min"] == 1 and winds["max"] == 4
    text = daemon.ctl("show", "x.h5:/winds", cwd=folder).stdout
    assert "fill value -99.9" in text and "#" in text
    np.save(folder / "n.npy", np.array([np.nan, 1, np.inf, 3]))
    odd = json.loads(daemon.ctl("show", "n.npy", "--json", cwd=folder).stdout)
    assert odd["nan"] == 1 and odd["max"] == "inf" and odd["min"] == 1
    np.save(folder / "e.npy", np.zeros((0, 3)))
    assert "0 elements" in daemon.ctl("show", "e.npy", cwd=folder).stdout


REFUSED = [
    (["run", "a + 1", "a=missing.npy"], 1, "not-found", "missing.npy"),
    (["run", "a + 1", "a=x.h5:/nothing"], 1, "not-found", "'/chunks'"),
    (["run", "a + 1", "a=x.h5:/text"], 1, "bad-dtype", "text"),
    (["run", "a + 1", "a=."], 1, "", ""),
    (["run", "a + 1", "a=dir.npy"], 1, "bad-descriptor", "directory"),
    (["run", "a + 1", "a=fifo.npy"], 1, "bad-descriptor", ""),
    (["run", "a + 1", "a=zero.npy"], 1, "bad-descriptor", "device"),
    (["run", "a + 1", "a=proc.npy"], 1, "bad-descriptor", ""),
    (["run", "a + 1", "a=short.npy"], 1, "short-read", "short.npy"),
    (["run", "a + 1", "a=object.npy"], 1, "bad-dtype", "object"),
    (["run", "a + 1", "a=garbage.npy"], 1, "bad-format", "garbage.npy"),
    (["run", "a + 1", "a=garbage.h5:/x"], 1, "bad-format", ""),
    (["run", "a + 1", "a=a.raw:f4:1000x1000x1000"], 1, "short-read", ""),
    (["run", "a + 1", "a=a.raw"], 1, "bad-argument", "dtype and shape"),
    (["run", "a + sqr(a)", "a=a.npy"], 1, "unknown-name", "did you mean 'sqrt'"),
    (["run", "a + 1", "a=a.npy", "-o", "no/such/folder/r.npy"], 1, "not-found", ""),
    (["run", "a + 1", "a=a.npy", "-o", "dir.npy"], 1, "", ""),
    (["run", "a + 1", "a=a.npy", "-o", "r.xyz"], 1, "", ""),
    (["run", "a + 1", "a=a.npy"], 1, "too-large-for-inline", ""),
    (["run", "a + 1", "a"], 2, "bad-argument", "NAME=SOURCE"),
    (["run"], 2, "", "expression"),
    (["run", "a", "a=a.npy", "--engine", "cuda"], 1, "no-engine", ""),
    (["status", "4711"], 1, "unknown-job", ""),
    (["wait", "x"], 2, "", "number of a job"),
    (["levitate"], 2, "", "no verb"),
    (["show", "missing.npy"], 1, "not-found", ""),
]


@pytest.mark.parametrize("words, code, word, text", REFUSED, ids=lambda v: str(v)[:50])
def test_what_is_refused_and_how(daemon, files, words, code, word, text):
    folder, a = files
    (folder / "dir.npy").mkdir()
    os.mkfifo(folder / "fifo.npy")
    os.symlink("/dev/zero", folder / "zero.npy")
    os.symlink("/proc/self/status", folder / "proc.npy")
    data = (folder / "a.npy").read_bytes()
    (folder / "short.npy").write_bytes(data[:-1])
    np.save(folder / "object.npy", np.array([{}], object), allow_pickle=True)
    (folder / "garbage.npy").write_bytes(os.urandom(5000))
    (folder / "garbage.h5").write_bytes(os.urandom(5000))
    done = daemon.ctl(*words, check=False, cwd=folder, timeout=20)
    assert done.returncode == code, done
    assert word in done.stderr and text in done.stderr, done.stderr
    assert not (folder / "r.npy").exists()
    assert not [p for p in os.listdir(folder) if p.startswith(".")]


def damage(path, chunk):
    """A chunk of a file becomes zeros, which gzip cannot read."""
    with open(path, "r+b") as f:
        f.seek(chunk.byte_offset + 10)
        f.write(bytes(chunk.size - 10))


def test_a_damaged_dataset_is_not_to_be_looked_for(daemon, files):
    """The error names it, and show has no other."""
    folder, a = files
    with h5py.File(folder / "x.h5") as f:
        chunk = f["packed"].id.get_chunk_info(3)
    damage(folder / "x.h5", chunk)
    for words in (["show", "x.h5:/packed"], ["run", "sum(a)", "a=x.h5:/packed"]):
        done = daemon.ctl(*words, check=False, cwd=folder)
        assert done.returncode == 1 and "[provider-failed]" in done.stderr
        hint = done.stderr.rpartition("try: ")[2]
        assert "for each source" not in hint and "new copy" in hint and "info SOURCE" in hint, hint


def test_a_worker_that_never_starts_is_not_an_engine_that_was_asked_for(start, files, tmp_path):
    folder, a = files
    worker = tmp_path / "worker"
    worker.write_text("#!/bin/sh\nexit 1\n")
    worker.chmod(0o755)
    daemon = start(worker=worker)
    done = daemon.ctl("run", "sum(a)", "a=a.npy", check=False, cwd=folder)
    assert done.returncode == 1 and "[no-engine]" in done.stderr
    hint = done.stderr.rpartition("try: ")[2]
    assert "--engine" not in hint and "gpuarrayctl doctor" in hint and "daemon log" in hint, hint
    done = daemon.ctl("run", "sum(a)", "a=a.npy", "--engine", "cuda", check=False, cwd=folder)
    assert "without --engine" in done.stderr


def test_permissions(daemon, files):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    folder, a = files
    os.chmod(folder / "a.npy", 0)
    done = daemon.ctl("run", "a + 1", "a=a.npy", "-o", "r.npy", check=False, cwd=folder)
    assert done.returncode == 1 and "permission-denied" in done.stderr


def test_submit_wait_status_cancel_jobs(daemon, files):
    folder, a = files
    job = daemon.ctl("submit", "exp(sin(a))", "a=a.npy", "-o", "s.npy", "-l", "night shift",
                     cwd=folder).stdout.strip()
    daemon.ctl("wait", job)
    assert np.allclose(np.load(folder / "s.npy"), np.exp(np.sin(a)), rtol=1e-6)
    status = json.loads(daemon.ctl("status", job, "--json").stdout)
    assert status["state"] == "done" and status["label"] == "night shift"
    assert "night shift" in daemon.ctl("jobs").stdout
    refused = daemon.ctl("submit", "exp(q) + a", "a=a.npy", "-o", "t.npy", check=False, cwd=folder)
    assert refused.returncode == 1 and "unknown-name" in refused.stderr


def test_in_the_background_every_result_needs_a_destination(daemon, files):
    folder, a = files
    for words in (["sum(a)", "a=a.npy"], ["m = sum(a); r = a + 1", "a=a.npy", "-o", "r=r.npy"],
                  ["a + 1", "a=a.npy", "-o", "r.npy", "--explain"]):
        done = daemon.ctl("submit", *words, check=False, cwd=folder)
        assert done.returncode == 2 and "bad-argument" in done.stderr and done.stdout == ""
    assert not (folder / "r.npy").exists()


def test_cancel_of_a_submitted_job_leaves_nothing(daemon, folder):
    n = 512 << 20
    with open(folder / "big.raw", "wb") as f:
        f.truncate(4 * n)
    job = daemon.ctl("submit", "tanh(exp(sin(exp(sin(a)))))", f"a=big.raw:f4:{n}", "-o", "r.npy",
                     cwd=folder).stdout.strip()
    daemon.ctl("cancel", job)
    waited = daemon.ctl("wait", job, check=False)
    assert waited.returncode == 1 and "cancelled" in waited.stderr
    assert os.listdir(folder) == ["big.raw"]


def catches(process, number):
    with open(f"/proc/{process.pid}/status") as f:
        caught = next(line.split()[1] for line in f if line.startswith("SigCgt"))
    return int(caught, 16) >> (number - 1) & 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE],
                         ids=lambda number: number.name)
def test_a_signal_cancels_and_leaves_nothing(daemon, folder, number):
    n = 512 << 20
    with open(folder / "big.raw", "wb") as f:
        f.truncate(4 * n)
    for target in ("r.npy", "r.h5:/r"):
        process = subprocess.Popen([conftest.CTL, "run", "tanh(exp(sin(exp(sin(a)))))", f"a=big.raw:f4:{n}",
                                    "-o", target], cwd=folder, stderr=subprocess.PIPE,
                                   env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})
        while process.poll() is None and not catches(process, number):
            time.sleep(0.01)
        time.sleep(0.2)  # so that most of the times there is a job
        process.send_signal(number)
        if number == signal.SIGPIPE:
            process.send_signal(number)
        _, text = process.communicate(timeout=30)
        assert process.returncode == (-number if number == signal.SIGPIPE else 130), text
        assert os.listdir(folder) == ["big.raw"]


@pytest.mark.parametrize("is_ignored", [False, True])
def test_a_reader_that_leaves_is_no_error_unless_sigpipe_is_ignored(daemon, folder, is_ignored):
    np.save(folder / "a.npy", np.arange(4000.0))
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([conftest.CTL, "run", "a", "a=a.npy"], cwd=folder, stdout=writer,
                          stderr=subprocess.PIPE, text=True, timeout=30,
                          restore_signals=not is_ignored,  # Python's own SIGPIPE is ignored
                          env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})
    os.close(writer)
    if is_ignored:
        assert done.returncode == 1 and "Broken pipe" in done.stderr, done
    else:
        assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


def test_a_signal_that_is_ignored_from_the_start_stays_so(daemon, folder):
    with open(folder / "big.raw", "wb") as f:
        f.truncate(256 << 20)
    process = subprocess.Popen(["nohup", conftest.CTL, "run", "sum(tanh(exp(sin(a))))", "a=big.raw:f4:67108864"],
                               cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})
    with daemon.connect() as w:
        while not w.call("server.info")["counts"]["jobs_running"]:
            assert process.poll() is None
            time.sleep(0.01)
    process.send_signal(signal.SIGHUP)
    text, error = process.communicate(timeout=60)
    assert process.returncode == 0 and float(text) > 0, error


def test_silent_in_a_pipe_and_a_bar_on_a_terminal(daemon, folder):
    n = 128 << 20
    with open(folder / "big.raw", "wb") as f:
        f.truncate(4 * n)
    words = ["run", "tanh(exp(sin(exp(sin(a)))))", f"a=big.raw:f4:{n}", "-o", "r.npy"]
    done = daemon.ctl(*words, cwd=folder)
    assert done.stdout == "" and done.stderr == ""
    import pty
    leader, follower = pty.openpty()
    process = subprocess.Popen([conftest.CTL, *words], cwd=folder, stderr=follower,
                               stdout=subprocess.PIPE,
                               env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket})
    os.close(follower)
    seen = b""
    while True:
        try:
            data = os.read(leader, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    assert process.wait() == 0
    assert b"%" in seen and b"GB/s" in seen or b"MB/s" in seen, seen


def test_the_examples_of_help_are_true(daemon):
    texts = [daemon.ctl(*words, "--help").stdout for words in ([], ["run"], ["submit"])]
    examples = re.findall(r"gpuarrayctl (?:run|submit) '([^']+)'((?: \w+=\S+| '\w+=[^']+')*)",
                          "\n".join(texts))
    assert len(examples) >= 6
    with daemon.connect() as w:
        for text, words in examples:
            args = {name: np.ones(3) for name in re.findall(r" '?(\w+)=", words)}
            outputs = [{"expr": part.split(" = ")[-1].strip()} for part in text.split(";")]
            w.call("job.plan", outputs=outputs,
                   args={name: wire.argument(value) for name, value in args.items()})


def test_ping_info_and_help(daemon):
    assert "round trips" in daemon.ctl("ping", "-c", "10").stdout
    info = json.loads(daemon.ctl("info", "--json").stdout)
    assert info["pool"]["bytes"] == 8 << 20 and info["engines"][0]["name"] == "cpu"
    assert "Exit codes" in daemon.ctl("--help").stdout
    for verb in "run submit wait status cancel jobs info show ping".split():
        assert "Usage" in daemon.ctl(verb, "--help").stdout


def test_a_private_daemon_starts_and_leaves(folder):
    (folder / "run").mkdir(mode=0o700)
    np.save(folder / "a.npy", np.arange(100000.0))
    env = {**os.environ, "XDG_RUNTIME_DIR": str(folder / "run"),
           "GPUARRAYD_DAEMON": str(conftest.DAEMON)}
    env.pop("GPUARRAYD_SOCKET", None)
    done = subprocess.run([conftest.CTL, "run", "a + 1", "a=a.npy", "-o", "r.npy"], cwd=folder,
                          env=env, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(folder / "r.npy"), np.arange(100000.0) + 1)
    info = json.loads(subprocess.run([conftest.CTL, "info", "--json"], env=env, check=True,
                                     capture_output=True, timeout=30).stdout)
    os.kill(info["pid"], signal.SIGTERM)
    end = time.monotonic() + 10
    while os.path.exists(f"/proc/{info['pid']}") and time.monotonic() < end:
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{info['pid']}")


def test_no_daemon_has_its_exit_code(folder):
    done = subprocess.run([conftest.CTL, "ping"], capture_output=True, text=True,
                          env={**os.environ, "GPUARRAYD_SOCKET": str(folder / "nothing")})
    assert done.returncode == 3 and "no-daemon" in done.stderr


def test_wire_client_needs_nothing_of_ours():
    """The plain client of these tests imports no module of the project."""
    text = (conftest.HERE / "wire.py").read_text()
    assert "import gpuarrayd" not in text and "ctypes" not in text and sys.version_info >= (3, 10)


@pytest.mark.plain
@pytest.mark.parametrize("threads", [1, 2])
def test_a_provider_job_goes_on_beside_one_that_never_pauses(folder, start, threads):
    """The client's answers are seen although no thread of the worker is ever without work."""
    d = start(threads=threads)
    a = np.random.default_rng(3).normal(size=(80, 64, 256)).astype("f4")
    with h5py.File(folder / "x.h5", "w") as f:
        f.create_dataset("packed", data=a, chunks=(4, 64, 256), compression="gzip", compression_opts=1)
    with open(folder / "zeros.raw", "wb") as f:
        f.truncate(1 << 40)
    busy = subprocess.Popen([conftest.CTL, "run", "-q", "sum(lgamma(x + 2.5))",
                             f"x={folder}/zeros.raw:f8:{1 << 37}"], stdout=subprocess.DEVNULL,
                            env={**os.environ, "GPUARRAYD_SOCKET": d.socket})
    try:
        time.sleep(0.3)
        for _ in range(1 if conftest.IS_SANITIZED else 3):
            d.ctl("run", "-q", "sqrt(abs(a))", f"a={folder}/x.h5:/packed", "-o",
                  f"{folder}/r.npy", timeout=60)
            assert np.array_equal(np.load(folder / "r.npy"), np.sqrt(np.abs(a)))
        assert busy.poll() is None
    finally:
        busy.send_signal(signal.SIGINT)
        busy.wait(30)


def test_formats_needs_no_daemon(daemon):
    listed = json.loads(daemon.ctl("formats", "--json").stdout)
    formats = {one["name"]: one for one in listed["formats"]}
    assert formats["hdf5"]["chunks"] and not formats["npy"]["chunks"]
    codecs = {one["name"]: one for one in listed["codecs"]}
    assert codecs["zstd"] == {"name": "zstd", "hdf5": 32015, "zarr": "zstd", "reads": True,
                              "writes": True, "package": "libzstd-dev"}
    assert codecs["scaleoffset"]["reads"] and not codecs["scaleoffset"]["writes"]
    assert not codecs["zfp"]["reads"] and "hdf5plugin" in codecs["zfp"]["package"]
    shown = daemon.ctl("formats").stdout
    assert all(name in shown for name in [*formats, *codecs])
    assert daemon.ctl("formats", "more", check=False).returncode == 2


def test_what_is_written_in_place_is_not_stored_anew(daemon, files):
    folder, a = files
    np.save(folder / "place.npy", a)
    for words in (["run", "a + 1", "a=a.npy"], ["flip", "a.npy"]):
        for how in (["--compress", "gzip"], ["--chunks", "3x3"], ["--sync"]):
            done = daemon.ctl(*words, "-o", "place.npy", "--in-place", *how, cwd=folder, check=False)
            assert done.returncode == 1 and "[bad-argument]" in done.stderr, done.stderr
    assert np.array_equal(np.load(folder / "place.npy"), a)
