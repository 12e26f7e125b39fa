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
 * changed, unless said otherwise.
 *
 * Threads. A client and everything made from it belongs to one thread at a time. Different clients
 * are independent. The library starts threads of its own only for clients that provide or drain
 * blocks (arrays in ordinary memory, files that only the client can read); they call nothing of the
 * caller's. Signals are blocked in them.
 *
 * fork. A child must not use its parent's client; it connects anew.
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

/** The stable word of a status ("too-large-for-pool"), "ok" for 0. Static, never NULL. */
const char *gad_status_word(int status);
/** One sentence about a status. Static, never NULL. */
const char *gad_status_text(int status);
/** "float32". Static. */
const char *gad_dtype_name(enum gad_dtype dtype);
/** Bytes of one element. */
size_t gad_dtype_size(enum gad_dtype dtype);
/** The library's version, "0.1.0". */
const char *gad_version(void);

/* ---- Connection --------------------------------------------------------------------------- */

struct gad_connect_options {
    const char *socket; /**< path, or NULL: $GPUARRAYD_SOCKET, else the service, else private */
    const char *client_name; /**< shown to whoever administers the machine; NULL: the program's */
    bool no_private_daemon;  /**< fail with GAD_NO_DAEMON rather than start one */
    const char *daemon_path; /**< of gpuarrayd for a private one; NULL: $GPUARRAYD_DAEMON, else the
                                  installed one */
    int timeout_ms;          /**< for the connection to be ready; 0: 10 seconds */
};

/** Connects. options may be NULL. The server must be root, the service's user or the caller itself
 * (GAD_UNTRUSTED otherwise). GAD_NO_DAEMON, GAD_VERSION, GAD_TIMEOUT, GAD_PERMISSION. */
enum gad_status gad_connect(const struct gad_connect_options *options,
                            struct gad_client **ret_client, struct gad_error *error);

/** Closes the connection, cancels its jobs, frees the client. Arrays must have been released and
 * jobs freed before. NULL is allowed. */
void gad_close(struct gad_client *client);

/** The descriptor to poll for reading (and for writing when gad_wants_write()); -1 while the
 * connection is lost, and another one when the library has connected anew. */
int gad_fd(const struct gad_client *client);
bool gad_wants_write(const struct gad_client *client);

/** Reads and writes what is there and calls progress callbacks; waits at most timeout_ms for
 * something to happen (0: not at all, -1: for ever). For callers with an event loop of their own.
 * GAD_TIMEOUT when nothing happened; GAD_DISCONNECTED when the connection is lost: it is made anew,
 * and jobs are sent again, by gad_job_wait() (with any time-out) for each that is not done. */
enum gad_status gad_dispatch(struct gad_client *client, int timeout_ms, struct gad_error *error);

/** One round trip to the daemon. */
enum gad_status gad_ping(struct gad_client *client, struct gad_error *error);

/** What the daemon says of itself, as JSON text (the map of server.info); free() it. */
enum gad_status gad_info_json(struct gad_client *client, char **ret_json, struct gad_error *error);

/* ---- Arrays ------------------------------------------------------------------------------- */

struct gad_array_info {
    enum gad_dtype dtype;
    bool is_swapped; /**< stored in the byte order that is not this machine's */
    int ndim;
    int64_t shape[GAD_MAX_NDIM];
    int64_t strides[GAD_MAX_NDIM]; /**< bytes; of the elements in file or memory; zeros: chunked */
    bool has_fill;                 /**< the source names a fill value (_FillValue) */
    double fill;
    const char *format; /**< "npy", "raw", "hdf5", "region", "memory" */
    const char *path;   /**< of the file, or NULL */
    const char *access; /**< "file", "chunks", "provider", "region", "memory": how it travels */
};

/** Opens a source: `file.npy`, `file.h5:/dataset` (also .hdf5 .nc .cdf .h5p), or
 * `file.raw:DTYPE:SHAPE[:OFFSET]` with SHAPE as 1000x1000 (also .bin .dat). Opened as the calling
 * user, read only. GAD_NOT_FOUND, GAD_PERMISSION, GAD_BAD_FORMAT, GAD_BAD_DTYPE (object dtype and
 * others that are not served), GAD_SHORT_READ (shorter than its header says), GAD_BAD_DESCRIPTOR (a
 * directory, pipe, device, file under /proc). */
