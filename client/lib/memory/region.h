/* One region: a sealed memfd without holes, mapped once, cut into blocks of whole pages. It knows
 * no connection; whoever attaches it to the daemon keeps the daemon's id in it. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGION_BLOCK_BYTES 4096u

struct region_block { /* in the order of addresses, without gaps */
    struct region_block *previous, *next;
    uint64_t offset_bytes, size_bytes;
    bool is_free;
};

struct region {
    struct region *next; /* of the arena */
    int fd;
    char *map;
    uint64_t size_bytes, used_bytes;
    uint64_t dirty_end; /* beyond it no byte was ever lent: still zero */
    struct region_block *blocks;
    struct region_block *first_free; /* none before it is free; NULL: none at all */
    struct region_block **lent_at;   /* by page: the lent block that begins there */
    int64_t used_ms;                 /* of the arena: when something was last given back to it */

    /* Of the connection: the daemon's id, valid while session is the client's session number. */
    uint64_t id;
    uint64_t session; /* 0: never attached */
};

/* A sealed memfd of this size with all pages there, mapped; also used for rings. no-memory,
 * no-space, io-error. */
int region_map_memfd(const char *name, uint64_t size_bytes, int *ret_fd, void **ret_map,
                     struct gad_error *error) GAD_MUST_CHECK;

int region_new(uint64_t size_bytes, struct region **ret_region,
               struct gad_error *error) GAD_MUST_CHECK;
struct region *region_free(struct region *region); /* NULL */

/* First fit. is_cleared: zeroed. 0; -ENOSPC: no free block is large enough; -ENOMEM. */
int region_lend(struct region *region, uint64_t size_bytes, bool is_cleared,
                uint64_t *ret_offset_bytes) GAD_MUST_CHECK;
void region_give_back(struct region *region, uint64_t offset_bytes);
