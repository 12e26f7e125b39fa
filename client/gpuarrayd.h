/** gpuarrayd: array jobs on this machine's GPU or CPU, in memory that the daemon took once.
 *
 * A client connects to the daemon (the machine's service, or a private one that the library starts
 * and that leaves when idle), names arrays (files, shared memory, ordinary memory), and asks for
 * expressions over them, with NumPy's names and NumPy's results. Arrays may be larger than any
 * memory.
 *
 *     struct gad_client *client;
 *     struct gad_array *x, *r;
 *     struct gad_error error;
 *     if (gad_connect(NULL, &client, &error) ||
 *         gad_array_open(client, "x.npy", &x, &error)) ...
 *     struct gad_argument args[] = {{.name = "x", .array = x}};
 *     struct gad_output outputs[] = {{.expr = "sqrt(x)", .to_path = "r.npy"}};
 *     struct gad_job_options job = {.n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
 *     if (gad_run(client, &job, NULL, &error)) ...
 *
 * Statuses. Every function that can fail returns an enum gad_status: GAD_OK (0) or why not; `error`
 * may be NULL, and is filled on failure only. On failure no `ret_` parameter is set and nothing has
 * changed, unless said otherwise. Any of them may return
 *
 *     GAD_BAD_ARGUMENT  a pointer that must not be NULL is, or a value is out of its range
 *     GAD_NO_MEMORY     the process has no memory left
 *     GAD_IO_ERROR      the system refused something else; the message has its words
 *
 * and those that talk to the daemon ("connection statuses" below) also
 *
 *     GAD_DISCONNECTED  the connection was lost on the way. The next call, or gad_job_wait(), makes
 *                       it anew; what was asked for may or may not have been done
 *     GAD_NO_DAEMON GAD_TIMEOUT GAD_PERMISSION GAD_UNTRUSTED GAD_VERSION
 *                       it could not be made (again): see gad_connect(). GAD_TIMEOUT also: the
 *                       daemon is there and does not answer. A plain question (ping, info, ops,
 *                       stats, jobs by number) waits for the timeout_ms of gad_connect(), a plan
 *                       or new shared memory, as a job may need them when it is begun, a minute
 *     GAD_PROTOCOL      the daemon's answer is not of the protocol; the connection is closed
 *     GAD_SHUTTING_DOWN the daemon is leaving and takes nothing new
 *     GAD_INTERNAL      a fault of gpuarrayd; the daemon's log says more
 *
 * Strings and structures given to a function are the caller's, and needed until it returns.
 *
 * Threads. A client and everything made from it belongs to one thread at a time. Different clients
 * are independent. Functions without a client may be called from any thread. The library starts
 * threads of its own only for clients that provide or drain blocks (arrays in ordinary memory,
 * files that only the client can read), and for a while to open many files; of the caller's they
 * call those of struct gad_blocks and gad_function, nothing else. Signals are blocked in them.
 * Streams may be pushed and taken in a thread of their own, see struct gad_stream_options.
 *
 * fork. A child must not use its parent's client: it gives it up (gad_forget()) and connects anew.
 */
#pragma once

#include "gpuarrayd-status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GAD_MAX_NDIM 32

/** Element types, by NumPy's names. */
enum gad_dtype {
    GAD_BOOL,
    GAD_INT8,
    GAD_INT16,
    GAD_INT32,
    GAD_INT64,
    GAD_UINT8,
    GAD_UINT16,
    GAD_UINT32,
    GAD_UINT64,
    GAD_FLOAT32,
    GAD_FLOAT64
};

struct gad_client;
struct gad_array;
struct gad_job;

/* ---- Texts -------------------------------------------------------------------------------- */

/** The stable word of a status: "too-large-for-pool".
 * status: any number; 0 is "ok", one that is no status is "internal". Static text, never NULL. */
const char *gad_status_word(int status);

/** One sentence about a status, without the particulars that a gad_error has.
 * status: any number. Static text, never NULL. */
const char *gad_status_text(int status);

/** NumPy's name of a dtype: "float32".
 * dtype: any number; "unknown" when it is none. Static text, never NULL. */
const char *gad_dtype_name(enum gad_dtype dtype);

/** Bytes of one element: 1, 2, 4 or 8.
 * dtype: any number; 0 when it is none. */
