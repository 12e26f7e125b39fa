/* How large the slabs and slots are: chosen politely, or as set and then checked against what there
 * is. Pure code. */
#pragma once

#include "daemon/worker/cuda/card.h"

struct card_room { /* now */
    uint64_t device_total_bytes, device_free_bytes;
    uint64_t host_total_bytes, host_available_bytes; /* 0: not known */
    const char *holders;                             /* of the device's rest, as text; "" */
};

struct card_sizes {
    uint64_t device_bytes, pinned_bytes; /* the slabs */
    uint64_t slot_bytes, pool_bytes;     /* whole slots */
    uint64_t carry_bytes;                /* of the device, behind those and one slot more */
    uint64_t workspace_bytes;            /* of cuBLAS, at the end of the device's slab */
};

/* What the process may have of the host's memory. */
void card_host_memory(uint64_t *ret_total_bytes, uint64_t *ret_available_bytes);

/* The slabs. limit-exceeded: a size that was set cannot be; no-memory: it is not there. */
int card_sizes_choose(const struct card_config *config, const struct card_room *room,
                      struct card_sizes *ret_sizes, struct gad_error *error) GAD_MUST_CHECK;

struct card_pace { /* as it was measured */
    double overhead_seconds, turn_seconds, rate;
};

/* Cuts them into slots: the least whose copies reach 95 % of the link's rate, where a copy takes
 * overhead_seconds + bytes / rate, and take so long that the host's turns are a small part of it,
 * as far as there are some; or of chunk_bytes, where that is not 0. Smaller where there would be
 * fewer than CARD_MIN_SLOTS beside the main thread's. */
void card_sizes_cut(struct card_sizes *s, uint64_t chunk_bytes, const struct card_pace *pace);

/* Tiles with the device at a time, where that is not set: one in each of the three stages and one
 * that waits, and as many more as are copied while the host takes its turn between the end of one
 * and the start of the next. One slot at least stays for staging. */
unsigned card_sizes_depth(const struct card_sizes *s, unsigned depth, double turn_seconds,
                          double rate);
