"""How much memory a program, the broker and its workers have while the program runs; for benchmarks with
a daemon of their own (run-uninstalled.sh)."""

import json
import pathlib
import subprocess
import threading
import time

import numpy as np


def memory(pids):
    """[private, with rings] in MiB: pages that one process alone has (smaps' Private_Clean and
    Private_Dirty), and anonymous pages and shared memory, each page once."""
    private = own = 0
    for pid in pids:
        try:
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue  # it has ended
        sizes = {line.split()[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
        private += sizes["Private_Clean:"] + sizes["Private_Dirty:"]
        own += sizes["Pss_Anon:"] + sizes["Pss_Shmem:"]
    return np.array([private, own]) / 1024


def daemons():
    told = subprocess.run(["gpuarrayctl", "info", "--json"], capture_output=True, text=True, check=True)
    broker = json.loads(told.stdout)["pid"]
    workers = pathlib.Path(f"/proc/{broker}/task/{broker}/children").read_text().split()
    return [broker, *map(int, workers)]


class Watch:
    """`with Watch(pids) as most:` then most.mib is the most that they had, [private, with rings]."""

    def __init__(self, pids, seconds=0.01):
        self.pids, self.seconds = pids, seconds

    def __enter__(self):
        self.mib, self.ended = np.zeros(2), threading.Event()
        self.thread = threading.Thread(target=self._sample)
        self.thread.start()
        return self

    def _sample(self):
        while not self.ended.is_set():
            self.mib = np.maximum(self.mib, memory(self.pids))
            time.sleep(self.seconds)

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
