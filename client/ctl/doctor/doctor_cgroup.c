/* doctor: how much memory this process's control groups leave it.
 *
 * The least limit between the process's group and the root is the one that counts. Version 2 has
 * `memory.max` ("max": none), version 1 `memory.limit_in_bytes` (a number beyond all memory: none).
 * What a private daemon takes and what pages of files a job leaves in the cache both count there.
 * Called by doctor.c.
 */
#include "client/ctl/doctor/doctor.h"

#include <stdlib.h>
#include <string.h>

#define NONE      UINT64_MAX
#define NO_LIMIT  ((uint64_t)1 << 60) /* version 1 writes some number near 2^63 */
#define TOO_SMALL ((uint64_t)512 << 20)

/* The path of this process's group: in the one hierarchy of version 2, or in that of `memory`. */
static bool find_group(bool is_v2, char *ret_path, size_t n_bytes)
{
    char line[512];
    bool is_found = false;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && !is_found && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        const char *controllers = strchr(line, ':');
        const char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        is_found = is_v2 ? strncmp(line, "0::", 3) == 0 : strncmp(controllers, ":memory:", 8) == 0;
        snprintf(ret_path, n_bytes, "%s", path + 1);
    }
    if (file)
        fclose(file);
    return is_found;
}

static uint64_t read_limit(const char *mount, const char *group, const char *name)
{
    char path[640], text[32];
    snprintf(path, sizeof(path), "%s%s/%s", mount, group, name);
    if (!doctor_read(path, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
        return NONE;
    uint64_t value = strtoull(text, NULL, 10);
    return value >= NO_LIMIT ? NONE : value;
}

/* In a container the path may be one of the host's: the mount's own root is asked in any case. */
static uint64_t least_limit(const char *mount, char *group, const char *name)
{
    uint64_t least = NONE;
    for (;;) {
        uint64_t value = read_limit(mount, group, name);
        least = value < least ? value : least;
        char *slash = strrchr(group, '/');
        if (!slash || group[0] == '\0')
            return least;
        *slash = '\0';
    }
}

void doctor_cgroup(struct doctor *d)
{
    char group[512], text[32];
    uint64_t limit = NONE, other;
    if (find_group(true, group, sizeof(group)))
        limit = least_limit("/sys/fs/cgroup", group, "memory.max");
    if (find_group(false, group, sizeof(group)) &&
        (other = least_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes")) < limit)
        limit = other;
    if (limit == NONE)
        doctor_say(d, FINDING_OK, NULL, "no limit of memory");
    else if (limit < TOO_SMALL)
        doctor_say(d, FINDING_WARNING,
                   "a larger memory limit for the container, session or service, or a smaller "
                   "--pool",
                   "only %s of memory: a private daemon and its jobs share it with all else there",
                   ctl_format_bytes((double)limit, text));
    else
        doctor_say(d, FINDING_NOTE,
                   "keep in mind that a private daemon's pool and regions count, too",
                   "at most %s of memory", ctl_format_bytes((double)limit, text));
}
