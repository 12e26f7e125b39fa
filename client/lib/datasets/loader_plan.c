/* What a loader does, from its options: sizes are checked, and a plan chosen by what rows cost.
 *
 * Parts that are small beside the memory (labels) are kept in it, so that the others decide. Rows
 * that are packed are decoded once for each window, so the window is as large as it may be, and all
 * windows of the same size; where scratch space is allowed and more than one window is needed,
 * decoding once and writing costs less. Long rows that can be read by themselves need no window at
 * all: the batches that are made ahead are one.
 */
#include "client/lib/datasets/loader.h"
#include "client/rows/kept.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_MEMORY  (UINT64_C(256) << 20)
#define DEFAULT_AHEAD   2u
#define MAX_AHEAD       1024u
#define MAX_BATCH_SIZE  (INT64_C(1) << 31)
#define DIRECT_BYTES    (UINT64_C(64) << 20)
#define SMALL_PART      16u  /* this share of the memory is little */
#define LONG_ROW_BYTES  2048 /* of a file: worth reading by itself, wherever it is */
#define BATCH_ALIGNMENT 64u
#define ROW_COST_BYTES  25u  /* of a row in a window: its number, its place in the order, a mark */
#define BLOCKS_WINDOW   128u /* batches whose rows are mixed; see epoch_order.c */

static const char *const plan_names[] = {
    [PLAN_DIRECT] = "direct",
    [PLAN_SCAN] = "scan",
    [PLAN_COPY] = "copy",
    [PLAN_RESIDENT] = "resident",
};

const char *loader_plan_name(enum load_plan plan)
{
    return plan_names[plan];
}

static int bad_option(struct gad_error *error, const char *name, const char *expected,
                      uint64_t found)
{
    error_set(error, GAD_BAD_ARGUMENT, name, "%s is out of its range", name);
    error_expected(error, "%s", expected);
    error_found(error, "%" PRIu64, found);
    return GAD_BAD_ARGUMENT;
}

static int check_options(const struct gad_loader_options *options, struct gad_error *error)
{
    uint32_t world = options->world ? options->world : 1;
    if (options->batch_size < 1 || options->batch_size >= MAX_BATCH_SIZE) {
        error_set(error, GAD_BAD_ARGUMENT, "batch_size", "batch_size is out of its range");
        error_expected(error, "1 to %" PRId64 " rows", MAX_BATCH_SIZE - 1);
        error_found(error, "%" PRId64, options->batch_size);
        return GAD_BAD_ARGUMENT;
    }
    if (options->rank >= world)
        return bad_option(error, "rank", "a number below world", options->rank);
    if ((unsigned)options->shuffle > GAD_SHUFFLE_BLOCKS)
        return bad_option(error, "shuffle", "an enum gad_shuffle", options->shuffle);
    if (options->prefetch > MAX_AHEAD)
        return bad_option(error, "prefetch", "at most 1024 batches", options->prefetch);
    return 0;
}

/* ret_plan: the wanted one; -1: none is. */
static int read_plan(const struct gad_loader_options *options, int *ret_plan,
                     struct gad_error *error)
{
    *ret_plan = -1;
    for (unsigned i = 0; options->plan && i < ARRAY_LENGTH(plan_names); i++)
        if (strcmp(options->plan, plan_names[i]) == 0)
            *ret_plan = (int)i;
    if (options->plan && *ret_plan < 0) {
        error_set(error, GAD_BAD_ARGUMENT, "plan", "'%.60s' is no plan", options->plan);
        error_expected(error, "direct, scan, copy or resident");
        error_found(error, "%.60s", options->plan);
        return GAD_BAD_ARGUMENT;
    }
    if (*ret_plan == PLAN_COPY && !options->scratch) {
        error_set(error, GAD_BAD_ARGUMENT, "scratch", "the plan copy needs scratch space");
        error_expected(error, "a folder");
        error_found(error, "nothing");
        return GAD_BAD_ARGUMENT;
    }
    return 0;
}

/* Sizes ---------------------------------------------------------------------------------------- */

/* Batches whose rows have room in so many bytes, and cost at most twice as many besides. */
static uint64_t batches_in(const struct gad_loader *loader, uint64_t n_bytes, uint64_t batch_bytes)
{
    uint64_t half_cost = max_u64(loader->rank_rows, 1) * ROW_COST_BYTES / 2;
    return max_u64(min_u64(n_bytes / batch_bytes, n_bytes / half_cost), 1);
}

static uint64_t part_bytes(const struct loader_part *part)
{
    return (uint64_t)part->source->n_rows * part->source->row_bytes;
}

static int too_little_memory(struct gad_error *error, uint64_t memory, uint64_t needed,
                             const char *what)
{
    error_set(error, GAD_BAD_ARGUMENT, "memory_bytes",
              "%s has %" PRIu64 " bytes, for which a memory of %" PRIu64 " is too little", what,
              needed, memory);
    error_expected(error, "%" PRIu64 " bytes", needed);
    error_found(error, "%" PRIu64 " bytes", memory);
    return GAD_BAD_ARGUMENT;
}

