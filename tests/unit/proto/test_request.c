/* Job requests: what is decoded, every refusal, and the way back. */
#include "proto/request.h"
#include "tests/unit/proto/support.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_FDS 7

static int decode(const char *text, bool is_plan, struct params **ret_params,
                  struct job_request **ret_request, struct gad_error *error)
{
    *ret_params = params_new(text);
    *ret_request = NULL;
    memset(error, 0, sizeof(*error));
    int r = request_decode(&(*ret_params)->message.params, N_FDS, is_plan, ret_request, error);
    cr_assert(eq(int, r == 0, *ret_request != NULL));
    return r;
}

static const char everything[] =
    "{'outputs': [{'expr': 'a*k', 'name': 'r', 'to': {'dtype': '<f4', 'shape': [3, 4], "
    "   'at': {'kind': 'file', 'fd': 0, 'offset': 4096}}}, {'expr': 'sum(b)'}],"
    " 'args': {'a': {'dtype': '>f4', 'shape': [3, 4], 'strides': [4, 12],"
    "                'at': {'kind': 'region', 'id': 7, 'offset': 128}},"
    "          'b': {'dtype': '|u1', 'shape': [10, 10], 'at': {'kind': 'file', 'fd': 1,"
    "                'chunks': {'shape': [4, 4], 'table': 2, 'count': 9}}},"
    "          'c': {'dtype': '<i8', 'shape': [2], 'at': {'kind': 'inline', 'data': <16>}},"
    "          'd': {'dtype': '<f8', 'shape': [8], 'at': {'kind': 'provider', 'ring': 3,"
    "                'request': 4, 'done': 5, 'slots': 2, 'slot_bytes': 262144,"
    "                'stream': true, 'chunks': {'shape': [3]}}},"
    "          'k': {'scalar': 2.5}, 't': {'scalar': true}, 'n': {'scalar': -3},"
    "          'u': {'scalar': 18446744073709551615}, 'p': {'scalar': 9}},"
    " 'engine': 'cpu', 'priority': -5, 'label': 'a label', 'key': 'k1', 'progress_ms': 100,"
    " 'queue_timeout_ms': 30000, 'deadline_ms': 4294967295,"
    " 'settle': true, 'tf32': true, 'exclusive': true, 'journal': {'fd': 6},"
    " 'draws': {'seed': 18446744073709551615, 'size': [2, 3], 'rows': 'c'},"
    " 'beyond': {'mode': 'constant', 'value': -2.5}, 'unknown': [1, 2, 3]}";

