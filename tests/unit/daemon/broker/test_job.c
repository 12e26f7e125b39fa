/* Jobs: which moves are allowed, who finds what, and what is kept how long. */
#include "daemon/broker/jobs/job.h"
#include "daemon/broker/jobs/result.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct jobs *jobs;

static void set_up(void)
{
    cr_assert(eq(int, jobs_new(&jobs), 0));
}

static void tear_down(void)
{
    jobs = jobs_free(jobs);
}

static struct job *add(uid_t uid, const char *key)
{
    struct job *job = NULL;
    cr_assert(eq(int, jobs_add(jobs, uid, &job), 0));
    snprintf(job->key, sizeof(job->key), "%s", key);
    job_set_key(jobs, job);
    return job;
}

static void end(struct job *job, size_t n_result_bytes, bool was_fetched, uint64_t now_ns)
{
    job_set_state(job, JOB_RUNNING);
    job_set_state(job, JOB_DONE);
    if (n_result_bytes > 0) {
        char *body = malloc(n_result_bytes);
        job->result = result_new();
        result_fill(job->result, body, n_result_bytes, body, n_result_bytes);
    }
    job->was_fetched = was_fetched;
    job_keep(jobs, job, now_ns);
}

Test(job, only_the_moves_of_the_table_are_allowed)
{
    static const char *const allowed[JOB_N_STATES] = {
        /* to:            Q R S D F C */
        [JOB_QUEUED] = "010011", [JOB_RUNNING] = "101111", [JOB_SETTLING] = "000111",
        [JOB_DONE] = "000000",   [JOB_FAILED] = "000000",  [JOB_CANCELLED] = "000000",
    };
    for (int from = 0; from < JOB_N_STATES; from++)
        for (int to = 0; to < JOB_N_STATES; to++)
            cr_assert(eq(int, job_can_move((enum job_state)from, (enum job_state)to),
                         allowed[from][to] == '1'));
}

/* As fast as a daemon may take them, in the tenth of a second for which it was there. */
Test(job, numbers_are_those_of_no_daemon_before, .init = set_up, .fini = tear_down)
{
    uint64_t last = 0;
    for (int i = 0; i < 2000; i++) {
        struct job *job = add(1, "");
        last = job->id;
        job_discard(jobs, job);
    }
    usleep(100000);
    tear_down();
    set_up();
    struct job *job = add(1, "");
    cr_assert(lt(u64, last, job->id));
    job_discard(jobs, job);
}

Test(job, is_found_by_its_id_inside_its_user_only, .init = set_up, .fini = tear_down)
{
    struct job *first = add(1, ""), *second = add(2, "");

    cr_assert(lt(u64, first->id, second->id));
    cr_assert(eq(ptr, jobs_find(jobs, 1, first->id), first));
    cr_assert(eq(ptr, jobs_find(jobs, 2, first->id), NULL));
    cr_assert(eq(ptr, jobs_find(jobs, 1, 0), NULL));
    cr_assert(eq(ptr, jobs_find(jobs, 1, UINT64_MAX), NULL));
    cr_assert(eq(ptr, jobs_find_any(jobs, second->id), second));
    cr_assert(eq(uint, job_uid(second), 2));
    job_discard(jobs, first);
    job_discard(jobs, second);
    cr_assert(eq(uint, jobs_n_live(jobs), 0));
}

Test(job, a_key_finds_what_is_alive_or_done, .init = set_up, .fini = tear_down)
{
    struct job *job = add(1, "k");

    cr_assert(eq(ptr, jobs_find_key(jobs, 1, "k"), job));
    cr_assert(eq(ptr, jobs_find_key(jobs, 2, "k"), NULL));
    cr_assert(eq(ptr, jobs_find_key(jobs, 1, "other"), NULL));
    job->is_cancelling = true;
    cr_assert(eq(ptr, jobs_find_key(jobs, 1, "k"), NULL));
    job->is_cancelling = false;
    end(job, 10, true, 0);
    cr_assert(eq(ptr, jobs_find_key(jobs, 1, "k"), job));
}

