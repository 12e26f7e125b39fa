/* A provider over pread and pwrite.
 *
 * A block is a hyper-rectangle of the array, packed in C order of the array's axes; the file has
 * the array in any order. The axes are sorted by their stride in the file. Innermost axes
 * that the block covers whole are merged, so that what remains innermost is a run: elements that
 * are adjacent in the file. The runs are walked in file order:
 *
 *     file    ....[run 0]......[run 1]......[run 2]....
 *              \__ one span: read at once when the gaps are small __/
 *
 * An axis that goes downwards in the file is walked upwards, and downwards in the block.
 *
 * Where a run is adjacent in the block too (C order) it is read into its place; otherwise elements
 * are scattered from a bounce buffer. When runs are short and close together, reads take a whole
 * span of them with the gaps. Writes join runs only where there is no gap. A run longer than the
 * buffer is taken in pieces.
 *
 * Called by the pump's thread; the descriptor's position is not used.
 */
#include "client/formats/files/file_provider.h"
#include "client/formats/files/file_source.h"
#include "client/formats/strided.h"
#include "proto/util.h"

#include <string.h>

#define BOUNCE_BYTES    (256 * 1024)
#define SHORT_RUN_BYTES (32 * 1024)

struct axis {
    int64_t count;
    int64_t file_stride, block_stride; /* bytes */
};

struct walk {
    int fd;
    size_t item_bytes;
    uint64_t file_offset; /* of the block's first element */
    int n_axes;
    struct axis axes[ARRAY_MAX_NDIM + 1]; /* outermost in the file first; the last is the run */
    int64_t run_bytes;
    int64_t block_offset; /* of the block's element that comes first in the file */
};

/* An axis that repeats the same elements is walked outermost: inside it are whole runs. */
static int64_t rank(const struct axis *axis)
{
    return axis->file_stride > 0 ? axis->file_stride : INT64_MAX;
}

static void sort_axes(struct walk *walk)
{
    for (int i = 1; i < walk->n_axes; i++) {
        struct axis axis = walk->axes[i];
        int k = i;
        for (; k > 0 && rank(&walk->axes[k - 1]) < rank(&axis); k--)
            walk->axes[k] = walk->axes[k - 1];
        walk->axes[k] = axis;
    }
}

/* Merges neighbours that are one axis both in the file and in the block. */
static void merge_axes(struct walk *walk)
{
    int n = 0;
    for (int i = 0; i < walk->n_axes; i++) {
        struct axis *last = n ? &walk->axes[n - 1] : NULL;
        struct axis axis = walk->axes[i];
        if (last && last->file_stride == axis.count * axis.file_stride &&
            last->block_stride == axis.count * axis.block_stride) {
            axis.count *= last->count;
            *last = axis;
        } else {
            walk->axes[n++] = axis;
        }
    }
    walk->n_axes = n;
}

/* False when there are no elements. */
static bool walk_init(struct walk *walk, const struct gad_array *array, const int64_t *start,
                      const int64_t *count)
{
    int64_t block_stride = (int64_t)dtype_size((enum dtype)array->info.dtype);
    *walk = (struct walk){
        .fd = array->fd,
        .item_bytes = (size_t)block_stride,
        .file_offset = array->offset_bytes,
    };
    for (int i = array->info.ndim - 1; i >= 0; i--) {
        if (count[i] == 0)
            return false;
        struct axis axis = {count[i], array->info.strides[i], block_stride};
        walk->file_offset += (uint64_t)(start[i] * axis.file_stride);
        if (axis.file_stride < 0) {
            walk->file_offset += (uint64_t)((count[i] - 1) * axis.file_stride);
            walk->block_offset += (count[i] - 1) * block_stride;
            axis.file_stride = -axis.file_stride;
            axis.block_stride = -block_stride;
        }
        if (count[i] > 1)
            walk->axes[walk->n_axes++] = axis;
        block_stride *= count[i];
    }
    sort_axes(walk);
    merge_axes(walk);
    int64_t item = (int64_t)walk->item_bytes;
    if (walk->n_axes == 0 || walk->axes[walk->n_axes - 1].file_stride != item)
        walk->axes[walk->n_axes++] =
            (struct axis){.count = 1, .file_stride = item, .block_stride = item};
    walk->run_bytes = walk->axes[walk->n_axes - 1].count * item;
    return true;
}

static int read_all(int fd, void *buffer, size_t n_bytes, uint64_t offset)
{
    size_t n = 0;
    int r = file_read(fd, buffer, n_bytes, offset, &n);
    if (r < 0)
        return -r;
    return n == n_bytes ? 0 : ENODATA; /* the file has become shorter than the array */
}