static void check_everything(const struct job_request *q)
{
    cr_assert(eq(uint, q->n_outputs, 2));
    cr_assert(eq(uint, q->n_args, 9));
    cr_assert(eq(int, memcmp(q->outputs[0].expr, "a*k", 3), 0));
    cr_assert(eq(sz, q->outputs[0].n_expr_chars, 3));
    cr_assert(eq(str, (char *)q->outputs[0].name, "r"));
    cr_assert(q->outputs[0].has_to);
    cr_assert(eq(int, q->outputs[0].to.at.kind, LOCATION_FILE));
    cr_assert(eq(u64, q->outputs[0].to.at.file.offset_bytes, 4096));
    cr_assert(eq(i64, q->outputs[0].to.strides[0], 16));
    cr_assert(not(q->outputs[1].has_to));
    cr_assert(eq(str, (char *)q->outputs[1].name, ""));

    cr_assert(eq(int, q->args[0].array.dtype, DTYPE_FLOAT32));
    cr_assert(q->args[0].array.is_swapped);
    cr_assert(eq(i64, q->args[0].array.strides[1], 12));
    cr_assert(eq(u64, q->args[0].array.at.region.id, 7));
    cr_assert(q->args[1].array.at.file.is_grid);
    cr_assert(eq(u32, q->args[1].array.at.file.table_fd_index, 2));
    cr_assert(eq(u64, q->args[1].array.at.file.n_chunks, 9));
    cr_assert(eq(i64, q->args[1].array.at.file.chunk_shape[1], 4));
    cr_assert(eq(u64, q->args[2].array.at.inlined.size_bytes, 16));
    cr_assert(eq(int, q->args[3].array.ndim, 1));
    cr_assert(eq(u32, q->args[3].array.at.provider.done_fd_index, 5));
    cr_assert(q->args[3].array.at.provider.has_chunks);
    cr_assert(q->args[3].array.at.provider.is_stream);
    cr_assert(eq(i64, q->args[3].array.at.provider.chunk_shape[0], 3));

    cr_assert(eq(int, q->args[4].scalar_dtype, DTYPE_FLOAT64));
    cr_assert(eq(dbl, q->args[4].scalar.f64, 2.5));
    cr_assert(eq(int, q->args[5].scalar_dtype, DTYPE_BOOL));
    cr_assert(eq(u64, q->args[5].scalar.u64, 1));
    cr_assert(eq(int, q->args[6].scalar_dtype, DTYPE_INT64));
    cr_assert(eq(i64, q->args[6].scalar.i64, -3));
    cr_assert(eq(int, q->args[7].scalar_dtype, DTYPE_UINT64));
    cr_assert(eq(u64, q->args[7].scalar.u64, UINT64_MAX));
    cr_assert(eq(int, q->args[8].scalar_dtype, DTYPE_INT64));
    cr_assert(eq(i64, q->args[8].scalar.i64, 9));

    cr_assert(eq(int, q->engine, ENGINE_CPU));
    cr_assert(eq(int, q->priority, -5));
    cr_assert(eq(str, (char *)q->label, "a label"));
    cr_assert(eq(str, (char *)q->key, "k1"));
    cr_assert(eq(u32, q->progress_ms, 100));
    cr_assert(eq(u32, q->queue_timeout_ms, 30000));
    cr_assert(eq(u32, q->deadline_ms, UINT32_MAX));
    cr_assert(q->settle);
    cr_assert(q->tf32);
    cr_assert(q->exclusive);
    cr_assert(q->has_journal);
    cr_assert(eq(u32, q->journal_fd_index, 6));
    cr_assert(q->draws.has_seed && q->draws.has_size && q->draws.has_rows);
    cr_assert(eq(u64, q->draws.seed, UINT64_MAX));
    cr_assert(eq(int, q->draws.ndim, 2));
    cr_assert(eq(i64, q->draws.size[1], 3));
    cr_assert(eq(uint, q->draws.rows, 2));
    cr_assert(eq(int, q->beyond.mode, NEAR_CONSTANT));
    cr_assert(eq(int, q->beyond.dtype, DTYPE_FLOAT64));
    cr_assert(eq(dbl, q->beyond.value.f64, -2.5));
}

Test(request, everything_that_can_be_said_is_decoded)
{
    struct params *params;
    struct job_request *request;
    struct gad_error error;
    cr_assert(eq(int, decode(everything, false, &params, &request, &error), 0), "%s",
              error.message);
    check_everything(request);
    request_free(request);
    request_free(NULL);
    params_free(params);
}

Test(request, encoding_leads_back_to_the_same)
{
    struct params *params;
    struct job_request *request, *again;
    struct gad_error error;
    struct message_writer w;
    struct message message;
    bool has_id;
    cr_assert(eq(int, decode(everything, false, &params, &request, &error), 0));
    message_writer_init(&w);
    message_begin_request(&w, 1, "job.run");
    request_encode(&w.packer, request);
    cr_assert(eq(int, frame_body_check(w.buffer.data, w.buffer.size), 0));
    cr_assert(eq(int, message_decode(w.buffer.data, w.buffer.size, &message, &has_id, &error), 0));
    cr_assert(eq(int, request_decode(&message.params, N_FDS, false, &again, &error), 0));
    check_everything(again);
    request_free(again);
    request_free(request);
    message_deinit(&message);
    message_writer_deinit(&w);
    params_free(params);
}

