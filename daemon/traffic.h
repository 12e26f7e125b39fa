/* What jobs move, by the way it takes, and where their time goes: the worker counts, the broker
 * adds up. Both read and write the same maps (RESULT and job.moved in daemon/WORKER.md). */
#pragma once

#include "proto/array.h"
#include "proto/wire/message.h"

#include <stdint.h>

enum traffic_path {
    TRAFFIC_FILE,   /* contiguous in a file */
    TRAFFIC_CHUNKS, /* a grid of chunks in a file */
    TRAFFIC_REGION,
    TRAFFIC_PROVIDER,
    TRAFFIC_INLINE, /* in the request or the reply */
    TRAFFIC_N_PATHS
};

enum traffic_stage {
    TRAFFIC_SOURCE,
    TRAFFIC_TO_DEVICE, /* copies over the link; they overlap with the rest */
    TRAFFIC_KERNEL,
    TRAFFIC_FROM_DEVICE,
    TRAFFIC_SINK,
    TRAFFIC_CLIENT, /* waited for a provider */
    TRAFFIC_N_STAGES
};

/* What a job waits for that nobody is at. */
enum traffic_wait {
    TRAFFIC_INPUT, /* its clients, or a disk */
    TRAFFIC_ROOM,  /* of the pool */
    TRAFFIC_TURN,  /* others go first */
    TRAFFIC_N_WAITS
};

struct traffic {
    uint64_t read_bytes[TRAFFIC_N_PATHS], write_bytes[TRAFFIC_N_PATHS];
    uint64_t around_cache_bytes; /* of those written to files: past the page cache */
    uint64_t stage_ns[TRAFFIC_N_STAGES];
    uint64_t wait_ns[TRAFFIC_N_WAITS]; /* at the worker */
};

/* The way of an array at this location. */
enum traffic_path traffic_path_of(const struct location *at);
const char *traffic_path_name(enum traffic_path path);
const char *traffic_stage_name(enum traffic_stage stage);
const char *traffic_wait_name(enum traffic_wait wait);

uint64_t traffic_sum(const uint64_t *by_path); /* of TRAFFIC_N_PATHS */
/* Of threads, and of the device where it took longer than what went on beside it: no waits. */
uint64_t traffic_work_ns(const struct traffic *t);
void traffic_add(struct traffic *sum, const struct traffic *t);

/* {read: {PATH: bytes}, write: {PATH: bytes}}, ways that were not used left out. */
void traffic_pack_bytes(msgpack_packer *p, const uint64_t *read_by_path,
                        const uint64_t *write_by_path);
/* {input, room, turn}, in seconds. */
void traffic_pack_waits(msgpack_packer *p, const uint64_t *wait_ns);
/* From a map with the keys bytes, around_cache_bytes, seconds and waits. What is absent stays;
 * nothing becomes less than it was in *t. */
void traffic_update(struct traffic *t, const msgpack_object *map);