size_t gad_dtype_size(enum gad_dtype dtype);

/** The library's version: "0.1.0". Static text. */
const char *gad_version(void);

/** Versions of the library and of what it uses, as text: "gpuarrayd 0.1.0, protocol 1, HDF5
 * 1.10.8, msgpack 4.0.0, json-c 0.16". New parts are appended. Static; any thread. */
const char *gad_versions(void);

/* ---- Connection --------------------------------------------------------------------------- */

struct gad_connect_options {
    const char *socket; /**< path, or NULL: $GPUARRAYD_SOCKET, else the service, else private */
    const char *client_name; /**< shown to whoever administers the machine; at most 63 characters
                                  are; NULL: the program's */
    bool no_private_daemon;  /**< fail with GAD_NO_DAEMON rather than start one */
    const char *daemon_path; /**< of gpuarrayd for a private one; NULL: $GPUARRAYD_DAEMON, else the
                                  installed one */
    int timeout_ms;          /**< milliseconds for the connection to be ready, and for answers to
                                  plain questions; 0: 10 seconds */
    int restart_ms; /**< milliseconds for which a daemon is waited for that restarts: the client was
                       connected to it, or its socket is there and refuses. Counted from the first
                       call that misses it; later ones fail at once until it is back. Not for a
                       private daemon, which the library starts. 0: 3 seconds; -1: not at all */
};

/** Connects to the daemon, and starts a private one where that is allowed and none is there.
 * options: where to and how long; NULL: the defaults of every member. Copied.
 * ret_client: the caller's, ended by gad_close().
 * GAD_NO_DAEMON: none listens and none could be started. GAD_PERMISSION: the socket may not be
 * used; it is for its owner and its group. GAD_UNTRUSTED: the server is neither root nor the
 * service's user nor the caller, or the private directory is open to others; nothing was sent.
 * GAD_VERSION: it speaks another version of the protocol. GAD_TIMEOUT: not ready in time; a daemon
 * that was started goes on starting. GAD_QUOTA_EXCEEDED: the user has too many connections. */
enum gad_status gad_connect(const struct gad_connect_options *options,
                            struct gad_client **ret_client, struct gad_error *error);

/** Closes the connection, cancels what still runs, frees the client. A private daemon leaves by
 * itself when it has been idle for a while.
 * client: arrays made from it must have been released and jobs freed before; NULL is allowed. */
void gad_close(struct gad_client *client);

/** In a child after fork(): gives up the parent's client. The child's copies of the client's
 * descriptors (not those of arrays in files) are closed, so that the parent's end is noticed; the
 * daemon is told nothing, and no memory is freed: arrays in shared memory stay as they are, the
 * parent's, until the child ends. Calls nothing that takes a lock.
 * client: the parent's; nothing else may be done with it, nor with its arrays and jobs; NULL is
 * allowed. */
void gad_forget(struct gad_client *client);

/** The descriptor to poll for reading, and for writing when gad_wants_write() says so. It stays
 * the library's.
 * client: may be NULL. -1 while the connection is lost; another one, which may have the same
 * number, when the library has connected anew: ask before every poll. */
int gad_fd(const struct gad_client *client);

/** Counts the client's connections: a job that was sent in an earlier one than this is waiting to
 * be sent again, by gad_job_wait(). While the connection is lost still the number of the lost one.
 * client: may be NULL; then 0. */
uint64_t gad_connection(const struct gad_client *client);

/** Whether something waits to be sent or copied, so that gad_fd() is to be polled for writing too.
 * client: may be NULL; then, and while the connection is lost, false. */
bool gad_wants_write(const struct gad_client *client);

/** Reads and writes what is there and calls progress callbacks, for callers with an event loop of
 * their own.
 * client: not NULL.
 * timeout_ms: milliseconds to wait for something to happen; 0: not at all, -1: for ever.
 * GAD_TIMEOUT: nothing happened, or a signal came. GAD_DISCONNECTED: the connection is lost; it is
 * made anew, and jobs are sent again, by gad_job_wait() (with any time-out) for each that is not
 * done. GAD_PROTOCOL: likewise, because of what the daemon sent. */
enum gad_status gad_dispatch(struct gad_client *client, int timeout_ms, struct gad_error *error);

/** One round trip to the daemon; connects anew when the connection is lost.
 * client: not NULL. Connection statuses. */
