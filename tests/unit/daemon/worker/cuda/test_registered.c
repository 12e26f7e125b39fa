#include "daemon/worker/cuda/registered.h"
#include "kernels/cuda/runtime.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#define WINDOW  UINT64_C(1048576)
#define FOREVER UINT64_C(1000000000000000)

static struct registered *cache;
static char *region;
static uint64_t region_bytes;

static void open_cache(uint64_t budget_bytes, uint64_t idle_ns, uint64_t size_bytes)
{
    struct cuda_device device;
    struct registered_config config = {budget_bytes, WINDOW, idle_ns};
    cr_assert(eq(int, cuda_device_open(0, &device), 0));
    region_bytes = size_bytes;
    region = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(ne(ptr, region, MAP_FAILED));
    cr_assert(eq(int, registered_new(&config, &cache), 0));
    cr_assert(eq(int, registered_add(cache, region, size_bytes, true), 0));
}

static void close_cache(void)
{
    cache = registered_free(cache);
    cr_assert(eq(u64, cuda_allocations().registered_bytes, 0));
    munmap(region, region_bytes);
}

static struct registered_window *hold(uint64_t offset, uint64_t n_bytes, uint64_t job)
{
    return registered_hold(cache, region + offset, n_bytes, job);
}

/* Until the helper has registered so many bytes. */
static void wait_for_bytes(uint64_t n_bytes)
{
    while (cuda_allocations().registered_bytes != n_bytes)
        sched_yield();
}

/* Until a hold succeeds. The window was asked for. */
static struct registered_window *wait_for_hold(uint64_t offset, uint64_t job)
{
    struct registered_window *w;
    while (!(w = hold(offset, 1, job)))
        sched_yield();
    return w;
}

Test(registered, the_second_job_that_uses_a_window_has_it_registered)
{
    open_cache(FOREVER, FOREVER, 2 * WINDOW);
    cr_assert(eq(ptr, hold(0, 100, 1), NULL));
    cr_assert(eq(ptr, hold(200, 100, 1), NULL)); /* of the same job */
    cr_assert(eq(u64, cuda_allocations().n_registered, 0));
    cr_assert(eq(ptr, hold(0, 100, 2), NULL)); /* asks for it, and is staged */
    registered_release(cache, wait_for_hold(0, 2));
    cr_assert(eq(u64, cuda_allocations().registered_bytes, WINDOW));
    cr_assert(eq(u64, cuda_allocations().n_registered, 1));
    cr_assert(eq(ptr, hold(WINDOW, 100, 2), NULL)); /* the other window was not asked for */
    close_cache();
}

Test(registered, what_crosses_two_windows_or_lies_elsewhere_is_staged)
{
    char elsewhere[64];
    open_cache(FOREVER, FOREVER, 2 * WINDOW - 5000);
    for (uint64_t job = 1; job <= 2; job++)
        for (uint64_t i = 0; i < 2; i++)
            cr_assert(eq(ptr, hold(i * WINDOW, 1, job), NULL));
    wait_for_bytes(2 * WINDOW - 4096); /* whole pages */
    registered_release(cache, wait_for_hold(0, 3));
    registered_release(cache, wait_for_hold(WINDOW, 3));
    cr_assert(eq(ptr, hold(WINDOW - 1, 2, 3), NULL));
    cr_assert(eq(ptr, hold(2 * WINDOW - 4096, 1, 3), NULL));
    cr_assert(eq(ptr, registered_hold(cache, elsewhere, 1, 3), NULL));
    cr_assert(eq(ptr, registered_hold(NULL, region, 1, 3), NULL));
    struct registered_window *w = hold(WINDOW - 1, 1, 3);
    cr_assert(ne(ptr, w, NULL));
    registered_release(cache, w);
    close_cache();
}

Test(registered, what_is_idle_is_given_up_but_not_what_is_held)
{
    open_cache(FOREVER, 20000000, 2 * WINDOW);
    cr_assert(eq(ptr, hold(0, 1, 1), NULL));
    /* It may be given up again before it is held: then it is asked for anew. */
    uint64_t job = 2;
    struct registered_window *w;
    while (!(w = hold(0, 1, job++)))
        sched_yield();
    cr_assert(eq(ptr, hold(WINDOW, 1, job), NULL));
    cr_assert(eq(ptr, hold(WINDOW, 1, job + 1), NULL));
    while (cuda_allocations().n_registered < 2)
        sched_yield(); /* the helper came by, with an idle time that is over */
    wait_for_bytes(WINDOW);
    registered_release(cache, w);
    wait_for_bytes(0);
    close_cache();
}

