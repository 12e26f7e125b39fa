/* An array as rows along its first axis, whatever it lies in. */
#pragma once

#include "client/array.h"

#include <pthread.h>

struct row_source;
struct row_order;
struct row_target;
struct gather_options;
struct row_failure;
typedef int row_bringer(void *state, struct row_source *source, const struct row_order *order,
                        const struct row_target *target, const struct gather_options *options,
                        struct row_failure *ret_failure);

struct row_source {
    struct gad_array *array; /* a reference */
    int64_t n_rows;
    size_t row_bytes, item_bytes;
    /* Rows [k * unit_rows, (k + 1) * unit_rows) are read at about the cost of any one of them: a
     * row of chunks. 1: each row is read by itself. */
    int64_t unit_rows;
    bool is_chunked;    /* none of a unit's rows can be read where one of them cannot */
    bool is_packed;     /* units are decoded, or made by a program */
    bool is_plain;      /* each row is in one piece of a file or of memory */
    bool is_concurrent; /* several threads read at once */
    pthread_mutex_t turn;
    /* Who brings wanted rows instead, as gather() does (gather.h): a process that decodes for
     * several. NULL: this process reads. The state is that one's. */
    row_bringer *bring;
    void *bring_state;
    bool brings_any_order; /* rows are as welcome as they came (row_order.h) as sorted */
};

/* `name` is the error's argument. bad-shape: no axis; bad-argument: it is for writing. */
int row_source_init(struct row_source *ret_source, struct gad_array *array, const char *name,
                    struct gad_error *error) GAD_MUST_CHECK;
void row_source_deinit(struct row_source *source); /* zeroed is allowed */

/* Rows [first, first + n) as they are stored, packed in C order. By several threads at once. 0 or a
 * positive errno. */
int row_source_read(struct row_source *source, int64_t first, int64_t n,
                    void *ret_rows) GAD_MUST_CHECK;
/* Its array's files, see array.h: watch and verify. dataset-changed; no-memory, io-error. */
int row_source_watch(struct row_source *source, const char *name, struct file_sums *sums,
                     struct gad_error *error) GAD_MUST_CHECK;
int row_source_verify(struct row_source *source, const char *name,
                      struct gad_error *error) GAD_MUST_CHECK;
/* Rows that could not be read, as an error; they are read once more, so that it is of them.
 * error_number: what reading them said; 0: what it says now. ESTALE is dataset-changed. Nobody
 * reads meanwhile. Returns its status. */
int row_source_explain(struct row_source *source, int64_t first, int64_t n, int error_number,
                       const char *name, struct gad_error *error);

/* The rows around one that cannot be read which cannot either, as far as they go together. */
void row_source_unreadable(struct row_source *source, int64_t row, int64_t *ret_first,
                           int64_t *ret_n);

/* Brings rows to this machine's byte order, if they are not. */
void row_source_order_bytes(const struct row_source *source, void *rows, size_t n_bytes);

/* Arrays without a client, which own what they lie in: packed rows of the source's dtype and shape
 * in memory of malloc(), or in a file. NULL: no memory; nothing was taken. */
struct gad_array *row_source_in_memory(const struct row_source *source, void *memory_take);
struct gad_array *row_source_in_file(const struct row_source *source, int fd_take);
