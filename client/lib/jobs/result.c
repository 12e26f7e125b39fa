/* Reading the daemon's answers about outputs and numbers.
 *
 * The daemon is trusted, but an answer is still read as what came over a wire: an inline result is
 * handed out only when its bytes are exactly those of its dtype and shape, and every number has a
 * default for a daemon that does not send it.
 *
 * Called by job.c and plan.c.
 */
#include "client/lib/jobs/result.h"
#include "proto/array.h"
#include "proto/util.h"
#include "proto/wire/map.h"

#include <stdio.h>
#include <string.h>

static int malformed(struct gad_error *error, const char *what)
{
    return error_set(error, GAD_PROTOCOL, NULL, "the daemon's answer has no usable %s", what);
}

int result_read_output(const msgpack_object *map, struct gad_plan_output *ret,
                       struct gad_error *error)
{
    struct array array = {0};
    const char *typestr = NULL;
    size_t n_chars = 0;
    *ret = (struct gad_plan_output){0};
    if (map_copy_str(map, "name", ret->name, sizeof(ret->name), NULL) ||
        map_require_str(map, "dtype", &typestr, &n_chars, NULL) ||
        dtype_from_typestr(typestr, n_chars, &array.dtype, &array.is_swapped, NULL))
        return malformed(error, "dtype of an output");
    const msgpack_object *shape = map_find(map, "shape");
    if (!shape || shape->type != MSGPACK_OBJECT_ARRAY || shape->via.array.size > ARRAY_MAX_NDIM)
        return malformed(error, "shape of an output");
    array.ndim = (int)shape->via.array.size;
    for (int i = 0; i < array.ndim; i++) {
        const msgpack_object *length = &shape->via.array.ptr[i];
        if (length->type != MSGPACK_OBJECT_POSITIVE_INTEGER || length->via.u64 > INT64_MAX)
            return malformed(error, "shape of an output");
        ret->shape[i] = array.shape[i] = (int64_t)length->via.u64;
    }
    if (array_check(&array, "shape", NULL))
        return malformed(error, "shape of an output");
    ret->dtype = (enum gad_dtype)array.dtype;
    ret->ndim = array.ndim;
    const char *order = NULL;
    if (map_str(map, "order", &order, &n_chars, NULL))
        return malformed(error, "order of an output");
    ret->fortran_order = order && n_chars == 1 && order[0] == 'F';
    return 0;
}

static int read_inline(const msgpack_object *map, struct result_output *output,
                       struct gad_error *error)
{
    struct array array = {.dtype = (enum dtype)output->what.dtype, .ndim = output->what.ndim};
    const msgpack_object *data = map_find(map, "data");
    if (!data || data->type == MSGPACK_OBJECT_NIL)
        return 0;
    memcpy(array.shape, output->what.shape, sizeof(array.shape));
    if (data->type != MSGPACK_OBJECT_BIN || data->via.bin.size != (uint64_t)array_n_bytes(&array))
        return malformed(error, "data of an output");
    output->data = malloc(data->via.bin.size + 1); /* in the message it lies at any address */
    if (!output->data)
        return -ENOMEM;
    memcpy(output->data, data->via.bin.ptr, data->via.bin.size);
    return 0;
}

static int read_outputs(const msgpack_object *map, struct result *result, unsigned n_outputs,
                        struct gad_error *error)
{
    const msgpack_object *list = map_find(map, "outputs");
    if (!list || list->type != MSGPACK_OBJECT_ARRAY || list->via.array.size != n_outputs)
        return malformed(error, "list of outputs");
    result->outputs = calloc(n_outputs + 1, sizeof(*result->outputs));
    if (!result->outputs)
        return -ENOMEM;
    result->n_outputs = n_outputs;
    int r = 0;
    for (unsigned i = 0; i < n_outputs && r == 0; i++) {
        const msgpack_object *output = &list->via.array.ptr[i];
        r = result_read_output(output, &result->outputs[i].what, error);
        if (r == 0)
            r = read_inline(output, &result->outputs[i], error);
    }
    return r;
}

