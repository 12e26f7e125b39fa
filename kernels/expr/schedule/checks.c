/* What a program takes for granted about its data, and the error where that is wrong.
 *
 *     bincount(x, length=n)     no element of x is outside of 0 to n - 1
 *     take(a, i)                no index is outside of a
 *
 * A check counts the elements that are wrong, or finds the largest index, in the pass that reads
 * them anyway. The worker looks at the number when that pass is done (struct program_check). Its
 * error is made here, where the text is known; it names the column as errors of the compiler do.
 *
 * Called by the rules of counts and lookups.
 */
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/schedule.h"

#include <inttypes.h>
#include <stdio.h>

/* One number of all elements of the shape `over`. */
static int reduce_all(struct compiler *c, enum op op, enum dtype dtype, uint16_t node,
                      uint16_t over, uint16_t *ret)
{
    int r = 0;
    if (c->graph.shapes[over].ndim == 0)
        r = graph_shape(c, 0, 1, (int64_t[]){1}, false, &over);
    if (r)
        return r;
    uint32_t axes = (uint32_t)((1ull << c->graph.shapes[over].ndim) - 1);
    return graph_reduce_over(c, op, dtype, node, over, axes, false, ret);
}

/* One that is there already stands for the new one. */
static int add_check(struct compiler *c, uint16_t node, const struct program_check *check)
{
    for (unsigned i = 0; i < c->n_checks; i++)
        if (c->checks[i].node == node && c->checks[i].check.limit == check->limit)
            return 0;
    if (c->checks == NULL)
        c->checks = arena_take(&c->arena, PROGRAM_MAX_CHECKS * sizeof(*c->checks));
    if (c->checks == NULL)
        return compiler_no_memory(c);
    if (c->n_checks == PROGRAM_MAX_CHECKS) {
        int r =
            compiler_fail(c, GAD_LIMIT_EXCEEDED, 0, "too many operations that check their data");
        error_expected(c->error, "at most %d", PROGRAM_MAX_CHECKS);
        return r;
    }
    c->checks[c->n_checks++] = (struct check){.node = node, .check = *check};
    return 0;
}

static void set_texts(struct program_check *check, const struct compiler *c,
                      const struct ast_node *n, const char *message)
{
    snprintf(check->argument, sizeof(check->argument), "%s", c->argument);
    const struct program_place place = compiler_place(c, n->column);
    char text[PROGRAM_PLACE_SIZE];
    snprintf(check->message, sizeof(check->message), "%s%s: %s", program_format_place(&place, text),
             op_info((enum op)n->op)->name, message);
}

int checks_add(struct compiler *c, const struct ast_node *n, uint16_t wrong, uint16_t over,
               const char *message, const char *expected, const char *found)
{
    const struct graph_node *node = &c->graph.nodes[wrong];
    struct program_check check = {.status = GAD_BAD_ARGUMENT, .limit = 1};
    uint16_t count;
    if (c->graph.shapes[over].n_elements == 0 || (node->kind == NODE_CONST && node->value.u64 == 0))
        return 0;
    int r = reduce_all(c, OP_COUNT_NONZERO, DTYPE_INT64, wrong, over, &count);
    if (r)
        return r;
    set_texts(&check, c, n, message);
    snprintf(check.expected, sizeof(check.expected), "%s", expected);
    snprintf(check.found, sizeof(check.found), "%s", found);
    return add_check(c, count, &check);
}

int checks_add_indices(struct compiler *c, const struct ast_node *n, uint16_t indices,
                       uint16_t over, bool is_signed, int64_t length)
{
    struct program_check check = {
        .status = GAD_BAD_INDEX, .is_signed = is_signed, .limit = (uint64_t)length};
    const struct graph_node *node = &c->graph.nodes[indices];
    uint16_t largest;
    if (c->graph.shapes[over].n_elements == 0 ||
        (node->kind == NODE_CONST && node->value.u64 < (uint64_t)length))
        return 0;
    int r = reduce_all(c, OP_MAX, DTYPE_UINT64, indices, over, &largest);
    if (r)
        return r;
    set_texts(&check, c, n,
              "an index is outside of the array; write mode=clip or mode=wrap if that is meant");
    snprintf(check.expected, sizeof(check.expected),
             "%" PRId64 " to %" PRId64 " along axis 0 of length %" PRId64, -length, length - 1,
             length);
    snprintf(check.found, sizeof(check.found), "index");
    return add_check(c, largest, &check);
}
