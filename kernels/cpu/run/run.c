/* Running a pass over one box, strip by strip.
 *
 * A strip is a range of elements in visiting order, whatever the rows. For each strip: inputs are
 * found where they lie or are copied into the scratch, all instructions run over it, reductions
 * take it in, stores copy out what was not computed in the output's own memory. One pass over
 * memory each way. All strips have a multiple of KERNEL_GRANULE elements but the box's last, which
 * is split: its tail is shorter than that and runs in scratch buffers, padded.
 *
 * Where a pass moves more than the cache holds, memory works at the same time as the arithmetic:
 * before each instruction a share of the next strip's inputs is asked for, and the outputs leave
 * past the cache in small pieces.
 *
 * Between instructions whoever wants to know how the time goes is asked whether to go on.
 *
 * Nothing is allocated and nothing is locked: a fault in a mapping may leave by longjmp() from any
 * load or store. Called by the worker, for each grain, and by tests.
 */
#include "kernels/cpu/run/bind.h"

#include "kernels/cpu/run/kth.h"
#include "kernels/cpu/levels/lines.h"
#include "kernels/cpu/moves/movement.h"
#include "kernels/cpu/run/qr_rows.h"
#include "kernels/cpu/windows/window_make.h"
#include "proto/util.h"

#include <errno.h>

#define STREAM_PIECE_BYTES 1024
#define FETCH_BYTES        64
#define STRAIGHT_ELEMENTS  16384 /* between which it is asked whether to go on */

/* What follows on a strip that is used in place. Beyond the end of the box that is mostly the next
 * box; wherever it is, asking for it does no harm. */
static void plan_fetch(struct run *run, const struct stream *s, const void *strip, size_t n)
{
    size_t n_bytes = n << s->item_log2;
    uintptr_t at = (uintptr_t)strip + n_bytes;
    run->fetches[run->n_fetches++] = (struct fetch){.at = at, .end = at + n_bytes};
    run->n_fetch_lines += n_bytes / FETCH_BYTES;
}

/* Asks for the next n_lines, one input after the other: memory likes neighbours. */
static void fetch_ahead(struct run *run, size_t n_lines)
{
    while (run->next_fetch < run->n_fetches && n_lines > 0) {
        struct fetch *f = &run->fetches[run->next_fetch];
        for (; n_lines > 0 && f->at < f->end; f->at += FETCH_BYTES, n_lines--)
            __builtin_prefetch((const void *)f->at, 0, 2); /* into the second level */
        if (f->at >= f->end)
            run->next_fetch++;
    }
}

static void load_inputs(struct run *run, uint64_t first, size_t n)
{
    bool is_tail = n % KERNEL_GRANULE != 0;
    run->n_fetches = run->next_fetch = 0;
    run->n_fetch_lines = 0;
    for (unsigned i = 0; i < run->n_inputs; i++) {
        struct stream *s = &run->inputs[i];
        void *p;
        if (s->kind == STREAM_PERIODIC) {
            p = (char *)s->buffer + ((first % s->n_run) << s->item_log2);
        } else if (is_tail || !(p = stream_direct(s, run->box, first, n))) {
            p = s->buffer;
            stream_load(s, run->box, first, n, run->engine->move, p);
        } else if (s->is_fetched_ahead) {
            plan_fetch(run, s, p, n);
        }
        run->address[s->slot] = p;
    }
    if (run->pass->n_insns < 2 && run->n_fetches < 2)
        run->n_fetches = 0; /* one array read straight through: the processor sees that itself */
    bool is_counted = run_counts(run, first, n);
    for (unsigned i = 0; i < run->n_indices; i++)
        if (!is_counted || &run->indices[i] != run->numbers)
            index_stream_load(&run->indices[i], first, n);
}

/* Returns a bit for each store that is done when its register is defined: computed in the output's
 * own memory, or streamed there. */
static uint32_t place_outputs(struct run *run, uint64_t first, size_t n)
{
    bool is_tail = n % KERNEL_GRANULE != 0;
    uint32_t placed = 0;
    for (unsigned i = 0; i < run->n_stores; i++) {
        struct bound_store *store = &run->stores[i];
        if (!store->is_direct)
            continue;
        void *p = is_tail ? NULL : stream_direct(&store->stream, run->box, first, n);
        bool is_streamed = store->stream.bypasses_cache;
        run->address[store->stream.slot] = p && !is_streamed ? p : store->stream.buffer;
        store->place = is_streamed ? p : NULL;
        placed |= (uint32_t)(p != NULL) << i;
    }
    return placed;
}

