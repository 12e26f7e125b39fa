/* Turns that leave tiles with a device which has ended before the turn has: the CPU's engine, with
 * a device in front of it that does nothing, at once. The STORE of a product's result, whose tile
 * has read it long before the device has ended, stays with the device as long as the test likes. */
#include "daemon/worker/cpu/engine.h"
#include "daemon/worker/turns/scheduler.h"
#include "tests/unit/daemon/worker/harness.h"

#include <string.h>
#include <sys/mman.h>

#define MIB (1024u * 1024u)

struct fake {
    struct engine base;
    struct engine *cpu;
    struct sched *sched;
};

static _Atomic unsigned n_at_device, n_dropped;
static unsigned fails_at; /* the tile that the device fails, from 1; 0: none */

/* What the device keeps, for which nobody waits: the first STORE when keeps_store is set. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool keeps_store;
    struct sched *sched;
    struct tile *tile;
    enum tile_outcome outcome;    /* of its arithmetic */
    unsigned n_multiplied_behind; /* MULTIPLYs that came to the device since */
    unsigned fails_behind;        /* the one of them that fails, from 1; 0: none */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int start(struct engine *base, struct sched *sched)
{
    ((struct fake *)base)->sched = sched;
    return 0;
}

static struct engine *free_fake(struct engine *base)
{
    struct fake *f = (struct fake *)base;
    f->cpu->ops->free(f->cpu);
    free(f);
    return NULL;
}

/* Whether the tile stays with the device, though what it reads of the result has been read. */
static bool keep(const struct fake *f, struct tile *t, struct thread_context *th, int *ret_error)
{
    pthread_mutex_lock(&kept.lock);
    bool is_behind = kept.tile && t->product && t->turn.step == PRODUCT_MULTIPLY;
    kept.n_multiplied_behind += is_behind;
    *ret_error = is_behind && kept.n_multiplied_behind == kept.fails_behind ? 999 : 0;
    pthread_cond_signal(&kept.changed);
    bool is_kept = kept.keeps_store && t->product && t->turn.step == PRODUCT_STORE;
    kept.keeps_store &= !is_kept;
    pthread_mutex_unlock(&kept.lock);
    if (!is_kept)
        return false;
    enum tile_outcome outcome = cpu_turn_run(f->cpu, t, th);
    sched_device_left(f->sched, t);
    pthread_mutex_lock(&kept.lock);
    kept.sched = f->sched;
    kept.tile = t;
    kept.outcome = outcome;
    pthread_cond_signal(&kept.changed);
    pthread_mutex_unlock(&kept.lock);
    return true;
}

static enum tile_outcome run(struct engine *base, struct tile *t, struct thread_context *th)
{
    const struct fake *f = (const struct fake *)base;
    if (!t->is_computed) {
        unsigned n = atomic_fetch_add(&n_at_device, 1) + 1;
        int error;
        if (!keep(f, t, th, &error))
            sched_device_done(f->sched, t, n == fails_at ? 999 : error);
        return TILE_ON_DEVICE;
    }
    if (t->device_error == 0)
        return t->has_left ? kept.outcome : cpu_turn_run(f->cpu, t, th);
    th->status = error_set(&th->error, GAD_DEVICE_FAULT, NULL, "error %d", t->device_error);
    return TILE_FAILED;
}

static void drop(struct engine *base, struct tile *t)
{
    (void)base;
    (void)t;
    atomic_fetch_add(&n_dropped, 1);
}

static const struct engine_ops ops = {
    .start = start,
    .free = free_fake,
    .run = run,
    .run_small = cpu_turn_run,
    .read = cpu_turn_read,
    .drop = drop,
};

