/* The table of an array's packed chunks, and what each has of which rows.
 *
 *     grid      element e of the selection along an axis is source element start + e * step, which
 *               lies in chunk (start + e * step) / chunk length of that axis
 *     stream    row r is bytes begin + r * stride .. + row_bytes of what is unpacked, chunk c is
 *               bytes c * chunk_bytes .. of it
 *
 * Formats say what their own axes are in the array; several sources as one array shift them. Only
 * packed_lay() knows the array's shape, and with it where elements go in a row.
 *
 * Called by providers, and by those who fill rows from what others have decoded.
 */
#include "client/formats/chunked/packed_chunks.h"
#include "proto/util.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MAX_FILES (1u << 14)
#define MAX_KINDS 64u

void packed_chunks_deinit(struct packed_chunks *packed)
{
    for (uint32_t i = 0; i < packed->n_files; i++)
        free(packed->files[i].path);
    for (uint32_t i = 0; i < packed->n_folders; i++)
        close(packed->folders[i]);
    free(packed->files);
    free(packed->folders);
    free(packed->kinds);
    free(packed->parts);
    free(packed->chunks);
    *packed = (struct packed_chunks){.n_files = 0};
}

/* Adding --------------------------------------------------------------------------------------- */

/* Room for one more of n, which grows by doubling. NULL: no memory. */
static void *grow(void *items, uint64_t n, size_t item_bytes)
{
    return n & (n - 1) ? items : realloc(items, (n ? 2 * n : 1) * item_bytes);
}

#define ADD(packed, list, n, item)                                                                 \
    ({                                                                                             \
        void *more_ = grow((packed)->list, (packed)->n, sizeof(*(packed)->list));                  \
        if (more_) {                                                                               \
            (packed)->list = more_;                                                                \
            (packed)->list[(packed)->n++] = (item);                                                \
        }                                                                                          \
        more_ ? 0 : ENOMEM;                                                                        \
    })

int packed_add_file(struct packed_chunks *packed, int folder_fd, const char *path,
                    const struct stat *st, uint32_t *ret_file)
{
    struct packed_file file = {.folder_fd = folder_fd, .st = *st};
    if (packed->n_files == MAX_FILES || !S_ISREG(st->st_mode))
        return ENOTSUP;
    file.path = strdup(path);
    if (!file.path)
        return ENOMEM;
    *ret_file = packed->n_files;
    int r = ADD(packed, files, n_files, file);
    if (r)
        free(file.path);
    return r;
}

int packed_add_folder(struct packed_chunks *packed, int fd, int *ret_folder_fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return errno;
    *ret_folder_fd = copy;
    int r = ADD(packed, folders, n_folders, copy);
    if (r)
        close(copy);
    return r;
}

static bool is_same_kind(const struct codec_packing *a, const struct codec_packing *b)
{
    bool is_same = a->is_stream == b->is_stream && a->pipeline.n_steps == b->pipeline.n_steps;
    for (unsigned i = 0; i < a->pipeline.n_steps && is_same; i++) {
        const struct codec_step *of_a = &a->pipeline.steps[i], *of_b = &b->pipeline.steps[i];
        is_same = of_a->codec == of_b->codec && of_a->n_values == of_b->n_values &&
                  of_a->is_optional == of_b->is_optional && of_a->dtype == of_b->dtype &&
                  of_a->stored == of_b->stored &&
                  memcmp(&of_a->scale, &of_b->scale, sizeof(of_a->scale)) == 0 &&
                  memcmp(&of_a->offset, &of_b->offset, sizeof(of_a->offset)) == 0 &&
                  memcmp(of_a->values, of_b->values, of_a->n_values * sizeof(*of_a->values)) == 0;
    }
    return is_same;
}

int packed_add_kind(struct packed_chunks *packed, const struct codec_packing *kind,
                    uint32_t *ret_kind)
{
    for (uint32_t i = 0; i < packed->n_kinds; i++)
        if (is_same_kind(&packed->kinds[i], kind)) {
            *ret_kind = i;
            return 0;
        }
    if (packed->n_kinds == MAX_KINDS)
        return ENOTSUP;
    *ret_kind = packed->n_kinds;
    return ADD(packed, kinds, n_kinds, *kind);
}

int packed_add_chunk(struct packed_chunks *packed, const struct packed_chunk *chunk)
{
    if (packed->n_chunks == PACKED_MAX_CHUNKS)
        return ENOTSUP;
    return ADD(packed, chunks, n_chunks, *chunk);
}

int packed_add_part(struct packed_chunks *packed, const struct packed_part *part)
{
    struct packed_part whole = *part;
    whole.n_chunks = packed->n_chunks - part->first_chunk;
    return ADD(packed, parts, n_parts, whole);
}

/* Laying --------------------------------------------------------------------------------------- */

static int lay_part(struct packed_part *part, int ndim, const int64_t *strides)
{
    part->first_row = part->origin[0];
    part->row_axis = -1;
    part->offset_bytes = 0;
    for (int i = 1; i < ndim; i++)
        part->offset_bytes += part->origin[i] * strides[i];
    for (int k = 0; k < part->ndim; k++) {
        int to = part->to_axis[k];
        part->to_strides[k] = to > 0 ? strides[to] : 0;
        if (to == 0)
            part->row_axis = k;
    }
    return part->is_stream && part->offset_bytes ? ENOTSUP : 0;
}