/* Bytes of one batch's rows; where each part is in its memory. */
static int lay_batch(struct gad_loader *loader, uint64_t *ret_row_bytes, struct gad_error *error)
{
    uint64_t size = min_u64((uint64_t)loader->batch_size, (uint64_t)loader->n_rows), n_bytes = 0;
    loader->rank_rows = (size + loader->world - 1) / loader->world;
    for (unsigned i = 0; i < loader->n_parts; i++) {
        struct loader_part *part = &loader->parts[i];
        uint64_t bytes;
        part->offset_bytes = loader->batch_bytes;
        if (__builtin_mul_overflow(loader->rank_rows, part->source->row_bytes, &bytes) ||
            bytes > INT64_MAX / (2 * GAD_MAX_PARTS * MAX_AHEAD))
            return too_little_memory(error, loader->memory_bytes, bytes, "a part of a batch");
        n_bytes += bytes;
        loader->batch_bytes += (size_t)round_up_u64(bytes, BATCH_ALIGNMENT);
    }
    loader->batch_bytes = (size_t)max_u64(loader->batch_bytes, BATCH_ALIGNMENT);
    *ret_row_bytes = max_u64(n_bytes, 1);
    if (n_bytes > loader->memory_bytes)
        return too_little_memory(error, loader->memory_bytes, n_bytes, "a batch");
    return 0;
}

/* Plans ---------------------------------------------------------------------------------------- */

/* Whether rows are read by themselves, wherever they are. */
static bool is_long(const struct row_source *source)
{
    return source->unit_rows == 1 &&
           (source->row_bytes >= LONG_ROW_BYTES || source->array->access == ACCESS_MEMORY ||
            source->array->access == ACCESS_REGION || loader_may_copy(source));
}

static uint64_t count_windows(const struct gad_loader *loader)
{
    return (max_u64(loader_n_batches(loader), 1) - 1) / loader->window + 1;
}

/* By the plan copy: rows that can be read by themselves are where they would be then. */
static bool is_copied(const struct loader_part *part)
{
    return part->source->unit_rows > 1 && !part->kept;
}

static bool has_copied(const struct gad_loader *loader)
{
    unsigned i = 0;
    while (i < loader->n_parts && !is_copied(&loader->parts[i]))
        i++;
    return i < loader->n_parts;
}

/* Whether what is packed has room in the scratch space. A status; a domain fault is a reason. */
static int check_scratch(struct gad_loader *loader, const struct gad_loader_options *options,
                         struct gad_error *error)
{
    _cleanup_fd_ int fd = -1;
    uint64_t n_bytes = 0;
    int r = rows_scratch_open(options->scratch, "scratch", &fd, error);
    if (r)
        return r;
    for (unsigned i = 0; i < loader->n_parts; i++)
        if (is_copied(&loader->parts[i]))
            n_bytes += part_bytes(&loader->parts[i]);
    uint64_t there = rows_scratch_free(fd);
    if (options->scratch_bytes > 0)
        there = min_u64(there, options->scratch_bytes);
    if (n_bytes <= there)
        return 0;
    error_set(error, GAD_NO_SPACE, "scratch",
              "no scratch space for the rows in %.100s: %" PRIu64 " bytes are needed, %" PRIu64
              " may be used",
              options->scratch, n_bytes, there);
    error_expected(error, "%" PRIu64 " bytes", n_bytes);
    error_found(error, "%" PRIu64 " bytes", there);
    return GAD_NO_SPACE;
}

static void keep_parts(struct gad_loader *loader, enum part_kept kept)
{
    for (unsigned i = 0; i < loader->n_parts; i++)
        if (loader->parts[i].kept == KEPT_NOT &&
            (kept == KEPT_IN_MEMORY || is_copied(&loader->parts[i])))
            loader->parts[i].kept = kept;
}

/* The plan for parts that are not small. */
static enum load_plan choose(struct gad_loader *loader, const struct gad_loader_options *options)
{
    struct gad_error error;
    uint64_t total = 0;
    bool needs_window = false, has_rest = false;
    for (unsigned i = 0; i < loader->n_parts; i++) {
        total += part_bytes(&loader->parts[i]);
        has_rest |= !loader->parts[i].kept;
        needs_window |= !loader->parts[i].kept && !is_long(loader->parts[i].source);
    }
    if (loader->shuffle == ROW_SHUFFLE_NONE)
        return PLAN_DIRECT;
    if (!has_rest || (needs_window && total <= loader->memory_bytes))
        return PLAN_RESIDENT;
    if (!needs_window)
        return PLAN_DIRECT;
    if (!options->scratch || !has_copied(loader) || loader->shuffle == ROW_SHUFFLE_BLOCKS ||
        count_windows(loader) < 2)
        return PLAN_SCAN;
    if (check_scratch(loader, options, &error) == 0)
        return PLAN_COPY;
    snprintf(loader->note, sizeof(loader->note), "not copied: %.200s", error.message);
    return PLAN_SCAN;
}

