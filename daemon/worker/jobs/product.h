/* The turns of a job with a matrix product, in the place of the tiles of a pass
 * (kernels/products/product.h): what they read and write, when they begin, what clients' rings are
 * asked for. */
#pragma once

#include "daemon/worker/io/ring.h"
#include "daemon/worker/jobs/tile.h"

struct product_walk { /* written under the scheduler's lock */
    struct pass_ports ports[PRODUCT_N_PASSES];
    struct pass_ports apply, none; /* journal to output; turns that touch no array */
    struct product_turn next;      /* the turn job->next_tile, where there is one, */
    uint64_t next_needs;           /* and product_needs() of it */
};

/* After the job's ports are open: its product_walk. -ENOMEM. */
int product_new(struct wjob *job) GAD_MUST_CHECK;
void product_free(struct wjob *job);
/* The ports of its passes, for the job's plan. */
void product_set_ports(struct wjob *job);

/* For the walk. */
void product_begin(struct wjob *job);
bool product_can_begin_turn(const struct wjob *job);
const struct pass_ports *product_next_ports(const struct wjob *job);
/* The next turn is this tile's from here on. */
void product_take_turn(struct wjob *job, struct tile *t);
/* What is asked of the ring of a port, which several passes may use, in the order of the turns. */
void product_ring_walk(const struct wjob *job, const struct port *port, struct ring_walk *ret_walk);

/* The number, in its pass, of the tile's grain. */
uint64_t product_grain_number(const struct tile *t, uint64_t grain);
/* What rings know the tile's grain as. */
uint64_t product_place(const struct wjob *job, uint64_t turn, uint64_t grain);

static inline bool product_is_load(const struct tile *t)
{
    return t->job->product && t->turn.step == PRODUCT_LOAD;
}
/* Its output goes to the journal; comes from there. */
static inline bool product_is_logged(const struct tile *t)
{
    return t->job->journal && t->turn.step == PRODUCT_STORE;
}
static inline bool product_is_applied(const struct tile *t)
{
    return t->job->journal && t->turn.step == PRODUCT_APPLY;
}

/* product_log.c: what all engines do alike. Views of the grain in hand: the panel that a LOAD
 * writes, the part of C that a STORE reads. */
void product_views(const struct tile *t, struct thread_context *th);
/* The grain in hand from its slot into the journal; from the journal into its slot; from there to
 * the output. 0, -EAGAIN or a status in th->error. */
int product_log(const struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
int product_read_log(const struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
int product_apply(const struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
/* What the output has in a box, packed as a slot has it. May block. A status. */
int product_read_output(const struct wjob *job, const struct port *port, const struct port_box *box,
                        void *memory, const struct port_io *io,
                        struct gad_error *error) GAD_MUST_CHECK;