/* Decodes the request that says this engine, encodes it, decodes that. */
static void check_engine(const char *word, enum engine_choice engine, int index)
{
    struct params *params;
    struct job_request *request, *again;
    struct gad_error error;
    struct message_writer w;
    struct message message;
    bool has_id;
    char text[128];
    snprintf(text, sizeof(text), "{'outputs': [{'expr': '1'}], 'engine': '%s'}", word);
    cr_assert(eq(int, decode(text, false, &params, &request, &error), 0), "%s", error.message);
    message_writer_init(&w);
    message_begin_request(&w, 1, "job.run");
    request_encode(&w.packer, request);
    cr_assert(eq(int, message_decode(w.buffer.data, w.buffer.size, &message, &has_id, &error), 0));
    cr_assert(eq(int, request_decode(&message.params, N_FDS, false, &again, &error), 0));
    const struct job_request *both[] = {request, again};
    for (int i = 0; i < 2; i++) {
        cr_assert(eq(int, both[i]->engine, engine), "%s", word);
        cr_assert(eq(int, both[i]->engine_index, index), "%s", word);
    }
    request_free(again);
    request_free(request);
    message_deinit(&message);
    message_writer_deinit(&w);
    params_free(params);
}

Test(request, an_engine_may_name_its_device)
{
    check_engine("auto", ENGINE_AUTO, -1);
    check_engine("cpu", ENGINE_CPU, -1);
    check_engine("cuda", ENGINE_CUDA, -1);
    check_engine("cuda:0", ENGINE_CUDA, 0);
    check_engine("cuda:9", ENGINE_CUDA, 9);
    check_engine("cuda:15", ENGINE_CUDA, 15);
}

Test(request, the_least_that_can_be_said_is_enough)
{
    struct params *params;
    struct job_request *request;
    struct gad_error error;
    cr_assert(
        eq(int, decode("{'outputs': [{'expr': '1+1'}]}", false, &params, &request, &error), 0));
    cr_assert(eq(uint, request->n_args, 0));
    cr_assert(eq(int, request->engine, ENGINE_AUTO));
    cr_assert(eq(int, request->engine_index, -1));
    cr_assert(eq(int, request->priority, 0));
    cr_assert(eq(u32, request->progress_ms, 0));
    cr_assert(eq(u32, request->queue_timeout_ms, 0));
    cr_assert(eq(u32, request->deadline_ms, 0));
    cr_assert(not(request->settle));
    cr_assert(not(request->tf32));
    cr_assert(not(request->exclusive));
    cr_assert(not(request->has_journal));
    request_free(request);
    params_free(params);
}

Test(request, a_plan_needs_no_locations)
{
    static const char text[] = "{'outputs': [{'expr': 'a', 'to': {'dtype': '<f8', 'shape': [3]}}],"
                               " 'args': {'a': {'dtype': '<f8', 'shape': [3], 'strides': [-8]}},"
                               " 'journal': {}}";
    struct params *params;
    struct job_request *request;
    struct gad_error error;
    cr_assert(eq(int, decode(text, true, &params, &request, &error), 0));
    cr_assert(eq(int, request->args[0].array.at.kind, LOCATION_NONE));
    cr_assert(eq(i64, request->args[0].array.strides[0], -8));
    cr_assert(request->has_journal);
    cr_assert(eq(u32, request->journal_fd_index, REQUEST_NO_FD));
    request_free(request);
    params_free(params);
    cr_assert(eq(int, decode(text, false, &params, &request, &error), GAD_BAD_REQUEST));
    cr_assert(eq(str, error.argument, "a"));
    params_free(params);
}

Test(request, progress_is_not_more_often_than_every_50_ms)
{
    struct params *params;
    struct job_request *request;
    struct gad_error error;
    cr_assert(eq(
        int,
        decode("{'outputs': [{'expr': '1'}], 'progress_ms': 1}", false, &params, &request, &error),
        0));
    cr_assert(eq(u32, request->progress_ms, 50));
    request_free(request);
    params_free(params);
}

struct refusal {
    const char *text; /* an ARRAY, an arg, or whole params */
    enum gad_status status;
    const char *argument;
};

static void check_refusal(const char *text, const struct refusal *row)
{
    struct params *params;
    struct job_request *request;
    struct gad_error error;
    int r = decode(text, false, &params, &request, &error);
    cr_assert(eq(int, r, row->status), "%s: %s", row->text, error.message);
    cr_assert(eq(int, error.status, row->status));
    cr_assert(eq(str, error.argument, (char *)row->argument), "%s", row->text);
    cr_assert(ne(int, error.message[0], 0));
    r = request_decode(&params->message.params, N_FDS, false, &request, NULL);
    cr_assert(eq(int, r, row->status));
    params_free(params);
}