enum gad_status gad_ping(struct gad_client *client, struct gad_error *error);

/** What the daemon says of itself: version, pool, engines, counts.
 * client: not NULL.
 * ret_json: JSON text, the map of server.info; the caller's, to be given to free().
 * Connection statuses. */
enum gad_status gad_info_json(struct gad_client *client, char **ret_json, struct gad_error *error);

/** What the daemon has done since it started and what it does now, users and jobs included.
 * client: not NULL.
 * ret_json: JSON text, the map of server.stats; the caller's, to be given to free().
 * Connection statuses. */
enum gad_status gad_stats_json(struct gad_client *client, char **ret_json, struct gad_error *error);

/** What can be written in an expression.
 * client: not NULL.
 * ret_json: JSON text, the list of server.ops: a map for each operation with name, symbol, alias,
 * args, results, keywords, dtypes, doc; the caller's, to be given to free().
 * Connection statuses. */
enum gad_status gad_ops_json(struct gad_client *client, char **ret_json, struct gad_error *error);

/* ---- Arrays ------------------------------------------------------------------------------- */

enum gad_scalar_kind {
    GAD_SCALAR_NONE,
    GAD_SCALAR_BOOL,
    GAD_SCALAR_INT,
    GAD_SCALAR_FLOAT,
    GAD_SCALAR_UINT
};

/** A number as it is: a double has not all integers beyond 2^53. */
struct gad_scalar {
    enum gad_scalar_kind kind; /**< GAD_SCALAR_NONE: there is none */
    union {
        int64_t int_value;   /**< of GAD_SCALAR_INT, and of GAD_SCALAR_BOOL, where it is 0 or 1 */
        uint64_t uint_value; /**< of GAD_SCALAR_UINT */
        double float_value;  /**< of GAD_SCALAR_FLOAT */
    };
};

/** What an array is, and how it travels. */
struct gad_array_info {
    enum gad_dtype dtype;
    bool is_swapped; /**< stored in the byte order that is not this machine's */
    int ndim;
    int64_t shape[GAD_MAX_NDIM];
    int64_t strides[GAD_MAX_NDIM]; /**< bytes, of either sign; of the elements in file or memory;
                                        zeros: chunked, or read by the library */
    bool has_fill;                 /**< the source names a fill value (_FillValue) */
    double fill;
    const char *format; /**< "npy", "npz", "raw", "hdf5", "netcdf", "zarr", "region", "memory",
                             "file", "blocks"; "mixed": of files of several formats */
    const char *path;   /**< of the file, or NULL */
    const char *access; /**< "file", "chunks", "provider", "region", "memory": how it travels */
    struct gad_scalar exact_fill; /**< fill, which as a double may be rounded */
    uint64_t n_files; /**< of a pattern or gad_array_open_many(): that have a part in it; else 0 */
};

/** Opens a source, as the calling user, for reading. The daemon is not asked.
 * client: whose jobs may use the array; NULL: none may, it is only looked at.
 * spec: `file.npy`, `file.npz:name`, `file.h5:/dataset` (also .hdf5 .he5 .h5p .mat .nc .nc4 .cdf
 * .nc3 .nc5), `store.zarr` or `store.zarr:/array` (a directory), or (also .bin .dat) raw
 * `file.raw:DTYPE:SHAPE[:OFFSET][:F]` with SHAPE as 1000x1000, OFFSET in bytes, F: Fortran order.
 * Whether a file is HDF5 (netCDF-4) or netCDF classic is told by how it begins.
 * ret_array: the caller's, given up by gad_array_release().
 *
 * Of an npz archive the name is a member's, with or without its .npy, and may be left out where
 * there is one array. Deflated members are unpacked as they are read, and their CRC-32 is compared
 * when the last byte is: a job then ends with GAD_PROVIDER_FAILED. That of stored ones is not.
 *
 * Behind the name there may be a selection in NumPy's basic indexing, `file.npy[10:20, ::-2]`:
 * integers (negative: from the end) drop their axis, slices clip to it, `...` once for the axes
 * that are not named, `newaxis` or `None`; blanks are allowed. The array is then what is selected,
 * its shape and strides too; nothing is copied where the file is contiguous. Where a file (npy) or
 * dataset has the whole text as its name, brackets included, that one is opened: `x.npy[0][1:]` is
 * a selection of a file `x.npy[0]`.
 *
 * Where the path has wildcards (`*`, `?`, `[0-9]`) and there is no file of that very name, the
 * array is all files that match, behind each other along the first axis in natural order (x2 before
 * x10), see gad_array_open_many(): `day_*.h5:/t`; with `:stack` behind that along a new first axis.
 * A selection is of the whole: `day_*.h5:/t:stack[-1]`.
 *
 * GAD_BAD_ARGUMENT (a spec or selection that cannot be read, an index out of bounds, too many of
 * them, a step of 0), GAD_NOT_FOUND, GAD_PERMISSION, GAD_BUSY (an HDF5 file that another program
 * has locked for writing; the message names the process where the system tells), GAD_BAD_FORMAT,
 * GAD_BAD_DTYPE (object dtype and others that are not served), GAD_SHORT_READ (shorter than its
 * header says), GAD_BAD_DESCRIPTOR (a directory, pipe, device, file under /proc). */
