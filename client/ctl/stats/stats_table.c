/* The numbers of server.stats for a reader, within 80 columns. Decimal units; what is zero in a
 * list of words is left out there. Called by stats.c.
 */
#include "client/ctl/stats/stats.h"

#include <inttypes.h>
#include <string.h>

#define WIDTH 80

static void print_engine(FILE *file, struct json_object *engine)
{
    fprintf(file, "engine %s%s%s: %s, %" PRIu64 " threads", stats_text(engine, "name"),
            stats_text(engine, "level")[0] ? ", " : "", stats_text(engine, "level"),
            stats_engine_state(engine), stats_u64(engine, "threads"));
    if (stats_at(engine, "threads_busy"))
        fprintf(file, ", %" PRIu64 " busy", stats_u64(engine, "threads_busy"));
    fprintf(file, "; %" PRIu64 " restarts, %" PRIu64 " failed starts\n",
            stats_u64(engine, "restarts"), stats_u64(engine, "failed_starts"));
}

/* "ended      ok 110   cancelled 3", in as many lines as it takes. */
static void print_words(FILE *file, const char *title, struct json_object *map)
{
    int column = fprintf(file, "%-10s", title);
    if (!map || json_object_object_length(map) == 0) {
        fputs(" none\n", file);
        return;
    }
    bool is_first = true;
    json_object_object_foreach(map, word, value)
    {
        char text[96];
        int n = snprintf(text, sizeof(text), "%s %" PRIu64, word, json_object_get_uint64(value));
        if (!is_first && column + 3 + n > WIDTH)
            column = fprintf(file, "\n%-11s", "") - 1 - 3;
        else
            fputs(is_first ? " " : "   ", file);
        column += n + 3;
        is_first = false;
        fputs(text, file);
    }
    fputc('\n', file);
}

static void print_jobs(FILE *file, struct json_object *stats)
{
    fprintf(file,
            "jobs       running %" PRIu64 "   queued %" PRIu64 "   settling %" PRIu64
            "   submitted %" PRIu64 "   requeued %" PRIu64 "\n",
            stats_u64(stats, "jobs.running"), stats_u64(stats, "jobs.queued"),
            stats_u64(stats, "jobs.settling"), stats_u64(stats, "jobs.submitted"),
            stats_u64(stats, "jobs.requeued"));
    print_words(file, "ended", stats_at(stats, "jobs.ended"));
    print_words(file, "refused", stats_at(stats, "refusals"));
}

static void print_counts(FILE *file, struct json_object *stats)
{
    char a[32], b[32], c[32], d[32];
    fprintf(file, "sessions   %" PRIu64 " open, %" PRIu64 " so far\n",
            stats_u64(stats, "sessions.open"), stats_u64(stats, "sessions.total"));
    fprintf(file, "regions    %" PRIu64 " attached (%s), %" PRIu64 " so far\n",
            stats_u64(stats, "regions.attached"),
            ctl_format_bytes(stats_f64(stats, "regions.bytes"), a),
            stats_u64(stats, "regions.total"));
    if (stats_u64(stats, "scans.started") > 0)
        fprintf(file,
                "scans      %" PRIu64 " with %" PRIu64 " readers, %" PRIu64 " so far (%" PRIu64
                " lost); chunks decoded %" PRIu64 ", taken %" PRIu64 "\n",
                stats_u64(stats, "scans.running"), stats_u64(stats, "scans.readers"),
                stats_u64(stats, "scans.started"), stats_u64(stats, "scans.lost"),
                stats_u64(stats, "scans.decoded"), stats_u64(stats, "scans.taken"));
    fprintf(file, "pool       %s", ctl_format_bytes(stats_f64(stats, "pool.bytes"), b));
    if (stats_at(stats, "pool.slots"))
        fprintf(file, ", %" PRIu64 " of %" PRIu64 " slots lent",
                stats_u64(stats, "pool.slots_lent"), stats_u64(stats, "pool.slots"));
    fprintf(file, ", %" PRIu64 " carries (%s, each at most %s)\n", stats_u64(stats, "pool.carries"),
            ctl_format_bytes(stats_f64(stats, "pool.carry_used_bytes") +
                                 stats_f64(stats, "pool.device_carry_used_bytes"),
                             c),
            ctl_format_bytes(stats_f64(stats, "pool.carry_limit_bytes"), d));
    fprintf(file, "log        %" PRIu64 " lines dropped, %" PRIu64 " left out\n",
            stats_u64(stats, "log.dropped_lines"), stats_u64(stats, "log.left_out_lines"));
}