/* One run, in pieces of the bounce buffer where its elements are not adjacent in the block. */
static int move_run(const struct walk *walk, uint64_t offset, char *block, char *bounce,
                    bool is_fill)
{
    const struct axis *run = &walk->axes[walk->n_axes - 1];
    int64_t item = (int64_t)walk->item_bytes;
    if (run->block_stride == item)
        return is_fill ? read_all(walk->fd, block, (size_t)walk->run_bytes, offset)
                       : -file_write(walk->fd, block, (size_t)walk->run_bytes, offset);
    int64_t piece = BOUNCE_BYTES / item;
    for (int64_t i = 0; i < run->count; i += piece) {
        int64_t n = run->count - i < piece ? run->count - i : piece;
        char *at = block + i * run->block_stride;
        size_t n_bytes = (size_t)(n * item);
        int r = 0;
        if (!is_fill)
            strided_copy(bounce, item, at, run->block_stride, n, walk->item_bytes);
        r = is_fill ? read_all(walk->fd, bounce, n_bytes, offset + (uint64_t)(i * item))
                    : -file_write(walk->fd, bounce, n_bytes, offset + (uint64_t)(i * item));
        if (r)
            return r;
        if (is_fill)
            strided_copy(at, run->block_stride, bounce, item, n, walk->item_bytes);
    }
    return 0;
}

/* How many neighbouring runs are worth one call; 1: each by itself. */
static int64_t runs_per_span(const struct walk *walk, bool is_fill)
{
    const struct axis *next = &walk->axes[walk->n_axes - 2];
    int64_t max_stride = is_fill ? 2 * walk->run_bytes + 4096 : walk->run_bytes;
    if (walk->run_bytes > SHORT_RUN_BYTES || next->file_stride > max_stride)
        return 1;
    if (next->file_stride == 0)
        return next->count;
    int64_t n = (BOUNCE_BYTES - walk->run_bytes) / next->file_stride + 1;
    return n < next->count ? n : next->count;
}

static int move_span(const struct walk *walk, uint64_t offset, char *block, char *bounce,
                     int64_t n_runs, bool is_fill)
{
    const struct axis *run = &walk->axes[walk->n_axes - 1], *next = run - 1;
    int64_t item = (int64_t)walk->item_bytes;
    size_t span = (size_t)((n_runs - 1) * next->file_stride + walk->run_bytes);
    int r = is_fill ? read_all(walk->fd, bounce, span, offset) : 0;
    if (r)
        return r;
    for (int64_t i = 0; i < n_runs; i++) {
        char *in_block = block + i * next->block_stride, *in_span = bounce + i * next->file_stride;
        if (is_fill)
            strided_copy(in_block, run->block_stride, in_span, item, run->count, walk->item_bytes);
        else
            strided_copy(in_span, item, in_block, run->block_stride, run->count, walk->item_bytes);
    }
    return is_fill ? 0 : -file_write(walk->fd, bounce, span, offset);
}

/* All runs along the second innermost axis. */
static int move_rows(const struct walk *walk, uint64_t offset, char *block, char *bounce,
                     bool is_fill)
{
    if (walk->n_axes == 1)
        return move_run(walk, offset, block, bounce, is_fill);
    const struct axis *next = &walk->axes[walk->n_axes - 2];
    int64_t step = runs_per_span(walk, is_fill);
    int r = 0;
    for (int64_t i = 0; i < next->count && r == 0; i += step) {
        int64_t n = next->count - i < step ? next->count - i : step;
        uint64_t at = offset + (uint64_t)(i * next->file_stride);
        char *to = block + i * next->block_stride;
        r = n > 1 ? move_span(walk, at, to, bounce, n, is_fill)
                  : move_run(walk, at, to, bounce, is_fill);
    }
    return r;
}

static int move_block(const struct gad_array *array, const int64_t *start, const int64_t *count,
                      char *block, bool is_fill)
{
    struct walk walk;
    if (!walk_init(&walk, array, start, count))
        return 0;
    _cleanup_free_ char *bounce = malloc(BOUNCE_BYTES);
    if (!bounce)
        return ENOMEM;
    int64_t index[ARRAY_MAX_NDIM] = {0};
    int n_outer = walk.n_axes > 2 ? walk.n_axes - 2 : 0;
    for (;;) {
        uint64_t offset = walk.file_offset;
        char *at = block + walk.block_offset;
        for (int i = 0; i < n_outer; i++) {
            offset += (uint64_t)(index[i] * walk.axes[i].file_stride);
            at += index[i] * walk.axes[i].block_stride;
        }
        int r = move_rows(&walk, offset, at, bounce, is_fill);
        if (r)
            return r;
        int i = n_outer - 1;
        for (; i >= 0 && ++index[i] == walk.axes[i].count; i--)
            index[i] = 0;
        if (i < 0)
            return 0;
    }
}

static int provider_fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    return move_block(state, start, count, ret_block, true);
}

static int provider_drain(void *state, const int64_t *start, const int64_t *count,
                          const void *block)
{
    return move_block(state, start, count, (char *)(uintptr_t)block, false);
}

const struct provider file_provider = {.fill = provider_fill, .drain = provider_drain};
