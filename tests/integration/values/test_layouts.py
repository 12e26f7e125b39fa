"""Every function of the catalogue over shapes, byte orders, layouts in memory and many tiles. What
is right was compared with NumPy for the plain array (test_catalogue.py); here every other way to
the same elements must give the same bits, wherever in a vector, a strip or a tile an element falls.
"""

import itertools
import os

import numpy as np
import pytest

import wire
from catalogue import (OUTPUTS, Refused, ask, ask_once, assert_same, calls, functions, in_domain,
                       numpy_result, specials)

PAIRS = [("f8", "f8"), ("f4", "f4"), ("i4", "i2"), ("u1", "i8"), ("f4", "i1")]


class Functions:
    """All calls that NumPy offers for some dtypes, and arguments a, b, e (b as an exponent)."""

    def __init__(self, daemon, left, right, n=1009):
        a, b = specials(left, n), specials(right, n)[::-1].copy()
        self.arguments = {"a": a, "b": b, "e": in_domain("power", [a, b])[1]}
        self.texts = {1: [], 2: []}
        for op in functions(daemon):
            operands = "ae" if op["name"] == "power" else "ab"
            try:
                numpy_result(op["name"], [self.arguments[k][:1] for k in operands[:op["args"]]])
            except Refused:
                continue
            self.texts[op["args"]] += [text for text, _ in calls(op, operands)]
        assert len(self.texts[1]) > 45 and len(self.texts[2]) > 20

    @property
    def all(self):
        return self.texts[1] + self.texts[2]


def results(w, texts, arguments, what=""):
    got = ask(w, texts, arguments)
    for text, result in zip(texts, got):
        assert not isinstance(result, wire.Error), f"{what}: {text}: {result}"
    return got


def check(got, wants, texts, what):
    for text, result, want in zip(texts, got, wants, strict=True):
        assert_same(result, want, f"{what}: {text}")


SHAPES = [((), ()), ((0,), ()), ((0, 3), (3,)), ((1,), (7,)), ((5, 1), (1, 3)), ((13,), (11, 1)),
          ((2, 3, 5), (3, 1)), ((1, 1, 1), (2, 2)), ((7, 1, 3), (5, 1)), ((1009,), (1,)),
          ((), (31,)), ((1,), ()), ((3, 0), (1, 1)), ((2,) * 9, (2, 1) * 4)]


@pytest.mark.parametrize("left, right", PAIRS)
@pytest.mark.values
def test_every_function_on_every_shape(daemon, w, left, right):
    """Empty, 0-d, one, prime, broadcast: as for the plain array of the same elements."""
    f = Functions(daemon, left, right)
    for first, second in SHAPES:
        some = {k: v[:int(np.prod(s))].reshape(s) for (k, v), s in
                zip(f.arguments.items(), (first, second, second))}
        whole = np.broadcast_shapes(first, second)
        for n, shape in ((1, first), (2, whole)):
            plain = {k: np.broadcast_to(v, shape).ravel() for k, v in some.items()
                     if n == 2 or k == "a"}
            wants = [r.reshape(shape) for r in results(w, f.texts[n], plain)]
            check(results(w, f.texts[n], some, f"{first} {second}"), wants, f.texts[n],
                  f"{first} {second}")


@pytest.mark.parametrize("left, right", PAIRS)
def test_every_function_in_both_byte_orders(daemon, w, left, right):
    """Big-endian arguments, and big-endian outputs."""
    f = Functions(daemon, left, right)
    wants = results(w, f.all, f.arguments)
    swapped = {k: v.astype(v.dtype.newbyteorder(">")) for k, v in f.arguments.items()}
    check(results(w, f.all, swapped), wants, f.all, "big-endian")
    mixed = {**f.arguments, "b": swapped["b"]}
    check(results(w, f.all, mixed), wants, f.all, "one big-endian")
    out = wire.Region(w, OUTPUTS * 8192)
    for i in range(0, len(f.all), OUTPUTS):
        some = wants[i:i + OUTPUTS]
        big = [want.dtype.newbyteorder(">") for want in some]
        to = [{"dtype": d.str, "shape": [1009], "at": out.at(j * 8192)} for j, d in enumerate(big)]
        ask_once(w, f.all[i:i + OUTPUTS], swapped, to)
        got = [out.array(d, (1009,), j * 8192).astype(d.newbyteorder("="))
               for j, d in enumerate(big)]
        check(got, some, f.all[i:i + OUTPUTS], "to big-endian")
    w.call("region.detach", region=out.id)


