/* Arrays in memory.
 *
 * Shared memory comes from the client's arena; its regions are attached to the daemon when they are
 * made, and again in every new session when a job first needs them. Attaching is a request of its
 * own that hands over a descriptor and is answered when the worker has mapped the region, so a
 * region that the daemon would not take is known before anything is computed in it. A worker that
 * never gets ready holds nobody up for ever.
 *
 * The caller's own memory is only described here: what is small travels in the message, the rest
 * through a ring (build.c).
 */
#include "client/lib/memory/memory.h"
#include "client/lib/connection/client.h"
#include "proto/overlap.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <fcntl.h>
#include <string.h>

int memory_describe(const struct gad_layout *layout, struct array *ret_array,
                    struct gad_error *error)
{
    if (!layout)
        return error_set(error, GAD_BAD_ARGUMENT, "layout", "layout is NULL");
    int ndim = layout->ndim;
    if ((int)layout->dtype < 0 || layout->dtype >= (enum gad_dtype)DTYPE_COUNT)
        return error_set(error, GAD_BAD_ARGUMENT, "dtype", "%d is no dtype", (int)layout->dtype);
    if (ndim < 0 || ndim > ARRAY_MAX_NDIM)
        return error_set(error, GAD_BAD_SHAPE, "ndim", "%d dimensions: 0 to %d are possible", ndim,
                         ARRAY_MAX_NDIM);
    if (ndim > 0 && !layout->shape)
        return error_set(error, GAD_BAD_ARGUMENT, "shape", "shape is NULL");
    struct array array = {.dtype = (enum dtype)layout->dtype, .ndim = ndim};
    array.is_swapped = layout->is_swapped && dtype_size(array.dtype) > 1;
    for (int i = 0; i < ndim; i++)
        array.shape[i] = layout->shape[i];
    int r = array_check(&array, "shape", error); /* before strides are made of it */
    if (r)
        return r;
    array_c_strides(ndim, array.shape, (int64_t)dtype_size(array.dtype), array.strides);
    for (int i = 0; i < ndim && layout->strides; i++)
        array.strides[i] = layout->strides[i];
    r = array_check(&array, "strides", error);
    if (r == 0)
        *ret_array = array;
    return r;
}

void memory_fill_info(struct gad_array *array, const struct array *described)
{
    struct gad_array_info *info = &array->info;
    info->dtype = (enum gad_dtype)described->dtype;
    info->is_swapped = described->is_swapped;
    info->ndim = described->ndim;
    memcpy(info->shape, described->shape, sizeof(info->shape));
    memcpy(info->strides, described->strides, sizeof(info->strides));
}

/* Attaching ------------------------------------------------------------------------------------ */

/* Nobody waits for this, and nothing is lost if it fails: the session's end detaches as well. */
static void detach(struct gad_client *client, const struct region *region)
{
    uint32_t id;
    if (!client->conn || region->session != client->session ||
        client_begin(client, "region.detach", call_ignore, NULL, &id, NULL))
        return;
    msgpack_pack_map(&client->writer.packer, 1);
    pack_key_u64(&client->writer.packer, "region", region->id);
    (void)!client_send(client, id, NULL, 0, NULL);
}

/* A region that was given up before the daemon had it: the account is not charged for it twice. */
static void detach_late(void *userdata, int status, struct reply *reply_take,
                        const struct gad_error *error)
{
    struct gad_client *client = userdata;
    struct region attached = {.session = client->session};
    (void)error;
    if (status == 0 &&
        map_require_u64(&reply_take->message.result, "region", &attached.id, NULL) == 0)
        detach(client, &attached);
    reply_free(reply_take);
}

