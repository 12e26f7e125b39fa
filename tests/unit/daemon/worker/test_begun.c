/* What the main thread does to begin a job, as the broker sees it in the crash page. */
#include "daemon/crashpage.h"
#include "tests/unit/daemon/worker/harness.h"

#include <string.h>

#define EXPR_BYTES (1u << 14)
#define N_TRIALS   20000 /* on a busy machine the observer runs seldom */

/* Its compilation takes a while. It is refused in the end: the last name is nobody's. */
static void make_costly(struct test_job *j, uint64_t id, char *expr)
{
    size_t n = 0;
    job_init(j, id);
    job_scalar(j, "a", 1);
    while (n < EXPR_BYTES - 32)
        n += (size_t)sprintf(expr + n, "sin(a+%zu)+", n);
    strcpy(expr + n, "b");
    job_output(j, expr, "");
}

struct observer {
    const struct crashpage_thread *main;
    pthread_t thread;
    _Atomic bool is_over;
    _Atomic uint64_t job;
};

static void *observe(void *argument)
{
    struct observer *o = argument;
    while (!o->is_over && o->job == 0)
        atomic_store(&o->job, atomic_load(&o->main->job));
    return NULL;
}

Test(begun, the_job_that_is_compiled_is_in_the_crash_page)
{
    struct harness h;
    struct test_job j;
    struct outcome answer;
    char *expr = malloc(EXPR_BYTES);
    harness_start(&h, 2 * 1024 * 1024, 1);
    struct observer o = {.main = &h.page->threads[0]};
    cr_assert(zero(int, pthread_create(&o.thread, NULL, observe, &o)));
    for (unsigned i = 0; i < N_TRIALS && o.job == 0; i++) {
        make_costly(&j, 77, expr);
        harness_run(&h, &j, &answer);
        cr_assert(eq(int, answer.status, GAD_UNKNOWN_NAME), "%s", answer.error.message);
        outcome_free(&answer);
    }
    o.is_over = true;
    pthread_join(o.thread, NULL);
    cr_assert(eq(u64, o.job, 77));
    (void)harness_stat(&h, "jobs"); /* what comes next is answered when it is put down */
    cr_assert(zero(u64, atomic_load(&h.page->threads[0].job)));
    harness_stop(&h);
    free(expr);
}
