/* Putting encoded chunks in order.
 *
 * Chunks are encoded by many threads at once, and where they lie in a file must not tell which was
 * ready first: of two runs of one job the files are the same. So a chunk waits for its turn.
 * Whoever brings the one whose turn it is puts it out, and those behind it that wait already, while
 * the others go on encoding:
 *
 *     put out   0 1 2 3 | 4 <- a thread is at it       5 6 - 8 - 10   wait in a heap
 *
 * What waits is bounded: who comes with more waits itself while others put out, which makes room.
 * Where nobody does, because the array is computed across the order of its chunks, the bytes go to
 * a file without a name, and are read once, when their turn has come.
 *
 * Arrays whose chunks go into one file have one sequence of turns: after a third of the chunks of
 * the one comes the third of the other's, for both are computed by one pass.
 *
 * Called by chunk_sink.c.
 */
#include "client/formats/chunked/chunk_order.h"
#include "client/formats/chunked/chunk_assembly.h"
#include "client/formats/files/file_source.h"
#include "proto/util.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define MOST_BYTES (UINT64_C(12) << 20) /* that wait in memory */
#define N_BUCKETS  64u

struct waiting {
    uint64_t turn, index;
    void *state;
    size_t n_bytes;
    uint32_t skipped;
    uint8_t *bytes; /* NULL: they are in the file */
    uint64_t place; /* there */
};

struct part { /* of which something has come, and something is missing */
    struct part *next;
    uint64_t number, turn;
    bool is_busy;         /* a thread puts out */
    struct waiting *heap; /* the lowest turn first */
    size_t n_waiting, n_room;
};

struct chunk_order {
    atomic_uint n_refs;
    chunk_out_fn *out;
    char *folder;
    uint64_t *n_chunks_of; /* of members */
    unsigned n_members;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct part *parts[N_BUCKETS];
    unsigned n_busy;
    uint64_t n_bytes; /* that wait in memory */
    int failure;
    int spill_fd; /* -1: not needed so far */
    uint64_t spill_end, n_spilled;
};

struct chunk_order *chunk_order_new(chunk_out_fn *out, const char *folder)
{
    struct chunk_order *order = calloc(1, sizeof(*order));
    if (!order)
        return NULL;
    atomic_init(&order->n_refs, 1);
    order->out = out;
    order->spill_fd = -1;
    pthread_mutex_init(&order->lock, NULL);
    pthread_cond_init(&order->changed, NULL);
    order->folder = strdup(folder);
    return order->folder ? order : chunk_order_unref(order);
}

struct chunk_order *chunk_order_ref(struct chunk_order *order)
{
    atomic_fetch_add(&order->n_refs, 1);
    return order;
}

static struct part **find(struct chunk_order *order, uint64_t number)
{
    struct part **at = &order->parts[number % N_BUCKETS];
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

static void drop(struct part **at)
{
    struct part *part = *at;
    *at = part->next;
    for (size_t i = 0; i < part->n_waiting; i++)
        free(part->heap[i].bytes);
    free(part->heap);
    free(part);
}

struct chunk_order *chunk_order_unref(struct chunk_order *order)
{
    if (!order || atomic_fetch_sub(&order->n_refs, 1) > 1)
        return NULL;
    for (unsigned i = 0; i < N_BUCKETS; i++)
        while (order->parts[i])
            drop(&order->parts[i]);
    close_fd(&order->spill_fd);
    pthread_cond_destroy(&order->changed);
    pthread_mutex_destroy(&order->lock);
    free(order->n_chunks_of);
    free(order->folder);
    free(order);
    return NULL;
}

int chunk_order_join(struct chunk_order *order, uint64_t n_chunks, unsigned *ret_member)
{
    size_t n_bytes = (order->n_members + 1) * sizeof(*order->n_chunks_of);
    uint64_t *more = realloc(order->n_chunks_of, n_bytes);
    if (!more)
        return -ENOMEM;
    order->n_chunks_of = more;
    more[order->n_members] = n_chunks;
    *ret_member = order->n_members++;
    return 0;
}

/* Before it are those of another member that have come as far: index / n of their n. */
uint64_t chunk_order_turn(const struct chunk_order *order, unsigned member, uint64_t index)
{
    uint64_t turn = index, n = order->n_chunks_of[member];
    for (unsigned i = 0; i < order->n_members; i++) {
        unsigned __int128 product = (unsigned __int128)index * order->n_chunks_of[i];
        if (i < member)
            turn += (uint64_t)(product / n) + 1;
        else if (i > member)
            turn += (uint64_t)((product + n - 1) / n);
    }
    return turn;
}

/* The heap ------------------------------------------------------------------------------------- */

static void push(struct part *part, const struct waiting *waiting)
{
    size_t i = part->n_waiting++;
    for (; i > 0 && part->heap[(i - 1) / 2].turn > waiting->turn; i = (i - 1) / 2)
        part->heap[i] = part->heap[(i - 1) / 2];
    part->heap[i] = *waiting;
}

static struct waiting pop(struct part *part)
{
    struct waiting first = part->heap[0], last = part->heap[--part->n_waiting];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < part->n_waiting) {
        child += child + 1 < part->n_waiting && part->heap[child + 1].turn < part->heap[child].turn;
        if (part->heap[child].turn >= last.turn)
            break;
        part->heap[i] = part->heap[child];
        i = child;
    }
    part->heap[i] = last;
    return first;
}

