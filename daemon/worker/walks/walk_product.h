/* Jobs with a matrix product (kernels/products/product.h), as far as others than the walk see of
 * it: as a job begins and ends, and what all engines do alike with the tiles of its journal. */
#pragma once

#include "daemon/worker/engine.h"

/* After the job's ports are open, and its end; nothing, where the program has no product. -ENOMEM,
 * bad-journal. */
int walk_product_new(struct wjob *job, struct gad_error *error) GAD_MUST_CHECK;
void walk_product_free(struct wjob *job);
/* What the result of a job that is one product says of it: n pairs of a map. */
unsigned walk_product_n_pairs(const struct wjob *job);
void walk_product_pack(const struct wjob *job, const struct engine *e, msgpack_packer *p);

/* walk_log.c: WALK_LOG, the grain in hand from its slot into the journal; WALK_APPLY, from the
 * journal into its slot, and from there to the output; WALK_MARK. 0, -EAGAIN or a status in
 * th->error. */
int walk_log_store(const struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
int walk_log_load(const struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
int walk_log_apply(const struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
int walk_log_mark(struct tile *t, struct thread_context *th) GAD_MUST_CHECK;
/* What the output has in a box, packed as a slot has it. May block. A status. */
int walk_log_read_output(const struct wjob *job, const struct port *port,
                         const struct port_box *box, void *memory, const struct port_io *io,
                         struct gad_error *error) GAD_MUST_CHECK;
