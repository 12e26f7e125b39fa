"""gpuarrayctl matmul: products of files in every format against NumPy's, plans, and adding into what is
there, exactly once whatever ends the command, the worker or the daemon."""

import json
import os
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

import conftest

N, K, M = 300, 400, 350


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A and B of small whole numbers, so that every sum is exact, in all formats."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 9, (N, K)).astype("f8"), rng.integers(0, 9, (K, M)).astype("f8")
    for name, data in (("A", a), ("B", b)):
        np.save(folder / f"{name}.npy", data)
        np.save(folder / f"{name}F.npy", np.asfortranarray(data))
        np.save(folder / f"{name}T.npy", np.ascontiguousarray(data.T))
        np.save(folder / f"{name}big.npy", data.astype(">f8"))
        data.astype("f4").tofile(folder / f"{name}.raw")
        with h5py.File(folder / f"{name}.h5", "w") as file:
            file["plain"] = data
            file.create_dataset("chunks", data=data, chunks=(64, 50))
            file.create_dataset("packed", data=data, chunks=(64, 50), compression="gzip")
    return folder, a, b


@pytest.mark.parametrize("left, right, options", [
    ("A.npy", "B.npy", ""), ("AF.npy", "BF.npy", ""), ("Abig.npy", "B.h5:/plain", ""),
    ("A.h5:/chunks", "B.h5:/chunks", ""), ("A.h5:/packed", "B.h5:/packed", ""),
    (f"A.raw:f4:{N}x{K}", f"B.raw:f4:{K}x{M}", ""), ("AT.npy", "B.npy", "--transpose-a"),
    ("A.npy", "BT.npy", "--transpose-b"), ("AT.npy", "BT.npy", "--transpose-a --transpose-b"),
    ("AT.npy[:, ::-1]", "B.npy", "--transpose-a --alpha -2"), ("A.npy", "A.npy", "--transpose-b"),
    ("A.npy", "A.npy", "--transpose-a"), ("A.npy[3]", "B.npy", ""), ("A.npy", "B.npy[:, 7]", "")])
def test_products_of_files(daemon, files, tmp_path, left, right, options):
    folder, a, b = files
    want = {"A.npy": {"--transpose-b": a @ a.T, "--transpose-a": a.T @ a}.get(options)
            if right == "A.npy" else None, "AT.npy[:, ::-1]": -2*(a[::-1] @ b),
            "A.npy[3]": a[3] @ b}.get(left)
    want = a @ (b[:, 7] if "7" in right else b) if want is None else want
    for to in ("c.npy", "c.h5:/c"):
        done = daemon.ctl("matmul", folder / left, folder / right, "-o", tmp_path / to, *options.split(),
                          "--json")
        got = np.load(tmp_path / to) if to == "c.npy" else h5py.File(tmp_path / "c.h5")["c"][()]
        assert np.array_equal(got, want)
        stats = json.loads(done.stdout)
        library = "gpuarrayd" if len(got.shape) == 1 else "OpenBLAS"  # vectors by its own kernels
        assert stats["product"]["tiles"] >= 1 and library in stats["product"]["library"]
        assert stats["product"]["precision"] == ("float32" if "raw" in left else "float64")
        assert sorted(os.listdir(tmp_path)) == sorted({"c.npy", to.split(":")[0]})


def test_a_plan_says_what_is_moved(daemon, files, tmp_path):
    folder, *_ = files
    words = ["matmul", folder / "A.npy", folder / "B.npy", "-o", tmp_path / "c.npy"]
    plan = json.loads(daemon.ctl(*words, "--explain", "--json").stdout)
    assert not list(tmp_path.iterdir())
    text = daemon.ctl(*words, "--explain").stdout
    assert "product" in text and "left" in text and "float64" in text
    stats = json.loads(daemon.ctl(*words, "--json").stdout)
    assert (stats["read_bytes"], stats["write_bytes"]) == (plan["read_bytes"], plan["write_bytes"])
    for key in ("left_bytes", "right_bytes", "tiles", "tile", "precision"):
        assert stats["product"][key] == plan["product"][key]
    assert stats["product"]["left_bytes"] + stats["product"]["right_bytes"] == stats["read_bytes"]
    text = daemon.ctl(*words, "-v").stderr
    assert "OpenBLAS" in text and "float64" in text