Test(job, the_key_of_one_that_failed_may_be_tried_again, .init = set_up, .fini = tear_down)
{
    struct job *job = add(1, "k");

    job_set_state(job, JOB_FAILED);
    job_keep(jobs, job, 0);
    cr_assert(eq(ptr, jobs_find_key(jobs, 1, "k"), NULL));
    struct job *again = add(1, "k");
    cr_assert(eq(ptr, jobs_find_key(jobs, 1, "k"), again));
    job_discard(jobs, again);
}

Test(job, no_more_than_256_are_kept_for_a_user, .init = set_up, .fini = tear_down)
{
    uint64_t first_id = 0, other_id;

    struct job *other = add(2, "");
    other_id = other->id;
    end(other, 0, true, 0);
    for (unsigned i = 0; i < JOBS_MAX_KEPT + 1; i++) {
        struct job *job = add(1, "");
        if (i == 0)
            first_id = job->id;
        end(job, 0, true, 0);
    }
    cr_assert(eq(uint, jobs_n_kept(jobs), JOBS_MAX_KEPT + 1));
    cr_assert(eq(ptr, jobs_find(jobs, 1, first_id), NULL));
    cr_assert(ne(ptr, jobs_find(jobs, 1, first_id + 1), NULL));
    cr_assert(ne(ptr, jobs_find(jobs, 2, other_id), NULL));
}

/* Who asks late must not lose an outcome to thousands of others' small jobs. */
Test(job, those_that_nobody_was_told_of_stay_longer, .init = set_up, .fini = tear_down)
{
    struct job *first = add(1, ""), *second = add(1, ""), *last = NULL;
    uint64_t first_id = first->id, second_id = second->id;

    end(first, 10, false, 0);
    end(second, 10, false, 0);
    for (unsigned i = 0; i < 3 * JOBS_MAX_KEPT; i++)
        end(add(1, ""), 1, true, 0);
    cr_assert(eq(uint, jobs_n_kept(jobs), JOBS_MAX_KEPT));
    cr_assert(eq(ptr, jobs_find(jobs, 1, first_id), first));
    job_fetched(second);
    for (unsigned i = 0; i < JOBS_MAX_KEPT; i++)
        end(add(1, ""), 1, true, 0);
    cr_assert(eq(ptr, jobs_find(jobs, 1, first_id), first));
    cr_assert(eq(ptr, jobs_find(jobs, 1, second_id), NULL));

    for (unsigned i = 0; i < JOBS_UNTOLD_FACTOR * JOBS_MAX_KEPT; i++)
        end(add(1, ""), 0, false, 0);
    cr_assert(eq(uint, jobs_n_kept(jobs), JOBS_UNTOLD_FACTOR * JOBS_MAX_KEPT));
    cr_assert(eq(ptr, jobs_find(jobs, 1, first_id), NULL));
    last = add(1, "");
    end(last, 1, true, 0); /* one that was told of is not dropped in its caller's hands */
    cr_assert(eq(ptr, jobs_find(jobs, 1, last->id), last));
}

Test(job, fewer_are_kept_once_the_limit_is_lower, .init = set_up, .fini = tear_down)
{
    const struct jobs_limits lower = {.max_kept = 3, .kept_ns = 5000, .unread_bytes = 80};

    for (unsigned i = 0; i < 10; i++)
        end(add(1, ""), 20, true, 1000);
    jobs_set_limits(jobs, &lower);
    cr_assert(eq(uint, jobs_n_kept(jobs), 10));
    struct job *last = add(1, "");
    end(last, 61, true, 2000);
    cr_assert(eq(uint, jobs_n_kept(jobs), 3));
    cr_assert(ne(ptr, (void *)last->result, NULL)); /* the oldest results went */
    jobs_expire(jobs, 5999);
    cr_assert(eq(uint, jobs_n_kept(jobs), 3));
    jobs_expire(jobs, 6000);
    cr_assert(eq(uint, jobs_n_kept(jobs), 1));
}