enum gad_status gad_array_open(struct gad_client *client, const char *spec,
                               struct gad_array **ret_array, struct gad_error *error);

/** Makes the output `spec` (as above; raw: `file.raw`) of the given dtype (native byte order) and
 * shape, C order or Fortran order (npy only). Its space is reserved at once (GAD_NO_SPACE). The
 * file appears, or replaces an existing one, only with gad_array_commit(); a dataset in an existing
 * HDF5 file likewise, other datasets stay. GAD_EXISTS: the dataset is there and `replace` false. */
enum gad_status gad_array_create(struct gad_client *client, const char *spec, bool replace,
                                 enum gad_dtype dtype, int ndim, const int64_t *shape,
                                 bool fortran_order, struct gad_array **ret_array,
                                 struct gad_error *error);

/** Puts a created output in its place, whole. To be called after the job that wrote it. */
enum gad_status gad_array_commit(struct gad_array *array, struct gad_error *error);

/** Opens an existing npy or raw file, or contiguous HDF5 dataset, for reading and writing in
 * place: the one way an output may be seen half-written. Where the daemon does not read the file
 * system itself, it cannot be a source of the same job (GAD_OVERLAPPING_OUTPUT). */
enum gad_status gad_array_open_in_place(struct gad_client *client, const char *spec,
                                        struct gad_array **ret_array, struct gad_error *error);

/** A new array in shared memory (zeroed, C order), from an arena that reuses its pages. No copy on
 * the way to the daemon. GAD_QUOTA_EXCEEDED, GAD_NO_MEMORY. */
enum gad_status gad_array_new(struct gad_client *client, enum gad_dtype dtype, int ndim,
                              const int64_t *shape, struct gad_array **ret_array,
                              struct gad_error *error);

/** An array in the caller's ordinary memory, which must stay until the array is released. strides
 * in bytes, NULL: C order. Writable ones may be outputs. Small ones travel inside the message,
 * others through a ring that a thread of the library serves. */
enum gad_status gad_array_from_memory(struct gad_client *client, enum gad_dtype dtype, int ndim,
                                      const int64_t *shape, const int64_t *strides, void *data,
                                      bool is_writable, struct gad_array **ret_array,
                                      struct gad_error *error);

/** Valid as long as the array. */
const struct gad_array_info *gad_array_info(const struct gad_array *array);
/** Element [0, ..., 0] of an array of gad_array_new() or gad_array_from_memory(), else NULL. */
void *gad_array_data(struct gad_array *array);
/** Releases; an output that was not committed disappears. No job may be using it. NULL allowed. */
void gad_array_release(struct gad_array *array);

/* ---- Jobs --------------------------------------------------------------------------------- */

enum gad_scalar_kind { GAD_SCALAR_NONE, GAD_SCALAR_BOOL, GAD_SCALAR_INT, GAD_SCALAR_FLOAT };

/** A named argument: an array, or a scalar with NumPy's rules for Python scalars. */
struct gad_argument {
    const char *name;
    struct gad_array *array;
    enum gad_scalar_kind scalar; /**< GAD_SCALAR_NONE: `array` is the argument */
    int64_t int_value;
    double float_value;
};

/** One result: an expression and where it goes. With neither `to` nor `to_path` it comes inline
 * (at most 64 KiB), see gad_job_result(). */
struct gad_output {
    const char *expr;
    const char *name;     /**< for errors and results; may be NULL */
    struct gad_array *to; /**< of exactly the result's shape */
    const char *to_path;  /**< created with the planned dtype and shape, committed at the end; no
                               other output may go there */
};

struct gad_progress {
    uint64_t job;
    uint64_t tiles_done, n_tiles;
    uint64_t read_bytes, write_bytes; /**< so far */
    uint64_t total_bytes;             /**< read and written at the end, as planned; 0: unknown */
};

/** Called from gad_dispatch() and the waiting functions. May cancel jobs, must not free them. */
typedef void gad_progress_fn(void *data, const struct gad_progress *progress);

struct gad_job_options {
    unsigned n_args, n_outputs;
    const struct gad_argument *args;
    const struct gad_output *outputs;
    const char *engine; /**< "auto" (NULL), "cpu", "cuda" */
    int priority;       /**< -100..100, higher first among the user's own jobs */
    const char *label;  /**< shown in lists; may be NULL */
    gad_progress_fn *progress;
    void *progress_data;
    uint32_t progress_ms; /**< between calls; 0 with a callback: 200 */
};

