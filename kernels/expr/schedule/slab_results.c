/* What walks by slabs store to, and what the program says of them, when all passes are known.
 *
 * Called by passes.c and assemble.c.
 */
#include "kernels/expr/schedule/build.h"
#include "kernels/expr/schedule/schedule.h"

void slabs_place(struct schedule *s)
{
    uint16_t own = s->n_all_outputs;
    for (unsigned i = 0; i < s->n_roots; i++) {
        struct root *root = &s->roots[i];
        if (root->slab == 0 || !root->is_own)
            continue;
        struct slab_value *value = &s->slabs[root->slab - 1].slab.values[root->target & 0xff];
        *(root->target >> 8 ? &value->kept_output : &value->output) = own;
        root->target = own++;
    }
    s->n_all_outputs = own;
}

void slabs_number(struct compiler *c, const struct schedule *s, uint16_t first_reduction)
{
    for (unsigned i = 0; i < s->n_slabs; i++)
        for (unsigned k = 0; k < s->slabs[i].slab.n_values; k++)
            if (s->slabs[i].slab.values[k].has_reduction)
                c->graph.nodes[s->slabs[i].nodes[k]].index = first_reduction++;
}

void slabs_finish(struct compiler *c, const struct schedule *s, struct program *draft)
{
    for (unsigned i = 0; i < s->n_slabs; i++) {
        struct program_slab *slab = &draft->slabs[i];
        *slab = s->slabs[i].slab;
        for (unsigned k = 0; k < slab->n_values; k++) {
            struct slab_value *value = &slab->values[k];
            if (!value->has_reduction)
                continue;
            uint16_t pass =
                value->is_kept ? draft->outputs[value->kept_output].pass : slab->first_pass;
            value->reduction = draft->n_reductions++;
            draft->reductions[value->reduction] =
                (struct reduction){.op = OP_MATMUL,
                                   .result = c->graph.nodes[s->slabs[i].nodes[k]].dtype,
                                   .pass = pass};
        }
    }
}
