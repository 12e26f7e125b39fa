/* The loop: work in a thread of its own, which never holds up what the loop does. */
#include "daemon/broker/loop.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static struct loop *loop;
static pthread_t worked, loop_thread;
static unsigned n_done;
static int ends[2];

static void set_up(void)
{
    cr_assert(eq(int, loop_new(&loop), 0));
    cr_assert(eq(int, pipe(ends), 0));
    loop_thread = pthread_self();
}

static void work(void *userdata)
{
    (void)userdata;
    worked = pthread_self();
}

static void wait_for_pipe(void *userdata)
{
    char c;
    (void)userdata;
    if (read(ends[0], &c, 1) < 0)
        n_done = 1000;
}

static void done(void *userdata)
{
    n_done++;
    if (pthread_equal(pthread_self(), loop_thread))
        loop_stop(userdata);
}

Test(loop, work_is_done_elsewhere_and_answered_here, .init = set_up, .timeout = 10)
{
    cr_assert(eq(int, loop_work(loop, work, done, loop), 0));
    cr_assert(eq(int, loop_run(loop), 0));
    cr_assert(eq(uint, n_done, 1));
    cr_assert(not(pthread_equal(worked, loop_thread)));
    cr_assert(eq(ptr, loop_free(loop), NULL));
}

static unsigned n_ticks;

static void tick(struct deadline *deadline)
{
    if (++n_ticks == 5) {
        cr_assert(eq(uint, n_done, 0)); /* it still waits */
        cr_assert(eq(int, (int)write(ends[1], "x", 1), 1));
        return;
    }
    deadline_set(loop_deadlines(loop), deadline, loop_now_ns() + 1000000, tick);
}

Test(loop, turns_while_work_waits, .init = set_up, .timeout = 10)
{
    struct deadline deadline = {0};
    cr_assert(eq(int, loop_work(loop, wait_for_pipe, done, loop), 0));
    deadline_set(loop_deadlines(loop), &deadline, loop_now_ns(), tick);
    cr_assert(eq(int, loop_run(loop), 0));
    cr_assert(eq(uint, n_ticks, 5));
    cr_assert(eq(uint, n_done, 1));
    cr_assert(eq(ptr, loop_free(loop), NULL));
}

Test(loop, its_end_waits_for_work_that_is_nearly_done, .init = set_up, .timeout = 10)
{
    cr_assert(eq(int, loop_work(loop, work, done, loop), 0));
    cr_assert(loop_finish_work(loop));
    cr_assert(eq(uint, n_done, 1));
    cr_assert(eq(ptr, loop_free(loop), NULL));
}

Test(loop, its_end_does_not_wait_for_work_that_is_stuck, .init = set_up, .timeout = 10)
{
    uint64_t before_ns = loop_now_ns();
    cr_assert(eq(int, loop_work(loop, wait_for_pipe, done, loop), 0));
    cr_assert(not(loop_finish_work(loop)));
    cr_assert(eq(uint, n_done, 0));
    cr_assert(lt(u64, loop_now_ns() - before_ns, UINT64_C(5000000000)));
    cr_assert(eq(int, (int)write(ends[1], "x", 1), 1)); /* for the next call */
    cr_assert(loop_finish_work(loop));
    cr_assert(eq(uint, n_done, 1));
    cr_assert(eq(ptr, loop_free(loop), NULL));
}
