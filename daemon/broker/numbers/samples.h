/* A ring of samples: how the daemon's memory, pool, jobs and bytes went over time. Pure code; the
 * sampler takes them. */
#pragma once

#include "daemon/broker/workers/engines.h"

#include <stddef.h>

enum sample_number {
    /* Of this moment; of a period that is longer than a second: the most that it was. */
    SAMPLE_BROKER_BYTES, /* private memory */
    SAMPLE_POOL_BYTES,   /* the pools of all workers that are ready */
    SAMPLE_SLOT_BYTES,   /* of that: lent to tiles */
    SAMPLE_CARRY_BYTES,  /* of that: lent to jobs */
    SAMPLE_DEVICE_CARRY_BYTES,
    SAMPLE_QUEUED,
    SAMPLE_RUNNING,
    SAMPLE_FIRST_WORKER_BYTES, /* private memory of each, by place */
    /* Since the daemon started: they only rise. */
    SAMPLE_READ_BYTES = SAMPLE_FIRST_WORKER_BYTES + ENGINES_MAX,
    SAMPLE_WRITE_BYTES,
    SAMPLE_N
};

struct sample {
    uint64_t at_ms;     /* since the daemon started: its end */
    uint64_t period_ms; /* that it stands for */
    uint64_t numbers[SAMPLE_N];
};

/* 10 minutes by seconds, 2 hours by tens of seconds, a day by minutes. */
#define SAMPLES_N_LEVELS 3u

struct sample_ring {
    struct sample *samples; /* the oldest at `first` */
    size_t first, n;
    struct sample open; /* what the next one is made of so far; period_ms 0: nothing */
};

struct samples {
    struct sample_ring levels[SAMPLES_N_LEVELS];
};

int samples_init(struct samples *samples) GAD_MUST_CHECK; /* all memory that it will take */
void samples_deinit(struct samples *samples);             /* also zeroed */

/* now: at a later time than the one before; else nothing is added. */
void samples_add(struct samples *samples, const struct sample *now);

/* Copies those that ended later than that, oldest first, at most n_most. Of each time the finest
 * that is still there. Returns how many. */
size_t samples_after(const struct samples *samples, uint64_t after_ms, struct sample *ret_samples,
                     size_t n_most);
