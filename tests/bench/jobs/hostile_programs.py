"""How long the most costly programs take to be read, checked and planned, or refused: of a processor,
in the broker. SEMANTICS.md says 0.1 s at most.

hostile_programs.py [SECONDS [NAME,... [SEED]]], with a daemon on $GPUARRAYD_SOCKET. Each family of
programs has numbers, which are drawn and climbed for so many seconds (2): what took longest is changed
a little and tried again. Exits with 1 where something took longer than is said, twice.
"""

import glob
import itertools
import json
import os
import pathlib
import random
import socket
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "integration"))
import wire  # noqa: E402

LIMIT_SECONDS = 0.1
CHARS = 16384  # of a text
MODES = ("edge", "constant", "reflect", "symmetric", "wrap")
PLANES = {name: {"dtype": dtype, "shape": [4096, 4096]}
          for name, dtype in {"a": "<f4", "b": "|i1", "c": "<f8", "k": "<i8"}.items()}
FAMILIES = {}


def family(**ranges):
    def add(f):
        FAMILIES[f.__name__] = f, {"n_outputs": (1, 16), **ranges}
        return f
    return add


def cubes(n, ndim, length=2):
    return {f"x{i}": {"dtype": "<f4", "shape": [length] * ndim} for i in range(n)}


def filled(part, begin="", end="", most=CHARS):
    """As many parts as there is room for."""
    texts, left = [begin], most - len(begin) - len(end)
    for i in itertools.count():
        text = part(i) if callable(part) else part
        left -= len(text)
        if left < 0:
            return "".join(texts) + end
        texts.append(text)


