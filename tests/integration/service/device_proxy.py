"""A worker that says it is a device's: it speaks the workers' protocol to the broker and lets a CPU
worker compute. So the broker is tested with several workers where there is no device.

    device_proxy.py --fd 3 --crash-page 4 --threads N --lock PATH --device I ...

What it does is told by files of the folder $DEVICE_PROXY, read when it starts:

    cuda0         "absent", "short", "fault", "mute": how its start fails; "away": it hangs up as it
                  starts, and stays; "deaf": it maps no region
    devices       how many devices there are (1)
    ready         a JSON map that goes over what it says when it is ready
    rates         a JSON map that it says is measured since, right behind that

and by a job's label: "fault:device" ends it as a device's fault does, with no tile in hand;
"fault:tile" does with a tile of that job in hand; "fault:once" is the first, once.
"""

import argparse
import array
import json
import os
import pathlib
import select
import signal
import socket
import struct
import sys

import msgpack

EXIT_ABSENT, EXIT_FAULT, EXIT_NO_MEMORY = 10, 11, 12
FAILURES = {"absent": (EXIT_ABSENT, {"code": "no-engine", "message": "there is no NVIDIA driver",
                                     "expected": "a driver", "found": "none"}),
            "short": (EXIT_NO_MEMORY, {"code": "no-memory", "message": "the memory is taken",
                                       "expected": "1 GiB", "found": "17 MiB free"}),
            "fault": (EXIT_FAULT, None), "mute": (EXIT_ABSENT, None)}


class Frames:
    """One end: frames in and out, with their descriptors."""

    def __init__(self, fd):
        self.sock = socket.socket(fileno=fd)
        self.bytes, self.fds = b"", []

    def receive(self):
        """The frames that are there; None at the end of the file."""
        data, ancillary, _, _ = self.sock.recvmsg(1 << 20, socket.CMSG_SPACE(4 * 253))
        for _, kind, payload in ancillary:
            if kind == socket.SCM_RIGHTS:
                self.fds += array.array("i", payload)
        if not data:
            return None
        self.bytes += data
        frames = []
        while len(self.bytes) >= 8:
            n_fds, size = struct.unpack("<HI", self.bytes[2:8])
            if len(self.bytes) < 8 + size:
                break
            frames.append((self.bytes[8:8 + size], self.fds[:n_fds]))
            self.bytes, self.fds = self.bytes[8 + size:], self.fds[n_fds:]
        return frames

    def send(self, body, fds=()):
        data = b"GA" + struct.pack("<HI", len(fds), len(body)) + body
        if fds:
            sent = self.sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                               array.array("i", fds))])
            data = data[sent:]
            for fd in fds:
                os.close(fd)
        self.sock.sendall(data)

    def say(self, *message):
        self.send(msgpack.packb(message, use_bin_type=True))


class Proxy:
    def __init__(self, options):
        self.options = options
        self.name = f"cuda:{options.device}"
        self.folder = pathlib.Path(os.environ["DEVICE_PROXY"])
        self.mood = self.read(f"cuda{options.device}", "")
        self.broker = Frames(options.fd)

    def read(self, name, otherwise):
        path = self.folder / name
        return path.read_text() if path.exists() else otherwise

    def fail_to_start(self):
        status, words = FAILURES[self.mood]
        if words:
            self.broker.say(2, "worker.failed", [words])
        sys.exit(status)

    def start_worker(self):
        ours, theirs = socket.socketpair()
        os.set_inheritable(theirs.fileno(), True)
        command = [os.environ["DEVICE_PROXY_WORKER"], "--fd", "5", "--crash-page", "6", "--pool",
                   self.read("pool", str(4 << 20)), "--threads", str(self.options.threads), "--lock",
                   self.options.lock]
        actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 5),
                   (os.POSIX_SPAWN_DUP2, self.options.crash_page, 6)]
        self.child = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
        theirs.close()
        self.worker = Frames(ours.detach())

    def fault(self, job):
        """The page says what was in hand, as that of a worker whose device faulted."""
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        os.pwrite(self.options.crash_page, struct.pack("<I", 1), 0)
        os.pwrite(self.options.crash_page, struct.pack("<Q", job), 64)
        os._exit(EXIT_FAULT)

    def from_broker(self, body, fds):
        message = msgpack.unpackb(body, raw=False, strict_map_key=False)
        if message[0] == 0 and message[2] == "job.start":
            label = message[3][0]["request"].get("label", "")
            marker = self.folder / "marker"
            if label == "fault:once" and not marker.exists():
                marker.touch()
                self.fault(0)
            if label in ("fault:device", "fault:tile"):
                self.fault(message[3][0]["job"] if label == "fault:tile" else 0)
        if message[0] == 0 and message[2] == "region.attach" and self.mood == "deaf":
            for fd in fds:
                os.close(fd)
            self.broker.say(1, message[1], {"code": "bad-region", "message": "not here"}, None)
            return
        self.worker.send(body, fds)

    def from_worker(self, body):
        message = msgpack.unpackb(body, raw=False, strict_map_key=False)
        if message[0] == 2 and message[1] == "worker.ready":
            message[2][0].update(
                engine="cuda", index=self.options.device, device="a proxy", is_device=False,
                devices=int(self.read("devices", "1")), memory={"pool": 4 << 20, "used": 5 << 20},
                rates={"memory": 1e13, "file": 1e13, "to_device": 1e12, "from_device": 1e12,
                       "device": 1e13, "work": 1e15, "job_seconds": 1e-6})
            message[2][0].update(json.loads(self.read("ready", "{}")))
            self.broker.say(*message)
            if rates := self.read("rates", ""):
                self.broker.say(2, "worker.rates", [json.loads(rates)])
            return
        elif message[0] == 2 and message[1] == "worker.rates":
            return  # of the CPU that computes in the device's place, as busy as it happens to be
        elif message[0] == 1 and message[3] and "engine" in message[3]:
            message[3]["engine"] = self.name
        self.broker.say(*message)

    def serve(self):
        while True:
            ready, _, _ = select.select([self.broker.sock, self.worker.sock], [], [])
            if self.broker.sock in ready:
                frames = self.broker.receive()
                if frames is None:
                    os.kill(self.child, signal.SIGKILL)
                    os.waitpid(self.child, 0)
                    return 0
                for body, fds in frames:
                    self.from_broker(body, fds)
            if self.worker.sock in ready:
                frames = self.worker.receive()
                if frames is None:
                    return 1
                for body, _ in frames:
                    self.from_worker(body)


def main():
    parser = argparse.ArgumentParser()
    for name in ("--fd", "--crash-page", "--threads", "--device"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--lock", required=True)
    options, _ = parser.parse_known_args()
    proxy = Proxy(options)
    if proxy.mood in FAILURES:
        proxy.fail_to_start()
    if proxy.mood == "away":
        proxy.broker.sock.close()
        signal.pause()
    proxy.start_worker()
    return proxy.serve()


if __name__ == "__main__":
    sys.exit(main())
