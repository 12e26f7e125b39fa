/* Encoding arrays and job requests: the other direction of array_decode.c and request_decode.c.
 *
 * Used by the client for what it asks, by broker and worker for ARRAY maps in replies. Only what
 * differs from its default is written, so that a small request stays small; strides only where
 * they are allowed and are not C order. Decoding what was encoded gives the same request.
 */
#include "proto/request.h"

#include "proto/util.h"
#include "proto/wire/pack.h"

#include <stdio.h>
#include <string.h>

static void pack_shape(msgpack_packer *p, const char *key, int ndim, const int64_t *values)
{
    pack_str(p, key);
    msgpack_pack_array(p, (size_t)ndim);
    for (int i = 0; i < ndim; i++)
        msgpack_pack_int64(p, values[i]);
}

static void pack_inline(msgpack_packer *p, const struct location *at)
{
    msgpack_pack_map(p, 2);
    pack_key_str(p, "kind", "inline");
    pack_str(p, "data");
    msgpack_pack_bin(p, at->inlined.size_bytes);
    msgpack_pack_bin_body(p, at->inlined.bytes, at->inlined.size_bytes);
}

static void pack_region(msgpack_packer *p, const struct location *at)
{
    msgpack_pack_map(p, 3);
    pack_key_str(p, "kind", "region");
    pack_key_u64(p, "id", at->region.id);
    pack_key_u64(p, "offset", at->region.offset_bytes);
}

static void pack_file(msgpack_packer *p, const struct location *at, int ndim)
{
    msgpack_pack_map(p, 3);
    pack_key_str(p, "kind", "file");
    pack_key_u64(p, "fd", at->file.fd_index);
    if (!at->file.is_grid) {
        pack_key_u64(p, "offset", at->file.offset_bytes);
        return;
    }
    pack_str(p, "chunks");
    msgpack_pack_map(p, 3);
    pack_shape(p, "shape", ndim, at->file.chunk_shape);
    pack_key_u64(p, "table", at->file.table_fd_index);
    pack_key_u64(p, "count", at->file.n_chunks);
}

static void pack_provider(msgpack_packer *p, const struct location *at, int ndim)
{
    msgpack_pack_map(p, 6u + at->provider.has_chunks + at->provider.is_stream + at->provider.wraps);
    pack_key_str(p, "kind", "provider");
    pack_key_u64(p, "ring", at->provider.ring_fd_index);
    pack_key_u64(p, "request", at->provider.request_fd_index);
    pack_key_u64(p, "done", at->provider.done_fd_index);
    pack_key_u64(p, "slots", at->provider.n_slots);
    pack_key_u64(p, "slot_bytes", at->provider.slot_bytes);
    if (at->provider.is_stream)
        pack_key_bool(p, "stream", true);
    if (at->provider.wraps)
        pack_key_bool(p, "wraps", true);
    if (!at->provider.has_chunks)
        return;
    pack_str(p, "chunks");
    msgpack_pack_map(p, 1);
    pack_shape(p, "shape", ndim, at->provider.chunk_shape);
}

static void pack_location(msgpack_packer *p, const struct array *array)
{
    const struct location *at = &array->at;
    switch (at->kind) {
    case LOCATION_NONE: break;
    case LOCATION_INLINE: pack_inline(p, at); break;
    case LOCATION_REGION: pack_region(p, at); break;
    case LOCATION_FILE: pack_file(p, at, array->ndim); break;
    case LOCATION_PROVIDER: pack_provider(p, at, array->ndim); break;
    }
}

static bool has_strides(const struct array *array)
{
    const struct location *at = &array->at;
    bool may_have = at->kind == LOCATION_NONE || at->kind == LOCATION_REGION ||
                    (at->kind == LOCATION_FILE && !at->file.is_grid);
    return may_have && !array_is_c_contiguous(array);
}

void array_encode(msgpack_packer *packer, const struct array *array)
{
    bool with_strides = has_strides(array), with_at = array->at.kind != LOCATION_NONE;
    msgpack_pack_map(packer, 2u + with_strides + with_at + array->is_open);
    pack_key_str(packer, "dtype", dtype_typestr(array->dtype, array->is_swapped));
    pack_shape(packer, "shape", array->ndim, array->shape);
    if (array->is_open)
        pack_key_bool(packer, "open", true);
    if (with_strides)
        pack_shape(packer, "strides", array->ndim, array->strides);
    if (with_at) {
        pack_str(packer, "at");
        pack_location(packer, array);
    }
}

static void pack_scalar(msgpack_packer *p, const char *key, enum dtype dtype, union scalar value)
{
    switch (dtype) {
    case DTYPE_BOOL: pack_key_bool(p, key, value.u64 != 0); break;
    case DTYPE_UINT8:
    case DTYPE_UINT16:
    case DTYPE_UINT32:
    case DTYPE_UINT64: pack_key_u64(p, key, value.u64); break;
    case DTYPE_FLOAT32: pack_key_f64(p, key, (double)value.f32); break;
    case DTYPE_FLOAT64: pack_key_f64(p, key, value.f64); break;
    default: pack_key_i64(p, key, value.i64); break;
    }
}

