/* Opening and closing ports, and what the kinds have in common. What a request says about sizes was
 * checked when it was decoded; here it meets the real files and mappings.
 *
 * Called by a job when it begins and ends, on the main thread.
 */
#include "daemon/worker/io/port.h"
#include "daemon/worker/io/ring.h"
#include "kernels/grains/geometry.h"
#include "proto/util.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

int port_open(struct port *p, const struct port_context *context, void *inline_result,
              struct gad_error *error)
{
    p->item_bytes = (int64_t)dtype_size(p->array.dtype);
    p->file.fd = p->file.table_fd = -1;
    switch (p->array.at.kind) {
    case LOCATION_NONE:
    case LOCATION_INLINE:
    case LOCATION_REGION: return port_open_mapped(p, context, inline_result, error);
    case LOCATION_FILE:
        return p->array.at.file.is_grid ? port_open_grid(p, context, error)
                                        : port_open_file(p, context, error);
    case LOCATION_PROVIDER: return port_open_provider(p, context, error);
    }
    return error_set(error, GAD_BAD_REQUEST, p->name, "the location is of an unknown kind");
}

void port_close_memory(struct port *p)
{
    if (!p->has_others_ring)
        ring_free(p->ring);
    p->ring = NULL;
    if (p->file.mapping)
        munmap(p->file.mapping, (size_t)p->file.mapping_bytes);
    p->file.mapping = NULL;
}

void port_close_region(struct port *p)
{
    p->region = region_unref(p->region);
}

static void exchange(int64_t *axes, int ndim)
{
    int64_t last = axes[ndim - 1];
    axes[ndim - 1] = axes[ndim - 2];
    axes[ndim - 2] = last;
}

void port_pass_box(const struct port *p, int ndim, const int64_t *start, const int64_t *count,
                   struct port_box *ret_box)
{
    int own = p->array.ndim;
    int64_t shape[ARRAY_MAX_NDIM];
    if (!p->is_transposed) {
        geometry_operand_box(ndim, start, count, own, p->array.shape, ret_box->start,
                             ret_box->count);
        return;
    }
    memcpy(shape, p->array.shape, (size_t)own * sizeof(shape[0]));
    exchange(shape, own);
    geometry_operand_box(ndim, start, count, own, shape, ret_box->start, ret_box->count);
    exchange(ret_box->start, own);
    exchange(ret_box->count, own);
}

void port_pass_view(const struct port *p, int ndim, struct engine_view *view)
{
    int shift = ndim - p->array.ndim;
    for (int i = 0; i < p->array.ndim; i++)
        if (p->array.shape[i] == 1)
            view->strides[i] = 0;
    if (p->is_transposed)
        exchange(view->strides, p->array.ndim);
    for (int i = ndim - 1; i >= 0; i--)
        view->strides[i] = i < shift ? 0 : view->strides[i - shift];
}

int64_t port_box_bytes(const struct port *p, const struct port_box *box)
{
    int64_t n_bytes = p->item_bytes;
    for (int i = 0; i < p->array.ndim; i++)
        n_bytes *= box->count[i];
    return n_bytes;
}

void port_place_dense(const struct port *p, const struct port_box *box, void *memory,
                      struct engine_view *ret_view)
{
    ret_view->base = memory;
    ret_view->is_swapped = p->array.is_swapped;
    array_c_strides(p->array.ndim, box->count, p->item_bytes, ret_view->strides);
}
