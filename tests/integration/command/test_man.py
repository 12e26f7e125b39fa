"""The man pages: well formed, complete, and true where that can be tried."""

import re
import shutil
import subprocess

import pytest

import conftest

PAGES = {name: conftest.TOP / path for name, path in {
    "gpuarrayctl.1": "client/man/gpuarrayctl.1",
    "libgpuarrayd.3": "client/man/libgpuarrayd.3",
    "gpuarrayd.conf.5": "daemon/man/gpuarrayd.conf.5",
    "gpuarrayd.8": "daemon/man/gpuarrayd.8",
}.items()}
EVERY_VERB = {"help", "usage", "version"}  # argp's own


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.skipif(not shutil.which("mandoc"), reason="there is no mandoc")
def test_pages_are_well_formed(name):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", str(PAGES[name])],
                          capture_output=True, text=True)
    # Other pages are looked for among those that are installed.
    lines = [line for line in done.stdout.splitlines() if "referenced manual not found" not in line]
    assert lines == []


@pytest.mark.parametrize("name", PAGES)
def test_pages_refer_to_pages_that_are_there(name):
    ours = set(PAGES)
    for page, section in re.findall(r"\bXr (gpuarray\S*|libgpuarray\S*) (\d)", PAGES[name].read_text()):
        assert f"{page}.{section}" in ours


def ask(*words):
    done = subprocess.run([str(conftest.CTL), *words], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout


def verbs_of_the_command():
    return set(re.findall(r"^  ([a-z]+)  ", ask("--help").split("Examples:")[0], re.M))


def verbs_of_the_page():
    text = PAGES["gpuarrayctl.1"].read_text()
    verbs = re.search(r"^\.Sh VERBS\n(.*?)^\.Sh ", text, re.M | re.S)[1]
    parts = re.split(r"^\.Ss (\w+)\n", verbs, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def test_the_page_of_the_command_has_every_verb_and_no_other():
    assert set(verbs_of_the_page()) == verbs_of_the_command()


def options_of_the_command(verb):
    """{"output": "o", "json": None}: long options and their letters."""
    found = re.findall(r"^ +(?:-(\S), |)--([a-z-]+)", ask(verb, "--help").split("Examples:")[0], re.M)
    return {name: letter for letter, name in found if name not in EVERY_VERB}


@pytest.mark.parametrize("verb", sorted(verbs_of_the_page()))
def test_the_page_has_every_option_of_a_verb_and_no_other(verb):
    items = re.findall(r"^\.It (?:Fl (\S) , )?Fl -([a-z-]+)", verbs_of_the_page()[verb], re.M)
    assert {name: letter for letter, name in items} == options_of_the_command(verb)


def public_functions():
    headers = sorted((conftest.TOP / "client").glob("gpuarrayd*.h"))
    text = re.sub(r"/\*.*?\*/", "", "".join(path.read_text() for path in headers), flags=re.S)
    names = set(re.findall(r"\b(gad_\w+)\s*\([^()]*\)\s*;", text))
    return names - set(re.findall(r"typedef\s+\w+\s+(gad_\w+)\s*\(", text))


def test_the_page_of_the_library_names_only_functions_that_exist():
    named = set(re.findall(r"\bFn (gad_\w+)", PAGES["libgpuarrayd.3"].read_text()))
    assert named and named <= public_functions()
    # Every way to an array and through a job is named.
    assert {f for f in public_functions() if re.match(r"gad_(array|job)_", f)} - named == {
        "gad_job_is_done", "gad_job_id"}


def test_the_program_of_the_page_compiles_and_runs(installed, daemon, tmp_path):
    text = PAGES["libgpuarrayd.3"].read_text()
    program = re.search(r"^\.Bd -literal[^\n]*\n(#include.*?)^\.Ed", text, re.M | re.S)[1]
    (tmp_path / "program.c").write_text(program.replace("\\e", "\\"))
    np = pytest.importorskip("numpy")
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "program.c", "-o",
                    "program", *installed.flags("--cflags", "--libs")], cwd=tmp_path, check=True)
    np.save(tmp_path / "a.npy", np.array([4, 9, 2], "f4"))
    done = subprocess.run(["./program", "a.npy", "r.npy"], cwd=tmp_path, text=True,
                          capture_output=True,
                          env=installed.environment(GPUARRAYD_SOCKET=daemon.socket))
    assert (done.returncode, done.stdout) == (0, "9\n"), done.stderr
    assert np.load(tmp_path / "r.npy").tolist() == np.sqrt(np.array([4, 9, 2], "f4")).tolist()
    done = subprocess.run(["./program", "b.npy", "r.npy"], cwd=tmp_path, text=True,
                          capture_output=True,
                          env=installed.environment(GPUARRAYD_SOCKET=daemon.socket))
    assert done.returncode == 1 and done.stderr.endswith("[not-found]\n")
