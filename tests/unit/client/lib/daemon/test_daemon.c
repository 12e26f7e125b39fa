/* The library with a real daemon: arrays of every kind in and out, files in their place,
 * cancelling, progress, plans, jobs by number, files that only the library can read.
 */
#include "tests/unit/client/lib/daemon/daemon_fixture.h"

#include "proto/util.h"

#include "client/clock.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dirent.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

TestSuite(client, .init = set_up, .fini = tear_down, .timeout = 60);

Test(client, computes_what_travels_in_the_message)
{
    double a[1000], k[] = {10};
    int64_t shape[] = {1000}, one[] = {1};
    for (int i = 0; i < 1000; i++)
        a[i] = i;
    struct gad_array *array = wrap(a, 1, shape, NULL), *single = wrap(k, 1, one, NULL);
    struct gad_argument args[] = {
        {.name = "a", .array = array},
        {.name = "k", .array = single},
        {.name = "i", .scalar = GAD_SCALAR_INT, .int_value = 3},
    };
    struct gad_output outputs[] = {{.expr = "a * k + i", .name = "r"}, {.expr = "max(a)"}};
    struct gad_job_options options = {
        .n_args = 3, .args = args, .n_outputs = 2, .outputs = outputs};
    struct gad_job *jobs[8];
    struct gad_error error = {0};
    for (int i = 0; i < 8; i++)
        cr_assert(zero(int, (int)gad_submit(client, &options, &jobs[i], &error)), "%s",
                  error.message);
    for (int i = 7; i >= 0; i--) {
        struct gad_plan_output what;
        cr_assert(zero(int, (int)gad_job_wait(jobs[i], -1, &error)), "%s", error.message);
        const double *r = gad_job_result(jobs[i], 0, &what);
        cr_assert(eq(str, what.name, "r"));
        cr_assert(eq(int, (int)what.dtype, GAD_FLOAT64));
        cr_assert(eq(i64, what.shape[0], 1000));
        cr_assert(eq(dbl, r[999], 9993));
        cr_assert(eq(dbl, *(const double *)gad_job_result(jobs[i], 1, &what), 999));
        cr_assert(zero(int, what.ndim));
        cr_assert(zero(ptr, (void *)gad_job_result(jobs[i], 2, NULL)));
        cr_assert(lt(u64, 0, gad_job_id(jobs[i])));
        cr_assert(eq(str, (char *)gad_job_stats(jobs[i])->engine, (char *)"cpu"));
        gad_job_free(jobs[i]);
    }
    gad_array_release(array);
    gad_array_release(single);
}

Test(client, computes_in_shared_memory_and_reuses_it)
{
    int64_t shape[] = {512, 1024};
    void *first = NULL;
    for (int round = 0; round < 5; round++) {
        struct gad_array *a, *r;
        cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 2, shape, &a, NULL)));
        cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 2, shape, &r, NULL)));
        double *in = gad_array_data(a), *out = gad_array_data(r);
        if (round == 1)
            first = in;
        cr_assert(round == 0 || first == in, "the same pages from then on");
        for (int i = 0; i < 512 * 1024; i++) {
            cr_assert(zero(dbl, in[i]));
            in[i] = i + round;
        }
        run_well("a * 2", a, r, NULL);
        for (int i = 0; i < 512 * 1024; i++)
            cr_assert(eq(dbl, out[i], 2.0 * (i + round)));
        run_well("sqrt(a)", a, a, NULL);
        cr_assert(eq(dbl, in[100], sqrt(100 + round)));
        gad_array_release(a);
        gad_array_release(r);
    }
    cr_assert(le(int, count("regions"), 4));
}

Test(client, computes_in_ordinary_memory_whatever_its_strides)
{
    enum { ROWS = 1100, COLUMNS = 1200 };
    double *a = malloc(sizeof(double) * ROWS * COLUMNS);
    double *r = calloc((size_t)2 * ROWS * COLUMNS, sizeof(double));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        a[i] = i;
    int64_t shape[] = {COLUMNS, ROWS}, transposed[] = {8, 8 * COLUMNS};
    int64_t gaps[] = {-16 * ROWS, 16};
    struct gad_array *in = wrap(a, 2, shape, transposed);
    struct gad_array *out = wrap(r + (COLUMNS - 1) * 2 * ROWS, 2, shape, gaps);
    run_well("a + 0.5", in, out, NULL);
    for (int i = 0; i < COLUMNS; i++)
        for (int j = 0; j < ROWS; j++) {
            cr_assert(eq(dbl, r[(COLUMNS - 1 - i) * 2 * ROWS + 2 * j], a[j * COLUMNS + i] + 0.5));
            cr_assert(zero(dbl, r[(COLUMNS - 1 - i) * 2 * ROWS + 2 * j + 1]), "gaps stay");
        }
    cr_assert(eq(dbl, ask("sum(a)", in), (double)ROWS * COLUMNS * (ROWS * COLUMNS - 1.0) / 2));
    gad_array_release(in);
    gad_array_release(out);
    free(a);
    free(r);
}

