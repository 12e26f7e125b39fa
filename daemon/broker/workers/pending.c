/* A table with a free list: both directions are O(1) and nothing is allocated per request once it
 * has grown to what is in flight. The id is generation << 16 | place.
 *
 * Called by worker.c alone; it starts afresh with every worker.
 */
#include "daemon/broker/workers/pending.h"
#include "proto/util.h"

#define MAX_PLACES 65536u

void pending_deinit(struct pending *p)
{
    free(p->entries);
    *p = (struct pending){0};
}

static int grow(struct pending *p)
{
    unsigned capacity = p->capacity ? 2 * p->capacity : 64;
    if (capacity > MAX_PLACES)
        return -EAGAIN;
    struct pending_entry *entries = realloc(p->entries, capacity * sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    p->entries = entries;
    p->capacity = capacity;
    return 0;
}

int pending_add(struct pending *p, enum pending_kind kind, void *object, uint32_t *ret_id)
{
    unsigned place;
    if (p->first_free) {
        place = p->first_free - 1;
        p->first_free = p->entries[place].next_free;
    } else {
        int r = p->n == p->capacity ? grow(p) : 0;
        if (r < 0)
            return r;
        place = p->n++;
        p->entries[place].generation = 0;
    }
    struct pending_entry *e = &p->entries[place];
    e->kind = kind;
    e->object = object;
    *ret_id = (uint32_t)e->generation << 16 | place;
    return 0;
}

static struct pending_entry *find(struct pending *p, uint32_t id)
{
    unsigned place = id & 0xffff;
    if (place >= p->n || p->entries[place].kind == PENDING_NONE ||
        p->entries[place].generation != id >> 16)
        return NULL;
    return &p->entries[place];
}

enum pending_kind pending_take(struct pending *p, uint32_t id, void **ret_object)
{
    struct pending_entry *e = find(p, id);
    if (!e)
        return PENDING_NONE;
    enum pending_kind kind = e->kind;
    *ret_object = e->object;
    e->kind = PENDING_NONE;
    e->object = NULL;
    e->generation++;
    e->next_free = p->first_free;
    p->first_free = (unsigned)(e - p->entries) + 1;
    return kind;
}

void pending_forget(struct pending *p, uint32_t id)
{
    struct pending_entry *e = find(p, id);
    if (e)
        e->object = NULL;
}
