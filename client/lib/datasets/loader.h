/* Loaders: who makes batches, and where they are meanwhile.
 *
 *     free --> being made --> ready (in order) --> held by the caller --> free
 *                        \--> (gad_loader_batch) -------^
 */
#pragma once

#include "client/lib/datasets/dataset.h"
#include "client/lib/datasets/transforms.h"
#include "client/lib/memory/region.h"
#include "client/rows/epoch_order.h"
#include "client/rows/gather.h"

#include <stdatomic.h>

enum part_kept { KEPT_NOT, KEPT_IN_MEMORY, KEPT_IN_SCRATCH };
enum load_plan { PLAN_DIRECT, PLAN_SCAN, PLAN_COPY, PLAN_RESIDENT };

#define N_KEPT_BATCHES 2u /* free ones that are for gad_loader_batch() */

struct gad_batch {
    struct gad_loader *loader;
    struct gad_batch *next; /* of those that are free, or ready */
    uint64_t k, epoch;
    int64_t n_rows;
    int64_t *rows;
    int64_t (*shapes)[GAD_MAX_NDIM]; /* of the parts */
    char *memory;
    struct gad_error error; /* status not 0: it could not be made */
};

struct loader_part {
    struct row_source *source;  /* of the dataset, or own */
    struct row_source own;      /* in memory or scratch space, once rows are there; or copied */
    enum part_kept kept;        /* where rows are to be brought before others are read */
    size_t offset_bytes;        /* in a batch's memory */
    size_t result_offset_bytes; /* of what the caller gets: the same but for some transforms */
    char *window;               /* of the plan scan */
    /* Bits of units, see damage.c; NULL: nothing is known. */
    uint8_t *is_readable, *is_damaged;
    struct gad_layout layout;    /* of what the caller gets, but for the shape */
    int64_t shape[GAD_MAX_NDIM]; /* of the most rows */
};

struct row_window { /* batches [first, end) of an epoch */
    uint64_t epoch, seed, first, end;
    uint8_t *failed; /* by row: 0, or 1 + the part that could not be read */
    int64_t *rows;
    int status; /* of all of them */
    struct gad_error error;
};

/* Rows of the batches that come next, found while those before them are copied. The maker's. */
struct coming_rows {
    const struct epoch_order *order; /* of what is being made */
    uint64_t next;                   /* the batch behind that */
    uint64_t epoch, seed, first, end, n_most;
    int64_t *rows; /* of batches [first, end) */
};

struct row_copier;

struct gad_loader {
    struct gad_dataset *dataset; /* NULL: the loader was freed, and only batches are left */
    unsigned n_parts, n_batches; /* the latter: batches for which there is memory */
    struct loader_part *parts;
    struct gad_batch *batches;
    struct gad_array *array; /* that has their memory, or: */
    struct region *region;
    struct transforms *transforms; /* NULL: there are none */
    struct row_copier *copier;     /* NULL: no rows are copied by another process */
    size_t batch_bytes;
    pid_t process;

    int64_t n_rows, batch_size;
    enum row_shuffle shuffle;
    bool drop_last, skips_errors;
    bool needs_copier; /* the plan direct was chosen as rows can be copied */
    uint32_t rank, world;
    uint64_t rank_rows; /* of a batch that is no shorter than others, at most */
    uint64_t group;     /* batches that are made together by the plan direct, at most */
    uint64_t ahead;     /* the caller's prefetch */
    uint64_t window;    /* batches of a window */
    uint64_t memory_bytes;
    _Atomic enum load_plan plan;
    char *scratch;

    bool is_prepared;              /* by who reads rows of the dataset */
    struct permuted_tables tables; /* the maker's */
    struct row_window filled;
    struct coming_rows coming;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    char note[256];  /* why the plan is not another one; "": nothing is to be said */
    unsigned n_refs; /* the caller's, and one for each batch that is held */
    pthread_t maker;
    bool has_maker, is_stopping;
    atomic_bool is_cancelled; /* what is being made is not wanted any more */
    uint64_t turn;            /* counts jumps: batches of an earlier one are thrown away */
    uint64_t seed, epoch;
    uint64_t next, to_make; /* batches of the epoch */
    uint64_t n_skipped;
    struct gad_batch *free, *ready, **ready_end;
    unsigned n_free, n_ready, n_making; /* the latter by the maker */
};

