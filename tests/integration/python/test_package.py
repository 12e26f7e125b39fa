"""The package as pip and meson make it: a wheel for every Python and NumPy, on the library that pkg-config
finds, and words that help where it finds none."""

import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import zipfile

import pytest

import conftest

PACKAGE = conftest.TOP / "client/python"
VERSION = re.search(r"version: '([^']+)'", (conftest.TOP / "meson.build").read_text())[1]
USE = ("import gpuarrayd as gd, numpy as np; a = np.arange(1000.0); "
       "assert np.array_equal(gd.evaluate('sqrt(a)'), np.sqrt(a)); "
       "lines = open('/proc/self/maps').read().split('\\n'); "
       "print(gd.__version__, gd.__file__, "
       "*{line.split()[-1] for line in lines if 'libgpuarrayd' in line})")


def environment(**more):
    """Neither the tests' copy of the package nor anything else of ours."""
    drop = ("PYTHONPATH", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH")
    return {**{k: v for k, v in os.environ.items() if k not in drop}, **more}


def build(folder, **env):
    return subprocess.run(["meson", "setup", str(folder / "build"), str(PACKAGE), "-Doptimization=0",
                           f"-Dpython.platlibdir={folder}/lib", f"-Dpython.purelibdir={folder}/lib"],
                          env=environment(**env), capture_output=True, text=True)


def use(daemon, where, **env):
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, cwd="/",
                          env=environment(PYTHONPATH=str(where), GPUARRAYD_SOCKET=daemon.socket, **env))
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def files():
    return {str(path.relative_to(PACKAGE)) for path in (PACKAGE / "gpuarrayd").rglob("*")
            if path.suffix in (".py", ".pyi", ".typed")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if conftest.IS_SANITIZED:
        pytest.skip("a sanitizer's build is not what is packed")
    pytest.importorskip("mesonpy")
    if int(importlib.metadata.version("meson-python").split(".")[1]) < 15:
        pytest.skip("this meson-python cannot make wheels for every Python")
    folder = tmp_path_factory.mktemp("wheel")
    beside = pathlib.Path(sys.executable).parent  # the meson of the build requirements
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-index",
         "--no-deps", f"--config-settings=build-dir={folder}/build",
         "--config-settings=setup-args=-Doptimization=0", "-w", str(folder), str(PACKAGE)],
        env=environment(PKG_CONFIG_PATH=str(conftest.BUILD / "meson-uninstalled"),
                        PATH=f"{beside}:{os.environ['PATH']}"),
        capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    [made] = folder.glob("*.whl")
    return made


def test_a_wheel_serves_every_python_from_3_11_on(wheel):
    assert wheel.name.startswith(f"gpuarrayd-{VERSION}-cp311-abi3-linux_")
    with zipfile.ZipFile(wheel) as packed:
        info = f"gpuarrayd-{VERSION}.dist-info"
        names = {name for name in packed.namelist() if not name.startswith(info)}
        assert names == files() | {"gpuarrayd/_core.abi3.so"}
        metadata = packed.read(f"{info}/METADATA").decode()
    for line in (f"Version: {VERSION}", "Requires-Python: >=3.11", "Requires-Dist: numpy>=1.24",
                 "Provides-Extra: h5py", "Provides-Extra: dask"):
        assert line in metadata.splitlines()
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist")
                and "extra ==" not in line]
    assert required == ["Requires-Dist: numpy>=1.24"]


def test_pip_installs_what_computes(wheel, daemon, folder):
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
                           "--target", str(folder / "site"), str(wheel)],
                          env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    version, module, *libraries = use(daemon, folder / "site")
    assert version == VERSION and module.startswith(str(folder / "site"))
    assert libraries == [str((conftest.BUILD / "client/libgpuarrayd.so").resolve())]


def test_the_library_of_an_own_prefix_is_found_without_the_loaders_path(installed, daemon, folder):
    pc = (installed.at("libdir") / "pkgconfig/gpuarrayd.pc").read_text()
    prefix = installed.root / pathlib.Path(installed.options["prefix"]).relative_to("/")
    (folder / "gpuarrayd.pc").write_text(re.sub("^prefix=.*", f"prefix={prefix}", pc, flags=re.M))
    made = build(folder, PKG_CONFIG_PATH=str(folder))
    assert made.returncode == 0, made.stdout
    done = subprocess.run(["meson", "install", "--quiet", "-C", str(folder / "build")],
                          capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    _, module, *libraries = use(daemon, folder / "lib")
    assert module == str(folder / "lib/gpuarrayd/__init__.py")
    assert [pathlib.Path(path).parent for path in libraries] == [installed.at("libdir")]
    shutil.rmtree(folder / "build")


def test_without_the_library_it_says_what_to_do(folder):
    (folder / "none").mkdir()
    made = build(folder, PKG_CONFIG_LIBDIR=str(folder / "none"))
    assert made.returncode != 0
    if "headers of Python" in made.stdout:  # where they come from pkg-config alone
        made = build(folder, PKG_CONFIG_PATH=str(folder / "none"))
    for word in ("pkg-config does not know gpuarrayd", "meson install", "PKG_CONFIG_PATH="):
        assert word in made.stdout, made.stdout


def test_a_library_of_another_version_is_refused(folder):
    (folder / "gpuarrayd.pc").write_text("Name: gpuarrayd\nDescription: x\nVersion: 9.9.9\nLibs:\n")
    made = build(folder, PKG_CONFIG_PATH=str(folder))
    assert made.returncode != 0
    assert f"this package is of version {VERSION} and pkg-config finds libgpuarrayd 9.9.9" in made.stdout


def test_a_loader_that_finds_another_library_is_told_of(folder):
    (folder / "other.c").write_text('const char *gad_version(void) { return "9.9.9"; }\n')
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "other.so", folder / "other.c"], check=True)
    done = subprocess.run([sys.executable, "-c", "import gpuarrayd"], capture_output=True, text=True,
                          env={**os.environ, "LD_PRELOAD": str(folder / "other.so")})
    assert done.returncode == 1
    assert f"this package is gpuarrayd {VERSION} and the loader found libgpuarrayd 9.9.9" in done.stderr


