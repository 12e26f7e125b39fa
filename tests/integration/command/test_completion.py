"""What shells offer behind `FILE:`: names inside files, typed at a terminal."""

import json
import os
import pty
import select
import shutil
import subprocess
import time

import h5py
import numpy as np
import pytest

import conftest

COMPLETION = conftest.TOP / "client/ctl/completion"
# Typed behind the word: the shell puts its line into a file, and begins a new one.
KEYS = b"\t\x18\x10"
SETUP = {
    "bash": r"""source {}/gpuarrayctl.bash; bind -x """
            r"""'"\C-x\C-p": printf "%s\n" "$READLINE_LINE" >>lines; READLINE_LINE='""",
    "zsh": "fpath=({} $fpath); autoload -U compinit; compinit -u -D; "
           "keep() {{ print -r -- \"$BUFFER\" >>lines; BUFFER= }}; zle -N keep; bindkey '^X^P' keep",
}
ARGUMENTS = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    (folder / "bin").mkdir()
    (folder / "bin/gpuarrayctl").symlink_to(conftest.CTL)
    with h5py.File(folder / "winds.h5", "w") as f:
        f["UWND"] = f["VWND"] = f["deep/inside"] = f["deep/er/down"] = np.zeros(3)
        f["two words"] = f["it's"] = f["k=3:1"] = np.zeros(3)
        f["text"] = "not served"
        f["soft"] = h5py.SoftLink("/nowhere")
    os.mkdir(folder / "a folder")
    shutil.copy(folder / "winds.h5", folder / "a folder/same.h5")
    (folder / "cut.h5").write_bytes((folder / "winds.h5").read_bytes()[:1000])
    for name in ("", "group/", "group/inner/"):
        (folder / f"store.zarr/{name}").mkdir()
        (folder / f"store.zarr/{name}.zgroup").write_text('{"zarr_format": 2}')
    for name in ("before", "group/inner/x", "hind"):
        (folder / f"store.zarr/{name}").mkdir()
        (folder / f"store.zarr/{name}/.zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<f4", "compressor": None, "fill_value": 0,
            "order": "C", "filters": None}))
    np.savez(folder / "some.npz", first=np.zeros(2), second=np.zeros(2))
    return folder


def wait_for(fd, is_true):
    """Reads what is printed meanwhile, so that the shell can go on."""
    said, until = b"", time.monotonic() + 30
    while not is_true(said):
        assert time.monotonic() < until, said
        if select.select([fd], [], [], 0.005)[0]:
            said += os.read(fd, 4096)


def read_until(fd, wanted):
    wait_for(fd, lambda said: wanted in said)


def tab(shell, place, lines):
    """The lines after the tabulator key, typed one after the other."""
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    kept = place / "lines"
    kept.unlink(missing_ok=True)
    child, fd = pty.fork()
    if child == 0:
        os.chdir(place)
        os.execvpe(shell, ARGUMENTS[shell], {
            "PATH": f"{place}/bin:{os.environ['PATH']}", "TERM": "dumb", "PS1": "BEGIN>", "HOME": str(place),
            "GPUARRAYD_SOCKET": "/nonexistent", "LC_ALL": "C.UTF-8",
            **{name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}})
    try:
        read_until(fd, b"BEGIN>")
        os.write(fd, f"{SETUP[shell].format(COMPLETION)}; PS1=REA; PS1+='DY>'\n".encode())
        read_until(fd, b"READY>")
        for i, line in enumerate(lines):
            os.write(fd, line.encode() + KEYS)
            wait_for(fd, lambda said: kept.exists() and kept.read_text().count("\n") > i)
    finally:
        os.close(fd)  # the shell's terminal is gone, and it ends
        os.waitpid(child, 0)
    return kept.read_text().split("\n")[:-1]


LINES = [
    ("run 'max(a)' a=winds.h5:/U", "run 'max(a)' a=winds.h5:/UWND "),
    ("show winds.h5:/V", "show winds.h5:/VWND "),
    ("info winds.h5:/d", "info winds.h5:/deep/"),
    ("info winds.h5:/deep/i", "info winds.h5:/deep/inside "),
    ("info winds.h5:/deep/er/", "info winds.h5:/deep/er/down "),
    ("info winds.h5:U", "info winds.h5:UWND "),
    (r"info winds.h5:/tw", r"info winds.h5:/two\ words "),
    (r"info winds.h5:/two\ ", r"info winds.h5:/two\ words "),
    ("info 'winds.h5:/tw", "info 'winds.h5:/two words' "),
    ('info "winds.h5:/tw', 'info "winds.h5:/two words" '),
    ("run 'max(a)' 'a=winds.h5:/tw", "run 'max(a)' 'a=winds.h5:/two words' "),
    (r"info a\ folder/same.h5:/U", r"info a\ folder/same.h5:/UWND "),
    ("info ~/winds.h5:/U", "info ~/winds.h5:/UWND "),
    ("matmul winds.h5:/UWND winds.h5:/V", "matmul winds.h5:/UWND winds.h5:/VWND "),
    ("info some.npz:f", "info some.npz:first "),
    ("show store.zarr:/h", "show store.zarr:/hind "),
    ("show store.zarr:/group/", "show store.zarr:/group/inner/"),
    ("info winds.h5:/t", "info winds.h5:/two\\ words "),     # /text is not served
    ("info winds.h5:/s", "info winds.h5:/s"),                 # a link that leads nowhere
    ("info winds.h5:/nothing", "info winds.h5:/nothing"),
    ("run 'max(a)' a=win", "run 'max(a)' a=winds.h5 "),
    ("info winds.h5:/i", "info winds.h5:/it\\'s "),
    ("info cut.h5:/U", "info cut.h5:/U"),
]


@pytest.mark.parametrize("shell", SETUP)
def test_names_in_files_are_completed(shell, place):
    typed = tab(shell, place, [f"gpuarrayctl {line}" for line, _ in LINES])
    assert typed == [f"gpuarrayctl {line}" for _, line in LINES]


@pytest.mark.parametrize("shell", SETUP)
def test_signs_that_cut_words_may_be_in_names(shell, place):
    [said] = tab(shell, place, ["gpuarrayctl run 'a' a=winds.h5:/k"])
    assert said.replace("\\", "") == "gpuarrayctl run 'a' a=winds.h5:/k=3:1 "


@pytest.mark.parametrize("source, names", [
    ("winds.h5", "UWND VWND deep/"), ("winds.h5:/deep", "deep/er/ deep/inside"), ("winds.h5:/UWND", "UWND"),
    ("store.zarr", "before group/ hind"), ("store.zarr:/group", "group/inner/"),
    ("store.zarr:/group/inner/", "group/inner/x")])
def test_names_are_of_what_is_directly_in_a_group(source, names, place):
    done = subprocess.run([conftest.CTL, "info", "--names", source], cwd=place, capture_output=True, text=True,
                          check=True)
    odd = {"/two words", "/it's", "/k=3:1"}
    assert [name for name in done.stdout.splitlines() if name not in odd] == [f"/{name}" for name in names.split()]