/* Windows and rows that are kept are this process's memory, not of the daemon's pool. */
static int check_machine(const struct gad_loader *loader, uint64_t needed, struct gad_error *error)
{
    uint64_t there = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (needed <= there || (loader->plan != PLAN_SCAN && loader->plan != PLAN_RESIDENT))
        return 0;
    error_set(error, GAD_BAD_ARGUMENT, "memory_bytes",
              "rows would take %" PRIu64 " bytes of memory, of which this machine has %" PRIu64,
              needed, there);
    error_expected(error, "at most %" PRIu64 " bytes", there);
    error_found(error, "%" PRIu64 " bytes", loader->memory_bytes);
    return GAD_BAD_ARGUMENT;
}

static int use_plan(struct gad_loader *loader, const struct gad_loader_options *options, int plan,
                    struct gad_error *error)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < loader->n_parts; i++) {
        struct loader_part *part = &loader->parts[i];
        total += part_bytes(part);
        if (loader->shuffle != ROW_SHUFFLE_NONE && plan != PLAN_DIRECT &&
            part_bytes(part) <= loader->memory_bytes / SMALL_PART && !is_long(part->source))
            part->kept = KEPT_IN_MEMORY;
    }
    if (plan == PLAN_RESIDENT && total > loader->memory_bytes)
        return too_little_memory(error, loader->memory_bytes, total, "the dataset");
    int r = plan == PLAN_COPY ? check_scratch(loader, options, error) : 0;
    if (r)
        return r;
    if (plan == PLAN_COPY && !has_copied(loader)) {
        plan = PLAN_DIRECT;
        snprintf(loader->note, sizeof(loader->note),
                 "nothing is copied: rows are read by themselves where they are");
    }
    loader->plan = plan < 0 ? choose(loader, options) : (enum load_plan)plan;
    for (unsigned i = 0; i < loader->n_parts && loader->plan == PLAN_DIRECT && plan < 0; i++)
        loader->needs_copier |= loader->shuffle != ROW_SHUFFLE_NONE && !loader->parts[i].kept &&
                                loader->parts[i].source->row_bytes < LONG_ROW_BYTES &&
                                loader_may_copy(loader->parts[i].source);
    r = check_machine(loader, min_u64(total, loader->memory_bytes), error);
    if (r)
        return r;
    if (loader->plan == PLAN_RESIDENT)
        keep_parts(loader, KEPT_IN_MEMORY);
    if (loader->plan == PLAN_COPY)
        keep_parts(loader, KEPT_IN_SCRATCH);
    return 0;
}

int loader_plan(struct gad_loader *loader, const struct gad_loader_options *options,
                struct gad_error *error)
{
    uint64_t row_bytes;
    int plan, r = check_options(options, error);
    if (r == 0)
        r = read_plan(options, &plan, error);
    if (r)
        return r;
    loader->batch_size = options->batch_size;
    loader->shuffle = (enum row_shuffle)options->shuffle;
    loader->drop_last = options->drop_last;
    loader->skips_errors = options->skips_errors;
    loader->rank = options->rank;
    loader->world = options->world ? options->world : 1;
    loader->seed = options->seed;
    loader->memory_bytes = options->memory_bytes ? options->memory_bytes : DEFAULT_MEMORY;
    r = lay_batch(loader, &row_bytes, error);
    if (r)
        return r;
    uint64_t n = max_u64(loader_n_batches(loader), 1);
    loader->window = min_u64(batches_in(loader, loader->memory_bytes, row_bytes), n);
    if (loader->shuffle == ROW_SHUFFLE_BLOCKS && loader->window > BLOCKS_WINDOW)
        loader->window -= loader->window % BLOCKS_WINDOW;
    else
        loader->window = (n - 1) / count_windows(loader) + 1; /* windows of one size */
    r = use_plan(loader, options, plan, error);
    if (r)
        return r;
    loader->ahead = options->prefetch ? options->prefetch : DEFAULT_AHEAD;
    loader->group = min_u64(
        batches_in(loader, min_u64(loader->memory_bytes, DIRECT_BYTES), loader->batch_bytes),
        min_u64(n, MAX_AHEAD));
    if (loader->plan == PLAN_SCAN)
        loader->group = 1;
    loader->n_batches = (unsigned)(max_u64(loader->ahead, loader->group) + 1 + N_KEPT_BATCHES);
    loader->scratch = options->scratch ? strdup(options->scratch) : NULL;
    return options->scratch && !loader->scratch ? -ENOMEM : 0;
}
