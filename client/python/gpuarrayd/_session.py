"""The connection of this process to its daemon.

One session serves the whole process, all of its threads included: it is made by the first call that
needs it, or by connect() with settings of one's own, and ends with close() or with the process.
current() is on the way of every computation, so it is a load and a comparison once there is one.

A child after fork() must not use its parent's connection. The child gives it up before any other
Python code runs in it, and its first call makes its own.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import Any

from . import _core
from .errors import NoDaemon

_Settings = tuple[str | None, bool, str | None, float, str | None]

_DEFAULTS: _Settings = (None, True, None, 10.0, None)

_lock = threading.RLock()  # a signal's handler may come while it is held
_session: _core.Session | None = None
_settings: _Settings = _DEFAULTS
_kept: list[dict[Any, Any]] = []


def kept_for_session() -> dict[Any, Any]:
    """A new dict for what a daemon has said; emptied when the session ends."""
    _kept.append({})
    return _kept[-1]


_ops: dict[str, list[dict[str, Any]]] = kept_for_session()


def _forget_kept() -> None:
    for kept in _kept:
        kept.clear()


def current() -> _core.Session:
    """The session of this process; connects first where there is none."""
    session = _session
    return session if session is not None else _open(None)


def _open(wanted: _Settings | None) -> _core.Session:
    """The session with these settings; None: whatever is there, or with the settings last used."""
    global _session, _settings
    if sys.is_finalizing():  # the lock may be held by a thread that is no more
        raise NoDaemon("the interpreter ends")
    with _lock:
        if _session is not None and wanted in (None, _settings):
            return _session
        settings = wanted or _settings
        socket, start, daemon, timeout, name = settings
        made = _core.Session(socket, name, start, daemon, timeout)
        old, _session, _settings = _session, made, settings
        _forget_kept()
    if old is not None:
        old.close()
    return made


def connect(socket: str | os.PathLike[str] | None = None, *, start: bool = True,
            daemon: str | os.PathLike[str] | None = None, timeout: float = 10.0,
            name: str | None = None) -> None:
    """Connects this process to a daemon. Needed only for other settings than the usual ones.

    A session with the same settings is kept. One with others is closed, as with close().

    Parameters
    ----------
    socket : path, optional
        Of the daemon. None: $GPUARRAYD_SOCKET, else the machine's service, else a private daemon.
    start : bool
        Whether a private daemon may be started where none listens.
    daemon : path, optional
        Of the program gpuarrayd for a private daemon. None: $GPUARRAYD_DAEMON, else the installed
        one.
    timeout : float
        Seconds to connect, and for answers to plain questions.
    name : str, optional
        Shown to whoever administers the machine; at most 63 characters are. None: the program's.

    Raises
    ------
    NoDaemon
        None listens, and none could be started.
    Permission, Untrusted, VersionMismatch, Timeout
        One listens, and cannot be used.
    """
    _open((None if socket is None else os.fspath(socket), bool(start),
           None if daemon is None else os.fspath(daemon), float(timeout), name))


def another() -> _core.Session:
    """A session of its own, with the settings last used. Whoever asks for it closes it."""
    current()  # which starts the daemon where there is none
    with _lock:
        socket, start, daemon, timeout, name = _settings
    return _core.Session(socket, name, start, daemon, timeout)


def close() -> None:
    """Cancels what still runs and leaves the daemon. The next call connects anew.

    Arrays in shared memory keep their elements as long as they are used; to a new session they are
    ordinary memory. Without a session nothing happens.
    """
    global _session
    if sys.is_finalizing():
        return
    with _lock:
        old, _session = _session, None
        _forget_kept()
    if old is not None:
        old.close()


def info() -> dict[str, Any]:
    """What the daemon says of itself, and this side's versions.

    Returns
    -------
    dict
        version, pid, uptime_s, pool, engines, counts: the daemon's. client: a dict of this side's
        versions by name: gpuarrayd, protocol, numpy, python, HDF5 and others that the library
        uses.

    Raises
    ------
    NoDaemon, Disconnected, Timeout
        There is no answer.
    """
    import json
    import platform

    import numpy

    answer: dict[str, Any] = json.loads(current().info_json())
    library = dict(part.rsplit(" ", 1) for part in _core.versions().split(", "))
    answer["client"] = {**library, "numpy": numpy.__version__, "python": platform.python_version()}
    return answer


def stats() -> dict[str, Any]:
    """What the daemon has done since it started and what it does, all users and jobs included.

    Returns
    -------
    dict
        jobs, bytes, seconds, pool, sessions, regions, refusals, log, engines, users, active.

    Raises
    ------
    NoDaemon, Disconnected, Timeout
        There is no answer.
    """
    import json
    answer: dict[str, Any] = json.loads(current().stats_json())
    return answer


def ops() -> list[dict[str, Any]]:
    """What can be written in an expression.

    Returns
    -------
    list of dict
        One for each operation, with name, symbol, alias, args, arguments, results,
        keywords, dtypes, doc.
        Asked once per session; the caller must not change it.

    Raises
    ------
    NoDaemon, Disconnected, Timeout
        There is no answer.
    """
    session = current()
    known = _ops.get("ops")
    if known is None:
        import json
        known = _ops["ops"] = json.loads(session.ops_json())
    return known


def forget() -> None:
    """For a child after fork(): gives the parent's session up without a word to the daemon."""
    global _session, _lock
    _lock = threading.RLock()  # another thread of the parent may have held it
    old, _session = _session, None
    _forget_kept()
    if old is not None:
        old.forget()


def _end() -> None:
    """The interpreter ends: does not wait for ever for functions of from_blocks() that run."""
    _core._close_all()
    close()


os.register_at_fork(after_in_child=forget)
atexit.register(_end)
