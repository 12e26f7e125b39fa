/* The numbers of server.stats as Prometheus scrapes them: for node_exporter's textfile collector.
 *
 * One table says what becomes of which number: names end in a base unit (_seconds, _bytes) and
 * counters in _total; each family is one HELP, one TYPE, then its samples. Numbers that the daemon
 * did not tell (the worker's while it starts) leave their family out, so that a gap is seen as a
 * gap. Outcomes and refusals are told for every status, the zeros too: a rate over a counter that
 * appears only with its first event would miss that event.
 *
 * Seconds are rounded down to microseconds as text, which keeps counters from falling.
 */
#include "client/ctl/stats/stats.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum sample_kind {
    SAMPLE_ONE,      /* the number at the path */
    SAMPLE_EACH,     /* each member of the map there, under `label` */
    SAMPLE_PICKED,   /* of that map only the members in `picked` */
    SAMPLE_STATUSES, /* each member, and zero for the other statuses */
    SAMPLE_CODES,    /* the same without ok */
    SAMPLE_ENGINES,  /* the member of each engine */
    SAMPLE_USERS,    /* the member of each user */
    SAMPLE_USER_JOBS /* of each user: jobs_queued, jobs_running, jobs_settling */
};

static const char *const states[] = {"queued", "running", "settling", NULL};

