"""The daemon that a process of a Dask cluster has been told to use.

The plugin says which one. What it said holds for every task of the process: also when the daemon
was not there at that time, so that a task never starts a private daemon where that was forbidden.
Several workers may live in one process (LocalCluster(processes=False)); they share its session, and
the last one that leaves closes it, if it was the plugin that opened it.

Nothing here imports dask or distributed.
"""

from __future__ import annotations

import os
import socket as _socket
import threading
from typing import Any, NamedTuple

from .. import _session


class Wanted(NamedTuple):
    """The parameters of gd.connect()."""

    socket: str | None
    start: bool
    daemon: str | None
    timeout: float


_lock = threading.Lock()
_wanted: Wanted | None = None
_n_users = 0


def enter(wanted: Wanted) -> None:
    """A worker of this process wants this daemon. Connects nowhere yet.

    A process that is connected already, and is told no socket, stays where it is.
    """
    global _wanted, _n_users
    with _lock:
        _n_users += 1
        if wanted.socket is not None or _wanted is not None or not is_connected():
            _wanted = wanted


def leave() -> None:
    """The counterpart of enter()."""
    global _n_users
    with _lock:
        _n_users -= 1


def close_if_unused() -> None:
    """Closes the session when no worker of this process is left, and it is the plugin's."""
    global _wanted
    with _lock:
        if _n_users > 0 or _wanted is None:
            return
        _wanted = None
    _session.close()


def is_connected() -> bool:
    """Whether this process has had a daemon, which may have gone since."""
    session = _session._session
    return session is not None and session.is_open


def connect() -> None:
    """Makes sure that this process is connected as wanted. Cheap when it is."""
    wanted = _wanted
    if wanted is not None:
        _session.connect(wanted.socket, start=wanted.start, daemon=wanted.daemon,
                         timeout=wanted.timeout, name="dask")


def whereabouts() -> dict[str, Any]:
    """Which daemon this process uses; see gd.dask.daemons()."""
    found: dict[str, Any] = {"host": _socket.gethostname(), "process": os.getpid()}
    wanted = _wanted
    try:
        connect()
        info = _session.info()
    except Exception as error:
        return {**found, "error": error}
    return {**found, "pid": info["pid"], "engine": info["engines"][0]["name"],
            "version": info["version"], "socket": wanted.socket if wanted is not None else None}