enum gad_status gad_array_open(struct gad_client *client, const char *spec,
                               struct gad_array **ret_array, struct gad_error *error);

struct gad_storage; /* gpuarrayd-files.h: how a new array is stored in its file */

/** Makes an output. The file appears, or replaces an existing one, only with gad_array_commit(); a
 * dataset in an existing HDF5 file, npz archive or Zarr store likewise, what else is in it stays
 * (of an archive it is copied into a new file, which takes its place). Its space is reserved at
 * once, but for chunks. A new store is of version 3, an array in a store is of the store's. client:
 * not NULL; whose jobs may use the array. spec: as for gad_array_open(), raw as `file.raw`; without
 * a selection, which only an array that exists can have (GAD_BAD_ARGUMENT). replace: whether a
 * dataset or member of that name may be replaced; files are, and stores that are one array. dtype:
 * of the elements, stored in this machine's byte order. ndim, shape: 0 to GAD_MAX_NDIM sizes, each
 * 0 or more; shape may be NULL when ndim is 0. fortran_order: the first axis is the densest (npy
 * and npz only); else C order. storage: chunks and what packs them; may be NULL. What the format
 * has not is GAD_BAD_ARGUMENT. ret_array: the caller's; released without a commit it leaves nothing
 * behind. GAD_EXISTS: the dataset is there and `replace` is false, or something else has its name,
 * as a group of a Zarr store. GAD_NO_SPACE: the file system or the user's quota is full.
 * GAD_NOT_FOUND: no such folder. GAD_PERMISSION, GAD_READ_ONLY: as the system says. GAD_BUSY:
 * another program has the HDF5 file locked, for more than some seconds. GAD_BAD_FORMAT: the
 * existing file is no HDF5 file or archive. GAD_BAD_SHAPE: sizes that no array can have.
 * GAD_READ_ONLY: also an existing netCDF classic file, to which nothing is added; new files are
 * HDF5 (netCDF-4). */
enum gad_status gad_array_create(struct gad_client *client, const char *spec, bool replace,
                                 enum gad_dtype dtype, int ndim, const int64_t *shape,
                                 bool fortran_order, const struct gad_storage *storage,
                                 struct gad_array **ret_array, struct gad_error *error);

/** Puts a created output in its place, whole: after the job that wrote it has ended well. Outputs
 * that a job made for `to_path` are committed by gad_job_wait().
 * array: not NULL; nothing happens for one that was not created, or is committed already.
 * GAD_EXISTS: somebody made the file or dataset meanwhile. GAD_BUSY, GAD_PERMISSION, GAD_NO_SPACE:
 * as the system says. After a failure what was there before is untouched, and the call may be
 * repeated. */
enum gad_status gad_array_commit(struct gad_array *array, struct gad_error *error);

/** Opens an existing npy or raw file, contiguous HDF5 dataset, variable of a netCDF classic file or
 * stored member of an npz archive (whose CRC-32 is made right after each job), or a selection of
 * one (then only the selected elements are written), for reading and writing in place: the one way
 * an output may be seen half-written. Where the daemon does not read the file system itself, it
 * cannot be a source of the same job (GAD_OVERLAPPING_OUTPUT).
 * client, spec, ret_array: as for gad_array_open().
 * The statuses of gad_array_open(). GAD_PERMISSION, GAD_READ_ONLY: also when it may be read and not
 * written; GAD_READ_ONLY: also a dataset or member that is compressed or stored in chunks. */
