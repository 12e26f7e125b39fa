/* doctor: the file systems where arrays are.
 *
 * The daemon reads and writes files of local file systems by itself; others are read for it by the
 * client, through a provider. Which it is, the list in proto/system/file_systems.c decides for
 * both. The type is looked up by the mount's id, as the daemon does; only what is local is asked
 * for its free space, since the others could keep us waiting. Called by doctor.c.
 */
#include "client/ctl/doctor/doctor.h"

#include "proto/system/file_systems.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LITTLE_SPACE ((uint64_t)1 << 30)

/* A line of mountinfo: "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw". */
static bool find_type(uint64_t mount_id, char *ret_type, size_t n_bytes)
{
    char *line = NULL;
    size_t capacity = 0;
    bool is_found = false;
    FILE *file = fopen("/proc/self/mountinfo", "re");
    while (file && !is_found && getline(&line, &capacity, file) > 0) {
        const char *dash = strstr(line, " - ");
        is_found = dash && strtoull(line, NULL, 10) == mount_id;
        if (is_found)
            snprintf(ret_type, n_bytes, "%.*s", (int)strcspn(dash + 3, " \n"), dash + 3);
    }
    free(line);
    if (file)
        fclose(file);
    return is_found;
}

static void check_space(struct doctor *d, const char *what, const char *path, const char *type)
{
    struct statvfs st;
    char space[32];
    if (statvfs(path, &st)) {
        doctor_say(d, FINDING_WARNING, "'dmesg' says more when a disk is at fault",
                   "%s: %s, which does not say what is free: %s", what, type, strerror(errno));
        return;
    }
    uint64_t n_free = (uint64_t)st.f_bavail * st.f_frsize;
    ctl_format_bytes((double)n_free, space);
    if (st.f_flag & ST_RDONLY)
        doctor_say(d, FINDING_NOTE, "-o to another file system",
                   "%s: %s, mounted read-only: no results go there", what, type);
    else if (n_free < LITTLE_SPACE)
        doctor_say(d, FINDING_WARNING, "-o to another file system, or make room",
                   "%s: %s, only %s free", what, type, space);
    else
        doctor_say(d, FINDING_OK, NULL, "%s: %s, %s free", what, type, space);
}

static void check_type(struct doctor *d, const char *what, const char *path, const char *type)
{
    switch (file_system_classify(type)) {
    case FILE_SYSTEM_LOCAL: check_space(d, what, path, type); break;
    case FILE_SYSTEM_PSEUDO:
        doctor_say(d, FINDING_WARNING, "copy the data to a file elsewhere",
                   "%s: %s, files that the kernel makes up: they are refused", what, type);
        break;
    case FILE_SYSTEM_OTHER:
        doctor_say(d, FINDING_NOTE,
                   "nothing: it happens by itself; a copy on a local file system is faster",
                   "%s: %s, needs a provider: the client reads and writes for the daemon", what,
                   type);
        break;
    }
}

/* False, with errno: there is no such path, or it is closed to us. */
static bool type_of(const char *path, char *ret_type, size_t n_bytes)
{
    struct statx st;
    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_MNT_ID, &st))
        return false;
    if (!(st.stx_mask & STATX_MNT_ID) || !find_type(st.stx_mnt_id, ret_type, n_bytes))
        snprintf(ret_type, n_bytes, "unknown");
    return true;
}

bool doctor_is_local(const char *path)
{
    char type[32];
    return type_of(path, type, sizeof(type)) && file_system_classify(type) == FILE_SYSTEM_LOCAL;
}

static void check_path(struct doctor *d, const char *what, const char *path)
{
    char type[32];
    if (!type_of(path, type, sizeof(type))) {
        doctor_say(d, errno == ENOENT ? FINDING_PROBLEM : FINDING_WARNING,
                   errno == ENOENT ? "check the spelling" : "'ls -ld' shows who may go there",
                   "%s: %s", what, strerror(errno));
        return;
    }
    check_type(d, what, path, type);
}

/* A place from the environment, or its default; once, where two are the same. */
static void check_place(struct doctor *d, const char *variable, const char *otherwise)
{
    char what[PATH_MAX + 32];
    const char *path = getenv(variable);
    path = path && path[0] ? path : otherwise;
    if (!path)
        return;
    snprintf(what, sizeof(what), "%s (%s)", path, variable);
    check_path(d, what, path);
}

void doctor_files(struct doctor *d)
{
    char here[PATH_MAX], what[PATH_MAX + 32];
    for (size_t i = 0; i < d->n_paths; i++)
        check_path(d, d->paths[i], d->paths[i]);
    if (getcwd(here, sizeof(here))) {
        snprintf(what, sizeof(what), "%s (this folder)", here);
        check_path(d, what, ".");
    }
    check_place(d, "HOME", NULL);
    check_place(d, "TMPDIR", "/tmp");
}
