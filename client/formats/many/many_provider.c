/* Blocks of many members.
 *
 * A block is cut where members end along the joined axis, and each piece is read from its member:
 *
 *     block   start 90, count 120 along axis 0
 *     members 0..100, 100..200, 200..300        pieces 90..100, 100..200, 200..210
 *
 * Where the joined axis is the first of the block that has several elements, pieces lie behind each
 * other in the block and are read into their places; otherwise a piece is read by itself, and its
 * rows are put between those of the others. A plain member is read by pread(), in one call where
 * the piece is in one piece there too; others by their format's provider, whose turn is kept where
 * it is one for one thread.
 *
 * Called by the pump, by several threads at once.
 */
#include "client/formats/chunked/packed_chunks.h"
#include "client/formats/files/file_provider.h"
#include "client/formats/files/file_source.h"
#include "client/formats/many/many_impl.h"
#include "proto/util.h"

#include <string.h>

struct piece {
    struct member *member;
    int64_t at;                                           /* in the block, along the joined axis */
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM]; /* of the member, in its axes */
    size_t n_bytes;
};

/* The last one that begins at or before an element. */
static struct member *find_member(const struct many *many, int64_t element)
{
    size_t low = 0, high = many->n_members;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (many->members[middle].first <= element)
            low = middle;
        else
            high = middle;
    }
    return &many->members[low];
}

/* The part of a block that a member has. */
static struct piece piece_of(const struct many *many, struct member *member, const int64_t *start,
                             const int64_t *count)
{
    int axis = many->axis;
    int64_t low = max_i64(start[axis], member->first);
    int64_t high = min_i64(start[axis] + count[axis], member->first + member->length);
    struct piece piece = {
        .member = member, .at = low - start[axis], .n_bytes = dtype_size(many->form.dtype)};
    for (int i = 0, own = 0; i < many->form.ndim; i++) {
        if (i == axis && many->is_new_axis)
            continue;
        piece.start[own] = i == axis ? low - member->first : start[i];
        piece.count[own] = i == axis ? high - low : count[i];
        piece.n_bytes *= (size_t)piece.count[own++];
    }
    return piece;
}

/* Whether a box of a member in C order is in one piece: behind the first axis that has several
 * elements of it, axes are whole. */
static bool is_run(const struct many *many, const struct piece *piece, uint64_t *ret_offset)
{
    const struct array *form = &many->form;
    int64_t stride = (int64_t)dtype_size(form->dtype), offset = 0;
    bool is_run = true, is_cut = false; /* cut: along an axis that is faster */
    for (int i = form->ndim - 1, own = many->member_ndim - 1; i >= 0; i--) {
        if (i == many->axis && many->is_new_axis)
            continue;
        int64_t length = i == many->axis ? piece->member->length : form->shape[i];
        is_run &= !is_cut || piece->count[own] == 1;
        is_cut |= piece->count[own] != length;
        offset += piece->start[own--] * stride;
        stride *= length;
    }
    *ret_offset = piece->member->offset_bytes + (uint64_t)offset;
    return is_run;
}

static void set_strides(struct gad_array *array, const int64_t *shape, bool is_fortran)
{
    int64_t stride = (int64_t)gad_dtype_size(array->info.dtype);
    for (int i = 0; i < array->info.ndim; i++) {
        int axis = is_fortran ? i : array->info.ndim - 1 - i;
        array->info.strides[axis] = stride;
        stride *= shape[axis];
    }
}

/* The box through the provider of files, which needs an array. */
static int read_box(const struct many *many, int fd, const struct piece *piece, void *ret_bytes)
{
    struct gad_array array = many->plain;
    int64_t shape[ARRAY_MAX_NDIM];
    array.fd = fd;
    array.offset_bytes = piece->member->offset_bytes;
    for (int i = 0, own = 0; i < many->form.ndim; i++)
        if (i != many->axis || !many->is_new_axis)
            shape[own++] = i == many->axis ? piece->member->length : many->form.shape[i];
    set_strides(&array, shape, piece->member->is_fortran);
    return file_provider.fill(&array, piece->start, piece->count, ret_bytes);
}

static int read_plain(const struct many *many, int fd, const struct piece *piece, void *ret_bytes)
{
    uint64_t offset;
    size_t n_bytes;
    if (piece->member->is_fortran || !is_run(many, piece, &offset))
        return read_box(many, fd, piece, ret_bytes);
    int r = file_read(fd, ret_bytes, piece->n_bytes, offset, &n_bytes);
    if (r < 0)
        return -r;
    return n_bytes == piece->n_bytes ? 0 : ENODATA;
}

static int read_array(struct opened *opened, const struct piece *piece, void *ret_bytes)
{
    const struct gad_array *array = opened->array;
    bool is_alone = !array->provider->is_concurrent;
    if (is_alone)
        pthread_mutex_lock(&opened->turn);
    int r = array->provider->fill(array->provider_state, piece->start, piece->count, ret_bytes);
    if (is_alone)
        pthread_mutex_unlock(&opened->turn);
    return r;
}

