"""What 'meson install' makes: every file in its place, and programs of others that need no more than
pkg-config and a compiler."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import h5py
import numpy as np
import pytest

import conftest

EXAMPLES = conftest.TOP / "client/examples"
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]


def expected_files(installed):
    o = installed.path
    data = o("datadir")
    is_built = (conftest.BUILD / "daemon/worker/cuda/gpuarrayd-worker-cuda").exists()  # by nvcc
    return {
        *([o("libexecdir") / "gpuarrayd/gpuarrayd-worker-cuda"] if is_built else []),
        o("bindir") / "gpuarrayd", o("bindir") / "gpuarrayctl",
        o("libexecdir") / "gpuarrayd/gpuarrayd-worker-cpu", o("libexecdir") / "gpuarrayd/gpuarrayd-scan",
        o("libdir") / "libgpuarrayd.so", o("libdir") / "libgpuarrayd.so.1",
        o("libdir") / "libgpuarrayd.so.0.1.0", o("libdir") / "pkgconfig/gpuarrayd.pc",
        *(o("includedir") / name for name in (
            "gpuarrayd.h", "gpuarrayd-dataset.h", "gpuarrayd-files.h", "gpuarrayd-function.h",
            "gpuarrayd-jobs.h", "gpuarrayd-linalg.h", "gpuarrayd-many.h", "gpuarrayd-meaning.h", "gpuarrayd-move.h",
            "gpuarrayd-matrix.h", "gpuarrayd-picture.h", "gpuarrayd-plan.h", "gpuarrayd-product.h", "gpuarrayd-random.h", "gpuarrayd-solve.h", "gpuarrayd-stream.h", "gpuarrayd-take.h", "gpuarrayd-tensor.h",
            "gpuarrayd-status.h")),
        o("mandir") / "man1/gpuarrayctl.1", o("mandir") / "man3/libgpuarrayd.3",
        o("mandir") / "man5/gpuarrayd.conf.5", o("mandir") / "man8/gpuarrayd.8",
        data / "bash-completion/completions/gpuarrayctl", data / "zsh/site-functions/_gpuarrayctl",
        o("sysconfdir") / "gpuarrayd/gpuarrayd.conf",
        *(data / "doc/gpuarrayd/examples" / name
          for name in ("50-nvidia.conf", "gpuarrayd.conf", "factors.c", "first.c", "windspeed.c", "shared.c",
                       "progress.c", "stencil.c", "train.c")),
    }


def test_every_file_is_in_its_place_and_no_other(installed):
    files = installed.files()
    expected = expected_files(installed)
    assert expected - files == set()
    units = {(p.parts[-2], p.name) for p in files - expected}
    assert units == {("system", "gpuarrayd.service"), ("system", "gpuarrayd.socket"),
                     ("user", "gpuarrayd.service"), ("user", "gpuarrayd.socket"),
                     ("sysusers.d", "gpuarrayd.conf"), ("tmpfiles.d", "gpuarrayd.conf")}
    if (prefix := installed.options["prefix"]) != "/usr":
        assert all(p.is_relative_to(prefix) for p in files)
    for name in files:
        mode = (installed.root / name.relative_to("/")).stat().st_mode
        assert mode & 0o022 == 0 and mode & 0o444 == 0o444, (name, oct(mode))


def test_a_configuration_that_is_there_is_kept(installed):
    config = installed.at("sysconfdir") / "gpuarrayd/gpuarrayd.conf"
    shipped = config.read_text()
    config.write_text("# mine\n")
    with installed.kept_log():
        installed.install()
    assert config.read_text() == "# mine\n"
    config.write_text(shipped)


def test_uninstallation_leaves_the_configuration_alone(installed, folder):
    with installed.kept_log():
        installed.install(folder)
        installed.uninstall()
    assert [p.name for p in folder.rglob("*") if not p.is_dir()] == ["gpuarrayd.conf"]


def test_pkg_config_asks_for_this_library_alone(installed):
    prefix = installed.at("includedir").parent
    assert installed.flags("--modversion") == ["0.1.0"]
    assert installed.flags("--cflags") == [f"-I{prefix}/include"]
    assert installed.flags("--libs") == [f"-L{installed.at('libdir')}", "-lgpuarrayd"]
    assert installed.flags("--print-requires", "--print-requires-private") == []


def test_installed_programs_name_no_folder_of_the_build(installed):
    for program in ("bin/gpuarrayd", "bin/gpuarrayctl", "libexec/gpuarrayd/gpuarrayd-worker-cpu"):
        folder, name = program.split("/", 1)
        path = installed.at(folder + "dir") / name
        dynamic = subprocess.run(["readelf", "-d", str(path)], check=True, text=True,
                                 capture_output=True).stdout
        assert str(conftest.BUILD) not in dynamic


def compile_with(installed, compiler, source, program, *flags):
    done = subprocess.run([compiler, *flags, *STRICT, str(source), "-o", str(program),
                           *installed.flags("--cflags", "--libs")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_header_compiles_alone_as_cpp(installed, compiler, tmp_path):
    compiler = {"gcc": "g++", "clang": "clang++"}[compiler]
    if not shutil.which(compiler):
        pytest.skip(f"there is no {compiler}")
    source = tmp_path / "alone.cpp"
    source.write_text("#include <gpuarrayd.h>\nint main() { return gad_version() ? 0 : 1; }\n")
    compile_with(installed, compiler, source, tmp_path / "alone", "-std=c++17")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_each_header_compiles_alone_as_c(installed, compiler, tmp_path):
    headers = sorted(path.name for path in installed.at("includedir").glob("gpuarrayd*.h"))
    assert "gpuarrayd-product.h" in headers
    for header in headers:
        source = tmp_path / "alone.c"
        source.write_text(f"#include <{header}>\nint main(void) {{ return 0; }}\n")
        compile_with(installed, compiler, source, tmp_path / "alone", "-std=c11")


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextlib.contextmanager
def private_daemons(installed):
    """An environment in which the library starts the installed daemon, which ends afterwards."""
    if os.path.exists("/run/gpuarrayd/socket"):
        pytest.skip("a service runs here, and the library would use it")
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-") as folder:
        os.chmod(folder, 0o700)
        pid = None
        try:
            yield installed.environment(XDG_RUNTIME_DIR=folder), pathlib.Path(folder)
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(folder + "/gpuarrayd/socket")
                credentials = s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            pid = struct.unpack("3i", credentials)[0]
            assert os.readlink(f"/proc/{pid}/exe") == str(installed.at("bindir") / "gpuarrayd")
            workers = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            assert {os.readlink(f"/proc/{worker}/exe") for worker in workers} == {
                str(installed.at("libexecdir") / "gpuarrayd/gpuarrayd-worker-cpu")}
        finally:
            if pid is not None:
                os.kill(pid, signal.SIGTERM)
                end = time.monotonic() + 20
                while is_alive(pid) and time.monotonic() < end:
                    time.sleep(0.01)


def run(program, *words, env, cwd):
    return subprocess.run([str(cwd / program), *words], env=env, cwd=cwd, text=True,
                          capture_output=True, timeout=60)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_examples_run_with_the_installed_library_and_daemon(installed, compiler, tmp_path):
    assert sorted(p.name for p in EXAMPLES.glob("*.c")) == [
        "factors.c", "first.c", "progress.c", "shared.c", "stencil.c", "train.c", "windspeed.c"]
    for source in EXAMPLES.glob("*.c"):
        more = ["-fPIC", "-shared"] if source.stem == "stencil" else []
        compile_with(installed, compiler, source, tmp_path / source.stem, "-std=c11", "-Wshadow",
                     *more)
    rng = np.random.default_rng(3)
    u, v = rng.normal(size=(2, 40, 73, 144)).astype("f4")
    with h5py.File(tmp_path / "winds.h5", "w") as f:
        f.create_dataset("u", data=u, compression="gzip")
        f["v"] = v
    with private_daemons(installed) as (env, _):
        done = run("windspeed", "winds.h5", "/u", "/v", "speed.npy", env=env, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        speed = np.sqrt(u * u + v * v)
        np.testing.assert_array_equal(np.load(tmp_path / "speed.npy"), speed)
        assert done.stdout.startswith(f"mean speed {speed.mean(dtype='f8'):.3f}, ")
        done = run("windspeed", "winds.h5", "/u", "/w", "other.npy", env=env, cwd=tmp_path)
        assert done.returncode == 1 and "(not-found)" in done.stderr
        assert not (tmp_path / "other.npy").exists()

        done = run("first", "speed.npy", env=env, cwd=tmp_path)
        assert float(done.stdout) == pytest.approx(speed.mean(dtype="f8"), abs=1e-6), done.stderr
        done = run("first", env=env, cwd=tmp_path)
        assert done.returncode == 1 and done.stderr == "first: usage: first SOURCE (bad-argument)\n"

        done = run("shared", env=env, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (
            0, "after 10 steps: 977.5153 at the centre, 0.9527 at the edge\n"), done.stderr

        done = run("progress", "0.06", env=env, cwd=tmp_path)
        assert done.returncode == 1 and "(cancelled)" in done.stderr, done.stdout
        assert "of 1025 tiles" in done.stdout and not done.stdout.startswith("0 reports")


def test_the_example_that_trains_goes_on_where_it_was_ended(installed, tmp_path):
    compile_with(installed, COMPILERS[0], EXAMPLES / "train.c", tmp_path / "train", "-std=c11")
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3000, 6)).astype("f4")
    y = (x @ np.arange(1, 7) - 2).astype("f4")
    np.save(tmp_path / "x.npy", x)
    with h5py.File(tmp_path / "y.h5", "w") as f:
        f.create_dataset("y", data=y, compression="gzip", chunks=(100,))
        f["few"], f["double"] = y[1:], y.astype("f8")
    with private_daemons(installed) as (env, _):
        def train(*words, labels="y.h5:/y"):
            return run("train", "x.npy", labels, *words, env=env, cwd=tmp_path)

        done = train("3", "whole.bin")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "epoch 3, weights 1.0000 ... 6.0000, constant -2.0000\n"
        for steps in ("1", "50", "7", "40", "0", "1000"):  # of 46 in each epoch
            done = train("3", "parts.bin", steps)
            assert done.returncode == 0, done.stderr
        assert (tmp_path / "parts.bin").read_bytes() == (tmp_path / "whole.bin").read_bytes()

        for labels, word, found in (("y.h5:/few", "bad-shape", "2999"), ("y.h5:/double", "bad-dtype", ""),
                                    ("y.h5:/z", "not-found", "/z"), ("none.npy", "not-found", "none.npy")):
            done = train("1", "other.bin", labels=labels)
            assert done.returncode == 1 and f"({word})" in done.stderr and found in done.stderr
        assert not (tmp_path / "other.bin").exists()
        state = (tmp_path / "whole.bin").read_bytes()
        for held, word in ((state[:-1], "bad-format"), (b"{}" + state[2:], "bad-argument"),
                           (state.replace(b'"seed"', b'"sead"'), "bad-argument")):
            (tmp_path / "other.bin").write_bytes(held)
            done = train("4", "other.bin")
            assert done.returncode == 1 and f"({word})" in done.stderr, done.stderr

        x[5] += 1
        np.save(tmp_path / "x.npy", x)  # a state is of the file as it was
        done = train("4", "whole.bin")
        assert done.returncode == 1 and "(dataset-changed)" in done.stderr, done.stderr
        np.save(tmp_path / "x.npy", x - 1)
        damaged = bytearray((tmp_path / "y.h5").read_bytes())
        with h5py.File(tmp_path / "y.h5") as f:
            at = f["y"].id.get_chunk_info(3)
        damaged[at.byte_offset + 5:at.byte_offset + 90] = bytes(85)
        (tmp_path / "y.h5").write_bytes(damaged)
        done = train("1", "left.bin")
        assert done.returncode == 0 and "train: left out: " in done.stderr, done.stderr
