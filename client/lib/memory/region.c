/* Regions: the memory that a client shares with the daemon.
 *
 *     offset 0                                                       size_bytes
 *     +-----------+----------------+---------+-----------------------------+
 *     |   lent    |      free      |  lent   |            free             |
 *     +-----------+----------------+---------+-----------------------------+
 *                                            ^ dirty_end: all beyond is zero
 *
 * Invariants: blocks cover the region without gaps, in order; no two neighbours are free; lent
 * blocks are whole pages; none before first_free is free. So a program may have thousands of small
 * arrays: lending begins where there is something, giving back looks its block up. Every page is
 * there from the start (fallocate), so nothing that anybody does with the memory later can end in
 * SIGBUS, and the seals promise the daemon that this stays so. A block that must be zero is cleared
 * when it is lent, as far as anything was lent there before, and not when it is given back: giving
 * back costs nothing, and whoever writes all of it does not pay. What is not cleared shows this
 * process's own earlier bytes and nobody else's: the kernel hands out pages of zeros.
 *
 * Called by the arena, and by the pump's rings for the memfd alone.
 */
#include "client/lib/memory/region.h"
#include "proto/util.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/resource.h>

#define RESERVE_STEP_BYTES (UINT64_C(4) << 20)
#define CHECK_FROM_BYTES   (UINT64_C(16) << 20)

/* What the machine could still give, UINT64_MAX when it does not say. */
static uint64_t available_bytes(void)
{
    unsigned long long kib, memory = 0, swap = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file)
        return UINT64_MAX;
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            memory = kib;
        else if (sscanf(line, "SwapFree: %llu kB", &kib) == 1)
            swap = kib;
    }
    fclose(file);
    return memory ? (memory + swap) * 1024 : UINT64_MAX;
}

/* Reserving more than there is would not fail: the kernel would end processes, ours or others. */
static bool is_beyond_memory(uint64_t size_bytes)
{
    return size_bytes > CHECK_FROM_BYTES && size_bytes > available_bytes();
}

/* In steps: an interrupted fallocate() on shared memory undoes what it did, and a program with a
 * fast timer would never see the end of a large one. Returns a positive errno. */
