"""Random expressions over the whole catalogue, grown together with NumPy's value of every part, so
that a part that NumPy refuses (or whose value no two machines agree on) is never grown upon.

Two kinds. Exact trees hold only functions whose results are NumPy's to the bit, and are compared
bit for bit on arguments full of special values. Smooth trees hold the transcendental functions on
tame values. What their result may differ by is measured: the tree is evaluated some more times with
every transcendental result moved by as many ulp, at random, as ours and NumPy's may differ; a part
that blows this up, such as a sine of something large, is not kept.
"""

import random
import re
import warnings

import numpy as np

from catalogue import (DTYPES, ELSEWHERE, TABLE, float_of, how, named, numpy_names, specials,
                       wide_result)

INEXACT = {name for name, spec in TABLE.items() if spec.wide is not None}
# Where the result of a zero or a NaN depends on its sign, which NumPy does not define everywhere.
WRITTEN = {
    "fmin": "(0 + fmin({x}, {y}))", "fmax": "(0 + fmax({x}, {y}))",
    "copysign": "copysign({x}, nan_to_num({y}))", "signbit": "signbit(nan_to_num({x}))",
}
OPERATORS = "+ - * / // % & | ^ << >> == != < <= > >=".split()
FORMS = ["where({x} > {y}, {z}, {y})", "where({x}, {y}, {z})", "-({x})", "~({x})",
         "select([{x} > {y}, {y} == {z}], [{z}, {x}], default=3)",
         "select([isfinite({x})], [{y}], {z})", "(0 + clip({x}, {y}, {z}))", "clip({x}, -2, 5)",
         "clip({x}, None, {y})", "round({x}, 2)", "round(0 + clip({x}, 0, 99), decimals=-1)",
         "isclose({x}, {y}, rtol=1e-3, equal_nan=True)", "nan_to_num({x}, nan=1.5, posinf=7)",
         "int32(clip(nan_to_num({x}), -100, 100))", "uint8(clip(nan_to_num({x}), 0, 255))",
         "int64(clip(nan_to_num({x}), -1e6, 1e6))", "float32({x})", "float64({x})", "bool({x})",
         "ldexp({x}, int16(clip(nan_to_num({y}), -9, 9)))", "(({x} - {y}) * ({x} - {y}))"]
WHOLE = ["(0 + max({x}))", "(0 + min({x}))", "count_nonzero({x})", "any({x} > {y})",
         "(0 + max({x}, axis=0))", "(0 + min({x}, axis=-1, keepdims=True))",
         "count_nonzero({x}, axis=0, keepdims=True)", "all({x} < {y}, axis=-1, keepdims=True)",
         "argmax({x}, axis=0)", "argmin({x}, axis=-1, keepdims=True)",
         "(0 + nanmax({x}, axis=0))", "sum(int32(clip(nan_to_num({x}), -9, 9)), axis=0)",
         "(0 + max({x}, axis=0, where={y} > 1, initial=2))"]
SMOOTH = ["({x} + {y})", "({x} - {y})", "({x} * {y})", "({x} / {y})", "where(a > b, {x}, {y})",
          "minimum({x}, {y})", "maximum({x}, {y})", "sqrt(abs({x}))", "abs({x})", "square({x})",
          "float32({x})", "({x} / 3)", "(1 / (1 + {x} * {x}))", "clip({x}, -1, 1)",
          "log(1 + abs({x}))",
          "select([a > b, b > 2], [{x}, {y}], default=0.5)", "({x} ** 2)", "tanh({x})", "sin({x})"]
MOVES = 5  # evaluations with moved results


def accurate(name):
    """A function of SciPy's, rounded from a wider type, with its dtypes."""
    def call(x):
        x = np.asarray(x)
        return wide_result(name, [x], float_of(x)).astype(float_of(x))[()]
    return call


class Node:
    def __init__(self, text, values):
        self.text, self.values = text, values  # the first is NumPy's, the others moved

    @property
    def value(self):
        return self.values[0]


