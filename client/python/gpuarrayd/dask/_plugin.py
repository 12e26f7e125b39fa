"""Workers of dask.distributed and the daemon of their host.

The plugin connects a worker process when the worker starts, so that a missing daemon is found
before the first task, and the first task does not wait for one to start. Workers that start at once
on one host get one private daemon: the library sees to that. Nothing is done on the scheduler.
"""

from __future__ import annotations

import asyncio
import os
import socket as _socket
from typing import TYPE_CHECKING, Any

from distributed import WorkerPlugin

from . import _process
from ..errors import Error

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from distributed import Client, Worker


class DaemonPlugin(WorkerPlugin):
    """Connects each worker to the daemon of its host: `client.register_plugin(DaemonPlugin())`.

    It works with nannies, with workers that come later and with workers that are started again, and
    with several workers in one process, which share one session. Registered again it replaces the
    plugin before it; with equal settings nothing changes. A worker that ends closes its session,
    which cancels what it still computes. A process that is connected already (gd.connect(), with
    LocalCluster (processes=False)) stays so unless `socket` is given.

    Parameters
    ----------
    socket : path, optional
        Of the daemon, the same on each host. None: $GPUARRAYD_SOCKET of the worker's environment,
        else the machine's service, else a private daemon.
    start : bool
        Whether a private daemon may be started on a host where none listens. With False the tasks
        of such a host fail too, rather than start one.
    daemon : path, optional
        Of the program gpuarrayd for a private daemon. None: $GPUARRAYD_DAEMON, else the installed
        one.
    timeout : float
        Seconds to connect, for each worker, and for answers to plain questions.

    Raises
    ------
    NoDaemon
        By register_plugin(): on a worker's host none listens and none could or may be started. For
        a worker that comes later it is in that worker's log, and its tasks raise it.
    Permission, Untrusted, VersionMismatch, Timeout, QuotaExceeded
        By register_plugin(), likewise: one listens and cannot be used. Each worker process is one
        session of the user; `user-sessions` in gpuarrayd.conf says how many there may be (64).
    """

    name = "gpuarrayd"

    def __init__(self, socket: str | os.PathLike[str] | None = None, start: bool = True,
                 daemon: str | os.PathLike[str] | None = None, timeout: float = 10.0) -> None:
        self.wanted = _process.Wanted(None if socket is None else os.fspath(socket), bool(start),
                                      None if daemon is None else os.fspath(daemon),
                                      float(timeout))

    def setup(self, worker: Worker) -> Awaitable[None]:
        """Called by the worker: connects in a thread, so that the worker's loop goes on."""
        _process.enter(self.wanted)
        return asyncio.get_running_loop().run_in_executor(None, _connect, worker.address)

    def teardown(self, worker: Worker) -> None:
        """Called by the worker when it ends or the plugin is taken away.

        Where the plugin is replaced, setup() of the new one follows at once: it closes later.
        """
        _process.leave()
        asyncio.get_running_loop().call_soon(_process.close_if_unused)


def _connect(address: str) -> None:
    try:
        _process.connect()
    except Error as error:
        message = f"worker {address} on {_socket.gethostname()}: {error.message}"
        raise type(error)(message, code=error.code, argument=error.argument,
                          expected=error.expected, found=error.found) from error


def daemons(client: Client) -> dict[str, dict[str, Any]]:
    """Which daemon each worker of a cluster uses.

    Parameters
    ----------
    client : distributed.Client
        Not an asynchronous one.

    Returns
    -------
    dict
        For the address of each worker a dict: host, the machine's name; process, the worker's
        number; pid, the daemon's number on that host, equal for all that share it; engine, its
        first, "cpu" or "cuda:0"; version; socket, as the plugin was told, or None. A worker without
        a daemon has host, process and error, the exception, instead.
    """
    found: dict[str, dict[str, Any]] = client.run(_process.whereabouts)
    return found
