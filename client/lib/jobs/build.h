/* From what a caller wants of a job to a request: locations, descriptors, rings. */
#pragma once

#include "client/lib/connection/client.h"
#include "client/lib/memory/feed.h"
#include "client/lib/jobs/journal.h"
#include "proto/request.h"

#define BUILD_INLINE_BYTES (768u * 1024u) /* of all inline arrays of one request together */

enum build_purpose {
    BUILD_RUN,
    BUILD_PLAN,   /* memory goes without a place, and no region is attached */
    BUILD_SHAPES, /* a plan of dtypes and shapes alone: nothing has a place */
};

/* What a request is made of. n_outputs entries of `to`: where output i really goes, NULL for one
 * that comes with the answer. */
struct build_source {
    const struct gad_job_options *options;
    struct gad_array *const *to;
    const char *key;               /* NULL: none */
    const struct journal *journal; /* NULL: none */
    bool settle;
    bool is_repeatable;  /* nothing that it reads is written over */
    uint64_t elapsed_ms; /* of its deadline: since it was submitted */
    uint64_t waited_ms;  /* of its queue time-out: it has not begun since then */
    enum build_purpose purpose;
};

struct build { /* zeroed, then build_init() */
    struct job_request request;
    int fds[FRAME_MAX_FDS];
    unsigned n_fds;
    struct feed *feeds; /* of the request's rings */
    char **texts;       /* of outputs whose expression is not the program's alone */
    void **packed;      /* of inline arrays that are not contiguous in memory */
    unsigned n_packed;
    uint64_t inline_bytes;
};

/* bad-argument, limit-exceeded, no-memory; those of regions and rings. */
int build_init(struct build *build, struct gad_client *client, const struct build_source *source,
               struct gad_error *error) GAD_MUST_CHECK;
/* What the daemon says has `?` where it has the length with which an open axis was planned; 0: none
 * is open. */
void build_restore_length(int64_t open_length, struct gad_error *error);
void build_restore_text(int64_t open_length, char *text);
void build_deinit(struct build *build); /* also after a failure; what was taken out is NULL, -1 */

/* What can be known of the options without the daemon: names, engine, priority, outputs. */
int build_check_options(const struct gad_job_options *options,
                        struct gad_error *error) GAD_MUST_CHECK;

/* Milliseconds between two calls of its progress function. */
uint32_t build_progress_ms(const struct gad_job_options *options);

/* Whether a source in memory travels in the message. */
bool build_is_small(const struct gad_array *array);