def named(i):
    letters = "ghijklmnopqstuvwxyz"
    return (named(i // 19 - 1) if i >= 19 else "") + letters[i % 19]


def hashed(name):
    """As bindings.c does."""
    h = 2166136261
    for byte in name.encode():
        h = (h ^ byte) * 16777619 & 0xffffffff
    return (h ^ h >> 15) % 256


LIKE = [name for name in map("".join, itertools.product("ghij", "abcdefghijklmnopqr", "stuvwxyz_", "ABCDEFGHIJ",
                                                        "0123456789")) if hashed(name) == 7]


@family(n=(1, 1700), n_calls=(0, 500), n_outer=(1, 60))
def functions_by_the_thousand(n, n_calls, n_outer):
    text = "".join(f"{named(i)}_(x)=x;" for i in range(n))[:11000]
    text = text[:text.rfind(";") + 1]
    return text + "Z(x)=x" + "+g_(x)" * n_calls + ";a" + "+Z(a)" * n_outer, PLANES


@family(n=(1, 1500), n_body=(10, 1500), n_calls=(1, 16))
def names_that_are_like_each_other(n, n_body, n_calls):
    text = "".join(f"{name}=a;" for name in LIKE[:n])[:CHARS - 8000]
    text = text[:text.rfind(";") + 1] or f"{LIKE[0]}=a;"
    body = min(n_body, (CHARS - len(text) - 200) // (len(LIKE[0]) + 1))
    return text + "F(x)=x" + f"+{LIKE[0]}" * body + ";" + "+".join(["F(a)"] * n_calls), PLANES


@family(n_chars=(10, 16000), n_calls=(1, 60), kind=(0, 10))
def long_functions(n_chars, n_calls, kind):
    part = ("+x", "+1", "*2-x", "+sqrt(x)", "+x**7", "+where(x>1,x,1)", "+near(x,1,0)", "+z**99", "+z/w",
            "+window_mean(x,3)", "+sum(x)")[kind]
    body = filled(part, "z" if kind in (7, 8) else "x", most=min(n_chars, CHARS - 400 - 5 * n_calls))
    body = f"real({body})" if kind in (7, 8) else body
    return f"z=complex(a,c);w=z*2;F(x)={body};" + "+".join(["F(a)"] * n_calls), PLANES


@family(n_states=(1, 16), n_chars=(1, 3000), n_calls=(1, 12), is_complex=(0, 1), kind=(0, 3))
def loops_whose_dtypes_rise(n_states, n_chars, n_calls, is_complex, kind):
    names = [f"s{i}" for i in range(n_states)]
    steps = [f"{one}={other}" for one, other in zip(names, names[1:] + names[:1])]
    steps[0] += "+int16(b)"
    steps[-1] += "+f(s0)" * n_calls + "+a*0"
    body = filled(("+1", "+x", "-x*2", "+x+1")[kind], "x", most=n_chars)
    return (f"f(x)={body};" + "".join(f"{one}={'0j' if is_complex else 'b'};" for one in names)
            + f"iterate(9,{','.join(steps)})"), PLANES


@family(n=(1, 32), n_states=(1, 16), n_body=(0, 400))
def many_loops(n, n_states, n_body):
    text, found = "", []
    for loop in range(n):
        names = [f"s{loop}_{i}" for i in range(n_states)]
        steps = [f"{one}={other}" for one, other in zip(names, names[1:] + names[:1])]
        steps[0] += "+int16(b)" + "*2" * n_body
        more = "".join(f"{one}=b;" for one in names) + f"L{loop}=iterate({9 + loop},{','.join(steps)});"
        if len(text) + len(more) + 5 * n > CHARS:
            break
        text += more
        found.append(f"L{loop}")
    return text + "+".join(found or ["a"]), PLANES


@family(n=(1, 60), n_states=(1, 16), n_nears=(0, 30), n_body=(0, 100), mode=(0, 4), kind=(0, 1))
def repeats(n, n_states, n_nears, n_body, mode, kind):
    steps = ",".join(
        f"x{s}=x{s}" + "".join(f"+near(x{(s + i) % n_states},{i % 3 - 1},{i // 3 % 3 - 1})"
                               for i in range(n_nears)) + "*2" * n_body for s in range(n_states))
    n = max(1, min(n, CHARS // (len(steps) + 20)))
    text = "+".join(f"repeat({2 + i * kind},{steps})" for i in range(n))
    return text[:CHARS], cubes(n_states, 2, 4096), MODES[mode]


@family(rows=(1, 60), columns=(1, 60), apart=(1, 200), mode=(0, 4), n_factors=(0, 20))
def neighbours(rows, columns, apart, mode, n_factors):
    text = f"q=a{'*3' * n_factors};q" + "".join(f"+near(q,{i * apart},{k})" for i in range(rows)
                                                for k in range(columns))
    return text[:text.rfind("+", 0, CHARS)] if len(text) > CHARS else text, PLANES, MODES[mode]


@family(n_before=(1, 2000), n=(1, 1500), n_different=(1, 1000))
def neighbours_behind_much_else(n_before, n, n_different):
    text = filled(lambda i: f"+a*{i}", "j=a", ";p=a+77777;", most=2000 + n_before * 5)
    return filled(lambda i: f"+near(p,{i % n_different},0)", text + "j", most=min(CHARS, len(text) + 14 * n)), PLANES


@family(n_axes=(1, 31), n_args=(1, 64), mode=(0, 4))
def neighbours_along_all_axes(n_axes, n_args, mode):
    return filled(lambda i: f"+near(x{i % n_args},{','.join(str(i >> k & 1) for k in range(n_axes))})",
                  "x0"), cubes(n_args, n_axes), MODES[mode]


@family(n=(1, 30), size=(1, 8192), depth=(1, 16), kind=(0, 4), n_axes=(1, 31))
def windows_of_windows(n, size, depth, kind, n_axes):
    one = "x0"
    for i in range(depth):
        one = f"window_{('mean', 'max', 'std', 'median', 'sum')[kind]}({one}+x{i % 2},{size},axis={i % n_axes})"
    return "+".join([one] * min(n, CHARS // (len(one) + 1))), cubes(2, n_axes, 2 if n_axes > 8 else 64)


@family(n_axes=(1, 31), n_args=(1, 64), kind=(0, 9), n=(1, 64))
def reductions(n_axes, n_args, kind, n):
    name = ("sum", "mean", "var", "std", "max", "argmax", "ptp", "norm", "logsumexp", "nanvar")[kind]
    text = "q=" + "+".join(f"x{i}" for i in range(n_args)) + ";q"
    return text + "".join(f"+{name}(q+{i // n_axes},axis={i % n_axes},keepdims=True)" for i in range(n)), \
        cubes(n_args, n_axes)


@family(n_states=(1, 16), n_axes=(1, 31), offset=(0, 200), mode=(0, 4), n_steps=(1, 60000), n=(1, 8))
def repeats_along_all_axes(n_states, n_axes, offset, mode, n_steps, n):
    length = min(5000, int(2 ** (60 / n_axes)))
    near = ",".join([str(min(offset, length - 1))] + ["0"] * (n_axes - 1))
    steps = ",".join(f"x{s}=x{s}+near(x{(s + 1) % n_states},{near})" for s in range(n_states))
    return "+".join(f"repeat({n_steps + i},{steps})" for i in range(n))[:CHARS], cubes(n_states, n_axes, length), \
        MODES[mode]


@family(n=(1, 64), n_more=(0, 2), is_complex=(0, 1))
def choices(n, n_more, is_complex):
    ends = ",".join(f"a>{i}" for i in range(n)), ",".join(f"z*{i}{'+z' * n_more}" for i in range(n))
    text = f"+select([{ends[0]}],[{ends[1]}],z)"
    return filled(text, f"z={'complex(a,c)' if is_complex else 'a'};real(z", ")"), PLANES


@family(depth=(1, 199), n=(1, 100), kind=(0, 5))
def deep_ones(depth, n, kind):
    around = ("sqrt(%s)", "(%s)", "-%s", "where(a>1,%s,0)", "select([a>1],[%s],0)", "clip(%s,0,1)")[kind]
    one = "a"
    for _ in range(depth):
        one = around % one if len(one) < CHARS - 30 else one
    return "+".join([one] * max(1, min(n, CHARS // (len(one) + 1)))), PLANES


@family(kind=(0, 12), n=(1, CHARS))
def large_tokens(kind, n):
    one, times, end = (("a", 1, ""), ("9", 1, ""), ("(", 1, ""), ("[", 1, ""), ("-", 1, "a"), ("~", 1, "b"), ("+", 1, "a"),
                       ("x=a;", 4, "a"), (" ", 1, "a"), ("\n", 1, "+q"), ("a;", 2, ""), ("(((a)", 5, ""), ("1<<", 3, "1"))[kind]
    return (one * (n // times))[:CHARS - len(end)] + end, PLANES


@family(n_args=(1, 64), n_chars=(1, 60))
def many_arguments(n_args, n_chars):
    names = [f"{'v' * n_chars}{i}" for i in range(n_args)]
    return filled(f"+{names[-1]}", names[-1]), {one: {"dtype": "<f4", "shape": [64, 64]} for one in names}


class Planner:
    def __init__(self):
        self.wire = wire.Wire(os.environ["GPUARRAYD_SOCKET"], timeout=300)
        peer = self.wire.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.pid = struct.unpack("3i", peer)[0]

    def used(self):
        """Seconds of a processor, of all of the broker's threads."""
        paths = glob.glob(f"/proc/{self.pid}/task/*/schedstat")
        return sum(int(pathlib.Path(path).read_text().split()[0]) for path in paths) / 1e9

    def seconds(self, texts, args, mode):
        began, found = self.used(), "ok"
        try:
            self.wire.call("job.plan", args=args, beyond={"mode": mode}, outputs=[{"expr": one} for one in texts])
        except wire.Error as error:
            found = error.code
        return self.used() - began, found


def tried(planner, name, numbers):
    numbers = dict(numbers)
    n_outputs = numbers.pop("n_outputs")
    text, args, *mode = FAMILIES[name][0](**numbers)
    return planner.seconds([text] * n_outputs, args, mode[0] if mode else "edge")


def changed(rng, numbers, ranges):
    name = rng.choice(list(ranges))
    low, high = ranges[name]
    value = rng.choice((low, high, rng.randint(low, high), int(numbers[name] * rng.uniform(0.5, 2)),
                        numbers[name] + 1, numbers[name] - 1))
    return {**numbers, name: min(high, max(low, value))}


def climbed(planner, name, seconds, rng):
    """The one that took longest, and how many were tried."""
    ranges, best, n = FAMILIES[name][1], [], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end or n == 0:
        numbers = {one: high for one, (_, high) in ranges.items()} if n == 0 else \
            changed(rng, rng.choice(best)[1], ranges) if rng.random() < 0.65 else \
            {one: rng.choice((low, high, rng.randint(low, high))) for one, (low, high) in ranges.items()}
        took, found = tried(planner, name, numbers)
        best = sorted([*best, (took, numbers, found)], key=lambda one: -one[0])[:8]
        n += 1
    return best[0], n


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2
    names = sys.argv[2].split(",") if sys.argv[2:] and sys.argv[2] else list(FAMILIES)
    rng, planner, is_over = random.Random(int(sys.argv[3]) if sys.argv[3:] else 1), Planner(), False
    for name in names:
        (took, numbers, found), n = climbed(planner, name, seconds, rng)
        least = min(took, tried(planner, name, numbers)[0], tried(planner, name, numbers)[0])
        is_over |= least > LIMIT_SECONDS
        print(f"{name:32} {1e3 * least:6.1f} ms of {n:5} {found:18} {json.dumps(numbers)}", flush=True)
    sys.exit(is_over)


if __name__ == "__main__":
    main()
