/* The map of server.users as text.
 *
 *     USER       WEIGHT  SESS  RUN QUEUE SLOTS  CARRIES  ATTACHED  DESCRIPTORS
 *     alice           4     2    1     5     3   4.2 MB    1.2 GB           12
 *
 * What the daemon does not tell of a user is a dash. Limits are a table of their own: a line for
 * each thing that is held or may be, with the user's limit and the share of what others leave,
 * which is what counts at this moment.
 */
#include "client/ctl/stats/stats.h"

#include <inttypes.h>
#include <string.h>

static size_t length_of(struct json_object *list)
{
    return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

static const char *number_or_dash(struct json_object *user, const char *path, char buffer[24])
{
    if (stats_at(user, path))
        snprintf(buffer, 24, "%" PRIu64, stats_u64(user, path));
    else
        snprintf(buffer, 24, "-");
    return buffer;
}

static void print_user(FILE *file, struct json_object *user)
{
    char name[STATS_USER_SIZE], slots[24], descriptors[24], carries[32] = "-", regions[32];
    stats_user_name((uint32_t)stats_u64(user, "uid"), name);
    if (stats_at(user, "carry_bytes"))
        ctl_format_bytes(stats_f64(user, "carry_bytes"), carries);
    fprintf(file,
            "%-14.14s %6" PRIu64 "%c %4" PRIu64 " %4" PRIu64 " %5" PRIu64 " %5s %9s %9s %11s\n",
            name, stats_u64(user, "weight"),
            json_object_get_boolean(stats_at(user, "weight_said")) ? '*' : ' ',
            stats_u64(user, "sessions"),
            stats_u64(user, "jobs_running") + stats_u64(user, "jobs_settling"),
            stats_u64(user, "jobs_queued"), number_or_dash(user, "slots", slots), carries,
            ctl_format_bytes(stats_f64(user, "region_bytes"), regions),
            number_or_dash(user, "holds.descriptors.use", descriptors));
}

void users_write_table(FILE *file, struct json_object *answer)
{
    struct json_object *users = stats_at(answer, "users");
    bool has_said = false;
    fprintf(file, "%-14s %6s  %4s %4s %5s %5s %9s %9s %11s\n", "USER", "WEIGHT", "SESS", "RUN",
            "QUEUE", "SLOTS", "CARRIES", "ATTACHED", "DESCRIPTORS");
    for (size_t i = 0; i < length_of(users); i++) {
        struct json_object *user = json_object_array_get_idx(users, i);
        print_user(file, user);
        has_said |= json_object_get_boolean(stats_at(user, "weight_said"));
    }
    if (stats_u64(answer, "left_out") > 0)
        fprintf(file, "and %" PRIu64 " more\n", stats_u64(answer, "left_out"));
    if (has_said)
        fputs("* said by an admin, until the daemon ends or reads its settings again\n", file);
}

/* What no setting limits is a dash. */
static const char *amount(const char *key, uint64_t n, char buffer[32])
{
    const char *end = strstr(key, "_bytes");
    if (n > UINT64_MAX / 4)
        snprintf(buffer, 32, "-");
    else if (end)
        ctl_format_bytes((double)n, buffer);
    else if (strstr(key, "_ns"))
        snprintf(buffer, 32, "%.3f s", (double)n / 1e9);
    else
        snprintf(buffer, 32, "%" PRIu64, n);
    return buffer;
}

static void print_limits(FILE *file, const char *name, struct json_object *holds)
{
    json_object_object_foreach(holds, key, value)
    {
        char use[32], limit[32], share[32];
        fprintf(file, "%-14.14s %-14s %11s %11s %11s\n", name, key,
                amount(key, stats_u64(value, "use"), use),
                amount(key, stats_u64(value, "limit"), limit),
                amount(key, stats_u64(value, "share"), share));
    }
}

void users_write_limits(FILE *file, struct json_object *answer)
{
    struct json_object *users = stats_at(answer, "users");
    fprintf(file, "%-14s %-14s %11s %11s %11s\n", "USER", "OF WHAT", "HELD", "LIMIT", "SHARE NOW");
    for (size_t i = 0; i < length_of(users); i++) {
        struct json_object *user = json_object_array_get_idx(users, i);
        struct json_object *holds = stats_at(user, "holds");
        char name[STATS_USER_SIZE];
        if (json_object_is_type(holds, json_type_object))
            print_limits(file, stats_user_name((uint32_t)stats_u64(user, "uid"), name), holds);
    }
}
