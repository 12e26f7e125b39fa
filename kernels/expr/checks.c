/* What a program takes for granted about its data, and the error where that is wrong.
 *
 *     bincount(x, length=n)     no element of x is outside of 0 to n - 1
 *
 * A check counts the elements that are wrong, in the pass that reads them anyway. The worker looks
 * at the count when that pass is done (struct program_check). Its error is made here, where the
 * text is known; it names the column as errors of the compiler do.
 *
 * Called by the rules of counts and lookups.
 */
#include "kernels/expr/internal.h"

#include <stdio.h>

static int count_wrong(struct compiler *c, uint16_t wrong, uint16_t over, uint16_t *ret)
{
    int r = 0;
    if (c->graph.shapes[over].ndim == 0)
        r = graph_shape(c, 0, 1, (int64_t[]){1}, false, &over);
    if (r != 0)
        return r;
    uint32_t axes = (uint32_t)((1ull << c->graph.shapes[over].ndim) - 1);
    return graph_reduce_over(c, OP_COUNT_NONZERO, DTYPE_INT64, wrong, over, axes, false, ret);
}

static int take_check(struct compiler *c, struct check **ret)
{
    if (c->checks == NULL)
        c->checks = arena_take(&c->arena, PROGRAM_MAX_CHECKS * sizeof(*c->checks));
    if (c->checks == NULL)
        return fail_no_memory(c);
    if (c->n_checks == PROGRAM_MAX_CHECKS) {
        int r = fail(c, GAD_LIMIT_EXCEEDED, 0, "too many operations that check their data");
        error_expected(c->error, "at most %d", PROGRAM_MAX_CHECKS);
        return r;
    }
    *ret = &c->checks[c->n_checks++];
    return 0;
}

int checks_add(struct compiler *c, const struct ast_node *n, uint16_t wrong, uint16_t over,
               const char *message, const char *expected, const char *found)
{
    const struct node *node = &c->graph.nodes[wrong];
    struct check *check = NULL;
    uint16_t count;
    if (c->graph.shapes[over].n_elements == 0 || (node->kind == NODE_CONST && node->value.u64 == 0))
        return 0;
    int r = count_wrong(c, wrong, over, &count);
    for (unsigned i = 0; r == 0 && i < c->n_checks; i++)
        if (c->checks[i].node == count)
            return 0;
    if (r == 0)
        r = take_check(c, &check);
    if (r != 0)
        return r;
    struct program_check *p = &check->check;
    check->node = count;
    p->reduction = 0;
    snprintf(p->argument, sizeof(p->argument), "%s", c->argument);
    snprintf(p->message, sizeof(p->message), "column %u: %s: %s", n->column,
             op_info((enum op)n->op)->name, message);
    snprintf(p->expected, sizeof(p->expected), "%s", expected);
    snprintf(p->found, sizeof(p->found), "%s", found);
    return 0;
}
