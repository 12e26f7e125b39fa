/* What of a batch is computed from it: one job of the daemon for each part that has a transform.
 *
 * Jobs go over a connection of their own, so that the thread that makes batches has it to itself.
 * What a batch lies in is made with that connection's client. One thread at a time, but for
 * transforms_run().
 */
#pragma once

#include "client/gpuarrayd-dataset.h"
#include "proto/error.h"

#include <stdbool.h>

struct transforms;

/* A part as it is read: shape[0] rows are the most of a batch. */
struct transforms_part {
    const char *name;
    enum gad_dtype dtype;
    int ndim;
    const int64_t *shape;
    const struct gad_array
        *packed; /* whose scale and offset texts are to see applied; NULL: none's */
};

struct transforms_options {
    unsigned n_parts, n_texts, n_args;
    const struct transforms_part *parts;
    const struct gad_transform *texts; /* names in them: the parts, and args */
    const struct gad_argument *args;   /* numbers, and arrays in memory, which are copied */
    int64_t last_rows;                 /* of a batch that has fewer; 0: there is none */
    bool is_shared;                    /* a batch is made in several parts, by several ranks */
    const char *engine;                /* NULL: any */
};

/* What a part becomes. */
struct transforms_result {
    enum gad_dtype dtype;
    int ndim;
    int64_t shape[GAD_MAX_NDIM];
    bool is_apart; /* it goes to memory of its own; false: to where the part is, or there is none */
};

/* bad-argument, unknown-name, bad-shape; the statuses of gad_connect() and gad_plan(). The error's
 * argument is the part. */
int transforms_new(struct gad_client *client, const struct transforms_options *options,
                   struct transforms **ret_transforms, struct gad_error *error) GAD_MUST_CHECK;
struct transforms *transforms_free(struct transforms *transforms); /* NULL */

/* Whose arrays batches are. Such arrays are released before transforms_free(). */
struct gad_client *transforms_client(struct transforms *transforms);
const struct transforms_result *transforms_result(const struct transforms *transforms,
                                                  unsigned part);

struct transforms_batch {
    int64_t n_rows;
    const int64_t *rows; /* which ones of the dataset they are */
    uint64_t seed, epoch;
    struct gad_array *array; /* of transforms_client(), in shared memory */
    /* For each part the bytes at which it is there, and its result; the same where that is not
     * apart. */
    const size_t *from, *to;
};

/* Computes all of them; each sees the parts as they were read. What a job fails with. */
int transforms_run(struct transforms *transforms, const struct transforms_batch *batch,
                   struct gad_error *error) GAD_MUST_CHECK;
