#include "daemon/worker/io/boxio.h"
#include "daemon/worker/io/gaps.h"
#include "tests/unit/daemon/worker/harness.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define FILE_BYTES (3 * 1024 * 1024)

static char bounce[BOXIO_BOUNCE_BYTES];
static const struct port_io blocking = {.may_block = true, .bounce = bounce};

static unsigned char *pattern(size_t n_bytes)
{
    unsigned char *bytes = malloc(n_bytes);
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < n_bytes; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = (unsigned char)state;
    }
    return bytes;
}

/* Every element of the box, one by one. */
static void check_box(const struct boxio *b, const unsigned char *file, const unsigned char *memory)
{
    int64_t index[ARRAY_MAX_NDIM] = {0};
    for (;;) {
        int64_t from = b->offset, to = 0;
        for (int i = 0; i < b->box.n; i++) {
            from += index[i] * b->box.axes[i].strides[BOXIO_FILE];
            to += index[i] * b->box.axes[i].strides[BOXIO_MEMORY];
        }
        cr_assert(memcmp(file + from, memory + to, (size_t)b->item_bytes) == 0,
                  "element at file byte %lld", (long long)from);
        int i = 0;
        for (; i < b->box.n && ++index[i] == b->box.axes[i].count; i++)
            index[i] = 0;
        if (i == b->box.n)
            return;
    }
}

/* Axes slowest first: counts and file strides; memory dense. */
static struct boxio box_of(int fd, int64_t item, int n, const int64_t *count, const int64_t *stride)
{
    struct boxio b = {.fd = fd, .name = "a", .offset = 24, .item_bytes = item};
    int64_t memory = item;
    for (int i = n - 1; i >= 0; i--) {
        box_add(&b.box, count[i], stride[i], memory);
        memory *= count[i];
    }
    return b;
}

static const struct {
    int64_t item;
    int n;
    int64_t count[4], stride[4];
} boxes[] = {
    {8, 0, {0}, {0}},
    {8, 1, {1000}, {8}},                     /* a run */
    {8, 1, {1000}, {16}},                    /* every second */
    {4, 1, {100}, {5000}},                   /* far apart */
    {4, 2, {100, 200}, {800, 4}},            /* rows that touch */
    {4, 2, {100, 200}, {1024, 4}},           /* rows near each other */
    {2, 2, {50, 3000}, {20000, 2}},          /* rows far apart */
    {1, 2, {7, 60000}, {60001, 1}},          /* long runs, tiny gaps */
    {4, 3, {3, 50, 100}, {700000, 2000, 8}}, /* planes of strided rows */
    {8, 3, {2, 3, 4}, {96, 32, 8}},          /* all dense */
    {8, 2, {300, 5}, {8, 8}},                /* windows that overlap */
    {1, 2, {1, 100000}, {1, 3}},             /* more than one bounce buffer */
    {16, 4, {2, 5, 300, 2}, {1000000, 100000, 96, 16}},
    {3, 2, {1000, 2}, {9, 3}}, /* an odd item */
};

Test(boxio, reads_every_layout_to_its_place)
{
    unsigned char *file = pattern(FILE_BYTES), *memory = malloc(FILE_BYTES);
    int fd = make_file(file, FILE_BYTES);
    for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
        struct boxio b = box_of(fd, boxes[i].item, boxes[i].n, boxes[i].count, boxes[i].stride);
        struct gad_error error;
        memset(memory, 0xee, FILE_BYTES);
        cr_assert(eq(int, boxio_read(&b, memory, &blocking, &error), 0), "box %zu", i);
        check_box(&b, file, memory);
    }
    close(fd);
    free(file);
    free(memory);
}

/* Every layout into a file of its own; nothing but its elements may change. */
static void write_every_layout(struct gaps *gaps)
{
    unsigned char *before = pattern(FILE_BYTES), *after = malloc(FILE_BYTES);
    unsigned char *memory = malloc(FILE_BYTES);
    for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
        if (boxes[i].n == 2 && boxes[i].stride[0] == boxes[i].stride[1])
            continue; /* an output does not overlap itself */
        int fd = make_file(before, FILE_BYTES);
        struct boxio b = box_of(fd, boxes[i].item, boxes[i].n, boxes[i].count, boxes[i].stride);
        struct gad_error error;
        b.gaps = gaps;
        b.may_span = gaps != NULL;
        memset(memory, 0, FILE_BYTES);
        cr_assert(eq(int, boxio_write(&b, memory, &blocking, &error), 0));
        cr_assert(eq(i64, pread(fd, after, FILE_BYTES, 0), FILE_BYTES));
        check_box(&b, after, memory);
        int64_t n_changed = 0, n_written = boxes[i].item;
        for (int k = 0; k < boxes[i].n; k++)
            n_written *= boxes[i].count[k];
        for (size_t k = 0; k < FILE_BYTES; k++)
            n_changed += before[k] != after[k];
        cr_assert(le(i64, n_changed, n_written), "box %zu", i);
        close(fd);
    }
    free(before);
    free(after);
    free(memory);
}

