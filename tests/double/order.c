/* Who may touch which bytes: the check of order in the test double.
 *
 * Each operation has a number in its stream and a clock: for every stream the number up to which
 * operations end before this one begins, by the order in a stream, by events that the stream waits
 * for, and by what the program has seen to end before it put the operation there. Memory that
 * operations touch is cut into spans, each with its last writer and, for each stream, its last
 * reader since then. A reader must come behind the writer; a writer behind the writer and all
 * readers. The check is made when the operation is put into its queue, so it does not depend on how
 * long anything takes.
 *
 * Addresses are those that the program knows, of the device and of pinned memory alike. What nobody
 * has touched has no span. Spans whose writer and readers the program has seen to end say nothing
 * and are dropped when there are many.
 */
#include "tests/double/internal.h"

#include <stdlib.h>
#include <string.h>

#define MANY_SPANS 1024u

struct operation_name {
    const char *what;
    uint64_t tick; /* 0: none */
    unsigned stream;
};

struct span {
    uintptr_t begin, end;
    struct span_state {
        struct operation_name writer;
        const char *readers[N_STREAMS];
        uint64_t read[N_STREAMS]; /* by the stream's operation of this number; 0: by none */
    } state;
};

static struct span *spans; /* by address, apart from each other */
static size_t n_spans, n_room;

void clock_join(struct clock *clock, const struct clock *other)
{
    for (unsigned i = 0; i < N_STREAMS; i++)
        if (clock->at[i] < other->at[i])
            clock->at[i] = other->at[i];
}

static void insert(size_t at, const struct span *span)
{
    if (n_spans == n_room) {
        n_room = n_room ? 2 * n_room : 64;
        spans = realloc(spans, n_room * sizeof *spans);
        if (!spans)
            double_abort("no memory");
    }
    memmove(spans + at + 1, spans + at, (n_spans - at) * sizeof *spans);
    spans[at] = *span;
    n_spans++;
}

static void drop(size_t at)
{
    n_spans--;
    memmove(spans + at, spans + at + 1, (n_spans - at) * sizeof *spans);
}

/* The first span that ends behind the address. */
static size_t find(uintptr_t address)
{
    size_t low = 0, high = n_spans;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (spans[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void split(size_t at, uintptr_t address)
{
    struct span behind = spans[at];
    behind.begin = address;
    spans[at].end = address;
    insert(at + 1, &behind);
}

/* Spans cover all of [begin, end), and none crosses its ends. The first one's place. */
static size_t cover(uintptr_t begin, uintptr_t end)
{
    size_t at = find(begin);
    if (at < n_spans && spans[at].begin < begin)
        split(at++, begin);
    const size_t first = at;
    for (uintptr_t position = begin; position < end; position = spans[at++].end) {
        if (at == n_spans || spans[at].begin > position) {
            const bool is_next = at < n_spans && spans[at].begin < end;
            const struct span gap = {.begin = position, .end = is_next ? spans[at].begin : end};
            insert(at, &gap);
        } else if (spans[at].end > end) {
            split(at, end);
        }
    }
    return first;
}

/* Neighbours that say the same become one. */
static void join(size_t first, uintptr_t end)
{
    size_t at = first ? first : 1;
    while (at < n_spans && spans[at].begin <= end) {
        if (spans[at - 1].end == spans[at].begin &&
            memcmp(&spans[at - 1].state, &spans[at].state, sizeof spans->state) == 0) {
            spans[at - 1].end = spans[at].end;
            drop(at);
        } else {
            at++;
        }
    }
}

static bool is_quiet(const struct span *s)
{
    const struct clock *host = &the_double.host;
    if (s->state.writer.tick > host->at[s->state.writer.stream])
        return false;
    for (unsigned i = 0; i < N_STREAMS; i++)
        if (s->state.read[i] > host->at[i])
            return false;
    return true;
}

static void drop_quiet(void)
{
    size_t n = 0;
    for (size_t i = 0; i < n_spans; i++)
        if (!is_quiet(&spans[i]))
            spans[n++] = spans[i];
    n_spans = n;
}

static void check(const struct span *s, const struct clock *clock, unsigned index, const char *what,
                  bool is_write)
{
    const struct operation_name *w = &s->state.writer;
    const size_t n_bytes = s->end - s->begin;
    if (w->tick > clock->at[w->stream])
        double_abort("wrong order: %s (stream %u) %s %zu bytes at %#zx that %s (stream %u) writes, "
                     "and nothing makes it wait for that",
                     what, index, is_write ? "overwrites" : "reads", n_bytes, (size_t)s->begin,
                     w->what, w->stream);
    for (unsigned i = 0; is_write && i < N_STREAMS; i++)
        if (s->state.read[i] > clock->at[i])
            double_abort("wrong order: %s (stream %u) overwrites %zu bytes at %#zx that %s (stream "
                         "%u) reads, and nothing makes it wait for that",
                         what, index, n_bytes, (size_t)s->begin, s->state.readers[i], i);
}

void order_touch(const struct clock *clock, unsigned index, const char *what, const char *address,
                 size_t n_bytes, bool is_write)
{
    const uintptr_t begin = (uintptr_t)address, end = begin + n_bytes;
    if (n_bytes == 0)
        return;
    if (n_spans > MANY_SPANS)
        drop_quiet();
    const size_t first = cover(begin, end);
    for (size_t i = first; i < n_spans && spans[i].begin < end; i++) {
        struct span *s = &spans[i];
        check(s, clock, index, what, is_write);
        if (is_write) {
            memset(&s->state, 0, sizeof s->state);
            s->state.writer.what = what;
            s->state.writer.tick = clock->at[index];
            s->state.writer.stream = index;
        } else {
            s->state.read[index] = clock->at[index];
            s->state.readers[index] = what;
        }
    }
    join(first, end);
}

bool order_is_quiet(const char *address, size_t n_bytes)
{
    const uintptr_t end = (uintptr_t)address + n_bytes;
    for (size_t i = find((uintptr_t)address); i < n_spans && spans[i].begin < end; i++)
        if (!is_quiet(&spans[i]))
            return false;
    return true;
}

void order_forget(const char *address, size_t n_bytes)
{
    const uintptr_t begin = (uintptr_t)address, end = begin + n_bytes;
    const size_t first = cover(begin, end);
    while (first < n_spans && spans[first].begin < end)
        drop(first);
}
