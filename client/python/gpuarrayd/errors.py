"""What goes wrong, as exceptions.

Every error of the daemon, of the library and of this package is an Error. Three bands say what is
lost, as in proto/gpuarrayd-status.h: a RequestError this request (correct it and try again), a
SessionError the connection (the next call makes it anew), a DaemonError the device or the daemon.
Below them there is one class for each stable word, and where Python or NumPy would raise one of
the builtin exceptions that class is a subclass of it too: `except ValueError` catches shapes that
do not fit together, `except FileNotFoundError` a file that is not there.

Exceptions go between processes: pickled and loaded they are the same with all attributes.
"""

import errno
from collections.abc import Callable
from typing import ClassVar

__all__ = [
    "Error", "RequestError", "SessionError", "DaemonError", "BadArgument", "BadExpression",
    "UnknownName", "BadArity", "BadShape", "BadDtype", "BadExtent", "BadDescriptor", "ReadOnly",
    "UseProvider", "BadRegion", "UnknownRegion", "OverlappingOutput", "TooLargeForPool",
    "TooLargeForInline", "LimitExceeded", "ShortRead", "NoSpace", "IoError", "RegionFault",
    "ProviderFailed", "BadChunkTable", "BadJournal", "NegativePower", "Cancelled", "UnknownJob",
    "UnknownMethod", "BadRequest", "QuotaExceeded", "QueueFull", "Poisoned", "WorkerLost",
    "NoEngine", "NotFound", "BadFormat", "Exists", "Busy", "Permission", "NoMemory", "BadIndex",
    "DatasetChanged", "BadRank", "BadCheckpoint", "SingularMatrix", "BadBlock",
    "QueueTimeout", "DeadlineExceeded", "Unsupported", "Protocol", "VersionMismatch",
    "Disconnected", "Untrusted", "Timeout",
    "OutcomeUnknown", "DeviceFault", "ShuttingDown", "Draining", "NoDaemon", "Internal",
    "PackedWarning",
]

_Arguments = tuple[type["Error"], str, str, str, str, str]


class PackedWarning(UserWarning):
    """A file's variable is packed, or names values that stand for nothing measured, and gd.open()
    was not told whether to mask and scale it."""


