/* Passes that are run before a tile's own: those of its repeats, and the operands of windows that
 * are no inputs. Each has a code and records of its own in the slot, and is a launch of all grains,
 * a step as often as there are steps:
 *
 *     begin:    what lies around the grain, too  -> A
 *     step:     A -> B, B -> A, A -> B ...          the records of both ways are written once
 *     operand:  what lies around the grain, too  -> C, of which the window is then made; with the
 *               windows that it reads itself, whose operands come before
 *
 * All steps go over all of what has been made. Each makes another ring of it wrong, as wide as a
 * step reads around: near its ends, which a step takes for those of the axis, so that it never
 * reads beyond them. What is right behind the last step is what the pass reads. A box that goes on
 * beyond the end of an axis has a record for each of its parts, since elements have to know where
 * they are.
 *
 * What arithmetic meets is counted of the grain's own elements, in a launch for these alone; the
 * counts of steps are added up in the slot.
 *
 * Called by tile.c, tile_grain.c and tile_result.c.
 */
#include "kernels/cuda/tile_parts.h"

#include "kernels/grains/geometry.h"
#include "kernels/neighbours.h"
#include "proto/util.h"

#include <assert.h>
#include <errno.h>

#define MOST_LAUNCHES 4096u /* of a step: they are put into the stream one after the other */
#define MOST_WRAPPED  4     /* axes of a repeat */
#define MOST_PARTS    64u   /* of a grain, of one phase */

const char *cuda_tile_no_repeats(const struct program *program, const struct pass *pass)
{
    for (uint32_t left = pass->repeats; left; left &= left - 1) {
        const struct program_repeat *r = &program->repeats[__builtin_ctz(left)];
        if (r->n_steps > MOST_LAUNCHES)
            return "repeat of so many steps is computed on the CPU";
        if (__builtin_popcount(r->wrapped_axes) > MOST_WRAPPED)
            return "repeat with 'wrap' along so many axes is computed on the CPU";
    }
    return NULL;
}

/* Encoding ----------------------------------------------------------------------------------- */

static int add_phase(struct cuda_tile *t, const struct pass *pass, uint32_t n_times,
                     unsigned n_ways, unsigned n_parts, const struct engine_view *reduced,
                     uint64_t *at)
{
    struct cuda_tile_phase *phase = &t->phases[t->n_phases++];
    struct encode_nodes nodes;
    assert(t->n_phases <= CUDA_TILE_MAX_PHASES);
    phase->pass = pass;
    phase->n_times = n_times;
    phase->n_ways = n_ways;
    phase->n_parts = n_parts;
    return tile_encode(t->program, pass, reduced, 0, t->slot, *at, &phase->header, &phase->places,
                       &nodes, at);
}

static int add_repeat(struct cuda_tile *t, const struct program_repeat *r,
                      const struct engine_view *reduced, uint64_t *at)
{
    const struct pass *inner = t->program->inner;
    unsigned n_parts = 1u << __builtin_popcount(r->wrapped_axes);
    int status = add_phase(t, &inner[r->begin], 1, 1, n_parts, reduced, at);
    return status || r->n_steps == 0
               ? status
               : add_phase(t, &inner[r->step], r->n_steps, 2, n_parts, reduced, at);
}

/* Of the windows of a pass; what such an operand reads of windows itself comes first. All is made
 * for each of the parts of the box that the pass goes over. */
static int add_operands(struct cuda_tile *t, const struct pass *reader, unsigned n_parts,
                        const struct engine_view *reduced, uint64_t *at)
{
    const struct program *program = t->program;
    int r = 0;
    for (uint64_t left = reader->windows_used; r == 0 && left; left &= left - 1) {
        const struct program_window *window = &program->windows[__builtin_ctzll(left)];
        const struct pass *pass = &program->passes[window->pass];
        unsigned n_own = n_parts;
        if (encode_window_operand(program, window))
            continue;
        for (int i = 0; i < pass->ndim; i++)
            n_own <<=
                window->modes[i] == NEAR_WRAP && window_around(window, i) > 0 && pass->shape[i] > 1;
        if (n_own > MOST_PARTS)
            return -EINVAL;
        r = add_operands(t, pass, n_own, reduced, at);
        r = r ? r : add_phase(t, pass, 1, 1, n_own, reduced, at);
    }
    return r;
}

