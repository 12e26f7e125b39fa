"""A service manager with a watchdog of one second, for every daemon that the tests start.

systemd kills a service whose loop does not turn for that long. Wall time would say as much of the
machine's load as of the daemon, so what counts is the time that the loop's own thread has computed
from one WATCHDOG=1 to the next: that is the daemon's own doing, however busy the machine is. A loop
that sleeps in a call does not compute; STILL_SECONDS bounds that, generously.
"""

import os
import pathlib
import select
import socket
import threading
import time

SECONDS = 1
STILL_SECONDS = float(os.environ.get("GPUARRAYD_WATCHDOG_STILL", 30))
_TICK = os.sysconf("SC_CLK_TCK")


class Watchdog:
    """.env for the daemon, then begin(its pid); check() at the end. Nothing is asserted of a daemon
    without libsystemd, which never feeds it."""

    def __init__(self, folder, factor=1):
        self.most = SECONDS * factor
        self.worst = None  # what was found
        self.pid = 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        path = str(folder / "watchdog")
        self.socket.bind(path)
        os.chmod(path, 0o666)  # the daemon may be another user's
        self.quit, self.tell = os.pipe()
        self.env = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": str(SECONDS * 1000000)}

    def begin(self, pid):
        self.pid = pid
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _state_and_seconds(self):
        """The loop's thread: its state, and how long it has computed."""
        try:
            text = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/stat").read_text()
        except OSError:
            return "gone", 0.0
        words = text.rpartition(")")[2].split()
        return words[0], (int(words[11]) + int(words[12])) / _TICK

    def _count(self):
        """How often it was fed since; several at once where this thread was late."""
        n = 0
        while True:
            try:
                n += self.socket.recv(4096) == b"WATCHDOG=1"
            except BlockingIOError:
                return n

    def _look(self, n, computed, fed):
        state, total = self._state_and_seconds()
        now = time.monotonic()
        if state in ("gone", "Z", "X", "T", "t"):
            return total, now  # also one that a test has stopped: it starts afresh
        if (total - computed) / max(n, 1) > self.most:
            self.worst = f"its loop computed {total - computed:.2f} s without a turn"
        elif (now - fed) / max(n, 1) > STILL_SECONDS:
            self.worst = f"its loop stood still for {now - fed:.1f} s"
        return (total, now) if n else (computed, fed)

    def _run(self):
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        poll.register(self.quit, select.POLLIN)
        computed = fed = None
        while True:
            ready = [fd for fd, _ in poll.poll()]
            n = self._count()
            if n and computed is None:  # starting takes what it takes
                computed, fed = self._state_and_seconds()[1], time.monotonic()
            elif computed is not None and (n or self.quit in ready):
                computed, fed = self._look(n, computed, fed)
            if self.quit in ready:
                return

    def end(self):
        """What was found, or None. The daemon still runs, or is gone."""
        os.write(self.tell, b"x")
        self.thread.join()
        self.socket.close()
        os.close(self.quit)
        os.close(self.tell)
        return self.worst
