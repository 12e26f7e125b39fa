"""What `import gpuarrayd` brings with it, and what the package shows of itself."""

import json
import os
import pydoc
import subprocess
import sys

import pytest

import gpuarrayd as gd

# Nobody who adds two arrays pays for these.
HEAVY = ("asyncio", "concurrent.futures", "ctypes", "dask", "distributed", "doctest", "email",
         "h5py", "http", "importlib.metadata", "inspect", "IPython", "json", "logging",
         "multiprocessing", "pandas", "scipy", "socket", "ssl", "subprocess", "tempfile", "tqdm",
         "typing_extensions", "unittest", "urllib", "xml")


def after(code, *, also=""):
    """Modules that `code` loads, and threads and descriptors before and after, when NumPy is there."""
    script = f"""
import sys, os, numpy
here = lambda: (len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")))
before, counts = set(sys.modules), here()
{code}
loaded, later = set(sys.modules) - before, here()
{also}
import json
print(json.dumps([sorted(loaded), counts, later]))
"""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GPUARRAYD")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**env, "GPUARRAYD_SOCKET": "/nonexistent"})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def is_heavy(module):
    return any(module == heavy or module.startswith(heavy + ".") for heavy in HEAVY)


def test_the_import_loads_nothing_heavy():
    loaded, _, _ = after("import gpuarrayd")
    assert "gpuarrayd._core" in loaded
    assert [name for name in loaded if is_heavy(name)] == []
    assert len([name for name in loaded if not name.startswith("gpuarrayd")]) < 20, loaded


def test_the_import_starts_nothing():
    _, before, later = after("import gpuarrayd")
    assert before == later


def test_dask_is_loaded_when_it_is_asked_for():
    pytest.importorskip("dask")
    code = "import gpuarrayd; assert 'gpuarrayd.dask' not in sys.modules"
    loaded, _, _ = after(code, also="gpuarrayd.dask; assert 'gpuarrayd.dask' in sys.modules")
    assert not any(name.startswith(("dask", "gpuarrayd.dask")) for name in loaded)


def test_everything_public_is_named_and_described():
    ours = {name for name, thing in vars(gd).items() if not name.startswith("_")
            and (getattr(thing, "__module__", None) or "").startswith("gpuarrayd")}
    assert len(set(gd.__all__)) == len(gd.__all__)
    assert ours - set(gd.errors.__all__) <= set(gd.__all__) and "evaluate" in ours
    assert set(gd.errors.__all__) <= ours
    for name in gd.__all__:
        assert (getattr(gd, name).__doc__ or "").strip(), name
        assert name in dir(gd)
    exec("from gpuarrayd import *", names := {})
    assert set(gd.__all__) <= set(names)


def test_the_reference_names_everything():
    text = pydoc.render_doc(gd, renderer=pydoc.plaintext)
    assert text.splitlines()[0].endswith("gpuarrayd")
    for name in gd.__all__:
        assert name in text, name
    assert max(map(len, text.splitlines())) < 320, "types are by their short names"


def test_every_public_method_is_described():
    classes = [thing for thing in vars(gd).values() if isinstance(thing, type)] + [gd.Future]
    missing = [f"{cls.__name__}.{member}" for cls in classes for member, value in vars(cls).items()
               if not member.startswith("_") and callable(value) and not value.__doc__]
    assert missing == []


def test_what_takes_arguments_says_what_they_are_and_what_it_raises():
    for name in ("evaluate", "submit", "open", "lazy", "compute", "save", "empty", "asarray",
                 "connect", "list"):
        text = getattr(gd, name).__doc__
        assert "Parameters\n" in text and ("Raises\n" in text or "As of " in text), name


def test_the_version_is_the_librarys():
    from gpuarrayd import _core
    assert _core.versions().startswith(f"gpuarrayd {gd.__version__}, protocol ")
