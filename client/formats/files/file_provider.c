/* A provider over pread and pwrite.
 *
 * A block is a hyper-rectangle of the array, packed in C order of the array's axes; the file has
 * the array in any order. The axes are sorted by their stride in the file and merged (proto/box.h),
 * so that the fastest is a run: elements that are adjacent in the file. The runs are walked in file
 * order:
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
 * Called by the pump's thread; the descriptor's position is not used. What lies in a file only once
 * it is unpacked brings bytes of its own (file_bytes_fill()).
 */
#include "client/formats/files/file_provider.h"
#include "client/formats/files/file_source.h"
#include "proto/box.h"
#include "proto/util.h"

#include <string.h>

#define BOUNCE_BYTES    (256 * 1024)
#define SHORT_RUN_BYTES (32 * 1024)

enum { IN_FILE, IN_BLOCK }; /* whose strides are which in the box */

struct walk {
    const struct file_bytes *bytes;
    size_t item_bytes;
    uint64_t file_offset; /* of the block's first element */
    struct box box;       /* fastest in the file first, which is the run */
    int64_t run_bytes;
    int64_t block_offset; /* of the block's element that comes first in the file */
};

/* An axis that repeats the same elements is walked outermost: inside it are whole runs. */
static int64_t rank(const struct box_axis *axis)
{
    return axis->strides[IN_FILE] > 0 ? axis->strides[IN_FILE] : INT64_MAX;
}

/* Into n axes, by their strides in the file. */
static void insert_axis(struct box_axis *axes, int n, struct box_axis axis)
{
    for (; n > 0 && rank(&axes[n - 1]) > rank(&axis); n--)
        axes[n] = axes[n - 1];
    axes[n] = axis;
}

/* False when there are no elements. */
static bool walk_init(struct walk *walk, const struct gad_array *array,
                      const struct file_bytes *bytes, const int64_t *start, const int64_t *count)
{
    struct box_axis axes[ARRAY_MAX_NDIM];
    int64_t item = (int64_t)dtype_size((enum dtype)array->info.dtype), block_stride = item;
    *walk = (struct walk){
        .bytes = bytes,
        .item_bytes = (size_t)item,
        .file_offset = array->offset_bytes,
    };
    for (int i = array->info.ndim - 1, n = 0; i >= 0; i--) {
        if (count[i] == 0)
            return false;
        int64_t file_stride = array->info.strides[i];
        bool is_down = file_stride < 0;
        walk->file_offset += (uint64_t)((start[i] + (is_down ? count[i] - 1 : 0)) * file_stride);
        walk->block_offset += is_down ? (count[i] - 1) * block_stride : 0;
        insert_axis(axes, n++,
                    (struct box_axis){count[i],
                                      {is_down ? -file_stride : file_stride,
                                       is_down ? -block_stride : block_stride}});
        block_stride *= count[i];
    }
    for (int i = 0; i < array->info.ndim; i++) {
        if (axes[i].count > 1 && axes[i].strides[IN_FILE] != item)
            box_need_axis(&walk->box, item, item);
        box_add(&walk->box, axes[i].count, axes[i].strides[IN_FILE], axes[i].strides[IN_BLOCK]);
    }
    box_need_axis(&walk->box, item, item);
    walk->run_bytes = walk->box.axes[0].count * item;
    return true;
}

static int read_bytes(const struct walk *walk, void *buffer, size_t n_bytes, uint64_t offset)
{
    return walk->bytes->read(walk->bytes->state, buffer, n_bytes, offset);
}

static int write_bytes(const struct walk *walk, const void *buffer, size_t n_bytes, uint64_t offset)
{
    return walk->bytes->write(walk->bytes->state, buffer, n_bytes, offset);
}

/* One run, in pieces of the bounce buffer where its elements are not adjacent in the block. */
static int move_run(const struct walk *walk, uint64_t offset, char *block, char *bounce,
                    bool is_fill)
{
    const struct box_axis *run = &walk->box.axes[0];
    int64_t item = (int64_t)walk->item_bytes;
    if (run->strides[IN_BLOCK] == item)
        return is_fill ? read_bytes(walk, block, (size_t)walk->run_bytes, offset)
                       : write_bytes(walk, block, (size_t)walk->run_bytes, offset);
    int64_t piece = BOUNCE_BYTES / item;
    for (int64_t i = 0; i < run->count; i += piece) {
        int64_t n = run->count - i < piece ? run->count - i : piece;
        char *at = block + i * run->strides[IN_BLOCK];
        size_t n_bytes = (size_t)(n * item);
        int r = 0;
        if (!is_fill)
            box_copy_line(bounce, item, at, run->strides[IN_BLOCK], n, walk->item_bytes);
        r = is_fill ? read_bytes(walk, bounce, n_bytes, offset + (uint64_t)(i * item))
                    : write_bytes(walk, bounce, n_bytes, offset + (uint64_t)(i * item));
        if (r)
            return r;
        if (is_fill)
            box_copy_line(at, run->strides[IN_BLOCK], bounce, item, n, walk->item_bytes);
    }
    return 0;
}

