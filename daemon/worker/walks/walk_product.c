/* Matrix products: a product's three passes are walked together, in turns. A turn is a tile:
 * there is one list of them, begun in order, each waiting for turns below it
 * (kernels/products/product.h).
 *
 * A turn has the ports of its own pass: a LOAD an operand's arguments, a STORE those of the result
 * and the output. MULTIPLYs and MARKs touch no array. The stage's ports are those of all three.
 *
 * Rings are asked for boxes in the order of the turns, and for the same box again each time that a
 * panel is read again. A position, by which a ring knows a box, is the turn's number and the
 * grain's in it; so an argument that is used by several passes has one ring, whose positions are of
 * all of them. The oldest turn that is not done has begun or can begin, and the boxes it needs are
 * the oldest that were asked for: nobody waits for ever, however few slots a ring has.
 */
#include "daemon/worker/walks/walk_product.h"
#include "daemon/worker/walks/journal.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

#include <string.h>

struct walk_product {
    const struct plan_product *planned; /* of the stage in hand */
    struct pass_ports ports[PRODUCT_N_PASSES];
    struct pass_ports apply;  /* from journal to output */
    struct product_turn next; /* where walk.next is */
};

/* Jobs --------------------------------------------------------------------------------------- */

int walk_product_new(struct wjob *job, struct gad_error *error)
{
    if (job->program->n_products == 0)
        return 0;
    job->walk.product = calloc(1, sizeof(*job->walk.product));
    if (!job->walk.product)
        return -ENOMEM;
    return job->request->has_journal ? journal_new(job, error) : 0;
}

void walk_product_free(struct wjob *job)
{
    free(job->walk.product);
    journal_free(job);
}

unsigned walk_product_n_pairs(const struct wjob *job)
{
    return program_is_product(job->program) + (job->walk.journal != NULL);
}

/* Vectors are too little for the CPU's library. */
static const char *library_of(const struct engine *e, const struct wjob *job)
{
    const struct plan_product *product = &job->plan.products[0];
    bool is_matrix = product->n_rows > 1 && product->n_columns > 1;
    bool is_of_library =
        dtype_is_float(product->whole->dtype) && (is_matrix || e->limits.engine->has_link);
    return is_of_library && e->blas ? e->blas : "gpuarrayd " GPUARRAYD_VERSION;
}

void walk_product_pack(const struct wjob *job, const struct engine *e, msgpack_packer *p)
{
    if (!program_is_product(job->program))
        return;
    const struct plan_product *product = &job->plan.products[0];
    enum dtype dtype = product->whole->dtype;
    pack_str(p, "product");
    msgpack_pack_map(p, 6);
    pack_key_str(p, "library", library_of(e, job));
    pack_key_str(p, "precision", product->is_tf32 ? "tf32" : dtype_name(dtype));
    pack_str(p, "tile");
    msgpack_pack_array(p, 3);
    msgpack_pack_int64(p, product->tile_matrices);
    msgpack_pack_int64(p, product->tile_rows);
    msgpack_pack_int64(p, product->tile_columns);
    pack_key_u64(p, "tiles", product->n_tiles);
    pack_key_u64(p, "left_bytes", job->measure.operand_bytes[0]);
    pack_key_u64(p, "right_bytes", job->measure.operand_bytes[1]);
    if (job->walk.journal)
        pack_key_str(p, "journal", journal_state_name(job->walk.journal->state));
}

/* Passes ------------------------------------------------------------------------------------- */

static void set_ports(struct wjob *job)
{
    struct walk_product *product = job->walk.product;
    for (unsigned pass = 0; pass < PRODUCT_N_PASSES; pass++)
        walk_collect_ports(job, job->walk.stage->first_pass + pass, &product->ports[pass]);
    for (unsigned pass = 0; pass < PRODUCT_RESULT; pass++)
        product->ports[pass].needs_slot &= !product->planned->is_direct[pass];
    if (job->walk.journal) { /* from slot to journal, and on */
        product->ports[PRODUCT_RESULT].needs_slot = true;
        product->apply = product->ports[PRODUCT_RESULT];
        product->apply.n_inputs = product->apply.n_rings = 0; /* the output has none */
    }
    walk_collect_rings(job, PRODUCT_N_PASSES, product->ports);
}

static void begin(struct wjob *job)
{
    struct walk *w = &job->walk;
    w->product->planned = &job->plan.products[w->stage->product];
    w->first_tile = 0;
    w->end_tile = w->n_tiles = w->product->planned->n_turns;
    set_ports(job);
    walk_order_begin(job);
}

/* Turns -------------------------------------------------------------------------------------- */

/* Turns without grains touch no array: MULTIPLYs, MARKs, and those for which nothing is to do. */
static const struct pass_ports *ports_of(const struct wjob *job, const struct product_turn *turn)
{
    static const struct pass_ports none;
    const struct walk_product *product = job->walk.product;
    if (turn->n_grains == 0)
        return &none;
    return turn->step == PRODUCT_APPLY ? &product->apply : &product->ports[turn->pass];
}

