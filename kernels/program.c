/* What others ask of a finished program: references to it, the shapes of what it reduces, and words
 * for places in its text.
 *
 * A reduction's result is made in the shape of its pass without the axes that are reduced, or with
 * length 1 in their places; counts have an axis of bins behind it. Planner, engines and worker all
 * take it from here.
 */
#include "kernels/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program *program_ref(struct program *program)
{
    program->n_refs++;
    return program;
}

struct program *program_free(struct program *program)
{
    if (program != NULL && --program->n_refs == 0)
        free(program);
    return NULL;
}

const char *program_format_place(const struct program_place *place,
                                 char buffer[static PROGRAM_PLACE_SIZE])
{
    if (place->column == 0)
        buffer[0] = '\0';
    else if (place->line == 1)
        snprintf(buffer, PROGRAM_PLACE_SIZE, "column %" PRIu32 ": ", place->column);
    else
        snprintf(buffer, PROGRAM_PLACE_SIZE, "line %" PRIu32 ", column %" PRIu32 ": ", place->line,
                 place->column);
    return buffer;
}

void program_list_stages(struct program *p)
{
    p->n_stages = 0;
    for (uint16_t pass = 0, product = 0; pass < p->n_passes;) {
        bool is_product = product < p->n_products && p->products[product].first_pass == pass;
        struct stage *stage = &p->stages[p->n_stages++];
        *stage = (struct stage){.kind = is_product ? STAGE_PRODUCT : STAGE_PASS,
                                .first_pass = pass,
                                .n_passes = is_product ? PRODUCT_N_PASSES : 1};
        if (is_product)
            stage->product = product++;
        for (uint16_t i = 0; i < p->n_slabs; i++)
            if (p->slabs[i].first_pass == pass)
                *stage = (struct stage){.kind = STAGE_SLAB,
                                        .first_pass = pass,
                                        .n_passes = p->slabs[i].n_passes,
                                        .slab = i};
        pass += stage->n_passes;
    }
}

const struct slab_value *program_slab_value(const struct program *program, unsigned reduction)
{
    for (unsigned i = 0; i < program->n_slabs; i++)
        for (unsigned k = 0; k < program->slabs[i].n_values; k++) {
            const struct slab_value *value = &program->slabs[i].values[k];
            if (value->has_reduction && value->reduction == reduction)
                return value;
        }
    return NULL;
}

int program_reduction_shape(const struct program *program, unsigned reduction, int64_t *ret_shape)
{
    const struct reduction *r = &program->reductions[reduction];
    const struct pass *pass = &program->passes[r->pass];
    const struct slab_value *value =
        r->op == OP_MATMUL ? program_slab_value(program, reduction) : NULL;
    int ndim = 0;
    if (value != NULL) {
        memcpy(ret_shape, value->shape, (size_t)value->ndim * sizeof(*ret_shape));
        return value->ndim;
    }
    for (int i = 0; i < pass->ndim; i++) {
        bool is_reduced = pass->reduced_axes >> i & 1;
        if (!is_reduced || r->keeps_dims)
            ret_shape[ndim++] = is_reduced ? 1 : pass->shape[i];
    }
    if (r->n_bins > 0)
        ret_shape[ndim++] = r->n_bins;
    if (r->op == OP_QR_R)
        ret_shape[ndim++] = r->n_bins;
    return ndim;
}

bool program_is_uniform(const struct program *program, unsigned reduction)
{
    int64_t shape[ARRAY_MAX_NDIM];
    if (program->reductions[reduction].op == OP_MATMUL)
        return false;
    int ndim = program_reduction_shape(program, reduction, shape);
    for (int i = 0; i < ndim; i++)
        if (shape[i] != 1)
            return false;
    return true;
}

uint64_t program_product_results(const struct program *program)
{
    uint64_t results = 0;
    for (unsigned i = 0; i < program->n_products; i++)
        results |= UINT64_C(1) << program->products[i].reduction;
    for (unsigned i = 0; i < program->n_slabs; i++)
        for (unsigned k = 0; k < program->slabs[i].n_values; k++)
            if (program->slabs[i].values[k].has_reduction)
                results |= UINT64_C(1) << program->slabs[i].values[k].reduction;
    return results;
}

