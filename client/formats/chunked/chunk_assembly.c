/* Assembling chunks.
 *
 * Blocks of an output come in the order in which the daemon computes them, each once, or again
 * where a job was begun again after its worker was lost. So a chunk has a bit for each of its
 * elements: it is whole when all bits are set, however often some of them came.
 *
 * Memory for chunks that are begun is bounded. When one more is wanted, the one that was used
 * longest ago makes room: its elements and bits go to a file without a name beside the output, and
 * come back with the next block that has a part of it. That happens only where the chunks' shape is
 * across the order of computing.
 *
 * Called by chunk_sink.c.
 */
#include "client/formats/chunked/chunk_assembly.h"
#include "client/formats/files/file_source.h"
#include "proto/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct spilled {
    bool is_used;
    uint64_t index, n_left;
};

int chunk_assembly_init(struct chunk_assembly *assembly, const struct chunk_grid *grid,
                        const int64_t *shape, size_t item_bytes, uint64_t most_bytes,
                        unsigned least_chunks, const char *folder)
{
    uint64_t n_elements = grid->chunk_bytes / item_bytes;
    *assembly = (struct chunk_assembly){
        .grid = grid,
        .shape = shape,
        .item_bytes = item_bytes,
        .elements_bytes = grid->chunk_bytes,
        .has_bytes = (size_t)(n_elements + 63) / 64 * 8,
        .folder = folder,
        .spill_fd = -1,
    };
    pthread_mutex_init(&assembly->lock, NULL);
    pthread_cond_init(&assembly->changed, NULL);
    uint64_t n = most_bytes / (assembly->elements_bytes + assembly->has_bytes);
    n = min_u64(max_u64(n, least_chunks), max_u64(grid->n_chunks, 1));
    assembly->n_chunks = (unsigned)min_u64(n, 1u << 16);
    assembly->chunks = calloc(assembly->n_chunks, sizeof(*assembly->chunks));
    return assembly->chunks ? 0 : -ENOMEM;
}

void chunk_assembly_deinit(struct chunk_assembly *assembly)
{
    for (unsigned i = 0; assembly->chunks && i < assembly->n_chunks; i++) {
        free(assembly->chunks[i].elements);
        free(assembly->chunks[i].has);
    }
    free_ptr(&assembly->chunks);
    free_ptr(&assembly->spilled);
    close_fd(&assembly->spill_fd);
    pthread_cond_destroy(&assembly->changed);
    pthread_mutex_destroy(&assembly->lock);
}

/* The file of those that made room ------------------------------------------------------------- */

