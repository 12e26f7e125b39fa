/* Encoded chunks go out in the order of their numbers, whichever is ready first. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct chunk_order;

/* Whose turn it is. Of one part one call at a time; another thread's chunk too. 0 or a positive
 * errno, with which all that comes later is refused. The bytes are the caller's again then. */
typedef int chunk_out_fn(void *state, uint64_t index, const void *bytes, size_t n_bytes,
                         uint32_t skipped);

/* folder: where a file without a name is made once memory is short. One reference. NULL: no memory.
 */
struct chunk_order *chunk_order_new(chunk_out_fn *out, const char *folder);
struct chunk_order *chunk_order_ref(struct chunk_order *order);
struct chunk_order *chunk_order_unref(struct chunk_order *order); /* NULL allowed; returns NULL */

/* An array of n_chunks whose chunks go into one file with those of others that share the order,
 * each of them as far as the others: ret_member is then its own. Before anything is put. -ENOMEM.
 */
int chunk_order_join(struct chunk_order *order, uint64_t n_chunks, unsigned *ret_member)
    __attribute__((warn_unused_result));
/* The turn among those of all members of a member's chunk. */
uint64_t chunk_order_turn(const struct chunk_order *order, unsigned member, uint64_t index);

/* A chunk's place: the parts of an array are put out beside each other, each from turn 0 on. */
struct chunk_turn {
    uint64_t part, turn;
    uint64_t n_turns; /* of the part; more than there will be: it is not known */
};

/* From any thread; `state` and `index` are for `out`. Each turn once. 0 or a positive errno; 0 says
 * that it will go out, in this call or a later one. */
int chunk_order_put(struct chunk_order *order, const struct chunk_turn *turn, void *state,
                    uint64_t index, const void *bytes, size_t n_bytes, uint32_t skipped)
    __attribute__((warn_unused_result));
/* Nobody puts anything, and what has not come of the turns before those that wait does not come any
 * more: they go out. 0 or a positive errno. */
int chunk_order_flush(struct chunk_order *order) __attribute__((warn_unused_result));
