/* Where the registry of detached jobs is.
 *
 *     $XDG_RUNTIME_DIR/gpuarrayd/jobs    where the variable names a directory of the user's
 *     /run/user/UID/gpuarrayd/jobs       the same place for a shell that lacks the variable
 *     /tmp/gpuarrayd-UID/jobs            where there is no runtime directory
 *
 * It is written in the first that can be had and looked for in all, so that another shell of the
 * same user finds it whatever its environment. The directory above `jobs` is the one that a private
 * daemon uses. In /tmp anybody may have put something there first: each directory must be the
 * user's and closed to others, and no symbolic link.
 *
 * Called by agents.c.
 */
#include "client/ctl/agent/agents.h"
#include "proto/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_own_directory(const char *path, mode_t forbidden)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & forbidden) == 0;
}

/* The private directory of the n-th place. */
static bool private_directory(unsigned n, char *ret_path)
{
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    char standard[64];
    int length = 0;
    snprintf(standard, sizeof(standard), "/run/user/%u", geteuid());
    if (n == 0 && runtime && runtime[0] == '/' && is_own_directory(runtime, 0022))
        length = snprintf(ret_path, AGENTS_PATH_SIZE, "%s/gpuarrayd", runtime);
    else if (n == 1 && is_own_directory(standard, 0022) &&
             !(runtime && strcmp(runtime, standard) == 0))
        length = snprintf(ret_path, AGENTS_PATH_SIZE, "%s/gpuarrayd", standard);
    else if (n == 2)
        length = snprintf(ret_path, AGENTS_PATH_SIZE, "/tmp/gpuarrayd-%u", geteuid());
    return length > 0 && (size_t)length + sizeof("/jobs") <= AGENTS_PATH_SIZE;
}

bool agents_folder(unsigned n, bool create, char ret_path[AGENTS_PATH_SIZE])
{
    if (!private_directory(n, ret_path))
        return false;
    for (int level = 0; level < 2; level++) {
        if (level == 1)
            strcat(ret_path, "/jobs"); /* private_directory() left room */
        if (create && mkdir(ret_path, 0700) && errno != EEXIST)
            return false;
        if (!is_own_directory(ret_path, 0077))
            return false;
    }
    return true;
}