int tile_encode_phases(struct cuda_tile *t, const struct engine_view *reduced, uint64_t *at)
{
    const struct program *program = t->program;
    const struct pass *pass = &program->passes[t->pass];
    int r = cuda_tile_no_repeats(program, pass) ? -EINVAL : 0;
    t->n_phases = 0;
    for (uint32_t left = pass->repeats; r == 0 && left; left &= left - 1)
        r = add_repeat(t, &program->repeats[__builtin_ctz(left)], reduced, at);
    return r ? r : add_operands(t, pass, 1, reduced, at);
}

static void place_set(const struct cuda_tile_phase *phase, uint64_t n_records,
                      struct cuda_tile_set *set, uint64_t *at)
{
    *set = (struct cuda_tile_set){.grains_offset = *at, .most = (unsigned)n_records};
    *at += n_records * phase->header.grain_bytes;
}

void tile_place_records(struct cuda_tile *t, uint64_t n_grains, uint64_t *at)
{
    for (unsigned i = 0; i < t->n_phases; i++) {
        struct cuda_tile_phase *phase = &t->phases[i];
        for (unsigned way = 0; way < phase->n_ways; way++) {
            place_set(phase, n_grains * phase->n_parts, &phase->sets[way], at);
            if (phase->header.has_counters)
                place_set(phase, n_grains, &phase->counted[way], at);
        }
    }
}

void tile_place_counters(struct cuda_tile *t, uint64_t n_grains, uint64_t *at)
{
    for (unsigned i = 0; i < t->n_phases; i++) {
        const struct code_header *h = &t->phases[i].header;
        t->phases[i].results_offset = *at;
        *at += n_grains * h->blocks_of_grain * h->result_bytes;
    }
}

/* Records ------------------------------------------------------------------------------------ */

/* What phases are told of the grain in hand. */
struct grain_call {
    struct cuda_tile *t;
    const struct engine_box *box; /* of the tile's pass */
    const struct engine_view *inputs, *reduced;
};

/* A window's operand, once its phase will make it. */
struct operand_made {
    struct made_box box;
    char *memory;
};

/* Arrays that a phase makes: from the first memory on, if it reads them, to the second. */
struct making {
    struct cuda_tile *t;
    const struct grain_call *call;
    struct made_box made;
    const struct operand_made *operands; /* of the windows that it reads, by their numbers */
    unsigned first_output, n_arrays;
    char *memory[2][PROGRAM_MAX_STATES];
};

static enum dtype dtype_of(const struct making *m, unsigned array)
{
    return m->t->program->outputs[m->first_output + array].dtype;
}

static void take_memory(struct making *m, unsigned n_memories)
{
    for (unsigned k = 0; k < n_memories; k++)
        for (unsigned i = 0; i < m->n_arrays; i++)
            m->memory[k][i] =
                tile_take_value(m->t, m->made.n_elements * dtype_size(dtype_of(m, i)));
}

/* Those that a pass reads, from the element `at` on. */
static void view_states(const struct making *m, const struct pass *pass, char *const *memory,
                        const int64_t *at, int n_missing, struct engine_view *views)
{
    for (uint64_t left = pass->states_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        unsigned array = m->t->program->inputs[i].arg - m->first_output;
        if (array < m->n_arrays)
            made_box_view(&m->made, dtype_size(dtype_of(m, array)), memory[array], at, n_missing,
                          &views[i]);
    }
}

/* Those of a pass's windows, from the element `at` on. */
static void view_operands(const struct program *program, const struct pass *pass,
                          const struct operand_made *operands, const int64_t *at,
                          struct engine_view *views)
{
    for (uint64_t left = pass->windows_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        const struct program_window *window = &program->windows[i];
        if (encode_window_operand(program, window))
            continue;
        const struct made_box *box = &operands[i].box;
        int n_missing = pass->ndim - box->ndim;
        made_box_view(box, dtype_size((enum dtype)window->dtype), operands[i].memory,
                      at + n_missing, n_missing, &views[i]);
    }
}

