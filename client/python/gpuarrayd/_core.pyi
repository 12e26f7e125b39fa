"""The extension: libgpuarrayd for Python. Nothing here knows NumPy; arrays are buffers, dtypes are
NumPy's array-interface strings ("<f8"). Failures raise what errors.from_status() returns.

Everything may be called from any thread. No function holds the interpreter's lock while it waits.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, final

Scalar: TypeAlias = bool | int | float
# chunks (False: in one piece), shards of each level, compression, shuffle, fletcher32, sync
Storage: TypeAlias = tuple[tuple[int, ...] | bool | None, tuple[tuple[int, ...], ...] | None,
                           str | None, bool, bool, bool]
Destination: TypeAlias = "Array | str | tuple[str, Storage] | None"
Beyond: TypeAlias = tuple[int, Scalar] | None
MakeBlock: TypeAlias = Callable[[tuple[memoryview, ...], memoryview, tuple[int, ...]], None]
MoveBlock: TypeAlias = Callable[[tuple[int, ...], tuple[int, ...], memoryview], None]

def set_times(queue_timeout_ms: int, deadline_ms: int, /) -> tuple[int, int]:
    """Of jobs that this thread begins from now on; 0: none. Returns those of before."""
    ...
def versions() -> str:
    """gad_versions()"""
    ...

def contents(spec: str | PathLike[str], /) -> list[tuple[
        Literal["array", "group", "other"], str, str | None, bool, tuple[int, ...] | None,
        tuple[int | None, ...] | None, tuple[int, ...] | None, tuple[str | None, ...] | None,
        str | None, dict[str, Any]]]:
    """gad_list(): of each entry its kind, name, type, whether it is served, shape, maxshape,
    chunks, names of axes, filters, attributes; of attributes a text, a tuple of texts, None, or
    (dtype or None, tuple of numbers)."""
    ...

def picture(is_svg: bool, is_line: bool, is_even: bool, cells: tuple[int, int],
            sizes: tuple[int, int, int, int], numbers: bytes, colours: int,
            texts: tuple[str | None, str | None, str | None, str | None, str | None],
            /) -> bytes:
    """gad_picture_png() or gad_picture_svg(). cells: rows, columns. sizes: height, width, row_step,
    column_step. numbers: float64, of a line means, lows and highs. texts: title, subtitle, row
    name, column name, units."""
    ...

def _close_all() -> None:
    """For the interpreter's end: closes every session. Gives those up whose functions of
    from_blocks() still run after some seconds."""
    ...

@final
class Session:
    """One connection to a daemon. It connects again by itself when it was lost."""

    def __init__(self, socket: str | None, client_name: str | None, start: bool,
                 daemon: str | None, timeout: float) -> None:
        """timeout: seconds to connect, and for answers to plain questions."""
        ...
    def close(self) -> None:
        """Cancels what still runs and leaves the daemon, which sees the connection end at once.
        Memory of arrays stays until their last view has gone. Using the session afterwards raises
        no-daemon; jobs that had ended still answer, others have ended as cancelled."""
        ...
    def forget(self) -> None:
        """For a child after fork(): the parent's connection is given up without a word; arrays keep
        their memory, which is the parent's."""
        ...
    @property
    def is_open(self) -> bool: ...
    @property
    def pid(self) -> int:
        """The process that made it."""
        ...
    def ping(self) -> None: ...
    def info_json(self) -> str: ...
    def stats_json(self) -> str: ...
    def ops_json(self) -> str: ...

    # Arrays. typestr None: as the buffer says. strides None: C order. In bytes.
    def new(self, typestr: str, shape: Sequence[int], zeroed: bool, /) -> Array:
        """In shared memory, C order."""
        ...
    def open(self, spec: str, in_place: bool, mask_and_scale: bool | None = None, /) -> Array:
        """mask_and_scale: as the attributes of the source mean it, as it is stored, or None."""
        ...
    def open_many(self, specs: Sequence[str], axis: int, is_new_axis: bool,
                  mask_and_scale: bool | None = None, /) -> Array:
        """Several as one array, for reading. A spec with wildcards is the files that match."""
        ...
    def create(self, spec: str, typestr: str, shape: Sequence[int], fortran_order: bool,
               replace: bool, storage: Storage | None = None, /) -> Array: ...
    def from_buffer(self, buffer: object, writable: bool, /) -> Array:
        """What lies in shared memory of this session travels as such, other memory through a ring.
        Any strides. Holds the buffer. bad-dtype for formats that are not computed, bad-shape for
        more than 32 dimensions, read-only when `writable` and it is not."""
        ...
    def from_file(self, fd: int, offset: int, typestr: str, shape: Sequence[int],
                  strides: Sequence[int] | None, writable: bool, /) -> Array:
        """fd: the caller's, duplicated."""
        ...
    def from_blocks(self, typestr: str, shape: Sequence[int],
                    read: MoveBlock | None, write: MoveBlock | None, /) -> Array:
        """read(start, count, block) fills the bytes of a block (C order, writable memoryview of
        bytes, valid during the call); write stores them. Called in a thread of the library, one
        call at a time. An exception fails the job with provider-failed and becomes its __cause__;
        so does a view of the block that is kept after the call."""
        ...

    def from_function(self, typestr: str, shape: Sequence[int], block: Sequence[int] | None,
                      inputs: tuple[tuple[Array, Sequence[int], Sequence[int]], ...], mode: int,
                      threads: int, function: MakeBlock, in_order: bool, /) -> Array:
        """function(inputs, output, start) fills the output, a writable memoryview with dtype and
        shape, of memoryviews of the inputs' blocks; in threads of the library. inputs: arrays, the
        depth of the halo along each axis, the output's axis that cuts each axis (-1: none). An
        exception fails the job, as of from_blocks(); one whose code is bad-block with that."""
        ...

    def stream(self, typestr: str, shape: Sequence[int], is_output: bool,
               begin: Callable[[Array], None] | None, /) -> Array:
        """An array whose elements are pushed (a source) or taken (an output) once, in C order, by
        one job. begin(array) is called when that is about to be sent, in its thread. Whoever pushes
        ends with end() or fail()."""
        ...

    def view(self, array: Array, start: Sequence[int], axes: Sequence[tuple[int, int, int]],
             /) -> Array:
        """The elements of an array in another order. start: along each of its axes. axes: for each
        axis of the view (axis of the array, count, step); -1: none, the same again and again."""
        ...

    def reshape(self, array: Array, shape: Sequence[int], /) -> Array:
        """The elements of an array in C order by other sizes; bad-shape where they do not lie so.
        """
        ...

    def take(self, array: Array, indices: Array, axis: int, n_axes: int, mode: int, /) -> Array:
        """The elements of an array by their indices along n_axes axes from `axis` on, which are
        one. mode: 0 raise, 1 wrap, 2 clip. bad-index when a job meets one that is outside."""
        ...

    def new_marks(self, shape: Sequence[int], /) -> Array:
        """An output of bool that remembers where it is true."""
        ...

    def positions(self, marks: Array, /) -> Array:
        """Where marks are true, after the job that has written them: as numpy.flatnonzero()."""
        ...

    def loader(self, parts: Sequence[tuple[str, Array]],
               transforms: Sequence[tuple[str, str, None]],
               args: Sequence[tuple[str, Array | Scalar]],
               options: tuple[int, int, int, bool, int, int, int, int, str | None, int,
                              str | None, bool, str | None], /) -> Loader:
        """Batches of the rows of arrays. parts: (name, array). transforms: (expression, part,
        None). options: batch_size, shuffle (0: not, 1: exactly, 2: blocks), seed, drop_last, rank,
        world, prefetch, memory, scratch, scratch_bytes, plan, whether errors are skipped,
        engine of transforms."""
        ...

    # Decompositions. The first output's expression is the data. Small arrays come as (shape,
    # bytes of float64) and go as buffers of float64: (is Tucker, core, factor, ...).
    def decompose(self, outputs: Sequence[tuple[str, str | None, Destination]],
                  args: Sequence[tuple[str, Array | Scalar]], engine: str | None, priority: int,
                  label: str | None, kind: tuple[int],
                  options: tuple[int, bool, int, int, int, float, str | None],
                  callback: Callable[..., object] | None, explains: bool, /) -> Any:
        """gad_svd() (kind 0), gad_pca() (1), gad_eigh() (2): a dict; gad_qr_r() (3), gad_cov() (4):
        an array; or a plan. The first output's destination is that of U or scores. options: k,
        values_only, n_iterations, n_oversamples, seed, tolerance, checkpoint."""
        ...
    def lstsq(self, outputs: Sequence[tuple[str, str | None, Destination]],
              args: Sequence[tuple[str, Array | Scalar]], engine: str | None, priority: int,
              label: str | None, options: tuple[float, Sequence[float]], explains: bool,
              /) -> Any:
        """gad_lstsq() of the first two outputs: x, residuals, rank, s. options: rcond, ridges."""
        ...
    def cp(self, outputs: Sequence[tuple[str, str | None, Destination]],
           args: Sequence[tuple[str, Array | Scalar]], engine: str | None, priority: int,
           label: str | None,
           options: tuple[int, bool, float, int, int, int, float, str | None],
           callback: Callable[..., object] | None, explains: bool, /) -> Any:
        """gad_cp(): core, factors, a dict; or gad_cp_explain(): a dict. options: rank, nonnegative,
        ridge, init (0: random, 1: svd), seed, iterations, tolerance, checkpoint."""
        ...
    def tucker(self, outputs: Sequence[tuple[str, str | None, Destination]],
               args: Sequence[tuple[str, Array | Scalar]], engine: str | None, priority: int,
               label: str | None, options: tuple[tuple[int, ...], float, int, int, str | None],
               callback: Callable[..., object] | None, explains: bool, /) -> Any:
        """gad_tucker(). options: ranks, tolerance, seed, reads, checkpoint."""
        ...
    def mttkrp(self, outputs: Sequence[tuple[str, str | None, Destination]],
               args: Sequence[tuple[str, Array | Scalar]], engine: str | None, priority: int,
               label: str | None, factors: tuple[Any, ...], mode: int,
               /) -> tuple[tuple[int, ...], bytearray]:
        """gad_mttkrp()"""
        ...
    def relative_error(self, outputs: Sequence[tuple[str, str | None, Destination]],
                       args: Sequence[tuple[str, Array | Scalar]], engine: str | None,
                       priority: int, label: str | None, factors: tuple[Any, ...], /) -> float:
        """gad_relative_error()"""
        ...
    def reconstruct(self, outputs: Sequence[tuple[str, str | None, Destination]],
                    args: Sequence[tuple[str, Array | Scalar]], engine: str | None, priority: int,
                    label: str | None, factors: tuple[Any, ...], is_float32: bool, /) -> None:
        """gad_reconstruct() into the first output's destination."""
        ...

    def factor(self, kind: int, a: Array, b: Array | None, to: Array | str | None,
               options: tuple[object, ...],
               callback: Callable[..., object] | None, /) -> tuple[
                   float, float, int, int, int, int, int, float]:
        """gad_cholesky() and its like, by enum gad_solve_kind. options: memory, scratch,
        checkpoint, is_upper, is_positive, engine, priority, label. callback as of cp(), after each
        panel. Gives sign and log_abs of the determinant, width, n_continued, n_jobs, read_bytes,
        write_bytes, seconds.
        """
        ...

    def factor_plan(self, kind: int, a: Array, b: Array | None, to: Array | str | None,
                    options: tuple[object, ...], /) -> tuple[
                        str, int, int, int, int, int, float]:
        """method, steps, jobs, bytes read, written and of the carry, seconds"""
        ...

    # Jobs. outputs: (expression, name or None, destination). args: (name, value).
    def repeat(self, outputs: Sequence[tuple[str, str | None, Destination]],
               args: Sequence[tuple[str, Array | Scalar]], engine: str | None, priority: int,
               label: str | None, steps: tuple[int, int], beyond: Beyond,
               /) -> tuple[int, int, int]:
        """gad_repeat() of so many steps, so many at once (0: as the library chooses): steps that
        were done before, jobs, steps at once."""
        ...
    def submit(self, outputs: Sequence[tuple[str, str | None, Destination]],
               args: Sequence[tuple[str, Array | Scalar]], engine: str | None, priority: int,
               label: str | None, progress: bool, journal: str | bool = False,
               tf32: bool = False, beyond: Beyond = None, /) -> Job:
        """A destination that is a str is created (to_path), or with its storage: (path, storage).
        journal: True where the library puts it, or its path. tf32: whether float32 may be
        multiplied with TF32. beyond: of near() and windows that name no mode: an enum gad_pad_mode
        and the value of GAD_PAD_CONSTANT. ints beyond int64 and uint64 raise OverflowError.
        The job keeps its arrays until it dies; one that dies before its end is cancelled."""
        ...
    def run(self, outputs: Sequence[tuple[str, str | None, Destination]],
            args: Sequence[tuple[str, Array | Scalar]], engine: str | None, priority: int,
            label: str | None, journal: str | bool = False, tf32: bool = False,
            beyond: Beyond = None, /) -> Job:
        """submit() and wait(None) in one; the job is done. A signal's exception cancels the job
        first and waits for its end, at most 10 seconds."""
        ...
    def plan(self, outputs: Sequence[tuple[str, str | None, Destination]],
             args: Sequence[tuple[str, Array | Scalar]], engine: str | None,
             beyond: Beyond = None, /) -> Plan: ...
    def wait_any(self, jobs: Sequence[Job], timeout: float | None, /) -> list[Job]:
        """Those that have ended; empty when the time is over or wake() was called."""
        ...
    def wake(self) -> None:
        """Makes every wait_any() in other threads return; if there is none, the next one."""
        ...

