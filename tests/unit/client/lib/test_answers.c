/* What comes back: responses to calls, results, JSON; and that nonsense is refused. */
#include "client/lib/connection/client.h"
#include "client/lib/asking/json.h"
#include "client/lib/jobs/result.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <string.h>
#include <sys/socket.h>

struct heard {
    unsigned n;
    int status;
    struct gad_error error;
    struct calls *calls; /* to call again from inside */
};

static void hear(void *userdata, int status, struct reply *reply_take,
                 const struct gad_error *error)
{
    struct heard *heard = userdata;
    heard->n++;
    heard->status = status;
    if (status)
        heard->error = *error;
    reply_free(reply_take);
    uint32_t id;
    if (heard->calls)
        cr_assert(zero(int, calls_add(heard->calls, hear, userdata, &id)));
    heard->calls = NULL;
}

static void answer(struct calls *calls, uint32_t id, const struct gad_error *error)
{
    struct message_writer w;
    struct message message;
    bool has_id;
    message_writer_init(&w);
    if (error) {
        message_error(&w, id, error);
    } else {
        message_begin_result(&w, id);
        msgpack_pack_map(&w.packer, 0);
    }
    char *body = malloc(w.buffer.size);
    memcpy(body, w.buffer.data, w.buffer.size);
    cr_assert(zero(int, message_decode(body, w.buffer.size, &message, &has_id, NULL)));
    calls_answer(calls, &message, body);
    message_writer_deinit(&w);
}

Test(calls, match_answers_in_any_order)
{
    struct calls calls = {0};
    struct heard heard[200] = {{0}};
    uint32_t ids[200];
    for (int i = 0; i < 200; i++)
        cr_assert(zero(int, calls_add(&calls, hear, &heard[i], &ids[i])));
    for (int i = 199; i >= 0; i--)
        answer(&calls, ids[(i * 7) % 200], NULL);
    for (int i = 0; i < 200; i++)
        cr_assert(eq(uint, heard[i].n, 1));
    answer(&calls, ids[3], NULL);
    cr_assert(eq(uint, heard[3].n, 1), "a second answer finds nobody");
}

Test(calls, hand_over_errors_with_all_their_words)
{
    struct calls calls = {0};
    struct heard heard = {0};
    struct gad_error error = {0};
    uint32_t id;
    error_set(&error, GAD_BAD_SHAPE, "a", "shapes differ");
    error_expected(&error, "(3,)");
    cr_assert(zero(int, calls_add(&calls, hear, &heard, &id)));
    answer(&calls, id, &error);
    cr_assert(eq(int, heard.status, GAD_BAD_SHAPE));
    cr_assert(eq(str, heard.error.argument, "a"));
    cr_assert(eq(str, heard.error.expected, "(3,)"));
}

Test(calls, fail_all_once_and_spare_new_ones)
{
    struct calls calls = {0};
    struct heard heard[3] = {{0}};
    struct gad_error error = {0};
    uint32_t id;
    heard[0].calls = &calls;
    for (int i = 0; i < 3; i++)
        cr_assert(zero(int, calls_add(&calls, hear, &heard[i], &id)));
    error_set(&error, GAD_DISCONNECTED, NULL, "gone");
    calls_fail_all(&calls, &error);
    cr_assert(eq(uint, heard[0].n, 1));
    cr_assert(eq(int, heard[2].status, GAD_DISCONNECTED));
    calls_fail_all(&calls, &error);
    cr_assert(eq(uint, heard[0].n, 2), "the call made meanwhile");
    cr_assert(eq(uint, heard[1].n, 1));
}

Test(calls, pass_over_ids_in_use_when_they_wrap)
{
    struct calls calls = {0};
    struct heard heard = {0};
    struct gad_error error = {0};
    uint32_t first, second;
    cr_assert(zero(int, calls_add(&calls, hear, &heard, &first)));
    calls.last_id = first - 1;
    cr_assert(zero(int, calls_add(&calls, hear, &heard, &second)));
    cr_assert(ne(u32, first, second));
    calls_drop(&calls, second);
    error_set(&error, GAD_DISCONNECTED, NULL, "gone");
    calls_fail_all(&calls, &error);
    cr_assert(eq(uint, heard.n, 1));
}

