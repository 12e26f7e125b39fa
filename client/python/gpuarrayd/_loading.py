"""Modules that are loaded when they are first needed, and fork() meanwhile.

A child of fork() has the thread that forked and no other. A module that another thread was loading
stays half loaded in it, and whoever imports that module waits for ever for a thread that is not
there. What takes long to load is therefore loaded within loading(), and fork() waits for its end.

It waits for a moment only: a fork holds other locks, as that of logging, which the module that is
being loaded may be waiting for.
"""

import os
import threading
from contextlib import AbstractContextManager

_PATIENCE = 5.0  # seconds that fork() waits

_lock = threading.RLock()


def loading() -> AbstractContextManager[object]:
    """A context in which modules are loaded: `with loading(): from .future import start`."""
    return _lock


def _before() -> None:
    _lock.acquire(timeout=_PATIENCE)


def _in_parent() -> None:
    try:
        _lock.release()
    except RuntimeError:
        pass  # not held: it went on without


def _in_child() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
