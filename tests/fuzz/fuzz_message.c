/* Any bytes as a frame's body: the check, the envelope, and the job request in it.
 *
 * Checked besides the sanitizers' own: what passes the bounded check is one object for msgpack-c
 * too; the payload's bytes lie in the body; a request that was decoded, encoded and decoded again
 * has the same bytes when it is encoded once more.
 */
#include "proto/request.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#define N_FDS 8

static void encode(struct message_writer *w, const struct job_request *request)
{
    message_begin_request(w, 1, "job.plan");
    request_encode(&w->packer, request);
    assert(!w->has_failed);
}

static void check_round_trip(const struct job_request *request)
{
    struct message_writer first, second;
    message_writer_init(&first);
    message_writer_init(&second);
    encode(&first, request);

    struct message message;
    bool has_id;
    struct gad_error error;
    int r = frame_body_check(first.buffer.data, first.buffer.size);
    assert(r == 0);
    r = message_decode(first.buffer.data, first.buffer.size, &message, &has_id, &error);
    assert(r == 0);
    struct job_request *again = NULL;
    r = request_decode(&message.params, N_FDS, true, &again, &error);
    assert(r == 0);
    encode(&second, again);
    assert(first.buffer.size == second.buffer.size);
    assert(memcmp(first.buffer.data, second.buffer.data, first.buffer.size) == 0);

    request_free(again);
    message_deinit(&message);
    message_writer_deinit(&first);
    message_writer_deinit(&second);
}

static void check_arrays(const struct job_request *request)
{
    for (unsigned i = 0; i < request->n_args; i++) {
        const struct array *array = &request->args[i].array;
        int64_t low, high;
        if (request->args[i].is_scalar)
            continue;
        array_extent(array, &low, &high);
        assert(low <= 0 && high >= 0 && array_n_bytes(array) >= 0);
        assert(!array_is_c_contiguous(array) || high == array_n_bytes(array));
    }
}

static void check_request(const msgpack_object *params, bool is_plan)
{
    struct job_request *request = NULL;
    struct gad_error error = {0};
    int r = request_decode(params, N_FDS, is_plan, &request, &error);
    if (r) {
        assert(r > 0 && r == (int)error.status && error.message[0] != '\0');
        return;
    }
    check_arrays(request);
    check_round_trip(request);
    request_free(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (frame_body_check(data, n_bytes) != 0)
        return 0;
    struct message message;
    bool has_id;
    struct gad_error error;
    if (message_decode(data, n_bytes, &message, &has_id, &error) != 0)
        return 0;
    if (message.n_payload_bytes > 1) {
        assert(message.payload >= (const char *)data);
        assert(message.payload + message.n_payload_bytes <= (const char *)data + n_bytes);
    }
    if (message.kind == MESSAGE_RESPONSE) {
        map_error(&message.error, &error);
    } else {
        check_request(&message.params, true);
        check_request(&message.params, false);
    }
    message_deinit(&message);
    return 0;
}