enum gad_status gad_array_open_in_place(struct gad_client *client, const char *spec,
                                        struct gad_array **ret_array, struct gad_error *error);

/** Makes an array in shared memory, zeroed, in C order. It is not copied on the way to the daemon,
 * and its pages are used again by later arrays: memory of arrays that were released stays the
 * client's, 64 MiB of it always, more (as far as a 32nd of the machine's memory) while it was used
 * in the last seconds; it is given back when the quota or the machine has no other.
 * client: not NULL; whose jobs may use the array.
 * dtype, ndim, shape: as for gad_array_create().
 * ret_array: the caller's, given up by gad_array_release().
 * GAD_QUOTA_EXCEEDED: the user has too much shared memory with the daemon. GAD_NO_MEMORY: the
 * system has none left. GAD_BAD_SHAPE: sizes that no array can have. Connection statuses. */
enum gad_status gad_array_new(struct gad_client *client, enum gad_dtype dtype, int ndim,
                              const int64_t *shape, struct gad_array **ret_array,
                              struct gad_error *error);

/** As gad_array_new(), with whatever earlier arrays of this client have left in it.
 * client, dtype, ndim, shape, ret_array: as for gad_array_new(), and the statuses too. */
enum gad_status gad_array_empty(struct gad_client *client, enum gad_dtype dtype, int ndim,
                                const int64_t *shape, struct gad_array **ret_array,
                                struct gad_error *error);

/** How the elements of an array lie in memory or in a file. */
struct gad_layout {
    enum gad_dtype dtype;
    bool is_swapped; /**< stored in the byte order that is not this machine's */
    int ndim;
    const int64_t *shape;   /**< ndim sizes, each 0 or more; may be NULL when ndim is 0 */
    const int64_t *strides; /**< ndim numbers of bytes, 0 and negative ones too; NULL: C order */
};

/** Describes an array in the caller's memory. What lies within arrays of gad_array_new() or
 * gad_array_empty() of the same client is used where it is, as shared memory; they must stay as
 * long. Of other memory small arrays travel inside the message, larger ones through a ring that
 * threads of the library serve.
 * client: not NULL; whose jobs may use the array.
 * layout: not NULL; copied.
 * data: element [0, ..., 0]; the caller's; stays where it is until the array is released, and is
 * neither changed nor read by others than the library while a job uses it. NULL only for an array
 * without elements.
 * is_writable: whether it may be an output: over the very array that is an argument, or apart from
 * all of them. Over an argument, the result of a job is first made in shared memory of the same
 * size (GAD_QUOTA_EXCEEDED), and copied at its end, unless `data` is shared memory itself. One
 * whose elements lie over each other (a stride of 0) may be a source only.
 * ret_array: the caller's, given up by gad_array_release(), which leaves `data` alone.
 * GAD_BAD_SHAPE: sizes that no array can have. GAD_BAD_EXTENT: strides that reach around the end of
 * the address space. */
enum gad_status gad_array_from_memory(struct gad_client *client, const struct gad_layout *layout,
                                      void *data, bool is_writable, struct gad_array **ret_array,
                                      struct gad_error *error);

/** Describes an array that lies in an open file, whatever its format.
 * client: not NULL; whose jobs may use the array.
 * fd: of a regular file, open for reading, and for writing when is_writable; not for appending, nor
 * with O_DIRECT. It is duplicated and stays the caller's; its position is not used.
 * layout: not NULL; copied.
 * offset_bytes: of element [0, ..., 0] in the file.
 * is_writable: whether it may be an output; it is then written in place.
 * ret_array: the caller's, given up by gad_array_release().
 * GAD_BAD_DESCRIPTOR: not a regular file, or not open for what is asked. GAD_SHORT_READ: the file
 * is shorter than the array. GAD_BAD_SHAPE, GAD_BAD_EXTENT: as of gad_array_from_memory(), or
 * elements before the file's beginning. */
enum gad_status gad_array_from_file(struct gad_client *client, int fd,
                                    const struct gad_layout *layout, uint64_t offset_bytes,
                                    bool is_writable, struct gad_array **ret_array,
                                    struct gad_error *error);

