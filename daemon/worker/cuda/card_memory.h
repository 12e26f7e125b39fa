/* What the device's memory is made of, so that it adds up to what the driver says. */
#pragma once

#include "daemon/worker/cuda/nvml.h"
#include "kernels/cuda/runtime.h"
#include "proto/wire/message.h"

#include <pthread.h>

#define CARD_MAX_HOLDERS 8u

/* How the process's part is known: see daemon/WORKER.md. */
enum card_memory_source { CARD_BY_DRIVER, CARD_BY_DIFFERENCE, CARD_BY_SUM };

struct card_memory {
    struct nvml *nvml; /* NULL: there is none for this device */
    enum card_memory_source source;
    uint64_t total_bytes, free_bytes, reserved_bytes, used_by_others_bytes, process_bytes;
    uint64_t context_bytes, modules_bytes, pool_bytes, other_bytes; /* of the process */
    uint64_t pinned_bytes;
    unsigned n_holders;
    struct nvml_process holders[CARD_MAX_HOLDERS];
    uint64_t before_bytes; /* what figure() was when the slabs were taken */
    /* Once all is there a thread asks, since the driver may take long to answer; of the lock are
     * then: total, free, reserved, used_by_others, process and what follows. */
    pthread_mutex_t lock;
    pthread_cond_t wake, changed;
    pthread_t thread;
    bool has_thread, is_stopping, is_asked;
    uint64_t read_ns; /* when they were last asked for */
};

/* In this order, around the steps of opening the device. */
void card_memory_begin(struct card_memory *m); /* before the context */
void card_memory_has_context(struct card_memory *m, const struct cuda_device *device);
void card_memory_has_modules(struct card_memory *m); /* after the warm-up */
void card_memory_has_slabs(struct card_memory *m);
void card_memory_has_blas(struct card_memory *m); /* after its warm-up */
void card_memory_has_all(struct card_memory *m, const struct cuda_allocations *allocations);
void card_memory_end(struct card_memory *m);

/* What is free and who has the rest, as text for an error: "pid 77 (python3) 12345 bytes, ...";
 * "" where nobody is known. */
void card_memory_holders(struct card_memory *m, char *ret_text, size_t n_bytes);

/* What free and process are. Asks again where the last time is more than half a second ago, and
 * waits for the answer a few milliseconds at most: then it is the last one's. */
void card_memory_refresh(struct card_memory *m, uint64_t *ret_process_bytes,
                         uint64_t *ret_free_bytes);

/* "memory": {...}, one pair. */
void card_memory_pack(const struct card_memory *m, msgpack_packer *p);
