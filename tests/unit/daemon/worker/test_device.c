/* Turns that leave tiles with a device which has ended before the turn has: the CPU's engine, with
 * a device in front of it that does nothing, at once. */
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

static enum tile_outcome run(struct engine *base, struct tile *t, struct thread_context *th)
{
    const struct fake *f = (const struct fake *)base;
    if (!t->is_computed) {
        unsigned n = atomic_fetch_add(&n_at_device, 1) + 1;
        sched_device_done(f->sched, t, n == fails_at ? 999 : 0);
        return TILE_ON_DEVICE;
    }
    if (t->device_error == 0)
        return cpu_turn_run(f->cpu, t, th);
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
