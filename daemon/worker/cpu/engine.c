/* The CPU engine of the worker: its pool, its limits, its name.
 *
 * The pool is mapped once and never grows; pages come as they are touched. Nothing is with a device
 * ever, so nothing has to be started or waited for.
 *
 * Called by the worker's program, and by the worker as its engine.
 */
#include "daemon/worker/cpu/engine.h"
#include "daemon/memory.h"
#include "daemon/poolmap.h"
#include "daemon/worker/measure.h"
#include "kernels/cpu/multiply/multiply.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"

#include <string.h>
#include <sys/mman.h>

static struct engine *free_engine(struct engine *e)
{
    if (e) {
        munmap(e->pool, e->limits.pool_bytes);
        free(e);
    }
    return NULL;
}

static const struct engine_ops ops = {
    .free = free_engine,
    .run = cpu_turn_run,
    .run_small = cpu_turn_run,
    .read = cpu_turn_read,
};

static void name_processor(char *ret_name, size_t n_bytes)
{
    char line[256];
    snprintf(ret_name, n_bytes, "cpu");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file)
        return;
    while (fgets(line, sizeof(line), file)) {
        char *value = strchr(line, ':');
        if (!value || strncmp(line, "model name", 10) != 0)
            continue;
        value += strspn(value, ": \t");
        value[strcspn(value, "\n")] = '\0';
        snprintf(ret_name, n_bytes, "%s", value);
        break;
    }
    fclose(file);
}

int engine_cpu_new(const struct engine_cpu_config *config, struct engine **ret_engine)
{
    if (config->pool_bytes == 0 || config->pool_bytes > SIZE_MAX / 2 || config->n_threads == 0)
        return -EINVAL;
    struct engine *e = calloc(1, sizeof(*e));
    if (!e)
        return -ENOMEM;
    *e = (struct engine){
        .ops = &ops,
        .name = "cpu",
        .kind = "cpu",
        .cpu = cpu_engine_get(config->max_level),
        .blas = cpu_multiply_library(),
        .limits = {.engine = &plan_cpu,
                   .pool_bytes = config->pool_bytes,
                   .slot_bytes = poolmap_cpu_slot_bytes(config->pool_bytes, config->n_threads,
                                                        GRAIN_MAX_TOTAL_BYTES),
                   .carry_limit_bytes = poolmap_carry_limit_bytes(config->pool_bytes),
                   .product_carry_bytes = poolmap_product_limit_bytes(config->pool_bytes),
                   .memory_bytes = memory_bytes(),
                   .n_threads = config->n_threads}};
    snprintf(e->level, sizeof(e->level), "%s", cpu_level_name(cpu_engine_level(e->cpu)));
    name_processor(e->device, sizeof(e->device));
    e->pool = mmap(NULL, config->pool_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (e->pool == MAP_FAILED) {
        int r = -errno;
        free(e);
        return r;
    }
    /* Walks look into many rows at once, each in a page of its own. */
    (void)madvise(e->pool, config->pool_bytes, MADV_HUGEPAGE);
    cpu_multiply_init();
    measure_cpu(e->cpu, e->pool, config->pool_bytes, config->n_threads, &e->limits.rates);
    *ret_engine = e;
    return 0;
}
