/* Whose answer goes first where the broker does not read: small ones before large ones, and of
 * these one of each user in turn. */
#include "tests/unit/daemon/worker/harness.h"

#include <string.h>
#include <time.h>

#define N_LARGE 60
#define N_SOON  12 /* those that are in the socket, with the one behind them, and some more */
#define MINE    1
#define HIS     2
#define THEIRS  3

static const int64_t shape[] = {8000}, one[] = {1};
static double values[8000];

static uint32_t send_large(struct harness *h, uint64_t id, uint32_t user)
{
    struct test_job j;
    job_init(&j, id);
    j.user = user;
    at_inline(job_arg(&j, "a", DTYPE_FLOAT64, 1, shape), values, sizeof(values));
    job_output(&j, "a + 1", "r");
    return harness_send(h, &j);
}

/* Its answer is small, and its file tells that all that was sent before has been computed. */
static uint32_t send_small(struct harness *h, uint64_t id, uint32_t user, int fd)
{
    struct test_job j;
    job_init(&j, id);
    j.user = user;
    at_inline(job_arg(&j, "a", DTYPE_FLOAT64, 1, one), values, sizeof(*values));
    at_file(&j, job_output_to(&j, "a + 1", "r", DTYPE_FLOAT64, 1, one), fd, 0);
    return harness_send(h, &j);
}

static void wait_for_file(int fd)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    double value = 0;
    for (unsigned n = 0; n < 10; n += value == 1) { /* and its answer is on its way */
        cr_assert(eq(sz, (size_t)pread(fd, &value, sizeof(value), 0), sizeof(value)));
        nanosleep(&pause, NULL);
    }
}

Test(held, small_answers_and_those_of_others_go_before_the_rest)
{
    struct harness h;
    struct outcome o;
    int fd = make_memfd(8, 0);
    harness_start(&h, 2 * 1024 * 1024, 1);
    for (unsigned i = 0; i < N_LARGE; i++)
        (void)send_large(&h, 1 + i, MINE);
    uint32_t his = send_large(&h, 100, HIS), small = send_small(&h, 101, MINE, fd);
    wait_for_file(fd);
    unsigned his_place = 0, small_place = 0;
    for (unsigned i = 0; i < N_LARGE + 2; i++) {
        harness_receive(&h, &o, NULL);
        cr_assert(zero(int, o.status), "%s", o.error.message);
        if (o.id == his)
            his_place = i;
        if (o.id == small)
            small_place = i;
        if (o.id <= N_LARGE) {
            size_t n_bytes;
            const char *data = outcome_data(&o, 0, &n_bytes);
            double first;
            cr_assert(eq(sz, n_bytes, sizeof(values)));
            memcpy(&first, data, sizeof(first));
            cr_assert(eq(dbl, first, 1));
        }
        outcome_free(&o);
    }
    cr_assert(lt(uint, his_place, N_SOON));
    cr_assert(lt(uint, small_place, N_SOON));
    harness_stop(&h);
    close(fd);
}

/* However much two have in front of it. */
Test(held, every_user_has_a_turn)
{
    struct harness h;
    struct outcome o;
    int fd = make_memfd(8, 0);
    harness_start(&h, 2 * 1024 * 1024, 1);
    for (unsigned i = 0; i < N_LARGE; i++)
        (void)send_large(&h, 1 + i, i % 2 ? MINE : HIS);
    uint32_t theirs = send_large(&h, 100, THEIRS), place = 0;
    (void)send_small(&h, 101, THEIRS, fd);
    wait_for_file(fd);
    for (unsigned i = 0; i < N_LARGE + 2; i++) {
        harness_receive(&h, &o, NULL);
        cr_assert(zero(int, o.status), "%s", o.error.message);
        if (o.id == theirs)
            place = i;
        outcome_free(&o);
    }
    cr_assert(lt(uint, place, N_SOON));
    harness_stop(&h);
    close(fd);
}

/* The worker leaves while some wait. */
Test(held, what_nobody_reads_is_given_back)
{
    struct harness h;
    int fd = make_memfd(8, 0);
    harness_start(&h, 2 * 1024 * 1024, 1);
    for (unsigned i = 0; i < N_LARGE; i++)
        (void)send_large(&h, 1 + i, MINE);
    (void)send_small(&h, 101, MINE, fd);
    wait_for_file(fd);
    harness_stop(&h);
    close(fd);
}