/* loader_plan.c: checks options and decides how rows are brought. */
int loader_plan(struct gad_loader *loader, const struct gad_loader_options *options,
                struct gad_error *error) GAD_MUST_CHECK;
const char *loader_plan_name(enum load_plan plan);

/* copied.c: whether short rows are brought where each is by itself, as they can be copied. */
bool loader_may_copy(const struct row_source *source);
/* Once there is memory for batches: of what plan and rows allow it. */
int loader_copy_rows(struct gad_loader *loader, struct gad_error *error) GAD_MUST_CHECK;
/* How many batches are read together now, and how many are made ahead. Under the lock. */
uint64_t loader_group(const struct gad_loader *loader);
uint64_t loader_most_ready(const struct gad_loader *loader);
/* By the maker, after batches were read: short rows that are not copied after all are read in
 * order, through a window, at whose end they may be copied again. */
void loader_review_plan(struct gad_loader *loader);

/* loader.c: to a batch of an epoch. seed NULL: it stays. */
int loader_jump(struct gad_loader *loader, const uint64_t *seed, uint64_t epoch, uint64_t next,
                struct gad_error *error) GAD_MUST_CHECK;

/* batches.c */
int batches_new(struct gad_loader *loader, struct gad_error *error) GAD_MUST_CHECK;
void batches_free(struct gad_loader *loader);
const struct region *batches_region(const struct gad_loader *loader);
/* Under the lock. */
struct gad_batch *batches_take(struct gad_loader *loader); /* a free one; NULL: there is none */
void batches_give(struct gad_loader *loader, struct gad_batch *batch);

/* rows_of_batch.c: the rows of this rank in batch k. ret_rows may be NULL. */
uint64_t loader_batch_rows(const struct gad_loader *loader, const struct epoch_order *order,
                           uint64_t k, int64_t *ret_rows);
uint64_t loader_n_batches(const struct gad_loader *loader);
/* By the maker: the same, which were found before, and finding those that come next. */
uint64_t loader_coming_rows(struct gad_loader *loader, const struct epoch_order *order, uint64_t k,
                            int64_t *ret_rows);
void loader_look_ahead(void *loader);

/* Where a part's rows are read to. */
char *batches_rows(const struct gad_batch *batch, unsigned part);

/* loader_transforms.c: after the plan, before there is memory. */
int loader_add_transforms(struct gad_loader *loader, const struct gad_loader_options *options,
                          struct gad_error *error) GAD_MUST_CHECK;
/* What went wrong is in the batch. */
void loader_transform(struct gad_loader *loader, const struct epoch_order *order,
                      struct gad_batch *batch);

/* fill.c: makes batches; what went wrong is in each of them. Not under the lock.
 * is_alone: one batch that somebody waits for: no window is filled for it. */
void loader_fill(struct gad_loader *loader, const struct epoch_order *order,
                 struct gad_batch *const *batches, uint64_t n, bool is_alone);
void loader_fill_deinit(struct gad_loader *loader);

/* damage.c: what a rank knows of rows that can be read, and a batch's error for those of others.
 * By who reads; -ENOMEM. */
int loader_note_read(struct gad_loader *loader, const int64_t *rows, uint64_t n,
                     const uint8_t *failed) GAD_MUST_CHECK;
void loader_check_others(struct gad_loader *loader, const struct epoch_order *order,
                         struct gad_batch *batch);

/* maker.c */
/* Brings rows that are to be kept where they are, once; a failure changes the plan. By who reads.
 */
void loader_prepare(struct gad_loader *loader);
int maker_start(struct gad_loader *loader, struct gad_error *error) GAD_MUST_CHECK; /* locked */
/* Under the lock, after a batch was taken or given back: if there is something to make now. A wake
 * for nothing costs more than the batch that is handed over. */
void maker_wake(struct gad_loader *loader);
void maker_stop(struct gad_loader *loader);