static const struct family {
    const char *name, *type, *help;
    enum sample_kind kind;
    const char *path, *label;
} families[] = {
    {"uptime_seconds", "gauge", "Time since the daemon started.", SAMPLE_ONE, "uptime_s", NULL},
    {"private_bytes", "gauge", "Private memory of the daemon's process.", SAMPLE_ONE,
     "private_bytes", NULL},
    {"jobs", "gauge", "Jobs that have not ended, by state.", SAMPLE_PICKED, "jobs", "state"},
    {"jobs_submitted_total", "counter", "Jobs that were accepted.", SAMPLE_ONE, "jobs.submitted",
     NULL},
    {"jobs_requeued_total", "counter", "Times a job went back to the queue after a worker's end.",
     SAMPLE_ONE, "jobs.requeued", NULL},
    {"jobs_ended_total", "counter", "Jobs that ended, by outcome.", SAMPLE_STATUSES, "jobs.ended",
     "status"},
    {"refusals_total", "counter", "Requests and connections that were refused, by error code.",
     SAMPLE_CODES, "refusals", "code"},
    {"read_bytes_total", "counter", "Bytes that jobs read, by path.", SAMPLE_EACH, "bytes.read",
     "path"},
    {"written_bytes_total", "counter", "Bytes that jobs wrote, by path.", SAMPLE_EACH,
     "bytes.write", "path"},
    {"around_cache_bytes_total", "counter", "Bytes written to files past the page cache.",
     SAMPLE_ONE, "bytes.around_cache", NULL},
    {"stage_seconds_total", "counter",
     "Time of jobs by stage: waiting in the queue, then time of threads.", SAMPLE_EACH, "seconds",
     "stage"},
    {"wait_seconds_total", "counter",
     "Time of jobs in which nothing of them was in hand, by what they waited for.", SAMPLE_EACH,
     "waits", "reason"},
    {"pool_bytes", "gauge", "Memory that the daemon took for all jobs.", SAMPLE_ONE, "pool.bytes",
     NULL},
    {"pool_slot_bytes", "gauge", "Size of a slot of the pool.", SAMPLE_ONE, "pool.slot_bytes",
     NULL},
    {"pool_slots", "gauge", "Slots of the pool.", SAMPLE_ONE, "pool.slots", NULL},
    {"pool_slots_lent", "gauge", "Slots that are lent to tiles.", SAMPLE_ONE, "pool.slots_lent",
     NULL},
    {"pool_carries", "gauge", "Jobs that hold a carry of the pool.", SAMPLE_ONE, "pool.carries",
     NULL},
    {"pool_carry_used_bytes", "gauge", "Memory of the pool that carries hold.", SAMPLE_ONE,
     "pool.carry_used_bytes", NULL},
    {"pool_carry_limit_bytes", "gauge", "The largest carry that a job may have.", SAMPLE_ONE,
     "pool.carry_limit_bytes", NULL},
    {"pool_device_carry_bytes", "gauge", "Memory of a device for carries of matrix products.",
     SAMPLE_ONE, "pool.device_carry_bytes", NULL},
    {"pool_device_carry_used_bytes", "gauge", "What of that carries hold.", SAMPLE_ONE,
     "pool.device_carry_used_bytes", NULL},
    {"sessions", "gauge", "Open connections.", SAMPLE_ONE, "sessions.open", NULL},
    {"sessions_opened_total", "counter", "Connections that were opened.", SAMPLE_ONE,
     "sessions.total", NULL},
    {"regions", "gauge", "Shared memory regions that are attached.", SAMPLE_ONE, "regions.attached",
     NULL},
    {"region_bytes", "gauge", "Size of the regions that are attached.", SAMPLE_ONE, "regions.bytes",
     NULL},
    {"regions_attached_total", "counter", "Regions that were attached.", SAMPLE_ONE,
     "regions.total", NULL},
    {"scans", "gauge", "Processes that decode a file for all who read it.", SAMPLE_ONE,
     "scans.running", NULL},
    {"scan_readers", "gauge", "Readers of those processes.", SAMPLE_ONE, "scans.readers", NULL},
    {"scans_started_total", "counter", "Shared scans that were started.", SAMPLE_ONE,
     "scans.started", NULL},
    {"scans_lost_total", "counter", "Shared scans whose process ended by itself.", SAMPLE_ONE,
     "scans.lost", NULL},
    {"scans_joined_total", "counter", "Readers that got a scan.", SAMPLE_ONE, "scans.joined", NULL},
    {"scans_shared_total", "counter", "Readers that got a scan which was there.", SAMPLE_ONE,
     "scans.shared", NULL},
    {"scan_chunks_decoded_total", "counter", "Chunks that shared scans decoded.", SAMPLE_ONE,
     "scans.decoded", NULL},
    {"scan_chunks_failed_total", "counter", "Chunks that shared scans could not decode.",
     SAMPLE_ONE, "scans.failed", NULL},
    {"scan_chunks_taken_total", "counter", "Chunks that readers took from shared scans.",
     SAMPLE_ONE, "scans.taken", NULL},
    {"worker_ready", "gauge", "Whether the engine's worker takes jobs.", SAMPLE_ENGINES, "ready",
     NULL},
    {"worker_private_bytes", "gauge", "Private memory of the engine's worker.", SAMPLE_ENGINES,
     "private_bytes", NULL},
    {"worker_threads", "gauge", "Compute threads of the engine's worker.", SAMPLE_ENGINES,
     "threads", NULL},
    {"worker_threads_busy", "gauge", "Compute threads that work on a tile.", SAMPLE_ENGINES,
     "threads_busy", NULL},
    {"worker_slots", "gauge", "Blocks of the pool that the engine's worker stages data in.",
     SAMPLE_ENGINES, "slots", NULL},
    {"worker_slots_lent", "gauge", "Of those the ones in use.", SAMPLE_ENGINES, "slots_lent", NULL},
    {"worker_jobs_running", "gauge", "Jobs that the engine's worker has in hand.", SAMPLE_ENGINES,
     "jobs_running", NULL},
    {"worker_jobs_queued", "gauge", "Jobs that wait for the engine's worker.", SAMPLE_ENGINES,
     "jobs_queued", NULL},
    {"worker_jobs_ended_total", "counter",
     "Jobs that the engine's worker was given and that ended.", SAMPLE_ENGINES, "jobs_ended", NULL},
    {"worker_device_faults_total", "counter", "Workers that ended by a fault of their device.",
     SAMPLE_ENGINES, "faults", NULL},
    {"worker_restarts_total", "counter", "Workers that were started after the first.",
     SAMPLE_ENGINES, "restarts", NULL},
    {"worker_failed_starts_total", "counter", "Workers that ended before they were ready.",
     SAMPLE_ENGINES, "failed_starts", NULL},
    {"log_lines_dropped_total", "counter", "Lines of the log that found no room.", SAMPLE_ONE,
     "log.dropped_lines", NULL},
    {"log_lines_left_out_total", "counter",
     "Lines of the log that were more than their user may have.", SAMPLE_ONE, "log.left_out_lines",
     NULL},
    {"user_sessions", "gauge", "Open connections of the user.", SAMPLE_USERS, "sessions", NULL},
    {"user_jobs", "gauge", "Jobs of the user that have not ended, by state.", SAMPLE_USER_JOBS,
     NULL, NULL},
    {"user_region_bytes", "gauge", "Size of the user's regions.", SAMPLE_USERS, "region_bytes",
     NULL},
    {"user_read_bytes_total", "counter", "Bytes that the user's jobs read.", SAMPLE_USERS,
     "read_bytes", NULL},
    {"user_written_bytes_total", "counter", "Bytes that the user's jobs wrote.", SAMPLE_USERS,
     "write_bytes", NULL},
    {"user_work_seconds_total", "counter", "Time of threads and devices for the user's jobs.",
     SAMPLE_USERS, "work_s", NULL},
    {"user_queue_seconds_total", "counter", "Time that the user's jobs waited in the queue.",
     SAMPLE_USERS, "waited_s", NULL},
};

/* Label values may hold anything but NUL; names of labels are ours. */
void stats_write_label_value(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            fputc('\\', file);
        if (*text == '\n')
            fputs("\\n", file);
        else
            fputc(*text, file);
    }
}

static void write_label(FILE *file, const char *separator, const char *name, const char *value)
{
    fprintf(file, "%s%s=\"", separator, name);
    stats_write_label_value(file, value);
    fputc('"', file);
}

