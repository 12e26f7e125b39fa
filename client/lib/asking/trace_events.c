/* Chrome's trace event format, as Perfetto reads it: a list of spans ("ph": "X") on lanes ("tid"),
 * and the lanes' names ("ph": "M").
 *
 *     job       | queued |          running                  |
 *     compute 1          |read| kernel |write|read| kernel |write|
 *     io 1                    |read|
 *
 * Times are microseconds since the job was submitted; those of the worker and of the broker are of
 * one clock. A job that has not ended is told until its last record. The daemon is believed in
 * nothing: records of odd sizes or unknown kinds become an error or "other", never memory that is
 * not there.
 *
 * Called by trace_json.c; tested alone.
 */
#include "client/lib/asking/trace_events.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/trace.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define NAME_SIZE 64
#define JOB_LANE  0x10000u /* beside those of the worker */

struct answer {
    uint64_t job, uid, submitted_ns, started_ns, ended_ns, since_ns;
    char state[16], engine[NAME_SIZE];
    const char *records; /* not aligned */
    size_t n_records;
    const msgpack_object *lanes; /* NULL: none */
    const msgpack_object *label; /* NULL: none */
};

static int read_answer(const msgpack_object *map, struct answer *ret)
{
    const msgpack_object *records = map_find(map, "records");
    *ret = (struct answer){.since_ns = UINT64_MAX};
    if (map_require_u64(map, "job", &ret->job, NULL) || map_u64(map, "uid", &ret->uid, NULL) ||
        map_require_u64(map, "submitted_ns", &ret->submitted_ns, NULL) ||
        map_u64(map, "started_ns", &ret->started_ns, NULL) ||
        map_u64(map, "ended_ns", &ret->ended_ns, NULL) ||
        map_u64(map, "since_ns", &ret->since_ns, NULL) ||
        map_copy_str(map, "state", ret->state, sizeof(ret->state), NULL) ||
        map_copy_str(map, "engine", ret->engine, sizeof(ret->engine), NULL))
        return -EPROTO;
    if (records && records->type != MSGPACK_OBJECT_BIN)
        return -EPROTO;
    if (records && records->via.bin.size % sizeof(struct trace_record) != 0)
        return -EPROTO;
    if (records) {
        ret->records = records->via.bin.ptr;
        ret->n_records = records->via.bin.size / sizeof(struct trace_record);
    }
    ret->lanes = map_find(map, "lanes");
    ret->label = map_find(map, "label");
    return 0;
}

static struct trace_record record_at(const struct answer *a, size_t i)
{
    struct trace_record record;
    memcpy(&record, a->records + i * sizeof(record), sizeof(record));
    return record;
}

/* Building ------------------------------------------------------------------------------------- */

/* Without memory the object is put, and nothing is added any more. */
static void add(struct json_object **object, const char *key, struct json_object *value)
{
    if (*object && value && json_object_object_add(*object, key, value) == 0)
        return;
    json_object_put(value);
    json_object_put(*object);
    *object = NULL;
}

static void add_text(struct json_object **object, const char *key, const char *text)
{
    add(object, key, json_object_new_string(text));
}

static void add_number(struct json_object **object, const char *key, uint64_t number)
{
    add(object, key, json_object_new_uint64(number));
}

/* With three places: nanoseconds. */
static void add_us(struct json_object **object, const char *key, int64_t ns)
{
    char text[40];
    double us = (double)ns / 1e3;
    snprintf(text, sizeof(text), "%.3f", us);
    add(object, key, json_object_new_double_s(us, text));
}

static int put_into(struct json_object *list, struct json_object *event)
{
    if (event && json_object_array_add(list, event) == 0)
        return 0;
    json_object_put(event);
    return -ENOMEM;
}

static struct json_object *new_event(const char *phase, const char *name, uint64_t lane)
{
    struct json_object *event = json_object_new_object();
    add_text(&event, "ph", phase);
    add_text(&event, "name", name);
    add_number(&event, "pid", 1);
    add_number(&event, "tid", lane);
    return event;
}

static int add_span(struct json_object *list, const char *name, uint64_t lane, int64_t begin_ns,
                    uint64_t duration_ns, struct json_object *args)
{
    struct json_object *event = new_event("X", name, lane);
    add_text(&event, "cat", lane == JOB_LANE ? "job" : "tile");
    add_us(&event, "ts", begin_ns);
    add_us(&event, "dur", (int64_t)min_u64(duration_ns, INT64_MAX));
    if (args)
        add(&event, "args", args);
    return put_into(list, event);
}

static int add_name(struct json_object *list, const char *what, uint64_t lane, const char *name)
{
    struct json_object *event = new_event("M", what, lane);
    struct json_object *args = json_object_new_object();
    add_text(&args, "name", name);
    add(&event, "args", args);
    return put_into(list, event);
}

