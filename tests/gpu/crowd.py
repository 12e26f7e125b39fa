"""Arrays ten times a device's pool, and ten clients whose arrays together are fifty times the pool,
at once: all results right, and the device memory of the worker's process where it was.

crowd.py POOL     as 128M. Prints lines for the table of run.sh; ends with 1 when anything is wrong.
"""

import os
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

import numpy as np  # noqa: E402

import conftest  # noqa: E402
import wire  # noqa: E402
from wire import described, file_at  # noqa: E402

N_CLIENTS = 10
KEYS = ("process_device_bytes", "device_allocations", "host_allocations")


def one_client(daemon, n_bytes, seed):
    """sqrt(a * a + b) from two files into a region, n_bytes in all; whether it is right."""
    rng = np.random.default_rng(seed)
    n = n_bytes // 12
    a = np.resize(rng.random(1_000_003, dtype="f4"), n)
    b = np.resize(rng.random(100_003, dtype="f4"), n)
    fds = []
    for array in (a, b):
        fds.append(wire.memfd(array.nbytes))
        with open(fds[-1], "r+b", closefd=False) as file:
            file.write(array.data)
    with daemon.connect(timeout=300) as w:
        region = wire.Region(w, a.nbytes)
        reply = w.call("job.run", fds=fds, engine="cuda", outputs=[
            {"expr": "sqrt(a * a + b)", "to": described(a, region.at())}, {"expr": "max(b)"}],
            args={"a": described(a, file_at(0)), "b": described(b, file_at(1))})
        right = np.array_equal(region.array("f4", a.shape), np.sqrt(a * a + b)) \
            and wire.result_array(reply["outputs"][1])[()] == b.max() \
            and reply["engine"].startswith("cuda")
    for fd in fds:
        os.close(fd)
    return right


def watched(daemon, clients):
    """Runs the clients at once; (seconds, all right, the highest of each number meanwhile)."""
    right, most = [], {key: 0 for key in KEYS}

    def run(client):
        try:
            right.append(client())
        except Exception as error:  # told as wrong, the others go on
            print(f"a client: {error!r}", file=sys.stderr)
            right.append(False)

    threads = [threading.Thread(target=run, args=(client,)) for client in clients]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        engine = daemon.engine_info()
        most = {key: max(most[key], engine.get(key, 0)) for key in KEYS}
        threads[0].join(0.05)
    for thread in threads:
        thread.join()
    return time.perf_counter() - began, all(right) and len(right) == len(clients), most


def main():
    pool = conftest.size_of(sys.argv[1])
    daemon = conftest.Daemon(engine="cuda", pool=sys.argv[1], threads=min(os.cpu_count(), 8))
    failed = False
    try:
        before = daemon.wait_for_state("ready")
        for what, clients in (
                ("one client, arrays of ten times the pool",
                 [lambda: one_client(daemon, 10 * pool, 1)]),
                (f"{N_CLIENTS} clients at once, together fifty times the pool",
                 [lambda i=i: one_client(daemon, 50 * pool // N_CLIENTS, i)
                  for i in range(N_CLIENTS)])):
            seconds, right, most = watched(daemon, clients)
            flat = all(most[key] <= before[key] for key in KEYS)
            failed |= not (right and flat and daemon.engine_info()["restarts"] == 0)
            print(f"RESULT\t{what} of {sys.argv[1]}\t{'all right' if right else 'WRONG'}, "
                  f"{seconds:.1f} s with making and checking the arrays\t"
                  f"device memory of the process {before[KEYS[0]] >> 20} MiB before, at most "
                  f"{most[KEYS[0]] >> 20} MiB meanwhile\t{'flat' if flat else 'GREW'}\tflat")
    finally:
        daemon.stop()
    sys.exit(failed)


main()