/** What a job would do. */
struct gad_plan_output {
    char name[64];
    enum gad_dtype dtype;
    int ndim;
    int64_t shape[GAD_MAX_NDIM];
    bool fortran_order; /**< NumPy's K order */
};

struct gad_plan {
    char engine[16];
    unsigned n_outputs;
    struct gad_plan_output outputs[16];
    uint64_t n_tiles, read_bytes, write_bytes, carry_bytes;
    double seconds; /**< estimate */
    bool is_restartable;
    char *text; /**< the whole plan for a reader, several lines */
};

/** Plans without running. Free with gad_plan_free(). */
enum gad_status gad_plan(struct gad_client *client, const struct gad_job_options *options,
                         struct gad_plan **ret_plan, struct gad_error *error);
void gad_plan_free(struct gad_plan *plan);

/** How a job went. data of output i: gad_job_result(). */
struct gad_job_stats {
    uint64_t job;
    char engine[16];
    uint64_t n_tiles, read_bytes, write_bytes;
    double total_s, source_s, kernel_s, sink_s, client_s; /**< thread-seconds but for total */
    uint64_t n_divide_by_zero, n_invalid_casts;
    uint64_t around_cache_bytes; /**< of write_bytes: those written past the page cache */
};

/** Starts a job and returns at once. The arrays must stay until the job is freed. A job that is
 * invalid is refused by gad_job_wait(), or here when that is known at once. */
enum gad_status gad_submit(struct gad_client *client, const struct gad_job_options *options,
                           struct gad_job **ret_job, struct gad_error *error);

/** Waits until the job has ended and its files are in their place: GAD_OK or its error; GAD_TIMEOUT
 * when timeout_ms (-1: for ever) is over and it goes on. */
enum gad_status gad_job_wait(struct gad_job *job, int timeout_ms, struct gad_error *error);
bool gad_job_is_done(const struct gad_job *job);
/** Asks for its end; gad_job_wait() then returns GAD_CANCELLED (or GAD_OK if it was faster). */
enum gad_status gad_job_cancel(struct gad_job *job, struct gad_error *error);
/** The daemon's id; 0 while it is not known yet (of a very small job: before its end). */
uint64_t gad_job_id(const struct gad_job *job);
const struct gad_job_stats *gad_job_stats(const struct gad_job *job); /**< NULL before its end */
/** An inline result: dtype and shape in ret_output (may be NULL), the elements as the return value,
 * in C order, valid as long as the job. NULL when output i is not inline or the job failed. */
const void *gad_job_result(const struct gad_job *job, unsigned i,
                           struct gad_plan_output *ret_output);
/** Cancels if it runs, waits for its end, frees. NULL allowed. */
void gad_job_free(struct gad_job *job);

/** gad_submit(), gad_job_wait(), gad_job_free() in one. ret_stats may be NULL. */
enum gad_status gad_run(struct gad_client *client, const struct gad_job_options *options,
                        struct gad_job_stats *ret_stats, struct gad_error *error);

/* ---- Jobs of other processes of the same user ----------------------------------------------- */

struct gad_job_status {
    uint64_t job;
    char state[16]; /**< "queued" "running" "settling" "done" "failed" "cancelled" */
    char label[64];
    uint64_t tiles_done, n_tiles, read_bytes, write_bytes;
    double queued_s, running_s;
    struct gad_error error; /**< status 0 when there is none */
};

enum gad_status gad_job_status_by_id(struct gad_client *client, uint64_t job,
                                     struct gad_job_status *ret_status, struct gad_error *error);
/** Waits until the job has ended and its files are in their place; its error is this error. */
enum gad_status gad_job_wait_by_id(struct gad_client *client, uint64_t job, int timeout_ms,
                                   struct gad_error *error);
enum gad_status gad_job_cancel_by_id(struct gad_client *client, uint64_t job,
                                     struct gad_error *error);
/** All of the user's jobs that the daemon knows, newest last; free() the array. */
enum gad_status gad_job_list(struct gad_client *client, struct gad_job_status **ret_jobs,
                             size_t *ret_n_jobs, struct gad_error *error);

#ifdef __cplusplus
}
#endif