Test(client, works_in_place_in_ordinary_memory)
{
    enum { N = 1 << 20 };
    double *a = malloc(sizeof(double) * N);
    int64_t shape[] = {N}, back[] = {-8}, half[] = {N / 2}, wide[] = {16};
    struct gad_error error = {0};
    for (int i = 0; i < N; i++)
        a[i] = i;
    struct gad_array *forwards = wrap(a, 1, shape, NULL);
    struct gad_array *backwards = wrap(a + N - 1, 1, shape, back);
    struct gad_array *even = wrap(a, 1, half, wide), *odd = wrap(a + 1, 1, half, wide);
    run_well("a - mean(a)", forwards, forwards, NULL);
    cr_assert(eq(dbl, a[0], -(N - 1) / 2.0));
    cr_assert(eq(int, (int)run("a", forwards, backwards, NULL, &error), GAD_OVERLAPPING_OUTPUT));
    cr_assert(eq(str, error.argument, "outputs[0]"));
    cr_assert(eq(dbl, a[0], -(N - 1) / 2.0), "nothing was written");
    run_well("a * 2", even, odd, NULL);
    for (int i = 0; i < N; i += 2)
        cr_assert(eq(dbl, a[i + 1], 2 * a[i]), "what interleaves does not overlap");
    gad_array_release(forwards);
    gad_array_release(backwards);
    gad_array_release(even);
    gad_array_release(odd);
    free(a);
}

Test(client, casts_small_results_into_the_callers_array)
{
    float r[6] = {0};
    double a[] = {1, 2, 3};
    int64_t shape[] = {3}, gaps[] = {8};
    struct gad_array *to, *in = wrap(a, 1, shape, NULL);
    struct gad_error error = {0};
    struct gad_layout layout = {.dtype = GAD_FLOAT32, .ndim = 1, .shape = shape, .strides = gaps};
    cr_assert(zero(int, (int)gad_array_from_memory(client, &layout, r, true, &to, NULL)));
    run_well("a / 2", in, to, NULL);
    cr_assert(eq(flt, r[4], 1.5f));
    cr_assert(zero(flt, r[1]));
    gad_array_release(to);
    int64_t two[] = {2};
    to = wrap(r, 1, two, NULL);
    cr_assert(eq(int, (int)run("a", in, to, NULL, &error), GAD_BAD_SHAPE));
    gad_array_release(to);
    gad_array_release(in);
}

Test(client, puts_files_in_their_place_at_the_end)
{
    make_npy(path_in("a.npy"), 100000);
    struct gad_array *a = open_npy(path_in("a.npy"));
    cr_assert(eq(str, (char *)gad_array_info(a)->access, (char *)"file"));
    run_well("sqrt(a)", a, NULL, path_in("r.npy"));
    struct gad_array *r = open_npy(path_in("r.npy"));
    cr_assert(eq(i64, gad_array_info(r)->shape[0], 100000));
    cr_assert(eq(dbl, ask("max(a)", r), sqrt(99999)));
    run_well("a > 5", a, NULL, path_in("r.npy"));
    gad_array_release(r);
    r = open_npy(path_in("r.npy"));
    cr_assert(eq(int, (int)gad_array_info(r)->dtype, GAD_BOOL), "replaced as a whole");
    cr_assert(eq(int, n_files(), 2), "and nothing else is left");
    gad_array_release(r);
    gad_array_release(a);
}

Test(client, works_in_place_in_a_file)
{
    make_npy(path_in("a.npy"), 100000);
    struct gad_array *a;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_array_open_in_place(client, path_in("a.npy"), &a, &error)));
    run_well("a - mean(a)", a, a, NULL);
    cr_assert(eq(dbl, ask("max(a)", a), 99999 / 2.0));
    gad_array_release(a);
    a = open_npy(path_in("a.npy"));
    cr_assert(eq(int, (int)run("a + 1", a, a, NULL, &error), GAD_READ_ONLY));
    gad_array_release(a);
}

