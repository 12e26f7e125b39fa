/* Arrays that the caller moves block by block.
 *
 * The caller's functions become a provider: the pump calls them in one of its threads, one call at
 * a time for a client, with blocks that were checked against the array's shape. What they return
 * goes to the worker as that block's status, which ends the job with provider-failed.
 *
 * The functions and their data belong to the array; `free` is called when its last reference goes,
 * which is after the last job that used it: no block is moved then.
 */
#include "client/lib/connection/client.h"
#include "client/lib/memory/memory.h"
#include "proto/util.h"

static int as_errno(int r)
{
    return r >= 0 ? r : EIO; /* no answer that the interface has */
}

static int fill(void *state, const int64_t *start, const int64_t *count, void *ret_block)
{
    const struct gad_blocks *blocks = state;
    return as_errno(blocks->read(blocks->data, start, count, ret_block));
}

static int drain(void *state, const int64_t *start, const int64_t *count, const void *block)
{
    const struct gad_blocks *blocks = state;
    return as_errno(blocks->write(blocks->data, start, count, block));
}

static const struct provider blocks_provider = {.fill = fill, .drain = drain};

static void free_blocks(struct gad_array *array)
{
    struct gad_blocks *blocks = array->format_state;
    if (blocks->free)
        blocks->free(blocks->data);
    free(blocks);
}

enum gad_status gad_array_from_blocks(struct gad_client *client, const struct gad_layout *layout,
                                      const struct gad_blocks *blocks, struct gad_array **ret_array,
                                      struct gad_error *error)
{
    struct array described;
    if (!client || !ret_array)
        return error_set(error, GAD_BAD_ARGUMENT, client ? "ret_array" : "client", "is NULL");
    if (!blocks || (!blocks->read && !blocks->write))
        return error_set(error, GAD_BAD_ARGUMENT, "blocks", "there is nothing to read or write");
    if (!layout)
        return error_set(error, GAD_BAD_ARGUMENT, "layout", "layout is NULL");
    struct gad_layout without_strides = *layout;
    without_strides.strides = NULL;
    int r = memory_describe(&without_strides, &described, error);
    if (r)
        return client_status(r, error);
    struct gad_blocks *copy = malloc(sizeof(*copy));
    struct gad_array *array = array_new(client, "blocks", ACCESS_PROVIDER, NULL);
    if (!copy || !array) {
        free(copy);
        gad_array_release(array);
        return client_status(-ENOMEM, error);
    }
    *copy = *blocks;
    for (int i = 0; i < described.ndim; i++)
        described.strides[i] = 0; /* it lies nowhere */
    memory_fill_info(array, &described);
    array->is_writable = blocks->write != NULL;
    array->is_write_only = blocks->read == NULL;
    array->provider = &blocks_provider;
    array->provider_state = array->format_state = copy;
    array->maker_free = free_blocks;
    *ret_array = array;
    return GAD_OK;
}