class Trees:
    """Trees over arguments a, b, c; numbers too. Parts of earlier trees may come again."""

    SHAPES = [[(17, 5), (5,), (17, 1)], [(101,)] * 3, [(3, 1, 4), (2, 1), ()], [(101,)] * 3]

    def __init__(self, seed, ops, smooth=False, shapes=None):
        self.random = random.Random(seed)
        self.smooth = smooth
        self.ops = ops
        self.arguments = {}
        rng = np.random.default_rng(seed)
        for name, shape in zip("abc", shapes or self.random.choice(self.SHAPES)):
            self.arguments[name] = self.argument(rng, shape)
        self.shape = np.broadcast_shapes(*[a.shape for a in self.arguments.values()])
        self.worlds = [self.world(None)]
        if smooth:
            self.worlds += [self.world(np.random.default_rng([seed, i])) for i in range(MOVES)]
        self.kept = []
        self.n_whole = 0
        self.templates = self.all_templates()

    def argument(self, rng, shape):
        dtype = self.random.choice(["f4", "f8"] * 3 + DTYPES)
        if self.smooth:
            value = rng.uniform(0.1, 4, shape)
            if np.dtype(dtype).kind in "iub":
                value = np.ceil(value)
            return np.asarray(value).astype(dtype)
        pool = specials(dtype, 600)
        return np.asarray(rng.choice(pool, shape))

    def world(self, rng):
        names = numpy_names(self.ops)
        if self.smooth:  # SciPy's own lose more digits than may be lost here
            for op in self.ops:
                if how(op["name"]).scipy:
                    names.update({n: accurate(op["name"]) for n in (op["name"], op["alias"]) if n})
        if rng is not None:
            for op in self.ops:
                if op["name"] in INEXACT:
                    moved = self.moved(names[op["name"]], rng)
                    names.update({n: moved for n in (op["name"], op["alias"]) if n})
        names["index"] = lambda axis: np.indices(self.shape)[axis]
        return {**names, **self.arguments}

    @staticmethod
    def moved(function, rng):
        def call(*arguments):
            result = np.asarray(function(*arguments))
            step = 8 * np.finfo(result.dtype).eps
            factor = 1 + step * rng.choice([-1, 1], result.shape)
            return (result * factor.astype(result.dtype))[()]
        return call

    def all_templates(self):
        plain = []
        for op in self.ops:
            name = op["name"]
            if name in ELSEWHERE:
                continue
            if (name in INEXACT) != self.smooth:
                continue
            text = f"{name}({', '.join(['{x}', '{y}'][:op['args']])})"
            for i in range(op["results"]):
                plain.append(WRITTEN.get(name, text) + (f"[{i}]" if op["results"] == 2 else ""))
        if self.smooth:
            return [plain, SMOOTH]
        symbols = [f"({{x}} {s} {{y}})" for s in OPERATORS]
        return [plain, plain, symbols, FORMS]

    # -- growing --------------------------------------------------------------------------------

    def evaluate(self, template, parts):
        """The values of a template over parts, in every world; None where it is not to be kept."""
        text = template.format(**{k: k for k in parts})
        values = []
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i, world in enumerate(self.worlds):
                scope = {**world, **{k: p.values[i] for k, p in parts.items()}}
                try:
                    values.append(eval(text, {"__builtins__": {}}, scope))
                except Exception:  # what NumPy or Python refuses
                    return None
            v = values[0]
            if isinstance(v, bool) or isinstance(v, int) and not 0 <= v < 100:
                return None  # of numbers alone: Python's, not NumPy's, and may not fit a dtype
            return values if not self.smooth or self.is_tame(values) else None

    @staticmethod
    def is_tame(values):
        value = np.asarray(values[0])
        if value.dtype.kind != "f":
            return False
        spread = np.max([np.abs(np.asarray(v) - value) for v in values[1:]], axis=0)
        eps = np.finfo(value.dtype).eps
        return bool(np.isfinite(value).all() and (np.abs(value) < 1e3).all() and
                    (spread <= 500 * eps * np.maximum(np.abs(value), 0.01)).all())

    def leaf(self):
        r = self.random
        if r.random() < 0.75:
            text = r.choice(list(self.arguments))
        elif not self.smooth and self.shape and r.random() < 0.3:
            text = f"index({r.randrange(len(self.shape))})"
        else:
            text = r.choice(["2", "3", "0.5", "1", "1.5"])
        with np.errstate(all="ignore"):
            return Node(text, [eval(text, {"__builtins__": {}}, self.worlds[0])] * len(self.worlds))

    def grow(self, depth):
        r = self.random
        if depth == 0 or r.random() < 0.05:
            return self.leaf()
        if self.kept and r.random() < 0.08:
            return r.choice(self.kept)
        for _ in range(12):
            template = r.choice(r.choice(self.templates))
            if not self.smooth and self.n_whole < 2 and r.random() < 0.03:
                template = r.choice(WHOLE)
            parts = {k: self.grow(depth - 1) for k in "xyz" if "{" + k + "}" in template}
            if template in WHOLE and any("index(" in p.text for p in parts.values()):
                continue  # there it is the index in another array
            values = self.evaluate(template, parts)
            if values is None:
                continue
            self.n_whole += template in WHOLE
            node = Node(template.format(**{k: p.text for k, p in parts.items()}), values)
            if len(node.text) < 300:
                self.kept.append(node)
            return node
        return self.leaf()

    def tree(self, depth):
        """One with an array in it; where it has an index(), with all of them, for the shape that
        it counts in."""
        while True:
            node = self.grow(depth)
            names = set(re.findall(r"\w+", node.text)) & set(self.arguments)
            if not names or len(node.text) < 8 or len(node.text) > 12000:
                continue
            if "index(" not in node.text:
                return node
            template = "where(a * 0 == b * 0, {x}, c)"
            values = self.evaluate(template, {"x": node})
            if values is not None:
                return Node(template.format(x=node.text), values)