/** Moves blocks of an array that only the caller can read or write. Called in a thread of the
 * library, one call at a time for a client; the functions must not use the client. A block is the
 * elements from `start` on, `count` of them along each axis, packed in C order, in the array's
 * dtype and byte order. Returns 0, or a positive errno, which fails the job with
 * GAD_PROVIDER_FAILED. */
struct gad_blocks {
    int (*read)(void *data, const int64_t *start, const int64_t *count,
                void *ret_block); /**< NULL: not a source */
    int (*write)(void *data, const int64_t *start, const int64_t *count,
                 const void *block); /**< NULL: not an output */
    void (*free)(void *data);        /**< called once, in the thread that releases the array or
                                          frees the last job that uses it; may be NULL */
    void *data;
};

/** Describes an array that the caller moves block by block: a format that the library does not
 * know, a compressed store.
 * client: not NULL; whose jobs may use the array.
 * layout: not NULL; copied; its strides are not used.
 * blocks: not NULL, with at least one way to go; copied. After a failure `free` was not called.
 * ret_array: the caller's, given up by gad_array_release().
 * GAD_BAD_SHAPE: sizes that no array can have. */
enum gad_status gad_array_from_blocks(struct gad_client *client, const struct gad_layout *layout,
                                      const struct gad_blocks *blocks, struct gad_array **ret_array,
                                      struct gad_error *error);

/** What an array is.
 * array: NULL gives NULL. The answer is the library's and as long valid as the array. */
const struct gad_array_info *gad_array_info(const struct gad_array *array);

/** Where the elements are, for the program to read and write.
 * array: of gad_array_new(), gad_array_empty() or gad_array_from_memory(): element [0, ..., 0],
 * valid as long as the array, not to be touched while a job writes it; any other, or NULL: NULL. */
void *gad_array_data(struct gad_array *array);

/** Gives an array up; an output that was not committed disappears.
 * array: no job may be using it; NULL is allowed. */
void gad_array_release(struct gad_array *array);

/* ---- Jobs --------------------------------------------------------------------------------- */

/** A named argument: an array, or a scalar with NumPy's rules for Python scalars. */
struct gad_argument {
    const char *name; /**< as in the expressions; not NULL, at most 63 characters, no other's */
    struct gad_array *array;     /**< of the same client; NULL for a scalar */
    enum gad_scalar_kind scalar; /**< GAD_SCALAR_NONE: `array` is the argument */
    union {
        int64_t int_value;   /**< of GAD_SCALAR_INT; of GAD_SCALAR_BOOL: 0 is False */
        uint64_t uint_value; /**< of GAD_SCALAR_UINT: an int that may be beyond int64 */
    };
    double float_value; /**< of GAD_SCALAR_FLOAT */
};

/** One result: an expression and where it goes. With neither `to` nor `to_path` it comes inline
 * (at most 64 KiB), see gad_job_result(). */
struct gad_output {
    const char *expr;     /**< not NULL, at most 16 KiB. Names may be given to parts of it before
                               the result: "d = x - mean(x); d*d" */
    const char *name;     /**< for errors and results, at most 63 characters; may be NULL */
    struct gad_array *to; /**< of exactly the result's shape */
    const char *to_path;  /**< created with the planned dtype and shape, committed at the end; no
                               other output may go there */
    const struct gad_storage *storage; /**< of `to_path`; may be NULL */
};

/** How far a job is. */
struct gad_progress {
    uint64_t job;                     /**< its id */
    uint64_t tiles_done, n_tiles;     /**< the latter 0: unknown before the end */
    uint64_t read_bytes, write_bytes; /**< so far */
    uint64_t total_bytes;             /**< read and written at the end, as planned; 0: unknown */
};

/** Told how far a job is, from gad_dispatch() and the waiting functions, in the caller's thread.
 * data: `progress_data` of the job.
 * progress: valid during the call.
 * It may cancel jobs; it must neither free any nor close the client. */
typedef void gad_progress_fn(void *data, const struct gad_progress *progress);