/* Connections --------------------------------------------------------------------------------- */

/* The other end of the socket is the daemon's. */
static struct conn *connect_to(struct gad_client *client)
{
    int fds[2];
    struct conn *daemon;
    *client = (struct gad_client){.timeout_ms = 1000};
    message_writer_init(&client->writer);
    cr_assert(zero(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)));
    cr_assert(zero(int, conn_new(fds[0], NULL, &client->conn)));
    cr_assert(zero(int, conn_new(fds[1], NULL, &daemon)));
    return daemon;
}

static void disconnect(struct gad_client *client)
{
    const struct gad_error error = {.status = GAD_WORKER_LOST};
    calls_fail_all(&client->calls, &error);
    arena_deinit(&client->arena);
    conn_free(client->conn);
    message_writer_deinit(&client->writer);
}

static int begin_ping(struct gad_client *client, struct client_call *call, uint32_t *ret_id)
{
    int r = client_begin_call(client, "ping", call, ret_id, NULL);
    if (r == 0)
        msgpack_pack_map(&client->writer.packer, 0);
    return r;
}

Test(connection, hears_the_last_words_of_a_daemon_that_left)
{
    struct gad_client client;
    struct client_call call;
    struct gad_error error = {0};
    struct message_writer w;
    uint32_t id;
    struct conn *daemon = connect_to(&client);
    cr_assert(zero(int, begin_ping(&client, &call, &id)));
    error_set(&error, GAD_QUOTA_EXCEEDED, "sessions", "too many sessions");
    message_writer_init(&w);
    message_error(&w, id, &error);
    cr_assert(zero(int, conn_send(daemon, w.buffer.data, w.buffer.size, NULL, 0)));
    cr_assert(zero(int, conn_flush(daemon)));
    message_writer_deinit(&w);
    conn_free(daemon); /* so that sending fails */
    cr_assert(eq(
        int, client_finish_call(&client, &call, id, NULL, 0, clock_deadline_ms(1000), NULL, &error),
        GAD_QUOTA_EXCEEDED));
    cr_assert(eq(str, error.message, (char *)"too many sessions"));
    disconnect(&client);
}

Test(connection, is_lost_when_sending_fails)
{
    struct gad_client client;
    struct client_call first, second;
    struct gad_error error = {0};
    uint32_t id;
    conn_free(connect_to(&client));
    cr_assert(zero(int, begin_ping(&client, &first, &id)));
    cr_assert(zero(int, client_send(&client, id, NULL, 0, &error)), "noticed by waiting");
    cr_assert(zero(int, begin_ping(&client, &second, &id)));
    cr_assert(eq(int, client_send(&client, id, NULL, 0, &error), GAD_DISCONNECTED));
    cr_assert(not(first.is_done));
    cr_assert(eq(int, client_wait(&client, clock_deadline_ms(1000), &error), GAD_DISCONNECTED));
    cr_assert(eq(int, first.status, GAD_DISCONNECTED));
    cr_assert(not(second.is_done), "it was never sent");
    disconnect(&client);
}

static void hear_request(struct conn *daemon, struct message *ret, struct frame *ret_frame)
{
    bool has_id;
    cr_assert(zero(int, conn_receive(daemon)));
    cr_assert(zero(int, conn_next(daemon, ret_frame)));
    cr_assert(
        zero(int, message_decode(ret_frame->body, ret_frame->size_bytes, ret, &has_id, NULL)));
}

static void say_region(struct conn *daemon, uint32_t id, uint64_t region)
{
    struct message_writer w;
    message_writer_init(&w);
    message_begin_result(&w, id);
    msgpack_pack_map(&w.packer, 1);
    pack_key_u64(&w.packer, "region", region);
    cr_assert(zero(int, conn_send(daemon, w.buffer.data, w.buffer.size, NULL, 0)));
    cr_assert(zero(int, conn_flush(daemon)));
    message_writer_deinit(&w);
}

