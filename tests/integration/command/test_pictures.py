"""Pictures of arrays: in a terminal what its cells show is compared with means of NumPy's."""

import base64
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import termios
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

pyte = pytest.importorskip("pyte")
Image = pytest.importorskip("PIL.Image")

import conftest  # noqa: E402

COLOURS = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8", "NO_COLOR": ""}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    y, x = np.mgrid[0:301, 0:503]
    waves = (np.sin(x / 40) * np.cos(y / 30) + x / 500).astype("f4")
    waves[96:160, 200:264] = np.nan
    np.save(folder / "waves.npy", waves)
    np.save(folder / "cube.npy", np.stack([waves, -waves]))
    np.save(folder / "walk.npy", np.cumsum(np.random.default_rng(1).normal(size=10001)))
    np.save(folder / "small.npy", np.arange(12, dtype="u2").reshape(3, 4))
    np.save(folder / "mask.npy", x % 7 == 0)
    np.save(folder / "nan.npy", np.full((5, 5), np.nan))
    np.save(folder / "ends.npy", np.array([[np.inf, -np.inf, 1e308], [-1e308, 0, np.nan]]))
    np.save(folder / "wide.npy", np.arange(300_000.0).reshape(3, 100_000))
    np.save(folder / "zero.npy", np.float64(3))
    np.save(folder / "empty.npy", np.zeros((0, 4)))
    return folder