/* A reduction along rows: what it gives is a value of the slab. */
static bool is_of_rows(const struct program_slab *slab, unsigned pass)
{
    for (unsigned i = 0; i < slab->n_steps; i++)
        if (slab->steps[i].kind == SLAB_REDUCE && slab->steps[i].result != SLAB_NONE &&
            slab->first_pass + slab->steps[i].pass == pass)
            return true;
    return false;
}

bool program_is_kept(const struct program *program, unsigned reduction)
{
    for (unsigned i = 0; i < program->n_products; i++)
        if (program->products[i].reduction == reduction)
            return program->products[i].is_kept;
    const struct slab_value *value = program_slab_value(program, reduction);
    for (unsigned i = 0; value == NULL && i < program->n_slabs; i++)
        if (is_of_rows(&program->slabs[i], program->reductions[reduction].pass))
            return false;
    return value == NULL || value->is_kept;
}

bool program_is_product(const struct program *program)
{
    return program->n_stages == 1 && program->n_products == 1;
}

uint64_t program_n_times(const struct program *program, unsigned insn)
{
    for (unsigned i = 0; i < program->n_loops; i++) {
        const struct program_loop *loop = &program->loops[i];
        if (insn - loop->first_insn < loop->n_insns) /* unsigned: before it is far behind */
            return loop->n_steps;
    }
    return 1;
}

bool program_has_events(const struct insn *insn)
{
    enum dtype compute = (enum dtype)insn->compute;
    switch (insn->op) {
    case OP_FLOOR_DIVIDE:
    case OP_REMAINDER:
    case OP_FMOD:
    case OP_RECIPROCAL: return dtype_is_integer(compute);
    case OP_POWER: return dtype_is_signed(compute);
    case OP_CAST: return dtype_is_float(compute) && dtype_is_integer((enum dtype)insn->dst.dtype);
    case OP_RANDOM_POISSON: return true;
    default: return false;
    }
}

bool program_keeps_axes(const struct pass *pass)
{
    for (int i = 0; i < pass->ndim; i++)
        if (!(pass->reduced_axes >> i & 1) && pass->shape[i] != 1)
            return pass->n_reductions > 0;
    return false;
}

bool program_is_scan(const struct reduction *reduction)
{
    return reduction->op == OP_CUMSUM || reduction->op == OP_CUMPROD;
}

uint64_t program_qr_columns(const struct program *program, const struct pass *pass)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < pass->n_reductions; i++) {
        const struct reduction *r = &program->reductions[pass->first_reduction + i];
        n += r->op == OP_QR_R ? r->n_bins : 0;
    }
    return n;
}

/* Whether a reduction of the pass is made of its operands in whole boxes: where axes are kept, of
 * counts, scans and KTHs. Else elements are taken in as they are computed. */
static bool program_reads_boxes(const struct pass *pass, const struct reduction *reduction)
{
    return program_is_scan(reduction) || reduction->op == OP_BINCOUNT || reduction->op == OP_KTH ||
           reduction->op == OP_QR_R || program_keeps_axes(pass);
}

/* Whether an operand is there before anything is computed, element by element. */
static bool is_there(const struct program *program, const struct operand *operand)
{
    return operand->kind == OPERAND_INPUT || operand->kind == OPERAND_NEAR ||
           operand->kind == OPERAND_INDEX || operand->kind == OPERAND_WINDOW ||
           (operand->kind == OPERAND_REDUCED && !program_is_uniform(program, operand->index));
}

unsigned program_values(const struct program *program, unsigned pass,
                        enum dtype ret_dtypes[static PASS_MAX_VALUES])
{
    const struct pass *p = &program->passes[pass];
    const struct operand *values[PASS_MAX_VALUES];
    unsigned n = 0;

    for (unsigned i = 0; i < 2u * p->n_reductions; i++) {
        const struct reduction *reduction = &program->reductions[p->first_reduction + i / 2];
        const struct operand *operand = i % 2 ? &reduction->weights : &reduction->src;
        bool is_known = (i % 2 && operand->kind == OPERAND_NONE) || is_there(program, operand) ||
                        !program_reads_boxes(p, reduction);
        for (unsigned k = 0; k < n && !is_known; k++)
            is_known = values[k]->kind == operand->kind && values[k]->dtype == operand->dtype &&
                       values[k]->index == operand->index;
        if (is_known)
            continue;
        ret_dtypes[n] = (enum dtype)operand->dtype;
        values[n++] = operand;
    }
    return n;
}