Test(request, refuses_malformed_params)
{
#define O "'outputs': [{'expr': '1'}]"
    static const struct refusal rows[] = {
        {"{}", GAD_BAD_REQUEST, "outputs"},
        {"{'outputs': []}", GAD_BAD_REQUEST, "outputs"},
        {"{" O ", 'beyond': 'wrap'}", GAD_BAD_REQUEST, "beyond"},
        {"{" O ", 'beyond': {'mode': 3}}", GAD_BAD_REQUEST, "mode"},
        {"{" O ", 'beyond': {'mode': 'wrp'}}", GAD_BAD_ARGUMENT, "mode"},
        {"{" O ", 'beyond': {'mode': 'edge', 'value': 1}}", GAD_BAD_ARGUMENT, "mode"},
        {"{" O ", 'beyond': {'mode': 'constant', 'value': 'x'}}", GAD_BAD_REQUEST, "mode"},
        {"{'outputs': {}}", GAD_BAD_REQUEST, "outputs"},
        {"{'outputs': [1]}", GAD_BAD_REQUEST, "outputs[0]"},
        {"{'outputs': [{}]}", GAD_BAD_REQUEST, "outputs[0]"},
        {"{'outputs': [{'expr': '1'}, {'expr': 5}]}", GAD_BAD_REQUEST, "outputs[1]"},
        {"{'outputs': [{'expr': 5, 'name': 'r'}]}", GAD_BAD_REQUEST, "r"},
        {"{'outputs': [{'expr': '1', 'name': 5}]}", GAD_BAD_REQUEST, "outputs[0]"},
        {"{'outputs': [{'expr': '1', 'name': 'a\nb'}]}", GAD_BAD_REQUEST, "outputs[0]"},
        {"{'outputs': [{'expr': '1', 'to': 5}]}", GAD_BAD_REQUEST, "outputs[0]"},
        {"{'outputs': [{'expr': '1', 'name': 'r', 'to': {'dtype': '<f8', 'shape': [2],"
         " 'at': {'kind': 'inline', 'data': <16>}}}]}",
         GAD_BAD_REQUEST, "r"},
        {"{'outputs': [{'expr': '1', 'name': 'r', 'to': {'dtype': '<f8', 'shape': [2],"
         " 'at': {'kind': 'file', 'fd': 0, 'chunks': {'shape': [2], 'table': 1,"
         " 'count': 1}}}}]}",
         GAD_BAD_REQUEST, "r"},
        {"{'outputs': [{'expr': '1', 'name': 'r', 'to': {'dtype': '<f8', 'shape': [2]}}]}",
         GAD_BAD_REQUEST, "r"},
        {"{" O ", 'args': []}", GAD_BAD_REQUEST, "args"},
        {"{" O ", 'engine': 'tpu'}", GAD_NO_ENGINE, "engine"},
        {"{" O ", 'engine': 'cuda:16'}", GAD_NO_ENGINE, "engine"},
        {"{" O ", 'engine': 'cuda:'}", GAD_NO_ENGINE, "engine"},
        {"{" O ", 'engine': 'cuda:00'}", GAD_NO_ENGINE, "engine"},
        {"{" O ", 'engine': 5}", GAD_BAD_REQUEST, "engine"},
        {"{" O ", 'priority': 101}", GAD_BAD_REQUEST, "priority"},
        {"{" O ", 'priority': -9223372036854775808}", GAD_BAD_REQUEST, "priority"},
        {"{" O ", 'priority': 1.0}", GAD_BAD_REQUEST, "priority"},
        {"{" O ", 'progress_ms': -1}", GAD_BAD_REQUEST, "progress_ms"},
        {"{" O ", 'progress_ms': 4294967296}", GAD_BAD_REQUEST, "progress_ms"},
        {"{" O ", 'queue_timeout_ms': 4294967296}", GAD_BAD_REQUEST, "queue_timeout_ms"},
        {"{" O ", 'deadline_ms': -1}", GAD_BAD_REQUEST, "deadline_ms"},
        {"{" O ", 'deadline_ms': '10'}", GAD_BAD_REQUEST, "deadline_ms"},
        {"{" O ", 'settle': 1}", GAD_BAD_REQUEST, "settle"},
        {"{" O ", 'tf32': 1}", GAD_BAD_REQUEST, "tf32"},
        {"{" O ", 'tf32': 'true'}", GAD_BAD_REQUEST, "tf32"},
        {"{" O ", 'exclusive': 1}", GAD_BAD_REQUEST, "exclusive"},
        {"{" O ", 'journal': 1}", GAD_BAD_REQUEST, "journal"},
        {"{" O ", 'journal': {}}", GAD_BAD_REQUEST, "journal"},
        {"{" O ", 'journal': {'fd': 64}}", GAD_BAD_DESCRIPTOR, "journal"},
        {"{" O ", 'key': '0123456789012345678901234567890123456789012345678901234567890123'}",
         GAD_BAD_REQUEST, "key"},
        {"{" O ", 'args': {5: {'scalar': 1}}}", GAD_BAD_REQUEST, "args"},
        {"{" O ", 'args': {'': {'scalar': 1}}}", GAD_BAD_REQUEST, ""},
        {"{" O ", 'args': {'9a': {'scalar': 1}}}", GAD_BAD_REQUEST, "9a"},
        {"{" O ", 'args': {'a b': {'scalar': 1}}}", GAD_BAD_REQUEST, "a b"},
        {"{" O ", 'args': {'a': {'scalar': 1}, 'b': {'scalar': 1}, 'a': {'scalar': 2}}}",
         GAD_BAD_REQUEST, "a"},
        {"{" O ", 'args': {'a': {'scalar': 'x'}}}", GAD_BAD_REQUEST, "a"},
        {"{" O ", 'args': {'a': {'scalar': nil}}}", GAD_BAD_REQUEST, "a"},
        {"{" O ", 'args': {'a': 5}}", GAD_BAD_REQUEST, "a"},
    };
#undef O
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_refusal(rows[i].text, &rows[i]);
}

