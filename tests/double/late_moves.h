/* Moves into shared memory as late as they may come, for the host: none is made before the program
 * waits for it. What forgets to wait reads what was there before. */
#pragma once

#include "kernels/cuda/device/device.h"

#include <assert.h>

#define LATE_MOVES_MAX 1024 /* every load, two groups, three batches */

struct late_move {
    char *to;
    const char *from;
    u32 n_bytes, batch;
};

struct late_moves {
    struct late_move moves[LATE_MOVES_MAX];
    u32 n, n_batches; /* committed */
};
static _Thread_local struct late_moves late;

DEVICE void move_late(char *to, const char *from, u32 n_bytes)
{
    assert(late.n < LATE_MOVES_MAX);
    struct late_move *m = &late.moves[late.n++];
    m->to = to;
    m->from = from;
    m->n_bytes = n_bytes;
    m->batch = late.n_batches;
}

DEVICE void move_ahead_16(char *to, const char *from)
{
    move_late(to, from, 16);
}

DEVICE void move_ahead_8(char *to, const char *from)
{
    move_late(to, from, 8);
}

DEVICE void move_ahead_4(char *to, const char *from)
{
    move_late(to, from, 4);
}

DEVICE void moves_commit(void)
{
    late.n_batches++;
}

DEVICE void moves_wait(u32 n_newer)
{
    u32 n_left = 0;
    for (u32 i = 0; i < late.n; i++) {
        const struct late_move *m = &late.moves[i];
        if (m->batch + n_newer < late.n_batches)
            memcpy(m->to, m->from, m->n_bytes);
        else
            late.moves[n_left++] = *m;
    }
    late.n = n_left;
}