class Placed:
    """An array stored in a region in some layout, described for a request."""

    def __init__(self, region, offset, array, layout):
        shape, axes = list(array.shape), list(range(array.ndim))
        if layout == "F":
            axes = axes[::-1]
        elif layout == "middle first":
            axes = [axes[len(axes) // 2]] + [x for x in axes if x != len(axes) // 2]
        step = {"every second": 2, "every third": 3}.get(layout, 1)
        stored = region.array(array.dtype, [shape[x] * step for x in axes], offset)
        view = np.transpose(stored, np.argsort(axes))[(slice(None, None, step),) * array.ndim]
        if layout == "reversed":
            view = view[::-1]
        elif layout == "all reversed":
            view = view[(slice(None, None, -1),) * array.ndim]
        self.n_bytes = stored.nbytes
        self.view = view
        start = region.array("u1", (1,)).__array_interface__["data"][0]
        self.at = wire.described(view, region.at(view.__array_interface__["data"][0] - start),
                                 view.strides)


LAYOUTS = ["C", "F", "every second", "reversed", "all reversed", "middle first", "every third"]


@pytest.mark.parametrize("left, right", PAIRS)
@pytest.mark.parametrize("shape", [(19, 53), (3, 5, 67), (1009,)])
@pytest.mark.values
def test_every_function_in_every_layout(daemon, w, left, right, shape):
    """Each argument in its own layout and byte order, and the outputs in a third."""
    f = Functions(daemon, left, right)
    n = int(np.prod(shape))
    wants = [r[:n].reshape(shape) for r in results(w, f.all, f.arguments)]
    region, out = wire.Region(w, 1 << 20), wire.Region(w, OUTPUTS << 16)
    pairs = list(zip(LAYOUTS, LAYOUTS[2:] + LAYOUTS[:2], LAYOUTS[1:] + LAYOUTS[:1]))
    for x, y, z in pairs[:3] + pairs[4:] if len(shape) > 1 else pairs[2:4]:
        sent, offset = {}, 0
        for (name, value), layout in zip(f.arguments.items(), (x, y, y)):
            value = value[:n].reshape(shape)
            if layout in ("F", "reversed"):
                value = value.astype(value.dtype.newbyteorder(">"))
            place = Placed(region, offset, value, layout)
            place.view[...] = value
            offset += 1 << 18
            sent[name] = place.at
        what = f"{x}, {y} to {z}"
        check(results(w, f.all, sent, what), wants, f.all, what)
        for i in range(0, len(f.all), OUTPUTS):
            some = wants[i:i + OUTPUTS]
            if z == "every third" and len(shape) == 3:
                break
            targets = [Placed(out, j << 16, want, "F" if z.startswith("every") else z)
                       for j, want in enumerate(some)]
            ask_once(w, f.all[i:i + OUTPUTS], sent, [t.at for t in targets])
            check([t.view.copy() for t in targets], some, f.all[i:i + OUTPUTS], what)
            del targets
    del place
    for r in (region, out):
        w.call("region.detach", region=r.id)


@pytest.mark.parametrize("left, right", PAIRS)
@pytest.mark.values
def test_every_function_over_many_tiles_of_a_tiny_pool(start, left, right):
    """The same 1009 elements over and over, through a pool of 1 MiB that holds a part of one array:
    each falls on every place of a vector and of a strip."""
    n = 100_003
    daemon = start(pool="1M")
    f = Functions(daemon, left, right)
    with daemon.connect() as w:
        wants = results(w, f.all, f.arguments)
        out = wire.Region(w, OUTPUTS * 8 * n)
        fds = []
        for value in f.arguments.values():
            fds.append(wire.memfd(n * value.itemsize))
            os.pwrite(fds[-1], np.resize(value, n).tobytes(), 0)
        for i in range(0, len(f.all), OUTPUTS):
            texts, some = f.all[i:i + OUTPUTS], wants[i:i + OUTPUTS]
            sent = {k: {"dtype": v.dtype.str, "shape": [n], "at": wire.file_at(j)}
                    for j, (k, v) in enumerate(f.arguments.items())}
            to = [{"dtype": r.dtype.str, "shape": [n], "at": out.at(j * 8 * n)}
                  for j, r in enumerate(some)]
            outputs = [{"expr": t, "to": at} for t, at in zip(texts, to)]
            reply = w.call("job.run", fds=fds, args=sent, outputs=outputs)
            assert reply["tiles"] > 1 or daemon.engine_name != "cpu"
            got = [out.array(r.dtype, (n,), j * 8 * n) for j, r in enumerate(some)]
            check(got, [np.resize(r, n) for r in some], texts, "many tiles")
            del got
        for fd in fds:
            os.close(fd)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 33, 63, 65, 127, 1021, 4093])
def test_every_function_at_every_length_and_alignment(daemon, w, n):
    """From a region, at offsets that are no multiple of a vector."""
    dtypes = itertools.cycle(PAIRS)
    for shift in (0, 1, 3):
        left, right = next(dtypes)
        f = Functions(daemon, left, right, 4096)
        texts = f.all
        region = wire.Region(w, 1 << 17)
        sent = {}
        for i, (name, value) in enumerate(f.arguments.items()):
            at = (i << 15) + shift * value.itemsize
            region.array(value.dtype, (n,), at)[:] = value[:n]
            sent[name] = {"dtype": value.dtype.str, "shape": [n], "at": region.at(at)}
        wants = results(w, texts, {k: v[:n] for k, v in f.arguments.items()})
        whole = results(w, texts, {k: np.resize(v[:n], 1009) for k, v in f.arguments.items()})
        check(results(w, texts, sent), wants, texts, f"{n} at {shift}")
        check([r[:n] for r in whole][:len(wants)] if n <= 1009 else wants, wants, texts, f"{n}")
        w.call("region.detach", region=region.id)