Test(request, refuses_malformed_arrays_by_the_arguments_name)
{
#define AT       "'at': {'kind': 'region', 'id': 1, 'offset': 0}"
#define F8       "'dtype': '<f8', 'shape': [2]"
#define PROVIDER "'kind': 'provider', 'ring': 0, 'request': 1, 'done': 2"
    static const struct refusal rows[] = {
        {"{}", GAD_BAD_REQUEST, "x"},
        {"{'shape': [2], " AT "}", GAD_BAD_REQUEST, "x"},
        {"{'dtype': 5, 'shape': [2], " AT "}", GAD_BAD_REQUEST, "x"},
        {"{'dtype': '<f2', 'shape': [2], " AT "}", GAD_BAD_DTYPE, "x"},
        {"{'dtype': '<f8', " AT "}", GAD_BAD_REQUEST, "x"},
        {"{'dtype': '<f8', 'shape': 2, " AT "}", GAD_BAD_SHAPE, "x"},
        {"{'dtype': '<f8', 'shape': [2.0], " AT "}", GAD_BAD_SHAPE, "x"},
        {"{'dtype': '<f8', 'shape': [-1], " AT "}", GAD_BAD_SHAPE, "x"},
        {"{'dtype': '<f8', 'shape': [9223372036854775808], " AT "}", GAD_BAD_SHAPE, "x"},
        {"{'dtype': '<f8', 'shape': [9223372036854775807], " AT "}", GAD_BAD_SHAPE, "x"},
        {"{'dtype': '<f8', 'shape': [4294967296, 4294967296], " AT "}", GAD_BAD_SHAPE, "x"},
        {"{'dtype': '<f8', 'shape': [0, 4294967296, 4294967296], " AT "}", GAD_BAD_SHAPE, "x"},
        {"{'dtype': '<f8', 'shape': [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
         "1,1,1], " AT "}",
         GAD_BAD_SHAPE, "x"},
        {"{" F8 ", 'strides': [8, 8], " AT "}", GAD_BAD_SHAPE, "x"},
        {"{" F8 ", 'strides': [9223372036854775807], " AT "}", GAD_BAD_EXTENT, "x"},
        {"{" F8 ", 'strides': [-9223372036854775808], " AT "}", GAD_BAD_EXTENT, "x"},
        {"{" F8 ", 'strides': [-8], " AT "}", GAD_BAD_EXTENT, "x"},
        {"{" F8 "}", GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': 5}", GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {}}", GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {'kind': 'stream'}}", GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {'kind': 'inline'}}", GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {'kind': 'inline', 'data': 'text'}}", GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {'kind': 'inline', 'data': <15>}}", GAD_BAD_EXTENT, "x"},
        {"{" F8 ", 'at': {'kind': 'inline', 'data': <17>}}", GAD_BAD_EXTENT, "x"},
        {"{" F8 ", 'strides': [-8], 'at': {'kind': 'inline', 'data': <16>}}", GAD_BAD_REQUEST, "x"},
        {"{'dtype': '<f8', 'shape': [8193], 'at': {'kind': 'inline', 'data': <65544>}}",
         GAD_TOO_LARGE_FOR_INLINE, "x"},
        {"{" F8 ", 'at': {'kind': 'region', 'id': 1}}", GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {'kind': 'region', 'offset': 1}}", GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {'kind': 'region', 'id': 1, 'offset': -1}}", GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {'kind': 'region', 'id': 1, 'offset': 9223372036854775800}}",
         GAD_BAD_EXTENT, "x"},
        {"{" F8 ", 'at': {'kind': 'region', 'id': 1, 'offset': 18446744073709551615}}",
         GAD_BAD_EXTENT, "x"},
        {"{" F8 ", 'at': {'kind': 'file', 'fd': 0}}", GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {'kind': 'file', 'offset': 0}}", GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {'kind': 'file', 'fd': 7, 'offset': 0}}", GAD_BAD_DESCRIPTOR, "x"},
        {"{" F8 ", 'at': {'kind': 'file', 'fd': 18446744073709551615, 'offset': 0}}",
         GAD_BAD_DESCRIPTOR, "x"},
        {"{" F8 ", 'at': {'kind': 'file', 'fd': 0, 'chunks': 5}}", GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {'kind': 'file', 'fd': 0, 'chunks': {}}}", GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {'kind': 'file', 'fd': 0, 'chunks': {'shape': [2], 'table': 0,"
         " 'count': 1}}}",
         GAD_BAD_DESCRIPTOR, "x"},
        {"{" F8 ", 'at': {'kind': 'file', 'fd': 0, 'chunks': {'shape': [2, 2], 'table': 1,"
         " 'count': 1}}}",
         GAD_BAD_CHUNK_TABLE, "x"},
        {"{" F8 ", 'at': {'kind': 'file', 'fd': 0, 'chunks': {'shape': [0], 'table': 1,"
         " 'count': 1}}}",
         GAD_BAD_CHUNK_TABLE, "x"},
        {"{" F8 ", 'at': {'kind': 'file', 'fd': 0, 'chunks': {'shape': [2], 'table': 1,"
         " 'count': 2}}}",
         GAD_BAD_CHUNK_TABLE, "x"},
        {"{" F8 ", 'strides': [16], 'at': {'kind': 'file', 'fd': 0, 'chunks': {'shape': [2],"
         " 'table': 1, 'count': 1}}}",
         GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {" PROVIDER ", 'slots': 0, 'slot_bytes': 262144}}", GAD_LIMIT_EXCEEDED,
         "x"},
        {"{" F8 ", 'at': {" PROVIDER ", 'slots': 65, 'slot_bytes': 262144}}", GAD_LIMIT_EXCEEDED,
         "x"},
        {"{" F8 ", 'at': {" PROVIDER ", 'slots': 4294967297, 'slot_bytes': 262144}}",
         GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {" PROVIDER ", 'slots': 2, 'slot_bytes': 262145}}", GAD_LIMIT_EXCEEDED,
         "x"},
        {"{" F8 ", 'at': {" PROVIDER ", 'slots': 2, 'slot_bytes': 262144, 'chunks': [2]}}",
         GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {" PROVIDER ", 'slots': 2, 'slot_bytes': 262144,"
         " 'chunks': {'shape': [0]}}}",
         GAD_BAD_CHUNK_TABLE, "x"},
        {"{" F8 ", 'at': {" PROVIDER ", 'slots': 2, 'slot_bytes': 262144,"
         " 'chunks': {'shape': [1, 1]}}}",
         GAD_BAD_CHUNK_TABLE, "x"},
        {"{" F8 ", 'at': {" PROVIDER ", 'slots': 2, 'slot_bytes': 262144, 'stream': 1}}",
         GAD_BAD_REQUEST, "x"},
        {"{" F8 ", 'at': {'kind': 'provider', 'ring': 0, 'request': 0, 'done': 2, 'slots': 2,"
         " 'slot_bytes': 262144}}",
         GAD_BAD_DESCRIPTOR, "x"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[1024];
        snprintf(text, sizeof(text), "{'outputs': [{'expr': 'x'}], 'args': {'x': %s}}",
                 rows[i].text);
        check_refusal(text, &rows[i]);
        snprintf(text, sizeof(text), "{'outputs': [{'expr': '1', 'name': 'x', 'to': %s}]}",
                 rows[i].text);
        struct params *params;
        struct job_request *request;
        struct gad_error error;
        cr_assert(ne(int, decode(text, false, &params, &request, &error), 0), "%s", text);
        cr_assert(eq(str, error.argument, "x"));
        params_free(params);
    }
}

