"""What accounts, metrics, samples and the trace, and then the log's line of each job, cost a small job:
the daemon beside one that has none of them (bare.c), in turns.

    accounting.py BUILD [ROUNDS [SECONDS]]      (9 rounds of 2 s a daemon)
"""

import contextlib
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

TICK = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid):
    """Of a process and its children that are there."""
    def of(one):
        fields = pathlib.Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(map(of, [pid, *children]))


@contextlib.contextmanager
def daemon(folder, name, broker, worker, level):
    path = f"{folder}/{name}"
    ready, tell = os.pipe()
    with open(f"{path}.log", "w") as log:
        process = subprocess.Popen([broker, "--socket", path, "--pool", "32M", "--engine", "cpu", "--worker",
                                    worker, "--log-level", level, "--ready-fd", str(tell)],
                                   pass_fds=[tell], stderr=log)
    os.close(tell)
    try:
        if os.read(ready, 1) == b"":
            sys.exit(f"{broker} did not start: " + pathlib.Path(f"{path}.log").read_text())
        yield path, process.pid
    finally:
        os.close(ready)
        process.terminate()
        process.wait()


def main(build, rounds=9, seconds=2.0):
    bare = (f"{build}/tests/bench/bare-broker", f"{build}/tests/bench/bare-worker", "warn")
    real = f"{build}/daemon/broker/gpuarrayd", f"{build}/daemon/worker/gpuarrayd-worker-cpu"
    kinds = {"bare": bare, "all": (*real, "warn"), "all and log": (*real, "info")}
    rates, costs = ({name: [] for name in kinds} for _ in range(2))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(daemon(folder, name, *how)) for name, how in kinds.items()}
        for i in range(rounds + 1):
            for name, (socket, pid) in running.items():
                before = processor_seconds(pid)
                said = subprocess.run([f"{build}/tests/bench/throughput", socket, "32", "8", str(seconds)],
                                      check=True, capture_output=True, text=True).stdout
                rate = float(re.search(r"([\d.]+) jobs/s", said)[1])
                if i > 0:  # the first is for warming up
                    rates[name].append(rate)
                    costs[name].append((processor_seconds(pid) - before) / (rate * seconds))
    rate, cost = ({name: statistics.median(all) for name, all in one.items()} for one in (rates, costs))
    for name, what in (("all", "accounts, metrics, samples and trace"),
                       ("all and log", "those and a line of the log a job")):
        print(f"small jobs with {what}: {rate[name] / rate['bare']:.3f} of the rate without (at least 0.95), "
              f"{cost[name] / cost['bare']:.3f} of the daemon's processor time ({1e6 * cost[name]:.2f} us a job)")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]), *map(float, sys.argv[3:4]))
