/* The turns of a matrix product as the walk sees them: one list, begun in order, each waiting for
 * turns below it (kernels/products/product.h).
 *
 * The job's pass stays the first, and ports_of_pass are the ports of all three passes together,
 * each ring once. A turn has the ports of its own pass: a LOAD an operand's arguments, a STORE
 * those of the result and the output. MULTIPLYs and MARKs touch no array.
 *
 * Rings are asked for boxes in the order of the turns, and for the same box again each time that a
 * panel is read again. A place, by which a ring knows a box, is the turn's number and the grain's
 * in it; so an argument that is used by several passes has one ring, whose places are of all of
 * them. The oldest turn that is not done has begun or can begin, and the boxes it needs are the
 * oldest that were asked for: nobody waits for ever, however few slots a ring has.
 *
 * Called under the scheduler's lock, but for a tile's grains.
 */
#include "daemon/worker/jobs/product.h"
#include "proto/util.h"

#include <assert.h>
#include <string.h>

/* Passes ------------------------------------------------------------------------------------- */

static bool has_port(const struct pass_ports *ports, const struct port *port)
{
    for (unsigned i = 0; i < ports->n_inputs; i++)
        if (ports->inputs[i].port == port)
            return true;
    return false;
}

/* The ports of all passes, for who looks at the job's rings. */
static void collect_all(struct wjob *job)
{
    struct pass_ports *all = &job->ports_of_pass;
    all->n_inputs = all->n_outputs = 0;
    all->needs_slot = false;
    for (unsigned pass = 0; pass < PRODUCT_N_PASSES; pass++) {
        const struct pass_ports *ports = &job->product->ports[pass];
        all->needs_slot |= ports->needs_slot;
        for (unsigned i = 0; i < ports->n_inputs; i++)
            if (!ports->inputs[i].port->has_others_ring && !has_port(all, ports->inputs[i].port))
                all->inputs[all->n_inputs++] = ports->inputs[i];
        for (unsigned i = 0; i < ports->n_outputs; i++)
            all->outputs[all->n_outputs++] = ports->outputs[i];
    }
}

void product_set_ports(struct wjob *job)
{
    struct product_walk *walk = job->product;
    for (unsigned pass = 0; pass < PRODUCT_N_PASSES; pass++)
        wjob_collect_ports(job, pass, &walk->ports[pass]);
    for (unsigned pass = 0; pass < PRODUCT_RESULT; pass++)
        walk->ports[pass].needs_slot &= !job->plan.product.is_direct[pass];
    if (job->plan.product.has_journal) { /* from slot to journal, and on */
        walk->ports[PRODUCT_RESULT].needs_slot = true;
        walk->apply = walk->ports[PRODUCT_RESULT];
        walk->apply.n_inputs = 0;
    }
    collect_all(job);
}

int product_new(struct wjob *job)
{
    job->product = calloc(1, sizeof(*job->product));
    if (!job->product)
        return -ENOMEM;
    product_set_ports(job);
    return 0;
}

void product_free(struct wjob *job)
{
    free(job->product);
    job->product = NULL;
}

/* Turns -------------------------------------------------------------------------------------- */

static void look_at_next(struct wjob *job)
{
    if (job->next_tile == job->end_tile)
        return;
    product_turn(&job->plan, job->next_tile, &job->product->next);
    job->product->next_needs = product_needs(&job->plan, job->next_tile);
}

void product_begin(struct wjob *job)
{
    job->first_tile = job->next_tile = job->oldest_tile = 0;
    job->end_tile = job->plan.n_tiles;
    job->n_tiles_done = 0;
    memset(job->stacks, 0, sizeof(job->stacks));
    look_at_next(job);
}

bool product_can_begin_turn(const struct wjob *job)
{
    return job->next_tile - job->oldest_tile < PLAN_MAX_WINDOW &&
           job->oldest_tile >= job->product->next_needs;
}

static const struct pass_ports *ports_of(const struct wjob *job, const struct product_turn *turn)
{
    const struct product_walk *walk = job->product;
    if (turn->is_empty)
        return &walk->none;
    switch (turn->step) {
    case PRODUCT_LOAD:
    case PRODUCT_STORE: return &walk->ports[turn->pass];
    case PRODUCT_APPLY: return &walk->apply;
    case PRODUCT_MULTIPLY:
    case PRODUCT_MARK: break;
    }
    return &walk->none;
}