static void add_record(const struct making *m, const struct cuda_tile_phase *phase, unsigned way,
                       const int64_t *start, const int64_t *count, struct cuda_tile_set *set)
{
    const struct tile_code code = {phase->pass, &phase->header, &phase->places};
    struct engine_view inputs[REQUEST_MAX_ARGS], outputs[PROGRAM_MAX_STATES];
    struct engine_view reduced[PROGRAM_MAX_REDUCTIONS]; /* large: only what is used is written */
    struct engine_view made[PROGRAM_MAX_WINDOWS];
    const struct engine_box box = {
        .ndim = m->made.ndim, .count = count, .axis_order = m->made.axis_order, .start = start};
    const struct tile_views views = {.inputs = inputs,
                                     .outputs = outputs,
                                     .reduced = reduced,
                                     .made = made,
                                     .first_output = m->first_output,
                                     .step_of = phase->n_ways > 1 ? &m->made : NULL};
    for (uint64_t left = phase->pass->inputs_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        made_box_move(&m->made, m->call->box, &m->call->inputs[i], start, &inputs[i]);
    }
    for (uint64_t left = phase->pass->reduced_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left); /* the same along what lies around */
        made_box_move(&m->made, m->call->box, &m->call->reduced[i], start, &reduced[i]);
    }
    view_states(m, phase->pass, m->memory[way], start, 0, inputs);
    view_operands(m->t->program, phase->pass, m->operands, start, made);
    unsigned to = phase->n_ways > 1 ? 1 - way : 0;
    for (unsigned i = 0; i < m->n_arrays; i++)
        made_box_view(&m->made, dtype_size(dtype_of(m, i)), m->memory[to][i], start, 0,
                      &outputs[i]);
    struct code_grain *grain = (struct code_grain *)(m->t->slot + set->grains_offset +
                                                     (uint64_t)set->n * phase->header.grain_bytes);
    assert(set->n < set->most);
    tile_write_grain(m->t, &code, &box, &views, grain);
    unsigned n_window_blocks = (grain->n_elements - 1) / CODE_TASK_THREADS + 1;
    set->n_blocks = (unsigned)max_u64(set->n_blocks, grain->n_blocks);
    set->n_window_blocks = (unsigned)max_u64(set->n_window_blocks, n_window_blocks);
    set->n++;
}

/* Whether a part of the box has the grain, and how far it is from that, along the axes. */
static bool locate(const struct making *m, const int64_t *start, const int64_t *count,
                   int64_t *ret_distance)
{
    bool has_it = true;
    for (int i = 0; i < m->made.ndim; i++) {
        int64_t own = m->made.shape[i] == 1 ? 0 : m->call->box->start[m->made.n_missing + i];
        has_it &= own >= start[i] && own < start[i] + count[i];
        ret_distance[i] = m->made.first[i] + made_box_place(&m->made, i, start[i]);
    }
    return has_it;
}

static void make_operands(const struct grain_call *call, const struct pass *reader,
                          const int64_t *start, const int64_t *count, const int64_t *distance,
                          bool is_counted, struct operand_made *ret);

/* To the next phase, behind those of the windows that it reads. is_counted: what it meets in the
 * grain's own elements. */
static void add_records(struct making *m, const struct pass *pass, unsigned n_ways, bool is_counted)
{
    const struct engine_box *own = m->call->box;
    const struct made_box *made = &m->made;
    struct operand_made operands[PROGRAM_MAX_WINDOWS]; /* large: only some is written */
    int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM], distance[ARRAY_MAX_NDIM];
    unsigned first_phase = m->t->next_phase;
    struct cuda_tile_phase *phase = NULL;
    m->operands = operands;
    for (unsigned way = 0; way < n_ways; way++) {
        uint32_t part = 0;
        for (bool has_more = true; has_more;) {
            has_more = made_box_next_part(made->ndim, made->shape, made->start, made->count, &part,
                                          start, count);
            bool is_own = locate(m, start, count, distance) && is_counted;
            m->t->next_phase = first_phase;
            make_operands(m->call, pass, start, count, distance, is_own, operands);
            phase = &m->t->phases[m->t->next_phase];
            uint64_t values = m->t->values_end, end;
            add_record(m, phase, way, start, count, &phase->sets[way]);
            if (!is_own || !phase->header.has_counters)
                continue;
            end = m->t->values_end;
            m->t->values_end = values; /* windows are made again, of less, in their places */
            geometry_operand_box(own->ndim, own->start, own->count, made->ndim, made->shape, start,
                                 count);
            add_record(m, phase, way, start, count, &phase->counted[way]);
            m->t->values_end = end;
        }
    }
    m->t->next_phase++;
}

