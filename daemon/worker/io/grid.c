/* Arrays that lie in a file as a grid of chunks, as HDF5 stores them: sources only.
 *
 * Where each chunk is stands in a table that the client made (a sealed memfd, 16 bytes a chunk). A
 * table may have many millions of entries, so it is neither mapped nor copied: entries are read
 * when they are needed, a few at a time into memory of our own, and checked there before use. A
 * chunk has its full size, lies inside the file and is C-ordered; one that was never written reads
 * as zeros.
 *
 * A box goes chunk by chunk: the part of the box in that chunk is a strided box of the file, with
 * its place in the dense box in the slot.
 */
#include "daemon/worker/io/boxio.h"
#include "daemon/worker/io/port.h"
#include "proto/util.h"

#include <fcntl.h>
#include <sys/stat.h>

#define ENTRIES_AT_ONCE 64

/* A few entries of the table, and where they begin. */
struct entries {
    uint64_t first, n;
    struct chunk_entry at[ENTRIES_AT_ONCE];
};

static int table_failed(const struct port *p, struct gad_error *error, uint64_t chunk,
                        const char *what)
{
    return error_set(error, GAD_BAD_CHUNK_TABLE, p->name, "chunk %llu: %s",
                     (unsigned long long)chunk, what);
}

static int entries_load(const struct port *p, struct entries *e, uint64_t chunk,
                        struct gad_error *error)
{
    uint64_t n = min_u64(ENTRIES_AT_ONCE, p->array.at.file.n_chunks - chunk);
    size_t n_bytes = n * sizeof(e->at[0]);
    for (size_t done = 0; done < n_bytes;) {
        ssize_t got = pread(p->file.table_fd, (char *)e->at + done, n_bytes - done,
                            (off_t)(chunk * sizeof(e->at[0]) + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return table_failed(p, error, chunk, "the table ends before its entry");
        done += (size_t)got;
    }
    e->first = chunk;
    e->n = n;
    return 0;
}

/* Where a chunk is; *ret_offset -1 when it was never written. */
static int chunk_find(const struct port *p, struct entries *e, uint64_t chunk, int64_t *ret_offset,
                      struct gad_error *error)
{
    if (chunk < e->first || chunk - e->first >= e->n) {
        int r = entries_load(p, e, chunk, error);
        if (r)
            return r;
    }
    const struct chunk_entry *entry = &e->at[chunk - e->first];
    *ret_offset = -1;
    if (entry->offset_bytes == CHUNK_ABSENT)
        return 0;
    if (entry->size_bytes != (uint64_t)p->file.chunk_bytes) {
        table_failed(p, error, chunk, "its size is not that of a whole chunk");
        error_expected(error, "%lld bytes", (long long)p->file.chunk_bytes);
        error_found(error, "%llu bytes", (unsigned long long)entry->size_bytes);
        return GAD_BAD_CHUNK_TABLE;
    }
    if (entry->offset_bytes > (uint64_t)(INT64_MAX - p->file.chunk_bytes))
        return table_failed(p, error, chunk, "its offset is not in any file");
    int64_t end = (int64_t)entry->offset_bytes + p->file.chunk_bytes;
    if (end > p->file.size_bytes) {
        error_set(error, GAD_SHORT_READ, p->name, "the file ends before chunk %llu does",
                  (unsigned long long)chunk);
        error_expected(error, "%lld bytes", (long long)end);
        error_found(error, "%lld bytes", (long long)p->file.size_bytes);
        return GAD_SHORT_READ;
    }
    *ret_offset = (int64_t)entry->offset_bytes;
    return 0;
}

/* The part of the box in the chunk at grid place `at`: b's offset relative to the chunk, and its
 * place in memory relative to the box. */
static void chunk_part(const struct port *p, const struct port_box *box, const int64_t *at,
                       const int64_t *memory_strides, struct boxio *b, int64_t *ret_memory)
{
    b->offset = 0;
    b->box.n = 0;
    *ret_memory = 0;
    for (int i = p->array.ndim - 1; i >= 0; i--) {
        int64_t length = p->array.at.file.chunk_shape[i];
        int64_t begin = at[i] * length;
        int64_t low = begin > box->start[i] ? begin : box->start[i];
        int64_t box_end = box->start[i] + box->count[i];
        int64_t high = box_end - begin < length ? box_end : begin + length;
        box_add(&b->box, high - low, p->file.chunk_strides[i], memory_strides[i]);
        b->offset += (low - begin) * p->file.chunk_strides[i];
        *ret_memory += (low - box->start[i]) * memory_strides[i];
    }
}

/* The next chunk of the box in C order of the grid; false after the last. */
static bool next_chunk(const struct port *p, const struct port_box *box, int64_t *at)
{
    for (int i = p->array.ndim - 1; i >= 0; i--) {
        int64_t length = p->array.at.file.chunk_shape[i];
        if (++at[i] <= (box->start[i] + box->count[i] - 1) / length)
            return true;
        at[i] = box->start[i] / length;
    }
    return false;
}

static uint64_t chunk_number(const struct port *p, const int64_t *at)
{
    uint64_t number = 0;
    for (int i = 0; i < p->array.ndim; i++)
        number = number * (uint64_t)p->file.grid[i] + (uint64_t)at[i];
    return number;
}

static int grid_fill_view(const struct port *p, const struct port_box *box,
                          const struct engine_view *view, const struct port_io *io,
                          struct gad_error *error)
{
    struct boxio b = {.fd = p->file.fd,
                      .is_in_memory = p->file.is_in_memory,
                      .device = p->file.device,
                      .name = p->name,
                      .item_bytes = p->item_bytes};
    struct entries entries;
    entries.first = entries.n = 0;
    char *memory = view->base;
    int64_t at[ARRAY_MAX_NDIM];
    for (int i = 0; i < p->array.ndim; i++)
        at[i] = box->start[i] / p->array.at.file.chunk_shape[i];
    do {
        int64_t chunk_offset, place;
        int r = chunk_find(p, &entries, chunk_number(p, at), &chunk_offset, error);
        if (r)
            return r;
        chunk_part(p, box, at, view->strides, &b, &place);
        if (chunk_offset < 0) {
            boxio_zero(&b, memory + place);
            continue;
        }
        b.offset += chunk_offset;
        r = boxio_read(&b, memory + place, io, error);
        if (r)
            return r;
    } while (next_chunk(p, box, at));
    return 0;
}

static int grid_fill(const struct port *p, const struct port_box *box, void *memory,
                     const struct port_io *io, struct gad_error *error)
{
    struct engine_view view;
    port_place_dense(p, box, memory, &view);
    return grid_fill_view(p, box, &view, io, error);
}

static void grid_prefetch(const struct port *p, const struct port_box *box)
{
    struct entries entries;
    entries.first = entries.n = 0;
    int64_t at[ARRAY_MAX_NDIM], offset;
    if (p->file.is_in_memory)
        return;
    for (int i = 0; i < p->array.ndim; i++)
        at[i] = box->start[i] / p->array.at.file.chunk_shape[i];
    do
        if (chunk_find(p, &entries, chunk_number(p, at), &offset, NULL) == 0 && offset >= 0)
            posix_fadvise(p->file.fd, offset, p->file.chunk_bytes, POSIX_FADV_WILLNEED);
    while (next_chunk(p, box, at));
}

static const struct port_ops grid_ops = {
    .capabilities = PORT_RANDOM | PORT_STAGED,
    .place = port_place_dense,
    .fill = grid_fill,
    .fill_view = grid_fill_view,
    .prefetch = grid_prefetch,
};

/* Chunk size, strides and grid out of the request's numbers; false when they do not fit. */
static bool grid_init(struct port *p, uint64_t *ret_n_chunks)
{
    const int64_t *chunk_shape = p->array.at.file.chunk_shape;
    int64_t n_chunks = 1, n_bytes = p->item_bytes;
    for (int i = p->array.ndim - 1; i >= 0; i--) {
        if (chunk_shape[i] <= 0)
            return false;
        p->file.grid[i] =
            p->array.shape[i] / chunk_shape[i] + (p->array.shape[i] % chunk_shape[i] != 0);
        p->file.chunk_strides[i] = n_bytes;
        if (mul_overflows_i64(n_bytes, chunk_shape[i], &n_bytes) ||
            mul_overflows_i64(n_chunks, p->file.grid[i], &n_chunks))
            return false;
    }
    p->file.chunk_bytes = n_bytes;
    *ret_n_chunks = (uint64_t)n_chunks;
    return true;
}

static int table_open(struct port *p, const struct port_context *context, struct gad_error *error)
{
    struct stat st;
    if (p->array.at.file.table_fd_index >= context->n_fds)
        return error_set(error, GAD_BAD_DESCRIPTOR, p->name, "the chunk table was not sent");
    p->file.table_fd = context->fds[p->array.at.file.table_fd_index];
    int seals = fcntl(p->file.table_fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(p->file.table_fd, &st) < 0)
        return error_set(error, GAD_BAD_CHUNK_TABLE, p->name,
                         "the chunk table must be a memfd sealed against shrinking");
    uint64_t n_bytes = p->array.at.file.n_chunks * sizeof(struct chunk_entry);
    if ((uint64_t)st.st_size < n_bytes) {
        error_set(error, GAD_BAD_CHUNK_TABLE, p->name, "the chunk table is too short");
        error_expected(error, "%llu bytes", (unsigned long long)n_bytes);
        error_found(error, "%lld bytes", (long long)st.st_size);
        return GAD_BAD_CHUNK_TABLE;
    }
    return 0;
}

int port_open_grid(struct port *p, const struct port_context *context, struct gad_error *error)
{
    uint64_t n_chunks;
    if (context->is_output)
        return error_set(error, GAD_BAD_REQUEST, p->name, "an output cannot be a grid of chunks");
    int r = port_file_init(p, context, p->array.at.file.fd_index, error);
    if (r)
        return r;
    p->ops = &grid_ops;
    if (!grid_init(p, &n_chunks))
        return error_set(error, GAD_BAD_CHUNK_TABLE, p->name, "the chunk shape is not usable");
    if (n_chunks != p->array.at.file.n_chunks ||
        n_chunks > INT64_MAX / sizeof(struct chunk_entry)) {
        error_set(error, GAD_BAD_CHUNK_TABLE, p->name, "the table is not of this grid");
        error_expected(error, "%llu chunks", (unsigned long long)n_chunks);
        error_found(error, "%llu chunks", (unsigned long long)p->array.at.file.n_chunks);
        return GAD_BAD_CHUNK_TABLE;
    }
    return table_open(p, context, error);
}
