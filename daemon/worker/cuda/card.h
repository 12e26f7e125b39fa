/* The device as the worker has it: opened once, its memory taken once, measured once.
 *
 *     0                                pool_bytes  + slot_bytes
 *     | pool: carries, slots ...       | small     | not used |                    pinned
 *     | pool: slots ...                | small     | carries of products | workspace |   device
 *
 * Both slabs have the pool and the slot behind it at the same offsets. Carries with nodes and
 * results of reductions are in the pool, in the host's memory alone; panels, C and what is kept of
 * products are on the device alone, behind the slots. `small` is a slot of the main thread's own,
 * outside the pool. The workspace is cuBLAS's.
 */
#pragma once

#include "daemon/worker/cuda/card_memory.h"
#include "kernels/cuda/product/multiply.h"
#include "kernels/cuda/runtime.h"
#include "kernels/plan/plan.h"
#include "proto/wire/message.h"

#define CARD_MIN_DEPTH      3u
#define CARD_MAX_DEPTH      16u
#define CARD_MAX_SLOT_BYTES (16u * 1024 * 1024)
#define CARD_MIN_SLOTS      4u

#define CARD_TF32_LEAST_MAJOR 8 /* of the compute capability */

struct card_config {
    int index;
    uint64_t device_bytes, pinned_bytes, chunk_bytes; /* 0: choose */
    unsigned depth;                                   /* 0: choose */
    unsigned n_threads; /* that stage: the host is measured with so many */
};

struct card {
    struct cuda_device device;
    int n_devices;
    char *pinned, *slab; /* host, device */
    uint64_t pinned_bytes, slab_bytes;
    uint64_t slot_bytes, pool_bytes;    /* whole slots */
    uint64_t workspace_bytes;           /* at the end of the device's slab */
    uint64_t small_offset;              /* of the main thread's slot, slot_bytes */
    uint64_t carry_offset, carry_bytes; /* of the device: carries of products */
    unsigned depth;
    struct plan_rates rates;
    double both_ways; /* the link, both directions at once, bytes a second in sum */
    cuda_stream to_device, compute, from_device; /* tiles */
    cuda_stream products;                        /* what they multiply; patient */
    cuda_stream small;                           /* the main thread's; urgent */
    struct cuda_blas *blas;                      /* NULL: there is none, and */
    char why_no_blas[sizeof(((struct gad_error *)NULL)->message)];
    struct card_memory *memory;
    struct cuda_allocations baseline;
};

/* Opens the device, runs every kernel once, takes both slabs, opens cuBLAS where it is, measures.
 * 0, or what the process is to leave with (enum worker_exit), and `error` says why. */
int card_open(const struct card_config *config, struct card **ret_card,
              struct gad_error *error) GAD_MUST_CHECK;
/* NULL. Nothing is with the device. */
struct card *card_free(struct card *card);

/* After the engine has made its events: what the memory is made of, and the count of allocations
 * that is never exceeded from here on. */
void card_baseline(struct card *card);

/* Pairs of the maps of worker.ready and `stats` (daemon/WORKER.md). Main thread. */
unsigned card_n_ready_pairs(const struct card *card);
void card_pack_ready(const struct card *card, msgpack_packer *p);
unsigned card_n_stats_pairs(const struct card *card);
void card_pack_stats(const struct card *card, msgpack_packer *p);