Test(connection, gives_up_a_region_that_is_not_attached_in_time, .timeout = 20)
{
    struct gad_client client;
    struct gad_error error = {0};
    struct gad_array *array = NULL;
    struct message message;
    struct frame frame;
    const int64_t shape[] = {100};
    uint64_t region = 0;
    struct conn *daemon = connect_to(&client);
    client.session = 1;
    client.answer_ms = 50;
    cr_assert(
        eq(int, (int)gad_array_new(&client, GAD_FLOAT64, 1, shape, &array, &error), GAD_TIMEOUT));
    cr_assert(strstr(error.message, "'region.attach'") != NULL, "%s", error.message);
    hear_request(daemon, &message, &frame);
    cr_assert(message_is(&message, "region.attach"));
    say_region(daemon, message.id, 7); /* too late: it goes back */
    message_deinit(&message);
    frame_deinit(&frame, NULL);
    cr_assert(zero(int, client_wait(&client, clock_deadline_ms(1000), &error)));
    hear_request(daemon, &message, &frame);
    cr_assert(message_is(&message, "region.detach"));
    cr_assert(zero(int, map_require_u64(&message.params, "region", &region, NULL)));
    cr_assert(eq(u64, region, 7));
    message_deinit(&message);
    frame_deinit(&frame, NULL);
    conn_free(daemon);
    disconnect(&client);
}

Test(connection, gives_up_a_plan_that_does_not_come, .timeout = 20)
{
    struct gad_client client;
    struct gad_error error = {0};
    struct gad_output outputs[] = {{.expr = "1 + 1"}};
    struct gad_job_options options = {.n_outputs = 1, .outputs = outputs};
    struct gad_plan *plan = NULL;
    struct conn *daemon = connect_to(&client);
    client.answer_ms = 50;
    cr_assert(eq(int, (int)gad_plan(&client, &options, &plan, &error), GAD_TIMEOUT));
    cr_assert(strstr(error.message, "'job.plan'") != NULL, "%s", error.message);
    conn_free(daemon);
    disconnect(&client);
}

/* Results ------------------------------------------------------------------------------------- */

static struct reply *reply_begin(struct message_writer *w)
{
    message_writer_init(w);
    message_begin_result(w, 1);
    return calloc(1, sizeof(struct reply));
}

static struct reply *reply_end(struct message_writer *w, struct reply *reply)
{
    bool has_id;
    reply->body = malloc(w->buffer.size);
    memcpy(reply->body, w->buffer.data, w->buffer.size);
    cr_assert(
        zero(int, message_decode(reply->body, w->buffer.size, &reply->message, &has_id, NULL)));
    message_writer_deinit(w);
    return reply;
}

static struct reply *one_output(const char *dtype, int64_t length, size_t n_data_bytes)
{
    struct message_writer w;
    struct reply *reply = reply_begin(&w);
    static const char data[64] = {0};
    msgpack_pack_map(&w.packer, 4);
    pack_key_u64(&w.packer, "job", 12);
    pack_key_str(&w.packer, "engine", "cpu");
    pack_str(&w.packer, "seconds");
    msgpack_pack_map(&w.packer, 2);
    pack_key_f64(&w.packer, "total", 1.5);
    pack_key_u64(&w.packer, "kernel", 1);
    pack_str(&w.packer, "outputs");
    msgpack_pack_array(&w.packer, 1);
    msgpack_pack_map(&w.packer, 4);
    pack_key_str(&w.packer, "name", "r");
    pack_key_str(&w.packer, "dtype", dtype);
    pack_str(&w.packer, "shape");
    msgpack_pack_array(&w.packer, 1);
    msgpack_pack_int64(&w.packer, length);
    pack_str(&w.packer, "data");
    msgpack_pack_bin(&w.packer, n_data_bytes);
    msgpack_pack_bin_body(&w.packer, data, n_data_bytes);
    return reply_end(&w, reply);
}

