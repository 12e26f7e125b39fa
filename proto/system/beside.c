/* Where our programs are.
 *
 * An installation may lie anywhere: below the prefix that was configured, in a Python environment,
 * in a folder that was copied. In all of them the same folders stand to each other in the same way,
 * so what is looked for is found from the file that is already there:
 *
 *     PREFIX/bin                  gpuarrayd, gpuarrayctl
 *     PREFIX/lib[/TRIPLET]        libgpuarrayd
 *     PREFIX/libexec/gpuarrayd    workers, gpuarrayd-scan
 *     BUILD/daemon/broker         gpuarrayd; its worker is in ../worker
 *     BUILD/client                libgpuarrayd; gpuarrayd-scan is in scan
 *
 * A library of a build folder finds no daemon: tests name theirs. Called by the daemon, the library
 * and the command.
 */
#include "proto/system/beside.h"
#include "proto/util.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const around[] = {
    "", /* everything in one folder */
    "../bin/",
    "../../bin/",
    "../libexec/gpuarrayd/",
    "../../libexec/gpuarrayd/",
    "../worker/",
    "../../client/scan/",
    "scan/",
};

bool beside_is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The folder of the file that this code is in, with the last '/'. To the linker a program has no
 * name, or the one that it was called by. */
static bool own_folder(char ret_path[PATH_MAX])
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1((const void *)around, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return false;
    if (!realpath(map->l_name[0] ? map->l_name : "/proc/self/exe", ret_path))
        return false;
    strrchr(ret_path, '/')[1] = '\0';
    return true;
}

bool beside_find(const char *name, const char *installed, char *ret_path, size_t n_bytes)
{
    char folder[PATH_MAX];
    if (own_folder(folder))
        for (size_t i = 0; i < ARRAY_LENGTH(around); i++) {
            int n = snprintf(ret_path, n_bytes, "%s%s%s", folder, around[i], name);
            if (n > 0 && (size_t)n < n_bytes && beside_is_program(ret_path))
                return true;
        }
    snprintf(ret_path, n_bytes, "%s", installed);
    return beside_is_program(ret_path);
}