def test_a_wheel_of_all_has_all_that_runs(installed, folder):
    """Where each file goes, and that each goes to a place that meson-python knows."""
    setup = tomllib.loads((conftest.TOP / "pyproject.toml").read_text())["tool"]["meson-python"]["args"]
    [tags] = (word.removeprefix("--tags=").split(",") for word in setup["install"])
    done = subprocess.run(["meson", "setup", str(folder / "build"), str(conftest.TOP),
                           "-Dcuda=disabled", *setup["setup"]], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    plan = json.loads((folder / "build/meson-info/intro-install_plan.json").read_text())
    places = sorted(one["destination"] for kind in plan.values() for one in kind.values()
                    if one["tag"] in tags)
    expected = {f"{{py_platlib}}/{name}" for name in files()}
    for name in ("_core.abi3.so", "_prefix/lib/libgpuarrayd.so.1",
                 *(f"_prefix/bin/{path.name}" for path in installed.at("bindir").iterdir()),
                 *(f"_prefix/libexec/gpuarrayd/{path.name}"
                   for path in (installed.at("libexecdir") / "gpuarrayd").iterdir()
                   if "cuda" not in path.name)):
        expected.add(f"{{py_platlib}}/gpuarrayd/{name}")
    for name in ("man/man1/gpuarrayctl.1", "man/man3/libgpuarrayd.3", "man/man5/gpuarrayd.conf.5",
                 "man/man8/gpuarrayd.8", "bash-completion/completions/gpuarrayctl",
                 "zsh/site-functions/_gpuarrayctl"):
        expected.add(f"{{datadir}}/share/{name}")
    assert set(places) == expected | {"{bindir}/gpuarrayctl"}


def test_what_lies_as_in_a_wheel_needs_no_variable(installed, folder):
    if os.path.exists("/run/gpuarrayd/socket"):
        pytest.skip("a service runs here, and the library would use it")
    package = folder / "site/gpuarrayd"
    shutil.copytree(conftest.BUILD / "python/gpuarrayd", package)
    shutil.copytree(installed.at("bindir"), package / "_prefix/bin")
    shutil.copytree(installed.at("libexecdir"), package / "_prefix/libexec")
    (package / "_prefix/lib").mkdir()
    shutil.copy(installed.at("libdir") / "libgpuarrayd.so.1", package / "_prefix/lib")
    for name, path in (("_core.abi3.so", "_prefix/lib"), ("_prefix/bin/gpuarrayctl", "../lib")):
        subprocess.run(["patchelf", "--set-rpath", f"$ORIGIN/{path}", package / name], check=True)
    (folder / "run").mkdir(mode=0o700)
    env = {"PYTHONPATH": str(package.parent), "XDG_RUNTIME_DIR": str(folder / "run")}
    line = ("import gpuarrayd as gd; info = gd.info(); "
            "print(info['pid'], info['program'], gd.evaluate('sum(a)', a=[1.0, 2.0]))")
    done = subprocess.run([sys.executable, "-c", line], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pid, program, result = done.stdout.split()
    try:
        assert (program, result) == (str(package / "_prefix/bin/gpuarrayd"), "3.0")
        done = subprocess.run([sys.executable, conftest.TOP / "client/ctl/gpuarrayctl.py", "version",
                               "--json"], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["daemon"]["version"] == VERSION
        workers = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        assert {os.readlink(f"/proc/{worker}/exe") for worker in workers} == {
            str(package / "_prefix/libexec/gpuarrayd/gpuarrayd-worker-cpu")}
    finally:
        os.kill(int(pid), signal.SIGTERM)


def test_formats_are_those_of_the_librarys_table():
    """Where the package or the header says a format's name or extension, its row says it too."""
    from gpuarrayd._jobs.request import To
    rows = {}
    for source in sorted((conftest.TOP / "client/formats").rglob("*.c")):
        for row in re.findall(r"^const struct format format_\w+ = \{(.*?)^\};", source.read_text(), re.M | re.S):
            name, extensions = (re.search(rf'\.{member} = "(.*?)"', row)[1] for member in ("name", "extensions"))
            rows[name] = extensions.split()
    table = (conftest.TOP / "client/formats/format_table.c").read_text()
    assert len(rows) == len(re.findall(r"&format_\w+", table)) and {"raw", "hdf5"} <= set(rows)
    header = (conftest.TOP / "client/gpuarrayd.h").read_text()
    for name, extensions in rows.items():
        assert f'"{name}"' in header
        for extension in extensions:
            assert re.search(rf"\{extension}\b", header), extension
            assert To(f"x{extension.upper()}").is_raw == (name == "raw")