static int read_one(const char *dtype, int64_t length, size_t n_data_bytes, struct result *result)
{
    struct gad_error error;
    struct reply *reply = one_output(dtype, length, n_data_bytes);
    int r = result_init(result, reply, 1, &error);
    reply_free(reply);
    return r;
}

Test(result, reads_numbers_and_inline_data)
{
    struct result result;
    cr_assert(zero(int, read_one("<f8", 3, 24, &result)));
    cr_assert(eq(u64, result.stats.job, 12));
    cr_assert(eq(str, result.stats.engine, "cpu"));
    cr_assert(eq(dbl, result.stats.total_s, 1.5));
    cr_assert(eq(dbl, result.stats.kernel_s, 1.0));
    cr_assert(eq(int, (int)result.outputs[0].what.dtype, GAD_FLOAT64));
    cr_assert(zero(int, (int)((uintptr_t)result.outputs[0].data % 8)), "aligned");
    result_deinit(&result);
}

Test(result, refuses_data_that_is_not_the_array)
{
    struct result result;
    cr_assert(eq(int, read_one("<f8", 3, 23, &result), GAD_PROTOCOL));
    cr_assert(eq(int, read_one("<f8", 3, 25, &result), GAD_PROTOCOL));
    cr_assert(eq(int, read_one("<f8", -1, 0, &result), GAD_PROTOCOL));
    cr_assert(eq(int, read_one("<f8", INT64_MAX, 8, &result), GAD_PROTOCOL));
    cr_assert(eq(int, read_one("complex", 1, 8, &result), GAD_PROTOCOL));
    cr_assert(zero(int, read_one("<f8", 0, 0, &result)));
    result_deinit(&result);
}

Test(result, refuses_another_number_of_outputs)
{
    struct result result;
    struct gad_error error;
    struct reply *reply = one_output("<f8", 1, 8);
    cr_assert(eq(int, result_init(&result, reply, 2, &error), GAD_PROTOCOL));
    cr_assert(eq(int, result_init(&result, reply, 0, &error), GAD_PROTOCOL));
    reply_free(reply);
}

/* JSON ---------------------------------------------------------------------------------------- */

Test(json, has_a_word_for_everything)
{
    struct message_writer w;
    struct reply *reply = reply_begin(&w);
    msgpack_packer *p = &w.packer;
    msgpack_pack_map(p, 9);
    pack_key_str(p, "s", "a\"b\n");
    pack_key_u64(p, "u", UINT64_MAX);
    pack_key_i64(p, "i", -5);
    pack_key_f64(p, "f", 0.5);
    pack_key_f64(p, "nan", NAN);
    pack_key_bool(p, "b", true);
    pack_str(p, "nil");
    msgpack_pack_nil(p);
    pack_str(p, "bin");
    msgpack_pack_bin(p, 2);
    msgpack_pack_bin_body(p, "\x0f\xf0", 2);
    pack_str(p, "list");
    msgpack_pack_array(p, 2);
    msgpack_pack_nil(p);
    msgpack_pack_map(p, 0);
    reply_end(&w, reply);
    char *text;
    cr_assert(zero(int, json_from_msgpack(&reply->message.result, &text)));
    cr_assert(
        eq(str, text,
           (char *)"{\"s\":\"a\\\"b\\n\",\"u\":18446744073709551615,\"i\":-5,\"f\":0.5,"
                   "\"nan\":null,\"b\":true,\"nil\":null,\"bin\":\"0ff0\",\"list\":[null,{}]}"));
    free(text);
    reply_free(reply);
}

Test(json, refuses_keys_that_are_no_text)
{
    struct message_writer w;
    struct reply *reply = reply_begin(&w);
    msgpack_pack_map(&w.packer, 1);
    msgpack_pack_int(&w.packer, 1);
    msgpack_pack_int(&w.packer, 2);
    reply_end(&w, reply);
    char *text = NULL;
    cr_assert(eq(int, json_from_msgpack(&reply->message.result, &text), -EPROTO));
    cr_assert(zero(ptr, text));
    reply_free(reply);
}
