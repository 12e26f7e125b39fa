/* The tasks of a pass: what the kernels behind the interpreter do, and where in a node it is left.
 *
 * Reductions along axes come first, then counts, one task each; then scans, one for each output. A
 * node on the device has planes as kernels/reductions/reduce.h says, but of tasks alone: what the
 * interpreter reduces is in the blocks' results. The planes lie where those of the tile's largest
 * grain do.
 *
 * Called by encode.c and tile.c.
 */
#include "kernels/cuda/encode.h"

#include "kernels/cuda/encode_actions.h"
#include "kernels/reductions/reduce.h"
#include "proto/util.h"

#include <errno.h>

#define PLANE_ALIGN 64u

static const struct reduction *reduction_at(const struct program *program, const struct pass *pass,
                                            unsigned i)
{
    return &program->reductions[pass->first_reduction + i];
}

static unsigned log2_of(unsigned dtype)
{
    return (unsigned)__builtin_ctzl(dtype_size((enum dtype)dtype));
}

int encode_reduction_kind(const struct reduction *reduction, uint8_t *ret_kind)
{
    bool is_float = dtype_is_float((enum dtype)reduction->src.dtype);
    switch (reduction->op) {
    case OP_SUM:
    case OP_CUMSUM: *ret_kind = is_float ? CODE_SUM_FLOAT : CODE_SUM; return 0;
    case OP_PROD:
    case OP_CUMPROD: *ret_kind = is_float ? CODE_PROD_FLOAT : CODE_PROD; return 0;
    case OP_COUNT_NONZERO: *ret_kind = CODE_COUNT_NONZERO; return 0;
    case OP_MIN: *ret_kind = CODE_MIN; return 0;
    case OP_MAX: *ret_kind = CODE_MAX; return 0;
    case OP_ARGMIN: *ret_kind = CODE_ARGMIN; return 0;
    case OP_ARGMAX: *ret_kind = CODE_ARGMAX; return 0;
    case OP_SQUARED_DEVIATIONS: *ret_kind = CODE_SQUARED_DEVIATIONS; return is_float ? 0 : -EINVAL;
    case OP_BINCOUNT:
        *ret_kind = CODE_BINCOUNT;
        return reduction->src.dtype == DTYPE_INT64 && reduction->n_bins > 0 ? 0 : -EINVAL;
    case OP_KTH:
        *ret_kind = CODE_KTH;
        return reduction->src.dtype == DTYPE_UINT32 || reduction->src.dtype == DTYPE_UINT64
                   ? 0
                   : -EINVAL;
    default: return -EINVAL;
    }
}

void encode_nodes_init(struct encode_nodes *nodes, const struct program *program,
                       const struct pass *pass, const struct encode_places *places,
                       uint64_t n_cells)
{
    uint64_t plane_bytes = round_up_u64(n_cells * sizeof(uint64_t), PLANE_ALIGN);
    *nodes = (struct encode_nodes){.plane_bytes = (uint32_t)plane_bytes};
    if (!places->has_tasks)
        return;
    nodes->n_bytes = CODE_NODE_HEADER_BYTES;
    for (unsigned i = 0; i < pass->n_reductions; i++) {
        const struct reduction *r = reduction_at(program, pass, i);
        nodes->planes[i] = nodes->n_bytes;
        if (!encode_is_task(places, r))
            continue;
        nodes->n_bytes += r->n_bins > 0
                              ? round_up_u64(n_cells * r->n_bins * sizeof(uint64_t), PLANE_ALIGN)
                              : reduce_n_planes(r) * plane_bytes;
    }
}

struct tasks {
    const struct encode_places *places;
    const struct encode_nodes *nodes;
    struct code_task *to; /* NULL: only counted */
    unsigned n;
};

/* Of the pass's i-th reduction. */
static int add_task(struct tasks *t, const struct reduction *r, unsigned i)
{
    struct code_task task = {
        .place = t->places->source[i],
        .other = t->places->other[i],
        .target = CODE_NO_PLACE,
        .type = (uint8_t)encode_type((enum dtype)r->src.dtype),
        .plane_log2 = (uint8_t)log2_of(reduce_plane_dtype(r, 0)),
        .plane = t->nodes ? (uint32_t)t->nodes->planes[i] : 0,
        .n_bins = r->n_bins,
    };
    int result = encode_reduction_kind(r, &task.kind);
    if (t->to)
        t->to[t->n] = task;
    t->n++;
    return result;
}

static bool is_scan(const struct reduction *r)
{
    return r->op == OP_CUMSUM || r->op == OP_CUMPROD;
}

static bool can_be_stored(enum dtype result, enum dtype output)
{
    return output < DTYPE_COUNT && (!dtype_is_float(result) || !dtype_is_integer(output));
}

static int add_scan(struct tasks *t, const struct program *program, const struct pass *pass,
                    unsigned i)
{
    const struct store *store = &program->stores[pass->first_store + i];
    unsigned own = store->scan - (unsigned)pass->first_reduction;
    if (own >= pass->n_reductions || store->output >= program->n_outputs)
        return -EINVAL;
    const struct reduction *r = reduction_at(program, pass, own);
    enum dtype result = (enum dtype)r->result, output = program->outputs[store->output].dtype;
    if (!is_scan(r) || dtype_size(result) != sizeof(uint64_t) || !can_be_stored(result, output))
        return -EINVAL;
    int status = add_task(t, r, own);
    if (t->to) {
        struct code_task *task = &t->to[t->n - 1];
        task->target = t->places->output[i];
        task->result_type = (uint8_t)encode_type(result);
        task->target_type = (uint8_t)encode_type(output);
    }
    return status;
}

static int add_reductions(struct tasks *t, const struct program *program, const struct pass *pass,
                          bool are_counts)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && i < pass->n_reductions; i++) {
        const struct reduction *reduction = reduction_at(program, pass, i);
        if (encode_is_task(t->places, reduction) && are_counts == (reduction->op == OP_BINCOUNT))
            r = add_task(t, reduction, i);
    }
    return r;
}

int encode_tasks(const struct program *program, const struct pass *pass,
                 const struct encode_places *places, const struct encode_nodes *nodes,
                 struct code_task *tasks, struct code_header *h)
{
    struct tasks t = {places, nodes, tasks, 0};
    int r = 0;
    h->n_axes_tasks = h->n_count_tasks = h->n_scan_tasks = 0;
    if (places->scans) {
        for (unsigned i = 0; r == 0 && i < pass->n_stores; i++)
            r = add_scan(&t, program, pass, i);
        h->n_scan_tasks = t.n;
        return r;
    }
    r = add_reductions(&t, program, pass, false);
    h->n_axes_tasks = t.n;
    if (r == 0)
        r = add_reductions(&t, program, pass, true);
    h->n_count_tasks = t.n - h->n_axes_tasks;
    return r;
}
