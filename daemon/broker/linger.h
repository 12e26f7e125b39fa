/* Whether a wait is so short, by those before, that the loop had better stay awake for its end: a
 * thread that sleeps takes longer to wake, and its processor with it, than a small job takes.
 *
 *     linger_wait()  linger_wait() ...  linger_came()
 *     |<-------- the wait ----------->|
 *
 * Waits of a kind follow each other: a worker's answer to a small job comes soon, what a client
 * asks next may not. Of each kind the mean of the waits lately is kept, and where that is below
 * LINGER_MOST_NS the loop looks for so long before it sleeps. So what is spent awake in vain is a
 * few times LINGER_MOST_NS, until the mean has grown. Pure code.
 *
 * A ring of the session's that the worker serves itself would spare the broker's two wake-ups, too,
 * and so they are spared already: a small job takes 1.96 to 2.08 bare ping-pongs on two processors
 * that nobody else uses (tests/bench/jobs/latency.c; 2.9 without). What is left is the client's
 * wake-up and the worker's. Charging, cancelling, draining and whatever else is decided between two
 * jobs would need a second way, past the broker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LINGER_MOST_NS UINT64_C(50000)

enum linger_kind { LINGER_NEVER, LINGER_FOR_CLIENT, LINGER_FOR_WORKER, N_LINGER_KINDS };

struct lingering {
    enum linger_kind kind; /* of the wait */
    uint64_t since_ns;     /* 0: it has not begun */
    uint64_t mean_ns[N_LINGER_KINDS];
};

void linger_init(struct lingering *linger);
/* Nothing is there. True: stay awake and ask again. */
bool linger_wait(struct lingering *linger, enum linger_kind kind, uint64_t now_ns);
void linger_came(struct lingering *linger, uint64_t now_ns); /* what was waited for */
