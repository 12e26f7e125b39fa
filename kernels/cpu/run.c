/* Running a pass over one box, strip by strip.
 *
 * A strip is a range of elements in visiting order, whatever the rows. For each strip: inputs are
 * found where they lie or are copied into the scratch, all instructions run over it, reductions
 * take it in, stores copy out what was not computed in the output's own memory. One pass over
 * memory each way. All strips have a multiple of KERNEL_GRANULE elements but the box's last, which
 * is split: its tail is shorter than that and runs in scratch buffers, padded.
 *
 * Nothing is allocated and nothing is locked: a fault in a mapping may leave by longjmp() from any
 * load or store. Called by the worker, for each grain, and by tests.
 */
#include "kernels/cpu/run.h"

static void load_inputs(struct run *run, uint64_t first, size_t n)
{
    bool is_tail = n % KERNEL_GRANULE != 0;
    for (unsigned i = 0; i < run->n_inputs; i++) {
        const struct stream *s = &run->inputs[i];
        void *p;
        if (s->kind == STREAM_PERIODIC) {
            p = (char *)s->buffer + ((first % s->n_run) << s->item_log2);
        } else if (is_tail || !(p = stream_direct(s, run->box, first, n))) {
            p = s->buffer;
            stream_load(s, run->box, first, n, run->engine->move, p);
        }
        run->address[s->slot] = p;
    }
}

/* Returns a bit for each store whose strip is computed in the output's own memory. */
static uint32_t place_outputs(struct run *run, uint64_t first, size_t n)
{
    bool is_tail = n % KERNEL_GRANULE != 0;
    uint32_t placed = 0;
    for (unsigned i = 0; i < run->n_stores; i++) {
        struct bound_store *store = &run->stores[i];
        if (!store->is_direct)
            continue;
        void *p = is_tail ? NULL : stream_direct(&store->stream, run->box, first, n);
        run->address[store->stream.slot] = p ? p : store->stream.buffer;
        placed |= (uint32_t)(p != NULL) << i;
    }
    return placed;
}

static void run_strip(struct run *run, uint64_t first, size_t n)
{
    load_inputs(run, first, n);
    uint32_t placed = place_outputs(run, first, n);
    void *const *address = run->address;
    for (unsigned i = 0; i < run->n_insns; i++) {
        const struct bound_insn *insn = &run->insns[i];
        insn->kernel(n, address[insn->dst], address[insn->src[0]], address[insn->src[1]],
                     address[insn->src[2]], &run->events);
    }
    for (unsigned i = 0; i < run->n_reductions; i++) {
        struct bound_reduction *reduction = &run->reductions[i];
        reduction->kernel(n, address[reduction->src], &reduction->state);
    }
    for (unsigned i = 0; i < run->n_stores; i++) {
        if (placed >> i & 1)
            continue;
        const struct bound_store *store = &run->stores[i];
        stream_store(&store->stream, run->box, first, n, run->engine->move, address[store->src],
                     run->spare);
    }
}

static size_t strip_length(const struct run *run, uint64_t first)
{
    uint64_t left = run->n_elements - first;
    if (left >= run->n_strip)
        return run->n_strip;
    return left > KERNEL_GRANULE ? left & ~(uint64_t)(KERNEL_GRANULE - 1) : left;
}

int cpu_engine_run(const struct cpu_engine *engine, const struct program *program, unsigned pass,
                   const struct cpu_box *box, const struct cpu_view *inputs,
                   const struct cpu_view *outputs, const union scalar *reduced,
                   struct partial *ret_partials, struct cpu_warnings *warnings, void *scratch)
{
    struct run *run;
    int r = run_bind(engine, program, pass, box, inputs, outputs, reduced, scratch, &run);
    if (r)
        return r;
    for (uint64_t first = 0; first < run->n_elements;) {
        size_t n = strip_length(run, first);
        run_strip(run, first, n);
        if (run->events.has_negative_power)
            return GAD_NEGATIVE_POWER;
        first += n;
    }
    for (unsigned i = 0; i < run->n_reductions; i++)
        reduce_state_finish(&run->reductions[i].state, run->reductions[i].reduction,
                            &ret_partials[i]);
    warnings->n_divide_by_zero += run->events.n_divide_by_zero;
    warnings->n_invalid_casts += run->events.n_invalid_casts;
    return 0;
}
