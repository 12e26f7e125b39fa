"""Random functions of numbers, for test_vectorize.py: sources in the subset of gd.vectorize.

Each is a function of x, y and n whose values stay small, so that what is compared is what was
computed and not what overflowed. Every way through a function gives its names their values.
"""

BINARY = ("{} + {}", "{} - {}", "{} * {}", "min({}, {})", "max({}, {})", "math.hypot({}, {})",
          "({}) / (2 + abs({}))", "({}) % (1.5 + abs({}))", "({}) // (1 + abs({}))")
UNARY = ("-({})", "abs({})", "math.sin({})", "np.cos({})", "math.sqrt(abs({}))", "half({})",
         "np.arctan({})", "float({})", "math.floor(math.tanh({}) * 9)")
NUMBERS = ("0.5", "2", "-1", "SCALE", "math.pi", "STEPS[1]", "3.0")
BOUND = 10  # of while loops
COMPARED = ("<", "<=", ">", ">=", "==", "!=")


class Writer:
    """rng: NumPy's. names: those that have values on every way here."""

    def __init__(self, rng):
        self.rng = rng
        self.n_loops = 0
        self.lines = []

    def pick(self, those):
        return those[self.rng.integers(len(those))]

    def value(self, names, depth=2):
        kind = self.rng.integers(10) if depth else self.rng.integers(2)
        if kind < 2:
            return self.pick(names) if kind else self.pick(NUMBERS)
        if kind < 4:
            return self.pick(UNARY).format(self.value(names, depth - 1))
        if kind < 9:
            return "(" + self.pick(BINARY).format(self.value(names, depth - 1),
                                                  self.value(names, depth - 1)) + ")"
        return (f"({self.value(names, depth - 1)} if {self.condition(names)} "
                f"else {self.value(names, depth - 1)})")

    def condition(self, names, depth=1):
        kind = self.rng.integers(6)
        if depth and kind == 0:
            return f"not ({self.condition(names, 0)})"
        if depth and kind < 3:
            word = self.pick(("and", "or"))
            return f"({self.condition(names, 0)} {word} {self.condition(names, 0)})"
        chain = f" {self.pick(COMPARED)} {self.value(names, 0)}" if kind == 5 else ""
        return f"{self.value(names, 1)} {self.pick(COMPARED)} {self.value(names, 0)}{chain}"

    def line(self, indent, text):
        self.lines.append("    " * indent + text)

    def block(self, names, indent, depth, in_loop=False):
        """Gives the names that have values behind it."""
        names = list(names)
        for _ in range(self.rng.integers(1, 4)):
            kind = self.rng.integers(9)
            if kind < 3 or not depth:
                name = self.pick(("a", "b", "c"))
                self.line(indent, f"{name} = {self.value(names)}")
                names = sorted({*names, name})
            elif kind == 3:
                own = [name for name in names if name in "abc"]
                name = self.pick(own or ["x"])
                self.line(indent, f"{name} {self.pick(('+=', '-='))} {self.value(names, 1)}")
            elif kind < 6:
                names = self.branch(names, indent, depth, in_loop)
            elif kind == 6:
                self.loop(names, indent, depth)
            elif kind == 7:
                self.line(indent, f"if {self.condition(names)}:")
                leave = self.pick(("break", "continue", "")) if in_loop else ""
                self.line(indent + 1, leave or f"return {self.value(names)}")
            else:
                self.line(indent, f"a, b = {self.value(names, 1)}, {self.value(names, 1)}")
                names = sorted({*names, "a", "b"})
        return names

    def branch(self, names, indent, depth, in_loop):
        self.line(indent, f"if {self.condition(names)}:")
        behind = {*self.block(names, indent + 1, depth - 1, in_loop)}
        if self.rng.integers(2):
            self.line(indent, f"elif {self.condition(names)}:")
            behind &= {*self.block(names, indent + 1, depth - 1, in_loop)}
        self.line(indent, "else:")
        behind &= {*self.block(names, indent + 1, depth - 1, in_loop)}
        return sorted(behind)

    def loop(self, names, indent, depth):
        index = f"i{self.n_loops}"
        self.n_loops += 1
        if self.rng.integers(3):
            self.line(indent, f"for {index} in range({self.pick((2, 3, 4, 9, 12))}):")
        else:
            self.line(indent, f"{index} = 0")
            self.line(indent, f"while {index} < {BOUND} and {self.condition([*names, index])}:")
            self.line(indent + 1, f"{index} += 1")
        self.block([*names, index], indent + 1, depth - 1, True)


def program(rng):
    """The source of a function f(x, y, n)."""
    writer = Writer(rng)
    names = writer.block(["x", "y", "n"], 1, 2)
    if rng.integers(2):
        writer.loop(names, 1, 2)
    changed = [name for name in names if name in "abc"]
    result = " - ".join([writer.value(names), *changed])
    return "\n".join(["def f(x, y, n):", *writer.lines, f"    return {result}", ""])