@final
class Plan:
    @property
    def outputs(self) -> list[tuple[str, tuple[int, ...], bool]]:
        """(typestr, shape, fortran_order) of each"""
        ...
    @property
    def engine(self) -> str: ...
    @property
    def engine_why(self) -> str: ...
    @property
    def engines(self) -> list[dict[str, str | float | bool]]:
        """Of each engine: engine, chosen, why_not, and where it could compute the job seconds,
        behind_seconds and bound"""
        ...
    @property
    def text(self) -> str: ...
    @property
    def n_tiles(self) -> int: ...
    @property
    def read_bytes(self) -> int: ...
    @property
    def write_bytes(self) -> int: ...
    @property
    def seconds(self) -> float: ...

@final
class Array:
    """A source or destination. Those with memory (new, from_buffer) export it as a buffer with
    dtype, shape and strides; the memory stays while a view of it is there."""

    @property
    def typestr(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...] | None:
        """None: chunked, or read by the library"""
        ...
    @property
    def fill(self) -> int | float | None: ...
    @property
    def packing(self) -> str:
        """Names of the attributes by which what is stored is not what is meant"""
        ...
    @property
    def is_packing_unsaid(self) -> bool:
        """There are some, and open() was not told what to do."""
        ...
    @property
    def units(self) -> str | None: ...
    @property
    def long_name(self) -> str | None: ...
    @property
    def dimensions(self) -> tuple[str | None, ...] | None: ...
    @property
    def format(self) -> str: ...
    @property
    def path(self) -> str | None: ...
    @property
    def n_files(self) -> int:
        """That are this one array; 0: it is none of many files"""
        ...
    @property
    def access(self) -> str: ...
    @property
    def session(self) -> Session: ...
    # Of streams; in any thread. Errors are those of the job, where it has ended.
    def begun(self) -> None:
        """Waits until the job has begun."""
        ...
    def push(self, buffer: object, job: Job = ..., /) -> int:
        """Gives the elements that come next; waits until they were taken over. job: the stream's,
        where nobody waits for it meanwhile. bad-shape: there are more than the array has."""
        ...
    def end(self) -> None:
        """All were pushed. short-read: there are fewer than the array has."""
        ...
    def take(self, buffer: object, job: Job = ..., /) -> int:
        """Fills the buffer with the elements that come next; fewer only at the array's end. job: as
        of push()."""
        ...
    def fail(self, why: str, exception: BaseException | None, /) -> None:
        """Makes the job fail with provider-failed."""
        ...
    def carry(self, sources: tuple[Array, ...], places: tuple[Array, ...], /) -> None:
        """Says what create() made is put together of, views of it: names of axes, coordinates and
        attributes come from there."""
        ...
    def commit(self) -> None:
        """Puts what create() made in its place."""
        ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Part:
    """A part of a batch. Its slot is used again when no part of the batch is left."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Loader:
    """Batches, made ahead by the library. Any threads may take them."""

    def next(self, waits: bool, /
             ) -> tuple[int, bytes, tuple[Part, ...]] | Literal[False] | None:
        """(number, its rows as int64, parts). None: the epoch is over. False: none is ready, of
        those who do not wait."""
        ...
    def batch(self, k: int, /) -> tuple[int, bytes, tuple[Part, ...]]:
        """Batch k of the epoch by itself."""
        ...
    def set_epoch(self, epoch: int, /) -> None:
        """To its beginning."""
        ...
    def state(self) -> str:
        """Behind the last batch that next() gave: JSON."""
        ...
    def load_state(self, state: str, /) -> None: ...
    def explain(self) -> str: ...
    @property
    def length(self) -> int:
        """Batches of an epoch"""
        ...
    @property
    def skipped(self) -> int:
        """Batches that were left out"""
        ...

@final
class Job:
    def wait(self, timeout: float | None, /) -> bool:
        """False: the time is over. Raises the job's error, each time. Signals' exceptions come
        through; the job goes on, and is_done says which of the two it was."""
        ...
    @property
    def is_done(self) -> bool:
        """Without asking; moves when somebody waits."""
        ...
    def cancel(self) -> None: ...
    @property
    def id(self) -> int:
        """The daemon's number; 0 while it is not known (of a very small job: before its end)"""
        ...
    @property
    def session(self) -> Session: ...
    @property
    def progress(self) -> tuple[int, int, int, int, int]:
        """tiles done, tiles, bytes read, written, in all (0: not known yet)"""
        ...
    @property
    def stats(self) -> dict[str, int | float | str] | None:
        """The members of struct gad_job_stats; None before the end and of a job that failed"""
        ...
    def result(self, i: int, /) -> tuple[str, tuple[int, ...], bytes] | None:
        """Of output i, when it had no destination: typestr, shape, elements in C order"""
        ...
