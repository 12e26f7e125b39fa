/* What an array is inside the library: how it travels to the daemon, and what its format must do
 * at the end. Formats (npy, raw, HDF5) make these; the core turns them into locations of a request.
 */
#pragma once

#include "client/gpuarrayd.h"
#include "proto/array.h"

struct file_sums;
struct packed_chunks;

enum access {
    ACCESS_FILE,     /* descriptor + offset + strides */
    ACCESS_CHUNKS,   /* descriptor + sealed memfd of struct chunk_entry */
    ACCESS_PROVIDER, /* the pump calls provider->fill or ->drain */
    ACCESS_REGION,   /* shared memory of the client's arena */
    ACCESS_MEMORY,   /* the caller's memory: inline when small, else through the pump */
};

/* Called by the pump's threads: one call at a time among all arrays of a client, or, of a provider
 * that is concurrent, several at once also for one array. A block is start/count in the array's own
 * axes, packed in C order, in the array's dtype and byte order. Return 0 or a positive errno. */
struct provider {
    bool is_concurrent;
    bool is_quick; /* a block takes no longer than to read it from a file */
    int (*fill)(void *state, const int64_t *start, const int64_t *count, void *ret_block);
    int (*drain)(void *state, const int64_t *start, const int64_t *count, const void *block);
    /* After a job has failed because of a block: completes its error, provider-failed with the
     * argument, by what was wrong. No block is served any more. May be NULL. */
    void (*explain)(void *state, struct gad_error *error);
    /* For who reads for long: from now on a block fails with ESTALE, which explain() explains,
     * where a file that it comes from is not what it was when the array was opened, or is now; and
     * whether it fails is no matter of which blocks were asked for before. `sums` gets all files
     * but the array's path. Called before blocks. NULL: all of that is so anyway. 0 or a positive
     * errno. */
    int (*watch)(void *state, struct file_sums *sums);
    /* The same of blocks that were served so far: 0, or ESTALE. No block is served meanwhile. NULL:
     * blocks say all of it. */
    int (*verify)(void *state);
    /* Adds where its packed chunks lie, as a part (client/formats/chunked/packed_chunks.h), for
     * who decodes them elsewhere. NULL: they are not packed. 0; ENOTSUP: they are, but cannot be
     * had so; another positive errno. No block is served meanwhile. */
    int (*locate)(void *state, struct packed_chunks *packed);
};

struct gad_array {
    struct gad_client *client; /* NULL: made without one (tests of formats) */
    unsigned n_refs;
    struct gad_array_info info; /* info.path is owned by the array */
    char *picked_as; /* what an expression has in its place (indexed.h); NULL: its name */
    char *spec;      /* as its program named it; NULL: it is no source, or memory is short */
    struct carried *carried; /* of an output: what else is written; NULL: nothing */
    struct meaning *meaning; /* what its attributes say; NULL: nothing */
    bool has_lost_meaning;   /* memory was short for that */
    enum access access;
    bool is_writable, is_write_only;

    int fd; /* FILE, CHUNKS: owned, opened for exactly what the array is used for; else -1 */
    uint64_t offset_bytes; /* FILE: of element 0 */
    int table_fd;          /* CHUNKS: owned; else -1 */
    /* CHUNKS: of the table. PROVIDER: as which it is stored; n_chunks 0: not known. */
    int64_t chunk_shape[ARRAY_MAX_NDIM];
    uint64_t n_chunks;

    /* PROVIDER: a function of the program's own makes its blocks, which may take for ever; so many
     * threads call it at once, at most. */
    bool may_hang, is_in_order; /* the latter: blocks are made once, in C order */
    unsigned n_threads;         /* 0: any number */

    const struct provider *provider; /* PROVIDER; for FILE: what to use when the daemon says
                                        use-provider (fd must stay open) */
    void *provider_state;

    uint64_t region_offset_bytes; /* REGION: in the arena's region `region` */
    struct region *region;
    void *data; /* REGION, MEMORY */

    /* Of a created output; NULL for sources. commit puts it in its place (once), discard undoes
     * (called at release when it was not committed). maker_free frees what the
     * maker keeps for the array (format_state, shared memory), always. */
    int (*commit)(struct gad_array *array, struct gad_error *error);
    void (*discard)(struct gad_array *array);
    void (*maker_free)(struct gad_array *array);
    /* Whether both commits would put something in the same place. Called with arrays of the same
     * function only. */
    bool (*is_same_target)(const struct gad_array *array, const struct gad_array *other);
    /* Both are outputs of one job, to which nothing was written yet: they may share what they are
     * committed to. NULL: they never do. The same. */
    int (*join)(struct gad_array *array, struct gad_array *other, struct gad_error *error);
    /* Of one that is written in place, after a job that did so: what its file says of the elements
     * beside them is made true again. NULL: nothing. */
    int (*written)(struct gad_array *array, struct gad_error *error);
    /* Of a source, after a job that was given it and before anything is made of the results:
     * whether what was read can be trusted. NULL: always. */
    int (*was_read)(struct gad_array *array, struct gad_error *error);
    void *format_state;
    bool is_committed;
};

/* A zeroed array with fds -1 and one reference; path is copied. NULL: no memory. */
struct gad_array *array_new(struct gad_client *client, const char *format, enum access access,
                            const char *path);
/* The end of making one: r 0 puts it into *ret_array, anything else releases it. Returns r. */
int array_settle(struct gad_array *array_take, int r, struct gad_array **ret_array) GAD_MUST_CHECK;
/* For errors: how the program named the source; NULL: not at all. */
void array_set_spec(struct gad_array *array, const char *spec);
/* Whether its first axis ends where its producer says so: it has the length GAD_UNKNOWN_LENGTH
 * until that is known. */
bool array_is_open(const struct gad_array *array);
/* The most rows that such an array may have, for who has to reckon with them; 0: a row alone is too
 * large, or has no elements. */
int64_t array_open_rows(const struct gad_array *array);
/* One more reference, undone by gad_array_release(). */
struct gad_array *array_ref(struct gad_array *array);
/* Its dtype, shape and strides as the protocol has them; no location. */
struct array array_described(const struct gad_array *array);
/* A new one, to which nothing is written but through this provider. */
void array_write_through(struct gad_array *array, const struct provider *provider, void *state);
/* From now on through its provider; false when it has none, or uses it already. */
bool array_use_provider(struct gad_array *array);