Test(boxio, writes_the_elements_and_nothing_between_them)
{
    write_every_layout(NULL);
}

Test(boxio, writes_what_lies_between_as_it_was)
{
    struct gaps gaps;
    gaps_init(&gaps);
    write_every_layout(&gaps);
    gaps_deinit(&gaps);
}

Test(boxio, what_lies_between_behind_the_end_is_zero)
{
    struct gaps gaps;
    unsigned char bytes[24 + 24 * 500], want[sizeof(bytes)], memory[8 * 500];
    int fd = make_file("0123456789", 10);
    const int64_t count[] = {500}, stride[] = {24};
    struct boxio b = box_of(fd, 8, 1, count, stride);
    struct gad_error error;
    gaps_init(&gaps);
    b.gaps = &gaps;
    b.may_span = true;
    memset(memory, 7, sizeof(memory));
    memset(want, 0, sizeof(want));
    memcpy(want, "0123456789", 10);
    for (int i = 0; i < 500; i++)
        memset(want + b.offset + 24 * i, 7, 8);
    cr_assert(eq(int, boxio_write(&b, memory, &blocking, &error), 0));
    ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
    cr_assert(eq(i64, n, b.offset + 24 * 499 + 8));
    cr_assert(eq(int, memcmp(bytes, want, (size_t)n), 0));
    gaps_deinit(&gaps);
    close(fd);
}

/* Rows of four numbers, and a thread for each column; the last one writes every tenth row's alone,
 * which are too far apart for spans. */
#define N_COLUMNS 4
#define N_ROWS    4000
#define N_ROUNDS  100
#define PAD       40 /* numbers of which the first is written */

struct column {
    pthread_t thread;
    struct boxio b;
    uint64_t values[N_ROWS];
    char bounce[BOXIO_BOUNCE_BYTES];
    int status;
};
static pthread_barrier_t all_begin;

static void *write_column(void *argument)
{
    struct column *c = argument;
    const struct port_io io = {.may_block = true, .bounce = c->bounce};
    struct gad_error error;
    pthread_barrier_wait(&all_begin);
    c->status = boxio_write(&c->b, c->values, &io, &error);
    return NULL;
}

Test(boxio, threads_find_what_others_have_written_between)
{
    static struct column columns[N_COLUMNS];
    static uint64_t rows[N_ROWS][N_COLUMNS][PAD];
    struct gaps gaps;
    uint64_t n_wrong = 0;
    int fd = make_file(rows, sizeof(rows));
    gaps_init(&gaps);
    pthread_barrier_init(&all_begin, NULL, N_COLUMNS);
    for (uint64_t round = 1; round <= N_ROUNDS; round++) {
        for (int k = 0; k < N_COLUMNS; k++) {
            struct column *c = &columns[k];
            int64_t step = k == N_COLUMNS - 1 ? 10 : 1;
            const int64_t count[] = {N_ROWS / step}, stride[] = {step * (int64_t)sizeof(rows[0])};
            c->b = box_of(fd, 8, 1, count, stride);
            c->b.offset = k * (int64_t)sizeof(rows[0][0]);
            c->b.gaps = &gaps;
            c->b.may_span = k != 1; /* that one goes run by run */
            for (int64_t i = 0; i < count[0]; i++)
                c->values[i] = round;
            cr_assert(eq(int, pthread_create(&c->thread, NULL, write_column, c), 0));
        }
        for (int k = 0; k < N_COLUMNS; k++) {
            pthread_join(columns[k].thread, NULL);
            cr_assert(eq(int, columns[k].status, 0));
        }
        cr_assert(eq(i64, pread(fd, rows, sizeof(rows), 0), sizeof(rows)));
        for (int i = 0; i < N_ROWS; i++)
            for (int k = 0; k < N_COLUMNS; k++)
                n_wrong += rows[i][k][0] != (k < N_COLUMNS - 1 || i % 10 == 0 ? round : 0);
    }
    cr_assert(eq(u64, n_wrong, 0));
    pthread_barrier_destroy(&all_begin);
    gaps_deinit(&gaps);
    close(fd);
}

