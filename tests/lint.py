"""The structure that the code must keep: includes point one way, between the layers and between the
rooms inside them, libraries stay in their places, files and folders stay small, names say one thing,
clang-format decides on shape, nothing is left for later. Usage: lint.py TOP."""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

TOP = pathlib.Path(sys.argv[1])
MAY_INCLUDE = {
    "proto": {"proto"},
    "kernels": {"proto", "kernels"},
    "daemon": {"proto", "kernels", "daemon"},
    "client": {"proto", "client"},
}
# What a room does not include, but for what is listed: the interface of that other room.
# (room, what it does not know, what of that it may include all the same)
FORMATS = ("client/formats/formats.h", "client/formats/files/file_provider.h", "client/formats/files/file_source.h", "client/formats/files/file_lock.h", "client/formats/files/file_mark.h",
           "client/formats/npy/npy_header.h",
           "client/formats/hdf5/hdf5_version.h", "client/formats/chunked/chunk_source.h",
           "client/formats/chunked/packed_chunks.h")
WALLS = [
    ("proto/", ("proto/wire/",), ("proto/wire/ring.h",)),  # the ring's limits are an array's too
    ("kernels/expr/", ("kernels/grains/", "kernels/reductions/", "kernels/products/", "kernels/plan/",
                       "kernels/cpu/", "kernels/cuda/"), ()),
    ("kernels/cpu/", ("kernels/expr/", "kernels/plan/", "kernels/cuda/"),
     ("kernels/plan/plan_engine.h", "kernels/plan/estimate.h")),  # plan_cpu.c answers the planner
    ("kernels/cuda/", ("kernels/expr/", "kernels/plan/", "kernels/cpu/"),
     ("kernels/plan/plan_engine.h", "kernels/plan/estimate.h")),
    *((room, ("kernels/cpu/", "kernels/cuda/", "kernels/expr/"), ())
      for room in ("kernels/grains/", "kernels/reductions/", "kernels/products/", "kernels/plan/")),
    ("daemon/broker/", ("daemon/worker/", "kernels/cpu/", "kernels/cuda/"), ()),
    ("daemon/worker/", ("daemon/broker/",), ()),
    ("daemon/worker/cpu/", ("daemon/worker/cuda/", "kernels/cuda/"), ()),
    ("daemon/worker/cuda/", ("daemon/worker/cpu/",), ()),
    ("client/formats/", ("client/lib/", "client/ctl/", "proto/wire/"), ()),
    ("client/lib/", ("client/ctl/", "client/formats/", "client/linalg/"), FORMATS),
    ("client/linalg/", ("client/ctl/", "client/formats/"), (*FORMATS, "client/formats/files/file_output.h")),
    ("client/scan/", ("client/lib/", "client/ctl/", "client/formats/"), ()),
    ("client/ctl/", ("client/lib/", "client/linalg/", "client/formats/", "proto/wire/"), ()),
]
# Who stands at a wall's door: an array, a request and the protocol's version as messages have them.
DOORS = {"proto/request.h", "proto/request_decode.c", "proto/request_encode.c",
         "proto/array_decode.h", "proto/array_decode.c", "client/ctl/hints.c"}
MAX_FILES = 32  # C files and headers in a folder
# Files of one name in one layer that are not one thing of two engines.
NAMES_TWICE = {
    "kernels": {"multiply", "passes", "places", "random", "reduce"},
    "daemon": {"main", "region", "stats", "worker"},
}
CLANG_FORMAT = 14  # the version whose shape is ours: others break some lines elsewhere
PLACES = {
    "uv.h": ("daemon/broker/",),
    "cuda_runtime.h": ("kernels/cuda/",),
    "hdf5.h": ("client/formats/hdf5",),
    "curses.h": ("client/ctl/stats/top_",),
    "Python.h": ("client/python/core/",),
    "structmember.h": ("client/python/core/",),
    "cblas.h": ("kernels/cpu/multiply/multiply.c", "kernels/cpu/multiply/triangle.c"),
    "seccomp.h": ("daemon/confine.c", "client/scan/scan_confine.c"),
    "pthread.h": ("daemon/worker/", "daemon/broker/host/closer.c", "daemon/broker/host/log.c", "client/"),
}
BROKEN_GT = re.compile(r"\bgt\(\w+, ")  # Criterion's, in C: true of equal values; lt() says it right
LEFT_OVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MAX_LINES = 600
MAX_COLUMNS = 100
TOP_ENTRIES = {"proto", "kernels", "daemon", "client", "tests", "systemd", "meson.build",
               "meson_options.txt", "pyproject.toml", "README.md", "LICENSE", "build"}