static void run_chain(const struct run *run, const struct bound_insn *insn, bool is_past,
                      size_t done, size_t n, void *dst)
{
    const struct chain_kernels *chains = run->engine->chains;
    chain_fn *kernel = (is_past ? chains->past : chains->kernel)[insn->dtype];
    kernel(n, dst, done, run->address, insn->steps, insn->n_steps);
}

/* Of a whole strip: a chain takes as long as many kernels, between which the next strip's lines
 * would be asked for. */
static void run_whole_chain(struct run *run, const struct bound_insn *insn, size_t n)
{
    size_t item_bytes = dtype_size((enum dtype)insn->dtype);
    size_t n_piece = max_u64(STREAM_PIECE_BYTES / item_bytes, KERNEL_GRANULE);
    size_t n_share = (run->n_fetch_lines * n_piece + n - 1) / n;
    for (size_t done = 0; done < n; done += n_piece) {
        fetch_ahead(run, n_share);
        run_chain(run, insn, false, done, min_u64(n_piece, n - done),
                  (char *)run->address[insn->dst] + done * item_bytes);
    }
}

/* Writes n elements, from the strip's element `done` on, where they go. */
static void run_piece(struct run *run, const struct bound_insn *insn, size_t done, size_t n)
{
    const struct bound_store *store = &run->stores[insn->streamed];
    const char *src[3];
    for (unsigned j = 0; j < 3; j++)
        src[j] = (char *)run->address[insn->src[j]] + (done << store->src_log2[j]);
    unsigned item_log2 = store->stream.item_log2;
    char *buffer = run->address[insn->dst], *place = store->place + (done << item_log2);
    bool is_past = insn->past && ((uintptr_t)place & (LINE_BYTES - 1)) == 0;
    if (is_past)
        buffer = place;
    else if (store->is_read_again)
        buffer += done << item_log2;
    if (insn->n_steps > 0)
        run_chain(run, insn, is_past, done, n, buffer);
    else
        (is_past ? insn->past : insn->kernel)(n, buffer, src[0], src[1], src[2], &run->events);
    if (is_past)
        return;
    run->engine->move->stream(n << item_log2, place, buffer);
}

/* The last definition of a store that bypasses the cache, in pieces that stay in the first-level
 * cache: the processor reads and computes the next while the stores of the last one drain. */
static void run_streamed(struct run *run, const struct bound_insn *insn, size_t n, size_t n_lines)
{
    const struct bound_store *store = &run->stores[insn->streamed];
    size_t n_piece = max_u64(STREAM_PIECE_BYTES >> store->stream.item_log2, KERNEL_GRANULE);
    size_t n_share = (n_lines * n_piece + n - 1) / n;
    for (size_t done = 0; done < n; done += n_piece) {
        fetch_ahead(run, n_share);
        run_piece(run, insn, done, min_u64(n_piece, n - done));
    }
}

static void take_strip(struct run *run, uint64_t first, size_t n)
{
    if (run->kth) {
        kth_take(run->kth, first, n, run->address[run->reductions[0].src]);
        return;
    }
    if (run->positions)
        index_stream_load(run->positions, first, n);
    for (unsigned i = 0; i < run->n_reductions; i++) {
        struct reducing *d = &run->reductions[i];
        struct counting *c = d->counting;
        if (d->qr)
            qr_rows_take(d->qr, first, n, run->address[d->src],
                         d->qr->has_column ? run->address[d->qr->column] : NULL);
        else if (c)
            counting_take(&run->reducer, c, first, n, run->address[d->src],
                          c->has_weights ? run->address[c->weights] : NULL);
        else
            reducing_take(&run->reducer, d, first, n, run->address[d->src],
                          run->positions ? run->positions->buffer : NULL);
    }
}