static int make_room(struct part *part)
{
    if (part->n_waiting < part->n_room)
        return 0;
    size_t n_room = 2 * part->n_room + 16;
    struct waiting *more = realloc(part->heap, n_room * sizeof(*more));
    if (!more)
        return ENOMEM;
    part->heap = more;
    part->n_room = n_room;
    return 0;
}

/* Waiting; under the lock ---------------------------------------------------------------------- */

static int spill(struct chunk_order *order, struct waiting *waiting, const void *bytes)
{
    if (order->spill_fd < 0)
        order->spill_fd = chunk_spill_open(order->folder);
    if (order->spill_fd < 0)
        return errno;
    waiting->place = order->spill_end;
    int r = -file_write(order->spill_fd, bytes, waiting->n_bytes, waiting->place);
    if (r)
        return r;
    order->spill_end += waiting->n_bytes;
    order->n_spilled++;
    return 0;
}

static int keep(struct chunk_order *order, struct waiting *waiting, const void *bytes)
{
    if (order->n_bytes > 0 && order->n_bytes + waiting->n_bytes > MOST_BYTES)
        return spill(order, waiting, bytes);
    waiting->bytes = malloc(waiting->n_bytes + 1);
    if (!waiting->bytes)
        return ENOMEM;
    memcpy(waiting->bytes, bytes, waiting->n_bytes);
    order->n_bytes += waiting->n_bytes;
    return 0;
}

static int wait_for_turn(struct chunk_order *order, struct part *part, struct waiting waiting,
                         const void *bytes)
{
    int r = make_room(part);
    if (r == 0)
        r = keep(order, &waiting, bytes);
    if (r == 0)
        push(part, &waiting);
    return r;
}

/* Putting out ---------------------------------------------------------------------------------- */

static int fetch(struct chunk_order *order, struct waiting *waiting)
{
    size_t n_read;
    waiting->bytes = malloc(waiting->n_bytes + 1);
    if (!waiting->bytes)
        return ENOMEM;
    int r = file_read(order->spill_fd, waiting->bytes, waiting->n_bytes, waiting->place, &n_read);
    return r < 0 ? -r : n_read < waiting->n_bytes ? EIO : 0;
}

/* One that has waited. The lock is held, and let go meanwhile. */
static int put_next(struct chunk_order *order, struct part *part)
{
    struct waiting next = pop(part);
    bool is_spilled = !next.bytes;
    pthread_mutex_unlock(&order->lock);
    int r = is_spilled ? fetch(order, &next) : 0;
    if (r == 0)
        r = order->out(next.state, next.index, next.bytes, next.n_bytes, next.skipped);
    free(next.bytes);
    pthread_mutex_lock(&order->lock);
    if (is_spilled && --order->n_spilled == 0)
        order->spill_end = 0;
    if (!is_spilled)
        order->n_bytes -= next.n_bytes;
    pthread_cond_broadcast(&order->changed);
    part->turn++;
    return r;
}

/* The one whose turn it is, then those that have waited for it. */
static int put_out(struct chunk_order *order, struct part *part, const struct waiting *first,
                   const void *bytes)
{
    part->is_busy = true;
    order->n_busy++;
    pthread_mutex_unlock(&order->lock);
    int r = order->out(first->state, first->index, bytes, first->n_bytes, first->skipped);
    pthread_mutex_lock(&order->lock);
    part->turn++;
    while (r == 0 && part->n_waiting > 0 && part->heap[0].turn == part->turn)
        r = put_next(order, part);
    part->is_busy = false;
    order->n_busy--;
    if (r && !order->failure)
        order->failure = r;
    pthread_cond_broadcast(&order->changed);
    return r;
}

/* Under the lock. */
static int take(struct chunk_order *order, const struct chunk_turn *turn,
                const struct waiting *chunk, const void *bytes)
{
    while (!order->failure && order->n_busy > 0 && order->n_bytes + chunk->n_bytes > MOST_BYTES)
        pthread_cond_wait(&order->changed, &order->lock);
    if (order->failure)
        return order->failure;
    struct part **at = find(order, turn->part), *part = *at;
    if (!part) {
        part = *at = calloc(1, sizeof(*part));
        if (!part)
            return ENOMEM;
        part->number = turn->part;
    }
    if (turn->turn != part->turn || part->is_busy)
        return wait_for_turn(order, part, *chunk, bytes);
    int r = put_out(order, part, chunk, bytes);
    if (r == 0 && part->turn == turn->n_turns)
        drop(find(order, turn->part));
    return r;
}

int chunk_order_put(struct chunk_order *order, const struct chunk_turn *turn, void *state,
                    uint64_t index, const void *bytes, size_t n_bytes, uint32_t skipped)
{
    const struct waiting chunk = {
        .turn = turn->turn, .index = index, .state = state, .n_bytes = n_bytes, .skipped = skipped};
    pthread_mutex_lock(&order->lock);
    int r = take(order, turn, &chunk, bytes);
    pthread_mutex_unlock(&order->lock);
    return r;
}

int chunk_order_flush(struct chunk_order *order)
{
    pthread_mutex_lock(&order->lock);
    int r = order->failure;
    for (unsigned i = 0; i < N_BUCKETS; i++)
        for (struct part *part = order->parts[i]; part; part = part->next)
            while (r == 0 && part->n_waiting > 0) {
                part->turn = part->heap[0].turn;
                r = put_next(order, part);
            }
    pthread_mutex_unlock(&order->lock);
    return r;
}
