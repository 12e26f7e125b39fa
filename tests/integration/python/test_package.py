"""The package as pip and meson make it: a wheel for every Python and NumPy, on the library that pkg-config
finds, and words that help where it finds none."""

import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
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
    return subprocess.run(["meson", "setup", str(folder / "build"), str(PACKAGE),
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
         "--no-deps", f"--config-settings=build-dir={folder}/build", "-w", str(folder), str(PACKAGE)],
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
    assert libraries == [str(next(conftest.BUILD.glob("client/libgpuarrayd.so.*.*.*")).resolve())]


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