struct engine *harness_engine(uint64_t pool_bytes, unsigned n_threads)
{
    struct fake *f = calloc(1, sizeof(*f));
    const struct engine_cpu_config config = {
        .pool_bytes = pool_bytes, .n_threads = n_threads, .max_level = CPU_LEVEL_AVX512};
    cr_assert(f != NULL);
    cr_assert(eq(int, engine_cpu_new(&config, &f->cpu), 0));
    f->base = *f->cpu;
    f->base.ops = &ops;
    f->base.n_device_tiles = f->base.n_device_products = 2; /* with slots, without */
    f->base.n_device_flights = 4;
    return &f->base;
}

static void check_job(unsigned failing_tile)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const int64_t shape[] = {4 * MIB};
    int fd = make_memfd(32 * MIB, F_SEAL_SHRINK | F_SEAL_GROW);
    float *a = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert(a != MAP_FAILED);
    for (unsigned i = 0; i < 4 * MIB; i++)
        a[i] = (float)(i % 1000);
    atomic_store(&n_at_device, 0);
    atomic_store(&n_dropped, 0);
    fails_at = failing_tile;
    harness_start(&h, 2 * MIB, 3);
    cr_assert(eq(int, harness_attach(&h, 1, fd, 32 * MIB, true), 0));
    job_init(&j, 1);
    j.needs_carry = true;
    at_region(job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), 1, 0);
    at_region(job_output_to(&j, "a - min(a) + 1", "out", DTYPE_FLOAT32, 1, shape), 1, 16 * MIB);
    harness_run(&h, &j, &o);
    cr_assert(eq(int, o.status, failing_tile ? GAD_DEVICE_FAULT : 0), "%s", o.error.message);
    outcome_free(&o);
    for (unsigned i = 0; i < 4 * MIB && !failing_tile; i++)
        cr_assert(a[4 * MIB + i] == (float)(i % 1000) + 1, "element %u", i);
    cr_assert(lt(u32, 3, atomic_load(&n_at_device)));
    cr_assert(eq(u32, atomic_load(&n_dropped), atomic_load(&n_at_device)));
    cr_assert(eq(u64, harness_stat(&h, "jobs"), 0));
    cr_assert(eq(u64, harness_stat(&h, "carries"), 0));
    harness_stop(&h);
    munmap(a, 32 * MIB);
    close(fd);
}

Test(device, may_end_before_the_turn_that_gave_it_the_tile)
{
    check_job(0);
}

Test(device, may_fail_a_tile_and_with_it_the_job)
{
    check_job(4);
}

/* A product whose C, of several tiles, lies in the carry one tile at a time: the second one's
 * turns wait for the first one's STORE. */
#define SIDE 1024

struct product {
    struct harness h;
    struct test_job j;
    int fd, out_fd;
    float *a, *b;
};

