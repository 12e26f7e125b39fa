"""The build as 'meson install' puts it, below a folder of its own."""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import tempfile


class Installed:
    """`root` is DESTDIR; `at("bindir")` is a place in it, `path("bindir")` the one that programs and
    units name."""

    def __init__(self, build):
        self.build = build
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="gpuarrayd-test-"))
        self.root.chmod(0o755)
        described = subprocess.run(["meson", "introspect", str(build), "--buildoptions"], check=True,
                                   capture_output=True, text=True).stdout
        self.options = {option["name"]: option["value"] for option in json.loads(described)}
        with self.kept_log():
            self.install()

    @contextlib.contextmanager
    def kept_log(self):
        """The log of what is installed stays that of the last real installation. There is one a
        build, and an uninstallation goes by it: who installs waits for other processes that do."""
        log = self.build / "meson-logs/install-log.txt"
        with open(self.build / "meson-logs/install.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            kept = log.read_bytes() if log.exists() else None
            try:
                yield
            finally:
                if kept is None:
                    log.unlink(missing_ok=True)
                else:
                    log.write_bytes(kept)

    def call(self, *words):
        done = subprocess.run([*map(str, words)], cwd=self.build, text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def install(self, root=None):
        self.call("meson", "install", "-C", self.build, "--no-rebuild", "--destdir",
                  root or self.root)

    def uninstall(self):
        """What was installed last."""
        self.call("ninja", "-C", self.build, "uninstall")

    def path(self, option):
        return pathlib.Path(self.options["prefix"]) / self.options[option]

    def at(self, option):
        return self.root / self.path(option).relative_to("/")

    def files(self):
        return {pathlib.Path("/") / p.relative_to(self.root) for p in self.root.rglob("*")
                if not p.is_dir()}

    def environment(self, **more):
        """Where the compiler's user and the programs find the library, and nothing else of ours."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("GPUARRAYD")}
        return {**env, "PKG_CONFIG_PATH": str(self.at("libdir") / "pkgconfig"),
                "LD_LIBRARY_PATH": str(self.at("libdir")),
                "PATH": f"{self.at('bindir')}:{os.environ['PATH']}", **more}

    def flags(self, *words):
        """What pkg-config says, with the prefix moved to where the files are."""
        prefix = self.root / pathlib.Path(self.options["prefix"]).relative_to("/")
        return subprocess.run(["pkg-config", f"--define-variable=prefix={prefix}", *words,
                               "gpuarrayd"], check=True, text=True, capture_output=True,
                              env=self.environment()).stdout.split()

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)
