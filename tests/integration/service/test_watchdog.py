"""The watchdog that every other test's daemon has: it sees a loop that computes without a turn."""

import subprocess
import sys

import pytest

from watchdog import SECONDS, Watchdog

LOOP = """
import os, socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(os.environ["NOTIFY_SOCKET"])
for computes in {parts}:
    s.send(b"WATCHDOG=1")
    end = time.process_time() + computes
    while time.process_time() < end:
        pass
s.send(b"WATCHDOG=1")
print("done", flush=True)
input()
"""


@pytest.mark.parametrize("parts, is_seen", [([0, SECONDS + 0.3], True), ([0.4, 0.4, 0.4, 0.4], False)])
def test_a_loop_that_computes_too_long_is_seen(folder, parts, is_seen):
    watchdog = Watchdog(folder)
    process = subprocess.Popen([sys.executable, "-c", LOOP.format(parts=parts)], env=watchdog.env,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    watchdog.begin(process.pid)
    assert process.stdout.readline() == "done\n"
    found = watchdog.end()
    process.communicate("\n", timeout=20)
    assert bool(found) == is_seen, found
