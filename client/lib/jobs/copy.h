/* Elements that only change their place, copied by this process. */
#pragma once

#include "client/array.h"

struct gad_job;

/* From one file to another: runs of elements that lie behind each other in both. */
struct copy {
    struct gad_array *source, *to; /* of the job */
    const char *source_name, *to_name;
    int n_axes; /* over the runs, the outermost first; in `to` they follow each other */
    int64_t counts[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM]; /* the latter of the source */
    uint64_t run_bytes, n_bytes, done_bytes, piece_bytes;
    int64_t began_ns, told_ms;
    void *buffer; /* NULL: the system copies by itself */
};

/* Whether the job, whose targets are made, may be and is nothing but a copy; then its copy is set
 * up, and goes on in copy_jobs(). */
bool copy_begin(struct gad_job *job);
/* A piece of one job of the client that copies, the oldest. False: none does. */
bool copy_jobs(struct gad_client *client);
bool copy_is_under_way(const struct gad_client *client);
void copy_deinit(struct copy *copy);
