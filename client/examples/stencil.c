/* A function of blocks for gpuarrayctl map: the mean of each element and its four neighbours.
 *
 *     cc -O2 -fPIC -shared -o stencil.so stencil.c $(pkg-config --cflags gpuarrayd)
 *     gpuarrayctl map ./stencil.so:smooth x=heat.npy --depth 1 --mode edge -o smoothed.npy
 *
 * It is called by several threads at once, each with another block. Its array may be larger than
 * any memory; the daemon knows nothing of this code.
 */
#include <gpuarrayd.h>

#include <errno.h>
#include <stdio.h>

gad_function_fn smooth; /* found by its name */

static float at(const struct gad_block *x, int64_t i, int64_t j)
{
    const char *element = (const char *)x->data + i * x->strides[0] + j * x->strides[1];
    return *(const float *)(const void *)element;
}

static int refuse(const struct gad_function_call *call, const char *why)
{
    snprintf(call->error->message, sizeof(call->error->message), "%s", why);
    return EINVAL;
}

int smooth(void *data, const struct gad_function_call *call)
{
    const struct gad_block *x = &call->inputs[0], *y = call->output;
    (void)data;
    if (call->n_inputs != 1 || x->ndim != 2 || x->dtype != GAD_FLOAT32 || y->dtype != GAD_FLOAT32)
        return refuse(call, "smooth: one source is wanted, a float32 matrix");
    if (x->halo[0] < 1 || x->halo[1] < 1)
        return refuse(call, "smooth: a neighbour on each side is wanted: --depth 1");
    for (int64_t i = 0; i < y->shape[0]; i++) {
        float *row = (float *)(void *)((char *)y->data + i * y->strides[0]);
        for (int64_t j = 0; j < y->shape[1]; j++) {
            int64_t k = i + x->halo[0], l = j + x->halo[1];
            row[j] = (at(x, k, l) + at(x, k - 1, l) + at(x, k + 1, l) + at(x, k, l - 1) +
                      at(x, k, l + 1)) /
                     5;
        }
    }
    return 0;
}