static int attach(struct gad_client *client, struct region *region, struct gad_error *error)
{
    struct client_call call;
    uint32_t id;
    int fd = fcntl(region->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return error_from_errno(error, errno, NULL, "dup of a region");
    int r = client_begin_call(client, "region.attach", &call, &id, error);
    if (r) {
        close(fd);
        return r;
    }
    msgpack_packer *p = &client->writer.packer;
    msgpack_pack_map(p, 2);
    pack_key_u64(p, "size", region->size_bytes);
    pack_key_bool(p, "writable", true);
    struct reply *reply;
    call.late = detach_late;
    r = client_finish_call(client, &call, id, &fd, 1, clock_deadline_ms(client->answer_ms), &reply,
                           error);
    if (r)
        return r;
    r = map_require_u64(&reply->message.result, "region", &region->id, error);
    reply_free(reply);
    if (r == 0)
        region->session = client->session;
    return r;
}

static void drop(struct gad_client *client, struct region *region)
{
    detach(client, region);
    region_free(region);
}

/* Gives up empty regions: those that are not worth keeping, or all. Returns whether there was one.
 */
static bool trim(struct gad_client *client, bool is_all)
{
    struct region *region;
    bool has_dropped = false;
    while ((region = arena_take_surplus(&client->arena, is_all, clock_now_ms()))) {
        drop(client, region);
        has_dropped = true;
    }
    return has_dropped;
}

int memory_attach(struct gad_client *client, struct region *region, struct gad_error *error)
{
    if (region->session == client->session)
        return 0;
    int r = attach(client, region, error);
    if (r == GAD_QUOTA_EXCEEDED && trim(client, true)) /* detached before this is asked again */
        r = attach(client, region, error);
    return r;
}

/* Arrays --------------------------------------------------------------------------------------- */

/* The array's maker_free: gives its shared memory back. */
static void give_back(struct gad_array *array)
{
    struct gad_client *client = array->client;
    struct region *region = array->region;
    arena_give_back(&client->arena, region, array->region_offset_bytes, clock_now_ms());
    if (region->used_bytes == 0 && region->session == 0) {
        arena_remove(&client->arena, region); /* never attached: not worth keeping */
        region_free(region);
    }
    trim(client, false);
}

static int lend(struct gad_client *client, uint64_t n_bytes, bool is_cleared,
                struct gad_array *array, struct gad_error *error)
{
    bool is_new;
    int r = arena_lend(&client->arena, n_bytes, is_cleared, &array->region,
                       &array->region_offset_bytes, &is_new, error);
    if (r == GAD_NO_MEMORY && trim(client, true))
        r = arena_lend(&client->arena, n_bytes, is_cleared, &array->region,
                       &array->region_offset_bytes, &is_new, error);
    trim(client, false);
    return r;
}

int memory_new_array(struct gad_client *client, const struct array *described, bool is_cleared,
                     struct gad_array **ret_array, struct gad_error *error)
{
    struct gad_array *array = array_new(client, "region", ACCESS_REGION, NULL);
    if (!array)
        return -ENOMEM;
    int r = lend(client, (uint64_t)array_n_bytes(described), is_cleared, array, error);
    if (r) {
        gad_array_release(array);
        return r;
    }
    array->maker_free = give_back;
    memory_fill_info(array, described);
    array->is_writable = true;
    array->data = array->region->map + array->region_offset_bytes;
    *ret_array = array;
    return 0;
}

enum memory_meeting memory_meet(const struct gad_array *a, const struct gad_array *b)
{
    if (!a->data || !b->data)
        return MEMORY_APART;
    struct array of_a = array_described(a), of_b = array_described(b);
    int64_t a_offset = (int64_t)(uintptr_t)a->data, b_offset = (int64_t)(uintptr_t)b->data;
    if (array_is_apart(&of_a, a_offset, &of_b, b_offset))
        return MEMORY_APART;
    return array_is_same_mapping(&of_a, a_offset, &of_b, b_offset) ? MEMORY_IS_SAME
                                                                   : MEMORY_OVERLAPS;
}

static enum gad_status new_array(struct gad_client *client, const struct gad_layout *layout,
                                 bool is_cleared, struct gad_array **ret_array,
                                 struct gad_error *error)
{
    struct array described;
    struct gad_array *array;
    if (!client || !ret_array)
        return error_set(error, GAD_BAD_ARGUMENT, client ? "ret_array" : "client", "is NULL");
    int r = memory_describe(layout, &described, error);
    if (r == 0)
        r = client_ensure(client, DEADLINE_NEVER, 0, error);
    if (r == 0)
        r = memory_new_array(client, &described, is_cleared, &array, error);
    if (r)
        return client_status(r, error);
    r = memory_attach(client, array->region, error);
    if (r == GAD_DISCONNECTED && (r = client_ensure(client, DEADLINE_NEVER, 0, error)) == 0)
        r = memory_attach(client, array->region, error);
    if (r) {
        gad_array_release(array);
        return client_status(r, error);
    }
    *ret_array = array;
    return GAD_OK;
}

enum gad_status gad_array_new(struct gad_client *client, enum gad_dtype dtype, int ndim,
                              const int64_t *shape, struct gad_array **ret_array,
                              struct gad_error *error)
{
    struct gad_layout layout = {.dtype = dtype, .ndim = ndim, .shape = shape};
    return new_array(client, &layout, true, ret_array, error);
}

enum gad_status gad_array_empty(struct gad_client *client, enum gad_dtype dtype, int ndim,
                                const int64_t *shape, struct gad_array **ret_array,
                                struct gad_error *error)
{
    struct gad_layout layout = {.dtype = dtype, .ndim = ndim, .shape = shape};
    return new_array(client, &layout, false, ret_array, error);
}
