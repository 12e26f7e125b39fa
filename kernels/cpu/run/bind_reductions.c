/* Binding what a pass reduces, counts and scans, and the tables that it reads.
 *
 * What a reduction keeps of each cell beside its node lies in the scratch, at most
 * BIND_MAX_CELL_BYTES for all of them, which the planner keeps to; counters of BINCOUNTs take what
 * is left of these bytes, in equal parts, and do without where it is too little. KTHs have room of
 * their own, for all keys of the box. Scans keep nothing
 * there: their states are the caller's. A table has two slots, its elements' and its length's, as
 * its kernels' third source.
 *
 * Called by bind.c once per box.
 */
#include "kernels/cpu/run/bind.h"

#include "kernels/cpu/run/kth.h"
#include "kernels/cpu/run/qr_rows.h"
#include "proto/util.h"

#include <string.h>

static void *take_cells(struct binding *b)
{
    return layout_take(b, b->run->reducer.n_cells * sizeof(double));
}

static int bind_counting(struct binding *b, struct reducing *d, void *plane)
{
    struct run *run = b->run;
    const struct reduction *reduction = d->reduction;
    if (reduction->src.dtype != DTYPE_INT64 || reduction->n_bins == 0)
        return -EINVAL;
    struct counting *c = d->counting = layout_take(b, sizeof(*c));
    *c = (struct counting){
        .n_bins = reduction->n_bins,
        .has_weights = reduction->weights.kind != OPERAND_NONE,
        .plane = plane,
    };
    size_t n_bytes = counting_choose_tables(c, &run->reducer, b->counter_room / run->n_counts);
    counting_begin(c, &run->reducer, layout_take(b, n_bytes));
    return 0;
}

static int bind_qr(struct binding *b, struct reducing *d, void *plane)
{
    struct run *run = b->run;
    struct qr_rows *q = d->qr = layout_take(b, sizeof(*q));
    if (!qr_rows_init(q, run->box, run->pass, d->reduction, plane))
        return -EINVAL;
    size_t n_bytes = qr_rows_bytes(q), n_beside = qr_rows_scratch_bytes(q);
    if (b->qr_bytes + n_bytes + n_beside > BIND_MAX_QR_BYTES)
        return -EINVAL;
    b->qr_bytes += n_bytes;
    q->rows = layout_take(b, n_bytes);
    run->n_qrs++;
    return 0;
}

/* All QR_Rs use it in turn. */
static void share_qr_scratch(struct binding *b)
{
    struct run *run = b->run;
    size_t n_bytes = 0;
    for (unsigned i = 0; i < run->n_reductions; i++)
        if (run->reductions[i].qr)
            n_bytes = max_u64(n_bytes, qr_rows_scratch_bytes(run->reductions[i].qr));
    void *scratch = layout_take(b, n_bytes);
    for (unsigned i = 0; i < run->n_reductions; i++)
        if (run->reductions[i].qr)
            run->reductions[i].qr->scratch = scratch;
}

/* All of the pass. Places beyond a cell's end, and keys beyond the room for them, are no plan's. */
static int bind_kths(struct binding *b, const struct reduce_layout *layout, void *node)
{
    struct run *run = b->run;
    const struct reduction *first = &layout->reductions[0];
    const struct reducer *r = &run->reducer;
    unsigned item_log2 = (unsigned)__builtin_ctzl(dtype_size((enum dtype)first->src.dtype));
    if ((first->src.dtype != DTYPE_UINT32 && first->src.dtype != DTYPE_UINT64) ||
        r->n_elements > PROGRAM_MAX_KTH_ELEMENTS ||
        run->n_elements << item_log2 > ENGINE_MAX_KEY_BYTES || run->pass->n_stores)
        return -EINVAL;
    struct kth *k = run->kth = layout_take(b, sizeof(*k));
    *k = (struct kth){.kernels = run->engine->ranks,
                      .turn = run->engine->transpose->by_item[item_log2],
                      .item_log2 = item_log2};
    k->keys = layout_take(b, run->n_elements << item_log2);
    k->some = layout_take(b, KTH_SOME_BYTES);
    for (unsigned i = 0; i < run->n_reductions; i++) {
        const struct reduction *reduction = &layout->reductions[i];
        if (reduction->op != OP_KTH || reduction->kth.at >= r->n_elements ||
            memcmp(&reduction->src, &first->src, sizeof(first->src)) != 0)
            return -EINVAL;
        run->reductions[i] = (struct reducing){.reduction = reduction};
        kth_add_place(k, &reduction->kth, reduce_plane(layout, node, i, 0));
    }
    kth_find_near(k);
    return 0;
}

