/* What a matrix product promises with its three passes. */
#include "tests/unit/kernels/expr/validate_insn.h"

/* The axes in front of a matrix of the pass broadcast to the product's. */
static const char *check_batch(const struct program_product *m, const struct pass *pass, int n_axes)
{
    int missing = m->n_batch_axes - n_axes;
    CHECK(n_axes >= 0 && missing >= 0);
    for (int i = 0; i < n_axes; i++)
        CHECK(pass->shape[i] == 1 || pass->shape[i] == m->batch_shape[missing + i]);
    return NULL;
}

/* What a product's pass stores for the product itself: an operand, or what is kept of C. */
static const char *check_own_store(const struct program *p, const struct program_product *m,
                                   unsigned pass)
{
    const struct pass *space = &p->passes[m->first_pass + pass];
    bool is_wanted = pass != PRODUCT_RESULT || m->is_kept;
    unsigned n = 0;
    for (unsigned i = 0; i < space->n_stores; i++) {
        unsigned output = p->stores[space->first_store + i].output;
        CHECK(output < p->n_outputs ? pass == PRODUCT_RESULT : output == m->first_output + pass);
        CHECK(output < p->n_outputs || p->outputs[output].dtype == m->dtype);
        n += output >= p->n_outputs;
    }
    CHECK(space->n_stores >= 1 && n == is_wanted);
    return NULL;
}

const char *product_check(const struct program *p, const struct program_product *m)
{
    const struct pass *passes = &p->passes[m->first_pass];
    const struct pass *left = &passes[PRODUCT_LEFT], *right = &passes[PRODUCT_RIGHT];
    const struct pass *result = &passes[PRODUCT_RESULT];
    CHECK(m->first_output >= p->n_outputs && m->first_pass + PRODUCT_N_PASSES <= p->n_passes);
    for (unsigned i = 0; i < PRODUCT_N_PASSES; i++) {
        CHECK(passes[i].n_reductions == 0 && passes[i].scanned_axis == -1);
        const char *fault = check_own_store(p, m, i);
        if (fault != NULL)
            return fault;
    }
    CHECK(p->reductions[m->reduction].op == OP_MATMUL);
    CHECK(p->reductions[m->reduction].result == m->dtype);
    CHECK(p->reductions[m->reduction].pass == m->first_pass + PRODUCT_RESULT);
    CHECK(result->reduced_used >> m->reduction & 1);
    CHECK(m->has_rows == (left->ndim > 1) && m->has_columns == (right->ndim > 1));
    CHECK(left->shape[left->ndim - 1] == m->depth);
    CHECK(right->shape[m->has_columns ? right->ndim - 2 : 0] == m->depth);
    CHECK(m->n_rows == (m->has_rows ? left->shape[left->ndim - 2] : 1));
    CHECK(m->n_columns == (m->has_columns ? right->shape[right->ndim - 1] : 1));
    CHECK(result->ndim == m->n_batch_axes + m->has_rows + m->has_columns);
    for (int i = 0; i < m->n_batch_axes; i++)
        CHECK(result->shape[i] == m->batch_shape[i]);
    CHECK(!m->has_rows || result->shape[m->n_batch_axes] == m->n_rows);
    CHECK(!m->has_columns || result->shape[result->ndim - 1] == m->n_columns);
    CHECK(!m->is_symmetric || (m->has_rows && m->has_columns && m->n_rows == m->n_columns));
    const char *fault = check_batch(m, left, left->ndim - 1 - m->has_rows);
    return fault != NULL ? fault : check_batch(m, right, right->ndim - 1 - m->has_columns);
}
