/* Strikes: who is to blame for a worker's end. */
#include "daemon/broker/workers/strikes.h"
#include "daemon/worker_exit.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

static const struct hang_limits limits = {.computing_ns = 60 * SECOND, .blocking_ns = 600 * SECOND};

static struct crashpage *new_page(unsigned n_threads)
{
    struct crashpage *page = calloc(1, sizeof(*page));
    atomic_store(&page->n_threads, n_threads);
    return page;
}

static unsigned judge(const struct crashpage *page, struct death death, uint64_t *jobs)
{
    return strikes_judge(page, &death, 1000 * SECOND, &limits, jobs, 8);
}

Test(strikes, faults_count_and_what_comes_from_outside_does_not)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    static const int outside[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP};

    for (unsigned i = 0; i < 5; i++)
        cr_assert(strikes_count(&(struct death){.term_signal = own[i]}));
    for (unsigned i = 0; i < 4; i++)
        cr_assert(not(strikes_count(&(struct death){.term_signal = outside[i]})));
    cr_assert(strikes_count(&(struct death){.term_signal = SIGKILL, .was_hanging = true}));
    cr_assert(not(strikes_count(&(struct death){.term_signal = SIGKILL, .was_bad_peer = true})));
    cr_assert(strikes_count(&(struct death){.exit_code = 1}));
    cr_assert(not(strikes_count(&(struct death){.exit_code = 0})));
}

Test(strikes, all_are_suspects_where_no_tile_was_in_hand)
{
    cr_assert(strikes_all(&(struct death){.term_signal = SIGSEGV}, 0));
    cr_assert(strikes_all(&(struct death){.exit_code = 1}, 0));
    cr_assert(strikes_all(&(struct death){.term_signal = SIGKILL, .was_bad_peer = true}, 0));
    cr_assert(not(strikes_all(&(struct death){.term_signal = SIGSEGV}, 1)));
    cr_assert(not(strikes_all(&(struct death){.term_signal = SIGKILL}, 0)));
    cr_assert(not(strikes_all(&(struct death){.term_signal = SIGTERM}, 0)));
    cr_assert(not(strikes_all(&(struct death){.exit_code = 0}, 0)));
    /* The tile that hung ended before the worker did. */
    cr_assert(not(strikes_all(&(struct death){.term_signal = SIGKILL, .was_hanging = true}, 0)));
}

Test(strikes, a_device_that_is_not_there_is_nobodys_fault)
{
    const struct death absent = {.exit_code = WORKER_EXIT_ABSENT};
    const struct death no_memory = {.exit_code = WORKER_EXIT_NO_MEMORY};

    cr_assert(not(strikes_count(&absent)));
    cr_assert(not(strikes_count(&no_memory)));
    cr_assert(not(strikes_all(&absent, 0)));
    cr_assert(not(strikes_all(&no_memory, 0)));
}

Test(strikes, a_device_that_faults_strikes_only_what_was_in_hand)
{
    const struct death fault = {.exit_code = WORKER_EXIT_FAULT};
    struct crashpage *page = new_page(2);
    uint64_t jobs[8];
    char text[64];

    cr_assert(strikes_count(&fault));
    cr_assert(not(strikes_all(&fault, 0)));
    crashpage_enter(&page->threads[1], 7, 3, SECOND, CRASHPAGE_COMPUTING);
    cr_assert(eq(uint, judge(page, fault, jobs), 1));
    cr_assert(eq(u64, jobs[0], 7));
    strikes_describe(&fault, text, sizeof(text));
    cr_assert(eq(str, text, "a fault of the device"));
    free(page);
}