static void swap_bytes(void *bytes, size_t n_bytes, size_t item_bytes)
{
    char *at = bytes;
    for (size_t i = 0; i < n_bytes; i += item_bytes) {
        uint16_t two;
        uint32_t four;
        uint64_t eight;
        switch (item_bytes) {
        case 2:
            memcpy(&two, at + i, sizeof(two));
            two = __builtin_bswap16(two);
            memcpy(at + i, &two, sizeof(two));
            break;
        case 4:
            memcpy(&four, at + i, sizeof(four));
            four = __builtin_bswap32(four);
            memcpy(at + i, &four, sizeof(four));
            break;
        case 8:
            memcpy(&eight, at + i, sizeof(eight));
            eight = __builtin_bswap64(eight);
            memcpy(at + i, &eight, sizeof(eight));
            break;
        default: return;
        }
    }
}

static int read_piece(struct many *many, const struct piece *piece, void *ret_bytes)
{
    struct opened *opened;
    int r = many_acquire(many, piece->member, &opened);
    if (r)
        return r;
    r = opened->array ? read_array(opened, piece, ret_bytes)
                      : read_plain(many, opened->fd, piece, ret_bytes);
    if (r)
        return many_fail_read(many, opened, r);
    many_let_go(many, opened);
    if (piece->member->is_swapped != many->form.is_swapped)
        swap_bytes(ret_bytes, piece->n_bytes, dtype_size(many->form.dtype));
    return 0;
}

/* The block as rows, each of them all elements along the joined axis and those that are faster. */
struct rows {
    int64_t n;
    size_t element_bytes, row_bytes; /* of one element along the joined axis; of a row */
};

static struct rows rows_of(const struct many *many, const int64_t *count)
{
    struct rows rows = {.n = 1, .element_bytes = dtype_size(many->form.dtype)};
    for (int i = 0; i < many->axis; i++)
        rows.n *= count[i];
    for (int i = many->axis + 1; i < many->form.ndim; i++)
        rows.element_bytes *= (size_t)count[i];
    rows.row_bytes = rows.element_bytes * (size_t)count[many->axis];
    return rows;
}

static int fill_piece(struct many *many, const struct piece *piece, const struct rows *rows,
                      char *block, char **buffer)
{
    size_t n_bytes = piece->n_bytes / (size_t)rows->n;
    char *to = block + (size_t)piece->at * rows->element_bytes;
    if (rows->n == 1)
        return read_piece(many, piece, to);
    if (!*buffer && !(*buffer = malloc((size_t)rows->n * rows->row_bytes)))
        return ENOMEM;
    int r = read_piece(many, piece, *buffer);
    for (int64_t i = 0; i < rows->n && r == 0; i++)
        memcpy(to + (size_t)i * rows->row_bytes, *buffer + (size_t)i * n_bytes, n_bytes);
    return r;
}

static int fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    struct many *many = state;
    struct rows rows = rows_of(many, count);
    int64_t end = start[many->axis] + count[many->axis];
    _cleanup_free_ char *buffer = NULL;
    int r = 0;
    if (rows.n == 0 || rows.row_bytes == 0)
        return 0;
    struct member *member = find_member(many, start[many->axis]);
    const struct member *behind = many->members + many->n_members;
    for (; member < behind && member->first < end && r == 0; member++) {
        if (member->length == 0)
            continue;
        struct piece piece = piece_of(many, member, start, count);
        r = fill_piece(many, &piece, &rows, ret_block, &buffer);
    }
    return r;
}

/* Elsewhere ------------------------------------------------------------------------------------ */

/* From the axes of a member to those of the result. */
static int shift_part(const struct many *many, const struct member *member,
                      struct packed_part *part)
{
    int axis = many->axis;
    if (part->is_stream && axis != 0)
        return ENOTSUP;
    for (int k = 0; k < part->ndim; k++)
        part->to_axis[k] += many->is_new_axis && part->to_axis[k] >= axis;
    part->origin[axis] += member->first;
    if (!part->is_stream || !many->is_new_axis)
        return 0;
    if (part->stride_bytes != part->row_bytes)
        return ENOTSUP;
    part->row_bytes *= (uint64_t)part->n_rows; /* all of it is one row */
    part->stride_bytes = part->row_bytes;
    part->n_rows = 1;
    return 0;
}

static int locate_member(struct many *many, struct member *member, struct packed_chunks *packed)
{
    uint32_t first = packed->n_parts;
    struct opened *opened;
    if (member->length == 0)
        return 0;
    if (member->is_plain || member->is_swapped != many->form.is_swapped)
        return ENOTSUP;
    int r = many_acquire(many, member, &opened);
    if (r)
        return r;
    const struct gad_array *array = opened->array;
    r = array && array->provider->locate ? array->provider->locate(array->provider_state, packed)
                                         : ENOTSUP;
    for (uint32_t i = first; i < packed->n_parts && r == 0; i++)
        r = shift_part(many, member, &packed->parts[i]);
    many_let_go(many, opened);
    return r;
}

static int locate(void *state, struct packed_chunks *packed)
{
    struct many *many = state;
    int r = 0;
    for (size_t i = 0; i < many->n_members && r == 0; i++)
        r = locate_member(many, &many->members[i], packed);
    return r;
}

const struct provider many_provider = {.is_concurrent = true,
                                       .fill = fill,
                                       .explain = many_explain,
                                       .watch = many_watch,
                                       .verify = many_verify,
                                       .locate = locate};
const struct provider many_provider_plain = {.is_concurrent = true,
                                             .is_quick = true,
                                             .fill = fill,
                                             .explain = many_explain,
                                             .watch = many_watch,
                                             .verify = many_verify};
