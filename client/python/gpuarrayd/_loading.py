"""Modules that are loaded when they are first needed, and fork() meanwhile.

A child of fork() has the thread that forked and no other. A module that another thread was loading
stays half loaded in it, and whoever imports that module waits for ever for a thread that is not
there. What takes long to load is therefore loaded within loading(), and fork() waits for its end.

It waits for a moment only: a fork holds other locks, which the module that is being loaded may be
waiting for. The one that many wait for is logging's. What is called before a fork is called in the
reverse order of its registration; so logging is loaded before anything else is, and fork() is told
of this lock once more, which is then taken before that of logging.
"""

import os
import threading
from contextlib import AbstractContextManager

_PATIENCE = 5.0  # seconds that fork() waits

_lock = threading.RLock()
_is_before_logging = False


def loading() -> AbstractContextManager[object]:
    """A context in which modules are loaded: `with loading(): from .future import start`."""
    if not _is_before_logging:
        _come_before_logging()
    return _lock


def _come_before_logging() -> None:
    global _is_before_logging
    with _lock:
        if not _is_before_logging:
            import logging  # noqa: F401
            _register()
            _is_before_logging = True


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


def _register() -> None:
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)


_register()