def on_a_terminal(daemon, folder, *words, columns=80, lines=24, **environment):
    """The screen after the command, and its exit code."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    process = subprocess.Popen(
        [str(conftest.CTL), *words], stdin=slave, stdout=slave, stderr=subprocess.DEVNULL, cwd=folder,
        env={**os.environ, **COLOURS, "GPUARRAYD_SOCKET": str(daemon.socket), **environment})
    os.close(slave)
    data = b""
    try:
        while part := os.read(master, 65536):
            data += part
    except OSError:
        pass  # its end, on Linux
    os.close(master)
    screen = pyte.Screen(columns, 2000)
    pyte.ByteStream(screen).feed(data)
    return screen, process.wait(timeout=20)


def lines_of(screen):
    return [line.rstrip() for line in "\n".join(screen.display).rstrip().split("\n")]


def pixels_of(screen, first, n_lines, n_columns):
    """Their colours as (2 * n_lines, n_columns, 3)."""
    found = np.zeros((2 * n_lines, n_columns, 3), "u1")
    for y in range(n_lines):
        for x in range(n_columns):
            cell = screen.buffer[first + y][x]
            assert cell.data == "\u2580"
            for i, colour in enumerate((cell.fg, cell.bg)):
                found[2 * y + i, x] = list(bytes.fromhex(colour))
    return found


def means_of(a, step):
    rows, columns = range(0, a.shape[0], step), range(0, a.shape[1], step)
    return np.array([[a[y:y + step, x:x + step].mean(dtype="f8") for x in columns] for y in rows])


def check_colours(pixels, means):
    """Grey where there is nothing; else lighter where the mean is larger."""
    nothing = np.isnan(means)
    assert (pixels[nothing] == 128).all() and nothing.any()
    light = (pixels @ [0.2126, 0.7152, 0.0722])[~nothing]
    order = np.argsort(means[~nothing])
    light, means = light[order], means[~nothing][order]
    span = means[-1] - means[0]
    behind = np.searchsorted(means, means + span / 50)
    is_some = behind < len(means)
    assert (light[behind[is_some]] > light[is_some]).all()


def test_an_image_in_a_terminal(daemon, folder):
    waves = np.load(folder / "waves.npy")
    screen, code = on_a_terminal(daemon, folder, "show", "waves.npy", lines=25)
    text = lines_of(screen)
    assert code == 0 and text[0] == "waves.npy  npy  float32 (301, 503)  151403 elements"
    assert text[1] == "each cell the mean of 8 x 8 elements"
    means = means_of(waves, 8)
    assert len(text) == 2 + means.shape[0] // 2 + 1
    check_colours(pixels_of(screen, 2, 19, means.shape[1]), means)
    assert text[-1].startswith(f"{np.nanmin(means):.6g} \u2580")
    assert text[-1].endswith(f" {np.nanmax(means):.6g}  grey: NaN or fill")
    screen, _ = on_a_terminal(daemon, folder, "show", "cube.npy", "--colours", "magma", lines=25)
    assert lines_of(screen)[1] == "of [0], each cell the mean of 8 x 8 elements"
    check_colours(pixels_of(screen, 2, 19, means.shape[1]), means)
    screen, _ = on_a_terminal(daemon, folder, "show", "waves.npy", "--fast", lines=25)
    assert lines_of(screen)[1] == "each cell one of 8 x 8 elements"
    check_colours(pixels_of(screen, 2, 18, 62), waves[4::8, 4::8][:36, :62])


@pytest.mark.parametrize("place", [3, 700, 1500, 2303])
def test_nan_is_left_out_wherever_it_is(daemon, tmp_path, place):
    """Large arrays are read in bands, without a look at NaN until there is some."""
    image = np.repeat(np.repeat(np.arange(24 * 24, dtype="f4").reshape(24, 24), 96, 0), 96, 1)
    line = np.repeat(np.arange(24, dtype="f4"), image.size // 24)
    for name, a, at in ("image", image, (place, place)), ("line", line, (place * 2304 + 5,)):
        np.save(tmp_path / "a.npy", a)
        whole, code = on_a_terminal(daemon, tmp_path, "show", "a.npy", lines=28, NO_COLOR="1")
        assert code == 0 and "0" in lines_of(whole)[-1], name
        a[at] = np.nan
        np.save(tmp_path / "a.npy", a)
        screen, code = on_a_terminal(daemon, tmp_path, "show", "a.npy", lines=28, NO_COLOR="1")
        assert code == 0 and lines_of(screen) == lines_of(whole), name


def test_a_line_in_a_terminal(daemon, folder):
    walk = np.load(folder / "walk.npy")
    screen, code = on_a_terminal(daemon, folder, "show", "walk.npy", NO_COLOR="1")
    text = lines_of(screen)
    blocks = [walk[i:i + 126] for i in range(0, 10001, 126)]
    assert code == 0 and text[1] == "each column least, mean and greatest of 126 elements"
    assert text[-1] == f"{walk.min():.6g} to {walk.max():.6g}"
    chart = [line.ljust(80) for line in text[2:-1]]
    level = (lambda value: round((value - walk.min()) / np.ptp(walk) * (len(chart) - 1)))
    assert len(chart) == 12
    for x, block in enumerate(blocks):
        column = "".join(line[x] for line in reversed(chart))
        assert column.index("*") == level(block.mean()) and column.count("*") == 1
        assert len(column.rstrip()) - 1 == level(block.max())
        assert len(column) - len(column.lstrip()) == level(block.min())


@pytest.mark.parametrize("environment", [
    {"NO_COLOR": "1"}, {"TERM": "dumb"}, {"LC_ALL": "C"}])
def test_without_colours(daemon, folder, environment):
    screen, code = on_a_terminal(daemon, folder, "show", "small.npy", **environment)
    text = lines_of(screen)
    assert code == 0 and text[-1].startswith("0 ") and text[-1].endswith(" 11")
    ramp = " .:-=+*#%@"
    cells = np.array([[ramp.index(text[1 + 4 * y].ljust(32)[8 * x]) for x in range(4)] for y in range(3)])
    assert (np.diff(cells.ravel()) >= 0).all() and cells[0, 0] == 0 and cells[-1, -1] == 9


@pytest.mark.parametrize("columns, lines", [(1, 1), (1, 50), (3, 3), (300, 90)])
def test_terminals_of_odd_sizes(daemon, folder, columns, lines):
    for name in ("waves", "wide", "walk", "mask", "nan", "ends"):
        for environment in ({}, {"NO_COLOR": "1"}, {"COLORTERM": ""}):
            assert on_a_terminal(daemon, folder, "show", f"{name}.npy", columns=columns, lines=lines,
                                 **environment)[1] == 0


def test_text_stays_where_there_is_no_picture(daemon, folder):
    text = daemon.ctl("show", "waves.npy", cwd=folder).stdout
    assert text.splitlines()[1].startswith("min ") and "\033" not in text
    for name in ("zero", "empty"):
        screen, code = on_a_terminal(daemon, folder, "show", f"{name}.npy")
        assert code == 0 and lines_of(screen)[1].startswith("min ")
        done = daemon.ctl("show", f"{name}.npy", "--picture", cwd=folder, check=False)
        assert done.returncode == 1 and "[bad-shape]" in done.stderr and "expected:" in done.stderr
    screen, _ = on_a_terminal(daemon, folder, "show", "waves.npy", "--picture=never")
    assert lines_of(screen)[1].startswith("min ")
    screen, _ = on_a_terminal(daemon, folder, "show", "nan.npy", NO_COLOR="1")
    assert lines_of(screen)[-1] == "nothing but NaN and fill values"
    for words in (["--picture=perhaps"], ["--colours", "jet"]):
        done = daemon.ctl("show", "waves.npy", *words, cwd=folder, check=False)
        assert done.returncode == 2 and words[-1].split("=")[-1] in done.stderr


# Files ----------------------------------------------------------------------------------------


def read_png(data):
    """As (height, width, 3), by another program."""
    image = Image.open(io.BytesIO(data))
    assert (image.format, image.mode) == ("PNG", "P")
    return np.asarray(image.convert("RGB"))


def image_of(picture):
    """The pixels of the first image in an SVG, and its texts."""
    root = ElementTree.fromstring(picture)
    svg = "{http://www.w3.org/2000/svg}"
    data = [one.get("{http://www.w3.org/1999/xlink}href") for one in root.iter(f"{svg}image")]
    texts = [one.text for one in root.iter(f"{svg}text")]
    return [read_png(base64.b64decode(one.partition(",")[2], validate=True)) for one in data], texts


def test_an_image_in_files(daemon, folder, tmp_path):
    waves = np.load(folder / "waves.npy")
    done = daemon.ctl("show", "waves.npy", "--png", tmp_path / "w.png", "--svg", tmp_path / "w.svg", cwd=folder)
    assert done.stdout == "" and (tmp_path / "w.png").stat().st_mode & 0o777 == 0o644
    [pixels, bar], texts = image_of((tmp_path / "w.svg").read_bytes())
    assert pixels.shape == (301, 503, 3) and bar.shape == (240, 1, 3)
    check_colours(pixels, waves.astype("f8"))
    assert (bar[0] == [0xfd, 0xe7, 0x25]).all() and (bar[-1] == [0x44, 0x01, 0x54]).all()
    assert texts[:2] == ["waves.npy", "float32 (301, 503)"] and "NaN or fill" in texts
    whole = read_png((tmp_path / "w.png").read_bytes())
    place = np.argwhere((whole[:-603:, :-1007] == pixels[0, 0]).all(-1))
    assert any((whole[y:y + 602, x:x + 1006] == pixels.repeat(2, 0).repeat(2, 1)).all()
               for y, x in place[:4])
    with open(folder / "small.npy", "rb") as source:
        daemon.ctl("show", "-", "--svg", tmp_path / "s.svg", "--colours", "grey", stdin=source)
    [pixels, _], _ = image_of((tmp_path / "s.svg").read_bytes())
    want = np.rint(np.arange(12).reshape(3, 4, 1) / 11 * 255 * np.ones(3))
    assert np.abs(pixels - want).max() <= 1


def test_large_ones_are_means_in_files(daemon, folder, tmp_path):
    a = np.random.default_rng(3).random((1500, 2200), "f4")
    np.save(folder / "large.npy", a)
    daemon.ctl("show", "large.npy", "--svg", tmp_path / "l.svg", "--colours", "grey", cwd=folder)
    [pixels, _], texts = image_of((tmp_path / "l.svg").read_bytes())
    means = a.astype("f8").reshape(750, 2, 1100, 2).mean((1, 3))
    place = (means - means.min()) / np.ptp(means)
    assert pixels.shape == (750, 1100, 3) and np.abs(pixels[..., 0] - place * 255).max() < 1.05
    assert texts[1] == "float32 (1500, 2200), each cell the mean of 2 x 2 elements"


@pytest.mark.parametrize("name", ["walk", "wide", "mask", "nan", "ends", "cube"])
def test_odd_arrays_in_files(daemon, folder, tmp_path, name):
    daemon.ctl("show", f"{name}.npy", "--png", tmp_path / "p.png", "--svg", tmp_path / "p.svg", cwd=folder)
    width, height = read_png((tmp_path / "p.png").read_bytes()).shape[1::-1]
    root = ElementTree.parse(tmp_path / "p.svg").getroot()
    assert (2 * float(root.get("width")), 2 * float(root.get("height"))) == pytest.approx((width, height), abs=3)
    assert not re.search(r'="-?(nan|inf)', (tmp_path / "p.svg").read_text())


def test_files_that_cannot_be(daemon, folder, tmp_path):
    (tmp_path / "old.png").write_bytes(b"old")
    for name in ("zero", "empty"):
        done = daemon.ctl("show", f"{name}.npy", "--png", tmp_path / "old.png", cwd=folder, check=False)
        assert done.returncode == 1 and "[bad-shape]" in done.stderr
    done = daemon.ctl("show", "waves.npy", "--png", tmp_path / "no/w.png", cwd=folder, check=False)
    assert done.returncode == 1 and "[not-found]" in done.stderr and "no/w.png" in done.stderr
    done = daemon.ctl("show", "waves.npy", "--svg", tmp_path, cwd=folder, check=False)
    assert done.returncode == 1 and "Is a directory" in done.stderr
    done = daemon.ctl("show", "waves.npy", "--svg", "x.svg", "--json", cwd=folder, check=False)
    assert done.returncode == 2
    assert os.listdir(tmp_path) == ["old.png"] and (tmp_path / "old.png").read_bytes() == b"old"


def test_results_are_shown(daemon, folder, tmp_path):
    small = folder / "small.npy"
    made = tmp_path / "made.npy"
    for words in (["run", "a * 2.0", f"a={small}", "-o", made], ["random", "normal", "--shape", "3,4", "-o", made],
                  ["matmul", small, small, "--transpose-b", "-o", made],
                  ["run", "a = a * 2", f"a={folder / 'walk.npy'}", "--repeat", "2", "-o", made]):
        text = daemon.ctl(*words, "--show").stdout
        assert text.startswith(f"{made}  npy  ") and "min " in text
        screen, code = on_a_terminal(daemon, folder, *map(str, words), "--show", columns=200, NO_COLOR="1")
        assert code == 0 and not any("min " in line for line in lines_of(screen))
        assert any(line.startswith(f"{made}  npy  ") for line in lines_of(screen))
    text = daemon.ctl("run", "b = a * 1.5; m = max(a)", f"a={small}", "--show").stdout
    assert "\nb  memory  float64 (3, 4)  12 elements\nmin 0 " in text and "m  memory" in text
    for verb in (["run", "a", f"a={small}"], ["matmul", small, small, "--transpose-b", "-o", made]):
        assert daemon.ctl(*verb, "--show", "--json", check=False).returncode == 2