Test(request, a_descriptor_is_used_once_in_the_whole_request)
{
    static const struct refusal row = {
        "{'outputs': [{'expr': 'x', 'name': 'r', 'to': {'dtype': '<f8', 'shape': [2], 'at': {"
        "'kind': 'file', 'fd': 3, 'offset': 0}}}], 'args': {'x': {'dtype': '<f8', 'shape': [2],"
        " 'at': {'kind': 'file', 'fd': 3, 'offset': 0}}}}",
        GAD_BAD_DESCRIPTOR, "r"};
    check_refusal(row.text, &row);
}

/* Repeats a piece with its number in it, between a head and a tail. */
static char *repeated(const char *head, const char *piece, unsigned n, const char *tail)
{
    size_t n_bytes = strlen(head) + n * (strlen(piece) + 10) + strlen(tail) + 1;
    char *text = malloc(n_bytes);
    size_t used = (size_t)snprintf(text, n_bytes, "%s", head);
    for (unsigned i = 0; i < n; i++) {
        const char *mark = strchr(piece, '#');
        used += (size_t)snprintf(text + used, n_bytes - used, "%.*s%u%s", (int)(mark - piece),
                                 piece, i, mark + 1);
    }
    snprintf(text + used, n_bytes - used, "%s", tail);
    return text;
}

