/** gpuarrayd: batches of rows, in order or shuffled. Included by gpuarrayd.h.
 *
 *     struct gad_dataset_part parts[] = {{"x", x}, {"y", y}};
 *     struct gad_loader_options options = {.batch_size = 256, .shuffle = GAD_SHUFFLE_EXACT};
 *     if (gad_dataset_new(client, 2, parts, &dataset, &error) ||
 *         gad_loader_new(dataset, &options, &loader, &error)) ...
 *     while (gad_loader_next(loader, -1, &batch, &error) == GAD_OK && batch) {
 *         ... gad_batch_data(batch, 0) ...
 *         gad_batch_release(batch);
 *     }
 *
 * Row i of a dataset is element i along the first axis of each of its parts. Position p of an epoch
 * is row pi(p), where pi is a permutation of all rows that seed and epoch give: that of the
 * expression permutation(n, seed) in epoch 0. Nothing of the dataset's size is kept for it. Batch k
 * has positions [k * batch_size, (k + 1) * batch_size). Of `world` ranks each has its part of every
 * batch, and one behind the other they are the batch that one process has. What a batch has is a
 * function of data, seed, epoch, batch size and transforms alone: not of memory, plan, format or
 * ranks.
 *
 * How rows are brought is a plan, chosen by what they lie in:
 *
 *     direct    rows that can be read by themselves, straight into the batches that are made ahead
 *     scan      packed chunks, short rows: a window of rows is filled, for which each chunk is
 *               decoded once; the more memory, the fewer windows. Of a dataset with a client,
 *               chunks in local files (HDF5, Zarr, deflated npz; parts and globs of them) are
 *               decoded once for all loaders of the machine that read the same at the time, by a
 *               process of the daemon's (`gpuarrayctl info` shows it); where that is not to be had,
 *               by this process
 *     copy      packed chunks, where scratch space is allowed: decoded once, then direct
 *     resident  all rows are kept in memory
 *
 * Threads. Datasets and loaders are made and freed in their client's thread, and no job uses the
 * arrays of a dataset while one of its loaders lives, unless their format says that several may
 * read. Everything else may be called from any thread. Threads of the library read rows; none is
 * left after gad_loader_free(). A child of fork() has no use for its parent's loaders.
 */
#pragma once

#include "gpuarrayd.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gad_dataset;
struct gad_loader;
struct gad_batch;

#define GAD_MAX_PARTS 64

struct gad_dataset_part {
    const char *name;        /**< not empty, at most 63 characters, no other part's */
    struct gad_array *array; /**< kept until the dataset and its loaders are freed */
};

/** Makes a dataset of arrays with one length along their first axis.
 * client: in whose shared memory batches are, so that its jobs use them where they are; NULL: in
 * shared memory of their own.
 * n_parts, parts: 1 to GAD_MAX_PARTS; copied.
 * ret_dataset: the caller's, ended by gad_dataset_free().
 * GAD_BAD_SHAPE: first axes differ, or an array has none. GAD_BAD_DTYPE: an array that was opened
 * with GAD_MASK_AND_SCALE is packed, and there is no client, whose daemon unpacks batches. */
enum gad_status gad_dataset_new(struct gad_client *client, unsigned n_parts,
                                const struct gad_dataset_part *parts,
                                struct gad_dataset **ret_dataset, struct gad_error *error);
/** Frees a dataset; loaders that use it keep what they need.
 * dataset: NULL is allowed. */
void gad_dataset_free(struct gad_dataset *dataset);

/** The number of rows.
 * dataset: NULL has none. */
int64_t gad_dataset_length(const struct gad_dataset *dataset);

/** What a dataset is told by: 16 bytes that are the same for datasets of the same length, names,
 * dtypes and shapes, whatever their formats. dataset: not NULL; the bytes are its own. */
const uint8_t *gad_dataset_fingerprint(const struct gad_dataset *dataset);

