/* The job request: what job.plan, job.run and job.submit carry. Decoded by the broker and the
 * worker, encoded by the client. Decoding checks every number; compiling comes later.
 *
 *     { "outputs": [ {"expr": "sqrt(a*a)", "name": "r"?, "to": ARRAY?}, ... ],
 *       "args":    { "a": ARRAY, "k": {"scalar": 2.5}, ... },
 *       "engine": "auto"|"cpu"|"cuda"|"cuda:N"?, "priority": 0?, "label": ""?, "key": ""?,
 *       "progress_ms": 0?, "queue_timeout_ms": 0?, "deadline_ms": 0?, "settle": false?,
 *       "journal": {"fd": i}?, "tf32": false?,
 *       "exclusive": false?, "again": false?,
 *       "draws": {"seed": u?, "size": [..]?, "rows": "name"?}?,
 *       "beyond": {"mode": "constant", "value": 0?}? }
 *
 *     ARRAY = {"dtype": "<f8", "shape": [..], "strides": [..]?, "open": false?, "at": LOCATION}
 *     LOCATION = {"kind": "inline", "data": bin}
 *              | {"kind": "region", "id": u, "offset": u}
 *              | {"kind": "file", "fd": i, "offset": u}
 *              | {"kind": "file", "fd": i, "chunks": {"shape": [..], "table": i, "count": u}}
 *              | {"kind": "provider", "ring": i, "request": i, "done": i, "slots": u,
 *                 "slot_bytes": u, "stream": false?}
 *
 * In job.plan an argument may come without "at" (LOCATION_NONE), and so may any output's "to", and
 * a journal without "fd".
 */
#pragma once

#include "proto/array.h"
#include "proto/near_mode.h"
#include "proto/wire/message.h"

#define REQUEST_MAX_ARGS       64
#define REQUEST_MAX_OUTPUTS    16
#define REQUEST_MAX_EXPR_CHARS 16384
#define REQUEST_LABEL_SIZE     64
#define REQUEST_NO_FD          UINT32_MAX

#define ENGINE_MAX_DEVICES 16

enum engine_choice { ENGINE_AUTO, ENGINE_CPU, ENGINE_CUDA };

/* "auto", "cpu", "cuda", "cuda:3". *ret_index: the device; -1: none was named. -EINVAL. */
int request_parse_engine(const char *word, size_t n_chars, enum engine_choice *ret_engine,
                         int *ret_index) GAD_MUST_CHECK;

struct request_arg {
    char name[ARRAY_NAME_SIZE]; /* an identifier: letter or _, then letters, digits, _ */
    bool is_scalar;             /* a Python scalar: weak promotion */
    enum dtype scalar_dtype;    /* DTYPE_BOOL, DTYPE_INT64, DTYPE_UINT64 (beyond int64), FLOAT64 */
    union scalar scalar;
    struct array array; /* when not is_scalar */
};

struct request_output {
    char name[ARRAY_NAME_SIZE]; /* "" when none was given */
    const char *expr;           /* not NUL-terminated; points into the body */
    size_t n_expr_chars;
    bool has_to;
    struct array to;
};

/* Of random functions: what those take that do not say it (a seed of their own is mixed with the
 * request's), and what their elements are numbered by.
 * The compiler checks the argument that it names. */
struct request_draws {
    bool has_seed, has_size, has_rows;
    uint64_t seed;
    unsigned rows; /* index of the argument */
    int ndim;
    int64_t size[ARRAY_MAX_NDIM];
};

extern const char *const request_modes[NEAR_N_MODES];

/* Of near() and windows that name no mode. */
struct request_beyond {
    enum near_mode mode; /* NEAR_EDGE where the request says nothing */
    enum dtype dtype;    /* NEAR_CONSTANT: a Python scalar, as of an argument */
    union scalar value;
};

struct job_request {
    unsigned n_args, n_outputs;
    struct request_arg *args;
    struct request_output *outputs;
    enum engine_choice engine;
    int engine_index;               /* of ENGINE_CUDA: the device; -1: whichever */
    int priority;                   /* -100..100, higher first */
    char label[REQUEST_LABEL_SIZE]; /* shown in lists */
    char key[REQUEST_LABEL_SIZE];   /* idempotency key, "" for none */
    uint32_t progress_ms;           /* 0: no notifications; else at least 50 */
    uint32_t queue_timeout_ms;      /* to begin in; 0: for ever */
    uint32_t deadline_ms;           /* to end in; 0: for ever */
    /* Of a product that writes over what its output holds: where finished tiles are kept until they
     * are applied, so that the job goes on from there whatever ends it (PROTOCOL.md). */
    bool has_journal;
    uint32_t journal_fd_index; /* REQUEST_NO_FD: in a plan */
    /* A device may round float32 to TF32's 10 bits before it multiplies matrices. It is leave, not
     * an order: jobs and engines that have no use for it take no notice. */
    bool tf32;
    /* Nobody else writes to the outputs' files while the job runs: what lies between an output's
     * elements may be read and written back with them. */
    bool exclusive;
    /* Not of the message: the most that its open arrays may have along their first axes, which is
     * the same for all; 0: none is open. Every axis of the job that is as long is theirs. */
    int64_t open_length;
    bool again;  /* what is behind the rings can be asked for again, from the beginning */
    bool settle; /* the owner will say job.settle when the output is in its place */
    struct request_draws draws;
    struct request_beyond beyond;
    /* Not of the message: whoever knows the files says here that no output is stored over an
     * argument. */
    bool is_apart;
    /* Not of the message either: the engine does not walk by slabs, so each product is a stage. */
    bool has_no_slabs;
    /* Likewise: what walks by slabs would keep in whole is made again where it is read. */
    bool makes_again;
};

/* n_fds: how many descriptors came with the message (indices are checked, and that none is used
 * twice). is_plan: locations may be absent. The body must outlive the request. One allocation. */
int request_decode(const msgpack_object *params, unsigned n_fds, bool is_plan,
                   struct job_request **ret_request, struct gad_error *error) GAD_MUST_CHECK;
struct job_request *request_free(struct job_request *request); /* NULL */

/* What errors call an output: its name, or "outputs[index]" in the buffer. */
#define REQUEST_UNNAMED_SIZE 16
const char *request_output_name(const struct request_output *output, unsigned index,
                                char buffer[static REQUEST_UNNAMED_SIZE]);

/* Packs the one map. */
void request_encode(msgpack_packer *packer, const struct job_request *request);

/* Also used by replies: one ARRAY map without / with its location. */
void array_encode(msgpack_packer *packer, const struct array *array);
int array_decode(const msgpack_object *map, const char *name, unsigned n_fds, bool needs_at,
                 struct array *ret_array, struct gad_error *error) GAD_MUST_CHECK;
