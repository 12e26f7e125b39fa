/* Leave to read what lies between an output's elements and to write it back, for the threads of a
 * job that has the file for itself: they take turns, so that each finds what the others have
 * written. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#define GAPS_STRETCH_BYTES (64 * 1024)
#define GAPS_N_LOCKS       16

struct gaps {
    pthread_mutex_t locks[GAPS_N_LOCKS]; /* of the stretches of a file, in turn */
};
void gaps_init(struct gaps *gaps);
void gaps_deinit(struct gaps *gaps);

/* Those of bytes that are no more than a stretch: of one or two. */
struct gaps_hold {
    pthread_mutex_t *lower, *upper; /* NULL: the same */
};
struct gaps_hold gaps_hold(struct gaps *gaps, int64_t offset, int64_t n_bytes);
void gaps_release(struct gaps_hold hold);
