/* The harness's engine: the CPU. */
#include "daemon/worker/cpu/engine.h"
#include "tests/unit/daemon/worker/harness.h"

struct engine *harness_engine(uint64_t pool_bytes, unsigned n_threads)
{
    struct engine *engine = NULL;
    const struct engine_cpu_config config = {
        .pool_bytes = pool_bytes, .n_threads = n_threads, .max_level = CPU_LEVEL_AVX512};
    cr_assert(eq(int, engine_cpu_new(&config, &engine), 0));
    return engine;
}