static uint64_t n_grains_of(const struct product_turn *turn)
{
    bool has_grains =
        turn->step == PRODUCT_LOAD || turn->step == PRODUCT_STORE || turn->step == PRODUCT_APPLY;
    return has_grains && !turn->is_empty ? turn->n_grains : 0;
}

const struct pass_ports *product_next_ports(const struct wjob *job)
{
    return ports_of(job, &job->product->next);
}

void product_take_turn(struct wjob *job, struct tile *t)
{
    t->turn = job->product->next;
    t->pass = t->turn.pass;
    t->ports = ports_of(job, &t->turn);
    t->grain = 0;
    t->end = n_grains_of(&t->turn);
    look_at_next(job);
}

uint64_t product_grain_number(const struct tile *t, uint64_t grain)
{
    return product_grain(&t->job->plan, &t->turn, grain);
}

/* Rings -------------------------------------------------------------------------------------- */

static uint64_t places_of_turn(const struct wjob *job)
{
    const struct plan_product *p = &job->plan.product;
    return max_u64(max_u64(p->load_grains, p->store_grains), 1);
}

uint64_t product_place(const struct wjob *job, uint64_t turn, uint64_t grain)
{
    return turn * places_of_turn(job) + grain;
}

/* The port that has this ring, among those that the turn reads or writes. NULL: none. */
static const struct port *port_of(const struct wjob *job, const struct product_turn *turn,
                                  const struct ring *ring)
{
    const struct pass_ports *ports = ports_of(job, turn);
    for (unsigned i = 0; i < ports->n_inputs; i++)
        if (ports->inputs[i].port->ring == ring)
            return ports->inputs[i].port;
    for (unsigned i = 0; i < ports->n_outputs; i++)
        if (ports->outputs[i].port->ring == ring)
            return ports->outputs[i].port;
    return NULL;
}

/* In which passes it is, bits. */
static unsigned passes_of(const struct wjob *job, const struct ring *ring)
{
    unsigned passes = 0;
    for (unsigned pass = 0; pass < PRODUCT_N_PASSES; pass++) {
        const struct pass_ports *ports = &job->product->ports[pass];
        for (unsigned i = 0; i < ports->n_inputs; i++)
            passes |= (unsigned)(ports->inputs[i].port->ring == ring) << pass;
        for (unsigned i = 0; i < ports->n_outputs; i++)
            passes |= (unsigned)(ports->outputs[i].port->ring == ring) << pass;
    }
    return passes;
}

/* Under the scheduler's lock, and a job may have any number of turns: it does not look at each. */
static bool find_place(const struct ring_walk *walk, uint64_t *place)
{
    const struct wjob *job = walk->job;
    const struct port *port = walk->port;
    uint64_t n_places = places_of_turn(job), grain = *place % n_places;
    unsigned passes = passes_of(job, port->ring);
    for (uint64_t i = *place / n_places; i < job->end_tile; i++, grain = 0) {
        struct product_turn turn;
        uint64_t next = product_skip(&job->plan, i, passes);
        if (next >= job->end_tile)
            return false;
        grain = next == i ? grain : 0;
        i = next;
        product_turn(&job->plan, i, &turn);
        if (grain >= n_grains_of(&turn) || !port_of(job, &turn, port->ring))
            continue;
        *place = product_place(job, i, grain);
        return true;
    }
    return false;
}

static void place_box(const struct ring_walk *walk, uint64_t place, int64_t *ret_start,
                      int64_t *ret_count)
{
    const struct wjob *job = walk->job;
    const struct port *port = walk->port;
    uint64_t n_places = places_of_turn(job);
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
    struct product_turn turn;
    struct port_box box;
    product_turn(&job->plan, place / n_places, &turn);
    const struct geometry *g = &job->plan.passes[turn.pass].geometry;
    port = port_of(job, &turn, port->ring); /* it may be transposed, where walk->port is not */
    assert(port);
    geometry_grain(g, product_grain(&job->plan, &turn, place % n_places), start, count);
    port_pass_box(port, g->ndim, start, count, &box);
    memcpy(ret_start, box.start, (size_t)port->array.ndim * sizeof(*ret_start));
    memcpy(ret_count, box.count, (size_t)port->array.ndim * sizeof(*ret_count));
}

void product_ring_walk(const struct wjob *job, const struct port *port, struct ring_walk *ret_walk)
{
    *ret_walk = (struct ring_walk){find_place, place_box, job, port};
}