static int decode_repeated(const char *head, const char *piece, unsigned n, const char *tail,
                           char *ret_argument)
{
    char *text = repeated(head, piece, n, tail);
    struct params *params;
    struct job_request *request;
    struct gad_error error;
    int r = decode(text, false, &params, &request, &error);
    strcpy(ret_argument, error.argument);
    request_free(request);
    params_free(params);
    free(text);
    return r;
}

/* 'a' and 'b' are files, of these descriptors. */
static int decode_two_files(unsigned a, unsigned b)
{
    char text[512];
    snprintf(text, sizeof(text),
             "{'outputs': [{'expr': 'a+b'}], 'args': {"
             "'a': {'dtype': '<f4', 'shape': [3], 'at': {'kind': 'file', 'fd': %u, 'offset': 0}},"
             "'b': {'dtype': '<f4', 'shape': [3], 'at': {'kind': 'file', 'fd': %u, 'offset': 0}}}}",
             a, b);
    struct params *params = params_new(text);
    struct job_request *request = NULL;
    struct gad_error error = {0};
    int r = request_decode(&params->message.params, FRAME_MAX_FDS, false, &request, &error);
    request_free(request);
    params_free(params);
    return r;
}

Test(request, every_descriptor_of_a_frame_is_used_once)
{
    cr_assert(zero(int, decode_two_files(6, 70))); /* 70 is 6 beyond 64 */
    cr_assert(zero(int, decode_two_files(FRAME_MAX_FDS - 1, 0)));
    cr_assert(eq(int, decode_two_files(70, 70), GAD_BAD_DESCRIPTOR));
    cr_assert(eq(int, decode_two_files(FRAME_MAX_FDS - 1, FRAME_MAX_FDS - 1), GAD_BAD_DESCRIPTOR));
    cr_assert(eq(int, decode_two_files(0, FRAME_MAX_FDS), GAD_BAD_DESCRIPTOR));
}

