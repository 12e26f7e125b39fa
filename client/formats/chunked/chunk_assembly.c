/* Assembling chunks.
 *
 * Blocks of an output come in the order in which the daemon computes them, each once, or again
 * where a job was begun again after its worker was lost. So a chunk has a bit for each of its
 * elements: it is whole when all bits are set, however often some of them came.
 *
 * Memory for elements is bounded. A chunk that is begun when there is none left lies in a file
 * without a name beside the output: what comes of it is written to its place there, and read once,
 * when it is whole. That happens only where the chunks' shape is across the order of computing.
 *
 * Called by chunk_sink.c; the file also by chunk_order.c.
 */
#include "client/formats/chunked/chunk_assembly.h"
#include "client/formats/files/file_source.h"
#include "proto/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIRST_TABLE 64u        /* a power of two */
#define IN_MEMORY   UINT64_MAX /* for a place */

int chunk_assembly_init(struct chunk_assembly *assembly, const struct chunk_grid *grid,
                        const int64_t *shape, size_t item_bytes, uint64_t most_bytes,
                        const char *folder)
{
    uint64_t n_elements = grid->chunk_bytes / item_bytes;
    *assembly = (struct chunk_assembly){
        .grid = grid,
        .shape = shape,
        .item_bytes = item_bytes,
        .elements_bytes = grid->chunk_bytes,
        .has_bytes = (size_t)(n_elements + 63) / 64 * 8,
        .most_in_memory = max_u64(most_bytes / grid->chunk_bytes, 1),
        .table = calloc(FIRST_TABLE, sizeof(*assembly->table)),
        .n_table = FIRST_TABLE,
        .folder = folder,
        .spill_fd = -1,
    };
    pthread_mutex_init(&assembly->lock, NULL);
    return assembly->table ? 0 : -ENOMEM;
}

static void free_chunk(struct assembled_chunk *chunk)
{
    free(chunk->elements);
    free(chunk->has);
    free(chunk);
}

void chunk_assembly_deinit(struct chunk_assembly *assembly)
{
    for (uint64_t i = 0; assembly->table && i < assembly->n_table; i++) {
        while (assembly->table[i]) {
            struct assembled_chunk *chunk = assembly->table[i];
            assembly->table[i] = chunk->next;
            free_chunk(chunk);
        }
    }
    free_ptr(&assembly->table);
    free_ptr(&assembly->free_places);
    close_fd(&assembly->spill_fd);
    pthread_mutex_destroy(&assembly->lock);
}

/* Elements of a chunk that are inside the array. */
static uint64_t n_inside(const struct chunk_assembly *assembly, uint64_t index)
{
    int64_t place[ARRAY_MAX_NDIM];
    uint64_t n = 1;
    chunk_grid_start(assembly->grid, index, place);
    for (int i = 0; i < assembly->grid->ndim; i++) {
        int64_t left = assembly->shape[i] - place[i], length = assembly->grid->chunk_shape[i];
        n *= (uint64_t)(left < length ? left : length);
    }
    return n;
}

/* n: elements that are inside. */
static bool is_cut(const struct chunk_assembly *assembly, uint64_t n)
{
    return assembly->is_open || n < assembly->elements_bytes / assembly->item_bytes;
}

/* The file ------------------------------------------------------------------------------------- */

int chunk_spill_open(const char *folder)
{
    char path[PATH_MAX];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    if ((size_t)snprintf(path, sizeof(path), "%s/.gpuarrayd-XXXXXX", folder) >= sizeof(path))
        return -1;
    fd = mkostemp(path, O_CLOEXEC); /* where the file system has no files without a name */
    if (fd >= 0)
        unlink(path);
    return fd;
}

static int open_spill(struct chunk_assembly *assembly)
{
    if (assembly->spill_fd < 0)
        assembly->spill_fd = chunk_spill_open(assembly->folder);
    return assembly->spill_fd >= 0 ? 0 : errno;
}

static int take_place(struct chunk_assembly *assembly, uint64_t *ret_place)
{
    int r = open_spill(assembly);
    if (r)
        return r;
    *ret_place = assembly->n_free_places > 0 ? assembly->free_places[--assembly->n_free_places]
                                             : assembly->n_places++;
    return 0;
}

/* A place that cannot be noted is not used again. */
static void give_place(struct chunk_assembly *assembly, uint64_t place)
{
    if (assembly->n_free_places == assembly->free_room) {
        uint64_t room = assembly->free_room ? 2 * assembly->free_room : 64;
        uint64_t *more = realloc(assembly->free_places, room * sizeof(*more));
        if (!more)
            return;
        assembly->free_places = more;
        assembly->free_room = room;
    }
    assembly->free_places[assembly->n_free_places++] = place;
}

