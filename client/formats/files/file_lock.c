/* Holders of locks, from /proc/locks.
 *
 *     1: FLOCK  ADVISORY  WRITE 14780 fe:00:11060530 0 EOF
 *     5: -> FLOCK  ADVISORY  WRITE 13196 fe:00:10952712 0 EOF        waits, and holds nothing
 *
 * The system lists the processes of this pid namespace only, and names devices by the number of the
 * file system itself, which on some (btrfs) is not what stat() says: then nobody is known. A
 * process may have handed the locked descriptor on, or be gone: the name is a help, not a proof.
 *
 * Called by hdf5_file.c and journal.c for messages.
 */
#include "client/formats/files/file_lock.h"
#include "proto/util.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

/* The process of a line that says that it holds such a lock on this file; else 0. */
static int holder_of_line(const char *line, const struct stat *st, bool is_exclusive)
{
    char kind[16], access[16];
    unsigned device_major, device_minor;
    unsigned long long inode;
    int pid;
    if (sscanf(line, "%*d: %15s %*s %15s %d %x:%x:%llu", kind, access, &pid, &device_major,
               &device_minor, &inode) != 6 ||
        strcmp(kind, "FLOCK") != 0 || (is_exclusive && strcmp(access, "WRITE") != 0))
        return 0;
    bool is_this = device_major == major(st->st_dev) && device_minor == minor(st->st_dev) &&
                   inode == st->st_ino;
    return is_this && pid > 0 && pid != getpid() ? pid : 0;
}

static void read_name(int pid, char *ret_name, size_t n_bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    bool is_read = file && fgets(ret_name, (int)n_bytes, file);
    if (file)
        fclose(file);
    if (!is_read)
        snprintf(ret_name, n_bytes, "a program");
    ret_name[strcspn(ret_name, "\n")] = '\0';
}

bool file_lock_holder(const struct stat *st, bool is_exclusive, char *buffer, size_t n_bytes)
{
    char line[256], name[32];
    int pid = 0;
    *buffer = '\0';
    FILE *file = fopen("/proc/locks", "re");
    while (file && pid == 0 && fgets(line, sizeof(line), file))
        pid = holder_of_line(line, st, is_exclusive);
    if (file)
        fclose(file);
    if (pid == 0)
        return false;
    read_name(pid, name, sizeof(name));
    snprintf(buffer, n_bytes, "%s (process %d)", name, pid);
    return true;
}
