/* Files of /proc that are opened once and read again and again: a worker that serves opens no file
 * any more (daemon/confine.c).
 *
 * Each read at offset 0 makes the text anew. Threads may read the same file at once.
 *
 * Called by program.c; asked by stats.c and writing.c.
 */
#include "daemon/worker/procfiles.h"
#include "proto/private_memory.h"

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
    int statm_fd, meminfo_fd;
} files = {.once = PTHREAD_ONCE_INIT, .statm_fd = -1, .meminfo_fd = -1};

static void open_all(void)
{
    files.descriptors = opendir("/proc/self/fd");
    files.statm_fd = open(PRIVATE_MEMORY_FILE, O_RDONLY | O_CLOEXEC);
    files.meminfo_fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
}

void procfiles_open(void)
{
    pthread_once(&files.once, open_all);
}

unsigned procfiles_n_descriptors(void)
{
    procfiles_open();
    unsigned n = 0, n_own = 1u + (files.statm_fd >= 0) + (files.meminfo_fd >= 0);
    if (!files.descriptors)
        return 0;
    rewinddir(files.descriptors);
    for (const struct dirent *e = readdir(files.descriptors); e; e = readdir(files.descriptors))
        n += isdigit((unsigned char)e->d_name[0]) != 0;
    return n > n_own ? n - n_own : 0;
}

uint64_t procfiles_private_bytes(void)
{
    procfiles_open();
    return private_memory_bytes(files.statm_fd);
}

uint64_t procfiles_available_bytes(void)
{
    char text[TEXT_SIZE];
    unsigned long long n_kib = 0;
    procfiles_open();
    ssize_t n = files.meminfo_fd >= 0 ? pread(files.meminfo_fd, text, sizeof(text) - 1, 0) : -1;
    if (n <= 0)
        return UINT64_MAX;
    text[n] = '\0';
    const char *line = strstr(text, "\nMemAvailable: ");
    return line && sscanf(line, " MemAvailable: %llu", &n_kib) == 1 && n_kib > 0 ? n_kib * 1024
                                                                                 : UINT64_MAX;
}
