"""The Python package beside the C library and NumPy, in turns, in one run.

Usage: python.py ROUNDS [MI_ELEMENTS], with a daemon at $GPUARRAYD_SOCKET; ROUNDS: the built rounds.
MI_ELEMENTS 0: the small job alone. Where everything runs on one processor its overhead is that of
the package's instructions; on several it is as noisy as the wake-ups of the three processes.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

import gpuarrayd as gd

FUSED = "sqrt(a*a+b*b)+sin(c)*exp(-a)"
RANGES = {"a": (0, 4), "b": (-3, 3), "c": (-10, 10)}
TURNS = 15


class Library:
    """The C library, in a process of its own, on arrays of its own."""

    def __init__(self, program: str, expression: str, n_args: int, dtype: str, n: int) -> None:
        self.process = subprocess.Popen([program, expression, str(n_args), dtype, str(n)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.line()

    def line(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the C library's side has gone")
        return line

    def __call__(self, times: int) -> float:
        self.process.stdin.write(f"{times}\n")
        self.process.stdin.flush()
        return float(self.line())

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def median(work: Callable[[], object], times: int) -> float:
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def in_turns(sides: list[Callable[[int], float]], times: int, turns: int = TURNS) -> list[float]:
    """The median seconds of each side, `times` runs at a time."""
    rounds = [[side(times) for side in sides] for _ in range(turns)]
    return [statistics.median(column) for column in zip(*rounds)]


def arrays(n_args: int, dtype: str, n: int, empty: Callable[..., np.ndarray]) -> list[np.ndarray]:
    """a, b, c and the result."""
    made = []
    for low, high in list(RANGES.values())[:n_args]:
        made.append(empty(n, dtype))
        made[-1][...] = np.linspace(low, high, n, dtype=dtype)
    made.append(empty(n, dtype))
    made[-1][...] = 1
    return made


def small(program: str) -> None:
    library = Library(program, "sqrt(a)", 1, "float64", 1000)
    a, r = arrays(1, "float64", 1000, gd.empty)
    into = lambda n: median(lambda: gd.evaluate("sqrt(a)", a=a, out=r), n)
    new = lambda n: median(lambda: gd.evaluate("sqrt(a)", a=a), n)
    ours, given, made = in_turns([library, into, new], 200)
    library.end()
    print(f"sqrt of 1,000 float64 in shared memory: C {ours * 1e6:.1f} us; evaluate with out= "
          f"{given * 1e6:.1f} us, overhead {(given - ours) * 1e6:.1f} us; without out= "
          f"{made * 1e6:.1f} us, overhead {(made - ours) * 1e6:.1f} us (at most 15)")


def large(program: str, expression: str, n_args: int, dtype: str, n: int) -> None:
    library = Library(program, expression, n_args, dtype, n)
    *args, r = arrays(n_args, dtype, n, gd.empty)
    named = dict(zip(RANGES, args))
    python = lambda k: median(lambda: gd.evaluate(expression, out=r, **named), k)
    python(1)
    ours, theirs = in_turns([library, python], 1)
    library.end()
    print(f"{expression}, {dtype}, {n >> 20} Mi elements in shared memory: C {ours:.4f} s, Python "
          f"{theirs:.4f} s, ratio {theirs / ours:.3f} (at most 1.05)")


def heap(dtype: str, n: int) -> None:
    a, b, c, r = arrays(3, dtype, n, np.empty)
    numpy = lambda k: median(lambda: np.sqrt(a*a + b*b) + np.sin(c)*np.exp(-a), k)
    into = lambda k: median(lambda: gd.evaluate(FUSED, a=a, b=b, c=c, out=r), k)
    new = lambda k: median(lambda: gd.evaluate(FUSED, a=a, b=b, c=c), k)
    into(1), new(1)
    theirs, given, made = in_turns([numpy, into, new], 1, 7)
    print(f"{FUSED}, {dtype}, {n >> 20} Mi elements of NumPy's memory: NumPy {theirs:.4f} s; evaluate "
          f"with out= {given:.4f} s, {theirs / given:.1f} times; without out= {made:.4f} s, "
          f"{theirs / made:.1f} times (at least 1.0)")


def imported() -> None:
    """With the modules compiled, as they are once installed."""
    code = ("import numpy, time; began = time.perf_counter(); import gpuarrayd; "
            "print(time.perf_counter() - began)")
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        seconds = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, env=env,
                                        text=True, check=True).stdout) for _ in range(TURNS + 1)]
    print(f"import gpuarrayd after NumPy: {statistics.median(seconds[1:]) * 1e3:.1f} ms (at most 60)")


def main() -> None:
    program = sys.argv[1]
    n = int(sys.argv[2] if len(sys.argv) > 2 else 32) << 20
    small(program)
    if n == 0:
        return
    large(program, "sqrt(a)", 1, "float64", n)
    for dtype in "float32", "float64":
        large(program, FUSED, 3, dtype, n)
    for dtype in "float32", "float64":
        heap(dtype, n)
    imported()


main()
