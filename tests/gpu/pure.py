"""Copies the packages that the tests need and that are Python alone, for hosts that lack them:
pure.py DIRECTORY. NumPy is no such package: it must be there."""

import importlib.util
import pathlib
import shutil
import sys

NAMES = ["msgpack", "pytest", "_pytest", "pluggy", "iniconfig", "packaging"]

to = pathlib.Path(sys.argv[1])
for name in NAMES:
    spec = importlib.util.find_spec(name)
    if spec is None:
        sys.exit(f"{name} is not there")
    shutil.copytree(pathlib.Path(spec.origin).parent, to / name, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"))
