#include "daemon/worker/turns/scheduler_internal.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define N_JOBS 9

/* The I/O threads' queues alone: no thread runs, the test is all of them. */
struct fixture {
    struct sched s;
    struct program program;
    struct wjob jobs[N_JOBS];
    struct port ports[N_JOBS]; /* each the one of its job, a file on DISK */
    struct tile *tiles[32];
    unsigned n_tiles;
};

#define DISK 70

static struct fixture *set_up(void)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->s.reads_end = &f->s.reads;
    f->s.closings_end = &f->s.closings;
    f->program.n_inputs = 1;
    for (unsigned i = 0; i < N_JOBS; i++) {
        f->ports[i].array.at.kind = LOCATION_FILE;
        f->ports[i].file.device = DISK;
        f->jobs[i].program = &f->program;
        f->jobs[i].ports = &f->ports[i];
        f->jobs[i].n_ports = 1;
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

Test(pick, leaves_threads_to_other_disks)
{
    struct fixture *f = set_up();
    f->ports[3].file.device = DISK + 1;
    for (unsigned i = 0; i < 9; i++)
        add_read(f, i % 3);
    add_closing(f, 2);
    for (unsigned i = 0; i < SCHED_IO_PER_DISK; i++)
        cr_assert(ne(int, serve(f, i), 0));
    cr_assert(zero(int, serve(f, SCHED_IO_PER_DISK)));
    add_read(f, 3);
    cr_assert(eq(int, serve(f, SCHED_IO_PER_DISK), 1003));
    f->jobs[0].identity.user = 1003;
    f->s.io[SCHED_IO_PER_DISK].device = DISK; /* where it has gone */
    f->s.io[0].is_busy = f->s.io[1].is_busy = false;
    cr_assert(ne(int, serve(f, 0), 0));
    cr_assert(zero(int, serve(f, 1)), "it counts where it is");
    tear_down(f);
}

/* Two disks have all the threads that they may, and reads enough behind them. */
Test(pick, serves_who_needs_two_disks_beside_those_who_need_one)
{
    struct fixture *f = set_up();
    struct port both[2] = {f->ports[0], f->ports[0]};
    both[1].file.device = DISK + 1;
    f->jobs[2].ports = both;
    f->jobs[2].n_ports = 2;
    f->program.n_outputs = 1;
    for (unsigned i = 0; i < 3; i++)
        f->jobs[i].identity.user = 1000;
    f->ports[1].file.device = DISK + 1;
    for (unsigned i = 0; i < 8; i++)
        add_read(f, i % 2);
    for (unsigned i = 0; i < 2 * SCHED_IO_PER_USER; i++)
        cr_assert(eq(int, serve(f, i), 1000));
    add_closing(f, 2);
    cr_assert(zero(int, serve(f, 2 * SCHED_IO_PER_USER)), "of the user's there are enough");
    cr_assert(eq(int, serve(f, 0), -1000));
    tear_down(f);
}

/* Each has its own disk, and none answers. */
Test(pick, leaves_a_thread_to_the_next_user)
{
    struct fixture *f = set_up();
    for (unsigned i = 0; i < N_JOBS - 1; i++) {
        f->ports[i].file.device = DISK + i;
        add_read(f, i);
        add_read(f, i);
    }
    unsigned n = 0;
    while (n < SCHED_N_IO - 1 && serve(f, n) != 0)
        n++;
    cr_assert(ge(uint, n, N_JOBS - 1));
    cr_assert(zero(int, serve(f, n)));
    f->ports[N_JOBS - 1].file.device = DISK + N_JOBS;
    add_read(f, N_JOBS - 1);
    cr_assert(eq(int, serve(f, n), 1000 + N_JOBS - 1));
    tear_down(f);
}

Test(pick, knows_when_a_users_reads_hold_enough_slots)
{
    struct fixture *f = set_up();
    cr_assert(not(sched_reads_are_enough(&f->s, &f->jobs[0], 64)));
    for (unsigned i = 0; i < SCHED_READS_PER_USER; i++)
        add_read(f, 0);
    cr_assert(not(sched_reads_are_enough(&f->s, &f->jobs[0], 64)), "alone it may have more");
    cr_assert(sched_reads_are_enough(&f->s, &f->jobs[0], 2 * SCHED_READS_PER_USER), "but not all");
    struct turn_user users[] = {{.user = 1000}, {.user = 1001, .is_away = true}};
    f->s.users = users;
    f->s.n_users = 2;
    cr_assert(not(sched_reads_are_enough(&f->s, &f->jobs[0], 64)),
              "beside whose jobs are paused, too");
    users[1].is_away = false;
    cr_assert(sched_reads_are_enough(&f->s, &f->jobs[0], 64));
    f->jobs[0].ports = &f->ports[3];
    f->ports[3].array.at.kind = LOCATION_REGION;
    cr_assert(not(sched_reads_are_enough(&f->s, &f->jobs[0], 64)), "what it has in memory goes on");
    f->jobs[0].ports = &f->ports[0];
    cr_assert(not(sched_reads_are_enough(&f->s, &f->jobs[1], 64)));
    cr_assert(eq(int, serve(f, 0), 1000));
    cr_assert(sched_reads_are_enough(&f->s, &f->jobs[0], 64), "those in hand count too");
    add_read(f, 1);
    cr_assert(sched_reads_are_enough(&f->s, &f->jobs[1], 4), "of few slots one");
    f->ports[2].file.device = DISK + 1;
    cr_assert(not(sched_reads_are_enough(&f->s, &f->jobs[2], 4)), "the disk is another");
    add_closing(f, 2);
    cr_assert(eq(int, serve(f, 1), -1002));
    cr_assert(not(sched_reads_are_enough(&f->s, &f->jobs[2], 4)), "closing holds no slot");
    f->jobs[2].identity.user = 1000;
    f->s.n_users = 0;
    cr_assert(not(sched_reads_are_enough(&f->s, &f->jobs[2], 2 * SCHED_READS_PER_USER)),
              "one may wait for it");
    add_read(f, 2);
    cr_assert(sched_reads_are_enough(&f->s, &f->jobs[2], 2 * SCHED_READS_PER_USER),
              "beside half of them for the first");
    tear_down(f);
}

/* Long tiles: spare threads alone, of which 64 compute threads have 128 beside those that are
 * reserved. */
#define N_USERS 7

struct spares {
    struct sched s;
    struct turn_user users[N_USERS];
    struct sched_user_load loads[N_USERS];
    struct wjob jobs[N_USERS];
    struct tile tiles[256];
    unsigned n_tiles;
};

static struct spares *set_up_spares(void)
{
    struct spares *f = calloc(1, sizeof(*f));
    f->s.users = f->users;
    f->s.user_loads = f->loads;
    f->s.n_threads_compute = 64;
    f->s.n_spares = f->s.n_bench = sched_n_spares(64);
    f->s.n_reserved = sched_n_reserved(64);
    f->s.reads_end = &f->s.reads;
    return f;
}

static void user_comes(struct spares *f)
{
    unsigned i = f->s.n_users++;
    f->users[i].user = f->jobs[i].identity.user = 1000 + i;
    f->jobs[i].identity.weight = 1;
    f->jobs[i].state = WJOB_RUNNING;
    f->jobs[i].walk.end_tile = 1;
    f->loads[i].n_jobs = 1;
}

/* As many as may be. */
static unsigned begin_long(struct spares *f, unsigned user)
{
    unsigned n = 0;
    for (; sched_may_begin_long(&f->s, 1000 + user); n++) {
        struct tile *tile = &f->tiles[f->n_tiles++];
        *tile = (struct tile){.job = &f->jobs[user], .is_long = true};
        sched_keep_spare(&f->s, tile);
    }
    return n;
}

Test(pick, long_tiles_of_who_comes_next_find_spare_threads_too)
{
    struct spares *f = set_up_spares();
    unsigned n[N_USERS];
    for (unsigned i = 0; i < N_USERS; i++) {
        user_comes(f);
        n[i] = begin_long(f, i);
        cr_assert(ge(uint, n[i], 1), "user %u", i);
    }
    cr_assert(eq(uint, n[0], 64), "alone he may fill all threads");
    cr_assert(ge(uint, n[2], 16));
    cr_assert(le(uint, f->s.n_kept, f->s.n_bench));
    free(f);
}

Test(pick, a_long_tile_that_waits_for_its_client_keeps_no_spare_thread)
{
    struct spares *f = set_up_spares();
    struct thread_context *th = calloc(1, sizeof(*th));
    f->s.n_spares = f->s.n_bench = 2;
    f->s.n_reserved = 0;
    user_comes(f);
    user_comes(f);
    cr_assert(eq(uint, begin_long(f, 0), 1));
    f->s.n_bench = 1; /* the other one is at somebody else's tile */
    cr_assert(zero(uint, begin_long(f, 1)));
    struct turn turn = {.job = &f->jobs[0], .tile = &f->tiles[0]};
    f->jobs[0].n_in_flight = 1;
    sched_turn_over(&f->s, &turn, th, TILE_NEEDS_CLIENT, 1000);
    cr_assert(zero(uint, f->s.n_kept));
    cr_assert(eq(uint, begin_long(f, 1), 1));
    cr_assert(not(sched_may_begin_long(&f->s, 1000)), "he waits for one before he goes on");
    sched_give_spare_back(&f->s, &f->tiles[1]);
    sched_give_spare_back(&f->s, &f->tiles[1]);
    cr_assert(sched_may_begin_long(&f->s, 1000));
    cr_assert(zero(uint, f->s.n_kept));
    free(th);
    free(f);
}
