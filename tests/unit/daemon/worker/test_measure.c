#include "daemon/worker/measure.h"
#include "daemon/worker/io/port.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define POOL_BYTES (64u * 1024 * 1024)

static char *map_pool(void)
{
    char *pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert(ne(ptr, pool, MAP_FAILED));
    return pool;
}

static unsigned n_resident_pages(char *pool)
{
    static unsigned char pages[POOL_BYTES / 4096];
    unsigned n = 0;
    cr_assert(eq(int, mincore(pool, POOL_BYTES, pages), 0));
    for (unsigned i = 0; i < POOL_BYTES / 4096; i++)
        n += pages[i] & 1;
    return n;
}

static void note_thread(void *argument, unsigned thread)
{
    atomic_fetch_add((atomic_uint *)argument, 1u << (8 * thread));
}

Test(measure, all_threads_run_once_and_together)
{
    atomic_uint calls = 0;
    uint64_t elapsed = measure_together(4, note_thread, &calls);
    cr_assert(eq(u32, atomic_load(&calls), 0x01010101));
    cr_assert(lt(u64, 0, elapsed));
    cr_assert(eq(u64, measure_together(0, note_thread, &calls), 0));
}

Test(measure, the_cpu_has_a_rate_of_memory_and_of_work)
{
    char *pool = map_pool();
    struct plan_rates rates = {.file = 1, .device = 1};
    measure_cpu(cpu_engine_get(CPU_LEVEL_AVX512), pool, POOL_BYTES, 2, &rates);
    cr_assert(lt(dbl, 1e6, rates.memory));
    cr_assert(lt(dbl, rates.memory, 1e14));
    cr_assert(lt(dbl, 1e5, rates.work));
    cr_assert(lt(dbl, rates.work, 1e15));
    cr_assert(lt(dbl, 1e6, rates.product_float32));
    cr_assert(lt(dbl, rates.product_float32, 1e16));
    cr_assert(lt(dbl, 1e6, rates.product_float64));
    cr_assert(lt(dbl, 1e5, rates.product_integer));
    cr_assert(lt(dbl, 0, rates.job_seconds));
    cr_assert(eq(dbl, rates.to_device, 0));
    cr_assert(eq(dbl, rates.device, 0));
    munmap(pool, POOL_BYTES);
}

Test(measure, the_pool_is_given_back_untouched)
{
    char *pool = map_pool();
    struct plan_rates rates;
    measure_cpu(cpu_engine_get(CPU_LEVEL_PLAIN), pool, POOL_BYTES, 2, &rates);
    cr_assert(eq(u32, n_resident_pages(pool), 0));
    munmap(pool, POOL_BYTES);
}

Test(measure, a_copy_moves_the_first_half_behind_it_and_touches_no_more)
{
    char *pool = map_pool();
    uint64_t n_bytes = 4u * 1024 * 1024;
    cr_assert(lt(dbl, 0, measure_copy(pool, n_bytes, 3)));
    uint64_t part = n_bytes / 2 / 3 / 64 * 64;
    cr_assert(eq(int, memcmp(pool, pool + 3 * part, 3 * part), 0));
    cr_assert(eq(int, pool[0], 1));
    cr_assert(eq(int, pool[n_bytes], 0));
    munmap(pool, POOL_BYTES);
}

Test(measure, too_little_memory_is_not_measured)
{
    char *pool = map_pool();
    cr_assert(eq(dbl, measure_copy(pool, 1024 * 1024, 1), 0));
    cr_assert(eq(dbl, measure_copy(pool, POOL_BYTES, 0), 0));
    cr_assert(eq(int, pool[0], 0));
    munmap(pool, POOL_BYTES);
}

Test(measure, an_expression_that_cannot_be_compiled_is_refused)
{
    struct program *program;
    cr_assert(eq(int, measure_compile("a +", 10, &program), GAD_BAD_EXPRESSION));
    cr_assert(eq(int, measure_compile("a + a", 10, &program), 0));
    cr_assert(eq(u32, program->n_insns, 1));
    program_free(program);
}
