"""The type checker has nothing to say: about the package, and about a program that uses it."""

import importlib.metadata
import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import conftest

PACKAGE = conftest.TOP / "client/python/gpuarrayd"
PROGRAM = pathlib.Path(__file__).parent / "typed_program.py"


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """Of both, by one run: most of its time goes into NumPy."""
    if conftest.IS_SANITIZED:
        pytest.skip("types do not depend on the build")
    version = importlib.util.find_spec("mypy") and importlib.metadata.version("mypy")
    if not version or tuple(map(int, version.split(".")[:2])) < (1, 15) or np.__version__ < "2":
        pytest.skip("what older checkers and NumPy's older types say is not ours to follow")
    cache = tmp_path_factory.mktemp("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context",
         "--cache-dir", str(cache), str(PACKAGE), str(PROGRAM)],
        capture_output=True, text=True, cwd=cache,
        env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})
    assert done.returncode in (0, 1) and not done.stderr, done.stderr
    return done.stdout.splitlines()


def test_the_package_is_typed(complaints):
    assert (PACKAGE / "py.typed").exists()
    assert [line for line in complaints if "typed_program" not in line] == []


def test_a_program_sees_the_types(complaints):
    assert [line for line in complaints if "typed_program" in line] == []
