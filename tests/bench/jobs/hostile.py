"""An honest user beside hostile ones, as root, who is none of them: jobs a second of one who always has
some, and the 99th of 100 waits of another who asks now and then; alone, beside as many who only keep a
processor busy each, beside as many honest ones who always have jobs, and beside the hostile users of
tests/integration/hostile/test_together.py.

A fair share of n users who all want the machine is an n-th of what one does alone. What the hostile ones
do outside of the daemon is the kernel's to share, as what spins is: so waits are to be compared with
those beside who spins.

    hostile.py [SECONDS] [NICE]     with a daemon that has a pool of 32 MiB; each row takes SECONDS (10);
                                    the others have this nice value (0)
"""

import contextlib
import os
import pathlib
import sys
import tempfile
import types

INTEGRATION = pathlib.Path(__file__).resolve().parents[2] / "integration"
sys.path[:0] = [str(INTEGRATION), *map(str, sorted(INTEGRATION.glob("*/")))]
import storm  # noqa: E402
import test_together  # noqa: E402
from hanging_mount import HangingMount, can_mount  # noqa: E402

KINDS = ("ping", "small", "middle")


def spin(path):
    while True:
        pass


def main(seconds=10.0, nice=0):
    socket = os.environ["GPUARRAYD_SOCKET"]
    daemon = storm.open_to_all(types.SimpleNamespace(socket=socket, dir=os.path.dirname(socket)))
    hostile = [(function, socket) for function in test_together.ATTACKS]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        mount = HangingMount(pathlib.Path(folder), round(6 * seconds) + 30) if can_mount() else None
        if mount:
            hostile.append((test_together.hangs, socket, folder))
        n = len(hostile)
        rows = {"alone": [], f"{n} who spin": [(spin, socket)] * n,
                f"{n} who work": [(test_together.work, socket)] * n, f"{n} hostile": hostile}
        alone, spun = None, None
        for name, others in rows.items():
            with test_together.all_of(others, nice=nice), \
                    mount if mount and others is hostile else contextlib.nullcontext():
                rate, waits = test_together.measured(daemon, seconds)
            p99 = {kind: 1e3 * storm.p99(waits[kind]) for kind in KINDS}
            alone = alone or rate
            spun = p99 if "spin" in name else spun
            print(f"{name:12} {rate:6.0f} jobs a second, {rate / (alone / (len(others) + 1)):5.2f} of a fair "
                  "share; p99 " + ", ".join(f"{kind} {ms:.1f} ms" for kind, ms in p99.items()) +
                  (": " + ", ".join(f"{p99[kind] / spun[kind]:.1f}" for kind in KINDS) +
                   " times that beside who spins" if spun and p99 is not spun else ""), flush=True)


main(*map(float, sys.argv[1:2]), *map(int, sys.argv[2:3]))
