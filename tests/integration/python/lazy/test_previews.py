"""How lazies are shown: a table that computes nothing, and x.preview(), beside NumPy."""

import io
import math
import re
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
from PIL import Image

import conftest

RNG = np.random.default_rng(31)
SHAPES = [(7,), (1500,), (3, 4), (541, 71), (1081, 9), (2, 3, 9, 730), (1, 10_007), (9, 1)]


def means(x, p):
    """Of the cells, of which the last of rows and columns have fewer elements."""
    x = x[(0,) * (x.ndim - 2)] if x.ndim > 2 else x
    x = np.atleast_2d(x).astype("f8")
    rows, columns = p._cells.steps
    cells = np.pad(x, [(0, -x.shape[0] % rows), (0, -x.shape[1] % columns)], constant_values=np.nan)
    cells = cells.reshape(cells.shape[0] // rows, rows, -1, columns)
    with np.errstate(all="ignore"):
        return np.nansum(cells, axis=(1, 3)) / (~np.isnan(cells)).sum(axis=(1, 3))


@pytest.mark.parametrize("dtype", ["f4", "i2", "?", "f8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_of_numpy(gd, shape, dtype):
    x = RNG.normal(0, 50, shape).astype("f8")
    if dtype[0] == "f":
        x[RNG.random(shape) < 0.2] = np.nan
    x = x > 0 if dtype == "?" else x.astype(dtype)
    p = gd.lazy(x).preview()
    seen = (x[(0,) * (x.ndim - 2)] if x.ndim > 2 else x).astype("f8")
    assert np.allclose(p.means, means(x, p), equal_nan=True)
    assert (p.least, p.greatest, p.n_nan) == (np.nanmin(seen), np.nanmax(seen), np.isnan(seen).sum())
    counts, edges = np.histogram(seen[~np.isnan(seen)], 32, (p.least, p.greatest))
    assert np.allclose(p.edges, edges) and p.counts.sum() == counts.sum()
    assert np.abs(np.cumsum(p.counts - counts)).max() <= 2  # an element upon an edge
    fast = gd.lazy(x).preview(fast=True)
    assert fast.means.shape == p.means.shape and fast.least >= p.least and fast.greatest <= p.greatest
    assert np.isin(fast.means[~np.isnan(fast.means)], seen).all()


def test_of_expressions_and_files(gd, tmp_path):
    """Products and reductions, too, which are computed first; names and units are a file's."""
    x = RNG.normal(size=(600, 800)).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        data = f.create_dataset("x", data=x, chunks=(100, 80))
        data.attrs.update(units="m", long_name="a height")
        for axis, name in enumerate(("south", "east")):
            f[name] = np.arange(x.shape[axis])
            f[name].make_scale(name)
            data.dims[axis].attach_scale(f[name])
    a = gd.open(tmp_path / "a.h5:/x")
    for lazy, wanted in ((np.sqrt(a * a + 1), np.sqrt(x * x + 1)), (a @ a.T @ a, None),
                         (a - a.mean(axis=0), x - x.mean(axis=0)), (a.cumsum(axis=1), None),
                         (gd.arange(10**12).reshape(10**6, 10**6)[:600, :800], None)):
        p = lazy.preview()
        wanted = lazy.compute() if wanted is None else wanted
        assert np.allclose(p.means, means(wanted, p), rtol=1e-3, atol=1e-5)
    svg = a.preview().svg(colours="magma")
    texts = [one.text for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "a height" and {"m", "south", "east"} <= set(texts)
    assert "(100, 80)" in a._repr_html_() and "a height" not in repr(a)


def test_pictures_are_what_the_command_draws(gd, daemon, tmp_path):
    """The same pixels between the axes."""
    x = np.sin(np.hypot(*np.mgrid[-20:20, -30:30] / 3))
    np.save(tmp_path / "a.npy", x)
    daemon.ctl("show", "a.npy", "--png", "a.png", cwd=tmp_path)
    told = np.asarray(Image.open(tmp_path / "a.png").convert("RGB"))
    mine = np.asarray(Image.open(io.BytesIO(gd.lazy(x).preview()._repr_png_())).convert("RGB"))
    assert mine.shape == told.shape and (mine[116:] == told[116:]).all()  # below the title
    assert (mine[:70] != told[:70]).any()


def test_nothing_finite_and_infinities(gd):
    x = np.full((5, 6), np.nan)
    p = gd.lazy(x).preview()
    assert math.isnan(p.least) and p.n_nan == 30 and len(p.counts) == 0 and p._repr_png_()
    x[0, 0], x[1, 1], x[2, 2], x[3] = -np.inf, np.inf, 3, 4
    for fast in (False, True):
        p = gd.lazy(x).preview(fast)
        assert (p.least, p.greatest, p.n_nan) == (-np.inf, np.inf, 21)
        assert p.counts.sum() == 7 and (p.edges[0], p.edges[-1]) == (3, 4)
    assert gd.ones((4, 4)).preview().counts.sum() == 16


def test_html(gd):
    """Of strange names, too; a table computes nothing."""
    x = gd.lazy(np.ones((1 << 10, 1 << 10), "f4"))
    html = x._repr_html_()
    cells = dict(re.findall(r"<th>(.*?)</th><td><code>(.*?)</code>", html))
    assert cells == {"dtype": "float32", "shape": "(1024, 1024)", "size": "4 MiB", "is": "ndarray"}
    before = gd.stats()["jobs"]["submitted"]
    deep = x
    for _ in range(500):
        deep = deep * 2 + x
    html = gd.where(deep < 1, x, deep)._repr_html_()
    assert len(html) < 3000 and "&lt;" in html and "ndarray float32" in html
    assert gd.stats()["jobs"]["submitted"] == before
    assert "None" in gd.from_generator(lambda: iter([]), "f4", shape=(None, 3))._repr_html_()
    shown = x[:20, :30].preview()
    ElementTree.fromstring(f"<p>{shown._repr_html_().replace('viridis', '')}</p>".replace(
        '"><svg', '"/><svg').replace('"><text', '"/><text'))
    assert "data:image/png;base64," in shown._repr_html_() and "<title>" in shown._repr_html_()


def test_what_has_no_picture(gd):
    for x in (gd.lazy(3.0), gd.ones((3, 0)), gd.from_generator(lambda: iter([]), "f4", shape=(None, 3))):
        with pytest.raises(gd.BadShape, match="no picture"):
            x.preview()
    with pytest.raises(gd.BadArgument, match="jet"):
        gd.ones(3).preview().png(colours="jet")


def test_the_library_refuses_what_does_not_fit(gd):
    """Each number that is not another's."""
    from gpuarrayd import _core
    texts = ("t", None, None, None, None)
    good = dict(is_svg=False, is_line=False, is_even=True, cells=(2, 3), sizes=(4, 9, 2, 3),
                numbers=np.zeros(6).tobytes(), colours=0, texts=texts)
    assert _core.picture(*good.values())[:4] == b"\x89PNG"
    for name, bad in (("cells", (2, 4)), ("cells", (0, 3)), ("sizes", (4, 9, 0, 3)), ("colours", 3),
                      ("sizes", (-4, 9, -2, 3)), ("numbers", bytes(47)), ("is_line", True),
                      ("sizes", (2**62, 9, 1, 3)), ("colours", -1), ("cells", (2000, 3))):
        with pytest.raises(gd.BadArgument):
            _core.picture(*{**good, name: bad}.values())
