#include "daemon/worker/scheduler_internal.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

/* The I/O threads' queues alone: no thread runs, the test is all of them. */
struct fixture {
    struct sched s;
    struct wjob jobs[4];
    struct tile *tiles[8];
    unsigned n_tiles;
};

static struct fixture *set_up(void)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->s.reads_end = &f->s.reads;
    f->s.closings_end = &f->s.closings;
    for (unsigned i = 0; i < 4; i++) {
        f->jobs[i].identity.user = 1000 + i;
        f->jobs[i].identity.id = 1 + i;
    }
    return f;
}

static void tear_down(struct fixture *f)
{
    for (unsigned i = 0; i < f->n_tiles; i++)
        free(f->tiles[i]);
    free(f);
}

static void add_read(struct fixture *f, unsigned job)
{
    struct tile *tile = calloc(1, sizeof(*tile));
    f->tiles[f->n_tiles++] = tile;
    tile->job = &f->jobs[job];
    *f->s.reads_end = tile;
    f->s.reads_end = &tile->next;
}

static void add_closing(struct fixture *f, unsigned job)
{
    *f->s.closings_end = &f->jobs[job];
    f->s.closings_end = &f->jobs[job].next;
}

/* The user that the thread would serve, 0: none; negative: it closes. */
static int serve(struct fixture *f, unsigned io_index)
{
    struct io_work work;
    f->s.io[io_index].is_busy = false;
    if (!sched_pick_io(&f->s, io_index, &work))
        return 0;
    return work.read ? (int)work.read->job->identity.user : -(int)work.closing->identity.user;
}

Test(pick, closes_before_it_reads_so_that_no_reply_waits_for_long_reading)
{
    struct fixture *f = set_up();
    add_read(f, 0);
    add_read(f, 0);
    add_closing(f, 0);
    add_closing(f, 1);
    cr_assert(eq(int, serve(f, 0), -1000));
    cr_assert(eq(int, serve(f, 0), -1001));
    cr_assert(eq(int, serve(f, 0), 1000));
    cr_assert(eq(int, serve(f, 1), 1000));
    cr_assert(eq(int, serve(f, 2), 0));
    tear_down(f);
}

Test(pick, gives_a_user_only_some_of_the_threads)
{
    struct fixture *f = set_up();
    for (unsigned i = 0; i < 3; i++)
        add_read(f, 0);
    add_closing(f, 0);
    cr_assert(eq(int, serve(f, 0), -1000));
    cr_assert(eq(int, serve(f, 1), 1000));
    cr_assert(eq(int, serve(f, 2), 0));
    add_read(f, 1);
    cr_assert(eq(int, serve(f, 2), 1001));
    tear_down(f);
}

Test(pick, reads_for_the_user_who_has_the_fewest_threads)
{
    struct fixture *f = set_up();
    for (unsigned i = 0; i < 3; i++)
        add_read(f, 0);
    for (unsigned i = 0; i < 3; i++)
        add_read(f, 1);
    cr_assert(eq(int, serve(f, 0), 1000));
    cr_assert(eq(int, serve(f, 1), 1001));
    cr_assert(eq(int, serve(f, 2), 1000));
    cr_assert(eq(int, serve(f, 3), 1001));
    add_read(f, 2);
    cr_assert(eq(int, serve(f, 0), 1002), "not behind all that the others want");
    tear_down(f);
}

Test(pick, knows_when_a_users_reads_hold_enough_slots)
{
    struct fixture *f = set_up();
    cr_assert(not(sched_reads_are_enough(&f->s, 1000, 64)));
    for (unsigned i = 0; i < SCHED_READS_PER_USER; i++)
        add_read(f, 0);
    cr_assert(not(sched_reads_are_enough(&f->s, 1000, 64)), "alone it may have all");
    f->s.n_users = 2;
    cr_assert(sched_reads_are_enough(&f->s, 1000, 64));
    cr_assert(not(sched_reads_are_enough(&f->s, 1001, 64)));
    cr_assert(eq(int, serve(f, 0), 1000));
    cr_assert(sched_reads_are_enough(&f->s, 1000, 64), "those in hand count too");
    add_read(f, 1);
    cr_assert(sched_reads_are_enough(&f->s, 1001, 4), "of few slots one");
    add_closing(f, 2);
    cr_assert(eq(int, serve(f, 1), -1002));
    cr_assert(not(sched_reads_are_enough(&f->s, 1002, 4)), "closing holds no slot");
    tear_down(f);
}