Test(job, records_go_after_ten_minutes, .init = set_up, .fini = tear_down)
{
    end(add(1, ""), 5, true, 1000);
    end(add(1, ""), 5, false, 2000);
    jobs_expire(jobs, JOBS_KEPT_NS + 999);
    cr_assert(eq(uint, jobs_n_kept(jobs), 2));
    jobs_expire(jobs, JOBS_KEPT_NS + 1000);
    cr_assert(eq(uint, jobs_n_kept(jobs), 1));
    jobs_expire(jobs, UINT64_MAX);
    cr_assert(eq(uint, jobs_n_kept(jobs), 0));
}

Test(job, results_that_were_fetched_go_first_and_the_record_stays, .init = set_up,
     .fini = tear_down)
{
    struct job *unread = add(1, ""), *fetched = add(1, "");

    end(unread, 2 * JOBS_FETCHED_BYTES, false, 0);
    end(fetched, JOBS_FETCHED_BYTES, true, 0);
    cr_assert(ne(ptr, (void *)fetched->result, NULL));
    struct job *next = add(1, "");
    end(next, 1, true, 0);
    cr_assert(eq(ptr, (void *)fetched->result, NULL));
    cr_assert(ne(ptr, (void *)next->result, NULL));
    cr_assert(ne(ptr, (void *)unread->result, NULL));
    job_fetched(unread);
    cr_assert(eq(ptr, (void *)next->result, NULL));
    cr_assert(ne(ptr, (void *)unread->result, NULL));
    cr_assert(eq(uint, jobs_n_kept(jobs), 3));
}

Test(job, results_that_nobody_fetches_are_bounded_too, .init = set_up, .fini = tear_down)
{
    struct job *first = add(1, ""), *second = add(1, ""), *third = add(1, "");

    end(first, JOBS_UNREAD_BYTES / 2, false, 0);
    end(second, JOBS_UNREAD_BYTES / 2, false, 0);
    cr_assert(ne(ptr, (void *)first->result, NULL));
    end(third, 1, false, 0);
    cr_assert(eq(ptr, (void *)first->result, NULL));
    cr_assert(ne(ptr, (void *)second->result, NULL));
}

static uint64_t second_id;

static bool count(void *userdata, const struct job *job)
{
    uint64_t *last = userdata;
    cr_assert(lt(u64, job->id, *last));
    *last = job->id;
    return job->id > second_id;
}

Test(job, a_list_is_the_users_own_latest_first, .init = set_up, .fini = tear_down)
{
    uint64_t last = UINT64_MAX;

    for (unsigned i = 0; i < 3; i++) {
        struct job *job = add(1, "");
        second_id = i == 1 ? job->id : second_id;
        end(job, 0, true, 0);
    }
    struct job *foreign = add(2, ""), *live = add(1, "");
    jobs_for_each(jobs, 1, count, &last);
    cr_assert(eq(u64, last, second_id));
    jobs_for_each(jobs, 77, count, &last);
    job_discard(jobs, foreign);
    job_discard(jobs, live);
}

/* A user who holds a number of the daemon before must not get another job by it. */
Test(job, ids_begin_above_those_of_a_registry_before, .init = set_up, .fini = tear_down)
{
    struct jobs *later;
    struct job *first = add(1, ""), *second;

    usleep(20000);
    cr_assert(eq(int, jobs_new(&later), 0));
    cr_assert(eq(int, jobs_add(later, 1, &second), 0));
    cr_assert(lt(u64, first->id, second->id));
    cr_assert(lt(u64, second->id, UINT64_C(100000000000)));
    job_discard(later, second);
    jobs_free(later);
    job_discard(jobs, first);
}