static enum walk_step step_of(const struct wjob *job, const struct product_turn *turn)
{
    if (turn->is_empty)
        return WALK_NOTHING;
    switch (turn->step) {
    case PRODUCT_LOAD:
        return job->walk.product->planned->is_direct[turn->pass] ? WALK_FILL : WALK_COMPUTE;
    case PRODUCT_MULTIPLY: return WALK_MULTIPLY;
    case PRODUCT_STORE: return job->walk.journal ? WALK_LOG : WALK_COMPUTE;
    case PRODUCT_MARK: return WALK_MARK;
    case PRODUCT_APPLY: break;
    }
    return WALK_APPLY;
}

/* The positions of a turn's grains come behind those of the turn before. */
static uint64_t positions_of_turn(const struct wjob *job)
{
    const struct plan_product *p = job->walk.product->planned;
    return max_u64(max_u64(p->load_grains, p->store_grains), 1);
}

static void look(struct wjob *job)
{
    struct walk *w = &job->walk;
    product_turn(w->product->planned, w->next_tile, &w->product->next);
    w->next = (struct walk_next){.ports = ports_of(job, &w->product->next),
                                 .position = w->next_tile * positions_of_turn(job),
                                 .n_grains = w->product->next.n_grains,
                                 .needs = product_needs(w->product->planned, w->next_tile)};
}

static void take(struct tile *t)
{
    const struct walk *w = &t->job->walk;
    t->product = w->product->planned;
    t->turn = w->product->next;
    t->step = step_of(t->job, &t->turn);
    t->pass = w->stage->first_pass + t->turn.pass;
    t->results_used = tile_pass(t)->reduced_used;
    t->end = t->prefetch_end = t->turn.n_grains;
    t->first_position = w->next.position;
}

static uint64_t grain_number(const struct tile *t, uint64_t grain)
{
    return product_grain(t->product, &t->turn, grain);
}

/* What a LOAD writes is one more output of its pass, C one more result that a STORE's pass reads;
 * what a STORE keeps for stages behind is one more output, too. */
static void views(const struct tile *t, const int64_t *start, struct engine_view *ret_outputs,
                  struct engine_view *ret_results)
{
    const struct wjob *job = t->job;
    const struct program_product *whole = t->product->whole;
    struct engine_view *own = &ret_outputs[whole->first_output + t->turn.pass];
    walk_runs_views(t, start, ret_outputs, ret_results);
    if (t->turn.step == PRODUCT_LOAD) {
        product_panel_view(t->product, &t->turn, start, job->product_carry, own);
        return;
    }
    product_result_view(t->product, start, job->product_carry, &ret_results[whole->reduction]);
    if (whole->is_kept)
        plan_state_view(&job->plan, job->program, whole->reduction, start, job->product_carry, own);
}

static void grain_done(struct tile *t, const struct thread_context *th)
{
    for (unsigned i = 0; t->turn.step == PRODUCT_LOAD && i < t->ports->n_inputs; i++)
        t->measure.operand_bytes[t->turn.pass] +=
            (uint64_t)port_box_bytes(t->ports->inputs[i].port, &th->input_boxes[i]);
}

/* Rings -------------------------------------------------------------------------------------- */

/* Under the scheduler's lock, and a job may have any number of turns: it does not look at each. */
static bool find_position(const struct ring_walk *walk, uint64_t *position)
{
    const struct wjob *job = walk->job;
    const struct plan_product *product = job->walk.product->planned;
    const struct ring *ring = ((const struct port *)walk->port)->ring;
    uint64_t n_positions = positions_of_turn(job), grain = *position % n_positions;
    unsigned passes = 0; /* in which the ring is, bits */
    for (unsigned pass = 0; pass < PRODUCT_N_PASSES; pass++)
        passes |= (walk_find_port(&job->walk.product->ports[pass], ring) != NULL) << pass;
    for (uint64_t i = *position / n_positions; i < job->walk.end_tile; i++, grain = 0) {
        struct product_turn turn;
        uint64_t next = product_skip(product, i, passes);
        if (next >= job->walk.end_tile)
            return false;
        grain = next == i ? grain : 0;
        i = next;
        product_turn(product, i, &turn);
        if (grain >= turn.n_grains || !walk_find_port(ports_of(job, &turn), ring))
            continue;
        *position = i * n_positions + grain;
        return true;
    }
    return false;
}

static void position_box(const struct ring_walk *walk, uint64_t position, int64_t *ret_start,
                         int64_t *ret_count)
{
    const struct wjob *job = walk->job;
    const struct plan_product *product = job->walk.product->planned;
    uint64_t n_positions = positions_of_turn(job);
    struct product_turn turn;
    product_turn(product, position / n_positions, &turn);
    walk_ring_box(walk, ports_of(job, &turn), &product->passes[turn.pass].geometry,
                  product_grain(product, &turn, position % n_positions), ret_start, ret_count);
}

const struct walk_ops walk_product_ops = {
    .grain_number = grain_number,
    .begin = begin,
    .look = look,
    .can_begin = walk_order_can_begin,
    .take = take,
    .done = walk_order_done,
    .find_position = find_position,
    .position_box = position_box,
    .views = views,
    .grain_done = grain_done,
};
