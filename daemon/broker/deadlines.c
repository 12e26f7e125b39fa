/* A binary heap of deadlines, least first. Each deadline knows its place, so that clearing one is
 * O(log n) as well: a client may have thousands of waits with a time-out.
 *
 * Called by the loop (next, run) and by whoever waits for something (set, clear).
 */
#include "daemon/broker/deadlines.h"
#include "proto/util.h"

void deadlines_deinit(struct deadlines *d)
{
    free(steal_ptr(d->heap));
    d->n = d->capacity = 0;
}

static void put(struct deadlines *d, unsigned place, struct deadline *deadline)
{
    d->heap[place - 1] = deadline;
    deadline->place = place;
}

static void sift_up(struct deadlines *d, unsigned place, struct deadline *deadline)
{
    while (place > 1 && d->heap[place / 2 - 1]->at_ns > deadline->at_ns) {
        put(d, place, d->heap[place / 2 - 1]);
        place /= 2;
    }
    put(d, place, deadline);
}

static void sift_down(struct deadlines *d, unsigned place, struct deadline *deadline)
{
    for (;;) {
        unsigned child = 2 * place;
        if (child > d->n)
            break;
        if (child < d->n && d->heap[child]->at_ns < d->heap[child - 1]->at_ns)
            child++;
        if (d->heap[child - 1]->at_ns >= deadline->at_ns)
            break;
        put(d, place, d->heap[child - 1]);
        place = child;
    }
    put(d, place, deadline);
}

static int reserve(struct deadlines *d)
{
    if (d->n < d->capacity)
        return 0;
    unsigned capacity = d->capacity ? 2 * d->capacity : 16;
    struct deadline **heap = realloc(d->heap, capacity * sizeof(*heap));
    if (!heap)
        return -ENOMEM;
    d->heap = heap;
    d->capacity = capacity;
    return 0;
}

int deadline_set(struct deadlines *d, struct deadline *deadline, uint64_t at_ns,
                 void (*func)(struct deadline *deadline))
{
    deadline_clear(d, deadline);
    int r = reserve(d);
    if (r < 0)
        return r;
    deadline->at_ns = at_ns;
    deadline->func = func;
    sift_up(d, ++d->n, deadline);
    return 0;
}

void deadline_clear(struct deadlines *d, struct deadline *deadline)
{
    unsigned place = deadline->place;
    if (place == 0)
        return;
    deadline->place = 0;
    struct deadline *last = d->heap[--d->n];
    if (last == deadline)
        return;
    if (place > 1 && d->heap[place / 2 - 1]->at_ns > last->at_ns)
        sift_up(d, place, last);
    else
        sift_down(d, place, last);
}

uint64_t deadlines_next_ns(const struct deadlines *d)
{
    return d->n ? d->heap[0]->at_ns : UINT64_MAX;
}

void deadlines_run(struct deadlines *d, uint64_t now_ns)
{
    while (d->n && d->heap[0]->at_ns <= now_ns) {
        struct deadline *first = d->heap[0];
        deadline_clear(d, first);
        first->func(first);
    }
}
