/* What a ring is made of on the client's side, and rings kept from one job to the next. */
#pragma once

#include "client/gpuarrayd.h"
#include "proto/array.h"

#include <stdint.h>

#define RINGS_KEPT 4u

struct client_ring { /* zeroed but for the descriptors, which are -1: none */
    int fd, request_fd, done_fd;
    void *memory;
    uint64_t n_bytes, slot_bytes;
    uint32_t n_slots;
};

struct rings { /* of a client; zeroed: empty */
    struct client_ring kept[RINGS_KEPT];
    unsigned n_kept;
};

/* A ring for an array of ndim axes with n_slots slots or more. rings (may be NULL): taken out of
 * those if one fits. no-memory, io-error. */
int rings_take(struct rings *rings, uint32_t n_slots, uint64_t slot_bytes, int ndim,
               struct client_ring *ret_ring, struct gad_error *error) GAD_MUST_CHECK;
/* A ring that no worker uses any more, for a later job. */
void rings_keep(struct rings *rings, const struct client_ring *ring_take);
void rings_deinit(struct rings *rings);

void client_ring_close(struct client_ring *ring);