static int write_piece(const struct chunk_assembly *assembly, const struct assembled_chunk *chunk,
                       struct box *box, int64_t first, const char *from)
{
    struct box_place place = {.index = {0}};
    uint64_t base = chunk->place * assembly->elements_bytes + (uint64_t)first;
    size_t run = (size_t)box_take_run(box, (int64_t)assembly->item_bytes);
    do {
        int r = file_write(assembly->spill_fd, from + place.offset[1], run,
                           base + (uint64_t)place.offset[0]);
        if (r < 0)
            return -r;
    } while (box_next(box->axes, box->n, &place));
    return 0;
}

/* The place may have had another chunk: what is beyond the array is zero. */
static void clear_beyond(const struct chunk_assembly *assembly, struct assembled_chunk *chunk)
{
    uint64_t n = assembly->elements_bytes / assembly->item_bytes;
    for (uint64_t e = 0; e < n; e++)
        if (!(chunk->has[e / 64] >> e % 64 & 1))
            memset(chunk->elements + e * assembly->item_bytes, 0, assembly->item_bytes);
}

static int read_whole(const struct chunk_assembly *assembly, struct assembled_chunk *chunk)
{
    size_t n_bytes;
    chunk->elements = malloc(assembly->elements_bytes);
    if (!chunk->elements)
        return ENOMEM;
    int r = file_read(assembly->spill_fd, chunk->elements, assembly->elements_bytes,
                      chunk->place * assembly->elements_bytes, &n_bytes);
    if (r < 0)
        return -r;
    if (n_bytes < assembly->elements_bytes) /* the file's end: nothing was written there */
        memset(chunk->elements + n_bytes, 0, assembly->elements_bytes - n_bytes);
    if (is_cut(assembly, n_inside(assembly, chunk->index)))
        clear_beyond(assembly, chunk);
    return 0;
}

/* The table; under the lock -------------------------------------------------------------------- */

static struct assembled_chunk **slot_of(const struct chunk_assembly *assembly, uint64_t index)
{
    uint64_t hash = index * UINT64_C(0x9e3779b97f4a7c15) >> 20;
    return &assembly->table[hash & (assembly->n_table - 1)];
}

static struct assembled_chunk *find(const struct chunk_assembly *assembly, uint64_t index)
{
    struct assembled_chunk *chunk = *slot_of(assembly, index);
    while (chunk && chunk->index != index)
        chunk = chunk->next;
    return chunk;
}

/* Without memory for a larger one it stays as it is. */
static void grow_table(struct chunk_assembly *assembly)
{
    struct assembled_chunk **old = assembly->table;
    uint64_t n_old = assembly->n_table;
    if (assembly->n_begun < n_old)
        return;
    assembly->table = calloc(2 * n_old, sizeof(*assembly->table));
    if (!assembly->table) {
        assembly->table = old;
        return;
    }
    assembly->n_table = 2 * n_old;
    for (uint64_t i = 0; i < n_old; i++) {
        while (old[i]) {
            struct assembled_chunk *chunk = old[i], **slot = slot_of(assembly, chunk->index);
            old[i] = chunk->next;
            chunk->next = *slot;
            *slot = chunk;
        }
    }
    free(old);
}

static void take_out(struct chunk_assembly *assembly, struct assembled_chunk *chunk)
{
    struct assembled_chunk **at = slot_of(assembly, chunk->index);
    while (*at != chunk)
        at = &(*at)->next;
    *at = chunk->next;
    assembly->n_begun--;
}

/* In memory while there is some. */
static int place_elements(struct chunk_assembly *assembly, struct assembled_chunk *chunk)
{
    if (assembly->n_in_memory >= assembly->most_in_memory)
        return take_place(assembly, &chunk->place);
    chunk->place = IN_MEMORY;
    chunk->elements = is_cut(assembly, chunk->n_left) ? calloc(1, assembly->elements_bytes)
                                                      : malloc(assembly->elements_bytes);
    if (!chunk->elements)
        return ENOMEM;
    assembly->n_in_memory++;
    return 0;
}

static int begin(struct chunk_assembly *assembly, uint64_t index,
                 struct assembled_chunk **ret_chunk)
{
    struct assembled_chunk *chunk = calloc(1, sizeof(*chunk));
    if (!chunk)
        return ENOMEM;
    chunk->index = index;
    chunk->n_left = n_inside(assembly, index);
    chunk->has = calloc(1, assembly->has_bytes);
    int r = chunk->has ? place_elements(assembly, chunk) : ENOMEM;
    if (r) {
        free_chunk(chunk);
        return r;
    }
    grow_table(assembly);
    struct assembled_chunk **slot = slot_of(assembly, index);
    chunk->next = *slot;
    *slot = chunk;
    assembly->n_begun++;
    *ret_chunk = chunk;
    return 0;
}

static int take(struct chunk_assembly *assembly, uint64_t index, struct assembled_chunk **ret_chunk)
{
    pthread_mutex_lock(&assembly->lock);
    struct assembled_chunk *chunk = find(assembly, index);
    int r = chunk ? 0 : begin(assembly, index, &chunk);
    if (r == 0)
        chunk->n_users++;
    pthread_mutex_unlock(&assembly->lock);
    *ret_chunk = chunk;
    return r;
}

