/* The CPU as an engine of the worker: slots for one grain or two on memory of its own. */
#pragma once

#include "daemon/worker/engine.h"
#include "kernels/cpu/engine.h"

struct engine_cpu_config {
    uint64_t pool_bytes;
    unsigned n_threads; /* compute */
    enum cpu_level max_level;
};

/* Maps the pool, faulted in as it is touched. -EINVAL: no pool or no threads; -errno. */
int engine_cpu_new(const struct engine_cpu_config *config,
                   struct engine **ret_engine) GAD_MUST_CHECK;

/* product.c. WALK_FILL: the grain in hand, whose boxes are in th, from its file into its panel.
 * WALK_MULTIPLY, from its beginning to its end; -ECANCELED: the job was stopped. */
int cpu_product_fill(const struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
int cpu_product_multiply(struct tile *t, struct thread_context *th) GAD_MUST_CHECK;

/* slab.c. WALK_FILL of a slab, as above. WALK_STEPS, and what is behind the grains of a slab's
 * turn; 0, -ECANCELED or a status in th->error. */
int cpu_slab_fill(const struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
int cpu_slab_steps(struct tile *t, struct thread_context *th) GAD_MUST_CHECK;

/* together.c: which grains are read and written with the one in hand, whose boxes are in th. Then,
 * of a staged operand: the bytes of them all; where in `memory`, which has those, the elements of
 * the grain in hand are; reading those of an input; and writing all outputs, once the grain in hand
 * is the last of them. */
void together_begin(struct tile *t, const struct thread_context *th);
int64_t together_bytes(const struct tile *t, const struct port *port, const struct port_box *box);
void together_place(const struct tile *t, const struct port *port, const struct port_box *box,
                    void *memory, struct engine_view *ret_view);
/* The same of an input, with what lies around the grains where it is near; and the views of all
 * that is read with it. */
int64_t together_input_bytes(const struct tile *t, const struct thread_context *th, unsigned input);
void together_input_views(const struct tile *t, struct thread_context *th, unsigned input);
int together_fill(const struct tile *t, struct thread_context *th, unsigned input) GAD_MUST_CHECK;
int together_store(const struct tile *t, struct thread_context *th) GAD_MUST_CHECK;

/* turn.c: its turns and reads. */
enum tile_outcome cpu_turn_run(struct engine *e, struct tile *t, struct thread_context *th);
int cpu_turn_read(struct engine *e, struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
