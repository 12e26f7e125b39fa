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
    "pthread.h": ("daemon/worker/", "daemon/broker/closer.c", "daemon/broker/log.c", "client/"),
}
LEFT_OVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MAX_LINES = 600
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