Test(request, counts_are_limited)
{
    char argument[64];
    static const char args_head[] = "{'outputs': [{'expr': '1'}], 'args': {";
    cr_assert(eq(int, decode_repeated(args_head, "'a#': {'scalar': 1},", 64, "}}", argument), 0));
    cr_assert(eq(int, decode_repeated(args_head, "'a#': {'scalar': 1},", 65, "}}", argument),
                 GAD_LIMIT_EXCEEDED));
    cr_assert(eq(str, argument, "args"));
    cr_assert(eq(int, decode_repeated("{'outputs': [", "{'expr': '#'},", 16, "]}", argument), 0));
    cr_assert(eq(int, decode_repeated("{'outputs': [", "{'expr': '#'},", 17, "]}", argument),
                 GAD_LIMIT_EXCEEDED));
    cr_assert(eq(str, argument, "outputs"));
}

static int decode_name_of(size_t n_chars)
{
    char text[300], argument[80];
    memset(argument, 'n', sizeof(argument));
    snprintf(text, sizeof(text), "{'outputs': [{'expr': '1'}], 'args': {'%.*s': {'scalar': 1}}}",
             (int)n_chars, argument);
    struct params *params;
    struct job_request *request;
    struct gad_error error;
    int r = decode(text, false, &params, &request, &error);
    request_free(request);
    params_free(params);
    return r;
}

Test(request, names_are_limited)
{
    cr_assert(eq(int, decode_name_of(ARRAY_NAME_SIZE - 1), 0));
    cr_assert(eq(int, decode_name_of(ARRAY_NAME_SIZE), GAD_BAD_REQUEST));
    cr_assert(eq(int, decode_name_of(ARRAY_NAME_SIZE + 10), GAD_BAD_REQUEST));
}

Test(request, expressions_are_limited)
{
    for (int extra = 0; extra < 2; extra++) {
        size_t n = REQUEST_MAX_EXPR_CHARS + (size_t)extra;
        static char text[REQUEST_MAX_EXPR_CHARS + 200];
        size_t used = (size_t)sprintf(text, "{'outputs': [{'name': 'r', 'expr': '");
        memset(text + used, '1', n);
        strcpy(text + used + n, "'}]}");
        struct params *params;
        struct job_request *request;
        struct gad_error error;
        int r = decode(text, false, &params, &request, &error);
        cr_assert(eq(int, r, extra ? GAD_LIMIT_EXCEEDED : 0));
        cr_assert(eq(str, error.argument, extra ? "r" : ""));
        request_free(request);
        params_free(params);
    }
}

Test(request, one_array_alone_is_encoded_and_decoded)
{
    struct array array = {.dtype = DTYPE_INT16, .is_swapped = true, .ndim = 2, .shape = {2, 3}};
    struct array got;
    struct gad_error error;
    struct message_writer w;
    array.strides[0] = 2;
    array.strides[1] = 4;
    message_writer_init(&w);
    array_encode(&w.packer, &array);
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    cr_assert(eq(int, msgpack_unpack_next(&unpacked, w.buffer.data, w.buffer.size, NULL),
                 MSGPACK_UNPACK_SUCCESS));
    cr_assert(eq(int, array_decode(&unpacked.data, "a", 0, false, &got, &error), 0));
    cr_assert(eq(int, got.dtype, DTYPE_INT16));
    cr_assert(got.is_swapped);
    cr_assert(eq(i64, got.strides[1], 4));
    cr_assert(eq(int, got.at.kind, LOCATION_NONE));
    cr_assert(eq(int, array_decode(&unpacked.data, "a", 0, true, &got, &error), GAD_BAD_REQUEST));
    cr_assert(eq(str, error.argument, "a"));
    msgpack_unpacked_destroy(&unpacked);
    message_writer_deinit(&w);
}

Test(request, an_output_without_a_name_is_called_by_its_number)
{
    struct request_output output = {.name = ""};
    char buffer[REQUEST_UNNAMED_SIZE], want[REQUEST_UNNAMED_SIZE];
    for (unsigned i = 0; i < REQUEST_MAX_OUTPUTS; i++) {
        snprintf(want, sizeof(want), "outputs[%u]", i);
        cr_expect(eq(str, (char *)request_output_name(&output, i, buffer), want));
    }
    strcpy(output.name, "speed");
    cr_expect(eq(str, (char *)request_output_name(&output, 3, buffer), "speed"));
}