Test(strikes, every_job_with_a_tile_in_hand_gets_one_once)
{
    struct crashpage *page = new_page(4);
    uint64_t jobs[8];

    crashpage_enter(&page->threads[0], 5, 1, SECOND, CRASHPAGE_COMPUTING);
    crashpage_enter(&page->threads[1], 6, 0, SECOND, CRASHPAGE_BLOCKING);
    crashpage_enter(&page->threads[3], 5, 2, SECOND, CRASHPAGE_COMPUTING);
    cr_assert(eq(uint, judge(page, (struct death){.term_signal = SIGSEGV}, jobs), 2));
    cr_assert(eq(u64, jobs[0], 5));
    cr_assert(eq(u64, jobs[1], 6));
    cr_assert(eq(uint, judge(page, (struct death){.term_signal = SIGKILL}, jobs), 0));
    free(page);
}

Test(strikes, a_signal_from_outside_is_nobodys)
{
    struct crashpage *page = new_page(2);
    uint64_t jobs[8];
    char text[64];

    crashpage_enter(&page->threads[0], 5, 1, SECOND, CRASHPAGE_COMPUTING);
    cr_assert(not(strikes_was_sent(page, SIGSEGV)));
    atomic_store(&page->sent_signal, SIGSEGV);
    cr_assert(strikes_was_sent(page, SIGSEGV));
    cr_assert(not(strikes_was_sent(page, SIGBUS))); /* it ended by another */
    cr_assert(not(strikes_was_sent(page, 0)));
    const struct death death = {.term_signal = SIGSEGV, .was_sent = true};
    cr_assert(not(strikes_count(&death)));
    cr_assert(not(strikes_all(&death, 0)));
    cr_assert(eq(uint, judge(page, death, jobs), 0));
    cr_assert(ne(ptr, strstr(strikes_describe(&death, text, 64), "from outside"), NULL));
    free(page);
}

Test(strikes, only_the_job_whose_thread_faulted_gets_one)
{
    struct crashpage *page = new_page(3);
    uint64_t jobs[8];

    crashpage_enter(&page->threads[0], 5, 1, SECOND, CRASHPAGE_COMPUTING);
    crashpage_enter(&page->threads[1], 6, 1, SECOND, CRASHPAGE_COMPUTING);
    crashpage_enter(&page->threads[2], 7, 1, SECOND, CRASHPAGE_BLOCKING);
    atomic_store(&page->threads[1].fault_signal, SIGILL);
    cr_assert(eq(uint, judge(page, (struct death){.term_signal = SIGILL}, jobs), 1));
    cr_assert(eq(u64, jobs[0], 6));
    /* It went on, and another signal ended the worker. */
    cr_assert(eq(uint, judge(page, (struct death){.term_signal = SIGABRT}, jobs), 3));
    free(page);
}

Test(strikes, a_thread_that_faults_without_a_tile_leaves_all_as_suspects)
{
    struct crashpage *page = new_page(3);
    uint64_t jobs[8];

    crashpage_enter(&page->threads[1], 6, 1, SECOND, CRASHPAGE_COMPUTING);
    crashpage_enter(&page->threads[2], 7, 1, SECOND, CRASHPAGE_COMPUTING);
    atomic_store(&page->threads[0].fault_signal, SIGSEGV);
    cr_assert(eq(uint, judge(page, (struct death){.term_signal = SIGSEGV}, jobs), 2));
    free(page);
}

Test(strikes, idle_threads_and_those_beyond_the_count_have_nothing_in_hand)
{
    struct crashpage *page = new_page(2);
    uint64_t jobs[8];

    crashpage_enter(&page->threads[0], 5, 1, SECOND, CRASHPAGE_COMPUTING);
    crashpage_leave(&page->threads[0]);
    crashpage_enter(&page->threads[2], 6, 1, SECOND, CRASHPAGE_COMPUTING);
    cr_assert(eq(uint, judge(page, (struct death){.term_signal = SIGBUS}, jobs), 0));
    free(page);
}

Test(strikes, a_count_of_threads_that_makes_no_sense_is_cut)
{
    struct crashpage *page = new_page(UINT32_MAX);
    uint64_t jobs[8];

    crashpage_enter(&page->threads[CRASHPAGE_MAX_THREADS - 1], 9, 1, SECOND, CRASHPAGE_COMPUTING);
    cr_assert(eq(uint, judge(page, (struct death){.term_signal = SIGBUS}, jobs), 1));
    free(page);
}