Test(client, leaves_no_file_of_a_job_that_fails)
{
    struct gad_error error;
    make_npy(path_in("a.npy"), 1000);
    struct gad_array *a = open_npy(path_in("a.npy"));
    cr_assert(eq(int, (int)run("sqr(a)", a, NULL, path_in("r.npy"), &error), GAD_UNKNOWN_NAME));
    cr_assert(zero(int, truncate(path_in("a.npy"), 5000)));
    cr_assert(eq(int, (int)run("sqrt(a)", a, NULL, path_in("r.npy"), &error), GAD_SHORT_READ));
    cr_assert(eq(str, error.argument, "a"));
    cr_assert(eq(int, n_files(), 1));
    gad_array_release(a);
}

Test(client, cancels_a_long_job_and_leaves_nothing)
{
    int64_t row[] = {1, 40000}, column[] = {40000, 1};
    struct gad_array *a, *b;
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 2, row, &a, NULL)));
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 2, column, &b, NULL)));
    struct gad_argument args[] = {{.name = "a", .array = a}, {.name = "b", .array = b}};
    struct gad_output outputs[] = {
        {.expr = "sum(exp(sin(a) * cos(b)))", .to_path = path_in("r.npy")}};
    struct gad_job_options options = {
        .n_args = 2, .args = args, .n_outputs = 1, .outputs = outputs};
    struct gad_job *job;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_submit(client, &options, &job, &error)), "%s", error.message);
    cr_assert(eq(int, (int)gad_job_wait(job, 50, &error), GAD_TIMEOUT));
    cr_assert(lt(u64, 0, gad_job_id(job)));
    int64_t began = clock_now_ms();
    cr_assert(zero(int, (int)gad_job_cancel(job, &error)));
    cr_assert(eq(int, (int)gad_job_wait(job, -1, &error), GAD_CANCELLED));
    cr_assert(lt(i64, clock_now_ms() - began, 2000));
    cr_assert(zero(ptr, (void *)gad_job_stats(job)));
    gad_job_free(job);
    cr_assert(zero(int, n_files()));
    cr_assert(zero(int, (int)gad_submit(client, &options, &job, &error)));
    gad_job_free(job); /* cancels by itself, before the id is known */
    cr_assert(zero(int, count("jobs_running")));
    gad_array_release(a);
    gad_array_release(b);
}

static void note_progress(void *data, const struct gad_progress *progress)
{
    *(struct gad_progress *)data = *progress;
}

Test(client, tells_progress_and_serves_the_callers_own_loop)
{
    int64_t row[] = {1, 10000}, column[] = {10000, 1};
    struct gad_array *a, *b;
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 2, row, &a, NULL)));
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 2, column, &b, NULL)));
    struct gad_argument args[] = {{.name = "a", .array = a}, {.name = "b", .array = b}};
    struct gad_output outputs[] = {{.expr = "sum(exp(sin(a) * cos(b)))"}};
    struct gad_progress seen = {0};
    struct gad_job_options options = {.n_args = 2,
                                      .args = args,
                                      .n_outputs = 1,
                                      .outputs = outputs,
                                      .progress = note_progress,
                                      .progress_data = &seen,
                                      .progress_ms = 50};
    struct gad_job *job;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_submit(client, &options, &job, &error)));
    while (!gad_job_is_done(job)) {
        struct pollfd polled = {.fd = gad_fd(client), .events = POLLIN};
        if (gad_wants_write(client))
            polled.events |= POLLOUT;
        cr_assert(lt(int, 0, poll(&polled, 1, 10000)));
        enum gad_status status = gad_dispatch(client, 0, &error);
        cr_assert(status == GAD_OK || status == GAD_TIMEOUT, "%s", error.message);
    }
    cr_assert(zero(int, (int)gad_job_wait(job, 0, &error)), "%s", error.message);
    cr_assert(eq(u64, seen.job, gad_job_id(job)));
    cr_assert(lt(u64, 0, seen.tiles_done));
    cr_assert(lt(u64, 0, seen.total_bytes));
    cr_assert(le(u64, seen.read_bytes + seen.write_bytes, seen.total_bytes));
    gad_job_free(job);
    gad_array_release(a);
    gad_array_release(b);
}

