#!/usr/bin/env python3
"""What the build needs to know of a CUDA toolkit. Usage: toolkit.py NVCC [ARCHITECTURES]

Prints five lines: version, folder of the headers (empty: where the compiler looks anyway), the
static runtime, nvcc's options for the machine code, and the names of what is compiled in. Exits
with a message where the toolkit is of no use.

ARCHITECTURES: numbers like "75 90"; without them one for every kind of device that this nvcc knows,
from 75 (Turing) on. Machine code runs on later devices of the same generation, so the chips that
differ by little are left out. Portable code (PTX) of the newest is always there, for what comes.
All of it is packed, to a fifth of its size; the driver unpacks what it loads. Drivers for CUDA 13 know
the better way.
"""

import pathlib
import platform
import re
import subprocess
import sys

OLDEST = (12, 0)
USUAL = [75, 80, 86, 89, 90, 100, 120]
ON_BOARDS = {72, 87, 88, 101, 110}  # in boards with an ARM processor only


def ask(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} (nvcc needs g++): "
                 f"{(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout + done.stderr


def folders(dry_run, variable, option):
    line = re.search(rf"^#\$ {variable}=(.*)$", dry_run, re.M)
    return re.findall(rf'"-{option}([^"]+)"', line[1]) if line else []


def static_runtime(dry_run):
    name = "libcudart_static.a"
    usual = ask("gcc", f"-print-file-name={name}").strip()
    for path in [*(pathlib.Path(folder) / name for folder in folders(dry_run, "LIBRARIES", "L")),
                 pathlib.Path(usual)]:
        if path.is_absolute() and path.exists():
            return path.resolve()
    sys.exit(f"{name} is not beside nvcc")


def choose(known, wanted):
    if wanted:
        missing = sorted(set(wanted) - set(known))
        if missing:
            sys.exit(f"this nvcc does not know the architectures {missing}, but {known}")
        return sorted(wanted)
    boards = set() if platform.machine() == "aarch64" else ON_BOARDS
    generations = {number // 10 for number in USUAL}
    newer = {}
    for number in known:
        if number // 10 not in generations and number not in boards and number >= USUAL[0]:
            newer.setdefault(number // 10, number)
    on_boards = [number for number in known if number in ON_BOARDS - boards and number >= USUAL[0]]
    return sorted({*(n for n in USUAL if n in known), *newer.values(), *on_boards})


nvcc = sys.argv[1]
wanted = [int(number) for number in re.findall(r"\d+", " ".join(sys.argv[2:]))]
version = re.search(r"release (\d+\.\d+)", ask(nvcc, "--version"))[1]
if tuple(map(int, version.split("."))) < OLDEST:
    sys.exit(f"this is CUDA {version}, needed is 12.0 or newer")
known = sorted({int(n) for n in re.findall(r"^sm_(\d+)$", ask(nvcc, "--list-gpu-code"), re.M)})
ask(nvcc, "-x", "cu", "-E", "/dev/null", "-o", "/dev/null")  # does it work with this g++?
dry_run = ask(nvcc, "--dryrun", "-x", "cu", "-c", "/dev/null", "-o", "/dev/null")
chosen = choose(known, wanted)
if not chosen:
    sys.exit(f"this nvcc knows nothing from Turing (75) on, but {known}")
newest = chosen[-1]

print(version)
print(next((pathlib.Path(folder).resolve() for folder in folders(dry_run, "INCLUDES", "I")
            if (pathlib.Path(folder) / "cuda_runtime_api.h").exists()), ""))
print(static_runtime(dry_run))
print(*(f"-gencode=arch=compute_{n},code=sm_{n}" for n in chosen),
      f"-gencode=arch=compute_{newest},code=compute_{newest}",
      "-compress-mode=size" if version >= "13" else "-Xfatbin -compress-all")
print(*(f"sm_{n}" for n in chosen), f"compute_{newest}")