static void write_value(FILE *file, struct json_object *value)
{
    if (json_object_is_type(value, json_type_boolean))
        fprintf(file, " %d\n", json_object_get_boolean(value));
    else if (json_object_is_type(value, json_type_int))
        fprintf(file, " %" PRIu64 "\n", json_object_get_uint64(value));
    else
        fprintf(file, " %.6f\n", floor(json_object_get_double(value) * 1e6) / 1e6);
}

/* One sample with at most one label. */
static void write_sample(FILE *file, const char *family, const char *label, const char *label_value,
                         struct json_object *value)
{
    fprintf(file, "gpuarrayd_%s", family);
    if (label) {
        write_label(file, "{", label, label_value);
        fputc('}', file);
    }
    write_value(file, value);
}

static void write_user_labels(FILE *file, struct json_object *user)
{
    char name[STATS_USER_SIZE], number[16];
    uint32_t uid = (uint32_t)stats_u64(user, "uid");
    snprintf(number, sizeof(number), "%u", uid);
    write_label(file, "{", "uid", number);
    write_label(file, ",", "user", stats_user_name(uid, name));
}

static void write_user(FILE *file, const struct family *f, struct json_object *user)
{
    if (f->kind == SAMPLE_USERS) {
        fprintf(file, "gpuarrayd_%s", f->name);
        write_user_labels(file, user);
        fputc('}', file);
        write_value(file, stats_at(user, f->path));
        return;
    }
    for (unsigned i = 0; states[i]; i++) {
        char key[32];
        snprintf(key, sizeof(key), "jobs_%s", states[i]);
        fprintf(file, "gpuarrayd_%s", f->name);
        write_user_labels(file, user);
        write_label(file, ",", "state", states[i]);
        fputc('}', file);
        write_value(file, stats_at(user, key));
    }
}

static bool is_picked(const char *key)
{
    for (unsigned i = 0; states[i]; i++)
        if (strcmp(states[i], key) == 0)
            return true;
    return false;
}

static void write_zeros(FILE *file, const struct family *f, struct json_object *map)
{
    struct json_object *zero = json_object_new_int(0);
    int first = f->kind == SAMPLE_CODES ? GAD_OK + 1 : GAD_OK;
    for (int status = first; status < (int)GAD_STATUS_COUNT; status++)
        if (!json_object_object_get_ex(map, gad_status_word(status), NULL))
            write_sample(file, f->name, f->label, gad_status_word(status), zero);
    json_object_put(zero);
}

static void write_map(FILE *file, const struct family *f, struct json_object *map)
{
    json_object_object_foreach(map, key, value) if (f->kind != SAMPLE_PICKED || is_picked(key))
        write_sample(file, f->name, f->label, key, value);
    if (f->kind == SAMPLE_STATUSES || f->kind == SAMPLE_CODES)
        write_zeros(file, f, map);
}

/* The number, the map or the list of the family; NULL: there is none. */
static struct json_object *source_of(const struct family *f, struct json_object *stats)
{
    bool is_list = f->kind >= SAMPLE_ENGINES;
    const char *path = f->kind == SAMPLE_ENGINES ? "engines" : is_list ? "users" : f->path;
    struct json_object *found = stats_at(stats, path);
    if (!is_list)
        return found;
    if (!json_object_is_type(found, json_type_array) || json_object_array_length(found) == 0)
        return NULL;
    struct json_object *first = json_object_array_get_idx(found, 0);
    return !f->path || stats_at(first, f->path) ? found : NULL;
}

static void write_samples(FILE *file, const struct family *f, struct json_object *source)
{
    if (f->kind == SAMPLE_ONE) {
        write_sample(file, f->name, NULL, NULL, source);
        return;
    }
    if (f->kind < SAMPLE_ENGINES) {
        write_map(file, f, source);
        return;
    }
    for (size_t i = 0; i < json_object_array_length(source); i++) {
        struct json_object *item = json_object_array_get_idx(source, i);
        if (f->kind == SAMPLE_ENGINES)
            write_sample(file, f->name, "engine", stats_text(item, "name"),
                         stats_at(item, f->path));
        else
            write_user(file, f, item);
    }
}

void stats_write_prometheus(FILE *file, struct json_object *stats)
{
    fputs("# HELP gpuarrayd_info The daemon that was asked.\n# TYPE gpuarrayd_info gauge\n", file);
    fputs("gpuarrayd_info", file);
    write_label(file, "{", "version", stats_text(stats, "version"));
    fputs("} 1\n", file);
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        struct json_object *source = source_of(&families[i], stats);
        if (!source)
            continue;
        fprintf(file, "# HELP gpuarrayd_%s %s\n# TYPE gpuarrayd_%s %s\n", families[i].name,
                families[i].help, families[i].name, families[i].type);
        write_samples(file, &families[i], source);
    }
}