Test(client, plans_without_running)
{
    make_npy(path_in("a.npy"), 100000);
    struct gad_array *a = open_npy(path_in("a.npy"));
    struct gad_argument args[] = {{.name = "a", .array = a}};
    struct gad_output outputs[] = {{.expr = "a - mean(a)", .name = "r", .to_path = "r.npy"},
                                   {.expr = "count_nonzero(a)"}};
    struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 2, .outputs = outputs};
    struct gad_plan *plan;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_plan(client, &options, &plan, &error)), "%s", error.message);
    cr_assert(eq(uint, plan->n_outputs, 2));
    cr_assert(eq(int, (int)plan->outputs[1]->dtype, GAD_INT64));
    cr_assert(eq(u64, plan->write_bytes, 800000 + 8));
    static const char *const words[] = {"output   r: float64 (100000,)\n", "engine   cpu\n",
                                        "pass 1 ", "through slots", "program\n"};
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        cr_assert(ne(ptr, strstr(plan->text, words[i]), NULL), "%s\n%s", words[i], plan->text);
    gad_plan_free(plan);
    outputs[0].expr = "a +";
    cr_assert(eq(int, (int)gad_plan(client, &options, &plan, &error), GAD_BAD_EXPRESSION));
    gad_array_release(a);
}

/* "x0 = a + mean(a); x1 = a + mean(x0); ...; x38": of each reduction the next one is made. */
static const char *forty_passes(void)
{
    static char text[2048];
    size_t n = (size_t)snprintf(text, sizeof(text), "x0 = a + mean(a); ");
    for (int i = 1; i < 39; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "x%d = a + mean(x%d); ", i, i - 1);
    snprintf(text + n, sizeof(text) - n, "x38");
    return text;
}

Test(client, plans_as_many_outputs_and_passes_as_a_job_may_have)
{
    double a[4] = {1, 2, 3, 4};
    int64_t shape[] = {4};
    struct gad_array *array = wrap(a, 1, shape, NULL);
    struct gad_argument args[] = {{.name = "a", .array = array}};
    struct gad_output outputs[16] = {{.expr = forty_passes()}};
    for (int i = 1; i < 16; i++)
        outputs[i].expr = i % 2 ? "a > 1" : "a * 2";
    struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 16, .outputs = outputs};
    struct gad_plan *plan;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_plan(client, &options, &plan, &error)), "%s", error.message);
    cr_assert(eq(uint, plan->n_outputs, 16));
    for (unsigned i = 1; i < 16; i++) {
        cr_assert(eq(int, (int)plan->outputs[i]->dtype, i % 2 ? GAD_BOOL : GAD_FLOAT64));
        cr_assert(eq(int, plan->outputs[i]->ndim, 1));
    }
    cr_assert(eq(uint, plan->n_passes, 40));
    for (unsigned i = 0; i < 40; i++)
        cr_assert(eq(u32, plan->passes[i]->reduced_axes, i < 39));
    for (unsigned i = 0; i < plan->n_engines; i++)
        cr_assert(ne(chr, plan->engines[i]->engine[0], '\0'));
    gad_plan_free(plan);
    gad_array_release(array);
}