enum gad_shuffle {
    GAD_SHUFFLE_NONE,
    GAD_SHUFFLE_EXACT,  /**< any order is possible */
    GAD_SHUFFLE_BLOCKS, /**< an approximation that reads less: blocks of 16 batches are in random
                             order, and the rows of 8 of them at a time are mixed */
};

/** What a part becomes, by an expression over the parts of the batch and arguments: a job of the
 * daemon for each batch, run when it is made ahead. Random functions need neither seed nor size:
 * they are seeded by the loader's seed, the epoch and the part, and numbered by the rows of the
 * dataset (struct gad_draws), so that a row has the same numbers in whichever batch it comes. */
struct gad_transform {
    const char *part;       /**< no other transform's; others see the part as it was read */
    const char *expression; /**< its result's first axis is the rows' */
};

struct gad_loader_options {
    int64_t batch_size; /**< rows of all ranks together, above 0 */
    enum gad_shuffle shuffle;
    uint64_t seed;
    bool drop_last;         /**< no batch that is shorter than the others */
    uint32_t rank, world;   /**< world 0: one rank; rank is below it */
    unsigned prefetch;      /**< batches made ahead, at least; 0: 2 */
    uint64_t memory_bytes;  /**< of rows in windows; 0: 256 MiB. Batches, 24 bytes for each row of a
                                 window (at most twice the memory), and parts that are small beside
                                 it come on top */
    const char *scratch;    /**< a folder for the plan copy; NULL: none */
    uint64_t scratch_bytes; /**< at most so many there; 0: what is free */
    const char *plan;       /**< NULL: the best; "direct", "scan", "copy", "resident": this one */
    bool skips_errors;      /**< batches that cannot be read are left out, and counted; the others
                                 stay where they are. By all ranks alike: once in its life each
                                 loader also tries the others' rows, of chunks one row each, unless
                                 it knows of them from its own */
    unsigned n_transforms, n_args;
    const struct gad_transform *transforms; /**< not NULL: the dataset has a client */
    const struct gad_argument *args; /**< that transforms name: numbers, and arrays in memory, which
                                          are copied */
    const char *engine; /**< where transforms are computed, as of struct gad_job_options: batches
                             are brought there and back. NULL: where it ends sooner */
};

/** Makes a loader, which stands at the first batch of epoch 0. Nothing is read yet.
 * dataset: not NULL.
 * options: not NULL; copied.
 * ret_loader: the caller's, ended by gad_loader_free().
 * GAD_BAD_ARGUMENT: an option is out of its range; memory_bytes are fewer than a batch has, or than
 * a plan that was asked for needs, or more than the machine has for rows that would take them (with
 * both numbers). Of a transform the statuses of gad_plan(), about its part; GAD_BAD_SHAPE also: its
 * first axis is not the rows', or it computes along them and there are several ranks. Connection
 * statuses where there are transforms. GAD_NO_SPACE: plan "copy", and there is too little scratch
 * space. GAD_NO_MEMORY. */
enum gad_status gad_loader_new(struct gad_dataset *dataset,
                               const struct gad_loader_options *options,
                               struct gad_loader **ret_loader, struct gad_error *error);
/** Ends its threads. Shared memory goes with the last batch that is released: of a dataset with a
 * client this, too, happens in the client's thread, before the client is closed.
 * loader: NULL is allowed. */
void gad_loader_free(struct gad_loader *loader);

/** Goes to the first batch of an epoch.
 * loader: not NULL. */
enum gad_status gad_loader_set_epoch(struct gad_loader *loader, uint64_t epoch,
                                     struct gad_error *error);
/** The epoch that the loader is in, as said or by a state. loader: NULL is in epoch 0. */
uint64_t gad_loader_epoch(const struct gad_loader *loader);
/** Batches of an epoch. loader: NULL has none. */
uint64_t gad_loader_length(const struct gad_loader *loader);
/** Batches that were left out, see skips_errors. loader: NULL has none. */
uint64_t gad_loader_skipped(const struct gad_loader *loader);