static void print_bytes(FILE *file, struct json_object *stats)
{
    struct json_object *read = stats_at(stats, "bytes.read");
    char a[32], b[32];
    if (!read)
        return;
    fprintf(file, "\n%-10s %12s %12s\n", "BYTES", "READ", "WRITTEN");
    json_object_object_foreach(read, path, value)
    {
        char key[80];
        snprintf(key, sizeof(key), "bytes.write.%s", path);
        fprintf(file, "%-10s %12s %12s\n", path, ctl_format_bytes(json_object_get_double(value), a),
                ctl_format_bytes(stats_f64(stats, key), b));
    }
    fprintf(file, "%-23s %12s\n", "past the page cache",
            ctl_format_bytes(stats_f64(stats, "bytes.around_cache"), a));
}

static void print_seconds(FILE *file, struct json_object *stats)
{
    struct json_object *seconds = stats_at(stats, "seconds");
    if (!seconds)
        return;
    fprintf(file, "\n%-11s %12s\n", "STAGE", "SECONDS");
    json_object_object_foreach(seconds, stage, value)
        fprintf(file, "%-11s %12.3f\n", stage, json_object_get_double(value));
}

static void print_user(FILE *file, struct json_object *user)
{
    char name[STATS_USER_SIZE], a[32], b[32], c[32], t[16];
    fprintf(file, "%-10.10s %6" PRIu64 " %8" PRIu64 " %7" PRIu64 " %6" PRIu64 " %9s %9s %9s %8s\n",
            stats_user_name((uint32_t)stats_u64(user, "uid"), name), stats_u64(user, "weight"),
            stats_u64(user, "sessions"), stats_u64(user, "jobs_running"),
            stats_u64(user, "jobs_queued"), ctl_format_bytes(stats_f64(user, "read_bytes"), a),
            ctl_format_bytes(stats_f64(user, "write_bytes"), b),
            ctl_format_bytes(stats_f64(user, "region_bytes"), c),
            stats_format_time(stats_f64(user, "waited_s"), t));
}

static void print_users(FILE *file, struct json_object *stats)
{
    struct json_object *users = stats_at(stats, "users");
    size_t n = json_object_is_type(users, json_type_array) ? json_object_array_length(users) : 0;
    fprintf(file, "\n%-10s %6s %8s %7s %6s %9s %9s %9s %8s\n", "USER", "WEIGHT", "SESSIONS",
            "RUNNING", "QUEUED", "READ", "WRITTEN", "REGIONS", "WAITED");
    for (size_t i = 0; i < n; i++)
        print_user(file, json_object_array_get_idx(users, i));
    if (stats_u64(stats, "left_out.users") > 0)
        fprintf(file, "and %" PRIu64 " more\n", stats_u64(stats, "left_out.users"));
}

void stats_write_table(FILE *file, struct json_object *stats)
{
    struct json_object *engines = stats_at(stats, "engines");
    size_t n =
        json_object_is_type(engines, json_type_array) ? json_object_array_length(engines) : 0;
    char up[16];
    fprintf(file, "gpuarrayd %s, up %s\n", stats_text(stats, "version"),
            stats_format_time(stats_f64(stats, "uptime_s"), up));
    for (size_t i = 0; i < n; i++)
        print_engine(file, json_object_array_get_idx(engines, i));
    fputc('\n', file);
    print_jobs(file, stats);
    print_counts(file, stats);
    print_bytes(file, stats);
    print_seconds(file, stats);
    print_users(file, stats);
}