Test(boxio, scatters_a_chunk_into_a_larger_box)
{
    unsigned char *file = pattern(65536), *memory = calloc(1, 1 << 20);
    int fd = make_file(file, 65536);
    struct boxio b = {.fd = fd, .name = "a", .item_bytes = 4};
    box_add(&b.box, 64, 4, 4);
    box_add(&b.box, 64, 256, 4000);
    struct gad_error error;
    cr_assert(eq(int, boxio_read(&b, memory, &blocking, &error), 0));
    check_box(&b, file, memory);
    cr_assert(eq(int, memory[256], 0));
    boxio_zero(&b, memory);
    cr_assert(eq(int, memory[4000 * 63 + 255], 0));
    close(fd);
    free(file);
    free(memory);
}

Test(boxio, says_where_a_file_ends)
{
    char bytes[1000] = {0}, memory[4096];
    int fd = make_file(bytes, sizeof(bytes));
    const int64_t count[] = {200}, stride[] = {8};
    struct boxio b = box_of(fd, 8, 1, count, stride);
    struct gad_error error;
    cr_assert(eq(int, boxio_read(&b, memory, &blocking, &error), GAD_SHORT_READ));
    cr_assert(eq(str, error.argument, text("a")));
    cr_assert(eq(str, error.expected, text("bytes up to 1624")));
    cr_assert(eq(str, error.found, text("an end at byte 1000")));
    cr_assert(eq(int, ftruncate(fd, 16), 0)); /* before what is read begins */
    cr_assert(eq(int, boxio_read(&b, memory, &blocking, &error), GAD_SHORT_READ));
    cr_assert(eq(str, error.found, text("an end at byte 16")));
    close(fd);
}

Test(boxio, without_blocking_answers_again_for_what_is_not_cached)
{
    unsigned char *file = pattern(FILE_BYTES), *memory = malloc(FILE_BYTES);
    int fd = make_file(file, FILE_BYTES);
    const int64_t count[] = {100000}, stride[] = {8};
    struct boxio b = box_of(fd, 8, 1, count, stride);
    const struct port_io quick = {.may_block = false, .bounce = bounce};
    struct gad_error error;
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    cr_assert(eq(int, boxio_read(&b, memory, &quick, &error), -EAGAIN));
    cr_assert(eq(int, boxio_read(&b, memory, &blocking, &error), 0));
    cr_assert(eq(int, boxio_read(&b, memory, &quick, &error), 0));
    check_box(&b, file, memory);
    close(fd);
    free(file);
    free(memory);
}

Test(boxio, names_what_the_descriptor_does_not_allow)
{
    char path[] = "/var/tmp/gpuarrayd-test-XXXXXX", memory[64] = {0};
    int fd = mkostemp(path, O_CLOEXEC);
    cr_assert(eq(i64, write(fd, memory, 64), 64));
    int writer = open(path, O_WRONLY | O_CLOEXEC), reader = open(path, O_RDONLY | O_CLOEXEC);
    unlink(path);
    const int64_t count[] = {4}, stride[] = {8};
    struct boxio b = box_of(writer, 8, 1, count, stride);
    struct gad_error error;
    cr_assert(eq(int, boxio_read(&b, memory, &blocking, &error), GAD_BAD_DESCRIPTOR));
    b.fd = reader;
    cr_assert(eq(int, boxio_write(&b, memory, &blocking, &error), GAD_READ_ONLY));
    cr_assert(eq(str, error.argument, text("a")));
    close(fd);
    close(writer);
    close(reader);
}

Test(boxio, says_how_much_space_there_is_when_it_runs_out)
{
    struct stat st;
    if (stat("/dev/full", &st) < 0)
        cr_skip("no /dev/full");
    char memory[64] = {0};
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    const int64_t count[] = {4}, stride[] = {8};
    struct boxio b = box_of(fd, 8, 1, count, stride);
    struct gad_error error;
    cr_assert(eq(int, boxio_write(&b, memory, &blocking, &error), GAD_NO_SPACE));
    cr_assert(eq(str, error.expected, text("32 bytes at byte 24")));
    cr_assert(ne(str, error.found, text("")));
    close(fd);
}