static int bind_reduction(struct binding *b, unsigned i, const struct reduce_layout *layout,
                          void *node)
{
    const struct reduction *reduction = &layout->reductions[i];
    struct reducing *d = &b->run->reductions[i];
    const struct reducer *r = &b->run->reducer;
    unsigned n_planes = reduce_n_planes(reduction);
    *d = (struct reducing){.reduction = reduction};
    if (reduction->op == OP_BINCOUNT)
        return bind_counting(b, d, reduce_plane(layout, node, i, 0));
    if (reduction->op == OP_QR_R)
        return bind_qr(b, d, reduce_plane(layout, node, i, 0));
    if (!engine_find_reduction(b->run->engine, reduction, d))
        return -EINVAL;
    d->item_log2 = (unsigned)__builtin_ctzl(dtype_size((enum dtype)reduction->src.dtype));
    d->plane_log2 = (unsigned)__builtin_ctzl(dtype_size(reduce_plane_dtype(reduction, 0)));
    for (unsigned k = 0; k < n_planes; k++) {
        d->planes[k] = reduce_plane(layout, node, i, k);
        if (d->is_ordered && r->n_rows > r->block)
            d->totals[k] = take_cells(b);
    }
    if (reduction->op == OP_SQUARED_DEVIATIONS)
        d->shift = take_cells(b);
    if (d->is_ordered)
        d->pending = layout_take(b, KERNEL_GRANULE * sizeof(double));
    return 0;
}

/* What reductions keep of each cell beside the node. */
static uint64_t cell_bytes(const struct run *run, const struct reduce_layout *layout)
{
    const struct reducer *r = &run->reducer;
    uint64_t n_values = 0;
    for (unsigned i = 0; i < run->n_reductions; i++) {
        const struct reduction *reduction = &layout->reductions[i];
        if (reduction->op == OP_BINCOUNT || reduction->op == OP_KTH || reduction->op == OP_QR_R)
            continue;
        n_values += reduction->op == OP_SQUARED_DEVIATIONS;
        n_values += r->n_rows > r->block ? reduce_n_planes(reduction) : 0;
    }
    return n_values * round_up_u64(r->n_cells * sizeof(double), 64);
}

/* SQUARED_DEVIATIONS of float32 has its elements' sum in its first plane, as SUM would. */
static void find_twins(struct run *run)
{
    for (unsigned i = 0; i < run->n_reductions; i++) {
        const struct reduction *sum = run->reductions[i].reduction;
        if (sum->op != OP_SUM || sum->src.dtype != DTYPE_FLOAT32)
            continue;
        for (unsigned k = 0; k < run->n_reductions; k++) {
            const struct reduction *other = run->reductions[k].reduction;
            if (other->op == OP_SQUARED_DEVIATIONS && other->src.kind == sum->src.kind &&
                other->src.index == sum->src.index && other->src.dtype == sum->src.dtype)
                run->reductions[i].twin = &run->reductions[k];
        }
    }
}

/* MIN and MAX of elements that another reduction adds up go with it, in long rows. */
static void find_extrema(struct run *run, unsigned op)
{
    for (unsigned i = 0; i < run->n_reductions; i++) {
        struct reducing *d = &run->reductions[i];
        if (d->reduction->op != op || !d->fused || d->twin)
            continue;
        for (unsigned k = 0; k < run->n_reductions; k++) {
            struct reducing *other = &run->reductions[k];
            const struct operand *src = &other->reduction->src;
            unsigned is_max = other->reduction->op == OP_MAX;
            if ((other->reduction->op != OP_MIN && !is_max) || other->is_taken ||
                d->extrema[is_max] || src->kind != d->reduction->src.kind ||
                src->index != d->reduction->src.index || src->dtype != d->reduction->src.dtype)
                continue;
            d->extrema[is_max] = other;
            other->is_taken = true;
        }
    }
}

