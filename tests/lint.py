"""The structure that the code must keep: includes point one way, libraries stay in their places,
files stay small, nothing is left for later. Usage: lint.py TOP."""

import pathlib
import re
import sys

TOP = pathlib.Path(sys.argv[1])
MAY_INCLUDE = {
    "proto": {"proto"},
    "kernels": {"proto", "kernels"},
    "daemon": {"proto", "kernels", "daemon"},
    "client": {"proto", "client"},
}
PLACES = {
    "uv.h": ("daemon/broker/",),
    "cuda_runtime.h": ("kernels/cuda/",),
    "hdf5.h": ("client/formats/hdf5",),
    "curses.h": ("client/ctl/stats/top_",),
    "Python.h": ("client/python/core/",),
    "structmember.h": ("client/python/core/",),
    "cblas.h": ("kernels/cpu/multiply/multiply.c",),
    "seccomp.h": ("daemon/confine.c",),
    "pthread.h": ("daemon/worker/", "daemon/broker/host/closer.c", "daemon/broker/host/log.c", "client/"),
}
BROKEN_GT = re.compile(r"\bgt\(\w+, ")  # Criterion's, in C: true of equal values; lt() says it right
LEFT_OVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MAX_LINES = 600
MAX_COLUMNS = 100
TOP_ENTRIES = {"proto", "kernels", "daemon", "client", "tests", "systemd", "meson.build",
               "meson_options.txt", "README.md", "LICENSE", "build"}

faults = []
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
            if included in PLACES and not name.startswith(PLACES[included]):
                faults.append(f"{name}: {included} belongs to {', '.join(PLACES[included])}")

for path in sorted((TOP / "tests").rglob("*.[ch]")):
    if BROKEN_GT.search(path.read_text()):
        faults.append(f"{path.relative_to(TOP)}: gt() of Criterion holds for equal values; use lt()")

# The Python package is a client like others: C that sees the public header alone, and a list of
# its files in its own meson.build, from which none must be missing.
PACKAGE = TOP / "client/python"
PUBLIC = {"gpuarrayd.h", "gpuarrayd-jobs.h", "gpuarrayd-move.h", "gpuarrayd-plan.h",
          "gpuarrayd-product.h", "gpuarrayd-status.h"}
for path in sorted(PACKAGE.glob("core/*.[ch]")):
    for included in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M):
        if included not in PUBLIC and not (PACKAGE / included).exists():
            faults.append(f"{path.relative_to(TOP)}: {included} is not the library's public header")
listed = (PACKAGE / "meson.build").read_text()
for path in sorted([*PACKAGE.glob("core/*.c"), *PACKAGE.glob("gpuarrayd/**/*")]):
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

print("\n".join(faults) or "nothing to say")
sys.exit(bool(faults))
