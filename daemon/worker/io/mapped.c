/* Ports whose elements are addressable where they are: inline arrays in the request's message,
 * inline results in a buffer of the job, and arrays in regions. A box is a pointer and the array's
 * own strides; nothing is copied.
 *
 * A region's extent is checked against its size when the port is opened; that its memory stays is
 * the business of guard.c.
 */
#include "daemon/worker/io/port.h"
#include "proto/util.h"

static void mapped_place(const struct port *p, const struct port_box *box, void *memory,
                         struct engine_view *ret_view)
{
    int64_t offset = 0;
    for (int i = 0; i < p->array.ndim; i++) {
        offset += box->start[i] * p->array.strides[i];
        ret_view->strides[i] = p->array.strides[i];
    }
    ret_view->base = p->base + offset;
    ret_view->is_swapped = p->array.is_swapped;
}

static const struct port_ops mapped_ops = {
    .capabilities = PORT_RANDOM | PORT_MAPPED,
    .place = mapped_place,
};

static int open_inline_source(struct port *p, struct gad_error *error)
{
    uint64_t needed = (uint64_t)array_n_bytes(&p->array);
    uint64_t found = p->array.at.inlined.size_bytes;
    if (found != needed) {
        error_set(error, GAD_BAD_EXTENT, p->name, "the inline bytes are not those of the shape");
        error_expected(error, "%llu bytes", (unsigned long long)needed);
        error_found(error, "%llu bytes", (unsigned long long)found);
        return GAD_BAD_EXTENT;
    }
    array_c_strides(p->array.ndim, p->array.shape, p->item_bytes, p->array.strides);
    p->base = (char *)p->array.at.inlined.bytes; /* read only: a source's view is never written */
    return 0;
}

static int open_region(struct port *p, const struct port_context *context, struct gad_error *error)
{
    uint64_t offset = p->array.at.region.offset_bytes;
    int64_t low, high;
    array_extent(&p->array, &low, &high);
    p->region = region_ref(context->regions, p->array.at.region.id);
    if (!p->region)
        return error_set(error, GAD_UNKNOWN_REGION, p->name, "the region is not attached");
    if (context->is_output && !p->region->is_writable)
        return error_set(error, GAD_READ_ONLY, p->name, "the region was attached for reading only");
    uint64_t size = p->region->size_bytes;
    if (offset > size || low < -(int64_t)offset || high > (int64_t)(size - offset)) {
        error_set(error, GAD_BAD_EXTENT, p->name, "the array does not lie inside its region");
        error_expected(error, "bytes %lld to %lld of the region", (long long)offset + low,
                       (long long)offset + high);
        error_found(error, "a region of %llu bytes", (unsigned long long)size);
        return GAD_BAD_EXTENT;
    }
    p->base = p->region->base + offset;
    return 0;
}

int port_open_mapped(struct port *p, const struct port_context *context, void *inline_result,
                     struct gad_error *error)
{
    p->ops = &mapped_ops;
    if (p->array.at.kind == LOCATION_REGION)
        return open_region(p, context, error);
    if (p->array.at.kind == LOCATION_INLINE && !context->is_output)
        return open_inline_source(p, error);
    if (p->array.at.kind == LOCATION_NONE && context->is_output && inline_result) {
        p->base = inline_result;
        return 0;
    }
    return error_set(error, GAD_BAD_REQUEST, p->name, "the array has no usable location");
}
