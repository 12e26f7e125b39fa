/* What the machine's data caches hold. It decides how fast something runs and never what comes out:
 * how long strips are, and which outputs go past the cache.
 *
 * The system is asked once, since on virtual machines each question may trap; threads that ask at
 * the same time write the same answer. Where it does not know, or says what cannot be, usual sizes
 * are assumed. Called by layout.c and by the worker.
 */
#include "kernels/cpu/engine.h"

#include "proto/util.h"

#include <stdatomic.h>
#include <unistd.h>

#define FIRST_USUAL_BYTES (32u * 1024)
#define FIRST_LEAST_BYTES (16u * 1024)
#define FIRST_MOST_BYTES  (128u * 1024)
#define LAST_USUAL_BYTES  (16u * 1024 * 1024)
#define LAST_LEAST_BYTES  (4u * 1024 * 1024)
#define LAST_MOST_BYTES   (64u * 1024 * 1024)

static size_t ask(int name, size_t usual)
{
    long answer = sysconf(name);
    return answer > 0 ? (size_t)answer : usual;
}

static size_t bounded(size_t n_bytes, size_t least, size_t most)
{
    return min_u64(max_u64(n_bytes, least), most);
}

size_t cpu_first_cache_bytes(void)
{
    static _Atomic size_t known;
    size_t n_bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (n_bytes == 0) {
        n_bytes = bounded(ask(_SC_LEVEL1_DCACHE_SIZE, FIRST_USUAL_BYTES), FIRST_LEAST_BYTES,
                          FIRST_MOST_BYTES);
        atomic_store_explicit(&known, n_bytes, memory_order_relaxed);
    }
    return n_bytes;
}

size_t cpu_last_cache_bytes(void)
{
    static _Atomic size_t known;
    size_t n_bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (n_bytes == 0) {
        size_t third = ask(_SC_LEVEL3_CACHE_SIZE, 0), second = ask(_SC_LEVEL2_CACHE_SIZE, 0);
        n_bytes = max_u64(third, second);
        n_bytes = bounded(n_bytes ? n_bytes : LAST_USUAL_BYTES, LAST_LEAST_BYTES, LAST_MOST_BYTES);
        atomic_store_explicit(&known, n_bytes, memory_order_relaxed);
    }
    return n_bytes;
}