/** A job. Everything is copied but the arrays. */
struct gad_job_options {
    unsigned n_args, n_outputs; /**< at most 64 and 16; at least one output */
    const struct gad_argument *args;
    const struct gad_output *outputs;
    const char *engine; /**< "auto" (NULL): where it ends sooner; "cpu"; "cuda", or "cuda:0" to
                             "cuda:15" for one device: waits for it rather than go elsewhere */
    int priority;       /**< -100..100, higher first among the user's own jobs */
    const char *label;  /**< shown in lists; may be NULL */
    gad_progress_fn *progress;
    void *progress_data;
    uint32_t progress_ms; /**< milliseconds between calls, at least 50; 0 with a callback: 200 */
    uint32_t queue_timeout_ms; /**< to begin in, or it ends with GAD_QUEUE_TIMEOUT; 0: for ever */
    uint32_t deadline_ms;      /**< to end in, or it does with GAD_DEADLINE_EXCEEDED; 0: for ever */
    bool has_journal; /**< of a matrix product that reads the output which it writes, a file: its
                           finished parts are kept in a journal until they are in the output:
                           nothing is added twice whatever ends the job. One that finds its journal
                           goes on from there. Safe against the end of processes, not against loss
                           of power. No effect where the output is in memory */
    const char *journal_path; /**< where; NULL: beside the output, its name and ".journal", removed
                       at a good end. While another job has it, gad_submit() waits 10 s: GAD_BUSY */
    bool tf32;      /**< a device may round float32 to the 10 bits of TF32 before it multiplies
                         matrices, several times as fast; it adds in float32. It is leave, not an order:
                         product_precision of the job's stats says "tf32" where it was done */
    bool exclusive; /**< nobody else writes to the outputs' files while the job runs: where elements
                         of an output lie a few bytes apart (a column), those between may be read
                         and written back (what others write there may be lost). Same results */
    const struct gad_draws *draws;   /**< of random functions: gpuarrayd-random.h; may be NULL */
    const struct gad_beyond *beyond; /**< of near() and windows: gpuarrayd-move.h; may be NULL */
    bool may_copy; /**< a new file may share the blocks of the file that is its one argument. Such
                        a job has no number, goes on while somebody waits; engine "client" */
};

/** A result as it is, or would be. It keeps its members, since it may be in the caller's memory. */
struct gad_plan_output {
    char name[64]; /**< as given, or "" */
    enum gad_dtype dtype;
    int ndim;
    int64_t shape[GAD_MAX_NDIM];
    bool fortran_order; /**< NumPy's K order */
};

/** How a job went. */
struct gad_job_stats {
    uint64_t job;    /**< its id */
    char engine[16]; /**< that computed it */
    uint64_t n_tiles, read_bytes, write_bytes;
    double total_s, source_s, kernel_s, sink_s, client_s; /**< thread-seconds but for total */
    uint64_t n_divide_by_zero, n_invalid_casts;
    uint64_t around_cache_bytes;       /**< of write_bytes: those written past the page cache */
    double to_device_s, from_device_s; /**< of copies to a device and back; they overlap with each
                                            other and with the rest */
    char engine_why[256];              /**< why that engine */
    /** Of a job with a matrix product; else empty and 0. */
    char product_library[64];   /**< that multiplied: "OpenBLAS 0.3.21" */
    char product_precision[16]; /**< in which it did: "float32", "tf32" */
    int64_t product_tile[3];    /**< matrices, rows and columns that were kept in memory at once */
    uint64_t n_product_tiles, left_bytes, right_bytes; /**< bytes read of the operands */
    char journal[16]; /**< what it was found as: "new", "continued": an earlier try of this job had
                           begun, "complete": had ended already; empty: there was none */
};

/** Starts a job and returns at once. What is wrong with it is said here when the library sees it,
 * else by gad_job_wait().
 * client: not NULL.
 * options: the job; may be forgotten at once, but for the arrays, which stay until the job is
 * freed.
 * ret_job: the caller's, ended by gad_job_free().
 * GAD_LIMIT_EXCEEDED: too many arguments or outputs, too long an expression. GAD_READ_ONLY: an
 * output goes into an array that was opened for reading. GAD_BAD_EXTENT: elements of an output lie
 * over each other. GAD_OVERLAPPING_OUTPUT: outputs share memory or a file, or an output shares
 * memory with an argument without being the same array, or strides cross so that it cannot be told.
 * And, with `to_path`, the statuses of gad_plan() and gad_array_create().
 * Connection statuses. Nothing runs after any of them. */
