/* A pairing heap of deadlines, least first. Setting is O(1), clearing O(log n) on average: a client
 * may have thousands of waits with a time-out.
 *
 *     first:  a
 *             | child
 *             b --next-- c --next-- d       each is at least its parent
 *                        |
 *                        e
 *
 * Called by the loop (next, run) and by whoever waits for something (set, clear).
 */
#include "daemon/broker/deadlines.h"

#include <stddef.h>

/* Two heaps become one. Neither has siblings. */
static struct deadline *meld(struct deadline *a, struct deadline *b)
{
    if (!a || !b)
        return a ? a : b;
    if (b->at_ns < a->at_ns) {
        struct deadline *least = b;
        b = a;
        a = least;
    }
    b->before = a;
    b->next = a->child;
    if (b->next)
        b->next->before = b;
    a->child = b;
    return a;
}

static struct deadline *take(struct deadline **list)
{
    struct deadline *one = *list;
    if (one) {
        *list = one->next;
        one->next = one->before = NULL;
    }
    return one;
}

/* Siblings become one heap: pairs from the first to the last, then those from the last to the
 * first. */
static struct deadline *meld_all(struct deadline *siblings)
{
    struct deadline *pairs = NULL, *heap = NULL;
    while (siblings) {
        struct deadline *one = take(&siblings);
        struct deadline *pair = meld(one, take(&siblings));
        pair->next = pairs;
        pairs = pair;
    }
    while (pairs)
        heap = meld(heap, take(&pairs));
    return heap;
}

void deadline_set(struct deadlines *d, struct deadline *deadline, uint64_t at_ns,
                  void (*func)(struct deadline *deadline))
{
    deadline_clear(d, deadline);
    *deadline = (struct deadline){.at_ns = at_ns, .is_set = true, .func = func};
    d->first = meld(d->first, deadline);
}

void deadline_clear(struct deadlines *d, struct deadline *deadline)
{
    if (!deadline->is_set)
        return;
    struct deadline *children = meld_all(deadline->child), *before = deadline->before;
    deadline->is_set = false;
    deadline->child = NULL;
    if (!before) {
        d->first = children;
        return;
    }
    *(before->child == deadline ? &before->child : &before->next) = deadline->next;
    if (deadline->next)
        deadline->next->before = before;
    deadline->next = deadline->before = NULL;
    d->first = meld(d->first, children);
}

uint64_t deadlines_next_ns(const struct deadlines *d)
{
    return d->first ? d->first->at_ns : UINT64_MAX;
}

void deadlines_run(struct deadlines *d, uint64_t now_ns)
{
    while (d->first && d->first->at_ns <= now_ns) {
        struct deadline *first = d->first;
        deadline_clear(d, first);
        first->func(first);
    }
}