int packed_lay(struct packed_chunks *packed, int ndim, const int64_t *shape, size_t item_bytes)
{
    int64_t strides[ARRAY_MAX_NDIM];
    bool is_packed = false;
    packed->item_bytes = item_bytes;
    array_c_strides(ndim, shape, (int64_t)item_bytes, strides);
    for (uint32_t i = 0; i < packed->n_parts; i++) {
        int r = lay_part(&packed->parts[i], ndim, strides);
        if (r)
            return r;
    }
    for (uint32_t i = 0; i < packed->n_kinds; i++)
        is_packed |= packed->kinds[i].is_stream || packed->kinds[i].pipeline.n_steps > 0;
    return is_packed ? 0 : ENOTSUP;
}

/* Rows ----------------------------------------------------------------------------------------- */

static const struct packed_part *part_of(const struct packed_chunks *packed, uint64_t index)
{
    uint32_t low = 0, high = packed->n_parts;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (packed->parts[middle].first_chunk <= index)
            low = middle;
        else
            high = middle;
    }
    return &packed->parts[low];
}

/* The chunk's place along each axis, in the source's chunks. */
static void place_of(const struct packed_part *part, uint64_t index, int64_t *ret_place)
{
    index -= part->first_chunk;
    for (int k = part->ndim - 1; k >= 0; k--) {
        ret_place[k] = part->low[k] + (int64_t)(index % (uint64_t)part->n_of[k]);
        index /= (uint64_t)part->n_of[k];
    }
}

static void lay_stream(uint64_t index, struct packed_piece *piece)
{
    const struct packed_part *part = piece->part;
    uint64_t low = (index - part->first_chunk) * part->chunk_bytes, high = low + part->chunk_bytes;
    uint64_t begin = part->begin_bytes, n = (uint64_t)part->n_rows;
    uint64_t first = low < begin + part->row_bytes
                         ? 0
                         : (low - begin - part->row_bytes) / part->stride_bytes + 1;
    uint64_t end = high <= begin ? 0 : (high - begin - 1) / part->stride_bytes + 1;
    first = min_u64(first, n);
    piece->first_row = part->first_row + (int64_t)first;
    piece->end_row = part->first_row + (int64_t)max_u64(min_u64(end, n), first);
    piece->low_bytes = low;
    piece->high_bytes = high;
}

static void lay_grid(uint64_t index, int64_t item_bytes, struct packed_piece *piece)
{
    const struct packed_part *part = piece->part;
    int64_t place[ARRAY_MAX_NDIM];
    place_of(part, index, place);
    piece->first_row = part->first_row;
    piece->end_row = part->first_row + 1;
    piece->to_bytes = part->offset_bytes;
    piece->from_bytes = piece->row_stride = 0;
    piece->box.n = 0;
    for (int k = part->ndim - 1; k >= 0; k--) {
        const struct selection_axis *axis = &part->axes[k];
        int64_t first, end;
        selection_meet(axis, place[k] * part->chunk_shape[k], part->chunk_shape[k], &first, &end);
        end = max_i64(min_i64(end, axis->count), first);
        piece->to_bytes += first * part->to_strides[k];
        piece->from_bytes +=
            (axis->start + first * axis->step - place[k] * part->chunk_shape[k]) * part->strides[k];
        if (k == part->row_axis) {
            piece->row_stride = axis->step * part->strides[k];
            piece->first_row = part->first_row + first;
            piece->end_row = part->first_row + end;
        } else if (first == end) { /* a step that goes over the chunk */
            piece->end_row = piece->first_row;
            return;
        } else {
            box_add(&piece->box, end - first, part->to_strides[k], axis->step * part->strides[k]);
        }
    }
    piece->run_bytes = (size_t)box_take_run(&piece->box, item_bytes);
}

void packed_piece_of(const struct packed_chunks *packed, uint64_t index,
                     struct packed_piece *ret_piece)
{
    ret_piece->part = part_of(packed, index);
    if (ret_piece->part->is_stream)
        lay_stream(index, ret_piece);
    else
        lay_grid(index, (int64_t)packed->item_bytes, ret_piece);
}

static void copy_from_stream(const struct packed_piece *piece, const char *elements, int64_t row,
                             char *ret_row)
{
    const struct packed_part *part = piece->part;
    uint64_t begin = part->begin_bytes + (uint64_t)(row - part->first_row) * part->stride_bytes;
    uint64_t from = max_u64(begin, piece->low_bytes);
    uint64_t to = min_u64(begin + part->row_bytes, piece->high_bytes);
    memcpy(ret_row + (from - begin), elements + (from - piece->low_bytes), to - from);
}

void packed_copy(const struct packed_piece *piece, const void *elements, int64_t row, char *ret_row)
{
    if (piece->part->is_stream) {
        copy_from_stream(piece, elements, row, ret_row);
        return;
    }
    const char *from =
        (const char *)elements + piece->from_bytes + (row - piece->first_row) * piece->row_stride;
    char *to = ret_row + piece->to_bytes;
    if (piece->box.n == 0) {
        memcpy(to, from, piece->run_bytes);
        return;
    }
    struct box lines = piece->box; /* copying uses it up */
    box_copy(&lines, to, from, piece->run_bytes, false);
}