faults = []


def behind_walls(name, included):
    """Faults of one file's include across the rooms."""
    if name in DOORS:
        return []
    return [f"{name}: includes {included}, which {room} does not know" for room, unknown, interface
            in WALLS if name.startswith(room) and included.startswith(unknown)
            and not name.startswith(unknown) and included not in interface]


def misnamed(folder):
    """Files of one name in a layer. What is of two engines has the same path but for their names."""
    places = collections.defaultdict(set)
    for path in (TOP / folder).rglob("*.[ch]"):
        name = path.relative_to(TOP).as_posix()
        if not name.startswith(("client/python/", "client/examples/")):
            places[path.name].add(re.sub("/(cpu|cuda)/", "/", name))
    return [f"{folder}: {len(found)} files are named {name}: {', '.join(sorted(found))}"
            for name, found in sorted(places.items())
            if len(found) > 1 and name[:-2] not in NAMES_TWICE.get(folder, ())]


def start_clang_format():
    """It takes seconds, so one for each processor, while the rest is looked at. A fault if there is
    none, and the processes."""
    program = shutil.which(f"clang-format-{CLANG_FORMAT}") or shutil.which("clang-format")
    if not program:
        return "clang-format is not installed: tests/packages.txt names what checks need", []
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    if f"version {CLANG_FORMAT}." not in said:
        print(f"not checked: the shape of C files, which clang-format {CLANG_FORMAT} decides, not "
              f"{said.strip()}")
        return None, []
    files = [str(path) for folder in (*MAY_INCLUDE, "tests") for path in (TOP / folder).rglob("*.[ch]")]
    n = os.cpu_count() or 1
    return None, [subprocess.Popen([program, "--dry-run", "-Werror", *files[i::n]], text=True,
                                   stderr=subprocess.PIPE) for i in range(n)]


missing, formatters = start_clang_format()
if missing:
    faults.append(missing)
for folder, allowed in MAY_INCLUDE.items():
    for path in sorted((TOP / folder).rglob("*.[ch]")):
        name = path.relative_to(TOP).as_posix()
        text = path.read_text()
        if text.count("\n") > MAX_LINES:
            faults.append(f"{name}: over {MAX_LINES} lines")
        if path.suffix == ".h" and "#pragma once" not in text:
            faults.append(f"{name}: no #pragma once")
        if LEFT_OVER.search(text):
            faults.append(f"{name}: something is left for later")
        for included in re.findall(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', text, re.M):
            top = included.split("/")[0]
            if top in MAY_INCLUDE and "/" in included and top not in allowed:
                faults.append(f"{name}: includes {included}, which points the wrong way")
            faults += behind_walls(name, included)
            if included in PLACES and not name.startswith(PLACES[included]):
                faults.append(f"{name}: {included} belongs to {', '.join(PLACES[included])}")

    faults += misnamed(folder)
    for place in (path for path in [TOP / folder, *(TOP / folder).rglob("*")] if path.is_dir()):
        n_files = len([*place.glob("*.[ch]")])
        if n_files > MAX_FILES:
            faults.append(f"{place.relative_to(TOP)}: {n_files} C files and headers, over {MAX_FILES}")

for path in sorted((TOP / "tests").rglob("*.[ch]")):
    if BROKEN_GT.search(path.read_text()):
        faults.append(f"{path.relative_to(TOP)}: gt() of Criterion holds for equal values; use lt()")

# The Python package is a client like others: C that sees the public header alone, and a list of
# its files in its own meson.build, from which none must be missing.
PACKAGE = TOP / "client/python"
PUBLIC = {"gpuarrayd.h", "gpuarrayd-dataset.h", "gpuarrayd-files.h", "gpuarrayd-function.h",
            "gpuarrayd-jobs.h", "gpuarrayd-linalg.h", "gpuarrayd-many.h", "gpuarrayd-meaning.h", "gpuarrayd-move.h",
          "gpuarrayd-matrix.h", "gpuarrayd-picture.h", "gpuarrayd-plan.h", "gpuarrayd-product.h", "gpuarrayd-random.h", "gpuarrayd-solve.h", "gpuarrayd-stream.h", "gpuarrayd-take.h", "gpuarrayd-tensor.h", "gpuarrayd-status.h"}
for path in sorted(PACKAGE.glob("core/**/*.[ch]")):
    for included in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M):
        if included not in PUBLIC and not (PACKAGE / included).exists():
            faults.append(f"{path.relative_to(TOP)}: {included} is not the library's public header")
