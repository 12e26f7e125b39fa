/* How often each number of a bin is there, in a box and for each of its cells. */
#pragma once

#include "kernels/cpu/run/reducer.h"

#define COUNT_MAX_TABLES 4

/* One BINCOUNT of a pass. */
struct counting {
    uint32_t n_bins;
    uint16_t weights; /* slot; only where has_weights */
    bool has_weights;
    void *plane;        /* in the node: n_cells times n_bins */
    unsigned n_tables;  /* 0: elements are counted in the plane */
    uint32_t *tables;   /* n_bins, and one for what is outside of them, table_step apart */
    size_t table_step;  /* in counters */
    uint64_t open_cell; /* that the tables count for */
};

/* Bytes of counters beside the node, at most `room_bytes`; sets n_tables. */
size_t counting_choose_tables(struct counting *c, const struct reducer *r, size_t room_bytes);
/* tables: as many bytes; NULL for none. */
void counting_begin(struct counting *c, const struct reducer *r, uint32_t *tables);
/* Elements [first, first + n) of the box; weights: theirs, or NULL. */
void counting_take(const struct reducer *r, struct counting *c, uint64_t first, size_t n,
                   const int64_t *bins, const double *weights);
void counting_finish(struct counting *c);