/* For a pass that computes so much along its axes, so far from the grain. */
static void make_operands(const struct grain_call *call, const struct pass *reader,
                          const int64_t *start, const int64_t *count, const int64_t *distance,
                          bool is_counted, struct operand_made *ret)
{
    const struct program *program = call->t->program;
    for (uint64_t left = reader->windows_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        const struct program_window *window = &program->windows[i];
        const struct pass *pass = &program->passes[window->pass];
        int n_missing = reader->ndim - pass->ndim;
        struct making m = {.t = call->t,
                           .call = call,
                           .first_output = program->stores[pass->first_store].output,
                           .n_arrays = 1};
        if (encode_window_operand(program, window))
            continue;
        neighbours_window_box(window, pass, reader->ndim, start, count, m.made.start, m.made.count);
        made_box_lay_out(&m.made, pass->ndim, pass->shape, call->box);
        for (int k = 0; k < pass->ndim; k++)
            m.made.first[k] =
                pass->shape[k] == 1
                    ? 0
                    : distance[n_missing + k] - made_box_place(&m.made, k, start[n_missing + k]);
        take_memory(&m, 1);
        add_records(&m, pass, 1, is_counted);
        ret[i].box = m.made;
        ret[i].memory = m.memory[0][0];
    }
}

void tile_add_repeats(struct cuda_tile *t, const struct engine_box *box,
                      const struct engine_view *reduced, struct engine_view *inputs)
{
    const struct program *program = t->program;
    const struct pass *pass = &program->passes[t->pass];
    const struct grain_call call = {t, box, inputs, reduced};
    for (uint32_t left = pass->repeats; left; left &= left - 1) {
        const struct program_repeat *r = &program->repeats[__builtin_ctz(left)];
        struct making m = {
            .t = t, .call = &call, .first_output = r->first_output, .n_arrays = r->n_states};
        neighbours_repeat_box(r, r->n_steps, box->ndim, box->start, box->count, m.made.start,
                              m.made.count);
        made_box_lay_out(&m.made, r->ndim, r->shape, box);
        take_memory(&m, r->n_steps > 0 ? 2 : 1);
        add_records(&m, &program->inner[r->begin], 1, true);
        if (r->n_steps > 0)
            add_records(&m, &program->inner[r->step], 2, true);
        view_states(&m, pass, m.memory[r->n_steps & 1], box->start + m.made.n_missing,
                    m.made.n_missing, inputs);
    }
}

void tile_add_operands(struct cuda_tile *t, const struct engine_box *box,
                       const struct engine_view *inputs, const struct engine_view *reduced,
                       struct engine_view *ret_made)
{
    const struct pass *pass = &t->program->passes[t->pass];
    const struct grain_call call = {t, box, inputs, reduced};
    const int64_t distance[ARRAY_MAX_NDIM] = {0};
    struct operand_made operands[PROGRAM_MAX_WINDOWS];
    if (pass->windows_used == 0)
        return;
    make_operands(&call, pass, box->start, box->count, distance, true, operands);
    view_operands(t->program, pass, operands, box->start, ret_made);
}

/* Launches ----------------------------------------------------------------------------------- */

