/* The daemon or its worker goes away under the library's hands. */
#include "tests/unit/client/lib/daemon/daemon_fixture.h"

#include "client/clock.h"
#include "client/lib/connection/client.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void end_daemon(void)
{
    pid_t pid = daemon_pid();
    kill(pid, SIGKILL);
    wait_gone(pid);
}

Test(loss, is_noticed_by_whatever_is_asked_next)
{
    double data[3] = {1, 2, 3};
    int64_t shape[] = {3};
    struct gad_array *a = wrap(data, 1, shape, NULL), *shared;
    struct gad_error error = {0};
    end_daemon();
    run_well("a + 1", a, NULL, path_in("r.npy")); /* begins with a plan */
    cr_assert(eq(int, n_files(), 1));
    end_daemon();
    cr_assert(zero(int, (int)gad_ping(client, &error)), "%s", error.message);
    end_daemon();
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 1, shape, &shared, &error)), "%s",
              error.message);
    gad_array_release(shared);
    gad_array_release(a);
}

Test(loss, does_not_end_jobs_that_were_sent_one_behind_the_other)
{
    enum { N = 20 };
    double data[3] = {1, 2, 3};
    int64_t shape[] = {3};
    struct gad_array *a = wrap(data, 1, shape, NULL);
    struct gad_job *jobs[N];
    struct gad_error error = {0};
    pid_t pid = daemon_pid();
    kill(pid, SIGSTOP); /* it reads none of them */
    for (int i = 0; i < N; i++) {
        struct gad_argument args[] = {{.name = "a", .array = a}};
        struct gad_output outputs[] = {{.expr = "sum(a)"}};
        struct gad_job_options options = {
            .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
        if (i == N / 2) {
            kill(pid, SIGKILL);
            wait_gone(pid);
        }
        cr_assert(zero(int, (int)gad_submit(client, &options, &jobs[i], &error)), "%s",
                  error.message);
    }
    for (int i = 0; i < N; i++) {
        cr_assert(zero(int, (int)gad_job_wait(jobs[i], -1, &error)), "%d: %s", i, error.message);
        cr_assert(eq(dbl, *(const double *)gad_job_result(jobs[i], 0, NULL), 6));
        gad_job_free(jobs[i]);
    }
    gad_array_release(a);
}

/* A job of a second or so over the arguments `a` and `b`, see make_pair(). */
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

/* So many rows that the job takes about a second on this machine, whatever it is. */
static int64_t n_rows_of_a_second(void)
{
    int64_t n = 250, took_ms = 0;
    while (took_ms < 50 && n < 1 << 20) {
        int64_t row[] = {1, 10000}, column[] = {n *= 2, 1};
        struct gad_array *a, *b;
        cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 2, row, &a, NULL)));
        cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 2, column, &b, NULL)));
        struct gad_argument args[] = {{.name = "a", .array = a}, {.name = "b", .array = b}};
        struct gad_output outputs[] = {{.expr = "sum(exp(sin(a) * cos(b)))"}};
        struct gad_job_options options = {
            .n_args = 2, .args = args, .n_outputs = 1, .outputs = outputs};
        struct gad_job *job;
        int64_t began_ms = clock_now_ms();
        cr_assert(zero(int, (int)gad_submit(client, &options, &job, NULL)));
        cr_assert(zero(int, (int)gad_job_wait(job, -1, NULL)));
        took_ms = clock_now_ms() - began_ms;
        gad_job_free(job);
        gad_array_release(a);
        gad_array_release(b);
    }
    return n * 1000 / took_ms;
}

static struct pair make_pair(void)
{
    int64_t row[] = {1, 10000}, column[] = {n_rows_of_a_second(), 1};
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

Test(loss, is_told_to_the_callers_own_loop_and_mended_by_waiting)
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
        status = gad_dispatch(client, 1000, &error);
    while (status == GAD_OK);
    cr_assert(eq(int, (int)status, GAD_DISCONNECTED));
    cr_assert(eq(int, gad_fd(client), -1));
    cr_assert(not(gad_wants_write(client)));
    cr_assert(not(gad_job_is_done(job)));
    status = gad_job_wait(job, 0, &error);
    cr_assert(eq(int, (int)status, GAD_TIMEOUT), "%s", error.message);
    cr_assert(ge(int, gad_fd(client), 0), "there is a connection again");
    while (!gad_job_is_done(job)) {
        status = gad_dispatch(client, 10000, &error);
        cr_assert(zero(int, (int)status), "%s", error.message);
    }
    cr_assert(zero(int, (int)gad_job_wait(job, 0, &error)), "%s", error.message);
    gad_job_free(job);
    gad_array_release(to);
    pair_release(p);
}

static pid_t start_service(void)
{
    char *const words[] = {getenv("GPUARRAYD_DAEMON"), (char *)"--socket",
                           (char *)"/run/gpuarrayd/socket", NULL};
    pid_t pid;
    cr_assert(zero(int, posix_spawn(&pid, words[0], NULL, NULL, words, environ)));
    return pid;
}

Test(loss, waits_for_the_service_and_starts_nothing_in_its_place)
{
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", "/run", "tmpfs", 0, NULL) || mkdir("/run/gpuarrayd", 0755))
        cr_skip_test("only root may have a /run of its own");
    end_daemon();
    gad_close(client);
    pid_t pid = start_service();
    struct gad_connect_options no_private = {.no_private_daemon = true};
    struct gad_connect_options any = {0};
    while (gad_connect(&no_private, &client, NULL) != GAD_OK)
        clock_sleep_ms(5);
    gad_close(client);
    cr_assert(zero(int, (int)gad_connect(&any, &client, NULL)));
    struct pair p = make_pair();
    int64_t row[] = {1, 10000};
    struct gad_array *to;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 2, row, &to, NULL)));
    struct gad_job *job = submit_long(p.a, p.b, to, path_in("r.npy"));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    cr_assert(eq(int, (int)gad_job_wait(job, 300, &error), GAD_TIMEOUT));
    pid = start_service();
    cr_assert(zero(int, (int)gad_job_wait(job, -1, &error)), "%s", error.message);
    cr_assert(eq(int, daemon_pid(), pid));
    gad_job_free(job);
    gad_array_release(to);
    pair_release(p);
}

Test(loss, ends_a_job_whose_next_daemon_does_not_answer)
{
    struct pair p = make_pair();
    struct gad_error error = {0};
    int64_t row[] = {1, 10000};
    struct gad_array *to;
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 2, row, &to, NULL)));
    struct gad_job *job = submit_long(p.a, p.b, to, path_in("r.npy"));
    end_daemon();
    cr_assert(zero(int, (int)gad_ping(client, &error)), "%s", error.message);
    pid_t worker = worker_pid();
    kill(worker, SIGSTOP); /* the daemon is there, and no region is ever attached */
    client->answer_ms = 300;
    cr_assert(eq(int, (int)gad_job_wait(job, -1, &error), GAD_OUTCOME_UNKNOWN), "%s",
              error.message);
    cr_assert(strstr(error.message, "'region.attach'") != NULL, "%s", error.message);
    kill(worker, SIGCONT);
    client->answer_ms = 10000;
    gad_job_free(job);
    cr_assert(eq(dbl, ask("sum(a)", p.a), 0), "attached by the next that needs it");
    cr_assert(eq(int, count("regions"), 1), "what was attached too late has gone");
    gad_array_release(to);
    pair_release(p);
}
