/* The trace of a job as Chrome's events: spans on lanes, and what no daemon should say. */
#include "client/lib/asking/trace_events.h"
#include "proto/wire/message.h"
#include "proto/wire/pack.h"
#include "proto/wire/trace.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <json-c/json.h>
#include <string.h>

static struct message_writer w;
static struct gad_error error;

static struct json_object *at(struct json_object *map, const char *key)
{
    struct json_object *value = NULL;
    cr_assert(json_object_object_get_ex(map, key, &value), "%s", key);
    return value;
}

static int make(struct json_object **ret)
{
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    cr_assert(eq(int, msgpack_unpack_next(&unpacked, w.buffer.data, w.buffer.size, NULL),
                 MSGPACK_UNPACK_SUCCESS));
    int r = trace_events_make(&unpacked.data, ret, &error);
    msgpack_unpacked_destroy(&unpacked);
    message_writer_clear(&w);
    return r;
}

static void pack_times(uint32_t n_more, uint64_t started_ns, uint64_t ended_ns)
{
    msgpack_pack_map(&w.packer, 6 + n_more);
    pack_key_u64(&w.packer, "job", 17);
    pack_key_str(&w.packer, "state", "done");
    pack_key_str(&w.packer, "engine", "cuda:0");
    pack_key_u64(&w.packer, "submitted_ns", 5000000);
    pack_key_u64(&w.packer, "started_ns", started_ns);
    pack_key_u64(&w.packer, "ended_ns", ended_ns);
}

static void pack_records(const void *records, size_t n_bytes)
{
    pack_str(&w.packer, "records");
    msgpack_pack_bin(&w.packer, n_bytes);
    msgpack_pack_bin_body(&w.packer, records, n_bytes);
}

/* The event of this name and phase; NULL: none. */
static struct json_object *find(struct json_object *all, const char *phase, const char *name)
{
    struct json_object *list = at(all, "traceEvents");
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *event = json_object_array_get_idx(list, i);
        if (strcmp(json_object_get_string(at(event, "ph")), phase) == 0 &&
            strcmp(json_object_get_string(at(event, "name")), name) == 0)
            return event;
    }
    return NULL;
}

static double number(struct json_object *event, const char *key)
{
    cr_assert(event != NULL);
    return json_object_get_double(at(event, key));
}

static void set_up(void)
{
    message_writer_init(&w);
}

static void tear_down(void)
{
    message_writer_deinit(&w);
}

TestSuite(trace_events, .init = set_up, .fini = tear_down);

Test(trace_events, records_become_spans_on_their_lanes)
{
    static const struct trace_record records[] = {
        {.begin_ns = 7000000,
         .duration_ns = 1500,
         .tile = 4,
         .lane = 2,
         .kind = TRACE_READ,
         .pass = 1},
        {.begin_ns = 7001500, .duration_ns = 1, .lane = TRACE_LANE_KERNELS, .kind = TRACE_KERNEL},
        {.begin_ns = 1, .duration_ns = UINT64_MAX, .lane = UINT16_MAX, .kind = 255}};
    struct json_object *all = NULL;
    pack_times(3, 6000000, 9000000);
    pack_key_u64(&w.packer, "since_ns", 5999999);
    pack_str(&w.packer, "lanes");
    msgpack_pack_array(&w.packer, 3);
    msgpack_pack_array(&w.packer, 2);
    msgpack_pack_uint64(&w.packer, 2);
    pack_str(&w.packer, "compute \"2\"");
    msgpack_pack_uint64(&w.packer, 1); /* no pair */
    msgpack_pack_array(&w.packer, 2);
    pack_str(&w.packer, "x"); /* no number */
    pack_str(&w.packer, "y");
    pack_records(records, sizeof(records));
    cr_assert(eq(int, make(&all), 0));
    struct json_object *read = find(all, "X", "read"), *job = find(all, "X", "running");
    cr_assert(eq(dbl, number(read, "ts"), 2000));
    cr_assert(eq(dbl, number(read, "dur"), 1.5));
    cr_assert(eq(dbl, number(read, "tid"), 2));
    cr_assert(eq(dbl, number(at(read, "args"), "tile"), 4));
    cr_assert(eq(dbl, number(at(read, "args"), "pass"), 1));
    cr_assert(eq(dbl, number(find(all, "X", "kernel"), "dur"), 0.001));
    cr_assert(eq(dbl, number(find(all, "X", "kernel"), "tid"), TRACE_LANE_KERNELS));
    cr_assert(eq(dbl, number(find(all, "X", "queued"), "dur"), 1000));
    cr_assert(eq(dbl, number(job, "ts"), 1000));
    cr_assert(eq(dbl, number(job, "dur"), 3000));
    cr_assert(find(all, "X", "other") != NULL);
    struct json_object *lane = find(all, "M", "thread_name");
    cr_assert(lane != NULL && find(all, "M", "process_name") != NULL);
    cr_assert(eq(int, json_object_get_boolean(at(at(all, "otherData"), "complete")), 1));
    json_object_put(all);
}

Test(trace_events, a_job_whose_worker_has_forgotten_it_says_so)
{
    struct json_object *all = NULL;
    pack_times(1, 6000000, 0);
    pack_key_u64(&w.packer, "since_ns", 6000001);
    cr_assert(eq(int, make(&all), 0));
    cr_assert(eq(int, json_object_get_boolean(at(at(all, "otherData"), "complete")), 0));
    cr_assert(find(all, "X", "queued") != NULL && find(all, "X", "running") == NULL);
    json_object_put(all);
    pack_times(0, 0, 0); /* never ran, or its worker does not answer */
    cr_assert(eq(int, make(&all), 0));
    cr_assert(eq(dbl, number(find(all, "X", "queued"), "dur"), 0));
    json_object_put(all);
}

Test(trace_events, what_is_no_trace_is_an_error)
{
    static const char garbage[100] = {1};
    struct json_object *all = NULL;
    for (size_t n = 1; n < sizeof(garbage); n++) {
        if (n % sizeof(struct trace_record) == 0)
            continue;
        pack_times(1, 6000000, 9000000);
        pack_records(garbage, n);
        cr_assert(eq(int, make(&all), GAD_PROTOCOL), "%zu bytes", n);
    }
    pack_times(1, 6000000, 9000000);
    pack_key_str(&w.packer, "records", "text");
    cr_assert(eq(int, make(&all), GAD_PROTOCOL));
    pack_times(1, 6000000, 9000000);
    pack_key_i64(&w.packer, "since_ns", -1);
    cr_assert(eq(int, make(&all), GAD_PROTOCOL));
    msgpack_pack_map(&w.packer, 0);
    cr_assert(eq(int, make(&all), GAD_PROTOCOL));
    msgpack_pack_nil(&w.packer);
    cr_assert(eq(int, make(&all), GAD_PROTOCOL));
    cr_assert(eq(ptr, all, NULL));
}