static void pack_args(msgpack_packer *p, const struct job_request *request)
{
    pack_str(p, "args");
    msgpack_pack_map(p, request->n_args);
    for (unsigned i = 0; i < request->n_args; i++) {
        const struct request_arg *arg = &request->args[i];
        pack_str(p, arg->name);
        if (!arg->is_scalar) {
            array_encode(p, &arg->array);
            continue;
        }
        msgpack_pack_map(p, 1);
        pack_scalar(p, "scalar", arg->scalar_dtype, arg->scalar);
    }
}

static void pack_output(msgpack_packer *p, const struct request_output *output)
{
    bool has_name = output->name[0] != '\0';
    msgpack_pack_map(p, 1u + has_name + output->has_to);
    pack_str(p, "expr");
    msgpack_pack_str(p, output->n_expr_chars);
    msgpack_pack_str_body(p, output->expr, output->n_expr_chars);
    if (has_name)
        pack_key_str(p, "name", output->name);
    if (output->has_to) {
        pack_str(p, "to");
        array_encode(p, &output->to);
    }
}

static void pack_outputs(msgpack_packer *p, const struct job_request *request)
{
    pack_str(p, "outputs");
    msgpack_pack_array(p, request->n_outputs);
    for (unsigned i = 0; i < request->n_outputs; i++)
        pack_output(p, &request->outputs[i]);
}

static void pack_engine(msgpack_packer *p, enum engine_choice engine, int index)
{
    char word[16] = "cpu";
    if (engine == ENGINE_CUDA)
        snprintf(word, sizeof(word), index < 0 ? "cuda" : "cuda:%d", index);
    pack_key_str(p, "engine", word);
}

static bool has_draws(const struct request_draws *draws)
{
    return draws->has_seed || draws->has_size || draws->has_rows;
}

static void pack_draws(msgpack_packer *p, const struct job_request *request)
{
    const struct request_draws *draws = &request->draws;
    pack_str(p, "draws");
    msgpack_pack_map(p, 0u + draws->has_seed + draws->has_size + draws->has_rows);
    if (draws->has_seed)
        pack_key_u64(p, "seed", draws->seed);
    if (draws->has_size)
        pack_shape(p, "size", draws->ndim, draws->size);
    if (draws->has_rows)
        pack_key_str(p, "rows", request->args[draws->rows].name);
}

static void pack_beyond(msgpack_packer *p, const struct request_beyond *beyond)
{
    bool has_value = beyond->mode == NEAR_CONSTANT;
    pack_str(p, "beyond");
    msgpack_pack_map(p, 1u + has_value);
    pack_key_str(p, "mode", request_modes[beyond->mode]);
    if (has_value)
        pack_scalar(p, "value", beyond->dtype, beyond->value);
}

void request_encode(msgpack_packer *packer, const struct job_request *request)
{
    bool has_engine = request->engine != ENGINE_AUTO, has_priority = request->priority != 0;
    bool has_label = request->label[0] != '\0', has_key = request->key[0] != '\0';
    bool has_queue_timeout = request->queue_timeout_ms != 0;
    bool has_deadline = request->deadline_ms != 0;
    bool has_progress = request->progress_ms != 0, has_beyond = request->beyond.mode != NEAR_EDGE;
    msgpack_pack_map(packer, 2u + has_engine + has_priority + has_label + has_key + has_progress +
                                 request->settle + request->tf32 + request->exclusive +
                                 request->again + request->has_journal + has_queue_timeout +
                                 has_deadline + has_draws(&request->draws) + has_beyond);
    pack_outputs(packer, request);
    pack_args(packer, request);
    if (has_engine)
        pack_engine(packer, request->engine, request->engine_index);
    if (has_priority)
        pack_key_i64(packer, "priority", request->priority);
    if (has_label)
        pack_key_str(packer, "label", request->label);
    if (has_key)
        pack_key_str(packer, "key", request->key);
    if (has_progress)
        pack_key_u64(packer, "progress_ms", request->progress_ms);
    if (has_queue_timeout)
        pack_key_u64(packer, "queue_timeout_ms", request->queue_timeout_ms);
    if (has_deadline)
        pack_key_u64(packer, "deadline_ms", request->deadline_ms);
    if (request->settle)
        pack_key_bool(packer, "settle", true);
    if (request->tf32)
        pack_key_bool(packer, "tf32", true);
    if (request->exclusive)
        pack_key_bool(packer, "exclusive", true);
    if (request->again)
        pack_key_bool(packer, "again", true);
    if (has_draws(&request->draws))
        pack_draws(packer, request);
    if (has_beyond)
        pack_beyond(packer, &request->beyond);
    if (request->has_journal) {
        pack_str(packer, "journal");
        bool has_fd = request->journal_fd_index != REQUEST_NO_FD;
        msgpack_pack_map(packer, has_fd);
        if (has_fd)
            pack_key_u64(packer, "fd", request->journal_fd_index);
    }
}
