/* A tile that was being added to its output when everything ended: what of the output a job that
 * goes on believes. One job is run to its end; then its journal is set back to where the tile was
 * not in the output yet, and the output is given pieces of what was there before and after. */
#include "daemon/worker/walks/journal_file.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "tests/unit/daemon/worker/harness.h"

#include <string.h>

#define N       64
#define BYTES   (N * N * sizeof(double))
#define PIECE   (BYTES / JOURNAL_N_PIECES)
#define MIB     (1024u * 1024u)
#define NEW(i)  (UINT32_C(1) << (i))
#define ALL_NEW ((UINT32_C(1) << JOURNAL_N_PIECES) - 1)

struct fixture {
    struct harness h;
    double a[N * N], b[N * N], before[N * N], after[N * N];
    int fd, journal_fd;
};

/* The state that it found the journal in, or the status of the refusal. */
static int run_job(struct fixture *f, const char *expected_state)
{
    const int64_t shape[] = {N, N};
    struct test_job j;
    struct outcome o;
    job_init(&j, 1);
    at_inline(job_arg(&j, "a", DTYPE_FLOAT64, 2, shape), f->a, BYTES);
    at_inline(job_arg(&j, "b", DTYPE_FLOAT64, 2, shape), f->b, BYTES);
    at_file(&j, job_arg(&j, "c", DTYPE_FLOAT64, 2, shape), f->fd, 0);
    at_file(&j, job_output_to(&j, "a @ b + c", "c", DTYPE_FLOAT64, 2, shape), f->fd, 0);
    j.request.has_journal = true;
    j.request.journal_fd_index = j.n_fds;
    j.fds[j.n_fds++] = f->journal_fd;
    j.in_place = j.needs_carry = true;
    j.carry_bytes = MIB;
    harness_run(&f->h, &j, &o);
    int status = o.status;
    if (status == 0) {
        const msgpack_object *state = map_find(&o.message.result, "journal");
        cr_assert(state && state->type == MSGPACK_OBJECT_STR);
        cr_assert(zero(int, memcmp(state->via.str.ptr, expected_state, state->via.str.size)));
    }
    outcome_free(&o);
    return status;
}

static void read_output(const struct fixture *f, double *values)
{
    cr_assert(eq(i64, pread(f->fd, values, BYTES, 0), BYTES));
}

static struct fixture *set_up(void)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct journal_front front;
    for (unsigned i = 0; i < N * N; i++) {
        f->a[i] = i % 7;
        f->b[i] = i % 5 + 1;
        f->before[i] = i + 0.5;
    }
    f->fd = make_file(f->before, BYTES);
    f->journal_fd = make_file("", 0);
    harness_start(&f->h, 4 * MIB, 1);
    cr_assert(zero(int, run_job(f, "new")));
    read_output(f, f->after);
    cr_assert(eq(i64, pread(f->journal_fd, &front, sizeof(front), 0), sizeof(front)));
    cr_assert(eq(u64, front.head.n_tiles, 1));
    cr_assert(eq(u64, front.head.n_cells, 1), "pieces are where they are thought to be");
    return f;
}

static void tear_down(struct fixture *f)
{
    harness_stop(&f->h);
    close(f->fd);
    close(f->journal_fd);
    free(f);
}

/* The tile is logged and not applied; the output has these pieces of it, the others as they were.
 */
static void set_back(struct fixture *f, uint32_t new_pieces)
{
    const char none[sizeof(struct journal_mark)] = {0};
    cr_assert(eq(i64, pwrite(f->journal_fd, none, sizeof(none), (off_t)journal_mark_offset(2)),
                 sizeof(none)));
    for (unsigned i = 0; i < JOURNAL_N_PIECES; i++) {
        const double *from = new_pieces & NEW(i) ? f->after : f->before;
        cr_assert(eq(i64, pwrite(f->fd, (const char *)from + i * PIECE, PIECE, (off_t)(i * PIECE)),
                     PIECE));
    }
}

static void set_value(struct fixture *f, unsigned at, double value)
{
    cr_assert(eq(i64, pwrite(f->fd, &value, sizeof(value), (off_t)(at * sizeof(value))), 8));
}

static void check_goes_on(struct fixture *f)
{
    double found[N * N];
    cr_assert(zero(int, run_job(f, "continued")));
    read_output(f, found);
    cr_assert(zero(int, memcmp(found, f->after, BYTES)));
}

Test(journal, pieces_that_are_new_or_old_are_believed_in_any_order)
{
    struct fixture *f = set_up();
    const uint32_t orders[] = {0,      ALL_NEW, NEW(0),  0xff,
                               0x5555, 0xaaaa,  NEW(15), ALL_NEW & ~NEW(3)};
    for (unsigned i = 0; i < ARRAY_LENGTH(orders); i++) {
        set_back(f, orders[i]);
        check_goes_on(f);
    }
    tear_down(f);
}

Test(journal, one_piece_may_be_both_where_the_writing_ended)
{
    struct fixture *f = set_up();
    const unsigned per_piece = PIECE / sizeof(double);
    set_back(f, 0xf);
    set_value(f, 4 * per_piece, f->after[4 * per_piece]);
    check_goes_on(f);
    tear_down(f);
}

Test(journal, what_is_neither_is_refused)
{
    struct fixture *f = set_up();
    const unsigned per_piece = PIECE / sizeof(double);
    const uint32_t orders[] = {0, ALL_NEW, 0xff, 0x5555};
    for (unsigned i = 0; i < ARRAY_LENGTH(orders); i++) {
        set_back(f, orders[i]);
        set_value(f, 11 * per_piece + 3, -77);
        cr_assert(eq(int, run_job(f, ""), GAD_BAD_JOURNAL), "order %u", i);
    }
    set_back(f, 0x5555); /* both, and not where writing upwards ends */
    set_value(f, 5 * per_piece, f->after[5 * per_piece]);
    cr_assert(eq(int, run_job(f, ""), GAD_BAD_JOURNAL));
    tear_down(f);
}

Test(journal, an_applied_tile_has_all_that_it_gave)
{
    struct fixture *f = set_up();
    for (unsigned i = 0; i < JOURNAL_N_PIECES; i += 5) {
        cr_assert(eq(i64,
                     pwrite(f->fd, (const char *)f->before + i * PIECE, PIECE, (off_t)(i * PIECE)),
                     PIECE));
        cr_assert(eq(int, run_job(f, ""), GAD_BAD_JOURNAL), "a page of it was lost");
        cr_assert(eq(i64,
                     pwrite(f->fd, (const char *)f->after + i * PIECE, PIECE, (off_t)(i * PIECE)),
                     PIECE));
    }
    cr_assert(zero(int, run_job(f, "complete")));
    tear_down(f);
}