def test_adding_into_files(daemon, files, tmp_path):
    folder, a, b = files
    want = np.zeros((N, M))
    np.save(tmp_path / "c.npy", np.asfortranarray(want))
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["c"] = want
    np.zeros((2, N, M)).tofile(tmp_path / "c.raw")
    for alpha, beta in [(1, 1), (0.5, 2), (-1, -0.25)]:
        want = alpha*(a @ b) + beta*want
        for to in ("c.npy", "c.h5:/c", f"c.raw:f8:2x{N}x{M}[1]"):
            stats = json.loads(daemon.ctl(
                "matmul", folder / "A.npy", folder / "B.npy", "-o", tmp_path / to, "--alpha", alpha,
                "--beta", beta, "--json").stdout)
            assert stats["journal"] == "new"
    assert np.array_equal(np.load(tmp_path / "c.npy"), want)
    assert np.array_equal(h5py.File(tmp_path / "c.h5")["c"][()], want)
    raw = np.fromfile(tmp_path / "c.raw").reshape(2, N, M)
    assert np.array_equal(raw[1], want) and not raw[0].any()
    assert not list(tmp_path.glob("*journal*"))
    assert "journal" not in json.loads(daemon.ctl(
        "matmul", folder / "A.npy", folder / "B.npy", "-o", tmp_path / "c.npy", "--beta", "1",
        "--no-journal", "--json").stdout)


