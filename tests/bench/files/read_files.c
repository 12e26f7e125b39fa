/* The limit of many files: each opened, read once and closed, by several threads in turns.
 *
 * read_files FOLDER N_FILES N_THREADS: x0.npy, x1.npy, ... of at most 1 MiB; prints the seconds.
 * The threads' buffers are touched before the time begins.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES (1 << 20)
#define MAX_THREADS  64

struct reader {
    pthread_t thread;
    const char *folder;
    long first, n_files, step;
    char *buffer;
    int is_bad;
};

static void *read_all(void *userdata)
{
    struct reader *reader = userdata;
    char path[4096];
    for (long i = reader->first; i < reader->n_files; i += reader->step) {
        snprintf(path, sizeof(path), "%s/x%ld.npy", reader->folder, i);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, reader->buffer, BUFFER_BYTES) <= 0)
            reader->is_bad = 1;
        if (fd >= 0)
            close(fd);
    }
    return NULL;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct reader readers[MAX_THREADS] = {{.is_bad = 0}};
    long n_threads = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    int is_bad = 0;
    if (n_threads < 1 || n_threads > MAX_THREADS) {
        fprintf(stderr, "usage: read_files FOLDER N_FILES N_THREADS\n");
        return 2;
    }
    for (long i = 0; i < n_threads; i++) {
        readers[i] = (struct reader){.folder = argv[1],
                                     .first = i,
                                     .n_files = strtol(argv[2], NULL, 10),
                                     .step = n_threads,
                                     .buffer = malloc(BUFFER_BYTES)};
        if (!readers[i].buffer)
            return 1;
        memset(readers[i].buffer, 1, BUFFER_BYTES);
    }
    double began = now();
    for (long i = 0; i < n_threads; i++)
        if (pthread_create(&readers[i].thread, NULL, read_all, &readers[i]))
            return 1;
    for (long i = 0; i < n_threads; i++) {
        pthread_join(readers[i].thread, NULL);
        is_bad |= readers[i].is_bad;
        free(readers[i].buffer);
    }
    printf("%.9f\n", now() - began);
    return is_bad;
}