/** The next batch.
 * loader: not NULL.
 * timeout_ms: milliseconds; 0: only look, -1: for ever.
 * ret_batch: the caller's, ended by gad_batch_release(); NULL at the end of the epoch.
 * GAD_LIMIT_EXCEEDED: the caller holds all batches for which there is memory. GAD_TIMEOUT: it is
 * not ready yet. GAD_DATASET_CHANGED: a file is not what it was when it was opened.
 * GAD_PROVIDER_FAILED, GAD_SHORT_READ: rows of this batch cannot be read, with file, chunk and
 * rows; the next call goes on with the next batch. */
enum gad_status gad_loader_next(struct gad_loader *loader, int timeout_ms,
                                struct gad_batch **ret_batch, struct gad_error *error);
/** Batch k of the epoch, whatever comes next.
 * loader, ret_batch: as of gad_loader_next(). k: below gad_loader_length(), else GAD_BAD_INDEX.
 * The statuses of gad_loader_next(). */
enum gad_status gad_loader_batch(struct gad_loader *loader, uint64_t k,
                                 struct gad_batch **ret_batch, struct gad_error *error);

#define GAD_STATE_BYTES 512

/** Where the loader is, as JSON: behind the batches that gad_loader_next() has returned. The same
 * for all ranks, however many there are.
 * loader: not NULL. For the dataset's first state a few rows are read, once a window that is being
 * filled is full.
 * ret_state: GAD_STATE_BYTES; a text, with NULs behind it to the end. */
enum gad_status gad_loader_state(struct gad_loader *loader, char *ret_state,
                                 struct gad_error *error);

/** Goes there, of any rank and number of ranks.
 * loader: not NULL.
 * state: a text of gad_loader_state(), of a dataset with the same fingerprint in any format, with
 * this loader's batch size, shuffle and drop_last; the seed is then the state's.
 * GAD_BAD_ARGUMENT: it is another one's, or no state; or of other data: a few rows of each part are
 * compared, which follow from their number, as far as they can be read by little. Other differences
 * are not seen. GAD_DATASET_CHANGED: a part's files have the paths that they had, and other sizes
 * or times of writing. Files at other paths are another copy of the data where those rows are the
 * same. Where the state has no "files" or no "rows" any more, these are not compared. */
enum gad_status gad_loader_load_state(struct gad_loader *loader, const char *state,
                                      struct gad_error *error);

/** How rows are brought: plan, windows and parts, as lines of text.
 * loader: not NULL.
 * ret_text: heap text, to be freed. */
enum gad_status gad_loader_explain(struct gad_loader *loader, char **ret_text,
                                   struct gad_error *error);

/** The number of a batch in its epoch.
 * batch: not NULL. */
uint64_t gad_batch_index(const struct gad_batch *batch);

/** The epoch of a batch.
 * batch: not NULL. */
uint64_t gad_batch_epoch(const struct gad_batch *batch);

/** The number of rows that this rank has of a batch.
 * batch: not NULL. */
int64_t gad_batch_length(const struct gad_batch *batch);

/** Which rows of the dataset they are, gad_batch_length() of them.
 * batch: not NULL; they are its own. */
const int64_t *gad_batch_rows(const struct gad_batch *batch);

/** The elements of a part, in C order and this machine's byte order, writable, 64-byte aligned, in
 * shared memory.
 * batch: not NULL.
 * part: its number; NULL is returned where there is none. */
void *gad_batch_data(const struct gad_batch *batch, unsigned part);

/** What the elements of a part are.
 * batch: not NULL.
 * part: its number; GAD_BAD_ARGUMENT where there is none.
 * ret_layout: dtype and shape; the shape is the batch's own, strides are NULL. */
enum gad_status gad_batch_layout(const struct gad_batch *batch, unsigned part,
                                 struct gad_layout *ret_layout);

/** Gives its memory up for a later batch. From any thread, once.
 * batch: NULL is allowed. */
void gad_batch_release(struct gad_batch *batch);

#ifdef __cplusplus
}
#endif