static int reserve(int fd, uint64_t size_bytes)
{
    struct rlimit limit; /* on the size of files, memfds too: SIGXFSZ to who oversteps it */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        size_bytes > limit.rlim_cur)
        return EFBIG;
    if (ftruncate(fd, (off_t)size_bytes))
        return errno;
    for (uint64_t done = 0; done < size_bytes;) {
        uint64_t step = min_u64(size_bytes - done, RESERVE_STEP_BYTES);
        if (fallocate(fd, 0, (off_t)done, (off_t)step) == 0)
            done += step;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

int region_map_memfd(const char *name, uint64_t size_bytes, int *ret_fd, void **ret_map,
                     struct gad_error *error)
{
    if (size_bytes == 0 || size_bytes > INT64_MAX || size_bytes > SIZE_MAX ||
        is_beyond_memory(size_bytes))
        return error_set(error, GAD_NO_MEMORY, NULL, "%llu bytes of shared memory are too many",
                         (unsigned long long)size_bytes);
    _cleanup_fd_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return error_from_errno(error, errno, NULL, "memfd_create");
    /* Otherwise anybody who gets the descriptor could make one of it that may do more. */
    if (fchmod(fd, 0600))
        return error_from_errno(error, errno, NULL, "fchmod of shared memory");
    int reserved = reserve(fd, size_bytes);
    if (reserved == ENOSPC || reserved == EFBIG)
        reserved = ENOMEM; /* shared memory is memory, not a disk */
    if (reserved)
        return error_from_errno(error, reserved, NULL, "reserving shared memory");
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
        return error_from_errno(error, errno, NULL, "F_ADD_SEALS");
    void *map = mmap(NULL, (size_t)size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return error_from_errno(error, errno, NULL, "mmap of shared memory");
    *ret_fd = steal_fd(&fd);
    *ret_map = map;
    return 0;
}

int region_new(uint64_t size_bytes, struct region **ret_region, struct gad_error *error)
{
    if (size_bytes > INT64_MAX - REGION_BLOCK_BYTES)
        return error_set(error, GAD_NO_MEMORY, NULL, "%llu bytes of shared memory are too many",
                         (unsigned long long)size_bytes);
    size_bytes = round_up_u64(max_u64(size_bytes, 1), REGION_BLOCK_BYTES);
    _cleanup_free_ struct region *region = calloc(1, sizeof(*region));
    _cleanup_free_ struct region_block *block = calloc(1, sizeof(*block));
    if (!region || !block)
        return error_from_errno(error, ENOMEM, NULL, "a region");
    void *map;
    int r = region_map_memfd("gpuarrayd-region", size_bytes, &region->fd, &map, error);
    if (r)
        return r;
    region->map = map;
    region->size_bytes = size_bytes;
    region->lent_at =
        calloc((size_t)(size_bytes / REGION_BLOCK_BYTES), sizeof(struct region_block *));
    if (!region->lent_at) {
        region_free(steal_ptr(region));
        return error_from_errno(error, ENOMEM, NULL, "a region");
    }
    block->size_bytes = size_bytes;
    block->is_free = true;
    region->first_free = block;
    region->blocks = steal_ptr(block);
    *ret_region = steal_ptr(region);
    return 0;
}

struct region *region_free(struct region *region)
{
    if (!region)
        return NULL;
    while (region->blocks) {
        struct region_block *block = region->blocks;
        region->blocks = block->next;
        free(block);
    }
    munmap(region->map, (size_t)region->size_bytes);
    close_fd(&region->fd);
    free(region->lent_at);
    free(region);
    return NULL;
}

/* Cuts the rest off a free block. */
static int split(struct region_block *block, uint64_t size_bytes)
{
    if (block->size_bytes == size_bytes)
        return 0;
    struct region_block *rest = malloc(sizeof(*rest));
    if (!rest)
        return -ENOMEM;
    *rest = (struct region_block){
        .previous = block,
        .next = block->next,
        .offset_bytes = block->offset_bytes + size_bytes,
        .size_bytes = block->size_bytes - size_bytes,
        .is_free = true,
    };
    if (block->next)
        block->next->previous = rest;
    block->next = rest;
    block->size_bytes = size_bytes;
    return 0;
}

static void mark_lent(struct region *region, const struct region_block *block, bool is_cleared)
{
    uint64_t end = block->offset_bytes + block->size_bytes;
    if (is_cleared && block->offset_bytes < region->dirty_end)
        memset(region->map + block->offset_bytes, 0,
               (size_t)(min_u64(end, region->dirty_end) - block->offset_bytes));
    region->dirty_end = max_u64(region->dirty_end, end);
}

static struct region_block *next_free(struct region_block *block)
{
    while (block && !block->is_free)
        block = block->next;
    return block;
}

int region_lend(struct region *region, uint64_t size_bytes, bool is_cleared,
                uint64_t *ret_offset_bytes)
{
    if (size_bytes > region->size_bytes)
        return -ENOSPC;
    size_bytes = round_up_u64(max_u64(size_bytes, 1), REGION_BLOCK_BYTES);
    if (size_bytes > region->size_bytes - region->used_bytes)
        return -ENOSPC;
    struct region_block *block = region->first_free;
    while (block && (!block->is_free || block->size_bytes < size_bytes))
        block = block->next;
    if (!block)
        return -ENOSPC;
    int r = split(block, size_bytes);
    if (r)
        return r;
    block->is_free = false;
    if (block == region->first_free)
        region->first_free = next_free(block);
    region->lent_at[block->offset_bytes / REGION_BLOCK_BYTES] = block;
    region->used_bytes += size_bytes;
    mark_lent(region, block, is_cleared);
    *ret_offset_bytes = block->offset_bytes;
    return 0;
}

/* The free block swallows its free successor. */
static void merge_next(struct region_block *block)
{
    struct region_block *next = block->next;
    if (!next || !next->is_free)
        return;
    block->size_bytes += next->size_bytes;
    block->next = next->next;
    if (next->next)
        next->next->previous = block;
    free(next);
}

void region_give_back(struct region *region, uint64_t offset_bytes)
{
    struct region_block **lent = &region->lent_at[offset_bytes / REGION_BLOCK_BYTES];
    struct region_block *block = steal_ptr(*lent);
    assert(block && !block->is_free);
    block->is_free = true;
    region->used_bytes -= block->size_bytes;
    if (block->previous && block->previous->is_free)
        block = block->previous;
    bool is_first = !region->first_free || block->offset_bytes <= region->first_free->offset_bytes;
    if (is_first)
        region->first_free = block; /* before its neighbours, which may have been it, go */
    merge_next(block);
    merge_next(block);
}