Test(strikes, no_more_jobs_than_there_is_room_for)
{
    struct crashpage *page = new_page(20);
    uint64_t jobs[8];

    for (unsigned i = 0; i < 20; i++)
        crashpage_enter(&page->threads[i], i + 1, 0, SECOND, CRASHPAGE_COMPUTING);
    cr_assert(eq(uint, judge(page, (struct death){.term_signal = SIGBUS}, jobs), 8));
    free(page);
}

static bool hangs(uint64_t since_ns, uint64_t used_ns, uint64_t used_since_ns,
                  enum crashpage_state state)
{
    struct crashpage_thread thread = {0};
    crashpage_enter(&thread, 5, 1, since_ns, state);
    crashpage_use(&thread, used_since_ns, used_ns);
    return strikes_is_hanging(&thread, 1000 * SECOND, &limits);
}

Test(strikes, a_thread_that_gets_no_processor_does_not_hang)
{
    const uint64_t since = 700 * SECOND; /* 300 s ago */

    cr_assert(not(hangs(since, 59 * SECOND, since, CRASHPAGE_COMPUTING)));
    cr_assert(hangs(since, 61 * SECOND, since, CRASHPAGE_COMPUTING));
    cr_assert(not(hangs(since, 61 * SECOND, since - 1, CRASHPAGE_COMPUTING)), "of another tile");
    cr_assert(hangs(300 * SECOND, 0, 300 * SECOND, CRASHPAGE_COMPUTING), "stuck in the kernel");
    cr_assert(hangs(since, 0, 0, CRASHPAGE_WITH_DEVICE), "whose time nobody else takes");
    cr_assert(not(hangs(since, 0, 0, CRASHPAGE_BLOCKING)));
}

Test(strikes, a_hang_is_blamed_on_who_hangs_alone)
{
    struct crashpage *page = new_page(4);
    uint64_t jobs[8], now = 1000 * SECOND;

    crashpage_enter(&page->threads[0], 5, 1, now - 61 * SECOND, CRASHPAGE_COMPUTING);
    crashpage_use(&page->threads[0], now - 61 * SECOND, 59 * SECOND);
    crashpage_enter(&page->threads[1], 6, 1, now - 62 * SECOND, CRASHPAGE_COMPUTING);
    crashpage_use(&page->threads[1], now - 62 * SECOND, 61 * SECOND);
    crashpage_enter(&page->threads[2], 7, 1, now - 61 * SECOND, CRASHPAGE_BLOCKING);
    cr_assert(strikes_any_hanging(page, now, &limits));
    cr_assert(eq(uint, judge(page, (struct death){.was_hanging = true}, jobs), 1));
    cr_assert(eq(u64, jobs[0], 6));
    free(page);
}

Test(strikes, system_calls_may_take_longer_but_not_for_ever)
{
    struct crashpage *page = new_page(1);
    uint64_t now = 1000 * SECOND;

    crashpage_enter(&page->threads[0], 5, 1, now - 599 * SECOND, CRASHPAGE_BLOCKING);
    cr_assert(not(strikes_any_hanging(page, now, &limits)));
    crashpage_enter(&page->threads[0], 5, 1, now - 601 * SECOND, CRASHPAGE_BLOCKING);
    cr_assert(strikes_any_hanging(page, now, &limits));
    crashpage_leave(&page->threads[0]);
    cr_assert(not(strikes_any_hanging(page, now, &limits)));
    crashpage_enter(&page->threads[0], 5, 1, now + SECOND, CRASHPAGE_COMPUTING);
    cr_assert(not(strikes_any_hanging(page, now, &limits)));
    free(page);
}

Test(strikes, an_end_is_described)
{
    char text[64];

    cr_assert(
        ne(ptr,
           strstr(strikes_describe(&(struct death){.term_signal = SIGSEGV}, text, 64), "signal 11"),
           NULL));
    cr_assert(eq(str, (char *)strikes_describe(&(struct death){.exit_code = 3}, text, 64),
                 "exit status 3"));
}
