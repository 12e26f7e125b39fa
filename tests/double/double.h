/* A test double of the CUDA runtime, on host memory: what tests may ask. How it works and what can
 * be set is in double.c. cuda_host_launch() is here too. */
#pragma once

#include "tests/double/host_launch.h"

/* Counters of this process. With stats=PATH they are the content of the file PATH.DEVICE, live, as
 * native 64-bit words in this order. */
struct double_stats {
    uint64_t n_mallocs, n_host_allocs, n_registrations, n_streams, n_events;
    uint64_t n_frees; /* of any of these */
    uint64_t n_to_device, n_from_device, n_on_device, n_launches;
    uint64_t bytes_to_device, bytes_from_device, bytes_on_device;
    /* Copies and kernels: on how many streams they ran at once; how many began while another stream
     * ran one; how many were in all queues. */
    uint64_t most_at_once, n_overlapped, most_queued;
    uint64_t device_bytes, host_bytes, registered_bytes; /* there now */
    uint64_t n_records, n_waits;                         /* of events; of streams for these */
};

struct double_stats double_stats(void);