/* Sets n bits from bit `first` on; returns how many of them were not set. */
static uint64_t set_bits(uint64_t *bits, uint64_t first, uint64_t n)
{
    uint64_t n_new = 0;
    while (n > 0) {
        unsigned at = (unsigned)(first % 64);
        uint64_t here = 64 - at < n ? 64 - at : n;
        uint64_t mask = (here == 64 ? ~UINT64_C(0) : (UINT64_C(1) << here) - 1) << at;
        n_new += (uint64_t)__builtin_popcountll(mask & ~bits[first / 64]);
        bits[first / 64] |= mask;
        first += here;
        n -= here;
    }
    return n_new;
}

static uint64_t note_box(struct assembled_chunk *chunk, struct box *box, int64_t first,
                         size_t item_bytes)
{
    struct box_place place = {.index = {0}};
    uint64_t n_new = 0, run = (uint64_t)box_take_run(box, (int64_t)item_bytes) / item_bytes;
    do
        n_new += set_bits(chunk->has, (uint64_t)(first + place.offset[0]) / item_bytes, run);
    while (box_next(box->axes, box->n, &place));
    return n_new;
}

/* Returns whether it is whole now, and nobody else copies into it. */
static bool note(struct chunk_assembly *assembly, struct assembled_chunk *chunk, struct box *box,
                 int64_t first, bool was_copied)
{
    pthread_mutex_lock(&assembly->lock);
    if (was_copied)
        chunk->n_left -= note_box(chunk, box, first, assembly->item_bytes);
    bool is_whole = chunk->n_left == 0 && chunk->n_users == 1 && was_copied;
    if (is_whole)
        take_out(assembly, chunk);
    else
        chunk->n_users--;
    pthread_mutex_unlock(&assembly->lock);
    return is_whole;
}

/* The caller's side ---------------------------------------------------------------------------- */

int chunk_assembly_add(struct chunk_assembly *assembly, uint64_t index, const struct box *box,
                       int64_t first, const void *from, struct assembled_chunk **ret_whole)
{
    struct assembled_chunk *chunk;
    struct box copied = *box, noted = *box;
    *ret_whole = NULL;
    int r = take(assembly, index, &chunk);
    if (r)
        return r;
    if (chunk->elements)
        box_copy(&copied, chunk->elements + first, from, assembly->item_bytes, false);
    else
        r = write_piece(assembly, chunk, &copied, first, from);
    /* For the bits a run is one in the chunk, however it lies in the block. */
    for (int i = 0; i < noted.n; i++)
        noted.axes[i].strides[1] = noted.axes[i].strides[0];
    if (!note(assembly, chunk, &noted, first, r == 0))
        return r;
    if (!chunk->elements)
        r = read_whole(assembly, chunk);
    if (r) {
        chunk_assembly_end(assembly, chunk);
        return r;
    }
    *ret_whole = chunk;
    return 0;
}

/* Nothing is missing of what is inside: when it was begun the first axis had no end. */
static bool is_whole_now(const struct chunk_assembly *assembly, const struct assembled_chunk *chunk)
{
    int64_t place[ARRAY_MAX_NDIM], length = assembly->grid->chunk_shape[0];
    chunk_grid_start(assembly->grid, chunk->index, place);
    int64_t n_rows =
        assembly->shape[0] - place[0] < length ? assembly->shape[0] - place[0] : length;
    uint64_t n = n_inside(assembly, chunk->index);
    return n_rows > 0 && chunk->n_left == n / (uint64_t)n_rows * (uint64_t)(length - n_rows);
}

int chunk_assembly_next_cut(struct chunk_assembly *assembly, struct assembled_chunk **ret_whole)
{
    struct assembled_chunk *chunk = NULL;
    *ret_whole = NULL;
    for (uint64_t i = 0; i < assembly->n_table && !*ret_whole; i++)
        for (chunk = assembly->table[i]; chunk && !*ret_whole; chunk = chunk->next)
            if (is_whole_now(assembly, chunk))
                *ret_whole = chunk;
    if (!*ret_whole)
        return 0;
    take_out(assembly, *ret_whole);
    int r = (*ret_whole)->elements ? 0 : read_whole(assembly, *ret_whole);
    if (r) {
        chunk_assembly_end(assembly, *ret_whole);
        *ret_whole = NULL;
    }
    return r;
}

void chunk_assembly_end(struct chunk_assembly *assembly, struct assembled_chunk *chunk)
{
    pthread_mutex_lock(&assembly->lock);
    if (chunk->place == IN_MEMORY)
        assembly->n_in_memory--;
    else
        give_place(assembly, chunk->place);
    pthread_mutex_unlock(&assembly->lock);
    free_chunk(chunk);
}
