/* Opening and closing ports, and what the kinds have in common. What a request says about sizes was
 * checked when it was decoded; here it meets the real files and mappings.
 *
 * Called by a job when it begins and ends, on the main thread.
 */
#include "daemon/worker/port.h"
#include "daemon/worker/ring.h"
#include "proto/util.h"

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
    p->ring = ring_free(p->ring);
    if (p->file.mapping)
        munmap(p->file.mapping, (size_t)p->file.mapping_bytes);
    p->file.mapping = NULL;
}

void port_close_region(struct port *p)
{
    p->region = region_unref(p->region);
}

int64_t port_box_bytes(const struct port *p, const struct port_box *box)
{
    int64_t n_bytes = p->item_bytes;
    for (int i = 0; i < p->array.ndim; i++)
        n_bytes *= box->count[i];
    return n_bytes;
}

void port_place_dense(const struct port *p, const struct port_box *box, void *memory,
                      struct cpu_view *ret_view)
{
    ret_view->base = memory;
    ret_view->is_swapped = p->array.is_swapped;
    array_c_strides(p->array.ndim, box->count, p->item_bytes, ret_view->strides);
}