Test(client, plans_the_order_of_results_by_that_of_small_arrays_too)
{
    double a[12];
    int64_t shape[] = {3, 4}, fortran[] = {8, 24};
    for (int is_fortran = 0; is_fortran < 2; is_fortran++) {
        struct gad_array *array = wrap(a, 2, shape, is_fortran ? fortran : NULL);
        struct gad_argument args[] = {{.name = "a", .array = array}};
        struct gad_output outputs[] = {{.expr = "a + 1"}};
        struct gad_job_options options = {
            .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
        struct gad_plan *plan;
        struct gad_error error = {0};
        cr_assert(zero(int, (int)gad_plan(client, &options, &plan, &error)), "%s", error.message);
        cr_assert(eq(int, plan->outputs[0]->fortran_order, is_fortran));
        gad_plan_free(plan);
        gad_array_release(array);
    }
}

Test(client, knows_the_users_jobs_by_their_numbers)
{
    double a[] = {1, 2};
    int64_t shape[] = {2};
    struct gad_array *array = wrap(a, 1, shape, NULL);
    struct gad_error error;
    run_well("a", array, array, NULL);
    cr_assert(eq(int, (int)run("a +", array, NULL, NULL, &error), GAD_BAD_EXPRESSION));
    run_well("a + 1", array, array, NULL);
    struct gad_job_status *jobs, status;
    size_t n_jobs;
    cr_assert(zero(int, (int)gad_job_list(client, &jobs, &n_jobs, &error)), "%s", error.message);
    cr_assert(eq(sz, n_jobs, 2));
    cr_assert(lt(u64, jobs[0].job, jobs[1].job));
    cr_assert(eq(str, jobs[1].state, "done"));
    cr_assert(zero(int, (int)gad_job_status_by_id(client, jobs[0].job, &status, &error)));
    cr_assert(eq(u64, status.job, jobs[0].job));
    cr_assert(zero(int, (int)gad_job_wait_by_id(client, jobs[0].job, 0, &error)));
    cr_assert(zero(int, (int)gad_job_cancel_by_id(client, jobs[0].job, &error)));
    cr_assert(eq(int, (int)gad_job_wait_by_id(client, 1000, 0, &error), GAD_UNKNOWN_JOB));
    cr_assert(eq(int, (int)gad_job_status_by_id(client, 0, &status, &error), GAD_UNKNOWN_JOB));
    free(jobs);
    gad_array_release(array);
}

Test(client, does_not_stand_still_with_a_daemon_that_does)
{
    struct gad_connect_options options = {.timeout_ms = 100};
    struct gad_client *hasty;
    struct gad_job_status *jobs;
    size_t n_jobs;
    char *text;
    cr_assert(zero(int, (int)gad_connect(&options, &hasty, NULL)));
    pid_t pid = daemon_pid();
    kill(pid, SIGSTOP);
    cr_assert(eq(int, (int)gad_ping(hasty, NULL), GAD_TIMEOUT));
    cr_assert(eq(int, (int)gad_info_json(hasty, &text, NULL), GAD_TIMEOUT));
    cr_assert(eq(int, (int)gad_stats_json(hasty, &text, NULL), GAD_TIMEOUT));
    cr_assert(eq(int, (int)gad_job_list(hasty, &jobs, &n_jobs, NULL), GAD_TIMEOUT));
    kill(pid, SIGCONT);
    gad_close(hasty);
    options.timeout_ms = 0; /* the default is patient enough for a busy machine */
    cr_assert(zero(int, (int)gad_connect(&options, &hasty, NULL)));
    cr_assert(zero(int, (int)gad_ping(hasty, NULL)));
    gad_close(hasty);
}

Test(client, leaves_no_descriptors_threads_or_mappings_behind)
{
    enum { N = 1 << 20 };
    double *a = calloc(N, sizeof(double));
    int64_t shape[] = {N};
    struct gad_array *array = wrap(a, 1, shape, NULL);
    int before = 0, before_daemon = 0;
    for (int round = 0; round < 4; round++) {
        int n = 0;
        run_well("a + 1", array, array, NULL);
        cr_assert(eq(dbl, ask("sum(a)", array), (double)N * (round + 1)));
        run_well("a * 1", array, NULL, path_in("r.npy"));
        DIR *directory = opendir("/proc/self/fd");
        while (readdir(directory))
            n++;
        closedir(directory);
        int n_daemon = count("descriptors") + count("mappings");
        if (round > 1)
            cr_assert(n == before && n_daemon == before_daemon);
        before = n;
        before_daemon = n_daemon;
    }
    gad_array_release(array);
    free(a);
}

/* Its own mount namespace, with a file system that the daemon does not read itself. */
Test(provider, serves_files_that_the_daemon_does_not_read, .timeout = 60)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS))
        cr_skip("only root can mount");
    char mounted[64] = "/tmp/gad-ramfs.XXXXXX", in[96], out[96];
    cr_assert(zero(int, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)));
    cr_assert(ne(ptr, mkdtemp(mounted), NULL));
    if (mount("gad", mounted, "ramfs", 0, NULL)) {
        rmdir(mounted);
        cr_skip("there is no ramfs");
    }
    set_up();
    snprintf(in, sizeof(in), "%s/a.npy", mounted);
    snprintf(out, sizeof(out), "%s/r.npy", mounted);
    make_npy(path_in("local.npy"), 300000);
    struct gad_array *local = open_npy(path_in("local.npy"));
    run_well("a", local, NULL, in);
    struct gad_array *a = open_npy(in);
    cr_assert(eq(dbl, ask("max(a)", a), 299999));
    cr_assert(eq(str, (char *)gad_array_info(a)->access, (char *)"provider"));
    run_well("a * 2", a, NULL, out);
    struct gad_array *r = open_npy(out);
    cr_assert(eq(dbl, ask("sum(a)", r), 300000.0 * 299999));
    struct gad_array *in_place;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_array_open_in_place(client, out, &in_place, &error)));
    run_well("a + 1", a, in_place, NULL);
    cr_assert(eq(dbl, ask("max(a)", r), 300000), "another file may be written in place");
    cr_assert(eq(int, (int)run("a + 1", r, in_place, NULL, &error), GAD_OVERLAPPING_OUTPUT));
    gad_array_release(in_place);
    gad_array_release(local);
    gad_array_release(a);
    gad_array_release(r);
    tear_down();
    umount2(mounted, MNT_DETACH);
    rmdir(mounted);
}
