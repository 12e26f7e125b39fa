"""README.md and the documents that go on from it are a promise: every command of a tour is run, in order,
in one shell with a daemon, and must print what the document shows, but for times, rates and numbers of jobs
(masked as in test_sessions). Python sessions are run as doctests, in the folder of the README's tour.

`python3 test_readme.py --update` writes today's output into the tours.
"""

import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import pytest

import conftest
import test_sessions

README = conftest.TOP / "README.md"
COMMAND_LINE = conftest.TOP / "client/ctl/README.md"
PYTHON = conftest.TOP / "client/python/README.md"
COMING_FROM = conftest.TOP / "client/python/COMING_FROM.md"
# Of one session each, and their own folder: for programs in C, the administrator, developers.
OTHERS = [conftest.TOP / name for name in ("client/examples/README.md", "systemd/README.md", "tests/README.md")]
DOCUMENTS = sorted([*conftest.TOP.glob("*.md"), *(
    document for room in ("client", "daemon", "kernels", "proto", "systemd", "tests")
    for document in (conftest.TOP / room).rglob("*.md"))])
DATA = pathlib.Path("/usr/share/ferret-vis/data/monthly_navy_winds.cdf")


def read(document):
    """A document as pieces: (text, None) to be kept, (command, what it shows)."""
    pieces, kept = [], []
    lines = document.read_text().splitlines()
    while lines:
        line = lines.pop(0)
        kept.append(line)
        if line.startswith("    $ "):
            shown = []
            while lines and lines[0].startswith("    ") and not lines[0].startswith("    $ "):
                shown.append(lines.pop(0)[4:])
            pieces.append(("\n".join(kept), line[6:], shown))
            kept = []
    return pieces, kept