class Adding:
    """`matmul --beta 1` with a journal that other processes can be ended beside."""

    def __init__(self, folder, socket, tmp_path):
        self.words = [str(conftest.CTL), "matmul", folder / "A.npy", folder / "B.npy", "-o",
                      tmp_path / "c.npy", "--beta", "1", "--json"]
        self.journal = tmp_path / "c.npy.journal"
        self.env = {**os.environ, "GPUARRAYD_SOCKET": socket}

    def begin(self, after):
        """Started, and so far that its journal has some bytes, or done."""
        process = subprocess.Popen([*map(str, self.words)], env=self.env, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until(lambda: process.poll() is not None or self.bytes() >= after)
        return process

    def bytes(self):
        try:
            return self.journal.stat().st_size
        except FileNotFoundError:
            return -1


@pytest.mark.parametrize("victim", ["client", "worker"])
def test_what_is_killed_adds_once(start, files, tmp_path, victim):
    folder, a, b = files
    daemon = start(pool="8M")
    adding = Adding(folder, daemon.socket, tmp_path)
    want = np.zeros((N, M))
    np.save(tmp_path / "c.npy", want)
    for after in (0, 1, 5000, 10000, 200000, 400000):
        want += a @ b
        process = adding.begin(after)
        if victim == "client":
            process.kill()
        else:
            worker = daemon.info()["engines"][0].get("pid")
            if worker:
                os.kill(worker, signal.SIGKILL)
        out, err = process.communicate()
        if process.returncode and not adding.journal.exists():  # it has not begun, or has ended
            found = np.load(tmp_path / "c.npy")
            assert victim == "client" and any(np.array_equal(found, one) for one in (want, want - a @ b))
            if np.array_equal(found, want):
                continue
        if process.returncode:
            assert victim == "client", out + err
            process = adding.begin(1 << 60)
            out, err = process.communicate()
        assert process.returncode == 0, out + err
        assert json.loads(out)["journal"] in ("new", "continued", "complete")
        assert np.array_equal(np.load(tmp_path / "c.npy"), want), after
        assert not adding.journal.exists()


def test_a_journal_of_another_job_is_refused(daemon, files, tmp_path):
    folder, *_ = files
    np.save(tmp_path / "c.npy", np.zeros((N, M)))
    for left in (b"not a journal" * 100, b"\1" * 9000):
        (tmp_path / "c.npy.journal").write_bytes(left)
        done = daemon.ctl("matmul", folder / "A.npy", folder / "B.npy", "-o", tmp_path / "c.npy", "--beta",
                          "1", check=False)
        assert done.returncode == 1 and "[bad-journal]" in done.stderr
        assert "c.npy.journal" in done.stderr
        assert (tmp_path / "c.npy.journal").read_bytes() == left
    assert not np.load(tmp_path / "c.npy").any()


@pytest.mark.parametrize("verb", ["run", "submit"])
def test_an_expression_that_adds_may_have_a_journal(start, files, tmp_path, verb):
    folder, a, b = files
    daemon = start(pool="8M")
    journal, want = tmp_path / "j", np.ones((N, M))
    np.save(tmp_path / "c.npy", want)
    words = [verb, "a @ b + c", f"a={folder}/A.npy", f"b={folder}/B.npy", f"c={tmp_path}/c.npy", "-o",
             tmp_path / "c.npy", "--in-place", "--journal", journal, "--json"]

    def end(job):
        daemon.ctl("wait", job)
        until(lambda: not journal.exists())

    for after in (0, 1, 5000, 200000):
        want = a @ b + want
        process = subprocess.Popen([str(conftest.CTL), *map(str, words)], text=True,
                                   env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket},
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until(lambda: process.poll() is not None or (journal.exists() and journal.stat().st_size >= after))
        for engine in daemon.info()["engines"]:
            if engine.get("pid"):
                os.kill(engine["pid"], signal.SIGKILL)
        out, err = process.communicate()
        assert process.returncode == 0, out + err
        if verb == "submit":
            end(json.loads(out)["job"])
        assert np.array_equal(np.load(tmp_path / "c.npy"), want), after
        assert not journal.exists()
    for left in (b"not a journal" * 100,):
        journal.write_bytes(left)
        done = daemon.ctl(*["run", *words[1:-1]], check=False)
        assert done.returncode == 1 and "[bad-journal]" in done.stderr and f"taken for the journal is {journal}" in done.stderr
        assert journal.read_bytes() == left
    assert np.array_equal(np.load(tmp_path / "c.npy"), want)


@pytest.mark.parametrize("verb", ["run", "submit"])
def test_a_journal_by_a_relative_name_is_removed(daemon, files, tmp_path, verb):
    """What goes on in the background is in another folder; one left there would say that the next
    one is done."""
    folder, a, b = files
    np.save(tmp_path / "c.npy", np.zeros((N, M)))
    for i in (1, 2):
        out = daemon.ctl(verb, "a @ b + c", f"a={folder}/A.npy", f"b={folder}/B.npy", "c=c.npy", "-o",
                         "c.npy", "--in-place", "--journal", "j", "--json", cwd=tmp_path).stdout
        if verb == "submit":
            daemon.ctl("wait", json.loads(out)["job"])
        until(lambda: not (tmp_path / "j").exists())
        assert np.array_equal(np.load(tmp_path / "c.npy"), i * (a @ b))


@pytest.mark.parametrize("verb", ["matmul", "run"])
def test_of_a_journal_is_said_what_is_so(start, tmp_path, verb):
    """A job that is refused has not begun, whatever file lies there; one that is cancelled may have."""
    n = 1400 if conftest.IS_SANITIZED else 1800  # a sanitizer's takes as long
    rng = np.random.default_rng(2)
    a = rng.integers(0, 9, (n, n))
    product = a.astype("f8") @ a.astype("f8")  # exact, and twenty times as fast as of integers
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "c.npy", np.ones((n, n), int))
    other = tmp_path / "other"
    other.write_text("somebody's notes")
    daemon = start(engine="cpu", pool="8M", threads=1)
    words = {"matmul": ["matmul", "a.npy", "a.npy", "--beta", "1"],
             "run": ["run", "a @ a + c", "a=a.npy", "c=c.npy", "--in-place"]}[verb]
    words += ["-o", "c.npy", "--journal"]

    done = daemon.ctl(*words, other, "--engine", "cuda", cwd=tmp_path, check=False)
    assert done.returncode == 1 and "[no-engine]" in done.stderr
    assert "added to" not in done.stderr
    assert other.read_text() == "somebody's notes"
    done = daemon.ctl(*words, other, cwd=tmp_path, check=False)
    assert done.returncode == 1 and "[bad-journal]" in done.stderr and "added to in part" not in done.stderr
    assert f"taken for the journal is {other}" in done.stderr

    journal = tmp_path / "j"
    process = subprocess.Popen([str(conftest.CTL), *words, str(journal)], text=True, cwd=tmp_path,
                               env={**os.environ, "GPUARRAYD_SOCKET": daemon.socket},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: process.poll() is not None or (journal.exists() and journal.stat().st_size > 8192))
    process.send_signal(signal.SIGINT)
    err = process.communicate()[1]
    assert process.returncode != 0 and f"c.npy may be added to in part: the same command goes on from {journal}" in err
    left = journal.read_bytes()
    done = daemon.ctl(*words, journal, "--engine", "cuda", cwd=tmp_path, check=False)
    assert f"nothing was written to {journal}" in done.stderr and "added to in part" not in done.stderr
    assert journal.read_bytes() == left
    daemon.ctl(*words, journal, cwd=tmp_path)
    assert np.array_equal(np.load(tmp_path / "c.npy"), product + 1)
    assert not journal.exists()
