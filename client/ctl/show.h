/* gpuarrayctl show: its histogram. */
#pragma once

#include "client/ctl/ctl.h"

#define SHOW_MAX_BINS 14

struct show_bins {
    unsigned n;                                 /* 0: no histogram */
    struct gad_scalar edges[SHOW_MAX_BINS + 1]; /* n + 1 of them */
    uint64_t counts[SHOW_MAX_BINS];
};

/* The edges. Both are finite and of one kind; least is below greatest. Pure. */
void show_bins_init(struct show_bins *bins, const struct gad_scalar *least,
                    const struct gad_scalar *greatest);
