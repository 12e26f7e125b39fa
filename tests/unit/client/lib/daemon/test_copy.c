/* Jobs that change nothing, which the client has the system copy where the file system shares
 * blocks. The system calls are replaced: one says that it shares, the other does as little as it
 * may, or refuses.
 */
#include "tests/unit/client/lib/daemon/daemon_fixture.h"

#include "client/array.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define N 300000 /* float64: some pieces, and no whole number of blocks */

TestSuite(copy, .init = set_up, .fini = tear_down, .timeout = 60);

static int n_calls, n_served; /* of copy_file_range(), and how many of them do something */
static bool shares_nothing;

/* Of sharing alone; the rest of this process has no use for it. */
int ioctl(int fd, unsigned long request, ...)
{
    char block[4096];
    va_list list;
    va_start(list, request);
    const struct file_clone_range *range = va_arg(list, const struct file_clone_range *);
    va_end(list);
    errno = request == FICLONERANGE ? EOPNOTSUPP : ENOTTY;
    if (request != FICLONERANGE || shares_nothing)
        return -1;
    cr_assert(eq(u64, range->src_length, sizeof(block)));
    cr_assert(zero(u64, range->src_offset % 4096 + range->dest_offset % 4096));
    cr_assert(eq(i64, pread((int)range->src_fd, block, 4096, (off_t)range->src_offset), 4096));
    cr_assert(eq(i64, pwrite(fd, block, 4096, (off_t)range->dest_offset), 4096));
    return 0;
}

ssize_t copy_file_range(int from_fd, off_t *from, int to_fd, off_t *to, size_t n, unsigned flags)
{
    errno = n_calls % 3 == 1 ? EINTR : EXDEV;
    if (n_calls++ >= n_served || errno == EINTR)
        return -1;
    n = n < 100001 ? n : 100001;
    return syscall(SYS_copy_file_range, from_fd, from, to_fd, to, n, flags);
}

struct watch {
    struct gad_job *job;
    int n_told;
    bool cancels;
};

static void note(void *data, const struct gad_progress *progress)
{
    struct watch *watch = data;
    cr_assert(le(u64, progress->read_bytes, N * 8));
    cr_assert(eq(u64, progress->total_bytes, 2 * N * 8));
    watch->n_told++;
    if (watch->cancels)
        cr_assert(zero(int, (int)gad_job_cancel(watch->job, NULL)));
}

static struct gad_job *begin(const char *expr, struct gad_array *a, const char *engine,
                             const char *to_path, struct watch *watch)
{
    struct gad_error error = {0};
    struct gad_argument args[] = {{.name = "a", .array = a}};
    struct gad_output outputs[] = {{.expr = expr, .to_path = to_path}};
    struct gad_job_options options = {.n_args = 1,
                                      .args = args,
                                      .n_outputs = 1,
                                      .outputs = outputs,
                                      .engine = engine,
                                      .may_copy = true,
                                      .progress = watch ? note : NULL,
                                      .progress_data = watch};
    struct gad_job *job;
    cr_assert(zero(int, (int)gad_submit(client, &options, &job, &error)), "%s", error.message);
    if (watch)
        watch->job = job;
    return job;
}

/* The engine that did it; static. */
static const char *end(struct gad_job *job)
{
    static char engine[16];
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_job_wait(job, -1, &error)), "%s", error.message);
    snprintf(engine, sizeof(engine), "%s", gad_job_stats(job)->engine);
    gad_job_free(job);
    return engine;
}

static const char *copy(const char *expr, struct gad_array *a, const char *to_path)
{
    return end(begin(expr, a, NULL, to_path, NULL));
}

static struct gad_array *source(void)
{
    const char *path = path_in("a.npy");
    make_npy(path, N);
    n_calls = 0;
    n_served = 1000;
    return open_npy(path);
}

/* Rows of n numbers that count up, from first + i * step. */
static void check_rows(const char *path, int64_t n_rows, int64_t n, double first, double step)
{
    struct gad_array *r = open_npy(path);
    double *values = calloc((size_t)(n_rows * n), sizeof(*values));
    int64_t flat[] = {n_rows * n}, rows[] = {n_rows, n};
    struct gad_array *to = wrap(values, r->info.ndim, r->info.ndim == 1 ? flat : rows, NULL);
    run_well("a * 1", r, to, NULL);
    for (int64_t i = 0; i < n_rows * n; i++)
        cr_assert(eq(dbl, values[i], first + (double)(i / n) * step + (double)(i % n)));
    gad_array_release(to);
    gad_array_release(r);
    free(values);
}

static void check_copy(const char *path, double first, double last)
{
    check_rows(path, 1, (int64_t)(last - first) + 1, first, 0);
}

