/* Who is where in a shared scan, and whether the next chunk may be decoded. Pure: it knows no
 * memory, socket or clock. */
#pragma once

#include "proto/wire/shared_scan.h"

#define SCAN_MAX_READERS 128u
#define SCAN_NEVER_NS    UINT64_MAX

struct scan_reader_flow {
    bool is_there;
    bool is_lagging;       /* it is not waited for until it has caught up */
    bool wants_more;       /* it is to be told when `done` is there */
    uint64_t done;         /* numbers below it are no longer needed */
    uint64_t blocks_since; /* all wait for it; 0: they do not */
    uint64_t patience_ns, refilled_ns;
};

struct scan_flow {
    uint32_t n_slots;
    uint64_t most_ahead;            /* of the fastest reader */
    uint64_t next;                  /* is begun next */
    uint64_t published;             /* all numbers below are there */
    uint64_t there[SCAN_MAX_SLOTS]; /* by slot: 1 + the last number that is there */
    struct scan_reader_flow readers[SCAN_MAX_READERS];
    uint64_t n_taken; /* by all readers together */
};

/* Of so many chunks that are decoded again and again. */
void scan_flow_init(struct scan_flow *flow, uint32_t n_slots, uint64_t n_chunks);

/* At a place where nobody is. Returns the first number that is meant for the reader. */
uint64_t scan_flow_join(struct scan_flow *flow, unsigned place, uint64_t now_ns);
void scan_flow_leave(struct scan_flow *flow, unsigned place);

/* What a reader says. -EPROTO: it cannot be true. */
int scan_flow_ack(struct scan_flow *flow, unsigned place, const struct scan_ack *ack,
                  uint64_t now_ns) GAD_MUST_CHECK;

/* Whether a number may be begun: which. If not, until when that stays so whatever the readers do;
 * they may change it before. */
bool scan_flow_claim(struct scan_flow *flow, uint64_t now_ns, uint64_t *ret_number,
                     uint64_t *ret_until_ns) GAD_MUST_CHECK;
void scan_flow_publish(struct scan_flow *flow, uint64_t number);

/* Whether the reader is to be told now: what it waits for is there. It is told once. */
bool scan_flow_take_wish(struct scan_flow *flow, unsigned place) GAD_MUST_CHECK;