/* Parts ---------------------------------------------------------------------------------------- */

static const char *kind_name(uint8_t kind)
{
    static const char *const names[TRACE_N_KINDS] = {
        [TRACE_READ] = "read",     [TRACE_TO_DEVICE] = "to device",
        [TRACE_KERNEL] = "kernel", [TRACE_FROM_DEVICE] = "from device",
        [TRACE_WRITE] = "write",   [TRACE_SUBMIT] = "submit"};
    return kind < TRACE_N_KINDS ? names[kind] : "other";
}

static int add_records(struct json_object *list, const struct answer *a)
{
    int r = 0;
    for (size_t i = 0; i < a->n_records && r == 0; i++) {
        struct trace_record record = record_at(a, i);
        struct json_object *args = json_object_new_object();
        add_number(&args, "tile", record.tile);
        add_number(&args, "pass", record.pass);
        if (!args)
            return -ENOMEM;
        r = add_span(list, kind_name(record.kind), record.lane,
                     (int64_t)(record.begin_ns - a->submitted_ns), record.duration_ns, args);
    }
    return r;
}

/* [[number, name], ...] */
static int add_lanes(struct json_object *list, const struct answer *a)
{
    const msgpack_object_array *lanes =
        a->lanes && a->lanes->type == MSGPACK_OBJECT_ARRAY ? &a->lanes->via.array : NULL;
    int r = add_name(list, "process_name", JOB_LANE, a->engine[0] ? a->engine : "gpuarrayd");
    if (r == 0)
        r = add_name(list, "thread_name", JOB_LANE, "job");
    for (uint32_t i = 0; lanes && i < lanes->size && r == 0; i++) {
        const msgpack_object *lane = &lanes->ptr[i];
        if (lane->type != MSGPACK_OBJECT_ARRAY || lane->via.array.size != 2)
            continue;
        const msgpack_object *number = &lane->via.array.ptr[0], *name = &lane->via.array.ptr[1];
        char text[NAME_SIZE];
        if (number->type != MSGPACK_OBJECT_POSITIVE_INTEGER || name->type != MSGPACK_OBJECT_STR)
            continue;
        snprintf(text, sizeof(text), "%.*s", (int)min_u64(name->via.str.size, NAME_SIZE),
                 name->via.str.ptr);
        r = add_name(list, "thread_name", number->via.u64, text);
    }
    return r;
}

static uint64_t end_of(const struct answer *a)
{
    uint64_t end_ns = max_u64(a->ended_ns, max_u64(a->started_ns, a->submitted_ns));
    for (size_t i = 0; i < a->n_records && a->ended_ns == 0; i++) {
        struct trace_record record = record_at(a, i);
        end_ns = max_u64(end_ns, record.begin_ns + record.duration_ns);
    }
    return end_ns;
}

static int add_job(struct json_object *list, const struct answer *a)
{
    uint64_t end_ns = end_of(a);
    uint64_t started_ns =
        a->started_ns >= a->submitted_ns && a->started_ns > 0 ? a->started_ns : end_ns;
    int r = add_span(list, "queued", JOB_LANE, 0, started_ns - a->submitted_ns, NULL);
    return r || started_ns == end_ns
               ? r
               : add_span(list, "running", JOB_LANE, (int64_t)(started_ns - a->submitted_ns),
                          end_ns - started_ns, NULL);
}

static struct json_object *about(const struct answer *a)
{
    struct json_object *about = json_object_new_object();
    add_number(&about, "job", a->job);
    add_number(&about, "uid", a->uid);
    add_text(&about, "state", a->state);
    add_text(&about, "engine", a->engine);
    add(&about, "complete",
        json_object_new_boolean(a->started_ns == 0 || a->since_ns <= a->started_ns));
    if (a->label && a->label->type == MSGPACK_OBJECT_STR)
        add(&about, "label",
            json_object_new_string_len(a->label->via.str.ptr, (int)a->label->via.str.size));
    return about;
}

int trace_events_make(const msgpack_object *answer, struct json_object **ret,
                      struct gad_error *error)
{
    struct answer a;
    if (read_answer(answer, &a))
        return error_set(error, GAD_PROTOCOL, NULL, "the daemon's answer is no trace of a job");
    struct json_object *list = json_object_new_array(), *all = json_object_new_object();
    int r = list && all ? add_lanes(list, &a) : -ENOMEM;
    if (r == 0)
        r = add_job(list, &a);
    if (r == 0)
        r = add_records(list, &a);
    if (r) {
        json_object_put(list);
        json_object_put(all);
        return r;
    }
    add(&all, "traceEvents", list);
    add_text(&all, "displayTimeUnit", "ms");
    add(&all, "otherData", about(&a));
    *ret = all;
    return all ? 0 : -ENOMEM;
}
