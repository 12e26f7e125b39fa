/* The port of a provider: a box lies dense in a slot of the ring, which the tile took. What the
 * client does with the ring is the business of ring.c; here the two meet.
 */
#include "daemon/worker/io/port.h"
#include "daemon/worker/io/ring.h"

static const struct port_ops provider_ops = {
    .capabilities = PORT_ASKED,
    .place = port_place_dense,
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