class Error(Exception):
    """The base of all errors here.

    Attributes
    ----------
    code : str
        The stable word, for programs: "bad-shape", "too-large-for-pool".
    argument : str
        What it is about: an argument, an output, a file, an option. May be empty.
    expected, found : str
        What was wanted and what was there, short. May be empty.
    message : str
        One sentence for a reader. str() adds to it what it does not say already.
    """

    code: str = "internal"
    argument: str
    expected: str
    found: str
    message: str
    _errno: ClassVar[int] = 0

    def __init__(self, message: str = "", *, code: str | None = None, argument: str = "",
                 expected: str = "", found: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.argument = argument
        self.expected = expected
        self.found = found
        if code is not None:
            self.code = code
        _set_errno(self, self._errno, message)

    def __str__(self) -> str:
        details = [f"{name} {value}"
                   for name, value in (("argument", self.argument), ("expected", self.expected),
                                       ("found", self.found))
                   if value and value not in self.message]
        if not details:
            return self.message or self.code
        return f"{self.message or self.code} ({', '.join(details)})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Callable[..., "Error"], _Arguments, dict[str, object]]:
        return (_remake, (type(self), self.message, self.code, self.argument, self.expected,
                          self.found), self.__dict__)


def _set_errno(error: object, number: int, text: str) -> None:
    if isinstance(error, OSError):
        error.errno = number
        error.strerror = text


def _remake(kind: type[Error], message: str, code: str, argument: str, expected: str,
            found: str) -> Error:
    return kind(message, code=code, argument=argument, expected=expected, found=found)


class RequestError(Error):
    """This request cannot be done; what there was before it is as before. Correct and try again."""


class SessionError(Error):
    """The connection is lost or cannot be used. The next call makes it anew."""


class DaemonError(Error):
    """The device or the daemon cannot serve."""


# This request.


class BadArgument(RequestError, ValueError):
    """An argument of the call is not usable."""

    code = "bad-argument"


class BadExpression(RequestError, ValueError):
    """The expression cannot be compiled; the message shows where."""

    code = "bad-expression"


class UnknownName(RequestError, NameError):
    """The expression uses a name that does not exist; the message suggests one."""

    code = "unknown-name"


class BadArity(RequestError, TypeError):
    """A function has the wrong number of arguments."""

    code = "bad-arity"


class BadShape(RequestError, ValueError):
    """Shapes do not fit together, or no array can have them."""

    code = "bad-shape"


class BadDtype(RequestError, TypeError):
    """The dtype is not served here; the message says what to use instead."""

    code = "bad-dtype"


class BadExtent(RequestError, ValueError):
    """Offset, shape and strides do not describe an array in its file or buffer."""

    code = "bad-extent"


class BadDescriptor(RequestError, OSError):
    """The file is not of a usable kind: a pipe, a device, a folder."""

    code = "bad-descriptor"
    _errno = errno.EBADF


class ReadOnly(RequestError, ValueError):
    """The output cannot be written."""

    code = "read-only"


class UseProvider(RequestError):
    """The daemon does not read this file system; the library serves its files itself."""

    code = "use-provider"


class BadRegion(RequestError, ValueError):
    """The shared memory is not usable."""

    code = "bad-region"


class UnknownRegion(RequestError, LookupError):
    """There is no such shared memory."""

    code = "unknown-region"


class OverlappingOutput(RequestError, ValueError):
    """An output overlaps another argument other than element by element."""

    code = "overlapping-output"


class TooLargeForPool(RequestError, MemoryError):
    """The job cannot fit the daemon's pool."""

    code = "too-large-for-pool"


class TooLargeForInline(RequestError, ValueError):
    """Too many bytes for an array inside a message."""

    code = "too-large-for-inline"


class LimitExceeded(RequestError, ValueError):
    """A fixed limit is exceeded: 64 arguments, 16 outputs, 16 KiB of text."""

    code = "limit-exceeded"


class ShortRead(RequestError, EOFError):
    """A source holds fewer bytes than was said."""

    code = "short-read"


class NoSpace(RequestError, OSError):
    """The file system or the user's share of it is full."""

    code = "no-space"
    _errno = errno.ENOSPC


class IoError(RequestError, OSError):
    """Reading or writing failed."""

    code = "io-error"
    _errno = errno.EIO


class RegionFault(RequestError):
    """The shared memory went away under the job."""

    code = "region-fault"


class ProviderFailed(RequestError):
    """This process could not give or take a block; __cause__ says why where it is known."""

    code = "provider-failed"


class BadChunkTable(RequestError, ValueError):
    """The file's table of chunks does not describe the array."""

    code = "bad-chunk-table"


class BadJournal(RequestError, ValueError):
    """The journal of a product that is added to something belongs to another job, or is damaged."""

    code = "bad-journal"


class NegativePower(RequestError, ValueError):
    """An integer to a negative integer power; NumPy refuses it too."""

    code = "negative-integer-power"


class Cancelled(RequestError):
    """The job was cancelled."""

    code = "cancelled"


class UnknownJob(RequestError, LookupError):
    """There is no such job."""

    code = "unknown-job"


class UnknownMethod(RequestError):
    """The daemon does not know such a request."""

    code = "unknown-method"


class BadRequest(RequestError):
    """The request is not of the described form."""

    code = "bad-request"


class QuotaExceeded(RequestError, MemoryError):
    """The user's account with the daemon is used up."""

    code = "quota-exceeded"


class QueueFull(RequestError):
    """The daemon's queue is full; jobs that end make room."""

    code = "queue-full"


class Poisoned(RequestError):
    """The job stopped the daemon's worker twice and is not tried again."""

    code = "poisoned"


class WorkerLost(RequestError):
    """The daemon's worker ended and the job cannot be run again."""

    code = "worker-lost"


class NoEngine(RequestError, ValueError):
    """The engine that was asked for is not there."""

    code = "no-engine"


class NotFound(RequestError, FileNotFoundError):
    """There is no such file or dataset."""

    code = "not-found"
    _errno = errno.ENOENT


class BadFormat(RequestError, ValueError):
    """The file is not of the format that it claims."""

    code = "bad-format"


class Exists(RequestError, FileExistsError):
    """The output exists already."""

    code = "exists"
    _errno = errno.EEXIST


class Busy(RequestError, BlockingIOError):
    """Somebody else has the file open for writing."""

    code = "busy"
    _errno = errno.EAGAIN


class Permission(RequestError, PermissionError):
    """The system refused access."""

    code = "permission-denied"
    _errno = errno.EACCES


class NoMemory(RequestError, MemoryError):
    """The process or the system has no memory left."""

    code = "no-memory"


class BadIndex(BadArgument, IndexError):
    """An index is outside of its array."""

    code = "bad-index"


class DatasetChanged(RequestError):
    """A file of a dataset is not what it was when it was opened."""

    code = "dataset-changed"


class BadRank(BadArgument):
    """The data has no decomposition of that rank."""

    code = "bad-rank"


class BadCheckpoint(RequestError):
    """A checkpoint is of other data or settings, or none at all."""

    code = "bad-checkpoint"


class SingularMatrix(RequestError, ValueError):
    """A matrix that is to be inverted is singular, or not positive definite where it must be."""

    code = "singular-matrix"


class BadBlock(RequestError, ValueError):
    """A block that a function of map_blocks() gave has another shape or dtype than was said."""

    code = "bad-block"


class QueueTimeout(RequestError, TimeoutError):
    """The job had not begun in the time that it may wait."""

    code = "queue-timeout"
    _errno = errno.ETIMEDOUT


class DeadlineExceeded(RequestError, TimeoutError):
    """The job had not ended by its deadline."""

    code = "deadline-exceeded"
    _errno = errno.ETIMEDOUT


class Unsupported(RequestError, TypeError):
    """The package is asked for what the daemon does not compute; the message names it. Nothing is
    computed by NumPy instead: write np.asarray(x) where that is meant."""

    code = "unsupported"


# This session.


class Protocol(SessionError, ConnectionError):
    """The peer does not speak the protocol."""

    code = "protocol-error"
    _errno = errno.EPROTO


class VersionMismatch(SessionError, ConnectionError):
    """The daemon speaks another version of the protocol."""

    code = "version-mismatch"
    _errno = errno.EPROTO


class Disconnected(SessionError, ConnectionError):
    """The connection was lost, and what was asked for may or may not be done."""

    code = "disconnected"
    _errno = errno.ECONNRESET


class Untrusted(SessionError, PermissionError):
    """The server is neither root nor the service's user nor the caller."""

    code = "untrusted-server"
    _errno = errno.EPERM


class Timeout(SessionError, TimeoutError):
    """The time is over."""

    code = "timeout"
    _errno = errno.ETIMEDOUT


class OutcomeUnknown(SessionError):
    """The connection was lost and the job cannot be sent again without risk."""

    code = "outcome-unknown"


# The device and the daemon.


class DeviceFault(DaemonError):
    """The device reported a fault."""

    code = "device-fault"


class ShuttingDown(DaemonError):
    """The daemon is leaving and takes nothing new."""

    code = "shutting-down"


class Draining(DaemonError):
    """The daemon takes no new jobs for now; the message says why."""

    code = "draining"


class NoDaemon(DaemonError, ConnectionError):
    """No daemon could be reached or started."""

    code = "no-daemon"
    _errno = errno.ECONNREFUSED


class Internal(DaemonError):
    """A fault of gpuarrayd itself; the daemon's log says more."""

    code = "internal"


# In the order of the table of statuses; by it an unknown word of a newer library finds its band.
_REQUEST: tuple[type[RequestError], ...] = (
    BadArgument, BadExpression, UnknownName, BadArity, BadShape, BadDtype, BadExtent, BadDescriptor,
    ReadOnly, UseProvider, BadRegion, UnknownRegion, OverlappingOutput, TooLargeForPool,
    TooLargeForInline, LimitExceeded, ShortRead, NoSpace, IoError, RegionFault, ProviderFailed,
    BadChunkTable, BadJournal, NegativePower, Cancelled, UnknownJob, UnknownMethod, BadRequest,
    QuotaExceeded, QueueFull, Poisoned, WorkerLost, NoEngine, NotFound, BadFormat, Exists, Busy,
    Permission, NoMemory, BadIndex,
    DatasetChanged, BadRank, BadCheckpoint, SingularMatrix, BadBlock, QueueTimeout,
    DeadlineExceeded)
_SESSION: tuple[type[SessionError], ...] = (
    Protocol, VersionMismatch, Disconnected, Untrusted, Timeout, OutcomeUnknown)
_DAEMON: tuple[type[DaemonError], ...] = (
    DeviceFault, ShuttingDown, Draining, NoDaemon, Internal)
_ALL: tuple[type[Error], ...] = (*_REQUEST, *_SESSION, *_DAEMON, Unsupported)
_BY_CODE = {kind.code: kind for kind in _ALL}


def _band(status: int) -> type[Error]:
    """Of a word that is not known here. New words come last in their group."""
    if status <= len(_REQUEST) + 1:
        return RequestError
    return SessionError if status <= len(_REQUEST) + len(_SESSION) + 1 else DaemonError


def from_status(status: int, word: str, message: str, argument: str = "", expected: str = "",
                found: str = "") -> Error:
    """Makes the exception of an outcome, for the caller to raise.

    Parameters
    ----------
    status : int
        Its number in the table; used only for a word that is not known here.
    word : str
        The stable word; becomes the attribute `code`.
    message, argument, expected, found : str
        As the attributes of Error.

    Returns
    -------
    Error
        Of the word's class; of its band's class for a word that is not known here.
    """
    kind = _BY_CODE.get(word) or _band(status)
    return kind(message, code=word, argument=argument, expected=expected, found=found)
