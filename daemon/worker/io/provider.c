/* The port of a provider: a box is in a slot of the ring, which the tile took, alone or as a part
 * of the block there. What the client does with the ring is the business of ring.c; here the two
 * meet.
 */
#include "daemon/worker/io/port.h"
#include "daemon/worker/io/ring.h"

static void place(const struct port *p, const struct port_box *box, void *memory,
                  struct engine_view *ret_view)
{
    const struct port_box *block = ring_source_box(p->ring, memory);
    port_place_dense(p, block ? block : box, memory, ret_view);
    for (int i = 0; block && i < p->array.ndim; i++)
        ret_view->base =
            (char *)ret_view->base + (box->start[i] - block->start[i]) * ret_view->strides[i];
}

static const struct port_ops provider_ops = {
    .capabilities = PORT_ASKED,
    .place = place,
};

int port_open_provider(struct port *p, const struct port_context *context, struct gad_error *error)
{
    uint32_t ring = p->array.at.provider.ring_fd_index;
    uint32_t request = p->array.at.provider.request_fd_index;
    uint32_t done = p->array.at.provider.done_fd_index;
    if (ring >= context->n_fds || request >= context->n_fds || done >= context->n_fds)
        return error_set(error, GAD_BAD_DESCRIPTOR, p->name, "the ring was not sent");
    p->ops = &provider_ops;
    int r = ring_new(&p->array, p->name, context->fds[ring], context->fds[request],
                     context->fds[done], context->is_output, &p->ring, error);
    if (r)
        return r;
    struct guard_range range = ring_range(p->ring);
    regions_watch_memory(context->regions, (void *)range.base, range.size_bytes);
    return 0;
}
