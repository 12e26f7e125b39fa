#include "daemon/broker/linger.h"
#include "proto/util.h"

/* A longer wait counts as so much in the mean, of which it is one part in WEIGHT: two in a row end
 * the lingering. */
#define COUNTED_NS (4 * LINGER_MOST_NS)
#define WEIGHT     8u

void linger_init(struct lingering *linger)
{
    *linger = (struct lingering){.kind = LINGER_NEVER};
    for (unsigned i = 0; i < N_LINGER_KINDS; i++)
        linger->mean_ns[i] = COUNTED_NS;
}

bool linger_wait(struct lingering *linger, enum linger_kind kind, uint64_t now_ns)
{
    if (linger->since_ns == 0 || linger->kind != kind) {
        linger->kind = kind;
        linger->since_ns = now_ns;
    }
    return kind != LINGER_NEVER && linger->mean_ns[kind] < LINGER_MOST_NS &&
           now_ns - linger->since_ns < LINGER_MOST_NS;
}

void linger_came(struct lingering *linger, uint64_t now_ns)
{
    uint64_t *mean_ns = &linger->mean_ns[linger->kind];
    if (linger->since_ns == 0)
        return;
    *mean_ns -= *mean_ns / WEIGHT;
    *mean_ns += min_u64(now_ns - linger->since_ns, COUNTED_NS) / WEIGHT;
    linger->since_ns = 0;
}