/* How many neighbouring runs are worth one call; 1: each by itself. */
static int64_t runs_per_span(const struct walk *walk, bool is_fill)
{
    const struct box_axis *next = &walk->box.axes[1];
    int64_t max_stride = is_fill ? 2 * walk->run_bytes + 4096 : walk->run_bytes;
    if (walk->run_bytes > SHORT_RUN_BYTES || next->strides[IN_FILE] > max_stride)
        return 1;
    if (next->strides[IN_FILE] == 0)
        return next->count;
    int64_t n = (BOUNCE_BYTES - walk->run_bytes) / next->strides[IN_FILE] + 1;
    return n < next->count ? n : next->count;
}

static int move_span(const struct walk *walk, uint64_t offset, char *block, char *bounce,
                     int64_t n_runs, bool is_fill)
{
    const struct box_axis *run = &walk->box.axes[0], *next = run + 1;
    int64_t item = (int64_t)walk->item_bytes;
    size_t span = (size_t)((n_runs - 1) * next->strides[IN_FILE] + walk->run_bytes);
    int r = is_fill ? read_bytes(walk, bounce, span, offset) : 0;
    if (r)
        return r;
    for (int64_t i = 0; i < n_runs; i++) {
        char *in_block = block + i * next->strides[IN_BLOCK],
             *in_span = bounce + i * next->strides[IN_FILE];
        if (is_fill)
            box_copy_line(in_block, run->strides[IN_BLOCK], in_span, item, run->count,
                          walk->item_bytes);
        else
            box_copy_line(in_span, item, in_block, run->strides[IN_BLOCK], run->count,
                          walk->item_bytes);
    }
    return is_fill ? 0 : write_bytes(walk, bounce, span, offset);
}

/* All runs along the second innermost axis. */
static int move_rows(const struct walk *walk, uint64_t offset, char *block, char *bounce,
                     bool is_fill)
{
    if (walk->box.n == 1)
        return move_run(walk, offset, block, bounce, is_fill);
    const struct box_axis *next = &walk->box.axes[1];
    int64_t step = runs_per_span(walk, is_fill);
    int r = 0;
    for (int64_t i = 0; i < next->count && r == 0; i += step) {
        int64_t n = next->count - i < step ? next->count - i : step;
        uint64_t at = offset + (uint64_t)(i * next->strides[IN_FILE]);
        char *to = block + i * next->strides[IN_BLOCK];
        r = n > 1 ? move_span(walk, at, to, bounce, n, is_fill)
                  : move_run(walk, at, to, bounce, is_fill);
    }
    return r;
}

static int move_block(const struct gad_array *array, const struct file_bytes *bytes,
                      const int64_t *start, const int64_t *count, char *block, bool is_fill)
{
    struct walk walk;
    if (!walk_init(&walk, array, bytes, start, count))
        return 0;
    _cleanup_free_ char *bounce = malloc(BOUNCE_BYTES);
    if (!bounce)
        return ENOMEM;
    struct box_place place = {.index = {0}};
    int n_inner = walk.box.n > 1 ? 2 : 1, r;
    do
        r = move_rows(&walk, walk.file_offset + (uint64_t)place.offset[IN_FILE],
                      block + walk.block_offset + place.offset[IN_BLOCK], bounce, is_fill);
    while (r == 0 && box_next(walk.box.axes + n_inner, walk.box.n - n_inner, &place));
    return r;
}

int file_bytes_fill(const struct gad_array *array, const struct file_bytes *bytes,
                    const int64_t *start, const int64_t *count, void *ret_block)
{
    return move_block(array, bytes, start, count, ret_block, true);
}

static int read_file(void *state, void *buffer, size_t n_bytes, uint64_t offset)
{
    const struct gad_array *array = state;
    size_t n = 0;
    int r = file_read(array->fd, buffer, n_bytes, offset, &n);
    if (r < 0)
        return -r;
    return n == n_bytes ? 0 : ENODATA; /* the file has become shorter than the array */
}

static int write_file(void *state, const void *buffer, size_t n_bytes, uint64_t offset)
{
    const struct gad_array *array = state;
    return -file_write(array->fd, buffer, n_bytes, offset);
}

static int provider_fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    const struct file_bytes bytes = {.read = read_file, .state = state};
    return move_block(state, &bytes, start, count, ret_block, true);
}

static int provider_drain(void *state, const int64_t *start, const int64_t *count,
                          const void *block)
{
    const struct file_bytes bytes = {.write = write_file, .state = state};
    return move_block(state, &bytes, start, count, (char *)(uintptr_t)block, false);
}

const struct provider file_provider = {.fill = provider_fill, .drain = provider_drain};