/* False: the box is given up. */
static bool keep_pace(struct run *run, uint64_t worst_ns)
{
    const struct engine_pace *pace = run->box->pace;
    run->since_asked_ns += worst_ns;
    if (!pace || run->since_asked_ns < ENGINE_PACE_NS)
        return true;
    run->since_asked_ns = 0;
    run->is_stopped = !pace->may_go_on(pace->argument);
    return !run->is_stopped;
}

bool run_insns(struct run *run, const struct bound_insn *insns, unsigned n_insns, size_t n)
{
    void *const *address = run->address;
    for (unsigned i = 0; i < n_insns; i++) {
        const struct bound_insn *insn = &insns[i];
        if (!keep_pace(run, insn->worst_ns * n))
            return false;
        insn->kernel(n, address[insn->dst], address[insn->src[0]], address[insn->src[1]],
                     address[insn->src[2]], &run->events);
    }
    return true;
}

static void run_strip(struct run *run, uint64_t first, size_t n)
{
    load_inputs(run, first, n);
    uint32_t placed = place_outputs(run, first, n);
    void *const *address = run->address;
    size_t n_share = run->n_insns ? (run->n_fetch_lines + run->n_insns - 1) / run->n_insns : 0;
    const struct bound_loop *loop = run->loops, *last = loop + run->n_loops;
    for (unsigned i = 0; i < run->n_insns; i++) {
        const struct bound_insn *insn = &run->insns[i];
        if (loop < last && loop->first_insn == i) {
            loop_run(run, loop, n);
            i += loop++->n_insns - 1u;
            if (run->is_stopped)
                return;
            continue;
        }
        if (!keep_pace(run, insn->worst_ns * n))
            return;
        if (run->is_counting && insn->drawn != NO_DRAW) {
            fetch_ahead(run, n_share);
            run_drawn(run, insn, n);
            continue;
        }
        if (insn->streamed != NO_STORE && run->stores[insn->streamed].place) {
            run_streamed(run, insn, n, n_share);
            continue;
        }
        if (insn->n_steps > 0) {
            run_whole_chain(run, insn, n);
            continue;
        }
        fetch_ahead(run, n_share);
        insn->kernel(n, address[insn->dst], address[insn->src[0]], address[insn->src[1]],
                     address[insn->src[2]], &run->events);
    }
    take_strip(run, first, n);
    if (run->n_scans) {
        run_scans(run, first, n);
        return;
    }
    for (unsigned i = 0; i < run->n_stores; i++) {
        if (placed >> i & 1)
            continue;
        struct bound_store *store = &run->stores[i];
        stream_store(&store->stream, run->box, first, n, run->engine->move, address[store->src],
                     run->spare);
    }
}

/* Runs all elements but the tail at once, since nothing is in between: returns how many. Numbers
 * are where they are. */
static uint64_t run_straight(struct run *run)
{
    const struct bound_insn *chain = run->insns;
    uint64_t n_all = run->n_elements & ~(uint64_t)(KERNEL_GRANULE - 1), done = 0;
    for (unsigned i = 0; i < run->n_inputs; i++)
        if (run->inputs[i].kind == STREAM_LINEAR)
            run->address[run->inputs[i].slot] = run->inputs[i].base;
    while (done < n_all) {
        size_t n = min_u64(STRAIGHT_ELEMENTS, n_all - done);
        if (!keep_pace(run, chain->worst_ns * n))
            break;
        run_chain(run, chain, false, done, n,
                  run->stores->stream.base + (done << run->stores->stream.item_log2));
        done += n;
    }
    return done;
}

/* How many elements from `first` on lie together in the input, or all do not; as strips are. */
static uint64_t together(const struct stream *s, uint64_t first)
{
    uint64_t at = first - s->run_first < s->n_run ? first - s->run_first : first % s->n_run;
    uint64_t end = at < s->run_low    ? round_up_u64(s->run_low, KERNEL_GRANULE)
                   : at < s->run_high ? s->run_high
                                      : s->n_run;
    return end - at;
}

/* Where inputs lie in rows a strip ends where they do, but is not too short for the kernels. */
static size_t strip_length(const struct run *run, uint64_t first)
{
    uint64_t left = run->n_elements - first, most = run->n_strip;
    for (unsigned i = 0; i < run->n_inputs && run->ends_with_rows; i++)
        if (run->inputs[i].kind == STREAM_RUNS)
            most = min_u64(most, together(&run->inputs[i], first));
    most = max_u64(most & ~(uint64_t)(KERNEL_GRANULE - 1), KERNEL_GRANULE);
    if (left >= most)
        return most;
    return left > KERNEL_GRANULE ? left & ~(uint64_t)(KERNEL_GRANULE - 1) : left;
}