enum gad_status gad_submit(struct gad_client *client, const struct gad_job_options *options,
                           struct gad_job **ret_job, struct gad_error *error);

/** Waits until the job has ended and its files are in their place. When the connection is lost it
 * is made anew, and the job is sent again if that cannot change its results.
 * job: not NULL; waiting again for a job that has ended says the same again.
 * timeout_ms: milliseconds; 0: only look, -1: for ever.
 * GAD_OK, or why the job failed; `error` names the argument or output. Outputs with `to_path` are
 * then not there, or as they were before; outputs in arrays may be partly written. Most often:
 * GAD_BAD_EXPRESSION GAD_UNKNOWN_NAME GAD_BAD_ARITY GAD_BAD_SHAPE GAD_BAD_DTYPE: it
 * cannot be computed. GAD_TOO_LARGE_FOR_POOL GAD_QUOTA_EXCEEDED GAD_QUEUE_FULL: there is no room
 * for it. GAD_TOO_LARGE_FOR_INLINE: a result of more than 64 KiB without a destination.
 * GAD_SHORT_READ GAD_IO_ERROR GAD_NO_SPACE GAD_PROVIDER_FAILED: its files. GAD_OVERLAPPING_OUTPUT:
 * it would write over what it reads. GAD_NEGATIVE_POWER GAD_BAD_INDEX: its data is not what an
 * expression takes for granted. GAD_NO_ENGINE. GAD_CANCELLED GAD_QUEUE_TIMEOUT
 * GAD_DEADLINE_EXCEEDED.
 * GAD_WORKER_LOST GAD_POISONED GAD_DEVICE_FAULT: the worker ended under it. GAD_OUTCOME_UNKNOWN:
 * the connection was lost and the job could not be sent again. GAD_TIMEOUT: the job goes on. */
enum gad_status gad_job_wait(struct gad_job *job, int timeout_ms, struct gad_error *error);

/** Whether a job has ended, well or not: gad_job_wait() would not wait.
 * job: NULL is not done. */
bool gad_job_is_done(const struct gad_job *job);

/** Asks for a job's end; gad_job_wait() then returns GAD_CANCELLED, or GAD_OK if the job was
 * faster.
 * job: not NULL; of one that has ended nothing changes.
 * Connection statuses but GAD_DISCONNECTED: with the connection the job ends anyway. */
enum gad_status gad_job_cancel(struct gad_job *job, struct gad_error *error);

/** The daemon's number of a job, for lists and other processes of the user.
 * job: may be NULL. 0 while it is not known yet (of a very small job: before its end). */
uint64_t gad_job_id(const struct gad_job *job);

/** How a job went.
 * job: may be NULL. NULL before its end and for a job that failed; else the library's, as long
 * valid as the job. */
const struct gad_job_stats *gad_job_stats(const struct gad_job *job);

/** A result that came back with the answer: of an output with neither `to` nor `to_path`.
 * job: may be NULL.
 * i: the output's index in the options.
 * ret_output: gets dtype and shape; may be NULL.
 * The elements, in C order and this machine's byte order, as long valid as the job; NULL when the
 * job has not ended well or output i is not inline. */
const void *gad_job_result(const struct gad_job *job, unsigned i,
                           struct gad_plan_output *ret_output);

/** Cancels a job if it runs, waits for its end, frees it.
 * job: NULL is allowed. */
void gad_job_free(struct gad_job *job);

/** Runs a job: gad_submit(), gad_job_wait() without a time-out, gad_job_free(). Results without a
 * destination are lost.
 * client, options: as for gad_submit().
 * ret_stats: how it went; may be NULL.
 * The statuses of both. */
enum gad_status gad_run(struct gad_client *client, const struct gad_job_options *options,
                        struct gad_job_stats *ret_stats, struct gad_error *error);

#ifdef __cplusplus
}
#endif

#include "gpuarrayd-dataset.h"
#include "gpuarrayd-files.h"
#include "gpuarrayd-jobs.h"
#include "gpuarrayd-linalg.h"
#include "gpuarrayd-many.h"
#include "gpuarrayd-meaning.h"
#include "gpuarrayd-picture.h"
#include "gpuarrayd-product.h"
#include "gpuarrayd-random.h"
#include "gpuarrayd-stream.h"
