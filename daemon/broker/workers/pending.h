/* Requests that were sent to the worker and are not answered yet: id to object and back. An id
 * names a place and a generation, so a late or wrong answer finds nothing. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>

enum pending_kind { PENDING_NONE, PENDING_JOB, PENDING_REGION, PENDING_STATS, PENDING_TRACE };

struct pending_entry {
    enum pending_kind kind;
    uint16_t generation;
    void *object; /* NULL: whoever asked is gone */
    unsigned next_free;
};

struct pending {
    struct pending_entry *entries;
    unsigned n, capacity, first_free; /* first_free: place + 1, 0: none */
};

void pending_deinit(struct pending *p);

/* -ENOMEM; -EAGAIN when 65536 are open. */
int pending_add(struct pending *p, enum pending_kind kind, void *object,
                uint32_t *ret_id) GAD_MUST_CHECK;

/* Removes it; PENDING_NONE when there is no such id. */
enum pending_kind pending_take(struct pending *p, uint32_t id, void **ret_object);

/* The object is gone; the answer will find NULL. */
void pending_forget(struct pending *p, uint32_t id);