static void product_start(struct product *p)
{
    const int64_t shape[] = {SIDE, SIDE};
    const size_t n_bytes = sizeof(float) * SIDE * SIDE;
    p->out_fd = make_file(NULL, 0);
    p->fd = make_memfd(2 * n_bytes, F_SEAL_SHRINK | F_SEAL_GROW);
    p->a = mmap(NULL, 2 * n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
    cr_assert(p->a != MAP_FAILED);
    p->b = p->a + SIDE * SIDE;
    for (unsigned i = 0; i < SIDE * SIDE; i++) {
        p->a[i] = (float)(i % 7);
        p->b[i] = i % SIDE == i / SIDE ? 2 : 0;
    }
    atomic_store(&n_at_device, 0);
    atomic_store(&n_dropped, 0);
    fails_at = 0;
    kept.keeps_store = true;
    kept.tile = NULL;
    kept.n_multiplied_behind = kept.fails_behind = 0;
    harness_start(&p->h, 4 * MIB, 3);
    cr_assert(eq(int, harness_attach(&p->h, 1, p->fd, 2 * n_bytes, true), 0));
    job_init(&p->j, 1);
    p->j.needs_carry = true;
    p->j.carry_bytes = 2 * MIB;
    at_region(job_arg(&p->j, "a", DTYPE_FLOAT32, 2, shape), 1, 0);
    at_region(job_arg(&p->j, "b", DTYPE_FLOAT32, 2, shape), 1, n_bytes);
    at_file(&p->j, job_output_to(&p->j, "a @ b", "c", DTYPE_FLOAT32, 2, shape), p->out_fd, 0);
}

static void product_stop(struct product *p)
{
    cr_assert(eq(u64, harness_stat(&p->h, "jobs"), 0));
    cr_assert(eq(u64, harness_stat(&p->h, "carries"), 0));
    cr_assert(eq(u64, harness_stat(&p->h, "slots_lent"), 0));
    harness_stop(&p->h);
    munmap(p->a, 2 * sizeof(float) * SIDE * SIDE);
    close(p->fd);
    close(p->out_fd);
}

/* Until a STORE is kept, and n MULTIPLYs have come to the device since. */
static void wait_behind(unsigned n)
{
    pthread_mutex_lock(&kept.lock);
    while (!kept.tile || kept.n_multiplied_behind < n)
        pthread_cond_wait(&kept.changed, &kept.lock);
    pthread_mutex_unlock(&kept.lock);
}

static int receive(struct product *p)
{
    struct outcome o;
    harness_receive(&p->h, &o, NULL);
    outcome_free(&o);
    return o.status;
}

static void check_result(const struct product *p)
{
    static float c[SIDE * SIDE];
    cr_assert(eq(i64, pread(p->out_fd, c, sizeof(c), 0), sizeof(c)));
    for (unsigned i = 0; i < SIDE * SIDE; i++)
        cr_assert(c[i] == 2 * p->a[i], "element %u", i);
}

/* The same again: as many tiles may be with the device as before. */
static void check_again(struct product *p)
{
    struct outcome o;
    p->j.id++;
    cr_assert(eq(int, ftruncate(p->out_fd, 0), 0));
    kept.tile = NULL;
    harness_run(&p->h, &p->j, &o);
    cr_assert(eq(int, o.status, 0), "%s", o.error.message);
    outcome_free(&o);
    check_result(p);
}

Test(device, keeps_a_tile_for_which_nobody_waits)
{
    struct product p;
    product_start(&p);
    harness_send(&p.h, &p.j);
    wait_behind(4); /* what is multiplied next is laid over what was stored */
    cr_assert(eq(u64, harness_stat(&p.h, "jobs"), 1));
    sched_device_done(kept.sched, kept.tile, 0);
    cr_assert(eq(int, receive(&p), 0));
    check_result(&p);
    check_again(&p);
    product_stop(&p);
}

Test(device, keeps_a_tile_for_which_nobody_waits_of_a_cancelled_job)
{
    struct product p;
    product_start(&p);
    harness_send(&p.h, &p.j);
    wait_behind(0);
    harness_cancel(&p.h, 1);
    cr_assert(eq(u64, harness_stat(&p.h, "jobs"), 1)); /* its memory is the device's still */
    cr_assert(eq(u64, harness_stat(&p.h, "carries"), 1));
    sched_device_done(kept.sched, kept.tile, 0);
    cr_assert(eq(int, receive(&p), GAD_CANCELLED));
    check_again(&p);
    product_stop(&p);
}

Test(device, may_fail_a_tile_for_which_nobody_waits)
{
    struct product p;
    product_start(&p);
    harness_send(&p.h, &p.j);
    wait_behind(4);
    sched_device_done(kept.sched, kept.tile, 999);
    cr_assert(eq(int, receive(&p), GAD_DEVICE_FAULT));
    check_again(&p);
    product_stop(&p);
}

Test(device, fails_a_job_of_which_it_keeps_a_tile)
{
    struct product p;
    product_start(&p);
    kept.fails_behind = 2;
    harness_send(&p.h, &p.j);
    wait_behind(2);
    cr_assert(eq(u64, harness_stat(&p.h, "carries"), 1));
    sched_device_done(kept.sched, kept.tile, 0);
    cr_assert(eq(int, receive(&p), GAD_DEVICE_FAULT));
    check_again(&p);
    product_stop(&p);
}