static int continue_node(struct binding *b, const void *node)
{
    struct reducer *r = &b->run->reducer;
    r->n_rows_before = ((const struct reduce_header *)node)->n_elements;
    if (program_qr_columns(b->run->program, b->run->pass) > 0)
        return 0;
    bool can = cpu_engine_can_continue(b->run->program, b->run->pass) && !r->is_along_rows &&
               r->n_rows_before > 0 && r->n_rows_before + r->n_rows <= CPU_MAX_CONTINUED_ROWS;
    return can ? 0 : -EINVAL;
}

/* Of the elements, for ARGMIN and ARGMAX. Rows that are not short ask for where they begin. */
static void bind_positions(struct binding *b)
{
    struct run *run = b->run;
    struct index_stream *numbers = NULL;
    for (unsigned i = 0; i < run->n_reductions; i++) {
        struct reducing *d = &run->reductions[i];
        if (!d->argument)
            continue;
        if (!numbers) {
            numbers = layout_take(b, sizeof(*numbers));
            index_stream_init_flat(numbers, run->box, run->pass->shape, run->pass->reduced_axes);
        }
        d->numbers = numbers;
    }
    if (!run->reducer.is_along_rows || run->reducer.row < REDUCER_SHORT_ROW)
        run->positions = numbers;
}

int bind_reductions(struct binding *b, const struct reduce_layout *layout, void *node)
{
    struct run *run = b->run;
    if (run->n_reductions == 0)
        return 0;
    reducer_init(&run->reducer, run->box, run->pass);
    if (run->box->is_continued && continue_node(b, node))
        return -EINVAL;
    if (!layout || layout->n_reductions != run->n_reductions ||
        layout->n_cells != run->reducer.n_cells || cell_bytes(run, layout) > BIND_MAX_CELL_BYTES)
        return -EINVAL;
    run->reductions = layout_take(b, run->n_reductions * sizeof(*run->reductions));
    if (layout->reductions[0].op == OP_KTH)
        return bind_kths(b, layout, node);
    for (unsigned i = 0; i < run->n_reductions; i++)
        run->n_counts += layout->reductions[i].op == OP_BINCOUNT;
    b->counter_room = BIND_MAX_CELL_BYTES - cell_bytes(run, layout);
    for (unsigned i = 0; i < run->n_reductions; i++) {
        int r = bind_reduction(b, i, layout, node);
        if (r)
            return r;
    }
    share_qr_scratch(b);
    bind_positions(b);
    find_twins(run);
    if (run->reducer.is_along_rows && run->reducer.row >= REDUCER_SHORT_ROW) {
        find_extrema(run, OP_SQUARED_DEVIATIONS);
        find_extrema(run, OP_SUM);
    }
    return 0;
}

int bind_scans(struct binding *b, const struct engine_view *states)
{
    struct run *run = b->run;
    unsigned axis = (unsigned)run->pass->scanned_axis;
    if (axis >= (unsigned)run->box->ndim || !states)
        return -EINVAL;
    scanner_init(&run->scanner, run->box, axis);
    run->scans = layout_take(b, run->n_scans * sizeof(*run->scans));
    for (unsigned i = 0; i < run->n_scans; i++) {
        const struct reduction *reduction = bind_reduction_at(run, i);
        const struct engine_view *view = &states[run->pass->first_reduction + i];
        if (!engine_find_scan(run->engine, reduction, &run->scans[i]))
            return -EINVAL;
        scanning_init(&run->scans[i], reduction, run->box, axis, view);
    }
    return 0;
}

void bind_tables(struct binding *b, const struct engine_view *reduced)
{
    const struct run *run = b->run;
    for (uint64_t left = run->pass->tables_used; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        uint16_t slot = b->table_slot[i];
        int64_t shape[ARRAY_MAX_NDIM];
        if (slot == NO_SLOT)
            continue;
        uint64_t *length = layout_take(b, sizeof(*length));
        *length = program_reduction_shape(run->program, i, shape) == 1 ? (uint64_t)shape[0] : 0;
        run->address[slot] = reduced[i].base;
        run->address[slot + 1] = length;
    }
}
