/* Arrays in memory.
 *
 * Shared memory comes from the client's arena; its regions are attached to the daemon when they are
 * made, and again in every new session when a job first needs them. Attaching is a request of its
 * own that hands over a descriptor and is answered when the worker has mapped the region, so a
 * region that the daemon would not take is known before anything is computed in it.
 *
 * The caller's own memory is only described here: what is small travels in the message, the rest
 * through a ring (build.c).
 */
#include "client/lib/memory.h"
#include "client/lib/client.h"
#include "proto/util.h"

#include <fcntl.h>
#include <string.h>

int memory_describe(enum gad_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides,
                    struct array *ret_array, struct gad_error *error)
{
    if ((int)dtype < 0 || dtype >= (enum gad_dtype)DTYPE_COUNT)
        return error_set(error, GAD_BAD_ARGUMENT, "dtype", "%d is no dtype", (int)dtype);
    if (ndim < 0 || ndim > ARRAY_MAX_NDIM)
        return error_set(error, GAD_BAD_SHAPE, "ndim", "%d dimensions: 0 to %d are possible", ndim,
                         ARRAY_MAX_NDIM);
    if (ndim > 0 && !shape)
        return error_set(error, GAD_BAD_ARGUMENT, "shape", "shape is NULL");
    struct array array = {.dtype = (enum dtype)dtype, .ndim = ndim};
    for (int i = 0; i < ndim; i++)
        array.shape[i] = shape[i];
    int r = array_check(&array, "shape", error); /* before strides are made of it */
    if (r)
        return r;
    array_c_strides(ndim, array.shape, (int64_t)dtype_size(array.dtype), array.strides);
    for (int i = 0; i < ndim && strides; i++)
        array.strides[i] = strides[i];
    r = array_check(&array, "strides", error);
    if (r == 0)
        *ret_array = array;
    return r;
}

static void fill_info(struct gad_array *array, const struct array *described)
{
    struct gad_array_info *info = &array->info;
    info->dtype = (enum gad_dtype)described->dtype;
    info->ndim = described->ndim;
    memcpy(info->shape, described->shape, sizeof(info->shape));
    memcpy(info->strides, described->strides, sizeof(info->strides));
}

/* Attaching ------------------------------------------------------------------------------------ */

int memory_attach(struct gad_client *client, struct region *region, struct gad_error *error)
{
    struct client_call call;
    uint32_t id;
    if (region->session == client->session)
        return 0;
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
    r = client_finish_call(client, &call, id, &fd, 1, DEADLINE_NEVER, &reply, error);
    if (r)
        return r;
    r = map_require_u64(&reply->message.result, "region", &region->id, error);
    reply_free(reply);
    if (r == 0)
        region->session = client->session;
    return r;
}

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

/* Arrays --------------------------------------------------------------------------------------- */

/* The array's maker_free: gives its shared memory back. */
static void give_back(struct gad_array *array)
{
    struct gad_client *client = array->client;
    struct region *region = array->region;
    struct region *unused = arena_give_back(&client->arena, region, array->region_offset_bytes);
    if (!unused && region->used_bytes == 0 && region->session == 0) {
        arena_remove(&client->arena, region); /* never attached: not worth keeping */
        unused = region;
    }
    if (unused) {
        detach(client, unused);
        region_free(unused);
    }
}

int memory_new_array(struct gad_client *client, const struct array *described,
                     struct gad_array **ret_array, struct gad_error *error)
{
    struct gad_array *array = array_new(client, "region", ACCESS_REGION, NULL);
    bool is_new;
    if (!array)
        return -ENOMEM;
    int r = arena_lend(&client->arena, (uint64_t)array_n_bytes(described), &array->region,
                       &array->region_offset_bytes, &is_new, error);
    if (r) {
        gad_array_release(array);
        return r;
    }
    array->maker_free = give_back;
    fill_info(array, described);
    array->is_writable = true;
    array->data = array->region->map + array->region_offset_bytes;
    *ret_array = array;
    return 0;
}

bool memory_overlaps(const struct gad_array *a, const struct gad_array *b)
{
    if (!a->data || !b->data)
        return false;
    const struct gad_array *both[] = {a, b};
    uintptr_t begin[2], end[2];
    for (int i = 0; i < 2; i++) {
        struct array array = array_described(both[i]);
        int64_t low, high;
        array_extent(&array, &low, &high);
        begin[i] = (uintptr_t)both[i]->data + (uintptr_t)low;
        end[i] = (uintptr_t)both[i]->data + (uintptr_t)high;
    }
    return begin[0] < end[1] && begin[1] < end[0];
}

enum gad_status gad_array_new(struct gad_client *client, enum gad_dtype dtype, int ndim,
                              const int64_t *shape, struct gad_array **ret_array,
                              struct gad_error *error)
{
    struct array described;
    struct gad_array *array;
    if (!client || !ret_array)
        return error_set(error, GAD_BAD_ARGUMENT, client ? "ret_array" : "client", "is NULL");
    int r = memory_describe(dtype, ndim, shape, NULL, &described, error);
    if (r == 0)
        r = client_ensure(client, DEADLINE_NEVER, 0, error);
    if (r == 0)
        r = memory_new_array(client, &described, &array, error);
    if (r)
        return client_status(r, error);
    r = memory_attach(client, array->region, error);
    if (r) {
        gad_array_release(array);
        return client_status(r, error);
    }
    *ret_array = array;
    return GAD_OK;
}

enum gad_status gad_array_from_memory(struct gad_client *client, enum gad_dtype dtype, int ndim,
                                      const int64_t *shape, const int64_t *strides, void *data,
                                      bool is_writable, struct gad_array **ret_array,
                                      struct gad_error *error)
{
    struct array described;
    if (!ret_array)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_array", "ret_array is NULL");
    int r = memory_describe(dtype, ndim, shape, strides, &described, error);
    if (r)
        return client_status(r, error);
    if (!data && array_n_elements(&described) > 0)
        return error_set(error, GAD_BAD_ARGUMENT, "data", "data is NULL");
    struct gad_array *array = array_new(client, "memory", ACCESS_MEMORY, NULL);
    if (!array)
        return client_status(-ENOMEM, error);
    fill_info(array, &described);
    array->is_writable = is_writable;
    array->data = data;
    *ret_array = array;
    return GAD_OK;
}
