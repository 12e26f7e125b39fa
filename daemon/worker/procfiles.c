/* Files of /proc that are opened once and read again and again: a worker that serves opens no file
 * any more (daemon/confine.c).
 *
 * Each read at offset 0 makes the text anew. Threads may read the same file at once.
 *
 * Called by program.c; asked by stats.c and writing.c.
 */
#include "daemon/worker/procfiles.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_SIZE 4096

static struct {
    pthread_once_t once;
    DIR *descriptors;
    int rollup_fd, meminfo_fd;
} files = {.once = PTHREAD_ONCE_INIT, .rollup_fd = -1, .meminfo_fd = -1};

static void open_all(void)
{
    files.descriptors = opendir("/proc/self/fd");
    files.rollup_fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    files.meminfo_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
}

void procfiles_open(void)
{
    pthread_once(&files.once, open_all);
}

unsigned procfiles_n_descriptors(void)
{
    procfiles_open();
    unsigned n = 0, n_own = 1u + (files.rollup_fd >= 0) + (files.meminfo_fd >= 0);
    if (!files.descriptors)
        return 0;
    rewinddir(files.descriptors);
    for (const struct dirent *e = readdir(files.descriptors); e; e = readdir(files.descriptors))
        n += isdigit((unsigned char)e->d_name[0]) != 0;
    return n > n_own ? n - n_own : 0;
}

/* The value of a line "key: N kB". */
static uint64_t bytes_of(int fd, const char *key, uint64_t missing)
{
    char text[TEXT_SIZE];
    unsigned long long n_kib;
    ssize_t n = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;
    if (n <= 0)
        return missing;
    text[n] = '\0';
    const char *line = strstr(text, key);
    return line && sscanf(line + strlen(key), ": %llu", &n_kib) == 1 ? n_kib * 1024 : missing;
}

uint64_t procfiles_private_bytes(void)
{
    procfiles_open();
    return bytes_of(files.rollup_fd, "\nAnonymous", 0);
}

uint64_t procfiles_available_bytes(void)
{
    procfiles_open();
    uint64_t n = bytes_of(files.meminfo_fd, "\nMemAvailable", 0);
    return n > 0 ? n : UINT64_MAX;
}