static struct interpreter_launch describe(const struct cuda_tile *t,
                                          const struct cuda_tile_phase *phase,
                                          const struct cuda_tile_at *at)
{
    unsigned way = at->time % phase->n_ways;
    const struct cuda_tile_set *set = at->is_counted ? &phase->counted[way] : &phase->sets[way];
    bool is_first = at->phase == 0 && at->time == 0 && !at->is_counted;
    struct interpreter_launch launch = cuda_tile_describe(t), all = launch;
    launch = (struct interpreter_launch){
        .header = phase->header,
        .n_grains = set->n,
        .n_blocks = set->n_blocks,
        .read_bytes = is_first ? cuda_tile_to_device_bytes(t) : all.read_bytes,
        .write_offset = all.write_offset,
        .write_bytes = all.write_bytes,
        .outside_read = all.outside_read,
    };
    tile_window_grids(t, &phase->places, set->n_window_blocks, &launch);
    struct code_header *h = &launch.header;
    h->grains_offset = (uint32_t)set->grains_offset;
    h->results_offset = at->is_counted ? phase->results_offset : t->nowhere_offset;
    h->adds_counters = at->is_counted && at->time > 0;
    if (!at->is_counted)
        h->result_bytes = 0; /* all at one place, which nobody reads */
    return launch;
}

/* One grain, when all that comes before has been launched: its records and node are the first that
 * the kernel finds, and it reads what other launches have written. */
static bool next_scan(const struct cuda_tile *t, struct cuda_tile_at *at,
                      struct interpreter_launch *ret_launch)
{
    if (at->n_scanned == t->n_grains)
        return false;
    struct interpreter_launch all = cuda_tile_describe(t);
    *ret_launch = (struct interpreter_launch){.header = all.header,
                                              .n_grains = 1,
                                              .n_scan_blocks = all.n_scan_blocks,
                                              .read_bytes = all.write_offset + all.write_bytes,
                                              .write_offset = all.write_offset,
                                              .write_bytes = all.write_bytes,
                                              .outside_read = all.outside_read,
                                              .outside_written = all.outside_written};
    ret_launch->header.grains_offset += (uint32_t)(at->n_scanned * t->header.grain_bytes);
    ret_launch->header.nodes_offset += (uint64_t)at->n_scanned * t->header.node_bytes;
    at->n_scanned++;
    return true;
}

bool cuda_tile_next_launch(const struct cuda_tile *t, struct cuda_tile_at *at,
                           struct interpreter_launch *ret_launch)
{
    if (at->phase > t->n_phases)
        return t->is_chained && next_scan(t, at, ret_launch);
    if (at->phase == t->n_phases) {
        *ret_launch = cuda_tile_describe(t);
        at->phase++;
        if (!t->is_chained)
            return true;
        ret_launch->n_scan_blocks = 0;
        return ret_launch->n_blocks > 0 || ret_launch->n_window_blocks > 0 ||
               ret_launch->n_rank_blocks > 0 || next_scan(t, at, ret_launch);
    }
    const struct cuda_tile_phase *phase = &t->phases[at->phase];
    *ret_launch = describe(t, phase, at);
    at->is_counted = !at->is_counted && phase->header.has_counters;
    if (!at->is_counted && ++at->time == phase->n_times) {
        at->time = 0;
        at->phase++;
    }
    return true;
}

void tile_add_counters(const struct cuda_tile *t, unsigned grain, uint64_t *counts)
{
    for (unsigned i = 0; i < t->n_phases; i++) {
        const struct cuda_tile_phase *phase = &t->phases[i];
        const struct code_header *h = &phase->header;
        if (!h->has_counters)
            continue;
        const struct code_grain *of =
            (const struct code_grain *)(t->slot + phase->counted[0].grains_offset +
                                        (uint64_t)grain * h->grain_bytes);
        const struct code_state *states =
            (const struct code_state *)(t->slot + phase->results_offset) +
            (uint64_t)grain * h->blocks_of_grain;
        for (unsigned block = 0; block < of->n_blocks; block++) {
            counts[CODE_COUNTER_DIVISIONS] += states[block].value.counters[0];
            counts[CODE_COUNTER_CASTS] += states[block].value.counters[1];
            counts[CODE_COUNTER_POWERS] += states[block].more.counters[0];
        }
    }
}
