/* The queue of jobs that the main thread has not come to: users by time, a user's own by priority.
 */
#include "daemon/worker/turns/starts.h"
#include "proto/wire/pack.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

static struct starts *starts;
static uint64_t n_jobs;

static void set_up(void)
{
    cr_assert(zero(int, starts_new(&starts)));
    n_jobs = 0;
}

static void tear_down(void)
{
    cr_assert(starts_are_empty(starts));
    starts = starts_free(starts);
}

TestSuite(starts, .init = set_up, .fini = tear_down);

/* A job.start as the broker sends it; its id. */
static uint64_t add(uint32_t user, int priority)
{
    struct message_writer writer;
    struct frame frame = {.body = NULL};
    struct message message;
    struct gad_error error;
    bool has_id;
    message_writer_init(&writer);
    message_begin_request(&writer, 1, "job.start");
    msgpack_packer *p = &writer.packer;
    msgpack_pack_map(p, 3);
    pack_key_u64(p, "job", ++n_jobs);
    pack_key_u64(p, "user", user);
    msgpack_pack_str_with_body(p, "priority", 8);
    msgpack_pack_int(p, priority);
    frame.size_bytes = (uint32_t)writer.buffer.size;
    frame.body = malloc(frame.size_bytes);
    memcpy(frame.body, writer.buffer.data, frame.size_bytes);
    message_writer_deinit(&writer);
    cr_assert(zero(int, message_decode(frame.body, frame.size_bytes, &message, &has_id, &error)));
    cr_assert(zero(int, starts_add(starts, &frame, &message, &error)));
    cr_assert(zero(ptr, frame.body), "taken");
    message_deinit(&message);
    return n_jobs;
}

/* The id of the next job, which takes so long. */
static uint64_t next(double seconds)
{
    struct start *start = starts_next(starts);
    if (!start)
        return 0;
    uint64_t id = start->identity.id;
    starts_charge(starts, &start->identity, seconds);
    start_free(start);
    return id;
}

Test(starts, one_job_waits_for_one_of_anothers_three_hundred)
{
    for (unsigned i = 0; i < 300; i++)
        add(1000, 0);
    cr_assert(eq(u64, next(0.002), 1));
    uint64_t mine = add(1001, 0);
    unsigned n_before = 0;
    while (next(0.002) != mine)
        n_before++;
    cr_assert(le(uint, n_before, 1));
    while (next(0.002))
        ;
}

Test(starts, users_share_the_time_not_the_number)
{
    unsigned n[2] = {0};
    for (unsigned i = 0; i < 400; i++)
        add(1000 + i % 2, 0); /* odd ids are the first user's */
    for (unsigned i = 0; i < 220; i++) {
        struct start *start = starts_next(starts);
        unsigned which = start->identity.user - 1000;
        n[which]++;
        starts_charge(starts, &start->identity, which ? 0.001 : 0.01);
        start_free(start);
    }
    cr_assert(ge(uint, n[1], 195));
    cr_assert(ge(uint, n[0], 19));
    while (next(0))
        ;
}

/* One user's jobs take ten times as long as the other's; he sends one after the other. */
Test(starts, whoever_sends_one_at_a_time_is_charged_too)
{
    unsigned n_of_one = 0, n_of_many = 0;
    uint64_t one = 0;
    for (unsigned i = 0; i < 300; i++)
        add(1001, 0);
    for (unsigned i = 0; i < 220; i++) {
        if (one == 0)
            one = add(1000, 0);
        struct start *start = starts_next(starts);
        bool is_of_one = start->identity.id == one;
        starts_charge(starts, &start->identity, is_of_one ? 0.01 : 0.001);
        start_free(start);
        n_of_one += is_of_one;
        n_of_many += !is_of_one;
        one = is_of_one ? 0 : one;
    }
    cr_assert(ge(uint, n_of_many, 195));
    cr_assert(ge(uint, n_of_one, 19));
    while (next(0))
        ;
}

Test(starts, nobody_is_remembered_when_nobody_waits)
{
    uint64_t other;
    add(1000, 0);
    (void)next(100);
    other = add(1001, 0);
    uint64_t again = add(1000, 0);
    cr_assert(eq(u64, next(1), other));
    cr_assert(eq(u64, next(1), again), "ahead by nothing of what was before");
    add(1001, 0);
    cr_assert(ne(u64, next(1), 0));
}

Test(starts, time_in_which_a_user_was_away_is_not_saved)
{
    for (unsigned i = 0; i < 20; i++)
        add(1000, 0);
    add(1001, 0);
    (void)next(1);
    (void)next(5); /* 1001's, who is ahead by 4 and is away then */
    for (unsigned i = 0; i < 10; i++)
        (void)next(1);
    uint64_t a = add(1001, 0), b = add(1001, 0);
    unsigned n_before = 0;
    while (next(1) != a)
        n_before++;
    cr_assert(le(uint, n_before, 1));
    for (n_before = 0; next(1) != b; n_before++)
        ;
    cr_assert(ge(uint, n_before, 1), "he begins at the least, not behind what he has not used");
    while (next(1))
        ;
}

Test(starts, of_a_user_by_priority_and_then_in_order)
{
    uint64_t a = add(7, 0), b = add(7, 5), c = add(7, 0), d = add(7, 5), e = add(7, -1);
    cr_assert(eq(u64, next(1), b));
    cr_assert(eq(u64, next(1), d));
    cr_assert(eq(u64, next(1), a));
    cr_assert(eq(u64, next(1), c));
    cr_assert(eq(u64, next(1), e));
    cr_assert(zero(u64, next(1)));
}

Test(starts, one_is_taken_out_wherever_it_is)
{
    uint64_t a = add(7, 0), b = add(7, 0), c = add(8, 0);
    struct start *start = starts_take(starts, b);
    cr_assert(eq(u64, start->identity.id, b));
    start_free(start);
    cr_assert(zero(ptr, starts_take(starts, b)));
    start_free(starts_take(starts, c));
    cr_assert(eq(u64, next(1), a));
}

Test(starts, what_is_left_is_freed)
{
    struct starts *own = starts;
    for (unsigned i = 0; i < 20; i++)
        add(i, 0);
    starts_free(own);
    cr_assert(zero(int, starts_new(&starts)));
}

Test(starts, a_weight_counts_for_those_that_wait_already)
{
    unsigned n[2] = {0};
    for (unsigned i = 0; i < 400; i++)
        add(1000 + i % 2, 0); /* odd ids are the first user's */
    starts_set_weight(starts, 1000, 4);
    starts_set_weight(starts, 4242, 4); /* who has none */
    for (unsigned i = 0; i < 200; i++) {
        struct start *start = starts_next(starts);
        n[start->identity.user - 1000]++;
        starts_charge(starts, &start->identity, 0.001);
        start_free(start);
    }
    cr_assert(ge(uint, n[0], 158));
    cr_assert(le(uint, n[0], 162));
    while (next(0))
        ;
}

Test(starts, a_job_may_be_paused_before_it_begins)
{
    uint64_t id = add(1000, 0);
    cr_assert(starts_pause(starts, id, true));
    cr_assert(not(starts_pause(starts, id + 1, true)));
    struct start *start = starts_next(starts);
    cr_assert(start->identity.is_paused);
    starts_charge(starts, &start->identity, 0);
    start_free(start);
}