Test(copy, goes_on_where_a_call_does_little_and_where_the_system_refuses)
{
    struct gad_array *a = source();
    for (n_served = 0; n_served < 12; n_served += 5, n_calls = 0) {
        cr_assert(eq(str, (char *)copy("a", a, path_in("r.npy")), (char *)"client"));
        cr_assert(le(int, n_served, n_calls));
        check_copy(path_in("r.npy"), 0, N - 1);
    }
    n_served = 1000;
    cr_assert(eq(str, (char *)copy("float64(a)", a, path_in("d.h5:/d")), (char *)"client"));
    check_copy(path_in("d.h5:/d"), 0, N - 1);
    cr_assert(eq(str, (char *)copy(" a ", a, path_in("z.npz:d")), (char *)"client"));
    check_copy(path_in("z.npz:d"), 0, N - 1);
    gad_array_release(a);
}

Test(copy, takes_parts_whose_blocks_are_those_of_the_file)
{
    char part[160];
    gad_array_release(source());
    snprintf(part, sizeof(part), "%s[512:290000]", path_in("a.npy"));
    struct gad_array *a = open_npy(part);
    cr_assert(eq(str, (char *)copy("a", a, path_in("r.npy")), (char *)"client"));
    check_copy(path_in("r.npy"), 512, 289999);
    gad_array_release(a);
    snprintf(part, sizeof(part), "%s:f8:10x30000:4096[2:8:3, :]", path_in("a.npy"));
    cr_assert(zero(int, rename(path_in("a.npy"), path_in("a.raw"))));
    memcpy(strstr(part, "a.npy"), "a.raw", 5);
    a = open_npy(part); /* a row is 58.6 blocks */
    cr_assert(eq(str, (char *)copy("a", a, path_in("r.npy")), (char *)"cpu"));
    gad_array_release(a);
    snprintf(part, sizeof(part), "%s:f8:8x32768:4096[1::3, 8192:24576]", path_in("a.raw"));
    a = open_npy(part);
    n_calls = 0;
    cr_assert(eq(str, (char *)copy("a", a, path_in("r.npy")), (char *)"client"));
    gad_array_release(a);
    cr_assert(lt(int, 2, n_calls));
    check_rows(path_in("r.npy"), 3, 16384, 32768 + 8192, 3 * 32768);
}

Test(copy, is_no_copy_where_elements_change_or_an_engine_is_named)
{
    struct gad_array *a = source();
    cr_assert(eq(str, (char *)copy("float32(a)", a, path_in("r.npy")), (char *)"cpu"));
    cr_assert(eq(str, (char *)copy("a + 0", a, path_in("r.npy")), (char *)"cpu"));
    cr_assert(eq(str, (char *)end(begin("a", a, "cpu", path_in("r.npy"), NULL)), (char *)"cpu"));
    shares_nothing = true;
    cr_assert(eq(str, (char *)copy("a", a, path_in("r.npy")), (char *)"cpu"));
    cr_assert(zero(int, n_calls));
    gad_array_release(a);
}

Test(copy, says_where_the_source_ends_and_leaves_nothing)
{
    struct gad_array *a = source();
    struct gad_error error = {0};
    cr_assert(zero(int, truncate(path_in("a.npy"), 1000000)));
    int n = n_files();
    struct gad_job *job = begin("a", a, NULL, path_in("r.npy"), NULL);
    cr_assert(eq(int, (int)gad_job_wait(job, -1, &error), GAD_SHORT_READ));
    cr_assert(eq(str, error.argument, "a"));
    cr_assert(ne(ptr, strstr(error.message, "a.npy: the file ends"), NULL), "%s", error.message);
    cr_assert(eq(str, error.found, "an end at byte 1000000"));
    gad_job_free(job);
    cr_assert(eq(int, n_files(), n));
    gad_array_release(a);
}

Test(copy, tells_how_far_it_is_and_is_cancelled_in_between)
{
    struct gad_array *a = source();
    struct watch watch = {.cancels = true};
    int n = n_files();
    struct gad_job *job = begin("a", a, NULL, path_in("r.npy"), &watch);
    cr_assert(eq(int, (int)gad_job_wait(job, -1, NULL), GAD_CANCELLED));
    cr_assert(eq(int, watch.n_told, 1));
    gad_job_free(job);
    job = begin("a", a, NULL, path_in("r.npy"), NULL);
    cr_assert(eq(int, (int)gad_job_wait(job, 0, NULL), GAD_TIMEOUT));
    gad_job_free(job);
    cr_assert(eq(int, n_files(), n));
    gad_array_release(a);
}

Test(copy, leaves_others_their_turn_and_goes_on_in_a_loop_of_the_programs)
{
    struct gad_array *a = source();
    struct gad_job *job = begin("a", a, NULL, path_in("r.npy"), NULL);
    cr_assert(eq(dbl, ask("max(a)", a), N - 1));
    while (!gad_job_is_done(job)) {
        struct pollfd polled = {.fd = gad_fd(client),
                                .events = gad_wants_write(client) ? POLLIN | POLLOUT : POLLIN};
        cr_assert(eq(int, poll(&polled, 1, 10000), 1));
        cr_assert(zero(int, (int)gad_dispatch(client, 0, NULL)));
    }
    cr_assert(not(gad_wants_write(client)));
    end(job);
    check_copy(path_in("r.npy"), 0, N - 1);
    gad_array_release(a);
}