def play(commands):
    """What each command prints, and its exit code when it is not 0, in one folder and one shell."""
    script = "".join(f"{command}\nprintf '\\001%d\\001' $?\n" for command in commands)
    with tempfile.TemporaryDirectory(prefix="gpuarrayd-test-") as folder:
        (pathlib.Path(folder) / "bin").mkdir()
        for program in (conftest.CTL, conftest.BUILD / "daemon/broker/gpuarrayd"):
            os.symlink(program, f"{folder}/bin/{program.name}")
        (pathlib.Path(folder) / "work").mkdir()
        daemon = conftest.Daemon(pool="32M")
        try:
            env = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "LC_ALL": "C",
                   "GPUARRAYD_SOCKET": daemon.socket, "XDG_RUNTIME_DIR": folder, "TOP": str(conftest.TOP),
                   "BUILD": str(conftest.BUILD), "GPUARRAYD_BUILD": str(conftest.BUILD),
                   "PYTHONPATH": f"{os.environ.get('PYTHONPATH', '')}:{conftest.BUILD}/python"}
            done = subprocess.run(["bash", "-c", script], cwd=f"{folder}/work", env=env, timeout=120,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        finally:
            daemon.stop()
    parts = done.stdout.split("\001")
    assert len(parts) == 2 * len(commands) + 1, done.stdout
    return [printed.splitlines() + ([f"[exit {code}]"] if code != "0" else [])
            for printed, code in zip(parts[::2], parts[1::2])]


def mask(lines):
    text = "\n".join(lines)
    for pattern, stands_for in test_sessions.MASKS:
        text = re.sub(pattern, stands_for, text)
    return text.splitlines()


@pytest.mark.parametrize("document", [README, COMMAND_LINE, *OTHERS], ids=lambda d: d.parent.name)
def test_the_tour_prints_what_the_document_shows(document):
    if not DATA.exists():
        pytest.skip("the quickstart's data (ferret-datasets) are not installed")
    if conftest.IS_SANITIZED and document in OTHERS:
        pytest.skip("programs link no sanitizer, and build folders are named")
    pieces, _ = read(document)
    assert len(pieces) >= (4 if document in OTHERS else 10)
    for (_, command, shown), printed in zip(pieces, play([command for _, command, _ in pieces])):
        difference = "\n".join(difflib.unified_diff(mask(shown), mask(printed), document.name,
                                                    "printed today", lineterm=""))
        assert not difference, f"\n$ {command}\n{difference}"


# The examples of a document, then what its tables have in the column "written here", one after the other.
SESSION = """
import doctest, re, sys
text, here = open(sys.argv[1], encoding="utf-8").read(), False
test = doctest.DocTestParser().get_doctest(text, {}, sys.argv[1], sys.argv[1], 0)
failed, attempted = doctest.DocTestRunner().run(test, clear_globs=False)
for line in text.splitlines():
    here = line.startswith("|") and (here or line.endswith("| written here |"))
    for code in re.findall("`([^`]+[)\\]])`", line.split(" | ", 1)[-1]) if here else ():
        attempted += 1
        try:
            exec(code, test.globs)
        except Exception as error:
            failed += 1
            print(code, repr(error))
print(attempted)
sys.exit(failed > 0)
"""


@pytest.mark.plain
@pytest.mark.parametrize("document, least", [(README, 10), (PYTHON, 20), (COMING_FROM, 50)],
                         ids=["top", "python", "coming from"])
def test_the_python_session_prints_what_the_document_shows(document, least):
    if not DATA.exists():
        pytest.skip("the quickstart's data (ferret-datasets) are not installed")
    if conftest.IS_SANITIZED:
        pytest.skip("a sanitizer's package needs a Python that is started for it")
    commands = [command for _, command, _ in read(README)[0]][:3]
    assert commands[0].startswith("cp") and commands[2].endswith("-o speed.npy")
    printed = play([*commands, shlex.join([sys.executable, "-c", SESSION, str(document)])])[-1]
    assert "[exit" not in printed[-1], "\n".join(printed)
    assert int(printed[-1]) >= least


# What the README shows outside the tour, and who runs it.
ELSEWHERE = {
    "gpuarrayctl run 'sqrt(u*u + v*v)' u=winds.nc:/UWND v=winds.nc:/VWND -o speed.npy": "the tour",
    "sh tests/quickstart.sh": "check.sh",
    "sh tests/check.sh": "check.sh",
    "meson setup build/release --prefix /usr --buildtype release -Dtests=false": "test_install.py",
    "sudo meson install -C build/release": "test_install.py, install-trial.sh",
    "sh systemd/packages.sh --no-trial": "packages-trial.sh",
    "sudo apt-get install ./build/packages/*.deb": "packages-trial.sh",
    "sudo systemd-sysusers && sudo systemd-tmpfiles --create": "install-trial.sh",
    "sudo systemctl enable --now gpuarrayd.socket": "test_units.py verifies the unit",
    'sudo usermod -aG gpuarrayd "$USER"': "install-trial.sh",
    "gpuarrayctl doctor": "test_doctor.py",
    "pip install .": "python/test_package.py, wheel.sh",
}


def test_commands_outside_the_tour_are_those_that_are_run_elsewhere():
    lines = re.findall(r"^    ((?:sh|sudo|meson|gpuarrayctl|systemctl|pip|cc|apt) [^#\n]*)",
                       README.read_text(), re.M)
    assert {line.strip() for line in lines} == ELSEWHERE.keys()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.relative_to(conftest.TOP).as_posix())
def test_every_link_leads_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_every_verb_that_is_named_is_there(daemon):
    verbs = set(test_sessions.verbs(daemon.ctl("--help").stdout))
    for document in (README, COMMAND_LINE, PYTHON):
        named = set(re.findall(r"\bgpuarrayctl ([a-z]+)\b", document.read_text()))
        assert (named or document == PYTHON) and named <= verbs, named - verbs


def update(document):
    pieces, rest = read(document)
    printed = play([command for _, command, _ in pieces])
    lines = []
    for (text, _, _), said in zip(pieces, printed):
        lines += [text, *(f"    {line}".rstrip() for line in said)]
    document.write_text("\n".join([*lines, *rest]) + "\n")


if __name__ == "__main__":
    assert sys.argv[1:] == ["--update"], __doc__
    for one in (README, COMMAND_LINE, *OTHERS):
        update(one)