/* Of a job with a matrix product; else there is none. */
static int read_product(const msgpack_object *product, struct gad_job_stats *stats)
{
    if (!product || product->type == MSGPACK_OBJECT_NIL)
        return 0;
    const msgpack_object *tile = map_find(product, "tile");
    if (!tile || tile->type != MSGPACK_OBJECT_ARRAY || tile->via.array.size != 3)
        return GAD_PROTOCOL;
    for (int i = 0; i < 3; i++) {
        const msgpack_object *extent = &tile->via.array.ptr[i];
        if (extent->type != MSGPACK_OBJECT_POSITIVE_INTEGER || extent->via.u64 > INT64_MAX)
            return GAD_PROTOCOL;
        stats->product_tile[i] = (int64_t)extent->via.u64;
    }
    return map_copy_str(product, "library", stats->product_library, sizeof(stats->product_library),
                        NULL) ||
           map_copy_str(product, "precision", stats->product_precision,
                        sizeof(stats->product_precision), NULL) ||
           map_u64(product, "tiles", &stats->n_product_tiles, NULL) ||
           map_u64(product, "left_bytes", &stats->left_bytes, NULL) ||
           map_u64(product, "right_bytes", &stats->right_bytes, NULL);
}

static int read_stats(const msgpack_object *map, struct gad_job_stats *stats,
                      struct gad_error *error)
{
    const msgpack_object *seconds = map_find(map, "seconds");
    const msgpack_object *warnings = map_find(map, "warnings");
    const struct {
        const msgpack_object *map;
        const char *key;
        uint64_t *ret;
    } counts[] = {
        {map, "job", &stats->job},
        {map, "tiles", &stats->n_tiles},
        {map, "read_bytes", &stats->read_bytes},
        {map, "write_bytes", &stats->write_bytes},
        {map, "around_cache_bytes", &stats->around_cache_bytes},
        {warnings, "divide_by_zero", &stats->n_divide_by_zero},
        {warnings, "invalid_cast", &stats->n_invalid_casts},
    };
    const struct {
        const char *key;
        double *ret;
    } times[] = {
        {"total", &stats->total_s},
        {"source", &stats->source_s},
        {"kernel", &stats->kernel_s},
        {"sink", &stats->sink_s},
        {"client", &stats->client_s},
        {"to_device", &stats->to_device_s},
        {"from_device", &stats->from_device_s},
    };
    for (unsigned i = 0; i < ARRAY_LENGTH(counts); i++)
        if (map_u64(counts[i].map, counts[i].key, counts[i].ret, NULL))
            return malformed(error, counts[i].key);
    for (unsigned i = 0; i < ARRAY_LENGTH(times); i++)
        if (map_f64(seconds, times[i].key, times[i].ret, NULL))
            return malformed(error, "seconds");
    if (read_product(map_find(map, "product"), stats))
        return malformed(error, "product");
    if (map_copy_str(map, "journal", stats->journal, sizeof(stats->journal), NULL))
        return malformed(error, "journal");
    if (map_copy_str(map, "engine", stats->engine, sizeof(stats->engine), NULL))
        return malformed(error, "engine");
    if (map_copy_str(map, "engine_why", stats->engine_why, sizeof(stats->engine_why), NULL))
        return malformed(error, "engine_why");
    return 0;
}

int result_init(struct result *result, const struct reply *reply, unsigned n_outputs,
                struct gad_error *error)
{
    const msgpack_object *map = &reply->message.result;
    *result = (struct result){0};
    int r = map->type == MSGPACK_OBJECT_MAP ? 0 : malformed(error, "map");
    if (r == 0)
        r = read_stats(map, &result->stats, error);
    if (r == 0)
        r = read_outputs(map, result, n_outputs, error);
    if (r)
        result_deinit(result);
    return r;
}

void result_deinit(struct result *result)
{
    for (unsigned i = 0; i < result->n_outputs; i++)
        free(result->outputs[i].data);
    free(result->outputs);
    *result = (struct result){0};
}