Test(registered, the_budget_is_kept_and_the_idle_one_makes_room)
{
    open_cache(WINDOW, 1000000, 3 * WINDOW);
    cr_assert(eq(ptr, hold(0, 1, 1), NULL));
    cr_assert(eq(ptr, hold(0, 1, 2), NULL));
    struct registered_window *w = NULL;
    for (uint64_t job = 3; !w; job++, sched_yield())
        w = hold(0, 1, job);
    /* Held: nobody else comes in, however often it is asked for. */
    for (uint64_t job = 100; job < 2000; job++)
        cr_assert(eq(ptr, hold(WINDOW, 1, job), NULL));
    cr_assert(eq(u64, cuda_allocations().registered_bytes, WINDOW));
    registered_release(cache, w);
    for (w = NULL; !w; sched_yield()) {
        static uint64_t job = 3000;
        w = hold(WINDOW, 1, job++);
        cr_assert(le(u64, cuda_allocations().registered_bytes, WINDOW));
    }
    registered_release(cache, w);
    close_cache();
}

Test(registered, a_window_over_the_budget_is_never_registered)
{
    open_cache(WINDOW - 1, FOREVER, WINDOW);
    for (uint64_t job = 1; job < 1000; job++)
        cr_assert(eq(ptr, hold(0, 1, job), NULL));
    close_cache();
    cr_assert(eq(u64, cuda_allocations().n_registered, 0));
}

Test(registered, a_region_leaves_with_everything_of_it)
{
    open_cache(FOREVER, FOREVER, 8 * WINDOW);
    for (uint64_t job = 1; job <= 2; job++)
        for (uint64_t i = 0; i < 8; i++)
            cr_assert(eq(ptr, hold(i * WINDOW, 1, job), NULL));
    registered_remove(cache, region); /* while the helper is at it */
    cr_assert(eq(u64, cuda_allocations().registered_bytes, 0));
    cr_assert(eq(ptr, hold(0, 1, 3), NULL));
    registered_remove(cache, region); /* nothing is there any more */
    close_cache();
}

Test(registered, several_regions_are_told_apart)
{
    open_cache(FOREVER, FOREVER, WINDOW);
    char *many[40];
    for (unsigned i = 0; i < 40; i++) {
        many[i] = mmap(NULL, WINDOW, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        cr_assert(eq(int, registered_add(cache, many[i], WINDOW, false), 0));
    }
    for (uint64_t job = 1; job <= 2; job++)
        for (unsigned i = 0; i < 40; i += 2)
            cr_assert(eq(ptr, registered_hold(cache, many[i], WINDOW, job), NULL));
    wait_for_bytes(20 * WINDOW);
    for (unsigned i = 0; i < 40; i += 2)
        registered_remove(cache, many[i]);
    cr_assert(eq(u64, cuda_allocations().registered_bytes, 0));
    close_cache();
    for (unsigned i = 0; i < 40; i++)
        munmap(many[i], WINDOW);
}

/* GPUARRAYD_DOUBLE is read once, at the first call of a process; every test is one. */
Test(registered, what_fails_is_staged_and_left_alone_for_a_while)
{
    setenv("GPUARRAYD_DOUBLE", "fail-register=1", 1);
    open_cache(FOREVER, FOREVER, 2 * WINDOW);
    for (uint64_t job = 1; job <= 2; job++)
        cr_assert(eq(ptr, hold(0, 1, job), NULL));
    for (uint64_t job = 1; job <= 2; job++)
        cr_assert(eq(ptr, hold(WINDOW, 1, job), NULL));
    /* The first try failed, the second, of the other window, did not. */
    registered_release(cache, wait_for_hold(WINDOW, 3));
    for (uint64_t job = 4; job < 1000; job++)
        cr_assert(eq(ptr, hold(0, 1, job), NULL));
    cr_assert(eq(u64, cuda_allocations().registered_bytes, WINDOW));
    close_cache();
}

/* Of a context that is lost every call says so. */
Test(registered, what_fails_without_a_reason_leaves_the_device_as_it_is)
{
    setenv("GPUARRAYD_DOUBLE", "fail-register=1,strange-register", 1);
    open_cache(FOREVER, FOREVER, 2 * WINDOW);
    for (uint64_t job = 1; job <= 2; job++)
        cr_assert(eq(ptr, hold(0, 1, job), NULL));
    for (uint64_t job = 1; job <= 2; job++)
        cr_assert(eq(ptr, hold(WINDOW, 1, job), NULL));
    registered_release(cache, wait_for_hold(WINDOW, 3));
    cr_assert(eq(ptr, hold(0, 1, 4), NULL));
    close_cache();
}

Test(registered, the_default_is_bounded)
{
    cr_assert(lt(u64, 0, registered_default_bytes()));
    cr_assert(le(u64, registered_default_bytes(), UINT64_C(8) << 30));
}
