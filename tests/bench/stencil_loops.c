/* The limit of a stencil and of steps of it: plain loops in C over the same tiles, by two threads.
 *
 * stencil_loops IN OUT SIDE, where IN is a .npy file of float32 (SIDE, SIDE); for each line of its
 * input one round, whose seconds it prints: [1 step, N_STEPS steps] from file to file, then of the
 * first half of the rows in memory [a copy, 1 step, N_STEPS steps]. A tile is read with what its
 * steps need around it, all its steps are taken in two buffers, and its middle is written, as the
 * daemon does it (temporal blocking). Elements at the array's ends stay as they are: the loops have
 * no edges. No intrinsics: what the compiler makes of them.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_THREADS  2
#define N_STEPS    8
#define ROWS       64
#define COLUMNS    1024
#define NPY_HEADER 128
#define PITCH      (COLUMNS + 2 * N_STEPS)
#define N_BUFFER   ((ROWS + 2 * N_STEPS) * PITCH)

struct array {
    int fd; /* or in memory */
    float *memory;
};

struct work {
    struct array from, to;
    long n_rows, n_columns;
    int n_steps; /* 0: a copy */
    atomic_long next;
    atomic_int is_bad;
};

struct tile {
    long row, column, n_rows, n_columns;
};

static long most(long a, long b)
{
    return a > b ? a : b;
}

static long least(long a, long b)
{
    return a < b ? a : b;
}

static void row_step(long n, float *restrict to, const float *restrict u,
                     const float *restrict above, const float *restrict below)
{
    for (long i = 0; i < n; i++)
        to[i] = u[i] + 0.1f * (below[i] + above[i] + u[i + 1] + u[i - 1] - 4 * u[i]);
}

static int move(struct work *w, const struct tile *t, float *at, int is_read)
{
    const struct array *a = is_read ? &w->from : &w->to;
    for (long i = 0; i < t->n_rows; i++, at += PITCH) {
        long place = (t->row + i) * w->n_columns + t->column;
        size_t n_bytes = (size_t)t->n_columns * sizeof(*at);
        off_t offset = NPY_HEADER + place * (long)sizeof(*at);
        ssize_t n = (ssize_t)n_bytes;
        if (a->memory)
            memcpy(is_read ? at : a->memory + place, is_read ? a->memory + place : at, n_bytes);
        else
            n = is_read ? pread(a->fd, at, n_bytes, offset) : pwrite(a->fd, at, n_bytes, offset);
        if (n != (ssize_t)n_bytes)
            return -1;
    }
    return 0;
}

/* With so many elements around it, as far as there are any. */
static struct tile around(const struct work *w, const struct tile *t, long n)
{
    struct tile ret = {.row = most(t->row - n, 0), .column = most(t->column - n, 0)};
    ret.n_rows = least(t->row + t->n_rows + n, w->n_rows) - ret.row;
    ret.n_columns = least(t->column + t->n_columns + n, w->n_columns) - ret.column;
    return ret;
}

static int run_tile(struct work *w, const struct tile *t, float *now, float *next)
{
    struct tile all = around(w, t, w->n_steps);
    float *own;
    if (move(w, &all, now, 1))
        return -1;
    memcpy(next, now, (size_t)(all.n_rows * PITCH) * sizeof(*now));
    for (int left = w->n_steps; left-- > 0;) {
        struct tile part = around(w, t, left);
        long first = most(part.column, 1),
             end = least(part.column + part.n_columns, w->n_columns - 1);
        for (long i = most(part.row, 1); i < least(part.row + part.n_rows, w->n_rows - 1); i++) {
            long at = (i - all.row) * PITCH + first - all.column;
            row_step(end - first, next + at, now + at, now + at - PITCH, now + at + PITCH);
        }
        float *taken = now;
        now = next;
        next = taken;
    }
    own = now + (t->row - all.row) * PITCH + t->column - all.column;
    return move(w, t, own, 0);
}

/* Rows where they lie. */
static void run_rows(struct work *w, const struct tile *t)
{
    for (long i = t->row; i < t->row + t->n_rows; i++) {
        const float *u = w->from.memory + i * w->n_columns;
        float *to = w->to.memory + i * w->n_columns;
        if (w->n_steps == 0 || i == 0 || i == w->n_rows - 1)
            memcpy(to, u, (size_t)w->n_columns * sizeof(*u));
        else
            row_step(w->n_columns - 2, to + 1, u + 1, u + 1 - w->n_columns, u + 1 + w->n_columns);
    }
}

static void *run(void *userdata)
{
    struct work *w = userdata;
    int is_whole = w->from.memory && w->n_steps < 2;
    long n_rows = is_whole ? ROWS / 4 : ROWS, n_columns = is_whole ? w->n_columns : COLUMNS;
    long n_across = (w->n_columns + n_columns - 1) / n_columns;
    long n_tiles = (w->n_rows + n_rows - 1) / n_rows * n_across;
    float *buffers = aligned_alloc(64, 2 * N_BUFFER * sizeof(*buffers));
    if (!buffers)
        w->is_bad = 1;
    for (long i; buffers && (i = w->next++) < n_tiles;) {
        struct tile t = {.row = i / n_across * n_rows, .column = i % n_across * n_columns};
        t.n_rows = least(n_rows, w->n_rows - t.row);
        t.n_columns = least(n_columns, w->n_columns - t.column);
        if (is_whole)
            run_rows(w, &t);
        else if (run_tile(w, &t, buffers, buffers + N_BUFFER))
            w->is_bad = 1;
    }
    free(buffers);
    return NULL;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double seconds(struct array from, struct array to, long n_rows, long n_columns, int n_steps)
{
    struct work w = {
        .from = from, .to = to, .n_rows = n_rows, .n_columns = n_columns, .n_steps = n_steps};
    pthread_t threads[N_THREADS];
    double began = now();
    for (int i = 0; i < N_THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, &w))
            exit(1);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    if (w.is_bad)
        exit(1);
    return now() - began;
}

int main(int argc, char **argv)
{
    long side = argc == 4 ? strtol(argv[3], NULL, 10) : 0, half = side / 2;
    if (side < 4) {
        fprintf(stderr, "usage: stencil_loops IN OUT SIDE\n");
        return 2;
    }
    struct array file = {.fd = open(argv[1], O_RDONLY | O_CLOEXEC)}, memory, out;
    size_t n_bytes = (size_t)half * (size_t)side * sizeof(float);
    memory.memory = malloc(n_bytes);
    out.memory = malloc(n_bytes);
    if (!memory.memory || !out.memory || file.fd < 0 ||
        pread(file.fd, memory.memory, n_bytes, NPY_HEADER) != (ssize_t)n_bytes)
        return 1;
    memset(out.memory, 1, n_bytes);
    puts("ready");
    fflush(stdout);
    while (getchar() == '\n') {
        double took[5];
        for (int i = 0; i < 2; i++) { /* a new file each time, as the daemon's */
            struct array to = {.fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
            double began = now();
            if (to.fd < 0 || posix_fallocate(to.fd, 0, NPY_HEADER + side * side * 4))
                return 1;
            took[i] = now() - began + seconds(file, to, side, side, i == 0 ? 1 : N_STEPS);
            close(to.fd);
        }
        for (int i = 0; i < 3; i++)
            took[2 + i] = seconds(memory, out, half, side, i < 2 ? i : N_STEPS);
        printf("[%f, %f, %f, %f, %f]\n", took[0], took[1], took[2], took[3], took[4]);
        fflush(stdout);
    }
    return 0;
}
