/* Memory of the test double: device slabs, pinned slabs, registered pages.
 *
 * A device slab is two mappings of the same size: one without access, whose addresses the program
 * gets, and the real one. Pages are taken as they are touched, so that a slab of a gigabyte costs
 * nothing. Behind each slab is a page without access.
 *
 * Called by kernels/cuda/runtime.c by the runtime's names; copies and kernels ask
 * memory_find_locked().
 */
#include "tests/double/internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t n_bytes)
{
    return (n_bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

struct memory *memory_find_locked(const void *address, size_t n_bytes)
{
    const char *begin = address;
    for (struct memory *m = the_double.memory; m; m = m->next)
        if (begin >= m->address && n_bytes <= m->n_bytes &&
            (size_t)(begin - m->address) <= m->n_bytes - n_bytes)
            return m;
    return NULL;
}

static bool overlaps_locked(const char *address, size_t n_bytes)
{
    for (const struct memory *m = the_double.memory; m; m = m->next)
        if (address < m->address + m->n_bytes && m->address < address + n_bytes)
            return true;
    return false;
}

static void add_locked(enum memory_kind kind, char *address, char *real, size_t n_bytes)
{
    struct memory *m = malloc(sizeof *m);
    if (!m)
        double_abort("no memory");
    *m = (struct memory){the_double.memory, address, real, n_bytes, kind};
    the_double.memory = m;
}

/* Takes it off the list. */
static struct memory *take_locked(const void *address, enum memory_kind kind)
{
    for (struct memory **at = &the_double.memory; *at; at = &(*at)->next) {
        struct memory *m = *at;
        const bool is_registered = m->kind == MEMORY_REGISTERED || m->kind == MEMORY_READ_ONLY;
        if (m->address != address ||
            (m->kind != kind && !(kind == MEMORY_REGISTERED && is_registered)))
            continue;
        *at = m->next;
        return m;
    }
    return NULL;
}

static char *map(size_t n_bytes, int protection)
{
    char *memory = mmap(NULL, whole_pages(n_bytes) + page_bytes(), PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (protection != PROT_NONE && mprotect(memory, whole_pages(n_bytes), protection)) {
        munmap(memory, whole_pages(n_bytes) + page_bytes());
        return NULL;
    }
    return memory;
}

static void unmap(char *memory, size_t n_bytes)
{
    if (memory)
        munmap(memory, whole_pages(n_bytes) + page_bytes());
}

static uint64_t free_bytes_locked(void)
{
    const struct settings *s = &the_double.settings;
    const uint64_t used = s->used_bytes + s->context_bytes + the_double.stats->device_bytes;
    return s->device_bytes > used ? s->device_bytes - used : 0;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    const cudaError_t error = double_enter(true);
    if (!error) {
        *free_bytes = free_bytes_locked();
        *total_bytes = the_double.settings.device_bytes;
    }
    return double_leave(error);
}

static cudaError_t malloc_locked(void **memory, size_t n_bytes)
{
    the_double.stats->n_mallocs++;
    double_allocates_locked("cudaMalloc");
    if (n_bytes == 0 || is_nth(the_double.settings.fail_malloc, &the_double.n_mallocs) ||
        n_bytes > free_bytes_locked())
        return n_bytes == 0 ? cudaErrorInvalidValue : cudaErrorMemoryAllocation;
    char *address = map(n_bytes, PROT_NONE), *real = map(n_bytes, PROT_READ | PROT_WRITE);
    if (!address || !real) {
        unmap(address, n_bytes);
        unmap(real, n_bytes);
        return cudaErrorMemoryAllocation;
    }
    add_locked(MEMORY_DEVICE, address, real, n_bytes);
    the_double.stats->device_bytes += n_bytes;
    *memory = address;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t n_bytes)
{
    cudaError_t error = double_enter(true);
    if (!error)
        error = malloc_locked(memory, n_bytes);
    return double_leave(error);
}

static cudaError_t host_alloc_locked(void **memory, size_t n_bytes)
{
    the_double.stats->n_host_allocs++;
    double_allocates_locked("cudaHostAlloc");
    if (is_nth(the_double.settings.fail_host_alloc, &the_double.n_host_allocs))
        return cudaErrorMemoryAllocation;
    char *address = n_bytes ? map(n_bytes, PROT_READ | PROT_WRITE) : NULL;
    if (!address)
        return n_bytes ? cudaErrorMemoryAllocation : cudaErrorInvalidValue;
    add_locked(MEMORY_PINNED, address, address, n_bytes);
    the_double.stats->host_bytes += n_bytes;
    *memory = address;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t n_bytes, unsigned flags)
{
    cudaError_t error = double_enter(true);
    if (!error)
        error = host_alloc_locked(memory, n_bytes);
    return double_leave(error);
}

/* Nothing may be on its way from or to memory that goes. */
static void leave_locked(struct memory *m, const char *what)
{
    if (!order_is_quiet(m->address, m->n_bytes))
        double_abort("%s: nobody has waited for the end of all that uses the memory", what);
    order_forget(m->address, m->n_bytes);
    the_double.stats->n_frees++;
}

static cudaError_t free_locked(void *address, enum memory_kind kind, const char *what)
{
    struct memory *m = take_locked(address, kind);
    if (!m)
        return cudaErrorInvalidValue;
    leave_locked(m, what);
    if (kind == MEMORY_DEVICE)
        the_double.stats->device_bytes -= m->n_bytes;
    else
        the_double.stats->host_bytes -= m->n_bytes;
    if (m->address != m->real)
        unmap(m->address, m->n_bytes);
    unmap(m->real, m->n_bytes);
    free(m);
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    cudaError_t error = double_enter(true);
    if (!error && memory)
        error = free_locked(memory, MEMORY_DEVICE, "cudaFree");
    return double_leave(error);
}

cudaError_t cudaFreeHost(void *memory)
{
    cudaError_t error = double_enter(true);
    if (!error && memory)
        error = free_locked(memory, MEMORY_PINNED, "cudaFreeHost");
    return double_leave(error);
}

/* Pages of the process: mincore() refuses where nothing is mapped. */
static bool is_mapped(char *memory, size_t n_bytes)
{
    const uintptr_t begin = (uintptr_t)memory / page_bytes() * page_bytes();
    const size_t n = whole_pages((uintptr_t)memory + n_bytes - begin);
    unsigned char *resident = malloc(n / page_bytes() + 1);
    const bool is_there = resident && mincore((void *)begin, n, resident) == 0;
    free(resident);
    return is_there;
}

static cudaError_t register_locked(void *memory, size_t n_bytes, unsigned flags)
{
    the_double.stats->n_registrations++;
    double_allocates_locked("cudaHostRegister");
    if (is_nth(the_double.settings.fail_register, &the_double.n_registrations))
        return the_double.settings.strange_register ? cudaErrorUnknown : cudaErrorMemoryAllocation;
    if (the_double.stats->registered_bytes + n_bytes > the_double.settings.register_bytes)
        return cudaErrorMemoryAllocation;
    if (n_bytes == 0 || !is_mapped(memory, n_bytes))
        return cudaErrorInvalidValue;
    if (overlaps_locked(memory, n_bytes))
        return cudaErrorHostMemoryAlreadyRegistered;
    add_locked(flags & cudaHostRegisterReadOnly ? MEMORY_READ_ONLY : MEMORY_REGISTERED, memory,
               memory, n_bytes);
    the_double.stats->registered_bytes += n_bytes;
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *memory, size_t n_bytes, unsigned flags)
{
    cudaError_t error = double_enter(true);
    if (!error)
        error = register_locked(memory, n_bytes, flags);
    return double_leave(error);
}

static cudaError_t unregister_locked(void *memory)
{
    struct memory *m = take_locked(memory, MEMORY_REGISTERED);
    if (!m)
        return cudaErrorHostMemoryNotRegistered;
    leave_locked(m, "cudaHostUnregister");
    the_double.stats->registered_bytes -= m->n_bytes;
    free(m);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory)
{
    cudaError_t error = double_enter(true);
    if (!error)
        error = unregister_locked(memory);
    return double_leave(error);
}
