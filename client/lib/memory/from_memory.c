/* Arrays over memory that the caller has.
 *
 *     whole within a region of the client's arena     ACCESS_REGION: nothing is copied
 *     anything else                                   ACCESS_MEMORY: inline, or through a ring
 *
 * The first are what programs make of arrays in shared memory: slices, transposed and reversed
 * views, other dtypes over the same bytes. Only where the bytes are decides, so a view needs no
 * link to the array that it is of; like all memory of callers it must stay until the array is
 * released, and its region stays with it. The daemon wants no alignment, so any view will do.
 *
 * The region is found by bisection over the arena's table of addresses. It is not attached here:
 * that happens with the first job, as after every new connection.
 */
#include "client/lib/connection/client.h"
#include "client/lib/memory/memory.h"
#include "proto/util.h"

/* The region that holds every byte of the array, or NULL. */
static struct region *find_region(const struct gad_client *client, const struct array *described,
                                  const void *data)
{
    int64_t low, high;
    if (!client || !data)
        return NULL;
    array_extent(described, &low, &high);
    return arena_find(&client->arena, (uintptr_t)data + (uintptr_t)low, (uintptr_t)(high - low));
}

/* Whether the bytes lie in an address space at all: no wrapping around its end. */
static bool is_in_address_space(const struct array *described, const void *data)
{
    int64_t low, high, begin, end;
    array_extent(described, &low, &high);
    return (uintptr_t)data <= INT64_MAX &&
           !add_overflows_i64((int64_t)(uintptr_t)data, low, &begin) && begin >= 0 &&
           !add_overflows_i64((int64_t)(uintptr_t)data, high, &end);
}

static int check_data(const struct array *described, const void *data, struct gad_error *error)
{
    if (array_n_elements(described) == 0)
        return 0;
    if (!data)
        return error_set(error, GAD_BAD_ARGUMENT, "data", "data is NULL");
    if (!is_in_address_space(described, data))
        return error_set(error, GAD_BAD_EXTENT, "strides",
                         "shape and strides reach out of the address space from %p", data);
    return 0;
}

enum gad_status gad_array_from_memory(struct gad_client *client, const struct gad_layout *layout,
                                      void *data, bool is_writable, struct gad_array **ret_array,
                                      struct gad_error *error)
{
    struct array described;
    if (!ret_array)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_array", "ret_array is NULL");
    int r = memory_describe(layout, &described, error);
    if (r == 0)
        r = check_data(&described, data, error);
    if (r)
        return client_status(r, error);
    struct region *region = find_region(client, &described, data);
    struct gad_array *array = array_new(client, region ? "region" : "memory",
                                        region ? ACCESS_REGION : ACCESS_MEMORY, NULL);
    if (!array)
        return client_status(-ENOMEM, error);
    memory_fill_info(array, &described);
    array->is_writable = is_writable;
    array->data = data;
    if (region) {
        array->region = region;
        array->region_offset_bytes = (uint64_t)((char *)data - region->map);
    }
    *ret_array = array;
    return GAD_OK;
}
