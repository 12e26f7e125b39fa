/* One answer of server.stats as structs, and what two of them say together.
 *
 * Rates are differences over the time between two answers, and that time is the daemon's own
 * (uptime), so neither a slow connection nor a suspended terminal bends them. A number that fell
 * (the daemon was restarted, the job began anew) gives no rate. Pure: no daemon, no terminal.
 *
 * Called by top.c; tested alone.
 */
#include "client/ctl/stats/top.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t length_of(struct json_object *list)
{
    return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

static void copy(char *ret, size_t n_bytes, const char *text)
{
    snprintf(ret, n_bytes, "%s", text);
}

static uint64_t sum_of(struct json_object *map)
{
    uint64_t sum = 0;
    if (!json_object_is_type(map, json_type_object))
        return 0;
    json_object_object_foreach(map, key, value)
    {
        (void)key;
        sum += json_object_get_uint64(value);
    }
    return sum;
}

static void read_user(struct top_user *u, struct json_object *map)
{
    *u = (struct top_user){.uid = (uint32_t)stats_u64(map, "uid"),
                           .n_sessions = stats_u64(map, "sessions"),
                           .n_running = stats_u64(map, "jobs_running"),
                           .n_queued = stats_u64(map, "jobs_queued"),
                           .n_settling = stats_u64(map, "jobs_settling"),
                           .read_bytes = stats_u64(map, "read_bytes"),
                           .write_bytes = stats_u64(map, "write_bytes"),
                           .weight = stats_u64(map, "weight"),
                           .work_s = stats_f64(map, "work_s"),
                           .input_s = stats_f64(map, "input_s"),
                           .room_s = stats_f64(map, "room_s"),
                           .turn_s = stats_f64(map, "turn_s"),
                           .share = NAN,
                           .read_rate = NAN,
                           .write_rate = NAN};
    stats_user_name(u->uid, u->name);
}

/* What a reader wants to know at once: what one that runs is at, or that another waits, and if it
 * is for room, that. */
static void set_stage(struct top_job *j, const char *stage)
{
    bool is_running = strcmp(j->state, "running") == 0 && stage[0];
    bool lacks_room = strcmp(j->state, "queued") == 0 && strcmp(stage, "room") == 0;
    copy(j->stage, sizeof(j->stage), is_running ? stage : lacks_room ? "no room" : j->state);
}

static void read_job(struct top_job *j, struct json_object *map)
{
    *j = (struct top_job){.id = stats_u64(map, "job"),
                          .uid = (uint32_t)stats_u64(map, "uid"),
                          .n_tiles_done = stats_u64(map, "tiles_done"),
                          .n_tiles = stats_u64(map, "tiles"),
                          .queued_s = stats_f64(map, "queued_s"),
                          .running_s = stats_f64(map, "running_s"),
                          .rate = NAN};
    j->moved_bytes = stats_u64(map, "read_bytes") + stats_u64(map, "write_bytes");
    stats_user_name(j->uid, j->user);
    bool is_paused = json_object_get_boolean(stats_at(map, "paused"));
    copy(j->state, sizeof(j->state), is_paused ? "paused" : stats_text(map, "state"));
    copy(j->engine, sizeof(j->engine), stats_text(map, "engine"));
    set_stage(j, stats_text(map, "stage"));
    copy(j->label, sizeof(j->label), stats_text(map, "label"));
}

/* Threads and slots of those that are there; an engine that is not says so by its state. */
static void read_engines(struct top_snapshot *s, struct json_object *engines)
{
    for (size_t i = 0, n = 0; i < length_of(engines); i++) {
        struct json_object *engine = json_object_array_get_idx(engines, i);
        if (n < sizeof(s->engines))
            n += (size_t)snprintf(s->engines + n, sizeof(s->engines) - n, ", %s %s",
                                  stats_text(engine, "name"), stats_engine_state(engine));
        if (!stats_at(engine, "threads_busy"))
            continue;
        s->has_worker = true;
        s->n_threads += stats_u64(engine, "threads");
        s->n_busy += stats_u64(engine, "threads_busy");
        s->n_slots += stats_u64(engine, "slots");
        s->n_lent += stats_u64(engine, "slots_lent");
    }
}

static void read_totals(struct top_snapshot *s, struct json_object *stats)
{
    copy(s->version, sizeof(s->version), stats_text(stats, "version"));
    s->uptime_s = stats_f64(stats, "uptime_s");
    s->n_running = stats_u64(stats, "jobs.running");
    s->n_queued = stats_u64(stats, "jobs.queued");
    s->n_settling = stats_u64(stats, "jobs.settling");
    s->n_done = stats_u64(stats, "jobs.ended.ok");
    s->n_failed = sum_of(stats_at(stats, "jobs.ended")) - s->n_done;
    s->n_sessions = stats_u64(stats, "sessions.open");
    s->read_bytes = sum_of(stats_at(stats, "bytes.read"));
    s->write_bytes = sum_of(stats_at(stats, "bytes.write"));
    s->n_carries = stats_u64(stats, "pool.carries");
    s->carry_bytes = stats_u64(stats, "pool.carry_used_bytes") +
                     stats_u64(stats, "pool.device_carry_used_bytes");
    s->n_users_left_out = stats_u64(stats, "left_out.users");
    s->n_jobs_left_out = stats_u64(stats, "left_out.jobs");
}

struct top_snapshot *top_snapshot_new(struct json_object *stats)
{
    struct json_object *users = stats_at(stats, "users"), *jobs = stats_at(stats, "active");
    struct top_snapshot *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->n_users = length_of(users);
    s->n_jobs = length_of(jobs);
    s->users = calloc(s->n_users + 1, sizeof(*s->users));
    s->jobs = calloc(s->n_jobs + 1, sizeof(*s->jobs));
    if (!s->users || !s->jobs)
        return top_snapshot_free(s);
    read_totals(s, stats);
    read_engines(s, stats_at(stats, "engines"));
    s->read_rate = s->write_rate = NAN;
    for (size_t i = 0; i < s->n_users; i++)
        read_user(&s->users[i], json_object_array_get_idx(users, i));
    for (size_t i = 0; i < s->n_jobs; i++)
        read_job(&s->jobs[i], json_object_array_get_idx(jobs, i));
    return s;
}

struct top_snapshot *top_snapshot_free(struct top_snapshot *s)
{
    if (!s)
        return NULL;
    free(s->users);
    free(s->jobs);
    free(s);
    return NULL;
}

/* Rates and order ------------------------------------------------------------------------------ */

static double rate(uint64_t now, uint64_t before, double seconds)
{
    return now >= before ? (double)(now - before) / seconds : NAN;
}

static void user_rates(struct top_user *u, const struct top_snapshot *before, double seconds)
{
    for (size_t i = 0; i < before->n_users; i++) {
        const struct top_user *b = &before->users[i];
        if (b->uid != u->uid)
            continue;
        u->work_since_s = fmax(u->work_s - b->work_s, 0);
        u->read_rate = rate(u->read_bytes, b->read_bytes, seconds);
        u->write_rate = rate(u->write_bytes, b->write_bytes, seconds);
        return;
    }
}

/* Of those that were there before. */
static void user_shares(struct top_snapshot *now)
{
    double all_s = 0;
    for (size_t i = 0; i < now->n_users; i++)
        all_s += now->users[i].work_since_s;
    for (size_t i = 0; i < now->n_users && all_s > 0; i++)
        now->users[i].share = now->users[i].work_since_s / all_s;
}

/* A job that was not there, or waited, has begun since. */
static void job_rate(struct top_job *j, const struct top_snapshot *before, double seconds)
{
    uint64_t moved_before = 0;
    for (size_t i = 0; i < before->n_jobs; i++)
        if (before->jobs[i].id == j->id)
            moved_before = before->jobs[i].moved_bytes;
    if (strcmp(j->state, "running") == 0)
        j->rate = rate(j->moved_bytes, moved_before, seconds);
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static double load_of(const struct top_user *u)
{
    return (isnan(u->read_rate) ? 0 : u->read_rate) + (isnan(u->write_rate) ? 0 : u->write_rate);
}

static int compare_users(const void *a, const void *b)
{
    const struct top_user *x = a, *y = b;
    int r = compare_u64(y->n_running, x->n_running);
    if (r == 0)
        r = compare_u64(y->n_queued + y->n_settling, x->n_queued + x->n_settling);
    if (r == 0)
        r = (load_of(y) > load_of(x)) - (load_of(y) < load_of(x));
    if (r == 0)
        r = compare_u64(y->n_sessions, x->n_sessions);
    return r ? r : compare_u64(x->uid, y->uid);
}

static int rank_of(const struct top_job *j)
{
    return strcmp(j->state, "running") == 0  ? 0
           : strcmp(j->state, "queued") == 0 ? 2
           : strcmp(j->state, "paused") == 0 ? 3
                                             : 1;
}

static int compare_jobs(const void *a, const void *b)
{
    const struct top_job *x = a, *y = b;
    int r = rank_of(x) - rank_of(y);
    return r ? r : compare_u64(x->id, y->id);
}

void top_snapshot_compare(struct top_snapshot *now, const struct top_snapshot *before)
{
    double seconds = before ? now->uptime_s - before->uptime_s : 0;
    if (seconds > 0) {
        now->read_rate = rate(now->read_bytes, before->read_bytes, seconds);
        now->write_rate = rate(now->write_bytes, before->write_bytes, seconds);
        for (size_t i = 0; i < now->n_users; i++)
            user_rates(&now->users[i], before, seconds);
        user_shares(now);
        for (size_t i = 0; i < now->n_jobs; i++)
            job_rate(&now->jobs[i], before, seconds);
    }
    qsort(now->users, now->n_users, sizeof(*now->users), compare_users);
    qsort(now->jobs, now->n_jobs, sizeof(*now->jobs), compare_jobs);
}
