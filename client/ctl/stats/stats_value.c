/* Reading the map of server.stats, and the words for people that users and times get.
 *
 * A daemon of another age may lack a number, or have more: what is absent is 0 and what is unknown
 * is passed over, so that old and new can look at each other.
 */
#include "client/ctl/stats/stats.h"

#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

struct json_object *stats_at(struct json_object *map, const char *path)
{
    char key[64];
    while (map && *path) {
        size_t n = strcspn(path, ".");
        struct json_object *member = NULL;
        snprintf(key, sizeof(key), "%.*s", (int)n, path);
        if (!json_object_is_type(map, json_type_object) ||
            !json_object_object_get_ex(map, key, &member))
            return NULL;
        map = member;
        path += n + (path[n] == '.');
    }
    return map;
}

uint64_t stats_u64(struct json_object *map, const char *path)
{
    struct json_object *value = stats_at(map, path);
    return json_object_is_type(value, json_type_int) ? json_object_get_uint64(value) : 0;
}

double stats_f64(struct json_object *map, const char *path)
{
    struct json_object *value = stats_at(map, path);
    bool is_number =
        json_object_is_type(value, json_type_double) || json_object_is_type(value, json_type_int);
    return is_number ? json_object_get_double(value) : 0;
}

const char *stats_text(struct json_object *map, const char *path)
{
    struct json_object *value = stats_at(map, path);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

const char *stats_engine_state(struct json_object *engine)
{
    const char *state = stats_text(engine, "state");
    if (state[0])
        return state;
    return json_object_get_boolean(stats_at(engine, "ready")) ? "ready" : "not ready";
}

char *stats_user_name(uint32_t uid, char buffer[STATS_USER_SIZE])
{
    struct passwd entry, *found = NULL;
    char strings[4096];
    if (getpwuid_r(uid, &entry, strings, sizeof(strings), &found) == 0 && found)
        snprintf(buffer, STATS_USER_SIZE, "%s", found->pw_name);
    else
        snprintf(buffer, STATS_USER_SIZE, "%u", uid);
    return buffer;
}

bool stats_find_user(const char *name, uint32_t *ret_uid)
{
    struct passwd entry, *found = NULL;
    char strings[4096], *end;
    if (getpwnam_r(name, &entry, strings, sizeof(strings), &found) == 0 && found) {
        *ret_uid = found->pw_uid;
        return true;
    }
    errno = 0;
    unsigned long number = strtoul(name, &end, 10);
    if (name[0] < '0' || name[0] > '9' || *end || errno || number >= UINT32_MAX)
        return false;
    *ret_uid = (uint32_t)number;
    return true;
}

char *stats_format_time(double seconds, char buffer[16])
{
    uint64_t s = seconds > 0 ? (uint64_t)seconds : 0;
    if (!(seconds < 1e10))
        snprintf(buffer, 16, "-");
    else if (seconds < 99.95)
        snprintf(buffer, 16, "%.1f s", seconds > 0 ? seconds : 0.0);
    else if (s < 6000)
        snprintf(buffer, 16, "%u:%02u m", (unsigned)(s / 60), (unsigned)(s % 60));
    else if (s < 360000)
        snprintf(buffer, 16, "%u:%02u h", (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
    else
        snprintf(buffer, 16, "%u d", (unsigned)(s / 86400));
    return buffer;
}
