/* What a thread needs for its whole life, taken once: the CPU engine's scratch, the bounce buffer
 * of reads, room for the boxes and views of the grain in hand. Main, compute and I/O threads bring
 * the same; pages that a thread never uses are never there.
 *
 * worker_fault_point() is here, in a file of its own with nothing else that a test replaces, as a
 * weak symbol: programs that test crashes bring another.
 */
#include "daemon/worker/io/boxio.h"
#include "daemon/worker/jobs/tile.h"
#include "kernels/cpu/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

__attribute__((weak)) void worker_fault_point(const char *label, uint64_t tile, uint64_t n_tiles)
{
    (void)label;
    (void)tile;
    (void)n_tiles;
}

/* Most threads are spare ones, and never touch theirs. */
static void *map_pages(size_t n_bytes)
{
    void *memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap_pages(void *memory, size_t n_bytes)
{
    if (memory)
        munmap(memory, n_bytes);
}

int thread_context_new(unsigned index, const struct cpu_engine *cpu, struct crashpage_thread *page,
                       bool is_compute, struct thread_context **ret_context)
{
    struct thread_context *th = calloc(1, sizeof(*th));
    if (!th)
        return -ENOMEM;
    th->index = index;
    th->cpu = cpu;
    th->page = page;
    th->io.page = page;
    th->io.may_block = !is_compute;
    th->io.call = &th->call;
    pthread_cond_init(&th->wake, NULL);
    th->io.bounce = map_pages(BOXIO_BOUNCE_BYTES);
    bool has_scratch = is_compute && cpu;
    th->scratch = has_scratch ? map_pages(CPU_SCRATCH_BYTES + CPU_WINDOW_BYTES) : NULL;
    if (!th->io.bounce || (has_scratch && !th->scratch)) {
        thread_context_free(th);
        return -ENOMEM;
    }
    *ret_context = th;
    return 0;
}

struct thread_context *thread_context_free(struct thread_context *th)
{
    if (th) {
        pthread_cond_destroy(&th->wake);
        unmap_pages(th->scratch, CPU_SCRATCH_BYTES + CPU_WINDOW_BYTES);
        unmap_pages(th->io.bounce, BOXIO_BOUNCE_BYTES);
        free(th);
    }
    return NULL;
}