listed = (PACKAGE / "meson.build").read_text()
for path in sorted([*PACKAGE.glob("core/**/*.c"), *PACKAGE.glob("gpuarrayd/**/*")]):
    if path.is_dir() or "__pycache__" in path.parts:
        continue
    if f"'{path.relative_to(PACKAGE)}'" not in listed:
        faults.append(f"{path.relative_to(TOP)}: not in client/python/meson.build")
for name in re.findall(r"'((?:core|gpuarrayd)/[^']+)'", listed):
    if not (PACKAGE / name).exists():
        faults.append(f"client/python/meson.build: there is no {name}")
for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi"), *(TOP / "tests").rglob("*.py")]):
    name = path.relative_to(TOP).as_posix()
    lines = path.read_text().split("\n")
    if len(lines) > MAX_LINES:
        faults.append(f"{name}: over {MAX_LINES} lines")
    if any(len(line) > MAX_COLUMNS for line in lines) and path.is_relative_to(PACKAGE):
        faults.append(f"{name}: a line over {MAX_COLUMNS} columns")
    if path.name != "lint.py" and LEFT_OVER.search("\n".join(lines)):
        faults.append(f"{name}: something is left for later")
versions = [re.search(r"version: '([^']+)'", path.read_text())[1]
            for path in (TOP / "meson.build", PACKAGE / "meson.build")]
if versions[0] != versions[1]:
    faults.append(f"meson.build says {versions[0]}, client/python/meson.build {versions[1]}")
projects = [tomllib.loads((place / "pyproject.toml").read_text())["project"] for place in (TOP, PACKAGE)]
if {**projects[0], "readme": ""} != {**projects[1], "readme": ""}:
    faults.append("pyproject.toml and client/python/pyproject.toml describe two packages")

graph = {}
for path in TOP.glob("*/**/*.[ch]"):
    name = path.relative_to(TOP).as_posix()
    graph[name] = [i for i in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M)
                   if (TOP / i).exists()]
state = {}


def walk(name, trail):
    state[name] = 1
    for other in graph.get(name, []):
        if state.get(other) == 1:
            faults.append(f"circular: {' -> '.join([*trail, name, other])}")
        elif other not in state:
            walk(other, [*trail, name])
    state[name] = 2


for name in graph:
    if name not in state:
        walk(name, [])
for entry in TOP.iterdir():
    if not entry.name.startswith(".") and entry.name not in TOP_ENTRIES:
        faults.append(f"{entry.name}: nothing else belongs at the top")
for formatter in formatters:
    said = formatter.communicate()[1]
    faults += re.findall(r"^.*: error: .*$", said, re.M)
    if formatter.returncode and "error:" not in said:
        faults.append(f"clang-format: exit {formatter.returncode}: {said.strip()}")

print("\n".join(faults) or "nothing to say")
sys.exit(bool(faults))