static int open_spill(struct chunk_assembly *assembly)
{
    if (assembly->spill_fd >= 0)
        return 0;
    assembly->spill_fd = open(assembly->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return assembly->spill_fd >= 0 ? 0 : errno;
}

static uint64_t place_bytes(const struct chunk_assembly *assembly)
{
    return (uint64_t)assembly->elements_bytes + assembly->has_bytes;
}

/* A place that is free; the table grows when there is none. */
static int find_place(struct chunk_assembly *assembly, uint64_t *ret_place)
{
    for (uint64_t i = 0; assembly->n_free_places > 0 && i < assembly->n_places; i++) {
        if (!assembly->spilled[i].is_used) {
            *ret_place = i;
            return 0;
        }
    }
    uint64_t n = assembly->n_places ? 2 * assembly->n_places : 64;
    struct spilled *more = realloc(assembly->spilled, n * sizeof(*more));
    if (!more)
        return ENOMEM;
    memset(more + assembly->n_places, 0, (n - assembly->n_places) * sizeof(*more));
    *ret_place = assembly->n_places;
    assembly->spilled = more;
    assembly->n_free_places += n - assembly->n_places;
    assembly->n_places = n;
    return 0;
}

/* Under the lock: this is rare, and the page cache takes it. */
static int spill(struct chunk_assembly *assembly, struct assembled_chunk *chunk)
{
    uint64_t place;
    int r = open_spill(assembly);
    if (r == 0)
        r = find_place(assembly, &place);
    if (r)
        return r;
    uint64_t at = place * place_bytes(assembly);
    r = -file_write(assembly->spill_fd, chunk->elements, assembly->elements_bytes, at);
    if (r == 0)
        r = -file_write(assembly->spill_fd, chunk->has, assembly->has_bytes,
                        at + assembly->elements_bytes);
    if (r)
        return r;
    assembly->spilled[place] = (struct spilled){true, chunk->index, chunk->n_left};
    assembly->n_free_places--;
    chunk->is_used = false;
    return 0;
}

static int bring_back(struct chunk_assembly *assembly, uint64_t place,
                      struct assembled_chunk *chunk)
{
    size_t n_elements, n_has;
    uint64_t at = place * place_bytes(assembly);
    int r =
        -file_read(assembly->spill_fd, chunk->elements, assembly->elements_bytes, at, &n_elements);
    if (r == 0)
        r = -file_read(assembly->spill_fd, chunk->has, assembly->has_bytes,
                       at + assembly->elements_bytes, &n_has);
    if (r == 0 && (n_elements < assembly->elements_bytes || n_has < assembly->has_bytes))
        r = EIO;
    if (r)
        return r;
    chunk->n_left = assembly->spilled[place].n_left;
    assembly->spilled[place].is_used = false;
    assembly->n_free_places++;
    return 0;
}

static bool find_spilled(const struct chunk_assembly *assembly, uint64_t index, uint64_t *ret_place)
{
    if (assembly->n_places == assembly->n_free_places)
        return false;
    for (uint64_t i = 0; i < assembly->n_places; i++) {
        if (assembly->spilled[i].is_used && assembly->spilled[i].index == index) {
            *ret_place = i;
            return true;
        }
    }
    return false;
}

/* Under the lock ------------------------------------------------------------------------------- */

static struct assembled_chunk *find(const struct chunk_assembly *assembly, uint64_t index)
{
    for (unsigned i = 0; i < assembly->n_chunks; i++)
        if (assembly->chunks[i].is_used && assembly->chunks[i].index == index)
            return &assembly->chunks[i];
    return NULL;
}

/* One that is free, or of those that nobody copies into the one of longest ago. */
static struct assembled_chunk *find_room(const struct chunk_assembly *assembly)
{
    struct assembled_chunk *found = NULL;
    for (unsigned i = 0; i < assembly->n_chunks; i++) {
        struct assembled_chunk *chunk = &assembly->chunks[i];
        if (!chunk->is_used)
            return chunk;
        if (chunk->n_users == 0 && (!found || chunk->last_used < found->last_used))
            found = chunk;
    }
    return found;
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

static int begin(struct chunk_assembly *assembly, struct assembled_chunk *chunk, uint64_t index)
{
    uint64_t place;
    if (!chunk->elements)
        chunk->elements = malloc(assembly->elements_bytes);
    if (!chunk->has)
        chunk->has = malloc(assembly->has_bytes);
    if (!chunk->elements || !chunk->has)
        return ENOMEM;
    if (find_spilled(assembly, index, &place)) {
        int r = bring_back(assembly, place, chunk);
        if (r)
            return r;
    } else {
        chunk->n_left = n_inside(assembly, index);
        memset(chunk->has, 0, assembly->has_bytes);
        if (chunk->n_left < assembly->elements_bytes / assembly->item_bytes)
            memset(chunk->elements, 0, assembly->elements_bytes);
    }
    chunk->index = index;
    chunk->is_used = true;
    chunk->n_users = 0;
    return 0;
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

static uint64_t note_box(struct assembled_chunk *chunk, struct box *box, int64_t first)
{
    struct box_place place = {.index = {0}};
    uint64_t n_new = 0, run = (uint64_t)box_take_run(box, 1);
    do
        n_new += set_bits(chunk->has, (uint64_t)(first + place.offset[0]), run);
    while (box_next(box->axes, box->n, &place));
    return n_new;
}

/* The caller's side ---------------------------------------------------------------------------- */

int chunk_assembly_take(struct chunk_assembly *assembly, uint64_t index,
                        struct assembled_chunk **ret_chunk)
{
    struct assembled_chunk *chunk;
    int r = 0;
    pthread_mutex_lock(&assembly->lock);
    while (!(chunk = find(assembly, index)) && r == 0) {
        chunk = find_room(assembly);
        if (!chunk) {
            pthread_cond_wait(&assembly->changed, &assembly->lock);
            continue;
        }
        if (chunk->is_used)
            r = spill(assembly, chunk);
        if (r == 0)
            r = begin(assembly, chunk, index);
    }
    if (r == 0) {
        chunk->n_users++;
        chunk->last_used = ++assembly->clock;
        *ret_chunk = chunk;
    }
    pthread_mutex_unlock(&assembly->lock);
    return r;
}

bool chunk_assembly_give_back(struct chunk_assembly *assembly, struct assembled_chunk *chunk,
                              struct box *box, int64_t first)
{
    pthread_mutex_lock(&assembly->lock);
    chunk->n_left -= note_box(chunk, box, first);
    bool is_whole = chunk->n_left == 0 && chunk->n_users == 1;
    if (!is_whole && --chunk->n_users == 0)
        pthread_cond_broadcast(&assembly->changed);
    pthread_mutex_unlock(&assembly->lock);
    return is_whole;
}

void chunk_assembly_end(struct chunk_assembly *assembly, struct assembled_chunk *chunk)
{
    pthread_mutex_lock(&assembly->lock);
    chunk->is_used =
        --chunk->n_users > 0; /* of a job that was begun again: it is whole once more */
    pthread_cond_broadcast(&assembly->changed);
    pthread_mutex_unlock(&assembly->lock);
}

uint64_t chunk_assembly_n_begun(const struct chunk_assembly *assembly)
{
    uint64_t n = assembly->n_places - assembly->n_free_places;
    for (unsigned i = 0; i < assembly->n_chunks; i++)
        n += assembly->chunks[i].is_used;
    return n;
}
