/* What others ask of a finished program: references to it, and the shapes of what it reduces.
 *
 * A reduction's result is made in the shape of its pass without the axes that are reduced, or with
 * length 1 in their places; counts have an axis of bins behind it. Planner, engines and worker all
 * take it from here.
 */
#include "kernels/program.h"

#include <stdlib.h>

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

int program_reduction_shape(const struct program *program, unsigned reduction, int64_t *ret_shape)
{
    const struct reduction *r = &program->reductions[reduction];
    const struct pass *pass = &program->passes[r->pass];
    int ndim = 0;
    for (int i = 0; i < pass->ndim; i++) {
        bool is_reduced = pass->reduced_axes >> i & 1;
        if (!is_reduced || r->keeps_dims)
            ret_shape[ndim++] = is_reduced ? 1 : pass->shape[i];
    }
    if (r->n_bins > 0)
        ret_shape[ndim++] = r->n_bins;
    return ndim;
}