void cpu_engine_fence(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

static void finish_reductions(const struct run *run, void *node)
{
    if (run->kth)
        kth_finish(&run->reducer, run->kth);
    for (int is_twin = 0; is_twin < 2 && !run->kth; is_twin++)
        for (unsigned i = 0; i < run->n_reductions; i++)
            if (run->reductions[i].qr) {
                if (!is_twin)
                    qr_rows_finish(run->reductions[i].qr);
            } else if (run->reductions[i].counting && !is_twin)
                counting_finish(run->reductions[i].counting);
            else if ((run->reductions[i].twin != NULL) == is_twin)
                reducing_finish(&run->reducer, &run->reductions[i]);
    if (run->n_reductions)
        ((struct reduce_header *)node)->n_elements =
            run->reducer.n_rows_before + run->reducer.n_elements;
}

int run_one(const struct cpu_engine *engine, const struct program *program, const struct pass *pass,
            const struct engine_box *box, const struct engine_view *inputs,
            const struct engine_view *outputs, const struct engine_view *reduced,
            const struct reduce_layout *layout, void *node, struct engine_warnings *warnings,
            void *scratch)
{
    struct run *run;
    if (movement_run(engine->transpose, program, pass, box, inputs, outputs))
        return 0;
    int r =
        run_bind(engine, program, pass, box, inputs, outputs, reduced, layout, node, scratch, &run);
    if (r)
        return r;
    bool is_done = run->n_counts + run->n_qrs == 0 && !run->kth && run_directly(run);
    uint64_t first = run->is_straight ? run_straight(run) : 0;
    if (run->is_stopped)
        return -ECANCELED;
    while (!is_done && first < run->n_elements) {
        size_t n = strip_length(run, first);
        run_strip(run, first, n);
        if (run->is_stopped || !keep_pace(run, run->strip_worst_ns * n))
            return -ECANCELED;
        if (run->events.has_negative_power)
            return GAD_NEGATIVE_POWER;
        first += n;
    }
    finish_reductions(run, node);
    warnings->n_divide_by_zero += run->events.n_divide_by_zero;
    warnings->n_invalid_casts += run->events.n_invalid_casts;
    return 0;
}

int run_with_windows(const struct run_call *call, const struct engine_box *box)
{
    struct engine_view windows[PROGRAM_MAX_WINDOWS];
    struct engine_box own = *box;
    int r = windows_make(call, box, windows);
    own.windows = windows;
    return r ? r
             : run_one(call->engine, call->program, call->pass, &own, call->inputs, call->outputs,
                       call->reduced, call->layout, call->node, call->warnings, call->scratch);
}

int cpu_engine_run(const struct cpu_engine *engine, const struct program *program, unsigned pass,
                   const struct engine_box *box, const struct engine_view *inputs,
                   const struct engine_view *outputs, const struct engine_view *reduced,
                   const struct reduce_layout *layout, void *node, struct engine_warnings *warnings,
                   void *scratch)
{
    const struct pass *of = &program->passes[pass];
    struct engine_view all[BIND_MAX_INPUTS]; /* large: only what is used is written */
    if (of->repeats) {
        int r = run_repeats(engine, program, of, box, inputs, reduced, warnings, scratch, all);
        if (r)
            return r;
        inputs = all;
    }
    if (of->windows_used) {
        struct window_room room;
        const struct run_call call = {.engine = engine,
                                      .program = program,
                                      .pass = of,
                                      .inputs = inputs,
                                      .outputs = outputs,
                                      .reduced = reduced,
                                      .layout = layout,
                                      .node = node,
                                      .warnings = warnings,
                                      .scratch = scratch,
                                      .room = &room,
                                      .grain = box};
        window_room_init(&room, box);
        return run_with_windows(&call, box);
    }
    return run_one(engine, program, of, box, inputs, outputs, reduced, layout, node, warnings,
                   scratch);
}
