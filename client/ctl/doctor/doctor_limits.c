/* doctor: what this process may have, by its resource limits.
 *
 * A private daemon is started by the client and inherits the client's limits, so they are also the
 * daemon's; the service has its own. A job takes a descriptor for each file, and three more for
 * each array that only the client can read or write. Called by doctor.c.
 */
#include "client/ctl/doctor/doctor.h"

#include <sys/resource.h>

#define LOCKED_ENOUGH      ((rlim_t)64 << 20)
#define DESCRIPTORS_ENOUGH 1024 /* the default of most systems */
#define SPACE_ENOUGH       ((rlim_t)8 << 30)

static const char *size_text(rlim_t value, char buffer[32])
{
    if (value == RLIM_INFINITY)
        return "unlimited";
    return ctl_format_bytes((double)value, buffer);
}

void doctor_locked_memory(struct doctor *d)
{
    struct rlimit limit;
    char soft[32], hard[32];
    if (getrlimit(RLIMIT_MEMLOCK, &limit))
        return;
    const char *soft_text = size_text(limit.rlim_cur, soft);
    const char *hard_text = size_text(limit.rlim_max, hard);
    if (limit.rlim_cur >= LOCKED_ENOUGH) {
        doctor_say(d, FINDING_OK, NULL, "%s may be locked", soft_text);
        return;
    }
    doctor_say(d, FINDING_NOTE,
               limit.rlim_max >= LOCKED_ENOUGH
                   ? "ulimit -l 65536 before a private daemon is started"
                   : "raise memlock in /etc/security/limits.conf, or use the service, which has "
                     "limits of its own",
               "only %s may be locked (hard limit %s): the CPU engine locks none, a device's "
               "driver may have to, and a private daemon inherits this",
               soft_text, hard_text);
}

void doctor_descriptors(struct doctor *d)
{
    struct rlimit limit;
    char advice[160];
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    if (limit.rlim_cur >= DESCRIPTORS_ENOUGH) {
        doctor_say(d, FINDING_OK, NULL, "%llu descriptors", (unsigned long long)limit.rlim_cur);
        return;
    }
    if (limit.rlim_max >= DESCRIPTORS_ENOUGH)
        snprintf(advice, sizeof(advice), "ulimit -n %d", DESCRIPTORS_ENOUGH);
    else
        snprintf(advice, sizeof(advice),
                 "raise nofile in /etc/security/limits.conf to %d or more, then log in again",
                 DESCRIPTORS_ENOUGH);
    doctor_say(d, FINDING_WARNING, advice,
               "only %llu descriptors: jobs with many files fail, up to four are needed for each",
               (unsigned long long)limit.rlim_cur);
}

void doctor_address_space(struct doctor *d)
{
    struct rlimit limit;
    char text[32];
    if (getrlimit(RLIMIT_AS, &limit))
        return;
    if (limit.rlim_cur >= SPACE_ENOUGH)
        doctor_say(d, FINDING_OK, NULL, "%s", size_text(limit.rlim_cur, text));
    else
        doctor_say(d, FINDING_WARNING, "ulimit -v unlimited",
                   "%s of address space: larger arrays in shared memory cannot be mapped",
                   size_text(limit.rlim_cur, text));
}
