/* The daemon or its worker goes away under the library's hands. */
#include "daemon_fixture.h"

#include "client/lib/clock.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>

TestSuite(loss, .init = set_up, .fini = tear_down, .timeout = 60);

static void wait_gone(pid_t pid)
{
    while (kill(pid, 0) == 0)
        clock_sleep_ms(2);
}

Test(loss, starts_another_daemon_when_its_own_is_gone)
{
    int64_t shape[] = {1000};
    struct gad_array *a;
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 1, shape, &a, NULL)));
    ((double *)gad_array_data(a))[7] = 5;
    cr_assert(eq(dbl, ask("sum(a)", a), 5));
    pid_t pid = daemon_pid();
    kill(pid, SIGKILL);
    wait_gone(pid);
    cr_assert(eq(dbl, ask("sum(a)", a), 5), "its region was attached again");
    cr_assert(ne(int, daemon_pid(), pid));
    gad_array_release(a);
}

/* A job of a second or two over the argument `a`. */
static struct gad_job *submit_long(struct gad_array *a, struct gad_array *b, struct gad_array *to,
                                   const char *to_path)
{
    struct gad_argument args[] = {{.name = "a", .array = a}, {.name = "b", .array = b}};
    struct gad_output outputs[] = {{.expr = "sum(exp(sin(a) * cos(b)))", .to_path = to_path},
                                   {.expr = "a + 1", .to = to}};
    struct gad_job_options options = {
        .n_args = 2, .args = args, .n_outputs = 2, .outputs = outputs};
    struct gad_job *job;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_submit(client, &options, &job, &error)), "%s", error.message);
    cr_assert(eq(int, (int)gad_job_wait(job, 100, &error), GAD_TIMEOUT), "it runs: %s",
              error.message);
    return job;
}

struct pair {
    struct gad_array *a, *b;
};

static struct pair make_pair(void)
{
    int64_t row[] = {1, 10000}, column[] = {8000, 1};
    struct pair p;
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 2, row, &p.a, NULL)));
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 2, column, &p.b, NULL)));
    return p;
}

static void pair_release(struct pair p)
{
    gad_array_release(p.a);
    gad_array_release(p.b);
}

Test(loss, runs_a_job_again_when_the_daemon_dies_under_it)
{
    struct pair p = make_pair();
    struct gad_error error = {0};
    int64_t row[] = {1, 10000};
    struct gad_array *to;
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 2, row, &to, NULL)));
    struct gad_job *job = submit_long(p.a, p.b, to, path_in("r.npy"));
    kill(daemon_pid(), SIGKILL);
    enum gad_status status;
    do
        status = gad_job_wait(job, 100, &error);
    while (status == GAD_TIMEOUT);
    cr_assert(zero(int, (int)status), "%s", error.message);
    cr_assert(eq(int, n_files(), 1));
    gad_job_free(job);
    gad_array_release(to);
    pair_release(p);
}

Test(loss, does_not_run_a_job_again_that_works_in_place)
{
    struct pair p = make_pair();
    struct gad_error error = {0};
    struct gad_job *job = submit_long(p.a, p.b, p.a, path_in("r.npy"));
    kill(daemon_pid(), SIGKILL);
    cr_assert(eq(int, (int)gad_job_wait(job, -1, &error), GAD_OUTCOME_UNKNOWN));
    cr_assert(gad_job_is_done(job));
    cr_assert(zero(int, n_files()));
    gad_job_free(job);
    pair_release(p);
}

Test(loss, survives_the_worker_while_it_feeds_it)
{
    enum { N = 10000 };
    double *a = calloc(N, sizeof(double)), *r = calloc(N, sizeof(double));
    int64_t row[] = {1, N};
    struct pair p = make_pair();
    struct gad_array *in = wrap(a, 2, row, NULL), *out = wrap(r, 2, row, NULL);
    struct gad_error error = {0};
    struct gad_job *job = submit_long(in, p.b, out, NULL);
    kill(worker_pid(), SIGKILL);
    cr_assert(zero(int, (int)gad_job_wait(job, -1, &error)), "%s", error.message);
    cr_assert(eq(dbl, r[N - 1], 1));
    gad_job_free(job);
    gad_array_release(in);
    gad_array_release(out);
    pair_release(p);
    free(a);
    free(r);
}
